//! Terminals: job control of all of them, and the pseudo-terminals that the guest makes itself.
//!
//! - [`job`]: which session has a terminal, which of its process groups is in the foreground, who may read and write.
//!
//! The terminal that the sandbox was started on is [`crate::fs::host_tty`]: the host does its line editing.

pub mod job;

use crate::fail::SysResult;
use crate::vfs::file::FileOps;
use crate::vfs::inode::Inode;
use job::Job;
use std::any::Any;
use std::sync::Arc;

/// What can be a session's controlling terminal.
pub trait Terminal: Any + Send + Sync {
    /// Its job control. Two terminals are the same one when this is the same object.
    fn job(&self) -> &Job;

    /// What an open of /dev/tty (`inode`) gives.
    ///
    /// # Errors
    /// EIO when the other side is gone.
    fn open_again(self: Arc<Self>, inode: Arc<dyn Inode>) -> SysResult<Arc<dyn FileOps>>;

    /// Its device number, as /proc/pid/stat has it.
    fn device(&self) -> u64;
}
