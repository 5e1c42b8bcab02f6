//! Each option of getsockopt(2) and setsockopt(2) that is a number: its first value, what it takes, what it answers short
//! lengths with; and those that are more than a number. socket(7), tcp(7), ip(7), ipv6(7), udp(7), unix(7), netlink(7).

use guest_tests::space::become_root;
use guest_tests::*;
use libc::*;

cases![
    general, general_unix, general_netlink, tcp_numbers, ip_numbers, ip_numbers_of_tcp, ipv6_numbers, udp_numbers, netlink_numbers, levels, rights,
    buffers, low_water, linger_and_times, names_and_lists, cookies, meminfo, deferred_seconds, udp_cork, udp_more, mtu, original_address, time_new,
    netlink_groups, bound_address, rights_in_a_namespace
];

/// What a set is answered with, and what is read then; None: the same as before.
type Step = (i32, i32, Option<i32>);

/// An option, its value before it is set, and what happens to 1, -1, 70000 and 0.
type Row = (i32, Option<i32>, [Step; 4]);

const fn switch(name: i32) -> Row {
    (name, Some(0), [(1, 0, Some(1)), (-1, 0, Some(1)), (70_000, 0, Some(1)), (0, 0, Some(0))])
}

const fn flag(name: i32) -> Row {
    (name, Some(0), [(1, 0, Some(1)), (-1, EINVAL, None), (70_000, EINVAL, None), (0, 0, Some(0))])
}

const fn fixed(name: i32, value: i32) -> Row {
    (name, Some(value), [(1, ENOPROTOOPT, None), (-1, ENOPROTOOPT, None), (70_000, ENOPROTOOPT, None), (0, ENOPROTOOPT, None)])
}

fn socket(family: i32, kind: i32) -> i32 {
    ok(sys!(SYS_socket, family, kind, 0)) as i32
}

fn get(fd: i32, level: i32, name: i32) -> Result<i32, i64> {
    let (mut v, mut n) = (-7i32, 4u32);
    let r = sys!(SYS_getsockopt, fd, level, name, &mut v, &mut n);
    if r == 0 { Ok(v) } else { Err(r) }
}

fn set(fd: i32, level: i32, name: i32, value: i32) -> i64 {
    sys!(SYS_setsockopt, fd, level, name, &value, 4)
}

/// `byte`, `none`: errnos of a set with one byte (a 1) and with nothing.
fn walk(make: impl Fn() -> i32, level: i32, rows: &[Row], byte: i32, none: i32) {
    for (name, first, steps) in rows {
        let fd = make();
        let told = |what: &str| format!("option {level}/{name}: {what}");
        let mut now = *first;
        if let Some(first) = first {
            check(get(fd, level, *name) == Ok(*first), &told(&format!("first {:?}", get(fd, level, *name))));
            // Cut to the room that there is.
            let (mut b, mut n) = ([0xeeu8; 8], 1u32);
            eq(sys!(SYS_getsockopt, fd, level, *name, &mut b, &mut n), if level == SOL_NETLINK { -i64::from(EINVAL) } else { 0 });
            if level != SOL_NETLINK {
                check((n, b[0], b[1]) == (1, first.to_ne_bytes()[0], 0xee), &told("one byte of room"));
                let mut n = 8u32;
                eq(sys!(SYS_getsockopt, fd, level, *name, &mut b, &mut n), 0);
                check(n == 4, &told("its length"));
            }
        }
        for (value, errno, then) in steps {
            let r = set(fd, level, *name, *value);
            check(r == -i64::from(*errno), &told(&format!("{value} is answered with {r}")));
            now = then.or(now);
            check(get(fd, level, *name).ok() == now, &told(&format!("after {value} {:?}, expected {now:?}", get(fd, level, *name))));
        }
        let fd = { shut([fd]); make() };
        let r = sys!(SYS_setsockopt, fd, level, *name, &[1u8], 1);
        // What takes nothing may say so first.
        check(r == -i64::from(byte) || level == IPPROTO_IPV6 && [IPV6_DONTFRAG, 77].contains(name) || r == -i64::from(ENOPROTOOPT) || steps[0].1 != 0, &told(&format!("one byte: {r}")));
        let r = sys!(SYS_setsockopt, fd, level, *name, 0, 0);
        check(r == -i64::from(none) || r == 0 || r == -i64::from(EINVAL) || steps[0].1 != 0, &told(&format!("no byte: {r}")));
        let r = sys!(SYS_setsockopt, fd, level, *name, &1i32, -1);
        check(r == -i64::from(EINVAL), &told("a length below 0"));
        let r = sys!(SYS_setsockopt, fd, level, *name, 8, 4);
        check(r == -i64::from(EFAULT) || steps[0].1 != 0, &told("no memory"));
        shut([fd]);
    }
}

const COMMON: [Row; 16] = [
    switch(SO_REUSEADDR),
    switch(SO_DONTROUTE),
    switch(SO_BROADCAST),
    switch(SO_KEEPALIVE),
    switch(SO_OOBINLINE),
    switch(SO_NO_CHECK),
    switch(SO_TIMESTAMP),
    switch(SO_TIMESTAMPNS),
    switch(63),
    switch(64),
    switch(SO_RXQ_OVFL),
    switch(43),
    fixed(SO_ACCEPTCONN, 0),
    fixed(SO_ERROR, 0),
    fixed(19, 1),
    fixed(48, 64),
];

fn general() {
    for (family, kind, protocol) in [(AF_INET, SOCK_STREAM, IPPROTO_TCP), (AF_INET, SOCK_DGRAM, IPPROTO_UDP)] {
        let make = || socket(family, kind);
        walk(make, SOL_SOCKET, &COMMON, EINVAL, EINVAL);
        let more = [
            switch(SO_REUSEPORT),
            fixed(SO_TYPE, kind),
            fixed(SO_DOMAIN, family),
            fixed(SO_PROTOCOL, protocol),
            (SO_INCOMING_CPU, Some(-1), [(1, 0, Some(1)), (-1, 0, Some(-1)), (70_000, 0, Some(70_000)), (0, 0, Some(0))]),
            (72, Some(0), [(1, 0, Some(1)), (-1, EINVAL, None), (70_000, EINVAL, None), (0, 0, Some(0))]),
        ];
        walk(make, SOL_SOCKET, &more, EINVAL, EINVAL);
        for name in [SO_PASSCRED, SO_PASSSEC, 83] {
            let fd = make();
            eq(get(fd, SOL_SOCKET, name), Err(-i64::from(EOPNOTSUPP)));
            err(set(fd, SOL_SOCKET, name, 1), EOPNOTSUPP);
            shut([fd]);
        }
    }
}

fn general_unix() {
    for kind in [SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET] {
        let make = || socket(AF_UNIX, kind);
        walk(make, SOL_SOCKET, &COMMON, EINVAL, EINVAL);
        walk(make, SOL_SOCKET, &[switch(SO_PASSCRED), switch(SO_PASSSEC), fixed(SO_TYPE, kind), fixed(SO_DOMAIN, AF_UNIX)], EINVAL, EINVAL);
        let fd = make();
        err(set(fd, SOL_SOCKET, SO_REUSEPORT, 1), EOPNOTSUPP);
        eq(set(fd, SOL_SOCKET, SO_REUSEPORT, 0), 0);
        shut([fd]);
    }
}

fn general_netlink() {
    let make = || socket(AF_NETLINK, SOCK_RAW);
    walk(make, SOL_SOCKET, &COMMON, EINVAL, EINVAL);
    walk(make, SOL_SOCKET, &[switch(SO_PASSCRED)], EINVAL, EINVAL);
}

fn tcp_numbers() {
    let positive = |name, first, most| {
        let big = if most >= 70_000 { (70_000, 0, Some(70_000)) } else { (70_000, EINVAL, None) };
        (name, Some(first), [(1, 0, Some(1)), (-1, EINVAL, None), big, (0, EINVAL, None)])
    };
    let from_zero = |name, first| {
        (name, Some(first), [(1, 0, Some(1)), (-1, EINVAL, None), (70_000, 0, Some(70_000)), (0, 0, Some(0))])
    };
    let rows = [
        switch(TCP_NODELAY),
        switch(TCP_CORK),
        positive(TCP_KEEPIDLE, 7200, 32_767),
        positive(TCP_KEEPINTVL, 75, 32_767),
        positive(TCP_KEEPCNT, 9, 127),
        positive(TCP_SYNCNT, 6, 127),
        (TCP_QUICKACK, Some(1), [(1, 0, Some(1)), (-1, 0, Some(1)), (70_000, 0, Some(1)), (0, 0, Some(0))]),
        (TCP_LINGER2, Some(60), [(1, 0, Some(1)), (-1, 0, Some(-1)), (70_000, 0, Some(120)), (0, 0, Some(60))]),
        (TCP_DEFER_ACCEPT, Some(0), [(1, 0, Some(1)), (-1, 0, Some(0)), (70_000, 0, Some(29_887)), (0, 0, Some(0))]),
        (TCP_MAXSEG, Some(536), [(1, EINVAL, None), (-1, EINVAL, None), (70_000, EINVAL, None), (0, 0, None)]),
        from_zero(TCP_USER_TIMEOUT, 0),
        (TCP_NOTSENT_LOWAT, Some(0), [(1, 0, Some(1)), (-1, 0, Some(-1)), (70_000, 0, Some(70_000)), (0, 0, Some(0))]),
        flag(16),
        (17, Some(0), [(1, 0, Some(0)), (-1, EINVAL, None), (70_000, EINVAL, None), (0, 0, Some(0))]),
        flag(34),
    ];
    for family in [AF_INET, AF_INET6] {
        walk(|| socket(family, SOCK_STREAM), IPPROTO_TCP, &rows, EINVAL, EINVAL);
    }
}

fn ip_rows(stream: bool) -> Vec<Row> {
    let mut rows = vec![
        (IP_TTL, Some(64), [(1, 0, Some(1)), (-1, 0, Some(64)), (70_000, EINVAL, None), (0, EINVAL, None)]),
        (IP_MTU_DISCOVER, Some(1), [(1, 0, Some(1)), (-1, EINVAL, None), (70_000, EINVAL, None), (0, 0, Some(0))]),
        (IP_MULTICAST_LOOP, Some(1), [(1, 0, Some(1)), (-1, 0, Some(1)), (70_000, 0, Some(1)), (0, 0, Some(0))]),
        (49, Some(1), [(1, 0, Some(1)), (-1, EINVAL, None), (70_000, EINVAL, None), (0, 0, Some(0))]),
        (IP_MINTTL, Some(0), [(1, 0, Some(1)), (-1, EINVAL, None), (70_000, EINVAL, None), (0, 0, Some(0))]),
        flag(26),
    ];
    for name in [
        IP_RECVOPTS,
        IP_RETOPTS,
        IP_PKTINFO,
        IP_RECVERR,
        IP_RECVTTL,
        IP_RECVTOS,
        IP_FREEBIND,
        18,
        IP_RECVORIGDSTADDR,
        24,
    ] {
        rows.push(switch(name));
    }
    let tos = if stream { [0, 252] } else { [1, 255] };
    rows.push((IP_TOS, Some(0), [(1, 0, Some(tos[0])), (-1, 0, Some(tos[1])), (70_000, 0, Some(112)), (0, 0, Some(0))]));
    if stream {
        for (name, first) in [(IP_MULTICAST_TTL, 1), (25, 0)] {
            rows.push((name, Some(first), [(1, EINVAL, None), (-1, EINVAL, None), (70_000, EINVAL, None), (0, EINVAL, None)]));
        }
    } else {
        rows.push(switch(25));
        rows.push((IP_MULTICAST_TTL, Some(1), [(0, 0, Some(0)), (-1, 0, Some(1)), (70_000, EINVAL, None), (1, 0, Some(1))]));
    }
    rows
}

fn ip_numbers() {
    walk(|| socket(AF_INET, SOCK_DGRAM), IPPROTO_IP, &ip_rows(false), 0, 0);
}

fn ip_numbers_of_tcp() {
    walk(|| socket(AF_INET, SOCK_STREAM), IPPROTO_IP, &ip_rows(true), 0, 0);
}

fn ipv6_numbers() {
    for kind in [SOCK_STREAM, SOCK_DGRAM] {
        let mut rows = vec![
            (IPV6_UNICAST_HOPS, Some(64), [(1, 0, Some(1)), (-1, 0, Some(64)), (70_000, EINVAL, None), (0, 0, Some(0))]),
            (IPV6_MULTICAST_LOOP, Some(1), [(1, 0, Some(1)), (-1, EINVAL, None), (70_000, EINVAL, None), (0, 0, Some(0))]),
            (IPV6_MTU_DISCOVER, Some(1), [(1, 0, Some(1)), (-1, EINVAL, None), (70_000, EINVAL, None), (0, 0, Some(0))]),
            (IPV6_MULTICAST_ALL, Some(1), [(1, 0, Some(1)), (-1, 0, Some(1)), (70_000, 0, Some(1)), (0, 0, Some(0))]),
            (73, Some(0), [(1, 0, Some(1)), (-1, EINVAL, None), (70_000, EINVAL, None), (0, 0, Some(0))]),
            flag(31),
        ];
        for name in [
            IPV6_RECVERR,
            IPV6_RECVPKTINFO,
            IPV6_RECVHOPLIMIT,
            IPV6_RECVTCLASS,
            IPV6_RECVHOPOPTS,
            IPV6_RECVRTHDR,
            IPV6_RECVDSTOPTS,
            60,
            IPV6_DONTFRAG,
            77,
            78,
        ] {
            rows.push(switch(name));
        }
        let class = if kind == SOCK_STREAM { 0 } else { 1 };
        rows.push((IPV6_TCLASS, Some(0), [(1, 0, Some(class)), (-1, 0, Some(0)), (70_000, EINVAL, None), (0, 0, Some(0))]));
        if kind == SOCK_DGRAM {
            rows.push((IPV6_MULTICAST_HOPS, Some(1), [(0, 0, Some(0)), (-1, 0, Some(1)), (70_000, EINVAL, None), (1, 0, Some(1))]));
        } else {
            rows.push(fixed(IPV6_MULTICAST_HOPS, 1));
        }
        walk(|| socket(AF_INET6, kind), IPPROTO_IPV6, &rows, EINVAL, EINVAL);
        let fd = socket(AF_INET6, kind);
        eq(set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1), 0);
        eq(get(fd, IPPROTO_IPV6, IPV6_V6ONLY), Ok(1));
        shut([fd]);
    }
}

fn udp_numbers() {
    walk(|| socket(AF_INET, SOCK_DGRAM), IPPROTO_UDP, &[switch(UDP_CORK), switch(101), switch(102)], EINVAL, EINVAL);
}

fn netlink_numbers() {
    let rows: Vec<Row> = [3, 4, 5, 8, 10, 11, 12].into_iter().map(switch).collect();
    if sys!(SYS_geteuid) != 0 {
        walk(|| socket(AF_NETLINK, SOCK_RAW), SOL_NETLINK, &rows[..3], 0, 0);
        return;
    }
    walk(|| socket(AF_NETLINK, SOCK_RAW), SOL_NETLINK, &rows, 0, 0);
}

fn levels() {
    let answers = |fd: i32, level| (get(fd, level, 1), set(fd, level, 1, 1));
    let (no, none) = (-i64::from(EOPNOTSUPP), -i64::from(ENOPROTOOPT));
    let udp4 = socket(AF_INET, SOCK_DGRAM);
    eq(answers(udp4, IPPROTO_TCP), (Err(no), none));
    eq(answers(udp4, IPPROTO_IPV6), (Err(no), none));
    let tcp6 = socket(AF_INET6, SOCK_STREAM);
    eq(answers(tcp6, IPPROTO_UDP), (Err(none), none));
    let unix = socket(AF_UNIX, SOCK_STREAM);
    eq(answers(unix, IPPROTO_TCP), (Err(no), no));
    eq(answers(unix, IPPROTO_IP), (Err(no), no));
    let netlink = socket(AF_NETLINK, SOCK_RAW);
    eq(answers(netlink, IPPROTO_TCP), (Err(none), none));
    shut([udp4, tcp6, unix, netlink]);
}

fn rights() {
    in_child(|| {
        if sys!(SYS_geteuid) == 0 {
            ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        }
        let fd = socket(AF_INET, SOCK_DGRAM);
        err(set(fd, SOL_SOCKET, SO_DEBUG, 1), EACCES);
        eq(set(fd, SOL_SOCKET, SO_DEBUG, 0), 0);
        for bad in [-1, 7, 70_000] {
            err(set(fd, SOL_SOCKET, SO_PRIORITY, bad), EPERM);
        }
        eq((set(fd, SOL_SOCKET, SO_PRIORITY, 6), get(fd, SOL_SOCKET, SO_PRIORITY)), (0, Ok(6)));
        err(set(fd, SOL_SOCKET, SO_MARK, 1), EPERM);
        err(set(fd, SOL_SOCKET, SO_SNDBUFFORCE, 100_000), EPERM);
        err(set(fd, SOL_SOCKET, SO_RCVBUFFORCE, 100_000), EPERM);
    });
    if sys!(SYS_geteuid) == 0 {
        let fd = socket(AF_INET, SOCK_DGRAM);
        eq((set(fd, SOL_SOCKET, SO_PRIORITY, 70_000), get(fd, SOL_SOCKET, SO_PRIORITY)), (0, Ok(70_000)));
        eq((set(fd, SOL_SOCKET, SO_MARK, 5), get(fd, SOL_SOCKET, SO_MARK)), (0, Ok(5)));
        eq((set(fd, SOL_SOCKET, SO_SNDBUFFORCE, 9_000_000), get(fd, SOL_SOCKET, SO_SNDBUF)), (0, Ok(18_000_000)));
        eq((set(fd, SOL_SOCKET, SO_RCVBUFFORCE, 9_000_000), get(fd, SOL_SOCKET, SO_RCVBUF)), (0, Ok(18_000_000)));
        eq(get(fd, SOL_SOCKET, SO_SNDBUFFORCE), Err(-i64::from(ENOPROTOOPT)));
        shut([fd]);
    }
}

/// What costs everybody asks for rights over the machine, what concerns a network for rights over it.
fn rights_in_a_namespace() {
    in_child(|| {
        become_root();
        ok(sys!(SYS_unshare, CLONE_NEWNET));
        let fd = socket(AF_INET, SOCK_DGRAM);
        err(set(fd, SOL_SOCKET, SO_DEBUG, 1), EACCES);
        err(set(fd, SOL_SOCKET, SO_SNDBUFFORCE, 100_000), EPERM);
        err(set(fd, SOL_SOCKET, SO_RCVBUFFORCE, 100_000), EPERM);
        eq((set(fd, SOL_SOCKET, SO_PRIORITY, 70_000), get(fd, SOL_SOCKET, SO_PRIORITY)), (0, Ok(70_000)));
        eq((set(fd, SOL_SOCKET, SO_MARK, 5), get(fd, SOL_SOCKET, SO_MARK)), (0, Ok(5)));
        // CAP_NET_RAW alone.
        let header = [0x2008_0522u32, 0];
        ok(sys!(SYS_capset, &header, &[1u32 << 13, 1 << 13, 0, 0, 0, 0]));
        eq((set(fd, SOL_SOCKET, SO_PRIORITY, 8), get(fd, SOL_SOCKET, SO_PRIORITY)), (0, Ok(8)));
        eq((set(fd, SOL_SOCKET, SO_MARK, 6), get(fd, SOL_SOCKET, SO_MARK)), (0, Ok(6)));
        ok(sys!(SYS_capset, &header, &[0u32; 6]));
        err(set(fd, SOL_SOCKET, SO_PRIORITY, 8), EPERM);
        err(set(fd, SOL_SOCKET, SO_MARK, 6), EPERM);
    });
}

fn buffers() {
    for (family, kind) in [(AF_INET, SOCK_DGRAM), (AF_UNIX, SOCK_STREAM), (AF_UNIX, SOCK_DGRAM)] {
        let fd = socket(family, kind);
        eq((get(fd, SOL_SOCKET, SO_SNDBUF), get(fd, SOL_SOCKET, SO_RCVBUF)), (Ok(212_992), Ok(212_992)));
        // The least, and twice what was asked for.
        eq((set(fd, SOL_SOCKET, SO_SNDBUF, 1), get(fd, SOL_SOCKET, SO_SNDBUF)), (0, Ok(4608)));
        eq((set(fd, SOL_SOCKET, SO_RCVBUF, 0), get(fd, SOL_SOCKET, SO_RCVBUF)), (0, Ok(2304)));
        eq((set(fd, SOL_SOCKET, SO_SNDBUF, 70_000), get(fd, SOL_SOCKET, SO_SNDBUF)), (0, Ok(140_000)));
        // As much as there may be.
        eq(set(fd, SOL_SOCKET, SO_RCVBUF, -1), 0);
        check(get(fd, SOL_SOCKET, SO_RCVBUF).unwrap() >= 425_984, "the most");
        shut([fd]);
    }
    let fd = socket(AF_INET, SOCK_STREAM);
    eq((get(fd, SOL_SOCKET, SO_SNDBUF), get(fd, SOL_SOCKET, SO_RCVBUF)), (Ok(16_384), Ok(131_072)));
    shut([fd]);
}

fn tcp() -> [i32; 2] {
    let l = socket(AF_INET, SOCK_STREAM);
    let mut a = [0u8; 16];
    a[0] = AF_INET as u8;
    a[4..8].copy_from_slice(&[127, 0, 0, 1]);
    ok(sys!(SYS_bind, l, &a, 16));
    ok(sys!(SYS_listen, l, 1));
    ok(sys!(SYS_getsockname, l, &mut a, &mut 16u32));
    let c = socket(AF_INET, SOCK_STREAM);
    ok(sys!(SYS_connect, c, &a, 16));
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    shut([l]);
    [s, c]
}

fn pair() -> [i32; 2] {
    let mut p = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut p));
    p
}

fn low_water() {
    for (p, inet) in [(tcp(), true), (pair(), false)] {
        eq(get(p[0], SOL_SOCKET, SO_RCVLOWAT), Ok(1));
        eq((set(p[0], SOL_SOCKET, SO_RCVLOWAT, 0), get(p[0], SOL_SOCKET, SO_RCVLOWAT)), (0, Ok(1)));
        eq((set(p[0], SOL_SOCKET, SO_RCVLOWAT, 5), get(p[0], SOL_SOCKET, SO_RCVLOWAT)), (0, Ok(5)));
        eq(sys!(SYS_write, p[1], b"abc", 3), 3);
        // poll(2) of AF_UNIX shows any byte.
        until_unread(p[0], 3);
        eq(ready(p[0], POLLIN) != 0, !inet);
        // A read that may not wait takes what there is.
        let mut b = [0u8; 8];
        eq(sys!(SYS_recvfrom, p[0], &mut b, 8, MSG_DONTWAIT, 0, 0), 3);
        let later = std::thread::spawn(move || {
            sleep_ms(50);
            eq(sys!(SYS_write, p[1], b"de", 2), 2);
            sleep_ms(50);
            eq(sys!(SYS_write, p[1], b"fgh", 3), 3);
        });
        // Others wait for as much; a smaller buffer for what fills it.
        eq(sys!(SYS_read, p[0], &mut b, 8), 5);
        later.join().expect("the sender");
        eq(sys!(SYS_write, p[1], b"xy", 2), 2);
        eq(sys!(SYS_read, p[0], &mut b, 2), 2);
        // The end is told at once.
        eq(sys!(SYS_write, p[1], b"z", 1), 1);
        shut([p[1]]);
        until_ready(p[0], POLLIN);
        eq(sys!(SYS_read, p[0], &mut b, 8), 1);
        shut([p[0]]);
    }
}

fn linger_and_times() {
    let fd = socket(AF_INET, SOCK_STREAM);
    for name in [SO_LINGER, SO_RCVTIMEO, SO_SNDTIMEO] {
        err(set(fd, SOL_SOCKET, name, 1), EINVAL);
        let (mut b, mut n) = ([1u8; 16], 3u32);
        ok(sys!(SYS_getsockopt, fd, SOL_SOCKET, name, &mut b, &mut n));
        eq((n, b[2], b[3]), (3, 0, 1));
    }
    err(sys!(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &[0i64, 1_000_000], 16), EDOM);
    // Below 0 there is no waiting at all.
    eq(sys!(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &[0i64, 250_000], 16), 0);
    let (mut t, mut n) = ([0i64; 2], 16u32);
    ok(sys!(SYS_getsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &mut t, &mut n));
    check((n, t[0]) == (16, 0) && (250_000..260_000).contains(&t[1]), "read back");
    shut([fd]);
}

fn names_and_lists() {
    let [s, c] = tcp();
    let (mut b, mut n) = ([0u8; 32], 16u32);
    ok(sys!(SYS_getsockopt, s, SOL_SOCKET, 28, &mut b, &mut n));
    let (mut a, mut m) = ([0u8; 32], 32u32);
    ok(sys!(SYS_getpeername, s, &mut a, &mut m));
    eq(&b[..8], &a[..8]);
    let fd = socket(AF_INET, SOCK_STREAM);
    eq(get(fd, SOL_SOCKET, 28), Err(-i64::from(ENOTCONN)));
    err(set(fd, SOL_SOCKET, 28, 1), ENOPROTOOPT);
    // Without a peer that is a process.
    let (mut v, mut n) = ([7u32; 3], 12u32);
    ok(sys!(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &mut v, &mut n));
    eq(v, [0, u32::MAX, u32::MAX]);
    let mut n = 16u32;
    ok(sys!(SYS_getsockopt, fd, SOL_SOCKET, SO_BINDTODEVICE, &mut b, &mut n));
    eq(n, 0);
    err(sys!(SYS_setsockopt, fd, SOL_SOCKET, SO_BINDTODEVICE, b"none-such\0", 10), ENODEV);
    eq(sys!(SYS_setsockopt, fd, SOL_SOCKET, SO_BINDTODEVICE, b"lo\0", 3), 0);
    // SO_BINDTOIFINDEX is the same by number. Without a right it is for good.
    eq(get(fd, SOL_SOCKET, 62), Ok(1));
    let mut n = 16u32;
    ok(sys!(SYS_getsockopt, fd, SOL_SOCKET, SO_BINDTODEVICE, &mut b, &mut n));
    eq((n, &b[..3]), (3, &b"lo\0"[..]));
    err(sys!(SYS_getsockopt, fd, SOL_SOCKET, SO_BINDTODEVICE, &mut b, &mut 15u32), EINVAL);
    if sys!(SYS_geteuid) != 0 {
        err(sys!(SYS_setsockopt, fd, SOL_SOCKET, SO_BINDTODEVICE, b"", 0), EPERM);
        err(set(fd, SOL_SOCKET, 62, 1), EPERM);
    } else {
        eq(sys!(SYS_setsockopt, fd, SOL_SOCKET, SO_BINDTODEVICE, b"", 0), 0);
        eq(get(fd, SOL_SOCKET, 62), Ok(0));
    }
    err(set(fd, SOL_SOCKET, 27, 1), ENOENT);
    let mut n = 16u32;
    ok(sys!(SYS_getsockopt, fd, IPPROTO_TCP, 31, &mut b, &mut n));
    eq(n, 0);
    let mut n = 16u32;
    ok(sys!(SYS_getsockopt, fd, IPPROTO_IP, IP_OPTIONS, &mut b, &mut n));
    eq(n, 0);
    shut([s, c, fd]);
}

fn cookies() {
    let (a, b) = (socket(AF_INET, SOCK_STREAM), socket(AF_UNIX, SOCK_STREAM));
    let long = |fd: i32, name: i32, room: u32| {
        let (mut v, mut n) = (0u64, room);
        (sys!(SYS_getsockopt, fd, SOL_SOCKET, name, &mut v, &mut n), v, n)
    };
    for name in [57, 71] {
        err(long(a, name, 4).0, EINVAL);
        let (r, v, n) = long(a, name, 8);
        eq((r, n), (0, 8));
        check(v != 0, "a number");
        eq(long(a, name, 8).1, v);
        eq(long(b, name, 8).1 == v, name == 71);
        err(set(a, SOL_SOCKET, name, 1), ENOPROTOOPT);
    }
    shut([a, b]);
}

fn meminfo() {
    let fd = socket(AF_INET, SOCK_DGRAM);
    let (mut v, mut n) = ([9u32; 16], 64u32);
    ok(sys!(SYS_getsockopt, fd, SOL_SOCKET, 55, &mut v, &mut n));
    eq((n, v[0], v[1], v[3], v[8]), (36, 0, 212_992, 212_992, 0));
    shut([fd]);
}

fn deferred_seconds() {
    let fd = socket(AF_INET, SOCK_STREAM);
    for (asked, got) in [(1, 1), (2, 3), (3, 3), (4, 7), (30, 31), (127, 127), (128, 247)] {
        eq((set(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, asked), get(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT)), (0, Ok(got)));
    }
    shut([fd]);
}

fn udp() -> [i32; 2] {
    let r = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK);
    let mut a = [0u8; 16];
    a[0] = AF_INET as u8;
    a[4..8].copy_from_slice(&[127, 0, 0, 1]);
    ok(sys!(SYS_bind, r, &a, 16));
    ok(sys!(SYS_getsockname, r, &mut a, &mut 16u32));
    let s = socket(AF_INET, SOCK_DGRAM);
    ok(sys!(SYS_connect, s, &a, 16));
    [r, s]
}

fn got(fd: i32) -> Option<Vec<u8>> {
    let mut b = [0u8; 64];
    let n = sys!(SYS_recvfrom, fd, &mut b, 64, 0, 0, 0);
    (n >= 0).then(|| b[..n as usize].to_vec())
}

fn udp_cork() {
    let [r, s] = udp();
    eq(set(s, IPPROTO_UDP, UDP_CORK, 1), 0);
    eq(sys!(SYS_write, s, b"one ", 4), 4);
    eq(sys!(SYS_write, s, b"two ", 4), 4);
    eq(got(r), None);
    eq(set(s, IPPROTO_UDP, UDP_CORK, 0), 0);
    eq(got(r), Some(b"one two ".to_vec()));
    eq(got(r), None);
    // Nothing began: nothing is sent.
    eq(set(s, IPPROTO_UDP, UDP_CORK, 1), 0);
    eq(set(s, IPPROTO_UDP, UDP_CORK, 0), 0);
    eq(got(r), None);
    shut([r, s]);
}

fn udp_more() {
    let [r, s] = udp();
    eq(sys!(SYS_sendto, s, b"a", 1, MSG_MORE, 0, 0), 1);
    eq(sys!(SYS_sendto, s, b"bc", 2, MSG_MORE, 0, 0), 2);
    eq(got(r), None);
    eq(sys!(SYS_sendto, s, b"d", 1, 0, 0, 0), 1);
    eq(got(r), Some(b"abcd".to_vec()));
    eq(sys!(SYS_write, s, b"e", 1), 1);
    eq(got(r), Some(b"e".to_vec()));
    shut([r, s]);
}

fn mtu() {
    let [r, s] = udp();
    eq(get(r, IPPROTO_IP, IP_MTU), Err(-i64::from(ENOTCONN)));
    eq(get(s, IPPROTO_IP, IP_MTU), Ok(65_535));
    shut([r, s]);
}

fn control(fd: i32) -> Vec<(i32, i32, Vec<u8>)> {
    let mut byte = [0u8; 8];
    let mut control = [0u64; 32];
    let iov = iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 8 };
    // SAFETY: plain data, for which zeroes are a value.
    let mut m: msghdr = unsafe { std::mem::zeroed() };
    (m.msg_iov, m.msg_iovlen) = ((&raw const iov).cast_mut(), 1);
    (m.msg_control, m.msg_controllen) = (control.as_mut_ptr().cast(), 256);
    eq(sys!(SYS_recvmsg, fd, &mut m, 0), 1);
    let bytes: Vec<u8> = control.iter().flat_map(|w| w.to_ne_bytes()).collect();
    let mut rest = &bytes[..m.msg_controllen as usize];
    let mut out = Vec::new();
    while rest.len() >= 16 {
        let len = usize::from_ne_bytes(rest[..8].try_into().unwrap());
        let word = |at: usize| i32::from_ne_bytes(rest[at..at + 4].try_into().unwrap());
        out.push((word(8), word(12), rest[16..len].to_vec()));
        rest = &rest[len.next_multiple_of(8).min(rest.len())..];
    }
    out
}

fn original_address() {
    let [r, s] = udp();
    eq(set(r, IPPROTO_IP, IP_RECVORIGDSTADDR, 1), 0);
    eq(sys!(SYS_write, s, b"x", 1), 1);
    let mut a = [0u8; 16];
    ok(sys!(SYS_getsockname, r, &mut a, &mut 16u32));
    eq(control(r), vec![(SOL_IP, IP_RECVORIGDSTADDR, a.to_vec())]);
    shut([r, s]);
}

fn time_new() {
    for name in [63, 64] {
        let [r, s] = udp();
        eq(set(r, SOL_SOCKET, name, 1), 0);
        eq(sys!(SYS_write, s, b"x", 1), 1);
        let list = control(r);
        eq((list.len(), list[0].0, list[0].1, list[0].2.len()), (1, SOL_SOCKET, name, 16));
        shut([r, s]);
    }
}

fn netlink_groups() {
    let fd = socket(AF_NETLINK, SOCK_RAW);
    eq(set(fd, SOL_NETLINK, 1, 1), 0);
    eq(set(fd, SOL_NETLINK, 2, 1), 0);
    for bad in [0, -1, 70_000] {
        err(set(fd, SOL_NETLINK, 1, bad), EINVAL);
    }
    eq(get(fd, SOL_NETLINK, 1), Err(-i64::from(ENOPROTOOPT)));
    err(set(fd, SOL_NETLINK, 9, 1), ENOPROTOOPT);
    shut([fd]);
    // Groups come before a port, and beyond those of the name.
    let list = |fd: i32, room: u32| {
        let (mut v, mut n) = ([0u8; 16], room);
        ok(sys!(SYS_getsockopt, fd, SOL_NETLINK, 9, &mut v, &mut n));
        (n, u64::from_ne_bytes(v[..8].try_into().unwrap()))
    };
    let name = |fd: i32| {
        let mut a = [0u32; 3];
        ok(sys!(SYS_getsockname, fd, &mut a, &mut 12u32));
        (a[1], a[2])
    };
    let bind = |fd: i32, port: u32, groups: u32| {
        sys!(SYS_bind, fd, &[AF_NETLINK as u32, port, groups], 12)
    };
    let fd = socket(AF_NETLINK, SOCK_RAW);
    eq(list(fd, 16), (0, 0));
    for group in [1, 2, 32, 33] {
        eq(set(fd, SOL_NETLINK, 1, group), 0);
    }
    eq((name(fd), list(fd, 16)), ((0, 0x8000_0003), (8, 0x1_8000_0003)));
    eq(list(fd, 4), (8, 0x8000_0003));
    ok(bind(fd, 0, 4));
    let port = name(fd).0;
    check(port != 0, "a port");
    eq((name(fd).1, list(fd, 16)), (4, (8, 0x1_0000_0004)));
    ok(bind(fd, port, 8));
    err(bind(fd, 0, 1), EINVAL);
    err(bind(fd, port + 1, 1), EINVAL);
    eq(set(fd, SOL_NETLINK, 2, 33), 0);
    eq((name(fd), list(fd, 16)), ((port, 8), (8, 8)));
    shut([fd]);
    let fd = socket(AF_NETLINK, SOCK_RAW);
    eq(set(fd, SOL_NETLINK, 1, 1), 0);
    ok(sys!(SYS_connect, fd, &[AF_NETLINK as u32, 0, 0], 12));
    check(name(fd).0 != 0, "connect chooses a port");
    eq(name(fd).1, 1);
    shut([fd]);
}

fn bound_address() {
    // A connected socket has the address that it sends from, and what was not chosen goes with the connection.
    let name = |fd: i32| {
        let mut a = [0u8; 16];
        ok(sys!(SYS_getsockname, fd, &mut a, &mut 16u32));
        (a[4..8].to_vec(), u16::from_be_bytes([a[2], a[3]]))
    };
    let mut any = [0u8; 16];
    any[0] = AF_INET as u8;
    let mut to = any;
    to[2..8].copy_from_slice(&[0, 9, 127, 0, 0, 2]);
    let (lo, none) = (vec![127, 0, 0, 1], vec![0u8; 4]);
    let u = socket(AF_INET, SOCK_DGRAM);
    ok(sys!(SYS_connect, u, &to, 16));
    eq(name(u).0, lo.clone());
    ok(sys!(SYS_connect, u, &[0u8; 16], 16));
    eq(name(u), (none.clone(), 0));
    let u = socket(AF_INET, SOCK_DGRAM);
    ok(sys!(SYS_bind, u, &any, 16));
    ok(sys!(SYS_connect, u, &to, 16));
    eq(name(u).0, lo.clone());
    ok(sys!(SYS_connect, u, &[0u8; 16], 16));
    eq(name(u).0, none);
    let l = socket(AF_INET, SOCK_STREAM);
    ok(sys!(SYS_listen, l, 1));
    let mut a = [0u8; 16];
    ok(sys!(SYS_getsockname, l, &mut a, &mut 16u32));
    let c = socket(AF_INET, SOCK_STREAM);
    ok(sys!(SYS_bind, c, &any, 16));
    ok(sys!(SYS_connect, c, &a, 16));
    eq(name(c).0, lo.clone());
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    eq(name(s).0, lo.clone());
    let mut peer = [0u8; 16];
    ok(sys!(SYS_getpeername, c, &mut peer, &mut 16u32));
    eq(peer[4..8].to_vec(), lo);
    shut([u, l, c, s]);
}
