//! Nodes over lower files with several names: each of the names leads to the one node.

use super::Node;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Device, inode number and kind of a lower file.
type Id = (u64, u64, u32);

/// A node that others may find.
struct Entry {
    node: Weak<Node>,
    /// It has changed: its names that were not looked at yet must find it when nobody uses it any more.
    held: Option<Arc<Node>>,
    /// Where it was found while it was unchanged: by directory and name.
    places: Places,
}

/// Directories, each with a name in it. The directory's address tells it from others.
type Places = BTreeMap<(usize, Box<[u8]>), Arc<Node>>;

/// The nodes. Its lock is taken with any other held, and takes none.
#[derive(Default)]
pub(super) struct Linked {
    nodes: Mutex<HashMap<Id, Entry>>,
    /// How many there are: most file systems have none.
    count: AtomicUsize,
}

impl Linked {
    /// The node of the file, made now if there is none; it is known to be at `place` from now on.
    pub(super) fn find(
        &self,
        id: Id,
        place: Option<&(Arc<Node>, Box<[u8]>)>,
        make: impl FnOnce() -> Arc<Node>,
    ) -> Arc<Node> {
        let mut nodes = self.nodes.lock();
        let known = nodes.get(&id).and_then(|entry| entry.node.upgrade());
        let mut ended = None;
        let (node, unused) = match known {
            Some(node) => (node, Some(make)),
            None => {
                let node = make();
                let entry = Entry { node: Arc::downgrade(&node), held: None, places: Places::new() };
                ended = nodes.insert(id, entry);
                self.count.store(nodes.len(), Ordering::Relaxed);
                (node, None)
            }
        };
        if let (Some((dir, name)), Some(entry)) = (place, nodes.get_mut(&id)) {
            entry.places.entry((Arc::as_ptr(dir).addr(), name.clone())).or_insert_with(|| dir.clone());
        }
        drop(nodes);
        // What it has of the lower may end with it.
        drop(unused);
        drop(ended);
        node
    }

    /// Where the file was found so far; they are not kept any longer.
    pub(super) fn take_places(&self, id: Id) -> Vec<(Arc<Node>, Box<[u8]>)> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let places = self.nodes.lock().get_mut(&id).map(|entry| std::mem::take(&mut entry.places));
        places.into_iter().flatten().map(|((_, name), dir)| (dir, name)).collect()
    }

    /// This name of the file is gone.
    pub(super) fn leaves(&self, id: Id, dir: &Node, name: &[u8]) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let place = (std::ptr::from_ref(dir).addr(), name.into());
        // Dropped without the lock: a node's end takes it.
        let gone = self.nodes.lock().get_mut(&id).and_then(|entry| entry.places.remove(&place));
        drop(gone);
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
        let own = nodes.get(&id).is_some_and(|entry| entry.node.strong_count() == 0);
        let gone = if own { nodes.remove(&id) } else { None };
        self.count.store(nodes.len(), Ordering::Relaxed);
        drop(nodes);
        // Its directories may end with it.
        drop(gone);
    }
}
