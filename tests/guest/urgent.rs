//! Bytes sent out of band over AF_UNIX streams (unix(7), MSG_OOB), and the signal that tells of one (SIGURG, fcntl(2)).

use crate::sockets::pair;
use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

cases![
    read_apart, read_up_to_it, read_past_it, replaced, looked_at, inlined, changed_meanwhile, marks, with_the_end, left_unread, errors, of_messages,
    rights_of_it, no_room, waits_for_all, waits_up_to_it, waits_to_send, tells_the_owner, tells_the_owner_of_tcp, tells_by_a_chosen_signal
];

fn stream(inline: bool) -> [i32; 2] {
    let p = pair(SOCK_STREAM);
    set_inline(p[1], inline);
    p
}

fn set_inline(fd: i32, on: bool) {
    ok(sys!(SYS_setsockopt, fd, SOL_SOCKET, SO_OOBINLINE, &i32::from(on), 4));
}

fn send(fd: i32, data: &[u8], flags: i32) -> i64 {
    sys!(SYS_sendto, fd, data, data.len(), flags | MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0)
}

/// Sends text; `!` before it: its last byte out of band.
fn put(fd: i32, text: &str) {
    let (data, flags) = text.strip_prefix('!').map_or((text, 0), |rest| (rest, MSG_OOB));
    eq(send(fd, data.as_bytes(), flags), data.len() as i64);
}

fn get(fd: i32, room: usize, flags: i32) -> Result<String, i32> {
    let mut b = vec![0u8; room.max(1)];
    match sys!(SYS_recvfrom, fd, &mut b[..], room, flags | MSG_DONTWAIT, 0, 0) {
        n if n >= 0 => Ok(String::from_utf8(b[..n as usize].to_vec()).unwrap()),
        n => Err(-n as i32),
    }
}

fn said(text: &str) -> Result<String, i32> {
    Ok(text.into())
}

fn mark(fd: i32) -> bool {
    let mut at = -1i32;
    ok(sys!(SYS_ioctl, fd, SIOCATMARK, &mut at));
    at == 1
}

fn events(fd: i32) -> i16 {
    let mut p = pollfd { fd, events: POLLIN | POLLPRI, revents: 0 };
    sys!(SYS_poll, &mut p, 1, 0);
    p.revents
}

fn state(fd: i32) -> (bool, i16) {
    (mark(fd), events(fd))
}

const SIOCATMARK: c_ulong = 0x8905;
const BOTH: i16 = POLLIN | POLLPRI;

fn read_apart() {
    let p = stream(false);
    put(p[0], "!hello");
    eq(state(p[1]), (false, BOTH));
    eq(get(p[1], 10, MSG_OOB | MSG_PEEK), said("o"));
    eq(get(p[1], 10, MSG_OOB), said("o"));
    eq(get(p[1], 10, MSG_OOB), Err(EINVAL));
    eq(state(p[1]), (false, POLLIN));
    eq(get(p[1], 10, 0), said("hell"));
    eq(state(p[1]), (true, POLLIN));
    eq((get(p[1], 10, 0), state(p[1])), (Err(EAGAIN), (false, 0)));
    shut(p);
}

fn read_up_to_it() {
    let p = stream(false);
    put(p[0], "!hello");
    put(p[0], "world");
    eq((get(p[1], 20, 0), state(p[1])), (said("hell"), (true, BOTH)));
    // Who reads on loses it.
    eq((get(p[1], 20, 0), state(p[1])), (said("world"), (false, 0)));
    put(p[0], "!x");
    eq((get(p[1], 20, 0), state(p[1])), (Err(EAGAIN), (false, 0)));
    eq(get(p[1], 20, MSG_OOB), Err(EINVAL));
    shut(p);
}

fn read_past_it() {
    let p = stream(false);
    put(p[0], "!hello");
    eq(get(p[1], 2, 0), said("he"));
    eq(get(p[1], 1, MSG_OOB), said("o"));
    eq((get(p[1], 10, 0), mark(p[1])), (said("ll"), true));
    put(p[0], "wo");
    eq((get(p[1], 10, 0), state(p[1])), (said("wo"), (false, 0)));
    // Not even who wants all reads over it.
    put(p[0], "!hello");
    put(p[0], "wor");
    eq(sys!(SYS_recvfrom, p[1], &mut [0u8; 10], 10, MSG_WAITALL, 0, 0), 4);
    eq(get(p[1], 10, MSG_WAITALL), said("wor"));
    shut(p);
}

fn replaced() {
    // A second one makes the first a byte as others are.
    let p = stream(false);
    put(p[0], "!hello");
    put(p[0], "!world");
    eq((get(p[1], 20, 0), state(p[1])), (said("helloworl"), (true, BOTH)));
    eq((get(p[1], 20, 0), get(p[1], 1, MSG_OOB)), (Err(EAGAIN), Err(EINVAL)));
    // What was read apart before leaves no gap.
    put(p[0], "ab");
    put(p[0], "!c");
    put(p[0], "de");
    eq(get(p[1], 1, MSG_OOB), said("c"));
    put(p[0], "!f");
    eq((get(p[1], 10, 0), mark(p[1])), (said("abde"), true));
    eq(get(p[1], 1, MSG_OOB), said("f"));
    shut(p);
}

fn looked_at() {
    for inline in [false, true] {
        let p = stream(inline);
        put(p[0], "!hello");
        put(p[0], "wor");
        eq(get(p[1], 10, MSG_PEEK), said("hell"));
        eq(get(p[1], 10, 0), said("hell"));
        eq(get(p[1], 10, MSG_PEEK), said(if inline { "owor" } else { "wor" }));
        eq(state(p[1]), (true, BOTH));
        eq(get(p[1], 1, 0), said(if inline { "o" } else { "w" }));
        eq(events(p[1]), POLLIN);
        shut(p);
    }
}

fn inlined() {
    let p = stream(true);
    put(p[0], "!hello");
    put(p[0], "world");
    eq((get(p[1], 1, MSG_OOB), state(p[1])), (Err(EINVAL), (false, BOTH)));
    eq((get(p[1], 20, 0), state(p[1])), (said("hell"), (true, BOTH)));
    eq((get(p[1], 20, 0), state(p[1])), (said("oworld"), (false, 0)));
    put(p[0], "!x");
    put(p[0], "!y");
    eq((get(p[1], 10, 0), state(p[1])), (said("x"), (true, BOTH)));
    eq((get(p[1], 10, 0), state(p[1])), (said("y"), (false, 0)));
    shut(p);
}

fn changed_meanwhile() {
    // The option counts when something is read.
    let p = stream(false);
    put(p[0], "!hello");
    set_inline(p[1], true);
    eq((get(p[1], 1, MSG_OOB), get(p[1], 10, 0), get(p[1], 10, 0)), (Err(EINVAL), said("hell"), said("o")));
    put(p[0], "!hello");
    set_inline(p[1], false);
    eq((get(p[1], 1, MSG_OOB), get(p[1], 10, 0), mark(p[1])), (said("o"), said("hell"), true));
    shut(p);
}

fn marks() {
    let p = stream(false);
    put(p[0], "!x");
    eq((mark(p[1]), get(p[1], 1, MSG_OOB), mark(p[1])), (true, said("x"), true));
    put(p[0], "!y");
    eq((get(p[1], 1, MSG_OOB), mark(p[1])), (said("y"), true));
    put(p[0], "ab");
    eq((mark(p[1]), get(p[1], 10, 0), mark(p[1])), (true, said("ab"), false));
    let mut n = -1i32;
    put(p[0], "!abc");
    ok(sys!(SYS_ioctl, p[1], FIONREAD, &mut n));
    eq(n, 3);
    eq(get(p[1], 1, MSG_OOB), said("c"));
    ok(sys!(SYS_ioctl, p[1], FIONREAD, &mut n));
    eq(n, 2);
    shut(p);
}

fn with_the_end() {
    for (inline, rest) in [(false, ""), (true, "o")] {
        let p = stream(inline);
        put(p[0], "!hello");
        shut([p[0]]);
        eq((get(p[1], 10, 0), get(p[1], 10, 0), get(p[1], 10, 0)), (said("hell"), said(rest), said("")));
        shut([p[1]]);
    }
}

fn left_unread() {
    // The other end hears of what was not read; a mark is nothing.
    for (takes, heard) in [(false, Err(ECONNRESET)), (true, said(""))] {
        let p = stream(false);
        put(p[0], "!x");
        if takes {
            eq(get(p[1], 1, MSG_OOB), said("x"));
        }
        shut([p[1]]);
        eq(get(p[0], 10, 0), heard);
        shut([p[0]]);
    }
}

fn errors() {
    let p = stream(false);
    err(send(p[0], b"", MSG_OOB), EOPNOTSUPP);
    eq(get(p[1], 1, MSG_OOB), Err(EINVAL));
    err(sys!(SYS_ioctl, p[1], SIOCATMARK, 8), EFAULT);
    ok(sys!(SYS_shutdown, p[1], SHUT_RD));
    err(send(p[0], b"x", MSG_OOB), EPIPE);
    shut(p);
    let p = stream(false);
    shut([p[1]]);
    err(send(p[0], b"x", MSG_OOB), EPIPE);
    shut([p[0]]);
    let s = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    err(send(s, b"x", MSG_OOB), ENOTCONN);
    eq((get(s, 1, MSG_OOB), mark(s)), (Err(EINVAL), false));
    shut([s]);
}

fn of_messages() {
    for kind in [SOCK_DGRAM, SOCK_SEQPACKET] {
        let p = pair(kind);
        err(send(p[0], b"x", MSG_OOB), EOPNOTSUPP);
        eq(get(p[1], 1, MSG_OOB), Err(EOPNOTSUPP));
        err(sys!(SYS_ioctl, p[1], SIOCATMARK, &mut 0i32), EOPNOTSUPP);
        shut(p);
    }
}

/// Descriptors that travel with the byte are received with it, in its place.
fn rights_of_it() {
    for inline in [true, false] {
        let p = stream(inline);
        let pipe = pipe_pair();
        let mut control = [0u8; 24];
        control[..8].copy_from_slice(&20u64.to_ne_bytes());
        control[8..12].copy_from_slice(&SOL_SOCKET.to_ne_bytes());
        control[12..16].copy_from_slice(&SCM_RIGHTS.to_ne_bytes());
        control[16..20].copy_from_slice(&pipe[1].to_ne_bytes());
        let mut byte = *b"x";
        let mut v = iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let mut header: msghdr = unsafe { std::mem::zeroed() };
        (header.msg_iov, header.msg_iovlen) = (&raw mut v, 1);
        (header.msg_control, header.msg_controllen) = (control.as_mut_ptr().cast(), 24);
        eq(sys!(SYS_sendmsg, p[0], &header, MSG_OOB), 1);
        shut([pipe[1]]);
        control.fill(0);
        let n = sys!(SYS_recvmsg, p[1], &mut header, if inline { 0 } else { MSG_OOB });
        eq((n, header.msg_controllen), (1, if inline { 24 } else { 0 }));
        if inline {
            shut([i32::from_ne_bytes(control[16..20].try_into().unwrap())]);
        } else {
            eq(get(p[1], 1, 0), Err(EAGAIN));
        }
        // Nobody has the other end any more.
        eq(sys!(SYS_read, pipe[0], &mut byte, 1), 0);
        shut([pipe[0]]);
        shut(p);
    }
}

/// Bytes out of band take room as others do.
fn no_room() {
    let p = stream(true);
    ok(sys!(SYS_setsockopt, p[0], SOL_SOCKET, SO_SNDBUF, &4096i32, 4));
    let mut count = 0i64;
    loop {
        match send(p[0], b"x", MSG_OOB) {
            1 => count += 1,
            n => {
                eq(n, -i64::from(EAGAIN));
                break;
            }
        }
        check(count < 100_000, "it is full");
    }
    ok(sys!(SYS_setsockopt, p[0], SOL_SOCKET, SO_SNDTIMEO, &[0i64, 30_000], 16));
    err(sys!(SYS_sendto, p[0], b"x", 1, MSG_OOB, 0, 0), EAGAIN);
    let mut n = 0i64;
    while let Ok(text) = get(p[1], 10_000, 0) {
        n += text.len() as i64;
    }
    eq(n, count);
    put(p[0], "!y");
    shut(p);
}

/// Receives with MSG_WAITALL; sends more meanwhile.
fn all(p: [i32; 2], room: usize, more: &str) -> String {
    let read = move || {
        let mut b = vec![0u8; room];
        let n = ok(sys!(SYS_recvfrom, p[1], &mut b[..], room, MSG_WAITALL, 0, 0));
        String::from_utf8(b[..n as usize].to_vec()).unwrap()
    };
    if more.is_empty() {
        return read();
    }
    let reading = blocked(read);
    put(p[0], more);
    reading.join().expect("no panic")
}

/// One that was read is not in the way of a later MSG_WAITALL.
fn waits_for_all() {
    let p = stream(false);
    put(p[0], "!x");
    eq(get(p[1], 1, MSG_OOB), said("x"));
    put(p[0], "abc");
    eq(all(p, 5, "de"), "abcde");
    shut(p);
}

/// MSG_WAITALL ends where a read ends: at one, and where one was.
fn waits_up_to_it() {
    for (inline, taken, rest) in [(false, false, ""), (false, true, ""), (true, false, "!")] {
        let p = stream(inline);
        put(p[0], "12");
        put(p[0], "!!");
        if taken {
            eq(get(p[1], 1, MSG_OOB), said("!"));
        }
        eq(all(p, 4, ""), "12");
        put(p[0], "34");
        eq(get(p[1], 9, 0), Ok(format!("{rest}34")));
        shut(p);
    }
}

/// What is longer than the buffer goes on as it is read, its last byte out of band.
fn waits_to_send() {
    const LEN: usize = 1_000_000;
    for ends in [false, true] {
        let p = stream(true);
        let sending = std::thread::spawn(move || {
            sys!(SYS_sendto, p[0], vec![b'x'; LEN].as_slice(), LEN, MSG_OOB | MSG_NOSIGNAL, 0, 0)
        });
        let mut n = 0;
        let mut b = vec![0u8; 50_000];
        while n < if ends { LEN / 2 } else { LEN } {
            n += ok(sys!(SYS_recvfrom, p[1], &mut b[..], b.len(), 0, 0, 0)) as usize;
            check(mark(p[1]) == (n == LEN - 1), "the last is out of band");
        }
        if ends {
            shut([p[1]]);
        }
        let sent = sending.join().expect("no panic");
        check(if ends { (n as i64..LEN as i64).contains(&sent) } else { sent == LEN as i64 }, &format!("{sent} were sent"));
        shut(if ends { &p[..1] } else { &p[..] }.to_vec());
    }
}

static URGENT: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: c_int) {
    URGENT.fetch_add(signal, Ordering::SeqCst);
}

fn tells(from: i32, to: i32) {
    unsafe { libc::signal(SIGURG, note as *const () as usize) };
    eq(send(from, b"a", MSG_OOB), 1);
    ok(sys!(SYS_fcntl, to, F_SETOWN, sys!(SYS_getpid)));
    for heard in 1..3 {
        eq(send(from, b"a", MSG_OOB), 1);
        until("the signal", || URGENT.load(Ordering::SeqCst) >= heard * SIGURG);
        eq(URGENT.load(Ordering::SeqCst), heard * SIGURG);
    }
    // Other bytes do not.
    eq(send(from, b"b", 0), 1);
    ok(sys!(SYS_fcntl, to, F_SETOWN, 0));
    eq(send(from, b"a", MSG_OOB), 1);
    sleep_ms(20);
    eq(URGENT.load(Ordering::SeqCst), 2 * SIGURG);
}

fn tells_the_owner() {
    in_child(|| {
        let p = stream(false);
        tells(p[0], p[1]);
    });
}

fn tells_the_owner_of_tcp() {
    in_child(|| {
        let l = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
        ok(sys!(SYS_listen, l, 1));
        let mut a = [0u8; 16];
        ok(sys!(SYS_getsockname, l, &mut a, &mut 16u32));
        let c = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
        ok(sys!(SYS_connect, c, &a, 16));
        let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
        tells(c, s);
    });
}

static BY: AtomicI32 = AtomicI32::new(0);
static HEARD: AtomicBool = AtomicBool::new(false);

extern "C" fn by(_: c_int, info: *const siginfo_t, _: *const c_void) {
    // SAFETY: the kernel's own.
    let (code, band) = unsafe { ((*info).si_code, *info.cast::<i64>().add(2)) };
    // POLL_PRI
    if code == 5 {
        BY.store(band as i32, Ordering::SeqCst);
    }
    HEARD.store(true, Ordering::SeqCst);
}

/// With O_ASYNC and F_SETSIG that signal says that something urgent came.
fn tells_by_a_chosen_signal() {
    in_child(|| {
        let p = stream(false);
        // SAFETY: any bytes are a struct sigaction.
        let mut action: sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = by as *const () as usize;
        action.sa_flags = SA_SIGINFO;
        // SAFETY: the handler stores two words.
        unsafe { sigaction(SIGRTMIN() + 1, &action, std::ptr::null_mut()) };
        // SAFETY: the same.
        unsafe { libc::signal(SIGURG, note as *const () as usize) };
        ok(sys!(SYS_fcntl, p[1], F_SETOWN, sys!(SYS_getpid)));
        ok(sys!(SYS_fcntl, p[1], 10, SIGRTMIN() + 1));
        ok(sys!(SYS_fcntl, p[1], F_SETFL, O_ASYNC));
        put(p[0], "b");
        until("the signal", || HEARD.load(Ordering::SeqCst));
        eq(BY.load(Ordering::SeqCst), 0);
        put(p[0], "!a");
        until("the signal", || BY.load(Ordering::SeqCst) != 0);
        eq(BY.load(Ordering::SeqCst), i32::from(POLLPRI | POLLRDBAND));
        shut(p);
    });
}
