//! stat(2), lstat(2), fstat(2), newfstatat(2), statx(2), access(2), faccessat2(2), statfs(2).

use guest_tests::*;
use libc::*;

cases![
    regular, directory, symlink, lstat_itself, hard_link_count, device, pipe_and_socket, size_and_blocks, missing, not_directory, bad_pointer,
    bad_fd, at_flags, at_empty_path, at_bad_flags, statx_basic, statx_mask_and_flags, statx_errors, same_everywhere, access_modes,
    access_missing, access_bad_mode, access_of_mode_zero, faccessat2_flags, statfs_basic, statfs_errors, proc_and_tmp_types, times_are_now
];

fn zst() -> stat {
    unsafe { std::mem::zeroed() }
}

#[track_caller]
fn st(path: &std::ffi::CStr) -> stat {
    let mut s = zst();
    ok(sys!(SYS_newfstatat, AT_FDCWD, path, &mut s, 0));
    s
}

fn regular() {
    let t = Tmp::new();
    let fd = t.file("f", b"hello");
    let s = st(t.path("f"));
    eq(s.st_mode & S_IFMT, S_IFREG);
    eq(s.st_size, 5);
    eq(s.st_nlink, 1);
    eq((i64::from(s.st_uid), i64::from(s.st_gid)), (sys!(SYS_geteuid), sys!(SYS_getegid)));
    check(s.st_blksize >= 512, "block size");
    let f = stat_fd(fd);
    eq((f.st_dev, f.st_ino, f.st_size, f.st_mtime_nsec), (s.st_dev, s.st_ino, s.st_size, s.st_mtime_nsec));
    shut([fd]);
}

fn directory() {
    let t = Tmp::new();
    ok(sys!(SYS_mkdir, t.path("d"), 0o750));
    let s = st(t.path("d"));
    eq(s.st_mode & S_IFMT, S_IFDIR);
    eq(s.st_mode & 0o777, 0o750);
    // A path with slashes behind names the same.
    eq(st(t.path("d///")).st_ino, s.st_ino);
    eq(st(t.path("d/.")).st_ino, s.st_ino);
    eq(st(t.path("d/..")).st_ino, st(t.path("")).st_ino);
}

fn symlink() {
    let t = Tmp::new();
    shut([t.file("f", b"hello")]);
    ok(sys!(SYS_symlink, c"f", t.path("l")));
    eq(st(t.path("l")).st_ino, st(t.path("f")).st_ino);
    let mut s = zst();
    ok(sys!(SYS_stat, t.path("l"), &mut s));
    eq(s.st_size, 5);
    ok(sys!(SYS_symlink, c"none", t.path("m")));
    err(sys!(SYS_stat, t.path("m"), &mut s), ENOENT);
}

fn lstat_itself() {
    let t = Tmp::new();
    ok(sys!(SYS_symlink, c"some/where", t.path("l")));
    let mut s = zst();
    ok(sys!(SYS_lstat, t.path("l"), &mut s));
    eq(s.st_mode, S_IFLNK | 0o777);
    eq(s.st_size, 10);
}

fn hard_link_count() {
    let t = Tmp::new();
    shut([t.file("f", b"x")]);
    ok(sys!(SYS_link, t.path("f"), t.path("g")));
    eq(st(t.path("f")).st_nlink, 2);
    eq(st(t.path("f")).st_ino, st(t.path("g")).st_ino);
    ok(sys!(SYS_unlink, t.path("f")));
    eq(st(t.path("g")).st_nlink, 1);
}

fn device() {
    let s = st(c"/dev/null");
    eq(s.st_mode & S_IFMT, S_IFCHR);
    eq(s.st_rdev, makedev(1, 3));
    eq(st(c"/dev/zero").st_rdev, makedev(1, 5));
    eq(st(c"/dev/full").st_rdev, makedev(1, 7));
    eq(st(c"/dev/urandom").st_rdev, makedev(1, 9));
}

fn pipe_and_socket() {
    let p = pipe_pair();
    eq(stat_fd(p[0]).st_mode & S_IFMT, S_IFIFO);
    eq(stat_fd(p[0]).st_ino, stat_fd(p[1]).st_ino);
    let q = pipe_pair();
    check(stat_fd(p[0]).st_ino != stat_fd(q[0]).st_ino, "pipes have inodes of their own");
    let mut s = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut s));
    eq(stat_fd(s[0]).st_mode & S_IFMT, S_IFSOCK);
    shut(p);
    shut(q);
    shut(s);
}

fn size_and_blocks() {
    let t = Tmp::new();
    let fd = t.file("f", &[1u8; 9000]);
    ok(sys!(SYS_fsync, fd));
    let s = stat_fd(fd);
    eq(s.st_size, 9000);
    check(s.st_blocks >= 16 && s.st_blocks <= 64, "blocks count 512 bytes");
    shut([fd]);
}

fn missing() {
    let t = Tmp::new();
    let mut s = zst();
    err(sys!(SYS_stat, t.path("no"), &mut s), ENOENT);
    err(sys!(SYS_lstat, t.path("no"), &mut s), ENOENT);
    err(sys!(SYS_newfstatat, AT_FDCWD, c"", &mut s, 0), ENOENT);
    err(sys!(SYS_stat, c"", &mut s), ENOENT);
    err(sys!(SYS_stat, cstr(format!("{}/{}", t.dir(), "n".repeat(256))), &mut s), ENAMETOOLONG);
}

fn not_directory() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    let mut s = zst();
    err(sys!(SYS_stat, t.path("f/x"), &mut s), ENOTDIR);
    err(sys!(SYS_stat, t.path("f/"), &mut s), ENOTDIR);
    err(sys!(SYS_lstat, t.path("f/"), &mut s), ENOTDIR);
}

fn bad_pointer() {
    let mut s = zst();
    err(sys!(SYS_stat, bad(), &mut s), EFAULT);
    err(sys!(SYS_stat, c"/", bad()), EFAULT);
    err(sys!(SYS_lstat, c"/", bad()), EFAULT);
    err(sys!(SYS_fstat, 1, bad()), EFAULT);
    err(sys!(SYS_newfstatat, AT_FDCWD, bad(), &mut s, 0), EFAULT);
    err(sys!(SYS_fstat, -1, bad()), EBADF);
}

fn bad_fd() {
    let mut s = zst();
    err(sys!(SYS_fstat, -1, &mut s), EBADF);
    err(sys!(SYS_newfstatat, -1, c"x", &mut s, 0), EBADF);
    err(sys!(SYS_newfstatat, -1, c"", &mut s, AT_EMPTY_PATH), EBADF);
    ok(sys!(SYS_newfstatat, -1, c"/", &mut s, 0));
}

fn at_flags() {
    let t = Tmp::new();
    shut([t.file("f", b"hello")]);
    ok(sys!(SYS_symlink, c"f", t.path("l")));
    let d = ok(t.open("", O_RDONLY)) as i32;
    let mut s = zst();
    ok(sys!(SYS_newfstatat, d, c"l", &mut s, AT_SYMLINK_NOFOLLOW));
    eq(s.st_mode & S_IFMT, S_IFLNK);
    ok(sys!(SYS_newfstatat, d, c"l", &mut s, 0));
    eq(s.st_mode & S_IFMT, S_IFREG);
    ok(sys!(SYS_newfstatat, d, c"l", &mut s, AT_NO_AUTOMOUNT));
    shut([d]);
}

fn at_empty_path() {
    let t = Tmp::new();
    let fd = t.file("f", b"hello");
    let mut s = zst();
    ok(sys!(SYS_newfstatat, fd, c"", &mut s, AT_EMPTY_PATH));
    eq(s.st_size, 5);
    ok(sys!(SYS_newfstatat, AT_FDCWD, c"", &mut s, AT_EMPTY_PATH));
    eq(s.st_mode & S_IFMT, S_IFDIR);
    let p = pipe_pair();
    ok(sys!(SYS_newfstatat, p[0], c"", &mut s, AT_EMPTY_PATH));
    eq(s.st_mode & S_IFMT, S_IFIFO);
    shut([fd, p[0], p[1]]);
}

fn at_bad_flags() {
    err(sys!(SYS_newfstatat, AT_FDCWD, c"/", &mut zst(), 0x1_0000), EINVAL);
}

fn statx_basic() {
    let t = Tmp::new();
    let fd = t.file("f", b"hello");
    let s = stat_fd(fd);
    let mut x: statx = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_statx, AT_FDCWD, t.path("f"), 0, STATX_BASIC_STATS, &mut x));
    eq(x.stx_mask & STATX_BASIC_STATS, STATX_BASIC_STATS);
    eq((u32::from(x.stx_mode), x.stx_size, x.stx_ino), (s.st_mode, 5, s.st_ino));
    eq((u64::from(x.stx_nlink), x.stx_uid, x.stx_gid), (s.st_nlink, s.st_uid, s.st_gid));
    eq(makedev(x.stx_dev_major, x.stx_dev_minor), s.st_dev);
    eq((x.stx_mtime.tv_sec, i64::from(x.stx_mtime.tv_nsec)), (s.st_mtime, s.st_mtime_nsec));
    let mut y: statx = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_statx, fd, c"", AT_EMPTY_PATH, STATX_BASIC_STATS, &mut y));
    eq(y.stx_ino, x.stx_ino);
    ok(sys!(SYS_statx, AT_FDCWD, c"/dev/null", 0, STATX_TYPE, &mut y));
    eq((y.stx_rdev_major, y.stx_rdev_minor), (1, 3));
    shut([fd]);
}

fn statx_mask_and_flags() {
    let t = Tmp::new();
    ok(sys!(SYS_symlink, c"none", t.path("l")));
    let mut x: statx = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_statx, AT_FDCWD, t.path("l"), AT_SYMLINK_NOFOLLOW, 0, &mut x));
    eq(u32::from(x.stx_mode) & S_IFMT, S_IFLNK);
    ok(sys!(SYS_statx, AT_FDCWD, t.path(""), AT_STATX_FORCE_SYNC, STATX_ALL, &mut x));
    ok(sys!(SYS_statx, AT_FDCWD, t.path(""), AT_STATX_DONT_SYNC, STATX_ALL, &mut x));
}

fn statx_errors() {
    let mut x: statx = unsafe { std::mem::zeroed() };
    err(sys!(SYS_statx, AT_FDCWD, c"/", AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC, 0, &mut x), EINVAL);
    err(sys!(SYS_statx, AT_FDCWD, c"/", 0x10_0000, 0, &mut x), EINVAL);
    err(sys!(SYS_statx, AT_FDCWD, c"/", 0, 0x8000_0000u32, &mut x), EINVAL);
    err(sys!(SYS_statx, AT_FDCWD, c"/", 0, 0, bad()), EFAULT);
    err(sys!(SYS_statx, AT_FDCWD, bad(), 0, 0, &mut x), EFAULT);
    err(sys!(SYS_statx, AT_FDCWD, c"", 0, 0, &mut x), ENOENT);
    err(sys!(SYS_statx, -1, c"x", 0, 0, &mut x), EBADF);
}

fn same_everywhere() {
    // The identity of a file does not depend on the way to it.
    for p in [c"/", c"/usr", c"/usr/bin/env", c"/etc/passwd"] {
        let s = st(p);
        let fd = ok(sys!(SYS_openat, AT_FDCWD, p, O_RDONLY, 0)) as i32;
        let f = stat_fd(fd);
        eq((s.st_dev, s.st_ino, s.st_size), (f.st_dev, f.st_ino, f.st_size));
        shut([fd]);
    }
}

fn access_modes() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    ok(sys!(SYS_chmod, t.path("f"), 0o600));
    eq(sys!(SYS_access, t.path("f"), F_OK), 0);
    eq(sys!(SYS_access, t.path("f"), R_OK | W_OK), 0);
    // Execution needs one x bit, for root too.
    err(sys!(SYS_access, t.path("f"), X_OK), EACCES);
    ok(sys!(SYS_chmod, t.path("f"), 0o700));
    eq(sys!(SYS_access, t.path("f"), X_OK), 0);
    eq(sys!(SYS_access, t.path(""), X_OK | W_OK), 0);
    eq(sys!(SYS_faccessat, AT_FDCWD, t.path("f"), X_OK), 0);
}

fn access_missing() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    err(sys!(SYS_access, t.path("no"), F_OK), ENOENT);
    err(sys!(SYS_access, t.path("f/x"), F_OK), ENOTDIR);
    err(sys!(SYS_access, bad(), F_OK), EFAULT);
    err(sys!(SYS_faccessat, -1, c"x", F_OK), EBADF);
}

fn access_bad_mode() {
    err(sys!(SYS_access, c"/", 8), EINVAL);
    err(sys!(SYS_access, c"/", -1), EINVAL);
}

fn access_of_mode_zero() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    ok(sys!(SYS_chmod, t.path("f"), 0));
    if sys!(SYS_geteuid) == 0 {
        eq(sys!(SYS_access, t.path("f"), R_OK | W_OK), 0);
    } else {
        err(sys!(SYS_access, t.path("f"), R_OK), EACCES);
        err(sys!(SYS_access, t.path("f"), W_OK), EACCES);
    }
    eq(sys!(SYS_access, t.path("f"), F_OK), 0);
}

fn faccessat2_flags() {
    let t = Tmp::new();
    ok(sys!(SYS_symlink, c"none", t.path("l")));
    err(sys!(SYS_faccessat2, AT_FDCWD, t.path("l"), F_OK, 0), ENOENT);
    eq(sys!(SYS_faccessat2, AT_FDCWD, t.path("l"), F_OK, AT_SYMLINK_NOFOLLOW), 0);
    eq(sys!(SYS_faccessat2, AT_FDCWD, c"/", R_OK, AT_EACCESS), 0);
    err(sys!(SYS_faccessat2, AT_FDCWD, c"/", R_OK, 0x8000), EINVAL);
    let fd = t.file("f", b"");
    eq(sys!(SYS_faccessat2, fd, c"", R_OK, AT_EMPTY_PATH), 0);
    err(sys!(SYS_faccessat2, fd, c"", R_OK, 0), ENOENT);
    shut([fd]);
}

fn statfs_basic() {
    let mut s: statfs = unsafe { std::mem::zeroed() };
    let t = Tmp::new();
    ok(sys!(SYS_statfs, t.path(""), &mut s));
    check(s.f_bsize > 0 && s.f_namelen == 255, "block size and name length");
    check(s.f_blocks >= s.f_bfree && s.f_bfree >= s.f_bavail, "counts are ordered");
    let fd = t.file("f", b"");
    let mut f: statfs = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_fstatfs, fd, &mut f));
    eq(f.f_type, s.f_type);
    let p = pipe_pair();
    ok(sys!(SYS_fstatfs, p[0], &mut f));
    eq(f.f_type, 0x5049_5045);
    shut([fd, p[0], p[1]]);
}

fn statfs_errors() {
    let mut s: statfs = unsafe { std::mem::zeroed() };
    err(sys!(SYS_statfs, c"/no/such/path", &mut s), ENOENT);
    err(sys!(SYS_statfs, c"/", bad()), EFAULT);
    err(sys!(SYS_statfs, bad(), &mut s), EFAULT);
    err(sys!(SYS_fstatfs, -1, &mut s), EBADF);
    err(sys!(SYS_fstatfs, 1, bad()), EFAULT);
}

fn proc_and_tmp_types() {
    let mut s: statfs = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_statfs, c"/proc", &mut s));
    eq(s.f_type, PROC_SUPER_MAGIC);
}

fn times_are_now() {
    let t = Tmp::new();
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    shut([t.file("f", b"x")]);
    let s = st(t.path("f"));
    for x in [s.st_atime, s.st_mtime, s.st_ctime] {
        check((before - 2..before + 5).contains(&x), "times of a new file are now");
    }
}
