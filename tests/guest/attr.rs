//! chmod(2), chown(2), utimensat(2), truncate(2), fallocate(2), umask(2), xattr(7), fsync(2).

use guest_tests::*;
use libc::*;

cases![
    chmod_basic, chmod_errors, fchmod_and_fchmodat, chmod_follows_symlink, chown_to_self, chown_errors, chown_not_permitted, chown_root,
    utimensat_sets, utimensat_now_and_omit, utimensat_errors, utimensat_symlink, utimes_and_utime, truncate_basic, truncate_errors,
    ftruncate_errors, truncate_extends_with_zeros, fallocate_extends, fallocate_keep_size, fallocate_punch, fallocate_errors, umask_returns_old,
    xattr_basic, xattr_flags, xattr_errors, fsync_family, write_clears_setuid, sync_file_range_basic
];

fn mode(t: &Tmp, n: &str) -> u32 {
    let fd = ok(t.open(n, O_PATH | O_NOFOLLOW)) as i32;
    let m = stat_fd(fd).st_mode & 0o7777;
    shut([fd]);
    m
}

fn chmod_basic() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    for m in [0o600, 0o4711, 0o1777, 0, 0o644] {
        eq(sys!(SYS_chmod, t.path("f"), m), 0);
        eq(mode(&t, "f"), m);
    }
    // Bits above are ignored.
    eq(sys!(SYS_chmod, t.path("f"), 0o10_0600), 0);
    eq(mode(&t, "f"), 0o600);
}

fn chmod_errors() {
    let t = Tmp::new();
    err(sys!(SYS_chmod, t.path("no"), 0o600), ENOENT);
    err(sys!(SYS_chmod, bad(), 0o600), EFAULT);
    err(sys!(SYS_fchmod, -1, 0o600), EBADF);
    err(sys!(SYS_fchmodat, -1, c"x", 0o600), EBADF);
    if sys!(SYS_geteuid) != 0 {
        err(sys!(SYS_chmod, c"/", 0o755), EPERM);
    }
}

fn fchmod_and_fchmodat() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    eq(sys!(SYS_fchmod, fd, 0o640), 0);
    eq(mode(&t, "f"), 0o640);
    let d = ok(t.open("", O_RDONLY)) as i32;
    eq(sys!(SYS_fchmodat, d, c"f", 0o600), 0);
    eq(mode(&t, "f"), 0o600);
    shut([fd, d]);
}

fn chmod_follows_symlink() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    ok(sys!(SYS_symlink, c"f", t.path("l")));
    eq(sys!(SYS_chmod, t.path("l"), 0o604), 0);
    eq(mode(&t, "f"), 0o604);
    eq(mode(&t, "l"), 0o777);
}

fn chown_to_self() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let (u, g) = (sys!(SYS_geteuid), sys!(SYS_getegid));
    eq(sys!(SYS_chown, t.path("f"), u, g), 0);
    eq(sys!(SYS_fchown, fd, -1, -1), 0);
    eq(sys!(SYS_lchown, t.path("f"), u, -1), 0);
    eq(sys!(SYS_fchownat, fd, c"", -1, g, AT_EMPTY_PATH), 0);
    eq(i64::from(stat_fd(fd).st_uid), u);
    shut([fd]);
}

fn chown_errors() {
    let t = Tmp::new();
    err(sys!(SYS_chown, t.path("no"), -1, -1), ENOENT);
    err(sys!(SYS_chown, bad(), -1, -1), EFAULT);
    err(sys!(SYS_fchown, -1, -1, -1), EBADF);
    err(sys!(SYS_fchownat, AT_FDCWD, t.path(""), -1, -1, 0x2000), EINVAL);
}

fn chown_not_permitted() {
    if sys!(SYS_geteuid) == 0 {
        skip("root may");
    }
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    err(sys!(SYS_chown, t.path("f"), 0, -1), EPERM);
    err(sys!(SYS_chown, t.path("f"), -1, 0), EPERM);
    // Who asks for nothing may do so with another's file.
    eq(sys!(SYS_chown, c"/etc", -1, -1), 0);
    err(sys!(SYS_chown, c"/etc", sys!(SYS_geteuid), -1), EPERM);
}

fn chown_root() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs root");
    }
    let t = Tmp::new();
    let fd = t.file("f", b"");
    ok(sys!(SYS_fchmod, fd, 0o4755));
    eq(sys!(SYS_fchown, fd, 1234, 4321), 0);
    let s = stat_fd(fd);
    eq((s.st_uid, s.st_gid), (1234, 4321));
    // A change of owner takes the set-user-id bit away.
    eq(s.st_mode & 0o7777, 0o755);
    shut([fd]);
}

fn utimensat_sets() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    eq(sys!(SYS_utimensat, AT_FDCWD, t.path("f"), &[1000i64, 5000, 2000, 7000], 0), 0);
    let s = stat_fd(fd);
    eq((s.st_atime, s.st_atime_nsec, s.st_mtime, s.st_mtime_nsec), (1000, 5000, 2000, 7000));
    check(s.st_ctime > 1_600_000_000, "ctime is now");
    shut([fd]);
}

fn utimensat_now_and_omit() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    ok(sys!(SYS_utimensat, fd, 0, &[1000i64, 0, 2000, 0], 0));
    eq(sys!(SYS_utimensat, fd, 0, &[0i64, UTIME_NOW, 0, UTIME_OMIT], 0), 0);
    let s = stat_fd(fd);
    check(s.st_atime > 1_600_000_000, "atime is now");
    eq(s.st_mtime, 2000);
    eq(sys!(SYS_utimensat, fd, 0, 0, 0), 0);
    check(stat_fd(fd).st_mtime > 1_600_000_000, "mtime is now");
    shut([fd]);
}

fn utimensat_errors() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    err(sys!(SYS_utimensat, AT_FDCWD, t.path("no"), 0, 0), ENOENT);
    err(sys!(SYS_utimensat, fd, 0, bad(), 0), EFAULT);
    err(sys!(SYS_utimensat, fd, 0, &[0i64, 1_000_000_000, 0, 0], 0), EINVAL);
    err(sys!(SYS_utimensat, fd, 0, &[0i64, -1, 0, 0], 0), EINVAL);
    err(sys!(SYS_utimensat, AT_FDCWD, t.path("f"), 0, 0x4000_0000), EINVAL);
    err(sys!(SYS_utimensat, -1, c"x", 0, 0), EBADF);
    shut([fd]);
}

fn utimensat_symlink() {
    let t = Tmp::new();
    ok(sys!(SYS_symlink, c"none", t.path("l")));
    err(sys!(SYS_utimensat, AT_FDCWD, t.path("l"), 0, 0), ENOENT);
    eq(sys!(SYS_utimensat, AT_FDCWD, t.path("l"), &[7i64, 0, 7, 0], AT_SYMLINK_NOFOLLOW), 0);
    let fd = ok(t.open("l", O_PATH | O_NOFOLLOW)) as i32;
    eq(stat_fd(fd).st_mtime, 7);
    shut([fd]);
}

fn utimes_and_utime() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    eq(sys!(SYS_utimes, t.path("f"), &[11i64, 5, 12, 6]), 0);
    eq((stat_fd(fd).st_mtime, stat_fd(fd).st_mtime_nsec), (12, 6000));
    eq(sys!(SYS_utime, t.path("f"), &[21i64, 22]), 0);
    eq((stat_fd(fd).st_atime, stat_fd(fd).st_mtime), (21, 22));
    eq(sys!(SYS_futimesat, AT_FDCWD, t.path("f"), &[31i64, 0, 32, 0]), 0);
    eq(stat_fd(fd).st_mtime, 32);
    err(sys!(SYS_utimes, t.path("f"), &[0i64, 1_000_000, 0, 0]), EINVAL);
    err(sys!(SYS_utimes, 0, 0), EFAULT);
    err(sys!(SYS_futimesat, AT_FDCWD, 0, 0), EFAULT);
    shut([fd]);
}

fn truncate_basic() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    eq(sys!(SYS_truncate, t.path("f"), 4), 0);
    eq(t.read("f"), b"0123");
    eq(sys!(SYS_ftruncate, fd, 2), 0);
    eq(t.read("f"), b"01");
    eq(sys!(SYS_ftruncate, fd, 0), 0);
    eq(stat_fd(fd).st_size, 0);
    shut([fd]);
}

fn truncate_errors() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    err(sys!(SYS_truncate, t.path("f"), -1), EINVAL);
    err(sys!(SYS_truncate, t.path(""), 0), EISDIR);
    err(sys!(SYS_truncate, t.path("no"), 0), ENOENT);
    err(sys!(SYS_truncate, t.path("f/x"), 0), ENOTDIR);
    err(sys!(SYS_truncate, bad(), 0), EFAULT);
}

fn ftruncate_errors() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    err(sys!(SYS_ftruncate, fd, -1), EINVAL);
    err(sys!(SYS_ftruncate, -1, 0), EBADF);
    let r = ok(t.open("f", O_RDONLY)) as i32;
    err(sys!(SYS_ftruncate, r, 0), EINVAL);
    let p = pipe_pair();
    err(sys!(SYS_ftruncate, p[1], 0), EINVAL);
    shut([fd, r, p[0], p[1]]);
}

fn truncate_extends_with_zeros() {
    let t = Tmp::new();
    let fd = t.file("f", b"abcdef");
    ok(sys!(SYS_ftruncate, fd, 3));
    ok(sys!(SYS_ftruncate, fd, 6));
    eq(t.read("f"), b"abc\0\0\0");
    ok(sys!(SYS_ftruncate, fd, 10_000));
    eq(t.read("f").len(), 10_000);
    shut([fd]);
}

fn fallocate_extends() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    eq(sys!(SYS_fallocate, fd, 0, 1, 5000), 0);
    let d = t.read("f");
    eq(d.len(), 5001);
    eq(&d[..3], b"ab\0");
    // Less than the size changes nothing.
    eq(sys!(SYS_fallocate, fd, 0, 0, 10), 0);
    eq(stat_fd(fd).st_size, 5001);
    shut([fd]);
}

fn fallocate_keep_size() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    eq(sys!(SYS_fallocate, fd, FALLOC_FL_KEEP_SIZE, 0, 100_000), 0);
    eq(stat_fd(fd).st_size, 2);
    shut([fd]);
}

fn fallocate_punch() {
    let t = Tmp::new();
    let fd = t.file("f", &[1u8; 16384]);
    eq(sys!(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192), 0);
    let d = t.read("f");
    eq((d[4095], d[4096], d[12287], d[12288]), (1, 0, 0, 1));
    err(sys!(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE, 0, 4096), EOPNOTSUPP);
    shut([fd]);
}

fn fallocate_errors() {
    let t = Tmp::new();
    let fd = t.file("f", b"ab");
    err(sys!(SYS_fallocate, -1, 0, 0, 10), EBADF);
    err(sys!(SYS_fallocate, fd, 0, -1, 10), EINVAL);
    err(sys!(SYS_fallocate, fd, 0, 0, 0), EINVAL);
    err(sys!(SYS_fallocate, fd, 0, 0, -1), EINVAL);
    err(sys!(SYS_fallocate, fd, 0x4000, 0, 1), EOPNOTSUPP);
    let p = pipe_pair();
    err(sys!(SYS_fallocate, p[1], 0, 0, 10), ESPIPE);
    let r = ok(t.open("f", O_RDONLY)) as i32;
    err(sys!(SYS_fallocate, r, 0, 0, 10), EBADF);
    shut([fd, r, p[0], p[1]]);
}

fn umask_returns_old() {
    in_child(|| {
        sys!(SYS_umask, 0o77);
        eq(sys!(SYS_umask, 0o17_7022), 0o77);
        eq(sys!(SYS_umask, 0), 0o022);
        // A child has the mask too.
        sys!(SYS_umask, 0o123);
        exits(child(|| sys!(SYS_umask, 0) as i32), 0o123);
    });
}

fn xattr_basic() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let r = sys!(SYS_setxattr, t.path("f"), c"user.a", b"one", 3, 0);
    if r == -i64::from(EOPNOTSUPP) {
        skip("file system has no user attributes");
    }
    ok(r);
    eq(sys!(SYS_fsetxattr, fd, c"user.b", b"two!", 4, 0), 0);
    let mut b = [0u8; 64];
    eq(sys!(SYS_getxattr, t.path("f"), c"user.b", &mut b, 64), 4);
    eq(&b[..4], b"two!");
    eq(sys!(SYS_fgetxattr, fd, c"user.a", 0, 0), 3);
    let n = ok(sys!(SYS_flistxattr, fd, &mut b, 64)) as usize;
    let mut names: Vec<_> = b[..n].split(|c| *c == 0).filter(|s| s.starts_with(b"user.")).collect();
    names.sort();
    eq(names, vec![b"user.a", b"user.b"]);
    eq(sys!(SYS_removexattr, t.path("f"), c"user.a"), 0);
    err(sys!(SYS_getxattr, t.path("f"), c"user.a", &mut b, 64), ENODATA);
    err(sys!(SYS_fremovexattr, fd, c"user.a"), ENODATA);
    shut([fd]);
}

fn xattr_flags() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    let p = t.path("f");
    if sys!(SYS_setxattr, p, c"user.a", b"one", 3, XATTR_CREATE) == -i64::from(EOPNOTSUPP) {
        skip("file system has no user attributes");
    }
    err(sys!(SYS_setxattr, p, c"user.a", b"two", 3, XATTR_CREATE), EEXIST);
    err(sys!(SYS_setxattr, p, c"user.b", b"two", 3, XATTR_REPLACE), ENODATA);
    eq(sys!(SYS_setxattr, p, c"user.a", b"", 0, XATTR_REPLACE), 0);
    eq(sys!(SYS_getxattr, p, c"user.a", 0, 0), 0);
}

fn xattr_errors() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    let p = t.path("f");
    let mut b = [0u8; 2];
    if sys!(SYS_setxattr, p, c"user.a", b"one", 3, 0) == -i64::from(EOPNOTSUPP) {
        skip("file system has no user attributes");
    }
    err(sys!(SYS_getxattr, p, c"user.a", &mut b, 2), ERANGE);
    err(sys!(SYS_listxattr, p, &mut b, 2), ERANGE);
    err(sys!(SYS_setxattr, p, c"user.a", b"x", 1, 8), EINVAL);
    err(sys!(SYS_setxattr, p, c"nonsense", b"x", 1, 0), EOPNOTSUPP);
    err(sys!(SYS_setxattr, p, c"", b"x", 1, 0), ERANGE);
    err(sys!(SYS_setxattr, t.path("no"), c"user.a", b"x", 1, 0), ENOENT);
    err(sys!(SYS_setxattr, p, c"user.a", bad(), 1, 0), EFAULT);
    err(sys!(SYS_getxattr, p, bad(), &mut b, 2), EFAULT);
    err(sys!(SYS_fgetxattr, -1, c"user.a", &mut b, 2), EBADF);
    err(sys!(SYS_setxattr, p, c"user.a", b"x", 65537, 0), E2BIG);
}

fn fsync_family() {
    let t = Tmp::new();
    let fd = t.file("f", b"abc");
    eq(sys!(SYS_fsync, fd), 0);
    eq(sys!(SYS_fdatasync, fd), 0);
    eq(sys!(SYS_syncfs, fd), 0);
    err(sys!(SYS_fsync, -1), EBADF);
    err(sys!(SYS_fdatasync, -1), EBADF);
    let p = pipe_pair();
    err(sys!(SYS_fsync, p[0]), EINVAL);
    let d = ok(t.open("", O_RDONLY)) as i32;
    eq(sys!(SYS_fsync, d), 0);
    shut([fd, d, p[0], p[1]]);
}

fn write_clears_setuid() {
    if sys!(SYS_geteuid) == 0 {
        skip("root keeps it");
    }
    let t = Tmp::new();
    let fd = t.file("f", b"");
    ok(sys!(SYS_fchmod, fd, 0o4777));
    eq(sys!(SYS_write, fd, b"x", 1), 1);
    eq(mode(&t, "f"), 0o777);
    shut([fd]);
}

fn sync_file_range_basic() {
    let t = Tmp::new();
    let fd = t.file("f", b"abc");
    eq(sys!(SYS_sync_file_range, fd, 0, 0, 7), 0);
    err(sys!(SYS_sync_file_range, fd, 0, 0, 8), EINVAL);
    err(sys!(SYS_sync_file_range, fd, -1, 0, 0), EINVAL);
    shut([fd]);
}
