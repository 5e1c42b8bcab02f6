//! uname(2), sysinfo(2), times(2), adjtimex(2).

pod! {
    /// struct new_utsname: six strings, NUL-terminated.
    #[repr(C)]
    pub struct Utsname [390] {
        pub sysname: [u8; 65],
        pub nodename: [u8; 65],
        pub release: [u8; 65],
        pub version: [u8; 65],
        pub machine: [u8; 65],
        pub domainname: [u8; 65],
    }

    /// struct sysinfo.
    #[repr(C)]
    pub struct Sysinfo [112] {
        pub uptime: i64,
        pub loads: [u64; 3],
        pub totalram: u64,
        pub freeram: u64,
        pub sharedram: u64,
        pub bufferram: u64,
        pub totalswap: u64,
        pub freeswap: u64,
        pub procs: u16,
        pub pad: u16,
        pub __pad1: u32,
        pub totalhigh: u64,
        pub freehigh: u64,
        pub mem_unit: u32,
        pub __pad2: u32,
    }

    /// struct tms: clock ticks (100 a second).
    #[repr(C)]
    pub struct Tms [32] {
        pub tms_utime: i64,
        pub tms_stime: i64,
        pub tms_cutime: i64,
        pub tms_cstime: i64,
    }

    /// struct __kernel_timex.
    #[repr(C)]
    pub struct Timex [208] {
        pub modes: u32,
        pub __pad0: u32,
        pub offset: i64,
        pub freq: i64,
        pub maxerror: i64,
        pub esterror: i64,
        pub status: i32,
        pub __pad1: u32,
        pub constant: i64,
        pub precision: i64,
        pub tolerance: i64,
        pub time: super::Timeval,
        pub tick: i64,
        pub ppsfreq: i64,
        pub jitter: i64,
        pub shift: i32,
        pub __pad2: u32,
        pub stabil: i64,
        pub jitcnt: i64,
        pub calcnt: i64,
        pub errcnt: i64,
        pub stbcnt: i64,
        pub tai: i32,
        pub __pad3: [u32; 11],
    }
}
