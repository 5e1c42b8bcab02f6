//! rt_sigprocmask(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::signal::mask;
use syscall_table::abi::sigaction::*;
use syscall_table::errno::Errno;

pub fn rt_sigprocmask(
    cx: &mut Cx,
    how: SigHow,
    set: In<Sigset>,
    oldset: Out<Sigset>,
    sigsetsize: usize,
) -> SysResult {
    if sigsetsize != size_of::<Sigset>() {
        return Err(Errno::EINVAL.into());
    }
    let old = mask::get(cx.task);
    if !set.is_null() {
        let set: Sigset = cx.read_value(set.addr())?;
        let new = match how.bits() {
            SIG_BLOCK => old | set.sig,
            SIG_UNBLOCK => old & !set.sig,
            SIG_SETMASK => set.sig,
            _ => return Err(Errno::EINVAL.into()),
        };
        mask::set(cx.task, new);
    }
    if !oldset.is_null() {
        cx.write_value(oldset.addr(), &Sigset { sig: old })?;
    }
    mask::lend(cx.task);
    Ok(0)
}
