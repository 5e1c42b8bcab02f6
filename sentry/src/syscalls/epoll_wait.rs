//! epoll_wait(2), epoll_pwait(2), epoll_pwait2(2)

use super::poll::with_mask;
use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::ipc::epoll::Epoll;
use crate::time;
use crate::wait::Ready;
use std::time::Duration;
use syscall_table::errno::Errno;
use zerocopy::IntoBytes;

fn wait(cx: &mut Cx, epfd: Fd, events: u64, maxevents: i32, timeout: Option<Duration>) -> SysResult {
    let max = usize::try_from(maxevents).ok().filter(|m| (1..=i32::MAX as usize / 12).contains(m));
    let max = max.ok_or(Errno::EINVAL)?;
    let file = cx.task.files().get(epfd.raw())?;
    let epoll = file.downcast::<Epoll>().ok_or(Errno::EINVAL)?;
    let deadline = cx.deadline(|| timeout.map(|t| time::now().saturating_add(t)));
    cx.wait_on_exclusive(epoll.wait_queue(), Ready::IN);
    // Never more than are ready.
    let ready = epoll.collect(max);
    if !ready.is_empty() {
        cx.copy_out(events, ready.as_bytes())?;
        return Ok(ready.len() as u64);
    }
    if deadline.is_some_and(|d| time::now() >= d) {
        return Ok(0);
    }
    cx.block_until(deadline, Restart::Never)
}

fn millis(timeout: i32) -> Option<Duration> {
    u64::try_from(timeout).ok().map(Duration::from_millis)
}

/// epoll_wait(2)
pub fn epoll_wait(
    cx: &mut Cx,
    epfd: Fd,
    events: OutSlice<EpollEvent>,
    maxevents: i32,
    timeout: i32,
) -> SysResult {
    wait(cx, epfd, events.addr(), maxevents, millis(timeout))
}

/// epoll_pwait(2)
pub fn epoll_pwait(
    cx: &mut Cx,
    epfd: Fd,
    events: OutSlice<EpollEvent>,
    maxevents: i32,
    timeout: i32,
    sigmask: In<Sigset>,
    sigsetsize: usize,
) -> SysResult {
    let (at, size) = (sigmask.addr(), sigsetsize as u64);
    with_mask(cx, at, size, |cx| wait(cx, epfd, events.addr(), maxevents, millis(timeout)))
}

/// epoll_pwait2(2)
pub fn epoll_pwait2(
    cx: &mut Cx,
    epfd: Fd,
    events: OutSlice<EpollEvent>,
    maxevents: i32,
    timeout: In<Timespec>,
    sigmask: In<Sigset>,
    sigsetsize: usize,
) -> SysResult {
    let timeout = match timeout.is_null() {
        true => None,
        false => Some(time::from_timespec(&cx.read_value(timeout.addr())?)?),
    };
    let (at, size) = (sigmask.addr(), sigsetsize as u64);
    with_mask(cx, at, size, |cx| wait(cx, epfd, events.addr(), maxevents, timeout))
}
