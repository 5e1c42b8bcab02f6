//! Children made by fork, and how they ended.

use crate::check::{Skip, eq, ok, skip};
use libc::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Ends this process without running anything else.
pub fn exit_now(code: i32) -> ! {
    loop {
        crate::sys!(SYS_exit_group, code);
    }
}

/// What a child does that is killed: it sleeps, for longer than any case takes.
pub fn forever() -> i32 {
    crate::sleep_ms(100_000);
    0
}

/// Forks; the child runs `f` and exits with what it returns, 101 if it panics.
#[track_caller]
pub fn child(f: impl FnOnce() -> i32) -> i32 {
    let pid = crate::call::libc_ret(unsafe { libc::fork() });
    if pid == 0 {
        let code = catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| {
            let text = format!("in child: {}\n", crate::check::last_failure());
            crate::sys!(SYS_write, 2, text.as_bytes(), text.len());
            101
        });
        exit_now(code);
    }
    ok(pid) as i32
}

/// Waits for `pid`'s end; its wait status.
#[track_caller]
pub fn reap(pid: i32) -> i32 {
    let mut status = 0;
    loop {
        let r = crate::sys!(SYS_wait4, pid, &mut status, 0, 0);
        if r != -i64::from(EINTR) {
            eq(ok(r), i64::from(pid));
            return status;
        }
    }
}

/// The child ends by itself with `code`.
#[track_caller]
pub fn exits(pid: i32, code: i32) {
    let s = reap(pid);
    if !WIFEXITED(s) || WEXITSTATUS(s) != code {
        panic!("child ended with wait status {s:#x}, expected exit {code}");
    }
}

/// The child is killed by `sig`.
#[track_caller]
pub fn killed_by(pid: i32, sig: i32) {
    let s = reap(pid);
    if !WIFSIGNALED(s) || WTERMSIG(s) != sig {
        panic!("child ended with wait status {s:#x}, expected signal {sig}");
    }
}

/// Runs `f` with its checks in a child process, for cases that change the process itself. Its failure is
/// this case's failure.
#[track_caller]
pub fn in_child(f: impl FnOnce()) {
    let mut p = [0i32; 2];
    ok(crate::sys!(SYS_pipe2, &mut p, O_CLOEXEC));
    let pid = crate::call::libc_ret(unsafe { libc::fork() });
    if pid == 0 {
        crate::sys!(SYS_close, p[0]);
        let code = match catch_unwind(AssertUnwindSafe(f)) {
            Ok(()) => 0,
            Err(e) => {
                let (text, code) = match e.downcast_ref::<Skip>() {
                    Some(s) => (s.0.clone(), 77),
                    None => (crate::check::last_failure(), 101),
                };
                crate::sys!(SYS_write, p[1], text.as_bytes(), text.len());
                code
            }
        };
        exit_now(code);
    }
    ok(pid);
    crate::sys!(SYS_close, p[1]);
    let mut text = Vec::new();
    let mut buf = [0u8; 512];
    loop {
        let n = crate::sys!(SYS_read, p[0], &mut buf, buf.len());
        if n <= 0 && n != -i64::from(EINTR) {
            break;
        }
        text.extend_from_slice(&buf[..n.max(0) as usize]);
    }
    crate::sys!(SYS_close, p[0]);
    let s = reap(pid as i32);
    let text = String::from_utf8_lossy(&text).into_owned();
    match (WIFEXITED(s), WEXITSTATUS(s)) {
        (true, 0) => {}
        (true, 77) => skip(&text),
        (true, 101) => panic!("in child: {text}"),
        _ => panic!("child ended with wait status {s:#x}"),
    }
}

/// What clone3(2) takes (`struct clone_args`).
#[repr(C)]
#[derive(Default)]
#[allow(missing_docs)]
pub struct CloneArgs {
    pub flags: u64,
    pub pidfd: u64,
    pub child_tid: u64,
    pub parent_tid: u64,
    pub exit_signal: u64,
    pub stack: u64,
    pub stack_size: u64,
    pub tls: u64,
    pub set_tid: u64,
    pub set_tid_size: u64,
    pub cgroup: u64,
}

/// clone3(2) with these process numbers, from the innermost PID namespace out; the child ends with 0 if it has the
/// first.
pub fn clone_with(numbers: &[i32], flags: i32) -> i64 {
    let args = CloneArgs {
        flags: flags as u64,
        exit_signal: SIGCHLD as u64,
        set_tid: numbers.as_ptr() as u64,
        set_tid_size: numbers.len() as u64,
        ..CloneArgs::default()
    };
    let pid = crate::sys!(SYS_clone3, &args, size_of::<CloneArgs>());
    if pid == 0 {
        exit_now(i32::from(crate::sys!(SYS_getpid) != i64::from(numbers[0])));
    }
    pid
}
