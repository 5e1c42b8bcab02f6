//! msync(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::mm::{PAGE, round_up};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// msync(2): mappings and descriptors share the host's page cache, so only MS_SYNC has something to do.
pub fn msync(cx: &mut Cx, addr: Addr, length: usize, flags: MsyncFlags) -> SysResult {
    let start = addr.addr();
    if flags.unknown(MS_ASYNC | MS_INVALIDATE | MS_SYNC) != 0
        || flags.has(MS_ASYNC | MS_SYNC)
        || start & (PAGE - 1) != 0
    {
        return Err(Errno::EINVAL.into());
    }
    // As Linux: a length that wraps around is none.
    let len = round_up(length as u64).unwrap_or(0);
    let end = start.checked_add(len).ok_or(Errno::ENOMEM)?;
    let mm = cx.task.mm();
    let layout = mm.layout.lock();
    let mut files = Vec::new();
    let (mut at, mut hole) = (start, false);
    while at < end {
        match layout.find(at) {
            Some((_, area)) => {
                if flags.has(MS_INVALIDATE) && area.locked.is_some() {
                    return Err(Errno::EBUSY.into());
                }
                if area.shared
                    && let Some(file) = area.file()
                {
                    files.push(file.clone());
                }
                at = area.end;
            }
            None => {
                hole = true;
                at = layout.next_start(at).unwrap_or(end);
            }
        }
    }
    drop(layout);
    if flags.has(MS_SYNC) {
        for file in files {
            file.ops.fsync(true)?;
        }
    }
    if hole { Err(Errno::ENOMEM.into()) } else { Ok(0) }
}
