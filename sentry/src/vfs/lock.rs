//! Advisory locks on files: flock(2) and record locks (fcntl(2)).
//!
//! A table for each kind; both are by device and inode number. Whoever waits is woken at every release, which is simple and right:
//! lock queues are short. The number of locks is bounded, which Linux leaves to memory.
//!
//! A file that passes through to the host is locked there too: by one description for the whole sandbox, with the union of the
//! locks held inside. The table decides among programs inside, the host between them and everybody else.

mod host;

use crate::sync::{Level, Lock};
use crate::wait::{Ready, WaitQueue};
use rustix::fd::OwnedFd;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use syscall_table::errno::Errno;

/// Most locks on one file: each call looks at all of them.
const FILE_MAX: usize = 1 << 13;
/// Most locks in the sandbox.
const ALL_MAX: usize = 1 << 17;
/// Longest chain of waits that is followed.
const CIRCLE_MAX: usize = 64;

/// Whose a lock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A descriptor table (F_SETLK), by its id: what fcntl(2) calls a process.
    Table(u64),
    /// An open description (flock, F_OFD_SETLK), by its id.
    File(u64),
}

/// Bytes `start..=end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// Last byte.
    pub end: u64,
    /// Exclusive.
    pub write: bool,
}

impl Range {
    /// The whole file, shared.
    pub const ALL: Range = Range { start: 0, end: i64::MAX as u64, write: false };

    fn meets(&self, other: &Range) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

#[derive(Clone, Copy)]
struct Held {
    owner: Owner,
    pid: i32,
    range: Range,
}

type Key = (u64, u64);

/// Who waits for whom: an owner with several threads may wait several times.
struct Edge {
    id: u64,
    waiter: Owner,
    holder: Owner,
}

#[derive(Default)]
struct Table {
    files: HashMap<Key, Vec<Held>>,
    /// The descriptions that hold locks on the host.
    host: HashMap<Key, Arc<OwnedFd>>,
    /// Locks there are.
    held: usize,
    waits: Vec<Edge>,
    last_wait: u64,
}

impl Table {
    /// Whether `from` waits, through others, for `to`. Circles of more than [`CIRCLE_MAX`] are not found, as with
    /// Linux, whose limit is lower.
    fn leads(&self, from: Owner, to: Owner) -> bool {
        let mut seen = vec![from];
        let mut next = 0;
        while let Some(at) = seen.get(next).copied() {
            if at == to {
                return true;
            }
            next = next.saturating_add(1);
            for edge in self.waits.iter().filter(|edge| edge.waiter == at) {
                if seen.len() < CIRCLE_MAX && !seen.contains(&edge.holder) {
                    seen.push(edge.holder);
                }
            }
        }
        false
    }
}

/// Why a lock cannot be had.
pub enum Refusal {
    /// This owner's is in the way.
    Held(Owner),
    /// Somebody outside has one. Nobody says when it is gone: try again.
    Outside,
    /// The host cannot.
    Host(Errno),
    /// Too many.
    Full,
}

impl From<Refusal> for crate::fail::Fail {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Held(_) | Refusal::Outside => Errno::EAGAIN.into(),
            Refusal::Host(errno) => errno.into(),
            Refusal::Full => Errno::ENOLCK.into(),
        }
    }
}

/// A call's wait for a lock, for the detection of deadlocks; over when it is dropped.
pub struct Waiting {
    locks: Arc<Locks>,
    id: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.locks.table.lock().waits.retain(|edge| edge.id != self.id);
    }
}

/// All locks of one kind.
pub struct Locks {
    host: host::Kind,
    table: Lock<Table>,
    queue: WaitQueue,
    count: AtomicUsize,
}

impl Locks {
    /// Locks of flock(2), of which all are whole files.
    pub fn flocks() -> Self {
        Self::of(host::Kind::Whole)
    }

    /// Record locks.
    pub fn records() -> Self {
        Self::of(host::Kind::Ranges)
    }

    fn of(host: host::Kind) -> Self {
        Locks {
            host,
            table: Lock::new(Level::File, Table::default()),
            queue: WaitQueue::new(),
            count: AtomicUsize::new(0),
        }
    }
}

impl Locks {
    /// Woken when a lock was released.
    pub fn queue(&self) -> &WaitQueue {
        &self.queue
    }

    /// The first lock of another owner in the way, with its process.
    pub fn conflict(&self, key: Key, owner: Owner, range: Range) -> Option<(Range, i32)> {
        let table = self.table.lock();
        let held = table.files.get(&key)?;
        let found = held.iter().filter(|h| stands_in_way(h, owner, &range));
        found.min_by_key(|h| h.range.start).map(|h| (h.range, h.pid))
    }

    /// The first lock of this owner in the range.
    pub fn own(&self, key: Key, owner: Owner, range: Range) -> Option<(Range, i32)> {
        let table = self.table.lock();
        let held = table.files.get(&key)?;
        let found = held.iter().filter(|h| h.owner == owner && h.range.meets(&range));
        found.min_by_key(|h| h.range.start).map(|h| (h.range, h.pid))
    }

    /// A lock of somebody outside in the way, with its process where the host tells it.
    pub fn conflict_outside(&self, key: Key, host: &Arc<OwnedFd>, range: Range) -> Option<(Range, i32)> {
        let fd = self.table.lock().host.get(&key).unwrap_or(host).clone();
        self.host.conflict(&fd, range)
    }

    /// Takes the lock, replacing what the owner has there. `host`: a description of the file, if it is to be locked on the
    /// host too.
    ///
    /// # Errors
    /// Whose lock is in the way; too many locks.
    pub fn lock(
        &self,
        key: Key,
        owner: Owner,
        pid: i32,
        range: Range,
        host: Option<&Arc<OwnedFd>>,
    ) -> Result<(), Refusal> {
        let mut table = self.table.lock();
        let Table { files, held: all, host: hosts, .. } = &mut *table;
        let held = files.entry(key).or_default();
        if let Some(other) = held.iter().find(|h| stands_in_way(h, owner, &range)) {
            return Err(Refusal::Held(other.owner));
        }
        let before = held.len();
        if before >= FILE_MAX || *all >= ALL_MAX {
            if held.is_empty() {
                files.remove(&key);
            }
            return Err(Refusal::Full);
        }
        if let Some(fd) = host {
            let fd = hosts.get(&key).unwrap_or(fd).clone();
            if let Err(refusal) = self.host.lock(&fd, range) {
                if held.is_empty() {
                    files.remove(&key);
                }
                return Err(refusal);
            }
            hosts.insert(key, fd);
        }
        let shrinks = cut(held, owner, &range);
        merge(held, Held { owner, pid, range });
        *all = all.saturating_add(held.len()).saturating_sub(before);
        self.count.fetch_add(1, Ordering::Relaxed);
        drop(table);
        // A lock that became shared lets others in.
        if shrinks {
            self.queue.wake(Ready::OUT);
        }
        Ok(())
    }

    /// Releases what the owner holds of the range.
    ///
    /// # Errors
    /// Too many locks: releasing the middle of one leaves two.
    pub fn unlock(&self, key: Key, owner: Owner, range: Range) -> Result<(), Refusal> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let mut table = self.table.lock();
        let Table { files, held: all, host: hosts, .. } = &mut *table;
        let Some(held) = files.get_mut(&key) else { return Ok(()) };
        let before = held.len();
        let inside = |h: &Held| h.owner == owner && h.range.start < range.start && h.range.end > range.end;
        if (before >= FILE_MAX || *all >= ALL_MAX) && held.iter().any(inside) {
            return Err(Refusal::Full);
        }
        let released = cut(held, owner, &range);
        *all = all.saturating_add(held.len()).saturating_sub(before);
        if released && let Some(fd) = hosts.get(&key) {
            let others = held.iter().map(|h| h.range).filter(|other| other.meets(&range));
            self.host.unlock(fd, range, others.collect());
        }
        let mut last = None;
        if held.is_empty() {
            files.remove(&key);
            last = hosts.remove(&key);
        }
        drop(table);
        drop(last);
        if released {
            self.queue.wake(Ready::OUT);
        }
        Ok(())
    }

    /// Releases all that the owner holds of a file.
    pub fn release(&self, key: Key, owner: Owner) {
        // Nothing is split, so nothing can be too many.
        let _ = self.unlock(key, owner, Range::ALL);
    }

    /// Notes that `waiter` waits for `holder`. None: that would close a circle.
    pub fn wait(self: &Arc<Self>, waiter: Owner, holder: Owner) -> Option<Waiting> {
        let mut table = self.table.lock();
        if table.leads(holder, waiter) {
            return None;
        }
        let id = table.last_wait;
        table.last_wait = id.wrapping_add(1);
        table.waits.push(Edge { id, waiter, holder });
        Some(Waiting { locks: self.clone(), id })
    }
}

fn stands_in_way(held: &Held, owner: Owner, range: &Range) -> bool {
    held.owner != owner && held.range.meets(range) && (held.range.write || range.write)
}

/// Takes the range out of the owner's locks, splitting them. Whether there was anything.
fn cut(held: &mut Vec<Held>, owner: Owner, range: &Range) -> bool {
    let mut rest = Vec::new();
    let before = held.len();
    held.retain(|h| {
        if h.owner != owner || !h.range.meets(range) {
            return true;
        }
        if let Some(end) = range.start.checked_sub(1).filter(|end| h.range.start <= *end) {
            rest.push(Held { range: Range { end, ..h.range }, ..*h });
        }
        if let Some(start) = range.end.checked_add(1).filter(|start| *start <= h.range.end) {
            rest.push(Held { range: Range { start, ..h.range }, ..*h });
        }
        false
    });
    let cut = held.len() != before;
    held.extend(rest);
    cut
}

/// Puts a lock in, as one with those of the same kind that it touches.
fn merge(held: &mut Vec<Held>, mut new: Held) {
    held.retain(|h| {
        let touches = h.range.start <= new.range.end.saturating_add(1)
            && new.range.start <= h.range.end.saturating_add(1);
        let one = h.owner == new.owner && h.range.write == new.range.write && touches;
        if one {
            new.range.start = new.range.start.min(h.range.start);
            new.range.end = new.range.end.max(h.range.end);
        }
        !one
    });
    held.push(new);
}
