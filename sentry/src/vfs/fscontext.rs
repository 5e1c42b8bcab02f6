//! Root, working directory and umask of a task (shared by CLONE_FS).

use crate::sync::{Level, Lock};
use crate::vfs::path::Path;

/// See the module.
pub struct FsContext {
    /// File mode creation mask, 9 bits.
    pub umask: Lock<u32>,
    places: Lock<Places>,
}

#[derive(Clone, Default)]
struct Places {
    root: Option<Path>,
    cwd: Option<Path>,
}

impl FsContext {
    /// With the usual umask, and no root and working directory: those of [`crate::vfs::Vfs::root`].
    pub fn new() -> Self {
        FsContext {
            umask: Lock::new(Level::FsContext, 0o022),
            places: Lock::new(Level::FsContext, Places::default()),
        }
    }

    /// With this root and working directory.
    pub fn with(root: Path, cwd: Path, umask: u32) -> Self {
        FsContext {
            umask: Lock::new(Level::FsContext, umask & 0o777),
            places: Lock::new(Level::FsContext, Places { root: Some(root), cwd: Some(cwd) }),
        }
    }

    /// A copy for a task that does not share it.
    pub fn duplicate(&self) -> FsContext {
        let umask = *self.umask.lock();
        let places = self.places.lock().clone();
        FsContext { umask: Lock::new(Level::FsContext, umask), places: Lock::new(Level::FsContext, places) }
    }

    /// The root directory, if one was set.
    pub fn root(&self) -> Option<Path> {
        self.places.lock().root.clone()
    }

    /// The working directory, if one was set.
    pub fn cwd(&self) -> Option<Path> {
        self.places.lock().cwd.clone()
    }

    /// chroot.
    pub fn set_root(&self, root: Path) {
        let old = self.places.lock().root.replace(root);
        drop(old);
    }

    /// chdir.
    pub fn set_cwd(&self, cwd: Path) {
        let old = self.places.lock().cwd.replace(cwd);
        drop(old);
    }
}

impl FsContext {
    /// pivot_root: who was at `old` is at `new`.
    pub fn pivot(&self, old: &Path, new: &Path) {
        let mut gone = Vec::new();
        let mut places = self.places.lock();
        let Places { root, cwd } = &mut *places;
        for place in [root, cwd] {
            if place.as_ref().is_some_and(|place| place.same(old)) {
                gone.push(place.replace(new.clone()));
            }
        }
        drop(places);
        drop(gone);
    }
}

impl Default for FsContext {
    fn default() -> Self {
        Self::new()
    }
}
