//! futex(2), futex_waitv(2), get_robust_list(2) (uapi/linux/futex.h).

consts! {
    /// Operations of futex(2).
    FUTEX_OPS: i32 {
        FUTEX_WAIT = 0;
        FUTEX_WAKE = 1;
        FUTEX_FD = 2;
        FUTEX_REQUEUE = 3;
        FUTEX_CMP_REQUEUE = 4;
        FUTEX_WAKE_OP = 5;
        FUTEX_LOCK_PI = 6;
        FUTEX_UNLOCK_PI = 7;
        FUTEX_TRYLOCK_PI = 8;
        FUTEX_WAIT_BITSET = 9;
        FUTEX_WAKE_BITSET = 10;
        FUTEX_WAIT_REQUEUE_PI = 11;
        FUTEX_CMP_REQUEUE_PI = 12;
        FUTEX_LOCK_PI2 = 13;
    }
}

consts! {
    /// Flags beside the operation.
    FUTEX_FLAGS: i32 {
        FUTEX_PRIVATE_FLAG = 0x80;
        FUTEX_CLOCK_REALTIME = 0x100;
    }
}

consts! {
    /// Flags of futex_waitv(2) and kin.
    FUTEX2_FLAGS: u32 {
        FUTEX2_SIZE_U8 = 0x0;
        FUTEX2_SIZE_U16 = 0x1;
        FUTEX2_SIZE_U32 = 0x2;
        FUTEX2_SIZE_U64 = 0x3;
        FUTEX2_NUMA = 0x4;
        FUTEX2_MPOL = 0x8;
        FUTEX2_PRIVATE = 0x80;
    }
}

consts! {
    /// Bits of a robust or PI futex word, and the bit set that matches all.
    FUTEX_BITS: u32 {
        FUTEX_WAITERS = 0x80000000;
        FUTEX_OWNER_DIED = 0x40000000;
        FUTEX_TID_MASK = 0x3fffffff;
        FUTEX_BITSET_MATCH_ANY = 0xffffffff;
    }
}

consts! {
    /// Operations of FUTEX_WAKE_OP.
    FUTEX_WAKE_OPS: u32 {
        FUTEX_OP_SET = 0;
        FUTEX_OP_ADD = 1;
        FUTEX_OP_OR = 2;
        FUTEX_OP_ANDN = 3;
        FUTEX_OP_XOR = 4;
        FUTEX_OP_OPARG_SHIFT = 8;
    }
}

consts! {
    /// Comparisons of FUTEX_WAKE_OP.
    FUTEX_WAKE_CMPS: u32 {
        FUTEX_OP_CMP_EQ = 0;
        FUTEX_OP_CMP_NE = 1;
        FUTEX_OP_CMP_LT = 2;
        FUTEX_OP_CMP_LE = 3;
        FUTEX_OP_CMP_GT = 4;
        FUTEX_OP_CMP_GE = 5;
    }
}

/// Most entries of a robust list that the kernel walks.
pub const ROBUST_LIST_LIMIT: usize = 2048;
/// Most waiters of futex_waitv(2).
pub const FUTEX_WAITV_MAX: u32 = 128;

pod! {
    /// struct futex_waitv.
    #[repr(C)]
    pub struct FutexWaitv [24] {
        pub val: u64,
        pub uaddr: u64,
        pub flags: u32,
        pub __reserved: u32,
    }

    /// struct robust_list_head. The lowest bit of a `list` or `list_op_pending` pointer marks a PI futex.
    #[repr(C)]
    pub struct RobustListHead [24] {
        pub list: u64,
        pub futex_offset: i64,
        pub list_op_pending: u64,
    }
}
