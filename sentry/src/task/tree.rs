//! Pids and the relations between processes.

/// All processes and tasks.
#[derive(Default)]
pub struct Tree {}
