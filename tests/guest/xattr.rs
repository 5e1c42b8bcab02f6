//! xattr(7): namespaces, limits, and the calls by descriptor and path.

use guest_tests::*;
use libc::*;

cases![
    xattr_namespaces, xattr_limits, xattr_removed_with_file, listxattr_sizes, setxattrat_family,
    acl_attributes
];

fn xattr_namespaces() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let root = sys!(SYS_geteuid) == 0;
    let set = |n: &std::ffi::CStr| sys!(SYS_fsetxattr, fd, n, b"v", 1, 0);
    eq(set(c"user.a"), 0);
    if root { eq(set(c"trusted.a"), 0) } else { err(set(c"trusted.a"), EPERM) }
    err(set(c"nonesuch.a"), EOPNOTSUPP);
    err(set(c"user."), EINVAL);
    errs(set(c"system.a"), &[EOPNOTSUPP]);
    err(set(c""), ERANGE);
    ok(sys!(SYS_symlink, c"f", t.path("l")));
    err(sys!(SYS_lsetxattr, t.path("l"), c"user.a", b"v", 1, 0), EPERM);
    err(sys!(SYS_lgetxattr, t.path("l"), c"user.a", 0, 0), ENODATA);
    eq(sys!(SYS_getxattr, t.path("l"), c"user.a", 0, 0), 1);
    ok(sys!(SYS_mknod, t.path("p"), S_IFIFO | 0o600, 0));
    err(sys!(SYS_setxattr, t.path("p"), c"user.a", b"v", 1, 0), EPERM);
    let q = pipe_pair();
    errs(sys!(SYS_fsetxattr, q[0], c"user.a", b"v", 1, 0), &[EPERM, EOPNOTSUPP]);
    // Mode bits count for user attributes.
    if !root {
        ok(sys!(SYS_fchmod, fd, 0o400));
        err(set(c"user.b"), EACCES);
        ok(sys!(SYS_fchmod, fd, 0o200));
        err(sys!(SYS_fgetxattr, fd, c"user.a", 0, 0), EACCES);
    }
    let path = ok(t.open("f", O_PATH)) as i32;
    err(sys!(SYS_fgetxattr, path, c"user.a", 0, 0), EBADF);
    shut([fd, path, q[0], q[1]]);
}

fn xattr_limits() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let long = cstr(format!("user.{}", "n".repeat(250)));
    eq(sys!(SYS_fsetxattr, fd, long, b"v", 1, 0), 0);
    let longer = cstr(format!("user.{}", "n".repeat(251)));
    err(sys!(SYS_fsetxattr, fd, longer, b"v", 1, 0), ERANGE);
    let big = vec![0u8; 65537];
    err(sys!(SYS_fsetxattr, fd, c"user.b", &big[..], 65537, 0), E2BIG);
    err(sys!(SYS_fsetxattr, fd, c"user.b", b"v", 1, 4), EINVAL);
    err(sys!(SYS_fsetxattr, fd, c"user.b", bad(), 1, 0), EFAULT);
    err(sys!(SYS_fgetxattr, fd, c"user.none", 0, 0), ENODATA);
    eq(sys!(SYS_fsetxattr, fd, c"user.e", 0, 0, 0), 0);
    eq(sys!(SYS_fgetxattr, fd, c"user.e", 0, 0), 0);
    eq(sys!(SYS_fsetxattr, fd, c"user.c", b"12345", 5, 0), 0);
    let mut b = [0u8; 8];
    err(sys!(SYS_fgetxattr, fd, c"user.c", &mut b, 4), ERANGE);
    err(sys!(SYS_fgetxattr, fd, c"user.c", bad(), 8), EFAULT);
    eq(sys!(SYS_fsetxattr, fd, c"user.c", b"1", 1, XATTR_REPLACE), 0);
    eq(sys!(SYS_fgetxattr, fd, c"user.c", &mut b, 8), 1);
    shut([fd]);
}

fn xattr_removed_with_file() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    eq(sys!(SYS_fsetxattr, fd, c"user.a", b"v", 1, 0), 0);
    ok(sys!(SYS_rename, t.path("f"), t.path("g")));
    eq(sys!(SYS_getxattr, t.path("g"), c"user.a", 0, 0), 1);
    ok(sys!(SYS_link, t.path("g"), t.path("h")));
    eq(sys!(SYS_getxattr, t.path("h"), c"user.a", 0, 0), 1);
    ok(sys!(SYS_unlink, t.path("g")));
    ok(sys!(SYS_unlink, t.path("h")));
    eq(sys!(SYS_fgetxattr, fd, c"user.a", 0, 0), 1);
    shut([fd]);
    let fd = t.file("f", b"");
    err(sys!(SYS_fgetxattr, fd, c"user.a", 0, 0), ENODATA);
    shut([fd]);
}

fn listxattr_sizes() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    eq(sys!(SYS_flistxattr, fd, 0, 0), 0);
    eq(sys!(SYS_fsetxattr, fd, c"user.a", b"v", 1, 0), 0);
    eq(sys!(SYS_fsetxattr, fd, c"user.bc", b"v", 1, 0), 0);
    eq(sys!(SYS_flistxattr, fd, 0, 0), 15);
    let mut b = [0u8; 32];
    err(sys!(SYS_flistxattr, fd, &mut b, 14), ERANGE);
    eq(sys!(SYS_flistxattr, fd, &mut b, 32), 15);
    let mut names: Vec<&[u8]> = b[..15].split(|c| *c == 0).filter(|n| !n.is_empty()).collect();
    names.sort_unstable();
    eq(names, [&b"user.a"[..], b"user.bc"]);
    err(sys!(SYS_flistxattr, fd, bad(), 32), EFAULT);
    shut([fd]);
}

fn setxattrat_family() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let v = b"value";
    let args = [v.as_ptr() as u64, 5];
    let r = sys!(463, AT_FDCWD, t.path("f"), 0, c"user.a", &args, 16);
    if r == -i64::from(ENOSYS) {
        skip("Linux 6.13");
    }
    eq(r, 0);
    let mut b = [0u8; 16];
    let get = [b.as_mut_ptr() as u64, 16];
    eq(sys!(464, fd, c"", AT_EMPTY_PATH, c"user.a", &get, 16), 5);
    eq(&b[..5], v);
    eq(sys!(465, AT_FDCWD, t.path("f"), 0, &mut b, 16), 7);
    eq(sys!(466, fd, c"", AT_EMPTY_PATH, c"user.a"), 0);
    err(sys!(464, fd, c"", AT_EMPTY_PATH, c"user.a", &get, 16), ENODATA);
    err(sys!(463, AT_FDCWD, t.path("f"), 0x8000, c"user.a", &args, 16), EINVAL);
    err(sys!(463, AT_FDCWD, t.path("f"), 0, c"user.a", &args, 8), EINVAL);
    err(sys!(463, AT_FDCWD, t.path("f"), 0, c"user.a", &args, 5000), E2BIG);
    err(sys!(463, AT_FDCWD, t.path("none"), 0, c"user.a", &args, 16), ENOENT);
    err(sys!(463, fd, c"", 0, c"user.a", &args, 16), ENOENT);
    ok(sys!(SYS_symlink, c"f", t.path("l")));
    err(sys!(463, AT_FDCWD, t.path("l"), AT_SYMLINK_NOFOLLOW, c"user.a", &args, 16), EPERM);
    err(sys!(464, AT_FDCWD, t.path("f"), 0, c"user.none", &[b.as_mut_ptr() as u64, 16 | 1 << 32], 16), EINVAL);
    shut([fd]);
}

fn acl_attributes() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    // struct posix_acl_xattr_header and entries: user::rw-, group::r--, other::---
    let acl = [2u8, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 4, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255];
    let r = sys!(SYS_fsetxattr, fd, c"system.posix_acl_access", &acl, acl.len(), 0);
    if r == -i64::from(EOPNOTSUPP) {
        skip("a file system without access control lists");
    }
    ok(r);
    eq(stat_fd(fd).st_mode & 0o777, 0o640);
    shut([fd]);
}
