//! SO_SNDBUF and SO_RCVBUF of socket(7): what fits between two ends.

use guest_tests::*;
use libc::*;

cases![
    tcp_small_buffers, tcp_room_comes_back, whole_reads, ends_of_whole_reads, tcp_closed_peer, unix_stream, unix_messages, unix_longest_message,
    udp_drops, least_values
];

fn set(fd: i32, name: i32, value: i32) {
    ok(sys!(SYS_setsockopt, fd, SOL_SOCKET, name, &value, 4));
}

fn get(fd: i32, name: i32) -> i32 {
    let (mut v, mut n) = (0i32, 4u32);
    ok(sys!(SYS_getsockopt, fd, SOL_SOCKET, name, &mut v, &mut n));
    v
}

fn loopback(port: u16) -> [u8; 16] {
    let mut a = [0u8; 16];
    a[0] = AF_INET as u8;
    a[2..4].copy_from_slice(&port.to_be_bytes());
    a[4..8].copy_from_slice(&[127, 0, 0, 1]);
    a
}

fn bound(kind: i32) -> (i32, u16) {
    let fd = ok(sys!(SYS_socket, AF_INET, kind, 0)) as i32;
    ok(sys!(SYS_bind, fd, &loopback(0), 16));
    let (mut name, mut len) = ([0u8; 16], 16u32);
    ok(sys!(SYS_getsockname, fd, &mut name, &mut len));
    (fd, u16::from_be_bytes([name[2], name[3]]))
}

/// Sender with SO_SNDBUF, receiver with SO_RCVBUF.
fn tcp(send: i32, receive: i32) -> [i32; 2] {
    let (l, port) = bound(SOCK_STREAM);
    set(l, SO_RCVBUF, receive);
    ok(sys!(SYS_listen, l, 1));
    let c = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    set(c, SO_SNDBUF, send);
    ok(sys!(SYS_connect, c, &loopback(port), 16));
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    ok(sys!(SYS_close, l));
    [c, s]
}

fn unix(kind: i32, send: i32) -> [i32; 2] {
    let mut p = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, kind, 0, &mut p));
    set(p[0], SO_SNDBUF, send);
    p
}

/// Sends pieces until no more goes in; bytes.
fn fill(fd: i32, piece: usize) -> usize {
    let data = vec![b'x'; piece];
    let mut sum = 0;
    loop {
        let r = sys!(SYS_sendto, fd, &data[..], piece, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
        if r < 0 {
            err(r, EAGAIN);
            return sum;
        }
        sum += r as usize;
    }
}

fn drain(fd: i32) -> usize {
    let mut buf = vec![0u8; 65_536];
    let mut sum = 0;
    loop {
        let r = sys!(SYS_recvfrom, fd, &mut buf[..], buf.len(), MSG_DONTWAIT, 0, 0);
        if r <= 0 {
            return sum;
        }
        sum += r as usize;
    }
}

fn writable(fd: i32) -> bool {
    let mut p = pollfd { fd, events: POLLOUT, revents: 0 };
    ok(sys!(SYS_poll, &mut p, 1, 0)) == 1
}

fn between(got: usize, low: usize, high: usize) {
    check((low..=high).contains(&got), &format!("{got} between {low} and {high}"));
}

fn tcp_small_buffers() {
    for (size, low, high) in [(4096, 4096, 16_384), (20_000, 20_000, 80_000), (100_000, 100_000, 400_000)] {
        let [c, s] = tcp(size, size);
        eq((get(c, SO_SNDBUF), get(s, SO_RCVBUF)), (2 * size, 2 * size));
        between(fill(c, 262_144), low, high);
        check(!writable(c), "full");
        shut([c, s]);
    }
}

fn tcp_room_comes_back() {
    let [c, s] = tcp(4096, 4096);
    let mut sent = 0;
    let mut got = 0;
    let end = now_ms() + 10_000;
    while sent < 100_000 {
        check(now_ms() < end, "100 kB within 10 s");
        sent += fill(c, 65_536);
        got += drain(s);
    }
    while got < sent {
        check(now_ms() < end, "all arrives");
        got += drain(s);
    }
    while !writable(c) {
        check(now_ms() < end, "room again");
    }
    shut([c, s]);
}

/// MSG_WAITALL of more than both buffers hold, and a blocking send of as much.
fn whole_reads() {
    for len in [300_000, 3 << 20] {
        for [c, s] in [tcp(4096, 4096), unix(SOCK_STREAM, 4096)] {
            let writer = std::thread::spawn(move || {
                let data: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
                eq(sys!(SYS_sendto, c, &data[..], data.len(), 0, 0, 0), len as i64);
            });
            let mut buf = vec![0u8; len];
            let (first, rest) = buf.split_at_mut(1000);
            let ranges = [first.as_ptr() as u64, first.len() as u64, rest.as_ptr() as u64, rest.len() as u64];
            let header = [0u64, 0, ranges.as_ptr() as u64, 2, 0, 0, 0];
            eq(sys!(SYS_recvmsg, s, &header, MSG_WAITALL), len as i64);
            check(buf.iter().enumerate().all(|(i, byte)| *byte == (i % 251) as u8), "what was sent");
            writer.join().unwrap();
            shut([c, s]);
        }
    }
}

fn whole(s: i32, len: usize) -> i64 {
    sys!(SYS_recvfrom, s, &mut vec![0u8; len][..], len, MSG_WAITALL, 0, 0)
}

/// What ends MSG_WAITALL before: the end, the time, a signal, rights. What came is what it gives.
fn ends_of_whole_reads() {
    for many in [false, true] {
        let pair = || if many { tcp(4096, 4096) } else { unix(SOCK_STREAM, 4096) };
        // Less and more than the buffers hold.
        for len in [3usize, 100_000] {
            let sends = |c: i32, then: fn(i32)| {
                std::thread::spawn(move || {
                    eq(sys!(SYS_sendto, c, &vec![b'x'; len][..], len, 0, 0, 0), len as i64);
                    then(c);
                })
            };
            let [c, s] = pair();
            let writer = sends(c, |c| eq(sys!(SYS_shutdown, c, SHUT_WR), 0));
            eq(whole(s, len + 5), len as i64);
            eq(whole(s, 5), 0);
            writer.join().unwrap();
            shut([c, s]);

            let [c, s] = pair();
            ok(sys!(SYS_setsockopt, s, SOL_SOCKET, SO_RCVTIMEO, &[2i64, 0], 16));
            let writer = sends(c, |_| ());
            eq(whole(s, len + 5), len as i64);
            writer.join().unwrap();
            ok(sys!(SYS_setsockopt, s, SOL_SOCKET, SO_RCVTIMEO, &[0i64, 20_000], 16));
            err(whole(s, 5), EAGAIN);
            shut([c, s]);

            for flags in [0, SA_RESTART] {
                let [c, s] = pair();
                let _on = sig::on(SIGUSR1, flags);
                let tid = sys!(SYS_gettid);
                let writer = sends(c, |_| ());
                let teller = std::thread::spawn(move || {
                    writer.join().unwrap();
                    until_unread(s, 0);
                    until_asleep(tid);
                    sys!(SYS_tgkill, sys!(SYS_getpid), tid, SIGUSR1);
                });
                eq(whole(s, len + 5), len as i64);
                teller.join().unwrap();
                shut([c, s]);
            }
        }
    }
    // Behind rights, whoever reads.
    for flags in [0, MSG_WAITALL] {
        let [c, s] = unix(SOCK_STREAM, 4096);
        eq(sys!(SYS_sendto, c, b"abc", 3, 0, 0, 0), 3);
        eq(crate::sockets::send_fd(c, c), 1);
        eq(crate::sockets::send_fd(c, c), 1);
        eq(sys!(SYS_sendto, c, b"defg", 4, 0, 0, 0), 4);
        for want in [4, 1, 4] {
            let len = if want < 4 { 9 } else { 4 };
            eq(sys!(SYS_recvfrom, s, &mut [0u8; 9], len, flags, 0, 0), want);
        }
        shut([c, s]);
    }
}

/// The peer has read all and closes: what a sender still sends goes by its buffer, and then it hears of it.
fn tcp_closed_peer() {
    let [c, s] = tcp(4096, 4096);
    let end = now_ms() + 10_000;
    let sent = fill(c, 262_144);
    let mut got = 0;
    while got < sent {
        check(now_ms() < end, "all arrives");
        got += drain(s);
    }
    ok(sys!(SYS_close, s));
    let data = vec![b'x'; 262_144];
    let mut after = 0;
    let error = loop {
        check(now_ms() < end, "an error comes");
        let r = sys!(SYS_sendto, c, &data[..], data.len(), MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
        match r {
            r if r >= 0 => after += r as usize,
            r if r == -i64::from(EAGAIN) => sleep_ms(1),
            r => break r,
        }
    };
    err(error, EPIPE);
    between(after, 1, 100_000);
    ok(sys!(SYS_close, c));
}

fn unix_stream() {
    for (size, low, high) in [(4096, 4096, 16_384), (20_000, 20_000, 80_000)] {
        let [a, b] = unix(SOCK_STREAM, size);
        between(fill(a, 262_144), low, high);
        check(!writable(a), "full");
        drain(b);
        check(writable(a), "room again");
        // The receiver's own buffer says nothing.
        set(b, SO_RCVBUF, 2304);
        between(fill(a, 262_144), low, high);
        shut([a, b]);
    }
}

fn unix_messages() {
    for kind in [SOCK_SEQPACKET, SOCK_DGRAM] {
        for (size, count) in [(4096, 4), (20_000, 18), (100_000, 87)] {
            let [a, b] = unix(kind, size);
            eq(fill(a, 1000), count * 1000);
            eq(sys!(SYS_recvfrom, b, &mut [0u8; 1000], 1000, MSG_DONTWAIT, 0, 0), 1000);
            shut([a, b]);
        }
    }
}

fn unix_longest_message() {
    for kind in [SOCK_SEQPACKET, SOCK_DGRAM] {
        let [a, b] = unix(kind, 20_000);
        let data = vec![b'x'; 40_000];
        err(sys!(SYS_sendto, a, &data[..], 39_969, MSG_DONTWAIT, 0, 0), EMSGSIZE);
        eq(sys!(SYS_sendto, a, &data[..], 39_968, MSG_DONTWAIT, 0, 0), 39_968);
        shut([a, b]);
    }
}

fn udp_drops() {
    for (size, count) in [(4096, 3), (20_000, 17)] {
        let (r, port) = bound(SOCK_DGRAM);
        set(r, SO_RCVBUF, size);
        let s = ok(sys!(SYS_socket, AF_INET, SOCK_DGRAM, 0)) as i32;
        for _ in 0..50 {
            eq(sys!(SYS_sendto, s, &[b'u'; 1000], 1000, 0, &loopback(port), 16), 1000);
        }
        eq(drain(r), count * 1000);
        shut([r, s]);
    }
}

fn least_values() {
    let fd = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    set(fd, SO_SNDBUF, 1);
    set(fd, SO_RCVBUF, 1);
    eq((get(fd, SO_SNDBUF), get(fd, SO_RCVBUF)), (4608, 2304));
    shut([fd]);
}
