//! Pending signals: standard ones once each, real-time ones queued.

use super::{SYNCHRONOUS, bit};
use std::collections::VecDeque;
use syscall_table::abi::sigaction::*;

/// Pending signals in order of arrival.
#[derive(Default, Clone)]
pub struct Queue {
    list: VecDeque<Siginfo>,
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
        let signal = info.si_signo;
        if signal < SIGRTMIN && self.set & bit(signal) != 0 {
            return;
        }
        self.set |= bit(signal);
        self.list.push_back(info);
    }

    /// Takes the next signal of `wanted`: synchronous ones first, then by number, then by arrival.
    pub fn take(&mut self, wanted: u64) -> Option<Siginfo> {
        let ready = self.set & wanted;
        let first = if ready & SYNCHRONOUS != 0 { ready & SYNCHRONOUS } else { ready };
        if first == 0 {
            return None;
        }
        let signal = first.trailing_zeros() as i32 + 1;
        let at = self.list.iter().position(|i| i.si_signo == signal)?;
        let info = self.list.remove(at);
        if !self.list.iter().any(|i| i.si_signo == signal) {
            self.set &= !bit(signal);
        }
        info
    }

    /// Drops all signals of a mask.
    pub fn flush(&mut self, mask: u64) {
        if self.set & mask != 0 {
            self.list.retain(|i| bit(i.si_signo) & mask == 0);
            self.set &= !mask;
        }
    }
}
