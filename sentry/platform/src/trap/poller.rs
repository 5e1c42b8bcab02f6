//! The polling thread: serves the requests of tasks that call often by watching their shared words, so that
//! neither side pays for a wake-up.
//!
//! A task becomes hot when its calls follow each other within [`CLOSE`] for [`STREAK`] calls and a processor is left
//! for the poller. It ceases to be when it has not called for [`QUIET`], blocks, faults, or when no processor is
//! left; all cease to be when the poller finds itself preempted. The thread sleeps while nobody is hot.

use super::Runtime;
use super::ctl::{self, Request};
use super::port::TrapPort;
use super::process::Binding;
use super::task::{Reply, Run, State, Task};
use crate::{Event, SyscallRequest, Verdict, hostcalls};
use lazaret_shim::layout;
use parking_lot::{Condvar, Mutex};
use rustix::thread::CpuSet;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::{Arc, Weak};

/// Ticks of the time stamp counter in a microsecond, roughly: the thresholds need no more.
const MICRO: u64 = 2_500;
/// Calls are close when this long or less passes from an answer to the next request.
const CLOSE: u64 = 14 * MICRO;
/// This many close calls in a row make a task hot.
const STREAK: u32 = 16;
/// A hot task that does not call for this long is hot no more.
const QUIET: u64 = 400 * MICRO;
/// A turn of the loop that takes this long was preempted.
const PREEMPTED: u64 = 60 * MICRO;
/// A hot time worth its switching on has this many calls.
const WORTH: u32 = 128;
/// First and longest pause before a task may be hot again.
const PAUSE: (u64, u64) = (500 * MICRO, 50_000 * MICRO);

/// How often a task calls.
#[derive(Debug, Default, Clone, Copy)]
pub struct Rate {
    /// When it last went on.
    resumed: u64,
    /// Close calls in a row.
    streak: u32,
    /// The poller has it, or will have.
    hot: bool,
    /// Not hot again before this time.
    hold: u64,
    /// The next pause.
    pause: u64,
    /// The processor of its last hand-over.
    processor: usize,
}

#[derive(Default)]
struct Queue {
    joining: Vec<Arc<Task>>,
    stop: bool,
}

/// The poller.
pub struct Poller {
    queue: Mutex<Queue>,
    wake: Condvar,
}

struct Hot {
    task: Arc<Task>,
    bind: Arc<Binding>,
    /// Last request seen.
    seen: u32,
    last: u64,
    calls: u32,
}

impl Poller {
    /// A poller without its thread.
    pub fn new() -> Poller {
        Poller { queue: Mutex::default(), wake: Condvar::new() }
    }

    /// Starts the thread; without one, nobody becomes hot.
    pub fn start(rt: &Arc<Runtime>) {
        let weak = Arc::downgrade(rt);
        let thread = std::thread::Builder::new().name("poller".into()).stack_size(512 * 1024);
        if thread.spawn(move || run(&weak)).is_err() {
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
        rate.streak = if now.wrapping_sub(rate.resumed) < CLOSE { rate.streak + 1 } else { 0 };
        if rate.streak < STREAK || rate.hot || now < rate.hold || !self.room(&task.rt) {
            return;
        }
        rate.streak = 0;
        let mut queue = self.queue.lock();
        if !queue.stop {
            rate.hot = true;
            // A doorbell is answered on the processor that it rang on.
            rate.processor = rustix::thread::sched_getcpu();
            queue.joining.push(task.clone());
            drop(queue);
            self.wake.notify_one();
        }
    }

    /// A task goes on.
    pub fn resumed(&self, st: &mut State) {
        st.rate.resumed = hostcalls::tsc();
    }

    fn room(&self, rt: &Runtime) -> bool {
        rt.busy.load(Relaxed) < rt.processors.count()
    }
}

fn run(weak: &Weak<Runtime>) {
    let mut hot: Vec<Hot> = Vec::new();
    loop {
        let Some(rt) = weak.upgrade() else { return };
        let mut queue = rt.poller.queue.lock();
        while queue.joining.is_empty() && !queue.stop {
            rt.poller.wake.wait(&mut queue);
        }
        if queue.stop {
            return;
        }
        drop(queue);
        watch(&rt, &mut hot);
    }
}

/// Polls until nobody is hot.
fn watch(rt: &Arc<Runtime>, hot: &mut Vec<Hot>) {
    let mut turn = hostcalls::tsc();
    let mut count = 0u32;
    loop {
        count = count.wrapping_add(1);
        if hot.is_empty() || count.is_multiple_of(64) {
            join(rt, hot);
            if hot.is_empty() {
                return;
            }
        }
        let now = hostcalls::tsc();
        let preempted = now.wrapping_sub(turn) > PREEMPTED;
        if preempted || !rt.poller.room(rt) {
            for gone in hot.drain(..) {
                cool(&gone, gone.calls < WORTH);
            }
            continue;
        }
        turn = now;
        hot.retain_mut(|it| {
            let seq = it.bind.words().req_seq.load(Acquire);
            if seq == it.seen {
                if now.wrapping_sub(it.last) > QUIET {
                    cool(it, it.calls < WORTH);
                    return false;
                }
                return true;
            }
            let stays = serve(it);
            turn = hostcalls::tsc();
            it.last = turn;
            it.calls = it.calls.saturating_add(1);
            if !stays {
                cool(it, false);
            }
            stays
        });
        // Looking more often takes the line away from the task between its stores, which costs more than the pause.
        core::hint::spin_loop();
    }
}

fn join(rt: &Arc<Runtime>, hot: &mut Vec<Hot>) {
    let Some(mut queue) = rt.poller.queue.try_lock() else { return };
    if queue.joining.is_empty() {
        return;
    }
    let mut elsewhere = rt.processors.all();
    for it in hot.iter().map(|it| &it.task).chain(&queue.joining) {
        let processor = it.lock().rate.processor;
        if processor < CpuSet::MAX_CPU {
            elsewhere.unset(processor);
        }
    }
    // On the processor of a task that it serves it would only keep the task from calling.
    let moved = elsewhere.count() > 0 && rustix::thread::sched_setaffinity(None, &elsewhere).is_ok();
    for task in queue.joining.drain(..) {
        if !moved {
            task.lock().rate.hot = false;
            continue;
        }
        let bind = task.lock().bind.clone();
        let words = bind.words();
        words.polling.store(1, SeqCst);
        // A request made before this is most often at the doorbell by now, and the worker's.
        let seen = words.req_seq.load(SeqCst);
        hot.push(Hot { task, bind, seen, last: hostcalls::tsc(), calls: 0 });
    }
}

/// A task is hot no more. Its shim sees the flag and rings.
fn cool(it: &Hot, pause: bool) {
    it.bind.words().polling.store(0, SeqCst);
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

/// Serves one request; false if the task is to be hot no more.
fn serve(it: &mut Hot) -> bool {
    let task = &it.task;
    let Some(mut st) = task.try_lock() else { return true };
    if !Arc::ptr_eq(&st.bind, &it.bind) || st.run == Run::Done || (st.run == Run::Parked && !st.ringing) {
        return false;
    }
    // Read again under the lock: the worker may have served this request and later ones since.
    let seq = it.bind.words().req_seq.load(Acquire);
    it.seen = seq;
    if st.run != Run::Running {
        // The worker's: a request follows the answer to the one before.
        return true;
    }
    if seq == st.replied {
        return true;
    }
    let (request, light) = match ctl::decode(it.bind.words()) {
        Request::Light(request) => (request, true),
        // A site that is to be rewritten is the worker's.
        Request::Syscall(_) if is_due(it) => return false,
        Request::Syscall(request) => (request, false),
        _ => return false,
    };
    st.seq = seq;
    task.set_run(&mut st, Run::Handling);
    drop(st);
    let port = TrapPort::hot(task, it.bind.clone(), seq, &Event::Syscall(request));
    let port = if light { port.light() } else { port };
    serve_with(task, &it.bind, port, Event::Syscall(request), true)
}

/// Whether the site of a call that trapped is to be rewritten.
fn is_due(it: &Hot) -> bool {
    let (rip, unseen) = ctl::site_of_call(it.bind.words());
    it.bind.process.sites.lock().note(rip, unseen)
}

/// Serves a call that came through a gate, on its task's processor, whose doorbell is in the state.
pub fn serve_light(task: &Arc<Task>, bind: &Arc<Binding>, seq: u32, request: SyscallRequest) {
    let event = Event::Syscall(request);
    let port = TrapPort::hot(task, bind.clone(), seq, &event).light();
    serve_with(task, bind, port, event, false);
}

/// Gives an event to the sink, `elsewhere` than on the task's processor, without a full port and carries out the
/// verdict; the task is being handled. False if it parked or ended.
fn serve_with(
    task: &Arc<Task>,
    bind: &Arc<Binding>,
    mut port: TrapPort<'_>,
    event: Event,
    elsewhere: bool,
) -> bool {
    let verdict = task.deliver(event, &mut port);
    let mut st = task.lock();
    if let Some(signal) = st.dead {
        task.set_run(&mut st, Run::Done);
        drop(st);
        bind.process.release(bind.slot);
        if !bind.process.silent.load(Relaxed) && verdict != Verdict::Exit {
            task.sink.gone(signal);
        }
        return false;
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
            let reply = if port.store(&mut st) { Reply::Regs } else { Reply::Return(value) };
            go_on(task, &mut st, reply, elsewhere)
        }
        Verdict::Resume => {
            let reply = if port.store(&mut st) { Reply::Regs } else { Reply::Resume };
            go_on(task, &mut st, reply, elsewhere)
        }
        Verdict::Park => {
            port.keep(&mut st);
            task.set_run(&mut st, Run::Parked);
            if st.kicked {
                st.ringing = true;
                task.reply(&mut st, Reply::Ring);
                // The call is served by the worker; the next one may be ours again.
                return true;
            }
            false
        }
        Verdict::Exit => {
            task.set_run(&mut st, Run::Done);
            if bind.process.release(bind.slot) {
                bind.process.dismiss();
            } else {
                // Its worker keeps the thread for another task.
                task.reply(&mut st, Reply::Ring);
            }
            false
        }
    }
}

fn go_on(task: &Task, st: &mut State, reply: Reply, elsewhere: bool) -> bool {
    task.set_run(st, Run::Running);
    st.rate.resumed = hostcalls::tsc();
    if elsewhere && st.bell.is_some() {
        // It rang all the same. A hand-over would drag it to the poller's processor, where it cannot run.
        let bind = st.bind.clone();
        let _ = hostcalls::notif_sync(bind.listener.as_fd(), false);
        task.reply(st, reply);
        let _ = hostcalls::notif_sync(bind.listener.as_fd(), true);
    } else {
        task.reply(st, reply);
    }
    if st.kicked {
        // The sink wants a full port: let the task come back at once.
        task.interrupt(st);
    }
    true
}

/// What the layout's flag word is for; kept here so that the two sides are read together: the shim writes its
/// request, then reads `polling`; [`join`] and [`cool`] write `polling`. A request that misses the change spins at
/// most until it looks at the flag again, and then rings.
const _: () = assert!(size_of::<layout::Slot>() <= layout::DATA_OFFSET as usize);
