//! Who traces whom: kept in the tree, beside parents and children.

use super::Tracer;
use crate::kernel::Kernel;
use crate::signal::{mask, send};
use crate::task::exit::{self, Aftermath};
use crate::task::tree::State;
use crate::task::{Process, Task};
use crate::wait::later;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::sigaction::*;
use syscall_table::abi::wait::WaitStatus;
use syscall_table::abi::{PTRACE_O_EXITKILL, ptrace as abi};

/// A tracee.
pub struct Link {
    /// The tracee; kept when it has ended, until its tracer has waited for it.
    pub task: Arc<Task>,
    /// Pid of the tracer's process.
    pub tracer: i32,
    /// The tracer.
    pub by: Arc<Task>,
    /// It is no leader and has ended.
    pub end: Option<WaitStatus>,
}

/// What a new tracee begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    pub(crate) seized: bool,
    pub(crate) options: u64,
}

/// Makes `tracer` the tracer of `task`. False if it has one, or has ended. The tree is locked.
pub(crate) fn attach(tree: &mut State, tracer: &Arc<Task>, task: &Arc<Task>, how: How) -> bool {
    if task.is_dead() || tracer.is_dead() || task.tracing.is_traced() {
        return false;
    }
    let pid = tracer.process.pid;
    tree.links.push(Link { task: task.clone(), tracer: pid, by: tracer.clone(), end: None });
    if task.tid() == task.process.pid
        && let Ok(node) = tree.node_mut(task.process.pid)
    {
        node.tracer = Some(pid);
    }
    task.tracing.set_by(Some(Tracer {
        task: Arc::downgrade(tracer),
        seized: how.seized,
        options: how.options,
        message: 0,
        syscalls: false,
        emulate: false,
        step: false,
        block: false,
        before: Default::default(),
        debug: super::regs::DEBUG_INITIAL,
    }));
    true
}

/// The child of a traced task gets the same tracer, before it is started.
pub(crate) fn inherit(tree: &mut State, parent: &Task, child: &Arc<Task>) {
    let Some((tracer, how)) = ({
        let state = parent.tracing.lock();
        state
            .by
            .as_ref()
            .and_then(|by| Some((by.task.upgrade()?, How { seized: by.seized, options: by.options })))
    }) else {
        return;
    };
    if !attach(tree, &tracer, child, how) {
        return;
    }
    if how.seized {
        child.tracing.trap.store(true, Ordering::SeqCst);
    } else {
        child.signals.lock().queue.push(Siginfo::kill(SIGSTOP, SI_USER, 0, 0));
        child.attention.store(true, Ordering::SeqCst);
    }
}

/// The task has no tracer any more; if it is stopped it goes on with `signal`. No lock but a call's is held.
pub(crate) fn detach(kernel: &Arc<Kernel>, task: &Arc<Task>, signal: i32) {
    {
        let mut tree = kernel.tree.lock();
        tree.links.retain(|link| !Arc::ptr_eq(&link.task, task));
        unlink(&mut tree, task);
    }
    let stopped = super::stop::release(task, signal);
    task.tracing.trap.store(false, Ordering::SeqCst);
    task.tell_own();
    if !stopped {
        // It may have to stop with its group, or to drop a step.
        task.notify();
    }
}

fn unlink(tree: &mut State, task: &Arc<Task>) {
    task.tracing.set_by(None);
    if task.tid() == task.process.pid
        && let Ok(node) = tree.node_mut(task.process.pid)
    {
        node.tracer = None;
    }
}

/// A task that traces others has ended: they are let go, or killed. No lock but a call's is held.
pub(crate) fn tracer_ends(kernel: &Arc<Kernel>, tracer: &Arc<Task>) {
    let mut after = Aftermath::default();
    let mut living = Vec::new();
    {
        let mut tree = kernel.tree.lock();
        if tree.links.is_empty() {
            return;
        }
        let mut ended = Vec::new();
        tree.links.retain(|link| {
            let own = Arc::ptr_eq(&link.by, tracer);
            if own {
                let ghost = link.end.is_some();
                if ghost || link.task.is_dead() { &mut ended } else { &mut living }
                    .push((link.task.clone(), ghost));
            }
            !own
        });
        for (task, ghost) in ended {
            forget(&mut tree, &task, ghost, &mut after);
            // A thread's number was kept for the tracer alone.
            tree.strike(task.tid());
        }
    }
    for (task, _) in living {
        if task.tracing.wants(PTRACE_O_EXITKILL) {
            let (kernel, process) = (kernel.clone(), task.process.clone());
            // Not from here: a chain of tracers would be as deep a chain of calls.
            later(Box::new(move || {
                exit::group(&kernel, &process, WaitStatus::signaled(SIGKILL, false), None)
            }));
        }
        detach(kernel, &task, 0);
    }
    after.carry_out(kernel);
}

/// A tracee that has ended is of no interest any more: what waited for that goes on. Its link is out of the list. `ghost`:
/// it was no leader.
pub(crate) fn forget(tree: &mut State, task: &Arc<Task>, ghost: bool, after: &mut Aftermath) {
    let pid = task.process.pid;
    let Ok(node) = tree.node_mut(pid) else { return };
    if ghost {
        node.ghosts = node.ghosts.saturating_sub(1);
        if node.ghosts == 0 && node.zombie.is_some() {
            exit::tell(tree, pid, after);
        }
    } else {
        node.tracer = None;
        if node.zombie.is_some() && node.ghosts == 0 {
            exit::tell(tree, pid, after);
        }
    }
}

/// A task has ended that leads no group, or the leader alone: what its tracer hears. The tree is locked.
pub(crate) fn tracee_ends(
    tree: &mut State,
    task: &Arc<Task>,
    replaced: bool,
) -> Option<(Arc<Process>, Siginfo)> {
    if !task.tracing.is_traced() {
        return None;
    }
    let leader = task.tid() == task.process.pid;
    if leader && !replaced {
        // Seen when its process has ended.
        return None;
    }
    let at = tree.links.iter().position(|link| Arc::ptr_eq(&link.task, task))?;
    if leader {
        // Another task takes its number (execve).
        tree.links.swap_remove(at);
        unlink(tree, task);
        return None;
    }
    let group = task.process.group_exit.load(Ordering::SeqCst);
    let raw = if group >= 0 { group } else { task.tracing.status.load(Ordering::SeqCst) };
    let status = WaitStatus { raw };
    let link = tree.links.get_mut(at)?;
    link.end = Some(status);
    let tracer = link.by.process.clone();
    let node = tree.node_mut(task.process.pid).ok()?;
    node.ghosts = node.ghosts.saturating_add(1);
    let info = exit::child_info(&node.process, node.uid, status, &tracer);
    let number = task.name().in_ns(&tracer.pidns);
    let info = Siginfo::child(info.si_code, number, info.si_uid(), info.si_status(), 0, 0);
    Some((tracer, info))
}

/// Tells a tracer's process of a change of a tracee. No lock but a call's is held.
pub(crate) fn tell(kernel: &Arc<Kernel>, process: &Arc<Process>, info: Siginfo, stopped: bool) {
    let action = process.sighand().get(SIGCHLD);
    if action.sa_handler != SIG_IGN && !(stopped && action.sa_flags & SA_NOCLDSTOP != 0) {
        send::event(kernel, process, None, info);
    }
    process.child_wait.wake(crate::wait::Ready::IN);
}

/// Whether options are ones that Linux knows.
pub(crate) fn known(options: u64) -> bool {
    let all = abi::PTRACE_O_TRACESYSGOOD
        | abi::PTRACE_O_TRACEFORK
        | abi::PTRACE_O_TRACEVFORK
        | abi::PTRACE_O_TRACECLONE
        | abi::PTRACE_O_TRACEEXEC
        | abi::PTRACE_O_TRACEVFORKDONE
        | abi::PTRACE_O_TRACEEXIT
        | abi::PTRACE_O_TRACESECCOMP
        | abi::PTRACE_O_EXITKILL
        | abi::PTRACE_O_SUSPEND_SECCOMP;
    options & !all == 0
}

/// The platform gives no answers in the task's place any more.
pub(crate) fn hush(task: &Task) {
    task.control().no_answers();
    // Takes the mask back if it was lent.
    drop(task.signals.lock());
}

/// After attaching: the task shows each call from now on, and stops. No lock but a call's is held.
pub(crate) fn begin(task: &Arc<Task>, seized: bool) {
    hush(task);
    if !seized {
        if task.process.stopped.load(Ordering::SeqCst) != 0 {
            // From the group's stop straight into its own; the signal is still to come.
            task.tracing.trap.store(true, Ordering::SeqCst);
        }
        send::to_task(task, Siginfo::kernel(SIGSTOP));
    } else if task.process.stopped.load(Ordering::SeqCst) != 0 {
        task.tracing.trap.store(true, Ordering::SeqCst);
    }
    mask::refresh(task);
    task.notify();
}
