//! /proc/cpuinfo: what the processor's own instruction tells every program anyway.

use std::arch::x86_64::{__cpuid, __cpuid_count, CpuidResult};
use std::fmt::Write;

/// Leaf, subleaf, register (`a` to `d`), and the flags by bit.
type Flags = (u32, u32, u8, &'static [(u8, &'static str)]);

/// Linux's names of feature bits (arch/x86/include/asm/cpufeatures.h).
const FLAGS: &[Flags] = &[
    (
        1,
        0,
        b'd',
        &[
            (0, "fpu"),
            (1, "vme"),
            (2, "de"),
            (3, "pse"),
            (4, "tsc"),
            (5, "msr"),
            (6, "pae"),
            (7, "mce"),
            (8, "cx8"),
            (9, "apic"),
            (11, "sep"),
            (12, "mtrr"),
            (13, "pge"),
            (14, "mca"),
            (15, "cmov"),
            (16, "pat"),
            (17, "pse36"),
            (19, "clflush"),
            (23, "mmx"),
            (24, "fxsr"),
            (25, "sse"),
            (26, "sse2"),
            (27, "ss"),
            (28, "ht"),
        ],
    ),
    (
        0x8000_0001,
        0,
        b'd',
        &[
            (11, "syscall"),
            (20, "nx"),
            (22, "mmxext"),
            (25, "fxsr_opt"),
            (26, "pdpe1gb"),
            (27, "rdtscp"),
            (29, "lm"),
        ],
    ),
    (
        1,
        0,
        b'c',
        &[
            (0, "pni"),
            (1, "pclmulqdq"),
            (9, "ssse3"),
            (12, "fma"),
            (13, "cx16"),
            (17, "pcid"),
            (19, "sse4_1"),
            (20, "sse4_2"),
            (21, "x2apic"),
            (22, "movbe"),
            (23, "popcnt"),
            (25, "aes"),
            (26, "xsave"),
            (28, "avx"),
            (29, "f16c"),
            (30, "rdrand"),
            (31, "hypervisor"),
        ],
    ),
    (
        0x8000_0001,
        0,
        b'c',
        &[
            (0, "lahf_lm"),
            (1, "cmp_legacy"),
            (4, "cr8_legacy"),
            (5, "abm"),
            (6, "sse4a"),
            (7, "misalignsse"),
            (8, "3dnowprefetch"),
            (9, "osvw"),
            (22, "topoext"),
            (23, "perfctr_core"),
        ],
    ),
    (
        7,
        0,
        b'b',
        &[
            (0, "fsgsbase"),
            (3, "bmi1"),
            (4, "hle"),
            (5, "avx2"),
            (7, "smep"),
            (8, "bmi2"),
            (9, "erms"),
            (10, "invpcid"),
            (11, "rtm"),
            (16, "avx512f"),
            (17, "avx512dq"),
            (18, "rdseed"),
            (19, "adx"),
            (20, "smap"),
            (21, "avx512ifma"),
            (23, "clflushopt"),
            (24, "clwb"),
            (28, "avx512cd"),
            (29, "sha_ni"),
            (30, "avx512bw"),
            (31, "avx512vl"),
        ],
    ),
    (0xd, 1, b'a', &[(0, "xsaveopt"), (1, "xsavec"), (2, "xgetbv1"), (3, "xsaves")]),
    (7, 1, b'a', &[(4, "avx_vnni"), (5, "avx512_bf16")]),
    (
        7,
        0,
        b'c',
        &[
            (1, "avx512vbmi"),
            (2, "umip"),
            (3, "pku"),
            (4, "ospke"),
            (6, "avx512_vbmi2"),
            (8, "gfni"),
            (9, "vaes"),
            (10, "vpclmulqdq"),
            (11, "avx512_vnni"),
            (12, "avx512_bitalg"),
            (14, "avx512_vpopcntdq"),
            (16, "la57"),
            (22, "rdpid"),
        ],
    ),
    (7, 0, b'd', &[(4, "fsrm"), (8, "avx512_vp2intersect"), (14, "serialize")]),
];

/// A leaf; zero if the processor does not have it.
fn leaf(number: u32, sub: u32) -> CpuidResult {
    let top = __cpuid(number & 0x8000_0000).eax;
    if number > top { CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 } } else { __cpuid_count(number, sub) }
}

/// One of a processor's caches (Intel SDM, CPUID leaf 4; AMD has the same form in leaf 8000_001D).
pub(crate) struct Cache {
    pub(crate) level: u32,
    /// As /sys names it.
    pub(crate) kind: &'static str,
    /// Bytes of a line.
    pub(crate) line: u64,
    pub(crate) partitions: u64,
    pub(crate) ways: u64,
    pub(crate) sets: u64,
}

/// The caches, in the processor's order.
pub(crate) fn caches() -> Vec<Cache> {
    let from = if leaf(4, 0).eax & 31 != 0 { 4 } else { 0x8000_001d };
    let describe = |sub| {
        let found = leaf(from, sub);
        let kind = match found.eax & 31 {
            1 => "Data",
            2 => "Instruction",
            3 => "Unified",
            _ => return None,
        };
        let part = |shift: u32| u64::from(found.ebx >> shift & 0x3ff).saturating_add(1);
        Some(Cache {
            level: found.eax >> 5 & 7,
            kind,
            line: u64::from(found.ebx & 0xfff).saturating_add(1),
            partitions: u64::from(found.ebx >> 12 & 0x3ff).saturating_add(1),
            ways: part(22),
            sets: u64::from(found.ecx).saturating_add(1),
        })
    };
    (0..8).map_while(describe).collect()
}

fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ']).to_owned()
}

fn flags() -> String {
    let mut out = String::new();
    for (number, sub, register, bits) in FLAGS {
        let answer = leaf(*number, *sub);
        let word = match register {
            b'a' => answer.eax,
            b'b' => answer.ebx,
            b'c' => answer.ecx,
            _ => answer.edx,
        };
        for (bit, name) in *bits {
            if word >> (bit & 31) & 1 != 0 {
                let _ = write!(out, " {name}");
            }
        }
    }
    out
}

/// The file, for this many processors, all alike.
pub(super) fn info(cpus: usize) -> Vec<u8> {
    let (first, signature) = (leaf(0, 0), leaf(1, 0).eax);
    let vendor = text(&[first.ebx, first.edx, first.ecx]);
    let brand = (0x8000_0002..=0x8000_0004).flat_map(|n| {
        let l = leaf(n, 0);
        [l.eax, l.ebx, l.ecx, l.edx]
    });
    let brand = text(&brand.collect::<Vec<_>>());
    let (mut family, mut model) = (signature >> 8 & 0xf, signature >> 4 & 0xf);
    if family >= 6 {
        model |= signature >> 12 & 0xf0;
    }
    if family == 0xf {
        family += signature >> 20 & 0xff;
    }
    let (stepping, flags) = (signature & 0xf, flags());
    let sizes = leaf(0x8000_0008, 0).eax;
    let (physical, virtual_bits) = (sizes & 0xff, sizes >> 8 & 0xff);
    let mut out = String::new();
    for cpu in 0..cpus {
        let _ = write!(
            out,
            "processor\t: {cpu}\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n\
             model name\t: {brand}\nstepping\t: {stepping}\ncpu MHz\t\t: 2000.000\ncache size\t: 1024 KB\n\
             physical id\t: 0\nsiblings\t: {cpus}\ncore id\t\t: {cpu}\ncpu cores\t: {cpus}\napicid\t\t: {cpu}\n\
             initial apicid\t: {cpu}\nfpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: {}\nwp\t\t: yes\n\
             flags\t\t:{flags}\nbugs\t\t:\nbogomips\t: 4000.00\nclflush size\t: 64\ncache_alignment\t: 64\n\
             address sizes\t: {physical} bits physical, {virtual_bits} bits virtual\npower management:\n\n",
            first.eax
        );
    }
    out.into_bytes()
}
