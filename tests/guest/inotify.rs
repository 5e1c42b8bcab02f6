//! inotify(7).

use guest_tests::*;
use libc::*;

cases![
    inotify_masks, inotify_moves, inotify_self, inotify_open_close, inotify_overflow, dnotify
];

struct Ino(i32);

impl Ino {
    fn new() -> Ino {
        Ino(ok(sys!(SYS_inotify_init1, IN_NONBLOCK)) as i32)
    }
    fn add(&self, p: &std::ffi::CStr, mask: u32) -> i32 {
        ok(sys!(SYS_inotify_add_watch, self.0, p, mask)) as i32
    }
    /// What came: wd, mask, name.
    fn events(&self) -> Vec<(i32, u32, String)> {
        let mut b = vec![0u8; 8192];
        let mut out = Vec::new();
        loop {
            let n = sys!(SYS_read, self.0, &mut b[..], 8192);
            if n == -i64::from(EAGAIN) {
                return out;
            }
            let (mut at, n) = (0, ok(n) as usize);
            while at < n {
                let w = |i: usize| u32::from_ne_bytes(b[at + i..at + i + 4].try_into().unwrap());
                let len = w(12) as usize;
                let name = b[at + 16..at + 16 + len].split(|c| *c == 0).next().unwrap_or_default();
                out.push((w(0) as i32, w(4), String::from_utf8_lossy(name).into_owned()));
                at += 16 + len;
            }
        }
    }
    fn seen(&self) -> Vec<(u32, String)> {
        self.events().into_iter().map(|(_, m, n)| (m, n)).collect()
    }
}

impl Drop for Ino {
    fn drop(&mut self) {
        sys!(SYS_close, self.0);
    }
}

fn ev(list: &[(u32, &str)]) -> Vec<(u32, String)> {
    list.iter().map(|(m, n)| (*m, n.to_string())).collect()
}

fn inotify_masks() {
    let t = Tmp::new();
    let i = Ino::new();
    let wd = i.add(t.path(""), IN_ALL_EVENTS);
    let fd = t.file("f", b"abc");
    eq(i.seen(), ev(&[(IN_CREATE, "f"), (IN_OPEN, "f"), (IN_MODIFY, "f")]));
    eq(sys!(SYS_pread64, fd, &mut [0u8; 2], 2, 0), 2);
    eq(i.seen(), ev(&[(IN_ACCESS, "f")]));
    ok(sys!(SYS_fchmod, fd, 0o600));
    ok(sys!(SYS_ftruncate, fd, 1));
    eq(i.seen(), ev(&[(IN_ATTRIB, "f"), (IN_MODIFY, "f")]));
    ok(sys!(SYS_utimensat, fd, 0, 0, 0));
    eq(i.seen(), ev(&[(IN_ATTRIB, "f")]));
    shut([fd]);
    eq(i.seen(), ev(&[(IN_CLOSE_WRITE, "f")]));
    shut([ok(t.open("f", O_RDONLY)) as i32]);
    eq(i.seen(), ev(&[(IN_OPEN, "f"), (IN_CLOSE_NOWRITE, "f")]));
    ok(sys!(SYS_mkdir, t.path("d"), 0o700));
    ok(sys!(SYS_rmdir, t.path("d")));
    eq(i.seen(), ev(&[(IN_CREATE | IN_ISDIR, "d"), (IN_DELETE | IN_ISDIR, "d")]));
    ok(sys!(SYS_symlink, c"f", t.path("l")));
    ok(sys!(SYS_link, t.path("f"), t.path("h")));
    ok(sys!(SYS_mknod, t.path("p"), S_IFIFO | 0o600, 0));
    let got = i.seen();
    check(
        got.iter().filter(|e| e.0 == IN_CREATE).map(|e| e.1.as_str()).eq(["l", "h", "p"]),
        &format!("{got:?} has three new names"),
    );
    ok(sys!(SYS_unlink, t.path("p")));
    eq(i.seen(), ev(&[(IN_DELETE, "p")]));
    // Fewer events, and no more.
    eq(i.add(t.path(""), IN_DELETE), wd);
    shut([t.file("g", b"")]);
    ok(sys!(SYS_unlink, t.path("g")));
    eq(i.seen(), ev(&[(IN_DELETE, "g")]));
    eq(i.add(t.path(""), IN_CREATE | IN_MASK_ADD), wd);
    err(sys!(SYS_inotify_add_watch, i.0, t.path(""), IN_CREATE | IN_MASK_CREATE), EEXIST);
    err(sys!(SYS_inotify_add_watch, i.0, t.path(""), IN_CREATE | IN_MASK_CREATE | IN_MASK_ADD), EINVAL);
    err(sys!(SYS_inotify_add_watch, i.0, t.path(""), 0), EINVAL);
    err(sys!(SYS_inotify_add_watch, i.0, t.path("f"), IN_OPEN | IN_ONLYDIR), ENOTDIR);
    err(sys!(SYS_inotify_add_watch, i.0, t.path("none"), IN_OPEN), ENOENT);
    err(sys!(SYS_inotify_add_watch, 0, t.path("f"), IN_OPEN), EINVAL);
    err(sys!(SYS_inotify_add_watch, 9999, t.path("f"), IN_OPEN), EBADF);
    err(sys!(SYS_inotify_rm_watch, i.0, 77), EINVAL);
    eq(i.seen(), ev(&[]));
    ok(sys!(SYS_inotify_rm_watch, i.0, wd));
    eq(i.events(), [(wd, IN_IGNORED, String::new())]);
}

/// Events that nobody reads are not kept without end, those about watches that went neither.
fn inotify_overflow() {
    let most = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let most: usize = most.trim().parse().unwrap();
    if most > 100_000 {
        skip("the queue is long");
    }
    let t = Tmp::new();
    let i = Ino::new();
    for _ in 0..most + 100 {
        let wd = i.add(t.path(""), IN_CREATE);
        ok(sys!(SYS_inotify_rm_watch, i.0, wd));
    }
    let all = i.events();
    eq(all.len(), most + 1);
    eq(all[most].clone(), (-1, IN_Q_OVERFLOW, String::new()));
}

fn inotify_moves() {
    let t = Tmp::new();
    ok(sys!(SYS_mkdir, t.path("a"), 0o700));
    ok(sys!(SYS_mkdir, t.path("b"), 0o700));
    shut([t.file("a/x", b"")]);
    let i = Ino::new();
    let (wa, wb) = (i.add(t.path("a"), IN_ALL_EVENTS), i.add(t.path("b"), IN_ALL_EVENTS));
    let wx = i.add(t.path("a/x"), IN_ALL_EVENTS);
    ok(sys!(SYS_rename, t.path("a/x"), t.path("b/y")));
    let e = i.events();
    eq(e, [(wa, IN_MOVED_FROM, "x".to_string()), (wb, IN_MOVED_TO, "y".to_string()), (wx, IN_MOVE_SELF, String::new())]);
    // Over another: that one is deleted.
    shut([t.file("b/z", b"")]);
    i.events();
    let wz = i.add(t.path("b/z"), IN_ALL_EVENTS);
    ok(sys!(SYS_rename, t.path("b/y"), t.path("b/z")));
    let e = i.events();
    check(e.contains(&(wz, IN_DELETE_SELF, String::new())), &format!("{e:?}: deleted"));
    check(e.contains(&(wz, IN_IGNORED, String::new())), &format!("{e:?}: forgotten"));
}

fn inotify_self() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let i = Ino::new();
    let w = i.add(t.path("f"), IN_ALL_EVENTS);
    ok(sys!(SYS_unlink, t.path("f")));
    // It lives on in the descriptor.
    eq(i.events(), [(w, IN_ATTRIB, String::new())]);
    shut([fd]);
    let e = i.events();
    let s = String::new;
    eq(e, [(w, IN_CLOSE_WRITE, s()), (w, IN_DELETE_SELF, s()), (w, IN_IGNORED, s())]);
    ok(sys!(SYS_mkdir, t.path("d"), 0o700));
    let w = i.add(t.path("d"), IN_ALL_EVENTS);
    ok(sys!(SYS_rmdir, t.path("d")));
    let e = i.events();
    eq(e, [(w, IN_DELETE_SELF, s()), (w, IN_IGNORED, s())]);
    // Two names: the end of one is a change of attributes.
    shut([t.file("g", b"")]);
    ok(sys!(SYS_link, t.path("g"), t.path("h")));
    let w = i.add(t.path("g"), IN_ALL_EVENTS);
    ok(sys!(SYS_unlink, t.path("h")));
    eq(i.events(), [(w, IN_ATTRIB, s())]);
}

fn inotify_open_close() {
    let t = Tmp::new();
    shut([t.file("f", b"abc")]);
    let i = Ino::new();
    let w = i.add(t.path("f"), IN_OPEN | IN_CLOSE | IN_ONESHOT);
    shut([ok(t.open("f", O_RDONLY)) as i32]);
    eq(i.events(), [(w, IN_OPEN, String::new()), (w, IN_IGNORED, String::new())]);
    let w = i.add(t.path("f"), IN_ACCESS | IN_MODIFY);
    let fd = ok(t.open("f", O_RDWR)) as i32;
    for _ in 0..3 {
        eq(sys!(SYS_pread64, fd, &mut [0u8; 1], 1, 0), 1);
    }
    // Equal events in a row are one.
    eq(i.events(), [(w, IN_ACCESS, String::new())]);
    eq(sys!(SYS_pwrite64, fd, b"x", 1, 0), 1);
    eq(i.events(), [(w, IN_MODIFY, String::new())]);
    shut([fd]);
}

fn dnotify() {
    let t = Tmp::new();
    let d = ok(t.open("", O_RDONLY)) as i32;
    let f = t.file("f", b"");
    let r = sys!(SYS_fcntl, f, 1026, 4);
    check(r == -i64::from(ENOTDIR) || r == -i64::from(EINVAL), "no directory, or none at all");
    let r = sys!(SYS_fcntl, d, 1026, 4);
    check(r == 0 || r == -i64::from(EINVAL), "taken, or a kernel without");
    sys!(SYS_fcntl, d, 1026, 0);
    shut([d, f]);
}
