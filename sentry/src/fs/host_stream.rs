//! Standard streams that the sandbox inherited: regular files, pipes, sockets, devices. Terminals: [`super::host_tty`].
//!
//! No call here may put a sentry thread to sleep, and the descriptions belong to others too, so O_NONBLOCK may not be
//! set on them. Pipes and sockets are asked not to wait for this one transfer (RWF_NOWAIT, MSG_DONTWAIT); where that is
//! not known, readiness is tested first and little enough is moved that a ready stream takes it.
//!
//! The position of a regular file is shared with whoever passed it on: the host's is used. Opened again by
//! /proc/self/fd it has a position of its own, and no more rights than it was passed on with.

use crate::boot::Inherited;
use crate::cx::Cx;
use crate::fail::{Fail, Restart, SysResult};
use crate::reactor::Reactor;
use crate::task::Task;
use crate::vfs::attr::{Attr, FileTime};
use crate::vfs::file::{File, FileOps, Mapping, OWN_POSITION, Written, o};
use crate::vfs::inode::{Inode, SetAttr, StatFs};
use crate::wait::{Ready, WaitQueue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, SeekFrom};
use rustix::io::{Errno as HostErrno, IoSlice, IoSliceMut, ReadWriteFlags};
use rustix::net::{RecvFlags, SendFlags};
use std::sync::Arc;
use syscall_table::abi::ioctl::FIONREAD;
use syscall_table::abi::open::{SEEK_CUR, SEEK_DATA, SEEK_END, SEEK_HOLE, SEEK_SET};
use syscall_table::abi::stat::{S_IFMT, S_IFREG};
use syscall_table::errno::Errno;

/// RWF_NOAPPEND (Linux 6.9).
const RWF_NOAPPEND: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x20);

/// Bytes that a stream which is ready for writing takes at once (PIPE_BUF).
const READY_MEANS: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Regular,
    Stream,
    Socket,
}

/// What stands behind an inherited descriptor that is no terminal.
struct Host {
    fd: Arc<OwnedFd>,
    kind: Kind,
    /// The description's own O_APPEND, which F_SETFL inside does not change.
    append: bool,
    /// What it is called outside.
    name: Option<Vec<u8>>,
    /// Woken by the reactor.
    queue: Arc<WaitQueue>,
}

/// An open inherited descriptor.
pub struct HostStream {
    host: Arc<Host>,
    /// Uses the host's position, not the file's.
    shared: bool,
}

/// Attributes of a host descriptor.
pub(super) fn host_attr(fd: impl AsFd) -> SysResult<Attr> {
    let stat = rustix::fs::fstat(fd)?;
    let time = |sec: i64, nsec: u64| FileTime { sec, nsec: (nsec % 1_000_000_000) as u32 };
    Ok(Attr {
        dev: stat.st_dev,
        ino: stat.st_ino,
        mode: stat.st_mode,
        nlink: stat.st_nlink,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev,
        size: stat.st_size.max(0).unsigned_abs(),
        blksize: u32::try_from(stat.st_blksize).unwrap_or(4096),
        blocks: stat.st_blocks.max(0).unsigned_abs(),
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        btime: None,
        acl: None,
    })
}

/// What a host descriptor is ready for just now.
pub(super) fn readiness(fd: BorrowedFd<'_>) -> Ready {
    let mask = PollFlags::IN | PollFlags::OUT | PollFlags::PRI | PollFlags::RDHUP;
    let mut fds = [PollFd::from_borrowed_fd(fd, mask)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut fds, Some(&now)) {
        Ok(_) => {
            let [fd] = fds;
            let mut ready = Ready::from_bits_retain(u32::from(fd.revents().bits()));
            if ready.contains(Ready::IN) {
                ready |= Ready::RDNORM;
            }
            if ready.contains(Ready::OUT) {
                ready |= Ready::WRNORM;
            }
            ready
        }
        Err(_) => Ready::ERR,
    }
}

impl HostStream {
    /// Over an inherited descriptor that is no terminal.
    ///
    /// # Errors
    /// The host's.
    pub fn open(reactor: &Reactor, inherited: Inherited) -> SysResult<Arc<File>> {
        let Inherited { fd, flags, name, .. } = inherited;
        let fd = Arc::new(fd);
        let kind = match FileType::from_raw_mode(rustix::fs::fstat(&*fd)?.st_mode) {
            FileType::RegularFile | FileType::Directory => Kind::Regular,
            FileType::Socket => Kind::Socket,
            _ => Kind::Stream,
        };
        let queue = Arc::new(WaitQueue::new());
        if kind != Kind::Regular {
            // A stream that cannot be watched cannot make anybody wait either.
            let _ = reactor.watch(fd.as_fd(), queue.clone());
        }
        let host = Arc::new(Host { fd, kind, append: flags & o::O_APPEND != 0, name, queue });
        let file = File::new(Arc::new(HostStream { host, shared: kind == Kind::Regular }), kept(flags), None);
        if kind == Kind::Regular {
            *file.pos.lock() = OWN_POSITION;
        }
        Ok(file)
    }

    fn read_now(&self, buf: &mut [u8], offset: u64) -> Result<usize, HostErrno> {
        let fd = &*self.host.fd;
        match self.host.kind {
            Kind::Regular if offset == OWN_POSITION => rustix::io::read(fd, &mut *buf),
            Kind::Regular => rustix::io::pread(fd, &mut *buf, offset),
            Kind::Socket => rustix::net::recv(fd, &mut *buf, RecvFlags::DONTWAIT).map(|(count, _)| count),
            Kind::Stream => {
                let mut slices = [IoSliceMut::new(&mut *buf)];
                match rustix::io::preadv2(fd, &mut slices, OWN_POSITION, ReadWriteFlags::NOWAIT) {
                    Err(HostErrno::OPNOTSUPP | HostErrno::SPIPE | HostErrno::INVAL) => {
                        if !readiness(fd.as_fd()).intersects(Ready::IN | Ready::HUP | Ready::ERR) {
                            return Err(HostErrno::AGAIN);
                        }
                        rustix::io::read(fd, &mut *buf)
                    }
                    other => other,
                }
            }
        }
    }

    fn write_now(&self, data: &[u8], offset: u64, append: bool) -> Result<usize, HostErrno> {
        let fd = &*self.host.fd;
        match self.host.kind {
            Kind::Regular if append != self.host.append => {
                let flags = if append { ReadWriteFlags::APPEND } else { RWF_NOAPPEND };
                rustix::io::pwritev2(fd, &[IoSlice::new(data)], offset, flags)
            }
            Kind::Regular if offset == OWN_POSITION => rustix::io::write(fd, data),
            Kind::Regular => rustix::io::pwrite(fd, data, offset),
            Kind::Socket => rustix::net::send(fd, data, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            Kind::Stream => {
                match rustix::io::pwritev2(fd, &[IoSlice::new(data)], OWN_POSITION, ReadWriteFlags::NOWAIT) {
                    Err(HostErrno::OPNOTSUPP | HostErrno::SPIPE | HostErrno::INVAL) => {
                        if !readiness(fd.as_fd()).intersects(Ready::OUT | Ready::HUP | Ready::ERR) {
                            return Err(HostErrno::AGAIN);
                        }
                        rustix::io::write(fd, data.get(..READY_MEANS).unwrap_or(data))
                    }
                    other => other,
                }
            }
        }
    }
}

/// Access mode and status flags that a description inside has, of the flags of one outside.
pub(super) fn kept(flags: i32) -> i32 {
    flags & (o::O_ACCMODE | o::O_APPEND | o::O_NONBLOCK)
}

/// The inode of an inherited regular file or directory.
struct HostInode(Arc<Host>);

impl Inode for HostInode {
    fn kind(&self) -> u32 {
        rustix::fs::fstat(&*self.0.fd).map_or(S_IFREG, |stat| stat.st_mode & S_IFMT)
    }

    fn attr(&self) -> SysResult<Attr> {
        host_attr(&*self.0.fd)
    }

    fn set_attr(&self, _: &SetAttr) -> SysResult<()> {
        Err(Fail::gap(Errno::EPERM, "attributes of an inherited file"))
    }

    fn open(self: Arc<Self>, _: &Arc<Task>, flags: i32) -> SysResult<Arc<dyn FileOps>> {
        let access = flags & o::O_ACCMODE;
        let has = kept(rustix::fs::fcntl_getfl(&*self.0.fd)?.bits().cast_signed()) & o::O_ACCMODE;
        if has != o::O_RDWR && has != access {
            return Err(Fail::gap(Errno::EACCES, "opening an inherited file with another access mode"));
        }
        Ok(Arc::new(HostStream { host: self.0.clone(), shared: false }))
    }

    fn truncate(&self, size: u64) -> SysResult<()> {
        Ok(rustix::fs::ftruncate(&self.0.fd, size)?)
    }

    fn statfs(&self) -> SysResult<StatFs> {
        let stat = rustix::fs::fstatfs(&*self.0.fd)?;
        Ok(StatFs {
            kind: stat.f_type,
            bsize: stat.f_bsize.unsigned_abs(),
            blocks: stat.f_blocks,
            bfree: stat.f_bfree,
            bavail: stat.f_bavail,
            files: stat.f_files,
            ffree: stat.f_ffree,
            namelen: stat.f_namelen.unsigned_abs(),
            flags: stat.f_flags,
        })
    }
}

impl FileOps for HostStream {
    fn takes_direct(&self) -> bool {
        self.host.kind != Kind::Socket
    }

    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        cx.wait_on(&self.host.queue, Ready::IN | Ready::RDHUP);
        match self.read_now(buf, offset) {
            Err(HostErrno::AGAIN) if !file.nonblocking() => cx.block(Restart::Sys),
            other => Ok(other?),
        }
    }

    fn write(&self, cx: &mut Cx, file: &File, data: &[u8], offset: u64) -> SysResult<Written> {
        cx.wait_on(&self.host.queue, Ready::OUT);
        let append = cx.appends(file);
        match self.write_now(data, offset, append) {
            Err(HostErrno::AGAIN) if !file.nonblocking() => cx.block(Restart::Sys),
            Err(HostErrno::PIPE) => {
                cx.sigpipe();
                Err(Errno::EPIPE.into())
            }
            Err(error) => Err(error.into()),
            Ok(count) => {
                let end = match self.host.kind {
                    Kind::Regular if append && offset != OWN_POSITION => self.size()?,
                    _ => offset.saturating_add(count as u64),
                };
                Ok(Written { count, end })
            }
        }
    }

    fn goes_on_writing(&self) -> bool {
        self.host.kind != Kind::Regular
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        if self.host.kind != Kind::Regular {
            return Err(Errno::EINVAL.into());
        }
        Ok(rustix::io::pread(&*self.host.fd, buf, offset)?)
    }

    fn seekable(&self) -> bool {
        self.host.kind == Kind::Regular
    }

    fn seek_own(&self, offset: i64, whence: i32) -> Option<SysResult<u64>> {
        if !self.shared {
            return None;
        }
        let from_start = || {
            u64::try_from(offset).map_err(|_| if whence == SEEK_SET { Errno::EINVAL } else { Errno::ENXIO })
        };
        let to = match whence {
            SEEK_CUR => Ok(SeekFrom::Current(offset)),
            SEEK_END => Ok(SeekFrom::End(offset)),
            SEEK_DATA => from_start().map(SeekFrom::Data),
            SEEK_HOLE => from_start().map(SeekFrom::Hole),
            _ => from_start().map(SeekFrom::Start),
        };
        Some(to.map_err(Fail::from).and_then(|to| Ok(rustix::fs::seek(&*self.host.fd, to)?)))
    }

    fn seek_special(&self, _: &File, offset: i64, whence: i32) -> SysResult<u64> {
        super::hostfile::seek_data_hole(self.host.fd.as_fd(), offset, whence)
    }

    fn size(&self) -> SysResult<u64> {
        if self.host.kind != Kind::Regular {
            return Err(Errno::ESPIPE.into());
        }
        Ok(host_attr(&*self.host.fd)?.size)
    }

    fn poll(&self, _file: &File) -> Ready {
        match self.host.kind {
            Kind::Regular => Ready::IN | Ready::OUT | Ready::RDNORM | Ready::WRNORM,
            Kind::Stream | Kind::Socket => readiness(self.host.fd.as_fd()),
        }
    }

    fn queue(&self) -> Option<&WaitQueue> {
        (self.host.kind != Kind::Regular).then_some(&*self.host.queue)
    }

    fn attr(&self) -> SysResult<Attr> {
        host_attr(&*self.host.fd)
    }

    fn ioctl(&self, cx: &mut Cx, _file: &File, request: u32, arg: u64) -> SysResult {
        if request != FIONREAD {
            return Err(Errno::ENOTTY.into());
        }
        let bytes = platform::hostio::ioctl_get(self.host.fd.as_fd(), request)
            .map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(25)))?;
        cx.copy_out(arg, &bytes)?;
        Ok(0)
    }

    fn mmap(&self, file: &File, _prot: i32, _flags: i32) -> SysResult<Mapping> {
        // The descriptor carries the rights it was opened with, which are those of whoever passed it on.
        if self.host.kind == Kind::Regular && file.readable() {
            Ok(Mapping::Host(self.host.fd.clone()))
        } else {
            Err(Errno::ENODEV.into())
        }
    }

    fn fsync(&self, data_only: bool) -> SysResult<()> {
        match self.host.kind {
            Kind::Regular if data_only => Ok(rustix::fs::fdatasync(&*self.host.fd)?),
            Kind::Regular => Ok(rustix::fs::fsync(&*self.host.fd)?),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn truncate(&self, size: u64) -> SysResult<()> {
        match self.host.kind {
            Kind::Regular => Ok(rustix::fs::ftruncate(&*self.host.fd, size)?),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn fallocate(&self, mode: i32, offset: u64, len: u64) -> SysResult<()> {
        match self.host.kind {
            Kind::Regular => {
                let flags = rustix::fs::FallocateFlags::from_bits_retain(mode.cast_unsigned());
                Ok(rustix::fs::fallocate(&*self.host.fd, flags, offset, len)?)
            }
            Kind::Stream => Err(Errno::ESPIPE.into()),
            Kind::Socket => Err(Errno::ENODEV.into()),
        }
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        (self.host.kind == Kind::Regular).then(|| Arc::new(HostInode(self.host.clone())) as Arc<dyn Inode>)
    }

    fn host_fd(&self) -> Option<BorrowedFd<'_>> {
        (self.host.kind == Kind::Regular).then(|| self.host.fd.as_fd())
    }

    fn describe(&self) -> String {
        if let Some(name) = &self.host.name {
            return String::from_utf8_lossy(name).into_owned();
        }
        let inode = host_attr(&*self.host.fd).map_or(0, |attr| attr.ino);
        match self.host.kind {
            Kind::Socket => format!("socket:[{inode}]"),
            Kind::Stream => format!("pipe:[{inode}]"),
            Kind::Regular => format!("/host:[{inode}]"),
        }
    }
}
