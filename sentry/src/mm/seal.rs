//! Sealed memory (mseal(2)): what a program forbids itself to change about its mappings.
//!
//! It binds a program that makes its calls as programs do. Code that was taken over could as well drive the shim.

use super::area::Area;
use super::{Layout, Mm, PAGE, round_up};
use crate::fail::SysResult;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

impl Layout {
    /// Start of the first sealed part of a range.
    pub(super) fn first_sealed(&self, start: u64, end: u64) -> Option<u64> {
        let first = self.find(start).map_or(start, |(at, _)| at);
        let mut met = self.areas.range(first..end.max(first));
        met.find(|(_, area)| area.sealed).map(|(at, _)| (*at).max(start))
    }

    /// # Errors
    /// EPERM if any of the range is sealed.
    pub(super) fn unsealed(&self, start: u64, end: u64) -> SysResult<()> {
        if self.first_sealed(start, end).is_some() { Err(Errno::EPERM.into()) } else { Ok(()) }
    }
}

impl Area {
    /// Whether this advice would change what a seal protects: memory that is thrown away although it cannot be written
    /// (can_madvise_modify in Linux's mm/madvise.c).
    pub fn refuses(&self, advice: i32) -> bool {
        let discards = matches!(
            advice,
            MADV_FREE
                | MADV_DONTNEED
                | MADV_DONTNEED_LOCKED
                | MADV_REMOVE
                | MADV_DONTFORK
                | MADV_WIPEONFORK
                | MADV_GUARD_INSTALL
        );
        self.sealed && discards && !self.shared && self.prot & PROT_WRITE == 0
    }
}

impl Mm {
    /// mseal(2): all of the range or nothing.
    ///
    /// # Errors
    /// EINVAL: not aligned, or it wraps around; ENOMEM: something is not mapped.
    pub fn seal(&self, start: u64, len: u64) -> SysResult<()> {
        let len = round_up(len).ok_or(Errno::EINVAL)?;
        let end = start.checked_add(len).filter(|_| start & (PAGE - 1) == 0).ok_or(Errno::EINVAL)?;
        if len == 0 {
            return Ok(());
        }
        let mut layout = self.layout.lock();
        if layout.run_end(start, end) < end {
            return Err(Errno::ENOMEM.into());
        }
        layout.change(start, end, |area| area.sealed = true);
        self.space.ask_advice();
        Ok(())
    }
}
