//! sigaction(2), sigprocmask(2), sigqueue(3), sigsuspend(2), sigtimedwait(2), kill(2).

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};

cases![
    handler_runs, sigaction_returns_old, sigaction_errors, ignored, default_terminates, default_ignores, kill_zero, kill_errors,
    kill_group, kill_all_but_self_denied, tgkill_errors, tkill_self, blocked_stays_pending, standard_signals_do_not_queue,
    realtime_signals_queue, lowest_first, mask_errors, kill_and_stop_not_blockable, handler_mask, nodefer, resethand, siginfo_kill,
    siginfo_queue, sigqueue_errors, sigsuspend, sigtimedwait_value, sigtimedwait_timeout, sigtimedwait_errors, pause_returns, restart_read,
    no_restart_read, restart_matrix, threads_get_own, process_signal_any_thread, thread_mask_inherited, exec_default, alarm_and_itimer,
    signal_storm
];

fn handler_runs() {
    let _on = sig::on(SIGUSR1, 0);
    sig::raise(SIGUSR1);
    eq((sig::hits(), sig::LAST.load(SeqCst)), (1, SIGUSR1));
}

fn sigaction_returns_old() {
    // The kernel's own layout: handler, flags, restorer, mask.
    let old = sig::with(SIGUSR1, sig::count as *const () as usize, SA_NODEFER);
    let mut k = [0u64; 4];
    eq(sys!(SYS_rt_sigaction, SIGUSR1, 0, &mut k, 8), 0);
    eq(k[0], sig::count as *const () as u64);
    eq(k[1] & SA_NODEFER as u64, SA_NODEFER as u64);
    drop(old);
    eq(sys!(SYS_rt_sigaction, SIGUSR1, 0, &mut k, 8), 0);
    eq(k[0], SIG_DFL as u64);
}

fn sigaction_errors() {
    let k = [0u64; 4];
    err(sys!(SYS_rt_sigaction, SIGKILL, &k, 0, 8), EINVAL);
    err(sys!(SYS_rt_sigaction, SIGSTOP, &k, 0, 8), EINVAL);
    err(sys!(SYS_rt_sigaction, 0, &k, 0, 8), EINVAL);
    err(sys!(SYS_rt_sigaction, 65, &k, 0, 8), EINVAL);
    err(sys!(SYS_rt_sigaction, SIGUSR1, &k, 0, 16), EINVAL);
    err(sys!(SYS_rt_sigaction, SIGUSR1, bad(), 0, 8), EFAULT);
    err(sys!(SYS_rt_sigaction, SIGUSR1, 0, bad(), 8), EFAULT);
    eq(sys!(SYS_rt_sigaction, SIGKILL, 0, 0, 8), 0);
}

fn ignored() {
    let _on = sig::with(SIGUSR1, SIG_IGN, 0);
    sig::raise(SIGUSR1);
    let old = sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
    sig::raise(SIGUSR1);
    // Setting SIG_IGN discards what is pending.
    let _again = sig::with(SIGUSR1, SIG_IGN, 0);
    eq(sig::pending() & sig::set(&[SIGUSR1]), 0);
    sig::mask(SIG_SETMASK, old);
}

fn default_terminates() {
    for s in [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSYS, 34, 64] {
        let pid = child(|| {
            sys!(SYS_prlimit64, 0, RLIMIT_CORE, &[0u64, 0], 0);
            if s < 32 {
                sig::handle(s, SIG_DFL, 0);
            }
            sig::raise(s);
            0
        });
        killed_by(pid, s);
    }
}

fn default_ignores() {
    for s in [SIGCHLD, SIGURG, SIGWINCH, SIGCONT] {
        sig::raise(s);
    }
}

fn kill_zero() {
    eq(sys!(SYS_kill, sys!(SYS_getpid), 0), 0);
    err(sys!(SYS_kill, 99_999_999, 0), ESRCH);
}

fn kill_errors() {
    let me = sys!(SYS_getpid);
    err(sys!(SYS_kill, me, 65), EINVAL);
    err(sys!(SYS_kill, me, -1), EINVAL);
    err(sys!(SYS_kill, -99_999_999i64, SIGTERM), ESRCH);
}

fn kill_group() {
    in_child(|| {
        ok(sys!(SYS_setpgid, 0, 0));
        let _on = sig::on(SIGUSR1, 0);
        let p = pipe_pair();
        let pid = child(|| {
            sig::handle(SIGUSR1, SIG_DFL, 0);
            sys!(SYS_write, p[1], b"x", 1);
            forever()
        });
        eq(sys!(SYS_read, p[0], &mut [0u8; 1], 1), 1);
        eq(sys!(SYS_kill, 0, SIGUSR1), 0);
        killed_by(pid, SIGUSR1);
        eq(sig::hits(), 1);
    });
}

fn kill_all_but_self_denied() {
    if sys!(SYS_geteuid) == 0 {
        skip("root may signal init");
    }
    errs(sys!(SYS_kill, 1, 0), &[EPERM]);
}

fn tgkill_errors() {
    let (me, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    err(sys!(SYS_tgkill, 0, tid, 0), EINVAL);
    err(sys!(SYS_tgkill, me, -1, 0), EINVAL);
    err(sys!(SYS_tgkill, me, 99_999_999, 0), ESRCH);
    err(sys!(SYS_tgkill, me, tid, 65), EINVAL);
    err(sys!(SYS_tkill, -1, 0), EINVAL);
    eq(sys!(SYS_tgkill, me, tid, 0), 0);
}

fn tkill_self() {
    let _on = sig::on(SIGUSR2, 0);
    ok(sys!(SYS_tkill, sys!(SYS_gettid), SIGUSR2));
    eq(sig::hits(), 1);
}

fn blocked_stays_pending() {
    let _on = sig::on(SIGUSR1, 0);
    let old = sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
    sig::raise(SIGUSR1);
    eq(sig::hits(), 0);
    eq(sig::pending(), sig::set(&[SIGUSR1]));
    sig::mask(SIG_SETMASK, old);
    eq((sig::hits(), sig::pending()), (1, 0));
}

fn standard_signals_do_not_queue() {
    let _on = sig::on(SIGUSR1, 0);
    let old = sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
    for _ in 0..5 {
        sig::raise(SIGUSR1);
    }
    sig::mask(SIG_SETMASK, old);
    eq(sig::hits(), 1);
}

fn realtime_signals_queue() {
    let _on = sig::on(40, 0);
    let old = sig::mask(SIG_BLOCK, sig::set(&[40]));
    for _ in 0..5 {
        sig::raise(40);
    }
    sig::mask(SIG_SETMASK, old);
    eq(sig::hits(), 5);
}

static ORDER: [AtomicI32; 8] = [const { AtomicI32::new(0) }; 8];

static AT: AtomicUsize = AtomicUsize::new(0);

extern "C" fn note(s: i32) {
    let i = AT.fetch_add(1, SeqCst);
    if let Some(o) = ORDER.get(i) {
        o.store(s, SeqCst);
    }
}

fn lowest_first() {
    AT.store(0, SeqCst);
    // Each handler blocks the others, so the order of delivery shows.
    let all = sig::set(&[SIGUSR1, 35, 36]);
    let mut keep = vec![];
    for s in [SIGUSR1, 35, 36] {
        keep.push(sig::with(s, SIG_DFL, 0));
        let mut a: sigaction = unsafe { std::mem::zeroed() };
        a.sa_sigaction = note as *const () as usize;
        unsafe {
            sigfillset(&mut a.sa_mask);
            eq(sigaction(s, &a, std::ptr::null_mut()), 0);
        }
    }
    let old = sig::mask(SIG_BLOCK, all);
    for s in [36, SIGUSR1, 35] {
        sig::raise(s);
    }
    sig::mask(SIG_SETMASK, old);
    eq([0, 1, 2].map(|i| ORDER[i].load(SeqCst)), [SIGUSR1, 35, 36]);
}

fn mask_errors() {
    let m = 0u64;
    err(sys!(SYS_rt_sigprocmask, 9, &m, 0, 8), EINVAL);
    err(sys!(SYS_rt_sigprocmask, SIG_BLOCK, &m, 0, 4), EINVAL);
    err(sys!(SYS_rt_sigprocmask, SIG_BLOCK, bad(), 0, 8), EFAULT);
    err(sys!(SYS_rt_sigprocmask, SIG_BLOCK, 0, bad(), 8), EFAULT);
    err(sys!(SYS_rt_sigpending, bad(), 8), EFAULT);
    err(sys!(SYS_rt_sigpending, bad(), 16), EINVAL);
    // how does not matter without a set.
    eq(sys!(SYS_rt_sigprocmask, 9, 0, 0, 8), 0);
}

fn kill_and_stop_not_blockable() {
    let old = sig::mask(SIG_BLOCK, sig::set(&[SIGKILL, SIGSTOP, SIGUSR1]));
    eq(sig::mask(SIG_SETMASK, old) & sig::set(&[SIGKILL, SIGSTOP, SIGUSR1]), sig::set(&[SIGUSR1]));
}

static MASK_IN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

extern "C" fn note_mask(_: i32) {
    MASK_IN.store(sig::mask(SIG_BLOCK, 0), SeqCst);
}

fn handler_mask() {
    let _on = sig::with(SIGUSR1, note_mask as *const () as usize, 0);
    let mut a: sigaction = unsafe { std::mem::zeroed() };
    a.sa_sigaction = note_mask as *const () as usize;
    unsafe {
        sigaddset(&mut a.sa_mask, SIGUSR2);
        eq(sigaction(SIGUSR1, &a, std::ptr::null_mut()), 0);
    }
    let before = sig::mask(SIG_BLOCK, 0);
    sig::raise(SIGUSR1);
    eq(MASK_IN.load(SeqCst), before | sig::set(&[SIGUSR1, SIGUSR2]));
    eq(sig::mask(SIG_BLOCK, 0), before);
}

static DEPTH: AtomicI32 = AtomicI32::new(0);

static DEEPEST: AtomicI32 = AtomicI32::new(0);

extern "C" fn again(s: i32) {
    let d = DEPTH.fetch_add(1, SeqCst) + 1;
    DEEPEST.fetch_max(d, SeqCst);
    if sig::HITS.fetch_add(1, SeqCst) == 0 {
        sig::raise(s);
    }
    DEPTH.fetch_sub(1, SeqCst);
}

fn nodefer() {
    for (flags, want) in [(0, 1), (SA_NODEFER, 2)] {
        DEEPEST.store(0, SeqCst);
        sig::HITS.store(0, SeqCst);
        let _on = sig::with(SIGUSR1, again as *const () as usize, flags);
        sig::raise(SIGUSR1);
        eq((sig::hits(), DEEPEST.load(SeqCst)), (2, want));
    }
}

fn resethand() {
    let _on = sig::on(SIGUSR1, SA_RESETHAND);
    sig::raise(SIGUSR1);
    let mut k = [1u64; 4];
    ok(sys!(SYS_rt_sigaction, SIGUSR1, 0, &mut k, 8));
    eq(k[0], SIG_DFL as u64);
}

static INFO: [AtomicUsize; 5] = [const { AtomicUsize::new(0) }; 5];

extern "C" fn note_info(s: i32, i: *const siginfo_t, _: *mut c_void) {
    let i = unsafe { &*i };
    let v = unsafe { [s as usize, i.si_code as usize, i.si_pid() as usize, i.si_uid() as usize, i.si_value().sival_ptr as usize] };
    v.iter().zip(&INFO).for_each(|(v, s)| s.store(*v, SeqCst));
}

fn info() -> [usize; 5] {
    INFO.each_ref().map(|s| s.load(SeqCst))
}

fn siginfo_kill() {
    let _on = sig::with(SIGUSR1, note_info as *const () as usize, SA_SIGINFO);
    let (me, uid) = (sys!(SYS_getpid), sys!(SYS_getuid));
    ok(sys!(SYS_kill, me, SIGUSR1));
    eq(&info()[..4], [SIGUSR1 as usize, SI_USER as usize, me as usize, uid as usize]);
    sig::raise(SIGUSR1);
    eq(info()[1], -6isize as usize); // SI_TKILL
}

fn siginfo_queue() {
    let _on = sig::with(41, note_info as *const () as usize, SA_SIGINFO);
    let v = sigval { sival_ptr: 0x1234_5678_9abc as *mut c_void };
    eq(unsafe { sigqueue(getpid(), 41, v) }, 0);
    eq(info()[1], -1isize as usize); // SI_QUEUE
    eq(info()[4], 0x1234_5678_9abc);
}

fn sigqueue_errors() {
    let mut i = [0i32; 32];
    i[2] = -1;
    err(sys!(SYS_rt_sigqueueinfo, 99_999_999, SIGUSR1, &i), ESRCH);
    err(sys!(SYS_rt_sigqueueinfo, sys!(SYS_getpid), SIGUSR1, bad()), EFAULT);
    err(sys!(SYS_rt_sigqueueinfo, sys!(SYS_getpid), 65, &i), EINVAL);
    // A signal as from kill(2) cannot be forged for another process.
    i[2] = SI_USER;
    let pid = child(forever);
    err(sys!(SYS_rt_sigqueueinfo, pid, SIGUSR1, &i), EPERM);
    sys!(SYS_kill, pid, SIGKILL);
    reap(pid);
}

fn sigsuspend() {
    let _on = sig::on(SIGUSR1, 0);
    let old = sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
    sig::raise(SIGUSR1);
    let open = 0u64;
    err(sys!(SYS_rt_sigsuspend, &open, 8), EINTR);
    eq(sig::hits(), 1);
    // The mask is what it was before.
    eq(sig::mask(SIG_SETMASK, old) & sig::set(&[SIGUSR1]), sig::set(&[SIGUSR1]));
    let h = sig::later(SIGUSR1, 20);
    err(sys!(SYS_rt_sigsuspend, &open, 8), EINTR);
    eq(sig::hits(), 2);
    h.join().unwrap();
    err(sys!(SYS_rt_sigsuspend, bad(), 8), EFAULT);
    err(sys!(SYS_rt_sigsuspend, &open, 4), EINVAL);
}

fn sigtimedwait_value() {
    let old = sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1, 42]));
    let set = sig::set(&[SIGUSR1, 42]);
    sig::raise(SIGUSR1);
    let mut i: siginfo_t = unsafe { std::mem::zeroed() };
    eq(sys!(SYS_rt_sigtimedwait, &set, &mut i, 0, 8), i64::from(SIGUSR1));
    eq((i.si_signo, unsafe { i.si_pid() } as i64), (SIGUSR1, sys!(SYS_getpid)));
    let h = sig::later(42, 20);
    eq(sys!(SYS_rt_sigtimedwait, &set, &mut i, &[2i64, 0], 8), 42);
    h.join().unwrap();
    sig::mask(SIG_SETMASK, old);
}

fn sigtimedwait_timeout() {
    let set = sig::set(&[SIGUSR1]);
    let old = sig::mask(SIG_BLOCK, set);
    let begin = now_ms();
    err(sys!(SYS_rt_sigtimedwait, &set, 0, &[0i64, 30_000_000], 8), EAGAIN);
    check(now_ms() - begin >= 29, "it waited");
    err(sys!(SYS_rt_sigtimedwait, &set, 0, &[0i64, 0], 8), EAGAIN);
    sig::mask(SIG_SETMASK, old);
}

fn sigtimedwait_errors() {
    let set = sig::set(&[SIGUSR1]);
    err(sys!(SYS_rt_sigtimedwait, &set, 0, &[0i64, -1], 8), EINVAL);
    err(sys!(SYS_rt_sigtimedwait, &set, 0, &[0i64, 0], 4), EINVAL);
    err(sys!(SYS_rt_sigtimedwait, bad(), 0, &[0i64, 0], 8), EFAULT);
    err(sys!(SYS_rt_sigtimedwait, &set, 0, bad(), 8), EFAULT);
    // A handled signal that is not in the set interrupts.
    let _on = sig::on(SIGUSR2, SA_RESTART);
    let h = sig::later(SIGUSR2, 20);
    err(sys!(SYS_rt_sigtimedwait, &set, 0, &[2i64, 0], 8), EINTR);
    h.join().unwrap();
}

fn pause_returns() {
    let _on = sig::on(SIGUSR1, SA_RESTART);
    let h = sig::later(SIGUSR1, 20);
    err(sys!(SYS_pause), EINTR);
    h.join().unwrap();
}

fn restart_read() {
    let _on = sig::on(SIGUSR1, SA_RESTART);
    let p = pipe_pair();
    let w = p[1];
    let writer = sig::later_and(SIGUSR1, move || _ = sys!(SYS_write, w, b"x", 1));
    eq(sys!(SYS_read, p[0], &mut [0u8; 1], 1), 1);
    eq(sig::hits(), 1);
    writer.join().unwrap();
    shut(p);
}

fn no_restart_read() {
    let _on = sig::on(SIGUSR1, 0);
    let p = pipe_pair();
    let h = sig::later(SIGUSR1, 20);
    err(sys!(SYS_read, p[0], &mut [0u8; 1], 1), EINTR);
    h.join().unwrap();
    shut(p);
}

fn restart_matrix() {
    // These end with EINTR even with SA_RESTART (signal(7)).
    let _on = sig::on(SIGUSR1, SA_RESTART);
    let p = pipe_pair();
    let ep = ok(sys!(SYS_epoll_create1, 0)) as i32;
    let mut pf = pollfd { fd: p[0], events: POLLIN, revents: 0 };
    let mut pf2 = pf;
    let mut ev = [0u8; 12];
    let word = 0u32;
    let mut left = [0i64; 2];
    let calls: &mut [(&str, &mut dyn FnMut() -> i64)] = &mut [
        ("poll", &mut || sys!(SYS_poll, &mut pf, 1, 100_000)),
        ("ppoll", &mut || sys!(SYS_ppoll, &mut pf2, 1, &[100i64, 0], 0, 8)),
        ("select", &mut || sys!(SYS_select, 0, 0, 0, 0, &[100i64, 0])),
        ("epoll_wait", &mut || sys!(SYS_epoll_wait, ep, &mut ev, 1, 100_000)),
        ("nanosleep", &mut || sys!(SYS_nanosleep, &[100i64, 0], &mut left)),
        ("futex with a timeout", &mut || sys!(SYS_futex, &word, FUTEX_WAIT, 0, &[100i64, 0], 0, 0)),
        ("clock_nanosleep", &mut || sys!(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &[100i64, 0], 0)),
    ];
    for (name, call) in calls.iter_mut() {
        let h = sig::later(SIGUSR1, 20);
        let r = call();
        h.join().unwrap();
        check(r == -i64::from(EINTR), &format!("{name} gives EINTR, gave {r}"));
    }
    check((40..100).contains(&left[0]), "nanosleep tells what remains");
    shut([p[0], p[1], ep]);
}

static WHO: AtomicI32 = AtomicI32::new(0);

extern "C" fn note_tid(_: i32) {
    WHO.store(sys!(SYS_gettid) as i32, SeqCst);
}

fn threads_get_own() {
    let _on = sig::with(SIGUSR1, note_tid as *const () as usize, 0);
    let t = std::thread::spawn(|| {
        sig::raise(SIGUSR1);
        sys!(SYS_gettid) as i32
    });
    eq(t.join().unwrap(), WHO.load(SeqCst));
}

fn process_signal_any_thread() {
    in_child(|| {
        let _on = sig::with(SIGUSR1, note_tid as *const () as usize, 0);
        WHO.store(0, SeqCst);
        let t = std::thread::spawn(|| {
            until("somebody takes it", || WHO.load(SeqCst) != 0);
            sys!(SYS_gettid) as i32
        });
        // Blocked here: the other thread takes it.
        sleep_ms(5);
        sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
        ok(sys!(SYS_kill, sys!(SYS_getpid), SIGUSR1));
        eq(t.join().unwrap(), WHO.load(SeqCst));
    });
}

fn thread_mask_inherited() {
    let old = sig::mask(SIG_BLOCK, sig::set(&[SIGUSR2]));
    let m = std::thread::spawn(|| sig::mask(SIG_BLOCK, 0)).join().unwrap();
    eq(m & sig::set(&[SIGUSR2]), sig::set(&[SIGUSR2]));
    sig::mask(SIG_SETMASK, old);
}

fn exec_default() {
    // Handled signals are default after exec, ignored ones stay ignored.
    let pid = child(|| {
        sig::handle(SIGUSR1, sig::count as *const () as usize, 0);
        sig::handle(SIGUSR2, SIG_IGN, 0);
        let argv = [c"/bin/sh".as_ptr(), c"-c".as_ptr(), c"kill -USR2 $$; kill -USR1 $$; exit 3".as_ptr(), std::ptr::null()];
        sys!(SYS_execve, c"/bin/sh", &argv, &[0usize]);
        1
    });
    killed_by(pid, SIGUSR1);
}

fn alarm_and_itimer() {
    let _on = sig::on(SIGALRM, 0);
    ok(sys!(SYS_setitimer, ITIMER_REAL, &[0i64, 0, 0, 20_000], 0));
    err(sys!(SYS_pause), EINTR);
    eq(sig::hits(), 1);
    eq(sys!(SYS_alarm, 100), 0);
    let left = sys!(SYS_alarm, 0);
    check((99..=100).contains(&left), "what was left");
}

fn signal_storm() {
    in_child(|| {
        let _on = sig::on(43, 0);
        let me = sys!(SYS_getpid);
        let h = std::thread::spawn(move || {
            sig::mask(SIG_BLOCK, sig::set(&[43]));
            for _ in 0..500 {
                while sys!(SYS_kill, me, 43) == -i64::from(EAGAIN) {}
            }
        });
        let mut x = 0u64;
        let end = now_ms() + 5000;
        while sig::hits() < 500 && now_ms() < end {
            for i in 0..1000u64 {
                x = std::hint::black_box(x.wrapping_add(i));
            }
        }
        h.join().unwrap();
        eq(sig::hits(), 500);
    });
}
