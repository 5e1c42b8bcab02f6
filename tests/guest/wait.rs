//! wait4(2), waitid(2).

use guest_tests::*;
use libc::*;

cases![
    any_child, by_group, no_child, nohang, status_of_signal, stopped_and_continued, waitid_info, waitid_nowait, waitid_options, waitid_pidfd,
    errors, bad_status_pointer, rusage, sigchld_info, ignored_sigchld_reaps, nocldwait, nocldstop, eintr, thread_may_wait, wnothread,
    subreaper, core_flag_off, waitid_fills_in
];

fn any_child() {
    in_child(|| {
        let a = child(|| 1);
        let b = child(|| 2);
        let mut seen = vec![];
        for _ in 0..2 {
            let mut s = 0;
            let p = ok(sys!(SYS_wait4, -1, &mut s, 0, 0)) as i32;
            seen.push((p, WEXITSTATUS(s)));
        }
        seen.sort_unstable();
        let mut want = vec![(a, 1), (b, 2)];
        want.sort_unstable();
        eq(seen, want);
        err(sys!(SYS_wait4, -1, 0, 0, 0), ECHILD);
    });
}

fn by_group() {
    in_child(|| {
        let a = child(|| {
            sleep_ms(50);
            1
        });
        ok(sys!(SYS_setpgid, a, a));
        let b = child(|| 2);
        eq(sys!(SYS_wait4, 0, 0, 0, 0), i64::from(b));
        err(sys!(SYS_wait4, 0, 0, 0, 0), ECHILD);
        eq(sys!(SYS_wait4, -a, 0, 0, 0), i64::from(a));
    });
}

fn no_child() {
    in_child(|| {
        err(sys!(SYS_wait4, -1, 0, 0, 0), ECHILD);
        err(sys!(SYS_wait4, -1, 0, WNOHANG, 0), ECHILD);
        err(sys!(SYS_wait4, 1, 0, 0, 0), ECHILD);
        err(sys!(SYS_wait4, sys!(SYS_getpid), 0, 0, 0), ECHILD);
    });
}

fn nohang() {
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_read, p[0], &mut [0u8; 1], 1);
        4
    });
    eq(sys!(SYS_wait4, pid, 0, WNOHANG, 0), 0);
    eq(sys!(SYS_write, p[1], b"x", 1), 1);
    exits(pid, 4);
    shut(p);
}

fn status_of_signal() {
    for s in [SIGTERM, SIGKILL, SIGUSR1, SIGALRM, 40] {
        let pid = child(|| {
            sig::handle(SIGTERM, SIG_DFL, 0);
            forever()
        });
        ok(sys!(SYS_kill, pid, s));
        let st = reap(pid);
        eq(st & 0x7f, s);
    }
}

fn stopped_and_continued() {
    let pid = child(forever);
    let mut s = 0;
    ok(sys!(SYS_kill, pid, SIGSTOP));
    eq(sys!(SYS_wait4, pid, &mut s, WUNTRACED, 0), i64::from(pid));
    eq(s, 0x7f | SIGSTOP << 8);
    // Reported once.
    eq(sys!(SYS_wait4, pid, &mut s, WUNTRACED | WNOHANG, 0), 0);
    ok(sys!(SYS_kill, pid, SIGCONT));
    eq(sys!(SYS_wait4, pid, &mut s, WCONTINUED, 0), i64::from(pid));
    eq(s, 0xffff);
    // A stopped process dies by SIGKILL at once.
    ok(sys!(SYS_kill, pid, SIGSTOP));
    eq(sys!(SYS_wait4, pid, &mut s, WUNTRACED, 0), i64::from(pid));
    ok(sys!(SYS_kill, pid, SIGKILL));
    killed_by(pid, SIGKILL);
}

fn zinfo() -> siginfo_t {
    unsafe { std::mem::zeroed() }
}

fn waitid_info() {
    let mut i = zinfo();
    let pid = child(|| 5);
    eq(sys!(SYS_waitid, P_PID, pid, &mut i, WEXITED, 0), 0);
    eq((i.si_signo, i.si_code), (SIGCHLD, CLD_EXITED));
    unsafe { eq((i.si_pid(), i.si_status(), i64::from(i.si_uid())), (pid, 5, sys!(SYS_getuid))) };
    let pid = child(|| {
        sys!(SYS_kill, sys!(SYS_getpid), SIGKILL);
        0
    });
    eq(sys!(SYS_waitid, P_PID, pid, &mut i, WEXITED, 0), 0);
    unsafe { eq((i.si_code, i.si_status()), (CLD_KILLED, SIGKILL)) };
}

fn waitid_nowait() {
    let pid = child(|| 6);
    let mut i = zinfo();
    eq(sys!(SYS_waitid, P_PID, pid, &mut i, WEXITED | WNOWAIT, 0), 0);
    eq(sys!(SYS_waitid, P_PID, pid, &mut i, WEXITED | WNOWAIT, 0), 0);
    exits(pid, 6);
}

fn waitid_options() {
    let pid = child(forever);
    let mut i = zinfo();
    i.si_signo = 99;
    // Nothing to report: success and a zeroed siginfo.
    eq(sys!(SYS_waitid, P_PID, pid, &mut i, WEXITED | WNOHANG, 0), 0);
    eq(i.si_signo, 0);
    ok(sys!(SYS_kill, pid, SIGSTOP));
    eq(sys!(SYS_waitid, P_PID, pid, &mut i, WSTOPPED, 0), 0);
    unsafe { eq((i.si_code, i.si_status()), (CLD_STOPPED, SIGSTOP)) };
    ok(sys!(SYS_kill, pid, SIGCONT));
    eq(sys!(SYS_waitid, P_ALL, 0, &mut i, WCONTINUED, 0), 0);
    unsafe { eq((i.si_code, i.si_status(), i.si_pid()), (CLD_CONTINUED, SIGCONT, pid)) };
    ok(sys!(SYS_kill, pid, SIGKILL));
    eq(sys!(SYS_waitid, P_PGID, 0, &mut i, WEXITED, 0), 0);
    eq(unsafe { i.si_pid() }, pid);
}

fn waitid_pidfd() {
    let pid = child(|| 7);
    let fd = ok(sys!(SYS_pidfd_open, pid, 0)) as i32;
    let mut i = zinfo();
    eq(sys!(SYS_waitid, 3, fd, &mut i, WEXITED, 0), 0);
    unsafe { eq((i.si_pid(), i.si_status()), (pid, 7)) };
    shut([fd]);
    err(sys!(SYS_waitid, 3, 9999, &mut i, WEXITED, 0), EBADF);
}

fn errors() {
    let mut i = zinfo();
    err(sys!(SYS_waitid, P_ALL, 0, &mut i, 0, 0), EINVAL);
    err(sys!(SYS_waitid, P_ALL, 0, &mut i, 0x1000_0000 | WEXITED, 0), EINVAL);
    err(sys!(SYS_waitid, 17, 0, &mut i, WEXITED, 0), EINVAL);
    err(sys!(SYS_waitid, P_PID, -1, &mut i, WEXITED, 0), EINVAL);
    err(sys!(SYS_wait4, -1, 0, 0x100, 0), EINVAL);
    err(sys!(SYS_wait4, i32::MIN, 0, 0, 0), ESRCH);
}

fn bad_status_pointer() {
    let pid = child(|| 0);
    // The child is reaped all the same.
    err(sys!(SYS_wait4, pid, bad(), 0, 0), EFAULT);
    err(sys!(SYS_wait4, pid, 0, 0, 0), ECHILD);
}

fn rusage() {
    let pid = child(|| {
        // 40 ms of its own time, however busy the machine is.
        let (end, mut t) = (now_ms() + 3000, [0i64; 2]);
        while t[1] < 40_000_000 && now_ms() < end {
            sys!(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &mut t);
        }
        0
    });
    let mut u: libc::rusage = unsafe { std::mem::zeroed() };
    eq(sys!(SYS_wait4, pid, 0, 0, &mut u), i64::from(pid));
    let us = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1_000_000 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
    check((10_000..1_000_000).contains(&us), "about 40 ms of processor time");
}

fn sigchld_info() {
    static SEEN: [std::sync::atomic::AtomicI32; 4] = [const { std::sync::atomic::AtomicI32::new(0) }; 4];
    extern "C" fn h(_: i32, i: *const siginfo_t, _: *mut c_void) {
        let i = unsafe { &*i };
        let v = unsafe { [i.si_signo, i.si_code, i.si_pid(), i.si_status()] };
        v.iter().zip(&SEEN).for_each(|(v, s)| s.store(*v, std::sync::atomic::Ordering::SeqCst));
    }
    let _on = sig::with(SIGCHLD, h as *const () as usize, SA_SIGINFO | SA_RESTART);
    let pid = child(|| 8);
    exits(pid, 8);
    eq(SEEN.each_ref().map(|s| s.load(std::sync::atomic::Ordering::SeqCst)), [SIGCHLD, CLD_EXITED, pid, 8]);
}

fn ignored_sigchld_reaps() {
    in_child(|| {
        sig::handle(SIGCHLD, SIG_IGN, 0);
        let pid = child(|| 1);
        // Waits for the end of all, then there is no child.
        err(sys!(SYS_wait4, pid, 0, 0, 0), ECHILD);
    });
}

fn nocldwait() {
    in_child(|| {
        let _on = sig::on(SIGCHLD, SA_NOCLDWAIT | SA_RESTART);
        let pid = child(|| 1);
        err(sys!(SYS_wait4, pid, 0, 0, 0), ECHILD);
        eq(sig::hits(), 1);
    });
}

fn nocldstop() {
    in_child(|| {
        for (flag, want) in [(0, 1), (SA_NOCLDSTOP, 0)] {
            let _on = sig::on(SIGCHLD, flag | SA_RESTART);
            let pid = child(forever);
            ok(sys!(SYS_kill, pid, SIGSTOP));
            let mut s = 0;
            eq(sys!(SYS_wait4, pid, &mut s, WUNTRACED, 0), i64::from(pid));
            eq(sig::hits(), want);
            sys!(SYS_kill, pid, SIGKILL);
            reap(pid);
        }
    });
}

fn eintr() {
    in_child(|| {
        let _on = sig::on(SIGUSR1, 0);
        let pid = child(forever);
        let h = sig::later(SIGUSR1, 30);
        err(sys!(SYS_wait4, pid, 0, 0, 0), EINTR);
        h.join().unwrap();
        sys!(SYS_kill, pid, SIGKILL);
        reap(pid);
    });
}

fn thread_may_wait() {
    in_child(|| {
        let pid = child(|| 3);
        let s = std::thread::spawn(move || reap(pid)).join().unwrap();
        eq(WEXITSTATUS(s), 3);
    });
}

fn wnothread() {
    in_child(|| {
        let pid = child(|| 3);
        let r = std::thread::spawn(move || sys!(SYS_wait4, pid, 0, __WNOTHREAD, 0)).join().unwrap();
        err(r, ECHILD);
        exits(pid, 3);
    });
}

fn subreaper() {
    in_child(|| {
        ok(sys!(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
        let p = pipe_pair();
        let pid = child(|| {
            let g = child(|| {
                sleep_ms(30);
                11
            });
            sys!(SYS_write, p[1], &g, 4);
            0
        });
        exits(pid, 0);
        let mut g = 0i32;
        eq(sys!(SYS_read, p[0], &mut g, 4), 4);
        exits(g, 11);
    });
}

fn core_flag_off() {
    let pid = child(|| {
        sys!(SYS_prlimit64, 0, RLIMIT_CORE, &[0u64, 0], 0);
        sig::handle(SIGABRT, SIG_DFL, 0);
        sys!(SYS_kill, sys!(SYS_getpid), SIGABRT);
        0
    });
    eq(reap(pid), SIGABRT);
}

/// waitid(2) writes to its siginfo whether it heard of somebody or not.
fn waitid_fills_in() {
    in_child(|| {
        let mut info = [!0u8; 128];
        err(sys!(SYS_waitid, P_ALL, 0, &mut info, WEXITED, 0), ECHILD);
        eq(&info[..12], [0; 12]);
        info.fill(0xff);
        err(sys!(SYS_waitid, P_ALL, 0, &mut info, 0, 0), EINVAL);
        eq(&info[..12], [0; 12]);
        err(sys!(SYS_waitid, P_ALL, 0, 1, WEXITED, 0), EFAULT);
    });
}
