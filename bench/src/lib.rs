//! Children with an end and process trees, for the bench and for other suites that run programs in sandboxes.

pub mod child;
pub mod host;
pub mod tree;
