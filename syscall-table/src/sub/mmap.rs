//! Flags of mmap(2), advices of madvise(2).

use crate::abi::*;

sub_table! {
    /// Flags of mmap(2).
    MMAP, "flags", "mmap" {
        [MAP_SHARED, Full, ""],
        [MAP_PRIVATE, Full, ""],
        [MAP_SHARED_VALIDATE, Full, ""],
        [MAP_DROPPABLE, Refused(EINVAL), "as Linux before 6.11"],
        [MAP_FIXED, Full, ""],
        [MAP_ANONYMOUS, Full, ""],
        [MAP_32BIT, Full, ""],
        [MAP_ABOVE4G, Partial, "a hint that is not looked at"],
        [MAP_GROWSDOWN, Partial, "the area does not grow"],
        [MAP_DENYWRITE, Full, ""],
        [MAP_EXECUTABLE, Full, ""],
        [MAP_LOCKED, Partial, "counted against the limit, host pages are not locked"],
        [MAP_NORESERVE, Full, ""],
        [MAP_POPULATE, Full, ""],
        [MAP_NONBLOCK, Full, ""],
        [MAP_STACK, Full, ""],
        [MAP_HUGETLB, Refused(ENOMEM), "as a host without reserved huge pages"],
        [MAP_SYNC, Full, "EOPNOTSUPP with MAP_SHARED_VALIDATE: no file here is mapped past the page cache"],
        [MAP_FIXED_NOREPLACE, Full, ""],
        [MAP_UNINITIALIZED, Full, "without effect, as on Linux with a memory management unit"],
    }
}

sub_table! {
    /// Advices of madvise(2).
    MADVISE, "advices", "madvise" {
        [MADV_NORMAL, Full, ""],
        [MADV_RANDOM, Full, ""],
        [MADV_SEQUENTIAL, Full, ""],
        [MADV_WILLNEED, Full, ""],
        [MADV_DONTNEED, Full, ""],
        [MADV_FREE, Full, ""],
        [MADV_REMOVE, Full, ""],
        [MADV_DONTFORK, Full, ""],
        [MADV_DOFORK, Full, ""],
        [MADV_MERGEABLE, Refused(EINVAL), "as a kernel without CONFIG_KSM: merged pages tell others apart by time"],
        [MADV_UNMERGEABLE, Refused(EINVAL), "as a kernel without CONFIG_KSM"],
        [MADV_HUGEPAGE, Full, ""],
        [MADV_NOHUGEPAGE, Full, ""],
        [MADV_DONTDUMP, Full, ""],
        [MADV_DODUMP, Full, ""],
        [MADV_WIPEONFORK, Full, ""],
        [MADV_KEEPONFORK, Full, ""],
        [MADV_COLD, Full, ""],
        [MADV_PAGEOUT, Full, ""],
        [MADV_POPULATE_READ, Full, ""],
        [MADV_POPULATE_WRITE, Full, ""],
        [MADV_DONTNEED_LOCKED, Full, ""],
        [MADV_COLLAPSE, Full, ""],
        [MADV_HWPOISON, Refused(EPERM), "would break the host's memory"],
        [MADV_SOFT_OFFLINE, Refused(EPERM), "would take the host's memory away"],
        [MADV_GUARD_INSTALL, Full, ""],
        [MADV_GUARD_REMOVE, Full, ""],
    }
}
