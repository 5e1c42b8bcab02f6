//! read(2).

use guest_tests::*;
use libc::*;

cases![
    whole_file, partial_read, at_end_is_zero, zero_length, null_at_end_is_zero, bad_fd, write_only_fd, directory, path_fd,
    bad_pointer, fault_in_the_middle, null_buffer, kernel_address, pipe_returns_what_is_there, pipe_end_of_file,
    nonblocking_empty_pipe, dev_zero, dev_null, advances_offset, huge_count_is_cut
];

fn whole_file() {
    let t = Tmp::new();
    let fd = t.file("f", b"hello world");
    let mut b = [0u8; 32];
    eq(sys!(SYS_read, fd, &mut b, 32), 11);
    eq(&b[..11], b"hello world");
    ok(sys!(SYS_close, fd));
}

fn partial_read() {
    let t = Tmp::new();
    let fd = t.file("f", b"hello world");
    let mut b = [0u8; 32];
    eq(sys!(SYS_read, fd, &mut b, 5), 5);
    eq(&b[..6], b"hello\0");
    eq(sys!(SYS_read, fd, &mut b, 32), 6);
    eq(&b[..6], b" world");
    ok(sys!(SYS_close, fd));
}

fn at_end_is_zero() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    let mut b = [7u8; 4];
    ok(sys!(SYS_lseek, fd, 2, SEEK_SET));
    eq(sys!(SYS_read, fd, &mut b, 4), 0);
    ok(sys!(SYS_lseek, fd, 1000, SEEK_SET));
    eq(sys!(SYS_read, fd, &mut b, 4), 0);
    eq(b, [7; 4]);
    ok(sys!(SYS_close, fd));
}

fn zero_length() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    eq(sys!(SYS_read, fd, bad(), 0), 0);
    ok(sys!(SYS_close, fd));
}

fn null_at_end_is_zero() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    eq(sys!(SYS_read, fd, 0, 1), 0);
    ok(sys!(SYS_close, fd));
}

fn bad_fd() {
    let mut b = [0u8; 4];
    err(sys!(SYS_read, -1, &mut b, 4), EBADF);
    err(sys!(SYS_read, 1_000_000, &mut b, 4), EBADF);
    err(sys!(SYS_read, -1, bad(), 4), EBADF);
}

fn write_only_fd() {
    let t = Tmp::new();
    t.file("f", b"ab");
    let fd = ok(t.open("f", O_WRONLY));
    let mut b = [0u8; 4];
    err(sys!(SYS_read, fd, &mut b, 4), EBADF);
    ok(sys!(SYS_close, fd));
}

fn directory() {
    let t = Tmp::new();
    let fd = ok(t.open("", O_RDONLY | O_DIRECTORY));
    let mut b = [0u8; 4];
    err(sys!(SYS_read, fd, &mut b, 4), EISDIR);
    ok(sys!(SYS_close, fd));
}

fn path_fd() {
    let t = Tmp::new();
    t.file("f", b"ab");
    let fd = ok(t.open("f", O_PATH));
    let mut b = [0u8; 4];
    err(sys!(SYS_read, fd, &mut b, 4), EBADF);
    ok(sys!(SYS_close, fd));
}

fn bad_pointer() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    err(sys!(SYS_read, fd, bad(), 2), EFAULT);
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 0);
    ok(sys!(SYS_close, fd));
}

fn fault_in_the_middle() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let g = Guarded::new();
    // What fits is transferred and counts.
    eq(sys!(SYS_read, fd, g.tail(4), 10), 4);
    eq(unsafe { std::slice::from_raw_parts(g.tail(4), 4) }, b"0123");
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 4);
    ok(sys!(SYS_close, fd));
}

fn null_buffer() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    err(sys!(SYS_read, fd, 0, 2), EFAULT);
    ok(sys!(SYS_close, fd));
}

fn kernel_address() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    err(sys!(SYS_read, fd, 0xffff_8000_0000_0000usize, 2), EFAULT);
    err(sys!(SYS_read, fd, 0x7fff_ffff_f000usize, 2), EFAULT);
    ok(sys!(SYS_close, fd));
}

fn pipe_returns_what_is_there() {
    let p = pipe_pair();
    eq(sys!(SYS_write, p[1], b"abc", 3), 3);
    let mut b = [0u8; 8];
    eq(sys!(SYS_read, p[0], &mut b, 8), 3);
    shut(p);
}

fn pipe_end_of_file() {
    let p = pipe_pair();
    eq(sys!(SYS_write, p[1], b"abc", 3), 3);
    ok(sys!(SYS_close, p[1]));
    let mut b = [0u8; 8];
    eq(sys!(SYS_read, p[0], &mut b, 8), 3);
    eq(sys!(SYS_read, p[0], &mut b, 8), 0);
    ok(sys!(SYS_close, p[0]));
}

fn nonblocking_empty_pipe() {
    let mut p = [0i32; 2];
    ok(sys!(SYS_pipe2, &mut p, O_NONBLOCK));
    let mut b = [0u8; 8];
    err(sys!(SYS_read, p[0], &mut b, 8), EAGAIN);
    shut(p);
}

fn dev_zero() {
    let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/zero", O_RDONLY, 0));
    let mut b = [7u8; 4096];
    eq(sys!(SYS_read, fd, &mut b, 4096), 4096);
    check(b.iter().all(|x| *x == 0), "all zero");
    err(sys!(SYS_read, fd, bad(), 1), EFAULT);
    ok(sys!(SYS_close, fd));
}

fn dev_null() {
    let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/null", O_RDONLY, 0));
    eq(sys!(SYS_read, fd, bad(), 100), 0);
    ok(sys!(SYS_close, fd));
}

fn advances_offset() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    let other = ok(sys!(SYS_dup, fd));
    let mut b = [0u8; 3];
    eq(sys!(SYS_read, fd, &mut b, 3), 3);
    // A duplicate shares the offset.
    eq(sys!(SYS_read, other, &mut b, 3), 3);
    eq(&b, b"345");
    shut([fd, other as i32]);
}

fn huge_count_is_cut() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    // On the heap: 2 GiB behind a stack address would leave user space.
    let mut b = Vec::from([0u8; 16]);
    // Wrapping around the address space faults; less is cut to what there is, and the buffer is not
    // checked beyond it.
    err(sys!(SYS_read, fd, &mut b[..], -1isize), EFAULT);
    eq(sys!(SYS_read, fd, &mut b[..], 0x7fff_0000), 10);
    ok(sys!(SYS_close, fd));
}
