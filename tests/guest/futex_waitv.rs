//! futex_waitv(2), futex_wait(2), futex_wake(2), futex_requeue(2).

use guest_tests::*;
use libc::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

cases![wait_errors, wait_timeouts, wait_and_wake, wake_errors, wake_counts, requeue, requeue_errors, waitv_errors, waitv_timeouts];

const WAKE: i64 = 454;
const WAIT: i64 = 455;
const REQUEUE: i64 = 456;
const U32: u32 = 2;
const PRIVATE: u32 = 0x80;

fn at(clock: i32, ms: i64) -> [i64; 2] {
    let mut t = [0i64; 2];
    ok(sys!(SYS_clock_gettime, clock, &mut t));
    t[1] += ms * 1_000_000;
    [t[0] + t[1].div_euclid(1_000_000_000), t[1].rem_euclid(1_000_000_000)]
}

fn wait_errors() {
    let w = AtomicU32::new(1);
    let p = (&raw const w) as usize;
    err(sys!(WAIT, p, 2, u32::MAX, U32, 0, 0), EAGAIN);
    err(sys!(WAIT, p, 2, u32::MAX, U32 | PRIVATE, 0, 0), EAGAIN);
    err(sys!(WAIT, p, 1, 0, U32, 0, 0), EINVAL);
    for flags in [0u32, 1, 3, 0x10, 0x100] {
        err(sys!(WAIT, p, 1, u32::MAX, flags, 0, 0), EINVAL);
    }
    err(sys!(WAIT, p, 1u64 << 32, u32::MAX, U32, 0, 0), EINVAL);
    err(sys!(WAIT, p, 1, 1u64 << 32, U32, 0, 0), EINVAL);
    err(sys!(WAIT, p + 2, 1, u32::MAX, U32, 0, 0), EINVAL);
    err(sys!(WAIT, bad(), 1, u32::MAX, U32, 0, 0), EFAULT);
    err(sys!(WAIT, bad(), 1, u32::MAX, U32 | PRIVATE, 0, 0), EFAULT);
    err(sys!(WAIT, p, 1, u32::MAX, U32, &[0i64, 0], 5), EINVAL);
    err(sys!(WAIT, p, 1, u32::MAX, U32, bad(), 1), EFAULT);
    err(sys!(WAIT, p, 1, u32::MAX, U32, &[0i64, -1], 1), EINVAL);
}

fn wait_timeouts() {
    let w = AtomicU32::new(1);
    for clock in [CLOCK_MONOTONIC, CLOCK_REALTIME] {
        let (t, begin) = (at(clock, 30), now_ms());
        err(sys!(WAIT, &w, 1, u32::MAX, U32, &t, clock), ETIMEDOUT);
        took(begin, 25);
    }
}

fn waiter(w: &Arc<AtomicU32>, mask: u32, flags: u32) -> std::thread::JoinHandle<i64> {
    let v = w.clone();
    let (tell, told) = std::sync::mpsc::channel();
    let h = std::thread::spawn(move || {
        tell.send(sys!(SYS_gettid)).expect("heard");
        sys!(WAIT, &*v, 0, mask, flags, 0, 0)
    });
    until_asleep(told.recv().expect("a thread"));
    h
}

fn wait_and_wake() {
    let w = Arc::new(AtomicU32::new(0));
    let h = waiter(&w, 1, U32 | PRIVATE);
    eq(sys!(WAKE, &*w, 2, 1, U32 | PRIVATE), 0);
    eq(sys!(WAKE, &*w, 3, 1, U32 | PRIVATE), 1);
    eq(h.join().unwrap(), 0);
    // The old calls meet the new ones.
    let h = waiter(&w, u32::MAX, U32);
    eq(sys!(SYS_futex, &*w, FUTEX_WAKE, 1, 0, 0, 0), 1);
    eq(h.join().unwrap(), 0);
}

fn wake_errors() {
    let w = AtomicU32::new(0);
    let p = (&raw const w) as usize;
    err(sys!(WAKE, p, 0, 1, U32), EINVAL);
    err(sys!(WAKE, p, 1, 1, 0), EINVAL);
    err(sys!(WAKE, p, 1u64 << 32, 1, U32), EINVAL);
    err(sys!(WAKE, p + 1, 1, 1, U32), EINVAL);
    err(sys!(WAKE, bad(), 1, 1, U32), EFAULT);
    eq(sys!(WAKE, bad(), 1, 1, U32 | PRIVATE), 0);
}

fn wake_counts() {
    let w = Arc::new(AtomicU32::new(0));
    let hs: Vec<_> = (0..3).map(|_| waiter(&w, u32::MAX, U32)).collect();
    eq(sys!(WAKE, &*w, u32::MAX, 0, U32), 0);
    eq(sys!(WAKE, &*w, u32::MAX, 2, U32), 2);
    eq(sys!(WAKE, &*w, u32::MAX, 9, U32), 1);
    hs.into_iter().for_each(|h| eq(h.join().unwrap(), 0));
}

/// val, uaddr, flags
fn pair(a: usize, val: u64, b: usize, flags: u64) -> [u64; 6] {
    [val, a as u64, flags, 0, b as u64, flags]
}

fn requeue() {
    let (a, b) = (Arc::new(AtomicU32::new(0)), AtomicU32::new(0));
    let hs: Vec<_> = (0..4).map(|_| waiter(&a, u32::MAX, U32)).collect();
    let v = pair(Arc::as_ptr(&a) as usize, 0, (&raw const b) as usize, 2);
    eq(sys!(REQUEUE, &v, 0, 1, 2), 3);
    eq(sys!(WAKE, &b, u32::MAX, 9, U32), 2);
    eq(sys!(WAKE, &*a, u32::MAX, 9, U32), 1);
    hs.into_iter().for_each(|h| eq(h.join().unwrap(), 0));
}

fn requeue_errors() {
    let (a, b) = (AtomicU32::new(0), AtomicU32::new(0));
    let (p, q) = ((&raw const a) as usize, (&raw const b) as usize);
    err(sys!(REQUEUE, &pair(p, 1, q, 2), 0, 1, 1), EAGAIN);
    err(sys!(REQUEUE, &pair(p, 0, q, 2), 1, 1, 1), EINVAL);
    err(sys!(REQUEUE, 0, 0, 1, 1), EINVAL);
    err(sys!(REQUEUE, bad(), 0, 1, 1), EFAULT);
    err(sys!(REQUEUE, &pair(p, 0, q, 1), 0, 1, 1), EINVAL);
    err(sys!(REQUEUE, &pair(p, 0, q, 2), 0, -1, 1), EINVAL);
    err(sys!(REQUEUE, &pair(p, 0, q, 2), 0, 1, -1), EINVAL);
    err(sys!(REQUEUE, &pair(p, 0, bad() as usize, 2), 0, 1, 1), EFAULT);
}

fn waitv_errors() {
    let a = AtomicU32::new(0);
    let p = (&raw const a) as u64;
    let f = |v: &[u64]| sys!(SYS_futex_waitv, v, v.len() / 3, 0, 0, 0);
    err(f(&[1, p, 2]), EAGAIN);
    err(f(&[0, p, 0]), EINVAL);
    err(f(&[0, p + 1, 2]), EINVAL);
    err(f(&[1 << 32, p, 2]), EINVAL);
    err(f(&[0, p, 2 | 1 << 32]), EINVAL);
    err(f(&[0, bad() as u64, 2]), EFAULT);
    err(f(&[1, p, 2, 0, bad() as u64, 2]), EFAULT);
    err(sys!(SYS_futex_waitv, &[0, p, 2], 1, 1, 0, 0), EINVAL);
    err(sys!(SYS_futex_waitv, &[0, p, 2], 1, 0, &[0i64, 0], 7), EINVAL);
}

fn waitv_timeouts() {
    let a = AtomicU32::new(0);
    let v = [0u64, (&raw const a) as u64, 2];
    for clock in [CLOCK_MONOTONIC, CLOCK_REALTIME] {
        let t = at(clock, 20);
        err(sys!(SYS_futex_waitv, &v, 1, 0, &t, clock), ETIMEDOUT);
    }
    eq(a.load(SeqCst), 0);
}
