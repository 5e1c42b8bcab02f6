//! CPU time of guest processes.

use std::time::Duration;

/// CPU time that a host process has used, its ended threads included; None when it is gone.
pub(crate) fn cpu_time(pid: i32) -> Option<Duration> {
    if pid <= 0 {
        return None;
    }
    // CPUCLOCK_SCHED of this process (linux/posix-timers.h); the host tells nothing of single threads of others.
    let clock = (!pid).wrapping_shl(3) | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the write of one timespec.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    let nanos = u32::try_from(time.tv_nsec).ok().filter(|n| *n < 1_000_000_000)?;
    let secs = u64::try_from(time.tv_sec).ok()?;
    (result == 0).then(|| Duration::new(secs, nanos))
}
