//! Commands of fcntl(2).

use crate::abi::*;

sub_table! {
    /// Commands of fcntl(2).
    FCNTL, "commands", "fcntl" {
        [F_DUPFD, Full, ""],
        [F_GETFD, Full, ""],
        [F_SETFD, Full, ""],
        [F_GETFL, Full, ""],
        [F_SETFL, Full, ""],
        [F_GETLK, Full, ""],
        [F_SETLK, Full, ""],
        [F_SETLKW, Full, ""],
        [F_SETOWN, Full, ""],
        [F_GETOWN, Full, ""],
        [F_SETSIG, Full, ""],
        [F_GETSIG, Full, ""],
        [F_SETOWN_EX, Full, ""],
        [F_GETOWN_EX, Full, ""],
        [F_GETOWNER_UIDS, Full, ""],
        [F_OFD_GETLK, Full, ""],
        [F_OFD_SETLK, Full, ""],
        [F_OFD_SETLKW, Full, ""],
        [F_SETLEASE, Refused(EINVAL), "no leases, as file systems without them have it; F_UNLCK answers EAGAIN"],
        [F_GETLEASE, Partial, "there is never one"],
        [F_NOTIFY, Full, ""],
        [F_DUPFD_QUERY, Full, ""],
        [F_CREATED_QUERY, Full, ""],
        [F_CANCELLK, Missing, ""],
        [F_DUPFD_CLOEXEC, Full, ""],
        [F_SETPIPE_SZ, Full, ""],
        [F_GETPIPE_SZ, Full, ""],
        [F_ADD_SEALS, Partial, "kept; writable mappings made before are not looked at"],
        [F_GET_SEALS, Full, ""],
        [F_GET_RW_HINT, Full, ""],
        [F_SET_RW_HINT, Full, ""],
        [F_GET_FILE_RW_HINT, Missing, ""],
        [F_SET_FILE_RW_HINT, Missing, ""],
    }
}
