//! mmap(2), munmap(2), mprotect(2), mremap(2), madvise(2), brk(2), msync(2), mincore(2), mlock(2).

use guest_tests::*;
use libc::*;

cases![
    anonymous_is_zero, file_private, file_shared, file_offset, shared_between_processes, private_after_fork, fixed_replaces, noreplace, hint,
    errors, file_mode_errors, past_end_of_file_bus, munmap_middle, munmap_errors, munmap_unmapped, mprotect_fault, mprotect_errors,
    mprotect_splits, exec_code, mremap_grow_in_place_or_move, mremap_shrink, mremap_fixed, mremap_errors, mremap_dontunmap, madvise_dontneed,
    madvise_advices, madvise_errors, refused_advice_changes_nothing, brk_grows, msync_basic, msync_errors, mincore_basic, mlock_basic, mlock_errors, survives_close,
    unlinked_file, shared_write_needs_write, dev_zero_map, large_reservation, growsdown_stack, write_read_only_fault, partial_page_tail
];

const RW: i32 = PROT_READ | PROT_WRITE;
const ANON: i32 = MAP_PRIVATE | MAP_ANONYMOUS;

#[track_caller]
fn anon(len: usize) -> usize {
    ok(sys!(SYS_mmap, 0, len, RW, ANON, -1, 0)) as usize
}

fn get(p: usize) -> u8 {
    unsafe { (p as *const u8).read_volatile() }
}

fn put(p: usize, v: u8) {
    unsafe { (p as *mut u8).write_volatile(v) }
}

fn unmap(p: usize, len: usize) {
    eq(sys!(SYS_munmap, p, len), 0);
}

/// Whether a one-byte access faults with a signal: a child tries.
fn faults(p: usize, write: bool) -> i32 {
    let s = reap(child(|| {
        for s in [SIGSEGV, SIGBUS] {
            sig::handle(s, SIG_DFL, 0);
        }
        if write { put(p, 1) } else { get(p); }
        0
    }));
    if WIFSIGNALED(s) { WTERMSIG(s) } else { 0 }
}

fn anonymous_is_zero() {
    let p = anon(1 << 20);
    eq(p % 4096, 0);
    for i in (0..1 << 20).step_by(4096) {
        eq(get(p + i), 0);
        put(p + i, i as u8);
    }
    unmap(p, 1 << 20);
}

fn file_private() {
    let t = Tmp::new();
    let fd = t.file("f", b"hello");
    let p = ok(sys!(SYS_mmap, 0, 4096, RW, MAP_PRIVATE, fd, 0)) as usize;
    eq(get(p), b'h');
    eq(get(p + 5), 0);
    put(p, b'J');
    eq(t.read("f"), b"hello");
    unmap(p, 4096);
    shut([fd]);
}

fn file_shared() {
    let t = Tmp::new();
    let fd = t.file("f", b"hello");
    let p = ok(sys!(SYS_mmap, 0, 4096, RW, MAP_SHARED, fd, 0)) as usize;
    put(p, b'J');
    eq(t.read("f"), b"Jello");
    eq(sys!(SYS_pwrite64, fd, b"y", 1, 4), 1);
    eq(get(p + 4), b'y');
    // Bytes behind the end are not written back.
    put(p + 100, 1);
    unmap(p, 4096);
    eq(t.read("f"), b"Jelly");
    shut([fd]);
}

fn file_offset() {
    let t = Tmp::new();
    let mut data = vec![0u8; 12288];
    data[4096] = 7;
    data[8192] = 9;
    let fd = t.file("f", &data);
    let p = ok(sys!(SYS_mmap, 0, 8192, PROT_READ, MAP_PRIVATE, fd, 4096)) as usize;
    eq((get(p), get(p + 4096)), (7, 9));
    unmap(p, 8192);
    shut([fd]);
}

fn shared_between_processes() {
    let p = ok(sys!(SYS_mmap, 0, 4096, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) as usize;
    exits(
        child(|| {
            put(p, 42);
            0
        }),
        0,
    );
    eq(get(p), 42);
    unmap(p, 4096);
}

fn private_after_fork() {
    let p = anon(4096);
    put(p, 1);
    let pid = child(|| {
        put(p, 2);
        i32::from(get(p))
    });
    exits(pid, 2);
    eq(get(p), 1);
    unmap(p, 4096);
}

fn fixed_replaces() {
    let p = anon(3 * 4096);
    for i in 0..3 {
        put(p + i * 4096, 5);
    }
    eq(sys!(SYS_mmap, p + 4096, 4096, RW, ANON | MAP_FIXED, -1, 0), (p + 4096) as i64);
    eq((get(p), get(p + 4096), get(p + 8192)), (5, 0, 5));
    unmap(p, 3 * 4096);
}

fn noreplace() {
    let p = anon(2 * 4096);
    err(sys!(SYS_mmap, p, 4096, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
    unmap(p, 4096);
    eq(sys!(SYS_mmap, p, 4096, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), p as i64);
    unmap(p, 2 * 4096);
}

fn hint() {
    let p = anon(8 * 4096);
    unmap(p, 8 * 4096);
    // A free hint is taken, one in use is not.
    eq(sys!(SYS_mmap, p, 4096, RW, ANON, -1, 0), p as i64);
    let q = ok(sys!(SYS_mmap, p, 4096, RW, ANON, -1, 0)) as usize;
    check(q != p, "elsewhere");
    unmap(p, 4096);
    unmap(q, 4096);
}

fn errors() {
    err(sys!(SYS_mmap, 0, 0, RW, ANON, -1, 0), EINVAL);
    err(sys!(SYS_mmap, 0, 4096, RW, MAP_ANONYMOUS, -1, 0), EINVAL);
    err(sys!(SYS_mmap, 123, 4096, RW, ANON | MAP_FIXED, -1, 0), EINVAL);
    err(sys!(SYS_mmap, 0, 4096, RW, ANON, -1, 5), EINVAL);
    err(sys!(SYS_mmap, 0, 4096, RW, MAP_PRIVATE, -1, 0), EBADF);
    err(sys!(SYS_mmap, 0, 1usize << 47, RW, ANON, -1, 0), ENOMEM);
    err(sys!(SYS_mmap, 0, usize::MAX, RW, ANON, -1, 0), ENOMEM);
    err(sys!(SYS_mmap, 1usize << 47, 4096, RW, ANON | MAP_FIXED, -1, 0), ENOMEM);
    let p = pipe_pair();
    err(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, p[0], 0), ENODEV);
    shut(p);
}

fn file_mode_errors() {
    let t = Tmp::new();
    shut([t.file("f", b"x")]);
    let w = ok(t.open("f", O_WRONLY)) as i32;
    err(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, w, 0), EACCES);
    err(sys!(SYS_mmap, 0, 4096, PROT_WRITE, MAP_SHARED, w, 0), EACCES);
    let d = ok(t.open("", O_RDONLY)) as i32;
    err(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, d, 0), ENODEV);
    shut([w, d]);
}

fn past_end_of_file_bus() {
    let t = Tmp::new();
    let fd = t.file("f", b"x");
    let p = ok(sys!(SYS_mmap, 0, 8192, RW, MAP_SHARED, fd, 0)) as usize;
    eq(get(p + 4095), 0);
    eq(faults(p + 4096, false), SIGBUS);
    ok(sys!(SYS_ftruncate, fd, 8192));
    eq(faults(p + 4096, false), 0);
    unmap(p, 8192);
    shut([fd]);
}

fn munmap_middle() {
    let p = anon(3 * 4096);
    put(p, 1);
    put(p + 8192, 3);
    unmap(p + 4096, 4096);
    eq((get(p), get(p + 8192)), (1, 3));
    eq(faults(p + 4096, false), SIGSEGV);
    unmap(p, 3 * 4096);
}

fn munmap_errors() {
    let p = anon(4096);
    err(sys!(SYS_munmap, p + 1, 4096), EINVAL);
    err(sys!(SYS_munmap, p, 0), EINVAL);
    err(sys!(SYS_munmap, 1usize << 47, 4096), EINVAL);
    err(sys!(SYS_munmap, p, usize::MAX), EINVAL);
    // The length is rounded up.
    eq(sys!(SYS_munmap, p, 1), 0);
    eq(faults(p, false), SIGSEGV);
}

fn munmap_unmapped() {
    let p = anon(4096);
    unmap(p, 4096);
    eq(sys!(SYS_munmap, p, 4096), 0);
}

fn mprotect_fault() {
    let p = anon(4096);
    put(p, 9);
    eq(sys!(SYS_mprotect, p, 4096, PROT_READ), 0);
    eq(get(p), 9);
    eq(faults(p, true), SIGSEGV);
    eq(sys!(SYS_mprotect, p, 4096, PROT_NONE), 0);
    eq(faults(p, false), SIGSEGV);
    // The kernel respects it too.
    let q = pipe_pair();
    err(sys!(SYS_write, q[1], p, 1), EFAULT);
    eq(sys!(SYS_mprotect, p, 4096, RW), 0);
    eq(get(p), 9);
    unmap(p, 4096);
    shut(q);
}

fn mprotect_errors() {
    let p = anon(4096);
    err(sys!(SYS_mprotect, p + 1, 4096, PROT_READ), EINVAL);
    err(sys!(SYS_mprotect, p, 4096, 0x100), EINVAL);
    eq(sys!(SYS_mprotect, p, 0, PROT_READ), 0);
    unmap(p, 4096);
    err(sys!(SYS_mprotect, p, 4096, PROT_READ), ENOMEM);
    let t = Tmp::new();
    shut([t.file("f", b"x")]);
    let fd = ok(t.open("f", O_RDONLY)) as i32;
    let p = ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_SHARED, fd, 0)) as usize;
    err(sys!(SYS_mprotect, p, 4096, RW), EACCES);
    unmap(p, 4096);
    shut([fd]);
}

fn mprotect_splits() {
    let p = anon(3 * 4096);
    ok(sys!(SYS_mprotect, p + 4096, 4096, PROT_READ));
    put(p, 1);
    put(p + 8192, 1);
    eq(faults(p + 4096, true), SIGSEGV);
    ok(sys!(SYS_mprotect, p, 3 * 4096, RW));
    put(p + 4096, 1);
    unmap(p, 3 * 4096);
}

fn exec_code() {
    let p = anon(4096);
    // mov eax, 42; ret
    for (i, b) in [0xb8u8, 42, 0, 0, 0, 0xc3].iter().enumerate() {
        put(p + i, *b);
    }
    let s = reap(child(|| {
        sig::handle(SIGSEGV, SIG_DFL, 0);
        let f: extern "C" fn() -> i32 = unsafe { std::mem::transmute(p) };
        f()
    }));
    check(WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV, "no execution without PROT_EXEC");
    ok(sys!(SYS_mprotect, p, 4096, PROT_READ | PROT_EXEC));
    let f: extern "C" fn() -> i32 = unsafe { std::mem::transmute(p) };
    eq(f(), 42);
    unmap(p, 4096);
}

fn mremap_grow_in_place_or_move() {
    let p = anon(4096);
    put(p, 7);
    let q = ok(sys!(SYS_mremap, p, 4096, 1 << 20, MREMAP_MAYMOVE, 0)) as usize;
    eq(get(q), 7);
    eq(get(q + (1 << 20) - 1), 0);
    unmap(q, 1 << 20);
    let p = anon(2 * 4096);
    // The page behind is in use: without leave to move there is no room.
    err(sys!(SYS_mremap, p, 4096, 8192, 0, 0), ENOMEM);
    unmap(p + 4096, 4096);
    eq(sys!(SYS_mremap, p, 4096, 8192, 0, 0), p as i64);
    unmap(p, 8192);
}

fn mremap_shrink() {
    let p = anon(4 * 4096);
    eq(sys!(SYS_mremap, p, 4 * 4096, 4096, 0, 0), p as i64);
    eq(faults(p + 4096, false), SIGSEGV);
    put(p, 1);
    unmap(p, 4096);
}

fn mremap_fixed() {
    let p = anon(4096);
    let q = anon(4096);
    put(p, 5);
    put(q, 6);
    eq(sys!(SYS_mremap, p, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, q), q as i64);
    eq(get(q), 5);
    eq(faults(p, false), SIGSEGV);
    unmap(q, 4096);
}

fn mremap_errors() {
    let p = anon(4 * 4096);
    err(sys!(SYS_mremap, p + 1, 4096, 4096, 0, 0), EINVAL);
    err(sys!(SYS_mremap, p, 4096, 0, 0, 0), EINVAL);
    err(sys!(SYS_mremap, p, 4096, 4096, 0x80, 0), EINVAL);
    err(sys!(SYS_mremap, p, 4096, 4096, MREMAP_FIXED, p + 8192), EINVAL);
    err(sys!(SYS_mremap, p, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, p + 4096), EINVAL);
    unmap(p, 4 * 4096);
    err(sys!(SYS_mremap, p, 4096, 8192, MREMAP_MAYMOVE, 0), EFAULT);
}

fn mremap_dontunmap() {
    let p = anon(4096);
    put(p, 5);
    let q = ok(sys!(SYS_mremap, p, 4096, 4096, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0)) as usize;
    eq((get(q), get(p)), (5, 0));
    unmap(p, 4096);
    unmap(q, 4096);
}

fn madvise_dontneed() {
    let p = anon(8192);
    put(p, 1);
    put(p + 4096, 2);
    eq(sys!(SYS_madvise, p, 4096, MADV_DONTNEED), 0);
    eq((get(p), get(p + 4096)), (0, 2));
    unmap(p, 8192);
    let t = Tmp::new();
    let fd = t.file("f", b"abc");
    let p = ok(sys!(SYS_mmap, 0, 4096, RW, MAP_PRIVATE, fd, 0)) as usize;
    put(p, b'X');
    eq(sys!(SYS_madvise, p, 4096, MADV_DONTNEED), 0);
    eq(get(p), b'a');
    unmap(p, 4096);
    shut([fd]);
}

fn madvise_advices() {
    let p = anon(8192);
    for a in [MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_FREE, MADV_DONTFORK, MADV_DOFORK, MADV_DONTDUMP, MADV_DODUMP] {
        eq(sys!(SYS_madvise, p, 8192, a), 0);
    }
    // MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_READ, MADV_POPULATE_WRITE
    for a in [20, 22, 23] {
        eq(sys!(SYS_madvise, p, 8192, a), 0);
    }
    ok(sys!(SYS_madvise, p, 8192, MADV_DONTFORK));
    eq(faults(p, false), SIGSEGV);
    ok(sys!(SYS_madvise, p, 8192, MADV_DOFORK));
    put(p, 3);
    ok(sys!(SYS_madvise, p, 8192, 18)); // MADV_WIPEONFORK
    exits(child(|| i32::from(get(p))), 0);
    unmap(p, 8192);
}

fn madvise_errors() {
    let p = anon(4096);
    err(sys!(SYS_madvise, p, 4096, 9999), EINVAL);
    err(sys!(SYS_madvise, p + 1, 4096, MADV_NORMAL), EINVAL);
    unmap(p, 4096);
    err(sys!(SYS_madvise, p, 4096, MADV_NORMAL), ENOMEM);
}

fn refused_advice_changes_nothing() {
    // MADV_POPULATE_WRITE of what may not be written, right after it was mapped.
    let p = ok(sys!(SYS_mmap, 0, 8192, PROT_READ, ANON, -1, 0)) as usize;
    err(sys!(SYS_madvise, p, 8192, 23), EINVAL);
    eq(get(p + 4096), 0);
    eq(sys!(SYS_mprotect, p, 8192, RW), 0);
    put(p + 4096, 1);
    unmap(p, 8192);
}

fn brk_grows() {
    in_child(|| {
        let b = sys!(SYS_brk, 0);
        check(b > 0, "a break");
        let n = b + (1 << 20);
        eq(sys!(SYS_brk, n), n);
        put(b as usize + (1 << 19), 1);
        // A refused request answers with the break as it is.
        eq(sys!(SYS_brk, 1), n);
        eq(sys!(SYS_brk, -1), n);
        eq(sys!(SYS_brk, b), b);
        eq(sys!(SYS_brk, n), n);
        eq(get(b as usize + (1 << 19)), 0);
        eq(sys!(SYS_brk, b), b);
    });
}

fn msync_basic() {
    let t = Tmp::new();
    let fd = t.file("f", &[0u8; 8192]);
    let p = ok(sys!(SYS_mmap, 0, 8192, RW, MAP_SHARED, fd, 0)) as usize;
    put(p, 1);
    eq(sys!(SYS_msync, p, 8192, MS_SYNC), 0);
    eq(sys!(SYS_msync, p, 8192, MS_ASYNC), 0);
    eq(sys!(SYS_msync, p, 8192, MS_INVALIDATE), 0);
    unmap(p, 8192);
    shut([fd]);
}

fn msync_errors() {
    let p = anon(4096);
    err(sys!(SYS_msync, p, 4096, MS_SYNC | MS_ASYNC), EINVAL);
    err(sys!(SYS_msync, p + 1, 4096, MS_SYNC), EINVAL);
    err(sys!(SYS_msync, p, 4096, 8), EINVAL);
    unmap(p, 4096);
    err(sys!(SYS_msync, p, 4096, MS_SYNC), ENOMEM);
}

fn mincore_basic() {
    let p = anon(3 * 4096);
    put(p, 1);
    let mut v = [0xffu8; 3];
    eq(sys!(SYS_mincore, p, 3 * 4096, &mut v), 0);
    eq(v[0] & 1, 1);
    err(sys!(SYS_mincore, p + 1, 4096, &mut v), EINVAL);
    err(sys!(SYS_mincore, p, 4096, bad()), EFAULT);
    unmap(p, 3 * 4096);
    err(sys!(SYS_mincore, p, 4096, &mut v), ENOMEM);
}

fn mlock_basic() {
    let p = anon(8192);
    eq(sys!(SYS_mlock, p, 8192), 0);
    eq(sys!(SYS_munlock, p, 8192), 0);
    eq(sys!(SYS_mlock2, p, 4096, 1), 0);
    unmap(p, 8192);
    eq(sys!(SYS_munlockall), 0);
}

fn mlock_errors() {
    let p = anon(4096);
    unmap(p, 4096);
    err(sys!(SYS_mlock, p, 4096), ENOMEM);
    err(sys!(SYS_munlock, p, 4096), ENOMEM);
    err(sys!(SYS_mlock2, p, 4096, 8), EINVAL);
    err(sys!(SYS_mlockall, 0), EINVAL);
    err(sys!(SYS_mlockall, 0x100), EINVAL);
}

fn survives_close() {
    let t = Tmp::new();
    let fd = t.file("f", b"hello");
    let p = ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_SHARED, fd, 0)) as usize;
    shut([fd]);
    eq(get(p + 1), b'e');
    unmap(p, 4096);
}

fn unlinked_file() {
    let t = Tmp::new();
    let fd = t.file("f", b"hello");
    ok(sys!(SYS_unlink, t.path("f")));
    let p = ok(sys!(SYS_mmap, 0, 4096, RW, MAP_SHARED, fd, 0)) as usize;
    put(p, b'J');
    let mut b = [0u8; 5];
    eq(sys!(SYS_pread64, fd, &mut b, 5, 0), 5);
    eq(&b, b"Jello");
    unmap(p, 4096);
    shut([fd]);
}

fn shared_write_needs_write() {
    let t = Tmp::new();
    shut([t.file("f", b"x")]);
    let r = ok(t.open("f", O_RDONLY)) as i32;
    err(sys!(SYS_mmap, 0, 4096, RW, MAP_SHARED, r, 0), EACCES);
    let p = ok(sys!(SYS_mmap, 0, 4096, RW, MAP_PRIVATE, r, 0)) as usize;
    put(p, b'y');
    unmap(p, 4096);
    eq(t.read("f"), b"x");
    shut([r]);
}

fn dev_zero_map() {
    let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/zero", O_RDWR, 0)) as i32;
    let p = ok(sys!(SYS_mmap, 0, 4096, RW, MAP_PRIVATE, fd, 0)) as usize;
    eq(get(p), 0);
    put(p, 1);
    unmap(p, 4096);
    shut([fd]);
}

fn large_reservation() {
    // As runtimes reserve address space.
    let n = 1usize << 36;
    let p = ok(sys!(SYS_mmap, 0, n, PROT_NONE, ANON | MAP_NORESERVE, -1, 0)) as usize;
    ok(sys!(SYS_mprotect, p + (n >> 1), 4096, RW));
    put(p + (n >> 1), 1);
    unmap(p, n);
}

fn growsdown_stack() {
    // The main thread's stack grows by itself: 4 MiB of frames.
    fn deep(n: usize) -> usize {
        let a = std::hint::black_box([n as u8; 4096]);
        if n == 0 { 0 } else { deep(n - 1) + usize::from(a[n % 4096] == n as u8) }
    }
    in_child(|| eq(deep(1000), 1000));
}

fn write_read_only_fault() {
    let p = anon(4096);
    put(p, 1);
    ok(sys!(SYS_mprotect, p, 4096, PROT_READ));
    // A call that would write there fails and changes nothing.
    err(sys!(SYS_getcwd, p, 4096), EFAULT);
    err(sys!(SYS_pipe2, p, 0), EFAULT);
    eq(get(p), 1);
    unmap(p, 4096);
}

fn partial_page_tail() {
    let t = Tmp::new();
    let fd = t.file("f", &[b'x'; 5000]);
    let p = ok(sys!(SYS_mmap, 0, 5000, PROT_READ, MAP_PRIVATE, fd, 0)) as usize;
    eq((get(p + 4999), get(p + 5000), get(p + 8191)), (b'x', 0, 0));
    unmap(p, 5000);
    shut([fd]);
}
