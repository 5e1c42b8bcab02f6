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
use crate::sync::{Level, Lock};
use crate::vfs::inode::{Inode, NewOwner};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
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
    memfds: Lock<Memfds>,
}

/// Small files that were mapped, in memfds therefore. Each costs two descriptors of the sentry's, of which the host gives
/// some thousands: those that nobody maps any more become bytes again when there are many.
struct Memfds {
    nodes: Vec<Weak<Node>>,
    /// How many are too many.
    bound: usize,
}

/// Memfds of small files, of which no fewer are looked through.
const FEW_MEMFDS: usize = 256;

impl MemFs {
    fn new(dev: u64, first_ino: u64, limit: u64, overlay: bool) -> Arc<MemFs> {
        let memfds = Lock::new(Level::Inode, Memfds { nodes: Vec::new(), bound: FEW_MEMFDS });
        let (next_ino, used) = (AtomicU64::new(first_ino), AtomicU64::new(0));
        Arc::new(MemFs { dev, next_ino, used, limit, overlay, memfds })
    }

    /// Notes that `node` has a memfd now that can be given up. No lock is held.
    fn list_memfd(&self, node: &Weak<Node>) {
        let mut memfds = self.memfds.lock();
        memfds.nodes.push(node.clone());
        if memfds.nodes.len() < memfds.bound {
            return;
        }
        let all = std::mem::take(&mut memfds.nodes);
        drop(memfds);
        let kept: Vec<_> = all
            .into_iter()
            .filter(|node| node.upgrade().is_some_and(|node| node.content.lock().rest()))
            .collect();
        let mut memfds = self.memfds.lock();
        memfds.nodes.extend(kept);
        memfds.bound = memfds.nodes.len().saturating_mul(2).max(FEW_MEMFDS);
    }

    /// A tmpfs of at most `limit` bytes of contents; `dev` is its device number.
    pub fn tmpfs(dev: u64, limit: u64, owner: NewOwner) -> Arc<Node> {
        Node::fresh(&MemFs::new(dev, 2, limit, false), 1, S_IFDIR, owner, Vec::new(), 0)
    }

    /// An overlay over the directory `lower`.
    ///
    /// # Errors
    /// Those of reading the lower's attributes.
    pub fn overlay(lower: Arc<dyn Inode>, limit: u64) -> SysResult<Arc<Node>> {
        let dev = lower.attr()?.dev;
        let root = Node::over(&MemFs::new(dev, FIRST_INO, limit, true), lower, None)?;
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
