//! The sentry's host calls: one table from which the filter is built and `lazaret exposure` prints.
//!
//! | confinement | how |
//! |---|---|
//! | user namespace | root: all ids as they are; ordinary user: the own id alone |
//! | mount namespace | empty read-only root |
//! | pid namespace | own; the sentry is its init, so that its end is the end of everything in it |
//! | network, IPC, UTS namespaces | new and empty |
//! | capabilities | none in the end; those of the own user namespace until guests' namespaces are made |
//! | system calls | allow-list ([`exposure`]); anything else ends the sentry with one line |
//! | lifetime | killed when the launcher ends |
//!
//! Nothing in the filter opens a path, makes a socket, starts a program, makes memory executable, or changes ids, mounts
//! or namespaces. It is installed on all threads before the guest runs its first instruction.

use confine::calls::{self, READ_WRITE};
use confine::rules::Cond::{self, Has, Is, OneOf, Within};
use confine::rules::{Answer, ENOSYS, Filter, Names, Otherwise, Rule};

/// CLONE_VM FS FILES SIGHAND THREAD SYSVSEM SETTLS PARENT_SETTID CHILD_CLEARTID: what the C library's
/// pthread_create asks for.
const THREAD: Names = &[(0x003d_0f00, "a thread's flags")];

const IOCTLS: Names = &[
    (0xc050_2100, "SECCOMP_IOCTL_NOTIF_RECV"),
    (0xc018_2101, "SECCOMP_IOCTL_NOTIF_SEND"),
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

const FCNTLS: Names = &[
    (libc::F_DUPFD_CLOEXEC as u32, "F_DUPFD_CLOEXEC"),
    (libc::F_GETFL as u32, "F_GETFL"),
    (libc::F_ADD_SEALS as u32, "F_ADD_SEALS"),
    (libc::F_OFD_SETLK as u32, "F_OFD_SETLK"),
    (libc::F_OFD_GETLK as u32, "F_OFD_GETLK"),
];

const PRCTLS: Names =
    &[(libc::PR_SET_NAME as u32, "PR_SET_NAME"), (0x5356_4d41, "PR_SET_VMA"), (0x4155_5856, "PR_GET_AUXV")];

/// The faults whose handler the standard library takes back, so that the process ends by them; the thread library's own.
const SIGNALS: Names = &[
    (libc::SIGBUS as u32, "SIGBUS"),
    (libc::SIGSEGV as u32, "SIGSEGV"),
    (32, "SIGCANCEL"),
    (33, "SIGSETXID"),
];

const PTRACES: Names = &[
    (31, "SYSEMU"),
    (32, "SYSEMU_SINGLESTEP"),
    (libc::PTRACE_CONT, "CONT"),
    (libc::PTRACE_KILL, "KILL"),
    (libc::PTRACE_GETREGS, "GETREGS"),
    (libc::PTRACE_SETREGS, "SETREGS"),
    (libc::PTRACE_GETREGSET, "GETREGSET"),
    (libc::PTRACE_SETREGSET, "SETREGSET"),
    (libc::PTRACE_POKEUSER, "POKEUSER"),
    (libc::PTRACE_GETSIGINFO, "GETSIGINFO"),
    (libc::PTRACE_GETEVENTMSG, "GETEVENTMSG"),
    (libc::PTRACE_GET_SYSCALL_INFO, "GET_SYSCALL_INFO"),
];

/// Flags of descriptors that are made: close-on-exec, no waiting.
const FD_FLAGS: Names = &[(0x800, "NONBLOCK"), (0x8_0000, "CLOEXEC")];

const MEMFD_FLAGS: Names = &[(1, "MFD_CLOEXEC"), (2, "MFD_ALLOW_SEALING"), (8, "MFD_NOEXEC_SEAL")];

const SHARED: Names = &[(0x1, "MAP_SHARED")];
const SHARED_FORM: Names = &[(0x1, "MAP_SHARED"), (0x4000, "MAP_NORESERVE"), (0x8000, "MAP_POPULATE")];

const fn any(call: &'static str, nr: libc::c_long, reason: &'static str) -> Rule {
    Rule::new(call, nr, &[], reason)
}

const fn never(call: &'static str, nr: libc::c_long, reason: &'static str) -> Rule {
    Rule::new(call, nr, &[], reason).answered(Answer::Errno(ENOSYS))
}

const PTRACE_ONLY: &str = "with the ptrace platform only";

const fn ptrace(call: &'static str, nr: libc::c_long, when: &'static [Cond], reason: &'static str) -> Rule {
    Rule::new(call, nr, when, reason).only(PTRACE_ONLY)
}

/// What all sentries get beside [`calls::OWN`].
const RULES: &[Rule] = &[
    // Files that the gofer opened, standard streams, memory files, event descriptors.
    any("read", libc::SYS_read, "reads files, streams and event descriptors it holds"),
    any("write", libc::SYS_write, "writes files, streams and event descriptors it holds"),
    any("pread64", libc::SYS_pread64, "reads files at an offset"),
    any("pwrite64", libc::SYS_pwrite64, "writes files at an offset"),
    any("preadv2", libc::SYS_preadv2, "reads streams without waiting"),
    any("pwritev2", libc::SYS_pwritev2, "writes streams without waiting, and appends"),
    any("lseek", libc::SYS_lseek, "finds data and holes; keeps the position of inherited files"),
    any("fstat", libc::SYS_fstat, "attributes of files it holds"),
    any("fstatfs", libc::SYS_fstatfs, "file systems of files it holds"),
    any("ftruncate", libc::SYS_ftruncate, "sizes of files and memory files"),
    any("fallocate", libc::SYS_fallocate, "space and holes of files and memory files"),
    any("fsync", libc::SYS_fsync, "writes a file through to the disk"),
    any("fdatasync", libc::SYS_fdatasync, "writes a file's data through to the disk"),
    Rule::new(
        "memfd_create",
        libc::SYS_memfd_create,
        &[Within(1, MEMFD_FLAGS)],
        "contents of in-memory files and shared memory",
    ),
    Rule::new(
        "fcntl",
        libc::SYS_fcntl,
        &[OneOf(1, FCNTLS)],
        "duplicates, flags and seals of its descriptors; record locks on host files",
    ),
    any("flock", libc::SYS_flock, "locks on host files that are written through"),
    Rule::new(
        "ioctl",
        libc::SYS_ioctl,
        &[OneOf(1, IOCTLS)],
        "doorbells of guests; the terminal it was given",
    ),
    any("recvmsg", libc::SYS_recvmsg, "answers of the gofer; messages of the launcher; inherited sockets"),
    Rule::new(
        "sendto",
        libc::SYS_sendto,
        &[Is(4, 0)],
        "requests to the gofer; messages to the launcher; inherited sockets; no address can be given",
    ),
    any("recvfrom", libc::SYS_recvfrom, "messages of the launcher; inherited sockets"),
    // Waiting.
    any("ppoll", libc::SYS_ppoll, "readiness of streams"),
    Rule::new("epoll_create1", libc::SYS_epoll_create1, &[Within(0, FD_FLAGS)], "the reactor, the reaper"),
    any("epoll_ctl", libc::SYS_epoll_ctl, "the reactor, the reaper"),
    any("epoll_pwait", libc::SYS_epoll_pwait, "the reactor, the reaper"),
    Rule::new("eventfd2", libc::SYS_eventfd2, &[Within(1, FD_FLAGS)], "wakes its own threads"),
    Rule::new(
        "timerfd_create",
        libc::SYS_timerfd_create,
        &[OneOf(0, &[(0, "CLOCK_REALTIME"), (1, "CLOCK_MONOTONIC")]), Within(1, FD_FLAGS)],
        "deadlines",
    ),
    any("timerfd_settime", libc::SYS_timerfd_settime, "deadlines"),
    any("clock_gettime", libc::SYS_clock_gettime, "time, and CPU time of guests"),
    any("clock_getres", libc::SYS_clock_getres, "resolution of clocks"),
    any("clock_nanosleep", libc::SYS_clock_nanosleep, "the watchdog's pauses"),
    // Guest processes: all are its children, in its pid namespace.
    any("process_vm_readv", libc::SYS_process_vm_readv, "guest memory"),
    any("process_vm_writev", libc::SYS_process_vm_writev, "guest memory"),
    Rule::new(
        "pidfd_open",
        libc::SYS_pidfd_open,
        &[Within(1, &[(libc::O_EXCL as u32, "PIDFD_THREAD")])],
        "a guest process, safe from reuse of its pid",
    ),
    Rule::new(
        "pidfd_getfd",
        libc::SYS_pidfd_getfd,
        &[OneOf(2, &[(0, "0")])],
        "a guest task's doorbell, a new guest process",
    ),
    Rule::new(
        "pidfd_send_signal",
        libc::SYS_pidfd_send_signal,
        &[OneOf(1, &[(libc::SIGKILL as u32, "SIGKILL")])],
        "kills a guest process",
    ),
    Rule::new(
        "tgkill",
        libc::SYS_tgkill,
        &[OneOf(2, &[(libc::SIGURG as u32, "SIGURG")])],
        "interrupts a guest thread; it sees only its own pid namespace",
    ),
    Rule::new("waitid", libc::SYS_waitid, &[OneOf(0, &[(3, "P_PIDFD")])], "reaps guest processes"),
    any("sysinfo", libc::SYS_sysinfo, "memory size and uptime"),
    any(
        "sched_setaffinity",
        libc::SYS_sched_setaffinity,
        "keeps hand-overs on one processor; it sees only its own pid namespace",
    ),
    any("sched_getaffinity", libc::SYS_sched_getaffinity, "the processors; new threads"),
    any("getcpu", libc::SYS_getcpu, "picks a lane of the gofer"),
    // Its own threads and memory.
    Rule::new("clone", libc::SYS_clone, &[OneOf(0, THREAD)], "threads; no process and no namespace"),
    never(
        "openat",
        libc::SYS_openat,
        "the allocator looks for vm.overcommit_memory before it shrinks; there is no file",
    ),
    never("clone3", libc::SYS_clone3, "its flags lie in memory, where no filter sees them"),
    any("set_robust_list", libc::SYS_set_robust_list, "a thread's start"),
    any("rseq", libc::SYS_rseq, "a thread's start"),
    any("gettid", libc::SYS_gettid, "a thread's start"),
    any("getpid", libc::SYS_getpid, "its own end"),
    Rule::new(
        "rt_sigaction",
        libc::SYS_rt_sigaction,
        &[OneOf(0, SIGNALS)],
        "the thread library's own signals, at the first thread; the end by a fault",
    ),
    Rule::new(
        "prctl",
        libc::SYS_prctl,
        &[OneOf(0, PRCTLS)],
        "names its threads, and memory by a tunable; hardware capabilities",
    ),
    Rule::new(
        "mmap",
        libc::SYS_mmap,
        &[Within(2, READ_WRITE), Has(3, SHARED), Within(3, SHARED_FORM)],
        "areas shared with guest processes",
    ),
];

/// What sentries of the ptrace platform get too.
const PTRACE: &[Rule] = &[
    ptrace(
        "ptrace",
        libc::SYS_ptrace,
        &[OneOf(0, PTRACES)],
        "runs guests; it sees only its own pid namespace",
    ),
    ptrace("wait4", libc::SYS_wait4, &[], "waits for stops of guests"),
];

fn rules(with_ptrace: bool) -> Vec<Rule> {
    let ptrace = if with_ptrace { PTRACE } else { &[] };
    [RULES, ptrace, calls::OWN].concat()
}

/// The host calls that a sentry can make once guests run. Those that only the ptrace platform gets say so.
pub fn exposure() -> Vec<Rule> {
    rules(true)
}

/// Installs the filter on all threads of this process.
///
/// # Errors
/// What the host says.
pub fn install(ptrace: bool) -> Result<(), String> {
    // The first clock call looks for the vDSO by a prctl that guests' sentries need no more afterwards.
    let _ = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    confine::host::report_refused_calls().map_err(|e| e.to_string())?;
    confine::host::filter_all_threads(&assemble(ptrace)).map_err(|e| e.to_string())
}

fn assemble(ptrace: bool) -> Vec<confine::bpf::Insn> {
    let mut rules = rules(ptrace);
    rules.extend(calls::DEBUG);
    let filter = Filter { rules: &rules, inside: None, refused: Otherwise::Trap, unknown: Otherwise::Trap };
    filter.assemble(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_there_once_and_has_a_reason() {
        let rules = exposure();
        let mut forms: Vec<_> = rules.iter().map(|rule| (rule.nr, rule.arguments())).collect();
        forms.sort();
        forms.dedup();
        assert_eq!(forms.len(), rules.len());
        assert!(rules.iter().all(|rule| !rule.reason.is_empty()));
        assert!(assemble(false).len() < assemble(true).len());
    }

    #[test]
    fn nothing_opens_connects_or_executes() {
        for call in
            ["open", "openat", "openat2", "execve", "execveat", "socket", "connect", "bind", "mount", "setns"]
        {
            let never = |rule: &Rule| matches!(rule.answer, Answer::Errno(_));
            assert!(exposure().iter().all(|rule| rule.call != call || never(rule)), "{call}");
        }
    }
}
