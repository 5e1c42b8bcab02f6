//! Signals of the guest (signal(7)).
//!
//! - [`send`]: sending, with what sending does at once (SIGKILL, SIGCONT, ignored signals).
//! - [`mask`]: blocked signals, the temporary masks of sigsuspend, ppoll and the like.
//! - [`queue`]: what is pending.
//! - [`deliver`]: on the way back to guest code: default actions and frames.
//! - [`frame`]: the x86-64 signal frame.
//! - [`fault`]: processor exceptions.
//!
//! Locks: the pending signals of a process ([`Process::pending`](crate::task::Process::pending)) before those of a task
//! ([`Task::signals`](crate::task::Task::signals)); actions alone. Sending takes `Process` and `Task` locks, and the tree's
//! for SIGKILL, SIGCONT and stops: call it with no lock but the call's held.

pub mod deliver;
pub mod fault;
pub mod frame;
pub mod lent;
pub mod mask;
pub mod queue;
pub mod send;

use crate::sync::{Level, Lock};
use queue::Queue;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use syscall_table::abi::sigaction::*;

/// Signal actions, shared by CLONE_SIGHAND.
pub struct SigHand {
    actions: Lock<[Sigaction; NSIG as usize]>,
    /// By more than one process.
    shared: AtomicBool,
}

impl Default for SigHand {
    fn default() -> Self {
        SigHand::new([Sigaction::default(); NSIG as usize])
    }
}

fn index(signal: i32) -> usize {
    usize::try_from(signal).ok().and_then(|s| s.checked_sub(1)).unwrap_or(usize::MAX)
}

impl SigHand {
    fn new(actions: [Sigaction; NSIG as usize]) -> SigHand {
        SigHand { actions: Lock::new(Level::Task, actions), shared: AtomicBool::new(false) }
    }

    /// Another process is given it, too.
    pub(crate) fn share(&self) {
        self.shared.store(true, SeqCst);
    }

    /// Whether it was given to more than one process.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.load(SeqCst)
    }

    /// The action of a signal (default for a number that is none).
    pub fn get(&self, signal: i32) -> Sigaction {
        self.actions.lock().get(index(signal)).copied().unwrap_or_default()
    }

    /// Replaces an action, returning the old one.
    pub fn set(&self, signal: i32, action: Sigaction) -> Sigaction {
        match self.actions.lock().get_mut(index(signal)) {
            Some(slot) => std::mem::replace(slot, action),
            None => Sigaction::default(),
        }
    }

    /// The signals whose action is what a new program finds: the default one, without flags and mask.
    pub fn untouched(&self) -> u64 {
        let none = Sigaction::default();
        let actions = self.actions.lock();
        (1..)
            .zip(actions.iter())
            .filter(|(_, action)| **action == none)
            .fold(0, |set, (signal, _)| set | bit(signal))
    }

    /// A copy for fork.
    pub fn duplicate(&self) -> SigHand {
        SigHand::new(*self.actions.lock())
    }

    /// What execve leaves: ignored signals stay ignored, the rest gets its default; nothing is left of flags and masks.
    pub fn after_exec(&self) -> SigHand {
        self.reset(|handler| if handler == SIG_IGN { SIG_IGN } else { SIG_DFL })
    }

    /// CLONE_CLEAR_SIGHAND: as after execve.
    pub fn cleared(&self) -> SigHand {
        self.after_exec()
    }

    fn reset(&self, keep: impl Fn(u64) -> u64) -> SigHand {
        let mut actions = *self.actions.lock();
        for action in &mut actions {
            *action = Sigaction { sa_handler: keep(action.sa_handler), ..Sigaction::default() };
        }
        SigHand::new(actions)
    }
}

/// Signals pending for a process.
#[derive(Default)]
pub struct SharedPending {
    pub(crate) queue: Queue,
}

/// What a processor exception left for the next frame (struct sigcontext: err, trapno, cr2).
#[derive(Debug, Clone, Copy, Default)]
pub struct Fault {
    pub(crate) error_code: u64,
    pub(crate) trapno: u64,
    pub(crate) addr: u64,
}

/// Per-thread signal state.
#[derive(Clone)]
pub struct TaskSignals {
    /// Blocked signals: bit n-1 is signal n. Change it through [`mask`] alone.
    pub(crate) mask: u64,
    /// The mask to be restored when the current call ends ([`mask::set_temporary`]).
    pub(crate) saved_mask: Option<u64>,
    /// Private pending signals.
    pub(crate) queue: Queue,
    /// Alternate stack (SS_DISABLE: none).
    pub(crate) altstack: Stack,
    pub(crate) fault: Fault,
    /// The platform has the mask.
    pub(crate) lent: bool,
}

impl Default for TaskSignals {
    fn default() -> Self {
        TaskSignals {
            mask: 0,
            saved_mask: None,
            queue: Queue::default(),
            altstack: NO_STACK,
            fault: Fault::default(),
            lent: false,
        }
    }
}

impl TaskSignals {
    /// What a new thread or process starts with: the mask alone; the alternate stack too unless the memory is shared.
    pub fn inherit(&self, keep_altstack: bool) -> TaskSignals {
        TaskSignals {
            mask: self.mask,
            altstack: if keep_altstack { self.altstack } else { NO_STACK },
            ..TaskSignals::default()
        }
    }
}

/// No alternate stack.
pub const NO_STACK: Stack = Stack { ss_sp: 0, ss_flags: SS_DISABLE, __pad: 0, ss_size: 0 };

/// Signals that cannot be blocked, caught or ignored.
pub const UNMASKABLE: u64 = bit(SIGKILL) | bit(SIGSTOP);
/// Signals that stop by default.
pub const STOPPING: u64 = bit(SIGSTOP) | bit(SIGTSTP) | bit(SIGTTIN) | bit(SIGTTOU);
/// Signals that end by default, with a core file.
pub const CORE: u64 = bit(SIGQUIT)
    | bit(SIGILL)
    | bit(SIGTRAP)
    | bit(SIGABRT)
    | bit(SIGFPE)
    | bit(SIGSEGV)
    | bit(SIGBUS)
    | bit(SIGSYS)
    | bit(SIGXCPU)
    | bit(SIGXFSZ);
/// Signals ignored by default.
pub const IGNORED: u64 = bit(SIGCHLD) | bit(SIGURG) | bit(SIGWINCH) | bit(SIGCONT);
/// Signals that an instruction causes: delivered before others.
pub const SYNCHRONOUS: u64 =
    bit(SIGSEGV) | bit(SIGBUS) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGFPE) | bit(SIGSYS);

/// The bit of a signal in a mask; 0 for a number that is none.
pub const fn bit(signal: i32) -> u64 {
    Sigset::of(signal).sig
}
