//! What the cases of ptrace(2) share.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

pub const ENTRY: i32 = SIGTRAP | 0x80;

/// ptrace(2) with all of its arguments.
macro_rules! pt {
    ($request:expr, $pid:expr, $addr:expr, $data:expr) => {
        guest_tests::sys!(libc::SYS_ptrace, $request, $pid, $addr, $data)
    };
}
pub(crate) use pt;

pub fn r(request: u32) -> i64 {
    i64::from(request)
}

pub fn traceme() {
    ok(pt!(r(PTRACE_TRACEME), 0, 0, 0));
}

pub fn self_raise(signal: i32) {
    ok(sys!(SYS_tgkill, sys!(SYS_getpid), sys!(SYS_gettid), signal));
}

/// A child that is traced and stops by SIGSTOP before it runs `f`.
pub fn traced(f: impl FnOnce() -> i32) -> i32 {
    let pid = child(|| {
        traceme();
        self_raise(SIGSTOP);
        f()
    });
    eq(wait_stop(pid), SIGSTOP);
    pid
}

/// Waits for `pid` to stop: the signal with the event above it.
#[track_caller]
pub fn wait_stop(pid: i32) -> i32 {
    let mut s = 0;
    eq(ok(sys!(SYS_wait4, pid, &mut s, __WALL, 0)), i64::from(pid));
    check(WIFSTOPPED(s), &format!("stopped, not {s:#x}"));
    s >> 8
}

#[track_caller]
pub fn wait_end(pid: i32) -> i32 {
    let mut s = 0;
    eq(ok(sys!(SYS_wait4, pid, &mut s, __WALL, 0)), i64::from(pid));
    check(!WIFSTOPPED(s), &format!("ended, not {s:#x}"));
    s
}

#[track_caller]
pub fn go(request: u32, pid: i32, signal: i32) {
    ok(pt!(r(request), pid, 0, signal));
}

pub fn cont(pid: i32) {
    go(PTRACE_CONT, pid, 0);
}

pub fn regs(pid: i32) -> user_regs_struct {
    let mut regs: user_regs_struct = unsafe { std::mem::zeroed() };
    ok(pt!(r(PTRACE_GETREGS), pid, 0, &raw mut regs));
    regs
}

pub fn set_regs(pid: i32, regs: &user_regs_struct) {
    ok(pt!(r(PTRACE_SETREGS), pid, 0, &raw const *regs));
}

pub fn message(pid: i32) -> u64 {
    let mut m = 0u64;
    ok(pt!(r(PTRACE_GETEVENTMSG), pid, 0, &mut m));
    m
}

pub fn options(pid: i32, options: i32) {
    ok(pt!(r(PTRACE_SETOPTIONS), pid, 0, options));
}

pub fn info(pid: i32) -> siginfo_t {
    let mut i: siginfo_t = unsafe { std::mem::zeroed() };
    ok(pt!(r(PTRACE_GETSIGINFO), pid, 0, &raw mut i));
    i
}

pub fn finish(pid: i32, code: i32) {
    cont(pid);
    eq(wait_end(pid), code << 8);
}

pub static CODE: AtomicI32 = AtomicI32::new(0);

pub static STATUS: AtomicI32 = AtomicI32::new(0);

pub extern "C" fn note(_: i32, i: *const siginfo_t, _: *const c_void) {
    CODE.store(unsafe { (*i).si_code }, SeqCst);
    STATUS.store(unsafe { (*i).si_status() }, SeqCst);
}
