//! rt_sigtimedwait(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::signal::{UNMASKABLE, mask};
use crate::time::now;
use crate::wait::Ready;
use std::time::Duration;
use syscall_table::errno::Errno;

pub fn rt_sigtimedwait(
    cx: &mut Cx,
    set: In<Sigset>,
    info: Out<Siginfo>,
    timeout: In<Timespec>,
    sigsetsize: usize,
) -> SysResult {
    if sigsetsize != size_of::<Sigset>() {
        return Err(Errno::EINVAL.into());
    }
    let wanted = cx.read_value::<Sigset>(set.addr())?.sig & !UNMASKABLE;
    let deadline = if timeout.is_null() {
        None
    } else {
        let timeout: Timespec = cx.read_value(timeout.addr())?;
        let nanos = u32::try_from(timeout.tv_nsec).ok().filter(|n| *n < 1_000_000_000);
        let (Ok(secs), Some(nanos)) = (u64::try_from(timeout.tv_sec), nanos) else {
            return Err(Errno::EINVAL.into());
        };
        cx.deadline(|| now().checked_add(Duration::new(secs, nanos)))
    };
    cx.wait_on(&cx.task.process.signal_wait, Ready::IN);
    if let Some(taken) = mask::take(cx.task, wanted) {
        if !info.is_null() {
            cx.write_value(info.addr(), &taken)?;
        }
        return Ok(taken.si_signo as u64);
    }
    if deadline.is_some_and(|d| now() >= d) {
        return Err(Errno::EAGAIN.into());
    }
    cx.block_until(deadline, Restart::Never)
}
