//! getrlimit(2), getrusage(2), getpriority(2) (uapi/asm-generic/resource.h, uapi/linux/resource.h).

consts! {
    /// Resources.
    RLIMITS: u32 {
        RLIMIT_CPU = 0;
        RLIMIT_FSIZE = 1;
        RLIMIT_DATA = 2;
        RLIMIT_STACK = 3;
        RLIMIT_CORE = 4;
        RLIMIT_RSS = 5;
        RLIMIT_NPROC = 6;
        RLIMIT_NOFILE = 7;
        RLIMIT_MEMLOCK = 8;
        RLIMIT_AS = 9;
        RLIMIT_LOCKS = 10;
        RLIMIT_SIGPENDING = 11;
        RLIMIT_MSGQUEUE = 12;
        RLIMIT_NICE = 13;
        RLIMIT_RTPRIO = 14;
        RLIMIT_RTTIME = 15;
    }
}

consts! {
    /// Who of getrusage(2).
    RUSAGE_WHO: i32 {
        RUSAGE_SELF = 0;
        RUSAGE_CHILDREN = -1;
        RUSAGE_THREAD = 1;
    }
}

consts! {
    /// Which of getpriority(2).
    PRIORITY_WHICH: i32 {
        PRIO_PROCESS = 0;
        PRIO_PGRP = 1;
        PRIO_USER = 2;
    }
}

/// No limit.
pub const RLIM_INFINITY: u64 = u64::MAX;
/// Number of resources.
pub const RLIM_NLIMITS: usize = 16;

use super::Timeval;

pod! {
    /// struct rlimit64.
    #[repr(C)]
    pub struct Rlimit [16] {
        pub rlim_cur: u64,
        pub rlim_max: u64,
    }

    /// struct rusage.
    #[repr(C)]
    pub struct Rusage [144] {
        pub ru_utime: Timeval,
        pub ru_stime: Timeval,
        pub ru_maxrss: i64,
        pub ru_ixrss: i64,
        pub ru_idrss: i64,
        pub ru_isrss: i64,
        pub ru_minflt: i64,
        pub ru_majflt: i64,
        pub ru_nswap: i64,
        pub ru_inblock: i64,
        pub ru_oublock: i64,
        pub ru_msgsnd: i64,
        pub ru_msgrcv: i64,
        pub ru_nsignals: i64,
        pub ru_nvcsw: i64,
        pub ru_nivcsw: i64,
    }
}
