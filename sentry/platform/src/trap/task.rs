//! A task's state, and what may be done to it from any thread.
//!
//! A request is handled by whoever moves the task from `Running` to `Handling` under the lock: its worker, which
//! was woken by the doorbell, or the poller, which saw the request in the shared area. A doorbell that arrives
//! while the poller handles or has parked the request is kept, and answered together with the request.

use super::binding::Binding;
use super::data::{self, Left};
use super::port::TrapPort;
use super::process::Process;
use super::{Runtime, poller, worker};
use crate::{Event, NewTask, OWN_CALLS, Regs, Space, TaskControl, TaskSink, Verdict, hostcalls};
use lazaret_shim::layout::{self, MCTX_WORDS};
use parking_lot::{Mutex, MutexGuard};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// Made, not started.
    New,
    /// Runs guest code, as far as the sentry knows.
    Running,
    /// Its sink deals with an event.
    Handling,
    /// Stopped until somebody finishes or kicks it.
    Parked,
    /// Ended.
    Done,
}

impl Run {
    /// Whether it wants a processor.
    pub fn is_busy(self) -> bool {
        matches!(self, Run::Running | Run::Handling)
    }
}

/// An answer to a task's request.
#[derive(Debug, Clone, Copy)]
pub enum Reply {
    /// REPLY_RETURN.
    Return(i64),
    /// REPLY_DATA; the pieces are in the slot.
    Data(i64),
    /// REPLY_REGS; the words are in the slot.
    Regs,
    /// REPLY_RESUME.
    Resume,
    /// REPLY_RING.
    Ring,
    /// REPLY_EXIT.
    Exit,
}

/// Somebody who is to be told that his answer is there.
pub struct Bell {
    bind: Arc<Binding>,
    /// The notification; none: he has no doorbell, and waits for the answer's word.
    id: Option<u64>,
    given: Option<Given>,
}

/// A descriptor that comes with the answer to a doorbell, and its number in the process.
pub type Given = (Arc<OwnedFd>, u32);

/// How a task begins.
#[derive(Debug, Clone, Copy)]
pub enum First {
    /// Its worker hears its thread ring.
    Worker,
    /// Whoever starts it hears its thread ring, which has just been made, and the worker comes after.
    Made,
    /// On a spare thread, which has a worker: the doorbell to answer, and its request.
    Spare(u64, u32),
    /// On a thread without a doorbell, which waits for the answer to this request: from a frame with these registers.
    Mute(u32, [u64; MCTX_WORDS]),
}

/// The part of a task under its lock.
pub struct State {
    /// Where it is.
    pub run: Run,
    /// The request that is being handled or parked.
    pub seq: u32,
    /// The last request answered.
    pub replied: u32,
    /// The notification behind the request, when its doorbell has rung and no port owns it.
    pub bell: Option<u64>,
    /// The request is that of a thread without a doorbell.
    pub mute: bool,
    /// A kick that its sink has not seen yet.
    pub kicked: bool,
    /// The parked request is to ring again so that the kick can be delivered.
    pub ringing: bool,
    /// A finish that came before the verdict.
    pub early: Option<i64>,
    /// The host thread died while its sink dealt with an event.
    pub dead: Option<i32>,
    /// Its host thread.
    pub bind: Arc<Binding>,
    /// Registers that a new task begins with.
    pub start: Regs,
    /// Changed registers of a parked task.
    pub kept: Option<super::port::Kept>,
    /// Its call's number, for the registers of a port that comes later.
    pub orig_rax: u64,
    /// When the kick went out (watchdog's clock), and the last request answered by then.
    pub kick_at: (u64, u32),
    /// For the poller: how often it calls.
    pub rate: super::poller::Rate,
    /// The next reply comes with a batch of host calls, which is in the slot.
    pub calls_first: bool,
    /// What comes with the answer to the doorbell.
    pub given: Option<Given>,
    /// Of a task that is not started: how it will begin.
    pub first: First,
}

/// One guest task.
pub struct Task {
    /// The platform.
    pub rt: Arc<Runtime>,
    /// Who gets its events.
    pub sink: Arc<dyn TaskSink>,
    state: Mutex<State>,
    /// Since when (watchdog's clock) it is expected back from host calls; 0: it is not.
    pub awaited: AtomicU64,
    /// It was started; the worker exists.
    begun: AtomicBool,
    me: std::sync::Weak<Task>,
}

impl Task {
    /// A task on a host thread that has just come up, and its space.
    pub fn create(
        rt: &Arc<Runtime>,
        sink: Arc<dyn TaskSink>,
        bind: Binding,
        first: First,
        start: &Regs,
    ) -> NewTask {
        Task::new(rt, sink, Arc::new(bind), first, start).enter()
    }

    /// A task on a spare thread, with the doorbell it waits in and the request behind it.
    pub fn reuse(
        rt: &Arc<Runtime>,
        sink: Arc<dyn TaskSink>,
        (bind, bell, seq): (Arc<Binding>, u64, u32),
        start: &Regs,
    ) -> NewTask {
        Task::new(rt, sink, bind, First::Spare(bell, seq), start).enter()
    }

    fn enter(self: Arc<Self>) -> NewTask {
        let task = self;
        task.rt.watchdog.add(&task);
        let bind = task.lock().bind.clone();
        // What the slot's last task left.
        bind.words().own_valid.store(0, Relaxed);
        bind.words().mask.store(0, Relaxed);
        bind.words().robust_given.store(0, Relaxed);
        bind.words().robust_idle.store(0, Relaxed);
        bind.words().alt_valid.store(0, Relaxed);
        bind.words().alt_given.store(0, Relaxed);
        bind.words().used_before.iter().for_each(|word| word.store(0, Relaxed));
        super::lend::take_back(bind.words(), |_| true);
        // From here on the process does not end with the task that made this one.
        if bind.process.adopt(bind.slot, &task).is_err() {
            task.host_ended(&bind.process, bind.process.ended().unwrap_or(libc::SIGKILL));
        }
        NewTask { space: bind.process.clone(), control: task }
    }

    fn new(
        rt: &Arc<Runtime>,
        sink: Arc<dyn TaskSink>,
        bind: Arc<Binding>,
        first: First,
        start: &Regs,
    ) -> Arc<Task> {
        Arc::new_cyclic(|me| Task {
            rt: rt.clone(),
            sink,
            state: Mutex::new(State {
                run: Run::New,
                seq: 0,
                replied: 0,
                bell: None,
                mute: false,
                kicked: false,
                ringing: false,
                early: None,
                dead: None,
                bind,
                start: *start,
                kept: None,
                orig_rax: u64::MAX,
                kick_at: (0, 0),
                rate: super::poller::Rate::default(),
                calls_first: false,
                given: None,
                first,
            }),
            awaited: AtomicU64::new(0),
            begun: AtomicBool::new(false),
            me: me.clone(),
        })
    }

    /// The task as others hold it.
    pub fn shared(&self) -> Option<Arc<Task>> {
        self.me.upgrade()
    }

    /// The state.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The state, unless somebody has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        self.state.try_lock()
    }

    /// The task's thread is (or is no longer) expected to come back from host calls.
    pub fn awaits(&self, yes: bool) {
        if yes {
            self.awaited.store(self.rt.watchdog.now(), Relaxed);
            self.rt.watchdog.arm();
        } else {
            self.awaited.store(0, Relaxed);
        }
    }

    /// Gives an event to the sink. A sink that panics loses its process, not the sentry.
    pub fn deliver(&self, event: Event, port: &mut TrapPort<'_>) -> Verdict {
        let _starts = worker::Starts::hold();
        // What the sink left half done is behind its own locks; the task does not go on.
        let verdict = catch_unwind(AssertUnwindSafe(|| self.sink.event(event, port)));
        verdict.unwrap_or_else(|_| {
            let mut st = self.lock();
            st.bind.process.destroy();
            st.dead = Some(libc::SIGKILL);
            Verdict::Park
        })
    }

    /// Has the sink do for others what its last event set off.
    pub fn settle(&self) {
        let _starts = worker::Starts::hold();
        let _ = catch_unwind(AssertUnwindSafe(|| self.sink.settle()));
    }

    /// Sets where the task is and keeps count of the tasks that want a processor.
    pub fn set_run(&self, st: &mut State, run: Run) {
        match (st.run.is_busy(), run.is_busy()) {
            (false, true) => {
                self.rt.busy.fetch_add(1, Relaxed);
                self.rt.chatty.fetch_add(st.rate.chatty.into(), Relaxed);
            }
            (true, false) => {
                self.rt.busy.fetch_sub(1, Relaxed);
                self.rt.chatty.fetch_sub(st.rate.chatty.into(), Relaxed);
            }
            _ => {}
        }
        st.run = run;
    }

    /// Notes whether the task calls all the time.
    pub fn set_chatty(&self, st: &mut State, chatty: bool) {
        let was = std::mem::replace(&mut st.rate.chatty, chatty);
        match (was, chatty) {
            (false, true) if st.run.is_busy() => drop(self.rt.chatty.fetch_add(1, Relaxed)),
            (true, false) if st.run.is_busy() => drop(self.rt.chatty.fetch_sub(1, Relaxed)),
            _ => {}
        }
    }

    /// Answers the current request. The lock is given up before the doorbell is answered: who is answered takes the processor at
    /// once, and others wait for the lock.
    pub fn reply(&self, mut st: MutexGuard<'_, State>, reply: Reply) {
        let bell = self.put_reply(&mut st, reply);
        drop(st);
        self.answer_bell(bell);
    }

    /// Puts the answer into the slot; the doorbell to be answered then, when the lock has been given up.
    #[must_use]
    pub fn put_reply(&self, st: &mut State, reply: Reply) -> Option<Bell> {
        let slot = st.bind.words();
        let kind = match reply {
            Reply::Return(value) => {
                slot.rsp_value.store(value as u64, Relaxed);
                layout::REPLY_RETURN
            }
            Reply::Data(value) => {
                slot.rsp_value.store(value as u64, Relaxed);
                layout::REPLY_DATA
            }
            Reply::Regs => layout::REPLY_REGS,
            Reply::Resume => layout::REPLY_RESUME,
            Reply::Ring => layout::REPLY_RING,
            Reply::Exit => layout::REPLY_EXIT,
        };
        let calls = if std::mem::take(&mut st.calls_first) { layout::CALLS_FIRST } else { 0 };
        slot.rsp_kind.store(kind | calls, Relaxed);
        st.replied = st.seq;
        slot.rsp_seq.store(st.seq, Release);
        let given = st.given.take();
        let (bell, mute) = (st.bell.take(), std::mem::take(&mut st.mute));
        (mute || bell.is_some()).then(|| Bell { bind: st.bind.clone(), id: bell, given })
    }

    /// Answers a doorbell; false: the thread is dead. Should the descriptor not get there, what is to be done with it fails (EBADF).
    pub fn send(&self, bind: &Binding, id: u64, given: Option<Given>) -> bool {
        let listener = bind.listener();
        if let Some((file, number)) = given {
            let there = hostcalls::notif_send_with(listener.as_fd(), id, file.as_fd(), number).is_ok();
            bind.process.was_given(number, there);
            if there {
                return true;
            }
        }
        hostcalls::notif_send(listener.as_fd(), id).is_ok()
    }

    /// Answers a doorbell.
    pub fn answer_bell(&self, bell: Option<Bell>) {
        let Some(Bell { bind, id, given }) = bell else { return };
        let Some(id) = id else { return hostcalls::futex_wake(&bind.words().rsp_seq) };
        let listener = bind.listener();
        let listener = listener.as_fd();
        let elsewhere = poller::is_poller();
        if !elsewhere {
            self.rt.poller.answers();
        } else {
            // A hand-over would drag it to the poller's processor, where it cannot run.
            let _ = hostcalls::notif_sync(listener, false);
        }
        // A failure means that the thread is dead; the worker hears of it.
        let _ = self.send(&bind, id, given);
        if elsewhere {
            let _ = hostcalls::notif_sync(listener, true);
        }
    }

    /// Takes the host thread out of guest code, now or when it is next there.
    pub fn interrupt(&self, st: &mut State) {
        let tid = st.bind.tid.load(Relaxed);
        if tid != 0 {
            hostcalls::tgkill(st.bind.process.pid, tid as i32, layout::INTERRUPT);
            st.kick_at = (self.rt.watchdog.now(), st.replied);
            self.rt.watchdog.arm();
        }
    }

    /// The host thread or its process is dead.
    pub fn host_ended(&self, process: &Arc<Process>, signal: i32) {
        let mut st = self.lock();
        if !Arc::ptr_eq(&st.bind.process, process) || st.run == Run::Done {
            return;
        }
        self.rt.loss.check();
        if st.run == Run::Handling {
            st.dead = Some(signal);
            return;
        }
        self.set_run(&mut st, Run::Done);
        drop(st);
        if !process.silent.load(Acquire) {
            self.sink.gone(signal);
        }
    }
}

/// Writes results to a task's memory. What cannot be written any more is no loss: its memory has gone since it was looked at.
fn write(bind: &Binding, results: &[(u64, Vec<u8>)]) {
    for (addr, data) in results {
        let _ = bind.process.write(*addr, data);
    }
}

/// Leaves results to a task's shim; false if there are none, or too many.
fn leave(bind: &Binding, results: &[(u64, Vec<u8>)]) -> bool {
    let mut left = Left::able();
    for (addr, data) in results {
        if !left.room(data.len()) {
            return false;
        }
        left.put(&bind.process.ctl, bind.slot, *addr, data);
    }
    left.close(&bind.process.ctl, bind.slot)
}

impl TaskControl for Task {
    fn start(&self) {
        if self.begun.swap(true, Relaxed) {
            return;
        }
        let Some(task) = self.me.upgrade() else { return };
        if matches!(self.lock().first, First::Worker) {
            let rt = self.rt.clone();
            rt.pool.run(Box::new(move || worker::serve(task)));
        } else {
            worker::Starts::add(task);
        }
    }

    fn finish(&self, value: i64) {
        self.finish_with(value, &[]);
    }

    fn takes_results(&self, nr: u32) -> bool {
        data::takes_results(nr)
    }

    fn finish_with(&self, value: i64, results: &[(u64, Vec<u8>)]) {
        let mut st = self.lock();
        match st.run {
            Run::Parked if !st.ringing => {
                self.set_run(&mut st, Run::Running);
                self.rt.poller.woken(self, &mut st);
                let reply = match st.kept.take() {
                    Some(mut kept) => {
                        write(&st.bind, results);
                        kept.set_rax(value);
                        kept.store(&st.bind);
                        Reply::Regs
                    }
                    None if !st.calls_first && leave(&st.bind, results) => Reply::Data(value),
                    None => {
                        write(&st.bind, results);
                        Reply::Return(value)
                    }
                };
                // Its next request has nothing to do with this wait.
                let polling = &st.bind.words().polling;
                let _ = polling.compare_exchange(layout::PARKED, layout::POLLED, SeqCst, Relaxed);
                self.reply(st, reply);
            }
            Run::Parked | Run::Handling => {
                write(&st.bind, results);
                st.early = Some(value);
            }
            _ => {}
        }
    }

    fn kick(&self) {
        let mut st = self.lock();
        if st.kicked || st.run == Run::Done {
            return;
        }
        st.kicked = true;
        match st.run {
            Run::Parked => {
                st.ringing = true;
                self.reply(st, Reply::Ring);
            }
            Run::Running => self.interrupt(&mut st),
            _ => {}
        }
    }

    fn answers(&self, own: [u64; OWN_CALLS.len()]) {
        let st = self.lock();
        let slot = st.bind.words();
        for (word, value) in slot.own.iter().zip(own) {
            word.store(value, Relaxed);
        }
        slot.own_valid.store(1, Release);
    }

    fn answer(&self, place: usize, own: u64) {
        if let Some(word) = self.lock().bind.words().own.get(place) {
            word.store(own, SeqCst);
        }
    }

    fn no_answers(&self) {
        self.lock().bind.words().own_valid.store(0, Release);
    }

    fn lend_mask(&self, mask: u64) -> bool {
        self.lock().bind.words().mask.store(mask | layout::LENT, SeqCst);
        true
    }

    fn lent_mask(&self, keep: bool) -> Option<u64> {
        let st = self.lock();
        let word = &st.bind.words().mask;
        let mask = if keep { word.load(SeqCst) } else { word.swap(0, SeqCst) };
        (mask & layout::LENT != 0).then_some(mask & !layout::LENT)
    }

    fn lend_altstack(&self, stack: Option<[u64; 2]>) {
        let st = self.lock();
        let slot = st.bind.words();
        for (word, value) in slot.alt.iter().zip(stack.unwrap_or_default()) {
            word.store(value, Relaxed);
        }
        slot.alt_given.store(0, Relaxed);
        slot.alt_valid.store(stack.is_some().into(), Release);
    }

    fn altstack(&self) -> Option<[u64; 2]> {
        let st = self.lock();
        let slot = st.bind.words();
        (slot.alt_given.swap(0, Acquire) != 0)
            .then(|| std::array::from_fn(|i| slot.alt.get(i).map_or(0, |word| word.load(Relaxed))))
    }

    fn robust_list(&self) -> Option<u64> {
        let st = self.lock();
        let slot = st.bind.words();
        (slot.robust_given.swap(0, Acquire) != 0).then(|| slot.robust.load(Relaxed))
    }

    fn has_robust_list(&self, head: u64) {
        self.lock().bind.words().robust.store(head, Relaxed);
    }

    fn robust_list_idle(&self, head: u64) -> bool {
        self.lock().bind.words().robust_idle.load(Relaxed) == head
    }

    fn answered(&self) -> [u64; OWN_CALLS.len()] {
        let st = self.lock();
        let slot = st.bind.words();
        std::array::from_fn(|i| slot.own_count.get(i).map_or(0, |word| word.swap(0, Relaxed)))
    }

    fn take_back(&self, fd: i32) {
        super::lend::take_back(self.lock().bind.words(), |lent| lent == fd);
    }

    fn host_tid(&self) -> i32 {
        self.lock().bind.tid.load(Relaxed) as i32
    }
}
