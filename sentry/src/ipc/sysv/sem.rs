//! Semaphore sets (semget(2)).
//!
//! A blocked operation is tried again whenever its set changes. What is to be undone at exit is kept with the set, by the
//! list of the tasks that share it (CLONE_SYSVSEM).

use super::{Counter, Object, Perm, now};
use crate::fail::SysResult;
use crate::sync::{Guard, Level, Lock};
use crate::task::Task;
use crate::task::pidns::Name;
use crate::wait::{Ready, WaitQueue};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Most sets (kernel.sem, fourth).
pub const SEMMNI: usize = 32000;
/// Most semaphores of a set (kernel.sem, first).
pub const SEMMSL: usize = 32000;
/// Most semaphores of all sets (kernel.sem, second): Linux has more, none of which costs the guest anything.
pub const SEMMNS: usize = 1 << 20;
/// Most operations of one call (kernel.sem, third).
pub const SEMOPM: u32 = 500;
/// Largest value.
pub const SEMVMX: i32 = 32767;
/// Most adjustments to be undone.
const UNDOS: usize = 1 << 18;

/// One semaphore.
#[derive(Debug, Clone, Default)]
pub struct Sem {
    /// Its value.
    pub value: u16,
    /// Who changed it last.
    pub by: Name,
    /// How many wait for it to rise.
    pub rising: u32,
    /// How many wait for zero.
    pub zero: u32,
}

/// What a set holds.
pub struct State {
    /// Owners and mode.
    pub perm: Perm,
    /// Last semop(2).
    pub otime: i64,
    /// Last change by semctl(2).
    pub ctime: i64,
    /// Values.
    pub sems: Vec<Sem>,
    removed: bool,
    /// By list and semaphore.
    undo: BTreeMap<(u64, u16), i16>,
}

/// A set.
pub struct Set {
    state: Lock<State>,
    queue: WaitQueue,
}

impl State {
    /// A change by semctl(2).
    pub fn touch(&mut self) {
        self.ctime = now();
    }
}

impl Object for Set {
    fn perm(&self) -> Perm {
        self.state.lock_peer().perm
    }

    fn is_gone(&self) -> bool {
        false
    }
}

/// Why an operation cannot be done now: the semaphore, and whether its zero is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// Which operation of the array.
    pub operation: usize,
    /// Which semaphore.
    pub num: u16,
    /// For zero, else for a rise.
    pub zero: bool,
}

static NEXT_LIST: AtomicU64 = AtomicU64::new(1);

/// Who undoes together.
pub struct UndoList {
    id: u64,
    users: AtomicUsize,
    sets: Lock<BTreeSet<i32>>,
}

impl UndoList {
    fn new() -> Arc<UndoList> {
        Arc::new(UndoList {
            id: NEXT_LIST.fetch_add(1, Ordering::Relaxed),
            users: AtomicUsize::new(1),
            sets: Lock::new(Level::Field, BTreeSet::new()),
        })
    }
}

/// The task's list, made if it has none.
fn list(task: &Task) -> Arc<UndoList> {
    task.undo.lock().get_or_insert_with(UndoList::new).clone()
}

/// For a child with CLONE_SYSVSEM.
pub fn share(parent: &Task, child: &Task) {
    let list = list(parent);
    list.users.fetch_add(1, Ordering::SeqCst);
    *child.undo.lock() = Some(list);
}

/// The task ends, or leaves its list (unshare(2)): the last one undoes.
pub fn leave(task: &Task) {
    let Some(list) = task.undo.lock().take() else { return };
    if list.users.fetch_sub(1, Ordering::SeqCst) != 1 {
        return;
    }
    let sets = std::mem::take(&mut *list.sets.lock());
    let ipc = task.ipc();
    for id in sets {
        if let Ok(set) = ipc.sysv.sem.find(id) {
            set.undo(list.id, &task.process.name, &ipc.sysv.usage.undos);
        }
    }
}

impl Set {
    /// Of `count` semaphores.
    pub fn new(perm: Perm, count: usize) -> Set {
        let state = State {
            perm,
            otime: 0,
            ctime: now(),
            sems: vec![Sem::default(); count],
            removed: false,
            undo: BTreeMap::new(),
        };
        Set { state: Lock::new(Level::Object, state), queue: WaitQueue::new() }
    }

    /// Its contents.
    #[track_caller]
    pub fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// As [`lock`](Self::lock) with the table locked.
    #[track_caller]
    pub fn lock_peer(&self) -> Guard<'_, State> {
        self.state.lock_peer()
    }

    /// IPC_SET.
    pub fn set_perm(&self, new: &IpcPerm) {
        let mut state = self.state.lock();
        state.perm.set(new);
        state.touch();
    }

    /// Woken at every change.
    pub fn queue(&self) -> &WaitQueue {
        &self.queue
    }

    /// Something changed.
    pub fn wake(&self) {
        self.queue.wake(Ready::IN);
    }

    /// IPC_RMID. Returns how many semaphores and adjustments are gone.
    pub fn remove(&self) -> (usize, usize) {
        let mut state = self.state.lock();
        state.removed = true;
        let gone = (state.sems.len(), state.undo.len());
        state.undo.clear();
        drop(state);
        self.wake();
        gone
    }

    /// SETVAL, SETALL: nothing of these is undone any more. `num` None: all.
    pub fn forget_undo(state: &mut State, num: Option<u16>, count: &Counter) {
        let before = state.undo.len();
        state.undo.retain(|(_, at), _| num.is_some_and(|num| num != *at));
        count.give(before.saturating_sub(state.undo.len()));
    }

    /// semop(2): all operations at once, or none. Gives what blocks.
    ///
    /// # Errors
    /// EIDRM, ERANGE, ENOMEM.
    pub fn operate(&self, task: &Task, id: i32, ops: &[Sembuf]) -> SysResult<Result<(), Blocked>> {
        let undoing = ops.iter().any(|op| op.sem_flg & SEM_UNDO != 0);
        let list = undoing.then(|| list(task));
        let mut state = self.state.lock();
        if state.removed {
            return Err(Errno::EIDRM.into());
        }
        let mut changed: BTreeMap<u16, i32> = BTreeMap::new();
        let mut undo: BTreeMap<u16, i16> = BTreeMap::new();
        for (operation, op) in ops.iter().enumerate() {
            let sem = state.sems.get(usize::from(op.sem_num)).ok_or(Errno::EFBIG)?;
            let value = changed.get(&op.sem_num).copied().unwrap_or(i32::from(sem.value));
            let new = value + i32::from(op.sem_op);
            let zero = op.sem_op == 0;
            if zero && value != 0 || new < 0 {
                return Ok(Err(Blocked { operation, num: op.sem_num, zero }));
            }
            if new > SEMVMX {
                return Err(Errno::ERANGE.into());
            }
            if let Some(list) = list.as_ref().filter(|_| op.sem_flg & SEM_UNDO != 0) {
                let kept = state.undo.get(&(list.id, op.sem_num)).copied().unwrap_or(0);
                let adjust = undo.entry(op.sem_num).or_insert(kept);
                *adjust = adjust.checked_sub(op.sem_op).ok_or(Errno::ERANGE)?;
            }
            changed.insert(op.sem_num, new);
        }
        if let Some(list) = list {
            let new = undo.keys().filter(|num| !state.undo.contains_key(&(list.id, **num))).count();
            if !task.ipc().sysv.usage.undos.take(new, UNDOS) {
                return Err(Errno::ENOMEM.into());
            }
            for (num, adjust) in undo {
                state.undo.insert((list.id, num), adjust);
            }
            list.sets.lock().insert(id);
        }
        for (num, value) in changed {
            if let Some(sem) = state.sems.get_mut(usize::from(num)) {
                sem.value = u16::try_from(value).unwrap_or(0);
                sem.by = task.process.name.clone();
            }
        }
        state.otime = now();
        drop(state);
        if ops.iter().any(|op| op.sem_op != 0) {
            self.wake();
        }
        Ok(Ok(()))
    }

    fn undo(&self, list: u64, by: &Name, count: &Counter) {
        let mut state = self.state.lock();
        let range = (list, 0)..=(list, u16::MAX);
        let kept: Vec<(u16, i16)> =
            state.undo.range(range).map(|((_, num), adjust)| (*num, *adjust)).collect();
        for (num, adjust) in &kept {
            state.undo.remove(&(list, *num));
            if let Some(sem) = state.sems.get_mut(usize::from(*num)).filter(|_| *adjust != 0) {
                let value = (i32::from(sem.value) + i32::from(*adjust)).clamp(0, SEMVMX);
                sem.value = u16::try_from(value).unwrap_or(0);
                sem.by = by.clone();
            }
        }
        if !kept.is_empty() {
            state.otime = now();
        }
        drop(state);
        count.give(kept.len());
        self.wake();
    }
}

/// A blocked operation: counted at its semaphore as long as it waits.
#[derive(Default)]
pub struct Waiting {
    /// The set, found at the first attempt: the call goes on with it though its id may be another's by now.
    pub set: Option<Arc<Set>>,
    /// The operations, read at the first attempt.
    pub ops: Vec<Sembuf>,
    counted: Option<Blocked>,
}

impl Waiting {
    /// Counts it where it waits now.
    pub fn count(&mut self, at: Option<Blocked>) {
        let Some(set) = &self.set else { return };
        let mut state = set.state.lock();
        for (blocked, rise) in [(self.counted, false), (at, true)] {
            let Some(blocked) = blocked else { continue };
            let Some(sem) = state.sems.get_mut(usize::from(blocked.num)) else { continue };
            let count = if blocked.zero { &mut sem.zero } else { &mut sem.rising };
            *count = if rise { count.saturating_add(1) } else { count.saturating_sub(1) };
        }
        drop(state);
        self.counted = at;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.count(None);
    }
}
