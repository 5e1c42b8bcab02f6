//! remap_file_pages(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::errno::Errno;

/// remap_file_pages(2), as Linux emulates it: by new mappings. Of the flags, MAP_NONBLOCK has a meaning, without effect here.
pub fn remap_file_pages(
    cx: &mut Cx,
    addr: Addr,
    size: usize,
    prot: MmapProt,
    pgoff: usize,
    _flags: MmapFlags,
) -> SysResult {
    if prot.bits() != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mm = cx.task.mm();
    mm.remap_file_pages(cx.port()?, addr.addr(), size as u64, pgoff as u64).map(|()| 0)
}
