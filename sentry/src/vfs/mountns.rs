//! Mount namespaces (mount_namespaces(7)).

use super::mounttree::Tree;
use crate::sync::Lock;
use crate::task::userns::UserNs;
use crate::vfs::mount::Mount;
use crate::wait::{Ready, WaitQueue};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts changes of the mounts of a namespace, for who polls /proc/PID/mounts.
pub struct Changes {
    count: AtomicU64,
    /// Woken at each change.
    pub queue: WaitQueue,
}

impl Changes {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    pub(super) fn tell(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.queue.wake(Ready::ERR | Ready::PRI);
    }
}

/// A mount namespace: its mounts go with it. One that no task is in holds a tree that was not put anywhere yet (fsmount(2),
/// open_tree(2)).
pub struct MountNs {
    /// Of the mount tree.
    pub id: u64,
    /// Number in /proc/PID/ns/mnt.
    pub ino: u64,
    /// Who may change it.
    pub owner: Arc<UserNs>,
    /// See [`Changes`].
    pub changes: Arc<Changes>,
    tree: Arc<Lock<Tree>>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl MountNs {
    pub(super) fn new(tree: &Arc<Lock<Tree>>, owner: Arc<UserNs>, ino: u64, anonymous: bool) -> Arc<MountNs> {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let changes = Arc::new(Changes { count: AtomicU64::new(0), queue: WaitQueue::new() });
        tree.lock().open_space(id, &changes, &owner, anonymous);
        Arc::new(MountNs { id, ino, owner, changes, tree: tree.clone() })
    }

    /// Its mounts, oldest first.
    pub fn mounts(&self) -> Vec<Arc<Mount>> {
        self.tree.lock().mounts_of(self.id)
    }

    /// The mount that all others are below.
    pub fn root(&self) -> Option<Arc<Mount>> {
        self.tree.lock().root_of(self.id)
    }
}

impl Drop for MountNs {
    fn drop(&mut self) {
        let gone = self.tree.lock().close_space(self.id);
        drop(gone);
    }
}
