//! Fewer round trips to the gofer on read-only mounts: a directory that many names are asked of is listed with all
//! attributes, and files that are opened one after the other are opened before they are asked for.
//!
//! Both only bring forward what is remembered anyhow: names and attributes of a read-only mount are looked at once. What the
//! guest may open is decided when it asks; a descriptor that waits here is seen by the sentry alone.

use super::{GoferFs, GoferInode, fail};
use crate::fail::SysResult;
use crate::vfs::inode::Listed;
use gofer::protocol::{Attr, MAX_OPEN, NodeId, Step};
use rustix::fd::OwnedFd;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use syscall_table::abi::{S_IFMT, S_IFREG};

/// Names asked for one by one before a directory is listed, at least.
const ASKED: u64 = 6;
/// A directory of so many bytes is worth one name more.
const WORTH: u64 = 1024;
/// A file is next to another one if so few names are between the two, directories and files that were passed over.
const NEAR: usize = 8;
/// Most files opened ahead at once.
const WINDOW: usize = 32;
/// Directories whose files may wait opened, at most; and at most a quarter of what is kept open.
const DIRS: usize = 8;
const _: () = assert!(WINDOW <= MAX_OPEN);

/// A directory as it was listed.
pub(super) struct Listing {
    pub(super) listed: Arc<Vec<Listed>>,
    /// Place in the list, and attributes unless the name is hidden.
    names: HashMap<Box<[u8]>, (u32, Option<Attr>)>,
    /// Places by the order of names.
    sorted: OnceLock<Vec<u32>>,
}

impl Listing {
    pub(super) fn new(listed: Vec<Listed>, names: HashMap<Box<[u8]>, (u32, Option<Attr>)>) -> Listing {
        Listing { listed: Arc::new(listed), names, sorted: OnceLock::new() }
    }

    /// `Some(None)`: the name is hidden.
    pub(super) fn attr(&self, name: &[u8]) -> Option<Option<&Attr>> {
        self.names.get(name).map(|(_, attr)| attr.as_ref())
    }

    fn sorted(&self) -> &[u32] {
        self.sorted.get_or_init(|| {
            let mut sorted: Vec<u32> = (0..u32::try_from(self.listed.len()).unwrap_or(0)).collect();
            sorted.sort_unstable_by_key(|at| self.listed.get(*at as usize).map(|entry| &entry.name));
            sorted
        })
    }

    fn place(&self, order: Order, name: &[u8]) -> Option<usize> {
        match order {
            Order::Listed => self.names.get(name).map(|(at, _)| *at as usize),
            Order::Sorted => {
                let key = |at: &u32| self.listed.get(*at as usize).map(|entry| &*entry.name);
                self.sorted().binary_search_by_key(&Some(name), key).ok()
            }
        }
    }

    /// Regular files from a place on.
    fn files(&self, order: Order, from: usize) -> impl Iterator<Item = &[u8]> {
        let sorted = if order == Order::Sorted { self.sorted() } else { &[] };
        let entry = move |at: usize| match order {
            Order::Listed => self.listed.get(at),
            Order::Sorted => sorted.get(at).and_then(|at| self.listed.get(*at as usize)),
        };
        (from..self.listed.len())
            .filter_map(entry)
            .map(|entry| &*entry.name)
            .filter(|name| matches!(self.attr(name), Some(Some(attr)) if attr.mode & S_IFMT == S_IFREG))
    }
}

/// The order in which a program goes through a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// As it was listed: tar, cp, grep -r.
    Listed,
    /// By name: shells, git, make.
    Sorted,
}

/// Files of one directory opened ahead.
#[derive(Default)]
pub(super) struct Ahead {
    open: HashMap<Box<[u8]>, (OwnedFd, Step)>,
    /// The name that was opened last.
    last: Option<Box<[u8]>>,
    window: usize,
}

impl Ahead {
    /// What to open together with `name`.
    fn plan(&mut self, listing: &Listing, name: &[u8]) -> Vec<Box<[u8]>> {
        let last = self.last.replace(name.into());
        let near = |order| {
            let (now, last) = (listing.place(order, name)?, listing.place(order, last.as_deref()?)?);
            (last < now && now.saturating_sub(last) <= NEAR).then_some((order, now))
        };
        let Some((order, at)) = near(Order::Listed).or_else(|| near(Order::Sorted)) else {
            self.window = 0;
            return Vec::new();
        };
        self.window = self.window.saturating_mul(4).clamp(2, WINDOW);
        let wanted = self.window.saturating_sub(1);
        let more = listing.files(order, at.saturating_add(1)).filter(|name| !self.open.contains_key(*name));
        more.take(wanted).map(Into::into).collect()
    }
}

impl GoferFs {
    /// Files of this directory wait opened: those of the one before the last few no longer do.
    fn waits(&self, dir: &Weak<GoferInode>) {
        let mut dirs = self.ahead.lock();
        if dirs.iter().any(|known| known.ptr_eq(dir)) {
            return;
        }
        dirs.push_back(dir.clone());
        let most = (self.kept_fds / 4 / WINDOW).clamp(1, DIRS);
        let old: VecDeque<_> = (most..dirs.len()).filter_map(|_| dirs.pop_front()).collect();
        drop(dirs);
        for old in old.iter().filter_map(Weak::upgrade) {
            let files = std::mem::take(&mut *old.ahead.lock());
            self.give_up(files);
        }
    }

    /// Files that nobody asked for.
    pub(super) fn give_up(&self, files: Ahead) {
        if !files.open.is_empty() {
            self.forgotten.lock().extend(files.open.values().map(|(_, step)| step.node));
        }
    }
}

impl GoferInode {
    /// Counts a name that is asked of this directory; whether it is time to list it.
    pub(super) fn is_popular(&self) -> bool {
        let count = u64::from(self.asked.fetch_add(1, Ordering::Relaxed)).saturating_add(1);
        // Asking for one name costs about as much as listing a dozen, of which each takes some forty bytes.
        count == ASKED.max(self.attr.lock().size / WORTH)
    }

    /// A file of this directory, opened for reading, with others that are likely to be next. None: ask for it alone.
    pub(super) fn open_child(&self, name: &[u8]) -> SysResult<Option<(OwnedFd, Step)>> {
        let Some(listing) = self.listing.lock().clone() else { return Ok(None) };
        let (more, stale) = {
            let mut ahead = self.ahead.lock();
            if let Some(found) = ahead.open.remove(name) {
                ahead.last = Some(name.into());
                return Ok(Some(found));
            }
            let more = ahead.plan(&listing, name);
            // Its order is another one now.
            let stale = if more.is_empty() { std::mem::take(&mut ahead.open) } else { HashMap::new() };
            (more, Ahead { open: stale, ..Ahead::default() })
        };
        self.fs.give_up(stale);
        let dir: NodeId = self.node()?;
        let names: Vec<&[u8]> = std::iter::once(name).chain(more.iter().map(|name| &**name)).collect();
        let mut found = self.fs.client.open_many(dir, &names).map_err(fail)?.into_iter();
        let first = found.next().flatten();
        let others: HashMap<_, _> =
            more.into_iter().zip(found).filter_map(|(name, file)| Some((name, file?))).collect();
        if !others.is_empty() {
            self.ahead.lock().open.extend(others);
            self.fs.waits(&self.me);
        }
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscall_table::abi::S_IFDIR;

    fn listing(names: &[&str]) -> Listing {
        let attr = |dir: bool| Attr { mode: if dir { S_IFDIR } else { S_IFREG }, ..Attr::default() };
        let listed =
            names.iter().map(|name| Listed { name: name.as_bytes().into(), ino: 1, kind: 8 }).collect();
        let names = (0..).zip(names).map(|(at, name)| {
            // A hidden name has no attributes.
            let attr = (!name.starts_with('h')).then(|| attr(name.starts_with('d')));
            (name.as_bytes().into(), (at, attr))
        });
        Listing::new(listed, names.collect())
    }

    fn planned(ahead: &mut Ahead, listing: &Listing, name: &str) -> String {
        let names = ahead.plan(listing, name.as_bytes());
        names.iter().map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn windows() {
        let listing = listing(&["z", "b", "d1", "hidden", "y", "a", "c", "x", "e"]);
        let mut ahead = Ahead::default();
        assert_eq!(planned(&mut ahead, &listing, "z"), "");
        assert_eq!(planned(&mut ahead, &listing, "b"), "y");
        assert_eq!(planned(&mut ahead, &listing, "a"), "c x e");
        // Neither behind it in the list nor by name: nothing is known of what comes next.
        assert_eq!(planned(&mut ahead, &listing, "z"), "");
        let listing = self::listing(&["f", "e", "dir", "c", "a", "b"]);
        let mut ahead = Ahead::default();
        assert_eq!(planned(&mut ahead, &listing, "b"), "");
        // By name.
        assert_eq!(planned(&mut ahead, &listing, "c"), "e");
        assert_eq!(planned(&mut ahead, &listing, "e"), "f");
        assert_eq!(planned(&mut ahead, &listing, "nowhere"), "");
        assert_eq!(planned(&mut ahead, &listing, "f"), "");
    }
}
