//! How the zygote comes to be: a fresh exec of the shim empties its address space and becomes a forker.

use crate::host::{self, raw};
use crate::layout::*;
use core::arch::naked_asm;
use core::sync::atomic::Ordering::Relaxed;

/// # Safety
/// The host's program entry.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _start() -> ! {
    naked_asm!("xor ebp, ebp", "mov rdi, rsp", "and rsp, -16", "call {boot}", "ud2", boot = sym boot)
}

#[repr(C)]
struct SigAction {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

const SA_SIGINFO: u64 = 4;
const SA_ONSTACK: u64 = 0x0800_0000;
const SA_RESTORER: u64 = 0x0400_0000;

/// The vDSO's address in the auxiliary vector behind arguments and environment.
///
/// # Safety
/// `words` is the stack as the host prepared it.
unsafe fn vdso(words: *const u64) -> u64 {
    // SAFETY: arguments, environment and auxiliary vector end with a zero each.
    unsafe {
        let mut at = words.add(2 + *words as usize);
        while *at != 0 {
            at = at.add(1);
        }
        at = at.add(1);
        while *at != 0 {
            if *at == AT_SYSINFO_EHDR {
                return *at.add(1);
            }
            at = at.add(2);
        }
    }
    0
}

const AT_SYSINFO_EHDR: u64 = 33;

unsafe extern "C" fn boot(words: *const u64) -> ! {
    // SAFETY: the host's initial stack.
    let (argc, vdso) = unsafe { (*words, vdso(words)) };
    // A fault in the shim is its own affair (own.rs), also before a task begins.
    let all: u64 = !(1 << (7 - 1) | 1 << (11 - 1));
    raw(host::SIGPROCMASK, [2, &raw const all as u64, 0, 8, 0, 0]);
    raw(host::PRCTL, [15, c"lazaret-guest".as_ptr() as u64, 0, 0, 0, 0]);
    raw(host::PRCTL, [38, 1, 0, 0, 0, 0]);
    if argc > 1 {
        raw(host::CLOSE_RANGE, [0, u32::MAX.into(), 0, 0, 0, 0]);
        loop {
            raw(host::PAUSE, [0; 6]);
        }
    }
    let (shared, private) = (0x11, 0x4032);
    if raw(host::MMAP, [CTL, CTL_SIZE, 3, shared, CTL_FD, 0]) as u64 != CTL {
        host::exit();
    }
    raw(host::CLOSE_RANGE, [0, u32::MAX.into(), 0, 0, 0, 0]);
    if raw(host::MMAP, [STACK, STACKS_SIZE, 3, private, u64::MAX, 0]) as u64 != STACK {
        host::exit();
    }
    let action = SigAction {
        handler: crate::task::handler as *const () as u64,
        flags: SA_SIGINFO | SA_ONSTACK | SA_RESTORER,
        restorer: host::restorer as *const () as u64,
        mask: all,
    };
    // SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS
    for signo in [4, 5, 7, 8, 11, 31, INTERRUPT as u64] {
        raw(host::SIGACTION, [signo, &raw const action as u64, 0, 8, 0, 0]);
    }
    if crate::forker::head().vdso_size.load(Relaxed) != 0 {
        crate::forker::head().vdso.store(vdso, Relaxed);
    }
    // SAFETY: the forker's stack is mapped and unused.
    unsafe { leave(STACK + STACK_SIZE) }
}

/// Leaves the host's stack for good.
#[unsafe(naked)]
unsafe extern "C" fn leave(_stack: u64) -> ! {
    naked_asm!("mov rsp, rdi", "xor ebp, ebp", "call {empty}", "ud2", empty = sym empty)
}

unsafe extern "C" fn empty() -> ! {
    let head = crate::forker::head();
    raw(host::MUNMAP, [0, REGION_START, 0, 0, 0, 0]);
    let vdso = head.vdso.load(Relaxed);
    if vdso == 0 {
        raw(host::MUNMAP, [REGION_END, TASK_END - REGION_END, 0, 0, 0, 0]);
    } else {
        let (start, end) = (vdso - head.vdso_before.load(Relaxed), vdso + head.vdso_size.load(Relaxed));
        raw(host::MUNMAP, [REGION_END, start - REGION_END, 0, 0, 0, 0]);
        raw(host::MUNMAP, [end, TASK_END - end, 0, 0, 0, 0]);
    }
    let program = [u64::from(head.filter_len.load(Relaxed)), CTL + FILTER_OFFSET];
    if raw(host::SECCOMP, [1, 0, program.as_ptr() as u64, 0, 0, 0]) != 0 {
        host::exit();
    }
    crate::forker::run()
}
