//! /proc/PID and /proc/PID/task/TID: directories. Their files are in [`files`].

mod files;
mod idmap;
mod init;
mod maps;
mod mem;
mod pagemap;
mod status;

use super::super::pseudo::{Fixed, Link, ino};
use super::{FS, number};
use crate::fail::SysResult;
use crate::fs::nsfs::{self, Namespace};
use crate::kernel::Kernel;
use crate::task::pidns::PidNs;
use crate::task::tree::INIT;
use crate::task::{Process, Task, access};
use crate::vfs::attr::Attr;
use crate::vfs::inode::{Caching, Inode, Listed, StatFs, downcast};
use crate::vfs::path::Path;
use files::{FILES, PidFile};
use std::sync::Arc;
use syscall_table::abi::S_IFDIR;
use syscall_table::abi::open::SEEK_CUR;
use syscall_table::errno::Errno;

const LINKS: [&[u8]; 3] = [b"exe", b"cwd", b"root"];

/// What a directory is about, looked up anew each time: a process that is gone has none.
#[derive(Clone)]
struct Who {
    /// Its number.
    id: i32,
    /// Whose numbers are shown.
    ns: Arc<PidNs>,
    /// Below `task`: one thread, not a process.
    thread: bool,
}

/// A process, and the task that its directory shows: its leader, or the thread. None: ended.
struct Subject {
    kernel: Arc<Kernel>,
    process: Arc<Process>,
    task: Option<Arc<Task>>,
}

impl Who {
    fn find(&self, asker: &Task) -> SysResult<Subject> {
        let kernel = asker.kernel.clone();
        let tree = asker.kernel.tree.lock();
        let task = tree.tasks.get(&self.id).cloned();
        match (task, tree.nodes.get(&self.id)) {
            (Some(task), _) => Ok(Subject { kernel, process: task.process.clone(), task: Some(task) }),
            // A zombie, or a leader that ended before its group.
            (None, Some(node)) => Ok(Subject { kernel, process: node.process.clone(), task: None }),
            (None, None) => Err(Errno::ESRCH.into()),
        }
    }

    /// The living task, if the asker may look inside it (ptrace(2), "Ptrace access mode checking").
    fn traced(&self, asker: &Task) -> SysResult<Arc<Task>> {
        let subject = self.find(asker)?;
        if !access::may_trace(asker, &subject.process) {
            return Err(Errno::EACCES.into());
        }
        subject.task.ok_or(Errno::ENOENT.into())
    }
}

/// Mode of the directories that stay the user's whatever the process has set.
const OPEN_DIR: u32 = 0o555;

/// Owner of a process's files and of its directories but those of [`OPEN_DIR`]: root when it is not dumpable (prctl(2),
/// PR_SET_DUMPABLE).
fn owner(process: &Process, open_dir: bool) -> (u32, u32) {
    use std::sync::atomic::Ordering::Relaxed;
    if !open_dir && process.dumpable.load(Relaxed) != 1 {
        return (0, 0);
    }
    let creds = process.creds();
    (creds.euid, creds.egid)
}

/// A directory of a process.
struct Dir {
    who: Who,
    what: What,
    process: Arc<Process>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Process,
    Thread,
    Tasks,
    Fds,
    FdInfos,
    MapFiles,
    Attr,
    Namespaces,
}

/// Directories of a process or thread.
const DIRS: [(&[u8], What); 6] = [
    (b"fd", What::Fds),
    (b"fdinfo", What::FdInfos),
    (b"map_files", What::MapFiles),
    (b"attr", What::Attr),
    (b"ns", What::Namespaces),
    (b"task", What::Tasks),
];

/// Links to namespaces.
const NAMESPACES: [&str; 10] =
    ["cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "time", "time_for_children", "user", "uts"];

/// /proc/PID.
pub(super) fn directory(asker: &Task, ns: &Arc<PidNs>, pid: i32) -> SysResult<Arc<dyn Inode>> {
    if pid == INIT {
        return Ok(init::directory());
    }
    let who = Who { id: pid, ns: ns.clone(), thread: false };
    let subject = who.find(asker).map_err(|_| Errno::ENOENT)?;
    Ok(Arc::new(Dir { who, what: What::Process, process: subject.process }))
}

/// See [`super::process_of`].
pub(super) fn process_of(inode: &Arc<dyn Inode>) -> Option<Arc<Process>> {
    let dir = downcast::<Dir>(inode)?;
    (dir.what == What::Process).then(|| dir.process.clone())
}

impl Dir {
    fn number(&self, name: &[u8]) -> u64 {
        let thread = u8::from(self.who.thread);
        ino(&[b"pid", self.who.id.to_string().as_bytes(), &[self.what as u8, thread], name])
    }

    fn sub(&self, what: What) -> Arc<dyn Inode> {
        Arc::new(Dir { who: self.who.clone(), what, process: self.process.clone() })
    }

    /// Owner of what is in it.
    fn owner(&self) -> (u32, u32) {
        owner(&self.process, false)
    }

    fn entry(&self, asker: &Task, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        if let Some(file) = FILES.iter().find(|f| f.name == name && (!self.who.thread || f.threads)) {
            let thread = self.what == What::Thread;
            return Ok(Arc::new(PidFile::new(
                self.who.clone(),
                file,
                thread,
                self.number(name),
                self.owner(),
            )));
        }
        if let Some((_, what)) = DIRS.iter().find(|(n, _)| *n == name)
            && !(self.who.thread && matches!(what, What::Tasks | What::MapFiles))
        {
            return Ok(self.sub(*what));
        }
        match name {
            b"exe" | b"cwd" | b"root" => Ok(self.place_link(name)),
            b"net" => {
                let subject = self.who.find(asker)?;
                let net = subject.task.ok_or(Errno::EINVAL)?.net();
                let names = super::net::files(&net);
                Ok(Arc::new(Fixed { fs: FS, ino: self.number(name), names }))
            }
            _ => Err(Errno::ENOENT.into()),
        }
    }
}

impl Inode for Dir {
    fn kind(&self) -> u32 {
        S_IFDIR
    }

    fn attr(&self) -> SysResult<Attr> {
        let mode = match self.what {
            What::Fds | What::MapFiles => 0o500,
            What::Namespaces => 0o511,
            _ => OPEN_DIR,
        };
        Ok(FS.attr(self.number(b""), S_IFDIR | mode, owner(&self.process, mode == OPEN_DIR)))
    }

    fn admits(&self, task: &Task) -> bool {
        // Its own descriptors, even where they are root's.
        self.what == What::Fds && Arc::ptr_eq(&task.process, &self.process)
    }

    fn caching(&self) -> Caching {
        Caching::Never
    }

    fn given(&self) -> bool {
        true
    }

    fn lookup(&self, asker: &Task, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        let subject = self.who.find(asker).map_err(|_| Errno::ENOENT)?;
        let who = self.who.clone();
        match self.what {
            What::Tasks => {
                let id = number(name).ok_or(Errno::ENOENT)?;
                let who = Who { id: who.ns.global(id), thread: true, ns: who.ns };
                let thread = who.find(asker).map_err(|_| Errno::ENOENT)?;
                if !Arc::ptr_eq(&thread.process, &subject.process) {
                    return Err(Errno::ENOENT.into());
                }
                Ok(Arc::new(Dir { who, what: What::Thread, process: thread.process }))
            }
            What::Fds => {
                let fd = number(name).ok_or(Errno::ENOENT)?;
                who.traced(asker)?.files().get_any(fd).map_err(|_| Errno::ENOENT)?;
                let again = who.clone();
                Ok(Arc::new(Link {
                    fs: FS,
                    ino: self.number(name),
                    owner: self.owner(),
                    text: Box::new(move |asker| fd_text(asker, &again, fd)),
                    follow: Some(Box::new(move |asker| {
                        let file = who.traced(asker)?.files().get_any(fd).map_err(|_| Errno::ENOENT)?;
                        match &file.path {
                            Some(path) => Ok(Some(path.clone())),
                            None => asker.kernel.vfs.nameless(&file).map(Some),
                        }
                    })),
                }))
            }
            What::FdInfos => {
                let fd = number(name).ok_or(Errno::ENOENT)?;
                who.traced(asker)?.files().get_any(fd).map_err(|_| Errno::ENOENT)?;
                Ok(super::text(self.number(name), 0o444, self.owner(), move |asker| {
                    let (file, cloexec) = who.traced(asker)?.files().get_with_flag(fd)?;
                    let flags = file.flags() | if cloexec { 0o2_000_000 } else { 0 };
                    let mount = file.path.as_ref().map_or(1, |p| p.mount.id);
                    // Held while this very file is read.
                    let own = file.ops.seek_own(0, SEEK_CUR).map(|pos| pos.unwrap_or(0));
                    let pos = own.or(file.pos.peek()).unwrap_or(0);
                    let ino = file.ops.attr().map_or(0, |a| a.ino);
                    let common = format!("pos:\t{pos}\nflags:\t0{flags:o}\nmnt_id:\t{mount}\nino:\t{ino}\n");
                    Ok((common + &file.ops.info(&who.ns)).into_bytes())
                }))
            }
            What::MapFiles => {
                who.traced(asker)?;
                Err(Errno::ENOENT.into())
            }
            What::Attr => Err(Errno::ENOENT.into()),
            What::Namespaces => {
                let name = *NAMESPACES.iter().find(|n| n.as_bytes() == name).ok_or(Errno::ENOENT)?;
                let number = self.number(name.as_bytes());
                let find = move |asker: &Task| -> SysResult<Namespace> {
                    let task = who.traced(asker)?;
                    Namespace::of(&task, name.as_bytes()).ok_or(Errno::ENOENT.into())
                };
                Ok(Arc::new(Link {
                    fs: FS,
                    ino: number,
                    owner: self.owner(),
                    text: Box::new({
                        let find = find.clone();
                        move |asker| Ok(find(asker)?.label().into_bytes())
                    }),
                    follow: Some(Box::new(move |asker| Ok(Some(find(asker)?.place(asker))))),
                }))
            }
            What::Process | What::Thread => self.entry(asker, name),
        }
    }

    fn list_for(&self, asker: &Task) -> SysResult<Arc<Vec<Listed>>> {
        let subject = self.who.find(asker)?;
        let mut all = Vec::new();
        let mut add =
            |name: &[u8], kind| all.push(Listed { name: name.into(), ino: self.number(name), kind });
        match self.what {
            What::Tasks => {
                let ns = &self.who.ns;
                let mut tids: Vec<i32> =
                    subject.process.threads().iter().map(|t| ns.local(t.tid())).collect();
                // A leader that ended is listed as long as its group.
                let leader = ns.local(subject.process.pid);
                if !tids.contains(&leader) {
                    tids.push(leader);
                }
                tids.sort_unstable();
                tids.iter().for_each(|tid| add(tid.to_string().as_bytes(), 4));
            }
            What::Fds | What::FdInfos => {
                if !access::may_trace(asker, &subject.process) {
                    return Err(Errno::EACCES.into());
                }
                let kind = if self.what == What::Fds { 10 } else { 8 };
                for fd in subject.task.map(|t| t.files().numbers()).unwrap_or_default() {
                    add(fd.to_string().as_bytes(), kind);
                }
            }
            What::MapFiles => {
                if !access::may_trace(asker, &subject.process) {
                    return Err(Errno::EACCES.into());
                }
            }
            What::Attr => {}
            What::Namespaces => NAMESPACES.iter().for_each(|name| add(name.as_bytes(), 10)),
            What::Process | What::Thread => {
                let thread = self.who.thread;
                FILES.iter().filter(|f| !thread || f.threads).for_each(|file| add(file.name, 8));
                LINKS.iter().for_each(|name| add(name, 10));
                for (name, what) in DIRS {
                    if !(thread && matches!(what, What::Tasks | What::MapFiles)) {
                        add(name, 4);
                    }
                }
                add(b"net", 4);
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
        let (who, which) = (self.who.clone(), name.first().copied().unwrap_or(0));
        let find = move |asker: &Task| -> SysResult<Path> {
            let task = who.traced(asker)?;
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
            owner: self.owner(),
            text: Box::new({
                let find = find.clone();
                move |asker| {
                    let root = asker.kernel.vfs.root_of(asker)?;
                    Ok(find(asker)?.display(Some(&root)))
                }
            }),
            follow: Some(Box::new(move |asker| find(asker).map(Some))),
        })
    }
}

fn fd_text(asker: &Task, who: &Who, fd: i32) -> SysResult<Vec<u8>> {
    let file = who.traced(asker)?.files().get_any(fd).map_err(|_| Errno::ENOENT)?;
    match &file.path {
        Some(path) if nsfs::is_namespace(path.inode()) => Ok(file.ops.describe().into_bytes()),
        Some(path) => {
            let root = asker.kernel.vfs.root_of(asker)?;
            Ok(path.display(Some(&root)))
        }
        None => Ok(file.ops.describe().into_bytes()),
    }
}
