//! restart_syscall(2): continues a call that a stop or an unhandled signal interrupted.

use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::errno::Errno;

const OWN_NUMBER: u32 = 219;

pub fn restart_syscall(cx: &mut Cx) -> SysResult {
    let Some(block) = cx.call.restart_block.take() else { return Err(Errno::EINTR.into()) };
    if block.nr == OWN_NUMBER {
        return Err(Errno::EINTR.into());
    }
    cx.call.nr = block.nr;
    cx.call.args = block.args;
    cx.call.deadline = block.deadline;
    cx.call.state = block.state;
    super::dispatch(cx)
}
