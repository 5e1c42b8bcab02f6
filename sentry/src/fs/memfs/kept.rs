//! What a file system owes to whoever writes it down while programs change it.
//!
//! [`Kept`] has a gate: changes of names and contents hold it shared, whoever writes all down holds it exclusively, so what is
//! written is the state of one moment (but for shared mappings, which the host writes). The gate is taken before all locks of
//! this file system, and none of its holders waits for anything but the host.

use super::MemFs;
use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Who writes the file system down meanwhile is told by this.
#[derive(Default)]
pub struct Kept {
    gate: RwLock<()>,
    changed: AtomicBool,
    turn: Mutex<Turn>,
    told: Condvar,
}

#[derive(Default)]
struct Turn {
    asked: bool,
    ending: bool,
}

/// Why [`Kept::wait`] came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// A program wants what it has written to last (fsync(2)).
    Asked,
    /// The time is over.
    Late,
    /// [`Kept::end`].
    Ending,
}

impl Kept {
    /// Nothing changes while the guard is held.
    pub fn still(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write()
    }

    /// Whether anything changed since this was asked before.
    pub fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// As if something had changed: what was written is no use.
    pub fn put_back(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Waits for somebody to ask, at most until `at`.
    pub fn wait(&self, at: Instant) -> Woken {
        let mut turn = self.turn.lock();
        loop {
            if turn.ending {
                return Woken::Ending;
            }
            if std::mem::take(&mut turn.asked) {
                return Woken::Asked;
            }
            if self.told.wait_until(&mut turn, at).timed_out() {
                return Woken::Late;
            }
        }
    }

    /// Waits for so long, or until [`Kept::end`]: true then.
    pub fn pause(&self, time: Duration) -> bool {
        let at = Instant::now() + time;
        let mut turn = self.turn.lock();
        while !turn.ending {
            if self.told.wait_until(&mut turn, at).timed_out() {
                return turn.ending;
            }
        }
        true
    }

    /// Nobody writes it down any more.
    pub fn end(&self) {
        self.turn.lock().ending = true;
        self.told.notify_all();
    }
}

impl MemFs {
    /// To be held while names or contents change. No lock of this file system may be held.
    pub(super) fn change(&self) -> Option<RwLockReadGuard<'_, ()>> {
        // Never taken twice by one thread: who writes all down gets its turn.
        self.kept.get().map(|kept| kept.gate.read())
    }

    /// Something that lasts has changed.
    pub(super) fn changed(&self) {
        if let Some(kept) = self.kept.get() {
            kept.changed.store(true, Ordering::Relaxed);
        }
    }

    /// A program wants what it has written to last.
    pub(super) fn sync(&self) {
        let Some(kept) = self.kept.get() else { return };
        if kept.changed.load(Ordering::Relaxed) {
            kept.turn.lock().asked = true;
            kept.told.notify_all();
        }
    }
}
