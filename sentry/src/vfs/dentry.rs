//! Names that are known: a tree of directory entries over the inodes of a file system.
//!
//! A dentry never loses its inode; a name that goes away is taken out of its parent. Absent names are remembered too.
//! The kept part of the tree is bounded: [`Dentry::sweep`] drops what nobody uses.

use crate::sync::{Level, Lock};
use crate::vfs::inode::{Caching, Inode};
use crate::vfs::watch;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Most dentries that are kept without being in use.
const KEPT: usize = 100_000;
/// A directory with more names remembers no further absent ones.
const NAMES: usize = 20_000;
/// Directories made inside nest no deeper, and names below are not swept: both would need that much stack.
const DEPTH: usize = 2000;
/// How long a name of a directory that others may change is believed.
const BELIEVED: Duration = Duration::from_millis(30);

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A name.
pub struct Dentry {
    /// What it names.
    pub inode: Arc<dyn Inode>,
    place: Lock<Place>,
    children: Lock<Children>,
    /// How many mounts are here, through whatever mount. At least so many: who sees more asks for them.
    pub mounted: AtomicU32,
    /// When it was last known to be right, in nanoseconds of [`crate::time::now`].
    checked: AtomicU64,
}

struct Place {
    parent: Option<Arc<Dentry>>,
    name: Box<[u8]>,
    deleted: bool,
}

#[derive(Default)]
struct Children {
    names: HashMap<Box<[u8]>, Option<Arc<Dentry>>>,
    /// Counts changes: a lookup that began before one must not put its answer in.
    changes: u64,
}

impl Children {
    /// The name is gone now; what was there.
    fn absent(&mut self, caching: Caching, name: &[u8]) -> Option<Option<Arc<Dentry>>> {
        if caching == Caching::Keep && self.names.len() < NAMES {
            return self.names.insert(name.into(), None);
        }
        self.names.remove(name)
    }
}

/// What is remembered of a name.
pub enum Known {
    /// It is this.
    Present(Arc<Dentry>),
    /// It does not exist.
    Absent,
    /// Ask; then [`Dentry::remember`] with this count of changes.
    Unknown(u64),
}

fn now() -> u64 {
    crate::time::now().as_nanos() as u64
}

impl Dentry {
    /// The root of a file system.
    pub fn root(inode: Arc<dyn Inode>) -> Arc<Dentry> {
        Self::make(inode, None, Box::default())
    }

    fn make(inode: Arc<dyn Inode>, parent: Option<Arc<Dentry>>, name: Box<[u8]>) -> Arc<Dentry> {
        COUNT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Dentry {
            inode,
            place: Lock::new(Level::Dir, Place { parent, name, deleted: false }),
            children: Lock::new(Level::Dir, Children::default()),
            mounted: AtomicU32::new(0),
            checked: AtomicU64::new(now()),
        })
    }

    /// A dentry that its parent does not know of.
    pub fn detached(self: &Arc<Self>, name: &[u8], inode: Arc<dyn Inode>) -> Arc<Dentry> {
        Self::make(inode, Some(self.clone()), name.into())
    }

    /// As [`detached`](Self::detached), and deleted from the start (O_TMPFILE).
    pub fn nameless(self: &Arc<Self>, name: &[u8], inode: Arc<dyn Inode>) -> Arc<Dentry> {
        let dentry = self.detached(name, inode);
        dentry.place.lock().deleted = true;
        dentry
    }

    /// The directory it is in.
    pub fn parent(&self) -> Option<Arc<Dentry>> {
        self.place.lock().parent.clone()
    }

    /// Whether it is that one or lies below it.
    pub fn is_below(self: &Arc<Self>, above: &Arc<Dentry>) -> bool {
        let mut at = Some(self.clone());
        while let Some(dentry) = at {
            if Arc::ptr_eq(&dentry, above) {
                return true;
            }
            at = dentry.parent();
        }
        false
    }

    /// Whether it lies so deep that no further directory may be made in it.
    pub fn is_deepest(&self) -> bool {
        let mut at = self.parent();
        for _ in 0..DEPTH {
            match at {
                Some(dentry) => at = dentry.parent(),
                None => return false,
            }
        }
        true
    }

    /// Directory, name, and whether the name was removed.
    pub fn place(&self) -> (Option<Arc<Dentry>>, Box<[u8]>, bool) {
        let place = self.place.lock();
        (place.parent.clone(), place.name.clone(), place.deleted)
    }

    /// Whether the name was removed.
    pub fn is_deleted(&self) -> bool {
        self.place.lock().deleted
    }

    /// What is remembered of a name.
    pub fn known(&self, name: &[u8]) -> Known {
        let caching = self.inode.caching();
        let children = self.children.lock();
        match children.names.get(name) {
            // There only while something is mounted there, or below.
            Some(Some(dentry)) if caching == Caching::Never => Known::Present(dentry.clone()),
            Some(Some(dentry)) => {
                let fresh = caching == Caching::Keep
                    // What is mounted stays where it is, whatever others do with the name.
                    || dentry.mounted.load(Ordering::Acquire) != 0
                    || now().saturating_sub(dentry.checked.load(Ordering::Relaxed))
                        < BELIEVED.as_nanos() as u64;
                if fresh { Known::Present(dentry.clone()) } else { Known::Unknown(children.changes) }
            }
            Some(None) if caching == Caching::Keep => Known::Absent,
            _ => Known::Unknown(children.changes),
        }
    }

    /// Puts in what a lookup answered, and gives the dentry to go on with: one that is there already for the same inode
    /// stays. None: the directory changed since `changes`, ask again. That way an inode that its file system would make
    /// anew for each lookup exists once.
    pub fn remember(
        self: &Arc<Self>,
        name: &[u8],
        inode: Arc<dyn Inode>,
        changes: u64,
    ) -> Option<Arc<Dentry>> {
        let caching = self.inode.caching();
        if caching == Caching::Never {
            return Some(self.detached(name, inode));
        }
        let mut children = self.children.lock();
        if let Some(Some(there)) = children.names.get(name) {
            let same = caching == Caching::Keep
                || Arc::ptr_eq(&there.inode, &inode)
                || {
                    let (a, b) = (there.inode.attr(), inode.attr());
                    matches!((a, b), (Ok(a), Ok(b)) if a.ino == b.ino && a.dev == b.dev && a.mode >> 12 == b.mode >> 12)
                };
            if same {
                there.checked.store(now(), Ordering::Relaxed);
                return Some(there.clone());
            }
        }
        if children.changes != changes {
            return None;
        }
        let dentry = Self::make(inode, Some(self.clone()), name.into());
        let old = children.names.insert(name.into(), Some(dentry.clone()));
        drop(children);
        drop(old);
        Some(dentry)
    }

    /// Remembers that a name does not exist, unless the directory changed since.
    pub fn remember_absent(&self, name: &[u8], changes: u64) {
        let mut children = self.children.lock();
        let old = match self.inode.caching() {
            Caching::Keep if children.changes == changes && children.names.len() < NAMES => {
                children.names.insert(name.into(), None)
            }
            Caching::Revalidate => children.names.remove(name),
            _ => None,
        };
        drop(children);
        if let Some(Some(old)) = old {
            old.place.lock().deleted = true;
        }
    }

    /// A name was made.
    pub fn added(self: &Arc<Self>, name: &[u8], inode: Arc<dyn Inode>) -> Arc<Dentry> {
        let dentry = Self::make(inode, Some(self.clone()), name.into());
        if self.inode.caching() != Caching::Never {
            let mut children = self.children.lock();
            children.changes += 1;
            let old = children.names.insert(name.into(), Some(dentry.clone()));
            drop(children);
            drop(old);
        }
        dentry
    }

    /// A name was removed.
    pub fn removed(&self, name: &[u8]) {
        let mut children = self.children.lock();
        children.changes += 1;
        let old = children.absent(self.inode.caching(), name);
        drop(children);
        if let Some(Some(old)) = old {
            old.place.lock().deleted = true;
        }
    }

    /// What is remembered of a name, however long ago.
    pub(super) fn child(&self, name: &[u8]) -> Option<Arc<Dentry>> {
        self.children.lock().names.get(name).cloned().flatten()
    }

    /// Somebody else changed what a name is: it is asked for again.
    pub(super) fn doubt(&self, name: &[u8]) {
        if let Some(child) = self.child(name) {
            child.checked.store(0, Ordering::Relaxed);
        }
    }

    /// Somebody else removed it.
    pub(super) fn vanished(self: &Arc<Self>) {
        let (parent, name, deleted) = self.place();
        if deleted {
            return;
        }
        match parent.filter(|parent| parent.child(&name).is_some_and(|there| Arc::ptr_eq(&there, self))) {
            Some(parent) => parent.removed(&name),
            None => self.place.lock().deleted = true,
        }
    }

    /// `moved` goes from `self`/`name` to `to`/`to_name`; what was there is gone, or comes back here with `exchange`.
    pub fn renamed(
        self: &Arc<Self>,
        name: &[u8],
        moved: &Arc<Dentry>,
        to: &Arc<Dentry>,
        to_name: &[u8],
        exchange: bool,
    ) {
        {
            let mut children = self.children.lock();
            children.changes += 1;
            children.absent(self.inode.caching(), name);
        }
        let old = {
            let mut children = to.children.lock();
            children.changes += 1;
            children.names.insert(to_name.into(), Some(moved.clone())).flatten()
        };
        {
            let mut place = moved.place.lock();
            place.parent = Some(to.clone());
            place.name = to_name.into();
        }
        let Some(old) = old.filter(|old| !Arc::ptr_eq(old, moved)) else { return };
        if exchange {
            {
                let mut place = old.place.lock();
                place.parent = Some(self.clone());
                place.name = name.into();
            }
            let mut children = self.children.lock();
            children.changes += 1;
            children.names.insert(name.into(), Some(old));
        } else {
            old.place.lock().deleted = true;
        }
    }

    /// Something is mounted here: the name and those above stay known, even where names are asked for each time.
    pub(super) fn hold(self: &Arc<Self>) {
        let mut at = self.clone();
        while let (Some(parent), name, false) = at.place() {
            if parent.inode.caching() == Caching::Never {
                parent.children.lock().names.entry(name).or_insert_with(|| Some(at.clone()));
            }
            at = parent;
        }
    }

    /// Nothing is mounted here any more.
    pub(super) fn let_go(self: &Arc<Self>) {
        let mut at = self.clone();
        while let (Some(parent), name, _) = at.place() {
            let used = at.mounted.load(Ordering::SeqCst) != 0 || !at.children.lock().names.is_empty();
            if parent.inode.caching() == Caching::Never && !used {
                let mut children = parent.children.lock();
                let own = matches!(children.names.get(&name), Some(Some(there)) if Arc::ptr_eq(there, &at));
                let old = if own { children.names.remove(&name) } else { None };
                drop(children);
                drop(old);
            }
            at = parent;
        }
    }

    /// Whether so many names are kept that [`sweep`](Self::sweep) is due.
    pub fn crowded() -> bool {
        COUNT.load(Ordering::Relaxed) > KEPT
    }

    /// Forgets the names below that nobody uses.
    pub fn sweep(&self) {
        self.sweep_below(0);
    }

    fn sweep_below(&self, depth: usize) {
        if depth > DEPTH {
            return;
        }
        let some: Vec<Arc<Dentry>> =
            self.children.lock().names.values().filter_map(|child| child.clone()).collect();
        for child in &some {
            child.sweep_below(depth.saturating_add(1));
        }
        drop(some);
        let mut dropped = Vec::new();
        let mut children = self.children.lock();
        children.names.retain(|_, child| match child {
            None => false,
            Some(dentry)
                if Arc::strong_count(dentry) == 1 && dentry.children.lock_peer().names.is_empty() =>
            {
                dropped.push(dentry.clone());
                false
            }
            Some(_) => true,
        });
        // Inodes are dropped without the lock: theirs may be taken.
        drop(children);
        drop(dropped);
    }
}

impl Drop for Dentry {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
        if watch::any() && self.place.get_mut().deleted {
            watch::dropped(&self.inode);
        }
    }
}
