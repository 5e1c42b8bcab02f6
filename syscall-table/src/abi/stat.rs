//! stat(2), inode(7) (uapi/asm/stat.h).

consts! {
    /// File types in st_mode.
    FILE_TYPES: u32 {
        S_IFIFO = 0o10000;
        S_IFCHR = 0o20000;
        S_IFDIR = 0o40000;
        S_IFBLK = 0o60000;
        S_IFREG = 0o100000;
        S_IFLNK = 0o120000;
        S_IFSOCK = 0o140000;
    }
}

consts! {
    /// Masks and permission bits in st_mode.
    MODE_BITS: u32 {
        S_IFMT = 0o170000;
        S_ISUID = 0o4000;
        S_ISGID = 0o2000;
        S_ISVTX = 0o1000;
        S_IRWXU = 0o700;
        S_IRUSR = 0o400;
        S_IWUSR = 0o200;
        S_IXUSR = 0o100;
        S_IRWXG = 0o70;
        S_IRGRP = 0o40;
        S_IWGRP = 0o20;
        S_IXGRP = 0o10;
        S_IRWXO = 0o7;
        S_IROTH = 0o4;
        S_IWOTH = 0o2;
        S_IXOTH = 0o1;
    }
}

pod! {
    /// struct stat.
    #[repr(C)]
    pub struct Stat [144] {
        pub st_dev: u64,
        pub st_ino: u64,
        pub st_nlink: u64,
        pub st_mode: u32,
        pub st_uid: u32,
        pub st_gid: u32,
        pub __pad0: u32,
        pub st_rdev: u64,
        pub st_size: i64,
        pub st_blksize: i64,
        pub st_blocks: i64,
        pub st_atime: u64,
        pub st_atime_nsec: u64,
        pub st_mtime: u64,
        pub st_mtime_nsec: u64,
        pub st_ctime: u64,
        pub st_ctime_nsec: u64,
        pub __unused: [i64; 3],
    }
}

/// Device number of 64 bits from its parts (the encoding of st_dev and st_rdev).
pub const fn makedev(major: u32, minor: u32) -> u64 {
    let (major, minor) = (major as u64, minor as u64);
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12 | (major & !0xfff) << 32
}

/// Major part of a device number.
pub const fn major(dev: u64) -> u32 {
    ((dev >> 8 & 0xfff) | (dev >> 32 & !0xfff)) as u32
}

/// Minor part of a device number.
pub const fn minor(dev: u64) -> u32 {
    ((dev & 0xff) | (dev >> 12 & !0xff)) as u32
}
