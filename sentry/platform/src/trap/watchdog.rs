//! Kills guest processes whose threads do not come back from the shim in time: a guest can mask the
//! interrupt signal or spoil its shim. Sleeps without a timeout while nothing is expected of anybody.

use super::task::{Run, Task};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

#[derive(Default)]
struct List {
    tasks: Vec<Weak<Task>>,
    /// Those that ended are dropped when there are this many.
    sweep_at: usize,
    stop: bool,
}

/// The watchdog.
pub struct Watchdog {
    epoch: Instant,
    patience: Duration,
    awake: AtomicBool,
    list: Mutex<List>,
    wake: Condvar,
}

impl Watchdog {
    /// A watchdog without its thread.
    pub fn new(patience: Duration) -> Arc<Watchdog> {
        Arc::new(Watchdog {
            epoch: Instant::now(),
            patience,
            awake: AtomicBool::new(false),
            list: Mutex::default(),
            wake: Condvar::new(),
        })
    }

    /// Starts its thread.
    pub fn start(self: &Arc<Self>) {
        let own = self.clone();
        let thread = std::thread::Builder::new().name("watchdog".into()).stack_size(128 * 1024);
        drop(thread.spawn(move || own.run()));
    }

    /// Watches a task from now on.
    pub fn add(&self, task: &Arc<Task>) {
        let mut list = self.list.lock();
        if list.tasks.len() >= list.sweep_at {
            list.tasks.retain(|task| task.strong_count() > 0);
            list.sweep_at = (list.tasks.len() * 2).max(64);
        }
        list.tasks.push(Arc::downgrade(task));
    }

    /// Milliseconds, never 0.
    pub fn now(&self) -> u64 {
        self.epoch.elapsed().as_millis() as u64 + 1
    }

    /// Something is expected of a watched task.
    pub fn arm(&self) {
        if !self.awake.load(Relaxed) && !self.awake.swap(true, SeqCst) {
            drop(self.list.lock());
            self.wake.notify_one();
        }
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.list.lock().stop = true;
        self.wake.notify_one();
    }

    fn run(&self) {
        let mut list = self.list.lock();
        let mut quiet = 0;
        while !list.stop {
            if quiet >= 3 {
                self.awake.store(false, SeqCst);
                if !self.pending(&list) {
                    self.wake.wait(&mut list);
                }
                self.awake.store(true, SeqCst);
                quiet = 0;
                continue;
            }
            self.wake.wait_for(&mut list, (self.patience / 4).min(Duration::from_secs(2)));
            list.tasks.retain(|task| task.strong_count() > 0);
            quiet = if self.pending(&list) { 0 } else { quiet + 1 };
        }
    }

    /// Kills who is late; whether anything is expected of anybody.
    fn pending(&self, list: &List) -> bool {
        let late = self.now().saturating_sub(self.patience.as_millis() as u64);
        let mut any = false;
        for task in list.tasks.iter().filter_map(Weak::upgrade) {
            let since = task.awaited.load(Relaxed);
            let Some(st) = task.try_lock() else {
                any = true;
                continue;
            };
            let kick = if st.kicked && st.run == Run::Running && st.kick_at.1 == st.replied {
                st.kick_at.0
            } else {
                0
            };
            any |= since != 0 || kick != 0;
            if (since != 0 && since < late) || (kick != 0 && kick < late) {
                st.bind.process.destroy();
            }
        }
        any
    }
}
