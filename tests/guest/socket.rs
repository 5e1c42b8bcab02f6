//! socketpair(2), Unix sockets, send(2), recv(2), SCM_RIGHTS, socket options.

use guest_tests::*;
use libc::*;

cases![
    pair_stream, pair_dgram, pair_seqpacket, pair_flags, pair_errors, socket_errors, end_of_file_and_epipe, msg_nosignal, shutdown_halves,
    peek_and_trunc, dontwait, waitall, full_buffer, listen_accept_connect, abstract_name, bind_errors, connect_errors, names,
    dgram_by_name, dgram_sender_address, scm_rights, scm_rights_many, scm_rights_truncated, scm_rights_come_once, scm_rights_nested,
    scm_credentials, peercred, options, timeouts, accept4_flags, accept_without_descriptors, sendmmsg_waits, accept_nonblocking, nonsocket,
    bad_pointers, sendmmsg_recvmmsg, poll_socket, fork_echo, backlog_full, fionread, closed_listener, sendfile_through_a_full_socket,
    writev_through_a_full_socket
];

pub fn pair(kind: i32) -> [i32; 2] {
    let mut s = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, kind, 0, &mut s));
    s
}

pub fn send(fd: i32, d: &[u8], flags: i32) -> i64 {
    sys!(SYS_sendto, fd, d, d.len(), flags, 0, 0)
}

pub fn recv(fd: i32, b: &mut [u8], flags: i32) -> i64 {
    let n = b.len();
    sys!(SYS_recvfrom, fd, b, n, flags, 0, 0)
}

fn pair_stream() {
    let s = pair(SOCK_STREAM);
    eq(sys!(SYS_write, s[0], b"abc", 3), 3);
    eq(send(s[0], b"def", 0), 3);
    let mut b = [0u8; 10];
    eq(recv(s[1], &mut b, 0), 6);
    eq(&b[..6], b"abcdef");
    eq(sys!(SYS_write, s[1], b"back", 4), 4);
    eq(sys!(SYS_read, s[0], &mut b, 2), 2);
    eq(sys!(SYS_read, s[0], &mut b, 10), 2);
    shut(s);
}

fn pair_dgram() {
    let s = pair(SOCK_DGRAM);
    eq(send(s[0], b"abc", 0), 3);
    eq(send(s[0], b"", 0), 0);
    eq(send(s[0], b"defg", 0), 4);
    let mut b = [0u8; 10];
    eq(recv(s[1], &mut b, 0), 3);
    eq(recv(s[1], &mut b, 0), 0);
    // What does not fit of a datagram is lost.
    eq(recv(s[1], &mut b[..2], 0), 2);
    err(recv(s[1], &mut b, MSG_DONTWAIT), EAGAIN);
    shut(s);
}

fn pair_seqpacket() {
    let s = pair(SOCK_SEQPACKET);
    eq(send(s[0], b"abc", 0), 3);
    eq(send(s[0], b"de", 0), 2);
    let mut b = [0u8; 10];
    eq(recv(s[1], &mut b, 0), 3);
    eq(recv(s[1], &mut b, 0), 2);
    shut([s[0]]);
    eq(recv(s[1], &mut b, 0), 0);
    shut([s[1]]);
}

fn pair_flags() {
    let s = pair(SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
    eq(sys!(SYS_fcntl, s[0], F_GETFD), 1);
    eq(sys!(SYS_fcntl, s[1], F_GETFL), i64::from(O_NONBLOCK | O_RDWR));
    err(sys!(SYS_read, s[0], &mut [0u8; 1], 1), EAGAIN);
    shut(s);
}

fn pair_errors() {
    let mut s = [0i32; 2];
    err(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 5, &mut s), EPROTONOSUPPORT);
    err(sys!(SYS_socketpair, AF_UNIX, 9, 0, &mut s), ESOCKTNOSUPPORT);
    err(sys!(SYS_socketpair, 99, SOCK_STREAM, 0, &mut s), EAFNOSUPPORT);
    err(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, bad()), EFAULT);
    errs(sys!(SYS_socketpair, AF_INET, SOCK_STREAM, 0, &mut s), &[EOPNOTSUPP]);
}

fn socket_errors() {
    err(sys!(SYS_socket, 99, SOCK_STREAM, 0), EAFNOSUPPORT);
    err(sys!(SYS_socket, AF_UNIX, 99, 0), EINVAL);
    err(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 77), EPROTONOSUPPORT);
}

fn end_of_file_and_epipe() {
    let s = pair(SOCK_STREAM);
    eq(sys!(SYS_write, s[0], b"x", 1), 1);
    shut([s[0]]);
    eq(sys!(SYS_read, s[1], &mut [0u8; 4], 4), 1);
    eq(sys!(SYS_read, s[1], &mut [0u8; 4], 4), 0);
    let _on = sig::on(SIGPIPE, 0);
    err(sys!(SYS_write, s[1], b"x", 1), EPIPE);
    eq(sig::hits(), 1);
    shut([s[1]]);
    // Unread data makes it a reset for the peer.
    let s = pair(SOCK_STREAM);
    eq(sys!(SYS_write, s[1], b"x", 1), 1);
    shut([s[0]]);
    err(sys!(SYS_read, s[1], &mut [0u8; 4], 4), ECONNRESET);
    shut([s[1]]);
}

fn msg_nosignal() {
    let s = pair(SOCK_STREAM);
    shut([s[0]]);
    let _on = sig::on(SIGPIPE, 0);
    err(send(s[1], b"x", MSG_NOSIGNAL), EPIPE);
    eq(sig::hits(), 0);
    shut([s[1]]);
}

fn shutdown_halves() {
    let s = pair(SOCK_STREAM);
    ok(sys!(SYS_shutdown, s[0], SHUT_WR));
    eq(sys!(SYS_read, s[1], &mut [0u8; 4], 4), 0);
    eq(sys!(SYS_write, s[1], b"still", 5), 5);
    eq(sys!(SYS_read, s[0], &mut [0u8; 8], 8), 5);
    err(send(s[0], b"x", MSG_NOSIGNAL), EPIPE);
    err(sys!(SYS_shutdown, s[0], 9), EINVAL);
    ok(sys!(SYS_shutdown, s[0], SHUT_RDWR));
    let mut p = pollfd { fd: s[1], events: POLLIN, revents: 0 };
    eq(sys!(SYS_poll, &mut p, 1, 0), 1);
    eq(p.revents, POLLIN | POLLHUP);
    shut(s);
    let u = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    eq(sys!(SYS_shutdown, u, SHUT_RD), 0);
    shut([u]);
}

fn peek_and_trunc() {
    let s = pair(SOCK_STREAM);
    eq(send(s[0], b"abc", 0), 3);
    let mut b = [0u8; 10];
    eq(recv(s[1], &mut b, MSG_PEEK), 3);
    eq(recv(s[1], &mut b, 0), 3);
    shut(s);
    let s = pair(SOCK_DGRAM);
    eq(send(s[0], b"abcdef", 0), 6);
    eq(recv(s[1], &mut b[..2], MSG_PEEK | MSG_TRUNC), 6);
    eq(recv(s[1], &mut b[..2], MSG_TRUNC), 6);
    shut(s);
}

fn dontwait() {
    let s = pair(SOCK_STREAM);
    err(recv(s[0], &mut [0u8; 4], MSG_DONTWAIT), EAGAIN);
    err(recv(s[0], &mut [0u8; 4], MSG_OOB | MSG_DONTWAIT), EINVAL);
    shut(s);
}

fn waitall() {
    let s = pair(SOCK_STREAM);
    let w = s[0];
    let h = std::thread::spawn(move || {
        for _ in 0..3 {
            sys!(SYS_write, w, b"ab", 2);
            sleep_ms(10);
        }
    });
    let mut b = [0u8; 6];
    eq(recv(s[1], &mut b, MSG_WAITALL), 6);
    h.join().unwrap();
    shut(s);
}

fn full_buffer() {
    let s = pair(SOCK_STREAM | SOCK_NONBLOCK);
    let d = vec![1u8; 65536];
    let mut total = 0;
    let e = loop {
        let r = send(s[0], &d, 0);
        if r < 0 {
            break r;
        }
        total += r;
        check(total < 64 << 20, "there is a limit");
    };
    err(e, EAGAIN);
    let mut p = pollfd { fd: s[0], events: POLLOUT, revents: 0 };
    eq(sys!(SYS_poll, &mut p, 1, 0), 0);
    let mut b = vec![0u8; 65536];
    let mut got = 0;
    while got < total {
        got += ok(recv(s[1], &mut b, 0));
    }
    eq(sys!(SYS_poll, &mut p, 1, 0), 1);
    shut(s);
}

pub fn addr(path: &[u8]) -> (Vec<u8>, usize) {
    let mut a = vec![1u8, 0];
    a.extend_from_slice(path);
    let n = a.len();
    (a, n)
}

pub fn path_addr(t: &Tmp, name: &str) -> (Vec<u8>, usize) {
    let mut p = t.path(name).to_bytes().to_vec();
    p.push(0);
    addr(&p)
}

pub fn listener(a: &(Vec<u8>, usize)) -> i32 {
    let l = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) as i32;
    ok(sys!(SYS_bind, l, &a.0[..], a.1));
    ok(sys!(SYS_listen, l, 5));
    l
}

fn connect(a: &(Vec<u8>, usize)) -> i64 {
    let c = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0));
    let r = sys!(SYS_connect, c, &a.0[..], a.1);
    if r < 0 {
        shut([c as i32]);
        return r;
    }
    c
}

fn listen_accept_connect() {
    let t = Tmp::new();
    let a = path_addr(&t, "s");
    let l = listener(&a);
    let c = ok(connect(&a)) as i32;
    eq(sys!(SYS_write, c, b"early", 5), 5);
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    let mut b = [0u8; 10];
    eq(sys!(SYS_read, s, &mut b, 10), 5);
    eq(sys!(SYS_write, s, b"hi", 2), 2);
    eq(sys!(SYS_read, c, &mut b, 10), 2);
    shut([l, c, s]);
    err(connect(&a), ECONNREFUSED);
    ok(sys!(SYS_unlink, t.path("s")));
    err(connect(&a), ENOENT);
}

fn abstract_name() {
    let name = format!("\0guest-test-{}", std::process::id());
    let a = addr(name.as_bytes());
    let l = listener(&a);
    let c = ok(connect(&a)) as i32;
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    shut([c, s]);
    let l2 = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    err(sys!(SYS_bind, l2, &a.0[..], a.1), EADDRINUSE);
    shut([l]);
    ok(sys!(SYS_bind, l2, &a.0[..], a.1));
    shut([l2]);
    err(connect(&a), ECONNREFUSED);
    // Autobind chooses a name.
    let l3 = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    ok(sys!(SYS_bind, l3, &[1u8, 0], 2));
    let (mut b, mut n) = ([0u8; 110], 110u32);
    ok(sys!(SYS_getsockname, l3, &mut b, &mut n));
    eq((n, b[2]), (8, 0));
    shut([l3]);
}

fn bind_errors() {
    let t = Tmp::new();
    let a = path_addr(&t, "s");
    let l = listener(&a);
    let s = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    err(sys!(SYS_bind, s, &a.0[..], a.1), EADDRINUSE);
    let other = path_addr(&t, "other");
    err(sys!(SYS_bind, l, &other.0[..], other.1), EINVAL);
    let no = path_addr(&t, "no/s");
    err(sys!(SYS_bind, s, &no.0[..], no.1), ENOENT);
    err(sys!(SYS_bind, s, &a.0[..], 200), EINVAL);
    err(sys!(SYS_bind, s, bad(), 10), EFAULT);
    err(sys!(SYS_listen, s, 5), EINVAL);
    err(sys!(SYS_accept, s, 0, 0), EINVAL);
    shut([l, s]);
}

fn connect_errors() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    err(connect(&path_addr(&t, "no")), ENOENT);
    err(connect(&path_addr(&t, "f")), ECONNREFUSED);
    err(connect(&path_addr(&t, "f/x")), ENOTDIR);
    let d = pair(SOCK_STREAM);
    let a = path_addr(&t, "s");
    let l = listener(&a);
    err(sys!(SYS_connect, d[0], &a.0[..], a.1), EISCONN);
    shut([l, d[0], d[1]]);
}

fn names() {
    let t = Tmp::new();
    let a = path_addr(&t, "s");
    let l = listener(&a);
    let c = ok(connect(&a)) as i32;
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    let name = |call: i64, fd: i32| {
        let (mut b, mut n) = ([0u8; 110], 110u32);
        ok(sys!(call, fd, &mut b, &mut n));
        // SAFETY: a live variable of this function.
        let n = unsafe { (&raw const n).read_volatile() } as usize;
        b[..n].to_vec()
    };
    eq(name(SYS_getsockname, l), a.0.clone());
    eq(name(SYS_getpeername, c), a.0.clone());
    eq(name(SYS_getsockname, c), vec![1, 0]);
    eq(name(SYS_getpeername, s), vec![1, 0]);
    err(sys!(SYS_getpeername, l, &mut [0u8; 10], &mut 10u32), ENOTCONN);
    shut([l, c, s]);
}

fn dgram_by_name() {
    let t = Tmp::new();
    let a = path_addr(&t, "d");
    let r = ok(sys!(SYS_socket, AF_UNIX, SOCK_DGRAM, 0)) as i32;
    ok(sys!(SYS_bind, r, &a.0[..], a.1));
    let s = ok(sys!(SYS_socket, AF_UNIX, SOCK_DGRAM, 0)) as i32;
    eq(sys!(SYS_sendto, s, b"abc", 3, 0, &a.0[..], a.1), 3);
    eq(recv(r, &mut [0u8; 8], 0), 3);
    err(send(s, b"x", 0), ENOTCONN);
    ok(sys!(SYS_connect, s, &a.0[..], a.1));
    eq(send(s, b"xy", 0), 2);
    eq(recv(r, &mut [0u8; 8], 0), 2);
    shut([r]);
    err(send(s, b"x", 0), ECONNREFUSED);
    shut([s]);
}

fn dgram_sender_address() {
    let t = Tmp::new();
    let (a, b) = (path_addr(&t, "a"), path_addr(&t, "b"));
    let x = ok(sys!(SYS_socket, AF_UNIX, SOCK_DGRAM, 0)) as i32;
    let y = ok(sys!(SYS_socket, AF_UNIX, SOCK_DGRAM, 0)) as i32;
    ok(sys!(SYS_bind, x, &a.0[..], a.1));
    ok(sys!(SYS_bind, y, &b.0[..], b.1));
    eq(sys!(SYS_sendto, x, b"q", 1, 0, &b.0[..], b.1), 1);
    let (mut from, mut n, mut d) = ([0u8; 110], 110u32, [0u8; 4]);
    eq(sys!(SYS_recvfrom, y, &mut d, 4, 0, &mut from, &mut n), 1);
    eq(&from[..n as usize], &a.0[..]);
    shut([x, y]);
}

/// A message of one byte with control data; what arrives is (bytes, control data, flags).
fn sendmsg_ctl(fd: i32, ctl: &[u8]) -> i64 {
    let d = [b'm'];
    let iov = [d.as_ptr() as usize, 1];
    let m = [0usize, 0, (&raw const iov) as usize, 1, ctl.as_ptr() as usize, ctl.len(), 0];
    sys!(SYS_sendmsg, fd, &m, 0)
}

fn recvmsg_ctl(fd: i32, room: usize, flags: i32) -> (i64, Vec<u8>, i32) {
    let mut d = [0u8; 8];
    let iov = [d.as_mut_ptr() as usize, 8];
    let mut ctl = vec![0u64; room.div_ceil(8)];
    let mut m = [0usize, 0, (&raw const iov) as usize, 1, ctl.as_mut_ptr() as usize, room, 0];
    let r = sys!(SYS_recvmsg, fd, &mut m, flags);
    let n = m[5].min(room);
    let bytes = ctl.iter().flat_map(|w| w.to_ne_bytes()).take(n).collect();
    (r, bytes, m[6] as i32)
}

fn rights(fds: &[i32]) -> Vec<u8> {
    let mut v = Vec::new();
    v.extend((16 + fds.len() * 4).to_ne_bytes());
    v.extend(SOL_SOCKET.to_ne_bytes());
    v.extend(SCM_RIGHTS.to_ne_bytes());
    fds.iter().for_each(|f| v.extend(f.to_ne_bytes()));
    v.resize(v.len().next_multiple_of(8), 0);
    v
}

fn fds_of(c: &[u8]) -> Vec<i32> {
    if c.len() < 16 {
        return vec![];
    }
    let n = usize::from_ne_bytes(c[..8].try_into().unwrap());
    c[16..n].chunks(4).map(|x| i32::from_ne_bytes(x.try_into().unwrap())).collect()
}

fn scm_rights() {
    let t = Tmp::new();
    let f = t.file("f", b"passed");
    let s = pair(SOCK_STREAM);
    eq(sendmsg_ctl(s[0], &rights(&[f])), 1);
    shut([f]);
    let (r, c, flags) = recvmsg_ctl(s[1], 64, MSG_CMSG_CLOEXEC);
    eq((r, flags & !MSG_CMSG_CLOEXEC), (1, 0));
    let got = fds_of(&c);
    eq(got.len(), 1);
    eq(sys!(SYS_fcntl, got[0], F_GETFD), 1);
    let mut b = [0u8; 8];
    eq(sys!(SYS_read, got[0], &mut b, 8), 6);
    err(sendmsg_ctl(s[0], &rights(&[9999])), EBADF);
    shut([got[0], s[0], s[1]]);
    // Through a fork, to another process.
    let s = pair(SOCK_STREAM);
    let pid = child(|| {
        let p = pipe_pair();
        sys!(SYS_write, p[1], b"child", 5);
        sendmsg_ctl(s[0], &rights(&[p[0]])) as i32
    });
    let (_, c, _) = recvmsg_ctl(s[1], 64, 0);
    let got = fds_of(&c);
    exits(pid, 1);
    eq(sys!(SYS_read, got[0], &mut b, 8), 5);
    shut([got[0], s[0], s[1]]);
}

fn scm_rights_many() {
    let s = pair(SOCK_STREAM);
    let p = pipe_pair();
    let many = vec![p[0]; 253];
    eq(sendmsg_ctl(s[0], &rights(&many)), 1);
    let (_, c, _) = recvmsg_ctl(s[1], 2048, 0);
    let got = fds_of(&c);
    eq(got.len(), 253);
    shut(got);
    err(sendmsg_ctl(s[0], &rights(&vec![p[0]; 254])), EINVAL);
    shut([s[0], s[1], p[0], p[1]]);
}

fn scm_rights_come_once() {
    let s = pair(SOCK_STREAM);
    let p = pipe_pair();
    // More than fits: the sender goes on several times.
    let (from, to) = (s[0], s[1]);
    let ctl = rights(&[p[0]]);
    let h = std::thread::spawn(move || {
        let d = vec![b'm'; 900_000];
        let iov = [d.as_ptr() as usize, d.len()];
        let m = [0usize, 0, (&raw const iov) as usize, 1, ctl.as_ptr() as usize, ctl.len(), 0];
        let sent = sys!(SYS_sendmsg, from, &m, 0);
        shut([from]);
        sent
    });
    sleep_ms(30);
    let (mut bytes, mut fds) = (0, vec![]);
    loop {
        let mut d = vec![0u8; 30_000];
        let iov = [d.as_mut_ptr() as usize, d.len()];
        let mut c = [0u8; 64];
        let mut m = [0usize, 0, (&raw const iov) as usize, 1, c.as_mut_ptr() as usize, 64, 0];
        let r = ok(sys!(SYS_recvmsg, to, &mut m, 0));
        if r == 0 {
            break;
        }
        bytes += r;
        fds.extend(fds_of(&c[..m[5].min(64)]));
    }
    eq(h.join().unwrap(), 900_000);
    eq((bytes, fds.len()), (900_000, 1));
    shut(fds);
    shut([to, p[0], p[1]]);
}

fn scm_rights_nested() {
    // Sockets in sockets: the end of the last closes the first.
    let p = pipe_pair();
    let mut last = p[1];
    for _ in 0..3000 {
        let s = pair(SOCK_STREAM);
        if sendmsg_ctl(s[0], &rights(&[last])) != 1 {
            break; // ETOOMANYREFS: no more on their way than may be open.
        }
        shut([last, s[0]]);
        last = s[1];
    }
    ok(sys!(SYS_fcntl, p[0], F_SETFL, O_NONBLOCK));
    let mut b = [0u8; 1];
    err(sys!(SYS_read, p[0], &mut b, 1), EAGAIN);
    shut([last]);
    // The host closes them one by one, later.
    let mut v = pollfd { fd: p[0], events: POLLIN, revents: 0 };
    eq(sys!(SYS_poll, &mut v, 1, -1), 1);
    eq(sys!(SYS_read, p[0], &mut b, 1), 0);
    shut([p[0]]);
}

fn scm_rights_truncated() {
    let s = pair(SOCK_STREAM);
    let p = pipe_pair();
    eq(sendmsg_ctl(s[0], &rights(&[p[0], p[1]])), 1);
    // Room for one: the other is closed, the flag says so.
    let (r, c, flags) = recvmsg_ctl(s[1], 20, 0);
    eq((r, flags), (1, MSG_CTRUNC));
    let got = fds_of(&c);
    eq(got.len(), 1);
    shut([got[0], s[0], s[1], p[0], p[1]]);
}

fn scm_credentials() {
    let s = pair(SOCK_DGRAM);
    ok(sys!(SYS_setsockopt, s[1], SOL_SOCKET, SO_PASSCRED, &1i32, 4));
    eq(send(s[0], b"x", 0), 1);
    let (r, c, _) = recvmsg_ctl(s[1], 64, 0);
    eq((r, c.len()), (1, 32));
    let v: Vec<i64> = fds_of(&c).into_iter().map(i64::from).collect();
    eq(v, vec![sys!(SYS_getpid), sys!(SYS_getuid), sys!(SYS_getgid)]);
    shut(s);
}

fn peercred() {
    let s = pair(SOCK_STREAM);
    let (mut u, mut n) = ([0i32; 3], 12u32);
    ok(sys!(SYS_getsockopt, s[0], SOL_SOCKET, SO_PEERCRED, &mut u, &mut n));
    eq(u.map(i64::from), [sys!(SYS_getpid), sys!(SYS_geteuid), sys!(SYS_getegid)]);
    shut(s);
}

fn opt(fd: i32, o: i32) -> i64 {
    let (mut v, mut n) = (0i32, 4u32);
    let r = sys!(SYS_getsockopt, fd, SOL_SOCKET, o, &mut v, &mut n);
    // SAFETY: a live variable of this function.
    if r < 0 { r } else { i64::from(unsafe { (&raw const v).read_volatile() }) }
}

fn options() {
    let s = pair(SOCK_DGRAM);
    eq(opt(s[0], SO_TYPE), i64::from(SOCK_DGRAM));
    eq(opt(s[0], SO_DOMAIN), i64::from(AF_UNIX));
    eq(opt(s[0], SO_ERROR), 0);
    eq(opt(s[0], SO_ACCEPTCONN), 0);
    // The kernel doubles what is asked.
    ok(sys!(SYS_setsockopt, s[0], SOL_SOCKET, SO_SNDBUF, &20_000i32, 4));
    eq(opt(s[0], SO_SNDBUF), 40_000);
    check(opt(s[0], SO_RCVBUF) > 0, "a size");
    err(opt(s[0], 9999), ENOPROTOOPT);
    err(sys!(SYS_setsockopt, s[0], SOL_SOCKET, 9999, &1i32, 4), ENOPROTOOPT);
    err(sys!(SYS_setsockopt, s[0], SOL_SOCKET, SO_SNDBUF, &1i32, 1), EINVAL);
    err(sys!(SYS_setsockopt, s[0], SOL_SOCKET, SO_SNDBUF, bad(), 4), EFAULT);
    shut(s);
}

fn timeouts() {
    let s = pair(SOCK_STREAM);
    ok(sys!(SYS_setsockopt, s[0], SOL_SOCKET, SO_RCVTIMEO, &[0i64, 30_000], 16));
    let b = now_ms();
    err(sys!(SYS_read, s[0], &mut [0u8; 1], 1), EAGAIN);
    took(b, 28);
    shut(s);
}

fn accept4_flags() {
    let t = Tmp::new();
    let a = path_addr(&t, "s");
    let l = listener(&a);
    let c = ok(connect(&a)) as i32;
    let (mut b, mut n) = ([7u8; 110], 110u32);
    let s = ok(sys!(SYS_accept4, l, &mut b, &mut n, SOCK_CLOEXEC | SOCK_NONBLOCK)) as i32;
    eq(n, 2);
    eq(sys!(SYS_fcntl, s, F_GETFD), 1);
    eq(sys!(SYS_fcntl, s, F_GETFL) & i64::from(O_NONBLOCK), i64::from(O_NONBLOCK));
    err(sys!(SYS_accept4, l, 0, 0, 1), EINVAL);
    shut([l, c, s]);
}

fn accept_without_descriptors() {
    let t = Tmp::new();
    let a = path_addr(&t, "s");
    let l = listener(&a);
    let c = ok(connect(&a)) as i32;
    in_child(|| {
        ok(sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, &[i64::from(c) + 1, i64::from(c) + 1], 0));
        while sys!(SYS_dup, c) >= 0 {}
        err(sys!(SYS_accept, l, 0, 0), EMFILE);
    });
    // The connection is still there.
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    eq(send(c, b"x", 0), 1);
    eq(recv(s, &mut [0u8; 4], 0), 1);
    shut([l, c, s]);
}

fn sendmmsg_waits() {
    let s = pair(SOCK_STREAM);
    let (from, to) = (s[0], s[1]);
    let h = std::thread::spawn(move || {
        let d = vec![b'm'; 200_000];
        let iov = [d.as_ptr() as usize, d.len()];
        let mut m = [[0usize, 0, (&raw const iov) as usize, 1, 0, 0, 0, 0]; 4];
        let sent = sys!(SYS_sendmmsg, from, &mut m, 4, 0);
        shut([from]);
        (sent, m.map(|m| m[7] as u32))
    });
    sleep_ms(30);
    let (mut bytes, mut b) = (0, vec![0u8; 30_000]);
    loop {
        let r = ok(recv(to, &mut b, 0));
        if r == 0 {
            break;
        }
        bytes += r;
    }
    eq(h.join().unwrap(), (4, [200_000; 4]));
    eq(bytes, 800_000);
    shut([to]);
    // A bad one after the first ends the call with the count.
    let s = pair(SOCK_DGRAM);
    let iov = [b"one".as_ptr() as usize, 3];
    let mut m = [[0usize, 0, (&raw const iov) as usize, 1, 0, 0, 0, 0]; 2];
    m[1][2] = bad() as usize;
    eq(sys!(SYS_sendmmsg, s[0], &mut m, 2, 0), 1);
    eq(recv(s[1], &mut [0u8; 8], MSG_DONTWAIT), 3);
    err(recv(s[1], &mut [0u8; 8], MSG_DONTWAIT), EAGAIN);
    shut(s);
}

fn accept_nonblocking() {
    let t = Tmp::new();
    let a = path_addr(&t, "s");
    let l = listener(&a);
    ok(sys!(SYS_fcntl, l, F_SETFL, O_NONBLOCK));
    err(sys!(SYS_accept, l, 0, 0), EAGAIN);
    let mut p = pollfd { fd: l, events: POLLIN, revents: 0 };
    eq(sys!(SYS_poll, &mut p, 1, 0), 0);
    let c = ok(connect(&a)) as i32;
    eq(sys!(SYS_poll, &mut p, 1, 0), 1);
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    // The listener's flags are not inherited.
    eq(sys!(SYS_fcntl, s, F_GETFL) & i64::from(O_NONBLOCK), 0);
    shut([l, c, s]);
}

fn nonsocket() {
    let p = pipe_pair();
    err(send(p[1], b"x", 0), ENOTSOCK);
    err(recv(p[0], &mut [0u8; 1], 0), ENOTSOCK);
    err(sys!(SYS_bind, p[0], &[1u8, 0], 2), ENOTSOCK);
    err(sys!(SYS_listen, p[0], 1), ENOTSOCK);
    err(sys!(SYS_accept, p[0], 0, 0), ENOTSOCK);
    err(sys!(SYS_getsockname, p[0], &mut [0u8; 8], &mut 8u32), ENOTSOCK);
    err(sys!(SYS_listen, 9999, 1), EBADF);
    err(sys!(SYS_sendmsg, 9999, bad(), 0), EBADF);
    shut(p);
}

fn bad_pointers() {
    let s = pair(SOCK_STREAM);
    err(sys!(SYS_sendto, s[0], bad(), 4, 0, 0, 0), EFAULT);
    err(sys!(SYS_sendmsg, s[0], bad(), 0), EFAULT);
    err(sys!(SYS_recvmsg, s[0], bad(), 0), EFAULT);
    err(sys!(SYS_getsockname, s[0], bad(), &mut 8u32), EFAULT);
    err(sys!(SYS_getsockname, s[0], &mut [0u8; 8], bad()), EFAULT);
    eq(send(s[0], b"x", 0), 1);
    err(sys!(SYS_recvfrom, s[1], bad(), 4, 0, 0, 0), EFAULT);
    shut(s);
}

fn sendmmsg_recvmmsg() {
    let s = pair(SOCK_DGRAM);
    let (a, b) = (*b"one", *b"three");
    let v = [[a.as_ptr() as usize, 3], [b.as_ptr() as usize, 5]];
    let mut m = [[0usize; 8]; 2];
    for i in 0..2 {
        m[i][2] = (&raw const v[i]) as usize;
        m[i][3] = 1;
    }
    eq(sys!(SYS_sendmmsg, s[0], &mut m, 2, 0), 2);
    eq((m[0][7] as u32, m[1][7] as u32), (3, 5));
    let mut r = [[0u8; 16]; 4];
    let w: Vec<[usize; 2]> = r.iter_mut().map(|x| [x.as_mut_ptr() as usize, 16]).collect();
    let mut m = [[0usize; 8]; 4];
    for i in 0..4 {
        m[i][2] = (&raw const w[i]) as usize;
        m[i][3] = 1;
    }
    eq(sys!(SYS_recvmmsg, s[1], &mut m, 4, MSG_DONTWAIT, 0), 2);
    eq((m[0][7] as u32, m[1][7] as u32), (3, 5));
    shut(s);
}

fn poll_socket() {
    let s = pair(SOCK_STREAM);
    let mut p = [pollfd { fd: s[0], events: POLLIN | POLLOUT, revents: 0 }];
    eq(sys!(SYS_poll, &mut p, 1, 0), 1);
    eq(p[0].revents, POLLOUT);
    eq(send(s[1], b"x", 0), 1);
    eq(sys!(SYS_poll, &mut p, 1, 0), 1);
    eq(p[0].revents, POLLIN | POLLOUT);
    shut([s[1]]);
    p[0].events = POLLIN | POLLRDHUP;
    eq(sys!(SYS_poll, &mut p, 1, 0), 1);
    eq(p[0].revents, POLLIN | POLLRDHUP | POLLHUP);
    shut([s[0]]);
}

fn fork_echo() {
    let s = pair(SOCK_STREAM);
    let pid = child(|| {
        sys!(SYS_close, s[1]);
        let mut b = [0u8; 256];
        loop {
            let n = sys!(SYS_read, s[0], &mut b, 256);
            if n <= 0 {
                return n as i32;
            }
            sys!(SYS_write, s[0], &b, n);
        }
    });
    shut([s[0]]);
    for i in 0..200u32 {
        let d = i.to_ne_bytes();
        eq(sys!(SYS_write, s[1], &d, 4), 4);
        let mut b = [0u8; 4];
        eq(recv(s[1], &mut b, MSG_WAITALL), 4);
        eq(b, d);
    }
    shut([s[1]]);
    exits(pid, 0);
}

fn backlog_full() {
    let t = Tmp::new();
    let a = path_addr(&t, "s");
    let l = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    ok(sys!(SYS_bind, l, &a.0[..], a.1));
    ok(sys!(SYS_listen, l, 0));
    let c1 = ok(connect(&a)) as i32;
    let c2 = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) as i32;
    err(sys!(SYS_connect, c2, &a.0[..], a.1), EAGAIN);
    shut([l, c1, c2]);
}

fn fionread() {
    let s = pair(SOCK_STREAM);
    eq(send(s[0], b"abcd", 0), 4);
    let mut n = 0i32;
    ok(sys!(SYS_ioctl, s[1], FIONREAD, &mut n));
    eq(n, 4);
    shut(s);
}

fn closed_listener() {
    let t = Tmp::new();
    let a = path_addr(&t, "s");
    let l = listener(&a);
    let c = ok(connect(&a)) as i32;
    shut([l]);
    // The connection that was never accepted is gone.
    let r = sys!(SYS_read, c, &mut [0u8; 1], 1);
    errs(r, &[ECONNRESET, 0]);
    shut([c]);
}

/// A file sent through a full socket arrives once and whole, whatever the pieces.
fn sendfile_through_a_full_socket() {
    let t = Tmp::new();
    let data: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let f = t.file("data", &data);
    let s = pair(SOCK_STREAM);
    let pid = child(|| {
        let mut off = 1000i64;
        let n = sys!(SYS_sendfile, s[0], f, &mut off, 2_900_000);
        i32::from(n != 2_900_000 || off != 2_901_000)
    });
    shut([s[0]]);
    let mut got = Vec::new();
    let mut b = vec![0u8; 70_000];
    loop {
        sleep_ms(1);
        let n = ok(sys!(SYS_read, s[1], &mut b[..], b.len())) as usize;
        if n == 0 {
            break;
        }
        got.extend_from_slice(&b[..n]);
    }
    exits(pid, 0);
    check(got == data[1000..2_901_000], "the bytes are those of the file");
    shut([f, s[1]]);
}

fn writev_through_a_full_socket() {
    let s = pair(SOCK_STREAM);
    let data: Vec<u8> = (0..4_000_000u32).map(|n| (n % 241) as u8).collect();
    let pid = child(|| {
        let iov: Vec<iovec> = data
            .chunks(1_300_000)
            .map(|c| iovec { iov_base: c.as_ptr().cast_mut().cast(), iov_len: c.len() })
            .collect();
        i32::from(sys!(SYS_writev, s[0], &iov[..], iov.len()) != data.len() as i64)
    });
    shut([s[0]]);
    let mut got = Vec::new();
    let mut b = vec![0u8; 70_000];
    loop {
        let n = ok(sys!(SYS_read, s[1], &mut b[..], b.len())) as usize;
        if n == 0 {
            break;
        }
        got.extend_from_slice(&b[..n]);
    }
    exits(pid, 0);
    check(got == data, "the bytes are the same");
    shut([s[1]]);
}
