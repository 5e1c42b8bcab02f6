//! The life of a system call: begun by an event, tried, parked, tried again, ended.

use crate::cx::Cx;
use crate::fail::{Fail, Restart, SysResult};
use crate::ipc::futex;
use crate::ptrace::{stop, watch};
use crate::results::Results;
use crate::seccomp::judge::judge;
use crate::signal::deliver::{self, Outcome};
use crate::task::{Task, coredump};
use crate::time::ticks;
use crate::wait::{do_later, take_deferred};
use platform::{Abi, CallError, Event, Gone, Port, SyscallRequest, TaskSink, Verdict};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use syscall_table::abi::sigaction::{SIGKILL, SIGTRAP, Siginfo};
use syscall_table::abi::wait::WaitStatus;
use syscall_table::errno::Errno;

/// A task's current system call.
#[derive(Default)]
pub struct Call {
    /// Whether a call is under way (begun and not ended).
    pub active: bool,
    /// Convention of the call.
    pub abi: Abi,
    /// Number of the call.
    pub nr: u32,
    /// Argument registers.
    pub args: [u64; 6],
    /// Kept by [`Cx::deadline`].
    pub deadline: Option<Option<Duration>>,
    /// Kept by [`Cx::state`], one of each type: a handler and what it calls keep their own.
    pub state: Vec<Box<dyn Any + Send>>,
    /// The ended call's value when signals must be dealt with before it is returned, and how it restarts if it was
    /// interrupted.
    pub(crate) ended: Option<Ended>,
    /// The task is in a call (until the stop behind it, if somebody traces it).
    pub(crate) in_call: bool,
    /// The stop before this call is still to come.
    pub(crate) entry: bool,
    /// A tracer is to be shown this event, with its message.
    pub(crate) event: Option<(i32, u64)>,
    /// A signal that the tracer has seen and lets through.
    pub(crate) injected: Option<Siginfo>,
    /// The task was killed, and shows its end to a tracer first.
    pub(crate) ending: Option<WaitStatus>,
    /// A call to be continued by restart_syscall(2): what it was, with its deadline.
    pub(crate) restart_block: Option<RestartBlock>,
    timer: Option<crate::time::TimerId>,
    /// The task's filters have not let it pass yet.
    unjudged: bool,
}

/// How a call ended, before signals are looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ended {
    /// With this value of rax.
    Value(i64),
    /// A signal came first.
    Interrupted(Restart),
}

/// What restart_syscall(2) continues.
pub(crate) struct RestartBlock {
    pub(crate) nr: u32,
    pub(crate) args: [u64; 6],
    pub(crate) deadline: Option<Option<Duration>>,
    pub(crate) state: Vec<Box<dyn Any + Send>>,
}

impl Call {
    /// The call has ended: what its handler kept goes, and with it its places in futex queues.
    pub(crate) fn over(&mut self) {
        self.active = false;
        self.state.clear();
    }

    fn begin(&mut self, req: &SyscallRequest, filtered: bool) {
        self.active = true;
        self.unjudged = filtered;
        self.abi = req.abi;
        self.nr = req.nr;
        self.args = req.args;
        self.deadline = None;
        self.state.clear();
        self.ended = None;
        self.event = None;
    }
}

impl TaskSink for Task {
    fn event(&self, event: Event, port: &mut dyn Port) -> Verdict {
        let Some(task) = self.me() else { return Verdict::Exit };
        let begun = ticks::begin();
        let verdict = on_event(&task, event, port);
        // Who is parked may have gone on already.
        if verdict != Verdict::Park {
            task.wakes_seen.store(futex::wakes(), Relaxed);
        }
        task.served.fetch_add(ticks::spent(begun), Relaxed);
        do_later();
        verdict
    }

    fn gone(&self, signal: i32) {
        if let Some(task) = self.me() {
            crate::task::exit::host_death(&task, signal);
            drain();
        }
    }
}

fn on_event(task: &Arc<Task>, event: Event, port: &mut dyn Port) -> Verdict {
    if task.is_dead() {
        return Verdict::Exit;
    }
    let mut call = task.call.lock();
    if task.tracing.stepping.load(Relaxed) && port.full() {
        task.tracing.stepping.store(false, Relaxed);
        if port.single_step(false).is_err() {
            return gone(task, &mut call);
        }
    }
    crate::ptrace::force::run(task, port);
    crate::task::usage::tell(task, port);
    if task.process.coredump.is_on()
        && let Some(verdict) = dumping(task, &mut call, port)
    {
        return verdict;
    }
    if task.tracing.is_held() {
        return held(task, &mut call, port);
    }
    match event {
        Event::Started => match crate::task::start::started(task, &mut call, port) {
            Ok(()) => user_return(task, &mut call, port, None),
            Err(()) => Verdict::Exit,
        },
        Event::Syscall(req) => {
            call.begin(&req, task.judges());
            if req.abi == Abi::X86_64 {
                task.kernel.report.trace_enter(task, &call);
                call.in_call = true;
                call.entry = stop::shows_calls(task);
            }
            attempt_with_port(task, &mut call, port)
        }
        Event::Again => {
            if call.active && call.ended.is_none() {
                attempt_with_port(task, &mut call, port)
            } else {
                let ended = call.ended.take();
                user_return(task, &mut call, port, ended)
            }
        }
        Event::Interrupted => user_return(task, &mut call, port, None),
        Event::Failed(errno) => {
            let value = task.mm().undo(port, errno);
            call.ended = None;
            user_return(task, &mut call, port, Some(Ended::Value(value)))
        }
        Event::Exception(exception) if crate::mm::limits::grow(task, port, &exception) => {
            user_return(task, &mut call, port, None)
        }
        Event::Exception(exception) => {
            match watch::look(task, port, &exception) {
                watch::Seen::Nothing => {}
                watch::Seen::Hit(code, at) => {
                    crate::signal::fault::force(task, Siginfo::fault(SIGTRAP, code, at));
                }
                watch::Seen::Other => crate::signal::fault::raise(task, &exception),
            }
            user_return(task, &mut call, port, None)
        }
    }
}

/// A core file is made of the task's process. None: not any more.
fn dumping(task: &Arc<Task>, call: &mut Call, port: &mut dyn Port) -> Option<Verdict> {
    if !port.full() {
        task.control().kick();
        return Some(Verdict::Park);
    }
    match coredump::held(task, call, port) {
        Ok(None) => None,
        Ok(Some(coredump::Held::Stays)) => Some(Verdict::Park),
        Ok(Some(coredump::Held::Ends(signal, dumped))) => {
            match deliver::end(task, call, port, WaitStatus::signaled(signal, dumped)) {
                Outcome::Stopped => Some(Verdict::Park),
                _ => Some(leave(task, call)),
            }
        }
        Err(_) => Some(gone(task, call)),
    }
}

/// A traced task that is stopped stays so, until its tracer lets it go on.
fn held(task: &Arc<Task>, call: &mut Call, port: &mut dyn Port) -> Verdict {
    if !port.full() {
        task.control().kick();
        return Verdict::Park;
    }
    let Some(resumed) = stop::resumed(task) else { return Verdict::Park };
    if stop::apply(task, call, port, resumed).is_err() {
        return gone(task, call);
    }
    if let Some(status) = call.ending.take() {
        crate::task::exit::group(&task.kernel, &task.process, status, Some(task));
        return leave(task, call);
    }
    if call.active && call.ended.is_none() {
        attempt_with_port(task, call, port)
    } else {
        let ended = call.ended.take();
        user_return(task, call, port, ended)
    }
}

/// The host's side has died.
fn gone(task: &Arc<Task>, call: &mut Call) -> Verdict {
    crate::task::exit::host_death(task, SIGKILL);
    leave(task, call)
}

/// Tries the call until it ends or parks.
enum Tried {
    Ended(Ended),
    Parked,
    NeedPort,
    Traced,
    Resume,
    Exit,
}

fn attempt(
    task: &Arc<Task>,
    call: &mut Call,
    mut port: Option<&mut dyn Port>,
    mut results: Option<&mut Results>,
) -> Tried {
    loop {
        task.waiter.arm();
        let mut cx = Cx::new(task, call, port.as_mut().map(|p| &mut **p as &mut dyn Port));
        cx.results = results.as_deref_mut();
        let result = handle(&mut cx);
        if task.is_dead() {
            return Tried::Exit;
        }
        let value = match result {
            Ok(value) => value as i64,
            Err(Fail::Error(e)) => -i64::from(e.raw()),
            Err(Fail::Denial(denial)) => {
                task.kernel.report.denial(task, call.nr, &denial);
                -i64::from(denial.errno.raw())
            }
            Err(Fail::Gap(gap)) => {
                task.kernel.report.gap(task, call.nr, &gap.detail, gap.errno);
                -i64::from(gap.errno.raw())
            }
            Err(Fail::Block(block)) => {
                let uninterruptible = block.restart == Restart::Uninterruptible;
                if if uninterruptible { deliver::fatal(task) } else { deliver::pending(task) } {
                    cx.write_left(block.deadline);
                    return Tried::Ended(Ended::Interrupted(block.restart));
                }
                if let Some(deadline) = block.deadline {
                    call.timer =
                        Some(task.kernel.timers.arm(deadline, task.waiter.clone(), task.waiter.epoch()));
                }
                task.sleeps_deeply.store(uninterruptible, Relaxed);
                let parked = task.waiter.park();
                if parked {
                    task.parks.fetch_add(1, Relaxed);
                    return Tried::Parked;
                }
                disarm_timer(task, call);
                continue;
            }
            Err(Fail::NeedPort) => return Tried::NeedPort,
            Err(Fail::Traced) => return Tried::Traced,
            Err(Fail::Resume) => return Tried::Resume,
            Err(Fail::Exit) => return Tried::Exit,
        };
        return Tried::Ended(Ended::Value(value));
    }
}

/// One attempt: of the task's filters first, as long as they have not let the call pass.
fn handle(cx: &mut Cx) -> SysResult {
    if cx.call.unjudged {
        if let Some(value) = judge(cx)? {
            return Ok(value);
        }
        cx.call.unjudged = false;
    }
    let _running = crate::vfs::outside::running_call();
    match cx.call.abi {
        Abi::X86_64 => crate::syscalls::dispatch(cx),
        Abi::X32 => Err(Fail::gap(Errno::ENOSYS, "x32 system call")),
        Abi::I386 => Err(Fail::gap(Errno::ENOSYS, "32-bit system call (int 0x80)")),
    }
}

fn disarm_timer(task: &Task, call: &mut Call) {
    if let Some(timer) = call.timer.take() {
        task.kernel.timers.disarm(timer);
    }
}

fn attempt_with_port(task: &Arc<Task>, call: &mut Call, port: &mut dyn Port) -> Verdict {
    disarm_timer(task, call);
    loop {
        if call.entry || call.event.is_some() {
            if !port.full() {
                task.control().kick();
                return Verdict::Park;
            }
            let stopped = if std::mem::take(&mut call.entry) {
                stop::entry(task, call, port)
            } else {
                let event = call.event.take().unwrap_or_default();
                stop::event(task, call, port, event, None)
            };
            match stopped {
                Ok(true) => return Verdict::Park,
                Ok(false) => {}
                Err(_) => return gone(task, call),
            }
        }
        let tried = attempt(task, call, Some(&mut *port), None);
        if !matches!(tried, Tried::Traced) {
            return after(task, call, port, tried);
        }
    }
}

fn after(task: &Arc<Task>, call: &mut Call, port: &mut dyn Port, tried: Tried) -> Verdict {
    match tried {
        Tried::Parked => Verdict::Park,
        Tried::NeedPort | Tried::Traced => {
            task.control().kick();
            Verdict::Park
        }
        Tried::Exit => leave(task, call),
        Tried::Resume => {
            task.waiter.disarm();
            task.kernel.report.trace_leave(task, call, None);
            call.over();
            user_return(task, call, port, None)
        }
        Tried::Ended(ended) => end(task, call, port, ended),
    }
}

fn end(task: &Arc<Task>, call: &mut Call, port: &mut dyn Port, ended: Ended) -> Verdict {
    task.waiter.disarm();
    user_return(task, call, port, Some(ended))
}

fn leave(task: &Arc<Task>, call: &mut Call) -> Verdict {
    task.waiter.disarm();
    task.kernel.report.trace_leave(task, call, None);
    call.over();
    Verdict::Exit
}

/// On the way back to guest code: pending signals first. `ended` is the call being left, if any.
fn user_return(task: &Arc<Task>, call: &mut Call, port: &mut dyn Port, mut ended: Option<Ended>) -> Verdict {
    if task.is_dead() {
        return leave(task, call);
    }
    let traced = task.tracing.is_traced();
    if traced {
        match traced_return(task, call, port, &mut ended) {
            Some(verdict) => return verdict,
            None => call.ended = None,
        }
    } else {
        call.in_call = false;
        call.event = None;
    }
    let interrupted = matches!(ended, Some(Ended::Interrupted(_)));
    // Asked once: a signal that comes now interrupts the task in guest code, and must not find a port without registers.
    let pending = deliver::pending(task) || call.injected.is_some();
    if (pending || interrupted) && !port.full() {
        call.ended = ended;
        task.control().kick();
        return Verdict::Park;
    }
    call.ended = None;
    // A signal's frame goes into memory as the call left it.
    if (pending || interrupted) && flush(task, port, &mut ended).is_err() {
        return leave(task, call);
    }
    if !pending && !interrupted {
        let verdict = match ended {
            Some(Ended::Value(value)) => Verdict::Return(value),
            _ => Verdict::Resume,
        };
        if traced && stop::step(task, port).is_err() {
            return gone(task, call);
        }
        if call.active {
            if let Some(Ended::Value(value)) = ended {
                task.kernel.report.trace_leave(task, call, Some(value));
            }
            call.over();
        }
        return verdict;
    }
    if call.active {
        let value = match ended {
            Some(Ended::Value(value)) => Some(value),
            _ => Some(-i64::from(Errno::EINTR.raw())),
        };
        task.kernel.report.trace_leave(task, call, value);
        call.active = false;
    }
    let outcome = deliver::deliver(task, call, port, ended);
    // A restart block has taken what it needs.
    call.over();
    match outcome {
        Outcome::Resume if traced && stop::step(task, port).is_err() => gone(task, call),
        Outcome::Resume => Verdict::Resume,
        Outcome::Exit => leave(task, call),
        // Stopped by job control: parked until continued, then Again comes here with nothing ended.
        Outcome::Stopped => Verdict::Park,
    }
}

/// Has what was left to the task made; its failure is that of the call.
fn flush(task: &Arc<Task>, port: &mut dyn Port, ended: &mut Option<Ended>) -> Result<(), Gone> {
    match port.flush() {
        Ok(()) => Ok(()),
        Err(CallError::Errno(errno)) => {
            let value = task.mm().undo(port, errno);
            if ended.is_some() {
                *ended = Some(Ended::Value(value));
            } else if let Ok(mut regs) = port.regs() {
                regs.rax = value as u64;
                let _ = port.set_regs(&regs);
            }
            Ok(())
        }
        Err(CallError::Gone) => Err(Gone),
    }
}

/// A traced task on its way back: None when it may go on.
fn traced_return(
    task: &Arc<Task>,
    call: &mut Call,
    port: &mut dyn Port,
    ended: &mut Option<Ended>,
) -> Option<Verdict> {
    if !port.full() {
        call.ended = *ended;
        task.control().kick();
        return Some(Verdict::Park);
    }
    if flush(task, port, ended).is_err() {
        return Some(leave(task, call));
    }
    // Kept for when it goes on.
    call.ended = *ended;
    match stop::on_return(task, call, port, *ended) {
        Ok(true) => Some(Verdict::Park),
        Ok(false) => None,
        Err(_) => Some(gone(task, call)),
    }
}

/// Resumes every task that this thread has fired. Call with no lock held, after every event and every turn of the
/// reactor.
pub fn drain() {
    loop {
        do_later();
        let tasks = take_deferred();
        if tasks.is_empty() {
            return;
        }
        for task in tasks {
            let begun = ticks::begin();
            resume(&task);
            task.served.fetch_add(ticks::spent(begun), Relaxed);
        }
    }
}

/// Tries a parked call again on this thread, without a port; hands it to its own worker when it needs one.
fn resume(task: &Arc<Task>) {
    let mut call = task.call.lock();
    if task.is_dead() || !call.active || call.ended.is_some() || task.tracing.is_held() {
        task.control().kick();
        return;
    }
    disarm_timer(task, &mut call);
    let mut results = Results::new(task, &call);
    let tried = attempt(task, &mut call, None, Some(&mut results));
    match tried {
        Tried::Ended(Ended::Value(value)) if !deliver::pending(task) && !task.tracing.is_traced() => {
            call.in_call = false;
            task.waiter.disarm();
            task.kernel.report.trace_leave(task, &call, Some(value));
            call.over();
            // Before the lock goes: an Again that waits for it must find the value in rax.
            task.wakes_seen.store(futex::wakes(), Relaxed);
            task.control().finish_with(value, results.pieces());
            drop(call);
            return;
        }
        _ => results.write(task),
    }
    match tried {
        Tried::Parked => {}
        Tried::Ended(ended) => {
            task.waiter.disarm();
            call.ended = Some(ended);
            task.control().kick();
        }
        Tried::NeedPort | Tried::Traced | Tried::Resume | Tried::Exit => task.control().kick(),
    }
}
