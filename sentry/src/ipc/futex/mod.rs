//! Futex queues (futex(2)).
//!
//! One lock guards all queues, and the word is read with it held: a waker that changed the word before it called finds
//! the waiter queued, or the waiter finds the word changed.
//!
//! - This file: waiting, waking, requeueing; [`pi`]: locks with an owner; [`robust`]: the end of a task.

pub mod pi;
pub mod robust;

use crate::fail::SysResult;
use crate::mm::{Key, Mm};
use crate::sync::{Level, Lock};
use crate::task::Task;
use crate::wait::{Ready, WaitQueue};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Wake-ups so far, of waiters or of nobody. Counted with the lock held.
static WAKES: AtomicU64 = AtomicU64::new(0);

/// How many wake-ups there have been. Whoever looks before a task goes on knows by [`Seen`] that what the task then read is what
/// a waiter may go by.
pub(crate) fn wakes() -> u64 {
    WAKES.load(Ordering::SeqCst)
}

/// A word's value as the task's side read it after [`wakes`] was so many. As long as it still is, whoever changes the word has yet to
/// call for those that wait for it, and finds them queued.
pub struct Seen {
    /// The value.
    pub value: u32,
    /// The number.
    pub wakes: u64,
}

/// Arcs that were made with the queues locked. They are dropped after the lock is gone: the last Arc of a task or space
/// takes the lock itself, or locks that come before it.
#[derive(Default)]
struct Held {
    tasks: Vec<Arc<Task>>,
    spaces: Vec<Arc<Mm>>,
}

#[derive(Default)]
struct State {
    /// Waiters that are woken.
    queues: HashMap<Key, VecDeque<Arc<Slot>>>,
    /// Waiters that are given a lock.
    locks: HashMap<Key, pi::PiLock>,
    /// Which lock a task (tid) waits for.
    waiting: HashMap<i32, Key>,
}

/// All futexes of the sandbox.
pub struct Futexes {
    state: Lock<State>,
}

impl Default for Futexes {
    fn default() -> Self {
        Futexes { state: Lock::new(Level::Futex, State::default()) }
    }
}

/// One word to wait for.
pub struct Word {
    /// What it is known by.
    pub key: Key,
    /// Where it is.
    pub addr: u64,
    /// What it must hold.
    pub expected: u32,
    /// Which wake-ups count.
    pub bitset: u32,
}

/// Where a slot is queued. Changed under the state's lock alone.
#[derive(Clone, Copy)]
struct Place {
    key: Key,
    /// In `locks`, not in `queues`.
    lock: bool,
}

/// One waiter's place in one queue.
pub struct Slot {
    place: Lock<Place>,
    bitset: u32,
    woken: AtomicBool,
    queue: WaitQueue,
    task: Weak<Task>,
    tid: i32,
    /// What its namespace calls it.
    local: i32,
    /// Real-time priority: who gets a lock first.
    priority: i32,
    /// The lock that FUTEX_WAIT_REQUEUE_PI may be moved to.
    target: Option<Key>,
    /// The lock's word in the waiter's own memory.
    word: (Weak<Mm>, u64),
}

impl Slot {
    fn new(
        task: &Arc<Task>,
        place: Place,
        bitset: u32,
        target: Option<Key>,
        word: (Weak<Mm>, u64),
    ) -> Arc<Slot> {
        Arc::new(Slot {
            place: Lock::new(Level::Ready, place),
            bitset,
            woken: AtomicBool::new(false),
            queue: WaitQueue::new(),
            task: Arc::downgrade(task),
            tid: task.tid(),
            local: task.own_tid(),
            priority: task.sched.lock().priority,
            target,
            word,
        })
    }

    /// Whether a waker has taken it out of its queue, or it was given the lock.
    pub fn woken(&self) -> bool {
        self.woken.load(Ordering::SeqCst)
    }

    /// What to wait on.
    pub fn queue(&self) -> &WaitQueue {
        &self.queue
    }

    fn lives(&self, held: &mut Held) -> bool {
        let Some(task) = self.task.upgrade() else { return false };
        let dead = task.is_dead();
        held.tasks.push(task);
        !dead
    }

    fn wake(&self) {
        self.woken.store(true, Ordering::SeqCst);
        self.queue.wake(Ready::IN);
    }
}

/// Places kept by a waiting call. Dropped with the call: what still queues is taken out, and a wake-up or a lock that the
/// call did not report goes to another waiter.
#[derive(Default)]
pub struct Places {
    /// In the order of futex_waitv's array.
    pub slots: Vec<Arc<Slot>>,
    /// The call has reported the wake-up.
    pub reported: bool,
    kernel: Option<Arc<crate::kernel::Kernel>>,
    /// Keeps the space as long as a slot refers to it.
    _mm: Option<Arc<Mm>>,
}

impl Places {
    fn new(slots: Vec<Arc<Slot>>, task: &Arc<Task>, mm: &Arc<Mm>) -> Places {
        Places { slots, reported: false, kernel: Some(task.kernel.clone()), _mm: Some(mm.clone()) }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let Some(kernel) = &self.kernel else { return };
        let mut held = Held::default();
        let mut state = kernel.futexes.state.lock();
        for slot in &self.slots {
            let place = *slot.place.lock();
            match (slot.woken(), place.lock) {
                (true, _) if self.reported => {}
                (true, true) => state.give_back(slot, &place.key, &mut held),
                (true, false) => {
                    let _ = state.wake(&place.key, 1, u32::MAX, &mut held);
                }
                (false, _) => state.remove(slot, &place),
            }
        }
        drop(state);
    }
}

fn load(mm: &Mm, addr: u64) -> SysResult<u32> {
    let mut word = [0u8; 4];
    mm.space.read(addr, &mut word)?;
    Ok(u32::from_le_bytes(word))
}

fn store(mm: &Mm, addr: u64, word: u32) -> SysResult<()> {
    Ok(mm.space.write(addr, &word.to_le_bytes())?)
}

impl State {
    fn remove(&mut self, slot: &Arc<Slot>, place: &Place) {
        if place.lock {
            self.leave_lock(slot, &place.key);
        } else if let Some(list) = self.queues.get_mut(&place.key) {
            list.retain(|s| !Arc::ptr_eq(s, slot));
            if list.is_empty() {
                self.queues.remove(&place.key);
            }
        }
    }

    /// Wakes up to `count` waiters whose bit set meets `bitset`. EINVAL when one of them waits for a lock: only that one's
    /// owner and FUTEX_CMP_REQUEUE_PI may wake it.
    fn wake(&mut self, key: &Key, count: usize, bitset: u32, held: &mut Held) -> SysResult<usize> {
        WAKES.fetch_add(1, Ordering::SeqCst);
        if self.locks.contains_key(key) {
            return Err(Errno::EINVAL.into());
        }
        let Some(list) = self.queues.get_mut(key) else { return Ok(0) };
        let (mut woken, mut bad) = (0, false);
        list.retain(|slot| {
            if woken >= count || bad {
                return true;
            }
            if slot.target.is_some() {
                bad = true;
                return true;
            }
            if slot.bitset & bitset == 0 {
                return true;
            }
            if slot.lives(held) {
                slot.wake();
                woken += 1;
            }
            false
        });
        if list.is_empty() {
            self.queues.remove(key);
        }
        if bad { Err(Errno::EINVAL.into()) } else { Ok(woken) }
    }
}

impl Futexes {
    /// Queues the task on each word, or on none of them. `target`: the lock that a requeue may move it to, with the address
    /// of its word (FUTEX_WAIT_REQUEUE_PI). `seen`: the value of the one word, if it is known.
    ///
    /// # Errors
    /// EAGAIN when a word has another value; EFAULT.
    pub fn queue(
        &self,
        task: &Arc<Task>,
        mm: &Arc<Mm>,
        words: &[Word],
        target: Option<(Key, u64)>,
        seen: Option<Seen>,
    ) -> SysResult<Places> {
        let mut slots = Vec::with_capacity(words.len());
        let mut state = self.state.lock();
        let seen = seen.filter(|seen| seen.wakes == wakes()).map(|seen| seen.value);
        for word in words {
            let value = match seen {
                Some(value) => value,
                None => load(mm, word.addr)?,
            };
            if value != word.expected {
                return Err(Errno::EAGAIN.into());
            }
        }
        let lock_word = (Arc::downgrade(mm), target.map_or(0, |(_, addr)| addr));
        for word in words {
            let place = Place { key: word.key, lock: false };
            let slot = Slot::new(task, place, word.bitset, target.map(|(key, _)| key), lock_word.clone());
            state.queues.entry(word.key).or_default().push_back(slot.clone());
            slots.push(slot);
        }
        drop(state);
        Ok(Places::new(slots, task, mm))
    }

    /// Wakes up to `count` waiters whose bit set meets `bitset`.
    ///
    /// # Errors
    /// EINVAL when a waiter waits for a lock.
    pub fn wake(&self, key: &Key, count: usize, bitset: u32) -> SysResult<usize> {
        let mut held = Held::default();
        let woken = self.state.lock().wake(key, count, bitset, &mut held);
        drop(held);
        woken
    }

    /// FUTEX_REQUEUE, FUTEX_CMP_REQUEUE: wakes `wake` waiters and moves up to `moved` others to another word. Returns the
    /// number of both together.
    ///
    /// # Errors
    /// EAGAIN when the word at `addr` is not `expected`; EFAULT; EINVAL when a waiter waits for a lock.
    pub fn requeue(
        &self,
        mm: &Mm,
        (from, addr): (Key, u64),
        to: Key,
        wake: usize,
        moved: usize,
        expected: Option<u32>,
    ) -> SysResult<usize> {
        let mut held = Held::default();
        let mut state = self.state.lock();
        WAKES.fetch_add(1, Ordering::SeqCst);
        if let Some(expected) = expected
            && load(mm, addr)? != expected
        {
            return Err(Errno::EAGAIN.into());
        }
        let woken = if wake == 0 { 0 } else { state.wake(&from, wake, u32::MAX, &mut held)? };
        let mut list = state.queues.remove(&from).unwrap_or_default();
        let mut count = 0;
        let mut bad = false;
        let mut to_list = VecDeque::new();
        while count < moved
            && let Some(slot) = list.pop_front()
        {
            if slot.target.is_some() {
                list.push_front(slot);
                bad = true;
                break;
            }
            slot.place.lock().key = to;
            to_list.push_back(slot);
            count += 1;
        }
        if !to_list.is_empty() {
            let queue = state.queues.entry(to).or_default();
            queue.append(&mut to_list);
        }
        if !list.is_empty() {
            // With one word for both, those not reached stay in front.
            let queue = state.queues.entry(from).or_default();
            list.append(queue);
            *queue = list;
        }
        drop(state);
        if bad { Err(Errno::EINVAL.into()) } else { Ok(woken + count) }
    }

    /// FUTEX_WAKE_OP: changes the second word by `op`, wakes waiters of the first, and of the second if its old value
    /// compares true. The change is not atomic against the guest's own instructions.
    ///
    /// # Errors
    /// EFAULT, ENOSYS; EINVAL when a waiter waits for a lock.
    pub fn wake_op(
        &self,
        mm: &Mm,
        first: &Key,
        (second, addr): (Key, u64),
        counts: (usize, usize),
        op: u32,
    ) -> SysResult<usize> {
        let mut held = Held::default();
        let mut state = self.state.lock();
        let old = load(mm, addr)?;
        // Both arguments are signed 12-bit numbers.
        let arg = ((op << 8) as i32) >> 20;
        let cmp_arg = ((op << 20) as i32) >> 20;
        let arg = if op >> 28 & FUTEX_OP_OPARG_SHIFT != 0 { 1u32 << (arg & 31) } else { arg as u32 };
        let new = match op >> 28 & 7 {
            FUTEX_OP_SET => arg,
            FUTEX_OP_ADD => old.wrapping_add(arg),
            FUTEX_OP_OR => old | arg,
            FUTEX_OP_ANDN => old & !arg,
            FUTEX_OP_XOR => old ^ arg,
            _ => return Err(Errno::ENOSYS.into()),
        };
        store(mm, addr, new)?;
        let signed = old as i32;
        let holds = match op >> 24 & 15 {
            FUTEX_OP_CMP_EQ => signed == cmp_arg,
            FUTEX_OP_CMP_NE => signed != cmp_arg,
            FUTEX_OP_CMP_LT => signed < cmp_arg,
            FUTEX_OP_CMP_LE => signed <= cmp_arg,
            FUTEX_OP_CMP_GT => signed > cmp_arg,
            FUTEX_OP_CMP_GE => signed >= cmp_arg,
            _ => return Err(Errno::ENOSYS.into()),
        };
        let mut woken = state.wake(first, counts.0, u32::MAX, &mut held)?;
        if holds {
            woken += state.wake(&second, counts.1, u32::MAX, &mut held)?;
        }
        drop(state);
        Ok(woken)
    }
}

/// Wakes up to `count` waiters on a word of the task's memory (private and shared).
pub fn wake_address(task: &Task, addr: u64, count: usize) {
    let mm = task.mm();
    let private = mm.key(addr, true);
    let shared = mm.key(addr, false);
    let woken = task.kernel.futexes.wake(&private, count, u32::MAX).unwrap_or(0);
    if shared != private && woken < count {
        let _ = task.kernel.futexes.wake(&shared, count - woken, u32::MAX);
    }
}
