//! Learns that guest processes died, reaps them, tells their tasks.

use super::areas::Areas;
use super::process::Process;
use crate::cputime::LastUsage;
use crate::hostcalls;
use parking_lot::Mutex;
use rustix::event::epoll;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

type Watched = Mutex<HashMap<u64, Looked>>;

/// A process that is not reaped yet. What it has used is told even when nobody has the process any more.
#[derive(Clone)]
struct Looked {
    pidfd: Arc<OwnedFd>,
    last_usage: Arc<LastUsage>,
    process: Weak<Process>,
}

/// The reaper's side that others see.
pub struct Reaper {
    epoll: Arc<OwnedFd>,
    watched: Arc<Watched>,
    next: AtomicU64,
}

impl Reaper {
    /// A reaper without its thread.
    pub fn new() -> io::Result<Reaper> {
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let watched = Arc::new(Watched::default());
        Ok(Reaper { epoll, watched, next: AtomicU64::new(0) })
    }

    /// Starts its thread.
    pub fn start(&self, areas: &Arc<Areas>) {
        let (poll, seen, areas) = (self.epoll.clone(), self.watched.clone(), areas.clone());
        // Sinks hear of deaths on this thread.
        let thread = std::thread::Builder::new().name("reaper".into()).stack_size(512 * 1024);
        drop(thread.spawn(move || run(&poll, &seen, &areas)));
    }

    /// Looks after a process from now on.
    pub fn watch(&self, process: &Arc<Process>) -> io::Result<()> {
        let key = self.next.fetch_add(1, Relaxed);
        let looked = Looked {
            pidfd: process.pidfd.clone(),
            last_usage: process.last_usage.clone(),
            process: Arc::downgrade(process),
        };
        self.watched.lock().insert(key, looked);
        let added = epoll::add(
            &self.epoll,
            process.pidfd.as_fd(),
            epoll::EventData::new_u64(key),
            epoll::EventFlags::IN,
        );
        if added.is_err() {
            self.watched.lock().remove(&key);
        }
        Ok(added?)
    }

    /// Ends the reaper's thread.
    pub fn stop(&self) {
        if let Ok(event) = rustix::event::eventfd(1, rustix::event::EventfdFlags::CLOEXEC) {
            let _ = epoll::add(
                &self.epoll,
                event.as_fd(),
                epoll::EventData::new_u64(u64::MAX),
                epoll::EventFlags::IN,
            );
            // The set keeps a copy of what it watches only as long as the descriptor is open.
            std::mem::forget(event);
        }
    }
}

fn run(poll: &OwnedFd, watched: &Watched, areas: &Areas) {
    let mut events = Vec::with_capacity(16);
    loop {
        events.clear();
        match epoll::wait(poll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        for event in &events {
            let key = event.data.u64();
            if key == u64::MAX {
                return;
            }
            let Some(looked) = watched.lock().get(&key).cloned() else { continue };
            let Some((signal, usage)) = hostcalls::reap(looked.pidfd.as_fd()) else { continue };
            let _ = epoll::delete(poll, looked.pidfd.as_fd());
            watched.lock().remove(&key);
            looked.last_usage.set(usage);
            if let Some(process) = looked.process.upgrade() {
                process.on_exit(signal);
            }
        }
        areas.tidy();
    }
}
