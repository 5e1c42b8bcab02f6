//! Changes that are made on the host below mounts that pass through: the gofer's one inotify(7) instance, told to the guests'
//! watches.
//!
//! The instance reports what the guests do as well, for the host cannot tell; that is told by [`watch`] already, exactly and in its
//! order. So what comes is held until every system call that was running when it was read has ended: by then all that those did is
//! told and noted, and what is not among it was done by others. A change that somebody else made to the same file in the same
//! instant looks like the guest's own, of which there is an event all the same.
//!
//! What a guest did may have no event of the host's. So what is noted goes when the host has nothing more to tell and all calls that
//! noted it have ended; it is looked at when a call ends that noted something.
//!
//! Names that the policy hides are not told. The gofer says which they are.
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
/// How often a system call that ends reads what the host has to tell, or a guest that looks: the rest is for the thread that waits
/// for it.
const READS: usize = 4;
/// Changes of the guests' own that wait to be compared, at most; files changed outside and not closed yet; moves not ended.
const NOTED: usize = 32 * 1024;
const TOUCHED: usize = 4096;
const MOVES: usize = 64;

/// A watched inode.
#[derive(Clone)]
struct Seen {
    key: usize,
    inode: Weak<dyn Inode>,
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
    /// The calls that noted what was noted up to then have ended.
    settled: u64,
    /// Inodes that a watch of the host is being set for.
    expected: Vec<usize>,
    /// Watches of the host that are being ended.
    ending: HashSet<i32>,
}

/// What the host may say by another of the file's names.
const OF_FILE: u32 = IN_MODIFY | IN_ATTRIB;

/// Watch, what, cookie, name.
type Event = (i32, u32, u32, Box<[u8]>);

/// What came from the host and is not told yet; nothing: what was noted is to be settled.
struct Batch {
    events: Vec<Event>,
    /// What was noted before it was read.
    noted: u64,
    /// It was all that the host had to tell, so of what was noted up to then nothing more comes.
    over: Option<u64>,
}

#[derive(Default)]
struct Waiting {
    batch: Option<Batch>,
    /// Files that were changed and not closed yet, by the inode that is watched and their name.
    touched: HashSet<(usize, Box<[u8]>)>,
    /// Names that went away: what is still done by them is done to what nobody finds there.
    gone: HashSet<(i32, Box<[u8]>)>,
    moves: Vec<(u32, u32)>,
    /// The half of a move that came last, with the next batch the other may come.
    moved: Option<Moved>,
    /// That half's number, and whether the file was in [`Waiting::touched`].
    left: Option<(u32, bool)>,
    /// Of names that this batch tells of: whether they are hidden.
    hidden: HashMap<(usize, Box<[u8]>), bool>,
}

/// Where something was moved from.
struct Moved {
    /// The host's number of it.
    cookie: u32,
    from: Arc<Dentry>,
    name: Box<[u8]>,
    what: Arc<Dentry>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
/// Nobody waits for it: who finds it taken leaves what is to be done to who has it.
static WAITING: Mutex<Option<Waiting>> = Mutex::new(None);
/// A batch is held, and it was told.
static HELD: Mutex<bool> = Mutex::new(false);
static TOLD: Condvar = Condvar::new();
/// Somebody came while [`WAITING`] was taken.
static AGAIN: AtomicBool = AtomicBool::new(false);
static INSTANCE: OnceLock<OwnedFd> = OnceLock::new();
/// The thread that waits for it runs.
static SERVED: Mutex<bool> = Mutex::new(false);
/// Watches of the host there are, or are being set: nothing here is done without.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// System calls count as running in the period in which they began. Another one begins with each batch.
static PERIOD: AtomicU64 = AtomicU64::new(0);
static RUNNING: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

thread_local! {
    static OWN: Cell<Option<u64>> = const { Cell::new(None) };
    /// Something was noted on this thread, and not looked at since.
    static NOTES: Cell<bool> = const { Cell::new(false) };
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
        if NOTES.take() {
            tell_all(READS);
        }
    }
}

fn ended(period: u64) {
    if running(period).fetch_sub(1, SeqCst) == 1 && PERIOD.load(SeqCst) != period {
        tell_all(READS);
    }
}

/// Tells what has come, as far as it can be told, from within a system call that has changed nothing yet.
pub(super) fn look() {
    if COUNT.load(SeqCst) == 0 {
        return;
    }
    let own = OWN.get().is_some();
    leave();
    tell_all(READS);
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
    // What has come is not for who asks from now on.
    look();
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
    let known = |state: &mut State| {
        let number = state.numbers.get(&key)?;
        let seen = state.watched.get_mut(number)?.iter_mut().find(|seen| seen.key == key)?;
        seen.count = seen.count.saturating_add(1);
        Some(())
    };
    // What is done from now on is noted: the host may tell of it before this knows its number.
    COUNT.fetch_add(1, SeqCst);
    loop {
        {
            let mut state = STATE.lock();
            let state = state.get_or_insert_default();
            if known(state).is_some() {
                COUNT.fetch_sub(1, SeqCst);
                return Ok(held());
            }
            state.expected.push(key);
        }
        // Files that were removed here are changed by names that they had.
        let set = file.watch(ASKED | IN_EXCL_UNLINK);
        let mut state = STATE.lock();
        let state = state.get_or_insert_default();
        if let Some(at) = state.expected.iter().position(|other| *other == key) {
            state.expected.swap_remove(at);
        }
        let (number, instance) = set.inspect_err(|_| {
            COUNT.fetch_sub(1, SeqCst);
        })?;
        // The host has one for each inode, and this one is about to go.
        if state.ending.contains(&number) {
            continue;
        }
        if known(state).is_some() {
            COUNT.fetch_sub(1, SeqCst);
        } else {
            state.numbers.insert(key, number);
            let (inode, dentry) = (Arc::downgrade(inode), dentry.map(Arc::downgrade).unwrap_or_default());
            state.watched.entry(number).or_default().push(Seen { key, inode, dentry, count: 1 });
        }
        let _ = INSTANCE.set(instance);
        break;
    }
    let held = held();
    let mut served = SERVED.lock();
    if !*served {
        let thread = std::thread::Builder::new().name("changes".into()).stack_size(256 * 1024);
        thread.spawn(serve).map_err(|_| Errno::ENOMEM)?;
        *served = true;
    }
    Ok(held)
}

impl Drop for Held {
    fn drop(&mut self) {
        let unused = {
            let mut state = STATE.lock();
            let unused = state.as_mut().and_then(|state| state.let_go(self.key));
            if let (Some(Some(number)), Some(state)) = (unused, state.as_mut()) {
                state.ending.insert(number);
            }
            unused
        };
        if let Some(over) = unused {
            COUNT.fetch_sub(1, SeqCst);
            // The host may have ended it.
            if let Some(number) = over {
                let _ = self.fs.unwatch(number);
                if let Some(state) = STATE.lock().as_mut() {
                    state.ending.remove(&number);
                }
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

    /// What was noted up to then has no event to come.
    fn is_over(&mut self, noted: u64) {
        self.noted.retain(|_, count| *count > noted);
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
        && (what & OF_FILE != 0 || state.numbers.contains_key(&key) || state.expected.contains(&key))
    {
        state.note(key, what, name);
        NOTES.set(true);
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
        tell_all(usize::MAX);
        crate::run::drain();
        // Not by the lock of what is held: who comes to tell it must not find that taken.
        let mut held = HELD.lock();
        while *held {
            TOLD.wait(&mut held);
        }
    }
}

/// Tells what has come, as far as no call runs any more that may have done it. Reads so often. No lock of
/// [`crate::sync::Level::Dir`] or inner may be held.
fn tell_all(mut reads: usize) {
    AGAIN.store(true, SeqCst);
    while AGAIN.load(SeqCst) {
        // Whoever has it looks again.
        let Some(mut waiting) = WAITING.try_lock() else { return };
        AGAIN.store(false, SeqCst);
        let waiting = waiting.get_or_insert_default();
        while waiting.step(&mut reads) {}
    }
}

impl Waiting {
    /// Tells what waits, or reads more. False: there is nothing to do now.
    fn step(&mut self, reads: &mut usize) -> bool {
        let period = PERIOD.load(SeqCst);
        let Some(batch) = self.batch.take() else {
            let Some(left) = reads.checked_sub(1) else { return false };
            *reads = left;
            return self.read(period);
        };
        if running(period.wrapping_sub(1)).load(SeqCst) != 0 {
            self.batch = Some(batch);
            return false;
        }
        self.tell(&batch);
        if let Some(state) = STATE.lock().as_mut() {
            state.settled = batch.noted;
            if let Some(over) = batch.over {
                state.is_over(over);
            }
        }
        *HELD.lock() = false;
        TOLD.notify_all();
        true
    }

    /// Reads what is to be told when the calls that run now have ended. False: nothing is.
    fn read(&mut self, period: u64) -> bool {
        let (noted, settled) = STATE.lock().as_ref().map_or((0, 0), |state| (state.count, state.settled));
        let (events, all) = INSTANCE.get().map_or((Vec::new(), true), read);
        if events.is_empty() && all {
            // The other half of a move would have come, and it may be what an end is waited for.
            (self.moved, self.left) = (None, None);
            let mut state = STATE.lock();
            let Some(state) = state.as_mut() else { return false };
            state.is_over(settled);
            if state.noted.is_empty() {
                return false;
            }
        }
        self.batch = Some(Batch { events, noted, over: all.then_some(settled) });
        *HELD.lock() = true;
        PERIOD.store(period.wrapping_add(1), SeqCst);
        true
    }

    fn tell(&mut self, batch: &Batch) {
        self.hidden.clear();
        for (at, (number, what, cookie, name)) in batch.events.iter().enumerate() {
            if what & IN_Q_OVERFLOW != 0 {
                let all: Vec<usize> = STATE.lock().iter().flat_map(|s| s.numbers.keys().copied()).collect();
                all.into_iter().for_each(|key| watch::deliver(key, IN_Q_OVERFLOW, 0, b""));
                continue;
            }
            let all = seen(*number);
            let rest = batch.events.get(at..).unwrap_or_default();
            for Seen { key, inode, dentry, .. } in &all {
                let dentry = (dentry, all.len() == 1);
                self.event((*number, *key, inode), dentry, (*what, *cookie), name, rest);
            }
        }
    }

    /// Whether a name in the directory is hidden. `rest`: what is to be told from here on, of which the gofer is asked at once.
    fn is_hidden(
        &mut self,
        number: i32,
        key: usize,
        inode: &Weak<dyn Inode>,
        name: &[u8],
        rest: &[Event],
    ) -> bool {
        if name.is_empty() {
            return false;
        }
        if let Some(known) = self.hidden.get(&(key, Box::from(name))) {
            return *known;
        }
        let mut names: Vec<&[u8]> =
            rest.iter().filter(|e| e.0 == number && !e.3.is_empty()).map(|e| &*e.3).collect();
        names.sort_unstable();
        names.dedup();
        let file = inode.upgrade().and_then(|inode| downcast::<GoferInode>(&inode));
        // What the gofer does not say to be seen is not told.
        let hidden = file.and_then(|file| file.hidden(&names).ok());
        for (at, name) in names.iter().enumerate() {
            let is = hidden.as_ref().and_then(|hidden| hidden.get(at)).is_none_or(|is| *is);
            self.hidden.insert((key, Box::from(*name)), is);
        }
        self.hidden.get(&(key, Box::from(name))).is_none_or(|is| *is)
    }

    fn event(
        &mut self,
        (number, key, inode): (i32, usize, &Weak<dyn Inode>),
        (dentry, only): (&Weak<Dentry>, bool),
        (what, cookie): (u32, u32),
        name: &[u8],
        rest: &[Event],
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
        let closes = self.follow(key, (what, cookie), name, own);
        if own || what & (ASKED & !IN_DELETE_SELF) == 0 || self.is_hidden(number, key, inode, name, rest) {
            return;
        }
        if what & IN_CLOSE_WRITE != 0 && !closes {
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

    /// Keeps in mind which files others have changed and not closed yet. True: this closes one.
    fn follow(&mut self, key: usize, (what, cookie): (u32, u32), name: &[u8], own: bool) -> bool {
        if what & IN_ISDIR != 0 {
            return false;
        }
        let file: (usize, Box<[u8]>) = (key, name.into());
        let touches = match what & (IN_MOVED_TO | IN_MODIFY | IN_CREATE) {
            0 => false,
            // From where nobody watches: somebody may be writing it.
            IN_MOVED_TO => self.left.filter(|left| left.0 == cookie).map_or(!own, |left| left.1),
            _ => !own,
        };
        if touches {
            if self.touched.len() >= TOUCHED {
                self.touched.clear();
            }
            self.touched.insert(file);
            return false;
        }
        if what & (IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO) != 0 || what & IN_CLOSE_WRITE != 0 && !own {
            let was = self.touched.remove(&file);
            if what & IN_MOVED_FROM != 0 {
                self.left = Some((cookie, was));
            }
            return was;
        }
        false
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

fn seen(number: i32) -> Vec<Seen> {
    let state = STATE.lock();
    state.as_ref().and_then(|state| state.watched.get(&number)).cloned().unwrap_or_default()
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

/// What the host has to tell, and whether that is all.
fn read(instance: &OwnedFd) -> (Vec<Event>, bool) {
    let mut events = Vec::new();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // The gofer made it: whether it waits is not believed.
    let tells = || matches!(poll(&mut [PollFd::new(instance, PollFlags::IN)], Some(&now)), Ok(1..));
    if !tells() {
        return (events, true);
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
    (events, !tells())
}
