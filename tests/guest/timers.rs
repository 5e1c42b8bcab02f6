//! Timers and sleeps by processor time, overruns, and what is left of a timer.

use guest_tests::*;
use libc::*;

cases![
    itimer_prof, itimer_virtual_repeats, itimer_by_kind, posix_cpu_timer, posix_cpu_timer_absolute, thread_cpu_timer, timer_of_one_thread, clock_of_other_thread, cpu_timer_errors, nanosleep_by_cpu,
    nanosleep_by_cpu_errors, nanosleep_remaining, overrun_in_siginfo, deleted_timer_signal_is_dropped, set_anew_drops_signal, ignored_timer_goes_on,
    none_timer_counts, alarm_rounds, process_clock_of_child, thread_clock_of_others, children_times, rusage_memory_of_child, rusage_children_maximum,
    adjtimex_reads, settimeofday_denied, times_of_children,
    short_sleeps_and_timers, ignored_signals, fork_has_no_timers, exec_keeps_intervals,
    exec_leaves_threads_clocks, time_of_many_callers, heeded_while_it_expires
];

fn now(c: i32) -> i64 {
    let mut t = [0i64; 2];
    ok(sys!(SYS_clock_gettime, c, &mut t));
    t[0] * 1_000_000_000 + t[1]
}

/// Uses this much processor time of the calling thread's process.
fn burn(ms: i64) {
    let end = now(CLOCK_PROCESS_CPUTIME_ID) + ms * 1_000_000;
    while now(CLOCK_PROCESS_CPUTIME_ID) < end {
        (0..50_000).for_each(|_| std::hint::spin_loop());
    }
}

fn itimer_prof() {
    let _on = sig::on(SIGPROF, SA_RESTART);
    ok(sys!(SYS_setitimer, ITIMER_PROF, &[0i64, 0, 0, 20_000], 0));
    sleep_ms(60);
    eq(sig::hits(), 0);
    let mut left = [0i64; 4];
    // Natively up to a tick more than was asked for.
    ok(sys!(SYS_getitimer, ITIMER_PROF, &mut left));
    check(left[2] == 0 && left[3] > 0 && left[3] <= 30_000, "all is left after sleeping");
    burn(80);
    eq(sig::hits(), 1);
    ok(sys!(SYS_getitimer, ITIMER_PROF, &mut left));
    eq(left, [0; 4]);
}

fn itimer_virtual_repeats() {
    let _on = sig::on(SIGVTALRM, SA_RESTART);
    ok(sys!(SYS_setitimer, ITIMER_VIRTUAL, &[0i64, 10_000, 0, 10_000], 0));
    let end = now_ms() + 50_000;
    while sig::hits() < 3 {
        check(now_ms() < end, "three signals");
        (0..100_000).for_each(|_| std::hint::spin_loop());
    }
    ok(sys!(SYS_setitimer, ITIMER_VIRTUAL, &[0i64; 4], 0));
    let seen = sig::hits();
    burn(40);
    eq(sig::hits(), seen);
}

fn itimer_by_kind() {
    in_child(|| {
        let mut old = [0i64; 4];
        for which in [ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF] {
            ok(sys!(SYS_setitimer, which, &[0i64, 0, 100 + i64::from(which), 0], 0));
        }
        for which in [ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF] {
            ok(sys!(SYS_setitimer, which, &[0i64; 4], &mut old));
            let left = old[2] * 1000 + old[3] / 1000;
            let want = 100_000 + 1000 * i64::from(which);
            check(left > want - 2000 && left <= want + 10, "each has its own time");
        }
        err(sys!(SYS_setitimer, 3, &[0i64; 4], 0), EINVAL);
        err(sys!(SYS_getitimer, 3, &mut old), EINVAL);
        err(sys!(SYS_setitimer, ITIMER_PROF, &[0i64, 0, 0, 1_000_000], 0), EINVAL);
        err(sys!(SYS_setitimer, ITIMER_PROF, &[0i64, 0, -1, 0], 0), EINVAL);
    });
}

fn timer(clock: i32, sig: i32) -> i32 {
    // SAFETY: all zero is a valid sigevent.
    let mut e: sigevent = unsafe { std::mem::zeroed() };
    e.sigev_notify = if sig == 0 { SIGEV_NONE } else { SIGEV_SIGNAL };
    e.sigev_signo = sig;
    let mut id = -1i32;
    ok(sys!(SYS_timer_create, clock, &e, &mut id));
    id
}

fn set(id: i32, flags: i32, value: i64, interval: i64) {
    let split = |n: i64| [n / 1_000_000_000, n % 1_000_000_000];
    let ([a, b], [c, d]) = (split(interval), split(value));
    ok(sys!(SYS_timer_settime, id, flags, &[a, b, c, d], 0));
}

fn left(id: i32) -> i64 {
    let mut t = [0i64; 4];
    ok(sys!(SYS_timer_gettime, id, &mut t));
    t[2] * 1_000_000_000 + t[3]
}

fn posix_cpu_timer() {
    let _on = sig::on(SIGUSR1, SA_RESTART);
    let id = timer(CLOCK_PROCESS_CPUTIME_ID, SIGUSR1);
    set(id, 0, 20_000_000, 0);
    sleep_ms(60);
    eq(sig::hits(), 0);
    check((1..=21_000_000).contains(&left(id)), "most is left after sleeping");
    burn(80);
    eq(sig::hits(), 1);
    eq(left(id), 0);
    ok(sys!(SYS_timer_delete, id));
}

fn posix_cpu_timer_absolute() {
    let _on = sig::on(SIGUSR1, SA_RESTART);
    let id = timer(CLOCK_PROCESS_CPUTIME_ID, SIGUSR1);
    set(id, TIMER_ABSTIME, now(CLOCK_PROCESS_CPUTIME_ID) + 20_000_000, 20_000_000);
    burn(110);
    check((2..=6).contains(&sig::hits()), "about five");
    ok(sys!(SYS_timer_delete, id));
}

fn thread_cpu_timer() {
    in_child(|| {
        let _on = sig::on(SIGUSR1, SA_RESTART);
        let id = timer(CLOCK_THREAD_CPUTIME_ID, SIGUSR1);
        set(id, 0, 20_000_000, 0);
        burn(80);
        eq(sig::hits(), 1);
        ok(sys!(SYS_timer_delete, id));
    });
}

/// The clock of another thread (pthread_getcpuclockid(3)).
fn clock_of(tid: i64) -> i32 {
    !(tid as i32) << 3 | 6
}

/// A thread that computes until it is told to stop; its id.
fn busy(f: impl FnOnce(i64)) {
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
    let (stop, tid) = (AtomicBool::new(false), AtomicI64::new(0));
    std::thread::scope(|s| {
        s.spawn(|| {
            tid.store(sys!(SYS_gettid), SeqCst);
            while !stop.load(SeqCst) {
                std::hint::spin_loop();
            }
        });
        until("it runs", || tid.load(SeqCst) != 0);
        f(tid.load(SeqCst));
        stop.store(true, SeqCst);
    });
}

fn clock_of_other_thread() {
    in_child(|| {
        busy(|tid| {
            let clock = clock_of(tid);
            let (began, begin) = (now(CLOCK_MONOTONIC), now(clock));
            until("it uses 60 ms", || now(clock) - begin > 60_000_000);
            let (used, passed) = (now(clock) - begin, now(CLOCK_MONOTONIC) - began);
            check(used < passed + 20_000_000, &format!("{used} ns within {passed}"));
            // It does not stand still, and the caller's own is another one.
            check(now(CLOCK_THREAD_CPUTIME_ID) < now(clock), "who sleeps uses less");
        });
        err(sys!(SYS_clock_gettime, clock_of(1), &mut [0i64; 2]), EINVAL);
    });
}

fn timer_of_one_thread() {
    in_child(|| {
        let _on = sig::on(SIGUSR1, SA_RESTART);
        busy(|tid| {
            let own = timer(CLOCK_THREAD_CPUTIME_ID, SIGUSR1);
            set(own, 0, 500_000_000, 0);
            let other = timer(clock_of(tid), SIGUSR1);
            set(other, 0, 30_000_000, 0);
            until("the signal", || sig::hits() > 0);
            eq(sig::hits(), 1);
            check(now(clock_of(tid)) >= 30_000_000, "not before its time");
            ok(sys!(SYS_timer_delete, own));
            ok(sys!(SYS_timer_delete, other));
        });
    });
}

fn cpu_timer_errors() {
    let mut id = 0i32;
    err(sys!(SYS_timer_create, 99, 0, &mut id), EINVAL);
    // The clock of a process that does not exist.
    err(sys!(SYS_timer_create, !99_999_999 << 3 | 2, 0, &mut id), EINVAL);
    err(sys!(SYS_timer_create, CLOCK_MONOTONIC_RAW, 0, &mut id), EOPNOTSUPP);
    err(sys!(SYS_timer_create, CLOCK_MONOTONIC_COARSE, 0, &mut id), EOPNOTSUPP);
}

fn nanosleep_by_cpu() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let begin = now(CLOCK_PROCESS_CPUTIME_ID);
        eq(sys!(SYS_clock_nanosleep, CLOCK_PROCESS_CPUTIME_ID, 0, &[0i64, 30_000_000], 0), 0);
        check(now(CLOCK_PROCESS_CPUTIME_ID) - begin >= 30_000_000, "30 ms were used");
        let until = now(CLOCK_PROCESS_CPUTIME_ID) + 20_000_000;
        eq(sys!(SYS_clock_nanosleep, CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &[until / 1_000_000_000, until % 1_000_000_000], 0), 0);
        check(now(CLOCK_PROCESS_CPUTIME_ID) >= until, "until then");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

fn nanosleep_by_cpu_errors() {
    err(sys!(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &[0i64, 1], 0), EOPNOTSUPP);
    err(sys!(SYS_clock_nanosleep, CLOCK_PROCESS_CPUTIME_ID, 0, &[0i64, -1], 0), EINVAL);
    err(sys!(SYS_clock_nanosleep, CLOCK_PROCESS_CPUTIME_ID, 0, bad(), 0), EFAULT);
    let _on = sig::on(SIGALRM, 0);
    // Again and again: the first may come before the sleep.
    ok(sys!(SYS_setitimer, ITIMER_REAL, &[0i64, 20_000, 0, 20_000], 0));
    let mut rest = [0i64; 2];
    err(sys!(SYS_clock_nanosleep, CLOCK_PROCESS_CPUTIME_ID, 0, &[5i64, 0], &mut rest), EINTR);
    ok(sys!(SYS_setitimer, ITIMER_REAL, &[0i64; 4], 0));
    check((4..=5).contains(&rest[0]), "nearly all is left");
}

fn nanosleep_remaining() {
    let _on = sig::on(SIGALRM, 0);
    for clock in [CLOCK_MONOTONIC, CLOCK_REALTIME] {
        // A sleep that begins late after its timer leaves more.
        until("the signal comes after 50 ms", || {
            let armed = now(CLOCK_MONOTONIC);
            ok(sys!(SYS_setitimer, ITIMER_REAL, &[0i64, 50_000, 0, 50_000], 0));
            let mut rest = [0i64; 2];
            let begin = now(CLOCK_MONOTONIC);
            err(sys!(SYS_clock_nanosleep, clock, 0, &[100i64, 0], &mut rest), EINTR);
            let end = now(CLOCK_MONOTONIC);
            ok(sys!(SYS_setitimer, ITIMER_REAL, &[0i64; 4], 0));
            let rest = rest[0] * 1_000_000_000 + rest[1];
            check(end - armed >= 50_000_000, "not before the signal");
            check((100_000_000_000 - (end - begin)..100_000_000_000).contains(&rest), "what is left is exact");
            rest <= 99_955_000_000
        });
    }
    // Absolute sleeps leave it alone.
    ok(sys!(SYS_setitimer, ITIMER_REAL, &[0i64, 10_000, 0, 10_000], 0));
    let end = now(CLOCK_MONOTONIC) / 1_000_000_000 + 50;
    let mut rest = [7i64, 7];
    err(sys!(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &[end, 0], &mut rest), EINTR);
    ok(sys!(SYS_setitimer, ITIMER_REAL, &[0i64; 4], 0));
    eq(rest, [7, 7]);
}

fn taken(set: u64) -> Option<siginfo_t> {
    // SAFETY: all zero is a valid siginfo_t.
    let mut i: siginfo_t = unsafe { std::mem::zeroed() };
    (sys!(SYS_rt_sigtimedwait, &set, &mut i, &[0i64, 0], 8) > 0).then_some(i)
}

fn overrun_in_siginfo() {
    in_child(|| {
        let mine = sig::set(&[SIGUSR2]);
        sig::mask(SIG_BLOCK, mine);
        let id = timer(CLOCK_MONOTONIC, SIGUSR2);
        let begun = now(CLOCK_MONOTONIC);
        set(id, 0, 5_000_000, 5_000_000);
        sleep_ms(52);
        // The next one comes as much later at the earliest.
        let (looked, next) = (now(CLOCK_MONOTONIC), left(id));
        let i = taken(mine).expect("pending");
        // A busy machine sleeps longer.
        let most = i32::try_from((now(CLOCK_MONOTONIC) - begun) / 5_000_000).unwrap();
        eq(i.si_code, SI_TIMER);
        // SAFETY: SI_TIMER has an overrun.
        let over = unsafe { (&raw const i).cast::<i32>().add(5).read() };
        check((7..=most).contains(&over), &format!("{over} of about {most}, less the first"));
        eq(sys!(SYS_timer_getoverrun, id), i64::from(over));
        check(taken(mine).is_none() || now(CLOCK_MONOTONIC) >= looked + next, "one signal for all");
        check((1..=5_000_000).contains(&left(id)), "goes on");
        ok(sys!(SYS_timer_delete, id));
    });
}

fn deleted_timer_signal_is_dropped() {
    in_child(|| {
        let mine = sig::set(&[SIGUSR2]);
        sig::mask(SIG_BLOCK, mine);
        let id = timer(CLOCK_MONOTONIC, SIGUSR2);
        set(id, 0, 1_000_000, 0);
        sleep_ms(20);
        ok(sys!(SYS_timer_delete, id));
        check(taken(mine).is_none(), "gone with its timer");
        err(sys!(SYS_timer_getoverrun, id), EINVAL);
    });
}

fn set_anew_drops_signal() {
    in_child(|| {
        let mine = sig::set(&[SIGUSR2]);
        sig::mask(SIG_BLOCK, mine);
        let id = timer(CLOCK_MONOTONIC, SIGUSR2);
        set(id, 0, 1_000_000, 0);
        sleep_ms(20);
        set(id, 0, 500_000_000_000, 0);
        check(taken(mine).is_none(), "the old setting's");
        set(id, 0, 1_000_000, 0);
        until("the new one's", || taken(mine).is_some());
    });
}

fn ignored_timer_goes_on() {
    in_child(|| {
        let _ignored = sig::with(SIGUSR2, SIG_IGN, 0);
        let id = timer(CLOCK_MONOTONIC, SIGUSR2);
        set(id, 0, 2_000_000, 2_000_000);
        sleep_ms(20);
        let _on = sig::on(SIGUSR2, SA_RESTART);
        until("signals come once they are not ignored", || sig::hits() >= 3);
        ok(sys!(SYS_timer_delete, id));
    });
}

/// Nothing is lost when a handler is set while the signal comes and is ignored still.
fn heeded_while_it_expires() {
    in_child(|| {
        let _ignored = sig::with(SIGUSR2, SIG_IGN, 0);
        let id = timer(CLOCK_MONOTONIC, SIGUSR2);
        set(id, 0, 50_000, 50_000);
        let end = now_ms() + 700;
        let mut rounds = 0;
        while now_ms() < end {
            let from = now(CLOCK_MONOTONIC);
            while now(CLOCK_MONOTONIC) < from + rounds % 100 * 1000 {}
            let _on = sig::on(SIGUSR2, SA_RESTART);
            let late = now_ms() + 5000;
            while sig::hits() == 0 {
                check(now_ms() < late, &format!("a signal comes once it is not ignored, {rounds} times"));
            }
            rounds += 1;
        }
        ok(sys!(SYS_timer_delete, id));
    });
}

/// Processes that wait for processors have not used them: together no more than there is.
fn time_of_many_callers() {
    in_child(|| {
        let processors = std::thread::available_parallelism().expect("processors").get();
        let begin = now(CLOCK_MONOTONIC);
        let callers: Vec<i32> = (0..4 * processors)
            .map(|_| {
                child(|| {
                    let end = now_ms() + 700;
                    while now_ms() < end {
                        (0..50).for_each(|_| err(sys!(SYS_lseek, -1, 0, 0), EBADF));
                    }
                    0
                })
            })
            .collect();
        callers.into_iter().for_each(|pid| exits(pid, 0));
        let most = (now(CLOCK_MONOTONIC) - begin) / 1000 * processors as i64;
        let used = used(RUSAGE_CHILDREN);
        check(used <= most + most / 10, &format!("{used} us of {most}"));
    });
}

fn none_timer_counts() {
    let id = timer(CLOCK_MONOTONIC, 0);
    set(id, 0, 40_000_000_000, 0);
    check((1..=40_000_000_000).contains(&left(id)), "running");
    set(id, 0, 40_000_000, 0);
    sleep_ms(50);
    eq(left(id), 0);
    set(id, 0, 10_000_000, 10_000_000);
    sleep_ms(25);
    check((1..=10_000_000).contains(&left(id)), "within the interval");
    ok(sys!(SYS_timer_delete, id));
}

fn alarm_rounds() {
    let begin = now_ms();
    eq(sys!(SYS_alarm, 1000), 0);
    let first = sys!(SYS_alarm, 500);
    let mut left = [0i64; 4];
    ok(sys!(SYS_getitimer, ITIMER_REAL, &mut left));
    let second = sys!(SYS_alarm, 0);
    // Rounded: what is less than half a second late shows nothing of it.
    let late = (now_ms() - begin + 500) / 1000;
    check((1000 - late..=1000).contains(&first) && (500 - late..=500).contains(&second), "rounded");
    check((499 - late..=500).contains(&left[2]), "the same timer");
    eq(sys!(SYS_alarm, 0), 0);
}

fn process_clock_of_child() {
    let p = pipe_pair();
    let pid = child(|| {
        burn(30);
        sys!(SYS_write, p[1], b"x", 1);
        forever()
    });
    sys!(SYS_read, p[0], &mut [0u8; 1], 1);
    let clock = !pid << 3 | 2;
    let t = now(clock);
    check((30_000_000..2_000_000_000).contains(&t), "what the child used");
    ok(sys!(SYS_clock_getres, clock, &mut [0i64; 2]));
    ok(sys!(SYS_kill, pid, SIGKILL));
    killed_by(pid, SIGKILL);
    err(sys!(SYS_clock_gettime, clock, &mut [0i64; 2]), EINVAL);
    shut(p);
}

fn thread_clock_of_others() {
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_read, p[0], &mut [0u8; 1], 1);
        0
    });
    // A thread's clock is for its own process alone.
    err(sys!(SYS_clock_gettime, !pid << 3 | 6, &mut [0i64; 2]), EINVAL);
    sys!(SYS_write, p[1], b"x", 1);
    exits(pid, 0);
    shut(p);
}

fn children_times() {
    in_child(|| {
        let mut u = [0i64; 18];
        ok(sys!(SYS_getrusage, RUSAGE_CHILDREN, &mut u));
        eq(u[..4].iter().sum::<i64>(), 0);
        exits(
            child(|| {
                burn(40);
                0
            }),
            0,
        );
        ok(sys!(SYS_getrusage, RUSAGE_CHILDREN, &mut u));
        let us = (u[0] + u[2]) * 1_000_000 + u[1] + u[3];
        check((35_000..2_000_000).contains(&us), "the child's 40 ms");
    });
}

fn rusage_memory_of_child() {
    let pid = child(|| {
        let mut memory = vec![0u8; 30 << 20];
        memory.iter_mut().step_by(4096).for_each(|b| *b = 1);
        i32::from(memory[4096] != 1)
    });
    let mut u = [0i64; 18];
    let mut status = 0;
    eq(sys!(SYS_wait4, pid, &mut status, 0, &mut u), i64::from(pid));
    eq(status, 0);
    check(u[4] >= 30 << 10, "30 MiB were resident");
    check(u[8] >= 100, "pages were faulted in");
}

fn rusage_children_maximum() {
    in_child(|| {
        for mib in [20, 5] {
            let pid = child(|| {
                let mut memory = vec![0u8; mib << 20];
                memory.iter_mut().step_by(4096).for_each(|b| *b = 1);
                i32::from(memory[4096] != 1)
            });
            exits(pid, 0);
        }
        let mut u = [0i64; 18];
        ok(sys!(SYS_getrusage, RUSAGE_CHILDREN, &mut u));
        check((20 << 10..200 << 10).contains(&u[4]), "the largest child's");
    });
}

fn adjtimex_reads() {
    // SAFETY: all zero is a valid timex.
    let mut t: timex = unsafe { std::mem::zeroed() };
    check((0..=5).contains(&sys!(SYS_adjtimex, &mut t)), "a clock state");
    check(t.time.tv_sec > 1_600_000_000 && t.tick > 0, "filled in");
    // SAFETY: as above.
    t = unsafe { std::mem::zeroed() };
    check((0..=5).contains(&sys!(SYS_clock_adjtime, CLOCK_REALTIME, &mut t)), "the same");
    err(sys!(SYS_clock_adjtime, 99, &mut t), EINVAL);
    err(sys!(SYS_clock_adjtime, CLOCK_MONOTONIC, &mut t), EOPNOTSUPP);
    err(sys!(SYS_adjtimex, bad()), EFAULT);
}

fn settimeofday_denied() {
    if sys!(SYS_geteuid) == 0 {
        skip("root may set the clock");
    }
    err(sys!(SYS_settimeofday, &[1i64, 0], 0), EPERM);
    err(sys!(SYS_clock_settime, CLOCK_PROCESS_CPUTIME_ID, &[1i64, 0]), EINVAL);
}

fn times_of_children() {
    in_child(|| {
        exits(
            child(|| {
                burn(60);
                0
            }),
            0,
        );
        let mut t = [0i64; 4];
        ok(sys!(SYS_times, &mut t));
        check(t[2] + t[3] >= 4, "60 ms are six ticks");
    });
}

/// A timer and a sleep that end within microseconds of each other: whichever comes first, the sleep says how it ended.
fn short_sleeps_and_timers() {
    let _alarm = sig::on(SIGALRM, 0);
    // By the library, whose calls come from one place each, as programs' do.
    let end = now_ms() + 5000;
    for round in (0..6000i64).take_while(|_| now_ms() < end) {
        let seen = sig::hits();
        // SAFETY: a call of libc with live arguments.
        unsafe { kill(getpid(), 0) };
        let timer = itimerval {
            it_interval: timeval { tv_sec: 0, tv_usec: 0 },
            it_value: timeval { tv_sec: 0, tv_usec: 1 + round % 11 },
        };
        // SAFETY: a call of libc with live arguments.
        eq(unsafe { setitimer(ITIMER_REAL, &timer, std::ptr::null_mut()) }, 0);
        while sig::hits() == seen {
            let end = now(CLOCK_MONOTONIC) + 10_000;
            let end = timespec { tv_sec: end / 1_000_000_000, tv_nsec: end % 1_000_000_000 };
            // SAFETY: a call of libc with live arguments.
            let got = unsafe { clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, std::ptr::null_mut()) };
            check(got == 0 || got == EINTR, &format!("round {round}: clock_nanosleep gave {got}"));
        }
    }
}

/// A timer whose signal is ignored sends it as soon as it is not, and what has expired meanwhile is its overrun.
fn ignored_signals() {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let mut numbers = release.split(['.', '-']).map(|n| n.parse::<u32>().unwrap_or(0));
    if !inside() && (numbers.next(), numbers.next()) < (Some(6), Some(13)) {
        skip("Linux sends ignored ones since 6.13");
    }
    let times = [0i64, 10_000_000, 0, 10_000_000];
    let once = [0i64, 0, 0, 1_000_000];
    in_child(|| {
        let mut id = 0;
        sig::handle(SIGRTMIN(), SIG_IGN, 0);
        let event = [9u64, SIGRTMIN() as u64, 0, 0, 0, 0, 0, 0];
        ok(sys!(SYS_timer_create, CLOCK_MONOTONIC, &event, &mut id));
        let mask = sig::set(&[SIGRTMIN()]);
        let take = || {
            let mut info = [0i32; 32];
            let none = [0i64, 0];
            let got = sys!(SYS_rt_sigtimedwait, &mask, &mut info, &none, 8);
            let info = std::hint::black_box(&info);
            (got, info[2], info[5])
        };
        ok(sys!(SYS_timer_settime, id, 0, &times, 0));
        sleep_ms(55);
        eq((sig::pending(), sys!(SYS_timer_getoverrun, id)), (0, 0));
        sig::mask(SIG_BLOCK, mask);
        sig::handle(SIGRTMIN(), sig::count as *const () as usize, 0);
        eq(sig::pending(), mask);
        let (got, code, over) = take();
        eq((got, code), (i64::from(SIGRTMIN()), SI_TIMER));
        check(over >= 3, &format!("{over} passed by"));
        eq(sys!(SYS_timer_getoverrun, id), i64::from(over));
        // One that waits is dropped, and sent again.
        until("it goes on", || sig::pending() == mask);
        sig::handle(SIGRTMIN(), SIG_IGN, 0);
        eq(sig::pending(), 0);
        sleep_ms(55);
        sig::handle(SIGRTMIN(), SIG_DFL, 0);
        let (got, _, over) = take();
        eq(got, i64::from(SIGRTMIN()));
        check(over >= 3, &format!("{over} passed by"));
        // Once is once.
        sig::handle(SIGRTMIN(), SIG_IGN, 0);
        sig::mask(SIG_UNBLOCK, mask);
        ok(sys!(SYS_timer_settime, id, 0, &once, 0));
        until("it is over", || left(id) == 0);
        sig::mask(SIG_BLOCK, mask);
        sig::handle(SIGRTMIN(), SIG_DFL, 0);
        eq(sig::pending(), 0);
    });
}

/// Time used up to now, in microseconds, as getrusage(2) has it.
fn used(who: i32) -> i64 {
    let mut u = [0i64; 18];
    ok(sys!(SYS_getrusage, who, &mut u));
    let u = std::hint::black_box(&u);
    (u[0] + u[2]) * 1_000_000 + u[1] + u[3]
}

fn interval(which: i32) -> [i64; 4] {
    let mut t = [0i64; 4];
    ok(sys!(SYS_getitimer, which, &mut t));
    std::hint::black_box(t)
}

/// A child begins without timers, and with clocks that stand at nothing.
fn fork_has_no_timers() {
    in_child(|| {
        burn(60);
        let id = timer(CLOCK_MONOTONIC, SIGUSR1);
        set(id, 0, 3_000_000_000_000, 0);
        for which in [ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF] {
            ok(sys!(SYS_setitimer, which, &[7i64, 0, 50, 0], 0));
        }
        let pid = child(|| {
            for which in [ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF] {
                eq(interval(which), [0; 4]);
            }
            err(sys!(SYS_timer_gettime, id, &mut [0i64; 4]), EINVAL);
            let all = [now(CLOCK_PROCESS_CPUTIME_ID), now(CLOCK_THREAD_CPUTIME_ID), used(RUSAGE_SELF) * 1000];
            check(all.iter().all(|ns| (0..50_000_000).contains(ns)), &format!("{all:?}"));
            eq(used(RUSAGE_CHILDREN), 0);
            burn(30);
            let all = [now(CLOCK_PROCESS_CPUTIME_ID), now(CLOCK_THREAD_CPUTIME_ID), used(RUSAGE_SELF) * 1000];
            check(all.iter().all(|ns| *ns > 25_000_000), &format!("{all:?}"));
            0
        });
        exits(pid, 0);
        check(interval(ITIMER_REAL)[2] > 0 && left(id) > 0, "the parent's go on");
        check((25_000..2_000_000).contains(&used(RUSAGE_CHILDREN)), "what the child used");
    });
}

/// What a program has of the one before it: a helper program.
pub fn after_exec(args: &[String]) -> i32 {
    let id: i32 = args.first().and_then(|id| id.parse().ok()).unwrap_or(-1);
    let all = [ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF].map(|which| interval(which)[2]);
    let timer = sys!(SYS_timer_gettime, id, &mut [0i64; 4]);
    let cpu = [now(CLOCK_PROCESS_CPUTIME_ID) / 1000, now(CLOCK_THREAD_CPUTIME_ID) / 1000, used(RUSAGE_SELF)];
    println!("{} {timer} {}", all.iter().all(|left| (40..=50).contains(left)), cpu.iter().all(|us| *us >= 55_000));
    0
}

/// What a program's thread has used, in milliseconds: a helper program.
pub fn own_clock(_: &[String]) -> i32 {
    println!("{}", now(CLOCK_THREAD_CPUTIME_ID) / 1_000_000);
    0
}

/// A program's clock of its thread has what the thread used that called execve(2), and nothing of the others.
fn exec_leaves_threads_clocks() {
    let p = pipe_pair();
    let pid = child(|| {
        let joined = std::thread::spawn(|| burn(400)).join();
        check(joined.is_ok(), "burned");
        // Another one is there still, so that the program begins in a process of its own.
        std::thread::spawn(|| loop {
            sys!(SYS_pause);
        });
        ok(sys!(SYS_dup2, p[1], 1));
        let argv = [c"/proc/self/exe".as_ptr(), c"own_clock".as_ptr(), std::ptr::null()];
        let envp = [std::ptr::null::<c_char>()];
        sys!(SYS_execve, c"/proc/self/exe", &argv, &envp) as i32
    });
    exits(pid, 0);
    let mut text = [0u8; 100];
    let n = ok(sys!(SYS_read, p[0], &mut text, 100)) as usize;
    let used: i64 = String::from_utf8_lossy(&text[..n]).trim().parse().expect("milliseconds");
    check((0..250).contains(&used), &format!("{used} ms beside another's 400"));
    shut(p);
}

/// A program goes on with the intervals and the clocks of the one before it; what timer_create(2) made is gone.
fn exec_keeps_intervals() {
    let p = pipe_pair();
    let pid = child(|| {
        burn(60);
        let id = timer(CLOCK_MONOTONIC, SIGUSR1);
        set(id, 0, 3_000_000_000_000, 0);
        for which in [ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF] {
            ok(sys!(SYS_setitimer, which, &[0i64, 0, 50, 0], 0));
        }
        ok(sys!(SYS_dup2, p[1], 1));
        let number = cstr(id.to_string());
        let argv = [c"/proc/self/exe".as_ptr(), c"after_exec".as_ptr(), number.as_ptr(), std::ptr::null()];
        let envp = [std::ptr::null::<c_char>()];
        sys!(SYS_execve, c"/proc/self/exe", &argv, &envp) as i32
    });
    exits(pid, 0);
    let mut text = [0u8; 100];
    let n = ok(sys!(SYS_read, p[0], &mut text, 100)) as usize;
    eq(String::from_utf8_lossy(&text[..n]).trim(), "true -22 true");
    shut(p);
}
