//! maps, smaps, smaps_rollup.

use crate::fail::SysResult;
use crate::mm::area::Area;
use crate::task::Task;
use std::fmt::Write;

/// What is shown of an area's pages. The host tells the sentry nothing of single areas: all that is accessible counts
/// as resident, up to [`AREA_MOST`].
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

    fn lines(&self, locked: u64, rollup: bool) -> String {
        let kib = |bytes: u64| bytes / 1024;
        let (rss, anonymous) = (kib(self.resident()), kib(self.anonymous));
        let (file, shared) = (kib(self.file), kib(self.shared));
        let mut out = String::new();
        let mut line = |name: &str, value: u64| {
            let _ = writeln!(out, "{:<16}{value:8} kB", format!("{name}:"));
        };
        line("Rss", rss);
        line("Pss", rss);
        line("Pss_Dirty", anonymous);
        if rollup {
            line("Pss_Anon", anonymous);
            line("Pss_File", file);
            line("Pss_Shmem", shared);
        }
        line("Shared_Clean", 0);
        line("Shared_Dirty", shared);
        line("Private_Clean", file);
        line("Private_Dirty", anonymous);
        line("Referenced", rss);
        line("Anonymous", anonymous);
        for name in ["KSM", "LazyFree", "AnonHugePages", "ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb"]
        {
            line(name, 0);
        }
        for name in ["Private_Hugetlb", "Swap", "SwapPss"] {
            line(name, 0);
        }
        line("Locked", kib(locked));
        out
    }
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
    for (has, name) in [
        (area.name == "[stack]", "gd "),
        (area.dont_fork, "dc "),
        (area.dont_dump, "dd "),
        (area.locked, "lo "),
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
            let locked = if area.locked { kib.saturating_mul(1024) } else { 0 };
            let text = format!(
                "{:<16}{kib:8} kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n{}THPeligible:           0\n{}\n",
                "Size:",
                Sizes::of(start, &area).lines(locked, false),
                flags(&area)
            );
            out.extend_from_slice(text.as_bytes());
        }
    }
    Ok(out)
}

/// smaps_rollup.
pub(super) fn rollup(task: &Task) -> Vec<u8> {
    let areas = task.mm().areas();
    let mut all = Sizes::default();
    let mut locked = 0u64;
    for (start, area) in &areas {
        all.add(&Sizes::of(*start, area));
        if area.locked {
            locked = locked.saturating_add(area.end.saturating_sub(*start));
        }
    }
    if let Some(told) = crate::memory::look::figures(task.mm().space.host_pid()) {
        all = Sizes { anonymous: told.anon, file: told.file, shared: told.shmem };
    }
    let first = areas.first().map_or(0, |(start, _)| *start);
    let last = areas.last().map_or(0, |(_, area)| area.end);
    let head = format!("{first:08x}-{last:08x} ---p 00000000 00:00 0 ");
    format!("{head:<73}[rollup]\n{}", all.lines(locked, true)).into_bytes()
}
