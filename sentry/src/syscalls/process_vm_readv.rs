//! process_vm_readv(2), process_vm_writev(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::mm::Mm;
use crate::task::access::may_inspect;
use crate::vfs::io::{read_iovec, with_scratch};
use syscall_table::abi::readv::{Iovec, MAX_RW_COUNT, UIO_MAXIOV};
use syscall_table::errno::Errno;

/// Bytes copied at once.
const CHUNK: usize = 64 * 1024;

/// process_vm_readv(2)
pub fn process_vm_readv(
    cx: &mut Cx,
    pid: Pid,
    local_iov: InSlice<Iovec>,
    liovcnt: usize,
    remote_iov: InSlice<Iovec>,
    riovcnt: usize,
    flags: u64,
) -> SysResult {
    transfer(cx, pid, (local_iov.addr(), liovcnt), (remote_iov.addr(), riovcnt), flags, false)
}

/// process_vm_writev(2)
pub fn process_vm_writev(
    cx: &mut Cx,
    pid: Pid,
    local_iov: InSlice<Iovec>,
    liovcnt: usize,
    remote_iov: InSlice<Iovec>,
    riovcnt: usize,
    flags: u64,
) -> SysResult {
    transfer(cx, pid, (local_iov.addr(), liovcnt), (remote_iov.addr(), riovcnt), flags, true)
}

fn transfer(
    cx: &mut Cx,
    pid: Pid,
    (local, local_count): (u64, usize),
    (remote, remote_count): (u64, usize),
    flags: u64,
    write: bool,
) -> SysResult {
    if flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let local = read_iovec(cx, local, local_count)?;
    if local.iter().all(|(_, len)| *len == 0) {
        return Ok(0);
    }
    if remote_count > UIO_MAXIOV {
        return Err(Errno::EINVAL.into());
    }
    let remote = read_iovec(cx, remote, remote_count)?;
    if remote.iter().all(|(_, len)| *len == 0) {
        return Ok(0);
    }
    let target = cx.kernel().tree.task(pid.raw())?;
    if !may_inspect(cx.task, &target) {
        return Err(Errno::EPERM.into());
    }
    let mm = target.mm();
    drop(target);
    copy(cx, &mm, Cursor::new(&local), Cursor::new(&remote), write)
}

/// A place in a list of ranges.
struct Cursor<'a> {
    ranges: &'a [(u64, usize)],
    done: usize,
}

impl<'a> Cursor<'a> {
    fn new(ranges: &'a [(u64, usize)]) -> Self {
        Cursor { ranges, done: 0 }
    }

    /// Address and length of what comes next; None at the end.
    fn next(&mut self) -> Option<(u64, usize)> {
        loop {
            let (addr, len) = *self.ranges.first()?;
            if self.done < len {
                return Some((addr.wrapping_add(self.done as u64), len - self.done));
            }
            self.ranges = self.ranges.get(1..).unwrap_or_default();
            self.done = 0;
        }
    }
}

fn copy(cx: &mut Cx, mm: &Mm, mut local: Cursor<'_>, mut remote: Cursor<'_>, write: bool) -> SysResult {
    let mut total = 0usize;
    with_scratch(CHUNK, |buffer| {
        while total < MAX_RW_COUNT
            && let (Some((here, room)), Some((there, left))) = (local.next(), remote.next())
        {
            let part = buffer.get_mut(..room.min(left).min(CHUNK)).unwrap_or_default();
            let want = part.len();
            // The platform's own range is nobody's memory.
            let end = there.checked_add(want as u64).filter(|end| *end <= mm.layout.lock().end());
            let got = match (end, write) {
                (None, _) => 0,
                (_, true) => match cx.copy_in_some(here, part) {
                    Err(fail) if total == 0 => return Err(fail),
                    Err(_) => return Ok(total as u64),
                    Ok(got) => {
                        let data = part.get(..got).unwrap_or_default();
                        mm.space.write(there, data).map_or_else(|fault| fault.done, |()| got)
                    }
                },
                (_, false) => {
                    let got = mm.space.read_code(there, part).map_or_else(|fault| fault.done, |()| want);
                    cx.copy_out(here, part.get(..got).unwrap_or_default())?;
                    got
                }
            };
            total = total.saturating_add(got);
            if got < want {
                return if total == 0 { Err(Errno::EFAULT.into()) } else { Ok(total as u64) };
            }
            local.done = local.done.saturating_add(got);
            remote.done = remote.done.saturating_add(got);
        }
        Ok(total as u64)
    })
}
