//! eventfd(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::ipc::{eventfd::Eventfd, install};
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// eventfd(2), the old call without flags.
pub fn eventfd(cx: &mut Cx, initval: u32) -> SysResult {
    eventfd2(cx, initval, EventfdFlags(0))
}

/// eventfd2(2)
pub fn eventfd2(cx: &mut Cx, initval: u32, flags: EventfdFlags) -> SysResult {
    if flags.unknown(EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let ops = Arc::new(Eventfd::new(u64::from(initval), flags.has(EFD_SEMAPHORE)));
    install(cx, ops, O_RDWR | flags.bits() & (EFD_CLOEXEC | EFD_NONBLOCK)).map(|fd| fd as u64)
}
