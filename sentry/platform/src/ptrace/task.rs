//! A task's state, and what may be done to it from any thread.

use super::space::Process;
use crate::{Regs, TaskControl, TaskSink, hostcalls};
use lazaret_shim::layout;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};

/// What the tracer is asked to do.
pub enum Command {
    /// Begin a new task.
    Start(Arc<Task>),
    /// A parked task was finished or kicked.
    Go(Arc<Task>),
    /// Make a task in a fresh space.
    First(Arc<dyn TaskSink>, Sender<Result<crate::NewTask, crate::CallError>>),
    /// End everything.
    Stop,
}

/// The way to the tracer.
///
/// The tracer sleeps in waitpid(2), which nothing but a tracee can end. So one tracee, the waker, exists to be
/// signalled: its stop stays until the tracer has seen it, which no wake-up can be lost by.
#[derive(Default)]
pub struct Remote {
    queue: Mutex<(Vec<Command>, bool)>,
    woken: AtomicBool,
    waker: AtomicI32,
    tracer: AtomicI32,
}

impl Remote {
    /// The tracer is up.
    pub fn open(&self, tracer: i32, waker: i32) {
        self.tracer.store(tracer, SeqCst);
        self.waker.store(waker, SeqCst);
    }

    /// Whether this is the tracer's thread.
    pub fn here(&self) -> bool {
        super::host::gettid() == self.tracer.load(SeqCst)
    }

    /// Asks the tracer; dropped if it has ended.
    pub fn send(&self, command: Command) {
        let mut queue = self.queue.lock();
        if queue.1 {
            return;
        }
        queue.0.push(command);
        // The tracer looks at the queue before it sleeps.
        if !self.here() && !self.woken.swap(true, SeqCst) {
            let waker = self.waker.load(SeqCst);
            hostcalls::tgkill(waker, waker, layout::INTERRUPT);
        }
    }

    /// The waker has stopped: what is sent from now on signals again.
    pub fn heard(&self) {
        self.woken.store(false, SeqCst);
    }

    /// What has been asked for.
    pub fn take(&self) -> Vec<Command> {
        std::mem::take(&mut self.queue.lock().0)
    }

    /// Nothing is asked for.
    pub fn idle(&self) -> bool {
        self.queue.lock().0.is_empty()
    }

    /// The tracer ends.
    pub fn close(&self) {
        let mut queue = self.queue.lock();
        queue.1 = true;
        let left = std::mem::take(&mut queue.0);
        drop(queue);
        drop(left);
    }
}

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

/// The part of a task under its lock.
pub struct State {
    /// Where it is.
    pub run: Run,
    /// Its host thread.
    pub tid: i32,
    /// A kick that its sink has not seen yet.
    pub kicked: bool,
    /// A finish that the tracer has not seen yet.
    pub early: Option<i64>,
    /// Its process.
    pub space: Arc<Process>,
}

/// Registers of a stopped task; touched by the tracer alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stopped {
    /// General registers as the sink sees them, if it has looked.
    pub regs: Option<Regs>,
    /// They are to be written back.
    pub changed: bool,
    /// What rax is to be, if the registers are not to be written back.
    pub rax: Option<i64>,
    /// The number of the call it stopped at.
    pub orig_rax: u64,
    /// It stopped at a system call.
    pub at_call: bool,
    /// It runs one instruction at a time.
    pub step: bool,
}

/// One guest task.
pub struct Task {
    /// Who gets its events.
    pub sink: Arc<dyn TaskSink>,
    /// Its registers.
    pub stopped: Mutex<Stopped>,
    state: Mutex<State>,
    remote: Arc<Remote>,
    begun: AtomicBool,
    me: Weak<Task>,
}

impl Task {
    /// A task on a host thread that is stopped.
    pub fn new(
        remote: &Arc<Remote>,
        sink: Arc<dyn TaskSink>,
        tid: i32,
        space: Arc<Process>,
        start: &Regs,
    ) -> Arc<Task> {
        let stopped = Stopped { regs: Some(*start), changed: true, orig_rax: u64::MAX, ..Stopped::default() };
        Arc::new_cyclic(|me| Task {
            sink,
            stopped: Mutex::new(stopped),
            state: Mutex::new(State { run: Run::New, tid, kicked: false, early: None, space }),
            remote: remote.clone(),
            begun: AtomicBool::new(false),
            me: me.clone(),
        })
    }

    /// The state.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn go(&self) {
        if let Some(task) = self.me.upgrade() {
            self.remote.send(Command::Go(task));
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let st = self.state.get_mut();
        // One that was never started, or that outlived the tracer.
        if st.run != Run::Done {
            st.space.leave();
        }
    }
}

impl TaskControl for Task {
    fn start(&self) {
        if self.begun.swap(true, Relaxed) {
            return;
        }
        if let Some(task) = self.me.upgrade() {
            self.remote.send(Command::Start(task));
        }
    }

    fn finish(&self, value: i64) {
        let mut st = self.lock();
        if !matches!(st.run, Run::Parked | Run::Handling) {
            return;
        }
        st.early = Some(value);
        let parked = st.run == Run::Parked;
        drop(st);
        // Otherwise the tracer finds it when it has the verdict.
        if parked {
            self.go();
        }
    }

    fn kick(&self) {
        let mut st = self.lock();
        if st.kicked || st.run == Run::Done {
            return;
        }
        st.kicked = true;
        match st.run {
            Run::Running => hostcalls::tgkill(st.space.pid, st.tid, layout::INTERRUPT),
            Run::Parked => {
                drop(st);
                self.go();
            }
            _ => {}
        }
    }

    fn host_tid(&self) -> i32 {
        self.lock().tid
    }
}
