//! Hardware breakpoints of a tracee, as its tracer sets them in the debug registers (PTRACE_POKEUSER).
//!
//! The processor's own are the host's. As long as DR7 enables some, the task goes one instruction at a time, and what each
//! one wrote is found by comparing: slow, as it would be in the debugger, but it works wherever the debugger asks for it.
//! What is read leaves no trace, so breakpoints on that cannot be had.

use super::Tracer;
use crate::fail::{Fail, SysResult};
use crate::task::Task;
use platform::{Exception, Port};
use std::sync::atomic::Ordering::SeqCst;
use syscall_table::abi::sigaction::SIGTRAP;
use syscall_table::errno::Errno;

/// si_code of SIGTRAP: a step; a hardware breakpoint.
const TRAP_TRACE: i32 = 2;
const TRAP_HWBKPT: i32 = 4;
/// In DR6: a step.
const DR_STEP: u64 = 1 << 14;
/// Breakpoints.
const COUNT: usize = 4;
/// The kind of a breakpoint in DR7: execution, writing.
const EXECUTE: u64 = 0;
const WRITE: u64 = 1;
/// Most bytes that one is for.
const MOST: usize = 8;

/// Kind and length of breakpoint `index`, if DR7 enables it.
fn enabled(control: u64, index: usize) -> Option<(u64, u64)> {
    let on = control >> (index * 2) & 3 != 0;
    let nibble = control >> (16 + index * 4);
    let length = [1, 2, 8, 4].get((nibble >> 2 & 3) as usize).copied().unwrap_or(1);
    on.then_some((nibble & 3, length))
}

/// Whether DR7 may become this.
///
/// # Errors
/// EINVAL for what no processor has; a gap for breakpoints on reading.
pub(super) fn check(debug: &[u64; 8], control: u64) -> SysResult<()> {
    for (index, addr) in debug.iter().enumerate().take(COUNT) {
        match enabled(control, index) {
            Some((EXECUTE, length)) if length != 1 => return Err(Errno::EINVAL.into()),
            Some((EXECUTE | WRITE, length)) if addr & (length - 1) == 0 => {}
            Some((EXECUTE | WRITE, _)) => return Err(Errno::EINVAL.into()),
            // As on a processor whose breakpoints are all in use.
            Some(_) => return Err(Fail::gap(Errno::ENOSPC, "hardware breakpoint on reads")),
            None => {}
        }
    }
    Ok(())
}

/// What the bytes under the breakpoints were before the instruction.
pub(super) type Values = [[u8; MOST]; COUNT];

fn read(task: &Task, by: &Tracer) -> Values {
    let mut values = Values::default();
    let space = task.space();
    for (index, (value, addr)) in values.iter_mut().zip(by.debug).enumerate() {
        if let Some((WRITE, length)) = enabled(by.debug[7], index) {
            // What is not mapped does not change.
            let _ = space.read(addr, value.get_mut(..length as usize).unwrap_or_default());
        }
    }
    values
}

/// Before guest code goes on: whether it is to be watched instruction by instruction.
pub(super) fn begin(task: &Task, by: &mut Tracer) -> bool {
    if by.debug[7] & 0xff == 0 {
        return false;
    }
    by.values = read(task, by);
    true
}

/// What an exception of a task with breakpoints is.
pub(crate) enum Seen {
    /// None of this.
    Other,
    /// Nothing that the tracer wants to see: the task goes on.
    Nothing,
    /// A breakpoint, where the registers are: SIGTRAP with this si_code.
    Hit(i32, u64),
}

/// Looks at an exception.
pub(crate) fn look(task: &Task, port: &mut dyn Port, exception: &Exception) -> Seen {
    if exception.signo != SIGTRAP || exception.code != TRAP_TRACE || !task.tracing.watching.load(SeqCst) {
        return Seen::Other;
    }
    let Ok(regs) = port.regs() else { return Seen::Other };
    let mut state = task.tracing.lock();
    let Some(by) = &mut state.by else { return Seen::Other };
    let now = read(task, by);
    let mut hits = 0;
    for (index, now) in now.iter().enumerate() {
        let hit = match enabled(by.debug[7], index) {
            Some((EXECUTE, _)) => by.debug[index] == regs.rip,
            Some((WRITE, _)) => by.values[index] != *now,
            _ => false,
        };
        hits |= u64::from(hit) << index;
    }
    by.debug[6] |= hits | if by.step { DR_STEP } else { 0 };
    match (hits, by.step) {
        (0, false) => Seen::Nothing,
        (0, true) => Seen::Other,
        (_, true) => Seen::Hit(TRAP_TRACE, regs.rip),
        (_, false) => Seen::Hit(TRAP_HWBKPT, regs.rip),
    }
}
