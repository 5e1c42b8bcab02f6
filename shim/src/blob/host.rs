//! Host calls. `raw` holds the one `syscall` instruction for all of them but clone and sigreturn.

use core::arch::{asm, naked_asm};
use core::sync::atomic::AtomicU32;

pub const MMAP: u64 = 9;
pub const MPROTECT: u64 = 10;
pub const MUNMAP: u64 = 11;
pub const SIGACTION: u64 = 13;
pub const SIGPROCMASK: u64 = 14;
pub const SCHED_YIELD: u64 = 24;
pub const MADVISE: u64 = 28;
pub const PAUSE: u64 = 34;
pub const EXIT: u64 = 60;
pub const PRCTL: u64 = 157;
pub const FUTEX: u64 = 202;
pub const CLOSE: u64 = 3;
pub const SECCOMP: u64 = 317;
pub const CLOSE_RANGE: u64 = 436;

/// One host call.
#[inline(always)]
pub fn raw(nr: u64, a: [u64; 6]) -> i64 {
    let ret: i64;
    // SAFETY: what a call does to this address space is the business of the caller, who is the sentry or the
    // guest itself; no Rust object of the shim lives in memory that these calls change.
    unsafe {
        asm!("syscall", inlateout("rax") nr as i64 => ret, in("rdi") a[0], in("rsi") a[1], in("rdx") a[2],
             in("r10") a[3], in("r8") a[4], in("r9") a[5], lateout("rcx") _, lateout("r11") _, options(nostack))
    };
    ret
}

/// FUTEX_WAIT on a shared word.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    raw(FUTEX, [word.as_ptr() as u64, 0, value.into(), 0, 0, 0]);
}

/// FUTEX_WAKE of everybody on a shared word.
pub fn futex_wake(word: &AtomicU32) {
    raw(FUTEX, [word.as_ptr() as u64, 1, i32::MAX as u64, 0, 0, 0]);
}

/// Ends this thread.
pub fn exit() -> ! {
    loop {
        raw(EXIT, [0; 6]);
    }
}

/// Ends this process, without a host call.
pub fn die() -> ! {
    loop {
        // SAFETY: an illegal instruction has no effect but the signal.
        unsafe { asm!("ud2", options(nomem, nostack)) };
    }
}

/// clone(2) for a thread: the child begins in [`crate::task::begin`] on its own stack.
///
/// # Safety
/// `stack` is the top of memory that nobody else uses as a stack.
#[unsafe(naked)]
pub unsafe extern "C" fn clone_thread(_flags: u64, _stack: u64) -> i64 {
    naked_asm!(
        "mov eax, 56",
        "xor edx, edx",
        "xor r10d, r10d",
        "xor r8d, r8d",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2:",
        "xor ebp, ebp",
        "mov rdi, rsp",
        "call {begin}",
        "ud2",
        begin = sym crate::task::begin,
    )
}

/// clone(2) for a process: both return here, on the same stack.
pub fn clone_process(flags: u64, pidfd: &AtomicU32) -> i64 {
    raw(56, [flags, 0, pidfd.as_ptr() as u64, 0, 0, 0])
}

/// clone(2) for a process whose thread is a task: it begins in [`crate::forker::born`] with `stack` and the last three, and writes
/// nothing on the caller's, whose page the two share.
///
/// # Safety
/// `stack` is the top of memory that nobody uses as a stack in the child, on a boundary of 16 bytes.
#[unsafe(naked)]
pub unsafe extern "C" fn clone_task(
    _flags: u64,
    _stack: u64,
    _pidfd: *mut u32,
    _fd: u32,
    _slot: u32,
    _frame: u64,
) -> i64 {
    naked_asm!(
        "push r12",
        "push r13",
        "push r14",
        "mov r12, rsi",
        "mov r13d, ecx",
        "mov r14d, r8d",
        "mov eax, 56",
        "xor esi, esi",
        "xor r10d, r10d",
        "xor r8d, r8d",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "pop r14",
        "pop r13",
        "pop r12",
        "ret",
        "2:",
        "mov rsp, r12",
        "xor ebp, ebp",
        "mov edi, r13d",
        "mov esi, r14d",
        "mov rdx, r9",
        "call {born}",
        "ud2",
        born = sym crate::forker::born,
    )
}

/// Goes to where `context` says.
///
/// # Safety
/// `context` is a `struct ucontext` whose stack and registers are good to go on with.
#[unsafe(naked)]
pub unsafe extern "C" fn sigreturn(_context: u64) -> ! {
    naked_asm!("mov rsp, rdi", "mov eax, 15", "syscall", "ud2")
}

/// SA_RESTORER; the handler goes back by [`sigreturn`], but the host wants to be given one.
///
/// # Safety
/// Only the host calls it.
#[unsafe(naked)]
pub unsafe extern "C" fn restorer() -> ! {
    naked_asm!("mov eax, 15", "syscall", "ud2")
}

#[inline(always)]
pub fn tsc() -> u64 {
    let (lo, hi): (u32, u32);
    // SAFETY: reads a counter.
    unsafe { asm!("rdtsc", out("eax") lo, out("edx") hi, options(nomem, nostack)) };
    u64::from(hi) << 32 | u64::from(lo)
}

#[inline(always)]
pub fn bases() -> (u64, u64) {
    let (fs, gs): (u64, u64);
    // SAFETY: reads two registers; the platform checks for FSGSBASE before it starts a guest.
    unsafe { asm!("rdfsbase {}", "rdgsbase {}", out(reg) fs, out(reg) gs, options(nomem, nostack)) };
    (fs, gs)
}

pub fn set_fs(base: u64) {
    // SAFETY: the shim uses no thread-local data.
    unsafe { asm!("wrfsbase {}", in(reg) base, options(nomem, nostack)) };
}

pub fn set_gs(base: u64) {
    // SAFETY: the shim uses no thread-local data.
    unsafe { asm!("wrgsbase {}", in(reg) base, options(nomem, nostack)) };
}
