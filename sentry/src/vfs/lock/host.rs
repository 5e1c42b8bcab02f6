//! The locks of a sandbox on files of the host.
//!
//! They belong to one open description, so they are in nobody's way inside. None of these calls waits.

use super::{Range, Refusal};
use platform::hostlock::{self, HostLock};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::FlockOperation;
use syscall_table::errno::Errno;

/// What is locked of a file.
pub(super) enum Kind {
    /// All of it, by flock(2).
    Whole,
    /// Bytes, by F_OFD_SETLK: it meets record locks of both kinds.
    Ranges,
}

fn lock(range: Range) -> HostLock {
    HostLock { start: range.start, end: range.end, write: range.write }
}

fn refusal(errno: i32) -> Refusal {
    match Errno::from_raw(errno) {
        Errno::EAGAIN | Errno::EACCES => Refusal::Outside,
        other => Refusal::Host(other),
    }
}

impl Kind {
    /// Takes a lock, for whom inside does not matter.
    pub(super) fn lock(&self, fd: &OwnedFd, range: Range) -> Result<(), Refusal> {
        match self {
            Kind::Ranges => hostlock::lock(fd.as_fd(), lock(range))
                .map_err(|e| refusal(e.raw_os_error().unwrap_or(Errno::EIO.raw()))),
            Kind::Whole => {
                let shared = FlockOperation::NonBlockingLockShared;
                let operation = if range.write { FlockOperation::NonBlockingLockExclusive } else { shared };
                rustix::fs::flock(fd, operation).map_err(|e| refusal(e.raw_os_error()))
            }
        }
    }

    /// Gives up `range` but for what `others` still hold of it. Nothing can be done about a failure.
    pub(super) fn unlock(&self, fd: &OwnedFd, range: Range, mut others: Vec<Range>) {
        if let Kind::Whole = self {
            if others.is_empty() {
                let _ = rustix::fs::flock(fd, FlockOperation::NonBlockingUnlock);
            }
            return;
        }
        others.sort_by_key(|other| other.start);
        let mut start = range.start;
        for other in others {
            if let Some(end) = other.start.checked_sub(1).filter(|end| *end >= start) {
                let _ = hostlock::unlock(fd.as_fd(), start, end);
            }
            start = start.max(other.end.saturating_add(1));
        }
        if start <= range.end {
            let _ = hostlock::unlock(fd.as_fd(), start, range.end);
        }
    }

    /// Who outside is in the way.
    pub(super) fn conflict(&self, fd: &OwnedFd, range: Range) -> Option<(Range, i32)> {
        let (found, pid) = hostlock::conflict(fd.as_fd(), lock(range)).ok()??;
        Some((Range { start: found.start, end: found.end, write: found.write }, pid))
    }
}
