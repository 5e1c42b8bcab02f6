//! ptrace(2) as the counter of host calls uses it. One operation each.

use std::io;

/// `PTRACE_O_*`.
pub(crate) type Options = i32;

/// Stops of system calls, and tracing of new threads.
pub(crate) const THREADS: Options =
    libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE;
/// New processes too.
pub(crate) const ALL: Options = THREADS | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;

/// Why a tracee reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It is gone.
    Ended,
    /// It enters or leaves a call.
    Call,
    /// It made a thread or process; whether by fork or vfork.
    Made(bool),
    /// It is stopped as a whole.
    Group,
    /// It is new, or goes on after a stop.
    Other,
    /// It is to receive a signal.
    Signal(i32),
}

/// What is known at a [`Stop::Call`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// It enters the call with this number.
    Enter(u64),
    /// It leaves a call with this value.
    Leave(i64),
}

fn done(ret: libc::c_long) -> io::Result<libc::c_long> {
    if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(ret) }
}

/// Makes a process without threads a tracee.
pub(crate) fn seize(pid: i32, options: Options) -> io::Result<()> {
    // SAFETY: no pointers.
    done(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0usize, options as usize) })?;
    interrupt(pid);
    Ok(())
}

/// Makes a tracee report.
pub(crate) fn interrupt(tid: i32) {
    // SAFETY: no pointers. A tracee that is gone reports its end.
    unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0usize, 0usize) };
}

/// Ends the tracing of a stopped tracee, which goes on, with a signal if it is not 0.
pub(crate) fn let_go(tid: i32, signal: i32) {
    // SAFETY: no pointers.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, tid, 0usize, signal as usize) };
}

/// Changes what is traced of a stopped tracee's children.
pub(crate) fn set_options(tid: i32, options: Options) {
    // SAFETY: no pointers. A tracee that is gone needs none.
    unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, tid, 0usize, options as usize) };
}

/// Lets a tracee go on to the next call, with a signal if it is not 0.
pub(crate) fn go_on(tid: i32, signal: i32) {
    // SAFETY: no pointers. A tracee that is gone reports its end.
    unsafe { libc::ptrace(libc::PTRACE_SYSCALL, tid, 0usize, signal as usize) };
}

/// Leaves a tracee stopped until it is continued.
pub(crate) fn listen(tid: i32) {
    // SAFETY: no pointers.
    unsafe { libc::ptrace(libc::PTRACE_LISTEN, tid, 0usize, 0usize) };
}

/// The next report of any tracee; none when there are no more.
pub(crate) fn wait() -> Option<(i32, Stop)> {
    let mut status = 0;
    let tid = loop {
        // SAFETY: the status is written to a local.
        let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
        if tid > 0 {
            break tid;
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    };
    if !libc::WIFSTOPPED(status) {
        return Some((tid, Stop::Ended));
    }
    let signal = libc::WSTOPSIG(status);
    let stop = match (status >> 16, signal) {
        (0, s) if s == libc::SIGTRAP | 0x80 => Stop::Call,
        (0, s) => Stop::Signal(s),
        (libc::PTRACE_EVENT_CLONE, _) => Stop::Made(false),
        (libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK, _) => Stop::Made(true),
        (libc::PTRACE_EVENT_STOP, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => {
            Stop::Group
        }
        _ => Stop::Other,
    };
    Some((tid, stop))
}

/// The thread or process that a [`Stop::Made`] is about.
pub(crate) fn made(tid: i32) -> Option<i32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes an unsigned long.
    let ret = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0usize, &raw mut message) };
    if ret < 0 { None } else { i32::try_from(message).ok() }
}

/// The call of a [`Stop::Call`].
pub(crate) fn call(tid: i32) -> Option<Call> {
    // `struct ptrace_syscall_info` (linux/ptrace.h): the kind, then at byte 24 the number or the value.
    let mut info = [0u64; 11];
    let size = size_of_val(&info);
    // SAFETY: the kernel writes at most `size` bytes.
    let got = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, tid, size, info.as_mut_ptr()) };
    match (got > 24, info[0] & 0xff, info[3]) {
        (true, 1, number) => Some(Call::Enter(number)),
        (true, 2, value) => Some(Call::Leave(value.cast_signed())),
        _ => None,
    }
}

/// Whether the signal that a tracee is to receive comes from a filter of host calls.
pub(crate) fn by_filter(tid: i32) -> bool {
    const SYS_SECCOMP: i32 = 1;
    // SAFETY: an all-zero siginfo_t is valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes a siginfo_t.
    let ret = unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, 0usize, &raw mut info) };
    ret == 0 && info.si_signo == libc::SIGSYS && info.si_code == SYS_SECCOMP
}

/// Forks. One thread only. The child's pid, or none in the child.
pub(crate) fn fork() -> io::Result<Option<i32>> {
    // SAFETY: this process has one thread, so that no lock is held by another.
    let pid = unsafe { libc::fork() };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok((pid != 0).then_some(pid)) }
}

/// Allows that process to trace this one, where the Yama module asks for it.
pub(crate) fn allow_tracer(pid: i32) {
    // SAFETY: no pointers. Without the module the option is not known, nor needed.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(pid.cast_unsigned()), 0, 0, 0) };
}
