//! Calls that go across several areas: mremap(2) with MREMAP_FIXED, remap_file_pages(2).

use super::area::{Area, Backing};
use super::{Layout, Mm, PAGE};
use crate::fail::SysResult;
use crate::sync::Guard;
use platform::Port;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

impl Mm {
    /// Moves all areas of a range, of which the first begins no later than the range, with the gaps between them (mremap(2)
    /// since Linux 6.17). What is at the place of a gap stays there.
    ///
    /// # Errors
    /// The host's; what was moved before stays moved.
    pub(super) fn move_areas(
        &self,
        port: &mut dyn Port,
        mut layout: Guard<'_, Layout>,
        old: u64,
        len: u64,
        to: u64,
    ) -> SysResult<u64> {
        let end = old.saturating_add(len);
        let mut gone = Vec::new();
        let mut at = old;
        while at < end {
            let Some((start, area)) = layout.find(at) else {
                at = layout.next_start(at).unwrap_or(end).min(end);
                continue;
            };
            let (mut area, upto) = (area.clone(), area.end.min(end));
            let place = to.saturating_add(at - old);
            port.mremap(at, upto - at, upto - at, place, false)?;
            gone.extend(layout.remove(place, place.saturating_add(upto - at)));
            gone.extend(layout.remove(at, upto));
            area.advance(at - start);
            area.end = place.saturating_add(upto - at);
            layout.insert(place, area);
            at = upto;
        }
        drop(layout);
        drop(gone);
        Ok(to)
    }

    /// remap_file_pages(2): maps other pages of the same file over a part of a shared mapping.
    ///
    /// # Errors
    /// EINVAL.
    pub fn remap_file_pages(&self, port: &mut dyn Port, start: u64, size: u64, page: u64) -> SysResult<()> {
        let (start, size) = (start & !(PAGE - 1), size & !(PAGE - 1));
        let end = start.checked_add(size).filter(|end| *end > start).ok_or(Errno::EINVAL)?;
        page.checked_add(size / PAGE).ok_or(Errno::EINVAL)?;
        let offset = page.checked_mul(PAGE).ok_or(Errno::EINVAL)?;
        let (mut layout, ..) = self.quiet(port, |_| Ok((start, end)))?;
        layout.unsealed(start, end)?;
        let (_, area) = layout.find(start).ok_or(Errno::EINVAL)?;
        let mut area = area.clone();
        let Backing::Host { fd, offset: from, .. } = &mut area.backing else {
            return Err(Errno::EINVAL.into());
        };
        let fd = fd.clone();
        if !area.shared {
            return Err(Errno::EINVAL.into());
        }
        *from = offset;
        // The rest may lie in areas of the same file and rights.
        let mut at = area.end;
        while at < end {
            let same = |next: &Area| {
                let file = matches!(&next.backing, Backing::Host { fd: other, .. } if std::sync::Arc::ptr_eq(&fd, other));
                file && next.shared && next.prot == area.prot
            };
            match layout.find(at) {
                Some((_, next)) if same(next) => at = next.end,
                _ => return Err(Errno::EINVAL.into()),
            }
        }
        port.mmap(start, size, area.prot, MAP_SHARED, Some((&fd, offset)))?;
        let gone = layout.remove(start, end);
        area.end = end;
        layout.insert(start, area);
        drop(layout);
        drop(gone);
        Ok(())
    }
}
