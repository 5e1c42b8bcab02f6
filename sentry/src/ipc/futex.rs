//! Futex queues.

/// All futexes of the sandbox.
#[derive(Default)]
pub struct Futexes {}

/// Wakes up to `count` waiters on a word of the task's memory (private and shared).
pub fn wake_address(_task: &crate::task::Task, _addr: u64, _count: usize) {}

/// Walks the robust list of a task that ends: marks its futexes' owners dead and wakes a waiter of each.
pub fn release_robust(_task: &crate::task::Task) {}
