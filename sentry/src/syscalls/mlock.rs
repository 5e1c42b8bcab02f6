//! mlock(2), mlock2(2), munlock(2), mlockall(2), munlockall(2)
//!
//! Locks are recorded; the host's pages are not locked. The guest can see no difference but in time.

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::mm::{PAGE, round_up};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

fn set(cx: &mut Cx, addr: u64, len: usize, locked: bool) -> SysResult {
    let start = addr & !(PAGE - 1);
    let len = (len as u64).checked_add(addr - start).and_then(round_up).ok_or(Errno::EINVAL)?;
    let end = start.checked_add(len).ok_or(Errno::EINVAL)?;
    let mm = cx.task.mm();
    let mut layout = mm.layout.lock();
    let upto = layout.run_end(start, end);
    if upto > start {
        layout.change(start, upto, |area| area.locked = locked);
    }
    if upto < end { Err(Errno::ENOMEM.into()) } else { Ok(0) }
}

/// mlock(2)
pub fn mlock(cx: &mut Cx, addr: Addr, len: usize) -> SysResult {
    set(cx, addr.addr(), len, true)
}

/// mlock2(2)
pub fn mlock2(cx: &mut Cx, addr: Addr, len: usize, flags: MlockFlags) -> SysResult {
    if flags.unknown(MLOCK_ONFAULT) != 0 {
        return Err(Errno::EINVAL.into());
    }
    set(cx, addr.addr(), len, true)
}

/// munlock(2)
pub fn munlock(cx: &mut Cx, addr: Addr, len: usize) -> SysResult {
    set(cx, addr.addr(), len, false)
}

/// mlockall(2)
pub fn mlockall(cx: &mut Cx, flags: MlockallFlags) -> SysResult {
    let bits = flags.bits();
    if bits & !(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0 || bits & (MCL_CURRENT | MCL_FUTURE) == 0 {
        return Err(Errno::EINVAL.into());
    }
    cx.task.mm().lock_all(bits & MCL_CURRENT != 0, bits & MCL_FUTURE != 0);
    Ok(0)
}

/// munlockall(2)
pub fn munlockall(cx: &mut Cx) -> SysResult {
    cx.task.mm().unlock_all();
    Ok(0)
}
