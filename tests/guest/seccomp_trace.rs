//! Filters and tracers: SECCOMP_RET_TRACE, and what ptrace(2) says of filters.

use super::tracee::*;
use guest_tests::filter::{ALLOW, ERRNO, add, no_new_privs, on, ret, set};
use guest_tests::*;
use libc::*;

cases![event, call_info, changed_call, changed_to_denied, skipped_call, after_entry, option_missing, killed_at_event, get_filter, metadata, suspended, own_filter_denies];

const PTRACE_SECCOMP_GET_FILTER: u32 = 0x420c;
const PTRACE_SECCOMP_GET_METADATA: u32 = 0x420d;
const TRACE: u32 = SECCOMP_RET_TRACE;
const TRACED: i32 = SIGTRAP | PTRACE_EVENT_SECCOMP << 8;

#[track_caller]
fn judged(nr: i64, value: u32, f: impl FnOnce() -> i32) -> i32 {
    let pid = traced(|| {
        add(&on(nr, value));
        f()
    });
    options(pid, PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD);
    pid
}

fn event() {
    let pid = judged(SYS_getpgid, TRACE | 0x2345, || i32::from(sys!(SYS_getpgid, 0) <= 0));
    cont(pid);
    eq(wait_stop(pid), TRACED);
    eq(message(pid), 0x2345);
    let r = regs(pid);
    eq((r.orig_rax as i64, r.rax as i64), (SYS_getpgid, -i64::from(ENOSYS)));
    eq(info(pid).si_code, TRACED);
    finish(pid, 0);
}

fn call_info() {
    let pid = judged(SYS_getpgid, TRACE | 9, || i32::from(sys!(SYS_getpgid, 0, 2, 3) <= 0));
    cont(pid);
    eq(wait_stop(pid), TRACED);
    let mut b = [0u8; 96];
    eq(pt!(r(PTRACE_GET_SYSCALL_INFO), pid, 96, &mut b), 84);
    let word = |at: usize| u64::from_le_bytes(b[at..at + 8].try_into().unwrap());
    eq((b[0], word(24) as i64, word(40), word(48), b[80]), (3, SYS_getpgid, 2, 3, 9));
    finish(pid, 0);
}

fn changed_call() {
    let pid = judged(SYS_getpgid, TRACE, || sys!(SYS_getpgid, 5000) as i32);
    cont(pid);
    eq(wait_stop(pid), TRACED);
    let mut r = regs(pid);
    (r.orig_rax, r.rdi) = (SYS_dup2 as u64, 2);
    r.rsi = 77;
    set_regs(pid, &r);
    finish(pid, 77);
}

/// What the tracer made of a call is judged too.
fn changed_to_denied() {
    let pid = judged(SYS_getpgid, TRACE, || {
        add(&on(SYS_getppid, ERRNO | 44));
        (-sys!(SYS_getpgid, 0)) as i32
    });
    cont(pid);
    eq(wait_stop(pid), TRACED);
    let mut r = regs(pid);
    r.orig_rax = SYS_getppid as u64;
    set_regs(pid, &r);
    finish(pid, 44);
}

fn skipped_call() {
    let pid = judged(SYS_getpgid, TRACE, || sys!(SYS_getpgid, 0) as i32);
    cont(pid);
    eq(wait_stop(pid), TRACED);
    let mut r = regs(pid);
    (r.orig_rax, r.rax) = (u64::MAX, 66);
    set_regs(pid, &r);
    finish(pid, 66);
}

/// The stop before the call, the filter's, the stop after it.
fn after_entry() {
    let pid = judged(SYS_getpgid, TRACE | 5, || i32::from(sys!(SYS_getpgid, 0) <= 0));
    cont(pid);
    eq(wait_stop(pid), TRACED);
    go(PTRACE_SYSCALL, pid, 0);
    eq(wait_stop(pid), ENTRY);
    check(regs(pid).rax as i64 > 0, "the value");
    finish(pid, 0);
    let pid = traced(|| {
        add(&on(SYS_getpgid, TRACE));
        i32::from(sys!(SYS_getpgid, 0) <= 0)
    });
    options(pid, PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD);
    loop {
        go(PTRACE_SYSCALL, pid, 0);
        eq(wait_stop(pid), ENTRY);
        if regs(pid).orig_rax as i64 == SYS_getpgid {
            break;
        }
    }
    for stop in [TRACED, ENTRY] {
        go(PTRACE_SYSCALL, pid, 0);
        eq(wait_stop(pid), stop);
    }
    finish(pid, 0);
}

fn option_missing() {
    let pid = traced(|| {
        add(&on(SYS_getpgid, TRACE));
        (-sys!(SYS_getpgid, 0)) as i32
    });
    finish(pid, ENOSYS);
}

fn killed_at_event() {
    let pid = judged(SYS_getpgid, TRACE, || sys!(SYS_getpgid, 0) as i32);
    cont(pid);
    eq(wait_stop(pid), TRACED);
    ok(sys!(SYS_kill, pid, SIGKILL));
    eq(wait_end(pid), SIGKILL);
}

/// A stopped child with two filters.
fn with_two() -> i32 {
    let pid = traced(|| {
        add(&[ret(ALLOW)]);
        // SECCOMP_FILTER_FLAG_LOG
        eq(set(2, &on(SYS_getppid, ERRNO | 3)), 0);
        self_raise(SIGUSR1);
        (-sys!(SYS_getppid)) as i32
    });
    cont(pid);
    eq(wait_stop(pid), SIGUSR1);
    pid
}

fn get_filter() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs root");
    }
    let pid = with_two();
    let mut b = [0u64; 8];
    let mut get = |number: u64, to: bool| {
        let r = pt!(r(PTRACE_SECCOMP_GET_FILTER), pid, number, if to { b.as_mut_ptr() as usize } else { 0 });
        (r, b[0], b[3])
    };
    eq(get(0, false).0, 1);
    eq(get(0, true), (1, 0x7fff_0000_0000_0006, 0));
    eq(get(1, true), (4, 0x20, 0x7fff_0000_0000_0006));
    err(get(2, true).0, ENOENT);
    err(get(u64::MAX, true).0, ENOENT);
    err(pt!(r(PTRACE_SECCOMP_GET_FILTER), pid, 0, bad()), EFAULT);
    finish(pid, 3);
    let pid = traced(|| 0);
    err(pt!(r(PTRACE_SECCOMP_GET_FILTER), pid, 0, 0), EINVAL);
    finish(pid, 0);
}

fn metadata() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs root");
    }
    let pid = with_two();
    let get = |size: u64, number: u64| {
        let mut b = [number, 99];
        (pt!(r(PTRACE_SECCOMP_GET_METADATA), pid, size, &mut b), b[0], b[1])
    };
    eq(get(16, 0), (16, 0, 0));
    eq(get(16, 1), (16, 1, 2));
    eq(get(8, 1), (8, 1, 99));
    eq(get(100, 1), (16, 1, 2));
    err(get(7, 1).0, EINVAL);
    err(get(16, 2).0, ENOENT);
    err(pt!(r(PTRACE_SECCOMP_GET_METADATA), pid, 16, bad()), EFAULT);
    finish(pid, 3);
}

/// PTRACE_O_SUSPEND_SECCOMP.
fn suspended() {
    let suspend = 1 << 21;
    let pid = with_two();
    if sys!(SYS_geteuid) != 0 {
        err(pt!(r(PTRACE_SETOPTIONS), pid, 0, suspend), EPERM);
        finish(pid, 3);
        return;
    }
    options(pid, suspend);
    let me = (-sys!(SYS_getpid)) as i32;
    finish(pid, me & 0xff);
}

/// Who has filters may not look at others' or take them away.
fn own_filter_denies() {
    in_child(|| {
        no_new_privs();
        let pid = with_two();
        add(&[ret(ALLOW)]);
        err(pt!(r(PTRACE_SECCOMP_GET_FILTER), pid, 0, 0), EACCES);
        err(pt!(r(PTRACE_SECCOMP_GET_METADATA), pid, 16, &mut [0u64; 2]), EACCES);
        err(pt!(r(PTRACE_SETOPTIONS), pid, 0, 1 << 21), EPERM);
        finish(pid, 3);
    });
}
