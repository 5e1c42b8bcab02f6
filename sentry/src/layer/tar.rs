//! An upper layer as a tar archive: <https://github.com/opencontainers/image-spec/blob/main/layer.md>.
//!
//! A deleted name is an empty file with `.wh.` before the name, a directory of which nothing below shows has an entry
//! `.wh..wh..opq`. Names that begin with `.wh.` themselves cannot be told from these, and sockets have no form: both are
//! left out and named.

use crate::fail::SysResult;
use crate::fs::memfs::{Change, MemFile, Node};
use crate::vfs::attr::Attr;
use crate::vfs::file::FileOps;
use crate::vfs::inode::Inode;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use syscall_table::abi::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG};
use syscall_table::errno::Errno;
use tar::{Builder, EntryType, Header};

const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// What is left out is named up to so many times.
const NAMED: usize = 20;

/// An archive being written.
pub(super) struct Archive<'a> {
    tar: Builder<BufWriter<&'a File>>,
    /// First names of files with several.
    linked: HashMap<*const Node, Vec<u8>>,
    left_out: Vec<String>,
}

impl<'a> Archive<'a> {
    pub(super) fn new(to: &'a File) -> Self {
        let mut tar = Builder::new(BufWriter::with_capacity(256 * 1024, to));
        tar.sparse(false);
        Archive { tar, linked: HashMap::new(), left_out: Vec::new() }
    }

    /// The end of the archive. What was left out.
    pub(super) fn finish(self) -> Result<Vec<String>, String> {
        let mut to = self.tar.into_inner().map_err(|e| e.to_string())?;
        to.flush().map_err(|e| e.to_string())?;
        Ok(self.left_out)
    }

    pub(super) fn add(&mut self, change: &Change) -> SysResult<()> {
        let path = change.path.strip_prefix(b"/").unwrap_or(&change.path);
        if path.split(|b| *b == b'/').any(|name| name.starts_with(WHITEOUT)) {
            self.leave_out(path, "a name that means a deletion");
            return Ok(());
        }
        let Some(node) = &change.node else {
            let at = path.iter().rposition(|b| *b == b'/').map_or(0, |at| at.saturating_add(1));
            let (dir, name) = path.split_at_checked(at).unwrap_or((b"", path));
            return self.empty(&[dir, WHITEOUT, name].concat());
        };
        if path.is_empty() {
            self.entry(b"./", node, EntryType::Directory, &mut std::io::empty(), 0)?;
            return Ok(());
        }
        self.node(path, node)?;
        if change.opaque {
            self.empty(&[path, b"/", OPAQUE].concat())?;
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &[u8], why: &str) {
        if self.left_out.len() < NAMED {
            self.left_out.push(format!("left out /{}: {why}", path.escape_ascii()));
        }
    }

    fn empty(&mut self, path: &[u8]) -> SysResult<()> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o600);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(0);
        self.append(&mut header, path, &mut std::io::empty())
    }

    fn node(&mut self, path: &[u8], node: &Arc<Node>) -> SysResult<()> {
        let mut none = std::io::empty();
        match node.kind() {
            S_IFREG => {
                if node.attr()?.nlink > 1 {
                    if let Some(first) = self.linked.get(&Arc::as_ptr(node)).cloned() {
                        return self.link(path, node, EntryType::Link, &first);
                    }
                    self.linked.insert(Arc::as_ptr(node), path.to_vec());
                }
                let file = MemFile::new(node.clone())?;
                let size = file.size()?;
                let mut contents = Contents { file, at: 0, left: size };
                self.entry(path, node, EntryType::Regular, &mut contents, size)
            }
            S_IFDIR => self.entry(&[path, b"/"].concat(), node, EntryType::Directory, &mut none, 0),
            S_IFLNK => {
                let target = node.target()?;
                self.link(path, node, EntryType::Symlink, &target)
            }
            S_IFIFO => self.entry(path, node, EntryType::Fifo, &mut none, 0),
            S_IFCHR => self.entry(path, node, EntryType::Char, &mut none, 0),
            S_IFBLK => self.entry(path, node, EntryType::Block, &mut none, 0),
            _ => {
                self.leave_out(path, "a socket");
                Ok(())
            }
        }
    }

    fn link(&mut self, path: &[u8], node: &Arc<Node>, kind: EntryType, target: &[u8]) -> SysResult<()> {
        let mut header = header(&node.attr()?, kind, 0);
        let long = target.len() > 100;
        if !long {
            header.set_link_name_literal(target).map_err(io)?;
        }
        self.extensions(node, if long { Some(target) } else { None })?;
        self.append(&mut header, path, &mut std::io::empty())
    }

    fn entry(
        &mut self,
        path: &[u8],
        node: &Arc<Node>,
        kind: EntryType,
        data: &mut dyn Read,
        size: u64,
    ) -> SysResult<()> {
        let mut header = header(&node.attr()?, kind, size);
        self.extensions(node, None)?;
        self.append(&mut header, path, data)
    }

    /// What the header has no field for: parts of seconds, extended attributes, a long target.
    fn extensions(&mut self, node: &Arc<Node>, target: Option<&[u8]>) -> SysResult<()> {
        let attr = node.attr()?;
        let mut all: Vec<(String, Vec<u8>)> = Vec::new();
        if attr.mtime.nsec != 0 || attr.mtime.sec < 0 {
            all.push(("mtime".to_owned(), format!("{}.{:09}", attr.mtime.sec, attr.mtime.nsec).into_bytes()));
        }
        if let Some(target) = target {
            all.push(("linkpath".to_owned(), target.to_vec()));
        }
        // Those of the lower too: the entry takes its place.
        for name in node.list_xattr()? {
            let Ok(value) = node.get_xattr(&name) else { continue };
            if let Ok(name) = String::from_utf8(name) {
                all.push((format!("SCHILY.xattr.{name}"), value));
            }
        }
        if all.is_empty() {
            return Ok(());
        }
        self.tar.append_pax_extensions(all.iter().map(|(k, v)| (k.as_str(), v.as_slice()))).map_err(io)
    }

    fn append(&mut self, header: &mut Header, path: &[u8], data: &mut dyn Read) -> SysResult<()> {
        self.tar.append_data(header, Path::new(OsStr::from_bytes(path)), data).map_err(io)
    }
}

fn header(attr: &Attr, kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(attr.mode & 0o7777);
    header.set_uid(attr.uid.into());
    header.set_gid(attr.gid.into());
    header.set_mtime(u64::try_from(attr.mtime.sec).unwrap_or(0));
    header.set_size(size);
    if matches!(kind, EntryType::Char | EntryType::Block) {
        // The fields are there in this form of a header.
        let _ = header.set_device_major((attr.rdev >> 8) as u32 & 0xfff);
        let _ = header.set_device_minor((attr.rdev & 0xff) as u32 | ((attr.rdev >> 12) as u32 & 0xf_ff00));
    }
    header
}

fn io(error: std::io::Error) -> crate::fail::Fail {
    Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO.raw())).into()
}

/// Exactly as many bytes as the entry's header says.
struct Contents {
    file: MemFile,
    at: u64,
    left: u64,
}

impl Read for Contents {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let Some(buf) = buf.get_mut(..most).filter(|buf| !buf.is_empty()) else { return Ok(0) };
        let errno = |fail: crate::fail::Fail| {
            std::io::Error::from_raw_os_error(fail.errno().unwrap_or(Errno::EIO).raw())
        };
        let mut count = self.file.read_at(buf, self.at).map_err(errno)?;
        if count == 0 {
            // The host cut a file of the lower layer meanwhile.
            buf.fill(0);
            count = buf.len();
        }
        self.at = self.at.saturating_add(count as u64);
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }
}
