//! The bench's only unsafe: calls through the C library, whose call sites are those that programs have.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;

/// Turns a result of the C library into an error with errno.
fn checked(result: i64, call: &str) -> io::Result<i64> {
    if result < 0 {
        let error = io::Error::last_os_error();
        return Err(io::Error::new(error.kind(), format!("{call}: {error}")));
    }
    Ok(result)
}

/// getpid(2).
pub fn getpid() -> i32 {
    // SAFETY: getpid has no preconditions.
    unsafe { libc::getpid() }
}

/// fstat(2); returns the size.
pub fn fstat(fd: BorrowedFd<'_>) -> io::Result<i64> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the buffer has room for one struct stat.
    let result = unsafe { libc::fstat(fd.as_raw_fd(), stat.as_mut_ptr()) };
    checked(result.into(), "fstat")?;
    // SAFETY: all zeroes is a valid struct stat, and the kernel wrote over it.
    Ok(unsafe { stat.assume_init() }.st_size)
}

/// stat(2); returns the size.
pub fn stat(path: &CStr) -> io::Result<i64> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the path ends in NUL and the buffer has room for one struct stat.
    let result = unsafe { libc::stat(path.as_ptr(), stat.as_mut_ptr()) };
    checked(result.into(), "stat")?;
    // SAFETY: all zeroes is a valid struct stat, and the kernel wrote over it.
    Ok(unsafe { stat.assume_init() }.st_size)
}

/// lseek(2).
pub fn lseek(fd: BorrowedFd<'_>, offset: i64, whence: i32) -> io::Result<i64> {
    // SAFETY: lseek touches no memory.
    checked(unsafe { libc::lseek(fd.as_raw_fd(), offset, whence) }, "lseek")
}

/// read(2).
pub fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is writable for its length.
    let result = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    checked(result as i64, "read").map(|n| n as usize)
}

/// write(2).
pub fn write(fd: BorrowedFd<'_>, buffer: &[u8]) -> io::Result<usize> {
    // SAFETY: the buffer is readable for its length.
    let result = unsafe { libc::write(fd.as_raw_fd(), buffer.as_ptr().cast(), buffer.len()) };
    checked(result as i64, "write").map(|n| n as usize)
}

/// pread(2).
pub fn pread(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: i64) -> io::Result<usize> {
    // SAFETY: the buffer is writable for its length.
    let result = unsafe { libc::pread(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), offset) };
    checked(result as i64, "pread").map(|n| n as usize)
}

/// pwrite(2).
pub fn pwrite(fd: BorrowedFd<'_>, buffer: &[u8], offset: i64) -> io::Result<usize> {
    // SAFETY: the buffer is readable for its length.
    let result = unsafe { libc::pwrite(fd.as_raw_fd(), buffer.as_ptr().cast(), buffer.len(), offset) };
    checked(result as i64, "pwrite").map(|n| n as usize)
}

/// open(2) with mode 0600.
pub fn open(path: &CStr, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: the path ends in NUL.
    let fd = checked(unsafe { libc::open(path.as_ptr(), flags, 0o600) }.into(), "open")?;
    // SAFETY: the descriptor is new and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// unlink(2).
pub fn unlink(path: &CStr) -> io::Result<()> {
    // SAFETY: the path ends in NUL.
    checked(unsafe { libc::unlink(path.as_ptr()) }.into(), "unlink").map(drop)
}

/// pipe(2): the end to read and the end to write.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the array has room for both descriptors.
    checked(unsafe { libc::pipe(fds.as_mut_ptr()) }.into(), "pipe")?;
    // SAFETY: both descriptors are new and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// socketpair(2) of unix streams.
pub fn socketpair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the array has room for both descriptors.
    let result = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, fds.as_mut_ptr()) };
    checked(result.into(), "socketpair")?;
    // SAFETY: both descriptors are new and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Forks; the child runs `child` and exits with its value.
///
/// Call it only while the process has one thread: the child goes on to allocate.
pub fn fork(child: impl FnOnce() -> i32) -> io::Result<i32> {
    // SAFETY: the caller has one thread, so no lock is held by a thread that the child lacks.
    let pid = checked(unsafe { libc::fork() }.into(), "fork")?;
    if pid == 0 {
        let status = child();
        // SAFETY: _exit ends the child without running what belongs to the parent.
        unsafe { libc::_exit(status) }
    }
    Ok(pid as i32)
}

/// Replaces the program of a forked child; returns only on failure.
pub fn exec(path: &CStr) -> i32 {
    let argv = [path.as_ptr(), std::ptr::null()];
    let envp = [std::ptr::null()];
    // SAFETY: both arrays end in a null pointer and the strings in NUL.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
    127
}

/// waitpid(2); returns the status word.
pub fn waitpid(pid: i32) -> io::Result<i32> {
    let mut status = 0;
    // SAFETY: status is a writable int.
    checked(unsafe { libc::waitpid(pid, &mut status, 0) }.into(), "waitpid")?;
    Ok(status)
}

/// SIGKILL to one process; a process that is gone is no error.
pub fn kill(pid: i32) {
    // SAFETY: kill touches no memory.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// The effective user id.
pub fn euid() -> u32 {
    // SAFETY: geteuid has no preconditions.
    unsafe { libc::geteuid() }
}

/// Waits on a private futex while it holds `value`.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word outlives the call, and no timeout is given.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, std::ptr::null::<u8>()) };
}

/// Wakes one waiter of a private futex.
pub fn futex_wake(word: &AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) };
}

/// Anonymous private memory in small pages, unmapped when dropped.
pub struct Pages {
    start: *mut u8,
    length: usize,
}

impl Pages {
    /// Maps `length` bytes.
    pub fn map(length: usize) -> io::Result<Self> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping wherever the kernel puts it disturbs nothing.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: start.cast(), length })
    }

    /// Asks for small pages only, so that each page faults.
    pub fn small(&self) {
        // SAFETY: the range is this mapping's own.
        unsafe { libc::madvise(self.start.cast(), self.length, libc::MADV_NOHUGEPAGE) };
    }

    /// Writes one byte to each page.
    pub fn touch(&mut self) {
        for offset in (0..self.length).step_by(4096) {
            // SAFETY: the offset lies within the mapping, which is writable.
            unsafe { self.start.add(offset).write_volatile(1) };
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own and nothing points into it.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
