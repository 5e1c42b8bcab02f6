//! prctl(2) and arch_prctl(2) by option, personality(2), pidfd_send_signal(2).

use guest_tests::*;
use libc::*;

cases![
    mce_kill, thp_and_merge, other_processors, perf_events, speculation, user_dispatch_off, set_mm_denied, locked_keepcaps, ambient_forbidden,
    inherited, bad_options, arch_features, arch_vdso, personality_in_uname, pidfd_scopes, pidfd_of_directory, pidfd_of_group
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
    check((0..16).contains(&prctl5(PR_GET_SPECULATION_CTRL, 0, 0, 0, 0)), "a state");
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
        let second = child(|| {
            sleep_ms(10_000);
            0
        });
        sys!(SYS_write, p[1], b"x", 1);
        sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
        killed_by(second, SIGUSR1);
        0
    });
    sys!(SYS_read, p[0], &mut [0u8; 1], 1);
    let fd = ok(sys!(SYS_pidfd_open, leader, 0));
    sleep_ms(20);
    eq(sys!(SYS_pidfd_send_signal, fd, SIGUSR1, 0, 4), 0);
    exits(leader, 0);
    err(sys!(SYS_pidfd_send_signal, fd, 0, 0, 4), ESRCH);
    shut([fd as i32, p[0], p[1]]);
}
