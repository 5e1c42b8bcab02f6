//! sigaltstack(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::signal::NO_STACK;
use crate::signal::frame::on_stack;
use syscall_table::abi::sigaction::*;
use syscall_table::errno::Errno;

pub fn sigaltstack(cx: &mut Cx, ss: In<Stack>, old_ss: Out<Stack>) -> SysResult {
    let sp = cx.port()?.regs()?.rsp;
    let old = cx.task.altstack();
    let inside = on_stack(&old, sp);
    if !ss.is_null() {
        let new: Stack = cx.read_value(ss.addr())?;
        if inside {
            return Err(Errno::EPERM.into());
        }
        let stack = match new.ss_flags & !SS_AUTODISARM {
            SS_DISABLE => NO_STACK,
            0 | SS_ONSTACK if new.ss_size < MINSIGSTKSZ => return Err(Errno::ENOMEM.into()),
            0 | SS_ONSTACK => Stack { ss_flags: new.ss_flags & SS_AUTODISARM, __pad: 0, ..new },
            _ => return Err(Errno::EINVAL.into()),
        };
        cx.task.set_altstack(stack);
    }
    if !old_ss.is_null() {
        let flags = if inside { SS_ONSTACK } else { 0 };
        cx.write_value(old_ss.addr(), &Stack { ss_flags: old.ss_flags | flags, ..old })?;
    }
    Ok(0)
}
