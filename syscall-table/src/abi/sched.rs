//! sched_setscheduler(2), sched_setattr(2), ioprio_set(2), membarrier(2), rseq(2).

consts! {
    /// Policies, and the flag beside them.
    SCHED_POLICIES: i32 {
        SCHED_NORMAL = 0;
        SCHED_FIFO = 1;
        SCHED_RR = 2;
        SCHED_BATCH = 3;
        SCHED_IDLE = 5;
        SCHED_DEADLINE = 6;
        SCHED_EXT = 7;
        SCHED_RESET_ON_FORK = 1073741824;
    }
}

consts! {
    /// Which of ioprio_set(2).
    IOPRIO_WHO: i32 {
        IOPRIO_WHO_PROCESS = 1;
        IOPRIO_WHO_PGRP = 2;
        IOPRIO_WHO_USER = 3;
    }
}

consts! {
    /// Commands of membarrier(2).
    MEMBARRIER_CMDS: i32 {
        MEMBARRIER_CMD_QUERY = 0x0;
        MEMBARRIER_CMD_GLOBAL = 0x1;
        MEMBARRIER_CMD_GLOBAL_EXPEDITED = 0x2;
        MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED = 0x4;
        MEMBARRIER_CMD_PRIVATE_EXPEDITED = 0x8;
        MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED = 0x10;
        MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE = 0x20;
        MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE = 0x40;
        MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ = 0x80;
        MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ = 0x100;
        MEMBARRIER_CMD_GET_REGISTRATIONS = 0x200;
    }
}

/// Flag of membarrier(2) with MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ.
pub const MEMBARRIER_CMD_FLAG_CPU: u32 = 1;

consts! {
    /// Flags of rseq(2).
    RSEQ_FLAGS: i32 {
        RSEQ_FLAG_UNREGISTER = 1;
    }
}

consts! {
    /// Bits of `Rseq::flags`.
    RSEQ_CS_FLAGS: u32 {
        RSEQ_CS_FLAG_NO_RESTART_ON_PREEMPT = 0x1;
        RSEQ_CS_FLAG_NO_RESTART_ON_SIGNAL = 0x2;
        RSEQ_CS_FLAG_NO_RESTART_ON_MIGRATE = 0x4;
    }
}

/// `Rseq::cpu_id` before registration.
pub const RSEQ_CPU_ID_UNINITIALIZED: u32 = -1i32 as u32;
/// `Rseq::cpu_id` when registration failed.
pub const RSEQ_CPU_ID_REGISTRATION_FAILED: u32 = -2i32 as u32;

pod! {
    /// struct sched_param.
    #[repr(C)]
    pub struct SchedParam [4] {
        pub sched_priority: i32,
    }

    /// struct sched_attr.
    #[repr(C)]
    pub struct SchedAttr [56] {
        pub size: u32,
        pub sched_policy: u32,
        pub sched_flags: u64,
        pub sched_nice: i32,
        pub sched_priority: u32,
        pub sched_runtime: u64,
        pub sched_deadline: u64,
        pub sched_period: u64,
        pub sched_util_min: u32,
        pub sched_util_max: u32,
    }

    /// struct rseq, the original 32 bytes.
    #[repr(C)]
    pub struct Rseq [32] {
        pub cpu_id_start: u32,
        pub cpu_id: u32,
        pub rseq_cs: u64,
        pub flags: u32,
        pub node_id: u32,
        pub mm_cid: u32,
        pub __pad: u32,
    }

    /// struct rseq_cs.
    #[repr(C)]
    pub struct RseqCs [32] {
        pub version: u32,
        pub flags: u32,
        pub start_ip: u64,
        pub post_commit_offset: u64,
        pub abort_ip: u64,
    }
}
