//! fcntl(2).

use guest_tests::*;
use libc::*;

cases![
    dupfd, dupfd_cloexec, dupfd_errors, getfd_setfd, getfl_setfl, setfl_ignores_access_mode, pipe_size, pipe_size_errors, bad_fd, bad_cmd,
    path_fd, lock_conflict, lock_own_merges, lock_unlock_splits, lock_released_by_close, lock_wait, lock_errors, lock_end_of_file, ofd_lock,
    lock_deadlock, lock_ranges, lock_wait_ends, lock_wait_interrupted, lock_interrupted_wait_is_no_deadlock, lock_deadlock_of_three,
    lock_shared_table, lock_exec_closes, ofd_wait, ofd_getlk_unlocked, lock_on_pipe, lock_downgrade_wakes, owner, seals_need_memfd, nonblock_on_pipe, owner_that_has_ended
];

fn dupfd() {
    let p = pipe_pair();
    let d = ok(sys!(SYS_fcntl, p[0], F_DUPFD, 100)) as i32;
    eq(d, 100);
    let e = ok(sys!(SYS_fcntl, p[0], F_DUPFD, 100)) as i32;
    eq(e, 101);
    eq(sys!(SYS_fcntl, d, F_GETFD), 0);
    shut([p[0], p[1], d, e]);
}

fn dupfd_cloexec() {
    let p = pipe_pair();
    let d = ok(sys!(SYS_fcntl, p[0], F_DUPFD_CLOEXEC, 100)) as i32;
    eq(sys!(SYS_fcntl, d, F_GETFD), i64::from(FD_CLOEXEC));
    shut([p[0], p[1], d]);
}

fn dupfd_errors() {
    err(sys!(SYS_fcntl, 1, F_DUPFD, -1), EINVAL);
    err(sys!(SYS_fcntl, 1, F_DUPFD, i32::MAX), EINVAL);
    err(sys!(SYS_fcntl, -1, F_DUPFD, 0), EBADF);
}

fn getfd_setfd() {
    let p = pipe_pair();
    ok(sys!(SYS_fcntl, p[0], F_SETFD, FD_CLOEXEC));
    eq(sys!(SYS_fcntl, p[0], F_GETFD), 1);
    ok(sys!(SYS_fcntl, p[0], F_SETFD, 0x10));
    eq(sys!(SYS_fcntl, p[0], F_GETFD), 0);
    shut(p);
}

fn getfl_setfl() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let old = sys!(SYS_fcntl, fd, F_GETFL);
    eq(old & i64::from(O_ACCMODE), i64::from(O_RDWR));
    ok(sys!(SYS_fcntl, fd, F_SETFL, O_APPEND | O_NONBLOCK));
    eq(sys!(SYS_fcntl, fd, F_GETFL), old | i64::from(O_APPEND | O_NONBLOCK));
    ok(sys!(SYS_fcntl, fd, F_SETFL, 0));
    eq(sys!(SYS_fcntl, fd, F_GETFL), old);
    shut([fd]);
}

fn setfl_ignores_access_mode() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    let fd = ok(t.open("f", O_RDONLY)) as i32;
    ok(sys!(SYS_fcntl, fd, F_SETFL, O_RDWR | O_TRUNC));
    eq(sys!(SYS_fcntl, fd, F_GETFL) & i64::from(O_ACCMODE), 0);
    shut([fd]);
}

fn pipe_size() {
    let p = pipe_pair();
    eq(sys!(SYS_fcntl, p[0], F_GETPIPE_SZ), 65536);
    eq(sys!(SYS_fcntl, p[1], F_SETPIPE_SZ, 10_000), 16384);
    eq(sys!(SYS_fcntl, p[0], F_GETPIPE_SZ), 16384);
    eq(sys!(SYS_fcntl, p[0], F_SETPIPE_SZ, 1), 4096);
    shut(p);
}

fn pipe_size_errors() {
    let p = pipe_pair();
    eq(sys!(SYS_write, p[1], &[0u8; 10_000], 10_000), 10_000);
    err(sys!(SYS_fcntl, p[1], F_SETPIPE_SZ, 4096), EBUSY);
    err(sys!(SYS_fcntl, p[1], F_SETPIPE_SZ, -1), EINVAL);
    shut(p);
    let t = Tmp::new();
    let fd = t.file("f", b"");
    err(sys!(SYS_fcntl, fd, F_GETPIPE_SZ), EBADF);
    shut([fd]);
}

fn bad_fd() {
    for cmd in [F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_GETPIPE_SZ] {
        err(sys!(SYS_fcntl, -1, cmd, 0), EBADF);
    }
}

fn bad_cmd() {
    err(sys!(SYS_fcntl, 1, 0x7777, 0), EINVAL);
}

fn path_fd() {
    let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/", O_PATH, 0)) as i32;
    err(sys!(SYS_fcntl, fd, F_SETFL, 0), EBADF);
    err(sys!(SYS_fcntl, fd, F_SETLK, bad()), EBADF);
    ok(sys!(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC));
    shut([fd]);
}

fn lk(kind: i32, start: i64, len: i64) -> flock {
    flock { l_type: kind as i16, l_whence: SEEK_SET as i16, l_start: start, l_len: len, l_pid: 0 }
}

/// What F_GETLK for a write lock on the range tells a child of this process: (type, start, len, pid).
fn seen(t: &Tmp, start: i64, len: i64) -> (i32, i64, i64, i32) {
    let out = pipe_pair();
    let pid = child(|| {
        let fd = ok(t.open("f", O_RDWR));
        let mut l = lk(F_WRLCK, start, len);
        ok(sys!(SYS_fcntl, fd, F_GETLK, &mut l));
        sys!(SYS_write, out[1], &l, size_of::<flock>());
        0
    });
    exits(pid, 0);
    let mut l = lk(0, 0, 0);
    eq(sys!(SYS_read, out[0], &mut l, size_of::<flock>()), size_of::<flock>() as i64);
    shut(out);
    (l.l_type.into(), l.l_start, l.l_len, l.l_pid)
}

fn lock_conflict() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 2, 4)));
    let me = sys!(SYS_getpid) as i32;
    eq(seen(&t, 0, 0), (F_WRLCK, 2, 4, me));
    eq(seen(&t, 6, 0).0, F_UNLCK);
    eq(seen(&t, 0, 2).0, F_UNLCK);
    in_child(|| {
        let fd = ok(t.open("f", O_RDWR));
        errs(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_RDLCK, 0, 3)), &[EAGAIN, EACCES]);
        ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 0, 2)));
    });
    shut([fd]);
}

fn lock_own_merges() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_RDLCK, 0, 2)));
    ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_RDLCK, 2, 2)));
    let (k, s, l, _) = seen(&t, 0, 0);
    eq((k, s, l), (F_RDLCK, 0, 4));
    ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 0, 0)));
    let (k, s, l, _) = seen(&t, 0, 0);
    eq((k, s, l), (F_WRLCK, 0, 0));
    shut([fd]);
}

fn lock_unlock_splits() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 0, 10)));
    ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_UNLCK, 3, 2)));
    eq(seen(&t, 3, 2).0, F_UNLCK);
    let a = seen(&t, 0, 5);
    eq((a.1, a.2), (0, 3));
    let b = seen(&t, 4, 0);
    eq((b.1, b.2), (5, 5));
    shut([fd]);
}

fn lock_released_by_close() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 0, 0)));
    // Any close of the file by this process drops them.
    shut([ok(t.open("f", O_RDONLY)) as i32]);
    eq(seen(&t, 0, 0).0, F_UNLCK);
    shut([fd]);
}

fn lock_wait() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let ready = pipe_pair();
    let pid = child(|| {
        let fd = ok(t.open("f", O_RDWR));
        ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 0, 0)));
        sys!(SYS_write, ready[1], b"x", 1);
        sleep_ms(50);
        0
    });
    eq(sys!(SYS_read, ready[0], &mut [0u8; 1], 1), 1);
    ok(sys!(SYS_fcntl, fd, F_SETLKW, &lk(F_WRLCK, 0, 0)));
    exits(pid, 0);
    shut([fd, ready[0], ready[1]]);
}

fn lock_errors() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    err(sys!(SYS_fcntl, fd, F_SETLK, bad()), EFAULT);
    err(sys!(SYS_fcntl, fd, F_GETLK, bad()), EFAULT);
    err(sys!(SYS_fcntl, fd, F_SETLK, &lk(99, 0, 0)), EINVAL);
    err(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, -1, 1)), EINVAL);
    err(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 1, -2)), EINVAL);
    err(sys!(SYS_fcntl, fd, F_GETLK, &mut lk(F_UNLCK, 0, 0)), EINVAL);
    shut([fd]);
    let r = ok(t.open("f", O_RDONLY)) as i32;
    err(sys!(SYS_fcntl, r, F_SETLK, &lk(F_WRLCK, 0, 0)), EBADF);
    shut([r]);
    let w = ok(t.open("f", O_WRONLY)) as i32;
    err(sys!(SYS_fcntl, w, F_SETLK, &lk(F_RDLCK, 0, 0)), EBADF);
    shut([w]);
}

fn lock_end_of_file() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let mut l = lk(F_WRLCK, -4, 2);
    l.l_whence = SEEK_END as i16;
    ok(sys!(SYS_fcntl, fd, F_SETLK, &l));
    let s = seen(&t, 0, 0);
    eq((s.1, s.2), (6, 2));
    shut([fd]);
}

fn ofd_lock() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let other = ok(t.open("f", O_RDWR)) as i32;
    ok(sys!(SYS_fcntl, fd, F_OFD_SETLK, &lk(F_WRLCK, 0, 0)));
    err(sys!(SYS_fcntl, other, F_OFD_SETLK, &lk(F_WRLCK, 0, 0)), EAGAIN);
    let mut l = lk(F_WRLCK, 0, 0);
    ok(sys!(SYS_fcntl, other, F_OFD_GETLK, &mut l));
    eq((i32::from(l.l_type), l.l_pid), (F_WRLCK, -1));
    let mut l = lk(F_WRLCK, 0, 0);
    l.l_pid = 1;
    err(sys!(SYS_fcntl, fd, F_OFD_SETLK, &l), EINVAL);
    shut([fd]);
    ok(sys!(SYS_fcntl, other, F_OFD_SETLK, &lk(F_WRLCK, 0, 0)));
    shut([other]);
}

fn lock_deadlock() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 0, 1)));
    let ready = pipe_pair();
    let pid = child(|| {
        let fd = ok(t.open("f", O_RDWR));
        ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 1, 1)));
        sys!(SYS_write, ready[1], b"x", 1);
        i32::from(sys!(SYS_fcntl, fd, F_SETLKW, &lk(F_WRLCK, 0, 1)) != 0)
    });
    eq(sys!(SYS_read, ready[0], &mut [0u8; 1], 1), 1);
    until_child_asleep(pid.into());
    err(sys!(SYS_fcntl, fd, F_SETLKW, &lk(F_WRLCK, 1, 1)), EDEADLK);
    ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_UNLCK, 0, 1)));
    exits(pid, 0);
    shut([fd, ready[0], ready[1]]);
}

fn lock_ranges() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let max = i64::MAX;
    let set = |whence: i32, start: i64, len: i64| {
        let l = flock { l_whence: whence as i16, ..lk(F_WRLCK, start, len) };
        sys!(SYS_fcntl, fd, F_SETLK, &l)
    };
    err(set(3, 0, 0), EINVAL);
    err(set(SEEK_SET, max, 2), EOVERFLOW);
    eq(set(SEEK_SET, max, 1), 0);
    eq(set(SEEK_SET, max, 0), 0);
    err(set(SEEK_END, max, 0), EOVERFLOW);
    err(set(SEEK_END, -11, 0), EINVAL);
    err(set(SEEK_SET, 0, -1), EINVAL);
    eq(set(SEEK_SET, 5, -5), 0);
    let s = seen(&t, 0, 0);
    eq((s.1, s.2), (0, 5));
    ok(sys!(SYS_lseek, fd, 8, SEEK_SET));
    eq(set(SEEK_CUR, -1, 1), 0);
    let s = seen(&t, 5, 10);
    eq((s.1, s.2), (7, 1));
    let s = seen(&t, 100, 0);
    eq((s.1, s.2), (max, 0));
    shut([fd]);
}

/// A child that locks byte 0 of `f` and then does `end`; returns when it has the lock.
fn holder(t: &Tmp, end: impl FnOnce(i32) -> i32) -> i32 {
    let ready = pipe_pair();
    let pid = child(|| {
        let fd = ok(t.open("f", O_RDWR)) as i32;
        ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 0, 1)));
        sys!(SYS_write, ready[1], b"x", 1);
        end(fd)
    });
    eq(sys!(SYS_read, ready[0], &mut [0u8; 1], 1), 1);
    shut(ready);
    pid
}

fn lock_wait_ends() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    // By an unlock, a close, a close of another description, a dup2 over it, the end, a kill.
    let ends: [fn(i32, &Tmp); 5] = [
        |fd, _| _ = ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_UNLCK, 0, 0))),
        |fd, _| shut([fd]),
        |_, t| shut([ok(t.open("f", O_RDONLY)) as i32]),
        |fd, _| _ = ok(sys!(SYS_dup2, 1, fd)),
        |_, _| _ = sys!(SYS_kill, sys!(SYS_getpid), SIGKILL),
    ];
    for end in ends {
        let pid = holder(&t, |fd| {
            sleep_ms(20);
            end(fd, &t);
            forever()
        });
        // The release alone, long before the child's end.
        ok(sys!(SYS_fcntl, fd, F_SETLKW, &lk(F_WRLCK, 0, 0)));
        ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_UNLCK, 0, 0)));
        sys!(SYS_kill, pid, SIGKILL);
        reap(pid);
    }
    shut([fd]);
}

fn lock_wait_interrupted() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let pid = holder(&t, |_| forever());
    for (cmd, flags) in [(F_SETLKW, 0), (F_OFD_SETLKW, 0)] {
        let _on = sig::on(SIGUSR1, flags);
        let s = sig::later(SIGUSR1, 20);
        err(sys!(SYS_fcntl, fd, cmd, &lk(F_WRLCK, 0, 1)), EINTR);
        s.join().unwrap();
    }
    // With SA_RESTART it waits on.
    let _on = sig::on(SIGUSR1, SA_RESTART);
    let killer = sig::later_and(SIGUSR1, move || _ = sys!(SYS_kill, pid, SIGKILL));
    eq(sys!(SYS_fcntl, fd, F_SETLKW, &lk(F_WRLCK, 0, 1)), 0);
    eq(sig::hits(), 1);
    killer.join().unwrap();
    reap(pid);
    shut([fd]);
}

fn lock_interrupted_wait_is_no_deadlock() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 1, 1)));
    let go = pipe_pair();
    let pid = holder(&t, |fd| {
        let _on = sig::on(SIGUSR1, 0);
        let s = sig::later(SIGUSR1, 20);
        let r = sys!(SYS_fcntl, fd, F_SETLKW, &lk(F_WRLCK, 1, 1));
        let _ = s.join();
        sys!(SYS_write, go[1], b"x", 1);
        sleep_ms(30);
        i32::from(r != -i64::from(EINTR))
    });
    eq(sys!(SYS_read, go[0], &mut [0u8; 1], 1), 1);
    // The child no longer waits for us: no circle.
    ok(sys!(SYS_fcntl, fd, F_SETLKW, &lk(F_WRLCK, 0, 1)));
    exits(pid, 0);
    shut([fd, go[0], go[1]]);
}

fn lock_deadlock_of_three() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 2, 1)));
    let a = holder(&t, |fd| {
        ok(sys!(SYS_fcntl, fd, F_SETLKW, &lk(F_WRLCK, 2, 1)));
        0
    });
    let ready = pipe_pair();
    let b = child(|| {
        let fd = ok(t.open("f", O_RDWR));
        ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 1, 1)));
        sys!(SYS_write, ready[1], b"x", 1);
        ok(sys!(SYS_fcntl, fd, F_SETLKW, &lk(F_WRLCK, 0, 1)));
        0
    });
    eq(sys!(SYS_read, ready[0], &mut [0u8; 1], 1), 1);
    [a, b].into_iter().for_each(|pid| until_child_asleep(pid.into()));
    err(sys!(SYS_fcntl, fd, F_SETLKW, &lk(F_WRLCK, 1, 1)), EDEADLK);
    // Descriptions are not looked at: this one would wait.
    err(sys!(SYS_fcntl, fd, F_OFD_SETLK, &lk(F_WRLCK, 1, 1)), EAGAIN);
    shut([fd]);
    exits(a, 0);
    exits(b, 0);
    shut(ready);
}

fn lock_shared_table() {
    // Who shares the descriptor table shares the locks.
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 0, 1)));
    let h = std::thread::spawn(move || sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 0, 2)));
    eq(h.join().unwrap(), 0);
    eq(seen(&t, 0, 0).2, 2);
    // A thread with a table of its own is another owner.
    let h = std::thread::spawn(move || {
        ok(sys!(SYS_unshare, CLONE_FILES));
        let r = sys!(SYS_fcntl, fd, F_SETLK, &lk(F_WRLCK, 0, 1));
        sys!(SYS_close, fd);
        r
    });
    err(h.join().unwrap(), EAGAIN);
    eq(seen(&t, 0, 0).2, 2);
    shut([fd]);
}

fn lock_exec_closes() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    for cloexec in [false, true] {
        let pid = holder(&t, |fd| {
            sys!(SYS_fcntl, fd, F_SETFD, i32::from(cloexec));
            let argv = [c"sleep".as_ptr() as usize, c"100".as_ptr() as usize, 0];
            sys!(SYS_execve, c"/bin/sleep", &argv, &[0usize]);
            1
        });
        until("another program", || std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"sleep\n"));
        until_child_asleep(pid.into());
        eq(seen(&t, 0, 1).0, if cloexec { F_UNLCK } else { F_WRLCK });
        sys!(SYS_kill, pid, SIGKILL);
        killed_by(pid, SIGKILL);
        eq(seen(&t, 0, 1).0, F_UNLCK);
    }
    shut([fd]);
}

fn ofd_wait() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let other = ok(t.open("f", O_RDWR)) as i32;
    ok(sys!(SYS_fcntl, other, F_OFD_SETLK, &lk(F_WRLCK, 0, 0)));
    // A lock of the process is in the way of the description's and the other way round.
    err(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_RDLCK, 3, 1)), EAGAIN);
    let mut l = lk(F_RDLCK, 3, 1);
    ok(sys!(SYS_fcntl, fd, F_GETLK, &mut l));
    eq((i32::from(l.l_type), l.l_start, l.l_len, l.l_pid), (F_WRLCK, 0, 0, -1));
    let h = std::thread::spawn(move || {
        sleep_ms(30);
        shut([other]);
    });
    ok(sys!(SYS_fcntl, fd, F_OFD_SETLKW, &lk(F_WRLCK, 0, 0)));
    h.join().unwrap();
    // Shared by dup, and kept until the last of them is closed.
    let again = ok(sys!(SYS_dup, fd)) as i32;
    shut([fd]);
    eq(seen(&t, 0, 0).0, F_WRLCK);
    shut([again]);
    let fd = ok(t.open("f", O_RDWR)) as i32;
    eq(seen(&t, 0, 0).0, F_UNLCK);
    shut([fd]);
}

fn ofd_getlk_unlocked() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    ok(sys!(SYS_fcntl, fd, F_OFD_SETLK, &lk(F_RDLCK, 4, 2)));
    // What the description itself holds there.
    let mut l = lk(F_UNLCK, 0, 0);
    ok(sys!(SYS_fcntl, fd, F_OFD_GETLK, &mut l));
    eq((i32::from(l.l_type), l.l_start, l.l_len, l.l_pid), (F_RDLCK, 4, 2, -1));
    let mut l = lk(F_UNLCK, 6, 0);
    ok(sys!(SYS_fcntl, fd, F_OFD_GETLK, &mut l));
    eq(i32::from(l.l_type), F_UNLCK);
    shut([fd]);
}

fn lock_on_pipe() {
    let p = pipe_pair();
    ok(sys!(SYS_fcntl, p[0], F_SETLK, &lk(F_RDLCK, 0, 0)));
    err(sys!(SYS_fcntl, p[0], F_SETLK, &lk(F_WRLCK, 0, 0)), EBADF);
    let mut l = lk(F_WRLCK, 0, 0);
    l.l_whence = SEEK_END as i16;
    ok(sys!(SYS_fcntl, p[1], F_SETLK, &l));
    shut(p);
}

fn lock_downgrade_wakes() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let pid = holder(&t, |fd| {
        sleep_ms(20);
        ok(sys!(SYS_fcntl, fd, F_SETLK, &lk(F_RDLCK, 0, 1)));
        forever()
    });
    // A shared lock lets others in.
    ok(sys!(SYS_fcntl, fd, F_SETLKW, &lk(F_RDLCK, 0, 0)));
    sys!(SYS_kill, pid, SIGKILL);
    reap(pid);
    shut([fd]);
}

fn owner() {
    let p = pipe_pair();
    eq(sys!(SYS_fcntl, p[0], F_GETOWN), 0);
    let me = sys!(SYS_getpid);
    ok(sys!(SYS_fcntl, p[0], F_SETOWN, me));
    eq(sys!(SYS_fcntl, p[0], F_GETOWN), me);
    shut(p);
}

fn seals_need_memfd() {
    let p = pipe_pair();
    err(sys!(SYS_fcntl, p[0], F_GET_SEALS), EINVAL);
    shut(p);
}

fn nonblock_on_pipe() {
    let p = pipe_pair();
    ok(sys!(SYS_fcntl, p[0], F_SETFL, O_NONBLOCK));
    err(sys!(SYS_read, p[0], &mut [0u8; 1], 1), EAGAIN);
    // The other end has its own flags.
    eq(sys!(SYS_fcntl, p[1], F_GETFL), i64::from(O_WRONLY));
    shut(p);
}

/// Who has ended owns nothing any more.
fn owner_that_has_ended() {
    let p = pipe_pair();
    let pid = child(|| {
        ok(sys!(SYS_fcntl, p[0], F_SETOWN, sys!(SYS_getpid)));
        0
    });
    exits(pid, 0);
    eq(sys!(SYS_fcntl, p[0], F_GETOWN), 0);
    let mut owner = [7i32, 7];
    ok(sys!(SYS_fcntl, p[0], 16, &mut owner));
    // F_OWNER_PID
    eq(owner, [1, 0]);
    ok(sys!(SYS_fcntl, p[0], F_SETOWN, sys!(SYS_getpid)));
    eq(sys!(SYS_fcntl, p[0], F_GETOWN), sys!(SYS_getpid));
    shut(p);
}
