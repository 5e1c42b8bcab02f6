//! Descriptors.

use libc::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

/// A pipe's read and write end.
#[track_caller]
pub fn pipe_pair() -> [i32; 2] {
    let mut p = [0i32; 2];
    crate::ok(crate::sys!(SYS_pipe2, &mut p, 0));
    p
}

/// Closes all of `fds`.
#[track_caller]
pub fn shut(fds: impl IntoIterator<Item = i32>) {
    for fd in fds {
        crate::eq(crate::sys!(SYS_close, fd), 0);
    }
}

/// fstat(2).
#[track_caller]
pub fn stat_fd(fd: impl Into<i64>) -> stat {
    let mut s: stat = unsafe { std::mem::zeroed() };
    crate::ok(crate::sys!(SYS_fstat, fd.into(), &mut s));
    s
}

/// Milliseconds of CLOCK_MONOTONIC.
pub fn now_ms() -> i64 {
    let mut t = [0i64; 2];
    crate::sys!(SYS_clock_gettime, CLOCK_MONOTONIC, &mut t);
    t[0] * 1000 + t[1] / 1_000_000
}

/// What began at `begin` took `ms` at least; it may be late, but its unit is no other.
#[track_caller]
pub fn took(begin: i64, ms: i64) {
    let passed = now_ms() - begin;
    crate::check((ms..ms + 20_000).contains(&passed), &format!("{passed} ms passed, {ms} were asked for"));
}

/// Sleeps.
pub fn sleep_ms(ms: u64) {
    std::thread::sleep(std::time::Duration::from_millis(ms));
}

/// Returns when `cond` holds; fails after 50 s, saying `what` does not.
#[track_caller]
pub fn until(what: &str, mut cond: impl FnMut() -> bool) {
    let end = now_ms() + 50_000;
    while !cond() {
        crate::check(now_ms() < end, what);
        sleep_ms(1);
    }
}

/// What is ready of `fd` now, among `events` and what is always told (poll(2)).
pub fn ready(fd: i32, events: i16) -> i16 {
    let mut p = pollfd { fd, events, revents: 0 };
    crate::ok(crate::sys!(SYS_poll, &mut p, 1, 0));
    std::hint::black_box(&p).revents
}

/// Returns when all of these are ready; fails after 50 s.
#[track_caller]
pub fn until_ready(fd: i32, events: i16) {
    until("it becomes ready", || ready(fd, events) & events == events);
}

/// Returns when as many bytes wait to be read; fails after 50 s.
#[track_caller]
pub fn until_unread(fd: i32, bytes: i32) {
    until("bytes have arrived", || {
        let mut n = -1i32;
        crate::ok(crate::sys!(SYS_ioctl, fd, FIONREAD, &mut n));
        std::hint::black_box(n) >= bytes
    });
}

/// Returns when a thread of this process sleeps; fails after 50 s.
#[track_caller]
pub fn until_asleep(tid: i64) {
    until_sleeping(&format!("/proc/self/task/{tid}/stat"));
}

/// Returns when a process with one thread sleeps; fails after 50 s.
#[track_caller]
pub fn until_child_asleep(pid: i64) {
    until_sleeping(&format!("/proc/{pid}/stat"));
}

/// A thread that blocks in `f`, once it does.
pub fn blocked<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
    let tid = Arc::new(AtomicI64::new(0));
    let told = tid.clone();
    let thread = std::thread::spawn(move || {
        told.store(crate::sys!(SYS_gettid), SeqCst);
        f()
    });
    while tid.load(SeqCst) == 0 {
        std::thread::yield_now();
    }
    until_asleep(tid.load(SeqCst));
    thread
}

#[track_caller]
fn until_sleeping(stat: &str) {
    until("the thread sleeps", || {
        let stat = std::fs::read_to_string(stat).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    });
}
