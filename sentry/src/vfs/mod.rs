//! Files: open descriptions, descriptor tables, and (below) mounts, path walks and inodes.

pub mod attr;
pub mod fdtable;
pub mod file;
pub mod fscontext;
pub mod inode;
pub mod path;

/// The mount tree and file systems of a sandbox.
#[derive(Default)]
pub struct Vfs {}
