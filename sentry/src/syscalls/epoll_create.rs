//! epoll_create(2), epoll_ctl(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::ipc::{epoll::Epoll, install};
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::FromZeros;

/// epoll_create(2)
pub fn epoll_create(cx: &mut Cx, size: i32) -> SysResult {
    if size <= 0 {
        return Err(Errno::EINVAL.into());
    }
    epoll_create1(cx, EpollFlags(0))
}

/// epoll_create1(2)
pub fn epoll_create1(cx: &mut Cx, flags: EpollFlags) -> SysResult {
    if flags.unknown(EPOLL_CLOEXEC) != 0 {
        return Err(Errno::EINVAL.into());
    }
    install(cx, Epoll::new(), O_RDWR | flags.bits()).map(|fd| fd as u64)
}

/// epoll_ctl(2)
pub fn epoll_ctl(cx: &mut Cx, epfd: Fd, op: EpollOp, fd: Fd, event: In<EpollEvent>) -> SysResult {
    let event: EpollEvent = match op.bits() {
        EPOLL_CTL_DEL => EpollEvent::new_zeroed(),
        _ => cx.read_value(event.addr())?,
    };
    let files = cx.task.files();
    let holder = files.get(epfd.raw())?;
    let file = files.get(fd.raw())?;
    if file.ops.queue().is_none() {
        return Err(Errno::EPERM.into());
    }
    let epoll = holder.downcast::<Epoll>().ok_or(Errno::EINVAL)?;
    match op.bits() {
        EPOLL_CTL_ADD => epoll.add(fd.raw(), &file, event)?,
        EPOLL_CTL_MOD => epoll.modify(fd.raw(), &file, event)?,
        EPOLL_CTL_DEL => epoll.delete(fd.raw(), &file)?,
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}
