//! Sending signals.
//!
//! siginfo is said in the receiver's words: pids as its PID namespace has them, users as its user namespace has them, at
//! the time of sending. Who asks for a signal that is a task's own doing uses [`by`], which sees to that.
//!
//! The init of a namespace gets no signal that it has no handler for, not even SIGKILL and SIGSTOP, but those two from the
//! kernel and from namespaces above it.

use super::queue::Queue;
use super::{IGNORED, STOPPING, bit};
use crate::fail::SysResult;
use crate::kernel::Kernel;
use crate::ptrace::stop;
use crate::task::creds::Creds;
use crate::task::userns::Ids;
use crate::task::{Process, Task, exit};
use crate::time::posix::Mark;
use crate::wait::Ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::getrlimit::RLIMIT_SIGPENDING;
use syscall_table::abi::sigaction::*;
use syscall_table::abi::wait::WaitStatus;
use syscall_table::errno::Errno;

/// Sends a signal of the kernel's own to a process. No lock but a call's may be held.
pub fn to_process(kernel: &Arc<Kernel>, process: &Arc<Process>, info: Siginfo) {
    // Only real-time signals can fail to queue, and who must know calls `by`.
    let _ = put(kernel, process, None, info, true, None);
}

/// Sends a signal of the kernel's own to one task. No lock but a call's may be held.
pub fn to_task(task: &Arc<Task>, info: Siginfo) {
    let _ = put(&task.kernel, &task.process, Some(task), info, true, None);
}

/// Sends what somebody has set up, and what is no order: an end of a child, readiness of a descriptor. No lock but a call's
/// may be held. `target`: one task of the process.
pub fn event(kernel: &Arc<Kernel>, process: &Arc<Process>, target: Option<&Arc<Task>>, info: Siginfo) {
    let _ = put(kernel, process, target, info, false, None);
}

/// Sends a signal of the kernel's own (SIGTTIN, SIGINT of a terminal, …) to all members of a process group.
pub fn to_group(kernel: &Arc<Kernel>, pgid: i32, signal: i32) {
    let members: Vec<_> = kernel.tree.lock().group(pgid).map(|n| n.process.clone()).collect();
    for process in members {
        to_process(kernel, &process, Siginfo::kernel(signal));
    }
}

/// SIGPIPE of a write by this task.
pub fn sigpipe(task: &Arc<Task>) {
    to_task(task, own_info(task, SIGPIPE, SI_USER));
}

/// siginfo of a signal that a task sends by kill(2), tgkill(2) and the like, in its own words.
pub(crate) fn own_info(task: &Task, signal: i32, code: i32) -> Siginfo {
    let creds = task.creds();
    Siginfo::kill(signal, code, task.process.name.own(), creds.ns.user(creds.uid))
}

/// Whether `sender` may send `signal` to the process (kill(2)).
pub(crate) fn permitted(task: &Task, sender: &Creds, target: &Process, signal: i32) -> bool {
    let Some(other) = target.any_thread() else { return true };
    if Arc::ptr_eq(&other.process, &task.process) || sender.may_signal(&other.creds()) {
        return true;
    }
    let sid = |pid| task.kernel.tree.sid(pid);
    signal == SIGCONT && sid(task.process.pid) == sid(target.pid)
}

/// Sends a timer's signal. False: it is ignored, and dropped.
pub(crate) fn timer(
    kernel: &Arc<Kernel>,
    process: &Arc<Process>,
    target: Option<&Arc<Task>>,
    info: Siginfo,
    mark: Mark,
) -> bool {
    put(kernel, process, target, info, false, Some(mark)).unwrap_or(true)
}

/// Sends a task's signal to a process, or to `target` of it; `info` is in the sender's words.
///
/// # Errors
/// EAGAIN when a real-time signal cannot be queued.
pub(crate) fn by(
    sender: &Task,
    process: &Arc<Process>,
    target: Option<&Arc<Task>>,
    info: Siginfo,
) -> SysResult<()> {
    let above = sender.process.seen_by(process) == 0;
    let info = if names_sender(&info) { reworded(sender, process, target, info, above) } else { info };
    put(&sender.kernel, process, target, info, above, None).map(|_| ())
}

/// Whether siginfo has a pid and a user (siginfo_layout of Linux): what is a timer's or a descriptor's has other things
/// there.
fn names_sender(info: &Siginfo) -> bool {
    match info.si_code {
        SI_TIMER | SI_SIGIO => false,
        code => code <= SI_USER || code >= SI_KERNEL || info.si_signo == SIGCHLD,
    }
}

fn reworded(
    sender: &Task,
    process: &Process,
    target: Option<&Arc<Task>>,
    info: Siginfo,
    above: bool,
) -> Siginfo {
    let own = sender.creds().ns.clone();
    let ns = match target {
        Some(task) => task.creds().ns.clone(),
        None => process.creds().ns.clone(),
    };
    // Who has no number there is not named, whatever it says itself.
    let info = if above { info.with_pid(0) } else { info };
    if ns == own {
        return info;
    }
    info.with_uid(ns.user(own.to_kernel(Ids::Users, info.si_uid()).unwrap_or(u32::MAX)))
}

/// Whether it is the init of a namespace, which `signal` does nothing to by itself.
fn spares(process: &Process, signal: i32, forced: bool) -> bool {
    process.unkillable.load(Ordering::Relaxed) && !(forced && matches!(signal, SIGKILL | SIGSTOP))
}

/// Whether a signal that is no order is dropped if it comes unblocked.
pub(crate) fn is_ignored(process: &Process, signal: i32) -> bool {
    ignored(process, signal, spares(process, signal, false))
}

fn ignored(process: &Process, signal: i32, spared: bool) -> bool {
    let handler = process.sighand().get(signal).sa_handler;
    handler == SIG_IGN || handler == SIG_DFL && (bit(signal) & IGNORED != 0 || spared)
}

/// Whether it was not ignored.
fn put(
    kernel: &Arc<Kernel>,
    process: &Arc<Process>,
    target: Option<&Arc<Task>>,
    info: Siginfo,
    // SIGKILL and SIGSTOP reach even the init of a namespace.
    forced: bool,
    mark: Option<Mark>,
) -> SysResult<bool> {
    let signal = info.si_signo;
    if bit(signal) == 0 || process.is_exiting() {
        return Ok(true);
    }
    let spared = spares(process, signal, forced);
    if signal == SIGKILL {
        if !spared {
            exit::group(kernel, process, WaitStatus::signaled(SIGKILL, false), None);
        }
        return Ok(true);
    }
    let threads = process.threads();
    if signal == SIGCONT {
        flush(process, &threads, STOPPING);
        resume(kernel, process, &threads);
        threads.iter().filter(|task| task.tracing.is_traced()).for_each(stop::continued);
    } else if bit(signal) & STOPPING != 0 {
        flush(process, &threads, bit(SIGCONT));
    }
    let blocked = |task: &Arc<Task>| super::mask::get(task) & bit(signal) != 0;
    // A tracer sees what its tracee ignores.
    let kept = |task: &Arc<Task>| blocked(task) || task.tracing.is_traced();
    if ignored(process, signal, spared) && !target.or(threads.first()).is_some_and(kept) {
        return Ok(false);
    }
    if mark.is_none() && signal >= SIGRTMIN {
        room(process, &threads, info.si_code)?;
    }
    let add = |queue: &mut Queue| match mark.clone() {
        Some(mark) => queue.push_timer(info, mark),
        None => queue.push(info),
    };
    match target {
        Some(task) => add(&mut task.signals.lock().queue),
        None => add(&mut process.pending.lock().queue),
    }
    process.signal_wait.wake(Ready::IN);
    let taker = match target {
        Some(task) => Some(task).filter(|t| !blocked(t)),
        // One that does not block it; the leader if it can.
        None => threads.iter().find(|t| !t.is_dead() && !blocked(t)),
    };
    if let Some(task) = taker {
        task.attention.store(true, Ordering::SeqCst);
        task.notify();
    }
    Ok(true)
}

/// Most signals queued for one task and its process together, whatever RLIMIT_SIGPENDING says.
const QUEUED_MOST: u64 = 1 << 16;

/// RLIMIT_SIGPENDING. Linux counts what is queued for all processes of a user; here each process is counted alone.
fn room(process: &Process, threads: &[Arc<Task>], code: i32) -> SysResult<()> {
    let limit = process.limit(RLIMIT_SIGPENDING);
    let shared = process.pending.lock().queue.len();
    let own: usize = threads.iter().map(|task| task.signals.lock().queue.len()).sum();
    let queued = shared.saturating_add(own) as u64;
    // kill(2) never fails: its signal is not queued but marked as pending. Here it is queued, up to a bound.
    if queued >= QUEUED_MOST || code != SI_USER && queued >= limit {
        return Err(Errno::EAGAIN.into());
    }
    Ok(())
}

fn flush(process: &Process, threads: &[Arc<Task>], mask: u64) {
    process.pending.lock().queue.flush(mask);
    for task in threads {
        task.signals.lock().queue.flush(mask);
    }
}

/// SIGCONT's effect, which it has even when blocked or ignored.
fn resume(kernel: &Arc<Kernel>, process: &Arc<Process>, threads: &[Arc<Task>]) {
    if process.stopped.swap(0, Ordering::SeqCst) == 0 {
        return;
    }
    for task in threads {
        task.notify();
    }
    job_event(kernel, process, None);
}

/// Stops a process: its tasks park on their way to guest code.
pub(crate) fn stop(kernel: &Arc<Kernel>, process: &Arc<Process>, signal: i32) {
    if process.is_exiting() {
        return;
    }
    let first = process.stopped.swap(signal, Ordering::SeqCst) == 0;
    for task in process.threads() {
        let traced = task.tracing.is_traced();
        if traced {
            task.tracing.trap.store(true, Ordering::SeqCst);
        }
        if first || traced {
            task.notify();
        }
    }
    if first {
        job_event(kernel, process, Some(signal));
    }
}

/// Tells the parent of a stop or, with None, of a continuation.
fn job_event(kernel: &Arc<Kernel>, process: &Arc<Process>, stopped: Option<i32>) {
    if process.pid == crate::task::tree::FIRST
        && let Some(signal) = stopped
    {
        kernel.tree.first_stopped(signal);
    }
    let told = {
        let mut tree = kernel.tree.lock();
        let Some(node) = tree.nodes.get_mut(&process.pid) else { return };
        if stopped.is_some() && node.tracer == Some(node.parent) {
            // The parent sees the tracee's own stop, not the same a second time.
            return;
        }
        node.stop_event = stopped;
        node.cont_event = stopped.is_none();
        let status = stopped.map_or(WaitStatus::continued(), WaitStatus::stopped);
        let (process, parent, uid) = (node.process.clone(), node.parent, node.uid);
        let parent = tree.nodes.get(&parent).map(|p| p.process.clone());
        parent.map(|parent| {
            let info = exit::child_info(&process, uid, status, &parent);
            (parent, info)
        })
    };
    if let Some((parent, info)) = told {
        let action = parent.sighand().get(SIGCHLD);
        if action.sa_handler != SIG_IGN && action.sa_flags & SA_NOCLDSTOP == 0 {
            event(kernel, &parent, None, info);
        }
        parent.child_wait.wake(Ready::IN);
    }
}
