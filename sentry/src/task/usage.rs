//! What tasks and processes have used (getrusage(2), times(2), wait4(2)).
//!
//! CPU time of guest code is the host's own count of the guest's host process, divided into user and system time as
//! the host divides it. The time that the sentry spends on a task's calls is system time of that task. What needs the
//! host's last word, which comes when it has reaped a host process (faults, resident memory), is waited for by those
//! who ask for it ([`settle`]).

use super::{Process, Task};
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::kernel::Kernel;
use crate::sync::{Level, Lock};
use crate::wait::{Listener, Ready, WaitQueue};
use platform::{CpuTime, Rusage as Used};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use syscall_table::abi::clock_gettime::Timeval;
use syscall_table::abi::getrlimit::Rusage;
use syscall_table::errno::Errno;

/// Of one process.
#[derive(Default)]
pub struct Usage {
    /// Address spaces that it has left, and what the sentry did for tasks that have ended.
    pub ended: Used,
    /// Children that were waited for, and theirs.
    pub children: Used,
    /// What was shown last: CPU time never goes back, though its division is an estimate.
    shown: CpuTime,
    /// Spaces left, and those of waited-for children, whose last usage the host has not told yet.
    own_pending: Vec<Arc<Pending>>,
    children_pending: Vec<Arc<Pending>>,
}

/// A host process that is not reaped yet.
struct Pending {
    /// What is to be added when it is known.
    rest: Lock<Option<Used>>,
    queue: WaitQueue,
}

impl Pending {
    fn rest(&self) -> Option<Used> {
        *self.rest.lock()
    }
}

/// Adds up two usages; of the largest resident size the greater one.
pub fn plus(a: Used, b: Used) -> Used {
    Used {
        cpu: cpu_plus(a.cpu, b.cpu),
        max_rss: a.max_rss.max(b.max_rss),
        minor_faults: a.minor_faults.saturating_add(b.minor_faults),
        major_faults: a.major_faults.saturating_add(b.major_faults),
        blocks_in: a.blocks_in.saturating_add(b.blocks_in),
        blocks_out: a.blocks_out.saturating_add(b.blocks_out),
        voluntary: a.voluntary.saturating_add(b.voluntary),
        involuntary: a.involuntary.saturating_add(b.involuntary),
    }
}

fn cpu_plus(a: CpuTime, b: CpuTime) -> CpuTime {
    CpuTime { user: a.user.saturating_add(b.user), system: a.system.saturating_add(b.system) }
}

/// User and system time together.
pub fn sum(cpu: CpuTime) -> Duration {
    cpu.user.saturating_add(cpu.system)
}

/// What the sentry has spent on the task.
fn served(task: &Task) -> Duration {
    Duration::from_nanos(task.served.load(Ordering::Relaxed))
}

/// What the task has used in spaces that it has left by execve(2).
fn before(task: &Task) -> Duration {
    Duration::from_nanos(task.cpu_before.load(Ordering::Relaxed))
}

/// What the task has used by itself up to now, for [`moved`]. Called by execve(2) before it gives up the space.
pub(crate) fn until_move(cx: &mut Cx) -> Duration {
    let task = cx.task.clone();
    let asked = match is_alone(&task.process) {
        true => None,
        // The process's time has that of threads which have ended.
        false => cx.port().ok().and_then(|port| port.rusage(true).ok()),
    };
    match asked {
        Some(used) => sum(used.cpu).saturating_add(before(&task)),
        None => of_task(&task).saturating_sub(served(&task)),
    }
}

/// The task goes on in another space: its own clock does not begin anew.
pub(crate) fn moved(task: &Task, used: Duration) {
    task.cpu_before.store(u64::try_from(used.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    task.process.threaded.store(false, Ordering::Relaxed);
}

/// Whether the process's time is that of its one task.
pub(crate) fn is_alone(process: &Process) -> bool {
    process.thread_count() == 1 && !process.threaded.load(Ordering::Relaxed)
}

/// A task of the process whose space is the process's own: not of a vfork child, which runs in its parent's.
fn own_space(process: &Process) -> Option<Arc<Task>> {
    process.any_thread().filter(|task| task.vfork.lock().is_none())
}

/// CPU time of a process, without its children's.
pub fn of_process(process: &Process) -> CpuTime {
    crate::time::ticks::calibrate();
    let now = own_space(process).and_then(|task| task.space().cpu_time()).unwrap_or_default();
    let system = process.threads().iter().map(|task| served(task)).sum::<Duration>();
    let mut usage = process.usage.lock();
    let cpu = cpu_plus(cpu_plus(usage.ended.cpu, now), CpuTime { user: Duration::ZERO, system });
    usage.show(cpu)
}

/// The sum of [`of_process`], without an estimate in it.
pub fn sum_of_process(process: &Process) -> Duration {
    let now = own_space(process).and_then(|task| task.space().cpu_sum()).unwrap_or_default();
    let system = process.threads().iter().map(|task| served(task)).sum::<Duration>();
    let ended = sum(process.usage.lock().ended.cpu);
    ended.saturating_add(now).saturating_add(system)
}

impl Usage {
    /// `cpu` divided so that neither part is less than when it was shown last (as the kernel's cputime_adjust does).
    fn show(&mut self, cpu: CpuTime) -> CpuTime {
        let total = sum(cpu).max(sum(self.shown));
        let user = cpu.user.clamp(self.shown.user, total.saturating_sub(self.shown.system));
        self.shown = CpuTime { user, system: total.saturating_sub(user) };
        self.shown
    }
}

/// CPU time of the calling task itself, which the host tells nobody else.
///
/// # Errors
/// `NeedPort`.
pub fn of_caller(cx: &mut Cx) -> SysResult<Used> {
    let mut used = cx.port()?.rusage(true)?;
    let task = cx.task;
    used.cpu.user = used.cpu.user.saturating_add(before(task));
    used.cpu.system = used.cpu.system.saturating_add(served(task));
    used.voluntary = task.parks.load(Ordering::Relaxed);
    seen(task, sum(used.cpu));
    Ok(used)
}

/// What the calling task's process has used until now.
///
/// # Errors
/// `NeedPort`.
pub fn of_own_process(cx: &mut Cx) -> SysResult<Used> {
    let alone = cx.task.vfork.lock().is_some();
    let now = cx.port()?.rusage(alone)?;
    let process = &cx.task.process;
    let cpu = of_process(process);
    let parks =
        process.threads().iter().map(|t| t.parks.load(Ordering::Relaxed)).fold(0, u64::saturating_add);
    let used = plus(process.usage.lock().ended, Used { voluntary: parks, ..now });
    Ok(Used { cpu, ..used })
}

/// What others want to know of a task's CPU time.
#[derive(Default)]
pub struct Asked {
    due: AtomicBool,
    /// How often it was told.
    told: AtomicU64,
    queue: WaitQueue,
}

impl Asked {
    /// Has the task say what it has used, at its next event, which comes at once.
    pub fn ask(task: &Task) {
        task.asked.due.store(true, Ordering::SeqCst);
        task.control().kick();
    }

    /// The task has ended: nobody waits for its word any more.
    pub(crate) fn end(&self) {
        self.queue.wake(Ready::IN);
    }
}

/// At the start of an event: tells those who have asked, and fires the timers that are due by it.
pub(crate) fn tell(task: &Task, port: &mut dyn platform::Port) {
    if !task.asked.due.load(Ordering::SeqCst) || !port.full() {
        return;
    }
    task.asked.due.store(false, Ordering::SeqCst);
    if let Ok(used) = port.rusage(true) {
        seen(task, sum(used.cpu).saturating_add(served(task)).saturating_add(before(task)));
    }
    task.asked.told.fetch_add(1, Ordering::SeqCst);
    task.asked.queue.wake(Ready::IN);
    task.process.timers.check();
}

fn seen(task: &Task, time: Duration) {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    task.cpu_seen.fetch_max(nanos, Ordering::Relaxed);
}

/// How often the other task had told its time when it was asked.
#[derive(Default)]
struct Since(Option<u64>);

/// CPU time of another thread of the caller's process, which is asked for it.
///
/// # Errors
/// Blocks; EINVAL when it has ended.
pub fn of_other(cx: &mut Cx, task: &Arc<Task>) -> SysResult<Duration> {
    if is_alone(&task.process) {
        return Ok(of_task(task));
    }
    cx.wait_on(&task.asked.queue, Ready::IN);
    let told = task.asked.told.load(Ordering::SeqCst);
    match cx.state::<Since>().0 {
        _ if task.is_dead() => return Err(Errno::EINVAL.into()),
        Some(before) if before != told => return Ok(of_task(task)),
        Some(_) => {}
        None => {
            cx.state::<Since>().0 = Some(told);
            Asked::ask(task);
        }
    }
    cx.block(Restart::NoIntr)
}

/// CPU time of any task, as far as it is known: its process's if there was no other, else what it was when it last
/// asked itself.
pub fn of_task(task: &Task) -> Duration {
    let seen = Duration::from_nanos(task.cpu_seen.load(Ordering::Relaxed));
    if is_alone(&task.process) && own_space(&task.process).is_some() {
        let all = sum_of_process(&task.process);
        let others = sum(task.process.usage.lock().ended.cpu);
        return all.saturating_sub(others).saturating_add(before(task)).max(seen);
    }
    seen.max(served(task))
}

/// The task has ended.
pub(crate) fn leave(task: &Task) {
    let (cpu, parks) = (served(task), task.parks.load(Ordering::Relaxed));
    let mut usage = task.process.usage.lock();
    usage.ended.cpu.system = usage.ended.cpu.system.saturating_add(cpu);
    usage.ended.voluntary = usage.ended.voluntary.saturating_add(parks);
}

/// The process leaves a space that nobody else uses. No lock but a call's is held.
pub(crate) fn leave_space(kernel: &Arc<Kernel>, process: &Arc<Process>, space: &dyn platform::Space) {
    let counted = space.cpu_time().unwrap_or_default();
    let pending = Arc::new(Pending { rest: Lock::new(Level::Report, None), queue: WaitQueue::new() });
    {
        let mut usage = process.usage.lock();
        usage.ended.cpu = cpu_plus(usage.ended.cpu, counted);
        usage.own_pending.push(pending.clone());
    }
    let kernel = Arc::downgrade(kernel);
    space.on_reaped(Box::new(move |last| {
        let cpu = CpuTime {
            user: last.cpu.user.saturating_sub(counted.user),
            system: last.cpu.system.saturating_sub(counted.system),
        };
        // Waiting is counted by the sentry: the host's count has each call's hand-over in it.
        *pending.rest.lock() = Some(Used { cpu, voluntary: 0, ..last });
        if !pending.queue.is_empty()
            && let Some(kernel) = kernel.upgrade()
        {
            // This thread may hold locks or have nobody who resumes tasks on it: the reactor does it.
            kernel.timers.arm(Duration::ZERO, pending, 0);
        }
    }));
}

impl Listener for Pending {
    fn fire(&self, _epoch: u64, _mask: Ready) -> bool {
        self.queue.wake(Ready::IN);
        true
    }

    fn alive(&self, _epoch: u64) -> bool {
        true
    }
}

/// Takes over what has become known.
fn fold(process: &Process) {
    let (own, children) = {
        let usage = process.usage.lock();
        if usage.own_pending.is_empty() && usage.children_pending.is_empty() {
            return;
        }
        (usage.own_pending.clone(), usage.children_pending.clone())
    };
    let known = |list: Vec<Arc<Pending>>| -> Vec<(Arc<Pending>, Used)> {
        list.into_iter().filter_map(|pending| pending.rest().map(|rest| (pending, rest))).collect()
    };
    let (own, children) = (known(own), known(children));
    let take = |list: &mut Vec<Arc<Pending>>, known: &[(Arc<Pending>, Used)], to: &mut Used| {
        for (pending, rest) in known {
            // Somebody else may have taken it over meanwhile.
            if let Some(at) = list.iter().position(|p| Arc::ptr_eq(p, pending)) {
                list.swap_remove(at);
                *to = plus(*to, *rest);
            }
        }
    };
    let mut usage = process.usage.lock();
    let usage = &mut *usage;
    take(&mut usage.own_pending, &own, &mut usage.ended);
    take(&mut usage.children_pending, &children, &mut usage.children);
}

/// Blocks until the host has told all about the spaces that the process (and its waited-for children) have left. They
/// have been killed, so this takes no longer than the host needs to end a process.
///
/// # Errors
/// Blocks.
pub fn settle(cx: &mut Cx, process: &Arc<Process>) -> SysResult<()> {
    let waiting = {
        let usage = process.usage.lock();
        usage.own_pending.iter().chain(&usage.children_pending).cloned().collect::<Vec<_>>()
    };
    for pending in &waiting {
        cx.wait_on(&pending.queue, Ready::IN);
    }
    if waiting.iter().any(|pending| pending.rest().is_none()) {
        return cx.block(Restart::Uninterruptible);
    }
    fold(process);
    Ok(())
}

/// All that a process that has ended leaves to whoever waits for it.
pub(crate) fn legacy(process: &Process) -> Used {
    let usage = process.usage.lock();
    plus(usage.ended, usage.children)
}

/// `parent` has waited for `child`.
pub(crate) fn inherit(parent: &Process, child: &Process) {
    fold(child);
    fold(parent);
    let mut left = child.usage.lock();
    let mut pending = std::mem::take(&mut left.own_pending);
    pending.append(&mut left.children_pending);
    let all = plus(left.ended, left.children);
    drop(left);
    let mut usage = parent.usage.lock();
    usage.children = plus(usage.children, all);
    usage.children_pending.append(&mut pending);
}

/// As getrusage(2) shows it.
pub fn rusage(used: Used) -> Rusage {
    let time = |t: Duration| Timeval { tv_sec: t.as_secs() as i64, tv_usec: i64::from(t.subsec_micros()) };
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Rusage {
        ru_utime: time(used.cpu.user),
        ru_stime: time(used.cpu.system),
        ru_maxrss: count(used.max_rss),
        ru_minflt: count(used.minor_faults),
        ru_majflt: count(used.major_faults),
        ru_inblock: count(used.blocks_in),
        ru_oublock: count(used.blocks_out),
        ru_nvcsw: count(used.voluntary),
        ru_nivcsw: count(used.involuntary),
        ..Rusage::default()
    }
}

/// In clock ticks of 10 ms.
pub fn ticks(time: Duration) -> i64 {
    i64::try_from(time.as_millis() / 10).unwrap_or(i64::MAX)
}
