//! mincore(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::mm::{PAGE, round_up};
use syscall_table::errno::Errno;

/// mincore(2): every mapped page is said to be resident.
pub fn mincore(cx: &mut Cx, addr: Addr, length: usize, vec: Addr) -> SysResult {
    let start = addr.addr();
    if start & (PAGE - 1) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let len = round_up(length as u64).ok_or(Errno::ENOMEM)?;
    let end = start.checked_add(len).ok_or(Errno::ENOMEM)?;
    let mm = cx.task.mm();
    let upto = mm.layout.lock().run_end(start, end);
    if upto < end {
        return Err(Errno::ENOMEM.into());
    }
    let ones = [1u8; 4096];
    let mut left = len / PAGE;
    let mut to = vec.addr();
    while left > 0 {
        let part = left.min(4096);
        cx.copy_out(to, ones.get(..part as usize).unwrap_or_default())?;
        to = to.checked_add(part).ok_or(Errno::EFAULT)?;
        left -= part;
    }
    Ok(0)
}
