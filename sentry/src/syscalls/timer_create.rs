//! timer_create(2), timer_settime(2), timer_gettime(2), timer_getoverrun(2), timer_delete(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::time::posix::{Clock, Notice, SignalTimer};
use crate::time::{self, Base};
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// timer_create(2)
pub fn timer_create(cx: &mut Cx, clockid: ClockId, sevp: In<Sigevent>, timerid: Out<i32>) -> SysResult {
    let clock = match clockid.bits() {
        CLOCK_REALTIME | CLOCK_TAI => Clock::Wall(Base::Real),
        CLOCK_MONOTONIC => Clock::Wall(Base::Monotonic),
        CLOCK_BOOTTIME => Clock::Wall(Base::Boottime),
        CLOCK_REALTIME_ALARM | CLOCK_BOOTTIME_ALARM => return Err(Errno::EPERM.into()),
        CLOCK_MONOTONIC_RAW | CLOCK_REALTIME_COARSE | CLOCK_MONOTONIC_COARSE => {
            return Err(Errno::EOPNOTSUPP.into());
        }
        id => super::clock_gettime::cpu_clock(cx, id)?,
    };
    let timers = &cx.task.process.timers;
    let wanted = match timers.restores_ids() {
        true => Some(cx.read_value::<i32>(timerid.addr())?),
        false => None,
    };
    if wanted.is_some_and(|id| id < 0) {
        return Err(Errno::EINVAL.into());
    }
    let made = if sevp.is_null() {
        let notice = |id: i32| Notice::Signal { signal: SIGALRM, value: id as u64 };
        timers.create(cx.task, wanted, notice, None, clock)
    } else {
        let event: Sigevent = cx.read_value(sevp.addr())?;
        let thread = match event.sigev_notify & SIGEV_THREAD_ID {
            0 => None,
            _ => {
                let task = cx
                    .kernel()
                    .tree
                    .task(cx.task.meant(event.sigev_notify_thread_id))
                    .map_err(|_| Errno::EINVAL)?;
                Some(task).filter(|t| t.process.pid == cx.task.process.pid)
            }
        };
        let valid = (1..=NSIG).contains(&event.sigev_signo);
        let notice = match event.sigev_notify {
            SIGEV_NONE => Notice::Nothing,
            SIGEV_SIGNAL | SIGEV_THREAD if valid => {
                Notice::Signal { signal: event.sigev_signo, value: event.sigev_value }
            }
            SIGEV_THREAD_ID if valid && thread.is_some() => {
                Notice::Signal { signal: event.sigev_signo, value: event.sigev_value }
            }
            _ => return Err(Errno::EINVAL.into()),
        };
        timers.create(cx.task, wanted, |_| notice, thread.as_ref(), clock)
    };
    let id = made?;
    if let Err(fail) = cx.write_value(timerid.addr(), &id) {
        timers.remove(id);
        return Err(fail);
    }
    Ok(0)
}

fn find(cx: &Cx, id: i32) -> SysResult<Arc<SignalTimer>> {
    cx.task.process.timers.find(id).ok_or(Errno::EINVAL.into())
}

fn shape((left, interval): (Duration, Duration)) -> Itimerspec {
    Itimerspec { it_interval: time::to_timespec(interval), it_value: time::to_timespec(left) }
}

/// timer_settime(2)
pub fn timer_settime(
    cx: &mut Cx,
    timerid: i32,
    flags: TimerFlags,
    new_value: In<Itimerspec>,
    old_value: Out<Itimerspec>,
) -> SysResult {
    let spec: Itimerspec = cx.read_value(new_value.addr())?;
    let value = time::from_timespec(&spec.it_value)?;
    let interval = time::from_timespec(&spec.it_interval)?;
    let timer = find(cx, timerid)?;
    let absolute = flags.has(TIMER_ABSTIME);
    let next = (!value.is_zero()).then(|| match &timer.clock {
        Clock::Wall(base) => time::deadline(cx.task, value, absolute, *base),
        _ if absolute => value,
        cpu => cpu.now().unwrap_or_default().saturating_add(value),
    });
    let old = timer.set(next, interval);
    if !old_value.is_null() {
        cx.write_value(old_value.addr(), &shape(old))?;
    }
    Ok(0)
}

/// timer_gettime(2)
pub fn timer_gettime(cx: &mut Cx, timerid: i32, curr_value: Out<Itimerspec>) -> SysResult {
    let now = find(cx, timerid)?.get();
    cx.write_value(curr_value.addr(), &shape(now)).map(|()| 0)
}

/// timer_getoverrun(2)
pub fn timer_getoverrun(cx: &mut Cx, timerid: i32) -> SysResult {
    Ok(find(cx, timerid)?.overrun() as u64)
}

/// timer_delete(2)
pub fn timer_delete(cx: &mut Cx, timerid: i32) -> SysResult {
    let timer = cx.task.process.timers.remove(timerid).ok_or(Errno::EINVAL)?;
    timer.set(None, Duration::ZERO);
    Ok(0)
}
