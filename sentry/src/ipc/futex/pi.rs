//! Futexes with an owner (FUTEX_LOCK_PI and kin, futex(2)).
//!
//! The word holds the owner's tid; user code takes a free lock and gives up an uncontended one by compare-and-swap,
//! without a call. Nobody here can compare and swap guest memory, but no tid needs the word's highest byte (tids stay
//! below 2^22), so the flags can be set by storing that byte alone: after FUTEX_WAITERS was stored, user code can neither
//! take nor give up the lock, and what is read then stays true as long as the queues are locked.
//!
//! Waiters are served by real-time priority, then in order. The host's threads inherit no priority: none has any.

use super::{Futexes, Held, Place, Places, Slot, State, WAKES, load, store};
use crate::fail::SysResult;
use crate::mm::{Key, Mm};
use crate::task::Task;
use crate::task::pidns::PidNs;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// How often an owner is looked for that changes meanwhile; then EAGAIN, as when it is about to exit.
const TRIES: usize = 16;
/// How long a chain of waiting owners may be (Linux's max_lock_depth).
const CHAIN: usize = 1024;

/// A lock that somebody waits for.
pub(super) struct PiLock {
    owner: i32,
    waiters: VecDeque<Arc<Slot>>,
}

/// A lock's word as the caller sees it.
#[derive(Clone, Copy)]
pub struct LockWord<'a> {
    /// The caller's memory.
    pub mm: &'a Arc<Mm>,
    /// What the word is known by.
    pub key: Key,
    /// Where it is.
    pub addr: u64,
    /// Whose numbers it holds.
    pub ns: &'a PidNs,
}

impl LockWord<'_> {
    /// The kernel's number of who holds it; 0 is nobody.
    fn holder(&self, value: u32) -> i32 {
        match tid_of(value) {
            0 => 0,
            tid => self.ns.global(tid),
        }
    }
}

enum Claim {
    /// The word says so already.
    Taken,
    /// Held by this task, which lives.
    Held(i32),
    /// Held by this task, which must be looked for first.
    Who(i32),
}

fn tid_of(word: u32) -> i32 {
    (word & FUTEX_TID_MASK) as i32
}

impl State {
    /// Tries to take a lock for a task. `more`: others will wait for it. `owner`: who was found to hold it.
    fn claim(&mut self, word: LockWord<'_>, tid: i32, more: bool, owner: Option<&Task>) -> SysResult<Claim> {
        let LockWord { mm, key, addr, ns } = word;
        let value = load(mm, addr)?;
        if word.holder(value) == tid {
            return Err(Errno::EDEADLK.into());
        }
        if let Some(lock) = self.locks.get(&key) {
            let holder = word.holder(value);
            let orphan = value & FUTEX_OWNER_DIED != 0 && holder == 0;
            if holder != lock.owner && !orphan {
                return Err(Errno::EINVAL.into());
            }
            if self.would_deadlock(lock.owner, tid) {
                return Err(Errno::EDEADLK.into());
            }
            return Ok(Claim::Held(lock.owner));
        }
        if self.queues.contains_key(&key) {
            return Err(Errno::EINVAL.into());
        }
        let flags = (value >> 24) as u8 | (FUTEX_WAITERS >> 24) as u8;
        mm.space.write(addr.wrapping_add(3), &[flags])?;
        let value = load(mm, addr)?;
        let holder = word.holder(value);
        if holder == 0 {
            let waiters = if more { FUTEX_WAITERS } else { 0 };
            store(mm, addr, value & FUTEX_OWNER_DIED | waiters | ns.local(tid).cast_unsigned())?;
            return Ok(Claim::Taken);
        }
        if holder == tid {
            return Err(Errno::EDEADLK.into());
        }
        match owner {
            Some(owner) if owner.tid() == holder => {
                if owner.futex_closed.load(Ordering::SeqCst) {
                    return Err(Errno::ESRCH.into());
                }
                if self.would_deadlock(holder, tid) {
                    return Err(Errno::EDEADLK.into());
                }
                Ok(Claim::Held(holder))
            }
            _ => Ok(Claim::Who(holder)),
        }
    }

    fn would_deadlock(&self, owner: i32, tid: i32) -> bool {
        let mut at = owner;
        for _ in 0..CHAIN {
            if at == tid {
                return true;
            }
            match self.waiting.get(&at).and_then(|key| self.locks.get(key)) {
                Some(lock) => at = lock.owner,
                None => return false,
            }
        }
        true
    }

    /// Queues a slot for a lock.
    fn enter_lock(&mut self, key: Key, owner: i32, slot: Arc<Slot>) {
        *slot.place.lock() = Place { key, lock: true };
        self.waiting.insert(slot.tid, key);
        let lock = self.locks.entry(key).or_insert_with(|| PiLock { owner, waiters: VecDeque::new() });
        let at = lock.waiters.iter().position(|other| other.priority < slot.priority);
        lock.waiters.insert(at.unwrap_or(lock.waiters.len()), slot);
    }

    pub(super) fn leave_lock(&mut self, slot: &Arc<Slot>, key: &Key) {
        self.waiting.remove(&slot.tid);
        if let Some(lock) = self.locks.get_mut(key) {
            lock.waiters.retain(|s| !Arc::ptr_eq(s, slot));
            if lock.waiters.is_empty() {
                self.locks.remove(key);
            }
        }
    }

    /// Gives a lock to its first waiter that lives; `flags` go into the word. False if there is none.
    fn hand_over(&mut self, key: &Key, flags: u32, held: &mut Held) -> bool {
        let Some(mut lock) = self.locks.remove(key) else { return false };
        while let Some(slot) = lock.waiters.pop_front() {
            self.waiting.remove(&slot.tid);
            if !slot.lives(held) {
                continue;
            }
            if let Some(mm) = slot.word.0.upgrade() {
                // A word that is unmapped meanwhile is the waiter's loss alone.
                let _ = store(&mm, slot.word.1, slot.local.cast_unsigned() | FUTEX_WAITERS | flags);
                held.spaces.push(mm);
            }
            lock.owner = slot.tid;
            slot.wake();
            if !lock.waiters.is_empty() {
                self.locks.insert(*key, lock);
            }
            return true;
        }
        false
    }

    /// A call that was given a lock ends without saying so: the lock goes on.
    pub(super) fn give_back(&mut self, slot: &Slot, key: &Key, held: &mut Held) {
        if self.locks.get(key).is_some_and(|lock| lock.owner != slot.tid) {
            return;
        }
        let Some(mm) = slot.word.0.upgrade() else { return };
        let own = load(&mm, slot.word.1).is_ok_and(|word| tid_of(word) == slot.local);
        if own && !self.hand_over(key, 0, held) {
            let _ = store(&mm, slot.word.1, 0);
        }
        held.spaces.push(mm);
    }
}

impl Futexes {
    /// Runs `step` with the state locked until it does not ask for an owner any more.
    fn with_owner<T>(
        &self,
        task: &Task,
        mut step: impl FnMut(&mut State, Option<&Task>, &mut Held) -> SysResult<Result<T, i32>>,
    ) -> SysResult<T> {
        let mut owner: Option<Arc<Task>> = None;
        let mut missing = 0;
        for _ in 0..TRIES {
            let mut held = Held::default();
            let mut state = self.state.lock();
            let who = match step(&mut state, owner.as_deref(), &mut held)? {
                Ok(value) => return Ok(value),
                Err(who) => who,
            };
            drop(state);
            if who == missing {
                return Err(Errno::ESRCH.into());
            }
            match task.kernel.tree.task(who) {
                Ok(found) => owner = Some(found),
                // It may have exited just now and have left the word to somebody else: looked at once more.
                Err(_) => missing = who,
            }
        }
        Err(Errno::EAGAIN.into())
    }

    /// FUTEX_LOCK_PI, and FUTEX_TRYLOCK_PI with `try_only`. None: the caller has the lock.
    ///
    /// # Errors
    /// EDEADLK, ESRCH, EAGAIN (for `try_only` too), EINVAL, EFAULT.
    pub fn lock_pi(&self, task: &Arc<Task>, word: LockWord<'_>, try_only: bool) -> SysResult<Option<Places>> {
        let slot =
            self.with_owner(task, |state, owner, _| match state.claim(word, task.tid(), false, owner)? {
                Claim::Taken => Ok(Ok(None)),
                Claim::Who(tid) => Ok(Err(tid)),
                Claim::Held(_) if try_only => Err(Errno::EAGAIN.into()),
                Claim::Held(owner) => {
                    let place = Place { key: word.key, lock: true };
                    let slot = Slot::new(task, place, u32::MAX, None, (Arc::downgrade(word.mm), word.addr));
                    state.enter_lock(word.key, owner, slot.clone());
                    Ok(Ok(Some(slot)))
                }
            })?;
        Ok(slot.map(|slot| Places::new(vec![slot], task, word.mm)))
    }

    /// FUTEX_UNLOCK_PI.
    ///
    /// # Errors
    /// EPERM when the caller does not own it; EINVAL, EFAULT.
    pub fn unlock_pi(&self, task: &Task, word: LockWord<'_>) -> SysResult<()> {
        let mut held = Held::default();
        let mut state = self.state.lock();
        if tid_of(load(word.mm, word.addr)?) != task.own_tid() {
            return Err(Errno::EPERM.into());
        }
        match state.locks.get(&word.key) {
            Some(lock) if lock.owner != task.tid() => return Err(Errno::EINVAL.into()),
            None if state.queues.contains_key(&word.key) => return Err(Errno::EINVAL.into()),
            _ => {}
        }
        if !state.hand_over(&word.key, 0, &mut held) {
            store(word.mm, word.addr, 0)?;
        }
        drop(state);
        Ok(())
    }

    /// FUTEX_CMP_REQUEUE_PI: the first waiter of `from` gets the lock if it is free, up to `moved` others (and the first)
    /// wait for it.
    ///
    /// # Errors
    /// EAGAIN, EINVAL, EDEADLK, ESRCH, EFAULT.
    pub fn requeue_pi(
        &self,
        task: &Task,
        (from, addr): (Key, u64),
        to: LockWord<'_>,
        moved: usize,
        expected: u32,
    ) -> SysResult<usize> {
        self.with_owner(task, |state, owner, held| {
            WAKES.fetch_add(1, Ordering::SeqCst);
            if load(to.mm, addr)? != expected {
                return Err(Errno::EAGAIN.into());
            }
            let top = loop {
                let Some(list) = state.queues.get_mut(&from) else { return Ok(Ok(0)) };
                match list.front().cloned() {
                    Some(slot) if slot.lives(held) => break slot,
                    Some(_) => {
                        list.pop_front();
                    }
                    None => {
                        state.queues.remove(&from);
                    }
                }
            };
            if top.target != Some(to.key) {
                return Err(Errno::EINVAL.into());
            }
            let (owner, mut count, limit) = match state.claim(to, top.tid, moved > 0, owner)? {
                Claim::Who(tid) => return Ok(Err(tid)),
                Claim::Held(owner) => (owner, 0, moved.saturating_add(1)),
                Claim::Taken => {
                    let place = Place { key: from, lock: false };
                    state.remove(&top, &place);
                    *top.place.lock() = Place { key: to.key, lock: true };
                    top.wake();
                    (top.tid, 1, moved.saturating_add(1))
                }
            };
            while count < limit
                && let Some(slot) = state.queues.get_mut(&from).and_then(VecDeque::pop_front)
            {
                if slot.target != Some(to.key) {
                    state.queues.entry(from).or_default().push_front(slot);
                    return Err(Errno::EINVAL.into());
                }
                state.enter_lock(to.key, owner, slot);
                count += 1;
            }
            if state.queues.get(&from).is_some_and(VecDeque::is_empty) {
                state.queues.remove(&from);
            }
            Ok(Ok(count))
        })
    }
}

/// A task ends (`closed`) or gives up its memory: the locks it holds go to their waiters, marked.
pub(super) fn release(task: &Task, closed: bool) {
    let tid = task.tid();
    let mut held = Held::default();
    let mut state = task.kernel.futexes.state.lock();
    if closed {
        task.futex_closed.store(true, Ordering::SeqCst);
    }
    let owned: Vec<Key> =
        state.locks.iter().filter(|(_, lock)| lock.owner == tid).map(|(key, _)| *key).collect();
    for key in owned {
        state.hand_over(&key, FUTEX_OWNER_DIED, &mut held);
    }
    drop(state);
    drop(held);
}
