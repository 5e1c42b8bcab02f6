//! What the launcher tells the sentry at its start.

use sentry::task::limits::Limits;
use std::os::fd::RawFd;

/// The sentry's start.
pub struct SentrySetup {
    /// Program and arguments.
    pub command: Vec<Vec<u8>>,
    /// Environment, `K=V` each.
    pub env: Vec<Vec<u8>>,
    /// Working directory; `must` says that it was asked for.
    pub cwd: Vec<u8>,
    pub cwd_must: bool,
    /// Where the gofer's mounts go inside, in its order, and whether they are written through.
    pub mounts: Vec<MountSetup>,
    /// `trap` or `ptrace`.
    pub platform: String,
    /// Most threads and processes inside, together.
    pub tasks: usize,
    pub ids: Ids,
    pub job: JobSetup,
    /// Descriptors.
    pub control: RawFd,
    pub lanes: Vec<RawFd>,
    pub report: Option<RawFd>,
    pub trace: Option<RawFd>,
    /// Standard input, output and error; none for a closed one.
    pub stdio: [Option<StreamSetup>; 3],
    /// The launcher's terminal, for /dev/tty.
    pub tty: Option<RawFd>,
    /// Who counts host calls.
    pub counter: Option<RawFd>,
}

/// A standard stream.
pub struct StreamSetup {
    /// Its descriptor. A terminal is opened anew, so that it need not wait.
    pub fd: RawFd,
    /// The earlier stream whose description this is too.
    pub same_as: Option<usize>,
    /// Access mode and status flags of the launcher's own description.
    pub flags: i32,
    /// It is the launcher's controlling terminal.
    pub controlling: bool,
    /// The name of a file or device as the guest sees it.
    pub name: Option<Vec<u8>>,
}

/// What the program gets of the launcher's place among jobs.
pub struct JobSetup {
    /// Ignored and blocked signals, bit `n - 1` for signal `n`.
    pub ignored: u64,
    pub blocked: u64,
    /// Nobody outside would continue the program if it stopped (an orphaned process group).
    pub orphaned: bool,
    /// The launcher's group is in its terminal's foreground, or there is no terminal.
    pub foreground: bool,
}

/// One mount of the gofer as the guest sees it.
pub struct MountSetup {
    pub at: Vec<u8>,
    pub writable: bool,
}

/// The launcher's ids and limits, which are the program's.
pub struct Ids {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
    pub umask: u32,
    pub limits: Limits,
}
