//! Blocked signals, and taking pending ones.

use super::UNMASKABLE;
use crate::task::Task;
use std::sync::atomic::Ordering;
use syscall_table::abi::sigaction::{SIGALRM, Siginfo};

/// The current mask.
pub fn get(task: &Task) -> u64 {
    task.signals.lock().mask
}

/// Lets the task change its mask by itself as long as nothing is pending.
pub(crate) fn lend(task: &Task) {
    if !task.answers_itself() {
        return;
    }
    let shared = task.process.pending.lock();
    let mut private = task.signals.lock();
    let pending = shared.queue.set() | private.queue.set();
    // Asked again: who puts filters on the task takes the mask back then, under the same lock.
    let quiet = pending == 0 && private.saved_mask.is_none();
    if quiet && !task.is_dead() && task.answers_itself() {
        task.signals.lend(&mut private);
    }
}

/// Replaces the mask; SIGKILL and SIGSTOP are left out of it.
pub fn set(task: &Task, mask: u64) {
    task.signals.lock().mask = mask & !UNMASKABLE;
    refresh(task);
}

/// For calls with a mask of their own (ppoll, pselect, epoll_pwait, sigsuspend): blocks `mask` until the call ends. May be
/// called again by later attempts. If a handler runs, it sees `mask` and returns to the old mask; else the old mask
/// comes back on the way to guest code, or before that by [`restore`].
pub fn set_temporary(task: &Task, mask: u64) {
    {
        let mut signals = task.signals.lock();
        if signals.saved_mask.is_none() {
            signals.saved_mask = Some(signals.mask);
        }
        signals.mask = mask & !UNMASKABLE;
    }
    refresh(task);
}

/// Ends a temporary mask: to be called when a call that set one returns a value or an error of its own.
pub fn restore(task: &Task) {
    let restored = {
        let mut signals = task.signals.lock();
        match signals.saved_mask.take() {
            Some(mask) => {
                signals.mask = mask;
                true
            }
            None => false,
        }
    };
    if restored {
        refresh(task);
    }
}

/// Pending signals, private and shared (sigpending(2): those blocked among them).
pub fn pending(task: &Task) -> u64 {
    let shared = task.process.pending.lock();
    let private = task.signals.lock();
    shared.queue.set() | private.queue.set()
}

/// Takes a pending signal of `wanted`, private ones first (sigtimedwait(2), signalfd(2)).
///
/// Register on [`Process::signal_wait`](crate::task::Process::signal_wait) before.
pub fn take(task: &Task, wanted: u64) -> Option<Siginfo> {
    loop {
        let (info, mark) = {
            let mut shared = task.process.pending.lock();
            let mut private = task.signals.lock();
            private.queue.take(wanted).or_else(|| shared.queue.take(wanted))?
        };
        refresh(task);
        if info.si_signo == SIGALRM {
            task.process.timers.alarm_taken();
        }
        match mark.map(|mark| mark.delivered()) {
            None => return Some(info),
            Some(Some(overrun)) => return Some(info.with_overrun(overrun)),
            // Its timer was set anew or deleted.
            Some(None) => {}
        }
    }
}

/// Recomputes whether the task must look at its signals.
pub(crate) fn refresh(task: &Task) {
    let shared = task.process.pending.lock();
    let private = task.signals.lock();
    let ready = (shared.queue.set() | private.queue.set()) & !private.mask != 0;
    task.attention.store(ready, Ordering::SeqCst);
}
