//! The upper layer when the program has ended: what changed, and as a tar archive.

mod keep;
mod tar;

pub use keep::Keeper;

use crate::fail::SysResult;
use crate::fs::memfs::{Change, Kind, Node, changes};
use crate::vfs::Vfs;
use crate::vfs::inode::downcast;
use std::fs::File;
use std::sync::Arc;

/// Changed paths that are listed; more are counted.
pub const LISTED: usize = 100_000;

/// The changed paths of a run.
#[derive(Default)]
pub struct Diff {
    /// `A`, `M` or `D`, and the path.
    pub paths: Vec<(char, Vec<u8>)>,
    /// Beyond [`LISTED`].
    pub dropped: u64,
}

/// A path on one line: what is no plain text is escaped.
pub fn shown(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) if !text.chars().any(|c| c.is_control() || c == '\\') => text.to_owned(),
        _ => path.escape_ascii().to_string(),
    }
}

/// The root of the upper layer, if there is one.
fn upper(vfs: &Vfs) -> SysResult<Option<Arc<Node>>> {
    Ok(downcast::<Node>(vfs.root()?.inode()))
}

/// What changed. No program may run any more.
///
/// # Errors
/// The lower layer's.
pub fn diff(vfs: &Vfs) -> SysResult<Diff> {
    let mut diff = Diff::default();
    let Some(root) = upper(vfs)? else { return Ok(diff) };
    changes(&root, &mut |change: Change| {
        let letter = match change.kind {
            Kind::Added => 'A',
            Kind::Modified => 'M',
            Kind::Deleted => 'D',
            Kind::Above => return Ok(()),
        };
        if diff.paths.len() < LISTED {
            diff.paths.push((letter, change.path));
        } else {
            diff.dropped = diff.dropped.saturating_add(1);
        }
        Ok(())
    })?;
    Ok(diff)
}

/// Writes the upper layer as a tar archive of the form that OCI layers have. What was left out, a line each.
///
/// # Errors
/// A line that says what failed.
pub fn export(vfs: &Vfs, to: &File) -> Result<Vec<String>, String> {
    let mut archive = tar::Archive::new(to);
    if let Some(root) = upper(vfs).map_err(|e| format!("{e:?}"))? {
        let told = changes(&root, &mut |change| archive.add(&change));
        told.map_err(|fail| match fail.errno() {
            Some(errno) => errno.message().to_owned(),
            None => format!("{fail:?}"),
        })?;
    }
    archive.finish()
}
