//! futex(2), futex_waitv(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, Restart, SysResult};
use crate::ipc::futex::Places;
use crate::mm::Key;
use crate::time;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

fn count(n: u32) -> usize {
    // A negative count is a large one, as in Linux.
    n as usize
}

/// futex(2)
pub fn futex(
    cx: &mut Cx,
    uaddr: Addr,
    futex_op: FutexOp,
    val: u32,
    timeout: Addr,
    uaddr2: Addr,
    val3: u32,
) -> SysResult {
    let op = futex_op.bits();
    let private = op & FUTEX_PRIVATE_FLAG != 0;
    let realtime = op & FUTEX_CLOCK_REALTIME != 0;
    let command = op & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    if realtime && !matches!(command, FUTEX_WAIT_BITSET | FUTEX_WAIT_REQUEUE_PI | FUTEX_LOCK_PI2) {
        return Err(Errno::ENOSYS.into());
    }
    let mm = cx.task.mm();
    let key = |addr: Addr| -> SysResult<Key> {
        match addr.addr() & 3 {
            0 => Ok(mm.key(addr.addr(), private)),
            _ => Err(Errno::EINVAL.into()),
        }
    };
    let futexes = &cx.kernel().futexes;
    let val2 = timeout.addr() as u32;
    match command {
        FUTEX_WAIT => wait(cx, key(uaddr)?, uaddr, val, timeout, false, realtime, u32::MAX),
        FUTEX_WAIT_BITSET if val3 == 0 => Err(Errno::EINVAL.into()),
        FUTEX_WAIT_BITSET => wait(cx, key(uaddr)?, uaddr, val, timeout, true, realtime, val3),
        FUTEX_WAKE => Ok(futexes.wake(&key(uaddr)?, count(val).max(1), u32::MAX) as u64),
        FUTEX_WAKE_BITSET if val3 == 0 => Err(Errno::EINVAL.into()),
        FUTEX_WAKE_BITSET => Ok(futexes.wake(&key(uaddr)?, count(val).max(1), val3) as u64),
        FUTEX_REQUEUE | FUTEX_CMP_REQUEUE => {
            if (val as i32) < 0 || (val2 as i32) < 0 {
                return Err(Errno::EINVAL.into());
            }
            let expected = (command == FUTEX_CMP_REQUEUE).then_some(val3);
            let from = (key(uaddr)?, uaddr.addr());
            Ok(futexes.requeue(&mm, from, key(uaddr2)?, count(val), count(val2), expected)? as u64)
        }
        FUTEX_WAKE_OP => {
            let second = (key(uaddr2)?, uaddr2.addr());
            let counts = (count(val), count(val2));
            Ok(futexes.wake_op(&mm, &key(uaddr)?, second, counts, val3)? as u64)
        }
        FUTEX_LOCK_PI
        | FUTEX_UNLOCK_PI
        | FUTEX_TRYLOCK_PI
        | FUTEX_LOCK_PI2
        | FUTEX_WAIT_REQUEUE_PI
        | FUTEX_CMP_REQUEUE_PI => Err(Fail::gap(Errno::ENOSYS, "priority-inheriting futexes")),
        _ => Err(Errno::ENOSYS.into()),
    }
}

/// When a wait ends, from a timespec of the guest.
fn until(spec: &Timespec, absolute: bool, realtime: bool) -> SysResult<Duration> {
    Ok(time::deadline(time::from_timespec(spec)?, absolute, realtime))
}

#[allow(clippy::too_many_arguments)]
fn wait(
    cx: &mut Cx,
    key: Key,
    uaddr: Addr,
    val: u32,
    timeout: Addr,
    absolute: bool,
    realtime: bool,
    bitset: u32,
) -> SysResult {
    let deadline = match timeout.is_null() || cx.call.deadline.is_some() {
        true => None,
        false => Some(until(&cx.read_value(timeout.addr())?, absolute, realtime)?),
    };
    let deadline = cx.deadline(|| deadline);
    if cx.state::<Places>().slots.is_empty() {
        let mm = cx.task.mm();
        let places = cx.kernel().futexes.queue(cx.task, &mm, &[(key, uaddr.addr(), val, bitset)])?;
        *cx.state::<Places>() = places;
    }
    pend(cx, deadline)
}

/// Waits until a place is woken; answers its index.
fn pend(cx: &mut Cx, deadline: Option<Duration>) -> SysResult {
    let slots = cx.state::<Places>().slots.clone();
    for (index, slot) in slots.iter().enumerate() {
        cx.wait_on(slot.queue(), crate::wait::Ready::IN);
        if slot.woken() {
            cx.state::<Places>().reported = true;
            return Ok(index as u64);
        }
    }
    if deadline.is_some_and(|d| time::now() >= d) {
        return Err(Errno::ETIMEDOUT.into());
    }
    cx.block_until(deadline, if deadline.is_some() { Restart::Block } else { Restart::Sys })
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
    let realtime = match clockid.bits() {
        CLOCK_REALTIME => true,
        CLOCK_MONOTONIC => false,
        _ if timeout.is_null() => false,
        _ => return Err(Errno::EINVAL.into()),
    };
    let deadline = match timeout.is_null() || cx.call.deadline.is_some() {
        true => None,
        false => Some(until(&cx.read_value(timeout.addr())?, true, realtime)?),
    };
    let deadline = cx.deadline(|| deadline);
    if cx.state::<Places>().slots.is_empty() {
        let mm = cx.task.mm();
        let mut words = Vec::with_capacity(nr_futexes as usize);
        for index in 0..u64::from(nr_futexes) {
            let at = waiters.addr().checked_add(index * 24).ok_or(Errno::EFAULT)?;
            let one: FutexWaitv = cx.read_value(at)?;
            let known = FUTEX2_SIZE_U64 | FUTEX2_PRIVATE;
            let size = one.flags & FUTEX2_SIZE_U64;
            if one.flags & !known != 0 || size != FUTEX2_SIZE_U32 || one.__reserved != 0 || one.uaddr & 3 != 0
            {
                return Err(Errno::EINVAL.into());
            }
            let private = one.flags & FUTEX2_PRIVATE != 0;
            words.push((mm.key(one.uaddr, private), one.uaddr, one.val as u32, u32::MAX));
        }
        let places = cx.kernel().futexes.queue(cx.task, &mm, &words)?;
        *cx.state::<Places>() = places;
    }
    pend(cx, deadline)
}
