//! mincore(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::mm::{PAGE, round_up};
use platform::MINCORE_MAX;
use syscall_table::errno::Errno;

/// mincore(2): the host says which pages are in memory. What comes before a hole is told, as Linux does.
pub fn mincore(cx: &mut Cx, addr: Addr, length: usize, vec: Addr) -> SysResult {
    let start = addr.addr();
    if start & (PAGE - 1) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let len = round_up(length as u64).ok_or(Errno::ENOMEM)?;
    let end = start.checked_add(len).ok_or(Errno::ENOMEM)?;
    cx.port()?;
    let mm = cx.task.mm();
    let upto = mm.layout.lock().run_end(start, end);
    let mut pages = [0u8; MINCORE_MAX];
    let (mut at, mut to) = (start, vec.addr());
    while at < upto {
        let count = upto.saturating_sub(at).div_ceil(PAGE).min(MINCORE_MAX as u64);
        let part = pages.get_mut(..count as usize).unwrap_or_default();
        mm.resident(cx.port()?, at, part)?;
        cx.copy_out(to, part)?;
        to = to.checked_add(count).ok_or(Errno::EFAULT)?;
        at = at.saturating_add(count.saturating_mul(PAGE));
    }
    if upto < end { Err(Errno::ENOMEM.into()) } else { Ok(0) }
}
