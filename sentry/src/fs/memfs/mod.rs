//! Files in memory: tmpfs, and with a lower file system beneath, an overlay.
//!
//! A [`Node`] with a `lower` inode shows that one until it is changed. A changed node is *pinned*: its directory's
//! table holds it, and so on up to the root. A table entry hides the lower name; a whiteout hides it without another.
//! Inode numbers are the lower's where there is one, whatever happens to the node later. A directory that is renamed takes
//! its lower with it, so renames cost nothing. All names of a
//! lower file are one node while programs run; what is exported has the names alone by which it was changed.
//!
//! That a node which is not pinned exists only once is the dentry tree's doing: see [`crate::vfs::dentry`].

mod changes;
mod content;
mod dir;
mod file;
mod kept;
mod linked;
mod node;
#[cfg(test)]
mod tests;
mod xattr;

pub use changes::{Change, Kind, changes};
pub use content::Content;
pub use file::MemFile;
pub use kept::{Kept, Woken};
pub use node::Node;

use crate::fail::SysResult;
use crate::sync::{Level, Lock};
use crate::vfs::inode::{Inode, NewOwner};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use syscall_table::abi::{OVERLAYFS_SUPER_MAGIC, S_IFDIR, TMPFS_MAGIC};
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
    limit: AtomicU64,
    /// Inodes that have no lower, and the most of them.
    inodes: AtomicU64,
    most_inodes: AtomicU64,
    /// A guest has mounted it: all such share one pool of memory.
    pooled: bool,
    /// f_type.
    magic: i64,
    memfds: Lock<Memfds>,
    /// Set if it is written down while programs change it.
    kept: OnceLock<Arc<Kept>>,
    linked: linked::Linked,
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

/// Bytes of all file systems that guests have mounted.
static POOL: AtomicU64 = AtomicU64::new(0);
/// What an inode counts for in the pool.
const INODE: u64 = 1024;

impl MemFs {
    fn new(dev: u64, first_ino: u64, limit: u64, overlay: bool) -> MemFs {
        MemFs {
            dev,
            next_ino: AtomicU64::new(first_ino),
            used: AtomicU64::new(0),
            limit: AtomicU64::new(limit),
            inodes: AtomicU64::new(0),
            most_inodes: AtomicU64::new(u64::MAX),
            pooled: false,
            magic: if overlay { OVERLAYFS_SUPER_MAGIC } else { TMPFS_MAGIC },
            memfds: Lock::new(Level::Inode, Memfds { nodes: Vec::new(), bound: FEW_MEMFDS }),
            kept: OnceLock::new(),
            linked: Default::default(),
        }
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
            .filter(|node| node.upgrade().is_some_and(|node| node.content.lock().rest(self)))
            .collect();
        let mut memfds = self.memfds.lock();
        memfds.nodes.extend(kept);
        memfds.bound = memfds.nodes.len().saturating_mul(2).max(FEW_MEMFDS);
    }

    /// A tmpfs of at most `limit` bytes of contents; `dev` is its device number.
    pub fn tmpfs(dev: u64, limit: u64, owner: NewOwner) -> Arc<Node> {
        Node::fresh(&Arc::new(MemFs::new(dev, 2, limit, false)), 1, S_IFDIR, owner, Vec::new(), 0)
    }

    /// A tmpfs that a guest mounts, of at most so many bytes and inodes; `magic`: its f_type.
    pub fn guests_own(dev: u64, magic: i64, (limit, inodes): (u64, u64), owner: NewOwner) -> Arc<Node> {
        let mut fs = MemFs { magic, pooled: true, ..MemFs::new(dev, 2, limit, false) };
        fs.most_inodes = AtomicU64::new(inodes);
        Node::fresh(&Arc::new(fs), 1, S_IFDIR, owner, Vec::new(), 0)
    }

    /// An overlay over the directory `lower`.
    ///
    /// # Errors
    /// Those of reading the lower's attributes.
    pub fn overlay(lower: Arc<dyn Inode>, limit: u64) -> SysResult<Arc<Node>> {
        let dev = lower.attr()?.dev;
        let root = Node::over(&Arc::new(MemFs::new(dev, FIRST_INO, limit, true)), lower, None)?;
        root.pin_root();
        Ok(root)
    }

    fn ino(&self) -> u64 {
        self.next_ino.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes room for `more` bytes.
    fn charge(&self, more: u64) -> SysResult<()> {
        take(&self.used, more, self.limit.load(Ordering::Relaxed))?;
        if self.pooled && take(&POOL, more, super::kinds::room()).is_err() {
            give(&self.used, more);
            return Err(Errno::ENOSPC.into());
        }
        if more > 0 && !crate::memory::room_for(more) {
            self.put_back(more);
            return Err(Errno::ENOSPC.into());
        }
        crate::memory::took(more);
        Ok(())
    }

    fn release(&self, less: u64) {
        crate::memory::gave(less);
        self.put_back(less);
    }

    fn put_back(&self, less: u64) {
        // Never below what was charged: the contents keep count.
        give(&self.used, less);
        if self.pooled {
            give(&POOL, less);
        }
    }

    /// ENOSPC unless there is room for one more inode without lower.
    fn room_for_inode(&self) -> SysResult<()> {
        let full = self.inodes.load(Ordering::Relaxed) >= self.most_inodes.load(Ordering::Relaxed)
            || self.pooled && POOL.load(Ordering::Relaxed) >= super::kinds::room();
        if full { Err(Errno::ENOSPC.into()) } else { Ok(()) }
    }

    /// One more inode without lower.
    fn count_inode(&self) {
        self.inodes.fetch_add(1, Ordering::Relaxed);
        if self.pooled {
            POOL.fetch_add(INODE, Ordering::Relaxed);
        }
    }

    fn release_inode(&self) {
        give(&self.inodes, 1);
        if self.pooled {
            give(&POOL, INODE);
        }
    }

    /// Changes the limits, of bytes and inodes.
    ///
    /// # Errors
    /// EINVAL when more is in use.
    fn set_limits(&self, bytes: Option<u64>, inodes: Option<u64>) -> SysResult<()> {
        let outgrown = |used: &AtomicU64, limit: Option<u64>| {
            limit.is_some_and(|limit| used.load(Ordering::Relaxed) > limit)
        };
        if outgrown(&self.used, bytes) || outgrown(&self.inodes, inodes) {
            return Err(Errno::EINVAL.into());
        }
        if let Some(bytes) = bytes {
            self.limit.store(bytes, Ordering::Relaxed);
        }
        if let Some(inodes) = inodes {
            self.most_inodes.store(inodes, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn take(used: &AtomicU64, more: u64, limit: u64) -> SysResult<()> {
    let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        used.checked_add(more).filter(|sum| *sum <= limit)
    });
    taken.map(drop).map_err(|_| Errno::ENOSPC.into())
}

fn give(used: &AtomicU64, less: u64) {
    // The closure always returns Some.
    let _ = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(used.saturating_sub(less)));
}
