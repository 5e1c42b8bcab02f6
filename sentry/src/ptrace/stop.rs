//! A tracee's side: where it stops, and how it goes on. Called by its own worker with its call locked.

use super::{Kind, Resumed, Stop, links, watch};
use crate::fail::Restart;
use crate::run::{Call, Ended};
use crate::signal::{bit, mask, send};
use crate::task::{Process, Task};
use platform::{CallError, Gone, Port, Regs};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use syscall_table::abi::sigaction::*;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// PTRACE_GETEVENTMSG at the two stops of a call.
const MESSAGE_ENTRY: u64 = 1;
const MESSAGE_EXIT: u64 = 2;

/// si_code of a SIGTRAP: a step that ended behind a call.
const TRAP_BRKPT: i32 = 1;

/// What rax shows of a call that has not ended, or how it ended.
fn shown(ended: Option<Ended>) -> Option<i64> {
    match ended? {
        Ended::Value(value) => Some(value),
        Ended::Interrupted(restart) => Some(match restart {
            Restart::Sys => -512,
            Restart::NoIntr => -513,
            Restart::NoHand => -514,
            Restart::Block => -516,
            Restart::Never | Restart::Uninterruptible => -i64::from(Errno::EINTR.raw()),
        }),
    }
}

/// How a stop looks from outside.
struct Look {
    kind: Kind,
    code: i32,
    why: i32,
    info: Option<Siginfo>,
    message: Option<u64>,
}

/// Stops the task if somebody traces it; it is to be parked then. `regs` is what the tracer sees.
fn enter(task: &Arc<Task>, port: &mut dyn Port, regs: Regs, look: Look) -> Result<bool, Gone> {
    let mm = task.mm();
    mm.watched.store(true, SeqCst);
    if !mm.plain.load(SeqCst) {
        // Where others run now, at a later stop.
        mm.plain.store(port.put_back(), SeqCst);
    }
    let xstate = port.xstate()?;
    task.waiter.disarm();
    let tracer = {
        let mut state = task.tracing.lock();
        let Some(by) = &mut state.by else { return Ok(false) };
        let Some(tracer) = by.task.upgrade() else { return Ok(false) };
        if let Some(message) = look.message {
            by.message = message;
        }
        state.stop = Some(Box::new(Stop {
            kind: look.kind,
            code: look.code,
            info: look.info,
            reported: false,
            listening: false,
            emulated: look.kind == Kind::Entry && by.emulate,
            regs,
            regs_changed: false,
            xstate,
            xstate_changed: false,
        }));
        task.tracing.set_held(true);
        tracer
    };
    let (number, uid) = names(task, &tracer.process);
    let info = Siginfo::child(look.why, number, uid, look.code & 0x7f, 0, 0);
    links::tell(&task.kernel, &tracer.process, info, true);
    Ok(true)
}

/// A task and its user as another process calls them.
pub(crate) fn names(task: &Task, to: &Process) -> (i32, u32) {
    (task.name().in_ns(&to.pidns), to.creds().ns.user(task.creds().uid))
}

/// siginfo of a stop that is no signal's.
fn own_info(task: &Task, signal: i32, code: i32) -> Siginfo {
    let (number, uid) = names(task, &task.process);
    Siginfo::kill(signal, code, number, uid)
}

fn call_code(task: &Task) -> i32 {
    if task.tracing.wants(PTRACE_O_TRACESYSGOOD) { SIGTRAP | 0x80 } else { SIGTRAP }
}

/// Whether a call that begins now is to be shown.
pub(crate) fn shows_calls(task: &Task) -> bool {
    task.tracing.is_traced() && task.tracing.lock().by.as_ref().is_some_and(|by| by.syscalls || by.emulate)
}

/// The stop before a call.
pub(crate) fn entry(task: &Arc<Task>, call: &Call, port: &mut dyn Port) -> Result<bool, Gone> {
    let mut regs = port.regs()?;
    regs.orig_rax = u64::from(call.nr);
    regs.rax = i64::from(-Errno::ENOSYS.raw()) as u64;
    let code = call_code(task);
    let info = Some(own_info(task, SIGTRAP, code));
    let look = Look { kind: Kind::Entry, code, why: CLD_TRAPPED, info, message: Some(MESSAGE_ENTRY) };
    enter(task, port, regs, look)
}

/// The stop for an event.
pub(crate) fn event(
    task: &Arc<Task>,
    call: &Call,
    port: &mut dyn Port,
    (event, message): (i32, u64),
    ended: Option<Ended>,
) -> Result<bool, Gone> {
    let mut regs = port.regs()?;
    if call.in_call {
        regs.orig_rax = u64::from(call.nr);
    }
    if call.active {
        regs.rax = shown(ended).unwrap_or(i64::from(-Errno::ENOSYS.raw())) as u64;
    }
    let code = SIGTRAP | event << 8;
    let info = Some(own_info(task, SIGTRAP, code));
    let look = Look { kind: Kind::Event, code, why: CLD_TRAPPED, info, message: Some(message) };
    enter(task, port, regs, look)
}

/// On the way back to guest code, before signals are looked at: an event of the call that ended, then its own stop.
/// True: stopped.
pub(crate) fn on_return(
    task: &Arc<Task>,
    call: &mut Call,
    port: &mut dyn Port,
    ended: Option<Ended>,
) -> Result<bool, Gone> {
    if let Some(what) = call.event.take()
        && event(task, call, port, what, ended)?
    {
        return Ok(true);
    }
    if !std::mem::take(&mut call.in_call) {
        return Ok(false);
    }
    let (syscalls, step) = {
        let state = task.tracing.lock();
        state.by.as_ref().map_or((false, false), |by| (by.syscalls, by.step && !by.emulate))
    };
    if syscalls {
        let mut regs = port.regs()?;
        // What sigreturn brought back is no call's.
        regs.orig_rax = if call.nr == SIGRETURN && ended.is_none() { u64::MAX } else { u64::from(call.nr) };
        if let Some(value) = shown(ended) {
            regs.rax = value as u64;
        }
        let code = call_code(task);
        let info = Some(own_info(task, SIGTRAP, code));
        let look = Look { kind: Kind::Exit, code, why: CLD_TRAPPED, info, message: Some(MESSAGE_EXIT) };
        return enter(task, port, regs, look);
    }
    if step {
        let rip = port.regs()?.rip;
        crate::signal::fault::force(task, Siginfo::fault(SIGTRAP, TRAP_BRKPT, rip));
    }
    Ok(false)
}

const SIGRETURN: u32 = 15;

/// Registers as a stop for a signal or a group shows them.
fn at_return(call: &Call, mut regs: Regs, ended: Option<Ended>) -> Regs {
    regs.orig_rax = u64::MAX;
    if let Some(value) = shown(ended) {
        regs.orig_rax = u64::from(call.nr);
        regs.rax = value as u64;
    }
    regs
}

/// The stop before a signal is delivered.
pub(crate) fn signal(
    task: &Arc<Task>,
    call: &Call,
    port: &mut dyn Port,
    regs: Regs,
    ended: Option<Ended>,
    info: Siginfo,
) -> Result<bool, Gone> {
    let regs = at_return(call, regs, ended);
    let look = Look {
        kind: Kind::Signal,
        code: info.si_signo,
        why: CLD_TRAPPED,
        info: Some(info),
        message: Some(0),
    };
    enter(task, port, regs, look)
}

/// The stop for the group, by PTRACE_INTERRUPT, or of a new child.
pub(crate) fn trap(
    task: &Arc<Task>,
    call: &Call,
    port: &mut dyn Port,
    regs: Regs,
    ended: Option<Ended>,
) -> Result<bool, Gone> {
    let regs = at_return(call, regs, ended);
    let stopped = task.process.stopped.load(SeqCst);
    let look = if task.tracing.is_seized() {
        let signal = if stopped != 0 { stopped } else { SIGTRAP };
        let code = signal | PTRACE_EVENT_STOP << 8;
        let info = Some(own_info(task, signal, code));
        Look { kind: Kind::Group, code, why: CLD_STOPPED, info, message: Some(0) }
    } else if stopped != 0 {
        Look { kind: Kind::Group, code: stopped, why: CLD_STOPPED, info: None, message: Some(0) }
    } else {
        // Continued meanwhile.
        return Ok(false);
    };
    enter(task, port, regs, look)
}

/// Of a task that is held: how it goes on. None: it stays where it is.
pub(crate) fn resumed(task: &Task) -> Option<Resumed> {
    let mut state = task.tracing.lock();
    let resumed = state.resumed.take()?;
    task.tracing.set_held(state.stop.is_some());
    Some(*resumed)
}

/// Writes back what the tracer changed; the call and its end are set so that the task can go on from where it stopped.
pub(crate) fn apply(
    task: &Arc<Task>,
    call: &mut Call,
    port: &mut dyn Port,
    resumed: Resumed,
) -> Result<(), Gone> {
    let Resumed { stop, signal, tracer } = resumed;
    if stop.xstate_changed && matches!(port.set_xstate(&stop.xstate), Err(CallError::Gone)) {
        return Err(Gone);
    }
    let regs = stop.regs;
    // A filter's event comes before the call, as its entry does.
    if stop.kind == Kind::Entry || stop.code == SIGTRAP | PTRACE_EVENT_SECCOMP << 8 {
        if stop.regs_changed {
            call.nr = regs.orig_rax as u32;
            call.args = [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9];
            port.set_regs(&Regs { rax: regs.orig_rax, ..regs })?;
        }
        if stop.emulated || regs.orig_rax as i32 == -1 {
            call.ended = Some(Ended::Value(regs.rax as i64));
        }
    } else if stop.regs_changed {
        match call.ended {
            None if call.active => port.set_regs(&Regs { rax: u64::from(call.nr), ..regs })?,
            None => port.set_regs(&regs)?,
            // No call any more: nothing is restarted.
            Some(_) if (regs.orig_rax as i32) < 0 => {
                port.set_regs(&regs)?;
                call.ended = None;
                call.over();
            }
            Some(ended) => {
                port.set_regs(&regs)?;
                if shown(Some(ended)) != Some(regs.rax as i64) {
                    call.ended = Some(Ended::Value(regs.rax as i64));
                }
            }
        }
    }
    if signal != 0 {
        chosen(task, call, &stop, signal, tracer);
    }
    Ok(())
}

/// The tracer let the task go on with a signal.
fn chosen(task: &Arc<Task>, call: &mut Call, stop: &Stop, signal: i32, (pid, uid): (i32, u32)) {
    match stop.kind {
        Kind::Entry | Kind::Exit => send::to_task(task, Siginfo::kernel(signal)),
        Kind::Signal => {
            let info = match stop.info {
                Some(info) if info.si_signo == signal => info,
                _ => Siginfo::kill(signal, SI_USER, pid, uid),
            };
            if mask::get(task) & bit(signal) != 0 {
                task.signals.lock().queue.push(info);
                mask::refresh(task);
            } else {
                call.injected = Some(info);
            }
        }
        Kind::Event | Kind::Group => {}
    }
}

/// Ends a stop, whoever asks. False if there was none.
pub(crate) fn release(task: &Arc<Task>, signal: i32) -> bool {
    let mut state = task.tracing.lock();
    let Some(stop) = state.stop.take() else { return false };
    state.resumed = Some(Box::new(Resumed { stop: *stop, signal, tracer: (0, 0) }));
    drop(state);
    task.control().kick();
    true
}

/// The group was continued: a seized task tells its tracer, one that listens at once.
pub(crate) fn continued(task: &Arc<Task>) {
    if !task.tracing.is_seized() {
        task.tracing.trap.store(false, SeqCst);
        return;
    }
    again(task);
}

/// A seized task is to stop (again, if it listens).
pub(crate) fn again(task: &Arc<Task>) {
    task.tracing.trap.store(true, SeqCst);
    let listening = task.tracing.lock().stop.as_ref().is_some_and(|stop| stop.listening);
    if listening {
        release(task, 0);
    } else {
        task.notify();
    }
}

/// Asks for the stop of an event if the tracer wants it: the handler returns
/// [`Fail::Traced`](crate::fail::Fail::Traced) then, and is run again.
pub(crate) fn ask(task: &Task, call: &mut Call, option: u64, event: i32, message: u64) -> bool {
    let wanted = task.tracing.wants(option);
    if wanted {
        call.event = Some((event, message));
    }
    wanted
}

/// Before guest code: one instruction, if that is what the tracer wants. What it wants of a call that has ended was
/// dealt with before.
pub(crate) fn step(task: &Task, port: &mut dyn Port) -> Result<(), Gone> {
    if !task.tracing.is_traced() {
        return Ok(());
    }
    // Before the tracer's record is locked.
    let space = task.space();
    let watches = match &mut task.tracing.lock().by {
        None => return Ok(()),
        Some(by) => {
            let watches = watch::begin(&*space, port, by);
            if !by.step && !watches {
                task.tracing.watching.store(false, SeqCst);
                return Ok(());
            }
            watches
        }
    };
    task.tracing.watching.store(watches, SeqCst);
    task.tracing.stepping.store(true, SeqCst);
    port.single_step(true).map_err(|_| Gone)
}
