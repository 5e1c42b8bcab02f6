//! Who is at the other end (unix(7)): SO_PEERCRED, SO_PEERPIDFD, SO_PEERGROUPS, SCM_CREDENTIALS, SCM_PIDFD, also seen from a
//! user namespace; si_uid and System V owners there; descriptors on their way that nobody can receive (SCM_RIGHTS).

use crate::sockets::{pair, send_control, send_fd};
use guest_tests::space::{become_root, is_root};
use guest_tests::*;
use libc::*;

cases![
    peer_pidfd, peer_pidfd_errors, peer_pidfd_of_listener, pass_pidfd, pass_pidfd_cut, pass_rights, peer_groups, ids_in_a_namespace, signal_ids,
    ipc_ids, late_pidfd, late_creds, creds_out_of_band, unglued, tcp_creds, end_of_message, reset_of_messages, received_meanwhile,
    of_the_peer_alone, another_peer, dead_peer, forged, cycle_of_two, cycle_of_one, chain, cycle_in_backlog, cycle_that_is_reached, thousands,
    too_many
];

const SO_PASSPIDFD: i32 = 76;
const SO_PEERPIDFD: i32 = 77;
const SO_PASSRIGHTS: i32 = 83;
const SCM_PIDFD: i32 = 4;

fn get(fd: i32, name: i32) -> (i64, i32) {
    let (mut v, mut n) = (-1i32, 4u32);
    (sys!(SYS_getsockopt, fd, SOL_SOCKET, name, &mut v, &mut n), v)
}

fn set(fd: i32, name: i32, value: i32) -> i64 {
    sys!(SYS_setsockopt, fd, SOL_SOCKET, name, &value, 4)
}

fn creds(fd: i32) -> [u32; 3] {
    let (mut v, mut n) = ([0u32; 3], 12u32);
    ok(sys!(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &mut v, &mut n));
    v
}

fn need_peer_pidfd(fd: i32) {
    if get(fd, SO_PEERPIDFD).0 == -i64::from(ENOPROTOOPT) {
        skip("no SO_PEERPIDFD");
    }
}

fn pid_of(pidfd: i32) -> i32 {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{pidfd}")).expect("fdinfo");
    info.lines().find_map(|l| l.strip_prefix("Pid:\t")?.parse().ok()).expect("a pid")
}

fn peer_pidfd() {
    let p = pair(SOCK_STREAM);
    need_peer_pidfd(p[0]);
    let (r, fd) = get(p[0], SO_PEERPIDFD);
    eq(r, 0);
    eq(pid_of(fd), std::process::id() as i32);
    eq(sys!(SYS_fcntl, fd, F_GETFD), i64::from(FD_CLOEXEC));
    shut([fd]);
    err(set(p[0], SO_PEERPIDFD, 1), ENOPROTOOPT);
    shut(p);
}

fn peer_pidfd_errors() {
    let s = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    need_peer_pidfd(s);
    err(get(s, SO_PEERPIDFD).0, ENODATA);
    let t = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    err(get(t, SO_PEERPIDFD).0, ENODATA);
    err(get(t, SO_PASSPIDFD).0, EOPNOTSUPP);
    err(set(t, SO_PASSPIDFD, 1), EOPNOTSUPP);
    shut([s, t]);
}

fn name(text: &str) -> Vec<u8> {
    [&[AF_UNIX as u8, 0, 0], format!("{text}-{}", std::process::id()).as_bytes()].concat()
}

fn peer_pidfd_of_listener() {
    let l = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    let a = name("peer");
    ok(sys!(SYS_bind, l, &a[..], a.len()));
    ok(sys!(SYS_listen, l, 1));
    let me = std::process::id() as i32;
    let p = pipe_pair();
    let pid = child(|| {
        let c = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
        ok(sys!(SYS_connect, c, &a[..], a.len()));
        need_peer_pidfd(c);
        let (r, fd) = get(c, SO_PEERPIDFD);
        eq((r, pid_of(fd)), (0, me));
        sys!(SYS_read, p[0], &mut [0u8; 1], 1);
        0
    });
    // A listener is its own peer.
    eq(creds(l), [me as u32, sys!(SYS_geteuid) as u32, sys!(SYS_getegid) as u32]);
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    need_peer_pidfd(s);
    let (r, fd) = get(s, SO_PEERPIDFD);
    eq((r, pid_of(fd)), (0, pid));
    sys!(SYS_write, p[1], b"x", 1);
    exits(pid, 0);
    shut([l, s, fd]);
}

/// Receives one byte; the control messages: type and body each, and the flags.
fn receive(fd: i32, room: usize) -> (i64, Vec<(i32, Vec<u8>)>, i32) {
    let mut byte = [0u8; 8];
    let mut control = vec![0u64; 64];
    let iov = iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 8 };
    // SAFETY: plain data, for which zeroes are a value.
    let mut m: msghdr = unsafe { std::mem::zeroed() };
    (m.msg_iov, m.msg_iovlen) = ((&raw const iov).cast_mut(), 1);
    (m.msg_control, m.msg_controllen) = (control.as_mut_ptr().cast(), room as _);
    let n = sys!(SYS_recvmsg, fd, &mut m, MSG_DONTWAIT);
    let bytes: Vec<u8> = control.iter().flat_map(|w| w.to_ne_bytes()).collect();
    let mut rest = &bytes[..(m.msg_controllen as usize).min(512)];
    let mut out = Vec::new();
    while rest.len() >= 16 {
        let len = usize::from_ne_bytes(rest[..8].try_into().unwrap());
        if len < 16 {
            break;
        }
        out.push((i32::from_ne_bytes(rest[12..16].try_into().unwrap()), rest[16..len.min(rest.len())].to_vec()));
        rest = &rest[len.next_multiple_of(8).min(rest.len())..];
    }
    (n, out, m.msg_flags)
}

fn int(b: &[u8]) -> i32 {
    i32::from_ne_bytes(b[..4].try_into().unwrap())
}

fn need_pass_pidfd(fd: i32) {
    if set(fd, SO_PASSPIDFD, 1) != 0 {
        skip("no SO_PASSPIDFD");
    }
}

fn pass_pidfd() {
    for kind in [SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET] {
        let p = pair(kind);
        need_pass_pidfd(p[0]);
        eq(get(p[0], SO_PASSPIDFD), (0, 1));
        ok(set(p[0], SO_PASSCRED, 1));
        let pid = child(|| {
            eq(sys!(SYS_write, p[1], b"x", 1), 1);
            0
        });
        exits_later(pid, || {
            let mut f = pollfd { fd: p[0], events: POLLIN, revents: 0 };
            eq(sys!(SYS_poll, &mut f, 1, -1), 1);
            let (n, list, _) = receive(p[0], 256);
            eq(n, 1);
            let kinds: Vec<i32> = list.iter().map(|(k, _)| *k).collect();
            eq(kinds, vec![SCM_CREDENTIALS, SCM_PIDFD]);
            let fd = int(&list[1].1);
            eq((int(&list[0].1), pid_of(fd)), (pid, pid));
            shut([fd]);
        });
        shut(p);
    }
}

/// The child is a zombie while `f` runs.
fn exits_later(pid: i32, f: impl FnOnce()) {
    f();
    exits(pid, 0);
}

fn pass_pidfd_cut() {
    let p = pair(SOCK_DGRAM);
    need_pass_pidfd(p[0]);
    eq(sys!(SYS_write, p[1], b"x", 1), 1);
    let (n, list, flags) = receive(p[0], 16);
    eq((n, list.len(), flags & MSG_CTRUNC), (1, 0, MSG_CTRUNC));
    shut(p);
}

fn late_pidfd() {
    for kind in [SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET] {
        let p = pair(kind);
        eq(sys!(SYS_write, p[1], b"x", 1), 1);
        need_pass_pidfd(p[0]);
        // Nobody wanted to know when it was sent.
        let (n, list, flags) = receive(p[0], 256);
        eq((n, list.len(), flags), (1, 0, 0));
        shut(p);
    }
}

fn late_creds() {
    let me = [std::process::id(), sys!(SYS_getuid) as u32, sys!(SYS_getgid) as u32];
    let bytes = |c: [u32; 3]| c.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>();
    for kind in [SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET] {
        let p = pair(kind);
        eq(sys!(SYS_write, p[1], b"x", 1), 1);
        ok(set(p[0], SO_PASSCRED, 1));
        eq(receive(p[0], 256).1, vec![(SCM_CREDENTIALS, bytes([0, 65534, 65534]))]);
        ok(set(p[0], SO_PASSCRED, 0));
        // The sender's own wish will do.
        ok(set(p[1], SO_PASSCRED, 1));
        eq(sys!(SYS_write, p[1], b"x", 1), 1);
        ok(set(p[0], SO_PASSCRED, 1));
        eq(receive(p[0], 256).1, vec![(SCM_CREDENTIALS, bytes(me))]);
        shut(p);
    }
}

/// The last byte of a message that goes out of band is from whom the others are.
fn creds_out_of_band() {
    let p = pair(SOCK_STREAM);
    ok(set(p[0], SO_PASSCRED, 1));
    ok(set(p[0], SO_OOBINLINE, 1));
    eq(sys!(SYS_sendto, p[1], b"hello", 5, MSG_OOB, 0, 0), 5);
    let (one, two) = (receive(p[0], 256), receive(p[0], 256));
    eq((one.0, two.0), (4, 1));
    eq(int(&one.1[0].1), std::process::id() as i32);
    eq(one.1, two.1);
    shut(p);
}

/// Bytes of two writers come together only to a reader that does not ask who they are from.
fn unglued() {
    let p = pair(SOCK_STREAM);
    let both = || {
        eq(sys!(SYS_write, p[1], b"a", 1), 1);
        in_child(|| eq(sys!(SYS_write, p[1], b"b", 1), 1));
    };
    both();
    eq(receive(p[0], 256).0, 2);
    ok(set(p[0], SO_PASSCRED, 1));
    both();
    let (one, two) = (receive(p[0], 256), receive(p[0], 256));
    eq((one.0, two.0), (1, 1));
    check(int(&one.1[0].1) != int(&two.1[0].1), "two processes");
    shut(p);
}

fn tcp_creds() {
    let l = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    ok(sys!(SYS_listen, l, 1));
    let mut a = [0u8; 16];
    ok(sys!(SYS_getsockname, l, &mut a, &mut 16u32));
    let c = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    ok(sys!(SYS_connect, c, &a, 16));
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    for fd in [l, c, s] {
        eq(creds(fd), [0, u32::MAX, u32::MAX]);
    }
    shut([l, c, s]);
}

fn end_of_message() {
    let p = pair(SOCK_SEQPACKET);
    for flags in [0, MSG_EOR] {
        eq(sys!(SYS_sendto, p[1], b"xyz", 3, flags, 0, 0), 3);
        eq((receive(p[0], 0).0, receive(p[0], 0).0), (3, -i64::from(EAGAIN)));
        eq(sys!(SYS_sendto, p[1], b"xyz", 3, flags, 0, 0), 3);
        eq(receive(p[0], 0).2, 0);
    }
    shut(p);
}

fn reset_of_messages() {
    let left = || {
        let p = pair(SOCK_SEQPACKET);
        eq((sys!(SYS_write, p[0], b"x", 1), sys!(SYS_write, p[1], b"y", 1)), (1, 1));
        shut([p[1]]);
        p[0]
    };
    let fd = left();
    let send = |fd: i32| sys!(SYS_sendto, fd, b"z", 1, MSG_NOSIGNAL, 0, 0);
    let recv = |fd: i32| sys!(SYS_recvfrom, fd, &mut [0u8; 4], 4, MSG_DONTWAIT, 0, 0);
    err(send(fd), ECONNRESET);
    err(send(fd), EPIPE);
    eq((recv(fd), recv(fd)), (1, 0));
    shut([fd]);
    let fd = left();
    // The error is told before what came.
    err(recv(fd), ECONNRESET);
    eq((recv(fd), recv(fd)), (1, 0));
    err(send(fd), EPIPE);
    shut([fd]);
}

/// Sockets that go from one to the other, while others are closed in cycles: nothing in them is lost.
fn datagrams(text: &str) -> (i32, Vec<u8>) {
    let s = ok(sys!(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) as i32;
    let a = name(text);
    ok(sys!(SYS_bind, s, &a[..], a.len()));
    (s, a)
}

fn connect(fd: i32, a: &[u8]) -> i64 {
    sys!(SYS_connect, fd, a, a.len())
}

fn leave(fd: i32) {
    ok(connect(fd, &[0; 16]));
}

fn put(fd: i32) -> i64 {
    sys!(SYS_write, fd, b"x", 1)
}

fn take(fd: i32) -> i64 {
    sys!(SYS_read, fd, &mut [0u8; 8], 8)
}

/// A socket for datagrams that is connected takes those of its peer alone.
fn of_the_peer_alone() {
    let ((a, to_a), (b, to_b), (c, to_c)) = (datagrams("a"), datagrams("b"), datagrams("c"));
    let send = |from, to: &[u8]| sys!(SYS_sendto, from, b"x", 1, 0, to, to.len());
    ok(connect(c, &to_a));
    ok(connect(a, &to_b));
    err(send(c, &to_a), EPERM);
    // One that is connected the other way hears it, too.
    err(put(c), EPERM);
    err(connect(c, &to_a), EPERM);
    ok(connect(c, &to_b));
    err(connect(c, &to_a), EPERM);
    eq((send(b, &to_a), put(a), put(c)), (1, 1, 1));
    eq((take(a), take(b), take(b)), (1, 1, 1));
    ok(connect(b, &to_a));
    err(put(c), EPERM);
    leave(a);
    eq((send(c, &to_a), take(a), take(c)), (1, 1, -i64::from(EAGAIN)));
    err(send(a, &to_c), EPERM);
    shut([a, b, c]);
}

/// What the peer had sent is lost with it, and it hears so.
fn another_peer() {
    let (c, to_c) = datagrams("c");
    for other in [false, true] {
        let [a, b] = pair(SOCK_DGRAM | SOCK_NONBLOCK);
        eq((put(a), put(b), put(b)), (1, 1, 1));
        if other {
            ok(connect(a, &to_c));
        } else {
            leave(a);
        }
        err(take(a), EAGAIN);
        err(take(b), ECONNRESET);
        eq((take(b), put(b)), (1, if other { -i64::from(EPERM) } else { 1 }));
        shut([a, b]);
    }
    // Nobody is told of nothing.
    let [a, b] = pair(SOCK_DGRAM | SOCK_NONBLOCK);
    leave(a);
    eq(put(b), 1);
    // What came since stays when it is connected anew.
    ok(connect(a, &to_c));
    ok(connect(a, &to_c));
    eq(take(a), 1);
    shut([a, b, c]);
}

fn dead_peer() {
    let [a, b] = pair(SOCK_DGRAM | SOCK_NONBLOCK);
    eq(put(b), 1);
    shut([b]);
    err(put(a), ECONNREFUSED);
    err(put(a), ENOTCONN);
    err(take(a), EAGAIN);
    shut([a]);
}

fn received_meanwhile() {
    let take = |fd: i32| {
        let (n, list, _) = receive(fd, 64);
        eq((n, list.len()), (1, 1));
        int(&list[0].1)
    };
    let pid = child(|| {
        loop {
            let p = pair(SOCK_STREAM);
            send_fd(p[0], p[0]);
            send_fd(p[1], p[1]);
            shut(p);
        }
    });
    let end = std::time::Instant::now() + std::time::Duration::from_secs(2);
    let pairs: Vec<_> = (0..8).map(|_| pair(SOCK_STREAM)).collect();
    while std::time::Instant::now() < end {
        // A pipe in the last of a row of sockets, each only in the one before.
        let r = pipe_pair();
        let row: Vec<_> = (0..6).map(|_| pair(SOCK_STREAM)).collect();
        eq(send_fd(row[5][0], r[1]), 1);
        for i in (0..5).rev() {
            eq(send_fd(row[i][0], row[i + 1][1]), 1);
        }
        eq(send_fd(pairs[0][0], row[0][1]), 1);
        shut(row.into_iter().flatten().chain([r[1]]));
        let mut fd = pairs[0][1];
        for i in 0..7 {
            let next = take(fd);
            if i > 0 {
                shut([fd]);
            }
            fd = next;
        }
        eq(sys!(SYS_write, fd, b"x", 1), 1);
        shut([fd, r[0]]);
    }
    sys!(SYS_kill, pid, SIGKILL);
    reap(pid);
    shut(pairs.into_iter().flatten());
}

fn pass_rights() {
    let p = pair(SOCK_STREAM);
    if set(p[0], SO_PASSRIGHTS, 0) != 0 {
        skip("no SO_PASSRIGHTS");
    }
    err(send_fd(p[1], p[1]), EPERM);
    ok(set(p[0], SO_PASSRIGHTS, 1));
    eq(send_fd(p[1], p[1]), 1);
    shut(p);
}

fn peer_groups() {
    let p = pair(SOCK_STREAM);
    let count = ok(sys!(SYS_getgroups, 0, 0)) as usize;
    let mut own = vec![0u32; count];
    ok(sys!(SYS_getgroups, count, &mut own[..]));
    let (mut v, mut n) = ([0u32; 256], 1024u32);
    ok(sys!(SYS_getsockopt, p[0], SOL_SOCKET, 59, &mut v[..], &mut n));
    eq(&v[..n as usize / 4], &own[..]);
    if count > 0 {
        let mut n = 1u32;
        err(sys!(SYS_getsockopt, p[0], SOL_SOCKET, 59, &mut v[..], &mut n), ERANGE);
        eq(n as usize, count * 4);
    }
    let s = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    let mut n = 64u32;
    err(sys!(SYS_getsockopt, s, SOL_SOCKET, 59, &mut v[..], &mut n), ENODATA);
    shut([p[0], p[1], s]);
}

fn ids_in_a_namespace() {
    let (uid, gid) = (sys!(SYS_geteuid) as u32, sys!(SYS_getegid) as u32);
    let outer = pair(SOCK_STREAM);
    ok(set(outer[1], SO_PASSCRED, 1));
    in_child(|| {
        become_root();
        let p = pair(SOCK_DGRAM);
        // One's own, and another's that has the same name here.
        eq(&creds(p[0])[1..], [0, 0]);
        eq(&creds(outer[0])[1..], [0, 0]);
        ok(set(p[0], SO_PASSCRED, 1));
        eq(sys!(SYS_write, p[1], b"x", 1), 1);
        let (_, list, _) = receive(p[0], 64);
        eq(&list[0].1[4..12], [0; 8]);
        eq(sys!(SYS_write, outer[0], b"x", 1), 1);
        // Without a name for them.
        let pid = child(|| {
            ok(sys!(SYS_unshare, CLONE_NEWUSER));
            eq(&creds(p[0])[1..], [65534, 65534]);
            eq(sys!(SYS_write, p[1], b"x", 1), 1);
            let (_, list, _) = receive(p[0], 64);
            eq(&list[0].1[4..12], [65534u32.to_ne_bytes(), 65534u32.to_ne_bytes()].concat());
            0
        });
        exits(pid, 0);
    });
    let (_, list, _) = receive(outer[1], 64);
    eq(&list[0].1[4..12], [uid.to_ne_bytes(), gid.to_ne_bytes()].concat());
    shut(outer);
}

fn signal_ids() {
    let uid = sys!(SYS_getuid) as u32;
    let set = guest_tests::sig::set(&[SIGUSR1]);
    let old = guest_tests::sig::mask(SIG_BLOCK, set | guest_tests::sig::set(&[SIGCHLD]));
    let wait = |set: u64| {
        let mut info = [0u8; 128];
        ok(sys!(SYS_rt_sigtimedwait, &set, &mut info, &[5i64, 0], 8));
        u32::from_ne_bytes(info[20..24].try_into().unwrap())
    };
    let me = std::process::id();
    in_child(|| {
        become_root();
        ok(sys!(SYS_kill, sys!(SYS_getpid), SIGUSR1));
        eq(wait(set), 0);
        // The receiver's name for it.
        ok(sys!(SYS_kill, me, SIGUSR1));
    });
    eq(wait(set), uid);
    let (p, q) = (pipe_pair(), pipe_pair());
    let pid = child(|| {
        ok(sys!(SYS_unshare, CLONE_NEWUSER));
        sys!(SYS_write, p[1], b"x", 1);
        sys!(SYS_read, q[0], &mut [0u8; 1], 1);
        eq(wait(set), 65534);
        0
    });
    eq(sys!(SYS_read, p[0], &mut [0u8; 1], 1), 1);
    ok(sys!(SYS_kill, pid, SIGUSR1));
    sys!(SYS_write, q[1], b"x", 1);
    let mut info = [0u8; 128];
    ok(sys!(SYS_waitid, P_PID, pid, &mut info, WEXITED, 0));
    eq(u32::from_ne_bytes(info[20..24].try_into().unwrap()), uid);
    eq(i32::from_ne_bytes(info[24..28].try_into().unwrap()), 0);
    guest_tests::sig::mask(SIG_SETMASK, old);
}

fn ipc_ids() {
    let (uid, gid) = (sys!(SYS_geteuid) as u32, sys!(SYS_getegid) as u32);
    let id = ok(sys!(SYS_msgget, IPC_PRIVATE, 0o666));
    in_child(|| {
        become_root();
        let mut ds = [0u32; 30];
        ok(sys!(SYS_msgctl, id, IPC_STAT, &mut ds));
        eq(&ds[1..5], [0; 4]);
        // An id without a name.
        ds[1] = 5;
        err(sys!(SYS_msgctl, id, IPC_SET, &mut ds), EINVAL);
        ds[1] = 0;
        ok(sys!(SYS_msgctl, id, IPC_SET, &mut ds));
    });
    let mut ds = [0u32; 30];
    ok(sys!(SYS_msgctl, id, IPC_STAT, &mut ds));
    eq(&ds[1..5], [uid, gid, uid, gid]);
    ok(sys!(SYS_msgctl, id, IPC_RMID, 0));
}

fn send_creds(to: i32, pid: i32, uid: u32, gid: u32) -> i64 {
    let creds = [pid as u32, uid, gid].map(u32::to_ne_bytes);
    send_control(to, SCM_CREDENTIALS, creds.as_flattened())
}

fn forged() {
    in_child(|| {
        if is_root() {
            ok(sys!(SYS_setresgid, 1000, 1000, 1000));
            ok(sys!(SYS_setresuid, 1000, 1000, 1000));
            ok(sys!(SYS_prctl, PR_SET_DUMPABLE, 1));
        }
        let p = pair(SOCK_DGRAM);
        let (pid, uid, gid) = (sys!(SYS_getpid) as i32, sys!(SYS_getuid) as u32, sys!(SYS_getgid) as u32);
        eq(send_creds(p[1], pid, uid, gid), 1);
        err(send_creds(p[1], 1, uid, gid), EPERM);
        err(send_creds(p[1], pid, uid + 1, gid), EPERM);
        err(send_creds(p[1], pid, uid, gid + 1), EPERM);
        // Root of a user namespace of its own is nobody else outside of it.
        become_root();
        eq(send_creds(p[1], pid, 0, 0), 1);
        err(send_creds(p[1], 1, 0, 0), EPERM);
        err(send_creds(p[1], pid, 5, 0), EINVAL);
    });
}

/// The pipe's other end is closed once nobody holds this one: the end of the file is read.
fn ends(fd: i32) {
    let mut p = pollfd { fd, events: POLLIN, revents: 0 };
    eq(sys!(SYS_poll, &mut p, 1, -1), 1);
    eq(sys!(SYS_read, fd, &mut [0u8; 1], 1), 0);
}

fn cycle_of_two() {
    let (p, r) = (pair(SOCK_STREAM), pipe_pair());
    eq(send_fd(p[0], r[1]), 1);
    eq(send_fd(p[0], p[0]), 1);
    eq(send_fd(p[1], p[1]), 1);
    shut([p[0], p[1], r[1]]);
    // Linux looks for them when another socket is closed.
    shut(pair(SOCK_STREAM));
    ends(r[0]);
    shut([r[0]]);
}

fn cycle_of_one() {
    for kind in [SOCK_DGRAM, SOCK_SEQPACKET] {
        let (p, r) = (pair(kind), pipe_pair());
        eq(send_fd(p[1], r[1]), 1);
        eq(send_fd(p[1], p[0]), 1);
        shut([p[0], p[1], r[1]]);
        shut(pair(SOCK_STREAM));
        ends(r[0]);
        shut([r[0]]);
    }
}

fn chain() {
    // Each in the next, and the last in the first.
    let all: Vec<[i32; 2]> = (0..20).map(|_| pair(SOCK_STREAM)).collect();
    let r = pipe_pair();
    eq(send_fd(all[7][1], r[1]), 1);
    for (i, p) in all.iter().enumerate() {
        eq(send_fd(p[1], all[(i + 1) % all.len()][0]), 1);
    }
    shut(all.into_iter().flatten().chain([r[1]]));
    shut(pair(SOCK_STREAM));
    ends(r[0]);
    shut([r[0]]);
}

fn cycle_in_backlog() {
    let l = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    let a = name("backlog");
    ok(sys!(SYS_bind, l, &a[..], a.len()));
    ok(sys!(SYS_listen, l, 1));
    let c = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    ok(sys!(SYS_connect, c, &a[..], a.len()));
    let r = pipe_pair();
    eq(send_fd(c, r[1]), 1);
    // The listener waits in its own connection.
    eq(send_fd(c, l), 1);
    shut([l, c, r[1]]);
    shut(pair(SOCK_STREAM));
    ends(r[0]);
    shut([r[0]]);
}

fn cycle_that_is_reached() {
    let (p, q, r) = (pair(SOCK_STREAM), pair(SOCK_STREAM), pipe_pair());
    eq(send_fd(p[0], r[1]), 1);
    eq(send_fd(p[0], p[1]), 1);
    // Somebody can still receive what holds it.
    eq(send_fd(q[0], p[1]), 1);
    shut([p[0], p[1], r[1]]);
    for _ in 0..5 {
        shut(pair(SOCK_STREAM));
    }
    let (n, list, _) = receive(q[1], 64);
    eq((n, list.len()), (1, 1));
    let inner = int(&list[0].1);
    let (n, list, _) = receive(inner, 64);
    eq((n, list.len()), (1, 1));
    let pipe = int(&list[0].1);
    eq(sys!(SYS_write, pipe, b"y", 1), 1);
    let mut b = [0u8; 1];
    eq((sys!(SYS_read, r[0], &mut b, 1), b[0]), (1, b'y'));
    shut([pipe, inner, q[0], q[1]]);
    shut(pair(SOCK_STREAM));
    ends(r[0]);
    shut([r[0]]);
}

fn thousands() {
    // More than may be on their way at once: the last goes only if those before were found.
    in_child(|| {
        if is_root() {
            ok(sys!(SYS_setresuid, 64322, 64322, 64322));
        }
        let most = 256u64;
        ok(sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, &[most, most], 0));
        let mut late = 0;
        for _ in 0..20 * most {
            let p = pair(SOCK_STREAM);
            while send_fd(p[0], p[0]) != 1 {
                // Linux looks for them somewhat later.
                late += 1;
                check(late < 5000, "they are found");
                sleep_ms(1);
            }
            shut(p);
        }
    });
}

fn too_many() {
    in_child(|| {
        if is_root() {
            ok(sys!(SYS_setresuid, 64321, 64321, 64321));
        }
        ok(sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, &[64u64, 64], 0));
        let p = pair(SOCK_DGRAM);
        let mut last = 0;
        for _ in 0..40 {
            last = send_fd(p[1], p[1]);
            if last != 1 {
                break;
            }
            last = send_fd(p[0], p[1]);
            if last != 1 {
                break;
            }
        }
        // The queue is full, or there are more on their way than may be open.
        errs(last, &[ETOOMANYREFS, EAGAIN]);
    });
}
