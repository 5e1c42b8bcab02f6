//! sigaction(2), signal(7), sigprocmask(2), sigaltstack(2), signalfd(2) (uapi/asm-generic/siginfo.h).

consts! {
    /// The standard signals.
    SIGNALS: i32 {
        SIGHUP = 1;
        SIGINT = 2;
        SIGQUIT = 3;
        SIGILL = 4;
        SIGTRAP = 5;
        SIGABRT = 6;
        SIGBUS = 7;
        SIGFPE = 8;
        SIGKILL = 9;
        SIGUSR1 = 10;
        SIGSEGV = 11;
        SIGUSR2 = 12;
        SIGPIPE = 13;
        SIGALRM = 14;
        SIGTERM = 15;
        SIGSTKFLT = 16;
        SIGCHLD = 17;
        SIGCONT = 18;
        SIGSTOP = 19;
        SIGTSTP = 20;
        SIGTTIN = 21;
        SIGTTOU = 22;
        SIGURG = 23;
        SIGXCPU = 24;
        SIGXFSZ = 25;
        SIGVTALRM = 26;
        SIGPROF = 27;
        SIGWINCH = 28;
        SIGIO = 29;
        SIGPWR = 30;
        SIGSYS = 31;
    }
}

consts! {
    /// Other signal numbers: synonyms, and the kernel's real-time range.
    SIGNAL_RANGE: i32 {
        SIGIOT = 6;
        SIGPOLL = 29;
        SIGRTMIN = 32;
        SIGRTMAX = 64;
        NSIG = 64;
    }
}

consts! {
    /// Bits of `sa_flags`.
    SA_FLAGS: u64 {
        SA_NOCLDSTOP = 0x1;
        SA_NOCLDWAIT = 0x2;
        SA_SIGINFO = 0x4;
        SA_UNSUPPORTED = 0x400;
        SA_EXPOSE_TAGBITS = 0x800;
        SA_RESTORER = 0x4000000;
        SA_ONSTACK = 0x8000000;
        SA_RESTART = 0x10000000;
        SA_NODEFER = 0x40000000;
        SA_RESETHAND = 0x80000000;
    }
}

consts! {
    /// Values of `sa_handler` that are no address.
    SIG_HANDLERS: u64 {
        SIG_DFL = 0;
        SIG_IGN = 1;
    }
}

consts! {
    /// How of rt_sigprocmask(2).
    SIG_HOW: i32 {
        SIG_BLOCK = 0;
        SIG_UNBLOCK = 1;
        SIG_SETMASK = 2;
    }
}

consts! {
    /// si_code for any signal.
    SI_CODES: i32 {
        SI_USER = 0;
        SI_KERNEL = 128;
        SI_QUEUE = -1;
        SI_TIMER = -2;
        SI_MESGQ = -3;
        SI_ASYNCIO = -4;
        SI_SIGIO = -5;
        SI_TKILL = -6;
        SI_DETHREAD = -7;
        SI_ASYNCNL = -60;
    }
}

consts! {
    /// si_code of SIGILL.
    ILL_CODES: i32 {
        ILL_ILLOPC = 1;
        ILL_ILLOPN = 2;
        ILL_ILLADR = 3;
        ILL_ILLTRP = 4;
        ILL_PRVOPC = 5;
        ILL_PRVREG = 6;
        ILL_COPROC = 7;
        ILL_BADSTK = 8;
    }
}

consts! {
    /// si_code of SIGFPE.
    FPE_CODES: i32 {
        FPE_INTDIV = 1;
        FPE_INTOVF = 2;
        FPE_FLTDIV = 3;
        FPE_FLTOVF = 4;
        FPE_FLTUND = 5;
        FPE_FLTRES = 6;
        FPE_FLTINV = 7;
        FPE_FLTSUB = 8;
        FPE_FLTUNK = 14;
        FPE_CONDTRAP = 15;
    }
}

consts! {
    /// si_code of SIGSEGV.
    SEGV_CODES: i32 {
        SEGV_MAPERR = 1;
        SEGV_ACCERR = 2;
        SEGV_BNDERR = 3;
        SEGV_PKUERR = 4;
        SEGV_ACCADI = 5;
        SEGV_ADIDERR = 6;
        SEGV_ADIPERR = 7;
        SEGV_MTEAERR = 8;
        SEGV_MTESERR = 9;
        SEGV_CPERR = 10;
    }
}

consts! {
    /// si_code of SIGBUS.
    BUS_CODES: i32 {
        BUS_ADRALN = 1;
        BUS_ADRERR = 2;
        BUS_OBJERR = 3;
        BUS_MCEERR_AR = 4;
        BUS_MCEERR_AO = 5;
    }
}

consts! {
    /// si_code of SIGTRAP.
    TRAP_CODES: i32 {
        TRAP_BRKPT = 1;
        TRAP_TRACE = 2;
        TRAP_BRANCH = 3;
        TRAP_HWBKPT = 4;
        TRAP_UNK = 5;
        TRAP_PERF = 6;
    }
}

consts! {
    /// si_code of SIGCHLD.
    CLD_CODES: i32 {
        CLD_EXITED = 1;
        CLD_KILLED = 2;
        CLD_DUMPED = 3;
        CLD_TRAPPED = 4;
        CLD_STOPPED = 5;
        CLD_CONTINUED = 6;
    }
}

consts! {
    /// si_code of SIGIO.
    POLL_CODES: i32 {
        POLL_IN = 1;
        POLL_OUT = 2;
        POLL_MSG = 3;
        POLL_ERR = 4;
        POLL_PRI = 5;
        POLL_HUP = 6;
    }
}

consts! {
    /// si_code of SIGSYS.
    SYS_CODES: i32 {
        SYS_SECCOMP = 1;
        SYS_USER_DISPATCH = 2;
    }
}

consts! {
    /// Flags of a signal stack.
    SS_FLAGS: i32 {
        SS_ONSTACK = 0x1;
        SS_DISABLE = 0x2;
        SS_AUTODISARM = -0x80000000;
    }
}

consts! {
    /// Flags of signalfd(2).
    SFD_FLAGS: i32 {
        SFD_NONBLOCK = 0o4000;
        SFD_CLOEXEC = 0o2000000;
    }
}

/// Least size of a signal stack.
pub const MINSIGSTKSZ: u64 = 2048;
/// Usual size of a signal stack.
pub const SIGSTKSZ: u64 = 8192;

pod! {
    /// sigset_t of the kernel: bit n-1 is signal n.
    #[repr(C)]
    pub struct Sigset [8] {
        pub sig: u64,
    }

    /// The sixth argument of pselect6(2) and io_pgetevents(2): where a signal set is, and its size.
    #[repr(C)]
    pub struct SigsetArg [16] {
        pub ss: u64,
        pub ss_len: u64,
    }

    /// struct sigaction as rt_sigaction(2) takes it.
    #[repr(C)]
    pub struct Sigaction [32] {
        pub sa_handler: u64,
        pub sa_flags: u64,
        pub sa_restorer: u64,
        pub sa_mask: Sigset,
    }

    /// stack_t.
    #[repr(C)]
    pub struct Stack [24] {
        pub ss_sp: u64,
        pub ss_flags: i32,
        pub __pad: u32,
        pub ss_size: u64,
    }

    /// siginfo_t. The fields behind si_code depend on it; the constructors put them in place.
    #[repr(C)]
    pub struct Siginfo [128] {
        pub si_signo: i32,
        pub si_errno: i32,
        pub si_code: i32,
        pub __pad: u32,
        pub fields: [u32; 28],
    }

    /// struct signalfd_siginfo.
    #[repr(C)]
    pub struct SignalfdSiginfo [128] {
        pub ssi_signo: u32,
        pub ssi_errno: i32,
        pub ssi_code: i32,
        pub ssi_pid: u32,
        pub ssi_uid: u32,
        pub ssi_fd: i32,
        pub ssi_tid: u32,
        pub ssi_band: u32,
        pub ssi_overrun: u32,
        pub ssi_trapno: u32,
        pub ssi_status: i32,
        pub ssi_int: i32,
        pub ssi_ptr: u64,
        pub ssi_utime: u64,
        pub ssi_stime: u64,
        pub ssi_addr: u64,
        pub ssi_addr_lsb: u16,
        pub __pad2: u16,
        pub ssi_syscall: i32,
        pub ssi_call_addr: u64,
        pub ssi_arch: u32,
        pub __pad: [u32; 7],
    }
}

impl Sigset {
    /// The set with exactly this signal (empty for a number outside 1..=64).
    pub const fn of(signal: i32) -> Sigset {
        if signal >= 1 && signal <= NSIG { Sigset { sig: 1 << (signal - 1) } } else { Sigset { sig: 0 } }
    }

    /// Whether the signal is in the set.
    pub const fn has(self, signal: i32) -> bool {
        self.sig & Sigset::of(signal).sig != 0
    }
}

impl Siginfo {
    fn new(signo: i32, code: i32) -> Siginfo {
        Siginfo { si_signo: signo, si_errno: 0, si_code: code, __pad: 0, fields: [0; 28] }
    }

    fn set64(mut self, at: usize, value: u64) -> Siginfo {
        if let Some(words) = self.fields.get_mut(at..at + 2) {
            words.copy_from_slice(&[value as u32, (value >> 32) as u32]);
        }
        self
    }

    fn set32(mut self, at: usize, value: u32) -> Siginfo {
        if let Some(word) = self.fields.get_mut(at) {
            *word = value;
        }
        self
    }

    fn get64(&self, at: usize) -> u64 {
        match self.fields.get(at..at + 2) {
            Some(&[low, high]) => low as u64 | (high as u64) << 32,
            _ => 0,
        }
    }

    /// Sent by the kernel, or by a means that carries nothing.
    pub fn kernel(signo: i32) -> Siginfo {
        Siginfo::new(signo, SI_KERNEL)
    }

    /// Sent by kill(2) (SI_USER) or tgkill(2) (SI_TKILL).
    pub fn kill(signo: i32, code: i32, pid: i32, uid: u32) -> Siginfo {
        Siginfo::new(signo, code).set32(0, pid as u32).set32(1, uid)
    }

    /// With another si_uid.
    pub fn with_uid(self, uid: u32) -> Siginfo {
        self.set32(1, uid)
    }

    /// The same from another process.
    pub fn with_pid(self, pid: i32) -> Siginfo {
        self.set32(0, pid.cast_unsigned())
    }

    /// Sent by sigqueue(3), or with another code that has pid, uid and value.
    pub fn queue(signo: i32, code: i32, pid: i32, uid: u32, value: u64) -> Siginfo {
        Siginfo::kill(signo, code, pid, uid).set64(2, value)
    }

    /// SIGCHLD with a CLD_ code; status is the exit status or the signal, times are in clock ticks.
    pub fn child(code: i32, pid: i32, uid: u32, status: i32, utime: i64, stime: i64) -> Siginfo {
        Siginfo::kill(SIGCHLD, code, pid, uid)
            .set32(2, status as u32)
            .set64(4, utime as u64)
            .set64(6, stime as u64)
    }

    /// A processor exception at this address.
    pub fn fault(signo: i32, code: i32, addr: u64) -> Siginfo {
        Siginfo::new(signo, code).set64(0, addr)
    }

    /// A POSIX timer's expiry.
    pub fn timer(signo: i32, timer_id: i32, overrun: i32, value: u64) -> Siginfo {
        Siginfo::new(signo, SI_TIMER).set32(0, timer_id as u32).set32(1, overrun as u32).set64(2, value)
    }

    /// The same with si_overrun.
    pub fn with_overrun(self, overrun: i32) -> Siginfo {
        self.set32(1, overrun as u32)
    }

    /// SIGIO with a POLL_ code.
    pub fn poll(signo: i32, code: i32, band: i64, fd: i32) -> Siginfo {
        Siginfo::new(signo, code).set64(0, band as u64).set32(2, fd as u32)
    }

    /// SIGSYS of a seccomp filter (SYS_SECCOMP) or of user dispatch.
    pub fn sys(code: i32, call_addr: u64, syscall: i32, arch: u32) -> Siginfo {
        Siginfo::new(SIGSYS, code).set64(0, call_addr).set32(2, syscall as u32).set32(3, arch)
    }

    /// si_pid, for codes that have it.
    pub fn si_pid(&self) -> i32 {
        self.get64(0) as i32
    }

    /// si_uid, for codes that have it.
    pub fn si_uid(&self) -> u32 {
        (self.get64(0) >> 32) as u32
    }

    /// si_status of SIGCHLD.
    pub fn si_status(&self) -> i32 {
        self.get64(2) as i32
    }

    /// si_utime and si_stime of SIGCHLD, in clock ticks.
    pub fn si_times(&self) -> (i64, i64) {
        (self.get64(4) as i64, self.get64(6) as i64)
    }

    /// si_value, for codes that have it.
    pub fn si_value(&self) -> u64 {
        self.get64(2)
    }

    /// si_addr of an exception.
    pub fn si_addr(&self) -> u64 {
        self.get64(0)
    }

    /// si_band and si_fd of SIGIO.
    pub fn si_band_fd(&self) -> (i64, i32) {
        (self.get64(0) as i64, self.get64(2) as i32)
    }

    /// si_timerid and si_overrun of a POSIX timer.
    pub fn si_timer(&self) -> (i32, i32) {
        (self.get64(0) as i32, (self.get64(0) >> 32) as i32)
    }

    /// The bytes as they lie in memory.
    pub fn bytes(&self) -> &[u8] {
        zerocopy::IntoBytes::as_bytes(self)
    }
}
