//! Files that gates read from by themselves: where they are mapped in a process, and which descriptors a task may read from.

use super::port::{TrapPort, result};
use crate::CallError;
use lazaret_shim::layout;
use parking_lot::Mutex;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Weak};

/// Files in the places of a process. A place is not given to another file before the program ends: a gate may be reading.
#[derive(Default)]
pub struct Places(Mutex<Vec<Weak<OwnedFd>>>);

impl Places {
    /// The place of a file, and whether it has just been given to it. None: all are taken.
    fn find(&self, file: &Arc<OwnedFd>) -> Option<(usize, bool)> {
        let mut places = self.0.lock();
        let known = places.iter().position(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(file)));
        if known.is_none() && places.len() as u64 >= layout::PLACES {
            return None;
        }
        let index = known.unwrap_or(places.len());
        if known.is_none() {
            places.push(Arc::downgrade(file));
        }
        Some((index, known.is_none()))
    }

    /// The file could not be mapped: its place stays empty.
    fn give_up(&self, index: usize) {
        if let Some(place) = self.0.lock().get_mut(index) {
            *place = Weak::new();
        }
    }

    /// A child that is a copy of the process has the mappings, too.
    pub fn inherit(&self, parent: &Places) {
        *self.0.lock() = parent.0.lock().clone();
    }

    /// Another program begins, and the process has no other task: whether there are files, which it is not to have.
    pub fn clear(&self) -> bool {
        !std::mem::take(&mut *self.0.lock()).is_empty()
    }
}

/// Descriptors for which this holds are no longer read from by gates.
pub fn take_back(slot: &layout::Slot, which: impl Fn(i32) -> bool) {
    for lent in &slot.lent {
        if which(lent.fd.load(Relaxed).wrapping_sub(1).cast_signed()) {
            lent.fd.store(0, SeqCst);
        }
    }
}

impl TrapPort<'_> {
    /// [`Port::lend`](crate::Port::lend).
    pub(super) fn lend_file(&mut self, fd: i32, file: &Arc<OwnedFd>, len: u64) -> Result<bool, CallError> {
        let len = len.min(layout::PLACE_SIZE);
        self.need_bell()?;
        let bind = self.bind.clone();
        let places = &bind.process.places;
        let Some((index, fresh)) = places.find(file).filter(|_| fd >= 0 && len != 0) else {
            return Ok(false);
        };
        let at = layout::place(index as u64);
        if fresh && let Err(error) = self.map_lent(at, file) {
            places.give_up(index);
            return Err(error);
        }
        let word = fd.cast_unsigned().wrapping_add(1);
        let lent = &bind.words().lent;
        let own = |is: u32| lent.iter().find(|lent| lent.fd.load(Relaxed) == is);
        let Some(place) = own(word).or(own(0)).or(lent.first()) else { return Ok(false) };
        place.fd.store(0, SeqCst);
        place.at.store(at, Relaxed);
        place.len.store(len, Relaxed);
        place.fd.store(word, SeqCst);
        Ok(true)
    }

    fn map_lent(&mut self, at: u64, file: &Arc<OwnedFd>) -> Result<(), CallError> {
        self.room(2)?;
        let number = self.give(file)?;
        let shared = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
        let [mapped] =
            self.calls(&[[9, at, layout::PLACE_SIZE, libc::PROT_READ as u64, shared, number, 0]])?;
        result(mapped).map(|_| ())
    }
}
