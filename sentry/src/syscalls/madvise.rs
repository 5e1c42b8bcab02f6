//! madvise(2), process_madvise(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::mm::area::Backing;
use crate::mm::{Layout, PAGE, round_up};
use crate::task::creds::cap;
use platform::CallError;
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// fallocate(2) modes: a hole, the size stays.
const PUNCH_HOLE: i32 = 0x3;

/// madvise(2)
pub fn madvise(cx: &mut Cx, addr: Addr, length: usize, advice: Advice) -> SysResult {
    advise(cx, addr.addr(), length as u64, advice.bits()).map(|()| 0)
}

/// Whether there is such advice.
///
/// # Errors
/// EINVAL; a gap.
fn known(advice: i32) -> SysResult<()> {
    let known = u32::try_from(advice).is_ok_and(platform::guestfilter::is_advice);
    match advice {
        _ if known => Ok(()),
        MADV_REMOVE => Ok(()),
        MADV_HWPOISON | MADV_SOFT_OFFLINE => Err(Fail::gap(Errno::EPERM, format!("advice {advice}"))),
        MADV_MERGEABLE | MADV_UNMERGEABLE => Err(Fail::gap(Errno::EINVAL, format!("advice {advice}"))),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// The end of a range, which may be empty.
fn end_of(start: u64, len: u64) -> SysResult<u64> {
    let len = round_up(len).ok_or(Errno::EINVAL)?;
    if start & (PAGE - 1) != 0 {
        return Err(Errno::EINVAL.into());
    }
    Ok(start.checked_add(len).ok_or(Errno::EINVAL)?)
}

/// The caller's own memory. Linux advises every mapped part and answers ENOMEM if there was a hole, and so does the host:
/// one call to it does for any number of areas.
fn advise(cx: &mut Cx, start: u64, len: u64, advice: i32) -> SysResult<()> {
    known(advice)?;
    let end = end_of(start, len)?;
    if start == end {
        return Ok(());
    }
    if advice == MADV_REMOVE {
        return remove(cx, start, end);
    }
    // One such call fills memory faster than anybody could look.
    if matches!(advice, MADV_POPULATE_READ | MADV_POPULATE_WRITE) && !crate::memory::room_for(end - start) {
        let missing = cx.task.mm().absent(cx.port()?, start, end, advice == MADV_POPULATE_WRITE)?;
        if !crate::memory::room_for(missing) {
            return Err(Errno::ENOMEM.into());
        }
    }
    let mm = cx.task.mm();
    let port = cx.memory_port(false)?;
    let mut layout = mm.layout.lock();
    // Areas that refuse are so where they begin. The host knows of neither locks nor seals.
    let refused = layout.first_that_refuses(start, end, advice);
    let upto = refused.map_or(end, |(at, _)| at).min(layout.end());
    if layout.overlaps(start, upto) {
        match port.madvise(start, upto - start, advice) {
            Ok(()) => {}
            // The host has advised what there is. The answer for a hole is made below.
            Err(CallError::Errno(e))
                if Errno::from_raw(e) == Errno::ENOMEM && layout.run_end(start, upto) < upto => {}
            Err(CallError::Errno(e)) => return Err(Errno::from_raw(e).into()),
            Err(CallError::Gone) => return Err(Fail::Exit),
        }
        match advice {
            MADV_DONTFORK => layout.change(start, upto, |a| a.dont_fork = true),
            MADV_DOFORK => layout.change(start, upto, |a| a.dont_fork = false),
            MADV_DONTDUMP => layout.change(start, upto, |a| a.dont_dump = true),
            MADV_DODUMP => layout.change(start, upto, |a| a.dont_dump = false),
            _ => {}
        }
    }
    match refused {
        Some((_, errno)) => Err(errno.into()),
        None if layout.run_end(start, upto) < end => Err(Errno::ENOMEM.into()),
        None => Ok(()),
    }
}

impl Layout {
    /// Where the first area of a range begins that refuses this advice, and with which error.
    fn first_that_refuses(&self, start: u64, end: u64, advice: i32) -> Option<(u64, Errno)> {
        let locked =
            matches!(advice, MADV_DONTNEED | MADV_FREE | MADV_COLD | MADV_PAGEOUT | MADV_GUARD_INSTALL);
        let mut at = start;
        while at < end {
            match self.find(at) {
                Some((_, area)) if area.refuses(advice) => return Some((at, Errno::EPERM)),
                Some((_, area)) if locked && area.locked.is_some() => return Some((at, Errno::EINVAL)),
                Some((_, area)) => at = area.end,
                None => at = self.next_start(at)?,
            }
        }
        None
    }
}

/// process_madvise(2)
pub fn process_madvise(
    cx: &mut Cx,
    pidfd: Fd,
    iov: InSlice<Iovec>,
    iovcnt: usize,
    advice: Advice,
    flags: NoFlags,
) -> SysResult {
    if flags.bits() != 0 {
        return Err(Errno::EINVAL.into());
    }
    let parts = crate::vfs::io::read_iovec(cx, iov.addr(), iovcnt)?;
    let process = crate::task::pidfd::process(&*cx.task.files().get(pidfd.raw())?)?;
    let other = process.any_thread().ok_or(Errno::ESRCH)?;
    if !crate::task::access::may_inspect(cx.task, &other) {
        return Err(Errno::EACCES.into());
    }
    let advice = advice.bits();
    let own = other.mm().id == cx.task.mm().id;
    if !own && !matches!(advice, MADV_COLD | MADV_PAGEOUT | MADV_WILLNEED | MADV_COLLAPSE) {
        return Err(Errno::EINVAL.into());
    }
    if !own && !cx.task.creds().capable(cap::SYS_NICE) {
        return Err(Errno::EPERM.into());
    }
    if own {
        cx.port()?;
    }
    let mut done = 0u64;
    for (start, len) in parts {
        let len = len as u64;
        let result = if own {
            advise(cx, start, len, advice)
        } else {
            of_another(&other.mm().layout.lock(), start, len, advice)
        };
        match result {
            Ok(()) => done = done.saturating_add(len),
            Err(fail) if done == 0 => return Err(fail),
            Err(_) => break,
        }
    }
    if !own && done > 0 {
        cx.note_gap("advice for another process is checked and not given", Errno::EINVAL);
    }
    Ok(done)
}

/// What Linux says to advice that asks for nothing but speed.
fn of_another(layout: &Layout, start: u64, len: u64, advice: i32) -> SysResult<()> {
    let end = end_of(start, len)?;
    if advice == MADV_COLLAPSE {
        return Err(Fail::gap(Errno::EINVAL, "MADV_COLLAPSE for another process"));
    }
    match layout.first_that_refuses(start, end, advice) {
        Some((_, errno)) => Err(errno.into()),
        None if layout.run_end(start, end) < end => Err(Errno::ENOMEM.into()),
        None => Ok(()),
    }
}

/// MADV_REMOVE: a hole in the file or shared memory behind a mapping.
fn remove(cx: &mut Cx, start: u64, end: u64) -> SysResult<()> {
    let mm = cx.task.mm();
    let (mut at, mut hole) = (start, false);
    while at < end {
        let (upto, file, fd, offset) = {
            let layout = mm.layout.lock();
            match part(&layout, at, end)? {
                Some(part) => part,
                None => {
                    hole = true;
                    at = layout.next_start(at).unwrap_or(end).min(end);
                    continue;
                }
            }
        };
        match file {
            Some(file) => file.ops.fallocate(PUNCH_HOLE, offset, upto - at)?,
            None => {
                let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(&*fd, flags, offset, upto - at)?;
            }
        }
        at = upto;
    }
    if hole { Err(Errno::ENOMEM.into()) } else { Ok(()) }
}

type Part = (u64, Option<Arc<crate::vfs::file::File>>, Arc<rustix::fd::OwnedFd>, u64);

/// What is mapped at `at`: end of the part, description, descriptor, offset.
fn part(layout: &Layout, at: u64, end: u64) -> SysResult<Option<Part>> {
    let Some((start, area)) = layout.find(at) else { return Ok(None) };
    let Backing::Host { fd, file, offset, .. } = &area.backing else { return Err(Errno::EINVAL.into()) };
    if area.refuses(MADV_REMOVE) {
        return Err(Errno::EPERM.into());
    }
    if area.locked.is_some() {
        return Err(Errno::EINVAL.into());
    }
    if !area.shared || area.prot & PROT_WRITE == 0 && file.as_ref().is_some_and(|f| !f.writable()) {
        return Err(Errno::EACCES.into());
    }
    let offset = offset.saturating_add(at.saturating_sub(start));
    Ok(Some((area.end.min(end), file.clone(), fd.clone(), offset)))
}
