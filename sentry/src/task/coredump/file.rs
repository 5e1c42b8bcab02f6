//! The core file: an ELF file with notes and the memory that /proc/PID/coredump_filter chooses.

use super::Thread;
use super::note::notes;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::mm::Mm;
use crate::mm::area::{Area, Backing};
use crate::vfs::file::File;
use crate::vfs::names::At;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use syscall_table::abi::getrlimit::{RLIMIT_CORE, RLIMIT_FSIZE};
use syscall_table::abi::open::*;
use syscall_table::abi::sigaction::Siginfo;
use syscall_table::abi::{PROT_EXEC, PROT_READ, PROT_WRITE};
use syscall_table::errno::Errno;
use zerocopy::IntoBytes;

/// /proc/sys/kernel/core_pattern
const NAME: &[u8] = b"core";
const PAGE: u64 = 4096;
const HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
/// Memory that is looked at in one go.
const CHUNK: usize = 256 << 10;
/// Most memory that is looked at for one file: programs reserve far more than they touch, and what is not touched is only
/// known by reading it.
const MOST: u64 = 4 << 30;

/// Bits of coredump_filter.
const ANON_PRIVATE: u32 = 1;
const ANON_SHARED: u32 = 1 << 1;
const MAPPED_PRIVATE: u32 = 1 << 2;
const MAPPED_SHARED: u32 = 1 << 3;
const ELF_HEADERS: u32 = 1 << 4;

struct Segment {
    start: u64,
    end: u64,
    prot: i32,
    /// Bytes of it that are in the file.
    kept: u64,
}

/// What reads the memory, as far as its budget goes.
struct Memory<'a> {
    mm: &'a Mm,
    left: u64,
    buf: Vec<u8>,
}

impl Memory<'_> {
    /// The program's own bytes from `at` on, at most `len` of them: none where nothing can be read.
    fn read(&mut self, at: u64, len: u64) -> &[u8] {
        let len = usize::try_from(len.min(self.left)).unwrap_or(CHUNK).min(CHUNK);
        self.left -= len as u64;
        self.buf.resize(len, 0);
        let done = match self.mm.space.read_code(at, &mut self.buf) {
            Ok(()) => len,
            Err(fault) => fault.done.min(len),
        };
        self.buf.get(..done).unwrap_or_default()
    }

    /// Whether private memory differs from the file behind it.
    fn was_written(&mut self, start: u64, area: &Area, file: &File) -> bool {
        let mut own = vec![0; CHUNK];
        let mut at = start;
        while at < area.end && self.left > 0 {
            let bytes = self.read(at, area.end - at);
            let Some(own) = own.get_mut(..bytes.len()).filter(|own| !own.is_empty()) else { return false };
            own.fill(0);
            let mut done = 0;
            while let Some(rest) = own.get_mut(done..).filter(|rest| !rest.is_empty()) {
                let offset = area.offset().saturating_add(at - start).saturating_add(done as u64);
                match file.ops.read_at(rest, offset) {
                    Ok(count) if count > 0 => done += count,
                    _ => break,
                }
            }
            if *own != *bytes {
                return true;
            }
            at += bytes.len() as u64;
        }
        false
    }

    /// How much of an area is kept, from its start (vma_dump_size).
    fn kept(&mut self, start: u64, area: &Area, filter: u32) -> u64 {
        let whole = area.end.saturating_sub(start);
        let has = |bit: u32| filter & bit != 0;
        let file = match &area.backing {
            Backing::Host { file: Some(file), .. } => Some(file),
            _ => None,
        };
        if area.dont_dump {
            return 0;
        }
        if area.shared {
            let bit = if file.is_some() { MAPPED_SHARED } else { ANON_SHARED };
            return if has(bit) { whole } else { 0 };
        }
        let Some(file) = file else {
            // What nobody could ever touch has no pages.
            return if has(ANON_PRIVATE) && area.prot != 0 { whole } else { 0 };
        };
        if has(MAPPED_PRIVATE) || has(ANON_PRIVATE) && self.was_written(start, area, file) {
            return whole;
        }
        let header = has(ELF_HEADERS) && area.offset() == 0 && area.prot & PROT_READ != 0;
        if header && self.read(start, 4) == b"\x7fELF" { PAGE } else { 0 }
    }

    /// The first page of a stack that has anything in it.
    fn top(&mut self, start: u64, end: u64) -> u64 {
        let mut at = start;
        while at < end && self.left > 0 {
            let bytes = self.read(at, end - at);
            if bytes.is_empty() {
                break;
            }
            if let Some(used) = bytes.iter().position(|b| *b != 0) {
                return (at + used as u64) & !(PAGE - 1);
            }
            at += bytes.len() as u64;
        }
        start
    }
}

fn segments(memory: &mut Memory<'_>, areas: &[(u64, Area)], filter: u32) -> Vec<Segment> {
    let mut all = Vec::with_capacity(areas.len() + 1);
    for (start, area) in areas {
        let kept = memory.kept(*start, area, filter);
        let mut start = *start;
        if area.grows && kept > 0 {
            start = memory.top(start, area.end);
        }
        let kept = kept.min(area.end.saturating_sub(start));
        all.push(Segment { start, end: area.end, prot: area.prot, kept });
    }
    if let Some(start) = memory.mm.space.vdso() {
        let mut end = start;
        while memory.mm.in_vdso(end, 1) && memory.read(end, PAGE).len() as u64 == PAGE {
            end += PAGE;
        }
        if end > start {
            all.push(Segment { start, end, prot: PROT_READ | PROT_EXEC, kept: end - start });
        }
    }
    all.sort_by_key(|segment| segment.start);
    all
}

/// The file, written from its beginning on.
struct Out<'a, 'b> {
    cx: &'a mut Cx<'b>,
    file: Arc<File>,
    at: u64,
    left: u64,
}

impl Out<'_, '_> {
    /// Writes; RLIMIT_CORE ends it.
    fn put(&mut self, mut bytes: &[u8]) -> SysResult<()> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(Errno::EFBIG)?;
        while !bytes.is_empty() {
            let written = self.file.ops.write(self.cx, &self.file, bytes, self.at)?;
            if written.count == 0 {
                return Err(Errno::EIO.into());
            }
            self.at += written.count as u64;
            bytes = bytes.get(written.count..).unwrap_or_default();
        }
        Ok(())
    }

    /// Memory: what is zero stays a hole.
    fn memory(&mut self, memory: &mut Memory<'_>, segment: &Segment) -> SysResult<()> {
        let (mut at, end) = (segment.start, segment.start + segment.kept);
        let base = self.at;
        while at < end {
            if self.cx.task.is_dead() || memory.left == 0 {
                return Err(Errno::EINTR.into());
            }
            let bytes = memory.read(at, end - at).to_vec();
            // A page that cannot be read is a hole, too.
            let step = if bytes.is_empty() { PAGE } else { bytes.len() as u64 };
            let mut done = 0;
            while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
                let pages = || rest.chunks(PAGE as usize);
                let zero = |page: &&[u8]| page.iter().all(|b| *b == 0);
                let holes: usize = pages().take_while(zero).map(<[u8]>::len).sum();
                let full: usize =
                    pages().skip_while(zero).take_while(|page| !zero(page)).map(<[u8]>::len).sum();
                self.at = base + (at - segment.start) + (done + holes) as u64;
                self.put(rest.get(holes..holes + full).unwrap_or_default())?;
                done += holes + full;
            }
            at += step;
        }
        self.at = base + segment.kept;
        Ok(())
    }
}

fn header(count: usize) -> Vec<u8> {
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // ET_CORE, EM_X86_64, then the version.
    out.extend_from_slice([4u16, 62, 1, 0].as_bytes());
    out.extend_from_slice([0, HEADER, 0].as_bytes());
    let (phent, count) = (PROGRAM_HEADER as u16, count as u16);
    out.extend_from_slice([0, 0, HEADER as u16, phent, count, 0, 0, 0].as_bytes());
    out
}

fn program_header(kind: u32, prot: i32, numbers: [u64; 5], align: u64) -> Vec<u8> {
    let bits = [(PROT_READ, 4), (PROT_WRITE, 2), (PROT_EXEC, 1)];
    let flags = bits.iter().filter(|(bit, _)| prot & bit != 0).map(|(_, flag)| flag).sum();
    let [offset, addr, physical, file, mem] = numbers;
    let mut out = [kind, flags].as_bytes().to_vec();
    out.extend_from_slice([offset, addr, physical, file, mem, align].as_bytes());
    out
}

/// Makes the file anew: what has its name goes, so that no link leads elsewhere and nobody else holds it open.
fn open(cx: &mut Cx) -> SysResult<Arc<File>> {
    let vfs = &cx.kernel().vfs;
    match vfs.remove(cx.task, At { dirfd: AT_FDCWD, path: NAME }, false) {
        // The next step says why it cannot be made.
        Ok(()) | Err(_) => {}
    }
    let flags = O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_LARGEFILE;
    vfs.open(cx.task, AT_FDCWD, NAME, flags, 0o600)
}

/// Writes the core file. A file that ends early is one, too.
///
/// # Errors
/// None could be made.
pub(super) fn write(cx: &mut Cx, threads: &[Thread], info: &Siginfo) -> SysResult<()> {
    let file = open(cx)?;
    let task = cx.task.clone();
    let mm = task.mm();
    let areas = mm.areas();
    let filter = task.process.coredump_filter.load(Relaxed);
    let mut memory = Memory { mm: &mm, left: MOST, buf: Vec::new() };
    let [.., arguments, end, _, _] = mm.layout.lock().marks();
    let line = memory.read(arguments, end.saturating_sub(arguments).min(80)).to_vec();
    let notes = notes(threads, info, &line, &areas);
    let segments = segments(&mut memory, &areas, filter);

    let count = segments.len().saturating_add(1);
    let at = HEADER + PROGRAM_HEADER * count as u64;
    let mut head = header(count);
    head.extend(program_header(4, 0, [at, 0, 0, notes.len() as u64, 0], 4));
    let mut next = at.saturating_add(notes.len() as u64).next_multiple_of(PAGE);
    let first = next;
    for segment in &segments {
        let size = segment.end.saturating_sub(segment.start);
        head.extend(program_header(1, segment.prot, [next, segment.start, 0, segment.kept, size], PAGE));
        next = next.saturating_add(segment.kept);
    }
    head.extend(notes);

    let left = task.process.limit(RLIMIT_CORE).min(task.process.limit(RLIMIT_FSIZE));
    let mut out = Out { cx, file, at: 0, left };
    // Whatever ends it from here on: the file is there.
    let mut rest = |out: &mut Out<'_, '_>| -> SysResult<()> {
        out.put(&head)?;
        out.at = first;
        for segment in &segments {
            out.memory(&mut memory, segment)?;
        }
        // It may end with a hole.
        out.file.ops.truncate(out.at)
    };
    let _ = rest(&mut out);
    Ok(())
}
