//! Clocks and deadlines.

pub mod posix;
pub mod ticks;

use crate::sync::{Level, Lock};
use crate::task::Task;
use crate::wait::{Listener, Ready};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::{Timespec, Timeval};
use syscall_table::errno::Errno;

/// The host's CLOCK_MONOTONIC, which is also the guest's (its vDSO reads the same clock).
pub fn now() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(t.tv_sec.max(0) as u64, t.tv_nsec.clamp(0, 999_999_999) as u32)
}

/// The host's CLOCK_REALTIME since the epoch.
pub fn realtime() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Duration::new(t.tv_sec.max(0) as u64, t.tv_nsec.clamp(0, 999_999_999) as u32)
}

/// A timespec of the guest as a duration.
///
/// # Errors
/// EINVAL when it is negative or its nanoseconds are not below a second.
pub fn from_timespec(spec: &Timespec) -> Result<Duration, Errno> {
    let secs = u64::try_from(spec.tv_sec).map_err(|_| Errno::EINVAL)?;
    match u32::try_from(spec.tv_nsec) {
        // So that sums never overflow: a wait of 10,000 years is forever.
        Ok(nanos) if nanos < 1_000_000_000 => Ok(Duration::new(secs.min(1 << 38), nanos)),
        _ => Err(Errno::EINVAL),
    }
}

/// A duration as a timespec.
pub fn to_timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

/// A timeval of the guest as a duration.
///
/// # Errors
/// EINVAL when it is negative.
pub fn from_timeval(value: &Timeval) -> Result<Duration, Errno> {
    let secs = u64::try_from(value.tv_sec).map_err(|_| Errno::EINVAL)?;
    let micros = u64::try_from(value.tv_usec).map_err(|_| Errno::EINVAL)?;
    Ok(Duration::from_secs(secs.min(1 << 38)).saturating_add(Duration::from_micros(micros.min(1 << 50))))
}

/// A duration as a timeval.
pub fn to_timeval(time: Duration) -> Timeval {
    Timeval { tv_sec: time.as_secs() as i64, tv_usec: i64::from(time.subsec_micros()) }
}

/// The host's CLOCK_BOOTTIME.
pub fn boottime() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(t.tv_sec.max(0) as u64, t.tv_nsec.clamp(0, 999_999_999) as u32)
}

/// A clock that absolute times are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// CLOCK_MONOTONIC
    Monotonic,
    /// CLOCK_BOOTTIME
    Boottime,
    /// CLOCK_REALTIME
    Real,
}

impl Base {
    /// Its time on the host.
    pub fn now(self) -> Duration {
        match self {
            Base::Monotonic => now(),
            Base::Boottime => boottime(),
            Base::Real => realtime(),
        }
    }
}

/// `time` that many nanoseconds later, or before; never before 0.
pub fn shifted(time: Duration, nanos: i64) -> Duration {
    let by = Duration::from_nanos(nanos.unsigned_abs());
    if nanos < 0 { time.saturating_sub(by) } else { time.saturating_add(by) }
}

/// When a wait of the task for `value` ends, by [`now`]: relative, or absolute by a clock as the task's time namespace has
/// it.
pub fn deadline(task: &Task, value: Duration, absolute: bool, base: Base) -> Duration {
    if !absolute {
        return now().saturating_add(value);
    }
    let offset = if base == Base::Real { 0 } else { task.clock_offsets().of(base) };
    let value = shifted(value, offset.saturating_neg());
    match base {
        Base::Monotonic => value,
        other => now().saturating_add(value.saturating_sub(other.now())),
    }
}

/// Names an armed deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerId(Duration, u64);

type Armed = BTreeMap<TimerId, (Arc<dyn Listener>, u64)>;
type SetAlarm = Box<dyn Fn(Option<Duration>) + Send + Sync>;

struct State {
    armed: Armed,
    serial: u64,
}

/// All deadlines of the sandbox.
pub struct Timers {
    state: Lock<State>,
    set_alarm: std::sync::OnceLock<SetAlarm>,
}

impl Default for Timers {
    fn default() -> Self {
        Self::new()
    }
}

impl Timers {
    /// None armed.
    pub fn new() -> Self {
        Timers {
            state: Lock::new(Level::Timer, State { armed: BTreeMap::new(), serial: 0 }),
            set_alarm: std::sync::OnceLock::new(),
        }
    }

    /// Sets how the reactor's alarm is set; called with the timer lock held, so that no earlier deadline is lost.
    pub(crate) fn on_alarm(&self, f: SetAlarm) {
        // One reactor a kernel: a second registration is ignored.
        let _ = self.set_alarm.set(f);
    }

    /// Fires the listener with `epoch` when [`now`] reaches `deadline`.
    pub fn arm(&self, deadline: Duration, listener: Arc<dyn Listener>, epoch: u64) -> TimerId {
        let mut state = self.state.lock();
        state.serial += 1;
        let id = TimerId(deadline, state.serial);
        let first = state.armed.first_key_value().map(|(id, _)| id.0);
        state.armed.insert(id, (listener, epoch));
        if first.is_none_or(|first| deadline < first)
            && let Some(set_alarm) = self.set_alarm.get()
        {
            set_alarm(Some(deadline));
        }
        id
    }

    /// Forgets a deadline. True if it had not fired.
    pub fn disarm(&self, id: TimerId) -> bool {
        self.state.lock().armed.remove(&id).is_some()
    }

    /// Fires what is due and sets the alarm for the next deadline.
    pub(crate) fn expire(&self) {
        loop {
            let mut state = self.state.lock();
            let first = state.armed.first_key_value().map(|(id, _)| *id);
            let due = first.filter(|id| id.0 <= now());
            let Some((listener, epoch)) = due.and_then(|id| state.armed.remove(&id)) else {
                if let Some(set_alarm) = self.set_alarm.get() {
                    set_alarm(first.map(|id| id.0));
                }
                return;
            };
            drop(state);
            listener.fire(epoch, Ready::IN);
        }
    }
}
