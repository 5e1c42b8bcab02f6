//! open(2), openat(2), creat(2): every flag, and what refuses.

use guest_tests::*;
use libc::*;

cases![
    missing, creates, excl, excl_on_symlink, truncates, truncate_read_only, directory_flag, write_to_directory, create_on_directory,
    nofollow, path_of_symlink, through_symlink, dangling_symlink_create, symlink_loop, too_long, component_not_directory, empty_path,
    trailing_slash, bad_pointer, bad_dirfd, relative_to_dirfd, absolute_ignores_dirfd, dirfd_not_directory, cloexec, nonblock,
    append_flag_shows, access_mode_three, lowest_free, umask_applies, special_bits, creat_call, tmpfile, tmpfile_linked, tmpfile_needs_write,
    no_permission, create_read_only_dir_mode, sync_flags_show, noatime_shows, direct_is_taken_or_einval, too_many_files, dup_slash_and_dots,
    proc_self_fd_reopen, dev_fd, path_flag_operations, openat2_basic, openat2_errors, openat2_resolve, openat2_cached, openat2_no_xdev,
    direct_kinds, excl_of_dots, listed_without_search, legacy_open_call, fifo_nonblock, socket_file,
    half_of_tmpfile
];

fn missing() {
    let t = Tmp::new();
    err(t.open("no", O_RDONLY), ENOENT);
    err(t.open("no/x", O_RDONLY | O_CREAT), ENOENT);
}

fn creates() {
    let t = Tmp::new();
    let fd = ok(t.open("f", O_RDWR | O_CREAT));
    let s = stat_fd(fd);
    eq(s.st_mode & S_IFMT, S_IFREG);
    eq(s.st_size, 0);
    eq(s.st_nlink, 1);
    eq(i64::from(s.st_uid), sys!(SYS_geteuid));
    // Opening again is no error and keeps the content.
    eq(sys!(SYS_write, fd, b"x", 1), 1);
    let again = ok(t.open("f", O_RDWR | O_CREAT));
    eq(stat_fd(again).st_size, 1);
    eq(stat_fd(again).st_ino, s.st_ino);
    shut([fd as i32, again as i32]);
}

fn excl() {
    let t = Tmp::new();
    let fd = ok(t.open("f", O_RDWR | O_CREAT | O_EXCL));
    err(t.open("f", O_RDWR | O_CREAT | O_EXCL), EEXIST);
    err(t.open("", O_RDONLY | O_CREAT | O_EXCL), EEXIST);
    ok(sys!(SYS_close, fd));
}

fn excl_on_symlink() {
    let t = Tmp::new();
    ok(sys!(SYS_symlinkat, c"nowhere", AT_FDCWD, t.path("l")));
    err(t.open("l", O_RDWR | O_CREAT | O_EXCL), EEXIST);
}

fn truncates() {
    let t = Tmp::new();
    shut([t.file("f", b"content")]);
    let fd = ok(t.open("f", O_WRONLY | O_TRUNC));
    eq(stat_fd(fd).st_size, 0);
    ok(sys!(SYS_close, fd));
}

fn truncate_read_only() {
    let t = Tmp::new();
    shut([t.file("f", b"content")]);
    // Unspecified by POSIX; Linux truncates.
    let fd = ok(t.open("f", O_RDONLY | O_TRUNC));
    eq(stat_fd(fd).st_size, 0);
    ok(sys!(SYS_close, fd));
}

fn directory_flag() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    err(t.open("f", O_RDONLY | O_DIRECTORY), ENOTDIR);
    let fd = ok(t.open("", O_RDONLY | O_DIRECTORY));
    ok(sys!(SYS_close, fd));
    err(t.open("x", O_RDONLY | O_DIRECTORY | O_CREAT), EINVAL);
    err(t.open("x", O_RDONLY), ENOENT);
}

fn write_to_directory() {
    let t = Tmp::new();
    err(t.open("", O_WRONLY), EISDIR);
    err(t.open("", O_RDWR), EISDIR);
    err(t.open("", O_RDWR | O_DIRECTORY), EISDIR);
}

fn create_on_directory() {
    let t = Tmp::new();
    err(t.open("", O_RDONLY | O_CREAT), EISDIR);
    err(t.open("", O_WRONLY | O_CREAT), EISDIR);
}

fn nofollow() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    ok(sys!(SYS_symlinkat, c"f", AT_FDCWD, t.path("l")));
    err(t.open("l", O_RDONLY | O_NOFOLLOW), ELOOP);
    err(t.open("l", O_RDONLY | O_NOFOLLOW | O_DIRECTORY), ENOTDIR);
    ok(sys!(SYS_mkdirat, AT_FDCWD, t.path("d"), 0o755));
    shut([t.file("d/g", b"")]);
    ok(sys!(SYS_symlinkat, c"d", AT_FDCWD, t.path("ld")));
    // Only the last component counts.
    let fd = ok(t.open("ld/g", O_RDONLY | O_NOFOLLOW));
    ok(sys!(SYS_close, fd));
}

fn path_of_symlink() {
    let t = Tmp::new();
    ok(sys!(SYS_symlinkat, c"f", AT_FDCWD, t.path("l")));
    let fd = ok(t.open("l", O_PATH | O_NOFOLLOW));
    eq(stat_fd(fd).st_mode & S_IFMT, S_IFLNK);
    let mut b = [0u8; 8];
    eq(sys!(SYS_readlinkat, fd, c"", &mut b, 8), 1);
    ok(sys!(SYS_close, fd));
}

fn through_symlink() {
    let t = Tmp::new();
    shut([t.file("f", b"abc")]);
    ok(sys!(SYS_symlinkat, c"f", AT_FDCWD, t.path("l")));
    ok(sys!(SYS_symlinkat, t.path("l"), AT_FDCWD, t.path("m")));
    let fd = ok(t.open("m", O_RDONLY));
    eq(stat_fd(fd).st_size, 3);
    ok(sys!(SYS_close, fd));
}

fn dangling_symlink_create() {
    let t = Tmp::new();
    ok(sys!(SYS_symlinkat, c"target", AT_FDCWD, t.path("l")));
    err(t.open("l", O_RDWR), ENOENT);
    let fd = ok(t.open("l", O_RDWR | O_CREAT));
    let other = ok(t.open("target", O_RDONLY));
    eq(stat_fd(fd).st_ino, stat_fd(other).st_ino);
    shut([fd as i32, other as i32]);
}

fn symlink_loop() {
    let t = Tmp::new();
    ok(sys!(SYS_symlinkat, c"b", AT_FDCWD, t.path("a")));
    ok(sys!(SYS_symlinkat, c"a", AT_FDCWD, t.path("b")));
    err(t.open("a", O_RDONLY), ELOOP);
    err(t.open("a/x", O_RDONLY), ELOOP);
    err(t.open("a", O_RDWR | O_CREAT), ELOOP);
}

fn too_long() {
    let t = Tmp::new();
    let name = "n".repeat(255);
    let fd = ok(t.open(&name, O_RDWR | O_CREAT));
    ok(sys!(SYS_close, fd));
    err(t.open(&"n".repeat(256), O_RDWR | O_CREAT), ENAMETOOLONG);
    err(t.open(&"n".repeat(256), O_RDONLY), ENAMETOOLONG);
    err(sys!(SYS_openat, AT_FDCWD, cstr("/".repeat(4096)), O_RDONLY, 0), ENAMETOOLONG);
    let fd = ok(sys!(SYS_openat, AT_FDCWD, cstr("/".repeat(4095)), O_RDONLY, 0));
    ok(sys!(SYS_close, fd));
}

fn component_not_directory() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    err(t.open("f/x", O_RDONLY), ENOTDIR);
    err(t.open("f/x", O_RDWR | O_CREAT), ENOTDIR);
    err(t.open("f/..", O_RDONLY), ENOTDIR);
    err(t.open("f/.", O_RDONLY), ENOTDIR);
}

fn empty_path() {
    err(sys!(SYS_openat, AT_FDCWD, c"", O_RDONLY, 0), ENOENT);
}

fn trailing_slash() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    err(t.open("f/", O_RDONLY), ENOTDIR);
    err(t.open("new/", O_RDWR | O_CREAT), EISDIR);
    let fd = ok(t.open("/", O_RDONLY));
    ok(sys!(SYS_close, fd));
}

fn bad_pointer() {
    err(sys!(SYS_openat, AT_FDCWD, bad(), O_RDONLY, 0), EFAULT);
    err(sys!(SYS_openat, AT_FDCWD, 0, O_RDONLY, 0), EFAULT);
    let g = Guarded::new();
    // A string that runs into the hole.
    let p = g.tail(4);
    unsafe { std::ptr::copy_nonoverlapping(b"/tmp".as_ptr(), p, 4) };
    err(sys!(SYS_openat, AT_FDCWD, p, O_RDONLY, 0), EFAULT);
    // One that ends right before it.
    let p = g.tail(5);
    unsafe { std::ptr::copy_nonoverlapping(c"/tmp".as_ptr().cast(), p, 5) };
    let fd = ok(sys!(SYS_openat, AT_FDCWD, p, O_RDONLY, 0));
    ok(sys!(SYS_close, fd));
}

fn bad_dirfd() {
    err(sys!(SYS_openat, -1, c"x", O_RDONLY, 0), EBADF);
    err(sys!(SYS_openat, 1_000_000, c"x", O_RDONLY, 0), EBADF);
}

fn relative_to_dirfd() {
    let t = Tmp::new();
    shut([t.file("f", b"abc")]);
    for flags in [O_RDONLY | O_DIRECTORY, O_PATH] {
        let d = ok(t.open("", flags));
        let fd = ok(sys!(SYS_openat, d, c"f", O_RDONLY, 0));
        eq(stat_fd(fd).st_size, 3);
        let up = ok(sys!(SYS_openat, d, c"..", O_RDONLY, 0));
        shut([fd as i32, d as i32, up as i32]);
    }
}

fn absolute_ignores_dirfd() {
    let fd = ok(sys!(SYS_openat, -1, c"/", O_RDONLY, 0));
    ok(sys!(SYS_close, fd));
}

fn dirfd_not_directory() {
    let t = Tmp::new();
    let f = t.file("f", b"");
    err(sys!(SYS_openat, f, c"x", O_RDONLY, 0), ENOTDIR);
    shut([f]);
}

fn cloexec() {
    let t = Tmp::new();
    let fd = ok(t.open("", O_RDONLY | O_CLOEXEC));
    eq(sys!(SYS_fcntl, fd, F_GETFD, 0), i64::from(FD_CLOEXEC));
    eq(sys!(SYS_fcntl, fd, F_GETFL, 0) & i64::from(O_CLOEXEC), 0);
    ok(sys!(SYS_close, fd));
    let fd = ok(t.open("", O_RDONLY));
    eq(sys!(SYS_fcntl, fd, F_GETFD, 0), 0);
    ok(sys!(SYS_close, fd));
}

fn nonblock() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    let fd = ok(t.open("f", O_RDONLY | O_NONBLOCK));
    eq(sys!(SYS_fcntl, fd, F_GETFL, 0) & i64::from(O_NONBLOCK), i64::from(O_NONBLOCK));
    ok(sys!(SYS_close, fd));
}

fn append_flag_shows() {
    let t = Tmp::new();
    let fd = ok(t.open("f", O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY));
    // Creation flags are not status flags.
    let want = i64::from(O_WRONLY | O_APPEND | O_LARGEFILE_KERNEL);
    eq(sys!(SYS_fcntl, fd, F_GETFL, 0), want);
    ok(sys!(SYS_close, fd));
}

/// The kernel sets it for every 64-bit open; libc has 0 for it.
const O_LARGEFILE_KERNEL: i32 = 0o100_000;

fn access_mode_three() {
    let t = Tmp::new();
    shut([t.file("f", b"ab")]);
    // Neither read nor write, but ioctl and stat.
    let fd = ok(t.open("f", 3));
    let mut b = [0u8; 2];
    err(sys!(SYS_read, fd, &mut b, 2), EBADF);
    err(sys!(SYS_write, fd, &b, 2), EBADF);
    eq(stat_fd(fd).st_size, 2);
    ok(sys!(SYS_close, fd));
}

fn lowest_free() {
    in_child(|| {
        let a = ok(sys!(SYS_openat, AT_FDCWD, c"/", O_RDONLY, 0));
        let b = ok(sys!(SYS_openat, AT_FDCWD, c"/", O_RDONLY, 0));
        let c = ok(sys!(SYS_openat, AT_FDCWD, c"/", O_RDONLY, 0));
        check(a < b && b < c, "ascending");
        ok(sys!(SYS_close, b));
        eq(ok(sys!(SYS_openat, AT_FDCWD, c"/", O_RDONLY, 0)), b);
        ok(sys!(SYS_close, 0));
        eq(ok(sys!(SYS_openat, AT_FDCWD, c"/", O_RDONLY, 0)), 0);
    });
}

fn mode_of(t: &Tmp, name: &str) -> u32 {
    let fd = ok(t.open(name, O_PATH));
    let m = stat_fd(fd).st_mode & 0o7777;
    ok(sys!(SYS_close, fd));
    m
}

fn umask_applies() {
    in_child(|| {
        let t = Tmp::new();
        sys!(SYS_umask, 0o027);
        let fd = ok(sys!(SYS_openat, AT_FDCWD, t.path("f"), O_RDWR | O_CREAT, 0o777));
        eq(mode_of(&t, "f"), 0o750);
        shut([fd as i32]);
    });
}

fn special_bits() {
    let t = Tmp::new();
    let fd = ok(sys!(SYS_openat, AT_FDCWD, t.path("f"), O_RDWR | O_CREAT, 0o17_1755));
    check(mode_of(&t, "f") & 0o1000 != 0, "sticky bit is kept, bits above 07777 are ignored");
    shut([fd as i32]);
}

fn creat_call() {
    let t = Tmp::new();
    shut([t.file("f", b"old")]);
    let fd = ok(sys!(SYS_creat, t.path("f"), 0o600));
    eq(stat_fd(fd).st_size, 0);
    eq(sys!(SYS_fcntl, fd, F_GETFL, 0) & i64::from(O_ACCMODE), i64::from(O_WRONLY));
    ok(sys!(SYS_close, fd));
}

fn tmpfile() {
    let t = Tmp::new();
    let r = t.open("", O_TMPFILE | O_RDWR);
    if r == -i64::from(EOPNOTSUPP) {
        skip("file system has no O_TMPFILE");
    }
    let fd = ok(r);
    eq(stat_fd(fd).st_nlink, 0);
    eq(sys!(SYS_write, fd, b"abc", 3), 3);
    eq(std::fs::read_dir(t.dir()).unwrap().count(), 0);
    ok(sys!(SYS_close, fd));
}

fn tmpfile_linked() {
    let t = Tmp::new();
    let r = t.open("", O_TMPFILE | O_RDWR);
    if r == -i64::from(EOPNOTSUPP) {
        skip("file system has no O_TMPFILE");
    }
    let fd = ok(r);
    eq(sys!(SYS_write, fd, b"abc", 3), 3);
    let from = cstr(format!("/proc/self/fd/{fd}"));
    ok(sys!(SYS_linkat, AT_FDCWD, from, AT_FDCWD, t.path("f"), AT_SYMLINK_FOLLOW));
    eq(t.read("f"), b"abc");
    eq(stat_fd(fd).st_nlink, 1);
    ok(sys!(SYS_close, fd));
}

fn tmpfile_needs_write() {
    let t = Tmp::new();
    err(t.open("", O_TMPFILE | O_RDONLY), EINVAL);
    shut([t.file("f", b"")]);
    err(t.open("f", O_TMPFILE | O_RDWR), ENOTDIR);
}

fn no_permission() {
    if sys!(SYS_geteuid) == 0 {
        skip("root reads everything");
    }
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    ok(sys!(SYS_fchmodat, AT_FDCWD, t.path("f"), 0o000));
    err(t.open("f", O_RDONLY), EACCES);
    err(t.open("f", O_WRONLY), EACCES);
    ok(sys!(SYS_mkdirat, AT_FDCWD, t.path("d"), 0o755));
    shut([t.file("d/g", b"")]);
    ok(sys!(SYS_fchmodat, AT_FDCWD, t.path("d"), 0o600));
    err(t.open("d/g", O_RDONLY), EACCES);
    ok(sys!(SYS_fchmodat, AT_FDCWD, t.path("d"), 0o500));
    err(t.open("d/h", O_RDWR | O_CREAT), EACCES);
    ok(sys!(SYS_fchmodat, AT_FDCWD, t.path("d"), 0o700));
}

fn create_read_only_dir_mode() {
    let t = Tmp::new();
    // The mode of a new file does not bind the descriptor that made it.
    let fd = ok(sys!(SYS_openat, AT_FDCWD, t.path("f"), O_RDWR | O_CREAT, 0o000));
    eq(sys!(SYS_write, fd, b"x", 1), 1);
    eq(mode_of(&t, "f"), 0);
    ok(sys!(SYS_close, fd));
}

fn sync_flags_show() {
    let t = Tmp::new();
    for flag in [O_SYNC, O_DSYNC] {
        let fd = ok(t.open("f", O_RDWR | O_CREAT | flag));
        eq(sys!(SYS_fcntl, fd, F_GETFL, 0) & i64::from(O_SYNC), i64::from(flag));
        eq(sys!(SYS_write, fd, b"x", 1), 1);
        ok(sys!(SYS_close, fd));
    }
}

fn noatime_shows() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    let fd = ok(t.open("f", O_RDONLY | O_NOATIME));
    eq(sys!(SYS_fcntl, fd, F_GETFL, 0) & i64::from(O_NOATIME), i64::from(O_NOATIME));
    ok(sys!(SYS_close, fd));
}

fn direct_is_taken_or_einval() {
    let t = Tmp::new();
    let r = t.open("f", O_RDWR | O_CREAT | O_DIRECT);
    if r < 0 {
        err(r, EINVAL);
    } else {
        eq(sys!(SYS_fcntl, r, F_GETFL, 0) & i64::from(O_DIRECT), i64::from(O_DIRECT));
        ok(sys!(SYS_close, r));
    }
}

fn too_many_files() {
    in_child(|| {
        ok(sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, &[20u64, 20], 0));
        let mut n = 0;
        let e = loop {
            let r = sys!(SYS_openat, AT_FDCWD, c"/", O_RDONLY, 0);
            if r < 0 {
                break r;
            }
            check(r < 20, "below the limit");
            n += 1;
            check(n < 30, "the limit ends it");
        };
        err(e, EMFILE);
        err(sys!(SYS_dup, 0), EMFILE);
        err(sys!(SYS_dup2, 0, 25), EBADF);
    });
}

fn dup_slash_and_dots() {
    let t = Tmp::new();
    shut([t.file("f", b"abc")]);
    let fd = ok(t.open(".//./f", O_RDONLY));
    ok(sys!(SYS_close, fd));
    // The root is its own parent.
    let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/../../..//.", O_RDONLY, 0));
    let root = ok(sys!(SYS_openat, AT_FDCWD, c"/", O_RDONLY, 0));
    eq(stat_fd(fd).st_ino, stat_fd(root).st_ino);
    shut([fd as i32, root as i32]);
}

fn proc_self_fd_reopen() {
    let t = Tmp::new();
    let fd = t.file("f", b"abc");
    ok(sys!(SYS_unlinkat, AT_FDCWD, t.path("f"), 0));
    let again = ok(sys!(SYS_openat, AT_FDCWD, cstr(format!("/proc/self/fd/{fd}")), O_RDONLY, 0));
    let mut b = [0u8; 4];
    eq(sys!(SYS_read, again, &mut b, 4), 3);
    // An own file description: its offset is its own.
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 0);
    shut([fd, again as i32]);
}

fn dev_fd() {
    let p = pipe_pair();
    let w = ok(sys!(SYS_openat, AT_FDCWD, cstr(format!("/dev/fd/{}", p[1])), O_WRONLY, 0));
    eq(sys!(SYS_write, w, b"hi", 2), 2);
    let mut b = [0u8; 4];
    eq(sys!(SYS_read, p[0], &mut b, 4), 2);
    shut([p[0], p[1], w as i32]);
}

fn path_flag_operations() {
    let t = Tmp::new();
    shut([t.file("f", b"abc")]);
    let fd = ok(t.open("f", O_PATH | O_RDWR | O_TRUNC | O_CREAT));
    eq(stat_fd(fd).st_size, 3);
    eq(sys!(SYS_fcntl, fd, F_GETFL, 0), i64::from(O_PATH));
    err(sys!(SYS_fchmod, fd, 0o600), EBADF);
    err(sys!(SYS_ftruncate, fd, 0), EBADF);
    err(sys!(SYS_ioctl, fd, FIONREAD, bad()), EBADF);
    err(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, fd, 0), EBADF);
    ok(sys!(SYS_close, fd));
    err(t.open("gone", O_PATH | O_CREAT), ENOENT);
}

const RESOLVE_NO_XDEV: u64 = 1;
const RESOLVE_NO_MAGICLINKS: u64 = 2;
const RESOLVE_NO_SYMLINKS: u64 = 4;
const RESOLVE_BENEATH: u64 = 8;
const RESOLVE_IN_ROOT: u64 = 16;
const RESOLVE_CACHED: u64 = 32;

fn open2(dir: i64, path: &std::ffi::CStr, flags: i32, mode: u64, resolve: u64) -> i64 {
    sys!(SYS_openat2, dir, path, &[flags as u64, mode, resolve], 24)
}

fn openat2_basic() {
    let t = Tmp::new();
    let fd = ok(open2(AT_FDCWD.into(), t.path("f"), O_RDWR | O_CREAT, 0o600, 0));
    eq(stat_fd(fd).st_mode & 0o777, 0o600);
    ok(sys!(SYS_close, fd));
}

fn openat2_errors() {
    let t = Tmp::new();
    let how = [0u64; 3];
    err(sys!(SYS_openat2, AT_FDCWD, t.path(""), &how, 16), EINVAL);
    err(sys!(SYS_openat2, AT_FDCWD, t.path(""), bad(), 24), EFAULT);
    // A longer struct is fine as long as the rest is zero.
    let fd = ok(sys!(SYS_openat2, AT_FDCWD, t.path(""), &[0u64; 4], 32));
    ok(sys!(SYS_close, fd));
    err(sys!(SYS_openat2, AT_FDCWD, t.path(""), &[0u64, 0, 0, 1], 32), E2BIG);
    let d = i64::from(AT_FDCWD);
    err(open2(d, t.path(""), O_RDONLY, 0o600, 0), EINVAL);
    err(open2(d, t.path("f"), O_RDWR | O_CREAT, 0o17_7777, 0), EINVAL);
    err(open2(d, t.path(""), 0x4000_0000, 0, 0), EINVAL);
    err(open2(d, t.path(""), O_RDONLY, 0, 1 << 20), EINVAL);
    err(open2(d, t.path(""), O_PATH | O_RDWR, 0, 0), EINVAL);
}

fn openat2_resolve() {
    let t = Tmp::new();
    ok(sys!(SYS_mkdirat, AT_FDCWD, t.path("d"), 0o755));
    shut([t.file("f", b""), t.file("d/g", b"")]);
    ok(sys!(SYS_symlinkat, c"../f", AT_FDCWD, t.path("d/up")));
    ok(sys!(SYS_symlinkat, c"/g", AT_FDCWD, t.path("d/abs")));
    ok(sys!(SYS_symlinkat, c"g", AT_FDCWD, t.path("d/in")));
    let d = ok(t.open("d", O_RDONLY));
    let mut opened = vec![d as i32];
    opened.push(ok(open2(d, c"in", O_RDONLY, 0, RESOLVE_BENEATH)) as i32);
    err(open2(d, c"in", O_RDONLY, 0, RESOLVE_NO_SYMLINKS), ELOOP);
    err(open2(d, c"up", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
    err(open2(d, c"..", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
    err(open2(d, c"/etc", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
    opened.push(ok(open2(d, c"abs", O_RDONLY, 0, RESOLVE_IN_ROOT)) as i32);
    opened.push(ok(open2(d, c"/g", O_RDONLY, 0, RESOLVE_IN_ROOT)) as i32);
    err(open2(d, c"up", O_RDONLY, 0, RESOLVE_IN_ROOT), ENOENT);
    let fd0 = cstr(format!("/proc/self/fd/{d}"));
    err(open2(AT_FDCWD.into(), fd0, O_RDONLY, 0, RESOLVE_NO_MAGICLINKS), ELOOP);
    err(open2(AT_FDCWD.into(), c"/proc/self/status", O_RDONLY, 0, RESOLVE_NO_XDEV), EXDEV);
    shut(opened);
}

/// Only what is known already, and nothing that changes something.
fn openat2_cached() {
    let t = Tmp::new();
    ok(sys!(SYS_mkdirat, AT_FDCWD, t.path("d"), 0o755));
    shut([t.file("d/g", b"abc")]);
    ok(sys!(SYS_symlinkat, c"d/g", AT_FDCWD, t.path("in")));
    let d = ok(t.open("", O_RDONLY));
    for path in [c"d/g", c"in", c"d/../d/g"] {
        shut([ok(open2(d, path, O_RDWR | O_APPEND, 0, RESOLVE_CACHED)) as i32]);
    }
    err(open2(d, c"in", O_RDONLY, 0, RESOLVE_CACHED | RESOLVE_NO_SYMLINKS), ELOOP);
    err(open2(d, c"d/g", O_RDWR | O_CREAT, 0o600, RESOLVE_CACHED), EAGAIN);
    err(open2(d, c"d/g", O_RDWR | O_TRUNC, 0, RESOLVE_CACHED), EAGAIN);
    err(open2(d, c"d", O_RDWR | O_TMPFILE, 0o600, RESOLVE_CACHED), EAGAIN);
    err(open2(d, c"never-looked-up", O_RDONLY, 0, RESOLVE_CACHED), EAGAIN);
    err(open2(d, c"d/g/x", O_RDONLY, 0, RESOLVE_CACHED), EAGAIN);
    err(open2(d, c"d/g/", O_RDONLY, 0, RESOLVE_CACHED), ENOTDIR);
    let g = ok(t.open("d/g", O_RDONLY));
    err(open2(g, c"x", O_RDONLY, 0, RESOLVE_CACHED), ENOTDIR);
    shut([g as i32]);
    // Whether it is remembered that a name is not there is the file system's affair.
    err(open2(d, c"not-there", O_RDONLY, 0, 0), ENOENT);
    let absent = open2(d, c"not-there", O_RDONLY, 0, RESOLVE_CACHED);
    eq(absent == -i64::from(ENOENT) || absent == -i64::from(EAGAIN), true);
    let file = ok(t.open("d/g", O_RDONLY));
    eq(stat_fd(file).st_size, 3);
    shut([file as i32]);
    shut([d as i32]);
}

fn legacy_open_call() {
    let t = Tmp::new();
    let fd = ok(sys!(SYS_open, t.path("f"), O_RDWR | O_CREAT, 0o600));
    ok(sys!(SYS_close, fd));
    err(sys!(SYS_open, t.path("nope"), O_RDONLY, 0), ENOENT);
}

fn fifo_nonblock() {
    let t = Tmp::new();
    ok(sys!(SYS_mknodat, AT_FDCWD, t.path("p"), S_IFIFO | 0o600, 0));
    err(t.open("p", O_WRONLY | O_NONBLOCK), ENXIO);
    let r = ok(t.open("p", O_RDONLY | O_NONBLOCK));
    let w = ok(t.open("p", O_WRONLY | O_NONBLOCK));
    eq(sys!(SYS_write, w, b"ab", 2), 2);
    let mut b = [0u8; 4];
    eq(sys!(SYS_read, r, &mut b, 4), 2);
    shut([r as i32, w as i32]);
}

fn socket_file() {
    let t = Tmp::new();
    ok(sys!(SYS_mknodat, AT_FDCWD, t.path("s"), S_IFSOCK | 0o600, 0));
    err(t.open("s", O_RDONLY), ENXIO);
    let fd = ok(t.open("s", O_PATH));
    eq(stat_fd(fd).st_mode & S_IFMT, S_IFSOCK);
    ok(sys!(SYS_close, fd));
}

/// An absolute link leads to the root's mount, of which the kernel knows only when something led there before.
fn openat2_no_xdev() {
    let t = Tmp::new();
    ok(sys!(SYS_mkdirat, AT_FDCWD, t.path("d"), 0o755));
    ok(sys!(SYS_symlinkat, c"/proc/version", AT_FDCWD, t.path("far")));
    ok(sys!(SYS_symlinkat, c"/", AT_FDCWD, t.path("d/root")));
    let d = ok(sys!(SYS_openat, AT_FDCWD, t.path(""), O_PATH));
    for path in [c"far", c"d/root", c"d/../d/../far"] {
        err(open2(d, path, O_PATH, 0, RESOLVE_NO_XDEV), EXDEV);
        shut([ok(open2(d, path, O_PATH, 0, 0)) as i32]);
    }
    shut([ok(open2(d, c"d/..", O_PATH, 0, RESOLVE_NO_XDEV)) as i32, d as i32]);
}

/// O_DIRECT is for regular files of file systems, and for pipes.
fn direct_kinds() {
    let t = Tmp::new();
    ok(sys!(SYS_mkdirat, AT_FDCWD, t.path("d"), 0o755));
    ok(sys!(SYS_mknodat, AT_FDCWD, t.path("ff"), S_IFIFO | 0o600, 0));
    for path in [t.path("d"), t.path("ff"), c"/dev/null", c"/dev/zero", c"/proc/self/status", c"/proc"] {
        err(sys!(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECT | O_NONBLOCK), EINVAL);
        let plain = ok(sys!(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NONBLOCK)) as i32;
        // What is a pipe once it is open takes packets.
        let want = if path == t.path("ff") { 0 } else { -i64::from(EINVAL) };
        eq(sys!(SYS_fcntl, plain, F_SETFL, O_DIRECT), want);
        shut([plain]);
        shut([ok(sys!(SYS_openat, AT_FDCWD, path, O_PATH | O_DIRECT)) as i32]);
    }
    let mut ends = [0i32; 2];
    ok(sys!(SYS_pipe2, &mut ends, 0));
    eq(sys!(SYS_fcntl, ends[0], F_SETFL, O_DIRECT), 0);
    shut(ends);
    let event = ok(sys!(SYS_eventfd2, 0, 0)) as i32;
    err(sys!(SYS_fcntl, event, F_SETFL, O_DIRECT), EINVAL);
    shut([event]);
}

fn excl_of_dots() {
    let t = Tmp::new();
    let d = ok(sys!(SYS_openat, AT_FDCWD, t.path(""), O_PATH));
    for path in [c".", c"..", c"/"] {
        err(sys!(SYS_openat, d, path, O_CREAT | O_EXCL, 0o600), EEXIST);
        err(sys!(SYS_openat, d, path, O_CREAT, 0o600), EISDIR);
    }
    // It says so later.
    let fd = ok(sys!(SYS_openat, d, c".", O_TMPFILE | O_RDWR, 0o600)) as i32;
    eq(sys!(SYS_fcntl, fd, F_GETFL) & i64::from(O_TMPFILE), i64::from(O_TMPFILE));
    shut([fd, d as i32]);
}

/// Who may read a directory but not search it may list it.
fn listed_without_search() {
    let t = Tmp::new();
    ok(sys!(SYS_mkdirat, AT_FDCWD, t.path("d"), 0o755));
    shut([t.file("d/f", b"")]);
    ok(sys!(SYS_chmod, t.path("d"), 0o444));
    let names: Vec<_> = std::fs::read_dir(t.path("d").to_str().expect("a name")).expect("list").flatten().collect();
    eq(names.len(), 1);
    ok(sys!(SYS_chmod, t.path("d"), 0o755));
}

/// The bit of O_TMPFILE that is not O_DIRECTORY means nothing alone, and is refused before the path is read.
fn half_of_tmpfile() {
    const ALONE: i32 = 0o20_000_000;
    let t = Tmp::new();
    shut([t.file("f", b"content")]);
    for flags in [ALONE | O_RDWR, ALONE, O_TMPFILE, ALONE | O_CREAT | O_RDWR, O_TMPFILE | O_CREAT | O_RDWR] {
        err(sys!(SYS_open, t.path("f"), flags, 0o600), EINVAL);
        err(sys!(SYS_openat, AT_FDCWD, t.path("no"), flags, 0o600), EINVAL);
        err(sys!(SYS_openat, AT_FDCWD, bad(), flags, 0o600), EINVAL);
        err(sys!(SYS_openat2, AT_FDCWD, bad(), &[flags as u64, 0, 0], 24), EINVAL);
        // RESOLVE_CACHED
        err(sys!(SYS_openat2, AT_FDCWD, bad(), &[flags as u64, 0, 0x20], 24), EINVAL);
    }
    err(sys!(SYS_openat, AT_FDCWD, bad(), O_CREAT | O_DIRECTORY, 0o600), EINVAL);
    // With O_PATH open(2) looks at few bits, and openat2(2) refuses the others.
    shut([ok(sys!(SYS_openat, AT_FDCWD, t.path("f"), ALONE | O_PATH)) as i32]);
    err(sys!(SYS_openat2, AT_FDCWD, t.path("f"), &[(ALONE | O_PATH) as u64, 0, 0], 24), EINVAL);
}
