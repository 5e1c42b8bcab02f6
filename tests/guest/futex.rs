//! futex(2), threads and their locks.

use guest_tests::call::futex as fx;
use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Condvar, Mutex};

cases![
    wait_value_differs, wait_timeout, wait_and_wake, wake_counts, bitset, bitset_absolute_timeout, requeue, cmp_requeue_differs, wake_op,
    errors, shared_between_processes, private_flag, eintr, robust_list, robust_owner_died, set_tid_address, hundred_threads,
    mutex_contended, condvar, barrier, thread_local_storage, thread_stack_grows, lock_pi, waitv, many_waiters_all_wake, exit_wakes_joiner
];

fn wait_value_differs() {
    err(fx(&AtomicU32::new(1), FUTEX_WAIT, 2, 0), EAGAIN);
    err(fx(&AtomicU32::new(1), FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2, 0), EAGAIN);
}

fn wait_timeout() {
    let w = AtomicU32::new(1);
    let begin = now_ms();
    let t = [0i64, 30_000_000];
    err(fx(&w, FUTEX_WAIT, 1, t.as_ptr() as usize), ETIMEDOUT);
    took(begin, 29);
    let t = [0i64, 0];
    err(fx(&w, FUTEX_WAIT, 1, t.as_ptr() as usize), ETIMEDOUT);
}

fn wait_and_wake() {
    let w = Arc::new(AtomicU32::new(0));
    let v = w.clone();
    let h = std::thread::spawn(move || fx(&v, FUTEX_WAIT, 0, 0));
    until("somebody waits", || fx(&w, FUTEX_WAKE, 1, 0) == 1);
    eq(h.join().unwrap(), 0);
    eq(fx(&w, FUTEX_WAKE, 1, 0), 0);
}

/// `n` threads waiting on a word, with `op` and bitset `bits`.
fn waiters(w: &Arc<AtomicU32>, n: usize, op: i32, bits: u32) -> Vec<std::thread::JoinHandle<i64>> {
    let wait = || {
        let w = w.clone();
        blocked(move || sys!(SYS_futex, &*w, op, 0, 0, 0, bits))
    };
    (0..n).map(|_| wait()).collect()
}

fn wake_counts() {
    let w = Arc::new(AtomicU32::new(0));
    let hs = waiters(&w, 5, FUTEX_WAIT, 0);
    eq(fx(&w, FUTEX_WAKE, 2, 0), 2);
    eq(fx(&w, FUTEX_WAKE, i32::MAX as u32, 0), 3);
    hs.into_iter().for_each(|h| eq(h.join().unwrap(), 0));
}

fn bitset() {
    let w = Arc::new(AtomicU32::new(0));
    let a = waiters(&w, 1, FUTEX_WAIT_BITSET, 1);
    let b = waiters(&w, 1, FUTEX_WAIT_BITSET, 2);
    eq(sys!(SYS_futex, &*w, FUTEX_WAKE_BITSET, 10, 0, 0, 2), 1);
    b.into_iter().for_each(|h| eq(h.join().unwrap(), 0));
    eq(sys!(SYS_futex, &*w, FUTEX_WAKE_BITSET, 10, 0, 0, 4), 0);
    eq(sys!(SYS_futex, &*w, FUTEX_WAKE_BITSET, 10, 0, 0, -1), 1);
    a.into_iter().for_each(|h| eq(h.join().unwrap(), 0));
    err(sys!(SYS_futex, &*w, FUTEX_WAIT_BITSET, 0, 0, 0, 0), EINVAL);
    err(sys!(SYS_futex, &*w, FUTEX_WAKE_BITSET, 1, 0, 0, 0), EINVAL);
}

fn bitset_absolute_timeout() {
    let w = AtomicU32::new(0);
    for (clock, flag) in [(CLOCK_MONOTONIC, 0), (CLOCK_REALTIME, FUTEX_CLOCK_REALTIME)] {
        let mut t = [0i64; 2];
        ok(sys!(SYS_clock_gettime, clock, &mut t));
        t[1] += 20_000_000;
        if t[1] >= 1_000_000_000 {
            t = [t[0] + 1, t[1] - 1_000_000_000];
        }
        let begin = now_ms();
        err(sys!(SYS_futex, &w, FUTEX_WAIT_BITSET | flag, 0, &t, 0, -1), ETIMEDOUT);
        took(begin, 15);
        // In the past: at once.
        err(sys!(SYS_futex, &w, FUTEX_WAIT_BITSET | flag, 0, &[1i64, 0], 0, -1), ETIMEDOUT);
    }
}

fn requeue() {
    let (a, b) = (Arc::new(AtomicU32::new(0)), AtomicU32::new(0));
    let hs = waiters(&a, 4, FUTEX_WAIT, 0);
    // One wakes, the others move.
    let r = sys!(SYS_futex, &*a, FUTEX_CMP_REQUEUE, 1, 100usize, &b, 0);
    eq(r, 4);
    eq(fx(&a, FUTEX_WAKE, 100, 0), 0);
    eq(fx(&b, FUTEX_WAKE, 100, 0), 3);
    hs.into_iter().for_each(|h| eq(h.join().unwrap(), 0));
}

fn cmp_requeue_differs() {
    let (a, b) = (AtomicU32::new(5), AtomicU32::new(0));
    err(sys!(SYS_futex, &a, FUTEX_CMP_REQUEUE, 1, 1usize, &b, 6), EAGAIN);
}

fn wake_op() {
    let (a, b) = (Arc::new(AtomicU32::new(0)), AtomicU32::new(7));
    let hs = waiters(&a, 1, FUTEX_WAIT, 0);
    // *b = 9 (FUTEX_OP_SET), and wake on b if it was 7.
    let op = 9 << 12 | 7;
    eq(sys!(SYS_futex, &*a, FUTEX_WAKE_OP, 1, 1usize, &b, op), 1);
    eq(b.load(SeqCst), 9);
    hs.into_iter().for_each(|h| eq(h.join().unwrap(), 0));
}

fn errors() {
    let w = AtomicU32::new(0);
    let p = (&raw const w) as usize;
    err(sys!(SYS_futex, p + 1, FUTEX_WAIT, 0, 0, 0, 0), EINVAL);
    err(sys!(SYS_futex, p + 2, FUTEX_WAKE, 1, 0, 0, 0), EINVAL);
    err(sys!(SYS_futex, bad(), FUTEX_WAIT, 0, 0, 0, 0), EFAULT);
    err(sys!(SYS_futex, bad(), FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, 0, 0, 0), EFAULT);
    err(sys!(SYS_futex, p, FUTEX_WAIT, 0, bad(), 0, 0), EFAULT);
    err(sys!(SYS_futex, p, FUTEX_WAIT, 0, &[0i64, -1], 0, 0), EINVAL);
    err(sys!(SYS_futex, p, FUTEX_WAIT, 0, &[-1i64, 0], 0, 0), EINVAL);
    err(sys!(SYS_futex, p, 99, 0, 0, 0, 0), ENOSYS);
    // A private wake looks at nothing.
    eq(sys!(SYS_futex, bad(), FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0), 0);
}

fn shared_between_processes() {
    let p = ok(sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) as usize;
    // SAFETY: the page stays mapped as long as the test.
    let w = unsafe { &*(p as *const AtomicU32) };
    let pid = child(|| fx(w, FUTEX_WAIT, 0, 0) as i32 + 10);
    until("somebody waits", || fx(w, FUTEX_WAKE, 1, 0) == 1);
    exits(pid, 10);
    ok(sys!(SYS_munmap, p, 4096));
}

fn private_flag() {
    let w = Arc::new(AtomicU32::new(0));
    let hs = waiters(&w, 2, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0);
    eq(fx(&w, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 2, 0), 2);
    hs.into_iter().for_each(|h| eq(h.join().unwrap(), 0));
}

fn eintr() {
    let w = AtomicU32::new(0);
    for op in [FUTEX_WAIT, FUTEX_WAIT | FUTEX_PRIVATE_FLAG] {
        let _on = sig::on(SIGUSR1, 0);
        let h = sig::later(SIGUSR1, 20);
        err(fx(&w, op, 0, 0), EINTR);
        h.join().unwrap();
        eq(sig::hits(), 1);
    }
}

fn robust_list() {
    let (mut head, mut len) = (0usize, 0usize);
    ok(sys!(SYS_get_robust_list, 0, &mut head, &mut len));
    eq(len, 24);
    check(head != 0, "glibc sets one");
    err(sys!(SYS_set_robust_list, head, 8), EINVAL);
    err(sys!(SYS_get_robust_list, 99_999_999, &mut head, &mut len), ESRCH);
    err(sys!(SYS_get_robust_list, 0, bad(), &mut len), EFAULT);
}

fn robust_owner_died() {
    // SAFETY: any bytes are a mutex before it is initialized.
    let m: &pthread_mutex_t = Box::leak(Box::new(unsafe { std::mem::zeroed() }));
    let p = (m as *const pthread_mutex_t).cast_mut();
    // SAFETY: the mutex is leaked, so it lives on.
    unsafe {
        let mut a: pthread_mutexattr_t = std::mem::zeroed();
        pthread_mutexattr_init(&mut a);
        eq(pthread_mutexattr_setrobust(&mut a, PTHREAD_MUTEX_ROBUST), 0);
        eq(pthread_mutex_init(p, &a), 0);
    }
    let at = p as usize;
    // SAFETY: the same one.
    std::thread::spawn(move || unsafe { pthread_mutex_lock(at as *mut pthread_mutex_t) }).join().unwrap();
    // SAFETY: the same one.
    unsafe {
        eq(pthread_mutex_lock(p), EOWNERDEAD);
        eq(pthread_mutex_consistent(p), 0);
        eq(pthread_mutex_unlock(p), 0);
    }
}

fn set_tid_address() {
    let tid = sys!(SYS_gettid);
    // The address is only noted, even a bad one.
    in_child(|| {
        eq(sys!(SYS_set_tid_address, bad()), sys!(SYS_gettid));
    });
    eq(sys!(SYS_gettid), tid);
}

fn hundred_threads() {
    let n = Arc::new(AtomicI32::new(0));
    let go = Arc::new(Barrier::new(101));
    let hs: Vec<_> = (0..100)
        .map(|i| {
            let (n, go) = (n.clone(), go.clone());
            std::thread::spawn(move || {
                go.wait();
                n.fetch_add(i, SeqCst);
                i
            })
        })
        .collect();
    go.wait();
    eq(hs.into_iter().map(|h| h.join().unwrap()).sum::<i32>(), 4950);
    eq(n.load(SeqCst), 4950);
}

fn mutex_contended() {
    let m = Arc::new(Mutex::new(0u64));
    let hs: Vec<_> = (0..8)
        .map(|_| {
            let m = m.clone();
            std::thread::spawn(move || {
                for _ in 0..2000 {
                    *m.lock().unwrap() += 1;
                }
            })
        })
        .collect();
    hs.into_iter().for_each(|h| h.join().unwrap());
    eq(*m.lock().unwrap(), 16_000);
}

fn condvar() {
    let s = Arc::new((Mutex::new(0), Condvar::new()));
    let t = s.clone();
    let h = std::thread::spawn(move || {
        for want in [1, 3, 5, 7] {
            let mut g = t.0.lock().unwrap();
            while *g != want {
                g = t.1.wait(g).unwrap();
            }
            *g += 1;
            t.1.notify_all();
        }
    });
    for want in [0, 2, 4, 6] {
        let mut g = s.0.lock().unwrap();
        while *g != want {
            g = s.1.wait(g).unwrap();
        }
        *g += 1;
        s.1.notify_all();
    }
    h.join().unwrap();
    eq(*s.0.lock().unwrap(), 8);
    let g = s.0.lock().unwrap();
    let (_g, t) = s.1.wait_timeout(g, std::time::Duration::from_millis(20)).unwrap();
    check(t.timed_out(), "a timed wait ends");
}

fn barrier() {
    let b = Arc::new(Barrier::new(4));
    let hs: Vec<_> = (0..4)
        .map(|_| {
            let b = b.clone();
            std::thread::spawn(move || (0..50).filter(|_| b.wait().is_leader()).count())
        })
        .collect();
    eq(hs.into_iter().map(|h| h.join().unwrap()).sum::<usize>(), 50);
}

thread_local!(static LOCAL: std::cell::Cell<i32> = const { std::cell::Cell::new(1) });

fn thread_local_storage() {
    LOCAL.set(5);
    eq(std::thread::spawn(|| LOCAL.get()).join().unwrap(), 1);
    eq(LOCAL.get(), 5);
    LOCAL.set(1);
}

fn thread_stack_grows() {
    let h = std::thread::Builder::new().stack_size(16 << 20).spawn(|| {
        let big = std::hint::black_box([1u8; 8 << 20]);
        big.iter().step_by(4096).map(|b| u32::from(*b)).sum::<u32>()
    });
    eq(h.unwrap().join().unwrap(), 2048);
}

fn lock_pi() {
    let w = AtomicU32::new(0);
    eq(fx(&w, FUTEX_LOCK_PI, 0, 0), 0);
    eq(i64::from(w.load(SeqCst)), sys!(SYS_gettid));
    err(fx(&w, FUTEX_LOCK_PI, 0, 0), EDEADLK);
    eq(fx(&w, FUTEX_UNLOCK_PI, 0, 0), 0);
    eq(w.load(SeqCst), 0);
    err(fx(&w, FUTEX_UNLOCK_PI, 0, 0), EPERM);
}

fn waitv() {
    let (a, b) = (AtomicU32::new(0), Arc::new(AtomicU32::new(0)));
    // val, uaddr, flags (32 bits): one entry for each word.
    let v = [0u64, (&raw const a) as u64, 2, 0, Arc::as_ptr(&b) as u64, 2];
    let c = b.clone();
    let h = std::thread::spawn(move || {
        until("somebody waits", || fx(&c, FUTEX_WAKE, 1, 0) == 1);
    });
    eq(sys!(SYS_futex_waitv, &v, 2, 0, 0, 0), 1);
    h.join().unwrap();
    err(sys!(SYS_futex_waitv, &v, 0, 0, 0, 0), EINVAL);
    err(sys!(SYS_futex_waitv, &v, 129, 0, 0, 0), EINVAL);
    err(sys!(SYS_futex_waitv, bad(), 1, 0, 0, 0), EFAULT);
}

fn many_waiters_all_wake() {
    let w = Arc::new(AtomicU32::new(0));
    let hs = waiters(&w, 60, FUTEX_WAIT, 0);
    eq(fx(&w, FUTEX_WAKE, 1000, 0), 60);
    hs.into_iter().for_each(|h| eq(h.join().unwrap(), 0));
}

fn exit_wakes_joiner() {
    for _ in 0..200 {
        eq(std::thread::spawn(|| 7).join().unwrap(), 7);
    }
}
