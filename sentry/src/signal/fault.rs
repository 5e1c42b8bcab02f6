//! Processor exceptions become signals.

use super::{Fault, bit, mask};
use crate::fail::{Fail, SysResult};
use crate::task::{Task, coredump, exit};
use platform::Exception;
use std::sync::Arc;
use syscall_table::abi::sigaction::*;
use syscall_table::abi::wait::WaitStatus;

/// Number of the page fault among the processor's exceptions.
const PAGE_FAULT: u64 = 14;

/// Forces the exception's signal on the task.
pub(crate) fn raise(task: &Arc<Task>, exception: &Exception) {
    let signal = exception.signo;
    if bit(signal) == 0 {
        return;
    }
    {
        // As Linux's thread_struct: the last one stays, and the address is that of the last page fault.
        let mut signals = task.signals.lock();
        let addr = if exception.trapno == PAGE_FAULT { exception.addr } else { signals.fault.addr };
        signals.fault = Fault { error_code: exception.error_code, trapno: exception.trapno, addr };
    }
    force(task, Siginfo::fault(signal, exception.code, exception.addr));
}

/// A signal that the task cannot escape: blocked or ignored, it gets its default action.
pub(crate) fn force(task: &Arc<Task>, info: Siginfo) {
    let signal = info.si_signo;
    let sighand = task.process.sighand();
    let action = sighand.get(signal);
    let blocked = task.signals.lock().mask & bit(signal) != 0;
    let by_default = blocked || matches!(action.sa_handler, SIG_IGN | SIG_DFL);
    if by_default && !task.tracing.is_traced() {
        // It ends even the init of a namespace, unless somebody looks for its fault.
        task.process.unkillable.store(false, std::sync::atomic::Ordering::Relaxed);
    }
    if blocked || action.sa_handler == SIG_IGN {
        sighand.set(signal, Sigaction { sa_handler: SIG_DFL, ..action });
    }
    {
        let mut private = task.signals.lock();
        private.mask &= !bit(signal);
        // A pending one of the same number would hide this one's cause.
        private.queue.flush(bit(signal));
        private.queue.push(info);
    }
    mask::refresh(task);
}

/// A signal that ends the group whatever the program has set, and writes a core file if one is wanted. For a handler.
///
/// # Errors
/// Always: Resume, or Exit.
pub(crate) fn kill(task: &Arc<Task>, info: Siginfo) -> SysResult<std::convert::Infallible> {
    let signal = info.si_signo;
    if coredump::is_wanted(task) && !task.tracing.is_traced() {
        task.process.sighand().set(signal, Sigaction::default());
        force(task, info);
        return Err(Fail::Resume);
    }
    exit::group(&task.kernel, &task.process, WaitStatus::signaled(signal, false), Some(task));
    Err(Fail::Exit)
}

/// SIGSEGV of the kernel's own: a frame could not be written or read. If it was SIGSEGV's own frame, there is no second try.
pub(crate) fn force_segv(task: &Arc<Task>, failed: i32) {
    if failed == SIGSEGV {
        let sighand = task.process.sighand();
        sighand.set(SIGSEGV, Sigaction::default());
        task.process.unkillable.store(false, std::sync::atomic::Ordering::Relaxed);
    }
    force(task, Siginfo::kernel(SIGSEGV));
}
