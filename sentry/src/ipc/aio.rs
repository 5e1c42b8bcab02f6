//! Contexts of io_setup(2): what was asked and what came of it.
//!
//! Transfers are done when they are submitted, as Linux does with files that are read through the page cache; only a
//! poll waits. A context's id is the address of a page of its process, as in Linux, where it is the ring of results;
//! this page stays empty, so the C library asks by the call.

use crate::ipc::sysv::Counter;
use crate::sync::{Level, Lock};
use crate::vfs::file::File;
use crate::wait::{Listener, Ready, WaitQueue};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use syscall_table::abi::IoEvent;

/// Events of all contexts (fs.aio-max-nr).
pub const AIO_MAX_NR: usize = 65536;

/// Events of all contexts of all processes.
static EVENTS: Counter = Counter::new();

/// A poll that waits.
struct Poll {
    /// Where the request is: names it for io_cancel(2).
    iocb: u64,
    data: u64,
    context: std::sync::Weak<Context>,
    /// It is over, by an event or by io_cancel(2).
    over: AtomicBool,
}

/// A poll with its file, which stays open meanwhile. The poll does not hold the file itself: a wait queue may be the last
/// to drop a poll, under its lock.
type Waiting = (Arc<Poll>, Arc<File>);

#[derive(Default)]
struct State {
    done: VecDeque<IoEvent>,
    polls: Vec<Waiting>,
    /// Those that are over: dropped at the next call, since where they end no file may be closed.
    over: Vec<Waiting>,
}

/// One context.
pub struct Context {
    room: usize,
    state: Lock<State>,
    /// Woken when an event comes.
    pub queue: WaitQueue,
}

impl Drop for Context {
    fn drop(&mut self) {
        EVENTS.give(self.room);
    }
}

/// The contexts of an address space, by id.
pub struct Contexts {
    list: Lock<HashMap<u64, Arc<Context>>>,
}

impl Default for Contexts {
    fn default() -> Self {
        Contexts { list: Lock::new(Level::Object, HashMap::new()) }
    }
}

impl Contexts {
    /// The context with this id.
    pub fn find(&self, id: u64) -> Option<Arc<Context>> {
        self.list.lock().get(&id).cloned()
    }

    /// Gives a context an id.
    pub fn add(&self, id: u64, context: Arc<Context>) {
        let old = self.list.lock().insert(id, context);
        drop(old);
    }

    /// Takes a context out.
    pub fn remove(&self, id: u64) -> Option<Arc<Context>> {
        self.list.lock().remove(&id)
    }

    /// Takes all out.
    pub fn clear(&self) {
        let all = std::mem::take(&mut *self.list.lock());
        drop(all);
    }
}

impl Context {
    /// With room for so many events; None when there are too many.
    pub fn new(room: usize) -> Option<Arc<Context>> {
        if !EVENTS.take(room, AIO_MAX_NR) {
            return None;
        }
        let state = Lock::new(Level::Ready, State::default());
        Some(Arc::new(Context { room, state, queue: WaitQueue::new() }))
    }

    /// Whether one more request fits.
    pub fn has_room(&self) -> bool {
        let state = self.state.lock();
        state.done.len().saturating_add(state.polls.len()) < self.room
    }

    /// A request is done.
    pub fn complete(&self, event: IoEvent) {
        self.state.lock().done.push_back(event);
        self.queue.wake(Ready::IN);
    }

    /// Waits for an event of a file.
    pub fn poll(self: &Arc<Self>, file: &Arc<File>, wanted: Ready, iocb: u64, data: u64) {
        let poll = Arc::new(Poll { iocb, data, context: Arc::downgrade(self), over: AtomicBool::new(false) });
        self.state.lock().polls.push((poll.clone(), file.clone()));
        if let Some(queue) = file.ops.queue() {
            queue.add(poll.clone(), 0, wanted, false);
        }
        let now = file.ops.poll(file) & (wanted | Ready::ERR | Ready::HUP);
        if !now.is_empty() {
            poll.fire(0, now);
        }
    }

    /// io_cancel(2): whether the request waited.
    pub fn cancel(&self, iocb: u64) -> bool {
        let poll =
            self.state.lock().polls.iter().find(|(poll, _)| poll.iocb == iocb).map(|(poll, _)| poll.clone());
        poll.is_some_and(|poll| poll.fire(0, Ready::empty()))
    }

    /// Ends all polls without events.
    pub fn end(&self) {
        let mut state = self.state.lock();
        let (polls, over) = (std::mem::take(&mut state.polls), std::mem::take(&mut state.over));
        drop(state);
        polls.iter().for_each(|(poll, _)| poll.over.store(true, Ordering::SeqCst));
        drop((polls, over));
    }

    /// Takes up to `most` events if there are at least `least`.
    pub fn take(&self, least: usize, most: usize) -> Option<Vec<IoEvent>> {
        let mut state = self.state.lock();
        let over = std::mem::take(&mut state.over);
        let events = (state.done.len() >= least).then(|| {
            let count = most.min(state.done.len());
            state.done.drain(..count).collect()
        });
        drop(state);
        drop(over);
        events
    }
}

impl Listener for Poll {
    fn fire(&self, _: u64, mask: Ready) -> bool {
        let Some(context) = self.context.upgrade() else { return false };
        if self.over.swap(true, Ordering::SeqCst) {
            return false;
        }
        let mut state = context.state.lock();
        if let Some(at) = state.polls.iter().position(|(poll, _)| std::ptr::eq(&**poll, self)) {
            let poll = state.polls.swap_remove(at);
            state.over.push(poll);
        }
        state.done.push_back(IoEvent { data: self.data, obj: self.iocb, res: mask.bits().into(), res2: 0 });
        drop(state);
        context.queue.wake(Ready::IN);
        true
    }

    fn alive(&self, _: u64) -> bool {
        !self.over.load(Ordering::SeqCst)
    }
}
