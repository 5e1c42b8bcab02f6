//! /proc/PID and /proc/PID/task/TID.

use super::super::pseudo::{Link, ino};
use super::{FS, number, text};
use crate::fail::SysResult;
use crate::task::Task;
use crate::vfs::attr::Attr;
use crate::vfs::inode::{Caching, Inode, Listed, StatFs};
use crate::vfs::path::Path;
use std::fmt::Write;
use std::sync::Arc;
use syscall_table::abi::S_IFDIR;
use syscall_table::abi::getrlimit::*;
use syscall_table::abi::open::SEEK_CUR;
use syscall_table::errno::Errno;

const FILES: [&[u8]; 18] = [
    b"maps",
    b"smaps",
    b"stat",
    b"statm",
    b"status",
    b"cmdline",
    b"environ",
    b"comm",
    b"limits",
    b"mountinfo",
    b"mounts",
    b"cgroup",
    b"auxv",
    b"oom_score_adj",
    b"oom_score",
    b"loginuid",
    b"wchan",
    b"io",
];
const LINKS: [&[u8]; 3] = [b"exe", b"cwd", b"root"];

/// What a process directory is about, looked up anew each time: a process that ended has none.
#[derive(Clone, Copy)]
struct Who {
    tid: i32,
}

impl Who {
    fn task(self, asker: &Task) -> SysResult<Arc<Task>> {
        asker.kernel.tree.task(self.tid).map_err(|_| Errno::ESRCH.into())
    }
}

fn owner(task: &Task) -> (u32, u32) {
    let creds = task.creds();
    (creds.euid, creds.egid)
}

/// A directory of a process.
struct Dir {
    who: Who,
    what: What,
    owner: (u32, u32),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Process,
    Thread,
    Tasks,
    Fds,
    FdInfos,
    Net,
    Namespaces,
}

/// Namespaces, of which there is one each.
const NAMESPACES: [&str; 8] = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];

/// /proc/PID.
pub(super) fn directory(asker: &Task, pid: i32) -> SysResult<Arc<dyn Inode>> {
    let task = asker.kernel.tree.task(pid).map_err(|_| Errno::ENOENT)?;
    Ok(Arc::new(Dir { who: Who { tid: pid }, what: What::Process, owner: owner(&task) }))
}

impl Dir {
    fn number(&self, name: &[u8]) -> u64 {
        ino(&[b"pid", self.who.tid.to_string().as_bytes(), &[self.what as u8], name])
    }

    fn sub(&self, what: What) -> Arc<dyn Inode> {
        Arc::new(Dir { who: self.who, what, owner: self.owner })
    }
}

impl Inode for Dir {
    fn kind(&self) -> u32 {
        S_IFDIR
    }

    fn attr(&self) -> SysResult<Attr> {
        let mode = if matches!(self.what, What::Fds) { 0o500 } else { 0o555 };
        Ok(FS.attr(self.number(b""), S_IFDIR | mode, self.owner))
    }

    fn caching(&self) -> Caching {
        Caching::Never
    }

    fn given(&self) -> bool {
        true
    }

    fn lookup(&self, asker: &Task, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        let task = self.who.task(asker).map_err(|_| Errno::ENOENT)?;
        let who = self.who;
        match self.what {
            What::Tasks => {
                let tid = number(name).ok_or(Errno::ENOENT)?;
                let thread = asker.kernel.tree.task(tid).map_err(|_| Errno::ENOENT)?;
                if !Arc::ptr_eq(&thread.process, &task.process) {
                    return Err(Errno::ENOENT.into());
                }
                Ok(Arc::new(Dir { who: Who { tid }, what: What::Thread, owner: owner(&thread) }))
            }
            What::Fds => {
                let fd = number(name).ok_or(Errno::ENOENT)?;
                task.files().get(fd).map_err(|_| Errno::ENOENT)?;
                Ok(Arc::new(Link {
                    fs: FS,
                    ino: self.number(name),
                    owner: self.owner,
                    text: Box::new(move |asker| fd_text(asker, who, fd)),
                    follow: Some(Box::new(move |asker| {
                        let file = who.task(asker)?.files().get(fd).map_err(|_| Errno::ENOENT)?;
                        match &file.path {
                            Some(path) => Ok(Some(path.clone())),
                            None => asker.kernel.vfs.nameless(&file).map(Some),
                        }
                    })),
                }))
            }
            What::FdInfos => {
                let fd = number(name).ok_or(Errno::ENOENT)?;
                task.files().get(fd).map_err(|_| Errno::ENOENT)?;
                Ok(text(self.number(name), 0o400, self.owner, move |asker| {
                    let (file, cloexec) = who.task(asker)?.files().get_with_flag(fd)?;
                    let flags = file.flags() | if cloexec { 0o2_000_000 } else { 0 };
                    let mount = file.path.as_ref().map_or(1, |p| p.mount.id);
                    // Held while this very file is read.
                    let own = file.ops.seek_own(0, SEEK_CUR).map(|pos| pos.unwrap_or(0));
                    let pos = own.or(file.pos.peek()).unwrap_or(0);
                    let ino = file.ops.attr().map_or(0, |a| a.ino);
                    Ok(format!("pos:\t{pos}\nflags:\t0{flags:o}\nmnt_id:\t{mount}\nino:\t{ino}\n")
                        .into_bytes())
                }))
            }
            What::Net => Err(Errno::ENOENT.into()),
            What::Namespaces => {
                let at = NAMESPACES.iter().position(|n| n.as_bytes() == name).ok_or(Errno::ENOENT)?;
                let target = format!(
                    "{}:[{}]",
                    NAMESPACES.get(at).unwrap_or(&""),
                    4_026_531_835_usize.saturating_add(at)
                );
                Ok(super::link(self.number(name), self.owner, move |_| Ok(target.clone().into_bytes())))
            }
            What::Process | What::Thread => match name {
                b"fd" => Ok(self.sub(What::Fds)),
                b"fdinfo" => Ok(self.sub(What::FdInfos)),
                b"task" if self.what == What::Process => Ok(self.sub(What::Tasks)),
                b"net" => Ok(self.sub(What::Net)),
                b"ns" => Ok(self.sub(What::Namespaces)),
                b"exe" | b"cwd" | b"root" => Ok(self.place_link(name)),
                _ => {
                    let name = FILES.iter().find(|n| **n == name).ok_or(Errno::ENOENT)?;
                    let private = matches!(*name, b"environ" | b"auxv" | b"io");
                    let mode = if private { 0o400 } else { 0o444 };
                    let thread = self.what == What::Thread;
                    Ok(text(self.number(name), mode, self.owner, move |asker| {
                        let task = who.task(asker)?;
                        make(asker, &task, name, thread)
                    }))
                }
            },
        }
    }

    fn list_for(&self, asker: &Task) -> SysResult<Arc<Vec<Listed>>> {
        let task = self.who.task(asker)?;
        let mut all = Vec::new();
        let mut add =
            |name: &[u8], kind| all.push(Listed { name: name.into(), ino: self.number(name), kind });
        match self.what {
            What::Tasks => {
                for thread in task.process.threads() {
                    add(thread.tid().to_string().as_bytes(), 4);
                }
            }
            What::Fds | What::FdInfos => {
                let kind = if self.what == What::Fds { 10 } else { 8 };
                for fd in task.files().numbers() {
                    add(fd.to_string().as_bytes(), kind);
                }
            }
            What::Net => {}
            What::Namespaces => NAMESPACES.iter().for_each(|name| add(name.as_bytes(), 10)),
            What::Process | What::Thread => {
                for name in FILES {
                    add(name, 8);
                }
                for name in LINKS {
                    add(name, 10);
                }
                for name in [&b"fd"[..], b"fdinfo", b"net", b"ns"] {
                    add(name, 4);
                }
                if self.what == What::Process {
                    add(b"task", 4);
                }
            }
        }
        Ok(Arc::new(all))
    }

    fn statfs(&self) -> SysResult<StatFs> {
        FS.statfs()
    }
}

impl Dir {
    fn place_link(&self, name: &[u8]) -> Arc<dyn Inode> {
        let (who, which) = (self.who, name.first().copied().unwrap_or(0));
        let find = move |asker: &Task| -> SysResult<Path> {
            let task = who.task(asker)?;
            let vfs = &task.kernel.vfs;
            match which {
                b'c' => vfs.cwd_of(&task),
                b'r' => vfs.root_of(&task),
                _ => {
                    let file = task.process.exe_file.lock().clone();
                    file.and_then(|f| f.path.clone()).ok_or(Errno::ENOENT.into())
                }
            }
        };
        Arc::new(Link {
            fs: FS,
            ino: self.number(name),
            owner: self.owner,
            text: Box::new(move |asker| {
                let root = asker.kernel.vfs.root_of(asker)?;
                Ok(find(asker)?.display(Some(&root)))
            }),
            follow: Some(Box::new(move |asker| find(asker).map(Some))),
        })
    }
}

fn fd_text(asker: &Task, who: Who, fd: i32) -> SysResult<Vec<u8>> {
    let file = who.task(asker)?.files().get(fd).map_err(|_| Errno::ENOENT)?;
    match &file.path {
        Some(path) => {
            let root = asker.kernel.vfs.root_of(asker)?;
            Ok(path.display(Some(&root)))
        }
        None => Ok(file.ops.describe().into_bytes()),
    }
}

fn make(asker: &Task, task: &Arc<Task>, name: &[u8], thread: bool) -> SysResult<Vec<u8>> {
    let process = &task.process;
    Ok(match name {
        b"cmdline" => {
            let mut out = Vec::new();
            for arg in process.argv.lock().iter() {
                out.extend_from_slice(arg);
                out.push(0);
            }
            out
        }
        b"environ" => {
            let mut out = Vec::new();
            for var in process.envp.lock().iter() {
                out.extend_from_slice(var);
                out.push(0);
            }
            out
        }
        b"comm" => [task.comm.lock().as_slice(), b"\n"].concat(),
        b"auxv" => process.auxv.lock().clone(),
        b"cgroup" => b"0::/\n".to_vec(),
        b"oom_score_adj" | b"oom_score" => b"0\n".to_vec(),
        b"loginuid" => b"4294967295".to_vec(),
        b"wchan" => b"0".to_vec(),
        b"io" => b"rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n".to_vec(),
        b"maps" => maps(asker, task, false)?,
        b"smaps" => maps(asker, task, true)?,
        b"stat" => stat(asker, task, thread),
        b"statm" => {
            let pages = total(task) / 4096;
            format!("{pages} {pages} 0 1 0 {pages} 0\n").into_bytes()
        }
        b"status" => status(asker, task),
        b"limits" => limits(task),
        b"mounts" | b"mountinfo" => mounts(asker, name == b"mountinfo")?,
        _ => return Err(Errno::ENOENT.into()),
    })
}

fn total(task: &Task) -> u64 {
    task.mm().layout.lock().total()
}

fn state(asker: &Task, task: &Task) -> char {
    use std::sync::atomic::Ordering;
    if task.process.stopped.load(Ordering::SeqCst) != 0 {
        'T'
    } else {
        // A task that asks for itself runs; whether others do is not known here.
        if asker.tid() == task.tid() { 'R' } else { 'S' }
    }
}

fn maps(asker: &Task, task: &Task, sizes: bool) -> SysResult<Vec<u8>> {
    let root = asker.kernel.vfs.root_of(asker)?;
    let mut out = Vec::new();
    for (start, area) in task.mm().areas() {
        let bit = |bit: i32, letter: char| if area.prot & bit != 0 { letter } else { '-' };
        let shared = if area.shared { 's' } else { 'p' };
        let attr = area.file().and_then(|f| f.ops.attr().ok()).unwrap_or_default();
        let head = format!(
            "{start:08x}-{:08x} {}{}{}{shared} {:08x} {:02x}:{:02x} {} ",
            area.end,
            bit(1, 'r'),
            bit(2, 'w'),
            bit(4, 'x'),
            area.offset(),
            syscall_table::abi::stat::major(attr.dev),
            syscall_table::abi::stat::minor(attr.dev),
            attr.ino
        );
        let name = match area.file() {
            Some(file) => match &file.path {
                Some(path) => path.display(Some(&root)),
                None => file.ops.describe().into_bytes(),
            },
            None => area.name.as_bytes().to_vec(),
        };
        out.extend_from_slice(head.as_bytes());
        if !name.is_empty() {
            // Names begin in column 73.
            out.extend(std::iter::repeat_n(b' ', 73usize.saturating_sub(head.len())));
            out.extend_from_slice(&name);
        } else {
            out.pop();
        }
        out.push(b'\n');
        if sizes {
            let kib = area.end.saturating_sub(start) / 1024;
            let text = format!(
                "Size:           {kib:8} kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n\
                 Rss:            {kib:8} kB\nPss:            {kib:8} kB\nShared_Clean:          0 kB\n\
                 Shared_Dirty:          0 kB\nPrivate_Clean:         0 kB\nPrivate_Dirty:  {kib:8} kB\n\
                 Referenced:     {kib:8} kB\nAnonymous:             0 kB\nAnonHugePages:         0 kB\n\
                 Swap:                  0 kB\nLocked:                0 kB\nVmFlags: mr mw me\n"
            );
            out.extend_from_slice(text.as_bytes());
        }
    }
    Ok(out)
}

fn stat(asker: &Task, task: &Arc<Task>, thread: bool) -> Vec<u8> {
    let (process, tree) = (&task.process, &task.kernel.tree);
    let (pid, id) = (process.pid, if thread { task.tid() } else { process.pid });
    let comm = String::from_utf8_lossy(&task.comm.lock()).into_owned();
    let ticks = crate::task::usage::ticks(crate::task::usage::of_task(task));
    let start = process.started.as_millis() / 10;
    let size = total(task);
    let (ppid, pgid, sid) = (tree.parent(pid), tree.pgid(pid), tree.sid(pid));
    let ctty = process.ctty.lock().clone();
    let (tty, foreground) = ctty.map_or((0, -1), |tty| (tty.device(), tty.job().foreground()));
    let mut out = format!(
        "{id} ({comm}) {} {ppid} {pgid} {sid} {tty} {foreground} 4194304 0 0 0 0 {ticks} 0 0 0 20 0 {} 0 {start} {size} {} {}",
        state(asker, task),
        process.thread_count(),
        size / 4096,
        u64::MAX
    );
    // startcode to exit_code.
    for field in 26..=52 {
        let _ = write!(out, " {}", if field == 38 { 17 } else { 0 });
    }
    out.push('\n');
    out.into_bytes()
}

fn status(asker: &Task, task: &Arc<Task>) -> Vec<u8> {
    let process = &task.process;
    let creds = task.creds();
    let comm = String::from_utf8_lossy(&task.comm.lock()).into_owned();
    let umask = *task.fs().umask.lock();
    let letter = state(asker, task);
    let word = match letter {
        'T' => "stopped",
        'R' => "running",
        _ => "sleeping",
    };
    let kib = total(task) / 1024;
    let data = task.mm().layout.lock().data() / 1024;
    let groups: String = creds.groups.iter().map(|g| format!("{g} ")).collect();
    let c = &creds;
    let cpus = task.kernel.config.cpus.clamp(1, 63);
    let mask = (1u64 << cpus).saturating_sub(1);
    format!(
        "Name:\t{comm}\nUmask:\t{umask:04o}\nState:\t{letter} ({word})\nTgid:\t{pid}\nNgid:\t0\nPid:\t{tid}\nPPid:\t{ppid}\n\
         TracerPid:\t0\nUid:\t{}\t{}\t{}\t{}\nGid:\t{}\t{}\t{}\t{}\nFDSize:\t64\nGroups:\t{groups}\nNStgid:\t{pid}\n\
         NSpid:\t{tid}\nVmPeak:\t{kib:8} kB\nVmSize:\t{kib:8} kB\nVmRSS:\t{kib:8} kB\nVmHWM:\t{kib:8} kB\nVmData:\t{data:8} kB\nVmStk:\t     132 kB\nVmSwap:\t       0 kB\nThreads:\t{threads}\n\
         SigQ:\t0/32768\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\n\
         SigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\nCapInh:\t{:016x}\nCapPrm:\t{:016x}\nCapEff:\t{:016x}\n\
         CapBnd:\t{:016x}\nCapAmb:\t{:016x}\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n\
         Cpus_allowed:\t{mask:x}\nCpus_allowed_list:\t0-{}\nMems_allowed:\t1\nMems_allowed_list:\t0\n\
         voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n",
        c.uid,
        c.euid,
        c.suid,
        c.fsuid,
        c.gid,
        c.egid,
        c.sgid,
        c.fsgid,
        c.inheritable,
        c.permitted,
        c.effective,
        c.bounding,
        c.ambient,
        cpus.saturating_sub(1),
        pid = process.pid,
        tid = task.tid(),
        ppid = task.kernel.tree.parent(process.pid),
        threads = process.thread_count(),
    )
    .into_bytes()
}

fn limits(task: &Task) -> Vec<u8> {
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
    let limits = task.process.limits.lock().clone();
    let show = |v: u64| if v == RLIM_INFINITY { "unlimited".to_owned() } else { v.to_string() };
    for (name, resource, unit) in rows {
        let limit = limits.get(resource);
        let _ = writeln!(out, "{name:<26}{:<21}{:<21}{unit:<10}", show(limit.rlim_cur), show(limit.rlim_max));
    }
    out.into_bytes()
}

fn mounts(asker: &Task, info: bool) -> SysResult<Vec<u8>> {
    let vfs = &asker.kernel.vfs;
    let root = vfs.root_of(asker)?;
    let mut out = Vec::new();
    for mount in vfs.mounts() {
        let at = match &mount.parent {
            Some(place) => place.absolute(Some(&root)).bytes,
            None => b"/".to_vec(),
        };
        let at =
            String::from_utf8_lossy(&at).replace('\\', "\\134").replace(' ', "\\040").replace('\n', "\\012");
        let access = if mount.read_only { "ro" } else { "rw" };
        let options =
            if mount.options.is_empty() { access.to_owned() } else { format!("{access},{}", mount.options) };
        let (fstype, source) = (mount.fstype, &mount.source);
        let line = if info {
            let dev = mount.root.inode.attr().map_or(0, |a| a.dev);
            let parent = mount.parent.as_ref().map_or(1, |p| p.mount.id);
            let (major, minor) = (syscall_table::abi::stat::major(dev), syscall_table::abi::stat::minor(dev));
            format!("{} {parent} {major}:{minor} / {at} {options} - {fstype} {source} {access}\n", mount.id)
        } else {
            format!("{source} {at} {fstype} {options} 0 0\n")
        };
        out.extend_from_slice(line.as_bytes());
    }
    Ok(out)
}
