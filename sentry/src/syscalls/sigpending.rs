//! rt_sigpending(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::signal::mask;
use syscall_table::errno::Errno;

pub fn rt_sigpending(cx: &mut Cx, set: Out<Sigset>, sigsetsize: usize) -> SysResult {
    if sigsetsize > size_of::<Sigset>() {
        return Err(Errno::EINVAL.into());
    }
    let pending = mask::pending(cx.task) & mask::get(cx.task);
    let bytes = pending.to_le_bytes();
    cx.copy_out(set.addr(), bytes.get(..sigsetsize).unwrap_or_default())?;
    Ok(0)
}
