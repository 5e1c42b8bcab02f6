//! What guest processes have used, as the host counts it.

use crate::{CpuTime, Rusage};
use std::time::Duration;

/// Kinds of a process's clocks (linux/posix-timers.h): user and system time by ticks, user time by ticks, and the
/// scheduler's exact sum.
const PROF: i32 = 0;
const VIRT: i32 = 1;
const SCHED: i32 = 2;

fn clock(pid: i32, kind: i32) -> Option<Duration> {
    let clock = (!pid).wrapping_shl(3) | kind;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the write of one timespec.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    let nanos = u32::try_from(time.tv_nsec).ok().filter(|n| *n < 1_000_000_000)?;
    let secs = u64::try_from(time.tv_sec).ok()?;
    (result == 0).then(|| Duration::new(secs, nanos))
}

/// CPU time that a host process has used, its ended threads included; None when it is gone. The exact sum is divided
/// as the host's ticks are, which is how the host shows it too.
pub(crate) fn cpu_time(pid: i32) -> Option<CpuTime> {
    if pid <= 0 {
        return None;
    }
    let sum = clock(pid, SCHED)?;
    let (both, user) = (clock(pid, PROF)?, clock(pid, VIRT)?);
    if both.is_zero() || user >= both {
        return Some(CpuTime { user: sum, system: Duration::ZERO });
    }
    let user = sum.as_nanos().saturating_mul(user.as_nanos()) / both.as_nanos().max(1);
    let user = Duration::from_nanos(u64::try_from(user).unwrap_or(u64::MAX)).min(sum);
    Some(CpuTime { user, system: sum.saturating_sub(user) })
}

/// CPU time of a process without its division: one host call.
pub fn cpu_sum(pid: i32) -> Option<Duration> {
    if pid <= 0 { None } else { clock(pid, SCHED) }
}

/// Bytes of a `struct rusage`.
pub(crate) const RUSAGE_LEN: usize = 144;

fn duration(secs: i64, micros: i64) -> Duration {
    let micros = u64::try_from(micros).unwrap_or(0).min(999_999);
    // A century: what a guest's memory says may be anything.
    Duration::from_secs(u64::try_from(secs).unwrap_or(0).min(1 << 32)) + Duration::from_micros(micros)
}

fn shape(word: impl Fn(usize) -> i64) -> Rusage {
    // As large as no host's counter gets, so that sums stay far from an overflow.
    let count = |at| u64::try_from(word(at)).unwrap_or(0).min(1 << 48);
    Rusage {
        cpu: CpuTime { user: duration(word(0), word(1)), system: duration(word(2), word(3)) },
        max_rss: count(4),
        minor_faults: count(8),
        major_faults: count(9),
        blocks_in: count(11),
        blocks_out: count(12),
        voluntary: count(16),
        involuntary: count(17),
    }
}

/// A `struct rusage` as the host wrote it into a guest's memory: hostile, since the guest can write there too.
pub(crate) fn from_bytes(bytes: &[u8; RUSAGE_LEN]) -> Rusage {
    shape(|at| {
        let word = bytes.get(at * 8..at * 8 + 8).and_then(|b| b.try_into().ok());
        word.map_or(0, i64::from_ne_bytes)
    })
}

/// What was used after `before`. The largest resident size is the process's, and stays.
pub(crate) fn since(now: Rusage, before: Rusage) -> Rusage {
    Rusage {
        cpu: CpuTime {
            user: now.cpu.user.saturating_sub(before.cpu.user),
            system: now.cpu.system.saturating_sub(before.cpu.system),
        },
        max_rss: now.max_rss,
        minor_faults: now.minor_faults.saturating_sub(before.minor_faults),
        major_faults: now.major_faults.saturating_sub(before.major_faults),
        blocks_in: now.blocks_in.saturating_sub(before.blocks_in),
        blocks_out: now.blocks_out.saturating_sub(before.blocks_out),
        voluntary: now.voluntary.saturating_sub(before.voluntary),
        involuntary: now.involuntary.saturating_sub(before.involuntary),
    }
}

/// The host's own `struct rusage`.
pub(crate) fn from_host(usage: &libc::rusage) -> Rusage {
    let words = [
        usage.ru_utime.tv_sec,
        usage.ru_utime.tv_usec,
        usage.ru_stime.tv_sec,
        usage.ru_stime.tv_usec,
        usage.ru_maxrss,
        usage.ru_ixrss,
        usage.ru_idrss,
        usage.ru_isrss,
        usage.ru_minflt,
        usage.ru_majflt,
        usage.ru_nswap,
        usage.ru_inblock,
        usage.ru_oublock,
        usage.ru_msgsnd,
        usage.ru_msgrcv,
        usage.ru_nsignals,
        usage.ru_nvcsw,
        usage.ru_nivcsw,
    ];
    shape(|at| words.get(at).copied().unwrap_or(0))
}

/// What is told of the last usage of a process, whoever comes first: its end, or whoever asks.
#[derive(Default)]
pub(crate) struct LastUsage(parking_lot::Mutex<Last>);

/// Who is told.
pub type Told = Box<dyn FnOnce(Rusage) + Send>;

#[derive(Default)]
struct Last {
    known: Option<Rusage>,
    told: Vec<Told>,
}

impl LastUsage {
    /// The process was reaped.
    pub(crate) fn set(&self, usage: Rusage) {
        let told = {
            let mut last = self.0.lock();
            last.known.get_or_insert(usage);
            std::mem::take(&mut last.told)
        };
        told.into_iter().for_each(|told| told(usage));
    }

    /// Calls `told` with the last usage, now or when the process is reaped.
    pub(crate) fn tell(&self, told: Told) {
        let mut last = self.0.lock();
        match last.known {
            Some(usage) => {
                drop(last);
                told(usage);
            }
            None => last.told.push(told),
        }
    }
}

impl Drop for LastUsage {
    // Reaped unseen: whoever waits must not wait for ever.
    fn drop(&mut self) {
        let last = self.0.get_mut();
        let usage = last.known.unwrap_or_default();
        std::mem::take(&mut last.told).into_iter().for_each(|told| told(usage));
    }
}
