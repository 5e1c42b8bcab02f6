//! dup(2), dup2(2), dup3(2).

use guest_tests::*;
use libc::*;

cases![
    lowest, shares_offset_and_flags, clears_cloexec, bad_fd, dup2_replaces, dup2_same, dup2_bad, dup2_beyond_limit, dup3_cloexec, dup3_errors
];

fn root() -> i32 {
    ok(sys!(SYS_openat, AT_FDCWD, c"/", O_RDONLY | O_CLOEXEC, 0)) as i32
}

fn lowest() {
    in_child(|| {
        let a = root();
        let b = root();
        shut([a]);
        eq(sys!(SYS_dup, b), i64::from(a));
    });
}

fn shares_offset_and_flags() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let d = ok(sys!(SYS_dup, fd)) as i32;
    ok(sys!(SYS_lseek, fd, 7, SEEK_SET));
    eq(sys!(SYS_lseek, d, 0, SEEK_CUR), 7);
    ok(sys!(SYS_fcntl, fd, F_SETFL, O_APPEND));
    eq(sys!(SYS_fcntl, d, F_GETFL) & i64::from(O_APPEND), i64::from(O_APPEND));
    shut([fd, d]);
}

fn clears_cloexec() {
    let a = root();
    let b = ok(sys!(SYS_dup, a)) as i32;
    eq(sys!(SYS_fcntl, b, F_GETFD), 0);
    shut([a, b]);
}

fn bad_fd() {
    err(sys!(SYS_dup, -1), EBADF);
    err(sys!(SYS_dup, 9999), EBADF);
}

fn dup2_replaces() {
    let p = pipe_pair();
    let q = pipe_pair();
    // The old read end goes: its writer notices.
    eq(sys!(SYS_dup2, p[0], q[0]), i64::from(q[0]));
    let _on = sig::with(SIGPIPE, SIG_IGN, 0);
    err(sys!(SYS_write, q[1], b"x", 1), EPIPE);
    eq(sys!(SYS_write, p[1], b"y", 1), 1);
    let mut b = [0u8; 1];
    eq(sys!(SYS_read, q[0], &mut b, 1), 1);
    shut(p);
    shut(q);
}

fn dup2_same() {
    let a = root();
    eq(sys!(SYS_dup2, a, a), i64::from(a));
    // The flag stays: nothing was duplicated.
    eq(sys!(SYS_fcntl, a, F_GETFD), i64::from(FD_CLOEXEC));
    shut([a]);
    err(sys!(SYS_dup2, a, a), EBADF);
}

fn dup2_bad() {
    err(sys!(SYS_dup2, -1, 5), EBADF);
    err(sys!(SYS_dup2, 1, -1), EBADF);
}

fn dup2_beyond_limit() {
    let mut l = [0u64; 2];
    ok(sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &mut l));
    err(sys!(SYS_dup2, 1, l[0]), EBADF);
    eq(sys!(SYS_dup2, 1, 1000), 1000);
    shut([1000]);
}

fn dup3_cloexec() {
    let a = root();
    eq(sys!(SYS_dup3, a, 900, O_CLOEXEC), 900);
    eq(sys!(SYS_fcntl, 900, F_GETFD), i64::from(FD_CLOEXEC));
    eq(sys!(SYS_dup3, a, 900, 0), 900);
    eq(sys!(SYS_fcntl, 900, F_GETFD), 0);
    shut([a, 900]);
}

fn dup3_errors() {
    err(sys!(SYS_dup3, 1, 1, 0), EINVAL);
    err(sys!(SYS_dup3, 1, 900, O_NONBLOCK), EINVAL);
    err(sys!(SYS_dup3, -1, 900, 0), EBADF);
    err(sys!(SYS_dup3, 1, -1, 0), EBADF);
}
