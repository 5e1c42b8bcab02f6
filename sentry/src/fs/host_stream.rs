//! Standard streams that the sandbox inherited: regular files, pipes, sockets, devices. Terminals: [`super::host_tty`].
//!
//! No call here may put a sentry thread to sleep, and the descriptions belong to others too, so O_NONBLOCK may not be
//! set on them. Pipes and sockets are asked not to wait for this one transfer (RWF_NOWAIT, MSG_DONTWAIT); where that is
//! not known, readiness is tested first and little enough is moved that a ready stream takes it.
//!
//! The position of a regular file is shared with whoever passed it on, so it is kept up to date on the host.

use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::reactor::Reactor;
use crate::signal::send;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps, Mapping, Written, o};
use crate::wait::{Ready, WaitQueue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, SeekFrom};
use rustix::io::{Errno as HostErrno, IoSlice, IoSliceMut, ReadWriteFlags};
use rustix::net::{RecvFlags, SendFlags};
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::ioctl::FIONREAD;
use syscall_table::errno::Errno;

/// Bytes that a stream which is ready for writing takes at once (PIPE_BUF).
const READY_MEANS: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Regular,
    Stream,
    Socket,
    /// /dev/null and the like: never waits.
    Device,
}

/// An inherited descriptor.
pub struct HostStream {
    fd: Arc<OwnedFd>,
    kind: Kind,
    /// Woken by the reactor.
    queue: Arc<WaitQueue>,
}

/// Attributes of a host descriptor.
pub(super) fn host_attr(fd: impl AsFd) -> SysResult<Attr> {
    let stat = rustix::fs::fstat(fd)?;
    let time = |sec: i64, nsec: u64| Duration::new(sec.max(0).unsigned_abs(), (nsec % 1_000_000_000) as u32);
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

/// The access mode and status flags that a host descriptor was opened with.
pub(crate) fn inherited_flags(fd: impl AsFd) -> i32 {
    let flags = rustix::fs::fcntl_getfl(fd).unwrap_or(rustix::fs::OFlags::RDWR);
    let flags = i32::try_from(flags.bits()).unwrap_or(o::O_RDWR);
    flags & (o::O_ACCMODE | o::O_APPEND | o::O_NONBLOCK)
}

impl HostStream {
    /// Over an inherited descriptor that is no terminal, with its place in the file.
    pub fn open(reactor: &Reactor, fd: OwnedFd) -> SysResult<Arc<File>> {
        let stat = rustix::fs::fstat(&fd)?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::Directory => Kind::Regular,
            FileType::Socket => Kind::Socket,
            FileType::CharacterDevice if rustix::fs::major(stat.st_rdev) == 1 => Kind::Device,
            _ => Kind::Stream,
        };
        let queue = Arc::new(WaitQueue::new());
        if matches!(kind, Kind::Stream | Kind::Socket) {
            // A stream that cannot be watched cannot make anybody wait either.
            let _ = reactor.watch(fd.as_fd(), queue.clone());
        }
        let flags = inherited_flags(&fd);
        let pos = if kind == Kind::Regular { rustix::fs::tell(&fd).unwrap_or(0) } else { 0 };
        let file = File::new(Arc::new(HostStream { fd: Arc::new(fd), kind, queue }), flags, None);
        *file.pos.lock() = pos;
        Ok(file)
    }

    fn read_now(&self, buf: &mut [u8], offset: u64) -> Result<usize, HostErrno> {
        let fd = &*self.fd;
        match self.kind {
            Kind::Regular => {
                let count = rustix::io::pread(fd, &mut *buf, offset)?;
                let end = offset.saturating_add(count as u64);
                rustix::fs::seek(fd, SeekFrom::Start(end)).map(|_| count)
            }
            Kind::Device => rustix::io::read(fd, &mut *buf),
            Kind::Socket => rustix::net::recv(fd, &mut *buf, RecvFlags::DONTWAIT).map(|(count, _)| count),
            Kind::Stream => {
                let mut slices = [IoSliceMut::new(&mut *buf)];
                match rustix::io::preadv2(fd, &mut slices, u64::MAX, ReadWriteFlags::NOWAIT) {
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
        let fd = &*self.fd;
        match self.kind {
            Kind::Regular => {
                if append {
                    return rustix::io::write(fd, data);
                }
                let count = rustix::io::pwrite(fd, data, offset)?;
                let end = offset.saturating_add(count as u64);
                rustix::fs::seek(fd, SeekFrom::Start(end)).map(|_| count)
            }
            Kind::Device => rustix::io::write(fd, data),
            Kind::Socket => rustix::net::send(fd, data, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            Kind::Stream => {
                match rustix::io::pwritev2(fd, &[IoSlice::new(data)], u64::MAX, ReadWriteFlags::NOWAIT) {
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

impl FileOps for HostStream {
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        cx.wait_on(&self.queue, Ready::IN | Ready::RDHUP);
        match self.read_now(buf, offset) {
            Err(HostErrno::AGAIN) if !file.nonblocking() => cx.block(Restart::Sys),
            other => Ok(other?),
        }
    }

    fn write(&self, cx: &mut Cx, file: &File, data: &[u8], offset: u64) -> SysResult<Written> {
        cx.wait_on(&self.queue, Ready::OUT);
        let append = file.flags() & o::O_APPEND != 0;
        match self.write_now(data, offset, append) {
            Err(HostErrno::AGAIN) if !file.nonblocking() => cx.block(Restart::Sys),
            Err(HostErrno::PIPE) => {
                send::sigpipe(cx.task);
                Err(Errno::EPIPE.into())
            }
            Err(error) => Err(error.into()),
            Ok(count) => {
                let end = if self.kind == Kind::Regular && append {
                    rustix::fs::tell(&*self.fd).unwrap_or(offset)
                } else {
                    offset.saturating_add(count as u64)
                };
                Ok(Written { count, end })
            }
        }
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        if self.kind != Kind::Regular {
            return Err(Errno::EINVAL.into());
        }
        Ok(rustix::io::pread(&*self.fd, buf, offset)?)
    }

    fn seekable(&self) -> bool {
        self.kind == Kind::Regular
    }

    fn size(&self) -> SysResult<u64> {
        if self.kind != Kind::Regular {
            return Err(Errno::ESPIPE.into());
        }
        Ok(host_attr(&*self.fd)?.size)
    }

    fn poll(&self, _file: &File) -> Ready {
        match self.kind {
            Kind::Regular | Kind::Device => Ready::IN | Ready::OUT | Ready::RDNORM | Ready::WRNORM,
            Kind::Stream | Kind::Socket => readiness(self.fd.as_fd()),
        }
    }

    fn queue(&self) -> Option<&WaitQueue> {
        (self.kind != Kind::Regular).then_some(&*self.queue)
    }

    fn attr(&self) -> SysResult<Attr> {
        host_attr(&*self.fd)
    }

    fn ioctl(&self, cx: &mut Cx, _file: &File, request: u32, arg: u64) -> SysResult {
        if request != FIONREAD {
            return Err(Errno::ENOTTY.into());
        }
        let bytes = platform::hostio::ioctl_get(self.fd.as_fd(), request)
            .map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(25)))?;
        cx.copy_out(arg, &bytes)?;
        Ok(0)
    }

    fn mmap(&self, file: &File, _prot: i32, _flags: i32) -> SysResult<Mapping> {
        // The descriptor carries the rights it was opened with, which are those of whoever passed it on.
        if self.kind == Kind::Regular && file.readable() {
            Ok(Mapping::Host(self.fd.clone()))
        } else {
            Err(Errno::ENODEV.into())
        }
    }

    fn fsync(&self, data_only: bool) -> SysResult<()> {
        match self.kind {
            Kind::Regular if data_only => Ok(rustix::fs::fdatasync(&*self.fd)?),
            Kind::Regular => Ok(rustix::fs::fsync(&*self.fd)?),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn truncate(&self, size: u64) -> SysResult<()> {
        match self.kind {
            Kind::Regular => Ok(rustix::fs::ftruncate(&*self.fd, size)?),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn host_fd(&self) -> Option<BorrowedFd<'_>> {
        (self.kind == Kind::Regular).then(|| self.fd.as_fd())
    }

    fn describe(&self) -> String {
        let inode = host_attr(&*self.fd).map_or(0, |attr| attr.ino);
        match self.kind {
            Kind::Socket => format!("socket:[{inode}]"),
            Kind::Stream => format!("pipe:[{inode}]"),
            Kind::Device => "/dev/null".to_owned(),
            Kind::Regular => format!("/host:[{inode}]"),
        }
    }
}
