//! clock_gettime(2), gettimeofday(2), nanosleep(2) (uapi/linux/time.h).

consts! {
    /// Clock ids.
    CLOCKS: i32 {
        CLOCK_REALTIME = 0;
        CLOCK_MONOTONIC = 1;
        CLOCK_PROCESS_CPUTIME_ID = 2;
        CLOCK_THREAD_CPUTIME_ID = 3;
        CLOCK_MONOTONIC_RAW = 4;
        CLOCK_REALTIME_COARSE = 5;
        CLOCK_MONOTONIC_COARSE = 6;
        CLOCK_BOOTTIME = 7;
        CLOCK_REALTIME_ALARM = 8;
        CLOCK_BOOTTIME_ALARM = 9;
        CLOCK_TAI = 11;
    }
}

consts! {
    /// Flags of clock_nanosleep(2) and timer_settime(2).
    TIMER_FLAGS: i32 {
        TIMER_ABSTIME = 1;
    }
}

consts! {
    /// Values of tv_nsec with a meaning of their own in utimensat(2).
    UTIME: i64 {
        UTIME_NOW = 0x3fffffff;
        UTIME_OMIT = 0x3ffffffe;
    }
}

pod! {
    /// struct timespec (__kernel_timespec).
    #[repr(C)]
    pub struct Timespec [16] {
        pub tv_sec: i64,
        pub tv_nsec: i64,
    }

    /// Two timespecs: utimensat(2).
    #[repr(C)]
    pub struct TimespecPair [32] {
        pub atime: Timespec,
        pub mtime: Timespec,
    }

    /// struct timeval.
    #[repr(C)]
    pub struct Timeval [16] {
        pub tv_sec: i64,
        pub tv_usec: i64,
    }

    /// Two timevals: utimes(2).
    #[repr(C)]
    pub struct TimevalPair [32] {
        pub atime: Timeval,
        pub mtime: Timeval,
    }

    /// struct timezone.
    #[repr(C)]
    pub struct Timezone [8] {
        pub tz_minuteswest: i32,
        pub tz_dsttime: i32,
    }

    /// struct utimbuf: utime(2).
    #[repr(C)]
    pub struct Utimbuf [16] {
        pub actime: i64,
        pub modtime: i64,
    }
}
