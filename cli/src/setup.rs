//! What the launcher tells its roles at their start: the gofer, which is executed, as JSON in a memory file; the sentry,
//! which is forked, as it is.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{OwnedFd, RawFd};

/// The gofer's start.
#[derive(Serialize, Deserialize)]
pub struct GoferSetup {
    pub config: gofer::GoferConfig,
    pub lanes: Vec<RawFd>,
    pub oracle: Option<RawFd>,
    pub ready: RawFd,
}

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

/// A memory file that a role inherits.
pub fn store(setup: &impl Serialize) -> io::Result<OwnedFd> {
    let fd = rustix::fs::memfd_create("lazaret-setup", rustix::fs::MemfdFlags::empty())?;
    let mut file = std::fs::File::from(fd);
    file.write_all(&serde_json::to_vec(setup).map_err(io::Error::other)?)?;
    file.rewind()?;
    Ok(file.into())
}

/// What [`store`] wrote.
pub fn load<T: DeserializeOwned>(fd: RawFd) -> io::Result<T> {
    let mut text = Vec::new();
    std::fs::File::from(confine::host::inherited(fd)?).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}
