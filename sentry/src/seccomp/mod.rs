//! Filters of system calls that the guest puts on itself (seccomp(2)).
//!
//! - [`bpf`]: the filters' programs.
//! - [`dispatch`]: calls that a program wants to make itself.
//! - [`judge`]: what a task's filters say of a call, before its handler runs.
//! - [`notify`]: SECCOMP_RET_USER_NOTIF, and the descriptor by which somebody else answers.
//!
//! They are the guest's own affair, as everything about its users and capabilities: they bind guest code alone. A task's
//! [`State`] changes under the tree's lock, so that a new thread has either what its creator had or what all threads were given
//! since (SECCOMP_FILTER_FLAG_TSYNC).

pub mod bpf;
pub mod dispatch;
pub(crate) mod judge;
pub(crate) mod notify;

use crate::fail::SysResult;
use crate::ptrace::links::hush;
use crate::sync::{Level, Lock};
use crate::task::Task;
use bpf::{Calls, Program};
use notify::Notifier;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use syscall_table::abi::seccomp::*;
use syscall_table::errno::Errno;

/// Most instructions of all filters that a call goes through (MAX_INSNS_PER_PATH).
const PATH_MOST: usize = 32_768;
/// What each filter counts beyond its program.
const PENALTY: usize = 4;

/// A task's filters.
pub struct State {
    mode: AtomicU8,
    count: AtomicU32,
    newest: Lock<Option<Arc<Filter>>>,
}

impl Default for State {
    fn default() -> Self {
        State { mode: AtomicU8::new(0), count: AtomicU32::new(0), newest: Lock::new(Level::Field, None) }
    }
}

impl State {
    /// Whether calls are judged at all.
    pub fn is_on(&self) -> bool {
        self.mode.load(Ordering::Relaxed) != 0
    }

    /// SECCOMP_MODE_*.
    pub fn mode(&self) -> u64 {
        u64::from(self.mode.load(Ordering::Relaxed))
    }

    /// How many filters there are.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// The newest filter, which knows the older ones.
    pub(crate) fn newest(&self) -> Option<Arc<Filter>> {
        self.newest.lock().clone()
    }

    /// Gives a new task what its creator has. Call it with the tree's lock held.
    pub(crate) fn inherit(&self, from: &State) {
        self.take_over(from.mode(), from.newest());
    }

    fn take_over(&self, mode: u64, newest: Option<Arc<Filter>>) {
        self.count.store(newest.as_ref().map_or(0, |f| f.count), Ordering::Relaxed);
        let old = std::mem::replace(&mut *self.newest.lock(), newest);
        // Modes are 0 to 2.
        self.mode.store(mode as u8, Ordering::SeqCst);
        drop(old);
    }

    /// The task has ended. No lock is held.
    pub(crate) fn leave(&self, tid: i32) {
        let newest = self.newest.lock().take();
        if let Some(notifier) = newest.as_ref().and_then(|f| f.listener()) {
            notifier.forget(tid);
        }
    }
}

/// Memory that the filters of a sandbox take.
#[derive(Default)]
pub struct Budget(AtomicUsize);

/// Most bytes of all filters: more than any program's, and less than would hurt.
const BUDGET: usize = 64 << 20;

impl Budget {
    fn take(&self, bytes: usize) -> SysResult<()> {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= BUDGET);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            Err(_) => Err(Errno::ENOMEM.into()),
        }
    }
}

/// A filter on top of older ones.
pub(crate) struct Filter {
    program: Program,
    older: Option<Arc<Filter>>,
    /// Calls that this and all older ones allow, whatever the arguments are.
    allows: Calls,
    /// This or an older one looks at the instruction pointer.
    reads_ip: bool,
    /// Instructions of all, with penalties.
    path: usize,
    count: u32,
    own_listener: Option<Arc<Notifier>>,
    /// SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV.
    killable: bool,
    log: bool,
    bytes: usize,
    budget: Arc<Budget>,
}

impl Filter {
    /// The listener of this filter or an older one, unless it was closed. There is one at most.
    pub(crate) fn listener(&self) -> Option<&Arc<Notifier>> {
        self.path_of().find_map(|f| f.own_listener.as_ref()).filter(|n| !n.is_closed())
    }

    /// Of this filter and all older ones the one with this number, the oldest being 0.
    pub(crate) fn nth(&self, number: u64) -> Option<&Filter> {
        self.path_of().find(|f| u64::from(f.count) == number.saturating_add(1))
    }

    /// Its program, as it was given.
    pub(crate) fn insns(&self) -> &[SockFilter] {
        self.program.insns()
    }

    /// SECCOMP_FILTER_FLAG_LOG.
    pub(crate) fn logs(&self) -> bool {
        self.log
    }

    /// This filter and all older ones, newest first.
    pub(crate) fn path_of(&self) -> impl Iterator<Item = &Filter> {
        std::iter::successors(Some(self), |f| f.older.as_deref())
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some(notifier) = &self.own_listener {
            notifier.orphaned();
        }
        // One after the other: there may be thousands.
        let mut next = self.older.take();
        while let Some(mut filter) = next.and_then(Arc::into_inner) {
            next = filter.older.take();
        }
    }
}

/// SECCOMP_SET_MODE_STRICT.
///
/// # Errors
/// EINVAL: there are filters.
pub(crate) fn set_strict(task: &Arc<Task>) -> SysResult<()> {
    let tree = task.kernel.tree.lock();
    if task.seccomp.mode() == SECCOMP_MODE_FILTER {
        return Err(Errno::EINVAL.into());
    }
    task.seccomp.take_over(SECCOMP_MODE_STRICT, None);
    drop(tree);
    hush(task);
    Ok(())
}

/// SECCOMP_SET_MODE_FILTER, once flags and program are known to be good: 0, or the thread that could not be given the filter.
///
/// # Errors
/// EINVAL in strict mode, EBUSY for a second listener, ENOMEM, ESRCH.
pub(crate) fn attach(
    task: &Arc<Task>,
    program: Program,
    flags: u32,
    listener: Option<Arc<Notifier>>,
) -> SysResult<u64> {
    let bytes = size_of::<Filter>().saturating_add(size_of_val(program.insns()));
    let budget = &task.kernel.seccomp;
    let tree = task.kernel.tree.lock();
    if task.seccomp.mode() == SECCOMP_MODE_STRICT {
        return Err(Errno::EINVAL.into());
    }
    let older = task.seccomp.newest();
    if listener.is_some() && older.as_ref().is_some_and(|f| f.listener().is_some()) {
        return Err(Errno::EBUSY.into());
    }
    let below = older.as_ref().map_or(0, |f| f.path.saturating_add(PENALTY));
    let path = below.saturating_add(program.weight());
    if path > PATH_MOST {
        return Err(Errno::ENOMEM.into());
    }
    let sync = flags & SECCOMP_FILTER_FLAG_TSYNC != 0;
    // Looked through once for all threads, under the lock.
    let line: HashSet<_> = older.iter().flat_map(|f| f.path_of()).map(std::ptr::from_ref).collect();
    let others: Vec<_> = task
        .process
        .threads()
        .into_iter()
        .filter(|t| sync && !Arc::ptr_eq(t, task) && !t.is_dead())
        .collect();
    if let Some(unable) = others.iter().find(|other| !can_follow(other, &line)) {
        if flags & SECCOMP_FILTER_FLAG_TSYNC_ESRCH != 0 {
            return Err(Errno::ESRCH.into());
        }
        return Ok(u64::from(unable.own_tid().unsigned_abs()));
    }
    budget.take(bytes)?;
    let mut allows = *program.allows();
    if let Some(older) = &older {
        for (word, also) in allows.iter_mut().zip(older.allows) {
            *word &= also;
        }
    }
    let filter = Arc::new(Filter {
        allows,
        reads_ip: program.reads_ip() || older.as_ref().is_some_and(|f| f.reads_ip),
        path,
        count: older.as_ref().map_or(0, |f| f.count).saturating_add(1),
        program,
        older,
        own_listener: listener,
        killable: flags & SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV != 0,
        log: flags & SECCOMP_FILTER_FLAG_LOG != 0,
        bytes,
        budget: budget.clone(),
    });
    let mut replaced = Vec::new();
    for other in others.iter().chain([task]) {
        replaced.push(other.seccomp.newest());
        other.seccomp.take_over(SECCOMP_MODE_FILTER, Some(filter.clone()));
        if task.no_new_privs.load(Ordering::Relaxed) {
            other.no_new_privs.store(true, Ordering::Relaxed);
        }
    }
    drop(tree);
    for other in others.iter().chain([task]) {
        hush(other);
    }
    // What others had is below what they have now: nothing ends with it.
    drop(replaced);
    Ok(0)
}

/// Whether a thread can be given what grows out of the filters `line`: it has none, or its newest is one of them.
fn can_follow(thread: &Task, line: &HashSet<*const Filter>) -> bool {
    match (thread.seccomp.mode(), thread.seccomp.newest()) {
        (SECCOMP_MODE_DISABLED, _) | (SECCOMP_MODE_FILTER, None) => true,
        (SECCOMP_MODE_FILTER, Some(newest)) => line.contains(&Arc::as_ptr(&newest)),
        _ => false,
    }
}
