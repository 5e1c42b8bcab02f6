//! Directories in memory, merged with the lower's.

use super::Node;
use super::node::slot;
use crate::fail::SysResult;
use crate::task::Task;
use crate::vfs::inode::{Found, Inode, Listed, NewKind, NewOwner, dirent_kind, downcast};
use std::collections::BTreeMap;
use std::sync::Arc;
use syscall_table::abi::{S_IFDIR, S_IFLNK, S_IFREG};
use syscall_table::errno::Errno;

/// An entry of a directory's table.
pub(super) enum Slot {
    /// This node; `covers`: the lower has the name too.
    Here { node: Arc<Node>, covers: bool },
    /// Hides the lower's name.
    White,
}

/// A directory's table: what differs from the lower.
#[derive(Default)]
pub(super) struct Names {
    slots: BTreeMap<Box<[u8]>, Slot>,
    /// Directories in it, beyond those of the lower.
    subdirs: i64,
}

impl Names {
    pub(super) fn subdirs(&self) -> i64 {
        self.subdirs
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&[u8], &Slot)> {
        self.slots.iter().map(|(name, slot)| (&**name, slot))
    }

    pub(super) fn len(&self) -> u64 {
        self.slots.len() as u64
    }

    pub(super) fn pin(&mut self, name: Box<[u8]>, node: Arc<Node>) {
        // It is in the directory already, as the lower's.
        self.slots.entry(name).or_insert_with(|| slot(node, true));
    }

    fn put(&mut self, name: Box<[u8]>, node: Arc<Node>, covers: bool) {
        if node.is_dir() {
            self.subdirs = self.subdirs.saturating_add(1);
        }
        if let Some(Slot::Here { node, .. }) = self.slots.insert(name, slot(node, covers))
            && node.is_dir()
        {
            self.subdirs = self.subdirs.saturating_sub(1);
        }
    }

    /// Takes a name out, leaving a whiteout where the lower has it. `dir`: it is a directory's.
    fn take(&mut self, name: &[u8], covers: bool, dir: bool) {
        if covers {
            self.slots.insert(name.into(), Slot::White);
        } else {
            self.slots.remove(name);
        }
        if dir {
            self.subdirs = self.subdirs.saturating_sub(1);
        }
    }

    /// Whether the lower has the name. `named`: the name exists (then without a slot it is the lower's).
    fn covers(&self, name: &[u8], named: bool) -> bool {
        match self.slots.get(name) {
            Some(Slot::Here { covers, .. }) => *covers,
            Some(Slot::White) => true,
            None => named,
        }
    }
}

pub(super) fn node_of(inode: &Arc<dyn Inode>) -> SysResult<Arc<Node>> {
    downcast::<Node>(inode).ok_or(Errno::EXDEV.into())
}

impl Node {
    fn this(&self) -> SysResult<Arc<Node>> {
        self.me.upgrade().ok_or(Errno::ENOENT.into())
    }

    /// What the table says: `Some(None)` is a whiteout.
    fn slot_of(&self, name: &[u8]) -> Option<Option<Arc<Node>>> {
        match self.names.lock().slots.get(name) {
            Some(Slot::Here { node, .. }) => Some(Some(node.clone())),
            Some(Slot::White) => Some(None),
            None => None,
        }
    }

    pub(super) fn dir_lookup(&self, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        if !self.is_dir() {
            return Err(Errno::ENOTDIR.into());
        }
        match (self.slot_of(name), &self.lower) {
            (Some(Some(node)), _) => Ok(node),
            (None, Some(lower)) => {
                let found = lower.lookup_free(name)?;
                Ok(Node::over(&self.fs, found, Some((self.this()?, name.into())))?)
            }
            _ => Err(Errno::ENOENT.into()),
        }
    }

    pub(super) fn dir_lookup_many(&self, task: &Task, names: &[&[u8]], opens: bool) -> Found {
        let Some(first) = names.first() else { return Found { inodes: Vec::new(), end: None } };
        let (None, Some(lower)) = (self.slot_of(first), &self.lower) else {
            return match self.dir_lookup(first) {
                Ok(inode) => Found { inodes: vec![inode], end: None },
                Err(fail) => Found { inodes: Vec::new(), end: Some(fail) },
            };
        };
        let found = lower.lookup_many(task, names, opens);
        let mut inodes: Vec<Arc<dyn Inode>> = Vec::new();
        let mut up = self.me.upgrade();
        for (lower, name) in found.inodes.into_iter().zip(names) {
            let Some(dir) = up.take() else { break };
            match Node::over(&self.fs, lower, Some((dir, (*name).into()))) {
                Ok(node) => {
                    up = Some(node.clone());
                    inodes.push(node);
                }
                Err(fail) => return Found { inodes, end: Some(fail) },
            }
        }
        Found { inodes, end: found.end }
    }

    pub(super) fn dir_create(
        &self,
        name: &[u8],
        kind: NewKind<'_>,
        owner: NewOwner,
    ) -> SysResult<Arc<dyn Inode>> {
        let (bits, link, rdev) = match kind {
            NewKind::File => (S_IFREG, Vec::new(), 0),
            NewKind::Dir => (S_IFDIR, Vec::new(), 0),
            NewKind::Link(target) => (S_IFLNK, target.to_vec(), 0),
            NewKind::Special(bits, rdev) => (bits, Vec::new(), rdev),
        };
        let owner = if bits == S_IFLNK { NewOwner { mode: 0o777, ..owner } } else { owner };
        let _change = self.fs.change();
        self.fs.room_for_inode()?;
        let node = Node::fresh(&self.fs, self.fs.ino(), bits, owner, link, rdev);
        self.bequeath(&node)?;
        *node.up.lock() = Some((self.this()?, name.into()));
        {
            let mut names = self.names.lock();
            if matches!(names.slots.get(name), Some(Slot::Here { .. })) {
                return Err(Errno::EEXIST.into());
            }
            let covers = names.covers(name, false);
            names.put(name.into(), node.clone(), covers);
        }
        self.modified()?;
        Ok(node)
    }

    pub(super) fn dir_link(&self, name: &[u8], inode: &Arc<dyn Inode>) -> SysResult<()> {
        let node = node_of(inode)?;
        let _change = self.fs.change();
        node.linked(true)?;
        let placed = node.up.lock().is_some();
        if !placed {
            *node.up.lock() = Some((self.this()?, name.into()));
        }
        {
            let mut names = self.names.lock();
            if matches!(names.slots.get(name), Some(Slot::Here { .. })) {
                drop(names);
                node.linked(false)?;
                return Err(Errno::EEXIST.into());
            }
            let covers = names.covers(name, false);
            names.put(name.into(), node, covers);
        }
        self.modified()
    }

    pub(super) fn dir_unlink(&self, name: &[u8], inode: &Arc<dyn Inode>) -> SysResult<()> {
        let node = node_of(inode)?;
        let _change = self.fs.change();
        {
            let mut names = self.names.lock();
            let gone = match names.slots.get(name) {
                Some(Slot::Here { node: there, .. }) => !Arc::ptr_eq(there, &node),
                Some(Slot::White) => true,
                None => self.lower.is_none(),
            };
            if gone {
                return Err(Errno::ENOENT.into());
            }
            let covers = names.covers(name, self.lower.is_some());
            names.take(name, covers, node.is_dir());
        }
        self.modified()?;
        node.dropped(self, name)
    }

    /// This name of the node, in `dir`, went away.
    fn dropped(&self, dir: &Node, name: &[u8]) -> SysResult<()> {
        // Pinning must not bring the name back.
        self.leaves(dir, name);
        {
            let mut up = self.up.lock();
            if up.as_ref().is_some_and(|(at, known)| std::ptr::eq(&**at, dir) && **known == *name) {
                *up = None;
            }
        }
        self.linked(false)?;
        if self.is_dir() || self.attr()?.nlink == 0 {
            *self.up.lock() = None;
            self.let_go();
        }
        Ok(())
    }

    fn is_empty(&self) -> SysResult<bool> {
        // Asked without the lock: it may be a round trip.
        let lower = match &self.lower {
            Some(lower) => Some(lower.list()?),
            None => None,
        };
        let names = self.names.lock();
        if names.slots.values().any(|s| matches!(s, Slot::Here { .. })) {
            return Ok(false);
        }
        Ok(lower.iter().flat_map(|lower| lower.iter()).all(|entry| names.slots.contains_key(&entry.name)))
    }

    pub(super) fn dir_rmdir(&self, name: &[u8], inode: &Arc<dyn Inode>) -> SysResult<()> {
        let node = node_of(inode)?;
        if !node.is_empty()? {
            return Err(Errno::ENOTEMPTY.into());
        }
        self.dir_unlink(name, inode)
    }

    pub(super) fn dir_rename(
        &self,
        name: &[u8],
        inode: &Arc<dyn Inode>,
        to: &Arc<dyn Inode>,
        to_name: &[u8],
        target: Option<&Arc<dyn Inode>>,
        exchange: bool,
    ) -> SysResult<()> {
        let (node, to) = (node_of(inode)?, node_of(to)?);
        let target = target.map(node_of).transpose()?;
        if let Some(target) = &target
            && !exchange
            && target.is_dir()
            && !target.is_empty()?
        {
            return Err(Errno::ENOTEMPTY.into());
        }
        let _change = self.fs.change();
        // Both ends must last, and so must what moves.
        self.modified()?;
        to.modified()?;
        node.pin();
        let this = self.this()?;
        if let Some(target) = &target {
            target.pin();
        }
        let same = Arc::ptr_eq(&this, &to);
        let (mut from_names, mut to_names) = if same {
            (self.names.lock(), None)
        } else if Arc::as_ptr(&this) < Arc::as_ptr(&to) {
            let first = self.names.lock();
            (first, Some(to.names.lock_peer()))
        } else {
            let first = to.names.lock();
            (self.names.lock_peer(), Some(first))
        };
        let from_covers = from_names.covers(name, true);
        let to_covers = to_names.as_mut().unwrap_or(&mut from_names).covers(to_name, target.is_some());
        match &target {
            Some(target) if exchange => {
                from_names.put(name.into(), target.clone(), from_covers);
            }
            _ => from_names.take(name, from_covers, node.is_dir()),
        }
        to_names.as_mut().unwrap_or(&mut from_names).put(to_name.into(), node.clone(), to_covers);
        drop(to_names);
        drop(from_names);
        *node.up.lock() = Some((to.clone(), to_name.into()));
        match target {
            Some(target) if exchange => *target.up.lock() = Some((this, name.into())),
            Some(target) => target.dropped(&to, to_name)?,
            None => {}
        }
        Ok(())
    }

    pub(super) fn dir_list(&self) -> SysResult<Arc<Vec<Listed>>> {
        if !self.is_dir() {
            return Err(Errno::ENOTDIR.into());
        }
        let lower = match &self.lower {
            Some(lower) => Some(lower.list()?),
            None => None,
        };
        let names = self.names.lock();
        if let Some(lower) = &lower
            && names.slots.is_empty()
        {
            return Ok(lower.clone());
        }
        let mut all = Vec::new();
        for entry in lower.iter().flat_map(|lower| lower.iter()) {
            if !names.slots.contains_key(&entry.name) {
                all.push(entry.clone());
            }
        }
        for (name, slot) in &names.slots {
            if let Slot::Here { node, .. } = slot {
                all.push(Listed { name: name.clone(), ino: node.number(), kind: dirent_kind(node.kind()) });
            }
        }
        Ok(Arc::new(all))
    }
}
