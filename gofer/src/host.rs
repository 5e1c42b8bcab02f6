//! Host calls that no safe wrapper offers: the crate's only unsafe code.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Sets the ids that this thread's file operations use (setfsuid(2), setfsgid(2)) and returns those before. An id
/// that may not be set is left.
pub(crate) fn set_fs_ids(uid: u32, gid: u32) -> (u32, u32) {
    // SAFETY: the call takes a number and touches no memory.
    let gid = unsafe { libc::setfsgid(gid) };
    // SAFETY: as above.
    let uid = unsafe { libc::setfsuid(uid) };
    (uid.cast_unsigned(), gid.cast_unsigned())
}

/// Forks into new user, mount, pid, network, IPC and UTS namespaces, as a child of this process's parent.
/// Gives the child's pid, or `None` in the child.
///
/// This process must have one thread only: the child has no other, and locks that another holds stay held.
pub(crate) fn fork_confined() -> io::Result<Option<i32>> {
    let flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_PARENT;
    // SAFETY: without CLONE_VM and with a null stack this is fork(2): the child goes on with a copy of this stack,
    // and nothing is written to memory (no *_SETTID flag).
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(flags), 0, 0, 0, 0) };
    match i32::try_from(pid) {
        Ok(0) => Ok(None),
        Ok(pid) if pid > 0 => Ok(Some(pid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets attributes (`MOUNT_ATTR_*`) of the mount that `mount` is the root of; with `recursive` of those below too.
pub(crate) fn mount_setattr(mount: BorrowedFd<'_>, set: u64, recursive: bool) -> io::Result<()> {
    let attr = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    let size = size_of::<libc::mount_attr>();
    // SAFETY: the path is a NUL-terminated constant and `attr` is read for `size` bytes, its own size.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, mount.as_raw_fd(), c"".as_ptr(), flags, &raw const attr, size)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes every descriptor but standard ones and `keep`.
///
/// For a process's start, before anything owns others.
pub(crate) fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<u32> =
        keep.iter().filter_map(|fd| u32::try_from(*fd).ok()).filter(|fd| *fd > 2).collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if fd > first {
            // SAFETY: the call touches no memory; the caller says that nobody owns the descriptors.
            unsafe { libc::close_range(first, fd - 1, 0) };
        }
        first = fd.saturating_add(1);
    }
}

/// Takes over a descriptor that this process inherited.
///
/// # Errors
/// `EBADF` when there is none. Nothing else of the process may own it.
pub(crate) fn inherited(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers and touches no memory.
    if fd < 0 || unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it is open, and the caller says that nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Ends the process without running anything more of it.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: the call does not return and touches no memory.
    unsafe { libc::_exit(status) }
}
