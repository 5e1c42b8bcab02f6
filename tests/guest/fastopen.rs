//! TCP Fast Open (tcp(7)) where no listener gives a cookie (net.ipv4.tcp_fastopen is 1): MSG_FASTOPEN connects, and what is sent
//! follows.

use guest_tests::*;
use libc::*;

cases![
    connects_and_sends, without_waiting, refused, errors, others_ignore_it, much, several_messages, option_values, option_states,
    connect_option, without_cookie
];

fn tcp(flags: i32) -> i32 {
    ok(sys!(SYS_socket, AF_INET, SOCK_STREAM | flags, 0)) as i32
}

fn lo(port: u16) -> [u8; 16] {
    let mut a = [0u8; 16];
    a[0] = AF_INET as u8;
    a[2..4].copy_from_slice(&port.to_be_bytes());
    a[4..8].copy_from_slice(&[127, 0, 0, 1]);
    a
}

/// A socket with a port, and its name.
fn bound() -> (i32, [u8; 16]) {
    let s = tcp(0);
    ok(sys!(SYS_bind, s, &lo(0), 16));
    let mut a = [0u8; 16];
    ok(sys!(SYS_getsockname, s, &mut a, &mut 16u32));
    (s, a)
}

fn listener() -> (i32, [u8; 16]) {
    let server = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen").expect("the setting");
    if server.trim() != "1" {
        skip("the host answers otherwise");
    }
    let (l, a) = bound();
    ok(sys!(SYS_listen, l, 50));
    (l, a)
}

fn send(fd: i32, data: &[u8], flags: i32, a: &[u8]) -> i64 {
    sys!(SYS_sendto, fd, data, data.len(), flags | MSG_FASTOPEN | MSG_NOSIGNAL, a, a.len())
}

fn write(fd: i32, data: &[u8]) -> i64 {
    sys!(SYS_sendto, fd, data, data.len(), MSG_NOSIGNAL, 0, 0)
}

/// What comes first to the next connection.
fn heard(l: i32, len: usize) -> Vec<u8> {
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    let mut b = vec![0u8; len];
    let mut done = 0;
    while done < len {
        let got = ok(sys!(SYS_recvfrom, s, b[done..].as_mut_ptr(), len - done, 0, 0, 0));
        check(got > 0, "not the end");
        done += got as usize;
    }
    shut([s]);
    b
}

fn error(fd: i32) -> i32 {
    let mut v = -1i32;
    ok(sys!(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &mut v, &mut 4u32));
    v
}

fn set(fd: i32, name: i32, value: i32) -> i64 {
    sys!(SYS_setsockopt, fd, SOL_TCP, name, &value, 4)
}

fn get(fd: i32, name: i32) -> i32 {
    let mut v = -1i32;
    ok(sys!(SYS_getsockopt, fd, SOL_TCP, name, &mut v, &mut 4u32));
    v
}

fn connects_and_sends() {
    let (l, a) = listener();
    let s = tcp(0);
    eq(send(s, b"hello", 0, &a), 5);
    eq(heard(l, 5), b"hello");
    let s2 = tcp(0);
    // Nothing to send: a connection alone.
    eq(send(s2, b"", 0, &a), 0);
    ok(sys!(SYS_getpeername, s2, &mut [0u8; 16], &mut 16u32));
    err(send(s2, b"x", 0, &a), EISCONN);
    err(send(s2, b"x", 0, &a[..0]), EINVAL);
    err(sys!(SYS_sendto, s2, b"x", 1, MSG_FASTOPEN, 0, 0), EISCONN);
    eq(write(s2, b"then"), 4);
    eq(heard(l, 4), b"then");
    shut([l, s, s2]);
}

fn without_waiting() {
    let (l, a) = listener();
    for (flags, message) in [(SOCK_NONBLOCK, 0), (0, MSG_DONTWAIT)] {
        let s = tcp(flags);
        err(send(s, b"lost", message, &a), EINPROGRESS);
        until_ready(s, POLLOUT);
        // As connect(2) called again.
        eq(send(s, b"hello", message, &a), 5);
        err(send(s, b"hello", message, &a), EISCONN);
        eq(write(s, b"!"), 1);
        eq(heard(l, 6), b"hello!");
        shut([s]);
    }
    shut([l]);
}

fn refused() {
    shut([listener().0]);
    let (d, a) = bound();
    let s = tcp(0);
    err(send(s, b"hello", 0, &a), ECONNREFUSED);
    err(write(s, b"x"), EPIPE);
    eq(error(s), 0);
    let n = tcp(SOCK_NONBLOCK);
    err(send(n, b"hello", 0, &a), EINPROGRESS);
    until_ready(n, POLLERR);
    eq(error(n), ECONNREFUSED);
    err(send(n, b"hello", 0, &a), ECONNABORTED);
    shut([d, s, n]);
}

fn errors() {
    let (l, a) = listener();
    let s = tcp(0);
    err(sys!(SYS_sendto, s, b"x", 1, MSG_FASTOPEN, 0, 0), EINVAL);
    for len in [0, 1, 2, 8, 15] {
        err(send(s, b"x", 0, &a[..len]), EINVAL);
    }
    err(send(s, b"x", 0, &[0; 16]), EOPNOTSUPP);
    err(send(s, b"x", 0, &[0; 2]), EOPNOTSUPP);
    err(send(s, b"x", 0, &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), EAFNOSUPPORT);
    err(sys!(SYS_sendto, s, b"x", 1, MSG_FASTOPEN, bad(), 16), EFAULT);
    err(sys!(SYS_getpeername, s, &mut [0u8; 16], &mut 16u32), ENOTCONN);
    // Who listens is no client.
    err(send(l, b"x", 0, &a), EISCONN);
    err(sys!(SYS_sendto, l, b"x", 1, MSG_FASTOPEN, 0, 0), EISCONN);
    // What it is to go to comes after where it is.
    ok(sys!(SYS_connect, s, &a, 16));
    err(send(s, b"x", 0, &a[..8]), EISCONN);
    shut([l, s]);
}

fn others_ignore_it() {
    let u = ok(sys!(SYS_socket, AF_INET, SOCK_DGRAM, 0)) as i32;
    ok(sys!(SYS_bind, u, &lo(0), 16));
    let mut a = [0u8; 16];
    ok(sys!(SYS_getsockname, u, &mut a, &mut 16u32));
    eq(send(u, b"x", 0, &a), 1);
    let p = crate::sockets::pair(SOCK_STREAM);
    eq(sys!(SYS_sendto, p[0], b"x", 1, MSG_FASTOPEN, 0, 0), 1);
    shut([u, p[0], p[1]]);
}

/// More than there is room for: who waits for it has connected once.
fn much() {
    let (l, a) = listener();
    let data = vec![7u8; 3 << 20];
    let sender = std::thread::spawn(move || {
        let s = tcp(0);
        let sent = send(s, &data, 0, &a);
        shut([s]);
        sent
    });
    eq(heard(l, 3 << 20), vec![7u8; 3 << 20]);
    eq(sender.join().expect("no panic"), 3 << 20);
    shut([l]);
}

/// sendmmsg(2): the second message would connect again.
fn several_messages() {
    let (l, a) = listener();
    let s = tcp(0);
    let part = [b"hi".as_ptr() as u64, 2];
    let one = [a.as_ptr() as u64, 16, (&raw const part) as u64, 1, 0, 0, 0, 0];
    let mut all = [one, one];
    eq(sys!(SYS_sendmmsg, s, &mut all, 2, MSG_FASTOPEN | MSG_NOSIGNAL), 1);
    eq(heard(l, 2), b"hi");
    shut([l, s]);
}

fn option_values() {
    for name in [TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_NO_COOKIE] {
        let s = tcp(0);
        eq(get(s, name), 0);
        for (value, said) in [(1, 0), (0, 0), (2, EINVAL), (-1, EINVAL), (1, 0)] {
            eq(set(s, name, value), -i64::from(said));
        }
        eq(get(s, name), 1);
        shut([s]);
    }
    let s = tcp(0);
    err(set(s, TCP_FASTOPEN, -1), EINVAL);
    ok(set(s, TCP_FASTOPEN, 7));
    shut([s]);
}

fn option_states() {
    let (l, a) = listener();
    err(set(l, TCP_FASTOPEN_CONNECT, 1), EINVAL);
    ok(set(l, TCP_FASTOPEN_NO_COOKIE, 1));
    ok(set(l, TCP_FASTOPEN, 5));
    eq(get(l, TCP_FASTOPEN), 5);
    let s = tcp(0);
    ok(sys!(SYS_connect, s, &a, 16));
    for name in [TCP_FASTOPEN, TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_NO_COOKIE] {
        err(set(s, name, 1), EINVAL);
    }
    shut([l, s]);
}

fn connect_option() {
    let (l, a) = listener();
    let s = tcp(0);
    ok(set(s, TCP_FASTOPEN_CONNECT, 1));
    ok(sys!(SYS_connect, s, &a, 16));
    ok(sys!(SYS_getpeername, s, &mut [0u8; 16], &mut 16u32));
    eq(write(s, b"hello"), 5);
    eq(heard(l, 5), b"hello");
    let n = tcp(SOCK_NONBLOCK);
    ok(set(n, TCP_FASTOPEN_CONNECT, 1));
    err(sys!(SYS_connect, n, &a, 16), EINPROGRESS);
    until_ready(n, POLLOUT);
    ok(sys!(SYS_connect, n, &a, 16));
    err(sys!(SYS_connect, n, &a, 16), EISCONN);
    shut([l, n, s]);
    let (d, a) = bound();
    let r = tcp(0);
    ok(set(r, TCP_FASTOPEN_CONNECT, 1));
    err(sys!(SYS_connect, r, &a, 16), ECONNREFUSED);
    shut([d, r]);
}

/// Who needs no cookie sends with the first segment, and has no need to wait.
fn without_cookie() {
    let (l, a) = listener();
    let s = tcp(0);
    ok(set(s, TCP_FASTOPEN_NO_COOKIE, 1));
    eq(send(s, b"hello", 0, &a), 5);
    eq(heard(l, 5), b"hello");
    let n = tcp(SOCK_NONBLOCK);
    ok(set(n, TCP_FASTOPEN_NO_COOKIE, 1));
    eq(send(n, b"hello", 0, &a), 5);
    eq(heard(l, 5), b"hello");
    let (d, a) = bound();
    let r = tcp(SOCK_NONBLOCK);
    ok(set(r, TCP_FASTOPEN_NO_COOKIE, 1));
    eq(send(r, b"hello", 0, &a), 5);
    until_ready(r, POLLERR);
    eq(error(r), ECONNREFUSED);
    shut([l, s, n, d, r]);
}
