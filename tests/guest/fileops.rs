//! Calls on files that have no verb of their own: fallocate(2) modes, copy_file_range(2), openat2(2), O_TMPFILE,
//! renameat2(2), linkat(2), statx(2), mknod(2), large directories, times of access.

use guest_tests::*;
use libc::*;

cases![
    fallocate_modes, fallocate_on_others, seek_data_hole_after_punch, copy_range_edges, copy_range_overlap,
    copy_range_modes, sendfile_edges, resolve_flags, resolve_cached, open_how_sizes, tmpfile_forms,
    link_empty_path, link_through_proc, rename_flags, rename_whiteout, rename_into_each_other, unlink_open_all, mknod_device_kinds,
    faccessat2_forms, fchmodat2_forms, utimens_forms, utimens_before_1970, statx_masks, statfs_of_kinds,
    sync_kinds, getdents_40000, getdents_stable, atime_moves, direct_io, readdir_type_matches,
    ftruncate_sparse, name_limits, cachestat, fadvise_forms
];

fn fallocate_modes() {
    let t = Tmp::new();
    let fd = t.file("f", &[b'x'; 16384]);
    let fa = |mode: i32, at: i64, len: i64| sys!(SYS_fallocate, fd, mode, at, len);
    // KEEP_SIZE beyond the end, ZERO_RANGE inside, PUNCH_HOLE.
    eq(fa(FALLOC_FL_KEEP_SIZE, 16384, 4096), 0);
    eq(stat_fd(fd).st_size, 16384);
    eq(fa(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096), 0);
    let b = t.read("f");
    check(b[4096..8192].iter().all(|x| *x == 0) && b[8192] == b'x' && b[4095] == b'x', "a hole");
    err(fa(FALLOC_FL_PUNCH_HOLE, 0, 4096), EOPNOTSUPP);
    err(fa(0x400, 0, 4096), EOPNOTSUPP);
    err(fa(0, -1, 1), EINVAL);
    err(fa(0, 0, 0), EINVAL);
    err(fa(0, 0, -1), EINVAL);
    err(fa(0, i64::MAX, 2), EFBIG);
    let z = fa(FALLOC_FL_ZERO_RANGE, 0, 100);
    if z == 0 {
        let b = t.read("f");
        check(b[..100].iter().all(|x| *x == 0) && b[100] == b'x', "zeros");
        eq(fa(FALLOC_FL_ZERO_RANGE, 16384, 100), 0);
        eq(stat_fd(fd).st_size, 16484);
        eq(fa(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 16484, 100), 0);
        eq(stat_fd(fd).st_size, 16484);
    } else {
        err(z, EOPNOTSUPP);
    }
    let c = fa(FALLOC_FL_COLLAPSE_RANGE, 0, 4096);
    check(c == 0 || c == -i64::from(EOPNOTSUPP), "collapsed or not supported");
    err(fa(FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_KEEP_SIZE, 0, 4096), EOPNOTSUPP);
    shut([fd]);
}

fn fallocate_on_others() {
    let t = Tmp::new();
    let fd = t.file("f", b"x");
    let r = ok(t.open("f", O_RDONLY)) as i32;
    let d = ok(t.open("", O_RDONLY)) as i32;
    let p = pipe_pair();
    let n = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/null", O_WRONLY, 0)) as i32;
    err(sys!(SYS_fallocate, r, 0, 0, 1), EBADF);
    err(sys!(SYS_fallocate, d, 0, 0, 1), EBADF);
    err(sys!(SYS_fallocate, p[1], 0, 0, 1), ESPIPE);
    err(sys!(SYS_fallocate, n, 0, 0, 1), ENODEV);
    err(sys!(SYS_fallocate, 9999, 0, 0, 1), EBADF);
    ok(sys!(SYS_fallocate, fd, 0, 10, 10));
    eq(stat_fd(fd).st_size, 20);
    shut([fd, r, d, n, p[0], p[1]]);
}

fn seek_data_hole_after_punch() {
    let t = Tmp::new();
    let fd = t.file("f", &[b'x'; 65536]);
    ok(sys!(SYS_fsync, fd));
    ok(sys!(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 16384, 16384));
    eq(sys!(SYS_lseek, fd, 0, SEEK_HOLE), 16384);
    eq(sys!(SYS_lseek, fd, 16384, SEEK_DATA), 32768);
    eq(sys!(SYS_lseek, fd, 20000, SEEK_HOLE), 20000);
    eq(sys!(SYS_lseek, fd, 40000, SEEK_DATA), 40000);
    eq(sys!(SYS_lseek, fd, 40000, SEEK_HOLE), 65536);
    err(sys!(SYS_lseek, fd, 65536, SEEK_HOLE), ENXIO);
    shut([fd]);
    // A small file, and an empty one.
    let fd = t.file("g", b"abc");
    eq(sys!(SYS_lseek, fd, 1, SEEK_DATA), 1);
    eq(sys!(SYS_lseek, fd, 1, SEEK_HOLE), 3);
    err(sys!(SYS_lseek, fd, 3, SEEK_DATA), ENXIO);
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 3);
    shut([fd]);
    let fd = t.file("h", b"");
    err(sys!(SYS_lseek, fd, 0, SEEK_DATA), ENXIO);
    shut([fd]);
    let d = ok(t.open("", O_RDONLY)) as i32;
    let r = sys!(SYS_lseek, d, 0, SEEK_DATA);
    check(r == 0 || r == -i64::from(EINVAL) || r == -i64::from(ENXIO), "of a directory");
    shut([d]);
}

fn copy_range_edges() {
    let t = Tmp::new();
    let (a, b) = (t.file("a", b"0123456789"), t.file("b", b""));
    let c = |i: &mut i64, o: &mut i64, n: usize| sys!(SYS_copy_file_range, a, i, b, o, n, 0);
    let (mut i, mut o) = (8, 0);
    eq(c(&mut i, &mut o, 100), 2);
    let (mut i, mut o) = (100, 0);
    eq(c(&mut i, &mut o, 100), 0);
    let (mut i, mut o) = (0, 20);
    eq(c(&mut i, &mut o, 2), 2);
    eq(stat_fd(b).st_size, 22);
    let (mut i, mut o) = (-1, 0);
    errs(c(&mut i, &mut o, 1), &[EINVAL, EOVERFLOW]);
    let (mut i, mut o) = (0, i64::MAX);
    errs(c(&mut i, &mut o, 10), &[EFBIG, EOVERFLOW]);
    eq(sys!(SYS_copy_file_range, a, 0, b, 0, 0, 0), 0);
    err(sys!(SYS_copy_file_range, a, bad(), b, 0, 1, 0), EFAULT);
    shut([a, b]);
}

fn copy_range_overlap() {
    let t = Tmp::new();
    let a = t.file("a", b"0123456789");
    let (mut i, mut o) = (0i64, 3i64);
    err(sys!(SYS_copy_file_range, a, &mut i, a, &mut o, 5, 0), EINVAL);
    let (mut i, mut o) = (0i64, 5i64);
    eq(sys!(SYS_copy_file_range, a, &mut i, a, &mut o, 5, 0), 5);
    eq(t.read("a"), b"0123401234");
    shut([a]);
}

fn copy_range_modes() {
    let t = Tmp::new();
    let (a, b) = (t.file("a", b"0123456789"), t.file("b", b""));
    let (r, w) = (ok(t.open("b", O_RDONLY)) as i32, ok(t.open("a", O_WRONLY)) as i32);
    err(sys!(SYS_copy_file_range, a, 0, r, 0, 1, 0), EBADF);
    err(sys!(SYS_copy_file_range, w, 0, b, 0, 1, 0), EBADF);
    let ap = ok(t.open("b", O_WRONLY | O_APPEND)) as i32;
    err(sys!(SYS_copy_file_range, a, 0, ap, 0, 1, 0), EBADF);
    let n = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/null", O_RDWR, 0)) as i32;
    err(sys!(SYS_copy_file_range, a, 0, n, 0, 1, 0), EINVAL);
    let p = ok(t.open("a", O_PATH)) as i32;
    err(sys!(SYS_copy_file_range, p, 0, b, 0, 1, 0), EBADF);
    shut([a, b, r, w, ap, n, p]);
}

fn sendfile_edges() {
    let t = Tmp::new();
    let (a, b) = (t.file("a", b"0123456789"), t.file("b", b""));
    let mut off = -1i64;
    err(sys!(SYS_sendfile, b, a, &mut off, 4), EINVAL);
    err(sys!(SYS_sendfile, b, a, bad(), 4), EFAULT);
    let mut off = 8i64;
    eq(sys!(SYS_sendfile, b, a, &mut off, 4), 2);
    eq(sys!(SYS_sendfile, b, a, 0, 3), 3);
    eq(sys!(SYS_lseek, a, 0, SEEK_CUR), 3);
    eq(t.read("b"), b"89012");
    let ap = ok(t.open("b", O_WRONLY | O_APPEND)) as i32;
    err(sys!(SYS_sendfile, ap, a, 0, 3), EINVAL);
    let d = ok(t.open("", O_RDONLY)) as i32;
    err(sys!(SYS_sendfile, b, d, 0, 3), EINVAL);
    let n = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/null", O_WRONLY, 0)) as i32;
    eq(sys!(SYS_sendfile, n, a, 0, 3), 3);
    eq(sys!(SYS_sendfile, b, a, 0, 0), 0);
    shut([a, b, ap, d, n]);
}

const NO_XDEV: u64 = 1;

const NO_MAGIC: u64 = 2;

const NO_LINKS: u64 = 4;

const BENEATH: u64 = 8;

const IN_ROOT: u64 = 0x10;

fn how(fd: i32, path: &std::ffi::CStr, resolve: u64) -> i64 {
    let r = sys!(SYS_openat2, fd, path, &[O_RDONLY as u64, 0, resolve], 24);
    if r >= 0 {
        shut([r as i32]);
        return 0;
    }
    r
}

fn resolve_flags() {
    let t = Tmp::new();
    ok(sys!(SYS_mkdir, t.path("d"), 0o755));
    shut([t.file("d/f", b"in"), t.file("out", b"")]);
    ok(sys!(SYS_symlink, c"f", t.path("d/l")));
    ok(sys!(SYS_symlink, c"../out", t.path("d/up")));
    ok(sys!(SYS_symlink, c"/f", t.path("d/abs")));
    ok(sys!(SYS_symlink, c"/proc/self/fd/1", t.path("d/magic")));
    let d = ok(t.open("d", O_RDONLY)) as i32;
    eq(how(d, c"f", BENEATH), 0);
    eq(how(d, c"l", BENEATH), 0);
    err(how(d, c"up", BENEATH), EXDEV);
    err(how(d, c"../out", BENEATH), EXDEV);
    err(how(d, c"abs", BENEATH), EXDEV);
    err(how(d, c"/", BENEATH), EXDEV);
    eq(how(d, c"../d/f", 0), 0);
    // Out and in again is out all the same.
    err(how(d, c"../d/f", BENEATH), EXDEV);
    eq(how(d, c"abs", IN_ROOT), 0);
    eq(how(d, c"/../../f", IN_ROOT), 0);
    err(how(d, c"up", IN_ROOT), ENOENT);
    err(how(d, c"l", NO_LINKS), ELOOP);
    eq(how(d, c"f", NO_LINKS), 0);
    err(how(AT_FDCWD, c"/proc/self/fd/1", NO_MAGIC), ELOOP);
    err(how(AT_FDCWD, c"/proc/self/exe", NO_MAGIC), ELOOP);
    eq(how(d, c"l", NO_MAGIC), 0);
    err(how(AT_FDCWD, c"/proc/self/status", NO_XDEV), EXDEV);
    eq(how(d, c"f", NO_XDEV), 0);
    err(how(d, c"magic", BENEATH), EXDEV);
    err(how(d, c"f", BENEATH | IN_ROOT), EINVAL);
    err(how(d, c"f", 0x40), EINVAL);
    // O_NOFOLLOW with O_PATH opens a link even so.
    let r = sys!(SYS_openat2, d, c"l", &[(O_PATH | O_NOFOLLOW) as u64, 0, NO_LINKS], 24);
    shut([ok(r) as i32, d]);
}

fn resolve_cached() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    let d = ok(t.open("", O_RDONLY)) as i32;
    let r = how(d, c"f", 0x20);
    check(r == 0 || r == -i64::from(EAGAIN), "cached or not");
    err(sys!(SYS_openat2, d, c"f", &[(O_RDWR | O_TRUNC) as u64, 0, 0x20], 24), EAGAIN);
    err(sys!(SYS_openat2, d, c"g", &[(O_RDWR | O_CREAT) as u64, 0o600, 0x20], 24), EAGAIN);
    shut([d]);
}

fn open_how_sizes() {
    let h = [O_RDONLY as u64, 0, 0, 0, 0];
    err(sys!(SYS_openat2, AT_FDCWD, c"/", &h, 23), EINVAL);
    shut([ok(sys!(SYS_openat2, AT_FDCWD, c"/", &h, 32)) as i32]);
    err(sys!(SYS_openat2, AT_FDCWD, c"/", &[0u64, 0, 0, 1], 32), E2BIG);
    err(sys!(SYS_openat2, AT_FDCWD, c"/", &h, 5000), E2BIG);
    err(sys!(SYS_openat2, AT_FDCWD, c"/", bad(), 24), EFAULT);
    err(sys!(SYS_openat2, AT_FDCWD, c"/", &[1u64 << 40, 0, 0], 24), EINVAL);
    err(sys!(SYS_openat2, AT_FDCWD, c"/", &[0u64, 0o600, 0], 24), EINVAL);
    err(sys!(SYS_openat2, AT_FDCWD, c"/nonesuch", &[O_CREAT as u64, 0o10_600, 0], 24), EINVAL);
    err(sys!(SYS_openat2, AT_FDCWD, c"/", &[(O_PATH | O_RDWR) as u64, 0, 0], 24), EINVAL);
}

fn tmpfile_forms() {
    let t = Tmp::new();
    err(t.open("", O_TMPFILE | O_RDONLY), EINVAL);
    err(t.open("none", O_TMPFILE | O_RDWR), ENOENT);
    shut([t.file("f", b"")]);
    err(t.open("f", O_TMPFILE | O_RDWR), ENOTDIR);
    let fd = ok(sys!(SYS_openat, AT_FDCWD, t.path(""), O_TMPFILE | O_RDWR | O_EXCL, 0o640)) as i32;
    let s = stat_fd(fd);
    eq((s.st_nlink, s.st_mode & 0o7777, s.st_size), (0, 0o640, 0));
    eq(sys!(SYS_write, fd, b"abc", 3), 3);
    // O_EXCL: it can never get a name.
    let p = cstr(format!("/proc/self/fd/{fd}"));
    err(sys!(SYS_linkat, AT_FDCWD, p, AT_FDCWD, t.path("n"), AT_SYMLINK_FOLLOW), ENOENT);
    shut([fd]);
    eq(std::fs::read_dir(t.dir()).unwrap().count(), 1);
    let fd = ok(t.open("", O_TMPFILE | O_WRONLY)) as i32;
    let p = cstr(format!("/proc/self/fd/{fd}"));
    ok(sys!(SYS_linkat, AT_FDCWD, p, AT_FDCWD, t.path("n"), AT_SYMLINK_FOLLOW));
    eq(stat_fd(fd).st_nlink, 1);
    err(sys!(SYS_linkat, AT_FDCWD, p, AT_FDCWD, t.path("n"), AT_SYMLINK_FOLLOW), EEXIST);
    shut([fd]);
}

fn link_empty_path() {
    let t = Tmp::new();
    let fd = t.file("f", b"abc");
    let r = sys!(SYS_linkat, fd, c"", AT_FDCWD, t.path("g"), AT_EMPTY_PATH);
    if r == -i64::from(ENOENT) {
        skip("needs CAP_DAC_READ_SEARCH");
    }
    ok(r);
    eq(t.read("g"), b"abc");
    eq(stat_fd(fd).st_nlink, 2);
    err(sys!(SYS_linkat, fd, c"", AT_FDCWD, t.path("h"), 0), ENOENT);
    err(sys!(SYS_linkat, fd, c"", AT_FDCWD, t.path("h"), 0x8000), EINVAL);
    let p = pipe_pair();
    err(sys!(SYS_linkat, p[0], c"", AT_FDCWD, t.path("h"), AT_EMPTY_PATH), EXDEV);
    ok(sys!(SYS_unlink, t.path("f")));
    ok(sys!(SYS_unlink, t.path("g")));
    // Without a name left it cannot get one again.
    err(sys!(SYS_linkat, fd, c"", AT_FDCWD, t.path("h"), AT_EMPTY_PATH), ENOENT);
    shut([fd, p[0], p[1]]);
}

fn link_through_proc() {
    let t = Tmp::new();
    let fd = t.file("f", b"abc");
    let p = cstr(format!("/proc/self/fd/{fd}"));
    ok(sys!(SYS_linkat, AT_FDCWD, p, AT_FDCWD, t.path("g"), AT_SYMLINK_FOLLOW));
    eq(t.read("g"), b"abc");
    err(sys!(SYS_linkat, AT_FDCWD, p, AT_FDCWD, t.path("h"), 0), EXDEV);
    shut([fd]);
}

fn rn(t: &Tmp, a: &str, b: &str, flags: u32) -> i64 {
    sys!(SYS_renameat2, AT_FDCWD, t.path(a), AT_FDCWD, t.path(b), flags)
}

fn rename_flags() {
    let t = Tmp::new();
    shut([t.file("a", b"A"), t.file("b", b"B")]);
    ok(sys!(SYS_mkdir, t.path("d"), 0o755));
    shut([t.file("d/x", b"X")]);
    err(rn(&t, "a", "b", RENAME_NOREPLACE), EEXIST);
    err(rn(&t, "a", "d", RENAME_NOREPLACE), EEXIST);
    eq(rn(&t, "a", "d", RENAME_EXCHANGE), 0);
    eq(t.read("d"), b"A");
    eq(t.read("a/x"), b"X");
    eq(rn(&t, "a", "d", RENAME_EXCHANGE), 0);
    err(rn(&t, "a", "none", RENAME_EXCHANGE), ENOENT);
    err(rn(&t, "none", "a", RENAME_EXCHANGE), ENOENT);
    err(rn(&t, "d", "d/x", RENAME_EXCHANGE), EINVAL);
    err(rn(&t, "d/x", "d", RENAME_EXCHANGE), EINVAL);
    err(rn(&t, "a", "b", RENAME_EXCHANGE | RENAME_NOREPLACE), EINVAL);
    err(rn(&t, "a", "b", 0x10), EINVAL);
    err(rn(&t, "a", "b", RENAME_EXCHANGE | RENAME_WHITEOUT), EINVAL);
    eq(rn(&t, "a", "a", RENAME_EXCHANGE), 0);
    err(rn(&t, "a", "a", RENAME_NOREPLACE), EEXIST);
    eq(rn(&t, "a", "c", RENAME_NOREPLACE), 0);
    eq(t.read("c"), b"A");
}

fn rename_whiteout() {
    let t = Tmp::new();
    shut([t.file("a", b"A")]);
    let r = rn(&t, "a", "b", RENAME_WHITEOUT);
    if r == -i64::from(EINVAL) || r == -i64::from(EPERM) {
        skip("the file system or the user may not");
    }
    ok(r);
    eq(t.read("b"), b"A");
    let s = ok(t.open("a", O_PATH)) as i32;
    eq((stat_fd(s).st_mode & S_IFMT, stat_fd(s).st_rdev), (S_IFCHR, 0));
    shut([s]);
}

/// Two directories are never in each other, however they are moved at once.
fn rename_into_each_other() {
    let t = Tmp::new();
    ok(sys!(SYS_mkdir, t.path("a"), 0o755));
    ok(sys!(SYS_mkdir, t.path("b"), 0o755));
    let end = now_ms() + 300;
    std::thread::scope(|all| {
        for (from, to) in [("a", "b/x"), ("b", "a/x")] {
            let t = &t;
            all.spawn(move || {
                while now_ms() < end {
                    if rn(t, from, to, 0) == 0 {
                        ok(rn(t, to, from, 0));
                    }
                }
            });
        }
    });
    ok(sys!(SYS_rmdir, t.path("a")));
    ok(sys!(SYS_rmdir, t.path("b")));
}

fn unlink_open_all() {
    let t = Tmp::new();
    let fd = t.file("f", b"abc");
    let ino = stat_fd(fd).st_ino;
    ok(sys!(SYS_unlink, t.path("f")));
    eq((stat_fd(fd).st_nlink, stat_fd(fd).st_ino), (0, ino));
    eq(sys!(SYS_write, fd, b"xyz", 3), 3);
    eq(sys!(SYS_pwrite64, fd, b"Q", 1, 10), 1);
    ok(sys!(SYS_fchmod, fd, 0o600));
    ok(sys!(SYS_ftruncate, fd, 5));
    let mut b = [0u8; 8];
    eq(sys!(SYS_pread64, fd, &mut b, 8, 0), 5);
    eq(&b[..5], b"xyz\0\0");
    // A new file of the name is another one.
    let g = t.file("f", b"new");
    check(stat_fd(g).st_ino != ino, "another inode");
    let m = ok(sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) as *mut u8;
    // SAFETY: mapped above.
    unsafe { m.write_volatile(b'M') };
    eq(sys!(SYS_pread64, fd, &mut b, 8, 0), 5);
    eq(b[0], b'M');
    ok(sys!(SYS_munmap, m, 4096));
    shut([fd, g]);
    // A directory that was removed while open.
    ok(sys!(SYS_mkdir, t.path("d"), 0o755));
    let d = ok(t.open("d", O_RDONLY)) as i32;
    ok(sys!(SYS_rmdir, t.path("d")));
    eq(stat_fd(d).st_nlink, 0);
    err(sys!(SYS_openat, d, c"x", O_CREAT | O_RDWR, 0o600), ENOENT);
    err(sys!(SYS_mkdirat, d, c"x", 0o700), ENOENT);
    shut([d]);
}

fn mknod_device_kinds() {
    let t = Tmp::new();
    for (kind, name) in [(S_IFREG, "r"), (0, "z"), (S_IFIFO, "p"), (S_IFSOCK, "s")] {
        eq(sys!(SYS_mknod, t.path(name), kind | 0o640, 0), 0);
        let s = ok(t.open(name, O_PATH)) as i32;
        let want = if kind == 0 { S_IFREG } else { kind };
        eq(stat_fd(s).st_mode, want | 0o640);
        shut([s]);
        err(sys!(SYS_mknod, t.path(name), kind | 0o640, 0), EEXIST);
    }
    err(sys!(SYS_mknod, t.path("d"), S_IFDIR | 0o755, 0), EPERM);
    err(sys!(SYS_mknod, t.path("x"), S_IFLNK | 0o755, 0), EINVAL);
    err(sys!(SYS_mknod, t.path("x"), 0o30000 | 0o755, 0), EINVAL);
    err(sys!(SYS_mknod, t.path("x/"), S_IFIFO | 0o755, 0), ENOENT);
    err(t.open("s", O_RDWR), ENXIO);
    let dev = sys!(SYS_mknod, t.path("null"), S_IFCHR | 0o666, 0x103);
    if sys!(SYS_geteuid) == 0 {
        eq(dev, 0);
        let fd = ok(t.open("null", O_RDWR)) as i32;
        eq(sys!(SYS_read, fd, &mut [0u8; 4], 4), 0);
        eq(stat_fd(fd).st_rdev, 0x103);
        shut([fd]);
        eq(sys!(SYS_mknod, t.path("none"), S_IFCHR | 0o666, 0x63_03), 0);
        err(t.open("none", O_RDWR), ENXIO);
        eq(sys!(SYS_mknod, t.path("blk"), S_IFBLK | 0o666, 0x63_03), 0);
        err(t.open("blk", O_RDWR), ENXIO);
    } else {
        err(dev, EPERM);
        err(sys!(SYS_mknod, t.path("blk"), S_IFBLK | 0o666, 0x700), EPERM);
        // A whiteout is anybody's.
        eq(sys!(SYS_mknod, t.path("white"), S_IFCHR | 0o666, 0), 0);
    }
}

fn faccessat2_forms() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    ok(sys!(SYS_symlink, c"none", t.path("l")));
    let fa = |d: i32, p: &std::ffi::CStr, m: i32, f: i32| sys!(SYS_faccessat2, d, p, m, f);
    eq(fa(AT_FDCWD, t.path("f"), R_OK | W_OK, AT_EACCESS), 0);
    err(fa(AT_FDCWD, t.path("f"), X_OK, 0), EACCES);
    err(fa(AT_FDCWD, t.path("l"), F_OK, 0), ENOENT);
    eq(fa(AT_FDCWD, t.path("l"), F_OK, AT_SYMLINK_NOFOLLOW), 0);
    eq(fa(fd, c"", R_OK, AT_EMPTY_PATH), 0);
    err(fa(fd, c"", R_OK, 0), ENOENT);
    err(fa(AT_FDCWD, t.path("f"), 8, 0), EINVAL);
    err(fa(AT_FDCWD, t.path("f"), 0, 0x8000), EINVAL);
    err(fa(9999, c"x", 0, 0), EBADF);
    err(fa(fd, c"x", 0, 0), ENOTDIR);
    shut([fd]);
}

fn fchmodat2_forms() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let nr = 452;
    ok(sys!(SYS_symlink, c"f", t.path("l")));
    eq(sys!(nr, AT_FDCWD, t.path("l"), 0o600, 0), 0);
    eq(stat_fd(fd).st_mode & 0o7777, 0o600);
    errs(sys!(nr, AT_FDCWD, t.path("l"), 0o640, AT_SYMLINK_NOFOLLOW), &[EOPNOTSUPP]);
    eq(sys!(nr, AT_FDCWD, t.path("f"), 0o640, AT_SYMLINK_NOFOLLOW), 0);
    eq(sys!(nr, fd, c"", 0o604, AT_EMPTY_PATH), 0);
    eq(stat_fd(fd).st_mode & 0o7777, 0o604);
    let p = ok(t.open("f", O_PATH)) as i32;
    eq(sys!(nr, p, c"", 0o644, AT_EMPTY_PATH), 0);
    err(sys!(nr, AT_FDCWD, t.path("f"), 0o640, 0x8000), EINVAL);
    err(sys!(nr, fd, c"", 0o604, 0), ENOENT);
    shut([fd, p]);
}

fn utimens_forms() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    ok(sys!(SYS_symlink, c"f", t.path("l")));
    let ts = |a: i64, an: i64, m: i64, mn: i64| [a, an, m, mn];
    eq(sys!(SYS_utimensat, fd, 0, &ts(1, 2, 3, 4), 0), 0);
    let s = stat_fd(fd);
    eq((s.st_atime, s.st_atime_nsec, s.st_mtime, s.st_mtime_nsec), (1, 2, 3, 4));
    eq(sys!(SYS_utimensat, AT_FDCWD, t.path("l"), &ts(9, 0, 9, 0), AT_SYMLINK_NOFOLLOW), 0);
    eq(stat_fd(fd).st_mtime, 3);
    eq(sys!(SYS_utimensat, AT_FDCWD, t.path("l"), &ts(0, UTIME_OMIT, 7, 0), 0), 0);
    eq((stat_fd(fd).st_atime, stat_fd(fd).st_mtime), (1, 7));
    eq(sys!(SYS_utimensat, fd, c"", &ts(5, 0, 5, 0), AT_EMPTY_PATH), 0);
    eq(stat_fd(fd).st_mtime, 5);
    eq(sys!(SYS_utimensat, AT_FDCWD, t.path("f"), &ts(0, UTIME_OMIT, 0, UTIME_OMIT), 0), 0);
    // Both omitted: nothing is looked at.
    eq(sys!(SYS_utimensat, AT_FDCWD, c"/nonesuch", &ts(0, UTIME_OMIT, 0, UTIME_OMIT), 0), 0);
    err(sys!(SYS_utimensat, fd, 0, &ts(0, 1_000_000_000, 0, 0), 0), EINVAL);
    err(sys!(SYS_utimensat, fd, 0, &ts(0, -1, 0, 0), 0), EINVAL);
    err(sys!(SYS_utimensat, fd, 0, bad(), 0), EFAULT);
    err(sys!(SYS_utimensat, AT_FDCWD, 0, 0, 0), EFAULT);
    err(sys!(SYS_utimensat, fd, 0, 0, AT_SYMLINK_NOFOLLOW), EINVAL);
    err(sys!(SYS_utimensat, 9999, 0, 0, 0), EBADF);
    err(sys!(SYS_utimensat, fd, c"", 0, 0), ENOENT);
    let p = ok(t.open("f", O_PATH)) as i32;
    err(sys!(SYS_utimensat, p, 0, 0, 0), EBADF);
    let before = stat_fd(fd).st_ctime_nsec;
    // With the kernel's tick.
    until("ctime moves", || {
        eq(sys!(SYS_utimensat, fd, 0, 0, 0), 0);
        stat_fd(fd).st_ctime_nsec != before
    });
    shut([fd, p]);
}

fn utimens_before_1970() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    eq(sys!(SYS_utimensat, fd, 0, &[-5i64, 7, -1, 999_999_999], 0), 0);
    let s = stat_fd(fd);
    eq((s.st_atime, s.st_atime_nsec, s.st_mtime, s.st_mtime_nsec), (-5, 7, -1, 999_999_999));
    shut([fd]);
}

fn sx(dir: i32, path: &std::ffi::CStr, flags: i32, mask: u32) -> (i64, statx) {
    // SAFETY: plain data, for which zeroes are a value.
    let mut s: statx = unsafe { std::mem::zeroed() };
    let r = sys!(SYS_statx, dir, path, flags, mask, &mut s);
    (r, s)
}

fn statx_masks() {
    let t = Tmp::new();
    let fd = t.file("f", b"abc");
    for mask in [0, STATX_SIZE, STATX_BASIC_STATS, STATX_BTIME, STATX_ALL, 0x7fff_ffff] {
        let (r, s) = sx(fd, c"", AT_EMPTY_PATH, mask);
        eq(r, 0);
        eq((s.stx_size, s.stx_mask & mask & STATX_BASIC_STATS), (3, mask & STATX_BASIC_STATS));
        eq(u64::from(s.stx_nlink), stat_fd(fd).st_nlink);
    }
    err(sx(fd, c"", AT_EMPTY_PATH, 0x8000_0000).0, EINVAL);
    err(sx(fd, c"", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC, 0).0, EINVAL);
    let (r, s) = sx(AT_FDCWD, c"/", 0, STATX_ALL);
    eq((r, s.stx_attributes & 0x2000), (0, 0x2000));
    check(s.stx_mask & STATX_MNT_ID != 0 && s.stx_mnt_id != 0, "a mount");
    // A NULL path with AT_EMPTY_PATH (Linux 6.11).
    // SAFETY: plain data, for which zeroes are a value.
    let mut b: statx = unsafe { std::mem::zeroed() };
    eq(sys!(SYS_statx, fd, 0, AT_EMPTY_PATH, 0, &mut b), 0);
    let mut st: stat = unsafe { std::mem::zeroed() };
    eq(sys!(SYS_newfstatat, fd, 0, &mut st, AT_EMPTY_PATH), 0);
    // STATX_MNT_ID_UNIQUE.
    let (r, s) = sx(fd, c"", AT_EMPTY_PATH, 0x4000);
    eq(r, 0);
    check(s.stx_mask & 0x5000 != 0, "some mount id");
    shut([fd]);
}

fn fst(fd: i32) -> statfs {
    // SAFETY: plain data, for which zeroes are a value.
    let mut s: statfs = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_fstatfs, fd, &mut s));
    s
}

fn statfs_of_kinds() {
    let p = pipe_pair();
    eq(fst(p[0]).f_type, 0x5049_5045);
    let mut s = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut s));
    eq(fst(s[0]).f_type, 0x534f_434b);
    let e = ok(sys!(SYS_eventfd2, 0, 0)) as i32;
    eq(fst(e).f_type, 0x0904_1934);
    let t = Tmp::below("/dev/shm");
    let f = t.file("f", b"");
    eq(fst(f).f_type, 0x0102_1994);
    check(fst(f).f_blocks > 0 && fst(f).f_bsize == 4096 && fst(f).f_namelen == 255, "a size");
    let q = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self", O_PATH, 0)) as i32;
    eq(fst(q).f_type, 0x9fa0);
    err(sys!(SYS_fstatfs, 9999, bad()), EBADF);
    err(sys!(SYS_fstatfs, f, bad()), EFAULT);
    let m = ok(sys!(SYS_memfd_create, c"m", 0)) as i32;
    eq(fst(m).f_type, 0x0102_1994);
    shut([p[0], p[1], s[0], s[1], e, f, q, m]);
}

fn sync_kinds() {
    let t = Tmp::new();
    let f = t.file("f", b"abc");
    let p = ok(t.open("f", O_PATH)) as i32;
    eq(sys!(SYS_sync), 0);
    eq(sys!(SYS_syncfs, f), 0);
    err(sys!(SYS_syncfs, p), EBADF);
    err(sys!(SYS_syncfs, 9999), EBADF);
    let q = pipe_pair();
    eq(sys!(SYS_syncfs, q[0]), 0);
    err(sys!(SYS_fsync, q[0]), EINVAL);
    err(sys!(SYS_fdatasync, p), EBADF);
    err(sys!(SYS_sync_file_range, q[0], 0, 0, 7), ESPIPE);
    err(sys!(SYS_sync_file_range, f, 0, 0, 8), EINVAL);
    err(sys!(SYS_sync_file_range, f, i64::MAX, 2, 7), EINVAL);
    eq(sys!(SYS_sync_file_range, f, 0, 0, 7), 0);
    let r = ok(t.open("f", O_RDONLY)) as i32;
    eq(sys!(SYS_fsync, r), 0);
    let n = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/null", O_RDWR, 0)) as i32;
    err(sys!(SYS_fsync, n), EINVAL);
    shut([f, p, r, n, q[0], q[1]]);
}

fn dents(fd: i32, b: &mut [u8]) -> Vec<(String, u64, u8)> {
    let n = ok(sys!(SYS_getdents64, fd, &mut *b, b.len())) as usize;
    let (mut at, mut out) = (0, Vec::new());
    while at < n {
        let off = u64::from_ne_bytes(b[at + 8..at + 16].try_into().unwrap());
        let len = usize::from(u16::from_ne_bytes(b[at + 16..at + 18].try_into().unwrap()));
        let name = b[at + 19..at + len].split(|c| *c == 0).next().unwrap_or_default();
        out.push((String::from_utf8_lossy(name).into_owned(), off, b[at + 18]));
        at += len;
    }
    out
}

fn getdents_40000() {
    let t = Tmp::below("/dev/shm");
    let d = ok(t.open("", O_RDONLY)) as i32;
    let made = now_ms();
    for i in 0..40_000 {
        ok(sys!(SYS_mknodat, d, cstr(format!("{i}")), S_IFREG | 0o600, 0));
    }
    let begin = now_ms();
    let mut seen = std::collections::HashSet::new();
    let mut b = vec![0u8; 32768];
    loop {
        let e = dents(d, &mut b);
        if e.is_empty() {
            break;
        }
        for (n, _, _) in e {
            check(seen.insert(n), "each name once");
        }
    }
    eq(seen.len(), 40_002);
    // In linear time: it takes no longer than to make them did.
    check(now_ms() - begin < begin - made + 1000, "as many calls would");
    for i in 0..40_000 {
        sys!(SYS_unlinkat, d, cstr(format!("{i}")), 0);
    }
    shut([d]);
}

fn getdents_stable() {
    // Removing what was listed does not make others appear twice or not at all.
    let t = Tmp::new();
    for i in 0..500 {
        shut([t.file(&format!("n{i}"), b"")]);
    }
    let d = ok(t.open("", O_RDONLY)) as i32;
    let mut seen = std::collections::HashSet::new();
    let mut b = vec![0u8; 1024];
    loop {
        let e = dents(d, &mut b);
        if e.is_empty() {
            break;
        }
        for (n, _, _) in e {
            if n.starts_with('n') {
                check(seen.insert(n.clone()), "each name once");
                ok(sys!(SYS_unlinkat, d, cstr(n), 0));
            }
        }
    }
    eq(seen.len(), 500);
    // A position can be come back to.
    for i in 0..100 {
        shut([t.file(&format!("m{i}"), b"")]);
    }
    ok(sys!(SYS_lseek, d, 0, SEEK_SET));
    let first = dents(d, &mut b);
    let next = dents(d, &mut b);
    ok(sys!(SYS_lseek, d, first.last().unwrap().1, SEEK_SET));
    eq(dents(d, &mut b), next);
    shut([d]);
}

fn atime_moves() {
    let t = Tmp::new();
    let fd = t.file("f", b"abc");
    // relatime: an access time that is not after the modification is moved by a read.
    ok(sys!(SYS_utimensat, fd, 0, &[100i64, 0, 200, 0], 0));
    eq(sys!(SYS_pread64, fd, &mut [0u8; 1], 1, 0), 1);
    let a = stat_fd(fd).st_atime;
    check(a > 200, "moved");
    ok(sys!(SYS_utimensat, fd, 0, &[300i64, 0, 200, 0], 0));
    // Older than a day counts too.
    eq(sys!(SYS_pread64, fd, &mut [0u8; 1], 1, 0), 1);
    check(stat_fd(fd).st_atime > 300, "moved");
    ok(sys!(SYS_utimensat, fd, 0, &[100i64, 0, 200, 0], 0));
    let n = ok(t.open("f", O_RDONLY | O_NOATIME)) as i32;
    eq(sys!(SYS_pread64, n, &mut [0u8; 1], 1, 0), 1);
    eq(stat_fd(fd).st_atime, 100);
    let m = stat_fd(fd).st_mtime;
    eq(m, 200);
    shut([fd, n]);
}

fn direct_io() {
    let t = Tmp::new();
    let r = t.open("f", O_RDWR | O_CREAT | O_DIRECT);
    if r == -i64::from(EINVAL) {
        skip("a file system without O_DIRECT");
    }
    let fd = ok(r) as i32;
    let m = ok(sys!(SYS_mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) as *mut u8;
    // SAFETY: the pages were mapped a moment ago.
    unsafe { m.write_volatile(b'D') };
    eq(sys!(SYS_pwrite64, fd, m, 4096, 0), 4096);
    eq(sys!(SYS_pread64, fd, m.wrapping_add(4096), 4096, 0), 4096);
    // SAFETY: the second of the two pages.
    eq(unsafe { m.wrapping_add(4096).read_volatile() }, b'D');
    check(sys!(SYS_fcntl, fd, F_GETFL) & i64::from(O_DIRECT) != 0, "shown");
    ok(sys!(SYS_munmap, m, 8192));
    shut([fd]);
}

fn readdir_type_matches() {
    let t = Tmp::new();
    shut([t.file("r", b"")]);
    ok(sys!(SYS_mkdir, t.path("d"), 0o700));
    ok(sys!(SYS_symlink, c"r", t.path("l")));
    ok(sys!(SYS_mknod, t.path("p"), S_IFIFO | 0o600, 0));
    ok(sys!(SYS_mknod, t.path("s"), S_IFSOCK | 0o600, 0));
    let d = ok(t.open("", O_RDONLY)) as i32;
    let mut e: Vec<_> = dents(d, &mut [0u8; 4096]).into_iter().map(|(n, _, k)| (n, k)).collect();
    e.sort();
    let want = [(".", 4), ("..", 4), ("d", 4), ("l", 10), ("p", 1), ("r", 8), ("s", 12)];
    eq(e, want.map(|(n, k)| (n.to_string(), k)));
    shut([d]);
}

fn ftruncate_sparse() {
    let t = Tmp::new();
    let fd = t.file("f", b"abc");
    ok(sys!(SYS_ftruncate, fd, 1i64 << 40));
    let s = stat_fd(fd);
    eq(s.st_size, 1 << 40);
    check(s.st_blocks < 1000, "holes take no room");
    eq(sys!(SYS_pwrite64, fd, b"end", 3, (1i64 << 40) - 3), 3);
    let mut b = [1u8; 4];
    eq(sys!(SYS_pread64, fd, &mut b, 4, 1 << 30), 4);
    eq(b, [0; 4]);
    ok(sys!(SYS_ftruncate, fd, 2));
    eq(t.read("f"), b"ab");
    ok(sys!(SYS_ftruncate, fd, 4));
    eq(t.read("f"), b"ab\0\0");
    in_child(|| {
        ok(sys!(SYS_prlimit64, 0, RLIMIT_FSIZE, &[1000u64, 1000], 0));
        let _on = sig::on(SIGXFSZ, 0);
        err(sys!(SYS_ftruncate, fd, 1001), EFBIG);
        err(sys!(SYS_fallocate, fd, 0, 0, 1001), EFBIG);
        eq(sig::hits(), 2);
        eq(sys!(SYS_ftruncate, fd, 1000), 0);
    });
    shut([fd]);
}

fn name_limits() {
    let t = Tmp::new();
    let n = "n".repeat(255);
    shut([t.file(&n, b"")]);
    err(t.open(&"n".repeat(256), O_CREAT | O_RDWR), ENAMETOOLONG);
    err(sys!(SYS_mkdir, t.path(&"n".repeat(256)), 0o700), ENAMETOOLONG);
    err(sys!(SYS_rename, t.path(&n), t.path(&"m".repeat(256))), ENAMETOOLONG);
    err(sys!(SYS_symlink, cstr("x".repeat(4096)), t.path("l")), ENAMETOOLONG);
    eq(sys!(SYS_symlink, cstr("x".repeat(4000)), t.path("l")), 0);
    let deep = format!("{}{}", t.dir(), "/.".repeat(2100));
    err(sys!(SYS_openat, AT_FDCWD, cstr(deep), O_RDONLY, 0), ENAMETOOLONG);
    for name in ["a\nb", " ", "\\", "\u{1f600}", "-", "a\tb"] {
        shut([t.file(name, b"")]);
    }
    let bytes = cstr([t.dir().as_bytes(), b"/\xff\xfe"].concat());
    shut([ok(sys!(SYS_openat, AT_FDCWD, bytes, O_CREAT | O_RDWR, 0o600)) as i32]);
    eq(std::fs::read_dir(t.dir()).unwrap().count(), 9);
}

fn cachestat() {
    let t = Tmp::new();
    let f = t.file("f", &[b'x'; 8192]);
    let mut c = [9u64; 5];
    let r = sys!(451, f, &[0u64, 0], &mut c, 0);
    if r == -i64::from(ENOSYS) {
        skip("Linux 6.5");
    }
    if r != -i64::from(EOPNOTSUPP) {
        eq(r, 0);
        // SAFETY: an element that the call may have written.
        check(unsafe { (&raw const c[0]).read_volatile() } <= 2, "at most the pages there are");
        err(sys!(451, f, &[0u64, 0], &mut c, 1), EINVAL);
    }
    err(sys!(451, 9999, &[0u64, 0], &mut c, 0), EBADF);
    shut([f]);
}

fn fadvise_forms() {
    let t = Tmp::new();
    let f = t.file("f", b"abc");
    for advice in 0..=5 {
        eq(sys!(SYS_fadvise64, f, 0, 0, advice), 0);
    }
    err(sys!(SYS_fadvise64, f, 0, 0, 6), EINVAL);
    err(sys!(SYS_fadvise64, f, 0, -1, 0), EINVAL);
    eq(sys!(SYS_fadvise64, f, -1, 1, 0), 0);
    let p = ok(t.open("f", O_PATH)) as i32;
    err(sys!(SYS_fadvise64, p, 0, 0, 0), EBADF);
    err(sys!(SYS_readahead, p, 0, 1), EBADF);
    let w = ok(t.open("f", O_WRONLY)) as i32;
    err(sys!(SYS_readahead, w, 0, 1), EBADF);
    let q = pipe_pair();
    err(sys!(SYS_readahead, q[0], 0, 1), EINVAL);
    shut([f, p, w, q[0], q[1]]);
}
