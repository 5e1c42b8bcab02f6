//! clone(2), unshare(2), setns(2), close_range(2), pidfd_open(2) (uapi/linux/sched.h).

consts! {
    /// Flags of clone(2) and clone3(2). [`CSIGNAL`] masks the exit signal; CLONE_NEWTIME lies inside it and is for clone3 and unshare.
    CLONE_FLAGS: u64 {
        CSIGNAL = 0xff;
        CLONE_NEWTIME = 0x80;
        CLONE_VM = 0x100;
        CLONE_FS = 0x200;
        CLONE_FILES = 0x400;
        CLONE_SIGHAND = 0x800;
        CLONE_PIDFD = 0x1000;
        CLONE_PTRACE = 0x2000;
        CLONE_VFORK = 0x4000;
        CLONE_PARENT = 0x8000;
        CLONE_THREAD = 0x10000;
        CLONE_NEWNS = 0x20000;
        CLONE_SYSVSEM = 0x40000;
        CLONE_SETTLS = 0x80000;
        CLONE_PARENT_SETTID = 0x100000;
        CLONE_CHILD_CLEARTID = 0x200000;
        CLONE_DETACHED = 0x400000;
        CLONE_UNTRACED = 0x800000;
        CLONE_CHILD_SETTID = 0x1000000;
        CLONE_NEWCGROUP = 0x2000000;
        CLONE_NEWUTS = 0x4000000;
        CLONE_NEWIPC = 0x8000000;
        CLONE_NEWUSER = 0x10000000;
        CLONE_NEWPID = 0x20000000;
        CLONE_NEWNET = 0x40000000;
        CLONE_IO = 0x80000000;
        CLONE_CLEAR_SIGHAND = 0x100000000;
        CLONE_INTO_CGROUP = 0x200000000;
    }
}

consts! {
    /// Flags of close_range(2).
    CLOSE_RANGE_FLAGS: u32 {
        CLOSE_RANGE_UNSHARE = 2;
        CLOSE_RANGE_CLOEXEC = 4;
    }
}

consts! {
    /// Flags of pidfd_open(2).
    PIDFD_FLAGS: u32 {
        PIDFD_NONBLOCK = 0o4000;
        PIDFD_THREAD = 0o200;
    }
}

consts! {
    /// Flags of pidfd_send_signal(2).
    PIDFD_SIGNAL_FLAGS: u32 {
        PIDFD_SIGNAL_THREAD = 1;
        PIDFD_SIGNAL_THREAD_GROUP = 2;
        PIDFD_SIGNAL_PROCESS_GROUP = 4;
    }
}

/// Smallest `size` of clone3(2).
pub const CLONE_ARGS_SIZE_VER0: usize = 64;
/// `size` of clone3(2) with set_tid.
pub const CLONE_ARGS_SIZE_VER1: usize = 80;
/// `size` of clone3(2) with cgroup.
pub const CLONE_ARGS_SIZE_VER2: usize = 88;

pod! {
    /// struct clone_args.
    #[repr(C)]
    pub struct CloneArgs [88] {
        pub flags: u64,
        pub pidfd: u64,
        pub child_tid: u64,
        pub parent_tid: u64,
        pub exit_signal: u64,
        pub stack: u64,
        pub stack_size: u64,
        pub tls: u64,
        pub set_tid: u64,
        pub set_tid_size: u64,
        pub cgroup: u64,
    }
}
