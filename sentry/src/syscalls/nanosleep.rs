//! nanosleep(2), clock_nanosleep(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::time;
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

fn until(cx: &mut Cx, spec: u64, absolute: bool, real: bool) -> SysResult<Option<Duration>> {
    if let Some(kept) = cx.call.deadline {
        return Ok(kept);
    }
    let wish = time::from_timespec(&cx.read_value(spec)?)?;
    Ok(cx.deadline(|| Some(time::deadline(wish, absolute, real))))
}

/// nanosleep(2)
pub fn nanosleep(cx: &mut Cx, duration: In<Timespec>, rem: Out<Timespec>) -> SysResult {
    let until = until(cx, duration.addr(), false, false)?;
    sleep(cx, until, (!rem.is_null()).then_some(rem.addr()), Restart::Block)
}

/// clock_nanosleep(2)
pub fn clock_nanosleep(
    cx: &mut Cx,
    clockid: ClockId,
    flags: TimerFlags,
    t: In<Timespec>,
    remain: Out<Timespec>,
) -> SysResult {
    let real = match clockid.bits() {
        CLOCK_REALTIME | CLOCK_TAI => true,
        CLOCK_MONOTONIC | CLOCK_BOOTTIME => false,
        CLOCK_PROCESS_CPUTIME_ID => {
            return Err(crate::fail::Fail::gap(Errno::EOPNOTSUPP, "sleeping by processor time"));
        }
        CLOCK_REALTIME_ALARM | CLOCK_BOOTTIME_ALARM => return Err(Errno::EPERM.into()),
        CLOCK_MONOTONIC_RAW | CLOCK_REALTIME_COARSE | CLOCK_MONOTONIC_COARSE => {
            return Err(Errno::EOPNOTSUPP.into());
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    let absolute = flags.has(TIMER_ABSTIME);
    let until = until(cx, t.addr(), absolute, real)?;
    match absolute {
        true => sleep(cx, until, None, Restart::NoHand),
        false => sleep(cx, until, (!remain.is_null()).then_some(remain.addr()), Restart::Block),
    }
}
