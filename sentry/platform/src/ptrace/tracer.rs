//! The tracer: the one thread that owns all guest threads, and on which all events are handled.

use super::fault;
use super::fds::Fds;
use super::host::{self, Mode, Stop};
use super::port::PtracePort;
use super::space::Process;
use super::task::{Command, Remote, Run, Stopped, Task};
use super::waits::{CloneError, Waits};
use crate::cputime::LastUsage;
use crate::loss::Loss;
use crate::{CallError, Event, NewTask, Regs, Space, TaskSink, Verdict};
use lazaret_shim::layout;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// What the tracer knows.
pub struct Tracer {
    /// Where commands come from.
    pub remote: Arc<Remote>,
    /// Hands descriptors to guest processes.
    pub fds: Fds,
    /// The template of guest processes; always stopped. Its registers.
    pub zygote: (i32, Regs),
    /// See [`Remote`].
    pub waker: i32,
    /// What tracees say.
    pub waits: Waits,
    /// Deaths that end the sandbox.
    pub loss: Loss,
    /// Where the vDSO lies in every guest, 0 if nowhere.
    pub vdso: u64,
    /// Tasks by host thread. A task that was started is kept; others live as long as somebody has them.
    pub tasks: HashMap<i32, (Weak<Task>, Option<Arc<Task>>)>,
    /// The idle init of the guests' pid namespace.
    pub init: Option<OwnedFd>,
    /// Processes that are not reaped, by number: where to tell what they have used.
    pub processes: HashMap<i32, Arc<LastUsage>>,
}

impl Tracer {
    /// A thread in a fresh process.
    pub fn fresh(&mut self) -> Result<(i32, Arc<Process>), CallError> {
        let (zygote, base) = self.zygote;
        let made = self.waits.clone(zygote, &base, layout::CLONE_PARENT);
        let tid = made.map_err(|error| match error {
            CloneError::Errno(errno) => CallError::Errno(errno),
            // Its death is reaped here: the loop never hears of it.
            CloneError::Dead(_) => {
                self.loss.of_zygote();
                CallError::Gone
            }
        })?;
        Ok((tid, self.process(tid)?))
    }

    /// Takes charge of a new process.
    pub fn process(&mut self, pid: i32) -> Result<Arc<Process>, CallError> {
        match Process::new(pid, self.vdso) {
            Ok(process) => {
                let process = Arc::new(process);
                self.processes.insert(pid, process.last_usage.clone());
                Ok(process)
            }
            Err(error) => {
                host::kill(pid);
                Err(CallError::Errno(error.raw_os_error().unwrap_or(libc::EIO)))
            }
        }
    }

    /// A task on a thread that is stopped at its start.
    pub fn adopt(&mut self, tid: i32, space: Arc<Process>, start: &Regs, sink: Arc<dyn TaskSink>) -> NewTask {
        let task = Task::new(&self.remote, sink, tid, space.clone(), start);
        self.tasks.insert(tid, (Arc::downgrade(&task), None));
        NewTask { space, control: task }
    }

    /// A task goes on in another thread.
    pub fn moved(&mut self, old: i32, new: i32) {
        if let Some(entry) = self.tasks.remove(&old) {
            self.tasks.insert(new, entry);
        }
    }

    /// A thread has no task any more.
    pub fn forget(&mut self, tid: i32) {
        self.tasks.remove(&tid);
    }

    /// A thread died while it carried out a call, and was reaped.
    pub fn lost(&mut self, tid: i32) {
        self.forget(tid);
        self.reaped(tid, crate::Rusage::default());
    }

    /// Ends a stopped thread that has no task any more, and its process if it was the last one.
    pub fn retire(&mut self, tid: i32, space: &Process) {
        // The process's first thread stays stopped instead: without it memory could not be reached by its number.
        if !space.leave() && tid != space.pid {
            let base = self.zygote.1;
            let _ = self.waits.inject(tid, &base, 60, [0; 6]);
        }
    }

    /// Serves until it is told to stop.
    pub fn run(&mut self) {
        loop {
            for command in self.remote.take() {
                match command {
                    Command::Start(task) => self.start(&task),
                    Command::Go(task) => self.go(&task),
                    Command::First(sink, answer) => {
                        let made =
                            self.fresh().map(|(tid, space)| self.adopt(tid, space, &Regs::default(), sink));
                        // Nobody waits any more: the task is dropped.
                        let _ = answer.send(made);
                    }
                    Command::Stop => return,
                }
            }
            let block = self.remote.idle();
            match self.waits.next(block) {
                Ok(Some((tid, stop, _))) if tid == self.waker => {
                    if matches!(stop, Stop::Dead(_)) {
                        self.loss.of_waker();
                        return;
                    }
                    self.remote.heard();
                    let _ = host::resume(tid, Mode::Native);
                }
                Ok(Some((tid, Stop::Dead(_), _))) if tid == self.zygote.0 => {
                    self.loss.of_zygote();
                    return;
                }
                Ok(Some((tid, stop, usage))) => {
                    if matches!(stop, Stop::Dead(_)) {
                        self.reaped(tid, usage);
                    }
                    self.stopped(tid, stop);
                }
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    /// Ends all that is left, and waits for it.
    pub fn end(&mut self) {
        self.loss.over();
        self.remote.close();
        if let Some(init) = &self.init {
            crate::hostcalls::pidfd_kill(std::os::fd::AsFd::as_fd(init));
        }
        for pid in [self.waker, self.zygote.0] {
            host::kill(pid);
        }
        let tasks: Vec<_> = self.tasks.drain().filter_map(|(_, (task, _))| task.upgrade()).collect();
        for task in tasks {
            let space = task.lock().space.clone();
            space.kill();
        }
        while host::wait(-1, true).is_ok() {}
    }

    fn start(&mut self, task: &Arc<Task>) {
        let mut st = task.lock();
        if st.run != Run::New {
            return;
        }
        st.run = Run::Handling;
        let tid = st.tid;
        drop(st);
        self.tasks.insert(tid, (Arc::downgrade(task), Some(task.clone())));
        self.deliver(task, Event::Started);
    }

    fn go(&mut self, task: &Arc<Task>) {
        let mut st = task.lock();
        if st.run != Run::Parked {
            return;
        }
        let early = st.early.take();
        if early.is_none() && !st.kicked {
            return;
        }
        if let Some(value) = early {
            task.stopped.lock().set_rax(value);
        }
        if st.kicked {
            st.kicked = false;
            st.run = Run::Handling;
            drop(st);
            let event = if early.is_some() { Event::Interrupted } else { Event::Again };
            self.deliver(task, event);
            return;
        }
        st.run = Run::Running;
        let tid = st.tid;
        drop(st);
        proceed(task, tid);
    }

    /// A thread was reaped; if it was the first one of its process, the process is no more.
    fn reaped(&mut self, tid: i32, usage: crate::Rusage) {
        if let Some(last) = self.processes.remove(&tid) {
            last.set(usage);
        }
    }

    fn stopped(&mut self, tid: i32, stop: Stop) {
        let Some((task, _)) = self.tasks.get(&tid) else {
            // A thread whose maker died before it could tell of it. (The zygote does not stop by itself.)
            if !matches!(stop, Stop::Dead(_)) && tid != self.zygote.0 {
                host::kill(tid);
            }
            return;
        };
        let task = task.upgrade();
        if let Stop::Dead(signal) = stop {
            self.forget(tid);
            if let Some(task) = task {
                self.dead(&task, signal);
            }
            return;
        }
        let Some(task) = task else { return };
        let mut st = task.lock();
        if st.run != Run::Running {
            return;
        }
        let event = match stop {
            Stop::Signal(layout::INTERRUPT) if st.kicked => {
                st.kicked = false;
                Some(Event::Interrupted)
            }
            _ => classify(tid, stop),
        };
        let Some(event) = event else {
            drop(st);
            proceed(&task, tid);
            return;
        };
        st.run = Run::Handling;
        drop(st);
        let mut stopped = task.stopped.lock();
        stopped.orig_rax = u64::MAX;
        if let Event::Syscall(request) = event {
            stopped.orig_rax = request.nr.into();
            stopped.at_call = stop == Stop::Syscall;
        }
        drop(stopped);
        self.deliver(&task, event);
    }

    /// A task's thread is dead.
    fn dead(&self, task: &Task, signal: i32) {
        let mut st = task.lock();
        if st.run == Run::Done {
            return;
        }
        st.run = Run::Done;
        let space = st.space.clone();
        drop(st);
        let silent = space.silent();
        space.leave();
        if !silent {
            self.loss.check();
            task.sink.gone(if signal == 0 { libc::SIGKILL } else { signal });
        }
    }

    /// Runs the sink until the task goes on or stops.
    fn deliver(&mut self, task: &Arc<Task>, mut event: Event) {
        let st = task.lock();
        let (tid, space) = (st.tid, st.space.clone());
        drop(st);
        let stopped = *task.stopped.lock();
        let mut port = PtracePort::new(self, task, tid, space, stopped);
        loop {
            // What a sink that panics left half done is behind its own locks; its task does not go on.
            let handled = catch_unwind(AssertUnwindSafe(|| {
                let verdict = task.sink.event(event, &mut port);
                task.sink.settle();
                verdict
            }));
            let mut st = task.lock();
            if let Some(signal) = port.lost {
                st.run = Run::Done;
                let space = st.space.clone();
                drop(st);
                let silent = space.silent();
                space.leave();
                if !silent && !matches!(handled, Ok(Verdict::Exit)) {
                    task.sink.gone(if signal == 0 { libc::SIGKILL } else { signal });
                }
                return;
            }
            let Ok(verdict) = handled else {
                st.run = Run::Parked;
                st.space.destroy();
                return;
            };
            let verdict = match (verdict, st.early.take()) {
                (Verdict::Park | Verdict::Resume, Some(value)) => Verdict::Return(value),
                (Verdict::Park, None) if port.finished => Verdict::Resume,
                (verdict, _) => verdict,
            };
            if let Verdict::Return(value) = verdict {
                port.stopped.set_rax(value);
            }
            match verdict {
                Verdict::Return(_) | Verdict::Resume if st.kicked => {
                    st.kicked = false;
                    event = Event::Interrupted;
                }
                Verdict::Park if st.kicked => {
                    st.kicked = false;
                    event = Event::Again;
                }
                Verdict::Return(_) | Verdict::Resume => {
                    let tid = port.tid;
                    *task.stopped.lock() = port.stopped;
                    st.run = Run::Running;
                    drop(st);
                    proceed(task, tid);
                    return;
                }
                Verdict::Park => {
                    *task.stopped.lock() = port.stopped;
                    st.run = Run::Parked;
                    return;
                }
                Verdict::Exit => {
                    st.run = Run::Done;
                    let (tid, space) = (st.tid, st.space.clone());
                    drop(st);
                    self.forget(tid);
                    self.retire(tid, &space);
                    return;
                }
            }
        }
    }
}

impl Stopped {
    /// Sets rax of the registers to go on with.
    pub fn set_rax(&mut self, value: i64) {
        match &mut self.regs {
            Some(regs) => {
                regs.rax = value as u64;
                self.changed = true;
            }
            None => self.rax = Some(value),
        }
    }
}

/// Lets a task run guest code. A failure means that it is dying, of which the tracer will hear.
fn proceed(task: &Task, tid: i32) {
    let mut stopped = task.stopped.lock();
    let now = std::mem::take(&mut *stopped);
    stopped.step = now.step;
    drop(stopped);
    let _ = write_back(tid, &now);
    let _ = host::resume(tid, if now.step { Mode::EmulateStep } else { Mode::Emulate });
}

fn write_back(tid: i32, stopped: &Stopped) -> io::Result<()> {
    match stopped.regs {
        Some(regs) if stopped.changed => host::set_regs(tid, &regs),
        _ => match stopped.rax {
            Some(value) => host::set_rax(tid, value),
            // The host has put ENOSYS there.
            None if stopped.at_call => host::set_rax(tid, stopped.orig_rax as i64),
            None => Ok(()),
        },
    }
}

fn classify(tid: i32, stop: Stop) -> Option<Event> {
    match stop {
        Stop::Syscall => host::syscall(tid).ok().map(Event::Syscall),
        Stop::Signal(libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP) => {
            let info = host::siginfo(tid).ok()?;
            // What a process of the host has sent is no exception.
            if info.code > 0 { Some(Event::Exception(fault::describe(tid, &info))) } else { None }
        }
        Stop::Signal(libc::SIGSYS) => {
            // The filter's answer to a call that is no instruction: the host emulates the vsyscall page.
            let info = host::siginfo(tid).ok()?;
            let regs = host::regs(tid).ok()?;
            let args = [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9];
            (info.code == 1).then(|| Event::Syscall(host::request(info.arch, info.nr as u32, args)))
        }
        _ => None,
    }
}
