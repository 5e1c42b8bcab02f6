//! poll(2), ppoll(2)

use crate::args::*;
use crate::cx::{Cx, Left};
use crate::fail::{Fail, Restart, SysResult};
use crate::signal::mask;
use crate::time;
use crate::wait::Ready;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::{FromZeros, IntoBytes};

/// Runs `call` with the signal mask at `addr` (none if null) in place until it ends.
pub(super) fn with_mask(
    cx: &mut Cx,
    addr: u64,
    size: u64,
    call: impl FnOnce(&mut Cx) -> SysResult,
) -> SysResult {
    if addr == 0 {
        return call(cx);
    }
    if size != size_of::<Sigset>() as u64 {
        return Err(Errno::EINVAL.into());
    }
    let set: Sigset = cx.read_value(addr)?;
    mask::set_temporary(cx.task, set.sig);
    let result = call(cx);
    if !matches!(result, Err(Fail::Block(_) | Fail::NeedPort)) {
        mask::restore(cx.task);
    }
    result
}

/// The deadline of a call whose timeout lies at `addr` (none if null), read in the first attempt.
pub(super) fn deadline_at(cx: &mut Cx, addr: u64) -> SysResult<Option<Duration>> {
    if addr == 0 {
        return Ok(cx.deadline(|| None));
    }
    if let Some(kept) = cx.call.deadline {
        return Ok(kept);
    }
    let wish = time::from_timespec(&cx.read_value(addr)?)?;
    Ok(cx.deadline(|| Some(time::now().saturating_add(wish))))
}

fn wait(cx: &mut Cx, fds: u64, nfds: u32, deadline: Option<Duration>, restart: Restart) -> SysResult {
    if u64::from(nfds) > cx.task.process.limit(RLIMIT_NOFILE) {
        return Err(Errno::EINVAL.into());
    }
    let mut list = vec![Pollfd::new_zeroed(); nfds as usize];
    cx.copy_in(fds, list.as_mut_bytes())?;
    let files = cx.task.files();
    let mut count = 0;
    for one in &mut list {
        one.revents = 0;
        if one.fd < 0 {
            continue;
        }
        match files.get(one.fd) {
            Err(_) => one.revents = POLLNVAL,
            Ok(file) => {
                let wanted = u32::from(one.events | POLLERR | POLLHUP);
                if let Some(queue) = file.ops.queue() {
                    cx.wait_on(queue, Ready::from_bits_retain(wanted));
                }
                one.revents = (file.ops.poll(&file).bits() & wanted) as u16;
            }
        }
        count += u64::from(one.revents != 0);
    }
    if count == 0 && deadline.is_none_or(|d| time::now() < d) {
        return cx.block_until(deadline, restart);
    }
    cx.copy_out(fds, list.as_bytes())?;
    Ok(count)
}

/// poll(2)
pub fn poll(cx: &mut Cx, fds: InOutSlice<Pollfd>, nfds: u32, timeout: i32) -> SysResult {
    let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
    let deadline = cx.deadline(|| timeout.map(|t| time::now().saturating_add(t)));
    wait(cx, fds.addr(), nfds, deadline, Restart::Block)
}

/// ppoll(2)
pub fn ppoll(
    cx: &mut Cx,
    fds: InOutSlice<Pollfd>,
    nfds: u32,
    tmo_p: InOut<Timespec>,
    sigmask: In<Sigset>,
    sigsetsize: usize,
) -> SysResult {
    let deadline = deadline_at(cx, tmo_p.addr())?;
    cx.left = Some(Left::Timespec(tmo_p.addr()));
    let result = with_mask(cx, sigmask.addr(), sigsetsize as u64, |cx| {
        wait(cx, fds.addr(), nfds, deadline, Restart::NoHand)
    });
    if result.is_ok() {
        cx.write_left(deadline);
    }
    result
}
