//! New tasks and processes (clone(2)).

use super::creds::{Creds, cap};
use super::pidns::{Name, PidNs};
use super::start::First;
use super::tree::Node;
use super::{Parts, Process, Task, exit, namespaces};
use crate::cx::Cx;
use crate::fail::{Fail, Restart, SysResult};
use crate::kernel::Kernel;
use crate::ptrace::{links, stop};
use crate::wait::{Ready, WaitQueue};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use syscall_table::abi::clone::*;
use syscall_table::abi::getrlimit::{RLIM_INFINITY, RLIMIT_NOFILE, RLIMIT_NPROC};
use syscall_table::abi::ptrace::*;
use syscall_table::abi::sched::SCHED_DEADLINE;
use syscall_table::abi::sigaction::{SIGCHLD, SIGKILL};
use syscall_table::abi::wait::WaitStatus;
use syscall_table::errno::Errno;

/// What a vfork parent waits for: the child's execve or end.
#[derive(Default)]
pub struct Vfork {
    pub(crate) done: AtomicBool,
    pub(crate) queue: WaitQueue,
}

/// Arguments of clone3(2), which the other calls are special cases of.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// CLONE_*, without the exit signal.
    pub flags: u64,
    /// Signal to the parent at exit.
    pub exit_signal: i32,
    /// New stack pointer; 0: as the parent's.
    pub stack: u64,
    /// For CLONE_SETTLS.
    pub tls: u64,
    /// For CLONE_PARENT_SETTID.
    pub parent_tid: u64,
    /// For CLONE_CHILD_SETTID and CLONE_CHILD_CLEARTID.
    pub child_tid: u64,
    /// For CLONE_PIDFD.
    pub pidfd: u64,
    /// The numbers that it is to have, in its own namespace first, then in those above it (set_tid of clone3).
    pub wanted: Vec<i32>,
}

/// Flags that do something here or that need nothing done.
const KNOWN: u64 = CLONE_VM
    | CLONE_FS
    | CLONE_FILES
    | CLONE_SIGHAND
    | CLONE_PIDFD
    | CLONE_VFORK
    | CLONE_PARENT
    | CLONE_THREAD
    | CLONE_SYSVSEM
    | CLONE_SETTLS
    | CLONE_PARENT_SETTID
    | CLONE_CHILD_CLEARTID
    | CLONE_DETACHED
    | CLONE_UNTRACED
    | CLONE_CHILD_SETTID
    | CLONE_IO
    | CLONE_PTRACE
    | CLONE_CLEAR_SIGHAND;

/// Flags for new namespaces.
const NAMESPACES: u64 = CLONE_NEWTIME
    | CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET;

/// One past the highest user address.
const TASK_SIZE: u64 = 0x7fff_ffff_f000;

/// A child, as it was named before it ran: its numbers end with it.
#[derive(Clone)]
struct Made {
    /// To the caller.
    shown: i32,
    /// To its tracer.
    traced: u64,
    vfork: Option<Arc<Vfork>>,
}

#[derive(Default)]
struct Waiting {
    child: Option<Made>,
    /// A tracer has seen the end of the wait.
    shown: bool,
}

/// The event that a tracer may want to see (ptrace(2), PTRACE_SETOPTIONS).
fn event(request: &Request) -> (u64, i32) {
    if request.flags & CLONE_VFORK != 0 {
        (PTRACE_O_TRACEVFORK, PTRACE_EVENT_VFORK)
    } else if request.exit_signal != SIGCHLD {
        (PTRACE_O_TRACECLONE, PTRACE_EVENT_CLONE)
    } else {
        (PTRACE_O_TRACEFORK, PTRACE_EVENT_FORK)
    }
}

/// The child is there: its parent goes on, at once or when the child of vfork lets it.
fn go_on(cx: &mut Cx, made: Made) -> SysResult {
    let pid = made.shown as u64;
    let Some(vfork) = made.vfork else { return Ok(pid) };
    cx.wait_on(&vfork.queue, Ready::IN);
    if !vfork.done.load(Ordering::SeqCst) {
        return cx.block(Restart::Uninterruptible);
    }
    let shown = std::mem::replace(&mut cx.state::<Waiting>().shown, true);
    if !shown && stop::ask(cx.task, cx.call, PTRACE_O_TRACEVFORKDONE, PTRACE_EVENT_VFORK_DONE, made.traced) {
        return Err(Fail::Traced);
    }
    Ok(pid)
}

fn check(request: &Request) -> SysResult<()> {
    let flags = request.flags;
    let has = |bits: u64| flags & bits == bits;
    let contrary = has(CLONE_NEWNS | CLONE_FS)
        || has(CLONE_NEWUSER | CLONE_FS)
        || has(CLONE_NEWPID | CLONE_THREAD)
        || has(CLONE_NEWUSER | CLONE_THREAD)
        || has(CLONE_NEWIPC | CLONE_SYSVSEM);
    if contrary {
        return Err(Errno::EINVAL.into());
    }
    if has(CLONE_INTO_CGROUP) {
        return Err(Fail::gap(Errno::EPERM, "flag CLONE_INTO_CGROUP"));
    }
    let bad = flags & !(KNOWN | NAMESPACES) != 0
        || has(CLONE_SIGHAND) && !has(CLONE_VM)
        || has(CLONE_THREAD) && !has(CLONE_SIGHAND)
        || has(CLONE_CLEAR_SIGHAND | CLONE_SIGHAND)
        || has(CLONE_PIDFD | CLONE_DETACHED)
        || !(0..=64).contains(&request.exit_signal);
    if bad {
        return Err(Errno::EINVAL.into());
    }
    // do_arch_prctl_64 refuses a base that is no user address.
    if has(CLONE_SETTLS) && request.tls >= TASK_SIZE { Err(Errno::EPERM.into()) } else { Ok(()) }
}

/// What a copy of a small process takes at the least: its page tables, and what both write at once.
const COPY: u64 = 256 << 10;

/// Makes the child; for CLONE_VFORK blocks until it lets go of the memory.
pub(crate) fn clone(cx: &mut Cx, request: &Request) -> SysResult {
    if let Some(made) = cx.state::<Waiting>().child.clone() {
        return go_on(cx, made);
    }
    check(request)?;
    if request.flags & CLONE_VM == 0 && !crate::memory::room_for(COPY) {
        return Err(Errno::ENOMEM.into());
    }
    let (child, vfork) = create(cx, request)?;
    let pid = child.tid();
    let made = Made { shown: cx.task.shown(pid), traced: cx.task.tracer_sees(pid) as u64, vfork };
    child.control().start();
    cx.state::<Waiting>().child = Some(made.clone());
    let (option, event) = event(request);
    if request.flags & CLONE_UNTRACED == 0 && stop::ask(cx.task, cx.call, option, event, made.traced) {
        return Err(Fail::Traced);
    }
    go_on(cx, made)
}

fn create(cx: &mut Cx, request: &Request) -> SysResult<(Arc<Task>, Option<Arc<Vfork>>)> {
    let flags = request.flags;
    let has = |bits: u64| flags & bits != 0;
    let parent = cx.task.clone();
    let kernel = cx.kernel().clone();
    let mut regs = cx.port()?.regs()?;
    if parent.process.is_exiting() {
        return Err(Fail::Exit);
    }
    regs.rax = 0;
    if request.stack != 0 {
        regs.rsp = request.stack;
    }
    if has(CLONE_SETTLS) {
        regs.fs_base = request.tls;
    }

    {
        // Deadlines are no child's.
        let sched = parent.sched.lock();
        if sched.policy == SCHED_DEADLINE && !sched.reset_on_fork {
            return Err(Errno::EAGAIN.into());
        }
    }
    let new = match flags & NAMESPACES {
        0 => None,
        wanted => Some(namespaces::make(&parent, wanted)?),
    };
    let pidns = match &new {
        Some(new) => new.namespaces.pid.clone(),
        None => parent.namespaces().pid,
    };
    if has(CLONE_THREAD) && pidns.ino != parent.process.pidns.ino {
        // unshare(2) or setns(2) has put its children elsewhere.
        return Err(Errno::EINVAL.into());
    }
    if has(CLONE_PARENT) && parent.process.is_init() {
        return Err(Errno::EINVAL.into());
    }
    let place = Place::new(&kernel, &parent.creds(), &request.wanted, &pidns)?;
    let name = place.0.clone();
    let tid = name.kernel();
    limit_reached(&parent, &kernel)?;
    let process = if has(CLONE_THREAD) {
        parent.process.clone()
    } else {
        new_process(&parent, name.clone(), pidns, flags)
    };
    let first = First::Child { set_tid: has(CLONE_CHILD_SETTID).then_some(request.child_tid) };
    let own_memory = !has(CLONE_VM);
    let files = parent.files();
    let fs = parent.fs();
    // What it gave to sigaltstack.
    parent.altstack();
    let signals = parent.signals.look().inherit(own_memory || has(CLONE_VFORK));
    let child = Task::new(
        &kernel,
        name,
        Parts {
            process: process.clone(),
            // Until the host has copied the space.
            mm: parent.mm(),
            files: if has(CLONE_FILES) { files } else { Arc::new(files.duplicate()) },
            fs: if has(CLONE_FS) { fs } else { Arc::new(fs.duplicate()) },
            creds: parent.creds(),
            signals,
            comm: parent.comm.lock().clone(),
            first,
        },
    );
    let own = parent.namespaces();
    *child.namespaces.lock() = own;
    if let Some(new) = new {
        new.enter(&child);
    }
    if has(CLONE_CHILD_CLEARTID) {
        child.clear_child_tid.store(request.child_tid, Ordering::Relaxed);
    }
    if has(CLONE_SYSVSEM) {
        crate::ipc::sysv::sem::share(&parent, &child);
    }
    child.mempolicy.store(parent.mempolicy.load(Ordering::Relaxed), Ordering::Relaxed);
    let sched = *parent.sched.lock();
    *child.sched.lock() = sched.of_child();
    let vfork = has(CLONE_VFORK).then(|| Arc::new(Vfork::default()));
    *child.vfork.lock() = vfork.clone();

    let pidfd = if has(CLONE_PIDFD) {
        let limit = parent.process.limit(RLIMIT_NOFILE);
        let file = if has(CLONE_THREAD) {
            super::pidfd::thread_file(&child, 0)
        } else {
            super::pidfd::file(&process, 0)
        };
        let fd = parent.files().install(file, true, 0, limit)?;
        if let Err(fail) = cx.write_value(request.pidfd, &fd) {
            drop(parent.files().remove(fd));
            return Err(fail);
        }
        Some(fd)
    } else {
        None
    };
    let sink = child.sink();
    let _forking = own_memory.then(|| crate::memory::forking(parent.mm().space.host_pid()));
    let made = if own_memory {
        let mm = parent.mm();
        mm.fork(cx.port()?, |port| port.fork(&regs, sink)).map(|(mm, new)| {
            *child.mm.lock() = mm;
            new
        })
    } else {
        cx.port()?.spawn(&regs, sink).map_err(Fail::from)
    };
    let new = match made {
        Ok(new) => new,
        Err(fail) => {
            if let Some(fd) = pidfd {
                drop(parent.files().remove(fd));
            }
            return Err(match fail {
                Fail::Error(Errno::ENOMEM) => Errno::ENOMEM.into(),
                Fail::Error(_) => Errno::EAGAIN.into(),
                other => other,
            });
        }
    };
    child.set_control(new.control);
    if !enter(&parent, &child, request) {
        // The group was killed meanwhile: the child must not outlive it.
        exit::retire(&kernel, &child);
        child.control().start();
        return Err(Fail::Exit);
    }
    if process.pidns.has_ended() {
        // Its init has gone over those that were there before this one.
        exit::group(&kernel, &process, WaitStatus::signaled(SIGKILL, false), None);
    }
    if has(CLONE_PARENT_SETTID) {
        // As Linux: the child exists, whatever becomes of this.
        let _ = cx.write_value(request.parent_tid, &parent.shown(tid));
    }
    Ok((child, vfork))
}

/// The number of a task that is being made, which counts as one: those who fork at the same time would else all see
/// room for one more.
struct Place(Name, Arc<Kernel>);

impl Place {
    fn new(kernel: &Arc<Kernel>, creds: &Creds, wanted: &[i32], ns: &Arc<PidNs>) -> SysResult<Place> {
        let mut tree = kernel.tree.lock();
        if tree.counted() >= kernel.config.max_tasks {
            return Err(Errno::EAGAIN.into());
        }
        let name = tree.enroll(ns, wanted, |owner| {
            creds.capable_in(owner, cap::SYS_ADMIN) || creds.capable_in(owner, cap::CHECKPOINT_RESTORE)
        })?;
        tree.making.insert(name.kernel(), creds.uid);
        Ok(Place(name, kernel.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut tree = self.1.tree.lock();
        tree.making.remove(&self.0.kernel());
        tree.strike(self.0.kernel());
    }
}

/// RLIMIT_NPROC: tasks of the caller's real user, whom neither root nor its rights concern.
fn limit_reached(parent: &Task, kernel: &Arc<Kernel>) -> SysResult<()> {
    let creds = parent.creds();
    let limit = parent.process.limit(RLIMIT_NPROC);
    if limit == RLIM_INFINITY
        || creds.uid == 0
        || creds.capable(cap::SYS_RESOURCE)
        || creds.capable(cap::SYS_ADMIN)
    {
        return Ok(());
    }
    // The one that is being made is among them.
    if has_more(kernel, creds.uid, limit) { Err(Errno::EAGAIN.into()) } else { Ok(()) }
}

/// Whether a real user has more tasks than `limit`, those that are being made among them.
fn has_more(kernel: &Kernel, uid: u32, limit: u64) -> bool {
    let (tasks, making): (Vec<_>, _) = {
        let tree = kernel.tree.lock();
        if (tree.tasks.len() + tree.making.len()) as u64 <= limit {
            return false;
        }
        let making = tree.making.values().filter(|maker| **maker == uid).count();
        (tree.tasks.values().cloned().collect(), making)
    };
    (making + tasks.iter().filter(|task| task.creds().uid == uid).count()) as u64 > limit
}

/// Whether the task's real user has more tasks than the task's RLIMIT_NPROC: execve(2) after setuid(2) asks, whatever rights
/// there are.
pub(crate) fn has_too_many(task: &Task) -> bool {
    let uid = task.creds().uid;
    let limit = task.process.limit(RLIMIT_NPROC);
    limit != RLIM_INFINITY && uid != 0 && has_more(&task.kernel, uid, limit)
}

fn new_process(parent: &Arc<Task>, name: Name, pidns: Arc<PidNs>, flags: u64) -> Arc<Process> {
    let old = &parent.process;
    let sighand = old.sighand();
    let sighand = if flags & CLONE_SIGHAND != 0 {
        sighand.share();
        old.threads().iter().for_each(|task| task.tell_actions());
        sighand
    } else if flags & CLONE_CLEAR_SIGHAND != 0 {
        Arc::new(sighand.cleared())
    } else {
        Arc::new(sighand.duplicate())
    };
    let process = Process::new(name, pidns, sighand, old.limits.lock().clone());
    process.unkillable.store(process.is_init(), Ordering::Relaxed);
    let copy = |to: &crate::sync::Lock<Vec<u8>>, from: &crate::sync::Lock<Vec<u8>>| {
        let value = from.lock().clone();
        *to.lock() = value;
    };
    copy(&process.exe, &old.exe);
    copy(&process.auxv, &old.auxv);
    let argv = old.argv.lock().clone();
    *process.argv.lock() = argv;
    let envp = old.envp.lock().clone();
    *process.envp.lock() = envp;
    let ctty = old.ctty.lock().clone();
    *process.ctty.lock() = ctty;
    let exe = old.exe_file.lock().clone();
    *process.exe_file.lock() = exe;
    process.personality.store(old.personality.load(Ordering::Relaxed), Ordering::Relaxed);
    for (to, from) in
        [(&process.oom_score_adj, &old.oom_score_adj), (&process.oom_score_least, &old.oom_score_least)]
    {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    let advice = *old.advice.lock();
    *process.advice.lock() = advice;
    process.coredump_filter.store(old.coredump_filter.load(Ordering::Relaxed), Ordering::Relaxed);
    process.dumpable.store(old.dumpable.load(Ordering::Relaxed), Ordering::Relaxed);
    process
}

/// Puts the child into the tree. False when its group (or its parent's) is ending.
fn enter(parent: &Arc<Task>, child: &Arc<Task>, request: &Request) -> bool {
    let mm = child.mm();
    let uid = child.creds().uid;
    let mut tree = child.kernel.tree.lock();
    child.no_new_privs.store(parent.no_new_privs.load(Ordering::Relaxed), Ordering::Relaxed);
    child.seccomp.inherit(&parent.seccomp);
    tree.mm_get(&mm);
    child.process.threads.lock().push(child.clone());
    tree.tasks.insert(child.tid(), child.clone());
    tree.making.remove(&child.tid());
    if parent.process.is_exiting() {
        return false;
    }
    let shown = request.flags & CLONE_UNTRACED == 0 && parent.tracing.wants(event(request).0);
    let traced = parent.tracing.is_traced() && (shown || request.flags & CLONE_PTRACE != 0);
    if request.flags & CLONE_THREAD != 0 {
        parent.process.threaded.store(true, Ordering::Relaxed);
        if traced {
            links::inherit(&mut tree, parent, child);
        }
        return true;
    }
    let Some(node) = tree.nodes.get(&parent.process.pid) else { return false };
    let (pgid, sid) = (node.pgid, node.sid);
    let (parent_pid, exit_signal) = if request.flags & CLONE_PARENT != 0 && node.parent != super::tree::INIT {
        (node.parent, node.exit_signal)
    } else {
        (parent.process.pid, request.exit_signal)
    };
    if let Some(real) = tree.nodes.get_mut(&parent_pid) {
        real.children.push(child.process.pid);
    }
    tree.add(Node {
        process: child.process.clone(),
        parent: parent_pid,
        children: Vec::new(),
        pgid,
        sid,
        exit_signal,
        creator: parent.tid(),
        subreaper: false,
        zombie: None,
        tracer: None,
        ghosts: 0,
        stop_event: None,
        cont_event: false,
        uid,
    });
    if traced {
        links::inherit(&mut tree, parent, child);
    }
    drop(tree);
    crate::time::posix::watch_limit(&parent.kernel, &child.process);
    parent.kernel.report.born(child.process.pid, parent_pid);
    true
}
