//! Mounts: which file system is where.

use crate::vfs::dentry::Dentry;
use crate::vfs::path::Path;
use std::sync::Arc;

/// A mounted file system.
pub struct Mount {
    /// As in mountinfo.
    pub id: u64,
    /// Where it is mounted; None for the root.
    pub parent: Option<Path>,
    /// Its root.
    pub root: Arc<Dentry>,
    /// File-system type, as in /proc/mounts.
    pub fstype: &'static str,
    /// Device or other source.
    pub source: String,
    /// No changes through this mount.
    pub read_only: bool,
    /// Per-mount options, as in mountinfo.
    pub options: &'static str,
}

impl Mount {
    /// Whether `option` is among the options.
    pub fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|o| o == option)
    }
}

/// What to mount.
pub struct NewMount {
    /// Its root.
    pub root: Arc<Dentry>,
    /// Type.
    pub fstype: &'static str,
    /// Source.
    pub source: String,
    /// No changes.
    pub read_only: bool,
    /// Options beside `rw`/`ro`.
    pub options: &'static str,
}
