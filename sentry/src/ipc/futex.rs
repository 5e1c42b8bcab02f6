//! Futex queues (futex(2)).
//!
//! One lock guards all queues, and the word is read with it held: a waker that changed the word before it called finds
//! the waiter queued, or the waiter finds the word changed.

use crate::fail::SysResult;
use crate::mm::{Key, Mm};
use crate::sync::{Level, Lock};
use crate::task::Task;
use crate::wait::{Ready, WaitQueue};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::{FromZeros, IntoBytes};

type Queues = HashMap<Key, VecDeque<Arc<Slot>>>;

/// All futexes of the sandbox.
pub struct Futexes {
    queues: Lock<Queues>,
}

impl Default for Futexes {
    fn default() -> Self {
        Futexes { queues: Lock::new(Level::Futex, HashMap::new()) }
    }
}

/// One waiter's place in one queue.
pub struct Slot {
    /// Changed by requeueing, under the queues' lock.
    key: Lock<Key>,
    bitset: u32,
    woken: AtomicBool,
    queue: WaitQueue,
    task: Weak<Task>,
}

impl Slot {
    /// Whether a waker has taken it out of its queue.
    pub fn woken(&self) -> bool {
        self.woken.load(Ordering::SeqCst)
    }

    /// What to wait on.
    pub fn queue(&self) -> &WaitQueue {
        &self.queue
    }

    fn wake(&self) -> bool {
        if self.task.upgrade().is_none_or(|task| task.is_dead()) {
            return false;
        }
        self.woken.store(true, Ordering::SeqCst);
        self.queue.wake(Ready::IN);
        true
    }
}

/// Places kept by a waiting call. Dropped with the call: what still queues is taken out, and a wake-up that the call did
/// not report goes to another waiter.
#[derive(Default)]
pub struct Places {
    /// In the order of futex_waitv's array.
    pub slots: Vec<Arc<Slot>>,
    /// The call has reported the wake-up.
    pub reported: bool,
    kernel: Option<Arc<crate::kernel::Kernel>>,
}

impl Drop for Places {
    fn drop(&mut self) {
        let Some(kernel) = &self.kernel else { return };
        let mut queues = kernel.futexes.queues.lock();
        for slot in &self.slots {
            let key = *slot.key.lock();
            if slot.woken() {
                if !self.reported {
                    wake_in(&mut queues, &key, 1, u32::MAX);
                }
                continue;
            }
            remove(&mut queues, &key, slot);
        }
    }
}

fn remove(queues: &mut Queues, key: &Key, slot: &Arc<Slot>) {
    if let Some(list) = queues.get_mut(key) {
        list.retain(|s| !Arc::ptr_eq(s, slot));
        if list.is_empty() {
            queues.remove(key);
        }
    }
}

fn wake_in(queues: &mut Queues, key: &Key, count: usize, bitset: u32) -> usize {
    let Some(list) = queues.get_mut(key) else { return 0 };
    let mut woken = 0;
    list.retain(|slot| {
        if woken >= count || slot.bitset & bitset == 0 {
            return true;
        }
        if slot.wake() {
            woken += 1;
        }
        false
    });
    if list.is_empty() {
        queues.remove(key);
    }
    woken
}

fn load(mm: &Mm, addr: u64) -> SysResult<u32> {
    let mut word = [0u8; 4];
    mm.space.read(addr, &mut word)?;
    Ok(u32::from_le_bytes(word))
}

impl Futexes {
    /// Queues the task on each word `(key, address, expected value, bitset)`, or on none of them.
    ///
    /// # Errors
    /// EAGAIN when a word has another value; EFAULT.
    pub fn queue(&self, task: &Arc<Task>, mm: &Mm, words: &[(Key, u64, u32, u32)]) -> SysResult<Places> {
        let mut slots = Vec::with_capacity(words.len());
        let mut queues = self.queues.lock();
        for (_, addr, expected, _) in words {
            if load(mm, *addr)? != *expected {
                return Err(Errno::EAGAIN.into());
            }
        }
        for (key, _, _, bitset) in words {
            let slot = Arc::new(Slot {
                key: Lock::new(Level::Ready, *key),
                bitset: *bitset,
                woken: AtomicBool::new(false),
                queue: WaitQueue::new(),
                task: Arc::downgrade(task),
            });
            queues.entry(*key).or_default().push_back(slot.clone());
            slots.push(slot);
        }
        Ok(Places { slots, reported: false, kernel: Some(task.kernel.clone()) })
    }

    /// Wakes up to `count` waiters whose bit set meets `bitset`.
    pub fn wake(&self, key: &Key, count: usize, bitset: u32) -> usize {
        wake_in(&mut self.queues.lock(), key, count, bitset)
    }

    /// FUTEX_REQUEUE, FUTEX_CMP_REQUEUE: wakes `wake` waiters and moves up to `moved` others to another word. Returns the
    /// number of both together.
    ///
    /// # Errors
    /// EAGAIN when the word at `addr` is not `expected`; EFAULT.
    pub fn requeue(
        &self,
        mm: &Mm,
        (from, addr): (Key, u64),
        to: Key,
        wake: usize,
        moved: usize,
        expected: Option<u32>,
    ) -> SysResult<usize> {
        let mut queues = self.queues.lock();
        if let Some(expected) = expected
            && load(mm, addr)? != expected
        {
            return Err(Errno::EAGAIN.into());
        }
        let woken = wake_in(&mut queues, &from, wake, u32::MAX);
        if from == to {
            return Ok(woken);
        }
        let mut list = queues.remove(&from).unwrap_or_default();
        let mut count = 0;
        while count < moved
            && let Some(slot) = list.pop_front()
        {
            *slot.key.lock() = to;
            queues.entry(to).or_default().push_back(slot);
            count += 1;
        }
        if !list.is_empty() {
            queues.insert(from, list);
        }
        Ok(woken + count)
    }

    /// FUTEX_WAKE_OP: changes the second word by `op`, wakes waiters of the first, and of the second if its old value
    /// compares true. The change is not atomic against the guest's own instructions.
    ///
    /// # Errors
    /// EFAULT, ENOSYS.
    pub fn wake_op(
        &self,
        mm: &Mm,
        first: &Key,
        (second, addr): (Key, u64),
        counts: (usize, usize),
        op: u32,
    ) -> SysResult<usize> {
        let mut queues = self.queues.lock();
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
        mm.space.write(addr, &new.to_le_bytes())?;
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
        let mut woken = wake_in(&mut queues, first, counts.0, u32::MAX);
        if holds {
            woken += wake_in(&mut queues, &second, counts.1, u32::MAX);
        }
        Ok(woken)
    }
}

/// Wakes up to `count` waiters on a word of the task's memory (private and shared).
pub fn wake_address(task: &Task, addr: u64, count: usize) {
    let mm = task.mm();
    let private = mm.key(addr, true);
    let shared = mm.key(addr, false);
    let woken = task.kernel.futexes.wake(&private, count, u32::MAX);
    if shared != private && woken < count {
        task.kernel.futexes.wake(&shared, count - woken, u32::MAX);
    }
}

/// Walks the robust list of a task that ends: marks its futexes' owners dead and wakes a waiter of each.
pub fn release_robust(task: &Task) {
    let head_at = task.robust_list.swap(0, Ordering::SeqCst);
    if head_at == 0 {
        return;
    }
    let mm = task.mm();
    let mut head = RobustListHead::new_zeroed();
    if mm.space.read(head_at, head.as_mut_bytes()).is_err() {
        return;
    }
    let mut at = head.list;
    for _ in 0..ROBUST_LIST_LIMIT {
        if at & !1 == head_at || at == 0 {
            break;
        }
        let mut next = [0u8; 8];
        if mm.space.read(at & !1, &mut next).is_err() {
            return;
        }
        if at != head.list_op_pending {
            release_one(task, &mm, (at & !1).wrapping_add_signed(head.futex_offset));
        }
        at = u64::from_le_bytes(next);
    }
    if head.list_op_pending != 0 {
        let addr = (head.list_op_pending & !1).wrapping_add_signed(head.futex_offset);
        release_one(task, &mm, addr);
    }
}

fn release_one(task: &Task, mm: &Mm, addr: u64) {
    let Ok(word) = load(mm, addr) else { return };
    if word & FUTEX_TID_MASK != task.tid() as u32 {
        return;
    }
    let dead = word & FUTEX_WAITERS | FUTEX_OWNER_DIED;
    if mm.space.write(addr, &dead.to_le_bytes()).is_ok() && word & FUTEX_WAITERS != 0 {
        wake_address(task, addr, 1);
    }
}
