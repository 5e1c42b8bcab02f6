//! sigaction(2), sigprocmask(2), sigaltstack(2), sigqueue(3), sigsuspend(2), sigtimedwait(2), kill(2), faults.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};

cases![
    handler_runs, sigaction_returns_old, sigaction_errors, ignored, default_terminates, default_ignores, kill_zero, kill_errors, kill_group,
    kill_all_but_self_denied, tgkill_errors, tkill_self, blocked_stays_pending, standard_signals_do_not_queue, realtime_signals_queue,
    lowest_first, mask_errors, kill_and_stop_not_blockable, handler_mask, nodefer, resethand, siginfo_kill, siginfo_queue, sigqueue_errors,
    altstack, altstack_errors, altstack_nested, sigsuspend, sigtimedwait_value, sigtimedwait_timeout, sigtimedwait_errors, pause_returns,
    restart_read, no_restart_read, restart_matrix, registers_survive, vector_registers_survive, flags_survive, change_return_in_context,
    sigsegv_maperr, sigsegv_accerr, sigbus_adrerr, sigfpe, sigill, sigtrap_int3, segv_not_maskable, siglongjmp_out, nested_handlers,
    threads_get_own, process_signal_any_thread, thread_mask_inherited, exec_default, alarm_and_itimer, mask_restored_from_context,
    red_zone_kept, sigreturn_bad_frame, gs_and_fs_kept, fault_in_handler_kills, signal_storm, mxcsr_and_x87_survive
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
        let pid = child(|| {
            sig::handle(SIGUSR1, SIG_DFL, 0);
            sleep_ms(3000);
            0
        });
        sleep_ms(10);
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
    let pid = child(|| {
        sleep_ms(2000);
        0
    });
    err(sys!(SYS_rt_sigqueueinfo, pid, SIGUSR1, &i), EPERM);
    sys!(SYS_kill, pid, SIGKILL);
    reap(pid);
}

static SP: AtomicUsize = AtomicUsize::new(0);
static ONSTACK: AtomicI32 = AtomicI32::new(0);

extern "C" fn note_sp(_: i32) {
    let x = 0u8;
    SP.store((&raw const x) as usize, SeqCst);
    let mut ss: stack_t = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_sigaltstack, 0, &mut ss));
    ONSTACK.store(ss.ss_flags, SeqCst);
    // It cannot be changed while in use.
    let new = stack_t { ss_sp: std::ptr::null_mut(), ss_flags: SS_DISABLE, ss_size: 0 };
    if sys!(SYS_sigaltstack, &new, 0) != -i64::from(EPERM) {
        ONSTACK.store(-1, SeqCst);
    }
}

fn altstack() {
    let mut mem = vec![0u8; 65536];
    let base = mem.as_mut_ptr();
    let mut old: stack_t = unsafe { std::mem::zeroed() };
    let new = stack_t { ss_sp: base.cast(), ss_flags: 0, ss_size: 65536 };
    ok(sys!(SYS_sigaltstack, &new, &mut old));
    let _on = sig::with(SIGUSR1, note_sp as *const () as usize, SA_ONSTACK);
    sig::raise(SIGUSR1);
    let sp = SP.load(SeqCst);
    check(sp > base as usize && sp < base as usize + 65536, "the handler ran on it");
    eq(ONSTACK.load(SeqCst), SS_ONSTACK);
    // Without SA_ONSTACK it is not used.
    let _on = sig::with(SIGUSR2, note_sp as *const () as usize, 0);
    sig::raise(SIGUSR2);
    let sp = SP.load(SeqCst);
    check(sp < base as usize || sp > base as usize + 65536, "the handler ran on the normal stack");
    // The note disabled it, which is allowed there: restore what was.
    sys!(SYS_sigaltstack, &old, 0);
}

fn altstack_errors() {
    let mut mem = vec![0u8; 65536];
    let s = |flags, size| stack_t { ss_sp: std::ptr::null_mut(), ss_flags: flags, ss_size: size };
    err(sys!(SYS_sigaltstack, &s(0, 100), 0), ENOMEM);
    err(sys!(SYS_sigaltstack, &s(0x77, 65536), 0), EINVAL);
    err(sys!(SYS_sigaltstack, bad(), 0), EFAULT);
    err(sys!(SYS_sigaltstack, 0, bad()), EFAULT);
    mem.clear();
}

extern "C" fn outer(_: i32) {
    sig::raise(SIGUSR2);
}

fn altstack_nested() {
    let mut mem = vec![0u8; 65536];
    let mut old: stack_t = unsafe { std::mem::zeroed() };
    let new = stack_t { ss_sp: mem.as_mut_ptr().cast(), ss_flags: 0, ss_size: 65536 };
    ok(sys!(SYS_sigaltstack, &new, &mut old));
    let _a = sig::with(SIGUSR1, outer as *const () as usize, SA_ONSTACK);
    let _b = sig::with(SIGUSR2, note_sp as *const () as usize, SA_ONSTACK);
    sig::raise(SIGUSR1);
    let sp = SP.load(SeqCst);
    check(sp > mem.as_ptr() as usize && sp < mem.as_ptr() as usize + 65536, "nested on the same stack");
    ok(sys!(SYS_sigaltstack, &old, 0));
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
    let h = sig::later(SIGUSR1, 20);
    let w = p[1];
    let h2 = std::thread::spawn(move || {
        sleep_ms(60);
        sys!(SYS_write, w, b"x", 1);
    });
    eq(sys!(SYS_read, p[0], &mut [0u8; 1], 1), 1);
    eq(sig::hits(), 1);
    h.join().unwrap();
    h2.join().unwrap();
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
        ("poll", &mut || sys!(SYS_poll, &mut pf, 1, 2000)),
        ("ppoll", &mut || sys!(SYS_ppoll, &mut pf2, 1, &[2i64, 0], 0, 8)),
        ("select", &mut || sys!(SYS_select, 0, 0, 0, 0, &[2i64, 0])),
        ("epoll_wait", &mut || sys!(SYS_epoll_wait, ep, &mut ev, 1, 2000)),
        ("nanosleep", &mut || sys!(SYS_nanosleep, &[2i64, 0], &mut left)),
        ("futex with a timeout", &mut || sys!(SYS_futex, &word, FUTEX_WAIT, 0, &[2i64, 0], 0, 0)),
        ("clock_nanosleep", &mut || sys!(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &[2i64, 0], 0)),
    ];
    for (name, call) in calls.iter_mut() {
        let h = sig::later(SIGUSR1, 20);
        let r = call();
        h.join().unwrap();
        check(r == -i64::from(EINTR), &format!("{name} gives EINTR, gave {r}"));
    }
    check(left[0] == 1 && left[1] > 500_000_000, "nanosleep tells what remains");
    shut([p[0], p[1], ep]);
}

/// Raises SIGUSR1 by tgkill with all other registers loaded with known values; what they are afterwards.
#[rustfmt::skip]
fn regs_around_signal() -> [u64; 10] {
    let mut out = [0u64; 10];
    let (pid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    unsafe {
        std::arch::asm!(
            "push rbx", "push rbp", "push {out}",
            "mov rbx, 0x1111111111111111", "mov rbp, 0x2222222222222222",
            "mov r8, 0x3333333333333333", "mov r9, 0x4444444444444444",
            "mov r10, 0x5555555555555555", "mov r12, 0x6666666666666666",
            "mov r13, 0x7777777777777777", "mov r14, 0x8888888888888888",
            "mov r15, 0x9999999999999999",
            "syscall",
            "mov r11, [rsp]",
            "mov [r11], rbx", "mov [r11 + 8], rbp", "mov [r11 + 16], r8", "mov [r11 + 24], r9",
            "mov [r11 + 32], r10", "mov [r11 + 40], r12", "mov [r11 + 48], r13", "mov [r11 + 56], r14",
            "mov [r11 + 64], r15", "mov [r11 + 72], rax",
            "pop {out}", "pop rbp", "pop rbx",
            out = in(reg) out.as_mut_ptr(),
            inout("rax") SYS_tgkill => _, inout("rdi") pid => _, inout("rsi") tid => _, inout("rdx") i64::from(SIGUSR1) => _,
            out("rcx") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
        );
    }
    out
}

/// Overwrites what a handler may overwrite.
extern "C" fn clobber(s: i32) {
    sig::count(s);
    unsafe {
        std::arch::asm!("xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "pxor xmm0, xmm0", "pxor xmm15, xmm15",
            out("r8") _, out("r9") _, out("r10") _, out("xmm0") _, out("xmm15") _);
        if std::is_x86_feature_detected!("avx") {
            std::arch::asm!("vzeroall", out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _, out("ymm5") _,
                out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _, out("ymm12") _,
                out("ymm13") _, out("ymm14") _, out("ymm15") _);
        }
    }
}

fn registers_survive() {
    let _count = sig::on(SIGUSR1, 0);
    let _on = sig::with(SIGUSR1, clobber as *const () as usize, 0);
    let r = regs_around_signal();
    eq(sig::hits(), 1);
    for (i, v) in r[..9].iter().enumerate() {
        eq(*v, 0x1111_1111_1111_1111 * (i as u64 + 1));
    }
    eq(r[9], 0);
}

fn vector_registers_survive() {
    let _count = sig::on(SIGUSR1, 0);
    let _on = sig::with(SIGUSR1, clobber as *const () as usize, 0);
    let (pid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    let a = [0x0123_4567_89ab_cdefu64, 0xfedc_ba98_7654_3210, 3, 4];
    let mut b = [0u64; 4];
    let mut c = [0u64; 4];
    if std::is_x86_feature_detected!("avx") {
        unsafe {
            std::arch::asm!("vmovdqu ymm0, [{a}]", "vmovdqu ymm15, [{a}]", "syscall", "vmovdqu [{b}], ymm0", "vmovdqu [{c}], ymm15", "vzeroupper",
                a = in(reg) a.as_ptr(), b = in(reg) b.as_mut_ptr(), c = in(reg) c.as_mut_ptr(),
                inout("rax") SYS_tgkill => _, in("rdi") pid, in("rsi") tid, in("rdx") SIGUSR1 as i64, out("rcx") _, out("r11") _,
                out("ymm0") _, out("ymm15") _);
        }
        eq((b, c), (a, a));
    } else {
        unsafe {
            std::arch::asm!("movdqu xmm0, [{a}]", "movdqu xmm15, [{a}]", "syscall", "movdqu [{b}], xmm0", "movdqu [{c}], xmm15",
                a = in(reg) a.as_ptr(), b = in(reg) b.as_mut_ptr(), c = in(reg) c.as_mut_ptr(),
                inout("rax") SYS_tgkill => _, in("rdi") pid, in("rsi") tid, in("rdx") SIGUSR1 as i64, out("rcx") _, out("r11") _,
                out("xmm0") _, out("xmm15") _);
        }
        eq((&b[..2], &c[..2]), (&a[..2], &a[..2]));
    }
    eq(sig::hits(), 1);
}

fn flags_survive() {
    let _on = sig::on(SIGUSR1, 0);
    let (pid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    let f: u64;
    unsafe {
        // Carry, zero and direction set.
        std::arch::asm!("pushfq", "pop {f}", "or {f}, 0x441", "push {f}", "popfq", "syscall", "pushfq", "pop {f}", "cld",
            f = out(reg) f, inout("rax") SYS_tgkill => _, in("rdi") pid, in("rsi") tid, in("rdx") SIGUSR1 as i64, out("rcx") _, out("r11") _);
    }
    eq(f & 0x441, 0x441);
    eq(sig::hits(), 1);
}

fn mxcsr_and_x87_survive() {
    extern "C" fn change(s: i32) {
        sig::count(s);
        let m = 0x1f80u32;
        unsafe { std::arch::asm!("ldmxcsr [{m}]", "fninit", m = in(reg) &m) };
    }
    let _count = sig::on(SIGUSR1, 0);
    let _on = sig::with(SIGUSR1, change as *const () as usize, 0);
    let (new, mut got, cw, mut gotcw) = (0x7f80u32, 0u32, 0x0f7fu16, 0u16);
    let old = 0x1f80u32;
    unsafe { std::arch::asm!("ldmxcsr [{m}]", "fldcw [{c}]", m = in(reg) &new, c = in(reg) &cw) };
    sig::raise(SIGUSR1);
    unsafe {
        std::arch::asm!("stmxcsr [{m}]", "fnstcw [{c}]", "ldmxcsr [{o}]", "fninit", m = in(reg) &mut got, c = in(reg) &mut gotcw, o = in(reg) &old);
    }
    eq((got, gotcw, sig::hits()), (new, cw, 1));
}

extern "C" fn set_rax(s: i32, _: *const siginfo_t, uc: *mut c_void) {
    sig::count(s);
    let uc = unsafe { &mut *uc.cast::<ucontext_t>() };
    uc.uc_mcontext.gregs[REG_RAX as usize] = 4711;
}

fn change_return_in_context() {
    let _on = sig::with(SIGUSR1, set_rax as *const () as usize, SA_SIGINFO);
    eq(sys!(SYS_tgkill, sys!(SYS_getpid), sys!(SYS_gettid), SIGUSR1), 4711);
}

// Faults: the handler notes si_code and si_addr, and goes on behind the faulting instruction by changing RIP to
// what r15 says.
static CODE: AtomicI32 = AtomicI32::new(0);
static ADDR: AtomicUsize = AtomicUsize::new(0);
static TRAPNO: AtomicUsize = AtomicUsize::new(0);
static CR2: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_fault(s: i32, i: *const siginfo_t, uc: *mut c_void) {
    sig::count(s);
    let (i, uc) = unsafe { (&*i, &mut *uc.cast::<ucontext_t>()) };
    CODE.store(i.si_code, SeqCst);
    ADDR.store(unsafe { i.si_addr() } as usize, SeqCst);
    let g = &mut uc.uc_mcontext.gregs;
    TRAPNO.store(g[REG_TRAPNO as usize] as usize, SeqCst);
    CR2.store(g[REG_CR2 as usize] as usize, SeqCst);
    g[REG_RIP as usize] = g[REG_R15 as usize];
}

macro_rules! fault {
    ($sig:expr, $code:literal, $in:expr) => {{
        let _on = sig::with($sig, on_fault as *const () as usize, SA_SIGINFO);
        CODE.store(0, SeqCst);
        unsafe {
            std::arch::asm!("lea r15, [rip + 2f]", $code, "2:", out("r15") _, inout("rax") $in => _, out("rdx") _, out("rcx") _);
        }
        (CODE.load(SeqCst), ADDR.load(SeqCst), TRAPNO.load(SeqCst))
    }};
}

fn sigsegv_maperr() {
    let p = ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) as usize;
    ok(sys!(SYS_munmap, p, 4096));
    eq(fault!(SIGSEGV, "mov dl, [rax + 5]", p), (1, p + 5, 14));
    eq(CR2.load(SeqCst), p + 5);
    eq(fault!(SIGSEGV, "mov dl, [rax]", 0usize), (1, 0, 14));
}

fn sigsegv_accerr() {
    let p = bad() as usize;
    eq(fault!(SIGSEGV, "mov [rax], dl", p), (2, p, 14));
    // A non-canonical address is a general protection fault without an address.
    eq(fault!(SIGSEGV, "mov dl, [rax]", 0x8000_0000_0000_0000usize), (0x80, 0, 13));
}

fn sigbus_adrerr() {
    let t = Tmp::new();
    let fd = t.file("f", b"x");
    let p = ok(sys!(SYS_mmap, 0, 8192, PROT_READ, MAP_SHARED, fd, 0)) as usize;
    eq(fault!(SIGBUS, "mov dl, [rax]", p + 4096), (2, p + 4096, 14));
    ok(sys!(SYS_munmap, p, 8192));
    shut([fd]);
}

fn sigfpe() {
    let (code, addr, trap) = fault!(SIGFPE, "xor edx, edx; xor ecx, ecx; div ecx", 5usize);
    eq((code, trap), (1, 0));
    check(addr != 0, "the address of the instruction");
}

fn sigill() {
    let (code, addr, trap) = fault!(SIGILL, "ud2", 0usize);
    eq((code, trap), (2, 6));
    check(addr != 0, "the address of the instruction");
}

fn sigtrap_int3() {
    let (code, _, trap) = fault!(SIGTRAP, "int3", 0usize);
    eq((code, trap), (0x80, 3));
}

fn segv_not_maskable() {
    // A blocked or ignored fault kills.
    for block in [true, false] {
        killed_by(
            child(|| {
                sys!(SYS_prlimit64, 0, RLIMIT_CORE, &[0u64, 0], 0);
                if block {
                    sig::handle(SIGSEGV, sig::count as *const () as usize, 0);
                    sig::mask(SIG_BLOCK, sig::set(&[SIGSEGV]));
                } else {
                    sig::handle(SIGSEGV, SIG_IGN, 0);
                }
                unsafe { (bad()).read_volatile() };
                0
            }),
            SIGSEGV,
        );
    }
}

unsafe extern "C" {
    #[link_name = "__sigsetjmp"]
    fn sigsetjmp(env: *mut u64, save: i32) -> i32;
    fn siglongjmp(env: *mut u64, val: i32) -> !;
}

static mut ENV: [u64; 64] = [0; 64];

extern "C" fn jump(s: i32) {
    sig::count(s);
    unsafe { siglongjmp((&raw mut ENV).cast(), 5) }
}

fn siglongjmp_out() {
    let _count = sig::on(SIGUSR1, 0);
    let _on = sig::with(SIGUSR1, jump as *const () as usize, 0);
    let before = sig::mask(SIG_BLOCK, 0);
    for n in 1..4 {
        // Rust has no returns_twice; nothing but statics is used across.
        match unsafe { sigsetjmp((&raw mut ENV).cast(), 1) } {
            0 => {
                sig::raise(SIGUSR1);
                panic!("the handler returned");
            }
            v => eq(v, 5),
        }
        eq(sig::hits(), n);
        eq(sig::mask(SIG_BLOCK, 0), before);
    }
}

static TRACE: std::sync::Mutex<Vec<i32>> = std::sync::Mutex::new(Vec::new());

extern "C" fn nest(s: i32) {
    TRACE.lock().unwrap().push(s);
    if s < SIGUSR1 + 4 && s == SIGUSR1 {
        sig::raise(SIGUSR2);
    }
    TRACE.lock().unwrap().push(-s);
}

fn nested_handlers() {
    TRACE.lock().unwrap().clear();
    let _a = sig::with(SIGUSR1, nest as *const () as usize, 0);
    let _b = sig::with(SIGUSR2, nest as *const () as usize, 0);
    sig::raise(SIGUSR1);
    eq(&TRACE.lock().unwrap()[..], [SIGUSR1, SIGUSR2, -SIGUSR2, -SIGUSR1]);
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
            let end = now_ms() + 2000;
            while WHO.load(SeqCst) == 0 && now_ms() < end {
                sleep_ms(1);
            }
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

extern "C" fn block_in_context(s: i32, _: *const siginfo_t, uc: *mut c_void) {
    sig::count(s);
    let uc = unsafe { &mut *uc.cast::<ucontext_t>() };
    unsafe { sigaddset(&mut uc.uc_sigmask, SIGUSR2) };
}

fn mask_restored_from_context() {
    let _on = sig::with(SIGUSR1, block_in_context as *const () as usize, SA_SIGINFO);
    let before = sig::mask(SIG_BLOCK, 0);
    sig::raise(SIGUSR1);
    eq(sig::mask(SIG_SETMASK, before), before | sig::set(&[SIGUSR2]));
}

fn red_zone_kept() {
    let _on = sig::on(SIGUSR1, 0);
    let (pid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    let got: u64;
    unsafe {
        std::arch::asm!("mov qword ptr [rsp - 8], 0x1234567", "mov qword ptr [rsp - 128], 0x7654321", "syscall",
            "mov rdi, [rsp - 8]", "add rdi, [rsp - 128]",
            inout("rax") SYS_tgkill => _, inout("rdi") pid => got, in("rsi") tid, in("rdx") SIGUSR1 as i64, out("rcx") _, out("r11") _);
    }
    eq(got, 0x1234567 + 0x7654321);
    eq(sig::hits(), 1);
}

fn sigreturn_bad_frame() {
    killed_by(
        child(|| {
            sys!(SYS_prlimit64, 0, RLIMIT_CORE, &[0u64, 0], 0);
            sig::handle(SIGSEGV, SIG_DFL, 0);
            unsafe { std::arch::asm!("mov rsp, {p}", "mov eax, 15", "syscall", "ud2", p = in(reg) bad(), options(noreturn)) }
        }),
        SIGSEGV,
    );
}

fn gs_and_fs_kept() {
    let _on = sig::on(SIGUSR1, 0);
    in_child(|| {
        let (mut fs, mut fs2) = (0usize, 0usize);
        ok(sys!(SYS_arch_prctl, 0x1003, &mut fs));
        let data = [0x55u64; 2];
        ok(sys!(SYS_arch_prctl, 0x1001, &data));
        sig::raise(SIGUSR1);
        let v: u64;
        unsafe { std::arch::asm!("mov {v}, gs:[0]", v = out(reg) v) };
        eq(v, 0x55);
        ok(sys!(SYS_arch_prctl, 0x1003, &mut fs2));
        eq(fs, fs2);
    });
}

fn fault_in_handler_kills() {
    extern "C" fn h(_: i32) {
        unsafe { bad().read_volatile() };
    }
    killed_by(
        child(|| {
            sys!(SYS_prlimit64, 0, RLIMIT_CORE, &[0u64, 0], 0);
            sig::handle(SIGSEGV, h as *const () as usize, 0);
            unsafe { bad().read_volatile() };
            0
        }),
        SIGSEGV,
    );
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
