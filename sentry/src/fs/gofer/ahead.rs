//! Fewer round trips to the gofer on read-only mounts: a directory that many names are asked of is listed with all
//! attributes, files that are opened one after the other are opened before they are asked for, and so are directories listed.
//!
//! All this only brings forward what is remembered anyhow: names and attributes of a read-only mount are looked at once. What the
//! guest may open is decided when it asks; a descriptor that waits here is seen by the sentry alone.

use super::{GoferFs, GoferInode, fail};
use crate::fail::SysResult;
use crate::vfs::inode::Listed;
use gofer::protocol::{Attr, DirPage, MAX_NAMES, MAX_OPEN, NodeId, Step};
use rustix::fd::OwnedFd;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use syscall_table::abi::{S_IFDIR, S_IFMT, S_IFREG};

/// Names asked for one by one before a directory is listed, at least.
const ASKED: u64 = 6;
/// A directory of so many bytes is worth one name more.
const WORTH: u64 = 1024;
/// A file is next to another one if so few files are between the two, that were passed over. The same with directories.
const NEAR: usize = 8;
/// Most that is opened or listed ahead at once.
const WINDOW: usize = 32;
/// Directories whose files may wait opened, at most; and at most a quarter of what is kept open.
const DIRS: usize = 8;
/// Directories in which lists may wait.
const LISTS: usize = 32;
/// So many questions for extended attributes make it worth to ask which names of a directory have any; of a large one, so
/// many for its own names.
const CURIOUS: u32 = 3;
const _: () = assert!(WINDOW <= MAX_OPEN);

/// A directory as it was listed.
pub(super) struct Listing {
    pub(super) listed: Arc<Vec<Listed>>,
    /// Place in the list, and attributes unless the name is hidden.
    names: HashMap<Box<[u8]>, (u32, Option<Attr>)>,
    /// Places of regular files and of directories, as listed and by name.
    series: [OnceLock<Vec<u32>>; 4],
    /// Names that may have extended attributes.
    xattrs: OnceLock<HashSet<Box<[u8]>>>,
}

impl Listing {
    pub(super) fn new(listed: Vec<Listed>, names: HashMap<Box<[u8]>, (u32, Option<Attr>)>) -> Listing {
        let series = std::array::from_fn(|_| OnceLock::new());
        Listing { listed: Arc::new(listed), names, series, xattrs: OnceLock::new() }
    }

    /// `Some(None)`: the name is hidden.
    pub(super) fn attr(&self, name: &[u8]) -> Option<Option<&Attr>> {
        self.names.get(name).map(|(_, attr)| attr.as_ref())
    }

    fn name(&self, at: u32) -> Option<&[u8]> {
        self.listed.get(at as usize).map(|entry| &*entry.name)
    }

    /// All that are of this kind.
    fn series(&self, kind: u32, order: Order) -> &[u32] {
        let [files, sorted_files, dirs, sorted_dirs] = &self.series;
        let place = match (kind, order) {
            (S_IFDIR, Order::Listed) => dirs,
            (S_IFDIR, Order::Sorted) => sorted_dirs,
            (_, Order::Listed) => files,
            (_, Order::Sorted) => sorted_files,
        };
        place.get_or_init(|| {
            let is_kind = |name| matches!(self.attr(name), Some(Some(attr)) if attr.mode & S_IFMT == kind);
            let all = 0..u32::try_from(self.listed.len()).unwrap_or(0);
            let mut series: Vec<u32> = all.filter(|at| self.name(*at).is_some_and(is_kind)).collect();
            if order == Order::Sorted {
                series.sort_unstable_by_key(|at| self.name(*at));
            }
            series
        })
    }

    /// Where a name is among those of its kind.
    fn rank(&self, kind: u32, order: Order, name: &[u8]) -> Option<usize> {
        let series = self.series(kind, order);
        match order {
            Order::Listed => series.binary_search(&self.names.get(name)?.0).ok(),
            Order::Sorted => series.binary_search_by_key(&Some(name), |at| self.name(*at)).ok(),
        }
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

/// What was asked for ahead in one directory: its files opened, or its directories listed.
pub(super) struct Ahead<T> {
    ready: HashMap<Box<[u8]>, T>,
    /// The name that was wanted last.
    last: Option<Box<[u8]>>,
    window: usize,
}

impl<T> Default for Ahead<T> {
    fn default() -> Self {
        Ahead { ready: HashMap::new(), last: None, window: 0 }
    }
}

/// An opened file.
pub(super) type Opened = (OwnedFd, Step);
/// A directory with the first page of its list.
pub(super) type Paged = (Step, DirPage);

impl<T> Ahead<T> {
    /// What is ready, or else what to ask for together with `name`.
    fn take(&mut self, listing: &Listing, kind: u32, name: &[u8]) -> Result<T, Plan<T>> {
        if let Some(found) = self.ready.remove(name) {
            self.last = Some(name.into());
            return Ok(found);
        }
        let more = self.plan(listing, kind, name);
        // Its order is another one now, or it passes over too many.
        let full = self.ready.len().saturating_add(more.len()) > WINDOW;
        let stale = if more.is_empty() || full { std::mem::take(&mut self.ready) } else { HashMap::new() };
        Err(Plan { more, stale: Ahead { ready: stale, ..Ahead::default() } })
    }

    fn plan(&mut self, listing: &Listing, kind: u32, name: &[u8]) -> Vec<Box<[u8]>> {
        let last = self.last.replace(name.into());
        let near = |order| {
            let (now, last) =
                (listing.rank(kind, order, name)?, listing.rank(kind, order, last.as_deref()?)?);
            (last < now && now.saturating_sub(last) <= NEAR).then_some((order, now))
        };
        let Some((order, at)) = near(Order::Listed).or_else(|| near(Order::Sorted)) else {
            self.window = 0;
            return Vec::new();
        };
        self.window = self.window.saturating_mul(4).clamp(2, WINDOW);
        let next = listing.series(kind, order).get(at.saturating_add(1)..).unwrap_or_default();
        let more =
            next.iter().filter_map(|at| listing.name(*at)).filter(|name| !self.ready.contains_key(*name));
        more.take(self.window.saturating_sub(1)).map(Into::into).collect()
    }
}

struct Plan<T> {
    more: Vec<Box<[u8]>>,
    stale: Ahead<T>,
}

impl GoferFs {
    /// Files of this directory wait opened: those of the one before the last few no longer do.
    fn files_wait(&self, dir: &Weak<GoferInode>) {
        let most = (self.kept_fds / 4 / WINDOW).clamp(1, DIRS);
        for old in waits(&self.ahead, dir, most) {
            let files = std::mem::take(&mut *old.ahead.lock());
            self.give_up(files);
        }
    }

    fn lists_wait(&self, dir: &Weak<GoferInode>) {
        for old in waits(&self.lists, dir, LISTS) {
            let lists = std::mem::take(&mut *old.lists.lock());
            self.give_up_lists(lists);
        }
    }

    /// Files that nobody asked for.
    pub(super) fn give_up(&self, files: Ahead<Opened>) {
        if !files.ready.is_empty() {
            self.forgotten.lock().extend(files.ready.values().map(|(_, step)| step.node));
        }
    }

    /// Lists that nobody asked for.
    pub(super) fn give_up_lists(&self, lists: Ahead<Paged>) {
        if !lists.ready.is_empty() {
            self.forgotten.lock().extend(lists.ready.values().map(|(step, _)| step.node));
        }
    }
}

/// Something waits in a directory; those in which it no longer does, because too many are.
fn waits(
    dirs: &parking_lot::Mutex<VecDeque<Weak<GoferInode>>>,
    dir: &Weak<GoferInode>,
    most: usize,
) -> Vec<Arc<GoferInode>> {
    let mut dirs = dirs.lock();
    if dirs.iter().any(|known| known.ptr_eq(dir)) {
        return Vec::new();
    }
    dirs.push_back(dir.clone());
    let old: Vec<_> = (most..dirs.len()).filter_map(|_| dirs.pop_front()).collect();
    drop(dirs);
    old.iter().filter_map(Weak::upgrade).collect()
}

impl GoferInode {
    /// Counts a name that is asked of this directory; whether it is time to list it.
    pub(super) fn is_popular(&self) -> bool {
        let count = u64::from(self.asked.fetch_add(1, Ordering::Relaxed)).saturating_add(1);
        // Asking for one name costs about as much as listing a dozen, of which each takes some forty bytes.
        count == ASKED.max(self.attr.lock().size / WORTH)
    }

    /// A file of this directory, opened for reading, with others that are likely to be next. None: ask for it alone.
    pub(super) fn open_child(&self, name: &[u8]) -> SysResult<Option<Opened>> {
        let Some(listing) = self.listing.lock().clone() else { return Ok(None) };
        let taken = self.ahead.lock().take(&listing, S_IFREG, name);
        let Plan { more, stale } = match taken {
            Ok(found) => return Ok(Some(found)),
            Err(plan) => plan,
        };
        self.fs.give_up(stale);
        let dir: NodeId = self.node()?;
        let mut found = self.fs.client.open_many(dir, &all(name, &more)).map_err(fail)?.into_iter();
        let first = found.next().flatten();
        let others: Vec<_> =
            more.into_iter().zip(found).filter_map(|(name, file)| Some((name, file?))).collect();
        if !others.is_empty() {
            self.ahead.lock().ready.extend(others);
            self.fs.files_wait(&self.me);
        }
        Ok(first)
    }

    /// The first page of a directory of this directory, and of others that are likely to be next. None: ask for it alone.
    pub(super) fn list_child(&self, name: &[u8]) -> SysResult<Option<Paged>> {
        let Some(listing) = self.listing.lock().clone() else { return Ok(None) };
        let taken = self.lists.lock().take(&listing, S_IFDIR, name);
        let Plan { more, stale } = match taken {
            Ok(found) => return Ok(Some(found)),
            Err(plan) => plan,
        };
        self.fs.give_up_lists(stale);
        let dir: NodeId = self.node()?;
        let mut found = self.fs.client.list_many(dir, &all(name, &more)).map_err(fail)?.into_iter();
        let first = found.next().flatten();
        let others: Vec<_> =
            more.into_iter().zip(found).filter_map(|(name, list)| Some((name, list?))).collect();
        if !others.is_empty() {
            self.lists.lock().ready.extend(others);
            self.fs.lists_wait(&self.me);
        }
        Ok(first)
    }

    /// Whether a name of this directory may have extended attributes: where several were asked for, it is asked of all names.
    pub(super) fn may_have_xattrs(&self, name: &[u8]) -> SysResult<bool> {
        let Some(listing) = self.listing.lock().clone() else { return Ok(true) };
        if let Some(names) = listing.xattrs.get() {
            return Ok(names.contains(name));
        }
        let small = listing.listed.len() <= MAX_NAMES;
        let asked = if small { &self.fs.curious } else { &self.curious };
        if asked.fetch_add(1, Ordering::Relaxed) < CURIOUS {
            return Ok(true);
        }
        let dir: NodeId = self.node()?;
        let mut have = HashSet::new();
        for some in listing.listed.chunks(MAX_NAMES) {
            let names: Vec<&[u8]> = some.iter().map(|entry| &*entry.name).collect();
            let flags = self.fs.client.have_xattrs(dir, &names).map_err(fail)?;
            have.extend(names.iter().zip(flags).filter(|(_, have)| *have).map(|(name, _)| Box::from(*name)));
        }
        Ok(listing.xattrs.get_or_init(|| have).contains(name))
    }
}

fn all<'a>(name: &'a [u8], more: &'a [Box<[u8]>]) -> Vec<&'a [u8]> {
    std::iter::once(name).chain(more.iter().map(|name| &**name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn planned(ahead: &mut Ahead<()>, listing: &Listing, name: &str) -> String {
        let kind = if name.starts_with('d') { S_IFDIR } else { S_IFREG };
        let names = ahead.plan(listing, kind, name.as_bytes());
        names.iter().map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_waits_is_bounded() {
        let names: Vec<String> = (0..2000).map(|at| format!("f{at:04}")).collect();
        let listing = listing(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let mut ahead = Ahead::default();
        let mut stale = 0;
        // A program that wants every fifth file.
        for name in names.iter().step_by(5) {
            if let Err(plan) = ahead.take(&listing, S_IFREG, name.as_bytes()) {
                stale += plan.stale.ready.len();
                ahead.ready.extend(plan.more.into_iter().map(|name| (name, ())));
            }
            assert!(ahead.ready.len() <= WINDOW, "{}", ahead.ready.len());
        }
        assert!(stale > WINDOW, "{stale}");
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
