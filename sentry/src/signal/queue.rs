//! Pending signals: standard ones once each, real-time ones and those of timers queued.

use super::{SYNCHRONOUS, bit};
use crate::time::posix::Mark;
use std::collections::VecDeque;
use syscall_table::abi::sigaction::*;

#[derive(Clone)]
struct Entry {
    info: Siginfo,
    /// Of a signal that a timer sent.
    mark: Option<Mark>,
}

/// Pending signals in order of arrival.
#[derive(Default, Clone)]
pub struct Queue {
    list: VecDeque<Entry>,
    set: u64,
}

impl Queue {
    /// The pending signals as a mask.
    pub fn set(&self) -> u64 {
        self.set
    }

    /// Signals queued.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a signal. A standard signal that is pending already is not queued again.
    pub fn push(&mut self, info: Siginfo) {
        if info.si_signo < SIGRTMIN && self.set & bit(info.si_signo) != 0 {
            return;
        }
        self.set |= bit(info.si_signo);
        self.list.push_back(Entry { info, mark: None });
    }

    /// Adds a timer's signal, whatever else is pending: each timer has a place of its own, at most one at a time.
    pub fn push_timer(&mut self, info: Siginfo, mark: Mark) {
        self.set |= bit(info.si_signo);
        self.list.push_back(Entry { info, mark: Some(mark) });
    }

    /// Takes the next signal of `wanted`: synchronous ones first, then by number, then by arrival.
    pub fn take(&mut self, wanted: u64) -> Option<(Siginfo, Option<Mark>)> {
        let ready = self.set & wanted;
        let first = if ready & SYNCHRONOUS != 0 { ready & SYNCHRONOUS } else { ready };
        if first == 0 {
            return None;
        }
        let signal = first.trailing_zeros() as i32 + 1;
        let at = self.list.iter().position(|e| e.info.si_signo == signal)?;
        let entry = self.list.remove(at)?;
        if !self.list.iter().any(|e| e.info.si_signo == signal) {
            self.set &= !bit(signal);
        }
        Some((entry.info, entry.mark))
    }

    /// Some of the pending signals, in order of arrival.
    pub fn infos(&self, skip: usize, count: usize) -> Vec<Siginfo> {
        self.list.iter().skip(skip).take(count).map(|entry| entry.info).collect()
    }

    /// Drops all signals of a mask. Takes `Object` locks.
    pub fn flush(&mut self, mask: u64) {
        if self.set & mask != 0 {
            self.list.retain(|e| {
                let kept = bit(e.info.si_signo) & mask == 0;
                if let Some(mark) = e.mark.as_ref().filter(|_| !kept) {
                    mark.dropped();
                }
                kept
            });
            self.set &= !mask;
        }
    }
}
