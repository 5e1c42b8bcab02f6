//! futex(2): locks with an owner, and robust lists of tasks that are killed.

use guest_tests::call::futex as fx;
use guest_tests::*;
use libc::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::SeqCst};

cases![
    take_and_give, trylock, waits_and_is_given, many_waiters, timeouts, clocks, deadlock_chain, errors, mixed_with_wake,
    owner_dies, owner_process_killed, robust_list_killed, robust_pi, signal_restarts, requeue_pi, requeue_pi_errors,
    pthread_pi_mutex, pthread_robust_shared, shared_file_key, wake_of_nothing
];

const TID: u32 = 0x3fff_ffff;
const WAITERS: u32 = 0x8000_0000;
const DIED: u32 = 0x4000_0000;

fn tid() -> u32 {
    sys!(SYS_gettid) as u32
}

/// Locks as the C library does: by a swap, else by the call.
fn lock(w: &AtomicU32) -> i64 {
    match w.compare_exchange(0, tid(), SeqCst, SeqCst) {
        Ok(_) => 0,
        Err(_) => fx(w, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0),
    }
}

fn unlock(w: &AtomicU32) -> i64 {
    match w.compare_exchange(tid(), 0, SeqCst, SeqCst) {
        Ok(_) => 0,
        Err(_) => fx(w, FUTEX_UNLOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0),
    }
}

fn wait_for(w: &AtomicU32, bit: u32) {
    until("the bit appears", || w.load(SeqCst) & bit != 0);
    sleep_ms(20);
}

fn take_and_give() {
    let w = AtomicU32::new(0);
    for op in [FUTEX_LOCK_PI, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, FUTEX_LOCK_PI2] {
        eq(fx(&w, op, 0, 0), 0);
        eq(w.load(SeqCst), tid());
        err(fx(&w, op, 0, 0), EDEADLK);
        eq(fx(&w, FUTEX_UNLOCK_PI, 0, 0), 0);
        eq(w.load(SeqCst), 0);
    }
    err(fx(&w, FUTEX_UNLOCK_PI, 0, 0), EPERM);
    // A dead owner's mark stays for the next one.
    w.store(DIED, SeqCst);
    eq(fx(&w, FUTEX_LOCK_PI, 0, 0), 0);
    eq(w.load(SeqCst), DIED | tid());
    eq(fx(&w, FUTEX_UNLOCK_PI, 0, 0), 0);
    eq(w.load(SeqCst), 0);
}

fn trylock() {
    let w = Arc::new(AtomicU32::new(0));
    eq(fx(&w, FUTEX_TRYLOCK_PI, 0, 0), 0);
    err(fx(&w, FUTEX_TRYLOCK_PI, 0, 0), EDEADLK);
    let v = w.clone();
    std::thread::spawn(move || err(fx(&v, FUTEX_TRYLOCK_PI, 0, 0), EAGAIN)).join().unwrap();
    eq(w.load(SeqCst) & TID, tid());
    eq(fx(&w, FUTEX_UNLOCK_PI, 0, 0), 0);
    eq(w.load(SeqCst), 0);
}

fn waits_and_is_given() {
    let w = Arc::new(AtomicU32::new(0));
    eq(lock(&w), 0);
    let v = w.clone();
    let h = std::thread::spawn(move || {
        eq(fx(&v, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0), 0);
        eq(v.load(SeqCst) & TID, tid());
        eq(unlock(&v), 0);
    });
    wait_for(&w, WAITERS);
    eq(w.load(SeqCst), WAITERS | tid());
    eq(unlock(&w), 0);
    h.join().unwrap();
    eq(w.load(SeqCst), 0);
}

fn many_waiters() {
    let w = Arc::new(AtomicU32::new(0));
    let n = Arc::new(AtomicI64::new(0));
    let hs: Vec<_> = (0..8)
        .map(|_| {
            let (w, n) = (w.clone(), n.clone());
            std::thread::spawn(move || {
                for _ in 0..300 {
                    eq(lock(&w), 0);
                    let seen = n.load(SeqCst);
                    std::hint::black_box(seen);
                    n.store(seen + 1, SeqCst);
                    eq(unlock(&w), 0);
                }
            })
        })
        .collect();
    hs.into_iter().for_each(|h| h.join().unwrap());
    eq(n.load(SeqCst), 2400);
    eq(w.load(SeqCst), 0);
}

fn at(clock: i32, ms: i64) -> [i64; 2] {
    let mut t = [0i64; 2];
    ok(sys!(SYS_clock_gettime, clock, &mut t));
    t[1] += ms * 1_000_000;
    [t[0] + t[1].div_euclid(1_000_000_000), t[1].rem_euclid(1_000_000_000)]
}

fn timeouts() {
    let w = Arc::new(AtomicU32::new(0));
    eq(lock(&w), 0);
    let v = w.clone();
    std::thread::spawn(move || {
        let begin = now_ms();
        let t = at(CLOCK_REALTIME, 30);
        err(fx(&v, FUTEX_LOCK_PI, 0, t.as_ptr() as usize), ETIMEDOUT);
        took(begin, 25);
        err(fx(&v, FUTEX_LOCK_PI, 0, [1i64, 0].as_ptr() as usize), ETIMEDOUT);
        err(fx(&v, FUTEX_LOCK_PI, 0, [1i64, -1].as_ptr() as usize), EINVAL);
        err(fx(&v, FUTEX_LOCK_PI, 0, bad() as usize), EFAULT);
    })
    .join()
    .unwrap();
    // The mark of waiters stays, and does no harm.
    eq(w.load(SeqCst), WAITERS | tid());
    eq(unlock(&w), 0);
    eq(w.load(SeqCst), 0);
}

fn clocks() {
    let w = Arc::new(AtomicU32::new(0));
    eq(lock(&w), 0);
    let v = w.clone();
    std::thread::spawn(move || {
        let t = at(CLOCK_MONOTONIC, 20);
        err(fx(&v, FUTEX_LOCK_PI2, 0, t.as_ptr() as usize), ETIMEDOUT);
        let t = at(CLOCK_REALTIME, 20);
        err(fx(&v, FUTEX_LOCK_PI2 | FUTEX_CLOCK_REALTIME, 0, t.as_ptr() as usize), ETIMEDOUT);
        err(fx(&v, FUTEX_LOCK_PI | FUTEX_CLOCK_REALTIME, 0, t.as_ptr() as usize), ENOSYS);
        err(fx(&v, FUTEX_TRYLOCK_PI | FUTEX_CLOCK_REALTIME, 0, 0), ENOSYS);
        err(fx(&v, FUTEX_WAIT | FUTEX_CLOCK_REALTIME, 0, 0), ENOSYS);
    })
    .join()
    .unwrap();
    eq(unlock(&w), 0);
}

fn deadlock_chain() {
    let (a, b) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    eq(lock(&a), 0);
    let (c, d) = (a.clone(), b.clone());
    let h = std::thread::spawn(move || {
        eq(lock(&d), 0);
        eq(lock(&c), 0);
        eq(unlock(&c), 0);
        eq(unlock(&d), 0);
    });
    wait_for(&a, WAITERS);
    err(fx(&b, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0), EDEADLK);
    eq(unlock(&a), 0);
    h.join().unwrap();
}

fn errors() {
    let w = AtomicU32::new(0);
    let p = (&raw const w) as usize;
    for op in [FUTEX_LOCK_PI, FUTEX_UNLOCK_PI, FUTEX_TRYLOCK_PI, FUTEX_LOCK_PI2] {
        // The owner is looked at before the address.
        let unaligned = if op == FUTEX_UNLOCK_PI { EPERM } else { EINVAL };
        err(sys!(SYS_futex, p + 1, op, 0, 0, 0, 0), unaligned);
        err(sys!(SYS_futex, bad(), op, 0, 0, 0, 0), EFAULT);
        err(sys!(SYS_futex, bad(), op | FUTEX_PRIVATE_FLAG, 0, 0, 0, 0), EFAULT);
    }
    // An owner that does not exist.
    w.store(4_000_000, SeqCst);
    err(fx(&w, FUTEX_LOCK_PI, 0, 0), ESRCH);
    err(fx(&w, FUTEX_UNLOCK_PI, 0, 0), EPERM);
    // Read-only memory.
    let ro = ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) as usize;
    err(sys!(SYS_futex, ro, FUTEX_LOCK_PI, 0, 0, 0, 0), EFAULT);
    // Shared words are looked at even by a wake.
    err(sys!(SYS_futex, bad(), FUTEX_WAKE, 1, 0, 0, 0), EFAULT);
    err(sys!(SYS_futex, usize::MAX - 3, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0), EFAULT);
    // Private memory that nobody can write never changes.
    err(sys!(SYS_futex, ro, FUTEX_WAKE, 1, 0, 0, 0), EFAULT);
    ok(sys!(SYS_munmap, ro, 4096));
}

fn mixed_with_wake() {
    let w = Arc::new(AtomicU32::new(0));
    eq(lock(&w), 0);
    let v = w.clone();
    let h = std::thread::spawn(move || {
        eq(fx(&v, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0), 0);
        eq(unlock(&v), 0);
    });
    wait_for(&w, WAITERS);
    err(fx(&w, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0), EINVAL);
    eq(unlock(&w), 0);
    h.join().unwrap();
    // A plain waiter on the word of a lock.
    let v = w.clone();
    w.store(tid(), SeqCst);
    let mine = tid();
    let h = blocked(move || fx(&v, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, mine, 0));
    let v = w.clone();
    std::thread::spawn(move || err(fx(&v, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0), EINVAL)).join().unwrap();
    eq(fx(&w, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0), 1);
    eq(h.join().unwrap(), 0);
}

fn owner_dies() {
    let w = Arc::new(AtomicU32::new(0));
    let v = w.clone();
    let h = std::thread::spawn(move || {
        eq(lock(&v), 0);
        until("somebody waits", || v.load(SeqCst) & WAITERS != 0);
        sleep_ms(20);
    });
    while w.load(SeqCst) == 0 {
        sleep_ms(1);
    }
    // The owner ends with the lock, which is in no robust list.
    eq(fx(&w, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0), 0);
    eq(w.load(SeqCst) & !WAITERS, DIED | tid());
    eq(fx(&w, FUTEX_UNLOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0), 0);
    h.join().unwrap();
    // Nobody waited: the word stays, and its owner is nobody.
    let v = w.clone();
    std::thread::spawn(move || eq(lock(&v), 0)).join().unwrap();
    sleep_ms(20);
    err(fx(&w, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0), ESRCH);
}

fn shared() -> &'static [AtomicU32; 1024] {
    let p = ok(sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) as usize;
    // SAFETY: the page stays mapped and is nothing but atomics.
    unsafe { &*(p as *const [AtomicU32; 1024]) }
}

fn owner_process_killed() {
    let w = &shared()[0];
    let pid = child(|| {
        eq(fx(w, FUTEX_LOCK_PI, 0, 0), 0);
        loop {
            sleep_ms(1000);
        }
    });
    while w.load(SeqCst) == 0 {
        sleep_ms(1);
    }
    let waiter = child(|| {
        eq(fx(w, FUTEX_LOCK_PI, 0, 0), 0);
        check(w.load(SeqCst) & DIED != 0, "marked");
        eq(w.load(SeqCst) & TID, tid());
        eq(fx(w, FUTEX_UNLOCK_PI, 0, 0), 0);
        7
    });
    wait_for(w, WAITERS);
    ok(sys!(SYS_kill, pid, SIGKILL));
    killed_by(pid, SIGKILL);
    exits(waiter, 7);
    eq(w.load(SeqCst), 0);
}

/// A robust list with one entry, word `w`, in shared memory; `bit` marks a lock with an owner.
fn robust_in(page: &'static [AtomicU32; 1024], bit: usize) {
    let base = page.as_ptr() as usize;
    // SAFETY: inside a page that only this test uses.
    let head = unsafe { &mut *((base + 64) as *mut [usize; 3]) };
    let entry = base + 128;
    // SAFETY: the same page.
    unsafe { *(entry as *mut usize) = base + 64 };
    *head = [entry | bit, (base as isize - entry as isize) as usize, 0];
    ok(sys!(SYS_set_robust_list, base + 64, 24));
}

fn robust_list_killed() {
    let page = shared();
    let w = &page[0];
    let pid = child(|| {
        robust_in(page, 0);
        w.store(tid() | WAITERS, SeqCst);
        loop {
            sleep_ms(1000);
        }
    });
    while w.load(SeqCst) == 0 {
        sleep_ms(1);
    }
    let v = w.load(SeqCst);
    let waiter = child(move || fx(w, FUTEX_WAIT, v, 0) as i32 + 5);
    until_child_asleep(waiter.into());
    ok(sys!(SYS_kill, pid, SIGKILL));
    killed_by(pid, SIGKILL);
    exits(waiter, 5);
    eq(w.load(SeqCst), WAITERS | DIED);
}

fn robust_pi() {
    let page = shared();
    let w = &page[0];
    let pid = child(|| {
        robust_in(page, 1);
        eq(fx(w, FUTEX_LOCK_PI, 0, 0), 0);
        0
    });
    exits(pid, 0);
    eq(w.load(SeqCst), DIED);
    eq(fx(w, FUTEX_LOCK_PI, 0, 0), 0);
    eq(w.load(SeqCst), DIED | tid());
    eq(fx(w, FUTEX_UNLOCK_PI, 0, 0), 0);
}

fn signal_restarts() {
    let w = Arc::new(AtomicU32::new(0));
    eq(lock(&w), 0);
    let on = sig::on(SIGUSR1, 0);
    let (v, id) = (w.clone(), Arc::new(AtomicU32::new(0)));
    let me = id.clone();
    let h = std::thread::spawn(move || {
        me.store(tid(), SeqCst);
        eq(fx(&v, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0), 0);
        eq(unlock(&v), 0);
    });
    wait_for(&w, WAITERS);
    for sent in 1..4 {
        ok(sys!(SYS_tgkill, sys!(SYS_getpid), id.load(SeqCst), SIGUSR1));
        until("the handler runs while the lock is waited for", || sig::hits() == sent);
        until_asleep(id.load(SeqCst).into());
    }
    eq(unlock(&w), 0);
    h.join().unwrap();
    drop(on);
}

fn requeue_pi() {
    let (c, m) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let p = FUTEX_PRIVATE_FLAG;
    let hs: Vec<_> = (0..3)
        .map(|_| {
            let (c, m) = (c.clone(), m.clone());
            blocked(move || {
                eq(sys!(SYS_futex, &*c, FUTEX_WAIT_REQUEUE_PI | p, 0, 0usize, &*m, 0), 0);
                eq(m.load(SeqCst) & TID, tid());
                sleep_ms(10);
                eq(unlock(&m), 0);
            })
        })
        .collect();
    eq(sys!(SYS_futex, &*c, FUTEX_CMP_REQUEUE_PI | p, 1, 100usize, &*m, 0), 3);
    hs.into_iter().for_each(|h| h.join().unwrap());
    eq(m.load(SeqCst) & TID, 0);
    // With the lock held all of them wait for it.
    m.store(0, SeqCst);
    eq(lock(&m), 0);
    let (d, n) = (c.clone(), m.clone());
    let h = blocked(move || {
        eq(sys!(SYS_futex, &*d, FUTEX_WAIT_REQUEUE_PI | p, 0, 0usize, &*n, 0), 0);
        eq(unlock(&n), 0);
    });
    eq(sys!(SYS_futex, &*c, FUTEX_CMP_REQUEUE_PI | p, 1, 0usize, &*m, 0), 1);
    sleep_ms(20);
    eq(m.load(SeqCst), WAITERS | tid());
    eq(unlock(&m), 0);
    h.join().unwrap();
}

fn requeue_pi_errors() {
    let (c, m) = (Arc::new(AtomicU32::new(0)), AtomicU32::new(0));
    let f = |op: i32, val: u32, t: usize, two: &AtomicU32, v3: u32| sys!(SYS_futex, &*c, op, val, t, two, v3);
    err(f(FUTEX_WAIT_REQUEUE_PI, 1, 0, &m, 0), EAGAIN);
    err(f(FUTEX_WAIT_REQUEUE_PI, 0, 0, &c, 0), EINVAL);
    let t = at(CLOCK_MONOTONIC, 20);
    err(f(FUTEX_WAIT_REQUEUE_PI, 0, t.as_ptr() as usize, &m, 0), ETIMEDOUT);
    err(f(FUTEX_CMP_REQUEUE_PI, 2, 1, &m, 0), EINVAL);
    err(f(FUTEX_CMP_REQUEUE_PI, 1, 1, &c, 0), EINVAL);
    err(f(FUTEX_CMP_REQUEUE_PI, 1, 1, &m, 9), EAGAIN);
    eq(f(FUTEX_CMP_REQUEUE_PI, 1, 1, &m, 0), 0);
    // A plain waiter cannot be moved to a lock, nor a lock's be woken.
    let d = c.clone();
    let h = blocked(move || fx(&d, FUTEX_WAIT, 0, 0));
    err(f(FUTEX_CMP_REQUEUE_PI, 1, 1, &m, 0), EINVAL);
    eq(fx(&c, FUTEX_WAKE, 1, 0), 1);
    eq(h.join().unwrap(), 0);
    let d = c.clone();
    let at = (&raw const m) as usize;
    let h = blocked(move || sys!(SYS_futex, &*d, FUTEX_WAIT_REQUEUE_PI, 0, 0usize, at, 0));
    err(fx(&c, FUTEX_WAKE, 1, 0), EINVAL);
    err(f(FUTEX_REQUEUE, 0, 1, &m, 0), EINVAL);
    eq(f(FUTEX_CMP_REQUEUE_PI, 1, 0, &m, 0), 1);
    eq(h.join().unwrap(), 0);
}

fn pthread_pi_mutex() {
    // SAFETY: any bytes are a mutex before it is initialized.
    let m: &pthread_mutex_t = Box::leak(Box::new(unsafe { std::mem::zeroed() }));
    let p = (m as *const pthread_mutex_t) as usize;
    let count: &'static AtomicI64 = Box::leak(Box::new(AtomicI64::new(0)));
    // SAFETY: a mutex that outlives its users; the C library finds it where it was initialized.
    unsafe {
        let mut a: pthread_mutexattr_t = std::mem::zeroed();
        pthread_mutexattr_init(&mut a);
        eq(pthread_mutexattr_setprotocol(&mut a, PTHREAD_PRIO_INHERIT), 0);
        eq(pthread_mutexattr_setrobust(&mut a, PTHREAD_MUTEX_ROBUST), 0);
        eq(pthread_mutex_init(p as *mut pthread_mutex_t, &a), 0);
    }
    let hs: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                for _ in 0..200 {
                    // SAFETY: a mutex that outlives its users; the C library finds it where it was initialized.
                    unsafe {
                        eq(pthread_mutex_lock(p as *mut pthread_mutex_t), 0);
                        let seen = count.load(SeqCst);
                        count.store(seen + 1, SeqCst);
                        eq(pthread_mutex_unlock(p as *mut pthread_mutex_t), 0);
                    }
                }
            })
        })
        .collect();
    hs.into_iter().for_each(|h| h.join().unwrap());
    eq(count.load(SeqCst), 800);
    // SAFETY: a mutex that outlives its users; the C library finds it where it was initialized.
    std::thread::spawn(move || unsafe { pthread_mutex_lock(p as *mut pthread_mutex_t) }).join().unwrap();
    unsafe {
        eq(pthread_mutex_lock(p as *mut pthread_mutex_t), EOWNERDEAD);
        eq(pthread_mutex_consistent(p as *mut pthread_mutex_t), 0);
        eq(pthread_mutex_unlock(p as *mut pthread_mutex_t), 0);
    }
}

fn pthread_robust_shared() {
    let page = shared();
    let p = page.as_ptr() as *mut pthread_mutex_t;
    // SAFETY: a mutex that outlives its users; the C library finds it where it was initialized.
    unsafe {
        let mut a: pthread_mutexattr_t = std::mem::zeroed();
        pthread_mutexattr_init(&mut a);
        eq(pthread_mutexattr_setrobust(&mut a, PTHREAD_MUTEX_ROBUST), 0);
        eq(pthread_mutexattr_setpshared(&mut a, PTHREAD_PROCESS_SHARED), 0);
        eq(pthread_mutex_init(p, &a), 0);
    }
    for _ in 0..10 {
        let pid = child(|| {
            // SAFETY: a mutex that outlives its users; the C library finds it where it was initialized.
            unsafe { pthread_mutex_lock(p) };
            page[200].store(1, SeqCst);
            loop {
                sleep_ms(1000);
            }
        });
        while page[200].load(SeqCst) == 0 {
            sleep_ms(1);
        }
        // SAFETY: a mutex that outlives its users; the C library finds it where it was initialized.
        let waiter = child(|| unsafe { if pthread_mutex_lock(p) == EOWNERDEAD { 3 } else { 4 } });
        sleep_ms(5);
        ok(sys!(SYS_kill, pid, SIGKILL));
        killed_by(pid, SIGKILL);
        exits(waiter, 3);
        // SAFETY: a mutex that outlives its users; the C library finds it where it was initialized.
        unsafe {
            eq(pthread_mutex_lock(p), EOWNERDEAD);
            eq(pthread_mutex_consistent(p), 0);
            eq(pthread_mutex_unlock(p), 0);
        }
        page[200].store(0, SeqCst);
    }
}

fn shared_file_key() {
    let t = Tmp::new();
    let f = t.path("word");
    let fd = ok(sys!(SYS_open, f, O_RDWR | O_CREAT, 0o600));
    ok(sys!(SYS_ftruncate, fd, 8192));
    let map = |off: usize| {
        ok(sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, off)) as usize
    };
    // The same page at two addresses is one word, another page of the file is not.
    let (a, b, other) = (map(0), map(0), map(4096));
    // SAFETY: both pages are mapped above, and all of them is atomics.
    let (wa, wb) = unsafe { (&*(a as *const AtomicU32), &*(b as *const AtomicU32)) };
    let h = blocked(move || fx(wa, FUTEX_WAIT, 0, 0));
    eq(sys!(SYS_futex, other, FUTEX_WAKE, 1, 0, 0, 0), 0);
    eq(fx(wb, FUTEX_WAKE, 1, 0), 1);
    eq(h.join().unwrap(), 0);
    for p in [a, b, other] {
        ok(sys!(SYS_munmap, p, 4096));
    }
    shut([fd as i32]);
}

fn wake_of_nothing() {
    let w = Arc::new(AtomicU32::new(0));
    // A count of nothing, or less, wakes one.
    for n in [0u32, -5i32 as u32] {
        let v = w.clone();
        let h = blocked(move || fx(&v, FUTEX_WAIT, 0, 0));
        eq(fx(&w, FUTEX_WAKE, n, 0), 1);
        eq(h.join().unwrap(), 0);
    }
    let x = AtomicU32::new(0);
    err(sys!(SYS_futex, &*w, FUTEX_REQUEUE, -1, 1usize, &x, 0), EINVAL);
    err(sys!(SYS_futex, &*w, FUTEX_REQUEUE, 1, -1isize as usize, &x, 0), EINVAL);
    err(sys!(SYS_futex, &*w, FUTEX_WAKE_OP, 1, 1usize, &x, 0xfu32 << 24), ENOSYS);
    err(sys!(SYS_futex, &*w, FUTEX_WAKE_OP, 1, 1usize, &x, 5u32 << 28), ENOSYS);
    // Arguments are signed; the shifted ones are bits.
    eq(sys!(SYS_futex, &*w, FUTEX_WAKE_OP, 1, 1usize, &x, 1u32 << 28 | 0xfff << 12), 0);
    eq(x.load(SeqCst), u32::MAX);
    eq(sys!(SYS_futex, &*w, FUTEX_WAKE_OP, 1, 1usize, &x, 11u32 << 28 | 4 << 12), 0);
    eq(x.load(SeqCst), !16);
}
