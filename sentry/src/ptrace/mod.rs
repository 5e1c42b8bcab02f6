//! ptrace(2) among the guest's own tasks.
//!
//! The host is not asked: a tracer's request is answered from what the sentry knows of the other task.
//!
//! - **Who traces whom** is a list of [`Link`](links::Link)s in the tree of processes, under its lock: attaching, ends,
//!   waits and the tracer's own end agree there. The task's part is [`Tracing`]: tracer, options, and its stop.
//! - **A stop is data.** Whatever stops a task happens on its way to guest code or into a call ([`stop`], called from
//!   [`crate::run`] and [`crate::signal::deliver`]), where the port is a full one. Registers and extended state are copied
//!   into [`Stop`], the tracer is told, and the task is parked like one in a blocking call. Requests read and write the
//!   copy ([`regs`]); nobody waits for the tracee.
//! - **Going on** is a [`Resumed`] and a kick: the task's own worker finds it in the next event, writes back what was
//!   changed, and continues where it had stopped: the call is begun (or left out), a signal is delivered (or dropped). A
//!   kick for any other reason finds the stop still there and parks again.
//! - **Where stops come from**: a call's entry and end ([`Call::entry`](crate::run::Call), [`stop::on_return`]); events
//!   in the middle of a call, whose handler asks for one and is run again afterwards ([`Fail::Traced`](crate::fail::Fail));
//!   each signal that is taken; the trap flag [`Tracing::trap`], which job control, PTRACE_INTERRUPT and automatic
//!   attachment set.
//! - **Hardware breakpoints** are made of single steps ([`watch`]).
//! - **Nothing short-cuts a traced task**: it returns to guest code by its worker alone, the platform gives no answers
//!   by itself ([`TaskControl::no_answers`](platform::TaskControl)) and rewrites no call sites.
//! - **Memory** is read and written through the host side of the space. What its protection forbids, a tracer may
//!   still do in private memory ([`force`]): a task of that space does it, with the protection lifted for the moment.
//!
//! Locks: [`Tracing`]'s contents are a `Field`; the tracer never takes a tracee's call.

pub(crate) mod force;
pub(crate) mod links;
pub(crate) mod regs;
pub(crate) mod stop;
pub(crate) mod watch;

use crate::sync::{Guard, Level, Lock};
use crate::task::Task;
use platform::{Regs, XState};
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use syscall_table::abi::sigaction::Siginfo;

/// What is known of a task's being traced.
pub struct Tracing {
    state: Lock<State>,
    /// Somebody traces it.
    traced: AtomicBool,
    /// It is in a stop, or has not yet seen that the stop is over.
    held: AtomicBool,
    /// It is to stop soon: a group's stop, PTRACE_INTERRUPT, a new child.
    pub(crate) trap: AtomicBool,
    /// It was let go for one instruction.
    pub(crate) stepping: AtomicBool,
    /// And looks for hardware breakpoints at each.
    pub(crate) watching: AtomicBool,
    /// Status of exit(2), for a tracer.
    pub(crate) status: std::sync::atomic::AtomicI32,
}

impl Default for Tracing {
    fn default() -> Self {
        Tracing {
            state: Lock::new(Level::Field, State::default()),
            traced: AtomicBool::new(false),
            held: AtomicBool::new(false),
            trap: AtomicBool::new(false),
            stepping: AtomicBool::new(false),
            watching: AtomicBool::new(false),
            status: std::sync::atomic::AtomicI32::new(0),
        }
    }
}

/// Under the lock.
#[derive(Default)]
pub(crate) struct State {
    /// Its tracer, if it has one.
    pub(crate) by: Option<Tracer>,
    /// The stop it is in.
    pub(crate) stop: Option<Box<Stop>>,
    /// How it goes on from the one it was in.
    pub(crate) resumed: Option<Box<Resumed>>,
}

/// The tracer's side.
pub(crate) struct Tracer {
    pub(crate) task: Weak<Task>,
    /// PTRACE_SEIZE.
    pub(crate) seized: bool,
    /// PTRACE_O_ bits.
    pub(crate) options: u64,
    /// PTRACE_GETEVENTMSG.
    pub(crate) message: u64,
    /// It stops at calls until it is let go otherwise.
    pub(crate) syscalls: bool,
    /// Calls are the tracer's to make (PTRACE_SYSEMU).
    pub(crate) emulate: bool,
    /// It goes one instruction at a time.
    pub(crate) step: bool,
    /// DR0 to DR7 as the tracer sees them ([`watch`]).
    pub(crate) debug: [u64; 8],
    /// It goes on to the next branch that is taken: `step` is set, too (PTRACE_SINGLEBLOCK).
    pub(crate) block: bool,
    /// What was known before the instruction under way.
    pub(crate) before: watch::Before,
}

/// Why a task is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Before a call.
    Entry,
    /// After a call.
    Exit,
    /// Before a signal.
    Signal,
    /// In a call, or before its end.
    Event,
    /// For its group, or by PTRACE_INTERRUPT.
    Group,
}

/// One stop.
pub(crate) struct Stop {
    pub(crate) kind: Kind,
    /// What a wait reports: the signal, with the event above it.
    pub(crate) code: i32,
    /// PTRACE_GETSIGINFO; an old-style group stop has none.
    pub(crate) info: Option<Siginfo>,
    /// A wait has reported it.
    pub(crate) reported: bool,
    /// PTRACE_LISTEN.
    pub(crate) listening: bool,
    /// The call is not to be made (PTRACE_SYSEMU).
    pub(crate) emulated: bool,
    pub(crate) regs: Regs,
    pub(crate) regs_changed: bool,
    pub(crate) xstate: XState,
    pub(crate) xstate_changed: bool,
}

/// A stop that is over.
pub(crate) struct Resumed {
    pub(crate) stop: Stop,
    /// The signal to be delivered, 0 for none.
    pub(crate) signal: i32,
    /// Who chose it.
    pub(crate) tracer: (i32, u32),
}

impl Tracing {
    /// Whether somebody traces the task.
    pub fn is_traced(&self) -> bool {
        self.traced.load(Ordering::SeqCst)
    }

    /// Whether it is in a stop, or just being let go from one.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::SeqCst)
    }

    /// The state. Takes [`Level::Field`].
    #[track_caller]
    pub(crate) fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// Whether it is in a stop that its tracer has not ended.
    pub fn is_stopped(&self) -> bool {
        self.is_held() && self.lock().stop.is_some()
    }

    /// The tracer.
    pub fn tracer(&self) -> Option<std::sync::Arc<Task>> {
        if !self.is_traced() {
            return None;
        }
        self.lock().by.as_ref().and_then(|by| by.task.upgrade())
    }

    /// Whether its tracer set this option (PTRACE_O_).
    pub(crate) fn wants(&self, option: u64) -> bool {
        self.is_traced() && self.lock().by.as_ref().is_some_and(|by| by.options & option != 0)
    }

    /// Whether it was attached to by PTRACE_SEIZE.
    pub(crate) fn is_seized(&self) -> bool {
        self.is_traced() && self.lock().by.as_ref().is_some_and(|by| by.seized)
    }

    fn set_by(&self, by: Option<Tracer>) {
        let mut state = self.lock();
        self.traced.store(by.is_some(), Ordering::SeqCst);
        state.by = by;
    }

    pub(crate) fn set_held(&self, held: bool) {
        self.held.store(held, Ordering::SeqCst);
    }
}
