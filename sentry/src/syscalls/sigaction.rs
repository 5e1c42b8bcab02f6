//! rt_sigaction(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::signal::{IGNORED, UNMASKABLE, bit, send};
use syscall_table::abi::sigaction::*;
use syscall_table::errno::Errno;

const KNOWN: u64 = SA_NOCLDSTOP
    | SA_NOCLDWAIT
    | SA_SIGINFO
    | SA_EXPOSE_TAGBITS
    | SA_RESTORER
    | SA_ONSTACK
    | SA_RESTART
    | SA_NODEFER
    | SA_RESETHAND;

pub fn rt_sigaction(
    cx: &mut Cx,
    signum: Signal,
    act: In<Sigaction>,
    oldact: Out<Sigaction>,
    sigsetsize: usize,
) -> SysResult {
    if sigsetsize != size_of::<Sigset>() {
        return Err(Errno::EINVAL.into());
    }
    let signal = signum.raw();
    let new: Option<Sigaction> = if act.is_null() { None } else { Some(cx.read_value(act.addr())?) };
    if bit(signal) == 0 || new.is_some() && bit(signal) & UNMASKABLE != 0 {
        return Err(Errno::EINVAL.into());
    }
    let sighand = cx.task.process.sighand();
    let old = match new {
        None => sighand.get(signal),
        Some(mut action) => {
            action.sa_mask.sig &= !UNMASKABLE;
            action.sa_flags &= KNOWN;
            let old = sighand.set(signal, action);
            let none = Sigaction::default();
            if (old == none) != (action == none) {
                cx.task.process.threads().iter().for_each(|task| task.tell_actions());
            }
            let ignored =
                action.sa_handler == SIG_IGN || action.sa_handler == SIG_DFL && bit(signal) & IGNORED != 0;
            if old.sa_handler == SIG_IGN && !ignored {
                cx.task.process.timers.heeded(signal);
            }
            if ignored {
                // POSIX: what is pending and now ignored is dropped.
                cx.task.process.pending.lock().queue.flush(bit(signal));
                for task in cx.task.process.threads() {
                    task.signals.lock().queue.flush(bit(signal));
                    crate::signal::mask::refresh(&task);
                }
                // Another thread may have set a handler before timers knew that their signals were dropped.
                if !send::is_ignored(&cx.task.process, signal) {
                    cx.task.process.timers.heeded(signal);
                }
            }
            old
        }
    };
    if !oldact.is_null() {
        cx.write_value(oldact.addr(), &old)?;
    }
    Ok(0)
}
