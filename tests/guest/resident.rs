//! Which memory is resident and what makes it so: mincore(2), mlock2(2), mlockall(2), MAP_LOCKED, madvise(2) across areas,
//! process_madvise(2); and mseal(2).

use guest_tests::*;
use libc::*;

cases![
    mincore_of_private_memory, mincore_of_files, mincore_before_a_hole, lock_fills, lock_on_fault, lock_of_the_future, lock_grows,
    advice_across_holes, advice_and_locks, process_madvise_own, process_madvise_other, seal_arguments, seal_protects,
    seal_and_advice, seal_is_inherited, smaps_of_areas, smaps_after_fork, page_map, maps_have_the_vdso
];

const P: i64 = 4096;
const ALL: i32 = PROT_READ | PROT_WRITE;
const SYS_MSEAL: i64 = 462;

fn map(pages: i64, prot: i32, flags: i32) -> i64 {
    ok(sys!(SYS_mmap, 0, pages * P, prot, flags | MAP_ANONYMOUS, -1, 0))
}

/// One character for each page.
fn resident(at: i64, pages: i64) -> String {
    let mut vec = vec![0u8; pages as usize];
    eq(sys!(SYS_mincore, at, pages * P, vec.as_mut_ptr()), 0);
    vec.iter().map(|page| if page & 1 == 1 { 'x' } else { '.' }).collect()
}

fn touch(at: i64) {
    // SAFETY: a mapped page.
    unsafe { (at as *mut u8).write_volatile(1) };
}

fn mincore_of_private_memory() {
    let p = map(8, ALL, MAP_PRIVATE);
    ok(sys!(SYS_madvise, p, 8 * P, MADV_NOHUGEPAGE));
    eq(resident(p, 8), "........");
    touch(p + P);
    touch(p + 5 * P);
    eq(resident(p, 8), ".x...x..");
    ok(sys!(SYS_madvise, p + P, P, MADV_DONTNEED));
    eq(resident(p, 8), ".....x..");
    ok(sys!(SYS_madvise, p, 3 * P, MADV_POPULATE_WRITE));
    eq(resident(p, 8), "xxx..x..");
    // Shared memory, by the file behind it.
    let s = map(4, ALL, MAP_SHARED);
    eq(resident(s, 4), "....");
    touch(s + 2 * P);
    eq(resident(s, 4), "..x.");
    ok(sys!(SYS_madvise, s + 2 * P, P, MADV_REMOVE));
    eq(resident(s, 4), "....");
    // More than one answer of a host call holds.
    let large = map(5000, ALL, MAP_PRIVATE | MAP_NORESERVE);
    ok(sys!(SYS_madvise, large, 5000 * P, MADV_NOHUGEPAGE));
    touch(large + 1023 * P);
    touch(large + 1024 * P);
    touch(large + 4999 * P);
    let all = resident(large, 5000);
    let set: Vec<usize> = all.char_indices().filter(|(_, c)| *c == 'x').map(|(i, _)| i).collect();
    eq(set, [1023, 1024, 4999]);
    for (at, pages) in [(p, 8), (s, 4), (large, 5000)] {
        ok(sys!(SYS_munmap, at, pages * P));
    }
}

fn mincore_of_files() {
    // Large enough to be no bytes of a kernel that keeps small files elsewhere.
    let pages = 256;
    let fd = ok(sys!(SYS_memfd_create, c"x".as_ptr(), 0));
    ok(sys!(SYS_ftruncate, fd, pages * P));
    eq(sys!(SYS_pwrite64, fd, [1u8; 10].as_ptr(), 10, P), 10);
    // What a mapping would find in memory counts, touched or not.
    let at = ok(sys!(SYS_mmap, 0, pages * P, PROT_READ, MAP_PRIVATE, fd, 0));
    eq(&resident(at, pages)[..4], ".x..");
    ok(sys!(SYS_munmap, at, pages * P));
    let at = ok(sys!(SYS_mmap, 0, pages * P, ALL, MAP_SHARED, fd, 0));
    touch(at + 3 * P);
    eq(&resident(at, pages)[..6], ".x.x..");
    eq(resident(at + P, 1), "x");
    ok(sys!(SYS_munmap, at, pages * P));
    shut([fd as i32]);
}

fn mincore_before_a_hole() {
    let p = map(4, ALL, MAP_PRIVATE);
    touch(p);
    ok(sys!(SYS_munmap, p + 2 * P, P));
    let mut vec = [9u8; 4];
    err(sys!(SYS_mincore, p, 4 * P, vec.as_mut_ptr()), ENOMEM);
    eq(sys!(SYS_mincore, p, 0, 0), 0);
    err(sys!(SYS_mincore, p + 1, P, vec.as_mut_ptr()), EINVAL);
    err(sys!(SYS_mincore, p, P, bad()), EFAULT);
    err(sys!(SYS_mincore, p, -1, vec.as_mut_ptr()), ENOMEM);
    eq(sys!(SYS_mincore, p, 1, vec.as_mut_ptr()), 0);
    eq(vec[0] & 1, 1);
    ok(sys!(SYS_munmap, p, 4 * P));
}

fn lock_fills() {
    in_child(|| {
        let p = map(8, ALL, MAP_PRIVATE);
        ok(sys!(SYS_madvise, p, 8 * P, MADV_NOHUGEPAGE));
        eq(sys!(SYS_mlock, p + P, 2 * P), 0);
        eq(resident(p, 8), ".xx.....");
        ok(sys!(SYS_munlock, p + P, 2 * P));
        // Locked memory cannot be filled where it cannot be accessed; what comes before is.
        ok(sys!(SYS_mprotect, p + 5 * P, P, PROT_NONE));
        err(sys!(SYS_mlock, p + 4 * P, 3 * P), ENOMEM);
        ok(sys!(SYS_mprotect, p + 5 * P, P, ALL));
        eq(&resident(p, 8)[..5], ".xx.x");
        let q = map(3, ALL, MAP_PRIVATE | MAP_LOCKED);
        eq(resident(q, 3), "xxx");
    });
}

fn lock_on_fault() {
    in_child(|| {
        let p = map(4, ALL, MAP_PRIVATE);
        ok(sys!(SYS_madvise, p, 4 * P, MADV_NOHUGEPAGE));
        eq(sys!(SYS_mlock2, p, 4 * P, 1), 0);
        eq(resident(p, 4), "....");
        touch(p + P);
        eq(resident(p, 4), ".x..");
        err(sys!(SYS_madvise, p, P, MADV_DONTNEED), EINVAL);
        err(sys!(SYS_mlock2, p, P, 2), EINVAL);
    });
}

fn lock_of_the_future() {
    for (flags, filled) in [(MCL_FUTURE, "xxxx"), (MCL_FUTURE | MCL_ONFAULT, "....")] {
        in_child(|| {
            eq(sys!(SYS_mlockall, flags), 0);
            let p = map(4, ALL, MAP_PRIVATE);
            eq(resident(p, 4), filled);
            err(sys!(SYS_madvise, p, P, MADV_DONTNEED), EINVAL);
            // It is no more for a child.
            in_child(|| {
                let p = map(4, ALL, MAP_PRIVATE);
                ok(sys!(SYS_madvise, p, P, MADV_DONTNEED));
            });
            ok(sys!(SYS_munlockall));
            let p = map(4, ALL, MAP_PRIVATE);
            ok(sys!(SYS_madvise, p, P, MADV_DONTNEED));
        });
    }
    in_child(|| {
        let p = map(4, ALL, MAP_PRIVATE);
        ok(sys!(SYS_madvise, p, 4 * P, MADV_NOHUGEPAGE));
        // An ordinary user may lock less than a program has.
        if sys!(SYS_geteuid) == 0 {
            eq(sys!(SYS_mlockall, MCL_CURRENT | MCL_ONFAULT), 0);
            eq(resident(p, 4), "....");
        }
        err(sys!(SYS_mlockall, MCL_ONFAULT), EINVAL);
    });
}

/// What grows or becomes writable is filled if it is locked; not what is to be filled when it is touched.
fn lock_grows() {
    let grow = |p: i64, pages: i64, to: i64| ok(sys!(SYS_mremap, p, pages * P, to * P, MREMAP_MAYMOVE, 0));
    let new = |flags| {
        let p = map(4, ALL, flags);
        ok(sys!(SYS_madvise, p, 4 * P, MADV_NOHUGEPAGE));
        p
    };
    in_child(|| {
        let p = new(MAP_PRIVATE);
        eq(sys!(SYS_mlockall, MCL_FUTURE), 0);
        eq(resident(grow(p, 4, 8), 8), "........");
        let p = grow(new(MAP_PRIVATE), 4, 8);
        eq(resident(p, 8), "xxxxxxxx");
        // A length counts as whole pages.
        let q = ok(sys!(SYS_mremap, new(MAP_PRIVATE), 4 * P - 100, 7 * P + 1, MREMAP_MAYMOVE, 0));
        eq(resident(q, 8), "xxxxxxxx");
        // It cannot grow in place.
        ok(sys!(SYS_mmap, p + 8 * P, P, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
        eq(resident(grow(p, 8, 12), 12), "xxxxxxxxxxxx");
        let p = map(4, PROT_NONE, MAP_PRIVATE);
        eq(resident(p, 4), "....");
        ok(sys!(SYS_mprotect, p, 2 * P, ALL));
        eq(resident(p, 4), "xx..");
        // A second mapping is as locked as the first one, whatever was asked for since.
        let s = new(MAP_SHARED);
        let t = ok(sys!(SYS_mremap, s, 0, 4 * P, MREMAP_MAYMOVE, 0));
        eq(resident(t, 4), "xxxx");
        err(sys!(SYS_madvise, t, P, MADV_DONTNEED), EINVAL);
    });
    in_child(|| {
        eq(sys!(SYS_mlockall, MCL_FUTURE | MCL_ONFAULT), 0);
        let p = new(MAP_PRIVATE | MAP_LOCKED);
        eq(resident(p, 4), "....");
        err(sys!(SYS_madvise, p, P, MADV_DONTNEED), EINVAL);
        eq(resident(grow(p, 4, 8), 8), "........");
    });
    in_child(|| {
        let p = new(MAP_PRIVATE);
        eq(sys!(SYS_mlock, p, 4 * P), 0);
        eq(resident(grow(p, 4, 8), 8), "xxxxxxxx");
        let p = new(MAP_PRIVATE);
        eq(sys!(SYS_mlock2, p, 4 * P, 1), 0);
        eq(resident(grow(p, 4, 8), 8), "........");
        eq(resident(grow(new(MAP_PRIVATE | MAP_LOCKED), 4, 8), 8), "xxxxxxxx");
        let s = new(MAP_SHARED);
        eq(sys!(SYS_mlockall, MCL_FUTURE), 0);
        let t = ok(sys!(SYS_mremap, s, 0, 4 * P, MREMAP_MAYMOVE, 0));
        eq(resident(t, 4), "....");
        ok(sys!(SYS_madvise, t, P, MADV_DONTNEED));
    });
}

fn advice_across_holes() {
    let p = map(9, ALL, MAP_PRIVATE);
    ok(sys!(SYS_madvise, p, 9 * P, MADV_NOHUGEPAGE));
    (0..9).for_each(|i| touch(p + i * P));
    for hole in [2, 5, 6] {
        ok(sys!(SYS_munmap, p + hole * P, P));
    }
    err(sys!(SYS_madvise, p, 9 * P, MADV_DONTNEED), ENOMEM);
    eq(resident(p, 2), "..");
    eq(resident(p + 3 * P, 2), "..");
    eq(resident(p + 7 * P, 2), "..");
    err(sys!(SYS_madvise, p + 5 * P, 2 * P, MADV_DONTNEED), ENOMEM);
    // What is only a note is made for every part, too.
    err(sys!(SYS_madvise, p, 9 * P, MADV_DONTFORK), ENOMEM);
    let has = |page: i64| sys!(SYS_madvise, p + page * P, P, MADV_NORMAL) == 0;
    in_child(|| eq([0, 1, 3, 4, 7, 8].map(has), [false; 6]));
    err(sys!(SYS_madvise, p, 9 * P, MADV_DOFORK), ENOMEM);
    in_child(|| eq([0, 1, 3, 4, 7, 8].map(has), [true; 6]));
    err(sys!(SYS_madvise, p, 9 * P, MADV_POPULATE_READ), ENOMEM);
    err(sys!(SYS_madvise, p, -1, MADV_DONTNEED), EINVAL);
    eq(sys!(SYS_madvise, p, 0, MADV_DONTNEED), 0);
    err(sys!(SYS_madvise, p, 0, 9999), EINVAL);
    ok(sys!(SYS_munmap, p, 9 * P));
}

fn advice_and_locks() {
    in_child(|| {
        let p = map(6, ALL, MAP_PRIVATE);
        ok(sys!(SYS_madvise, p, 6 * P, MADV_NOHUGEPAGE));
        (0..6).for_each(|i| touch(p + i * P));
        eq(sys!(SYS_mlock, p + 3 * P, P), 0);
        // What comes before the locked page is dropped, the rest stays.
        err(sys!(SYS_madvise, p, 6 * P, MADV_DONTNEED), EINVAL);
        eq(resident(p, 6), "...xxx");
        ok(sys!(SYS_madvise, p, 6 * P, MADV_DONTNEED_LOCKED));
        eq(resident(p, 6), "......");
    });
}

fn advise(pidfd: i64, parts: &[(i64, i64)], advice: i32, flags: i32) -> i64 {
    sys!(SYS_process_madvise, pidfd, parts.as_ptr(), parts.len(), advice, flags)
}

fn process_madvise_own() {
    let own = ok(sys!(SYS_pidfd_open, sys!(SYS_getpid), 0));
    let p = map(8, ALL, MAP_PRIVATE);
    ok(sys!(SYS_madvise, p, 8 * P, MADV_NOHUGEPAGE));
    (0..8).for_each(|i| touch(p + i * P));
    eq(advise(own, &[(p, P), (p + 3 * P, 2 * P)], MADV_DONTNEED, 0), 3 * P);
    eq(resident(p, 8), ".xx..xxx");
    // How far it came.
    eq(advise(own, &[(p + P, P), (p + 1, P), (p + 2 * P, P)], MADV_DONTNEED, 0), P);
    eq(resident(p, 8), "..x..xxx");
    err(advise(own, &[(p + 1, P)], MADV_DONTNEED, 0), EINVAL);
    err(advise(own, &[(p, P)], 9999, 0), EINVAL);
    err(advise(own, &[(p, P)], MADV_COLD, 1), EINVAL);
    err(advise(-1, &[(p, P)], MADV_COLD, 0), EBADF);
    err(sys!(SYS_process_madvise, own, bad(), 1, MADV_COLD, 0), EFAULT);
    err(sys!(SYS_process_madvise, own, bad(), 1025, MADV_COLD, 0), EINVAL);
    eq(advise(own, &[], MADV_COLD, 0), 0);
    ok(sys!(SYS_munmap, p, 8 * P));
    shut([own as i32]);
}

fn process_madvise_other() {
    let p = map(4, ALL, MAP_PRIVATE);
    let child = child(|| loop {
        sys!(SYS_pause);
    });
    let pidfd = ok(sys!(SYS_pidfd_open, child, 0));
    if sys!(SYS_geteuid) == 0 {
        eq(advise(pidfd, &[(p, 2 * P)], MADV_COLD, 0), 2 * P);
        eq(advise(pidfd, &[(p, 2 * P), (p, P)], MADV_WILLNEED, 0), 3 * P);
        err(advise(pidfd, &[(p + 1, P)], MADV_PAGEOUT, 0), EINVAL);
        err(advise(pidfd, &[(4096, P)], MADV_PAGEOUT, 0), ENOMEM);
    } else {
        err(advise(pidfd, &[(p, 2 * P)], MADV_COLD, 0), EPERM);
    }
    // Nobody throws away the memory of another.
    err(advise(pidfd, &[(p, 2 * P)], MADV_DONTNEED, 0), EINVAL);
    ok(sys!(SYS_kill, child, SIGKILL));
    ok(sys!(SYS_wait4, child, 0, 0, 0));
    err(advise(pidfd, &[(p, 2 * P)], MADV_COLD, 0), ESRCH);
    shut([pidfd as i32]);
    ok(sys!(SYS_munmap, p, 4 * P));
}

fn seal_arguments() {
    let p = map(8, ALL, MAP_PRIVATE);
    err(sys!(SYS_MSEAL, p, P, 1), EINVAL);
    err(sys!(SYS_MSEAL, p + 1, P, 0), EINVAL);
    err(sys!(SYS_MSEAL, p, -4096, 0), EINVAL);
    err(sys!(SYS_MSEAL, p, -1, 0), EINVAL);
    eq(sys!(SYS_MSEAL, p, 0, 0), 0);
    ok(sys!(SYS_munmap, p + 2 * P, P));
    // All or nothing.
    err(sys!(SYS_MSEAL, p, 4 * P, 0), ENOMEM);
    ok(sys!(SYS_munmap, p, 8 * P));
}

fn seal_protects() {
    in_child(|| {
        let p = map(16, ALL, MAP_PRIVATE);
        touch(p + 4 * P);
        eq(sys!(SYS_MSEAL, p + 4 * P, 4 * P, 0), 0);
        eq(sys!(SYS_MSEAL, p + 4 * P, 4 * P, 0), 0);
        err(sys!(SYS_munmap, p + 4 * P, P), EPERM);
        err(sys!(SYS_munmap, p, 16 * P), EPERM);
        touch(p);
        err(sys!(SYS_mprotect, p + 5 * P, P, PROT_READ), EPERM);
        err(sys!(SYS_mprotect, p + 5 * P, P, ALL), EPERM);
        let fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        err(sys!(SYS_mmap, p + 7 * P, 2 * P, ALL, fixed, -1, 0), EPERM);
        err(sys!(SYS_mremap, p + 4 * P, P, 2 * P, MREMAP_MAYMOVE), EPERM);
        err(sys!(SYS_mremap, p + 4 * P, 4 * P, 4 * P, MREMAP_MAYMOVE), EPERM);
        err(sys!(SYS_mremap, p, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, p + 5 * P), EPERM);
        err(sys!(SYS_mremap, p, 8 * P, 4 * P, 0), EPERM);
        touch(p + 4 * P);
        // What it says of memory stays possible, and locks.
        eq(sys!(SYS_mlock, p + 4 * P, P), 0);
        eq(sys!(SYS_munlock, p + 4 * P, P), 0);
        // The rest is as it was.
        ok(sys!(SYS_munmap, p + 8 * P, 8 * P));
        // What comes before the seal is changed.
        err(sys!(SYS_mprotect, p, 8 * P, PROT_READ), EPERM);
        killed_by(
            child(|| {
                touch(p);
                0
            }),
            SIGSEGV,
        );
    });
}

fn seal_and_advice() {
    let discard = [MADV_DONTNEED, MADV_FREE, MADV_DONTFORK, MADV_WIPEONFORK, MADV_DONTNEED_LOCKED, 102];
    in_child(|| {
        let p = map(4, PROT_READ, MAP_PRIVATE);
        eq(sys!(SYS_MSEAL, p, 4 * P, 0), 0);
        for advice in discard {
            err(sys!(SYS_madvise, p, P, advice), EPERM);
        }
        for advice in [MADV_NORMAL, MADV_COLD, MADV_PAGEOUT, MADV_DONTDUMP, MADV_POPULATE_READ, MADV_KEEPONFORK] {
            eq(sys!(SYS_madvise, p, P, advice), 0);
        }
        // Who may write may as well drop.
        let w = map(4, ALL, MAP_PRIVATE);
        eq(sys!(SYS_MSEAL, w, 4 * P, 0), 0);
        eq(sys!(SYS_madvise, w, P, MADV_DONTNEED), 0);
        let s = map(4, PROT_READ, MAP_SHARED);
        eq(sys!(SYS_MSEAL, s, 4 * P, 0), 0);
        eq(sys!(SYS_madvise, s, P, MADV_DONTNEED), 0);
    });
}

fn seal_is_inherited() {
    in_child(|| {
        let p = map(2, PROT_READ, MAP_PRIVATE);
        eq(sys!(SYS_MSEAL, p, P, 0), 0);
        in_child(|| {
            err(sys!(SYS_munmap, p, P), EPERM);
            for _ in 0..20 {
                err(sys!(SYS_madvise, p, P, MADV_DONTNEED), EPERM);
            }
        });
    });
}

/// A field of smaps, in KiB, of the area that begins at an address; or its flags.
fn smaps(at: i64, field: &str) -> String {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&format!("{at:08x}-")));
    let line = lines.find(|line| line.starts_with(&format!("{field}:"))).expect("a field");
    line.split_once(':').expect("a colon").1.trim().trim_end_matches(" kB").into()
}

fn smaps_of_areas() {
    let p = map(600, ALL, MAP_PRIVATE);
    // Apart from its neighbours, whatever lies there.
    let q = p + 100 * P;
    ok(sys!(SYS_mprotect, p, 100 * P, PROT_NONE));
    ok(sys!(SYS_mprotect, p + 500 * P, 100 * P, PROT_NONE));
    ok(sys!(SYS_madvise, q, 400 * P, MADV_NOHUGEPAGE));
    eq(smaps(q, "Rss"), "0");
    for i in [0, 7, 9, 399] {
        touch(q + i * P);
    }
    for (field, kib) in [("Size", "1600"), ("Rss", "16"), ("Pss", "16"), ("Private_Dirty", "16")] {
        eq(smaps(q, field), kib);
    }
    for (field, kib) in [("Anonymous", "16"), ("Shared_Dirty", "0"), ("Private_Clean", "0"), ("Swap", "0")] {
        eq(smaps(q, field), kib);
    }
    ok(sys!(SYS_madvise, q, 8 * P, MADV_DONTNEED));
    eq(smaps(q, "Rss"), "8");
    check(smaps(q, "VmFlags").starts_with("rd wr mr mw me ac"), "flags of private memory");
    if sys!(SYS_mlock, q, 400 * P) == 0 {
        eq(smaps(q, "Locked"), "1600");
        eq(smaps(q, "Rss"), "1600");
        check(smaps(q, "VmFlags").contains(" lo"), "flags of locked memory");
    }
    ok(sys!(SYS_munmap, p, 600 * P));
    let s = map(300, ALL, MAP_SHARED);
    touch(s + 3 * P);
    eq(smaps(s, "Rss"), "4");
    eq(smaps(s, "Anonymous"), "0");
    check(smaps(s, "VmFlags").starts_with("rd wr sh mr mw me ms"), "flags of shared memory");
    ok(sys!(SYS_munmap, s, 300 * P));
}

fn smaps_after_fork() {
    let p = map(600, ALL, MAP_PRIVATE);
    let q = p + 100 * P;
    ok(sys!(SYS_mprotect, p, 100 * P, PROT_NONE));
    ok(sys!(SYS_mprotect, p + 500 * P, 100 * P, PROT_NONE));
    ok(sys!(SYS_madvise, q, 400 * P, MADV_NOHUGEPAGE));
    (0..10).for_each(|i| touch(q + i * P));
    in_child(|| {
        // Shared until one of the two writes.
        touch(q);
        for (field, kib) in [("Rss", "40"), ("Pss", "22"), ("Shared_Dirty", "36"), ("Private_Dirty", "4")] {
            eq(smaps(q, field), kib);
        }
    });
    ok(sys!(SYS_munmap, p, 600 * P));
}

fn page_map() {
    let fd = ok(sys!(SYS_open, c"/proc/self/pagemap".as_ptr(), O_RDONLY));
    let p = map(2000, ALL, MAP_PRIVATE);
    ok(sys!(SYS_madvise, p, 2000 * P, MADV_NOHUGEPAGE));
    for i in [1, 4, 1999] {
        touch(p + i * P);
    }
    let mut words = vec![0u64; 2000];
    eq(sys!(SYS_pread64, fd, words.as_mut_ptr(), 16000, p / P * 8), 16000);
    let present: Vec<usize> = (0..2000).filter(|i| words[*i] >> 63 == 1).collect();
    eq(present, [1, 4, 1999]);
    // Anonymous and mapped once: bits 61 and 56.
    eq(words[4] >> 61 & 1, 0);
    eq(words[4] >> 56 & 1, 1);
    eq(sys!(SYS_pread64, fd, words.as_mut_ptr(), 7, p / P * 8), i64::from(-EINVAL));
    eq(sys!(SYS_pread64, fd, words.as_mut_ptr(), 8, p / P * 8 + 1), i64::from(-EINVAL));
    eq(sys!(SYS_pread64, fd, words.as_mut_ptr(), 8, 1i64 << 45), 0);
    ok(sys!(SYS_munmap, p, 2000 * P));
    eq(sys!(SYS_pread64, fd, words.as_mut_ptr(), 16000, p / P * 8), 16000);
    check(words.iter().all(|word| word >> 63 == 0), "nothing is left");
    shut([fd as i32]);
}

fn maps_have_the_vdso() {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    // SAFETY: a call without preconditions.
    let at = unsafe { getauxval(AT_SYSINFO_EHDR) };
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).expect("a line");
    check(line.starts_with(&format!("{at:08x}-")) && line.contains(" r-xp "), line);
    // Whoever reads it finds an ELF file.
    let mem = std::fs::File::open("/proc/self/mem").expect("mem");
    let mut magic = [0u8; 4];
    std::os::unix::fs::FileExt::read_exact_at(&mem, &mut magic, at).expect("the vDSO");
    eq(&magic, b"\x7fELF");
}
