//! pty(7), pts(4), ptmx(4): pairs, their names, hangups, packet mode, limits.

use guest_tests::*;
use libc::*;

cases![
    ptmx_and_slave, locked_at_first, names_and_devices, owner_and_mode, times_move, listing, peer, peer_errors, master_only_requests,
    master_close_hangs_up, slave_close, slave_again, slave_in_many, read_before_slave, write_before_slave, buffers_are_bounded,
    nonblocking, blocked_reader_wakes, blocked_writer_wakes, poll_states, epoll_edge, packet_mode, packet_status, exclusive, winsize,
    getdev_and_discipline, seek_and_map, dup_keeps_open, number_comes_back, many_pairs, gone_slave_path, ptmx_in_pts, hung_up_requests
];

/// TIOCGPTLCK, TIOCGPKT, TIOCGEXCL, TIOCGDEV, TIOCSIG.
const GPTLCK: u64 = 0x8004_5439;
const GPKT: u64 = 0x8004_5438;
const GEXCL: u64 = 0x8004_5440;
const GDEV: u64 = 0x8004_5432;
const SIG: u64 = 0x4004_5436;

/// Opens a slave by number.
pub fn slave(n: i32, flags: i32) -> i64 {
    sys!(SYS_openat, AT_FDCWD, cstr(format!("/dev/pts/{n}")), flags, 0)
}

/// A pair, unlocked, and its number; the slave is nobody's controlling terminal.
pub fn pair() -> (i32, i32, i32) {
    let m = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/ptmx", O_RDWR | O_NOCTTY, 0)) as i32;
    let (mut n, zero) = (0i32, 0i32);
    ok(sys!(SYS_ioctl, m, TIOCGPTN, &mut n));
    ok(sys!(SYS_ioctl, m, TIOCSPTLCK, &zero));
    let s = ok(slave(n, O_RDWR | O_NOCTTY)) as i32;
    (m, s, n)
}

/// The settings.
pub fn settings(fd: i32) -> termios {
    let mut t: termios = unsafe { std::mem::zeroed() };
    eq(unsafe { tcgetattr(fd, &mut t) }, 0);
    t
}

/// Changes the settings.
pub fn change(fd: i32, f: impl FnOnce(&mut termios)) {
    let mut t = settings(fd);
    f(&mut t);
    eq(unsafe { tcsetattr(fd, TCSANOW, &t) }, 0);
}

/// No processing at all.
pub fn raw(fd: i32) {
    change(fd, |t| unsafe { cfmakeraw(t) });
}

/// Whether poll sees input within two seconds.
pub fn wait_input(fd: i32) -> bool {
    let mut p = pollfd { fd, events: POLLIN, revents: 0 };
    sys!(SYS_poll, &mut p, 1, 50_000) == 1
}

/// Reads what is there; at most `max`.
pub fn get(fd: i32, max: usize) -> Vec<u8> {
    let mut b = vec![0u8; max];
    let n = ok(sys!(SYS_read, fd, &mut b[..], max)) as usize;
    b.truncate(n);
    b
}

/// Reads exactly `want.len()` bytes and compares.
#[track_caller]
pub fn reads(fd: i32, want: &[u8]) {
    let mut got = Vec::new();
    while got.len() < want.len() {
        if !wait_input(fd) {
            break;
        }
        let part = get(fd, want.len() - got.len());
        if part.is_empty() {
            break;
        }
        got.extend(part);
    }
    eq(String::from_utf8_lossy(&got), String::from_utf8_lossy(want));
}

/// Nothing is there to be read.
#[track_caller]
pub fn quiet(fd: i32) {
    sleep_ms(20);
    let mut p = pollfd { fd, events: POLLIN, revents: 0 };
    eq(sys!(SYS_poll, &mut p, 1, 0), 0);
}

#[track_caller]
pub fn put(fd: i32, data: &[u8]) {
    eq(sys!(SYS_write, fd, data, data.len()), data.len() as i64);
}

fn nonblock(fd: i32) {
    ok(sys!(SYS_fcntl, fd, F_SETFL, O_RDWR | O_NONBLOCK));
}

fn revents(fd: i32) -> i16 {
    let mut p = pollfd { fd, events: POLLIN | POLLOUT | POLLPRI | POLLRDHUP, revents: 0 };
    ok(sys!(SYS_poll, &mut p, 1, 0));
    p.revents
}

fn ptmx_and_slave() {
    let (m, s, _) = pair();
    check(unsafe { isatty(m) == 1 && isatty(s) == 1 }, "both are terminals");
    put(m, b"in\n");
    reads(s, b"in\n");
    reads(m, b"in\r\n");
    put(s, b"out\n");
    reads(m, b"out\r\n");
    shut([m, s]);
}

fn locked_at_first() {
    let m = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/ptmx", O_RDWR | O_NOCTTY, 0)) as i32;
    let (mut n, mut l) = (0i32, 0i32);
    ok(sys!(SYS_ioctl, m, TIOCGPTN, &mut n));
    ok(sys!(SYS_ioctl, m, TIOCGPTLCK, &mut l));
    eq(l, 1);
    err(slave(n, O_RDWR | O_NOCTTY), EIO);
    ok(sys!(SYS_ioctl, m, TIOCSPTLCK, &0i32));
    ok(sys!(SYS_ioctl, m, TIOCGPTLCK, &mut l));
    eq(l, 0);
    let s = ok(slave(n, O_RDWR | O_NOCTTY)) as i32;
    ok(sys!(SYS_ioctl, m, TIOCSPTLCK, &1i32));
    err(slave(n, O_RDWR | O_NOCTTY), EIO);
    err(sys!(SYS_ioctl, m, TIOCSPTLCK, bad()), EFAULT);
    err(sys!(SYS_ioctl, m, TIOCGPTN, bad()), EFAULT);
    shut([m, s]);
}

fn names_and_devices() {
    let (m, s, n) = pair();
    let (sm, ss) = (stat_fd(m), stat_fd(s));
    eq(sm.st_rdev, makedev(5, 2));
    eq(ss.st_rdev, makedev(136, n as u32));
    eq((sm.st_mode & S_IFMT, ss.st_mode & S_IFMT), (S_IFCHR, S_IFCHR));
    eq((ss.st_size, ss.st_nlink, ss.st_ino), (0, 1, n as u64 + 3));
    let mut named: stat = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_stat, cstr(format!("/dev/pts/{n}")), &mut named));
    eq((named.st_dev, named.st_ino), (ss.st_dev, ss.st_ino));
    let mut b = [0 as c_char; 64];
    eq(unsafe { ttyname_r(s, b.as_mut_ptr(), 64) }, 0);
    eq(unsafe { std::ffi::CStr::from_ptr(b.as_ptr()) }.to_str(), Ok(format!("/dev/pts/{n}").as_str()));
    eq(unsafe { ptsname_r(m, b.as_mut_ptr(), 64) }, 0);
    eq(unsafe { std::ffi::CStr::from_ptr(b.as_ptr()) }.to_str(), Ok(format!("/dev/pts/{n}").as_str()));
    eq(unsafe { ptsname_r(s, b.as_mut_ptr(), 64) }, ENOTTY);
    eq(unsafe { grantpt(m) }, 0);
    eq(unsafe { unlockpt(m) }, 0);
    let link = std::fs::read_link(format!("/proc/self/fd/{s}")).unwrap();
    eq(link.to_str(), Some(format!("/dev/pts/{n}").as_str()));
    eq(std::fs::read_link(format!("/proc/self/fd/{m}")).unwrap().to_str(), Some("/dev/ptmx"));
    let mut f = [0u64; 16];
    ok(sys!(SYS_fstatfs, s, &mut f));
    eq(f[0], 0x1cd1);
    shut([m, s]);
}

fn owner_and_mode() {
    let (m, s, n) = pair();
    let a = stat_fd(s);
    eq(i64::from(a.st_uid), sys!(SYS_geteuid));
    check([0o600, 0o620].contains(&(a.st_mode & 0o7777)), "mode 600 or 620");
    ok(sys!(SYS_fchmod, s, 0o640));
    eq(stat_fd(s).st_mode & 0o7777, 0o640);
    ok(sys!(SYS_chmod, cstr(format!("/dev/pts/{n}")), 0o600));
    eq(stat_fd(s).st_mode & 0o7777, 0o600);
    errs(sys!(SYS_unlink, cstr(format!("/dev/pts/{n}"))), &[EPERM, EACCES]);
    errs(sys!(SYS_openat, AT_FDCWD, c"/dev/pts/new", O_CREAT | O_RDWR, 0o600), &[EPERM, EACCES]);
    errs(sys!(SYS_mkdir, c"/dev/pts/dir", 0o700), &[EPERM, EACCES]);
    shut([m, s]);
}

fn times_move() {
    let (m, s, n) = pair();
    let old = [1000i64, 0, 1000, 0];
    ok(sys!(SYS_utimensat, AT_FDCWD, cstr(format!("/dev/pts/{n}")), &old, 0));
    eq((stat_fd(s).st_atime, stat_fd(s).st_mtime), (1000, 1000));
    put(s, b"x");
    check(stat_fd(s).st_mtime > 1_000_000, "written now");
    put(m, b"y\n");
    reads(s, b"y\n");
    check(stat_fd(s).st_atime > 1_000_000, "read now");
    shut([m, s]);
}

fn listing() {
    let (m, s, n) = pair();
    let all: Vec<String> =
        std::fs::read_dir("/dev/pts").unwrap().flatten().map(|e| e.file_name().into_string().unwrap()).collect();
    check(all.contains(&n.to_string()) && all.contains(&"ptmx".to_string()), "both names");
    err(slave(99_999, O_RDWR), ENOENT);
    err(sys!(SYS_openat, AT_FDCWD, c"/dev/pts/00", O_RDWR, 0), ENOENT);
    shut([m, s]);
}

fn peer() {
    let (m, s, n) = pair();
    let p = ok(sys!(SYS_ioctl, m, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)) as i32;
    eq(stat_fd(p).st_ino, stat_fd(s).st_ino);
    eq(sys!(SYS_fcntl, p, F_GETFD), 1);
    check(sys!(SYS_fcntl, p, F_GETFL) as i32 & (O_ACCMODE | O_NONBLOCK) == O_RDWR | O_NONBLOCK, "flags");
    let link = std::fs::read_link(format!("/proc/self/fd/{p}")).unwrap();
    eq(link.to_str(), Some(format!("/dev/pts/{n}").as_str()));
    put(m, b"p\n");
    reads(p, b"p\n");
    let r = ok(sys!(SYS_ioctl, m, TIOCGPTPEER, O_RDONLY | O_NOCTTY)) as i32;
    err(sys!(SYS_write, r, b"x", 1), EBADF);
    shut([m, s, p, r]);
}

fn peer_errors() {
    let (m, s, _) = pair();
    err(sys!(SYS_ioctl, s, TIOCGPTPEER, O_RDWR), EIO);
    ok(sys!(SYS_ioctl, m, TIOCSPTLCK, &1i32));
    err(sys!(SYS_ioctl, m, TIOCGPTPEER, O_RDWR | O_NOCTTY), EIO);
    shut([m, s]);
}

fn master_only_requests() {
    let (m, s, _) = pair();
    let mut x = 0i32;
    for request in [TIOCGPTN, TIOCSPTLCK, GPTLCK, TIOCPKT, GPKT, SIG] {
        err(sys!(SYS_ioctl, s, request, &mut x), ENOTTY);
    }
    err(sys!(SYS_ioctl, m, SIG, SIGTERM), EINVAL);
    ok(sys!(SYS_ioctl, m, SIG, SIGINT));
    shut([m, s]);
}

fn master_close_hangs_up() {
    let (m, s, n) = pair();
    put(m, b"left\n");
    shut([m]);
    eq(sys!(SYS_read, s, &mut [0u8; 8], 8), 0);
    err(sys!(SYS_write, s, b"x", 1), EIO);
    err(sys!(SYS_ioctl, s, TCGETS, &mut [0u8; 64]), EIO);
    eq(revents(s), POLLIN | POLLOUT | POLLERR | POLLHUP);
    err(slave(n, O_RDWR | O_NOCTTY), ENOENT);
    shut([s]);
}

fn slave_close() {
    let (m, s, _) = pair();
    put(s, b"last");
    shut([s]);
    // What was written before is read first.
    reads(m, b"last");
    err(sys!(SYS_read, m, &mut [0u8; 8], 8), EIO);
    eq(revents(m), POLLHUP | POLLOUT);
    put(m, b"to nobody\n");
    shut([m]);
}

fn slave_again() {
    let (m, s, n) = pair();
    raw(s);
    shut([s]);
    err(sys!(SYS_read, m, &mut [0u8; 8], 8), EIO);
    let s = ok(slave(n, O_RDWR | O_NOCTTY)) as i32;
    // The settings stay as long as the master is open.
    eq(settings(s).c_lflag & ICANON, 0);
    nonblock(m);
    err(sys!(SYS_read, m, &mut [0u8; 8], 8), EAGAIN);
    put(s, b"back");
    reads(m, b"back");
    shut([m, s]);
}

fn slave_in_many() {
    let (m, s, n) = pair();
    let t = ok(slave(n, O_WRONLY | O_NOCTTY)) as i32;
    put(t, b"t");
    reads(m, b"t");
    err(sys!(SYS_read, t, &mut [0u8; 1], 1), EBADF);
    shut([s]);
    nonblock(m);
    err(sys!(SYS_read, m, &mut [0u8; 1], 1), EAGAIN);
    shut([t]);
    err(sys!(SYS_read, m, &mut [0u8; 1], 1), EIO);
    shut([m]);
}

fn read_before_slave() {
    let m = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK, 0)) as i32;
    err(sys!(SYS_read, m, &mut [0u8; 1], 1), EAGAIN);
    eq(revents(m), POLLOUT);
    shut([m]);
}

fn write_before_slave() {
    let m = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/ptmx", O_RDWR | O_NOCTTY, 0)) as i32;
    put(m, b"early\n");
    reads(m, b"early\r\n");
    let mut n = 0;
    ok(sys!(SYS_ioctl, m, TIOCGPTN, &mut n));
    ok(sys!(SYS_ioctl, m, TIOCSPTLCK, &0i32));
    let s = ok(slave(n, O_RDWR | O_NOCTTY)) as i32;
    reads(s, b"early\n");
    shut([m, s]);
}

fn fill(fd: i32) -> usize {
    let (mut sum, part) = (0, [b'x'; 1000]);
    loop {
        let n = sys!(SYS_write, fd, &part, 1000);
        if n == -i64::from(EAGAIN) {
            // What is under way may still arrive.
            sleep_ms(20);
            if sys!(SYS_write, fd, &part, 1) == -i64::from(EAGAIN) {
                return sum;
            }
            sum += 1;
            continue;
        }
        sum += ok(n) as usize;
        check(sum < 1_000_000, "an end");
    }
}

fn buffers_are_bounded() {
    let (m, s, _) = pair();
    raw(s);
    nonblock(m);
    nonblock(s);
    for (from, to) in [(m, s), (s, m)] {
        let n = fill(from);
        check((8192..65536).contains(&n), "some kilobytes");
        eq(revents(from) & POLLOUT, 0);
        let mut got = 0;
        while got < n {
            check(wait_input(to), "more");
            got += get(to, 100_000).len();
        }
        eq(got, n);
        eq(revents(from) & POLLOUT, POLLOUT);
    }
    shut([m, s]);
}

fn nonblocking() {
    let (m, s, _) = pair();
    nonblock(m);
    nonblock(s);
    err(sys!(SYS_read, m, &mut [0u8; 1], 1), EAGAIN);
    err(sys!(SYS_read, s, &mut [0u8; 1], 1), EAGAIN);
    put(m, b"half");
    sleep_ms(20);
    err(sys!(SYS_read, s, &mut [0u8; 1], 1), EAGAIN);
    put(m, b"\n");
    reads(s, b"half\n");
    eq(sys!(SYS_read, s, &mut [0u8; 1], 0), 0);
    eq(sys!(SYS_write, s, &[0u8; 1], 0), 0);
    err(sys!(SYS_write, s, bad(), 4), EFAULT);
    shut([m, s]);
}

fn blocked_reader_wakes() {
    let (m, s, _) = pair();
    let pid = child(|| {
        let mut b = [0u8; 8];
        let n = sys!(SYS_read, s, &mut b, 8);
        i32::from(n == 3 && &b[..3] == b"ab\n")
    });
    sleep_ms(30);
    put(m, b"ab\n");
    exits(pid, 1);
    let pid = child(|| {
        ok(sys!(SYS_close, m));
        // The one that waits gets an error, later ones an end of file.
        let n = sys!(SYS_read, s, &mut [0u8; 8], 8);
        i32::from(n == -i64::from(EIO) && sys!(SYS_read, s, &mut [0u8; 8], 8) == 0)
    });
    until_child_asleep(pid.into());
    shut([m]);
    exits(pid, 1);
    shut([s]);
}

fn blocked_writer_wakes() {
    let (m, s, _) = pair();
    raw(s);
    let data = vec![b'd'; 100_000];
    let pid = child(|| i32::from(sys!(SYS_write, s, &data[..], data.len()) == data.len() as i64));
    let mut got = 0;
    while got < data.len() {
        check(wait_input(m), "more");
        got += get(m, 4096).len();
    }
    exits(pid, 1);
    let pid = child(|| i32::from(sys!(SYS_write, m, &data[..], data.len()) == data.len() as i64));
    let mut got = 0;
    while got < data.len() {
        check(wait_input(s), "more");
        got += get(s, 4096).len();
    }
    exits(pid, 1);
    shut([m, s]);
}

fn poll_states() {
    let (m, s, _) = pair();
    eq((revents(m), revents(s)), (POLLOUT, POLLOUT));
    put(m, b"x");
    check(wait_input(m), "the echo");
    eq((revents(m), revents(s)), (POLLOUT | POLLIN, POLLOUT));
    put(m, b"\n");
    check(wait_input(s), "a line");
    shut([m, s]);
}

fn epoll_edge() {
    let (m, s, _) = pair();
    raw(s);
    let e = ok(sys!(SYS_epoll_create1, 0)) as i32;
    let mut ev = epoll_event { events: (EPOLLIN | EPOLLET) as u32, u64: 7 };
    ok(sys!(SYS_epoll_ctl, e, EPOLL_CTL_ADD, s, &mut ev));
    eq(sys!(SYS_epoll_wait, e, &mut ev, 1, 0), 0);
    put(m, b"1");
    eq(sys!(SYS_epoll_wait, e, &mut ev, 1, -1), 1);
    eq(sys!(SYS_epoll_wait, e, &mut ev, 1, 0), 0);
    put(m, b"2");
    eq(sys!(SYS_epoll_wait, e, &mut ev, 1, -1), 1);
    shut([m]);
    eq(sys!(SYS_epoll_wait, e, &mut ev, 1, -1), 1);
    check(ev.events & (EPOLLHUP | EPOLLERR) as u32 == (EPOLLHUP | EPOLLERR) as u32, "hung up");
    shut([e, s]);
}

fn packet_mode() {
    let (m, s, _) = pair();
    raw(s);
    let mut on = 0i32;
    ok(sys!(SYS_ioctl, m, TIOCPKT, &1i32));
    ok(sys!(SYS_ioctl, m, GPKT, &mut on));
    eq(on, 1);
    put(s, b"data");
    reads(m, b"\0data");
    put(s, b"more");
    check(wait_input(m), "more");
    eq(get(m, 3), b"\0mo");
    eq(get(m, 1), b"\0");
    eq(get(m, 9), b"\0re");
    ok(sys!(SYS_ioctl, m, TIOCPKT, &0i32));
    put(s, b"x");
    reads(m, b"x");
    err(sys!(SYS_ioctl, m, TIOCPKT, bad()), EFAULT);
    shut([m, s]);
}

fn packet_status() {
    let (m, s, _) = pair();
    ok(sys!(SYS_ioctl, m, TIOCPKT, &1i32));
    ok(sys!(SYS_ioctl, s, TCFLSH, TCIFLUSH));
    eq(revents(m) & (POLLPRI | POLLIN), POLLPRI | POLLIN);
    eq(get(m, 9), [1]);
    ok(sys!(SYS_ioctl, s, TCFLSH, TCIOFLUSH));
    eq(get(m, 9), [3]);
    put(m, b"\x13");
    check(wait_input(m), "stopped");
    eq(get(m, 9), [4]);
    put(m, b"\x11");
    check(wait_input(m), "started");
    eq(get(m, 9), [8]);
    change(s, |t| t.c_iflag &= !IXON);
    eq(get(m, 9), [16]);
    change(s, |t| t.c_iflag |= IXON);
    eq(get(m, 9), [32]);
    change(s, |t| t.c_lflag |= EXTPROC);
    eq(get(m, 9), [64]);
    shut([m, s]);
}

fn exclusive() {
    let (m, s, n) = pair();
    let mut x = 9i32;
    ok(sys!(SYS_ioctl, s, GEXCL, &mut x));
    eq(x, 0);
    ok(sys!(SYS_ioctl, s, TIOCEXCL));
    ok(sys!(SYS_ioctl, s, GEXCL, &mut x));
    eq(x, 1);
    ok(sys!(SYS_ioctl, m, GEXCL, &mut x));
    eq(x, 0);
    let again = slave(n, O_RDWR | O_NOCTTY);
    if sys!(SYS_geteuid) == 0 {
        shut([ok(again) as i32]);
    } else {
        err(again, EBUSY);
    }
    ok(sys!(SYS_ioctl, s, TIOCNXCL));
    shut([ok(slave(n, O_RDWR | O_NOCTTY)) as i32, m, s]);
}

fn winsize() {
    let (m, s, _) = pair();
    let mut w = [9u16; 4];
    ok(sys!(SYS_ioctl, s, TIOCGWINSZ, &mut w));
    eq(w, [0; 4]);
    ok(sys!(SYS_ioctl, s, TIOCSWINSZ, &[30u16, 90, 1, 2]));
    ok(sys!(SYS_ioctl, m, TIOCGWINSZ, &mut w));
    eq(w, [30, 90, 1, 2]);
    err(sys!(SYS_ioctl, s, TIOCGWINSZ, bad()), EFAULT);
    err(sys!(SYS_ioctl, s, TIOCSWINSZ, bad()), EFAULT);
    shut([m, s]);
}

fn getdev_and_discipline() {
    let (m, s, n) = pair();
    let mut d = 0u32;
    ok(sys!(SYS_ioctl, s, GDEV, &mut d));
    eq(d, 136 << 8 | n as u32 & 255);
    ok(sys!(SYS_ioctl, m, GDEV, &mut d));
    eq(d, 136 << 8 | n as u32 & 255);
    let mut l = 9i32;
    ok(sys!(SYS_ioctl, s, TIOCGETD, &mut l));
    eq(l, 0);
    ok(sys!(SYS_ioctl, s, TIOCSETD, &0i32));
    err(sys!(SYS_ioctl, s, TIOCSETD, &99i32), EINVAL);
    err(sys!(SYS_ioctl, s, TIOCSETD, bad()), EFAULT);
    shut([m, s]);
}

fn seek_and_map() {
    let (m, s, _) = pair();
    for fd in [m, s] {
        err(sys!(SYS_lseek, fd, 0, SEEK_SET), ESPIPE);
        err(sys!(SYS_pread64, fd, &mut [0u8; 1], 1, 0), ESPIPE);
        err(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, fd, 0), ENODEV);
        err(sys!(SYS_fsync, fd), EINVAL);
        err(sys!(SYS_ftruncate, fd, 0), EINVAL);
    }
    shut([m, s]);
}

fn dup_keeps_open() {
    let (m, s, _) = pair();
    let d = ok(sys!(SYS_dup, s)) as i32;
    shut([s]);
    put(d, b"d");
    reads(m, b"d");
    let e = ok(sys!(SYS_dup, m)) as i32;
    shut([m]);
    put(e, b"e\n");
    reads(d, b"e\n");
    shut([d, e]);
}

fn number_comes_back() {
    let (m, s, n) = pair();
    shut([m]);
    let (m2, s2, n2) = pair();
    // The dead slave still has its number.
    check(n2 != n, "another one");
    shut([m2, s2, s]);
    // Others may have it for a while.
    until("a number that was free", || {
        let (m, s, again) = pair();
        shut([m, s]);
        again <= n.max(n2)
    });
}

fn many_pairs() {
    let all: Vec<_> = (0..20).map(|_| pair()).collect();
    for (i, (m, s, _)) in all.iter().enumerate() {
        put(*m, format!("{i}\n").as_bytes());
        reads(*s, format!("{i}\n").as_bytes());
    }
    for (m, s, _) in all {
        shut([m, s]);
    }
}

fn gone_slave_path() {
    let (m, s, n) = pair();
    let p = ok(slave(n, O_PATH)) as i32;
    shut([m]);
    err(sys!(SYS_openat, AT_FDCWD, cstr(format!("/proc/self/fd/{p}")), O_RDWR | O_NOCTTY, 0), EIO);
    let link = std::fs::read_link(format!("/proc/self/fd/{s}")).unwrap();
    eq(link.to_str(), Some(format!("/dev/pts/{n} (deleted)").as_str()));
    shut([s, p]);
}

fn ptmx_in_pts() {
    let mut s: stat = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_stat, c"/dev/pts/ptmx", &mut s));
    eq((s.st_rdev, s.st_ino, s.st_mode & S_IFMT), (makedev(5, 2), 2, S_IFCHR));
    let m = sys!(SYS_openat, AT_FDCWD, c"/dev/pts/ptmx", O_RDWR | O_NOCTTY, 0);
    // ptmxmode is the administrator's choice.
    if m == -i64::from(EACCES) {
        check(s.st_mode & 0o666 != 0o666, "refused by its mode");
        return;
    }
    let m = ok(m) as i32;
    let mut n = 0;
    ok(sys!(SYS_ioctl, m, TIOCGPTN, &mut n));
    shut([m]);
}

fn hung_up_requests() {
    let (m, s, _) = pair();
    shut([m]);
    let mut x = [0u8; 64];
    for request in [TCGETS, TIOCGWINSZ, TIOCGPGRP, FIONREAD, 0xdead] {
        err(sys!(SYS_ioctl, s, request, &mut x), EIO);
    }
    err(sys!(SYS_ioctl, s, TIOCSPGRP, &mut x), ENOTTY);
    shut([s]);
}
