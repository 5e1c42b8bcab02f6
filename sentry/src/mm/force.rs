//! Memory reached in spite of its protection (ptrace(2), /proc/PID/mem).

use super::Mm;
use super::layout::PAGE;
use crate::fail::SysResult;
use platform::Port;
use syscall_table::abi::{PROT_READ, PROT_WRITE};
use syscall_table::errno::Errno;

/// Bytes of the vDSO's image at most: what is not there cannot be read.
const VDSO: u64 = 2 * PAGE;

impl Mm {
    /// Where the host's vDSO lies, as far as it can be read.
    pub(crate) fn vdso(&self) -> Option<(u64, u64)> {
        let start = self.space.vdso()?;
        let mut end = start;
        while end < start.saturating_add(VDSO) && self.space.read_code(end, &mut [0]).is_ok() {
            end = end.saturating_add(PAGE);
        }
        (end > start).then_some((start, end))
    }

    /// Whether a range lies in the host's vDSO, which is no area but may be read.
    pub(crate) fn in_vdso(&self, addr: u64, len: u64) -> bool {
        self.space.vdso().is_some_and(|start| {
            addr >= start && addr.checked_add(len).is_some_and(|end| end <= start.saturating_add(VDSO))
        })
    }

    /// Reads or writes memory, with the protection of private memory lifted for the moment.
    ///
    /// # Errors
    /// EIO where nothing is mapped, or what is shared is not writable.
    pub(crate) fn force(
        &self,
        port: &mut dyn Port,
        addr: u64,
        data: &mut [u8],
        write: bool,
    ) -> SysResult<()> {
        let end = addr.checked_add(data.len() as u64).ok_or(Errno::EIO)?;
        let (layout, ..) = self.quiet(port, |_| Ok((addr & !(PAGE - 1), end)))?;
        let mut at = addr;
        let mut rest = data;
        while !rest.is_empty() {
            let (_, area) = layout.find(at).ok_or(Errno::EIO)?;
            let len = usize::try_from(area.end.min(end) - at).unwrap_or(usize::MAX).min(rest.len());
            let (part, behind) = rest.split_at_mut(len);
            let need = if write { PROT_WRITE } else { PROT_READ };
            let lifted = area.prot & need == 0;
            if lifted && write && area.shared {
                return Err(Errno::EIO.into());
            }
            let start = at & !(PAGE - 1);
            let pages = (at + len as u64 - start).next_multiple_of(PAGE);
            if lifted {
                port.mprotect(start, pages, area.prot | need | PROT_READ).map_err(|_| Errno::EIO)?;
            }
            let moved = if write { self.space.write(at, part) } else { self.space.read_code(at, part) };
            if lifted {
                port.mprotect(start, pages, area.prot).map_err(|_| Errno::EIO)?;
            }
            moved.map_err(|_| Errno::EIO)?;
            at += len as u64;
            rest = behind;
        }
        Ok(())
    }
}
