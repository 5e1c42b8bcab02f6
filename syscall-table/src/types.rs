//! Argument types of system calls: what a register means, and how the kernel narrows it.
//!
//! [`Arg::from_raw`] truncates exactly as the x86-64 ABI does: an `int` argument is the low 32 bits of its
//! register whatever the upper half holds. Nothing here looks at guest memory; an address is only a number.

use core::fmt;
use core::marker::PhantomData;
use core::mem::size_of;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What a register is used for: enough to carry the memory behind it across to the kernel and back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgKind {
    /// A number of this many significant bits.
    Int { bits: u8, signed: bool },
    /// A word of flags or a code with symbolic names.
    Flags { bits: u8 },
    /// A file descriptor.
    Fd,
    /// A directory descriptor or AT_FDCWD.
    DirFd,
    /// A process or thread id.
    Pid,
    /// A signal number.
    Signal,
    /// Permission bits.
    Mode,
    /// A user or group id.
    Id,
    /// An address that the call does not read or write through as it stands, or in a way of its own.
    Addr,
    /// Pointer to a NUL-terminated path (at most PATH_MAX bytes).
    Path,
    /// Pointer to another NUL-terminated string.
    CStr,
    /// Pointer to a NULL-terminated array of pointers to strings.
    CStrArray,
    /// Pointer to bytes that the kernel reads; the next argument is their number.
    InBuf,
    /// Pointer to bytes that the kernel writes; the next argument is their number.
    OutBuf,
    /// Pointer to bytes that the kernel writes; the next argument points to an int with their number, which the
    /// kernel replaces by the number it had.
    OutVar,
    /// Pointer to one struct of this size that the kernel reads.
    In { size: usize },
    /// Pointer to one struct of this size that the kernel writes.
    Out { size: usize },
    /// Pointer to one struct of this size that the kernel reads and writes.
    InOut { size: usize },
    /// Pointer to an array of structs of this size that the kernel reads; the next argument is their number.
    InSlice { size: usize },
    /// Pointer to an array of structs of this size that the kernel writes; the next argument is their number.
    OutSlice { size: usize },
    /// Pointer to an array that the kernel reads and writes; the next argument is the number of elements.
    InOutSlice { size: usize },
}

impl ArgKind {
    /// The register holds a user address.
    pub const fn is_pointer(self) -> bool {
        use ArgKind::*;
        matches!(
            self,
            Addr | Path
                | CStr
                | CStrArray
                | InBuf
                | OutBuf
                | OutVar
                | In { .. }
                | Out { .. }
                | InOut { .. }
                | InSlice { .. }
                | OutSlice { .. }
                | InOutSlice { .. }
        )
    }
}

/// The type of one system call argument.
pub trait Arg: Sized + Copy {
    /// The argument as the kernel sees it in this register.
    fn from_raw(raw: u64) -> Self;
    /// What it is.
    const KIND: ArgKind;
}

/// A plain ABI struct: any bytes are a valid value and every byte is initialised.
pub trait Pod: Copy + FromBytes + IntoBytes + Immutable + KnownLayout + 'static {}
impl<T: Copy + FromBytes + IntoBytes + Immutable + KnownLayout + 'static> Pod for T {}

macro_rules! integers {
    ($($int:ident $bits:literal $signed:literal;)*) => {$(
        impl Arg for $int {
            fn from_raw(raw: u64) -> Self {
                raw as $int
            }
            const KIND: ArgKind = ArgKind::Int { bits: $bits, signed: $signed };
        }
    )*};
}

integers! {
    i32 32 true;
    u32 32 false;
    i64 64 true;
    u64 64 false;
    usize 64 false;
}

macro_rules! newtypes {
    ($($(#[$doc:meta])* $name:ident($int:ident) $kind:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(transparent)]
        pub struct $name(pub $int);

        impl $name {
            /// The value as the kernel takes it.
            pub const fn raw(self) -> $int {
                self.0
            }
        }

        impl Arg for $name {
            fn from_raw(raw: u64) -> Self {
                $name(raw as $int)
            }
            const KIND: ArgKind = $kind;
        }
    )*};
}

newtypes! {
    /// A file descriptor.
    Fd(i32) ArgKind::Fd;
    /// A directory descriptor, or AT_FDCWD.
    DirFd(i32) ArgKind::DirFd;
    /// A process, thread, process-group or session id, with the negative forms of kill(2) and wait4(2).
    Pid(i32) ArgKind::Pid;
    /// The number of what another argument names: a process, a group, a user or a descriptor.
    AnyId(i32) ArgKind::Pid;
    /// A signal number.
    Signal(i32) ArgKind::Signal;
    /// A user id; `u32::MAX` means "leave as it is" where a call has that.
    Uid(u32) ArgKind::Id;
    /// A group id; `u32::MAX` means "leave as it is" where a call has that.
    Gid(u32) ArgKind::Id;
}

/// Permission bits (umode_t: the kernel takes the low 16 bits).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Mode(pub u32);

impl Mode {
    /// The value as the kernel takes it.
    pub const fn raw(self) -> u32 {
        self.0
    }
}

impl Arg for Mode {
    fn from_raw(raw: u64) -> Self {
        Mode(raw as u16 as u32)
    }
    const KIND: ArgKind = ArgKind::Mode;
}

macro_rules! pointers {
    ($($(#[$doc:meta])* $name:ident $kind:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The address.
            pub const fn addr(self) -> u64 {
                self.0
            }

            /// The null pointer, which many calls give a meaning of its own.
            pub const fn is_null(self) -> bool {
                self.0 == 0
            }
        }

        impl Arg for $name {
            fn from_raw(raw: u64) -> Self {
                $name(raw)
            }
            const KIND: ArgKind = $kind;
        }
    )*};
}

pointers! {
    /// Any user address.
    Addr ArgKind::Addr;
    /// Pointer to a NUL-terminated path.
    Path ArgKind::Path;
    /// Pointer to a NUL-terminated string that is no path.
    CStr ArgKind::CStr;
    /// Pointer to a NULL-terminated array of pointers to strings (argv, envp).
    CStrArray ArgKind::CStrArray;
    /// Pointer to bytes that the kernel reads, as many as the next argument says.
    InBuf ArgKind::InBuf;
    /// Pointer to bytes that the kernel writes, at most as many as the next argument says.
    OutBuf ArgKind::OutBuf;
    /// Pointer to bytes that the kernel writes, at most as many as the int says that the next argument points to.
    OutVar ArgKind::OutVar;
    /// Pointer to a socket address that the kernel reads; the next argument is its length.
    InSockaddr ArgKind::InBuf;
    /// Pointer to room for a socket address; the next argument points to its length.
    OutSockaddr ArgKind::OutVar;
    /// Pointer to a bit set of descriptors, as many bits as the first argument says, in whole 64-bit words.
    FdSetPtr ArgKind::Addr;
}

macro_rules! typed_pointers {
    ($($(#[$doc:meta])* $name:ident $kind:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name<T>(pub u64, PhantomData<fn() -> T>);

        impl<T> $name<T> {
            /// A pointer with this value.
            pub const fn new(addr: u64) -> Self {
                $name(addr, PhantomData)
            }

            /// The address.
            pub const fn addr(self) -> u64 {
                self.0
            }

            /// The null pointer, which many calls give a meaning of its own.
            pub const fn is_null(self) -> bool {
                self.0 == 0
            }
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}
        impl<T> PartialEq for $name<T> {
            fn eq(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }
        impl<T> Eq for $name<T> {}
        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }

        impl<T: Pod> Arg for $name<T> {
            fn from_raw(raw: u64) -> Self {
                $name::new(raw)
            }
            const KIND: ArgKind = ArgKind::$kind { size: size_of::<T>() };
        }
    )*};
}

typed_pointers! {
    /// Pointer to a struct that the kernel reads.
    In In;
    /// Pointer to a struct that the kernel writes.
    Out Out;
    /// Pointer to a struct that the kernel reads and writes.
    InOut InOut;
    /// Pointer to an array that the kernel reads; the next argument is the number of elements.
    InSlice InSlice;
    /// Pointer to an array that the kernel writes; the next argument is the number of elements.
    OutSlice OutSlice;
    /// Pointer to an array that the kernel reads and writes; the next argument is the number of elements.
    InOutSlice InOutSlice;
}

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident($int:ident) $bits:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
        #[repr(transparent)]
        pub struct $name(pub $int);

        impl $name {
            /// The bits as the kernel takes them.
            pub const fn bits(self) -> $int {
                self.0
            }

            /// All of these bits are set.
            pub const fn has(self, bits: $int) -> bool {
                self.0 & bits == bits
            }

            /// The bits outside of `known`.
            pub const fn unknown(self, known: $int) -> $int {
                self.0 & !known
            }
        }

        impl Arg for $name {
            fn from_raw(raw: u64) -> Self {
                $name(raw as $int)
            }
            const KIND: ArgKind = ArgKind::Flags { bits: $bits };
        }
    )*};
}

flags! {
    /// O_*: open(2), pipe2(2), dup3(2).
    OpenFlags(i32) 32;
    /// AT_*: *at(2), statx(2).
    AtFlags(i32) 32;
    /// PROT_*: mmap(2). The kernel takes a long but knows no bit above 31.
    MmapProt(i32) 32;
    /// MAP_*: mmap(2). The kernel takes a long but knows no bit above 31.
    MmapFlags(i32) 32;
    /// MREMAP_*: mremap(2).
    MremapFlags(u64) 64;
    /// MS_*: msync(2).
    MsyncFlags(i32) 32;
    /// MADV_*: madvise(2).
    Advice(i32) 32;
    /// MCL_*: mlockall(2).
    MlockallFlags(i32) 32;
    /// MLOCK_*: mlock2(2).
    MlockFlags(i32) 32;
    /// CLONE_* and the exit signal: clone(2), unshare(2).
    CloneFlags(u64) 64;
    /// CLONE_NEW*: setns(2).
    NsType(i32) 32;
    /// R_OK and kin: access(2).
    AccessMode(i32) 32;
    /// SEEK_*: lseek(2).
    Whence(i32) 32;
    /// Request of ioctl(2).
    IoctlRequest(u32) 32;
    /// F_*: fcntl(2).
    FcntlCmd(i32) 32;
    /// LOCK_*: flock(2).
    FlockOp(i32) 32;
    /// FUTEX_*: futex(2).
    FutexOp(i32) 32;
    /// FUTEX2_*: futex_waitv(2) and kin.
    Futex2Flags(u32) 32;
    /// SIG_BLOCK and kin: rt_sigprocmask(2).
    SigHow(i32) 32;
    /// W*: wait4(2), waitid(2).
    WaitFlags(i32) 32;
    /// P_*: waitid(2).
    IdType(i32) 32;
    /// PR_*: prctl(2).
    PrctlOption(i32) 32;
    /// ARCH_*: arch_prctl(2).
    ArchPrctlOption(i32) 32;
    /// PTRACE_*: ptrace(2).
    PtraceRequest(i64) 64;
    /// RLIMIT_*: getrlimit(2).
    RlimitResource(u32) 32;
    /// RUSAGE_*: getrusage(2).
    RusageWho(i32) 32;
    /// PRIO_*: getpriority(2).
    PriorityWhich(i32) 32;
    /// CLOCK_*: clock_gettime(2).
    ClockId(i32) 32;
    /// TIMER_ABSTIME, TFD_TIMER_*: timer_settime(2), clock_nanosleep(2), timerfd_settime(2).
    TimerFlags(i32) 32;
    /// ITIMER_*: getitimer(2).
    ItimerWhich(i32) 32;
    /// TFD_*: timerfd_create(2).
    TimerfdFlags(i32) 32;
    /// EFD_*: eventfd(2).
    EventfdFlags(i32) 32;
    /// SFD_*: signalfd(2).
    SignalfdFlags(i32) 32;
    /// EPOLL_CLOEXEC: epoll_create1(2).
    EpollFlags(i32) 32;
    /// EPOLL_CTL_*: epoll_ctl(2).
    EpollOp(i32) 32;
    /// IN_NONBLOCK, IN_CLOEXEC: inotify_init1(2).
    InotifyFlags(i32) 32;
    /// IN_*: inotify_add_watch(2).
    InotifyMask(u32) 32;
    /// FAN_*: fanotify_init(2).
    FanotifyInitFlags(u32) 32;
    /// FAN_MARK_*: fanotify_mark(2).
    FanotifyMarkFlags(u32) 32;
    /// FAN_*: the events of fanotify_mark(2).
    FanotifyMask(u64) 64;
    /// AF_*: socket(2).
    SocketFamily(i32) 32;
    /// SOCK_* with SOCK_NONBLOCK, SOCK_CLOEXEC: socket(2), accept4(2).
    SocketType(i32) 32;
    /// IPPROTO_*: socket(2).
    SocketProtocol(i32) 32;
    /// MSG_*: send(2), recv(2).
    MsgFlags(i32) 32;
    /// SHUT_*: shutdown(2).
    ShutdownHow(i32) 32;
    /// SOL_*: getsockopt(2).
    SockoptLevel(i32) 32;
    /// SO_* and the options of the other levels: getsockopt(2).
    SockoptName(i32) 32;
    /// MS_*: mount(2).
    MountFlags(u64) 64;
    /// MNT_*: umount2(2).
    UmountFlags(i32) 32;
    /// Flags of open_tree, move_mount, fsopen, fsmount, fspick, mount_setattr.
    NewMountFlags(u32) 32;
    /// FSCONFIG_*: fsconfig(2).
    FsconfigCmd(u32) 32;
    /// MFD_*: memfd_create(2).
    MemfdFlags(u32) 32;
    /// GRND_*: getrandom(2).
    GetrandomFlags(u32) 32;
    /// RENAME_*: renameat2(2).
    RenameFlags(u32) 32;
    /// FALLOC_FL_*: fallocate(2).
    FallocateMode(i32) 32;
    /// POSIX_FADV_*: fadvise64(2).
    Fadvice(i32) 32;
    /// SYNC_FILE_RANGE_*: sync_file_range(2).
    SyncFileRangeFlags(u32) 32;
    /// SPLICE_F_*: splice(2).
    SpliceFlags(u32) 32;
    /// RWF_*: preadv2(2).
    RwFlags(i32) 32;
    /// STATX_*: the mask of statx(2).
    StatxMask(u32) 32;
    /// XATTR_*: setxattr(2).
    XattrFlags(i32) 32;
    /// SCHED_*: sched_setscheduler(2).
    SchedPolicy(i32) 32;
    /// SECCOMP_*: seccomp(2).
    SeccompOp(u32) 32;
    /// SECCOMP_FILTER_FLAG_*: seccomp(2).
    SeccompFlags(u32) 32;
    /// MEMBARRIER_CMD_*: membarrier(2).
    MembarrierCmd(i32) 32;
    /// CLOSE_RANGE_*: close_range(2).
    CloseRangeFlags(u32) 32;
    /// PIDFD_*: pidfd_open(2), pidfd_send_signal(2).
    PidfdFlags(u32) 32;
    /// MPOL_*: mbind(2).
    Mpol(i32) 32;
    /// MPOL_MF_*: mbind(2), move_pages(2).
    MpolMoveFlags(u32) 32;
    /// IPC_CREAT, SHM_*, SEM_*: shmget(2), semget(2), msgget(2), shmat(2).
    IpcFlags(i32) 32;
    /// IPC_*, SHM_*, SEM_*, MSG_*: shmctl(2), semctl(2), msgctl(2).
    IpcCmd(i32) 32;
    /// KEYCTL_*: keyctl(2).
    KeyctlOp(i32) 32;
    /// BPF_*: bpf(2).
    BpfCmd(i32) 32;
    /// LINUX_REBOOT_CMD_*: reboot(2).
    RebootCmd(u32) 32;
    /// SYSLOG_ACTION_*: syslog(2).
    SyslogAction(i32) 32;
    /// Execution domain: personality(2).
    Persona(u32) 32;
    /// IOPRIO_WHO_*: ioprio_set(2).
    IoprioWhich(i32) 32;
    /// KCMP_*: kcmp(2).
    KcmpType(i32) 32;
    /// RSEQ_FLAG_*: rseq(2).
    RseqFlags(i32) 32;
    /// UFFD_*, O_*: userfaultfd(2).
    UserfaultfdFlags(i32) 32;
    /// PERF_FLAG_*: perf_event_open(2).
    PerfFlags(u64) 64;
    /// LANDLOCK_*: landlock_create_ruleset(2) and kin.
    LandlockFlags(u32) 32;
    /// IORING_ENTER_*: io_uring_enter(2).
    IoUringEnterFlags(u32) 32;
    /// IORING_REGISTER_*: io_uring_register(2).
    IoUringRegisterOp(u32) 32;
    /// PKEY_*: the rights of pkey_alloc(2).
    PkeyRights(u64) 64;
    /// SWAP_FLAG_*: swapon(2).
    SwapFlags(i32) 32;
    /// O_NONBLOCK, O_TRUNC: delete_module(2); MODULE_INIT_*: finit_module(2).
    ModuleFlags(i32) 32;
    /// KEXEC_*: kexec_load(2), kexec_file_load(2).
    KexecFlags(u64) 64;
    /// Flags of a call that has none so far (must be zero).
    NoFlags(u32) 32;
}
