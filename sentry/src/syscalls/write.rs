//! write(2), pwrite(2), writev(2), pwritev(2), pwritev2(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::io::{self, Way};
use syscall_table::abi::readv::Iovec;
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
    io::vector(cx, Way::Write, fd, (iov, iovcnt), None, 0)
}

/// The offset is whole in its low half: the high one is for 32-bit machines.
pub fn pwritev(cx: &mut Cx, fd: Fd, iov: InSlice<Iovec>, iovcnt: usize, pos_l: u64, _: u64) -> SysResult {
    io::vector(cx, Way::Write, fd, (iov, iovcnt), Some(pos_l.cast_signed()), 0)
}

pub fn pwritev2(
    cx: &mut Cx,
    fd: Fd,
    iov: InSlice<Iovec>,
    iovcnt: usize,
    pos_l: u64,
    _: u64,
    flags: RwFlags,
) -> SysResult {
    let at = Some(pos_l.cast_signed()).filter(|at| *at != -1);
    io::vector(cx, Way::Write, fd, (iov, iovcnt), at, flags.bits())
}
