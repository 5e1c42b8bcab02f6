//! Descriptors on their way in AF_UNIX messages (SCM_RIGHTS): how many there are, and those that nobody can receive any
//! more because the sockets that carry them are only held by each other (unix(7)).

use super::socket::Socket;
use crate::sync::{Level, Lock};
use crate::vfs::file::File;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// So many sockets with descriptors are looked at whenever one is closed.
const FEW: usize = 256;

/// All descriptors on their way.
pub struct Flight {
    /// How many, by the user who sent them.
    by_user: Lock<HashMap<u32, usize>>,
    /// How many of them are AF_UNIX sockets.
    sockets: AtomicUsize,
    /// Sockets that were sent some.
    carriers: Lock<HashMap<u64, Weak<Socket>>>,
    /// Sockets closed or sent since the last look.
    events: AtomicUsize,
}

impl Default for Flight {
    fn default() -> Self {
        Flight {
            by_user: Lock::new(Level::Field, HashMap::new()),
            sockets: AtomicUsize::new(0),
            carriers: Lock::new(Level::Field, HashMap::new()),
            events: AtomicUsize::new(0),
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
        let mut next = Vec::new();
        for file in &files {
            let Some(inner) = socket(file) else { continue };
            let key = Arc::as_ptr(file).addr();
            held.push(key);
            let entry = self.files.entry(key).or_insert((inner.ino, 0, 0));
            entry.1 = entry.1.saturating_add(1);
            next.push(inner);
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
        drop(files);
        for socket in next.iter().chain(&waiting) {
            self.look_later(socket);
        }
    }

    fn look_later(&mut self, socket: &Arc<Socket>) {
        // As deep as a guest likes: not by recursion.
        PENDING.with_borrow_mut(|list| list.push(socket.clone()));
    }
}

thread_local! {
    static PENDING: std::cell::RefCell<Vec<Arc<Socket>>> = const { std::cell::RefCell::new(Vec::new()) };
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

    /// An AF_UNIX socket was closed, or sent: what nobody can receive any more is to be found. A look costs as much as there
    /// are sockets with descriptors, so that many events share one.
    pub(super) fn look(self: &Arc<Self>, closed: bool) {
        if self.sockets.load(Ordering::SeqCst) == 0 {
            return;
        }
        let events = self.events.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        let carriers = self.carriers.lock().len();
        let most = if closed && carriers <= FEW { 0 } else { carriers.max(FEW) / 4 };
        if events > most {
            self.events.store(0, Ordering::SeqCst);
            let flight = self.clone();
            crate::wait::later(Box::new(move || flight.collect()));
        }
    }

    /// Closes what nobody can receive. No lock may be held.
    fn collect(&self) {
        let carriers: Vec<Arc<Socket>> = {
            let mut carriers = self.carriers.lock();
            carriers.retain(|_, s| s.strong_count() > 0);
            carriers.values().filter_map(Weak::upgrade).collect()
        };
        let mut seen = Seen::default();
        PENDING.set(carriers);
        while let Some(socket) = PENDING.with_borrow_mut(Vec::pop) {
            seen.look(&socket);
        }
        // Held by messages alone: each as often on its way as there are references.
        let held: HashSet<u64> = seen
            .files
            .values()
            .filter(|(_, flying, references)| flying >= references)
            .map(|(ino, ..)| *ino)
            .collect();
        let waiting: HashSet<u64> =
            held.iter().filter_map(|ino| seen.waiting.get(ino)).flatten().copied().collect();
        let mut reached: HashSet<u64> = HashSet::new();
        let mut next: Vec<u64> = seen
            .sockets
            .keys()
            .filter(|ino| !held.contains(ino) && !waiting.contains(ino))
            .copied()
            .collect();
        while let Some(ino) = next.pop() {
            if !reached.insert(ino) {
                continue;
            }
            let files = seen.holds.get(&ino).into_iter().flatten();
            next.extend(files.filter_map(|key| seen.files.get(key)).map(|(ino, ..)| *ino));
            next.extend(seen.waiting.get(&ino).into_iter().flatten());
        }
        let mut lost = Vec::new();
        for (_, socket) in seen.sockets.iter().filter(|(ino, _)| !reached.contains(ino)) {
            let mut state = socket.state.lock();
            for message in &mut state.inbox {
                message.ancillary.charge = None;
                lost.push(std::mem::take(&mut message.ancillary.rights));
            }
        }
        drop(seen);
        drop(lost);
    }
}
