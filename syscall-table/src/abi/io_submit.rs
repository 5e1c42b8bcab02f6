//! io_setup(2), io_submit(2), io_getevents(2) (uapi/linux/aio_abi.h).

consts! {
    /// Operations of `Iocb::lio_opcode`.
    IOCB_CMDS: u16 {
        IOCB_CMD_PREAD = 0;
        IOCB_CMD_PWRITE = 1;
        IOCB_CMD_FSYNC = 2;
        IOCB_CMD_FDSYNC = 3;
        IOCB_CMD_POLL = 5;
        IOCB_CMD_NOOP = 6;
        IOCB_CMD_PREADV = 7;
        IOCB_CMD_PWRITEV = 8;
    }
}

consts! {
    /// Bits of `Iocb::flags`.
    IOCB_FLAGS: u32 {
        IOCB_FLAG_RESFD = 0x1;
        IOCB_FLAG_IOPRIO = 0x2;
    }
}

pod! {
    /// struct iocb.
    #[repr(C)]
    pub struct Iocb [64] {
        pub data: u64,
        pub key: u32,
        pub rw_flags: u32,
        pub lio_opcode: u16,
        pub reqprio: i16,
        pub fildes: u32,
        pub buf: u64,
        pub nbytes: u64,
        pub offset: i64,
        pub reserved2: u64,
        pub flags: u32,
        pub resfd: u32,
    }

    /// struct io_event.
    #[repr(C)]
    pub struct IoEvent [32] {
        pub data: u64,
        pub obj: u64,
        pub res: i64,
        pub res2: i64,
    }
}
