//! clock_gettime(2), clock_getres(2), clock_settime(2), gettimeofday(2), settimeofday(2), time(2), adjtimex(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::tree::INIT;
use crate::task::{Process, Task, usage};
use crate::time;
use rustix::time::{ClockId as Host, clock_getres as host_res, clock_gettime as host_time};
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::FromZeros;

/// What a clock id names.
enum Clock {
    Host(Host),
    /// Processor time of this thread.
    Thread(i32),
    /// Processor time of the process of this thread.
    Process(i32),
}

fn clock(cx: &Cx, id: i32) -> SysResult<Clock> {
    Ok(Clock::Host(match id {
        // TAI's distance is 0 until somebody sets it (adjtimex), which nobody here can.
        CLOCK_REALTIME | CLOCK_REALTIME_ALARM | CLOCK_TAI => Host::Realtime,
        CLOCK_MONOTONIC => Host::Monotonic,
        CLOCK_MONOTONIC_RAW => Host::MonotonicRaw,
        CLOCK_REALTIME_COARSE => Host::RealtimeCoarse,
        CLOCK_MONOTONIC_COARSE => Host::MonotonicCoarse,
        CLOCK_BOOTTIME => Host::Boottime,
        CLOCK_BOOTTIME_ALARM => Host::BoottimeAlarm,
        CLOCK_PROCESS_CPUTIME_ID => return Ok(Clock::Process(cx.task.tid())),
        CLOCK_THREAD_CPUTIME_ID => return Ok(Clock::Thread(cx.task.tid())),
        // Made by clock_getcpuclockid(3): ~pid << 3, kind in the low bits, 4 for a thread; kind 3 is a descriptor.
        _ if id < 0 && id & 3 != 3 => {
            let pid = !(id >> 3);
            let pid = if pid == 0 { cx.task.tid() } else { cx.task.meant(pid) };
            return Ok(if id & 4 != 0 { Clock::Thread(pid) } else { Clock::Process(pid) });
        }
        _ => return Err(Errno::EINVAL.into()),
    }))
}

fn read(cx: &mut Cx, id: i32) -> SysResult<Timespec> {
    match clock(cx, id)? {
        Clock::Host(host) => {
            let t = host_time(host);
            let offset = match host {
                Host::Monotonic | Host::MonotonicRaw | Host::MonotonicCoarse => {
                    cx.task.clock_offsets().monotonic
                }
                Host::Boottime | Host::BoottimeAlarm => cx.task.clock_offsets().boottime,
                _ => 0,
            };
            if offset == 0 {
                return Ok(Timespec { tv_sec: t.tv_sec, tv_nsec: t.tv_nsec });
            }
            let seconds = u64::try_from(t.tv_sec).unwrap_or(0);
            let now = std::time::Duration::new(seconds, u32::try_from(t.tv_nsec).unwrap_or(0));
            Ok(time::to_timespec(time::shifted(now, offset)))
        }
        Clock::Thread(tid) if tid == cx.task.tid() => {
            let used = usage::of_caller(cx)?;
            cx.task.process.timers.check();
            Ok(time::to_timespec(usage::sum(used.cpu)))
        }
        Clock::Thread(tid) => {
            let task = thread(cx, tid)?;
            usage::of_other(cx, &task).map(time::to_timespec)
        }
        // The virtual init has used none that anybody counts.
        Clock::Process(INIT) => Ok(Timespec::new_zeroed()),
        Clock::Process(tid) => {
            let process = process(cx, tid)?;
            process.timers.check();
            Ok(time::to_timespec(usage::sum_of_process(&process)))
        }
    }
}

/// A thread's clock is its own process's alone.
fn thread(cx: &Cx, tid: i32) -> SysResult<Arc<Task>> {
    let task = cx.kernel().tree.task(tid).map_err(|_| Errno::EINVAL)?;
    if Arc::ptr_eq(&task.process, &cx.task.process) { Ok(task) } else { Err(Errno::EINVAL.into()) }
}

/// A process's clock goes by its pid; a thread may use its own id.
fn process(cx: &Cx, tid: i32) -> SysResult<Arc<Process>> {
    if tid == cx.task.tid() {
        return Ok(cx.task.process.clone());
    }
    Ok(cx.kernel().tree.process(tid).map_err(|_| Errno::EINVAL)?)
}

/// A clock of processor time, for timers and sleeps.
///
/// # Errors
/// EINVAL: it is none.
pub(super) fn cpu_clock(cx: &Cx, id: i32) -> SysResult<time::posix::Clock> {
    Ok(match clock(cx, id)? {
        Clock::Host(_) => return Err(Errno::EINVAL.into()),
        Clock::Process(tid) => time::posix::Clock::Process(Arc::downgrade(&process(cx, tid)?)),
        Clock::Thread(tid) => time::posix::Clock::Thread(Arc::downgrade(&thread(cx, tid)?)),
    })
}

/// clock_gettime(2)
pub fn clock_gettime(cx: &mut Cx, clockid: ClockId, tp: Out<Timespec>) -> SysResult {
    let now = read(cx, clockid.bits())?;
    cx.write_value(tp.addr(), &now).map(|()| 0)
}

/// Of clocks of processor time.
const RESOLUTION: Timespec = Timespec { tv_sec: 0, tv_nsec: 1 };

/// clock_getres(2)
pub fn clock_getres(cx: &mut Cx, clockid: ClockId, res: Out<Timespec>) -> SysResult {
    let res_value = match clock(cx, clockid.bits())? {
        Clock::Host(host) => {
            let t = host_res(host);
            Timespec { tv_sec: t.tv_sec, tv_nsec: t.tv_nsec }
        }
        Clock::Process(INIT) => RESOLUTION,
        Clock::Thread(tid) => thread(cx, tid).map(|_| RESOLUTION)?,
        Clock::Process(tid) => process(cx, tid).map(|_| RESOLUTION)?,
    };
    if !res.is_null() {
        cx.write_value(res.addr(), &res_value)?;
    }
    Ok(0)
}

/// clock_settime(2): the guest has no right to set clocks.
pub fn clock_settime(cx: &mut Cx, clockid: ClockId, tp: In<Timespec>) -> SysResult {
    let id = clockid.bits();
    // Others that are the machine's cannot be set at all, and nothing is read for them.
    if id > CLOCK_REALTIME {
        return Err(Errno::EINVAL.into());
    }
    let wanted: Timespec = cx.read_value(tp.addr())?;
    if id != CLOCK_REALTIME {
        return Err(Errno::EINVAL.into());
    }
    time::from_timespec(&wanted)?;
    Err(Errno::EPERM.into())
}

/// settimeofday(2): the guest has no right to set clocks.
pub fn settimeofday(cx: &mut Cx, tv: In<Timeval>, tz: In<Timezone>) -> SysResult {
    let wanted: Option<Timeval> = if tv.is_null() { None } else { Some(cx.read_value(tv.addr())?) };
    if wanted.as_ref().is_some_and(|tv| !(0..=1_000_000).contains(&tv.tv_usec)) {
        return Err(Errno::EINVAL.into());
    }
    if !tz.is_null() {
        let _: Timezone = cx.read_value(tz.addr())?;
    }
    if wanted.is_some_and(|tv| tv.tv_sec < 0 || tv.tv_usec == 1_000_000) {
        return Err(Errno::EINVAL.into());
    }
    Err(Errno::EPERM.into())
}

/// gettimeofday(2)
pub fn gettimeofday(cx: &mut Cx, tv: Out<Timeval>, tz: Out<Timezone>) -> SysResult {
    if !tv.is_null() {
        cx.write_value(tv.addr(), &time::to_timeval(time::realtime()))?;
    }
    if !tz.is_null() {
        cx.write_value(tz.addr(), &Timezone::new_zeroed())?;
    }
    Ok(0)
}

/// time(2)
pub fn time(cx: &mut Cx, tloc: Out<i64>) -> SysResult {
    let now = time::realtime().as_secs();
    if !tloc.is_null() {
        cx.write_value(tloc.addr(), &(now as i64))?;
    }
    Ok(now)
}

/// adjtimex(2): reading alone.
pub fn adjtimex(cx: &mut Cx, buf: InOut<Timex>) -> SysResult {
    let asked: Timex = cx.read_value(buf.addr())?;
    if asked.modes != 0 {
        return Err(Errno::EPERM.into());
    }
    let mut out = Timex::new_zeroed();
    out.time = time::to_timeval(time::realtime());
    out.tick = 10_000;
    out.precision = 1;
    out.tolerance = 32_768_000;
    // STA_UNSYNC, and TIME_ERROR as the result: the guest is not told of the host's synchronisation.
    out.status = 0x40;
    out.maxerror = 16_000_000;
    out.esterror = 16_000_000;
    cx.write_value(buf.addr(), &out)?;
    Ok(5)
}

/// clock_adjtime(2)
pub fn clock_adjtime(cx: &mut Cx, clockid: ClockId, buf: InOut<Timex>) -> SysResult {
    match clockid.bits() {
        CLOCK_REALTIME => adjtimex(cx, buf),
        id => {
            clock(cx, id)?;
            Err(Errno::EOPNOTSUPP.into())
        }
    }
}
