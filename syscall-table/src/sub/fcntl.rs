//! Commands of fcntl(2).

use crate::abi::*;

sub_table! {
    /// Commands of fcntl(2).
    FCNTL, "commands", "fcntl" {
        [F_DUPFD, Missing, ""],
        [F_GETFD, Missing, ""],
        [F_SETFD, Missing, ""],
        [F_GETFL, Missing, ""],
        [F_SETFL, Missing, ""],
        [F_GETLK, Missing, ""],
        [F_SETLK, Missing, ""],
        [F_SETLKW, Missing, ""],
        [F_SETOWN, Missing, ""],
        [F_GETOWN, Missing, ""],
        [F_SETSIG, Missing, ""],
        [F_GETSIG, Missing, ""],
        [F_SETOWN_EX, Missing, ""],
        [F_GETOWN_EX, Missing, ""],
        [F_GETOWNER_UIDS, Missing, ""],
        [F_OFD_GETLK, Missing, ""],
        [F_OFD_SETLK, Missing, ""],
        [F_OFD_SETLKW, Missing, ""],
        [F_SETLEASE, Missing, ""],
        [F_GETLEASE, Missing, ""],
        [F_NOTIFY, Missing, ""],
        [F_DUPFD_QUERY, Missing, ""],
        [F_CREATED_QUERY, Missing, ""],
        [F_CANCELLK, Missing, ""],
        [F_DUPFD_CLOEXEC, Missing, ""],
        [F_SETPIPE_SZ, Missing, ""],
        [F_GETPIPE_SZ, Missing, ""],
        [F_ADD_SEALS, Missing, ""],
        [F_GET_SEALS, Missing, ""],
        [F_GET_RW_HINT, Missing, ""],
        [F_SET_RW_HINT, Missing, ""],
        [F_GET_FILE_RW_HINT, Missing, ""],
        [F_SET_FILE_RW_HINT, Missing, ""],
    }
}
