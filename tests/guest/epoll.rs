//! epoll(7): flags, rules and errors, epolls within epolls, and ten thousand descriptors in one.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

cases![
    levels_and_edges, one_shot, exclusive_rules, exclusive_wakes_one, wakeup_flag, loops, nests, closed_ones, hangup_of_a_half, errors, listener,
    many_flat, sizes, bands
];

fn epoll() -> i32 {
    ok(sys!(SYS_epoll_create1, EPOLL_CLOEXEC)) as i32
}

#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
struct Event {
    events: u32,
    data: u64,
}

fn ctl(ep: i32, op: i32, fd: i32, events: i32, data: u64) -> i64 {
    sys!(SYS_epoll_ctl, ep, op, fd, &Event { events: events as u32, data })
}

fn add(ep: i32, fd: i32, events: i32) -> i64 {
    ctl(ep, EPOLL_CTL_ADD, fd, events, fd as u64)
}

fn wait(ep: i32, ms: i32) -> Vec<(i32, u64)> {
    let mut e = [Event::default(); 64];
    let n = ok(sys!(SYS_epoll_wait, ep, e.as_mut_ptr() as usize, 64, ms)) as usize;
    e[..n].iter().map(|e| (e.events as i32, e.data)).collect()
}

fn put(fd: i32) {
    eq(sys!(SYS_write, fd, b"x", 1), 1);
}

fn take(fd: i32) {
    eq(sys!(SYS_read, fd, &mut [0u8; 1], 1), 1);
}

fn levels_and_edges() {
    let (ep, p, q) = (epoll(), pipe_pair(), pipe_pair());
    ok(add(ep, p[0], EPOLLIN));
    ok(add(ep, q[0], EPOLLIN | EPOLLET));
    put(p[1]);
    put(q[1]);
    eq(wait(ep, 0).len(), 2);
    // The level stays, the edge was told.
    eq(wait(ep, 0), vec![(EPOLLIN, p[0] as u64)]);
    put(q[1]);
    eq(wait(ep, 0).len(), 2);
    take(p[0]);
    eq(wait(ep, 0), vec![]);
    // A change arms it anew.
    ok(ctl(ep, EPOLL_CTL_MOD, q[0], EPOLLIN | EPOLLET, 9));
    eq(wait(ep, 0), vec![(EPOLLIN, 9)]);
    eq(wait(ep, 0), vec![]);
    shut([ep, p[0], p[1], q[0], q[1]]);
}

fn one_shot() {
    let (ep, p) = (epoll(), pipe_pair());
    ok(add(ep, p[0], EPOLLIN | EPOLLONESHOT));
    put(p[1]);
    eq(wait(ep, 0).len(), 1);
    put(p[1]);
    eq(wait(ep, 0), vec![]);
    ok(ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLONESHOT, 3));
    eq(wait(ep, 0), vec![(EPOLLIN, 3)]);
    shut([ep, p[0], p[1]]);
}

fn exclusive_rules() {
    let (ep, p, inner) = (epoll(), pipe_pair(), epoll());
    ok(add(ep, p[0], EPOLLIN | EPOLLEXCLUSIVE));
    err(ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN, 0), EINVAL);
    err(add(ep, p[1], EPOLLOUT | EPOLLEXCLUSIVE | EPOLLONESHOT), EINVAL);
    ok(add(ep, p[1], EPOLLOUT | EPOLLEXCLUSIVE | EPOLLET));
    err(add(ep, inner, EPOLLIN | EPOLLEXCLUSIVE), EINVAL);
    ok(ctl(ep, EPOLL_CTL_DEL, p[0], 0, 0));
    shut([ep, p[0], p[1], inner]);
}

fn exclusive_wakes_one() {
    let p = pipe_pair();
    let eps: Vec<i32> = (0..4).map(|_| epoll()).collect();
    eps.iter().for_each(|ep| eq(add(*ep, p[0], EPOLLIN | EPOLLEXCLUSIVE), 0));
    static WOKEN: AtomicI32 = AtomicI32::new(0);
    let waits = |ep: i32| {
        blocked(move || {
            eq(wait(ep, -1).len(), 1);
            WOKEN.fetch_add(1, SeqCst);
            take(p[0]);
        })
    };
    let all: Vec<_> = eps.iter().map(|ep| waits(*ep)).collect();
    // One more for each byte, and then no others.
    for n in 1..=4 {
        put(p[1]);
        until("one more wakes", || WOKEN.load(SeqCst) >= n && ready(p[0], POLLIN) == 0);
        sleep_ms(20);
        eq(WOKEN.load(SeqCst), n);
    }
    all.into_iter().for_each(|thread| thread.join().expect("no panic"));
    shut(eps.into_iter().chain(p));
}

fn wakeup_flag() {
    let (ep, p) = (epoll(), pipe_pair());
    // Without the right to block suspending it counts for nothing.
    ok(add(ep, p[0], EPOLLIN | EPOLLWAKEUP));
    put(p[1]);
    eq(wait(ep, 0), vec![(EPOLLIN, p[0] as u64)]);
    shut([ep, p[0], p[1]]);
}

fn loops() {
    let e: Vec<i32> = (0..3).map(|_| epoll()).collect();
    err(add(e[0], e[0], EPOLLIN), EINVAL);
    ok(add(e[0], e[1], EPOLLIN));
    ok(add(e[1], e[2], EPOLLIN));
    err(add(e[2], e[0], EPOLLIN), ELOOP);
    err(add(e[1], e[0], EPOLLIN), ELOOP);
    ok(ctl(e[0], EPOLL_CTL_DEL, e[1], 0, 0));
    ok(add(e[2], e[0], EPOLLIN));
    shut(e);
}

fn nests() {
    let e: Vec<i32> = (0..6).map(|_| epoll()).collect();
    for i in 0..4 {
        ok(add(e[i], e[i + 1], EPOLLIN));
    }
    errs(add(e[4], e[5], EPOLLIN), &[EINVAL, ELOOP]);
    // What is ready at the bottom is so at the top.
    let p = pipe_pair();
    ok(add(e[4], p[0], EPOLLIN));
    eq(wait(e[0], 0), vec![]);
    put(p[1]);
    eq(wait(e[0], 1000), vec![(EPOLLIN, e[1] as u64)]);
    take(p[0]);
    eq(wait(e[0], 0), vec![]);
    shut(e.into_iter().chain(p));
}

fn closed_ones() {
    let (ep, p) = (epoll(), pipe_pair());
    ok(add(ep, p[0], EPOLLIN));
    let kept = ok(sys!(SYS_dup, p[0])) as i32;
    put(p[1]);
    // The description is still open.
    shut([p[0]]);
    eq(wait(ep, 0).len(), 1);
    err(ctl(ep, EPOLL_CTL_DEL, p[0], 0, 0), EBADF);
    shut([kept]);
    eq(wait(ep, 0), vec![]);
    shut([ep, p[1]]);
}

fn hangup_of_a_half() {
    let ep = epoll();
    let mut s = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut s));
    ok(add(ep, s[0], EPOLLIN | EPOLLRDHUP));
    eq(wait(ep, 0), vec![]);
    ok(sys!(SYS_shutdown, s[1], SHUT_WR));
    eq(wait(ep, 1000), vec![(EPOLLIN | EPOLLRDHUP, s[0] as u64)]);
    shut([s[1]]);
    eq(wait(ep, 1000), vec![(EPOLLIN | EPOLLRDHUP | EPOLLHUP, s[0] as u64)]);
    shut([ep, s[0]]);
}

fn errors() {
    let (ep, p, t) = (epoll(), pipe_pair(), Tmp::new());
    err(sys!(SYS_epoll_create, 0), EINVAL);
    err(sys!(SYS_epoll_create1, 1), EINVAL);
    err(add(p[0], p[1], EPOLLIN), EINVAL);
    err(add(-1, p[1], EPOLLIN), EBADF);
    err(add(ep, -1, EPOLLIN), EBADF);
    err(add(ep, t.file("f", b""), EPOLLIN), EPERM);
    ok(add(ep, p[0], EPOLLIN));
    err(add(ep, p[0], EPOLLIN), EEXIST);
    err(ctl(ep, EPOLL_CTL_MOD, p[1], EPOLLIN, 0), ENOENT);
    err(ctl(ep, EPOLL_CTL_DEL, p[1], 0, 0), ENOENT);
    err(ctl(ep, 9, p[1], 0, 0), EINVAL);
    err(sys!(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, p[1], bad()), EFAULT);
    let mut e = [Event::default(); 2];
    err(sys!(SYS_epoll_wait, ep, e.as_mut_ptr() as usize, 0, 0), EINVAL);
    err(sys!(SYS_epoll_wait, p[0], e.as_mut_ptr() as usize, 1, 0), EINVAL);
    put(p[1]);
    err(sys!(SYS_epoll_wait, ep, bad(), 1, 0), EFAULT);
    // Nothing was lost.
    eq(wait(ep, 0).len(), 1);
    shut([ep, p[0], p[1]]);
}

fn listener() {
    let ep = epoll();
    let l = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    let mut a = [0u8; 16];
    a[0] = AF_INET as u8;
    a[4..8].copy_from_slice(&[127, 0, 0, 1]);
    ok(sys!(SYS_bind, l, &a, 16));
    ok(sys!(SYS_listen, l, 5));
    ok(sys!(SYS_getsockname, l, &mut a, &mut 16u32));
    ok(add(ep, l, EPOLLIN));
    // How much there is to read has no meaning here.
    err(sys!(SYS_ioctl, l, FIONREAD, &mut 0i32), EINVAL);
    eq(wait(ep, 0), vec![]);
    let c = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    ok(sys!(SYS_connect, c, &a, 16));
    eq(wait(ep, 1000), vec![(EPOLLIN, l as u64)]);
    shut([ep, l, c]);
}

/// An epoll with so many descriptors that have nothing, and a pipe.
struct Crowd {
    ep: i32,
    pipe: [i32; 2],
    idle: Vec<i32>,
}

impl Crowd {
    fn new(idle: usize) -> Crowd {
        let (ep, pipe) = (epoll(), pipe_pair());
        let idle: Vec<i32> = (0..idle).map(|_| ok(sys!(SYS_eventfd2, 0, 0)) as i32).collect();
        idle.iter().for_each(|fd| eq(add(ep, *fd, EPOLLIN), 0));
        ok(add(ep, pipe[0], EPOLLIN));
        Crowd { ep, pipe, idle }
    }

    /// Nanoseconds of a write, a wait and a read.
    fn round(&self) -> u128 {
        let start = std::time::Instant::now();
        for _ in 0..50 {
            put(self.pipe[1]);
            eq(wait(self.ep, 1000).len(), 1);
            take(self.pipe[0]);
        }
        start.elapsed().as_nanos() / 50
    }
}

fn many_flat() {
    let mut limit = [0u64; 2];
    ok(sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &mut limit));
    if limit[1] < 10_100 {
        skip("needs 10,100 descriptors");
    }
    in_child(|| {
        ok(sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, &[limit[1], limit[1]], 0));
        let (few, many) = (Crowd::new(10), Crowd::new(10_000));
        // In turn, and the best of each: what disturbs one disturbs the other.
        let best = (0..40).map(|_| [few.round(), many.round()]);
        let [of_few, of_many] = best.fold([u128::MAX; 2], |a, b| [a[0].min(b[0]), a[1].min(b[1])]);
        check(of_many < of_few * 3, &format!("{of_few} ns with ten, {of_many} ns with ten thousand"));
        shut(few.idle.into_iter().chain(many.idle));
    });
}

fn sizes() {
    let ep = epoll();
    let pipes: Vec<[i32; 2]> = (0..10).map(|_| pipe_pair()).collect();
    pipes.iter().for_each(|p| {
        ok(add(ep, p[0], EPOLLIN));
        put(p[1]);
    });
    // A few at a time come round to all.
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let mut e = [Event::default(); 2];
        eq(sys!(SYS_epoll_wait, ep, e.as_mut_ptr() as usize, 2, 0), 2);
        seen.extend(e.iter().map(|e| e.data));
    }
    eq(seen.len(), 10);
    shut(pipes.into_iter().flatten().chain([ep]));
}

/// The bands that each kind names, and that room wakes who waits for one alone.
fn bands() {
    const ROOM: i16 = POLLOUT | POLLWRNORM | POLLWRBAND;
    const ALL: i16 = ROOM | POLLIN | POLLRDNORM | POLLRDBAND;
    let of = |fd: i64| {
        let mut p = pollfd { fd: ok(fd) as i32, events: ALL, revents: 0 };
        sys!(SYS_poll, &mut p, 1, 0);
        shut([p.fd]);
        p.revents
    };
    let half = |family: i32, kind: i32| {
        let mut s = [0i32; 2];
        ok(sys!(SYS_socketpair, family, kind, 0, &mut s));
        let seen = of(sys!(SYS_dup, s[0]));
        shut(s);
        seen
    };
    for kind in [SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET] {
        eq(half(AF_UNIX, kind), ROOM);
    }
    eq(of(sys!(SYS_socket, AF_UNIX, SOCK_DGRAM, 0)), ROOM);
    eq(of(sys!(SYS_socket, AF_INET, SOCK_DGRAM, 0)), ROOM);
    eq(of(sys!(SYS_socket, AF_NETLINK, SOCK_RAW, 0)), ROOM);
    eq(of(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) & ROOM, POLLOUT | POLLWRNORM);
    eq(of(sys!(SYS_eventfd2, 3, 0)), POLLIN | POLLOUT);
    let clock = ok(sys!(SYS_timerfd_create, CLOCK_MONOTONIC, 0));
    ok(sys!(SYS_timerfd_settime, clock, TFD_TIMER_ABSTIME, &[0u64, 0, 0, 1], 0));
    let mut p = pollfd { fd: clock as i32, events: POLLIN, revents: 0 };
    eq(sys!(SYS_poll, &mut p, 1, -1), 1);
    eq(of(clock), POLLIN);
    let set = sig::set(&[SIGUSR1]);
    ok(sys!(SYS_rt_sigprocmask, SIG_BLOCK, &set, 0, 8));
    ok(sys!(SYS_tgkill, sys!(SYS_getpid), sys!(SYS_gettid), SIGUSR1));
    eq(of(sys!(SYS_signalfd4, -1, &set, 8, 0)), POLLIN);
    eq(sys!(SYS_rt_sigtimedwait, &set, 0, 0, 8), i64::from(SIGUSR1));
    ok(sys!(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, 0, 8));

    let e = epoll();
    for kind in [SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET] {
        let mut s = [0i32; 2];
        ok(sys!(SYS_socketpair, AF_UNIX, kind | SOCK_NONBLOCK, 0, &mut s));
        let mut event = epoll_event { events: (EPOLLWRBAND | EPOLLET) as u32, u64: 7 };
        ok(sys!(SYS_epoll_ctl, e, EPOLL_CTL_ADD, s[0], &event));
        let block = [0u8; 4096];
        while sys!(SYS_write, s[0], &block, 4096) > 0 {}
        sys!(SYS_epoll_wait, e, &mut event, 1, 0);
        eq(sys!(SYS_epoll_wait, e, &mut event, 1, 0), 0);
        let mut into = [0u8; 4096];
        while sys!(SYS_read, s[1], &mut into, 4096) > 0 {}
        eq(sys!(SYS_epoll_wait, e, &mut event, 1, 1000), 1);
        eq(event.events as i32, EPOLLWRBAND);
        shut(s);
    }
    shut([e]);
}
