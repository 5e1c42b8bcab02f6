//! What is known of files' call sites: what trapped in one image is rewritten ([`super::patch`]) when the next one maps the
//! file, before anything runs there.
//!
//! A site is known by the file, as the host tells it (device, inode, length, times), and its place in it. What it looks like is
//! read from the file and not from the memory of the process in which it trapped, which may have changed that; nor is a trap
//! alone believed: instructions that are decoded from different places before it must all meet at the site. Otherwise a process
//! could have bytes changed in the code of others, which never execute them as it did. The shim compares the bytes once more.
//!
//! Each page that is written to is a page copied, so a page is left alone unless it trapped about once in each image of the
//! same program, or of all programs if that one is new.

use super::patch::{AROUND, BEFORE, Shape};
use iced_x86::{Decoder, DecoderOptions};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Files and programs that are remembered.
const FILES: usize = 256;
/// Sites of each.
const SITES: usize = 96;
/// Mappings of one process in which sites are learnt.
const MAPPED: usize = 64;
/// A site counts as one that traps in each image by so much.
const SURE: u32 = 100;
/// A page is worth its copy from so much on.
const WORTH: u32 = 75;
/// Images after which what was seen counts half.
const FADE: u32 = 64;
const PAGE: u64 = 4096;

/// A file as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Id {
    dev: u64,
    ino: u64,
    len: i64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl Id {
    /// That of an open file.
    pub fn of(file: &OwnedFd) -> Option<Id> {
        let stat = rustix::fs::fstat(file).ok()?;
        Some(Id {
            dev: stat.st_dev,
            ino: stat.st_ino,
            len: stat.st_size,
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
        })
    }
}

/// Code of a file that is mapped.
#[derive(Debug, Clone)]
pub struct Text {
    /// Where it begins ...
    pub start: u64,
    /// ... and ends.
    pub end: u64,
    /// Where it lies in the file.
    pub offset: u64,
    /// The file.
    pub file: Id,
}

/// A place where calls trapped.
#[derive(Debug, Clone, Copy)]
struct Spot {
    /// Where in the file it ends: behind the `syscall`.
    behind: u64,
    /// What it looks like, once somebody wanted to know; `None`: it is none that can be rewritten.
    shape: Option<Option<Shape>>,
    /// Images that trapped there.
    seen: u32,
    /// Images that did not, as far as they could have.
    missed: u32,
}

impl Spot {
    fn likely(&self) -> u32 {
        match self.shape {
            Some(None) => 0,
            _ => self.seen.saturating_mul(SURE) / self.seen.saturating_add(self.missed).max(1),
        }
    }
}

/// What is known of a file, in one program or in all.
#[derive(Debug, Default)]
struct Learnt {
    images: u32,
    /// When it was last mapped.
    used: u64,
    spots: Vec<Spot>,
}

impl Learnt {
    /// Places in the part that are worth it, up to `room`.
    fn chosen(&self, from: u64, to: u64, room: usize) -> Vec<Spot> {
        let mut pages: HashMap<u64, u32> = HashMap::new();
        let inside = || self.spots.iter().filter(|spot| spot.behind > from + 16 && spot.behind + 8 <= to);
        for spot in inside() {
            *pages.entry(spot.behind / PAGE).or_default() += spot.likely();
        }
        let worth = |spot: &&Spot| pages.get(&(spot.behind / PAGE)).is_some_and(|sum| *sum >= WORTH);
        inside().filter(worth).take(room).copied().collect()
    }

    /// Another image was made, with these sites rewritten.
    fn count(&mut self, now: u64, chosen: &[(u64, Shape)]) {
        self.used = now;
        self.images = self.images.saturating_add(1);
        for spot in &mut self.spots {
            if chosen.iter().all(|(behind, _)| *behind != spot.behind) {
                spot.missed = spot.missed.saturating_add(1);
            }
            if spot.seen.saturating_add(spot.missed) > FADE {
                (spot.seen, spot.missed) = (spot.seen.div_ceil(2), spot.missed / 2);
            }
        }
    }

    /// A call trapped.
    fn saw(&mut self, behind: u64) {
        if let Some(spot) = self.spots.iter_mut().find(|spot| spot.behind == behind) {
            spot.missed = spot.missed.saturating_sub(1);
            spot.seen = spot.seen.saturating_add(1);
        } else if self.spots.len() < SITES {
            let missed = self.images.saturating_sub(1).min(FADE / 2);
            self.spots.push(Spot { behind, shape: None, seen: 1, missed });
        }
    }
}

#[derive(Default)]
struct Files {
    /// By file and program; all programs are the default one.
    learnt: HashMap<(Id, Id), Learnt>,
    clock: u64,
}

/// What is known of files, by all processes.
#[derive(Default)]
pub struct Known {
    files: Mutex<Files>,
}

impl Known {
    /// The file is mapped once more: which sites are to be rewritten.
    fn map(&self, file: &OwnedFd, text: &Text, program: Id, room: usize) -> Vec<(u64, Shape)> {
        let (from, to) = (text.offset, text.offset + (text.end - text.start));
        let keys = [(text.file, program), (text.file, Id::default())];
        let mut files = self.files.lock();
        files.clock += 1;
        let now = files.clock;
        for key in keys {
            files.make_room(key);
            files.learnt.entry(key).or_default();
        }
        let known =
            keys.into_iter().find(|key| files.learnt.get(key).is_some_and(|learnt| learnt.images > 0));
        let choose = |files: &Files| {
            let learnt = known.and_then(|known| files.learnt.get(&known));
            learnt.map(|learnt| learnt.chosen(from, to, room)).unwrap_or_default()
        };
        let mut chosen = choose(&files);
        if chosen.iter().any(|spot| spot.shape.is_none()) {
            drop(files);
            let shapes: Vec<_> = chosen
                .iter()
                .map(|spot| (spot.behind, spot.shape.unwrap_or_else(|| site(file, spot.behind))))
                .collect();
            files = self.files.lock();
            for key in &keys {
                let spots = files.learnt.get_mut(key).map(|learnt| learnt.spots.iter_mut());
                for spot in spots.into_iter().flatten() {
                    let found = shapes.iter().find(|(behind, _)| *behind == spot.behind);
                    spot.shape = found.map(|(_, shape)| *shape).or(spot.shape);
                }
            }
            chosen = choose(&files);
        }
        let chosen: Vec<_> =
            chosen.iter().filter_map(|spot| Some((spot.behind, spot.shape.flatten()?))).collect();
        for key in keys {
            if let Some(learnt) = files.learnt.get_mut(&key) {
                learnt.count(now, &chosen);
            }
        }
        chosen
    }

    /// A call trapped at this place for the first time in an image.
    fn saw(&self, text: &Text, program: Id, behind: u64) {
        let mut files = self.files.lock();
        for key in [(text.file, program), (text.file, Id::default())] {
            if let Some(learnt) = files.learnt.get_mut(&key) {
                learnt.saw(behind);
            }
        }
    }
}

impl Files {
    /// Makes room for another one.
    fn make_room(&mut self, key: (Id, Id)) {
        if self.learnt.len() < FILES || self.learnt.contains_key(&key) {
            return;
        }
        let oldest = self.learnt.iter().min_by_key(|(_, learnt)| learnt.used).map(|(key, _)| *key);
        oldest.map(|key| self.learnt.remove(&key));
    }
}

/// The site in a file that ends there, if it is one that can be rewritten.
fn site(file: &OwnedFd, behind: u64) -> Option<Shape> {
    let from = behind.checked_sub(2 + BEFORE as u64)?;
    let mut code = [0; AROUND];
    let mut done = 0;
    while done < AROUND {
        let rest = code.get_mut(done..)?;
        match rustix::io::pread(file.as_fd(), rest, from + done as u64) {
            Ok(count) if count > 0 => done += count,
            _ => return None,
        }
    }
    let shape = Shape::of(&code)?;
    met(&code, BEFORE + 2 - shape.span() as usize).then_some(shape)
}

/// Whether instructions that are decoded from anywhere before meet at the place `at`.
fn met(code: &[u8; AROUND], at: usize) -> bool {
    const FAR: usize = 64;
    const NEAR: usize = 48;
    (at.saturating_sub(FAR)..at.saturating_sub(NEAR)).all(|mut from| {
        while from < at {
            let Some(part) = code.get(from..) else { return false };
            let insn = Decoder::new(64, part, DecoderOptions::NONE).decode();
            // What is no instruction is data, or was begun within one.
            from += if insn.is_invalid() { 1 } else { insn.len() };
        }
        from == at
    })
}

/// The code of files that is mapped in one process.
#[derive(Clone)]
pub struct Ahead {
    known: Arc<Known>,
    /// The file whose code was mapped first.
    program: Option<Id>,
    mapped: Vec<Text>,
}

impl Ahead {
    /// None yet.
    pub fn new(known: Arc<Known>) -> Ahead {
        Ahead { known, program: None, mapped: Vec::new() }
    }

    /// Another program begins.
    pub fn reset(&mut self) {
        self.program = None;
        self.mapped.clear();
    }

    /// Code is going to be mapped: which sites to rewrite, by how far behind the start of the mapping they end.
    pub fn map(&mut self, file: &OwnedFd, text: Text, room: usize) -> Vec<(u64, Shape)> {
        let program = *self.program.get_or_insert(text.file);
        let chosen = self.known.map(file, &text, program, room);
        let chosen = chosen.into_iter().map(|(behind, shape)| (behind - text.offset, shape)).collect();
        if self.mapped.len() < MAPPED {
            self.mapped.push(text);
        }
        chosen
    }

    /// The memory in a range is another's from now on.
    pub fn forget(&mut self, start: u64, end: u64) {
        if !self.mapped.is_empty() {
            self.mapped.retain(|text| text.start >= end || text.end <= start);
        }
    }

    /// A call trapped for the first time; `rip` is behind the instruction.
    pub fn saw(&self, rip: u64) {
        let inside = |text: &&Text| rip > text.start && rip <= text.end;
        if let (Some(text), Some(program)) = (self.mapped.iter().find(inside), self.program) {
            self.known.saw(text, program, rip - text.start + text.offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(bytes: &[u8]) -> [u8; AROUND] {
        let mut code = [0x90; AROUND];
        code[128..128 + bytes.len()].copy_from_slice(bytes);
        code
    }

    #[test]
    fn instructions_meet() {
        assert!(met(&code(&[0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3]), 128));
        // cmp eax, 0x27b8; add [rdi], cl; add eax, 0xc3
        let within = code(&[0x3d, 0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3, 0, 0, 0]);
        assert!(met(&within, 128) && !met(&within, 129));
    }

    fn text(ino: u64) -> Text {
        Text { start: 0x10_0000, end: 0x20_0000, offset: 0, file: Id { ino, ..Id::default() } }
    }

    #[test]
    fn what_each_image_does_is_chosen() {
        let (known, own) = (Known::default(), Id { ino: 1, ..Id::default() });
        let file =
            rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
        let shape = |known: &Known| {
            for learnt in known.files.lock().learnt.values_mut() {
                learnt.spots.iter_mut().for_each(|spot| spot.shape = Some(Some(Shape::Number(39))));
            }
        };
        assert!(known.map(&file, &text(2), own, 9).is_empty());
        known.saw(&text(2), own, 0x5010);
        known.saw(&text(2), own, 0x5040);
        shape(&known);
        assert_eq!(known.map(&file, &text(2), own, 9).len(), 2);
        assert_eq!(known.map(&file, &text(2), own, 1).len(), 1);
        // Another program is believed to do the same; what it never did there is given up.
        let other = Id { ino: 3, ..Id::default() };
        assert_eq!(known.map(&file, &text(2), other, 9).len(), 2);
        known.saw(&text(2), other, 0x9010);
        shape(&known);
        assert_eq!(
            known.map(&file, &text(2), other, 9).iter().map(|(at, _)| *at).collect::<Vec<_>>(),
            [0x9010]
        );
        // What was there once in many images is not.
        for _ in 0..20 {
            assert_eq!(known.map(&file, &text(2), own, 9).len(), 2);
        }
        known.saw(&text(2), own, 0x8010);
        shape(&known);
        assert_eq!(known.map(&file, &text(2), own, 9).len(), 2);
    }

    #[test]
    fn memory_is_bounded() {
        let (known, own) = (Known::default(), Id::default());
        let file =
            rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
        for ino in 0..2000 {
            known.map(&file, &text(ino), own, 9);
            (0..200).for_each(|i| known.saw(&text(ino), own, i * 64));
        }
        let files = known.files.lock();
        assert!(
            files.learnt.len() <= FILES && files.learnt.values().all(|learnt| learnt.spots.len() <= SITES)
        );
    }
}
