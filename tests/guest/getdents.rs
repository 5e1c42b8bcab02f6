//! getdents64(2), getcwd(2), chdir(2).

use guest_tests::*;
use libc::*;
use std::collections::BTreeSet;

cases![
    lists_all, dots_and_types, small_buffer, many_entries, rewind, seek_to_offset, errors, removed_directory, remove_while_reading,
    getcwd_basic, getcwd_errors, chdir_errors, fchdir_basic, chdir_shared_by_threads, chdir_through_symlink, cwd_renamed, cwd_removed,
    legacy_getdents, proc_self_fd_lists, no_directory
];

fn dents(fd: i32, len: usize) -> Vec<(String, u8, u64, i64)> {
    let mut all = Vec::new();
    let mut b = vec![0u8; len];
    loop {
        let n = ok(sys!(SYS_getdents64, fd, &mut b[..], len)) as usize;
        if n == 0 {
            return all;
        }
        let mut i = 0;
        while i < n {
            let ino = u64::from_le_bytes(b[i..i + 8].try_into().unwrap());
            let off = i64::from_le_bytes(b[i + 8..i + 16].try_into().unwrap());
            let rec = usize::from(u16::from_le_bytes([b[i + 16], b[i + 17]]));
            eq(rec % 8, 0);
            let name = &b[i + 19..i + rec];
            let end = name.iter().position(|c| *c == 0).expect("a NUL");
            all.push((String::from_utf8_lossy(&name[..end]).into_owned(), b[i + 18], ino, off));
            i += rec;
        }
    }
}

fn names(fd: i32) -> BTreeSet<String> {
    dents(fd, 4096).into_iter().map(|d| d.0).filter(|n| n != "." && n != "..").collect()
}

fn lists_all() {
    let t = Tmp::new();
    for n in ["a", "b", "cc"] {
        shut([t.file(n, b"")]);
    }
    let d = ok(t.open("", O_RDONLY)) as i32;
    eq(names(d), ["a", "b", "cc"].map(String::from).into());
    shut([d]);
}

fn dots_and_types() {
    let t = Tmp::new();
    let f = t.file("f", b"");
    ok(sys!(SYS_mkdir, t.path("d"), 0o755));
    ok(sys!(SYS_symlink, c"f", t.path("l")));
    ok(sys!(SYS_mknod, t.path("p"), S_IFIFO | 0o600, 0));
    let d = ok(t.open("", O_RDONLY)) as i32;
    let l = dents(d, 4096);
    let of = |n: &str| l.iter().find(|e| e.0 == n).unwrap_or_else(|| panic!("no {n}"));
    eq(of(".").1, DT_DIR);
    eq(of("..").1, DT_DIR);
    eq((of("f").1, of("d").1, of("l").1, of("p").1), (DT_REG, DT_DIR, DT_LNK, DT_FIFO));
    eq(of("f").2, stat_fd(f).st_ino);
    eq(of(".").2, stat_fd(d).st_ino);
    shut([d, f]);
}

fn small_buffer() {
    let t = Tmp::new();
    for i in 0..20 {
        shut([t.file(&format!("name{i}"), b"")]);
    }
    let d = ok(t.open("", O_RDONLY)) as i32;
    // Too small for one entry is an error, small buffers only mean more calls.
    err(sys!(SYS_getdents64, d, &mut [0u8; 8], 8), EINVAL);
    eq(dents(d, 64).len(), 22);
    shut([d]);
}

fn many_entries() {
    let t = Tmp::new();
    for i in 0..1000 {
        ok(sys!(SYS_symlink, c"x", t.path(&format!("entry-number-{i}"))));
    }
    let d = ok(t.open("", O_RDONLY)) as i32;
    eq(names(d).len(), 1000);
    eq(dents(d, 4096).len(), 0);
    shut([d]);
}

fn rewind() {
    let t = Tmp::new();
    shut([t.file("a", b"")]);
    let d = ok(t.open("", O_RDONLY)) as i32;
    eq(names(d).len(), 1);
    shut([t.file("b", b"")]);
    eq(sys!(SYS_lseek, d, 0, SEEK_SET), 0);
    eq(names(d).len(), 2);
    shut([d]);
}

fn seek_to_offset() {
    let t = Tmp::new();
    for i in 0..30 {
        shut([t.file(&format!("n{i}"), b"")]);
    }
    let d = ok(t.open("", O_RDONLY)) as i32;
    let all = dents(d, 4096);
    // d_off of an entry leads to the entry after it.
    ok(sys!(SYS_lseek, d, all[10].3, SEEK_SET));
    let rest = dents(d, 4096);
    eq(rest.len(), all.len() - 11);
    eq(&rest[0].0, &all[11].0);
    shut([d]);
}

fn errors() {
    let t = Tmp::new();
    let f = t.file("f", b"");
    let mut b = [0u8; 512];
    err(sys!(SYS_getdents64, -1, &mut b, 512), EBADF);
    err(sys!(SYS_getdents64, f, &mut b, 512), ENOTDIR);
    let d = ok(t.open("", O_RDONLY)) as i32;
    err(sys!(SYS_getdents64, d, bad(), 512), EFAULT);
    let p = ok(t.open("", O_PATH)) as i32;
    err(sys!(SYS_getdents64, p, &mut b, 512), EBADF);
    shut([f, d, p]);
}

fn removed_directory() {
    let t = Tmp::new();
    ok(sys!(SYS_mkdir, t.path("d"), 0o755));
    let d = ok(t.open("d", O_RDONLY)) as i32;
    ok(sys!(SYS_rmdir, t.path("d")));
    let r = sys!(SYS_getdents64, d, &mut [0u8; 512], 512);
    errs(r, &[ENOENT, 0]);
    shut([d]);
}

fn remove_while_reading() {
    let t = Tmp::new();
    for i in 0..200 {
        shut([t.file(&format!("some-longer-name-{i}"), b"")]);
    }
    let d = ok(t.open("", O_RDONLY)) as i32;
    let mut b = [0u8; 1024];
    let mut gone = 0;
    loop {
        let n = ok(sys!(SYS_getdents64, d, &mut b, 1024)) as usize;
        if n == 0 {
            break;
        }
        let mut i = 0;
        while i < n {
            let rec = usize::from(u16::from_le_bytes([b[i + 16], b[i + 17]]));
            if b[i + 19] != b'.' {
                eq(sys!(SYS_unlinkat, d, &b[i + 19] as *const u8, 0), 0);
                gone += 1;
            }
            i += rec;
        }
    }
    // As rm -r does it: no entry is skipped because others went.
    eq(gone, 200);
    shut([d]);
}

fn cwd() -> String {
    let mut b = [0u8; 4096];
    let n = ok(sys!(SYS_getcwd, &mut b, 4096)) as usize;
    eq(b[n - 1], 0);
    String::from_utf8_lossy(&b[..n - 1]).into_owned()
}

fn getcwd_basic() {
    in_child(|| {
        let t = Tmp::new();
        eq(sys!(SYS_chdir, t.path("")), 0);
        eq(cwd(), t.dir());
        ok(sys!(SYS_mkdir, c"sub", 0o755));
        ok(sys!(SYS_chdir, c"sub"));
        eq(cwd(), format!("{}/sub", t.dir()));
        ok(sys!(SYS_chdir, c"../.."));
        ok(sys!(SYS_chdir, c"/"));
        eq(cwd(), "/");
        eq(std::fs::read_link("/proc/self/cwd").unwrap().to_str(), Some("/"));
    });
}

fn getcwd_errors() {
    let mut b = [0u8; 1];
    err(sys!(SYS_getcwd, &mut b, 1), ERANGE);
    err(sys!(SYS_getcwd, &mut b, 0), ERANGE);
    err(sys!(SYS_getcwd, bad(), 4096), EFAULT);
}

fn chdir_errors() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    err(sys!(SYS_chdir, t.path("f")), ENOTDIR);
    err(sys!(SYS_chdir, t.path("no")), ENOENT);
    err(sys!(SYS_chdir, c""), ENOENT);
    err(sys!(SYS_chdir, bad()), EFAULT);
    err(sys!(SYS_fchdir, -1), EBADF);
    let f = t.file("g", b"");
    err(sys!(SYS_fchdir, f), ENOTDIR);
    shut([f]);
}

fn fchdir_basic() {
    in_child(|| {
        let t = Tmp::new();
        for flags in [O_RDONLY, O_PATH] {
            let d = ok(t.open("", flags)) as i32;
            eq(sys!(SYS_fchdir, d), 0);
            eq(cwd(), t.dir());
            ok(sys!(SYS_chdir, c"/"));
            shut([d]);
        }
    });
}

fn chdir_shared_by_threads() {
    in_child(|| {
        let t = Tmp::new();
        let dir = t.path("");
        std::thread::spawn(move || ok(sys!(SYS_chdir, dir))).join().unwrap();
        eq(cwd(), t.dir());
        ok(sys!(SYS_chdir, c"/"));
        // A forked child has its own.
        exits(child(|| sys!(SYS_chdir, dir) as i32), 0);
        eq(cwd(), "/");
    });
}

fn chdir_through_symlink() {
    in_child(|| {
        let t = Tmp::new();
        ok(sys!(SYS_mkdir, t.path("d"), 0o755));
        ok(sys!(SYS_symlink, c"d", t.path("l")));
        ok(sys!(SYS_chdir, t.path("l")));
        eq(cwd(), format!("{}/d", t.dir()));
    });
}

fn cwd_renamed() {
    in_child(|| {
        let t = Tmp::new();
        ok(sys!(SYS_mkdir, t.path("d"), 0o755));
        ok(sys!(SYS_chdir, t.path("d")));
        ok(sys!(SYS_rename, t.path("d"), t.path("e")));
        eq(cwd(), format!("{}/e", t.dir()));
    });
}

fn cwd_removed() {
    in_child(|| {
        let t = Tmp::new();
        ok(sys!(SYS_mkdir, t.path("d"), 0o755));
        ok(sys!(SYS_chdir, t.path("d")));
        ok(sys!(SYS_rmdir, t.path("d")));
        err(sys!(SYS_getcwd, &mut [0u8; 4096], 4096), ENOENT);
        err(sys!(SYS_openat, AT_FDCWD, c"x", O_RDWR | O_CREAT, 0o600), ENOENT);
        let fd = ok(sys!(SYS_openat, AT_FDCWD, c".", O_RDONLY, 0)) as i32;
        shut([fd]);
        ok(sys!(SYS_chdir, c".."));
        eq(cwd(), t.dir());
    });
}

fn legacy_getdents() {
    let t = Tmp::new();
    shut([t.file("a", b"")]);
    let d = ok(t.open("", O_RDONLY)) as i32;
    let n = ok(sys!(SYS_getdents, d, &mut [0u8; 1024], 1024));
    check(n > 0 && n % 8 == 0, "three entries");
    eq(sys!(SYS_getdents, d, &mut [0u8; 1024], 1024), 0);
    shut([d]);
}

fn proc_self_fd_lists() {
    in_child(|| {
        ok(sys!(SYS_dup2, 1, 77));
        let d = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/fd", O_RDONLY, 0)) as i32;
        let n = names(d);
        check(n.contains("77") && n.contains("1") && n.contains(&d.to_string()), "the open descriptors");
        shut([77]);
        ok(sys!(SYS_lseek, d, 0, SEEK_SET));
        check(!names(d).contains("77"), "a closed one is gone");
    });
}

/// What is no directory is that first, however it was opened.
fn no_directory() {
    let t = Tmp::new();
    shut([t.file("f", b"")]);
    let p = pipe_pair();
    let fds = [ok(t.open("f", O_WRONLY)) as i32, ok(t.open("f", O_RDONLY)) as i32, p[0], p[1]];
    for fd in fds {
        err(sys!(SYS_getdents64, fd, bad(), 100), ENOTDIR);
        err(sys!(SYS_getdents, fd, bad(), 100), ENOTDIR);
    }
    shut(fds);
    let place = ok(t.open("", O_PATH | O_DIRECTORY)) as i32;
    err(sys!(SYS_getdents64, place, bad(), 100), EBADF);
    shut([place]);
}
