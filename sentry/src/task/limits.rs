//! Resource limits (getrlimit(2)).

use syscall_table::abi::getrlimit::*;

/// The most that RLIMIT_NOFILE can be (/proc/sys/fs/nr_open).
pub const NR_OPEN: u64 = 1 << 20;

/// Soft and hard limits of a process.
#[derive(Debug, Clone)]
pub struct Limits {
    values: [Rlimit; RLIM_NLIMITS],
}

impl Default for Limits {
    fn default() -> Self {
        let mut limits =
            Limits { values: [Rlimit { rlim_cur: RLIM_INFINITY, rlim_max: RLIM_INFINITY }; RLIM_NLIMITS] };
        let mut set = |resource, cur, max| limits.set(resource, Rlimit { rlim_cur: cur, rlim_max: max });
        set(RLIMIT_STACK, 8 << 20, RLIM_INFINITY);
        set(RLIMIT_CORE, 0, RLIM_INFINITY);
        set(RLIMIT_NPROC, 32768, 32768);
        set(RLIMIT_NOFILE, 1024, 1 << 20);
        set(RLIMIT_MEMLOCK, 8 << 20, 8 << 20);
        set(RLIMIT_SIGPENDING, 32768, 32768);
        set(RLIMIT_MSGQUEUE, 819200, 819200);
        set(RLIMIT_NICE, 0, 0);
        set(RLIMIT_RTPRIO, 0, 0);
        limits
    }
}

impl Limits {
    /// The limit of a resource (RLIMIT_*); none for a number that is no resource.
    pub fn get(&self, resource: u32) -> Rlimit {
        let none = Rlimit { rlim_cur: RLIM_INFINITY, rlim_max: RLIM_INFINITY };
        self.values.get(resource as usize).copied().unwrap_or(none)
    }

    /// The soft limit.
    pub fn soft(&self, resource: u32) -> u64 {
        self.get(resource).rlim_cur
    }

    /// Replaces a limit.
    pub fn set(&mut self, resource: u32, value: Rlimit) {
        if let Some(slot) = self.values.get_mut(resource as usize) {
            *slot = value;
        }
    }
}
