//! The sentry's host calls: one table from which the filter is built and `lazaret exposure` prints.
//!
//! Anything that is not here ends the sentry. Nothing here opens a path, makes a socket, starts a program, makes
//! memory executable, or changes ids, mounts or namespaces. The filter is installed on all threads before the guest
//! runs its first instruction.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use std::collections::BTreeMap;

/// A host call that the sentry's filter admits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The call's name.
    pub call: &'static str,
    /// What its arguments must be; empty for any.
    pub args: String,
    /// Why the sentry needs it.
    pub reason: &'static str,
}

/// What an argument must be.
#[derive(Clone, Copy)]
enum Check {
    /// Any arguments.
    Any,
    /// The argument with this number has none of these bits.
    Without(u8, u32, &'static str),
    /// The argument has all of these bits.
    With(u8, u32, &'static str),
    /// The argument is one of these.
    OneOf(u8, &'static [(u32, &'static str)]),
    /// The argument is this, in all 64 bits.
    Zero(u8, &'static str),
    /// Answered with ENOSYS by a second filter, so that the C library takes an older call whose flags can be seen.
    NoSys,
}

/// Which sentries get a call.
#[derive(Clone, Copy, PartialEq)]
enum For {
    All,
    Ptrace,
}

use Check::{Any, NoSys, OneOf, With, Without, Zero};
use For::{All, Ptrace};

const NO_EXEC: Check = Without(2, libc::PROT_EXEC as u32, "prot without PROT_EXEC");
const EMPTY_PATH: u32 = libc::AT_EMPTY_PATH as u32;

/// CLONE_VM FS FILES SIGHAND THREAD SYSVSEM SETTLS PARENT_SETTID CHILD_CLEARTID: what the C library's
/// pthread_create asks for.
const THREAD: u32 = 0x003d_0f00;

const IOCTLS: &[(u32, &str)] = &[
    (0xc050_2100, "SECCOMP_IOCTL_NOTIF_RECV"),
    (0xc018_2101, "SECCOMP_IOCTL_NOTIF_SEND"),
    (0x4008_2102, "SECCOMP_IOCTL_NOTIF_ID_VALID"),
    (0x4018_2103, "SECCOMP_IOCTL_NOTIF_ADDFD"),
    (0x4008_2104, "SECCOMP_IOCTL_NOTIF_SET_FLAGS"),
    (0xc040_ff0b, "PIDFD_GET_INFO"),
    (0x5401, "TCGETS"),
    (0x5402, "TCSETS"),
    (0x5403, "TCSETSW"),
    (0x5404, "TCSETSF"),
    (0x5409, "TCSBRK"),
    (0x540a, "TCXONC"),
    (0x540b, "TCFLSH"),
    (0x5411, "TIOCOUTQ"),
    (0x5413, "TIOCGWINSZ"),
    (0x5414, "TIOCSWINSZ"),
    (0x541b, "FIONREAD"),
    (0x802c_542a, "TCGETS2"),
    (0x402c_542b, "TCSETS2"),
    (0x402c_542c, "TCSETSW2"),
    (0x402c_542d, "TCSETSF2"),
];

const FCNTLS: &[(u32, &str)] = &[
    (libc::F_DUPFD_CLOEXEC as u32, "F_DUPFD_CLOEXEC"),
    (libc::F_GETFD as u32, "F_GETFD"),
    (libc::F_SETFD as u32, "F_SETFD"),
    (libc::F_GETFL as u32, "F_GETFL"),
    (libc::F_ADD_SEALS as u32, "F_ADD_SEALS"),
    (libc::F_GET_SEALS as u32, "F_GET_SEALS"),
];

const PRCTLS: &[(u32, &str)] = &[
    (libc::PR_SET_NAME as u32, "PR_SET_NAME"),
    (0x5356_4d41, "PR_SET_VMA"),
    (0x4155_5856, "PR_GET_AUXV"),
    (libc::PR_GET_NAME as u32, "PR_GET_NAME"),
];

type Row = (&'static str, libc::c_long, Check, For, &'static str);

/// Every call that is admitted.
const RULES: &[Row] = &[
    // Files that the gofer opened, standard streams, memory files, event descriptors.
    ("read", libc::SYS_read, Any, All, "reads files, streams and event descriptors it holds"),
    ("write", libc::SYS_write, Any, All, "writes files, streams and event descriptors it holds"),
    ("readv", libc::SYS_readv, Any, All, "as read"),
    ("writev", libc::SYS_writev, Any, All, "as write"),
    ("pread64", libc::SYS_pread64, Any, All, "reads files at an offset"),
    ("pwrite64", libc::SYS_pwrite64, Any, All, "writes files at an offset"),
    ("preadv", libc::SYS_preadv, Any, All, "as pread64"),
    ("pwritev", libc::SYS_pwritev, Any, All, "as pwrite64"),
    ("preadv2", libc::SYS_preadv2, Any, All, "reads streams without waiting"),
    ("pwritev2", libc::SYS_pwritev2, Any, All, "writes streams without waiting, and appends"),
    ("lseek", libc::SYS_lseek, Any, All, "finds data and holes; keeps the position of inherited files"),
    ("close", libc::SYS_close, Any, All, "closes descriptors"),
    ("fstat", libc::SYS_fstat, Any, All, "attributes of files it holds"),
    (
        "newfstatat",
        libc::SYS_newfstatat,
        With(3, EMPTY_PATH, "flags with AT_EMPTY_PATH"),
        All,
        "attributes of files it holds; its root is empty",
    ),
    (
        "statx",
        libc::SYS_statx,
        With(2, EMPTY_PATH, "flags with AT_EMPTY_PATH"),
        All,
        "attributes of files it holds; its root is empty",
    ),
    ("fstatfs", libc::SYS_fstatfs, Any, All, "file systems of files it holds"),
    ("ftruncate", libc::SYS_ftruncate, Any, All, "sizes of files and memory files"),
    ("fallocate", libc::SYS_fallocate, Any, All, "space and holes of files and memory files"),
    ("fadvise64", libc::SYS_fadvise64, Any, All, "advice of guests on files"),
    ("fsync", libc::SYS_fsync, Any, All, "writes a file through to the disk"),
    ("fdatasync", libc::SYS_fdatasync, Any, All, "writes a file's data through to the disk"),
    ("sync_file_range", libc::SYS_sync_file_range, Any, All, "writes a part of a file through"),
    ("copy_file_range", libc::SYS_copy_file_range, Any, All, "copies between files it holds"),
    ("memfd_create", libc::SYS_memfd_create, Any, All, "contents of in-memory files and shared memory"),
    ("fcntl", libc::SYS_fcntl, OneOf(1, FCNTLS), All, "duplicates, flags and seals of its descriptors"),
    ("ioctl", libc::SYS_ioctl, OneOf(1, IOCTLS), All, "doorbells of guests; the terminal it was given"),
    (
        "recvmsg",
        libc::SYS_recvmsg,
        Any,
        All,
        "answers of the gofer; messages of the launcher; inherited sockets",
    ),
    ("sendmsg", libc::SYS_sendmsg, Any, All, "requests to the gofer; inherited sockets"),
    (
        "sendto",
        libc::SYS_sendto,
        Zero(4, "no address"),
        All,
        "requests to the gofer; messages to the launcher; inherited sockets",
    ),
    ("recvfrom", libc::SYS_recvfrom, Any, All, "messages of the launcher; inherited sockets"),
    ("shutdown", libc::SYS_shutdown, Any, All, "inherited sockets"),
    // Waiting.
    ("poll", libc::SYS_poll, Any, All, "readiness of streams"),
    ("ppoll", libc::SYS_ppoll, Any, All, "readiness of streams"),
    ("epoll_create1", libc::SYS_epoll_create1, Any, All, "the reactor"),
    ("epoll_ctl", libc::SYS_epoll_ctl, Any, All, "the reactor"),
    ("epoll_wait", libc::SYS_epoll_wait, Any, All, "the reactor"),
    ("epoll_pwait", libc::SYS_epoll_pwait, Any, All, "the reactor"),
    ("epoll_pwait2", libc::SYS_epoll_pwait2, Any, All, "the reactor"),
    ("eventfd2", libc::SYS_eventfd2, Any, All, "wakes its own threads"),
    ("timerfd_create", libc::SYS_timerfd_create, Any, All, "deadlines"),
    ("timerfd_settime", libc::SYS_timerfd_settime, Any, All, "deadlines"),
    ("futex", libc::SYS_futex, Any, All, "locks; guests' command words"),
    ("sched_yield", libc::SYS_sched_yield, Any, All, "locks"),
    ("clock_gettime", libc::SYS_clock_gettime, Any, All, "time, and CPU time of guests"),
    ("clock_getres", libc::SYS_clock_getres, Any, All, "resolution of clocks"),
    ("clock_nanosleep", libc::SYS_clock_nanosleep, Any, All, "the watchdog's pauses"),
    ("nanosleep", libc::SYS_nanosleep, Any, All, "the watchdog's pauses"),
    // Guest processes: all are its children, in its pid namespace.
    ("process_vm_readv", libc::SYS_process_vm_readv, Any, All, "guest memory"),
    ("process_vm_writev", libc::SYS_process_vm_writev, Any, All, "guest memory"),
    ("pidfd_open", libc::SYS_pidfd_open, Any, All, "a guest process, safe from reuse of its pid"),
    ("pidfd_getfd", libc::SYS_pidfd_getfd, Any, All, "a guest task's doorbell, a new guest process"),
    ("pidfd_send_signal", libc::SYS_pidfd_send_signal, Any, All, "kills a guest process"),
    ("tgkill", libc::SYS_tgkill, Any, All, "interrupts a guest thread; it sees only its own pid namespace"),
    ("waitid", libc::SYS_waitid, Any, All, "reaps guest processes"),
    ("wait4", libc::SYS_wait4, Any, All, "reaps guest processes"),
    ("ptrace", libc::SYS_ptrace, Any, Ptrace, "runs guests; it sees only its own pid namespace"),
    ("getrusage", libc::SYS_getrusage, Any, All, "CPU time of guests"),
    ("uname", libc::SYS_uname, Any, All, "the host's release, to name one like it"),
    ("sysinfo", libc::SYS_sysinfo, Any, All, "memory size and uptime"),
    ("sched_setaffinity", libc::SYS_sched_setaffinity, Any, All, "keeps hand-overs on one processor"),
    ("sched_getaffinity", libc::SYS_sched_getaffinity, Any, All, "the processors; new threads"),
    ("getcpu", libc::SYS_getcpu, Any, All, "picks a lane of the gofer"),
    // Its own threads and memory.
    (
        "clone",
        libc::SYS_clone,
        OneOf(0, &[(THREAD, "a thread's flags")]),
        All,
        "threads; no process and no namespace",
    ),
    (
        "openat",
        libc::SYS_openat,
        NoSys,
        All,
        "the allocator looks for vm.overcommit_memory before it shrinks; there is no file",
    ),
    ("clone3", libc::SYS_clone3, NoSys, All, "its flags lie in memory, where no filter sees them"),
    ("set_robust_list", libc::SYS_set_robust_list, Any, All, "a thread's start"),
    ("rseq", libc::SYS_rseq, Any, All, "a thread's start"),
    ("gettid", libc::SYS_gettid, Any, All, "a thread's start"),
    ("getpid", libc::SYS_getpid, Any, All, "its own end"),
    ("prctl", libc::SYS_prctl, OneOf(0, PRCTLS), All, "names its threads and memory"),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask, Any, All, "start and end of a thread"),
    ("rt_sigaction", libc::SYS_rt_sigaction, Any, All, "the end of the process"),
    ("rt_sigreturn", libc::SYS_rt_sigreturn, Any, All, "return from a signal, should one come"),
    ("restart_syscall", libc::SYS_restart_syscall, Any, All, "goes on with a call after a stop"),
    ("sigaltstack", libc::SYS_sigaltstack, Any, All, "start and end of a thread"),
    ("mmap", libc::SYS_mmap, NO_EXEC, All, "memory of the allocator, stacks, shared areas"),
    ("mprotect", libc::SYS_mprotect, NO_EXEC, All, "memory of the allocator, stacks"),
    ("munmap", libc::SYS_munmap, Any, All, "memory of the allocator, stacks, shared areas"),
    ("mremap", libc::SYS_mremap, Any, All, "memory of the allocator"),
    ("madvise", libc::SYS_madvise, Any, All, "memory of the allocator, stacks"),
    ("brk", libc::SYS_brk, Any, All, "memory of the allocator"),
    ("getrandom", libc::SYS_getrandom, Any, All, "random bytes for guests; seeds of hash tables"),
    ("exit", libc::SYS_exit, Any, All, "the end of a thread"),
    ("exit_group", libc::SYS_exit_group, Any, All, "the end"),
];

/// The host calls that a sentry can make once guests run. Those that only the ptrace platform gets say so.
pub fn exposure() -> Vec<Rule> {
    RULES
        .iter()
        .map(|(call, _, check, whom, reason)| Rule { call, args: describe(*check, *whom), reason })
        .collect()
}

fn describe(check: Check, whom: For) -> String {
    let args = match check {
        Any => String::new(),
        Without(_, _, text) | With(_, _, text) | Zero(_, text) => text.to_owned(),
        OneOf(arg, values) => {
            format!("arg{arg} one of {}", values.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(" "))
        }
        NoSys => "never: ENOSYS".to_owned(),
    };
    match (whom, args.as_str()) {
        (All, _) => args,
        (Ptrace, _) => format!("{args}with the ptrace platform only"),
    }
}

/// Installs the filter on all threads of this process.
///
/// # Errors
/// What the host says.
pub fn install(ptrace: bool) -> Result<(), String> {
    // The first clock call looks for the vDSO by a prctl that guests' sentries need no more afterwards.
    let _ = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    super::host::report_refused_calls().map_err(|e| e.to_string())?;
    seccompiler::apply_filter_all_threads(&refuse_unseen()?).map_err(|e| e.to_string())?;
    seccompiler::apply_filter_all_threads(&compile(ptrace)?).map_err(|e| e.to_string())
}

/// ENOSYS for what the first filter admits only to be answered so.
fn refuse_unseen() -> Result<BpfProgram, String> {
    let rules = RULES.iter().filter(|row| matches!(row.2, NoSys)).map(|row| (row.1, Vec::new())).collect();
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
        TargetArch::x86_64,
    );
    filter.and_then(TryInto::try_into).map_err(|e| e.to_string())
}

fn compile(ptrace: bool) -> Result<BpfProgram, String> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (_, number, check, whom, _) in RULES {
        if *whom == All || ptrace {
            rules.insert(*number, conditions(*check).map_err(|e| e.to_string())?);
        }
    }
    let filter = SeccompFilter::new(rules, SeccompAction::Trap, SeccompAction::Allow, TargetArch::x86_64);
    filter.and_then(TryInto::try_into).map_err(|e| e.to_string())
}

/// No rule at all admits any arguments.
fn conditions(check: Check) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let one = |arg, len, op, value| SeccompRule::new(vec![SeccompCondition::new(arg, len, op, value)?]);
    match check {
        Any | NoSys => Ok(Vec::new()),
        Without(arg, bits, _) => {
            Ok(vec![one(arg, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits.into()), 0)?])
        }
        With(arg, bits, _) => {
            Ok(vec![one(arg, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits.into()), bits.into())?])
        }
        Zero(arg, _) => Ok(vec![one(arg, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?]),
        OneOf(arg, values) => values
            .iter()
            .map(|(value, _)| one(arg, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, u64::from(*value)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_there_once_and_has_a_reason() {
        let mut numbers: Vec<_> = RULES.iter().map(|(_, number, ..)| number).collect();
        numbers.sort();
        numbers.dedup();
        assert_eq!(numbers.len(), RULES.len());
        assert!(exposure().iter().all(|rule| !rule.reason.is_empty()));
        assert!(compile(false).unwrap().len() < compile(true).unwrap().len());
    }

    #[test]
    fn nothing_opens_connects_or_executes() {
        for call in
            ["open", "openat", "openat2", "execve", "execveat", "socket", "connect", "bind", "mount", "setns"]
        {
            let never = |rule: &Rule| rule.args.starts_with("never");
            assert!(exposure().iter().all(|rule| rule.call != call || never(rule)), "{call}");
        }
    }
}
