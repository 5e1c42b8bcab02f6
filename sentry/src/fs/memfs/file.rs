//! Open regular files in memory.

use super::Node;
use super::content::Bytes;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::fs::hostfile::{self, seek_data_hole};
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps, Mapping, Written};
use crate::vfs::inode::Inode;
use rustix::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use syscall_table::abi::fcntl::{F_SEAL_FUTURE_WRITE, F_SEAL_WRITE};
use syscall_table::abi::mmap::{MAP_SHARED, PROT_WRITE};
use syscall_table::abi::open::O_NOATIME;
use syscall_table::errno::Errno;

/// An open regular file of a memory file system.
pub struct MemFile {
    node: Arc<Node>,
    /// The lower's descriptor, if the contents were the lower's at the open.
    lower: Option<Arc<OwnedFd>>,
}

impl MemFile {
    /// Opens a regular file; the caller made sure of rights.
    ///
    /// # Errors
    /// Those of opening the lower.
    pub fn new(node: Arc<Node>) -> SysResult<MemFile> {
        let is_lower = node.content.lock().is_lower();
        let lower = match &node.lower {
            Some(lower) if is_lower => Some(lower.host_file(false)?),
            _ => None,
        };
        Ok(MemFile { node, lower })
    }

    /// The node, for seals.
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }
}

impl FileOps for MemFile {
    fn takes_direct(&self) -> bool {
        true
    }

    fn read(&self, _: &mut Cx, file: &File, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        let count = self.read_at(buf, offset)?;
        if !buf.is_empty() && file.flags() & O_NOATIME == 0 {
            self.node.accessed();
        }
        Ok(count)
    }

    fn hurries(&self) -> bool {
        true
    }

    fn write(&self, cx: &mut Cx, file: &File, data: &[u8], offset: u64) -> SysResult<Written> {
        let _change = self.node.fs.change();
        self.node.copy_up(false)?;
        let mut content = self.node.content.lock();
        let offset = if cx.appends(file) { content.size().unwrap_or(0) } else { offset };
        let count = content.write(&self.node.fs, data, offset)?;
        drop(content);
        self.node.modified_by(cx.task)?;
        Ok(Written { count, end: offset.saturating_add(count as u64) })
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> SysResult<u64> {
        if let Some(size) = self.node.content.lock().size() {
            return Ok(size);
        }
        Ok(self.node.attr()?.size)
    }

    fn seek_special(&self, _: &File, offset: i64, whence: i32) -> SysResult<u64> {
        let fd = self.node.content.lock().host()?;
        self.node.list_memfd();
        match fd.as_ref().or(self.lower.as_ref()) {
            Some(fd) => seek_data_hole(fd.as_fd(), offset, whence),
            None => Err(Errno::EINVAL.into()),
        }
    }

    fn attr(&self) -> SysResult<Attr> {
        self.node.attr()
    }

    fn mmap(&self, file: &File, prot: i32, flags: i32) -> SysResult<Mapping> {
        let mut content = self.node.content.lock();
        let shared = flags & MAP_SHARED != 0;
        if shared && prot & PROT_WRITE != 0 && content.seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) != 0 {
            return Err(Errno::EPERM.into());
        }
        let mirror = match &self.lower {
            Some(lower) if shared && content.is_lower() => {
                let size = rustix::fs::fstat(lower)?.st_size;
                content.mirrored(&self.node.fs, lower, u64::try_from(size).unwrap_or(u64::MAX))
            }
            _ => None,
        };
        let fd = match mirror {
            None => content.mapped(shared && file.writable())?,
            mirror => mirror,
        };
        drop(content);
        self.node.list_memfd();
        Ok(Mapping::Host(fd.or_else(|| self.lower.clone()).ok_or(Errno::ENODEV)?))
    }

    fn fsync(&self, _: bool) -> SysResult<()> {
        // What is mapped changes without a call.
        if self.node.content.lock().take_mapped() {
            self.node.fs.changed();
        }
        self.node.fs.sync();
        Ok(())
    }

    fn truncate(&self, size: u64) -> SysResult<()> {
        self.node.truncate(size)
    }

    fn fallocate(&self, mode: i32, offset: u64, len: u64) -> SysResult<()> {
        let _change = self.node.fs.change();
        self.node.copy_up(false)?;
        self.node.content.lock().fallocate(&self.node.fs, mode, offset, len)?;
        self.node.modified()
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        Some(self.node.clone())
    }

    fn lendable(&self) -> Option<(Arc<OwnedFd>, u64)> {
        let is_lower = self.node.content.lock().is_lower();
        match (&self.node.lower, &self.lower) {
            (Some(inode), Some(fd)) if is_lower => hostfile::lendable(inode, fd),
            _ => None,
        }
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        let content = self.node.content.lock();
        let fd = match &content.bytes {
            Bytes::Memory(bytes) => {
                return Ok(crate::fs::pseudo::copy_at(bytes, buf, offset));
            }
            Bytes::Fd(fd, _) => fd.clone(),
            Bytes::Lower => self.lower.clone().ok_or(Errno::EIO)?,
        };
        drop(content);
        Ok(rustix::io::pread(&fd, buf, offset)?)
    }
}
