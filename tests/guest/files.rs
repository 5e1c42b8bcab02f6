//! flock(2), inotify(7), memfd_create(2), /proc/self, ptys and other files with a life of their own.

use guest_tests::*;
use libc::*;

cases![
    flock_exclusive, flock_shared, flock_converts, flock_failed_conversion, flock_wait, flock_errors, flock_follows_description, memfd_basic, memfd_seals, memfd_errors,
    memfd_mapped_between, inotify_events, inotify_rename_cookie, inotify_remove_watch, inotify_errors, inotify_poll, proc_maps, proc_status,
    proc_stat, proc_cmdline_environ, proc_exe, proc_fd_links, proc_task, proc_other_process, proc_missing, proc_system_files, proc_self_links,
    proc_mounts, proc_limits, proc_auxv, pty_basic, pty_raw_and_echo, pty_winsize, pty_hangup, tty_errors, dev_directory, dev_fd_links,
    process_vm, kcmp_or_pidfd_getfd, kcmp_objects, kcmp_not_permitted, readahead_fadvise, etc_is_readable, dev_shm, cachestat_or_enosys
];

fn reopen(t: &Tmp) -> i32 {
    ok(t.open("f", O_RDWR)) as i32
}

fn flock_exclusive() {
    let t = Tmp::new();
    let a = t.file("f", b"");
    let b = reopen(&t);
    ok(sys!(SYS_flock, a, LOCK_EX));
    err(sys!(SYS_flock, b, LOCK_EX | LOCK_NB), EAGAIN);
    err(sys!(SYS_flock, b, LOCK_SH | LOCK_NB), EAGAIN);
    ok(sys!(SYS_flock, a, LOCK_UN));
    ok(sys!(SYS_flock, b, LOCK_EX | LOCK_NB));
    shut([b]);
    ok(sys!(SYS_flock, a, LOCK_EX | LOCK_NB));
    shut([a]);
}

fn flock_shared() {
    let t = Tmp::new();
    let a = t.file("f", b"");
    let b = reopen(&t);
    ok(sys!(SYS_flock, a, LOCK_SH));
    ok(sys!(SYS_flock, b, LOCK_SH | LOCK_NB));
    err(sys!(SYS_flock, a, LOCK_EX | LOCK_NB), EAGAIN);
    shut([a, b]);
}

fn flock_converts() {
    let t = Tmp::new();
    let a = t.file("f", b"");
    ok(sys!(SYS_flock, a, LOCK_EX));
    ok(sys!(SYS_flock, a, LOCK_EX));
    ok(sys!(SYS_flock, a, LOCK_SH));
    let b = reopen(&t);
    ok(sys!(SYS_flock, b, LOCK_SH | LOCK_NB));
    shut([a, b]);
}

fn flock_failed_conversion() {
    let t = Tmp::new();
    let a = t.file("f", b"");
    let b = ok(t.open("f", O_RDONLY)) as i32;
    ok(sys!(SYS_flock, a, LOCK_SH));
    ok(sys!(SYS_flock, b, LOCK_SH));
    // The old lock is given up first, and lost when the new one cannot be had.
    err(sys!(SYS_flock, a, LOCK_EX | LOCK_NB), EAGAIN);
    ok(sys!(SYS_flock, b, LOCK_EX | LOCK_NB));
    shut([a, b]);
}

fn flock_wait() {
    let t = Tmp::new();
    let a = t.file("f", b"");
    ok(sys!(SYS_flock, a, LOCK_EX));
    let pid = child(|| {
        let b = reopen(&t);
        sys!(SYS_flock, b, LOCK_EX) as i32
    });
    sleep_ms(30);
    eq(sys!(SYS_wait4, pid, 0, WNOHANG, 0), 0);
    ok(sys!(SYS_flock, a, LOCK_UN));
    exits(pid, 0);
    shut([a]);
}

fn flock_errors() {
    err(sys!(SYS_flock, 9999, LOCK_EX), EBADF);
    let t = Tmp::new();
    let a = t.file("f", b"");
    err(sys!(SYS_flock, a, 0), EINVAL);
    err(sys!(SYS_flock, a, 64), EINVAL);
    shut([a]);
}

fn flock_follows_description() {
    let t = Tmp::new();
    let a = t.file("f", b"");
    ok(sys!(SYS_flock, a, LOCK_EX));
    // A child's copy is the same lock.
    exits(child(|| sys!(SYS_flock, a, LOCK_EX | LOCK_NB) as i32), 0);
    let d = ok(sys!(SYS_dup, a)) as i32;
    shut([a]);
    let b = reopen(&t);
    err(sys!(SYS_flock, b, LOCK_EX | LOCK_NB), EAGAIN);
    shut([d]);
    ok(sys!(SYS_flock, b, LOCK_EX | LOCK_NB));
    shut([b]);
}

fn memfd_basic() {
    let fd = ok(sys!(SYS_memfd_create, c"name", MFD_CLOEXEC)) as i32;
    eq(sys!(SYS_fcntl, fd, F_GETFD), 1);
    eq(sys!(SYS_write, fd, b"abc", 3), 3);
    let s = stat_fd(fd);
    eq((s.st_size, s.st_nlink, s.st_mode & S_IFMT), (3, 0, S_IFREG));
    let l = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
    eq(l.to_str(), Some("/memfd:name (deleted)"));
    shut([fd]);
}

fn memfd_seals() {
    let fd = ok(sys!(SYS_memfd_create, c"s", MFD_ALLOW_SEALING)) as i32;
    eq(sys!(SYS_write, fd, b"abc", 3), 3);
    eq(sys!(SYS_fcntl, fd, F_GET_SEALS), 0);
    ok(sys!(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
    err(sys!(SYS_ftruncate, fd, 1), EPERM);
    err(sys!(SYS_ftruncate, fd, 10), EPERM);
    err(sys!(SYS_pwrite64, fd, b"xyzw", 4, 2), EPERM);
    eq(sys!(SYS_pwrite64, fd, b"x", 1, 0), 1);
    ok(sys!(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_WRITE));
    err(sys!(SYS_pwrite64, fd, b"x", 1, 0), EPERM);
    err(sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), EPERM);
    ok(sys!(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SEAL));
    err(sys!(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK), EPERM);
    eq(sys!(SYS_fcntl, fd, F_GET_SEALS), 15);
    shut([fd]);
    let fd = ok(sys!(SYS_memfd_create, c"n", 0)) as i32;
    eq(sys!(SYS_fcntl, fd, F_GET_SEALS), i64::from(F_SEAL_SEAL));
    shut([fd]);
}

fn memfd_errors() {
    err(sys!(SYS_memfd_create, bad(), 0), EFAULT);
    err(sys!(SYS_memfd_create, c"x", 0x100), EINVAL);
    err(sys!(SYS_memfd_create, cstr("n".repeat(250)), 0), EINVAL);
}

fn memfd_mapped_between() {
    let fd = ok(sys!(SYS_memfd_create, c"m", 0)) as i32;
    ok(sys!(SYS_ftruncate, fd, 4096));
    let p = ok(sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) as *mut u8;
    exits(
        child(|| {
            let q = sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) as *mut u8;
            // SAFETY: the page was mapped a moment ago.
            unsafe { q.write_volatile(77) };
            0
        }),
        0,
    );
    // SAFETY: the page was mapped above.
    eq(unsafe { p.read_volatile() }, 77);
    let mut b = [0u8; 1];
    eq(sys!(SYS_pread64, fd, &mut b, 1, 0), 1);
    eq(b[0], 77);
    ok(sys!(SYS_munmap, p, 4096));
    shut([fd]);
}

/// (watch, mask, cookie, name) of all events there.
fn events(fd: i32) -> Vec<(i32, u32, u32, String)> {
    let mut b = vec![0u8; 4096];
    let n = sys!(SYS_read, fd, &mut b[..], 4096);
    if n == -i64::from(EAGAIN) {
        return vec![];
    }
    let n = ok(n) as usize;
    let (mut i, mut v) = (0, vec![]);
    let u = |i: usize, b: &[u8]| u32::from_ne_bytes(b[i..i + 4].try_into().unwrap());
    while i < n {
        let len = u(i + 12, &b) as usize;
        let name = String::from_utf8_lossy(&b[i + 16..i + 16 + len]).trim_end_matches('\0').to_string();
        v.push((u(i, &b) as i32, u(i + 4, &b), u(i + 8, &b), name));
        i += 16 + len;
    }
    v
}

fn inotify_events() {
    let t = Tmp::new();
    let fd = ok(sys!(SYS_inotify_init1, IN_NONBLOCK | IN_CLOEXEC)) as i32;
    let w = ok(sys!(SYS_inotify_add_watch, fd, t.path(""), IN_CREATE | IN_DELETE | IN_CLOSE_WRITE | IN_MODIFY)) as i32;
    eq(events(fd), vec![]);
    let f = ok(t.open("a", O_RDWR | O_CREAT)) as i32;
    eq(sys!(SYS_write, f, b"x", 1), 1);
    shut([f]);
    ok(sys!(SYS_unlink, t.path("a")));
    let e: Vec<_> = events(fd).into_iter().map(|e| (e.0, e.1, e.3)).collect();
    let a = || "a".to_string();
    eq(e, vec![(w, IN_CREATE, a()), (w, IN_MODIFY, a()), (w, IN_CLOSE_WRITE, a()), (w, IN_DELETE, a())]);
    ok(sys!(SYS_mkdir, t.path("d"), 0o755));
    eq(events(fd)[0].1, IN_CREATE | IN_ISDIR);
    shut([fd]);
}

fn inotify_rename_cookie() {
    let t = Tmp::new();
    shut([t.file("a", b"")]);
    let fd = ok(sys!(SYS_inotify_init1, IN_NONBLOCK)) as i32;
    ok(sys!(SYS_inotify_add_watch, fd, t.path(""), IN_MOVE));
    ok(sys!(SYS_rename, t.path("a"), t.path("b")));
    let e = events(fd);
    eq(e.iter().map(|x| (x.1, x.3.as_str())).collect::<Vec<_>>(), vec![(IN_MOVED_FROM, "a"), (IN_MOVED_TO, "b")]);
    check(e[0].2 != 0 && e[0].2 == e[1].2, "one cookie");
    shut([fd]);
}

fn inotify_remove_watch() {
    let t = Tmp::new();
    shut([t.file("a", b"")]);
    let fd = ok(sys!(SYS_inotify_init1, IN_NONBLOCK)) as i32;
    let w = ok(sys!(SYS_inotify_add_watch, fd, t.path("a"), IN_ALL_EVENTS));
    // The same file is the same watch.
    eq(sys!(SYS_inotify_add_watch, fd, t.path("a"), IN_DELETE_SELF | IN_ATTRIB), w);
    ok(sys!(SYS_inotify_rm_watch, fd, w));
    eq(events(fd)[0].1, IN_IGNORED);
    err(sys!(SYS_inotify_rm_watch, fd, w), EINVAL);
    let w = ok(sys!(SYS_inotify_add_watch, fd, t.path("a"), IN_DELETE_SELF));
    ok(sys!(SYS_unlink, t.path("a")));
    eq(events(fd).iter().map(|e| e.1).collect::<Vec<_>>(), vec![IN_DELETE_SELF, IN_IGNORED]);
    check(w > 0, "a watch");
    shut([fd]);
}

fn inotify_errors() {
    err(sys!(SYS_inotify_init1, 1), EINVAL);
    let fd = ok(sys!(SYS_inotify_init)) as i32;
    err(sys!(SYS_inotify_add_watch, fd, c"/no/such", IN_CREATE), ENOENT);
    err(sys!(SYS_inotify_add_watch, fd, bad(), IN_CREATE), EFAULT);
    err(sys!(SYS_inotify_add_watch, fd, c"/", 0), EINVAL);
    err(sys!(SYS_inotify_add_watch, 9999, c"/", IN_CREATE), EBADF);
    let p = pipe_pair();
    err(sys!(SYS_inotify_add_watch, p[0], c"/", IN_CREATE), EINVAL);
    err(sys!(SYS_inotify_rm_watch, fd, 99), EINVAL);
    shut([fd, p[0], p[1]]);
}

fn inotify_poll() {
    let t = Tmp::new();
    let fd = ok(sys!(SYS_inotify_init1, IN_NONBLOCK)) as i32;
    ok(sys!(SYS_inotify_add_watch, fd, t.path(""), IN_CREATE));
    let mut p = pollfd { fd, events: POLLIN, revents: 0 };
    eq(sys!(SYS_poll, &mut p, 1, 0), 0);
    shut([t.file("x", b"")]);
    eq(sys!(SYS_poll, &mut p, 1, -1), 1);
    err(sys!(SYS_read, fd, &mut [0u8; 8], 8), EINVAL);
    shut([fd]);
}

fn text(p: &str) -> String {
    match std::fs::read_to_string(p) {
        Ok(s) => s,
        Err(e) => panic!("{p}: {e}"),
    }
}

fn proc_maps() {
    let p = ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) as usize;
    let m = text("/proc/self/maps");
    check(m.contains("[stack]") && m.contains("/guest"), "stack and program");
    let at = |a: usize| {
        m.lines().any(|l| {
            let (s, e) = l.split(' ').next().unwrap().split_once('-').unwrap();
            (usize::from_str_radix(s, 16).unwrap()..usize::from_str_radix(e, 16).unwrap()).contains(&a)
        })
    };
    check(at(p), "the new page");
    check(at(proc_maps as *const () as usize), "this code");
    ok(sys!(SYS_munmap, p, 4096));
    check(text("/proc/self/smaps").contains("Rss:"), "smaps");
}

fn field(s: &str, key: &str) -> String {
    s.lines().find_map(|l| l.strip_prefix(key)).unwrap_or_else(|| panic!("no {key}")).trim().to_string()
}

fn proc_status() {
    let s = text("/proc/self/status");
    eq(field(&s, "Pid:"), sys!(SYS_getpid).to_string());
    eq(field(&s, "PPid:"), sys!(SYS_getppid).to_string());
    eq(field(&s, "Uid:").split('\t').next().unwrap().to_string(), sys!(SYS_getuid).to_string());
    check(field(&s, "VmRSS:").ends_with("kB") && field(&s, "State:").starts_with('R'), "memory and state");
    check(s.contains("Threads:") && s.contains("SigBlk:") && s.contains("CapEff:"), "the usual lines");
}

fn proc_stat() {
    let s = text("/proc/self/stat");
    let (a, b) = s.rsplit_once(") ").unwrap();
    check(a.starts_with(&format!("{} (", sys!(SYS_getpid))), "pid and name");
    let f: Vec<&str> = b.trim_end().split(' ').collect();
    eq(f.len(), 50);
    eq((f[0], f[1]), ("R", sys!(SYS_getppid).to_string().as_str()));
    eq(text("/proc/self/statm").split(' ').count(), 7);
}

fn proc_cmdline_environ() {
    let c = std::fs::read("/proc/self/cmdline").unwrap();
    let want: Vec<u8> = std::env::args().flat_map(|a| [a.as_bytes(), b"\0"].concat()).collect();
    eq(c, want);
    let e = std::fs::read("/proc/self/environ").unwrap();
    check(std::env::var("PATH").map_or(true, |p| e.windows(p.len()).any(|w| w == p.as_bytes())), "the environment");
}

fn proc_exe() {
    let l = std::fs::read_link("/proc/self/exe").unwrap();
    eq(Some(l.file_name().unwrap().to_owned()), std::env::current_exe().unwrap().file_name().map(Into::into));
    check(l.to_str().unwrap().ends_with("/guest"), "this program");
}

fn proc_fd_links() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    let link = |fd: i32| std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap().to_str().unwrap().to_string();
    eq(link(fd), t.path("f").to_str().unwrap());
    ok(sys!(SYS_unlink, t.path("f")));
    eq(link(fd), format!("{} (deleted)", t.path("f").to_str().unwrap()));
    let p = pipe_pair();
    eq(link(p[0]), format!("pipe:[{}]", stat_fd(p[0]).st_ino));
    let e = ok(sys!(SYS_eventfd2, 0, 0)) as i32;
    eq(link(e), "anon_inode:[eventfd]");
    ok(sys!(SYS_lseek, fd, 5, SEEK_SET));
    check(text(&format!("/proc/self/fdinfo/{fd}")).starts_with("pos:\t5\n"), "fdinfo");
    shut([fd, p[0], p[1], e]);
}

fn proc_task() {
    in_child(|| {
        let n = || std::fs::read_dir("/proc/self/task").unwrap().count();
        eq(n(), 1);
        let p = pipe_pair();
        let h = std::thread::spawn(move || sys!(SYS_read, p[0], &mut [0u8; 1], 1));
        while n() != 2 {
            sleep_ms(1);
        }
        sys!(SYS_write, p[1], b"x", 1);
        h.join().unwrap();
    });
}

fn proc_other_process() {
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_read, p[0], &mut [0u8; 1], 1);
        0
    });
    let s = text(&format!("/proc/{pid}/status"));
    eq(field(&s, "PPid:"), sys!(SYS_getpid).to_string());
    until_child_asleep(pid.into());
    check(field(&text(&format!("/proc/{pid}/status")), "State:").starts_with('S'), "it sleeps");
    check(std::fs::read_dir("/proc").unwrap().flatten().any(|e| e.file_name() == *pid.to_string()), "listed");
    sys!(SYS_write, p[1], b"x", 1);
    // SAFETY: plain data, for which zeroes are a value.
    let mut i: siginfo_t = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_waitid, P_PID, pid, &mut i, WEXITED | WNOWAIT, 0));
    check(field(&text(&format!("/proc/{pid}/status")), "State:").starts_with('Z'), "a zombie");
    exits(pid, 0);
    check(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "gone");
    shut(p);
}

fn proc_missing() {
    err(sys!(SYS_openat, AT_FDCWD, c"/proc/99999999/status", O_RDONLY, 0), ENOENT);
    err(sys!(SYS_openat, AT_FDCWD, c"/proc/self/nonesuch", O_RDONLY, 0), ENOENT);
    err(sys!(SYS_openat, AT_FDCWD, c"/proc/new", O_RDWR | O_CREAT, 0o600), ENOENT);
    errs(sys!(SYS_mkdir, c"/proc/d", 0o755), &[ENOENT, EACCES, EPERM]);
}

fn proc_system_files() {
    for (f, part) in [
        ("cpuinfo", "processor\t: 0"), ("meminfo", "MemTotal:"), ("stat", "cpu "), ("uptime", "."), ("loadavg", "/"), ("version", "Linux version"),
        ("filesystems", "tmpfs"), ("mounts", " / "), ("self/mountinfo", " / / "), ("sys/kernel/pid_max", "\n"), ("sys/vm/overcommit_memory", "\n"),
        ("sys/kernel/random/boot_id", "-"), ("sys/fs/file-max", "\n"), ("self/cgroup", "::"), ("self/oom_score_adj", "\n"), ("self/limits", "Max open files"),
    ] {
        check(text(&format!("/proc/{f}")).contains(part), &format!("/proc/{f} has {part:?}"));
    }
}

fn proc_self_links() {
    eq(std::fs::read_link("/proc/self").unwrap().to_str().unwrap(), sys!(SYS_getpid).to_string());
    eq(std::fs::read_link("/proc/thread-self").unwrap().to_str().unwrap(), format!("{}/task/{}", sys!(SYS_getpid), sys!(SYS_gettid)));
    eq(std::fs::read_link("/proc/self/root").unwrap().to_str(), Some("/"));
    check(std::fs::read_link("/proc/self/ns/pid").unwrap().to_str().unwrap().starts_with("pid:["), "a namespace");
}

fn proc_mounts() {
    check(text("/proc/self/mounts").lines().any(|l| l.split(' ').nth(1) == Some("/proc")), "/proc is a mount");
}

fn proc_limits() {
    in_child(|| {
        ok(sys!(SYS_setrlimit, RLIMIT_NOFILE, &[123u64, 456]));
        let l = text("/proc/self/limits");
        let f = l.lines().find(|l| l.starts_with("Max open files")).unwrap();
        eq(f.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), vec!["123", "456"]);
    });
}

fn proc_auxv() {
    let a = std::fs::read("/proc/self/auxv").unwrap();
    let w: Vec<u64> = a.chunks(8).map(|c| u64::from_ne_bytes(c.try_into().unwrap())).collect();
    let page = w.chunks(2).find(|p| p[0] == AT_PAGESZ).unwrap()[1];
    eq(page, 4096);
}

fn pty() -> (i32, i32) {
    let m = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/ptmx", O_RDWR | O_NOCTTY, 0)) as i32;
    let mut n = -1i32;
    ok(sys!(SYS_ioctl, m, 0x8004_5430u32, &mut n)); // TIOCGPTN
    ok(sys!(SYS_ioctl, m, 0x4004_5431, &0i32)); // TIOCSPTLCK
    // SAFETY: a number that the call has written.
    let n = unsafe { (&raw const n).read_volatile() };
    let s = ok(sys!(SYS_openat, AT_FDCWD, cstr(format!("/dev/pts/{n}")), O_RDWR | O_NOCTTY, 0)) as i32;
    (m, s)
}

fn pty_basic() {
    let (m, s) = pty();
    // SAFETY: a descriptor and nothing else.
    check(unsafe { isatty(s) } == 1, "a terminal");
    // Canonical mode: a line is read when it is complete; it is echoed, and newlines become CR LF on the way out.
    eq(sys!(SYS_write, m, b"hi\n", 3), 3);
    let mut b = [0u8; 16];
    eq(sys!(SYS_read, s, &mut b, 16), 3);
    eq(sys!(SYS_read, m, &mut b, 16), 4);
    eq(&b[..4], b"hi\r\n");
    eq(sys!(SYS_write, s, b"out\n", 4), 4);
    eq(sys!(SYS_read, m, &mut b, 16), 5);
    // Erase and kill.
    eq(sys!(SYS_write, m, b"ab\x7fc\n", 5), 5);
    eq(sys!(SYS_read, s, &mut b, 16), 3);
    eq(&b[..3], b"ac\n");
    // End of file.
    eq(sys!(SYS_write, m, b"\x04", 1), 1);
    eq(sys!(SYS_read, s, &mut b, 16), 0);
    shut([m, s]);
}

fn pty_raw_and_echo() {
    let (m, s) = pty();
    // SAFETY: plain data, for which zeroes are a value; then descriptors, and references to it.
    let mut t: termios = unsafe { std::mem::zeroed() };
    unsafe {
        eq(tcgetattr(s, &mut t), 0);
        check(t.c_lflag & (ICANON | ECHO | ISIG) == ICANON | ECHO | ISIG, "the defaults");
        cfmakeraw(&mut t);
        eq(tcsetattr(s, TCSANOW, &t), 0);
    }
    eq(sys!(SYS_write, m, b"\x03x", 2), 2);
    let mut b = [0u8; 16];
    eq(sys!(SYS_read, s, &mut b, 16), 2);
    ok(sys!(SYS_fcntl, m, F_SETFL, O_NONBLOCK | O_RDWR));
    err(sys!(SYS_read, m, &mut b, 16), EAGAIN);
    shut([m, s]);
}

fn pty_winsize() {
    let (m, s) = pty();
    ok(sys!(SYS_ioctl, m, TIOCSWINSZ, &[24u16, 80, 0, 0]));
    let mut w = [0u16; 4];
    ok(sys!(SYS_ioctl, s, TIOCGWINSZ, &mut w));
    eq(w, [24, 80, 0, 0]);
    shut([m, s]);
}

fn pty_hangup() {
    let (m, s) = pty();
    shut([m]);
    eq(sys!(SYS_read, s, &mut [0u8; 4], 4), 0);
    err(sys!(SYS_write, s, b"x", 1), EIO);
    shut([s]);
    let (m, s) = pty();
    shut([s]);
    err(sys!(SYS_read, m, &mut [0u8; 4], 4), EIO);
    shut([m]);
}

fn tty_errors() {
    let t = Tmp::new();
    let f = t.file("f", b"");
    let mut x = [0u8; 64];
    err(sys!(SYS_ioctl, f, TCGETS, &mut x), ENOTTY);
    err(sys!(SYS_ioctl, f, TIOCGWINSZ, &mut x), ENOTTY);
    err(sys!(SYS_ioctl, f, 0xdead_beefu32, &mut x), ENOTTY);
    shut([f]);
}

fn dev_directory() {
    for (n, kind) in [("null", S_IFCHR), ("zero", S_IFCHR), ("full", S_IFCHR), ("random", S_IFCHR), ("urandom", S_IFCHR), ("tty", S_IFCHR), ("pts", S_IFDIR), ("shm", S_IFDIR)] {
        // SAFETY: plain data, for which zeroes are a value.
        let mut s: stat = unsafe { std::mem::zeroed() };
        ok(sys!(SYS_stat, cstr(format!("/dev/{n}")), &mut s));
        eq(s.st_mode & S_IFMT, kind);
    }
    check(std::fs::read_dir("/dev").unwrap().flatten().any(|e| e.file_name() == "null"), "listed");
}

fn dev_fd_links() {
    eq(std::fs::read_link("/dev/fd").unwrap().to_str(), Some("/proc/self/fd"));
    eq(std::fs::read_link("/dev/stdin").unwrap().to_str(), Some("/proc/self/fd/0"));
}

fn process_vm() {
    let v = [1u8, 2, 3, 4];
    let mut b = [0u8; 4];
    let (l, r) = ([b.as_mut_ptr() as usize, 4], [v.as_ptr() as usize, 4]);
    let pid = child(forever);
    eq(sys!(SYS_process_vm_readv, pid, &l, 1, &r, 1, 0), 4);
    eq(b, v);
    b = [9, 8, 7, 6];
    eq(sys!(SYS_process_vm_writev, pid, &l, 1, &r, 1, 0), 4);
    eq(v, [1, 2, 3, 4]);
    let mut c = [0u8; 4];
    eq(sys!(SYS_process_vm_readv, pid, &[c.as_mut_ptr() as usize, 4], 1, &r, 1, 0), 4);
    eq(c, b);
    err(sys!(SYS_process_vm_readv, pid, &l, 1, &[bad() as usize, 4], 1, 0), EFAULT);
    err(sys!(SYS_process_vm_readv, 99_999_999, &l, 1, &r, 1, 0), ESRCH);
    err(sys!(SYS_process_vm_readv, pid, &l, 1, &r, 1, 1), EINVAL);
    sys!(SYS_kill, pid, SIGKILL);
    reap(pid);
}

fn kcmp_or_pidfd_getfd() {
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_dup2, p[1], 300);
        sys!(SYS_write, p[1], b"r", 1);
        forever()
    });
    let mut b = [0u8; 4];
    eq(sys!(SYS_read, p[0], &mut b, 4), 1);
    let fd = ok(sys!(SYS_pidfd_open, pid, 0)) as i32;
    let got = ok(sys!(SYS_pidfd_getfd, fd, 300, 0)) as i32;
    eq(sys!(SYS_write, got, b"xy", 2), 2);
    eq(sys!(SYS_read, p[0], &mut b, 4), 2);
    err(sys!(SYS_pidfd_getfd, fd, 9999, 0), EBADF);
    ok(sys!(SYS_pidfd_send_signal, fd, SIGKILL, 0, 0));
    killed_by(pid, SIGKILL);
    shut([fd, got, p[0], p[1]]);
}

fn kcmp_objects() {
    let p = pipe_pair();
    let go = pipe_pair();
    let pid = child(|| {
        sys!(SYS_read, go[0], &mut [0u8; 1], 1);
        0
    });
    let me = sys!(SYS_getpid);
    let d = ok(sys!(SYS_dup, p[0])) as i32;
    const FILE: i32 = 0;
    eq(sys!(SYS_kcmp, me, me, FILE, p[0], d), 0);
    eq(sys!(SYS_kcmp, me, pid, FILE, p[0], p[0]), 0);
    check([1, 2].contains(&sys!(SYS_kcmp, me, me, FILE, p[0], p[1])), "different, in some order");
    let (a, b) = (sys!(SYS_kcmp, me, me, FILE, p[0], p[1]), sys!(SYS_kcmp, me, me, FILE, p[1], p[0]));
    eq(a + b, 3);
    // VM, FILES, FS, SIGHAND: a forked child has its own.
    for kind in [1, 2, 3, 4] {
        eq(sys!(SYS_kcmp, me, me, kind, 0, 0), 0);
        check([1, 2].contains(&sys!(SYS_kcmp, me, pid, kind, 0, 0)), "different");
    }
    err(sys!(SYS_kcmp, me, me, FILE, p[0], 9999), EBADF);
    err(sys!(SYS_kcmp, me, me, 99, 0, 0), EINVAL);
    err(sys!(SYS_kcmp, me, 99_999_999, FILE, 0, 0), ESRCH);
    let ep = ok(sys!(SYS_epoll_create1, 0)) as i32;
    let e = epoll_event { events: EPOLLIN as u32, u64: 0 };
    ok(sys!(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, p[0], &e));
    eq(sys!(SYS_kcmp, me, me, 7, p[0], &[ep, p[0], 0]), 0);
    err(sys!(SYS_kcmp, me, me, 7, p[0], &[ep, p[1], 0]), ENOENT);
    err(sys!(SYS_kcmp, me, me, 7, p[0], &[ep, p[0], 1]), ENOENT);
    err(sys!(SYS_kcmp, me, me, 7, p[0], &[p[1], p[0], 0]), EINVAL);
    err(sys!(SYS_kcmp, me, me, 7, p[0], bad()), EFAULT);
    sys!(SYS_write, go[1], b"x", 1);
    exits(pid, 0);
    shut([ep, d, p[0], p[1], go[0], go[1]]);
}

fn kcmp_not_permitted() {
    if sys!(SYS_geteuid) != 0 {
        err(sys!(SYS_kcmp, sys!(SYS_getpid), 1, 0, 0, 0), EPERM);
        return;
    }
    let me = sys!(SYS_getpid);
    in_child(|| {
        let fd = ok(sys!(SYS_pidfd_open, me, 0));
        ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        err(sys!(SYS_kcmp, sys!(SYS_getpid), me, 1, 0, 0), EPERM);
        err(sys!(SYS_pidfd_getfd, fd, 1, 0), EPERM);
        err(sys!(SYS_pidfd_getfd, fd, 1, 1), EINVAL);
        err(sys!(SYS_pidfd_getfd, 1, 1, 0), EBADF);
    });
}

fn readahead_fadvise() {
    let t = Tmp::new();
    let f = t.file("f", b"abc");
    eq(sys!(SYS_readahead, f, 0, 4096), 0);
    eq(sys!(SYS_fadvise64, f, 0, 0, POSIX_FADV_SEQUENTIAL), 0);
    err(sys!(SYS_fadvise64, f, 0, 0, 99), EINVAL);
    let p = pipe_pair();
    err(sys!(SYS_fadvise64, p[0], 0, 0, 0), ESPIPE);
    err(sys!(SYS_fadvise64, 9999, 0, 0, 0), EBADF);
    shut([f, p[0], p[1]]);
}

fn etc_is_readable() {
    check(text("/etc/passwd").contains("root:"), "users");
}

fn dev_shm() {
    let t = Tmp::below("/dev/shm");
    let fd = t.file("s", b"shared");
    let p = ok(sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) as *mut u8;
    // SAFETY: the page is mapped for writing.
    unsafe { p.write_volatile(b'S') };
    eq(t.read("s"), b"Shared");
    ok(sys!(SYS_munmap, p, 4096));
    shut([fd]);
}

fn cachestat_or_enosys() {
    let t = Tmp::new();
    let f = t.file("f", b"abc");
    let r = sys!(451, f, &[0u64, 0], &mut [0u64; 5], 0);
    check(r == 0 || r == -i64::from(ENOSYS) || r == -i64::from(EOPNOTSUPP), "an answer");
    shut([f]);
}
