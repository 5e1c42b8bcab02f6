//! pread64(2), pwrite64(2), readv(2), writev(2), preadv(2), pwritev(2) and the 2 forms with flags.

use guest_tests::*;
use libc::*;

cases![
    at_offset, offset_stays, negative_offset, pipes_cannot, past_end, pwrite_extends, pwrite_append, bad_fd, bad_pointer, readv_spreads,
    writev_gathers, iov_limits, iov_length_overflow, iov_bad_pointer, iov_fault_in_the_middle, zero_iov, preadv_pwritev, preadv2_current_offset,
    preadv2_flags, writev_is_one_message
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
