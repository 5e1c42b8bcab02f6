//! mremap(2) across areas, remap_file_pages(2), guards of locked memory, registrations of membarrier(2).

use guest_tests::*;
use libc::*;

cases![
    across_areas, fixed_shrinks, file_pages, file_pages_errors, guards_of_locked, far_addresses, membarrier_registrations
];

fn anon(pages: usize) -> usize {
    ok(sys!(SYS_mmap, 0, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) as usize
}

/// Which of so many pages are mapped.
fn mapped(p: usize, pages: usize) -> String {
    let one = |i: usize| sys!(SYS_mincore, p + i * 4096, 4096, &mut [0u8; 1]) == 0;
    (0..pages).map(|i| if one(i) { 'm' } else { '.' }).collect()
}

fn poke(p: usize, value: u8) {
    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
    unsafe { (p as *mut u8).write_volatile(value) }
}

fn peek(p: usize) -> u8 {
    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
    unsafe { (p as *const u8).read_volatile() }
}

const MOVE: i32 = MREMAP_MAYMOVE | MREMAP_FIXED;
const P: usize = 4096;

fn across_areas() {
    // Two areas with a gap between them, over what is there.
    let (p, q) = (anon(8), anon(8));
    poke(p, 1);
    poke(p + 6 * P, 6);
    poke(q + 3 * P, 33);
    eq(sys!(SYS_munmap, p + 3 * P, 2 * P), 0);
    eq(sys!(SYS_mprotect, p + 5 * P, P, PROT_READ), 0);
    let moved = sys!(SYS_mremap, p, 8 * P, 8 * P, MOVE, q);
    if moved == -i64::from(EFAULT) {
        // Before Linux 6.17.
        skip("one area at a time");
    }
    eq(moved, q as i64);
    eq(mapped(p, 8), "........".to_string());
    eq(mapped(q, 8), "mmmmmmmm".to_string());
    eq([peek(q), peek(q + 3 * P), peek(q + 6 * P)], [1, 33, 6]);
    // Not what begins in a gap, nor larger than it was.
    let (p, q) = (anon(8), anon(16));
    eq(sys!(SYS_munmap, p, 2 * P), 0);
    err(sys!(SYS_mremap, p, 8 * P, 8 * P, MOVE, q), EFAULT);
    let p = anon(8);
    eq(sys!(SYS_mprotect, p + 4 * P, P, PROT_READ), 0);
    err(sys!(SYS_mremap, p, 8 * P, 12 * P, MOVE, q), EFAULT);
    eq(mapped(p, 8), "mmmmmmmm".to_string());
}

fn fixed_shrinks() {
    for (to, fits) in [(6, false), (4, true), (2, true)] {
        let (p, q) = (anon(8), anon(8));
        poke(p + P, 7);
        eq(sys!(SYS_mprotect, p + 4 * P, 4 * P, PROT_READ), 0);
        let r = sys!(SYS_mremap, p, 8 * P, to * P, MOVE, q);
        if fits {
            eq(r, q as i64);
            eq(mapped(p, 8), "........".to_string());
            eq(peek(q + P), 7);
        } else {
            err(r, EFAULT);
        }
        eq(mapped(q, 8), "mmmmmmmm".to_string());
    }
}

fn file_pages() {
    let dir = Tmp::new();
    let fd = dir.file("f", b"");
    eq(sys!(SYS_ftruncate, fd, 8 * P), 0);
    for i in 0..8 {
        eq(sys!(SYS_pwrite64, fd, &[b'a' + i as u8], 1, i * P), 1);
    }
    let p = ok(sys!(SYS_mmap, 0, 4 * P, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) as usize;
    eq(sys!(SYS_remap_file_pages, p, P, 0, 5, 0), 0);
    eq(sys!(SYS_remap_file_pages, p + P, 2 * P, 0, 6, 0), 0);
    eq([peek(p), peek(p + P), peek(p + 2 * P), peek(p + 3 * P)], [b'f', b'g', b'h', b'd']);
    poke(p, b'F');
    let mut byte = [0u8];
    eq(sys!(SYS_pread64, fd, &mut byte, 1, 5 * P), 1);
    eq(byte[0], b'F');
    // Across what are several areas now, not aligned.
    eq(sys!(SYS_remap_file_pages, p + 5, 3 * P + 7, 0, 0, MAP_NONBLOCK), 0);
    eq([peek(p), peek(p + P), peek(p + 2 * P), peek(p + 3 * P)], [b'a', b'b', b'c', b'd']);
}

fn file_pages_errors() {
    let dir = Tmp::new();
    let fd = dir.file("f", b"x");
    let p = ok(sys!(SYS_mmap, 0, 4 * P, PROT_READ, MAP_SHARED, fd, 0)) as usize;
    err(sys!(SYS_remap_file_pages, p, P, PROT_READ, 0, 0), EINVAL);
    err(sys!(SYS_remap_file_pages, p, 0, 0, 0, 0), EINVAL);
    err(sys!(SYS_remap_file_pages, p, 100, 0, 0, 0), EINVAL);
    err(sys!(SYS_remap_file_pages, p, usize::MAX & !4095, 0, 0, 0), EINVAL);
    err(sys!(SYS_remap_file_pages, p, P, 0, usize::MAX, 0), EINVAL);
    err(sys!(SYS_remap_file_pages, anon(1), P, 0, 0, 0), EINVAL);
    err(sys!(SYS_remap_file_pages, 0, P, 0, 0, 0), EINVAL);
    let private = ok(sys!(SYS_mmap, 0, P, PROT_READ, MAP_PRIVATE, fd, 0));
    err(sys!(SYS_remap_file_pages, private, P, 0, 0, 0), EINVAL);
}

/// MADV_GUARD_INSTALL and MADV_GUARD_REMOVE.
fn guards_of_locked() {
    let p = anon(4);
    if sys!(SYS_madvise, p, P, 102) == -i64::from(EINVAL) {
        skip("no guards (Linux 6.13)");
    }
    eq(sys!(SYS_madvise, p, P, 103), 0);
    eq(sys!(SYS_mlock, p, P), 0);
    err(sys!(SYS_madvise, p, P, 102), EINVAL);
    err(sys!(SYS_madvise, p, 4 * P, 102), EINVAL);
    eq(sys!(SYS_madvise, p + P, P, 102), 0);
    eq(sys!(SYS_madvise, p, 4 * P, 103), 0);
}

fn membarrier_registrations() {
    const GLOBAL_EXPEDITED: i64 = 2;
    const REGISTER_GLOBAL: i64 = 4;
    const REGISTER_PRIVATE: i64 = 16;
    const GET: i64 = 512;
    if ok(sys!(SYS_membarrier, 0, 0, 0)) & GET == 0 {
        skip("no registrations to be read (Linux 6.3)");
    }
    in_child(|| {
        let before = ok(sys!(SYS_membarrier, GET, 0, 0));
        // The caller need not be registered.
        eq(sys!(SYS_membarrier, GLOBAL_EXPEDITED, 0, 0), 0);
        eq(sys!(SYS_membarrier, REGISTER_GLOBAL, 0, 0), 0);
        eq(sys!(SYS_membarrier, GET, 0, 0), before | REGISTER_GLOBAL);
        eq(sys!(SYS_membarrier, REGISTER_PRIVATE, 0, 0), 0);
        eq(sys!(SYS_membarrier, GET, 0, 0), before | REGISTER_GLOBAL | REGISTER_PRIVATE);
        // A copy of the memory has them too.
        in_child(move || eq(sys!(SYS_membarrier, GET, 0, 0), before | REGISTER_GLOBAL | REGISTER_PRIVATE));
        for command in [GLOBAL_EXPEDITED, REGISTER_GLOBAL, GET] {
            err(sys!(SYS_membarrier, command, 1, 0), EINVAL);
        }
    });
}

fn far_addresses() {
    const TOP: usize = 0x7fff_ffff_f000;
    let minus = usize::MAX - 4095;
    for (at, old, new, errno) in [
        (minus, P, 2 * P, EFAULT),
        (TOP - P, P, 2 * P, EFAULT),
        (anon(4), 4 * P, minus, EINVAL),
        (anon(4), 4 * P, 3 << 46, EINVAL),
        (anon(4), minus, 4 * P, EINVAL),
    ] {
        let r = sys!(SYS_mremap, at, old, new, MREMAP_MAYMOVE, 0);
        // Before Linux 6.17 too large a size was found out later.
        errs(r, if errno == EINVAL { &[EINVAL, ENOMEM] } else { &[EFAULT] });
    }
    for to in [TOP - 2 * P, minus] {
        err(sys!(SYS_mremap, anon(4), 4 * P, 4 * P, MOVE, to), EINVAL);
    }
    for (at, len) in [(TOP, P), (TOP - P, 2 * P), (minus, P), ((1 << 63) - P, P), (P, minus)] {
        err(sys!(SYS_munmap, at, len), EINVAL);
        err(sys!(SYS_mprotect, at, len, PROT_READ), ENOMEM);
        err(sys!(SYS_mmap, at, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), ENOMEM);
        errs(sys!(SYS_madvise, at, len, MADV_DONTNEED), &[EINVAL, ENOMEM]);
        errs(sys!(SYS_mlock, at, len), &[EINVAL, ENOMEM]);
    }
}
