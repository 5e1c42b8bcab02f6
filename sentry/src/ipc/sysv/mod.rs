//! System V IPC (sysvipc(7)): objects that live by number until they are removed.
//!
//! Tables and objects are bounded, so that a guest cannot grow the sentry: how many objects there are, how many semaphores,
//! how many bytes of messages, how many adjustments to undo. The limits are those that IPC_INFO and
//! /proc/sys/kernel name.

pub mod msg;
pub mod sem;
pub mod shm;

use crate::fail::SysResult;
use crate::sync::{Level, Lock};
use crate::task::creds::{Creds, cap};
use crate::task::userns::{Ids, UserNs};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Ids are a number that changes with each reuse, and an index below this (IPCMNI).
const INDEXES: usize = 1 << 15;
/// One past the highest number (as many as keep an id positive).
const NUMBERS: usize = 1 << 16;

/// All objects of the sandbox.
#[derive(Default)]
pub struct Ipc {
    /// shmget(2)
    pub shm: Table<shm::Segment>,
    /// semget(2)
    pub sem: Table<sem::Set>,
    /// msgget(2)
    pub msg: Table<msg::Queue>,
    /// Bounds of what the objects hold, in all namespaces together.
    pub usage: Arc<Usage>,
}

impl Ipc {
    /// An empty one beside it.
    pub fn beside(&self) -> Ipc {
        Ipc { usage: self.usage.clone(), ..Ipc::default() }
    }
}

/// What all objects together hold.
#[derive(Default)]
pub struct Usage {
    /// Semaphores.
    pub sems: Counter,
    /// Bytes of messages, with what each costs.
    pub bytes: Counter,
    /// Adjustments that are undone at exit.
    pub undos: Counter,
}

/// A bounded count.
#[derive(Default)]
pub struct Counter(std::sync::atomic::AtomicUsize);

impl Counter {
    /// Nothing counted.
    pub const fn new() -> Self {
        Counter(std::sync::atomic::AtomicUsize::new(0))
    }

    /// Counts `more` if the sum stays within the limit.
    pub fn take(&self, more: usize, limit: usize) -> bool {
        use std::sync::atomic::Ordering::Relaxed;
        self.0.fetch_update(Relaxed, Relaxed, |now| now.checked_add(more).filter(|sum| *sum <= limit)).is_ok()
    }

    /// Counts `less` back.
    pub fn give(&self, less: usize) {
        use std::sync::atomic::Ordering::Relaxed;
        // The closure always returns Some.
        let _ = self.0.fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_sub(less)));
    }

    /// The count.
    pub fn get(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Key, owners and mode of an object.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Perm {
    pub key: i32,
    pub uid: u32,
    pub gid: u32,
    pub cuid: u32,
    pub cgid: u32,
    pub mode: u32,
}

/// To read, in the bits of [`Perm::may`].
pub const READ: u32 = 4;
/// To change.
pub const WRITE: u32 = 2;
/// To execute (shmat(2) with SHM_EXEC).
pub const EXEC: u32 = 1;

impl Perm {
    fn new(key: i32, mode: i32, creds: &Creds) -> Perm {
        let (uid, gid) = (creds.euid, creds.egid);
        Perm { key, uid, gid, cuid: uid, cgid: gid, mode: mode.cast_unsigned() & 0o777 }
    }

    /// Whether the object may be used so ([`READ`], [`WRITE`], [`EXEC`]).
    pub fn may(&self, creds: &Creds, wanted: u32) -> bool {
        let granted = if creds.euid == self.cuid || creds.euid == self.uid {
            self.mode >> 6
        } else if creds.in_egroup(self.cgid) || creds.in_egroup(self.gid) {
            self.mode >> 3
        } else {
            self.mode
        };
        wanted & !granted & 7 == 0 || creds.capable_of(self.uid, self.gid, cap::IPC_OWNER)
    }

    /// As [`may`](Self::may) for the bits of a mode, wherever they are set.
    fn may_mode(&self, creds: &Creds, mode: i32) -> bool {
        let mode = mode.cast_unsigned();
        self.may(creds, (mode >> 6 | mode >> 3 | mode) & 7)
    }

    /// Whether it may be removed or given away.
    ///
    /// # Errors
    /// EPERM.
    pub fn check_owner(&self, creds: &Creds) -> SysResult<()> {
        let owner = creds.euid == self.cuid || creds.euid == self.uid;
        if owner || creds.capable_of(self.uid, self.gid, cap::SYS_ADMIN) {
            Ok(())
        } else {
            Err(Errno::EPERM.into())
        }
    }

    /// IPC_SET.
    fn set(&mut self, new: &IpcPerm) {
        self.uid = new.uid;
        self.gid = new.gid;
        self.mode = self.mode & !0o777 | new.mode & 0o777;
    }

    /// As the call tells it to somebody in a user namespace.
    pub fn abi(&self, id: i32, ns: &UserNs) -> IpcPerm {
        IpcPerm {
            key: self.key,
            uid: ns.user(self.uid),
            gid: ns.group(self.gid),
            cuid: ns.user(self.cuid),
            cgid: ns.group(self.cgid),
            mode: self.mode,
            seq: (id.cast_unsigned() >> 15) as u16,
            ..zerocopy::FromZeros::new_zeroed()
        }
    }
}

/// IPC_SET: the owner as the first user namespace calls it.
///
/// # Errors
/// EINVAL: it has no name in the caller's.
pub fn owner_from(ns: &UserNs, mut perm: IpcPerm) -> SysResult<IpcPerm> {
    perm.uid = ns.to_kernel(Ids::Users, perm.uid).ok_or(Errno::EINVAL)?;
    perm.gid = ns.to_kernel(Ids::Groups, perm.gid).ok_or(Errno::EINVAL)?;
    Ok(perm)
}

/// What a table holds.
pub trait Object: Send + Sync {
    /// Its permissions now.
    fn perm(&self) -> Perm;
    /// Whether it is removed and only waits to be forgotten.
    fn is_gone(&self) -> bool;
}

struct Entries<T> {
    objects: BTreeMap<usize, (i32, Arc<T>)>,
    keys: HashMap<i32, usize>,
    number: usize,
    /// The index given last; None: none yet.
    last: Option<usize>,
}

/// Objects of one kind, by id and by key.
pub struct Table<T> {
    entries: Lock<Entries<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        let entries = Entries { objects: BTreeMap::new(), keys: HashMap::new(), number: 0, last: None };
        Table { entries: Lock::new(Level::Object, entries) }
    }
}

fn index(id: i32) -> Option<usize> {
    usize::try_from(id).ok().map(|id| id % INDEXES)
}

impl<T: Object> Table<T> {
    /// The object of shmget(2) and kin: found by its key, or made by `make` from permissions and id. `fits`: whether
    /// what was found is what was asked for.
    ///
    /// # Errors
    /// ENOENT, EEXIST, EACCES, ENOSPC, and those of `make` and `fits`.
    pub fn get(
        &self,
        (key, flags): (i32, i32),
        creds: &Creds,
        limit: usize,
        fits: impl FnOnce(&T) -> SysResult<()>,
        make: impl FnOnce(Perm, i32) -> SysResult<T>,
    ) -> SysResult<i32> {
        let mut entries = self.entries.lock();
        entries.sweep();
        if key != IPC_PRIVATE {
            let found = entries.keys.get(&key).and_then(|index| entries.objects.get(index));
            match found {
                Some(_) if flags & IPC_CREAT != 0 && flags & IPC_EXCL != 0 => {
                    return Err(Errno::EEXIST.into());
                }
                Some((id, object)) => {
                    fits(object)?;
                    if !object.perm().may_mode(creds, flags) {
                        return Err(Errno::EACCES.into());
                    }
                    return Ok(*id);
                }
                None if flags & IPC_CREAT == 0 => return Err(Errno::ENOENT.into()),
                None => {}
            }
        }
        if entries.objects.len() >= limit.min(INDEXES) {
            return Err(Errno::ENOSPC.into());
        }
        let index = (0..INDEXES).find(|i| !entries.objects.contains_key(i)).ok_or(Errno::ENOSPC)?;
        let number = if entries.last.is_some_and(|last| index <= last) {
            (entries.number + 1) % NUMBERS
        } else {
            entries.number
        };
        let id = i32::try_from(number * INDEXES + index).map_err(|_| Errno::ENOSPC)?;
        let object = make(Perm::new(key, flags, creds), id)?;
        (entries.number, entries.last) = (number, Some(index));
        entries.objects.insert(index, (id, Arc::new(object)));
        if key != IPC_PRIVATE {
            entries.keys.insert(key, index);
        }
        Ok(id)
    }

    /// The object with this id.
    ///
    /// # Errors
    /// EINVAL, EIDRM.
    pub fn find(&self, id: i32) -> SysResult<Arc<T>> {
        let entries = self.entries.lock();
        let index = index(id).ok_or(Errno::EINVAL)?;
        match entries.objects.get(&index) {
            Some((_, object)) if object.is_gone() => Err(Errno::EINVAL.into()),
            Some((known, object)) if *known == id => Ok(object.clone()),
            Some(_) => Err(Errno::EIDRM.into()),
            None => Err(Errno::EINVAL.into()),
        }
    }

    /// The object at an index, with its id (SHM_STAT and kin).
    ///
    /// # Errors
    /// EINVAL.
    pub fn at(&self, index: i32) -> SysResult<(i32, Arc<T>)> {
        let entries = self.entries.lock();
        let index = self::index(index).ok_or(Errno::EINVAL)?;
        let found = entries.objects.get(&index).filter(|(_, object)| !object.is_gone());
        found.cloned().ok_or(Errno::EINVAL.into())
    }

    /// Takes an object out.
    pub fn remove(&self, id: i32) {
        let mut entries = self.entries.lock();
        let Some(index) = index(id) else { return };
        if entries.objects.get(&index).is_some_and(|(known, _)| *known == id) {
            let object = entries.objects.remove(&index);
            entries.forget_key(index);
            drop(entries);
            drop(object);
        }
    }

    /// Makes a key free for others; the object keeps its id.
    pub fn hide(&self, id: i32) {
        if let Some(index) = index(id) {
            self.entries.lock().forget_key(index);
        }
    }

    /// All objects with their ids, by index.
    pub fn all(&self) -> Vec<(i32, Arc<T>)> {
        let entries = self.entries.lock();
        entries.objects.values().filter(|(_, object)| !object.is_gone()).cloned().collect()
    }

    /// The highest index in use, 0 if there is none.
    pub fn highest(&self) -> u64 {
        let entries = self.entries.lock();
        let used = entries.objects.iter().rev().find(|(_, (_, object))| !object.is_gone());
        used.map_or(0, |(index, _)| *index as u64)
    }
}

impl<T: Object> Entries<T> {
    fn forget_key(&mut self, index: usize) {
        self.keys.retain(|_, at| *at != index);
    }

    /// Forgets what is gone.
    fn sweep(&mut self) {
        self.objects.retain(|_, (_, object)| !object.is_gone());
        let objects = &self.objects;
        self.keys.retain(|_, index| objects.contains_key(index));
    }
}

/// Seconds since the epoch.
fn now() -> i64 {
    i64::try_from(crate::time::realtime().as_secs()).unwrap_or(i64::MAX)
}
