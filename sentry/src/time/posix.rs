//! Timers that send signals: setitimer(2), alarm(2), timer_create(2).

use super::{TimerId, now};
use crate::kernel::Kernel;
use crate::sync::{Level, Lock};
use crate::task::{Process, Task};
use crate::wait::{Listener, Ready};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use syscall_table::abi::*;

/// Most timers of a process.
const MAX: usize = 4096;

/// What an expiry sends.
#[derive(Clone, Copy)]
pub enum Notice {
    /// setitimer(2): SIGALRM from the kernel.
    Alarm,
    /// SIGEV_SIGNAL, SIGEV_THREAD_ID: this signal with timer id and value.
    Signal {
        /// Signal number.
        signal: i32,
        /// sigev_value
        value: u64,
    },
    /// SIGEV_NONE
    Nothing,
}

#[derive(Default)]
struct State {
    next: Option<Duration>,
    interval: Duration,
    armed: Option<TimerId>,
    epoch: u64,
    overrun: i32,
}

/// One timer.
pub struct SignalTimer {
    id: i32,
    notice: Notice,
    /// Absolute times are of CLOCK_REALTIME.
    pub realtime: bool,
    kernel: Weak<Kernel>,
    process: Weak<Process>,
    thread: Option<Weak<Task>>,
    state: Lock<State>,
    me: Weak<SignalTimer>,
}

impl SignalTimer {
    fn new(id: i32, task: &Task, notice: Notice, thread: Option<&Arc<Task>>, realtime: bool) -> Arc<Self> {
        Arc::new_cyclic(|me| SignalTimer {
            id,
            notice,
            realtime,
            kernel: Arc::downgrade(&task.kernel),
            process: Arc::downgrade(&task.process),
            thread: thread.map(Arc::downgrade),
            state: Lock::new(Level::Object, State::default()),
            me: me.clone(),
        })
    }

    /// Time to the next expiry (zero: disarmed), and the interval.
    pub fn get(&self) -> (Duration, Duration) {
        let state = self.state.lock();
        let least = Duration::from_nanos(1);
        (state.next.map_or(Duration::ZERO, |n| n.saturating_sub(now()).max(least)), state.interval)
    }

    /// Arms for `next` on the monotonic clock, or disarms. Returns what [`get`](Self::get) would have before.
    pub fn set(&self, next: Option<Duration>, interval: Duration) -> (Duration, Duration) {
        let old = self.get();
        let mut state = self.state.lock();
        if let (Some(armed), Some(kernel)) = (state.armed.take(), self.kernel.upgrade()) {
            kernel.timers.disarm(armed);
        }
        state.epoch += 1;
        state.next = next;
        state.interval = interval;
        state.overrun = 0;
        self.arm(&mut state);
        old
    }

    fn arm(&self, state: &mut State) {
        if let (Some(next), Some(me), Some(kernel)) = (state.next, self.me.upgrade(), self.kernel.upgrade()) {
            state.armed = Some(kernel.timers.arm(next, me, state.epoch));
        }
    }

    /// timer_getoverrun(2)
    pub fn overrun(&self) -> i32 {
        self.state.lock().overrun
    }

    fn send(&self, overrun: i32) {
        let (Some(kernel), Some(process)) = (self.kernel.upgrade(), self.process.upgrade()) else { return };
        let info = match self.notice {
            Notice::Alarm => Siginfo::kernel(SIGALRM),
            Notice::Signal { signal, value } => Siginfo::timer(signal, self.id, overrun, value),
            Notice::Nothing => return,
        };
        match &self.thread {
            Some(thread) => {
                if let Some(task) = thread.upgrade() {
                    crate::signal::send::to_task(&task, info);
                }
            }
            None => crate::signal::send::to_process(&kernel, &process, info),
        }
    }
}

impl Listener for SignalTimer {
    fn fire(&self, epoch: u64, _mask: Ready) -> bool {
        let overrun = {
            let mut state = self.state.lock();
            if state.epoch != epoch {
                return false;
            }
            state.armed = None;
            let mut missed = 0;
            state.next = match state.next {
                Some(next) if !state.interval.is_zero() => {
                    let late = now().saturating_sub(next).as_nanos() / state.interval.as_nanos().max(1);
                    missed = u32::try_from(late).unwrap_or(u32::MAX - 1);
                    Some(next.saturating_add(state.interval.saturating_mul(missed + 1)))
                }
                _ => None,
            };
            state.overrun = i32::try_from(missed).unwrap_or(i32::MAX);
            if self.process.strong_count() > 0 {
                self.arm(&mut state);
            }
            state.overrun
        };
        self.send(overrun);
        true
    }

    fn alive(&self, epoch: u64) -> bool {
        self.state.lock().epoch == epoch
    }
}

#[derive(Default)]
struct Set {
    real: Option<Arc<SignalTimer>>,
    made: BTreeMap<i32, Arc<SignalTimer>>,
    next: i32,
}

/// Timers of one process.
pub struct ProcessTimers {
    set: Lock<Set>,
}

impl Default for ProcessTimers {
    fn default() -> Self {
        ProcessTimers { set: Lock::new(Level::Process, Set::default()) }
    }
}

impl Drop for ProcessTimers {
    fn drop(&mut self) {
        let mut set = self.set.lock();
        let real = set.real.take();
        let made = std::mem::take(&mut set.made);
        drop(set);
        for timer in made.into_values().chain(real) {
            timer.set(None, Duration::ZERO);
        }
    }
}

impl ProcessTimers {
    /// ITIMER_REAL of the task's process.
    pub fn real(&self, task: &Task) -> Arc<SignalTimer> {
        let mut set = self.set.lock();
        set.real.get_or_insert_with(|| SignalTimer::new(-1, task, Notice::Alarm, None, false)).clone()
    }

    /// A new timer; `notice` is told its id. None when there are too many.
    pub fn create(
        &self,
        task: &Task,
        notice: impl FnOnce(i32) -> Notice,
        thread: Option<&Arc<Task>>,
        realtime: bool,
    ) -> Option<i32> {
        let mut set = self.set.lock();
        if set.made.len() >= MAX {
            return None;
        }
        while set.made.contains_key(&set.next) {
            set.next = set.next.checked_add(1).unwrap_or(0);
        }
        let id = set.next;
        set.next = id.checked_add(1).unwrap_or(0);
        set.made.insert(id, SignalTimer::new(id, task, notice(id), thread, realtime));
        Some(id)
    }

    /// A timer by its id.
    pub fn find(&self, id: i32) -> Option<Arc<SignalTimer>> {
        self.set.lock().made.get(&id).cloned()
    }

    /// Takes a timer out.
    pub fn remove(&self, id: i32) -> Option<Arc<SignalTimer>> {
        self.set.lock().made.remove(&id)
    }

    /// execve(2) deletes the timers of timer_create(2).
    pub fn exec(&self) {
        let made = std::mem::take(&mut self.set.lock().made);
        for timer in made.into_values() {
            timer.set(None, Duration::ZERO);
        }
    }
}
