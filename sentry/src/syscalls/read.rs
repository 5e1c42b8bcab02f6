//! read(2), pread(2), readv(2), preadv(2), preadv2(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::io::{self, Way};
use crate::vfs::lend;
use syscall_table::abi::readv::Iovec;
use syscall_table::errno::Errno;

pub fn read(cx: &mut Cx, fd: Fd, buf: OutBuf, count: usize) -> SysResult {
    let file = cx.task.files().get(fd.raw())?;
    io::read(cx, &file, &[(buf.addr(), count)], None)
}

pub fn pread64(cx: &mut Cx, fd: Fd, buf: OutBuf, count: usize, offset: i64) -> SysResult {
    let at = u64::try_from(offset).map_err(|_| Errno::EINVAL)?;
    let file = cx.task.files().get(fd.raw())?;
    lend::consider(cx, fd.raw(), &file)?;
    io::read(cx, &file, &[(buf.addr(), count)], Some(at))
}

pub fn readv(cx: &mut Cx, fd: Fd, iov: InSlice<Iovec>, iovcnt: usize) -> SysResult {
    io::vector(cx, Way::Read, fd, (iov, iovcnt), None, 0)
}

/// The offset is whole in its low half: the high one is for 32-bit machines.
pub fn preadv(cx: &mut Cx, fd: Fd, iov: InSlice<Iovec>, iovcnt: usize, pos_l: u64, _: u64) -> SysResult {
    io::vector(cx, Way::Read, fd, (iov, iovcnt), Some(pos_l.cast_signed()), 0)
}

pub fn preadv2(
    cx: &mut Cx,
    fd: Fd,
    iov: InSlice<Iovec>,
    iovcnt: usize,
    pos_l: u64,
    _: u64,
    flags: RwFlags,
) -> SysResult {
    let at = Some(pos_l.cast_signed()).filter(|at| *at != -1);
    io::vector(cx, Way::Read, fd, (iov, iovcnt), at, flags.bits())
}
