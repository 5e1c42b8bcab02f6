//! How a process gets its forker when it first needs one: its only task makes it.

use super::port::{TrapPort, result};
use super::worker;
use crate::{CallError, Port, hostcalls};
use lazaret_shim::layout;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Relaxed, Release};

impl TrapPort<'_> {
    /// Makes the process's forker, if it has none. The task has another doorbell afterwards: a listener would be inherited by
    /// what the forker makes.
    pub(super) fn need_forker(&mut self) -> Result<(), CallError> {
        if self.bind.process.has_forker() {
            return Ok(());
        }
        self.flush()?;
        let bell = self.need_bell()?;
        let own = self.bind.tid.load(Relaxed) as i32;
        let processors = &self.task.rt.processors;
        let mut place = None;
        let together = processors.gather(own, &mut place);
        self.task.awaits(true);
        let made = self.make_forker(bell);
        self.task.awaits(false);
        drop(together);
        if place.is_some() {
            processors.release(own);
        }
        self.bind.process.set_forker(made?, place);
        Ok(())
    }

    /// Makes it; its thread id.
    fn make_forker(&mut self, bell: u64) -> Result<i32, CallError> {
        let bind = self.bind.clone();
        let slot = bind.words();
        self.put_batch(&[[layout::FORKER, 0, 0, 0, 0, 0, 0]]);
        if let Some(close) = self.close.take() {
            slot.rsp_close.store(close, Relaxed);
        }
        slot.rsp_kind.store(layout::REPLY_CALLS, Relaxed);
        slot.rsp_seq.store(self.seq, Release);
        let sent = hostcalls::notif_send(bind.listener().as_fd(), bell).is_ok();
        let Some((notif, forker)) = sent.then(|| worker::recv_both(&bind)).flatten() else {
            return Err(self.set_lost().into());
        };
        self.bell = Some(notif.id);
        self.seq = notif.args[0] as u32;
        let Some(forker) = forker else {
            result(slot.results[0].load(Relaxed))?;
            return Err(CallError::Errno(libc::EAGAIN));
        };
        slot.listener.store(0, Relaxed);
        slot.rsp_kind.store(layout::REPLY_BELL, Relaxed);
        slot.rsp_seq.store(self.seq, Release);
        bind.silence();
        let Ok(listener) = bind.process.listener(bind.slot) else {
            bind.process.destroy();
            return Err(self.set_lost().into());
        };
        bind.hear(listener);
        let Some(notif) = worker::recv(&bind) else {
            return Err(self.set_lost().into());
        };
        self.bell = Some(notif.id);
        self.seq = notif.args[0] as u32;
        Ok(forker as i32)
    }
}
