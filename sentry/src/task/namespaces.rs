//! The namespaces of a task (namespaces(7)).

use super::Task;
use super::creds::{ALL_CAPS, Creds, cap};
use super::pidns::PidNs;
use super::timens::TimeNs;
use super::userns::UserNs;
use crate::fail::SysResult;
use crate::ipc::mqueue::Queues;
use crate::ipc::sysv::{Counter, Ipc};
use crate::kernel::{Kernel, Names};
use crate::net::Net;
use crate::vfs::mountns::MountNs;
use crate::vfs::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use syscall_table::abi::clone::*;
use syscall_table::errno::Errno;

/// Host and domain name of a group of tasks (uts_namespaces(7)).
pub struct UtsNs {
    /// Number in /proc/PID/ns/uts.
    pub ino: u64,
    /// Who may change the names.
    pub owner: Arc<UserNs>,
    /// What sethostname(2) and setdomainname(2) change.
    pub names: parking_lot::Mutex<Names>,
}

impl UtsNs {
    /// The sandbox's.
    pub fn first(names: Names) -> UtsNs {
        UtsNs { ino: 0xefff_fffe, owner: UserNs::first(), names: parking_lot::Mutex::new(names) }
    }

    /// A new one with the same names.
    pub fn copy(&self, owner: Arc<UserNs>) -> UtsNs {
        let names = self.names.lock().clone();
        UtsNs { ino: new_ino(), owner, names: parking_lot::Mutex::new(names) }
    }
}

/// A view of the control groups (cgroup_namespaces(7)), of which there is one: all are alike but for their number.
pub struct CgroupNs {
    /// Number in /proc/PID/ns/cgroup.
    pub ino: u64,
    /// Who owns it.
    pub owner: Arc<UserNs>,
}

/// Most IPC namespaces: each has objects of its own, whose number the sandbox's memory has to hold.
const IPC_NAMESPACES: usize = 256;

/// System V objects and POSIX message queues of a group of tasks (ipc_namespaces(7)).
pub struct IpcNs {
    /// Number in /proc/PID/ns/ipc.
    pub ino: u64,
    /// Whose rights count in it.
    pub owner: Arc<UserNs>,
    /// System V objects.
    pub sysv: Ipc,
    /// Message queues.
    pub mqueues: Arc<Queues>,
    /// How many there are beside the sandbox's.
    made: Arc<Counter>,
}

impl IpcNs {
    /// The sandbox's.
    pub fn first() -> IpcNs {
        IpcNs {
            ino: 4_026_531_839,
            owner: UserNs::first(),
            sysv: Ipc::default(),
            mqueues: Arc::default(),
            made: Arc::default(),
        }
    }

    /// An empty one.
    ///
    /// # Errors
    /// ENOSPC: there are too many.
    fn fresh(&self, owner: Arc<UserNs>) -> SysResult<IpcNs> {
        if !self.made.take(1, IPC_NAMESPACES) {
            return Err(Errno::ENOSPC.into());
        }
        let (sysv, mqueues) = (self.sysv.beside(), Arc::new(self.mqueues.beside()));
        Ok(IpcNs { ino: new_ino(), owner, sysv, mqueues, made: self.made.clone() })
    }
}

impl Drop for IpcNs {
    fn drop(&mut self) {
        self.made.give(1);
    }
}

/// A number for a new namespace.
pub fn new_ino() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(4_026_532_000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Those of a task that are not its credentials'.
#[derive(Clone)]
pub struct Namespaces {
    /// Mounts.
    pub mnt: Arc<MountNs>,
    /// Names.
    pub uts: Arc<UtsNs>,
    /// Control groups; None: the sandbox's.
    pub cgroup: Option<Arc<CgroupNs>>,
    /// System V objects and message queues.
    pub ipc: Arc<IpcNs>,
    /// Network.
    pub net: Arc<Net>,
    /// Pids of children; a process's own is its [`super::Process::pidns`].
    pub pid: Arc<PidNs>,
    /// Clocks.
    pub time: Arc<TimeNs>,
    /// Those of children.
    pub time_for_children: Arc<TimeNs>,
}

impl Namespaces {
    /// The sandbox's.
    pub fn first(kernel: &Kernel) -> Namespaces {
        Namespaces {
            mnt: kernel.vfs.first.clone(),
            uts: kernel.uts.clone(),
            cgroup: None,
            ipc: kernel.ipc.clone(),
            net: kernel.net.clone(),
            pid: PidNs::first(),
            time: TimeNs::first(),
            time_for_children: TimeNs::first(),
        }
    }
}

impl Task {
    /// Its namespaces.
    pub fn namespaces(&self) -> Namespaces {
        self.namespaces.lock().clone()
    }

    /// Its IPC namespace.
    pub fn ipc(&self) -> Arc<IpcNs> {
        self.namespaces.lock().ipc.clone()
    }

    /// Its network namespace.
    pub fn net(&self) -> Arc<Net> {
        self.namespaces.lock().net.clone()
    }
}

/// Flags of namespaces.
pub(crate) const MADE: u64 = CLONE_NEWTIME
    | CLONE_NEWNS
    | CLONE_NEWUTS
    | CLONE_NEWUSER
    | CLONE_NEWCGROUP
    | CLONE_NEWIPC
    | CLONE_NEWNET
    | CLONE_NEWPID;

/// What a task in new namespaces has.
pub(crate) struct New {
    /// Its credentials, in a new user namespace.
    pub(crate) creds: Option<Creds>,
    /// Its namespaces.
    pub(crate) namespaces: Namespaces,
    /// Root and working directory, where they are in new mounts.
    pub(crate) places: Option<(Path, Path)>,
}

/// Makes the namespaces that `flags` (CLONE_NEW*) ask for.
///
/// # Errors
/// EPERM without the right, ENOSPC beyond the limits, EINVAL for pids a second time before somebody is in the first.
pub(crate) fn make(task: &Task, flags: u64) -> SysResult<New> {
    let old = task.creds();
    let vfs = &task.kernel.vfs;
    let mut namespaces = task.namespaces();
    let mut new = None;
    if flags & CLONE_NEWUSER != 0 {
        let root = vfs.root_of(task)?;
        let top = namespaces.mnt.root().map(|mount| Path { dentry: mount.root.clone(), mount });
        let chrooted = top.is_none_or(|top| !vfs.mounted(top).same(&root));
        // Who has no name in its own namespace could get one that way.
        if chrooted || !old.ns.knows(old.euid, old.egid) {
            return Err(Errno::EPERM.into());
        }
        let ns = UserNs::below(&old, new_ino()).ok_or(Errno::ENOSPC)?;
        new = Some(entering(&old, ns));
    }
    let creds = new.as_ref().unwrap_or(&old);
    if flags & !CLONE_NEWUSER & MADE != 0 && !creds.has(cap::SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    let owner = creds.ns.clone();
    if flags & CLONE_NEWUTS != 0 {
        namespaces.uts = Arc::new(namespaces.uts.copy(owner.clone()));
    }
    if flags & CLONE_NEWCGROUP != 0 {
        namespaces.cgroup = Some(Arc::new(CgroupNs { ino: new_ino(), owner: owner.clone() }));
    }
    if flags & CLONE_NEWIPC != 0 {
        namespaces.ipc = Arc::new(task.kernel.ipc.fresh(owner.clone())?);
    }
    if flags & CLONE_NEWNET != 0 {
        namespaces.net = Arc::new(task.kernel.net.fresh(new_ino(), owner.clone()).ok_or(Errno::ENOSPC)?);
    }
    if flags & CLONE_NEWPID != 0 {
        // Not a second time before somebody is in it.
        let own = &task.process.pidns;
        if own.ino != namespaces.pid.ino {
            return Err(Errno::EINVAL.into());
        }
        namespaces.pid = own.below(new_ino(), owner.clone())?;
    }
    if flags & CLONE_NEWTIME != 0 {
        namespaces.time_for_children = namespaces.time_for_children.copy(owner.clone())?;
    }
    let mut places = None;
    if flags & CLONE_NEWNS != 0 {
        let old = (vfs.root_of(task)?, vfs.cwd_of(task)?);
        let (mnt, moved) = vfs.copy_namespace(&namespaces.mnt, &owner, old)?;
        namespaces.mnt = mnt;
        places = Some(moved);
    }
    Ok(New { creds: new, namespaces, places })
}

/// Credentials of who enters a user namespace: all rights in it.
pub(crate) fn entering(old: &Creds, ns: Arc<UserNs>) -> Creds {
    Creds {
        ns,
        permitted: ALL_CAPS,
        effective: ALL_CAPS,
        bounding: ALL_CAPS,
        inheritable: 0,
        ambient: 0,
        securebits: 0,
        ..Creds::clone(old)
    }
}

impl New {
    /// Gives them to a task that nobody else shares root and working directory with.
    pub(crate) fn enter(self, task: &Task) {
        if let Some(creds) = self.creds {
            *task.creds.lock() = Arc::new(creds);
        }
        let old = std::mem::replace(&mut *task.namespaces.lock(), self.namespaces);
        drop(old);
        if let Some((root, cwd)) = self.places {
            let fs = task.fs();
            fs.set_root(root);
            fs.set_cwd(cwd);
        }
    }
}
