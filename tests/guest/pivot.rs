//! pivot_root(2), and chroot(2) where mounts are in its way.

use crate::mount::{T, dir, exists, file, on_tmpfs, open_at};
use guest_tests::space::{mount, umount};
use guest_tests::*;
use libc::*;

cases![pivot, pivot_errors, chroot_escape];

fn pivot() {
    on_tmpfs(|d| {
        let n = format!("{d}/new");
        dir(&n);
        ok(mount("none", &n, T, 0));
        dir(&format!("{n}/old"));
        file(&format!("{n}/here"), "");
        ok(sys!(SYS_pivot_root, cstr(n.clone()), cstr(format!("{n}/old"))));
        ok(sys!(SYS_chdir, c"/"));
        check(exists("/here") && exists("/old/proc"), "the new root, and the old below it");
        check(exists(&format!("/old{d}")), "all of it");
        ok(umount("/old", MNT_DETACH));
        check(!exists("/old/proc"), "gone");
        check(exists("/../here"), "nothing above");
    });
    // By the same directory twice, as bwrap and runc do it.
    on_tmpfs(|d| {
        file(&format!("{d}/here"), "");
        ok(sys!(SYS_chdir, cstr(d)));
        ok(sys!(SYS_pivot_root, c".", c"."));
        ok(umount(".", MNT_DETACH));
        ok(sys!(SYS_chdir, c"/"));
        check(exists("/here") && !exists("/usr"), "alone");
    });
}

fn pivot_errors() {
    on_tmpfs(|d| {
        for name in ["a", "b"] {
            dir(&format!("{d}/{name}"));
        }
        let (a, b) = (format!("{d}/a"), format!("{d}/b"));
        let pivot = |new: &str, old: &str| sys!(SYS_pivot_root, cstr(new), cstr(old));
        err(pivot(&a, &a), EINVAL);
        err(pivot(&format!("{d}/none"), &a), ENOENT);
        errs(pivot("/", "/"), &[EBUSY, EINVAL]);
        errs(pivot(d, "/"), &[EBUSY, EINVAL]);
        ok(mount("none", &a, T, 0));
        err(pivot(&a, &b), EINVAL);
        file(&format!("{a}/f"), "");
        err(pivot(&a, &format!("{a}/f")), ENOTDIR);
        dir(&format!("{a}/old"));
        ok(mount("", &a, None, MS_SHARED));
        err(pivot(&a, &format!("{a}/old")), EINVAL);
        ok(mount("", &a, None, MS_PRIVATE));
        ok(mount("", d, None, MS_SHARED));
        err(pivot(&a, &format!("{a}/old")), EINVAL);
    });
}

fn chroot_escape() {
    on_tmpfs(|d| {
        dir(&format!("{d}/jail"));
        dir(&format!("{d}/jail/in"));
        file(&format!("{d}/out"), "");
        ok(sys!(SYS_chroot, cstr(format!("{d}/jail"))));
        // The working directory stays outside, and `..` goes on from there.
        ok(sys!(SYS_chdir, c"/"));
        check(!exists("../out") && !exists("/../../out"), "no way up");
        let fd = ok(open_at("/", O_RDONLY));
        ok(sys!(SYS_chroot, c"in"));
        ok(sys!(SYS_fchdir, fd));
        check(exists("../out"), "out by a descriptor from before");
        err(sys!(SYS_unshare, CLONE_NEWUSER), EPERM);
    });
}
