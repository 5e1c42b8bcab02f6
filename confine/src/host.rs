//! Host calls of a sandbox's start that no safe wrapper offers: the crate's only unsafe code. One operation each.

use crate::bpf::Insn;
use crate::enter::Kin;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

fn check(ret: i64) -> io::Result<i64> {
    if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(ret) }
}

/// Forks into new user, mount, pid, network, IPC and UTS namespaces. Gives the child's pid, or `None` in the child.
///
/// This process must have one thread only: the child has no other, and locks that another holds stay held.
pub(crate) fn fork_confined(kin: Kin) -> io::Result<Option<i32>> {
    let namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    let flags = namespaces
        | match kin {
            Kin::Child => libc::SIGCHLD,
            Kin::Sibling => libc::CLONE_PARENT,
        };
    // SAFETY: without CLONE_VM and with a null stack this is fork(2): the child goes on with a copy of this stack,
    // and nothing is written to memory (no *_SETTID flag).
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(flags), 0, 0, 0, 0) })?;
    Ok(i32::try_from(pid).ok().filter(|pid| *pid != 0))
}

/// Installs a filter on all threads of this process, which has no_new_privs set.
///
/// # Errors
/// What the host says; EBUSY if a thread has a filter that this one does not follow.
pub fn filter_all_threads(program: &[Insn]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut().cast() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
    // SAFETY: the kernel reads `len` instructions of `struct sock_filter`, which is what Insn is.
    let done = check(unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) })?;
    if done == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EBUSY)) }
}

/// Closes every descriptor above 2 but `keep`. For a process's start, before anything owns others.
pub fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<u32> =
        keep.iter().filter_map(|fd| u32::try_from(*fd).ok()).filter(|fd| *fd > 2).collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if fd > first {
            // SAFETY: the call touches no memory; the caller says that nobody owns the descriptors.
            unsafe { libc::close_range(first, fd - 1, 0) };
        }
        first = fd.saturating_add(1);
    }
}

/// Takes over a descriptor that this process inherited.
///
/// # Errors
/// `EBADF` when there is none. Nothing else of the process may own it.
pub fn inherited(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers and touches no memory.
    if fd < 0 || unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it is open, and the caller says that nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Ends the process without running anything more of it.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: the call does not return and touches no memory.
    unsafe { libc::_exit(status) }
}

/// Blocks these signals in this thread and those it makes, and gives a descriptor that reads them.
pub fn signal_fd(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: all-zero is a valid set; each call gets a valid pointer to it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()).into())?;
        let fd = check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK).into())?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// The number of the next signal of a [`signal_fd`], if there is one.
pub fn next_signal(fd: BorrowedFd<'_>) -> Option<i32> {
    let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
    // SAFETY: the buffer is as long as said.
    let got = unsafe { libc::read(fd.as_raw_fd(), info.as_mut_ptr().cast(), info.len()) };
    let (number, _) = info.split_first_chunk::<4>()?;
    (got == info.len() as isize).then(|| i32::from_ne_bytes(*number))
}

/// Keeps the allocator at two arenas: threads come and go here, and each arena keeps memory of its own.
pub fn few_arenas() {
    // SAFETY: a setting of the C library's allocator; no memory is touched by the caller.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) };
}

/// Overwrites the command line, which becomes this name, and the environment that the process was started with. For a
/// forked process's start: it has one thread, and no copy of what is overwritten is used afterwards.
pub fn forget_command_line(name: &CStr) {
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
        static mut program_invocation_name: *mut libc::c_char;
    }
    // SAFETY: the C library set both before main; nothing in this program changes the environment.
    let (mut entry, mut start) = unsafe { (environ, program_invocation_name) };
    // SAFETY: it is a string that ends with NUL.
    let mut end = unsafe { start.add(libc::strlen(start)) };
    // The kernel lays out the arguments and then the environment, one behind the other (execve(2)).
    const MOST: usize = 8 << 20;
    // SAFETY: `environ` ends with a null pointer, and what it points to are strings that end with NUL.
    unsafe {
        let first = *entry;
        if !first.is_null() && (first as usize).wrapping_sub(end as usize) < MOST {
            end = first.sub(1);
        }
        while !(*entry).is_null() {
            if *entry == end.add(1) {
                end = (*entry).add(libc::strlen(*entry));
            }
            *entry = std::ptr::null_mut();
            entry = entry.add(1);
        }
        std::ptr::write_bytes(start, 0, end.offset_from(start).unsigned_abs());
    }
    for byte in name.to_bytes() {
        if start < end {
            // SAFETY: in the same range.
            unsafe { start.write(*byte as libc::c_char) };
            start = start.wrapping_add(1);
        }
    }
}

/// Handles SIGSYS: one line with the call's number, then the end of the process. The call was not made.
pub fn report_refused_calls() -> io::Result<()> {
    fn digits(place: &mut [u8], mut value: u64, base: u64) {
        for digit in place.iter_mut().rev() {
            *digit = b"0123456789abcdef"[(value % base) as usize];
            value /= base;
        }
    }
    extern "C" fn refused(_: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let mut text = *b"lazaret: the sentry's filter refused host call 0000, arguments 0000000000000000 0000000000000000\n";
        // SAFETY: the kernel passes a siginfo; si_syscall lies at byte 24 (asm-generic/siginfo.h).
        let number = unsafe { info.cast::<u8>().add(24).cast::<i32>().read() };
        // SAFETY: the kernel passes a ucontext to handlers with SA_SIGINFO.
        let registers = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        digits(&mut text[47..51], number as u64, 10);
        digits(&mut text[63..79], registers[libc::REG_RDI as usize] as u64, 16);
        digits(&mut text[80..96], registers[libc::REG_RSI as usize] as u64, 16);
        // SAFETY: write(2) of a local buffer; _exit does not return. Both may be called in a handler.
        unsafe {
            libc::write(2, text.as_ptr().cast(), text.len());
            libc::_exit(125)
        }
    }
    // SAFETY: the handler calls only async-signal-safe functions; the struct is zeroed and then filled in.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = refused as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        check(libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()).into())?;
    }
    Ok(())
}

/// Sets attributes (`MOUNT_ATTR_*`) of the mount that `mount` is the root of; with `recursive` of those below too.
///
/// # Errors
/// What the host says.
pub fn mount_setattr(mount: BorrowedFd<'_>, set: u64, recursive: bool) -> io::Result<()> {
    let attr = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    let size = size_of::<libc::mount_attr>();
    // SAFETY: the path is a NUL-terminated constant and `attr` is read for `size` bytes, its own size.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, mount.as_raw_fd(), c"".as_ptr(), flags, &raw const attr, size)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
