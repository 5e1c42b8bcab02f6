//! ptrace(2) (uapi/linux/ptrace.h, uapi/asm/ptrace-abi.h).

consts! {
    /// Requests.
    PTRACE_REQUESTS: i64 {
        PTRACE_TRACEME = 0x0;
        PTRACE_PEEKTEXT = 0x1;
        PTRACE_PEEKDATA = 0x2;
        PTRACE_PEEKUSR = 0x3;
        PTRACE_POKETEXT = 0x4;
        PTRACE_POKEDATA = 0x5;
        PTRACE_POKEUSR = 0x6;
        PTRACE_CONT = 0x7;
        PTRACE_KILL = 0x8;
        PTRACE_SINGLESTEP = 0x9;
        PTRACE_GETREGS = 0xc;
        PTRACE_SETREGS = 0xd;
        PTRACE_GETFPREGS = 0xe;
        PTRACE_SETFPREGS = 0xf;
        PTRACE_ATTACH = 0x10;
        PTRACE_DETACH = 0x11;
        PTRACE_GETFPXREGS = 0x12;
        PTRACE_SETFPXREGS = 0x13;
        PTRACE_OLDSETOPTIONS = 0x15;
        PTRACE_SYSCALL = 0x18;
        PTRACE_GET_THREAD_AREA = 0x19;
        PTRACE_SET_THREAD_AREA = 0x1a;
        PTRACE_ARCH_PRCTL = 0x1e;
        PTRACE_SYSEMU = 0x1f;
        PTRACE_SYSEMU_SINGLESTEP = 0x20;
        PTRACE_SINGLEBLOCK = 0x21;
        PTRACE_SETOPTIONS = 0x4200;
        PTRACE_GETEVENTMSG = 0x4201;
        PTRACE_GETSIGINFO = 0x4202;
        PTRACE_SETSIGINFO = 0x4203;
        PTRACE_GETREGSET = 0x4204;
        PTRACE_SETREGSET = 0x4205;
        PTRACE_SEIZE = 0x4206;
        PTRACE_INTERRUPT = 0x4207;
        PTRACE_LISTEN = 0x4208;
        PTRACE_PEEKSIGINFO = 0x4209;
        PTRACE_GETSIGMASK = 0x420a;
        PTRACE_SETSIGMASK = 0x420b;
        PTRACE_SECCOMP_GET_FILTER = 0x420c;
        PTRACE_SECCOMP_GET_METADATA = 0x420d;
        PTRACE_GET_SYSCALL_INFO = 0x420e;
        PTRACE_GET_RSEQ_CONFIGURATION = 0x420f;
        PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG = 0x4210;
        PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG = 0x4211;
        PTRACE_SET_SYSCALL_INFO = 0x4212;
    }
}

consts! {
    /// Options.
    PTRACE_OPTIONS: u64 {
        PTRACE_O_TRACESYSGOOD = 0x1;
        PTRACE_O_TRACEFORK = 0x2;
        PTRACE_O_TRACEVFORK = 0x4;
        PTRACE_O_TRACECLONE = 0x8;
        PTRACE_O_TRACEEXEC = 0x10;
        PTRACE_O_TRACEVFORKDONE = 0x20;
        PTRACE_O_TRACEEXIT = 0x40;
        PTRACE_O_TRACESECCOMP = 0x80;
        PTRACE_O_EXITKILL = 0x100000;
        PTRACE_O_SUSPEND_SECCOMP = 0x200000;
    }
}

consts! {
    /// Events.
    PTRACE_EVENTS: i32 {
        PTRACE_EVENT_FORK = 1;
        PTRACE_EVENT_VFORK = 2;
        PTRACE_EVENT_CLONE = 3;
        PTRACE_EVENT_EXEC = 4;
        PTRACE_EVENT_VFORK_DONE = 5;
        PTRACE_EVENT_EXIT = 6;
        PTRACE_EVENT_SECCOMP = 7;
        PTRACE_EVENT_STOP = 128;
    }
}

pod! {
    /// struct user_regs_struct.
    #[repr(C)]
    pub struct UserRegs [216] {
        pub r15: u64,
        pub r14: u64,
        pub r13: u64,
        pub r12: u64,
        pub bp: u64,
        pub bx: u64,
        pub r11: u64,
        pub r10: u64,
        pub r9: u64,
        pub r8: u64,
        pub ax: u64,
        pub cx: u64,
        pub dx: u64,
        pub si: u64,
        pub di: u64,
        pub orig_ax: u64,
        pub ip: u64,
        pub cs: u64,
        pub flags: u64,
        pub sp: u64,
        pub ss: u64,
        pub fs_base: u64,
        pub gs_base: u64,
        pub ds: u64,
        pub es: u64,
        pub fs: u64,
        pub gs: u64,
    }
}
