//! A guest process: one host process, its shared area, and the commands to its forker.

use super::binding::{Binding, Next};
use super::ctl::Ctl;
use super::lend::Places;
use super::patch::Sites;
use super::task::{Given, Task};
use super::{Runtime, xstate};
use crate::{CallError, Gone, MemFault, Space, Token, hostcalls};
use lazaret_shim::layout;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// One host process that holds one guest address space.
pub struct Process {
    /// Its id as the sentry sees it; not reused before the sentry reaps it.
    pub pid: i32,
    /// Its descriptor.
    pub pidfd: Arc<OwnedFd>,
    /// Its shared area.
    pub ctl: Arc<Ctl>,
    /// Ended by the kernel's wish: its tasks end without a word.
    pub silent: AtomicBool,
    /// The sentry itself killed it.
    pub destroyed: AtomicBool,
    /// Nothing goes on without it.
    pub vital: AtomicBool,
    /// The signal that ended it once it is dead, else -1.
    ended: AtomicI32,
    /// What it has used, from when it is reaped.
    pub last_usage: Arc<crate::cputime::LastUsage>,
    forker: Mutex<Forker>,
    slots: Mutex<Slots>,
    spares: Mutex<Vec<Spare>>,
    /// The area for its next child, whose descriptor is in the process already.
    next: Mutex<NextArea>,
    /// It has made a process.
    forks: AtomicBool,
    /// The slot of its thread that began without a doorbell; 0: there was none.
    mute: AtomicU32,
    tasks: Mutex<HashMap<u32, Weak<Task>>>,
    /// Its call sites.
    pub sites: Mutex<Sites>,
    rt: Weak<Runtime>,
    vdso: u64,
    patience: Duration,
    /// Files in the places that gates read from.
    pub places: Places,
}

/// What is known of the thread that makes threads and processes.
pub struct Forker {
    /// Its id, as soon as there is one.
    tid: Option<i32>,
    /// The last command.
    seq: u32,
    /// Where it was put, if it was.
    place: Option<usize>,
    /// Doorbells without a listener in its chain of filters, which all have that come from it.
    silent: u32,
}

impl Forker {
    /// The first thread of a process whose shared area came with the first command.
    pub fn first(pid: i32, place: Option<usize>, silent: u32) -> Forker {
        Forker { tid: Some(pid), seq: 1, place, silent }
    }

    /// To be made by the process's only task, which has a doorbell of its own.
    fn later(silent: u32) -> Forker {
        Forker { tid: None, seq: 0, place: None, silent: silent + 1 }
    }
}

/// A process with more silent doorbells than this makes processes that begin with a forker: each is one more filter for every
/// host call, and the host allows some four thousand.
const SILENT: u32 = 6;

/// Numbers in a process of descriptors that come with the answer to a doorbell: the one before the first slot's, the last slot
/// that has one (a table of 64 needs no room elsewhere), and most tasks of a process where they do.
const GIVEN: (u32, u32, usize) = (40, 23, 16);

/// The numbers of the descriptors of the next child's area, and of that of the child after it.
const NEXT_AREA: (u32, u32) = (GIVEN.0 - 1, GIVEN.0);

/// The area for the next child, whose descriptor is in the process under this number.
#[derive(Default)]
struct NextArea {
    area: Option<Ctl>,
    number: u32,
    /// The descriptor has got there; until then other tasks of the process do without.
    there: bool,
}

impl NextArea {
    fn take(&mut self) -> (Option<Ctl>, Option<u32>) {
        let area = self.area.take_if(|_| self.there);
        let number = area.is_some().then_some(self.number);
        (area, number)
    }
}

struct Slots {
    next: u32,
    free: Vec<u32>,
}

/// A host thread without a task: it waits in its doorbell, and whoever makes the process's next task answers it.
/// Making a thread anew costs a hand-over to the forker, a filter, a listener and the end of the old one.
struct Spare {
    /// Its worker keeps it.
    bind: Weak<Binding>,
    bell: u64,
    seq: u32,
}

/// A process that has used no more slots has little in its shared area.
const SMALL: u32 = 32;
/// Most spare threads of one process.
const SPARES: usize = 16;
/// Most spare threads of all.
const SPARES_IN_ALL: usize = 128;

/// Holds a place in the sentry's table of descriptors: what is made beyond it could not be taken back.
fn place(any: &OwnedFd) -> Result<OwnedFd, CallError> {
    hostcalls::placeholder(any.as_fd()).map_err(|_| CallError::Errno(libc::EAGAIN))
}

const RESERVED: std::ops::Range<u64> = layout::REGION_START..layout::TASK_END;

fn errno(error: std::io::Error) -> CallError {
    CallError::Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

/// What a new process is to be a copy of.
pub struct Copied {
    /// The task's slot.
    pub slot: u32,
    /// Where its frame is; 0: it has none that is of use.
    pub frame: u64,
    /// Its extended state.
    pub xstate: Option<(u64, u32)>,
}

/// Keeps tasks from being adopted by a process.
pub type Adopting<'a> = MutexGuard<'a, HashMap<u32, Weak<Task>>>;

impl Process {
    /// Takes charge of a host process that just began.
    pub fn new(
        rt: &Arc<Runtime>,
        pidfd: OwnedFd,
        ctl: Ctl,
        first: u32,
        vdso: u64,
        sites: Sites,
        forker: impl FnOnce(i32) -> Forker,
    ) -> Result<Arc<Process>, CallError> {
        let info = hostcalls::pidfd_info(pidfd.as_fd()).map_err(errno)?;
        if info.ppid != rt.own_pid || info.tgid <= 0 {
            return Err(CallError::Gone);
        }
        let process = Arc::new(Process {
            pid: info.tgid,
            pidfd: Arc::new(pidfd),
            ctl: Arc::new(ctl),
            silent: AtomicBool::new(false),
            destroyed: AtomicBool::new(false),
            vital: AtomicBool::new(false),
            ended: AtomicI32::new(-1),
            last_usage: Arc::default(),
            forker: Mutex::new(forker(info.tgid)),
            slots: Mutex::new(Slots { next: 1, free: Vec::new() }),
            spares: Mutex::default(),
            next: Mutex::default(),
            forks: AtomicBool::new(false),
            mute: AtomicU32::new(0),
            tasks: Mutex::default(),
            sites: Mutex::new(sites),
            rt: Arc::downgrade(rt),
            vdso,
            patience: rt.patience,
            places: Places::default(),
        });
        process.slots.lock().claim(first);
        rt.reaper.watch(&process).map_err(errno)?;
        Ok(process)
    }

    /// Whether the host process is dead, and of what.
    pub fn ended(&self) -> Option<i32> {
        let signal = self.ended.load(Acquire);
        (signal >= 0).then_some(signal)
    }

    /// Whether it is dead, asked of the host.
    fn dead(&self) -> bool {
        self.dead_within(Duration::ZERO)
    }

    /// Whether it is dead by then, asked of the host.
    pub fn dead_within(&self, limit: Duration) -> bool {
        let mut fds = [rustix::event::PollFd::new(&self.pidfd, rustix::event::PollFlags::IN)];
        let limit =
            rustix::time::Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
        self.ended().is_some() || rustix::event::poll(&mut fds, Some(&limit)).is_ok_and(|n| n > 0)
    }

    /// Kills the host process; its tasks report it gone.
    pub fn destroy(&self) {
        if !self.destroyed.swap(true, Relaxed) {
            hostcalls::pidfd_kill(self.pidfd.as_fd());
        }
    }

    /// Kills the host process, whose last task ended or has left it.
    pub fn dismiss(&self) {
        self.silent.store(true, Relaxed);
        let placed = self.forker.try_lock().is_some_and(|mut forker| forker.place.take().is_some());
        if let Some(rt) = self.rt.upgrade().filter(|_| placed) {
            // Whoever dies last frees the memory, and need not do so where the parent goes on.
            rt.processors.release(self.pid);
        }
        self.destroy();
    }

    /// Called by the reaper.
    pub fn on_exit(self: &Arc<Self>, signal: i32) {
        self.ended.store(signal, Release);
        let mute = self.mute.load(Acquire);
        if mute != 0 {
            let word = &self.ctl.slot(mute).listener;
            for was in [0, layout::ENDS] {
                let _ = word.compare_exchange(was, layout::GONE, SeqCst, Relaxed);
            }
            hostcalls::futex_wake(word);
        }
        if let Some(rt) = self.rt.upgrade() {
            rt.lost(self, signal);
        }
        let tasks: Vec<_> = self.tasks.lock().drain().filter_map(|(_, task)| task.upgrade()).collect();
        for task in tasks {
            task.host_ended(self, signal);
        }
    }

    /// Waits until the word is not `value` any more. `Gone` when the process dies or stays silent.
    fn wait(&self, word: &AtomicU32, value: u32) -> Result<u32, Gone> {
        let start = Instant::now();
        loop {
            let now = word.load(Acquire);
            if now != value {
                return Ok(now);
            }
            hostcalls::futex_wait(word, value, Duration::from_millis(50));
            if word.load(Acquire) != value {
                continue;
            }
            if self.dead() {
                return Err(Gone);
            }
            if start.elapsed() > self.patience {
                self.destroy();
                return Err(Gone);
            }
        }
    }

    /// Gives the forker one command. The caller keeps the lock until the forker has surely read it.
    fn post(&self, seq: &mut u32, kind: u32, slot: u32, fd: u32, close: u32) {
        let head = self.ctl.head();
        head.cmd_kind.store(kind, Relaxed);
        head.cmd_slot.store(slot, Relaxed);
        head.cmd_fd.store(fd, Relaxed);
        head.cmd_close.store(close, Relaxed);
        *seq = seq.wrapping_add(1);
        head.cmd_seq.store(*seq, Release);
        hostcalls::futex_wake(&head.cmd_seq);
    }

    /// Waits for the answer to a command.
    fn answer(&self, seq: u32) -> Result<i64, Gone> {
        let head = self.ctl.head();
        let start = Instant::now();
        loop {
            // The word lags behind where nobody waited for an answer.
            let seen = head.res_seq.load(Acquire);
            if seen == seq {
                return Ok(head.res_value.load(Relaxed));
            }
            self.wait(&head.res_seq, seen)?;
            if start.elapsed() > self.patience {
                self.destroy();
                return Err(Gone);
            }
        }
    }

    /// Takes the listener of the thread that is coming up in a slot.
    pub fn bind(self: &Arc<Self>, slot: u32) -> Result<Binding, CallError> {
        let listener = self.listener(slot)?;
        Ok(self.binding(slot, listener))
    }

    fn binding(self: &Arc<Self>, slot: u32, listener: OwnedFd) -> Binding {
        Binding::new(self.clone(), slot, listener)
    }

    /// The first thread, without a doorbell. `place` holds the place in the table that its listener will have.
    fn mute_binding(self: &Arc<Self>, slot: u32, place: OwnedFd) -> Binding {
        self.mute.store(slot, Release);
        self.binding(slot, place).into_mute()
    }

    /// The listener that is coming up in a slot.
    pub fn listener(&self, slot: u32) -> Result<OwnedFd, CallError> {
        let word = self.wait(&self.ctl.slot(slot).listener, 0)?;
        if word & 0x8000_0000 != 0 {
            let error = i32::try_from(word & 0x7fff_ffff).unwrap_or(libc::EIO);
            return Err(CallError::Errno(error));
        }
        self.hear(slot, word - 1)
    }

    /// Takes the listener with this number in the process.
    pub fn hear(&self, slot: u32, number: u32) -> Result<OwnedFd, CallError> {
        let listener = hostcalls::pidfd_getfd(self.pidfd.as_fd(), number).map_err(|_| {
            // The thread waits in a doorbell that nobody hears.
            self.destroy();
            CallError::Gone
        })?;
        hostcalls::notif_sync(listener.as_fd(), true).map_err(errno)?;
        // It closes its own descriptor before it goes on after its first report.
        self.ctl.slot(slot).rsp_close.store(number.wrapping_add(1), Relaxed);
        Ok(listener)
    }

    /// Whether it has a forker.
    pub fn has_forker(&self) -> bool {
        self.forker.lock().tid.is_some()
    }

    /// The only task has made the forker.
    pub fn set_forker(&self, tid: i32, place: Option<usize>) {
        let mut forker = self.forker.lock();
        forker.tid = Some(tid);
        forker.place = place;
    }

    /// Makes a thread for a new task.
    pub fn thread(self: &Arc<Self>, xstate: Option<(u64, u32)>) -> Result<Binding, CallError> {
        let place = place(&self.pidfd)?;
        let slot = self.slots.lock().take().ok_or(CallError::Errno(libc::EAGAIN))?;
        self.ctl.reset(slot, xstate);
        let rt = self.rt.upgrade().ok_or(CallError::Gone)?;
        let mut forker = self.forker.lock();
        let tid = forker.tid.ok_or(CallError::Gone)?;
        let together = rt.processors.gather(tid, &mut forker.place);
        self.post(&mut forker.seq, layout::CMD_THREAD, slot, 0, 0);
        drop(place);
        let bound = self.bind(slot);
        drop(together);
        drop(forker);
        if bound.is_err() {
            self.slots.lock().free.push(slot);
        }
        bound
    }

    /// Makes a process that is a copy of this one, with one task. The notification is one of this process's that is pending.
    /// `close`: a descriptor in this process, plus 1, that is to be closed, 0 for none; then the child's pidfd in the same way.
    /// A child that goes on from a frame has no doorbell yet, and waits for the answer to its first request, whose number comes
    /// with it.
    pub fn fork(
        self: &Arc<Self>,
        pending: (BorrowedFd<'_>, u64),
        close: &mut u32,
        of: &Copied,
    ) -> Result<(Binding, u32), CallError> {
        let rt = self.rt.upgrade().ok_or(CallError::Gone)?;
        // For the child's listener; its pidfd takes the place of the area's descriptor.
        let place = place(&self.pidfd)?;
        let (ready, given) = self.next.lock().take();
        let ctl = ready.map_or_else(|| rt.areas.take(), Ok).map_err(errno)?;
        let sites = self.sites.lock().inherit(&self.ctl, &ctl);
        let mut forker = self.forker.lock();
        let tid = forker.tid.ok_or(CallError::Gone)?;
        let alone = forker.silent < SILENT;
        let mute = alone && of.frame != 0;
        // Its thread's stack is not to be the one whose frame it copies.
        let slot = if alone { of.slot } else { 1 + u32::from(of.slot == 1) };
        ctl.reset(slot, of.xstate.filter(|_| !alone));
        if !alone {
            let head = ctl.head();
            head.cmd_kind.store(layout::CMD_THREAD, Relaxed);
            head.cmd_slot.store(slot, Relaxed);
            head.cmd_seq.store(1, Release);
        }
        // As long as nobody else has the area.
        let request = ctl.slot(slot).req_seq.load(Relaxed).wrapping_add(1);
        let (listener, id) = pending;
        let fd = match given {
            Some(number) => number,
            None => {
                ctl.with_file(|file| hostcalls::notif_addfd(listener, id, file.as_fd())).map_err(errno)?
            }
        };
        let _together = rt.processors.gather(tid, &mut forker.place);
        self.ctl.head().cmd_frame.store(of.frame, Relaxed);
        let kind = if alone { layout::CMD_TASK } else { layout::CMD_FORK };
        self.post(&mut forker.seq, kind, slot, fd, std::mem::take(close));
        let value = self.answer(forker.seq)?;
        let (at, silent) = (forker.place, forker.silent);
        let pidfd = self.ctl.head().res_pidfd.load(Relaxed);
        drop(forker);
        // The word is the guest's.
        let failed = || match value {
            -4095..=-1 => CallError::Errno(-value as i32),
            _ => CallError::Errno(libc::EIO),
        };
        if pidfd == layout::NO_FD {
            return Err(failed());
        }
        *close = pidfd.wrapping_add(1);
        ctl.close();
        let place = mute.then_some(place);
        let pidfd = hostcalls::pidfd_getfd(self.pidfd.as_fd(), pidfd).map_err(|_| CallError::Gone)?;
        let child = Process::new(&rt, pidfd, ctl, slot, rt.vdso.load(Relaxed), sites, |pid| {
            if alone { Forker::later(silent) } else { Forker::first(pid, at, silent) }
        })?;
        child.places.inherit(&self.places);
        let binding = match u32::try_from(value) {
            Ok(_) if let Some(place) = place => Ok(child.mute_binding(slot, place)),
            Ok(listener) if alone => child.hear(slot, listener).map(|listener| child.binding(slot, listener)),
            Ok(_) => child.bind(slot),
            // The child could not make its doorbell, and has ended.
            Err(_) => Err(failed()),
        };
        binding.map(|binding| (binding, request)).map_err(|_| {
            child.destroy();
            CallError::Errno(libc::EAGAIN)
        })
    }

    /// A descriptor that is to come with the answer to a fork: that of the area for the next child, of a process that makes more
    /// than one. By itself it would have to wait for its task, while the last child's end may have the processor.
    pub fn next_area(&self) -> Option<Given> {
        let rt = self.rt.upgrade()?;
        let mut next = self.next.lock();
        let again = self.forks.swap(true, Relaxed);
        if !again || next.area.is_some() || self.tasks.lock().len() > GIVEN.2 {
            return None;
        }
        let ctl = rt.areas.take_ready()?;
        let file = ctl.file()?;
        // The forker may not have closed the last one's yet.
        next.number = if next.number == NEXT_AREA.0 { NEXT_AREA.1 } else { NEXT_AREA.0 };
        (next.area, next.there) = (Some(ctl), false);
        Some((file, next.number))
    }

    /// A descriptor that came with an answer has got there, or has not.
    pub fn was_given(&self, number: u32, there: bool) {
        if number > NEXT_AREA.1 {
            return;
        }
        let mut next = self.next.lock();
        next.there = there;
        if !there {
            next.area = None;
        }
    }

    /// A thread that the forker made has rung for the first time.
    pub fn came_up(&self, tid: u32) {
        if let Some(rt) = self.rt.upgrade() {
            rt.processors.release(tid as i32);
        }
    }

    /// Keeps a thread whose task ended and whose doorbell has rung; false if there are enough.
    pub fn park(&self, bind: &Arc<Binding>, bell: u64, seq: u32) -> bool {
        let Some(rt) = self.rt.upgrade() else { return false };
        let mut spares = self.spares.lock();
        // Through the first thread the host reaches the process's memory and descriptors: it stays as long as there are others.
        let first = bind.tid.load(Relaxed) as i32 == self.pid;
        if !first && (spares.len() >= SPARES || rt.spares.load(Relaxed) >= SPARES_IN_ALL) {
            return false;
        }
        *bind.next.lock() = Next::Open;
        rt.spares.fetch_add(1, Relaxed);
        spares.push(Spare { bind: Arc::downgrade(bind), bell, seq });
        true
    }

    /// A spare thread, with the doorbell to answer and the request behind it.
    pub fn unpark(&self) -> Option<(Arc<Binding>, u64, u32)> {
        loop {
            let spare = self.spares.lock().pop()?;
            self.one_less();
            if let Some(bind) = spare.bind.upgrade() {
                return Some((bind, spare.bell, spare.seq));
            }
        }
    }

    /// A spare thread died.
    pub fn forget(&self, bind: &Arc<Binding>) {
        let mut spares = self.spares.lock();
        let before = spares.len();
        spares.retain(|spare| spare.bind.as_ptr() != Arc::as_ptr(bind));
        for _ in spares.len()..before {
            self.one_less();
        }
    }

    fn one_less(&self) {
        if let Some(rt) = self.rt.upgrade() {
            rt.spares.fetch_sub(1, Relaxed);
        }
    }

    /// Registers a task; `Gone` if the process is dead already.
    pub fn adopt(&self, slot: u32, task: &Arc<Task>) -> Result<(), Gone> {
        self.tasks.lock().insert(slot, Arc::downgrade(task));
        // The reaper marks the end before it looks at the tasks.
        if self.ended().is_some() { Err(Gone) } else { Ok(()) }
    }

    /// Whether a slot's task is the only one.
    pub fn has_only(&self, slot: u32) -> bool {
        let tasks = self.tasks.lock();
        tasks.len() == 1 && tasks.contains_key(&slot)
    }

    /// The number under which a slot's task gets a descriptor with the answer to its doorbell, where it cannot be that of another one:
    /// the host gives the least that is free, for each thread that comes up and for each descriptor given otherwise.
    pub fn number_for(&self, slot: u32) -> Option<u32> {
        (slot <= GIVEN.1 && self.tasks.lock().len() <= GIVEN.2).then_some(GIVEN.0 + slot)
    }

    /// The tasks but this one, and what keeps others from being adopted; to be dropped before the tasks are.
    pub fn others(&self, task: &Arc<Task>) -> (Vec<Arc<Task>>, Adopting<'_>) {
        let tasks = self.tasks.lock();
        let others = tasks.values().filter_map(Weak::upgrade).filter(|other| !Arc::ptr_eq(other, task));
        (others.collect(), tasks)
    }

    /// A range is mapped anew or no more.
    pub fn remapped(&self, addr: u64, len: u64) {
        self.sites.lock().forget(&self.ctl, addr, len);
    }

    /// A task moves away or ended; true if it was the last one.
    pub fn release(&self, slot: u32) -> bool {
        let mut tasks = self.tasks.lock();
        tasks.remove(&slot);
        tasks.retain(|_, task| task.strong_count() > 0);
        tasks.is_empty()
    }

    /// The thread of a slot is dead: another may use the slot.
    pub fn free_slot(&self, slot: u32) {
        self.slots.lock().free.push(slot);
    }

    /// Extended state behind a frame's pointer.
    pub fn read_xstate(&self, at: u64) -> Option<Vec<u8>> {
        // Most often it is as long as this machine's.
        let mut data = vec![0; xstate::usual()];
        let got = hostcalls::vm_read(self.pid, at, &mut data);
        if got < 512 {
            return None;
        }
        data.truncate(got);
        let len = xstate::length(&data);
        if len <= data.len() {
            data.truncate(len);
            return Some(data);
        }
        data.resize(len, 0);
        (hostcalls::vm_read(self.pid, at, &mut data) == len).then_some(data)
    }
}

impl Slots {
    fn take(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        if self.next >= layout::SLOTS {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    fn claim(&mut self, slot: u32) {
        while self.next <= slot {
            if self.next < slot {
                self.free.push(self.next);
            }
            self.next += 1;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.destroy();
        let small = self.slots.get_mut().next <= SMALL;
        if let Some(rt) = self.rt.upgrade() {
            if small {
                rt.areas.give_up(self.ctl.clone());
            }
            if let Some(next) = self.next.get_mut().area.take() {
                rt.areas.give_up(Arc::new(next));
            }
        }
    }
}

impl Space for Process {
    fn host_pid(&self) -> i32 {
        self.pid
    }

    fn cpu_time(&self) -> Option<crate::CpuTime> {
        crate::cputime::cpu_time(self.pid)
    }

    fn cpu_sum(&self) -> Option<Duration> {
        crate::cputime::cpu_sum(self.pid)
    }

    fn on_reaped(&self, told: crate::Told) {
        self.last_usage.tell(told);
    }

    fn ask_advice(&self) {
        self.ctl.head().ask_advice.store(1, SeqCst);
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), MemFault> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let got = hostcalls::vm_read(self.pid, addr.wrapping_add(done as u64), rest);
            if got == 0 {
                return Err(MemFault { done });
            }
            done += got;
        }
        Ok(())
    }

    fn read_code(&self, addr: u64, buf: &mut [u8]) -> Result<(), MemFault> {
        let read = self.read(addr, buf);
        self.sites.lock().originals(addr, buf);
        read
    }

    fn write(&self, addr: u64, data: &[u8]) -> Result<(), MemFault> {
        let mut done = 0;
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            let put = hostcalls::vm_write(self.pid, addr.wrapping_add(done as u64), rest);
            if put == 0 {
                return Err(MemFault { done });
            }
            done += put;
        }
        Ok(())
    }

    fn readv(&self, guest: &[(u64, usize)], buf: &mut [u8]) -> Result<(), MemFault> {
        let total: usize = guest.iter().map(|(_, len)| *len).sum();
        let Some(buf) = buf.get_mut(..total) else { return Err(MemFault { done: 0 }) };
        if guest.len() > 1024 {
            return Err(MemFault { done: 0 });
        }
        let got = hostcalls::vm_readv(self.pid, guest, buf);
        if got == total { Ok(()) } else { Err(MemFault { done: got }) }
    }

    fn reserved(&self) -> &[std::ops::Range<u64>] {
        std::slice::from_ref(&RESERVED)
    }

    fn settled(&self, token: Token) -> bool {
        let done = self.ctl.slot(token.task).done.load(Acquire);
        done.wrapping_sub(token.seq) as i32 >= 0
    }

    fn settle(&self, token: Token, since: Instant) -> Result<(), Gone> {
        let slot = self.ctl.slot(token.task);
        // The shim writes `done`, then looks at `done_wait`.
        slot.done_wait.store(1, SeqCst);
        let done = slot.done.load(SeqCst);
        if self.settled(token) {
            return Ok(());
        }
        if self.dead() {
            return Err(Gone);
        }
        if since.elapsed() > self.patience {
            self.destroy();
            return Err(Gone);
        }
        hostcalls::futex_wait(&slot.done, done, Duration::from_millis(50));
        Ok(())
    }

    fn vdso(&self) -> Option<u64> {
        (self.vdso != 0).then_some(self.vdso)
    }

    fn kill(&self) {
        self.silent.store(true, Release);
        self.destroy();
    }
}
