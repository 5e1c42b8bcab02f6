//! set_robust_list(2), get_robust_list(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::access::may_inspect;
use crate::task::tree::INIT;
use syscall_table::errno::Errno;

/// Size of struct robust_list_head.
const HEAD_SIZE: usize = 24;

pub fn set_robust_list(cx: &mut Cx, head: Addr, len: usize) -> SysResult {
    if len != HEAD_SIZE {
        return Err(Errno::EINVAL.into());
    }
    cx.task.set_robust_list(head.addr());
    Ok(0)
}

pub fn get_robust_list(cx: &mut Cx, pid: Pid, head_ptr: Out<u64>, len_ptr: Out<u64>) -> SysResult {
    if pid.raw() == INIT {
        return Err(Errno::EPERM.into());
    }
    let task = if pid.raw() == 0 { cx.task.clone() } else { cx.kernel().tree.task(pid.raw())? };
    // It is an address in the other's memory.
    if !may_inspect(cx.task, &task) {
        return Err(Errno::EPERM.into());
    }
    cx.write_value(len_ptr.addr(), &(HEAD_SIZE as u64))?;
    cx.write_value(head_ptr.addr(), &task.robust_list())?;
    Ok(0)
}
