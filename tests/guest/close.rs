//! shut(2) and close_range(2).

use guest_tests::*;
use libc::*;

cases![twice, bad_fd, last_reference_counts, range, range_cloexec, range_unshare, range_errors];

fn twice() {
    let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/", O_RDONLY, 0));
    eq(sys!(SYS_close, fd), 0);
    err(sys!(SYS_close, fd), EBADF);
}

fn bad_fd() {
    err(sys!(SYS_close, -1), EBADF);
    err(sys!(SYS_close, 0x7fff_ffff), EBADF);
}

fn last_reference_counts() {
    let p = pipe_pair();
    let w = ok(sys!(SYS_dup, p[1]));
    ok(sys!(SYS_close, p[1]));
    ok(sys!(SYS_fcntl, p[0], F_SETFL, O_NONBLOCK));
    let mut b = [0u8; 2];
    err(sys!(SYS_read, p[0], &mut b, 2), EAGAIN);
    ok(sys!(SYS_close, w));
    eq(sys!(SYS_read, p[0], &mut b, 2), 0);
    shut([p[0]]);
}

fn range() {
    in_child(|| {
        ok(sys!(SYS_dup2, 1, 50));
        ok(sys!(SYS_dup2, 1, 52));
        ok(sys!(SYS_dup2, 1, 60));
        eq(sys!(SYS_close_range, 50, 55, 0), 0);
        err(sys!(SYS_fcntl, 50, F_GETFD), EBADF);
        err(sys!(SYS_fcntl, 52, F_GETFD), EBADF);
        ok(sys!(SYS_fcntl, 60, F_GETFD));
        eq(sys!(SYS_close_range, 60, u32::MAX, 0), 0);
        err(sys!(SYS_fcntl, 60, F_GETFD), EBADF);
    });
}

fn range_cloexec() {
    in_child(|| {
        ok(sys!(SYS_dup2, 1, 50));
        eq(sys!(SYS_close_range, 50, 55, CLOSE_RANGE_CLOEXEC), 0);
        eq(sys!(SYS_fcntl, 50, F_GETFD), i64::from(FD_CLOEXEC));
    });
}

fn range_unshare() {
    in_child(|| {
        ok(sys!(SYS_dup2, 1, 50));
        eq(sys!(SYS_close_range, 50, u32::MAX, CLOSE_RANGE_UNSHARE), 0);
        err(sys!(SYS_fcntl, 50, F_GETFD), EBADF);
    });
}

fn range_errors() {
    err(sys!(SYS_close_range, 10, 5, 0), EINVAL);
    err(sys!(SYS_close_range, 500, 600, 0x100), EINVAL);
}
