//! wait(2), waitid(2), exit(2).

consts! {
    /// Options of wait4(2) and waitid(2). WSTOPPED is WUNTRACED.
    WAIT_FLAGS: i32 {
        WNOHANG = 0x1;
        WUNTRACED = 0x2;
        WEXITED = 0x4;
        WCONTINUED = 0x8;
        WNOWAIT = 0x1000000;
        __WNOTHREAD = 0x20000000;
        __WALL = 0x40000000;
        __WCLONE = -0x80000000;
    }
}

consts! {
    /// Id types of waitid(2).
    ID_TYPES: i32 {
        P_ALL = 0;
        P_PID = 1;
        P_PGID = 2;
        P_PIDFD = 3;
    }
}

/// The name waitid(2) has for WUNTRACED.
pub const WSTOPPED: i32 = WUNTRACED;

pod! {
    /// The status that wait4(2) stores.
    #[repr(C)]
    pub struct WaitStatus [4] {
        pub raw: i32,
    }
}

impl WaitStatus {
    /// Exited with this status (low 8 bits).
    pub const fn exited(status: i32) -> WaitStatus {
        WaitStatus { raw: (status & 0xff) << 8 }
    }

    /// Killed by a signal, perhaps with a core dump.
    pub const fn signaled(signal: i32, core: bool) -> WaitStatus {
        WaitStatus { raw: signal & 0x7f | if core { 0x80 } else { 0 } }
    }

    /// Stopped by a signal.
    pub const fn stopped(signal: i32) -> WaitStatus {
        WaitStatus { raw: (signal & 0xffff) << 8 | 0x7f }
    }

    /// Continued.
    pub const fn continued() -> WaitStatus {
        WaitStatus { raw: 0xffff }
    }

    /// The exit status, if it exited.
    pub const fn exit_status(self) -> Option<i32> {
        if self.raw & 0x7f == 0 { Some(self.raw >> 8 & 0xff) } else { None }
    }

    /// The signal that killed it, if one did.
    pub const fn term_signal(self) -> Option<i32> {
        let signal = self.raw & 0x7f;
        if signal != 0 && signal != 0x7f { Some(signal) } else { None }
    }

    /// The signal (with ptrace event bits) that stopped it, if it stopped.
    pub const fn stop_signal(self) -> Option<i32> {
        if self.raw & 0xff == 0x7f { Some(self.raw >> 8 & 0xffff) } else { None }
    }

    /// It was continued.
    pub const fn is_continued(self) -> bool {
        self.raw == 0xffff
    }
}
