//! pipe2(2), poll(2), select(2), epoll(7), eventfd(2), timerfd(2), signalfd(2) and kin.

use guest_tests::*;
use libc::*;

cases![
    flags, errors, full_blocks_nonblock, writes_are_atomic, large_transfer, reader_blocks_then_gets, fionread, packet_mode, poll_states,
    poll_timeout, poll_bad_fd, poll_errors, poll_wakes, ppoll_mask, select_basic, select_errors, pselect_mask, regular_files_are_ready,
    epoll_level, epoll_edge, epoll_oneshot, epoll_errors, epoll_data_and_mod, epoll_closed_fd_leaves, epoll_nested, epoll_chains, epoll_timeout, epoll_wakes,
    epoll_many, epoll_rdhup, eventfd_counter, eventfd_semaphore, eventfd_limits, eventfd_errors, timerfd_once, timerfd_interval, timerfd_gettime,
    timerfd_absolute, timerfd_errors, signalfd_reads, signalfd_poll, signalfd_errors, sendfile_basic, sendfile_errors, copy_file_range_basic,
    fifo_open_blocks, write_to_many_processes, async_poll_thread, ioctl_fionbio
];

fn pf(fd: i32, events: i16) -> pollfd {
    pollfd { fd, events, revents: 0 }
}

fn flags() {
    let mut p = [0i32; 2];
    ok(sys!(SYS_pipe2, &mut p, O_CLOEXEC | O_NONBLOCK));
    eq(sys!(SYS_fcntl, p[0], F_GETFD), 1);
    eq(sys!(SYS_fcntl, p[0], F_GETFL), i64::from(O_NONBLOCK));
    eq(sys!(SYS_fcntl, p[1], F_GETFL), i64::from(O_NONBLOCK | O_WRONLY));
    shut(p);
    ok(sys!(SYS_pipe, &mut p));
    eq(sys!(SYS_fcntl, p[0], F_GETFD), 0);
    shut(p);
}

fn errors() {
    err(sys!(SYS_pipe2, bad(), 0), EFAULT);
    err(sys!(SYS_pipe, bad()), EFAULT);
    err(sys!(SYS_pipe2, &mut [0i32; 2], O_APPEND), EINVAL);
    let p = pipe_pair();
    err(sys!(SYS_read, p[1], &mut [0u8; 1], 1), EBADF);
    err(sys!(SYS_write, p[0], b"x", 1), EBADF);
    err(sys!(SYS_read, p[0], bad(), 0x7fff_ffff_0000_0000usize), EFAULT);
    shut(p);
}

fn full_blocks_nonblock() {
    let mut p = [0i32; 2];
    ok(sys!(SYS_pipe2, &mut p, O_NONBLOCK));
    let data = vec![1u8; 70_000];
    eq(sys!(SYS_write, p[1], &data[..], 70_000), 65536);
    err(sys!(SYS_write, p[1], b"x", 1), EAGAIN);
    let mut b = vec![0u8; 4096];
    eq(sys!(SYS_read, p[0], &mut b[..], 4095), 4095);
    // Less than PIPE_BUF goes as a whole or not at all.
    err(sys!(SYS_write, p[1], &data[..], 4096), EAGAIN);
    eq(sys!(SYS_read, p[0], &mut b[..], 1), 1);
    eq(sys!(SYS_write, p[1], &data[..], 4096), 4096);
    shut(p);
}

fn writes_are_atomic() {
    let p = pipe_pair();
    let pids: Vec<i32> = (0..4u8)
        .map(|i| {
            child(move || {
                let b = [b'a' + i; 4096];
                for _ in 0..40 {
                    if sys!(SYS_write, p[1], &b, 4096) != 4096 {
                        return 1;
                    }
                }
                0
            })
        })
        .collect();
    shut([p[1]]);
    let mut all = Vec::new();
    let mut b = vec![0u8; 10_000];
    loop {
        let n = ok(sys!(SYS_read, p[0], &mut b[..], 10_000)) as usize;
        if n == 0 {
            break;
        }
        all.extend_from_slice(&b[..n]);
    }
    eq(all.len(), 4 * 40 * 4096);
    check(all.chunks(4096).all(|c| c.iter().all(|x| *x == c[0])), "no write is torn");
    pids.into_iter().for_each(|p| exits(p, 0));
    shut([p[0]]);
}

fn large_transfer() {
    let p = pipe_pair();
    let pid = child(|| {
        let d: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
        i32::from(sys!(SYS_write, p[1], &d[..], d.len()) != d.len() as i64)
    });
    shut([p[1]]);
    let (mut got, mut b) = (0u32, vec![0u8; 65536]);
    loop {
        let n = ok(sys!(SYS_read, p[0], &mut b[..], 65536)) as usize;
        if n == 0 {
            break;
        }
        for x in &b[..n] {
            check(u32::from(*x) == got % 251, "the bytes in order");
            got += 1;
        }
    }
    eq(got, 1_000_000);
    exits(pid, 0);
    shut([p[0]]);
}

fn reader_blocks_then_gets() {
    let p = pipe_pair();
    let begin = now_ms();
    let pid = child(|| {
        sleep_ms(40);
        sys!(SYS_write, p[1], b"late", 4) as i32
    });
    let mut b = [0u8; 10];
    eq(sys!(SYS_read, p[0], &mut b, 10), 4);
    check(now_ms() - begin >= 35, "it waited");
    exits(pid, 4);
    shut(p);
}

fn fionread() {
    let p = pipe_pair();
    eq(sys!(SYS_write, p[1], b"abcde", 5), 5);
    let mut n = 0i32;
    eq(sys!(SYS_ioctl, p[0], FIONREAD, &mut n), 0);
    eq(n, 5);
    err(sys!(SYS_ioctl, p[0], FIONREAD, bad()), EFAULT);
    err(sys!(SYS_ioctl, p[0], TCGETS, &mut [0u8; 64]), ENOTTY);
    err(sys!(SYS_ioctl, -1, FIONREAD, &mut n), EBADF);
    shut(p);
}

fn packet_mode() {
    let mut p = [0i32; 2];
    ok(sys!(SYS_pipe2, &mut p, O_DIRECT));
    eq(sys!(SYS_write, p[1], b"abc", 3), 3);
    eq(sys!(SYS_write, p[1], b"defg", 4), 4);
    let mut b = [0u8; 10];
    eq(sys!(SYS_read, p[0], &mut b, 2), 2);
    eq(sys!(SYS_read, p[0], &mut b, 10), 4);
    shut(p);
}

fn poll_states() {
    let p = pipe_pair();
    let mut v = [pf(p[0], POLLIN | POLLOUT), pf(p[1], POLLIN | POLLOUT)];
    eq(sys!(SYS_poll, &mut v, 2, 0), 1);
    eq((v[0].revents, v[1].revents), (0, POLLOUT));
    eq(sys!(SYS_write, p[1], b"x", 1), 1);
    eq(sys!(SYS_poll, &mut v, 2, -1), 2);
    eq((v[0].revents, v[1].revents), (POLLIN, POLLOUT));
    shut([p[1]]);
    eq(sys!(SYS_poll, &mut v, 1, 0), 1);
    eq(v[0].revents, POLLIN | POLLHUP);
    eq(sys!(SYS_read, p[0], &mut [0u8; 4], 4), 1);
    eq(sys!(SYS_poll, &mut v, 1, 0), 1);
    eq(v[0].revents, POLLHUP);
    eq(v[0].events, POLLIN | POLLOUT);
    shut([p[0]]);
    let p = pipe_pair();
    shut([p[0]]);
    let mut w = [pf(p[1], POLLOUT)];
    eq(sys!(SYS_poll, &mut w, 1, 0), 1);
    eq(w[0].revents, POLLOUT | POLLERR);
    shut([p[1]]);
}

fn poll_timeout() {
    let p = pipe_pair();
    let begin = now_ms();
    eq(sys!(SYS_poll, &mut [pf(p[0], POLLIN)], 1, 30), 0);
    took(begin, 29);
    eq(sys!(SYS_poll, 0, 0, 10), 0);
    shut(p);
}

fn poll_bad_fd() {
    let mut v = [pf(9999, POLLIN), pf(-1, POLLIN)];
    eq(sys!(SYS_poll, &mut v, 2, -1), 1);
    eq((v[0].revents, v[1].revents), (POLLNVAL, 0));
}

fn poll_errors() {
    err(sys!(SYS_poll, bad(), 1, 0), EFAULT);
    let mut v = [pf(0, 0)];
    err(sys!(SYS_ppoll, &mut v, 1, &[0i64, -1], 0, 8), EINVAL);
    err(sys!(SYS_ppoll, &mut v, 1, bad(), 0, 8), EFAULT);
    err(sys!(SYS_ppoll, &mut v, 1, 0, bad(), 8), EFAULT);
    err(sys!(SYS_poll, &mut v, u32::MAX, 0), EINVAL);
}

fn poll_wakes() {
    let p = pipe_pair();
    let pid = child(|| {
        sleep_ms(30);
        sys!(SYS_write, p[1], b"x", 1);
        0
    });
    let mut v = [pf(p[0], POLLIN)];
    eq(sys!(SYS_poll, &mut v, 1, -1), 1);
    eq(v[0].revents, POLLIN);
    exits(pid, 0);
    shut(p);
}

fn ppoll_mask() {
    let _on = sig::on(SIGUSR1, 0);
    let old = sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
    sig::raise(SIGUSR1);
    let open = 0u64;
    err(sys!(SYS_ppoll, 0, 0, &[2i64, 0], &open, 8), EINTR);
    eq(sig::hits(), 1);
    eq(sig::mask(SIG_SETMASK, old) & sig::set(&[SIGUSR1]), sig::set(&[SIGUSR1]));
}

fn select_basic() {
    let p = pipe_pair();
    let bit = |fd: i32| 1u64 << fd;
    check(p[1] < 64, "low descriptors");
    let (mut r, mut w) = ([bit(p[0]); 1], [bit(p[1]); 1]);
    eq(sys!(SYS_select, p[1] + 1, &mut r, &mut w, 0, &[0i64, 0]), 1);
    eq((r[0], w[0]), (0, bit(p[1])));
    eq(sys!(SYS_write, p[1], b"x", 1), 1);
    let mut r = [bit(p[0])];
    eq(sys!(SYS_select, p[1] + 1, &mut r, 0, 0, 0), 1);
    eq(r[0], bit(p[0]));
    let begin = now_ms();
    let mut t = [0i64, 20_000];
    eq(sys!(SYS_select, 0, 0, 0, 0, &mut t), 0);
    check(now_ms() - begin >= 19, "20 ms");
    // Linux counts the timeout down.
    eq(t, [0, 0]);
    shut(p);
}

fn select_errors() {
    err(sys!(SYS_select, -1, 0, 0, 0, &[0i64, 0]), EINVAL);
    err(sys!(SYS_select, 64, bad(), 0, 0, &[0i64, 0]), EFAULT);
    err(sys!(SYS_select, 0, 0, 0, 0, bad()), EFAULT);
    err(sys!(SYS_select, 0, 0, 0, 0, &[-1i64, 0]), EINVAL);
    in_child(|| {
        sys!(SYS_close, 60);
        err(sys!(SYS_select, 61, &mut [1u64 << 60], 0, 0, &[0i64, 0]), EBADF);
    });
}

fn pselect_mask() {
    let _on = sig::on(SIGUSR1, 0);
    let old = sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
    sig::raise(SIGUSR1);
    let open = 0u64;
    let arg = [(&raw const open) as usize, 8];
    err(sys!(SYS_pselect6, 0, 0, 0, 0, &[2i64, 0], &arg), EINTR);
    eq(sig::hits(), 1);
    sig::mask(SIG_SETMASK, old);
}

fn regular_files_are_ready() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let mut v = [pf(fd, POLLIN | POLLOUT)];
    eq(sys!(SYS_poll, &mut v, 1, 0), 1);
    eq(v[0].revents, POLLIN | POLLOUT);
    shut([fd]);
}

#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
struct Ev {
    events: u32,
    data: u64,
}

fn ep() -> i32 {
    ok(sys!(SYS_epoll_create1, EPOLL_CLOEXEC)) as i32
}

fn add(ep: i32, fd: i32, events: i32, data: u64) -> i64 {
    sys!(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, fd, &Ev { events: events as u32, data })
}

fn got(ep: i32, ms: i32) -> Vec<(u32, u64)> {
    let mut v = [Ev::default(); 16];
    let n = ok(sys!(SYS_epoll_wait, ep, &mut v, 16, ms)) as usize;
    v[..n].iter().map(|e| (e.events, e.data)).collect()
}

const IN: u32 = EPOLLIN as u32;

fn epoll_level() {
    let (p, e) = (pipe_pair(), ep());
    ok(add(e, p[0], EPOLLIN, 42));
    eq(got(e, 0), vec![]);
    eq(sys!(SYS_write, p[1], b"ab", 2), 2);
    eq(got(e, -1), vec![(IN, 42)]);
    eq(got(e, 0), vec![(IN, 42)]);
    eq(sys!(SYS_read, p[0], &mut [0u8; 4], 4), 2);
    eq(got(e, 0), vec![]);
    shut([p[1]]);
    eq(got(e, 0), vec![(EPOLLHUP as u32, 42)]);
    shut([p[0], e]);
}

fn epoll_edge() {
    let (p, e) = (pipe_pair(), ep());
    ok(add(e, p[0], EPOLLIN | EPOLLET, 1));
    eq(sys!(SYS_write, p[1], b"ab", 2), 2);
    eq(got(e, 0), vec![(IN, 1)]);
    eq(got(e, 0), vec![]);
    eq(sys!(SYS_read, p[0], &mut [0u8; 1], 1), 1);
    eq(got(e, 0), vec![]);
    eq(sys!(SYS_write, p[1], b"c", 1), 1);
    eq(got(e, 0), vec![(IN, 1)]);
    shut([p[0], p[1], e]);
}

fn epoll_oneshot() {
    let (p, e) = (pipe_pair(), ep());
    ok(add(e, p[0], EPOLLIN | EPOLLONESHOT, 1));
    eq(sys!(SYS_write, p[1], b"ab", 2), 2);
    eq(got(e, 0), vec![(IN, 1)]);
    eq(got(e, 0), vec![]);
    ok(sys!(SYS_epoll_ctl, e, EPOLL_CTL_MOD, p[0], &Ev { events: IN | EPOLLONESHOT as u32, data: 2 }));
    eq(got(e, 0), vec![(IN, 2)]);
    shut([p[0], p[1], e]);
}

fn epoll_errors() {
    let (p, e) = (pipe_pair(), ep());
    err(sys!(SYS_epoll_create, 0), EINVAL);
    err(sys!(SYS_epoll_create1, 1), EINVAL);
    err(add(e, e, EPOLLIN, 0), EINVAL);
    err(add(p[0], p[1], EPOLLIN, 0), EINVAL);
    err(add(e, 9999, EPOLLIN, 0), EBADF);
    err(add(9999, p[0], EPOLLIN, 0), EBADF);
    ok(add(e, p[0], EPOLLIN, 0));
    err(add(e, p[0], EPOLLIN, 0), EEXIST);
    err(sys!(SYS_epoll_ctl, e, EPOLL_CTL_MOD, p[1], &Ev::default()), ENOENT);
    err(sys!(SYS_epoll_ctl, e, EPOLL_CTL_DEL, p[1], 0), ENOENT);
    err(sys!(SYS_epoll_ctl, e, 9, p[1], &Ev::default()), EINVAL);
    err(sys!(SYS_epoll_ctl, e, EPOLL_CTL_ADD, p[1], bad()), EFAULT);
    let mut v = [Ev::default()];
    err(sys!(SYS_epoll_wait, e, &mut v, 0, 0), EINVAL);
    err(sys!(SYS_epoll_wait, p[0], &mut v, 1, 0), EINVAL);
    err(sys!(SYS_epoll_wait, 9999, &mut v, 1, 0), EBADF);
    let t = Tmp::new();
    let f = t.file("f", b"");
    err(add(e, f, EPOLLIN, 0), EPERM);
    eq(sys!(SYS_write, p[1], b"x", 1), 1);
    err(sys!(SYS_epoll_wait, e, bad(), 1, 0), EFAULT);
    shut([p[0], p[1], e, f]);
}

fn epoll_data_and_mod() {
    let (p, e) = (pipe_pair(), ep());
    ok(add(e, p[1], EPOLLOUT, u64::MAX));
    eq(got(e, 0), vec![(EPOLLOUT as u32, u64::MAX)]);
    ok(sys!(SYS_epoll_ctl, e, EPOLL_CTL_MOD, p[1], &Ev { events: 0, data: 3 }));
    eq(got(e, 0), vec![]);
    ok(sys!(SYS_epoll_ctl, e, EPOLL_CTL_DEL, p[1], bad()));
    ok(add(e, p[1], EPOLLOUT, 4));
    eq(got(e, 0), vec![(EPOLLOUT as u32, 4)]);
    shut([p[0], p[1], e]);
}

fn epoll_closed_fd_leaves() {
    let (p, e) = (pipe_pair(), ep());
    eq(sys!(SYS_write, p[1], b"x", 1), 1);
    let d = ok(sys!(SYS_dup, p[0])) as i32;
    ok(add(e, p[0], EPOLLIN, 9));
    shut([p[0]]);
    // The open file lives on through the duplicate (Q6 in epoll(7)).
    eq(got(e, 0), vec![(IN, 9)]);
    shut([d]);
    eq(got(e, 0), vec![]);
    shut([p[1], e]);
}

fn epoll_nested() {
    let (p, e, o) = (pipe_pair(), ep(), ep());
    ok(add(e, p[0], EPOLLIN, 1));
    ok(add(o, e, EPOLLIN, 2));
    eq(got(o, 0), vec![]);
    eq(sys!(SYS_write, p[1], b"x", 1), 1);
    eq(got(o, 1000), vec![(IN, 2)]);
    let mut v = [pf(o, POLLIN)];
    eq(sys!(SYS_poll, &mut v, 1, 0), 1);
    err(add(e, o, EPOLLIN, 3), ELOOP);
    shut([p[0], p[1], e, o]);
}

fn epoll_chains() {
    // Four links at the most, whichever end they are made from.
    let link = |outer: i32, inner: i32| add(outer, inner, EPOLLIN, 0);
    let chain = |n: usize| {
        let all: Vec<i32> = (0..n).map(|_| ep()).collect();
        all.windows(2).for_each(|w| eq(link(w[0], w[1]), 0));
        all
    };
    let (a, b, c) = (chain(5), ep(), ep());
    err(link(a[4], b), ELOOP);
    err(link(b, a[0]), ELOOP);
    err(link(a[4], a[0]), ELOOP);
    ok(link(b, a[1]));
    // What was taken away does not count.
    ok(sys!(SYS_epoll_ctl, a[0], EPOLL_CTL_DEL, a[1], 0));
    ok(sys!(SYS_epoll_ctl, b, EPOLL_CTL_DEL, a[1], 0));
    ok(link(a[4], c));
    err(link(b, a[1]), ELOOP);
    let (x, y) = (chain(3), chain(3));
    err(link(x[2], y[0]), ELOOP);
    ok(link(x[1], y[0]));
    shut(a);
    shut(x);
    shut(y);
    shut([b, c]);
}

fn epoll_timeout() {
    let e = ep();
    let begin = now_ms();
    eq(got(e, 30), vec![]);
    took(begin, 29);
    eq(sys!(SYS_epoll_pwait2, e, &mut [Ev::default()], 1, &[0i64, 5_000_000], 0, 8), 0);
    shut([e]);
}

fn epoll_wakes() {
    let (p, e) = (pipe_pair(), ep());
    ok(add(e, p[0], EPOLLIN | EPOLLET, 1));
    for _ in 0..3 {
        let w = p[1];
        let h = std::thread::spawn(move || {
            sleep_ms(15);
            sys!(SYS_write, w, b"x", 1);
        });
        eq(got(e, -1), vec![(IN, 1)]);
        h.join().unwrap();
    }
    shut([p[0], p[1], e]);
}

fn epoll_many() {
    let e = ep();
    let ps: Vec<_> = (0..100).map(|_| pipe_pair()).collect();
    for (i, p) in ps.iter().enumerate() {
        ok(add(e, p[0], EPOLLIN, i as u64));
    }
    for i in [3, 50, 99] {
        eq(sys!(SYS_write, ps[i][1], b"x", 1), 1);
    }
    let mut ready: Vec<_> = got(e, 0).into_iter().map(|x| x.1).collect();
    ready.sort_unstable();
    eq(ready, vec![3, 50, 99]);
    // The list goes round when the buffer is short.
    let mut one = [Ev::default()];
    let mut seen = vec![];
    for _ in 0..3 {
        eq(sys!(SYS_epoll_wait, e, &mut one, 1, 0), 1);
        seen.push(one[0].data);
    }
    seen.sort_unstable();
    eq(seen, vec![3, 50, 99]);
    ps.into_iter().for_each(shut);
    shut([e]);
}

fn epoll_rdhup() {
    let e = ep();
    let mut s = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut s));
    ok(add(e, s[0], EPOLLIN | EPOLLRDHUP, 1));
    ok(sys!(SYS_shutdown, s[1], SHUT_WR));
    eq(got(e, 0), vec![(IN | EPOLLRDHUP as u32, 1)]);
    shut([s[0], s[1], e]);
}

fn ev(fd: i32) -> i64 {
    let mut v = 0u64;
    let r = sys!(SYS_read, fd, &mut v, 8);
    if r < 0 { r } else { v as i64 }
}

fn eventfd_counter() {
    let fd = ok(sys!(SYS_eventfd2, 3, EFD_NONBLOCK | EFD_CLOEXEC)) as i32;
    eq(ev(fd), 3);
    err(ev(fd), EAGAIN);
    eq(sys!(SYS_write, fd, &5u64, 8), 8);
    eq(sys!(SYS_write, fd, &6u64, 8), 8);
    let mut v = [pf(fd, POLLIN | POLLOUT)];
    eq(sys!(SYS_poll, &mut v, 1, 0), 1);
    eq(v[0].revents, POLLIN | POLLOUT);
    eq(ev(fd), 11);
    eq(sys!(SYS_poll, &mut v, 1, 0), 1);
    eq(v[0].revents, POLLOUT);
    shut([fd]);
}

fn eventfd_semaphore() {
    let fd = ok(sys!(SYS_eventfd2, 2, EFD_NONBLOCK | EFD_SEMAPHORE)) as i32;
    eq(ev(fd), 1);
    eq(ev(fd), 1);
    err(ev(fd), EAGAIN);
    shut([fd]);
}

fn eventfd_limits() {
    let fd = ok(sys!(SYS_eventfd2, 0, EFD_NONBLOCK)) as i32;
    err(sys!(SYS_write, fd, &u64::MAX, 8), EINVAL);
    eq(sys!(SYS_write, fd, &(u64::MAX - 1), 8), 8);
    err(sys!(SYS_write, fd, &1u64, 8), EAGAIN);
    let mut v = [pf(fd, POLLOUT)];
    eq(sys!(SYS_poll, &mut v, 1, 0), 0);
    shut([fd]);
}

fn eventfd_errors() {
    err(sys!(SYS_eventfd2, 0, 0x100), EINVAL);
    let fd = ok(sys!(SYS_eventfd, 1)) as i32;
    err(sys!(SYS_read, fd, &mut [0u8; 4], 4), EINVAL);
    err(sys!(SYS_write, fd, &[0u8; 4], 4), EINVAL);
    err(sys!(SYS_write, fd, bad(), 8), EFAULT);
    eq(sys!(SYS_lseek, fd, 0, SEEK_SET), 0);
    shut([fd]);
}

fn tfd(flags: i32) -> i32 {
    ok(sys!(SYS_timerfd_create, CLOCK_MONOTONIC, flags)) as i32
}

fn timerfd_once() {
    let fd = tfd(0);
    let begin = now_ms();
    ok(sys!(SYS_timerfd_settime, fd, 0, &[0i64, 0, 0, 20_000_000], 0));
    eq(ev(fd), 1);
    took(begin, 19);
    ok(sys!(SYS_fcntl, fd, F_SETFL, O_NONBLOCK));
    err(ev(fd), EAGAIN);
    shut([fd]);
}

fn timerfd_interval() {
    let fd = tfd(TFD_NONBLOCK);
    let begin = now_ms();
    ok(sys!(SYS_timerfd_settime, fd, 0, &[0i64, 10_000_000, 0, 10_000_000], 0));
    sleep_ms(55);
    let n = ev(fd);
    check((4..=(now_ms() - begin + 1) / 10).contains(&n), "about five expirations");
    let mut v = [pf(fd, POLLIN)];
    eq(sys!(SYS_poll, &mut v, 1, -1), 1);
    // Disarmed: nothing more.
    ok(sys!(SYS_timerfd_settime, fd, 0, &[0i64; 4], 0));
    err(ev(fd), EAGAIN);
    shut([fd]);
}

fn timerfd_gettime() {
    let fd = tfd(0);
    let mut now = [9i64; 4];
    ok(sys!(SYS_timerfd_gettime, fd, &mut now));
    eq(now, [0; 4]);
    ok(sys!(SYS_timerfd_settime, fd, 0, &[7i64, 0, 100, 0], &mut now));
    eq(now, [0; 4]);
    ok(sys!(SYS_timerfd_gettime, fd, &mut now));
    check(now[0] == 7 && now[2] == 99 && now[3] > 0, "interval and what is left");
    shut([fd]);
}

fn timerfd_absolute() {
    let fd = tfd(0);
    ok(sys!(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &[0i64, 0, 1, 0], 0));
    eq(ev(fd), 1);
    shut([fd]);
}

fn timerfd_errors() {
    err(sys!(SYS_timerfd_create, 99, 0), EINVAL);
    err(sys!(SYS_timerfd_create, CLOCK_MONOTONIC, 1), EINVAL);
    let fd = tfd(0);
    err(sys!(SYS_timerfd_settime, fd, 0, bad(), 0), EFAULT);
    err(sys!(SYS_timerfd_settime, fd, 0, &[0i64, 0, 0, 1_000_000_000], 0), EINVAL);
    err(sys!(SYS_timerfd_settime, 9999, 0, &[0i64; 4], 0), EBADF);
    let p = pipe_pair();
    err(sys!(SYS_timerfd_settime, p[0], 0, &[0i64; 4], 0), EINVAL);
    err(sys!(SYS_timerfd_gettime, fd, bad()), EFAULT);
    err(sys!(SYS_read, fd, &mut [0u8; 4], 4), EINVAL);
    shut([fd, p[0], p[1]]);
}

fn signalfd_reads() {
    let set = sig::set(&[SIGUSR1, 44]);
    let old = sig::mask(SIG_BLOCK, set);
    let fd = ok(sys!(SYS_signalfd4, -1, &set, 8, SFD_NONBLOCK)) as i32;
    let mut i = [0u32; 32];
    err(sys!(SYS_read, fd, &mut i, 128), EAGAIN);
    sig::raise(SIGUSR1);
    eq(sys!(SYS_read, fd, &mut i, 128), 128);
    eq((i[0], i64::from(i[3])), (SIGUSR1 as u32, sys!(SYS_getpid)));
    eq(sig::pending() & set, 0);
    sig::raise(44);
    sig::raise(44);
    let mut two = [0u32; 64];
    eq(sys!(SYS_read, fd, &mut two, 256), 256);
    sig::mask(SIG_SETMASK, old);
    shut([fd]);
}

fn signalfd_poll() {
    let set = sig::set(&[SIGUSR1]);
    let old = sig::mask(SIG_BLOCK, set);
    let fd = ok(sys!(SYS_signalfd4, -1, &set, 8, 0)) as i32;
    let mut v = [pf(fd, POLLIN)];
    eq(sys!(SYS_poll, &mut v, 1, 0), 0);
    let h = sig::later(SIGUSR1, 20);
    eq(sys!(SYS_poll, &mut v, 1, -1), 1);
    eq(sys!(SYS_read, fd, &mut [0u32; 32], 128), 128);
    h.join().unwrap();
    // The set can be changed in place.
    ok(sys!(SYS_signalfd4, fd, &0u64, 8, 0));
    sig::raise(SIGUSR1);
    eq(sys!(SYS_poll, &mut v, 1, 0), 0);
    let mut i: siginfo_t = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_rt_sigtimedwait, &set, &mut i, &[0i64, 0], 8));
    sig::mask(SIG_SETMASK, old);
    shut([fd]);
}

fn signalfd_errors() {
    let set = 0u64;
    err(sys!(SYS_signalfd4, -1, &set, 4, 0), EINVAL);
    err(sys!(SYS_signalfd4, -1, &set, 8, 1), EINVAL);
    err(sys!(SYS_signalfd4, -1, bad(), 8, 0), EFAULT);
    err(sys!(SYS_signalfd4, 9999, &set, 8, 0), EBADF);
    err(sys!(SYS_signalfd4, 1, &set, 8, 0), EINVAL);
}

fn sendfile_basic() {
    let t = Tmp::new();
    let (a, b) = (t.file("a", b"0123456789"), t.file("b", b""));
    eq(sys!(SYS_sendfile, b, a, 0, 4), 4);
    eq(sys!(SYS_lseek, a, 0, SEEK_CUR), 4);
    let mut off = 8i64;
    eq(sys!(SYS_sendfile, b, a, &mut off, 100), 2);
    eq(unsafe { (&raw const off).read_volatile() }, 10);
    eq(sys!(SYS_lseek, a, 0, SEEK_CUR), 4);
    eq(t.read("b"), b"012389");
    let p = pipe_pair();
    eq(sys!(SYS_sendfile, p[1], a, 0, 100), 6);
    eq(sys!(SYS_sendfile, p[1], a, 0, 100), 0);
    shut([a, b, p[0], p[1]]);
}

fn sendfile_errors() {
    let t = Tmp::new();
    let a = t.file("a", b"0123456789");
    let p = pipe_pair();
    err(sys!(SYS_sendfile, 9999, a, 0, 4), EBADF);
    err(sys!(SYS_sendfile, a, 9999, 0, 4), EBADF);
    err(sys!(SYS_sendfile, p[0], a, 0, 4), EBADF);
    err(sys!(SYS_sendfile, p[1], a, bad(), 4), EFAULT);
    let mut off = -1i64;
    err(sys!(SYS_sendfile, p[1], a, &mut off, 4), EINVAL);
    shut([a, p[0], p[1]]);
}

fn copy_file_range_basic() {
    let t = Tmp::new();
    let (a, b) = (t.file("a", b"0123456789"), t.file("b", b"abcdef"));
    let (mut i, mut o) = (2i64, 1i64);
    eq(sys!(SYS_copy_file_range, a, &mut i, b, &mut o, 3, 0), 3);
    eq(t.read("b"), b"a234ef");
    eq(unsafe { ((&raw const i).read_volatile(), (&raw const o).read_volatile()) }, (5, 4));
    eq(sys!(SYS_copy_file_range, a, 0, b, 0, 100, 0), 10);
    eq(sys!(SYS_copy_file_range, a, 0, b, 0, 100, 0), 0);
    err(sys!(SYS_copy_file_range, a, 0, b, 0, 1, 1), EINVAL);
    err(sys!(SYS_copy_file_range, 9999, 0, b, 0, 1, 0), EBADF);
    let p = pipe_pair();
    err(sys!(SYS_copy_file_range, p[0], 0, b, 0, 1, 0), EINVAL);
    let d = ok(t.open("", O_RDONLY)) as i32;
    err(sys!(SYS_copy_file_range, d, 0, b, 0, 1, 0), EISDIR);
    shut([a, b, d, p[0], p[1]]);
}

fn fifo_open_blocks() {
    let t = Tmp::new();
    ok(sys!(SYS_mknod, t.path("p"), S_IFIFO | 0o600, 0));
    let pid = child(|| {
        sleep_ms(20);
        let fd = ok(t.open("p", O_WRONLY));
        sys!(SYS_write, fd, b"hi", 2) as i32
    });
    let fd = ok(t.open("p", O_RDONLY)) as i32;
    let mut b = [0u8; 4];
    eq(sys!(SYS_read, fd, &mut b, 4), 2);
    eq(sys!(SYS_read, fd, &mut b, 4), 0);
    exits(pid, 2);
    shut([fd]);
}

fn write_to_many_processes() {
    // A token goes round a ring of processes.
    let ps: Vec<_> = (0..6).map(|_| pipe_pair()).collect();
    let pids: Vec<i32> = (0..5)
        .map(|i| {
            let (r, w) = (ps[i][0], ps[i + 1][1]);
            child(move || {
                for _ in 0..50 {
                    let mut v = 0u64;
                    if sys!(SYS_read, r, &mut v, 8) != 8 {
                        return 1;
                    }
                    sys!(SYS_write, w, &(v + 1), 8);
                }
                0
            })
        })
        .collect();
    let mut v = 0u64;
    for _ in 0..50 {
        eq(sys!(SYS_write, ps[0][1], &v, 8), 8);
        eq(sys!(SYS_read, ps[5][0], &mut v, 8), 8);
    }
    eq(v, 250);
    pids.into_iter().for_each(|p| exits(p, 0));
    ps.into_iter().for_each(shut);
}

fn async_poll_thread() {
    // One thread polls a pipe that another closes: the poll is not disturbed by others' descriptors.
    let p = pipe_pair();
    let r = p[0];
    let h = std::thread::spawn(move || {
        let mut v = [pf(r, POLLIN)];
        (sys!(SYS_poll, &mut v, 1, -1), v[0].revents)
    });
    sleep_ms(20);
    shut([p[1]]);
    eq(h.join().unwrap(), (1, POLLHUP));
    shut([p[0]]);
}

fn ioctl_fionbio() {
    let p = pipe_pair();
    ok(sys!(SYS_ioctl, p[0], FIONBIO, &1i32));
    err(sys!(SYS_read, p[0], &mut [0u8; 1], 1), EAGAIN);
    eq(sys!(SYS_fcntl, p[0], F_GETFL), i64::from(O_NONBLOCK));
    ok(sys!(SYS_ioctl, p[0], FIOCLEX, 0));
    eq(sys!(SYS_fcntl, p[0], F_GETFD), 1);
    shut(p);
}
