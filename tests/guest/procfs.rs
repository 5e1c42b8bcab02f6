//! proc(5) of other processes, zombies and threads; files that take something; who may look.

use guest_tests::*;
use libc::*;

cases![
    zombie, threads, thread_by_number, states, stat_has_all_fields, status_signals, comm_is_written, comm_of_others, mem_is_read_and_written,
    mem_of_child, mem_errors, oom_score_adj, oom_score_adj_errors, smaps_rollup, cmdline_follows_memory, others_are_private, undumpable,
    id_maps, timerslack, every_file_opens, init_is_there, system_files, cpu_topology, cpu_time_grows, net_files, starts_after_boot, no_name_twice,
    resident_follows_use, resident_of_another, oom_score_follows
];

fn text(p: &str) -> String {
    match std::fs::read(p) {
        Ok(b) => String::from_utf8_lossy(&b).into_owned(),
        Err(e) => panic!("{p}: {e}"),
    }
}

fn field(status: &str, name: &str) -> String {
    let line = status.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {status}"));
    line[name.len()..].trim().to_string()
}

/// The letter of stat's third field.
fn state(path: &str) -> char {
    let s = text(&format!("{path}/stat"));
    s[s.rfind(')').unwrap() + 2..].chars().next().unwrap()
}

fn becomes(path: &str, want: char) {
    let end = now_ms() + 3000;
    while state(path) != want {
        check(now_ms() < end, &format!("{path} gets into state {want}, is {}", state(path)));
        sleep_ms(2);
    }
}

fn open(path: &str, flags: i32) -> i64 {
    sys!(SYS_openat, AT_FDCWD, cstr(path), flags, 0)
}

fn write_to(path: &str, data: &[u8]) -> i64 {
    let fd = ok(open(path, O_WRONLY));
    let r = sys!(SYS_write, fd, data, data.len());
    ok(sys!(SYS_close, fd));
    r
}

fn zombie() {
    let pid = child(|| 7);
    // SAFETY: all zero is a valid siginfo_t.
    let mut i: siginfo_t = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_waitid, P_PID, pid, &mut i, WEXITED | WNOWAIT, 0));
    let p = format!("/proc/{pid}");
    eq(state(&p), 'Z');
    let status = text(&format!("{p}/status"));
    eq(field(&status, "State:"), "Z (zombie)");
    eq(field(&status, "PPid:"), sys!(SYS_getpid).to_string());
    eq(field(&status, "Threads:"), "1");
    check(!status.contains("VmSize:"), "a zombie has no memory");
    eq(text(&format!("{p}/cmdline")), "");
    eq(text(&format!("{p}/maps")), "");
    eq(text(&format!("{p}/statm")), "0 0 0 0 0 0 0\n");
    eq(text(&format!("{p}/comm")), text("/proc/self/comm"));
    for link in ["exe", "cwd", "root"] {
        err(sys!(SYS_readlink, cstr(format!("{p}/{link}")), &mut [0u8; 64], 64), ENOENT);
    }
    eq(std::fs::read_dir(format!("{p}/task")).unwrap().count(), 1);
    check(std::fs::read_dir("/proc").unwrap().flatten().any(|e| e.file_name() == *pid.to_string()), "listed");
    exits(pid, 7);
    err(open(&format!("{p}/stat"), O_RDONLY), ENOENT);
}

fn threads() {
    let p = pipe_pair();
    let (tx, rx) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        ok(sys!(SYS_prctl, PR_SET_NAME, c"worker"));
        tx.send(sys!(SYS_gettid)).unwrap();
        sys!(SYS_read, p[0], &mut [0u8; 1], 1);
    });
    let tid = rx.recv().unwrap();
    let t = format!("/proc/self/task/{tid}");
    eq(text(&format!("{t}/comm")), "worker\n");
    let status = text(&format!("{t}/status"));
    eq(field(&status, "Tgid:"), sys!(SYS_getpid).to_string());
    eq(field(&status, "Pid:"), tid.to_string());
    eq(field(&status, "Threads:"), std::fs::read_dir("/proc/self/task").unwrap().count().to_string());
    becomes(&t, 'S');
    check(text(&format!("{t}/stat")).starts_with(&format!("{tid} (worker) ")), "its own number and name");
    err(open(&format!("{t}/task"), O_RDONLY), ENOENT);
    check(std::fs::read_dir(format!("{t}/fd")).unwrap().count() > 3, "descriptors");
    sys!(SYS_write, p[1], b"x", 1);
    thread.join().unwrap();
    let end = now_ms() + 3000;
    while open(&t, O_RDONLY) >= 0 && now_ms() < end {
        sleep_ms(1);
    }
    err(open(&t, O_RDONLY), ENOENT);
    shut(p);
}

fn thread_by_number() {
    let me = sys!(SYS_getpid).to_string();
    let (number, tgid) = std::thread::spawn(|| {
        let tid = sys!(SYS_gettid);
        (tid.to_string(), field(&text(&format!("/proc/{tid}/status")), "Tgid:"))
    })
    .join()
    .unwrap();
    eq(tgid, me);
    check(!std::fs::read_dir("/proc").unwrap().flatten().any(|e| e.file_name() == *number), "not listed");
}

fn states() {
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_read, p[0], &mut [0u8; 1], 1);
        loop {
            std::hint::spin_loop();
        }
    });
    let path = format!("/proc/{pid}");
    becomes(&path, 'S');
    ok(sys!(SYS_kill, pid, SIGSTOP));
    becomes(&path, 'T');
    eq(field(&text(&format!("{path}/status")), "State:"), "T (stopped)");
    ok(sys!(SYS_kill, pid, SIGCONT));
    becomes(&path, 'S');
    sys!(SYS_write, p[1], b"x", 1);
    becomes(&path, 'R');
    ok(sys!(SYS_kill, pid, SIGKILL));
    killed_by(pid, SIGKILL);
    eq(state("/proc/self"), 'R');
    shut(p);
}

fn stat_has_all_fields() {
    let s = text("/proc/self/stat");
    let rest: Vec<&str> = s[s.rfind(')').unwrap() + 2..].trim().split(' ').collect();
    eq(rest.len(), 50);
    eq(rest[1], sys!(SYS_getppid).to_string());
    eq(rest[2], sys!(SYS_getpgid, 0).to_string());
    eq(rest[3], sys!(SYS_getsid, 0).to_string());
    check(rest.iter().skip(1).all(|f| f.parse::<i128>().is_ok()), "numbers");
    eq(rest[15], (20 + sys!(SYS_getpriority, PRIO_PROCESS, 0).wrapping_neg() + 20).to_string());
    eq(rest[35], SIGCHLD.to_string());
    let (vsize, rss): (u64, u64) = (rest[20].parse().unwrap(), rest[21].parse().unwrap());
    check(vsize > 1 << 20 && rss > 50 && rss * 4096 <= vsize, "memory");
    let here = &s as *const _ as u64;
    let stack: u64 = rest[25].parse().unwrap();
    check(stack > here || stack == 0, "the stack begins above");
}

fn status_signals() {
    in_child(|| {
        let _on = sig::on(SIGUSR1, 0);
        let _ignored = sig::with(SIGUSR2, SIG_IGN, 0);
        sig::mask(SIG_BLOCK, sig::set(&[SIGTERM, SIGWINCH]));
        sig::raise(SIGTERM);
        ok(sys!(SYS_kill, sys!(SYS_getpid), SIGTERM));
        let s = text("/proc/self/status");
        let bits = |name| u64::from_str_radix(&field(&s, name), 16).unwrap();
        eq(bits("SigPnd:"), sig::set(&[SIGTERM]));
        eq(bits("ShdPnd:"), sig::set(&[SIGTERM]));
        eq(bits("SigBlk:") & sig::set(&[SIGTERM, SIGWINCH, SIGUSR1]), sig::set(&[SIGTERM, SIGWINCH]));
        check(bits("SigIgn:") & sig::set(&[SIGUSR2]) != 0, "ignored");
        check(bits("SigCgt:") & sig::set(&[SIGUSR1, SIGUSR2]) == sig::set(&[SIGUSR1]), "caught");
        let queued: Vec<u64> = field(&s, "SigQ:").split('/').map(|n| n.parse().unwrap()).collect();
        check(queued[0] >= 2 && queued[1] >= 100, "two are queued");
    });
}

fn comm_is_written() {
    in_child(|| {
        eq(write_to("/proc/self/comm", b"a-new-name\n"), 11);
        eq(text("/proc/self/comm"), "a-new-name\n\n");
        eq(write_to("/proc/self/comm", b"much-too-long-a-name"), 20);
        eq(text("/proc/self/comm"), "much-too-long-a\n");
        let mut name = [0u8; 16];
        ok(sys!(SYS_prctl, PR_GET_NAME, &mut name));
        eq(&name[..], b"much-too-long-a\0");
        check(text("/proc/self/stat").contains("(much-too-long-a)"), "in stat too");
    });
}

fn comm_of_others() {
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_read, p[0], &mut [0u8; 1], 1);
        0
    });
    err(write_to(&format!("/proc/{pid}/comm"), b"x"), EINVAL);
    sys!(SYS_write, p[1], b"x", 1);
    exits(pid, 0);
    shut(p);
}

fn mem_is_read_and_written() {
    let mut value = 0x1122_3344_5566_7788u64;
    let at = &raw mut value as u64;
    let fd = ok(open("/proc/self/mem", O_RDWR));
    let mut got = 0u64;
    eq(sys!(SYS_pread64, fd, &mut got, 8, at), 8);
    eq(got, value);
    eq(sys!(SYS_pwrite64, fd, &7u64, 8, at), 8);
    // SAFETY: reads the local variable, which was changed behind the compiler's back.
    eq(unsafe { (&raw const value).read_volatile() }, 7);
    eq(sys!(SYS_lseek, fd, at, SEEK_SET), at as i64);
    eq(sys!(SYS_read, fd, &mut got, 8), 8);
    eq(got, 7);
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), at as i64 + 8);
    ok(sys!(SYS_close, fd));
}

fn mem_of_child() {
    let (p, q) = (pipe_pair(), pipe_pair());
    let mut value = 5u64;
    let at = &raw mut value;
    let pid = child(|| {
        sys!(SYS_write, q[1], b"x", 1);
        sys!(SYS_read, p[0], &mut [0u8; 1], 1);
        // SAFETY: reads the local variable, which the parent changes.
        (unsafe { at.read_volatile() }) as i32
    });
    sys!(SYS_read, q[0], &mut [0u8; 1], 1);
    let fd = ok(open(&format!("/proc/{pid}/mem"), O_RDWR));
    eq(sys!(SYS_pwrite64, fd, &9u64, 8, at as u64), 8);
    sys!(SYS_write, p[1], b"x", 1);
    exits(pid, 9);
    // The memory is gone with the process.
    eq(sys!(SYS_pread64, fd, &mut [0u8; 8], 8, at as u64), 0);
    eq(value, 5);
    ok(sys!(SYS_close, fd));
    shut(p);
    shut(q);
}

fn mem_errors() {
    let fd = ok(open("/proc/self/mem", O_RDWR));
    err(sys!(SYS_pread64, fd, &mut [0u8; 8], 8, 0), EIO);
    err(sys!(SYS_pwrite64, fd, &[0u8; 8], 8, 0), EIO);
    let value = 1u64;
    err(sys!(SYS_pread64, fd, bad(), 8, &raw const value as u64), EFAULT);
    ok(sys!(SYS_close, fd));
}

fn oom_score_adj() {
    in_child(|| {
        eq(write_to("/proc/self/oom_score_adj", b"300\n"), 4);
        eq(text("/proc/self/oom_score_adj"), "300\n");
        exits(child(|| i32::from(text("/proc/self/oom_score_adj") != "300\n")), 0);
        eq(write_to("/proc/self/oom_score_adj", b"0"), 1);
    });
}

fn oom_score_adj_errors() {
    in_child(|| {
        err(write_to("/proc/self/oom_score_adj", b"1001"), EINVAL);
        err(write_to("/proc/self/oom_score_adj", b"-1001"), EINVAL);
        err(write_to("/proc/self/oom_score_adj", b"x"), EINVAL);
        if sys!(SYS_geteuid) == 0 {
            ok(sys!(SYS_setresuid, 65534, 65534, 65534));
            ok(sys!(SYS_prctl, PR_SET_DUMPABLE, 1));
        }
        eq(write_to("/proc/self/oom_score_adj", b"10"), 2);
        err(write_to("/proc/self/oom_score_adj", b"-600"), EACCES);
    });
}

fn smaps_rollup() {
    let s = text("/proc/self/smaps_rollup");
    check(s.lines().next().unwrap().ends_with("[rollup]"), "a heading");
    for name in ["Rss:", "Pss:", "Pss_Anon:", "Private_Dirty:", "Anonymous:", "Swap:", "Locked:"] {
        check(field(&s, name).ends_with(" kB"), name);
    }
    check(text("/proc/self/smaps").contains("VmFlags: "), "flags of areas");
}

fn cmdline_follows_memory() {
    in_child(|| {
        let s = text("/proc/self/stat");
        let rest: Vec<&str> = s[s.rfind(')').unwrap() + 2..].trim().split(' ').collect();
        let start: u64 = rest[45].parse().unwrap();
        check(start != 0, "where the arguments are");
        let before = std::fs::read("/proc/self/cmdline").unwrap();
        // SAFETY: the process's own argument area; its first byte is of argv[0].
        unsafe { (start as *mut u8).write_volatile(b'#') };
        let after = std::fs::read("/proc/self/cmdline").unwrap();
        eq(after[0], b'#');
        eq(&after[1..], &before[1..]);
    });
}

fn others_are_private() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs two users");
    }
    let parent = sys!(SYS_getpid);
    in_child(|| {
        ok(sys!(SYS_setresgid, 65534, 65534, 65534));
        ok(sys!(SYS_setresuid, 65534, 65534, 65534));
        let p = format!("/proc/{parent}");
        for file in ["environ", "maps", "mem", "auxv", "io", "smaps", "fd"] {
            err(open(&format!("{p}/{file}"), O_RDONLY), EACCES);
        }
        for link in ["exe", "cwd", "root"] {
            err(sys!(SYS_readlink, cstr(format!("{p}/{link}")), &mut [0u8; 64], 64), EACCES);
        }
        for file in ["stat", "status", "statm", "cmdline", "comm", "limits"] {
            check(!text(&format!("{p}/{file}")).is_empty(), file);
        }
        err(open(&format!("{p}/comm"), O_WRONLY), EACCES);
    });
}

fn undumpable() {
    in_child(|| {
        ok(sys!(SYS_prctl, PR_SET_DUMPABLE, 0));
        let s = stat_of("/proc/self/environ");
        eq((s.st_uid, s.st_gid), (0, 0));
        let s = stat_of("/proc/self");
        eq(i64::from(s.st_uid), sys!(SYS_geteuid));
        let s = stat_of("/proc/self/fdinfo");
        eq(i64::from(s.st_uid), sys!(SYS_geteuid));
        // Its own descriptors it sees all the same.
        let s = stat_of("/proc/self/fd");
        eq((s.st_uid, s.st_gid, s.st_mode & 0o777), (0, 0, 0o500));
        let fd = ok(open("/proc/self/fd", O_RDONLY | O_DIRECTORY));
        eq(std::fs::read_dir("/proc/self/fd").unwrap().count() > 1, true);
        stat_of(&format!("/proc/self/fd/{fd}"));
        check(text(&format!("/proc/self/fdinfo/{fd}")).starts_with("pos:"), "fdinfo");
        let opens = open("/proc/self/environ", O_RDONLY);
        if sys!(SYS_geteuid) == 0 { ok(opens) } else { err(opens, EACCES); 0 };
    });
}

fn stat_of(path: &str) -> stat {
    // SAFETY: all zero is a valid stat.
    let mut s: stat = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_newfstatat, AT_FDCWD, cstr(path), &mut s, 0));
    s
}

fn id_maps() {
    for map in ["uid_map", "gid_map"] {
        let s = text(&format!("/proc/self/{map}"));
        eq(s.lines().next().unwrap().split_whitespace().count(), 3);
        errs(write_to(&format!("/proc/self/{map}"), b"0 0 1"), &[EPERM]);
    }
    check(["allow\n", "deny\n"].contains(&text("/proc/self/setgroups").as_str()), "allow or deny");
}

fn timerslack() {
    in_child(|| {
        ok(sys!(SYS_prctl, PR_SET_TIMERSLACK, 12345));
        eq(text("/proc/self/timerslack_ns"), "12345\n");
        eq(write_to("/proc/self/timerslack_ns", b"60000"), 5);
        eq(sys!(SYS_prctl, PR_GET_TIMERSLACK), 60000);
    });
}

fn every_file_opens() {
    for name in [
        "attr", "auxv", "cgroup", "cmdline", "comm", "coredump_filter", "cpuset", "cwd", "environ", "exe", "fd", "fdinfo", "io", "limits", "loginuid",
        "map_files", "maps", "mountinfo", "mounts", "mountstats", "net", "ns", "oom_adj", "oom_score", "oom_score_adj", "root", "sched", "schedstat",
        "sessionid", "smaps", "stat", "statm", "status", "task", "timers", "wchan",
    ] {
        let fd = ok(open(&format!("/proc/self/{name}"), O_RDONLY));
        ok(sys!(SYS_close, fd));
    }
}

fn init_is_there() {
    eq(state("/proc/1"), 'S');
    eq(field(&text("/proc/1/status"), "PPid:"), "0");
    check(std::fs::read_dir("/proc").unwrap().flatten().any(|e| e.file_name() == "1"), "listed");
}

fn system_files() {
    for name in [
        "cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems", "mounts", "cmdline", "devices", "diskstats", "interrupts", "locks",
        "misc", "partitions", "swaps", "vmstat", "zoneinfo", "net/dev", "sys/kernel/osrelease", "sys/kernel/hostname", "sys/kernel/pid_max",
        "sys/kernel/threads-max", "sys/kernel/ngroups_max", "sys/kernel/cap_last_cap", "sys/kernel/random/boot_id", "sys/kernel/random/uuid",
        "sys/kernel/core_pattern", "sys/kernel/shmmax", "sys/kernel/sem", "sys/kernel/msgmax", "sys/vm/overcommit_memory", "sys/vm/max_map_count",
        "sys/vm/swappiness", "sys/fs/file-max", "sys/fs/nr_open", "sys/fs/pipe-max-size", "sys/fs/inotify/max_user_watches", "sys/net/core/somaxconn",
        "sysvipc/msg", "sysvipc/sem", "sysvipc/shm", "pressure/cpu", "tty/drivers",
    ] {
        let fd = open(&format!("/proc/{name}"), O_RDONLY);
        check(fd >= 0, &format!("/proc/{name} opens"));
        check(sys!(SYS_read, fd, &mut [0u8; 4096], 4096) >= 0, &format!("/proc/{name} is read"));
        ok(sys!(SYS_close, fd));
    }
}

fn cpu_topology() {
    let cpu = "/sys/devices/system/cpu";
    let count = text(&format!("{cpu}/present")).trim().rsplit('-').next().unwrap().parse::<usize>().unwrap() + 1;
    for n in 0..count {
        for name in ["core_id", "physical_package_id", "thread_siblings", "thread_siblings_list", "core_siblings", "core_siblings_list"] {
            check(!text(&format!("{cpu}/cpu{n}/topology/{name}")).trim().is_empty(), name);
        }
    }
    eq(text("/proc/cpuinfo").lines().filter(|l| l.starts_with("processor")).count(), count);
    check(text("/proc/cpuinfo").contains(" sse2 "), "flags");
}

fn cpu_time_grows() {
    let ticks = || {
        let s = text("/proc/self/stat");
        let rest: Vec<u64> = s[s.rfind(')').unwrap() + 4..].trim().split(' ').map(|n| n.parse().unwrap_or(0)).collect();
        rest[10] + rest[11]
    };
    let (before, end) = (ticks(), now_ms() + 5000);
    while ticks() < before + 3 {
        check(now_ms() < end, "30 ms of processor time within 5 s");
        (0..100_000).for_each(|_| std::hint::spin_loop());
    }
}

fn net_files() {
    for (name, part) in [("dev", "lo:"), ("tcp", "local_address"), ("udp", "local_address"), ("unix", "RefCount"), ("route", "Iface")] {
        check(text(&format!("/proc/net/{name}")).contains(part), name);
        check(text(&format!("/proc/self/net/{name}")).contains(part), name);
    }
}

fn starts_after_boot() {
    let up: f64 = text("/proc/uptime").split(' ').next().unwrap().parse().unwrap();
    let s = text("/proc/self/stat");
    let start: f64 = s[s.rfind(')').unwrap() + 2..].split(' ').nth(19).unwrap().parse().unwrap();
    check(start / 100.0 <= up + 0.02, "started after boot and before now");
    let btime: i64 = field(&text("/proc/stat"), "btime").parse().unwrap();
    let now = sys!(SYS_time, 0);
    check((now - btime - up as i64).abs() <= 2, "the boot time agrees with the uptime");
}

/// Every directory of /proc/sys has each name once.
fn no_name_twice() {
    let mut left = vec![std::path::PathBuf::from("/proc/sys")];
    while let Some(dir) = left.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        let mut names: Vec<_> = entries.flatten().map(|e| (e.file_name(), e.path(), e.file_type())).collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        for pair in names.windows(2) {
            check(pair[0].0 != pair[1].0, &format!("{} once", pair[0].1.display()));
        }
        left.extend(names.into_iter().filter(|(.., t)| t.as_ref().is_ok_and(|t| t.is_dir())).map(|(_, p, _)| p));
    }
}

/// A number of /proc/PID/status in KiB.
fn kib(pid: &str, key: &str) -> i64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = text.lines().find(|l| l.starts_with(key)).expect("the line");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

fn pages(pid: &str, field: usize) -> i64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).expect("its statm");
    text.split_whitespace().nth(field).and_then(|n| n.parse().ok()).expect("a number")
}

fn fill(len: usize, flags: i32) -> usize {
    let p = ok(sys!(SYS_mmap, 0, len, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0)) as usize;
    for at in (p..p + len).step_by(4096) {
        // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
        unsafe { (at as *mut u8).write_volatile(1) }
    }
    p
}

const BIG: usize = 64 << 20;
/// What other memory may change by meanwhile, in KiB.
const NOISE: i64 = 4096;

fn near(got: i64, want: i64, what: &str) {
    check((got - want).abs() <= NOISE, &format!("{what}: {got} KiB, wanted about {want}"));
}

fn resident_follows_use() {
    let big = (BIG >> 10) as i64;
    let before = ["VmRSS", "RssAnon", "RssShmem", "VmSize"].map(|key| kib("self", key));
    let statm = pages("self", 1);
    let p = fill(BIG, MAP_PRIVATE);
    near(kib("self", "RssAnon") - before[1], big, "RssAnon");
    near(kib("self", "VmRSS") - before[0], big, "VmRSS");
    near((pages("self", 1) - statm) * 4, big, "statm");
    eq(sys!(SYS_madvise, p, BIG, MADV_DONTNEED), 0);
    near(kib("self", "RssAnon") - before[1], 0, "RssAnon after MADV_DONTNEED");
    near(kib("self", "VmSize") - before[3], big, "VmSize");
    check(kib("self", "VmHWM") >= before[0] + big - NOISE, "VmHWM does not remember");
    eq(sys!(SYS_munmap, p, BIG), 0);
    let p = fill(BIG, MAP_SHARED);
    near(kib("self", "RssShmem") - before[2], big, "RssShmem");
    near(kib("self", "RssAnon") - before[1], 0, "RssAnon beside shared memory");
    eq(sys!(SYS_munmap, p, BIG), 0);
    near((pages("self", 1) - statm) * 4, 0, "statm at the end");
}

fn resident_of_another() {
    let (go, done) = (pipe_pair(), pipe_pair());
    let pid = child(|| {
        fill(BIG, MAP_PRIVATE);
        sys!(SYS_write, done[1], b"x", 1);
        sys!(SYS_read, go[0], &mut [0u8; 1], 1);
        0
    });
    let name = pid.to_string();
    eq(sys!(SYS_read, done[0], &mut [0u8; 1], 1), 1);
    check(kib(&name, "RssAnon") >= (BIG >> 10) as i64, "RssAnon of a child");
    check(pages(&name, 1) * 4096 >= BIG as i64, "statm of a child");
    eq(sys!(SYS_write, go[1], b"x", 1), 1);
    exits(pid, 0);
}

fn oom_score_follows() {
    let score = || -> i64 {
        let text = std::fs::read_to_string("/proc/self/oom_score").expect("the score");
        text.trim().parse().expect("a number")
    };
    let before = score();
    in_child(move || {
        std::fs::write("/proc/self/oom_score_adj", "1000").expect("adj");
        check(score() >= 1333, "a score with the highest adjustment");
    });
    check((600..=1333).contains(&before), "a score without adjustment");
}
