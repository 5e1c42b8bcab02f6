//! mq_open(2) and the calls on message queues.

use guest_tests::*;
use libc::*;
use std::ffi::CStr;

cases![
    open_modes, attributes, priorities, nonblocking, blocks_and_wakes, timeouts, errors, sizes, poll_ready, notify_signal, notify_socket, notify_rules,
    set_flags, unlinked_lives_on, in_dev_mqueue, permissions, user_limit, eintr
];

fn open(name: &CStr, flags: i32, attr: usize) -> i64 {
    sys!(SYS_mq_open, name, flags, 0o600, attr)
}

/// A queue without a name.
fn queue(max: i64, size: i64) -> i32 {
    let name = cstr(format!("guest-{}", sys!(SYS_getpid)));
    sys!(SYS_mq_unlink, name);
    let attr = [0i64, max, size, 0, 0, 0, 0, 0];
    let fd = ok(open(name, O_RDWR | O_CREAT | O_EXCL, attr.as_ptr() as usize)) as i32;
    ok(sys!(SYS_mq_unlink, name));
    fd
}

fn send(fd: i32, text: &[u8], prio: u32) -> i64 {
    sys!(SYS_mq_timedsend, fd, text, text.len(), prio, 0)
}

fn recv(fd: i32, room: usize) -> (i64, Vec<u8>, u32) {
    let (mut b, mut prio) = (vec![0u8; room], 77u32);
    let r = sys!(SYS_mq_timedreceive, fd, b.as_mut_slice(), room, &mut prio, 0);
    b.truncate(r.max(0) as usize);
    (r, b, prio)
}

fn attr(fd: i32) -> [i64; 8] {
    let mut a = [9i64; 8];
    eq(sys!(SYS_mq_getsetattr, fd, 0, &mut a), 0);
    a
}

fn open_modes() {
    let name = unique("guest-open");
    sys!(SYS_mq_unlink, name);
    err(open(name, O_RDWR, 0), ENOENT);
    let fd = ok(open(name, O_RDWR | O_CREAT, 0)) as i32;
    eq(sys!(SYS_fcntl, fd, F_GETFD), 1);
    err(open(name, O_RDWR | O_CREAT | O_EXCL, 0), EEXIST);
    err(open(name, 3, 0), EINVAL);
    let ro = ok(open(name, O_RDONLY, 0)) as i32;
    err(send(ro, b"x", 0), EBADF);
    let wo = ok(open(name, O_WRONLY, 0)) as i32;
    eq(send(wo, b"x", 0), 0);
    err(recv(wo, 8192).0, EBADF);
    eq(recv(ro, 8192).1, b"x");
    eq(sys!(SYS_mq_unlink, name), 0);
    err(sys!(SYS_mq_unlink, name), ENOENT);
    shut([fd, ro, wo]);
}

fn attributes() {
    let fd = queue(3, 100);
    eq(&attr(fd)[..4], [0, 3, 100, 0]);
    eq(send(fd, b"x", 0), 0);
    eq(attr(fd)[3], 1);
    shut([fd]);
    let name = unique("guest-default");
    sys!(SYS_mq_unlink, name);
    let fd = ok(open(name, O_RDWR | O_CREAT, 0)) as i32;
    eq(&attr(fd)[..4], [0, 10, 8192, 0]);
    ok(sys!(SYS_mq_unlink, name));
    shut([fd]);
    let bads: [[i64; 8]; 3] =
        [[0, 0, 1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0], [0, 1 << 40, 1, 0, 0, 0, 0, 0]];
    for a in bads {
        err(open(name, O_RDWR | O_CREAT, a.as_ptr() as usize), EINVAL);
    }
    err(open(name, O_RDWR | O_CREAT, bad() as usize), EFAULT);
}

fn priorities() {
    let fd = queue(10, 100);
    for (text, prio) in [(b"a1", 1), (b"c5", 5), (b"b1", 1), (b"d5", 5), (b"e0", 0)] {
        eq(send(fd, text, prio), 0);
    }
    let got: Vec<_> = (0..5).map(|_| recv(fd, 100)).collect();
    let want = [(b"c5", 5u32), (b"d5", 5), (b"a1", 1), (b"b1", 1), (b"e0", 0)];
    for (g, (t, p)) in got.into_iter().zip(want) {
        eq(g, (2, t.to_vec(), p));
    }
    err(send(fd, b"x", 32768), EINVAL);
    eq(send(fd, b"x", 32767), 0);
    eq(send(fd, b"", 0), 0);
    eq(recv(fd, 100).2, 32767);
    eq(recv(fd, 100), (0, vec![], 0));
    shut([fd]);
}

fn nonblocking() {
    let fd = queue(1, 10);
    eq(sys!(SYS_fcntl, fd, F_SETFL, O_NONBLOCK), 0);
    err(recv(fd, 10).0, EAGAIN);
    eq(send(fd, b"x", 0), 0);
    err(send(fd, b"y", 0), EAGAIN);
    eq(attr(fd)[0], i64::from(O_NONBLOCK));
    shut([fd]);
}

fn blocks_and_wakes() {
    let fd = queue(1, 10);
    let pid = child(|| {
        let (r, t, p) = recv(fd, 10);
        (r == 2 && t == b"hi" && p == 4).into()
    });
    sleep_ms(30);
    eq(send(fd, b"hi", 4), 0);
    exits(pid, 1);
    eq(send(fd, b"1", 0), 0);
    let pid = child(|| send(fd, b"2", 0) as i32 + 6);
    sleep_ms(30);
    eq(recv(fd, 10).1, b"1");
    exits(pid, 6);
    eq(recv(fd, 10).1, b"2");
    shut([fd]);
}

fn timeouts() {
    let fd = queue(1, 10);
    let mut b = [0u8; 10];
    let mut t = [0i64; 2];
    ok(sys!(SYS_clock_gettime, CLOCK_REALTIME, &mut t));
    t[1] += 30_000_000;
    t = [t[0] + t[1] / 1_000_000_000, t[1] % 1_000_000_000];
    let begin = now_ms();
    err(sys!(SYS_mq_timedreceive, fd, &mut b, 10, 0, &t), ETIMEDOUT);
    took(begin, 25);
    err(sys!(SYS_mq_timedreceive, fd, &mut b, 10, 0, &[1i64, 0]), ETIMEDOUT);
    err(sys!(SYS_mq_timedreceive, fd, &mut b, 10, 0, &[1i64, -1]), EINVAL);
    err(sys!(SYS_mq_timedreceive, fd, &mut b, 10, 0, bad()), EFAULT);
    eq(sys!(SYS_mq_timedsend, fd, b"x", 1, 0, &[1i64, 0]), 0);
    err(sys!(SYS_mq_timedsend, fd, b"x", 1, 0, &[1i64, 0]), ETIMEDOUT);
    shut([fd]);
}

fn errors() {
    err(sys!(SYS_mq_open, c"", O_RDWR | O_CREAT, 0o600, 0), ENOENT);
    err(sys!(SYS_mq_open, c"a/b", O_RDWR | O_CREAT, 0o600, 0), EACCES);
    err(sys!(SYS_mq_open, c"/a", O_RDWR | O_CREAT, 0o600, 0), EACCES);
    err(sys!(SYS_mq_open, c"..", O_RDWR | O_CREAT, 0o600, 0), EACCES);
    err(sys!(SYS_mq_open, cstr(vec![b'a'; 300]), O_RDWR | O_CREAT, 0o600, 0), ENAMETOOLONG);
    err(sys!(SYS_mq_open, bad(), O_RDWR, 0, 0), EFAULT);
    err(sys!(SYS_mq_unlink, c"guest-nothing"), ENOENT);
    err(sys!(SYS_mq_unlink, c"a/b"), EACCES);
    let p = pipe_pair();
    err(send(p[1], b"x", 0), EBADF);
    err(recv(p[0], 10).0, EBADF);
    err(send(999, b"x", 0), EBADF);
    err(sys!(SYS_mq_getsetattr, p[0], 0, &mut [0u64; 8]), EBADF);
    err(sys!(SYS_mq_notify, p[0], 0), EBADF);
    shut(p);
}

fn sizes() {
    let fd = queue(2, 10);
    err(send(fd, &[0; 11], 0), EMSGSIZE);
    eq(send(fd, &[1; 10], 0), 0);
    err(recv(fd, 9).0, EMSGSIZE);
    err(sys!(SYS_mq_timedsend, fd, bad(), 5, 0, 0), EFAULT);
    eq(recv(fd, 10).0, 10);
    shut([fd]);
}

fn poll_ready() {
    let fd = queue(1, 10);
    let ready = || {
        let mut p = pollfd { fd, events: POLLIN | POLLOUT, revents: 0 };
        sys!(SYS_poll, &mut p, 1, 0);
        p.revents
    };
    eq(ready(), POLLOUT);
    eq(send(fd, b"x", 0), 0);
    eq(ready(), POLLIN);
    recv(fd, 10);
    let mut p = pollfd { fd, events: POLLIN, revents: 0 };
    let pid = child(|| {
        sleep_ms(30);
        send(fd, b"y", 0) as i32
    });
    eq(sys!(SYS_poll, &mut p, 1, -1), 1);
    exits(pid, 0);
    shut([fd]);
}

/// value, signal and kind, as struct sigevent has them
fn event(value: u64, signal: i32, kind: i32) -> [u64; 8] {
    [value, u64::from(signal as u32) | u64::from(kind as u32) << 32, 0, 0, 0, 0, 0, 0]
}

fn notify_signal() {
    let fd = queue(4, 10);
    let old = sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
    eq(sys!(SYS_mq_notify, fd, &event(0x1234, SIGUSR1, 0)), 0);
    let pid = child(|| send(fd, b"x", 0) as i32);
    exits(pid, 0);
    let mut info = [0i32; 32];
    eq(sys!(SYS_rt_sigtimedwait, &sig::set(&[SIGUSR1]), &mut info, &[1i64, 0], 8), i64::from(SIGUSR1));
    // Code, pid, user, value.
    eq((info[2], info[4], i64::from(info[5]), info[6]), (-3, pid, sys!(SYS_getuid), 0x1234));
    // Once: the next is not told of.
    recv(fd, 10);
    eq(send(fd, b"y", 0), 0);
    err(sys!(SYS_rt_sigtimedwait, &sig::set(&[SIGUSR1]), 0, &[0i64, 10_000_000], 8), EAGAIN);
    sig::mask(SIG_SETMASK, old);
    shut([fd]);
}

fn notify_rules() {
    let fd = queue(4, 10);
    err(sys!(SYS_mq_notify, fd, &event(0, SIGUSR1, 9)), EINVAL);
    err(sys!(SYS_mq_notify, fd, &event(0, 99, 0)), EINVAL);
    err(sys!(SYS_mq_notify, fd, bad()), EFAULT);
    eq(sys!(SYS_mq_notify, fd, &event(0, 0, SIGEV_NONE)), 0);
    err(sys!(SYS_mq_notify, fd, &event(0, SIGUSR1, 0)), EBUSY);
    exits(child(|| (sys!(SYS_mq_notify, fd, &event(0, SIGUSR1, 0)) == -i64::from(EBUSY)).into()), 1);
    eq(sys!(SYS_mq_notify, fd, 0), 0);
    eq(sys!(SYS_mq_notify, fd, &event(0, 0, SIGEV_NONE)), 0);
    // Closing any descriptor of the queue ends it.
    let copy = ok(sys!(SYS_dup, fd)) as i32;
    shut([copy]);
    eq(sys!(SYS_mq_notify, fd, &event(0, 0, SIGEV_NONE)), 0);
    eq(sys!(SYS_mq_notify, fd, 0), 0);
    // So does the end of the process.
    exits(child(|| sys!(SYS_mq_notify, fd, &event(0, 0, SIGEV_NONE)) as i32), 0);
    eq(sys!(SYS_mq_notify, fd, &event(0, 0, SIGEV_NONE)), 0);
    shut([fd]);
}

fn set_flags() {
    let fd = queue(1, 10);
    let mut old = [9i64; 8];
    eq(sys!(SYS_mq_getsetattr, fd, &[i64::from(O_NONBLOCK), 5, 5, 5, 0, 0, 0, 0], &mut old), 0);
    eq(&old[..4], [0, 1, 10, 0]);
    err(recv(fd, 10).0, EAGAIN);
    eq(&attr(fd)[..3], [i64::from(O_NONBLOCK), 1, 10]);
    err(sys!(SYS_mq_getsetattr, fd, &[1i64, 0, 0, 0, 0, 0, 0, 0], 0), EINVAL);
    eq(sys!(SYS_mq_getsetattr, fd, &[0i64; 8], 0), 0);
    eq(attr(fd)[0], 0);
    shut([fd]);
}

fn unlinked_lives_on() {
    let name = unique("guest-twice");
    sys!(SYS_mq_unlink, name);
    let a = ok(open(name, O_RDWR | O_CREAT, 0)) as i32;
    ok(sys!(SYS_mq_unlink, name));
    let b = ok(open(name, O_RDWR | O_CREAT | O_EXCL, 0)) as i32;
    eq(send(a, b"a", 0), 0);
    eq((attr(a)[3], attr(b)[3]), (1, 0));
    ok(sys!(SYS_mq_unlink, name));
    shut([a, b]);
}

fn in_dev_mqueue() {
    let mut s: statfs = unsafe { std::mem::zeroed() };
    if sys!(SYS_statfs, c"/dev/mqueue", &mut s) != 0 || s.f_type != 0x1980_0202 {
        skip("/dev/mqueue is not mounted");
    }
    let name = unique("guest-listed");
    sys!(SYS_mq_unlink, name);
    let fd = ok(open(name, O_RDWR | O_CREAT, 0)) as i32;
    eq(send(fd, b"four", 0), 0);
    let listed = name.to_str().unwrap();
    let path = &format!("/dev/mqueue/{listed}");
    check(std::fs::read_to_string(path).unwrap().starts_with("QSIZE:4          NOTIFY:0"), "its text");
    let names: Vec<_> =
        std::fs::read_dir("/dev/mqueue").unwrap().map(|e| e.unwrap().file_name()).collect();
    check(names.iter().any(|n| n == listed), "it is listed");
    let st = stat_fd(fd);
    eq((st.st_mode & 0o7777, st.st_size), (0o600, 80));
    std::fs::remove_file(path).unwrap();
    err(open(name, O_RDWR, 0), ENOENT);
    // Made as a file.
    drop(std::fs::File::create(path).unwrap());
    let other = ok(open(name, O_RDWR, 0)) as i32;
    eq(&attr(other)[..3], [0, 10, 8192]);
    ok(sys!(SYS_mq_unlink, name));
    shut([fd, other]);
}

fn permissions() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs to be root");
    }
    let name = unique("guest-private");
    sys!(SYS_mq_unlink, name);
    let fd = ok(sys!(SYS_mq_open, name, O_RDWR | O_CREAT, 0o604, 0)) as i32;
    in_child(|| {
        ok(sys!(SYS_setgroups, 0, 0));
        ok(sys!(SYS_setresgid, 1234, 1234, 1234));
        ok(sys!(SYS_setresuid, 1234, 1234, 1234));
        err(open(name, O_RDWR, 0), EACCES);
        shut([ok(open(name, O_RDONLY, 0)) as i32]);
        err(sys!(SYS_mq_unlink, name), EPERM);
    });
    ok(sys!(SYS_mq_unlink, name));
    shut([fd]);
}

fn user_limit() {
    in_child(|| {
        // As somebody who has no other queues.
        if sys!(SYS_geteuid) == 0 {
            ok(sys!(SYS_setresuid, 54321, 54321, 54321));
        }
        ok(sys!(SYS_prlimit64, 0, RLIMIT_MSGQUEUE, &[200_000u64, 200_000], 0));
        let make = || {
            let name = unique("guest-limit");
            let fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0);
            sys!(SYS_mq_unlink, name);
            fd
        };
        let (a, b) = (ok(make()), ok(make()));
        err(make(), EMFILE);
        shut([a as i32]);
        let c = ok(make());
        shut([b as i32, c as i32]);
    });
}

fn eintr() {
    let fd = queue(1, 10);
    {
        let _on = sig::on(SIGUSR1, 0);
        let h = sig::later(SIGUSR1, 30);
        err(recv(fd, 10).0, EINTR);
        h.join().unwrap();
    }
    shut([fd]);
}

/// What the C library does for SIGEV_THREAD: a message to a socket of its own, whose last byte says what happened.
fn notify_socket() {
    let name = unique("socket");
    let q = ok(sys!(SYS_mq_open, name, O_CREAT | O_RDWR, 0o600, 0)) as i32;
    let s = ok(sys!(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)) as i32;
    let mut cookie = [7u8; 32];
    let asked = |at: *const u8, fd: i32| {
        let mut e = [0u64; 8];
        e[0] = at as u64;
        e[1] = fd as u32 as u64 | (SIGEV_THREAD as u64) << 32;
        sys!(SYS_mq_notify, q, &e)
    };
    err(asked(bad(), s), EFAULT);
    err(asked(cookie.as_ptr(), 999), EBADF);
    err(asked(cookie.as_ptr(), q), ENOTSOCK);
    let other = ok(sys!(SYS_socket, AF_UNIX, SOCK_DGRAM, 0)) as i32;
    err(asked(cookie.as_ptr(), other), EINVAL);
    eq(asked(cookie.as_ptr(), s), 0);
    err(asked(cookie.as_ptr(), s), EBUSY);
    ok(sys!(SYS_mq_timedsend, q, b"x", 1, 0, 0));
    let mut b = [0u8; 64];
    eq(sys!(SYS_recvfrom, s, &mut b, 64, MSG_DONTWAIT, 0, 0), 32);
    cookie[31] = 1;
    eq(&b[..32], cookie);
    // Once; and it is told when the wish is withdrawn.
    ok(sys!(SYS_mq_timedreceive, q, &mut [0u8; 8192][..], 8192, 0, 0));
    eq(asked(cookie.as_ptr(), s), 0);
    eq(sys!(SYS_mq_notify, q, 0), 0);
    eq(sys!(SYS_recvfrom, s, &mut b, 64, MSG_DONTWAIT, 0, 0), 32);
    eq(b[31], 2);
    err(sys!(SYS_recvfrom, s, &mut b, 64, MSG_DONTWAIT, 0, 0), EAGAIN);
    ok(sys!(SYS_mq_unlink, name));
    shut([q, s, other]);
}
