//! Files of /proc, /sys and /dev about the system: the form that readers take apart.

use guest_tests::space::is_root;
use guest_tests::*;
use libc::*;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

cases![
    sysfiles_meminfo, sysfiles_vmstat, sysfiles_stat, sysfiles_cpuinfo, sysfiles_load_and_uptime, sysfiles_version, sysfiles_filesystems,
    sysfiles_tables, sysfiles_interrupts, sysfiles_memory_zones, sysfiles_slabinfo, sysfiles_kallsyms, sysfiles_sysctl, sysfiles_random,
    sysfiles_cpus, sysfiles_caches, sysfiles_node, sysfiles_directories, sysfiles_devices, sysfiles_device_links, sysfiles_seek
];

#[track_caller]
fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[track_caller]
fn number(path: &str) -> u64 {
    text(path).trim().parse().unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// These names are among those, in this order.
#[track_caller]
fn in_order(all: &[String], want: &str) {
    let mut rest = all.iter();
    for name in want.split_whitespace() {
        check(rest.any(|n| n == name), &format!("{name} in its place"));
    }
}

fn cpus() -> usize {
    unsafe { sysconf(_SC_NPROCESSORS_CONF) as usize }
}

fn sysfiles_meminfo() {
    let text = text("/proc/meminfo");
    let mut names = Vec::new();
    let value = |name: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with(&format!("{name}:"))).expect("a line");
        line.split_whitespace().nth(1).expect("a value").parse().expect("a number")
    };
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        names.push(words[0].trim_end_matches(':').to_owned());
        words[1].parse::<u64>().expect("a number");
        eq(words.len(), if words[0].starts_with("HugePages_") { 2 } else { 3 });
        eq(line.find(':'), Some(words[0].len() - 1));
        check(line.len() >= 24, "columns");
    }
    in_order(
        &names,
        "MemTotal MemFree MemAvailable Buffers Cached SwapCached Active Inactive Active(anon) Inactive(anon) Active(file) \
         Inactive(file) Unevictable Mlocked SwapTotal SwapFree Dirty Writeback AnonPages Mapped Shmem KReclaimable Slab SReclaimable \
         SUnreclaim KernelStack PageTables CommitLimit Committed_AS VmallocTotal VmallocUsed VmallocChunk Percpu HugePages_Total \
         HugePages_Free HugePages_Rsvd HugePages_Surp Hugepagesize Hugetlb DirectMap4k",
    );
    check(value("MemFree") <= value("MemTotal") && value("MemAvailable") <= value("MemTotal"), "less than all");
    let mut info: sysinfo = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_sysinfo, &mut info));
    eq(info.totalram * u64::from(info.mem_unit) / 1024, value("MemTotal"));
}

fn sysfiles_vmstat() {
    let text = text("/proc/vmstat");
    let mut names = Vec::new();
    for line in text.lines() {
        let (name, value) = line.split_once(' ').expect("two words");
        value.parse::<u64>().expect("a number");
        names.push(name.to_owned());
    }
    in_order(
        &names,
        "nr_free_pages nr_inactive_anon nr_active_anon nr_dirty nr_writeback pgpgin pgpgout pswpin pswpout pgfault pgmajfault \
         oom_kill thp_fault_alloc",
    );
}

fn sysfiles_stat() {
    let text = text("/proc/stat");
    let mut names = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ').filter(|w| !w.is_empty());
        let name = words.next().expect("a name").to_owned();
        let values = words.map(|w| w.parse::<u64>().expect("a number")).collect::<Vec<_>>().len();
        let want = match name.as_str() {
            n if n.starts_with("cpu") => 10,
            "softirq" => 11,
            "intr" => values,
            _ => 1,
        };
        eq((name.as_str(), values), (name.as_str(), want));
        names.push(name);
    }
    in_order(&names, "cpu cpu0 intr ctxt btime processes procs_running procs_blocked softirq");
    eq(names.iter().filter(|n| n.len() > 3 && n.starts_with("cpu")).count(), unsafe { sysconf(_SC_NPROCESSORS_ONLN) as usize });
}

fn sysfiles_cpuinfo() {
    let text = text("/proc/cpuinfo");
    let blocks: Vec<&str> = text.split("\n\n").filter(|b| !b.trim().is_empty()).collect();
    eq(blocks.len(), unsafe { sysconf(_SC_NPROCESSORS_ONLN) as usize });
    for (n, block) in blocks.iter().enumerate() {
        let names: Vec<String> = block
            .lines()
            .map(|line| line.split_once(':').expect("a colon").0.trim_end().replace(' ', "_"))
            .collect();
        in_order(
            &names,
            "processor vendor_id cpu_family model model_name stepping cpu_MHz cache_size physical_id siblings core_id cpu_cores apicid \
             initial_apicid fpu fpu_exception cpuid_level wp flags bogomips clflush_size cache_alignment address_sizes power_management",
        );
        check(block.starts_with(&format!("processor\t: {n}\n")), "its number");
    }
}

fn sysfiles_load_and_uptime() {
    let load = text("/proc/loadavg");
    let words: Vec<&str> = load.split_whitespace().collect();
    eq(words.len(), 5);
    for word in &words[..3] {
        eq(word.split_once('.').map(|(_, part)| part.len()), Some(2));
        word.parse::<f64>().expect("a number");
    }
    let (run, all) = words[3].split_once('/').expect("two numbers");
    check(run.parse::<u64>().expect("a number") <= all.parse().expect("a number"), "fewer run than there are");
    words[4].parse::<u32>().expect("a pid");
    let uptime = text("/proc/uptime");
    let values: Vec<f64> = uptime.split_whitespace().map(|w| w.parse().expect("a number")).collect();
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    ok(sys!(SYS_clock_gettime, CLOCK_BOOTTIME, &mut now));
    check(values.len() == 2 && values[0] <= now.tv_sec as f64 + 1.0, "not longer than the clock says");
}

fn sysfiles_version() {
    let mut name: utsname = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_uname, &mut name));
    let of = |s: &[c_char]| unsafe { std::ffi::CStr::from_ptr(s.as_ptr()) }.to_string_lossy().into_owned();
    let text = text("/proc/version");
    check(text.starts_with(&format!("Linux version {} (", of(&name.release))), "the release");
    check(text.trim_end().ends_with(&of(&name.version)), "the version");
    for (file, value) in
        [("osrelease", &name.release), ("version", &name.version), ("hostname", &name.nodename), ("ostype", &name.sysname)]
    {
        eq(fs::read_to_string(format!("/proc/sys/kernel/{file}")).expect("read").trim_end(), of(value));
    }
}

fn sysfiles_filesystems() {
    let text = text("/proc/filesystems");
    for line in text.lines() {
        let (dev, name) = line.split_once('\t').expect("a tab");
        check(matches!(dev, "" | "nodev") && !name.is_empty(), line);
    }
    for name in ["proc", "tmpfs", "sysfs", "devpts"] {
        check(text.contains(&format!("nodev\t{name}\n")), name);
    }
}

/// Tables with a head, or lines of so many words.
fn sysfiles_tables() {
    check(text("/proc/swaps").starts_with("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"), "head of swaps");
    check(text("/proc/partitions").starts_with("major minor  #blocks  name\n\n"), "head of partitions");
    check(text("/proc/cgroups").starts_with("#subsys_name\thierarchy\tnum_cgroups\tenabled\n"), "head of cgroups");
    for line in text("/proc/diskstats").lines() {
        check(line.split_whitespace().count() >= 14, "words of diskstats");
    }
    for line in text("/proc/misc").lines() {
        eq(line.split_whitespace().count(), 2);
    }
    let devices = text("/proc/devices");
    let (chars, blocks) = devices.split_once("\n\nBlock devices:\n").expect("two parts");
    check(chars.starts_with("Character devices:\n") && !blocks.contains("devices"), "heads of devices");
    for name in ["  1 mem", "  5 /dev/tty", "  5 /dev/ptmx", "128 ptm", "136 pts"] {
        check(chars.lines().any(|line| line == name), name);
    }
    for line in text("/proc/mounts").lines() {
        eq(line.split(' ').count(), 6);
    }
    for line in text("/proc/pressure/cpu").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        check(words.len() == 5 && matches!(words[0], "some" | "full") && words[4].starts_with("total="), line);
    }
    check(text("/proc/cmdline").ends_with('\n'), "a line");
    check(text("/proc/execdomains").starts_with("0-0\tLinux"), "execdomains");
}

fn sysfiles_interrupts() {
    let online = unsafe { sysconf(_SC_NPROCESSORS_ONLN) as usize };
    for (file, width) in [("/proc/interrupts", 11), ("/proc/softirqs", 20)] {
        let text = text(file);
        let head = text.lines().next().expect("a head");
        eq(head.split_whitespace().count(), online);
        check(head[..width].trim().is_empty() && head[width..].starts_with("CPU0  "), &format!("{file} {head:?}"));
    }
    for line in text("/proc/softirqs").lines().skip(1) {
        eq((line.split_whitespace().count(), line.find(':')), (online + 1, Some(12)));
    }
    in_order(
        &text("/proc/softirqs").lines().skip(1).map(|l| l.split(':').next().expect("a name").trim().to_owned()).collect::<Vec<_>>(),
        "HI TIMER NET_TX NET_RX BLOCK IRQ_POLL TASKLET SCHED HRTIMER RCU",
    );
}

fn sysfiles_memory_zones() {
    for line in text("/proc/buddyinfo").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        eq((words.len(), words[0], words[1], words[2]), (15, "Node", "0,", "zone"));
    }
    let zones = text("/proc/zoneinfo");
    check(zones.starts_with("Node 0, zone "), "a zone");
    for name in ["\n  pages free ", "\n        present ", "\n        managed ", "\n  pagesets\n", "\n  start_pfn: "] {
        check(zones.contains(name), name.trim());
    }
}

fn sysfiles_slabinfo() {
    let r = sys!(SYS_open, c"/proc/slabinfo", O_RDONLY);
    if !is_root() {
        return err(r, EACCES);
    }
    shut([ok(r) as i32]);
    let text = text("/proc/slabinfo");
    let mut lines = text.lines();
    eq(lines.next(), Some("slabinfo - version: 2.1"));
    check(
        lines.next().expect("a head").starts_with(
            "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> \
             <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>",
        ),
        "names of columns",
    );
}

/// Addresses of the kernel are nobody's but root's, if anybody's.
fn sysfiles_kallsyms() {
    for line in text("/proc/kallsyms").lines().take(1000) {
        let words: Vec<&str> = line.split_whitespace().collect();
        check(words.len() >= 3 && words[0].len() == 16 && words[1].len() == 1, line);
    }
    for file in ["/proc/keys", "/proc/key-users", "/proc/crypto", "/proc/consoles", "/proc/iomem", "/proc/ioports"] {
        text(file);
    }
}

fn sysfiles_sysctl() {
    for (dir, names) in [
        ("vm", "overcommit_memory overcommit_ratio max_map_count swappiness dirty_ratio dirty_background_ratio dirty_writeback_centisecs \
                dirty_expire_centisecs min_free_kbytes vfs_cache_pressure page-cluster panic_on_oom oom_kill_allocating_task nr_hugepages \
                nr_overcommit_hugepages user_reserve_kbytes admin_reserve_kbytes watermark_scale_factor zone_reclaim_mode"),
        ("kernel", "pid_max threads-max cap_last_cap ngroups_max randomize_va_space kptr_restrict dmesg_restrict perf_event_paranoid \
                    sched_rr_timeslice_ms sched_rt_period_us sched_rt_runtime_us panic panic_on_oops print-fatal-signals \
                    shmmni msgmax msgmnb msgmni shm_rmid_forced tainted unprivileged_bpf_disabled io_uring_disabled keys/maxkeys \
                    pty/max pty/nr pty/reserve overflowuid overflowgid core_pipe_limit core_uses_pid"),
        ("fs", "aio-max-nr aio-nr file-max nr_open pipe-max-size pipe-user-pages-soft mount-max inotify/max_user_watches \
                inotify/max_user_instances inotify/max_queued_events epoll/max_user_watches mqueue/queues_max protected_fifos \
                protected_regular protected_hardlinks protected_symlinks suid_dumpable lease-break-time leases-enable dir-notify-enable"),
        ("net/core", "somaxconn rmem_max wmem_max rmem_default wmem_default netdev_max_backlog optmem_max busy_poll"),
        ("net/ipv4", "ip_forward ip_default_ttl ip_unprivileged_port_start tcp_fin_timeout tcp_keepalive_time tcp_keepalive_intvl \
                      tcp_keepalive_probes tcp_syn_retries tcp_retries2 tcp_timestamps tcp_sack tcp_window_scaling tcp_syncookies"),
        ("net/unix", "max_dgram_qlen"),
        ("user", "max_user_namespaces max_mnt_namespaces max_uts_namespaces"),
    ] {
        for name in names.split_whitespace() {
            number(&format!("/proc/sys/{dir}/{name}"));
        }
    }
    for (name, count) in [
        ("kernel/printk", 4), ("kernel/sem", 4), ("fs/file-nr", 3), ("fs/inode-nr", 2), ("fs/dentry-state", 6), ("net/ipv4/tcp_rmem", 3),
        ("net/ipv4/tcp_wmem", 3), ("net/ipv4/ip_local_port_range", 2), ("net/ipv4/ping_group_range", 2),
    ] {
        let text = text(&format!("/proc/sys/{name}"));
        eq((name, text.trim_end().split('\t').count()), (name, count));
    }
    check(text("/proc/sys/kernel/arch").trim() == "x86_64", "arch");
    text("/proc/sys/net/ipv4/tcp_congestion_control");
    text("/proc/sys/kernel/core_pattern");
}

fn sysfiles_random() {
    let form = |text: &str| {
        let parts: Vec<usize> = text.trim_end().split('-').map(str::len).collect();
        eq(parts, [8, 4, 4, 4, 12]);
        eq(text.len(), 37);
    };
    let (boot, one) = (text("/proc/sys/kernel/random/boot_id"), text("/proc/sys/kernel/random/uuid"));
    form(&boot);
    form(&one);
    eq(boot.as_str(), text("/proc/sys/kernel/random/boot_id"));
    check(one != text("/proc/sys/kernel/random/uuid"), "another each time");
    for name in ["entropy_avail", "poolsize", "write_wakeup_threshold"] {
        number(&format!("/proc/sys/kernel/random/{name}"));
    }
}

/// How many are in a list like `0-3,5`.
fn count(list: &str) -> usize {
    list.trim()
        .split(',')
        .filter(|part| !part.is_empty())
        .map(|part| match part.split_once('-') {
            Some((from, to)) => to.parse::<usize>().expect("a number") + 1 - from.parse::<usize>().expect("a number"),
            None => 1,
        })
        .sum()
}

fn sysfiles_cpus() {
    let base = "/sys/devices/system/cpu";
    for name in ["online", "present", "possible"] {
        check(count(&text(&format!("{base}/{name}"))) >= cpus(), name);
    }
    number(&format!("{base}/kernel_max"));
    text(&format!("{base}/offline"));
    text(&format!("{base}/isolated"));
    for n in 0..cpus() {
        let t = format!("{base}/cpu{n}/topology");
        for name in ["core_id", "physical_package_id", "die_id"] {
            text(&format!("{t}/{name}")).trim().parse::<i32>().expect("a number");
        }
        for name in ["thread_siblings", "core_siblings", "core_cpus", "package_cpus"] {
            let (map, list) = (text(&format!("{t}/{name}")), text(&format!("{t}/{name}_list")));
            let bits: u32 = map.trim().split(',').map(|w| u32::from_str_radix(w, 16).expect("hex").count_ones()).sum();
            eq(bits as usize, count(&list));
        }
    }
}

fn sysfiles_caches() {
    let mut total = 0u64;
    for n in 0..8 {
        let at = format!("/sys/devices/system/cpu/cpu0/cache/index{n}");
        if fs::metadata(&at).is_err() {
            break;
        }
        let of = |name: &str| text(&format!("{at}/{name}")).trim().to_owned();
        check(matches!(of("type").as_str(), "Data" | "Instruction" | "Unified"), "a type");
        let size: u64 = of("size").trim_end_matches('K').parse().expect("a size");
        let num = |name: &str| of(name).parse::<u64>().expect("a number");
        eq(num("coherency_line_size") * num("number_of_sets") * num("ways_of_associativity") * num("physical_line_partition"), size * 1024);
        check((1..=4).contains(&num("level")), "a level");
        check(count(&of("shared_cpu_list")) >= 1, "whose it is");
        u64::from_str_radix(&of("shared_cpu_map").replace(',', ""), 16).expect("hex");
        total += size;
    }
    check(total > 0 || fs::metadata("/sys/devices/system/cpu/cpu0/cache").is_err(), "some cache");
}

fn sysfiles_node() {
    let node = "/sys/devices/system/node/node0";
    let text_of = text(&format!("{node}/meminfo"));
    let mut names = Vec::new();
    for line in text_of.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        eq((words[0], words[1]), ("Node", "0"));
        words[3].parse::<u64>().expect("a number");
        names.push(words[2].trim_end_matches(':').to_owned());
    }
    in_order(&names, "MemTotal MemFree MemUsed Active Inactive FilePages AnonPages Shmem HugePages_Total HugePages_Free HugePages_Surp");
    eq(text(&format!("{node}/numastat")).lines().count(), 6);
    check(count(&text(&format!("{node}/cpulist"))) >= 1, "its processors");
    text(&format!("{node}/distance"));
    eq(text("/sys/devices/system/node/online").trim().chars().next(), Some('0'));
}

fn sysfiles_directories() {
    for dir in [
        "/sys/block", "/sys/bus", "/sys/class/net", "/sys/class/block", "/sys/class/tty", "/sys/dev/block", "/sys/dev/char",
        "/sys/devices/virtual", "/sys/firmware", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage", "/sys/module", "/sys/power",
        "/proc/sys/net", "/proc/tty", "/proc/fs", "/proc/bus", "/proc/irq", "/proc/pressure", "/proc/sysvipc",
    ] {
        fs::read_dir(dir).unwrap_or_else(|e| panic!("{dir}: {e}")).for_each(drop);
    }
    check(text("/sys/kernel/mm/transparent_hugepage/enabled").contains('['), "a choice");
    number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    check(fs::write("/sys/devices/system/cpu/online", "0").is_err(), "not to be written");
}

fn sysfiles_devices() {
    for (name, major, minor) in
        [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0), ("ptmx", 5, 2)]
    {
        let stat = fs::metadata(format!("/dev/{name}")).expect(name);
        check(stat.file_type().is_char_device(), name);
        eq((name, stat.rdev()), (name, makedev(major, minor)));
    }
    for dir in ["/dev/shm", "/dev/pts"] {
        check(fs::metadata(dir).expect(dir).is_dir(), dir);
    }
    eq(fs::metadata("/dev/shm").expect("stat").mode() & 0o7777, 0o1777);
}

fn sysfiles_device_links() {
    for (name, target) in
        [("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")]
    {
        eq(fs::read_link(format!("/dev/{name}")).expect(name).to_str(), Some(target));
    }
}

/// Readers keep these files open, go back to the start and read anew; and in small pieces.
fn sysfiles_seek() {
    for path in [c"/proc/stat", c"/proc/meminfo", c"/proc/uptime", c"/proc/loadavg"] {
        let fd = ok(sys!(SYS_open, path, O_RDONLY)) as i32;
        let mut b = [0u8; 64];
        let first = ok(sys!(SYS_read, fd, &mut b, 7));
        eq(first, 7);
        check(ok(sys!(SYS_read, fd, &mut b, 64)) > 0, "the rest");
        eq(sys!(SYS_lseek, fd, 0, SEEK_SET), 0);
        check(ok(sys!(SYS_read, fd, &mut b, 64)) >= 10, "anew");
        eq(stat_fd(fd).st_size, 0);
        shut([fd]);
    }
}
