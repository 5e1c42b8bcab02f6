//! The making of a thread or process goes to and fro between a worker, the forker and the new thread. They are kept on one
//! processor for so long: a wake-up across processors costs more than what any of them does.

use crate::hostcalls;
use rustix::thread::CpuSet;

/// The processors that the sentry may use.
pub struct Processors {
    all: CpuSet,
    count: usize,
}

impl Processors {
    /// Those of the calling thread.
    pub fn new() -> Processors {
        // Without an answer there is nothing to choose from.
        let all = rustix::thread::sched_getaffinity(None).unwrap_or_default();
        Processors { all, count: all.count() as usize }
    }

    /// The set.
    pub fn all(&self) -> CpuSet {
        self.all
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Keeps the calling thread where it is until the value is dropped, and a forker there, as well as what it makes.
    /// `forker`: its thread id, and where it was put before.
    pub fn gather(&self, forker: i32, place: &mut Option<usize>) -> Option<Together<'_>> {
        if self.count() < 2 {
            return None;
        }
        let here = rustix::thread::sched_getcpu();
        if here >= CpuSet::MAX_CPU {
            return None;
        }
        let mut one = CpuSet::new();
        one.set(here);
        if !hostcalls::keep_on(0, &one) {
            return None;
        }
        if *place != Some(here) && hostcalls::keep_on(forker, &one) {
            *place = Some(here);
        }
        Some(Together { all: &self.all })
    }

    /// A thread that a forker made may run anywhere from now on.
    pub fn release(&self, tid: i32) {
        if self.count() > 1 {
            hostcalls::keep_on(tid, &self.all);
        }
    }
}

/// See [`Processors::gather`].
pub struct Together<'a> {
    all: &'a CpuSet,
}

impl Drop for Together<'_> {
    fn drop(&mut self) {
        hostcalls::keep_on(0, self.all);
    }
}
