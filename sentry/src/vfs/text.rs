//! Programs and writing to them: a file that is open for writing cannot be executed, one that is executed cannot be
//! opened for writing (ETXTBSY).

use crate::fail::SysResult;
use crate::vfs::inode::Inode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};
use syscall_table::errno::Errno;

/// What an open regular file has beside its file system.
#[derive(Default)]
pub struct Busy {
    /// How often it is open for writing, or negative how often it is being executed.
    users: AtomicI32,
    /// F_SET_RW_HINT.
    pub(crate) hint: AtomicU8,
    /// FS_IOC_SETFLAGS: those without effect.
    pub(crate) flags: AtomicU32,
}

impl Busy {
    /// Counts one more on the side of `step` (1 or -1), unless the other side is there.
    fn enter(&self, step: i32) -> SysResult<()> {
        let free = |count: i32| if count.signum() == -step { None } else { count.checked_add(step) };
        match self.users.fetch_update(Ordering::SeqCst, Ordering::SeqCst, free) {
            Ok(_) => Ok(()),
            Err(_) => Err(Errno::ETXTBSY.into()),
        }
    }

    fn leave(&self, step: i32) {
        self.users.fetch_sub(step, Ordering::SeqCst);
    }
}

fn enter(inode: &Arc<dyn Inode>, step: i32) -> SysResult<Arc<dyn Inode>> {
    if let Some(busy) = inode.busy() {
        busy.enter(step)?;
    }
    Ok(inode.clone())
}

fn leave(inode: &Arc<dyn Inode>, step: i32) {
    if let Some(busy) = inode.busy() {
        busy.leave(step);
    }
}

/// Keeps an inode from being executed.
pub struct Writer(Arc<dyn Inode>);

impl Writer {
    /// For the time of a description that is open for writing, or of a truncation.
    ///
    /// # Errors
    /// ETXTBSY.
    pub fn new(inode: &Arc<dyn Inode>) -> SysResult<Writer> {
        Ok(Writer(enter(inode, 1)?))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        leave(&self.0, 1);
    }
}

/// Keeps an inode from being opened for writing.
pub struct Running(Arc<dyn Inode>);

impl Running {
    /// For the time that a program is loaded and runs.
    ///
    /// # Errors
    /// ETXTBSY.
    pub fn new(inode: &Arc<dyn Inode>) -> SysResult<Running> {
        Ok(Running(enter(inode, -1)?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        leave(&self.0, -1);
    }
}
