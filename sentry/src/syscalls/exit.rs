//! exit(2), exit_group(2).

use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::task::exit as end;
use syscall_table::abi::wait::WaitStatus;

pub fn exit(cx: &mut Cx, status: i32) -> SysResult {
    end::single(cx.task, status);
    Err(Fail::Exit)
}

pub fn exit_group(cx: &mut Cx, status: i32) -> SysResult {
    end::group(cx.kernel(), &cx.task.process, WaitStatus::exited(status), Some(cx.task));
    Err(Fail::Exit)
}
