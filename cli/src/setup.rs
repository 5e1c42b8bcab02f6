//! What the launcher tells its roles at their start, as JSON in a memory file.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{OwnedFd, RawFd};

/// Bytes that need not be UTF-8, one character each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(pub Vec<u8>);

impl Serialize for Text {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0.iter().map(|byte| char::from(*byte)).collect::<String>())
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = text.chars().map(|c| u8::try_from(u32::from(c)));
        bytes.collect::<Result<_, _>>().map(Text).map_err(serde::de::Error::custom)
    }
}

impl From<&std::ffi::OsStr> for Text {
    fn from(text: &std::ffi::OsStr) -> Self {
        Text(std::os::unix::ffi::OsStrExt::as_bytes(text).to_vec())
    }
}

/// The gofer's start.
#[derive(Serialize, Deserialize)]
pub struct GoferSetup {
    pub config: gofer::GoferConfig,
    pub lanes: Vec<RawFd>,
    pub oracle: Option<RawFd>,
    pub ready: RawFd,
}

/// The sentry's start.
#[derive(Serialize, Deserialize)]
pub struct SentrySetup {
    /// Program and arguments.
    pub command: Vec<Text>,
    /// Environment, `K=V` each.
    pub env: Vec<Text>,
    /// Working directory; `must` says that it was asked for.
    pub cwd: Text,
    pub cwd_must: bool,
    /// Where the gofer's mounts go inside, in its order, and whether they are written through.
    pub mounts: Vec<MountSetup>,
    /// `trap` or `ptrace`.
    pub platform: String,
    pub ids: Ids,
    pub host_calls: bool,
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
#[derive(Serialize, Deserialize)]
pub struct MountSetup {
    pub at: Text,
    pub writable: bool,
}

/// The launcher's ids, which are the program's.
#[derive(Serialize, Deserialize)]
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
