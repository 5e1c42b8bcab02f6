//! What an upper layer changed of the layer below, for those who list it or write it down.

use super::Node;
use super::dir::Slot;
use crate::fail::SysResult;
use crate::vfs::attr::Attr;
use crate::vfs::inode::Inode;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The lower layer has no such path.
    Added,
    /// It has, but not like this.
    Modified,
    /// It has; here it is gone, with all below it.
    Deleted,
    /// Nothing: a directory above something that changed.
    Above,
}

/// One changed path.
pub struct Change {
    /// What happened.
    pub kind: Kind,
    /// The path, absolute.
    pub path: Vec<u8>,
    /// What is there now; None when deleted.
    pub node: Option<Arc<Node>>,
    /// A directory that took the place of a lower one, of which nothing shows through.
    pub opaque: bool,
}

/// A directory whose contents are still to be looked at.
struct Dir {
    path: Vec<u8>,
    node: Arc<Node>,
    /// What the lower layer has at this path.
    base: Option<Arc<dyn Inode>>,
    /// All of its names are to be looked at, not only those of its table: its lower is not the base.
    whole: bool,
}

/// Tells `tell` all that differs from the lower layer: a directory before what is in it, names in their order. Nobody may
/// change the layer meanwhile.
///
/// # Errors
/// The lower layer's, and what `tell` says.
pub fn changes(root: &Arc<Node>, tell: &mut dyn FnMut(Change) -> SysResult<()>) -> SysResult<()> {
    if root.lower.is_none() {
        return Ok(());
    }
    if altered(root, root.lower.as_ref())? {
        tell(change(Kind::Modified, b"/", Some(root.clone())))?;
    }
    let root = Dir { path: Vec::new(), node: root.clone(), base: root.lower.clone(), whole: false };
    // The last one is looked at next, and names are put there in reverse.
    let mut waiting: Vec<Step> = steps(root)?;
    waiting.reverse();
    while let Some(step) = waiting.pop() {
        if let Some(dir) = take(step, tell)? {
            waiting.extend(steps(dir)?.into_iter().rev());
        }
    }
    Ok(())
}

/// One name of a directory.
struct Step {
    path: Vec<u8>,
    now: Option<Arc<Node>>,
    base: Option<Arc<dyn Inode>>,
}

fn change(kind: Kind, path: &[u8], node: Option<Arc<Node>>) -> Change {
    Change { kind, path: path.to_vec(), node, opaque: false }
}

fn steps(dir: Dir) -> SysResult<Vec<Step>> {
    let mut names: BTreeSet<Box<[u8]>> = dir.node.table();
    if dir.whole {
        names.extend(dir.node.dir_list()?.iter().map(|entry| entry.name.clone()));
        if let Some(base) = dir.base.as_ref().filter(|base| base.is_dir()) {
            names.extend(base.list()?.iter().map(|entry| entry.name.clone()));
        }
    }
    let base_of =
        |name: &[u8]| dir.base.as_ref().filter(|b| b.is_dir()).and_then(|b| b.lookup_free(name).ok());
    let step = |name: Box<[u8]>| {
        let now = dir.node.dir_lookup(&name).ok().and_then(|inode| super::dir::node_of(&inode).ok());
        Step { path: [&dir.path, &b"/"[..], &name].concat(), base: base_of(&name), now }
    };
    Ok(names.into_iter().map(step).collect())
}

/// Tells of one name. The directory to go on with, if it is one.
fn take(step: Step, tell: &mut dyn FnMut(Change) -> SysResult<()>) -> SysResult<Option<Dir>> {
    let Step { path, now, base } = step;
    let node = match (now, &base) {
        (Some(node), _) => node,
        (None, Some(_)) => {
            tell(change(Kind::Deleted, &path, None))?;
            return Ok(None);
        }
        (None, None) => return Ok(None),
    };
    let same = match (&node.lower, &base) {
        (Some(lower), Some(base)) => same(lower, base)?,
        _ => false,
    };
    if !node.is_dir() {
        if same && !altered(&node, base.as_ref())? || node.is_set_up() {
            return Ok(None);
        }
        let kind = if base.is_some() { Kind::Modified } else { Kind::Added };
        tell(change(kind, &path, Some(node)))?;
        return Ok(None);
    }
    let opaque = !same && base.as_ref().is_some_and(|base| base.is_dir());
    let kind = match &base {
        None => Kind::Added,
        Some(base) if !base.is_dir() => Kind::Modified,
        Some(base) if altered(&node, Some(base))? => Kind::Modified,
        Some(_) => Kind::Above,
    };
    if !node.is_set_up() {
        tell(Change { kind, path: path.clone(), node: Some(node.clone()), opaque })?;
    }
    Ok(Some(Dir { path, node, base, whole: !same }))
}

/// Whether two inodes of the lower layer are one.
fn same(a: &Arc<dyn Inode>, b: &Arc<dyn Inode>) -> SysResult<bool> {
    if Arc::ptr_eq(a, b) {
        return Ok(true);
    }
    let (a, b) = (a.attr()?, b.attr()?);
    Ok((a.dev, a.ino, a.mode >> 12) == (b.dev, b.ino, b.mode >> 12))
}

/// Whether the node differs from the lower in what lasts. Times of directories change with their names, and are left out.
fn altered(node: &Arc<Node>, base: Option<&Arc<dyn Inode>>) -> SysResult<bool> {
    if node.has_own_content() || node.xattrs.any() {
        return Ok(true);
    }
    let Some(base) = base.filter(|_| node.has_own_meta()) else { return Ok(false) };
    let (now, before) = (node.attr()?, base.attr()?);
    let lasting = |a: &Attr| (a.mode, a.uid, a.gid);
    Ok(lasting(&now) != lasting(&before) || !node.is_dir() && now.mtime != before.mtime)
}

impl Node {
    /// The names of the directory's table.
    fn table(&self) -> BTreeSet<Box<[u8]>> {
        let names = self.names.lock();
        names.entries().map(|(name, _): (&[u8], &Slot)| name.into()).collect()
    }

    fn is_set_up(&self) -> bool {
        self.set_up.load(Ordering::Relaxed)
    }

    fn has_own_content(&self) -> bool {
        self.kind() == syscall_table::abi::S_IFREG && !self.content.lock().is_lower()
    }
}
