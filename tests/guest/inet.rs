//! TCP and UDP over loopback: tcp(7), udp(7), ip(7), ipv6(7) and their options and control messages.

use guest_tests::*;
use libc::*;

cases![
    v6_only, dual_stack, mapped_peer, bind_conflicts, reuse_port, udp_reuse_port, urgent_byte, urgent_inline, urgent_errors, urgent_poll,
    hop_limit_and_class, ttl_and_tos, packet_info, control_cut, timestamp, option_ranges, option_levels, tcp_info_state, congestion,
    half_close, reset_on_unread, linger_zero_resets, sending_to_a_closed_end, shut_for_reading, nonblocking_connect, nonblocking_refused, udp_connected, udp_refused, udp_disconnect, udp_truncated, udp_broadcast_refused,
    udp_lite, outside_unreachable, ephemeral_range, names_of_both, accept_inherits, echo_sockets
];

fn tcp(family: i32) -> i32 {
    ok(sys!(SYS_socket, family, SOCK_STREAM, 0)) as i32
}

fn udp(family: i32) -> i32 {
    ok(sys!(SYS_socket, family, SOCK_DGRAM, 0)) as i32
}

fn v4(ip: [u8; 4], port: u16) -> Vec<u8> {
    let mut a = vec![0u8; 16];
    a[0] = AF_INET as u8;
    a[2..4].copy_from_slice(&port.to_be_bytes());
    a[4..8].copy_from_slice(&ip);
    a
}

fn v6(ip: [u8; 16], port: u16) -> Vec<u8> {
    let mut a = vec![0u8; 28];
    a[0] = AF_INET6 as u8;
    a[2..4].copy_from_slice(&port.to_be_bytes());
    a[8..24].copy_from_slice(&ip);
    a
}

const LO4: [u8; 4] = [127, 0, 0, 1];
const LO6: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const ANY6: [u8; 16] = [0; 16];
const MAPPED: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1];

fn bind(fd: i32, a: &[u8]) -> i64 {
    sys!(SYS_bind, fd, a, a.len())
}

fn connect(fd: i32, a: &[u8]) -> i64 {
    sys!(SYS_connect, fd, a, a.len())
}

fn name_of(nr: i64, fd: i32) -> Vec<u8> {
    let (mut b, mut n) = ([0u8; 28], 28u32);
    ok(sys!(nr, fd, &mut b, &mut n));
    b[..n as usize].to_vec()
}

fn port(fd: i32) -> u16 {
    let n = name_of(SYS_getsockname, fd);
    u16::from_be_bytes([n[2], n[3]])
}

fn set(fd: i32, level: i32, name: i32, value: i32) -> i64 {
    sys!(SYS_setsockopt, fd, level, name, &value, 4)
}

fn get(fd: i32, level: i32, name: i32) -> i32 {
    let (mut v, mut n) = (0i32, 4u32);
    ok(sys!(SYS_getsockopt, fd, level, name, &mut v, &mut n));
    v
}

fn send(fd: i32, d: &[u8], flags: i32) -> i64 {
    sys!(SYS_sendto, fd, d, d.len(), flags, 0, 0)
}

fn recv(fd: i32, b: &mut [u8], flags: i32) -> i64 {
    let n = b.len();
    sys!(SYS_recvfrom, fd, b, n, flags, 0, 0)
}

/// A listener on a free port of loopback, and the address to reach it.
fn listener() -> (i32, Vec<u8>) {
    let l = tcp(AF_INET);
    ok(bind(l, &v4(LO4, 0)));
    ok(sys!(SYS_listen, l, 5));
    (l, v4(LO4, port(l)))
}

/// Two connected ends.
fn stream() -> [i32; 2] {
    let (l, a) = listener();
    let c = tcp(AF_INET);
    ok(connect(c, &a));
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    shut([l]);
    [c, s]
}

fn has_v6() -> bool {
    let fd = sys!(SYS_socket, AF_INET6, SOCK_DGRAM, 0);
    if fd < 0 {
        return false;
    }
    let works = bind(fd as i32, &v6(LO6, 0)) == 0;
    shut([fd as i32]);
    works
}

fn need_v6() {
    if !has_v6() {
        skip("no IPv6");
    }
}

fn v6_only() {
    need_v6();
    let six = tcp(AF_INET6);
    eq(set(six, IPPROTO_IPV6, IPV6_V6ONLY, 1), 0);
    ok(bind(six, &v6(ANY6, 0)));
    let p = port(six);
    let four = tcp(AF_INET);
    ok(bind(four, &v4([0; 4], p)));
    ok(sys!(SYS_listen, six, 1));
    let c = tcp(AF_INET);
    err(connect(c, &v4(LO4, p)), ECONNREFUSED);
    err(set(six, IPPROTO_IPV6, IPV6_V6ONLY, 0), EINVAL);
    eq(get(six, IPPROTO_IPV6, IPV6_V6ONLY), 1);
    shut([six, four, c]);
}

fn dual_stack() {
    need_v6();
    let six = tcp(AF_INET6);
    eq(set(six, IPPROTO_IPV6, IPV6_V6ONLY, 0), 0);
    ok(bind(six, &v6(ANY6, 0)));
    ok(sys!(SYS_listen, six, 2));
    let p = port(six);
    let four = tcp(AF_INET);
    err(bind(four, &v4([0; 4], p)), EADDRINUSE);
    err(bind(four, &v4(LO4, p)), EADDRINUSE);
    let c = tcp(AF_INET);
    ok(connect(c, &v4(LO4, p)));
    let s = ok(sys!(SYS_accept, six, 0, 0)) as i32;
    eq(&name_of(SYS_getpeername, s)[8..24], MAPPED);
    eq(&name_of(SYS_getsockname, s)[8..24], MAPPED);
    shut([six, four, c, s]);
}

fn mapped_peer() {
    need_v6();
    let (l, a) = listener();
    let c = tcp(AF_INET6);
    let p = u16::from_be_bytes([a[2], a[3]]);
    ok(connect(c, &v6(MAPPED, p)));
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    eq(&name_of(SYS_getpeername, s)[4..8], LO4);
    shut([l, c, s]);
}

fn bind_conflicts() {
    let (l, a) = listener();
    let b = tcp(AF_INET);
    err(bind(b, &a), EADDRINUSE);
    eq(set(b, SOL_SOCKET, SO_REUSEADDR, 1), 0);
    err(bind(b, &a), EADDRINUSE);
    err(bind(b, &v4([8, 8, 8, 8], 0)), EADDRNOTAVAIL);
    err(bind(b, &a[..8]), EINVAL);
    err(bind(b, &v6(LO6, 0)), EAFNOSUPPORT);
    // Another address of loopback is free.
    ok(bind(b, &v4([127, 0, 0, 2], u16::from_be_bytes([a[2], a[3]]))));
    err(bind(b, &v4(LO4, 0)), EINVAL);
    shut([l, b]);
}

fn reuse_port() {
    let mut all = Vec::new();
    let mut p = 0;
    for _ in 0..3 {
        let l = tcp(AF_INET);
        eq(set(l, SOL_SOCKET, SO_REUSEPORT, 1), 0);
        ok(bind(l, &v4(LO4, p)));
        ok(sys!(SYS_listen, l, 64));
        p = port(l);
        all.push(l);
    }
    let other = tcp(AF_INET);
    err(bind(other, &v4(LO4, p)), EADDRINUSE);
    let clients: Vec<i32> = (0..60).map(|_| tcp(AF_INET)).collect();
    clients.iter().for_each(|c| eq(connect(*c, &v4(LO4, p)), 0));
    // Each listener gets some.
    for l in &all {
        let mut f = pollfd { fd: *l, events: POLLIN, revents: 0 };
        eq(sys!(SYS_poll, &mut f, 1, -1), 1);
    }
    shut(all.into_iter().chain(clients).chain([other]));
}

fn udp_reuse_port() {
    let (a, b) = (udp(AF_INET), udp(AF_INET));
    ok(bind(a, &v4(LO4, 0)));
    err(bind(b, &v4(LO4, port(a))), EADDRINUSE);
    shut([a]);
    let a = udp(AF_INET);
    [a, b].iter().for_each(|f| eq(set(*f, SOL_SOCKET, SO_REUSEADDR, 1), 0));
    ok(bind(a, &v4(LO4, 0)));
    ok(bind(b, &v4(LO4, port(a))));
    shut([a, b]);
}

fn urgent_byte() {
    let [c, s] = stream();
    eq(send(c, b"abc", 0), 3);
    eq(send(c, b"XY", MSG_OOB), 2);
    eq(send(c, b"def", 0), 3);
    until_ready(s, POLLPRI);
    let mut b = [0u8; 16];
    let mut mark = 9i32;
    ok(sys!(SYS_ioctl, s, 0x8905, &mut mark));
    eq(mark, 0);
    // A read stops before the urgent byte.
    eq(recv(s, &mut b, 0), 4);
    eq(&b[..4], b"abcX");
    ok(sys!(SYS_ioctl, s, 0x8905, &mut mark));
    eq(mark, 1);
    eq(recv(s, &mut b, MSG_OOB | MSG_PEEK), 1);
    eq(recv(s, &mut b, MSG_OOB), 1);
    eq(b[0], b'Y');
    err(recv(s, &mut b, MSG_OOB), EINVAL);
    eq(recv(s, &mut b, 0), 3);
    eq(&b[..3], b"def");
    ok(sys!(SYS_ioctl, s, 0x8905, &mut mark));
    eq(mark, 0);
    shut([c, s]);
}

fn urgent_inline() {
    let [c, s] = stream();
    eq(set(s, SOL_SOCKET, SO_OOBINLINE, 1), 0);
    eq(send(c, b"ab", 0), 2);
    eq(send(c, b"U", MSG_OOB), 1);
    eq(send(c, b"cd", 0), 2);
    until_unread(s, 5);
    let mut b = [0u8; 16];
    eq(recv(s, &mut b, 0), 2);
    err(recv(s, &mut b, MSG_OOB), EINVAL);
    eq(recv(s, &mut b, 0), 3);
    eq(&b[..3], b"Ucd");
    shut([c, s]);
}

fn urgent_errors() {
    let [c, s] = stream();
    err(recv(s, &mut [0; 4], MSG_OOB), EINVAL);
    let u = udp(AF_INET);
    ok(connect(u, &v4(LO4, 9)));
    err(send(u, b"x", MSG_OOB), EOPNOTSUPP);
    // UDP does not know the flag where it receives.
    let to = v4(LO4, port(u));
    let v = udp(AF_INET);
    ok(bind(v, &v4(LO4, 0)));
    ok(connect(u, &v4(LO4, port(v))));
    eq(sys!(SYS_sendto, v, b"hey", 3, 0, &to[..], 16), 3);
    eq(recv(u, &mut [0; 4], MSG_OOB), 3);
    err(recv(u, &mut [0; 4], MSG_OOB | MSG_DONTWAIT), EAGAIN);
    let n = ok(sys!(SYS_socket, AF_NETLINK, SOCK_RAW, 0)) as i32;
    err(recv(n, &mut [0; 4], MSG_OOB | MSG_DONTWAIT), EOPNOTSUPP);
    shut([c, s, u, v, n]);
}

fn urgent_poll() {
    let [c, s] = stream();
    let mut f = pollfd { fd: s, events: POLLIN | POLLPRI, revents: 0 };
    eq(sys!(SYS_poll, &mut f, 1, 0), 0);
    eq(send(c, b"!", MSG_OOB), 1);
    f.events = POLLPRI;
    eq(sys!(SYS_poll, &mut f, 1, -1), 1);
    eq(f.revents, POLLPRI);
    eq(recv(s, &mut [0; 1], MSG_OOB), 1);
    eq(sys!(SYS_poll, &mut f, 1, 0), 0);
    shut([c, s]);
}

/// A control message: level, type, body.
type Control = (i32, i32, Vec<u8>);

/// Receives one datagram: count, control messages, flags.
fn receive(fd: i32, room: usize) -> (i64, Vec<Control>, i32) {
    let mut data = [0u8; 64];
    let mut control = vec![0u8; 256];
    let mut iov = iovec { iov_base: data.as_mut_ptr().cast(), iov_len: 64 };
    // SAFETY: all-zero is a valid msghdr.
    let mut m: msghdr = unsafe { std::mem::zeroed() };
    m.msg_iov = &mut iov;
    m.msg_iovlen = 1;
    m.msg_control = control.as_mut_ptr().cast();
    m.msg_controllen = room;
    let n = ok(sys!(SYS_recvmsg, fd, &mut m, 0));
    let mut out = Vec::new();
    let mut rest = &control[..m.msg_controllen];
    while rest.len() >= 16 {
        let len = usize::from_ne_bytes(rest[..8].try_into().unwrap());
        let word = |at: usize| i32::from_ne_bytes(rest[at..at + 4].try_into().unwrap());
        out.push((word(8), word(12), rest[16..len.min(rest.len())].to_vec()));
        rest = &rest[len.next_multiple_of(8).min(rest.len())..];
    }
    (n, out, m.msg_flags)
}

/// Sends one datagram with a control message.
fn send_with(fd: i32, to: &[u8], level: i32, kind: i32, body: &[u8]) -> i64 {
    let mut control = (16 + body.len()).to_ne_bytes().to_vec();
    control.extend(level.to_ne_bytes());
    control.extend(kind.to_ne_bytes());
    control.extend(body);
    control.resize(control.len().next_multiple_of(8), 0);
    let mut iov = iovec { iov_base: b"x".as_ptr().cast_mut().cast(), iov_len: 1 };
    // SAFETY: all-zero is a valid msghdr.
    let mut m: msghdr = unsafe { std::mem::zeroed() };
    m.msg_name = to.as_ptr().cast_mut().cast();
    m.msg_namelen = to.len() as u32;
    m.msg_iov = &mut iov;
    m.msg_iovlen = 1;
    m.msg_control = control.as_mut_ptr().cast();
    m.msg_controllen = control.len();
    sys!(SYS_sendmsg, fd, &m, 0)
}

fn hop_limit_and_class() {
    need_v6();
    let (r, s) = (udp(AF_INET6), udp(AF_INET6));
    ok(bind(r, &v6(LO6, 0)));
    let to = v6(LO6, port(r));
    eq(set(r, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1), 0);
    eq(set(r, IPPROTO_IPV6, IPV6_RECVTCLASS, 1), 0);
    eq(sys!(SYS_sendto, s, b"x", 1, 0, &to[..], 28), 1);
    let int = |v: i32| v.to_ne_bytes().to_vec();
    let (n, got, flags) = receive(r, 256);
    eq((n, flags), (1, 0));
    eq(got, vec![(IPPROTO_IPV6, IPV6_HOPLIMIT, int(64)), (IPPROTO_IPV6, IPV6_TCLASS, int(0))]);
    eq(send_with(s, &to, IPPROTO_IPV6, IPV6_HOPLIMIT, &7i32.to_ne_bytes()), 1);
    eq(receive(r, 256).1[0].clone(), (IPPROTO_IPV6, IPV6_HOPLIMIT, int(7)));
    eq(set(s, IPPROTO_IPV6, IPV6_TCLASS, 0x1c), 0);
    eq(send_with(s, &to, IPPROTO_IPV6, IPV6_HOPLIMIT, &(-1i32).to_ne_bytes()), 1);
    eq(receive(r, 256).1, vec![(IPPROTO_IPV6, IPV6_HOPLIMIT, int(64)), (IPPROTO_IPV6, IPV6_TCLASS, int(0x1c))]);
    err(send_with(s, &to, IPPROTO_IPV6, IPV6_HOPLIMIT, &256i32.to_ne_bytes()), EINVAL);
    shut([r, s]);
}

fn ttl_and_tos() {
    let (r, s) = (udp(AF_INET), udp(AF_INET));
    ok(bind(r, &v4(LO4, 0)));
    let to = v4(LO4, port(r));
    eq(set(r, IPPROTO_IP, IP_RECVTTL, 1), 0);
    eq(set(r, IPPROTO_IP, IP_RECVTOS, 1), 0);
    eq(set(s, IPPROTO_IP, IP_TTL, 9), 0);
    eq(sys!(SYS_sendto, s, b"x", 1, 0, &to[..], 16), 1);
    let want = vec![(IPPROTO_IP, IP_TTL, 9i32.to_ne_bytes().to_vec()), (IPPROTO_IP, IP_TOS, vec![0u8])];
    eq(receive(r, 256).1, want);
    shut([r, s]);
}

fn packet_info() {
    let (r, s) = (udp(AF_INET), udp(AF_INET));
    ok(bind(r, &v4([0; 4], 0)));
    eq(set(r, IPPROTO_IP, IP_PKTINFO, 1), 0);
    let to = v4(LO4, port(r));
    eq(sys!(SYS_sendto, s, b"x", 1, 0, &to[..], 16), 1);
    let want = [&1i32.to_ne_bytes()[..], &LO4, &LO4].concat();
    eq(receive(r, 256).1, vec![(IPPROTO_IP, IP_PKTINFO, want)]);
    if has_v6() {
        let (r, s) = (udp(AF_INET6), udp(AF_INET6));
        ok(bind(r, &v6(ANY6, 0)));
        eq(set(r, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1), 0);
        let to = v6(LO6, port(r));
        eq(sys!(SYS_sendto, s, b"x", 1, 0, &to[..], 28), 1);
        let want = [&LO6[..], &1i32.to_ne_bytes()].concat();
        eq(receive(r, 256).1, vec![(IPPROTO_IPV6, IPV6_PKTINFO, want)]);
        shut([r, s]);
    }
    shut([r, s]);
}

fn control_cut() {
    let (r, s) = (udp(AF_INET), udp(AF_INET));
    ok(bind(r, &v4(LO4, 0)));
    eq(set(r, IPPROTO_IP, IP_RECVTTL, 1), 0);
    let to = v4(LO4, port(r));
    for (room, body) in [(0, None), (15, None), (16, Some(0)), (18, Some(2)), (20, Some(4))] {
        eq(sys!(SYS_sendto, s, b"x", 1, 0, &to[..], 16), 1);
        let (_, got, flags) = receive(r, room);
        eq(got.first().map(|(.., b)| b.len()), body);
        eq(flags, if body == Some(4) { 0 } else { MSG_CTRUNC });
    }
    shut([r, s]);
}

fn timestamp() {
    let (r, s) = (udp(AF_INET), udp(AF_INET));
    ok(bind(r, &v4(LO4, 0)));
    eq(set(r, SOL_SOCKET, SO_TIMESTAMP, 1), 0);
    let to = v4(LO4, port(r));
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    eq(sys!(SYS_sendto, s, b"x", 1, 0, &to[..], 16), 1);
    let got = receive(r, 256).1;
    eq((got[0].0, got[0].1, got[0].2.len()), (SOL_SOCKET, SO_TIMESTAMP, 16));
    let secs = i64::from_ne_bytes(got[0].2[..8].try_into().unwrap());
    check((secs - before).abs() <= 2, "the time is now");
    shut([r, s]);
}

fn option_ranges() {
    let t = tcp(AF_INET);
    for (level, name, bad, good) in [
        (IPPROTO_IP, IP_TTL, 256, 255),
        (IPPROTO_IP, IP_TTL, 0, 1),
        (IPPROTO_TCP, TCP_KEEPCNT, 128, 127),
        (IPPROTO_TCP, TCP_KEEPIDLE, 0, 1),
        (IPPROTO_TCP, TCP_KEEPINTVL, 32768, 32767),
        (IPPROTO_TCP, TCP_USER_TIMEOUT, -1, 1000),
    ] {
        err(set(t, level, name, bad), EINVAL);
        eq(set(t, level, name, good), 0);
        eq(get(t, level, name), good);
    }
    eq(set(t, IPPROTO_TCP, TCP_NODELAY, 7), 0);
    eq(get(t, IPPROTO_TCP, TCP_NODELAY), 1);
    eq(set(t, SOL_SOCKET, SO_KEEPALIVE, 5), 0);
    eq(get(t, SOL_SOCKET, SO_KEEPALIVE), 1);
    err(sys!(SYS_setsockopt, t, IPPROTO_TCP, TCP_NODELAY, &1i32, 2), EINVAL);
    shut([t]);
}

fn option_levels() {
    let (t, u) = (tcp(AF_INET), udp(AF_INET));
    err(set(t, SOL_SOCKET, 9999, 1), ENOPROTOOPT);
    err(set(t, IPPROTO_TCP, 9999, 1), ENOPROTOOPT);
    check(set(u, IPPROTO_TCP, TCP_NODELAY, 1) < 0, "UDP has no TCP options");
    check(set(t, IPPROTO_IPV6, IPV6_V6ONLY, 1) < 0, "IPv4 has no IPv6 options");
    let (a, mut sv) = (0, [0i32; 2]);
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, a, &mut sv));
    err(set(sv[0], IPPROTO_TCP, TCP_NODELAY, 1), EOPNOTSUPP);
    let (mut v, mut n) = (0i32, 4u32);
    err(sys!(SYS_getsockopt, sv[0], IPPROTO_IP, IP_TTL, &mut v, &mut n), EOPNOTSUPP);
    shut([t, u, sv[0], sv[1]]);
}

fn tcp_info_state() {
    let state = |fd: i32| {
        let (mut b, mut n) = ([0u8; 104], 104u32);
        ok(sys!(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &mut b, &mut n));
        eq(n, 104);
        b[0]
    };
    let (l, _) = listener();
    let [c, s] = stream();
    let t = tcp(AF_INET);
    eq((state(l), state(c), state(t)), (10, 1, 7));
    shut([l, c, s, t]);
}

fn congestion() {
    let t = tcp(AF_INET);
    let (mut b, mut n) = ([0u8; 32], 32u32);
    ok(sys!(SYS_getsockopt, t, IPPROTO_TCP, TCP_CONGESTION, &mut b, &mut n));
    eq(n, 16);
    err(sys!(SYS_setsockopt, t, IPPROTO_TCP, TCP_CONGESTION, b"none-such", 9), ENOENT);
    shut([t]);
}

fn half_close() {
    let [c, s] = stream();
    ok(sys!(SYS_shutdown, c, SHUT_WR));
    eq(recv(s, &mut [0; 4], 0), 0);
    eq(send(s, b"late", 0), 4);
    let mut b = [0u8; 8];
    eq(recv(c, &mut b, 0), 4);
    err(send(c, b"x", MSG_NOSIGNAL), EPIPE);
    shut([c, s]);
}

fn reset_on_unread() {
    let [c, s] = stream();
    eq(send(c, b"never read", 0), 10);
    until_unread(s, 10);
    shut([s]);
    err(recv(c, &mut [0; 4], 0), ECONNRESET);
    eq(recv(c, &mut [0; 4], 0), 0);
    err(send(c, b"x", MSG_NOSIGNAL), EPIPE);
    shut([c]);
}

fn sending_to_a_closed_end() {
    let [c, s] = stream();
    eq(send(s, b"bye", 0), 3);
    shut([s]);
    until_ready(c, POLLRDHUP);
    let mut f = pollfd { fd: c, events: POLLIN | POLLOUT | POLLRDHUP, revents: 0 };
    eq(sys!(SYS_poll, &mut f, 1, -1), 1);
    eq(f.revents, POLLIN | POLLOUT | POLLRDHUP);
    // The first is answered by a reset, which the second hears of.
    eq(send(c, b"lost", MSG_NOSIGNAL), 4);
    until("the reset", || ready(c, 0) & POLLHUP != 0);
    err(send(c, b"x", MSG_NOSIGNAL), EPIPE);
    err(send(c, b"x", MSG_NOSIGNAL), EPIPE);
    eq(sys!(SYS_poll, &mut f, 1, -1), 1);
    eq(f.revents & POLLHUP, POLLHUP);
    let mut b = [0u8; 8];
    eq(recv(c, &mut b, 0), 3);
    eq(recv(c, &mut b, 0), 0);
    shut([c]);
}

fn shut_for_reading() {
    let [c, s] = stream();
    ok(sys!(SYS_shutdown, s, SHUT_RD));
    let mut b = [0u8; 8];
    eq(recv(s, &mut b, 0), 0);
    eq(send(c, b"still", MSG_NOSIGNAL), 5);
    until_unread(s, 5);
    eq(recv(s, &mut b, 0), 5);
    eq(recv(s, &mut b, 0), 0);
    shut([c, s]);
}

fn linger_zero_resets() {
    let [c, s] = stream();
    let zero = [1i32, 0];
    eq(sys!(SYS_setsockopt, s, SOL_SOCKET, SO_LINGER, &zero, 8), 0);
    let (mut v, mut n) = ([9i32; 2], 8u32);
    ok(sys!(SYS_getsockopt, s, SOL_SOCKET, SO_LINGER, &mut v, &mut n));
    eq(v, zero);
    eq(send(s, b"last words", 0), 10);
    until_unread(c, 10);
    shut([s]);
    until("the reset", || ready(c, 0) & POLLHUP != 0);
    err(sys!(SYS_getpeername, c, &mut [0u8; 16], &mut 16u32), ENOTCONN);
    let mut b = [0u8; 16];
    eq(recv(c, &mut b, 0), 10);
    err(recv(c, &mut b, 0), ECONNRESET);
    eq(recv(c, &mut b, 0), 0);
    err(send(c, b"x", MSG_NOSIGNAL), EPIPE);
    shut([c]);
}

fn nonblocking_connect() {
    let (l, a) = listener();
    let c = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) as i32;
    err(connect(c, &a), EINPROGRESS);
    let mut f = pollfd { fd: c, events: POLLOUT, revents: 0 };
    eq(sys!(SYS_poll, &mut f, 1, -1), 1);
    eq(get(c, SOL_SOCKET, SO_ERROR), 0);
    // The first call that finds it connected says so with 0.
    eq(connect(c, &a), 0);
    err(connect(c, &a), EISCONN);
    shut([l, c]);
}

fn nonblocking_refused() {
    let l = tcp(AF_INET);
    ok(bind(l, &v4(LO4, 0)));
    let a = v4(LO4, port(l));
    let c = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) as i32;
    for by_option in [true, false] {
        err(connect(c, &a), EINPROGRESS);
        let mut f = pollfd { fd: c, events: POLLIN | POLLOUT, revents: 0 };
        eq(sys!(SYS_poll, &mut f, 1, -1), 1);
        eq(f.revents, POLLIN | POLLOUT | POLLERR | POLLHUP);
        if by_option {
            eq(get(c, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
            eq(get(c, SOL_SOCKET, SO_ERROR), 0);
            // The attempt is over, and its error was told.
            errs(connect(c, &a), &[ECONNABORTED, 0]);
        } else {
            err(connect(c, &a), ECONNREFUSED);
        }
    }
    shut([l, c]);
}

fn udp_connected() {
    let (a, b) = (udp(AF_INET), udp(AF_INET));
    ok(bind(a, &v4(LO4, 0)));
    ok(bind(b, &v4(LO4, 0)));
    ok(connect(a, &v4(LO4, port(b))));
    let other = udp(AF_INET);
    let to = v4(LO4, port(a));
    // Only the peer is heard.
    eq(sys!(SYS_sendto, other, b"no", 2, 0, &to[..], 16), 2);
    eq(sys!(SYS_sendto, b, b"yes", 3, 0, &to[..], 16), 3);
    let mut buf = [0u8; 8];
    eq(recv(a, &mut buf, 0), 3);
    err(recv(a, &mut buf, MSG_DONTWAIT), EAGAIN);
    eq(&name_of(SYS_getpeername, a)[2..4], port(b).to_be_bytes());
    shut([a, b, other]);
}

fn udp_refused() {
    let (a, b) = (udp(AF_INET), udp(AF_INET));
    ok(bind(b, &v4(LO4, 0)));
    ok(connect(a, &v4(LO4, port(b))));
    shut([b]);
    eq(send(a, b"x", 0), 1);
    until("the answer", || ready(a, 0) & POLLERR != 0);
    err(send(a, b"x", 0), ECONNREFUSED);
    shut([a]);
}

fn udp_disconnect() {
    let (a, b) = (udp(AF_INET), udp(AF_INET));
    ok(bind(b, &v4(LO4, 0)));
    ok(connect(a, &v4(LO4, port(b))));
    ok(sys!(SYS_connect, a, &[0u8; 16], 16));
    err(send(a, b"x", 0), EDESTADDRREQ);
    err(sys!(SYS_getpeername, a, &mut [0u8; 16], &mut 16u32), ENOTCONN);
    shut([a]);
    // An address that was chosen stays, a port that was not goes.
    let a = udp(AF_INET);
    ok(bind(a, &v4(LO4, 0)));
    ok(connect(a, &v4(LO4, port(b))));
    ok(sys!(SYS_connect, a, &[0u8; 16], 16));
    eq(&name_of(SYS_getsockname, a)[..8], &v4(LO4, 0)[..8]);
    ok(connect(a, &v4(LO4, port(b))));
    check(port(a) != 0, "it has a port again");
    ok(sys!(SYS_connect, a, &[0u8; 16], 16));
    ok(bind(a, &v4(LO4, 0)));
    check(port(a) != 0, "it was not bound");
    shut([a, b]);
}

fn udp_truncated() {
    let (a, b) = (udp(AF_INET), udp(AF_INET));
    ok(bind(b, &v4(LO4, 0)));
    ok(connect(a, &v4(LO4, port(b))));
    eq(send(a, b"", 0), 0);
    eq(recv(b, &mut [0; 4], 0), 0);
    eq(send(a, b"abcdef", 0), 6);
    eq(recv(b, &mut [0; 2], MSG_TRUNC), 6);
    err(send(a, &vec![0u8; 65508], 0), EMSGSIZE);
    shut([a, b]);
}

fn udp_broadcast_refused() {
    let u = udp(AF_INET);
    let r = sys!(SYS_sendto, u, b"x", 1, 0, &v4([255; 4], 9)[..], 16);
    errs(r, &[EACCES, ENETUNREACH]);
    shut([u]);
}

fn udp_lite() {
    let fd = sys!(SYS_socket, AF_INET, SOCK_DGRAM, 136);
    if fd < 0 {
        skip("no UDP-Lite");
    }
    let a = fd as i32;
    let b = ok(sys!(SYS_socket, AF_INET, SOCK_DGRAM, 136)) as i32;
    let plain = udp(AF_INET);
    ok(bind(b, &v4(LO4, 0)));
    // Ports of UDP are others.
    ok(bind(plain, &v4(LO4, port(b))));
    eq(sys!(SYS_sendto, a, b"lite", 4, 0, &v4(LO4, port(b))[..], 16), 4);
    eq(recv(b, &mut [0; 8], 0), 4);
    err(recv(plain, &mut [0; 8], MSG_DONTWAIT), EAGAIN);
    eq(get(a, SOL_SOCKET, SO_PROTOCOL), 136);
    shut([a, b, plain]);
}

fn outside_unreachable() {
    // An address for documentation (RFC 5737): nobody has it.
    let c = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) as i32;
    errs(connect(c, &v4([192, 0, 2, 1], 9)), &[ENETUNREACH, EINPROGRESS]);
    shut([c]);
}

fn ephemeral_range() {
    let all: Vec<i32> = (0..50).map(|_| tcp(AF_INET)).collect();
    let mut seen = std::collections::HashSet::new();
    for fd in &all {
        ok(bind(*fd, &v4(LO4, 0)));
        check(port(*fd) >= 1024 && seen.insert(port(*fd)), "free ports, each once");
    }
    shut(all);
}

fn names_of_both() {
    let (l, a) = listener();
    let c = tcp(AF_INET);
    err(sys!(SYS_getpeername, c, &mut [0u8; 16], &mut 16u32), ENOTCONN);
    ok(connect(c, &a));
    let (mut b, mut n) = ([0u8; 16], 16u32);
    let s = ok(sys!(SYS_accept, l, &mut b, &mut n)) as i32;
    eq(n, 16);
    eq(&b[..8], &name_of(SYS_getsockname, c)[..8]);
    eq(name_of(SYS_getpeername, c), a.clone());
    eq(name_of(SYS_getsockname, s), a);
    shut([l, c, s]);
}

fn accept_inherits() {
    let (l, a) = listener();
    eq(set(l, IPPROTO_TCP, TCP_NODELAY, 1), 0);
    eq(set(l, SOL_SOCKET, SO_KEEPALIVE, 1), 0);
    let c = tcp(AF_INET);
    ok(connect(c, &a));
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    eq((get(s, IPPROTO_TCP, TCP_NODELAY), get(s, SOL_SOCKET, SO_KEEPALIVE)), (1, 1));
    eq(get(c, SOL_SOCKET, SO_KEEPALIVE), 0);
    shut([l, c, s]);
}

/// ping without privileges (icmp(7)).
fn echo_sockets() {
    let fd = sys!(SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
    if fd == -i64::from(EACCES) {
        skip("the host has no echo sockets for this group");
    }
    let fd = ok(fd) as i32;
    let mut request = vec![8u8, 0, 0, 0, 0, 0, 0, 5];
    request.extend(b"payload");
    let to = v4(LO4, 0);
    eq(sys!(SYS_sendto, fd, &request[..], request.len(), 0, &to[..], 16), request.len() as i64);
    let (mut b, mut from, mut n) = ([0u8; 64], [0u8; 16], 16u32);
    eq(sys!(SYS_recvfrom, fd, &mut b, 64, 0, &mut from, &mut n), request.len() as i64);
    eq((b[0], b[1], &b[6..15]), (0, 0, &request[6..]));
    eq(&b[4..6], &name_of(SYS_getsockname, fd)[2..4]);
    eq(&from[4..8], LO4);
    // The checksum of a message with its checksum is 0.
    let sum = b[..16].chunks(2).fold(0u32, |sum, w| sum + u32::from(u16::from_be_bytes([w[0], w[1]])));
    eq((sum >> 16) + (sum & 0xffff), 0xffff);
    err(sys!(SYS_sendto, fd, &request[..4], 4, 0, &to[..], 16), EINVAL);
    request[0] = 0;
    err(sys!(SYS_sendto, fd, &request[..], request.len(), 0, &to[..], 16), EINVAL);
    shut([fd]);
}
