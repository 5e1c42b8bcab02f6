//! Runs the base filter in a child process, at addresses inside and outside the shim's code, with allowed and
//! forbidden forms of the calls.

use confine::rules::Cond;
use lazaret_shim::layout;
use platform::guestfilter;

/// Forks a child that installs the filter, maps a page of code where the shim would be, and makes one call from
/// it. The call's result; -1000 - signal if it was killed.
fn call(inside: bool, nr: u64, args: [u64; 6]) -> i64 {
    let filter = guestfilter::assemble();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut().cast() };
    let mut result = [0i32; 2];
    // SAFETY: plain host calls; the child touches only memory it has and ends by _exit or a signal.
    unsafe {
        assert_eq!(libc::pipe(result.as_mut_ptr()), 0);
        let code: [u8; 24] = [
            0x48, 0x89, 0xf8, // mov rax, rdi (nr)
            0x48, 0x89, 0xf7, // mov rdi, rsi
            0x48, 0x89, 0xd6, // mov rsi, rdx
            0x48, 0x89, 0xca, // mov rdx, rcx
            0x4d, 0x89, 0xc2, // mov r10, r8
            0x4d, 0x89, 0xc8, // mov r8, r9
            0x45, 0x31, 0xc9, // xor r9d, r9d
            0x0f, 0x05, // syscall
            0xc3,
        ];
        let page = libc::mmap(
            if inside { layout::CODE as *mut libc::c_void } else { std::ptr::null_mut() },
            4096,
            libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if inside { libc::MAP_FIXED_NOREPLACE } else { 0 },
            -1,
            0,
        );
        assert_ne!(page, libc::MAP_FAILED);
        std::ptr::copy_nonoverlapping(code.as_ptr(), page.cast(), code.len());
        let enter: extern "C" fn(u64, u64, u64, u64, u64, u64) -> i64 = std::mem::transmute(page);
        // The result goes out through shared memory: no call but the one under test is allowed by then.
        let shared = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
        .cast::<i64>();
        shared.write(i64::MIN);
        let pid = libc::fork();
        if pid == 0 {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            if libc::syscall(libc::SYS_seccomp, 1, 0, &raw const program) != 0 {
                libc::_exit(1);
            }
            shared.write_volatile(enter(nr, args[0], args[1], args[2], args[3], args[4]));
            // exit is refused out here, and the filter's SIGSYS ends us.
            libc::_exit(0);
        }
        let mut status = 0;
        libc::waitpid(pid, &raw mut status, 0);
        let value = shared.read_volatile();
        libc::munmap(page, 4096);
        libc::munmap(shared.cast(), 4096);
        libc::close(result[0]);
        libc::close(result[1]);
        if value == i64::MIN { -1000 - i64::from(status & 0x7f) } else { value }
    }
}

const EPERM: i64 = -1;
const EBADF: i64 = -9;
const SIGSYS: i64 = -1031;

#[test]
fn judges_calls() {
    let (anonymous, shared) = (0x32, 0x11);
    let limit = layout::REGION_START;
    // Outside the shim everything traps.
    assert_eq!(call(false, 39, [0; 6]), SIGSYS);
    assert_eq!(call(false, 9, [0x10_0000, 4096, 3, anonymous, u64::MAX, 0]), SIGSYS);
    // Inside, calls that are not in the table fail.
    for nr in [39, 0, 1, 2, 41, 42, 57, 59, 62, 101, 157, 158, 231, 257, 322, 435, 0x4000_0000 + 9] {
        assert_eq!(call(true, nr, [0; 6]), EPERM, "call {nr}");
    }
    assert_eq!(call(true, 9, [0x10_0000, 4096, 3, anonymous, u64::MAX, 0]), 0x10_0000);
    // Not fixed, not private, unknown flag, odd protection.
    assert_eq!(call(true, 9, [0x10_0000, 4096, 3, 0x22, u64::MAX, 0]), EPERM);
    assert_eq!(call(true, 9, [0x10_0000, 4096, 3, 0x31, u64::MAX, 0]), EPERM);
    assert_eq!(call(true, 9, [0x10_0000, 4096, 3, 0x4_0032, u64::MAX, 0]), EPERM);
    assert_eq!(call(true, 9, [0x10_0000, 4096, 0x13, anonymous, u64::MAX, 0]), EPERM);
    assert_eq!(call(true, 10, [0x10_0000, 4096, 0x13, 0, 0, 0]), EPERM);
    // The same of shared memory: the host, which is asked when a form is admitted, knows no such descriptor.
    assert_eq!(call(true, 9, [0x10_0000, 4096, 3, shared, 999, 0]), EBADF);
    for (prot, flags) in [(3, 0x1), (3, 0x13), (3, 0x31), (3, 0x4_0011), (0x13, shared)] {
        assert_eq!(call(true, 9, [0x10_0000, 4096, prot, flags, 999, 0]), EPERM, "{prot:#x} {flags:#x}");
    }
    // In the shim's range only the shared area, as a whole and not executable.
    let area = layout::CTL_SIZE;
    assert_eq!(call(true, 9, [layout::CTL, area, 3, shared, 999, 0]), EBADF);
    for (start, len, prot, flags) in [
        (layout::CODE, area, 3, shared),
        (layout::CTL, area + 4096, 3, shared),
        (layout::CTL, area, 7, shared),
        (layout::CTL, area, 3, 0x12),
        (layout::CTL, area, 3, 0x1),
    ] {
        assert_eq!(
            call(true, 9, [start, len, prot, flags, 999, 0]),
            EPERM,
            "{start:#x} {prot:#x} {flags:#x}"
        );
    }
    // mremap: in place, or to a given address.
    for flags in [1, 2, 4, 5, 6, 8] {
        assert_eq!(call(true, 25, [0x10_0000, 4096, 8192, flags, 0x20_0000, 0]), EPERM, "flags {flags}");
    }
    // Ranges: up to the shim, not into it, no wrapping.
    assert_eq!(call(true, 9, [limit - 4096, 4096, 3, anonymous, u64::MAX, 0]), (limit - 4096) as i64);
    assert_eq!(call(true, 9, [limit - 4096, 8192, 3, anonymous, u64::MAX, 0]), EPERM);
    for (start, len) in [
        (limit, 4096),
        (limit - 4096, 4097),
        (0x1000, limit),
        (layout::CTL, 4096),
        (0x7ffe_ffff_f000, 0xffff_ffff),
        (0x7ffe_ffff_f000, 0xc000_2000),
        (u64::MAX - 4095, 4096),
        (0x1000, u64::MAX - 4095),
        (0xffff_0000_0000, 0xffff_ffff_0000_0000),
        (1 << 47, 4096),
    ] {
        for (nr, args) in [
            (11, [start, len, 0, 0, 0, 0]),
            (10, [start, len, 0, 0, 0, 0]),
            (28, [start, len, 4, 0, 0, 0]),
            (25, [start, len, 4096, 3, 0x10_0000, 0]),
            (25, [0x10_0000, 4096, len, 3, start, 0]),
            (25, [start, len, 4096, 0, 0, 0]),
            (25, [start, 4096, len, 0, 0, 0]),
            (9, [start, len, 3, anonymous, u64::MAX, 0]),
            (9, [start, len, 3, shared, 999, 0]),
        ] {
            assert_eq!(call(true, nr, args), EPERM, "call {nr} {start:#x} {len:#x}");
        }
    }
    // The highest sum that is allowed, with a carry out of the low words.
    assert_eq!(call(true, 11, [0x7ffe_ffff_f000, 0xc000_1000, 0, 0, 0, 0]), 0);
    assert_eq!(call(true, 28, [0x10_0000, 4096, 9, 0, 0, 0]), EPERM);
    // clone: only the two fixed forms; with these flags a signal to the parent could not be chosen either.
    for flags in [0, 17, 0x11_0011, layout::CLONE_FORK_FLAGS | 17, layout::CLONE_THREAD_FLAGS | 0x1000_0000] {
        assert_eq!(call(true, 56, [flags, 0, 0, 0, 0, 0]), EPERM, "flags {flags:#x}");
    }
    assert_eq!(call(true, 56, [layout::CLONE_FORK_FLAGS, 0x1000, 0, 0, 0, 0]), EPERM);
    // seccomp: only the doorbell's program.
    assert_eq!(call(true, 317, [1, layout::BELL_FLAGS, 0x10_0000, 0, 0, 0]), EPERM);
    assert_eq!(call(true, 317, [1, 0, layout::BELL_PROG, 0, 0, 0]), EPERM);
    assert_eq!(call(true, 317, [2, 0, 0, 0, 0, 0]), EPERM);
    // membarrier: the caller's own threads, or what asks nothing of others; getrusage: never of children.
    for (command, flags) in [(2, 0), (4, 0), (0x80, 0), (0x10, 1), (1, 1)] {
        assert_eq!(call(true, 324, [command, flags, 0, 0, 0, 0]), EPERM, "command {command}");
    }
    assert_eq!(call(true, 324, [0x10, 0, 0, 0, 0, 0]), 0);
    assert_eq!(call(true, 324, [1, 0, 0, 0, 0, 0]), 0);
    assert_eq!(call(true, 98, [u64::MAX, 0, 0, 0, 0, 0]), EPERM);
    // futex: wait and wake only.
    for op in [3, 4, 6, 9, 11, 130, 256] {
        assert_eq!(call(true, 202, [0x1000, op, 0, 0, 0, 0]), EPERM, "op {op}");
    }
    assert_eq!(call(true, u64::from(layout::DOORBELL), [0; 6]), -38);
    assert_eq!(call(true, 3, [999, 0, 0, 0, 0, 0]), -9);
}

#[test]
fn table_has_a_reason_and_a_form_for_each_call() {
    for rule in guestfilter::rules() {
        assert!(!rule.reason.is_empty() && !rule.arguments().is_empty(), "{rule:?}");
        let takes_range = matches!(rule.call, "munmap" | "mprotect" | "mremap" | "madvise");
        // Below the shim's range, or one place exactly.
        let ranged = rule.when.iter().any(|cond| matches!(cond, Cond::Below(..)))
            || (0..2).all(|at| rule.when.iter().any(|cond| matches!(cond, Cond::Is(i, _) if *i == at)));
        assert!(ranged || !takes_range, "{rule:?}");
    }
    let len = guestfilter::assemble().len();
    assert!(len < 768, "{len}");
}
