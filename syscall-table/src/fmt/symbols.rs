//! Flags and codes by name.

use crate::abi::*;

/// The value of a constant, widened without sign.
pub(super) trait Value: Copy {
    fn bits(self) -> u64;
}

macro_rules! values {
    ($($int:ident $unsigned:ident;)*) => {$(
        impl Value for $int {
            fn bits(self) -> u64 {
                self as $unsigned as u64
            }
        }
    )*};
}

values! { u8 u8; u16 u16; u32 u32; u64 u64; usize u64; i32 u32; i64 u64; }

/// A word in which each name is a set of bits: `A|B`, what has no name in hexadecimal, nothing set as `0` or as
/// the list's name for 0. A name of several bits stands for them all.
pub(super) fn flags<T: Value>(value: u64, list: &[(&str, T)]) -> String {
    let zero = list.iter().find(|(_, bits)| bits.bits() == 0);
    if value == 0 {
        return zero.map_or_else(|| "0".to_owned(), |(name, _)| (*name).to_owned());
    }
    let mut rest = value;
    let mut found: Vec<usize> = Vec::new();
    for several in [true, false] {
        for (at, (_, bits)) in list.iter().enumerate() {
            let bits = bits.bits();
            if bits != 0 && (bits.count_ones() > 1) == several && rest & bits == bits {
                rest &= !bits;
                found.push(at);
            }
        }
    }
    found.sort_unstable();
    let mut parts: Vec<String> =
        found.iter().filter_map(|&at| list.get(at)).map(|(name, _)| (*name).to_owned()).collect();
    if rest != 0 {
        parts.push(format!("{rest:#x}"));
    }
    parts.join("|")
}

/// A code's name, if the list has it.
pub(super) fn code<T: Value>(value: u64, list: &[(&'static str, T)]) -> Option<&'static str> {
    list.iter().find(|(_, code)| code.bits() == value).map(|(name, _)| *name)
}

/// A code's name, or its number.
pub(super) fn code_or_number<T: Value>(value: u64, list: &[(&'static str, T)]) -> String {
    code(value, list).map_or_else(|| format!("{value:#x}"), str::to_owned)
}

/// Two words joined by `|`, a zero left out beside another.
fn join(first: String, second: String) -> String {
    match (first.as_str(), second.as_str()) {
        (_, "0") => first,
        ("0", _) => second,
        _ => format!("{first}|{second}"),
    }
}

/// A signal's name: `SIGHUP`, `SIGRT_3`, or its number.
pub(super) fn signal(number: i32) -> String {
    match code(number as u32 as u64, SIGNALS) {
        Some(name) => name.to_owned(),
        None if (SIGRTMIN..=SIGRTMAX).contains(&number) => format!("SIGRT_{}", number - SIGRTMIN),
        None => number.to_string(),
    }
}

/// Flags of open(2).
pub(super) fn open(value: u64) -> String {
    let access =
        ["O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"].get((value & 3) as usize).copied().unwrap_or("");
    let list: Vec<(&str, i32)> =
        OPEN_FLAGS.iter().copied().filter(|(name, bits)| bits & 3 == 0 && *name != "O_ACCMODE").collect();
    join(access.to_owned(), flags(value & !3, &list))
}

/// Flags of mmap(2).
fn mmap(value: u64) -> String {
    let kind = value & MAP_TYPE as u64;
    let name = code_or_number(kind, MAP_TYPES);
    let huge = value >> MAP_HUGE_SHIFT & 0x3f;
    let rest = value & !(MAP_TYPE as u64) & !(0x3f << MAP_HUGE_SHIFT);
    let mut text = join(name, flags(rest, MAP_FLAGS));
    if huge != 0 {
        text += &format!("|{huge}<<MAP_HUGE_SHIFT");
    }
    text
}

/// Flags of clone(2), and the exit signal when `with_signal`.
pub(super) fn clone(value: u64, with_signal: bool) -> String {
    let mask = if with_signal { CSIGNAL } else { 0 };
    let list: Vec<(&str, u64)> =
        CLONE_FLAGS.iter().copied().filter(|(_, bits)| *bits != CSIGNAL && bits & mask == 0).collect();
    let bits = flags(value & !mask, &list);
    match (value & mask) as i32 {
        0 => bits,
        exit_signal => join(bits, signal(exit_signal)),
    }
}

/// Operation of futex(2).
fn futex(value: u64) -> String {
    let bits = (FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME) as u64;
    join_always(code_or_number(value & !bits, FUTEX_OPS), flags(value & bits, FUTEX_FLAGS))
}

fn join_always(first: String, second: String) -> String {
    if second == "0" { first } else { format!("{first}|{second}") }
}

/// Number of an ioctl request, by name or by its parts.
fn ioctl(value: u64) -> String {
    let name = code(value, TTY_IOCTLS)
        .or_else(|| code(value, FILE_IOCTLS))
        .or_else(|| code(value, SOCKET_IOCTLS))
        .or_else(|| code(value, DEVICE_IOCTLS));
    if let Some(name) = name {
        return name.to_owned();
    }
    let direction = ["_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE"];
    let direction = direction.get((value >> 30 & 3) as usize).copied().unwrap_or("");
    format!("_IOC({direction}, {:#x}, {:#x}, {:#x})", value >> 8 & 0xff, value & 0xff, value >> 16 & 0x3fff)
}

/// Option of getsockopt(2) at a level.
pub(super) fn sockopt(level: u64, option: u64) -> String {
    match level as i32 {
        SOL_SOCKET => code_or_number(option, SOL_SOCKET_OPTIONS),
        SOL_TCP => code_or_number(option, TCP_OPTIONS),
        SOL_IP => code_or_number(option, IPV4_OPTIONS),
        SOL_IPV6 => code_or_number(option, IPV6_OPTIONS),
        SOL_UDP => code_or_number(option, UDP_OPTIONS),
        SOL_NETLINK => code_or_number(option, NETLINK_OPTIONS),
        _ => format!("{option:#x}"),
    }
}

/// Type of socket(2) with its flags.
fn socket_type(value: u64) -> String {
    join_always(code_or_number(value & 0xf, SOCKET_TYPES), flags(value & !0xf, SOCKET_FLAGS))
}

/// Flags with a number of their own beside them.
fn priority_or(value: u64, list: &[(&'static str, i32)], flag: i32) -> String {
    let (base, bit) = (value & !(flag as u64), value & flag as u64);
    join_always(code_or_number(base, list), if bit != 0 { flags(bit, list) } else { "0".to_owned() })
}

/// A flag or code argument by the name of its type in [`crate::args`]. `None`: not one that has names.
pub(super) fn by_type(type_name: &str, raw: u64) -> Option<String> {
    let low = raw as u32 as u64;
    Some(match type_name {
        "OpenFlags" => open(low),
        "AtFlags" => flags(low, AT_FLAGS),
        "MmapProt" => flags(low, PROT),
        "MmapFlags" => mmap(low),
        "MremapFlags" => flags(raw, MREMAP_FLAGS),
        "MsyncFlags" => flags(low, MSYNC_FLAGS),
        "Advice" => code_or_number(low, MADVICE),
        "MlockallFlags" => flags(low, MCL_FLAGS),
        "MlockFlags" => flags(low, MLOCK_FLAGS),
        "CloneFlags" => clone(raw, false),
        "NsType" => clone(low, false),
        "AccessMode" => flags(low, ACCESS_MODES),
        "Whence" => code_or_number(low, SEEK),
        "IoctlRequest" => ioctl(low),
        "FcntlCmd" => code_or_number(low, FCNTL_CMDS),
        "FlockOp" => flags(low, FLOCK_OPS),
        "FutexOp" => futex(low),
        "Futex2Flags" => flags(low, FUTEX2_FLAGS),
        "SigHow" => code_or_number(low, SIG_HOW),
        "WaitFlags" => flags(low, WAIT_FLAGS),
        "IdType" => code_or_number(low, ID_TYPES),
        "PrctlOption" => code_or_number(low, PRCTL_OPTIONS),
        "ArchPrctlOption" => code_or_number(low, ARCH_PRCTL_OPTIONS),
        "PtraceRequest" => code_or_number(raw, PTRACE_REQUESTS),
        "RlimitResource" => code_or_number(low, RLIMITS),
        "RusageWho" => code_or_number(low, RUSAGE_WHO),
        "PriorityWhich" => code_or_number(low, PRIORITY_WHICH),
        "ClockId" => code_or_number(low, CLOCKS),
        "TimerFlags" => flags(low, TIMER_FLAGS),
        "ItimerWhich" => code_or_number(low, ITIMERS),
        "TimerfdFlags" => flags(low, TFD_FLAGS),
        "EventfdFlags" => flags(low, EFD_FLAGS),
        "SignalfdFlags" => flags(low, SFD_FLAGS),
        "EpollFlags" => flags(low, EPOLL_FLAGS),
        "EpollOp" => code_or_number(low, EPOLL_OPS),
        "InotifyFlags" => flags(low, INOTIFY_FLAGS),
        "InotifyMask" => flags(low, INOTIFY_MASK),
        "FanotifyInitFlags" => flags(low, FANOTIFY_INIT_FLAGS),
        "FanotifyMarkFlags" => flags(low, FANOTIFY_MARK_FLAGS),
        "FanotifyMask" => flags(raw, FANOTIFY_MASK),
        "SocketFamily" => code_or_number(low, ADDRESS_FAMILIES),
        "SocketType" => socket_type(low),
        "SocketProtocol" => code_or_number(low, IP_PROTOCOLS),
        "MsgFlags" => flags(low, MSG_FLAGS),
        "ShutdownHow" => code_or_number(low, SHUTDOWN),
        "SockoptLevel" => code_or_number(low, SOCKOPT_LEVELS),
        "SockoptName" => format!("{low:#x}"),
        "MountFlags" => flags(raw, MOUNT_FLAGS),
        "UmountFlags" => flags(low, UMOUNT_FLAGS),
        "NewMountFlags" => flags(low, MOVE_MOUNT_FLAGS),
        "FsconfigCmd" => code_or_number(low, FSCONFIG_CMDS),
        "MemfdFlags" => flags(low, MFD_FLAGS),
        "GetrandomFlags" => flags(low, GRND_FLAGS),
        "RenameFlags" => flags(low, RENAME_FLAGS),
        "FallocateMode" => flags(low, FALLOC_FLAGS),
        "Fadvice" => code_or_number(low, FADVICE),
        "SyncFileRangeFlags" => flags(low, SYNC_FILE_RANGE_FLAGS),
        "SpliceFlags" => flags(low, SPLICE_FLAGS),
        "RwFlags" => flags(low, RWF_FLAGS),
        "StatxMask" => flags(low, STATX_MASK),
        "XattrFlags" => flags(low, XATTR_FLAGS),
        "SchedPolicy" => priority_or(low, SCHED_POLICIES, SCHED_RESET_ON_FORK),
        "SeccompOp" => code_or_number(low, SECCOMP_OPS),
        "SeccompFlags" => flags(low, SECCOMP_FILTER_FLAGS),
        "MembarrierCmd" => code_or_number(low, MEMBARRIER_CMDS),
        "CloseRangeFlags" => flags(low, CLOSE_RANGE_FLAGS),
        "PidfdFlags" => flags(low, PIDFD_FLAGS),
        "Mpol" => code_or_number(low, MPOL),
        "IpcFlags" => flags(low, IPC_FLAGS),
        "IpcCmd" => code_or_number(low, IPC_CMDS),
        "KeyctlOp" => code_or_number(low, KEYCTL_OPS),
        "RebootCmd" => code_or_number(low, REBOOT_CMDS),
        "SyslogAction" => code_or_number(low, SYSLOG_ACTIONS),
        "Persona" if low == 0xffff_ffff => "0xffffffff".to_owned(),
        "Persona" => flags(low, PERSONALITY),
        "IoprioWhich" => code_or_number(low, IOPRIO_WHO),
        "KcmpType" => code_or_number(low, KCMP_TYPES),
        "RseqFlags" => flags(low, RSEQ_FLAGS),
        "UserfaultfdFlags" => flags(low, OPEN_FLAGS),
        "PkeyRights" => flags(raw, PKEY_RIGHTS),
        "ModuleFlags" => flags(low, OPEN_FLAGS),
        "PerfFlags" | "KexecFlags" => format!("{raw:#x}"),
        "MpolMoveFlags" | "BpfCmd" | "LandlockFlags" | "IoUringEnterFlags" | "IoUringRegisterOp"
        | "SwapFlags" | "NoFlags" => format!("{low:#x}"),
        _ => return None,
    })
}
