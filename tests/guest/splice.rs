//! splice(2), tee(2), vmsplice(2), and sendfile(2) with pipes.

use guest_tests::*;
use libc::*;

cases![
    splice_basic, splice_errors, splice_full_and_empty, splice_ends, splice_broken, splice_waits, splice_between_pipes, splice_packets, splice_socket,
    splice_offsets, splice_device, tee_basic, tee_errors, tee_states, tee_waits, vmsplice_basic, vmsplice_errors, vmsplice_states,
    sendfile_to_pipe, sendfile_sources, sendfile_judges
];

fn splice_basic() {
    let t = Tmp::new();
    let (a, b) = (t.file("a", b"0123456789"), t.file("b", b""));
    let p = pipe_pair();
    let mut off = 2i64;
    eq(sys!(SYS_splice, a, &mut off, p[1], 0, 5, 0), 5);
    eq(unsafe { (&raw const off).read_volatile() }, 7);
    eq(sys!(SYS_splice, p[0], 0, b, 0, 100, 0), 5);
    eq(t.read("b"), b"23456");
    err(sys!(SYS_splice, p[0], 0, b, 0, 100, SPLICE_F_NONBLOCK), EAGAIN);
    let q = pipe_pair();
    eq(sys!(SYS_write, p[1], b"xyz", 3), 3);
    eq(sys!(SYS_splice, p[0], 0, q[1], 0, 2, 0), 2);
    let mut r = [0u8; 4];
    eq(sys!(SYS_read, q[0], &mut r, 4), 2);
    shut([a, b, p[0], p[1], q[0], q[1]]);
}

fn splice_errors() {
    let t = Tmp::new();
    let (a, b) = (t.file("a", b"0"), t.file("b", b""));
    let p = pipe_pair();
    err(sys!(SYS_splice, a, 0, b, 0, 1, 0), EINVAL);
    err(sys!(SYS_splice, p[0], &0i64, b, 0, 1, 0), ESPIPE);
    err(sys!(SYS_splice, 9999, 0, p[1], 0, 1, 0), EBADF);
    err(sys!(SYS_splice, a, 0, p[1], 0, 1, 0x100), EINVAL);
    eq(sys!(SYS_splice, a, 0, p[1], 0, 0, 0), 0);
    eq(sys!(SYS_splice, 9999, 0, p[1], 0, 0, 0), 0);
    err(sys!(SYS_splice, p[0], 0, p[1], 0, 1, 0), EINVAL);
    err(sys!(SYS_splice, p[1], 0, b, 0, 1, 0), EBADF);
    err(sys!(SYS_splice, a, 0, p[0], 0, 1, 0), EBADF);
    err(sys!(SYS_splice, a, 0, p[1], &0i64, 1, 0), ESPIPE);
    err(sys!(SYS_splice, a, bad(), p[1], 0, 1, 0), EFAULT);
    err(sys!(SYS_splice, a, &-1i64, p[1], 0, 1, 0), EINVAL);
    eq(sys!(SYS_write, p[1], b"x", 1), 1);
    ok(sys!(SYS_fcntl, b, F_SETFL, O_APPEND));
    err(sys!(SYS_splice, p[0], 0, b, 0, 1, 0), EINVAL);
    shut([a, b, p[0], p[1]]);
}

fn tee_basic() {
    let (p, q) = (pipe_pair(), pipe_pair());
    eq(sys!(SYS_write, p[1], b"abc", 3), 3);
    eq(sys!(SYS_tee, p[0], q[1], 100, 0), 3);
    let mut r = [0u8; 4];
    eq(sys!(SYS_read, p[0], &mut r, 4), 3);
    eq(sys!(SYS_read, q[0], &mut r, 4), 3);
    eq(&r[..3], b"abc");
    err(sys!(SYS_tee, p[0], p[1], 1, 0), EINVAL);
    shut(p);
    shut(q);
}

fn vmsplice_basic() {
    let p = pipe_pair();
    let d = *b"hello";
    eq(sys!(SYS_vmsplice, p[1], &[d.as_ptr() as usize, 5], 1, 0), 5);
    let mut r = [0u8; 8];
    eq(sys!(SYS_vmsplice, p[0], &[r.as_mut_ptr() as usize, 8], 1, 0), 5);
    eq(&r[..5], b"hello");
    shut(p);
}


fn fill(w: i32) {
    ok(sys!(SYS_fcntl, w, F_SETFL, O_NONBLOCK));
    let b = [b'f'; 4096];
    while sys!(SYS_write, w, &b, 4096) > 0 {}
    while sys!(SYS_write, w, &b, 1) > 0 {}
    ok(sys!(SYS_fcntl, w, F_SETFL, 0));
}

fn splice_full_and_empty() {
    let t = Tmp::new();
    let (a, b) = (t.file("a", &[b'a'; 100]), t.file("b", b""));
    let (p, q) = (pipe_pair(), pipe_pair());
    err(sys!(SYS_splice, p[0], 0, q[1], 0, 1, SPLICE_F_NONBLOCK), EAGAIN);
    fill(q[1]);
    err(sys!(SYS_splice, a, 0, q[1], 0, 1, SPLICE_F_NONBLOCK), EAGAIN);
    eq(sys!(SYS_write, p[1], b"abc", 3), 3);
    err(sys!(SYS_splice, p[0], 0, q[1], 0, 1, SPLICE_F_NONBLOCK), EAGAIN);
    // O_NONBLOCK of a pipe counts as the flag.
    ok(sys!(SYS_fcntl, q[1], F_SETFL, O_NONBLOCK));
    err(sys!(SYS_splice, a, 0, q[1], 0, 1, 0), EAGAIN);
    err(sys!(SYS_splice, p[0], 0, q[1], 0, 1, 0), EAGAIN);
    ok(sys!(SYS_fcntl, p[0], F_SETFL, O_NONBLOCK));
    eq(sys!(SYS_splice, p[0], 0, b, 0, 9, 0), 3);
    err(sys!(SYS_splice, p[0], 0, b, 0, 9, 0), EAGAIN);
    eq(t.read("b"), b"abc");
    shut([a, b, p[0], p[1], q[0], q[1]]);
}

fn splice_ends() {
    let t = Tmp::new();
    let (a, b) = (t.file("a", b"abc"), t.file("b", b""));
    let (p, q) = (pipe_pair(), pipe_pair());
    // The end of a file, and of a pipe without writers.
    eq(sys!(SYS_splice, a, 0, p[1], 0, 9, 0), 3);
    eq(sys!(SYS_splice, a, 0, p[1], 0, 9, 0), 0);
    shut([p[1]]);
    eq(sys!(SYS_splice, p[0], 0, q[1], 0, 2, 0), 2);
    eq(sys!(SYS_splice, p[0], 0, b, 0, 9, 0), 1);
    eq(sys!(SYS_splice, p[0], 0, b, 0, 9, SPLICE_F_NONBLOCK), 0);
    eq(sys!(SYS_splice, p[0], 0, q[1], 0, 9, 0), 0);
    eq(sys!(SYS_tee, p[0], q[1], 9, 0), 0);
    eq(t.read("b"), b"c");
    shut([a, b, p[0], q[0], q[1]]);
}

fn splice_broken() {
    let t = Tmp::new();
    let a = t.file("a", b"abc");
    let (p, q) = (pipe_pair(), pipe_pair());
    shut([q[0]]);
    eq(sys!(SYS_write, p[1], b"abc", 3), 3);
    let _on = sig::on(SIGPIPE, 0);
    err(sys!(SYS_splice, a, 0, q[1], 0, 9, 0), EPIPE);
    eq(sig::hits(), 1);
    err(sys!(SYS_splice, p[0], 0, q[1], 0, 9, 0), EPIPE);
    err(sys!(SYS_tee, p[0], q[1], 9, 0), EPIPE);
    err(sys!(SYS_vmsplice, q[1], &[b"x".as_ptr() as usize, 1], 1, 0), EPIPE);
    eq(sig::hits(), 4);
    let mut b = [0u8; 8];
    eq(sys!(SYS_read, p[0], &mut b, 8), 3);
    shut([a, p[0], p[1], q[1]]);
}

fn splice_waits() {
    let t = Tmp::new();
    let (a, b) = (t.file("a", b"abc"), t.file("b", b""));
    let (p, q) = (pipe_pair(), pipe_pair());
    let (pw, qr) = (p[1], q[0]);
    fill(q[1]);
    let h = std::thread::spawn(move || {
        sleep_ms(20);
        let mut v = vec![0u8; 65536];
        sys!(SYS_read, qr, &mut v[..], 65536);
        sleep_ms(20);
        sys!(SYS_write, pw, b"late", 4);
    });
    eq(sys!(SYS_splice, a, 0, q[1], 0, 9, 0), 3);
    eq(sys!(SYS_splice, p[0], 0, b, 0, 9, 0), 4);
    h.join().unwrap();
    eq(t.read("b"), b"late");
    let _on = sig::on(SIGUSR1, 0);
    let s = sig::later(SIGUSR1, 20);
    err(sys!(SYS_splice, p[0], 0, b, 0, 9, 0), EINTR);
    s.join().unwrap();
    shut([a, b, p[0], p[1], q[0], q[1]]);
}

fn splice_between_pipes() {
    let (p, q) = (pipe_pair(), pipe_pair());
    eq(sys!(SYS_write, p[1], b"hello world", 11), 11);
    eq(sys!(SYS_splice, p[0], 0, q[1], 0, 5, SPLICE_F_MOVE | SPLICE_F_MORE), 5);
    eq(sys!(SYS_splice, p[0], 0, q[1], 0, 500, 0), 6);
    let mut b = [0u8; 16];
    eq(sys!(SYS_read, q[0], &mut b, 16), 11);
    eq(&b[..11], b"hello world");
    // Whole pipes, to and fro.
    let data: Vec<u8> = (0..65536u32).map(|i| (i % 253) as u8).collect();
    eq(sys!(SYS_write, p[1], &data[..], 65536), 65536);
    eq(sys!(SYS_splice, p[0], 0, q[1], 0, 1 << 20, 0), 65536);
    eq(sys!(SYS_splice, q[0], 0, p[1], 0, 1 << 20, 0), 65536);
    let mut got = vec![0u8; 65536];
    eq(sys!(SYS_read, p[0], &mut got[..], 65536), 65536);
    check(got == data, "the same bytes");
    shut(p);
    shut(q);
}

fn splice_packets() {
    let t = Tmp::new();
    let b = t.file("b", b"");
    let mut p = [0i32; 2];
    ok(sys!(SYS_pipe2, &mut p, O_DIRECT));
    eq(sys!(SYS_write, p[1], b"one", 3), 3);
    eq(sys!(SYS_write, p[1], b"two", 3), 3);
    // Bounds of packets do not matter, and nothing is lost.
    eq(sys!(SYS_splice, p[0], 0, b, 0, 4, 0), 4);
    eq(sys!(SYS_splice, p[0], 0, b, 0, 9, 0), 2);
    eq(t.read("b"), b"onetwo");
    shut([b, p[0], p[1]]);
}

fn splice_socket() {
    let mut s = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut s));
    let p = pipe_pair();
    eq(sys!(SYS_write, s[0], b"hello", 5), 5);
    eq(sys!(SYS_splice, s[1], 0, p[1], 0, 3, 0), 3);
    eq(sys!(SYS_splice, s[1], 0, p[1], 0, 9, 0), 2);
    eq(sys!(SYS_splice, p[0], 0, s[1], 0, 9, 0), 5);
    let mut b = [0u8; 8];
    eq(sys!(SYS_read, s[0], &mut b, 8), 5);
    eq(&b[..5], b"hello");
    shut([s[0]]);
    eq(sys!(SYS_splice, s[1], 0, p[1], 0, 9, 0), 0);
    shut([s[1], p[0], p[1]]);
}

fn splice_offsets() {
    let t = Tmp::new();
    let b = t.file("b", b"0123456789");
    let p = pipe_pair();
    eq(sys!(SYS_write, p[1], b"abc", 3), 3);
    let mut off = 4i64;
    eq(sys!(SYS_splice, p[0], 0, b, &mut off, 9, 0), 3);
    eq(unsafe { (&raw const off).read_volatile() }, 7);
    eq(sys!(SYS_lseek, b, 0, SEEK_CUR), 0);
    eq(t.read("b"), b"0123abc789");
    eq(sys!(SYS_write, p[1], b"xy", 2), 2);
    eq(sys!(SYS_splice, p[0], 0, b, 0, 9, 0), 2);
    eq(sys!(SYS_lseek, b, 0, SEEK_CUR), 2);
    eq(t.read("b"), b"xy23abc789");
    shut([b, p[0], p[1]]);
}

fn splice_device() {
    let z = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/zero", O_RDONLY, 0)) as i32;
    let n = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/null", O_WRONLY, 0)) as i32;
    let p = pipe_pair();
    eq(sys!(SYS_splice, z, 0, p[1], 0, 100, 0), 100);
    eq(sys!(SYS_splice, p[0], 0, n, 0, 60, 0), 60);
    let mut b = [1u8; 64];
    eq(sys!(SYS_read, p[0], &mut b, 64), 40);
    check(b[..40].iter().all(|x| *x == 0), "zeros");
    shut([z, n, p[0], p[1]]);
}

fn tee_errors() {
    let t = Tmp::new();
    let a = t.file("a", b"abc");
    let (p, q) = (pipe_pair(), pipe_pair());
    eq(sys!(SYS_write, p[1], b"abc", 3), 3);
    eq(sys!(SYS_tee, 9999, 9999, 0, 0), 0);
    err(sys!(SYS_tee, 9999, q[1], 1, 0), EBADF);
    err(sys!(SYS_tee, p[0], 9999, 1, 0), EBADF);
    err(sys!(SYS_tee, p[1], q[1], 1, 0), EBADF);
    err(sys!(SYS_tee, p[0], q[0], 1, 0), EBADF);
    err(sys!(SYS_tee, a, q[1], 1, 0), EINVAL);
    err(sys!(SYS_tee, p[0], a, 1, 0), EINVAL);
    err(sys!(SYS_tee, p[0], q[1], 1, 0x100), EINVAL);
    shut([a, p[0], p[1], q[0], q[1]]);
}

fn tee_states() {
    let (p, q) = (pipe_pair(), pipe_pair());
    err(sys!(SYS_tee, p[0], q[1], 9, SPLICE_F_NONBLOCK), EAGAIN);
    eq(sys!(SYS_write, p[1], b"abcdef", 6), 6);
    eq(sys!(SYS_tee, p[0], q[1], 2, 0), 2);
    let mut b = [0u8; 8];
    eq(sys!(SYS_read, q[0], &mut b, 8), 2);
    eq(sys!(SYS_tee, p[0], q[1], 200, 0), 6);
    eq(sys!(SYS_read, p[0], &mut b, 8), 6);
    fill(q[1]);
    eq(sys!(SYS_write, p[1], b"abcdef", 6), 6);
    err(sys!(SYS_tee, p[0], q[1], 9, SPLICE_F_NONBLOCK), EAGAIN);
    ok(sys!(SYS_fcntl, p[0], F_SETFL, O_NONBLOCK));
    err(sys!(SYS_tee, p[0], q[1], 9, 0), EAGAIN);
    shut(p);
    shut(q);
}

fn tee_waits() {
    let (p, q) = (pipe_pair(), pipe_pair());
    let w = p[1];
    let h = std::thread::spawn(move || {
        sleep_ms(20);
        sys!(SYS_write, w, b"late", 4);
    });
    eq(sys!(SYS_tee, p[0], q[1], 9, 0), 4);
    h.join().unwrap();
    shut(p);
    shut(q);
}

fn vmsplice_errors() {
    let t = Tmp::new();
    let a = t.file("a", b"abc");
    let p = pipe_pair();
    let v = [b"x".as_ptr() as usize, 1];
    err(sys!(SYS_vmsplice, 9999, &v, 1, 0), EBADF);
    err(sys!(SYS_vmsplice, a, &v, 1, 0), EBADF);
    err(sys!(SYS_vmsplice, p[1], &v, 1, 0x100), EINVAL);
    err(sys!(SYS_vmsplice, p[1], &v, 1025, 0), EINVAL);
    err(sys!(SYS_vmsplice, p[1], bad(), 1, 0), EFAULT);
    err(sys!(SYS_vmsplice, p[1], &[bad() as usize, 1], 1, 0), EFAULT);
    eq(sys!(SYS_vmsplice, p[1], &v, 0, 0), 0);
    shut([a, p[0], p[1]]);
}

fn vmsplice_states() {
    let p = pipe_pair();
    let mut b = [0u8; 8];
    let r = [b.as_mut_ptr() as usize, 8];
    err(sys!(SYS_vmsplice, p[0], &r, 1, SPLICE_F_NONBLOCK), EAGAIN);
    fill(p[1]);
    err(sys!(SYS_vmsplice, p[1], &[b"x".as_ptr() as usize, 1], 1, SPLICE_F_NONBLOCK), EAGAIN);
    eq(sys!(SYS_vmsplice, p[0], &r, 1, 0), 8);
    let mut v = vec![0u8; 65536];
    eq(sys!(SYS_read, p[0], &mut v[..], 65536), 65528);
    shut([p[1]]);
    eq(sys!(SYS_vmsplice, p[0], &r, 1, 0), 0);
    shut([p[0]]);
}

fn sendfile_to_pipe() {
    let t = Tmp::new();
    let a = t.file("a", &[b'a'; 100_000]);
    let p = pipe_pair();
    ok(sys!(SYS_fcntl, p[1], F_SETFL, O_NONBLOCK));
    eq(sys!(SYS_sendfile, p[1], a, 0, 100_000), 65536);
    err(sys!(SYS_sendfile, p[1], a, 0, 100_000), EAGAIN);
    eq(sys!(SYS_lseek, a, 0, SEEK_CUR), 65536);
    let mut v = vec![0u8; 65536];
    eq(sys!(SYS_read, p[0], &mut v[..], 65536), 65536);
    let mut off = 99_990i64;
    eq(sys!(SYS_sendfile, p[1], a, &mut off, 100_000), 10);
    eq(unsafe { (&raw const off).read_volatile() }, 100_000);
    eq(sys!(SYS_lseek, a, 0, SEEK_CUR), 65536);
    shut([a, p[0], p[1]]);
}

fn sendfile_sources() {
    let t = Tmp::new();
    let b = t.file("b", b"");
    let p = pipe_pair();
    eq(sys!(SYS_write, p[1], b"abc", 3), 3);
    err(sys!(SYS_sendfile, b, p[0], 0, 9), EINVAL);
    let mut s = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut s));
    eq(sys!(SYS_write, s[0], b"abc", 3), 3);
    err(sys!(SYS_sendfile, b, s[1], 0, 9), EINVAL);
    eq(stat_fd(b).st_size, 0);
    shut([b, p[0], p[1], s[0], s[1]]);
}

/// sendfile(2) reads the offset first, and judges one end after the other.
fn sendfile_judges() {
    let t = Tmp::new();
    shut([t.file("f", b"content")]);
    let (r, w) = (ok(t.open("f", O_RDONLY)) as i32, ok(t.open("f", O_WRONLY)) as i32);
    let p = pipe_pair();
    err(sys!(SYS_sendfile, -1, -1, bad(), 1), EFAULT);
    err(sys!(SYS_sendfile, -1, w, &mut 0i64, 1), EBADF);
    err(sys!(SYS_sendfile, -1, p[0], &mut 0i64, 1), ESPIPE);
    err(sys!(SYS_sendfile, -1, p[1], &mut 0i64, 1), EBADF);
    err(sys!(SYS_sendfile, -1, r, &mut -1i64, 1), EINVAL);
    err(sys!(SYS_sendfile, -1, r, &mut 0i64, 1), EBADF);
    err(sys!(SYS_sendfile, r, p[0], &mut 0i64, 1), ESPIPE);
    err(sys!(SYS_sendfile, r, r, &mut 0i64, 1), EBADF);
    shut([p[0], p[1], r, w]);
}
