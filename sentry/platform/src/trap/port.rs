//! Access to a stopped task.

use super::binding::Binding;
use super::ctl;
use super::data::{Carried, Left};
use super::lend;
use super::patch;
use super::process::{Copied, Process};
use super::task::{First, Given, Reply, State, Task};
use super::worker;
use super::xstate;
use crate::cputime::RUSAGE_LEN;
use crate::memcalls::{mremap_flags, range};
use crate::{
    CallError, Event, Gone, HostErrno, MemFault, NewTask, Port, Regs, Space, SyscallRequest, TaskSink, Token,
    XState, hostcalls, memcalls,
};
use lazaret_shim::layout::{self, MCTX_WORDS};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// Registers on their way back to a task.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    words: [u64; MCTX_WORDS],
    regs: Regs,
    bases: (bool, bool),
}

impl Kept {
    /// Puts them into the reply lines of a slot.
    pub fn store(&mut self, bind: &Binding) {
        let slot = bind.words();
        ctl::set_regs(&mut self.words, &self.regs);
        for (to, from) in slot.rsp_mctx.iter().zip(self.words) {
            to.store(from, Relaxed);
        }
        slot.rsp_fs.store(self.regs.fs_base, Relaxed);
        // A guest that has no use for GS lends it to the shim's gates, which want a doorbell.
        let lent = self.regs.gs_base == 0 && !bind.is_mute();
        let gs = if lent { bind.address() } else { self.regs.gs_base };
        slot.rsp_gs.store(gs, Relaxed);
        slot.rsp_bases.store(u32::from(self.bases.0) | u32::from(self.bases.1) << 1, Relaxed);
    }

    /// Sets rax.
    pub fn set_rax(&mut self, value: i64) {
        self.regs.rax = value as u64;
    }
}

/// The port that the trap platform hands to sinks.
pub struct TrapPort<'a> {
    pub(super) task: &'a Arc<Task>,
    pub(super) bind: Arc<Binding>,
    /// The pending notification; `None` for the poller, whose port is not full.
    pub(super) bell: Option<u64>,
    pub(super) seq: u32,
    orig_rax: u64,
    loaded: Option<Kept>,
    changed: bool,
    again: bool,
    lost: Option<i32>,
    pub(super) close: Option<u32>,
    /// Memory calls are left to the task.
    pub(super) defer: bool,
    /// The call came through a gate.
    light: bool,
    /// Sites of code that is mapped may be rewritten at once.
    pub(super) ahead: bool,
    /// A new program begins.
    begins: bool,
    /// More rewritten sites are to be put back for it than one batch has room for.
    cramped: bool,
    /// Those left so far.
    pub(super) queue: Vec<[u64; 7]>,
    /// Descriptors placed for them, with their numbers in the process.
    pub(super) given: Vec<(Arc<OwnedFd>, u64)>,
    /// The one of them that goes with the answer to the doorbell.
    pub(super) held: Option<Given>,
    /// Guest memory that came with the call.
    carried: Carried,
    /// What goes to guest memory with its answer.
    left: Left,
}

const TRAP_FLAG: u64 = 0x100;
const PAGE: u64 = 4096;
/// Call of a batch behind which answers of a batch of one may lie: room for a struct rusage, and for a byte of each of
/// `MINCORE_MAX` pages.
const UNUSED: usize = 8;

fn orig_rax(event: &Event) -> u64 {
    match event {
        Event::Syscall(request) => u64::from(request.nr),
        _ => u64::MAX,
    }
}

impl<'a> TrapPort<'a> {
    /// For a worker that has just received the notification `bell`.
    pub fn full(task: &'a Arc<Task>, bind: Arc<Binding>, bell: u64, seq: u32, event: &Event) -> TrapPort<'a> {
        let mut port = Self::hot(task, bind, seq, event);
        port.bell = Some(bell);
        let mut st = task.lock();
        match event {
            Event::Started => {
                let regs = st.start;
                port.begin(&regs);
            }
            Event::Again => {
                port.changed = st.kept.is_some();
                port.loaded = st.kept.take();
                port.orig_rax = st.orig_rax;
            }
            _ => {}
        }
        drop(st);
        port
    }

    /// For the poller.
    pub fn hot(task: &'a Arc<Task>, bind: Arc<Binding>, seq: u32, event: &Event) -> TrapPort<'a> {
        TrapPort {
            task,
            bind,
            bell: None,
            seq,
            orig_rax: orig_rax(event),
            loaded: None,
            changed: false,
            again: matches!(event, Event::Again),
            lost: None,
            close: None,
            defer: false,
            light: false,
            ahead: false,
            begins: false,
            cramped: false,
            queue: Vec::new(),
            given: Vec::new(),
            held: None,
            carried: Carried::default(),
            left: Left::default(),
        }
    }

    /// For a call with which so many bytes travel, as its shim says.
    pub fn carries(mut self, request: &SyscallRequest, len: u32) -> Self {
        self.carried = Carried::new(request, len);
        self.left = Left::new(request);
        if i64::from(request.nr) == libc::SYS_mprotect {
            let [start, len, ..] = request.args;
            self.cramped = self.bind.process.sites.lock().count(start, len) > patch::PUT_BACK;
        }
        self.carried.fetch(&self.bind.process.ctl, self.bind.slot);
        self.left.fetch(&self.bind.process.ctl, self.bind.slot);
        self
    }

    /// For a call that came through a gate.
    pub fn light(mut self) -> Self {
        self.light = true;
        self
    }

    /// Registers of a thread that has not been in guest code.
    fn begin(&mut self, regs: &Regs) {
        self.begin_from(ctl::mctx(self.bind.words()), regs);
    }

    /// Registers of one that begins from a frame with these.
    pub fn begin_from(&mut self, words: [u64; MCTX_WORDS], regs: &Regs) {
        self.loaded = Some(Kept { words, regs: *regs, bases: (true, true) });
        self.changed = true;
    }

    /// The process that the task is in.
    pub fn process(&self) -> &Arc<Process> {
        &self.bind.process
    }

    /// Where in guest memory a host call may put an answer: where the later calls of a batch would be. Such a batch has one.
    fn answers(&self) -> u64 {
        let within = std::mem::offset_of!(layout::Slot, calls) + UNUSED * size_of::<layout::Call>();
        layout::CTL + u64::from(self.bind.slot) * layout::SLOT_SIZE + within as u64
    }

    /// What was put there.
    fn take_answers(&self, bytes: &mut [u8]) {
        let words = self.bind.words().calls.iter().skip(UNUSED).flat_map(|call| call.words.iter());
        for (to, word) in bytes.chunks_mut(8).zip(words) {
            let word = word.load(Relaxed).to_ne_bytes();
            let len = to.len();
            to.copy_from_slice(&word[..len]);
        }
    }

    /// The task begins on a thread that another has had: what that one used is noted with the first answer.
    pub fn count_from_here(&mut self) {
        let within = std::mem::offset_of!(layout::Slot, used_before) as u64;
        let at = layout::CTL + u64::from(self.bind.slot) * layout::SLOT_SIZE + within;
        self.queue.push([libc::SYS_getrusage as u64, 1, at, 0, 0, 0, 0]);
    }

    /// What was noted.
    fn used_before(&self) -> crate::Rusage {
        let mut bytes = [0; RUSAGE_LEN];
        for (to, word) in bytes.chunks_mut(8).zip(&self.bind.words().used_before) {
            to.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        crate::cputime::from_bytes(&bytes)
    }

    /// The pending notification.
    pub fn bell(&self) -> Option<u64> {
        self.bell
    }

    /// The next event is an Again.
    pub fn set_again(&mut self) {
        self.again = true;
    }

    /// The request.
    pub fn seq(&self) -> u32 {
        self.seq
    }

    /// Registers are to be written back.
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// The task goes on with a new program.
    pub fn set_begins(&mut self) {
        self.begins = true;
    }

    /// Whether the task goes on with a new program.
    pub fn begins(&self) -> bool {
        self.begins
    }

    /// The signal that ended the process, if the port noticed that it did.
    pub fn lost(&self) -> Option<i32> {
        self.lost
    }

    /// Sets rax of the registers to go on with.
    pub fn set_rax(&mut self, value: i64) {
        self.load().set_rax(value);
        self.changed = true;
    }

    /// Puts changed registers into the slot; true if there are any.
    pub fn store(&mut self, st: &mut State) -> bool {
        self.hand_over(st);
        // A parent's descriptor of a new child, closed by the shim on its way out.
        if let Some(close) = self.close.take() {
            self.bind.words().rsp_close.store(close, Relaxed);
        }
        if !self.changed {
            return false;
        }
        let bind = self.bind.clone();
        self.load().store(&bind);
        self.changed = false;
        true
    }

    /// The answer to a call that gives this value.
    pub fn answer(&mut self, st: &mut State, value: i64) -> Reply {
        if self.changed {
            self.write_left();
        }
        if self.store(st) {
            Reply::Regs
        } else if self.left.close(&self.bind.process.ctl, self.bind.slot) {
            Reply::Data(value)
        } else {
            Reply::Return(value)
        }
    }

    /// Writes what was to go with the answer. What cannot be written any more is no loss: its memory has gone since it was
    /// looked at, as it might have a moment later.
    pub fn write_left(&mut self) {
        if self.left.is_empty() {
            return;
        }
        let Binding { process, slot, .. } = &*self.bind;
        self.left.take(&process.ctl, *slot, |addr, data| {
            let _ = process.write(addr, data);
        });
    }

    /// Keeps what a parked task will go on with.
    pub fn keep(&mut self, st: &mut State) {
        self.write_left();
        self.hand_over(st);
        if let Some(close) = self.close.take() {
            self.bind.words().rsp_close.store(close, Relaxed);
        }
        st.kept = if self.changed { self.loaded } else { None };
        st.orig_rax = self.orig_rax;
    }

    fn load(&mut self) -> &mut Kept {
        let (bind, orig_rax) = (&self.bind, self.orig_rax);
        self.loaded.get_or_insert_with(|| {
            let slot = bind.words();
            let words = ctl::mctx(slot);
            let gs = slot.req_gs.load(Relaxed);
            let gs = if gs == bind.address() { 0 } else { gs };
            let regs = ctl::regs(&words, slot.req_fs.load(Relaxed), gs, orig_rax);
            Kept { words, regs, bases: (false, false) }
        })
    }

    pub(super) fn need_bell(&self) -> Result<u64, Gone> {
        match (self.bell, self.lost) {
            (Some(bell), None) => Ok(bell),
            _ => Err(Gone),
        }
    }

    pub(super) fn set_lost(&mut self) -> Gone {
        self.task.rt.loss.check();
        let signal = self.bind.process.ended().unwrap_or(libc::SIGKILL);
        self.lost = Some(signal);
        Gone
    }

    /// A spare thread of the process that will begin with this task's extended state.
    fn spare(&mut self) -> Option<(Arc<Binding>, u64, u32)> {
        let at = self.load().words[MCTX_WORDS - 1];
        let process = self.bind.process.clone();
        let (bind, bell, seq) = process.unpark()?;
        let kept = self.bind.words().kept_xstate.load(Relaxed);
        if at != 0 && process.ctl.hand_on(self.bind.slot, bind.slot, kept) {
            if let Some(word) = bind.words().req_mctx.get(MCTX_WORDS - 1) {
                word.store(layout::data(bind.slot), Relaxed);
            }
            return Some((bind, bell, seq));
        }
        let state = if at == 0 { xstate::initial().0 } else { process.read_xstate(at).unwrap_or_default() };
        let to = layout::start_xstate(bind.slot);
        if !state.is_empty() && hostcalls::vm_write(process.pid, to, &state) == state.len() {
            if let Some(word) = bind.words().req_mctx.get(MCTX_WORDS - 1) {
                word.store(to, Relaxed);
            }
            return Some((bind, bell, seq));
        }
        // The guest has spoilt its frame or its stacks; what it gets then is an ordinary thread.
        process.park(&bind, bell, seq);
        None
    }

    /// Empties the space, in which no other task is. The mappings go with the next batch, and no guest code runs before.
    fn empty(&mut self) -> Arc<dyn Space> {
        let process = self.bind.process.clone();
        process.sites.lock().reset(&process.ctl);
        process.ctl.head().learns.store(1, Relaxed);
        self.queue.push([11, 0, layout::REGION_START, 0, 0, 0, 0]);
        lend::take_back(self.bind.words(), |_| true);
        if process.places.clear() {
            self.queue.push([11, layout::WINDOW, layout::WINDOW_SIZE, 0, 0, 0, 0]);
        }
        self.orig_rax = u64::MAX;
        self.begin(&Regs::default());
        if let Some(Kept { words: [.., xstate], .. }) = &mut self.loaded {
            // None: the initial one.
            *xstate = 0;
        }
        process
    }

    /// Where a new thread finds the extended state to begin with, and how much it is at most.
    fn start_xstate(&mut self) -> Option<(u64, u32)> {
        let at = self.load().words[MCTX_WORDS - 1];
        (at != 0).then(|| (at, xstate::usual() as u32))
    }

    /// Where the frame's extended state lies and how long it is, if it has one.
    fn frame_xstate(&mut self) -> Option<(u64, u32)> {
        let at = self.load().words[MCTX_WORDS - 1];
        if at == 0 {
            return None;
        }
        let mut legacy = [0; 512];
        if hostcalls::vm_read(self.bind.process.pid, at, &mut legacy) != legacy.len() {
            return None;
        }
        Some((at, xstate::length(&legacy) as u32))
    }
}

pub(super) fn result(value: i64) -> Result<i64, CallError> {
    match value {
        -4095..=-1 => Err(CallError::Errno(HostErrno::try_from(-value).unwrap_or(libc::EIO))),
        value => Ok(value),
    }
}

impl Port for TrapPort<'_> {
    fn full(&self) -> bool {
        self.bell.is_some()
    }

    fn defer(&mut self) -> bool {
        self.defer = self.bell.is_some() || !self.cramped;
        self.defer
    }

    fn deferred(&self) -> Option<Token> {
        (!self.queue.is_empty()).then(|| self.token())
    }

    fn token(&self) -> Token {
        Token { task: self.bind.slot, seq: self.seq }
    }

    fn flush(&mut self) -> Result<(), CallError> {
        self.write_left();
        if self.queue.is_empty() {
            return Ok(());
        }
        self.calls(&[]).map(|[]| ())
    }

    fn regs(&mut self) -> Result<Regs, Gone> {
        if self.again {
            // Somebody may have finished the call since its task was kicked.
            let early = self.task.lock().early.take();
            if let Some(value) = early {
                self.set_rax(value);
            }
        }
        Ok(self.load().regs)
    }

    fn set_regs(&mut self, regs: &Regs) -> Result<(), Gone> {
        let kept = self.load();
        kept.bases.0 |= kept.regs.fs_base != regs.fs_base;
        kept.bases.1 |= kept.regs.gs_base != regs.gs_base;
        kept.regs = *regs;
        self.changed = true;
        Ok(())
    }

    fn xstate(&mut self) -> Result<XState, Gone> {
        let at = self.load().words[MCTX_WORDS - 1];
        if at == 0 {
            return Ok(xstate::initial());
        }
        match self.bind.process.read_xstate(at) {
            Some(data) => Ok(XState(data)),
            None => Err(Gone),
        }
    }

    fn set_xstate(&mut self, state: &XState) -> Result<(), CallError> {
        if !xstate::acceptable(&state.0) {
            return Err(CallError::Errno(libc::EINVAL));
        }
        let at = match self.frame_xstate() {
            Some((at, len)) if len as usize == state.0.len() => at,
            // A fresh task has none yet: it gets a place in its own stack, below its frames.
            _ => layout::start_xstate(self.bind.slot),
        };
        if hostcalls::vm_write(self.bind.process.pid, at, &state.0) != state.0.len() {
            return Err(CallError::Gone);
        }
        let kept = self.load();
        if kept.words[MCTX_WORDS - 1] != at {
            kept.words[MCTX_WORDS - 1] = at;
            self.changed = true;
        }
        Ok(())
    }

    fn read_mem(&mut self, addr: u64, buf: &mut [u8]) -> Result<(), MemFault> {
        if let Some(known) = self.known(addr).get(..buf.len()) {
            buf.copy_from_slice(known);
            return Ok(());
        }
        self.flush().map_err(|_| MemFault { done: 0 })?;
        self.bind.process.read(addr, buf)
    }

    fn write_mem(&mut self, addr: u64, data: &[u8]) -> Result<(), MemFault> {
        self.carried = Carried::default();
        self.flush().map_err(|_| MemFault { done: 0 })?;
        self.bind.process.write(addr, data)
    }

    fn put_u32(&mut self, addr: u64, value: u32) {
        // The task takes a fault that it would take in any case.
        let below = addr.checked_add(4).is_some_and(|end| end <= layout::REGION_START);
        if !below || self.light || self.leave(&[[layout::STORE, addr, value.into(), 0, 0, 0, 0]]).is_err() {
            let _ = self.write_mem(addr, &value.to_le_bytes());
        }
    }

    fn known(&mut self, addr: u64) -> &[u8] {
        if !self.queue.is_empty() || !self.left.is_empty() {
            return &[];
        }
        self.carried.from(&self.bind.process.ctl, self.bind.slot, addr)
    }

    fn may_leave(&self, len: usize) -> bool {
        self.left.room(len) && self.queue.is_empty()
    }

    fn leave_write(&mut self, addr: u64, data: &[u8]) -> bool {
        let able = self.may_leave(data.len());
        if able {
            self.carried = Carried::default();
            self.left.put(&self.bind.process.ctl, self.bind.slot, addr, data);
        }
        able
    }

    fn may_rewrite(&mut self, yes: bool) {
        self.ahead = yes;
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
        self.bind.process.remapped(addr, len);
        let (prot, flags) = (prot as u32, flags as u32 | libc::MAP_FIXED as u32);
        let Some((file, offset)) = file else {
            self.call(9, [addr, len, prot.into(), flags.into(), u64::MAX, 0])?;
            return Ok(());
        };
        // Two calls and a close: a program's segments share a descriptor.
        self.room(3)?;
        let fd = self.give(file)?;
        let map = [9, addr, len, prot.into(), flags.into(), fd, offset];
        let code = libc::PROT_READ | libc::PROT_EXEC;
        let private = flags & libc::MAP_PRIVATE as u32 != 0;
        let patch =
            if prot == code as u32 && private { self.known_sites(addr, len, file, offset) } else { None };
        if self.defer {
            self.queue.push(map);
            self.queue.extend(patch);
            return Ok(());
        }
        let mapped = match patch {
            Some(patch) => self.calls(&[map, patch])?[0],
            None => self.calls(&[map])?[0],
        };
        result(mapped).map(|_| ())
    }

    fn munmap(&mut self, addr: u64, len: u64) -> Result<(), CallError> {
        range(addr, len)?;
        self.bind.process.remapped(addr, len);
        self.call(11, [addr, len, 0, 0, 0, 0]).map(|_| ())
    }

    fn mprotect(&mut self, addr: u64, len: u64, prot: i32) -> Result<(), CallError> {
        range(addr, len)?;
        patch::restore(self, addr, len);
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
        patch::restore(self, old, old_len);
        if old != new_addr {
            self.bind.process.remapped(new_addr, new_len);
        }
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
        self.flush()?;
        self.need_forker()?;
        let bell = self.need_bell()?;
        // The child's memory is a copy, so its first state can stay where the parent's frame has it.
        let xstate = self.start_xstate();
        let bind = self.bind.clone();
        let mut close = self.close.take().unwrap_or(0);
        let words = self.load().words;
        let of = Copied { slot: bind.slot, frame: bind.words().frame.load(Relaxed), xstate };
        let child = bind.process.fork((bind.listener().as_fd(), bell), &mut close, &of);
        self.close = (close != 0).then_some(close);
        let (child, request) = child?;
        let first = if child.is_mute() { First::Mute(request, words) } else { First::Made };
        if self.held.is_none() {
            self.held = bind.process.next_area();
        }
        Ok(Task::create(&self.task.rt, sink, child, first, start))
    }

    fn spawn(&mut self, start: &Regs, sink: Arc<dyn TaskSink>) -> Result<NewTask, CallError> {
        self.need_bell()?;
        if let Some(spare) = self.spare() {
            return Ok(Task::reuse(&self.task.rt, sink, spare, start));
        }
        self.need_forker()?;
        let xstate = self.start_xstate();
        let thread = self.bind.process.thread(xstate)?;
        Ok(Task::create(&self.task.rt, sink, thread, First::Made, start))
    }

    fn replace_space(&mut self, trusted: bool) -> Result<Arc<dyn Space>, CallError> {
        self.flush()?;
        self.defer = false;
        self.carried = Carried::default();
        let bell = self.need_bell()?;
        self.begins = true;
        if trusted && self.bind.process.has_only(self.bind.slot) {
            return Ok(self.empty());
        }
        let fresh = Arc::new(self.task.rt.fresh()?);
        let Some(notif) = worker::recv(&fresh) else {
            self.task.rt.loss.check();
            return Err(CallError::Errno(libc::ENOMEM));
        };
        fresh.process.ctl.head().learns.store(1, Relaxed);
        let old = std::mem::replace(&mut self.bind, fresh.clone());
        let (old_bell, old_seq) = (bell, self.seq);
        self.bell = Some(notif.id);
        self.seq = notif.args[0] as u32;
        self.close = None;
        self.orig_rax = u64::MAX;
        self.begin(&Regs::default());
        let mut st = self.task.lock();
        st.bind = fresh.clone();
        st.seq = self.seq;
        st.replied = 0;
        st.dead = None;
        drop(st);
        if old.process.release(old.slot) {
            old.process.dismiss();
        } else if !worker::keep(&self.task.rt, &old, old_bell, old_seq) {
            let slot = old.words();
            slot.rsp_kind.store(layout::REPLY_EXIT, Relaxed);
            slot.rsp_seq.store(old_seq, Release);
            let _ = hostcalls::notif_send(old.listener().as_fd(), old_bell);
            self.task.rt.pool.run(Box::new(move || {
                while worker::recv(&old).is_some() {}
                old.process.free_slot(old.slot);
            }));
        }
        if fresh.process.adopt(fresh.slot, self.task).is_err() {
            return Err(self.set_lost().into());
        }
        Ok(fresh.process.clone())
    }

    fn mincore(&mut self, addr: u64, pages: &mut [u8]) -> Result<(), CallError> {
        let len = pages.len() as u64 * PAGE;
        range(addr, len)?;
        self.call(libc::SYS_mincore as u64, [addr, len, self.answers(), 0, 0, 0])?;
        self.take_answers(pages);
        Ok(())
    }

    fn rusage(&mut self, thread: bool) -> Result<crate::Rusage, CallError> {
        self.call(libc::SYS_getrusage as u64, [u64::from(thread), self.answers(), 0, 0, 0, 0])?;
        let mut bytes = [0; RUSAGE_LEN];
        self.take_answers(&mut bytes);
        let used = crate::cputime::from_bytes(&bytes);
        Ok(if thread { crate::cputime::since(used, self.used_before()) } else { used })
    }

    fn lend(&mut self, fd: i32, file: &Arc<OwnedFd>, len: u64) -> Result<bool, CallError> {
        self.lend_file(fd, file, len)
    }

    fn put_back(&mut self) -> bool {
        let task = self.task;
        patch::put_back(task, self)
    }

    fn single_step(&mut self, on: bool) -> Result<(), CallError> {
        self.need_bell()?;
        let mut regs = self.load().regs;
        regs.eflags = if on { regs.eflags | TRAP_FLAG } else { regs.eflags & !TRAP_FLAG };
        self.set_regs(&regs)?;
        Ok(())
    }
}
