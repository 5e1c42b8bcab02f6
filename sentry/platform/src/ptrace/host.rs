//! ptrace(2) and waitpid(2), one operation each. All of them must come from the tracer's thread.

use crate::{Abi, Regs, SyscallRequest};
use std::io;

/// Why a tracee stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// At a system call.
    Syscall,
    /// About to receive a signal.
    Signal(i32),
    /// It has made a process or a thread.
    Clone,
    /// Anything else (a new tracee's first stop, an interrupt).
    Other,
    /// It is dead and reaped: the signal that killed it, 0 if it exited.
    Dead(i32),
}

/// How a tracee goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Until it wants a system call, which the host does not see.
    Emulate,
    /// The same, for one instruction at most.
    EmulateStep,
    /// With system calls carried out.
    Native,
}

/// `siginfo_t` as far as it is used.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct SigInfo {
    /// Signal.
    pub signo: i32,
    errno: i32,
    /// Code.
    pub code: i32,
    pad: i32,
    /// Faulting address; of a SIGSYS the call's.
    pub addr: u64,
    /// SIGSYS: the call.
    pub nr: i32,
    /// SIGSYS: its architecture.
    pub arch: u32,
    rest: [u64; 12],
}

/// `struct ptrace_syscall_info` at entry.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct SyscallInfo {
    op: u8,
    pad: [u8; 3],
    arch: u32,
    ip: u64,
    sp: u64,
    nr: u64,
    args: [u64; 6],
    rest: u64,
}

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const X32_BIT: u32 = 0x4000_0000;
const NT_X86_XSTATE: usize = 0x202;
const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
const SET_SIGMASK: libc::c_uint = 0x420b;
const SYSEMU: libc::c_uint = 31;
const SYSEMU_SINGLESTEP: libc::c_uint = 32;
const ORIG_RAX: usize = 15 * 8;
const RAX: usize = 10 * 8;
/// More than any extended state.
const XSTATE_MAX: usize = 0x8000;

fn done(ret: libc::c_long) -> io::Result<()> {
    if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Attaches; the tracee and all it makes die with the tracer.
pub fn seize(tid: i32) -> io::Result<()> {
    let options = libc::PTRACE_O_EXITKILL
        | libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK;
    // SAFETY: no pointers.
    done(unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, 0usize, options as usize) })
}

/// Stops a seized tracee.
pub fn interrupt(tid: i32) -> io::Result<()> {
    // SAFETY: no pointers.
    done(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0usize, 0usize) })
}

/// Lets it go on; a signal it was about to receive is dropped.
pub fn resume(tid: i32, mode: Mode) -> io::Result<()> {
    let request = match mode {
        Mode::Emulate => SYSEMU,
        Mode::EmulateStep => SYSEMU_SINGLESTEP,
        Mode::Native => libc::PTRACE_CONT,
    };
    // SAFETY: no pointers.
    done(unsafe { libc::ptrace(request, tid, 0usize, 0usize) })
}

/// Unblocks all signals.
pub fn clear_mask(tid: i32) -> io::Result<()> {
    let mask = 0u64;
    // SAFETY: the kernel reads eight bytes.
    done(unsafe { libc::ptrace(SET_SIGMASK, tid, 8usize, &raw const mask) })
}

/// General registers.
pub fn regs(tid: i32) -> io::Result<Regs> {
    let mut regs = Regs::default();
    // SAFETY: Regs has the layout of user_regs_struct.
    done(unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, 0usize, &raw mut regs) })?;
    Ok(regs)
}

/// Sets general registers; what no user program can have is replaced. No call is restarted.
pub fn set_regs(tid: i32, regs: &Regs) -> io::Result<()> {
    let selector = |value: u64| if value <= 0xffff && value & 3 == 3 { value } else { 0 };
    let base = |value: u64| if value < lazaret_shim::layout::TASK_END { value } else { 0 };
    let regs = Regs {
        orig_rax: u64::MAX,
        cs: if regs.cs == 0x23 { 0x23 } else { 0x33 },
        ss: 0x2b,
        ds: selector(regs.ds),
        es: selector(regs.es),
        fs: selector(regs.fs),
        gs: selector(regs.gs),
        fs_base: base(regs.fs_base),
        gs_base: base(regs.gs_base),
        ..*regs
    };
    // SAFETY: Regs has the layout of user_regs_struct.
    done(unsafe { libc::ptrace(libc::PTRACE_SETREGS, tid, 0usize, &raw const regs) })
}

/// Sets rax alone.
pub fn set_rax(tid: i32, value: i64) -> io::Result<()> {
    // SAFETY: no pointers: offset and value.
    done(unsafe { libc::ptrace(libc::PTRACE_POKEUSER, tid, RAX, value) })?;
    // The host must not take the value for its own wish to restart the call.
    if (-530..=-512).contains(&value) {
        // SAFETY: no pointers: offset and value.
        done(unsafe { libc::ptrace(libc::PTRACE_POKEUSER, tid, ORIG_RAX, -1i64) })?;
    }
    Ok(())
}

/// The call that a tracee stopped at.
pub fn syscall(tid: i32) -> io::Result<SyscallRequest> {
    let mut info = SyscallInfo::default();
    // SAFETY: the kernel fills in at most the size given.
    done(unsafe { libc::ptrace(GET_SYSCALL_INFO, tid, size_of::<SyscallInfo>(), &raw mut info) })?;
    Ok(request(info.arch, (info.nr & 0xffff_ffff) as u32, info.args))
}

/// A call by its architecture and number.
pub fn request(arch: u32, nr: u32, args: [u64; 6]) -> SyscallRequest {
    if arch != AUDIT_ARCH_X86_64 {
        return SyscallRequest { abi: Abi::I386, nr, args: args.map(|arg| arg & 0xffff_ffff) };
    }
    // A negative number is no x32 call but a number that nobody has.
    if nr & X32_BIT != 0 && nr & 0x8000_0000 == 0 {
        return SyscallRequest { abi: Abi::X32, nr: nr & !X32_BIT, args };
    }
    SyscallRequest { abi: Abi::X86_64, nr, args }
}

/// The signal that a tracee is about to receive.
pub fn siginfo(tid: i32) -> io::Result<SigInfo> {
    let mut info = SigInfo::default();
    // SAFETY: SigInfo has the size of siginfo_t.
    done(unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, 0usize, &raw mut info) })?;
    Ok(info)
}

/// The thread just made.
pub fn new_tid(tid: i32) -> io::Result<i32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel fills in one word.
    done(unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0usize, &raw mut message) })?;
    Ok(message as i32)
}

/// Extended state, in the standard format of XSAVE.
pub fn xstate(tid: i32) -> io::Result<Vec<u8>> {
    let mut data = vec![0u8; XSTATE_MAX];
    let mut iov = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
    // SAFETY: the vector outlives the call.
    done(unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, &raw mut iov) })?;
    data.truncate(iov.iov_len);
    Ok(data)
}

/// Sets the extended state.
pub fn set_xstate(tid: i32, data: &[u8]) -> io::Result<()> {
    let mut iov = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    // SAFETY: the kernel only reads the slice.
    done(unsafe { libc::ptrace(libc::PTRACE_SETREGSET, tid, NT_X86_XSTATE, &raw mut iov) })
}

/// Waits for a tracee of this thread (any: -1). `None`: none has anything to say and `block` is not set.
///
/// # Errors
/// ECHILD: there is none.
pub fn wait(tid: i32, block: bool) -> io::Result<Option<(i32, Stop)>> {
    Ok(wait_usage(tid, block)?.map(|(tid, stop, _)| (tid, stop)))
}

/// As [`wait`], with what the tracee has used: a dead process's first thread tells it for the whole process.
///
/// # Errors
/// ECHILD: there is none.
pub fn wait_usage(tid: i32, block: bool) -> io::Result<Option<(i32, Stop, crate::Rusage)>> {
    let flags = libc::__WALL | libc::__WNOTHREAD | if block { 0 } else { libc::WNOHANG };
    loop {
        let mut status = 0;
        // SAFETY: an all-zero rusage is valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills in one word and a rusage.
        let got = unsafe { libc::wait4(tid, &raw mut status, flags, &raw mut usage) };
        if got == 0 {
            return Ok(None);
        }
        if got > 0 {
            return Ok(Some((got, decode(status), crate::cputime::from_host(&usage))));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINTR) {
            return Err(error);
        }
    }
}

fn decode(status: i32) -> Stop {
    if libc::WIFSIGNALED(status) {
        return Stop::Dead(libc::WTERMSIG(status));
    }
    if !libc::WIFSTOPPED(status) {
        return Stop::Dead(0);
    }
    match (status >> 16, libc::WSTOPSIG(status)) {
        (0, signo) if signo == libc::SIGTRAP | 0x80 => Stop::Syscall,
        (0, signo) => Stop::Signal(signo),
        (libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK, _) => Stop::Clone,
        _ => Stop::Other,
    }
}

/// Kills the process of a tracee; its death is reported as any other.
pub fn kill(tid: i32) {
    // SAFETY: no pointers.
    unsafe { libc::ptrace(libc::PTRACE_KILL, tid, 0usize, 0usize) };
}

/// The caller's thread id.
pub fn gettid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}
