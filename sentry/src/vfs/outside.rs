//! Changes that are made on the host below mounts that pass through: the gofer's one inotify(7) instance, told to the guests'
//! watches.
//!
//! The instance reports what the guests do as well, for the host cannot tell; that is told by [`watch`] already, exactly and in its
//! order. So what comes is held until every system call that was running when it was read has ended: by then all that those did is
//! told and noted, and what is not among it was done by others. A change that somebody else made to the same file in the same
//! instant looks like the guest's own, of which there is an event all the same.
//!
//! Nobody asks the host for opens, reads, and closes without a change: files that guests have closed stay open for a while.

use crate::fail::SysResult;
use crate::fs::gofer::{GoferFs, GoferInode};
use crate::vfs::dentry::Dentry;
use crate::vfs::inode::{Caching, Inode, downcast};
use crate::vfs::watch;
use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, Weak};
use syscall_table::abi::inotify::*;
use syscall_table::errno::Errno;

/// What is asked of the host for each watch.
const ASKED: u32 = IN_MODIFY
    | IN_ATTRIB
    | IN_CLOSE_WRITE
    | IN_MOVED_FROM
    | IN_MOVED_TO
    | IN_CREATE
    | IN_DELETE
    | IN_DELETE_SELF
    | IN_MOVE_SELF;
/// Bytes read at once.
const READ: usize = 16 * 1024;
/// Changes of the guests' own that wait to be compared, at most; files changed outside and not closed yet; moves not ended.
const NOTED: usize = 32 * 1024;
const TOUCHED: usize = 4096;
const MOVES: usize = 64;

/// A watched inode.
struct Seen {
    key: usize,
    /// Where it is; unset for a mark on a directory's description.
    dentry: Weak<Dentry>,
    /// Watches of guests on it or on names in it.
    count: usize,
}

#[derive(Default)]
struct State {
    /// Watches of the host's instance, with the inodes that they stand for: several where a host inode was found by several
    /// names.
    watched: HashMap<i32, Vec<Seen>>,
    numbers: HashMap<usize, i32>,
    /// What guests did: inode, what, name; and when last, by [`State::count`].
    noted: HashMap<(usize, u32, Box<[u8]>), u64>,
    count: u64,
}

/// What the host may say by another of the file's names.
const OF_FILE: u32 = IN_MODIFY | IN_ATTRIB;

/// Watch, what, cookie, name.
type Event = (i32, u32, u32, Box<[u8]>);

/// What came from the host and is not told yet.
struct Batch {
    events: Vec<Event>,
    /// What was noted up to then was done before it was read.
    noted: u64,
}

#[derive(Default)]
struct Waiting {
    batch: Option<Batch>,
    /// Files that were changed and not closed yet, by the inode that is watched and their name.
    touched: HashSet<(usize, Box<[u8]>)>,
    /// Names that went away: what is still done by them is done to what nobody finds there.
    gone: HashSet<(i32, Box<[u8]>)>,
    moves: Vec<(u32, u32)>,
    moved: Option<Moved>,
}

/// The half of a move that came last.
struct Moved {
    /// The host's number of it.
    cookie: u32,
    from: Arc<Dentry>,
    name: Box<[u8]>,
    what: Arc<Dentry>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static WAITING: Mutex<Option<Waiting>> = Mutex::new(None);
/// A batch is held, and it was told.
static HELD: Mutex<bool> = Mutex::new(false);
static TOLD: Condvar = Condvar::new();
/// Somebody came while [`WAITING`] was taken.
static AGAIN: AtomicBool = AtomicBool::new(false);
/// Setting and ending watches of the host, one after the other: the host has one for each inode.
static SETTING: Mutex<()> = Mutex::new(());
static INSTANCE: OnceLock<OwnedFd> = OnceLock::new();
/// Watches of the host there are: nothing here is done without.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// System calls count as running in the period in which they began. Another one begins with each batch.
static PERIOD: AtomicU64 = AtomicU64::new(0);
static RUNNING: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

thread_local! {
    static OWN: Cell<Option<u64>> = const { Cell::new(None) };
}

fn running(period: u64) -> &'static AtomicUsize {
    let [even, odd] = &RUNNING;
    if period & 1 == 0 { even } else { odd }
}

/// A system call runs on this thread.
pub(crate) struct Running(());

/// Begins a system call's handler. Costs nothing while nobody watches what others may change.
pub(crate) fn running_call() -> Option<Running> {
    (COUNT.load(SeqCst) != 0).then(|| {
        enter();
        Running(())
    })
}

impl Drop for Running {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() {
    loop {
        let period = PERIOD.load(SeqCst);
        running(period).fetch_add(1, SeqCst);
        if PERIOD.load(SeqCst) == period {
            return OWN.set(Some(period));
        }
        ended(period);
    }
}

fn leave() {
    if let Some(period) = OWN.take() {
        ended(period);
    }
}

fn ended(period: u64) {
    if running(period).fetch_sub(1, SeqCst) == 1 && PERIOD.load(SeqCst) != period {
        tell_all();
    }
}

/// Tells what has come, as far as it can be told, from within a system call that has changed nothing yet.
pub(super) fn look() {
    if COUNT.load(SeqCst) == 0 {
        return;
    }
    let own = OWN.get().is_some();
    leave();
    tell_all();
    if own {
        enter();
    }
}

/// A watch of the host, as long as guests need it. Dropped with no lock of [`crate::sync::Level::Dir`] or inner held.
pub(super) struct Held {
    fs: Arc<GoferFs>,
    key: usize,
    /// Keeps the key from being another inode's, and the inode from nothing: it ends with its last descriptor.
    _inode: Weak<dyn Inode>,
}

/// What a watch of a guest needs of the host: nothing unless others may change the file.
///
/// # Errors
/// ENOSPC: too many watches.
pub(super) fn watch(inode: &Arc<dyn Inode>, dentry: Option<&Arc<Dentry>>) -> SysResult<Vec<Held>> {
    let mut held = Vec::new();
    // That a directory went away is an event of the one it was in.
    let parent = dentry.and_then(|dentry| dentry.parent());
    let places = [Some((inode, dentry)), parent.as_ref().map(|dentry| (&dentry.inode, Some(dentry)))];
    for (inode, dentry) in places.into_iter().flatten() {
        if let Some(file) = downcast::<GoferInode>(inode).filter(|file| file.writable()) {
            held.push(hold(&file, inode, dentry)?);
        }
    }
    Ok(held)
}

fn hold(file: &GoferInode, inode: &Arc<dyn Inode>, dentry: Option<&Arc<Dentry>>) -> SysResult<Held> {
    let key = watch::key(inode);
    let held = || Held { fs: file.fs().clone(), key, _inode: Arc::downgrade(inode) };
    let setting = SETTING.lock();
    let known = || {
        let mut state = STATE.lock();
        let state = state.get_or_insert_default();
        let number = state.numbers.get(&key)?;
        let seen = state.watched.get_mut(number)?.iter_mut().find(|seen| seen.key == key)?;
        seen.count = seen.count.saturating_add(1);
        Some(())
    };
    if known().is_some() {
        return Ok(held());
    }
    // Files that were removed here are changed by names that they had.
    let (number, instance) = file.watch(ASKED | IN_EXCL_UNLINK)?;
    COUNT.fetch_add(1, SeqCst);
    {
        let mut state = STATE.lock();
        let state = state.get_or_insert_default();
        state.numbers.insert(key, number);
        let dentry = dentry.map(Arc::downgrade).unwrap_or_default();
        state.watched.entry(number).or_default().push(Seen { key, dentry, count: 1 });
    }
    let held = held();
    let first = INSTANCE.set(instance).is_ok();
    drop(setting);
    if first {
        let thread = std::thread::Builder::new().name("changes".into()).stack_size(256 * 1024);
        thread.spawn(serve).map_err(|_| Errno::ENOMEM)?;
    }
    Ok(held)
}

impl Drop for Held {
    fn drop(&mut self) {
        let _setting = SETTING.lock();
        let unused = {
            let mut state = STATE.lock();
            state.as_mut().and_then(|state| state.let_go(self.key))
        };
        if let Some(over) = unused {
            COUNT.fetch_sub(1, SeqCst);
            // The host may have ended it.
            if let Some(number) = over {
                let _ = self.fs.unwatch(number);
            }
        }
    }
}

impl State {
    /// One guest's watch less. Some: none is left; then the host's watch, if it is for no other inode either.
    fn let_go(&mut self, key: usize) -> Option<Option<i32>> {
        let number = *self.numbers.get(&key)?;
        let all = self.watched.get_mut(&number)?;
        let seen = all.iter_mut().find(|seen| seen.key == key)?;
        seen.count = seen.count.saturating_sub(1);
        if seen.count != 0 {
            return None;
        }
        all.retain(|seen| seen.key != key);
        let over = all.is_empty();
        if over {
            self.watched.remove(&number);
        }
        self.numbers.remove(&key);
        Some(over.then_some(number))
    }

    fn note(&mut self, key: usize, what: u32, name: &[u8]) {
        self.count = self.count.wrapping_add(1);
        if self.noted.len() < NOTED {
            self.noted.insert((key, what & ASKED, name.into()), self.count);
        }
    }

    fn has_noted(&self, key: usize, what: u32, name: &[u8]) -> bool {
        self.noted.contains_key(&(key, what & ASKED, Box::from(name)))
    }

    /// Whether what happened to `name` in the directory was done here. `child`: the inode there.
    fn is_own(&self, key: usize, what: u32, name: &[u8], child: Option<usize>) -> bool {
        if self.has_noted(key, what, name) {
            return true;
        }
        // By another name of the file, or one that was taken away since.
        what & OF_FILE != 0
            && !name.is_empty()
            && match child {
                Some(child) => self.has_noted(child, what, b""),
                None => [IN_DELETE, IN_MOVED_FROM].iter().any(|gone| self.has_noted(key, *gone, name)),
            }
    }
}

/// A guest changed something: what the host says of it is not told again.
pub(super) fn note(inode: &Arc<dyn Inode>, what: u32, name: &[u8]) {
    if COUNT.load(SeqCst) == 0 || what & ASKED == 0 || inode.caching() != Caching::Revalidate {
        return;
    }
    let key = watch::key(inode);
    if let Some(state) = STATE.lock().as_mut()
        && (what & OF_FILE != 0 || state.numbers.contains_key(&key))
    {
        state.note(key, what, name);
    }
}

/// The sentry changes attributes of an inode for itself, watched or in a directory that is.
pub(crate) fn hush(inode: &Arc<dyn Inode>) {
    note(inode, IN_ATTRIB, b"");
}

/// The thread that waits for the host.
fn serve() {
    let Some(instance) = INSTANCE.get() else { return };
    loop {
        if poll(&mut [PollFd::new(instance, PollFlags::IN)], None)
            .is_err_and(|e| e != rustix::io::Errno::INTR)
        {
            return;
        }
        tell_all();
        crate::run::drain();
        // Not by the lock of what is held: who comes to tell it must not find that taken.
        let mut held = HELD.lock();
        while *held {
            TOLD.wait(&mut held);
        }
    }
}

/// Tells what has come, as far as no call runs any more that may have done it. No lock of [`crate::sync::Level::Dir`] or inner
/// may be held.
fn tell_all() {
    AGAIN.store(true, SeqCst);
    while AGAIN.load(SeqCst) {
        // Whoever has it looks again.
        let Some(mut waiting) = WAITING.try_lock() else { return };
        AGAIN.store(false, SeqCst);
        let waiting = waiting.get_or_insert_default();
        while waiting.step() {}
    }
}

impl Waiting {
    /// Tells what waits, or reads more. False: there is nothing to do now.
    fn step(&mut self) -> bool {
        let period = PERIOD.load(SeqCst);
        if self.batch.is_none() {
            let events = INSTANCE.get().map(read).unwrap_or_default();
            if events.is_empty() {
                return false;
            }
            let noted = STATE.lock().as_ref().map_or(0, |state| state.count);
            self.batch = Some(Batch { events, noted });
            *HELD.lock() = true;
            PERIOD.store(period.wrapping_add(1), SeqCst);
            return true;
        }
        if running(period.wrapping_sub(1)).load(SeqCst) != 0 {
            return false;
        }
        let Some(batch) = self.batch.take() else { return false };
        self.tell(&batch);
        // Its end may be what is waited for.
        self.moved = None;
        if let Some(state) = STATE.lock().as_mut() {
            // What was noted later may still come.
            state.noted.retain(|_, count| *count > batch.noted);
        }
        *HELD.lock() = false;
        TOLD.notify_all();
        true
    }

    fn tell(&mut self, batch: &Batch) {
        for (number, what, cookie, name) in &batch.events {
            if what & IN_Q_OVERFLOW != 0 {
                let all: Vec<usize> = STATE.lock().iter().flat_map(|s| s.numbers.keys().copied()).collect();
                all.into_iter().for_each(|key| watch::deliver(key, IN_Q_OVERFLOW, 0, b""));
                continue;
            }
            let all = seen(*number);
            for (key, dentry) in &all {
                self.event(*number, (*key, dentry, all.len() == 1), (*what, *cookie), name);
            }
        }
    }

    fn event(
        &mut self,
        number: i32,
        (key, dentry, only): (usize, &Weak<Dentry>, bool),
        (what, cookie): (u32, u32),
        name: &[u8],
    ) {
        let file: (i32, Box<[u8]>) = (number, name.into());
        if what & (IN_DELETE | IN_MOVED_FROM) != 0 {
            if self.gone.len() >= TOUCHED {
                self.gone.clear();
            }
            self.gone.insert(file);
        } else if what & (IN_CREATE | IN_MOVED_TO) != 0 {
            self.gone.remove(&file);
        } else if !name.is_empty() && self.gone.contains(&file) {
            return;
        }
        let dentry = dentry.upgrade();
        let child = dentry.as_ref().filter(|_| !name.is_empty()).and_then(|dentry| dentry.child(name));
        let child_key = child.as_ref().map(|child| watch::key(&child.inode));
        let own = STATE.lock().as_ref().is_some_and(|state| state.is_own(key, what, name, child_key));
        if own || what & (ASKED & !IN_DELETE_SELF) == 0 {
            return;
        }
        let file: (usize, Box<[u8]>) = (key, name.into());
        if what & (IN_MODIFY | IN_CREATE) != 0 && what & IN_ISDIR == 0 {
            if self.touched.len() >= TOUCHED {
                self.touched.clear();
            }
            self.touched.insert(file);
        } else if what & IN_DELETE != 0 {
            self.touched.remove(&file);
        } else if what & IN_CLOSE_WRITE != 0 && !self.touched.remove(&file) {
            // The sentry's own, of a file that guests have closed before.
            return;
        }
        let names = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
        if let Some(dentry) = dentry.as_ref().filter(|_| what & names != 0) {
            dentry.doubt(name);
            // An inode that was found by several names has a place by each.
            match (self.moved.take(), child.as_ref().filter(|_| only)) {
                // Guests may have moved it since: what is above a directory cannot go into it.
                (Some(moved), _)
                    if only
                        && what & IN_MOVED_TO != 0
                        && moved.cookie == cookie
                        && !dentry.is_below(&moved.what) =>
                {
                    moved.from.renamed(&moved.name, &moved.what, dentry, name, false);
                }
                (_, Some(child)) if what & IN_MOVED_FROM != 0 => {
                    let (from, what) = (dentry.clone(), child.clone());
                    self.moved = Some(Moved { cookie, from, name: name.into(), what });
                }
                _ => {}
            }
        }
        let cookie = if cookie == 0 { 0 } else { self.cookie(cookie) };
        watch::deliver(key, what & (ASKED | IN_ISDIR), cookie, name);
        // Dropped before what it may be the last to hold is looked at.
        match (child, dentry) {
            (Some(child), _) if what & (IN_DELETE | IN_MOVED_TO) != 0 => {
                gone(child, what & IN_DELETE != 0 && what & IN_ISDIR != 0);
            }
            // By a name in a directory that is not watched.
            (None, Some(dentry)) if what & IN_ATTRIB != 0 && name.is_empty() && !in_watched(&dentry) => {
                gone(dentry, false);
            }
            _ => {}
        }
    }

    /// A number of this kernel's for the two halves of a move.
    fn cookie(&mut self, hosts: u32) -> u32 {
        if let Some((_, own)) = self.moves.iter().find(|(host, _)| *host == hosts) {
            return *own;
        }
        if self.moves.len() >= MOVES {
            self.moves.remove(0);
        }
        let own = watch::cookie();
        self.moves.push((hosts, own));
        own
    }
}

fn seen(number: i32) -> Vec<(usize, Weak<Dentry>)> {
    let state = STATE.lock();
    let all = state.as_ref().and_then(|state| state.watched.get(&number));
    all.into_iter().flatten().map(|seen| (seen.key, seen.dentry.clone())).collect()
}

fn in_watched(dentry: &Dentry) -> bool {
    let parent = dentry.parent().map(|parent| watch::key(&parent.inode));
    let state = STATE.lock();
    parent.is_some_and(|key| state.as_ref().is_some_and(|state| state.numbers.contains_key(&key)))
}

/// If the last name of a watched inode was removed outside, it ends when nobody has it open. `surely`: it has none.
fn gone(dentry: Arc<Dentry>, surely: bool) {
    let watched =
        STATE.lock().as_ref().is_some_and(|state| state.numbers.contains_key(&watch::key(&dentry.inode)));
    if watched && (surely || dentry.inode.attr().is_ok_and(|attr| attr.nlink == 0)) {
        dentry.vanished();
        watch::let_go(&dentry.inode);
    }
}

/// What the host has to tell.
fn read(instance: &OwnedFd) -> Vec<Event> {
    let mut events = Vec::new();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // The gofer made it: whether it waits is not believed.
    if !matches!(poll(&mut [PollFd::new(instance, PollFlags::IN)], Some(&now)), Ok(1..)) {
        return events;
    }
    let mut buffer = vec![0; READ];
    let count = rustix::io::read(instance.as_fd(), &mut buffer).unwrap_or(0);
    let mut rest = buffer.get(..count).unwrap_or_default();
    while let Some((head, after)) = rest.split_first_chunk::<16>() {
        let word = |at: usize| {
            head.get(at..).and_then(|word| word.first_chunk()).map_or(0, |word| u32::from_ne_bytes(*word))
        };
        let Ok(length) = usize::try_from(word(12)) else { break };
        let Some((name, next)) = after.split_at_checked(length) else { break };
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        events.push((word(0).cast_signed(), word(4), word(8), name.into()));
        rest = next;
    }
    events
}
