//! Scheduling parameters: what the guest set is what it reads; the host schedules.

/// Of one task.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sched {
    /// SCHED_*.
    pub policy: i32,
    /// Real-time priority.
    pub priority: i32,
    /// -20 to 19.
    pub nice: i32,
    /// SCHED_RESET_ON_FORK.
    pub reset_on_fork: bool,
    /// Processors allowed; None: all.
    pub affinity: Option<u64>,
    /// ioprio_set(2).
    pub ioprio: i32,
    /// PR_SET_TIMERSLACK in nanoseconds; 0 stands for the default of 50,000.
    pub timer_slack: u64,
}
