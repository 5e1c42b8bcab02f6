//! Core files (core(5)): when one is written, and how the other threads of the group are stopped for it.
//!
//! The task whose signal it is makes all others of its group hand in their registers and stay where they are. With the last
//! of them it writes the file ([`file`]), and the group ends.

mod file;
mod note;

use super::Task;
use crate::cx::Cx;
use crate::run::Call;
use crate::sync::{Level, Lock};
use platform::{Gone, Port, Regs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use syscall_table::abi::getrlimit::RLIMIT_CORE;
use syscall_table::abi::sigaction::Siginfo;

/// Less than a page is no core file (min_coredump).
const LEAST: u64 = 4096;

/// What a thread was doing.
pub(crate) struct Thread {
    task: Arc<Task>,
    regs: Regs,
    /// NT_X86_XSTATE, the first 512 bytes of which are NT_FPREGSET.
    xstate: Vec<u8>,
}

struct Dump {
    by: Arc<Task>,
    info: Siginfo,
    /// Threads that have not handed in anything.
    waiting: Vec<i32>,
    threads: Vec<Thread>,
}

/// Of a process.
pub struct State {
    on: AtomicBool,
    dump: Lock<Option<Dump>>,
}

impl Default for State {
    fn default() -> Self {
        State { on: AtomicBool::new(false), dump: Lock::new(Level::Field, None) }
    }
}

/// What becomes of a task whose signal ends it.
pub(crate) enum Begun {
    /// It ends now: with a core file, or without.
    Ends(bool),
    /// It waits for the other threads.
    Waits,
}

/// What becomes of a task while a core file is made of its process.
pub(crate) enum Held {
    /// It stays where it is.
    Stays,
    /// The file is written (or could not be): it ends with this signal.
    Ends(i32, bool),
}

impl State {
    /// Whether a core file is being made.
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(SeqCst)
    }

    fn take(&self) -> Option<Dump> {
        let dump = self.dump.lock().take();
        self.on.store(false, SeqCst);
        dump
    }

    /// A thread has ended before it handed in anything.
    pub(crate) fn left(&self, task: &Task) {
        if self.is_on() {
            self.passed(task.tid());
        }
    }

    /// One thread less to wait for; with the last one the writer goes on.
    fn passed(&self, tid: i32) {
        let writer = {
            let mut dump = self.dump.lock();
            let Some(dump) = dump.as_mut() else { return };
            dump.waiting.retain(|other| *other != tid);
            dump.waiting.is_empty().then(|| dump.by.clone())
        };
        if let Some(writer) = writer {
            writer.control().kick();
        }
    }
}

/// Whether a core file is wanted of the task's process and may be made.
pub(crate) fn is_wanted(task: &Task) -> bool {
    task.process.limit(RLIMIT_CORE) >= LEAST
        && task.process.dumpable.load(SeqCst) == 1
        && !task.process.is_exiting()
}

fn thread(task: &Arc<Task>, port: &mut dyn Port, regs: Regs) -> Result<Thread, Gone> {
    Ok(Thread { task: task.clone(), regs, xstate: port.xstate()?.regset() })
}

/// The signal ends the group: makes a core file, if one is wanted.
///
/// # Errors
/// The host's side is gone.
pub(crate) fn begin(
    task: &Arc<Task>,
    call: &mut Call,
    port: &mut dyn Port,
    regs: Regs,
    info: Siginfo,
) -> Result<Begun, Gone> {
    let state = &task.process.coredump;
    if !is_wanted(task) {
        return Ok(Begun::Ends(false));
    }
    let others: Vec<_> =
        task.process.threads().into_iter().filter(|other| !Arc::ptr_eq(other, task)).collect();
    let own = thread(task, port, regs)?;
    let waiting: Vec<i32> = others.iter().map(|other| other.tid()).collect();
    {
        let mut dump = state.dump.lock();
        if dump.is_some() {
            // Another thread was faster: this one is waited for.
            return Ok(Begun::Waits);
        }
        *dump = Some(Dump { by: task.clone(), info, waiting, threads: vec![own] });
        state.on.store(true, SeqCst);
    }
    if others.is_empty() {
        return Ok(Begun::Ends(write(task, call, port)));
    }
    for other in &others {
        other.control().kick();
    }
    Ok(Begun::Waits)
}

/// At the start of an event of a task of a process of which a core file is made; `port` is a full one. None: not any more.
///
/// # Errors
/// The host's side is gone.
pub(crate) fn held(task: &Arc<Task>, call: &mut Call, port: &mut dyn Port) -> Result<Option<Held>, Gone> {
    let state = &task.process.coredump;
    let (own, waited_for, ready, signal) = {
        let dump = state.dump.lock();
        let Some(dump) = dump.as_ref() else { return Ok(None) };
        let waited_for = dump.waiting.contains(&task.tid());
        (Arc::ptr_eq(&dump.by, task), waited_for, dump.waiting.is_empty(), dump.info.si_signo)
    };
    if own && ready {
        return Ok(Some(Held::Ends(signal, write(task, call, port))));
    }
    task.waiter.disarm();
    if waited_for {
        let regs = port.regs()?;
        let thread = thread(task, port, regs)?;
        if let Some(dump) = state.dump.lock().as_mut() {
            dump.threads.push(thread);
        }
        state.passed(task.tid());
    }
    Ok(Some(Held::Stays))
}

/// Writes the file; whether there is one.
fn write(task: &Arc<Task>, call: &mut Call, port: &mut dyn Port) -> bool {
    let state = &task.process.coredump;
    let Some(dump) = state.dump.lock().take() else { return false };
    let mut cx = Cx::new(task, call, Some(port));
    let written = file::write(&mut cx, &dump.threads, &dump.info).is_ok();
    // The others stay where they are until the group ends.
    state.take();
    written
}
