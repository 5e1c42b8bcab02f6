//! A place in the mount tree.

/// Mount and dentry.
#[derive(Clone)]
pub struct Path {}
