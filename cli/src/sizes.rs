//! The launcher's answers to what the sentry asks about the memory of guests' host processes: it alone can see them, in
//! /proc. Those alone are answered for, and numbers alone are said: no names of files, no frames of memory.

use crate::meter::{Figures, parents, read_all};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, openat};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use sentry::memory::areas::{self, ALL_ROWS, Asked, FIELDS, MOST_ROWS, Row, Sizes};
use sentry::memory::look;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// How long the sentry may take to make room for a whole answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// Bits of a word of the page map that say nothing of where a page is (Documentation/admin-guide/mm/pagemap.rst).
const TOLD: u64 = 0xff80_0000_0000_0000;

/// Answers the sentry one question about a guest's host process: those alone are its children. False when there will be
/// no other question.
pub fn answer(socket: &OwnedFd, sentry: i32) -> bool {
    let until = Instant::now() + PATIENCE;
    let mut question = [0; areas::QUESTION];
    let got = recv(socket, &mut question[..], RecvFlags::DONTWAIT);
    match got {
        Ok((look::QUESTION, _)) => {
            if let Some(question) = question.first_chunk() {
                let (figures, _) = find(sentry, look::asked(question)).unzip();
                tell(socket, &figures.unwrap_or_default().sizes.answer(question), until);
            }
            true
        }
        Ok((areas::QUESTION, _)) => {
            let [a, b, c, d, e, f, g, h, ..] = question;
            let number = [a, b, c, d, e, f, g, h];
            if let Some((inner, asked)) = Asked::decode(&question) {
                let process = find(sentry, inner).map(|(_, process)| process);
                match asked {
                    Asked::Areas => tell_areas(socket, number, process.as_ref(), until),
                    Asked::Pages { first, count } => {
                        let words = process.and_then(|process| pages(&process, first, count));
                        tell(socket, &areas::packet(number, false, &words.unwrap_or_default()), until);
                    }
                }
            }
            true
        }
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => true,
        _ => false,
    }
}

/// The figures and the directory of the child with this id in the sentry's pid namespace.
fn find(sentry: i32, inner: i32) -> Option<(Figures, OwnedFd)> {
    parents(sentry).ok()?.iter().find_map(|file| {
        let list = read_all(file).ok()?;
        // The newest are looked at first.
        list.split_whitespace().rev().find_map(|pid| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let process = rustix::fs::open(format!("/proc/{pid}"), flags, Mode::empty()).ok()?;
            let figures = Figures::read(&open(&process, "status")?).ok()?;
            (figures.inner == inner).then_some((figures, process))
        })
    })
}

fn open(process: &OwnedFd, name: &str) -> Option<File> {
    Some(openat(process, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?.into())
}

/// Sends a packet; false if the sentry does not take it by then.
fn tell(socket: &OwnedFd, packet: &[u8], until: Instant) -> bool {
    loop {
        match send(socket, packet, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(_) => return true,
            Err(rustix::io::Errno::AGAIN) => {
                let left = until.saturating_duration_since(Instant::now());
                let left =
                    Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
                let room = poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&left));
                if !matches!(room, Ok(1..)) {
                    return false;
                }
            }
            Err(_) => return false,
        }
    }
}

fn pages(process: &OwnedFd, first: u64, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count.checked_mul(8)?];
    let length = open(process, "pagemap")?.read_at(&mut bytes, first.checked_mul(8)?).ok()?;
    bytes.truncate(length);
    for word in bytes.chunks_exact_mut(8) {
        let told = word.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)) & TOLD;
        word.copy_from_slice(&told.to_le_bytes());
    }
    Some(bytes)
}

fn tell_areas(socket: &OwnedFd, number: [u8; 8], process: Option<&OwnedFd>, until: Instant) {
    let mut body = Vec::new();
    let smaps = process.and_then(|process| open(process, "smaps"));
    for (i, row) in smaps.into_iter().flat_map(|smaps| rows(BufReader::new(smaps))).take(ALL_ROWS).enumerate()
    {
        if i > 0 && i % MOST_ROWS == 0 {
            if !tell(socket, &areas::packet(number, true, &body), until) {
                return;
            }
            body.clear();
        }
        body.extend(row.encode());
    }
    tell(socket, &areas::packet(number, false, &body), until);
}

/// The areas of a smaps file.
fn rows(smaps: impl BufRead) -> impl Iterator<Item = Row> {
    let mut lines = smaps.split(b'\n').map_while(Result::ok);
    let mut next: Option<Row> = None;
    std::iter::from_fn(move || {
        for line in lines.by_ref() {
            let line = String::from_utf8_lossy(&line);
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else { continue };
            match first.strip_suffix(':') {
                Some(name) => {
                    let field = FIELDS.iter().position(|field| *field == name);
                    let kib = words.next().and_then(|kib| kib.parse().ok());
                    if let (Some(row), Some(field), Some(kib)) = (&mut next, field, kib) {
                        row.sizes[field] = kib;
                    }
                }
                None => {
                    let range = first.split_once('-').and_then(|(start, end)| {
                        Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
                    });
                    let Some((start, end)) = range else { continue };
                    if let Some(row) = next.replace(Row { start, end, sizes: Sizes::default() }) {
                        return Some(row);
                    }
                }
            }
        }
        next.take()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_smaps() {
        let text = b"1000-3000 rw-p 00000000 00:00 0 [heap]\nSize: 8 kB\nRss:     4 kB\nVmFlags: rd wr\n\
            5000-6000 r--p 00000000 00:00 0   /a: b\nRss: 0 kB\nSwapPss:  2 kB\n";
        let rows: Vec<Row> = rows(&text[..]).collect();
        let [a, b] = rows[..] else { panic!("{rows:?}") };
        assert_eq!((a.start, a.end, a.sizes[0]), (0x1000, 0x3000, 4));
        assert_eq!((b.start, b.end, b.sizes[0], b.sizes[14]), (0x5000, 0x6000, 0, 2));
    }

    #[test]
    fn own_memory_is_told_without_frames() {
        let own = rustix::fs::open("/proc/self", OFlags::PATH, Mode::empty()).unwrap();
        let value = 7u8;
        let words = pages(&own, &raw const value as u64 / 4096, 1).unwrap();
        let word = u64::from_le_bytes(words.try_into().unwrap());
        assert_eq!(word >> 63, 1);
        assert_eq!(word & !TOLD, 0);
        assert!(rows(BufReader::new(open(&own, "smaps").unwrap())).any(|row| row.sizes[0] > 0));
    }
}
