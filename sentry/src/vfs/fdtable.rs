//! Descriptor tables.

use crate::fail::SysResult;
use crate::sync::{Level, Lock};
use crate::vfs::file::File;
use crate::vfs::lock::{Locks, Owner};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use syscall_table::abi::open::O_PATH;
use syscall_table::errno::Errno;

struct Slot {
    file: Arc<File>,
    cloexec: bool,
}

impl Slot {
    /// The description of a slot that is taken out. Before anybody can have the number again, nobody reads by it what is not
    /// there any more.
    fn left(self) -> Arc<File> {
        self.file.lent.take_back();
        self.file
    }
}

#[derive(Default)]
struct Slots {
    list: Vec<Option<Slot>>,
    /// No free number below this.
    low: usize,
}

/// One past the highest descriptor there may be (fs.nr_open).
const MOST: u64 = 1 << 20;

impl Slots {
    /// The lowest free number from `from` and below `limit`.
    fn free(&self, from: usize, limit: u64) -> SysResult<usize> {
        let mut index = from.max(self.low);
        while matches!(self.list.get(index), Some(Some(_))) {
            index += 1;
        }
        if (index as u64) < limit.min(MOST) { Ok(index) } else { Err(Errno::EMFILE.into()) }
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A descriptor table (shared by CLONE_FILES).
///
/// It owns the record locks that are taken through it (fcntl(2)): closing any description of a file releases those
/// on it, and so does the end of the table.
pub struct FdTable {
    slots: Lock<Slots>,
    id: u64,
    /// Set once a record lock was taken.
    locks: OnceLock<Arc<Locks>>,
}

impl Drop for FdTable {
    fn drop(&mut self) {
        drop(self.take_all());
    }
}

impl Default for FdTable {
    fn default() -> Self {
        Self::new()
    }
}

impl FdTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::with(Slots::default())
    }

    fn with(slots: Slots) -> Self {
        FdTable {
            slots: Lock::new(Level::FdTable, slots),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            locks: OnceLock::new(),
        }
    }

    /// As the owner of record locks.
    pub fn owner(&self) -> Owner {
        Owner::Table(self.id)
    }

    /// Record locks are taken in this table from now on.
    pub fn locks_in(&self, locks: &Arc<Locks>) {
        self.locks.get_or_init(|| locks.clone());
    }

    /// Unique in the sandbox.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// A descriptor was closed: the record locks on the file go, and what mq_notify(2) and F_NOTIFY asked for.
    fn closed(&self, file: &File) {
        crate::vfs::dnotify::closed(self.id, file);
        crate::ipc::mqueue::closed(self.id, file);
        if let Some(locks) = self.locks.get()
            && let Ok(attr) = file.ops.attr()
        {
            locks.release((attr.dev, attr.ino), self.owner());
        }
    }

    /// A copy for fork.
    pub fn duplicate(&self) -> FdTable {
        let slots = self.slots.lock();
        let list = slots
            .list
            .iter()
            .map(|s| s.as_ref().map(|s| Slot { file: s.file.clone(), cloexec: s.cloexec }))
            .collect();
        Self::with(Slots { list, low: slots.low })
    }

    /// The description behind a descriptor, which must be one to work with: what only names a place (O_PATH) is none.
    ///
    /// # Errors
    /// EBADF.
    pub fn get(&self, fd: i32) -> SysResult<Arc<File>> {
        let file = self.get_any(fd)?;
        if file.flags() & O_PATH == 0 { Ok(file) } else { Err(Errno::EBADF.into()) }
    }

    /// The description behind a descriptor, be it O_PATH.
    ///
    /// # Errors
    /// EBADF.
    pub fn get_any(&self, fd: i32) -> SysResult<Arc<File>> {
        let slots = self.slots.lock();
        let index = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        match slots.list.get(index) {
            Some(Some(slot)) => Ok(slot.file.clone()),
            _ => Err(Errno::EBADF.into()),
        }
    }

    /// The description, and whether the descriptor is close-on-exec.
    ///
    /// # Errors
    /// EBADF.
    pub fn get_with_flag(&self, fd: i32) -> SysResult<(Arc<File>, bool)> {
        let slots = self.slots.lock();
        let index = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        match slots.list.get(index) {
            Some(Some(slot)) => Ok((slot.file.clone(), slot.cloexec)),
            _ => Err(Errno::EBADF.into()),
        }
    }

    /// Sets close-on-exec.
    ///
    /// # Errors
    /// EBADF.
    pub fn set_cloexec(&self, fd: i32, cloexec: bool) -> SysResult<()> {
        let mut slots = self.slots.lock();
        let index = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        match slots.list.get_mut(index) {
            Some(Some(slot)) => {
                slot.cloexec = cloexec;
                Ok(())
            }
            _ => Err(Errno::EBADF.into()),
        }
    }

    /// Installs at the lowest free number from `from` and below `limit` (RLIMIT_NOFILE).
    ///
    /// # Errors
    /// EMFILE; EINVAL when `from` is not below the limit.
    pub fn install(&self, file: Arc<File>, cloexec: bool, from: i32, limit: u64) -> SysResult<i32> {
        let mut slots = self.slots.lock();
        let from = usize::try_from(from).map_err(|_| Errno::EINVAL)?;
        if from as u64 >= limit.min(MOST) && from > 0 {
            return Err(Errno::EINVAL.into());
        }
        let index = slots.free(from, limit)?;
        if from <= slots.low {
            slots.low = index + 1;
        }
        put(&mut slots, index, Slot { file, cloexec });
        i32::try_from(index).map_err(|_| Errno::EMFILE.into())
    }

    /// Whether a descriptor below `limit` is free: asked by calls that must not fail for it later.
    ///
    /// # Errors
    /// EMFILE.
    pub fn check_room(&self, limit: u64) -> SysResult<()> {
        self.slots.lock().free(0, limit).map(drop)
    }

    /// Installs at exactly `fd` (dup2), returning what was there.
    ///
    /// # Errors
    /// EBADF when `fd` is negative or not below `limit`.
    pub fn replace(
        &self,
        fd: i32,
        file: Arc<File>,
        cloexec: bool,
        limit: u64,
    ) -> SysResult<Option<Arc<File>>> {
        let mut slots = self.slots.lock();
        let index = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        if index as u64 >= limit.min(MOST) {
            return Err(Errno::EBADF.into());
        }
        let old = slots.list.get_mut(index).and_then(Option::take).map(Slot::left);
        put(&mut slots, index, Slot { file, cloexec });
        drop(slots);
        if let Some(old) = &old {
            self.closed(old);
        }
        Ok(old)
    }

    /// Takes a descriptor out. Drop the result outside of any lock: closing may wake others.
    ///
    /// # Errors
    /// EBADF.
    pub fn remove(&self, fd: i32) -> SysResult<Arc<File>> {
        let mut slots = self.slots.lock();
        let index = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        let file = slots.list.get_mut(index).and_then(Option::take).ok_or(Errno::EBADF)?.left();
        slots.low = slots.low.min(index);
        drop(slots);
        self.closed(&file);
        Ok(file)
    }

    /// Takes out all close-on-exec descriptors.
    pub fn take_cloexec(&self) -> Vec<Arc<File>> {
        self.take_if(|_, cloexec| cloexec)
    }

    /// Takes out all descriptors (exit).
    pub fn take_all(&self) -> Vec<Arc<File>> {
        self.take_if(|_, _| true)
    }

    /// Takes out the descriptors for which `pick(fd, cloexec)` holds.
    pub fn take_if(&self, mut pick: impl FnMut(i32, bool) -> bool) -> Vec<Arc<File>> {
        let mut slots = self.slots.lock();
        let mut taken = Vec::new();
        let mut low = slots.low;
        for (index, slot) in slots.list.iter_mut().enumerate() {
            let Ok(fd) = i32::try_from(index) else { break };
            if slot.as_ref().is_some_and(|s| pick(fd, s.cloexec))
                && let Some(slot) = slot.take()
            {
                low = low.min(index);
                taken.push(slot.left());
            }
        }
        slots.low = low;
        drop(slots);
        for file in &taken {
            self.closed(file);
        }
        taken
    }

    /// Descriptors in use, ascending.
    pub fn numbers(&self) -> Vec<i32> {
        let slots = self.slots.lock();
        slots
            .list
            .iter()
            .enumerate()
            .filter(|(_, s)| s.is_some())
            .filter_map(|(i, _)| i32::try_from(i).ok())
            .collect()
    }
}

fn put(slots: &mut Slots, index: usize, slot: Slot) {
    if index >= slots.list.len() {
        slots.list.resize_with(index + 1, || None);
    }
    if let Some(place) = slots.list.get_mut(index) {
        *place = Some(slot);
    }
}
