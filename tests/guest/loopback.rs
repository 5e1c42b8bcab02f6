//! TCP and UDP over loopback; sockets in /proc/net.

use crate::socket::{addr, listener, pair, path_addr, recv, send};
use guest_tests::*;
use libc::*;

cases![
    inet_loopback_stream, inet_loopback_udp, inet_in_proc, unix_in_proc, inet_refused
];

fn inet(kind: i32) -> i32 {
    let r = sys!(SYS_socket, AF_INET, kind, 0);
    if r == -i64::from(EAFNOSUPPORT) {
        skip("no IPv4");
    }
    ok(r) as i32
}

fn loopback(port: u16) -> [u8; 16] {
    let mut a = [0u8; 16];
    a[0] = AF_INET as u8;
    a[2..4].copy_from_slice(&port.to_be_bytes());
    a[4..8].copy_from_slice(&[127, 0, 0, 1]);
    a
}

fn port(fd: i32) -> u16 {
    let (mut b, mut n) = ([0u8; 16], 16u32);
    ok(sys!(SYS_getsockname, fd, &mut b, &mut n));
    u16::from_be_bytes([b[2], b[3]])
}

fn inet_loopback_stream() {
    let l = inet(SOCK_STREAM);
    ok(sys!(SYS_bind, l, &loopback(0), 16));
    ok(sys!(SYS_listen, l, 5));
    let a = loopback(port(l));
    let c = inet(SOCK_STREAM);
    ok(sys!(SYS_connect, c, &a, 16));
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    eq(send(c, b"ping", 0), 4);
    let mut b = [0u8; 8];
    eq(recv(s, &mut b, 0), 4);
    shut([c]);
    eq(recv(s, &mut b, 0), 0);
    shut([l, s]);
}

/// The fields of a socket's line of a file of /proc/net, found by its inode number.
fn line_of(file: &str, fd: i32, inode: usize) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/net/{file}")).expect(file);
    let ino = stat_fd(fd).st_ino.to_string();
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let found = text.lines().skip(1).map(fields).find(|f| f.get(inode) == Some(&ino));
    found.unwrap_or_else(|| panic!("inode {ino} is not in {text}"))
}

fn inet_in_proc() {
    let at = |fd: i32| format!("0100007F:{:04X}", port(fd));
    let l = inet(SOCK_STREAM);
    ok(sys!(SYS_bind, l, &loopback(0), 16));
    ok(sys!(SYS_listen, l, 5));
    let c = inet(SOCK_STREAM);
    ok(sys!(SYS_connect, c, &loopback(port(l)), 16));
    let waiting = line_of("tcp", l, 9);
    eq(waiting[1..5].join(" "), format!("{} 00000000:0000 0A 00000000:00000001", at(l)));
    // SAFETY: a call of libc with live arguments.
    eq(waiting[7..9].join(" "), format!("{} 0", unsafe { geteuid() }));
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    eq(send(c, b"ping", 0), 4);
    eq(line_of("tcp", c, 9)[1..4].join(" "), format!("{} {} 01", at(c), at(l)));
    eq(line_of("tcp", s, 9)[1..5].join(" "), format!("{} {} 01 00000000:00000004", at(l), at(c)));
    shut([c, s, l]);
    let u = inet(SOCK_DGRAM);
    ok(sys!(SYS_bind, u, &loopback(0), 16));
    eq(line_of("udp", u, 9)[1..4].join(" "), format!("{} 00000000:0000 07", at(u)));
    eq(line_of("udp", u, 9).len(), 13);
    let v = inet(SOCK_DGRAM);
    ok(sys!(SYS_connect, v, &loopback(port(u)), 16));
    eq(line_of("udp", v, 9)[1..4].join(" "), format!("{} {} 01", at(v), at(u)));
    shut([u, v]);
}

fn unix_in_proc() {
    let t = Tmp::new();
    let (a, name) = (path_addr(&t, "s"), t.path("s").to_str().unwrap().to_owned());
    let l = listener(&a);
    eq(line_of("unix", l, 6)[2..].join(" "), format!("00000000 00010000 0001 01 {} {name}", stat_fd(l).st_ino));
    let s = pair(SOCK_SEQPACKET);
    eq(line_of("unix", s[0], 6)[2..6].join(" "), "00000000 00000000 0005 03");
    let d = ok(sys!(SYS_socket, AF_UNIX, SOCK_DGRAM, 0)) as i32;
    let (abstract_name, len) = addr(b"\0in_proc");
    ok(sys!(SYS_bind, d, &abstract_name[..], len));
    let line = line_of("unix", d, 6);
    eq((line[4].as_str(), line[7].as_str()), ("0002", "@in_proc"));
    shut([l, s[0], s[1], d]);
}

fn inet_loopback_udp() {
    let r = inet(SOCK_DGRAM);
    ok(sys!(SYS_bind, r, &loopback(0), 16));
    let a = loopback(port(r));
    let s = inet(SOCK_DGRAM);
    eq(sys!(SYS_sendto, s, b"abc", 3, 0, &a, 16), 3);
    eq(recv(r, &mut [0u8; 8], 0), 3);
    shut([r, s]);
}

fn inet_refused() {
    let l = inet(SOCK_STREAM);
    ok(sys!(SYS_bind, l, &loopback(0), 16));
    let a = loopback(port(l));
    let c = inet(SOCK_STREAM);
    // Bound but not listening.
    err(sys!(SYS_connect, c, &a, 16), ECONNREFUSED);
    shut([l, c]);
}
