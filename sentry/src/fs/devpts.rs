//! /dev/pts: the names of pseudo-terminals (pts(4)), and opening /dev/ptmx.

use super::pseudo::Super;
use crate::fail::SysResult;
use crate::kernel::Kernel;
use crate::sync::{Level, Lock};
use crate::task::Task;
use crate::tty::master::Master;
use crate::tty::pty::{Pty, Times};
use crate::vfs::Vfs;
use crate::vfs::attr::{Attr, FileTime};
use crate::vfs::dentry::{Dentry, Known};
use crate::vfs::file::FileOps;
use crate::vfs::inode::{Inode, Listed, SetAttr, SetTime, StatFs, dirent_kind};
use crate::vfs::mount::NewMount;
use crate::vfs::path::Path;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, Weak};
use syscall_table::abi::DEVPTS_SUPER_MAGIC;
use syscall_table::abi::stat::{S_IFCHR, S_IFDIR, makedev};
use syscall_table::errno::Errno;

/// Most pairs at a time: what /proc/sys/kernel/pty/max says. Each has some tens of kilobytes of buffers at most.
pub(crate) const MAX: u32 = 1024;
/// The group that new slaves belong to (tty), and their mode: mount options `gid` and `mode`.
const GROUP: u32 = 5;
const MODE: u32 = 0o620;
/// Inode numbers: the root is 1, ptmx 2, slave N is N + 3.
const ROOT_INO: u64 = 1;
const PTMX_INO: u64 = 2;
const FIRST_INO: u64 = 3;

const FS: Super = Super { dev: makedev(0, 23), magic: DEVPTS_SUPER_MAGIC };

/// The pseudo-terminals of a sandbox.
#[derive(Default)]
pub struct Ptys {
    numbers: Arc<parking_lot::Mutex<BTreeSet<u32>>>,
    slaves: Arc<parking_lot::Mutex<BTreeMap<u32, Arc<SlaveName>>>>,
    root: OnceLock<Path>,
}

/// A number in use.
struct Number {
    numbers: Arc<parking_lot::Mutex<BTreeSet<u32>>>,
    number: u32,
}

impl Drop for Number {
    fn drop(&mut self) {
        self.numbers.lock().remove(&self.number);
    }
}

impl Ptys {
    /// Pairs there are.
    pub(crate) fn count(&self) -> usize {
        self.numbers.lock().len()
    }

    fn number(&self) -> SysResult<Number> {
        let mut used = self.numbers.lock();
        let number = (0..MAX).find(|n| !used.contains(n)).ok_or(Errno::ENOSPC)?;
        used.insert(number);
        Ok(Number { numbers: self.numbers.clone(), number })
    }

    /// Opens /dev/ptmx, by whatever name (`inode`): a new pair.
    ///
    /// # Errors
    /// ENOSPC when there are too many.
    pub(super) fn open_master(&self, inode: Arc<dyn Inode>, task: &Task) -> SysResult<Arc<dyn FileOps>> {
        let number = self.number()?;
        let pty = Pty::new(number.number, &task.kernel, Box::new(number));
        let creds = task.creds();
        let now = FileTime::now();
        let owner = Owner { mode: MODE, uid: creds.fsuid, gid: GROUP, changed: now };
        let name = SlaveName {
            number: pty.number,
            pty: Arc::downgrade(&pty),
            owner: Lock::new(Level::Field, owner),
        };
        let name = Arc::new(name);
        self.slaves.lock().insert(pty.number, name.clone());
        if let Some(root) = self.root.get() {
            root.dentry.added(pty.number.to_string().as_bytes(), name);
        }
        Ok(Arc::new(Master::new(pty, inode)))
    }

    /// The master of a pair is closed: its slave has no name any more. Takes directory locks.
    pub(crate) fn remove(&self, number: u32) {
        let name = self.slaves.lock().remove(&number);
        if let Some(root) = self.root.get() {
            root.dentry.removed(number.to_string().as_bytes());
        }
        drop(name);
    }

    /// Where the slave's name is.
    pub(crate) fn place(&self, number: u32) -> Option<Path> {
        let root = self.root.get()?;
        let name = number.to_string();
        let dentry = match root.dentry.known(name.as_bytes()) {
            Known::Present(dentry) => dentry,
            Known::Absent => return None,
            Known::Unknown(changes) => {
                let slave = self.slaves.lock().get(&number).cloned()?;
                root.dentry.remember(name.as_bytes(), slave, changes)?
            }
        };
        Some(Path { mount: root.mount.clone(), dentry })
    }
}

/// The root directory.
struct Root {
    slaves: Arc<parking_lot::Mutex<BTreeMap<u32, Arc<SlaveName>>>>,
    ptmx: Arc<dyn Inode>,
}

impl Inode for Root {
    fn kind(&self) -> u32 {
        S_IFDIR
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(FS.attr(ROOT_INO, S_IFDIR | 0o755, (0, 0)))
    }

    fn lookup_free(&self, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        if name == b"ptmx" {
            return Ok(self.ptmx.clone());
        }
        let number: Option<u32> = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
        let slave = number.and_then(|number| self.slaves.lock().get(&number).cloned());
        let slave = slave.filter(|slave| slave.number.to_string().as_bytes() == name);
        slave.map(|slave| slave as Arc<dyn Inode>).ok_or(Errno::ENOENT.into())
    }

    fn list(&self) -> SysResult<Arc<Vec<Listed>>> {
        let kind = dirent_kind(S_IFCHR);
        let slaves = self.slaves.lock();
        let listed = |number: &u32| Listed {
            name: number.to_string().into_bytes().into(),
            ino: FIRST_INO.saturating_add(u64::from(*number)),
            kind,
        };
        let mut list: Vec<Listed> = slaves.keys().rev().map(listed).collect();
        list.push(Listed { name: b"ptmx".as_slice().into(), ino: PTMX_INO, kind });
        Ok(Arc::new(list))
    }

    fn statfs(&self) -> SysResult<StatFs> {
        FS.statfs()
    }
}

fn device(ino: u64, mode: u32, owner: (u32, u32), rdev: u64) -> Attr {
    let attr = FS.attr(ino, S_IFCHR | mode, owner);
    Attr { rdev, blksize: 1024, ..attr }
}

/// /dev/pts/ptmx
struct Ptmx {
    kernel: Weak<Kernel>,
    made: FileTime,
    owner: Lock<Owner>,
}

#[derive(Debug, Clone, Copy)]
struct Owner {
    mode: u32,
    uid: u32,
    gid: u32,
    changed: FileTime,
}

impl Owner {
    fn set(&mut self, set: &SetAttr) {
        self.mode = set.mode.map_or(self.mode, |mode| mode & 0o7777);
        self.uid = set.uid.unwrap_or(self.uid);
        self.gid = set.gid.unwrap_or(self.gid);
        self.changed = FileTime::now();
    }
}

impl Inode for Ptmx {
    fn kind(&self) -> u32 {
        S_IFCHR
    }

    fn attr(&self) -> SysResult<Attr> {
        let owner = *self.owner.lock();
        let attr = device(PTMX_INO, owner.mode, (owner.uid, owner.gid), makedev(5, 2));
        Ok(Attr { atime: self.made, mtime: self.made, ctime: owner.changed, ..attr })
    }

    fn set_attr(&self, set: &SetAttr) -> SysResult<()> {
        self.owner.lock().set(set);
        Ok(())
    }

    fn open(self: Arc<Self>, task: &Arc<Task>, _: i32) -> SysResult<Arc<dyn FileOps>> {
        let kernel = self.kernel.upgrade().ok_or(Errno::EIO)?;
        kernel.ptys.open_master(self, task)
    }

    fn statfs(&self) -> SysResult<StatFs> {
        FS.statfs()
    }
}

/// /dev/pts/N
struct SlaveName {
    number: u32,
    pty: Weak<Pty>,
    owner: Lock<Owner>,
}

impl Inode for SlaveName {
    fn kind(&self) -> u32 {
        S_IFCHR
    }

    fn attr(&self) -> SysResult<Attr> {
        let owner = *self.owner.lock();
        let ino = FIRST_INO.saturating_add(u64::from(self.number));
        let attr = device(ino, owner.mode, (owner.uid, owner.gid), makedev(136, self.number));
        let times = self.pty.upgrade().map(|pty| pty.times());
        let (atime, mtime) = times.map_or((attr.atime, attr.mtime), |t| (t.read, t.written));
        Ok(Attr { atime, mtime, ctime: owner.changed, ..attr })
    }

    fn set_attr(&self, set: &SetAttr) -> SysResult<()> {
        self.owner.lock().set(set);
        if let Some(pty) = self.pty.upgrade() {
            let old = pty.times();
            let time = |set: Option<SetTime>, old: FileTime| match set {
                None => old,
                Some(SetTime::Now) => FileTime::now(),
                Some(SetTime::At(time)) => time,
            };
            pty.set_times(Times { read: time(set.atime, old.read), written: time(set.mtime, old.written) });
        }
        Ok(())
    }

    fn open(self: Arc<Self>, task: &Arc<Task>, flags: i32) -> SysResult<Arc<dyn FileOps>> {
        let pty = self.pty.upgrade().ok_or(Errno::EIO)?;
        pty.open_slave(self, task, flags)
    }

    fn statfs(&self) -> SysResult<StatFs> {
        FS.statfs()
    }
}

/// Mounts /dev/pts.
pub(super) fn mount(kernel: &Arc<Kernel>) -> SysResult<()> {
    let vfs: &Vfs = &kernel.vfs;
    let made = FileTime::now();
    let owner = Owner { mode: 0, uid: 0, gid: 0, changed: made };
    let ptmx = Ptmx { kernel: Arc::downgrade(kernel), made, owner: Lock::new(Level::Field, owner) };
    let root = Arc::new(Root { slaves: kernel.ptys.slaves.clone(), ptmx: Arc::new(ptmx) });
    let at = super::set_up::place(vfs, b"/dev/pts", true)?;
    let mount = vfs.mount(
        at,
        NewMount {
            root: Dentry::root(root),
            fstype: "devpts",
            source: "devpts".to_owned(),
            read_only: false,
            options: "nosuid,noexec,relatime,gid=5,mode=620,ptmxmode=000",
        },
    );
    let _ = kernel.ptys.root.set(Path { dentry: mount.root.clone(), mount });
    Ok(())
}
