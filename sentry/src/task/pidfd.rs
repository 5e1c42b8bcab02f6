//! Descriptors that stand for processes and threads (pidfd_open(2)).

use super::{Process, Task};
use crate::fail::SysResult;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps};
use crate::wait::{Ready, WaitQueue};
use std::sync::{Arc, Weak};
use syscall_table::abi::clone::PIDFD_THREAD;
use syscall_table::abi::open::O_RDWR;
use syscall_table::errno::Errno;

/// A process held by a descriptor. It stays the same process when its pid is given to another.
pub struct PidFd {
    process: Arc<Process>,
    /// PIDFD_THREAD.
    thread: Option<Weak<Task>>,
}

/// A new description; `flags`: O_NONBLOCK or nothing.
pub(crate) fn file(process: &Arc<Process>, flags: i32) -> Arc<File> {
    File::new(Arc::new(PidFd { process: process.clone(), thread: None }), O_RDWR | flags, None)
}

/// As [`file`] for one thread.
pub(crate) fn thread_file(task: &Arc<Task>, flags: i32) -> Arc<File> {
    let pidfd = PidFd { process: task.process.clone(), thread: Some(Arc::downgrade(task)) };
    File::new(Arc::new(pidfd), O_RDWR | PIDFD_THREAD as i32 | flags, None)
}

/// The thread behind a descriptor of one: the outer None for one of a process, the inner for a thread that has ended.
pub(crate) fn thread(file: &File) -> Option<Option<Arc<Task>>> {
    let thread = file.downcast::<PidFd>()?.thread.clone()?;
    Some(thread.upgrade().filter(|task| !task.is_dead()))
}

/// The process behind a descriptor.
///
/// # Errors
/// EBADF when it is no pidfd.
pub(crate) fn process(file: &File) -> SysResult<Arc<Process>> {
    file.downcast::<PidFd>().map(|p| p.process.clone()).ok_or(Errno::EBADF.into())
}

impl FileOps for PidFd {
    fn poll(&self, _file: &File) -> Ready {
        let ended = match &self.thread {
            Some(thread) => thread.upgrade().is_none_or(|task| task.is_dead()),
            None => self.process.thread_count() == 0,
        };
        if ended { Ready::IN | Ready::RDNORM } else { Ready::empty() }
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.process.exit_wait)
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(Attr { mode: 0o100_700, nlink: 1, ino: self.process.pid as u64, blksize: 4096, ..Attr::default() })
    }

    fn describe(&self) -> String {
        "anon_inode:[pidfd]".into()
    }
}
