//! Arguments whose meaning depends on others of the same call.

use super::symbols::{by_type, clone, code_or_number, open, sockopt};
use super::text::{buffer, int, pointer, string};
use super::{Call, structs};
use crate::abi::*;

/// What became of an argument.
pub(super) enum Shown {
    /// It has no form of its own here.
    Generic,
    /// This is it.
    As(String),
    /// It and all that follow are not part of the call.
    End,
}

use Shown::{As, End, Generic};

/// The argument at `at`, if this call gives it a meaning that its type does not tell.
pub(super) fn argument(call: &Call<'_>, at: usize) -> Shown {
    match (call.row.name, at) {
        ("open", 2) if !creates(call.arg(1)) => End,
        ("openat", 3) if !creates(call.arg(2)) => End,
        ("mq_open", 2) if call.arg(1) & O_CREAT as u64 == 0 => End,
        ("openat2", 2) => {
            As(call.bytes(at, 24).and_then(|b| structs::open_how(&b)).unwrap_or_else(|| call.hex(at)))
        }
        ("clone3", 0) => {
            let len = call.arg(1).min(88) as usize;
            As(call.bytes(at, len).and_then(|b| structs::clone_args(&b)).unwrap_or_else(|| call.hex(at)))
        }
        ("clone", 0) => As(clone(call.arg(0), true)),
        ("clone", 2) if call.arg(0) & (CLONE_PARENT_SETTID | CLONE_PIDFD) == 0 => As(call.hex(at)),
        ("unlinkat", 2) => As(at_flags(call.arg(at), AT_REMOVEDIR, "AT_REMOVEDIR")),
        ("faccessat2", 3) => As(at_flags(call.arg(at), AT_EACCESS, "AT_EACCESS")),
        ("name_to_handle_at", 4) => As(at_flags(call.arg(at), AT_HANDLE_FID, "AT_HANDLE_FID")),
        ("mknod", 1) | ("mknodat", 2) => As(structs::mode(call.arg(at) as u16 as u32)),
        ("socket" | "socketpair", 2) if call.arg(0) as i32 == AF_NETLINK => {
            As(code_or_number(low(call.arg(2)), NETLINK_PROTOCOLS))
        }
        ("socket" | "socketpair", 2) if !matches!(call.arg(0) as i32, AF_INET | AF_INET6) => {
            As(low(call.arg(2)).to_string())
        }
        ("accept4", 3) => As(super::symbols::flags(low(call.arg(3)), SOCKET_FLAGS)),
        ("getsockopt" | "setsockopt", 2) => As(sockopt(low(call.arg(1)), low(call.arg(2)))),
        ("setsockopt", 3) => socket_value(call, 3, call.arg(4)),
        ("getsockopt", 3) if call.succeeded() => {
            socket_value(call, 3, call.int_at(call.arg(4)).unwrap_or(0) as u32 as u64)
        }
        ("prctl", 1..) => prctl(call, at),
        ("fcntl", 2) => fcntl(call),
        ("ioctl", 2) => ioctl(call),
        ("futex", 3..) => futex(call, at),
        ("fsmount", 1..) | ("fsopen", 1) | ("fspick", 2) => As(format!("{:#x}", low(call.arg(at)))),
        ("open_tree" | "open_tree_attr", 2) => As(super::symbols::flags(low(call.arg(at)), OPEN_TREE_FLAGS)),
        ("pidfd_send_signal", 3) => As(super::symbols::flags(low(call.arg(at)), PIDFD_SIGNAL_FLAGS)),
        ("timerfd_settime", 1) => As(super::symbols::flags(low(call.arg(at)), TFD_SETTIME)),
        ("shmctl", 1) => As(any_code(low(call.arg(at)), IPC_CMDS, SHM_CMDS)),
        ("semctl", 2) => As(any_code(low(call.arg(at)), IPC_CMDS, SEM_CMDS)),
        ("msgctl", 1) => As(any_code(low(call.arg(at)), IPC_CMDS, MSG_CMDS)),
        ("shmat", 2) => As(super::symbols::flags(low(call.arg(at)), SHM_FLAGS)),
        ("shmget" | "semget", 2) | ("msgget", 1) => {
            let (mode, bits) = (call.arg(at) & 0o777, low(call.arg(at)) & !0o777);
            let bits = super::symbols::flags(bits, IPC_FLAGS);
            As(if bits == "0" { format!("{mode:#o}") } else { format!("{bits}|{mode:#o}") })
        }
        ("uname" | "execve" | "execveat", _) => Generic,
        ("getdents64", 1) if call.succeeded() => As(entries(call)),
        ("sched_getattr" | "statmount" | "file_getattr" | "getdents" | "listmount", 1..=2)
            if call.row.args.get(at).is_some_and(|arg| arg.type_name.starts_with("Out")) =>
        {
            As(call.hex(at))
        }
        _ => Generic,
    }
}

fn low(raw: u64) -> u64 {
    raw as u32 as u64
}

fn creates(flags: u64) -> bool {
    flags & O_CREAT as u64 != 0 || flags & O_TMPFILE as u64 == O_TMPFILE as u64
}

/// AT_ flags of a call where one of them has a second meaning.
fn at_flags(raw: u64, own: i32, name: &'static str) -> String {
    let mut list = vec![(name, own)];
    list.extend(AT_FLAGS.iter().copied().filter(|(_, bits)| *bits != own));
    super::symbols::flags(low(raw), &list)
}

fn any_code(value: u64, first: &[(&'static str, i32)], second: &[(&'static str, i32)]) -> String {
    super::symbols::code(value, first).map_or_else(|| code_or_number(value, second), str::to_owned)
}

fn socket_value(call: &Call<'_>, at: usize, len: u64) -> Shown {
    let addr = call.arg(at);
    if addr == 0 {
        return As("NULL".to_owned());
    }
    match len {
        4 => As(int(call.read, addr).map_or_else(|| pointer(addr), |value| format!("[{value}]"))),
        _ => As(buffer(call.read, addr, len)),
    }
}

/// The records that getdents64(2) returned, counted.
fn entries(call: &Call<'_>) -> String {
    let len = call.result.unwrap_or(0).clamp(0, 1 << 20) as usize;
    let Some(bytes) = call.bytes(1, len) else { return call.hex(1) };
    let (mut count, mut at) = (0, 0);
    while let Some(&[low, high]) = bytes.get(at + 16..at + 18) {
        match u16::from_le_bytes([low, high]) as usize {
            0 => break,
            step => {
                at += step;
                count += 1;
            }
        }
    }
    format!("{} /* {count} entries */", call.hex(1))
}

fn prctl(call: &Call<'_>, at: usize) -> Shown {
    let used = match call.arg(0) as i32 {
        PR_GET_NAME | PR_SET_NAME => 2,
        PR_GET_DUMPABLE | PR_GET_KEEPCAPS | PR_GET_TIMERSLACK | PR_GET_SECUREBITS | PR_GET_SECCOMP => 1,
        PR_SET_PDEATHSIG
        | PR_GET_PDEATHSIG
        | PR_SET_DUMPABLE
        | PR_SET_KEEPCAPS
        | PR_SET_TIMERSLACK
        | PR_CAPBSET_READ
        | PR_CAPBSET_DROP
        | PR_SET_SECUREBITS
        | PR_SET_CHILD_SUBREAPER
        | PR_GET_CHILD_SUBREAPER
        | PR_SET_PTRACER
        | PR_GET_TID_ADDRESS => 2,
        PR_SET_SECCOMP => 3,
        _ => 5,
    };
    if at >= used {
        return End;
    }
    match (call.arg(0) as i32, at) {
        (PR_SET_NAME, 1) => As(string(call.read, call.arg(1))),
        (PR_GET_NAME, 1) if call.succeeded() => As(string(call.read, call.arg(1))),
        (PR_SET_PDEATHSIG, 1) => As(super::symbols::signal(call.arg(1) as i32)),
        (PR_CAPBSET_READ | PR_CAPBSET_DROP, 1) => As(code_or_number(call.arg(1), CAPABILITIES)),
        (PR_CAP_AMBIENT, 1) => As(code_or_number(call.arg(1), PR_CAP_AMBIENT_ARGS)),
        (PR_CAP_AMBIENT, 2) => As(code_or_number(call.arg(2), CAPABILITIES)),
        (PR_SET_SECCOMP, 1) => As(code_or_number(call.arg(1), SECCOMP_MODES)),
        _ => As(small_or_hex(call.arg(at))),
    }
}

/// A word that may be a number or an address.
fn small_or_hex(value: u64) -> String {
    if value < 4096 { value.to_string() } else { format!("{value:#x}") }
}

fn fcntl(call: &Call<'_>) -> Shown {
    let value = call.arg(2);
    match call.arg(1) as i32 {
        F_GETFD | F_GETFL | F_GETOWN | F_GETSIG | F_GETLEASE | F_GETPIPE_SZ | F_GET_SEALS => End,
        F_DUPFD | F_DUPFD_CLOEXEC | F_DUPFD_QUERY | F_SETPIPE_SZ | F_SETOWN => As((value as i32).to_string()),
        F_SETFD => As(super::symbols::flags(low(value), FD_FLAGS)),
        F_SETFL => As(open(low(value))),
        F_SETSIG => As(super::symbols::signal(value as i32)),
        F_SETLEASE => As(code_or_number(low(value), LOCK_TYPES)),
        F_ADD_SEALS => As(super::symbols::flags(low(value), SEALS)),
        F_NOTIFY => As(super::symbols::flags(low(value), DN_FLAGS)),
        F_GETLK | F_SETLK | F_SETLKW | F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW => {
            As(call.one("Flock", value, 32))
        }
        _ => As(small_or_hex(value)),
    }
}

fn ioctl(call: &Call<'_>) -> Shown {
    let value = call.arg(2);
    let out = call.succeeded();
    match call.arg(1) as u32 {
        TCSETS | TCSETSW | TCSETSF => As(call.one("Termios", value, 36)),
        TCGETS if out => As(call.one("Termios", value, 36)),
        TIOCSWINSZ => As(call.one("Winsize", value, 8)),
        TIOCGWINSZ if out => As(call.one("Winsize", value, 8)),
        TIOCSPGRP | FIONBIO | FIOASYNC | TIOCSPTLCK => As(call.one("i32", value, 4)),
        TIOCGPGRP | TIOCGSID | FIONREAD | TIOCOUTQ | TIOCGPTN if out => As(call.one("i32", value, 4)),
        TIOCNOTTY | FIOCLEX | FIONCLEX | TIOCEXCL | TIOCNXCL => End,
        TCFLSH => As(code_or_number(value, TCFLUSH)),
        TIOCSCTTY | TCSBRK | TCXONC => As((value as i32).to_string()),
        _ => As(pointer(value)),
    }
}

/// Arguments 3, 4 and 5 of futex(2): timeout or second count, second word, third value.
fn futex(call: &Call<'_>, at: usize) -> Shown {
    let op = call.arg(1) as i32 & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    let timed =
        matches!(op, FUTEX_WAIT | FUTEX_LOCK_PI | FUTEX_LOCK_PI2 | FUTEX_WAIT_BITSET | FUTEX_WAIT_REQUEUE_PI);
    let two_words = matches!(
        op,
        FUTEX_REQUEUE | FUTEX_CMP_REQUEUE | FUTEX_WAKE_OP | FUTEX_CMP_REQUEUE_PI | FUTEX_WAIT_REQUEUE_PI
    );
    let third = matches!(
        op,
        FUTEX_WAIT_BITSET | FUTEX_WAKE_BITSET | FUTEX_CMP_REQUEUE | FUTEX_CMP_REQUEUE_PI | FUTEX_WAKE_OP
    );
    if !two_words && !third && (at > 3 || !timed) {
        return End;
    }
    match at {
        3 if timed => As(call.one("Timespec", call.arg(3), 16)),
        3 => As(low(call.arg(3)).to_string()),
        4 => As(pointer(call.arg(4))),
        5 if !third => End,
        _ if matches!(op, FUTEX_WAIT_BITSET | FUTEX_WAKE_BITSET) && low(call.arg(5)) == 0xffff_ffff => {
            As("FUTEX_BITSET_MATCH_ANY".to_owned())
        }
        _ => As(format!("{:#x}", low(call.arg(5)))),
    }
}

/// What follows a successful result in brackets.
pub(super) fn result_note(call: &Call<'_>, result: i64) -> Option<String> {
    match call.row.name {
        "fcntl" if call.arg(1) as i32 == F_GETFL => Some(format!("flags {}", open(result as u64))),
        "fcntl" if call.arg(1) as i32 == F_GETFD && result == 1 => Some("flags FD_CLOEXEC".to_owned()),
        "poll" | "ppoll" | "select" | "pselect6" if result == 0 => Some("Timeout".to_owned()),
        "personality" => by_type("Persona", result as u64),
        _ => None,
    }
}
