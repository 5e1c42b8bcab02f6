//! Descriptors on their way in AF_UNIX messages (SCM_RIGHTS): how many there are, and those that nobody can receive any
//! more because the sockets that carry them are only held by each other (unix(7)).

use super::socket::Socket;
use crate::sync::{Level, Lock};
use crate::vfs::file::File;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// A look costs a step for each descriptor on its way, and some for each socket that was sent one. So many steps does one
/// event pay for: a socket that is closed, and a message with descriptors.
const CLOSED: usize = 4096;
const SENT: usize = 16;
/// Steps of a socket, which may have messages without descriptors too.
const SOCKET: usize = 16;
/// A look that others disturb is begun anew so often; then the next event has another try.
const TRIES: usize = 4;

/// All descriptors on their way.
pub struct Flight {
    /// How many, by the user who sent them.
    by_user: Lock<HashMap<u32, usize>>,
    /// How many, by all users.
    descriptors: AtomicUsize,
    /// How many of them are AF_UNIX sockets.
    sockets: AtomicUsize,
    /// Sockets that were sent some.
    carriers: Lock<HashMap<u64, Weak<Socket>>>,
    /// Steps that events since the last look pay for.
    paid: AtomicUsize,
    /// Changes whenever something is taken out of a socket that may be what holds others: descriptors out of an inbox, or
    /// a connection out of a queue. What a look has seen of its sockets, one after the other, belongs together if it is
    /// the same before and after.
    taken: AtomicUsize,
}

impl Default for Flight {
    fn default() -> Self {
        Flight {
            by_user: Lock::new(Level::Field, HashMap::new()),
            descriptors: AtomicUsize::new(0),
            sockets: AtomicUsize::new(0),
            carriers: Lock::new(Level::Field, HashMap::new()),
            paid: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
        }
    }
}

/// Descriptors of one message on their way; they count until this is dropped.
pub struct Charge {
    flight: Arc<Flight>,
    user: u32,
    count: usize,
    sockets: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut by_user = self.flight.by_user.lock();
        if let Some(count) = by_user.get_mut(&self.user) {
            *count = count.saturating_sub(self.count);
            if *count == 0 {
                by_user.remove(&self.user);
            }
        }
        self.flight.descriptors.fetch_sub(self.count, Ordering::SeqCst);
        self.flight.sockets.fetch_sub(self.sockets, Ordering::SeqCst);
    }
}

/// The AF_UNIX socket of a description.
fn socket(file: &Arc<File>) -> Option<Arc<Socket>> {
    let ops: Arc<dyn Any + Send + Sync> = file.ops.clone();
    ops.downcast::<Socket>().ok().filter(|s| s.family == syscall_table::abi::AF_UNIX)
}

/// What the sockets looked at hold.
#[derive(Default)]
struct Seen {
    /// Sockets that have messages with descriptors, by number, with the descriptions (by address) in them.
    holds: HashMap<u64, Vec<usize>>,
    /// Descriptions of sockets: the socket's number, how often on its way, references in all.
    files: HashMap<usize, (u64, usize, usize)>,
    /// Connections that wait at a socket.
    waiting: HashMap<u64, Vec<u64>>,
    sockets: HashMap<u64, Arc<Socket>>,
    /// Those to look at yet: as deep as a guest likes, so not by recursion.
    pending: Vec<Arc<Socket>>,
}

impl Seen {
    fn look(&mut self, socket_: &Arc<Socket>) {
        if self.sockets.contains_key(&socket_.ino) {
            return;
        }
        self.sockets.insert(socket_.ino, socket_.clone());
        let (files, waiting) = {
            let state = socket_.state.lock();
            let rights = state.inbox.iter().flat_map(|message| message.ancillary.rights.iter());
            (
                rights.cloned().collect::<Vec<_>>(),
                state.backlog.as_ref().map(|b| b.sockets()).unwrap_or_default(),
            )
        };
        let mut held = Vec::new();
        for file in &files {
            let Some(inner) = socket(file) else { continue };
            let key = Arc::as_ptr(file).addr();
            held.push(key);
            let entry = self.files.entry(key).or_insert((inner.ino, 0, 0));
            entry.1 = entry.1.saturating_add(1);
            self.pending.push(inner);
        }
        let mut own: HashMap<usize, usize> = HashMap::new();
        for file in &files {
            *own.entry(Arc::as_ptr(file).addr()).or_insert(0) += 1;
        }
        for file in &files {
            if let Some(entry) = self.files.get_mut(&Arc::as_ptr(file).addr()) {
                // Less what this look itself holds just now.
                let own = own.get(&Arc::as_ptr(file).addr()).copied().unwrap_or(0);
                entry.2 = Arc::strong_count(file).saturating_sub(own);
            }
        }
        self.holds.insert(socket_.ino, held);
        self.waiting.insert(socket_.ino, waiting.iter().map(|s| s.ino).collect());
        self.pending.extend(waiting);
    }

    /// Those that nobody has, and nobody can receive.
    fn lost(&self) -> Vec<&Arc<Socket>> {
        // Held by messages alone: each as often on its way as there are references.
        let held: HashSet<u64> = self
            .files
            .values()
            .filter(|(_, flying, references)| flying >= references)
            .map(|(ino, ..)| *ino)
            .collect();
        let waiting: HashSet<u64> = self.waiting.values().flatten().copied().collect();
        let mut reached: HashSet<u64> = HashSet::new();
        let roots = self.sockets.keys().filter(|ino| !held.contains(ino) && !waiting.contains(ino));
        let mut next: Vec<u64> = roots.copied().collect();
        while let Some(ino) = next.pop() {
            if !reached.insert(ino) {
                continue;
            }
            let files = self.holds.get(&ino).into_iter().flatten();
            next.extend(files.filter_map(|key| self.files.get(key)).map(|(ino, ..)| *ino));
            next.extend(self.waiting.get(&ino).into_iter().flatten());
        }
        self.sockets.iter().filter(|(ino, _)| !reached.contains(ino)).map(|(_, socket)| socket).collect()
    }
}

impl Flight {
    /// Counts descriptors that a user sends, as long as they are no more than `limit`. None: they are.
    pub fn charge(self: &Arc<Self>, user: u32, files: &[Arc<File>], limit: Option<u64>) -> Option<Charge> {
        let mut by_user = self.by_user.lock();
        let count = by_user.entry(user).or_insert(0);
        if limit.is_some_and(|limit| *count as u64 > limit) {
            return None;
        }
        *count = count.saturating_add(files.len());
        drop(by_user);
        self.descriptors.fetch_add(files.len(), Ordering::SeqCst);
        let sockets = files.iter().filter(|file| socket(file).is_some()).count();
        self.sockets.fetch_add(sockets, Ordering::SeqCst);
        Some(Charge { flight: self.clone(), user, count: files.len(), sockets })
    }

    /// Notes a socket that was sent some.
    pub(super) fn carries(&self, socket: &Arc<Socket>) {
        let mut carriers = self.carriers.lock();
        if carriers.len() >= 64 && carriers.len().is_power_of_two() {
            carriers.retain(|_, s| s.strong_count() > 0);
        }
        carriers.insert(socket.ino, Arc::downgrade(socket));
    }

    /// Something was taken out of a socket, whose state is locked.
    pub(super) fn took(&self) {
        self.taken.fetch_add(1, Ordering::SeqCst);
    }

    /// An AF_UNIX socket was closed, or sent: what nobody can receive any more is to be found, as soon as events have paid
    /// for it.
    pub(super) fn look(self: &Arc<Self>, closed: bool) {
        if self.sockets.load(Ordering::SeqCst) == 0 {
            return;
        }
        let pays = if closed { CLOSED } else { SENT };
        let paid = self.paid.fetch_add(pays, Ordering::SeqCst).saturating_add(pays);
        let carriers = self.carriers.lock().len();
        let price = self.descriptors.load(Ordering::SeqCst).saturating_add(carriers.saturating_mul(SOCKET));
        if paid >= price {
            self.paid.store(0, Ordering::SeqCst);
            let flight = self.clone();
            crate::wait::later(Box::new(move || flight.collect()));
        }
    }

    /// Closes what nobody can receive. No lock may be held.
    fn collect(&self) {
        let done = (0..TRIES).any(|_| self.collect_once());
        if !done {
            self.paid.fetch_add(self.descriptors.load(Ordering::SeqCst), Ordering::SeqCst);
        }
    }

    /// False: somebody took something meanwhile, and what was seen may be wrong.
    fn collect_once(&self) -> bool {
        let taken = self.taken.load(Ordering::SeqCst);
        let mut seen = Seen::default();
        {
            let mut carriers = self.carriers.lock();
            carriers.retain(|_, s| s.strong_count() > 0);
            seen.pending.extend(carriers.values().filter_map(Weak::upgrade));
        }
        while let Some(socket) = seen.pending.pop() {
            seen.look(&socket);
        }
        let lost = seen.lost();
        if self.taken.load(Ordering::SeqCst) != taken {
            return lost.is_empty();
        }
        // Nobody had them, so nobody can take them now either.
        let mut rights = Vec::new();
        for socket in lost {
            let mut state = socket.state.lock();
            for message in &mut state.inbox {
                message.ancillary.charge = None;
                rights.push(std::mem::take(&mut message.ancillary.rights));
            }
        }
        drop(seen);
        drop(rights);
        true
    }
}
