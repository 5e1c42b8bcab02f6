//! select(2), pselect6(2)

use super::poll::{deadline_at, with_mask};
use crate::args::*;
use crate::cx::{Cx, Left};
use crate::fail::{Restart, SysResult};
use crate::time;
use crate::wait::Ready;
use std::time::Duration;
use syscall_table::abi::open::O_PATH;
use syscall_table::errno::Errno;
use zerocopy::IntoBytes;

const IN: Ready = Ready::IN.union(Ready::RDNORM).union(Ready::RDBAND).union(Ready::HUP).union(Ready::ERR);
const OUT: Ready = Ready::OUT.union(Ready::WRNORM).union(Ready::WRBAND).union(Ready::ERR);
const EX: Ready = Ready::PRI;

type Set = Vec<u64>;

fn has(set: &Set, fd: usize) -> bool {
    set.get(fd / 64).is_some_and(|w| w >> (fd % 64) & 1 != 0)
}

fn wait(cx: &mut Cx, nfds: i32, sets: [u64; 3], deadline: Option<Duration>) -> SysResult {
    let nfds = usize::try_from(nfds).map_err(|_| Errno::EINVAL)?.min(1 << 20);
    let words = nfds.div_ceil(64);
    let mut wanted: [Set; 3] = Default::default();
    for (set, addr) in wanted.iter_mut().zip(sets) {
        set.resize(words, 0);
        if addr != 0 {
            cx.copy_in(addr, set.as_mut_bytes())?;
        }
    }
    let files = cx.task.files();
    let mut found: [Set; 3] = [vec![0; words], vec![0; words], vec![0; words]];
    let mut count = 0;
    for fd in 0..nfds {
        let asked = [has(&wanted[0], fd), has(&wanted[1], fd), has(&wanted[2], fd)];
        if asked == [false; 3] {
            continue;
        }
        let file = files.get_any(i32::try_from(fd).map_err(|_| Errno::EBADF)?)?;
        let ready = if file.flags() & O_PATH != 0 {
            // POLLNVAL is in all three sets.
            IN | OUT | EX
        } else {
            if let Some(queue) = file.ops.queue() {
                cx.wait_on(queue, IN | OUT | EX);
            }
            file.ops.poll(&file)
        };
        for ((asked, mask), set) in asked.into_iter().zip([IN, OUT, EX]).zip(&mut found) {
            if asked
                && ready.intersects(mask)
                && let Some(word) = set.get_mut(fd / 64)
            {
                *word |= 1 << (fd % 64);
                count += 1;
            }
        }
    }
    if count == 0 && deadline.is_none_or(|d| time::now() < d) {
        return cx.block_until(deadline, Restart::NoHand);
    }
    for (set, addr) in found.iter().zip(sets) {
        if addr != 0 {
            cx.copy_out(addr, set.as_bytes())?;
        }
    }
    Ok(count)
}

/// select(2)
pub fn select(
    cx: &mut Cx,
    nfds: i32,
    readfds: FdSetPtr,
    writefds: FdSetPtr,
    exceptfds: FdSetPtr,
    timeout: InOut<Timeval>,
) -> SysResult {
    let kept = cx.call.deadline;
    let deadline = match kept {
        Some(kept) => kept,
        None if timeout.is_null() => cx.deadline(|| None),
        None => {
            let spec: Timeval = cx.read_value(timeout.addr())?;
            let wish = time::from_timeval(&spec)?;
            cx.deadline(|| Some(time::now().saturating_add(wish)))
        }
    };
    cx.left = Some(Left::Timeval(timeout.addr()));
    let result = wait(cx, nfds, [readfds.addr(), writefds.addr(), exceptfds.addr()], deadline);
    if result.is_ok() {
        cx.write_left(deadline);
    }
    result
}

/// pselect6(2)
pub fn pselect6(
    cx: &mut Cx,
    nfds: i32,
    readfds: FdSetPtr,
    writefds: FdSetPtr,
    exceptfds: FdSetPtr,
    timeout: InOut<Timespec>,
    sigmask: In<SigsetArg>,
) -> SysResult {
    let deadline = deadline_at(cx, timeout.addr())?;
    cx.left = Some(Left::Timespec(timeout.addr()));
    let (mask, size) = match sigmask.is_null() {
        true => (0, 0),
        false => {
            let arg: SigsetArg = cx.read_value(sigmask.addr())?;
            (arg.ss, arg.ss_len)
        }
    };
    let sets = [readfds.addr(), writefds.addr(), exceptfds.addr()];
    let result = with_mask(cx, mask, size, |cx| wait(cx, nfds, sets, deadline));
    if result.is_ok() {
        cx.write_left(deadline);
    }
    result
}
