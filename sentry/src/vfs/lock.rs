//! Advisory locks on files: flock(2) and record locks (fcntl(2)).
//!
//! A table for each kind; both are by device and inode number. Whoever waits is woken at every release, which is simple and right:
//! lock queues are short.

use crate::sync::{Level, Lock};
use crate::wait::{Ready, WaitQueue};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whose a lock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A process (F_SETLK).
    Process(i32),
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

#[derive(Default)]
struct Table {
    files: HashMap<Key, Vec<Held>>,
    /// Process → the process whose lock it waits for.
    waits: HashMap<i32, i32>,
}

/// All locks of one kind.
pub struct Locks {
    table: Lock<Table>,
    queue: WaitQueue,
    count: AtomicUsize,
}

impl Default for Locks {
    fn default() -> Self {
        Locks {
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
        held.iter().find(|h| stands_in_way(h, owner, &range)).map(|h| (h.range, h.pid))
    }

    /// Takes the lock, replacing what the owner has there. Err: the process of a lock in the way.
    ///
    /// # Errors
    /// The process that holds it.
    pub fn lock(&self, key: Key, owner: Owner, pid: i32, range: Range) -> Result<(), i32> {
        let mut table = self.table.lock();
        let held = table.files.entry(key).or_default();
        if let Some(other) = held.iter().find(|h| stands_in_way(h, owner, &range)) {
            return Err(other.pid);
        }
        let shrinks = cut(held, owner, &range);
        merge(held, Held { owner, pid, range });
        table.waits.remove(&pid);
        self.count.fetch_add(1, Ordering::Relaxed);
        drop(table);
        // A lock that became shared lets others in.
        if shrinks {
            self.queue.wake(Ready::OUT);
        }
        Ok(())
    }

    /// Releases what the owner holds of the range.
    pub fn unlock(&self, key: Key, owner: Owner, range: Range) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut table = self.table.lock();
        let Some(held) = table.files.get_mut(&key) else { return };
        let released = cut(held, owner, &range);
        if held.is_empty() {
            table.files.remove(&key);
        }
        drop(table);
        if released {
            self.queue.wake(Ready::OUT);
        }
    }

    /// Whether any lock was ever taken.
    pub fn used(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Notes that `pid` waits for `holder`; whether that closes a circle.
    pub fn would_deadlock(&self, pid: i32, holder: i32) -> bool {
        let mut table = self.table.lock();
        let mut at = holder;
        for _ in 0..64 {
            if at == pid {
                return true;
            }
            match table.waits.get(&at) {
                Some(next) => at = *next,
                None => break,
            }
        }
        table.waits.insert(pid, holder);
        false
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
