//! ptrace(2): requests, stops of calls and signals, memory and registers. Attaching and events are in ptrace_events.

use super::tracee::*;
use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

cases![traceme_and_signal_stops, inject_suppress_replace, ignored_signals_are_seen, syscall_stops, sysgood, skip_a_call, change_number_and_arguments, change_the_result, emulate, peek_poke_memory, poke_read_only_memory, user_area, general_registers, bad_registers, floating_point, register_sets, xstate_set, errors_without_stop, errors_of_requests, breakpoint, single_step, step_over_call, step_into_handler, siginfo, peeksiginfo, sigmask, syscall_info, interrupted_call_restarts, own_calls_are_seen, proc_mem, altered_siginfo, cannot_trace_twice];

const PTRACE_SYSEMU: i64 = 31;

fn peek(pid: i32, addr: impl Arg) -> u64 {
    let mut word = 0u64;
    ok(pt!(r(PTRACE_PEEKDATA), pid, addr, &mut word));
    word
}

fn traceme_and_signal_stops() {
    let pid = child(|| {
        traceme();
        self_raise(SIGUSR1);
        self_raise(SIGSTOP);
        3
    });
    eq(wait_stop(pid), SIGUSR1);
    // Suppressed.
    cont(pid);
    eq(wait_stop(pid), SIGSTOP);
    finish(pid, 3);
}

fn inject_suppress_replace() {
    let pid = traced(|| {
        let _on = sig::on(SIGUSR1, 0);
        self_raise(SIGUSR2);
        sig::hits()
    });
    cont(pid);
    eq(wait_stop(pid), SIGUSR2);
    go(PTRACE_CONT, pid, SIGUSR1);
    eq(wait_end(pid), 1 << 8);
    let pid = traced(|| {
        self_raise(SIGUSR2);
        0
    });
    cont(pid);
    eq(wait_stop(pid), SIGUSR2);
    go(PTRACE_CONT, pid, SIGUSR2);
    eq(wait_end(pid), SIGUSR2);
    // What is injected where no signal was is sent, after a call's stop, or dropped.
    let pid = traced(|| {
        sys!(SYS_getppid);
        0
    });
    go(PTRACE_SYSCALL, pid, 0);
    wait_stop(pid);
    go(PTRACE_SYSCALL, pid, SIGTERM);
    wait_stop(pid);
    cont(pid);
    eq(wait_stop(pid), SIGTERM);
    go(PTRACE_CONT, pid, SIGTERM);
    eq(wait_end(pid), SIGTERM);
}

fn ignored_signals_are_seen() {
    let pid = traced(|| {
        sig::handle(SIGUSR1, SIG_IGN, 0);
        self_raise(SIGUSR1);
        self_raise(SIGCHLD);
        self_raise(SIGWINCH);
        0
    });
    for s in [SIGUSR1, SIGCHLD, SIGWINCH] {
        cont(pid);
        eq(wait_stop(pid), s);
    }
    go(PTRACE_CONT, pid, SIGWINCH);
    eq(wait_end(pid), 0);
}

fn syscall_stops() {
    let pid = traced(|| {
        sys!(SYS_lseek, -1, 7, 9);
        0
    });
    // The end of tgkill was left before the signal: the next stop is a call's beginning.
    go(PTRACE_SYSCALL, pid, 0);
    loop {
        eq(wait_stop(pid), SIGTRAP);
        let e = regs(pid);
        if e.orig_rax == SYS_lseek as u64 {
            eq((e.rdi, e.rsi, e.rdx), (-1i64 as u64, 7, 9));
            eq(e.rax as i64, i64::from(-ENOSYS));
            break;
        }
        go(PTRACE_SYSCALL, pid, 0);
    }
    go(PTRACE_SYSCALL, pid, 0);
    eq(wait_stop(pid), SIGTRAP);
    let e = regs(pid);
    eq((e.orig_rax as i64, e.rax as i64), (SYS_lseek, i64::from(-EBADF)));
    finish(pid, 0);
}

/// Lets a stopped child go on to the beginning of the call `nr`, with PTRACE_O_TRACESYSGOOD set.
#[track_caller]
fn to_call(pid: i32, nr: i64) {
    options(pid, PTRACE_O_TRACESYSGOOD);
    loop {
        go(PTRACE_SYSCALL, pid, 0);
        let s = wait_stop(pid);
        eq(s, ENTRY);
        if message(pid) == 1 && regs(pid).orig_rax as i64 == nr {
            return;
        }
    }
}

#[track_caller]
fn to_end_of_call(pid: i32) {
    go(PTRACE_SYSCALL, pid, 0);
    eq(wait_stop(pid), ENTRY);
    eq(message(pid), 2);
}

fn sysgood() {
    let pid = traced(|| (sys!(SYS_getppid) == 0) as i32);
    to_call(pid, SYS_getppid);
    to_end_of_call(pid);
    eq(regs(pid).rax as i64, sys!(SYS_getpid));
    finish(pid, 0);
}

fn skip_a_call() {
    let pid = traced(|| (sys!(SYS_getppid) != i64::from(-ENOSYS)) as i32);
    to_call(pid, SYS_getppid);
    let mut e = regs(pid);
    e.orig_rax = u64::MAX;
    set_regs(pid, &e);
    to_end_of_call(pid);
    eq(regs(pid).rax as i64, i64::from(-ENOSYS));
    finish(pid, 0);
    let pid = traced(|| (sys!(SYS_getppid) != 4711) as i32);
    to_call(pid, SYS_getppid);
    let mut e = regs(pid);
    (e.orig_rax, e.rax) = (u64::MAX, 4711);
    set_regs(pid, &e);
    finish(pid, 0);
    // A number that nobody has is a call all the same.
    let pid = traced(|| (sys!(SYS_getppid) != i64::from(-ENOSYS)) as i32);
    to_call(pid, SYS_getppid);
    let mut e = regs(pid);
    (e.orig_rax, e.rax) = (5000, 4711);
    set_regs(pid, &e);
    finish(pid, 0);
}

fn change_number_and_arguments() {
    let pid = traced(|| sys!(SYS_exit, 9) as i32);
    to_call(pid, SYS_exit);
    let mut e = regs(pid);
    e.rdi = 13;
    set_regs(pid, &e);
    finish(pid, 13);
    let pid = traced(|| (sys!(SYS_getppid, 77) != -i64::from(EBADF)) as i32);
    to_call(pid, SYS_getppid);
    ok(pt!(r(PTRACE_POKEUSER), pid, 15 * 8, SYS_close));
    finish(pid, 0);
}

fn change_the_result() {
    let pid = traced(|| (sys!(SYS_getppid) != 12345) as i32);
    to_call(pid, SYS_getppid);
    to_end_of_call(pid);
    ok(pt!(r(PTRACE_POKEUSER), pid, 10 * 8, 12345));
    eq(regs(pid).rax, 12345);
    finish(pid, 0);
}

fn emulate() {
    let pid = traced(|| (sys!(SYS_getppid) != 99) as i32);
    loop {
        ok(pt!(PTRACE_SYSEMU, pid, 0, 0));
        eq(wait_stop(pid), SIGTRAP);
        let mut e = regs(pid);
        eq(e.rax as i64, -i64::from(ENOSYS));
        if e.orig_rax as i64 == SYS_getppid {
            e.rax = 99;
            set_regs(pid, &e);
            break;
        }
        e.rax = 0;
        set_regs(pid, &e);
    }
    // The emulated call has no end of its own.
    ok(pt!(PTRACE_SYSEMU, pid, 0, 0));
    eq(wait_stop(pid), SIGTRAP);
    let e = regs(pid);
    eq(e.orig_rax as i64, SYS_exit_group);
    eq(e.rdi, 0);
    ok(pt!(r(PTRACE_KILL), pid, 0, 0));
    eq(wait_end(pid), SIGKILL);
}

static SHARED: AtomicU32 = AtomicU32::new(5);

fn peek_poke_memory() {
    let pid = traced(|| SHARED.load(SeqCst) as i32);
    let at = SHARED.as_ptr();
    eq(peek(pid, at.cast_const()) as u32, 5);
    let word = peek(pid, at.cast_const()) & !0xffff_ffff | 8;
    ok(pt!(r(PTRACE_POKEDATA), pid, at.cast_const(), word));
    let mut again = 0u64;
    ok(pt!(r(PTRACE_PEEKTEXT), pid, at.cast_const(), &mut again));
    eq(again, word);
    err(pt!(r(PTRACE_PEEKDATA), pid, 0, &mut again), EIO);
    err(pt!(r(PTRACE_POKEDATA), pid, 8, 1), EIO);
    err(pt!(r(PTRACE_PEEKDATA), pid, at.cast_const(), bad()), EFAULT);
    err(pt!(r(PTRACE_PEEKDATA), pid, -8, &mut again), EIO);
    finish(pid, 8);
    eq(SHARED.load(SeqCst), 5);
}

fn poke_read_only_memory() {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS;
    let page = ok(sys!(SYS_mmap, 0, 8192, PROT_READ, flags, -1, 0));
    let none = ok(sys!(SYS_mmap, 0, 4096, PROT_NONE, flags, -1, 0));
    let shared = ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    let pid = traced(|| unsafe { *(page as *const u8) }.into());
    ok(pt!(r(PTRACE_POKEDATA), pid, page, 0x0102));
    eq(peek(pid, page), 0x0102);
    // Over the edge of a page.
    ok(pt!(r(PTRACE_POKEDATA), pid, page + 4092, 0x1111_2222_3333_4444u64));
    eq(peek(pid, page + 4092), 0x1111_2222_3333_4444);
    eq(peek(pid, none), 0);
    ok(pt!(r(PTRACE_POKEDATA), pid, none, 77));
    eq(peek(pid, none), 77);
    err(pt!(r(PTRACE_POKEDATA), pid, shared, 1), EIO);
    finish(pid, 2);
    for (at, len) in [(page, 8192), (none, 4096), (shared, 4096)] {
        ok(sys!(SYS_munmap, at, len));
    }
}

fn user_area() {
    let pid = traced(|| 0);
    let mut word = 0u64;
    let all = regs(pid);
    ok(pt!(r(PTRACE_PEEKUSER), pid, 16 * 8, &mut word));
    eq(word, all.rip);
    for at in [-8i64, 1, 4, 928, 1 << 20] {
        err(pt!(r(PTRACE_PEEKUSER), pid, at, &mut word), EIO);
        err(pt!(r(PTRACE_POKEUSER), pid, at, 0), EIO);
    }
    // What is not a register reads as 0 and cannot be written.
    word = 1;
    ok(pt!(r(PTRACE_PEEKUSER), pid, 27 * 8, &mut word));
    eq(word, 0);
    err(pt!(r(PTRACE_POKEUSER), pid, 27 * 8, 0), EIO);
    // Debug registers: addresses.
    let debug = |n: i64| 848 + n * 8;
    ok(pt!(r(PTRACE_PEEKUSER), pid, debug(7), &mut word));
    eq(word, 0);
    ok(pt!(r(PTRACE_POKEUSER), pid, debug(7), 0));
    ok(pt!(r(PTRACE_PEEKUSER), pid, debug(6), &mut word));
    eq(word, 0xffff_0ff0);
    ok(pt!(r(PTRACE_POKEUSER), pid, debug(6), 0));
    ok(pt!(r(PTRACE_PEEKUSER), pid, debug(6), &mut word));
    eq(word, 0);
    ok(pt!(r(PTRACE_POKEUSER), pid, debug(3), 0x1000));
    ok(pt!(r(PTRACE_PEEKUSER), pid, debug(3), &mut word));
    eq(word, 0x1000);
    err(pt!(r(PTRACE_POKEUSER), pid, debug(0), 1u64 << 47), EINVAL);
    err(pt!(r(PTRACE_POKEUSER), pid, debug(4), 0), EIO);
    err(pt!(r(PTRACE_POKEUSER), pid, debug(5), 0), EIO);
    ok(pt!(r(PTRACE_PEEKUSER), pid, debug(4), &mut word));
    eq(word, 0);
    err(pt!(r(PTRACE_PEEKUSER), pid, 16 * 8, bad()), EFAULT);
    finish(pid, 0);
}

fn general_registers() {
    let pid = traced(|| 0);
    let mut all = regs(pid);
    eq((all.cs, all.ss), (0x33, 0x2b));
    eq(all.fs_base != 0, true);
    let old = all;
    all.r15 = 0xdead_beef;
    all.rbx = 17;
    set_regs(pid, &all);
    let now = regs(pid);
    eq((now.r15, now.rbx), (0xdead_beef, 17));
    set_regs(pid, &old);
    eq(regs(pid).r15, old.r15);
    err(pt!(r(PTRACE_GETREGS), pid, 0, bad()), EFAULT);
    err(pt!(r(PTRACE_SETREGS), pid, 0, bad()), EFAULT);
    finish(pid, 0);
}

fn bad_registers() {
    let pid = traced(|| 0);
    let put = |index: i64, value: u64| pt!(r(PTRACE_POKEUSER), pid, index * 8, value);
    // fs_base, gs_base, cs, ss, ds.
    err(put(21, 1 << 47), EIO);
    err(put(22, u64::MAX), EIO);
    err(put(17, 0), EIO);
    err(put(20, 0), EIO);
    err(put(17, 0x30), EIO);
    err(put(23, 0x10), EIO);
    ok(put(23, 0));
    ok(put(21, regs(pid).fs_base));
    // Flags that no program can have are left out.
    ok(put(18, u64::MAX));
    let flags = regs(pid).eflags;
    eq(flags & 0x3000, 0);
    check(flags & 0x200 != 0, "interrupts stay on");
    ok(put(18, 0x202));
    let mut all = regs(pid);
    let old = all;
    all.r14 = 5;
    all.fs_base = u64::MAX;
    err(pt!(r(PTRACE_SETREGS), pid, 0, &raw const all), EIO);
    // Those before are set.
    eq(regs(pid).r14, 5);
    set_regs(pid, &old);
    finish(pid, 0);
}

fn xmm7() -> u64 {
    let value: u64;
    unsafe { std::arch::asm!("movq {}, xmm7", out(reg) value) };
    value
}

fn floating_point() {
    let pid = child(|| {
        traceme();
        let (pid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
        unsafe {
            std::arch::asm!(
                "movq xmm7, {v}",
                "syscall",
                v = in(reg) 0x1234_5678u64,
                inout("rax") SYS_tgkill => _,
                in("rdi") pid, in("rsi") tid, in("rdx") i64::from(SIGSTOP),
                out("rcx") _, out("r11") _, out("xmm7") _,
            );
        }
        0
    });
    eq(wait_stop(pid), SIGSTOP);
    let mut fp = [0u8; 512];
    ok(pt!(r(PTRACE_GETFPREGS), pid, 0, &mut fp));
    let at = 160 + 7 * 16;
    eq(u64::from_le_bytes(fp[at..at + 8].try_into().unwrap()), 0x1234_5678);
    eq(u16::from_le_bytes([fp[0], fp[1]]), 0x37f);
    eq(u32::from_le_bytes(fp[24..28].try_into().unwrap()), 0x1f80);
    fp[at] = 0x99;
    ok(pt!(r(PTRACE_SETFPREGS), pid, 0, &mut fp));
    let mut again = [0u8; 512];
    ok(pt!(r(PTRACE_GETFPREGS), pid, 0, &mut again));
    eq(again[at], 0x99);
    // A reserved bit of mxcsr.
    fp[27] = 0xff;
    err(pt!(r(PTRACE_SETFPREGS), pid, 0, &mut fp), EINVAL);
    err(pt!(r(PTRACE_GETFPREGS), pid, 0, bad()), EFAULT);
    err(pt!(18, pid, 0, &mut fp), EIO);
    finish(pid, 0);
    let _ = xmm7();
}

fn iov(data: &mut [u8]) -> iovec {
    iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() }
}

fn register_sets() {
    let pid = traced(|| 0);
    let all = regs(pid);
    let mut data = [0u8; 400];
    let mut v = iov(&mut data);
    ok(pt!(r(PTRACE_GETREGSET), pid, 1, &raw mut v));
    eq(v.iov_len, 216);
    eq(u64::from_le_bytes(data[128..136].try_into().unwrap()), all.rip);
    let mut v = iov(&mut data[..16]);
    ok(pt!(r(PTRACE_GETREGSET), pid, 1, &raw mut v));
    eq(v.iov_len, 16);
    let mut v = iov(&mut data[..15]);
    err(pt!(r(PTRACE_GETREGSET), pid, 1, &raw mut v), EINVAL);
    let mut v = iov(&mut data);
    err(pt!(r(PTRACE_GETREGSET), pid, 0x7777, &raw mut v), EINVAL);
    err(pt!(r(PTRACE_GETREGSET), pid, 1, bad()), EFAULT);
    data[..8].copy_from_slice(&42u64.to_le_bytes());
    let mut v = iov(&mut data[..8]);
    ok(pt!(r(PTRACE_SETREGSET), pid, 1, &raw mut v));
    eq(regs(pid).r15, 42);
    let mut fp = [0u8; 512];
    let mut v = iov(&mut fp);
    ok(pt!(r(PTRACE_GETREGSET), pid, 2, &raw mut v));
    eq(v.iov_len, 512);
    ok(pt!(r(PTRACE_SETREGSET), pid, 2, &raw mut v));
    let mut v = iov(&mut fp[..8]);
    err(pt!(r(PTRACE_SETREGSET), pid, 2, &raw mut v), EINVAL);
    finish(pid, 0);
}

fn xstate_set() {
    let pid = traced(|| 0);
    let mut data = vec![0u8; 0x8000];
    let mut v = iov(&mut data);
    ok(pt!(r(PTRACE_GETREGSET), pid, 0x202, &raw mut v));
    let len = v.iov_len;
    check((576..0x8000).contains(&len), "a length of XSAVE's");
    // Features of the machine, where software's bytes begin.
    check(data[464] & 7 != 0, "features");
    let mut v = iov(&mut data[..len]);
    ok(pt!(r(PTRACE_SETREGSET), pid, 0x202, &raw mut v));
    let mut v = iov(&mut data[..len - 8]);
    err(pt!(r(PTRACE_SETREGSET), pid, 0x202, &raw mut v), EFAULT);
    // A component that no machine has.
    data[519] |= 0x40;
    let mut v = iov(&mut data[..len]);
    err(pt!(r(PTRACE_SETREGSET), pid, 0x202, &raw mut v), EINVAL);
    finish(pid, 0);
}

fn errors_without_stop() {
    let mut word = 0u64;
    // Not traced.
    let pid = child(forever);
    for request in [PTRACE_CONT, PTRACE_KILL, PTRACE_DETACH, PTRACE_GETREGS, PTRACE_SETOPTIONS, 0x4207, 0x9999] {
        err(pt!(r(request), pid, 0, &mut word), ESRCH);
    }
    // Traced, not stopped.
    ok(pt!(r(PTRACE_SEIZE), pid, 0, 0));
    for request in [PTRACE_CONT, PTRACE_DETACH, PTRACE_GETREGS, PTRACE_SETOPTIONS, 0x9999] {
        err(pt!(r(request), pid, 0, &mut word), ESRCH);
    }
    ok(pt!(r(PTRACE_KILL), pid, 0, 0));
    eq(wait_end(pid), SIGKILL);
    for request in [PTRACE_CONT, PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_KILL, 0x9999] {
        err(pt!(r(request), 0x3f_fff0, 0, &mut word), ESRCH);
    }
}

fn errors_of_requests() {
    let pid = traced(|| 0);
    let mut word = [0u64; 64];
    err(pt!(0x9999, pid, 0, 0), EIO);
    err(pt!(-1, pid, 0, 0), EIO);
    err(pt!(r(PTRACE_CONT), pid, 0, 65), EIO);
    err(pt!(r(PTRACE_CONT), pid, 0, -1), EIO);
    err(pt!(r(PTRACE_SYSCALL), pid, 0, 1000), EIO);
    err(pt!(r(PTRACE_DETACH), pid, 0, 65), EIO);
    err(pt!(r(PTRACE_SETOPTIONS), pid, 0, 1 << 30), EINVAL);
    err(pt!(r(PTRACE_SETOPTIONS), pid, 0, -1), EINVAL);
    // Of those that were seized alone.
    err(pt!(r(PTRACE_INTERRUPT), pid, 0, 0), EIO);
    err(pt!(r(PTRACE_LISTEN), pid, 0, 0), EIO);
    err(pt!(r(PTRACE_GETSIGMASK), pid, 4, &mut word), EINVAL);
    err(pt!(r(PTRACE_SETSIGMASK), pid, 16, &mut word), EINVAL);
    err(pt!(r(PTRACE_GETEVENTMSG), pid, 0, bad()), EFAULT);
    err(pt!(r(PTRACE_GETSIGINFO), pid, 0, bad()), EFAULT);
    finish(pid, 0);
}

#[inline(never)]
extern "C" fn target(n: i32) -> i32 {
    std::hint::black_box(n) + 1
}

fn breakpoint() {
    let f: extern "C" fn(i32) -> i32 = std::hint::black_box(target);
    let pid = traced(|| f(10));
    let at = f as usize as u64;
    let old = peek(pid, at);
    ok(pt!(r(PTRACE_POKETEXT), pid, at, old & !0xff | 0xcc));
    eq(peek(pid, at) & 0xff, 0xcc);
    cont(pid);
    eq(wait_stop(pid), SIGTRAP);
    let i = info(pid);
    eq((i.si_signo, i.si_code), (SIGTRAP, 0x80));
    let mut e = regs(pid);
    eq(e.rip, at + 1);
    eq(e.rdi as i32, 10);
    eq(e.orig_rax as i64, -1);
    ok(pt!(r(PTRACE_POKETEXT), pid, at, old));
    (e.rip, e.rdi) = (at, 20);
    set_regs(pid, &e);
    finish(pid, 21);
}

fn single_step() {
    let f: extern "C" fn(i32) -> i32 = std::hint::black_box(target);
    let pid = traced(|| f(10));
    let at = f as usize as u64;
    let old = peek(pid, at);
    ok(pt!(r(PTRACE_POKETEXT), pid, at, old & !0xff | 0xcc));
    cont(pid);
    eq(wait_stop(pid), SIGTRAP);
    ok(pt!(r(PTRACE_POKETEXT), pid, at, old));
    let mut e = regs(pid);
    e.rip = at;
    set_regs(pid, &e);
    let mut last = at;
    for _ in 0..3 {
        go(PTRACE_SINGLESTEP, pid, 0);
        eq(wait_stop(pid), SIGTRAP);
        let i = info(pid);
        eq(i.si_code, TRAP_TRACE);
        let e = regs(pid);
        check(e.rip != last, "an instruction further");
        // The tracer's doing is not shown.
        eq(e.eflags & 0x100, 0);
        last = e.rip;
    }
    finish(pid, 11);
}

fn step_over_call() {
    let pid = traced(|| (sys!(SYS_getppid) == 0) as i32);
    to_call(pid, SYS_getppid);
    let behind = regs(pid).rip;
    go(PTRACE_SINGLESTEP, pid, 0);
    eq(wait_stop(pid), SIGTRAP);
    let e = regs(pid);
    eq(e.rip, behind);
    eq(e.rax as i64, sys!(SYS_getpid));
    let i = info(pid);
    eq((i.si_signo, i.si_code), (SIGTRAP, TRAP_BRKPT));
    go(PTRACE_SINGLESTEP, pid, 0);
    eq(wait_stop(pid), SIGTRAP);
    check(regs(pid).rip > behind, "the instruction behind");
    eq(info(pid).si_code, TRAP_TRACE);
    finish(pid, 0);
    // From the instruction itself.
    let pid = traced(|| {
        let mut n = SYS_getppid;
        unsafe { std::arch::asm!("int3", "syscall", inout("rax") n, out("rcx") _, out("r11") _) };
        (n <= 0) as i32
    });
    cont(pid);
    eq(wait_stop(pid), SIGTRAP);
    let at = regs(pid).rip;
    go(PTRACE_SINGLESTEP, pid, 0);
    eq(wait_stop(pid), SIGTRAP);
    let e = regs(pid);
    eq((e.rip, e.rax as i64), (at + 2, sys!(SYS_getpid)));
    finish(pid, 0);
}

fn step_into_handler() {
    let pid = traced(|| {
        let _on = sig::on(SIGUSR1, 0);
        self_raise(SIGUSR1);
        sig::hits()
    });
    cont(pid);
    eq(wait_stop(pid), SIGUSR1);
    let sp = regs(pid).rsp;
    go(PTRACE_SINGLESTEP, pid, SIGUSR1);
    eq(wait_stop(pid), SIGTRAP);
    let e = regs(pid);
    // Stopped before the handler's first instruction.
    check(e.rsp < sp, "in the frame");
    eq(e.rdi as i32, SIGUSR1);
    finish(pid, 1);
}

fn siginfo() {
    let own = sys!(SYS_getpid) as i32;
    let pid = traced(forever);
    cont(pid);
    ok(sys!(SYS_kill, pid, SIGUSR1));
    eq(wait_stop(pid), SIGUSR1);
    let i = info(pid);
    eq((i.si_signo, i.si_code), (SIGUSR1, SI_USER));
    unsafe { eq(i.si_pid(), own) };
    ok(pt!(r(PTRACE_KILL), pid, 0, 0));
    eq(wait_end(pid), SIGKILL);
    let pid = traced(|| 0);
    options(pid, PTRACE_O_TRACESYSGOOD);
    go(PTRACE_SYSCALL, pid, 0);
    eq(wait_stop(pid), ENTRY);
    let i = info(pid);
    eq((i.si_signo, i.si_code), (SIGTRAP, ENTRY));
    unsafe { eq(i.si_pid(), pid) };
    finish(pid, 0);
}

fn peeksiginfo() {
    let pid = traced(|| {
        sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1, SIGUSR2]));
        self_raise(SIGUSR1);
        ok(sys!(SYS_kill, sys!(SYS_getpid), SIGUSR2));
        self_raise(SIGSTOP);
        0
    });
    cont(pid);
    eq(wait_stop(pid), SIGSTOP);
    let mut list: [siginfo_t; 4] = unsafe { std::mem::zeroed() };
    let args = |off: u64, flags: u32, nr: i32| [off, u64::from(flags) | (nr as u64) << 32];
    let request = r(0x4209);
    eq(pt!(request, pid, &args(0, 0, 4), list.as_mut_ptr().cast_const()), 1);
    eq(list[0].si_signo, SIGUSR1);
    eq(pt!(request, pid, &args(0, 1, 4), list.as_mut_ptr().cast_const()), 1);
    eq(list[0].si_signo, SIGUSR2);
    eq(pt!(request, pid, &args(1, 0, 4), list.as_mut_ptr().cast_const()), 0);
    eq(pt!(request, pid, &args(0, 0, 0), list.as_mut_ptr().cast_const()), 0);
    err(pt!(request, pid, &args(0, 2, 4), list.as_mut_ptr().cast_const()), EINVAL);
    err(pt!(request, pid, &args(0, 0, -1), list.as_mut_ptr().cast_const()), EINVAL);
    err(pt!(request, pid, bad(), list.as_mut_ptr().cast_const()), EFAULT);
    err(pt!(request, pid, &args(0, 0, 4), bad()), EFAULT);
    finish(pid, 0);
}

fn sigmask() {
    let pid = traced(|| {
        sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
        self_raise(SIGSTOP);
        self_raise(SIGUSR2);
        (sig::pending() == sig::set(&[SIGUSR2])) as i32
    });
    cont(pid);
    eq(wait_stop(pid), SIGSTOP);
    let mut m = 0u64;
    ok(pt!(r(PTRACE_GETSIGMASK), pid, 8, &mut m));
    eq(m, sig::set(&[SIGUSR1]));
    m = sig::set(&[SIGUSR2, SIGKILL, SIGSTOP]);
    ok(pt!(r(PTRACE_SETSIGMASK), pid, 8, &mut m));
    ok(pt!(r(PTRACE_GETSIGMASK), pid, 8, &mut m));
    eq(m, sig::set(&[SIGUSR2]));
    finish(pid, 1);
}

fn syscall_info() {
    let pid = traced(|| {
        sys!(SYS_lseek, -1, 2, 3);
        0
    });
    let mut b = [0xffu8; 96];
    let get = |b: &mut [u8; 96], size: i64| pt!(r(PTRACE_GET_SYSCALL_INFO), pid, size, b);
    let word = |b: &[u8; 96], at: usize| u64::from_le_bytes(b[at..at + 8].try_into().unwrap());
    eq(get(&mut b, 96), 24);
    eq(b[0], 0);
    eq(&b[4..8], &0xc000_003eu32.to_le_bytes()[..]);
    eq(word(&b, 8), regs(pid).rip);
    eq(word(&b, 16), regs(pid).rsp);
    to_call(pid, SYS_lseek);
    eq(get(&mut b, 96), 80);
    eq(b[0], 1);
    eq([24, 32, 40, 48].map(|at| word(&b, at)), [SYS_lseek as u64, -1i64 as u64, 2, 3]);
    // No more than there is room for.
    b = [0xff; 96];
    eq(get(&mut b, 32), 80);
    eq((word(&b, 24), b[32]), (SYS_lseek as u64, 0xff));
    eq(get(&mut b, 0), 80);
    to_end_of_call(pid);
    eq(get(&mut b, 96), 33);
    eq((b[0], word(&b, 24) as i64, b[32]), (2, -i64::from(EBADF), 1));
    err(pt!(r(PTRACE_GET_SYSCALL_INFO), pid, 96, bad()), EFAULT);
    finish(pid, 0);
}

fn interrupted_call_restarts() {
    let p = pipe_pair();
    let pid = traced(|| {
        let mut b = [0u8; 1];
        (sys!(SYS_read, p[0], &mut b, 1) != 1) as i32
    });
    to_call(pid, SYS_read);
    go(PTRACE_SYSCALL, pid, 0);
    until_child_asleep(pid.into());
    ok(sys!(SYS_kill, pid, SIGWINCH));
    // The call's end, with the kernel's own number, then the signal, then the call again.
    eq(wait_stop(pid), ENTRY);
    eq(regs(pid).rax as i64, -512);
    go(PTRACE_SYSCALL, pid, 0);
    eq(wait_stop(pid), SIGWINCH);
    eq((regs(pid).rax as i64, regs(pid).orig_rax as i64), (-512, SYS_read));
    go(PTRACE_SYSCALL, pid, SIGWINCH);
    eq(wait_stop(pid), ENTRY);
    eq((message(pid), regs(pid).orig_rax as i64), (1, SYS_read));
    ok(sys!(SYS_write, p[1], b"x", 1));
    to_end_of_call(pid);
    eq(regs(pid).rax, 1);
    finish(pid, 0);
    // Without a call to go back to, nothing is restarted.
    let pid = traced(|| {
        let mut b = [0u8; 1];
        (sys!(SYS_read, p[0], &mut b, 1) != 77) as i32
    });
    cont(pid);
    until_child_asleep(pid.into());
    ok(sys!(SYS_kill, pid, SIGWINCH));
    eq(wait_stop(pid), SIGWINCH);
    let mut e = regs(pid);
    eq(e.rax as i64, -512);
    (e.rax, e.orig_rax) = (77, u64::MAX);
    set_regs(pid, &e);
    finish(pid, 0);
    shut(p);
}

fn own_calls_are_seen() {
    let pid = traced(|| {
        for _ in 0..20 {
            unsafe { getppid() };
            unsafe { getpid() };
            unsafe { getuid() };
        }
        0
    });
    options(pid, PTRACE_O_TRACESYSGOOD);
    let mut seen = [0; 3];
    loop {
        go(PTRACE_SYSCALL, pid, 0);
        let mut s = 0;
        ok(sys!(SYS_wait4, pid, &mut s, __WALL, 0));
        if !WIFSTOPPED(s) {
            break;
        }
        if message(pid) == 1 {
            let nr = regs(pid).orig_rax as i64;
            for (count, call) in seen.iter_mut().zip([SYS_getppid, SYS_getpid, SYS_getuid]) {
                *count += i32::from(nr == call);
            }
        }
    }
    eq(seen, [20, 20, 20]);
}

fn proc_mem() {
    let f: extern "C" fn(i32) -> i32 = std::hint::black_box(target);
    let pid = traced(|| f(10));
    let path = cstr(format!("/proc/{pid}/mem"));
    let fd = ok(sys!(SYS_open, path.as_ptr(), O_RDWR));
    let at = f as usize;
    let mut b = [0u8; 1];
    eq(sys!(SYS_pread64, fd, &mut b, 1, at), 1);
    eq(b[0], peek(pid, at) as u8);
    // Code, which is not writable.
    eq(sys!(SYS_pwrite64, fd, &[0xccu8], 1, at), 1);
    cont(pid);
    eq(wait_stop(pid), SIGTRAP);
    eq(sys!(SYS_pwrite64, fd, &b, 1, at), 1);
    let mut e = regs(pid);
    eq(e.rip, at as u64 + 1);
    e.rip = at as u64;
    set_regs(pid, &e);
    err(sys!(SYS_pread64, fd, &mut b, 1, 0), EIO);
    err(sys!(SYS_pwrite64, fd, &b, 1, 0), EIO);
    finish(pid, 11);
    eq(sys!(SYS_pread64, fd, &mut b, 1, at), 0);
    ok(sys!(SYS_close, fd));
    // One's own, in spite of its protection.
    let page = ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    let fd = ok(sys!(SYS_open, cstr("/proc/self/mem").as_ptr(), O_RDWR));
    eq(sys!(SYS_pwrite64, fd, b"own", 3, page + 7), 3);
    eq(unsafe { *(page as *const u8).add(8) }, b'w');
    ok(sys!(SYS_close, fd));
    ok(sys!(SYS_munmap, page, 4096));
}

fn altered_siginfo() {
    let pid = traced(|| {
        sig::handle(SIGUSR1, note as *const () as usize, SA_SIGINFO);
        self_raise(SIGUSR1);
        CODE.load(SeqCst)
    });
    cont(pid);
    eq(wait_stop(pid), SIGUSR1);
    let mut i = info(pid);
    i.si_code = 55;
    ok(pt!(r(PTRACE_SETSIGINFO), pid, 0, &raw const i));
    eq(info(pid).si_code, 55);
    go(PTRACE_CONT, pid, SIGUSR1);
    eq(wait_end(pid), 55 << 8);
}

fn cannot_trace_twice() {
    let pid = child(|| {
        traceme();
        (pt!(r(PTRACE_TRACEME), 0, 0, 0) != -i64::from(EPERM)) as i32
    });
    eq(wait_end(pid), 0);
}
