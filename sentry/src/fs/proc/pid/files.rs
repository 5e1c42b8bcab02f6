//! The files of a process directory: which there are, who may open them, what they say and take.

use super::idmap;
use super::mem::Mem;
use super::pagemap::Pagemap;
use super::{Subject, Who, maps, status};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::fs::proc::{FS, mounts};
use crate::fs::pseudo::{Source, Text};
use crate::task::creds::{Creds, cap};
use crate::task::pidns::PidNs;
use crate::task::timens::{self, Offsets};
use crate::task::userns::Ids;
use crate::task::{Task, access, usage};
use crate::vfs::attr::Attr;
use crate::vfs::file::FileOps;
use crate::vfs::inode::{Inode, StatFs};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use syscall_table::abi::S_IFREG;
use syscall_table::errno::Errno;

/// One name.
pub(super) struct Row {
    pub(super) name: &'static [u8],
    mode: u32,
    /// Only for those who may trace the process.
    traced: bool,
    /// Threads have it too.
    pub(super) threads: bool,
}

const fn row(name: &'static [u8], mode: u32, traced: bool, threads: bool) -> Row {
    Row { name, mode, traced, threads }
}

/// All of them, in no order that means anything.
pub(super) const FILES: &[Row] = &[
    row(b"maps", 0o444, true, true),
    row(b"smaps", 0o444, true, true),
    row(b"smaps_rollup", 0o444, true, true),
    row(b"stat", 0o444, false, true),
    row(b"statm", 0o444, false, true),
    row(b"status", 0o444, false, true),
    row(b"cmdline", 0o444, false, true),
    row(b"environ", 0o400, true, true),
    row(b"comm", 0o644, false, true),
    row(b"limits", 0o444, false, true),
    row(b"mountinfo", 0o444, false, true),
    row(b"mounts", 0o444, false, true),
    row(b"mountstats", 0o400, false, false),
    row(b"cgroup", 0o444, false, true),
    row(b"cpuset", 0o444, false, true),
    row(b"auxv", 0o400, true, true),
    row(b"mem", 0o600, true, true),
    row(b"pagemap", 0o400, true, true),
    row(b"oom_score_adj", 0o644, false, true),
    row(b"oom_adj", 0o644, false, true),
    row(b"oom_score", 0o444, false, true),
    row(b"loginuid", 0o644, false, true),
    row(b"sessionid", 0o444, false, true),
    row(b"setgroups", 0o644, false, false),
    row(b"uid_map", 0o644, false, true),
    row(b"gid_map", 0o644, false, true),
    row(b"projid_map", 0o644, false, true),
    row(b"personality", 0o400, true, true),
    row(b"timerslack_ns", 0o666, false, false),
    row(b"coredump_filter", 0o644, false, false),
    row(b"sched", 0o644, false, true),
    row(b"schedstat", 0o444, false, true),
    row(b"wchan", 0o444, false, true),
    row(b"io", 0o400, true, true),
    row(b"timers", 0o444, false, false),
    row(b"timens_offsets", 0o644, false, false),
];

pub(super) struct PidFile {
    who: Who,
    row: &'static Row,
    /// Below `task`.
    thread: bool,
    ino: u64,
    owner: (u32, u32),
}

impl PidFile {
    pub(super) fn new(who: Who, row: &'static Row, thread: bool, ino: u64, owner: (u32, u32)) -> PidFile {
        PidFile { who, row, thread, ino, owner }
    }
}

impl Inode for PidFile {
    fn kind(&self) -> u32 {
        S_IFREG
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(FS.attr(self.ino, S_IFREG | self.row.mode, self.owner))
    }

    fn open(self: Arc<Self>, task: &Arc<Task>, _: i32) -> SysResult<Arc<dyn FileOps>> {
        let subject = self.who.find(task)?;
        if self.row.traced && !access::may_trace(task, &subject.process) {
            return Err(Errno::EACCES.into());
        }
        if self.row.name == b"mem" {
            let mm = subject.task.map_or(0, |t| t.mm().id);
            return Ok(Arc::new(Mem { who: self.who.clone(), inode: self, mm }));
        }
        if self.row.name == b"pagemap" {
            let mm = subject.task.map_or(0, |t| t.mm().id);
            return Ok(Arc::new(Pagemap { who: self.who.clone(), inode: self, mm }));
        }
        if matches!(self.row.name, b"mounts" | b"mountinfo" | b"mountstats") {
            let subject = subject.task.ok_or(Errno::EINVAL)?;
            let view = mounts::View::of(&subject)?;
            return Ok(Arc::new(mounts::Mounts::new(self.clone(), self.row.name, view)));
        }
        Ok(Arc::new(Text::new(self, task)))
    }

    fn truncate(&self, _: u64) -> SysResult<()> {
        Ok(())
    }

    fn statfs(&self) -> SysResult<StatFs> {
        FS.statfs()
    }
}

impl Source for PidFile {
    fn make(&self, cx: &mut Cx) -> SysResult<Vec<u8>> {
        let subject = self.who.find(cx.task)?;
        make(cx, &subject, &self.who.ns, self.row, self.thread)
    }

    fn take(&self, cx: &mut Cx, opener: &Creds, data: &[u8]) -> SysResult<()> {
        let subject = self.who.find(cx.task)?;
        let ns = subject.process.creds().ns.clone();
        match self.row.name {
            b"uid_map" => return idmap::write(cx.task, opener, &ns, Ids::Users, data),
            b"gid_map" => return idmap::write(cx.task, opener, &ns, Ids::Groups, data),
            b"setgroups" if opener.capable_in(&ns, cap::SYS_ADMIN) => {
                return idmap::write_setgroups(&ns, data);
            }
            b"timens_offsets" => {
                let changes = timens::parse(data)?;
                let ns = subject.task.ok_or(Errno::ESRCH)?.namespaces().time_for_children;
                return match opener.capable_in(&ns.owner, cap::SYS_TIME) {
                    true => ns.set(&changes),
                    false => Err(Errno::EPERM.into()),
                };
            }
            _ => {}
        }
        take(cx, &subject, self.row.name, data)
    }
}

/// Longest command line shown.
const CMDLINE_MAX: u64 = 1 << 20;
/// Largest environment shown: more than execve(2) takes.
const ENVIRON_MAX: u64 = 8 << 20;

/// The arguments as they are in memory now: programs write over them to name themselves.
fn cmdline(task: &Task) -> Vec<u8> {
    let mm = task.mm();
    let [.., args, args_end, _, end] = mm.layout.lock().marks();
    let read = |from: u64, to: u64| {
        let len = to.saturating_sub(from).min(CMDLINE_MAX);
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        mm.space.read(from, &mut bytes).ok().map(|()| bytes)
    };
    let Some(mut text) = read(args, args_end) else { return Vec::new() };
    if text.last().is_some_and(|byte| *byte != 0) {
        // A name that has grown into the environment ends at its first NUL (setproctitle).
        let Some(all) = read(args, end) else { return text };
        text = all.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
    }
    text
}

/// The environment as it is in memory now.
fn environ(task: &Task) -> Vec<u8> {
    let mm = task.mm();
    let [.., env, end] = mm.layout.lock().marks();
    let mut bytes = vec![0; usize::try_from(end.saturating_sub(env).min(ENVIRON_MAX)).unwrap_or(0)];
    match mm.space.read(env, &mut bytes) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

fn make(cx: &mut Cx, subject: &Subject, ns: &PidNs, row: &Row, thread: bool) -> SysResult<Vec<u8>> {
    let asker = cx.task.clone();
    let process = &subject.process;
    let traced = access::may_trace(&asker, process);
    if row.traced && !traced {
        return Err(Errno::EACCES.into());
    }
    let task = subject.task.as_ref();
    let line = |n: i64| format!("{n}\n").into_bytes();
    let sized = matches!(row.name, b"statm" | b"status" | b"stat");
    if sized && Arc::ptr_eq(process, &asker.process) && !crate::memory::look::answers() {
        // What it uses itself the host tells.
        let used = cx.port()?.rusage(asker.vfork.lock().is_some())?;
        process.rss_seen.store(used.max_rss, Relaxed);
    }
    Ok(match row.name {
        b"stat" => status::stat(subject, ns, !thread, traced, asker.clock_offsets().boottime),
        b"statm" => status::statm(subject),
        b"status" => status::status(&asker, ns, subject),
        b"limits" => status::limits(process),
        b"sched" => status::sched(subject, ns),
        b"schedstat" => {
            let nanos = task.map_or(0, |t| usage::of_task(t).as_nanos());
            let parks = task.map_or(0, |t| t.parks.load(Relaxed));
            format!("{nanos} 0 {parks}\n").into_bytes()
        }
        b"comm" => [subject.comm().as_slice(), b"\n"].concat(),
        b"cgroup" => b"0::/\n".to_vec(),
        b"cpuset" => b"/\n".to_vec(),
        b"oom_score_adj" => line(process.oom_score_adj.load(Relaxed).into()),
        b"oom_adj" => {
            // From the old scale of -17 to 15.
            let adj = i64::from(process.oom_score_adj.load(Relaxed));
            line(if adj == 1000 { 15 } else { adj * 17 / 1000 })
        }
        b"oom_score" => {
            let pid = task.map_or(0, |task| task.mm().space.host_pid());
            let told = crate::memory::look::figures(pid).unwrap_or_default();
            let bytes = told.resident().saturating_add(told.swap).saturating_add(told.tables);
            line(crate::memory::score(process, bytes).max(0))
        }
        b"loginuid" | b"sessionid" => b"4294967295".to_vec(),
        b"setgroups" if process.creds().ns.setgroups.load(Relaxed) => b"allow\n".to_vec(),
        b"setgroups" => b"deny\n".to_vec(),
        b"uid_map" => idmap::show(&asker, &process.creds().ns, Ids::Users),
        b"gid_map" => idmap::show(&asker, &process.creds().ns, Ids::Groups),
        b"projid_map" if !process.creds().ns.is_first() => Vec::new(),
        b"projid_map" => b"         0          0 4294967295\n".to_vec(),
        b"personality" => format!("{:08x}\n", process.personality.load(Relaxed)).into_bytes(),
        b"timerslack_ns" => {
            let slack = task.map_or(0, |t| t.sched.lock().timer_slack);
            line(i64::try_from(if slack == 0 { 50_000 } else { slack }).unwrap_or(i64::MAX))
        }
        b"coredump_filter" => format!("{:08x}\n", process.coredump_filter.load(Relaxed)).into_bytes(),
        b"wchan" => b"0".to_vec(),
        b"io" => io(process),
        b"timers" => Vec::new(),
        b"timens_offsets" => {
            let ns = task.map(|task| task.namespaces().time_for_children);
            timens::show(ns.map_or_else(Offsets::default, |ns| ns.offsets())).into_bytes()
        }
        name => match task {
            // What only a process with memory has.
            None => Vec::new(),
            Some(task) => match name {
                b"cmdline" => cmdline(task),
                b"environ" => environ(task),
                b"auxv" => process.auxv.lock().clone(),
                b"maps" => maps::maps(&asker, task, false)?,
                b"smaps" => maps::maps(&asker, task, true)?,
                b"smaps_rollup" => maps::rollup(task),
                _ => return Err(Errno::ENOENT.into()),
            },
        },
    })
}

fn io(process: &crate::task::Process) -> Vec<u8> {
    let used = process.usage.lock().ended;
    format!(
        "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: {}\nwrite_bytes: {}\ncancelled_write_bytes: 0\n",
        used.blocks_in.saturating_mul(512),
        used.blocks_out.saturating_mul(512)
    )
    .into_bytes()
}

fn integer(data: &[u8]) -> SysResult<i64> {
    let text = std::str::from_utf8(data).map_err(|_| Errno::EINVAL)?;
    Ok(text.trim().parse().map_err(|_| Errno::EINVAL)?)
}

/// Lowest and highest oom_score_adj.
const OOM_SCORE_ADJ: std::ops::RangeInclusive<i64> = -1000..=1000;

fn take(cx: &mut Cx, subject: &Subject, name: &[u8], data: &[u8]) -> SysResult<()> {
    let process = &subject.process;
    let own = Arc::ptr_eq(process, &cx.task.process);
    let creds = cx.task.creds();
    match name {
        b"comm" => {
            let Some(task) = subject.task.as_ref().filter(|_| own) else { return Err(Errno::EINVAL.into()) };
            let text = data.get(..data.len().min(15)).unwrap_or_default();
            let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
            *task.comm.lock() = text.get(..end).unwrap_or_default().to_vec();
            Ok(())
        }
        b"oom_score_adj" | b"oom_adj" => {
            let given = integer(data)?;
            let value = match name {
                b"oom_score_adj" => Some(given).filter(|v| OOM_SCORE_ADJ.contains(v)),
                _ if given == 15 => Some(1000),
                _ => Some(given).filter(|v| (-17..=15).contains(v)).map(|v| v * 1000 / 17),
            };
            let value = value.and_then(|v| i32::try_from(v).ok()).ok_or(Errno::EINVAL)?;
            // The least that whoever had the right to it has set.
            let privileged = creds.capable(cap::SYS_RESOURCE);
            if value < process.oom_score_least.load(Relaxed) && !privileged {
                return Err(Errno::EACCES.into());
            }
            process.oom_score_adj.store(value, Relaxed);
            if privileged {
                process.oom_score_least.store(value, Relaxed);
            }
            Ok(())
        }
        b"timerslack_ns" => {
            let value = u64::try_from(integer(data)?).map_err(|_| Errno::EINVAL)?;
            let Some(task) = &subject.task else { return Err(Errno::ESRCH.into()) };
            if !own && !creds.capable(cap::SYS_NICE) {
                return Err(Errno::EPERM.into());
            }
            task.sched.lock().timer_slack = value;
            Ok(())
        }
        b"coredump_filter" => {
            let text = std::str::from_utf8(data).map_err(|_| Errno::EINVAL)?.trim();
            let value = match text.strip_prefix("0x") {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => text.parse(),
            };
            process.coredump_filter.store(value.map_err(|_| Errno::EINVAL)? & 0x1ff, Relaxed);
            Ok(())
        }
        // That of projects has no meaning here.
        b"projid_map" | b"setgroups" => Err(Errno::EPERM.into()),
        b"loginuid" => Err(Fail::gap(Errno::EPERM, "write to /proc/PID/loginuid")),
        b"sched" => Ok(()),
        _ => Err(Errno::EINVAL.into()),
    }
}
