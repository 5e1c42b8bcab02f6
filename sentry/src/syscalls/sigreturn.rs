//! rt_sigreturn(2).

use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::signal::fault;
use crate::signal::frame::{self, Failed};
use crate::task::exit;
use syscall_table::abi::sigaction::{SIGKILL, SIGSEGV};

pub fn rt_sigreturn(cx: &mut Cx) -> SysResult {
    let task = cx.task.clone();
    match frame::pop(&task, cx.port()?) {
        Ok(()) => Err(Fail::Resume),
        Err(Failed::Memory) => {
            // As Linux: a frame that cannot be read is a segmentation fault with no way around.
            fault::force_segv(&task, SIGSEGV);
            Err(Fail::Resume)
        }
        Err(Failed::Gone) => {
            exit::host_death(&task, SIGKILL);
            Err(Fail::Exit)
        }
    }
}
