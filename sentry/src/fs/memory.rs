//! Host files in memory, each with a descriptor that can only read.
//!
//! What is mapped stays what its descriptor was opened for: a guest that owns the code in its address space can ask the
//! host to make a mapping writable, and the host looks at the descriptor alone. The sentry cannot open a file again, so the
//! gofer makes the file and opens it twice.

use crate::fail::SysResult;
use gofer::Client;
use rustix::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use syscall_table::errno::Errno;

static GOFER: OnceLock<Arc<Client>> = OnceLock::new();

/// One file in memory.
#[derive(Clone)]
pub struct Memory {
    /// For reading and writing.
    pub both: Arc<OwnedFd>,
    /// For reading.
    pub read_only: Arc<OwnedFd>,
}

/// Who makes the files from now on.
pub(super) fn set_gofer(client: &Arc<Client>) {
    // A process has one sandbox and one gofer.
    let _ = GOFER.set(client.clone());
}

/// A new, empty file.
///
/// # Errors
/// ENFILE, ENOMEM.
pub fn new() -> SysResult<Memory> {
    let (both, read_only) = match GOFER.get() {
        Some(client) => client.memory().map_err(|_| Errno::ENFILE)?,
        // Tests without a gofer have no guest either.
        None => {
            let both = rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC)?;
            let copy = rustix::io::fcntl_dupfd_cloexec(&both, 0)?;
            (both, copy)
        }
    };
    let memory = Memory { both: Arc::new(both), read_only: Arc::new(read_only) };
    crate::memory::holds(&memory.both, &memory.read_only);
    Ok(memory)
}
