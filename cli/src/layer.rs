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
    form: Form,
    option: &'static str,
    spool: File,
}

/// How a deleted name is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// It is removed.
    Plain,
    /// A mark of overlayfs says so, for another layer below.
    Overlay,
}

/// What was asked for.
#[derive(Default)]
pub struct Outputs {
    pub diff: bool,
    export: Option<File>,
    /// What is applied when the program has ended.
    pub commits: Vec<Commit>,
}

impl Outputs {
    /// Opens what the options name.
    ///
    /// # Errors
    /// One line.
    pub fn open(
        diff: bool,
        export: Option<&Path>,
        commit: Option<&Path>,
        upper: Option<&Path>,
    ) -> Result<Outputs, String> {
        let upper = upper.map(|dir| Commit::to(dir, &[], "--upper", Form::Overlay));
        let commits = commit.map(Commit::open).into_iter().chain(upper).collect::<Result<Vec<_>, _>>()?;
        let create =
            |path: &Path| File::create(path).map_err(|e| format!("--export: {}: {e}", path.display()));
        Ok(Outputs { diff, export: export.map(create).transpose()?, commits })
    }

    /// Whether anything is to be had when the program has ended.
    pub fn wanted(&self) -> bool {
        self.diff || self.export.is_some() || !self.commits.is_empty()
    }

    /// The files that the sentry writes archives to, with the option's name.
    pub fn files(&self) -> Vec<(&'static str, RawFd)> {
        let export = self.export.iter().map(|file| ("--export", file.as_raw_fd()));
        let commit = self.commits.iter().map(|commit| (commit.option, commit.spool.as_raw_fd()));
        export.chain(commit).collect()
    }
}

impl Commit {
    /// `DIR[:PATH]`.
    fn open(text: &Path) -> Result<Commit, String> {
        let bytes = text.as_os_str().as_bytes();
        let at = bytes.windows(2).rposition(|two| two == b":/").unwrap_or(bytes.len());
        let (name, inside) = bytes.split_at(at);
        let name = Path::new(OsStr::from_bytes(name));
        let inside: Vec<&[u8]> =
            inside.split(|b| matches!(b, b'/' | b':')).filter(|p| !p.is_empty()).collect();
        Self::to(name, &inside.join(&b'/'), "--commit", Form::Plain)
    }

    fn to(name: &Path, inside: &[u8], option: &'static str, form: Form) -> Result<Commit, String> {
        let failed = |e: rustix::io::Errno| format!("{option}: {}: {e}", name.display());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(name, flags, Mode::empty()).map_err(failed)?;
        // Where the changes go there is room for them, once more.
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::EXCL | OFlags::CLOEXEC;
        let spool = rustix::fs::openat(&dir, c".", flags, Mode::RUSR | Mode::WUSR)
            .or_else(|_| rustix::fs::memfd_create(c"lazaret-layer", rustix::fs::MemfdFlags::CLOEXEC))
            .map_err(failed)?;
        let (inside, name) = (inside.to_vec(), name.to_owned());
        Ok(Commit { dir, inside, form, option, spool: File::from(spool), name })
    }

    /// Applies what the sentry wrote. Lines for standard error, of what was left out.
    ///
    /// # Errors
    /// One line. What was applied before stays.
    pub fn apply(&mut self) -> Result<Vec<String>, String> {
        let applied = apply::Applied::new(&self.dir, &self.inside, self.form).all(&mut self.spool);
        let failed = |what| format!("{}: {}: {what}", self.option, self.name.display());
        Ok(applied.map_err(failed)?.into_iter().map(|line| format!("{}: {line}", self.option)).collect())
    }
}
