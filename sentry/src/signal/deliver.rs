//! Delivery on the way back to guest code.

use super::{CORE, IGNORED, STOPPING, bit, fault, frame, mask, send};
use crate::fail::Restart;
use crate::ptrace::stop;
use crate::run::{Call, Ended, RestartBlock};
use crate::task::{Task, coredump, exit};
use platform::{Port, Regs};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::sigaction::*;
use syscall_table::abi::wait::WaitStatus;
use syscall_table::abi::{PTRACE_EVENT_EXIT, PTRACE_O_TRACEEXIT};
use syscall_table::errno::Errno;

/// What became of a task after its signals were looked at.
pub(crate) enum Outcome {
    /// Registers are set; go on.
    Resume,
    /// The task ended.
    Exit,
    /// Stopped by job control.
    Stopped,
}

/// Whether something must be done before guest code goes on: a deliverable signal or a stop. It also ends waiting.
pub(crate) fn pending(task: &Task) -> bool {
    let stops = if task.tracing.is_traced() {
        // Its tracer has seen the group's stop, or will: then there is a trap.
        task.tracing.trap.load(Ordering::SeqCst)
    } else {
        task.process.stopped.load(Ordering::SeqCst) != 0
    };
    stops || task.attention.load(Ordering::SeqCst)
}

/// Whether a pending signal is going to end the process without a core file: it ends waiting that no other signal ends
/// (TASK_KILLABLE).
pub(crate) fn fatal(task: &Task) -> bool {
    if !task.attention.load(Ordering::SeqCst) {
        return false;
    }
    let ready = mask::pending(task) & !mask::get(task) & !(IGNORED | STOPPING | CORE);
    let sighand = task.process.sighand();
    (1..=SIGRTMAX).any(|signal| ready & bit(signal) != 0 && sighand.get(signal).sa_handler == SIG_DFL)
}

const RESTART_SYSCALL: u64 = 219;
/// Length of the `syscall` instruction.
const SYSCALL_LEN: u64 = 2;

/// Delivers pending signals; sets rax from `ended` first (or restarts the call).
pub(crate) fn deliver(
    task: &Arc<Task>,
    call: &mut Call,
    port: &mut dyn Port,
    mut ended: Option<Ended>,
) -> Outcome {
    let Ok(mut regs) = port.regs() else { return gone(task) };
    if let Some(Ended::Value(value)) = ended {
        regs.rax = value as u64;
    }
    loop {
        if task.is_dead() {
            return Outcome::Exit;
        }
        let traced = task.tracing.is_traced();
        let mut shown = None;
        let trapped = if !traced {
            task.process.stopped.load(Ordering::SeqCst) != 0
        } else if task.tracing.trap.swap(false, Ordering::SeqCst) {
            match stop::trap(task, call, port, regs, ended) {
                Ok(stopped) => stopped,
                Err(_) => return gone(task),
            }
        } else if call.injected.is_none() {
            shown = next(task);
            match shown.map(|info| stop::signal(task, call, port, regs, ended, info)) {
                None => false,
                Some(Ok(stopped)) => stopped,
                Some(Err(_)) => return gone(task),
            }
        } else {
            false
        };
        if trapped {
            // A frame pushed before must not be lost; without one, the registers are as they were.
            if ended.is_none() && port.set_regs(&regs).is_err() {
                return gone(task);
            }
            call.ended = ended;
            return Outcome::Stopped;
        }
        let taken = call.injected.take().or(shown);
        let Some(info) = (if traced { taken } else { taken.or_else(|| next(task)) }) else {
            if traced && pending(task) {
                continue;
            }
            break;
        };
        let signal = info.si_signo;
        let action = task.process.sighand().get(signal);
        match action.sa_handler {
            SIG_IGN => {}
            SIG_DFL if bit(signal) & IGNORED != 0 => {}
            SIG_DFL if signal != SIGSTOP && task.process.unkillable.load(Ordering::Relaxed) => {}
            SIG_DFL if bit(signal) & STOPPING != 0 => {
                let orphaned = signal != SIGSTOP && {
                    let tree = task.kernel.tree.lock();
                    tree.nodes.get(&task.process.pid).is_some_and(|n| tree.is_orphaned(n.pgid))
                };
                if !orphaned {
                    send::stop(&task.kernel, &task.process, signal);
                }
            }
            SIG_DFL => {
                let begun = if bit(signal) & CORE != 0 {
                    coredump::begin(task, call, port, regs, info)
                } else {
                    Ok(coredump::Begun::Ends(false))
                };
                return match begun {
                    Ok(coredump::Begun::Ends(dumped)) => {
                        end(task, call, port, WaitStatus::signaled(signal, dumped))
                    }
                    Ok(coredump::Begun::Waits) => Outcome::Stopped,
                    Err(_) => gone(task),
                };
            }
            _ => {
                if let Some(Ended::Interrupted(restart)) = ended {
                    let again = restart == Restart::NoIntr
                        || restart == Restart::Sys && action.sa_flags & SA_RESTART != 0;
                    interrupted(&mut regs, again.then_some(u64::from(call.nr)));
                }
                ended = None;
                if action.sa_flags & SA_RESETHAND != 0 {
                    task.process.sighand().set(signal, Sigaction { sa_handler: SIG_DFL, ..action });
                }
                match frame::push(task, port, &mut regs, &info, &action) {
                    Ok(()) => {}
                    Err(frame::Failed::Memory) => fault::force_segv(task, signal),
                    Err(frame::Failed::Gone) => return gone(task),
                }
            }
        }
    }
    if let Some(Ended::Interrupted(restart)) = ended {
        let nr = match restart {
            Restart::Never | Restart::Uninterruptible => None,
            Restart::NoHand | Restart::Sys | Restart::NoIntr => Some(u64::from(call.nr)),
            Restart::Block => {
                call.restart_block = Some(RestartBlock {
                    nr: call.nr,
                    args: call.args,
                    deadline: call.deadline.take(),
                    state: std::mem::take(&mut call.state),
                });
                Some(RESTART_SYSCALL)
            }
        };
        interrupted(&mut regs, nr);
    }
    mask::restore(task);
    match port.set_regs(&regs) {
        Ok(()) => Outcome::Resume,
        Err(_) => gone(task),
    }
}

/// The end of the group, which a tracer may want to see first.
pub(crate) fn end(task: &Arc<Task>, call: &mut Call, port: &mut dyn Port, status: WaitStatus) -> Outcome {
    if show_end(task, call, port, status) {
        return Outcome::Stopped;
    }
    exit::group(&task.kernel, &task.process, status, Some(task));
    Outcome::Exit
}

/// A tracer that wants to see the end of the task does so first.
fn show_end(task: &Arc<Task>, call: &mut Call, port: &mut dyn Port, status: WaitStatus) -> bool {
    if !task.tracing.wants(PTRACE_O_TRACEEXIT) || task.process.is_exiting() {
        return false;
    }
    let message = u64::from(status.raw.unsigned_abs());
    let stopped = stop::event(task, call, port, (PTRACE_EVENT_EXIT, message), None);
    let stopped = stopped.unwrap_or(false);
    if stopped {
        call.ending = Some(status);
    }
    stopped
}

/// Makes the registers say EINTR, or run the system call instruction again with this number.
fn interrupted(regs: &mut Regs, again: Option<u64>) {
    match again {
        Some(nr) => {
            regs.rax = nr;
            regs.rip = regs.rip.wrapping_sub(SYSCALL_LEN);
        }
        None => regs.rax = i64::from(-Errno::EINTR.raw()) as u64,
    }
}

fn gone(task: &Arc<Task>) -> Outcome {
    exit::host_death(task, SIGKILL);
    Outcome::Exit
}

fn next(task: &Task) -> Option<Siginfo> {
    let mask = task.signals.lock().mask;
    let taken = mask::take(task, !mask);
    if taken.is_none() {
        // Another thread may have taken what this one was told of.
        mask::refresh(task);
    }
    taken
}
