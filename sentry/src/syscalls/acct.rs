//! acct(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::task::creds::cap;
use syscall_table::errno::Errno;

/// acct(2): nobody without the right hears more than that; with it, there is no accounting to turn on.
pub fn acct(cx: &mut Cx, filename: Path) -> SysResult {
    if !cx.task.creds().capable(cap::SYS_PACCT) {
        return Err(Errno::EPERM.into());
    }
    if filename.addr() == 0 {
        // It is off.
        return Ok(0);
    }
    cx.read_path(filename.addr())?;
    Err(Fail::gap(Errno::ENOSYS, "process accounting"))
}
