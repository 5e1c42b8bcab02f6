//! Call sites that trap often are rewritten: the site jumps to a gate of the shim, which hands the call over without a
//! signal. Speed only: a site that is left alone, or put back, traps.
//!
//! Three forms are rewritten. `mov eax, NR; syscall`: the first instruction becomes a jump of the same length, and a
//! jump to the `syscall` itself still traps. So it is with `mov eax, NR; lea rsi, [rip + N]; syscall`, which glibc's
//! pthread_create has; the gate sets rsi. `syscall; cmp rax, IMM`: the `syscall` and the start of the comparison become
//! the jump; the gate's tail compares. No code nearby may jump between the two; a task that goes on there by the sentry's
//! will takes the tail instead (the shim's `detour`).
//!
//! The task itself rewrites its code, between two host calls that make the page writable and executable and take that
//! back, while no other task of the process runs guest code: their locks are held, so that none begins to. The second call
//! flushes the page from every processor that uses the address space, and with it what was decoded ahead.
//!
//! Others may run where the jump takes the place of one instruction and both lie in one aligned word of eight bytes, on a
//! processor that promises to fetch either the old or the new word then (AMD64 Architecture Programmer's Manual 2, 7.6.1,
//! "Cross-Modifying Code"). What a thread does first, before its process's other threads rest, could not be rewritten else.

use super::ahead::{Ahead, Id, Known, Text};
use super::ctl::Ctl;
use super::port::TrapPort;
use super::task::{Run, Task};
use crate::{Space, hostcalls};
use lazaret_shim::layout::{self, GATE_SIZE, GATES, GATES_B, GATES_C, SITES, TAILS};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// A site that has trapped this often is rewritten: about what the rewriting costs.
const OFTEN: u32 = 16;
/// Sites that are counted at a time.
const COUNTED: usize = 512;
/// Tries with pauses that double.
const TRIES: u32 = 8;
const PAGE: u64 = 4096;
/// So many sites are put back by one batch, three calls for each, with a call behind them.
pub const PUT_BACK: usize = (layout::BATCH - 1) / 3;

#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    times: u32,
    tries: u32,
    never: bool,
}

/// One rewritten site.
#[derive(Debug, Clone, Copy)]
struct Rewritten {
    /// Where the jump lies.
    at: u64,
    /// What was there.
    was: [u8; 5],
    /// The jump.
    now: [u8; 5],
    /// Protection of its memory.
    prot: i32,
    entry: Entry,
    /// The code is there no more.
    gone: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: u64,
    ret: u64,
    compared: u64,
    after: u64,
}

/// The sites of one process.
pub struct Sites {
    seen: HashMap<u64, Seen>,
    rewritten: Vec<Rewritten>,
    /// What is known of files, and the code of files that is mapped.
    ahead: Ahead,
}

impl Sites {
    /// None yet.
    pub fn new(known: Arc<Known>) -> Sites {
        Sites { seen: HashMap::new(), rewritten: Vec::new(), ahead: Ahead::new(known) }
    }

    /// A call trapped, and `unseen` others there of which nobody heard; true if its site is to be rewritten now. `rip`:
    /// behind the instruction.
    pub fn note(&mut self, rip: u64, unseen: u32) -> bool {
        if self.seen.len() >= COUNTED && !self.seen.contains_key(&rip) {
            self.seen.retain(|_, seen| seen.never);
            if self.seen.len() >= COUNTED / 2 {
                self.seen.clear();
            }
        }
        let seen = self.seen.entry(rip).or_default();
        if seen.times == 0 && seen.tries == 0 {
            self.ahead.saw(rip);
        }
        seen.times = seen.times.saturating_add(unseen).saturating_add(1);
        !seen.never && seen.times >= OFTEN << seen.tries
    }

    /// Code of a file is going to be mapped, of which nothing is there yet: the places in the table of the sites that are to be
    /// rewritten before anything runs, and the pages that they lie in (start and length).
    pub fn prepare(
        &mut self,
        ctl: &Ctl,
        file: &OwnedFd,
        text: Text,
        prot: i32,
    ) -> Option<(usize, usize, (u64, u64))> {
        let start = text.start;
        let room = (SITES as usize * 2 / 3).saturating_sub(self.rewritten.len());
        let chosen = self.ahead.map(file, text, room);
        let first = self.rewritten.len();
        let (mut low, mut high) = (u64::MAX, 0);
        for (behind, shape) in chosen {
            let rip = start.wrapping_add(behind);
            let (at, gate, entry) = shape.place(rip, self.rewritten.len() as u64);
            let Some(now) = jump(at, gate) else { break };
            store(ctl, self.rewritten.len(), &entry);
            self.rewritten.push(Rewritten { at, was: shape.bytes(), now, prot, entry, gone: false });
            (low, high) = (low.min(at & !(PAGE - 1)), high.max((rip + 6) & !(PAGE - 1)));
        }
        let count = self.rewritten.len() - first;
        (count > 0).then(|| (first, count, (low, high + PAGE - low)))
    }

    fn failed(&mut self, rip: u64, never: bool) {
        let seen = self.seen.entry(rip).or_default();
        seen.times = 0;
        seen.tries += 1;
        seen.never |= never || seen.tries >= TRIES;
    }

    /// Whether the bytes from `at` on are a site's, or where one goes on.
    fn holds(&self, at: u64, rip: u64) -> bool {
        let meets = |site: &Rewritten| site.at < at + 5 && at < site.at + 5 || site.entry.ret == rip;
        self.rewritten.iter().any(|site| !site.gone && meets(site))
    }

    /// What a child that is a copy of this process begins with. Its table is this process's as the shim left it: a site that
    /// was not as expected has no entry there.
    pub fn inherit(&self, own: &Ctl, ctl: &Ctl) -> Sites {
        for index in 0..self.rewritten.len() {
            if let Some(site) = own.site(index) {
                let [key, ret, compared, after] =
                    [&site.key, &site.ret, &site.compared, &site.after].map(|word| word.load(Relaxed));
                store(ctl, index, &Entry { key, ret, compared, after });
            }
        }
        Sites { seen: HashMap::new(), rewritten: self.rewritten.clone(), ahead: self.ahead.clone() }
    }

    /// All code is gone, and no task runs any.
    pub fn reset(&mut self, ctl: &Ctl) {
        let none = Entry { key: 0, ret: 0, compared: 0, after: 0 };
        for index in 0..self.rewritten.len() {
            store(ctl, index, &none);
        }
        ctl.head().sites.store(0, Release);
        self.seen.clear();
        self.rewritten.clear();
        self.ahead.reset();
    }

    /// The memory in a range is another's from now on.
    pub fn forget(&mut self, ctl: &Ctl, start: u64, len: u64) {
        let end = start.saturating_add(len);
        self.ahead.forget(start, end);
        if !self.seen.is_empty() {
            self.seen.retain(|rip, _| *rip < start || *rip > end);
        }
        for (index, site) in self.rewritten.iter_mut().enumerate() {
            if !site.gone && site.at < end && site.at + 5 > start {
                site.gone = true;
                if site.entry.ret >= TAILS {
                    site.entry.key = 0;
                    store(ctl, index, &site.entry);
                }
            }
        }
    }

    /// Puts what was there before into bytes that were read from this address, where they are a jump's.
    pub fn originals(&self, addr: u64, buf: &mut [u8]) {
        for site in self.within(addr, buf.len() as u64) {
            let place =
                |i: usize| (site.at + i as u64).checked_sub(addr).and_then(|at| usize::try_from(at).ok());
            let differs = |(i, byte)| place(i).and_then(|at| buf.get(at)).is_some_and(|is| is != byte);
            if site.now.iter().enumerate().any(differs) {
                continue;
            }
            for (i, byte) in site.was.into_iter().enumerate() {
                if let Some(to) = place(i).and_then(|at| buf.get_mut(at)) {
                    *to = byte;
                }
            }
        }
    }

    /// How many sites are in a range.
    pub fn count(&self, start: u64, len: u64) -> usize {
        self.within(start, len).len()
    }

    /// Sites in a range.
    fn within(&self, start: u64, len: u64) -> Vec<Rewritten> {
        let end = start.saturating_add(len);
        let inside = |site: &&Rewritten| !site.gone && site.at < end && site.at + 5 > start;
        self.rewritten.iter().filter(inside).copied().collect()
    }
}

fn store(ctl: &Ctl, index: usize, entry: &Entry) {
    let Some(site) = ctl.site(index) else { return };
    site.key.store(entry.key, Relaxed);
    site.ret.store(entry.ret, Relaxed);
    site.compared.store(entry.compared, Relaxed);
    site.after.store(entry.after, Relaxed);
    let used = &ctl.head().sites;
    if (used.load(Relaxed) as usize) <= index {
        used.store(index as u32 + 1, Release);
    }
}

/// Bytes around a site: from [`BEFORE`] before the `syscall` instruction.
pub const BEFORE: usize = 256;
pub const AROUND: usize = 512;
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// The forms of sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `mov eax, NR; syscall`.
    Number(u32),
    /// `mov eax, NR; lea rsi, [rip + N]; syscall`.
    Loaded(u32, i32),
    /// `syscall; cmp rax, IMM`.
    Compared(i32),
}

impl Shape {
    /// What a site looks like, if it is one that can be rewritten.
    pub fn of(code: &[u8; AROUND]) -> Option<Shape> {
        let at = |from: usize, len: usize| code.get(from..from + len);
        if at(BEFORE, 2)? != SYSCALL {
            return None;
        }
        // A prefix would make it another instruction.
        let whole = |before: u8, nr: u32| {
            u64::from(nr) < layout::KINDS && !(0x40..=0x4f).contains(&before) && before != 0x66
        };
        if let [before, 0xb8, a, b, c, d] = *at(BEFORE - 6, 6)? {
            let nr = u32::from_le_bytes([a, b, c, d]);
            if whole(before, nr) {
                return Some(Shape::Number(nr));
            }
        }
        if let [before, 0xb8, a, b, c, d, 0x48, 0x8d, 0x35, e, f, g, h] = *at(BEFORE - 13, 13)? {
            let nr = u32::from_le_bytes([a, b, c, d]);
            if whole(before, nr) {
                return Some(Shape::Loaded(nr, i32::from_le_bytes([e, f, g, h])));
            }
        }
        let [0x48, 0x3d, a, b, c, d] = *at(BEFORE + 2, 6)? else { return None };
        (!jumps_to(code, BEFORE as i64 + 2)).then(|| Shape::Compared(i32::from_le_bytes([a, b, c, d])))
    }

    /// Bytes from where the jump goes in to behind the `syscall`.
    pub fn span(self) -> u64 {
        match self {
            Shape::Number(_) => 7,
            Shape::Loaded(..) => 14,
            Shape::Compared(_) => 2,
        }
    }

    /// What is where the jump goes in.
    fn bytes(self) -> [u8; 5] {
        match self {
            Shape::Number(nr) | Shape::Loaded(nr, _) => {
                let [a, b, c, d] = nr.to_le_bytes();
                [0xb8, a, b, c, d]
            }
            Shape::Compared(with) => {
                let [a, ..] = with.to_le_bytes();
                [0x0f, 0x05, 0x48, 0x3d, a]
            }
        }
    }

    /// Where the jump goes in, the gate that it goes to, and the entry of the table for the site `index`. `rip`: behind the `syscall`.
    fn place(self, rip: u64, index: u64) -> (u64, u64, Entry) {
        let at = rip.wrapping_sub(self.span());
        let (gates, entry) = match self {
            Shape::Number(nr) => (GATES, Entry { key: nr.into(), ret: rip, compared: 0, after: 0 }),
            Shape::Loaded(nr, by) => {
                let compared = (rip - 2).wrapping_add_signed(by.into());
                (GATES_C, Entry { key: nr.into(), ret: rip, compared, after: 0 })
            }
            Shape::Compared(with) => {
                let ret = TAILS + index * GATE_SIZE;
                (GATES_B, Entry { key: rip, ret, compared: i64::from(with) as u64, after: rip + 6 })
            }
        };
        (at, gates + index * GATE_SIZE, entry)
    }
}

/// Where the jump goes in, and how the table's entry for the site `index` looks.
fn form(code: &[u8; AROUND], rip: u64, index: u64) -> Option<(u64, u64, Entry)> {
    // An address 0 for rsi would look like the first form.
    Some(Shape::of(code)?.place(rip, index)).filter(|(_, gate, entry)| *gate < GATES_C || entry.compared != 0)
}

/// Whether any bytes could be a relative jump to that offset.
fn jumps_to(code: &[u8; AROUND], target: i64) -> bool {
    let near = |i: usize| match code.get(i..i + 2) {
        Some(&[0x70..=0x7f | 0xe0..=0xe3 | 0xeb, by]) => i as i64 + 2 + i64::from(by as i8) == target,
        _ => false,
    };
    let far = |i: usize| match code.get(i..i + 5) {
        Some(&[0xe8 | 0xe9 | 0x80..=0x8f, a, b, c, d]) => {
            i as i64 + 5 + i64::from(i32::from_le_bytes([a, b, c, d])) == target
        }
        _ => false,
    };
    (0..AROUND).any(|i| near(i) || far(i))
}

fn jump(at: u64, to: u64) -> Option<[u8; 5]> {
    let by = i32::try_from(to.wrapping_sub(at + 5) as i64).ok()?;
    let [a, b, c, d] = by.to_le_bytes();
    Some([0xe9, a, b, c, d])
}

impl TrapPort<'_> {
    /// Replaces five bytes in a range of pages whose protection is `prot`; whether it was done, or left to the task.
    pub fn poke(&mut self, pages: (u64, u64), prot: i32, at: u64, bytes: &[u8; 5]) -> bool {
        let [a, b, c, d, e] = *bytes;
        self.poke_if(pages, prot, at, u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]), 0)
    }

    fn poke_if(&mut self, (start, len): (u64, u64), prot: i32, at: u64, bytes: u64, condition: u64) -> bool {
        let all = (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) as u64;
        let batch = [
            [10, start, len, all, 0, 0, 0],
            [layout::POKE, at, bytes, condition, 0, 0, 0],
            [10, start, len, u64::from(prot as u32), 0, 0, 0],
        ];
        if self.defer {
            return self.leave(&batch).is_ok();
        }
        self.calls(&batch).is_ok_and(|results| results == [0; 3])
    }

    /// As [`poke`](Self::poke), with the second five bytes, if the first are there.
    pub fn put_back_at(&mut self, pages: (u64, u64), prot: i32, at: u64, (now, was): (&[u8; 5], &[u8; 5])) {
        let word = |[a, b, c, d, e]: [u8; 5]| u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]);
        self.poke_if(pages, prot, at, word(*was), word(*now) | layout::POKE_IF);
    }

    /// The call that rewrites the known sites of code which is about to be mapped.
    pub(super) fn known_sites(
        &mut self,
        start: u64,
        len: u64,
        file: &Arc<OwnedFd>,
        offset: u64,
    ) -> Option<[u64; 7]> {
        if !self.ahead {
            return None;
        }
        let end = start.checked_add(len).filter(|_| offset.checked_add(len).is_some())?;
        let text = Text { start, end, offset, file: Id::of(file)? };
        let process = self.process();
        let prot = libc::PROT_READ | libc::PROT_EXEC;
        let (first, count, (start, len)) = process.sites.lock().prepare(&process.ctl, file, text, prot)?;
        Some([layout::PATCH, start, len, prot as u64, first as u64, count as u64, 0])
    }
}

/// Rewrites the site of a call that has just trapped, if it can be done. The port is full.
pub fn rewrite(task: &Arc<Task>, port: &mut TrapPort<'_>, rip: u64) {
    let process = port.process().clone();
    let index = process.sites.lock().rewritten.len() as u64;
    let mut code = [0; AROUND];
    let read = rip >= 0x1_0000 && process.read(rip - 2 - BEFORE as u64, &mut code).is_ok();
    let found = if read && index < SITES { form(&code, rip, index) } else { None };
    let Some((at, gate, entry)) = found else { return process.sites.lock().failed(rip, true) };
    // A call that is restarted traps at the `syscall` of a site of the first form, whose gate goes on behind it.
    if process.sites.lock().holds(at, rip) {
        return process.sites.lock().failed(rip, false);
    }
    let Some(bytes) = jump(at, gate) else { return process.sites.lock().failed(rip, true) };
    let Some(from) = usize::try_from(at - (rip - 2 - BEFORE as u64)).ok() else { return };
    let Some(&[a, b, c, d, e]) = code.get(from..from + 5) else { return };
    let was = [a, b, c, d, e];
    let at_once = !(GATES_B..GATES_C).contains(&gate) && at & 7 <= 3 && hostcalls::fetches_whole_words();
    let mut done = false;
    task.sink.code(at, 5, &mut |prot| {
        // Nor is a task added.
        let (others, _all) = process.others(task);
        let mut held = Vec::with_capacity(others.len());
        for other in others.iter().filter(|_| !at_once) {
            match other.try_lock() {
                Some(st) if st.run != Run::Running => held.push(st),
                _ => return,
            }
        }
        {
            let mut sites = process.sites.lock();
            if sites.rewritten.len() as u64 != index {
                return;
            }
            sites.rewritten.push(Rewritten { at, was, now: bytes, prot, entry, gone: false });
        }
        store(&process.ctl, index as usize, &entry);
        done = port.poke(pages(at), prot, at, &bytes);
        if !done {
            process.sites.lock().forget(&process.ctl, at, 1);
        }
        drop(held);
    });
    if !done {
        process.sites.lock().failed(rip, false);
    }
}

/// The pages that five bytes lie in: start and length.
fn pages(at: u64) -> (u64, u64) {
    let start = at & !(PAGE - 1);
    (start, ((at + 4) & !(PAGE - 1)) + PAGE - start)
}

/// Puts the code of a range back before something is done to it that a jump in it would not bear. The caller holds
/// what keeps the range from changing.
pub fn restore(port: &mut TrapPort<'_>, start: u64, len: u64) {
    let process = port.process().clone();
    let sites = process.sites.lock().within(start, len);
    for site in sites {
        port.put_back_at(pages(site.at), site.prot, site.at, (&site.now, &site.was));
        process.sites.lock().forget(&process.ctl, site.at, 1);
    }
}

/// Puts all code back, unless other tasks of the process run.
pub fn put_back(task: &Arc<Task>, port: &mut TrapPort<'_>) -> bool {
    let process = port.process().clone();
    let sites = process.sites.lock().within(0, u64::MAX);
    if sites.is_empty() {
        return true;
    }
    // Nor is a task added.
    let (others, _all) = process.others(task);
    let mut held = Vec::with_capacity(others.len());
    for other in &others {
        match other.try_lock() {
            Some(st) if st.run != Run::Running => held.push(st),
            _ => return false,
        }
    }
    for site in sites {
        port.put_back_at(pages(site.at), site.prot, site.at, (&site.now, &site.was));
        process.sites.lock().forget(&process.ctl, site.at, 1);
    }
    drop(held);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(before: &[u8], after: &[u8]) -> [u8; AROUND] {
        let mut code = [0x90; AROUND];
        code[BEFORE - before.len()..BEFORE].copy_from_slice(before);
        code[BEFORE..BEFORE + 2].copy_from_slice(&SYSCALL);
        code[BEFORE + 2..BEFORE + 2 + after.len()].copy_from_slice(after);
        code
    }

    #[test]
    fn forms() {
        let (at, gate, entry) = form(&around(&[0x90, 0xb8, 39, 0, 0, 0], &[0xc3]), 0x1000, 3).unwrap();
        assert_eq!((at, gate, entry.key, entry.ret), (0x1000 - 7, GATES + 96, 39, 0x1000));
        // lea rsi, [rip - 16]
        let third = around(&[0x90, 0xb8, 14, 0, 0, 0, 0x48, 0x8d, 0x35, 0xf0, 0xff, 0xff, 0xff], &[0xc3]);
        let (at, gate, entry) = form(&third, 0x1000, 3).unwrap();
        assert_eq!((at, gate, entry.key, entry.ret), (0x1000 - 14, GATES_C + 96, 14, 0x1000));
        assert_eq!(entry.compared, 0x1000 - 2 - 16);
        // mov r8d, 39
        assert!(form(&around(&[0x41, 0xb8, 39, 0, 0, 0], &[0xc3]), 0x1000, 3).is_none());
        let compare = [0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff, 0x77, 0x01];
        let (at, gate, entry) = form(&around(&[0x31, 0xc0], &compare), 0x1000, 3).unwrap();
        assert_eq!((at, gate), (0x1000 - 2, GATES_B + 96));
        assert_eq!((entry.key, entry.ret, entry.after), (0x1000, TAILS + 96, 0x1006));
        assert_eq!(entry.compared as i64, -4096);
        // A jump to the comparison, over the call.
        assert!(form(&around(&[0x74, 0x04, 0x31, 0xc0], &compare), 0x1000, 3).is_none());
    }

    #[test]
    fn reach() {
        assert_eq!(jump(0x1000, 0x1005), Some([0xe9, 0, 0, 0, 0]));
        assert_eq!(jump(0x40_0000, GATES), None);
    }
}
