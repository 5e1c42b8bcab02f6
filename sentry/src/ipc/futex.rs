//! Futex queues.

/// All futexes of the sandbox.
#[derive(Default)]
pub struct Futexes {}
