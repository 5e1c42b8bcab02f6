//! What becomes of the upper layer at the end: `--diff`, `--export`, `--commit`.
//!
//! The sentry writes archives into files that the launcher opened before the program ran; it can open none itself. What it
//! wrote is applied to a directory by the launcher, which takes each byte of it for the attacker's.

mod apply;
mod checkpoint;
mod tree;

use crate::control::Message;
use checkpoint::Checkpoint;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// The directory that changes go to, and where the archive waits.
pub struct Commit {
    dir: OwnedFd,
    name: PathBuf,
    /// The path inside whose changes are wanted.
    inside: Vec<u8>,
    form: Form,
    option: &'static str,
    archive: Archive,
}

/// Where the sentry writes.
enum Archive {
    /// At the end, once.
    Spool(File),
    /// While programs run too.
    Checkpoint(Arc<Checkpoint>),
}

/// Takes checkpoints while the launcher does other things: the disk may be slow.
pub struct Taker {
    told: SyncSender<u8>,
    thread: JoinHandle<()>,
}

impl Taker {
    /// The checkpoint of this number is whole.
    pub fn take(&self, number: u8) {
        // The sentry waits for the answer to one before it tells of another: who does not must not fill memory.
        let _ = self.told.try_send(number);
    }

    /// All that it was told of is done.
    pub fn finish(self) {
        drop(self.told);
        let _ = self.thread.join();
    }
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
        let commit = self.commits.iter().filter_map(|commit| match &commit.archive {
            Archive::Spool(file) => Some((commit.option, file.as_raw_fd())),
            Archive::Checkpoint(_) => None,
        });
        export.chain(commit).collect()
    }

    /// The sentry ended before it had written all: takes back what it began. Lines for standard error, of what is not done.
    pub fn lost(&mut self) -> Vec<String> {
        let export = self.export.iter().map(|file| {
            // Half a layer must not look like one.
            let emptied = file.set_len(0).map_or_else(
                |e| format!("what is there is not whole: {e}"),
                |()| "nothing was written".into(),
            );
            format!("--export: {emptied}")
        });
        let commits = self.commits.iter().filter(|commit| matches!(commit.archive, Archive::Spool(_)));
        let commits = commits.map(|c| format!("{}: {}: nothing was changed", c.option, c.name.display()));
        export.chain(commits).collect()
    }

    fn checkpoint(&self) -> Option<&Arc<Checkpoint>> {
        self.commits.iter().find_map(|commit| match &commit.archive {
            Archive::Spool(_) => None,
            Archive::Checkpoint(checkpoint) => Some(checkpoint),
        })
    }

    /// The files that the sentry writes checkpoints to.
    pub fn checkpoints(&self) -> Option<[RawFd; 2]> {
        self.checkpoint().map(|checkpoint| checkpoint.files())
    }

    /// Takes checkpoints from now on, and answers on `control`. None if there are none.
    ///
    /// # Errors
    /// The host's.
    pub fn taker(&self, control: &OwnedFd) -> std::io::Result<Option<Taker>> {
        let Some(checkpoint) = self.checkpoint().cloned() else { return Ok(None) };
        let (told, heard) = sync_channel(1);
        let control = control.try_clone()?;
        let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
            for number in heard {
                Message::Counts(checkpoint.take(number)).send(&control);
            }
        })?;
        Ok(Some(Taker { told, thread }))
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
        let (inside, name) = (inside.to_vec(), name.to_owned());
        if form == Form::Overlay {
            let lines =
                checkpoint::recover(&dir).map_err(|what| format!("{option}: {}: {what}", name.display()))?;
            for line in lines {
                crate::watch::say(&format!("lazaret: {option}: {}: {line}\n", name.display()));
            }
            // Not every file system can; what is not written down is lost when lazaret is killed.
            if let Ok(checkpoint) = Checkpoint::new(&dir) {
                let archive = Archive::Checkpoint(Arc::new(checkpoint));
                return Ok(Commit { dir, name, inside, form, option, archive });
            }
        }
        // Where the changes go there is room for them, once more.
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::EXCL | OFlags::CLOEXEC;
        let spool = rustix::fs::openat(&dir, c".", flags, Mode::RUSR | Mode::WUSR)
            .or_else(|_| rustix::fs::memfd_create(c"lazaret-layer", rustix::fs::MemfdFlags::CLOEXEC))
            .map_err(|e| format!("{option}: {}: {e}", name.display()))?;
        Ok(Commit { dir, inside, form, option, archive: Archive::Spool(File::from(spool)), name })
    }

    /// Applies what the sentry wrote; `whole`: it wrote all that there was. Lines for standard error, of what was left out.
    ///
    /// # Errors
    /// One line. What was applied before stays.
    pub fn apply(&mut self, whole: bool) -> Result<Vec<String>, String> {
        let applied = match &mut self.archive {
            Archive::Spool(_) if !whole => return Ok(Vec::new()),
            Archive::Spool(file) => apply::Applied::new(&self.dir, &self.inside, self.form).all(file),
            // An earlier state of the layer is better than none.
            Archive::Checkpoint(checkpoint) => checkpoint.apply().inspect(|_| checkpoint.remove()),
        };
        let failed = |what| format!("{}: {}: {what}", self.option, self.name.display());
        Ok(applied.map_err(failed)?.into_iter().map(|line| format!("{}: {line}", self.option)).collect())
    }
}
