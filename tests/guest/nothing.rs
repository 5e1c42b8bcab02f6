//! Transfers of no bytes, and of sockets that never were connected.

use crate::sockets::pair;
use guest_tests::*;
use libc::*;

cases![read_of_nothing, write_of_nothing, receive_nothing, reset_by_nothing, never_connected, other_end_of_a_pipe];

/// Two empty pieces.
const NONE: [u64; 4] = [0; 4];

fn receive(s: i32, len: usize, flags: i32) -> i64 {
    sys!(SYS_recvfrom, s, &mut [0u8; 16], len, flags, 0, 0)
}

/// read(2) and readv(2) of a socket neither wait for a message nor take one.
fn read_of_nothing() {
    for kind in [SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET] {
        let [a, b] = pair(kind);
        eq(sys!(SYS_read, a, &mut [0u8; 1], 0), 0);
        eq(sys!(SYS_readv, a, &NONE, 2), 0);
        eq(sys!(SYS_readv, a, &NONE, 0), 0);
        ok(sys!(SYS_write, b, b"abc", 3));
        eq(sys!(SYS_read, a, &mut [0u8; 1], 0), 0);
        eq(sys!(SYS_readv, a, &NONE, 2), 0);
        eq(receive(a, 16, MSG_DONTWAIT), 3);
        shut([a, b]);
    }
    for (family, kind) in [(AF_INET, SOCK_STREAM), (AF_INET, SOCK_DGRAM), (AF_UNIX, SOCK_STREAM)] {
        let s = ok(sys!(SYS_socket, family, kind, 0)) as i32;
        eq(sys!(SYS_read, s, &mut [0u8; 1], 0), 0);
        eq(sys!(SYS_readv, s, &NONE, 2), 0);
        shut([s]);
    }
    let e = ok(sys!(SYS_eventfd2, 0, 0)) as i32;
    err(sys!(SYS_read, e, &mut [0u8; 1], 0), EINVAL);
    eq(sys!(SYS_readv, e, &NONE, 2), 0);
    shut([e]);
}

/// write(2) sends an empty message, writev(2) none.
fn write_of_nothing() {
    let [a, b] = pair(SOCK_DGRAM);
    eq(sys!(SYS_writev, b, &NONE, 2), 0);
    eq(sys!(SYS_writev, b, &NONE, 0), 0);
    err(receive(a, 16, MSG_DONTWAIT), EAGAIN);
    eq(sys!(SYS_write, b, b"", 0), 0);
    eq(receive(a, 16, MSG_DONTWAIT), 0);
    err(receive(a, 16, MSG_DONTWAIT), EAGAIN);
    let p = pipe_pair();
    eq(sys!(SYS_sendfile, p[1], a, 0, 0), 0);
    shut([a, b, p[0], p[1]]);
}

/// recv(2) of no bytes waits as one of some does.
fn receive_nothing() {
    for kind in [SOCK_STREAM, SOCK_SEQPACKET] {
        let [a, b] = pair(kind);
        err(receive(a, 0, MSG_DONTWAIT), EAGAIN);
        ok(sys!(SYS_write, b, b"abc", 3));
        eq(receive(a, 0, MSG_DONTWAIT), 0);
        // What is left of a message is lost.
        let left = receive(a, 16, MSG_DONTWAIT);
        if kind == SOCK_STREAM { eq(left, 3) } else { err(left, EAGAIN) }
        shut([b]);
        eq(receive(a, 0, 0), 0);
        shut([a]);
    }
    let (l, a) = listener();
    let c = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    ok(sys!(SYS_connect, c, &a, 16));
    err(receive(c, 0, MSG_DONTWAIT), EAGAIN);
    shut([l, c]);
}

/// An empty piece of a stream goes to nobody, so nobody answers it with a reset.
fn reset_by_nothing() {
    let (l, a) = listener();
    let c = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    ok(sys!(SYS_connect, c, &a, 16));
    shut([ok(sys!(SYS_accept, l, 0, 0)) as i32]);
    eq(receive(c, 16, 0), 0);
    eq(sys!(SYS_sendto, c, b"", 0, MSG_NOSIGNAL, 0, 0), 0);
    eq(sys!(SYS_sendto, c, b"x", 1, MSG_NOSIGNAL, 0, 0), 1);
    shut([l, c]);
}

fn listener() -> (i32, [u8; 16]) {
    let l = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    let mut a = [0u8; 16];
    a[0] = AF_INET as u8;
    a[4..8].copy_from_slice(&[127, 0, 0, 1]);
    ok(sys!(SYS_bind, l, &a, 16));
    ok(sys!(SYS_listen, l, 8));
    ok(sys!(SYS_getsockname, l, &mut a, &mut 16u32));
    (l, a)
}

/// TCP takes a socket that has no connection for one whose connection has ended.
fn never_connected() {
    let fresh = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    let (l, _) = listener();
    for s in [fresh, l] {
        for flags in [0, MSG_OOB] {
            err(sys!(SYS_sendto, s, b"x", 1, MSG_NOSIGNAL | flags, 0, 0), EPIPE);
        }
        eq(status_of(|| _ = sys!(SYS_write, s, b"x", 1)), SIGPIPE);
        err(receive(s, 1, 0), ENOTCONN);
        err(receive(s, 0, 0), ENOTCONN);
    }
    let unix = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    err(sys!(SYS_sendto, unix, b"x", 1, 0, 0, 0), ENOTCONN);
    shut([fresh, l, unix]);
}

/// The wait status of a child in which SIGPIPE has its default action.
fn status_of(f: impl FnOnce()) -> i32 {
    let pid = child(|| {
        ok(sys!(SYS_rt_sigaction, SIGPIPE, &[0u64; 4], 0, 8));
        f();
        0
    });
    let mut status = 0;
    eq(sys!(SYS_wait4, pid, &mut status, 0, 0), i64::from(pid));
    status
}

/// Whether there is a position is asked before whether it may be read.
fn other_end_of_a_pipe() {
    let p = pipe_pair();
    err(sys!(SYS_pread64, p[1], &mut [0u8; 1], 1, 0), ESPIPE);
    err(sys!(SYS_pwrite64, p[0], &[0u8; 1], 1, 0), ESPIPE);
    err(sys!(SYS_read, p[1], &mut [0u8; 1], 1), EBADF);
    shut(p);
}
