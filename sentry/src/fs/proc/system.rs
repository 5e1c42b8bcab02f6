//! Files of /proc about the system.

use super::super::pseudo::{Fixed, ino};
use super::{FS, text};
use crate::fail::SysResult;
use crate::ipc::mqueue::{MSG_MAX, MSGSIZE_MAX, QUEUES_MAX};
use crate::ipc::sysv::sem::{SEMMNI, SEMMNS, SEMMSL, SEMOPM};
use crate::kernel::Kernel;
use crate::syscalls::uname::{RELEASE, VERSION};
use crate::task::Task;
use crate::task::usage;
use crate::time::ticks::uptime;
use crate::vfs::inode::Inode;
use crate::vfs::watch::{QUEUED, WATCHES};
use platform::CpuTime;
use std::fmt::Write;
use std::sync::Arc;

pub(super) type Names = Vec<(&'static [u8], Arc<dyn Inode>)>;

fn file(
    name: &'static [u8],
    make: impl Fn(&Task) -> SysResult<Vec<u8>> + Send + Sync + 'static,
) -> (&'static [u8], Arc<dyn Inode>) {
    (name, text(ino(&[b"system", name]), 0o444, (0, 0), make))
}

/// A name up to its NUL, as a line.
fn name(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().take_while(|byte| *byte != 0).chain([b'\n']).collect()
}

fn line(name: &'static [u8], value: impl Into<String>) -> (&'static [u8], Arc<dyn Inode>) {
    let value = value.into();
    file(name, move |_| Ok(format!("{value}\n").into_bytes()))
}

fn dir(name: &'static [u8], names: Names) -> (&'static [u8], Arc<dyn Inode>) {
    (name, Arc::new(Fixed { fs: FS, ino: ino(&[b"dir", name]), names }))
}

fn version() -> String {
    format!("Linux version {RELEASE} (lazaret) {VERSION}\n")
}

fn meminfo() -> Vec<u8> {
    let (total, free) = crate::memory::total_and_free();
    let (total, free) = (total / 1024, free / 1024);
    let buffers = match crate::memory::limit() {
        // Other buffers are the host's.
        Some(_) => 0,
        None => {
            let info = rustix::system::sysinfo();
            (info.bufferram as u64).saturating_mul(info.mem_unit.max(1).into()) / 1024
        }
    };
    let mut out = String::new();
    let rows = [
        ("MemTotal", total),
        ("MemFree", free),
        ("MemAvailable", free.saturating_add(buffers)),
        ("Buffers", buffers),
        ("Cached", 0),
        ("SwapCached", 0),
        ("Active", 0),
        ("Inactive", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Dirty", 0),
        ("Writeback", 0),
        ("AnonPages", 0),
        ("Mapped", 0),
        ("Shmem", 0),
        ("Slab", 0),
        ("CommitLimit", total),
        ("Committed_AS", 0),
        ("VmallocTotal", 34_359_738_367),
        ("Hugepagesize", 2048),
    ];
    for (name, value) in rows {
        let _ = writeln!(out, "{:<16}{value:>8} kB", format!("{name}:"));
    }
    out.into_bytes()
}

/// What filters of system calls can say (seccomp(2)), and what of it would be logged.
const ACTIONS: &str = "kill_process kill_thread trap errno user_notif trace log allow";
const LOGGED: &str = "kill_process kill_thread trap errno user_notif trace log";

/// A generated file `name` of the directory called `of`.
pub(super) fn named(
    of: &'static [u8],
    name: &'static [u8],
    content: String,
) -> (&'static [u8], Arc<dyn Inode>) {
    let make = move |_: &Task| Ok(content.clone().into_bytes());
    (name, text(ino(&[b"system", of, name]), 0o444, (0, 0), make))
}

/// CPU time of all processes, those that have ended too.
fn cpu(task: &Task) -> CpuTime {
    let tree = &task.kernel.tree;
    let mut all = tree.lost_cpu();
    for process in tree.processes() {
        let own = usage::of_process(&process);
        let children = process.usage.lock().children.cpu;
        all.user = all.user.saturating_add(own.user).saturating_add(children.user);
        all.system = all.system.saturating_add(own.system).saturating_add(children.system);
    }
    all
}

fn running(task: &Task) -> usize {
    let tasks: Vec<_> = task.kernel.tree.lock().tasks.values().cloned().collect();
    tasks.iter().filter(|t| t.state_letter() == 'R').count()
}

fn stat(task: &Task, cpus: usize) -> Vec<u8> {
    let used = cpu(task);
    let (user, system) = (usage::ticks(used.user), usage::ticks(used.system));
    let count = i64::try_from(cpus).unwrap_or(1).max(1);
    let idle =
        usage::ticks(uptime()).saturating_mul(count).saturating_sub(user.saturating_add(system)).max(0);
    let mut out = format!("cpu  {user} 0 {system} {idle} 0 0 0 0 0 0\n");
    for cpu in 0..cpus {
        // Which processor ran what is the host's affair: equal shares.
        let _ = writeln!(out, "cpu{cpu} {} 0 {} {} 0 0 0 0 0 0", user / count, system / count, idle / count);
    }
    let boot = crate::time::realtime().saturating_sub(uptime()).as_secs();
    let (made, run) = (task.kernel.tree.pids_given(), running(task));
    let _ = write!(
        out,
        "intr 0\nctxt 0\nbtime {boot}\nprocesses {made}\nprocs_running {run}\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n"
    );
    out.into_bytes()
}

/// The average number of processors used since the sandbox began, in place of averages over the last minutes.
/// How many tasks ran on the average, since the sandbox began: there is no shorter memory.
pub(crate) fn load(task: &Task) -> f64 {
    usage::sum(cpu(task)).as_secs_f64() / uptime().as_secs_f64().max(1.0)
}

fn loadavg(task: &Task) -> Vec<u8> {
    let load = load(task);
    let (run, count) = (running(task), task.kernel.tree.task_count());
    let last = task.kernel.tree.pids_given();
    format!("{load:.2} {load:.2} {load:.2} {run}/{count} {last}\n").into_bytes()
}

/// File-system types.
pub(crate) const FILESYSTEMS: [&str; 9] =
    ["sysfs", "tmpfs", "proc", "pipefs", "sockfs", "devpts", "overlay", "cgroup2", "mqueue"];

/// The fixed files of /proc.
pub(super) fn files(kernel: &Arc<Kernel>) -> Names {
    let cpus = kernel.config.cpus.max(1);
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
    ];
    let sys_kernel = vec![
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
    let vm = vec![
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
        &b"max_cgroup_namespaces"[..],
        b"max_ipc_namespaces",
        b"max_mnt_namespaces",
        b"max_net_namespaces",
        b"max_pid_namespaces",
        b"max_time_namespaces",
        b"max_user_namespaces",
        b"max_uts_namespaces",
    ];
    let made = [&b"cgroup"[..], b"mnt", b"user", b"uts"];
    let user = user
        .into_iter()
        .map(|name| {
            let is_made = made.iter().any(|kind| name.get(4..).is_some_and(|rest| rest.starts_with(kind)));
            line(name, if is_made { "32768" } else { "0" })
        })
        .collect();
    let sys_fs = vec![
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
    let core = vec![
        line(b"somaxconn", "4096"),
        line(b"rmem_max", "212992"),
        line(b"wmem_max", "212992"),
        line(b"rmem_default", "212992"),
        line(b"wmem_default", "212992"),
    ];
    let ipv4 = vec![
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
    vec![
        dir(b"sysvipc", super::sysvipc::files()),
        file(b"version", |_| Ok(version().into_bytes())),
        file(b"cpuinfo", move |_| Ok(super::cpu::info(cpus))),
        file(b"meminfo", |_| Ok(meminfo())),
        file(b"stat", move |task| Ok(stat(task, cpus))),
        file(b"uptime", move |task| {
            let up = uptime().as_secs_f64();
            let idle = (up * cpus as f64 - usage::sum(cpu(task)).as_secs_f64()).max(0.0);
            Ok(format!("{up:.2} {idle:.2}\n").into_bytes())
        }),
        file(b"loadavg", |task| Ok(loadavg(task))),
        line(b"cmdline", "lazaret"),
        file(b"filesystems", |_| {
            Ok(FILESYSTEMS.iter().map(|name| format!("nodev\t{name}\n")).collect::<String>().into_bytes())
        }),
        file(b"swaps", |_| Ok(b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n".to_vec())),
        file(b"devices", |_| {
            Ok(b"Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/ptmx\n128 ptm\n136 pts\n\nBlock devices:\n".to_vec())
        }),
        file(b"modules", |_| Ok(Vec::new())),
        file(b"partitions", |_| Ok(b"major minor  #blocks  name\n\n".to_vec())),
        file(b"diskstats", |_| Ok(Vec::new())),
        file(b"vmstat", |_| Ok(b"nr_free_pages 0\npgfault 0\npgmajfault 0\n".to_vec())),
        file(b"interrupts", move |_| Ok(interrupts(cpus))),
        file(b"locks", |_| Ok(Vec::new())),
        file(b"misc", |_| Ok(Vec::new())),
        file(b"zoneinfo", |_| Ok(Vec::new())),
        file(b"execdomains", |_| Ok(b"0-0\tLinux           \t[kernel]\n".to_vec())),
        dir(b"tty", vec![named(b"tty", b"drivers", TTY_DRIVERS.into())]),
        dir(b"fs", Vec::new()),
        dir(b"bus", Vec::new()),
        dir(b"irq", Vec::new()),
        dir(
            b"pressure",
            [&b"cpu"[..], b"io", b"memory"]
                .into_iter()
                .map(|name| named(b"pressure", name, PRESSURE.into()))
                .collect(),
        ),
        file(b"cgroups", |_| Ok(b"#subsys_name\thierarchy\tnum_cgroups\tenabled\n".to_vec())),
        dir(
            b"sys",
            vec![
                dir(b"kernel", sys_kernel),
                dir(b"vm", vm),
                dir(b"fs", sys_fs),
                dir(b"net", vec![dir(b"core", core), dir(b"ipv4", ipv4)]),
                dir(b"user", user),
            ],
        ),
    ]
}

const TTY_DRIVERS: &str = "/dev/tty             /dev/tty        5       0 system:/dev/tty\n\
                           /dev/ptmx            /dev/ptmx       5       2 system\n\
                           pty_slave            /dev/pts      136 0-1048575 pty:slave\n\
                           pty_master           /dev/ptm      128 0-1048575 pty:master\n";
const PRESSURE: &str =
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";

fn interrupts(cpus: usize) -> Vec<u8> {
    let heads: String = (0..cpus).map(|cpu| format!("{:>11}", format!("CPU{cpu}"))).collect();
    format!("    {heads}\n").into_bytes()
}

/// A random UUID (version 4) of these bytes.
fn uuid(bytes: [u8; 16]) -> String {
    let number = u128::from_be_bytes(bytes) & !(0xf << 76) & !(0xc << 60) | 4 << 76 | 8 << 60;
    let hex = format!("{number:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}
