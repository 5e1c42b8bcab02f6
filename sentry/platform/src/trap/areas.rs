//! Shared areas on their way in and out: to make and map one, and to unmap it, costs tens of microseconds, which the
//! reaper's thread spends while nobody waits.

use super::ctl::Ctl;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Most areas that wait to be given up.
const OLD: usize = 8;

/// Most areas that wait to be taken: who forks in a row comes back before the reaper has seen the last child's end.
const READY: usize = 2;

/// The areas that no process has.
#[derive(Default)]
pub struct Areas {
    ready: Mutex<Vec<Ctl>>,
    old: Mutex<Vec<Arc<Ctl>>>,
    /// Taken since the last [`tidy`](Self::tidy).
    taken: AtomicUsize,
}

impl Areas {
    /// An area for a process that is to be made.
    pub fn take(&self) -> io::Result<Ctl> {
        self.taken.fetch_add(1, Relaxed);
        let ready = self.ready.lock().pop();
        ready.map_or_else(fresh, Ok)
    }

    /// Takes what a process that ended had.
    pub fn give_up(&self, ctl: Arc<Ctl>) {
        let mut old = self.old.lock();
        if old.len() < OLD {
            old.push(ctl);
        }
    }

    /// Makes and unmaps what is due.
    pub fn tidy(&self) {
        drop(std::mem::take(&mut *self.old.lock()));
        let wanted = self.taken.swap(0, Relaxed).min(READY);
        while self.ready.lock().len() < wanted {
            // Whoever needs one and finds none hears why.
            let Ok(ctl) = fresh() else { return };
            self.ready.lock().push(ctl);
        }
    }
}

fn fresh() -> io::Result<Ctl> {
    let ctl = Ctl::new()?;
    ctl.warm();
    ctl.set_forms();
    Ok(ctl)
}
