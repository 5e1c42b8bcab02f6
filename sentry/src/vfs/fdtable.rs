//! Descriptor tables.

use crate::fail::SysResult;
use crate::sync::{Level, Lock};
use crate::vfs::file::File;
use std::sync::Arc;
use syscall_table::errno::Errno;

struct Slot {
    file: Arc<File>,
    cloexec: bool,
}

#[derive(Default)]
struct Slots {
    list: Vec<Option<Slot>>,
    /// No free number below this.
    low: usize,
}

/// A descriptor table (shared by CLONE_FILES).
pub struct FdTable {
    slots: Lock<Slots>,
}

impl Default for FdTable {
    fn default() -> Self {
        Self::new()
    }
}

impl FdTable {
    /// An empty table.
    pub fn new() -> Self {
        FdTable { slots: Lock::new(Level::FdTable, Slots::default()) }
    }

    /// A copy for fork.
    pub fn duplicate(&self) -> FdTable {
        let slots = self.slots.lock();
        let list = slots
            .list
            .iter()
            .map(|s| s.as_ref().map(|s| Slot { file: s.file.clone(), cloexec: s.cloexec }))
            .collect();
        FdTable { slots: Lock::new(Level::FdTable, Slots { list, low: slots.low }) }
    }

    /// The description behind a descriptor.
    ///
    /// # Errors
    /// EBADF.
    pub fn get(&self, fd: i32) -> SysResult<Arc<File>> {
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
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).min(1 << 20);
        if from >= limit && from > 0 {
            return Err(Errno::EINVAL.into());
        }
        let mut index = from.max(slots.low);
        while matches!(slots.list.get(index), Some(Some(_))) {
            index += 1;
        }
        if index >= limit {
            return Err(Errno::EMFILE.into());
        }
        if from <= slots.low {
            slots.low = index + 1;
        }
        put(&mut slots, index, Slot { file, cloexec });
        i32::try_from(index).map_err(|_| Errno::EMFILE.into())
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
        if index as u64 >= limit.min(1 << 20) {
            return Err(Errno::EBADF.into());
        }
        let old = slots.list.get_mut(index).and_then(Option::take);
        put(&mut slots, index, Slot { file, cloexec });
        Ok(old.map(|s| s.file))
    }

    /// Takes a descriptor out. Drop the result outside of any lock: closing may wake others.
    ///
    /// # Errors
    /// EBADF.
    pub fn remove(&self, fd: i32) -> SysResult<Arc<File>> {
        let mut slots = self.slots.lock();
        let index = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        let slot = slots.list.get_mut(index).and_then(Option::take).ok_or(Errno::EBADF)?;
        slots.low = slots.low.min(index);
        Ok(slot.file)
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
                taken.push(slot.file);
            }
        }
        slots.low = low;
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
