//! A host thread of a guest process, and where it is heard.

use super::process::Process;
use super::task::Task;
use crate::hostcalls;
use lazaret_shim::layout;
use parking_lot::{Mutex, RwLock};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

/// Who a host thread works for next.
#[derive(Default)]
pub enum Next {
    /// Its present task, or nobody yet.
    #[default]
    Open,
    /// This task, of which its worker learns by the first ring.
    Task(Arc<Task>),
    /// Nobody: the thread is dead.
    Dead,
}

/// What the word of a thread without a doorbell says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// It has a doorbell now.
    Bell,
    /// It calls exit or exit_group.
    Ends,
    /// Its process is dead.
    Gone,
    /// What no shim says.
    Bad,
}

/// How long a guest that has changed such a word by itself can keep its worker from seeing that it is dead.
const HOSTILE: Duration = Duration::from_secs(1);

/// A host thread made for a task.
pub struct Binding {
    /// Its process.
    pub process: Arc<Process>,
    /// Its slot.
    pub slot: u32,
    /// Where its doorbell rings.
    listener: RwLock<Arc<OwnedFd>>,
    /// Its thread id, 0 until it has rung once, unless it is its process's first.
    pub tid: AtomicU32,
    /// It has no doorbell yet: there is nothing to listen to but its word in the slot.
    mute: AtomicBool,
    /// Who comes after its task.
    pub next: Mutex<Next>,
}

impl Binding {
    /// One that rings there.
    pub fn new(process: Arc<Process>, slot: u32, listener: OwnedFd) -> Binding {
        let listener = RwLock::new(Arc::new(listener));
        let (tid, mute) = (AtomicU32::new(0), AtomicBool::new(false));
        Binding { process, slot, listener, tid, mute, next: Mutex::default() }
    }

    /// Its process's first thread, without a doorbell.
    pub fn into_mute(self) -> Binding {
        self.tid.store(self.process.pid as u32, Relaxed);
        self.mute.store(true, Relaxed);
        self
    }

    /// Where its doorbell rings.
    pub fn listener(&self) -> Arc<OwnedFd> {
        self.listener.read().clone()
    }

    /// Rings there from now on.
    pub fn hear(&self, listener: OwnedFd) {
        *self.listener.write() = Arc::new(listener);
    }

    /// Whether it has no doorbell yet.
    pub fn is_mute(&self) -> bool {
        self.mute.load(Relaxed)
    }

    /// Waits until a thread without a doorbell has one, and hears it from then on; or until it calls exit, or is dead.
    pub fn next_word(&self, before: u32) -> Word {
        let word = &self.words().listener;
        let now = loop {
            let now = word.load(Acquire);
            if now != before {
                break now;
            }
            if self.process.ended().is_some() {
                return Word::Gone;
            }
            // The reaper changes the word and wakes, but the guest might change it back.
            hostcalls::futex_wait(word, before, HOSTILE);
        };
        match now {
            layout::GONE => Word::Gone,
            layout::ENDS => Word::Ends,
            0 => Word::Bad,
            number => {
                // What holds its place in the table goes first.
                self.silence();
                match self.process.hear(self.slot, number.wrapping_sub(1)) {
                    Ok(listener) => self.hear(listener),
                    Err(_) => return Word::Bad,
                }
                self.mute.store(false, Relaxed);
                Word::Bell
            }
        }
    }

    /// Closes the listener, which ends the thread's waiting in its doorbell. Whatever it is answered with is to be in the slot.
    pub fn silence(&self) {
        // A descriptor that is none of a listener.
        *self.listener.write() = self.process.pidfd.clone();
    }

    /// Its control words.
    pub fn words(&self) -> &layout::Slot {
        self.process.ctl.slot(self.slot)
    }

    /// Where the task finds them.
    pub fn address(&self) -> u64 {
        layout::CTL + layout::SLOT_SIZE * u64::from(self.slot)
    }
}
