//! The thread of a guest process that makes its threads and processes. It has no doorbell, or one without a listener, so what
//! it makes may have one of its own (a seccomp listener is inherited, and a thread can have only one).
//!
//! A process that a guest's fork makes is its task and nothing else: most of those never make anything. What does gets its
//! forker then, made by its task: the task's listener is closed, and it makes itself a new doorbell.

use crate::host::{self, raw};
use crate::layout::*;
use crate::task;
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
            CMD_TASK => match child(head) {
                // It reports itself.
                None => continue,
                Some(value) => value,
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
        let word = &task::slot(slot).listener;
        word.store(0x8000_0000 | (-tid) as u32, Release);
        host::futex_wake(word);
    }
    tid
}

/// A forker that a task made: it shows itself to whoever hears that task's doorbell, which is of no use to it from then on.
pub fn begin() -> ! {
    raw(DOORBELL.into(), [0; 6]);
    run()
}

/// Makes a process that is a task; `None`: it tells of itself.
fn child(head: &Head) -> Option<i64> {
    let fd = head.cmd_fd.load(Relaxed);
    let slot = head.cmd_slot.load(Relaxed) % SLOTS;
    let top = STACK + STACK_SIZE * (u64::from(slot) + 1);
    let frame = head.cmd_frame.load(Relaxed);
    // Below the frame lies what its handler was at when it rang, of which the child has no need.
    let stack = if frame == 0 { top } else { (frame - 256) & !15 };
    head.res_pidfd.store(NO_FD, Relaxed);
    // SAFETY: the child's stack is that of a task which is no other than itself there.
    let pid = unsafe { host::clone_task(CLONE_FORK_FLAGS, stack, head.res_pidfd.as_ptr(), fd, slot, frame) };
    raw(host::CLOSE, [fd.into(), 0, 0, 0, 0, 0]);
    if pid < 0 || frame != 0 { Some(pid) } else { None }
}

/// First code of a process that is a task, in its parent's shared area still. With a frame it has no word for anybody there.
pub unsafe extern "C" fn born(fd: u32, slot: u32, frame: u64) -> ! {
    let mut word = 0;
    if frame == 0 {
        let head = head();
        let seq = head.cmd_seq.load(Relaxed);
        let listener = task::bell();
        head.res_value.store(listener, Relaxed);
        head.res_seq.store(seq, Release);
        host::futex_wake(&head.res_seq);
        if listener < 0 {
            host::exit();
        }
        word = listener as u32 + 1;
    }
    if raw(host::MMAP, [CTL, CTL_SIZE, 3, 0x11, fd.into(), 0]) as u64 != CTL {
        host::exit();
    }
    raw(host::CLOSE, [fd.into(), 0, 0, 0, 0, 0]);
    if word != 0 {
        task::slot(slot).listener.store(word, Relaxed);
    }
    // SAFETY: the stack is this task's.
    unsafe { task::start(slot, frame) }
}

/// Forks; `None` in the child.
fn process(fd: u32) -> Option<i64> {
    let pidfd = &head().res_pidfd;
    pidfd.store(NO_FD, Relaxed);
    let pid = host::clone_process(CLONE_FORK_FLAGS, pidfd);
    if pid == 0 {
        // The parent's shared area is replaced before anything is read from it or written to it.
        if raw(host::MMAP, [CTL, CTL_SIZE, 3, 0x11, fd.into(), 0]) as u64 != CTL {
            host::exit();
        }
        raw(host::CLOSE, [fd.into(), 0, 0, 0, 0, 0]);
        return None;
    }
    raw(host::CLOSE, [fd.into(), 0, 0, 0, 0, 0]);
    Some(if pid < 0 { pid } else { 0 })
}
