//! What bind(2), connect(2) and sendto(2) make of an address's family and length, and who is told of a socket's events by
//! fcntl(2) and ioctl(2).

use guest_tests::*;
use libc::*;

cases![bind_families, connect_families, send_families, unspec_is_bound, udp_dissolved, owners, owner_errors, owners_of_others];

const FIOSETOWN: i64 = 0x8901;
const SIOCSPGRP: i64 = 0x8902;
const FIOGETOWN: i64 = 0x8903;
const SIOCGPGRP: i64 = 0x8904;

fn made(family: i32, kind: i32) -> i32 {
    ok(sys!(SYS_socket, family, kind, 0)) as i32
}

/// An address in the form of IPv4's, whatever the family is.
fn four(family: i32, ip: [u8; 4], port: u16) -> Vec<u8> {
    [&(family as u16).to_ne_bytes()[..], &port.to_be_bytes(), &ip, &[0; 8]].concat()
}

/// The same of IPv6, with the loopback's or the unspecified address.
fn six(family: i32, last: u8, port: u16) -> Vec<u8> {
    [&(family as u16).to_ne_bytes()[..], &port.to_be_bytes(), &[0; 19], &[last], &[0; 4]].concat()
}

const LO: [u8; 4] = [127, 0, 0, 1];
const ANY: [u8; 4] = [0; 4];

fn bind(fd: i32, a: &[u8]) -> i64 {
    sys!(SYS_bind, fd, a, a.len())
}

fn connect(fd: i32, a: &[u8]) -> i64 {
    sys!(SYS_connect, fd, a, a.len())
}

fn send(fd: i32, a: &[u8]) -> i64 {
    sys!(SYS_sendto, fd, b"x", 1, MSG_NOSIGNAL, a, a.len())
}

fn name(nr: i64, fd: i32) -> Vec<u8> {
    let mut a = vec![0u8; 28];
    let mut len = 28u32;
    ok(sys!(nr, fd, a.as_mut_slice(), &mut len));
    a.truncate(len as usize);
    a
}

fn port(fd: i32) -> u16 {
    let a = name(SYS_getsockname, fd);
    u16::from_be_bytes([a[2], a[3]])
}

/// Each length that is too short, or the whole address, on a socket of its own.
fn each(family: i32, kind: i32, a: &[u8], call: fn(i32, &[u8]) -> i64, least: usize, short: &[i32], whole: i32) {
    for len in (0..a.len()).filter(|len| [0, 1, 2, 8, 15, 16, 23, 24].contains(len)).chain([a.len()]) {
        let s = made(family, kind);
        let got = call(s, &a[..len]);
        let want = if len < least { &short[usize::from(len >= 2).min(short.len() - 1)] } else { &whole };
        let want = -i64::from(*want);
        // One byte was sent.
        let got = got.min(0);
        check(got == want, &format!("family {family} kind {kind} address {:?} of {len}: {got}, not {want}", &a[..2]));
        shut([s]);
    }
}

fn bind_families() {
    for kind in [SOCK_STREAM, SOCK_DGRAM] {
        for (a, said) in [
            (four(AF_INET, LO, 0), 0),
            (four(AF_UNSPEC, ANY, 0), 0),
            (four(AF_UNSPEC, LO, 0), EAFNOSUPPORT),
            (four(AF_UNIX, ANY, 0), EAFNOSUPPORT),
            (six(AF_INET6, 0, 0), EAFNOSUPPORT),
        ] {
            each(AF_INET, kind, &a, bind, 16, &[EINVAL], said);
        }
        for (a, said) in [
            (six(AF_INET6, 1, 0), 0),
            (six(AF_UNSPEC, 0, 0), EAFNOSUPPORT),
            (six(AF_UNIX, 0, 0), EAFNOSUPPORT),
            (four(AF_INET, ANY, 0), EINVAL),
        ] {
            each(AF_INET6, kind, &a, bind, 24, &[EINVAL], said);
        }
    }
    let n = ok(sys!(SYS_socket, AF_NETLINK, SOCK_RAW, 0)) as i32;
    for family in [AF_UNSPEC, AF_INET] {
        err(bind(n, &four(family, ANY, 0)[..12]), EINVAL);
    }
    let u = made(AF_UNIX, SOCK_DGRAM);
    for family in [AF_UNSPEC, AF_INET] {
        err(bind(u, &four(family, ANY, 0)), EINVAL);
    }
    shut([n, u]);
}

fn connect_families() {
    for kind in [SOCK_STREAM, SOCK_DGRAM] {
        let to = made(AF_INET, kind);
        ok(bind(to, &four(AF_INET, LO, 0)));
        let to6 = made(AF_INET6, kind);
        ok(bind(to6, &six(AF_INET6, 1, 0)));
        if kind == SOCK_STREAM {
            ok(sys!(SYS_listen, to, 50));
            ok(sys!(SYS_listen, to6, 50));
        }
        each(AF_INET, kind, &four(AF_INET, LO, port(to)), connect, 16, &[EINVAL], 0);
        each(AF_INET, kind, &four(AF_UNSPEC, LO, port(to)), connect, 2, &[EINVAL], 0);
        each(AF_INET, kind, &four(AF_UNIX, LO, port(to)), connect, 16, &[EINVAL], EAFNOSUPPORT);
        each(AF_INET6, kind, &six(AF_INET6, 1, port(to6)), connect, 24, &[EINVAL], 0);
        each(AF_INET6, kind, &six(AF_UNSPEC, 1, 1), connect, 2, &[EINVAL], 0);
        each(AF_INET6, kind, &six(AF_UNIX, 1, 1), connect, 24, &[EINVAL], EAFNOSUPPORT);
        // UDP of IPv6 knows the addresses of IPv4, TCP does not.
        let said = if kind == SOCK_DGRAM { 0 } else { EINVAL };
        each(AF_INET6, kind, &four(AF_INET, LO, port(to)), connect, 16, &[EINVAL], said);
        let only = made(AF_INET6, kind);
        ok(sys!(SYS_setsockopt, only, SOL_IPV6, IPV6_V6ONLY, &1i32, 4));
        let said = if kind == SOCK_DGRAM { EAFNOSUPPORT } else { EINVAL };
        err(connect(only, &four(AF_INET, LO, port(to))), said);
        shut([to, to6, only]);
    }
    // Where a socket of TCP is comes before where it is to go.
    let l = made(AF_INET, SOCK_STREAM);
    ok(bind(l, &four(AF_INET, LO, 0)));
    ok(sys!(SYS_listen, l, 5));
    let c = made(AF_INET, SOCK_STREAM);
    ok(connect(c, &four(AF_INET, LO, port(l))));
    for s in [l, c] {
        err(connect(s, &four(AF_INET, LO, port(l))), EISCONN);
        err(connect(s, &four(AF_UNIX, ANY, 0)), EISCONN);
        err(connect(s, &four(AF_INET, LO, 0)[..8]), EISCONN);
        err(connect(s, &[2]), EINVAL);
    }
    shut([l, c]);
}

fn send_families() {
    let to = made(AF_INET, SOCK_DGRAM);
    ok(bind(to, &four(AF_INET, LO, 0)));
    let to6 = made(AF_INET6, SOCK_DGRAM);
    ok(bind(to6, &six(AF_INET6, 1, 0)));
    for family in [AF_INET, AF_UNSPEC] {
        each(AF_INET, SOCK_DGRAM, &four(family, LO, port(to)), send, 16, &[EINVAL], 0);
    }
    each(AF_INET, SOCK_DGRAM, &four(AF_UNIX, LO, port(to)), send, 16, &[EINVAL], EAFNOSUPPORT);
    each(AF_INET6, SOCK_DGRAM, &six(AF_INET6, 1, port(to6)), send, 24, &[EINVAL], 0);
    each(AF_INET6, SOCK_DGRAM, &four(AF_INET, LO, port(to)), send, 16, &[EINVAL], 0);
    each(AF_INET6, SOCK_DGRAM, &six(AF_UNIX, 1, 1), send, 24, &[EINVAL], EINVAL);
    // No address at all.
    each(AF_INET6, SOCK_DGRAM, &six(AF_UNSPEC, 1, 1), send, 2, &[EINVAL], EDESTADDRREQ);
    let only = made(AF_INET6, SOCK_DGRAM);
    ok(sys!(SYS_setsockopt, only, SOL_IPV6, IPV6_V6ONLY, &1i32, 4));
    err(send(only, &four(AF_INET, LO, port(to))), ENETUNREACH);
    ok(connect(only, &six(AF_INET6, 1, port(to6))));
    eq(send(only, &six(AF_UNSPEC, 0, 0)), 1);
    // TCP does not look at it.
    let t = made(AF_INET, SOCK_STREAM);
    for a in [four(AF_UNIX, ANY, 0), four(AF_INET, LO, 1)[..8].to_vec()] {
        err(send(t, &a), EPIPE);
    }
    shut([to, to6, only, t]);
}

/// AF_UNSPEC with the wildcard is AF_INET with it, its port included.
fn unspec_is_bound() {
    let s = made(AF_INET, SOCK_DGRAM);
    ok(bind(s, &four(AF_UNSPEC, ANY, 0)));
    let bound = name(SYS_getsockname, s);
    eq((bound[0], &bound[4..8]), (AF_INET as u8, &ANY[..]));
    check(port(s) != 0, "a port was chosen");
    err(bind(s, &four(AF_UNSPEC, ANY, 0)), EINVAL);
    let t = made(AF_INET, SOCK_DGRAM);
    err(bind(t, &four(AF_UNSPEC, ANY, port(s))), EADDRINUSE);
    eq(send(t, &four(AF_UNSPEC, LO, port(s))), 1);
    let mut b = [0u8; 2];
    eq(sys!(SYS_recvfrom, s, &mut b, 2, 0, 0, 0), 1);
    shut([s, t]);
}

fn udp_dissolved() {
    for (family, a) in [(AF_INET, four(AF_INET, LO, 0)), (AF_INET6, six(AF_INET6, 1, 0))] {
        let to = made(family, SOCK_DGRAM);
        ok(bind(to, &a));
        let peer = name(SYS_getsockname, to);
        let unspec = [0u8; 16];
        let s = made(family, SOCK_DGRAM);
        // Nothing to dissolve.
        ok(connect(s, &unspec));
        ok(connect(s, &peer));
        eq(name(SYS_getpeername, s), peer.clone());
        ok(connect(s, &unspec[..2]));
        err(sys!(SYS_getpeername, s, &mut [0u8; 28], &mut 28u32), ENOTCONN);
        // Neither address nor port were chosen.
        check(name(SYS_getsockname, s)[2..].iter().all(|b| *b == 0), "nothing is left");
        err(sys!(SYS_sendto, s, b"x", 1, 0, 0, 0), EDESTADDRREQ);
        ok(connect(s, &peer));
        eq(sys!(SYS_sendto, s, b"x", 1, 0, 0, 0), 1);
        shut([to, s]);
    }
}

fn get_own(fd: i32) -> [i64; 3] {
    let told = |request| {
        let mut who = 77i32;
        ok(sys!(SYS_ioctl, fd, request, &mut who));
        i64::from(who)
    };
    [sys!(SYS_fcntl, fd, F_GETOWN), told(FIOGETOWN), told(SIOCGPGRP)]
}

fn sockets() -> Vec<i32> {
    let mut all: Vec<i32> = [AF_INET, AF_INET6, AF_UNIX]
        .iter()
        .flat_map(|family| [made(*family, SOCK_STREAM), made(*family, SOCK_DGRAM)])
        .collect();
    all.push(made(AF_UNIX, SOCK_SEQPACKET));
    all.push(made(AF_NETLINK, SOCK_RAW));
    all
}

fn owners() {
    let (me, group) = (sys!(SYS_getpid), sys!(SYS_getpgrp));
    for s in sockets() {
        eq(get_own(s), [0; 3]);
        for request in [FIOSETOWN, SIOCSPGRP] {
            for who in [me, -group, 0] {
                ok(sys!(SYS_ioctl, s, request, &(who as i32)));
                eq(get_own(s), [who; 3]);
            }
        }
        for who in [me, -group, 0] {
            ok(sys!(SYS_fcntl, s, F_SETOWN, who));
            eq(get_own(s), [who; 3]);
        }
        // F_SETOWN_EX with a thread.
        ok(sys!(SYS_fcntl, s, 15, &[0i32, sys!(SYS_gettid) as i32]));
        eq(get_own(s), [sys!(SYS_gettid); 3]);
        // The dead own nothing.
        let dead = child(forever);
        ok(sys!(SYS_ioctl, s, FIOSETOWN, &dead));
        ok(sys!(SYS_kill, dead, SIGKILL));
        killed_by(dead, SIGKILL);
        eq(get_own(s), [0; 3]);
        shut([s]);
    }
}

fn owner_errors() {
    for s in sockets() {
        for request in [FIOSETOWN, SIOCSPGRP] {
            err(sys!(SYS_ioctl, s, request, &i32::MIN), EINVAL);
            err(sys!(SYS_ioctl, s, request, &99_999_999i32), ESRCH);
            err(sys!(SYS_ioctl, s, request, &-99_999_999i32), ESRCH);
            err(sys!(SYS_ioctl, s, request, bad()), EFAULT);
        }
        for request in [FIOGETOWN, SIOCGPGRP] {
            err(sys!(SYS_ioctl, s, request, bad()), EFAULT);
        }
        eq(get_own(s), [0; 3]);
        shut([s]);
    }
}

/// The requests are for sockets alone.
fn owners_of_others() {
    let p = pipe_pair();
    let f = ok(sys!(SYS_open, c"/proc/self/stat", O_RDONLY)) as i32;
    let e = ok(sys!(SYS_eventfd2, 0, 0)) as i32;
    for fd in [p[0], f, e] {
        for request in [FIOSETOWN, SIOCSPGRP, FIOGETOWN, SIOCGPGRP] {
            err(sys!(SYS_ioctl, fd, request, &mut 0i32), ENOTTY);
        }
    }
    shut([p[0], p[1], f, e]);
}
