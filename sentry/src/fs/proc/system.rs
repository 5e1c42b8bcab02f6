//! Files of /proc about the system.

use super::super::pseudo::{Fixed, ino};
use super::{FS, memory, sysctl, text};
use crate::fail::SysResult;
use crate::kernel::Kernel;
use crate::syscalls::uname::{RELEASE, VERSION};
use crate::task::Task;
use crate::task::usage;
use crate::time::shifted;
use crate::time::ticks::uptime;
use crate::vfs::inode::Inode;
use platform::CpuTime;
use std::fmt::Write;
use std::sync::Arc;

pub(super) type Names = Vec<(&'static [u8], Arc<dyn Inode>)>;

pub(super) fn file(
    name: &'static [u8],
    make: impl Fn(&Task) -> SysResult<Vec<u8>> + Send + Sync + 'static,
) -> (&'static [u8], Arc<dyn Inode>) {
    (name, text(ino(&[b"system", name]), 0o444, (0, 0), make))
}

pub(super) fn line(name: &'static [u8], value: impl Into<String>) -> (&'static [u8], Arc<dyn Inode>) {
    let value = value.into();
    file(name, move |_| Ok(format!("{value}\n").into_bytes()))
}

pub(super) fn dir(name: &'static [u8], names: Names) -> (&'static [u8], Arc<dyn Inode>) {
    (name, Arc::new(Fixed { fs: FS, ino: ino(&[b"dir", name]), names }))
}

fn version() -> String {
    format!("Linux version {RELEASE} (lazaret) {VERSION}\n")
}

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
    let offset = task.clock_offsets().boottime;
    let boot = crate::time::realtime().saturating_sub(shifted(uptime(), offset)).as_secs();
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
    let ns = &task.process.pidns;
    let last = if ns.level == 0 { task.kernel.tree.pids_given() } else { ns.last() };
    format!("{load:.2} {load:.2} {load:.2} {run}/{count} {last}\n").into_bytes()
}

/// File-system types.
pub(crate) const FILESYSTEMS: [&str; 9] =
    ["sysfs", "tmpfs", "proc", "pipefs", "sockfs", "devpts", "overlay", "cgroup2", "mqueue"];

/// The fixed files of /proc.
pub(super) fn files(kernel: &Arc<Kernel>) -> Names {
    let cpus = kernel.config.cpus.max(1);
    vec![
        dir(b"sysvipc", super::sysvipc::files()),
        file(b"version", |_| Ok(version().into_bytes())),
        file(b"cpuinfo", move |_| Ok(super::cpu::info(cpus))),
        file(b"meminfo", |_| Ok(memory::meminfo())),
        file(b"stat", move |task| Ok(stat(task, cpus))),
        file(b"uptime", move |task| {
            let idle = (uptime().as_secs_f64() * cpus as f64 - usage::sum(cpu(task)).as_secs_f64()).max(0.0);
            let up = shifted(uptime(), task.clock_offsets().boottime).as_secs_f64();
            Ok(format!("{up:.2} {idle:.2}\n").into_bytes())
        }),
        file(b"loadavg", |task| Ok(loadavg(task))),
        line(b"cmdline", "lazaret"),
        file(b"filesystems", |_| {
            Ok(FILESYSTEMS.iter().map(|name| format!("nodev\t{name}\n")).collect::<String>().into_bytes())
        }),
        file(b"swaps", |_| Ok(b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n".to_vec())),
        file(b"devices", |_| {
            Ok(b"Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/console\n  5 /dev/ptmx\n128 ptm\n136 pts\n\nBlock devices:\n".to_vec())
        }),
        file(b"modules", |_| Ok(Vec::new())),
        file(b"partitions", |_| Ok(b"major minor  #blocks  name\n\n".to_vec())),
        file(b"diskstats", |_| Ok(Vec::new())),
        file(b"vmstat", |task| Ok(memory::vmstat(task))),
        file(b"buddyinfo", |_| Ok(memory::buddyinfo())),
        (b"slabinfo", text(ino(&[b"system", b"slabinfo"]), 0o400, (0, 0), |_| Ok(memory::SLABINFO.into()))),
        file(b"softirqs", move |_| Ok(softirqs(cpus))),
        // What the host's kernel is made of and has loaded is its own.
        file(b"kallsyms", |_| Ok(Vec::new())),
        file(b"keys", |_| Ok(Vec::new())),
        file(b"key-users", |_| Ok(Vec::new())),
        file(b"crypto", |_| Ok(Vec::new())),
        file(b"consoles", |_| Ok(Vec::new())),
        file(b"iomem", |_| Ok(Vec::new())),
        file(b"ioports", |_| Ok(Vec::new())),
        file(b"dma", |_| Ok(Vec::new())),
        file(b"interrupts", move |_| Ok(interrupts(cpus))),
        file(b"locks", |_| Ok(Vec::new())),
        file(b"misc", |_| Ok(Vec::new())),
        file(b"zoneinfo", move |_| Ok(memory::zoneinfo(cpus))),
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
        sysctl::tree(kernel),
    ]
}

const TTY_DRIVERS: &str = "/dev/tty             /dev/tty        5       0 system:/dev/tty\n\
                           /dev/ptmx            /dev/ptmx       5       2 system\n\
                           pty_slave            /dev/pts      136 0-1048575 pty:slave\n\
                           pty_master           /dev/ptm      128 0-1048575 pty:master\n";
const PRESSURE: &str =
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";

fn interrupts(cpus: usize) -> Vec<u8> {
    format!("           {}\n", heads(cpus)).into_bytes()
}

fn heads(cpus: usize) -> String {
    (0..cpus).map(|cpu| format!("CPU{cpu:<8}")).collect()
}

fn softirqs(cpus: usize) -> Vec<u8> {
    let kinds =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    let mut out = format!("                    {}\n", heads(cpus));
    for kind in kinds {
        let _ = writeln!(out, "{:>13}{}", format!("{kind}:"), format!(" {:>10}", 0).repeat(cpus));
    }
    out.into_bytes()
}
