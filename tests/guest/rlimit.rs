//! getrlimit(2), setrlimit(2), prlimit(2), and what each limit does when it is reached.

use guest_tests::*;
use libc::*;

cases![
    get_and_set, errors, prlimit_other, inherited, cpu_soft, cpu_hard, cpu_of_child_begins_anew, nofile, nproc, sigpending, fsize, nice, rtprio,
    core_dump_status, limits_of_priorities
];

fn get(which: u32) -> [u64; 2] {
    let mut l = [0u64; 2];
    ok(sys!(SYS_getrlimit, which, &mut l));
    l
}

fn set(which: u32, soft: u64, hard: u64) -> i64 {
    sys!(SYS_setrlimit, which, &[soft, hard])
}

/// Becomes somebody without rights, if it can.
fn drop_rights() {
    if sys!(SYS_geteuid) == 0 {
        ok(sys!(SYS_setresgid, 64321, 64321, 64321));
        ok(sys!(SYS_setresuid, 64321, 64321, 64321));
    }
}

fn spin_cpu_ms(ms: i64) {
    let cpu = || {
        let mut t = [0i64; 2];
        ok(sys!(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &mut t));
        t[0] * 1000 + t[1] / 1_000_000
    };
    let end = cpu() + ms;
    while cpu() < end {
        (0..200_000).for_each(|_| std::hint::spin_loop());
    }
}

fn get_and_set() {
    in_child(|| {
        let old = get(RLIMIT_NOFILE);
        eq(set(RLIMIT_NOFILE, 50, old[1]), 0);
        eq(get(RLIMIT_NOFILE), [50, old[1]]);
        let mut was = [0u64; 2];
        eq(sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, &[60u64, old[1]], &mut was), 0);
        eq(was, [50, old[1]]);
        eq(get(RLIMIT_NOFILE)[0], 60);
    });
}

fn errors() {
    in_child(|| {
        err(sys!(SYS_getrlimit, 16, &mut [0u64; 2]), EINVAL);
        err(sys!(SYS_setrlimit, 16, &[0u64; 2]), EINVAL);
        err(sys!(SYS_getrlimit, RLIMIT_CPU, bad()), EFAULT);
        err(sys!(SYS_setrlimit, RLIMIT_CPU, bad()), EFAULT);
        err(set(RLIMIT_NOFILE, 10, 9), EINVAL);
        err(sys!(SYS_prlimit64, 99_999_999, RLIMIT_CPU, 0, 0), ESRCH);
        drop_rights();
        eq(set(RLIMIT_NOFILE, 10, 20), 0);
        err(set(RLIMIT_NOFILE, 10, 21), EPERM);
        err(sys!(SYS_prlimit64, 1, RLIMIT_CPU, 0, &mut [0u64; 2]), EPERM);
    });
}

fn prlimit_other() {
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_read, p[0], &mut [0u8; 1], 1);
        i32::from(get(RLIMIT_NOFILE)[0] != 77)
    });
    let mut l = [0u64; 2];
    ok(sys!(SYS_prlimit64, pid, RLIMIT_NOFILE, 0, &mut l));
    eq(l, get(RLIMIT_NOFILE));
    ok(sys!(SYS_prlimit64, pid, RLIMIT_NOFILE, &[77u64, l[1]], 0));
    sys!(SYS_write, p[1], b"x", 1);
    exits(pid, 0);
    shut(p);
}

fn inherited() {
    in_child(|| {
        ok(set(RLIMIT_CORE, 4096, 8192));
        exits(child(|| i32::from(get(RLIMIT_CORE) != [4096, 8192])), 0);
    });
}

fn cpu_soft() {
    // Without a handler SIGXCPU ends it.
    let pid = child(|| {
        ok(set(RLIMIT_CPU, 1, 5));
        spin_cpu_ms(4000);
        0
    });
    killed_by(pid, SIGXCPU);
}

fn cpu_hard() {
    let pid = child(|| {
        let _ignored = sig::with(SIGXCPU, SIG_IGN, 0);
        ok(set(RLIMIT_CPU, 1, 1));
        spin_cpu_ms(4000);
        0
    });
    killed_by(pid, SIGKILL);
}

fn cpu_of_child_begins_anew() {
    in_child(|| {
        ok(set(RLIMIT_CPU, 1, 2));
        spin_cpu_ms(600);
        exits(
            child(|| {
                spin_cpu_ms(600);
                0
            }),
            0,
        );
    });
}

fn nofile() {
    in_child(|| {
        let hard = get(RLIMIT_NOFILE)[1];
        ok(set(RLIMIT_NOFILE, 20, hard));
        let mut last = 0;
        loop {
            match sys!(SYS_dup, 1) {
                r if r < 0 => {
                    err(r, EMFILE);
                    break;
                }
                fd => last = fd,
            }
        }
        eq(last, 19);
        err(sys!(SYS_dup2, 1, 20), EBADF);
        err(sys!(SYS_fcntl, 1, F_DUPFD, 20), EINVAL);
        err(sys!(SYS_pipe, &mut [0i32; 2]), EMFILE);
    });
}

fn nproc() {
    in_child(|| {
        drop_rights();
        ok(set(RLIMIT_NPROC, 1, 1));
        // SAFETY: the child, if there is one, leaves at once.
        let r = call::libc_ret(unsafe { fork() });
        if r == 0 {
            child::exit_now(0);
        }
        err(r, EAGAIN);
    });
}

fn sigpending() {
    in_child(|| {
        drop_rights();
        let sig = 40;
        sig::mask(SIG_BLOCK, sig::set(&[sig]));
        ok(set(RLIMIT_SIGPENDING, 5, 5));
        let me = sys!(SYS_getpid);
        let mut info = [0i32; 32];
        info[0] = sig;
        info[2] = SI_QUEUE;
        // The host counts for all processes of the user: others may have some for a moment.
        let end = now_ms() + 50_000;
        let wanted = [0, 0, 0, 0, 0, -i64::from(EAGAIN)];
        while [(); 6].map(|()| sys!(SYS_rt_sigqueueinfo, me, sig, &info)) != wanted {
            check(now_ms() < end, "five are queued, no sixth");
            while sys!(SYS_rt_sigtimedwait, &sig::set(&[sig]), 0, &[0i64, 0], 8) == i64::from(sig) {}
        }
        // kill(2) does not fail for it.
        ok(sys!(SYS_kill, me, sig));
    });
}

fn fsize() {
    in_child(|| {
        let t = Tmp::new();
        let fd = ok(t.open("f", O_RDWR | O_CREAT));
        let on = sig::on(SIGXFSZ, 0);
        ok(set(RLIMIT_FSIZE, 10, RLIM_INFINITY));
        eq(sys!(SYS_write, fd, b"0123456789abc", 13), 10);
        eq(sig::hits(), 0);
        err(sys!(SYS_write, fd, b"x", 1), EFBIG);
        eq(sig::hits(), 1);
        err(sys!(SYS_ftruncate, fd, 11), EFBIG);
        eq(sig::hits(), 2);
        drop(on);
        exits(child(|| i32::from(sys!(SYS_pwrite64, fd, b"x", 1, 0) != 1)), 0);
        killed_by(
            child(|| {
                sys!(SYS_pwrite64, fd, b"x", 1, 10);
                0
            }),
            SIGXFSZ,
        );
    });
}

fn nice() {
    in_child(|| {
        ok(set(RLIMIT_NICE, 0, 0));
        drop_rights();
        eq(sys!(SYS_setpriority, PRIO_PROCESS, 0, 5), 0);
        eq(sys!(SYS_getpriority, PRIO_PROCESS, 0), 15);
        err(sys!(SYS_setpriority, PRIO_PROCESS, 0, 4), EACCES);
        eq(sys!(SYS_setpriority, PRIO_PROCESS, 0, 5), 0);
        err(sys!(SYS_setpriority, 3, 0, 5), EINVAL);
        err(sys!(SYS_setpriority, PRIO_PROCESS, 99_999_999, 5), ESRCH);
    });
}

fn rtprio() {
    in_child(|| {
        ok(set(RLIMIT_RTPRIO, 0, 0));
        drop_rights();
        err(sys!(SYS_sched_setscheduler, 0, SCHED_FIFO, &[1i32]), EPERM);
        eq(sys!(SYS_sched_setscheduler, 0, SCHED_BATCH, &[0i32]), 0);
        eq(sys!(SYS_sched_getscheduler, 0), i64::from(SCHED_BATCH));
        err(sys!(SYS_sched_setscheduler, 0, SCHED_BATCH, &[1i32]), EINVAL);
    });
}

fn core_dump_status() {
    let pid = child(|| {
        ok(set(RLIMIT_CORE, 0, 0));
        sig::raise(SIGQUIT);
        0
    });
    let s = reap(pid);
    check(WIFSIGNALED(s) && WTERMSIG(s) == SIGQUIT && !WCOREDUMP(s), "killed without a core");
}

/// Nice values and priorities up to the limits are anybody's.
fn limits_of_priorities() {
    in_child(|| {
        if set(RLIMIT_NICE, 22, 22) != 0 || set(RLIMIT_RTPRIO, 5, 5) != 0 {
            skip("needs root");
        }
        drop_rights();
        eq(sys!(SYS_setpriority, PRIO_PROCESS, 0, -2), 0);
        err(sys!(SYS_setpriority, PRIO_PROCESS, 0, -3), EACCES);
        eq(sys!(SYS_getpriority, PRIO_PROCESS, 0), 22);
        let class = |policy: i32, priority: i32| sys!(SYS_sched_setscheduler, 0, policy, &priority);
        // Out of SCHED_IDLE again, since its nice value is within the limit.
        eq(class(SCHED_IDLE, 0), 0);
        eq(class(SCHED_OTHER, 0), 0);
        eq(class(SCHED_FIFO, 5), 0);
        err(class(SCHED_FIFO, 6), EPERM);
        err(class(SCHED_RR, 6), EPERM);
        eq(class(SCHED_RR, 3), 0);
        // Lower than it is goes without a limit.
        ok(set(RLIMIT_RTPRIO, 0, 5));
        eq(class(SCHED_RR, 2), 0);
        err(class(SCHED_RR, 3), EPERM);
        err(class(SCHED_FIFO, 1), EPERM);
        eq(class(SCHED_OTHER, 0), 0);
        err(class(SCHED_RR, 1), EPERM);
        ok(set(RLIMIT_NICE, 20, 22));
        eq(class(SCHED_IDLE, 0), 0);
        err(class(SCHED_OTHER, 0), EPERM);
    });
}
