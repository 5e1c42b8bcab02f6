//! Timers that send signals: setitimer(2), alarm(2), timer_create(2), RLIMIT_CPU.
//!
//! As in Linux, a timer with an interval whose signal waits to be delivered is not armed: what expires meanwhile is
//! counted when the signal is taken ([`SignalTimer::delivered`]), so a timer costs nothing while nobody looks at it.
//!
//! Processor time cannot be waited for. Such a timer sleeps as long as the time that is missing takes at the least, looks
//! again, and sleeps longer and longer while the process does nothing.

use super::{Base, TimerId, now};
use crate::fail::SysResult;
use crate::kernel::Kernel;
use crate::signal::send;
use crate::sync::{Level, Lock};
use crate::task::{Process, Task, exit, usage};
use crate::wait::{Listener, Ready};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;
use syscall_table::abi::getrlimit::{RLIM_INFINITY, RLIMIT_CPU, Rlimit};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Most timers of a process.
const MAX: usize = 4096;

/// The clock that a timer goes by.
#[derive(Clone)]
pub enum Clock {
    /// The monotonic one; absolute times are of this.
    Wall(Base),
    /// Processor time of a process.
    Process(Weak<Process>),
    /// Its part in user mode.
    User(Weak<Process>),
    /// Processor time of a task.
    Thread(Weak<Task>),
}

impl Clock {
    /// Whether it is one of processor time.
    pub fn is_cpu(&self) -> bool {
        !matches!(self, Clock::Wall(_))
    }

    /// Its time; None when what it measures has ended. Takes `Mm` locks.
    pub fn now(&self) -> Option<Duration> {
        match self {
            Clock::Wall(_) => Some(now()),
            Clock::Process(process) => {
                process.upgrade().filter(|p| !p.is_exiting()).map(|p| usage::sum_of_process(&p))
            }
            Clock::User(process) => {
                process.upgrade().filter(|p| !p.is_exiting()).map(|p| usage::of_process(&p).user)
            }
            Clock::Thread(task) => task.upgrade().filter(|t| !t.is_dead()).map(|t| usage::of_task(&t)),
        }
    }

    /// Has the time found out, where a thread must be asked for it.
    fn refresh(&self) {
        if let Clock::Thread(task) = self
            && let Some(task) = task.upgrade()
            && !usage::is_alone(&task.process)
            && !task.is_dead()
        {
            usage::Asked::ask(&task);
        }
    }

    /// When to look again whether `left` of its time has passed, by [`now`]. `idle`: how often it stood still before.
    pub fn look_again(&self, left: Duration, idle: u32) -> Duration {
        let tasks = match self {
            Clock::Wall(_) | Clock::Thread(_) => 1,
            Clock::Process(process) | Clock::User(process) => {
                process.upgrade().map_or(1, |p| p.thread_count())
            }
        };
        let tasks = u32::try_from(tasks).unwrap_or(u32::MAX).max(1);
        // Nothing runs on more processors than there are; the exact number does not matter.
        let least = left / tasks.min(PROCESSORS);
        now().saturating_add(least.max(FINEST * (1 << idle.min(7))))
    }
}

/// More than any machine's share for one sandbox.
const PROCESSORS: u32 = 256;
/// How exact timers of processor time are, about as in a kernel with a tick of 1 ms.
const FINEST: Duration = Duration::from_millis(1);

/// What an expiry sends.
#[derive(Clone, Copy)]
pub enum Notice {
    /// setitimer(2): this signal from the kernel.
    Interval(i32),
    /// SIGEV_SIGNAL, SIGEV_THREAD_ID: this signal with timer id and value.
    Signal {
        /// Signal number.
        signal: i32,
        /// sigev_value
        value: u64,
    },
    /// SIGEV_NONE
    Nothing,
    /// RLIMIT_CPU: SIGXCPU at the soft limit and each second after it, SIGKILL at the hard one.
    Limit,
}

#[derive(Default)]
struct State {
    /// Next expiry, by its clock.
    next: Option<Duration>,
    interval: Duration,
    armed: Option<TimerId>,
    epoch: u64,
    /// Expiries that the last signal stood for, besides its own.
    overrun: i32,
    /// Has expired; goes on when its signal is taken.
    waiting: bool,
    /// That signal was ignored.
    dropped: bool,
    /// The clock when it was last looked at, and how often it had not moved.
    seen: Duration,
    idle: u32,
}

impl State {
    /// Moves `next` behind `at`; how many expiries were passed by.
    fn forward(&mut self, at: Duration) -> i32 {
        let Some(next) = self.next else { return 0 };
        if self.interval.is_zero() {
            self.next = None;
            return 0;
        }
        let missed = at.saturating_sub(next).as_nanos() / self.interval.as_nanos().max(1);
        let missed = u32::try_from(missed).unwrap_or(u32::MAX - 1);
        self.next = Some(next.saturating_add(self.interval.saturating_mul(missed.saturating_add(1))));
        i32::try_from(missed).unwrap_or(i32::MAX)
    }
}

/// One timer.
pub struct SignalTimer {
    id: i32,
    notice: Notice,
    /// What it goes by.
    pub clock: Clock,
    kernel: Weak<Kernel>,
    process: Weak<Process>,
    thread: Option<Weak<Task>>,
    state: Lock<State>,
    me: Weak<SignalTimer>,
}

/// Binds a pending signal to the timer that sent it.
#[derive(Clone)]
pub struct Mark {
    timer: Weak<SignalTimer>,
    epoch: u64,
}

impl Mark {
    /// The signal was taken: how many more expiries it stands for. None: the timer was set anew or deleted meanwhile,
    /// and the signal is not to be delivered.
    pub fn delivered(&self) -> Option<i32> {
        self.timer.upgrade()?.delivered(self.epoch)
    }

    /// The signal was dropped: it is ignored now.
    pub fn dropped(&self) {
        if let Some(timer) = self.timer.upgrade() {
            timer.dropped(self.epoch);
        }
    }
}

impl SignalTimer {
    fn new(
        id: i32,
        kernel: &Arc<Kernel>,
        process: &Arc<Process>,
        notice: Notice,
        thread: Option<&Arc<Task>>,
        clock: Clock,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| SignalTimer {
            id,
            notice,
            clock,
            kernel: Arc::downgrade(kernel),
            process: Arc::downgrade(process),
            thread: thread.map(Arc::downgrade),
            state: Lock::new(Level::Object, State::default()),
            me: me.clone(),
        })
    }

    /// Time to the next expiry (zero: disarmed), and the interval.
    pub fn get(&self) -> (Duration, Duration) {
        let now = self.clock.now().unwrap_or_default();
        let state = self.state.lock();
        let least = Duration::from_nanos(1);
        let left = match state.next {
            None => Duration::ZERO,
            Some(next) if next > now => next.saturating_sub(now),
            // Passed by without anybody having looked.
            Some(next) if !state.interval.is_zero() => {
                let over = now.saturating_sub(next).as_nanos() % state.interval.as_nanos().max(1);
                state.interval.saturating_sub(Duration::from_nanos(u64::try_from(over).unwrap_or(0)))
            }
            Some(_) if state.waiting || matches!(self.notice, Notice::Nothing) => Duration::ZERO,
            Some(_) => least,
        };
        (left, state.interval)
    }

    /// Arms for `next` of its clock, or disarms. Returns what [`get`](Self::get) would have before. A signal of it
    /// that is pending is not delivered any more.
    pub fn set(&self, next: Option<Duration>, interval: Duration) -> (Duration, Duration) {
        let old = self.get();
        let now = self.clock.now().unwrap_or_default();
        let mut state = self.state.lock();
        self.disarm(&mut state);
        state.epoch += 1;
        state.next = next;
        state.interval = interval;
        state.overrun = 0;
        state.waiting = false;
        state.dropped = false;
        state.idle = 0;
        self.arm(&mut state, now);
        old
    }

    fn disarm(&self, state: &mut State) {
        if let (Some(armed), Some(kernel)) = (state.armed.take(), self.kernel.upgrade()) {
            kernel.timers.disarm(armed);
        }
    }

    fn arm(&self, state: &mut State, now: Duration) {
        if matches!(self.notice, Notice::Nothing) || self.process.strong_count() == 0 {
            return;
        }
        let (Some(next), Some(me), Some(kernel)) = (state.next, self.me.upgrade(), self.kernel.upgrade())
        else {
            return;
        };
        let deadline = match self.clock.is_cpu() {
            true => self.clock.look_again(next.saturating_sub(now), state.idle),
            false => next,
        };
        state.armed = Some(kernel.timers.arm(deadline, me, state.epoch));
    }

    /// timer_getoverrun(2)
    pub fn overrun(&self) -> i32 {
        self.state.lock().overrun
    }

    fn delivered(&self, epoch: u64) -> Option<i32> {
        let now = self.clock.now().unwrap_or_default();
        let mut state = self.state.lock();
        if state.epoch != epoch {
            return None;
        }
        if state.waiting {
            state.waiting = false;
            state.overrun = state.forward(now);
            self.arm(&mut state, now);
        }
        Some(state.overrun)
    }

    /// Goes on, if it waits for a signal that nobody will take.
    fn wake_up(&self) {
        let epoch = self.state.lock().epoch;
        let _ = self.delivered(epoch);
    }

    fn dropped(&self, epoch: u64) {
        let mut state = self.state.lock();
        if state.epoch == epoch {
            state.dropped = true;
        }
    }

    /// Its signal was dropped and is not ignored any more: one with an interval sends it now, and what has expired
    /// meanwhile is its overrun.
    fn send_again(&self) {
        let epoch = {
            let mut state = self.state.lock();
            if !std::mem::take(&mut state.dropped) || !state.waiting || state.interval.is_zero() {
                return;
            }
            state.epoch
        };
        self.send(epoch);
    }

    fn signal(&self) -> i32 {
        match self.notice {
            Notice::Interval(signal) | Notice::Signal { signal, .. } => signal,
            Notice::Limit => SIGXCPU,
            Notice::Nothing => 0,
        }
    }

    fn send(&self, epoch: u64) {
        let (Some(kernel), Some(process)) = (self.kernel.upgrade(), self.process.upgrade()) else { return };
        match self.notice {
            Notice::Nothing => {}
            Notice::Limit => limit_reached(&kernel, &process),
            Notice::Interval(signal) => send::to_process(&kernel, &process, Siginfo::kernel(signal)),
            Notice::Signal { signal, value } => {
                let mark = Mark { timer: self.me.clone(), epoch };
                let info = Siginfo::timer(signal, self.id, 0, value);
                let thread = self.thread.as_ref().map(Weak::upgrade);
                if let Some(target) = thread.as_ref().map_or(Some(None), |t| t.as_ref().map(Some))
                    && !send::timer(&kernel, &process, target, info, mark)
                {
                    self.dropped(epoch);
                    // Whoever set a handler meanwhile has found nothing to send again.
                    if !send::is_ignored(&process, signal) {
                        self.send_again();
                    }
                }
            }
        }
    }
}

impl SignalTimer {
    /// Fires now if it is due, whenever it would have been looked at.
    fn check(&self) {
        let Some(now) = self.clock.now() else { return };
        let epoch = {
            let mut state = self.state.lock();
            if state.armed.is_none() || state.next.is_none_or(|next| now < next) {
                return;
            }
            self.disarm(&mut state);
            state.epoch
        };
        self.fire(epoch, Ready::IN);
    }
}

impl Listener for SignalTimer {
    fn fire(&self, epoch: u64, _mask: Ready) -> bool {
        let Some(now) = self.clock.now() else { return false };
        {
            let mut state = self.state.lock();
            if state.epoch != epoch || state.waiting {
                return false;
            }
            state.armed = None;
            if state.next.is_none_or(|next| now < next) {
                let moved = now.saturating_sub(state.seen) > FINEST / 10;
                state.idle = if moved { 0 } else { state.idle.saturating_add(1) };
                if moved {
                    state.seen = now;
                }
                self.arm(&mut state, now);
                drop(state);
                self.clock.refresh();
                return false;
            }
            state.idle = 0;
            match self.notice {
                Notice::Signal { .. } => state.waiting = true,
                Notice::Interval(_) if !self.clock.is_cpu() && !state.interval.is_zero() => {
                    state.waiting = true
                }
                Notice::Interval(_) => {
                    state.forward(now);
                    self.arm(&mut state, now);
                }
                Notice::Limit | Notice::Nothing => {}
            }
        }
        self.send(epoch);
        true
    }

    fn alive(&self, epoch: u64) -> bool {
        self.state.lock().epoch == epoch
    }
}

/// A process has used its RLIMIT_CPU.
fn limit_reached(kernel: &Arc<Kernel>, process: &Arc<Process>) {
    let used = usage::sum_of_process(process);
    let limit = process.limits.lock().get(RLIMIT_CPU);
    if limit.rlim_max != RLIM_INFINITY && used >= Duration::from_secs(limit.rlim_max) {
        exit::group(kernel, process, wait::WaitStatus::signaled(SIGKILL, false), None);
        return;
    }
    if limit.rlim_cur != RLIM_INFINITY && used >= Duration::from_secs(limit.rlim_cur) {
        // As Linux: again after another second.
        let rlim_cur = limit.rlim_cur.saturating_add(1);
        process.limits.lock().set(RLIMIT_CPU, Rlimit { rlim_cur, ..limit });
        send::to_process(kernel, process, Siginfo::kernel(SIGXCPU));
    }
    watch_limit(kernel, process);
}

/// Sees to it that the process's RLIMIT_CPU is kept. To be called after it was set, and for a new process.
pub fn watch_limit(kernel: &Arc<Kernel>, process: &Arc<Process>) {
    let limit = process.limits.lock().get(RLIMIT_CPU);
    let timers = &process.timers;
    if limit.rlim_cur == RLIM_INFINITY && limit.rlim_max == RLIM_INFINITY {
        let timer = timers.set.lock().limit.take();
        if let Some(timer) = timer {
            timer.set(None, Duration::ZERO);
        }
        return;
    }
    timers.by_cpu.store(true, Relaxed);
    let timer = {
        let mut set = timers.set.lock();
        let new = || {
            SignalTimer::new(
                -1,
                kernel,
                process,
                Notice::Limit,
                None,
                Clock::Process(Arc::downgrade(process)),
            )
        };
        set.limit.get_or_insert_with(new).clone()
    };
    let next = Duration::from_secs(limit.rlim_cur.min(limit.rlim_max).min(1 << 38));
    timer.set(Some(next.max(Duration::from_nanos(1))), Duration::ZERO);
}

#[derive(Default)]
struct Set {
    /// ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF.
    intervals: [Option<Arc<SignalTimer>>; 3],
    limit: Option<Arc<SignalTimer>>,
    made: BTreeMap<i32, Arc<SignalTimer>>,
    next: i32,
    /// PR_TIMER_CREATE_RESTORE_IDS.
    restores: bool,
}

/// Timers of one process.
pub struct ProcessTimers {
    set: Lock<Set>,
    /// There are or were some by processor time.
    by_cpu: AtomicBool,
}

impl Default for ProcessTimers {
    fn default() -> Self {
        ProcessTimers { set: Lock::new(Level::Process, Set::default()), by_cpu: AtomicBool::new(false) }
    }
}

impl Drop for ProcessTimers {
    fn drop(&mut self) {
        let mut set = self.set.lock();
        let intervals = std::mem::take(&mut set.intervals);
        let limit = set.limit.take();
        let made = std::mem::take(&mut set.made);
        drop(set);
        for timer in made.into_values().chain(intervals.into_iter().flatten()).chain(limit) {
            timer.set(None, Duration::ZERO);
        }
    }
}

impl ProcessTimers {
    /// The interval timer `which` (ITIMER_*) of the task's process; None for a number that is none.
    pub fn interval(&self, task: &Task, which: i32) -> Option<Arc<SignalTimer>> {
        let process = &task.process;
        let (signal, clock) = match which {
            ITIMER_REAL => (SIGALRM, Clock::Wall(Base::Monotonic)),
            ITIMER_VIRTUAL => (SIGVTALRM, Clock::User(Arc::downgrade(process))),
            ITIMER_PROF => (SIGPROF, Clock::Process(Arc::downgrade(process))),
            _ => return None,
        };
        self.by_cpu.fetch_or(clock.is_cpu(), Relaxed);
        let mut set = self.set.lock();
        let slot = set.intervals.get_mut(usize::try_from(which).ok()?)?;
        let new = || SignalTimer::new(-1, &task.kernel, process, Notice::Interval(signal), None, clock);
        Some(slot.get_or_insert_with(new).clone())
    }

    /// PR_TIMER_CREATE_RESTORE_IDS: off, on, or whether it is on.
    ///
    /// # Errors
    /// EINVAL.
    pub fn restore_ids(&self, what: u64) -> SysResult {
        let mut set = self.set.lock();
        match what {
            0 | 1 => set.restores = what == 1,
            2 => return Ok(u64::from(set.restores)),
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(0)
    }

    /// Whether timer_create(2) is told which ids to give.
    pub fn restores_ids(&self) -> bool {
        self.set.lock().restores
    }

    /// A new timer, with this id if there is one; `notice` is told its id.
    ///
    /// # Errors
    /// EAGAIN when there are too many, EBUSY when the id is taken.
    pub fn create(
        &self,
        task: &Task,
        id: Option<i32>,
        notice: impl FnOnce(i32) -> Notice,
        thread: Option<&Arc<Task>>,
        clock: Clock,
    ) -> SysResult<i32> {
        self.by_cpu.fetch_or(clock.is_cpu(), Relaxed);
        let mut set = self.set.lock();
        if set.made.len() >= MAX {
            return Err(Errno::EAGAIN.into());
        }
        if id.is_some_and(|id| set.made.contains_key(&id)) {
            return Err(Errno::EBUSY.into());
        }
        while set.made.contains_key(&set.next) {
            set.next = set.next.checked_add(1).unwrap_or(0);
        }
        let id = id.unwrap_or(set.next);
        set.next = id.checked_add(1).unwrap_or(0);
        set.made.insert(id, SignalTimer::new(id, &task.kernel, &task.process, notice(id), thread, clock));
        Ok(id)
    }

    /// A timer by its id.
    pub fn find(&self, id: i32) -> Option<Arc<SignalTimer>> {
        self.set.lock().made.get(&id).cloned()
    }

    /// Takes a timer out.
    pub fn remove(&self, id: i32) -> Option<Arc<SignalTimer>> {
        self.set.lock().made.remove(&id)
    }

    /// Somebody knows the process's time: timers that are due by it fire before it is told. Nobody sees the time of an
    /// expiry pass without the signal.
    pub fn check(&self) {
        if !self.by_cpu.load(Relaxed) {
            return;
        }
        let timers: Vec<_> = {
            let set = self.set.lock();
            let all = set.made.values().chain(set.intervals.iter().flatten()).chain(&set.limit);
            all.filter(|timer| timer.clock.is_cpu()).cloned().collect()
        };
        timers.iter().for_each(|timer| timer.check());
    }

    /// A SIGALRM was taken: ITIMER_REAL with an interval goes on.
    pub fn alarm_taken(&self) {
        let real = self.set.lock().intervals.first().cloned().flatten();
        if let Some(real) = real {
            real.wake_up();
        }
    }

    /// The signal is not ignored (SIG_IGN) any more.
    pub fn heeded(&self, signal: i32) {
        let timers: Vec<_> =
            self.set.lock().made.values().filter(|t| t.signal() == signal).cloned().collect();
        timers.iter().for_each(|timer| timer.send_again());
    }

    /// execve(2) deletes the timers of timer_create(2).
    pub fn exec(&self) {
        let made = std::mem::take(&mut self.set.lock().made);
        for timer in made.into_values() {
            timer.set(None, Duration::ZERO);
        }
    }
}
