//! getdents(2).

consts! {
    /// Values of `d_type`.
    DIRENT_TYPES: u8 {
        DT_UNKNOWN = 0;
        DT_FIFO = 1;
        DT_CHR = 2;
        DT_DIR = 4;
        DT_BLK = 6;
        DT_REG = 8;
        DT_LNK = 10;
        DT_SOCK = 12;
    }
}

pod! {
    /// The fixed part of struct linux_dirent64: then the name and its NUL, padded
    /// so that `d_reclen` is a multiple of 8.
    #[repr(C, packed)]
    pub struct Dirent64 [19] {
        pub d_ino: u64,
        pub d_off: i64,
        pub d_reclen: u16,
        pub d_type: u8,
    }

    /// The fixed part of struct linux_dirent (getdents(2)): then the name, its NUL, padding, and the type in the
    /// last byte of the record.
    #[repr(C, packed)]
    pub struct Dirent [18] {
        pub d_ino: u64,
        pub d_off: u64,
        pub d_reclen: u16,
    }
}

/// `d_reclen` of getdents64(2) for a name of this length.
pub const fn dirent64_reclen(name_len: usize) -> usize {
    (19 + name_len + 1 + 7) & !7
}

/// `d_reclen` of getdents(2) for a name of this length.
pub const fn dirent_reclen(name_len: usize) -> usize {
    (18 + name_len + 2 + 7) & !7
}
