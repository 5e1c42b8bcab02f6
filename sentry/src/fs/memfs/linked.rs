//! Nodes over lower files with several names: each of the names leads to the one node.

use super::Node;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Device, inode number and kind of a lower file.
type Id = (u64, u64, u32);

/// A node that others may find.
struct Entry {
    node: Weak<Node>,
    /// It has changed: its names that were not looked at yet must find it when nobody uses it any more.
    held: Option<Arc<Node>>,
}

/// The nodes. Its lock is taken with any other held, and takes none.
#[derive(Default)]
pub(super) struct Linked {
    nodes: Mutex<HashMap<Id, Entry>>,
    /// How many there are: most file systems have none.
    count: AtomicUsize,
}

impl Linked {
    /// The node of the file, made now if there is none; and whether there was.
    pub(super) fn find(&self, id: Id, make: impl FnOnce() -> Arc<Node>) -> (Arc<Node>, bool) {
        let mut nodes = self.nodes.lock();
        if let Some(node) = nodes.get(&id).and_then(|entry| entry.node.upgrade()) {
            return (node, true);
        }
        let node = make();
        nodes.insert(id, Entry { node: Arc::downgrade(&node), held: None });
        self.count.store(nodes.len(), Ordering::Relaxed);
        (node, false)
    }

    /// Keeps the node for the file's other names.
    pub(super) fn hold(&self, id: Id, node: Arc<Node>) {
        if let Some(entry) = self.nodes.lock().get_mut(&id) {
            entry.held = Some(node);
        }
    }

    /// The last name is gone.
    pub(super) fn forget(&self, id: Id) {
        // Dropped without the lock: the node's end takes it.
        let held = self.nodes.lock().get_mut(&id).and_then(|entry| entry.held.take());
        drop(held);
    }

    /// A node of this file ends.
    pub(super) fn dropped(&self, id: Id) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut nodes = self.nodes.lock();
        // There may be another one already.
        if nodes.get(&id).is_some_and(|entry| entry.node.strong_count() == 0) {
            nodes.remove(&id);
        }
        self.count.store(nodes.len(), Ordering::Relaxed);
    }
}
