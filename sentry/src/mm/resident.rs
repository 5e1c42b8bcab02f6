//! Which pages of a space are in memory, and making them so.

use super::area::{Area, Backing};
use super::{Layout, Mm, PAGE};
use crate::fail::{Fail, SysResult};
use platform::{CallError, MINCORE_MAX, Port};
use rustix::fd::OwnedFd;
use rustix::fs::{SeekFrom, seek};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// A range, and the advice that fills it.
type Fill = (u64, u64, i32);

impl Layout {
    /// The mapped parts of a range: start, end, and the area there as if it began with the part.
    fn parts(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, Area)> {
        let first = self.find(start).map_or(start, |(at, _)| at);
        let met = self.areas.range(first..end.max(first));
        met.map(move |(at, area)| {
            let mut area = area.clone();
            let from = (*at).max(start);
            area.advance(from.saturating_sub(*at));
            (from, area.end.min(end), area)
        })
    }

    /// How locking a range fills it (`populate_vma_page_range` in Linux's mm/gup.c), up to what cannot be accessed: false
    /// if there is such memory.
    pub(super) fn fills(&self, start: u64, end: u64) -> (Vec<Fill>, bool) {
        let mut fills: Vec<Fill> = Vec::new();
        for (at, upto, area) in self.parts(start, end) {
            if area.prot == PROT_NONE {
                return (fills, false);
            }
            // Of the stack, more is mapped than Linux would have: only what was touched is filled, which it is.
            if area.name == "[stack]" {
                continue;
            }
            let write = area.prot & PROT_WRITE != 0 && !area.shared;
            let advice = if write { MADV_POPULATE_WRITE } else { MADV_POPULATE_READ };
            match fills.last_mut() {
                Some((_, last, same)) if *last == at && *same == advice => *last = upto,
                _ => fills.push((at, upto, advice)),
            }
        }
        (fills, true)
    }
}

/// Whether the descriptor is of a file that is nowhere but in memory.
fn in_memory(fd: &OwnedFd) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| fs.f_type == TMPFS_MAGIC)
}

/// Marks which pages of a memory file, from this offset on, are there.
fn holes(fd: &OwnedFd, offset: u64, pages: &mut [u8]) {
    let end = offset.saturating_add((pages.len() as u64).saturating_mul(PAGE));
    pages.fill(0);
    let mut at = offset;
    while at < end {
        // ENXIO: no more data.
        let Ok(data) = seek(fd, SeekFrom::Data(at)) else { return };
        let hole = seek(fd, SeekFrom::Hole(data)).unwrap_or(end).max(data.saturating_add(1));
        let page = |at: u64| usize::try_from(at.saturating_sub(offset) / PAGE).unwrap_or(usize::MAX);
        let upto = hole.min(end).saturating_add(PAGE - 1);
        if data < end
            && let Some(part) = pages.get_mut(page(data)..page(upto))
        {
            part.fill(1);
        }
        at = hole;
    }
}

impl Mm {
    /// Which pages from `at` on are in memory, for as many as there are bytes, all of them mapped. The task must have a full
    /// port.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn resident(&self, port: &mut dyn Port, at: u64, pages: &mut [u8]) -> SysResult<()> {
        match port.mincore(at, pages) {
            Ok(()) => {}
            Err(CallError::Errno(errno)) => return Err(Errno::from_raw(errno).into()),
            Err(CallError::Gone) => return Err(Fail::Exit),
        }
        // Of memory files the host tells their owner alone, which is the sentry: a page is there if it is no hole.
        let end = at.saturating_add((pages.len() as u64).saturating_mul(PAGE));
        let mut files = Vec::new();
        for (start, upto, area) in self.layout.lock().parts(at, end) {
            if let Backing::Host { fd, file, .. } = &area.backing
                // The position of what was passed in is others' too.
                && file.as_ref().is_none_or(|file| file.ops.seek_own(0, SEEK_CUR).is_none() && in_memory(fd))
            {
                files.push((start, upto, fd.clone(), area.offset()));
            }
        }
        for (start, upto, fd, offset) in files {
            let first = usize::try_from(start.saturating_sub(at) / PAGE).unwrap_or(usize::MAX);
            let last = usize::try_from(upto.saturating_sub(at) / PAGE).unwrap_or(usize::MAX);
            // A private copy over a hole is there, too, but nobody tells of it.
            if let Some(part) = pages.get_mut(first..last) {
                holes(&fd, offset, part);
            }
        }
        Ok(())
    }

    /// Bytes of a range that populating it would need more, as far as anybody can tell; or more than there is room for. The
    /// task must have a full port.
    ///
    /// # Errors
    /// The task's host side is gone.
    pub(crate) fn absent(&self, port: &mut dyn Port, start: u64, end: u64, write: bool) -> SysResult<u64> {
        let mut missing = 0u64;
        let mut look = Vec::new();
        for (at, upto, area) in self.layout.lock().parts(start, end) {
            // Pages of a file that are in the cache are not yet copies of them.
            if write && !area.shared && matches!(area.backing, Backing::Host { .. }) {
                missing = missing.saturating_add(upto.saturating_sub(at));
            } else {
                look.push((at, upto));
            }
        }
        let mut pages = [0u8; MINCORE_MAX];
        for (mut at, upto) in look {
            while at < upto && crate::memory::room_for(missing) {
                let len = upto.saturating_sub(at).min(MINCORE_MAX as u64 * PAGE);
                let count = usize::try_from(len / PAGE).unwrap_or(0);
                let part = pages.get_mut(..count).unwrap_or_default();
                match self.resident(port, at, part) {
                    Ok(()) => {}
                    Err(Fail::Exit) => return Err(Fail::Exit),
                    Err(_) => part.fill(0),
                }
                let absent = part.iter().filter(|page| **page & 1 == 0).count() as u64;
                missing = missing.saturating_add(absent.saturating_mul(PAGE));
                at = at.saturating_add(len);
            }
        }
        Ok(missing)
    }

    /// Fills a range that was locked. `strict`: memory that cannot be had is an error.
    ///
    /// # Errors
    /// ENOMEM: memory that cannot be accessed; EAGAIN: there is not enough (`__mlock_posix_error_return`).
    pub(super) fn fill(&self, port: &mut dyn Port, start: u64, end: u64, strict: bool) -> SysResult<()> {
        let (fills, all) = self.layout.lock().fills(start, end);
        for (at, upto, advice) in fills {
            let len = upto.saturating_sub(at);
            if !crate::memory::room_for(len) {
                let write = advice == MADV_POPULATE_WRITE;
                let missing = self.absent(port, at, upto, write)?;
                if !crate::memory::room_for(missing) {
                    if strict {
                        return Err(Errno::EAGAIN.into());
                    }
                    continue;
                }
            }
            match port.madvise(at, len, advice) {
                Err(CallError::Gone) => return Err(Fail::Exit),
                Err(CallError::Errno(errno)) if strict && Errno::from_raw(errno) == Errno::ENOMEM => {
                    return Err(Errno::EAGAIN.into());
                }
                Err(CallError::Errno(_)) if strict => return Err(Errno::ENOMEM.into()),
                Ok(()) | Err(CallError::Errno(_)) => {}
            }
        }
        if strict && !all { Err(Errno::ENOMEM.into()) } else { Ok(()) }
    }
}
