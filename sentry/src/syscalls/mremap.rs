//! mremap(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// mremap(2)
pub fn mremap(
    cx: &mut Cx,
    old_address: Addr,
    old_size: usize,
    new_size: usize,
    flags: MremapFlags,
    new_address: Addr,
) -> SysResult {
    if flags.unknown(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mm = cx.task.mm();
    mm.set_room(&cx.task.process);
    let wish = if flags.bits() & (MREMAP_FIXED | MREMAP_DONTUNMAP) != 0 { new_address.addr() } else { 0 };
    let (old, new) = (old_size as u64, new_size as u64);
    let port = cx.port()?;
    let at = mm.remap(port, old_address.addr(), old, new, flags.bits(), wish)?;
    // Locked memory grows filled; what was mapped a second time is as old as what it is of. Both were rounded without overflow.
    let [before, now] = [old, new].map(|size| size.next_multiple_of(crate::mm::PAGE));
    if now > before && old != 0 {
        mm.fill_locked(port, at.saturating_add(before), at.saturating_add(now))?;
    }
    Ok(at)
}
