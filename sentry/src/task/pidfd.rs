//! Descriptors that stand for processes (pidfd_open(2)).

use super::Process;
use crate::fail::SysResult;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps};
use crate::wait::{Ready, WaitQueue};
use std::sync::Arc;
use syscall_table::abi::open::O_RDWR;
use syscall_table::errno::Errno;

/// A process held by a descriptor. It stays the same process when its pid is given to another.
pub struct PidFd {
    process: Arc<Process>,
}

/// A new description; `flags`: O_NONBLOCK or nothing.
pub(crate) fn file(process: &Arc<Process>, flags: i32) -> Arc<File> {
    File::new(Arc::new(PidFd { process: process.clone() }), O_RDWR | flags, None)
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
        if self.process.thread_count() == 0 { Ready::IN | Ready::RDNORM } else { Ready::empty() }
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
