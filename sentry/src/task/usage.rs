//! CPU time (getrusage(2), times(2), wait4(2)).
//!
//! The host tells the sum of user and system time of a guest's host process; what the sentry does for a guest is not in it.
//! All of it is shown as user time.

use super::{Process, Task};
use platform::Space;
use std::time::Duration;
use syscall_table::abi::clock_gettime::Timeval;
use syscall_table::abi::getrlimit::Rusage;

/// Of one process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Tasks that have ended.
    pub ended: Duration,
    /// Children that were waited for, and theirs.
    pub children: Duration,
}

/// CPU time of a living task: the host tells only that of all tasks in its space together.
pub fn of_task(task: &Task) -> Duration {
    task.space().cpu_time().unwrap_or_default()
}

/// CPU time of a process, without its children's.
pub fn of_process(process: &Process) -> Duration {
    let ended = process.usage.lock().ended;
    match process.any_thread() {
        // In its parent's space: what is used there is the parent's.
        Some(task) if task.vfork.lock().is_some() => ended,
        Some(task) => ended.saturating_add(of_task(&task)),
        None => ended,
    }
}

/// The process leaves a space that nobody else uses.
pub(crate) fn leave_space(process: &Process, space: &dyn Space) {
    let cpu = space.cpu_time().unwrap_or_default();
    let mut usage = process.usage.lock();
    usage.ended = usage.ended.saturating_add(cpu);
}

/// As getrusage(2) shows it.
pub fn rusage(cpu: Duration) -> Rusage {
    let ru_utime = Timeval { tv_sec: cpu.as_secs() as i64, tv_usec: i64::from(cpu.subsec_micros()) };
    Rusage { ru_utime, ..Rusage::default() }
}

/// In clock ticks of 10 ms.
pub fn ticks(cpu: Duration) -> i64 {
    i64::try_from(cpu.as_millis() / 10).unwrap_or(i64::MAX)
}
