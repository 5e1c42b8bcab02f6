//! signalfd(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::ipc::{install, signalfd::Signalfd};
use crate::signal::UNMASKABLE;
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// signalfd(2), the old call without flags.
pub fn signalfd(cx: &mut Cx, fd: Fd, mask: In<Sigset>, sizemask: usize) -> SysResult {
    signalfd4(cx, fd, mask, sizemask, SignalfdFlags(0))
}

/// signalfd4(2)
pub fn signalfd4(cx: &mut Cx, fd: Fd, mask: In<Sigset>, sizemask: usize, flags: SignalfdFlags) -> SysResult {
    if sizemask != size_of::<Sigset>() || flags.unknown(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mask: Sigset = cx.read_value(mask.addr())?;
    let mask = mask.sig & !UNMASKABLE;
    if fd.raw() == -1 {
        let ops = Arc::new(Signalfd::new(cx.task.process.clone(), mask));
        return install(cx, ops, O_RDWR | flags.bits()).map(|fd| fd as u64);
    }
    let file = cx.task.files().get(fd.raw())?;
    file.downcast::<Signalfd>().ok_or(Errno::EINVAL)?.set_mask(mask);
    Ok(fd.raw() as u64)
}
