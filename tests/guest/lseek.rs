//! lseek(2).

use guest_tests::*;
use libc::*;

cases![set_cur_end, negative_result, bad_whence, not_seekable, bad_fd, past_end, data_and_hole, directory, overflow, path_fd, nowhere, devices];

fn set_cur_end() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    eq(sys!(SYS_lseek, fd, 4, SEEK_SET), 4);
    eq(sys!(SYS_lseek, fd, 3, SEEK_CUR), 7);
    eq(sys!(SYS_lseek, fd, -2, SEEK_CUR), 5);
    eq(sys!(SYS_lseek, fd, -1, SEEK_END), 9);
    eq(sys!(SYS_lseek, fd, 0, SEEK_END), 10);
    shut([fd]);
}

fn negative_result() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    err(sys!(SYS_lseek, fd, -1, SEEK_SET), EINVAL);
    err(sys!(SYS_lseek, fd, -11, SEEK_END), EINVAL);
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 0);
    shut([fd]);
}

fn bad_whence() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    err(sys!(SYS_lseek, fd, 0, 5), EINVAL);
    err(sys!(SYS_lseek, fd, 0, -1), EINVAL);
    shut([fd]);
}

fn not_seekable() {
    let p = pipe_pair();
    err(sys!(SYS_lseek, p[0], 0, SEEK_CUR), ESPIPE);
    err(sys!(SYS_lseek, p[0], 0, 99), EINVAL);
    shut(p);
}

fn bad_fd() {
    err(sys!(SYS_lseek, -1, 0, SEEK_SET), EBADF);
}

fn past_end() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    eq(sys!(SYS_lseek, fd, 1i64 << 40, SEEK_SET), 1 << 40);
    eq(stat_fd(fd).st_size, 2);
    shut([fd]);
}

fn data_and_hole() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    ok(sys!(SYS_ftruncate, fd, 1 << 20));
    eq(sys!(SYS_pwrite64, fd, b"x", 1, 512 << 10), 1);
    let d = ok(sys!(SYS_lseek, fd, 0, SEEK_DATA));
    check(d <= 512 << 10, "data begins at or before the byte written");
    let h = ok(sys!(SYS_lseek, fd, 512 << 10, SEEK_HOLE));
    check(h > 512 << 10 && h <= 1 << 20, "a hole or the end follows");
    eq(sys!(SYS_lseek, fd, 512 << 10, SEEK_DATA), 512 << 10);
    err(sys!(SYS_lseek, fd, 1 << 20, SEEK_DATA), ENXIO);
    err(sys!(SYS_lseek, fd, 2 << 20, SEEK_HOLE), ENXIO);
    err(sys!(SYS_lseek, fd, -1, SEEK_DATA), ENXIO);
    shut([fd]);
}

fn directory() {
    let t = Tmp::new();
    let fd = ok(t.open("", O_RDONLY)) as i32;
    eq(sys!(SYS_lseek, fd, 0, SEEK_SET), 0);
    shut([fd]);
}

fn overflow() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    errs(sys!(SYS_lseek, fd, i64::MAX, SEEK_END), &[EOVERFLOW, EINVAL]);
    shut([fd]);
}

fn path_fd() {
    let t = Tmp::new();
    let fd = ok(t.open("", O_PATH)) as i32;
    err(sys!(SYS_lseek, fd, 0, SEEK_SET), EBADF);
    shut([fd]);
}

fn nowhere() {
    // Descriptors for events answer 0 to any seek, but have no position to read at.
    let p = pipe_pair();
    let mut set = 0u64;
    let fds = [
        ok(sys!(SYS_eventfd2, 0, EFD_NONBLOCK)) as i32,
        ok(sys!(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_NONBLOCK)) as i32,
        ok(sys!(SYS_signalfd4, -1, &mut set, 8, SFD_NONBLOCK)) as i32,
        ok(sys!(SYS_epoll_create1, 0)) as i32,
        ok(sys!(SYS_inotify_init1, IN_NONBLOCK)) as i32,
    ];
    for fd in fds {
        for (to, whence) in [(0, SEEK_SET), (5, SEEK_SET), (-1, SEEK_END), (3, SEEK_CUR)] {
            eq(sys!(SYS_lseek, fd, to, whence), 0);
        }
        err(sys!(SYS_lseek, fd, 0, 99), EINVAL);
        err(sys!(SYS_pread64, fd, &mut [0u8; 8], 8, 0), ESPIPE);
    }
    shut(fds);
    shut(p);
}

fn devices() {
    for d in [c"/dev/null", c"/dev/zero", c"/dev/full", c"/dev/urandom"] {
        let fd = ok(sys!(SYS_openat, AT_FDCWD, d, O_RDWR, 0)) as i32;
        eq(sys!(SYS_lseek, fd, 5, SEEK_SET), 0);
        eq(sys!(SYS_lseek, fd, 5, SEEK_END), 0);
        shut([fd]);
    }
}
