//! Signals of the guest.

pub mod deliver;
pub mod fault;

/// Signal actions of a process.
pub struct SigHand {}

/// Signals pending for a process.
#[derive(Default)]
pub struct SharedPending {}

/// Per-thread signal state.
#[derive(Default, Clone)]
pub struct TaskSignals {}
