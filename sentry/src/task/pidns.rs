//! Numbers of processes by namespace (pid_namespaces(7)).
//!
//! Inside the kernel a task has one number, that of the sandbox's first namespace. A namespace below it gives further
//! ones, which exist at the system call alone: what a call names is looked up in the caller's namespace, what it is
//! answered is said as that one calls it, 0 for who is not in it.

use super::tree::{PID_MAX, State};
use super::userns::UserNs;
use super::{Process, Task};
use crate::fail::SysResult;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use syscall_table::errno::Errno;

/// How deep they go (MAX_PID_NS_LEVEL).
const DEEPEST: usize = 32;
/// Most of them at once: each keeps its tables.
const MOST: usize = 4096;
/// A number that nobody has.
pub(crate) const NOBODY: i32 = i32::MAX;

/// What each namespace calls a task (struct pid of Linux). It outlives the task: who hears of it later is told what it
/// was called.
#[derive(Debug, Clone, Default)]
pub struct Name {
    pid: i32,
    /// Namespace and number, from the first one below the sandbox's down to the task's own.
    below: Option<Arc<[(u64, i32)]>>,
}

impl Name {
    /// The kernel's number; 0: nobody's name.
    pub fn kernel(&self) -> i32 {
        self.pid
    }

    /// What a namespace calls it; 0: it is not in that.
    pub fn in_ns(&self, ns: &PidNs) -> i32 {
        let Some(at) = ns.level.checked_sub(1) else { return self.pid };
        let known = self.below.as_ref().and_then(|below| below.get(at));
        known.filter(|(ino, _)| *ino == ns.ino).map_or(0, |(_, number)| *number)
    }

    /// What it calls itself.
    pub fn own(&self) -> i32 {
        self.below.as_ref().and_then(|below| below.last()).map_or(self.pid, |(_, number)| *number)
    }

    /// Its numbers from a namespace that it is in down to its own.
    pub(crate) fn from(&self, ns: &PidNs) -> Vec<i32> {
        let below = self.below.iter().flat_map(|below| below.iter());
        std::iter::once(self.pid).chain(below.map(|(_, number)| *number)).skip(ns.level).collect()
    }
}

/// A namespace of pids.
pub struct PidNs {
    /// Number in /proc/PID/ns/pid.
    pub ino: u64,
    /// 0 is the sandbox's.
    pub level: usize,
    /// Whose rights count in it.
    pub owner: Arc<UserNs>,
    /// The one above it.
    pub parent: Option<Arc<PidNs>>,
    /// A leaf lock: nothing else is taken while it is held.
    numbers: Mutex<Numbers>,
}

#[derive(Default)]
struct Numbers {
    /// The kernel's number of each of its own.
    global: HashMap<i32, i32>,
    /// The other way round.
    local: HashMap<i32, i32>,
    last: i32,
    /// The kernel's number of its init, once there was one.
    init: Option<i32>,
    /// Its init has ended: nobody comes any more.
    closed: bool,
}

static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

impl Drop for PidNs {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
    }
}

impl PidNs {
    fn new(ino: u64, owner: Arc<UserNs>, parent: Option<Arc<PidNs>>) -> Arc<PidNs> {
        COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let level = parent.as_ref().map_or(0, |parent| parent.level.saturating_add(1));
        Arc::new(PidNs { ino, level, owner, parent, numbers: Mutex::default() })
    }

    /// The sandbox's.
    pub fn first() -> Arc<PidNs> {
        static FIRST: OnceLock<Arc<PidNs>> = OnceLock::new();
        FIRST.get_or_init(|| PidNs::new(4_026_531_836, UserNs::first(), None)).clone()
    }

    /// An empty one below this one.
    ///
    /// # Errors
    /// ENOSPC: too deep, or too many.
    pub(crate) fn below(self: &Arc<Self>, ino: u64, owner: Arc<UserNs>) -> SysResult<Arc<PidNs>> {
        if self.level >= DEEPEST || COUNT.load(std::sync::atomic::Ordering::Relaxed) > MOST {
            return Err(Errno::ENOSPC.into());
        }
        Ok(PidNs::new(ino, owner, Some(self.clone())))
    }

    /// What it calls the kernel's `pid`; 0: that is not in it.
    pub fn local(&self, pid: i32) -> i32 {
        if self.level == 0 {
            return pid;
        }
        self.numbers.lock().local.get(&pid).copied().unwrap_or(0)
    }

    /// Whom it calls `pid`; [`NOBODY`] if nobody.
    pub fn global(&self, pid: i32) -> i32 {
        if self.level == 0 {
            return pid;
        }
        self.numbers.lock().global.get(&pid).copied().unwrap_or(NOBODY)
    }

    /// Whether it is `other` or below it.
    pub fn is_within(&self, other: &PidNs) -> bool {
        self.ino == other.ino || self.parent.as_ref().is_some_and(|parent| parent.is_within(other))
    }

    /// Itself and those above it, without the sandbox's.
    fn chain(self: &Arc<Self>) -> impl Iterator<Item = Arc<PidNs>> {
        let next = |ns: &Arc<PidNs>| ns.parent.clone().filter(|parent| parent.level > 0);
        std::iter::successors(Some(self.clone()).filter(|ns| ns.level > 0), next)
    }

    /// Numbers of `pid` in all namespaces from this one down to that of its task.
    pub(crate) fn all(&self, task: &Arc<PidNs>, pid: i32) -> Vec<i32> {
        let mut all: Vec<i32> = task.chain().map(|ns| ns.local(pid)).collect();
        all.push(pid);
        all.reverse();
        all.split_off(self.level.min(all.len().saturating_sub(1)))
    }

    /// The kernel's number of its init, as long as that lives.
    pub(crate) fn init(&self) -> Option<i32> {
        let numbers = self.numbers.lock();
        numbers.init.filter(|_| !numbers.closed)
    }

    /// Whether there was ever somebody in it.
    pub(crate) fn has_begun(&self) -> bool {
        self.level == 0 || self.numbers.lock().init.is_some()
    }

    /// Nobody comes any more: its init ends.
    pub(crate) fn close(&self) {
        self.numbers.lock().closed = true;
    }

    /// Whether its init, or that of one above it, has ended or is about to.
    pub(crate) fn has_ended(self: &Arc<Self>) -> bool {
        self.chain().any(|ns| ns.numbers.lock().closed)
    }

    /// The number that was given last.
    pub(crate) fn last(&self) -> i32 {
        self.numbers.lock().last
    }

    /// Whether somebody with the `right` to it may have this number.
    fn check(&self, wanted: i32, right: bool) -> SysResult<()> {
        let numbers = self.numbers.lock();
        // The first one is its init.
        if !(1..PID_MAX).contains(&wanted) || numbers.init.is_none() && wanted != 1 {
            return Err(Errno::EINVAL.into());
        }
        if !right {
            return Err(Errno::EPERM.into());
        }
        if numbers.global.contains_key(&wanted) { Err(Errno::EEXIST.into()) } else { Ok(()) }
    }

    fn give(&self, pid: i32, wanted: Option<i32>) -> SysResult<i32> {
        let mut numbers = self.numbers.lock();
        if numbers.closed {
            return Err(Errno::ENOMEM.into());
        }
        let number = match wanted {
            Some(wanted) => wanted,
            None => numbers.free()?,
        };
        numbers.global.insert(number, pid);
        numbers.local.insert(pid, number);
        if number == 1 {
            numbers.init = Some(pid);
        }
        Ok(number)
    }

    fn take(&self, pid: i32) {
        let mut numbers = self.numbers.lock();
        if let Some(number) = numbers.local.remove(&pid) {
            numbers.global.remove(&number);
            if numbers.init == Some(pid) && !numbers.closed {
                // It was never made.
                numbers.init = None;
                numbers.last = 0;
            }
        }
    }
}

impl Numbers {
    fn free(&mut self) -> SysResult<i32> {
        for _ in 0..PID_MAX {
            self.last =
                if self.last >= PID_MAX.saturating_sub(1) { 300 } else { self.last.saturating_add(1) };
            if !self.global.contains_key(&self.last) {
                return Ok(self.last);
            }
        }
        Err(Errno::EAGAIN.into())
    }
}

impl State {
    /// A name in `ns` and those above it: in `ns` the first number that is wanted, in its parent the second, and so on.
    ///
    /// # Errors
    /// ENOMEM: the namespace's init has ended. EINVAL: more numbers than namespaces, or no number of a process. EPERM
    /// without the `right` in one of those namespaces. EEXIST. EAGAIN: no number is free.
    pub(crate) fn enroll(
        &mut self,
        ns: &Arc<PidNs>,
        wanted: &[i32],
        right: impl Fn(&UserNs) -> bool,
    ) -> SysResult<Name> {
        if wanted.len() > ns.level.saturating_add(1) {
            return Err(Errno::EINVAL.into());
        }
        for (one, wanted) in ns.chain().zip(wanted) {
            one.check(*wanted, right(&one.owner))?;
        }
        let pid = match wanted.get(ns.level) {
            Some(wanted) => self.claim_pid(*wanted, right(&UserNs::first()))?,
            None => self.new_pid()?,
        };
        if ns.level == 0 {
            return Ok(Name { pid, below: None });
        }
        let mut below = Vec::with_capacity(ns.level);
        for (at, one) in ns.chain().enumerate() {
            match one.give(pid, wanted.get(at).copied()) {
                Ok(number) => below.push((one.ino, number)),
                Err(fail) => {
                    ns.chain().for_each(|one| one.take(pid));
                    return Err(fail);
                }
            }
        }
        below.reverse();
        self.numbered.insert(pid, ns.clone());
        Ok(Name { pid, below: Some(below.into()) })
    }

    /// A task, a group or a session of this number may be gone: its numbers in namespaces go when nothing has it any more.
    pub(crate) fn strike(&mut self, pid: i32) {
        if self.numbered.contains_key(&pid)
            && !self.is_used(pid)
            && let Some(ns) = self.numbered.remove(&pid)
        {
            ns.chain().for_each(|one| one.take(pid));
        }
    }

    /// Processes in a namespace and those below it.
    pub(crate) fn within(&self, ns: &PidNs) -> Vec<Arc<Process>> {
        self.nodes.values().map(|node| node.process.clone()).filter(|one| one.pidns.is_within(ns)).collect()
    }
}

impl Process {
    /// Whether it is, or was, the init of a namespace below the sandbox's.
    pub(crate) fn is_init(&self) -> bool {
        self.pidns.level > 0 && self.name.own() == 1
    }

    /// What another one calls it.
    pub(crate) fn seen_by(&self, other: &Process) -> i32 {
        self.name.in_ns(&other.pidns)
    }
}

impl Task {
    /// What its namespace calls the kernel's `pid`; 0: that is not in it.
    pub(crate) fn shown(&self, pid: i32) -> i32 {
        self.process.pidns.local(pid)
    }

    /// Whom it calls `pid`; [`NOBODY`] if nobody. Negative numbers are groups.
    pub(crate) fn meant(&self, pid: i32) -> i32 {
        let ns = &self.process.pidns;
        match pid {
            _ if ns.level == 0 => pid,
            1.. => ns.global(pid),
            i32::MIN | -1 | 0 => pid,
            group => ns.global(group.saturating_neg()).saturating_neg(),
        }
    }

    /// What each namespace calls it.
    pub(crate) fn name(&self) -> &Name {
        // Of two numbers one is left after execve(2).
        if self.tid() == self.process.pid { &self.process.name } else { &self.name }
    }

    /// What the namespace of its tracer calls the kernel's `pid`.
    pub(crate) fn tracer_sees(&self, pid: i32) -> i32 {
        self.tracing.tracer().map_or(pid, |tracer| tracer.shown(pid))
    }

    /// What it calls itself, which is what it writes into futexes.
    pub(crate) fn own_tid(&self) -> i32 {
        self.name().own()
    }
}
