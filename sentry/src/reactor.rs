//! One thread that waits for the host on behalf of all guests: descriptors and deadlines.
//!
//! The thread sleeps in epoll; it costs nothing while nothing happens.

use crate::time::Timers;
use crate::wait::{Ready, WaitQueue};
use rustix::event::epoll;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The reactor.
pub struct Reactor {
    epoll: OwnedFd,
    timer: OwnedFd,
    timers: Arc<Timers>,
    watches: parking_lot::Mutex<HashMap<u64, Arc<WaitQueue>>>,
    next: AtomicU64,
}

const TIMER: u64 = 0;

impl Reactor {
    /// Creates the reactor; [`run`](Self::run) is its thread's body.
    ///
    /// # Errors
    /// The host's errno.
    pub fn new(timers: Arc<Timers>) -> rustix::io::Result<Arc<Self>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = rustix::time::timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN)?;
        let reactor = Arc::new(Reactor {
            epoll,
            timer,
            timers: timers.clone(),
            watches: parking_lot::Mutex::new(HashMap::new()),
            next: AtomicU64::new(1),
        });
        let weak = Arc::downgrade(&reactor);
        timers.on_alarm(Box::new(move |at| {
            if let Some(reactor) = weak.upgrade() {
                reactor.set_timer(at);
            }
        }));
        Ok(reactor)
    }

    fn set_timer(&self, at: Option<std::time::Duration>) {
        let value = match at {
            Some(at) => {
                let at = at.max(std::time::Duration::from_nanos(1));
                Timespec { tv_sec: at.as_secs() as i64, tv_nsec: i64::from(at.subsec_nanos()) }
            }
            None => Timespec { tv_sec: 0, tv_nsec: 0 },
        };
        let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // A timerfd of our own with a valid time cannot fail.
        let _ = rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec);
    }

    /// Watches a host descriptor, edge-triggered: `queue` is woken with what became ready. Returns the watch's id.
    ///
    /// # Errors
    /// EPERM for descriptors that cannot be polled (regular files): those are always ready.
    pub fn watch(&self, fd: BorrowedFd<'_>, queue: Arc<WaitQueue>) -> rustix::io::Result<u64> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.watches.lock().insert(id, queue);
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::PRI
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        let added = epoll::add(&self.epoll, fd, epoll::EventData::new_u64(id), flags);
        if added.is_err() {
            self.watches.lock().remove(&id);
        }
        added.map(|()| id)
    }

    /// Ends a watch.
    pub fn unwatch(&self, fd: BorrowedFd<'_>, id: u64) {
        // The descriptor may be closed already, which ended the watch.
        let _ = epoll::delete(&self.epoll, fd);
        self.watches.lock().remove(&id);
    }

    /// The thread's body. Returns when epoll fails (the sentry is ending).
    pub fn run(self: Arc<Self>) {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(64);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            for event in &events {
                let id = event.data.u64();
                if id == TIMER {
                    let mut expirations = [0u8; 8];
                    let _ = rustix::io::read(self.timer.as_fd(), &mut expirations);
                    continue;
                }
                let queue = self.watches.lock().get(&id).cloned();
                if let Some(queue) = queue {
                    let flags = event.flags;
                    queue.wake(Ready::from_bits_retain(flags.bits() & 0xffff));
                }
            }
            self.timers.expire();
            crate::run::drain();
        }
    }
}
