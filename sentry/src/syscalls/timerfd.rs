//! timerfd_create(2), timerfd_settime(2), timerfd_gettime(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::ipc::{install, timerfd::Timerfd};
use crate::time::{self, Base};
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// timerfd_create(2)
pub fn timerfd_create(cx: &mut Cx, clockid: ClockId, flags: TimerfdFlags) -> SysResult {
    if flags.unknown(TFD_CLOEXEC | TFD_NONBLOCK) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let base = match clockid.bits() {
        CLOCK_REALTIME => Base::Real,
        CLOCK_MONOTONIC => Base::Monotonic,
        CLOCK_BOOTTIME => Base::Boottime,
        CLOCK_REALTIME_ALARM | CLOCK_BOOTTIME_ALARM => return Err(Errno::EPERM.into()),
        _ => return Err(Errno::EINVAL.into()),
    };
    let ops = Timerfd::new(cx.kernel().timers.clone(), base);
    install(cx, ops, O_RDWR | flags.bits()).map(|fd| fd as u64)
}

fn shape((left, interval): (Duration, Duration)) -> Itimerspec {
    Itimerspec { it_interval: time::to_timespec(interval), it_value: time::to_timespec(left) }
}

/// timerfd_settime(2)
pub fn timerfd_settime(
    cx: &mut Cx,
    fd: Fd,
    flags: TimerFlags,
    new_value: In<Itimerspec>,
    old_value: Out<Itimerspec>,
) -> SysResult {
    let spec: Itimerspec = cx.read_value(new_value.addr())?;
    if flags.unknown(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let value = time::from_timespec(&spec.it_value)?;
    let interval = time::from_timespec(&spec.it_interval)?;
    let file = cx.task.files().get(fd.raw())?;
    let timer = file.downcast::<Timerfd>().ok_or(Errno::EINVAL)?;
    let old = timer.get();
    let next = match value.is_zero() {
        true => None,
        false => Some(time::deadline(cx.task, value, flags.has(TFD_TIMER_ABSTIME), timer.base)),
    };
    timer.set(next, interval);
    if !old_value.is_null() {
        cx.write_value(old_value.addr(), &shape(old))?;
    }
    Ok(0)
}

/// timerfd_gettime(2)
pub fn timerfd_gettime(cx: &mut Cx, fd: Fd, curr_value: Out<Itimerspec>) -> SysResult {
    let file = cx.task.files().get(fd.raw())?;
    let now = file.downcast::<Timerfd>().ok_or(Errno::EINVAL)?.get();
    cx.write_value(curr_value.addr(), &shape(now)).map(|()| 0)
}
