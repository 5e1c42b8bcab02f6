//! madvise(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::mm::area::Backing;
use crate::mm::{Layout, PAGE, round_up};
use platform::CallError;
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// fallocate(2) modes: a hole, the size stays.
const PUNCH_HOLE: i32 = 0x3;

/// madvise(2)
pub fn madvise(cx: &mut Cx, addr: Addr, length: usize, advice: Advice) -> SysResult {
    let advice = advice.bits();
    let known = u32::try_from(advice).is_ok_and(platform::guestfilter::is_advice);
    if !known && advice != MADV_REMOVE {
        return match advice {
            MADV_HWPOISON | MADV_SOFT_OFFLINE => Err(Fail::gap(Errno::EPERM, format!("advice {advice}"))),
            MADV_MERGEABLE | MADV_UNMERGEABLE => Err(Fail::gap(Errno::EINVAL, format!("advice {advice}"))),
            _ => Err(Errno::EINVAL.into()),
        };
    }
    let start = addr.addr();
    let len = round_up(length as u64).ok_or(Errno::EINVAL)?;
    if start & (PAGE - 1) != 0 {
        return Err(Errno::EINVAL.into());
    }
    if len == 0 {
        return Ok(0);
    }
    let end = start.checked_add(len).ok_or(Errno::EINVAL)?;
    if advice == MADV_REMOVE {
        return remove(cx, start, end);
    }
    // One such call fills memory faster than anybody could look.
    if matches!(advice, MADV_POPULATE_READ | MADV_POPULATE_WRITE) && !crate::memory::room_for(len) {
        return Err(Errno::ENOMEM.into());
    }
    let mm = cx.task.mm();
    let port = cx.memory_port(false)?;
    let mut layout = mm.layout.lock();
    // Linux advises every mapped part and answers ENOMEM if there was a hole.
    let mut hole = false;
    let mut at = start;
    while at < end {
        let mut upto = layout.run_end(at, end);
        if upto == at {
            hole = true;
            at = layout.next_start(at).unwrap_or(end).min(end);
            continue;
        }
        if locked_matters(advice)
            && let Some(locked) = layout.first_locked(at, upto)
        {
            // Locked areas are refused where they begin.
            if locked <= at {
                return Err(Errno::EINVAL.into());
            }
            upto = locked;
        }
        match port.madvise(at, upto - at, advice) {
            Ok(()) => {}
            Err(CallError::Errno(e)) => return Err(Errno::from_raw(e).into()),
            Err(CallError::Gone) => return Err(Fail::Exit),
        }
        match advice {
            MADV_DONTFORK => layout.change(at, upto, |a| a.dont_fork = true),
            MADV_DOFORK => layout.change(at, upto, |a| a.dont_fork = false),
            MADV_DONTDUMP => layout.change(at, upto, |a| a.dont_dump = true),
            MADV_DODUMP => layout.change(at, upto, |a| a.dont_dump = false),
            _ => {}
        }
        at = upto;
    }
    if hole { Err(Errno::ENOMEM.into()) } else { Ok(0) }
}

/// Advice that Linux refuses for locked memory. The host knows of no locks.
fn locked_matters(advice: i32) -> bool {
    matches!(advice, MADV_DONTNEED | MADV_FREE | MADV_COLD | MADV_PAGEOUT | MADV_GUARD_INSTALL)
}

/// MADV_REMOVE: a hole in the file or shared memory behind a mapping.
fn remove(cx: &mut Cx, start: u64, end: u64) -> SysResult {
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
    if hole { Err(Errno::ENOMEM.into()) } else { Ok(0) }
}

type Part = (u64, Option<Arc<crate::vfs::file::File>>, Arc<rustix::fd::OwnedFd>, u64);

/// What is mapped at `at`: end of the part, description, descriptor, offset.
fn part(layout: &Layout, at: u64, end: u64) -> SysResult<Option<Part>> {
    let Some((start, area)) = layout.find(at) else { return Ok(None) };
    let Backing::Host { fd, file, offset, .. } = &area.backing else { return Err(Errno::EINVAL.into()) };
    if area.locked {
        return Err(Errno::EINVAL.into());
    }
    if !area.shared || area.prot & PROT_WRITE == 0 && file.as_ref().is_some_and(|f| !f.writable()) {
        return Err(Errno::EACCES.into());
    }
    let offset = offset.saturating_add(at.saturating_sub(start));
    Ok(Some((area.end.min(end), file.clone(), fd.clone(), offset)))
}
