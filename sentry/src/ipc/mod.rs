//! Inter-process communication inside the sandbox, and descriptors that stand for events.

pub mod aio;
pub mod epoll;
pub mod eventfd;
pub mod futex;
pub mod mqueue;
pub mod pipe;
pub mod signalfd;
pub mod sysv;
pub mod timerfd;

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::attr::{Attr, FileTime};
use crate::vfs::file::{File, FileOps, o};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use syscall_table::abi::RLIMIT_NOFILE;

static NEXT_INO: AtomicU64 = AtomicU64::new(1000);

/// A new inode number for an object without a file system.
pub fn next_ino() -> u64 {
    NEXT_INO.fetch_add(1, Ordering::Relaxed)
}

/// Attributes of an object without a file system: `mode` with its type.
pub fn anonymous_attr(dev: u64, ino: u64, mode: u32) -> Attr {
    let now = FileTime::now();
    Attr { dev, ino, mode, nlink: 1, blksize: 4096, atime: now, mtime: now, ctime: now, ..Attr::default() }
}

/// Gives the task a descriptor for a new description; `flags` may hold O_CLOEXEC.
///
/// # Errors
/// EMFILE.
pub fn install(cx: &mut Cx, ops: Arc<dyn FileOps>, flags: i32) -> SysResult<i32> {
    let file = File::new(ops, flags & !o::O_CLOEXEC, None);
    install_file(cx, file, flags & o::O_CLOEXEC != 0)
}

/// Gives the task a descriptor for a description.
///
/// # Errors
/// EMFILE.
pub fn install_file(cx: &mut Cx, file: Arc<File>, cloexec: bool) -> SysResult<i32> {
    let limit = cx.task.process.limit(RLIMIT_NOFILE);
    cx.task.files().install(file, cloexec, 0, limit)
}
