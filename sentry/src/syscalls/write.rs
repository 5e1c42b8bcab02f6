//! write(2), pwrite(2), writev(2), pwritev(2), pwritev2(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::io;
use syscall_table::abi::readv::*;
use syscall_table::errno::Errno;

pub fn write(cx: &mut Cx, fd: Fd, buf: InBuf, count: usize) -> SysResult {
    let file = cx.task.files().get(fd.raw())?;
    io::write(cx, &file, &[(buf.addr(), count)], None)
}

pub fn pwrite64(cx: &mut Cx, fd: Fd, buf: InBuf, count: usize, offset: i64) -> SysResult {
    let at = u64::try_from(offset).map_err(|_| Errno::EINVAL)?;
    let file = cx.task.files().get(fd.raw())?;
    io::write(cx, &file, &[(buf.addr(), count)], Some(at))
}

pub fn writev(cx: &mut Cx, fd: Fd, iov: InSlice<Iovec>, iovcnt: usize) -> SysResult {
    let file = cx.task.files().get(fd.raw())?;
    let ranges = io::read_iovec(cx, iov.addr(), iovcnt)?;
    io::write(cx, &file, &ranges, None)
}

pub fn pwritev(
    cx: &mut Cx,
    fd: Fd,
    iov: InSlice<Iovec>,
    iovcnt: usize,
    pos_l: u64,
    _pos_h: u64,
) -> SysResult {
    let at = i64::try_from(pos_l).map_err(|_| Errno::EINVAL)?.unsigned_abs();
    let file = cx.task.files().get(fd.raw())?;
    let ranges = io::read_iovec(cx, iov.addr(), iovcnt)?;
    io::write(cx, &file, &ranges, Some(at))
}

pub fn pwritev2(
    cx: &mut Cx,
    fd: Fd,
    iov: InSlice<Iovec>,
    iovcnt: usize,
    pos_l: u64,
    pos_h: u64,
    flags: RwFlags,
) -> SysResult {
    if flags.unknown(RWF_HIPRI | RWF_NOWAIT | RWF_DSYNC | RWF_SYNC) != 0 {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if pos_l == u64::MAX { writev(cx, fd, iov, iovcnt) } else { pwritev(cx, fd, iov, iovcnt, pos_l, pos_h) }
}
