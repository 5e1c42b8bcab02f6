//! What pidfds tell by ioctl, process_mrelease(2), numbers chosen for new processes, and old calls about the system.

use guest_tests::child::CloneArgs;
use guest_tests::*;
use libc::*;

cases![
    info, info_of_dead, info_sizes, foreign_requests, mrelease, chosen_tid, chosen_tid_refused, into_cgroup_checks, wait_without_blocking, ustat_of_root,
    sysfs_names, quotas, accounting, loads
];

fn get_info(fd: i64, size: u64, info: &mut [u64; 16]) -> i64 {
    sys!(SYS_ioctl, fd, 3 << 30 | size << 16 | 0xff << 8 | 11, info)
}

fn needs_info(fd: i64) {
    if get_info(fd, 64, &mut [0; 16]) == -i64::from(ENOTTY) {
        skip("a kernel before 6.13");
    }
}

fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

fn info() {
    let fd = ok(sys!(SYS_pidfd_open, sys!(SYS_getpid), 0));
    needs_info(fd);
    let mut i = [0u64; 16];
    eq(get_info(fd, 64, &mut i), 0);
    let i = std::hint::black_box(i);
    eq(i[0] & 7, 7);
    let (pid, parent) = (sys!(SYS_getpid) as u32, sys!(SYS_getppid) as u32);
    eq(halves(i[2]), (pid, pid));
    eq(halves(i[3]), (parent, sys!(SYS_getuid) as u32));
    eq(halves(i[4]), (sys!(SYS_getgid) as u32, sys!(SYS_geteuid) as u32));
    shut([fd as i32]);
    let (tid, other) = std::thread::spawn(|| {
        let fd = ok(sys!(SYS_pidfd_open, sys!(SYS_gettid), O_EXCL));
        let mut i = [0u64; 16];
        eq(get_info(fd, 64, &mut i), 0);
        shut([fd as i32]);
        (sys!(SYS_gettid) as u32, halves(std::hint::black_box(i)[2]))
    })
    .join()
    .unwrap();
    eq(other, (tid, pid));
}

fn info_of_dead() {
    let pid = child(|| 7);
    let fd = ok(sys!(SYS_pidfd_open, pid, 0));
    needs_info(fd);
    let mut i = [8u64; 16];
    let live = get_info(fd, 64, &mut i);
    eq(live, 0);
    exits(pid, 7);
    let mut i = [8u64; 16];
    eq(get_info(fd, 64, &mut i), 0);
    let i = std::hint::black_box(i);
    eq((i[0] & 9, halves(i[7]).1), (8, 7 << 8));
    err(get_info(fd, 64, &mut [1u64; 16]), ESRCH);
    shut([fd as i32]);
}

fn info_sizes() {
    let fd = ok(sys!(SYS_pidfd_open, sys!(SYS_getpid), 0));
    needs_info(fd);
    for size in [0, 8, 63] {
        err(get_info(fd, size, &mut [0; 16]), ENOTTY);
    }
    for size in [64, 72, 128] {
        eq(get_info(fd, size, &mut [0; 16]), 0);
    }
    err(sys!(SYS_ioctl, fd, 3u64 << 30 | 64 << 16 | 0xff << 8 | 11, 0), EINVAL);
    err(sys!(SYS_ioctl, fd, 3u64 << 30 | 64 << 16 | 0xff << 8 | 11, bad()), EFAULT);
    shut([fd as i32]);
}

fn foreign_requests() {
    let fd = ok(sys!(SYS_pidfd_open, sys!(SYS_getpid), 0));
    err(sys!(SYS_ioctl, fd, 0xff << 8 | 12, 0), ENOTTY);
    err(sys!(SYS_ioctl, fd, 0x5401, 0), ENOTTY);
    err(sys!(SYS_ioctl, fd, 0xff << 8 | 1, 1), EINVAL);
    shut([fd as i32]);
}

fn mrelease() {
    err(sys!(SYS_process_mrelease, -1, 0), EBADF);
    let own = ok(sys!(SYS_pidfd_open, sys!(SYS_getpid), 0));
    err(sys!(SYS_process_mrelease, own, 1), EINVAL);
    err(sys!(SYS_process_mrelease, own, 0), EINVAL);
    let pid = child(forever);
    let fd = ok(sys!(SYS_pidfd_open, pid, 0));
    err(sys!(SYS_process_mrelease, fd, 0), EINVAL);
    sys!(SYS_kill, pid, SIGKILL);
    errs(sys!(SYS_process_mrelease, fd, 0).min(-1), &[EPERM, ESRCH]);
    killed_by(pid, SIGKILL);
    err(sys!(SYS_process_mrelease, fd, 0), ESRCH);
    shut([own as i32, fd as i32]);
}

fn clone_as(tids: &[i32]) -> i64 {
    let args = CloneArgs {
        exit_signal: SIGCHLD as u64,
        set_tid: tids.as_ptr() as u64,
        set_tid_size: tids.len() as u64,
        ..CloneArgs::default()
    };
    let pid = sys!(SYS_clone3, &args, size_of::<CloneArgs>());
    if pid == 0 {
        child::exit_now(i32::from(sys!(SYS_getpid) != i64::from(tids[0])));
    }
    pid
}

fn chosen_tid() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs root");
    }
    // A number that was somebody's.
    let free = child(|| 0);
    exits(free, 0);
    eq(ok(clone_as(&[free])), i64::from(free));
    err(clone_as(&[free]), EEXIST);
    exits(free, 0);
    err(clone_as(&[sys!(SYS_getpid) as i32]), EEXIST);
    err(clone_as(&[1]), EEXIST);
}

fn chosen_tid_refused() {
    for wrong in [0, -1, 5_000_000] {
        err(clone_as(&[wrong]), EINVAL);
    }
    err(clone_as(&[30_000; 33]), EINVAL);
    let args = CloneArgs { set_tid: bad() as u64, set_tid_size: 1, ..CloneArgs::default() };
    err(sys!(SYS_clone3, &args, size_of::<CloneArgs>()), EFAULT);
    in_child(|| {
        let free = child(|| 0);
        exits(free, 0);
        if sys!(SYS_geteuid) == 0 {
            ok(sys!(SYS_setresuid, 65534, 65534, 65534));
        }
        err(clone_as(&[free]), EPERM);
    });
}

fn into_cgroup_checks() {
    let with = |cgroup: u64, size: usize| {
        let args = CloneArgs { flags: 0x2_0000_0000, exit_signal: SIGCHLD as u64, cgroup, ..CloneArgs::default() };
        sys!(SYS_clone3, &args, size)
    };
    err(with(u64::MAX, 88), EINVAL);
    err(with(1 << 32, 88), EINVAL);
    err(with(0, 80), EINVAL);
    err(with(9999, 88), EBADF);
}

fn wait_without_blocking() {
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_read, p[0], &mut [0u8; 1], 1);
        3
    });
    let fd = ok(sys!(SYS_pidfd_open, pid, O_NONBLOCK));
    let wait = |options: i32| sys!(SYS_waitid, 3, fd, &mut [0u64; 16], options, 0);
    err(wait(WEXITED), EAGAIN);
    eq(wait(WEXITED | WNOHANG), 0);
    sys!(SYS_write, p[1], b"x", 1);
    until("it ends", || wait(WEXITED | WNOWAIT) == 0);
    eq(wait(WEXITED), 0);
    err(wait(WEXITED), ECHILD);
    shut([fd as i32, p[0], p[1]]);
}

fn ustat_of_root() {
    let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/", O_RDONLY | O_DIRECTORY, 0)) as i32;
    let dev = stat_fd(fd).st_dev as u32;
    shut([fd]);
    let mut u = [u64::MAX; 5];
    eq(sys!(SYS_ustat, dev, &mut u), 0);
    let u = std::hint::black_box(u);
    check(u[4] == u64::MAX && u[2] == 0, "32 bytes, no name");
    err(sys!(SYS_ustat, dev, bad()), EFAULT);
    err(sys!(SYS_ustat, 0xffff, &mut [0u64; 5]), EINVAL);
}

fn sysfs_names() {
    let count = ok(sys!(SYS_sysfs, 3));
    check(count > 3, "some types");
    for at in 0..count {
        let mut name = [0u8; 64];
        eq(sys!(SYS_sysfs, 2, at, &mut name), 0);
        eq(sys!(SYS_sysfs, 1, &name), at);
    }
    err(sys!(SYS_sysfs, 2, count, &mut [0u8; 64]), EINVAL);
    err(sys!(SYS_sysfs, 2, 0, bad()), EFAULT);
    err(sys!(SYS_sysfs, 1, c"no such type"), EINVAL);
    err(sys!(SYS_sysfs, 1, bad()), EFAULT);
    err(sys!(SYS_sysfs, 4), EINVAL);
}

fn quotas() {
    let (get, sync) = (0x80_0007u32 << 8, 0x80_0001u32 << 8);
    err(sys!(SYS_quotactl, get, c"/dev/null", 0, 0), ENOTBLK);
    err(sys!(SYS_quotactl, get, c"/", 0, 0), ENOTBLK);
    err(sys!(SYS_quotactl, get, c"/no/such", 0, 0), ENOENT);
    err(sys!(SYS_quotactl, get | 9, c"/dev/null", 0, 0), EINVAL);
    err(sys!(SYS_quotactl, get, 0, 0, 0), ENODEV);
    eq(sys!(SYS_quotactl, sync, 0, 0, 0), 0);
    err(sys!(SYS_quotactl, get, bad(), 0, 0), EFAULT);
    err(sys!(443, -1, get, 0, 0), EBADF);
    let p = pipe_pair();
    err(sys!(443, p[0], get | 7, 0, 0), EINVAL);
    err(sys!(443, p[0], get, 0, 0), ENOSYS);
    shut(p);
}

fn accounting() {
    in_child(|| {
        if sys!(SYS_geteuid) == 0 {
            err(sys!(SYS_acct, bad()), EFAULT);
            ok(sys!(SYS_setresuid, 65534, 65534, 65534));
        }
        err(sys!(SYS_acct, 0), EPERM);
        err(sys!(SYS_acct, bad()), EPERM);
    });
}

fn loads() {
    // SAFETY: all zero is a valid sysinfo.
    let mut i: sysinfo = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_sysinfo, &mut i));
    let text = std::fs::read_to_string("/proc/loadavg").unwrap();
    let load: f64 = text.split(' ').next().unwrap().parse().unwrap();
    let i = std::hint::black_box(i);
    check((i.loads[0] as f64 / 65536.0 - load).abs() < 0.5, &format!("{} is {load}", i.loads[0]));
    check(i.procs > 0 && i.totalram > 0 && i.mem_unit > 0, "something");
    err(sys!(SYS_sysinfo, bad()), EFAULT);
}
