//! The polling thread.

use super::task::{State, Task};
use std::sync::Arc;

/// How often a task calls.
#[derive(Debug, Default, Clone, Copy)]
pub struct Rate {
    /// When it last went on, in TSC ticks.
    resumed: u64,
}

/// The poller.
#[derive(Default)]
pub struct Poller;

impl Poller {
    /// A doorbell rang for a request.
    pub fn observe(&self, _task: &Arc<Task>, _st: &mut State) {}

    /// A task goes on.
    pub fn resumed(&self, _st: &mut State) {}
}
