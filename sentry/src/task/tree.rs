//! Pids and the relations between processes: parents, groups, sessions, zombies.
//!
//! Pid 1 is a virtual init inside the sentry: orphans become its children and are reaped at once. The first program is
//! pid 2; when it ends, so does the sandbox.

use super::limits::Limits;
use super::sched::{InitSettings, Sched};
use super::{Process, Task};
use crate::fail::SysResult;
use crate::sync::{Guard, Level, Lock};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use syscall_table::abi::wait::WaitStatus;
use syscall_table::errno::Errno;

/// Pid of the virtual init.
pub const INIT: i32 = 1;
/// Pid of the first program.
pub const FIRST: i32 = 2;
/// One past the highest pid (as /proc/sys/kernel/pid_max has it).
pub const PID_MAX: i32 = 4_194_304;

/// How the sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The first program ended with this wait status.
    Status(WaitStatus),
    /// It could not be started.
    NotStarted(Errno),
    /// The working directory that was asked for cannot be entered.
    NoPlace(Errno),
}

/// All processes and tasks.
pub struct Tree {
    /// What was set of the virtual init.
    pub init: InitSettings,
    state: Lock<State>,
    ending: parking_lot::Mutex<Option<Ending>>,
    ended: parking_lot::Condvar,
    on_stop: std::sync::OnceLock<Box<dyn Fn(i32) + Send + Sync>>,
}

impl Default for Tree {
    fn default() -> Self {
        Tree {
            init: InitSettings {
                sched: Lock::new(Level::Field, Sched::default()),
                limits: Lock::new(Level::Process, Limits::default()),
            },
            state: Lock::new(Level::Tree, State::default()),
            ending: parking_lot::Mutex::new(None),
            ended: parking_lot::Condvar::new(),
            on_stop: std::sync::OnceLock::new(),
        }
    }
}

/// What the tree knows of one process, living or zombie.
pub struct Node {
    /// The process.
    pub process: Arc<Process>,
    /// Pid of the parent.
    pub parent: i32,
    /// Pids of children.
    pub children: Vec<i32>,
    /// Process group.
    pub pgid: i32,
    /// Session.
    pub sid: i32,
    /// Signal that the parent gets at exit; 0 is none.
    pub exit_signal: i32,
    /// The task that made it, as long as that task's process is the parent (__WNOTHREAD).
    pub creator: i32,
    /// PR_SET_CHILD_SUBREAPER.
    pub subreaper: bool,
    /// Wait status once all tasks have ended.
    pub zombie: Option<WaitStatus>,
    /// A stop that no wait has reported yet.
    pub stop_event: Option<i32>,
    /// A continuation that no wait has reported yet.
    pub cont_event: bool,
    /// Real user id, for siginfo and waits.
    pub uid: u32,
    /// Pid of the process that traces its leader (ptrace(2)).
    pub tracer: Option<i32>,
    /// Tracees among its other tasks that have ended and that nobody has waited for: it is no zombie before that.
    pub ghosts: usize,
}

/// The tree's contents, under its lock.
#[derive(Default)]
pub struct State {
    /// By pid. [`State::add`] puts them in.
    pub nodes: BTreeMap<i32, Node>,
    /// How many processes have a number as their group's, and how many as their session's, together.
    members: HashMap<i32, usize>,
    /// Living tasks by tid.
    pub tasks: HashMap<i32, Arc<Task>>,
    /// Numbers of tasks that are being made, and whose they are.
    pub making: HashMap<i32, u32>,
    /// In which namespace a number has further ones (see [`super::pidns`]).
    pub(super) numbered: HashMap<i32, Arc<super::pidns::PidNs>>,
    /// Who traces whom.
    pub links: Vec<crate::ptrace::links::Link>,
    last: i32,
    /// Numbers have been given a second time: any may be in use.
    wrapped: bool,
    /// CPU time of processes that nobody waited for.
    lost: platform::CpuTime,
    /// Tasks that use an address space, by its identity.
    mm_users: HashMap<usize, usize>,
    /// Somebody outside continues the first program when job control stops it.
    shell_outside: bool,
}

impl State {
    /// A number that nobody has, by the wish of somebody who has the `right` to one.
    ///
    /// # Errors
    /// EINVAL: no number of a process; EPERM; EEXIST.
    pub(crate) fn claim_pid(&mut self, pid: i32, right: bool) -> SysResult<i32> {
        if !(1..PID_MAX).contains(&pid) {
            return Err(Errno::EINVAL.into());
        }
        if !right {
            return Err(Errno::EPERM.into());
        }
        if pid == INIT || self.is_used(pid) {
            return Err(Errno::EEXIST.into());
        }
        // The next ones are looked for with care.
        self.wrapped |= pid > self.last;
        Ok(pid)
    }

    pub(super) fn is_used(&self, pid: i32) -> bool {
        // Groups and sessions outlive their leaders.
        self.tasks.contains_key(&pid)
            || self.making.contains_key(&pid)
            || self.nodes.contains_key(&pid)
            || self.members.contains_key(&pid)
            || self.links.iter().any(|link| link.task.tid() == pid)
    }

    /// Puts a process in.
    pub(crate) fn add(&mut self, node: Node) {
        for number in [node.pgid, node.sid] {
            *self.members.entry(number).or_insert(0) += 1;
        }
        self.nodes.insert(node.process.pid, node);
    }

    fn leave(&mut self, number: i32) {
        if let Some(count) = self.members.get_mut(&number) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.members.remove(&number);
                self.strike(number);
            }
        }
    }

    /// Puts a process into another group and, if there is one, session.
    ///
    /// # Errors
    /// ESRCH.
    pub(crate) fn regroup(&mut self, pid: i32, pgid: i32, sid: Option<i32>) -> SysResult<()> {
        let node = self.node_mut(pid)?;
        let old_group = std::mem::replace(&mut node.pgid, pgid);
        let old_session = sid.map(|sid| std::mem::replace(&mut node.sid, sid));
        for number in [Some(pgid), sid].into_iter().flatten() {
            *self.members.entry(number).or_insert(0) += 1;
        }
        [Some(old_group), old_session].into_iter().flatten().for_each(|number| self.leave(number));
        Ok(())
    }

    pub(crate) fn new_pid(&mut self) -> SysResult<i32> {
        for _ in 0..PID_MAX {
            if self.last >= PID_MAX - 1 {
                self.last = 300;
                self.wrapped = true;
            }
            let next = (self.last + 1).max(FIRST);
            self.last = next;
            if !(self.wrapped && self.is_used(next)) {
                return Ok(next);
            }
        }
        Err(Errno::EAGAIN.into())
    }

    pub(crate) fn mm_get(&mut self, mm: &Arc<crate::mm::Mm>) {
        *self.mm_users.entry(Arc::as_ptr(mm) as usize).or_insert(0) += 1;
    }

    /// True when the last user is gone.
    pub(crate) fn mm_put(&mut self, mm: &Arc<crate::mm::Mm>) -> bool {
        let key = Arc::as_ptr(mm) as usize;
        match self.mm_users.get_mut(&key) {
            Some(users) if *users > 1 => {
                *users -= 1;
                false
            }
            _ => {
                self.mm_users.remove(&key);
                true
            }
        }
    }

    /// Tasks that use an address space.
    pub(crate) fn mm_users(&self, mm: &Arc<crate::mm::Mm>) -> usize {
        self.mm_users.get(&(Arc::as_ptr(mm) as usize)).copied().unwrap_or(0)
    }

    /// The node of a process that is no reaped one.
    pub fn node(&self, pid: i32) -> SysResult<&Node> {
        self.nodes.get(&pid).ok_or(Errno::ESRCH.into())
    }

    /// The node, to be changed.
    pub fn node_mut(&mut self, pid: i32) -> SysResult<&mut Node> {
        self.nodes.get_mut(&pid).ok_or(Errno::ESRCH.into())
    }

    /// Processes of a group.
    pub fn group(&self, pgid: i32) -> impl Iterator<Item = &Node> {
        self.nodes.values().filter(move |n| n.pgid == pgid)
    }

    /// Whether no member of the group has a parent in another group of the same session (setpgid(2)).
    pub fn is_orphaned(&self, pgid: i32) -> bool {
        !self.group(pgid).any(|n| {
            // The first program is the child of a shell that only the launcher knows.
            let outside = || self.shell_outside && n.process.pid == FIRST;
            let inside = || self.nodes.get(&n.parent).is_some_and(|p| p.pgid != pgid && p.sid == n.sid);
            n.zombie.is_none() && (outside() || inside())
        })
    }

    /// Who gets the children of `pid`: the nearest living ancestor that is a subreaper, else init.
    pub(crate) fn reaper_of(&self, pid: i32) -> i32 {
        let ns = self.nodes.get(&pid).map(|node| node.process.pidns.clone());
        let outside = |node: &Node| ns.as_ref().is_some_and(|ns| ns.level != node.process.pidns.level);
        let mut at = self.nodes.get(&pid).map_or(INIT, |n| n.parent);
        while let Some(node) = self.nodes.get(&at).filter(|node| !outside(node)) {
            if node.subreaper && node.zombie.is_none() && !node.process.is_exiting() {
                return at;
            }
            at = node.parent;
        }
        let own = ns.as_ref().and_then(|ns| ns.init()).filter(|init| *init != pid);
        own.filter(|init| self.nodes.get(init).is_some_and(|node| node.zombie.is_none())).unwrap_or(INIT)
    }

    /// Takes a zombie out that nobody waits for.
    pub(crate) fn forget(&mut self, pid: i32) {
        if let Some(node) = self.nodes.get(&pid) {
            let cpu = super::usage::legacy(&node.process).cpu;
            self.lost.user = self.lost.user.saturating_add(cpu.user);
            self.lost.system = self.lost.system.saturating_add(cpu.system);
        }
        self.reap(pid);
    }

    /// Tasks that count: the living, those that are being made, and ended tracees that nobody has waited for.
    pub(crate) fn counted(&self) -> usize {
        let ended = self.links.iter().filter(|link| link.end.is_some()).count();
        self.tasks.len().saturating_add(self.making.len()).saturating_add(ended)
    }

    /// Takes a zombie out for good.
    pub(crate) fn reap(&mut self, pid: i32) {
        let of_its = |link: &mut crate::ptrace::links::Link| link.task.process.pid == pid;
        let numbers: Vec<i32> = self.links.extract_if(.., of_its).map(|link| link.task.tid()).collect();
        let Some(node) = self.nodes.remove(&pid) else { return };
        node.process.reaped.store(true, std::sync::atomic::Ordering::Relaxed);
        if let Some(parent) = self.nodes.get_mut(&node.parent) {
            parent.children.retain(|c| *c != pid);
        }
        numbers.into_iter().chain([pid]).for_each(|number| self.strike(number));
        [node.pgid, node.sid].into_iter().for_each(|number| self.leave(number));
    }
}

impl Tree {
    /// The contents. Takes [`Level::Tree`].
    #[track_caller]
    pub fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// A living task by tid.
    ///
    /// # Errors
    /// ESRCH.
    pub fn task(&self, tid: i32) -> SysResult<Arc<Task>> {
        self.state.lock().tasks.get(&tid).cloned().ok_or(Errno::ESRCH.into())
    }

    /// A process by pid, zombies included.
    ///
    /// # Errors
    /// ESRCH.
    pub fn process(&self, pid: i32) -> SysResult<Arc<Process>> {
        Ok(self.state.lock().node(pid)?.process.clone())
    }

    /// All processes, zombies included, by ascending pid.
    pub fn processes(&self) -> Vec<Arc<Process>> {
        self.state.lock().nodes.values().map(|n| n.process.clone()).collect()
    }

    /// Pid of a process's parent; 0 when it is unknown.
    pub fn parent(&self, pid: i32) -> i32 {
        self.state.lock().nodes.get(&pid).map_or(0, |n| n.parent)
    }

    /// Process group of a process; 0 when it is unknown.
    pub fn pgid(&self, pid: i32) -> i32 {
        self.state.lock().nodes.get(&pid).map_or(0, |n| n.pgid)
    }

    /// Session of a process; 0 when it is unknown.
    pub fn sid(&self, pid: i32) -> i32 {
        self.state.lock().nodes.get(&pid).map_or(0, |n| n.sid)
    }

    /// Processes of a group, zombies included.
    pub fn members(&self, pgid: i32) -> Vec<Arc<Process>> {
        self.state.lock().group(pgid).map(|n| n.process.clone()).collect()
    }

    /// Session of a process group; None when the group is empty.
    pub fn group_session(&self, pgid: i32) -> Option<i32> {
        self.state.lock().group(pgid).next().map(|n| n.sid)
    }

    /// CPU time of processes that ended and that nobody waited for.
    pub fn lost_cpu(&self) -> platform::CpuTime {
        self.state.lock().lost
    }

    /// How many pids and tids have been given, at most [`PID_MAX`].
    pub fn pids_given(&self) -> i32 {
        self.state.lock().last
    }

    /// Number of living tasks.
    pub fn task_count(&self) -> usize {
        self.state.lock().tasks.len()
    }

    pub(crate) fn set_ending(&self, ending: Ending) {
        let mut slot = self.ending.lock();
        if slot.is_none() {
            *slot = Some(ending);
            self.ended.notify_all();
        }
    }

    /// Says whether a shell outside continues the first program when job control stops it.
    pub fn set_shell_outside(&self, there: bool) {
        self.state.lock().shell_outside = there;
    }

    /// Sets what is called when job control stops the first program, with the signal. The first call wins.
    pub fn on_stop(&self, told: Box<dyn Fn(i32) + Send + Sync>) {
        let _ = self.on_stop.set(told);
    }

    pub(crate) fn first_stopped(&self, signal: i32) {
        if let Some(told) = self.on_stop.get() {
            told(signal);
        }
    }

    /// Waits (sleeping) until the sandbox has ended. For the sentry's main thread.
    pub fn wait_ending(&self) -> Ending {
        let mut slot = self.ending.lock();
        loop {
            if let Some(ending) = *slot {
                return ending;
            }
            self.ended.wait(&mut slot);
        }
    }
}
