//! One mapped area.

use crate::ipc::sysv::shm::Attachment;
use crate::vfs::file::File;
use rustix::fd::OwnedFd;
use std::sync::Arc;

/// What the pages of an area come from.
#[derive(Clone)]
pub enum Backing {
    /// Private anonymous memory.
    Anonymous,
    /// A descriptor of the host, mapped privately or shared.
    Host {
        /// What is mapped.
        fd: Arc<OwnedFd>,
        /// The guest's description; None for shared anonymous memory.
        file: Option<Arc<File>>,
        /// Offset of the area's first byte.
        offset: u64,
        /// Device and inode on the host: the identity of shared memory.
        id: (u64, u64),
    },
}

/// One area; its start is its key in [`super::Layout`].
#[derive(Clone)]
pub struct Area {
    /// One past the last byte.
    pub end: u64,
    /// PROT_READ, PROT_WRITE, PROT_EXEC.
    pub prot: i32,
    /// MAP_SHARED.
    pub shared: bool,
    /// Left out of forks (MADV_DONTFORK).
    pub dont_fork: bool,
    /// Left out of core files (MADV_DONTDUMP).
    pub dont_dump: bool,
    /// mlock(2), and when it is filled.
    pub locked: Option<super::Fills>,
    /// mseal(2).
    pub sealed: bool,
    /// MAP_GROWSDOWN, and the stack.
    pub grows: bool,
    /// Where the pages come from.
    pub backing: Backing,
    /// `[heap]`, `[stack]`; empty for others.
    pub name: &'static str,
    /// What the program calls it (PR_SET_VMA_ANON_NAME).
    pub label: Option<Arc<[u8]>>,
    /// The segment of shmat(2) that is mapped.
    pub attached: Option<Attachment>,
}

impl Area {
    /// Makes the area begin `by` bytes later.
    pub(super) fn advance(&mut self, by: u64) {
        if let Backing::Host { offset, .. } = &mut self.backing {
            *offset = offset.saturating_add(by);
        }
    }

    /// The lowest address that an area at `start` keeps others from: those that grow want room (stack_guard_gap).
    pub(super) fn reach(&self, start: u64) -> u64 {
        if self.grows { start.saturating_sub(super::limits::GUARD_GAP) } else { start }
    }

    /// Whether `next`, which begins where this one at `start` ends, is its continuation.
    pub(super) fn continues(&self, start: u64, next: &Area) -> bool {
        let same = self.prot == next.prot
            && self.shared == next.shared
            && self.dont_fork == next.dont_fork
            && self.dont_dump == next.dont_dump
            && self.locked == next.locked
            && self.sealed == next.sealed
            && self.grows == next.grows
            && self.name == next.name
            && self.label == next.label
            && self.attached.is_none()
            && next.attached.is_none();
        same && match (&self.backing, &next.backing) {
            (Backing::Anonymous, Backing::Anonymous) => true,
            (Backing::Host { fd: a, offset: at, .. }, Backing::Host { fd: b, offset: bt, .. }) => {
                Arc::ptr_eq(a, b) && at.checked_add(self.end.saturating_sub(start)) == Some(*bt)
            }
            _ => false,
        }
    }

    /// Whether it can have a label: memory that no file is behind.
    pub fn is_anonymous(&self) -> bool {
        self.attached.is_none() && !matches!(self.backing, Backing::Host { file: Some(_), .. })
    }

    /// Counts against RLIMIT_DATA: private, writable, no stack (is_data_mapping in Linux's mm/mmap.c).
    pub fn is_data(&self) -> bool {
        !self.shared && !self.grows && self.prot & syscall_table::abi::PROT_WRITE != 0
    }

    /// Offset in the file, 0 for anonymous memory.
    pub fn offset(&self) -> u64 {
        match &self.backing {
            Backing::Anonymous => 0,
            Backing::Host { offset, .. } => *offset,
        }
    }

    /// The mapped file, if it is one.
    pub fn file(&self) -> Option<&Arc<File>> {
        match &self.backing {
            Backing::Host { file, .. } => file.as_ref(),
            Backing::Anonymous => None,
        }
    }
}
