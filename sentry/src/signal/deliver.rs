//! Delivery on the way back to guest code.

use crate::run::{Call, Ended};
use crate::task::Task;
use platform::Port;
use std::sync::Arc;

/// What became of a task after its signals were looked at.
pub(crate) enum Outcome {
    /// Registers are set; go on.
    Resume,
    /// The task ended.
    Exit,
    /// Stopped by job control.
    Stopped,
}

/// Whether something must be done before guest code goes on: a deliverable signal, a stop, an exit.
pub(crate) fn pending(_task: &Task) -> bool {
    false
}

/// Delivers pending signals; sets rax from `ended` first (or restarts the call).
pub(crate) fn deliver(
    _task: &Arc<Task>,
    _call: &mut Call,
    _port: &mut dyn Port,
    _ended: Option<Ended>,
) -> Outcome {
    Outcome::Resume
}
