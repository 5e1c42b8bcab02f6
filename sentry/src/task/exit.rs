//! The end of tasks and processes.
//!
//! A process ends at once, whatever its tasks do: they are marked dead, what they held is released, the host process is
//! killed. A handler of a dead task that still runs on some worker finishes without effect on the guest.

use super::clone::Vfork;
use super::tree::{Ending, FIRST, INIT, Node, State};
use super::{Process, Task};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::kernel::Kernel;
use crate::mm::Mm;
use crate::ptrace::{links, stop};
use crate::signal::send;
use crate::wait::Ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::ptrace::*;
use syscall_table::abi::sigaction::*;
use syscall_table::abi::wait::WaitStatus;

/// The host killed the task's process behind our back.
pub(crate) fn host_death(task: &Arc<Task>, signal: i32) {
    let signal = if (1..=SIGRTMAX).contains(&signal) { signal } else { SIGKILL };
    group(&task.kernel, &task.process, WaitStatus::signaled(signal, false), None);
}

/// exit(2) of the one task, or of all; a tracer that wants to see it does so first.
///
/// # Errors
/// Always: Traced, then Exit.
pub(crate) fn by_call(cx: &mut Cx, status: i32, all: bool) -> SysResult {
    let task = cx.task.clone();
    let shown = std::mem::replace(&mut cx.state::<Shown>().0, true);
    let message = u64::from(WaitStatus::exited(status).raw.unsigned_abs());
    if !shown && stop::ask(&task, cx.call, PTRACE_O_TRACEEXIT, PTRACE_EVENT_EXIT, message) {
        return Err(Fail::Traced);
    }
    if all {
        group(&task.kernel, &task.process, WaitStatus::exited(status), Some(&task));
    } else {
        single(&task, WaitStatus::exited(status));
    }
    Err(Fail::Exit)
}

/// The tracer has seen that the task ends.
#[derive(Default)]
struct Shown(bool);

/// exit(2): ends one task; with the last one the process, whose status this is then (since Linux 5.18; it was the
/// leader's before). The caller is the task itself and returns [`Fail::Exit`](crate::fail::Fail::Exit).
pub(crate) fn single(task: &Arc<Task>, status: WaitStatus) {
    let process = &task.process;
    task.tracing.status.store(status.raw, Ordering::SeqCst);
    leave_memory(task, true);
    let last = {
        let threads = process.threads.lock();
        !threads.iter().any(|t| t.tid() != task.tid())
    };
    if last {
        group(&task.kernel, process, status, Some(task));
    } else {
        retire(&task.kernel, task);
        // Two last tasks may both have seen each other alive: whoever finds nobody left ends the process.
        if process.thread_count() == 0 {
            group(&task.kernel, process, status, None);
        }
    }
}

/// exit_group(2), fatal signals, SIGKILL: ends the process. May be called by anybody, with no lock but a call's held.
/// `by`: the task of it whose event this is, and which leaves with [`platform::Verdict::Exit`].
pub(crate) fn group(
    kernel: &Arc<Kernel>,
    process: &Arc<Process>,
    status: WaitStatus,
    by: Option<&Arc<Task>>,
) {
    let first =
        process.group_exit.compare_exchange(-1, status.raw & 0xffff, Ordering::SeqCst, Ordering::SeqCst);
    if first.is_err() {
        return;
    }
    let threads = process.threads();
    for task in &threads {
        let mm = task.mm();
        if kernel.tree.lock().mm_users(&mm) > threads.len() {
            // Memory that outlives us (vfork): others must learn of our end there.
            leave_memory(task, true);
        } else {
            // Robust futexes may lie in memory shared with other processes.
            crate::ipc::futex::robust::release(task, true);
        }
    }
    for task in &threads {
        end_task(kernel, task, by.is_some_and(|by| Arc::ptr_eq(by, task)), false);
    }
    drop(threads);
    if process.is_init() {
        end_namespace(kernel, process);
    }
    process.exe_file.lock().take();
    finish(kernel, process, status);
}

/// The init of a namespace ends: so does everybody in it (pid_namespaces(7)).
fn end_namespace(kernel: &Arc<Kernel>, init: &Arc<Process>) {
    init.pidns.close();
    let all = kernel.tree.lock().within(&init.pidns);
    for other in all.iter().filter(|other| !Arc::ptr_eq(other, init)) {
        group(kernel, other, WaitStatus::signaled(SIGKILL, false), None);
    }
}

/// clear_child_tid and robust futexes, in memory that lives on. `ends`: so does the task.
pub(crate) fn leave_memory(task: &Arc<Task>, ends: bool) {
    crate::ipc::futex::robust::release(task, ends);
    let addr = task.clear_child_tid.swap(0, Ordering::SeqCst);
    if addr != 0 {
        let mm = task.mm();
        // The word may be unmapped already; Linux does not care either.
        if mm.space.write(addr, &0u32.to_le_bytes()).is_ok() {
            crate::ipc::futex::wake_address(task, addr, 1);
        }
    }
}

/// Ends one task without ending its process: out of the tree, everything it held released.
pub(crate) fn retire(kernel: &Arc<Kernel>, task: &Arc<Task>) {
    end_task(kernel, task, false, false);
}

/// As [`retire`], by another task of the group that calls execve(2): the leader's number is that one's then.
pub(crate) fn replace(kernel: &Arc<Kernel>, task: &Arc<Task>) {
    end_task(kernel, task, false, true);
}

/// `leaves`: by itself, so that what it was the last to use ends with its verdict, after its parent has been told.
fn end_task(kernel: &Arc<Kernel>, task: &Arc<Task>, leaves: bool, replaced: bool) {
    if !task.mark_dead() {
        return;
    }
    kernel.report.count_own(task);
    super::sched::unplace(task);
    // A mask that is lent now is none of the slot's next task.
    drop(task.signals.lock());
    let mm = task.mm();
    let (last_user, told) = {
        let mut tree = kernel.tree.lock();
        let told = links::tracee_ends(&mut tree, task, replaced);
        tree.tasks.remove(&task.tid());
        if task.tid() != task.process.pid {
            tree.strike(task.tid());
        }
        task.process.threads.lock().retain(|t| !Arc::ptr_eq(t, task));
        (tree.mm_put(&mm), told)
    };
    if !task.process.is_exiting() {
        leave_children(kernel, task);
        task.process.coredump.left(task);
    }
    super::usage::leave(task);
    if task.tid() == task.process.pid {
        let comm = task.comm.lock().clone();
        *task.process.epitaph.lock() = Some((comm, task.creds()));
    }
    crate::ipc::sysv::sem::leave(task);
    if last_user {
        super::usage::leave_space(kernel, &task.process, &*mm.space);
        crate::memory::ended(mm.space.host_pid());
        if !leaves {
            mm.space.kill();
        }
        mm.abandon();
    } else {
        task.control().kick();
    }
    task.waiter.disarm();
    task.seccomp.leave(task.tid());
    task.asked.end();
    // For descriptors of this thread.
    task.process.exit_wait.wake(Ready::IN);
    release_vfork(task);
    let files = std::mem::take(&mut *task.files.lock());
    // The last reference closes the descriptors, which may wake others: no lock is held here.
    drop(files);
    // Mounts of a namespace that nobody is in any more go.
    let first = super::namespaces::Namespaces::first(kernel);
    let own = std::mem::replace(&mut *task.namespaces.lock(), first);
    drop(own);
    let fs = std::mem::take(&mut *task.fs.lock());
    drop(fs);
    *task.mm.lock() = Mm::gone(&mm);
    drop(mm);
    crate::ptrace::force::abandon(task);
    links::tracer_ends(kernel, task);
    if let Some((tracer, info)) = told {
        links::tell(kernel, &tracer, info, false);
    }
}

/// A thread ends and its process goes on: its children become another thread's.
fn leave_children(kernel: &Arc<Kernel>, task: &Arc<Task>) {
    let mut after = Aftermath::default();
    {
        let uid = task.creds().uid;
        let mut tree = kernel.tree.lock();
        let Some(heir) = task.process.any_thread() else { return };
        let Some(node) = tree.nodes.get(&task.process.pid) else { return };
        for child in node.children.clone() {
            let Some(child) = tree.nodes.get_mut(&child).filter(|node| node.creator == task.tid()) else {
                continue;
            };
            child.creator = heir.tid();
            after.parent_ended(&child.process, &task.process, uid);
        }
    }
    after.carry_out(kernel);
}

/// Lets a vfork parent go on.
pub(crate) fn release_vfork(task: &Task) {
    let vfork: Option<Arc<Vfork>> = task.vfork.lock().take();
    if let Some(vfork) = vfork {
        vfork.done.store(true, Ordering::SeqCst);
        vfork.queue.wake(Ready::IN);
    }
}

/// What the end of a process means for others.
#[derive(Default)]
pub(crate) struct Aftermath {
    signals: Vec<(Arc<Process>, Siginfo, Kind)>,
    wake: Vec<Arc<Process>>,
}

/// What of [`send`] a signal is sent by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `to_process`
    Own,
    /// `event`
    Event,
}

impl Aftermath {
    /// PR_SET_PDEATHSIG of each of the threads: the one that made them has ended, of process `by` and user `uid`.
    fn parent_ended(&mut self, child: &Arc<Process>, by: &Process, uid: u32) {
        for thread in child.threads() {
            let signal = thread.pdeath_signal.load(Ordering::Relaxed);
            if signal != 0 {
                let pid = by.seen_by(child);
                let info = Siginfo::kill(signal, SI_USER, pid, child.creds().ns.user(uid));
                let kind = if pid == 0 { Kind::Own } else { Kind::Event };
                self.signals.push((child.clone(), info, kind));
            }
        }
    }

    /// Does it. No lock but a call's is held.
    pub(crate) fn carry_out(self, kernel: &Arc<Kernel>) {
        for parent in &self.wake {
            parent.child_wait.wake(Ready::IN);
        }
        for (target, info, kind) in self.signals {
            match kind {
                Kind::Own => send::to_process(kernel, &target, info),
                Kind::Event => send::event(kernel, &target, None, info),
            }
        }
    }
}

/// The process has no tasks left: it becomes a zombie, its children get a new parent, its parent learns of it.
fn finish(kernel: &Arc<Kernel>, process: &Arc<Process>, status: WaitStatus) {
    let mut after = Aftermath::default();
    if process.pid != FIRST {
        crate::tty::job::leader_ends(kernel, process);
    }
    let exe = process.exe.lock().clone();
    // What only a process with memory has, and one may be remembered for long (SCM_CREDENTIALS, pidfds).
    let argv = std::mem::take(&mut *process.argv.lock());
    drop(std::mem::take(&mut *process.envp.lock()));
    drop(std::mem::take(&mut *process.auxv.lock()));
    kernel.report.ended(process.pid, &exe, &argv, status);
    {
        let mut tree = kernel.tree.lock();
        let Some(node) = tree.nodes.get_mut(&process.pid) else { return };
        node.zombie = Some(status);
        let (sid, pgid, uid) = (node.sid, node.pgid, node.uid);
        let children = std::mem::take(&mut node.children);
        let reaper = tree.reaper_of(process.pid);
        let ended = process.is_init();
        for child in children {
            let lost =
                |node: &Node| ended && node.zombie.is_some() && node.tracer.is_none() && node.ghosts == 0;
            if tree.nodes.get(&child).is_some_and(lost) {
                // Nobody is left in its namespace to wait for it.
                tree.forget(child);
                continue;
            }
            adopt(&mut tree, child, reaper, (process, uid), &mut after);
        }
        hang_up_orphans(&tree, process.pid, sid, pgid, &mut after);
        if process.pid != FIRST {
            tell(&mut tree, process.pid, &mut after);
        }
    }
    process.exit_wait.wake(Ready::IN);
    process.child_wait.wake(Ready::IN);
    after.carry_out(kernel);
    if process.pid == FIRST {
        kernel.tree.set_ending(Ending::Status(status));
        shut_down(kernel);
    }
}

/// `lost`: its parent, which has ended, and the user of that.
fn adopt(tree: &mut State, child: i32, reaper: i32, (lost, uid): (&Process, u32), after: &mut Aftermath) {
    let zombie = match tree.nodes.get_mut(&child) {
        Some(node) => {
            node.parent = reaper;
            node.creator = reaper;
            if reaper == INIT {
                node.exit_signal = SIGCHLD;
            }
            after.parent_ended(&node.process, lost, uid);
            node.zombie.is_some()
        }
        None => return,
    };
    let watched = tree.nodes.get(&child).is_some_and(|node| node.tracer.is_some() || node.ghosts > 0);
    if reaper == INIT && zombie && !watched {
        tree.forget(child);
        return;
    }
    if let Some(parent) = tree.nodes.get_mut(&reaper) {
        parent.children.push(child);
    }
    if zombie && !watched {
        tell_parent(tree, child, after);
    }
}

/// SIGHUP and SIGCONT to stopped members of process groups that the exit orphans (setpgid(2)).
fn hang_up_orphans(tree: &State, pid: i32, sid: i32, pgid: i32, after: &mut Aftermath) {
    let mut groups: Vec<i32> = tree
        .nodes
        .values()
        .filter(|n| n.sid == sid && n.pgid != pgid && n.parent == INIT)
        .map(|n| n.pgid)
        .collect();
    if tree.nodes.get(&pid).is_some_and(|n| n.parent != INIT) {
        groups.push(pgid);
    }
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        let stopped =
            tree.group(group).any(|n| n.pid_lives() && n.process.stopped.load(Ordering::SeqCst) != 0);
        if stopped && tree.is_orphaned(group) {
            for node in tree.group(group).filter(|n| n.pid_lives()) {
                after.signals.push((node.process.clone(), Siginfo::kernel(SIGHUP), Kind::Own));
                after.signals.push((node.process.clone(), Siginfo::kernel(SIGCONT), Kind::Own));
            }
        }
    }
}

impl super::tree::Node {
    fn pid_lives(&self) -> bool {
        self.zombie.is_none()
    }
}

/// siginfo of SIGCHLD for a wait status of `process`, of user `uid`, in the words of who hears of it.
pub(crate) fn child_info(process: &Arc<Process>, uid: u32, status: WaitStatus, to: &Process) -> Siginfo {
    let (code, value) = match (status.exit_status(), status.term_signal(), status.stop_signal()) {
        (Some(value), _, _) => (CLD_EXITED, value),
        (_, Some(signal), _) if status.raw & 0x80 != 0 => (CLD_DUMPED, signal),
        (_, Some(signal), _) => (CLD_KILLED, signal),
        (_, _, Some(signal)) => (CLD_STOPPED, signal),
        _ => (CLD_CONTINUED, SIGCONT),
    };
    let cpu = super::usage::of_process(process);
    let (user, system) = (super::usage::ticks(cpu.user), super::usage::ticks(cpu.system));
    Siginfo::child(code, process.seen_by(to), to.creds().ns.user(uid), value, user, system)
}

/// A zombie's tracer or, when it has none, its parent learns of it; nobody as long as tracees among its tasks are not
/// waited for.
pub(crate) fn tell(tree: &mut State, pid: i32, after: &mut Aftermath) {
    let Some(node) = tree.nodes.get(&pid) else { return };
    if node.ghosts > 0 {
        return;
    }
    let Some(tracer) = node.tracer.filter(|tracer| *tracer != node.parent) else {
        return tell_parent(tree, pid, after);
    };
    let Some(tracer) = tree.nodes.get(&tracer).map(|n| n.process.clone()) else { return };
    if let Some(status) = node.zombie
        && tracer.sighand().get(SIGCHLD).sa_handler != SIG_IGN
    {
        let info = child_info(&node.process, node.uid, status, &tracer);
        after.signals.push((tracer.clone(), info, Kind::Event));
    }
    after.wake.push(tracer);
}

/// A zombie's parent: signal and wake-up, or reaped at once when it does not want to know.
fn tell_parent(tree: &mut State, pid: i32, after: &mut Aftermath) {
    let Some(node) = tree.nodes.get(&pid) else { return };
    let Some(parent) = tree.nodes.get(&node.parent).map(|p| p.process.clone()) else {
        tree.forget(pid);
        return;
    };
    let mut signal = node.exit_signal;
    let action = parent.sighand().get(SIGCHLD);
    let mut reap = false;
    if signal == SIGCHLD {
        let ignored = action.sa_handler == SIG_IGN;
        reap = node.tracer.is_none() && (ignored || action.sa_flags & SA_NOCLDWAIT != 0);
        if ignored {
            signal = 0;
        }
    }
    if signal != 0
        && let Some(status) = node.zombie
    {
        let mut info = child_info(&node.process, node.uid, status, &parent);
        info.si_signo = signal;
        after.signals.push((parent.clone(), info, Kind::Event));
    }
    if reap {
        tree.forget(pid);
    }
    after.wake.push(parent);
}

/// Kills whatever is left.
pub(crate) fn shut_down(kernel: &Arc<Kernel>) {
    for process in kernel.tree.processes() {
        group(kernel, &process, WaitStatus::signaled(SIGKILL, false), None);
    }
}
