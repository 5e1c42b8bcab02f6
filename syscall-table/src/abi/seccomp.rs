//! seccomp(2), capget(2), getrandom(2), landlock(7), keyctl(2), kcmp(2), syslog(2), reboot(2).

consts! {
    /// Operations of seccomp(2).
    SECCOMP_OPS: u32 {
        SECCOMP_SET_MODE_STRICT = 0;
        SECCOMP_SET_MODE_FILTER = 1;
        SECCOMP_GET_ACTION_AVAIL = 2;
        SECCOMP_GET_NOTIF_SIZES = 3;
    }
}

consts! {
    /// Flags of SECCOMP_SET_MODE_FILTER.
    SECCOMP_FILTER_FLAGS: u32 {
        SECCOMP_FILTER_FLAG_TSYNC = 0x1;
        SECCOMP_FILTER_FLAG_LOG = 0x2;
        SECCOMP_FILTER_FLAG_SPEC_ALLOW = 0x4;
        SECCOMP_FILTER_FLAG_NEW_LISTENER = 0x8;
        SECCOMP_FILTER_FLAG_TSYNC_ESRCH = 0x10;
        SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 0x20;
    }
}

consts! {
    /// Actions of a filter.
    SECCOMP_ACTIONS: u32 {
        SECCOMP_RET_KILL_PROCESS = 0x80000000;
        SECCOMP_RET_KILL_THREAD = 0x0;
        SECCOMP_RET_TRAP = 0x30000;
        SECCOMP_RET_ERRNO = 0x50000;
        SECCOMP_RET_USER_NOTIF = 0x7fc00000;
        SECCOMP_RET_TRACE = 0x7ff00000;
        SECCOMP_RET_LOG = 0x7ffc0000;
        SECCOMP_RET_ALLOW = 0x7fff0000;
    }
}

consts! {
    /// Modes of PR_SET_SECCOMP.
    SECCOMP_MODES: u64 {
        SECCOMP_MODE_DISABLED = 0;
        SECCOMP_MODE_STRICT = 1;
        SECCOMP_MODE_FILTER = 2;
    }
}

consts! {
    /// Capabilities.
    CAPABILITIES: u32 {
        CAP_CHOWN = 0;
        CAP_DAC_OVERRIDE = 1;
        CAP_DAC_READ_SEARCH = 2;
        CAP_FOWNER = 3;
        CAP_FSETID = 4;
        CAP_KILL = 5;
        CAP_SETGID = 6;
        CAP_SETUID = 7;
        CAP_SETPCAP = 8;
        CAP_LINUX_IMMUTABLE = 9;
        CAP_NET_BIND_SERVICE = 10;
        CAP_NET_BROADCAST = 11;
        CAP_NET_ADMIN = 12;
        CAP_NET_RAW = 13;
        CAP_IPC_LOCK = 14;
        CAP_IPC_OWNER = 15;
        CAP_SYS_MODULE = 16;
        CAP_SYS_RAWIO = 17;
        CAP_SYS_CHROOT = 18;
        CAP_SYS_PTRACE = 19;
        CAP_SYS_PACCT = 20;
        CAP_SYS_ADMIN = 21;
        CAP_SYS_BOOT = 22;
        CAP_SYS_NICE = 23;
        CAP_SYS_RESOURCE = 24;
        CAP_SYS_TIME = 25;
        CAP_SYS_TTY_CONFIG = 26;
        CAP_MKNOD = 27;
        CAP_LEASE = 28;
        CAP_AUDIT_WRITE = 29;
        CAP_AUDIT_CONTROL = 30;
        CAP_SETFCAP = 31;
        CAP_MAC_OVERRIDE = 32;
        CAP_MAC_ADMIN = 33;
        CAP_SYSLOG = 34;
        CAP_WAKE_ALARM = 35;
        CAP_BLOCK_SUSPEND = 36;
        CAP_AUDIT_READ = 37;
        CAP_PERFMON = 38;
        CAP_BPF = 39;
        CAP_CHECKPOINT_RESTORE = 40;
    }
}

consts! {
    /// Flags of getrandom(2).
    GRND_FLAGS: u32 {
        GRND_NONBLOCK = 1;
        GRND_RANDOM = 2;
        GRND_INSECURE = 4;
    }
}

consts! {
    /// Operations of keyctl(2).
    KEYCTL_OPS: i32 {
        KEYCTL_GET_KEYRING_ID = 0;
        KEYCTL_JOIN_SESSION_KEYRING = 1;
        KEYCTL_UPDATE = 2;
        KEYCTL_REVOKE = 3;
        KEYCTL_CHOWN = 4;
        KEYCTL_SETPERM = 5;
        KEYCTL_DESCRIBE = 6;
        KEYCTL_CLEAR = 7;
        KEYCTL_LINK = 8;
        KEYCTL_UNLINK = 9;
        KEYCTL_SEARCH = 10;
        KEYCTL_READ = 11;
        KEYCTL_INSTANTIATE = 12;
        KEYCTL_NEGATE = 13;
        KEYCTL_SET_REQKEY_KEYRING = 14;
        KEYCTL_SET_TIMEOUT = 15;
        KEYCTL_ASSUME_AUTHORITY = 16;
        KEYCTL_GET_SECURITY = 17;
        KEYCTL_SESSION_TO_PARENT = 18;
        KEYCTL_REJECT = 19;
        KEYCTL_INSTANTIATE_IOV = 20;
        KEYCTL_INVALIDATE = 21;
        KEYCTL_GET_PERSISTENT = 22;
        KEYCTL_DH_COMPUTE = 23;
        KEYCTL_PKEY_QUERY = 24;
        KEYCTL_PKEY_ENCRYPT = 25;
        KEYCTL_PKEY_DECRYPT = 26;
        KEYCTL_PKEY_SIGN = 27;
        KEYCTL_PKEY_VERIFY = 28;
        KEYCTL_RESTRICT_KEYRING = 29;
        KEYCTL_MOVE = 30;
        KEYCTL_CAPABILITIES = 31;
        KEYCTL_WATCH_KEY = 32;
    }
}

consts! {
    /// Types of kcmp(2).
    KCMP_TYPES: i32 {
        KCMP_FILE = 0;
        KCMP_VM = 1;
        KCMP_FILES = 2;
        KCMP_FS = 3;
        KCMP_SIGHAND = 4;
        KCMP_IO = 5;
        KCMP_SYSVSEM = 6;
        KCMP_EPOLL_TFD = 7;
    }
}

pod! {
    /// struct kcmp_epoll_slot.
    #[repr(C)]
    pub struct KcmpEpollSlot [12] {
        pub efd: u32,
        pub tfd: u32,
        pub toff: u32,
    }
}

consts! {
    /// Types of syslog(2).
    SYSLOG_ACTIONS: i32 {
        SYSLOG_ACTION_CLOSE = 0;
        SYSLOG_ACTION_OPEN = 1;
        SYSLOG_ACTION_READ = 2;
        SYSLOG_ACTION_READ_ALL = 3;
        SYSLOG_ACTION_READ_CLEAR = 4;
        SYSLOG_ACTION_CLEAR = 5;
        SYSLOG_ACTION_CONSOLE_OFF = 6;
        SYSLOG_ACTION_CONSOLE_ON = 7;
        SYSLOG_ACTION_CONSOLE_LEVEL = 8;
        SYSLOG_ACTION_SIZE_UNREAD = 9;
        SYSLOG_ACTION_SIZE_BUFFER = 10;
    }
}

consts! {
    /// Commands of reboot(2).
    REBOOT_CMDS: u32 {
        LINUX_REBOOT_CMD_RESTART = 0x1234567;
        LINUX_REBOOT_CMD_HALT = 0xcdef0123;
        LINUX_REBOOT_CMD_CAD_ON = 0x89abcdef;
        LINUX_REBOOT_CMD_CAD_OFF = 0x0;
        LINUX_REBOOT_CMD_POWER_OFF = 0x4321fedc;
        LINUX_REBOOT_CMD_RESTART2 = 0xa1b2c3d4;
        LINUX_REBOOT_CMD_SW_SUSPEND = 0xd000fce2;
        LINUX_REBOOT_CMD_KEXEC = 0x45584543;
    }
}

/// `CapHeader::version` with one word of data.
pub const LINUX_CAPABILITY_VERSION_1: u32 = 0x19980330;
/// `CapHeader::version` with two words of data (deprecated).
pub const LINUX_CAPABILITY_VERSION_2: u32 = 0x20071026;
/// `CapHeader::version` with two words of data.
pub const LINUX_CAPABILITY_VERSION_3: u32 = 0x20080522;
/// The highest capability.
pub const CAP_LAST_CAP: u32 = CAP_CHECKPOINT_RESTORE;

pod! {
    /// struct __user_cap_header_struct.
    #[repr(C)]
    pub struct CapHeader [8] {
        pub version: u32,
        pub pid: i32,
    }

    /// struct __user_cap_data_struct.
    #[repr(C)]
    pub struct CapData [12] {
        pub effective: u32,
        pub permitted: u32,
        pub inheritable: u32,
    }

    /// struct sock_fprog.
    #[repr(C)]
    pub struct SockFprog [16] {
        pub len: u16,
        pub __pad0: u16,
        pub __pad1: u32,
        pub filter: u64,
    }

    /// struct sock_filter.
    #[repr(C)]
    pub struct SockFilter [8] {
        pub code: u16,
        pub jt: u8,
        pub jf: u8,
        pub k: u32,
    }

    /// struct seccomp_data.
    #[repr(C)]
    pub struct SeccompData [64] {
        pub nr: i32,
        pub arch: u32,
        pub instruction_pointer: u64,
        pub args: [u64; 6],
    }

    /// struct seccomp_notif_sizes.
    #[repr(C)]
    pub struct SeccompNotifSizes [6] {
        pub seccomp_notif: u16,
        pub seccomp_notif_resp: u16,
        pub seccomp_data: u16,
    }

    /// struct seccomp_notif.
    #[repr(C)]
    pub struct SeccompNotif [80] {
        pub id: u64,
        pub pid: u32,
        pub flags: u32,
        pub data: SeccompData,
    }

    /// struct seccomp_notif_resp.
    #[repr(C)]
    pub struct SeccompNotifResp [24] {
        pub id: u64,
        pub val: i64,
        pub error: i32,
        pub flags: u32,
    }

    /// struct seccomp_notif_addfd.
    #[repr(C)]
    pub struct SeccompNotifAddfd [24] {
        pub id: u64,
        pub flags: u32,
        pub srcfd: u32,
        pub newfd: u32,
        pub newfd_flags: u32,
    }
}

/// `SeccompNotifResp::flags`: the call goes on as if the filter had allowed it.
pub const SECCOMP_USER_NOTIF_FLAG_CONTINUE: u32 = 1;
/// SECCOMP_IOCTL_NOTIF_SET_FLAGS: who waits for a reply is woken on the processor that replies.
pub const SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP: u64 = 1;
/// `SeccompNotifAddfd::flags`: under the number `newfd`.
pub const SECCOMP_ADDFD_FLAG_SETFD: u32 = 1;
/// `SeccompNotifAddfd::flags`: the new descriptor is the reply.
pub const SECCOMP_ADDFD_FLAG_SEND: u32 = 2;

/// `SeccompData::arch` of x86-64.
pub const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// `SeccompData::arch` of i386.
pub const AUDIT_ARCH_I386: u32 = 0x4000_0003;
