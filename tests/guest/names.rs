//! mkdir(2), rmdir(2), unlink(2), rename(2), renameat2(2), link(2), symlink(2), readlink(2), mknod(2).

use guest_tests::*;
use libc::*;

cases![
    mkdir_mode_and_umask, mkdir_errors, mkdir_trailing_slash, rmdir_basic, rmdir_errors, unlink_basic, unlink_open_file, unlink_errors,
    unlinkat_flags, rename_basic, rename_replaces, rename_directory, rename_directory_over, rename_errors, rename_same_file, rename_dots,
    rename_open_file_keeps, renameat2_noreplace, renameat2_exchange, renameat2_errors, link_errors, link_of_symlink, link_directory,
    symlink_errors, readlink_basic, readlink_errors, mknod_kinds, parent_times_change, nlink_of_directories, name_bytes
];

fn exists(t: &Tmp, n: &str) -> bool {
    let r = sys!(SYS_faccessat2, AT_FDCWD, t.path(n), F_OK, AT_SYMLINK_NOFOLLOW);
    if r != 0 {
        err(r, ENOENT);
    }
    r == 0
}

#[track_caller]
fn mkdir_in(t: &Tmp, n: &str) {
    ok(sys!(SYS_mkdir, t.path(n), 0o755));
}

fn mode(t: &Tmp, n: &str) -> u32 {
    let fd = ok(t.open(n, O_PATH | O_NOFOLLOW)) as i32;
    let m = stat_fd(fd).st_mode;
    shut([fd]);
    m
}

fn mkdir_mode_and_umask() {
    in_child(|| {
        let t = Tmp::new();
        sys!(SYS_umask, 0o022);
        ok(sys!(SYS_mkdir, t.path("d"), 0o777));
        eq(mode(&t, "d"), S_IFDIR | 0o755);
        ok(sys!(SYS_mkdirat, AT_FDCWD, t.path("e"), 0o1700));
        eq(mode(&t, "e"), S_IFDIR | 0o1700);
    });
}

fn mkdir_errors() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    err(sys!(SYS_mkdir, t.path("f"), 0o755), EEXIST);
    err(sys!(SYS_mkdir, t.path(""), 0o755), EEXIST);
    err(sys!(SYS_mkdir, t.path("f/d"), 0o755), ENOTDIR);
    err(sys!(SYS_mkdir, t.path("no/d"), 0o755), ENOENT);
    err(sys!(SYS_mkdir, c"", 0o755), ENOENT);
    err(sys!(SYS_mkdir, c"/", 0o755), EEXIST);
    err(sys!(SYS_mkdir, t.path("."), 0o755), EEXIST);
    err(sys!(SYS_mkdir, t.path(&"n".repeat(256)), 0o755), ENAMETOOLONG);
    err(sys!(SYS_mkdir, bad(), 0o755), EFAULT);
    err(sys!(SYS_mkdirat, -1, c"x", 0o755), EBADF);
    ok(sys!(SYS_symlink, c"none", t.path("l")));
    err(sys!(SYS_mkdir, t.path("l"), 0o755), EEXIST);
}

fn mkdir_trailing_slash() {
    let t = Tmp::new();
    ok(sys!(SYS_mkdir, t.path("d/"), 0o755));
    check(exists(&t, "d"), "made");
    err(sys!(SYS_mkdir, t.path("e/."), 0o755), ENOENT);
}

fn rmdir_basic() {
    let t = Tmp::new();
    mkdir_in(&t, "d");
    eq(sys!(SYS_rmdir, t.path("d/")), 0);
    check(!exists(&t, "d"), "gone");
}

fn rmdir_errors() {
    let t = Tmp::new();
    mkdir_in(&t, "d");
    shut([t.file("d/f", b"")]);
    err(sys!(SYS_rmdir, t.path("d")), ENOTEMPTY);
    err(sys!(SYS_rmdir, t.path("d/f")), ENOTDIR);
    err(sys!(SYS_rmdir, t.path("no")), ENOENT);
    err(sys!(SYS_rmdir, t.path("d/.")), EINVAL);
    err(sys!(SYS_rmdir, t.path("d/..")), ENOTEMPTY);
    err(sys!(SYS_rmdir, c"/"), EBUSY);
    err(sys!(SYS_rmdir, bad()), EFAULT);
    ok(sys!(SYS_symlink, c"d", t.path("l")));
    err(sys!(SYS_rmdir, t.path("l")), ENOTDIR);
}

fn unlink_basic() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    ok(sys!(SYS_symlink, c"f", t.path("l")));
    eq(sys!(SYS_unlink, t.path("l")), 0);
    check(exists(&t, "f"), "the target stays");
    eq(sys!(SYS_unlink, t.path("f")), 0);
    check(!exists(&t, "f"), "gone");
}

fn unlink_open_file() {
    let t = Tmp::new();
    let fd = t.file("f", b"abc");
    ok(sys!(SYS_unlink, t.path("f")));
    eq(stat_fd(fd).st_nlink, 0);
    eq(sys!(SYS_write, fd, b"xy", 2), 2);
    let mut b = [0u8; 4];
    eq(sys!(SYS_pread64, fd, &mut b, 4, 0), 3);
    eq(&b[..3], b"xyc");
    // A new file of the name is another file.
    let n = t.file("f", b"");
    check(stat_fd(n).st_ino != stat_fd(fd).st_ino, "another inode");
    shut([fd, n]);
}

fn unlink_errors() {
    let t = Tmp::new();
    mkdir_in(&t, "d");
    shut([t.file("f", b"")]);
    err(sys!(SYS_unlink, t.path("d")), EISDIR);
    err(sys!(SYS_unlink, t.path("no")), ENOENT);
    err(sys!(SYS_unlink, t.path("f/x")), ENOTDIR);
    err(sys!(SYS_unlink, t.path("f/")), ENOTDIR);
    err(sys!(SYS_unlink, c""), ENOENT);
    err(sys!(SYS_unlink, bad()), EFAULT);
    err(sys!(SYS_unlink, c"/"), EISDIR);
}

fn unlinkat_flags() {
    let t = Tmp::new();
    mkdir_in(&t, "d");
    shut([t.file("f", b"")]);
    let d = ok(t.open("", O_RDONLY)) as i32;
    err(sys!(SYS_unlinkat, d, c"d", 0), EISDIR);
    err(sys!(SYS_unlinkat, d, c"f", AT_REMOVEDIR), ENOTDIR);
    err(sys!(SYS_unlinkat, d, c"f", 1), EINVAL);
    err(sys!(SYS_unlinkat, -1, c"f", 0), EBADF);
    eq(sys!(SYS_unlinkat, d, c"d", AT_REMOVEDIR), 0);
    eq(sys!(SYS_unlinkat, d, c"f", 0), 0);
    shut([d]);
}

fn rename_basic() {
    let t = Tmp::new();
    shut([t.file("a", b"abc")]);
    mkdir_in(&t, "d");
    eq(sys!(SYS_rename, t.path("a"), t.path("d/b")), 0);
    check(!exists(&t, "a"), "old name gone");
    eq(t.read("d/b"), b"abc");
    ok(sys!(SYS_symlink, c"x", t.path("l")));
    eq(sys!(SYS_rename, t.path("l"), t.path("m")), 0);
    check(exists(&t, "m"), "the link itself moves");
}

fn rename_replaces() {
    let t = Tmp::new();
    shut([t.file("a", b"new")]);
    let old = t.file("b", b"old");
    eq(sys!(SYS_rename, t.path("a"), t.path("b")), 0);
    eq(t.read("b"), b"new");
    eq(stat_fd(old).st_nlink, 0);
    let mut b = [0u8; 3];
    eq(sys!(SYS_pread64, old, &mut b, 3, 0), 3);
    eq(&b, b"old");
    shut([old]);
}

fn rename_directory() {
    let t = Tmp::new();
    mkdir_in(&t, "d");
    shut([t.file("d/f", b"abc")]);
    let d = ok(t.open("d", O_RDONLY)) as i32;
    eq(sys!(SYS_rename, t.path("d"), t.path("e")), 0);
    eq(t.read("e/f"), b"abc");
    // A descriptor moves with its directory.
    eq(sys!(SYS_faccessat, d, c"f", F_OK), 0);
    shut([d]);
}

fn rename_directory_over() {
    let t = Tmp::new();
    mkdir_in(&t, "d");
    mkdir_in(&t, "empty");
    mkdir_in(&t, "full");
    shut([t.file("full/x", b""), t.file("d/y", b""), t.file("f", b"")]);
    err(sys!(SYS_rename, t.path("d"), t.path("full")), ENOTEMPTY);
    err(sys!(SYS_rename, t.path("d"), t.path("f")), ENOTDIR);
    err(sys!(SYS_rename, t.path("f"), t.path("d")), EISDIR);
    eq(sys!(SYS_rename, t.path("d"), t.path("empty")), 0);
    check(exists(&t, "empty/y") && !exists(&t, "d"), "moved over the empty one");
}

fn rename_errors() {
    let t = Tmp::new();
    mkdir_in(&t, "d");
    shut([t.file("f", b"")]);
    err(sys!(SYS_rename, t.path("no"), t.path("x")), ENOENT);
    err(sys!(SYS_rename, t.path("f"), t.path("no/x")), ENOENT);
    err(sys!(SYS_rename, t.path("f"), t.path("f/x")), ENOTDIR);
    err(sys!(SYS_rename, t.path("d"), t.path("d/sub")), EINVAL);
    err(sys!(SYS_rename, t.path("d/sub"), t.path("d")), ENOENT);
    err(sys!(SYS_rename, bad(), t.path("x")), EFAULT);
    err(sys!(SYS_rename, t.path("f"), bad()), EFAULT);
    err(sys!(SYS_renameat, -1, c"a", -1, c"b"), EBADF);
    err(sys!(SYS_rename, t.path("f"), c"/proc/x"), EXDEV);
    err(sys!(SYS_rename, t.path("f/"), t.path("x")), ENOTDIR);
    err(sys!(SYS_rename, t.path("f"), t.path("x/")), ENOTDIR);
}

fn rename_same_file() {
    let t = Tmp::new();
    shut([t.file("f", b"x")]);
    ok(sys!(SYS_link, t.path("f"), t.path("g")));
    // Two names of one inode: nothing happens.
    eq(sys!(SYS_rename, t.path("f"), t.path("g")), 0);
    check(exists(&t, "f") && exists(&t, "g"), "both names stay");
    eq(sys!(SYS_rename, t.path("f"), t.path("f")), 0);
}

fn rename_dots() {
    let t = Tmp::new();
    mkdir_in(&t, "d");
    err(sys!(SYS_rename, t.path("d/."), t.path("e")), EBUSY);
    err(sys!(SYS_rename, t.path("d/.."), t.path("e")), EBUSY);
    err(sys!(SYS_rename, t.path("d"), t.path("d/.")), EBUSY);
}

fn rename_open_file_keeps() {
    let t = Tmp::new();
    let fd = t.file("f", b"abc");
    ok(sys!(SYS_rename, t.path("f"), t.path("g")));
    eq(sys!(SYS_pwrite64, fd, b"X", 1, 0), 1);
    eq(t.read("g"), b"Xbc");
    shut([fd]);
}

fn renameat2_noreplace() {
    let t = Tmp::new();
    shut([t.file("a", b"a"), t.file("b", b"b")]);
    err(sys!(SYS_renameat2, AT_FDCWD, t.path("a"), AT_FDCWD, t.path("b"), RENAME_NOREPLACE), EEXIST);
    eq(sys!(SYS_renameat2, AT_FDCWD, t.path("a"), AT_FDCWD, t.path("c"), RENAME_NOREPLACE), 0);
    check(!exists(&t, "a") && exists(&t, "c"), "moved");
}

fn renameat2_exchange() {
    let t = Tmp::new();
    shut([t.file("a", b"a")]);
    mkdir_in(&t, "d");
    eq(sys!(SYS_renameat2, AT_FDCWD, t.path("a"), AT_FDCWD, t.path("d"), RENAME_EXCHANGE), 0);
    eq(mode(&t, "a") & S_IFMT, S_IFDIR);
    eq(t.read("d"), b"a");
    err(sys!(SYS_renameat2, AT_FDCWD, t.path("a"), AT_FDCWD, t.path("no"), RENAME_EXCHANGE), ENOENT);
}

fn renameat2_errors() {
    let t = Tmp::new();
    shut([t.file("a", b"a")]);
    let f = RENAME_NOREPLACE | RENAME_EXCHANGE;
    err(sys!(SYS_renameat2, AT_FDCWD, t.path("a"), AT_FDCWD, t.path("b"), f), EINVAL);
    err(sys!(SYS_renameat2, AT_FDCWD, t.path("a"), AT_FDCWD, t.path("b"), 0x80), EINVAL);
}

fn link_errors() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    err(sys!(SYS_link, t.path("no"), t.path("x")), ENOENT);
    err(sys!(SYS_link, t.path("f"), t.path("f")), EEXIST);
    err(sys!(SYS_link, t.path("f"), t.path("no/x")), ENOENT);
    err(sys!(SYS_link, t.path("f/x"), t.path("g")), ENOTDIR);
    err(sys!(SYS_link, bad(), t.path("g")), EFAULT);
    err(sys!(SYS_link, t.path("f"), bad()), EFAULT);
    err(sys!(SYS_linkat, AT_FDCWD, t.path("f"), AT_FDCWD, t.path("g"), 0x8000), EINVAL);
    err(sys!(SYS_linkat, -1, c"f", AT_FDCWD, t.path("g"), 0), EBADF);
}

fn link_of_symlink() {
    let t = Tmp::new();
    shut([t.file("f", b"abc")]);
    ok(sys!(SYS_symlink, c"f", t.path("l")));
    // link(2) links the symbolic link itself.
    eq(sys!(SYS_link, t.path("l"), t.path("m")), 0);
    eq(mode(&t, "m") & S_IFMT, S_IFLNK);
    eq(sys!(SYS_linkat, AT_FDCWD, t.path("l"), AT_FDCWD, t.path("n"), AT_SYMLINK_FOLLOW), 0);
    eq(mode(&t, "n") & S_IFMT, S_IFREG);
}

fn link_directory() {
    let t = Tmp::new();
    mkdir_in(&t, "d");
    err(sys!(SYS_link, t.path("d"), t.path("e")), EPERM);
}

fn symlink_errors() {
    let t = Tmp::new();
    err(sys!(SYS_symlink, c"", t.path("l")), ENOENT);
    err(sys!(SYS_symlink, c"x", t.path("")), EEXIST);
    err(sys!(SYS_symlink, c"x", t.path("no/l")), ENOENT);
    err(sys!(SYS_symlink, bad(), t.path("l")), EFAULT);
    err(sys!(SYS_symlink, c"x", bad()), EFAULT);
    err(sys!(SYS_symlink, cstr("x".repeat(4096)), t.path("l")), ENAMETOOLONG);
    err(sys!(SYS_symlinkat, c"x", -1, c"l"), EBADF);
}

fn readlink_basic() {
    let t = Tmp::new();
    ok(sys!(SYS_symlink, c"some/where", t.path("l")));
    let mut b = [b'#'; 16];
    eq(sys!(SYS_readlink, t.path("l"), &mut b, 16), 10);
    eq(&b[..11], b"some/where#");
    // A short buffer cuts silently.
    eq(sys!(SYS_readlinkat, AT_FDCWD, t.path("l"), &mut b, 4), 4);
    let long = "y".repeat(4000);
    ok(sys!(SYS_symlink, cstr(long.clone()), t.path("m")));
    let mut b = vec![0u8; 5000];
    eq(sys!(SYS_readlink, t.path("m"), &mut b[..], 5000), 4000);
    eq(&b[..4000], long.as_bytes());
}

fn readlink_errors() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    ok(sys!(SYS_symlink, c"x", t.path("l")));
    let mut b = [0u8; 8];
    err(sys!(SYS_readlink, t.path("f"), &mut b, 8), EINVAL);
    err(sys!(SYS_readlink, t.path("no"), &mut b, 8), ENOENT);
    err(sys!(SYS_readlink, t.path("l"), &mut b, 0), EINVAL);
    err(sys!(SYS_readlink, c"", &mut b, 8), ENOENT);
    err(sys!(SYS_readlink, t.path("l"), &mut b, -1), EINVAL);
    err(sys!(SYS_readlink, t.path("l"), bad(), 8), EFAULT);
    err(sys!(SYS_readlink, bad(), &mut b, 8), EFAULT);
    err(sys!(SYS_readlinkat, -1, c"l", &mut b, 8), EBADF);
}

fn mknod_kinds() {
    let t = Tmp::new();
    ok(sys!(SYS_mknod, t.path("p"), S_IFIFO | 0o600, 0));
    eq(mode(&t, "p") & S_IFMT, S_IFIFO);
    ok(sys!(SYS_mknod, t.path("s"), S_IFSOCK | 0o600, 0));
    ok(sys!(SYS_mknod, t.path("r"), S_IFREG | 0o600, 0));
    ok(sys!(SYS_mknod, t.path("z"), 0o600, 0));
    eq(mode(&t, "z") & S_IFMT, S_IFREG);
    err(sys!(SYS_mknod, t.path("z"), S_IFREG | 0o600, 0), EEXIST);
    err(sys!(SYS_mknod, t.path("d"), S_IFDIR | 0o600, 0), EPERM);
    err(sys!(SYS_mknod, t.path("x"), 0o170_000, 0), EINVAL);
}

fn parent_times_change() {
    let t = Tmp::new();
    let d = ok(t.open("", O_RDONLY)) as i32;
    ok(sys!(SYS_utimensat, d, 0, &[5i64, 0, 5, 0], 0));
    shut([t.file("f", b"")]);
    check(stat_fd(d).st_mtime > 5, "create changes the directory's mtime");
    ok(sys!(SYS_utimensat, d, 0, &[5i64, 0, 5, 0], 0));
    ok(sys!(SYS_unlink, t.path("f")));
    check(stat_fd(d).st_mtime > 5, "unlink changes the directory's mtime");
    shut([d]);
}

fn nlink_of_directories() {
    let t = Tmp::new();
    mkdir_in(&t, "d");
    let d = ok(t.open("d", O_RDONLY)) as i32;
    ok(sys!(SYS_rmdir, t.path("d")));
    // A removed directory is empty and takes nothing new.
    eq(stat_fd(d).st_nlink, 0);
    err(sys!(SYS_openat, d, c"x", O_RDWR | O_CREAT, 0o600), ENOENT);
    shut([d]);
}

fn name_bytes() {
    let t = Tmp::new();
    // Any byte but NUL and slash is a name.
    let name = cstr([t.dir().as_bytes(), b"/a\n \xff\xfe*"].concat());
    shut([ok(sys!(SYS_openat, AT_FDCWD, name, O_RDWR | O_CREAT, 0o600)) as i32]);
    eq(sys!(SYS_access, name, F_OK), 0);
    eq(sys!(SYS_unlink, name), 0);
}
