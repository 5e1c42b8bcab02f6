//! CPU time of guest tasks.

use std::time::Duration;

/// CPU time that a host thread has used; None when it is gone. `host_tid` is [`TaskControl::host_tid`](crate::TaskControl::host_tid).
pub fn cpu_time(host_tid: i32) -> Option<Duration> {
    if host_tid <= 0 {
        return None;
    }
    // CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED of this thread (linux/posix-timers.h).
    let clock = (!host_tid).wrapping_shl(3) | 6;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the write of one timespec.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    let nanos = u32::try_from(time.tv_nsec).ok().filter(|n| *n < 1_000_000_000)?;
    let secs = u64::try_from(time.tv_sec).ok()?;
    (result == 0).then(|| Duration::new(secs, nanos))
}
