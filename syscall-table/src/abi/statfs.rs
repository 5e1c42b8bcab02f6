//! statfs(2), ustat(2) (uapi/asm-generic/statfs.h, uapi/linux/magic.h, linux/statfs.h).

consts! {
    /// Values of `f_type`.
    FS_MAGIC: i64 {
        PROC_SUPER_MAGIC = 0x9fa0;
        TMPFS_MAGIC = 0x1021994;
        RAMFS_MAGIC = 0x858458f6;
        SYSFS_MAGIC = 0x62656572;
        DEVPTS_SUPER_MAGIC = 0x1cd1;
        PIPEFS_MAGIC = 0x50495045;
        SOCKFS_MAGIC = 0x534f434b;
        ANON_INODE_FS_MAGIC = 0x9041934;
        EXT4_SUPER_MAGIC = 0xef53;
        XFS_SUPER_MAGIC = 0x58465342;
        BTRFS_SUPER_MAGIC = 0x9123683e;
        OVERLAYFS_SUPER_MAGIC = 0x794c7630;
        CGROUP_SUPER_MAGIC = 0x27e0eb;
        CGROUP2_SUPER_MAGIC = 0x63677270;
        DEBUGFS_MAGIC = 0x64626720;
        TRACEFS_MAGIC = 0x74726163;
        SECURITYFS_MAGIC = 0x73636673;
        HUGETLBFS_MAGIC = 0x958458f6;
        NSFS_MAGIC = 0x6e736673;
        FUSE_SUPER_MAGIC = 0x65735546;
        NFS_SUPER_MAGIC = 0x6969;
        SQUASHFS_MAGIC = 0x73717368;
    }
}

consts! {
    /// Bits of `f_flags`.
    STATFS_FLAGS: i64 {
        ST_RDONLY = 0x1;
        ST_NOSUID = 0x2;
        ST_NODEV = 0x4;
        ST_NOEXEC = 0x8;
        ST_SYNCHRONOUS = 0x10;
        ST_VALID = 0x20;
        ST_MANDLOCK = 0x40;
        ST_NOATIME = 0x400;
        ST_NODIRATIME = 0x800;
        ST_RELATIME = 0x1000;
        ST_NOSYMFOLLOW = 0x2000;
    }
}

pod! {
    /// struct statfs.
    #[repr(C)]
    pub struct Statfs [120] {
        pub f_type: i64,
        pub f_bsize: i64,
        pub f_blocks: u64,
        pub f_bfree: u64,
        pub f_bavail: u64,
        pub f_files: u64,
        pub f_ffree: u64,
        pub f_fsid: [i32; 2],
        pub f_namelen: i64,
        pub f_frsize: i64,
        pub f_flags: i64,
        pub f_spare: [i64; 4],
    }

    /// struct ustat.
    #[repr(C)]
    pub struct Ustat [32] {
        pub f_tfree: i32,
        pub __pad0: u32,
        pub f_tinode: u64,
        pub f_fname: [u8; 6],
        pub f_fpack: [u8; 6],
        pub __pad1: u32,
    }
}
