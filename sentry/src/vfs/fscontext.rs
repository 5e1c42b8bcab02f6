//! Root, working directory and umask of a task (shared by CLONE_FS).

use crate::sync::{Level, Lock};

/// See the module.
pub struct FsContext {
    /// File mode creation mask, 9 bits.
    pub umask: Lock<u32>,
}

impl FsContext {
    /// With the usual umask.
    pub fn new() -> Self {
        FsContext { umask: Lock::new(Level::FsContext, 0o022) }
    }
}

impl FsContext {
    /// A copy for fork.
    pub fn duplicate(&self) -> FsContext {
        FsContext { umask: Lock::new(Level::FsContext, *self.umask.lock()) }
    }
}

impl Default for FsContext {
    fn default() -> Self {
        Self::new()
    }
}
