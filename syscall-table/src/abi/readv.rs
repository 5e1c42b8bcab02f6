//! readv(2), preadv2(2), splice(2), sendfile(2), copy_file_range(2), fallocate(2), fadvise64(2), sync_file_range(2), pipe(2).

consts! {
    /// Flags of preadv2(2).
    RWF_FLAGS: i32 {
        RWF_HIPRI = 0x1;
        RWF_DSYNC = 0x2;
        RWF_SYNC = 0x4;
        RWF_NOWAIT = 0x8;
        RWF_APPEND = 0x10;
        RWF_NOAPPEND = 0x20;
        RWF_ATOMIC = 0x40;
        RWF_DONTCACHE = 0x80;
        RWF_NOSIGNAL = 0x100;
    }
}

consts! {
    /// Flags of splice(2).
    SPLICE_FLAGS: u32 {
        SPLICE_F_MOVE = 0x1;
        SPLICE_F_NONBLOCK = 0x2;
        SPLICE_F_MORE = 0x4;
        SPLICE_F_GIFT = 0x8;
    }
}

consts! {
    /// Modes of fallocate(2).
    FALLOC_FLAGS: i32 {
        FALLOC_FL_KEEP_SIZE = 0x1;
        FALLOC_FL_PUNCH_HOLE = 0x2;
        FALLOC_FL_NO_HIDE_STALE = 0x4;
        FALLOC_FL_COLLAPSE_RANGE = 0x8;
        FALLOC_FL_ZERO_RANGE = 0x10;
        FALLOC_FL_INSERT_RANGE = 0x20;
        FALLOC_FL_UNSHARE_RANGE = 0x40;
        FALLOC_FL_WRITE_ZEROES = 0x80;
    }
}

consts! {
    /// Advices of fadvise64(2).
    FADVICE: i32 {
        POSIX_FADV_NORMAL = 0;
        POSIX_FADV_RANDOM = 1;
        POSIX_FADV_SEQUENTIAL = 2;
        POSIX_FADV_WILLNEED = 3;
        POSIX_FADV_DONTNEED = 4;
        POSIX_FADV_NOREUSE = 5;
    }
}

consts! {
    /// Flags of sync_file_range(2).
    SYNC_FILE_RANGE_FLAGS: u32 {
        SYNC_FILE_RANGE_WAIT_BEFORE = 1;
        SYNC_FILE_RANGE_WRITE = 2;
        SYNC_FILE_RANGE_WAIT_AFTER = 4;
    }
}

/// Most elements of an iovec array.
pub const UIO_MAXIOV: usize = 1024;
/// Most bytes that one read or write moves.
pub const MAX_RW_COUNT: usize = 0x7fff_f000;

pod! {
    /// struct iovec.
    #[repr(C)]
    pub struct Iovec [16] {
        pub iov_base: u64,
        pub iov_len: u64,
    }

    /// The two descriptors that pipe(2) and socketpair(2) return.
    #[repr(C)]
    pub struct FdPair [8] {
        pub fds: [i32; 2],
    }

    /// struct cachestat_range.
    #[repr(C)]
    pub struct CachestatRange [16] {
        pub off: u64,
        pub len: u64,
    }

    /// struct cachestat.
    #[repr(C)]
    pub struct Cachestat [40] {
        pub nr_cache: u64,
        pub nr_dirty: u64,
        pub nr_writeback: u64,
        pub nr_evicted: u64,
        pub nr_recently_evicted: u64,
    }
}
