//! mlock(2), mlock2(2), munlock(2), mlockall(2), munlockall(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// mlock(2)
pub fn mlock(cx: &mut Cx, addr: Addr, len: usize) -> SysResult {
    cx.task.mm().lock_range(cx.task, addr.addr(), len as u64, true).map(|()| 0)
}

/// mlock2(2)
pub fn mlock2(cx: &mut Cx, addr: Addr, len: usize, flags: MlockFlags) -> SysResult {
    if flags.unknown(MLOCK_ONFAULT) != 0 {
        return Err(Errno::EINVAL.into());
    }
    mlock(cx, addr, len)
}

/// munlock(2)
pub fn munlock(cx: &mut Cx, addr: Addr, len: usize) -> SysResult {
    cx.task.mm().lock_range(cx.task, addr.addr(), len as u64, false).map(|()| 0)
}

/// mlockall(2)
pub fn mlockall(cx: &mut Cx, flags: MlockallFlags) -> SysResult {
    let bits = flags.bits();
    if bits & !(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0 || bits & (MCL_CURRENT | MCL_FUTURE) == 0 {
        return Err(Errno::EINVAL.into());
    }
    cx.task.mm().lock_all(cx.task, bits & MCL_CURRENT != 0, bits & MCL_FUTURE != 0).map(|()| 0)
}

/// munlockall(2)
pub fn munlockall(cx: &mut Cx) -> SysResult {
    cx.task.mm().unlock_all();
    Ok(0)
}
