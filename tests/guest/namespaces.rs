//! unshare(2), setns(2), clone(2) with CLONE_NEW*; user_namespaces(7), mount_namespaces(7), uts_namespaces(7).

use guest_tests::space::{alone, become_root, info, is_root, mount, put, umount};
use guest_tests::*;
use libc::*;

cases![
    new_mounts, new_names, numbers, setns_by_file, setns_by_pidfd, setns_errors, clone_flags, kinds_by_ioctl, maps_written, maps_errors,
    maps_of_root, groups_denied, ids_without_names, capabilities_inside, nested, no_way_back, locked_mounts, set_id_inside, exec_keeps_rights,
    owner_has_rights, unshare_errors, loose_ends, files_of_namespaces, by_pidfd
];

fn exists(path: &str) -> bool {
    sys!(SYS_faccessat, AT_FDCWD, cstr(path), F_OK) == 0
}

fn link(path: &str) -> String {
    std::fs::read_link(path).map(|p| p.to_string_lossy().into_owned()).unwrap_or_default()
}

fn hostname() -> String {
    // SAFETY: plain data, for which zeroes are a value.
    let mut name: utsname = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_uname, &mut name));
    name.nodename.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char).collect()
}

fn open_ns(path: &str) -> i64 {
    sys!(SYS_openat, AT_FDCWD, cstr(path), O_RDONLY | O_CLOEXEC)
}

/// capget(2): effective, permitted.
fn caps() -> [u64; 2] {
    let mut d = [0u32; 6];
    ok(sys!(SYS_capget, &[0x2008_0522u32, 0], &mut d));
    [0, 1].map(|i| u64::from(d[i]) | u64::from(d[i + 3]) << 32)
}

fn new_mounts() {
    let t = Tmp::new();
    alone(|| {
        let d = t.dir();
        ok(sys!(SYS_chdir, cstr(d)));
        let pid = child(|| {
            ok(sys!(SYS_unshare, CLONE_NEWNS));
            ok(mount("none", d, Some("tmpfs"), 0));
            shut([ok(sys!(SYS_openat, AT_FDCWD, t.path("f"), O_RDWR | O_CREAT, 0o644)) as i32]);
            // The working directory is the covered one, in the new namespace.
            check(!exists("f"), "covered");
            eq(ok(sys!(SYS_getcwd, &mut [0u8; 256], 256)) as usize, d.len() + 1);
            0
        });
        exits(pid, 0);
        check(!exists(&format!("{d}/f")) && info(d).is_none(), "only there");
    });
}

fn new_names() {
    alone(|| {
        let before = hostname();
        let pid = child(|| {
            ok(sys!(SYS_unshare, CLONE_NEWUTS));
            eq(hostname(), before.clone());
            ok(sys!(SYS_sethostname, c"quarantine", 10));
            ok(sys!(SYS_setdomainname, c"port", 4));
            eq(hostname(), "quarantine".to_owned());
            eq(std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap(), "quarantine\n".to_owned());
            0
        });
        exits(pid, 0);
        eq(hostname(), before);
    });
}

fn numbers() {
    alone(|| {
        for name in ["mnt", "uts", "user", "pid", "net", "ipc", "cgroup", "time", "pid_for_children"] {
            let path = format!("/proc/self/ns/{name}");
            let text = link(&path);
            check(text.starts_with(name.split('_').next().unwrap()) && text.ends_with(']'), &text);
            let fd = ok(open_ns(&path));
            let s = stat_fd(fd);
            check(text.contains(&format!("[{}]", s.st_ino)), "the number is the inode's");
            eq(s.st_mode, S_IFREG | 0o444);
            eq(link(&format!("/proc/self/fd/{fd}")), text.clone());
            shut([fd as i32]);
        }
        let (mnt, uts) = (link("/proc/self/ns/mnt"), link("/proc/self/ns/uts"));
        eq(link("/proc/self/task/self/ns/mnt").len(), 0);
        ok(sys!(SYS_unshare, CLONE_NEWNS));
        check(link("/proc/self/ns/mnt") != mnt, "a new number");
        eq(link("/proc/self/ns/uts"), uts);
    });
}

fn setns_by_file() {
    let t = Tmp::new();
    alone(|| {
        let d = t.dir();
        ok(sys!(SYS_unshare, CLONE_NEWUTS));
        let (mnt, uts) = (ok(open_ns("/proc/self/ns/mnt")), ok(open_ns("/proc/self/ns/uts")));
        ok(sys!(SYS_unshare, CLONE_NEWNS | CLONE_NEWUTS));
        ok(sys!(SYS_sethostname, c"other", 5));
        ok(mount("none", d, Some("tmpfs"), 0));
        ok(sys!(SYS_mkdir, t.path("x"), 0o755));
        ok(sys!(SYS_chdir, t.path("x")));
        ok(sys!(SYS_setns, mnt, 0));
        check(!exists(&t.path("x").to_string_lossy()), "back");
        // Root and working directory are the namespace's root.
        let mut buf = [0u8; 8];
        eq((ok(sys!(SYS_getcwd, &mut buf, 8)), buf[0]), (2, b'/'));
        eq(hostname(), "other".to_owned());
        ok(sys!(SYS_setns, uts, CLONE_NEWUTS));
        check(hostname() != "other", "its name, too");
    });
}

fn setns_by_pidfd() {
    let t = Tmp::new();
    alone(|| {
        let d = t.dir();
        let p = pipe_pair();
        let q = pipe_pair();
        let pid = child(|| {
            ok(sys!(SYS_unshare, CLONE_NEWNS | CLONE_NEWUTS));
            ok(sys!(SYS_sethostname, c"other", 5));
            ok(mount("none", d, Some("tmpfs"), 0));
            ok(sys!(SYS_mkdir, t.path("x"), 0o755));
            sys!(SYS_write, p[1], &b"x"[..], 1);
            let mut byte = [0u8; 1];
            sys!(SYS_read, q[0], &mut byte, 1);
            0
        });
        let mut byte = [0u8; 1];
        eq(sys!(SYS_read, p[0], &mut byte, 1), 1);
        let fd = ok(sys!(SYS_pidfd_open, pid, 0));
        err(sys!(SYS_setns, fd, 0), EINVAL);
        err(sys!(SYS_setns, fd, CLONE_NEWNS | CLONE_VM), EINVAL);
        ok(sys!(SYS_setns, fd, CLONE_NEWNS | CLONE_NEWUTS));
        check(exists(&t.path("x").to_string_lossy()), "its mounts");
        eq(hostname(), "other".to_owned());
        sys!(SYS_write, q[1], &b"x"[..], 1);
        exits(pid, 0);
        err(sys!(SYS_setns, fd, CLONE_NEWNS), ESRCH);
    });
}

fn setns_errors() {
    alone(|| {
        let mnt = ok(open_ns("/proc/self/ns/mnt"));
        err(sys!(SYS_setns, -1, 0), EBADF);
        err(sys!(SYS_setns, mnt, CLONE_NEWUTS), EINVAL);
        err(sys!(SYS_setns, ok(open_ns("/dev/null")), 0), EINVAL);
        err(sys!(SYS_setns, ok(open_ns("/proc/self/ns/user")), 0), EINVAL);
        // Not while somebody shares root and working directory.
        let pid = ok(sys!(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0));
        if pid == 0 {
            sys!(SYS_pause);
            guest_tests::child::exit_now(0);
        }
        err(sys!(SYS_setns, mnt, 0), EINVAL);
        ok(sys!(SYS_kill, pid, SIGKILL));
        reap(pid as i32);
        ok(sys!(SYS_setns, mnt, 0));
        ok(sys!(SYS_setresuid, 0, 0, 0));
    });
    in_child(|| {
        if is_root() {
            ok(sys!(SYS_setresuid, 1000, 1000, 1000));
            ok(sys!(SYS_prctl, PR_SET_DUMPABLE, 1));
        }
        err(sys!(SYS_setns, ok(open_ns("/proc/self/ns/mnt")), 0), EPERM);
        err(sys!(SYS_setns, ok(open_ns("/proc/self/ns/uts")), 0), EPERM);
    });
}

fn clone_flags() {
    let t = Tmp::new();
    alone(|| {
        let d = t.dir();
        err(sys!(SYS_clone, CLONE_NEWNS | CLONE_FS | SIGCHLD, 0, 0, 0, 0), EINVAL);
        err(sys!(SYS_clone, CLONE_NEWUSER | CLONE_FS | SIGCHLD, 0, 0, 0, 0), EINVAL);
        let pid = ok(sys!(SYS_clone, CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
        if pid == 0 {
            let good = sys!(SYS_sethostname, c"inner", 5) == 0
                && mount("none", "/", None, MS_REC | MS_PRIVATE) == 0
                && mount("none", d, Some("tmpfs"), 0) == 0
                && sys!(SYS_geteuid) == 65534;
            guest_tests::child::exit_now(if good { 0 } else { 1 });
        }
        exits(pid as i32, 0);
        check(hostname() != "inner" && info(d).is_none(), "only the child's");
    });
}

fn kinds_by_ioctl() {
    alone(|| {
        let flags = [("mnt", CLONE_NEWNS), ("uts", CLONE_NEWUTS), ("user", CLONE_NEWUSER), ("pid", CLONE_NEWPID)];
        for (name, flag) in flags {
            let fd = ok(open_ns(&format!("/proc/self/ns/{name}")));
            eq(ok(sys!(SYS_ioctl, fd, 0xb703, 0)), i64::from(flag));
        }
        let mine = stat_fd(ok(open_ns("/proc/self/ns/user"))).st_ino;
        ok(sys!(SYS_unshare, CLONE_NEWUTS));
        let uts = ok(open_ns("/proc/self/ns/uts"));
        let owner = ok(sys!(SYS_ioctl, uts, 0xb701, 0));
        eq(stat_fd(owner).st_ino, mine);
        err(sys!(SYS_ioctl, uts, 0xb702, 0), EINVAL);
        err(sys!(SYS_ioctl, uts, 0xb7ff, 0), ENOTTY);
        let mut uid = [7u32; 1];
        err(sys!(SYS_ioctl, uts, 0xb704, &mut uid), EINVAL);
        let user = ok(open_ns("/proc/self/ns/user"));
        ok(sys!(SYS_ioctl, user, 0xb704, &mut uid));
        // Nothing above one's own is shown.
        err(sys!(SYS_ioctl, user, 0xb702, 0), EPERM);
    });
}

fn map(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default()
}

fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

fn maps_written() {
    in_child(|| {
        let uid = sys!(SYS_geteuid);
        become_root();
        eq((sys!(SYS_getuid), sys!(SYS_geteuid), sys!(SYS_getgid)), (0, 0, 0));
        eq(words(&map("uid_map")), ["0", &uid.to_string(), "1"].map(str::to_owned).to_vec());
        eq(map("setgroups"), "deny\n".to_owned());
        err(put(c"/proc/self/uid_map", "0 0 1"), EPERM);
        err(put(c"/proc/self/setgroups", "allow"), EPERM);
        err(sys!(SYS_setgroups, 0, 0), EPERM);
        // Only the id that has a name.
        err(sys!(SYS_setresuid, 5, 5, 5), EINVAL);
        ok(sys!(SYS_setresuid, 0, 0, 0));
        err(sys!(SYS_setgid, 5), EINVAL);
    });
}

fn maps_errors() {
    in_child(|| {
        let (uid, gid) = (sys!(SYS_geteuid), sys!(SYS_getegid));
        if sys!(SYS_unshare, CLONE_NEWUSER) != 0 {
            skip("needs user namespaces");
        }
        eq((sys!(SYS_getuid), sys!(SYS_getgid)), (65534, 65534));
        eq(map("uid_map"), String::new());
        for wrong in ["", "0", "0 0", "a b c", "0 0 0", "0 0 1 1", "4294967295 0 1", "0 4294967295 1", "0 0 4294967295"] {
            let r = put(c"/proc/self/uid_map", wrong);
            if r != 0 {
                errs(r, &[EINVAL, EPERM]);
            }
        }
        err(put(c"/proc/self/uid_map", "0 0 10\n5 20 1"), EINVAL);
        // Somebody else's.
        err(put(c"/proc/self/uid_map", &format!("0 {} 1", uid + 1)), EPERM);
        err(put(c"/proc/self/uid_map", &format!("0 {uid} 2")), EPERM);
        // Groups only once setgroups is denied.
        err(put(c"/proc/self/gid_map", &format!("0 {gid} 1")), EPERM);
        err(put(c"/proc/self/setgroups", "nonsense"), EINVAL);
        ok(put(c"/proc/self/setgroups", "deny"));
        ok(put(c"/proc/self/gid_map", &format!("7 {gid} 1")));
        ok(put(c"/proc/self/uid_map", &format!("8 {uid} 1\n")));
        eq((sys!(SYS_getuid), sys!(SYS_getgid)), (8, 7));
    });
}

fn maps_of_root() {
    in_child(|| {
        if !is_root() {
            skip("needs root");
        }
        // A parent with the right writes any map, several lines, from outside.
        let (p, q) = (pipe_pair(), pipe_pair());
        let pid = child(|| {
            ok(sys!(SYS_unshare, CLONE_NEWUSER));
            sys!(SYS_write, p[1], &b"x"[..], 1);
            let mut byte = [0u8; 1];
            sys!(SYS_read, q[0], &mut byte, 1);
            eq(sys!(SYS_getuid), 10);
            ok(sys!(SYS_setresuid, 103, 103, 103));
            ok(sys!(SYS_setgroups, 1, &[20u32]));
            0
        });
        let mut byte = [0u8; 1];
        eq(sys!(SYS_read, p[0], &mut byte, 1), 1);
        ok(put(cstr(format!("/proc/{pid}/uid_map")), "10 0 1\n100 5000 10"));
        ok(put(cstr(format!("/proc/{pid}/gid_map")), "0 0 30\n"));
        let map = std::fs::read_to_string(format!("/proc/{pid}/uid_map")).expect("read");
        eq(words(&map), words("10 0 1 100 5000 10"));
        sys!(SYS_write, q[1], &b"x"[..], 1);
        exits(pid, 0);
    });
}

fn groups_denied() {
    in_child(|| {
        if !is_root() {
            skip("needs root");
        }
        if sys!(SYS_unshare, CLONE_NEWUSER) != 0 {
            skip("needs user namespaces");
        }
        // Not before groups have names.
        err(sys!(SYS_setgroups, 0, 0), EPERM);
        err(sys!(SYS_setresgid, 0, 0, 0), EINVAL);
    });
}

fn ids_without_names() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    in_child(|| {
        if is_root() {
            ok(sys!(SYS_chown, t.path("f"), 5555, 5556));
        }
        become_root();
        let s = stat_fd(ok(sys!(SYS_openat, AT_FDCWD, t.path(""), O_PATH)));
        eq((s.st_uid, s.st_gid), (0, 0));
        err(sys!(SYS_chown, t.path("f"), 1, -1), EINVAL);
        err(sys!(SYS_chown, t.path("f"), -1, 1), EINVAL);
        let root = stat_fd(ok(sys!(SYS_openat, AT_FDCWD, t.path("f"), O_PATH)));
        if root.st_uid == 65534 {
            // Root's rights are over files whose owner has a name.
            err(sys!(SYS_chmod, t.path("f"), 0o777), EPERM);
            err(sys!(SYS_chown, t.path("f"), 0, 0), EPERM);
            err(sys!(SYS_openat, AT_FDCWD, t.path("f"), O_RDWR), EACCES);
        }
    });
}

fn capabilities_inside() {
    in_child(|| {
        become_root();
        let all = caps()[0];
        check(all & (1 << 21) != 0 && all & (1 << 0) != 0, "all of them");
        // But not over what is not the namespace's.
        err(sys!(SYS_sethostname, c"x", 1), EPERM);
        err(mount("none", "/tmp", Some("tmpfs"), 0), EPERM);
        err(sys!(SYS_mknod, c"/tmp/never-made", S_IFCHR | 0o600, 0x103), EPERM);
        err(sys!(SYS_settimeofday, &[0u64; 2], 0), EPERM);
        ok(sys!(SYS_unshare, CLONE_NEWUTS | CLONE_NEWNS));
        ok(sys!(SYS_sethostname, c"x", 1));
        ok(mount("none", "/tmp", Some("tmpfs"), 0));
        ok(sys!(SYS_chroot, c"/"));
        err(sys!(SYS_mknod, c"/tmp/never-made", S_IFCHR | 0o600, 0x103), EPERM);
    });
}

fn nested() {
    in_child(|| {
        become_root();
        let outer = link("/proc/self/ns/user");
        ok(sys!(SYS_unshare, CLONE_NEWUSER));
        eq(sys!(SYS_getuid), 65534);
        check(link("/proc/self/ns/user") != outer, "another");
        ok(put(c"/proc/self/setgroups", "deny"));
        ok(put(c"/proc/self/uid_map", "5 0 1"));
        ok(put(c"/proc/self/gid_map", "6 0 1"));
        eq((sys!(SYS_getuid), sys!(SYS_getgid)), (5, 6));
        eq(words(&map("uid_map")), words("5 0 1"));
        let mut end = 0;
        for _ in 0..40 {
            ok(sys!(SYS_prctl, PR_SET_DUMPABLE, 1));
            let uid = sys!(SYS_getuid);
            end = sys!(SYS_unshare, CLONE_NEWUSER);
            if end != 0 {
                break;
            }
            ok(put(c"/proc/self/setgroups", "deny"));
            ok(put(c"/proc/self/uid_map", &format!("5 {uid} 1")));
            ok(put(c"/proc/self/gid_map", "6 6 1"));
        }
        errs(end, &[ENOSPC, EUSERS]);
    });
}

fn no_way_back() {
    in_child(|| {
        let (user, uts) = (ok(open_ns("/proc/self/ns/user")), ok(open_ns("/proc/self/ns/uts")));
        become_root();
        err(sys!(SYS_setns, user, 0), EPERM);
        err(sys!(SYS_setns, uts, 0), EPERM);
    });
}

fn locked_mounts() {
    let t = Tmp::new();
    alone(|| {
        let d = t.dir();
        ok(mount("none", d, Some("tmpfs"), MS_RDONLY | MS_NODEV | MS_NOSUID));
        ok(mount("", d, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NODEV | MS_NOSUID | MS_NOEXEC));
        let (uid, gid) = (sys!(SYS_geteuid), sys!(SYS_getegid));
        ok(sys!(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS));
        ok(put(c"/proc/self/setgroups", "deny"));
        ok(put(c"/proc/self/uid_map", &format!("0 {uid} 1")));
        ok(put(c"/proc/self/gid_map", &format!("0 {gid} 1")));
        // Nothing can be uncovered.
        err(umount(d, 0), EINVAL);
        err(umount(d, MNT_DETACH), EINVAL);
        err(umount("/proc", 0), EINVAL);
        err(mount(d, "/tmp", None, MS_MOVE), EINVAL);
        let up = d.rsplit_once('/').expect("a parent").0.to_owned();
        err(mount(&up, &up, None, MS_BIND), EINVAL);
        err(mount("/", &up, None, MS_BIND), EINVAL);
        err(sys!(SYS_open_tree, AT_FDCWD, cstr(up.clone()), 1), EINVAL);
        // Nor any flag taken away; the file system is another's.
        err(mount("", d, None, MS_BIND | MS_REMOUNT), EPERM);
        err(mount("", d, None, MS_BIND | MS_REMOUNT | MS_RDONLY), EPERM);
        err(mount("", d, None, MS_REMOUNT | MS_RDONLY | MS_NODEV | MS_NOSUID | MS_NOEXEC), EPERM);
        err(sys!(SYS_mount_setattr, AT_FDCWD, cstr(d), 0, &[0u64, 1, 0, 0], 32), EPERM);
        ok(mount("", d, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NODEV | MS_NOSUID | MS_NOEXEC));
        // A copy of the whole keeps it.
        ok(mount(&up, &up, None, MS_BIND | MS_REC));
        err(umount(d, MNT_DETACH), EINVAL);
        // What it has mounted itself goes.
        ok(mount("none", d, Some("tmpfs"), 0));
        ok(umount(d, 0));
        // Taken away with its parent it still covers what is below.
        let above = ok(sys!(SYS_openat, AT_FDCWD, cstr(up.clone()), O_PATH));
        ok(umount(&up, MNT_DETACH));
        let name = d.rsplit_once('/').expect("a name").1;
        let s = stat_fd(ok(sys!(SYS_openat, above, cstr(name), O_PATH)));
        eq(s.st_mode & 0o7777, 0o1777);
    });
}

fn set_id_inside() {
    let t = Tmp::new();
    if !is_root() {
        skip("needs root");
    }
    ok(sys!(SYS_chmod, t.path(""), 0o755));
    std::fs::copy("/proc/self/exe", format!("{}/p", t.dir())).unwrap();
    ok(sys!(SYS_chown, t.path("p"), 0, 0));
    ok(sys!(SYS_chmod, t.path("p"), 0o4755));
    in_child(|| {
        ok(sys!(SYS_setresgid, 1000, 1000, 1000));
        ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        ok(sys!(SYS_prctl, PR_SET_DUMPABLE, 1));
        become_root();
        // Its owner has no name here: the bit counts for nothing.
        let out = std::process::Command::new(format!("{}/p", t.dir())).args(["credentials"]).output().expect("run");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        check(text.starts_with("[0, 0, 0] [0, 0, 0] secure=0"), &text);
    });
}

fn exec_keeps_rights() {
    in_child(|| {
        become_root();
        let out = std::process::Command::new("/proc/self/exe").args(["credentials"]).output().expect("run");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        check(text.starts_with("[0, 0, 0] [0, 0, 0] secure=0 e=1ffffffffff p=1ffffffffff"), &text);
    });
}

fn owner_has_rights() {
    let t = Tmp::new();
    in_child(|| {
        if is_root() {
            ok(sys!(SYS_chmod, t.path(""), 0o777));
            ok(sys!(SYS_setresgid, 1000, 1000, 1000));
            ok(sys!(SYS_setresuid, 1000, 1000, 1000));
            ok(sys!(SYS_prctl, PR_SET_DUMPABLE, 1));
        }
        let (p, q) = (pipe_pair(), pipe_pair());
        let pid = child(|| {
            become_root();
            ok(sys!(SYS_unshare, CLONE_NEWUTS));
            ok(sys!(SYS_sethostname, c"inner", 5));
            sys!(SYS_write, p[1], &b"x"[..], 1);
            let mut byte = [0u8; 1];
            sys!(SYS_read, q[0], &mut byte, 1);
            0
        });
        let mut byte = [0u8; 1];
        if sys!(SYS_read, p[0], &mut byte, 1) != 1 {
            skip("needs user namespaces");
        }
        // Who made it may enter it, and has all rights there.
        let uts = ok(open_ns(&format!("/proc/{pid}/ns/uts")));
        err(sys!(SYS_setns, uts, 0), EPERM);
        ok(sys!(SYS_setns, ok(open_ns(&format!("/proc/{pid}/ns/user"))), 0));
        eq(sys!(SYS_getuid), 0);
        ok(sys!(SYS_setns, uts, 0));
        eq(hostname(), "inner".to_owned());
        ok(sys!(SYS_sethostname, c"mine", 4));
        sys!(SYS_write, q[1], &b"x"[..], 1);
        exits(pid, 0);
    });
}

fn unshare_errors() {
    in_child(|| {
        err(sys!(SYS_unshare, 1u64), EINVAL);
        let thread = std::thread::spawn(|| loop {
            sys!(SYS_pause);
        });
        err(sys!(SYS_unshare, CLONE_NEWUSER), EINVAL);
        drop(thread);
    });
}

fn loose_ends() {
    alone(|| {
        // A thousand namespaces that are left behind.
        for _ in 0..200 {
            ok(sys!(SYS_unshare, CLONE_NEWNS | CLONE_NEWUTS));
        }
        check(exists("/proc/self/mountinfo"), "still there");
    });
}

fn files_of_namespaces() {
    let t = Tmp::new();
    shut([t.file("ns", b"")]);
    alone(|| {
        ok(mount("none", t.dir(), Some("tmpfs"), 0));
        shut([t.file("ns", b"")]);
        let p = t.path("ns").to_string_lossy().into_owned();
        ok(sys!(SYS_unshare, CLONE_NEWUTS));
        ok(sys!(SYS_sethostname, c"kept", 4));
        ok(mount("/proc/self/ns/uts", &p, None, MS_BIND));
        let number = link("/proc/self/ns/uts");
        eq(info(&p).expect("there")[3].clone(), number.clone());
        ok(sys!(SYS_unshare, CLONE_NEWUTS));
        ok(sys!(SYS_sethostname, c"other", 5));
        ok(sys!(SYS_setns, ok(open_ns(&p)), CLONE_NEWUTS));
        eq(hostname(), "kept".to_owned());
        // That of mounts would hold itself.
        err(mount("/proc/self/ns/mnt", &p, None, MS_BIND), EINVAL);
    });
}

/// PIDFD_GET_*_NAMESPACE.
fn by_pidfd() {
    let names =
        ["cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "time", "time_for_children", "user", "uts"];
    in_child(|| {
        let own = ok(sys!(SYS_pidfd_open, sys!(SYS_getpid), 0)) as i32;
        for (nr, name) in (1..).zip(names) {
            let fd = ok(sys!(SYS_ioctl, own, 0xff00 + nr, 0)) as i32;
            let link = stat_of(&format!("/proc/self/ns/{name}"));
            eq((name, stat_fd(fd).st_ino), (name, link));
            eq(sys!(SYS_fcntl, fd, F_GETFD), i64::from(FD_CLOEXEC));
            shut([fd]);
            err(sys!(SYS_ioctl, own, 0xff00 + nr, 1), EINVAL);
        }
        let p = pipe_pair();
        let pid = child(|| {
            shut([p[1]]);
            sys!(SYS_read, p[0], &mut [0u8], 1);
            0
        });
        let other = ok(sys!(SYS_pidfd_open, pid, 0)) as i32;
        shut([ok(sys!(SYS_ioctl, other, 0xff0a, 0)) as i32]);
        if is_root() {
            ok(sys!(SYS_setresuid, 1000, 1000, 1000));
            err(sys!(SYS_ioctl, other, 0xff0a, 0), EACCES);
        }
        shut(p);
        exits(pid, 0);
        err(sys!(SYS_ioctl, other, 0xff0a, 0), ESRCH);
    });
}

fn stat_of(path: &str) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).expect("a file").ino()
}
