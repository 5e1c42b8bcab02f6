//! fcntl(2), flock(2).

consts! {
    /// Commands of fcntl(2).
    FCNTL_CMDS: i32 {
        F_DUPFD = 0;
        F_GETFD = 1;
        F_SETFD = 2;
        F_GETFL = 3;
        F_SETFL = 4;
        F_GETLK = 5;
        F_SETLK = 6;
        F_SETLKW = 7;
        F_SETOWN = 8;
        F_GETOWN = 9;
        F_SETSIG = 10;
        F_GETSIG = 11;
        F_SETOWN_EX = 15;
        F_GETOWN_EX = 16;
        F_GETOWNER_UIDS = 17;
        F_OFD_GETLK = 36;
        F_OFD_SETLK = 37;
        F_OFD_SETLKW = 38;
        F_SETLEASE = 1024;
        F_GETLEASE = 1025;
        F_NOTIFY = 1026;
        F_DUPFD_QUERY = 1027;
        F_CREATED_QUERY = 1028;
        F_CANCELLK = 1029;
        F_DUPFD_CLOEXEC = 1030;
        F_SETPIPE_SZ = 1031;
        F_GETPIPE_SZ = 1032;
        F_ADD_SEALS = 1033;
        F_GET_SEALS = 1034;
        F_GET_RW_HINT = 1035;
        F_SET_RW_HINT = 1036;
        F_GET_FILE_RW_HINT = 1037;
        F_SET_FILE_RW_HINT = 1038;
    }
}

consts! {
    /// Flags of F_SETFD.
    FD_FLAGS: i32 {
        FD_CLOEXEC = 1;
    }
}

consts! {
    /// Values of `l_type`, and leases.
    LOCK_TYPES: i32 {
        F_RDLCK = 0;
        F_WRLCK = 1;
        F_UNLCK = 2;
    }
}

consts! {
    /// Seals.
    SEALS: i32 {
        F_SEAL_SEAL = 0x1;
        F_SEAL_SHRINK = 0x2;
        F_SEAL_GROW = 0x4;
        F_SEAL_WRITE = 0x8;
        F_SEAL_FUTURE_WRITE = 0x10;
        F_SEAL_EXEC = 0x20;
    }
}

consts! {
    /// Values of `FOwnerEx::kind`.
    OWNER_TYPES: i32 {
        F_OWNER_TID = 0;
        F_OWNER_PID = 1;
        F_OWNER_PGRP = 2;
    }
}

consts! {
    /// Operations of flock(2).
    FLOCK_OPS: i32 {
        LOCK_SH = 1;
        LOCK_EX = 2;
        LOCK_NB = 4;
        LOCK_UN = 8;
        LOCK_MAND = 32;
    }
}

consts! {
    /// Arguments of F_NOTIFY.
    DN_FLAGS: u32 {
        DN_ACCESS = 0x1;
        DN_MODIFY = 0x2;
        DN_CREATE = 0x4;
        DN_DELETE = 0x8;
        DN_RENAME = 0x10;
        DN_ATTRIB = 0x20;
        DN_MULTISHOT = 0x80000000;
    }
}

pod! {
    /// struct flock.
    #[repr(C)]
    pub struct Flock [32] {
        pub l_type: i16,
        pub l_whence: i16,
        pub __pad0: u32,
        pub l_start: i64,
        pub l_len: i64,
        pub l_pid: i32,
        pub __pad1: u32,
    }

    /// struct f_owner_ex.
    #[repr(C)]
    pub struct FOwnerEx [8] {
        pub kind: i32,
        pub pid: i32,
    }
}
