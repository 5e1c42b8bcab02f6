//! Host calls that a task's shim makes for the sentry: those that travel with an answer, and those that are waited for.

use super::port::{TrapPort, result};
use super::task::State;
use super::worker;
use crate::{CallError, Port, hostcalls};
use lazaret_shim::layout;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

const CLOSE: u64 = 3;

impl TrapPort<'_> {
    /// Puts what is left to the task into the slot.
    pub(super) fn hand_over(&mut self, st: &mut State) {
        if !self.queue.is_empty() {
            st.calls_first = true;
            self.put_batch(&[]);
        }
        if let Some(given) = self.held.take() {
            st.given = Some(given);
        }
    }

    /// Puts the queue and more calls into the slot; where the latter begin.
    pub(super) fn put_batch(&mut self, more: &[[u64; 7]]) -> usize {
        let slot = self.bind.words();
        let queued = self.queue.len();
        let closes = self.given.drain(..).map(|(_, fd)| [CLOSE, fd, 0, 0, 0, 0, 0]);
        let mut count = 0;
        for (to, from) in
            slot.calls.iter().zip(self.queue.drain(..).chain(more.iter().copied()).chain(closes))
        {
            for (word, value) in to.words.iter().zip(from) {
                word.store(value, Relaxed);
            }
            count += 1;
        }
        slot.rsp_calls.store(count, Relaxed);
        queued
    }

    /// Leaves calls that belong together to the task.
    pub(super) fn leave(&mut self, calls: &[[u64; 7]]) -> Result<(), CallError> {
        self.room(calls.len())?;
        self.queue.extend_from_slice(calls);
        Ok(())
    }

    /// Makes room for so many more calls in the batch.
    pub(super) fn room(&mut self, calls: usize) -> Result<(), CallError> {
        if self.queue.len() + self.given.len() + calls > layout::BATCH { self.flush() } else { Ok(()) }
    }

    /// Places a descriptor in the task's process until the batch that is being gathered has been run; its number there.
    pub(super) fn give(&mut self, file: &Arc<OwnedFd>) -> Result<u64, CallError> {
        if let Some((_, fd)) = self.given.iter().find(|(given, _)| Arc::ptr_eq(given, file)) {
            return Ok(*fd);
        }
        let bell = self.need_bell()?;
        if self.held.is_none()
            && let Some(number) = self.bind.process.number_for(self.bind.slot)
        {
            self.held = Some((file.clone(), number));
            self.given.push((file.clone(), number.into()));
            return Ok(number.into());
        }
        match hostcalls::notif_addfd(self.bind.listener().as_fd(), bell, file.as_fd()) {
            Ok(fd) => {
                self.given.push((file.clone(), fd.into()));
                Ok(fd.into())
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Err(self.set_lost().into()),
            Err(error) => Err(CallError::Errno(error.raw_os_error().unwrap_or(libc::EIO))),
        }
    }

    /// Runs a batch of host calls in the task's process, behind those that are left to it.
    pub(super) fn calls<const N: usize>(&mut self, batch: &[[u64; 7]; N]) -> Result<[i64; N], CallError> {
        self.room(N)?;
        let bell = self.need_bell()?;
        self.write_left();
        let first = self.put_batch(batch);
        let slot = self.bind.words();
        if let Some(close) = self.close.take() {
            slot.rsp_close.store(close, Relaxed);
        }
        slot.rsp_kind.store(layout::REPLY_CALLS, Relaxed);
        slot.rsp_seq.store(self.seq, Release);
        self.task.awaits(true);
        let bind = self.bind.clone();
        let sent = self.task.send(&bind, bell, self.held.take());
        let notif = if sent { worker::recv(&bind) } else { None };
        self.task.awaits(false);
        let Some(notif) = notif else {
            return Err(self.set_lost().into());
        };
        self.bell = Some(notif.id);
        self.seq = notif.args[0] as u32;
        let slot = bind.words();
        let value = |i: usize| slot.results.get(i).map_or(-1, |word| word.load(Relaxed));
        for i in 0..first {
            result(value(i))?;
        }
        Ok(std::array::from_fn(|i| value(first + i)))
    }

    pub(super) fn call(&mut self, nr: u64, args: [u64; 6]) -> Result<i64, CallError> {
        let [a, b, c, d, e, f] = args;
        if self.defer && matches!(nr, 9 | 10 | 11 | 28) {
            return self.leave(&[[nr, a, b, c, d, e, f]]).map(|()| 0);
        }
        let [value] = self.calls(&[[nr, a, b, c, d, e, f]])?;
        result(value)
    }
}
