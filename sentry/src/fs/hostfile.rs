//! Open regular files of the host: read, written and mapped by their descriptor.

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::fs::gofer::GoferInode;
use crate::task::creds::cap;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps, Mapping, Written};
use crate::vfs::inode::{Inode, downcast};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use syscall_table::abi::open::SEEK_DATA;
use syscall_table::errno::Errno;

/// An open regular file with a host descriptor.
pub struct HostFile {
    inode: Arc<dyn Inode>,
    fd: Arc<OwnedFd>,
}

impl HostFile {
    /// With a descriptor that carries no more rights than the guest asked for.
    pub fn new(inode: Arc<dyn Inode>, fd: Arc<OwnedFd>) -> HostFile {
        HostFile { inode, fd }
    }

    /// The mode to be kept if the caller may write without a loss of set-IDs.
    fn kept_mode(&self, cx: &Cx) -> Option<(Arc<GoferInode>, u32)> {
        let file = downcast::<GoferInode>(&self.inode)?;
        let mode = file.set_ids()?;
        cx.task.creds().capable(cap::FSETID).then_some((file, mode))
    }
}

/// SEEK_DATA and SEEK_HOLE of a host descriptor whose own position nobody uses.
pub(crate) fn seek_data_hole(fd: BorrowedFd<'_>, offset: i64, whence: i32) -> SysResult<u64> {
    let offset = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
    let to = if whence == SEEK_DATA {
        rustix::fs::SeekFrom::Data(offset)
    } else {
        rustix::fs::SeekFrom::Hole(offset)
    };
    Ok(rustix::fs::seek(fd, to)?)
}

/// File systems whose mappings have what a read gives, whoever writes: ext4, XFS, Btrfs, tmpfs, F2FS. Not overlayfs, whose
/// mappings stay with the lower layer.
const COHERENT: [i64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0xf2f5_2010];

/// What a task may read by itself of a file of the gofer: [`FileOps::lendable`].
pub(crate) fn lendable(inode: &Arc<dyn Inode>, fd: &Arc<OwnedFd>) -> Option<(Arc<OwnedFd>, u64)> {
    // Where guests write, a removed file is to be gone when they close it.
    let still = downcast::<GoferInode>(inode).is_some_and(|inode| !inode.writable());
    let stat = rustix::fs::fstat(fd).ok().filter(|_| still)?;
    let coherent = rustix::fs::fstatfs(fd).is_ok_and(|fs| COHERENT.contains(&fs.f_type));
    coherent.then(|| (fd.clone(), u64::try_from(stat.st_size).unwrap_or(0)))
}

impl FileOps for HostFile {
    fn takes_direct(&self) -> bool {
        true
    }

    fn read(&self, _: &mut Cx, _: &File, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        self.read_at(buf, offset)
    }

    fn hurries(&self) -> bool {
        true
    }

    fn write(&self, cx: &mut Cx, file: &File, data: &[u8], offset: u64) -> SysResult<Written> {
        let offset = if cx.appends(file) { self.size()? } else { offset };
        // The host takes set-user-ID bits from what this process writes, which has no capability to keep them.
        let kept = self.kept_mode(cx);
        let count = rustix::io::pwrite(&self.fd, data, offset)?;
        if let Some((file, mode)) = kept {
            file.keep_mode(mode)?;
            crate::vfs::outside::hush(&self.inode);
        }
        Ok(Written { count, end: offset.saturating_add(count as u64) })
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> SysResult<u64> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    fn seek_special(&self, _: &File, offset: i64, whence: i32) -> SysResult<u64> {
        seek_data_hole(self.fd.as_fd(), offset, whence)
    }

    fn attr(&self) -> SysResult<Attr> {
        self.inode.attr()
    }

    fn mmap(&self, _: &File, _: i32, _: i32) -> SysResult<Mapping> {
        Ok(Mapping::Host(self.fd.clone()))
    }

    fn fsync(&self, data_only: bool) -> SysResult<()> {
        Ok(if data_only { rustix::fs::fdatasync(&self.fd) } else { rustix::fs::fsync(&self.fd) }?)
    }

    fn truncate(&self, size: u64) -> SysResult<()> {
        Ok(rustix::fs::ftruncate(&self.fd, size)?)
    }

    fn fallocate(&self, mode: i32, offset: u64, len: u64) -> SysResult<()> {
        let flags = rustix::fs::FallocateFlags::from_bits_retain(mode.cast_unsigned());
        Ok(rustix::fs::fallocate(&self.fd, flags, offset, len)?)
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        Some(self.inode.clone())
    }

    fn host_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn lendable(&self) -> Option<(Arc<OwnedFd>, u64)> {
        lendable(&self.inode, &self.fd)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        Ok(rustix::io::pread(&self.fd, buf, offset)?)
    }
}
