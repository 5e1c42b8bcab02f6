//! AF_NETLINK: netlink(7), rtnetlink(7), sock_diag(7); netdevice(7) requests about `lo`.

use guest_tests::*;
use libc::*;

cases![
    open_errors, names_and_ports, type_and_protocol, link_of_lo, link_errors, addresses_of_lo, routes, unknown_request, acknowledgement,
    other_ports, between_sockets, one_list_at_a_time, refused_without_end, answers_without_a_reader, poll_and_peek, diag_of_a_listener, users_in_a_namespace,
    one_group, full_receiver, group_without_a_reader, rights_at_connect, ports_by_protocol, shown_in_proc, interface_requests, interface_errors, interface_list
];

const NLM_REQUEST: u16 = 1;
const NLM_ACK: u16 = 4;
const DUMP: u16 = 0x300;

fn netlink() -> i32 {
    let fd = sys!(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if fd == -i64::from(EAFNOSUPPORT) {
        skip("no netlink");
    }
    ok(fd) as i32
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut m = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
    m.extend(kind.to_ne_bytes());
    m.extend(flags.to_ne_bytes());
    m.extend(77u32.to_ne_bytes());
    m.extend(0u32.to_ne_bytes());
    m.extend(body);
    m
}

/// Sends one request and gathers the answers: type and body each, to DONE, an error or the only one.
fn ask(fd: i32, kind: u16, flags: u16, body: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let m = message(kind, flags | NLM_REQUEST, body);
    eq(sys!(SYS_sendto, fd, &m[..], m.len(), 0, 0, 0), m.len() as i64);
    let mut out = Vec::new();
    loop {
        let mut b = vec![0u8; 65536];
        let n = ok(sys!(SYS_recvfrom, fd, &mut b[..], b.len(), 0, 0, 0)) as usize;
        let mut rest = &b[..n];
        while rest.len() >= 16 {
            let len = u32::from_ne_bytes(rest[..4].try_into().unwrap()) as usize;
            let kind = u16::from_ne_bytes(rest[4..6].try_into().unwrap());
            let multi = u16::from_ne_bytes(rest[6..8].try_into().unwrap()) & 2 != 0;
            eq(u32::from_ne_bytes(rest[8..12].try_into().unwrap()), 77);
            if kind == NLMSG_DONE as u16 {
                return out;
            }
            out.push((kind, rest[16..len].to_vec()));
            if !multi && flags & DUMP == 0 || kind == NLMSG_ERROR as u16 {
                return out;
            }
            rest = &rest[len.next_multiple_of(4).min(rest.len())..];
        }
    }
}

fn attrs(mut rest: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut out = Vec::new();
    while rest.len() >= 4 {
        let len = u16::from_ne_bytes([rest[0], rest[1]]) as usize;
        out.push((u16::from_ne_bytes([rest[2], rest[3]]), rest[4..len].to_vec()));
        rest = &rest[len.next_multiple_of(4).min(rest.len())..];
    }
    out
}

fn attr(list: &[(u16, Vec<u8>)], kind: u16) -> Vec<u8> {
    list.iter().find(|(k, _)| *k == kind).unwrap_or_else(|| panic!("attribute {kind} is there")).1.clone()
}

fn errno_of(found: &[(u16, Vec<u8>)]) -> i32 {
    eq(found[0].0, NLMSG_ERROR as u16);
    -i32::from_ne_bytes(found[0].1[..4].try_into().unwrap())
}

fn open_errors() {
    err(sys!(SYS_socket, AF_NETLINK, SOCK_STREAM, 0), ESOCKTNOSUPPORT);
    err(sys!(SYS_socket, AF_NETLINK, SOCK_RAW, 40), EPROTONOSUPPORT);
    err(sys!(SYS_socket, AF_NETLINK, SOCK_RAW, -1), EPROTONOSUPPORT);
}

fn sockaddr(port: u32, groups: u32) -> [u8; 12] {
    let mut a = [0u8; 12];
    a[0] = AF_NETLINK as u8;
    a[4..8].copy_from_slice(&port.to_ne_bytes());
    a[8..].copy_from_slice(&groups.to_ne_bytes());
    a
}

fn name(fd: i32) -> ([u8; 12], u32) {
    let (mut a, mut n) = ([0xffu8; 12], 12u32);
    ok(sys!(SYS_getsockname, fd, &mut a, &mut n));
    (a, n)
}

fn port(fd: i32) -> u32 {
    u32::from_ne_bytes(name(fd).0[4..8].try_into().unwrap())
}

fn names_and_ports() {
    let (a, b) = (netlink(), netlink());
    eq(name(a), (sockaddr(0, 0), 12));
    ok(sys!(SYS_bind, a, &sockaddr(0, 0), 12));
    ok(sys!(SYS_bind, b, &sockaddr(0, 0), 12));
    check(port(a) != 0 && port(b) != 0 && port(a) != port(b), "ports are chosen and differ");
    eq(port(a), std::process::id());
    let c = netlink();
    err(sys!(SYS_bind, c, &sockaddr(port(a), 0), 12), EADDRINUSE);
    err(sys!(SYS_bind, c, &sockaddr(0, 0), 8), EINVAL);
    shut([a, b, c]);
}

fn type_and_protocol() {
    let fd = ok(sys!(SYS_socket, AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE)) as i32;
    let raw = netlink();
    for (fd, opt, want) in [
        (fd, SO_TYPE, SOCK_DGRAM),
        (raw, SO_TYPE, SOCK_RAW),
        (fd, SO_PROTOCOL, NETLINK_ROUTE),
        (fd, SO_DOMAIN, AF_NETLINK),
    ] {
        let (mut v, mut n) = (0i32, 4u32);
        ok(sys!(SYS_getsockopt, fd, SOL_SOCKET, opt, &mut v, &mut n));
        eq(v, want);
    }
    shut([fd, raw]);
}

fn link_of_lo() {
    let fd = netlink();
    for (flags, body) in [(DUMP, [0u8; 16].to_vec()), (0, [&[0u8; 4][..], &1u32.to_ne_bytes(), &[0; 8]].concat())] {
        let found = ask(fd, RTM_GETLINK, flags, &body);
        let (kind, lo) = &found[0];
        eq(*kind, RTM_NEWLINK);
        eq(&lo[2..8], &[&772u16.to_ne_bytes()[..], &1u32.to_ne_bytes()].concat()[..]);
        let list = attrs(&lo[16..]);
        eq(attr(&list, IFLA_IFNAME), b"lo\0".to_vec());
        eq(attr(&list, IFLA_MTU), 65536u32.to_ne_bytes().to_vec());
        eq(attr(&list, IFLA_ADDRESS), vec![0u8; 6]);
    }
    shut([fd]);
}

fn link_errors() {
    let fd = netlink();
    let body = [&[0u8; 4][..], &9999u32.to_ne_bytes(), &[0; 8]].concat();
    eq(errno_of(&ask(fd, RTM_GETLINK, 0, &body)), ENODEV);
    shut([fd]);
}

fn addresses_of_lo() {
    let fd = netlink();
    let found = ask(fd, RTM_GETADDR, DUMP, &[AF_INET as u8, 0, 0, 0, 0, 0, 0, 0]);
    let lo = found.iter().find(|(_, b)| b[4..8] == 1u32.to_ne_bytes());
    let Some((kind, lo)) = lo else { skip("lo has no address") };
    eq(*kind, RTM_NEWADDR);
    eq((lo[0], lo[1], lo[3]), (AF_INET as u8, 8, RT_SCOPE_HOST));
    let list = attrs(&lo[8..]);
    eq(attr(&list, IFA_LOCAL), vec![127, 0, 0, 1]);
    eq(attr(&list, IFA_ADDRESS), vec![127, 0, 0, 1]);
    eq(attr(&list, IFA_LABEL), b"lo\0".to_vec());
    shut([fd]);
}

fn routes() {
    let fd = netlink();
    let found = ask(fd, RTM_GETROUTE, DUMP, &[AF_INET as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let local = found.iter().any(|(_, b)| {
        b[1] == 32 && b[4] == RT_TABLE_LOCAL && attrs(&b[12..]).contains(&(RTA_DST, vec![127, 0, 0, 1]))
    });
    if !local {
        skip("lo is down");
    }
    let mut body = vec![AF_INET as u8, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    body.extend([8, 0, 1, 0, 127, 0, 0, 1]);
    let found = ask(fd, RTM_GETROUTE, 0, &body);
    eq((found[0].0, found[0].1[7]), (RTM_NEWROUTE, RTN_LOCAL));
    shut([fd]);
}

fn unknown_request() {
    let fd = netlink();
    eq(errno_of(&ask(fd, 250, 0, &[0; 16])), EOPNOTSUPP);
    shut([fd]);
}

fn acknowledgement() {
    let fd = netlink();
    let body = [&[0u8; 4][..], &1u32.to_ne_bytes(), &[0; 8]].concat();
    eq(ask(fd, RTM_GETLINK, NLM_ACK, &body)[0].0, RTM_NEWLINK);
    let mut b = [0u8; 128];
    let n = ok(sys!(SYS_recvfrom, fd, &mut b, 128, 0, 0, 0));
    eq(n, 36);
    eq(u16::from_ne_bytes([b[4], b[5]]), NLMSG_ERROR as u16);
    eq(&b[16..20], [0; 4]);
    shut([fd]);
}

fn other_ports() {
    let fd = netlink();
    let m = message(RTM_GETLINK, NLM_REQUEST | DUMP, &[0; 16]);
    // An ordinary user may not send to other processes at all.
    let r = sys!(SYS_sendto, fd, &m[..], m.len(), 0, &sockaddr(0x7fff_fff1, 0), 12);
    err(r, if sys!(SYS_geteuid) == 0 { ECONNREFUSED } else { EPERM });
    eq(sys!(SYS_sendto, fd, &m[..], m.len(), 0, &sockaddr(0, 0), 12), m.len() as i64);
    err(sys!(SYS_listen, fd, 1), EOPNOTSUPP);
    err(sys!(SYS_accept, fd, 0, 0), EOPNOTSUPP);
    shut([fd]);
}

/// All messages that can be received now: kind, errno of those that have one.
fn rest(fd: i32) -> Vec<(u16, i32)> {
    let mut out = Vec::new();
    let mut b = vec![0u8; 65536];
    loop {
        let n = sys!(SYS_recvfrom, fd, &mut b[..], b.len(), MSG_DONTWAIT, 0, 0);
        let Ok(n) = usize::try_from(n) else {
            eq(n, -i64::from(EAGAIN));
            return out;
        };
        let mut rest = &b[..n];
        while rest.len() >= 20 {
            let len = u32::from_ne_bytes(rest[..4].try_into().unwrap()) as usize;
            let kind = u16::from_ne_bytes(rest[4..6].try_into().unwrap());
            let value = i32::from_ne_bytes(rest[16..20].try_into().unwrap());
            out.push((kind, if kind == NLMSG_ERROR as u16 { -value } else { 0 }));
            rest = &rest[len.next_multiple_of(4).min(rest.len())..];
        }
    }
}

fn between_sockets() {
    let (a, b) = (netlink(), netlink());
    let m = message(RTM_GETLINK, NLM_REQUEST, &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    ok(sys!(SYS_bind, a, &sockaddr(0, 0), 12));
    ok(sys!(SYS_bind, b, &sockaddr(0, 4), 12));
    let to_port = || sys!(SYS_sendto, a, &m[..], m.len(), 0, &sockaddr(port(b), 0), 12);
    let to_group = || sys!(SYS_sendto, a, &m[..], m.len(), 0, &sockaddr(0, 4), 12);
    if sys!(SYS_geteuid) == 0 {
        let len = m.len() as i64;
        for (sent, to) in [(to_port(), 0), (to_group(), 4)] {
            eq(sent, len);
            let (mut from, mut n, mut bytes) = ([0u8; 12], 12u32, [0u8; 64]);
            eq(sys!(SYS_recvfrom, b, &mut bytes, 64, MSG_DONTWAIT, &mut from, &mut n), len);
            eq((&bytes[..m.len()], from), (&m[..], sockaddr(port(a), to)));
        }
        // What is for a group is for the kernel too.
        eq(rest(a), vec![(16, 0)]);
        eq(rest(b), vec![]);
    } else {
        err(to_port(), EPERM);
        err(to_group(), EPERM);
        err(sys!(SYS_connect, a, &sockaddr(0, 4), 12), EPERM);
    }
    shut([a, b]);
}

/// What a send to a port and groups says.
fn send_to(fd: i32, data: &[u8], port: u32, groups: u32, flags: i32) -> i64 {
    sys!(SYS_sendto, fd, data, data.len(), flags, &sockaddr(port, groups), 12)
}

/// Groups and first byte of the messages that wait.
fn heard(fd: i32) -> Vec<(u32, u8)> {
    let mut out = Vec::new();
    loop {
        let (mut from, mut b) = ([0u8; 12], [0u8; 8]);
        match sys!(SYS_recvfrom, fd, &mut b, 8, MSG_DONTWAIT, &mut from, &mut 12u32) {
            n if n >= 0 => out.push((u32::from_ne_bytes(from[8..].try_into().unwrap()), b[0])),
            n => {
                eq(n, -i64::from(EAGAIN));
                return out;
            }
        }
    }
}

fn as_root() {
    if sys!(SYS_geteuid) != 0 {
        skip("only root may send to others");
    }
}

fn bound(groups: u32) -> i32 {
    let fd = netlink();
    ok(sys!(SYS_bind, fd, &sockaddr(0, groups), 12));
    fd
}

fn one_group() {
    as_root();
    let (a, b) = (bound(0), bound(5));
    let m = message(RTM_GETLINK, 0, &[]);
    for (groups, heard_as) in [(6, vec![]), (5, vec![(1, 16)]), (4, vec![(4, 16)])] {
        eq(send_to(a, &m, 0, groups, 0), 16);
        eq(heard(b), heard_as);
    }
    // Who is meant by the port hears it once, and so does the sender.
    eq(send_to(a, &m, port(b), 4, 0), 16);
    eq((heard(b), heard(a)), (vec![(4, 16)], vec![]));
    eq(send_to(a, &m, port(a), 4, 0), 16);
    eq((heard(b), heard(a)), (vec![(4, 16)], vec![(4, 16)]));
    ok(sys!(SYS_connect, a, &sockaddr(port(b), 6), 12));
    let mut name = [0u8; 12];
    ok(sys!(SYS_getpeername, a, &mut name, &mut 12u32));
    eq(name, sockaddr(port(b), 2));
    // Who is connected hears nobody else.
    let c = bound(0);
    err(send_to(c, &m, port(a), 0, 0), ECONNREFUSED);
    eq(send_to(b, &m, port(a), 0, 0), 16);
    shut([a, b, c]);
}

/// Who sends to a port waits for room there; nothing is lost, and the reader hears of no loss.
fn full_receiver() {
    as_root();
    let (a, b) = (bound(0), bound(4));
    let data = [7u8; 4000];
    let fill = || {
        let mut count = 0usize;
        loop {
            match send_to(a, &data, port(b), 0, MSG_DONTWAIT) {
                4000 => count += 1,
                n => {
                    eq(n, -i64::from(EAGAIN));
                    check(count < 1000, "it is full");
                    return count;
                }
            }
        }
    };
    let count = fill();
    check(count > 10, "there is room for some");
    eq(heard(b).len(), count);
    fill();
    ok(sys!(SYS_setsockopt, a, SOL_SOCKET, SO_SNDTIMEO, &[0i64, 50_000], 16));
    let start = std::time::Instant::now();
    err(send_to(a, &data, port(b), 0, 0), EAGAIN);
    check(start.elapsed().as_millis() >= 45, "it waited");
    ok(sys!(SYS_setsockopt, a, SOL_SOCKET, SO_SNDTIMEO, &[0i64, 0], 16));
    // The group is told once, though the port has to be waited for.
    let c = bound(4);
    let waiting = blocked(move || send_to(a, &[9u8; 4000], port(b), 4, 0));
    eq(heard(c), vec![(4, 9)]);
    let mut found = heard(b);
    eq(waiting.join().expect("no panic"), 4000);
    found.extend(heard(b));
    eq(found.last(), Some(&(4, 9)));
    eq(heard(c), vec![]);
    // Longer than a message may be.
    err(send_to(a, &vec![0u8; 212_961], port(b), 0, 0), EMSGSIZE);
    err(send_to(a, &vec![0u8; 212_961], 0, 0, 0), EMSGSIZE);
    shut([a, b, c]);
}

/// What is for a group does not wait: a reader hears once that some was lost, and takes no more until it has read all.
fn group_without_a_reader() {
    as_root();
    let (a, b) = (bound(0), bound(4));
    for _ in 0..200 {
        eq(send_to(a, &[7u8; 4000], 0, 4, 0), 4000);
    }
    err(sys!(SYS_recvfrom, b, &mut [0u8; 8], 8, MSG_DONTWAIT, 0, 0), ENOBUFS);
    eq(sys!(SYS_recvfrom, b, &mut [0u8; 8], 8, MSG_DONTWAIT, 0, 0), 8);
    eq(send_to(a, &[8u8; 4000], 0, 4, 0), 4000);
    err(send_to(a, &[8u8; 4000], port(b), 0, MSG_DONTWAIT), EAGAIN);
    check(heard(b).iter().all(|(_, byte)| *byte == 7), "what came before");
    eq(send_to(a, &[8u8; 4000], 0, 4, 0), 4000);
    eq(heard(b), vec![(4, 8)]);
    shut([a, b]);
}

/// The right to send to others is asked for when they are named.
fn rights_at_connect() {
    as_root();
    in_child(|| {
        let (a, b) = (bound(0), bound(0));
        ok(sys!(SYS_connect, a, &sockaddr(port(b), 0), 12));
        ok(sys!(SYS_setresuid, 64321, 64321, 64321));
        let m = message(RTM_GETLINK, 0, &[]);
        eq(sys!(SYS_sendto, a, &m[..], 16, 0, 0, 0), 16);
        err(send_to(a, &m, port(b), 0, 0), EPERM);
        eq(heard(b).len(), 1);
    });
}

fn ports_by_protocol() {
    in_child(|| {
        let a = bound(0);
        let b = ok(sys!(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG)) as i32;
        ok(sys!(SYS_bind, b, &sockaddr(0, 0), 12));
        let own = sys!(SYS_getpid) as u32;
        eq((port(a), port(b)), (own, own));
        let c = bound(0);
        check(port(c) != own, "one for each");
        // Threads that send at once have one port.
        let d = netlink();
        let m = message(RTM_GETLINK, NLM_REQUEST, &[0; 16]);
        let all: Vec<_> = (0..4).map(|_| {
            let m = m.clone();
            std::thread::spawn(move || {
                sys!(SYS_sendto, d, &m[..], m.len(), 0, 0, 0);
                port(d)
            })
        }).collect();
        let ports: Vec<u32> = all.into_iter().map(|t| t.join().expect("no panic")).collect();
        check(ports.iter().all(|p| *p == ports[0] && *p != 0), &format!("{ports:?}"));
    });
}

fn shown_in_proc() {
    let a = bound(5);
    let d = ok(sys!(SYS_socket, AF_INET6, SOCK_DGRAM, 0)) as i32;
    let mut any = [0u8; 28];
    any[0] = AF_INET6 as u8;
    ok(sys!(SYS_bind, d, &any, 28));
    let m = message(RTM_GETLINK, NLM_REQUEST | NLM_ACK, &[0; 16]);
    eq(sys!(SYS_sendto, a, &m[..], m.len(), 0, 0, 0), m.len() as i64);
    let text = std::fs::read_to_string("/proc/net/netlink").expect("/proc/net/netlink");
    let head = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode";
    eq(text.lines().next(), Some(head));
    let ino = stat_fd(a).st_ino.to_string();
    let row: Vec<&str> = text.lines().map(|l| l.split_whitespace().collect()).find(|f: &Vec<&str>| f[9] == ino).expect("a row");
    eq((row[1], row[2], row[3], row[5], row[6], row[8]), ("0", &*port(a).to_string(), "00000005", "0", "0", "0"));
    check(row[4] != "0", "what it was answered");
    let kernels = |line: &str| line.split_whitespace().nth(1) == Some("4") && line.split_whitespace().nth(2) == Some("0");
    check(text.lines().any(kernels), "the kernel's own");
    let text = std::fs::read_to_string("/proc/net/protocols").expect("/proc/net/protocols");
    let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
    eq((&rows[0][..7], rows[0].len()), (&["protocol", "size", "sockets", "memory", "press", "maxhdr", "slab"][..], 26));
    let of = |name: &str| rows.iter().find(|row| row[0] == name).expect("a protocol");
    for name in ["TCP", "TCPv6", "UDP", "UDPv6", "PING", "UNIX", "UNIX-STREAM", "NETLINK"] {
        eq(of(name).len(), 26);
    }
    check(of("UDPv6")[2] != "0" && of("NETLINK")[4] == "NI", "they are counted");
    eq((of("TCP")[5], of("TCP")[25], of("UNIX")[8], of("UNIX")[9]), ("192", "y", "y", "n"));
    shut([a, d]);
}

fn one_list_at_a_time() {
    let fd = netlink();
    let m = message(RTM_GETLINK, NLM_REQUEST | DUMP, &[0; 16]);
    for _ in 0..3 {
        ok(sys!(SYS_sendto, fd, &m[..], m.len(), 0, 0, 0));
    }
    let of = |kind: i32| rest(fd).into_iter().filter(|(k, _)| i32::from(*k) == kind).map(|(_, e)| e).collect::<Vec<_>>();
    eq(of(NLMSG_ERROR), vec![EBUSY; 2]);
    ok(sys!(SYS_sendto, fd, &m[..], m.len(), 0, 0, 0));
    eq(of(NLMSG_DONE), vec![0]);
    shut([fd]);
}

/// Refusals of lists are answers like others: there is room for so many.
fn refused_without_end() {
    let fd = netlink();
    let m = message(RTM_GETLINK, NLM_REQUEST | DUMP, &[0; 16]);
    for _ in 0..200 {
        let many = m.repeat(20);
        ok(sys!(SYS_sendto, fd, &many[..], many.len(), 0, 0, 0));
    }
    // The host begins each list at once and so tells nothing of some; no reader is told of thousands.
    let mut found = 0;
    for _ in 0..10_000 {
        match sys!(SYS_recvfrom, fd, &mut [0u8; 8192][..], 8192, MSG_DONTWAIT, 0, 0) {
            n if n >= 0 => found += 1,
            n if n == -i64::from(ENOBUFS) => {}
            n => {
                eq(n, -i64::from(EAGAIN));
                break;
            }
        }
    }
    check((1..3000).contains(&found), &format!("{found} answers"));
    shut([fd]);
}

fn answers_without_a_reader() {
    let fd = netlink();
    let m = message(RTM_GETLINK, NLM_REQUEST | NLM_ACK, &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for _ in 0..1000 {
        ok(sys!(SYS_sendto, fd, &m[..], m.len(), 0, 0, 0));
    }
    // The reader is told once that there is no room, and finds what came before.
    err(sys!(SYS_recvfrom, fd, &mut [0u8; 8], 8, MSG_DONTWAIT, 0, 0), ENOBUFS);
    let found = rest(fd).len();
    check((20..1000).contains(&found), "some are lost");
    // As many requests as one message has.
    let many = m.repeat(40);
    eq(sys!(SYS_sendto, fd, &many[..], many.len(), 0, 0, 0), many.len() as i64);
    eq(rest(fd).len(), 80);
    shut([fd]);
}

fn poll_and_peek() {
    let fd = netlink();
    err(sys!(SYS_recvfrom, fd, &mut [0u8; 8], 8, MSG_DONTWAIT, 0, 0), EAGAIN);
    let m = message(RTM_GETLINK, NLM_REQUEST | DUMP, &[0; 16]);
    ok(sys!(SYS_sendto, fd, &m[..], m.len(), 0, 0, 0));
    let mut p = pollfd { fd, events: POLLIN, revents: 0 };
    eq(sys!(SYS_poll, &mut p, 1, 1000), 1);
    let whole = ok(sys!(SYS_recvfrom, fd, 0, 0, MSG_PEEK | MSG_TRUNC, 0, 0));
    check(whole > 64, "the whole length is told");
    let (mut from, mut n) = ([0xffu8; 12], 12u32);
    let mut b = vec![0u8; whole as usize];
    eq(sys!(SYS_recvfrom, fd, &mut b[..], b.len(), 0, &mut from, &mut n), whole);
    eq((from, n), (sockaddr(0, 0), 12));
    shut([fd]);
}

fn diag_of_a_listener() {
    let fd = sys!(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
    if fd < 0 {
        skip("no sock_diag");
    }
    let l = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    let mut a = [0u8; 16];
    a[0] = AF_INET as u8;
    a[4..8].copy_from_slice(&[127, 0, 0, 1]);
    ok(sys!(SYS_bind, l, &a, 16));
    ok(sys!(SYS_listen, l, 7));
    let mut n = 16u32;
    ok(sys!(SYS_getsockname, l, &mut a, &mut n));
    let mut body = vec![AF_INET as u8, IPPROTO_TCP as u8, 0, 0];
    body.extend((1u32 << 10).to_ne_bytes());
    body.extend([0; 48]);
    let found = ask(fd as i32, 20, DUMP, &body);
    let row = found.iter().find(|(_, b)| b[4..6] == a[2..4]);
    let Some((_, row)) = row else { skip("the listener is not listed") };
    eq((row[0], row[1]), (AF_INET as u8, 10));
    eq(&row[8..12], [127, 0, 0, 1]);
    // Connections that wait, and how many may.
    eq(&row[56..64], [0, 0, 0, 0, 7, 0, 0, 0]);
    shut([fd as i32, l]);
}

fn users_in_a_namespace() {
    in_child(|| {
        if space::is_root() {
            ok(sys!(SYS_setresuid, 64321, 64321, 64321));
            // Its files in /proc are its own again.
            ok(sys!(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0));
        }
        let uid = sys!(SYS_getuid) as u32;
        let l = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
        ok(sys!(SYS_listen, l, 1));
        let mut a = [0u8; 16];
        ok(sys!(SYS_getsockname, l, &mut a, &mut 16u32));
        let own = format!(":{:04X}", u16::from_be_bytes([a[2], a[3]]));
        let shown = || {
            let fd = ok(sys!(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG)) as i32;
            let body = [&[AF_INET as u8, IPPROTO_TCP as u8, 0, 0][..], &(1u32 << 10).to_ne_bytes(), &[0; 48]].concat();
            let found = ask(fd, 20, DUMP, &body);
            shut([fd]);
            let row = found.iter().find(|(_, b)| b[4..6] == a[2..4]);
            let told = row.map(|(_, row)| u32::from_ne_bytes(row[64..68].try_into().unwrap()));
            let text = std::fs::read_to_string("/proc/net/tcp").expect("/proc/net/tcp");
            let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let row = text.lines().map(fields).find(|f| f[1].ends_with(&own)).expect("the listener");
            (told.unwrap_or(row[7].parse().unwrap()), row[7].parse().unwrap())
        };
        eq(shown(), (uid, uid));
        space::become_root();
        eq(shown(), (0, 0));
    });
}

fn request(name: &[u8]) -> [u8; 40] {
    let mut r = [0u8; 40];
    r[..name.len()].copy_from_slice(name);
    r
}

fn interface_requests() {
    let fd = ok(sys!(SYS_socket, AF_INET, SOCK_DGRAM, 0)) as i32;
    let mut r = request(b"lo");
    ok(sys!(SYS_ioctl, fd, SIOCGIFINDEX, &mut r));
    eq(&r[16..20], 1i32.to_ne_bytes());
    let mut r = request(b"lo");
    ok(sys!(SYS_ioctl, fd, SIOCGIFMTU, &mut r));
    eq(&r[16..20], 65536i32.to_ne_bytes());
    let mut r = request(b"lo");
    ok(sys!(SYS_ioctl, fd, SIOCGIFHWADDR, &mut r));
    eq(&r[16..18], 772u16.to_ne_bytes());
    let mut r = request(b"lo");
    ok(sys!(SYS_ioctl, fd, SIOCGIFFLAGS, &mut r));
    eq(u16::from_ne_bytes([r[16], r[17]]) & IFF_LOOPBACK as u16, IFF_LOOPBACK as u16);
    let mut r = request(b"");
    r[16] = 1;
    ok(sys!(SYS_ioctl, fd, SIOCGIFNAME, &mut r));
    eq(&r[..3], b"lo\0");
    let mut r = request(b"lo");
    if sys!(SYS_ioctl, fd, SIOCGIFADDR, &mut r) == 0 {
        eq(&r[16..24], [2, 0, 0, 0, 127, 0, 0, 1]);
        let mut r = request(b"lo");
        ok(sys!(SYS_ioctl, fd, SIOCGIFNETMASK, &mut r));
        eq(&r[16..24], [2, 0, 0, 0, 255, 0, 0, 0]);
    }
    shut([fd]);
}

fn interface_errors() {
    let fd = ok(sys!(SYS_socket, AF_INET, SOCK_DGRAM, 0)) as i32;
    for which in [SIOCGIFINDEX, SIOCGIFMTU, SIOCGIFFLAGS, SIOCGIFADDR] {
        err(sys!(SYS_ioctl, fd, which, &mut request(b"absent0")), ENODEV);
        err(sys!(SYS_ioctl, fd, which, 8), EFAULT);
    }
    let mut r = request(b"");
    r[16..20].copy_from_slice(&9999i32.to_ne_bytes());
    err(sys!(SYS_ioctl, fd, SIOCGIFNAME, &mut r), ENODEV);
    shut([fd]);
}

fn interface_list() {
    let fd = ok(sys!(SYS_socket, AF_INET, SOCK_DGRAM, 0)) as i32;
    let mut b = [0u8; 4000];
    let mut conf = [b.len() as u64, b.as_mut_ptr() as u64];
    ok(sys!(SYS_ioctl, fd, SIOCGIFCONF, &mut conf));
    let n = conf[0] as u32 as usize;
    eq(n % 40, 0);
    if n == 0 {
        skip("no interface has an address");
    }
    check(b[..n].chunks(40).any(|r| r.starts_with(b"lo\0")), "lo is listed");
    let mut conf = [7u64, b.as_mut_ptr() as u64];
    ok(sys!(SYS_ioctl, fd, SIOCGIFCONF, &mut conf));
    eq(conf[0] as u32, 0);
    let mut conf = [0u64, 0];
    ok(sys!(SYS_ioctl, fd, SIOCGIFCONF, &mut conf));
    eq(conf[0] as u32 % 40, 0);
    shut([fd]);
}
