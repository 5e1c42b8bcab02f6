//! timer_create(2), timer_settime(2), getitimer(2), timerfd_create(2), sigevent(3type).

consts! {
    /// Timers of getitimer(2).
    ITIMERS: i32 {
        ITIMER_REAL = 0;
        ITIMER_VIRTUAL = 1;
        ITIMER_PROF = 2;
    }
}

consts! {
    /// Values of `sigev_notify`.
    SIGEV: i32 {
        SIGEV_SIGNAL = 0;
        SIGEV_NONE = 1;
        SIGEV_THREAD = 2;
        SIGEV_THREAD_ID = 4;
    }
}

consts! {
    /// Flags of timerfd_create(2).
    TFD_FLAGS: i32 {
        TFD_NONBLOCK = 0o4000;
        TFD_CLOEXEC = 0o2000000;
    }
}

consts! {
    /// Flags of timerfd_settime(2).
    TFD_SETTIME: i32 {
        TFD_TIMER_ABSTIME = 1;
        TFD_TIMER_CANCEL_ON_SET = 2;
    }
}

use super::{Timespec, Timeval};

pod! {
    /// struct itimerval.
    #[repr(C)]
    pub struct Itimerval [32] {
        pub it_interval: Timeval,
        pub it_value: Timeval,
    }

    /// struct itimerspec.
    #[repr(C)]
    pub struct Itimerspec [32] {
        pub it_interval: Timespec,
        pub it_value: Timespec,
    }

    /// struct sigevent. `sigev_un` begins with sigev_notify_thread_id.
    #[repr(C)]
    pub struct Sigevent [64] {
        pub sigev_value: u64,
        pub sigev_signo: i32,
        pub sigev_notify: i32,
        pub sigev_notify_thread_id: i32,
        pub __pad: [u32; 11],
    }
}
