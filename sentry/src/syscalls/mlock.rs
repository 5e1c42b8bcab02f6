//! mlock(2), mlock2(2), munlock(2), mlockall(2), munlockall(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::mm::Fills;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// mlock(2)
pub fn mlock(cx: &mut Cx, addr: Addr, len: usize) -> SysResult {
    lock(cx, addr, len, Fills::Now)
}

fn lock(cx: &mut Cx, addr: Addr, len: usize, fills: Fills) -> SysResult {
    let task = cx.task;
    task.mm().lock_range(task, Some(cx.port()?), addr.addr(), len as u64, Some(fills)).map(|()| 0)
}

/// mlock2(2)
pub fn mlock2(cx: &mut Cx, addr: Addr, len: usize, flags: MlockFlags) -> SysResult {
    if flags.unknown(MLOCK_ONFAULT) != 0 {
        return Err(Errno::EINVAL.into());
    }
    lock(cx, addr, len, if flags.has(MLOCK_ONFAULT) { Fills::OnFault } else { Fills::Now })
}

/// munlock(2)
pub fn munlock(cx: &mut Cx, addr: Addr, len: usize) -> SysResult {
    cx.task.mm().lock_range(cx.task, None, addr.addr(), len as u64, None).map(|()| 0)
}

/// mlockall(2)
pub fn mlockall(cx: &mut Cx, flags: MlockallFlags) -> SysResult {
    let bits = flags.bits();
    if bits & !(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0 || bits & (MCL_CURRENT | MCL_FUTURE) == 0 {
        return Err(Errno::EINVAL.into());
    }
    let fills = if bits & MCL_ONFAULT != 0 { Fills::OnFault } else { Fills::Now };
    let asked = |flag| (bits & flag != 0).then_some(fills);
    let task = cx.task;
    task.mm().lock_all(task, cx.port()?, asked(MCL_CURRENT), asked(MCL_FUTURE)).map(|()| 0)
}

/// munlockall(2)
pub fn munlockall(cx: &mut Cx) -> SysResult {
    cx.task.mm().unlock_all();
    Ok(0)
}
