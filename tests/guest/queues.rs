//! What waits at a socket: looked at from an offset (SO_PEEK_OFF, socket(7)), errors of datagrams (IP_RECVERR and MSG_ERRQUEUE,
//! ip(7), ipv6(7)), connections that nothing came from yet (TCP_DEFER_ACCEPT, tcp(7)).

use crate::sockets::pair;
use guest_tests::*;
use libc::*;
use std::time::{Duration, Instant};

cases![
    peek_offset_of_streams, peek_offset_of_messages, peek_offset_of_udp, peek_offset_errors, errors_of_ipv4, errors_of_ipv6, errors_of_connected,
    too_long, errors_are_forgotten, error_flag_of_others, accepted_with_data, accepted_at_the_end, accepted_late, never_accepted, error_wakes,
    listener_writes_no_more, parts_of_datagrams, flags_that_are_ignored, discarded, probes
];

const SO_PEEK_OFF: i32 = 42;
/// discard: nobody is there.
const PORT: [u8; 2] = [0, 9];

fn set(fd: i32, level: i32, name: i32, value: i32) -> i64 {
    sys!(SYS_setsockopt, fd, level, name, &value, 4)
}

fn get(fd: i32, level: i32, name: i32) -> Result<i32, i64> {
    let (mut v, mut n) = (-77i32, 4u32);
    match sys!(SYS_getsockopt, fd, level, name, &mut v, &mut n) {
        0 => Ok(v),
        r => Err(r),
    }
}

fn socket(family: i32, kind: i32) -> i32 {
    ok(sys!(SYS_socket, family, kind, 0)) as i32
}

fn send(fd: i32, data: &[u8]) {
    eq(sys!(SYS_sendto, fd, data, data.len(), 0, 0, 0), data.len() as i64);
}

/// What a receive of so many bytes finds, or its errno.
fn receive(fd: i32, room: usize, flags: i32) -> Result<Vec<u8>, i32> {
    let mut b = vec![0u8; room.max(1)];
    let n = sys!(SYS_recvfrom, fd, &mut b[..], room, flags | MSG_DONTWAIT, 0, 0);
    match usize::try_from(n) {
        Ok(n) => Ok(b[..n.min(room)].to_vec()),
        Err(_) => Err(-n as i32),
    }
}

fn peek(fd: i32, room: usize) -> (Result<Vec<u8>, i32>, i32) {
    let got = receive(fd, room, MSG_PEEK);
    (got, get(fd, SOL_SOCKET, SO_PEEK_OFF).expect("an offset"))
}

fn start(fd: i32, off: i32) {
    if set(fd, SOL_SOCKET, SO_PEEK_OFF, off) != 0 {
        skip("no SO_PEEK_OFF");
    }
}

fn is(text: &str, off: i32) -> (Result<Vec<u8>, i32>, i32) {
    (Ok(text.into()), off)
}

fn lo(family: i32, port: [u8; 2]) -> Vec<u8> {
    match family {
        AF_INET => [&[AF_INET as u8, 0], &port[..], &[127, 0, 0, 1], &[0; 8]].concat(),
        _ => [&[AF_INET6 as u8, 0], &port[..], &[0; 4], &[0; 15], &[1], &[0; 4]].concat(),
    }
}

fn listener() -> (i32, Vec<u8>) {
    let l = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK);
    ok(sys!(SYS_bind, l, &lo(AF_INET, [0, 0])[..], 16));
    ok(sys!(SYS_listen, l, 5));
    let mut a = vec![0u8; 16];
    ok(sys!(SYS_getsockname, l, &mut a[..], &mut 16u32));
    (l, a)
}

fn tcp_pair() -> [i32; 2] {
    let (l, a) = listener();
    let c = connected(&a);
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    shut([l]);
    [c, s]
}

fn connected(a: &[u8]) -> i32 {
    let c = socket(AF_INET, SOCK_STREAM);
    ok(sys!(SYS_connect, c, a, 16));
    c
}

fn peek_offset_of_streams() {
    for p in [pair(SOCK_STREAM), tcp_pair()] {
        eq(get(p[1], SOL_SOCKET, SO_PEEK_OFF), Ok(-1));
        start(p[1], -5);
        eq(get(p[1], SOL_SOCKET, SO_PEEK_OFF), Ok(-5));
        start(p[1], 0);
        send(p[0], b"abcd");
        send(p[0], b"efgh");
        eq(peek(p[1], 2), is("ab", 2));
        eq(peek(p[1], 1), is("c", 3));
        eq(peek(p[1], 10), is("defgh", 8));
        eq(peek(p[1], 10), (Err(EAGAIN), 8));
        start(p[1], 1);
        eq(receive(p[1], 3, 0), Ok(b"abc".into()));
        eq(peek(p[1], 10), is("defgh", 5));
        eq(receive(p[1], 4, 0), Ok(b"defg".into()));
        eq(get(p[1], SOL_SOCKET, SO_PEEK_OFF), Ok(1));
        send(p[0], b"ij");
        eq(peek(p[1], 10), is("ij", 3));
        start(p[1], -1);
        eq(peek(p[1], 10), is("hij", -1));
        start(p[1], 50);
        shut([p[0]]);
        // Nothing comes any more.
        eq(peek(p[1], 10), is("", 50));
        shut([p[1]]);
    }
}

fn peek_offset_of_messages() {
    for kind in [SOCK_DGRAM, SOCK_SEQPACKET] {
        let p = pair(kind);
        start(p[1], 0);
        send(p[0], b"abcd");
        send(p[0], b"efgh");
        eq(peek(p[1], 2), is("ab", 2));
        eq(peek(p[1], 10), is("cd", 4));
        eq(peek(p[1], 3), is("efg", 7));
        eq(peek(p[1], 3), is("h", 8));
        eq(peek(p[1], 3), (Err(EAGAIN), 8));
        // A message is received as a whole, whatever there is room for.
        eq(receive(p[1], 3, 0), Ok(b"abc".into()));
        eq(get(p[1], SOL_SOCKET, SO_PEEK_OFF), Ok(4));
        start(p[1], 1);
        eq(sys!(SYS_recvfrom, p[1], &mut [0u8; 4], 1, MSG_PEEK | MSG_TRUNC, 0, 0), 3);
        eq(get(p[1], SOL_SOCKET, SO_PEEK_OFF), Ok(2));
        shut(p);
    }
}

fn peek_offset_of_udp() {
    let (a, b) = (socket(AF_INET, SOCK_DGRAM), socket(AF_INET, SOCK_DGRAM));
    ok(sys!(SYS_bind, b, &lo(AF_INET, [0, 0])[..], 16));
    let mut name = [0u8; 16];
    ok(sys!(SYS_getsockname, b, &mut name, &mut 16u32));
    ok(sys!(SYS_connect, a, &name, 16));
    start(b, 0);
    send(a, b"abcd");
    send(a, b"efgh");
    eq(peek(b, 2), is("ab", 2));
    eq(peek(b, 10), is("cd", 4));
    eq(peek(b, 10), is("efgh", 8));
    eq(peek(b, 10), (Err(EAGAIN), 8));
    eq(receive(b, 3, 0), Ok(b"abc".into()));
    eq(get(b, SOL_SOCKET, SO_PEEK_OFF), Ok(5));
    start(b, 1);
    eq(peek(b, 10), is("fgh", 4));
    shut([a, b]);
}

fn peek_offset_errors() {
    let n = ok(sys!(SYS_socket, AF_NETLINK, SOCK_RAW, 0)) as i32;
    eq(get(n, SOL_SOCKET, SO_PEEK_OFF), Err(-i64::from(EOPNOTSUPP)));
    err(set(n, SOL_SOCKET, SO_PEEK_OFF, 0), EOPNOTSUPP);
    let u = socket(AF_UNIX, SOCK_DGRAM);
    err(sys!(SYS_setsockopt, u, SOL_SOCKET, SO_PEEK_OFF, &0i32, 2), EINVAL);
    shut([n, u]);
}

/// Bytes, control messages (level, type, body), name, flags; or the errno.
type Got = (Vec<u8>, Vec<(i32, i32, Vec<u8>)>, Vec<u8>, i32);

fn receive_error(fd: i32, room: usize, control_room: usize) -> Result<Got, i32> {
    let (mut b, mut name, mut control) = (vec![0u8; room.max(1)], [0u8; 28], [0u64; 32]);
    let iov = iovec { iov_base: b.as_mut_ptr().cast(), iov_len: room };
    // SAFETY: plain data, for which zeroes are a value.
    let mut m: msghdr = unsafe { std::mem::zeroed() };
    (m.msg_iov, m.msg_iovlen) = ((&raw const iov).cast_mut(), 1);
    (m.msg_name, m.msg_namelen) = (name.as_mut_ptr().cast(), 28);
    (m.msg_control, m.msg_controllen) = (control.as_mut_ptr().cast(), control_room as _);
    let n = sys!(SYS_recvmsg, fd, &mut m, MSG_ERRQUEUE | MSG_DONTWAIT);
    let Ok(n) = usize::try_from(n) else { return Err(-n as i32) };
    b.truncate(n.min(room));
    let bytes: Vec<u8> = control.iter().flat_map(|w| w.to_ne_bytes()).collect();
    let mut rest = &bytes[..m.msg_controllen as usize];
    let mut list = Vec::new();
    while rest.len() >= 16 {
        let len = usize::from_ne_bytes(rest[..8].try_into().unwrap());
        let int = |at: usize| i32::from_ne_bytes(rest[at..at + 4].try_into().unwrap());
        list.push((int(8), int(12), rest[16..len].to_vec()));
        rest = &rest[len.next_multiple_of(8).min(rest.len())..];
    }
    Ok((b, list, name[..m.msg_namelen as usize].to_vec(), m.msg_flags))
}

fn events(fd: i32) -> i16 {
    let mut p = pollfd { fd, events: POLLIN | POLLPRI, revents: 0 };
    sys!(SYS_poll, &mut p, 1, 0);
    p.revents
}

fn send_to(fd: i32, data: &[u8], a: &[u8]) -> i64 {
    sys!(SYS_sendto, fd, data, data.len(), 0, a, a.len())
}

/// What an error says of a datagram to `a`, that nobody is at its port.
fn refused(family: i32, a: &[u8]) -> Vec<(i32, i32, Vec<u8>)> {
    let mut who = a.to_vec();
    who[2..4].fill(0);
    let (level, name, message) = if family == AF_INET { (SOL_IP, IP_RECVERR, [2, 3, 3]) } else { (SOL_IPV6, IPV6_RECVERR, [3, 1, 4]) };
    vec![(level, name, [&ECONNREFUSED.to_ne_bytes()[..], &message, &[0; 9], &who].concat())]
}

fn errors_of(family: i32, level: i32, option: i32, most: usize) {
    let a = lo(family, PORT);
    let u = socket(family, SOCK_DGRAM);
    // Without the option one that is not connected hears of nothing.
    eq((send_to(u, b"abc", &a), send_to(u, b"abc", &a), events(u)), (3, 3, 0));
    eq(receive_error(u, 9, 256), Err(EAGAIN));
    ok(set(u, level, option, 1));
    eq((send_to(u, b"abc", &a), events(u)), (3, POLLERR));
    err(send_to(u, b"lost", &a), ECONNREFUSED);
    eq((events(u), get(u, SOL_SOCKET, SO_ERROR)), (POLLERR, Ok(0)));
    eq(receive_error(u, 9, 256), Ok((b"abc".into(), refused(family, &a), a.clone(), MSG_ERRQUEUE)));
    eq((receive_error(u, 9, 256), events(u)), (Err(EAGAIN), 0));
    // Reading them takes the error away, or tells the next.
    eq((send_to(u, b"one", &a), get(u, SOL_SOCKET, SO_ERROR)), (3, Ok(ECONNREFUSED)));
    eq((send_to(u, b"two", &a), get(u, SOL_SOCKET, SO_ERROR)), (3, Ok(ECONNREFUSED)));
    eq(receive_error(u, 9, 256).expect("the first").0, b"one");
    eq(get(u, SOL_SOCKET, SO_ERROR), Ok(ECONNREFUSED));
    eq(receive_error(u, 9, 256).expect("the second").0, b"two");
    eq(get(u, SOL_SOCKET, SO_ERROR), Ok(0));
    // Less room than there is to tell.
    eq(send_to(u, b"hello", &a), 5);
    eq(receive_error(u, 2, 0), Ok((b"he".into(), vec![], a.clone(), MSG_ERRQUEUE | MSG_TRUNC | MSG_CTRUNC)));
    eq(send_to(u, &[7; 2000], &a), 2000);
    eq(receive_error(u, 3000, 256).expect("a part").0.len(), most);
    shut([u]);
}

fn errors_of_ipv4() {
    errors_of(AF_INET, SOL_IP, IP_RECVERR, 520);
}

fn errors_of_ipv6() {
    errors_of(AF_INET6, SOL_IPV6, IPV6_RECVERR, 1184);
}

fn errors_of_connected() {
    for on in [0, 1] {
        let u = socket(AF_INET, SOCK_DGRAM);
        ok(set(u, SOL_IP, IP_RECVERR, on));
        let a = lo(AF_INET, PORT);
        ok(sys!(SYS_connect, u, &a[..], 16));
        send(u, b"c");
        eq((events(u), receive(u, 9, 0)), (POLLERR, Err(ECONNREFUSED)));
        eq(receive_error(u, 9, 256).map(|got| got.0), if on == 1 { Ok(b"c".into()) } else { Err(EAGAIN) });
        eq((events(u), receive(u, 9, 0)), (0, Err(EAGAIN)));
        shut([u]);
    }
    // TCP has none to queue.
    let t = socket(AF_INET, SOCK_STREAM);
    ok(set(t, SOL_IP, IP_RECVERR, 1));
    err(sys!(SYS_connect, t, &lo(AF_INET, PORT)[..], 16), ECONNREFUSED);
    eq(receive_error(t, 9, 256), Err(EAGAIN));
    shut([t]);
}

fn too_long() {
    let u = socket(AF_INET, SOCK_DGRAM);
    let a = lo(AF_INET, PORT);
    err(send_to(u, &[0; 65_510], &a), EMSGSIZE);
    eq(receive_error(u, 9, 256), Err(EAGAIN));
    ok(set(u, SOL_IP, IP_RECVERR, 1));
    err(send_to(u, &[0; 65_510], &a), EMSGSIZE);
    let (data, list, name, flags) = receive_error(u, 9, 256).expect("an error");
    eq((data, name, flags), (vec![], lo(AF_INET, [0, 0]), MSG_ERRQUEUE));
    eq(list[0].2[..12].to_vec(), [&EMSGSIZE.to_ne_bytes()[..], &[1, 0, 0, 0], &65_535u32.to_ne_bytes()].concat());
    eq(list[0].2[16..].to_vec(), vec![0; 16]);
    err(send_to(u, &[0; 65_600], &a), EMSGSIZE);
    eq(receive_error(u, 9, 256), Err(EAGAIN));
    shut([u]);
    for family in [AF_INET, AF_INET6] {
        let (level, name, info, len) = match family {
            AF_INET => (SOL_IP, IP_RECVERR, 65_535u32, 16),
            _ => (SOL_IPV6, IPV6_RECVERR, 65_536, 28),
        };
        let u = socket(family, SOCK_DGRAM);
        let a = lo(family, PORT);
        ok(set(u, level, name, 1));
        let unconnected = if family == AF_INET { [0, 0] } else { PORT };
        for (connects, port) in [(false, unconnected), (true, PORT)] {
            if connects {
                ok(sys!(SYS_connect, u, &a[..], a.len()));
                err(sys!(SYS_sendto, u, &[0u8; 65_530][..], 65_530, 0, 0, 0), EMSGSIZE);
            } else {
                err(send_to(u, &[0; 65_530], &a), EMSGSIZE);
            }
            let (data, list, to, flags) = receive_error(u, 9, 256).expect("an error");
            eq((data, to, flags), (vec![], lo(family, port), MSG_ERRQUEUE));
            eq((list.len(), list[0].0, list[0].1), (1, level, name));
            eq(list[0].2[..12].to_vec(), [&EMSGSIZE.to_ne_bytes()[..], &[1, 0, 0, 0], &info.to_ne_bytes()].concat());
            eq(list[0].2[16..].to_vec(), vec![0; len]);
            eq((get(u, SOL_SOCKET, SO_ERROR), events(u)), (Ok(0), 0));
        }
        // A message that is far too long.
        let more = sys!(SYS_sendto, u, &[0u8; 70_000][..], 70_000, 0, 0, 0);
        err(more, EMSGSIZE);
        eq(receive_error(u, 9, 256).is_ok(), family == AF_INET6);
        shut([u]);
    }
}

fn errors_are_forgotten() {
    let u = socket(AF_INET, SOCK_DGRAM);
    ok(set(u, SOL_IP, IP_RECVERR, 1));
    eq(send_to(u, b"x", &lo(AF_INET, PORT)), 1);
    ok(set(u, SOL_IP, IP_RECVERR, 0));
    eq((receive_error(u, 9, 256), events(u), get(u, SOL_SOCKET, SO_ERROR)), (Err(EAGAIN), POLLERR, Ok(ECONNREFUSED)));
    // As many as the receive buffer would hold.
    ok(set(u, SOL_IP, IP_RECVERR, 1));
    for _ in 0..1000 {
        send_to(u, b"x", &lo(AF_INET, PORT));
    }
    let mut count = 0;
    while receive_error(u, 9, 256).is_ok() {
        count += 1;
    }
    check((50..500).contains(&count), "a bounded queue");
    shut([u]);
}

/// Families without such a queue do not know the flag.
fn error_flag_of_others() {
    for kind in [SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET] {
        let p = pair(kind);
        send(p[0], b"hello");
        eq(receive(p[1], 9, MSG_ERRQUEUE), Ok(b"hello".into()));
        shut(p);
    }
}

fn waits(l: i32, most: i32) -> bool {
    let mut p = pollfd { fd: l, events: POLLIN, revents: 0 };
    sys!(SYS_poll, &mut p, 1, most) == 0
}

fn deferring(seconds: i32) -> (i32, Vec<u8>) {
    let (l, a) = listener();
    ok(set(l, IPPROTO_TCP, TCP_DEFER_ACCEPT, seconds));
    (l, a)
}

fn accepted_with_data() {
    let (l, a) = deferring(30);
    let c = connected(&a);
    check(waits(l, 50), "nothing came");
    err(sys!(SYS_accept, l, 0, 0), EAGAIN);
    send(c, b"x");
    check(!waits(l, -1), "data came");
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    eq(receive(s, 9, 0), Ok(b"x".into()));
    eq(get(s, IPPROTO_TCP, TCP_DEFER_ACCEPT), Ok(0));
    shut([l, c, s]);
}

fn accepted_at_the_end() {
    let (l, a) = deferring(30);
    for shuts in [true, false] {
        let c = connected(&a);
        check(waits(l, 20), "nothing came");
        if shuts {
            ok(sys!(SYS_shutdown, c, SHUT_WR));
        } else {
            shut([c]);
        }
        check(!waits(l, -1), "the end came");
        let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
        eq(receive(s, 9, 0), Ok(vec![]));
        shut([s]);
        if shuts {
            shut([c]);
        }
    }
    // A reset leaves nothing to accept.
    let c = connected(&a);
    ok(sys!(SYS_setsockopt, c, SOL_SOCKET, SO_LINGER, &[1i32, 0], 8));
    shut([c]);
    check(waits(l, 50), "it is gone");
    shut([l]);
}

fn accepted_late() {
    let (l, a) = deferring(1);
    let start = Instant::now();
    let c = connected(&a);
    check(!waits(l, -1), "time is up");
    check(start.elapsed() > Duration::from_millis(900), "after a second");
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    shut([l, c, s]);
}

fn never_accepted() {
    // Connections of a listener that ends are reset: at once, or when they send something.
    let (l, a) = listener();
    let c = connected(&a);
    shut([l]);
    eq(receive(c, 9, 0), Err(ECONNRESET));
    shut([c]);
    let (l, a) = deferring(30);
    let c = connected(&a);
    shut([l]);
    eq(receive(c, 9, 0), Err(EAGAIN));
    send(c, b"x");
    eq(receive(c, 9, 0), Err(ECONNRESET));
    shut([c]);
}

/// Count, bytes, flags and the offset afterwards of a receive with recvmsg(2).
fn part(fd: i32, room: usize, flags: i32) -> (i64, Vec<u8>, i32, i32) {
    let mut b = vec![0u8; room];
    let mut v = iovec { iov_base: b.as_mut_ptr().cast(), iov_len: room };
    let mut header: msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (&raw mut v, 1);
    let n = sys!(SYS_recvmsg, fd, &mut header, flags | MSG_DONTWAIT);
    b.truncate(usize::try_from(n).unwrap_or(0).min(room));
    (n, b, header.msg_flags, get(fd, SOL_SOCKET, SO_PEEK_OFF).expect("an offset"))
}

/// What is told of datagrams that are looked at or received in part, with MSG_TRUNC and without, from an offset or the start.
fn parts_of_datagrams() {
    let u = socket(AF_INET, SOCK_DGRAM);
    ok(sys!(SYS_bind, u, &lo(AF_INET, [0, 0])[..], 16));
    let mut a = vec![0u8; 16];
    ok(sys!(SYS_getsockname, u, &mut a[..], &mut 16u32));
    let ten = b"0123456789";
    let look = |from: i32, room: usize, flags: i32| {
        start(u, from);
        send_to(u, ten, &a);
        let found = part(u, room, flags | MSG_PEEK);
        ok(sys!(SYS_recvfrom, u, &mut [0u8; 16], 16, 0, 0, 0));
        found
    };
    let text = |s: &str| s.as_bytes().to_vec();
    for (from, room, flags, want) in [
        (0, 4, 0, (4, text("0123"), MSG_TRUNC, 4)),
        (4, 4, 0, (4, text("4567"), MSG_TRUNC, 8)),
        (4, 6, 0, (6, text("456789"), MSG_TRUNC, 10)),
        (4, 7, 0, (6, text("456789"), 0, 10)),
        (0, 4, MSG_TRUNC, (10, text("0123"), MSG_TRUNC, 10)),
        (4, 4, MSG_TRUNC, (10, text("4567"), MSG_TRUNC, 14)),
        (0, 20, MSG_TRUNC, (10, text("0123456789"), 0, 10)),
    ] {
        eq(look(from, room, flags), want);
    }
    let (n, bytes, flags, off) = look(4, 20, MSG_TRUNC);
    eq((n, &bytes[..6], flags, off), (10, &b"456789"[..], 0, 14));
    for (flags, n, off) in [(0, 4, 4), (MSG_TRUNC, 10, 0)] {
        start(u, 8);
        send_to(u, ten, &a);
        eq(part(u, 4, flags), (n, text("0123"), MSG_TRUNC, off));
    }
    shut([u]);
    // A message of AF_UNIX tells what is left of it.
    let p = pair(SOCK_DGRAM);
    send(p[0], ten);
    start(p[1], 4);
    eq(part(p[1], 4, MSG_PEEK | MSG_TRUNC), (6, text("4567"), MSG_TRUNC, 8));
    eq(part(p[1], 4, MSG_PEEK | MSG_TRUNC), (2, text("89"), 0, 10));
    shut(p);
}

/// Flags that mean nothing to a kind of socket are no error, in either direction.
fn flags_that_are_ignored() {
    let of = |kind: i32| match kind {
        0 => tcp_pair(),
        kind => pair(kind),
    };
    for kind in [0, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET] {
        for bit in 0..31 {
            let flag = 1 << bit;
            let p = of(kind);
            if flag & (MSG_OOB | MSG_FASTOPEN) == 0 {
                eq(sys!(SYS_sendto, p[0], b"hello", 5, flag, 0, 0), 5);
            } else {
                send(p[0], b"hello");
            }
            if flag & (MSG_OOB | MSG_ERRQUEUE | MSG_WAITALL) == 0 && flag & MSG_MORE == 0 {
                eq(receive(p[1], 5, flag).map(|b| b.len()), Ok(5));
            }
            shut(p);
        }
    }
    let p = tcp_pair();
    err(sys!(SYS_sendto, p[0], b"hello", 5, MSG_FASTOPEN, 0, 0), EISCONN);
    shut(p);
}

/// MSG_TRUNC of TCP: what is received goes nowhere.
fn discarded() {
    let p = tcp_pair();
    send(p[0], b"0123456789");
    let mut b = *b"abcd";
    eq(sys!(SYS_recvfrom, p[1], &mut b, 4, MSG_TRUNC, 0, 0), 4);
    eq(sys!(SYS_recvfrom, p[1], 0, 3, MSG_TRUNC, 0, 0), 3);
    eq(sys!(SYS_recvfrom, p[1], 8, 20, MSG_TRUNC | MSG_PEEK, 0, 0), 3);
    eq(b, *b"abcd");
    err(sys!(SYS_recvfrom, p[1], 8, 20, 0, 0, 0), EFAULT);
    eq(receive(p[1], 20, 0), Ok(b"789".into()));
    shut(p);
}

/// MSG_PROBE of UDP: nothing is sent.
fn probes() {
    let u = socket(AF_INET, SOCK_DGRAM);
    err(sys!(SYS_sendto, u, b"x", 1, 0x10, 0, 0), EDESTADDRREQ);
    // It has a port for it all the same.
    err(sys!(SYS_bind, u, &lo(AF_INET, [0, 0])[..], 16), EINVAL);
    shut([u]);
    let u = socket(AF_INET, SOCK_DGRAM);
    err(sys!(SYS_sendto, u, b"x", 1, 0, 0, 0), EDESTADDRREQ);
    err(sys!(SYS_bind, u, &lo(AF_INET, [0, 0])[..], 16), EINVAL);
    shut([u]);
    let u = socket(AF_INET, SOCK_DGRAM);
    ok(sys!(SYS_bind, u, &lo(AF_INET, [0, 0])[..], 16));
    let mut a = [0u8; 16];
    ok(sys!(SYS_getsockname, u, &mut a[..], &mut 16u32));
    eq(sys!(SYS_sendto, u, b"x", 1, 0x10, &a[..], 16), 1);
    eq(receive(u, 1, 0), Err(EAGAIN));
    shut([u]);
}

/// An error that another thread's send brings ends a receive.
fn error_wakes() {
    let fd = socket(AF_INET, SOCK_DGRAM);
    let to = [&(AF_INET as u16).to_ne_bytes()[..], &PORT, &[127, 0, 0, 1], &[0; 8]].concat();
    ok(sys!(SYS_connect, fd, &to[..], 16));
    let waiting = blocked(move || sys!(SYS_recvfrom, fd, &mut [0u8; 8], 8, 0, 0, 0));
    send(fd, b"x");
    eq(waiting.join().expect("no panic"), -i64::from(ECONNREFUSED));
    shut([fd]);
}

/// shutdown(SHUT_WR) of a listener changes nothing for those who wait there.
fn listener_writes_no_more() {
    for family in [AF_INET, AF_UNIX] {
        let l = socket(family, SOCK_STREAM);
        let mut name = if family == AF_INET { vec![2u8, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0] } else { vec![1u8, 0] };
        ok(sys!(SYS_bind, l, &name[..], name.len()));
        ok(sys!(SYS_listen, l, 4));
        let mut len = 128u32;
        name.resize(128, 0);
        ok(sys!(SYS_getsockname, l, &mut name[..], &mut len));
        let c = socket(family, SOCK_STREAM);
        ok(sys!(SYS_connect, c, &name[..], len));
        eq(sys!(SYS_shutdown, l, SHUT_WR), 0);
        let a = ok(sys!(SYS_accept, l, 0, 0)) as i32;
        send(c, b"hello");
        let mut b = [0u8; 8];
        eq(sys!(SYS_recvfrom, a, &mut b, 8, 0, 0, 0), 5);
        let d = socket(family, SOCK_STREAM);
        ok(sys!(SYS_connect, d, &name[..], len));
        shut([l, c, a, d]);
    }
}
