//! Wait queues: how a blocked call learns that it may go on.
//!
//! A blocked task is no sleeping thread. Its [`Waiter`] is registered on the queues of everything it waits for;
//! the first [`WaitQueue::wake`] that matches marks it fired and puts its task on the firing thread's list of
//! tasks to resume, which [`crate::run::drain`] works off when no lock is held.
//!
//! Registrations are never taken back: each attempt of a call has an epoch, an entry of an older epoch is dead,
//! and dead entries are swept when a queue has doubled since the last sweep.

use crate::sync::{Level, Lock};
use crate::task::Task;
use bitflags::bitflags;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

bitflags! {
    /// Readiness, in the bits of poll(2) and epoll(7).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Ready: u32 {
        /// POLLIN
        const IN = 0x001;
        /// POLLPRI
        const PRI = 0x002;
        /// POLLOUT
        const OUT = 0x004;
        /// POLLERR
        const ERR = 0x008;
        /// POLLHUP
        const HUP = 0x010;
        /// POLLNVAL
        const NVAL = 0x020;
        /// POLLRDNORM
        const RDNORM = 0x040;
        /// POLLRDBAND
        const RDBAND = 0x080;
        /// POLLWRNORM
        const WRNORM = 0x100;
        /// POLLWRBAND
        const WRBAND = 0x200;
        /// POLLMSG
        const MSG = 0x400;
        /// POLLRDHUP
        const RDHUP = 0x2000;
        /// There is room in a socket: all three of them.
        const ROOM = 0x304;
        const _ = !0;
    }
}

/// Something that wants to know of a wake-up. Called with locks held: it must be short, take no lock below
/// [`Level::Ready`], and never call back into the object that woke it.
pub trait Listener: Send + Sync {
    /// The queue was woken for `mask`. `epoch` is the one given at registration. Returns whether the wake-up was
    /// used (an exclusive wake-up counts only those).
    fn fire(&self, epoch: u64, mask: Ready) -> bool;

    /// False when the entry with this epoch can be dropped.
    fn alive(&self, epoch: u64) -> bool;
}

struct Entry {
    listener: Arc<dyn Listener>,
    epoch: u64,
    mask: Ready,
    exclusive: bool,
}

struct Entries {
    list: Vec<Entry>,
    sweep_at: usize,
}

/// A list of those waiting for one object.
pub struct WaitQueue {
    entries: Lock<Entries>,
}

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl WaitQueue {
    /// An empty queue.
    pub const fn new() -> Self {
        WaitQueue { entries: Lock::new(Level::Queue, Entries { list: Vec::new(), sweep_at: 16 }) }
    }

    /// Registers a listener for wake-ups that match `mask` (ERR and HUP always match).
    pub fn add(&self, listener: Arc<dyn Listener>, epoch: u64, mask: Ready, exclusive: bool) {
        let mut entries = self.entries.lock();
        if entries.list.len() >= entries.sweep_at {
            entries.list.retain(|e| e.listener.alive(e.epoch));
            entries.sweep_at = (entries.list.len() * 2).max(16);
        }
        entries.list.push(Entry { listener, epoch, mask: mask | Ready::ERR | Ready::HUP, exclusive });
    }

    /// Removes all entries of this listener with this epoch.
    pub fn remove(&self, listener: &Arc<dyn Listener>, epoch: u64) {
        self.entries.lock().list.retain(|e| e.epoch != epoch || !Arc::ptr_eq(&e.listener, listener));
    }

    /// Wakes all listeners whose mask meets `mask`; of the exclusive ones only the first that uses it.
    /// Returns how many listeners used it.
    pub fn wake(&self, mask: Ready) -> usize {
        self.wake_some(mask, 1)
    }

    /// As [`wake`](Self::wake) with up to `exclusive` exclusive listeners woken. Returns how many listeners used it.
    /// Listeners are fired with the queue unlocked: one of an epoll wakes that epoll's own queue.
    pub fn wake_some(&self, mask: Ready, mut exclusive: usize) -> usize {
        let mut batch = Vec::new();
        {
            let mut entries = self.entries.lock();
            if entries.list.is_empty() {
                return 0;
            }
            entries.list.retain(|e| {
                let alive = e.listener.alive(e.epoch);
                if alive && e.mask.intersects(mask) {
                    batch.push((e.listener.clone(), e.epoch, e.exclusive));
                }
                alive
            });
        }
        let mut used = 0;
        for (listener, epoch, alone) in batch {
            if (!alone || exclusive > 0) && listener.fire(epoch, mask) {
                used += 1;
                if alone {
                    exclusive -= 1;
                }
            }
        }
        used
    }

    /// Whether nobody (alive) waits.
    pub fn is_empty(&self) -> bool {
        !self.entries.lock().list.iter().any(|e| e.listener.alive(e.epoch))
    }
}

const IDLE: u8 = 0;
const ARMED: u8 = 1;
const PARKED: u8 = 2;
const FIRED: u8 = 3;

/// The listener of one task's current call.
pub struct Waiter {
    state: AtomicU8,
    epoch: AtomicU64,
    task: Weak<Task>,
}

impl Waiter {
    /// For the task it belongs to.
    pub fn new(task: Weak<Task>) -> Self {
        Waiter { state: AtomicU8::new(IDLE), epoch: AtomicU64::new(0), task }
    }

    /// Whether its call waits just now.
    pub fn is_parked(&self) -> bool {
        self.state.load(Ordering::SeqCst) == PARKED
    }

    /// Begins an attempt: registrations of earlier ones are dead from here on.
    pub(crate) fn arm(&self) -> u64 {
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        self.state.store(ARMED, Ordering::SeqCst);
        epoch
    }

    /// The current epoch, for registrations.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Parks the call. False if something fired since [`arm`](Self::arm): try again.
    pub(crate) fn park(&self) -> bool {
        self.state.compare_exchange(ARMED, PARKED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// The call is over: no registration counts any more.
    pub(crate) fn disarm(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        self.state.store(IDLE, Ordering::SeqCst);
    }

    /// Fires whatever the epoch (signals, exit). True if the call was parked and is on the resume list now.
    pub fn interrupt(&self) -> bool {
        self.fire_now()
    }

    fn fire_now(&self) -> bool {
        loop {
            match self.state.load(Ordering::SeqCst) {
                ARMED => {
                    if self.state.compare_exchange(ARMED, FIRED, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                        return false;
                    }
                }
                PARKED => {
                    if self.state.compare_exchange(PARKED, FIRED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
                    {
                        if let Some(task) = self.task.upgrade() {
                            defer(task);
                        }
                        return true;
                    }
                }
                _ => return false,
            }
        }
    }
}

impl Listener for Waiter {
    fn fire(&self, epoch: u64, _mask: Ready) -> bool {
        if self.epoch() != epoch {
            return false;
        }
        let before = self.state.load(Ordering::SeqCst);
        self.fire_now();
        before == ARMED || before == PARKED
    }

    fn alive(&self, epoch: u64) -> bool {
        self.epoch() == epoch
    }
}

thread_local! {
    static DEFERRED: RefCell<Vec<Arc<Task>>> = const { RefCell::new(Vec::new()) };
}

fn defer(task: Arc<Task>) {
    crate::memory::stir();
    DEFERRED.with_borrow_mut(|list| list.push(task));
}

type Later = Box<dyn FnOnce()>;

thread_local! {
    static LATER: RefCell<Vec<Later>> = const { RefCell::new(Vec::new()) };
}

/// Has [`crate::run::drain`] of this thread do something that may not be done with locks held.
pub(crate) fn later(what: Later) {
    LATER.with_borrow_mut(|list| list.push(what));
}

/// Does what [`later`] was told. Call with no lock held.
pub(crate) fn do_later() {
    loop {
        let list = LATER.with_borrow_mut(std::mem::take);
        if list.is_empty() {
            return;
        }
        for what in list {
            what();
        }
    }
}

/// Takes the tasks that were fired on this thread and not resumed yet.
pub(crate) fn take_deferred() -> Vec<Arc<Task>> {
    DEFERRED.with_borrow_mut(std::mem::take)
}
