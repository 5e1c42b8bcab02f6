//! Locked memory (mlock(2)): filled, recorded, and counted against RLIMIT_MEMLOCK. The host's pages are not locked; the
//! guest can see no difference but in time.

use super::area::Area;
use super::{Fills, Layout, Mm, PAGE, round_up};
use crate::fail::SysResult;
use crate::task::Task;
use crate::task::creds::cap;
use platform::Port;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Bytes that a task may lock: None for any number.
fn limit(task: &Task) -> Option<u64> {
    let limit = task.process.limit(RLIMIT_MEMLOCK);
    (limit != RLIM_INFINITY && !task.creds().capable(cap::IPC_LOCK)).then_some(limit & !(PAGE - 1))
}

impl Layout {
    /// The areas that a range meets.
    fn met(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, &Area)> {
        let first = self.find(start).map_or(start, |(at, _)| at);
        self.areas.range(first..end.max(first)).map(|(at, area)| (*at, area))
    }

    /// Bytes locked within a range.
    pub fn locked(&self, start: u64, end: u64) -> u64 {
        let met = self.met(start, end).filter(|(_, area)| area.locked.is_some());
        met.map(|(at, area)| area.end.min(end).saturating_sub(at.max(start))).sum()
    }

    /// Whether `more` bytes that are to be locked from the start may be mapped.
    fn has_room(&self, more: u64, limit: Option<u64>) -> bool {
        limit.is_none_or(|limit| self.locked(0, u64::MAX).saturating_add(more) <= limit)
    }
}

impl Mm {
    /// mmap(2) of `len` bytes that MAP_LOCKED (`asked`) or mlockall(2) locks.
    ///
    /// # Errors
    /// EPERM, EAGAIN.
    pub fn check_lock(&self, task: &Task, len: u64, asked: bool) -> SysResult<()> {
        let limit = limit(task);
        if asked && limit == Some(0) {
            return Err(Errno::EPERM.into());
        }
        let layout = self.layout.lock();
        if (asked || layout.lock_future.is_some()) && !layout.has_room(len, limit) {
            return Err(Errno::EAGAIN.into());
        }
        Ok(())
    }

    /// mlock(2) and mlock2(2), which fill the memory at once or when it is touched; munlock(2) with None.
    ///
    /// # Errors
    /// EPERM, ENOMEM, EINVAL, EAGAIN.
    pub fn lock_range(
        &self,
        task: &Task,
        port: Option<&mut dyn Port>,
        addr: u64,
        len: u64,
        fills: Option<Fills>,
    ) -> SysResult<()> {
        let limit = limit(task);
        let locked = fills.is_some();
        if locked && limit == Some(0) {
            return Err(Errno::EPERM.into());
        }
        let start = addr & !(PAGE - 1);
        // As Linux: a length that wraps around to nothing locks nothing.
        let len = round_up(len.wrapping_add(addr - start)).unwrap_or(0);
        let mut layout = self.layout.lock();
        let end = start.saturating_add(len);
        if locked && let Some(limit) = limit {
            let others = layout.locked(0, u64::MAX).saturating_sub(layout.locked(start, end));
            if others.saturating_add(len) > limit {
                return Err(Errno::ENOMEM.into());
            }
        }
        if start.checked_add(len).is_none() {
            return Err(Errno::EINVAL.into());
        }
        let upto = layout.run_end(start, end);
        if locked {
            self.space.ask_advice();
        }
        if upto > start {
            layout.change(start, upto, |area| area.locked = fills);
        }
        drop(layout);
        if upto < end {
            return Err(Errno::ENOMEM.into());
        }
        match (fills, port) {
            (Some(Fills::Now), Some(port)) => self.fill(port, start, end, true),
            _ => Ok(()),
        }
    }

    /// Fills what is locked in a range and not to be filled when it is touched, as far as that can be done.
    ///
    /// # Errors
    /// Of a task that has ended.
    pub fn fill_locked(&self, port: &mut dyn Port, start: u64, end: u64) -> SysResult<()> {
        let now = |area: &Area| area.locked == Some(Fills::Now);
        let ranges: Vec<_> = self
            .layout
            .lock()
            .met(start, end)
            .filter(|(_, area)| now(area))
            .map(|(at, area)| (at.max(start), area.end.min(end)))
            .collect();
        ranges.into_iter().try_for_each(|(at, upto)| self.fill(port, at, upto, false))
    }

    /// Whether this protection makes locked private memory writable, which is when it is filled (`mprotect_fixup` in
    /// Linux's mm/mprotect.c).
    pub fn would_fill(&self, start: u64, len: u64, prot: i32) -> bool {
        let writable = |area: &Area| area.shared || area.prot & PROT_WRITE != 0;
        prot & PROT_WRITE != 0
            && self
                .layout
                .lock()
                .met(start, start.saturating_add(len))
                .any(|(_, area)| area.locked == Some(Fills::Now) && !writable(area))
    }

    /// mlockall(2): the memory that there is, and that will be.
    ///
    /// # Errors
    /// EPERM, ENOMEM.
    pub fn lock_all(
        &self,
        task: &Task,
        port: &mut dyn Port,
        current: Option<Fills>,
        future: Option<Fills>,
    ) -> SysResult<()> {
        let limit = limit(task);
        if limit == Some(0) {
            return Err(Errno::EPERM.into());
        }
        let mut layout = self.layout.lock();
        if current.is_some() && limit.is_some_and(|limit| layout.total() > limit) {
            return Err(Errno::ENOMEM.into());
        }
        self.space.ask_advice();
        layout.lock_future = future;
        if current.is_some() {
            layout.change(0, u64::MAX, |area| area.locked = current);
        }
        drop(layout);
        if current == Some(Fills::Now) {
            self.fill(port, 0, u64::MAX, false)?;
        }
        Ok(())
    }

    /// munlockall(2).
    pub fn unlock_all(&self) {
        let mut layout = self.layout.lock();
        layout.lock_future = None;
        layout.change(0, u64::MAX, |area| area.locked = None);
    }
}
