//! prctl(2), arch_prctl(2), personality(2) (uapi/linux/prctl.h, uapi/asm/prctl.h).

consts! {
    /// Options of prctl(2).
    PRCTL_OPTIONS: i32 {
        PR_SET_PDEATHSIG = 1;
        PR_GET_PDEATHSIG = 2;
        PR_GET_DUMPABLE = 3;
        PR_SET_DUMPABLE = 4;
        PR_GET_UNALIGN = 5;
        PR_SET_UNALIGN = 6;
        PR_GET_KEEPCAPS = 7;
        PR_SET_KEEPCAPS = 8;
        PR_GET_FPEMU = 9;
        PR_SET_FPEMU = 10;
        PR_GET_FPEXC = 11;
        PR_SET_FPEXC = 12;
        PR_GET_TIMING = 13;
        PR_SET_TIMING = 14;
        PR_SET_NAME = 15;
        PR_GET_NAME = 16;
        PR_GET_ENDIAN = 19;
        PR_SET_ENDIAN = 20;
        PR_GET_SECCOMP = 21;
        PR_SET_SECCOMP = 22;
        PR_CAPBSET_READ = 23;
        PR_CAPBSET_DROP = 24;
        PR_GET_TSC = 25;
        PR_SET_TSC = 26;
        PR_GET_SECUREBITS = 27;
        PR_SET_SECUREBITS = 28;
        PR_SET_TIMERSLACK = 29;
        PR_GET_TIMERSLACK = 30;
        PR_TASK_PERF_EVENTS_DISABLE = 31;
        PR_TASK_PERF_EVENTS_ENABLE = 32;
        PR_MCE_KILL = 33;
        PR_MCE_KILL_GET = 34;
        PR_SET_MM = 35;
        PR_SET_CHILD_SUBREAPER = 36;
        PR_GET_CHILD_SUBREAPER = 37;
        PR_SET_NO_NEW_PRIVS = 38;
        PR_GET_NO_NEW_PRIVS = 39;
        PR_GET_TID_ADDRESS = 40;
        PR_SET_THP_DISABLE = 41;
        PR_GET_THP_DISABLE = 42;
        PR_MPX_ENABLE_MANAGEMENT = 43;
        PR_MPX_DISABLE_MANAGEMENT = 44;
        PR_SET_FP_MODE = 45;
        PR_GET_FP_MODE = 46;
        PR_CAP_AMBIENT = 47;
        PR_SVE_SET_VL = 50;
        PR_SVE_GET_VL = 51;
        PR_GET_SPECULATION_CTRL = 52;
        PR_SET_SPECULATION_CTRL = 53;
        PR_PAC_RESET_KEYS = 54;
        PR_SET_TAGGED_ADDR_CTRL = 55;
        PR_GET_TAGGED_ADDR_CTRL = 56;
        PR_SET_IO_FLUSHER = 57;
        PR_GET_IO_FLUSHER = 58;
        PR_SET_SYSCALL_USER_DISPATCH = 59;
        PR_PAC_SET_ENABLED_KEYS = 60;
        PR_PAC_GET_ENABLED_KEYS = 61;
        PR_SCHED_CORE = 62;
        PR_SME_SET_VL = 63;
        PR_SME_GET_VL = 64;
        PR_SET_MDWE = 65;
        PR_GET_MDWE = 66;
        PR_SET_MEMORY_MERGE = 67;
        PR_GET_MEMORY_MERGE = 68;
        PR_RISCV_V_SET_CONTROL = 69;
        PR_RISCV_V_GET_CONTROL = 70;
        PR_RISCV_SET_ICACHE_FLUSH_CTX = 71;
        PR_PPC_GET_DEXCR = 72;
        PR_PPC_SET_DEXCR = 73;
        PR_GET_SHADOW_STACK_STATUS = 74;
        PR_SET_SHADOW_STACK_STATUS = 75;
        PR_LOCK_SHADOW_STACK_STATUS = 76;
        PR_TIMER_CREATE_RESTORE_IDS = 77;
        PR_FUTEX_HASH = 78;
        PR_GET_AUXV = 1096112214;
        PR_SET_VMA = 1398164801;
        PR_SET_PTRACER = 1499557217;
    }
}

consts! {
    /// Options of arch_prctl(2).
    ARCH_PRCTL_OPTIONS: i32 {
        ARCH_SET_GS = 0x1001;
        ARCH_SET_FS = 0x1002;
        ARCH_GET_FS = 0x1003;
        ARCH_GET_GS = 0x1004;
        ARCH_GET_CPUID = 0x1011;
        ARCH_SET_CPUID = 0x1012;
        ARCH_GET_XCOMP_SUPP = 0x1021;
        ARCH_GET_XCOMP_PERM = 0x1022;
        ARCH_REQ_XCOMP_PERM = 0x1023;
        ARCH_GET_XCOMP_GUEST_PERM = 0x1024;
        ARCH_REQ_XCOMP_GUEST_PERM = 0x1025;
        ARCH_MAP_VDSO_X32 = 0x2001;
        ARCH_MAP_VDSO_32 = 0x2002;
        ARCH_MAP_VDSO_64 = 0x2003;
        ARCH_GET_UNTAG_MASK = 0x4001;
        ARCH_ENABLE_TAGGED_ADDR = 0x4002;
        ARCH_GET_MAX_TAG_BITS = 0x4003;
        ARCH_FORCE_TAGGED_SVA = 0x4004;
        ARCH_SHSTK_ENABLE = 0x5001;
        ARCH_SHSTK_DISABLE = 0x5002;
        ARCH_SHSTK_LOCK = 0x5003;
        ARCH_SHSTK_UNLOCK = 0x5004;
        ARCH_SHSTK_STATUS = 0x5005;
    }
}

consts! {
    /// Execution domains.
    PERSONALITY: u32 {
        PER_LINUX = 0x0;
        PER_LINUX32 = 0x8;
        UNAME26 = 0x20000;
        ADDR_NO_RANDOMIZE = 0x40000;
        FDPIC_FUNCPTRS = 0x80000;
        MMAP_PAGE_ZERO = 0x100000;
        ADDR_COMPAT_LAYOUT = 0x200000;
        READ_IMPLIES_EXEC = 0x400000;
        ADDR_LIMIT_32BIT = 0x800000;
        SHORT_INODE = 0x1000000;
        WHOLE_SECONDS = 0x2000000;
        STICKY_TIMEOUTS = 0x4000000;
        ADDR_LIMIT_3GB = 0x8000000;
    }
}

consts! {
    /// Arguments of PR_CAP_AMBIENT.
    PR_CAP_AMBIENT_ARGS: u64 {
        PR_CAP_AMBIENT_IS_SET = 1;
        PR_CAP_AMBIENT_RAISE = 2;
        PR_CAP_AMBIENT_LOWER = 3;
        PR_CAP_AMBIENT_CLEAR_ALL = 4;
    }
}

consts! {
    /// Arguments of PR_SET_MM.
    PR_MM: u64 {
        PR_SET_MM_START_CODE = 1;
        PR_SET_MM_END_CODE = 2;
        PR_SET_MM_START_DATA = 3;
        PR_SET_MM_END_DATA = 4;
        PR_SET_MM_START_STACK = 5;
        PR_SET_MM_START_BRK = 6;
        PR_SET_MM_BRK = 7;
        PR_SET_MM_ARG_START = 8;
        PR_SET_MM_ARG_END = 9;
        PR_SET_MM_ENV_START = 10;
        PR_SET_MM_ENV_END = 11;
        PR_SET_MM_AUXV = 12;
        PR_SET_MM_EXE_FILE = 13;
        PR_SET_MM_MAP = 14;
        PR_SET_MM_MAP_SIZE = 15;
    }
}

consts! {
    /// Arguments of PR_SET_MDWE.
    PR_MDWE: u64 {
        PR_MDWE_REFUSE_EXEC_GAIN = 1;
        PR_MDWE_NO_INHERIT = 2;
    }
}

consts! {
    /// Modes of PR_SET_SYSCALL_USER_DISPATCH.
    PR_SYS_DISPATCH: u64 {
        PR_SYS_DISPATCH_OFF = 0;
        PR_SYS_DISPATCH_EXCLUSIVE_ON = 1;
        PR_SYS_DISPATCH_INCLUSIVE_ON = 2;
    }
}

/// What the selector of PR_SET_SYSCALL_USER_DISPATCH says.
pub const SYSCALL_DISPATCH_FILTER_ALLOW: u8 = 0;
/// See [`SYSCALL_DISPATCH_FILTER_ALLOW`].
pub const SYSCALL_DISPATCH_FILTER_BLOCK: u8 = 1;
/// Argument of PR_SET_VMA.
pub const PR_SET_VMA_ANON_NAME: u64 = 0;
/// Argument of PR_SET_PTRACER.
pub const PR_SET_PTRACER_ANY: u64 = u64::MAX;
