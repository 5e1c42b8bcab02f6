//! Host calls of the sentry that no safe wrapper exists for. One operation each.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// `struct seccomp_notif` (linux/seccomp.h).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Notif {
    /// Names the notification.
    pub id: u64,
    /// Thread id in the receiver's pid namespace.
    pub pid: u32,
    /// Unused.
    pub flags: u32,
    /// System call number.
    pub nr: i32,
    /// Audit architecture.
    pub arch: u32,
    /// Instruction pointer.
    pub ip: u64,
    /// Arguments.
    pub args: [u64; 6],
}

#[repr(C)]
struct NotifResp {
    id: u64,
    val: i64,
    error: i32,
    flags: u32,
}

#[repr(C)]
struct AddFd {
    id: u64,
    flags: u32,
    srcfd: u32,
    newfd: u32,
    newfd_flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    rest: [u32; 9],
}

const NOTIF_RECV: u64 = 0xc050_2100;
const NOTIF_SEND: u64 = 0xc018_2101;
const NOTIF_ADDFD: u64 = 0x4018_2103;
const NOTIF_SET_FLAGS: u64 = 0x4008_2104;
const PIDFD_GET_INFO: u64 = 0xc040_ff0b;

fn check(ret: i64) -> io::Result<i64> {
    if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(ret) }
}

/// Waits for a notification; ENOENT when every task under the listener's filter is gone.
pub fn notif_recv(listener: BorrowedFd<'_>) -> io::Result<Notif> {
    let mut notif = Notif::default();
    // SAFETY: the kernel fills in a struct of exactly this size.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_RECV, &raw mut notif) }.into())?;
    Ok(notif)
}

/// Answers a notification.
pub fn notif_send(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    let mut resp = NotifResp { id, val: 0, error: 0, flags: 0 };
    // SAFETY: the kernel reads a struct of exactly this size.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SEND, &raw mut resp) }.into())?;
    Ok(())
}

/// Puts a copy of a descriptor into the process whose notification is pending; its number there.
pub fn notif_addfd(listener: BorrowedFd<'_>, id: u64, fd: BorrowedFd<'_>) -> io::Result<u32> {
    let mut add =
        AddFd { id, flags: 0, srcfd: fd.as_raw_fd() as u32, newfd: 0, newfd_flags: libc::O_CLOEXEC as u32 };
    // SAFETY: the kernel reads a struct of exactly this size.
    let ret = check(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_ADDFD, &raw mut add) }.into())?;
    Ok(ret as u32)
}

/// Blocks all signals in the calling thread.
pub fn block_signals() {
    // SAFETY: any bytes are a sigset_t; both calls write or read one of them.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// Answers a notification and puts a copy of a descriptor into its process under this number, in one step. That step is not
/// taken half if the calling thread has no signals to see (they are blocked in the threads that serve tasks).
pub fn notif_send_with(listener: BorrowedFd<'_>, id: u64, fd: BorrowedFd<'_>, number: u32) -> io::Result<()> {
    const SETFD_SEND: u32 = 1 | 2;
    let (srcfd, newfd_flags) = (fd.as_raw_fd() as u32, libc::O_CLOEXEC as u32);
    let mut add = AddFd { id, flags: SETFD_SEND, srcfd, newfd: number, newfd_flags };
    // SAFETY: the kernel reads a struct of exactly this size.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_ADDFD, &raw mut add) }.into())?;
    Ok(())
}

/// Puts a copy of a descriptor into the process whose notification is pending, and answers it with the number. In two steps:
/// SECCOMP_ADDFD_FLAG_SEND that a signal interrupts answers 0 without a descriptor, and a sentry whose own calls are counted
/// (ptrace) is interrupted by signals that it ignores.
pub fn notif_give(listener: BorrowedFd<'_>, id: u64, fd: BorrowedFd<'_>) -> io::Result<()> {
    let number = notif_addfd(listener, id, fd)?;
    let mut resp = NotifResp { id, val: number.into(), error: 0, flags: 0 };
    // SAFETY: the kernel reads a struct of exactly this size.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SEND, &raw mut resp) }.into())?;
    Ok(())
}

/// Answers a notification with an error.
pub fn notif_refuse(listener: BorrowedFd<'_>, id: u64, errno: i32) -> io::Result<()> {
    let mut resp = NotifResp { id, val: 0, error: -errno, flags: 0 };
    // SAFETY: the kernel reads a struct of exactly this size.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SEND, &raw mut resp) }.into())?;
    Ok(())
}

/// Whether hand-overs on this listener stay on one processor (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP).
pub fn notif_sync(listener: BorrowedFd<'_>, yes: bool) -> io::Result<()> {
    // SAFETY: the argument is a value, not a pointer.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SET_FLAGS, u64::from(yes)) }.into())?;
    Ok(())
}

/// What a pidfd stands for.
#[derive(Debug, Clone, Copy)]
pub struct PidInfo {
    /// Process id.
    pub tgid: i32,
    /// Its parent.
    pub ppid: i32,
}

/// Ids of a pidfd's process in the caller's pid namespace.
pub fn pidfd_info(pidfd: BorrowedFd<'_>) -> io::Result<PidInfo> {
    let mut info = PidfdInfo { mask: 1, ..PidfdInfo::default() };
    // SAFETY: the kernel fills in a struct of exactly this size.
    check(unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) }.into())?;
    Ok(PidInfo { tgid: info.tgid as i32, ppid: info.ppid as i32 })
}

fn owned(fd: i64) -> OwnedFd {
    // SAFETY: the host just returned this descriptor to us and nobody else has it.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}

/// A copy of another process's descriptor.
pub fn pidfd_getfd(pidfd: BorrowedFd<'_>, fd: u32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let ret = unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) };
    Ok(owned(check(ret)?))
}

/// pidfd_open(2).
pub fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let ret = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    Ok(owned(check(ret)?))
}

/// Kills the process of a pidfd.
pub fn pidfd_kill(pidfd: BorrowedFd<'_>) {
    // SAFETY: the info pointer may be null.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), libc::SIGKILL, 0usize, 0) };
}

/// Kills the process with this id in the caller's pid namespace, if there is one.
pub fn kill_process(pid: i32) {
    if let Ok(fd) = pidfd_open(pid) {
        pidfd_kill(fd.as_fd());
    }
}

/// Has the allocator give back to the host what is free.
pub fn trim_heap() {
    // SAFETY: takes the allocator's own locks, and touches nothing that is in use.
    unsafe { libc::malloc_trim(0) };
}

/// Bytes that the allocator has given out.
pub fn heap_in_use() -> u64 {
    // SAFETY: takes the allocator's own locks, and changes nothing.
    let heap = unsafe { libc::mallinfo2() };
    (heap.uordblks as u64).saturating_add(heap.hblkhd as u64)
}

/// Kills the process that a thread belongs to.
pub fn kill_thread(tid: i32) {
    const PIDFD_THREAD: i32 = libc::O_EXCL;
    // SAFETY: no pointers.
    let ret = unsafe { libc::syscall(libc::SYS_pidfd_open, tid, PIDFD_THREAD) };
    if let Ok(fd) = check(ret) {
        pidfd_kill(owned(fd).as_fd());
    }
}

/// Sends a signal to one thread.
pub fn tgkill(tgid: i32, tid: i32, signo: i32) {
    // SAFETY: no pointers.
    unsafe { libc::syscall(libc::SYS_tgkill, tgid, tid, signo) };
}

/// Reaps the process of a pidfd if it is dead; the signal that ended it, 0 if it exited, and what it has used.
pub fn reap(pidfd: BorrowedFd<'_>) -> Option<(i32, crate::Rusage)> {
    // SAFETY: an all-zero siginfo_t is valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: an all-zero rusage is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let (info_at, usage_at) = (&raw mut info, &raw mut usage);
    let flags = libc::WEXITED | libc::WNOHANG;
    // SAFETY: the kernel fills in a siginfo_t and a rusage. (The C library's waitid has no rusage.)
    let ret = unsafe {
        libc::syscall(libc::SYS_waitid, libc::P_PIDFD, pidfd.as_raw_fd(), info_at, flags, usage_at)
    };
    if ret != 0 {
        // Reaped by somebody else: dead all the same.
        return Some((libc::SIGKILL, crate::Rusage::default()));
    }
    // SAFETY: waitid fills in the SIGCHLD fields.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if pid == 0 {
        return None;
    }
    let signal = if info.si_code == libc::CLD_EXITED { 0 } else { status & 0x7f };
    Some((signal, crate::cputime::from_host(&usage)))
}

/// Waits while the shared word has the value; not longer than `limit`.
pub fn futex_wait(word: &AtomicU32, value: u32, limit: Duration) {
    let time = libc::timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    // SAFETY: the word and the timespec outlive the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const time, 0usize, 0)
    };
}

/// Wakes everybody who waits on the shared word.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0usize, 0usize, 0) };
}

/// Reads another process's memory; bytes read, 0 on a fault at the start.
pub fn vm_read(pid: i32, addr: u64, buf: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    let remote = libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: buf.len() };
    // SAFETY: the local range is the exclusive slice; the remote one is checked by the kernel.
    let ret = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(ret).unwrap_or(0)
}

/// Whether a child that is not reaped has memory still: the first thing that a process which ends gives up.
pub fn has_memory(pid: i32) -> bool {
    let mut byte = 0u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 1 };
    // SAFETY: the local range is one byte of ours; the remote one is checked by the kernel.
    let ret = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    // It has no page there (EFAULT), or is not to be read (EPERM).
    ret >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Writes another process's memory; bytes written, 0 on a fault at the start.
pub fn vm_write(pid: i32, addr: u64, data: &[u8]) -> usize {
    let local = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    let remote = libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: data.len() };
    // SAFETY: the local range is only read; the remote one is checked by the kernel.
    let ret = unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(ret).unwrap_or(0)
}

/// Reads several ranges of another process's memory into one buffer.
pub fn vm_readv(pid: i32, guest: &[(u64, usize)], buf: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    let remote: Vec<libc::iovec> = guest
        .iter()
        .map(|&(addr, len)| libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: len })
        .collect();
    // SAFETY: the local range is the exclusive slice; the remote ones are checked by the kernel.
    let ret = unsafe {
        libc::process_vm_readv(pid, &raw const local, 1, remote.as_ptr(), remote.len() as libc::c_ulong, 0)
    };
    usize::try_from(ret).unwrap_or(0)
}

/// Raises the limit of descriptors as far as it goes: each guest thread costs the sentry one.
pub fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer there are fewer threads.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Lets a thread, 0: the calling one, run on these processors only; false if the host does not allow it.
pub fn keep_on(tid: i32, processors: &rustix::thread::CpuSet) -> bool {
    let tid = if tid == 0 { None } else { rustix::thread::Pid::from_raw(tid) };
    rustix::thread::sched_setaffinity(tid, processors).is_ok()
}

/// A descriptor of no use but that it takes a place.
pub fn placeholder(any: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(any, 0)?)
}

/// A sealed memory file of fixed size.
pub fn shared_memory(name: &std::ffi::CStr, len: u64) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string.
    let fd = owned(check(unsafe { libc::memfd_create(name.as_ptr(), flags) }.into())?);
    // SAFETY: no pointers.
    check(unsafe { libc::ftruncate(fd.as_raw_fd(), len as i64) }.into())?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: no pointers.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) }.into())?;
    Ok(fd)
}

/// The time stamp counter.
#[inline]
pub fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Whether no thread is left under the filter of a listener.
pub fn hung_up(listener: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut fds = [PollFd::new(&listener, PollFlags::IN)];
    let none = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    let polled = poll(&mut fds, Some(&none));
    polled.is_err() || fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
}

/// Whether a listener has a notification to hear, or never will again, by the end of this time.
pub fn rings_within(listener: BorrowedFd<'_>, time: std::time::Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut fds = [PollFd::new(&listener, PollFlags::IN)];
    let time = rustix::time::Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
    // Interrupted: whoever listens then finds out.
    poll(&mut fds, Some(&time)).map_or(true, |ready| ready > 0)
}

/// Whether this processor fetches an instruction that another one replaces within an aligned word of eight bytes either wholly
/// old or wholly new. AMD says so; of others it is not known.
pub fn fetches_whole_words() -> bool {
    static KNOWN: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
        let leaf = std::arch::x86_64::__cpuid(0);
        let vendor = [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes);
        matches!(vendor.as_flattened(), b"AuthenticAMD" | b"HygonGenuine")
    });
    *KNOWN
}

/// Whether the kernel lets user code read and write FS and GS bases (AT_HWCAP2, HWCAP2_FSGSBASE).
pub fn has_fsgsbase() -> bool {
    // SAFETY: reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & 2 != 0 }
}
