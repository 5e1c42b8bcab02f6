//! getuid(2) and kin, setresuid(2), setgroups(2), setpgid(2), setsid(2), capget(2), getrlimit(2), getpriority(2).

use guest_tests::*;
use libc::*;

cases![
    getters_agree, setuid_errors, setresuid_root, set_own_ids, getgroups_call, setgroups_errors, setfsuid_call, pgid_basic, pgid_errors,
    pgid_after_exec, sid_basic, sid_errors, capget_call, capset_drop, rlimit_get, rlimit_lower, rlimit_errors, rlimit_inherited, prlimit_other,
    priority_call, priority_errors, uname_call, uname_errors, sysinfo_call, getcpu_call, affinity, affinity_has_effect, sched_policy, sched_errors, sched_yield_call,
    prctl_name, prctl_pdeathsig, prctl_dumpable, prctl_no_new_privs, prctl_errors, prctl_keepcaps_timerslack, personality_call, arch_prctl_errors,
    getrandom_call, getrandom_errors, sethostname_denied, sethostname_call, own_name_resolves, reboot_denied, chroot_denied, mount_denied, ioprio, membarrier_call, rseq_registered,
    unknown_numbers, syslog_denied, acct_quota_swap_denied, nice_lowers
];

fn getters_agree() {
    let (mut r, mut e, mut s) = (0u32, 0u32, 0u32);
    ok(sys!(SYS_getresuid, &mut r, &mut e, &mut s));
    eq((i64::from(r), i64::from(e)), (sys!(SYS_getuid), sys!(SYS_geteuid)));
    ok(sys!(SYS_getresgid, &mut r, &mut e, &mut s));
    eq((i64::from(r), i64::from(e)), (sys!(SYS_getgid), sys!(SYS_getegid)));
    err(sys!(SYS_getresuid, bad(), &mut e, &mut s), EFAULT);
}

fn setuid_errors() {
    err(sys!(SYS_setuid, -1), EINVAL);
    err(sys!(SYS_setgid, -1), EINVAL);
    if sys!(SYS_geteuid) != 0 {
        err(sys!(SYS_setuid, 0), EPERM);
        err(sys!(SYS_setgid, 0), EPERM);
        err(sys!(SYS_setresuid, 0, 0, 0), EPERM);
        err(sys!(SYS_setreuid, 0, 0), EPERM);
    }
}

fn setresuid_root() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs root");
    }
    in_child(|| {
        ok(sys!(SYS_setresgid, 100, 100, 100));
        ok(sys!(SYS_setresuid, 1000, 1000, 0));
        eq((sys!(SYS_getuid), sys!(SYS_geteuid)), (1000, 1000));
        // Back by the saved id.
        ok(sys!(SYS_setresuid, -1, 0, -1));
        ok(sys!(SYS_setuid, 1001));
        eq(sys!(SYS_getuid), 1001);
        err(sys!(SYS_setuid, 0), EPERM);
        err(sys!(SYS_setgid, 0), EPERM);
        err(sys!(SYS_kill, 1, 0), EPERM);
    });
}

fn set_own_ids() {
    let (u, g) = (sys!(SYS_getuid), sys!(SYS_getgid));
    ok(sys!(SYS_setuid, u));
    ok(sys!(SYS_setgid, g));
    ok(sys!(SYS_setresuid, -1, -1, -1));
    ok(sys!(SYS_setregid, -1, -1));
}

fn getgroups_call() {
    let n = ok(sys!(SYS_getgroups, 0, 0));
    let mut g = vec![0u32; n as usize + 1];
    eq(sys!(SYS_getgroups, g.len(), &mut g[..]), n);
    err(sys!(SYS_getgroups, -1, 0), EINVAL);
    if n > 1 {
        err(sys!(SYS_getgroups, 1, &mut g[..]), EINVAL);
    }
}

fn setgroups_errors() {
    err(sys!(SYS_setgroups, 65537, &[0u32]), if sys!(SYS_geteuid) == 0 { EINVAL } else { EPERM });
    if sys!(SYS_geteuid) != 0 {
        err(sys!(SYS_setgroups, 0, 0), EPERM);
    }
}

fn setfsuid_call() {
    let u = sys!(SYS_geteuid);
    // The answer is always the old id.
    eq(sys!(SYS_setfsuid, -1), u);
    eq(sys!(SYS_setfsuid, u), u);
    eq(sys!(SYS_setfsgid, -1), sys!(SYS_getegid));
}

fn pgid_basic() {
    in_child(|| {
        ok(sys!(SYS_setpgid, 0, 0));
        let me = sys!(SYS_getpid);
        eq((sys!(SYS_getpgrp), sys!(SYS_getpgid, 0)), (me, me));
        let pid = child(forever);
        eq(sys!(SYS_getpgid, pid), me);
        ok(sys!(SYS_setpgid, pid, pid));
        eq(sys!(SYS_getpgid, pid), i64::from(pid));
        ok(sys!(SYS_setpgid, pid, me));
        sys!(SYS_kill, pid, SIGKILL);
        reap(pid);
    });
}

fn pgid_errors() {
    err(sys!(SYS_getpgid, 99_999_999), ESRCH);
    err(sys!(SYS_setpgid, -1, 0), EINVAL);
    err(sys!(SYS_setpgid, 0, -1), EINVAL);
    err(sys!(SYS_setpgid, 99_999_999, 0), ESRCH);
    in_child(|| err(sys!(SYS_setpgid, 0, 99_999_999), EPERM));
    in_child(|| {
        ok(sys!(SYS_setsid));
        err(sys!(SYS_setpgid, 0, 0), EPERM);
    });
}

fn pgid_after_exec() {
    in_child(|| {
        let p = pipe_pair();
        let pid = child(|| {
            sys!(SYS_dup2, p[1], 1);
            sys!(SYS_execve, c"/bin/sh", &[c"sh".as_ptr(), c"-c".as_ptr(), c"echo; exec sleep 5".as_ptr(), std::ptr::null()], &[c"PATH=/bin:/usr/bin".as_ptr(), std::ptr::null()]);
            1
        });
        eq(sys!(SYS_read, p[0], &mut [0u8; 1], 1), 1);
        err(sys!(SYS_setpgid, pid, pid), EACCES);
        sys!(SYS_kill, pid, SIGKILL);
        reap(pid);
    });
}

fn sid_basic() {
    in_child(|| {
        let me = sys!(SYS_getpid);
        eq(sys!(SYS_setsid), me);
        eq((sys!(SYS_getsid, 0), sys!(SYS_getpgrp)), (me, me));
        exits(child(move || i32::from(sys!(SYS_getsid, 0) != me)), 0);
        // No controlling terminal now.
        err(sys!(SYS_openat, AT_FDCWD, c"/dev/tty", O_RDWR, 0), ENXIO);
    });
}

fn sid_errors() {
    err(sys!(SYS_getsid, 99_999_999), ESRCH);
    in_child(|| {
        ok(sys!(SYS_setsid));
        err(sys!(SYS_setsid), EPERM);
    });
}

fn capget_call() {
    let mut d = [0u32; 6];
    ok(sys!(SYS_capget, &[0x2008_0522u32, 0], &mut d));
    let all = d[0] != 0;
    eq(all, sys!(SYS_geteuid) == 0);
    let mut h = [1u32, 0];
    err(sys!(SYS_capget, &mut h, &mut d), EINVAL);
    // SAFETY: a live variable of this function.
    eq(unsafe { (&raw const h[0]).read_volatile() }, 0x2008_0522);
    err(sys!(SYS_capget, bad(), &mut d), EFAULT);
    err(sys!(SYS_capget, &[0x2008_0522u32, 99_999_999], &mut d), ESRCH);
}

fn capset_drop() {
    in_child(|| {
        ok(sys!(SYS_capset, &[0x2008_0522u32, 0], &[0u32; 6]));
        let mut d = [9u32; 6];
        ok(sys!(SYS_capget, &[0x2008_0522u32, 0], &mut d));
        eq((d[0], d[1]), (0, 0));
        err(sys!(SYS_capset, &[0x2008_0522u32, 0], &[u32::MAX; 6]), EPERM);
    });
}

fn rlimit_get() {
    for r in 0..16 {
        let mut l = [0u64; 2];
        ok(sys!(SYS_getrlimit, r, &mut l));
        check(l[0] <= l[1], "soft at most hard");
    }
}

fn rlimit_lower() {
    in_child(|| {
        ok(sys!(SYS_setrlimit, RLIMIT_NOFILE, &[50u64, 60]));
        let mut l = [0u64; 2];
        ok(sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, &[60u64, 60], &mut l));
        eq(l, [50, 60]);
        if sys!(SYS_geteuid) != 0 {
            err(sys!(SYS_setrlimit, RLIMIT_NOFILE, &[60u64, 70]), EPERM);
        }
    });
}

fn rlimit_errors() {
    let mut l = [0u64; 2];
    err(sys!(SYS_getrlimit, 99, &mut l), EINVAL);
    err(sys!(SYS_getrlimit, RLIMIT_NOFILE, bad()), EFAULT);
    err(sys!(SYS_setrlimit, RLIMIT_NOFILE, bad()), EFAULT);
    err(sys!(SYS_setrlimit, RLIMIT_NOFILE, &[2u64, 1]), EINVAL);
    err(sys!(SYS_prlimit64, 99_999_999, RLIMIT_NOFILE, 0, &mut l), ESRCH);
}

fn rlimit_inherited() {
    in_child(|| {
        ok(sys!(SYS_setrlimit, RLIMIT_CORE, &[0u64, 0]));
        exits(
            child(|| {
                let mut l = [9u64; 2];
                sys!(SYS_getrlimit, RLIMIT_CORE, &mut l);
                (l[0] + l[1]) as i32
            }),
            0,
        );
    });
}

fn prlimit_other() {
    let pid = child(forever);
    let mut l = [0u64; 2];
    ok(sys!(SYS_prlimit64, pid, RLIMIT_NOFILE, 0, &mut l));
    sys!(SYS_kill, pid, SIGKILL);
    reap(pid);
}

fn priority_call() {
    in_child(|| {
        // The raw answer is 20 - nice.
        let old = ok(sys!(SYS_getpriority, PRIO_PROCESS, 0));
        ok(sys!(SYS_setpriority, PRIO_PROCESS, 0, 20 - old + 1));
        eq(sys!(SYS_getpriority, PRIO_PROCESS, 0), old - 1);
        if sys!(SYS_geteuid) != 0 {
            err(sys!(SYS_setpriority, PRIO_PROCESS, 0, -20), EACCES);
        }
    });
}

fn nice_lowers() {
    in_child(|| {
        // SAFETY: a call of libc with live arguments.
        let old = unsafe { getpriority(PRIO_PROCESS, 0) };
        eq(unsafe { nice(3) }, old + 3);
    });
}

fn priority_errors() {
    err(sys!(SYS_getpriority, 9, 0), EINVAL);
    err(sys!(SYS_getpriority, PRIO_PROCESS, 99_999_999), ESRCH);
    err(sys!(SYS_setpriority, 9, 0, 0), EINVAL);
}

fn uname_call() {
    // SAFETY: plain data, for which zeroes are a value.
    let mut u: utsname = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_uname, &mut u));
    let s = |f: &[i8; 65]| unsafe { std::ffi::CStr::from_ptr(f.as_ptr()) }.to_str().unwrap().to_string();
    eq((s(&u.sysname).as_str(), s(&u.machine).as_str()), ("Linux", "x86_64"));
    check(s(&u.release).as_bytes()[0].is_ascii_digit(), "a release");
    eq(std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim_end(), s(&u.release));
    eq(std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim_end(), s(&u.nodename));
}

fn uname_errors() {
    err(sys!(SYS_uname, bad()), EFAULT);
}

fn sysinfo_call() {
    // SAFETY: plain data, for which zeroes are a value.
    let mut i: sysinfo = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_sysinfo, &mut i));
    check(i.uptime > 0 && i.totalram >= i.freeram && i.totalram > 0 && i.procs > 0 && i.mem_unit > 0, "plausible");
    err(sys!(SYS_sysinfo, bad()), EFAULT);
}

fn getcpu_call() {
    let (mut c, mut n) = (999u32, 999u32);
    ok(sys!(SYS_getcpu, &mut c, &mut n, 0));
    // SAFETY: a live variable of this function.
    let n = unsafe { sysconf(_SC_NPROCESSORS_CONF) };
    check(i64::from(unsafe { (&raw const c).read_volatile() }) < n, "a processor there is");
}

/// Who may be on one processor alone is there, and so are its children and threads.
fn affinity_has_effect() {
    let mut m = [0u64; 16];
    ok(sys!(SYS_sched_getaffinity, 0, 128, &mut m));
    let all = std::hint::black_box(&m)[0];
    if all.count_ones() < 2 {
        skip("one processor");
    }
    in_child(|| {
        for cpu in (0..64).filter(|cpu| all >> cpu & 1 != 0).take(2) {
            ok(sys!(SYS_sched_setaffinity, 0, 8, &(1u64 << cpu)));
            // SAFETY: a call of libc with live arguments.
            let here = move || (0..100).all(|_| unsafe { sched_getcpu() } == cpu);
            check(here(), &format!("on {cpu}"));
            exits(child(|| i32::from(!here())), 0);
            check(std::thread::spawn(here).join().unwrap(), "the thread, too");
            let mut own = [0u32; 2];
            ok(sys!(SYS_getcpu, &mut own, 0, 0));
            eq(std::hint::black_box(&own)[0], cpu as u32);
        }
    });
}

fn affinity() {
    let mut m = [0u64; 16];
    let n = ok(sys!(SYS_sched_getaffinity, 0, 128, &mut m));
    check(n % 8 == 0 && n > 0 && m[0] != 0, "a set");
    in_child(|| {
        let one = m[0] & m[0].wrapping_neg();
        ok(sys!(SYS_sched_setaffinity, 0, 8, &one));
        let mut g = [0u64; 16];
        ok(sys!(SYS_sched_getaffinity, 0, 128, &mut g));
        eq(g[0], one);
        err(sys!(SYS_sched_setaffinity, 0, 8, &0u64), EINVAL);
    });
    err(sys!(SYS_sched_getaffinity, 0, 1, &mut m), EINVAL);
    err(sys!(SYS_sched_getaffinity, 0, 128, bad()), EFAULT);
    err(sys!(SYS_sched_getaffinity, 99_999_999, 128, &mut m), ESRCH);
}

fn sched_policy() {
    eq(sys!(SYS_sched_getscheduler, 0), i64::from(SCHED_OTHER));
    let mut p = 9i32;
    ok(sys!(SYS_sched_getparam, 0, &mut p));
    // SAFETY: a live variable of this function.
    eq(unsafe { (&raw const p).read_volatile() }, 0);
    eq(sys!(SYS_sched_get_priority_max, SCHED_FIFO), 99);
    eq(sys!(SYS_sched_get_priority_min, SCHED_FIFO), 1);
    eq(sys!(SYS_sched_get_priority_max, SCHED_OTHER), 0);
    ok(sys!(SYS_sched_rr_get_interval, 0, &mut [0i64; 2]));
    in_child(|| {
        ok(sys!(SYS_sched_setscheduler, 0, SCHED_BATCH, &0i32));
        eq(sys!(SYS_sched_getscheduler, 0), i64::from(SCHED_BATCH));
        let mut a = [0u32; 14];
        ok(sys!(SYS_sched_getattr, 0, &mut a, 56, 0));
        eq(a[1], SCHED_BATCH as u32);
    });
}

fn sched_errors() {
    err(sys!(SYS_sched_get_priority_max, 99), EINVAL);
    err(sys!(SYS_sched_getscheduler, -1), EINVAL);
    err(sys!(SYS_sched_getscheduler, 99_999_999), ESRCH);
    err(sys!(SYS_sched_getparam, 0, bad()), EFAULT);
    err(sys!(SYS_sched_setscheduler, 0, 99, &0i32), EINVAL);
    err(sys!(SYS_sched_setscheduler, 0, SCHED_OTHER, &5i32), EINVAL);
}

fn sched_yield_call() {
    eq(sys!(SYS_sched_yield), 0);
}

fn prctl_name() {
    in_child(|| {
        ok(sys!(SYS_prctl, PR_SET_NAME, c"a-name-longer-than-fifteen", 0, 0, 0));
        let mut b = [9u8; 16];
        ok(sys!(SYS_prctl, PR_GET_NAME, &mut b, 0, 0, 0));
        eq(&b, b"a-name-longer-t\0");
        eq(std::fs::read_to_string("/proc/self/comm").unwrap(), "a-name-longer-t\n");
        std::thread::spawn(|| ok(sys!(SYS_prctl, PR_SET_NAME, c"thread", 0, 0, 0))).join().unwrap();
        eq(std::fs::read_to_string("/proc/self/comm").unwrap(), "a-name-longer-t\n");
    });
    err(sys!(SYS_prctl, PR_SET_NAME, bad(), 0, 0, 0), EFAULT);
}

fn prctl_pdeathsig() {
    in_child(|| {
        let p = pipe_pair();
        let pid = child(|| {
            child(|| {
                let me = sys!(SYS_getppid);
                sys!(SYS_prctl, PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
                let mut s = 0i32;
                sys!(SYS_prctl, PR_GET_PDEATHSIG, &mut s, 0, 0, 0);
                sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
                sys!(SYS_write, p[1], b"r", 1);
                // SAFETY: plain data, for which zeroes are a value.
                let mut i: siginfo_t = unsafe { std::mem::zeroed() };
                let got = sys!(SYS_rt_sigtimedwait, &sig::set(&[SIGUSR1]), &mut i, &[3i64, 0], 8);
                let v = [got, i64::from(s), i64::from(sys!(SYS_getppid) != me)];
                sys!(SYS_write, p[1], &v, 24);
                0
            });
            sys!(SYS_read, p[0], &mut [0u8; 1], 1);
            0
        });
        exits(pid, 0);
        let mut v = [0i64; 3];
        eq(sys!(SYS_read, p[0], &mut v, 24), 24);
        eq(v, [SIGUSR1.into(), SIGUSR1.into(), 1]);
    });
    err(sys!(SYS_prctl, PR_SET_PDEATHSIG, 65, 0, 0, 0), EINVAL);
}

fn prctl_dumpable() {
    in_child(|| {
        eq(sys!(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
        ok(sys!(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0));
        eq(sys!(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
        err(sys!(SYS_prctl, PR_SET_DUMPABLE, 7, 0, 0, 0), EINVAL);
    });
}

fn prctl_no_new_privs() {
    in_child(|| {
        ok(sys!(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        eq(sys!(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
        err(sys!(SYS_prctl, PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL);
        exits(child(|| sys!(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) as i32), 1);
    });
}

fn prctl_errors() {
    err(sys!(SYS_prctl, 0x7777, 0, 0, 0, 0), EINVAL);
    err(sys!(SYS_prctl, PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0), EINVAL);
    err(sys!(SYS_prctl, PR_CAPBSET_READ, 99, 0, 0, 0), EINVAL);
}

fn prctl_keepcaps_timerslack() {
    in_child(|| {
        eq(sys!(SYS_prctl, PR_GET_KEEPCAPS, 0, 0, 0, 0), 0);
        ok(sys!(SYS_prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0));
        eq(sys!(SYS_prctl, PR_GET_KEEPCAPS, 0, 0, 0, 0), 1);
        eq(sys!(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0), 50_000);
        ok(sys!(SYS_prctl, PR_SET_TIMERSLACK, 1000, 0, 0, 0));
        eq(sys!(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0), 1000);
    });
}

fn personality_call() {
    in_child(|| {
        let old = ok(sys!(SYS_personality, u32::MAX));
        eq(sys!(SYS_personality, 0x4_0000), old); // ADDR_NO_RANDOMIZE
        eq(sys!(SYS_personality, u32::MAX), 0x4_0000);
        exits(child(|| i32::from(sys!(SYS_personality, u32::MAX) != 0x4_0000)), 0);
    });
}

fn arch_prctl_errors() {
    err(sys!(SYS_arch_prctl, 0x9999, 0), EINVAL);
    err(sys!(SYS_arch_prctl, 0x1002, 1usize << 63), EPERM);
    err(sys!(SYS_arch_prctl, 0x1003, bad()), EFAULT);
}

fn getrandom_call() {
    let (mut a, mut b) = ([0u8; 64], [0u8; 64]);
    eq(sys!(SYS_getrandom, &mut a, 64, 0), 64);
    eq(sys!(SYS_getrandom, &mut b, 64, GRND_NONBLOCK), 64);
    check(a != b, "two draws differ");
    let mut big = vec![0u8; 1_000_000];
    eq(sys!(SYS_getrandom, &mut big[..], big.len(), 0), 1_000_000);
}

fn getrandom_errors() {
    err(sys!(SYS_getrandom, bad(), 16, 0), EFAULT);
    err(sys!(SYS_getrandom, &mut [0u8; 4], 4, 0x100), EINVAL);
    eq(sys!(SYS_getrandom, bad(), 0, 0), 0);
}

#[track_caller]
fn denied(r: i64) {
    // ENOSYS: the kernel was built without it.
    errs(r, &[EPERM, ENOSYS]);
}

fn sethostname_denied() {
    if sys!(SYS_geteuid) == 0 {
        skip("root may on the host");
    }
    denied(sys!(SYS_sethostname, c"x", 1));
}

/// The own name has an address.
fn own_name_resolves() {
    let name = cstr(names().0);
    let mut found: *mut addrinfo = std::ptr::null_mut();
    // SAFETY: a call of libc with live arguments.
    eq(unsafe { getaddrinfo(name.as_ptr(), std::ptr::null(), std::ptr::null(), &mut found) }, 0);
    check(!found.is_null(), "an address");
}

fn names() -> (String, String) {
    // SAFETY: plain data, for which zeroes are a value.
    let mut u: utsname = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_uname, &mut u));
    let s = |f: &[i8; 65]| unsafe { std::ffi::CStr::from_ptr(f.as_ptr()) }.to_str().unwrap().to_string();
    (s(&u.nodename), s(&u.domainname))
}

fn sethostname_call() {
    // Natively in a namespace of its own: the host keeps its name.
    if sys!(SYS_geteuid) != 0 {
        skip("needs root");
    }
    in_child(|| {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        if sys!(SYS_unshare, CLONE_NEWUTS) != 0 && !release.contains("lazaret") {
            skip("no namespace to do it in");
        }
        let old = names();
        ok(sys!(SYS_sethostname, c"new", 3));
        ok(sys!(SYS_setdomainname, c"elsewhere", 4));
        eq(names(), ("new".into(), "else".into()));
        eq(std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap(), "new\n");
        eq(std::fs::read_to_string("/proc/sys/kernel/domainname").unwrap(), "else\n");
        exits(child(|| i32::from(names().0 != "new")), 0);
        let long = [b'x'; 65];
        ok(sys!(SYS_sethostname, &long, 64));
        eq(names().0.len(), 64);
        err(sys!(SYS_sethostname, &long, 65), EINVAL);
        err(sys!(SYS_sethostname, &long, -1), EINVAL);
        err(sys!(SYS_sethostname, bad(), 3), EFAULT);
        ok(sys!(SYS_sethostname, bad(), 0));
        eq(names().0.as_str(), "");
        ok(sys!(SYS_sethostname, old.0.as_bytes(), old.0.len()));
        ok(sys!(SYS_setdomainname, old.1.as_bytes(), old.1.len()));
        eq(names(), old);
    });
}

fn reboot_denied() {
    // Wrong magic numbers: nothing happens for anybody.
    errs(sys!(SYS_reboot, 1, 2, 3, 0), &[EPERM, EINVAL]);
}

fn chroot_denied() {
    err(sys!(SYS_chroot, c"/no/such"), ENOENT);
    if sys!(SYS_geteuid) != 0 {
        err(sys!(SYS_chroot, c"/"), EPERM);
    }
}

fn mount_denied() {
    if sys!(SYS_geteuid) == 0 {
        skip("root may on the host");
    }
    denied(sys!(SYS_mount, c"none", c"/tmp", c"tmpfs", 0, 0));
    denied(sys!(SYS_umount2, c"/tmp", 0));
}

fn ioprio() {
    in_child(|| {
        ok(sys!(SYS_ioprio_set, 1, 0, 2 << 13 | 5));
        eq(sys!(SYS_ioprio_get, 1, 0), 2 << 13 | 5);
    });
    err(sys!(SYS_ioprio_get, 9, 0), EINVAL);
}

fn membarrier_call() {
    let r = sys!(SYS_membarrier, 0, 0, 0);
    if r == -i64::from(ENOSYS) {
        skip("not in this kernel");
    }
    eq(r & 0x19, 0x19); // GLOBAL, PRIVATE_EXPEDITED and its registration
    ok(sys!(SYS_membarrier, 1, 0, 0));
    ok(sys!(SYS_membarrier, 1 << 4, 0, 0)); // register private expedited
    ok(sys!(SYS_membarrier, 1 << 3, 0, 0));
    err(sys!(SYS_membarrier, 1 << 30, 0, 0), EINVAL);
}

fn rseq_registered() {
    // A clean refusal or an area: glibc takes both.
    let area = Box::leak(Box::new([0u64; 16]));
    errs(sys!(SYS_rseq, area, 16, 0, 0x1234), &[EINVAL, EBUSY, EPERM, ENOSYS]);
}

fn unknown_numbers() {
    for n in [340i64, 400, 512, 1000, 100_000, 0x7fff_ffff] {
        err(sys!(n, 0, 0, 0, 0, 0, 0), ENOSYS);
    }
    // uselib, create_module, get_kernel_syms, query_module, nfsservctl, tuxcall, security, vserver.
    for n in [134i64, 174, 177, 178, 180, 184, 185, 236] {
        err(sys!(n, 0, 0, 0, 0, 0, 0), ENOSYS);
    }
}

fn syslog_denied() {
    // EPERM without the capability.
    errs(sys!(SYS_syslog, 99, 0, 0), &[EPERM, EINVAL]);
}

fn acct_quota_swap_denied() {
    if sys!(SYS_geteuid) == 0 {
        skip("root may on the host");
    }
    denied(sys!(SYS_acct, 0));
    denied(sys!(SYS_swapoff, c"/none"));
    denied(sys!(SYS_init_module, 0, 0, c""));
    denied(sys!(SYS_delete_module, c"x", 0));
}
