//! The end of tasks and processes.

use super::Task;
use std::sync::Arc;

/// The host killed the task's process behind our back.
pub(crate) fn host_death(_task: &Arc<Task>, _signal: i32) {}
