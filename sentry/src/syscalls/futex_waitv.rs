//! futex_waitv(2), futex_wait(2), futex_wake(2), futex_requeue(2): the calls with a flags word for each futex.

use super::futex::{deadline, pend, wait};
use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Block, Fail, Restart, SysResult};
use crate::ipc::futex::{Places, Word};
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Size of struct futex_waitv.
const ENTRY: u64 = 24;

/// Checks a futex's flags; whether it is private.
fn private(flags: u32) -> SysResult<bool> {
    if flags & !(FUTEX2_SIZE_U64 | FUTEX2_NUMA | FUTEX2_MPOL | FUTEX2_PRIVATE) != 0
        || flags & FUTEX2_SIZE_U64 != FUTEX2_SIZE_U32
    {
        return Err(Errno::EINVAL.into());
    }
    if flags & (FUTEX2_NUMA | FUTEX2_MPOL) != 0 {
        return Err(Fail::gap(Errno::EINVAL, "futexes by memory node"));
    }
    Ok(flags & FUTEX2_PRIVATE != 0)
}

fn value(val: u64) -> SysResult<u32> {
    u32::try_from(val).map_err(|_| Errno::EINVAL.into())
}

/// An absolute deadline by one of the two clocks that futexes know.
fn until(cx: &mut Cx, timeout: In<Timespec>, clockid: ClockId) -> SysResult<Option<Duration>> {
    let realtime = match clockid.bits() {
        CLOCK_REALTIME => true,
        CLOCK_MONOTONIC => false,
        _ if timeout.is_null() => false,
        _ => return Err(Errno::EINVAL.into()),
    };
    deadline(cx, Addr(timeout.addr()), true, realtime)
}

/// Reads one entry of an array of waiters: the entry, and whether it is private.
fn entry(cx: &mut Cx, array: u64, index: u64) -> SysResult<(FutexWaitv, bool)> {
    let at = array.checked_add(index.saturating_mul(ENTRY)).ok_or(Errno::EFAULT)?;
    let one: FutexWaitv = cx.read_value(at)?;
    if one.__reserved != 0 {
        return Err(Errno::EINVAL.into());
    }
    let private = private(one.flags)?;
    value(one.val)?;
    Ok((one, private))
}

/// futex_waitv(2)
pub fn futex_waitv(
    cx: &mut Cx,
    waiters: InSlice<FutexWaitv>,
    nr_futexes: u32,
    flags: NoFlags,
    timeout: In<Timespec>,
    clockid: ClockId,
) -> SysResult {
    if flags.bits() != 0 || nr_futexes == 0 || nr_futexes > FUTEX_WAITV_MAX || waiters.is_null() {
        return Err(Errno::EINVAL.into());
    }
    let deadline = until(cx, timeout, clockid)?;
    if cx.state::<Places>().slots.is_empty() {
        let mm = cx.task.mm();
        let mut entries = Vec::with_capacity(nr_futexes as usize);
        for index in 0..u64::from(nr_futexes) {
            entries.push(entry(cx, waiters.addr(), index)?);
        }
        let mut words = Vec::with_capacity(entries.len());
        for (one, private) in entries {
            let key = mm.futex_key(one.uaddr, private, false)?;
            words.push(Word { key, addr: one.uaddr, expected: value(one.val)?, bitset: u32::MAX });
        }
        let places = cx.kernel().futexes.queue(cx.task, &mm, &words, None, None)?;
        *cx.state::<Places>() = places;
    }
    // The timeout is a point in time: the call is simply made again.
    pend(cx, deadline, Restart::Sys)
}

/// futex_wait(2)
pub fn futex_wait(
    cx: &mut Cx,
    uaddr: Addr,
    val: u64,
    mask: u64,
    flags: Futex2Flags,
    timeout: In<Timespec>,
    clockid: ClockId,
) -> SysResult {
    let private = private(flags.bits())?;
    let (val, mask) = (value(val)?, value(mask)?);
    let deadline = until(cx, timeout, clockid)?;
    if mask == 0 {
        return Err(Errno::EINVAL.into());
    }
    let key = cx.task.mm().futex_key(uaddr.addr(), private, false)?;
    match wait(cx, uaddr, key, val, deadline, mask) {
        // As above.
        Err(Fail::Block(block)) => Err(Fail::Block(Block { restart: Restart::Sys, ..block })),
        other => other,
    }
}

/// futex_wake(2)
pub fn futex_wake(cx: &mut Cx, uaddr: Addr, mask: u64, nr: i32, flags: Futex2Flags) -> SysResult {
    let private = private(flags.bits())?;
    let mask = value(mask)?;
    if mask == 0 {
        return Err(Errno::EINVAL.into());
    }
    let key = cx.task.mm().futex_key(uaddr.addr(), private, false)?;
    match nr {
        0 => Ok(0),
        nr => {
            let count = usize::try_from(nr).unwrap_or(1);
            Ok(cx.kernel().futexes.wake(&key, count, mask)? as u64)
        }
    }
}

/// futex_requeue(2)
pub fn futex_requeue(cx: &mut Cx, waiters: Addr, flags: NoFlags, nr_wake: i32, nr_requeue: i32) -> SysResult {
    if flags.bits() != 0 || waiters.is_null() {
        return Err(Errno::EINVAL.into());
    }
    let (from, from_private) = entry(cx, waiters.addr(), 0)?;
    let (to, to_private) = entry(cx, waiters.addr(), 1)?;
    let wake = usize::try_from(nr_wake).map_err(|_| Errno::EINVAL)?;
    let moved = usize::try_from(nr_requeue).map_err(|_| Errno::EINVAL)?;
    let mm = cx.task.mm();
    let first = (mm.futex_key(from.uaddr, from_private, false)?, from.uaddr);
    let second = mm.futex_key(to.uaddr, to_private, false)?;
    Ok(cx.kernel().futexes.requeue(&mm, first, second, wake, moved, Some(value(from.val)?))? as u64)
}
