//! Files: open descriptions, descriptor tables, mounts, path walks and inodes.

pub mod acl;
pub mod attr;
pub mod dentry;
pub mod dir;
pub mod dnotify;
pub mod fdtable;
pub mod file;
pub mod fscontext;
pub mod inode;
pub mod io;
pub(crate) mod lend;
pub mod lock;
pub mod mount;
pub mod mounting;
pub mod mountns;
mod mounttree;
pub mod nameless;
pub mod names;
mod open;
pub(crate) mod outside;
pub mod owner;
pub mod path;
pub mod perm;
pub mod propagate;
pub mod text;
pub mod walk;
pub mod watch;

pub(crate) use mounttree::MOST as MOUNT_MAX;

use crate::fail::SysResult;
use crate::fs::memfs::{MemFs, Node};
use crate::sync::{Level, Lock};
use crate::task::Task;
use crate::task::userns::UserNs;
use dentry::Dentry;
use file::File;
use inode::NewOwner;
use mount::{Mount, NewMount, Super};
use mountns::MountNs;
use mounttree::Tree;
use path::Path;
use std::sync::{Arc, OnceLock};
use syscall_table::abi::open::{O_ACCMODE, O_RDONLY, O_WRONLY};
use syscall_table::abi::stat::{S_IFCHR, S_IFMT, S_IFSOCK};
use syscall_table::errno::Errno;

/// The mount tree and file systems of a sandbox.
pub struct Vfs {
    tree: Arc<Lock<Tree>>,
    /// The mount namespace that the sandbox begins with.
    pub first: Arc<MountNs>,
    root: OnceLock<Path>,
    /// The kernel's own file systems, of which there is one each.
    kinds: Lock<Vec<Arc<Super>>>,
    /// Record locks.
    pub locks: Arc<lock::Locks>,
    /// Locks of flock(2).
    pub flocks: Arc<lock::Locks>,
    /// The file system of memfds, once there is one.
    anonymous: OnceLock<Path>,
    /// Held while something moves: where a directory lies does not change between a look and its own move.
    moving: Lock<()>,
    /// Which mounts the policy made.
    pub policy: crate::policy::Mounts,
}

impl Default for Vfs {
    fn default() -> Self {
        let tree = Arc::new(Lock::new(Level::Mounts, Tree::default()));
        Vfs {
            first: MountNs::new(&tree, UserNs::first(), 0xefff_fff8, false),
            tree,
            root: OnceLock::new(),
            kinds: Lock::new(Level::Field, Vec::new()),
            locks: Arc::new(lock::Locks::records()),
            flocks: Arc::new(lock::Locks::flocks()),
            moving: Lock::new(Level::Mounts, ()),
            anonymous: OnceLock::new(),
            policy: Default::default(),
        }
    }
}

impl Vfs {
    /// Mounts the root file system. The first call wins.
    pub fn mount_root(&self, new: NewMount) {
        let mount = new.make();
        let root = Path { dentry: mount.root.clone(), mount: mount.clone() };
        // Only the set-up of the sandbox calls this: there is room.
        let _ = self.tree.lock().put(&[mount], None, self.first.id);
        let _ = self.root.set(root);
    }

    /// Mounts over the directory or file `at`, in the set-up of the sandbox.
    pub fn mount(&self, at: Path, new: NewMount) -> Arc<Mount> {
        let mount = new.make();
        if matches!(mount.sb.fstype, "proc" | "sysfs" | "devpts" | "mqueue") {
            self.kinds.lock().push(mount.sb.clone());
        }
        // There is room.
        let _ = self.tree.lock().put(std::slice::from_ref(&mount), Some(at), self.first.id);
        mount
    }

    /// The file system of a type that there is one of.
    pub(crate) fn only(&self, kind: &str) -> Option<Arc<Super>> {
        self.kinds.lock().iter().find(|sb| sb.fstype == kind).cloned()
    }

    /// Keeps a mount where it is: it cannot be taken off what it covers, no flag can be taken back.
    pub(crate) fn lock(mount: &Mount) {
        let covers = if mount.parent().is_some() { mount::mnt::LOCKED } else { 0 };
        mount.add_flags(mounttree::lock_flags(mount.flags()) | covers);
    }

    /// What is mounted right at a place.
    fn mount_at(&self, path: &Path) -> Option<Arc<Mount>> {
        self.tree.lock().child_at(&path.mount, &path.dentry)
    }

    /// The root of everything.
    ///
    /// # Errors
    /// ENOENT before the root was mounted.
    pub fn root(&self) -> SysResult<Path> {
        self.root.get().cloned().ok_or(Errno::ENOENT.into())
    }

    /// A task's root directory.
    pub fn root_of(&self, task: &Task) -> SysResult<Path> {
        match task.fs().root() {
            Some(root) => Ok(root),
            None => self.root(),
        }
    }

    /// A task's working directory.
    pub fn cwd_of(&self, task: &Task) -> SysResult<Path> {
        match task.fs().cwd() {
            Some(cwd) => Ok(cwd),
            None => self.root_of(task),
        }
    }

    /// A regular file that has no name in any directory (memfd_create), of an internal tmpfs.
    ///
    /// # Errors
    /// None so far.
    pub fn anonymous(&self, name: &[u8], owner: NewOwner) -> SysResult<(Arc<Node>, Path)> {
        let root = self.anonymous_root();
        let node = inode::downcast::<Node>(root.inode()).ok_or(Errno::EIO)?.anonymous(owner);
        let name = [b"memfd:", name].concat();
        let dentry = root.dentry.nameless(&name, node.clone());
        Ok((node, Path { mount: root.mount.clone(), dentry }))
    }

    /// A place that stands for an open description without a path: opening it shares the object (/proc/self/fd/N of
    /// pipes, terminals and the like).
    ///
    /// # Errors
    /// None so far.
    pub(crate) fn nameless(&self, file: &Arc<File>) -> SysResult<Path> {
        let root = self.anonymous_root();
        let name = file.ops.describe();
        let inode = file.ops.inode().unwrap_or_else(|| Arc::new(Shared(file.clone())));
        let dentry = root.dentry.nameless(name.as_bytes(), inode);
        Ok(Path { mount: root.mount.clone(), dentry })
    }

    /// A place for an inode of the kernel's own that is in no directory.
    pub(crate) fn internal(&self, name: &[u8], inode: Arc<dyn inode::Inode>) -> Path {
        let root = self.anonymous_root();
        Path { mount: root.mount.clone(), dentry: root.dentry.detached(name, inode) }
    }

    fn anonymous_root(&self) -> &Path {
        self.anonymous.get_or_init(|| {
            let root = MemFs::tmpfs(1, u64::MAX, NewOwner { mode: 0o700, masked: 0, uid: 0, gid: 0 });
            let sb = Super::new("tmpfs", Dentry::root(root), String::new(), UserNs::first());
            let root = sb.root.clone();
            let mount = Mount::new(&Arc::new(sb), root, "tmpfs".into(), 0);
            Path { dentry: mount.root.clone(), mount }
        })
    }

    /// Forgets names that nobody uses.
    pub(crate) fn sweep(&self) {
        self.roots().iter().for_each(|root| root.sweep());
    }

    /// The roots of all mounted file systems.
    pub(crate) fn roots(&self) -> Vec<Arc<Dentry>> {
        let mounts = self.tree.lock().all();
        let mut roots: Vec<Arc<Dentry>> = mounts.iter().map(|mount| mount.sb.root.clone()).collect();
        roots.sort_unstable_by_key(Arc::as_ptr);
        roots.dedup_by_key(|root| Arc::as_ptr(root));
        roots
    }
}

/// The object of an open description, as an inode that can be opened again.
struct Shared(Arc<File>);

impl inode::Inode for Shared {
    fn kind(&self) -> u32 {
        // Opening must not take it for a named pipe. Sockets cannot be opened.
        match self.0.ops.attr() {
            Ok(attr) if attr.mode & S_IFMT == S_IFSOCK => S_IFSOCK,
            _ => S_IFCHR,
        }
    }

    fn attr(&self) -> SysResult<attr::Attr> {
        self.0.ops.attr()
    }

    fn open(self: Arc<Self>, _: &Arc<Task>, flags: i32) -> SysResult<Arc<dyn file::FileOps>> {
        let access = flags & O_ACCMODE;
        let (read, write) = (access != O_WRONLY, access != O_RDONLY);
        if (read && !self.0.readable()) || (write && !self.0.writable()) {
            return Err(Errno::EACCES.into());
        }
        Ok(Arc::new(Again(self)))
    }
}

/// A second description of one object: its end of life is the first one's.
struct Again(Arc<Shared>);

impl file::FileOps for Again {
    fn read(&self, cx: &mut crate::cx::Cx, file: &File, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        self.0.0.ops.read(cx, file, buf, offset)
    }

    fn write(
        &self,
        cx: &mut crate::cx::Cx,
        file: &File,
        data: &[u8],
        offset: u64,
    ) -> SysResult<file::Written> {
        self.0.0.ops.write(cx, file, data, offset)
    }

    fn seekable(&self) -> bool {
        self.0.0.ops.seekable()
    }

    fn size(&self) -> SysResult<u64> {
        self.0.0.ops.size()
    }

    fn poll(&self, file: &File) -> crate::wait::Ready {
        self.0.0.ops.poll(file)
    }

    fn queue(&self) -> Option<&crate::wait::WaitQueue> {
        self.0.0.ops.queue()
    }

    fn attr(&self) -> SysResult<attr::Attr> {
        self.0.0.ops.attr()
    }

    fn ioctl(&self, cx: &mut crate::cx::Cx, file: &File, request: u32, arg: u64) -> SysResult {
        self.0.0.ops.ioctl(cx, file, request, arg)
    }

    fn mmap(&self, file: &File, prot: i32, flags: i32) -> SysResult<file::Mapping> {
        self.0.0.ops.mmap(file, prot, flags)
    }

    fn inode(&self) -> Option<Arc<dyn inode::Inode>> {
        self.0.0.ops.inode()
    }

    fn describe(&self) -> String {
        self.0.0.ops.describe()
    }
}
