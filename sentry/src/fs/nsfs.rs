//! Namespaces as files: what the links of /proc/PID/ns lead to (namespaces(7), ioctl_nsfs(2)).

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::net::Net;
use crate::task::Task;
use crate::task::namespaces::{CgroupNs, IpcNs, UtsNs};
use crate::task::pidns::PidNs;
use crate::task::timens::TimeNs;
use crate::task::userns::UserNs;
use crate::vfs::attr::{Attr, FileTime};
use crate::vfs::file::{File, FileOps};
use crate::vfs::inode::{Inode, StatFs, downcast};
use crate::vfs::mountns::MountNs;
use crate::vfs::path::Path;
use std::sync::Arc;
use syscall_table::abi::S_IFREG;
use syscall_table::abi::clone::*;
use syscall_table::abi::stat::makedev;
use syscall_table::errno::Errno;

const NSFS_MAGIC: i64 = 0x6e73_6673;
const NS_GET_USERNS: u32 = 0xb701;
const NS_GET_PARENT: u32 = 0xb702;
const NS_GET_NSTYPE: u32 = 0xb703;
const NS_GET_OWNER_UID: u32 = 0xb704;
const NS_GET_MNTNS_ID: u32 = 0x8008_b705;

/// A namespace of whatever kind.
#[derive(Clone)]
pub(crate) enum Namespace {
    /// Mounts.
    Mnt(Arc<MountNs>),
    /// Names.
    Uts(Arc<UtsNs>),
    /// Ids and capabilities.
    User(Arc<UserNs>),
    /// Control groups; None: the sandbox's.
    Cgroup(Option<Arc<CgroupNs>>),
    /// System V objects and message queues.
    Ipc(Arc<IpcNs>),
    /// Network.
    Net(Arc<Net>),
    /// Pids.
    Pid(Arc<PidNs>),
    /// Clocks.
    Time(Arc<TimeNs>),
}

impl Namespace {
    /// The namespace of a task that /proc/PID/ns calls `name`.
    pub(crate) fn of(task: &Task, name: &[u8]) -> Option<Namespace> {
        Some(match name {
            b"mnt" => Namespace::Mnt(task.namespaces().mnt),
            b"uts" => Namespace::Uts(task.namespaces().uts),
            b"user" => Namespace::User(task.creds().ns.clone()),
            b"pid" => Namespace::Pid(task.process.pidns.clone()),
            // Nobody can enter it before its init is there.
            b"pid_for_children" => Namespace::Pid(Some(task.namespaces().pid).filter(|ns| ns.has_begun())?),
            b"ipc" => Namespace::Ipc(task.ipc()),
            b"net" => Namespace::Net(task.net()),
            b"cgroup" => Namespace::Cgroup(task.namespaces().cgroup),
            b"time" => Namespace::Time(task.namespaces().time),
            b"time_for_children" => Namespace::Time(task.namespaces().time_for_children),
            _ => return None,
        })
    }

    fn number(&self) -> u64 {
        match self {
            Namespace::Mnt(ns) => ns.ino,
            Namespace::Uts(ns) => ns.ino,
            Namespace::User(ns) => ns.ino,
            Namespace::Cgroup(ns) => ns.as_ref().map_or(4_026_531_835, |ns| ns.ino),
            Namespace::Ipc(ns) => ns.ino,
            Namespace::Net(ns) => ns.ino,
            Namespace::Pid(ns) => ns.ino,
            Namespace::Time(ns) => ns.ino,
        }
    }

    /// CLONE_NEW*
    pub(crate) fn flag(&self) -> u64 {
        match self {
            Namespace::Mnt(_) => CLONE_NEWNS,
            Namespace::Uts(_) => CLONE_NEWUTS,
            Namespace::User(_) => CLONE_NEWUSER,
            Namespace::Cgroup(_) => CLONE_NEWCGROUP,
            Namespace::Ipc(_) => CLONE_NEWIPC,
            Namespace::Net(_) => CLONE_NEWNET,
            Namespace::Pid(_) => CLONE_NEWPID,
            Namespace::Time(_) => CLONE_NEWTIME,
        }
    }

    /// Who owns it; of a user namespace its parent.
    fn owner(&self) -> Option<Arc<UserNs>> {
        match self {
            Namespace::Mnt(ns) => Some(ns.owner.clone()),
            Namespace::Uts(ns) => Some(ns.owner.clone()),
            Namespace::User(ns) => ns.parent.clone(),
            Namespace::Cgroup(Some(ns)) => Some(ns.owner.clone()),
            Namespace::Cgroup(None) => Some(UserNs::first()),
            Namespace::Ipc(ns) => Some(ns.owner.clone()),
            Namespace::Net(ns) => Some(ns.owner.clone()),
            Namespace::Pid(ns) => Some(ns.owner.clone()),
            Namespace::Time(ns) => Some(ns.owner.clone()),
        }
    }

    /// `mnt:[4026531832]`
    pub(crate) fn label(&self) -> String {
        let kind = match self {
            Namespace::Mnt(_) => "mnt",
            Namespace::Uts(_) => "uts",
            Namespace::User(_) => "user",
            Namespace::Cgroup(_) => "cgroup",
            Namespace::Ipc(_) => "ipc",
            Namespace::Net(_) => "net",
            Namespace::Pid(_) => "pid",
            Namespace::Time(_) => "time",
        };
        format!("{kind}:[{}]", self.number())
    }

    /// A new descriptor of its file.
    ///
    /// # Errors
    /// EMFILE.
    pub(crate) fn install(self, cx: &mut Cx) -> SysResult {
        let place = self.place(cx.task);
        let file = cx.kernel().vfs.open_place(cx.task, place, 0, false)?;
        let limit = cx.task.process.limit(syscall_table::abi::getrlimit::RLIMIT_NOFILE);
        Ok(u64::try_from(cx.task.files().install(file, true, 0, limit)?).unwrap_or(0))
    }

    /// Its file.
    pub(crate) fn place(self, task: &Task) -> Path {
        let label = self.label();
        task.kernel.vfs.internal(label.as_bytes(), Arc::new(NsInode(self)))
    }
}

/// The inode of a namespace.
struct NsInode(Namespace);

/// The namespace whose file an inode is.
pub(crate) fn namespace(inode: &Arc<dyn Inode>) -> Option<Namespace> {
    downcast::<NsInode>(inode).map(|inode| inode.0.clone())
}

/// Whether an inode is a namespace's file.
pub(crate) fn is_namespace(inode: &Arc<dyn Inode>) -> bool {
    namespace(inode).is_some()
}

impl Inode for NsInode {
    fn kind(&self) -> u32 {
        S_IFREG
    }

    fn attr(&self) -> SysResult<Attr> {
        let now = FileTime::now();
        Ok(Attr {
            dev: makedev(0, 4),
            ino: self.0.number(),
            mode: S_IFREG | 0o444,
            nlink: 1,
            blksize: 4096,
            atime: now,
            mtime: now,
            ctime: now,
            ..Attr::default()
        })
    }

    fn open(self: Arc<Self>, _: &Arc<Task>, _: i32) -> SysResult<Arc<dyn FileOps>> {
        Ok(Arc::new(NsFile(self)))
    }

    fn statfs(&self) -> SysResult<StatFs> {
        Ok(StatFs { kind: NSFS_MAGIC, bsize: 4096, namelen: 255, ..StatFs::default() })
    }
}

struct NsFile(Arc<NsInode>);

impl FileOps for NsFile {
    fn attr(&self) -> SysResult<Attr> {
        self.0.attr()
    }

    fn ioctl(&self, cx: &mut Cx, _: &File, request: u32, arg: u64) -> SysResult {
        let ns = &self.0.0;
        let found = match request {
            NS_GET_NSTYPE => return Ok(ns.flag()),
            NS_GET_PARENT if matches!(ns, Namespace::Pid(_)) => {
                let Namespace::Pid(ns) = ns else { return Err(Errno::EINVAL.into()) };
                let own = &cx.task.process.pidns;
                Namespace::Pid(ns.parent.clone().filter(|parent| parent.is_within(own)).ok_or(Errno::EPERM)?)
            }
            NS_GET_USERNS | NS_GET_PARENT => {
                if request == NS_GET_PARENT && !matches!(ns, Namespace::User(_)) {
                    return Err(Errno::EINVAL.into());
                }
                // Nothing above the asker's own is shown.
                let own = cx.task.creds().ns.clone();
                let owner = ns.owner().filter(|owner| owner.is_within(&own)).ok_or(Errno::EPERM)?;
                Namespace::User(owner)
            }
            NS_GET_OWNER_UID => {
                let Namespace::User(user) = ns else { return Err(Errno::EINVAL.into()) };
                let uid = cx.task.creds().ns.user(user.owner);
                return cx.write_value(arg, &uid).map(|()| 0);
            }
            NS_GET_MNTNS_ID => {
                let Namespace::Mnt(mnt) = ns else { return Err(Errno::EINVAL.into()) };
                return cx.write_value(arg, &mnt.id).map(|()| 0);
            }
            _ => return Err(Errno::ENOTTY.into()),
        };
        found.install(cx)
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        Some(self.0.clone())
    }

    fn describe(&self) -> String {
        self.0.0.label()
    }
}
