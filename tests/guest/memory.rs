//! process_vm_readv(2), mlock(2) and its limit, membarrier(2), pkey_alloc(2), memory policies, seals, rarer advice.

use guest_tests::*;
use libc::*;

cases![
    vm_ranges, vm_partial, vm_errors, vm_permissions, lock_limit, lock_all_limit, lock_edges, barrier, barrier_errors, keys, policy,
    policy_errors, policy_nodes, mremap_twice, mremap_twice_private, advice_remove, advice_guard, advice_locked, advice_wipe_on_fork, validate,
    seal_write_busy, seal_future_write, sealed_read_only_map, seal_exec, read_only_map_stays, shared_anonymous_between, shm_coherent,
    lengths_that_wrap
];

fn anon(len: usize, flags: i32) -> usize {
    ok(sys!(SYS_mmap, 0, len, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0)) as usize
}

fn get(p: usize) -> u8 {
    unsafe { (p as *const u8).read_volatile() }
}

fn put(p: usize, v: u8) {
    unsafe { (p as *mut u8).write_volatile(v) }
}

fn unmap(p: usize, len: usize) {
    ok(sys!(SYS_munmap, p, len));
}

fn sleeper() -> i32 {
    child(|| {
        sleep_ms(20_000);
        0
    })
}

fn end(pid: i32) {
    sys!(SYS_kill, pid, SIGKILL);
    reap(pid);
}

fn vm_ranges() {
    let text = *b"abcdefghij";
    let pid = sleeper();
    let base = text.as_ptr() as usize;
    let (mut a, mut b) = ([0u8; 3], [0u8; 7]);
    let local = [a.as_mut_ptr() as usize, 3, b.as_mut_ptr() as usize, 7];
    let remote = [base + 5, 5, base, 0, base, 5];
    eq(sys!(SYS_process_vm_readv, pid, &local, 2, &remote, 3, 0), 10);
    eq(&a, b"fgh");
    eq(&b, b"ijabcde");
    // Own memory too.
    let mut c = [0u8; 10];
    eq(sys!(SYS_process_vm_readv, sys!(SYS_getpid), &[c.as_mut_ptr() as usize, 10], 1, &[base, 10], 1, 0), 10);
    eq(c, text);
    // Less room than data, and the other way round.
    let mut d = [0u8; 4];
    eq(sys!(SYS_process_vm_readv, pid, &[d.as_mut_ptr() as usize, 4], 1, &[base, 10], 1, 0), 4);
    eq(sys!(SYS_process_vm_readv, pid, &[d.as_mut_ptr() as usize, 4], 1, &[base, 2], 1, 0), 2);
    end(pid);
}

fn vm_partial() {
    let p = anon(8192, MAP_PRIVATE);
    put(p, 7);
    ok(sys!(SYS_mprotect, p + 4096, 4096, PROT_NONE));
    let pid = sleeper();
    let mut buf = vec![0u8; 8192];
    let local = [buf.as_mut_ptr() as usize, 8192];
    eq(sys!(SYS_process_vm_readv, pid, &local, 1, &[p, 8192], 1, 0), 4096);
    eq(buf[0], 7);
    eq(sys!(SYS_process_vm_readv, pid, &local, 1, &[p, 10, p + 4096, 10], 2, 0), 10);
    err(sys!(SYS_process_vm_readv, pid, &local, 1, &[p + 4096, 10], 1, 0), EFAULT);
    ok(sys!(SYS_mprotect, p, 4096, PROT_READ));
    let other = sleeper();
    err(sys!(SYS_process_vm_writev, other, &local, 1, &[p, 10], 1, 0), EFAULT);
    eq(sys!(SYS_process_vm_writev, pid, &local, 1, &[p, 10], 1, 0), 10);
    end(pid);
    end(other);
    unmap(p, 8192);
}

fn vm_errors() {
    let pid = sleeper();
    let mut b = [0u8; 8];
    let l = [b.as_mut_ptr() as usize, 8];
    let f = |pid: i32, l: usize, ln: usize, r: usize, rn: usize, flags: u64| {
        sys!(SYS_process_vm_readv, pid, l, ln, r, rn, flags)
    };
    let (lp, rp) = (l.as_ptr() as usize, l.as_ptr() as usize);
    err(f(pid, lp, 1, rp, 1, 1), EINVAL);
    err(f(pid, lp, 1025, rp, 1, 0), EINVAL);
    err(f(pid, lp, 1, rp, 1025, 0), EINVAL);
    err(f(pid, bad() as usize, 1, rp, 1, 0), EFAULT);
    err(f(pid, lp, 1, bad() as usize, 1, 0), EFAULT);
    err(f(pid, [lp, usize::MAX].as_ptr() as usize, 1, rp, 1, 0), EINVAL);
    // Nothing to do is done before anybody is looked for.
    eq(f(99_999_999, lp, 0, rp, 1, 0), 0);
    eq(f(99_999_999, lp, 1, rp, 0, 0), 0);
    err(f(99_999_999, lp, 1, rp, 1, 0), ESRCH);
    err(f(pid, [bad() as usize, 4].as_ptr() as usize, 1, rp, 1, 0), EFAULT);
    end(pid);
}

fn vm_permissions() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs to be root");
    }
    let pid = sleeper();
    let b = [0u8; 8];
    let l = [b.as_ptr() as usize, 8];
    in_child(|| {
        ok(sys!(SYS_setresuid, 1234, 1234, 1234));
        err(sys!(SYS_process_vm_readv, pid, &l, 1, &l, 1, 0), EPERM);
        err(sys!(SYS_process_vm_writev, pid, &l, 1, &l, 1, 0), EPERM);
    });
    end(pid);
}

/// In a child without the right to lock as it likes, with this limit.
fn limited(bytes: u64, f: impl FnOnce()) {
    in_child(|| {
        ok(sys!(SYS_prlimit64, 0, RLIMIT_MEMLOCK, &[bytes, bytes], 0));
        if sys!(SYS_geteuid) == 0 {
            ok(sys!(SYS_setresuid, 1234, 1234, 1234));
        }
        f();
    });
}

fn lock_limit() {
    let p = anon(64 * 4096, MAP_PRIVATE);
    limited(16 * 4096, || {
        eq(sys!(SYS_mlock, p, 16 * 4096), 0);
        // What is locked already counts once.
        eq(sys!(SYS_mlock, p, 16 * 4096), 0);
        err(sys!(SYS_mlock, p, 17 * 4096), ENOMEM);
        err(sys!(SYS_mlock, p + 32 * 4096, 4096), ENOMEM);
        eq(sys!(SYS_munlock, p, 8 * 4096), 0);
        eq(sys!(SYS_mlock, p + 32 * 4096, 8 * 4096), 0);
        err(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0), EAGAIN);
        ok(sys!(SYS_munmap, p + 32 * 4096, 8 * 4096));
        ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
    });
    limited(0, || {
        err(sys!(SYS_mlock, p, 4096), EPERM);
        err(sys!(SYS_mlock2, p, 4096, 1), EPERM);
        err(sys!(SYS_mlockall, MCL_CURRENT), EPERM);
        err(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0), EPERM);
        eq(sys!(SYS_munlock, p, 4096), 0);
        eq(sys!(SYS_munlockall), 0);
    });
    unmap(p, 64 * 4096);
}

fn lock_all_limit() {
    limited(8 * 4096, || {
        err(sys!(SYS_mlockall, MCL_CURRENT), ENOMEM);
        eq(sys!(SYS_mlockall, MCL_FUTURE), 0);
        err(sys!(SYS_mmap, 0, 64 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), EAGAIN);
        ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        eq(sys!(SYS_munlockall), 0);
        ok(sys!(SYS_mmap, 0, 64 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        err(sys!(SYS_mlockall, 4), EINVAL);
    });
}

fn lock_edges() {
    let p = anon(3 * 4096, MAP_PRIVATE);
    eq(sys!(SYS_mlock, p, 0), 0);
    eq(sys!(SYS_mlock, p + 5, 10), 0);
    unmap(p + 4096, 4096);
    err(sys!(SYS_mlock, p, 3 * 4096), ENOMEM);
    err(sys!(SYS_munlock, p, 3 * 4096), ENOMEM);
    // The length wraps around to nothing.
    eq(sys!(SYS_munlock, p, usize::MAX), 0);
    err(sys!(SYS_munlock, p, usize::MAX - 8191), EINVAL);
    unmap(p, 3 * 4096);
}

fn barrier() {
    let all = ok(sys!(SYS_membarrier, 0, 0, 0));
    if all & 0x18 != 0x18 {
        skip("no private barriers here");
    }
    in_child(|| {
        err(sys!(SYS_membarrier, 8, 0, 0), EPERM);
        eq(sys!(SYS_membarrier, 16, 0, 0), 0);
        eq(sys!(SYS_membarrier, 8, 0, 0), 0);
        if all & 0x60 == 0x60 {
            err(sys!(SYS_membarrier, 0x20, 0, 0), EPERM);
            eq(sys!(SYS_membarrier, 0x40, 0, 0), 0);
            eq(sys!(SYS_membarrier, 0x20, 0, 0), 0);
        }
    });
}

fn barrier_errors() {
    err(sys!(SYS_membarrier, 1 << 20, 0, 0), EINVAL);
    err(sys!(SYS_membarrier, 3, 0, 0), EINVAL);
    err(sys!(SYS_membarrier, 0, 1, 0), EINVAL);
    err(sys!(SYS_membarrier, 8, 1, 0), EINVAL);
}

fn keys() {
    err(sys!(SYS_pkey_alloc, 1, 0), EINVAL);
    err(sys!(SYS_pkey_alloc, 0, 4), EINVAL);
    err(sys!(SYS_pkey_free, 9), EINVAL);
    err(sys!(SYS_pkey_free, -1), EINVAL);
    let p = anon(4096, MAP_PRIVATE);
    eq(sys!(SYS_pkey_mprotect, p, 4096, PROT_READ, -1), 0);
    err(sys!(SYS_pkey_mprotect, p, 4096, PROT_READ, 9), EINVAL);
    err(sys!(SYS_pkey_mprotect, p, 4096, PROT_READ, -2), EINVAL);
    let key = sys!(SYS_pkey_alloc, 0, 0);
    if key >= 0 {
        eq(sys!(SYS_pkey_free, key), 0);
    } else {
        // A processor without keys.
        errs(key, &[EINVAL, ENOSPC]);
    }
    unmap(p, 4096);
}

fn policy() {
    let (mut mode, mut mask) = (9i32, [!0u64; 16]);
    if sys!(SYS_get_mempolicy, &mut mode, &mut mask, 1024, 0, 0) == -i64::from(ENOSYS) {
        skip("no memory policies");
    }
    eq((mode, mask[0], mask[15]), (0, 0, 0));
    eq(sys!(SYS_get_mempolicy, 0, &mut mask, 1024, 0, 4), 0);
    eq(mask[0], 1);
    in_child(|| {
        let node = [1u64];
        for (policy, kept) in [(2, 2), (3, 3), (1, 1)] {
            eq(sys!(SYS_set_mempolicy, policy, &node, 64), 0);
            let (mut mode, mut mask) = (9i32, [0u64; 16]);
            eq(sys!(SYS_get_mempolicy, &mut mode, &mut mask, 1024, 0, 0), 0);
            eq((mode, mask[0]), (kept, 1));
        }
        eq(sys!(SYS_set_mempolicy, 1, 0, 0), 0);
        eq(sys!(SYS_set_mempolicy, 0, 0, 0), 0);
    });
    let p = anon(4096, MAP_PRIVATE);
    eq(sys!(SYS_mbind, p, 4096, 2, &[1u64], 64, 0), 0);
    eq(sys!(SYS_mbind, p, 4096, 0, 0, 0, 2), 0);
    put(p, 1);
    let mut node = 9i32;
    eq(sys!(SYS_get_mempolicy, &mut node, 0, 0, p, 3), 0);
    eq(node, 0);
    unmap(p, 4096);
}

fn policy_errors() {
    if sys!(SYS_get_mempolicy, 0, 0, 0, 0, 0) == -i64::from(ENOSYS) {
        skip("no memory policies");
    }
    err(sys!(SYS_set_mempolicy, 99, 0, 0), EINVAL);
    err(sys!(SYS_set_mempolicy, 2, 0, 0), EINVAL);
    err(sys!(SYS_set_mempolicy, 0, &[1u64], 64), EINVAL);
    err(sys!(SYS_set_mempolicy, 2, &[1u64 << 40], 64), EINVAL);
    err(sys!(SYS_set_mempolicy, 2, bad(), 64), EFAULT);
    err(sys!(SYS_get_mempolicy, 0, 0, 0, 0, 8), EINVAL);
    err(sys!(SYS_get_mempolicy, 0, 0, 0, 0x1000, 0), EINVAL);
    let p = anon(4096, MAP_PRIVATE);
    unmap(p, 4096);
    err(sys!(SYS_mbind, p, 4096, 2, &[1u64], 64, 0), EFAULT);
    err(sys!(SYS_mbind, p + 1, 4096, 2, &[1u64], 64, 0), EINVAL);
    err(sys!(SYS_mbind, p, 4096, 2, &[1u64], 64, 64), EINVAL);
    err(sys!(SYS_get_mempolicy, 0, 0, 0, p, 2), EFAULT);
}

/// Nodes that do not exist are left out, unless no other is named.
fn policy_nodes() {
    if sys!(SYS_get_mempolicy, 0, 0, 0, 0, 0) == -i64::from(ENOSYS) {
        skip("no memory policies");
    }
    // MPOL_PREFERRED, MPOL_BIND, MPOL_INTERLEAVE; the relative form.
    const RELATIVE: i32 = 1 << 14;
    for mode in 1..4 {
        ok(sys!(SYS_set_mempolicy, mode, &[1u64 | 1 << 40], 64));
        err(sys!(SYS_set_mempolicy, mode, &[1u64 << 40], 64), EINVAL);
        ok(sys!(SYS_set_mempolicy, mode | RELATIVE, &[1u64 << 40], 64));
    }
    let mut far = [0u64; 32];
    (far[0], far[15]) = (1, 1);
    ok(sys!(SYS_set_mempolicy, 2, &far, 2048));
    far[16] = 1;
    err(sys!(SYS_set_mempolicy, 2, &far, 2048), EINVAL);
    // MPOL_LOCAL and MPOL_DEFAULT take none.
    err(sys!(SYS_set_mempolicy, 4, &[1u64 << 40], 64), EINVAL);
    err(sys!(SYS_set_mempolicy, 0, &[1u64 << 40], 64), EINVAL);
    ok(sys!(SYS_set_mempolicy, 0, 0, 0));
    let p = anon(4096, MAP_PRIVATE);
    ok(sys!(SYS_mbind, p, 4096, 2, &[1u64 | 1 << 40], 64, 0));
    err(sys!(SYS_mbind, p, 4096, 2, &[1u64 << 40], 64, 0), EINVAL);
    unmap(p, 4096);
}

fn mremap_twice() {
    let p = anon(8192, MAP_SHARED);
    put(p + 4096, 5);
    let q = ok(sys!(SYS_mremap, p + 4096, 0, 4096, MREMAP_MAYMOVE, 0)) as usize;
    eq(get(q), 5);
    put(q, 6);
    eq(get(p + 4096), 6);
    let at = anon(4096, MAP_PRIVATE);
    eq(sys!(SYS_mremap, p, 0, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, at) as usize, at);
    put(at, 3);
    eq(get(p), 3);
    err(sys!(SYS_mremap, p, 0, 4096, 0, 0), ENOMEM);
    err(sys!(SYS_mremap, p, 0, 0, MREMAP_MAYMOVE, 0), EINVAL);
    unmap(p, 8192);
    eq((get(q), get(at)), (6, 3));
    unmap(q, 4096);
    unmap(at, 4096);
}

fn mremap_twice_private() {
    let p = anon(4096, MAP_PRIVATE);
    err(sys!(SYS_mremap, p, 0, 4096, MREMAP_MAYMOVE, 0), EINVAL);
    unmap(p, 4096);
}

fn advice_remove() {
    let p = anon(3 * 4096, MAP_SHARED);
    (0..3).for_each(|i| put(p + i * 4096, 9));
    eq(sys!(SYS_madvise, p + 4096, 4096, MADV_REMOVE), 0);
    eq((get(p), get(p + 4096), get(p + 8192)), (9, 0, 9));
    unmap(p, 3 * 4096);
    let q = anon(4096, MAP_PRIVATE);
    err(sys!(SYS_madvise, q, 4096, MADV_REMOVE), EINVAL);
    unmap(q, 4096);
    err(sys!(SYS_madvise, q, 4096, MADV_REMOVE), ENOMEM);
    let fd = ok(sys!(SYS_memfd_create, c"f", 0)) as i32;
    ok(sys!(SYS_ftruncate, fd, 8192));
    let m = ok(sys!(SYS_mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) as usize;
    put(m, 4);
    put(m + 4096, 4);
    eq(sys!(SYS_madvise, m, 4096, MADV_REMOVE), 0);
    let mut b = [7u8; 1];
    eq(sys!(SYS_pread64, fd, &mut b, 1, 0), 1);
    eq((b[0], get(m + 4096)), (0, 4));
    unmap(m, 8192);
    let m = ok(sys!(SYS_mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0)) as usize;
    err(sys!(SYS_madvise, m, 4096, MADV_REMOVE), EACCES);
    unmap(m, 8192);
    shut([fd]);
}

fn advice_guard() {
    let p = anon(3 * 4096, MAP_PRIVATE);
    (0..3).for_each(|i| put(p + i * 4096, 9));
    if sys!(SYS_madvise, p + 4096, 4096, 102) == -i64::from(EINVAL) {
        skip("no guard regions");
    }
    killed_by(child(|| get(p + 4096).into()), SIGSEGV);
    eq((get(p), get(p + 8192)), (9, 9));
    // The kernel does not get there either.
    err(sys!(SYS_getrandom, p + 4096, 8, 0), EFAULT);
    eq(sys!(SYS_madvise, p + 4096, 4096, 103), 0);
    eq(get(p + 4096), 0);
    unmap(p, 3 * 4096);
}

fn advice_locked() {
    let p = anon(8192, MAP_PRIVATE);
    put(p, 1);
    eq(sys!(SYS_mlock, p, 4096), 0);
    for advice in [MADV_DONTNEED, MADV_FREE, MADV_COLD, MADV_PAGEOUT] {
        err(sys!(SYS_madvise, p, 8192, advice), EINVAL);
    }
    eq(get(p), 1);
    eq(sys!(SYS_madvise, p, 4096, MADV_DONTNEED_LOCKED), 0);
    eq(get(p), 0);
    eq(sys!(SYS_msync, p, 4096, MS_ASYNC), 0);
    err(sys!(SYS_msync, p, 4096, MS_ASYNC | MS_INVALIDATE), EBUSY);
    unmap(p, 8192);
}

fn advice_wipe_on_fork() {
    let p = anon(8192, MAP_PRIVATE);
    put(p, 1);
    put(p + 4096, 1);
    eq(sys!(SYS_madvise, p, 4096, MADV_WIPEONFORK), 0);
    exits(child(|| i32::from(get(p)) * 10 + i32::from(get(p + 4096))), 1);
    eq(sys!(SYS_madvise, p, 4096, MADV_KEEPONFORK), 0);
    exits(child(|| i32::from(get(p)) * 10 + i32::from(get(p + 4096))), 11);
    eq(sys!(SYS_madvise, p, 4096, MADV_DONTFORK), 0);
    killed_by(child(|| get(p).into()), SIGSEGV);
    unmap(p, 8192);
    let s = anon(4096, MAP_SHARED);
    err(sys!(SYS_madvise, s, 4096, MADV_WIPEONFORK), EINVAL);
    unmap(s, 4096);
}

fn validate() {
    let t = Tmp::new();
    let fd = t.file("f", b"x");
    let f = |flags: i32| sys!(SYS_mmap, 0, 4096, PROT_READ, flags, fd, 0);
    let p = ok(f(MAP_SHARED_VALIDATE | MAP_POPULATE)) as usize;
    unmap(p, 4096);
    err(f(MAP_SHARED_VALIDATE | MAP_SYNC), EOPNOTSUPP);
    err(f(MAP_SHARED_VALIDATE | 1 << 22), EOPNOTSUPP);
    // MAP_SHARED ignores what it does not know.
    unmap(ok(f(MAP_SHARED | 1 << 22)) as usize, 4096);
    err(f(0), EINVAL);
    err(f(4), EINVAL);
    shut([fd]);
}

fn memfd(flags: u32) -> i32 {
    let fd = ok(sys!(SYS_memfd_create, c"sealed", flags | MFD_ALLOW_SEALING)) as i32;
    ok(sys!(SYS_ftruncate, fd, 4096));
    fd
}

fn map(fd: i32, prot: i32, flags: i32) -> i64 {
    sys!(SYS_mmap, 0, 4096, prot, flags, fd, 0)
}

fn seal_write_busy() {
    let fd = memfd(0);
    let p = ok(map(fd, PROT_READ | PROT_WRITE, MAP_SHARED)) as usize;
    err(sys!(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_WRITE), EBUSY);
    eq(sys!(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_GROW), 0);
    unmap(p, 4096);
    // It could be made writable: the descriptor allows it.
    let p = ok(map(fd, PROT_READ, MAP_SHARED)) as usize;
    err(sys!(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_WRITE), EBUSY);
    unmap(p, 4096);
    let p = ok(map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE)) as usize;
    eq(sys!(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    put(p, 1);
    unmap(p, 4096);
    err(map(fd, PROT_READ | PROT_WRITE, MAP_SHARED), EPERM);
    err(sys!(SYS_write, fd, b"x", 1), EPERM);
    shut([fd]);
}

fn seal_future_write() {
    let fd = memfd(0);
    let p = ok(map(fd, PROT_READ | PROT_WRITE, MAP_SHARED)) as usize;
    eq(sys!(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
    put(p, 7);
    err(map(fd, PROT_READ | PROT_WRITE, MAP_SHARED), EPERM);
    err(sys!(SYS_write, fd, b"x", 1), EPERM);
    let mut b = [0u8; 1];
    eq(sys!(SYS_pread64, fd, &mut b, 1, 0), 1);
    eq(b[0], 7);
    let q = ok(map(fd, PROT_READ, MAP_SHARED)) as usize;
    eq(get(q), 7);
    err(sys!(SYS_mprotect, q, 4096, PROT_READ | PROT_WRITE), EACCES);
    unmap(p, 4096);
    unmap(q, 4096);
    shut([fd]);
}

fn sealed_read_only_map() {
    let fd = memfd(0);
    eq(sys!(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    let p = ok(map(fd, PROT_READ, MAP_SHARED)) as usize;
    err(sys!(SYS_mprotect, p, 4096, PROT_READ | PROT_WRITE), EACCES);
    unmap(p, 4096);
    let p = ok(map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE)) as usize;
    put(p, 1);
    unmap(p, 4096);
    shut([fd]);
}

fn seal_exec() {
    let fd = ok(sys!(SYS_memfd_create, c"x", 8)) as i32;
    eq(sys!(SYS_fcntl, fd, F_GET_SEALS), 0x20);
    eq(stat_fd(fd).st_mode & 0o777, 0o666);
    err(sys!(SYS_fchmod, fd, 0o777), EPERM);
    eq(sys!(SYS_fchmod, fd, 0o600), 0);
    eq(sys!(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SEAL), 0);
    err(sys!(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_GROW), EPERM);
    shut([fd]);
    let fd = ok(sys!(SYS_memfd_create, c"x", 16)) as i32;
    eq(sys!(SYS_fcntl, fd, F_GET_SEALS), 1);
    eq(stat_fd(fd).st_mode & 0o777, 0o777);
    shut([fd]);
    err(sys!(SYS_memfd_create, c"x", 24), EINVAL);
    err(sys!(SYS_memfd_create, c"x", 0x40), EINVAL);
}

/// What was opened for reading is mapped for reading, whatever is tried.
fn read_only_map_stays() {
    let t = Tmp::new();
    for path in [t.path("f"), unique("/dev/shm/guest-read-only")] {
        let fd = ok(sys!(SYS_open, path, O_RDWR | O_CREAT | O_TRUNC, 0o644));
        ok(sys!(SYS_ftruncate, fd, 4096));
        let ro = ok(sys!(SYS_open, path, O_RDONLY)) as i32;
        err(map(ro, PROT_READ | PROT_WRITE, MAP_SHARED), EACCES);
        let p = ok(map(ro, PROT_READ, MAP_SHARED)) as usize;
        err(sys!(SYS_mprotect, p, 4096, PROT_READ | PROT_WRITE), EACCES);
        err(sys!(SYS_mprotect, p, 4096, PROT_WRITE), EACCES);
        let q = ok(map(ro, PROT_READ | PROT_WRITE, MAP_PRIVATE)) as usize;
        put(q, 5);
        eq(get(p), 0);
        // Moved, it stays what it was.
        let p = ok(sys!(SYS_mremap, p, 0, 4096, MREMAP_MAYMOVE, 0)) as usize;
        err(sys!(SYS_mprotect, p, 4096, PROT_READ | PROT_WRITE), EACCES);
        shut([fd as i32, ro]);
        ok(sys!(SYS_unlink, path));
    }
}

fn shared_anonymous_between() {
    let p = anon(4096, MAP_SHARED);
    exits(
        child(|| {
            put(p, 42);
            exits(
                child(|| {
                    put(p + 1, 43);
                    0
                }),
                0,
            );
            0
        }),
        0,
    );
    eq((get(p), get(p + 1)), (42, 43));
    unmap(p, 4096);
}

fn shm_coherent() {
    let path = unique("/dev/shm/guest-coherent");
    let fd = ok(sys!(SYS_open, path, O_RDWR | O_CREAT | O_TRUNC, 0o600)) as i32;
    eq(sys!(SYS_write, fd, b"before", 6), 6);
    ok(sys!(SYS_ftruncate, fd, 8192));
    let p = ok(map(fd, PROT_READ | PROT_WRITE, MAP_SHARED)) as usize;
    eq(get(p), b'b');
    eq(sys!(SYS_pwrite64, fd, b"B", 1, 0), 1);
    eq(get(p), b'B');
    exits(
        child(|| {
            let other = ok(sys!(SYS_open, path, O_RDWR)) as i32;
            let q = ok(map(other, PROT_READ | PROT_WRITE, MAP_SHARED)) as usize;
            put(q + 1, b'X');
            let mut b = [0u8; 2];
            eq(sys!(SYS_pread64, other, &mut b, 2, 0), 2);
            eq(&b, b"BX");
            0
        }),
        0,
    );
    eq(get(p + 1), b'X');
    let mut b = [0u8; 2];
    eq(sys!(SYS_pread64, fd, &mut b, 2, 0), 2);
    eq(&b, b"BX");
    unmap(p, 4096);
    ok(sys!(SYS_unlink, path));
    shut([fd]);
}

/// Ranges at the end of all addresses, and of no bytes.
fn lengths_that_wrap() {
    let p = anon(8192, MAP_PRIVATE);
    eq(sys!(SYS_msync, p, -1isize, MS_SYNC), 0);
    err(sys!(SYS_msync, p, !0xfffusize, MS_SYNC), ENOMEM);
    err(sys!(SYS_mlock, -1isize, 1), EINVAL);
    err(sys!(SYS_mlock, -1isize, 4096), EINVAL);
    err(sys!(SYS_mlock2, -4096isize, 4096, 1), EINVAL);
    err(sys!(SYS_munlock, -1isize, 4096), EINVAL);
    eq(sys!(SYS_mprotect, p, 0, 0xa00), 0);
    eq(sys!(SYS_pkey_mprotect, p, 0, PROT_READ, 5), 0);
    err(sys!(SYS_mprotect, p + 1, 0, PROT_READ), EINVAL);
    err(sys!(SYS_mprotect, p, 0, PROT_GROWSDOWN | PROT_GROWSUP), EINVAL);
    err(sys!(SYS_mprotect, p, -1isize, 0xa00), ENOMEM);
    err(sys!(SYS_mprotect, p, 4096, 0xa00), EINVAL);
    err(sys!(SYS_pkey_mprotect, p, 4096, PROT_READ, 5), EINVAL);
    ok(sys!(SYS_munmap, p, 8192));
}
