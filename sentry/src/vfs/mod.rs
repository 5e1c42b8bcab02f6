//! Files: open descriptions, descriptor tables, mounts, path walks and inodes.

pub mod attr;
pub mod dentry;
pub mod dir;
pub mod fdtable;
pub mod file;
pub mod fscontext;
pub mod inode;
pub mod mount;
pub mod names;
mod open;
pub mod path;
pub mod perm;
pub mod walk;

use crate::fail::SysResult;
use crate::sync::{Level, Lock};
use crate::task::Task;
use mount::{Mount, NewMount};
use path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use syscall_table::errno::Errno;

/// The mount tree and file systems of a sandbox.
pub struct Vfs {
    mounts: Lock<Vec<Arc<Mount>>>,
    root: OnceLock<Path>,
}

impl Default for Vfs {
    fn default() -> Self {
        Vfs { mounts: Lock::new(Level::Mounts, Vec::new()), root: OnceLock::new() }
    }
}

impl Vfs {
    /// Mounts the root file system. The first call wins.
    pub fn mount_root(&self, new: NewMount) {
        let mount = self.make_mount(new, None);
        let root = Path { dentry: mount.root.clone(), mount };
        // Only the set-up of the sandbox calls this.
        let _ = self.root.set(root);
    }

    /// Mounts over the directory or file `at`.
    pub fn mount(&self, at: Path, new: NewMount) -> Arc<Mount> {
        let flag = at.dentry.clone();
        let mount = self.make_mount(new, Some(at));
        flag.mounted.store(true, Ordering::Release);
        mount
    }

    fn make_mount(&self, new: NewMount, parent: Option<Path>) -> Arc<Mount> {
        let mut mounts = self.mounts.lock();
        let mount = Arc::new(Mount {
            id: 21 + mounts.len() as u64,
            parent,
            root: new.root,
            fstype: new.fstype,
            source: new.source,
            read_only: new.read_only,
            options: new.options,
        });
        mounts.push(mount.clone());
        mount
    }

    /// All mounts, in the order they were made.
    pub fn mounts(&self) -> Vec<Arc<Mount>> {
        self.mounts.lock().clone()
    }

    /// The topmost mount over this very place.
    fn mount_at(&self, path: &Path) -> Option<Arc<Mount>> {
        let mounts = self.mounts.lock();
        mounts.iter().rev().find(|m| m.parent.as_ref().is_some_and(|p| p.same(path))).cloned()
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

    /// Forgets names that nobody uses.
    pub(crate) fn sweep(&self) {
        for mount in self.mounts() {
            mount.root.sweep();
        }
    }
}
