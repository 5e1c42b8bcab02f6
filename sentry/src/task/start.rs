//! A task's first steps in its own context.

use super::Task;
use platform::Port;
use std::sync::Arc;

/// What a new task does before its first guest instruction.
pub enum First {
    /// Loads a program (the sandbox's first task).
    Exec {},
    /// Starts with the registers it was created with (fork, clone).
    Child {},
}

/// Does it. Err: the task has ended.
pub(crate) fn started(_task: &Arc<Task>, _port: &mut dyn Port) -> Result<(), ()> {
    Err(())
}
