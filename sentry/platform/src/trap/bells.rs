//! Tasks without a worker: where many tasks block, one host thread waits for the doorbells of them all.
//!
//! A worker that waits for the doorbell of its own task is woken on the task's processor, which is the cheapest way, and costs the
//! sentry a thread. So the first [`FEW`] tasks keep theirs. A worker beyond them whose task has not rung for [`LINGER`] puts the
//! task to rest here and serves others. Whoever waits here when a task at rest rings, or dies, is its worker from then on.

use super::Runtime;
use super::binding::Binding;
use super::task::Task;
use super::worker;
use crate::hostcalls;
use parking_lot::Mutex;
use rustix::event::epoll;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Duration;

/// So many workers stay with their tasks, whatever these do.
const FEW: usize = 32;
/// With more than this, a task rests as soon as it has its answer.
const MANY: usize = 256;
/// How long a worker between these two waits for the next ring.
const LINGER: Duration = Duration::from_millis(5);
/// Threads that may wait here at once.
const WAITING: usize = 2;
/// The key that ends those who wait.
const STOP: u64 = u64::MAX;

/// The tasks at rest.
pub struct Bells {
    epoll: OwnedFd,
    resting: Mutex<HashMap<u64, Arc<Task>>>,
    next: AtomicU64,
    /// Threads that wait for a ring, and whether one more is on its way there.
    waiting: AtomicUsize,
    starting: AtomicBool,
}

impl Bells {
    /// Nobody at rest, nobody waiting.
    ///
    /// # Errors
    /// Of epoll_create1.
    pub fn new() -> io::Result<Bells> {
        Ok(Bells {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            resting: Mutex::default(),
            next: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            starting: AtomicBool::new(false),
        })
    }

    /// Called by a task's worker before it waits for the doorbell: true if the task is at rest, and no longer the worker's.
    pub fn rest(&self, task: &Arc<Task>, bind: &Arc<Binding>) -> bool {
        let workers = task.rt.pool.working();
        if workers <= FEW {
            return false;
        }
        let listener = bind.listener();
        if workers <= MANY && hostcalls::rings_within(listener.as_fd(), LINGER) {
            return false;
        }
        let key = self.next.fetch_add(1, Relaxed);
        self.resting.lock().insert(key, task.clone());
        let data = epoll::EventData::new_u64(key);
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        let armed = match epoll::add(&self.epoll, listener.as_fd(), data, flags) {
            // It has been here before.
            Err(rustix::io::Errno::EXIST) => epoll::modify(&self.epoll, listener.as_fd(), data, flags),
            other => other,
        };
        if armed.is_err() {
            // Taken out again: nobody else has seen it.
            return self.resting.lock().remove(&key).is_none();
        }
        // Whoever has heard a ring and left nobody behind has seen to it.
        if self.waiting.load(SeqCst) == 0 {
            self.start_one(&task.rt);
        }
        true
    }

    /// Sends one more thread to wait, unless one is on its way.
    fn start_one(&self, rt: &Arc<Runtime>) {
        if self.starting.swap(true, SeqCst) {
            return;
        }
        let coming = Coming(rt.clone());
        rt.pool.run(Box::new(move || {
            let rt = coming.0.clone();
            drop(coming);
            wait(&rt);
        }));
    }

    /// Ends those who wait.
    pub fn stop(&self) {
        let tasks = std::mem::take(&mut *self.resting.lock());
        drop(tasks);
        if let Ok(event) = rustix::event::eventfd(1, rustix::event::EventfdFlags::CLOEXEC) {
            let data = epoll::EventData::new_u64(STOP);
            let _ = epoll::add(&self.epoll, event.as_fd(), data, epoll::EventFlags::IN);
            // The set watches it only as long as the descriptor is open.
            std::mem::forget(event);
        }
    }
}

/// A thread on its way. Should there be none for it, others try again.
struct Coming(Arc<Runtime>);

impl Drop for Coming {
    fn drop(&mut self) {
        self.0.bells.starting.store(false, SeqCst);
    }
}

/// Waits for tasks at rest and is the worker of each that rings.
fn wait(rt: &Arc<Runtime>) {
    let bells = &rt.bells;
    let mut events = Vec::with_capacity(1);
    loop {
        bells.waiting.fetch_add(1, SeqCst);
        events.clear();
        let waited = epoll::wait(&bells.epoll, rustix::buffer::spare_capacity(&mut events), None);
        let left = bells.waiting.fetch_sub(1, SeqCst) - 1;
        let key = match waited {
            Ok(_) => events.first().map(|event| event.data.u64()),
            Err(rustix::io::Errno::INTR) => None,
            Err(_) => return,
        };
        let Some(key) = key else { continue };
        if key == STOP {
            return;
        }
        if left == 0 {
            bells.start_one(rt);
        }
        let task = bells.resting.lock().remove(&key);
        if let Some(task) = task {
            worker::serve_rung(task);
        }
        if bells.waiting.load(SeqCst) >= WAITING {
            return;
        }
    }
}
