//! Resource limits.

/// Soft and hard limits of a process.
#[derive(Debug, Clone)]
pub struct Limits {}
