//! Host calls of a sandbox's start that no safe wrapper offers: the crate's only unsafe code. One operation each.

use crate::bpf::Insn;
use crate::enter::Kin;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const SI_KERNEL: i32 = 0x80;

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

/// Has a thread (0: the calling one) run for `nanos` at a time, at least 100,000: the less, the sooner it runs when it is
/// woken beside others. Its policy and its nice value stay.
///
/// # Errors
/// What the host says (sched_setattr(2)); Linux before 6.12 has no such thing.
pub fn run_briefly(tid: i32, nanos: u64) -> io::Result<()> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `size` bytes there.
    check(unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, size, 0) })?;
    attr.sched_runtime = nanos;
    // SAFETY: the kernel reads what it has just written.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attr, 0) }).map(|_| ())
}

/// How this process was started, as far as the program to be run inside shall find it the same: seen before the
/// language's runtime opens what is closed and ignores SIGPIPE.
#[derive(Debug, Clone, Copy)]
pub struct StartState {
    /// Which of the standard descriptors are open.
    pub open: [bool; 3],
    /// Ignored signals, bit `n - 1` for signal `n`.
    pub ignored: u64,
    /// Blocked signals.
    pub blocked: u64,
}

static OPEN: AtomicU64 = AtomicU64::new(0);
static IGNORED: AtomicU64 = AtomicU64::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);

/// What the process was started with.
pub fn start_state() -> StartState {
    let open = OPEN.load(Relaxed);
    StartState {
        open: [0, 1, 2].map(|fd| open & (1 << fd) != 0),
        ignored: IGNORED.load(Relaxed),
        blocked: BLOCKED.load(Relaxed),
    }
}

extern "C" fn look_at_start() {
    let mut open = 0;
    for fd in 0..3 {
        // SAFETY: no pointers.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0 {
            open |= 1 << fd;
        }
    }
    OPEN.store(open, Relaxed);
    let mut ignored = 0;
    for signal in 1..=64 {
        // The kernel's own call: the C library hides two signals.
        let mut action = [0u64; 4];
        // SAFETY: a kernel sigaction has 32 bytes on this machine; a null new action changes nothing.
        let got = unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, std::ptr::null::<u64>(), action.as_mut_ptr(), 8)
        };
        if got == 0 && action[0] == libc::SIG_IGN as u64 {
            ignored |= 1 << (signal - 1);
        }
    }
    IGNORED.store(ignored, Relaxed);
    let mut mask = 0u64;
    // SAFETY: a kernel signal set has 8 bytes; a null new set changes nothing.
    let got = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_BLOCK,
            std::ptr::null::<u64>(),
            &raw mut mask,
            size_of::<u64>(),
        )
    };
    if got == 0 {
        BLOCKED.store(mask, Relaxed);
    }
}

// SAFETY: the C library calls each entry once, before main, with one thread; the function makes plain host calls.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look_at_start;

/// Whether two descriptors of this process are one open file description (F_DUPFD_QUERY, Linux 6.10).
pub fn same_description(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    const F_DUPFD_QUERY: i32 = 1027;
    // SAFETY: no pointers.
    unsafe { libc::fcntl(one.as_raw_fd(), F_DUPFD_QUERY, other.as_raw_fd()) == 1 }
}

/// Stops this process with the default action of `signal`, which this thread may have blocked. Returns when it goes on,
/// at once where the host ignores such a stop (an orphaned process group), or when it is no signal that stops.
pub fn stop_by(signal: i32) {
    if !matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) {
        return;
    }
    // SAFETY: all-zero is a valid set; each call gets a valid pointer to it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, signal);
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, &raw mut old);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, std::ptr::null_mut());
    }
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

/// Lets go of the pages of code and constants, this program's and its libraries', which come back from the files when they
/// are used again. For a process that has its start behind it and mostly waits.
pub fn let_go_of_code() {
    // SAFETY: the function fits, and is given nothing.
    unsafe { libc::dl_iterate_phdr(Some(let_go_of_object), std::ptr::null_mut()) };
}

/// Of one loaded object: the segments that nobody may write (dl_iterate_phdr(3)).
unsafe extern "C" fn let_go_of_object(
    object: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut libc::c_void,
) -> libc::c_int {
    const PAGE: usize = 4096;
    // SAFETY: the C library gives a valid object, which stays loaded.
    let object = unsafe { &*object };
    if !object.dlpi_name.is_null() {
        // SAFETY: it is a string of the object's.
        let name = unsafe { std::ffi::CStr::from_ptr(object.dlpi_name) };
        // The vDSO is no file's.
        if name.to_bytes().starts_with(b"linux-") {
            return 0;
        }
    }
    for index in 0..usize::from(object.dlpi_phnum) {
        // SAFETY: there are so many headers.
        let header = unsafe { &*object.dlpi_phdr.add(index) };
        if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_W != 0 {
            continue;
        }
        let from = (object.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        let (start, end) = (from & !(PAGE - 1), from.wrapping_add(header.p_memsz as usize) & !(PAGE - 1));
        // SAFETY: what is mapped from a file and never written is, when it comes back, what it was. A failure changes nothing.
        unsafe { libc::madvise(start as *mut libc::c_void, end.saturating_sub(start), libc::MADV_DONTNEED) };
    }
    0
}

/// Ends the process without running anything more of it.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: the call does not return and touches no memory.
    unsafe { libc::_exit(status) }
}

/// Blocks these signals in this thread and those it makes.
pub fn block(signals: &[i32]) -> io::Result<libc::sigset_t> {
    // SAFETY: all-zero is a valid set; each call gets a valid pointer to it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()).into())?;
        Ok(set)
    }
}

/// Blocks these signals in this thread and those it makes, and gives a descriptor that reads them.
pub fn signal_fd(signals: &[i32]) -> io::Result<OwnedFd> {
    let set = block(signals)?;
    // SAFETY: the set is valid; the descriptor is nobody else's.
    unsafe {
        let fd = check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK).into())?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// A signal of a [`signal_fd`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Its number.
    pub signal: i32,
    /// The kernel sent it (a key of the terminal, its size, its end), not a process.
    pub from_kernel: bool,
}

/// The next signal of a [`signal_fd`], if there is one.
pub fn next_signal(fd: BorrowedFd<'_>) -> Option<Arrived> {
    let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
    // SAFETY: the buffer is as long as said.
    let got = unsafe { libc::read(fd.as_raw_fd(), info.as_mut_ptr().cast(), info.len()) };
    // signalfd_siginfo: ssi_signo, ssi_errno, ssi_code.
    let word = |at: usize| info.get(at..at + 4)?.first_chunk::<4>().map(|bytes| i32::from_ne_bytes(*bytes));
    let (signal, code) = (word(0)?, word(8)?);
    (got == info.len() as isize).then_some(Arrived { signal, from_kernel: code == SI_KERNEL })
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
