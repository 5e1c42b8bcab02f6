//! Descriptors that stand for processes and threads (pidfd_open(2)).

use super::pidns::{Name, PidNs};
use super::{Process, Task};
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::fs::nsfs::Namespace;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps};
use crate::wait::{Ready, WaitQueue};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use syscall_table::abi::clone::PIDFD_THREAD;
use syscall_table::abi::open::O_RDWR;
use syscall_table::errno::Errno;
use zerocopy::IntoBytes;

/// A process held by a descriptor. It stays the same process when its pid is given to another.
pub struct PidFd {
    process: Arc<Process>,
    /// PIDFD_THREAD.
    thread: Option<Weak<Task>>,
}

/// A new description; `flags`: O_NONBLOCK or nothing.
pub(crate) fn file(process: &Arc<Process>, flags: i32) -> Arc<File> {
    File::new(Arc::new(PidFd { process: process.clone(), thread: None }), O_RDWR | flags, None)
}

/// As [`file`] for one thread.
pub(crate) fn thread_file(task: &Arc<Task>, flags: i32) -> Arc<File> {
    let pidfd = PidFd { process: task.process.clone(), thread: Some(Arc::downgrade(task)) };
    File::new(Arc::new(pidfd), O_RDWR | PIDFD_THREAD as i32 | flags, None)
}

/// The thread behind a descriptor of one: the outer None for one of a process, the inner for a thread that has ended.
pub(crate) fn thread(file: &File) -> Option<Option<Arc<Task>>> {
    let thread = file.downcast::<PidFd>()?.thread.clone()?;
    Some(thread.upgrade().filter(|task| !task.is_dead()))
}

/// The process behind a descriptor.
///
/// # Errors
/// EBADF when it is no pidfd.
pub(crate) fn process(file: &File) -> SysResult<Arc<Process>> {
    file.downcast::<PidFd>().map(|p| p.process.clone()).ok_or(Errno::EBADF.into())
}

/// PIDFS_IOCTL_MAGIC, and the numbers behind it.
const MAGIC: u32 = 0xff;
const FIRST_NAMESPACE: u32 = 1;
const LAST_NAMESPACE: u32 = 10;
/// What PIDFD_GET_*_NAMESPACE are about, as /proc/PID/ns names them.
const NAMESPACES: [&[u8]; 10] = [
    b"cgroup",
    b"ipc",
    b"mnt",
    b"net",
    b"pid",
    b"pid_for_children",
    b"time",
    b"time_for_children",
    b"user",
    b"uts",
];
const GET_INFO: u32 = 11;
/// PIDFD_INFO_SIZE_VER0.
const INFO_LEAST: usize = 64;

/// PIDFD_INFO_PID, CREDS, CGROUPID, EXIT, COREDUMP.
const INFO_ALWAYS: u64 = 1 | 2 | 4;
const INFO_EXIT: u64 = 8;
const INFO_CGROUPID: u64 = 4;
const INFO_COREDUMP: u64 = 16;
/// PIDFD_COREDUMPED, PIDFD_COREDUMP_SKIP, PIDFD_COREDUMP_USER.
const COREDUMPED: u32 = 1;
const COREDUMP_SKIP: u32 = 2;
const COREDUMP_USER: u32 = 4;

/// struct pidfd_info.
#[derive(Default, zerocopy::IntoBytes, zerocopy::Immutable)]
#[repr(C)]
struct Info {
    mask: u64,
    cgroupid: u64,
    pid: i32,
    tgid: i32,
    ppid: i32,
    /// Real, effective, saved, for files: user and group of each.
    ids: [u32; 8],
    exit_code: i32,
    coredump_mask: u32,
    coredump_signal: u32,
}

impl PidFd {
    /// Whom it stands for, until that one has been waited for.
    fn living(&self) -> Option<Name> {
        match &self.thread {
            Some(thread) => thread.upgrade().filter(|task| !task.is_dead()).map(|task| task.name().clone()),
            None => Some(&self.process).filter(|p| !p.reaped.load(Relaxed)).map(|p| p.name.clone()),
        }
    }

    /// PIDFD_GET_*_NAMESPACE: a descriptor.
    fn namespace(&self, cx: &mut Cx, which: u32) -> SysResult {
        let task = match &self.thread {
            Some(thread) => thread.upgrade().filter(|task| !task.is_dead()),
            None => self.process.any_thread(),
        };
        let task = task.ok_or(Errno::ESRCH)?;
        if !super::access::may_trace(cx.task, &self.process) {
            return Err(Errno::EACCES.into());
        }
        let name = NAMESPACES.get(which as usize).ok_or(Errno::ENOTTY)?;
        let found = match *name {
            // Whether or not somebody is in it.
            b"pid_for_children" => Namespace::Pid(task.namespaces().pid),
            name => Namespace::of(&task, name).ok_or(Errno::EINVAL)?,
        };
        found.install(cx)
    }

    /// PIDFD_GET_INFO.
    fn info(&self, cx: &mut Cx, size: usize, arg: u64) -> SysResult {
        if arg == 0 {
            return Err(Errno::EINVAL.into());
        }
        if size < INFO_LEAST {
            return Err(Errno::ENOTTY.into());
        }
        let asked: u64 = cx.read_value(arg)?;
        if !self.process.pidns.is_within(&cx.task.process.pidns) {
            return Err(Errno::EREMOTE.into());
        }
        let task = match &self.thread {
            Some(thread) => thread.upgrade().filter(|task| !task.is_dead()),
            None => self.process.any_thread(),
        };
        let ns = &cx.task.process.pidns;
        let (parent, zombie, known) = {
            let tree = cx.kernel().tree.lock();
            let node = tree.nodes.get(&self.process.pid).filter(|n| Arc::ptr_eq(&n.process, &self.process));
            (node.map_or(0, |n| ns.local(n.parent)), node.and_then(|n| n.zombie), node.is_some())
        };
        let mut info = Info::default();
        if known {
            info.mask = INFO_ALWAYS;
            info.cgroupid = 1;
            let name = task.as_ref().map_or(&self.process.name, |task| task.name());
            (info.pid, info.tgid) = (name.in_ns(ns), self.process.name.in_ns(ns));
            info.ppid = parent;
            let c = task.as_ref().map_or_else(|| self.process.creds(), |task| task.creds());
            info.ids = [c.uid, c.gid, c.euid, c.egid, c.suid, c.sgid, c.fsuid, c.fsgid];
        } else {
            // Waited for: how it ended is kept for those who ask.
            let status = self.process.group_exit.load(Relaxed);
            if asked & INFO_EXIT == 0 || status < 0 {
                return Err(Errno::ESRCH.into());
            }
            info.mask = INFO_EXIT | INFO_CGROUPID;
            info.cgroupid = 1;
            info.exit_code = status;
        }
        if asked & INFO_COREDUMP != 0 && (known || zombie.is_some()) {
            info.mask |= INFO_COREDUMP;
            let status = self.process.group_exit.load(Relaxed).max(0);
            info.coredump_mask = match self.process.dumpable.load(Relaxed) {
                _ if status & 0x80 != 0 => COREDUMPED | COREDUMP_USER,
                1 => COREDUMP_USER,
                _ => COREDUMP_SKIP,
            };
            if status & 0x80 != 0 {
                info.coredump_signal = status.unsigned_abs() & 0x7f;
            }
        }
        let bytes = info.as_bytes();
        cx.copy_out(arg, bytes.get(..size.min(bytes.len())).unwrap_or_default())?;
        Ok(0)
    }
}

impl FileOps for PidFd {
    fn poll(&self, _file: &File) -> Ready {
        let ended = match &self.thread {
            Some(thread) => thread.upgrade().is_none_or(|task| task.is_dead()),
            None => self.process.thread_count() == 0,
        };
        if ended { Ready::IN | Ready::RDNORM } else { Ready::empty() }
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.process.exit_wait)
    }

    fn ioctl(&self, cx: &mut Cx, _: &File, request: u32, arg: u64) -> SysResult {
        if request >> 8 & 0xff != MAGIC {
            return Err(Errno::ENOTTY.into());
        }
        match request & 0xff {
            GET_INFO if request >> 30 == 3 => self.info(cx, (request >> 16 & 0x3fff) as usize, arg),
            FIRST_NAMESPACE..=LAST_NAMESPACE if request >> 8 == MAGIC => {
                if arg != 0 {
                    return Err(Errno::EINVAL.into());
                }
                self.namespace(cx, (request & 0xff) - FIRST_NAMESPACE)
            }
            _ => Err(Errno::ENOTTY.into()),
        }
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(Attr { mode: 0o700, nlink: 1, ino: self.process.pid as u64, blksize: 4096, ..Attr::default() })
    }

    fn info(&self, ns: &PidNs) -> String {
        let Some(name) = self.living() else { return "Pid:\t-1\nNSpid:\t-1\n".to_owned() };
        let id = name.in_ns(ns);
        let all = if id == 0 { vec![0] } else { name.from(ns) };
        let all = all.iter().map(i32::to_string).collect::<Vec<_>>().join("\t");
        format!("Pid:\t{id}\nNSpid:\t{all}\n")
    }

    fn describe(&self) -> String {
        "anon_inode:[pidfd]".into()
    }
}
