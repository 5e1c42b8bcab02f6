//! The areas of an address space, by address. Records only: the host calls are [`super::Mm`]'s.

use super::area::{Area, Backing};
use std::collections::BTreeMap;
use syscall_table::abi::mmap::PROT_WRITE;

/// Page size.
pub const PAGE: u64 = 4096;
/// Transparent huge page size: big anonymous areas are aligned to it, as Linux does.
const HUGE: u64 = 2 << 20;

/// Addresses of a program's parts: start and end of code, of initialised data, start of the stack, start and end of the heap,
/// of arguments, of environment.
pub type Marks = [u64; 11];

/// When locked memory is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fills {
    /// When it is locked.
    Now,
    /// When it is touched (MLOCK_ONFAULT, MCL_ONFAULT).
    OnFault,
}

/// Areas, break, accounting.
#[derive(Default, Clone)]
pub struct Layout {
    pub(super) areas: BTreeMap<u64, Area>,
    /// Lowest address a mapping may have.
    pub(super) low: u64,
    /// One past the highest.
    pub(super) high: u64,
    /// Areas without a wish are placed below this.
    pub(super) base: u64,
    /// Start of the heap.
    pub(super) brk_start: u64,
    /// End of the heap, not rounded.
    pub(super) brk: u64,
    /// The stack's range.
    pub(super) stack: (u64, u64),
    /// Where the program says that its parts lie.
    pub(super) marks: Marks,
    /// mlockall(MCL_FUTURE): new areas are locked, and filled then.
    pub(super) lock_future: Option<Fills>,
    /// Bytes mapped.
    pub(super) total: u64,
    /// Those of them that count against RLIMIT_DATA.
    pub(super) data: u64,
    /// Bytes of the stack that Linux would not have mapped yet.
    pub(super) ahead: u64,
    /// Bytes of the program's initialised data, which RLIMIT_DATA limits together with the heap.
    pub(super) program_data: u64,
    /// Changes left to tasks that may not have made them yet: at most one for each task.
    pub(super) flights: Vec<super::flight::Flight>,
}

impl Layout {
    /// Whether any area meets the range.
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        self.areas.range(..end).next_back().is_some_and(|(_, area)| area.end > start)
    }

    /// The area with this address, and its start.
    pub fn find(&self, addr: u64) -> Option<(u64, &Area)> {
        let (start, area) = self.areas.range(..=addr).next_back()?;
        (area.end > addr).then_some((*start, area))
    }

    /// End of the mapped run that begins at `start`, at most `end`; `start` itself if it is not mapped.
    pub fn run_end(&self, start: u64, end: u64) -> u64 {
        let mut at = start;
        while at < end {
            match self.find(at) {
                Some((_, area)) => at = area.end,
                None => break,
            }
        }
        at.min(end)
    }

    /// Start of the first area behind an address.
    pub fn next_start(&self, addr: u64) -> Option<u64> {
        self.areas.range(addr..).next().map(|(start, _)| *start)
    }

    /// Whether the range meets a shared mapping of a file that was not opened for writing.
    pub fn read_only(&self, start: u64, end: u64) -> bool {
        let first = self.find(start).map_or(start, |(at, _)| at);
        let mut met = self.areas.range(first..end);
        met.any(|(_, area)| {
            let file = area.shared && area.file().is_some_and(|file| !file.writable());
            file || area.attached.as_ref().is_some_and(|attached| attached.read_only)
        })
    }

    /// Whether the range meets a file of a mount that nothing may be executed from.
    pub fn no_exec(&self, start: u64, end: u64) -> bool {
        let first = self.find(start).map_or(start, |(at, _)| at);
        let mut met = self.areas.range(first..end);
        met.any(|(_, area)| area.file().is_some_and(|file| file.no_exec()))
    }

    /// Whether the range lies in one area of private writable memory that is no file's: whoever may write there finds a
    /// page, and nobody else sees it.
    pub fn plain(&self, addr: u64, len: usize) -> bool {
        let Some(end) = addr.checked_add(len as u64) else { return false };
        self.find(addr).is_some_and(|(_, area)| {
            let private = matches!(area.backing, Backing::Anonymous) && !area.shared;
            end <= area.end && private && area.prot & PROT_WRITE != 0
        })
    }

    /// How many bytes from `addr` on may be written, at most `len`.
    pub fn writable(&self, addr: u64, len: usize) -> usize {
        let end = addr.saturating_add(len as u64);
        let mut at = addr;
        while let Some((_, area)) = self.find(at).filter(|(_, area)| at < end && area.prot & PROT_WRITE != 0)
        {
            at = area.end;
        }
        usize::try_from(at.min(end).saturating_sub(addr)).unwrap_or(len)
    }

    /// All areas by ascending address.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Area)> {
        self.areas.iter().map(|(start, area)| (*start, area))
    }

    /// Number of areas.
    pub fn count(&self) -> usize {
        self.areas.len()
    }

    /// Bytes mapped, the untouched part of the stack aside.
    pub fn total(&self) -> u64 {
        self.total.saturating_sub(self.ahead)
    }

    /// Bytes of private writable memory that is no stack.
    pub fn data(&self) -> u64 {
        self.data
    }

    /// One past the highest address that a mapping may have.
    pub fn end(&self) -> u64 {
        self.high
    }

    /// Where the program's parts lie, the heap as it is now.
    pub fn marks(&self) -> Marks {
        let mut marks = self.marks;
        marks[5] = self.brk_start;
        marks[6] = self.brk;
        marks
    }

    /// Changes them, the heap too.
    pub fn set_marks(&mut self, marks: Marks) {
        self.marks = marks;
        self.brk_start = marks[5];
        self.brk = marks[6];
    }

    /// The stack's range.
    pub fn stack(&self) -> (u64, u64) {
        self.stack
    }

    /// Start and end of the heap.
    pub fn heap(&self) -> (u64, u64) {
        (self.brk_start, self.brk)
    }

    fn split(&mut self, at: u64) {
        let Some((start, area)) = self.find(at) else { return };
        if start == at {
            return;
        }
        let mut upper = area.clone();
        upper.advance(at - start);
        if let Some(lower) = self.areas.get_mut(&start) {
            lower.end = at;
        }
        self.areas.insert(at, upper);
    }

    /// Takes the areas of a range out. The caller drops them when it holds no lock: closing a file may be work.
    #[must_use]
    pub fn remove(&mut self, start: u64, end: u64) -> Vec<(u64, Area)> {
        self.split(start);
        self.split(end);
        let keys: Vec<u64> = self.areas.range(start..end).map(|(key, _)| *key).collect();
        let mut taken = Vec::with_capacity(keys.len());
        for key in keys {
            if let Some(area) = self.areas.remove(&key) {
                let len = area.end.saturating_sub(key);
                self.total = self.total.saturating_sub(len);
                if area.is_data() {
                    self.data = self.data.saturating_sub(len);
                }
                taken.push((key, area));
            }
        }
        taken
    }

    /// Adds an area to a free range, merged with its neighbours where they fit.
    pub fn insert(&mut self, start: u64, area: Area) {
        let len = area.end.saturating_sub(start);
        self.total = self.total.saturating_add(len);
        if area.is_data() {
            self.data = self.data.saturating_add(len);
        }
        self.areas.insert(start, area);
        self.merge(start);
    }

    fn merge(&mut self, start: u64) {
        let Some(area) = self.areas.get(&start) else { return };
        let end = area.end;
        if let Some(next) = self.areas.get(&end)
            && area.continues(start, next)
        {
            let next_end = next.end;
            self.areas.remove(&end);
            if let Some(area) = self.areas.get_mut(&start) {
                area.end = next_end;
            }
        }
        let Some((&before, previous)) = self.areas.range(..start).next_back() else { return };
        if let Some(area) = self.areas.get(&start)
            && previous.end == start
            && previous.continues(before, area)
        {
            let area_end = area.end;
            self.areas.remove(&start);
            if let Some(previous) = self.areas.get_mut(&before) {
                previous.end = area_end;
            }
        }
    }

    /// Changes all areas of a range.
    pub fn change(&mut self, start: u64, end: u64, mut f: impl FnMut(&mut Area)) {
        self.split(start);
        self.split(end);
        let keys: Vec<u64> = self.areas.range(start..end).map(|(key, _)| *key).collect();
        for key in &keys {
            if let Some(area) = self.areas.get_mut(key) {
                let len = area.end.saturating_sub(*key);
                let before = area.is_data();
                f(area);
                match (before, area.is_data()) {
                    (false, true) => self.data = self.data.saturating_add(len),
                    (true, false) => self.data = self.data.saturating_sub(len),
                    _ => {}
                }
            }
        }
        for key in keys {
            self.merge(key);
        }
        // The right neighbour of the last one may fit too.
        self.merge(end);
    }

    /// A free range of `len` bytes in `low..high`, as high as possible.
    fn free_below(&self, len: u64, low: u64, high: u64, align: u64) -> Option<u64> {
        let mut top = high;
        for (start, area) in self.areas.range(..high).rev() {
            if let Some(at) = fit(len, area.end.max(low), top, align) {
                return Some(at);
            }
            top = top.min(area.reach(*start));
            if top <= low {
                return None;
            }
        }
        fit(len, low, top, align)
    }

    /// Chooses an address for `len` bytes.
    pub fn choose(&self, hint: u64, len: u64, below_2g: bool, anonymous: bool) -> Option<u64> {
        let high = if below_2g { self.high.min(1 << 31) } else { self.high };
        let hint = hint & !(PAGE - 1);
        if hint >= self.low
            && let Some(end) = hint.checked_add(len)
            && end <= high
            && !self.overlaps(hint, end)
            && self.areas.range(end..).next().is_none_or(|(start, area)| area.reach(*start) >= end)
        {
            return Some(hint);
        }
        if below_2g {
            let low = self.low.max(0x4000_0000);
            return self
                .free_below(len, low, high, PAGE)
                .or_else(|| self.free_below(len, self.low, low, PAGE));
        }
        let align = if anonymous && len >= HUGE { HUGE } else { PAGE };
        self.free_below(len, self.low, self.base, align)
            .or_else(|| self.free_below(len, self.low, self.base, PAGE))
            .or_else(|| self.free_below(len, self.base, self.high, PAGE))
    }
}

fn fit(len: u64, from: u64, to: u64, align: u64) -> Option<u64> {
    let at = to.checked_sub(len)? & !(align - 1);
    (at >= from).then_some(at)
}

/// Rounds up to whole pages.
pub fn round_up(len: u64) -> Option<u64> {
    Some(len.checked_add(PAGE - 1)? & !(PAGE - 1))
}
