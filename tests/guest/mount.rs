//! mount(2), umount2(2): in mount namespaces of the tests' own.

use guest_tests::space::{alone, info, is_root, mount, mount_with, umount};
use guest_tests::*;
use libc::*;

cases![
    tmpfs_size, tmpfs_inodes, tmpfs_owner, tmpfs_errors, tmpfs_remount, bind_directory, bind_file, bind_part, bind_recursive, bind_errors,
    remount_bind_read_only, read_only_file_system, remount_while_written, noexec, nodev, nosymfollow, access_times_shown, statfs_flags,
    umount_errors, umount_busy, umount_detach, umount_expire, umount_nofollow, stacked, move_tree, move_errors, mount_errors, without_rights, names_in_use, dots_across, no_xdev, kinds,
    mountinfo_fields, mounts_poll, bind_in_proc, proc_root_of_other, many_mounts
];

pub(crate) const T: Option<&str> = Some("tmpfs");

/// A scratch directory under a tmpfs of its own.
#[track_caller]
pub(crate) fn on_tmpfs(f: impl FnOnce(&str)) {
    let t = Tmp::new();
    alone(|| {
        ok(mount("none", t.dir(), T, 0));
        f(t.dir());
    });
}

#[track_caller]
pub(crate) fn dir(path: &str) {
    ok(sys!(SYS_mkdir, cstr(path), 0o755));
}

pub(crate) fn open_at(path: &str, flags: i32) -> i64 {
    sys!(SYS_openat, AT_FDCWD, cstr(path), flags, 0o644)
}

#[track_caller]
pub(crate) fn file(path: &str, text: &str) {
    let fd = ok(open_at(path, O_RDWR | O_CREAT)) as i32;
    eq(sys!(SYS_write, fd, text.as_bytes(), text.len()), text.len() as i64);
    shut([fd]);
}

pub(crate) fn exists(path: &str) -> bool {
    sys!(SYS_faccessat, AT_FDCWD, cstr(path), F_OK) == 0
}

pub(crate) fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

pub(crate) fn statfs_of(path: &str) -> statfs {
    // SAFETY: plain data, for which zeroes are a value.
    let mut s: statfs = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_statfs, cstr(path), &mut s));
    s
}

fn tmpfs_size() {
    on_tmpfs(|d| {
        let m = format!("{d}/m");
        dir(&m);
        ok(mount_with("src", &m, T, 0, Some("size=64k,mode=700")));
        let s = statfs_of(&m);
        eq((s.f_blocks, s.f_bfree, s.f_bsize), (16, 16, 4096));
        let fd = ok(open_at(&format!("{m}/f"), O_RDWR | O_CREAT)) as i32;
        let page = [7u8; 4096];
        for _ in 0..16 {
            eq(sys!(SYS_write, fd, &page[..], 4096), 4096);
        }
        err(sys!(SYS_write, fd, &page[..], 4096), ENOSPC);
        eq(statfs_of(&m).f_bfree, 0);
        ok(sys!(SYS_ftruncate, fd, 0));
        eq(statfs_of(&m).f_bfree, 16);
        shut([fd]);
        let fields = info(&m).expect("in mountinfo");
        let tail = fields.join(" ");
        check(tail.contains(" - tmpfs src rw,size=64k,mode=700"), &tail);
    });
}

fn tmpfs_inodes() {
    on_tmpfs(|d| {
        ok(mount_with("none", d, T, 0, Some("nr_inodes=3")));
        eq(statfs_of(d).f_files, 3);
        file(&format!("{d}/a"), "");
        dir(&format!("{d}/b"));
        err(sys!(SYS_mkdir, cstr(format!("{d}/c")), 0o755), ENOSPC);
        err(open_at(&format!("{d}/c"), O_RDWR | O_CREAT), ENOSPC);
        eq(statfs_of(d).f_ffree, 0);
        ok(sys!(SYS_rmdir, cstr(format!("{d}/b"))));
        file(&format!("{d}/c"), "");
    });
}

fn tmpfs_owner() {
    on_tmpfs(|d| {
        ok(mount_with("none", d, T, 0, Some("mode=1750,uid=0,gid=0")));
        let s = stat_fd(ok(open_at(d, O_RDONLY)));
        eq((s.st_mode, s.st_uid, s.st_gid), (S_IFDIR | 0o1750, 0, 0));
    });
    on_tmpfs(|d| {
        ok(mount("none", d, T, 0));
        eq(stat_fd(ok(open_at(d, O_RDONLY))).st_mode, S_IFDIR | 0o1777);
    });
}

fn tmpfs_errors() {
    on_tmpfs(|d| {
        for bad in ["nonsense", "size=x", "size=10q", "mode=9", "uid=x", "nr_inodes=x", "size", "uid=4294967295"] {
            err(mount_with("none", d, T, 0, Some(bad)), EINVAL);
        }
        ok(mount_with("none", d, T, 0, Some("size=50%,,inode64")));
    });
}

fn tmpfs_remount() {
    on_tmpfs(|d| {
        ok(mount_with("none", d, T, 0, Some("size=64k")));
        let fd = ok(open_at(&format!("{d}/f"), O_RDWR | O_CREAT)) as i32;
        let page = [7u8; 4096];
        for _ in 0..4 {
            eq(sys!(SYS_write, fd, &page[..], 4096), 4096);
        }
        shut([fd]);
        err(mount_with("none", d, None, MS_REMOUNT, Some("size=8k")), EINVAL);
        ok(mount_with("none", d, None, MS_REMOUNT, Some("size=32k")));
        eq(statfs_of(d).f_blocks, 8);
        err(mount_with("none", d, None, MS_REMOUNT, Some("nonsense")), EINVAL);
        eq(text(&format!("{d}/f")).len(), 16384);
    });
}

fn bind_directory() {
    on_tmpfs(|d| {
        let (a, b) = (format!("{d}/a"), format!("{d}/b"));
        dir(&a);
        dir(&b);
        ok(mount(&a, &b, None, MS_BIND));
        file(&format!("{b}/f"), "x");
        eq(text(&format!("{a}/f")), "x");
        let one = stat_fd(ok(open_at(&format!("{a}/f"), O_RDONLY)));
        let other = stat_fd(ok(open_at(&format!("{b}/f"), O_RDONLY)));
        eq((one.st_dev, one.st_ino), (other.st_dev, other.st_ino));
        err(sys!(SYS_rename, cstr(format!("{a}/f")), cstr(format!("{b}/g"))), EXDEV);
        err(sys!(SYS_link, cstr(format!("{a}/f")), cstr(format!("{b}/g"))), EXDEV);
        ok(sys!(SYS_unlink, cstr(format!("{b}/f"))));
        check(!exists(&format!("{a}/f")), "gone on both sides");
    });
}

fn bind_file() {
    on_tmpfs(|d| {
        let (a, b) = (format!("{d}/a"), format!("{d}/b"));
        file(&a, "one");
        file(&b, "two");
        ok(mount(&a, &b, None, MS_BIND));
        eq(text(&b), "one");
        err(sys!(SYS_unlink, cstr(b.clone())), EBUSY);
        ok(umount(&b, 0));
        eq(text(&b), "two");
    });
}

fn bind_part() {
    on_tmpfs(|d| {
        dir(&format!("{d}/a"));
        dir(&format!("{d}/a/in"));
        dir(&format!("{d}/b"));
        file(&format!("{d}/a/in/f"), "");
        ok(mount(&format!("{d}/a/in"), &format!("{d}/b"), None, MS_BIND));
        check(exists(&format!("{d}/b/f")), "the part is there");
        eq(info(&format!("{d}/b")).expect("in mountinfo")[3].clone(), "/a/in".to_owned());
        // `..` at its root leads to where it is mounted, not to where it comes from.
        ok(sys!(SYS_chdir, cstr(format!("{d}/b"))));
        check(exists("../b"), "up is the place's parent");
        check(!exists("../in"), "not the source's");
    });
}

fn bind_recursive() {
    on_tmpfs(|d| {
        for name in ["a", "a/in", "b", "c"] {
            dir(&format!("{d}/{name}"));
        }
        ok(mount("none", &format!("{d}/a/in"), T, 0));
        file(&format!("{d}/a/in/f"), "");
        ok(mount(&format!("{d}/a"), &format!("{d}/b"), None, MS_BIND));
        check(!exists(&format!("{d}/b/in/f")), "without what is mounted below");
        ok(mount(&format!("{d}/a"), &format!("{d}/c"), None, MS_BIND | MS_REC));
        check(exists(&format!("{d}/c/in/f")), "with what is mounted below");
        // Into itself.
        ok(mount(d, &format!("{d}/b"), None, MS_BIND | MS_REC));
        check(exists(&format!("{d}/b/c/in/f")), "a copy of all");
    });
}

fn bind_errors() {
    on_tmpfs(|d| {
        dir(&format!("{d}/a"));
        file(&format!("{d}/f"), "");
        err(mount(&format!("{d}/a"), &format!("{d}/f"), None, MS_BIND), ENOTDIR);
        err(mount(&format!("{d}/f"), &format!("{d}/a"), None, MS_BIND), ENOTDIR);
        err(mount(&format!("{d}/none"), &format!("{d}/a"), None, MS_BIND), ENOENT);
        err(mount(&format!("{d}/a"), &format!("{d}/none"), None, MS_BIND), ENOENT);
        err(mount("", &format!("{d}/a"), None, MS_BIND), EINVAL);
        err(sys!(SYS_mount, 0, cstr(format!("{d}/a")), 0, MS_BIND, 0), EINVAL);
        err(sys!(SYS_mount, bad(), cstr(format!("{d}/a")), 0, MS_BIND, 0), EFAULT);
        err(sys!(SYS_mount, cstr(format!("{d}/a")), bad(), 0, MS_BIND, 0), EFAULT);
    });
}

fn remount_bind_read_only() {
    on_tmpfs(|d| {
        let (a, b) = (format!("{d}/a"), format!("{d}/b"));
        dir(&a);
        dir(&b);
        file(&format!("{a}/f"), "x");
        ok(mount(&a, &b, None, MS_BIND));
        ok(mount("", &b, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID));
        err(open_at(&format!("{b}/f"), O_RDWR), EROFS);
        err(open_at(&format!("{b}/g"), O_RDWR | O_CREAT), EROFS);
        err(sys!(SYS_mkdir, cstr(format!("{b}/g")), 0o755), EROFS);
        err(sys!(SYS_unlink, cstr(format!("{b}/f"))), EROFS);
        err(sys!(SYS_chmod, cstr(format!("{b}/f")), 0o600), EROFS);
        err(sys!(SYS_truncate, cstr(format!("{b}/f")), 0), EROFS);
        err(sys!(SYS_faccessat, AT_FDCWD, cstr(format!("{b}/f")), W_OK), EROFS);
        err(sys!(SYS_utimensat, AT_FDCWD, cstr(format!("{b}/f")), 0, 0), EROFS);
        err(sys!(SYS_mknod, cstr(format!("{b}/p")), S_IFIFO | 0o600, 0), EROFS);
        err(sys!(SYS_symlink, c"x", cstr(format!("{b}/l"))), EROFS);
        shut([ok(open_at(&format!("{a}/f"), O_RDWR)) as i32]);
        eq(info(&b).expect("there")[5].clone(), "ro,nosuid,relatime".to_owned());
        ok(mount("", &b, None, MS_BIND | MS_REMOUNT));
        shut([ok(open_at(&format!("{b}/f"), O_RDWR)) as i32]);
        err(mount("", &format!("{b}/f"), None, MS_BIND | MS_REMOUNT), EINVAL);
        err(mount("", &format!("{b}/f"), None, MS_REMOUNT), EINVAL);
    });
}

fn read_only_file_system() {
    on_tmpfs(|d| {
        let (a, b) = (format!("{d}/a"), format!("{d}/b"));
        dir(&a);
        dir(&b);
        ok(mount("none", &a, T, MS_RDONLY));
        ok(mount(&a, &b, None, MS_BIND));
        err(sys!(SYS_mkdir, cstr(format!("{b}/x")), 0o755), EROFS);
        ok(mount("none", &a, None, MS_REMOUNT));
        dir(&format!("{a}/x"));
        // Of the file system and of the mount: the bind mount was made of a read-only one.
        ok(mount("none", &b, None, MS_REMOUNT | MS_RDONLY));
        err(sys!(SYS_mkdir, cstr(format!("{a}/y")), 0o755), EROFS);
    });
}

fn remount_while_written() {
    on_tmpfs(|d| {
        let b = format!("{d}/b");
        dir(&b);
        ok(mount("none", &b, T, 0));
        let fd = ok(open_at(&format!("{b}/f"), O_RDWR | O_CREAT)) as i32;
        err(mount("", &b, None, MS_REMOUNT | MS_RDONLY), EBUSY);
        err(mount("", &b, None, MS_BIND | MS_REMOUNT | MS_RDONLY), EBUSY);
        shut([fd]);
        ok(mount("", &b, None, MS_BIND | MS_REMOUNT | MS_RDONLY));
    });
}

fn noexec() {
    on_tmpfs(|d| {
        ok(mount("none", d, T, MS_NOEXEC));
        let p = format!("{d}/p");
        std::fs::copy("/bin/true", &p).expect("copy");
        err(sys!(SYS_execve, cstr(p.clone()), &[0usize; 1], &[0usize; 1]), EACCES);
        let fd = ok(open_at(&p, O_RDONLY));
        err(sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0), EPERM);
        let at = ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, fd, 0));
        err(sys!(SYS_mprotect, at, 4096, PROT_READ | PROT_EXEC), EACCES);
        err(sys!(SYS_faccessat, AT_FDCWD, cstr(p), X_OK), EACCES);
    });
}

fn nodev() {
    on_tmpfs(|d| {
        let n = format!("{d}/null");
        file(&n, "");
        ok(mount("/dev/null", &n, None, MS_BIND));
        shut([ok(open_at(&n, O_RDWR)) as i32]);
        ok(mount("", &n, None, MS_BIND | MS_REMOUNT | MS_NODEV | MS_NOSUID | MS_NOEXEC));
        err(open_at(&n, O_RDWR), EACCES);
        shut([ok(open_at(&n, O_PATH)) as i32]);
    });
}

fn nosymfollow() {
    on_tmpfs(|d| {
        ok(mount("none", d, T, MS_NOSYMFOLLOW));
        file(&format!("{d}/f"), "");
        ok(sys!(SYS_symlink, c"f", cstr(format!("{d}/l"))));
        err(open_at(&format!("{d}/l"), O_RDONLY), ELOOP);
        let mut buf = [0u8; 8];
        eq(sys!(SYS_readlink, cstr(format!("{d}/l")), &mut buf, 8), 1);
        shut([ok(open_at(&format!("{d}/f"), O_RDONLY)) as i32]);
    });
}

fn access_times_shown() {
    on_tmpfs(|d| {
        let shown = |flags| {
            ok(mount("", d, None, MS_BIND | MS_REMOUNT | flags));
            info(d).expect("there")[5].clone()
        };
        eq(shown(MS_NOATIME), "rw,noatime".to_owned());
        // A remount that says nothing of access times keeps them.
        eq(shown(MS_NODEV), "rw,nodev,noatime".to_owned());
        eq(shown(MS_STRICTATIME), "rw".to_owned());
        eq(shown(MS_NODIRATIME), "rw,nodiratime,relatime".to_owned());
        eq(shown(MS_RELATIME), "rw,relatime".to_owned());
    });
}

fn statfs_flags() {
    on_tmpfs(|d| {
        let flags = |m: u64| {
            ok(mount("", d, None, MS_BIND | MS_REMOUNT | m));
            let mut words = [0i64; 15];
            ok(sys!(SYS_statfs, cstr(d), &mut words));
            words[10] & 0x3fff
        };
        const VALID: i64 = 0x20;
        eq(flags(MS_RDONLY | MS_NOSUID | MS_NODEV), VALID | 1 | 2 | 4 | 0x1000);
        eq(flags(MS_NOEXEC | MS_NOATIME), VALID | 8 | 0x400);
        eq(flags(MS_NOSYMFOLLOW | MS_STRICTATIME), VALID | 0x2000);
        eq(flags(MS_NODIRATIME | MS_RELATIME), VALID | 0x800 | 0x1000);
    });
}

fn umount_errors() {
    on_tmpfs(|d| {
        dir(&format!("{d}/a"));
        err(umount(&format!("{d}/a"), 0), EINVAL);
        err(umount(&format!("{d}/none"), 0), ENOENT);
        err(umount(d, 0x10), EINVAL);
        err(umount(d, MNT_EXPIRE | MNT_DETACH), EINVAL);
        err(umount(d, MNT_EXPIRE | MNT_FORCE), EINVAL);
        err(sys!(SYS_umount2, bad(), 0), EFAULT);
        ok(umount(d, 0));
        err(umount(d, 0), EINVAL);
    });
}

fn umount_busy() {
    on_tmpfs(|d| {
        let m = format!("{d}/m");
        dir(&m);
        ok(mount("none", &m, T, 0));
        file(&format!("{m}/f"), "x");
        let fd = ok(open_at(&format!("{m}/f"), O_RDONLY)) as i32;
        err(umount(&m, 0), EBUSY);
        shut([fd]);
        let fd = ok(open_at(&m, O_PATH)) as i32;
        err(umount(&m, 0), EBUSY);
        shut([fd]);
        ok(sys!(SYS_chdir, cstr(m.clone())));
        err(umount(&m, 0), EBUSY);
        ok(sys!(SYS_chdir, c"/"));
        dir(&format!("{m}/in"));
        ok(mount("none", &format!("{m}/in"), T, 0));
        err(umount(&m, 0), EBUSY);
        ok(umount(&format!("{m}/in"), 0));
        // A mapping keeps it.
        let fd = ok(open_at(&format!("{m}/f"), O_RDONLY)) as i32;
        let at = ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, fd, 0));
        shut([fd]);
        err(umount(&m, 0), EBUSY);
        ok(sys!(SYS_munmap, at, 4096));
        // A program that runs from it.
        let p = format!("{m}/sleep");
        std::fs::copy("/bin/sleep", &p).expect("copy");
        let mut program = std::process::Command::new(&p).args(["100"]).spawn().expect("run");
        err(umount(&m, 0), EBUSY);
        program.kill().expect("kill");
        program.wait().expect("wait");
        ok(umount(&m, 0));
        check(!exists(&format!("{m}/f")), "gone");
    });
}

fn umount_detach() {
    on_tmpfs(|d| {
        let m = format!("{d}/m");
        dir(&m);
        ok(mount("none", &m, T, 0));
        dir(&format!("{m}/in"));
        file(&format!("{m}/f"), "x");
        ok(mount("none", &format!("{m}/in"), T, 0));
        let at = ok(open_at(&m, O_RDONLY | O_DIRECTORY));
        ok(umount(&m, MNT_DETACH));
        check(!exists(&format!("{m}/f")), "out of the tree");
        check(info(&m).is_none(), "and of mountinfo");
        // Who has it goes on with it.
        let fd = ok(sys!(SYS_openat, at, c"f", O_RDWR)) as i32;
        eq(sys!(SYS_write, fd, &b"yy"[..], 2), 2);
        ok(sys!(SYS_mkdirat, at, c"new", 0o755));
        // Up from there is nowhere.
        let up = stat_fd(ok(sys!(SYS_openat, at, c"..", O_RDONLY)));
        eq(up.st_ino, stat_fd(at).st_ino);
        ok(sys!(SYS_fchdir, at));
        let mut buf = [0u8; 64];
        let n = ok(sys!(SYS_getcwd, &mut buf, 64)) as usize;
        check(buf[..n].starts_with(b"(unreachable)"), "getcwd");
    });
}

fn umount_expire() {
    on_tmpfs(|d| {
        let m = format!("{d}/m");
        dir(&m);
        ok(mount("none", &m, T, 0));
        file(&format!("{m}/f"), "x");
        err(umount(&m, MNT_EXPIRE), EAGAIN);
        // Used between.
        check(exists(&format!("{m}/f")), "there");
        err(umount(&m, MNT_EXPIRE), EAGAIN);
        ok(umount(&m, MNT_EXPIRE));
        ok(mount("none", &m, T, 0));
        let fd = ok(open_at(&m, O_RDONLY)) as i32;
        err(umount(&m, MNT_EXPIRE), EBUSY);
        shut([fd]);
    });
}

fn umount_nofollow() {
    on_tmpfs(|d| {
        let m = format!("{d}/m");
        dir(&m);
        ok(sys!(SYS_symlink, c"m", cstr(format!("{d}/l"))));
        ok(mount("none", &m, T, 0));
        err(umount(&format!("{d}/l"), UMOUNT_NOFOLLOW), EINVAL);
        ok(umount(&format!("{d}/l"), 0));
    });
}

fn stacked() {
    on_tmpfs(|d| {
        let m = format!("{d}/m");
        dir(&m);
        for text in ["one", "two", "three"] {
            ok(mount("none", &m, T, 0));
            file(&format!("{m}/f"), text);
        }
        for want in ["three", "two", "one"] {
            eq(text(&format!("{m}/f")), want);
            ok(umount(&m, 0));
        }
        err(umount(&m, 0), EINVAL);
        // The same file system once more.
        ok(mount(d, &m, None, MS_BIND));
        ok(mount(d, &m, None, MS_BIND));
    });
}

fn move_tree() {
    on_tmpfs(|d| {
        for name in ["a", "b"] {
            dir(&format!("{d}/{name}"));
        }
        ok(mount("none", &format!("{d}/a"), T, 0));
        dir(&format!("{d}/a/in"));
        ok(mount("none", &format!("{d}/a/in"), T, 0));
        file(&format!("{d}/a/in/f"), "");
        let id = info(&format!("{d}/a")).expect("there")[0].clone();
        ok(mount(&format!("{d}/a"), &format!("{d}/b"), None, MS_MOVE));
        check(exists(&format!("{d}/b/in/f")) && !exists(&format!("{d}/a/in")), "all of it moved");
        eq(info(&format!("{d}/b")).expect("there")[0].clone(), id);
    });
}

fn move_errors() {
    on_tmpfs(|d| {
        for name in ["a", "b"] {
            dir(&format!("{d}/{name}"));
        }
        file(&format!("{d}/f"), "");
        let (a, b) = (format!("{d}/a"), format!("{d}/b"));
        err(mount(&a, &b, None, MS_MOVE), EINVAL);
        ok(mount("none", &a, T, 0));
        dir(&format!("{a}/in"));
        err(mount(&a, &format!("{a}/in"), None, MS_MOVE), ELOOP);
        err(mount(&a, &format!("{d}/f"), None, MS_MOVE), EINVAL);
        ok(mount("", d, None, MS_SHARED));
        // What is below a shared mount stays.
        err(mount(&a, &b, None, MS_MOVE), EINVAL);
    });
}

fn mount_errors() {
    on_tmpfs(|d| {
        err(mount("none", d, Some("nosuchfs"), 0), ENODEV);
        err(mount("none", d, None, 0), EINVAL);
        err(mount("none", "", T, 0), ENOENT);
        err(sys!(SYS_mount, 0, cstr(d), bad(), 0, 0), EFAULT);
        file(&format!("{d}/f"), "");
        err(mount("none", &format!("{d}/f"), T, 0), ENOTDIR);
        err(mount("none", &format!("{d}/f/x"), T, 0), ENOTDIR);
        // The flags of old programs.
        ok(mount("none", d, T, 0xc0ed_0000 | MS_NODEV));
        check(info(d).expect("there")[5].contains("nodev"), "nodev");
    });
}

fn without_rights() {
    let t = Tmp::new();
    in_child(|| {
        if is_root() {
            ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        }
        let d = t.dir();
        err(mount("none", d, T, 0), EPERM);
        err(mount(d, d, None, MS_BIND), EPERM);
        err(mount("", "/", None, MS_REMOUNT | MS_RDONLY), EPERM);
        err(umount("/proc", 0), EPERM);
        err(umount("/no/such/place", 0), ENOENT);
        err(sys!(SYS_unshare, CLONE_NEWNS), EPERM);
        err(sys!(SYS_unshare, CLONE_NEWUTS), EPERM);
        err(sys!(SYS_pivot_root, c"/", c"/"), EPERM);
        err(sys!(SYS_chroot, c"/"), EPERM);
        err(sys!(SYS_sethostname, c"x", 1), EPERM);
    });
}

fn names_in_use() {
    on_tmpfs(|d| {
        let m = format!("{d}/m");
        dir(&m);
        dir(&format!("{d}/n"));
        ok(mount("none", &m, T, 0));
        err(sys!(SYS_rmdir, cstr(m.clone())), EBUSY);
        err(sys!(SYS_rename, cstr(m.clone()), cstr(format!("{d}/x"))), EBUSY);
        err(sys!(SYS_rename, cstr(format!("{d}/n")), cstr(m.clone())), EBUSY);
        // In a directory above it nothing is in the way.
        dir(&format!("{d}/up"));
        dir(&format!("{d}/up/in"));
        ok(mount("none", &format!("{d}/up/in"), T, 0));
        ok(sys!(SYS_rename, cstr(format!("{d}/up")), cstr(format!("{d}/moved"))));
        check(info(&format!("{d}/moved/in")).is_some(), "it moves with its directory");
    });
}

fn dots_across() {
    on_tmpfs(|d| {
        dir(&format!("{d}/m"));
        ok(mount("none", &format!("{d}/m"), T, 0));
        dir(&format!("{d}/m/in"));
        file(&format!("{d}/here"), "");
        check(exists(&format!("{d}/m/in/../../here")), "up across");
        check(exists(&format!("{d}/m/../here")), "up at the root of a mount");
        ok(sys!(SYS_symlink, c"../here", cstr(format!("{d}/m/l"))));
        shut([ok(open_at(&format!("{d}/m/l"), O_RDONLY)) as i32]);
        // A directory that is covered since it was entered.
        ok(sys!(SYS_chdir, cstr(format!("{d}/m/in"))));
        ok(mount("none", &format!("{d}/m"), T, 0));
        file(&format!("{d}/m/over"), "");
        check(exists("../over"), "up leads into what lies over the parent");
    });
}

fn no_xdev() {
    on_tmpfs(|d| {
        dir(&format!("{d}/m"));
        dir(&format!("{d}/b"));
        ok(mount("none", &format!("{d}/m"), T, 0));
        ok(mount(&format!("{d}/b"), &format!("{d}/b"), None, MS_BIND));
        let at = ok(open_at(d, O_PATH));
        let how = |path: &std::ffi::CStr, resolve: u64| {
            sys!(SYS_openat2, at, path, &[O_RDONLY as u64, 0, resolve], 24)
        };
        err(how(c"m", 1), EXDEV);
        err(how(c"b", 1), EXDEV);
        err(how(c"..", 1), EXDEV);
        ok(how(c".", 1));
        ok(how(c"m", 0x08));
        ok(how(c"m/..", 0x08));
    });
}

fn kinds() {
    on_tmpfs(|d| {
        dir(&format!("{d}/m"));
        let m = format!("{d}/m");
        ok(mount("ram", &m, Some("ramfs"), 0));
        file(&format!("{m}/f"), "x");
        eq(statfs_of(&m).f_type, 0x8584_58f6);
        ok(umount(&m, 0));
        ok(mount_with("pts", &m, Some("devpts"), 0, Some("newinstance,ptmxmode=0666,mode=620")));
        shut([ok(open_at(&format!("{m}/ptmx"), O_RDWR | O_NOCTTY)) as i32]);
        ok(umount(&m, 0));
        err(mount_with("pts", &m, Some("devpts"), 0, Some("nonsense")), EINVAL);
        // Only for who owns what they show.
        let mine = std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| map.contains("4294967295"));
        for kind in ["proc", "sysfs", "mqueue"] {
            let r = mount("none", &m, Some(kind), 0);
            if mine {
                ok(r);
                eq(info(&m).expect("there").iter().any(|f| f == kind), true);
                ok(umount(&m, 0));
            } else {
                err(r, EPERM);
            }
        }
    });
}

fn mountinfo_fields() {
    on_tmpfs(|d| {
        let m = format!("{d}/a b\tc\\d");
        dir(&m);
        ok(mount("so urce", &m, T, MS_NOEXEC));
        let line = info(&format!("{d}/a\\040b\\011c\\134d")).expect("escaped");
        let s = stat_fd(ok(open_at(&m, O_RDONLY)));
        eq(line[2].clone(), format!("{}:{}", major(s.st_dev), minor(s.st_dev)));
        eq(line[3].clone(), "/".to_owned());
        eq(line[5].clone(), "rw,noexec,relatime".to_owned());
        eq(line[6].clone(), "-".to_owned());
        eq(line[8].clone(), "so\\040urce".to_owned());
        let parent = info(d).expect("there");
        eq(line[1].clone(), parent[0].clone());
        let mounts = text("/proc/self/mounts");
        let want = format!("so\\040urce {d}/a\\040b\\011c\\134d tmpfs rw,noexec,relatime");
        check(mounts.lines().any(|l| l.starts_with(&want)), "in mounts");
        check(text("/proc/self/mountstats").contains(" with fstype tmpfs"), "in mountstats");
        // As seen from a changed root.
        ok(sys!(SYS_chroot, cstr(d)));
        ok(sys!(SYS_chdir, c"/"));
        dir("/proc");
    });
}

fn mounts_poll() {
    on_tmpfs(|d| {
        dir(&format!("{d}/m"));
        for name in ["/proc/self/mounts", "/proc/self/mountinfo"] {
            let fd = ok(open_at(name, O_RDONLY)) as i32;
            let mut p = pollfd { fd, events: POLLPRI, revents: 0 };
            eq(sys!(SYS_poll, &mut p, 1, 0), 0);
            ok(mount("none", &format!("{d}/m"), T, 0));
            eq(sys!(SYS_poll, &mut p, 1, -1), 1);
            eq(p.revents, POLLPRI | POLLERR);
            // Told once.
            eq(sys!(SYS_poll, &mut p, 1, 0), 0);
            ok(mount("", &format!("{d}/m"), None, MS_BIND | MS_REMOUNT | MS_NODEV));
            ok(umount(&format!("{d}/m"), 0));
            eq(sys!(SYS_poll, &mut p, 1, -1), 1);
            shut([fd]);
        }
    });
}

fn bind_in_proc() {
    on_tmpfs(|d| {
        file(&format!("{d}/f"), "mine");
        ok(mount(&format!("{d}/f"), "/proc/version", None, MS_BIND));
        eq(text("/proc/version"), "mine");
        check(info("/proc/version").is_some(), "in mountinfo");
        ok(umount("/proc/version", 0));
        check(text("/proc/version").starts_with("Linux"), "back again");
        // Read-only by itself, as containers have it.
        ok(mount("/proc/sys", "/proc/sys", None, MS_BIND));
        ok(mount("", "/proc/sys", None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC));
        errs(open_at("/proc/sys/kernel/hostname", O_WRONLY), &[EROFS, EACCES]);
        check(!text("/proc/sys/kernel/hostname").is_empty(), "read");
    });
}

fn proc_root_of_other() {
    on_tmpfs(|d| {
        let m = format!("{d}/m");
        dir(&m);
        let p = pipe_pair();
        let q = pipe_pair();
        let pid = child(|| {
            ok(sys!(SYS_unshare, CLONE_NEWNS));
            ok(mount("none", &m, T, 0));
            file(&format!("{m}/f"), "inner");
            sys!(SYS_write, p[1], &b"x"[..], 1);
            let mut byte = [0u8; 1];
            sys!(SYS_read, q[0], &mut byte, 1);
            0
        });
        let mut byte = [0u8; 1];
        eq(sys!(SYS_read, p[0], &mut byte, 1), 1);
        check(!exists(&format!("{m}/f")), "not here");
        eq(text(&format!("/proc/{pid}/root{m}/f")), "inner");
        check(text(&format!("/proc/{pid}/mountinfo")).contains(&m), "its own list");
        check(!text("/proc/self/mountinfo").contains(&m), "not in this one");
        // What is in another namespace can be looked at, not bound.
        err(mount(&format!("/proc/{pid}/root{m}"), &m, None, MS_BIND), EINVAL);
        err(mount("none", &format!("/proc/{pid}/root{m}"), T, 0), EINVAL);
        err(umount(&format!("/proc/{pid}/root{m}"), 0), EINVAL);
        sys!(SYS_write, q[1], &b"x"[..], 1);
        exits(pid, 0);
    });
}

fn many_mounts() {
    on_tmpfs(|d| {
        // A tree that doubles with each bind mount of itself ends by ENOSPC, and nothing is harmed.
        dir(&format!("{d}/m"));
        let mut end = 0;
        for _ in 0..24 {
            end = mount(d, &format!("{d}/m"), None, MS_BIND | MS_REC);
            if end != 0 {
                break;
            }
        }
        err(end, ENOSPC);
        check(text("/proc/self/mountinfo").lines().count() > 1000, "many");
        ok(umount(&format!("{d}/m"), MNT_DETACH));
        ok(mount("none", &format!("{d}/m"), T, 0));
    });
}
