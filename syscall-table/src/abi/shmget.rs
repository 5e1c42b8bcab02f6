//! shmget(2), shmctl(2), semget(2), semop(2), msgget(2), mq_overview(7), io_uring_setup(2).

consts! {
    /// Flags of shmget(2), semget(2), msgget(2).
    IPC_FLAGS: i32 {
        IPC_CREAT = 0o1000;
        IPC_EXCL = 0o2000;
        IPC_NOWAIT = 0o4000;
    }
}

consts! {
    /// Flags of shmat(2).
    SHM_FLAGS: i32 {
        SHM_RDONLY = 0o10000;
        SHM_RND = 0o20000;
        SHM_REMAP = 0o40000;
        SHM_EXEC = 0o100000;
    }
}

consts! {
    /// Further flags of shmget(2).
    SHMGET_FLAGS: i32 {
        SHM_HUGETLB = 0o4000;
        SHM_NORESERVE = 0o10000;
    }
}

consts! {
    /// Flags of msgrcv(2).
    MSG_IPC_FLAGS: i32 {
        MSG_NOERROR = 0o10000;
        MSG_EXCEPT = 0o20000;
        MSG_COPY = 0o40000;
    }
}

consts! {
    /// Commands of shmctl(2), semctl(2), msgctl(2).
    IPC_CMDS: i32 {
        IPC_RMID = 0;
        IPC_SET = 1;
        IPC_STAT = 2;
        IPC_INFO = 3;
    }
}

consts! {
    /// Commands of shmctl(2).
    SHM_CMDS: i32 {
        SHM_LOCK = 11;
        SHM_UNLOCK = 12;
        SHM_STAT = 13;
        SHM_INFO = 14;
        SHM_STAT_ANY = 15;
    }
}

consts! {
    /// Commands of semctl(2).
    SEM_CMDS: i32 {
        GETPID = 11;
        GETVAL = 12;
        GETALL = 13;
        GETNCNT = 14;
        GETZCNT = 15;
        SETVAL = 16;
        SETALL = 17;
        SEM_STAT = 18;
        SEM_INFO = 19;
        SEM_STAT_ANY = 20;
    }
}

consts! {
    /// Commands of msgctl(2).
    MSG_CMDS: i32 {
        MSG_STAT = 11;
        MSG_INFO = 12;
        MSG_STAT_ANY = 13;
    }
}

/// A key that never names an existing object.
pub const IPC_PRIVATE: i32 = 0;
/// Undo at exit: `Sembuf::sem_flg`.
pub const SEM_UNDO: i16 = 0x1000;

pod! {
    /// struct sembuf.
    #[repr(C)]
    pub struct Sembuf [6] {
        pub sem_num: u16,
        pub sem_op: i16,
        pub sem_flg: i16,
    }

    /// struct ipc64_perm.
    #[repr(C)]
    pub struct IpcPerm [48] {
        pub key: i32,
        pub uid: u32,
        pub gid: u32,
        pub cuid: u32,
        pub cgid: u32,
        pub mode: u32,
        pub seq: u16,
        pub __pad2: u16,
        pub __pad3: u32,
        pub __unused: [u64; 2],
    }

    /// struct shmid64_ds.
    #[repr(C)]
    pub struct Shmid [112] {
        pub shm_perm: IpcPerm,
        pub shm_segsz: u64,
        pub shm_atime: i64,
        pub shm_dtime: i64,
        pub shm_ctime: i64,
        pub shm_cpid: i32,
        pub shm_lpid: i32,
        pub shm_nattch: u64,
        pub __unused: [u64; 2],
    }

    /// struct semid64_ds.
    #[repr(C)]
    pub struct Semid [104] {
        pub sem_perm: IpcPerm,
        pub sem_otime: i64,
        pub __unused1: u64,
        pub sem_ctime: i64,
        pub __unused2: u64,
        pub sem_nsems: u64,
        pub __unused3: [u64; 2],
    }

    /// struct msqid64_ds.
    #[repr(C)]
    pub struct Msqid [120] {
        pub msg_perm: IpcPerm,
        pub msg_stime: i64,
        pub msg_rtime: i64,
        pub msg_ctime: i64,
        pub msg_cbytes: u64,
        pub msg_qnum: u64,
        pub msg_qbytes: u64,
        pub msg_lspid: i32,
        pub msg_lrpid: i32,
        pub __unused: [u64; 2],
    }

    /// struct shminfo64.
    #[repr(C)]
    pub struct Shminfo [72] {
        pub shmmax: u64,
        pub shmmin: u64,
        pub shmmni: u64,
        pub shmseg: u64,
        pub shmall: u64,
        pub __unused: [u64; 4],
    }

    /// struct shm_info.
    #[repr(C)]
    pub struct ShmUsage [48] {
        pub used_ids: i32,
        pub __pad: u32,
        pub shm_tot: u64,
        pub shm_rss: u64,
        pub shm_swp: u64,
        pub swap_attempts: u64,
        pub swap_successes: u64,
    }

    /// struct seminfo.
    #[repr(C)]
    pub struct Seminfo [40] {
        pub semmap: i32,
        pub semmni: i32,
        pub semmns: i32,
        pub semmnu: i32,
        pub semmsl: i32,
        pub semopm: i32,
        pub semume: i32,
        pub semusz: i32,
        pub semvmx: i32,
        pub semaem: i32,
    }

    /// struct msginfo.
    #[repr(C)]
    pub struct Msginfo [32] {
        pub msgpool: i32,
        pub msgmap: i32,
        pub msgmax: i32,
        pub msgmnb: i32,
        pub msgmni: i32,
        pub msgssz: i32,
        pub msgtql: i32,
        pub msgseg: u16,
        pub __pad: u16,
    }

    /// struct mq_attr.
    #[repr(C)]
    pub struct MqAttr [64] {
        pub mq_flags: i64,
        pub mq_maxmsg: i64,
        pub mq_msgsize: i64,
        pub mq_curmsgs: i64,
        pub __reserved: [i64; 4],
    }

    /// struct io_uring_params.
    #[repr(C)]
    pub struct IoUringParams [120] {
        pub sq_entries: u32,
        pub cq_entries: u32,
        pub flags: u32,
        pub sq_thread_cpu: u32,
        pub sq_thread_idle: u32,
        pub features: u32,
        pub wq_fd: u32,
        pub resv: [u32; 3],
        pub sq_off: [u64; 5],
        pub cq_off: [u64; 5],
    }
}
