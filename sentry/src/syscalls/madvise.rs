//! madvise(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::mm::{PAGE, round_up};
use platform::CallError;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// madvise(2)
pub fn madvise(cx: &mut Cx, addr: Addr, length: usize, advice: Advice) -> SysResult {
    let advice = advice.bits();
    let known = u32::try_from(advice).is_ok_and(platform::guestfilter::is_advice);
    if !known {
        return match advice {
            MADV_HWPOISON | MADV_SOFT_OFFLINE => Err(Errno::EPERM.into()),
            MADV_REMOVE | MADV_MERGEABLE | MADV_UNMERGEABLE | MADV_GUARD_INSTALL | MADV_GUARD_REMOVE => {
                Err(Fail::gap(Errno::EINVAL, format!("advice {advice}")))
            }
            _ => Err(Errno::EINVAL.into()),
        };
    }
    let start = addr.addr();
    let len = round_up(length as u64).ok_or(Errno::EINVAL)?;
    if start & (PAGE - 1) != 0 {
        return Err(Errno::EINVAL.into());
    }
    if len == 0 {
        return Ok(0);
    }
    let end = start.checked_add(len).ok_or(Errno::EINVAL)?;
    let mm = cx.task.mm();
    let port = cx.memory_port(false)?;
    let mut layout = mm.layout.lock();
    // Linux advises every mapped part and answers ENOMEM if there was a hole.
    let mut hole = false;
    let mut at = start;
    while at < end {
        let upto = layout.run_end(at, end);
        if upto == at {
            hole = true;
            at = layout.iter().map(|(s, _)| s).find(|s| *s > at).unwrap_or(end).min(end);
            continue;
        }
        match port.madvise(at, upto - at, advice) {
            Ok(()) => {}
            Err(CallError::Errno(e)) => return Err(Errno::from_raw(e).into()),
            Err(CallError::Gone) => return Err(Fail::Exit),
        }
        match advice {
            MADV_DONTFORK => layout.change(at, upto, |a| a.dont_fork = true),
            MADV_DOFORK => layout.change(at, upto, |a| a.dont_fork = false),
            _ => {}
        }
        at = upto;
    }
    if hole { Err(Errno::ENOMEM.into()) } else { Ok(0) }
}
