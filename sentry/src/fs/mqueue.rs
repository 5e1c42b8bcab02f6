//! /dev/mqueue: the names of POSIX message queues.

use super::pseudo::Super;
use crate::fail::SysResult;
use crate::ipc::mqueue::{Maker, MqFile, Queue, Queues};
use crate::kernel::Kernel;
use crate::task::Task;
use crate::vfs::attr::{Attr, FileTime};
use crate::vfs::dentry::Dentry;
use crate::vfs::file::FileOps;
use crate::vfs::inode::{Caching, Inode, Listed, NewKind, NewOwner, SetAttr, SetTime, StatFs, dirent_kind};
use crate::vfs::mount::NewMount;
use std::sync::Arc;
use syscall_table::abi::stat::{S_IFDIR, S_IFREG, makedev};
use syscall_table::errno::Errno;

const MAGIC: i64 = 0x1980_0202;
const FS: Super = Super { dev: makedev(0, 22), magic: MAGIC };
/// RLIMIT_MSGQUEUE as it is at first: what a queue made by a path counts against.
const LIMIT: u64 = 819_200;

struct Root {
    queues: Arc<Queues>,
}

impl Inode for Root {
    fn kind(&self) -> u32 {
        S_IFDIR
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(FS.attr(1, S_IFDIR | 0o1777, (0, 0)))
    }

    fn caching(&self) -> Caching {
        Caching::Never
    }

    fn lookup_free(&self, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        let queue = self.queues.find(name).ok_or(Errno::ENOENT)?;
        Ok(Arc::new(Name { queue, name: name.to_vec() }))
    }

    fn create(&self, name: &[u8], kind: NewKind<'_>, owner: NewOwner) -> SysResult<Arc<dyn Inode>> {
        if !matches!(kind, NewKind::File) {
            return Err(Errno::EPERM.into());
        }
        let maker = Maker { uid: owner.uid, gid: owner.gid, limit: LIMIT, resource: false };
        let queue = self.queues.create(name, owner.mode, None, &maker)?;
        Ok(Arc::new(Name { queue, name: name.to_vec() }))
    }

    fn unlink(&self, name: &[u8], _: &Arc<dyn Inode>) -> SysResult<()> {
        self.queues.unlink(name).map(drop).ok_or(Errno::ENOENT.into())
    }

    fn list(&self) -> SysResult<Arc<Vec<Listed>>> {
        let listed = self.queues.all().into_iter();
        Ok(Arc::new(
            listed.map(|(name, queue)| Listed { name, ino: queue.ino, kind: dirent_kind(S_IFREG) }).collect(),
        ))
    }

    fn statfs(&self) -> SysResult<StatFs> {
        FS.statfs()
    }
}

/// A queue as a file.
pub(crate) struct Name {
    pub(crate) queue: Arc<Queue>,
    pub(crate) name: Vec<u8>,
}

impl Inode for Name {
    fn kind(&self) -> u32 {
        S_IFREG
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(self.queue.attr())
    }

    fn set_attr(&self, set: &SetAttr) -> SysResult<()> {
        let now = FileTime::now();
        let when = |time: SetTime| match time {
            SetTime::Now => now,
            SetTime::At(at) => at,
        };
        let mut owner = self.queue.owner.lock();
        owner.mode = set.mode.unwrap_or(owner.mode) & 0o7777;
        owner.uid = set.uid.unwrap_or(owner.uid);
        owner.gid = set.gid.unwrap_or(owner.gid);
        owner.atime = set.atime.map_or(owner.atime, when);
        owner.mtime = set.mtime.map_or(owner.mtime, when);
        owner.ctime = now;
        Ok(())
    }

    fn open(self: Arc<Self>, _: &Arc<Task>, _: i32) -> SysResult<Arc<dyn FileOps>> {
        Ok(Arc::new(MqFile { queue: self.queue.clone(), name: self.name.clone() }))
    }

    fn truncate(&self, _: u64) -> SysResult<()> {
        Ok(())
    }

    fn statfs(&self) -> SysResult<StatFs> {
        FS.statfs()
    }
}

/// Mounts /dev/mqueue.
pub(super) fn mount(kernel: &Arc<Kernel>) -> SysResult<()> {
    let at = super::set_up::place(&kernel.vfs, b"/dev/mqueue", true)?;
    let root = Root { queues: kernel.ipc.mqueues.clone() };
    kernel.vfs.mount(
        at,
        NewMount {
            root: Dentry::root(Arc::new(root)),
            fstype: "mqueue",
            source: "mqueue".to_owned(),
            read_only: false,
            options: "nosuid,nodev,noexec,relatime",
        },
    );
    Ok(())
}
