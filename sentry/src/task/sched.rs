//! Scheduling parameters: what the guest set is what it reads; the host schedules.

use super::Task;
use super::creds::{Creds, cap};
use super::limits::Limits;
use super::tree::{INIT, Tree};
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::sync::Lock;
use std::sync::{Arc, OnceLock};
use syscall_table::abi::sched::{SCHED_DEADLINE, SCHED_FIFO, SCHED_IDLE, SCHED_NORMAL, SCHED_RR};
use syscall_table::errno::Errno;

/// Of one task.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sched {
    /// SCHED_*.
    pub policy: i32,
    /// Real-time priority.
    pub priority: i32,
    /// -20 to 19.
    pub nice: i32,
    /// SCHED_RESET_ON_FORK.
    pub reset_on_fork: bool,
    /// Slice of the fair policies in nanoseconds; 0: the usual one.
    pub slice: u64,
    /// SCHED_DEADLINE: runtime, deadline and period in nanoseconds.
    pub deadline: [u64; 3],
    /// SCHED_FLAG_RECLAIM, SCHED_FLAG_DL_OVERRUN.
    pub deadline_flags: u64,
    /// Processors allowed; None: all.
    pub affinity: Option<u64>,
    /// ioprio_set(2).
    pub ioprio: u16,
    /// PR_SET_TIMERSLACK in nanoseconds; 0 stands for the default of 50,000.
    pub timer_slack: u64,
}

/// Classes of ioprio_set(2), three bits from here.
const CLASS_SHIFT: u16 = 13;
pub const IOPRIO_CLASS_NONE: u16 = 0;
pub const IOPRIO_CLASS_RT: u16 = 1;
pub const IOPRIO_CLASS_BE: u16 = 2;
pub const IOPRIO_CLASS_IDLE: u16 = 3;

/// The class of a value of ioprio_set(2).
pub fn ioprio_class(value: u16) -> u16 {
    value >> CLASS_SHIFT
}

impl Sched {
    /// SCHED_FIFO, SCHED_RR.
    pub fn is_real_time(&self) -> bool {
        matches!(self.policy, SCHED_FIFO | SCHED_RR)
    }

    /// What a new task begins with (sched(7), "Resetting scheduling policy for child processes").
    pub fn of_child(self) -> Sched {
        if !self.reset_on_fork {
            return self;
        }
        let (policy, priority, nice) = match self.policy {
            SCHED_FIFO | SCHED_RR | SCHED_DEADLINE => (SCHED_NORMAL, 0, 0),
            other => (other, self.priority, self.nice.max(0)),
        };
        let (deadline, deadline_flags) = ([0; 3], 0);
        Sched { policy, priority, nice, reset_on_fork: false, slice: 0, deadline, deadline_flags, ..self }
    }

    /// The I/O priority that counts: of a task that has set none it follows from policy and nice value.
    pub fn effective_ioprio(&self) -> u16 {
        if ioprio_class(self.ioprio) != IOPRIO_CLASS_NONE {
            return self.ioprio;
        }
        let class = match self.policy {
            SCHED_IDLE => IOPRIO_CLASS_IDLE,
            SCHED_FIFO | SCHED_RR => IOPRIO_CLASS_RT,
            _ => IOPRIO_CLASS_BE,
        };
        let level = u16::try_from((self.nice + 20) / 5).unwrap_or(0);
        class << CLASS_SHIFT | level
    }
}

static PROCESSORS: OnceLock<rustix::thread::CpuSet> = OnceLock::new();

/// Remembers which processors the sentry may use. To be called before threads of it are kept off some.
pub(crate) fn know_processors() {
    let _ = PROCESSORS.set(rustix::thread::sched_getaffinity(None).unwrap_or_default());
}

/// Has the host keep the task's thread on the processors that it may use. The guest's processors are the sentry's, in their
/// order. Call it when they change, and when the task gets another thread of the host's.
pub(crate) fn place(task: &Task) {
    let Some(set) = task.sched.lock().affinity else { return };
    let own = PROCESSORS.get_or_init(|| rustix::thread::sched_getaffinity(None).unwrap_or_default());
    let mut chosen = rustix::thread::CpuSet::new();
    let mine = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| own.is_set(*cpu));
    for (at, cpu) in mine.enumerate().take(64) {
        if set >> at & 1 != 0 {
            chosen.set(cpu);
        }
    }
    // A thread that is gone has no place; it matters to nobody.
    if let Some(tid) = rustix::process::Pid::from_raw(task.control().host_tid()) {
        let _ = rustix::thread::sched_setaffinity(Some(tid), &chosen);
    }
}

/// The task ends: its thread of the host's may be another task's next.
pub(crate) fn unplace(task: &Task) {
    if task.sched.lock().affinity.is_some() {
        task.sched.lock().affinity = Some(u64::MAX);
        place(task);
    }
}

/// What can be set of the virtual init, which has no task.
pub struct InitSettings {
    /// Its scheduling parameters.
    pub sched: Lock<Sched>,
    /// Its resource limits.
    pub limits: Lock<Limits>,
}

/// Whom a scheduling call is about.
#[derive(Clone)]
pub enum Subject<'a> {
    /// A task.
    Task(Arc<Task>),
    /// The virtual init.
    Init(&'a InitSettings),
}

impl<'a> Subject<'a> {
    /// By tid; 0 is the caller.
    ///
    /// # Errors
    /// ESRCH.
    pub fn find(cx: &Cx<'a>, tid: i32) -> SysResult<Subject<'a>> {
        let tree: &'a Tree = &cx.task.kernel.tree;
        match tid {
            0 => Ok(Subject::Task(cx.task.clone())),
            INIT => Ok(Subject::Init(&tree.init)),
            tid => tree.task(tid).map(Subject::Task),
        }
    }

    /// Its parameters.
    pub fn sched(&self) -> &Lock<Sched> {
        match self {
            Subject::Task(task) => &task.sched,
            Subject::Init(init) => &init.sched,
        }
    }

    /// A soft limit of its process.
    pub fn limit(&self, resource: u32) -> u64 {
        match self {
            Subject::Task(task) => task.process.limit(resource),
            Subject::Init(init) => init.limits.lock().soft(resource),
        }
    }

    /// Its real and effective user ids.
    pub fn uids(&self) -> (u32, u32) {
        match self {
            Subject::Task(task) => {
                let creds = task.creds();
                (creds.uid, creds.euid)
            }
            Subject::Init(_) => (0, 0),
        }
    }

    /// Whether somebody with `own` credentials may change its policy, nice value or processors.
    pub fn yields_to(&self, own: &Creds) -> bool {
        let (uid, euid) = self.uids();
        own.euid == uid || own.euid == euid || own.capable(cap::SYS_NICE)
    }

    /// [`yields_to`](Self::yields_to) the caller.
    ///
    /// # Errors
    /// EPERM.
    pub fn check_owner(&self, cx: &Cx) -> SysResult<()> {
        if self.yields_to(&cx.task.creds()) { Ok(()) } else { Err(Errno::EPERM.into()) }
    }

    /// Whether RLIMIT_NICE lets its nice value become this without privilege.
    pub fn may_have_nice(&self, nice: i32) -> bool {
        // The limit counts from 1 (nice 19) to 40 (nice -20).
        (20 - nice) as u64 <= self.limit(syscall_table::abi::getrlimit::RLIMIT_NICE)
    }
}
