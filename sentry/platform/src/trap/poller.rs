//! The polling thread: serves the requests of tasks that call often by watching their shared words, so that
//! neither side pays for a wake-up.
//!
//! A task becomes hot when it begins a program or its calls follow each other within [`CLOSE`] for [`STREAK`] calls, and a
//! processor is left for the poller. It ceases to be when it has not called for [`QUIET`], blocks for [`BLOCKED`], faults, or when no
//! processor has been left for [`CROWDED`]; all cease to be when the poller finds itself preempted. The thread sleeps while
//! nobody is hot.
//!
//! Tasks that call all the time and compute little share a processor (`Rate::chatty`), so that one is left for the poller although
//! they all want to run: a doorbell would cost each of them more than what it does between two calls.
//!
//! A hot task that blocks yields its processor until it has its answer. So two that wake each other in turn share one,
//! and neither ever sleeps. They are kept off the poller's processor then. Where other programs want the processors this is
//! worse than sleeping: who yields waits for them. So it is given up for a while when it does not pay ([`Pairs`]).

use super::Runtime;
use super::binding::Binding;
use super::ctl::{self, Request};
use super::port::TrapPort;
use super::task::{Reply, Run, State, Task};
use crate::{Event, SyscallRequest, Verdict, hostcalls};
use lazaret_shim::layout;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::thread::CpuSet;
use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Weak};

/// Ticks of the time stamp counter in a microsecond, roughly: the thresholds need no more.
const MICRO: u64 = 2_500;
/// Calls are close when this long or less passes from an answer to the next request.
const CLOSE: u64 = 16 * MICRO;
/// What waking up takes where it crosses processors.
const AWAKE: u64 = 60 * MICRO;
/// This many close calls in a row make a task hot.
const STREAK: u32 = 8;
/// A hot task that does not call for this long is hot no more.
const QUIET: u64 = 400 * MICRO;
/// A hot task that is blocked for this long sleeps.
const BLOCKED: u64 = 60 * MICRO;
/// The same while others of those that share its processor call.
const SHARED: u64 = 4_000 * MICRO;
/// Tasks may want all processors for this long: one that wakes another one most often blocks soon.
const CROWDED: u64 = 30 * MICRO;
/// A turn of the loop that takes this long was preempted.
const PREEMPTED: u64 = 60 * MICRO;
/// A hot time worth its switching on has this many calls.
const WORTH: u32 = 128;
/// A task calls all the time if less than the first passes between its calls, as a moving average, and until it is more than the
/// second. This has some 3 us for the doorbell in it; what it computes must be less than a doorbell costs, or a processor for
/// each is better than one for both.
const TALK: (u64, u64) = (10 * MICRO, 20 * MICRO);
/// While they share the poller, so much time for each call of them all is too much, divided by the processors that they would
/// have without it; looked at in pieces of the second.
const SHARE: (u64, u64) = (14 * MICRO, 10_000 * MICRO);
/// Tasks that call all the time, of which the poller knows.
const CHATTY: usize = 32;
/// Processors told apart.
const PROCESSORS: usize = 64;
/// First and longest pause before a task may be hot again.
const PAUSE: (u64, u64) = (500 * MICRO, 50_000 * MICRO);

/// Doorbells of a program that count as its start.
const FRESH: u32 = 64;

/// How often a task calls.
#[derive(Debug, Default, Clone, Copy)]
pub struct Rate {
    /// When it last went on.
    resumed: u64,
    /// Its last call had blocked.
    woken: bool,
    /// Close calls in a row.
    streak: u32,
    /// Moving average of the time from an answer to the next request.
    gap: u64,
    /// So often that it computes little: such tasks can share a processor.
    pub chatty: bool,
    /// The poller has it, or will have.
    hot: bool,
    /// Not hot again before this time.
    hold: u64,
    /// The next pause.
    pause: u64,
    /// The processor of its last hand-over.
    processor: usize,
    /// So many doorbells yet are those of a program that has just begun.
    fresh: u32,
}

#[derive(Default)]
struct Queue {
    joining: Vec<Arc<Task>>,
    /// Tasks that call all the time, or did.
    chatty: Vec<Weak<Task>>,
    /// The thread sleeps.
    asleep: bool,
    stop: bool,
}

/// The poller.
pub struct Poller {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// When a doorbell was last answered, by processor.
    answered: [AtomicU64; PROCESSORS],
    /// The thread's id, once it runs.
    tid: AtomicI32,
    /// The processor that the thread was put on last; else beyond all.
    at: AtomicUsize,
}

struct Hot {
    task: Arc<Task>,
    bind: Arc<Binding>,
    /// Last request seen.
    seen: u32,
    last: u64,
    calls: u32,
    /// Its last call blocks, or did.
    parked: bool,
    /// It may not run on the poller's processor.
    confined: bool,
    /// The request last seen is its worker's.
    away: bool,
    guess: Guess,
}

/// A call by what it waits for: number, first argument, and second one where the first does not say enough.
type Key = (u32, u64, u32);

/// Foretells which call of a task blocks, so that its shim need not wait to be told: who else wants the processor
/// has it while the poller looks at the call.
#[derive(Default)]
struct Guess {
    key: Key,
    sure: u32,
    told: bool,
}

impl Guess {
    /// So often the same call must have blocked, and so much more counts.
    const SURE: (u32, u32) = (3, 8);

    fn key(request: &SyscallRequest) -> Key {
        let [first, second, ..] = request.args;
        let wide = i64::from(request.nr) != libc::SYS_futex;
        (request.nr, first, if wide { layout::ANY } else { second as u32 })
    }

    /// A call came, and blocked or not.
    fn learn(&mut self, words: &layout::Slot, key: Key, blocked: bool) {
        if !blocked {
            if key != self.key || self.sure == 0 {
                return;
            }
            self.sure /= 2;
        } else if key == self.key {
            self.sure = (self.sure + 1).min(Self::SURE.1);
        } else if self.sure > 0 {
            self.sure -= 1;
        } else {
            self.key = key;
        }
        let tell = self.sure >= Self::SURE.0;
        if tell != self.told {
            self.told = tell;
            let (nr, first, second) = self.key;
            words.blocks_first.store(first, Relaxed);
            words.blocks_second.store(second, Relaxed);
            words.blocks_nr.store(if tell { nr.wrapping_add(1) } else { 0 }, Relaxed);
        }
    }
}

/// Whether hot tasks may stay hot while they block.
#[derive(Default)]
struct Pairs {
    /// Not before this time.
    hold: u64,
    /// The next pause.
    pause: u64,
    /// Calls that blocked for a moment.
    good: u32,
    /// What was lost otherwise, in such calls.
    bad: u32,
}

impl Pairs {
    /// One that blocked too long, or a poller that was preempted, costs as much as so many calls gain.
    const COST: u32 = 32;
    /// So many calls make up for all that was before.
    const ENOUGH: u32 = 4096;
    /// First and longest pause.
    const PAUSE: (u64, u64) = (20_000 * MICRO, 2_000_000 * MICRO);

    fn open(&self, now: u64) -> bool {
        now >= self.hold
    }

    fn won(&mut self) {
        self.good += 1;
        if self.good >= Self::ENOUGH {
            *self = Pairs { hold: self.hold, ..Pairs::default() };
        }
    }

    fn lost(&mut self, now: u64) {
        self.bad += Self::COST;
        if self.bad > self.good + 2 * Self::COST {
            let pause = (self.pause * 4).clamp(Self::PAUSE.0, Self::PAUSE.1);
            *self = Pairs { hold: now + pause, pause, good: 0, bad: 0 };
        }
    }
}

thread_local! {
    static POLLING: Cell<bool> = const { Cell::new(false) };
    static PAIRING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the poller's thread. Who is woken by a hand-over from it lands where it spins.
pub fn is_poller() -> bool {
    POLLING.get()
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Its task goes on, or somebody else has the request.
    On,
    /// The call blocks.
    Parked,
    /// This request is the worker's, and needs the doorbell.
    Away,
    /// It is not the poller's, or the task ended.
    Off,
}

impl Poller {
    /// A poller without its thread.
    pub fn new() -> Poller {
        let answered = std::array::from_fn(|_| AtomicU64::new(0));
        let at = AtomicUsize::new(usize::MAX);
        Poller { queue: Mutex::default(), wake: Condvar::new(), answered, tid: AtomicI32::new(0), at }
    }

    /// Starts the thread; without one, nobody becomes hot.
    pub fn start(rt: &Arc<Runtime>) {
        let weak = Arc::downgrade(rt);
        let thread = std::thread::Builder::new().name("poller".into()).stack_size(512 * 1024);
        let polling = move || {
            POLLING.set(true);
            if let Some(rt) = weak.upgrade() {
                rt.poller.tid.store(rustix::thread::gettid().as_raw_nonzero().get(), Relaxed);
            }
            run(&weak);
        };
        if thread.spawn(polling).is_err() {
            rt.poller.queue.lock().stop = true;
        }
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.queue.lock().stop = true;
        self.wake.notify_one();
    }

    /// A doorbell rang for a request.
    pub fn observe(&self, task: &Arc<Task>, st: &mut State) {
        let now = hostcalls::tsc();
        let rate = &mut st.rate;
        // How long it took to wake up is not its own doing.
        let close = if std::mem::take(&mut rate.woken) { CLOSE + AWAKE } else { CLOSE };
        // Nor is the time that others on its processor took between two calls of theirs.
        let last = self.answered().map_or(0, |answered| answered.load(Relaxed));
        let last = if last.wrapping_sub(rate.resumed) as i64 > 0 { last } else { rate.resumed };
        let gap = now.wrapping_sub(last);
        rate.streak = if gap < close { rate.streak + 1 } else { 0 };
        // Who was woken may have waited for a processor.
        if close == CLOSE {
            rate.gap = (rate.gap.saturating_mul(7) + gap.min(8 * TALK.1)) / 8;
        }
        let chatty = rate.streak >= STREAK && rate.gap < TALK.0 || rate.chatty && rate.gap < TALK.1;
        if chatty != rate.chatty {
            task.set_chatty(st, chatty);
            if chatty {
                self.queue.lock().talks(task);
            }
        }
        let rate = &mut st.rate;
        // Who begins a program often does so while its parent runs, and calls all the time a moment later.
        let fresh = rate.fresh > 0;
        rate.fresh = rate.fresh.saturating_sub(1);
        if !fresh && rate.streak < STREAK || rate.hot || now < rate.hold || !self.room(&task.rt) {
            return;
        }
        rate.streak = 0;
        self.ask(&task.rt, task.clone(), rate);
    }

    /// Asks for a task to become hot.
    fn ask(&self, rt: &Runtime, task: Arc<Task>, rate: &mut Rate) {
        let mut queue = self.queue.lock();
        if !queue.stop {
            rate.hot = true;
            // A doorbell is answered on the processor that it rang on.
            rate.processor = rustix::thread::sched_getcpu();
            queue.joining.push(task);
            if std::mem::take(&mut queue.asleep) {
                self.place(rt, rate.processor);
            }
            drop(queue);
            self.wake.notify_one();
        }
    }

    /// Puts the sleeping thread elsewhere than a task that it is to serve: woken there, it would have to leave first.
    fn place(&self, rt: &Runtime, taken: usize) {
        let tid = self.tid.load(Relaxed);
        if tid != 0 && self.at.load(Relaxed) == taken {
            self.put(tid, rt.processors.all(), taken);
        }
    }

    /// Puts the thread on a processor that is not taken; which one.
    fn put(&self, tid: i32, all: CpuSet, taken: usize) -> Option<usize> {
        let at = (0..CpuSet::MAX_CPU).find(|at| *at != taken && all.is_set(*at))?;
        if self.at.load(Relaxed) != at {
            if !hostcalls::keep_on(tid, &single(at)) {
                return None;
            }
            self.at.store(at, Relaxed);
        }
        Some(at)
    }

    /// A task goes on with a new program, which calls all the time until it has started.
    pub fn begins(&self, task: &Task, st: &mut State) {
        let hot = st.rate.hot;
        task.set_chatty(st, false);
        st.rate = Rate { hot, fresh: FRESH, ..Rate::default() };
        if hot || !self.room(&task.rt) {
            return;
        }
        if let Some(shared) = task.shared() {
            self.ask(&task.rt, shared, &mut st.rate);
        }
    }

    fn answered(&self) -> Option<&AtomicU64> {
        self.answered.get(rustix::thread::sched_getcpu() % PROCESSORS)
    }

    /// A doorbell is answered.
    pub fn answers(&self) {
        if let Some(answered) = self.answered() {
            answered.store(hostcalls::tsc(), Relaxed);
        }
    }

    /// A task goes on.
    pub fn resumed(&self, st: &mut State) {
        st.rate.resumed = hostcalls::tsc();
    }

    /// A task whose call had blocked goes on. One that was woken by a hot one's call is most often going to answer it.
    pub fn woken(&self, task: &Task, st: &mut State) {
        let now = hostcalls::tsc();
        st.rate.resumed = now;
        st.rate.woken = true;
        if !PAIRING.get() || st.rate.hot || now < st.rate.hold {
            return;
        }
        if let (Some(mut queue), Some(task)) = (self.queue.try_lock(), task.shared()) {
            st.rate.hot = true;
            queue.joining.push(task);
        }
    }

    /// Whether a processor is left, when those that call all the time share one.
    fn room(&self, rt: &Runtime) -> bool {
        let chatty = rt.chatty.load(Relaxed);
        rt.busy.load(Relaxed).saturating_sub(chatty) + usize::from(chatty > 0) < rt.processors.count()
    }
}

impl Queue {
    /// A task calls all the time.
    fn talks(&mut self, task: &Arc<Task>) {
        if self.chatty.len() >= CHATTY {
            self.chatty.retain(|known| known.strong_count() > 0);
            let more = self.chatty.len().saturating_sub(CHATTY / 2);
            self.chatty.drain(..more);
        }
        let known = Arc::downgrade(task);
        if !self.chatty.iter().any(|other| other.ptr_eq(&known)) {
            self.chatty.push(known);
        }
    }
}

fn run(weak: &Weak<Runtime>) {
    let mut hot: Vec<Hot> = Vec::new();
    let mut pairs = Pairs::default();
    loop {
        let Some(rt) = weak.upgrade() else { return };
        let mut queue = rt.poller.queue.lock();
        while queue.joining.is_empty() && !queue.stop {
            queue.asleep = true;
            rt.poller.wake.wait(&mut queue);
        }
        queue.asleep = false;
        if queue.stop {
            return;
        }
        drop(queue);
        watch(&rt, &mut hot, &mut pairs);
    }
}

/// Polls until nobody is hot.
fn watch(rt: &Arc<Runtime>, hot: &mut Vec<Hot>, pairs: &mut Pairs) {
    let mut turn = hostcalls::tsc();
    let mut roomy = turn;
    let mut place = None;
    let mut count = 0u32;
    // Since when several share a processor, and their calls.
    let (mut since, mut calls) = (turn, 0u64);
    loop {
        count = count.wrapping_add(1);
        if hot.is_empty() || count.is_multiple_of(64) {
            PAIRING.set(pairs.open(hostcalls::tsc()));
            join(rt, hot, &mut place);
            if hot.is_empty() {
                return;
            }
        }
        let now = hostcalls::tsc();
        let preempted = now.wrapping_sub(turn) > PREEMPTED;
        if rt.poller.room(rt) {
            roomy = now;
        }
        if preempted || now.wrapping_sub(roomy) > CROWDED {
            if hot.iter().any(|it| it.parked) {
                pairs.lost(now);
            }
            for gone in hot.drain(..) {
                cool(rt, &gone, gone.calls < WORTH);
            }
            continue;
        }
        turn = now;
        if hot.len() < 2 {
            (since, calls) = (now, 0);
        } else if now.saturating_sub(since) > SHARE.1 {
            let each = SHARE.0 / hot.len().min(rt.processors.count()) as u64;
            let crowded = rt.busy.load(Relaxed) >= rt.processors.count();
            if crowded && calls.saturating_mul(each) < now.saturating_sub(since) {
                for gone in hot.drain(..) {
                    gone.quiet_down();
                    cool(rt, &gone, true);
                }
                continue;
            }
            (since, calls) = (now, 0);
        }
        let latest = hot.iter().map(|it| now.saturating_sub(it.last)).min().unwrap_or_default();
        let shared = hot.len() > 1 && latest < BLOCKED;
        hot.retain_mut(|it| {
            let words = it.bind.words();
            if it.away && words.rsp_seq.load(Acquire) == it.seen {
                it.away = false;
                it.last = now;
                words.polling.store(layout::POLLED, SeqCst);
            }
            let seq = words.req_seq.load(Acquire);
            if seq == it.seen || it.away {
                let limit = match it.parked {
                    _ if shared => SHARED,
                    true => BLOCKED,
                    false => QUIET,
                };
                if now.wrapping_sub(it.last) > limit {
                    if it.parked && !shared {
                        pairs.lost(now);
                    }
                    cool(rt, it, it.calls < WORTH);
                    return false;
                }
                return true;
            }
            if std::mem::take(&mut it.parked) {
                // Most often it is told already; its line is not to be taken away while it waits.
                let polling = &it.bind.words().polling;
                if polling.load(Relaxed) != layout::POLLED {
                    polling.store(layout::POLLED, SeqCst);
                }
                pairs.won();
            }
            let mut key = None;
            let after = serve(it, &mut key);
            turn = hostcalls::tsc();
            it.last = turn;
            it.calls = it.calls.saturating_add(1);
            calls += 1;
            if let Some(key) = key.filter(|_| it.confined) {
                it.guess.learn(it.bind.words(), key, after == After::Parked);
            }
            match after {
                After::On => {
                    let polling = &it.bind.words().polling;
                    if polling.load(Relaxed) == 0 {
                        polling.store(layout::POLLED, SeqCst);
                    }
                }
                After::Away => {
                    it.away = true;
                    it.bind.words().polling.store(0, SeqCst);
                }
                After::Parked if it.confined && pairs.open(turn) => {
                    it.parked = true;
                    it.bind.words().polling.store(layout::PARKED, SeqCst);
                }
                After::Parked | After::Off => {
                    cool(rt, it, false);
                    return false;
                }
            }
            true
        });
        // Looking more often takes the line away from the task between its stores, which costs more than the pause.
        core::hint::spin_loop();
    }
}

impl Hot {
    /// It computes too much to share a processor.
    fn quiet_down(&self) {
        let mut st = self.task.lock();
        st.rate.gap = 8 * TALK.1;
        self.task.set_chatty(&mut st, false);
    }
}

/// Takes in those that want to be hot. The poller goes where none of them was, for it would only keep a task there from
/// calling; if they are to stay hot while they block, it has that processor (`place`) for itself.
fn join(rt: &Arc<Runtime>, hot: &mut Vec<Hot>, place: &mut Option<usize>) {
    let Some(mut queue) = rt.poller.queue.try_lock() else { return };
    let mut joining = std::mem::take(&mut queue.joining);
    let chatty = if joining.is_empty() { Vec::new() } else { queue.chatty.clone() };
    drop(queue);
    if joining.is_empty() {
        return;
    }
    // Who shares the processor of the others must not compete with the poller for the last one.
    let crowded = rt.busy.load(Relaxed) >= rt.processors.count();
    for task in chatty.iter().filter(|_| crowded).filter_map(Weak::upgrade) {
        let mut st = task.lock();
        if st.rate.chatty && !st.rate.hot && st.run.is_busy() {
            st.rate.hot = true;
            drop(st);
            joining.push(task);
        }
    }
    let Some(first) = joining.first() else { return };
    let all = rt.processors.all();
    if hot.is_empty() {
        let taken = first.lock().rate.processor;
        let pairing = PAIRING.get() || crowded;
        *place = if pairing { rt.poller.put(0, all, taken) } else { None };
    }
    let mut elsewhere = all;
    if place.is_none() {
        for it in hot.iter().map(|it| &it.task).chain(&joining) {
            let processor = it.lock().rate.processor;
            if processor < CpuSet::MAX_CPU {
                elsewhere.unset(processor);
            }
        }
    }
    let mut moved = place.is_some();
    if !moved && elsewhere.count() > 0 {
        moved = hostcalls::keep_on(0, &elsewhere);
        rt.poller.at.store(usize::MAX, Relaxed);
    }
    let mut theirs = all;
    if let Some(place) = *place {
        theirs.unset(place);
    }
    for task in joining {
        let bind = task.lock().bind.clone();
        let confined = place.is_some() && hostcalls::keep_on(bind.tid.load(Relaxed) as i32, &theirs);
        if !moved || confined != place.is_some() {
            task.lock().rate.hot = false;
            continue;
        }
        let words = bind.words();
        words.polling.store(layout::POLLED, SeqCst);
        // A request made before this is most often at the doorbell by now, and the worker's.
        let seen = words.req_seq.load(SeqCst);
        hot.push(Hot {
            task,
            bind,
            seen,
            last: hostcalls::tsc(),
            calls: 0,
            parked: false,
            confined,
            away: false,
            guess: Guess::default(),
        });
    }
}

fn single(processor: usize) -> CpuSet {
    let mut one = CpuSet::new();
    one.set(processor);
    one
}

/// A task is hot no more. Its shim sees the flag and rings.
fn cool(rt: &Runtime, it: &Hot, pause: bool) {
    it.bind.words().blocks_nr.store(0, Relaxed);
    it.bind.words().polling.store(0, SeqCst);
    if it.confined {
        rt.processors.release(it.bind.tid.load(Relaxed) as i32);
    }
    let mut st = it.task.lock();
    let rate = &mut st.rate;
    rate.hot = false;
    rate.streak = 0;
    if pause {
        rate.pause = (rate.pause * 2).clamp(PAUSE.0, PAUSE.1);
        rate.hold = hostcalls::tsc() + rate.pause;
    } else {
        rate.pause = 0;
        rate.hold = hostcalls::tsc() + PAUSE.0;
    }
}

/// Serves one request.
fn serve(it: &mut Hot, key: &mut Option<Key>) -> After {
    let task = &it.task;
    let Some(mut st) = task.try_lock() else { return After::On };
    if !Arc::ptr_eq(&st.bind, &it.bind) || st.run == Run::Done || (st.run == Run::Parked && !st.ringing) {
        return After::Off;
    }
    // Read again under the lock: the worker may have served this request and later ones since.
    let seq = it.bind.words().req_seq.load(Acquire);
    it.seen = seq;
    if st.run != Run::Running {
        // The worker's: a request follows the answer to the one before.
        return After::On;
    }
    if seq == st.replied {
        return After::On;
    }
    let (request, carried, light) = match ctl::decode(it.bind.words()) {
        Request::Light(request, carried) => {
            *key = Some(Guess::key(&request));
            (request, carried, true)
        }
        // A site that is to be rewritten is the worker's.
        Request::Syscall(..) if is_due(it) => return After::Away,
        // It has rung.
        Request::Syscall(request, _) if layout::rings(request.nr, request.args[3]) => return After::On,
        Request::Syscall(request, carried) => (request, carried, false),
        _ => return After::Off,
    };
    st.seq = seq;
    task.set_run(&mut st, Run::Handling);
    drop(st);
    let port = TrapPort::hot(task, it.bind.clone(), seq, &Event::Syscall(request)).carries(&request, carried);
    let port = if light { port.light() } else { port };
    serve_with(task, &it.bind, port, Event::Syscall(request))
}

/// A task rang for a call. If it had waited for the poller, that one has no processor: the task is not to wait for it each time,
/// until the poller sees a call of it again.
pub fn rang(bind: &Binding, call: &SyscallRequest) {
    let polling = &bind.words().polling;
    if polling.load(Relaxed) != 0 && !layout::rings(call.nr, call.args[3]) {
        polling.store(0, SeqCst);
    }
}

/// Whether the site of a call that trapped is to be rewritten.
fn is_due(it: &Hot) -> bool {
    let (rip, unseen) = ctl::site_of_call(it.bind.words());
    it.bind.process.sites.lock().note(rip, unseen)
}

/// Serves a call that came through a gate, on its task's processor, whose doorbell is in the state.
pub fn serve_light(
    task: &Arc<Task>,
    bind: &Arc<Binding>,
    seq: u32,
    (request, carried): (SyscallRequest, u32),
) {
    let event = Event::Syscall(request);
    let port = TrapPort::hot(task, bind.clone(), seq, &event).carries(&request, carried).light();
    serve_with(task, bind, port, event);
}

/// Gives an event to the sink without a full port and carries out the verdict; the task is being handled. Those whom it wakes come
/// after it: it goes on meanwhile.
pub fn serve_with(task: &Arc<Task>, bind: &Arc<Binding>, port: TrapPort<'_>, event: Event) -> After {
    let after = answer(task, bind, port, event);
    task.settle();
    after
}

fn answer(task: &Arc<Task>, bind: &Arc<Binding>, mut port: TrapPort<'_>, event: Event) -> After {
    let verdict = task.deliver(event, &mut port);
    let mut st = task.lock();
    if let Some(signal) = st.dead {
        task.set_run(&mut st, Run::Done);
        drop(st);
        bind.process.release(bind.slot);
        if !bind.process.silent.load(Relaxed) && verdict != Verdict::Exit {
            task.sink.gone(signal);
        }
        return After::Off;
    }
    let verdict = match (verdict, st.early.take()) {
        (Verdict::Park, Some(value)) => Verdict::Return(value),
        (verdict, _) => verdict,
    };
    match verdict {
        Verdict::Return(value) => {
            if port.changed() {
                port.set_rax(value);
            }
            let reply = port.answer(&mut st, value);
            go_on(task, st, reply)
        }
        Verdict::Resume => {
            port.write_left();
            let reply = if port.store(&mut st) { Reply::Regs } else { Reply::Resume };
            go_on(task, st, reply)
        }
        Verdict::Park => {
            port.keep(&mut st);
            task.set_run(&mut st, Run::Parked);
            if st.kicked {
                st.ringing = true;
                task.reply(st, Reply::Ring);
                // The call is served by the worker; the next one may be ours again.
                return After::On;
            }
            After::Parked
        }
        Verdict::Exit => {
            task.set_run(&mut st, Run::Done);
            if bind.process.release(bind.slot) {
                bind.process.dismiss();
            } else {
                // Its worker keeps the thread for another task.
                task.reply(st, Reply::Ring);
            }
            After::Off
        }
    }
}

fn go_on(task: &Task, mut st: MutexGuard<'_, State>, reply: Reply) -> After {
    task.set_run(&mut st, Run::Running);
    st.rate.resumed = hostcalls::tsc();
    let bell = task.put_reply(&mut st, reply);
    if st.kicked {
        // The sink wants a full port: let the task come back at once.
        task.interrupt(&mut st);
    }
    drop(st);
    task.answer_bell(bell);
    After::On
}

/// What the layout's flag word is for; kept here so that the two sides are read together: the shim writes its
/// request, then reads `polling`; [`join`] and [`cool`] write `polling`. A request that misses the change spins at
/// most until it looks at the flag again, and then rings.
const _: () = assert!(size_of::<layout::Slot>() <= layout::DATA_OFFSET as usize);
