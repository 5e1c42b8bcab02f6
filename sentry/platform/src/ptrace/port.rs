//! Access to a stopped task.

use super::space::Process;
use super::task::{Stopped, Task};
use super::tracer::Tracer;
use super::waits::CloneError;
use super::{host, setup};
use crate::cputime::RUSAGE_LEN;
use crate::memcalls::{mremap_flags, range};
use crate::trap::xstate;
use crate::{CallError, Gone, HostErrno, MemFault, NewTask, Port, Regs, Space, TaskSink, XState, memcalls};
use lazaret_shim::layout;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

const PAGE: u64 = 4096;

/// The port that the ptrace platform hands to sinks, always a full one.
pub struct PtracePort<'a> {
    tracer: &'a mut Tracer,
    task: &'a Arc<Task>,
    /// The task's host thread.
    pub tid: i32,
    space: Arc<Process>,
    /// What the task goes on with.
    pub stopped: Stopped,
    /// The call was finished while an event was being handled, and its value is in the registers already.
    pub finished: bool,
    /// The signal that ended the thread, if the port noticed that it did.
    pub lost: Option<i32>,
}

impl<'a> PtracePort<'a> {
    /// For a task that is stopped.
    pub fn new(
        tracer: &'a mut Tracer,
        task: &'a Arc<Task>,
        tid: i32,
        space: Arc<Process>,
        stopped: Stopped,
    ) -> PtracePort<'a> {
        PtracePort { tracer, task, tid, space, stopped, finished: false, lost: None }
    }

    fn load(&mut self) -> Result<Regs, Gone> {
        if self.lost.is_some() {
            return Err(Gone);
        }
        if let Some(regs) = self.stopped.regs {
            return Ok(regs);
        }
        let mut regs = host::regs(self.tid).map_err(|_| Gone)?;
        if self.stopped.at_call {
            // The host has put ENOSYS there.
            regs.rax = regs.orig_rax;
            self.stopped.changed = true;
        }
        if let Some(value) = self.stopped.rax.take() {
            regs.rax = value as u64;
            self.stopped.changed = true;
        }
        regs.orig_rax = self.stopped.orig_rax;
        self.stopped.regs = Some(regs);
        Ok(regs)
    }

    fn set_lost(&mut self, signal: i32) -> Gone {
        self.tracer.loss.check();
        self.tracer.lost(self.tid);
        self.lost = Some(signal);
        Gone
    }

    /// Makes the task's thread carry out a host call.
    fn call(&mut self, nr: u64, args: [u64; 6]) -> Result<i64, CallError> {
        let base = self.load()?;
        self.stopped.changed = true;
        match self.tracer.waits.inject(self.tid, &base, nr, args) {
            Ok((value @ -4095..=-1, _)) => {
                Err(CallError::Errno(HostErrno::try_from(-value).unwrap_or(libc::EIO)))
            }
            Ok((value, _)) => Ok(value),
            Err(signal) => Err(self.set_lost(signal).into()),
        }
    }

    fn clone(&mut self, flags: u64) -> Result<i32, CallError> {
        let base = self.load()?;
        self.stopped.changed = true;
        self.tracer.waits.clone(self.tid, &base, flags).map_err(|error| match error {
            CloneError::Errno(errno) => CallError::Errno(errno),
            CloneError::Dead(signal) => self.set_lost(signal).into(),
        })
    }

    /// Puts a copy of a descriptor into the task's process; its number there.
    fn give(&mut self, file: BorrowedFd<'_>) -> Result<u64, CallError> {
        if let Err(error) = self.tracer.fds.offer(self.tid, file) {
            return Err(CallError::Errno(error.raw_os_error().unwrap_or(libc::EIO)));
        }
        let number = self.call(layout::DOORBELL.into(), [0; 6]);
        self.tracer.fds.withdraw();
        Ok(number? as u64)
    }
}

impl Port for PtracePort<'_> {
    fn full(&self) -> bool {
        true
    }

    fn regs(&mut self) -> Result<Regs, Gone> {
        self.load()?;
        // Finished by another thread since the event began: its value shows from then on.
        if let Some(value) = self.task.lock().early.take() {
            self.stopped.set_rax(value);
            self.finished = true;
        }
        self.load()
    }

    fn set_regs(&mut self, regs: &Regs) -> Result<(), Gone> {
        self.load()?;
        self.stopped.regs = Some(*regs);
        self.stopped.changed = true;
        Ok(())
    }

    fn xstate(&mut self) -> Result<XState, Gone> {
        Ok(xstate::from_regset(&host::xstate(self.tid).map_err(|_| Gone)?))
    }

    fn set_xstate(&mut self, state: &XState) -> Result<(), CallError> {
        if !xstate::acceptable(&state.0) {
            return Err(CallError::Errno(libc::EINVAL));
        }
        let len = host::xstate(self.tid).map_err(|_| Gone)?.len();
        let set = host::set_xstate(self.tid, &xstate::to_regset(state, len));
        set.map_err(|error| match error.raw_os_error() {
            Some(libc::ESRCH) | None => CallError::Gone,
            Some(errno) => CallError::Errno(errno),
        })
    }

    fn read_mem(&mut self, addr: u64, buf: &mut [u8]) -> Result<(), MemFault> {
        self.space.read(addr, buf)
    }

    fn write_mem(&mut self, addr: u64, data: &[u8]) -> Result<(), MemFault> {
        self.space.write(addr, data)
    }

    fn mmap(
        &mut self,
        addr: u64,
        len: u64,
        prot: i32,
        flags: i32,
        file: Option<(&Arc<OwnedFd>, u64)>,
    ) -> Result<(), CallError> {
        range(addr, len)?;
        let (prot, flags) = (u64::from(prot as u32), u64::from(flags as u32 | libc::MAP_FIXED as u32));
        let Some((file, offset)) = file else {
            return self.call(9, [addr, len, prot, flags, u64::MAX, 0]).map(|_| ());
        };
        let fd = self.give(file.as_fd())?;
        let mapped = self.call(9, [addr, len, prot, flags, fd, offset]);
        self.call(3, [fd, 0, 0, 0, 0, 0])?;
        mapped.map(|_| ())
    }

    fn munmap(&mut self, addr: u64, len: u64) -> Result<(), CallError> {
        range(addr, len)?;
        self.call(11, [addr, len, 0, 0, 0, 0]).map(|_| ())
    }

    fn mprotect(&mut self, addr: u64, len: u64, prot: i32) -> Result<(), CallError> {
        range(addr, len)?;
        self.call(10, [addr, len, u64::from(prot as u32), 0, 0, 0]).map(|_| ())
    }

    fn mremap(
        &mut self,
        old: u64,
        old_len: u64,
        new_len: u64,
        new_addr: u64,
        dont_unmap: bool,
    ) -> Result<(), CallError> {
        range(old, old_len)?;
        range(new_addr, new_len)?;
        let flags = mremap_flags(old, new_addr, dont_unmap);
        self.call(25, [old, old_len, new_len, flags, new_addr, 0]).map(|_| ())
    }

    fn madvise(&mut self, addr: u64, len: u64, advice: i32) -> Result<(), CallError> {
        range(addr, len)?;
        let advice = memcalls::advice(advice)?;
        self.call(28, [addr, len, advice, 0, 0, 0]).map(|_| ())
    }

    fn membarrier(&mut self, command: u32) -> Result<(), CallError> {
        let command = memcalls::barrier(command)?;
        self.call(324, [command, 0, 0, 0, 0, 0]).map(|_| ())
    }

    fn fork(&mut self, start: &Regs, sink: Arc<dyn TaskSink>) -> Result<NewTask, CallError> {
        let child = self.clone(layout::CLONE_PARENT)?;
        let space = self.tracer.process(child)?;
        Ok(self.tracer.adopt(child, space, start, sink))
    }

    fn spawn(&mut self, start: &Regs, sink: Arc<dyn TaskSink>) -> Result<NewTask, CallError> {
        let child = self.clone(layout::CLONE_THREAD_FLAGS)?;
        self.space.enter();
        Ok(self.tracer.adopt(child, self.space.clone(), start, sink))
    }

    fn replace_space(&mut self, _trusted: bool) -> Result<Arc<dyn Space>, CallError> {
        if self.lost.is_some() {
            return Err(CallError::Gone);
        }
        let (tid, space) = self.tracer.fresh()?;
        let (old_tid, old) = (self.tid, std::mem::replace(&mut self.space, space.clone()));
        self.tid = tid;
        self.stopped =
            Stopped { regs: Some(Regs::default()), changed: true, orig_rax: u64::MAX, ..Stopped::default() };
        let mut st = self.task.lock();
        st.tid = tid;
        st.space = space.clone();
        drop(st);
        self.tracer.moved(old_tid, tid);
        self.tracer.retire(old_tid, &old);
        Ok(space)
    }

    fn mincore(&mut self, addr: u64, pages: &mut [u8]) -> Result<(), CallError> {
        let len = pages.len() as u64 * PAGE;
        range(addr, len)?;
        self.call(libc::SYS_mincore as u64, [addr, len, setup::ANSWERS, 0, 0, 0])?;
        self.space.read(setup::ANSWERS, pages).map_err(|_| CallError::Errno(libc::EFAULT))
    }

    fn rusage(&mut self, thread: bool) -> Result<crate::Rusage, CallError> {
        self.call(libc::SYS_getrusage as u64, [u64::from(thread), setup::ANSWERS, 0, 0, 0, 0])?;
        let mut bytes = [0; RUSAGE_LEN];
        self.space.read(setup::ANSWERS, &mut bytes).map_err(|_| CallError::Errno(libc::EFAULT))?;
        Ok(crate::cputime::from_bytes(&bytes))
    }

    fn single_step(&mut self, on: bool) -> Result<(), CallError> {
        if self.lost.is_some() {
            return Err(CallError::Gone);
        }
        self.stopped.step = on;
        Ok(())
    }
}
