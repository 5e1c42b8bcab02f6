//! Mount namespaces of a test's own, so that nothing of the system changes.

use crate::{in_child, ok, skip, sys};
use libc::*;
use std::ffi::CStr;

/// Writes `text` to a file of /proc; the errno, negated, if that fails.
pub fn put(path: &CStr, text: &str) -> i64 {
    let fd = sys!(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
    if fd < 0 {
        return fd;
    }
    let r = sys!(SYS_write, fd, text.as_bytes(), text.len());
    sys!(SYS_close, fd);
    r
}

/// Makes this process root of a new user namespace.
#[track_caller]
pub fn become_root() {
    let (uid, gid) = (sys!(SYS_geteuid), sys!(SYS_getegid));
    let r = sys!(SYS_unshare, CLONE_NEWUSER);
    if r == -i64::from(EPERM) || r == -i64::from(ENOSPC) {
        skip("needs user namespaces");
    }
    ok(r);
    ok(put(c"/proc/self/setgroups", "deny"));
    ok(put(c"/proc/self/uid_map", &format!("0 {uid} 1")));
    ok(put(c"/proc/self/gid_map", &format!("0 {gid} 1")));
}

/// Whether this process may mount without a user namespace of its own.
pub fn is_root() -> bool {
    sys!(SYS_geteuid) == 0
}

/// Runs `f` in a child whose mounts are its own and private, as root: of the system, or of a user namespace.
#[track_caller]
pub fn alone(f: impl FnOnce()) {
    in_child(|| {
        if !is_root() {
            become_root();
        }
        ok(sys!(SYS_unshare, CLONE_NEWNS));
        ok(mount("none", "/", None, MS_REC | MS_PRIVATE));
        f();
    });
}

/// mount(2) without options.
pub fn mount(source: &str, target: &str, kind: Option<&str>, flags: u64) -> i64 {
    mount_with(source, target, kind, flags, None)
}

/// mount(2).
pub fn mount_with(source: &str, target: &str, kind: Option<&str>, flags: u64, options: Option<&str>) -> i64 {
    let text = |s: Option<&str>| s.map_or(std::ptr::null(), |s| crate::cstr(s).as_ptr());
    sys!(SYS_mount, crate::cstr(source), crate::cstr(target), text(kind), flags, text(options))
}

/// umount2(2).
pub fn umount(target: &str, flags: i32) -> i64 {
    sys!(SYS_umount2, crate::cstr(target), flags)
}

/// The fields of the topmost mount at `path` in /proc/self/mountinfo.
pub fn info(path: &str) -> Option<Vec<String>> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let fields = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    text.lines().map(fields).rfind(|fields| fields.get(4).is_some_and(|at| at == path))
}
