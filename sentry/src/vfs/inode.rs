//! What a file system offers for each of its files.

/// An inode of any file system.
pub trait Inode: std::any::Any + Send + Sync {}
