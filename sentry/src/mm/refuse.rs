//! What a program forbids itself: memory that is executable and was or is writable (PR_SET_MDWE), and the labels that it gives
//! (PR_SET_VMA).
//!
//! It binds a program that makes its calls as programs do. Code that was taken over could as well drive the shim.

use super::{Layout, Mm, PAGE, round_up};
use crate::fail::SysResult;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use syscall_table::abi::prctl::{PR_MDWE_NO_INHERIT, PR_MDWE_REFUSE_EXEC_GAIN};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

impl Layout {
    /// Whether all areas that meet the range are executable.
    pub(super) fn all_execute(&self, start: u64, end: u64) -> bool {
        let first = self.find(start).map_or(start, |(at, _)| at);
        self.areas.range(first..end).all(|(_, area)| area.prot & PROT_EXEC != 0)
    }
}

impl Mm {
    /// Whether memory may get this protection; `executable`: it is executable now, or new.
    ///
    /// # Errors
    /// EACCES.
    pub(super) fn may_execute(&self, prot: i32, executable: bool) -> SysResult<()> {
        let refuses = u64::from(self.mdwe.load(Relaxed)) & PR_MDWE_REFUSE_EXEC_GAIN != 0;
        if refuses && prot & PROT_EXEC != 0 && (prot & PROT_WRITE != 0 || !executable) {
            return Err(Errno::EACCES.into());
        }
        Ok(())
    }

    /// A space made by fork or execve has what `from` has, unless that says otherwise.
    pub(crate) fn inherit_mdwe(&self, from: &Mm) {
        let bits = from.mdwe.load(Relaxed);
        self.mdwe.store(if u64::from(bits) & PR_MDWE_NO_INHERIT == 0 { bits } else { 0 }, Relaxed);
    }

    /// Labels the anonymous memory of a range, or takes its labels away; what is mapped of it, even if some is not.
    ///
    /// # Errors
    /// EINVAL: not aligned; EBADF: a file is mapped there; ENOMEM: something is not mapped.
    pub fn set_label(&self, start: u64, len: u64, label: Option<&[u8]>) -> SysResult<()> {
        let len = round_up(len).ok_or(Errno::EINVAL)?;
        let end = start.checked_add(len).filter(|_| start & (PAGE - 1) == 0).ok_or(Errno::EINVAL)?;
        let label: Option<Arc<[u8]>> = label.map(Arc::from);
        let mut layout = self.layout.lock();
        let (mut at, mut hole) = (start, false);
        while at < end {
            let Some((_, area)) = layout.find(at) else {
                hole = true;
                at = layout.next_start(at).unwrap_or(end);
                continue;
            };
            if !area.is_anonymous() {
                return Err(Errno::EBADF.into());
            }
            let upto = area.end.min(end);
            layout.change(at, upto, |area| area.label.clone_from(&label));
            at = upto;
        }
        if hole { Err(Errno::ENOMEM.into()) } else { Ok(()) }
    }
}
