//! open_tree(2), move_mount(2), fsopen(2), fsconfig(2), fsmount(2), fspick(2), mount_setattr(2), statmount(2), listmount(2).

use guest_tests::space::{alone, info, mount, umount};
use guest_tests::*;
use libc::*;
use std::ffi::CStr;

cases![
    fsopen_tmpfs, fsopen_errors, fsconfig_errors, fsconfig_phases, fsmount_errors, fspick_reconfigures, fspick_errors, open_tree_clone,
    open_tree_plain, open_tree_errors, loose_tree_goes, move_mount_errors, setattr_flags, setattr_recursive, setattr_errors,
    setattr_loose, statmount_fields, listmount_order, statmount_errors
];

const CLONE: i32 = 1;
const RECURSIVE: i32 = 0x8000;
const EMPTY_FROM: i32 = 4;
const SET_FLAG: i32 = 0;
const SET_STRING: i32 = 1;
const CREATE: i32 = 6;
const RECONFIGURE: i32 = 7;

#[track_caller]
fn on_tmpfs(f: impl FnOnce(&str)) {
    let t = Tmp::new();
    alone(|| {
        ok(mount("none", t.dir(), Some("tmpfs"), 0));
        f(t.dir());
    });
}

#[track_caller]
fn dir(path: &str) {
    ok(sys!(SYS_mkdir, cstr(path), 0o755));
}

fn exists(path: &str) -> bool {
    sys!(SYS_faccessat, AT_FDCWD, cstr(path), F_OK) == 0
}

fn create(path: &str) -> i64 {
    sys!(SYS_openat, AT_FDCWD, cstr(path), O_RDWR | O_CREAT, 0o644)
}

fn set(fd: i64, key: &CStr, value: &CStr) -> i64 {
    sys!(SYS_fsconfig, fd, SET_STRING, key, value, 0)
}

fn place(fd: i64, to: &str) -> i64 {
    sys!(SYS_move_mount, fd, c"", AT_FDCWD, cstr(to), EMPTY_FROM)
}

/// A tmpfs that is mounted nowhere.
#[track_caller]
fn loose() -> i64 {
    let fs = ok(sys!(SYS_fsopen, c"tmpfs", 1));
    ok(sys!(SYS_fsconfig, fs, CREATE, 0, 0, 0));
    let fd = ok(sys!(SYS_fsmount, fs, 1, 0));
    shut([fs as i32]);
    fd
}

fn fsopen_tmpfs() {
    on_tmpfs(|d| {
        dir(&format!("{d}/m"));
        let m = format!("{d}/m");
        let fs = ok(sys!(SYS_fsopen, c"tmpfs", 1));
        ok(set(fs, c"source", c"here"));
        ok(set(fs, c"size", c"64k"));
        ok(set(fs, c"mode", c"0711"));
        ok(sys!(SYS_fsconfig, fs, CREATE, 0, 0, 0));
        let fd = ok(sys!(SYS_fsmount, fs, 1, 0x2 | 0x8 | 0x10));
        ok(sys!(SYS_mkdirat, fd, c"early", 0o755));
        check(!exists(&format!("{m}/early")), "not there yet");
        ok(place(fd, &m));
        check(exists(&format!("{m}/early")), "there now");
        let fields = info(&m).expect("in mountinfo").join(" ");
        check(fields.contains(" rw,nosuid,noexec,noatime ") && fields.contains("tmpfs here rw,size=64k,mode=711"), &fields);
        let mut link = [0u8; 64];
        let n = ok(sys!(SYS_readlink, cstr(format!("/proc/self/fd/{fs}")), &mut link, 64)) as usize;
        eq(&link[..n], &b"anon_inode:[fscontext]"[..]);
        // No message.
        err(sys!(SYS_read, fs, &mut link, 64), ENODATA);
    });
}

fn fsopen_errors() {
    on_tmpfs(|_| {
        err(sys!(SYS_fsopen, c"nosuchfs", 0), ENODEV);
        err(sys!(SYS_fsopen, c"tmpfs", 2), EINVAL);
        err(sys!(SYS_fsopen, bad(), 0), EFAULT);
    });
    in_child(|| {
        if sys!(SYS_geteuid) == 0 {
            ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        }
        err(sys!(SYS_fsopen, c"tmpfs", 0), EPERM);
        err(sys!(SYS_fsmount, -1, 0, 0), EPERM);
        err(sys!(SYS_fspick, AT_FDCWD, c"/", 0), EPERM);
        err(sys!(SYS_move_mount, -1, c"", -1, c"", 0), EPERM);
        err(sys!(SYS_open_tree, AT_FDCWD, c"/", CLONE), EPERM);
        shut([ok(sys!(SYS_open_tree, AT_FDCWD, c"/", 0)) as i32]);
        err(sys!(SYS_mount_setattr, AT_FDCWD, c"/", 0, &[1u64, 0, 0, 0], 32), EPERM);
    });
}

fn fsconfig_errors() {
    on_tmpfs(|_| {
        let fs = ok(sys!(SYS_fsopen, c"tmpfs", 1));
        err(sys!(SYS_fsconfig, -1, SET_STRING, c"a", c"b", 0), EINVAL);
        err(sys!(SYS_fsconfig, 999, SET_STRING, c"a", c"b", 0), EBADF);
        err(sys!(SYS_fsconfig, 0, SET_STRING, c"a", c"b", 0), EINVAL);
        err(sys!(SYS_fsconfig, fs, 99, 0, 0, 0), EOPNOTSUPP);
        err(sys!(SYS_fsconfig, fs, SET_FLAG, 0, 0, 0), EINVAL);
        err(sys!(SYS_fsconfig, fs, SET_FLAG, c"ro", c"x", 0), EINVAL);
        err(sys!(SYS_fsconfig, fs, SET_STRING, c"size", 0, 0), EINVAL);
        err(sys!(SYS_fsconfig, fs, SET_STRING, c"size", c"1k", 1), EINVAL);
        err(sys!(SYS_fsconfig, fs, CREATE, c"x", 0, 0), EINVAL);
        err(set(fs, c"nonsense", c"1"), EINVAL);
        err(set(fs, c"size", c"x"), EINVAL);
        err(sys!(SYS_fsconfig, fs, SET_STRING, bad(), c"1", 0), EFAULT);
        err(set(fs, cstr("k".repeat(300)), c"1"), EINVAL);
        ok(set(fs, c"source", c"one"));
        err(set(fs, c"source", c"two"), EINVAL);
        ok(sys!(SYS_fsconfig, fs, SET_FLAG, c"ro", 0, 0));
    });
}

fn fsconfig_phases() {
    on_tmpfs(|_| {
        let fs = ok(sys!(SYS_fsopen, c"tmpfs", 1));
        err(sys!(SYS_fsmount, fs, 0, 0), EINVAL);
        err(sys!(SYS_fsconfig, fs, RECONFIGURE, 0, 0, 0), EBUSY);
        ok(sys!(SYS_fsconfig, fs, CREATE, 0, 0, 0));
        err(sys!(SYS_fsconfig, fs, CREATE, 0, 0, 0), EBUSY);
        err(set(fs, c"size", c"1k"), EBUSY);
        let fd = ok(sys!(SYS_fsmount, fs, 0, 0));
        err(sys!(SYS_fsmount, fs, 0, 0), EBUSY);
        shut([fd as i32, fs as i32]);
    });
}

fn fsmount_errors() {
    on_tmpfs(|_| {
        let fs = ok(sys!(SYS_fsopen, c"tmpfs", 1));
        ok(sys!(SYS_fsconfig, fs, CREATE, 0, 0, 0));
        err(sys!(SYS_fsmount, fs, 2, 0), EINVAL);
        err(sys!(SYS_fsmount, fs, 0, 0x100), EINVAL);
        err(sys!(SYS_fsmount, fs, 0, 0x30), EINVAL);
        err(sys!(SYS_fsmount, 0, 0, 0), EINVAL);
        err(sys!(SYS_fsmount, -1, 0, 0), EBADF);
    });
}

fn fspick_reconfigures() {
    on_tmpfs(|d| {
        let fs = ok(sys!(SYS_fspick, AT_FDCWD, cstr(d), 1));
        ok(set(fs, c"size", c"32k"));
        ok(sys!(SYS_fsconfig, fs, RECONFIGURE, 0, 0, 0));
        check(info(d).expect("there").join(" ").contains("size=32k"), "new size");
        ok(sys!(SYS_fsconfig, fs, SET_FLAG, c"ro", 0, 0));
        ok(sys!(SYS_fsconfig, fs, RECONFIGURE, 0, 0, 0));
        err(create(&format!("{d}/f")), EROFS);
    });
}

fn fspick_errors() {
    on_tmpfs(|d| {
        dir(&format!("{d}/m"));
        err(sys!(SYS_fspick, AT_FDCWD, cstr(format!("{d}/m")), 0), EINVAL);
        err(sys!(SYS_fspick, AT_FDCWD, cstr(d), 0x10), EINVAL);
        err(sys!(SYS_fspick, AT_FDCWD, cstr(format!("{d}/no")), 0), ENOENT);
    });
}

fn open_tree_clone() {
    on_tmpfs(|d| {
        for name in ["a", "a/in", "b"] {
            dir(&format!("{d}/{name}"));
        }
        ok(mount("none", &format!("{d}/a/in"), Some("tmpfs"), 0));
        shut([ok(create(&format!("{d}/a/in/f"))) as i32]);
        let one = ok(sys!(SYS_open_tree, AT_FDCWD, cstr(format!("{d}/a")), CLONE));
        err(sys!(SYS_faccessat, one, c"in/f", F_OK), ENOENT);
        let all = ok(sys!(SYS_open_tree, AT_FDCWD, cstr(format!("{d}/a")), CLONE | RECURSIVE | O_CLOEXEC));
        eq(sys!(SYS_fcntl, all, F_GETFD), FD_CLOEXEC.into());
        ok(sys!(SYS_faccessat, all, c"in/f", F_OK));
        // `..` from there is nowhere.
        eq(stat_fd(ok(sys!(SYS_openat, all, c"..", O_PATH))).st_ino, stat_fd(all).st_ino);
        ok(place(all, &format!("{d}/b")));
        check(exists(&format!("{d}/b/in/f")), "mounted");
        // Moved: it is no longer loose, and moves like any other.
        dir(&format!("{d}/c"));
        ok(place(all, &format!("{d}/c")));
        check(exists(&format!("{d}/c/in/f")) && !exists(&format!("{d}/b/in")), "moved on");
    });
}

fn open_tree_plain() {
    on_tmpfs(|d| {
        dir(&format!("{d}/a"));
        let fd = ok(sys!(SYS_open_tree, AT_FDCWD, cstr(format!("{d}/a")), 0));
        eq(sys!(SYS_fcntl, fd, F_GETFL) & i64::from(O_PATH), i64::from(O_PATH));
        err(sys!(SYS_getdents64, fd, &mut [0u8; 64], 64), EBADF);
        let again = ok(sys!(SYS_open_tree, fd, c"", AT_EMPTY_PATH));
        eq(stat_fd(again).st_ino, stat_fd(fd).st_ino);
    });
}

fn open_tree_errors() {
    on_tmpfs(|d| {
        err(sys!(SYS_open_tree, AT_FDCWD, cstr(d), RECURSIVE), EINVAL);
        err(sys!(SYS_open_tree, AT_FDCWD, cstr(d), 0x2), EINVAL);
        err(sys!(SYS_open_tree, AT_FDCWD, cstr(format!("{d}/no")), CLONE), ENOENT);
        err(sys!(SYS_open_tree, -1, c"x", CLONE), EBADF);
        ok(mount("", d, None, MS_UNBINDABLE));
        err(sys!(SYS_open_tree, AT_FDCWD, cstr(d), CLONE), EINVAL);
    });
}

fn loose_tree_goes() {
    on_tmpfs(|d| {
        let fd = loose();
        ok(sys!(SYS_mkdirat, fd, c"x", 0o755));
        let inside = ok(sys!(SYS_openat, fd, c"x", O_RDONLY | O_DIRECTORY));
        shut([fd as i32]);
        // Who has something of it goes on with that.
        ok(sys!(SYS_mkdirat, inside, c"y", 0o755));
        dir(&format!("{d}/m"));
        err(place(inside, &format!("{d}/m")), EINVAL);
    });
}

fn move_mount_errors() {
    on_tmpfs(|d| {
        dir(&format!("{d}/m"));
        let m = format!("{d}/m");
        let fd = loose();
        err(sys!(SYS_move_mount, fd, c"", AT_FDCWD, cstr(m.clone()), 0x8), EINVAL);
        err(sys!(SYS_move_mount, fd, c"", AT_FDCWD, cstr(m.clone()), 0), ENOENT);
        err(sys!(SYS_move_mount, AT_FDCWD, cstr(m.clone()), AT_FDCWD, cstr(m.clone()), 0), EINVAL);
        err(place(fd, &format!("{d}/no")), ENOENT);
        shut([ok(create(&format!("{d}/f"))) as i32]);
        err(place(fd, &format!("{d}/f")), EINVAL);
        let at = ok(sys!(SYS_openat, AT_FDCWD, cstr(m), O_PATH));
        ok(sys!(SYS_move_mount, fd, c"", at, c"", EMPTY_FROM | 0x40));
    });
}

fn setattr(path: &str, flags: i32, attr: [u64; 4]) -> i64 {
    sys!(SYS_mount_setattr, AT_FDCWD, cstr(path), flags, &attr, 32)
}

fn setattr_flags() {
    on_tmpfs(|d| {
        let shown = |set: u64, clear: u64| {
            ok(setattr(d, 0, [set, clear, 0, 0]));
            info(d).expect("there")[5].clone()
        };
        eq(shown(0x1 | 0x4, 0), "ro,nodev,relatime".to_owned());
        err(create(&format!("{d}/f")), EROFS);
        eq(shown(0x2, 0x1), "rw,nosuid,nodev,relatime".to_owned());
        eq(shown(0x10, 0x70), "rw,nosuid,nodev,noatime".to_owned());
        eq(shown(0x20 | 0x80, 0x70 | 0x6), "rw,nodiratime".to_owned());
        eq(shown(0x20_0000, 0x70), "rw,nodiratime,relatime,nosymfollow".to_owned());
        ok(setattr(d, 0, [0, 0, MS_SHARED, 0]));
        check(info(d).expect("there")[6].starts_with("shared:"), "shared");
    });
}

fn setattr_recursive() {
    on_tmpfs(|d| {
        let m = format!("{d}/m");
        dir(&m);
        ok(mount("none", &m, Some("tmpfs"), 0));
        ok(setattr(d, 0, [1, 0, 0, 0]));
        shut([ok(create(&format!("{m}/f"))) as i32]);
        let fd = ok(create(&format!("{m}/g"))) as i32;
        // One that is written: none changes.
        err(setattr(d, RECURSIVE, [1 | 8, 0, 0, 0]), EBUSY);
        eq(info(d).expect("there")[5].clone(), "ro,relatime".to_owned());
        shut([fd]);
        ok(setattr(d, RECURSIVE, [1, 0, MS_SLAVE, 0]));
        err(create(&format!("{m}/h")), EROFS);
    });
}

fn setattr_errors() {
    on_tmpfs(|d| {
        err(setattr(d, 0x10, [1, 0, 0, 0]), EINVAL);
        err(setattr(d, 0, [0x100, 0, 0, 0]), EINVAL);
        err(setattr(d, 0, [0, 0x10_0000, 0, 0]), EINVAL);
        err(setattr(d, 0, [0x10, 0, 0, 0]), EINVAL);
        err(setattr(d, 0, [0, 0x10, 0, 0]), EINVAL);
        err(setattr(d, 0, [0x30, 0x70, 0, 0]), EINVAL);
        err(setattr(d, 0, [0, 0, MS_SHARED | MS_PRIVATE, 0]), EINVAL);
        err(setattr(d, 0, [0, 0, MS_REC, 0]), EINVAL);
        err(sys!(SYS_mount_setattr, AT_FDCWD, cstr(d), 0, &[1u64; 4], 16), EINVAL);
        err(sys!(SYS_mount_setattr, AT_FDCWD, cstr(d), 0, &[1u64; 4], 5000), E2BIG);
        err(sys!(SYS_mount_setattr, AT_FDCWD, cstr(d), 0, &[0u64, 0, 0, 0, 1], 40), E2BIG);
        err(sys!(SYS_mount_setattr, AT_FDCWD, cstr(d), 0, bad(), 32), EFAULT);
        dir(&format!("{d}/m"));
        err(setattr(&format!("{d}/m"), 0, [1, 0, 0, 0]), EINVAL);
        // Nothing asked for: nothing looked at.
        ok(setattr(&format!("{d}/no"), 0, [0, 0, 0, 0]));
    });
}

fn setattr_loose() {
    on_tmpfs(|d| {
        let fd = loose();
        ok(sys!(SYS_mount_setattr, fd, c"", AT_EMPTY_PATH, &[1u64 | 4, 0, 0, 0], 32));
        dir(&format!("{d}/m"));
        ok(place(fd, &format!("{d}/m")));
        eq(info(&format!("{d}/m")).expect("there")[5].clone(), "ro,nodev,relatime".to_owned());
    });
}

const SYS_STATMOUNT: i64 = 457;
const SYS_LISTMOUNT: i64 = 458;

/// The number of the mount at `path` for statmount(2).
fn unique(path: &str) -> u64 {
    let mut s = [0u64; 32];
    ok(sys!(SYS_statx, AT_FDCWD, cstr(path), 0, 0x4000, &mut s));
    // stx_mask, then stx_mnt_id.
    if s[0] & 0x4000 == 0 {
        skip("no STATX_MNT_ID_UNIQUE");
    }
    s[18]
}

fn statmount_fields() {
    on_tmpfs(|d| {
        let m = format!("{d}/m");
        dir(&m);
        ok(guest_tests::space::mount_with("src", &m, Some("tmpfs"), MS_NOEXEC, Some("size=64k")));
        let id = unique(&m);
        let mut buf = vec![0u8; 4096];
        let req = [24u64, id, 0x1 | 0x2 | 0x8 | 0x10 | 0x20];
        ok(sys!(SYS_STATMOUNT, &req, &mut buf[..], buf.len(), 0));
        let word = |at: usize| u64::from_ne_bytes(buf[at..at + 8].try_into().expect("8"));
        let half = |at: usize| u32::from_ne_bytes(buf[at..at + 4].try_into().expect("4"));
        let string = |at: usize| {
            let from = 512 + half(at) as usize;
            let end = buf[from..].iter().position(|b| *b == 0).expect("a NUL");
            String::from_utf8_lossy(&buf[from..from + end]).into_owned()
        };
        eq(word(8), 0x1 | 0x2 | 0x8 | 0x10 | 0x20);
        eq(word(24), 0x0102_1994);
        eq(word(40), id);
        eq(word(48), unique(d));
        eq(half(56).to_string(), info(&m).expect("there")[0].clone());
        eq(word(64), 0x8);
        eq(word(72), MS_PRIVATE);
        eq((string(36), string(104), string(108)), ("tmpfs".to_owned(), "/".to_owned(), m.clone()));
        // A short buffer.
        err(sys!(SYS_STATMOUNT, &req, &mut buf[..], 520, 0), EOVERFLOW);
    });
}

fn listmount_order() {
    on_tmpfs(|d| {
        for name in ["a", "b", "c"] {
            dir(&format!("{d}/{name}"));
            ok(mount("none", &format!("{d}/{name}"), Some("tmpfs"), 0));
        }
        let want: Vec<u64> = ["a", "b", "c"].iter().map(|n| unique(&format!("{d}/{n}"))).collect();
        let mut ids = [0u64; 8];
        eq(ok(sys!(SYS_LISTMOUNT, &[24u64, unique(d), 0], &mut ids, 8, 0)), 3);
        eq(ids[..3].to_vec(), want.clone());
        // In parts.
        eq(ok(sys!(SYS_LISTMOUNT, &[24u64, unique(d), want[0]], &mut ids, 1, 0)), 1);
        eq(ids[0], want[1]);
        let all = ok(sys!(SYS_LISTMOUNT, &[24u64, u64::MAX, 0], &mut ids, 8, 0));
        check(all > 3, "below the root");
        ok(umount(&format!("{d}/b"), 0));
        eq(ok(sys!(SYS_LISTMOUNT, &[24u64, unique(d), 0], &mut ids, 8, 0)), 2);
    });
}

fn statmount_errors() {
    on_tmpfs(|d| {
        let mut buf = [0u64; 64];
        let id = unique(d);
        err(sys!(SYS_STATMOUNT, &[24u64, id, 1], &mut buf, 512, 1), EINVAL);
        err(sys!(SYS_STATMOUNT, &[16u64, id, 1], &mut buf, 512, 0), EINVAL);
        err(sys!(SYS_STATMOUNT, &[24u64, 1, 1], &mut buf, 512, 0), EINVAL);
        err(sys!(SYS_STATMOUNT, &[24u64, 1 << 62, 1], &mut buf, 512, 0), ENOENT);
        err(sys!(SYS_STATMOUNT, bad(), &mut buf, 512, 0), EFAULT);
        err(sys!(SYS_LISTMOUNT, &[24u64, id, 0], &mut buf, 64, 2), EINVAL);
        err(sys!(SYS_LISTMOUNT, &[24u64, id, 0], &mut buf, 2_000_000, 0), EOVERFLOW);
    });
}
