//! futex(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::ipc::futex::pi::LockWord;
use crate::ipc::futex::{Places, Seen, Word};
use crate::mm::Key;
use crate::time::{self, Base};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// How many to wake: Linux looks at the count after it woke one, so nothing and less than nothing is one.
fn at_least_one(n: u32) -> usize {
    usize::try_from(n.cast_signed()).unwrap_or(0).max(1)
}

fn count(n: u32) -> SysResult<usize> {
    usize::try_from(n.cast_signed()).map_err(|_| Errno::EINVAL.into())
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
    let deadline = match command {
        FUTEX_WAIT => deadline(cx, timeout, false, false)?,
        FUTEX_LOCK_PI => deadline(cx, timeout, true, true)?,
        FUTEX_WAIT_BITSET | FUTEX_WAIT_REQUEUE_PI | FUTEX_LOCK_PI2 => deadline(cx, timeout, true, realtime)?,
        _ => None,
    };
    let mm = cx.task.mm();
    let key = |addr: Addr, write: bool| mm.futex_key(addr.addr(), private, write);
    let futexes = &cx.kernel().futexes;
    let val2 = timeout.addr() as u32;
    match command {
        FUTEX_WAIT_BITSET | FUTEX_WAKE_BITSET if val3 == 0 => Err(Errno::EINVAL.into()),
        FUTEX_WAIT => wait(cx, uaddr, key(uaddr, false)?, val, deadline, u32::MAX),
        FUTEX_WAIT_BITSET => wait(cx, uaddr, key(uaddr, false)?, val, deadline, val3),
        FUTEX_WAKE => Ok(futexes.wake(&key(uaddr, false)?, at_least_one(val), u32::MAX)? as u64),
        FUTEX_WAKE_BITSET => Ok(futexes.wake(&key(uaddr, false)?, at_least_one(val), val3)? as u64),
        FUTEX_REQUEUE | FUTEX_CMP_REQUEUE => {
            let (wake, moved) = (count(val)?, count(val2)?);
            let expected = (command == FUTEX_CMP_REQUEUE).then_some(val3);
            let from = (key(uaddr, false)?, uaddr.addr());
            Ok(futexes.requeue(&mm, from, key(uaddr2, false)?, wake, moved, expected)? as u64)
        }
        FUTEX_WAKE_OP => {
            let first = key(uaddr, false)?;
            let second = (key(uaddr2, true)?, uaddr2.addr());
            let counts = (at_least_one(val), at_least_one(val2));
            Ok(futexes.wake_op(&mm, &first, second, counts, val3)? as u64)
        }
        FUTEX_LOCK_PI | FUTEX_LOCK_PI2 | FUTEX_TRYLOCK_PI => {
            if cx.state::<Places>().slots.is_empty() {
                let word = LockWord {
                    mm: &mm,
                    key: key(uaddr, true)?,
                    addr: uaddr.addr(),
                    ns: &cx.task.process.pidns,
                };
                match futexes.lock_pi(cx.task, word, command == FUTEX_TRYLOCK_PI)? {
                    None => return Ok(0),
                    Some(places) => *cx.state::<Places>() = places,
                }
            }
            pend(cx, deadline, Restart::NoIntr)
        }
        FUTEX_UNLOCK_PI => {
            // Linux looks at the owner before the address.
            let value: u32 = cx.read_value(uaddr.addr())?;
            if value & FUTEX_TID_MASK != cx.task.own_tid().cast_unsigned() {
                return Err(Errno::EPERM.into());
            }
            let word =
                LockWord { mm: &mm, key: key(uaddr, true)?, addr: uaddr.addr(), ns: &cx.task.process.pidns };
            futexes.unlock_pi(cx.task, word).map(|()| 0)
        }
        FUTEX_WAIT_REQUEUE_PI => {
            if uaddr == uaddr2 {
                return Err(Errno::EINVAL.into());
            }
            if cx.state::<Places>().slots.is_empty() {
                let target = (key(uaddr2, true)?, uaddr2.addr());
                let key = key(uaddr, false)?;
                if key == target.0 {
                    return Err(Errno::EINVAL.into());
                }
                let word = Word { key, addr: uaddr.addr(), expected: val, bitset: u32::MAX };
                *cx.state::<Places>() = futexes.queue(cx.task, &mm, &[word], Some(target), None)?;
            }
            pend(cx, deadline, Restart::NoIntr)
        }
        FUTEX_CMP_REQUEUE_PI => {
            let (wake, moved) = (count(val)?, count(val2)?);
            if wake != 1 || uaddr == uaddr2 {
                return Err(Errno::EINVAL.into());
            }
            let from = key(uaddr, false)?;
            let to = LockWord {
                mm: &mm,
                key: key(uaddr2, true)?,
                addr: uaddr2.addr(),
                ns: &cx.task.process.pidns,
            };
            if from == to.key {
                return Err(Errno::EINVAL.into());
            }
            Ok(futexes.requeue_pi(cx.task, (from, uaddr.addr()), to, moved, val3)? as u64)
        }
        _ => Err(Errno::ENOSYS.into()),
    }
}

/// When the call ends, from a timespec of the guest, read in the first attempt alone.
pub(super) fn deadline(
    cx: &mut Cx,
    timeout: Addr,
    absolute: bool,
    realtime: bool,
) -> SysResult<Option<Duration>> {
    let deadline = match timeout.is_null() || cx.call.deadline.is_some() {
        true => None,
        false => {
            let spec: Timespec = cx.read_value(timeout.addr())?;
            let base = if realtime { Base::Real } else { Base::Monotonic };
            Some(time::deadline(cx.task, time::from_timespec(&spec)?, absolute, base))
        }
    };
    Ok(cx.deadline(|| deadline))
}

/// FUTEX_WAIT, FUTEX_WAIT_BITSET, futex_wait(2).
pub(super) fn wait(
    cx: &mut Cx,
    uaddr: Addr,
    key: Key,
    expected: u32,
    deadline: Option<Duration>,
    bitset: u32,
) -> SysResult {
    if cx.state::<Places>().slots.is_empty() {
        let mm = cx.task.mm();
        let word = Word { key, addr: uaddr.addr(), expected, bitset };
        let wakes = cx.task.wakes_seen.load(Relaxed);
        let seen = cx.known_u32(uaddr.addr()).map(|value| Seen { value, wakes });
        let places = cx.kernel().futexes.queue(cx.task, &mm, &[word], None, seen)?;
        *cx.state::<Places>() = places;
    }
    pend(cx, deadline, if deadline.is_some() { Restart::Block } else { Restart::Sys })
}

/// Waits until a place is woken; answers its index.
pub(super) fn pend(cx: &mut Cx, deadline: Option<Duration>, restart: Restart) -> SysResult {
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
    cx.block_until(deadline, restart)
}
