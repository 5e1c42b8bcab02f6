//! A place in the mount tree.

use crate::vfs::dentry::Dentry;
use crate::vfs::inode::Inode;
use crate::vfs::mount::Mount;
use std::sync::Arc;

/// Mount and dentry.
#[derive(Clone)]
pub struct Path {
    /// The mount it was reached through.
    pub mount: Arc<Mount>,
    /// The name in it.
    pub dentry: Arc<Dentry>,
}

impl Path {
    /// The inode there.
    pub fn inode(&self) -> &Arc<dyn Inode> {
        &self.dentry.inode
    }

    /// Same mount and same dentry.
    pub fn same(&self, other: &Path) -> bool {
        Arc::ptr_eq(&self.mount, &other.mount) && Arc::ptr_eq(&self.dentry, &other.dentry)
    }

    /// One up, through the mount's root; None at the top of everything.
    pub fn parent(&self) -> Option<Path> {
        let mut at = self.clone();
        while Arc::ptr_eq(&at.dentry, &at.mount.root) {
            at = at.mount.parent()?;
        }
        let dentry = at.dentry.parent()?;
        Some(Path { mount: at.mount, dentry })
    }

    /// The absolute path as seen from `root`; whether `root` was met on the way up, and whether the name is still there.
    pub fn absolute(&self, root: Option<&Path>) -> Absolute {
        let mut names: Vec<Box<[u8]>> = Vec::new();
        let mut at = self.clone();
        let mut deleted = false;
        let reached = loop {
            if root.is_some_and(|root| at.same(root)) {
                break true;
            }
            if Arc::ptr_eq(&at.dentry, &at.mount.root) {
                match at.mount.parent() {
                    Some(up) => at = up,
                    None => break root.is_none(),
                }
                continue;
            }
            let (parent, name, gone) = at.dentry.place();
            deleted |= gone;
            let Some(parent) = parent else { break false };
            names.push(name);
            at.dentry = parent;
        };
        let mut bytes = Vec::new();
        for name in names.iter().rev() {
            bytes.push(b'/');
            bytes.extend_from_slice(name);
        }
        if bytes.is_empty() {
            bytes.push(b'/');
        }
        Absolute { bytes, reached, deleted }
    }

    /// The path as procfs shows it.
    pub fn display(&self, root: Option<&Path>) -> Vec<u8> {
        let mut absolute = self.absolute(root);
        if absolute.deleted {
            absolute.bytes.extend_from_slice(b" (deleted)");
        }
        absolute.bytes
    }
}

/// What [`Path::absolute`] gives.
pub struct Absolute {
    /// `/a/b`.
    pub bytes: Vec<u8>,
    /// Whether the root was met.
    pub reached: bool,
    /// Whether a name on the way was removed.
    pub deleted: bool,
}
