//! Access control lists (acl(5)) as extended attributes: their form, whom they let in, what new files get.

use guest_tests::space::is_root;
use guest_tests::*;
use libc::*;
use std::ffi::CStr;

cases![
    acl_sets_mode, acl_minimal, acl_errors, acl_default_errors, acl_removed, acl_flags, acl_not_owner, acl_grants_user, acl_grants_group,
    acl_mask, acl_follows_chmod, acl_inherited, acl_inherited_dir, acl_ignores_umask, acl_of_special, acl_set_group_id, acl_listed, acl_link
];

const ACCESS: &CStr = c"system.posix_acl_access";
const DEFAULT: &CStr = c"system.posix_acl_default";
const NO_ID: u32 = u32::MAX;
const USER_OBJ: u16 = 1;
const USER: u16 = 2;
const GROUP_OBJ: u16 = 4;
const GROUP: u16 = 8;
const MASK: u16 = 16;
const OTHER: u16 = 32;

fn value(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut v = 2u32.to_le_bytes().to_vec();
    for (tag, perm, id) in entries {
        v.extend(tag.to_le_bytes());
        v.extend(perm.to_le_bytes());
        v.extend(id.to_le_bytes());
    }
    v
}

fn set(path: &CStr, name: &CStr, value: &[u8]) -> i64 {
    sys!(SYS_setxattr, path, name, value, value.len(), 0)
}

fn get(path: &CStr, name: &CStr) -> Result<Vec<u8>, i64> {
    let mut b = [0u8; 256];
    match sys!(SYS_getxattr, path, name, &mut b, b.len()) {
        n if n < 0 => Err(-n),
        n => Ok(b[..n as usize].to_vec()),
    }
}

fn mode(path: &CStr) -> u32 {
    let fd = ok(sys!(SYS_open, path, O_PATH)) as i32;
    let mode = stat_fd(fd).st_mode & 0o7777;
    shut([fd]);
    mode
}

/// A directory on a file system with lists.
fn ground() -> Tmp {
    let t = Tmp::new();
    let r = set(t.path(""), ACCESS, &value(&[(USER_OBJ, 7, NO_ID), (GROUP_OBJ, 5, NO_ID), (OTHER, 5, NO_ID)]));
    if r == -i64::from(EOPNOTSUPP) {
        skip("a file system without access control lists");
    }
    ok(r);
    t
}

fn own_uid() -> u32 {
    sys!(SYS_getuid) as u32
}

/// Entries for one user or group more, with a mask.
fn list(named: (u16, u16, u32), mask: u16) -> Vec<u8> {
    let mut all = vec![(USER_OBJ, 6, NO_ID), (GROUP_OBJ, 4, NO_ID), named, (MASK, mask, NO_ID), (OTHER, 0, NO_ID)];
    all.sort_by_key(|entry| entry.0);
    value(&all)
}

fn acl_sets_mode() {
    let t = ground();
    shut([t.file("f", b"text")]);
    let me = own_uid();
    let v = list((USER, 7, me), 6);
    ok(set(t.path("f"), ACCESS, &v));
    eq((mode(t.path("f")), get(t.path("f"), ACCESS)), (0o660, Ok(v.clone())));
    eq(sys!(SYS_getxattr, t.path("f"), ACCESS, 0, 0), v.len() as i64);
    err(sys!(SYS_getxattr, t.path("f"), ACCESS, &mut [0u8; 8], 8), ERANGE);
    eq(get(t.path("f"), DEFAULT), Err(ENODATA.into()));
}

fn acl_minimal() {
    let t = ground();
    shut([t.file("f", b"")]);
    ok(set(t.path("f"), ACCESS, &value(&[(USER_OBJ, 6, NO_ID), (GROUP_OBJ, 2, NO_ID), (OTHER, 1, NO_ID)])));
    // All of it is in the mode.
    eq((mode(t.path("f")), get(t.path("f"), ACCESS)), (0o621, Err(ENODATA.into())));
    // With a mask it is not, though nobody is named.
    let v = value(&[(USER_OBJ, 6, NO_ID), (GROUP_OBJ, 6, NO_ID), (MASK, 4, NO_ID), (OTHER, 0, NO_ID)]);
    ok(set(t.path("f"), ACCESS, &v));
    eq((mode(t.path("f")), get(t.path("f"), ACCESS)), (0o640, Ok(v)));
}

fn acl_errors() {
    let t = ground();
    shut([t.file("f", b"")]);
    let f = t.path("f");
    let three = [(USER_OBJ, 6, NO_ID), (GROUP_OBJ, 2, NO_ID), (OTHER, 1, NO_ID)];
    let bad: &[&[(u16, u16, u32)]] = &[
        &three[..2],
        &three[1..],
        &[three[0], three[2]],
        &[three[0], three[0], three[1], three[2]],
        &[three[1], three[0], three[2]],
        &[three[0], three[2], three[1]],
        &[three[0], (USER, 7, 1), three[1], three[2]],
        &[three[0], three[1], (GROUP, 7, 1), three[2]],
        &[three[0], three[1], (MASK, 7, NO_ID), (GROUP, 7, 1), three[2]],
        &[three[0], three[1], (MASK, 7, NO_ID), (MASK, 7, NO_ID), three[2]],
        &[(USER_OBJ, 8, NO_ID), three[1], three[2]],
        &[three[0], (3, 7, 1), three[1], three[2]],
        &[three[0], (USER, 7, NO_ID), three[1], (MASK, 7, NO_ID), three[2]],
    ];
    for (i, entries) in bad.iter().enumerate() {
        check(set(f, ACCESS, &value(entries)) == -i64::from(EINVAL), &format!("list {i} is refused"));
    }
    err(set(f, ACCESS, &[2, 0, 0]), EINVAL);
    err(set(f, ACCESS, &[1, 0, 0, 0]), EOPNOTSUPP);
    err(set(f, ACCESS, &[3, 0, 0, 0]), EOPNOTSUPP);
    err(set(f, ACCESS, &value(&three)[..12 + 3]), EINVAL);
    err(sys!(SYS_setxattr, f, ACCESS, guest_tests::bad(), 28, 0), EFAULT);
    err(sys!(SYS_setxattr, f, ACCESS, value(&three).as_slice(), 28, 8), EINVAL);
    eq(mode(f), 0o644);
    err(set(t.path("none"), ACCESS, &value(&three)), ENOENT);
    err(set(c"/proc/self/status", ACCESS, &value(&three)), EOPNOTSUPP);
    eq(get(c"/proc/self/status", ACCESS), Err(EOPNOTSUPP.into()));
}

fn acl_default_errors() {
    let t = ground();
    shut([t.file("f", b"")]);
    let v = list((USER, 7, 1), 7);
    err(set(t.path("f"), DEFAULT, &v), EACCES);
    ok(set(t.path("f"), DEFAULT, &[2, 0, 0, 0]));
    ok(set(t.path("f"), DEFAULT, &[]));
    err(set(t.path(""), DEFAULT, &v[..20]), EINVAL);
    err(set(t.path("f"), DEFAULT, &v[..15]), EINVAL);
    if is_root() {
        ok(set(t.path(""), DEFAULT, &v));
        eq(get(t.path(""), DEFAULT), Ok(v));
    }
    eq(mode(t.path("")), 0o755);
}

fn acl_removed() {
    let t = ground();
    shut([t.file("f", b"")]);
    let f = t.path("f");
    ok(sys!(SYS_removexattr, f, ACCESS));
    let v = list((USER, 7, own_uid()), 6);
    ok(set(f, ACCESS, &v));
    ok(sys!(SYS_removexattr, f, ACCESS));
    // The mode stays as the list made it.
    eq((get(f, ACCESS), mode(f)), (Err(ENODATA.into()), 0o660));
    ok(set(f, ACCESS, &v));
    ok(set(f, ACCESS, &[2, 0, 0, 0]));
    eq((get(f, ACCESS), mode(f)), (Err(ENODATA.into()), 0o660));
    ok(set(t.path(""), DEFAULT, &v));
    ok(sys!(SYS_removexattr, t.path(""), DEFAULT));
    eq(get(t.path(""), DEFAULT), Err(ENODATA.into()));
}

fn acl_flags() {
    let t = ground();
    shut([t.file("f", b"")]);
    let v = list((USER, 7, own_uid()), 6);
    // They say nothing here.
    ok(sys!(SYS_setxattr, t.path("f"), ACCESS, v.as_slice(), v.len(), XATTR_REPLACE));
    ok(sys!(SYS_setxattr, t.path("f"), ACCESS, v.as_slice(), v.len(), XATTR_CREATE));
}

/// What a task of an ordinary user and group, in these groups, says.
fn as_user(uid: u32, gid: u32, groups: &[u32], f: impl FnOnce()) {
    exits(
        child(|| {
            ok(sys!(SYS_setgroups, groups.len(), groups.as_ptr()));
            ok(sys!(SYS_setresgid, gid, gid, gid));
            ok(sys!(SYS_setresuid, uid, uid, uid));
            f();
            0
        }),
        0,
    );
}

fn shared() -> Tmp {
    if !is_root() {
        skip("only root can be others");
    }
    let t = ground();
    ok(sys!(SYS_chmod, t.path(""), 0o711));
    t
}

fn acl_not_owner() {
    let t = shared();
    shut([t.file("f", b"")]);
    let v = list((USER, 7, 1000), 7);
    as_user(1000, 1000, &[], || {
        err(set(t.path("f"), ACCESS, &v), EPERM);
        err(sys!(SYS_removexattr, t.path("f"), ACCESS), EPERM);
        err(set(t.path("f"), DEFAULT, &v), EACCES);
        err(set(t.path(""), DEFAULT, &v), EPERM);
        err(set(t.path("f"), ACCESS, &v[..15]), EINVAL);
    });
    ok(sys!(SYS_chown, t.path("f"), 1000, 1000));
    as_user(1000, 1000, &[], || {
        ok(set(t.path("f"), ACCESS, &v));
    });
}

fn may(path: &CStr, how: i32) -> i64 {
    let fd = sys!(SYS_open, path, how);
    if fd >= 0 {
        shut([fd as i32]);
    }
    fd.min(0)
}

fn acl_grants_user() {
    let t = shared();
    shut([t.file("f", b"text")]);
    let f = t.path("f");
    ok(set(f, ACCESS, &list((USER, 6, 1000), 6)));
    as_user(1000, 2000, &[], || {
        eq(may(f, O_RDWR), 0);
        eq(sys!(SYS_access, f, R_OK | W_OK), 0);
        err(sys!(SYS_access, f, X_OK), EACCES);
    });
    as_user(1001, 2000, &[], || {
        err(may(f, O_RDONLY), EACCES);
        err(sys!(SYS_access, f, R_OK), EACCES);
        err(sys!(SYS_truncate, f, 0), EACCES);
    });
    // A user that is named gets what is said there, though the group or others get more.
    ok(set(f, ACCESS, &value(&[(USER_OBJ, 6, NO_ID), (USER, 0, 1000), (GROUP_OBJ, 6, NO_ID), (MASK, 7, NO_ID), (OTHER, 6, NO_ID)])));
    as_user(1000, 0, &[], || err(may(f, O_RDONLY), EACCES));
    as_user(1001, 0, &[], || eq(may(f, O_RDWR), 0));
    // A directory: names are found, made and removed by it.
    ok(sys!(SYS_mkdir, t.path("d"), 0o700));
    shut([t.file("d/in", b"")]);
    ok(set(t.path("d"), ACCESS, &value(&[(USER_OBJ, 7, NO_ID), (USER, 7, 1000), (GROUP_OBJ, 0, NO_ID), (MASK, 7, NO_ID), (OTHER, 0, NO_ID)])));
    as_user(1000, 2000, &[], || {
        eq(may(t.path("d/new"), O_CREAT | O_WRONLY), 0);
        ok(sys!(SYS_rename, t.path("d/in"), t.path("d/out")));
        ok(sys!(SYS_unlink, t.path("d/out")));
        ok(sys!(SYS_mkdir, t.path("d/e"), 0o755));
        ok(sys!(SYS_chdir, t.path("d")));
    });
    as_user(1001, 2000, &[], || {
        err(may(t.path("d/new"), O_RDONLY), EACCES);
        err(sys!(SYS_chdir, t.path("d")), EACCES);
        err(sys!(SYS_mkdir, t.path("d/f"), 0o755), EACCES);
    });
}

fn acl_grants_group() {
    let t = shared();
    shut([t.file("f", b"text")]);
    let f = t.path("f");
    ok(set(f, ACCESS, &list((GROUP, 6, 3000), 6)));
    as_user(1000, 2000, &[3000], || eq(may(f, O_RDWR), 0));
    as_user(1000, 3000, &[], || eq(may(f, O_RDWR), 0));
    as_user(1000, 2000, &[], || err(may(f, O_RDONLY), EACCES));
    // Any of the groups that grants it is enough, but never two of them together.
    let v = value(&[(USER_OBJ, 6, NO_ID), (GROUP_OBJ, 4, NO_ID), (GROUP, 2, 3000), (MASK, 6, NO_ID), (OTHER, 7, NO_ID)]);
    ok(set(f, ACCESS, &v));
    as_user(1000, 0, &[3000], || {
        eq((may(f, O_RDONLY), may(f, O_WRONLY)), (0, 0));
        err(may(f, O_RDWR), EACCES);
    });
    as_user(1000, 2000, &[], || eq(may(f, O_RDWR), 0));
}

fn acl_mask() {
    let t = shared();
    shut([t.file("f", b"text")]);
    let f = t.path("f");
    ok(set(f, ACCESS, &list((USER, 7, 1000), 4)));
    as_user(1000, 2000, &[], || {
        eq(may(f, O_RDONLY), 0);
        err(may(f, O_WRONLY), EACCES);
    });
    // Without a bit for the group's class the list is not looked at: who is named is one of the others then.
    ok(set(f, ACCESS, &value(&[(USER_OBJ, 6, NO_ID), (USER, 7, 1000), (GROUP_OBJ, 4, NO_ID), (MASK, 0, NO_ID), (OTHER, 4, NO_ID)])));
    as_user(1000, 2000, &[], || eq(may(f, O_RDONLY), 0));
    as_user(1000, 0, &[], || err(may(f, O_RDONLY), EACCES));
}

fn acl_follows_chmod() {
    let t = ground();
    shut([t.file("f", b"")]);
    let f = t.path("f");
    let me = own_uid();
    ok(set(f, ACCESS, &list((USER, 7, me), 6)));
    ok(sys!(SYS_chmod, f, 0o751));
    let v = value(&[(USER_OBJ, 7, NO_ID), (USER, 7, me), (GROUP_OBJ, 4, NO_ID), (MASK, 5, NO_ID), (OTHER, 1, NO_ID)]);
    eq((mode(f), get(f, ACCESS)), (0o751, Ok(v)));
    let fd = ok(sys!(SYS_open, f, O_RDONLY)) as i32;
    ok(sys!(SYS_fchmod, fd, 0o400));
    shut([fd]);
    let v = value(&[(USER_OBJ, 4, NO_ID), (USER, 7, me), (GROUP_OBJ, 4, NO_ID), (MASK, 0, NO_ID), (OTHER, 0, NO_ID)]);
    eq((mode(f), get(f, ACCESS)), (0o400, Ok(v)));
}

fn acl_inherited() {
    let t = ground();
    let me = own_uid();
    let default = value(&[(USER_OBJ, 7, NO_ID), (USER, 6, me), (GROUP_OBJ, 5, NO_ID), (MASK, 7, NO_ID), (OTHER, 4, NO_ID)]);
    ok(set(t.path(""), DEFAULT, &default));
    shut([ok(sys!(SYS_open, t.path("f"), O_CREAT | O_WRONLY, 0o640)) as i32]);
    let v = value(&[(USER_OBJ, 6, NO_ID), (USER, 6, me), (GROUP_OBJ, 5, NO_ID), (MASK, 4, NO_ID), (OTHER, 0, NO_ID)]);
    eq((mode(t.path("f")), get(t.path("f"), ACCESS), get(t.path("f"), DEFAULT)), (0o640, Ok(v), Err(ENODATA.into())));
    // One that is all in the mode leaves no list.
    ok(set(t.path(""), DEFAULT, &value(&[(USER_OBJ, 7, NO_ID), (GROUP_OBJ, 5, NO_ID), (OTHER, 1, NO_ID)])));
    shut([ok(sys!(SYS_open, t.path("g"), O_CREAT | O_WRONLY, 0o777)) as i32]);
    eq((mode(t.path("g")), get(t.path("g"), ACCESS)), (0o751, Err(ENODATA.into())));
}

fn acl_inherited_dir() {
    let t = ground();
    let me = own_uid();
    let default = value(&[(USER_OBJ, 7, NO_ID), (USER, 6, me), (GROUP_OBJ, 5, NO_ID), (MASK, 7, NO_ID), (OTHER, 4, NO_ID)]);
    ok(set(t.path(""), DEFAULT, &default));
    ok(sys!(SYS_mkdir, t.path("d"), 0o711));
    let v = value(&[(USER_OBJ, 7, NO_ID), (USER, 6, me), (GROUP_OBJ, 5, NO_ID), (MASK, 1, NO_ID), (OTHER, 0, NO_ID)]);
    eq((mode(t.path("d")), get(t.path("d"), ACCESS)), (0o710, Ok(v)));
    eq(get(t.path("d"), DEFAULT), Ok(default.clone()));
    ok(sys!(SYS_mkdir, t.path("d/e"), 0o777));
    eq((mode(t.path("d/e")), get(t.path("d/e"), DEFAULT)), (0o774, Ok(default)));
}

fn acl_ignores_umask() {
    in_child(|| {
        let t = ground();
        sys!(SYS_umask, 0o077);
        let me = own_uid();
        shut([ok(sys!(SYS_open, t.path("before"), O_CREAT | O_WRONLY, 0o666)) as i32]);
        eq(mode(t.path("before")), 0o600);
        ok(set(t.path(""), DEFAULT, &value(&[(USER_OBJ, 7, NO_ID), (USER, 7, me), (GROUP_OBJ, 7, NO_ID), (MASK, 7, NO_ID), (OTHER, 5, NO_ID)])));
        shut([ok(sys!(SYS_open, t.path("f"), O_CREAT | O_WRONLY, 0o666)) as i32]);
        ok(sys!(SYS_mkdir, t.path("d"), 0o777));
        ok(sys!(SYS_mknod, t.path("p"), S_IFIFO | 0o622, 0));
        eq([mode(t.path("f")), mode(t.path("d")), mode(t.path("p"))], [0o664, 0o775, 0o620]);
        let fd = ok(sys!(SYS_open, t.path(""), O_TMPFILE | O_RDWR, 0o666)) as i32;
        eq(stat_fd(fd).st_mode & 0o777, 0o664);
    });
}

fn acl_of_special() {
    let t = ground();
    ok(sys!(SYS_mknod, t.path("p"), S_IFIFO | 0o644, 0));
    let v = list((USER, 6, own_uid()), 6);
    ok(set(t.path("p"), ACCESS, &v));
    eq((mode(t.path("p")), get(t.path("p"), ACCESS)), (0o660, Ok(v.clone())));
    ok(sys!(SYS_symlink, c"p", t.path("l")));
    err(sys!(SYS_lsetxattr, t.path("l"), ACCESS, v.as_slice(), v.len(), 0), EOPNOTSUPP);
    err(sys!(SYS_lgetxattr, t.path("l"), ACCESS, &mut [0u8; 64], 64), EOPNOTSUPP);
    eq(get(t.path("l"), ACCESS), Ok(v));
}

fn acl_set_group_id() {
    let t = shared();
    shut([t.file("f", b"")]);
    ok(sys!(SYS_chown, t.path("f"), 1000, 3000));
    ok(sys!(SYS_chmod, t.path("f"), 0o2755));
    let v = list((USER, 7, 1000), 7);
    ok(set(t.path("f"), ACCESS, &v));
    eq(mode(t.path("f")), 0o2670);
    as_user(1000, 2000, &[], || {
        ok(set(t.path("f"), ACCESS, &v));
        eq(mode(t.path("f")), 0o670);
    });
    // A directory hands its group on; who is not of it does not make programs that run as it.
    ok(sys!(SYS_mkdir, t.path("d"), 0o777));
    ok(sys!(SYS_chown, t.path("d"), 0, 3000));
    ok(sys!(SYS_chmod, t.path("d"), 0o2777));
    as_user(1000, 2000, &[], || {
        shut([ok(sys!(SYS_open, t.path("d/f"), O_CREAT | O_WRONLY, 0o2755)) as i32]);
        ok(sys!(SYS_mkdir, t.path("d/e"), 0o755));
        eq([mode(t.path("d/f")), mode(t.path("d/e"))], [0o755 & !0o022, 0o2755]);
    });
    as_user(1000, 2000, &[3000], || {
        shut([ok(sys!(SYS_open, t.path("d/g"), O_CREAT | O_WRONLY, 0o2755)) as i32]);
        eq(mode(t.path("d/g")), 0o2755);
    });
}

fn acl_listed() {
    let t = ground();
    let v = list((USER, 7, own_uid()), 7);
    ok(set(t.path(""), ACCESS, &v));
    ok(set(t.path(""), DEFAULT, &v));
    let mut b = [0u8; 256];
    let n = ok(sys!(SYS_listxattr, t.path(""), &mut b, 256)) as usize;
    let mut names: Vec<&[u8]> = b[..n].split(|b| *b == 0).filter(|n| n.starts_with(b"system.")).collect();
    names.sort();
    eq(names, [ACCESS.to_bytes(), DEFAULT.to_bytes()]);
}

fn acl_link() {
    let t = shared();
    shut([t.file("f", b"text")]);
    ok(set(t.path("f"), ACCESS, &list((USER, 6, 1000), 6)));
    ok(sys!(SYS_link, t.path("f"), t.path("g")));
    ok(sys!(SYS_rename, t.path("f"), t.path("h")));
    as_user(1000, 2000, &[], || eq((may(t.path("g"), O_RDWR), may(t.path("h"), O_RDWR)), (0, 0)));
    as_user(1001, 2000, &[], || err(may(t.path("g"), O_RDONLY), EACCES));
}
