//! write(2).

use guest_tests::*;
use libc::*;

cases![
    at_offset, append_goes_to_the_end, hole_reads_as_zero, bad_fd, read_only_fd, bad_pointer, fault_in_the_middle,
    zero_length, null_device, full_device, closed_pipe, past_file_size_limit, updates_mtime, large, pieces_counted, pieces_of_a_counter
];

fn at_offset() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    ok(sys!(SYS_lseek, fd, 3, SEEK_SET));
    eq(sys!(SYS_write, fd, b"abc", 3), 3);
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 6);
    eq(t.read("f"), b"012abc6789");
    shut([fd]);
}

fn append_goes_to_the_end() {
    let t = Tmp::new();
    shut([t.file("f", b"0123")]);
    let fd = ok(t.open("f", O_WRONLY | O_APPEND));
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 0);
    eq(sys!(SYS_write, fd, b"ab", 2), 2);
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 6);
    ok(sys!(SYS_lseek, fd, 0, SEEK_SET));
    eq(sys!(SYS_write, fd, b"cd", 2), 2);
    eq(t.read("f"), b"0123abcd");
    ok(sys!(SYS_close, fd));
}

fn hole_reads_as_zero() {
    let t = Tmp::new();
    let fd = t.file("f", b"a");
    ok(sys!(SYS_lseek, fd, 10_000, SEEK_SET));
    eq(sys!(SYS_write, fd, b"z", 1), 1);
    let d = t.read("f");
    eq(d.len(), 10_001);
    check(d[1..10_000].iter().all(|b| *b == 0), "the hole is zero");
    shut([fd]);
}

fn bad_fd() {
    err(sys!(SYS_write, -1, b"x", 1), EBADF);
    err(sys!(SYS_write, 1_000_000, bad(), 1), EBADF);
}

fn read_only_fd() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    let fd = ok(t.open("f", O_RDONLY));
    err(sys!(SYS_write, fd, b"x", 1), EBADF);
    ok(sys!(SYS_close, fd));
    let fd = ok(t.open("f", O_PATH));
    err(sys!(SYS_write, fd, b"x", 1), EBADF);
    ok(sys!(SYS_close, fd));
}

fn bad_pointer() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    err(sys!(SYS_write, fd, bad(), 2), EFAULT);
    err(sys!(SYS_write, fd, 0, 2), EFAULT);
    eq(sys!(SYS_lseek, fd, 0, SEEK_END), 0);
    shut([fd]);
}

fn fault_in_the_middle() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let g = Guarded::new();
    unsafe { std::ptr::copy_nonoverlapping(b"wxyz".as_ptr(), g.tail(4), 4) };
    // The file system may take the part or refuse the whole, but what it counts is what is there.
    let r = sys!(SYS_write, fd, g.tail(4), 10);
    check(r == 4 || r == -i64::from(EFAULT), "4 or EFAULT");
    eq(t.read("f"), &b"wxyz"[..r.max(0) as usize]);
    shut([fd]);
}

fn zero_length() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    eq(sys!(SYS_write, fd, bad(), 0), 0);
    err(sys!(SYS_write, fd, bad(), -1isize), EFAULT);
    shut([fd]);
}

fn null_device() {
    let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/null", O_WRONLY, 0));
    eq(sys!(SYS_write, fd, b"x", 1), 1);
    eq(sys!(SYS_write, fd, bad(), 100), 100);
    ok(sys!(SYS_close, fd));
}

fn full_device() {
    let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/full", O_RDWR, 0));
    err(sys!(SYS_write, fd, b"x", 1), ENOSPC);
    let mut b = [7u8; 2];
    eq(sys!(SYS_read, fd, &mut b, 2), 2);
    eq(b, [0, 0]);
    ok(sys!(SYS_close, fd));
}

fn closed_pipe() {
    let old = sig::on(SIGPIPE, 0);
    let p = pipe_pair();
    ok(sys!(SYS_close, p[0]));
    err(sys!(SYS_write, p[1], b"x", 1), EPIPE);
    eq(sig::hits(), 1);
    ok(sys!(SYS_close, p[1]));
    drop(old);
    killed_by(
        child(|| {
            sig::handle(SIGPIPE, SIG_DFL, 0);
            let p = pipe_pair();
            sys!(SYS_close, p[0]);
            sys!(SYS_write, p[1], b"x", 1);
            1
        }),
        SIGPIPE,
    );
}

fn past_file_size_limit() {
    in_child(|| {
        let t = Tmp::new();
        let fd = t.file("f", b"");
        ok(sys!(SYS_prlimit64, 0, RLIMIT_FSIZE, &[100u64, 100], 0));
        let _on = sig::on(SIGXFSZ, 0);
        ok(sys!(SYS_lseek, fd, 90, SEEK_SET));
        eq(sys!(SYS_write, fd, &[1u8; 20], 20), 10);
        eq(sig::hits(), 0);
        err(sys!(SYS_write, fd, b"x", 1), EFBIG);
        eq(sig::hits(), 1);
    });
}

fn updates_mtime() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    ok(sys!(SYS_utimensat, fd, 0, &[5i64, 0, 5, 0], 0));
    eq(stat_fd(fd).st_mtime, 5);
    eq(sys!(SYS_write, fd, b"x", 1), 1);
    check(stat_fd(fd).st_mtime > 1_600_000_000, "mtime is now");
    shut([fd]);
}

fn large() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let data: Vec<u8> = (0..3_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    eq(sys!(SYS_write, fd, &data[..], data.len()), data.len() as i64);
    check(t.read("f") == data, "reads back");
    shut([fd]);
}

/// Linux takes 32 bits of the count of pieces.
fn pieces_counted() {
    let p = pipe_pair();
    let data = *b"ab";
    let iov = [iovec { iov_base: data.as_ptr() as *mut _, iov_len: 2 }];
    eq(sys!(SYS_writev, p[1], &iov, 1u64 << 32), 0);
    eq(sys!(SYS_writev, p[1], bad(), 1u64 << 32), 0);
    eq(sys!(SYS_writev, p[1], &iov, (1u64 << 32) + 1), 2);
    err(sys!(SYS_writev, p[1], &iov, -1), EINVAL);
    err(sys!(SYS_writev, p[1], &iov, (1u64 << 32) + 1025), EINVAL);
    eq(sys!(SYS_readv, p[0], &iov, 1u64 << 32), 0);
    let t = Tmp::new();
    let f = t.file("f", b"");
    eq(sys!(SYS_pwritev, f, &iov, (1u64 << 32) + 1, 0, 0), 2);
    err(sys!(SYS_preadv, f, &iov, -1, 0, 0), EINVAL);
    // Of no bytes, a directory is like everything.
    let d = ok(t.open("", O_RDONLY | O_DIRECTORY)) as i32;
    let none = [iovec { iov_base: data.as_ptr() as *mut _, iov_len: 0 }];
    eq(sys!(SYS_readv, d, &none, 1), 0);
    eq(sys!(SYS_readv, d, 0, 0), 0);
    eq(sys!(SYS_preadv, d, &none, 1, 0, 0), 0);
    err(sys!(SYS_readv, d, &iov, 1), EISDIR);
    err(sys!(SYS_read, d, bad(), 0), EISDIR);
    shut([p[0], p[1], f, d]);
}

/// Each piece is a number for an event counter.
fn pieces_of_a_counter() {
    let e = ok(sys!(SYS_eventfd2, 0, EFD_NONBLOCK)) as i32;
    let numbers = [3u64, 4, u64::MAX - 1, 1];
    let at = |i: usize, len: usize| iovec { iov_base: numbers[i..].as_ptr() as *mut _, iov_len: len };
    let count = || {
        let mut n = 0u64;
        sys!(SYS_read, e, &mut n, 8);
        n
    };
    eq(sys!(SYS_writev, e, &[at(0, 8), at(1, 0), at(1, 8)], 3), 16);
    eq(count(), 7);
    // What does not fit any more ends it.
    eq(sys!(SYS_writev, e, &[at(0, 8), at(2, 8), at(3, 8)], 3), 8);
    eq(count(), 3);
    eq(sys!(SYS_writev, e, &[at(0, 8), at(1, 4)], 2), 8);
    eq(count(), 3);
    err(sys!(SYS_writev, e, &[at(0, 4), at(1, 4)], 2), EINVAL);
    eq(sys!(SYS_writev, e, &[at(0, 0)], 1), 0);
    eq(sys!(SYS_writev, e, 0, 0), 0);
    shut([e]);
}
