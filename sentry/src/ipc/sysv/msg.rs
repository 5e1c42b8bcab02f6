//! Message queues (msgget(2)).

use super::{Counter, Object, Perm, now};
use crate::fail::SysResult;
use crate::sync::{Guard, Level, Lock};
use crate::task::pidns::{Name, PidNs};
use crate::task::userns::UserNs;
use crate::wait::{Ready, WaitQueue};
use std::collections::VecDeque;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Most queues (kernel.msgmni).
pub const MSGMNI: usize = 32000;
/// Largest message (kernel.msgmax).
pub const MSGMAX: usize = 8192;
/// Bytes of a queue (kernel.msgmnb).
pub const MSGMNB: u64 = 16384;
/// Bytes of all messages, with [`COST`] for each: past it msgsnd(2) is out of memory.
const BYTES: usize = 64 << 20;
/// What a message costs beside its text.
const COST: usize = 64;

/// A message.
#[derive(Clone)]
pub struct Message {
    /// Its type, above 0.
    pub kind: i64,
    /// Its text.
    pub text: Vec<u8>,
}

/// Which message msgrcv(2) takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The first.
    Any,
    /// The first of this type.
    Type(i64),
    /// The first of another type.
    Except(i64),
    /// The first of the lowest type up to this.
    UpTo(i64),
    /// The one at this place, left where it is (MSG_COPY).
    Copy(i64),
}

/// What a queue holds.
pub struct State {
    /// Owners and mode.
    pub perm: Perm,
    /// Bytes that it may hold.
    pub qbytes: u64,
    stime: i64,
    rtime: i64,
    ctime: i64,
    lspid: Name,
    lrpid: Name,
    bytes: u64,
    messages: VecDeque<Message>,
    removed: bool,
}

/// A queue.
pub struct Queue {
    state: Lock<State>,
    queue: WaitQueue,
}

impl Object for Queue {
    fn perm(&self) -> Perm {
        self.state.lock_peer().perm
    }

    fn is_gone(&self) -> bool {
        false
    }
}

impl State {
    /// IPC_SET.
    pub fn set(&mut self, new: &IpcPerm, qbytes: u64) {
        self.perm.set(new);
        self.qbytes = qbytes;
        self.ctime = now();
    }

    /// Messages and their bytes.
    pub fn held(&self) -> (usize, u64) {
        (self.messages.len(), self.bytes)
    }

    /// IPC_STAT, as it is seen from these namespaces.
    pub fn stat(&self, id: i32, ns: &UserNs, pidns: &PidNs) -> Msqid {
        Msqid {
            msg_perm: self.perm.abi(id, ns),
            msg_stime: self.stime,
            msg_rtime: self.rtime,
            msg_ctime: self.ctime,
            msg_cbytes: self.bytes,
            msg_qnum: self.messages.len() as u64,
            msg_qbytes: self.qbytes,
            msg_lspid: self.lspid.in_ns(pidns),
            msg_lrpid: self.lrpid.in_ns(pidns),
            ..zerocopy::FromZeros::new_zeroed()
        }
    }

    fn find(&self, wanted: Wanted) -> Option<usize> {
        let mut all = self.messages.iter().enumerate();
        match wanted {
            Wanted::Any => all.next().map(|(at, _)| at),
            Wanted::Type(kind) => all.find(|(_, m)| m.kind == kind).map(|(at, _)| at),
            Wanted::Except(kind) => all.find(|(_, m)| m.kind != kind).map(|(at, _)| at),
            Wanted::UpTo(most) => {
                // The first of equal ones.
                all.filter(|(_, m)| m.kind <= most).min_by_key(|(at, m)| (m.kind, *at)).map(|(at, _)| at)
            }
            Wanted::Copy(at) => usize::try_from(at).ok().filter(|at| *at < self.messages.len()),
        }
    }
}

impl Queue {
    /// An empty one.
    pub fn new(perm: Perm) -> Queue {
        let state = State {
            perm,
            qbytes: MSGMNB,
            stime: 0,
            rtime: 0,
            ctime: now(),
            lspid: Name::default(),
            lrpid: Name::default(),
            bytes: 0,
            messages: VecDeque::new(),
            removed: false,
        };
        Queue { state: Lock::new(Level::Object, state), queue: WaitQueue::new() }
    }

    /// Its contents.
    #[track_caller]
    pub fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// Woken at every change.
    pub fn queue(&self) -> &WaitQueue {
        &self.queue
    }

    /// Something changed.
    pub fn wake(&self) {
        self.queue.wake(Ready::IN);
    }

    /// IPC_RMID. Returns what was counted for its messages.
    pub fn remove(&self) -> usize {
        let mut state = self.state.lock();
        state.removed = true;
        let messages = std::mem::take(&mut state.messages);
        drop(state);
        self.wake();
        messages.iter().map(|m| m.text.len().saturating_add(COST)).sum()
    }

    /// Appends a message if there is room; whether there was.
    ///
    /// # Errors
    /// EIDRM, ENOMEM.
    pub fn send(&self, message: &Message, by: &Name, count: &Counter) -> SysResult<bool> {
        let mut state = self.state.lock();
        if state.removed {
            return Err(Errno::EIDRM.into());
        }
        let bytes = state.bytes.saturating_add(message.text.len() as u64);
        if bytes > state.qbytes || state.messages.len() as u64 + 1 > state.qbytes {
            return Ok(false);
        }
        if !count.take(message.text.len().saturating_add(COST), BYTES) {
            return Err(Errno::ENOMEM.into());
        }
        state.bytes = bytes;
        state.messages.push_back(message.clone());
        state.lspid = by.clone();
        state.stime = now();
        drop(state);
        self.wake();
        Ok(true)
    }

    /// Takes a message of at most `room` bytes, or with `cut` any; None if there is none.
    ///
    /// # Errors
    /// EIDRM, E2BIG.
    pub fn receive(
        &self,
        wanted: Wanted,
        room: usize,
        cut: bool,
        by: &Name,
        count: &Counter,
    ) -> SysResult<Option<Message>> {
        let mut state = self.state.lock();
        if state.removed {
            return Err(Errno::EIDRM.into());
        }
        let Some(at) = state.find(wanted) else { return Ok(None) };
        let len = state.messages.get(at).map_or(0, |m| m.text.len());
        if len > room && !cut {
            return Err(Errno::E2BIG.into());
        }
        if matches!(wanted, Wanted::Copy(_)) {
            return Ok(state.messages.get(at).cloned());
        }
        let message = state.messages.remove(at);
        state.bytes = state.bytes.saturating_sub(len as u64);
        state.lrpid = by.clone();
        state.rtime = now();
        drop(state);
        count.give(len.saturating_add(COST));
        self.wake();
        Ok(message)
    }
}
