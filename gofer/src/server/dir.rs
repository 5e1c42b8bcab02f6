//! Directory pages.
//!
//! A directory is read through an open descriptor that waits, with its position, for the next page, so that a
//! listing is linear in its entries even where seeking in a directory is not cheap. Any other cursor opens the
//! directory again and seeks.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use parking_lot::Mutex;
use rustix::fs::{FileType, Mode, OFlags, RawDir, SeekFrom, openat2, seek};
use rustix::io::Errno;

use crate::protocol::{
    Attr, Bytes, DirEntry, DirPage, MAX_MESSAGE, MAX_OPEN, NodeId, PAGE_BYTES, Response, Step,
};

use super::attr::{read_attr, read_attr_at};
use super::nodes::Node;
use super::walk::{BENEATH, component, open_component};
use super::{Answer, Server};

/// Bytes of one getdents64. It bounds how far a page goes beyond `PAGE_BYTES`: at most 170 entries of
/// at most `ENTRY_BYTES` and a short name.
const READ_BYTES: usize = 4096;
/// The most bytes an entry takes beside its name.
const ENTRY_BYTES: usize = 184;
/// Further directories are listed with the first one as long as all together have not more bytes ...
const MANY_BYTES: usize = 32 * 1024;
/// ... and up to so many: a message has room for them.
const MOST_BYTES: usize = MAX_MESSAGE - 1024;
/// Directories that wait for their next page.
const WAITING: usize = 32;

/// Open directories between pages, oldest first.
#[derive(Default)]
pub(super) struct Streams(Mutex<VecDeque<Stream>>);

struct Stream {
    dir: NodeId,
    cursor: u64,
    fd: OwnedFd,
}

impl Streams {
    fn take(&self, dir: NodeId, cursor: u64) -> Option<OwnedFd> {
        let mut waiting = self.0.lock();
        let at = waiting.iter().position(|stream| stream.dir == dir && stream.cursor == cursor)?;
        waiting.remove(at).map(|stream| stream.fd)
    }

    fn put(&self, stream: Stream) {
        let mut waiting = self.0.lock();
        let oldest = if waiting.len() >= WAITING { waiting.pop_front() } else { None };
        waiting.push_back(stream);
        drop(waiting);
        drop(oldest);
    }

    pub(super) fn forget(&self, dirs: &[NodeId]) {
        let mut waiting = self.0.lock();
        if !waiting.is_empty() {
            waiting.retain(|stream| !dirs.contains(&stream.dir));
        }
    }
}

impl Server {
    pub(super) fn read_dir(&self, id: NodeId, cursor: u64, attrs: bool) -> Answer {
        let mut foreign = Vec::new();
        let mut page = self.page(id, cursor, attrs.then_some((0, &mut foreign)))?;
        self.ask_owners(&mut foreign);
        for owned in foreign {
            owned.put(&mut page);
        }
        Ok((Response::Dir(page), None))
    }

    /// A page of a directory. With `foreign` attributes too: those whose owners are still to be asked for go there, as of the
    /// page with that number.
    fn page(
        &self,
        id: NodeId,
        cursor: u64,
        foreign: Option<(usize, &mut Vec<Foreign>)>,
    ) -> Result<DirPage, Errno> {
        let dir = self.nodes.dir(id)?;
        let fd = match self.streams.take(id, cursor) {
            Some(fd) => fd,
            None => self.open_at(&dir, cursor)?,
        };
        let mut page = DirPage { entries: Vec::new(), next: None };
        let complete = read_page(&fd, &mut page.entries)?;
        if let Some((number, foreign)) = foreign {
            self.fill_attrs(&dir, &fd, &mut page.entries, number, foreign);
        }
        if let (false, Some(last)) = (complete, page.entries.last()) {
            page.next = Some(last.next);
            self.streams.put(Stream { dir: id, cursor: last.next, fd });
        }
        Ok(page)
    }

    /// First pages of several directories. What does not fit any more, or fails, is left out: asked for by itself it
    /// gives the reason.
    pub(super) fn list_many(&self, dir: NodeId, names: &[Bytes]) -> Answer {
        let parent = self.nodes.dir(dir)?;
        if names.len() > MAX_OPEN {
            return Err(Errno::INVAL.into());
        }
        let names = names.iter().map(component).collect::<Result<Vec<CString>, Errno>>()?;
        let mut size = 0;
        let mut pages = Vec::with_capacity(names.len());
        let mut foreign = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let page = match size < MANY_BYTES {
                true => self.list_one(&parent, name, MOST_BYTES - size, number, &mut foreign),
                false => None,
            };
            size += page.as_ref().map_or(0, |(_, page)| page_bytes(page) + ENTRY_BYTES);
            pages.push(page);
        }
        // Of all directories at once: each question is a round trip.
        self.ask_owners(&mut foreign);
        for owned in foreign {
            if let Some(Some((_, page))) = pages.get_mut(owned.page) {
                owned.put(page);
            }
        }
        Ok((Response::Listed(pages), None))
    }

    fn list_one(
        &self,
        parent: &Node,
        name: &CString,
        room: usize,
        number: usize,
        foreign: &mut Vec<Foreign>,
    ) -> Option<(Step, DirPage)> {
        let step = self.enter(parent, name).ok()?;
        let id = [step.node];
        match self.page(step.node, 0, Some((number, foreign))) {
            Ok(page) if page_bytes(&page) < room => Some((step, page)),
            _ => {
                foreign.retain(|owned| owned.page != number);
                self.streams.forget(&id);
                self.nodes.remove(&id);
                None
            }
        }
    }

    fn open_at(&self, dir: &Node, cursor: u64) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match openat2(dir, c".", flags, Mode::empty(), BENEATH) {
            // Who may read but not search a directory may list it.
            Err(Errno::ACCESS) => self.self_fds.reopen(dir, OFlags::RDONLY | OFlags::DIRECTORY)?,
            other => other?,
        };
        if cursor != 0 {
            i64::try_from(cursor).map_err(|_| Errno::INVAL)?;
            seek(&fd, SeekFrom::Start(cursor))?;
        }
        Ok(fd)
    }

    fn fill_attrs(
        &self,
        dir: &Node,
        fd: &OwnedFd,
        entries: &mut [DirEntry],
        page: usize,
        foreign: &mut Vec<Foreign>,
    ) {
        for (number, entry) in entries.iter_mut().enumerate() {
            let Ok(name) = std::ffi::CString::new(entry.name.0.as_slice()) else { continue };
            if self.policy.step(&dir.position, name.as_bytes()).is_err() {
                continue;
            }
            let Ok(mut attr) = read_attr_at(fd, &name) else { continue };
            let known = self.ids.as_ref().is_none_or(|ids| ids.recall(&mut attr));
            let plain = attr.dev == dir.dev && self.policy.inode(attr.dev, attr.ino).is_none();
            if plain && known {
                entry.attr = Some(attr);
                continue;
            }
            // The rest needs a descriptor: to ask for the owner, or to see what file system it is on.
            let Ok(place) = open_component(fd.as_fd(), &name) else { continue };
            let Ok(mut attr) = read_attr(&place) else { continue };
            if self.visible(dir, &place, &attr).is_err() {
                continue;
            }
            match &self.ids {
                Some(ids) if !ids.recall(&mut attr) => {
                    foreign.push(Foreign { page, entry: number, place, attr });
                }
                _ => entry.attr = Some(attr),
            }
        }
    }

    fn ask_owners(&self, foreign: &mut [Foreign]) {
        let Some(ids) = self.ids.as_ref().filter(|_| !foreign.is_empty()) else { return };
        let mut questions: Vec<(BorrowedFd<'_>, &mut Attr)> =
            foreign.iter_mut().map(|it| (OwnedFd::as_fd(&it.place), &mut it.attr)).collect();
        ids.ask(&mut questions);
    }
}

/// An entry whose owner is asked for.
struct Foreign {
    /// Number of its page, and its own in it.
    page: usize,
    entry: usize,
    place: OwnedFd,
    attr: Attr,
}

impl Foreign {
    fn put(self, page: &mut DirPage) {
        if let Some(entry) = page.entries.get_mut(self.entry) {
            entry.attr = Some(self.attr);
        }
    }
}

/// Reads entries until the page is full and no entry that was read is left out. True at the directory's end.
fn read_page(fd: &OwnedFd, entries: &mut Vec<DirEntry>) -> Result<bool, Errno> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); READ_BYTES];
    let mut raw = RawDir::new(fd, &mut buffer);
    let mut size = 0;
    loop {
        if size >= PAGE_BYTES && raw.is_buffer_empty() {
            return Ok(false);
        }
        match raw.next() {
            None => return Ok(true),
            Some(Ok(entry)) => {
                if !is_dot(entry.file_name()) {
                    let name = Bytes::from(entry.file_name().to_bytes());
                    size += name.0.len() + ENTRY_BYTES;
                    let kind = kind(entry.file_type());
                    let next = entry.next_entry_cookie();
                    entries.push(DirEntry { name, ino: entry.ino(), kind, next, attr: None });
                }
            }
            // A directory that was removed meanwhile has no more entries.
            Some(Err(Errno::NOENT)) => return Ok(true),
            Some(Err(errno)) => return Err(errno),
        }
    }
}

fn page_bytes(page: &DirPage) -> usize {
    page.entries.iter().map(|entry| entry.name.0.len() + ENTRY_BYTES).sum()
}

fn is_dot(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

/// `DT_*`, which is the type's bits of a mode, shifted.
fn kind(kind: FileType) -> u8 {
    if kind == FileType::Unknown { 0 } else { u8::try_from(kind.as_raw_mode() >> 12 & 0xf).unwrap_or(0) }
}
