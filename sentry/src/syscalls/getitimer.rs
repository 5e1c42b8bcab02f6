//! getitimer(2), setitimer(2), alarm(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::time;
use crate::time::posix::SignalTimer;
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::FromZeros;

fn find(cx: &Cx, which: ItimerWhich) -> SysResult<Arc<SignalTimer>> {
    cx.task.process.timers.interval(cx.task, which.bits()).ok_or(Errno::EINVAL.into())
}

fn shape((left, interval): (Duration, Duration)) -> Itimerval {
    // A timer that has less than a microsecond left is not reported as disarmed.
    let least = Duration::from_micros(u64::from(!left.is_zero()));
    Itimerval { it_interval: time::to_timeval(interval), it_value: time::to_timeval(left.max(least)) }
}

/// getitimer(2)
pub fn getitimer(cx: &mut Cx, which: ItimerWhich, curr_value: Out<Itimerval>) -> SysResult {
    let now = find(cx, which)?.get();
    cx.write_value(curr_value.addr(), &shape(now)).map(|()| 0)
}

/// setitimer(2)
pub fn setitimer(
    cx: &mut Cx,
    which: ItimerWhich,
    new_value: In<Itimerval>,
    old_value: Out<Itimerval>,
) -> SysResult {
    let new = match new_value.is_null() {
        true => Itimerval::new_zeroed(),
        false => cx.read_value(new_value.addr())?,
    };
    let timer = find(cx, which)?;
    if new.it_value.tv_usec >= 1_000_000 || new.it_interval.tv_usec >= 1_000_000 {
        return Err(Errno::EINVAL.into());
    }
    let value = time::from_timeval(&new.it_value)?;
    let interval = time::from_timeval(&new.it_interval)?;
    let now = timer.clock.now().unwrap_or_default();
    let next = (!value.is_zero()).then(|| now.saturating_add(value));
    let old = timer.set(next, interval);
    if !old_value.is_null() {
        cx.write_value(old_value.addr(), &shape(old))?;
    }
    Ok(0)
}

/// alarm(2)
pub fn alarm(cx: &mut Cx, seconds: u32) -> SysResult {
    let value = Duration::from_secs(u64::from(seconds));
    let next = (seconds != 0).then(|| time::now().saturating_add(value));
    let timer = cx.task.process.timers.interval(cx.task, ITIMER_REAL).ok_or(Errno::EINVAL)?;
    let (left, _) = timer.set(next, Duration::ZERO);
    // Rounded, and never 0 while one is pending, as Linux does.
    let rounded = left.saturating_add(Duration::from_millis(500)).as_secs();
    Ok(if left.is_zero() { 0 } else { rounded.max(1) })
}
