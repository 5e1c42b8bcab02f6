//! Host calls that no safe wrapper offers: the crate's only unsafe code.

/// Sets the ids that this thread's file operations use (setfsuid(2), setfsgid(2)) and returns those before. An id
/// that may not be set is left.
pub(crate) fn set_fs_ids(uid: u32, gid: u32) -> (u32, u32) {
    // SAFETY: the call takes a number and touches no memory.
    let gid = unsafe { libc::setfsgid(gid) };
    // SAFETY: as above.
    let uid = unsafe { libc::setfsuid(uid) };
    (uid.cast_unsigned(), gid.cast_unsigned())
}
