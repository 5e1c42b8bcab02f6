//! /proc/sys: what programs ask of the system's settings. What is a setting of this kernel says its own value; the rest has what Linux
//! starts with, and none can be changed.

use super::system::{Names, dir, file, line};
use crate::ipc::mqueue::{MSG_MAX, MSGSIZE_MAX, QUEUES_MAX};
use crate::ipc::sysv::sem::{SEMMNI, SEMMNS, SEMMSL, SEMOPM};
use crate::kernel::Kernel;
use crate::syscalls::uname::{RELEASE, VERSION};
use crate::vfs::inode::Inode;
use crate::vfs::watch::{QUEUED, WATCHES};
use std::sync::Arc;

/// Values of a directory.
type Lines = &'static [(&'static str, &'static str)];

const KERNEL: Lines = &[
    ("acct", "4\t2\t30"),
    ("arch", "x86_64"),
    ("auto_msgmni", "0"),
    ("core_pipe_limit", "16"),
    ("hung_task_timeout_secs", "120"),
    ("io_uring_disabled", "2"),
    ("msg_next_id", "-1"),
    ("nmi_watchdog", "0"),
    ("numa_balancing", "0"),
    ("panic", "0"),
    ("panic_on_oops", "0"),
    ("panic_on_warn", "0"),
    ("perf_event_max_sample_rate", "100000"),
    ("perf_event_max_stack", "127"),
    ("perf_event_mlock_kb", "516"),
    ("print-fatal-signals", "0"),
    ("printk", "4\t4\t1\t7"),
    ("printk_ratelimit", "5"),
    ("sched_autogroup_enabled", "0"),
    ("sched_rr_timeslice_ms", "100"),
    ("sched_rt_period_us", "1000000"),
    ("sched_rt_runtime_us", "950000"),
    ("sem_next_id", "-1"),
    ("shm_next_id", "-1"),
    ("shm_rmid_forced", "0"),
    ("soft_watchdog", "0"),
    ("softlockup_panic", "0"),
    ("sysctl_writes_strict", "1"),
    ("sysrq", "0"),
    ("unprivileged_bpf_disabled", "2"),
    ("watchdog", "0"),
    ("watchdog_thresh", "10"),
];
const KEYS: Lines = &[
    ("gc_delay", "300"),
    ("maxbytes", "20000"),
    ("maxkeys", "200"),
    ("root_maxbytes", "25000000"),
    ("root_maxkeys", "1000000"),
];
const VM: Lines = &[
    ("admin_reserve_kbytes", "8192"),
    ("compaction_proactiveness", "20"),
    ("dirty_background_bytes", "0"),
    ("dirty_background_ratio", "10"),
    ("dirty_bytes", "0"),
    ("dirty_expire_centisecs", "3000"),
    ("dirty_ratio", "20"),
    ("dirty_writeback_centisecs", "500"),
    ("dirtytime_expire_seconds", "43200"),
    ("extfrag_threshold", "500"),
    ("hugetlb_shm_group", "0"),
    ("laptop_mode", "0"),
    ("legacy_va_layout", "0"),
    ("memfd_noexec", "0"),
    ("min_free_kbytes", "0"),
    ("mmap_rnd_bits", "28"),
    ("nr_overcommit_hugepages", "0"),
    ("oom_dump_tasks", "0"),
    ("oom_kill_allocating_task", "0"),
    ("overcommit_kbytes", "0"),
    ("page-cluster", "3"),
    ("panic_on_oom", "0"),
    ("percpu_pagelist_high_fraction", "0"),
    ("stat_interval", "1"),
    ("unprivileged_userfaultfd", "0"),
    ("user_reserve_kbytes", "131072"),
    ("vfs_cache_pressure", "100"),
    ("watermark_boost_factor", "15000"),
    ("watermark_scale_factor", "10"),
    ("zone_reclaim_mode", "0"),
];
const FILES: Lines = &[
    ("aio-nr", "0"),
    ("dentry-state", "0\t0\t45\t0\t0\t0"),
    ("dir-notify-enable", "1"),
    ("inode-nr", "0\t0"),
    ("inode-state", "0\t0\t0\t0\t0\t0\t0"),
    ("lease-break-time", "45"),
    ("leases-enable", "0"),
    ("overflowgid", "65534"),
    ("overflowuid", "65534"),
    ("protected_fifos", "0"),
    ("protected_regular", "0"),
];
const CORE: Lines = &[
    ("busy_poll", "0"),
    ("busy_read", "0"),
    ("default_qdisc", "pfifo_fast"),
    ("dev_weight", "64"),
    ("netdev_budget", "300"),
    ("netdev_max_backlog", "1000"),
    ("optmem_max", "131072"),
];
const IPV4: Lines = &[
    ("icmp_echo_ignore_all", "0"),
    ("ip_local_reserved_ports", ""),
    ("ip_no_pmtu_disc", "0"),
    ("ip_nonlocal_bind", "0"),
    ("tcp_available_congestion_control", "reno cubic"),
    ("tcp_allowed_congestion_control", "reno cubic"),
    ("tcp_congestion_control", "cubic"),
    ("tcp_ecn", "2"),
    ("tcp_fastopen", "1"),
    ("tcp_keepalive_intvl", "75"),
    ("tcp_keepalive_probes", "9"),
    ("tcp_max_syn_backlog", "2048"),
    ("tcp_max_tw_buckets", "131072"),
    ("tcp_moderate_rcvbuf", "1"),
    ("tcp_mtu_probing", "0"),
    ("tcp_no_metrics_save", "0"),
    ("tcp_orphan_retries", "0"),
    ("tcp_reordering", "3"),
    ("tcp_retries1", "3"),
    ("tcp_retries2", "15"),
    ("tcp_sack", "1"),
    ("tcp_slow_start_after_idle", "1"),
    ("tcp_syn_retries", "6"),
    ("tcp_synack_retries", "5"),
    ("tcp_syncookies", "1"),
    ("tcp_timestamps", "1"),
    ("tcp_tw_reuse", "2"),
    ("tcp_window_scaling", "1"),
    ("udp_rmem_min", "4096"),
    ("udp_wmem_min", "4096"),
];

fn lines(values: Lines) -> impl Iterator<Item = (&'static [u8], Arc<dyn Inode>)> {
    values.iter().map(|(name, value)| line(name.as_bytes(), *value))
}

/// What filters of system calls can say (seccomp(2)), and what of it would be logged.
const ACTIONS: &str = "kill_process kill_thread trap errno user_notif trace log allow";
const LOGGED: &str = "kill_process kill_thread trap errno user_notif trace log";

/// A name up to its NUL, as a line.
fn name(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().take_while(|byte| *byte != 0).chain([b'\n']).collect()
}

/// The directory.
pub(super) fn tree(kernel: &Arc<Kernel>) -> (&'static [u8], Arc<dyn Inode>) {
    let boot_id = {
        let mut bytes = [0u8; 16];
        let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
        uuid(bytes)
    };
    let random = vec![
        line(b"boot_id", boot_id),
        file(b"uuid", |_| {
            let mut bytes = [0u8; 16];
            rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
            Ok(format!("{}\n", uuid(bytes)).into_bytes())
        }),
        line(b"entropy_avail", "256"),
        line(b"poolsize", "256"),
        line(b"write_wakeup_threshold", "256"),
        line(b"urandom_min_reseed_secs", "60"),
    ];
    let mut sys_kernel = vec![
        file(b"hostname", |task| Ok(name(&task.namespaces().uts.names.lock().host))),
        file(b"domainname", |task| Ok(name(&task.namespaces().uts.names.lock().domain))),
        line(b"osrelease", RELEASE),
        line(b"ostype", "Linux"),
        line(b"version", VERSION),
        dir(
            b"pty",
            vec![
                line(b"max", crate::fs::devpts::MAX.to_string()),
                file(b"nr", |task| Ok(format!("{}\n", task.kernel.ptys.count()).into_bytes())),
                line(b"reserve", "0"),
            ],
        ),
        line(b"pid_max", "4194304"),
        line(b"threads-max", kernel.config.max_tasks.to_string()),
        line(b"cap_last_cap", "40"),
        line(b"ngroups_max", "65536"),
        line(b"randomize_va_space", "2"),
        line(b"core_pattern", "core"),
        line(b"core_uses_pid", "0"),
        line(b"overflowuid", "65534"),
        line(b"overflowgid", "65534"),
        line(b"shmmax", "18446744073692774399"),
        line(b"shmall", "18446744073692774399"),
        line(b"shmmni", "4096"),
        line(b"msgmax", "8192"),
        line(b"msgmnb", "16384"),
        line(b"msgmni", "32000"),
        line(b"sem", format!("{SEMMSL}\t{SEMMNS}\t{SEMOPM}\t{SEMMNI}")),
        line(b"perf_event_paranoid", "4"),
        line(b"kptr_restrict", "1"),
        line(b"dmesg_restrict", "1"),
        line(b"tainted", "0"),
        dir(b"seccomp", vec![line(b"actions_avail", ACTIONS), line(b"actions_logged", LOGGED)]),
        dir(b"random", random),
        dir(b"yama", vec![line(b"ptrace_scope", "0")]),
    ];
    let mut vm = vec![
        line(b"overcommit_memory", "0"),
        line(b"overcommit_ratio", "50"),
        line(b"max_map_count", "65530"),
        line(b"mmap_min_addr", "65536"),
        line(b"swappiness", "60"),
        line(b"nr_hugepages", "0"),
    ];
    let inotify = vec![
        line(b"max_queued_events", QUEUED.to_string()),
        line(b"max_user_instances", "128"),
        line(b"max_user_watches", WATCHES.to_string()),
    ];
    let mqueue = vec![
        line(b"queues_max", QUEUES_MAX.to_string()),
        line(b"msg_max", MSG_MAX.to_string()),
        line(b"msgsize_max", MSGSIZE_MAX.to_string()),
        line(b"msg_default", MSG_MAX.to_string()),
        line(b"msgsize_default", MSGSIZE_MAX.to_string()),
    ];
    // Bounded by the tasks that are in them, and by mounts.
    let user = [
        (&b"max_cgroup_namespaces"[..], "32768"),
        (b"max_ipc_namespaces", "256"),
        (b"max_mnt_namespaces", "32768"),
        (b"max_net_namespaces", "4096"),
        (b"max_pid_namespaces", "4096"),
        (b"max_time_namespaces", "4096"),
        (b"max_user_namespaces", "32768"),
        (b"max_uts_namespaces", "32768"),
    ];
    let user = user.into_iter().map(|(name, most)| line(name, most)).collect();
    let mut sys_fs = vec![
        line(b"mount-max", crate::vfs::MOUNT_MAX.to_string()),
        line(b"file-max", "1048576"),
        line(b"file-nr", "64\t0\t1048576"),
        line(b"nr_open", "1048576"),
        line(b"pipe-max-size", "1048576"),
        line(b"pipe-user-pages-soft", "16384"),
        line(b"pipe-user-pages-hard", "0"),
        line(b"aio-max-nr", "65536"),
        line(b"protected_hardlinks", "0"),
        line(b"protected_symlinks", "0"),
        line(b"suid_dumpable", "0"),
        dir(b"inotify", inotify),
        dir(b"mqueue", mqueue),
        dir(b"epoll", vec![line(b"max_user_watches", "431922")]),
    ];
    let mut core = vec![
        line(b"somaxconn", "4096"),
        line(b"rmem_max", "212992"),
        line(b"wmem_max", "212992"),
        line(b"rmem_default", "212992"),
        line(b"wmem_default", "212992"),
    ];
    let mut ipv4 = vec![
        line(b"ip_local_port_range", "32768\t60999"),
        line(b"tcp_rmem", "4096\t131072\t6291456"),
        line(b"tcp_wmem", "4096\t16384\t4194304"),
        line(b"ip_forward", "0"),
        line(b"ip_unprivileged_port_start", "1024"),
        line(b"ip_default_ttl", "64"),
        line(b"ping_group_range", "0\t2147483647"),
        line(b"igmp_max_memberships", "20"),
        line(b"tcp_fin_timeout", "60"),
        line(b"tcp_keepalive_time", "7200"),
    ];
    sys_kernel.extend(lines(KERNEL));
    sys_kernel.push(dir(b"keys", lines(KEYS).collect()));
    vm.extend(lines(VM));
    sys_fs.extend(lines(FILES));
    core.extend(lines(CORE));
    ipv4.extend(lines(IPV4));
    let unix = vec![line(b"max_dgram_qlen", "10")];
    let net = vec![dir(b"core", core), dir(b"ipv4", ipv4), dir(b"unix", unix)];
    let debug = vec![line(b"exception-trace", "0")];
    let all: Names = vec![
        dir(b"debug", debug),
        dir(b"fs", sys_fs),
        dir(b"kernel", sys_kernel),
        dir(b"net", net),
        dir(b"user", user),
        dir(b"vm", vm),
    ];
    dir(b"sys", all)
}

/// A random UUID (version 4) of these bytes.
fn uuid(bytes: [u8; 16]) -> String {
    let number = u128::from_be_bytes(bytes) & !(0xf << 76) & !(0xc << 60) | 4 << 76 | 8 << 60;
    let hex = format!("{number:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}
