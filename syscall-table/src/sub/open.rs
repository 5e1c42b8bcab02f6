//! Flags of open(2) and openat2(2).

use crate::abi::*;

sub_table! {
    /// Flags of open(2).
    OPEN, "flags", "open" {
        [O_RDONLY, Full, ""],
        [O_WRONLY, Full, ""],
        [O_RDWR, Full, ""],
        [O_CREAT, Full, ""],
        [O_EXCL, Full, ""],
        [O_NOCTTY, Full, ""],
        [O_TRUNC, Full, ""],
        [O_APPEND, Full, ""],
        [O_NONBLOCK, Full, ""],
        [O_DSYNC, Full, ""],
        [FASYNC, Full, ""],
        [O_DIRECT, Partial, "packets of pipes; without effect on files"],
        [O_LARGEFILE, Full, ""],
        [O_DIRECTORY, Full, ""],
        [O_NOFOLLOW, Full, ""],
        [O_NOATIME, Full, ""],
        [O_CLOEXEC, Full, ""],
        [O_SYNC, Full, ""],
        [O_PATH, Full, ""],
        [O_TMPFILE, Full, ""],
    }
}

sub_table! {
    /// Flags of `open_how.resolve`.
    RESOLVE, "resolve flags", "openat2" {
        [RESOLVE_NO_XDEV, Full, ""],
        [RESOLVE_NO_MAGICLINKS, Full, ""],
        [RESOLVE_NO_SYMLINKS, Full, ""],
        [RESOLVE_BENEATH, Full, ""],
        [RESOLVE_IN_ROOT, Full, ""],
        [RESOLVE_CACHED, Full, ""],
    }
}
