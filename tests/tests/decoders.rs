//! The decoders of hostile bytes, given random bytes and mutations of valid ones for a few seconds each.
//!
//! The same entry points as the targets of `fuzz/`, which go on for as long as one likes and see what they cover.
//! `DECODERS_SECONDS` sets the time, `DECODERS_SEED` repeats a run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// xorshift64*: enough variety, and the same again for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        // Small numbers are tags and lengths more often than large ones.
        let mask = if self.below(2) == 0 { 0xff } else { 0x1f };
        (0..length).map(|_| self.next() as u8 & mask).collect()
    }

    fn mutate(&mut self, data: &mut Vec<u8>) {
        const EDGES: [u64; 10] =
            [0, 1, 0x7f, 0xff, 0xfff, 0x1000, 0x7fff_ffff, 1 << 47, i64::MAX as u64, u64::MAX];
        for _ in 0..=self.below(4) {
            let at = self.below(data.len());
            match self.below(5) {
                0 => data.truncate(at),
                1 => data.splice(at..at, self.bytes(8)).for_each(drop),
                2 => {
                    let edge = EDGES[self.below(EDGES.len())].to_le_bytes();
                    let width = 1 << self.below(4);
                    for (to, from) in data.iter_mut().skip(at).zip(&edge[..width]) {
                        *to = *from;
                    }
                }
                3 => {
                    if let Some(byte) = data.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
                _ => {
                    if let Some(byte) = data.get_mut(at) {
                        *byte = self.next() as u8;
                    }
                }
            }
        }
    }
}

fn smoke(name: &str, decode: fn(&[u8]), seeds: &[Vec<u8>], most: usize) {
    let seconds = std::env::var("DECODERS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let seed = std::env::var("DECODERS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0x1a2a_4e70);
    let mut random = Random(seed);
    let start = Instant::now();
    let mut count = 0_u64;
    while start.elapsed() < Duration::from_secs(seconds) {
        let mut data = match random.below(4) {
            0 => random.bytes(most),
            _ if seeds.is_empty() => random.bytes(48),
            _ => seeds[random.below(seeds.len())].clone(),
        };
        random.mutate(&mut data);
        let outcome = catch_unwind(AssertUnwindSafe(|| decode(&data)));
        assert!(outcome.is_ok(), "{name} panics, seed {seed}, input {count}: {data:02x?}");
        count += 1;
    }
    assert!(count > 1000, "{name}: {count} inputs only");
}

#[test]
fn gofer_messages() {
    // Tags with the fields that most messages have: a node, a short name, numbers.
    let seeds: Vec<Vec<u8>> = (0..64)
        .flat_map(|tag| {
            [
                vec![tag],
                vec![tag, 1, 2, 3, 4, 5, 6],
                vec![tag, 1, 4, b'n', b'a', b'm', b'e', 1, 0, 251, 0xa4, 1, 0],
            ]
        })
        .collect();
    smoke("the gofer's codec", gofer::fuzz_decode, &seeds, 512);
}

#[test]
fn shim_pages() {
    let seeds = [vec![0; 0x1000], vec![0xff; 0x1000], (0..0x1000).map(|byte| (byte / 8 % 7) as u8).collect()];
    smoke("the shared page", platform::trap::fuzz_slot, &seeds, 0x4000);
}

#[test]
fn executables() {
    let head = |path: &str| {
        let mut bytes = std::fs::read(path).unwrap_or_default();
        bytes.truncate(4096);
        bytes
    };
    let mut seeds = vec![head("/proc/self/exe"), head("/bin/true"), head("/bin/sh")];
    seeds.retain(|seed| !seed.is_empty());
    smoke("the loader", sentry::task::elf::fuzz_parse, &seeds, 256);
}

#[test]
fn filters() {
    let insn =
        |code: u16, jt: u8, jf: u8, k: u32| [&code.to_le_bytes()[..], &[jt, jf], &k.to_le_bytes()].concat();
    let call = [0; 64];
    let (load, allow, deny) = (insn(0x20, 0, 0, 0), insn(6, 0, 0, 0x7fff_0000), insn(6, 0, 0, 0x5_0001));
    let seeds = [
        [&call[..], &load, &insn(0x15, 0, 1, 59), &deny, &allow].concat(),
        [
            &call[..],
            &insn(0x20, 0, 0, 4),
            &insn(0x15, 1, 0, 0xc000_003e),
            &deny,
            &load,
            &insn(0x54, 0, 0, 3),
            &insn(0x35, 1, 0, 2),
            &deny,
            &allow,
        ]
        .concat(),
        [
            &call[..],
            &insn(0x20, 0, 0, 16),
            &insn(2, 0, 0, 3),
            &insn(0x61, 0, 0, 3),
            &insn(0x3c, 0, 0, 0),
            &insn(0x16, 0, 0, 0),
        ]
        .concat(),
    ];
    smoke("the filters' verifier", sentry::seccomp::bpf::fuzz_run, &seeds, 256);
}
