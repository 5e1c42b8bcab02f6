//! What the launcher tells the sentry at its start.

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
    pub ids: Ids,
    /// Descriptors.
    pub control: RawFd,
    pub lanes: Vec<RawFd>,
    pub report: Option<RawFd>,
    pub trace: Option<RawFd>,
    /// Standard input, output and error; none for a closed one. Terminals are opened anew, so that they need not wait.
    pub stdio: [Option<RawFd>; 3],
    /// The launcher's terminal, for /dev/tty.
    pub tty: Option<RawFd>,
}

/// One mount of the gofer as the guest sees it.
pub struct MountSetup {
    pub at: Vec<u8>,
    pub writable: bool,
}

/// The launcher's ids, which are the program's.
pub struct Ids {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
    pub umask: u32,
}
