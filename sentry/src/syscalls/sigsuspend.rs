//! rt_sigsuspend(2), pause(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::signal::mask;
use syscall_table::errno::Errno;

pub fn rt_sigsuspend(cx: &mut Cx, set: In<Sigset>, sigsetsize: usize) -> SysResult {
    if sigsetsize != size_of::<Sigset>() {
        return Err(Errno::EINVAL.into());
    }
    let set: Sigset = cx.read_value(set.addr())?;
    mask::set_temporary(cx.task, set.sig);
    cx.block(Restart::NoHand)
}

pub fn pause(cx: &mut Cx) -> SysResult {
    cx.block(Restart::NoHand)
}
