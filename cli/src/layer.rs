//! What becomes of the upper layer at the end: `--diff`, `--export`, `--commit`.
//!
//! The sentry writes archives into files that the launcher opened before the program ran; it can open none itself. What it
//! wrote is applied to a directory by the launcher, which takes each byte of it for the attacker's.

mod apply;
mod tree;

use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The directory that changes go to, and where the archive waits.
pub struct Commit {
    dir: OwnedFd,
    name: PathBuf,
    /// The path inside whose changes are wanted.
    inside: Vec<u8>,
    spool: File,
}

/// What was asked for.
#[derive(Default)]
pub struct Outputs {
    pub diff: bool,
    export: Option<File>,
    pub commit: Option<Commit>,
}

impl Outputs {
    /// Opens what the options name.
    ///
    /// # Errors
    /// One line.
    pub fn open(diff: bool, export: Option<&Path>, commit: Option<&Path>) -> Result<Outputs, String> {
        let create =
            |path: &Path| File::create(path).map_err(|e| format!("--export: {}: {e}", path.display()));
        Ok(Outputs {
            diff,
            export: export.map(create).transpose()?,
            commit: commit.map(Commit::open).transpose()?,
        })
    }

    /// Whether anything is to be had when the program has ended.
    pub fn wanted(&self) -> bool {
        self.diff || self.export.is_some() || self.commit.is_some()
    }

    /// The files that the sentry writes archives to, with the option's name.
    pub fn files(&self) -> Vec<(&'static str, RawFd)> {
        let export = self.export.iter().map(|file| ("--export", file.as_raw_fd()));
        let commit = self.commit.iter().map(|commit| ("--commit", commit.spool.as_raw_fd()));
        export.chain(commit).collect()
    }
}

impl Commit {
    /// `DIR[:PATH]`.
    fn open(text: &Path) -> Result<Commit, String> {
        let bytes = text.as_os_str().as_bytes();
        let at = bytes.windows(2).rposition(|two| two == b":/").unwrap_or(bytes.len());
        let (name, inside) = bytes.split_at(at);
        let name = PathBuf::from(OsStr::from_bytes(name));
        let inside: Vec<&[u8]> =
            inside.split(|b| matches!(b, b'/' | b':')).filter(|p| !p.is_empty()).collect();
        let failed = |e: rustix::io::Errno| format!("--commit: {}: {e}", name.display());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&name, flags, Mode::empty()).map_err(failed)?;
        // Where the changes go there is room for them, once more.
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::EXCL | OFlags::CLOEXEC;
        let spool = rustix::fs::openat(&dir, c".", flags, Mode::RUSR | Mode::WUSR)
            .or_else(|_| rustix::fs::memfd_create(c"lazaret-layer", rustix::fs::MemfdFlags::CLOEXEC))
            .map_err(failed)?;
        Ok(Commit { dir, inside: inside.join(&b'/'), spool: File::from(spool), name })
    }

    /// Applies what the sentry wrote. Lines for standard error, of what was left out.
    ///
    /// # Errors
    /// One line. What was applied before stays.
    pub fn apply(&mut self) -> Result<Vec<String>, String> {
        let applied = apply::Applied::new(&self.dir, &self.inside).all(&mut self.spool);
        applied.map_err(|what| format!("--commit: {}: {what}", self.name.display()))
    }
}
