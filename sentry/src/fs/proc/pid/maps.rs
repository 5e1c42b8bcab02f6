//! maps, smaps, smaps_rollup.

use crate::fail::SysResult;
use crate::memory::areas;
use crate::mm::area::Area;
use crate::task::Task;
use std::fmt::Write;

/// A guess at what a space has in memory, for when nobody tells: all that is accessible, up to [`AREA_MOST`] of an area.
#[derive(Default)]
pub(super) struct Sizes {
    pub(super) anonymous: u64,
    pub(super) file: u64,
    pub(super) shared: u64,
}

/// Larger areas are rarely touched as a whole.
const AREA_MOST: u64 = 1 << 20;

impl Sizes {
    fn of(start: u64, area: &Area) -> Sizes {
        let size = area.end.saturating_sub(start).min(AREA_MOST);
        match (area.prot, area.shared, area.file()) {
            (0, ..) => Sizes::default(),
            (_, true, _) => Sizes { shared: size, ..Sizes::default() },
            (_, false, Some(_)) => Sizes { file: size, ..Sizes::default() },
            (_, false, None) => Sizes { anonymous: size, ..Sizes::default() },
        }
    }

    fn add(&mut self, other: &Sizes) {
        self.anonymous = self.anonymous.saturating_add(other.anonymous);
        self.file = self.file.saturating_add(other.file);
        self.shared = self.shared.saturating_add(other.shared);
    }

    /// All together.
    pub(super) fn resident(&self) -> u64 {
        self.anonymous.saturating_add(self.file).saturating_add(self.shared)
    }

    /// Of a whole space.
    pub(super) fn of_task(task: &Task) -> Sizes {
        let mut all = Sizes::default();
        task.mm().layout.lock().iter().for_each(|(start, area)| all.add(&Sizes::of(start, area)));
        all
    }

    /// As the host would tell it.
    fn told(&self) -> areas::Sizes {
        let kib = |bytes: u64| bytes / 1024;
        let (all, anonymous) = (kib(self.resident()), kib(self.anonymous));
        let (file, shared) = (kib(self.file), kib(self.shared));
        [all, all, anonymous, 0, shared, file, anonymous, all, anonymous, 0, 0, 0, 0, 0, 0]
    }
}

/// What the host says of the areas of a space, or guesses.
struct Seen(Option<Vec<areas::Row>>);

impl Seen {
    fn of(task: &Task) -> Seen {
        Seen(crate::memory::look::areas(task.mm().space.host_pid()))
    }

    fn area(&self, start: u64, area: &Area) -> areas::Sizes {
        match &self.0 {
            Some(rows) => areas::within(rows, start, area.end),
            None => Sizes::of(start, area).told(),
        }
    }
}

/// The lines about memory, of which the host tells in KiB. `parts`: of what the pages are, in a rollup.
fn lines(sizes: &areas::Sizes, parts: Option<[u64; 3]>, locked: u64) -> String {
    let [rss, pss, pss_dirty, rest @ .., swap, swap_pss] = sizes;
    let mut out = String::new();
    let mut line = |name: &str, value: u64| {
        let _ = writeln!(out, "{:<16}{value:8} kB", format!("{name}:"));
    };
    line("Rss", *rss);
    line("Pss", *pss);
    line("Pss_Dirty", *pss_dirty);
    if let Some([anonymous, file, shared]) = parts {
        line("Pss_Anon", anonymous);
        line("Pss_File", file);
        line("Pss_Shmem", shared);
    }
    for (name, value) in areas::FIELDS.iter().skip(3).zip(rest) {
        line(name, *value);
        if *name == "Anonymous" {
            line("KSM", 0);
        }
    }
    line("Shared_Hugetlb", 0);
    line("Private_Hugetlb", 0);
    line("Swap", *swap);
    line("SwapPss", *swap_pss);
    line("Locked", locked / 1024);
    out
}

fn flags(area: &Area) -> String {
    let mut out = String::from("VmFlags: ");
    for (bit, name) in [(1, "rd "), (2, "wr "), (4, "ex ")] {
        if area.prot & bit != 0 {
            out.push_str(name);
        }
    }
    if area.shared {
        out.push_str("sh ");
    }
    out.push_str("mr mw me ");
    let accounted = !area.shared && area.prot & 2 != 0 || area.shared && area.file().is_none();
    for (has, name) in [
        (area.shared, "ms "),
        (area.grows, "gd "),
        (area.locked.is_some(), "lo "),
        (area.dont_fork, "dc "),
        (accounted, "ac "),
        (area.dont_dump, "dd "),
        (area.sealed, "sl "),
    ] {
        if has {
            out.push_str(name);
        }
    }
    out
}

/// maps; with `sizes` smaps.
pub(super) fn maps(asker: &Task, task: &Task, sizes: bool) -> SysResult<Vec<u8>> {
    let root = asker.kernel.vfs.root_of(asker)?;
    let seen = if sizes { Seen::of(task) } else { Seen(None) };
    let mut out = Vec::new();
    for (start, area) in task.mm().areas() {
        let bit = |bit: i32, letter: char| if area.prot & bit != 0 { letter } else { '-' };
        let shared = if area.shared { 's' } else { 'p' };
        let attr = area.file().and_then(|f| f.ops.attr().ok()).unwrap_or_default();
        let head = format!(
            "{start:08x}-{:08x} {}{}{}{shared} {:08x} {:02x}:{:02x} {} ",
            area.end,
            bit(1, 'r'),
            bit(2, 'w'),
            bit(4, 'x'),
            area.offset(),
            syscall_table::abi::stat::major(attr.dev),
            syscall_table::abi::stat::minor(attr.dev),
            attr.ino
        );
        let name = match area.file() {
            Some(file) => match &file.path {
                Some(path) => path.display(Some(&root)),
                None => file.ops.describe().into_bytes(),
            },
            None => match &area.attached {
                Some(attached) => format!("/SYSV{:08x} (deleted)", attached.segment().key()).into_bytes(),
                None if !area.name.is_empty() => area.name.as_bytes().to_vec(),
                None => match &area.label {
                    None => Vec::new(),
                    Some(label) if area.shared => [b"[anon_shmem:", &label[..], b"]"].concat(),
                    Some(label) => [b"[anon:", &label[..], b"]"].concat(),
                },
            },
        };
        out.extend_from_slice(head.as_bytes());
        if !name.is_empty() {
            // Names begin in column 73.
            out.extend(std::iter::repeat_n(b' ', 73usize.saturating_sub(head.len())));
            out.extend_from_slice(&name);
        }
        out.push(b'\n');
        if sizes {
            let kib = area.end.saturating_sub(start) / 1024;
            let locked = if area.locked.is_some() { kib.saturating_mul(1024) } else { 0 };
            let text = format!(
                "{:<16}{kib:8} kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n{}THPeligible:           0\n{}\n",
                "Size:",
                lines(&seen.area(start, &area), None, locked),
                flags(&area)
            );
            out.extend_from_slice(text.as_bytes());
        }
    }
    // Behind the areas: the host's, from which clocks are read.
    if let Some((start, end)) = task.mm().vdso() {
        let head = format!("{start:08x}-{end:08x} r-xp 00000000 00:00 0 ");
        out.extend_from_slice(format!("{head:<73}[vdso]\n").as_bytes());
        if sizes {
            let kib = end.saturating_sub(start) / 1024;
            let text = format!(
                "{:<16}{kib:8} kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n{}THPeligible:           0\nVmFlags: rd ex mr mw me de \n",
                "Size:",
                lines(&[0; areas::FIELDS.len()], None, 0),
            );
            out.extend_from_slice(text.as_bytes());
        }
    }
    Ok(out)
}

/// smaps_rollup.
pub(super) fn rollup(task: &Task) -> Vec<u8> {
    let list = task.mm().areas();
    let seen = Seen::of(task);
    let mut all = areas::Sizes::default();
    let mut parts = [0u64; 3];
    let mut locked = 0u64;
    for (start, area) in &list {
        let sizes = seen.area(*start, area);
        for (sum, kib) in all.iter_mut().zip(sizes) {
            *sum = sum.saturating_add(kib);
        }
        let part = match (area.file().is_some(), area.shared) {
            (false, false) => 0,
            (true, false) => 1,
            (_, true) => 2,
        };
        if let Some(part) = parts.get_mut(part) {
            *part = part.saturating_add(sizes[1]);
        }
        if area.locked.is_some() {
            locked = locked.saturating_add(area.end.saturating_sub(*start));
        }
    }
    let first = list.first().map_or(0, |(start, _)| *start);
    let last = list.last().map_or(0, |(_, area)| area.end);
    let head = format!("{first:08x}-{last:08x} ---p 00000000 00:00 0 ");
    format!("{head:<73}[rollup]\n{}", lines(&all, Some(parts), locked)).into_bytes()
}
