//! The table of nodes: what the sentry may name.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use parking_lot::RwLock;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::hidden::Position;
use crate::protocol::{Attr, NodeId};

/// A host inode that the sentry may name.
pub(crate) struct Node {
    /// `O_PATH` descriptor.
    fd: OwnedFd,
    /// Place of the mount it was reached through.
    pub(crate) mount: u32,
    /// An inode's type never changes.
    pub(crate) kind: FileType,
    /// Its file system's device.
    pub(crate) dev: u64,
    /// Where it stands among hidden paths.
    pub(crate) position: Position,
}

impl Node {
    pub(crate) fn new(fd: OwnedFd, mount: u32, attr: &Attr, position: Position) -> Self {
        Self { fd, mount, kind: FileType::from_raw_mode(attr.mode), dev: attr.dev, position }
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.kind == FileType::Directory
    }
}

impl AsFd for Node {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// All nodes of a connection, bounded.
pub(crate) struct Nodes {
    table: RwLock<Table>,
    max: usize,
}

struct Table {
    nodes: HashMap<u64, Arc<Node>>,
    next: u64,
}

impl Nodes {
    pub(crate) fn new(max: usize) -> Self {
        Self { table: RwLock::new(Table { nodes: HashMap::new(), next: 1 }), max }
    }

    /// # Errors
    /// `ENFILE` when the table is full.
    pub(crate) fn add(&self, node: Node) -> Result<NodeId, Errno> {
        let mut table = self.table.write();
        if table.nodes.len() >= self.max {
            return Err(Errno::NFILE);
        }
        let id = table.next;
        table.next += 1;
        table.nodes.insert(id, Arc::new(node));
        Ok(NodeId(id))
    }

    /// # Errors
    /// `ESTALE` for a number that is no node.
    pub(crate) fn get(&self, id: NodeId) -> Result<Arc<Node>, Errno> {
        self.table.read().nodes.get(&id.0).cloned().ok_or(Errno::STALE)
    }

    /// # Errors
    /// As `get`; `ENOTDIR` for what is no directory.
    pub(crate) fn dir(&self, id: NodeId) -> Result<Arc<Node>, Errno> {
        let node = self.get(id)?;
        if node.is_dir() { Ok(node) } else { Err(Errno::NOTDIR) }
    }

    pub(crate) fn remove(&self, ids: &[NodeId]) {
        let mut table = self.table.write();
        let gone: Vec<_> = ids.iter().filter_map(|id| table.nodes.remove(&id.0)).collect();
        drop(table);
        // Closing may wait for the file system: not under the lock.
        drop(gone);
    }
}
