//! stat, status, statm, limits, sched.

use super::Subject;
use super::maps::Sizes;
use crate::mm::Marks;
use crate::signal::bit;
use crate::task::creds::Creds;
use crate::task::pidns::PidNs;
use crate::task::{Process, Task, usage};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use syscall_table::abi::getrlimit::*;
use syscall_table::abi::sigaction::{NSIG, SIG_DFL, SIG_IGN};

impl Task {
    /// The letter of proc_pid_stat(5), "state".
    pub(crate) fn state_letter(&self) -> char {
        if self.is_dead() {
            return 'Z';
        }
        if self.tracing.is_stopped() {
            return 't';
        }
        if self.process.stopped.load(SeqCst) != 0 && !self.tracing.is_traced() {
            return 'T';
        }
        match self.waiter.is_parked() {
            // A parent of vfork is not woken by signals.
            true if self.sleeps_deeply.load(Relaxed) => 'D',
            true => 'S',
            false => 'R',
        }
    }
}

impl Subject {
    fn letter(&self) -> char {
        self.task.as_ref().map_or('Z', |task| task.state_letter())
    }

    fn creds(&self) -> Arc<Creds> {
        self.task.as_ref().map_or_else(|| self.process.creds(), |task| task.creds())
    }

    pub(super) fn comm(&self) -> Vec<u8> {
        self.task.as_ref().map_or_else(|| self.process.comm(), |task| task.comm.lock().clone())
    }

    fn id(&self) -> i32 {
        self.task.as_ref().map_or(self.process.pid, |task| task.tid())
    }
}

struct Memory {
    size: u64,
    resident: u64,
    peak_resident: u64,
    tables: u64,
    swap: u64,
    shared: u64,
    text: u64,
    data: u64,
    locked: u64,
    stack: u64,
    file: u64,
    marks: Marks,
}

/// Sizes in bytes. What is resident the launcher tells; where it does not, the most that the host told the process of
/// itself is shown, and else an estimate.
fn memory(task: &Task) -> Memory {
    let mm = task.mm();
    let told = crate::memory::look::figures(mm.space.host_pid());
    let sizes = match &told {
        Some(told) => Sizes { anonymous: told.anon, file: told.file, shared: told.shmem },
        None => Sizes::of_task(task),
    };
    let layout = mm.layout.lock();
    let (mut text, mut locked, data) = (0u64, 0u64, layout.data());
    for (start, area) in layout.iter() {
        let len = area.end.saturating_sub(start);
        if area.prot & 4 != 0 {
            text = text.saturating_add(len);
        }
        if area.locked.is_some() {
            locked = locked.saturating_add(len);
        }
    }
    let seen = task.process.rss_seen.load(Relaxed).saturating_mul(1024);
    let size = layout.total();
    let resident = match told {
        Some(told) => told.resident(),
        None => if seen != 0 { seen } else { sizes.resident() }.min(size.max(seen)),
    };
    let stack = layout.stack();
    Memory {
        size,
        resident,
        peak_resident: told.map_or(resident, |told| told.peak.max(resident)),
        tables: told.map_or(size / 512, |told| told.tables),
        swap: told.map_or(0, |told| told.swap),
        shared: sizes.shared,
        text,
        data,
        locked,
        stack: stack.1.saturating_sub(stack.0).min(132 << 10),
        file: sizes.file,
        marks: layout.marks(),
    }
}

/// statm.
pub(super) fn statm(subject: &Subject) -> Vec<u8> {
    let Some(task) = &subject.task else { return b"0 0 0 0 0 0 0\n".to_vec() };
    let m = memory(task);
    let pages = |bytes: u64| bytes / 4096;
    format!(
        "{} {} {} {} 0 {} 0\n",
        pages(m.size),
        pages(m.resident),
        pages(m.file.saturating_add(m.shared).min(m.resident)),
        pages(m.text),
        pages(m.data.saturating_add(m.stack))
    )
    .into_bytes()
}

struct Signals {
    private: u64,
    shared: u64,
    blocked: u64,
    ignored: u64,
    caught: u64,
    queued: u64,
}

fn signals(subject: &Subject) -> Signals {
    let process = &subject.process;
    let sighand = process.sighand();
    let (mut ignored, mut caught) = (0, 0);
    for signal in 1..=NSIG {
        match sighand.get(signal).sa_handler {
            SIG_DFL => {}
            SIG_IGN => ignored |= bit(signal),
            _ => caught |= bit(signal),
        }
    }
    let (private, blocked) = subject.task.as_ref().map_or((0, 0), |task| {
        let signals = task.signals.lock();
        (signals.queue.set(), signals.mask)
    });
    let shared = process.pending.lock().queue.set();
    Signals { private, shared, blocked, ignored, caught, queued: process.queued_signals() }
}

/// stat. With `whole` of the process, else of the one thread. `ahead`: nanoseconds of the asker's CLOCK_BOOTTIME.
pub(super) fn stat(subject: &Subject, pidns: &PidNs, whole: bool, traced: bool, ahead: i64) -> Vec<u8> {
    let process = &subject.process;
    let (ppid, pgid, sid, exit_signal, zombie) = {
        let tree = subject.kernel.tree.lock();
        tree.nodes
            .get(&process.pid)
            .map_or((0, 0, 0, 0, None), |n| (n.parent, n.pgid, n.sid, n.exit_signal, n.zombie))
    };
    let [ppid, pgid, sid] = [ppid, pgid, sid].map(|pid| pidns.local(pid));
    let comm = String::from_utf8_lossy(&subject.comm()).into_owned();
    let ctty = process.ctty.lock().clone();
    let (tty, foreground) = ctty.map_or((0, -1), |tty| (tty.device(), pidns.local(tty.job().foreground())));
    let cpu = cpu(subject, whole);
    let (ended, children) = {
        let usage = process.usage.lock();
        (usage.ended, usage.children)
    };
    let sched = subject.task.as_ref().map(|t| *t.sched.lock()).unwrap_or_default();
    let real_time = matches!(sched.policy, 1 | 2);
    let priority = if real_time { -1 - sched.priority } else { 20 + sched.nice };
    let threads = process.thread_count().max(1);
    let start = crate::time::ticks::since_boot(crate::time::shifted(process.started, ahead));
    let sig = signals(subject);
    let m = subject.task.as_ref().map(|t| memory(t));
    let (size, rss) = m.as_ref().map_or((0, 0), |m| (m.size, m.resident / 4096));
    // Addresses are for those who may trace it; it matters to nobody else where things lie.
    let shown = m.filter(|_| traced);
    let mut out = format!(
        "{} ({comm}) {} {ppid} {pgid} {sid} {tty} {foreground} 4194304 {} {} {} {} {} {} {} {} {priority} {} {threads} 0 {start} {size} {rss} {}",
        pidns.local(subject.id()),
        subject.letter(),
        ended.minor_faults,
        children.minor_faults,
        ended.major_faults,
        children.major_faults,
        usage::ticks(cpu.user),
        usage::ticks(cpu.system),
        usage::ticks(children.cpu.user),
        usage::ticks(children.cpu.system),
        sched.nice,
        process.limit(RLIMIT_RSS),
    );
    let [
        start_code,
        end_code,
        start_data,
        end_data,
        stack,
        start_brk,
        _,
        arg_start,
        arg_end,
        env_start,
        env_end,
    ] = shown.map_or([0; 11], |m| m.marks);
    let asleep = u64::from(subject.letter() == 'S');
    let status = if traced { zombie.map_or(0, |s| s.raw) } else { 0 };
    let number = |n: i32| u64::from(n.unsigned_abs());
    let fields = [
        start_code,
        end_code,
        stack,
        0,
        0,
        // The low 31 signals; status has them all.
        sig.private & 0x7fff_ffff,
        sig.blocked & 0x7fff_ffff,
        sig.ignored & 0x7fff_ffff,
        sig.caught & 0x7fff_ffff,
        asleep,
        0,
        0,
    ];
    for field in fields {
        let _ = write!(out, " {field}");
    }
    let exit_signal = if whole || subject.id() == process.pid { exit_signal } else { -1 };
    let _ = write!(
        out,
        " {exit_signal} 0 {} {} 0 0 0 {} {} {} {} {} {} {} {status}",
        number(if real_time { sched.priority } else { 0 }),
        number(sched.policy),
        start_data,
        end_data,
        start_brk,
        arg_start,
        arg_end,
        env_start,
        env_end,
    );
    out.push('\n');
    out.into_bytes()
}

fn cpu(subject: &Subject, whole: bool) -> platform::CpuTime {
    let of_process = usage::of_process(&subject.process);
    match &subject.task {
        // The part of a thread is divided as the whole is.
        Some(task) if !whole && subject.process.thread_count() > 1 => {
            let (part, all) =
                (usage::of_task(task), usage::sum(of_process).max(std::time::Duration::from_nanos(1)));
            let user = of_process.user.mul_f64((part.as_secs_f64() / all.as_secs_f64()).clamp(0.0, 1.0));
            platform::CpuTime { user, system: part.saturating_sub(user) }
        }
        _ => of_process,
    }
}

fn word(letter: char) -> &'static str {
    match letter {
        'T' => "stopped",
        't' => "tracing stop",
        'R' => "running",
        'Z' => "zombie",
        'D' => "disk sleep",
        _ => "sleeping",
    }
}

/// status.
pub(super) fn status(asker: &Task, pidns: &PidNs, subject: &Subject) -> Vec<u8> {
    let process = &subject.process;
    let c = subject.creds();
    let ns = asker.creds().ns.clone();
    let (ppid, pgid, sid) = {
        let tree = subject.kernel.tree.lock();
        tree.nodes.get(&process.pid).map_or((0, 0, 0), |n| (n.parent, n.pgid, n.sid))
    };
    let letter = subject.letter();
    let (pid, id) = (process.pid, subject.id());
    let mut out = format!("Name:\t{}\n", escape(&subject.comm()));
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name}:\t{value}");
    };
    let task = subject.task.as_ref();
    if let Some(task) = task {
        line("Umask", format!("{:04o}", *task.fs().umask.lock()));
    }
    line("State", format!("{letter} ({})", word(letter)));
    line("Tgid", pidns.local(pid).to_string());
    line("Ngid", "0".into());
    line("Pid", pidns.local(id).to_string());
    line("PPid", pidns.local(ppid).to_string());
    let tracer = task.and_then(|task| task.tracing.tracer()).map_or(0, |tracer| tracer.tid());
    line("TracerPid", pidns.local(tracer).to_string());
    line("Uid", [c.uid, c.euid, c.suid, c.fsuid].map(|id| ns.user(id).to_string()).join("\t"));
    line("Gid", [c.gid, c.egid, c.sgid, c.fsgid].map(|id| ns.group(id).to_string()).join("\t"));
    line("FDSize", task.map_or(0, |t| t.files().numbers().last().map_or(0, |n| n + 1).max(64)).to_string());
    line("Groups", c.groups.iter().map(|g| format!("{} ", ns.group(*g))).collect::<String>() + " ");
    for (name, number) in [("NStgid", pid), ("NSpid", id), ("NSpgid", pgid), ("NSsid", sid)] {
        let all = pidns.all(&process.pidns, number);
        line(name, all.iter().map(i32::to_string).collect::<Vec<_>>().join("\t"));
    }
    line("Kthread", "0".into());
    if let Some(task) = task {
        let m = memory(task);
        let mut kib = |name: &str, bytes: u64| line(name, format!("{:8} kB", bytes / 1024));
        kib("VmPeak", m.size);
        kib("VmSize", m.size);
        kib("VmLck", m.locked);
        kib("VmPin", 0);
        kib("VmHWM", m.peak_resident);
        kib("VmRSS", m.resident);
        kib("RssAnon", m.resident.saturating_sub(m.file.saturating_add(m.shared)));
        kib("RssFile", m.file.min(m.resident));
        kib("RssShmem", m.shared.min(m.resident.saturating_sub(m.file.min(m.resident))));
        kib("VmData", m.data);
        kib("VmStk", m.stack);
        let [start_code, end_code, ..] = m.marks;
        let program = end_code.saturating_sub(start_code);
        kib("VmExe", program);
        kib("VmLib", m.text.saturating_sub(program));
        kib("VmPTE", m.tables);
        kib("VmSwap", m.swap);
        kib("HugetlbPages", 0);
        line("CoreDumping", "0".into());
        line("THP_enabled", "1".into());
        line("untag_mask", "0xffffffffffffffff".into());
    }
    line("Threads", process.thread_count().max(1).to_string());
    let sig = signals(subject);
    line("SigQ", format!("{}/{}", sig.queued, process.limit(RLIMIT_SIGPENDING)));
    for (name, set) in [
        ("SigPnd", sig.private),
        ("ShdPnd", sig.shared),
        ("SigBlk", sig.blocked),
        ("SigIgn", sig.ignored),
        ("SigCgt", sig.caught),
        ("CapInh", c.inheritable),
        ("CapPrm", c.permitted),
        ("CapEff", c.effective),
        ("CapBnd", c.bounding),
        ("CapAmb", c.ambient),
    ] {
        line(name, format!("{set:016x}"));
    }
    let flag = |on: bool| u8::from(on).to_string();
    line("NoNewPrivs", flag(task.is_some_and(|t| t.no_new_privs.load(Relaxed))));
    line("Seccomp", task.map_or(0, |t| t.seccomp.mode()).to_string());
    line("Seccomp_filters", task.map_or(0, |t| t.seccomp.count()).to_string());
    line("Speculation_Store_Bypass", "unknown".into());
    line("SpeculationIndirectBranch", "unknown".into());
    let cpus = subject.kernel.config.cpus.clamp(1, 64);
    let all = u64::MAX.checked_shr(64 - cpus as u32).unwrap_or(u64::MAX);
    let mask = task.and_then(|t| t.sched.lock().affinity).map_or(all, |set| set & all);
    line("Cpus_allowed", format!("{mask:x}"));
    line("Cpus_allowed_list", list(mask));
    line("Mems_allowed", "1".into());
    line("Mems_allowed_list", "0".into());
    let parks = task.map_or(0, |t| t.parks.load(Relaxed));
    line("voluntary_ctxt_switches", parks.to_string());
    line("nonvoluntary_ctxt_switches", process.usage.lock().ended.involuntary.to_string());
    out.into_bytes()
}

/// A set as a list of ranges: `0-3,5`.
pub(in super::super) fn list(set: u64) -> String {
    let has = |n: u32| set.checked_shr(n).unwrap_or(0) & 1 != 0;
    let mut out = String::new();
    let mut at = 0;
    while at < 64 {
        if !has(at) {
            at += 1;
            continue;
        }
        let first = at;
        while at < 64 && has(at) {
            at += 1;
        }
        let comma = if out.is_empty() { "" } else { "," };
        let last = at - 1;
        let _ =
            if first == last { write!(out, "{comma}{first}") } else { write!(out, "{comma}{first}-{last}") };
    }
    out
}

/// A name in one line of status.
fn escape(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace('\\', "\\\\").replace('\n', "\\n")
}

/// limits.
pub(super) fn limits(process: &Process) -> Vec<u8> {
    let rows = [
        ("Max cpu time", RLIMIT_CPU, "seconds"),
        ("Max file size", RLIMIT_FSIZE, "bytes"),
        ("Max data size", RLIMIT_DATA, "bytes"),
        ("Max stack size", RLIMIT_STACK, "bytes"),
        ("Max core file size", RLIMIT_CORE, "bytes"),
        ("Max resident set", RLIMIT_RSS, "bytes"),
        ("Max processes", RLIMIT_NPROC, "processes"),
        ("Max open files", RLIMIT_NOFILE, "files"),
        ("Max locked memory", RLIMIT_MEMLOCK, "bytes"),
        ("Max address space", RLIMIT_AS, "bytes"),
        ("Max file locks", RLIMIT_LOCKS, "locks"),
        ("Max pending signals", RLIMIT_SIGPENDING, "signals"),
        ("Max msgqueue size", RLIMIT_MSGQUEUE, "bytes"),
        ("Max nice priority", RLIMIT_NICE, ""),
        ("Max realtime priority", RLIMIT_RTPRIO, ""),
        ("Max realtime timeout", RLIMIT_RTTIME, "us"),
    ];
    let mut out = format!("{:<26}{:<21}{:<21}{:<10}\n", "Limit", "Soft Limit", "Hard Limit", "Units");
    let limits = process.limits.lock().clone();
    let show = |v: u64| if v == RLIM_INFINITY { "unlimited".to_owned() } else { v.to_string() };
    for (name, resource, unit) in rows {
        let limit = limits.get(resource);
        let _ = writeln!(out, "{name:<26}{:<21}{:<21}{unit:<10}", show(limit.rlim_cur), show(limit.rlim_max));
    }
    out.into_bytes()
}

/// sched, as far as it is known.
pub(super) fn sched(subject: &Subject, ns: &PidNs) -> Vec<u8> {
    let Some(task) = &subject.task else { return Vec::new() };
    let (sched, parks) = (*task.sched.lock(), task.parks.load(Relaxed));
    let comm = String::from_utf8_lossy(&subject.comm()).into_owned();
    let mut out = format!(
        "{comm} ({}, #threads: {})\n{:-<67}\n",
        task.name().in_ns(ns),
        subject.process.thread_count(),
        ""
    );
    let runtime = usage::of_task(task).as_secs_f64() * 1000.0;
    let _ = writeln!(out, "{:<45}:{runtime:>21.6}", "se.sum_exec_runtime");
    for (name, value) in [
        ("nr_switches", parks),
        ("nr_voluntary_switches", parks),
        ("nr_involuntary_switches", 0),
        ("policy", u64::from(sched.policy.unsigned_abs())),
        ("prio", u64::from((120 + sched.nice).unsigned_abs())),
    ] {
        let _ = writeln!(out, "{name:<45}:{value:>21}");
    }
    out.into_bytes()
}
