//! A task's worker: waits at the doorbell, gives events to the sink, carries out verdicts.

use super::binding::{Binding, Next, Word};
use super::ctl::{self, Request};
use super::poller::After;
use super::port::TrapPort;
use super::process::Process;
use super::task::{First, Reply, Run, State, Task};
use super::{patch, poller};
use crate::{Event, Verdict, hostcalls};
use lazaret_shim::layout;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cell::RefCell;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};

/// What a worker is to do.
pub type Job = Box<dyn FnOnce() + Send>;

/// Host threads of the sentry that serve tasks; kept for the next task when theirs ends.
#[derive(Default)]
pub struct Pool {
    idle: Mutex<Vec<Arc<Seat>>>,
    working: AtomicUsize,
}

/// A job that is given out, until it is done or dropped.
struct Work(Arc<Pool>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Relaxed);
    }
}

#[derive(Default)]
struct Seat {
    job: Mutex<Option<Option<Job>>>,
    ready: Condvar,
}

/// Idle workers kept.
const KEEP: usize = 16;
const STACK: usize = 512 * 1024;

impl Pool {
    /// Workers that have a job.
    pub fn working(&self) -> usize {
        self.working.load(Relaxed)
    }

    /// Runs a job on a worker.
    pub fn run(self: &Arc<Self>, job: Job) {
        self.working.fetch_add(1, Relaxed);
        let work = Work(self.clone());
        let job: Job = Box::new(move || {
            let _work = work;
            job();
        });
        if let Some(seat) = self.idle.lock().pop() {
            *seat.job.lock() = Some(Some(job));
            seat.ready.notify_one();
            return;
        }
        let pool = Arc::downgrade(self);
        let seat = Arc::new(Seat::default());
        let spawned = std::thread::Builder::new().name("task".into()).stack_size(STACK).spawn(move || {
            hostcalls::block_signals();
            job();
            loop {
                {
                    let Some(pool) = pool.upgrade() else { return };
                    let mut idle = pool.idle.lock();
                    if idle.len() >= KEEP {
                        return;
                    }
                    idle.push(seat.clone());
                }
                let mut next = seat.job.lock();
                let job = loop {
                    match next.take() {
                        Some(job) => break job,
                        None => seat.ready.wait(&mut next),
                    }
                };
                drop(next);
                match job {
                    Some(job) => job(),
                    None => return,
                }
            }
        });
        // Without a thread the job is dropped, and with it the task: its process ends.
        drop(spawned);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for seat in self.idle.lock().drain(..) {
            *seat.job.lock() = Some(None);
            seat.ready.notify_one();
        }
    }
}

/// Whether no thread is left that could ring.
fn orphaned(bind: &Binding) -> bool {
    hostcalls::hung_up(bind.listener().as_fd())
}

/// Waits for a doorbell of this thread. `None`: the thread is dead.
pub fn recv(bind: &Binding) -> Option<hostcalls::Notif> {
    loop {
        match hostcalls::notif_recv(bind.listener().as_fd()) {
            Ok(notif) => {
                let known = bind.tid.load(Relaxed);
                if known == 0 {
                    bind.tid.store(notif.pid, Relaxed);
                    bind.process.came_up(notif.pid);
                } else if known != notif.pid {
                    // Not this task's own thread: its process forked by itself, or gave us another's listener.
                    // Whoever rings waits for our answer, so the number is his.
                    hostcalls::kill_thread(notif.pid as i32);
                    bind.process.destroy();
                    return None;
                }
                return Some(notif);
            }
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            // The interrupt signal took it out of the doorbell again before we could hear it.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) && !orphaned(bind) => {}
            Err(_) => return None,
        }
    }
}

/// Waits for a doorbell of this thread, which makes its process's forker in a batch of one, and for that one's first ring:
/// its thread id, if it was made.
pub fn recv_both(bind: &Binding) -> Option<(hostcalls::Notif, Option<u32>)> {
    let (mut own, mut forker) = (None, None);
    loop {
        match hostcalls::notif_recv(bind.listener().as_fd()) {
            Ok(notif) if notif.pid == bind.tid.load(Relaxed) => own = Some(notif),
            Ok(notif) if forker.is_none() => forker = Some(notif.pid),
            Ok(_) => {
                bind.process.destroy();
                return None;
            }
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) && !orphaned(bind) => {}
            Err(_) => return None,
        }
        let made = bind.words().results[0].load(Relaxed) > 0;
        if let Some(notif) = own.take_if(|_| forker.is_some() || !made) {
            return Some((notif, forker.filter(|_| made)));
        }
    }
}

/// Tasks on spare threads that a sink started while it dealt with an event of another task: they begin on the
/// same thread when it has returned, for it may hold locks.
pub struct Starts;

thread_local! {
    static STARTS: RefCell<(usize, Vec<Arc<Task>>)> = const { RefCell::new((0, Vec::new())) };
}

impl Starts {
    /// Until the value is dropped, tasks are not begun.
    pub fn hold() -> Starts {
        STARTS.with_borrow_mut(|(held, _)| *held += 1);
        Starts
    }

    /// Begins a task now or when that is allowed.
    pub fn add(task: Arc<Task>) {
        let now = STARTS.with_borrow_mut(|(held, tasks)| {
            if *held == 0 {
                return Some(task);
            }
            tasks.push(task);
            None
        });
        if let Some(task) = now {
            begin(&task);
        }
    }
}

impl Drop for Starts {
    fn drop(&mut self) {
        let tasks = STARTS.with_borrow_mut(|(held, tasks)| {
            *held -= 1;
            if *held == 0 { std::mem::take(tasks) } else { Vec::new() }
        });
        for task in tasks {
            begin(&task);
        }
    }
}

/// A task begins. Its worker waits for the ring after the first.
fn begin(task: &Arc<Task>) {
    let mut st = task.lock();
    let bind = st.bind.clone();
    let first = std::mem::replace(&mut st.first, First::Worker);
    if st.run != Run::New {
        // It ended before: what is left is to see its thread end.
        drop(st);
        if matches!(first, First::Made) {
            let (rt, task) = (task.rt.clone(), task.clone());
            rt.pool.run(Box::new(move || serve(task)));
        }
        return;
    }
    let (bell, seq) = match first {
        First::Worker => return,
        First::Spare(bell, seq) => (bell, seq),
        First::Mute(seq, words) => {
            let regs = st.start;
            (st.seq, st.mute) = (seq, true);
            task.set_run(&mut st, Run::Handling);
            drop(st);
            let mut port = TrapPort::hot(task, bind.clone(), seq, &Event::Started);
            port.begin_from(words, &regs);
            poller::serve_with(task, &bind, port, Event::Started);
            return follow_mute(task, bind);
        }
        First::Made => {
            drop(st);
            // It is not the guest's code that runs there, but in memory that may be another guest's work.
            task.awaits(true);
            let rung = recv(&bind);
            task.awaits(false);
            let Some(rung) = rung else { return thread_ended(task, &bind) };
            st = task.lock();
            if st.run != Run::New {
                return;
            }
            (rung.id, rung.args[0] as u32)
        }
    };
    st.seq = seq;
    task.set_run(&mut st, Run::Handling);
    drop(st);
    {
        let mut next = bind.next.lock();
        if matches!(*next, Next::Dead) {
            drop(next);
            // A thread dies alone only if the guest meddles.
            bind.process.destroy();
            let mut st = task.lock();
            task.set_run(&mut st, Run::Parked);
            drop(st);
            task.host_ended(&bind.process, libc::SIGKILL);
            return;
        }
        *next = Next::Task(task.clone());
    }
    let mut port = TrapPort::full(task, bind.clone(), bell, seq, &Event::Started);
    if matches!(first, First::Spare(..)) {
        // Its worker hears what rings.
        port = port.light();
        port.count_from_here();
    }
    // Should it be over already, its worker does the rest.
    handle(task, port, Event::Started);
    if matches!(first, First::Made) {
        follow(&task.rt, bind);
    }
}

/// Gives a thread a worker, which serves whoever is its next task.
fn follow(rt: &super::Runtime, bind: Arc<Binding>) {
    rt.pool.run(Box::new(move || {
        if let Some((task, rung)) = successor(&bind) {
            drop(bind);
            serve_from(task, rung);
        }
    }));
}

/// Gives a task without a doorbell a worker.
fn follow_mute(task: &Arc<Task>, bind: Arc<Binding>) {
    let (rt, task) = (task.rt.clone(), task.clone());
    rt.pool.run(Box::new(move || {
        bind.process.came_up(bind.process.pid as u32);
        if serve_mute(&task, &bind) {
            drop(bind);
            serve(task);
        }
    }));
}

/// Serves a task until it has a doorbell; false if it has ended before.
fn serve_mute(task: &Arc<Task>, bind: &Arc<Binding>) -> bool {
    let mut before = 0;
    loop {
        match bind.next_word(before) {
            Word::Bell => return true,
            Word::Gone => return false,
            Word::Ends if end_mute(task, bind) => before = layout::ENDS,
            Word::Ends if task.lock().run == Run::Done => return false,
            Word::Ends | Word::Bad => {
                bind.process.destroy();
                return false;
            }
        }
    }
}

/// A task without a doorbell calls exit or exit_group; false: the task is over, or it is another request.
fn end_mute(task: &Arc<Task>, bind: &Arc<Binding>) -> bool {
    let mut st = task.lock();
    let Request::Syscall(request, carried) = ctl::decode(bind.words()) else { return false };
    if st.run != Run::Running || !matches!(i64::from(request.nr), libc::SYS_exit | libc::SYS_exit_group) {
        return false;
    }
    let seq = bind.words().req_seq.load(Acquire);
    (st.seq, st.mute) = (seq, true);
    task.set_run(&mut st, Run::Handling);
    drop(st);
    let event = Event::Syscall(request);
    let port = TrapPort::hot(task, bind.clone(), seq, &event).carries(&request, carried);
    poller::serve_with(task, bind, port, event) != After::Off
}

/// Keeps the thread of a task that has left it, which waits in its doorbell; false if it is not wanted.
pub fn keep(rt: &super::Runtime, bind: &Arc<Binding>, bell: u64, seq: u32) -> bool {
    if !bind.process.park(bind, bell, seq) {
        return false;
    }
    follow(rt, bind.clone());
    true
}

/// Serves a task until it ends or rests, and those that come after it on its thread.
pub fn serve(task: Arc<Task>) {
    serve_from(task, Rung::Not);
}

/// Serves a task at rest that has rung, or died.
pub fn serve_rung(task: Arc<Task>) {
    serve_from(task, Rung::Now);
}

/// What is known of a task's doorbell.
enum Rung {
    /// It has not rung.
    Not,
    /// It rings, or never will again.
    Now,
    /// It rang, and this is what was heard.
    Heard(hostcalls::Notif),
}

fn serve_from(task: Arc<Task>, rung: Rung) {
    let mut next = Some((task, rung));
    while let Some((task, rung)) = next {
        next = attend(&task, rung).and_then(|bind| {
            drop(task);
            successor(&bind)
        });
    }
}

/// Waits for the next task of a spare thread to ring.
fn successor(bind: &Arc<Binding>) -> Option<(Arc<Task>, Rung)> {
    let rung = recv(bind);
    let mut place = bind.next.lock();
    let next = std::mem::replace(&mut *place, if rung.is_some() { Next::Open } else { Next::Dead });
    drop(place);
    match (rung, next) {
        (Some(rung), Next::Task(task)) => return Some((task, Rung::Heard(rung))),
        // Nobody told it to go on.
        (Some(_), _) => bind.process.destroy(),
        (None, Next::Task(task)) => thread_ended(&task, bind),
        (None, _) => {
            bind.process.forget(bind);
            bind.process.free_slot(bind.slot);
        }
    }
    None
}

/// Serves a task until it ends or rests; its thread if another task may have it.
fn attend(task: &Arc<Task>, mut rung: Rung) -> Option<Arc<Binding>> {
    loop {
        let bind = task.lock().bind.clone();
        let heard = match std::mem::replace(&mut rung, Rung::Not) {
            Rung::Heard(notif) => Some(notif),
            Rung::Not if task.rt.bells.rest(task, &bind) => return None,
            Rung::Not | Rung::Now => recv(&bind),
        };
        let Some(notif) = heard else {
            thread_ended(task, &bind);
            return None;
        };
        let seq = notif.args[0] as u32;
        let mut st = task.lock();
        let mut finished = None;
        let (mut rip, mut unseen, mut data) = (0, 0, None);
        let event = match st.run {
            Run::New => {
                st.seq = seq;
                task.set_run(&mut st, Run::Handling);
                Event::Started
            }
            Run::Running | Run::Parked | Run::Done if seq == st.replied => {
                // Rung before the poller's answer was seen. A gate told to ring comes back by a request with registers.
                let _ = hostcalls::notif_send(bind.listener().as_fd(), notif.id);
                continue;
            }
            Run::Running => {
                st.seq = seq;
                let request = ctl::decode(bind.words());
                if let Request::Light(call, _) | Request::Syscall(call, _) = &request {
                    poller::rang(&bind, call);
                }
                let event = match request {
                    Request::Light(request, carried) => {
                        st.bell = Some(notif.id);
                        task.set_run(&mut st, Run::Handling);
                        task.rt.poller.observe(task, &mut st);
                        drop(st);
                        poller::serve_light(task, &bind, seq, (request, carried));
                        continue;
                    }
                    Request::Syscall(request, carried) => {
                        data = Some((request, carried));
                        (rip, unseen) = ctl::site_of_call(bind.words());
                        Event::Syscall(request)
                    }
                    Request::Exception(exception) => Event::Exception(exception),
                    Request::Failed(errno) => Event::Failed(errno),
                    Request::Interrupt if st.kicked => {
                        st.kicked = false;
                        Event::Interrupted
                    }
                    _ => {
                        // A kick that came another way, or a forged request: nothing to do.
                        st.bell = Some(notif.id);
                        task.reply(st, Reply::Resume);
                        continue;
                    }
                };
                task.set_run(&mut st, Run::Handling);
                task.rt.poller.observe(task, &mut st);
                event
            }
            Run::Parked if st.ringing => {
                st.seq = seq;
                st.ringing = false;
                st.kicked = false;
                task.set_run(&mut st, Run::Handling);
                finished = st.early.take();
                // A call that was finished after the kick is over: the task is on its way to guest code.
                match (ctl::decode(bind.words()), finished) {
                    (Request::Failed(errno), _) => Event::Failed(errno),
                    (_, Some(_)) => Event::Interrupted,
                    _ => Event::Again,
                }
            }
            Run::Handling | Run::Parked => {
                st.bell = Some(notif.id);
                st.seq = seq;
                continue;
            }
            Run::Done => {
                // The poller served its last request.
                if bind.process.park(&bind, notif.id, seq) {
                    return Some(bind);
                }
                st.bell = Some(notif.id);
                st.seq = seq;
                task.reply(st, Reply::Exit);
                continue;
            }
        };
        drop(st);
        let often = rip != 0 && bind.process.sites.lock().note(rip, unseen);
        let mut port = TrapPort::full(task, bind, notif.id, seq, &event);
        if matches!(event, Event::Started) {
            // The sandbox's first program.
            port.set_begins();
        }
        if let Some((request, carried)) = data {
            port = port.carries(&request, carried);
        }
        if often {
            patch::rewrite(task, &mut port, rip);
        }
        if let Some(value) = finished {
            port.set_rax(value);
        }
        match handle(task, port, event) {
            Turn::On => {}
            Turn::Over => return None,
            Turn::Exit(bind) => {
                while recv(&bind).is_some() {}
                bind.process.free_slot(bind.slot);
                return None;
            }
            Turn::Spare(bind) => return Some(bind),
        }
    }
}

/// How an event left a task.
enum Turn {
    /// It goes on or is parked.
    On,
    /// It ended, and so does its process.
    Over,
    /// It ended and its thread was told to.
    Exit(Arc<Binding>),
    /// It ended and its thread may have another one.
    Spare(Arc<Binding>),
}

/// Runs the sink until the task goes on or stops.
fn handle(task: &Arc<Task>, mut port: TrapPort<'_>, mut event: Event) -> Turn {
    loop {
        let verdict = task.deliver(event, &mut port);
        task.settle();
        let mut st = task.lock();
        if let Some(signal) = st.dead.or(port.lost()) {
            task.set_run(&mut st, Run::Done);
            let silent = st.bind.process.silent.load(Relaxed);
            let last = st.bind.clone();
            drop(st);
            last.process.release(last.slot);
            if !silent && verdict != Verdict::Exit {
                task.sink.gone(signal);
            }
            return Turn::Over;
        }
        let early = st.early.take();
        let verdict = match (verdict, early) {
            (Verdict::Park, Some(value)) => Verdict::Return(value),
            (Verdict::Resume, Some(value)) => {
                port.set_rax(value);
                Verdict::Resume
            }
            (verdict, _) => verdict,
        };
        match verdict {
            Verdict::Return(value) if st.kicked || port.changed() => {
                port.set_rax(value);
            }
            _ => {}
        }
        match verdict {
            Verdict::Return(_) | Verdict::Resume if st.kicked => {
                st.kicked = false;
                event = Event::Interrupted;
                continue;
            }
            Verdict::Park if st.kicked => {
                st.kicked = false;
                event = Event::Again;
                port.set_again();
                continue;
            }
            Verdict::Return(value) => {
                let reply = port.answer(&mut st, value);
                go_on(task, st, &port, Run::Running, reply);
            }
            Verdict::Resume => {
                port.write_left();
                let reply = if port.store(&mut st) { Reply::Regs } else { Reply::Resume };
                go_on(task, st, &port, Run::Running, reply);
            }
            Verdict::Park => {
                // The registers must be in place before anybody finishes the call.
                st.bell = port.bell();
                st.seq = port.seq();
                task.set_run(&mut st, Run::Parked);
                port.keep(&mut st);
            }
            Verdict::Exit => {
                task.set_run(&mut st, Run::Done);
                st.bell = port.bell();
                st.seq = port.seq();
                let bind = st.bind.clone();
                if bind.process.release(bind.slot) {
                    bind.process.dismiss();
                    return Turn::Over;
                }
                if let Some(bell) = st.bell
                    && bind.process.park(&bind, bell, st.seq)
                {
                    st.bell = None;
                    return Turn::Spare(bind);
                }
                task.reply(st, Reply::Exit);
                return Turn::Exit(bind);
            }
        }
        return Turn::On;
    }
}

fn go_on(task: &Task, mut st: MutexGuard<'_, State>, port: &TrapPort<'_>, run: Run, reply: Reply) {
    st.bell = port.bell();
    st.seq = port.seq();
    task.set_run(&mut st, run);
    if port.begins() {
        task.rt.poller.begins(task, &mut st);
    }
    task.rt.poller.resumed(&mut st);
    task.reply(st, reply);
}

/// The listener has no task any more: the whole process ended (the reaper reports that), or this thread alone.
fn thread_ended(task: &Arc<Task>, bind: &Binding) {
    let process: &Arc<Process> = &bind.process;
    if task.lock().run == Run::Done {
        process.free_slot(bind.slot);
        return;
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(200) {
        if process.ended().is_some() {
            // The reaper may not know of a task that never came to be adopted.
            task.host_ended(process, process.ended().unwrap_or(libc::SIGKILL));
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    process.release(bind.slot);
    task.host_ended(process, libc::SIGKILL);
}
