//! prctl(2) and arch_prctl(2) by option, personality(2), pidfd_send_signal(2).

use guest_tests::*;
use libc::*;

cases![
    mce_kill, thp_and_merge, other_processors, perf_events, speculation, user_dispatch_off, set_mm_denied, locked_keepcaps, ambient_forbidden,
    inherited, bad_options, unused_arguments, no_next_option, unprivileged_securebits, bounding_needs_right_first,
    timer_slack, restored_timer_ids, futex_slots, ptracer_is_somebody, death_signal_of_thread, death_signal_lost_with_ids,
 arch_features, arch_vdso, personality_in_uname, pidfd_scopes, pidfd_of_directory, pidfd_of_group
];

fn prctl5(op: i32, a: u64, b: u64, c: u64, d: u64) -> i64 {
    sys!(SYS_prctl, op, a, b, c, d)
}

fn mce_kill() {
    in_child(|| {
        for policy in [1, 0, 2] {
            eq(prctl5(PR_MCE_KILL, 1, policy, 0, 0), 0);
            eq(prctl5(PR_MCE_KILL_GET, 0, 0, 0, 0), policy as i64);
        }
        eq(prctl5(PR_MCE_KILL, 0, 0, 0, 0), 0);
        eq(prctl5(PR_MCE_KILL_GET, 0, 0, 0, 0), 2);
        err(prctl5(PR_MCE_KILL, 1, 3, 0, 0), EINVAL);
        err(prctl5(PR_MCE_KILL, 2, 0, 0, 0), EINVAL);
        err(prctl5(PR_MCE_KILL, 1, 1, 1, 0), EINVAL);
        err(prctl5(PR_MCE_KILL_GET, 1, 0, 0, 0), EINVAL);
    });
}

fn thp_and_merge() {
    in_child(|| {
        eq(prctl5(PR_GET_THP_DISABLE, 0, 0, 0, 0), 0);
        eq(prctl5(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
        eq(prctl5(PR_GET_THP_DISABLE, 0, 0, 0, 0), 1);
        err(prctl5(PR_SET_THP_DISABLE, 1, 1, 0, 0), EINVAL);
        err(prctl5(PR_GET_THP_DISABLE, 1, 0, 0, 0), EINVAL);
        eq(prctl5(PR_SET_THP_DISABLE, 5, 0, 0, 0), 0);
        eq(prctl5(PR_GET_THP_DISABLE, 0, 0, 0, 0), 1);
        err(prctl5(PR_SET_THP_DISABLE, 1, 3, 0, 0), EINVAL);
        err(prctl5(PR_SET_THP_DISABLE, 1, 0, 1, 0), EINVAL);
        // PR_THP_DISABLE_EXCEPT_ADVISED, since 6.18
        let advised = prctl5(PR_SET_THP_DISABLE, 1, 2, 0, 0);
        errs(advised.min(-1), &[EPERM, EINVAL]);
        if advised == 0 {
            eq(prctl5(PR_GET_THP_DISABLE, 0, 0, 0, 0), 3);
        }
        eq(prctl5(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
        // PR_SET_MEMORY_MERGE, PR_GET_MEMORY_MERGE
        eq(prctl5(67, 1, 0, 0, 0), 0);
        eq(prctl5(68, 0, 0, 0, 0), 1);
        err(prctl5(67, 1, 1, 0, 0), EINVAL);
        eq(prctl5(67, 0, 0, 0, 0), 0);
    });
}

fn other_processors() {
    for op in [43, 44, 45, 46, 50, 51, 54, 55, 56, 60, 61, 63, 69, 70, 71, 72, PR_GET_UNALIGN, PR_GET_FPEMU, PR_GET_ENDIAN] {
        err(prctl5(op, 0, 0, 0, 0), EINVAL);
    }
}

fn perf_events() {
    eq(prctl5(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0), 0);
    eq(prctl5(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0), 0);
}

fn speculation() {
    for which in 0..3 {
        check((0..16).contains(&prctl5(PR_GET_SPECULATION_CTRL, which, 0, 0, 0)), "a state");
        errs(prctl5(PR_SET_SPECULATION_CTRL, which, 0x100, 0, 0), &[ENXIO, ERANGE, EPERM]);
        err(prctl5(PR_SET_SPECULATION_CTRL, which, 2, 1, 0), EINVAL);
        err(prctl5(PR_GET_SPECULATION_CTRL, which, 0, 0, 1), EINVAL);
    }
    err(prctl5(PR_GET_SPECULATION_CTRL, 9, 0, 0, 0), ENODEV);
    err(prctl5(PR_SET_SPECULATION_CTRL, 9, 2, 0, 0), ENODEV);
    err(prctl5(PR_GET_SPECULATION_CTRL, 0, 1, 0, 0), EINVAL);
}

fn user_dispatch_off() {
    eq(prctl5(59, 0, 0, 0, 0), 0);
    err(prctl5(59, 0, 1, 0, 0), EINVAL);
    err(prctl5(59, 9, 0, 0, 0), EINVAL);
}

fn set_mm_denied() {
    in_child(|| {
        if sys!(SYS_geteuid) == 0 {
            ok(sys!(SYS_setresuid, 65534, 65534, 65534));
        }
        // PR_SET_MM_START_CODE
        err(prctl5(PR_SET_MM, 1, 4096, 0, 0), EPERM);
    });
}

fn locked_keepcaps() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs root");
    }
    in_child(|| {
        ok(prctl5(PR_SET_SECUREBITS, 1 << 5, 0, 0, 0));
        eq(prctl5(PR_GET_SECUREBITS, 0, 0, 0, 0), 1 << 5);
        err(prctl5(PR_SET_KEEPCAPS, 1, 0, 0, 0), EPERM);
        err(prctl5(PR_SET_SECUREBITS, 0, 0, 0, 0), EPERM);
        err(prctl5(PR_SET_SECUREBITS, 0x1000, 0, 0, 0), EPERM);
    });
}

fn ambient_forbidden() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs root");
    }
    in_child(|| {
        let (cap_chown, raise, is_set) = (0, 2, 1);
        let mut header = [0x2008_0522u32, 0];
        let mut data = [0u32; 6];
        ok(sys!(SYS_capget, &mut header, &mut data));
        data[2] |= 1;
        ok(sys!(SYS_capset, &header, &data));
        ok(prctl5(PR_CAP_AMBIENT, raise, cap_chown, 0, 0));
        eq(prctl5(PR_CAP_AMBIENT, is_set, cap_chown, 0, 0), 1);
        ok(prctl5(PR_CAP_AMBIENT, 4, 0, 0, 0));
        eq(prctl5(PR_CAP_AMBIENT, is_set, cap_chown, 0, 0), 0);
        ok(prctl5(PR_SET_SECUREBITS, 1 << 6, 0, 0, 0));
        err(prctl5(PR_CAP_AMBIENT, raise, cap_chown, 0, 0), EPERM);
        err(prctl5(PR_CAP_AMBIENT, raise, 50, 0, 0), EINVAL);
        err(prctl5(PR_CAP_AMBIENT, 9, cap_chown, 0, 0), EINVAL);
    });
}

fn inherited() {
    in_child(|| {
        ok(prctl5(PR_MCE_KILL, 1, 1, 0, 0));
        ok(prctl5(PR_SET_THP_DISABLE, 1, 0, 0, 0));
        let pid = child(|| {
            let kept = prctl5(PR_MCE_KILL_GET, 0, 0, 0, 0) == 1 && prctl5(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1;
            i32::from(!kept)
        });
        exits(pid, 0);
    });
}

fn bad_options() {
    for op in [0, 9999, -1] {
        err(prctl5(op, 0, 0, 0, 0), EINVAL);
    }
    err(sys!(SYS_arch_prctl, 0x9999, 0), EINVAL);
}

fn arch_features() {
    let (mut supported, mut permitted) = (0u64, 0u64);
    ok(sys!(SYS_arch_prctl, 0x1021, &mut supported));
    ok(sys!(SYS_arch_prctl, 0x1022, &mut permitted));
    check(supported & 3 == 3 && permitted & 3 == 3, "x87 and SSE");
    eq(permitted & !supported, 0);
    err(sys!(SYS_arch_prctl, 0x1021, bad()), EFAULT);
    err(sys!(SYS_arch_prctl, 0x1023, 1), EOPNOTSUPP);
    err(sys!(SYS_arch_prctl, 0x1023, 99), EINVAL);
}

fn arch_vdso() {
    err(sys!(SYS_arch_prctl, 0x2003, 0), EEXIST);
}

fn personality_in_uname() {
    in_child(|| {
        // SAFETY: all zero is a valid utsname.
        let mut u: utsname = unsafe { std::mem::zeroed() };
        ok(sys!(SYS_personality, 0x2_0000));
        eq(sys!(SYS_personality, 0xffff_ffffu32), 0x2_0000);
        ok(sys!(SYS_uname, &mut u));
        eq(&u.release[..4], b"2.6.".map(|b| b as c_char));
        ok(sys!(SYS_personality, 8));
        ok(sys!(SYS_uname, &mut u));
        eq(&u.machine[..5], b"i686\0".map(|b| b as c_char));
        exits(child(|| i32::from(sys!(SYS_personality, 0xffff_ffffu32) != 8)), 0);
    });
}

fn pidfd_scopes() {
    let fd = ok(sys!(SYS_pidfd_open, sys!(SYS_getpid), 0));
    for flags in [0, 1, 2] {
        eq(sys!(SYS_pidfd_send_signal, fd, 0, 0, flags), 0);
    }
    err(sys!(SYS_pidfd_send_signal, fd, 0, 0, 3), EINVAL);
    err(sys!(SYS_pidfd_send_signal, fd, 0, 0, 8), EINVAL);
    err(sys!(SYS_pidfd_send_signal, fd, 65, 0, 0), EINVAL);
    let _on = sig::on(SIGUSR1, 0);
    // PIDFD_SELF_THREAD, PIDFD_SELF_THREAD_GROUP
    eq(sys!(SYS_pidfd_send_signal, -10000, SIGUSR1, 0, 0), 0);
    eq(sys!(SYS_pidfd_send_signal, -10001, SIGUSR1, 0, 0), 0);
    eq(sig::hits(), 2);
    err(sys!(SYS_pidfd_send_signal, -10002, 0, 0, 0), EBADF);
    shut([fd as i32]);
}

fn pidfd_of_directory() {
    let _on = sig::on(SIGUSR1, 0);
    let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self", O_RDONLY | O_DIRECTORY, 0));
    eq(sys!(SYS_pidfd_send_signal, fd, SIGUSR1, 0, 0), 0);
    eq(sig::hits(), 1);
    shut([fd as i32]);
    for other in [c"/", c"/proc", c"/proc/self/fd"] {
        let fd = ok(sys!(SYS_openat, AT_FDCWD, other, O_RDONLY | O_DIRECTORY, 0));
        err(sys!(SYS_pidfd_send_signal, fd, 0, 0, 0), EBADF);
        shut([fd as i32]);
    }
}

fn pidfd_of_group() {
    let p = pipe_pair();
    let leader = child(|| {
        ok(sys!(SYS_setpgid, 0, 0));
        let second = child(forever);
        sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
        sys!(SYS_write, p[1], b"x", 1);
        killed_by(second, SIGUSR1);
        0
    });
    sys!(SYS_read, p[0], &mut [0u8; 1], 1);
    let fd = ok(sys!(SYS_pidfd_open, leader, 0));
    eq(sys!(SYS_pidfd_send_signal, fd, SIGUSR1, 0, 4), 0);
    exits(leader, 0);
    err(sys!(SYS_pidfd_send_signal, fd, 0, 0, 4), ESRCH);
    shut([fd as i32, p[0], p[1]]);
}

/// Options that look at no argument beyond their own.
fn unused_arguments() {
    in_child(|| {
        let mut n = [0i32; 2];
        eq(prctl5(PR_SET_PDEATHSIG, 64, 1, 1, 1), 0);
        eq(sys!(SYS_prctl, PR_GET_PDEATHSIG, &mut n, 1, 1, 1), 0);
        eq(sys!(SYS_prctl, PR_GET_TSC, &mut n, 1, 1, 1), 0);
        eq(sys!(SYS_prctl, PR_SET_CHILD_SUBREAPER, 7, 9, 9, 9), 0);
        eq(sys!(SYS_prctl, PR_GET_CHILD_SUBREAPER, &mut n, 9, 9, 9), 0);
        for op in [PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_SECCOMP, PR_GET_TIMERSLACK, PR_GET_TIMING, PR_GET_SECUREBITS] {
            check(prctl5(op, 9, 9, 9, 9) >= 0, "nobody looks");
        }
        for op in [PR_SET_DUMPABLE, PR_SET_TSC, PR_SET_KEEPCAPS] {
            eq(prctl5(op, 1, 9, 9, 9), 0);
        }
        for value in [2, u64::MAX, 1 << 32 | 1] {
            err(prctl5(PR_SET_DUMPABLE, value, 0, 0, 0), EINVAL);
            err(prctl5(PR_SET_KEEPCAPS, value, 0, 0, 0), EINVAL);
        }
        for signal in [65, u64::MAX] {
            err(prctl5(PR_SET_PDEATHSIG, signal, 0, 0, 0), EINVAL);
        }
        for op in [PR_GET_PDEATHSIG, PR_GET_TSC, PR_GET_CHILD_SUBREAPER, PR_GET_NAME, PR_SET_NAME, PR_GET_TID_ADDRESS] {
            err(sys!(SYS_prctl, op, bad(), 0, 0, 0), EFAULT);
        }
        err(prctl5(PR_SET_TSC, 3, 0, 0, 0), EINVAL);
        err(prctl5(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL);
        err(prctl5(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0), EINVAL);
        err(prctl5(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0), EINVAL);
        err(prctl5(PR_SET_TIMING, 1, 0, 0, 0), EINVAL);
        err(prctl5(PR_SET_SECCOMP, 9, 0, 0, 0), EINVAL);
        err(prctl5(57, 2, 0, 0, 0), if capable(24) { EINVAL } else { EPERM });
        err(prctl5(PR_CAPBSET_READ, 41, 0, 0, 0), EINVAL);
        err(prctl5(PR_CAPBSET_READ, u64::MAX, 0, 0, 0), EINVAL);
    });
}

/// Whether a capability is in force.
fn capable(number: u32) -> bool {
    let mut d = [0u32; 6];
    ok(sys!(SYS_capget, &[0x2008_0522u32, 0], &mut d));
    let d = std::hint::black_box(&d);
    (u64::from(d[0]) | u64::from(d[3]) << 32) >> number & 1 != 0
}

fn no_next_option() {
    // PR_SCHED_CORE where the kernel has no core scheduling, and codes behind the last one.
    for op in [62, 10_000] {
        errs(prctl5(op, 9, 0, 0, 0), &[EINVAL, ENODEV]);
    }
    for op in 0x5001..0x5006u32 {
        errs(sys!(SYS_arch_prctl, op, 1u64 << 40), &[EINVAL, EOPNOTSUPP, EPERM]);
    }
    err(sys!(SYS_arch_prctl, 0x4004, 1u64 << 40), EINVAL);
    err(sys!(SYS_arch_prctl, 0x1023, 2), EOPNOTSUPP);
    errs(sys!(SYS_arch_prctl, 0x1012, 1).min(-1), &[ENODEV, EPERM]);
}

fn unprivileged_securebits() {
    in_child(|| {
        if sys!(SYS_geteuid) == 0 {
            ok(sys!(SYS_setresuid, 65534, 65534, 65534));
        }
        // Nothing changes: EPERM for who may change nothing.
        err(prctl5(PR_SET_SECUREBITS, 0, 0, 0, 0), EPERM);
        err(prctl5(PR_SET_SECUREBITS, 1, 0, 0, 0), EPERM);
        // SECBIT_EXEC_RESTRICT_FILE, SECBIT_EXEC_DENY_INTERACTIVE: Linux 6.14
        eq(prctl5(PR_SET_SECUREBITS, 0x500, 0, 0, 0), 0);
        eq(prctl5(PR_GET_SECUREBITS, 0, 0, 0, 0), 0x500);
        eq(prctl5(PR_SET_SECUREBITS, 0xf00, 0, 0, 0), 0);
        err(prctl5(PR_SET_SECUREBITS, 0, 0, 0, 0), EPERM);
        err(prctl5(PR_SET_SECUREBITS, 0x1f00, 0, 0, 0), EPERM);
    });
}

fn bounding_needs_right_first() {
    in_child(|| {
        if capable(8) {
            err(prctl5(PR_CAPBSET_DROP, 63, 0, 0, 0), EINVAL);
            eq(prctl5(PR_CAPBSET_DROP, 10, 0, 0, 0), 0);
            eq(prctl5(PR_CAPBSET_READ, 10, 0, 0, 0), 0);
            // What the bounding set lacks cannot become inheritable, but what is held stays.
            let (header, mut d) = ([0x2008_0522u32, 0], [0u32; 6]);
            ok(sys!(SYS_capget, &header, &mut d));
            d[2] |= 1 << 10;
            err(sys!(SYS_capset, &header, &d), EPERM);
            ok(sys!(SYS_setresuid, 65534, 65534, 65534));
        }
        err(prctl5(PR_CAPBSET_DROP, 63, 0, 0, 0), EPERM);
    });
}

fn timer_slack() {
    in_child(|| {
        let first = prctl5(PR_GET_TIMERSLACK, 0, 0, 0, 0);
        check(first > 0, "there is some");
        eq(prctl5(PR_SET_TIMERSLACK, 0x1_2345_6789, 0, 0, 0), 0);
        eq(prctl5(PR_GET_TIMERSLACK, 0, 0, 0, 0), 0x1_2345_6789);
        exits(child(|| i32::from(prctl5(PR_GET_TIMERSLACK, 0, 0, 0, 0) != 0x1_2345_6789)), 0);
        eq(prctl5(PR_SET_TIMERSLACK, 0, 0, 0, 0), 0);
        eq(prctl5(PR_GET_TIMERSLACK, 0, 0, 0, 0), first);
    });
}

fn restored_timer_ids() {
    if prctl5(77, 2, 0, 0, 0) == -i64::from(EINVAL) {
        skip("a kernel before 6.15");
    }
    in_child(|| {
        eq(prctl5(77, 2, 0, 0, 0), 0);
        eq(prctl5(77, 1, 0, 0, 0), 0);
        eq(prctl5(77, 2, 0, 0, 0), 1);
        err(prctl5(77, 3, 0, 0, 0), EINVAL);
        err(prctl5(77, 0, 1, 0, 0), EINVAL);
        let mut id = [77i32];
        eq(sys!(SYS_timer_create, CLOCK_MONOTONIC, 0, &mut id), 0);
        eq(std::hint::black_box(&id)[0], 77);
        err(sys!(SYS_timer_create, CLOCK_MONOTONIC, 0, &mut id), EBUSY);
        err(sys!(SYS_timer_create, CLOCK_MONOTONIC, 0, &mut [-1i32]), EINVAL);
        err(sys!(SYS_timer_create, CLOCK_MONOTONIC, 0, bad()), EFAULT);
        eq(prctl5(77, 0, 0, 0, 0), 0);
        eq(sys!(SYS_timer_create, CLOCK_MONOTONIC, 0, &mut id), 0);
        check(std::hint::black_box(&id)[0] != 77, "another one");
    });
}

fn futex_slots() {
    if prctl5(78, 2, 0, 0, 0) == -i64::from(EINVAL) {
        skip("no private hashes");
    }
    in_child(|| {
        eq(prctl5(78, 1, 16, 0, 0), 0);
        eq(prctl5(78, 2, 0, 0, 0), 16);
        for (what, slots, flags) in [(0, 0, 0), (3, 0, 0), (1, 15, 0), (1, 1, 0), (1, 16, 1)] {
            err(prctl5(78, what, slots, flags, 0), EINVAL);
        }
    });
}

fn ptracer_is_somebody() {
    if prctl5(PR_SET_PTRACER, 0, 0, 0, 0) == -i64::from(EINVAL) {
        skip("a kernel without Yama");
    }
    in_child(|| {
        for who in [0, u64::MAX, sys!(SYS_getppid) as u64] {
            eq(prctl5(PR_SET_PTRACER, who, 0, 0, 0), 0);
        }
        err(prctl5(PR_SET_PTRACER, 4_000_000, 0, 0, 0), EINVAL);
    });
}

/// The signal comes with the end of the thread that made the child.
fn death_signal_of_thread() {
    in_child(|| {
        let p = pipe_pair();
        let (pid, told) = std::thread::spawn(move || {
            let pid = child(|| {
                sys!(SYS_prctl, PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
                sys!(SYS_write, p[1], b"x", 1);
                sleep_ms(20_000);
                0
            });
            let told = sys!(SYS_read, p[0], &mut [0u8; 1], 1);
            (pid, told)
        })
        .join()
        .unwrap();
        eq(told, 1);
        killed_by(pid, SIGUSR1);
    });
}

/// Neither the signal nor the right to be looked into outlives a change of ids.
fn death_signal_lost_with_ids() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs root");
    }
    let kept = |change: fn()| {
        let mut signal = [0i32; 1];
        ok(prctl5(PR_SET_PDEATHSIG, 10, 0, 0, 0));
        ok(prctl5(PR_SET_DUMPABLE, 1, 0, 0, 0));
        change();
        ok(sys!(SYS_prctl, PR_GET_PDEATHSIG, &mut signal, 0, 0, 0));
        (std::hint::black_box(&signal)[0], prctl5(PR_GET_DUMPABLE, 0, 0, 0, 0))
    };
    type Case = (fn(), (i32, i64));
    let changes: [Case; 8] = [
        (|| _ = ok(sys!(SYS_setresuid, 1000, 1000, 1000)), (0, 0)),
        (|| _ = ok(sys!(SYS_setresgid, -1, 1000, -1)), (0, 0)),
        (|| _ = sys!(SYS_setfsuid, 1000), (0, 0)),
        (|| _ = sys!(SYS_setfsgid, 1000), (0, 0)),
        // Real and saved ids count for nothing.
        (|| _ = ok(sys!(SYS_setresuid, 1000, -1, 1000)), (10, 1)),
        (|| _ = ok(sys!(SYS_setgroups, 1, &[1000])), (10, 1)),
        (|| _ = ok(prctl5(PR_CAPBSET_DROP, 10, 0, 0, 0)), (10, 1)),
        (|| _ = ok(prctl5(PR_SET_SECUREBITS, 4, 0, 0, 0)), (10, 1)),
    ];
    for (at, (change, want)) in changes.into_iter().enumerate() {
        in_child(|| eq((at, kept(change)), (at, want)));
    }
}
