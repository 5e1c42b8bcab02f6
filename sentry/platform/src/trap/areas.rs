//! Shared areas on their way in and out: to make and map one, and to unmap it, costs tens of microseconds, which the
//! reaper's thread spends while nobody waits.

use super::ctl::Ctl;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Most areas that wait to be given up.
const OLD: usize = 8;

/// Most areas that are ready.
const READY: usize = 2;

/// The areas that no process has.
#[derive(Default)]
pub struct Areas {
    ready: Mutex<Vec<Ctl>>,
    old: Mutex<Vec<Arc<Ctl>>>,
    /// One was taken since the last [`tidy`](Self::tidy).
    wanted: AtomicBool,
}

impl Areas {
    /// An area for a process that is to be made.
    pub fn take(&self) -> io::Result<Ctl> {
        self.wanted.store(true, Relaxed);
        let ready = self.ready.lock().pop();
        ready.map_or_else(fresh, Ok)
    }

    /// One that is ready.
    pub fn take_ready(&self) -> Option<Ctl> {
        self.wanted.store(true, Relaxed);
        self.ready.lock().pop()
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
        if self.wanted.swap(false, Relaxed) {
            while self.ready.lock().len() < READY {
                // Whoever needs one and finds none hears why.
                let Ok(one) = fresh() else { return };
                self.ready.lock().push(one);
            }
        }
    }
}

fn fresh() -> io::Result<Ctl> {
    let ctl = Ctl::new()?;
    ctl.warm();
    ctl.set_forms();
    Ok(ctl)
}
