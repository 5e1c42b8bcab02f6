//! Processor exceptions become signals.

use crate::task::Task;
use platform::Exception;
use std::sync::Arc;

/// Forces the exception's signal on the task.
pub(crate) fn raise(_task: &Arc<Task>, _exception: &Exception) {}
