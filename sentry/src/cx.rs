//! What a handler is given: the task, guest memory, waiting, and the record of what went wrong.

use crate::fail::{Block, Fail, Restart, SysResult};
use crate::kernel::Kernel;
use crate::results::Results;
use crate::run::Call;
use crate::task::Task;
use crate::vfs::file::File;
use crate::wait::{Listener, Ready, WaitQueue};
use platform::Port;
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::open::O_APPEND;
use syscall_table::abi::readv::{RWF_APPEND, RWF_NOAPPEND, RWF_NOSIGNAL, RWF_NOWAIT};
use syscall_table::errno::Errno;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// Context of one attempt of one system call.
pub struct Cx<'a> {
    /// The calling task.
    pub task: &'a Arc<Task>,
    /// The call: number, arguments, and what survives between attempts.
    pub call: &'a mut Call,
    /// RWF_ bits of the transfer under way (preadv2(2)).
    pub rwf: i32,
    /// How much of what is read has a place, as far as the space's records say: who would take more out of a stream
    /// answers EFAULT and leaves it there.
    pub room: usize,
    /// Where the time that is left is written when a signal ends the wait.
    pub(crate) left: Option<Left>,
    port: Option<&'a mut dyn Port>,
    /// Without a port: where results wait for the call's end.
    pub(crate) results: Option<&'a mut Results>,
}

/// A timeout that the kernel changes to what is left of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Left {
    /// A struct timespec at this address.
    Timespec(u64),
    /// A struct timeval.
    Timeval(u64),
}

impl<'a> Cx<'a> {
    pub(crate) fn new(task: &'a Arc<Task>, call: &'a mut Call, port: Option<&'a mut dyn Port>) -> Self {
        Cx { task, call, rwf: 0, room: usize::MAX, left: None, port, results: None }
    }

    /// The kernel.
    pub fn kernel(&self) -> &'a Arc<Kernel> {
        &self.task.kernel
    }

    /// The full port, for host calls and registers. Before anything irreversible was done: without a port the handler
    /// runs again from its start.
    ///
    /// # Errors
    /// `NeedPort` when this attempt has none.
    pub fn port(&mut self) -> SysResult<&mut dyn Port> {
        match &mut self.port {
            Some(port) if port.full() => Ok(&mut **port),
            _ => Err(Fail::NeedPort),
        }
    }

    /// The port for memory calls, which are left to the task where the platform can do that: they are made on its
    /// way back to guest code. `full`: a file is to be mapped.
    ///
    /// # Errors
    /// NeedPort.
    pub fn memory_port(&mut self, full: bool) -> SysResult<&mut dyn Port> {
        let Some(port) = &mut self.port else { return Err(Fail::NeedPort) };
        if full {
            // A tracer is to find what the program has.
            let watched = self.task.tracing.is_traced()
                || self.task.mm().watched.load(std::sync::atomic::Ordering::SeqCst);
            port.may_rewrite(!watched);
        }
        let able = port.defer() && !full;
        if able || port.full() { Ok(&mut **port) } else { Err(Fail::NeedPort) }
    }

    /// Whether a transfer must not wait: the description's O_NONBLOCK, or RWF_NOWAIT.
    pub fn hurries(&self, file: &File) -> bool {
        self.rwf & RWF_NOWAIT != 0 || file.nonblocking()
    }

    /// Whether a write goes to the end of the file: the description's O_APPEND, or RWF_APPEND.
    pub fn appends(&self, file: &File) -> bool {
        self.rwf & RWF_APPEND != 0 || (file.flags() & O_APPEND != 0 && self.rwf & RWF_NOAPPEND == 0)
    }

    /// A write to a pipe or socket that nobody reads: SIGPIPE, unless RWF_NOSIGNAL.
    pub fn sigpipe(&self) {
        if self.rwf & RWF_NOSIGNAL == 0 {
            crate::signal::send::sigpipe(self.task);
        }
    }

    /// Reads guest memory exactly.
    ///
    /// # Errors
    /// EFAULT.
    pub fn copy_in(&mut self, addr: u64, buf: &mut [u8]) -> SysResult<()> {
        if buf.is_empty() {
            return Ok(());
        }
        match &mut self.port {
            Some(port) => port.read_mem(addr, buf)?,
            None => {
                self.write_results();
                self.task.space().read(addr, buf)?;
            }
        }
        Ok(())
    }

    /// Writes guest memory exactly.
    ///
    /// # Errors
    /// EFAULT.
    pub fn copy_out(&mut self, addr: u64, data: &[u8]) -> SysResult<()> {
        if data.is_empty() {
            return Ok(());
        }
        match &mut self.port {
            Some(port) => {
                let left = self.task.leaves(&**port, addr, data.len()) && port.leave_write(addr, data);
                if !left {
                    port.write_mem(addr, data)?;
                }
            }
            None => {
                let task = self.task;
                if !self.results.as_mut().is_some_and(|results| results.put(task, addr, data)) {
                    self.write_results();
                    task.space().write(addr, data)?;
                }
            }
        }
        Ok(())
    }

    /// Without a port: what waits for the call's end is written before anything else is looked at.
    fn write_results(&mut self) {
        if let Some(results) = &mut self.results {
            results.write(self.task);
        }
    }

    /// Reads as much as is accessible, at least one byte.
    ///
    /// # Errors
    /// EFAULT if not even the first byte is.
    pub fn copy_in_some(&mut self, addr: u64, buf: &mut [u8]) -> SysResult<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let result = match &mut self.port {
            Some(port) => port.read_mem(addr, buf),
            None => {
                self.write_results();
                self.task.space().read(addr, buf)
            }
        };
        match result {
            Ok(()) => Ok(buf.len()),
            Err(fault) if fault.done > 0 => Ok(fault.done.min(buf.len())),
            Err(_) => Err(Errno::EFAULT.into()),
        }
    }

    /// What travelled with the call of the word at `addr`, which its task read after its last call had ended.
    pub(crate) fn known_u32(&mut self, addr: u64) -> Option<u32> {
        let known = self.port.as_mut()?.known(addr).get(..4)?;
        Some(u32::from_le_bytes(known.try_into().ok()?))
    }

    /// Reads one ABI value.
    ///
    /// # Errors
    /// EFAULT.
    pub fn read_value<T: FromBytes + FromZeros + IntoBytes>(&mut self, addr: u64) -> SysResult<T> {
        let mut value = T::new_zeroed();
        self.copy_in(addr, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Writes one ABI value.
    ///
    /// # Errors
    /// EFAULT.
    pub fn write_value<T: IntoBytes + Immutable>(&mut self, addr: u64, value: &T) -> SysResult<()> {
        self.copy_out(addr, value.as_bytes())
    }

    /// Reads a NUL-terminated string of at most `max` bytes, the NUL not counted.
    ///
    /// # Errors
    /// EFAULT; `too_long` when no NUL comes within `max + 1` bytes.
    pub fn read_cstr(&mut self, addr: u64, max: usize, too_long: Errno) -> SysResult<Vec<u8>> {
        let mut out = Vec::new();
        let mut at = addr;
        if let Some(port) = &mut self.port {
            let known = port.known(addr);
            let end = known.iter().position(|b| *b == 0);
            out.extend_from_slice(known.get(..end.unwrap_or(known.len())).unwrap_or_default());
            at = at.checked_add(known.len() as u64).ok_or(Errno::EFAULT)?;
            if out.len() > max {
                return Err(too_long.into());
            }
            if end.is_some() {
                return Ok(out);
            }
        }
        loop {
            // Up to the end of the page first: the string may end just before unmapped memory.
            let room = 4096 - (at & 4095) as usize;
            let mut chunk = [0u8; 256];
            let want = room.min(chunk.len());
            let part = chunk.get_mut(..want).unwrap_or_default();
            let got = self.copy_in_some(at, part)?;
            let part = part.get(..got).unwrap_or_default();
            if let Some(end) = part.iter().position(|b| *b == 0) {
                out.extend_from_slice(part.get(..end).unwrap_or_default());
                return if out.len() > max { Err(too_long.into()) } else { Ok(out) };
            }
            out.extend_from_slice(part);
            if out.len() > max {
                return Err(too_long.into());
            }
            at = at.checked_add(got as u64).ok_or(Errno::EFAULT)?;
        }
    }

    /// Reads a path: ENAMETOOLONG past 4,095 bytes; an empty path is returned as such.
    ///
    /// # Errors
    /// EFAULT, ENAMETOOLONG.
    pub fn read_path(&mut self, addr: u64) -> SysResult<Vec<u8>> {
        self.read_cstr(addr, 4095, Errno::ENAMETOOLONG)
    }

    /// Registers this call on a queue. Register first, then test the condition, then [`block`](Self::block).
    pub fn wait_on(&self, queue: &WaitQueue, mask: Ready) {
        let waiter: Arc<dyn Listener> = self.task.waiter.clone();
        queue.add(waiter, self.task.waiter.epoch(), mask, false);
    }

    /// As [`wait_on`](Self::wait_on); an exclusive wake-up stops at the first such waiter that uses it.
    pub fn wait_on_exclusive(&self, queue: &WaitQueue, mask: Ready) {
        let waiter: Arc<dyn Listener> = self.task.waiter.clone();
        queue.add(waiter, self.task.waiter.epoch(), mask, true);
    }

    /// Blocks until a registered queue fires.
    pub fn block<T>(&self, restart: Restart) -> SysResult<T> {
        Err(Fail::Block(Block { deadline: None, restart }))
    }

    /// Blocks until a registered queue fires or the deadline (see [`crate::time::now`]) has passed.
    pub fn block_until<T>(&self, deadline: Option<Duration>, restart: Restart) -> SysResult<T> {
        Err(Fail::Block(Block { deadline, restart }))
    }

    /// The deadline of this call: computed by `first` in the first attempt, the same in all later ones.
    pub fn deadline(&mut self, first: impl FnOnce() -> Option<Duration>) -> Option<Duration> {
        if let Some(kept) = self.call.deadline {
            return kept;
        }
        let deadline = first();
        self.call.deadline = Some(deadline);
        deadline
    }

    /// Writes what is left until the deadline to where the handler said. Linux ignores a fault here.
    pub(crate) fn write_left(&mut self, deadline: Option<Duration>) {
        let Some(deadline) = deadline else { return };
        let left = deadline.saturating_sub(crate::time::now());
        let _ = match self.left {
            Some(Left::Timespec(addr)) => self.write_value(addr, &crate::time::to_timespec(left)),
            Some(Left::Timeval(addr)) => self.write_value(addr, &crate::time::to_timeval(left)),
            None => Ok(()),
        };
    }

    /// State of the caller's own, by its type, that survives between attempts of the same call. Who counts progress takes
    /// it out first and puts it back when it blocks: a call may write several times.
    pub fn state<S: Default + Send + 'static>(&mut self) -> &mut S {
        let states = &mut self.call.state;
        let at = match states.iter().position(|s| s.is::<S>()) {
            Some(at) => at,
            None => {
                states.push(Box::<S>::default());
                states.len().saturating_sub(1)
            }
        };
        match states.get_mut(at).and_then(|s| s.downcast_mut::<S>()) {
            Some(state) => state,
            None => unreachable!("a state of this type is at this place"),
        }
    }

    /// Records a gap without ending the call (a flag that is accepted and has no effect here, say).
    pub fn note_gap(&self, detail: &str, errno: Errno) {
        self.kernel().report.gap(self.task, self.call.nr, detail, errno);
    }
}
