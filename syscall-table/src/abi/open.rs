//! open(2), openat2(2), access(2), and the flags of the *at calls (uapi/asm-generic/fcntl.h, openat2.h).

consts! {
    /// Flags of open(2).
    OPEN_FLAGS: i32 {
        O_RDONLY = 0o0;
        O_WRONLY = 0o1;
        O_RDWR = 0o2;
        O_CREAT = 0o100;
        O_EXCL = 0o200;
        O_NOCTTY = 0o400;
        O_TRUNC = 0o1000;
        O_APPEND = 0o2000;
        O_NONBLOCK = 0o4000;
        O_DSYNC = 0o10000;
        FASYNC = 0o20000;
        O_DIRECT = 0o40000;
        O_LARGEFILE = 0o100000;
        O_DIRECTORY = 0o200000;
        O_NOFOLLOW = 0o400000;
        O_NOATIME = 0o1000000;
        O_CLOEXEC = 0o2000000;
        __O_SYNC = 0o4000000;
        O_SYNC = 0o4010000;
        O_PATH = 0o10000000;
        __O_TMPFILE = 0o20000000;
        O_TMPFILE = 0o20200000;
        O_ACCMODE = 0o3;
    }
}

consts! {
    /// Flags of the *at calls. unlinkat(2) and faccessat2(2) give 0x200 a meaning of their own.
    AT_FLAGS: i32 {
        AT_SYMLINK_NOFOLLOW = 0x100;
        AT_SYMLINK_FOLLOW = 0x400;
        AT_NO_AUTOMOUNT = 0x800;
        AT_EMPTY_PATH = 0x1000;
        AT_STATX_FORCE_SYNC = 0x2000;
        AT_STATX_DONT_SYNC = 0x4000;
        AT_RECURSIVE = 0x8000;
        AT_EXECVE_CHECK = 0x10000;
    }
}

consts! {
    /// The other AT_ constants of fcntl.h.
    AT_SPECIAL: i32 {
        AT_FDCWD = -0x64;
        AT_REMOVEDIR = 0x200;
        AT_EACCESS = 0x200;
        AT_HANDLE_FID = 0x200;
        AT_HANDLE_MNT_ID_UNIQUE = 0x1;
        AT_HANDLE_CONNECTABLE = 0x2;
    }
}

consts! {
    /// Flags of `OpenHow::resolve`.
    RESOLVE_FLAGS: u64 {
        RESOLVE_NO_XDEV = 0x1;
        RESOLVE_NO_MAGICLINKS = 0x2;
        RESOLVE_NO_SYMLINKS = 0x4;
        RESOLVE_BENEATH = 0x8;
        RESOLVE_IN_ROOT = 0x10;
        RESOLVE_CACHED = 0x20;
    }
}

consts! {
    /// Modes of access(2).
    ACCESS_MODES: i32 {
        F_OK = 0;
        X_OK = 1;
        W_OK = 2;
        R_OK = 4;
    }
}

consts! {
    /// Whence of lseek(2).
    SEEK: i32 {
        SEEK_SET = 0;
        SEEK_CUR = 1;
        SEEK_END = 2;
        SEEK_DATA = 3;
        SEEK_HOLE = 4;
    }
}

pod! {
    /// Argument of openat2(2).
    #[repr(C)]
    pub struct OpenHow [24] {
        pub flags: u64,
        pub mode: u64,
        pub resolve: u64,
    }
}
