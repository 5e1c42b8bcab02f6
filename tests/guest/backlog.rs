//! Connections that wait for a place at a listener (listen(2), tcp(7)), and the end of a connection by connect(2) with AF_UNSPEC.

use guest_tests::*;
use libc::*;
use std::time::{Duration, Instant};

cases![
    places, let_in, refused_while_waiting, given_up, waits_for_a_place, timeouts, interrupted, sends_and_receives, shut_down, longer_backlog, seen_as,
    another_listener, unspec_of_tcp, unspec_of_a_listener, unspec_of_others
];

fn tcp(flags: i32) -> i32 {
    ok(sys!(SYS_socket, AF_INET, SOCK_STREAM | flags, 0)) as i32
}

fn name(fd: i32) -> [u8; 16] {
    let mut a = [0u8; 16];
    ok(sys!(SYS_getsockname, fd, &mut a, &mut 16u32));
    a
}

fn listener(backlog: i32) -> (i32, [u8; 16]) {
    let l = tcp(0);
    ok(sys!(SYS_bind, l, &lo(), 16));
    ok(sys!(SYS_listen, l, backlog));
    (l, name(l))
}

fn lo() -> [u8; 16] {
    let mut a = [0u8; 16];
    a[0] = AF_INET as u8;
    a[4..8].copy_from_slice(&[127, 0, 0, 1]);
    a
}

fn connect(fd: i32, a: &[u8; 16]) -> i64 {
    sys!(SYS_connect, fd, a, 16)
}

fn accept(l: i32) -> i32 {
    ok(sys!(SYS_accept, l, 0, 0)) as i32
}

fn events(fd: i32, wait: i32) -> i16 {
    let mut p = pollfd { fd, events: POLLIN | POLLOUT | POLLRDHUP, revents: 0 };
    sys!(SYS_poll, &mut p, 1, wait);
    p.revents
}

fn error(fd: i32) -> i32 {
    let mut v = -1i32;
    ok(sys!(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &mut v, &mut 4u32));
    v
}

/// A listener with one connection that nobody accepted, which is all that it has place for.
fn full() -> (i32, [u8; 16], i32) {
    let (l, a) = listener(0);
    let c = tcp(0);
    ok(connect(c, &a));
    (l, a, c)
}

fn waiting(a: &[u8; 16]) -> i32 {
    let c = tcp(SOCK_NONBLOCK);
    err(connect(c, a), EINPROGRESS);
    c
}

/// The fields of each line of /proc/net/tcp.
fn rows() -> Vec<Vec<String>> {
    let text = std::fs::read_to_string("/proc/net/tcp").expect("/proc/net/tcp");
    text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

/// How they end an address with this port.
fn port(a: &[u8; 16]) -> String {
    format!(":{:04X}", u16::from_be_bytes([a[2], a[3]]))
}

fn wait_for(fd: i32, most: Option<i64>) {
    let most = most.unwrap_or(0);
    ok(sys!(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &[0i64, most * 1000], 16));
    ok(sys!(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &[0i64, most * 1000], 16));
}

fn places() {
    for backlog in [0, 1, 3] {
        let (l, a) = listener(backlog);
        let all: Vec<i32> = (0..6)
            .map(|_| {
                let c = waiting(&a);
                // A place is taken when the other end has heard so.
                events(c, 20);
                c
            })
            .collect();
        let placed: Vec<bool> = all.iter().map(|c| events(*c, 0) == POLLOUT).collect();
        eq(placed, (0..6).map(|i| i <= backlog).collect::<Vec<_>>());
        shut(all);
        shut([l]);
    }
}

fn let_in() {
    let (l, a, c) = full();
    let d = waiting(&a);
    err(connect(d, &a), EALREADY);
    eq((events(d, 0), error(d)), (0, 0));
    err(sys!(SYS_getpeername, d, &mut [0u8; 16], &mut 16u32), ENOTCONN);
    check(name(d)[2..4] != [0, 0], "it has a port");
    err(sys!(SYS_listen, d, 1), EINVAL);
    let first = accept(l);
    // Natively its segment is sent again once in a second.
    eq(events(d, 5000), POLLOUT);
    let second = accept(l);
    let mut b = [0u8; 2];
    eq(sys!(SYS_sendto, d, b"hi", 2, 0, 0, 0), 2);
    eq(sys!(SYS_recvfrom, second, &mut b, 2, 0, 0, 0), 2);
    eq(connect(d, &a), 0);
    err(connect(d, &a), EISCONN);
    shut([l, c, d, first, second]);
}

fn refused_while_waiting() {
    let (l, a, c) = full();
    let d = waiting(&a);
    shut([l]);
    eq(events(d, 5000), POLLOUT | POLLERR | POLLHUP | POLLIN | POLLRDHUP);
    eq(error(d), ECONNREFUSED);
    // Who asked for it already is not told again.
    err(connect(d, &a), ECONNABORTED);
    eq(events(d, 0), POLLOUT | POLLHUP);
    err(connect(d, &a), EINPROGRESS);
    eq(events(d, 5000), POLLOUT | POLLERR | POLLHUP | POLLIN | POLLRDHUP);
    err(sys!(SYS_sendto, d, b"x", 1, MSG_NOSIGNAL, 0, 0), ECONNREFUSED);
    err(sys!(SYS_sendto, d, b"x", 1, MSG_NOSIGNAL, 0, 0), EPIPE);
    eq(sys!(SYS_recvfrom, d, &mut [0u8; 1], 1, 0, 0, 0), 0);
    shut([c, d]);
}

fn given_up() {
    let (l, a, c) = full();
    let d = waiting(&a);
    shut([d]);
    let s = accept(l);
    sleep_ms(1200);
    eq(events(l, 0), 0);
    shut([l, c, s]);
}

fn waits_for_a_place() {
    let (l, a, c) = full();
    let d = tcp(0);
    let connecting = std::thread::spawn(move || connect(d, &a));
    until("it waits", || rows().iter().any(|row| row[2].ends_with(&port(&a)) && row[3] == "02"));
    let s = accept(l);
    eq(connecting.join().expect("no panic"), 0);
    shut([l, c, d, s]);
}

fn timeouts() {
    let (l, a, c) = full();
    let d = tcp(0);
    wait_for(d, Some(100));
    for errno in [EINPROGRESS, EALREADY] {
        let start = Instant::now();
        err(connect(d, &a), errno);
        check(start.elapsed() >= Duration::from_millis(90), "it waited");
    }
    shut([l, c, d]);
}

extern "C" fn nothing(_: c_int) {}

fn interrupted() {
    in_child(|| {
        let (_, a, _) = full();
        // SAFETY: any bytes are a struct sigaction.
        let mut action: sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = nothing as *const () as usize;
        // SAFETY: the handler only returns.
        unsafe { sigaction(SIGALRM, &action, std::ptr::null_mut()) };
        // Again and again: the first may be there before it waits.
        let often = timeval { tv_sec: 0, tv_usec: 50_000 };
        let timer = itimerval { it_interval: often, it_value: often };
        ok(sys!(SYS_setitimer, ITIMER_REAL, &timer, 0));
        let d = tcp(0);
        err(connect(d, &a), EINTR);
        ok(sys!(SYS_setitimer, ITIMER_REAL, &[0u64; 4], 0));
        // The attempt goes on.
        ok(sys!(SYS_fcntl, d, F_SETFL, O_NONBLOCK));
        err(connect(d, &a), EALREADY);
    });
}

fn sends_and_receives() {
    let (l, a, c) = full();
    let d = waiting(&a);
    let mut b = [0u8; 1];
    err(sys!(SYS_sendto, d, b"x", 1, 0, 0, 0), EAGAIN);
    err(sys!(SYS_recvfrom, d, &mut b, 1, 0, 0, 0), EAGAIN);
    ok(sys!(SYS_fcntl, d, F_SETFL, 0));
    wait_for(d, Some(50));
    err(sys!(SYS_sendto, d, b"x", 1, 0, 0, 0), EAGAIN);
    err(sys!(SYS_recvfrom, d, &mut b, 1, 0, 0, 0), EAGAIN);
    wait_for(d, None);
    let sending = blocked(move || sys!(SYS_sendto, d, b"x", 1, 0, 0, 0));
    let first = accept(l);
    eq(sending.join().expect("no panic"), 1);
    let second = accept(l);
    eq(sys!(SYS_recvfrom, second, &mut b, 1, 0, 0, 0), 1);
    shut([l, c, d, first, second]);
}

fn shut_down() {
    for how in [SHUT_WR, SHUT_RDWR] {
        let (l, a, c) = full();
        let d = waiting(&a);
        eq(sys!(SYS_shutdown, d, how), 0);
        eq(events(d, 0), POLLOUT | POLLERR | POLLHUP);
        eq(error(d), ECONNRESET);
        let s = accept(l);
        eq(events(l, 50), 0);
        shut([l, c, d, s]);
    }
}

fn longer_backlog() {
    let (l, a, c) = full();
    let d = waiting(&a);
    ok(sys!(SYS_listen, l, 5));
    eq(events(d, 5000), POLLOUT);
    shut([l, c, d]);
}

fn seen_as() {
    let (l, a, c) = full();
    let d = waiting(&a);
    let mut info = [0u8; 8];
    ok(sys!(SYS_getsockopt, d, IPPROTO_TCP, TCP_INFO, &mut info, &mut 8u32));
    eq(info[0], 2);
    let row = rows().into_iter().find(|row| row[1].ends_with(&port(&name(d)))).expect("a row");
    check(row[2].ends_with(&port(&a)), &row[2]);
    eq(&*row[3], "02");
    shut([l, c, d]);
}

fn unspec(fd: i32) -> i64 {
    sys!(SYS_connect, fd, &[0u8; 16], 16)
}

fn another_listener() {
    let (l, a, c) = full();
    let (l2, a2, c2) = full();
    let d = waiting(&a);
    eq(unspec(d), 0);
    err(connect(d, &a2), EINPROGRESS);
    let s = accept(l);
    eq((events(l, 50), events(d, 0)), (0, 0));
    let s2 = accept(l2);
    eq(events(d, 5000), POLLOUT);
    let mut to = [0u8; 16];
    ok(sys!(SYS_getpeername, d, &mut to, &mut 16u32));
    eq(to, a2);
    let from = accept(l2);
    eq(sys!(SYS_sendto, d, b"x", 1, 0, 0, 0), 1);
    eq(sys!(SYS_recvfrom, from, &mut [0u8; 1], 1, 0, 0, 0), 1);
    shut([l, c, l2, c2, d, s, s2, from]);
}

fn unspec_of_tcp() {
    let (l, a) = listener(5);
    let c = tcp(0);
    ok(connect(c, &a));
    let s = accept(l);
    eq(sys!(SYS_sendto, s, b"abc", 3, 0, 0, 0), 3);
    eq(unspec(c), 0);
    err(sys!(SYS_getpeername, c, &mut [0u8; 16], &mut 16u32), ENOTCONN);
    eq(&name(c)[4..8], [0; 4]);
    eq(events(c, 0), POLLOUT | POLLERR | POLLHUP);
    err(sys!(SYS_sendto, c, b"x", 1, MSG_NOSIGNAL, 0, 0), ECONNRESET);
    // The other end hears of a reset.
    let mut b = [0u8; 4];
    err(sys!(SYS_recvfrom, s, &mut b, 4, 0, 0, 0), ECONNRESET);
    // It can be connected again, and what came before is gone.
    ok(connect(c, &a));
    err(sys!(SYS_recvfrom, c, &mut b, 4, MSG_DONTWAIT, 0, 0), EAGAIN);
    eq(events(c, 0), POLLOUT);
    // What nobody has asked for is forgotten then, too.
    eq(unspec(c), 0);
    ok(connect(c, &a));
    err(sys!(SYS_recvfrom, c, &mut b, 4, MSG_DONTWAIT, 0, 0), EAGAIN);
    eq((error(c), events(c, 0)), (0, POLLOUT));
    shut([s, c]);
    // A port that was chosen stays.
    let c = tcp(0);
    ok(sys!(SYS_setsockopt, c, SOL_SOCKET, SO_REUSEADDR, &1i32, 4));
    ok(sys!(SYS_bind, c, &lo(), 16));
    let own = name(c);
    ok(connect(c, &a));
    eq((unspec(c), name(c)), (0, own));
    let f = tcp(0);
    eq((unspec(f), events(f, 0)), (0, POLLOUT | POLLHUP));
    shut([l, c, f]);
}

fn unspec_of_a_listener() {
    let (l, a) = listener(5);
    let c = tcp(0);
    ok(connect(c, &a));
    eq(unspec(l), 0);
    let mut listens = -1i32;
    ok(sys!(SYS_getsockopt, l, SOL_SOCKET, SO_ACCEPTCONN, &mut listens, &mut 4u32));
    eq((listens, name(l)), (0, a));
    err(sys!(SYS_recvfrom, c, &mut [0u8; 4], 4, 0, 0, 0), ECONNRESET);
    let d = tcp(0);
    err(connect(d, &a), ECONNREFUSED);
    shut([l, c, d]);
}

fn unspec_of_others() {
    for (kind, said) in [(SOCK_STREAM, EINVAL), (SOCK_SEQPACKET, EINVAL), (SOCK_DGRAM, 0)] {
        let p = crate::sockets::pair(kind);
        eq(unspec(p[0]), -i64::from(said));
        let sent = sys!(SYS_sendto, p[0], b"x", 1, 0, 0, 0);
        eq(sent, if said == 0 { -i64::from(ENOTCONN) } else { 1 });
        shut(p);
    }
    let n = ok(sys!(SYS_socket, AF_NETLINK, SOCK_RAW, 0)) as i32;
    let mut peer = [7u8; 12];
    ok(sys!(SYS_getpeername, n, &mut peer, &mut 12u32));
    eq((peer[0], &peer[4..]), (AF_NETLINK as u8, &[0u8; 8][..]));
    eq(unspec(n), 0);
    shut([n]);
}
