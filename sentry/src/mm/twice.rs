//! mremap(2) with an old size of 0: shared memory is mapped a second time.

use super::{Layout, Mm, area::Area, area::Backing};
use crate::fail::SysResult;
use crate::sync::Guard;
use platform::Port;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

impl Mm {
    /// Maps `new_len` bytes of what `area` maps from its byte `skip` on.
    ///
    /// # Errors
    /// EINVAL for private memory; ENOMEM when it may not move.
    pub(super) fn map_twice(
        &self,
        port: &mut dyn Port,
        mut layout: Guard<'_, Layout>,
        (mut area, skip): (Area, u64),
        new_len: u64,
        flags: u64,
        wish: u64,
    ) -> SysResult<u64> {
        if !area.shared {
            return Err(Errno::EINVAL.into());
        }
        if flags & MREMAP_MAYMOVE == 0 {
            return Err(Errno::ENOMEM.into());
        }
        area.advance(skip);
        let Backing::Host { fd, offset, .. } = &area.backing else { return Err(Errno::EINVAL.into()) };
        let to = match flags & MREMAP_FIXED {
            0 => layout.choose(wish, new_len, false, false).ok_or(Errno::ENOMEM)?,
            _ => match wish.checked_add(new_len) {
                Some(end) if end <= layout.high && wish >= layout.low => wish,
                _ => return Err(Errno::EINVAL.into()),
            },
        };
        port.mmap(to, new_len, area.prot, MAP_SHARED, Some((fd, *offset)))?;
        let gone = layout.remove(to, to.saturating_add(new_len));
        area.end = to.saturating_add(new_len);
        layout.insert(to, area);
        drop(layout);
        drop(gone);
        Ok(to)
    }
}
