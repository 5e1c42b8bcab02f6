//! How much of an address space a process may have (RLIMIT_AS, RLIMIT_DATA, RLIMIT_STACK), and areas that grow down.
//!
//! As in Linux, bytes mapped are counted, whether they are touched or not.

use super::area::Area;
use super::{Layout, Mm, PAGE};
use crate::fail::SysResult;
use crate::task::{Process, Task};
use platform::{Exception, Port};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use syscall_table::abi::getrlimit::*;
use syscall_table::abi::sigaction::SIGSEGV;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// What an area that grows down keeps between itself and the next (stack_guard_gap: 256 pages).
pub(super) const GUARD_GAP: u64 = 256 * PAGE;
/// The stack grows by so much at once: a fault costs more than the address space.
const STEP: u64 = 256 << 10;
/// What Linux maps of a new stack beyond its contents (setup_arg_pages).
const FRESH_STACK: u64 = 132 << 10;
/// si_code of a fault where nothing is mapped.
const SEGV_MAPERR: i32 = 1;

/// Soft limits of the process whose task changes the space just now, in bytes.
pub struct Room {
    space: AtomicU64,
    data: AtomicU64,
    /// The hard limit.
    data_most: AtomicU64,
}

impl Default for Room {
    fn default() -> Self {
        let none = || AtomicU64::new(RLIM_INFINITY);
        Room { space: none(), data: none(), data_most: none() }
    }
}

fn pages(limit: u64) -> u64 {
    if limit == RLIM_INFINITY { limit } else { limit & !(PAGE - 1) }
}

impl Layout {
    /// Whether `more` bytes fit (may_expand_vm); `data`: they count against RLIMIT_DATA.
    fn fits(&self, room: &Room, more: u64, data: bool) -> bool {
        if self.total().saturating_add(more) > room.space.load(Relaxed) {
            return false;
        }
        let (wanted, limit) = (self.data.saturating_add(more), room.data.load(Relaxed));
        // A soft limit of 0 leaves the hard one, for valgrind's sake.
        !data || wanted <= limit || limit == 0 && wanted <= room.data_most.load(Relaxed)
    }

    /// Bytes mapped in a range.
    fn mapped(&self, start: u64, end: u64) -> u64 {
        let first = self.find(start).map_or(start, |(at, _)| at);
        let part = |(at, area): (&u64, &Area)| area.end.min(end).saturating_sub((*at).max(start));
        self.areas.range(first..end).map(part).fold(0, u64::saturating_add)
    }
}

impl Mm {
    /// Takes the limits of the process that is about to change the space: several may share it.
    pub fn set_room(&self, process: &Process) {
        let (space, data) = {
            let limits = process.limits.lock();
            (limits.soft(RLIMIT_AS), limits.get(RLIMIT_DATA))
        };
        self.room.space.store(pages(space), Relaxed);
        self.room.data.store(pages(data.rlim_cur), Relaxed);
        self.room.data_most.store(pages(data.rlim_max), Relaxed);
    }

    /// Whether a new area may be made in a range, over what is there.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn may_map(&self, layout: &Layout, start: u64, end: u64, data: bool) -> SysResult<()> {
        let len = end.saturating_sub(start);
        if layout.fits(&self.room, len, data) {
            return Ok(());
        }
        let more = len.saturating_sub(layout.mapped(start, end));
        if layout.fits(&self.room, more, data) { Ok(()) } else { Err(Errno::ENOMEM.into()) }
    }

    /// Whether an area may become longer.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn may_grow(&self, layout: &Layout, area: &Area, more: u64) -> SysResult<()> {
        let accounted = !area.shared && area.prot & PROT_WRITE != 0;
        let fits = layout.fits(&self.room, more, area.is_data())
            && !(accounted && crate::memory::obviously_too_much(more));
        if fits { Ok(()) } else { Err(Errno::ENOMEM.into()) }
    }

    /// Whether a range may be made writable: what becomes data by that is counted.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn may_write(&self, layout: &Layout, start: u64, end: u64) -> SysResult<()> {
        let first = layout.find(start).map_or(start, |(at, _)| at);
        let mut more = 0u64;
        for (at, area) in layout.areas.range(first..end) {
            if !area.is_data() && !area.shared && !area.grows {
                more = more.saturating_add(area.end.min(end).saturating_sub((*at).max(start)));
            }
        }
        let wanted = layout.data.saturating_add(more);
        let limit = self.room.data.load(Relaxed);
        let most = if limit == 0 { self.room.data_most.load(Relaxed) } else { limit };
        if more > 0 && wanted > most { Err(Errno::ENOMEM.into()) } else { Ok(()) }
    }

    /// Whether the heap may end at `wish`.
    pub(super) fn may_brk(&self, layout: &Layout, wish: u64, more: u64) -> bool {
        let heap = wish.saturating_sub(layout.brk_start).saturating_add(layout.program_data);
        heap <= self.room.data.load(Relaxed)
            && layout.fits(&self.room, more, true)
            && !crate::memory::obviously_too_much(more)
    }

    /// Notes how much initialised data a program has.
    pub fn set_program_data(&self, len: u64) {
        self.layout.lock().program_data = len;
    }

    /// Notes what of the stack's range is mapped ahead of its use, when `used` bytes of it are in use.
    pub fn set_stack_used(&self, used: u64) {
        let mut layout = self.layout.lock();
        let len = layout.stack.1.saturating_sub(layout.stack.0);
        layout.ahead = len.saturating_sub(used.saturating_add(FRESH_STACK));
    }
}

/// Lets an area that grows down reach a fault below it; true if the task can go on (expand_stack in Linux). A fault of the
/// sentry's own, on the way to a buffer of a call, makes nothing grow.
pub(crate) fn grow(task: &Arc<Task>, port: &mut dyn Port, exception: &Exception) -> bool {
    if exception.signo != SIGSEGV || exception.code != SEGV_MAPERR {
        return false;
    }
    let mm = task.mm();
    let page = exception.addr & !(PAGE - 1);
    mm.set_room(&task.process);
    let stack_limit = task.process.limit(RLIMIT_STACK);
    let Ok((mut layout, ..)) = mm.quiet(&*port, |_| Ok((0, u64::MAX))) else { return false };
    if page < layout.low || layout.find(page).is_some() {
        return false;
    }
    let Some((&start, area)) = layout.areas.range(page..).next() else { return false };
    if !area.grows || area.end.saturating_sub(page) > stack_limit {
        return false;
    }
    let below = layout.areas.range(..page).next_back().map(|(_, below)| below);
    let floor = match below {
        Some(below) if !below.grows && below.prot != PROT_NONE => below.end.saturating_add(GUARD_GAP),
        Some(below) => below.end,
        None => layout.low,
    };
    if page < floor {
        return false;
    }
    let mut from = page;
    if area.name == "[stack]" {
        from = page.saturating_sub(STEP).max(floor).max(area.end.saturating_sub(pages(stack_limit)));
        from = from.min(page);
    }
    let grown = Area { end: start, ..area.clone() };
    if mm.may_grow(&layout, &grown, start.saturating_sub(from)).is_err() {
        return false;
    }
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if port.mmap(from, start.saturating_sub(from), grown.prot, flags, None).is_err() {
        return false;
    }
    if grown.name == "[stack]" {
        layout.stack.0 = from;
    }
    layout.insert(from, grown);
    true
}
