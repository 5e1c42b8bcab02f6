//! fcntl(2), ioctl(2), dup(2) and close_range(2) by command.

use guest_tests::*;
use libc::*;

cases![
    dup_edges, fcntl_own, fcntl_sig, sigio_on_pipe, fcntl_lease, fcntl_hints, fcntl_queries,
    fcntl_setfl_direct, ioctl_regular, ioctl_flags, ioctl_any, ioctl_pipe, close_range_forms,
    attributes_without_a_name, place_alone, flock_mandatory, ioctl_epoll, eventfd_takes_numbers
];

fn dup_edges() {
    let p = pipe_pair();
    err(sys!(SYS_dup2, p[0], -1), EBADF);
    err(sys!(SYS_dup2, 9999, 9999), EBADF);
    err(sys!(SYS_dup3, p[0], p[0], 0), EINVAL);
    err(sys!(SYS_dup3, p[0], 50, O_NONBLOCK), EINVAL);
    err(sys!(SYS_dup3, 9999, 50, 0), EBADF);
    eq(sys!(SYS_dup3, p[0], 50, O_CLOEXEC), 50);
    eq(sys!(SYS_fcntl, 50, F_GETFD), 1);
    eq(sys!(SYS_dup2, 50, 51), 51);
    eq(sys!(SYS_fcntl, 51, F_GETFD), 0);
    in_child(|| {
        ok(sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, &[20u64, 20], 0));
        err(sys!(SYS_dup2, 0, 20), EBADF);
        err(sys!(SYS_fcntl, 0, F_DUPFD, 20), EINVAL);
        // What is open above the limit stays.
        eq(sys!(SYS_fcntl, 51, F_GETFD), 0);
        while sys!(SYS_dup, 0) >= 0 {}
        err(sys!(SYS_dup, 0), EMFILE);
        eq(sys!(SYS_dup2, 0, 19), 19);
    });
    shut([50, 51, p[0], p[1]]);
}

fn fcntl_own() {
    let p = pipe_pair();
    let me = sys!(SYS_getpid) as i32;
    let group = sys!(SYS_getpgrp) as i32;
    ok(sys!(SYS_fcntl, p[0], F_SETOWN, -group));
    // The value of a group looks like an error to the wrapper, not here.
    let g = sys!(SYS_fcntl, p[0], F_GETOWN);
    eq(g, i64::from(-group));
    let mut o = [0i32; 2];
    ok(sys!(SYS_fcntl, p[0], 16, &mut o));
    // SAFETY: a variable of this function.
    eq(unsafe { (&raw const o).read_volatile() }, [2, group]);
    ok(sys!(SYS_fcntl, p[0], 15, &[0i32, sys!(SYS_gettid) as i32]));
    ok(sys!(SYS_fcntl, p[0], 16, &mut o));
    // SAFETY: a variable of this function.
    eq(unsafe { (&raw const o).read_volatile() }, [0, sys!(SYS_gettid) as i32]);
    ok(sys!(SYS_fcntl, p[0], 15, &[1i32, me]));
    eq(sys!(SYS_fcntl, p[0], F_GETOWN), i64::from(me));
    err(sys!(SYS_fcntl, p[0], 15, &[7i32, me]), EINVAL);
    err(sys!(SYS_fcntl, p[0], 15, &[1i32, 99_999_999]), ESRCH);
    err(sys!(SYS_fcntl, p[0], F_SETOWN, 99_999_999), ESRCH);
    err(sys!(SYS_fcntl, p[0], F_SETOWN, i32::MIN), EINVAL);
    err(sys!(SYS_fcntl, p[0], 15, bad()), EFAULT);
    ok(sys!(SYS_fcntl, p[0], F_SETOWN, 0));
    eq(sys!(SYS_fcntl, p[0], F_GETOWN), 0);
    let mut u = [9u32; 2];
    ok(sys!(SYS_fcntl, p[0], F_SETOWN, me));
    let r = sys!(SYS_fcntl, p[0], 17, &mut u);
    if r == 0 {
        let ids = [sys!(SYS_getuid) as u32, sys!(SYS_geteuid) as u32];
        // SAFETY: a variable of this function.
        eq(unsafe { (&raw const u).read_volatile() }, ids);
    } else {
        err(r, EINVAL);
    }
    shut(p);
}

fn fcntl_sig() {
    let p = pipe_pair();
    eq(sys!(SYS_fcntl, p[0], 11), 0);
    ok(sys!(SYS_fcntl, p[0], 10, SIGUSR1));
    eq(sys!(SYS_fcntl, p[0], 11), i64::from(SIGUSR1));
    err(sys!(SYS_fcntl, p[0], 10, 65), EINVAL);
    err(sys!(SYS_fcntl, p[0], 10, -1), EINVAL);
    ok(sys!(SYS_fcntl, p[0], 10, 0));
    eq(sys!(SYS_fcntl, p[0], 11), 0);
    shut(p);
}

fn sigio_on_pipe() {
    let p = pipe_pair();
    ok(sys!(SYS_fcntl, p[0], F_SETOWN, sys!(SYS_getpid)));
    ok(sys!(SYS_fcntl, p[0], F_SETFL, O_ASYNC));
    let _on = sig::on(SIGIO, 0);
    eq(sys!(SYS_write, p[1], b"x", 1), 1);
    until("SIGIO comes", || sig::hits() > 0);
    ok(sys!(SYS_fcntl, p[0], F_SETFL, 0));
    shut(p);
}

fn fcntl_lease() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    let r = ok(t.open("f", O_RDONLY)) as i32;
    eq(sys!(SYS_fcntl, r, F_GETLEASE), i64::from(F_UNLCK));
    err(sys!(SYS_fcntl, r, F_SETLEASE, 77), EINVAL);
    let p = pipe_pair();
    err(sys!(SYS_fcntl, p[0], F_SETLEASE, F_RDLCK), EINVAL);
    // Taken, or refused as file systems without leases do.
    let got = sys!(SYS_fcntl, r, F_SETLEASE, F_RDLCK);
    check(got == 0 || [EINVAL, EAGAIN, EOPNOTSUPP].iter().any(|e| got == -i64::from(*e)), "an answer");
    let back = sys!(SYS_fcntl, r, F_SETLEASE, F_UNLCK);
    check(back == 0 || back == -i64::from(EAGAIN), "given back");
    shut([r, p[0], p[1]]);
}

fn fcntl_hints() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let mut v = 9u64;
    eq(sys!(SYS_fcntl, fd, 1035, &mut v), 0);
    // SAFETY: a variable of this function.
    eq(unsafe { (&raw const v).read_volatile() }, 0);
    eq(sys!(SYS_fcntl, fd, 1036, &2u64), 0);
    eq(sys!(SYS_fcntl, fd, 1035, &mut v), 0);
    // SAFETY: a variable of this function.
    eq(unsafe { (&raw const v).read_volatile() }, 2);
    err(sys!(SYS_fcntl, fd, 1036, &77u64), EINVAL);
    err(sys!(SYS_fcntl, fd, 1036, bad()), EFAULT);
    shut([fd]);
}

fn fcntl_queries() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let d = ok(sys!(SYS_dup, fd)) as i32;
    let o = ok(t.open("f", O_RDWR)) as i32;
    eq(sys!(SYS_fcntl, fd, 1027, d), 1);
    eq(sys!(SYS_fcntl, fd, 1027, o), 0);
    err(sys!(SYS_fcntl, fd, 1027, 9999), EBADF);
    let c = sys!(SYS_fcntl, fd, 1028, 0);
    if c != -i64::from(EINVAL) {
        // F_CREATED_QUERY: made by this open.
        eq(c, 1);
        eq(sys!(SYS_fcntl, o, 1028, 0), 0);
    }
    shut([fd, d, o]);
}

fn fcntl_setfl_direct() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let r = sys!(SYS_fcntl, fd, F_SETFL, O_DIRECT);
    check(r == 0 || r == -i64::from(EINVAL), "taken or not");
    let p = pipe_pair();
    let r = sys!(SYS_fcntl, p[1], F_SETFL, O_DIRECT);
    eq(r, 0);
    ok(sys!(SYS_fcntl, fd, F_SETFL, O_NOATIME));
    check(sys!(SYS_fcntl, fd, F_GETFL) & i64::from(O_NOATIME) != 0, "kept");
    shut([fd, p[0], p[1]]);
    let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/etc/passwd", O_RDONLY, 0)) as i32;
    let r = sys!(SYS_fcntl, fd, F_SETFL, O_NOATIME);
    if sys!(SYS_geteuid) == 0 { eq(r, 0) } else { err(r, EPERM) }
    shut([fd]);
    let r = sys!(SYS_openat, AT_FDCWD, c"/etc/passwd", O_RDONLY | O_NOATIME, 0);
    if sys!(SYS_geteuid) == 0 { shut([ok(r) as i32]) } else { err(r, EPERM) }
}

fn ioctl_regular() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let mut n = 0i32;
    ok(sys!(SYS_lseek, fd, 3, SEEK_SET));
    eq(sys!(SYS_ioctl, fd, FIONREAD, &mut n), 0);
    // SAFETY: a variable of this function.
    eq(unsafe { (&raw const n).read_volatile() }, 7);
    ok(sys!(SYS_lseek, fd, 30, SEEK_SET));
    eq(sys!(SYS_ioctl, fd, FIONREAD, &mut n), 0);
    // SAFETY: a variable of this function.
    eq(unsafe { (&raw const n).read_volatile() }, -20);
    err(sys!(SYS_ioctl, fd, FIONREAD, bad()), EFAULT);
    let mut b = 0i32;
    eq(sys!(SYS_ioctl, fd, 2, &mut b), 0); // FIGETBSZ
    // SAFETY: a variable of this function.
    eq(unsafe { (&raw const b).read_volatile() }, 4096);
    let mut q = 0u64;
    eq(sys!(SYS_ioctl, fd, 0x5460, &mut q), 0); // FIOQSIZE
    // What is allocated.
    // SAFETY: a variable of this function.
    eq(unsafe { (&raw const q).read_volatile() } % 512, 0);
    err(sys!(SYS_ioctl, fd, TCGETS, bad()), ENOTTY);
    err(sys!(SYS_ioctl, fd, TIOCGWINSZ, bad()), ENOTTY);
    let g = t.file("g", b"abc");
    errs(sys!(SYS_ioctl, g, 0x4004_9409u32, fd), &[EOPNOTSUPP]); // FICLONE
    err(sys!(SYS_ioctl, g, 0x4004_9409u32, 9999), EBADF);
    // FIBMAP needs a privilege, and a file system with blocks.
    let r = sys!(SYS_ioctl, fd, 1, &mut b);
    check(r != 0 || sys!(SYS_geteuid) == 0, "not for everyone");
    shut([fd, g]);
}

fn ioctl_flags() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let mut f = 0u64;
    // FS_IOC_GETFLAGS, SETFLAGS.
    let r = sys!(SYS_ioctl, fd, 0x8008_6601u32, &mut f);
    if r == -i64::from(ENOTTY) || r == -i64::from(EOPNOTSUPP) {
        skip("a file system without flags");
    }
    eq(r, 0);
    // SAFETY: a variable of this function.
    eq(unsafe { (&raw const f).read_volatile() } & 0x30, 0);
    eq(sys!(SYS_ioctl, fd, 0x4008_6602u32, &unsafe { (&raw const f).read_volatile() }), 0);
    err(sys!(SYS_ioctl, fd, 0x8008_6601u32, bad()), EFAULT);
    if sys!(SYS_geteuid) != 0 {
        err(sys!(SYS_ioctl, fd, 0x4008_6602u32, &0x10u64), EPERM);
    }
    shut([fd]);
}

fn ioctl_any() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    eq(sys!(SYS_ioctl, fd, FIOCLEX, 0), 0);
    eq(sys!(SYS_fcntl, fd, F_GETFD), 1);
    eq(sys!(SYS_ioctl, fd, FIONCLEX, 0), 0);
    eq(sys!(SYS_fcntl, fd, F_GETFD), 0);
    eq(sys!(SYS_ioctl, fd, FIONBIO, &1i32), 0);
    check(sys!(SYS_fcntl, fd, F_GETFL) & i64::from(O_NONBLOCK) != 0, "set");
    err(sys!(SYS_ioctl, fd, FIONBIO, bad()), EFAULT);
    err(sys!(SYS_ioctl, fd, FIOASYNC, &1i32), ENOTTY);
    eq(sys!(SYS_ioctl, fd, FIOASYNC, &0i32), 0);
    err(sys!(SYS_ioctl, 9999, FIONBIO, &1i32), EBADF);
    let d = ok(t.open("", O_RDONLY)) as i32;
    err(sys!(SYS_ioctl, d, FIONREAD, &mut 0i32), ENOTTY);
    err(sys!(SYS_ioctl, d, TCGETS, bad()), ENOTTY);
    shut([fd, d]);
}

fn ioctl_pipe() {
    let p = pipe_pair();
    let mut n = 0i32;
    eq(sys!(SYS_write, p[1], b"abc", 3), 3);
    eq(sys!(SYS_ioctl, p[1], FIONREAD, &mut n), 0);
    // SAFETY: a variable of this function.
    eq(unsafe { (&raw const n).read_volatile() }, 3);
    err(sys!(SYS_ioctl, p[0], TCGETS, bad()), ENOTTY);
    eq(sys!(SYS_ioctl, p[0], FIOASYNC, &1i32), 0);
    check(sys!(SYS_fcntl, p[0], F_GETFL) & i64::from(O_ASYNC) != 0, "set");
    shut(p);
}

fn close_range_forms() {
    in_child(|| {
        let p = pipe_pair();
        for fd in 60..70 {
            eq(sys!(SYS_dup2, p[0], fd), i64::from(fd));
        }
        err(sys!(SYS_close_range, 66, 60, 0), EINVAL);
        err(sys!(SYS_close_range, 60, 66, 8), EINVAL);
        eq(sys!(SYS_close_range, 60, 62, 4), 0);
        eq(sys!(SYS_fcntl, 61, F_GETFD), 1);
        eq(sys!(SYS_close_range, 61, 62, 0), 0);
        err(sys!(SYS_fcntl, 61, F_GETFD), EBADF);
        eq(sys!(SYS_fcntl, 60, F_GETFD), 1);
        eq(sys!(SYS_close_range, 64, u32::MAX, 2), 0);
        err(sys!(SYS_fcntl, 69, F_GETFD), EBADF);
        eq(sys!(SYS_fcntl, 63, F_GETFD), 0);
        eq(sys!(SYS_close_range, 1000, u32::MAX, 0), 0);
    });
}

/// chmod, chown, utimensat and extended attributes of what has no name. ksh makes its pipes of socket pairs and
/// changes their mode.
fn attributes_without_a_name() {
    let mode = |fd: i64| {
        // SAFETY: an all-zero stat is valid, and fstat fills it.
        let mut st: libc::stat = unsafe { std::mem::zeroed() };
        ok(sys!(SYS_fstat, fd, &mut st));
        (st.st_mode, st.st_uid, st.st_gid, st.st_mtime)
    };
    let (uid, gid) = (sys!(SYS_getuid) as u32, sys!(SYS_getgid) as u32);
    let p = pipe_pair();
    let mut pair = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut pair));
    let tcp = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0));
    for fd in [i64::from(p[0]), i64::from(pair[0]), tcp] {
        eq((mode(fd).1, mode(fd).2), (uid, gid));
        let kind = mode(fd).0 & S_IFMT;
        ok(sys!(SYS_fchmod, fd, 0o640));
        eq(mode(fd).0, kind | 0o640);
        ok(sys!(SYS_fchown, fd, uid, gid));
        ok(sys!(SYS_utimensat, fd, 0, &[7i64, 0, 9, 0], 0));
        eq(mode(fd).3, 9);
        ok(sys!(SYS_utimensat, fd, 0, 0, 0));
        if uid != 0 {
            err(sys!(SYS_fchown, fd, uid + 1, u32::MAX), EPERM);
        } else {
            ok(sys!(SYS_fchown, fd, 1, 2));
            eq((mode(fd).1, mode(fd).2), (1, 2));
        }
        err(sys!(SYS_fsetxattr, fd, c"user.a".as_ptr(), c"b".as_ptr(), 1, 0), EPERM);
        err(sys!(SYS_fgetxattr, fd, c"user.a".as_ptr(), 0, 0), ENODATA);
    }
    // Both ends are one inode; the other socket is another.
    eq(mode(p[1].into()).0 & 0o777, 0o640);
    eq(mode(pair[1].into()).0 & 0o777, 0o777);
    eq(sys!(SYS_flistxattr, p[0], 0, 0), 0);
    let mut name = [0u8; 32];
    eq(sys!(SYS_flistxattr, tcp, name.as_mut_ptr(), name.len()), 21);
    eq(&name[..21], b"system.sockprotoname\0");
    eq(sys!(SYS_fgetxattr, tcp, c"system.sockprotoname".as_ptr(), name.as_mut_ptr(), name.len()), 4);
    eq(&name[..4], b"TCP\0");
    eq(sys!(SYS_fgetxattr, pair[0], c"system.sockprotoname".as_ptr(), name.as_mut_ptr(), 32), 12);
    let events = [ok(sys!(SYS_eventfd2, 0, 0)), ok(sys!(SYS_epoll_create1, 0)), ok(sys!(SYS_timerfd_create, 1, 0))];
    for fd in events {
        err(sys!(SYS_fchmod, fd, 0o600), EOPNOTSUPP);
        err(sys!(SYS_fchown, fd, uid, gid), EOPNOTSUPP);
        err(sys!(SYS_utimensat, fd, 0, &[7i64, 0, 9, 0], 0), EOPNOTSUPP);
        err(sys!(SYS_utimensat, fd, 0, 0, 0), if uid == 0 { EOPNOTSUPP } else { EACCES });
        err(sys!(SYS_fsetxattr, fd, c"user.a".as_ptr(), c"b".as_ptr(), 1, 0), EPERM);
        eq(sys!(SYS_flistxattr, fd, 0, 0), 0);
    }
    let pidfd = ok(sys!(SYS_pidfd_open, sys!(SYS_getpid), 0));
    eq(mode(pidfd).0, 0o700);
    err(sys!(SYS_fchmod, pidfd, 0o600), EOPNOTSUPP);
    shut([p[0], p[1], pair[0], pair[1], tcp as i32, pidfd as i32]);
    shut(events.map(|fd| fd as i32));
}

/// What only names a place (O_PATH) is no descriptor to work with.
fn place_alone() {
    let p = ok(sys!(SYS_openat, AT_FDCWD, c"/", O_PATH, 0)) as i32;
    let pipe = pipe_pair();
    let e = ok(sys!(SYS_epoll_create1, 0)) as i32;
    let mut room = [0u64; 8];
    err(sys!(SYS_pread64, p, &mut room, 1, 0), EBADF);
    err(sys!(SYS_preadv, p, &[room.as_mut_ptr() as u64, 1], 1, 0), EBADF);
    err(sys!(SYS_pwritev, p, &[room.as_mut_ptr() as u64, 1], 1, 0), EBADF);
    err(sys!(SYS_connect, p, &room, 16), EBADF);
    err(sys!(SYS_bind, p, &room, 16), EBADF);
    err(sys!(SYS_listen, p, 1), EBADF);
    err(sys!(SYS_accept, p, 0, 0), EBADF);
    err(sys!(SYS_shutdown, p, SHUT_RDWR), EBADF);
    err(sys!(SYS_getsockname, p, &mut room, &mut 16), EBADF);
    err(sys!(SYS_sendto, p, &room, 1, 0, 0, 0), EBADF);
    err(sys!(SYS_recvfrom, p, &mut room, 1, 0, 0, 0), EBADF);
    err(sys!(SYS_epoll_wait, p, &mut room, 1, 0), EBADF);
    err(sys!(SYS_epoll_ctl, e, EPOLL_CTL_ADD, p, &room), EBADF);
    err(sys!(SYS_epoll_ctl, p, EPOLL_CTL_ADD, e, &room), EBADF);
    err(sys!(SYS_inotify_add_watch, p, c"/", IN_OPEN), EBADF);
    err(sys!(SYS_setns, p, 0), EBADF);
    err(sys!(SYS_timerfd_gettime, p, &mut room), EBADF);
    err(sys!(SYS_timerfd_settime, p, 0, &[0u64; 4], 0), EBADF);
    err(sys!(SYS_signalfd4, p, &room, 8, 0), EBADF);
    err(sys!(SYS_sync_file_range, p, 0, 0, 0), EBADF);
    err(sys!(SYS_splice, pipe[0], 0, p, 0, 1, SPLICE_F_NONBLOCK), EBADF);
    err(sys!(SYS_waitid, P_PIDFD, p, 0, WEXITED | WNOHANG, 0), EBADF);
    err(sys!(SYS_fsync, p), EBADF);
    err(sys!(SYS_lseek, p, 0, SEEK_CUR), EBADF);
    err(sys!(SYS_fchmod, p, 0), EBADF);
    err(sys!(SYS_ioctl, p, FIOCLEX, 0), EBADF);
    let mut polled = pollfd { fd: p, events: POLLIN, revents: 0 };
    eq(sys!(SYS_poll, &mut polled, 1, 0), 1);
    eq(polled.revents, POLLNVAL);
    let mut set = [0u64; 16];
    set[p as usize / 64] |= 1 << (p % 64);
    eq(sys!(SYS_select, p + 1, &mut set, 0, 0, &[0u64; 2]), 1);
    eq(sys!(SYS_select, p + 1, 0, 0, &mut set, &[0u64; 2]), 1);
    // Others take it.
    let copy = ok(sys!(SYS_dup, p)) as i32;
    eq(sys!(SYS_kcmp, sys!(SYS_getpid), sys!(SYS_getpid), 0, p, copy), 0);
    ok(sys!(SYS_fstatfs, p, &mut [0u64; 15]));
    ok(sys!(SYS_fstat, p, &mut [0u64; 18]));
    ok(sys!(SYS_fchdir, p));
    shut([p, copy, e, pipe[0], pipe[1]]);
}

fn flock_mandatory() {
    const LOCK_MAND: i32 = 32;
    let p = pipe_pair();
    eq(sys!(SYS_flock, p[0], LOCK_MAND | LOCK_SH), 0);
    eq(sys!(SYS_flock, -1, LOCK_MAND), 0);
    err(sys!(SYS_flock, p[0], 16), EINVAL);
    shut(p);
}

fn ioctl_epoll() {
    let e = ok(sys!(SYS_epoll_create1, 0)) as i32;
    err(sys!(SYS_ioctl, e, TCGETS, &mut [0u8; 64]), EINVAL);
    err(sys!(SYS_ioctl, e, FIONREAD, &mut 0i32), EINVAL);
    shut([e]);
}

/// A write is one number and nothing behind it; a read may have more room.
fn eventfd_takes_numbers() {
    let e = ok(sys!(SYS_eventfd2, 0, EFD_NONBLOCK)) as i32;
    for len in [0, 7, 9, 16] {
        err(sys!(SYS_write, e, &[1u64, 0], len), EINVAL);
    }
    eq(sys!(SYS_write, e, &3u64, 8), 8);
    let mut two = [0u64; 2];
    err(sys!(SYS_read, e, &mut two, 7), EINVAL);
    eq(sys!(SYS_read, e, &mut two, 16), 8);
    eq(two, [3, 0]);
    shut([e]);
}
