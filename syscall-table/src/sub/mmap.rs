//! Flags of mmap(2), advices of madvise(2).

use crate::abi::*;

sub_table! {
    /// Flags of mmap(2).
    MMAP, "flags", "mmap" {
        [MAP_SHARED, Missing, ""],
        [MAP_PRIVATE, Missing, ""],
        [MAP_SHARED_VALIDATE, Missing, ""],
        [MAP_DROPPABLE, Missing, ""],
        [MAP_FIXED, Missing, ""],
        [MAP_ANONYMOUS, Missing, ""],
        [MAP_32BIT, Missing, ""],
        [MAP_ABOVE4G, Missing, ""],
        [MAP_GROWSDOWN, Missing, ""],
        [MAP_DENYWRITE, Missing, ""],
        [MAP_EXECUTABLE, Missing, ""],
        [MAP_LOCKED, Missing, ""],
        [MAP_NORESERVE, Missing, ""],
        [MAP_POPULATE, Missing, ""],
        [MAP_NONBLOCK, Missing, ""],
        [MAP_STACK, Missing, ""],
        [MAP_HUGETLB, Missing, ""],
        [MAP_SYNC, Missing, ""],
        [MAP_FIXED_NOREPLACE, Missing, ""],
        [MAP_UNINITIALIZED, Missing, ""],
    }
}

sub_table! {
    /// Advices of madvise(2).
    MADVISE, "advices", "madvise" {
        [MADV_NORMAL, Missing, ""],
        [MADV_RANDOM, Missing, ""],
        [MADV_SEQUENTIAL, Missing, ""],
        [MADV_WILLNEED, Missing, ""],
        [MADV_DONTNEED, Missing, ""],
        [MADV_FREE, Missing, ""],
        [MADV_REMOVE, Missing, ""],
        [MADV_DONTFORK, Missing, ""],
        [MADV_DOFORK, Missing, ""],
        [MADV_MERGEABLE, Missing, ""],
        [MADV_UNMERGEABLE, Missing, ""],
        [MADV_HUGEPAGE, Missing, ""],
        [MADV_NOHUGEPAGE, Missing, ""],
        [MADV_DONTDUMP, Missing, ""],
        [MADV_DODUMP, Missing, ""],
        [MADV_WIPEONFORK, Missing, ""],
        [MADV_KEEPONFORK, Missing, ""],
        [MADV_COLD, Missing, ""],
        [MADV_PAGEOUT, Missing, ""],
        [MADV_POPULATE_READ, Missing, ""],
        [MADV_POPULATE_WRITE, Missing, ""],
        [MADV_DONTNEED_LOCKED, Missing, ""],
        [MADV_COLLAPSE, Missing, ""],
        [MADV_HWPOISON, Missing, ""],
        [MADV_SOFT_OFFLINE, Missing, ""],
        [MADV_GUARD_INSTALL, Missing, ""],
        [MADV_GUARD_REMOVE, Missing, ""],
    }
}
