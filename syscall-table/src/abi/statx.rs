//! statx(2) (uapi/linux/stat.h).

consts! {
    /// Bits of the mask and of `stx_mask`.
    STATX_MASK: u32 {
        STATX_TYPE = 0x1;
        STATX_MODE = 0x2;
        STATX_NLINK = 0x4;
        STATX_UID = 0x8;
        STATX_GID = 0x10;
        STATX_ATIME = 0x20;
        STATX_MTIME = 0x40;
        STATX_CTIME = 0x80;
        STATX_INO = 0x100;
        STATX_SIZE = 0x200;
        STATX_BLOCKS = 0x400;
        STATX_BASIC_STATS = 0x7ff;
        STATX_BTIME = 0x800;
        STATX_MNT_ID = 0x1000;
        STATX_DIOALIGN = 0x2000;
        STATX_MNT_ID_UNIQUE = 0x4000;
        STATX_SUBVOL = 0x8000;
        STATX_WRITE_ATOMIC = 0x10000;
        STATX_DIO_READ_ALIGN = 0x20000;
        STATX__RESERVED = 0x80000000;
    }
}

consts! {
    /// Bits of `stx_attributes`.
    STATX_ATTRIBUTES: u64 {
        STATX_ATTR_COMPRESSED = 0x4;
        STATX_ATTR_IMMUTABLE = 0x10;
        STATX_ATTR_APPEND = 0x20;
        STATX_ATTR_NODUMP = 0x40;
        STATX_ATTR_ENCRYPTED = 0x800;
        STATX_ATTR_AUTOMOUNT = 0x1000;
        STATX_ATTR_MOUNT_ROOT = 0x2000;
        STATX_ATTR_VERITY = 0x100000;
        STATX_ATTR_DAX = 0x200000;
        STATX_ATTR_WRITE_ATOMIC = 0x400000;
    }
}

pod! {
    /// struct statx_timestamp.
    #[repr(C)]
    pub struct StatxTimestamp [16] {
        pub tv_sec: i64,
        pub tv_nsec: u32,
        pub __reserved: i32,
    }

    /// struct statx.
    #[repr(C)]
    pub struct Statx [256] {
        pub stx_mask: u32,
        pub stx_blksize: u32,
        pub stx_attributes: u64,
        pub stx_nlink: u32,
        pub stx_uid: u32,
        pub stx_gid: u32,
        pub stx_mode: u16,
        pub __spare0: u16,
        pub stx_ino: u64,
        pub stx_size: u64,
        pub stx_blocks: u64,
        pub stx_attributes_mask: u64,
        pub stx_atime: StatxTimestamp,
        pub stx_btime: StatxTimestamp,
        pub stx_ctime: StatxTimestamp,
        pub stx_mtime: StatxTimestamp,
        pub stx_rdev_major: u32,
        pub stx_rdev_minor: u32,
        pub stx_dev_major: u32,
        pub stx_dev_minor: u32,
        pub stx_mnt_id: u64,
        pub stx_dio_mem_align: u32,
        pub stx_dio_offset_align: u32,
        pub stx_subvol: u64,
        pub stx_atomic_write_unit_min: u32,
        pub stx_atomic_write_unit_max: u32,
        pub stx_atomic_write_segments_max: u32,
        pub stx_dio_read_offset_align: u32,
        pub stx_atomic_write_unit_max_opt: u32,
        pub __spare2: u32,
        pub __spare3: [u64; 8],
    }
}
