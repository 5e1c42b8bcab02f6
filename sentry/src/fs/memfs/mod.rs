//! Files in memory: tmpfs, and with a lower file system beneath, an overlay.
//!
//! A [`Node`] with a `lower` inode shows that one until it is changed. A changed node is *pinned*: its directory's
//! table holds it, and so on up to the root. A table entry hides the lower name; a whiteout hides it without another.
//! Inode numbers are the lower's where there is one, whatever happens to the node later. A directory that is renamed takes
//! its lower with it, so renames cost nothing. As with overlayfs, two hard links of the lower part ways when one is
//! changed.
//!
//! That a node which is not pinned exists only once is the dentry tree's doing: see [`crate::vfs::dentry`].

mod content;
mod dir;
mod file;
mod node;
#[cfg(test)]
mod tests;

pub use content::Content;
pub use file::MemFile;
pub use node::Node;

use crate::fail::SysResult;
use crate::vfs::inode::{Inode, NewOwner};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use syscall_table::abi::S_IFDIR;
use syscall_table::errno::Errno;

/// Numbers of inodes that have no lower start here, beyond those that host file systems use.
const FIRST_INO: u64 = 1 << 44;

/// One file system in memory.
pub struct MemFs {
    /// Of nodes that have no lower.
    dev: u64,
    next_ino: AtomicU64,
    /// Bytes of contents.
    used: AtomicU64,
    limit: u64,
    overlay: bool,
}

impl MemFs {
    /// A tmpfs of at most `limit` bytes of contents; `dev` is its device number.
    pub fn tmpfs(dev: u64, limit: u64, owner: NewOwner) -> Arc<Node> {
        let fs = MemFs { dev, next_ino: AtomicU64::new(2), used: AtomicU64::new(0), limit, overlay: false };
        Node::fresh(&Arc::new(fs), 1, S_IFDIR, owner, Vec::new(), 0)
    }

    /// An overlay over the directory `lower`.
    ///
    /// # Errors
    /// Those of reading the lower's attributes.
    pub fn overlay(lower: Arc<dyn Inode>, limit: u64) -> SysResult<Arc<Node>> {
        let dev = lower.attr()?.dev;
        let fs =
            MemFs { dev, next_ino: AtomicU64::new(FIRST_INO), used: AtomicU64::new(0), limit, overlay: true };
        let root = Node::over(&Arc::new(fs), lower, None)?;
        root.pin_root();
        Ok(root)
    }

    fn ino(&self) -> u64 {
        self.next_ino.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes room for `more` bytes.
    fn charge(&self, more: u64) -> SysResult<()> {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(more).filter(|sum| *sum <= self.limit)
        });
        taken.map(|_| ()).map_err(|_| Errno::ENOSPC.into())
    }

    fn release(&self, less: u64) {
        // Never below what was charged: the contents keep count.
        let _ = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(used.saturating_sub(less)));
    }
}
