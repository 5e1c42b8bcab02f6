//! Shared memory segments (shmget(2)): each is a memory file, mapped like any other.

use super::{Object, Perm, now};
use crate::fail::SysResult;
use crate::fs::memory::Memory;
use crate::sync::{Level, Lock};
use crate::task::Task;
use crate::task::pidns::Name;
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Most segments (kernel.shmmni).
pub const SHMMNI: usize = 4096;
/// Largest segment (kernel.shmmax).
pub const SHMMAX: u64 = u64::MAX - (1 << 24);
/// Pages of all segments (kernel.shmall).
pub const SHMALL: u64 = u64::MAX - (1 << 24);
/// The mode bit of a segment that goes with its last attachment.
pub const SHM_DEST: u32 = 0o1000;
/// The mode bit of a segment that is locked in memory.
pub const SHM_LOCKED: u32 = 0o2000;

#[derive(Debug)]
struct State {
    perm: Perm,
    atime: i64,
    dtime: i64,
    ctime: i64,
    lpid: Name,
    attached: u64,
}

/// A segment.
pub struct Segment {
    size: u64,
    cpid: Name,
    state: Lock<State>,
    /// None once it is removed and nobody is attached.
    memory: Lock<Option<Memory>>,
}

impl Object for Segment {
    fn perm(&self) -> Perm {
        self.state.lock().perm
    }

    fn is_gone(&self) -> bool {
        let state = self.state.lock();
        state.perm.mode & SHM_DEST != 0 && state.attached == 0
    }
}

impl Segment {
    /// Of `size` bytes.
    ///
    /// # Errors
    /// Those of making a memory file.
    pub fn new(perm: Perm, size: u64, by: &Name) -> SysResult<Segment> {
        let memory = crate::fs::memory::new()?;
        let pages = crate::mm::round_up(size).filter(|len| *len <= i64::MAX as u64).ok_or(Errno::ENOMEM)?;
        rustix::fs::ftruncate(&*memory.both, pages)?;
        let state = State { perm, atime: 0, dtime: 0, ctime: now(), lpid: Name::default(), attached: 0 };
        Ok(Segment {
            size,
            cpid: by.clone(),
            state: Lock::new(Level::Field, state),
            memory: Lock::new(Level::Field, Some(memory)),
        })
    }

    /// Its key.
    pub fn key(&self) -> i32 {
        self.state.lock().perm.key
    }

    /// Bytes, as asked for.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// One attachment more, and what to map.
    ///
    /// # Errors
    /// EIDRM.
    pub fn attach(self: &Arc<Self>, by: &Name, read_only: bool) -> SysResult<(Attachment, Memory)> {
        let memory = self.memory.lock().clone().ok_or(Errno::EIDRM)?;
        let mut state = self.state.lock();
        state.attached += 1;
        state.atime = now();
        state.lpid = by.clone();
        drop(state);
        Ok((Attachment { segment: self.clone(), read_only }, memory))
    }

    /// A process took its attachment back.
    pub fn detached_by(&self, by: &Name) {
        self.state.lock().lpid = by.clone();
    }

    /// IPC_RMID: the segment goes with its last attachment. The key is free at once.
    pub fn remove(&self) {
        let mut state = self.state.lock();
        state.perm.mode |= SHM_DEST;
        state.perm.key = IPC_PRIVATE;
        let last = state.attached == 0;
        drop(state);
        if last {
            self.free();
        }
    }

    fn free(&self) {
        let memory = self.memory.lock().take();
        drop(memory);
    }

    /// IPC_SET.
    pub fn set(&self, new: &IpcPerm) {
        let mut state = self.state.lock();
        state.perm.set(new);
        state.ctime = now();
    }

    /// SHM_LOCK, SHM_UNLOCK: shown, no more.
    pub fn lock(&self, locked: bool) {
        let mut state = self.state.lock();
        if locked {
            state.perm.mode |= SHM_LOCKED;
        } else {
            state.perm.mode &= !SHM_LOCKED;
        }
    }

    /// IPC_STAT, for this task.
    pub fn stat(&self, id: i32, asker: &Task) -> Shmid {
        let (pidns, creds) = (&asker.process.pidns, asker.creds());
        let state = self.state.lock();
        Shmid {
            shm_perm: state.perm.abi(id, &creds.ns),
            shm_segsz: self.size,
            shm_atime: state.atime,
            shm_dtime: state.dtime,
            shm_ctime: state.ctime,
            shm_cpid: self.cpid.in_ns(pidns),
            shm_lpid: state.lpid.in_ns(pidns),
            shm_nattch: state.attached,
            ..zerocopy::FromZeros::new_zeroed()
        }
    }

    /// Bytes that the segment takes: those that were touched.
    pub fn resident(&self) -> u64 {
        let memory = self.memory.lock().clone();
        let blocks = memory.and_then(|m| rustix::fs::fstat(&*m.both).ok()).map_or(0, |stat| stat.st_blocks);
        u64::try_from(blocks).unwrap_or(0).saturating_mul(512)
    }
}

/// One mapping of a segment, counted as long as it lives. Copied with its area: by fork and when an area is split.
pub struct Attachment {
    segment: Arc<Segment>,
    /// SHM_RDONLY
    pub read_only: bool,
}

impl Attachment {
    /// What is attached.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }
}

impl Clone for Attachment {
    fn clone(&self) -> Self {
        self.segment.state.lock().attached += 1;
        Attachment { segment: self.segment.clone(), read_only: self.read_only }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut state = self.segment.state.lock();
        state.attached = state.attached.saturating_sub(1);
        state.dtime = now();
        let last = state.attached == 0 && state.perm.mode & SHM_DEST != 0;
        drop(state);
        if last {
            self.segment.free();
        }
    }
}
