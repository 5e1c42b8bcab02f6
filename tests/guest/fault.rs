//! Reads to memory that is not there: what is left in a stream, and what is lost with a message (read(2), recvmsg(2), EFAULT).

use guest_tests::*;
use libc::*;

cases![
    unix_stream, tcp_stream, unix_messages, udp_messages, peeked, received, sysv_message, queue_message, event_count, inotify_event, signal_event,
    vector
];

const DATA: &[u8] = b"abcdefgh";

fn read(fd: i32, at: *mut u8, len: usize) -> i64 {
    sys!(SYS_read, fd, at as usize, len)
}

fn rest(fd: i32) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let mut b = [0u8; 64];
        let n = sys!(SYS_recvfrom, fd, &mut b, 64, MSG_DONTWAIT, 0, 0);
        if n <= 0 {
            return out;
        }
        out.extend(&b[..n as usize]);
    }
}

fn pair(kind: i32) -> [i32; 2] {
    let mut p = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, kind, 0, &mut p));
    p
}

fn lo(port: u16) -> [u8; 16] {
    let mut a = [0u8; 16];
    a[0] = AF_INET as u8;
    a[2..4].copy_from_slice(&port.to_be_bytes());
    a[4..8].copy_from_slice(&[127, 0, 0, 1]);
    a
}

fn bound(kind: i32) -> (i32, [u8; 16]) {
    let fd = ok(sys!(SYS_socket, AF_INET, kind, 0)) as i32;
    ok(sys!(SYS_bind, fd, &lo(0), 16));
    let (mut a, mut n) = ([0u8; 16], 16u32);
    ok(sys!(SYS_getsockname, fd, &mut a, &mut n));
    (fd, a)
}

fn tcp() -> [i32; 2] {
    let (l, a) = bound(SOCK_STREAM);
    ok(sys!(SYS_listen, l, 1));
    let c = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    ok(sys!(SYS_connect, c, &a, 16));
    let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
    shut([l]);
    [s, c]
}

fn udp() -> [i32; 2] {
    let (r, a) = bound(SOCK_DGRAM);
    let s = ok(sys!(SYS_socket, AF_INET, SOCK_DGRAM, 0)) as i32;
    ok(sys!(SYS_connect, s, &a, 16));
    [r, s]
}

fn send(fd: i32, data: &[u8]) {
    eq(sys!(SYS_write, fd, data, data.len()), data.len() as i64);
}

/// Waits for the data: over TCP it may take a moment.
fn come(fd: i32) {
    let mut p = pollfd { fd, events: POLLIN, revents: 0 };
    eq(sys!(SYS_poll, &mut p, 1, -1), 1);
}

fn stream(p: [i32; 2]) {
    let g = Guarded::new();
    send(p[1], DATA);
    come(p[0]);
    for room in [0, 4] {
        err(read(p[0], g.tail(room), 64), EFAULT);
    }
    err(read(p[0], bad(), 64), EFAULT);
    eq(read(p[0], g.tail(4), 4), 4);
    // What was sent apart and fits is read; nothing is lost either way.
    eq(rest(p[0]), b"efgh".to_vec());
    send(p[1], b"abc");
    send(p[1], b"defgh");
    sleep_ms(20);
    let n = read(p[0], g.tail(4), 64);
    let n = if n == -i64::from(EFAULT) { 0 } else { n as usize };
    eq(rest(p[0]), DATA[n..].to_vec());
    shut(p);
}

fn unix_stream() {
    stream(pair(SOCK_STREAM));
}

fn tcp_stream() {
    stream(tcp());
}

fn messages(p: [i32; 2]) {
    let g = Guarded::new();
    for room in [0, 4] {
        send(p[1], DATA);
        send(p[1], b"2nd");
        come(p[0]);
        err(read(p[0], g.tail(room), 64), EFAULT);
        // The message is gone, the next is there.
        eq(rest(p[0]), b"2nd".to_vec());
    }
    shut(p);
}

fn unix_messages() {
    messages(pair(SOCK_DGRAM));
    messages(pair(SOCK_SEQPACKET));
}

fn udp_messages() {
    messages(udp());
}

fn peeked() {
    for p in [pair(SOCK_STREAM), pair(SOCK_DGRAM), pair(SOCK_SEQPACKET), tcp(), udp()] {
        let g = Guarded::new();
        send(p[1], DATA);
        come(p[0]);
        err(sys!(SYS_recvfrom, p[0], g.tail(4) as usize, 64, MSG_PEEK, 0, 0), EFAULT);
        eq(rest(p[0]), DATA.to_vec());
        shut(p);
    }
}

fn received() {
    for p in [pair(SOCK_STREAM), tcp()] {
        let g = Guarded::new();
        send(p[1], DATA);
        come(p[0]);
        err(sys!(SYS_recvfrom, p[0], g.tail(4) as usize, 64, 0, 0, 0), EFAULT);


        let iov = [g.tail(3) as usize, 64];
        // SAFETY: plain data, for which zeroes are a value.
        let mut m: msghdr = unsafe { std::mem::zeroed() };
        (m.msg_iov, m.msg_iovlen) = (iov.as_ptr().cast_mut().cast(), 1);
        err(sys!(SYS_recvmsg, p[0], &mut m, 0), EFAULT);
        eq(rest(p[0]), DATA.to_vec());
        shut(p);
    }
}

fn sysv_message() {
    let id = ok(sys!(SYS_msgget, IPC_PRIVATE, 0o600));
    let mut message = 7i64.to_ne_bytes().to_vec();
    message.extend(DATA);
    let g = Guarded::new();
    for room in [0, 12] {
        ok(sys!(SYS_msgsnd, id, &message[..], 8, 0));
        err(sys!(SYS_msgrcv, id, g.tail(room) as usize, 64, 0, IPC_NOWAIT), EFAULT);
        err(sys!(SYS_msgrcv, id, &mut [0u8; 80], 64, 0, IPC_NOWAIT), ENOMSG);
    }
    ok(sys!(SYS_msgctl, id, IPC_RMID, 0));
}

fn queue_message() {
    let name = unique("fault");
    let q = sys!(SYS_mq_open, name, O_CREAT | O_RDWR | O_NONBLOCK, 0o600, 0);
    if q == -i64::from(ENOSYS) {
        skip("no message queues");
    }
    let q = ok(q) as i32;
    let g = Guarded::new();
    for room in [0, 4] {
        ok(sys!(SYS_mq_timedsend, q, DATA, 8, 0, 0));
        err(sys!(SYS_mq_timedreceive, q, g.tail(room) as usize, 8192, 0, 0), EFAULT);
        err(sys!(SYS_mq_timedreceive, q, &mut [0u8; 8192][..], 8192, 0, 0), EAGAIN);
    }
    ok(sys!(SYS_mq_unlink, name));
    shut([q]);
}

fn event_count() {
    let g = Guarded::new();
    for room in [0, 4] {
        let fd = ok(sys!(SYS_eventfd2, 5, EFD_NONBLOCK)) as i32;
        err(read(fd, g.tail(room), 8), EFAULT);
        err(read(fd, [0u8; 8].as_mut_ptr(), 8), EAGAIN);
        shut([fd]);
    }
}

fn inotify_event() {
    let t = Tmp::new();
    let g = Guarded::new();
    let fd = ok(sys!(SYS_inotify_init1, IN_NONBLOCK)) as i32;
    ok(sys!(SYS_inotify_add_watch, fd, t.path(""), IN_CREATE));
    for name in ["one", "two"] {
        shut([t.file(name, b"")]);
    }
    err(read(fd, g.tail(4), 512), EFAULT);
    // The first is gone.
    let mut b = [0u8; 512];
    eq(read(fd, b.as_mut_ptr(), 512), 32);
    eq(&b[16..19], b"two");
    shut([fd]);
}

fn signal_event() {
    let old = guest_tests::sig::mask(SIG_BLOCK, guest_tests::sig::set(&[SIGUSR1, SIGUSR2]));
    let set = guest_tests::sig::set(&[SIGUSR1, SIGUSR2]);
    let fd = ok(sys!(SYS_signalfd4, -1, &set, 8, SFD_NONBLOCK)) as i32;
    guest_tests::sig::raise(SIGUSR1);
    guest_tests::sig::raise(SIGUSR2);
    let g = Guarded::new();
    err(read(fd, g.tail(4), 256), EFAULT);
    let mut b = [0u8; 256];
    eq(read(fd, b.as_mut_ptr(), 256), 128);
    eq(u32::from_ne_bytes(b[..4].try_into().unwrap()), SIGUSR2 as u32);
    shut([fd]);
    guest_tests::sig::mask(SIG_SETMASK, old);
}

fn vector() {
    let p = pair(SOCK_STREAM);
    let g = Guarded::new();
    send(p[1], DATA);
    let mut first = [0u8; 3];
    let iov = [first.as_mut_ptr() as usize, 3, g.tail(2) as usize, 64];
    err(sys!(SYS_readv, p[0], iov.as_ptr() as usize, 2), EFAULT);
    eq(rest(p[0]), DATA.to_vec());
    shut(p);
}
