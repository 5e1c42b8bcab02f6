//! Checkpoints of `--upper DIR`, which outlive a lazaret that is killed.
//!
//! The sentry writes archives of the layer into two files in turn (`sentry::layer::Keeper`). The one that is whole gets the name
//! that counts by one rename. At the end it is applied to DIR, and when lazaret is killed before that, the next run with DIR
//! does it: to apply one twice, or a part of it and then all, gives the same.
//!
//! In DIR they have names that no layer can have. The launcher holds a lock on each, by a description of its own which ends
//! with it: files without a lock are those of a run that is no more.

use super::Form;
use super::apply::Applied;
use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, linkat, openat, renameat, unlinkat,
};
use rustix::io::Errno;
use sentry::fs::merged::CHECKPOINT;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// The name that counts; those of the files, and of a name that is about to count.
const COUNTS: &str = "counts";
const OTHERS: [&str; 3] = ["0", "1", "new"];
/// No checkpoint yet.
const NONE: u64 = u64::MAX;

/// The checkpoints of one run.
pub(super) struct Checkpoint {
    dir: OwnedFd,
    /// What the names begin with.
    base: String,
    /// The sentry's.
    files: [OwnedFd; 2],
    /// The same files as the launcher holds them.
    held: [OwnedFd; 2],
    counts: AtomicU64,
}

fn name(base: &str, part: &str) -> CString {
    CString::new(format!("{base}.{part}")).unwrap_or_default()
}

fn by_descriptor(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

impl Checkpoint {
    /// Makes the files in `dir`.
    ///
    /// # Errors
    /// The host's: its file system may have no files without names.
    pub(super) fn new(dir: &OwnedFd) -> Result<Checkpoint, Errno> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let prefix = String::from_utf8_lossy(CHECKPOINT);
        let base = format!("{prefix}{}.{}", std::process::id(), now.as_nanos());
        let make = |part: &str| {
            let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
            let fd = openat(dir, c".", flags, Mode::RUSR | Mode::WUSR)?;
            let held = openat(CWD, by_descriptor(&fd), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
            // Before there is a name that another run could take for a dead one's.
            flock(&held, FlockOperation::NonBlockingLockExclusive)?;
            linkat(CWD, by_descriptor(&held), dir, name(&base, part), AtFlags::SYMLINK_FOLLOW)?;
            Ok((fd, held))
        };
        let (first, second) = match (make("0"), make("1")) {
            (Ok(first), Ok(second)) => (first, second),
            (first, second) => {
                remove(dir, &base);
                return Err(first.err().or(second.err()).unwrap_or(Errno::IO));
            }
        };
        Ok(Checkpoint {
            dir: rustix::io::fcntl_dupfd_cloexec(dir, 0)?,
            files: [first.0, second.0],
            held: [first.1, second.1],
            counts: AtomicU64::new(NONE),
            base,
        })
    }

    /// For the sentry to write to.
    pub(super) fn files(&self) -> [RawFd; 2] {
        self.files.each_ref().map(AsRawFd::as_raw_fd)
    }

    /// The file of this number is whole: it counts from now on. Whether it does.
    pub(super) fn take(&self, number: u8) -> bool {
        let Some(held) = self.held.get(usize::from(number)) else { return false };
        let named = || {
            rustix::fs::fdatasync(held)?;
            let _ = unlinkat(&self.dir, name(&self.base, "new"), AtFlags::empty());
            linkat(CWD, by_descriptor(held), &self.dir, name(&self.base, "new"), AtFlags::SYMLINK_FOLLOW)?;
            renameat(&self.dir, name(&self.base, "new"), &self.dir, name(&self.base, COUNTS))
        };
        let done = named().is_ok();
        if done {
            self.counts.store(number.into(), Ordering::Release);
        }
        done
    }

    /// Applies the checkpoint that counts, if there is one. What was left out.
    pub(super) fn apply(&self) -> Result<Vec<String>, String> {
        let number = usize::try_from(self.counts.load(Ordering::Acquire)).unwrap_or(usize::MAX);
        let Some(held) = self.held.get(number) else { return Ok(Vec::new()) };
        let mut file = File::from(held.try_clone().map_err(|e| e.to_string())?);
        Applied::new(&self.dir, &[], Form::Overlay).all(&mut file)
    }

    /// The names go. They stay where a checkpoint could not be applied, for the next run.
    pub(super) fn remove(&self) {
        remove(&self.dir, &self.base);
    }
}

fn remove(dir: &OwnedFd, base: &str) {
    // The one that counts first: without it the others mean nothing.
    for part in std::iter::once(COUNTS).chain(OTHERS) {
        let _ = unlinkat(dir, name(base, part), AtFlags::empty());
    }
}

/// Applies what runs left in `dir` that were killed: a line for each. What cannot be applied stays, and is named.
///
/// # Errors
/// One line.
pub(super) fn recover(dir: &OwnedFd) -> Result<Vec<String>, String> {
    let text = |errno: Errno| errno.to_string();
    let mut runs = BTreeSet::new();
    for entry in Dir::read_from(dir).map_err(text)? {
        let entry = entry.map_err(text)?;
        let whole = entry.file_name().to_bytes();
        if whole.starts_with(CHECKPOINT)
            && let Ok(whole) = std::str::from_utf8(whole)
            && let Some((base, _)) = whole.rsplit_once('.')
            && base.as_bytes().starts_with(CHECKPOINT)
        {
            runs.insert(base.to_owned());
        }
    }
    let mut lines = Vec::new();
    for base in runs {
        let open = |part| {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            openat(dir, name(&base, part), flags, Mode::empty())
        };
        let lock = open("0");
        if let Ok(lock) = &lock
            && flock(lock.as_fd(), FlockOperation::NonBlockingLockExclusive).is_err()
        {
            // Its run is there.
            continue;
        }
        if let Ok(archive) = open(COUNTS) {
            if let Err(what) = Applied::new(dir, &[], Form::Overlay).all(&mut File::from(archive)) {
                lines.push(format!("{base}.{COUNTS}, of a run that was killed, cannot be applied: {what}"));
                continue;
            }
            lines.push("took what a run that was killed had written down".to_owned());
        }
        remove(dir, &base);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests;
