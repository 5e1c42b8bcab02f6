//! Why a system call has no plain value: the three causes (denial, gap, error), blocking, and control flow.

use std::time::Duration;
use syscall_table::errno::Errno;

/// What a handler returns.
pub type SysResult<T = u64> = Result<T, Fail>;

/// Everything but a plain value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fail {
    /// What Linux itself would have answered.
    Error(Errno),
    /// The policy said no.
    Denial(Box<Denial>),
    /// Not implemented here.
    Gap(Box<Gap>),
    /// Not yet: run the handler again when a registered wait source fires (or the deadline passes).
    Block(Block),
    /// The handler needs a full port (host calls or registers) and this attempt has none: run it again on the
    /// task's own worker.
    NeedPort,
    /// A tracer is to be shown the event in [`Call::event`](crate::run::Call): run the handler again when it lets the task
    /// go on.
    Traced,
    /// The registers were replaced (sigreturn, execve): go on with them as they are.
    Resume,
    /// The task has ended.
    Exit,
}

/// A refusal by policy. Recorded in the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// What the guest sees.
    pub errno: Errno,
    /// The operation: `open`, `connect`, …; empty where the call says it.
    pub what: &'static str,
    /// The object: a path, an address.
    pub object: String,
    /// The rule that refused.
    pub rule: String,
    /// The option that would allow it.
    pub allow_with: String,
}

/// Something lazaret does not implement. Recorded in the report with call, program and count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// What the guest sees.
    pub errno: Errno,
    /// Which part: `flag MSG_ZEROCOPY`, `ioctl FICLONE`. No pids, pointers or other values that differ from call to call:
    /// equal gaps are counted by this text.
    pub detail: String,
}

/// How a blocked call ends when a signal arrives first (kernel restart codes, signal(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// EINTR always (`nanosleep`-like calls that report the rest themselves, `epoll_wait`, `poll`, …: ERESTARTNOHAND restarts when
    /// no handler ran).
    NoHand,
    /// Restarted unless the handler lacks SA_RESTART (ERESTARTSYS).
    Sys,
    /// Always restarted (ERESTARTNOINTR).
    NoIntr,
    /// EINTR whatever happens.
    Never,
    /// Restarted with its remaining time when no handler ran (ERESTART_RESTARTBLOCK); the [`Cx`](crate::cx::Cx) keeps the deadline.
    Block,
    /// Only a signal that ends the process does (the wait of vfork's parent).
    Uninterruptible,
}

/// A blocked call. Wait queues were registered through [`Cx::wait_on`](crate::cx::Cx::wait_on).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// When to run the handler again even if nothing fired: time since the sentry's monotonic epoch
    /// ([`crate::time::now`]).
    pub deadline: Option<Duration>,
    /// What a signal does to the call.
    pub restart: Restart,
}

impl Fail {
    /// A gap with a detail text.
    pub fn gap(errno: Errno, detail: impl Into<String>) -> Fail {
        Fail::Gap(Box::new(Gap { errno, detail: detail.into() }))
    }

    /// A block without deadline.
    pub fn block(restart: Restart) -> Fail {
        Fail::Block(Block { deadline: None, restart })
    }

    /// The errno that the guest would see, if this is an end of the call with one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Fail::Error(e) => Some(*e),
            Fail::Denial(d) => Some(d.errno),
            Fail::Gap(g) => Some(g.errno),
            _ => None,
        }
    }
}

impl From<Errno> for Fail {
    fn from(errno: Errno) -> Self {
        Fail::Error(errno)
    }
}

impl From<rustix::io::Errno> for Fail {
    fn from(errno: rustix::io::Errno) -> Self {
        Fail::Error(Errno::from_raw(errno.raw_os_error()))
    }
}

impl From<platform::MemFault> for Fail {
    fn from(_: platform::MemFault) -> Self {
        Fail::Error(Errno::EFAULT)
    }
}

impl From<platform::CallError> for Fail {
    fn from(error: platform::CallError) -> Self {
        match error {
            platform::CallError::Errno(e) => Fail::Error(Errno::from_raw(e)),
            platform::CallError::Gone => Fail::Exit,
        }
    }
}

impl From<platform::Gone> for Fail {
    fn from(_: platform::Gone) -> Self {
        Fail::Exit
    }
}
