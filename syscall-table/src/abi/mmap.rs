//! mmap(2), mprotect(2), mremap(2), madvise(2), msync(2), mlock(2), memfd_create(2), mbind(2), get_mempolicy(2).

consts! {
    /// Protections.
    PROT: i32 {
        PROT_NONE = 0x0;
        PROT_READ = 0x1;
        PROT_WRITE = 0x2;
        PROT_EXEC = 0x4;
        PROT_SEM = 0x8;
        PROT_GROWSDOWN = 0x1000000;
        PROT_GROWSUP = 0x2000000;
    }
}

consts! {
    /// Sharing kinds: a number below MAP_TYPE, no bits.
    MAP_TYPES: i32 {
        MAP_SHARED = 0x1;
        MAP_PRIVATE = 0x2;
        MAP_SHARED_VALIDATE = 0x3;
        MAP_DROPPABLE = 0x8;
        MAP_TYPE = 0xf;
    }
}

consts! {
    /// Flags of mmap(2).
    MAP_FLAGS: i32 {
        MAP_FIXED = 0x10;
        MAP_ANONYMOUS = 0x20;
        MAP_32BIT = 0x40;
        MAP_ABOVE4G = 0x80;
        MAP_GROWSDOWN = 0x100;
        MAP_DENYWRITE = 0x800;
        MAP_EXECUTABLE = 0x1000;
        MAP_LOCKED = 0x2000;
        MAP_NORESERVE = 0x4000;
        MAP_POPULATE = 0x8000;
        MAP_NONBLOCK = 0x10000;
        MAP_STACK = 0x20000;
        MAP_HUGETLB = 0x40000;
        MAP_SYNC = 0x80000;
        MAP_FIXED_NOREPLACE = 0x100000;
        MAP_UNINITIALIZED = 0x4000000;
    }
}

consts! {
    /// Advices of madvise(2).
    MADVICE: i32 {
        MADV_NORMAL = 0;
        MADV_RANDOM = 1;
        MADV_SEQUENTIAL = 2;
        MADV_WILLNEED = 3;
        MADV_DONTNEED = 4;
        MADV_FREE = 8;
        MADV_REMOVE = 9;
        MADV_DONTFORK = 10;
        MADV_DOFORK = 11;
        MADV_MERGEABLE = 12;
        MADV_UNMERGEABLE = 13;
        MADV_HUGEPAGE = 14;
        MADV_NOHUGEPAGE = 15;
        MADV_DONTDUMP = 16;
        MADV_DODUMP = 17;
        MADV_WIPEONFORK = 18;
        MADV_KEEPONFORK = 19;
        MADV_COLD = 20;
        MADV_PAGEOUT = 21;
        MADV_POPULATE_READ = 22;
        MADV_POPULATE_WRITE = 23;
        MADV_DONTNEED_LOCKED = 24;
        MADV_COLLAPSE = 25;
        MADV_HWPOISON = 100;
        MADV_SOFT_OFFLINE = 101;
        MADV_GUARD_INSTALL = 102;
        MADV_GUARD_REMOVE = 103;
    }
}

consts! {
    /// Flags of mremap(2).
    MREMAP_FLAGS: u64 {
        MREMAP_MAYMOVE = 1;
        MREMAP_FIXED = 2;
        MREMAP_DONTUNMAP = 4;
    }
}

consts! {
    /// Flags of msync(2).
    MSYNC_FLAGS: i32 {
        MS_ASYNC = 1;
        MS_INVALIDATE = 2;
        MS_SYNC = 4;
    }
}

consts! {
    /// Flags of mlockall(2).
    MCL_FLAGS: i32 {
        MCL_CURRENT = 1;
        MCL_FUTURE = 2;
        MCL_ONFAULT = 4;
    }
}

consts! {
    /// Flags of mlock2(2).
    MLOCK_FLAGS: i32 {
        MLOCK_ONFAULT = 1;
    }
}

consts! {
    /// Flags of memfd_create(2).
    MFD_FLAGS: u32 {
        MFD_CLOEXEC = 0x1;
        MFD_ALLOW_SEALING = 0x2;
        MFD_HUGETLB = 0x4;
        MFD_NOEXEC_SEAL = 0x8;
        MFD_EXEC = 0x10;
    }
}

consts! {
    /// Rights of pkey_alloc(2).
    PKEY_RIGHTS: u64 {
        PKEY_DISABLE_ACCESS = 0x1;
        PKEY_DISABLE_WRITE = 0x2;
    }
}

consts! {
    /// Memory policies.
    MPOL: i32 {
        MPOL_DEFAULT = 0;
        MPOL_PREFERRED = 1;
        MPOL_BIND = 2;
        MPOL_INTERLEAVE = 3;
        MPOL_LOCAL = 4;
        MPOL_PREFERRED_MANY = 5;
        MPOL_WEIGHTED_INTERLEAVE = 6;
    }
}

consts! {
    /// Flags of a memory policy.
    MPOL_MODE_FLAGS: i32 {
        MPOL_F_STATIC_NODES = 1 << 15;
        MPOL_F_RELATIVE_NODES = 1 << 14;
        MPOL_F_NUMA_BALANCING = 1 << 13;
    }
}

consts! {
    /// Flags of get_mempolicy(2).
    MPOL_GET_FLAGS: u32 {
        MPOL_F_NODE = 0x1;
        MPOL_F_ADDR = 0x2;
        MPOL_F_MEMS_ALLOWED = 0x4;
    }
}

consts! {
    /// Flags of mbind(2).
    MPOL_MF_FLAGS: u32 {
        MPOL_MF_STRICT = 0x1;
        MPOL_MF_MOVE = 0x2;
        MPOL_MF_MOVE_ALL = 0x4;
    }
}

/// Shift of the huge page size in the flags of mmap(2).
pub const MAP_HUGE_SHIFT: u32 = 26;
