//! mseal(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::errno::Errno;

/// mseal(2)
pub fn mseal(cx: &mut Cx, addr: Addr, len: usize, flags: u64) -> SysResult {
    if flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    cx.task.mm().seal(addr.addr(), len as u64).map(|()| 0)
}
