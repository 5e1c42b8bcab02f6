//! Flags of open(2) and openat2(2).

use crate::abi::*;

sub_table! {
    /// Flags of open(2).
    OPEN, "flags", "open" {
        [O_RDONLY, Missing, ""],
        [O_WRONLY, Missing, ""],
        [O_RDWR, Missing, ""],
        [O_CREAT, Missing, ""],
        [O_EXCL, Missing, ""],
        [O_NOCTTY, Missing, ""],
        [O_TRUNC, Missing, ""],
        [O_APPEND, Missing, ""],
        [O_NONBLOCK, Missing, ""],
        [O_DSYNC, Missing, ""],
        [FASYNC, Missing, ""],
        [O_DIRECT, Missing, ""],
        [O_LARGEFILE, Missing, ""],
        [O_DIRECTORY, Missing, ""],
        [O_NOFOLLOW, Missing, ""],
        [O_NOATIME, Missing, ""],
        [O_CLOEXEC, Missing, ""],
        [O_SYNC, Missing, ""],
        [O_PATH, Missing, ""],
        [O_TMPFILE, Missing, ""],
    }
}

sub_table! {
    /// Flags of `open_how.resolve`.
    RESOLVE, "resolve flags", "openat2" {
        [RESOLVE_NO_XDEV, Missing, ""],
        [RESOLVE_NO_MAGICLINKS, Missing, ""],
        [RESOLVE_NO_SYMLINKS, Missing, ""],
        [RESOLVE_BENEATH, Missing, ""],
        [RESOLVE_IN_ROOT, Missing, ""],
        [RESOLVE_CACHED, Missing, ""],
    }
}
