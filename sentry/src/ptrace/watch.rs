//! Hardware breakpoints of a tracee, as its tracer sets them in the debug registers (PTRACE_POKEUSER).
//!
//! The processor's own are the host's. As long as DR7 enables some, the task goes one instruction at a time. Each is decoded
//! before it runs, which tells what it reads and writes; where that cannot be told, what was there is compared: slow,
//! as it would be in the debugger, but it works wherever the debugger asks for it. PTRACE_SINGLEBLOCK is made the same way.

use super::Tracer;
use crate::fail::SysResult;
use crate::task::Task;
use platform::decode::{self, Instruction, LONGEST, Touch};
use platform::{Exception, Port, Space};
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
/// The kind of a breakpoint in DR7: execution, writing, reading and writing.
const EXECUTE: u64 = 0;
const WRITE: u64 = 1;
const ACCESS: u64 = 3;
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
/// EINVAL for what Linux sets up on no processor.
pub(super) fn check(debug: &[u64; 8], control: u64) -> SysResult<()> {
    for (index, addr) in debug.iter().enumerate().take(COUNT) {
        match enabled(control, index) {
            Some((EXECUTE, length)) if length != 1 => return Err(Errno::EINVAL.into()),
            Some((EXECUTE | WRITE | ACCESS, length)) if addr & (length - 1) == 0 => {}
            Some(_) => return Err(Errno::EINVAL.into()),
            None => {}
        }
    }
    Ok(())
}

/// What was known before the instruction.
#[derive(Default)]
pub(crate) struct Before {
    /// The bytes under the breakpoints.
    values: [[u8; MOST]; COUNT],
    /// What it is.
    instruction: Option<Instruction>,
}

fn read(space: &dyn Space, by: &Tracer) -> [[u8; MOST]; COUNT] {
    let mut values = <[[u8; MOST]; COUNT]>::default();
    for (index, (value, addr)) in values.iter_mut().zip(by.debug).enumerate() {
        if let Some((WRITE | ACCESS, length)) = enabled(by.debug[7], index) {
            // What is not mapped does not change.
            let _ = space.read(addr, value.get_mut(..length as usize).unwrap_or_default());
        }
    }
    values
}

/// Before guest code goes on: whether it is to be watched instruction by instruction.
pub(super) fn begin(space: &dyn Space, port: &mut dyn Port, by: &mut Tracer) -> bool {
    if by.debug[7] & 0xff == 0 && !by.block {
        return false;
    }
    let needed =
        by.block || (0..COUNT).any(|index| matches!(enabled(by.debug[7], index), Some((WRITE | ACCESS, _))));
    let instruction = port.regs().ok().filter(|_| needed).and_then(|regs| {
        let mut code = [0; LONGEST];
        // It may end where the memory does.
        let got = match space.read_code(regs.rip, &mut code) {
            Ok(()) => LONGEST,
            Err(fault) => fault.done.min(LONGEST),
        };
        decode::instruction(code.get(..got)?, &regs)
    });
    by.before = Before { values: read(space, by), instruction };
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
    let space = task.space();
    let mut state = task.tracing.lock();
    let Some(by) = &mut state.by else { return Seen::Other };
    let now = read(&*space, by);
    let before = std::mem::take(&mut by.before);
    let insn = before.instruction.unwrap_or(Instruction { blind: true, ..Instruction::default() });
    let touched = |at: u64, length: u64, reads: bool| {
        let end = at.saturating_add(length);
        let meets = |touch: &&Touch| touch.addr < end && at < touch.addr.saturating_add(touch.len);
        insn.touches.iter().filter(meets).any(|touch| touch.writes || reads)
    };
    let mut hits = 0;
    for (index, (now, (then, at))) in now.iter().zip(before.values.iter().zip(by.debug)).enumerate() {
        let hit = match enabled(by.debug[7], index) {
            Some((EXECUTE, _)) => at == regs.rip,
            Some((kind @ (WRITE | ACCESS), length)) => {
                insn.blind && then != now || touched(at, length, kind == ACCESS)
            }
            _ => false,
        };
        hits |= u64::from(hit) << index;
    }
    let step = by.step && !(by.block && !insn.jumps && regs.rip == insn.next);
    by.debug[6] |= hits | if step { DR_STEP } else { 0 };
    match (hits, step) {
        (0, false) => Seen::Nothing,
        (0, true) => Seen::Other,
        (_, true) => Seen::Hit(TRAP_TRACE, regs.rip),
        (_, false) => Seen::Hit(TRAP_HWBKPT, regs.rip),
    }
}
