//! iopl(2), ioperm(2), which the guest has no right to; vhangup(2).

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::cap;
use syscall_table::errno::Errno;

/// iopl(2): level 0 is what a process has.
pub fn iopl(_cx: &mut Cx, level: u32) -> SysResult {
    match level {
        0 => Ok(0),
        1..=3 => Err(Errno::EPERM.into()),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// ioperm(2)
pub fn ioperm(_cx: &mut Cx, from: u64, num: u64, turn_on: i32) -> SysResult {
    match from.checked_add(num) {
        Some(end) if end <= 65536 && num > 0 && turn_on != 0 => Err(Errno::EPERM.into()),
        Some(end) if end <= 65536 && num > 0 => Ok(0),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// vhangup(2)
pub fn vhangup(cx: &mut Cx) -> SysResult {
    if !cx.task.creds().capable(cap::SYS_TTY_CONFIG) {
        return Err(Errno::EPERM.into());
    }
    crate::tty::request::hang_up_own(cx)
}
