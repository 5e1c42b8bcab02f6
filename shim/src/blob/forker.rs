//! The first thread of every guest process: it has no doorbell, so the threads and processes that it makes may
//! have one of their own (a seccomp listener is inherited, and a thread can have only one).

use crate::host::{self, raw};
use crate::layout::*;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

pub fn head() -> &'static Head {
    // SAFETY: boot mapped the shared area; all of it is atomics.
    unsafe { &*(CTL as *const Head) }
}

pub fn run() -> ! {
    let mut done = 0;
    loop {
        let head = head();
        let seq = head.cmd_seq.load(Acquire);
        if seq == done {
            host::futex_wait(&head.cmd_seq, seq);
            continue;
        }
        done = seq;
        let stale = head.cmd_close.load(Relaxed);
        if stale != 0 {
            raw(host::CLOSE, [u64::from(stale) - 1, 0, 0, 0, 0, 0]);
        }
        let value = match head.cmd_kind.load(Relaxed) {
            CMD_THREAD => thread(head.cmd_slot.load(Relaxed)),
            CMD_FORK => match process(head.cmd_fd.load(Relaxed)) {
                Some(value) => value,
                None => {
                    done = 0;
                    continue;
                }
            },
            _ => -22,
        };
        head.res_value.store(value, Relaxed);
        head.res_seq.store(seq, Release);
        host::futex_wake(&head.res_seq);
    }
}

fn thread(slot: u32) -> i64 {
    if slot >= SLOTS {
        return -22;
    }
    // SAFETY: the sentry gives each living task a slot of its own.
    let tid = unsafe { host::clone_thread(CLONE_THREAD_FLAGS, STACK + STACK_SIZE * (u64::from(slot) + 1)) };
    if tid < 0 {
        let word = &crate::task::slot(slot).listener;
        word.store(0x8000_0000 | (-tid) as u32, Release);
        host::futex_wake(word);
    }
    tid
}

/// Forks; `None` in the child.
fn process(fd: u32) -> Option<i64> {
    let mut pidfd = -1;
    let pid = host::clone_process(CLONE_FORK_FLAGS, &mut pidfd);
    if pid == 0 {
        // The parent's shared area is replaced before anything is read from it or written to it.
        if raw(host::MMAP, [CTL, CTL_SIZE, 3, 0x11, fd.into(), 0]) as u64 != CTL {
            host::exit();
        }
        raw(host::CLOSE, [fd.into(), 0, 0, 0, 0, 0]);
        return None;
    }
    raw(host::CLOSE, [fd.into(), 0, 0, 0, 0, 0]);
    Some(if pid < 0 { pid } else { pidfd.into() })
}
