//! Watches on files (inotify(7), and the marks of [`super::dnotify`]): of changes made inside, and by [`super::outside`] of others.
//!
//! A watch keeps the place that it was set on, so that the inode stays the one that others find there.

use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::vfs::attr::Attr;
use crate::vfs::dentry::Dentry;
use crate::vfs::file::{File, FileOps};
use crate::vfs::inode::Inode;
use crate::vfs::outside;
use crate::vfs::path::Path;
use crate::wait::{Ready, WaitQueue};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use syscall_table::abi::inotify::*;
use syscall_table::abi::ioctl::FIONREAD;
use syscall_table::errno::Errno;
use zerocopy::IntoBytes;

/// Most events that wait to be read (max_queued_events).
pub(crate) const QUEUED: usize = 16384;
/// Most watches in the sandbox (max_user_watches).
pub(crate) const WATCHES: usize = 65536;

/// Who is told of changes.
pub(super) trait Watcher: Send + Sync {
    /// Something happened to the inode `key`, or to `name` in it.
    fn event(self: Arc<Self>, key: usize, mask: u32, cookie: u32, name: &[u8]);

    /// The last name of the inode went away.
    fn let_go(&self, _key: usize) {}

    /// A name in the directory became another one in it.
    fn renamed(self: Arc<Self>) {}

    /// The file system with this root is mounted nowhere any more, and nobody uses it.
    fn unmounted(&self, _root: &Arc<Dentry>) {}
}

/// Watchers by the address of their inode.
type Watchers = HashMap<usize, Vec<Weak<dyn Watcher>>>;

static TABLE: Mutex<Option<Watchers>> = Mutex::new(None);
/// Watches there are: nothing is looked up when there is none.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static COOKIE: AtomicU32 = AtomicU32::new(1);

/// What watchers of an inode are found by, as long as one of them has it.
pub(super) fn key(inode: &Arc<dyn Inode>) -> usize {
    Arc::as_ptr(inode).cast::<()>() as usize
}

/// A number that ties the two halves of a rename together.
pub(crate) fn cookie() -> u32 {
    COOKIE.fetch_add(1, Ordering::Relaxed)
}

/// Tells the watches of `inode`, with `name` when it is a directory and the event is about a name in it.
pub(crate) fn tell(inode: &Arc<dyn Inode>, mask: u32, cookie: u32, name: &[u8]) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    outside::note(inode, mask, name);
    deliver(key(inode), mask, cookie, name);
}

/// Tells the watches of what this is the key of.
pub(super) fn deliver(key: usize, mask: u32, cookie: u32, name: &[u8]) {
    for watcher in watchers(key) {
        watcher.event(key, mask, cookie, name);
    }
}

/// Whether there are watches at all.
pub(crate) fn any() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// Counts one more watch, unless there are too many.
pub(super) fn admit() -> Option<()> {
    let room = |count: usize| (count < WATCHES).then(|| count.saturating_add(1));
    let before = COUNT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, room).ok()?;
    if before == 0 {
        // They tell of reads, too.
        crate::vfs::lend::take_all_back();
    }
    Some(())
}

/// An admitted watcher is told from now on.
pub(super) fn register(key: usize, watcher: Weak<dyn Watcher>) {
    TABLE.lock().get_or_insert_default().entry(key).or_default().push(watcher);
}

/// It is no longer, and does not count.
pub(super) fn forget<T>(key: usize, watcher: *const T) {
    let mut table = TABLE.lock();
    if let Some(table) = table.as_mut()
        && let Some(list) = table.get_mut(&key)
    {
        list.retain(|w| !std::ptr::addr_eq(w.as_ptr(), watcher));
        if list.is_empty() {
            table.remove(&key);
        }
    }
    COUNT.fetch_sub(1, Ordering::Relaxed);
}

/// A name in a directory became another one in it.
pub(super) fn renamed(dir: &Arc<dyn Inode>) {
    if any() {
        watchers(key(dir)).into_iter().for_each(Watcher::renamed);
    }
}

fn watchers(key: usize) -> Vec<Arc<dyn Watcher>> {
    let table = TABLE.lock();
    let found = table.as_ref().and_then(|t| t.get(&key));
    found.into_iter().flatten().filter_map(Weak::upgrade).collect()
}

/// The last name of the inode went away: its watches no longer keep its dentry.
pub(crate) fn let_go(inode: &Arc<dyn Inode>) {
    for watcher in watchers(key(inode)) {
        watcher.let_go(key(inode));
    }
}

/// A dentry whose name is gone is dropped. When nobody but watches has the inode any more, that was its end.
pub(crate) fn dropped(inode: &Arc<dyn Inode>) {
    let watchers = watchers(key(inode));
    if !watchers.is_empty() && Arc::strong_count(inode) <= watchers.len().saturating_add(1) {
        tell(inode, IN_DELETE_SELF, 0, b"");
    }
}

/// The file system with this root has ended: so do all watches in it (IN_UNMOUNT).
pub(super) fn unmounted(root: &Arc<Dentry>) {
    if !any() {
        return;
    }
    let mut all: Vec<Arc<dyn Watcher>> = {
        let table = TABLE.lock();
        table.iter().flat_map(|t| t.values().flatten()).filter_map(Weak::upgrade).collect()
    };
    all.sort_unstable_by_key(|watcher| Arc::as_ptr(watcher).addr());
    all.dedup_by_key(|watcher| Arc::as_ptr(watcher).addr());
    all.iter().for_each(|watcher| watcher.unmounted(root));
}

/// Whether `dentry` is of the file system with this root.
fn is_of(dentry: &Arc<Dentry>, root: &Arc<Dentry>) -> bool {
    let mut at = dentry.clone();
    while let Some(parent) = at.parent() {
        at = parent;
    }
    Arc::ptr_eq(&at, root)
}

/// Tells the watches of a place and those of the directory it is in.
pub(crate) fn tell_place(place: &Path, mask: u32) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mask = if place.inode().is_dir() { mask | IN_ISDIR } else { mask };
    let (parent, name, deleted) = place.dentry.place();
    if let Some(parent) = parent.filter(|_| !deleted) {
        tell(&parent.inode, mask, 0, &name);
    }
    tell(place.inode(), mask, 0, b"");
}

/// An inode that a call is to change, and where it was found.
pub(crate) struct Target {
    pub(crate) inode: Arc<dyn Inode>,
    pub(crate) place: Option<Path>,
}

impl Target {
    /// Tells the watches of it, and those of its directory.
    pub(crate) fn tell(&self, mask: u32) {
        match &self.place {
            Some(place) => tell_place(place, mask),
            None => tell(&self.inode, mask, 0, b""),
        }
    }
}

impl From<Path> for Target {
    fn from(place: Path) -> Target {
        Target { inode: place.inode().clone(), place: Some(place) }
    }
}

struct Watch {
    wd: i32,
    mask: u32,
    /// Keeps the address of the inode, which is what it is found by.
    _inode: Arc<dyn Inode>,
    /// Its name, until the last one goes away; not its mount, which it does not keep.
    dentry: Option<Arc<Dentry>>,
    /// What the host tells of.
    _outside: Vec<outside::Held>,
}

/// Watch, mask, cookie, name.
type Event = (i32, u32, u32, Box<[u8]>);

#[derive(Default)]
struct State {
    watches: HashMap<usize, Watch>,
    last: i32,
    events: VecDeque<Event>,
}

impl State {
    /// Puts an event behind the others, unless it is the same as the last; past [`QUEUED`] only that there were more.
    fn queue(&mut self, event: Event) {
        let full = self.events.len() >= QUEUED;
        let event = if full { (-1, IN_Q_OVERFLOW, 0, Box::default()) } else { event };
        if self.events.back() != Some(&event) {
            self.events.push_back(event);
        }
    }
}

/// An inotify instance.
pub struct Inotify {
    state: Mutex<State>,
    queue: WaitQueue,
    me: Weak<Inotify>,
}

impl Inotify {
    /// One without watches.
    pub fn new() -> Arc<Inotify> {
        Arc::new_cyclic(|me| Inotify { me: me.clone(), state: Mutex::default(), queue: WaitQueue::new() })
    }

    /// Sets or changes the watch of a place.
    ///
    /// # Errors
    /// EEXIST with IN_MASK_CREATE. ENOSPC: too many watches.
    pub fn add(&self, place: Path, mask: u32) -> SysResult<i32> {
        let key = key(place.inode());
        // A round trip, and it is there before anything is told.
        let known = self.state.lock().watches.contains_key(&key);
        let outside = if known { Vec::new() } else { outside::watch(place.inode(), Some(&place.dentry))? };
        let mut state = self.state.lock();
        if let Some(watch) = state.watches.get_mut(&key) {
            if mask & IN_MASK_CREATE != 0 {
                return Err(Errno::EEXIST.into());
            }
            watch.mask = if mask & IN_MASK_ADD != 0 { watch.mask | mask } else { mask };
            return Ok(watch.wd);
        }
        let wd = state.last.checked_add(1).ok_or(Errno::ENOSPC)?;
        admit().ok_or(Errno::ENOSPC)?;
        state.last = wd;
        let watch =
            Watch { wd, mask, _inode: place.inode().clone(), dentry: Some(place.dentry), _outside: outside };
        state.watches.insert(key, watch);
        drop(state);
        let me: Weak<Inotify> = self.me.clone();
        register(key, me);
        Ok(wd)
    }

    /// Removes a watch.
    ///
    /// # Errors
    /// EINVAL.
    pub fn remove(&self, wd: i32) -> SysResult<()> {
        let key = self.state.lock().watches.iter().find(|(_, w)| w.wd == wd).map(|(key, _)| *key);
        self.drop_watch(key.ok_or(Errno::EINVAL)?);
        Ok(())
    }

    fn drop_watch(&self, key: usize) {
        let watch = {
            let mut state = self.state.lock();
            let watch = state.watches.remove(&key);
            if let Some(watch) = &watch {
                state.queue((watch.wd, IN_IGNORED, 0, Box::default()));
            }
            watch
        };
        if watch.is_some() {
            forget(key, std::ptr::from_ref(self));
            self.queue.wake(Ready::IN | Ready::RDNORM);
        }
    }
}

impl Watcher for Inotify {
    fn event(self: Arc<Self>, key: usize, mask: u32, cookie: u32, name: &[u8]) {
        let mut state = self.state.lock();
        let Some(watch) = state.watches.get(&key) else { return };
        if mask & IN_Q_OVERFLOW != 0 {
            state.queue((-1, IN_Q_OVERFLOW, 0, Box::default()));
            drop(state);
            self.queue.wake(Ready::IN | Ready::RDNORM);
            return;
        }
        let (wd, wanted) = (watch.wd, watch.mask);
        let gone = mask & IN_DELETE_SELF != 0;
        if wanted & mask & !IN_ISDIR != 0 {
            state.queue((wd, mask, cookie, Box::from(name)));
            drop(state);
            self.queue.wake(Ready::IN | Ready::RDNORM);
            if wanted & IN_ONESHOT != 0 && !gone {
                self.drop_watch(key);
            }
        } else {
            drop(state);
        }
        if gone {
            self.drop_watch(key);
        }
    }

    fn unmounted(&self, root: &Arc<Dentry>) {
        let mut state = self.state.lock();
        let of = |watch: &Watch| watch.dentry.as_ref().is_some_and(|dentry| is_of(dentry, root));
        let keys: Vec<(usize, i32)> =
            state.watches.iter().filter(|(_, w)| of(w)).map(|(key, w)| (*key, w.wd)).collect();
        // Whether it was asked for or not.
        keys.iter().for_each(|(_, wd)| state.queue((*wd, IN_UNMOUNT, 0, Box::default())));
        drop(state);
        keys.iter().for_each(|(key, _)| self.drop_watch(*key));
    }

    fn let_go(&self, key: usize) {
        let dentry = self.state.lock().watches.get_mut(&key).and_then(|w| w.dentry.take());
        // Its end may be told: without the lock.
        drop(dentry);
    }
}

/// Bytes of a name as it is delivered: with its NUL, in sixteens.
fn room(name: &[u8]) -> usize {
    if name.is_empty() { 0 } else { name.len().saturating_add(1).next_multiple_of(16) }
}

impl FileOps for Inotify {
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], _: u64) -> SysResult<usize> {
        cx.wait_on(&self.queue, Ready::IN);
        outside::look();
        let mut state = self.state.lock();
        let mut out: Vec<u8> = Vec::new();
        while let Some((wd, mask, cookie, name)) = state.events.front() {
            let len = room(name);
            let end = out.len().saturating_add(16).saturating_add(len);
            if end > buf.len() || end > cx.room && !out.is_empty() {
                break;
            }
            if end > cx.room {
                state.events.pop_front();
                return Err(Errno::EFAULT.into());
            }
            let head =
                InotifyEvent { wd: *wd, mask: *mask, cookie: *cookie, len: u32::try_from(len).unwrap_or(0) };
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(name);
            out.resize(end, 0);
            state.events.pop_front();
        }
        let empty = state.events.is_empty();
        drop(state);
        if out.is_empty() {
            return match (empty, file.nonblocking()) {
                (false, _) => Err(Errno::EINVAL.into()),
                (true, true) => Err(Errno::EAGAIN.into()),
                (true, false) => cx.block(Restart::Sys),
            };
        }
        if let Some(to) = buf.get_mut(..out.len()) {
            to.copy_from_slice(&out);
        }
        Ok(out.len())
    }

    fn seeks_nowhere(&self) -> bool {
        true
    }

    fn poll(&self, _: &File) -> Ready {
        if self.state.lock().events.is_empty() { Ready::empty() } else { Ready::IN | Ready::RDNORM }
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.queue)
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(Attr { mode: 0o600, nlink: 1, blksize: 4096, ..Attr::default() })
    }

    fn ioctl(&self, cx: &mut Cx, _: &File, request: u32, arg: u64) -> SysResult {
        if request != FIONREAD {
            return Err(Errno::ENOTTY.into());
        }
        let bytes: usize = self.state.lock().events.iter().map(|e| room(&e.3).saturating_add(16)).sum();
        cx.write_value(arg, &i32::try_from(bytes).unwrap_or(i32::MAX))?;
        Ok(0)
    }

    fn describe(&self) -> String {
        "anon_inode:inotify".into()
    }
}

impl Drop for Inotify {
    fn drop(&mut self) {
        let keys: Vec<usize> = self.state.get_mut().watches.keys().copied().collect();
        for key in keys {
            forget(key, std::ptr::from_ref(self));
        }
    }
}
