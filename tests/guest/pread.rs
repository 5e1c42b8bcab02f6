//! pread64(2), pwrite64(2), readv(2), writev(2), preadv(2), pwritev(2) and the 2 forms with flags.

use guest_tests::*;
use libc::*;

cases![
    at_offset, offset_stays, negative_offset, pipes_cannot, past_end, pwrite_extends, pwrite_append, bad_fd, bad_pointer, readv_spreads,
    writev_gathers, iov_limits, iov_length_overflow, iov_bad_pointer, iov_fault_in_the_middle, zero_iov, preadv_pwritev, preadv2_current_offset,
    preadv2_flags, rwf_append, rwf_noappend, rwf_nowait, rwf_checks, rwf_nosignal, writev_is_one_message
];

fn iov(parts: &[&mut [u8]]) -> Vec<[usize; 2]> {
    parts.iter().map(|p| [p.as_ptr() as usize, p.len()]).collect()
}

fn at_offset() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let mut b = [0u8; 4];
    eq(sys!(SYS_pread64, fd, &mut b, 4, 3), 4);
    eq(&b, b"3456");
    eq(sys!(SYS_pread64, fd, &mut b, 4, 8), 2);
    shut([fd]);
}

fn offset_stays() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let mut b = [0u8; 4];
    ok(sys!(SYS_lseek, fd, 2, SEEK_SET));
    eq(sys!(SYS_pread64, fd, &mut b, 4, 3), 4);
    eq(sys!(SYS_pwrite64, fd, b"xx", 2, 6), 2);
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 2);
    eq(t.read("f"), b"012345xx89");
    shut([fd]);
}

fn negative_offset() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    let mut b = [0u8; 4];
    err(sys!(SYS_pread64, fd, &mut b, 4, -1), EINVAL);
    err(sys!(SYS_pwrite64, fd, &b, 4, -1), EINVAL);
    shut([fd]);
}

fn pipes_cannot() {
    let p = pipe_pair();
    let mut b = [0u8; 4];
    err(sys!(SYS_pread64, p[0], &mut b, 4, 0), ESPIPE);
    err(sys!(SYS_pwrite64, p[1], &b, 4, 0), ESPIPE);
    shut(p);
}

fn past_end() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    let mut b = [0u8; 4];
    eq(sys!(SYS_pread64, fd, &mut b, 4, 2), 0);
    eq(sys!(SYS_pread64, fd, &mut b, 4, 1i64 << 40), 0);
    eq(sys!(SYS_pread64, fd, bad(), 4, 1i64 << 40), 0);
    shut([fd]);
}

fn pwrite_extends() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    eq(sys!(SYS_pwrite64, fd, b"z", 1, 5), 1);
    eq(t.read("f"), b"ab\0\0\0z");
    shut([fd]);
}

fn pwrite_append() {
    let t = Tmp::new();
    shut([t.file("f", b"ab")]);
    let fd = ok(t.open("f", O_RDWR | O_APPEND)) as i32;
    // Linux appends whatever the offset says (BUGS in pwrite(2)).
    eq(sys!(SYS_pwrite64, fd, b"z", 1, 0), 1);
    eq(t.read("f"), b"abz");
    shut([fd]);
}

fn bad_fd() {
    let b = [0u8; 4];
    err(sys!(SYS_pread64, -1, &b, 4, 0), EBADF);
    err(sys!(SYS_pwrite64, -1, &b, 4, 0), EBADF);
    err(sys!(SYS_readv, -1, bad(), 1), EBADF);
    err(sys!(SYS_writev, -1, bad(), 1), EBADF);
    err(sys!(SYS_preadv, -1, bad(), 1, 0, 0), EBADF);
    err(sys!(SYS_pwritev, -1, bad(), 1, 0, 0), EBADF);
}

fn bad_pointer() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    err(sys!(SYS_pread64, fd, bad(), 2, 0), EFAULT);
    err(sys!(SYS_pwrite64, fd, bad(), 2, 0), EFAULT);
    eq(t.read("f"), b"ab");
    shut([fd]);
}

fn readv_spreads() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let (mut a, mut b, mut c) = ([0u8; 3], [0u8; 0], [0u8; 20]);
    let v = iov(&[&mut a, &mut b, &mut c]);
    eq(sys!(SYS_readv, fd, &v[..], 3), 10);
    eq(&a, b"012");
    eq(&c[..8], b"3456789\0");
    eq(sys!(SYS_readv, fd, &v[..], 3), 0);
    shut([fd]);
}

fn writev_gathers() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let (mut a, mut b) = (*b"hello ", *b"world");
    let v = iov(&[&mut a, &mut b]);
    eq(sys!(SYS_writev, fd, &v[..], 2), 11);
    eq(t.read("f"), b"hello world");
    shut([fd]);
}

fn iov_limits() {
    let t = Tmp::new();
    let fd = t.file("f", &[1u8; 2000]);
    let mut b = [0u8; 1];
    let v = vec![[b.as_mut_ptr() as usize, 1]; 1025];
    eq(sys!(SYS_readv, fd, &v[..], 1024), 1024);
    err(sys!(SYS_readv, fd, &v[..], 1025), EINVAL);
    err(sys!(SYS_readv, fd, &v[..], -1), EINVAL);
    err(sys!(SYS_writev, fd, &v[..], 1025), EINVAL);
    shut([fd]);
}

fn iov_length_overflow() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    let mut b = [0u8; 4];
    let v = [[b.as_mut_ptr() as usize, usize::MAX], [b.as_mut_ptr() as usize, 1]];
    err(sys!(SYS_readv, fd, &v, 2), EINVAL);
    err(sys!(SYS_writev, fd, &v, 2), EINVAL);
    shut([fd]);
}

fn iov_bad_pointer() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    err(sys!(SYS_readv, fd, bad(), 1), EFAULT);
    err(sys!(SYS_writev, fd, bad(), 1), EFAULT);
    err(sys!(SYS_readv, fd, &[bad() as usize, 2], 1), EFAULT);
    err(sys!(SYS_writev, fd, &[bad() as usize, 2], 1), EFAULT);
    shut([fd]);
}

fn iov_fault_in_the_middle() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let mut b = [0u8; 4];
    let v = [[b.as_mut_ptr() as usize, 4], [bad() as usize, 4]];
    eq(sys!(SYS_readv, fd, &v, 2), 4);
    eq(&b, b"0123");
    shut([fd]);
}

fn zero_iov() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    eq(sys!(SYS_readv, fd, bad(), 0), 0);
    eq(sys!(SYS_writev, fd, bad(), 0), 0);
    shut([fd]);
}

fn preadv_pwritev() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let (mut a, mut b) = ([0u8; 2], [0u8; 3]);
    let v = iov(&[&mut a, &mut b]);
    eq(sys!(SYS_preadv, fd, &v[..], 2, 4, 0), 5);
    eq((&a, &b), (b"45", b"678"));
    eq(sys!(SYS_pwritev, fd, &v[..], 2, 0, 0), 5);
    eq(t.read("f"), b"4567856789");
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 0);
    err(sys!(SYS_preadv, fd, &v[..], 2, -1, 0), EINVAL);
    shut([fd]);
}

fn preadv2_current_offset() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let mut a = [0u8; 2];
    let v = iov(&[&mut a]);
    eq(sys!(SYS_preadv2, fd, &v[..], 1, -1, -1, 0), 2);
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 2);
    eq(sys!(SYS_pwritev2, fd, &v[..], 1, -1, -1, 0), 2);
    eq(t.read("f"), b"0101456789");
    shut([fd]);
}

fn preadv2_flags() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let mut a = [0u8; 2];
    let v = iov(&[&mut a]);
    err(sys!(SYS_preadv2, fd, &v[..], 1, 0, 0, 0x4000_0000), EOPNOTSUPP);
    // RWF_APPEND (0x10): at the end whatever the offset.
    eq(sys!(SYS_pwritev2, fd, &v[..], 1, 0, 0, 0x10), 2);
    eq(stat_fd(fd).st_size, 12);
    // RWF_DSYNC and RWF_SYNC.
    eq(sys!(SYS_pwritev2, fd, &v[..], 1, 0, 0, 2 | 4), 2);
    shut([fd]);
}

fn rwf_append() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let mut a = *b"ab";
    let v = iov(&[&mut a]);
    eq(sys!(SYS_pwritev2, fd, &v[..], 1, 3, 0, RWF_APPEND), 2);
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 0);
    // With -1 the position goes to the end too.
    eq(sys!(SYS_pwritev2, fd, &v[..], 1, -1, -1, RWF_APPEND), 2);
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 14);
    eq(t.read("f"), b"0123456789abab");
    shut([fd]);
}

fn rwf_noappend() {
    let t = Tmp::new();
    shut([t.file("f", b"0123456789")]);
    let fd = ok(t.open("f", O_RDWR | O_APPEND)) as i32;
    let mut a = *b"ab";
    let v = iov(&[&mut a]);
    eq(sys!(SYS_pwritev2, fd, &v[..], 1, 3, 0, 0x20), 2);
    eq(t.read("f"), b"012ab56789");
    eq(sys!(SYS_pwritev2, fd, &v[..], 1, 3, 0, 0), 2);
    eq(t.read("f"), b"012ab56789ab");
    err(sys!(SYS_pwritev2, fd, &v[..], 1, 3, 0, 0x30), EINVAL);
    shut([fd]);
}

fn rwf_nowait() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let mut a = [0u8; 2];
    let v = iov(&[&mut a]);
    eq(sys!(SYS_preadv2, fd, &v[..], 1, 0, 0, RWF_NOWAIT), 2);
    // File systems differ in whether they can write so.
    let w = sys!(SYS_pwritev2, fd, &v[..], 1, 0, 0, RWF_NOWAIT);
    check(w == 2 || w == -i64::from(EOPNOTSUPP), "written or not supported");
    let p = pipe_pair();
    err(sys!(SYS_preadv2, p[0], &v[..], 1, -1, -1, RWF_NOWAIT), EAGAIN);
    eq(sys!(SYS_pwritev2, p[1], &v[..], 1, -1, -1, RWF_NOWAIT), 2);
    eq(sys!(SYS_preadv2, p[0], &v[..], 1, -1, -1, RWF_NOWAIT), 2);
    let big = vec![0u8; 65536];
    let v = [[big.as_ptr() as usize, 65536]];
    eq(sys!(SYS_write, p[1], &big[..], 65536), 65536);
    err(sys!(SYS_pwritev2, p[1], &v[..], 1, -1, -1, RWF_NOWAIT), EAGAIN);
    let mut s = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut s));
    err(sys!(SYS_preadv2, s[0], &v[..], 1, -1, -1, RWF_NOWAIT), EAGAIN);
    let e = ok(sys!(SYS_eventfd2, 0, 0)) as i32;
    err(sys!(SYS_preadv2, e, &v[..], 1, -1, -1, RWF_NOWAIT), EAGAIN);
    let c = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/stat", O_RDONLY, 0)) as i32;
    err(sys!(SYS_preadv2, c, &v[..], 1, 0, 0, RWF_NOWAIT), EOPNOTSUPP);
    shut([fd, p[0], p[1], s[0], s[1], e, c]);
}

fn rwf_checks() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let mut a = [0u8; 2];
    let v = iov(&[&mut a]);
    for flag in [RWF_HIPRI, RWF_DSYNC, RWF_SYNC, 0x80] {
        eq(sys!(SYS_preadv2, fd, &v[..], 1, 0, 0, flag), 2);
        eq(sys!(SYS_pwritev2, fd, &v[..], 1, 0, 0, flag), 2);
    }
    for flag in [0x40, 0x1000] {
        err(sys!(SYS_preadv2, fd, &v[..], 1, 0, 0, flag), EOPNOTSUPP);
        err(sys!(SYS_pwritev2, fd, &v[..], 1, 0, 0, flag), EOPNOTSUPP);
        // Nothing to move: not looked at.
        eq(sys!(SYS_preadv2, fd, &v[..], 0, 0, 0, flag), 0);
    }
    let p = pipe_pair();
    err(sys!(SYS_pwritev2, p[1], &v[..], 1, -1, -1, 0x80), EOPNOTSUPP);
    eq(sys!(SYS_pwritev2, p[1], &v[..], 1, -1, -1, RWF_APPEND | RWF_HIPRI), 2);
    err(sys!(SYS_pwritev2, p[1], &v[..], 1, 0, 0, 0), ESPIPE);
    err(sys!(SYS_preadv2, p[1], &v[..], 1, -1, -1, 0), EBADF);
    err(sys!(SYS_preadv2, fd, &v[..], 1, -2, -1, 0), EINVAL);
    err(sys!(SYS_preadv, fd, &v[..], 1, -1, -1), EINVAL);
    shut([fd, p[0], p[1]]);
}

fn rwf_nosignal() {
    let p = pipe_pair();
    shut([p[0]]);
    let mut a = [0u8; 2];
    let v = iov(&[&mut a]);
    let _on = sig::on(SIGPIPE, 0);
    let r = sys!(SYS_pwritev2, p[1], &v[..], 1, -1, -1, 0x100);
    if r == -i64::from(EOPNOTSUPP) {
        skip("RWF_NOSIGNAL is of Linux 6.18");
    }
    err(r, EPIPE);
    eq(sig::hits(), 0);
    err(sys!(SYS_pwritev2, p[1], &v[..], 1, -1, -1, 0), EPIPE);
    eq(sig::hits(), 1);
    shut([p[1]]);
}

fn writev_is_one_message() {
    let mut s = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, &mut s));
    let (mut a, mut b) = (*b"ab", *b"cd");
    let v = iov(&[&mut a, &mut b]);
    eq(sys!(SYS_writev, s[0], &v[..], 2), 4);
    let mut r = [0u8; 16];
    eq(sys!(SYS_read, s[1], &mut r, 16), 4);
    eq(&r[..4], b"abcd");
    shut(s);
}
