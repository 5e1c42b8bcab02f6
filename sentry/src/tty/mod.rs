//! Terminals: job control of all of them, and the pseudo-terminals that the guest makes itself (pty(7)).
//!
//! - [`job`]: which session has a terminal, which of its process groups is in the foreground, who may read and write.
//! - `line`, `input`, `edit`, `output`, `termios`: the line discipline of a pseudo-terminal.
//! - [`pty`]: a pair: its state, hangups.
//! - `master`, `slave`: its two ends as open files; `request`: what ioctl asks of them.
//!
//! The terminal that the sandbox was started on is [`crate::fs::host_tty`]: the host does its line editing. The names of
//! pseudo-terminals are [`crate::fs::devpts`].
//!
//! Locks: a pair's state is of [`Level::Object`](crate::sync::Level::Object). Signals are sent and waiters woken after it.

mod edit;
mod input;
pub mod job;
mod line;
pub(crate) mod master;
mod output;
pub mod pty;
pub(crate) mod request;
mod slave;
mod termios;

use crate::fail::SysResult;
use crate::task::Task;
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
    /// EIO when the other side is gone; EBUSY after TIOCEXCL.
    fn open_again(self: Arc<Self>, inode: Arc<dyn Inode>, task: &Task) -> SysResult<Arc<dyn FileOps>>;

    /// Its device number, as /proc/pid/stat has it.
    fn device(&self) -> u64;
}
