//! nanosleep(2), clock_nanosleep(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::time::posix::Clock;
use crate::time::{self, Base};
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

fn sleep(cx: &mut Cx, until: Option<Duration>, rem: Option<u64>, restart: Restart) -> SysResult {
    let left = until.map_or(Duration::ZERO, |d| d.saturating_sub(time::now()));
    if left.is_zero() {
        return Ok(0);
    }
    // This attempt is the last one if a signal is pending: the rest is told now.
    if let Some(rem) = rem
        && crate::signal::deliver::pending(cx.task)
    {
        cx.write_value(rem, &time::to_timespec(left))?;
    }
    cx.block_until(until, restart)
}

fn until(cx: &mut Cx, spec: u64, absolute: bool, base: Base) -> SysResult<Option<Duration>> {
    if let Some(kept) = cx.call.deadline {
        return Ok(kept);
    }
    let wish = time::from_timespec(&cx.read_value(spec)?)?;
    let deadline = time::deadline(cx.task, wish, absolute, base);
    Ok(cx.deadline(|| Some(deadline)))
}

/// nanosleep(2)
pub fn nanosleep(cx: &mut Cx, duration: In<Timespec>, rem: Out<Timespec>) -> SysResult {
    let until = until(cx, duration.addr(), false, Base::Monotonic)?;
    sleep(cx, until, (!rem.is_null()).then_some(rem.addr()), Restart::Block)
}

/// How far a sleep by processor time is.
#[derive(Default)]
struct ByCpu {
    until: Option<Duration>,
    seen: Duration,
    idle: u32,
}

fn by_cpu(cx: &mut Cx, clock: &Clock, absolute: bool, t: In<Timespec>, remain: Out<Timespec>) -> SysResult {
    if matches!(clock, Clock::Thread(_)) {
        // As Linux for the caller's own; those of its other threads are known too late here.
        return Err(Errno::EINVAL.into());
    }
    let now = clock.now().ok_or(Errno::EINVAL)?;
    let until = match cx.state::<ByCpu>().until {
        Some(until) => until,
        None => {
            let wish = time::from_timespec(&cx.read_value(t.addr())?)?;
            let until = if absolute { wish } else { now.saturating_add(wish) };
            cx.state::<ByCpu>().until = Some(until);
            until
        }
    };
    let left = until.saturating_sub(now);
    if left.is_zero() {
        return Ok(0);
    }
    if !absolute && !remain.is_null() && crate::signal::deliver::pending(cx.task) {
        cx.write_value(remain.addr(), &time::to_timespec(left))?;
    }
    let state = cx.state::<ByCpu>();
    let moved = now.saturating_sub(state.seen) > Duration::from_micros(100);
    state.idle = if moved { 0 } else { state.idle.saturating_add(1) };
    if moved {
        state.seen = now;
    }
    let again = clock.look_again(left, state.idle);
    cx.block_until(Some(again), if absolute { Restart::NoHand } else { Restart::Block })
}

/// clock_nanosleep(2)
pub fn clock_nanosleep(
    cx: &mut Cx,
    clockid: ClockId,
    flags: TimerFlags,
    t: In<Timespec>,
    remain: Out<Timespec>,
) -> SysResult {
    let base = match clockid.bits() {
        CLOCK_REALTIME | CLOCK_TAI => Base::Real,
        CLOCK_MONOTONIC => Base::Monotonic,
        CLOCK_BOOTTIME => Base::Boottime,
        CLOCK_REALTIME_ALARM | CLOCK_BOOTTIME_ALARM => return Err(Errno::EPERM.into()),
        CLOCK_MONOTONIC_RAW | CLOCK_REALTIME_COARSE | CLOCK_MONOTONIC_COARSE | CLOCK_THREAD_CPUTIME_ID => {
            return Err(Errno::EOPNOTSUPP.into());
        }
        id => {
            let clock = super::clock_gettime::cpu_clock(cx, id)?;
            return by_cpu(cx, &clock, flags.has(TIMER_ABSTIME), t, remain);
        }
    };
    let absolute = flags.has(TIMER_ABSTIME);
    let until = until(cx, t.addr(), absolute, base)?;
    match absolute {
        true => sleep(cx, until, None, Restart::NoHand),
        false => sleep(cx, until, (!remain.is_null()).then_some(remain.addr()), Restart::Block),
    }
}
