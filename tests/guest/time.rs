//! nanosleep(2), clock_gettime(2), clock_nanosleep(2), setitimer(2), timer_create(2), times(2), gettimeofday(2).

use guest_tests::*;
use libc::*;

cases![
    sleeps, sleep_errors, clocks, clock_errors, clock_resolution, monotonic_advances, vdso_and_call_agree, cpu_clocks, clock_nanosleep_absolute,
    clock_nanosleep_errors, gettimeofday_agrees, time_call, itimer_real, itimer_interval_and_value, itimer_errors, itimer_virtual, posix_timer,
    posix_timer_overrun, posix_timer_errors, times_call, getrusage_call, settime_denied, sleep_costs_no_cpu, short_sleeps, deleted_timer,
    new_threads_begin_at_zero, first_of_two_errors
];

fn now(c: i32) -> i64 {
    let mut t = [0i64; 2];
    ok(sys!(SYS_clock_gettime, c, &mut t));
    t[0] * 1_000_000_000 + t[1]
}

fn sleeps() {
    let b = now(CLOCK_MONOTONIC);
    eq(sys!(SYS_nanosleep, &[0i64, 30_000_000], 0), 0);
    let d = now(CLOCK_MONOTONIC) - b;
    check((30_000_000..20_000_000_000).contains(&d), "30 ms");
    eq(sys!(SYS_nanosleep, &[0i64, 0], 0), 0);
}

fn sleep_errors() {
    err(sys!(SYS_nanosleep, bad(), 0), EFAULT);
    err(sys!(SYS_nanosleep, &[0i64, 1_000_000_000], 0), EINVAL);
    err(sys!(SYS_nanosleep, &[0i64, -1], 0), EINVAL);
    err(sys!(SYS_nanosleep, &[-1i64, 0], 0), EINVAL);
}

fn clocks() {
    for c in [CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
        CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI] {
        check(now(c) > 0, "positive");
    }
    check(now(CLOCK_REALTIME) > 1_600_000_000_000_000_000, "after 2020");
}

fn clock_errors() {
    let mut t = [0i64; 2];
    err(sys!(SYS_clock_gettime, 99, &mut t), EINVAL);
    err(sys!(SYS_clock_gettime, CLOCK_MONOTONIC, bad()), EFAULT);
    err(sys!(SYS_clock_getres, 99, &mut t), EINVAL);
    eq(sys!(SYS_clock_getres, CLOCK_MONOTONIC, 0), 0);
}

fn clock_resolution() {
    let mut t = [0i64; 2];
    ok(sys!(SYS_clock_getres, CLOCK_MONOTONIC, &mut t));
    eq(t, [0, 1]);
    ok(sys!(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, &mut t));
    check(t[0] == 0 && t[1] >= 1_000_000, "a tick");
}

fn monotonic_advances() {
    let mut last = 0;
    for _ in 0..2000 {
        let n = now(CLOCK_MONOTONIC);
        check(n >= last, "never back");
        last = n;
    }
}

fn vdso_and_call_agree() {
    let mut t: timespec = unsafe { std::mem::zeroed() };
    for c in [CLOCK_MONOTONIC, CLOCK_REALTIME] {
        let a = now(c);
        eq(unsafe { clock_gettime(c, &mut t) }, 0);
        let b = t.tv_sec * 1_000_000_000 + t.tv_nsec;
        let z = now(c);
        check(a <= b && b <= z, "between two system calls");
    }
}

fn spin(ms: i64) {
    let end = now_ms() + ms;
    while now_ms() < end {
        std::hint::spin_loop();
    }
}

fn cpu_clocks() {
    let (p, t) = (now(CLOCK_PROCESS_CPUTIME_ID), now(CLOCK_THREAD_CPUTIME_ID));
    let end = now_ms() + 10_000;
    while now(CLOCK_THREAD_CPUTIME_ID) - t < 30_000_000 {
        check(now_ms() < end, "30 ms of this thread within 10 s");
        spin(5);
    }
    let spun = now(CLOCK_THREAD_CPUTIME_ID) - t;
    sleep_ms(20);
    let (p, t) = (now(CLOCK_PROCESS_CPUTIME_ID) - p, now(CLOCK_THREAD_CPUTIME_ID) - t);
    check(t - spun < 10_000_000, "sleeping costs nothing");
    check(p >= t - 2_000_000, "the process has all its threads' time");
}

fn clock_nanosleep_absolute() {
    let mut t = [0i64; 2];
    ok(sys!(SYS_clock_gettime, CLOCK_MONOTONIC, &mut t));
    let at = t[0] * 1_000_000_000 + t[1] + 20_000_000;
    eq(sys!(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &[at / 1_000_000_000, at % 1_000_000_000], 0), 0);
    check(now(CLOCK_MONOTONIC) >= at, "reached");
    eq(sys!(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &[1i64, 0], 0), 0);
}

fn clock_nanosleep_errors() {
    err(sys!(SYS_clock_nanosleep, 99, 0, &[0i64, 0], 0), EINVAL);
    errs(sys!(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &[0i64, 0], 0), &[EINVAL, EOPNOTSUPP]);
    err(sys!(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, bad(), 0), EFAULT);
    err(sys!(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &[0i64, -1], 0), EINVAL);
}

fn gettimeofday_agrees() {
    let mut t = [0i64; 2];
    let a = now(CLOCK_REALTIME) / 1000;
    eq(sys!(SYS_gettimeofday, &mut t, 0), 0);
    let b = t[0] * 1_000_000 + t[1];
    check(a <= b && b <= now(CLOCK_REALTIME) / 1000, "between");
    err(sys!(SYS_gettimeofday, bad(), 0), EFAULT);
}

fn time_call() {
    let mut t = 0i64;
    let r = sys!(SYS_time, &mut t);
    eq(unsafe { (&raw const t).read_volatile() }, r);
    check((now(CLOCK_REALTIME) / 1_000_000_000 - r).abs() <= 1, "now");
    err(sys!(SYS_time, bad()), EFAULT);
}

fn itimer_real() {
    let _on = sig::on(SIGALRM, 0);
    let b = now_ms();
    // Again and again: the first may come before the pause.
    ok(sys!(SYS_setitimer, ITIMER_REAL, &[0i64, 20_000, 0, 20_000], 0));
    err(sys!(SYS_pause), EINTR);
    ok(sys!(SYS_setitimer, ITIMER_REAL, &[0i64; 4], 0));
    took(b, 19);
}

fn itimer_interval_and_value() {
    let _on = sig::on(SIGALRM, 0);
    let mut old = [0i64; 4];
    ok(sys!(SYS_setitimer, ITIMER_REAL, &[0i64, 10_000, 0, 10_000], 0));
    for _ in 0..3 {
        err(sys!(SYS_pause), EINTR);
    }
    ok(sys!(SYS_getitimer, ITIMER_REAL, &mut old));
    check(old[1] == 10_000 && old[3] <= 10_000, "interval and rest");
    ok(sys!(SYS_setitimer, ITIMER_REAL, &[0i64; 4], &mut old));
    eq(old[1], 10_000);
    check(sig::hits() >= 3, "three times");
}

fn itimer_errors() {
    err(sys!(SYS_setitimer, 9, &[0i64; 4], 0), EINVAL);
    err(sys!(SYS_setitimer, ITIMER_REAL, bad(), 0), EFAULT);
    err(sys!(SYS_setitimer, ITIMER_REAL, &[0i64, 0, 0, 1_000_000], 0), EINVAL);
    err(sys!(SYS_getitimer, 9, &mut [0i64; 4]), EINVAL);
    err(sys!(SYS_getitimer, ITIMER_REAL, bad()), EFAULT);
}

fn itimer_virtual() {
    let _on = sig::on(SIGVTALRM, 0);
    ok(sys!(SYS_setitimer, ITIMER_VIRTUAL, &[0i64, 0, 0, 20_000], 0));
    let end = now_ms() + 3000;
    let mut x = 0u64;
    while sig::hits() == 0 && now_ms() < end {
        for i in 0..100_000u64 {
            x = std::hint::black_box(x ^ i);
        }
    }
    eq(sig::hits(), 1);
}

fn event(sig: i32) -> [u64; 8] {
    let mut e = [0u64; 8];
    e[0] = 0xabcd;
    e[1] = sig as u64; // signo, and SIGEV_SIGNAL above it
    e
}

fn posix_timer() {
    let _on = sig::on(45, 0);
    let mut id = -1i32;
    ok(sys!(SYS_timer_create, CLOCK_MONOTONIC, &event(45), &mut id));
    let id = unsafe { (&raw const id).read_volatile() };
    ok(sys!(SYS_timer_settime, id, 0, &[0i64, 10_000_000, 0, 10_000_000], 0));
    for _ in 0..2 {
        err(sys!(SYS_pause), EINTR);
    }
    let mut v = [0i64; 4];
    ok(sys!(SYS_timer_gettime, id, &mut v));
    check(v[1] == 10_000_000 && v[3] > 0, "interval and rest");
    ok(sys!(SYS_timer_delete, id));
    err(sys!(SYS_timer_gettime, id, &mut v), EINVAL);
}

fn posix_timer_overrun() {
    let _on = sig::on(45, 0);
    let old = sig::mask(SIG_BLOCK, sig::set(&[45]));
    let mut id = -1i32;
    ok(sys!(SYS_timer_create, CLOCK_MONOTONIC, &event(45), &mut id));
    let id = unsafe { (&raw const id).read_volatile() };
    let begun = now(CLOCK_MONOTONIC);
    ok(sys!(SYS_timer_settime, id, 0, &[0i64, 5_000_000, 0, 5_000_000], 0));
    sleep_ms(52);
    let mut i: siginfo_t = unsafe { std::mem::zeroed() };
    eq(sys!(SYS_rt_sigtimedwait, &sig::set(&[45]), &mut i, &[0i64, 0], 8), 45);
    eq(i.si_code, -2); // SI_TIMER
    eq(unsafe { i.si_value().sival_ptr } as usize, 0xabcd);
    let n = sys!(SYS_timer_getoverrun, id);
    check((7..=(now(CLOCK_MONOTONIC) - begun) / 5_000_000).contains(&n), "about nine more expirations");
    ok(sys!(SYS_timer_delete, id));
    sig::mask(SIG_SETMASK, old);
}

fn posix_timer_errors() {
    let mut id = 0i32;
    err(sys!(SYS_timer_create, 99, 0, &mut id), EINVAL);
    err(sys!(SYS_timer_create, CLOCK_MONOTONIC, bad(), &mut id), EFAULT);
    err(sys!(SYS_timer_create, CLOCK_MONOTONIC, 0, bad()), EFAULT);
    err(sys!(SYS_timer_create, CLOCK_MONOTONIC, &event(99), &mut id), EINVAL);
    err(sys!(SYS_timer_settime, 4242, 0, &[0i64; 4], 0), EINVAL);
    err(sys!(SYS_timer_delete, 4242), EINVAL);
    err(sys!(SYS_timer_getoverrun, 4242), EINVAL);
}

fn deleted_timer() {
    let _on = sig::on(SIGALRM, 0);
    let mut id = -1i32;
    // Without an event: SIGALRM.
    ok(sys!(SYS_timer_create, CLOCK_REALTIME, 0, &mut id));
    let id = unsafe { (&raw const id).read_volatile() };
    let begun = now_ms();
    ok(sys!(SYS_timer_settime, id, 0, &[0i64, 0, 0, 200_000_000], 0));
    ok(sys!(SYS_timer_delete, id));
    // Unless it was deleted too late.
    let late = now_ms() - begun > 150;
    sleep_ms(220);
    check(late || sig::hits() == 0, "no signal");
}

fn times_call() {
    let mut t = [0i64; 4];
    let begin = now_ms();
    let a = ok(sys!(SYS_times, &mut t));
    sleep_ms(30);
    let b = ok(sys!(SYS_times, 0));
    check((2..=(now_ms() - begin) / 10 + 1).contains(&(b - a)), "ticks of 10 ms");
    err(sys!(SYS_times, bad()), EFAULT);
}

fn getrusage_call() {
    let mut u: rusage = unsafe { std::mem::zeroed() };
    spin(20);
    ok(sys!(SYS_getrusage, RUSAGE_SELF, &mut u));
    check(u.ru_utime.tv_sec * 1_000_000 + u.ru_utime.tv_usec + u.ru_stime.tv_usec > 5_000, "time was used");
    check(u.ru_maxrss > 100, "memory was used");
    ok(sys!(SYS_getrusage, RUSAGE_THREAD, &mut u));
    ok(sys!(SYS_getrusage, RUSAGE_CHILDREN, &mut u));
    err(sys!(SYS_getrusage, 7, &mut u), EINVAL);
    err(sys!(SYS_getrusage, RUSAGE_SELF, bad()), EFAULT);
}

fn settime_denied() {
    if sys!(SYS_geteuid) == 0 {
        skip("root may set the clock");
    }
    err(sys!(SYS_clock_settime, CLOCK_REALTIME, &[1i64, 0]), EPERM);
    err(sys!(SYS_clock_settime, CLOCK_MONOTONIC, &[1i64, 0]), EINVAL);
}

fn sleep_costs_no_cpu() {
    let b = now(CLOCK_THREAD_CPUTIME_ID);
    sleep_ms(100);
    check(now(CLOCK_THREAD_CPUTIME_ID) - b < 20_000_000, "asleep");
}

fn short_sleeps() {
    let sleep = |_| {
        let begin = now(CLOCK_MONOTONIC);
        eq(sys!(SYS_nanosleep, &[0i64, 100_000], 0), 0);
        now(CLOCK_MONOTONIC) - begin
    };
    // On a busy machine some are late.
    let least = (0..50).map(sleep).min();
    check(least.is_some_and(|ns| (100_000..20_000_000).contains(&ns)), &format!("{least:?} of 100 us"));
}

/// User and system time of a thread in clock ticks, as its stat file has it.
fn ticks(tid: i64) -> i64 {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).expect("its stat");
    let rest: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    rest[11..13].iter().map(|t| t.parse::<i64>().expect("a number")).sum()
}

/// What an earlier thread used is no part of a later one's account, though both may run on the same host thread.
fn new_threads_begin_at_zero() {
    in_child(|| {
        let micros = |t: timeval| t.tv_sec * 1_000_000 + t.tv_usec;
        for _ in 0..6 {
            let one = std::thread::spawn(move || {
                let own = now(CLOCK_THREAD_CPUTIME_ID);
                let mut u: rusage = unsafe { std::mem::zeroed() };
                ok(sys!(SYS_getrusage, RUSAGE_THREAD, &mut u));
                let used = micros(u.ru_utime) + micros(u.ru_stime);
                let shown = ticks(ok(sys!(SYS_gettid)));
                let faults = u.ru_minflt;
                while now(CLOCK_THREAD_CPUTIME_ID) - own < 60_000_000 {
                    (0..20_000).for_each(|_| std::hint::spin_loop());
                }
                // Touched for the first time.
                let pages = vec![1u8; 4 << 20];
                ok(sys!(SYS_getrusage, RUSAGE_THREAD, &mut u));
                let after = micros(u.ru_utime) + micros(u.ru_stime);
                (own, used, shown, faults, after, std::hint::black_box(pages).len())
            });
            let (own, used, shown, faults, after, _) = one.join().expect("no panic");
            check(own < 30_000_000, &format!("{own} ns by its clock"));
            check(used < 30_000, &format!("{used} us by getrusage"));
            check(shown <= 3, &format!("{shown} ticks in its stat"));
            check(faults < 500, &format!("{faults} faults"));
            check(after >= 50_000, &format!("{after} us in the end"));
        }
    });
}

/// Arguments are judged in the order of Linux. Nothing here would set a clock, whoever may.
fn first_of_two_errors() {
    err(sys!(SYS_clock_settime, CLOCK_MONOTONIC, bad()), EINVAL);
    err(sys!(SYS_clock_settime, 99, bad()), EINVAL);
    err(sys!(SYS_clock_settime, CLOCK_REALTIME, bad()), EFAULT);
    err(sys!(SYS_clock_settime, CLOCK_REALTIME, &[1i64, 1_000_000_000]), EINVAL);
    err(sys!(SYS_clock_settime, CLOCK_REALTIME, &[-1i64, 0]), EINVAL);
    err(sys!(SYS_settimeofday, bad(), 0), EFAULT);
    err(sys!(SYS_settimeofday, 0, bad()), EFAULT);
    err(sys!(SYS_settimeofday, &[1i64, -1], bad()), EINVAL);
    err(sys!(SYS_settimeofday, &[1i64, 1_000_001], bad()), EINVAL);
    err(sys!(SYS_settimeofday, &[-1i64, 0], bad()), EFAULT);
    err(sys!(SYS_settimeofday, &[-1i64, 0], 0), EINVAL);
    err(sys!(SYS_settimeofday, &[1i64, 1_000_000], 0), EINVAL);
    err(sys!(SYS_timerfd_settime, -1, 99, bad(), 0), EFAULT);
    err(sys!(SYS_timerfd_settime, -1, 99, &[0i64; 4], 0), EINVAL);
    err(sys!(SYS_timerfd_settime, -1, 0, &[0i64, 0, 0, 1_000_000_000], 0), EINVAL);
    err(sys!(SYS_timerfd_settime, -1, 0, &[0i64; 4], 0), EBADF);
}
