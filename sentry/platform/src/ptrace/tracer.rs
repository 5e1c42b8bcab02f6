//! The tracer: the one thread that owns all guest threads, and on which all events are handled.

use super::fault;
use super::fds::Fds;
use super::host::{self, Mode, Stop};
use super::port::PtracePort;
use super::space::Process;
use super::task::{Command, Remote, Run, Stopped, Task};
use super::template;
use crate::cputime::LastUsage;
use crate::{CallError, Event, NewTask, Regs, Space, TaskSink, Verdict};
use lazaret_shim::layout;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// [`PtraceConfig::on_loss`](super::PtraceConfig).
    pub on_loss: Option<fn(&'static str) -> !>,
    /// Where the vDSO lies in every guest, 0 if nowhere.
    pub vdso: u64,
    /// Tasks by host thread. A task that was started is kept; others live as long as somebody has them.
    pub tasks: HashMap<i32, (Weak<Task>, Option<Arc<Task>>)>,
    /// The idle init of the guests' pid namespace.
    pub init: Option<OwnedFd>,
    /// Processes that are not reaped, by number: where to tell what they have used.
    pub processes: HashMap<i32, Arc<LastUsage>>,
}

const ZYGOTE: &str = "the process that guests are made from";
const INIT: &str = "the init of the guests";

/// A host call made by a tracee, and the thread that it made.
pub type Injected = (i64, Option<i32>);

/// How often each call was injected, by number.
static CALLS: [AtomicU64; 512] = [const { AtomicU64::new(0) }; 512];

/// Counts a call that a guest process makes on the host.
pub fn count(nr: u64) {
    if let Some(calls) = usize::try_from(nr).ok().and_then(|nr| CALLS.get(nr)) {
        calls.fetch_add(1, Ordering::Relaxed);
    }
}

/// The calls that guest processes made on the host, by number.
pub fn counts() -> Vec<(u64, u64)> {
    let all = (0..).zip(CALLS.iter().map(|calls| calls.load(Ordering::Relaxed)));
    all.filter(|(_, count)| *count > 0).collect()
}

/// Makes a stopped tracee carry out a host call. Its registers are lost.
///
/// # Errors
/// The signal that ended it; it is reaped.
pub fn inject(tid: i32, base: &Regs, nr: u64, args: [u64; 6]) -> Result<Injected, i32> {
    let [rdi, rsi, rdx, r10, r8, r9] = args;
    let (rip, eflags, cs) = (template::CALL, 0x202, 0x33);
    let regs = Regs { rip, eflags, cs, rax: nr, rdi, rsi, rdx, r10, r8, r9, ..*base };
    count(nr);
    if host::set_regs(tid, &regs).and_then(|()| host::resume(tid, Mode::Native)).is_err() {
        host::kill(tid);
    }
    let mut child = None;
    loop {
        let stop = match host::wait(tid, true) {
            Ok(Some((_, stop))) => stop,
            Ok(None) => continue,
            Err(_) => return Err(libc::SIGKILL),
        };
        match stop {
            Stop::Dead(signal) => return Err(signal),
            Stop::Clone => child = host::new_tid(tid).ok(),
            Stop::Signal(libc::SIGTRAP) => {
                if let Ok(now) = host::regs(tid)
                    && now.rip == template::CALL_DONE
                {
                    return Ok((now.rax as i64, child));
                }
            }
            // The page of the call is broken.
            Stop::Signal(libc::SIGSEGV | libc::SIGILL | libc::SIGBUS | libc::SIGSYS) => host::kill(tid),
            // A kick: its flag is looked at when the event has been handled.
            Stop::Signal(_) | Stop::Other | Stop::Syscall => {}
        }
        // A failure means that it is dying.
        let _ = host::resume(tid, Mode::Native);
    }
}

/// Why a clone did not work.
pub enum CloneError {
    /// The host's answer.
    Errno(i32),
    /// The maker died of this signal, and is reaped.
    Dead(i32),
}

/// Makes a stopped tracee clone itself; the new tracee is stopped at its start.
pub fn clone(tid: i32, base: &Regs, flags: u64) -> Result<i32, CloneError> {
    let (value, child) = inject(tid, base, 56, [flags, 0, 0, 0, 0, 0]).map_err(CloneError::Dead)?;
    if value < 0 {
        return Err(CloneError::Errno(i32::try_from(-value).unwrap_or(libc::EIO)));
    }
    let child = child.ok_or(CloneError::Errno(libc::EAGAIN))?;
    match host::wait(child, true) {
        Ok(Some((_, Stop::Dead(_)))) | Err(_) => Err(CloneError::Errno(libc::EAGAIN)),
        Ok(_) => Ok(child),
    }
}

impl Tracer {
    /// A thread in a fresh process.
    pub fn fresh(&mut self) -> Result<(i32, Arc<Process>), CallError> {
        let (zygote, base) = self.zygote;
        let tid = clone(zygote, &base, layout::CLONE_PARENT).map_err(|error| match error {
            CloneError::Errno(errno) => CallError::Errno(errno),
            // Its death is reaped here: the loop never hears of it.
            CloneError::Dead(_) => {
                self.fail(ZYGOTE);
                CallError::Gone
            }
        })?;
        Ok((tid, self.process(tid)?))
    }

    /// A guest's thread is dead. SIGKILL that nobody inside sent may be the end of the whole pid namespace, whose init
    /// was the target: the program did not die of it, the sandbox did. The host sends SIGKILL to the zygote before it
    /// does so to any guest, since the zygote has the lower number, and a tracee that is to die of it takes no request
    /// any more.
    pub fn check_loss(&self, signal: i32) {
        if signal == libc::SIGKILL && host::regs(self.zygote.0).is_err() {
            self.fail(INIT);
        }
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
            let _ = inject(tid, &base, 60, [0; 6]);
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
            match host::wait_usage(-1, block) {
                Ok(Some((tid, stop, _))) if tid == self.waker => {
                    if matches!(stop, Stop::Dead(_)) {
                        self.fail(INIT);
                        return;
                    }
                    self.remote.heard();
                    let _ = host::resume(tid, Mode::Native);
                }
                Ok(Some((tid, Stop::Dead(_), _))) if tid == self.zygote.0 => {
                    self.fail(ZYGOTE);
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

    /// Ends the sandbox: nothing goes on without `what`.
    fn fail(&self, what: &'static str) {
        if let Some(on_loss) = self.on_loss {
            on_loss(what);
        }
    }

    /// Ends all that is left, and waits for it.
    pub fn end(&mut self) {
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
        if !silent {
            self.check_loss(signal);
        }
        space.leave();
        if !silent {
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
            let handled = catch_unwind(AssertUnwindSafe(|| task.sink.event(event, &mut port)));
            let mut st = task.lock();
            if let Some(signal) = port.lost {
                st.run = Run::Done;
                let space = st.space.clone();
                drop(st);
                let silent = space.silent();
                if !silent {
                    port.check_loss(signal);
                }
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
