//! Shared, slave, private and unbindable mounts (mount_namespaces(7)): in mount namespaces of the tests' own.

use crate::mount::{T, dir, exists, file, on_tmpfs};
use guest_tests::space::{info, mount, umount};
use guest_tests::*;
use libc::*;

cases![shared_peers, shared_namespaces, slaves, unbindable, propagation_errors];

fn shared_peers() {
    on_tmpfs(|d| {
        for name in ["a", "a/in", "b"] {
            dir(&format!("{d}/{name}"));
        }
        let (a, b) = (format!("{d}/a"), format!("{d}/b"));
        ok(mount(&a, &a, None, MS_BIND));
        ok(mount("", &a, None, MS_SHARED));
        ok(mount(&a, &b, None, MS_BIND));
        let group = |path: &str| info(path).expect("there")[6].clone();
        check(group(&a).starts_with("shared:"), "shared");
        eq(group(&a), group(&b));
        ok(mount("none", &format!("{b}/in"), T, 0));
        file(&format!("{a}/in/f"), "");
        check(exists(&format!("{b}/in/f")), "mounted in both");
        eq(group(&format!("{a}/in")), group(&format!("{b}/in")));
        ok(umount(&format!("{a}/in"), 0));
        check(info(&format!("{b}/in")).is_none(), "unmounted in both");
        ok(mount("", &b, None, MS_PRIVATE));
        ok(mount("none", &format!("{a}/in"), T, 0));
        check(info(&format!("{b}/in")).is_none(), "a private one gets nothing");
    });
}

fn shared_namespaces() {
    on_tmpfs(|d| {
        dir(&format!("{d}/m"));
        ok(mount("", d, None, MS_SHARED));
        let p = pipe_pair();
        let q = pipe_pair();
        let m = format!("{d}/m");
        let pid = child(|| {
            ok(sys!(SYS_unshare, CLONE_NEWNS));
            sys!(SYS_write, p[1], &b"x"[..], 1);
            let mut byte = [0u8; 1];
            sys!(SYS_read, q[0], &mut byte, 1);
            // The parent's mount came, and this one goes to the parent.
            check(exists(&format!("{m}/f")), "came");
            ok(umount(&m, 0));
            0
        });
        let mut byte = [0u8; 1];
        eq(sys!(SYS_read, p[0], &mut byte, 1), 1);
        ok(mount("none", &m, T, 0));
        file(&format!("{m}/f"), "");
        sys!(SYS_write, q[1], &b"x"[..], 1);
        exits(pid, 0);
        check(info(&m).is_none(), "the child's umount came back");
    });
}

fn slaves() {
    on_tmpfs(|d| {
        for name in ["a", "a/in", "a/other", "b"] {
            dir(&format!("{d}/{name}"));
        }
        let (a, b) = (format!("{d}/a"), format!("{d}/b"));
        ok(mount(&a, &a, None, MS_BIND));
        ok(mount("", &a, None, MS_SHARED));
        ok(mount(&a, &b, None, MS_BIND));
        ok(mount("", &b, None, MS_SLAVE));
        check(info(&b).expect("there")[6].starts_with("master:"), "slave");
        ok(mount("none", &format!("{a}/in"), T, 0));
        check(info(&format!("{b}/in")).is_some(), "from the master");
        ok(mount("none", &format!("{b}/other"), T, 0));
        check(info(&format!("{a}/other")).is_none(), "not to it");
        // Shared, too.
        ok(mount("", &b, None, MS_SHARED));
        let fields = info(&b).expect("there");
        check(fields[6].starts_with("shared:") && fields[7].starts_with("master:"), "both");
        ok(umount(&format!("{a}/in"), 0));
        check(info(&format!("{b}/in")).is_none(), "gone with the master's");
    });
}

fn unbindable() {
    on_tmpfs(|d| {
        for name in ["a", "a/in", "b", "c"] {
            dir(&format!("{d}/{name}"));
        }
        let a = format!("{d}/a");
        ok(mount("none", &format!("{a}/in"), T, 0));
        file(&format!("{a}/in/f"), "");
        ok(mount("", &format!("{a}/in"), None, MS_UNBINDABLE));
        err(mount(&format!("{a}/in"), &format!("{d}/b"), None, MS_BIND), EINVAL);
        ok(mount(&a, &format!("{d}/b"), None, MS_BIND | MS_REC));
        check(!exists(&format!("{d}/b/in/f")), "left out");
        check(info(&format!("{a}/in")).expect("there").contains(&"unbindable".to_owned()), "shown");
        // A new namespace has it.
        ok(sys!(SYS_unshare, CLONE_NEWNS));
        check(exists(&format!("{a}/in/f")), "copied");
    });
}

fn propagation_errors() {
    on_tmpfs(|d| {
        dir(&format!("{d}/a"));
        err(mount("", &format!("{d}/a"), None, MS_SHARED), EINVAL);
        err(mount("", d, None, MS_SHARED | MS_PRIVATE), EINVAL);
        err(mount("", d, None, MS_SHARED | MS_RDONLY), EINVAL);
        ok(mount("", d, None, MS_SHARED | MS_REC | MS_SILENT));
    });
}
