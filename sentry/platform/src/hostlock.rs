//! Locks of open file descriptions on host files (fcntl(2), F_OFD_SETLK), which no safe wrapper offers. One operation each.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A lock on a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostLock {
    /// First byte.
    pub start: u64,
    /// Last byte; `i64::MAX` for all that may ever follow.
    pub end: u64,
    /// Exclusive; else shared.
    pub write: bool,
}

fn flock(kind: i32, start: u64, end: u64) -> io::Result<libc::flock> {
    let invalid = |_| io::Error::from_raw_os_error(libc::EINVAL);
    let len = if end >= i64::MAX as u64 { 0 } else { end.saturating_sub(start).saturating_add(1) };
    Ok(libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: i64::try_from(start).map_err(invalid)?,
        l_len: i64::try_from(len).map_err(invalid)?,
        l_pid: 0,
    })
}

fn call(fd: BorrowedFd<'_>, command: i32, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the command reads and writes one struct flock, which `lock` is.
    let ret = unsafe { libc::fcntl(fd.as_raw_fd(), command, std::ptr::from_mut(lock)) };
    if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes a lock for the description, in place of what it has there; does not wait.
///
/// # Errors
/// EAGAIN: somebody else's is in the way. Others as fcntl(2).
pub fn lock(fd: BorrowedFd<'_>, lock: HostLock) -> io::Result<()> {
    let kind = if lock.write { libc::F_WRLCK } else { libc::F_RDLCK };
    call(fd, libc::F_OFD_SETLK, &mut flock(kind, lock.start, lock.end)?)
}

/// Gives up what the description holds of a range.
///
/// # Errors
/// As fcntl(2).
pub fn unlock(fd: BorrowedFd<'_>, start: u64, end: u64) -> io::Result<()> {
    call(fd, libc::F_OFD_SETLK, &mut flock(libc::F_UNLCK, start, end)?)
}

/// A lock of somebody else that is in the way of this one, with the process where the host tells it.
///
/// # Errors
/// As fcntl(2).
pub fn conflict(fd: BorrowedFd<'_>, lock: HostLock) -> io::Result<Option<(HostLock, i32)>> {
    let kind = if lock.write { libc::F_WRLCK } else { libc::F_RDLCK };
    let mut found = flock(kind, lock.start, lock.end)?;
    call(fd, libc::F_OFD_GETLK, &mut found)?;
    if i32::from(found.l_type) == libc::F_UNLCK {
        return Ok(None);
    }
    let start = u64::try_from(found.l_start).unwrap_or(0);
    let end = match u64::try_from(found.l_len) {
        Ok(0) | Err(_) => i64::MAX as u64,
        Ok(len) => start.saturating_add(len.saturating_sub(1)),
    };
    Ok(Some((HostLock { start, end, write: i32::from(found.l_type) == libc::F_WRLCK }, found.l_pid)))
}
