//! Hardware breakpoints by ptrace(2): debug registers (PTRACE_POKEUSER).

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

cases![
    write_is_seen, execution_is_seen, narrow_ones, bad_ones, not_of_children, off_again, access_is_seen,
    same_value_is_seen, calls_do_not_count, block_steps
];

/// Offset of u_debugreg in struct user.
const DEBUG: usize = 848;
static WATCHED: AtomicU64 = AtomicU64::new(0);
static NARROW: AtomicU32 = AtomicU32::new(0);

fn poke(pid: i32, register: usize, value: u64) -> i64 {
    sys!(SYS_ptrace, PTRACE_POKEUSER, pid, DEBUG + register * 8, value)
}

fn peek(pid: i32, register: usize) -> u64 {
    let mut value = [0u64];
    ok(sys!(SYS_ptrace, PTRACE_PEEKUSER, pid, DEBUG + register * 8, &mut value));
    std::hint::black_box(&value)[0]
}

/// A child that stops and then runs `f`.
fn tracee(f: impl FnOnce() -> i32) -> i32 {
    let pid = child(|| {
        ok(sys!(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0));
        sig::raise(SIGSTOP);
        f()
    });
    stopped(pid, SIGSTOP);
    pid
}

#[track_caller]
fn stopped(pid: i32, signal: i32) {
    let mut s = 0;
    eq(sys!(SYS_wait4, pid, &mut s, 0, 0), i64::from(pid));
    check(WIFSTOPPED(s) && WSTOPSIG(s) == signal, &format!("stopped by {signal}: {s:#x}"));
}

fn go_on(pid: i32) {
    ok(sys!(SYS_ptrace, PTRACE_CONT, pid, 0, 0));
}

fn code(pid: i32) -> i32 {
    let mut info = [0i32; 32];
    ok(sys!(SYS_ptrace, PTRACE_GETSIGINFO, pid, 0, &mut info));
    std::hint::black_box(&info)[2]
}

fn write_is_seen() {
    let pid = tracee(|| {
        sys!(SYS_getppid);
        WATCHED.store(7, SeqCst);
        sys!(SYS_getppid);
        WATCHED.store(8, SeqCst);
        0
    });
    ok(poke(pid, 0, WATCHED.as_ptr() as u64));
    // L0, writes, 8 bytes.
    ok(poke(pid, 7, 1 | 0b1001 << 16));
    eq(peek(pid, 0), WATCHED.as_ptr() as u64);
    for value in [7, 8] {
        go_on(pid);
        stopped(pid, SIGTRAP);
        // TRAP_HWBKPT
        eq(code(pid), 4);
        eq(peek(pid, 6) & 0xf, 1);
        eq(sys!(SYS_ptrace, PTRACE_PEEKDATA, pid, WATCHED.as_ptr(), &mut [0u64]), 0);
        let mut seen = [0u64];
        ok(sys!(SYS_ptrace, PTRACE_PEEKDATA, pid, WATCHED.as_ptr(), &mut seen));
        eq(std::hint::black_box(&seen)[0], value);
        ok(poke(pid, 6, 0));
    }
    go_on(pid);
    exits(pid, 0);
}

#[inline(never)]
extern "C" fn target(n: i32) -> i32 {
    std::hint::black_box(n) + 1
}

fn execution_is_seen() {
    let pid = tracee(|| target(1) - 2);
    let at = target as *const () as u64;
    ok(poke(pid, 1, at));
    // L1, execution, one byte.
    ok(poke(pid, 7, 4));
    go_on(pid);
    stopped(pid, SIGTRAP);
    let mut rip = [0u64];
    ok(sys!(SYS_ptrace, PTRACE_PEEKUSER, pid, 16 * 8, &mut rip));
    eq(std::hint::black_box(&rip)[0], at);
    eq(peek(pid, 6) & 0xf, 2);
    ok(poke(pid, 7, 0));
    go_on(pid);
    exits(pid, 0);
}

fn narrow_ones() {
    let pid = tracee(|| {
        WATCHED.store(1 << 40, SeqCst);
        NARROW.store(5, SeqCst);
        0
    });
    // Four bytes that stay as they are, and four that change.
    ok(poke(pid, 2, WATCHED.as_ptr() as u64));
    ok(poke(pid, 3, NARROW.as_ptr() as u64));
    ok(poke(pid, 7, 1 << 6 | 0b1101 << 28));
    go_on(pid);
    stopped(pid, SIGTRAP);
    eq(peek(pid, 6) & 0xf, 8);
    ok(poke(pid, 7, 0));
    go_on(pid);
    exits(pid, 0);
}

fn bad_ones() {
    let pid = tracee(|| 0);
    err(poke(pid, 0, 1 << 47), EINVAL);
    err(poke(pid, 4, 0), EIO);
    ok(poke(pid, 0, WATCHED.as_ptr() as u64 + 1));
    // Writes of 8 bytes must be aligned; execution is of one byte.
    err(poke(pid, 7, 1 | 0b1001 << 16), EINVAL);
    err(poke(pid, 7, 1 | 0b1100 << 16), EINVAL);
    go_on(pid);
    exits(pid, 0);
}

/// They are the one task's own.
fn not_of_children() {
    let pid = tracee(|| {
        exits(
            child(|| {
                WATCHED.store(3, SeqCst);
                0
            }),
            0,
        );
        0
    });
    ok(poke(pid, 0, WATCHED.as_ptr() as u64));
    ok(poke(pid, 7, 1 | 0b1001 << 16));
    loop {
        go_on(pid);
        let mut s = 0;
        eq(sys!(SYS_wait4, pid, &mut s, 0, 0), i64::from(pid));
        if WIFEXITED(s) {
            eq(WEXITSTATUS(s), 0);
            break;
        }
        check(WSTOPSIG(s) != SIGTRAP, "the child's own memory");
    }
}

fn off_again() {
    let pid = tracee(|| {
        WATCHED.store(9, SeqCst);
        0
    });
    ok(poke(pid, 0, WATCHED.as_ptr() as u64));
    ok(poke(pid, 7, 1 | 0b1001 << 16));
    ok(poke(pid, 7, 0));
    go_on(pid);
    exits(pid, 0);
}

/// How often a tracee with breakpoint 0 of this kind on WATCHED stops.
fn stops(kind: u64, f: impl FnOnce() -> i32) -> i32 {
    let pid = tracee(f);
    ok(poke(pid, 0, WATCHED.as_ptr() as u64));
    ok(poke(pid, 7, 1 | (0b1000 | kind) << 16));
    let mut count = 0;
    loop {
        go_on(pid);
        let mut s = 0;
        eq(sys!(SYS_wait4, pid, &mut s, 0, 0), i64::from(pid));
        if WIFEXITED(s) {
            eq(WEXITSTATUS(s), 0);
            return count;
        }
        eq(WSTOPSIG(s), SIGTRAP);
        eq(code(pid), 4);
        eq(peek(pid, 6) & 0xf, 1);
        ok(poke(pid, 6, 0));
        count += 1;
    }
}

fn access_is_seen() {
    let reads = || {
        std::hint::black_box(WATCHED.load(SeqCst));
        0
    };
    eq(stops(3, reads), 1);
    eq(stops(1, reads), 0);
    let part = || {
        // SAFETY: a byte of the word.
        let byte = unsafe { WATCHED.as_ptr().cast::<u8>().add(5).read_volatile() };
        std::hint::black_box(byte);
        0
    };
    eq(stops(3, part), 1);
    eq(
        stops(3, || {
            WATCHED.store(3, SeqCst);
            0
        }),
        1,
    );
    // Input and output of ports cannot be watched.
    let pid = tracee(|| 0);
    ok(poke(pid, 0, WATCHED.as_ptr() as u64));
    err(poke(pid, 7, 1 | 0b1010 << 16), EINVAL);
    go_on(pid);
    exits(pid, 0);
}

fn same_value_is_seen() {
    eq(
        stops(1, || {
            let now = WATCHED.load(SeqCst);
            WATCHED.store(now, SeqCst);
            WATCHED.store(now, SeqCst);
            0
        }),
        2,
    );
}

/// What the kernel writes for the task does not count.
fn calls_do_not_count() {
    eq(
        stops(1, || {
            let p = pipe_pair();
            eq(sys!(SYS_write, p[1], [5u64].as_ptr(), 8), 8);
            eq(sys!(SYS_read, p[0], WATCHED.as_ptr(), 8), 8);
            0
        }),
        0,
    );
}

/// PTRACE_SINGLEBLOCK
fn block_steps() {
    const PTRACE_SINGLEBLOCK: i32 = 33;
    let pid = tracee(|| {
        let mut sum = 0u64;
        // SAFETY: registers alone.
        unsafe {
            std::arch::asm!(
                "int3", "nop", "nop", "mov ecx, 3", "2:", "add {sum}, 1", "nop", "dec ecx", "jnz 2b", "nop", "jmp 3f", "nop",
                "3:", "nop", "int3",
                sum = inout(reg) sum, out("ecx") _
            );
        }
        i32::from(sum != 3)
    });
    go_on(pid);
    stopped(pid, SIGTRAP);
    let rip = || {
        let mut rip = [0u64];
        ok(sys!(SYS_ptrace, PTRACE_PEEKUSER, pid, 16 * 8, &mut rip));
        std::hint::black_box(&rip)[0]
    };
    let start = rip();
    let mut seen = Vec::new();
    for _ in 0..3 {
        ok(sys!(SYS_ptrace, PTRACE_SINGLEBLOCK, pid, 0, 0));
        stopped(pid, SIGTRAP);
        seen.push(rip());
        if seen == [start + 1] && !inside() {
            ok(sys!(SYS_kill, pid, SIGKILL));
            killed_by(pid, SIGKILL);
            skip("this processor, or who virtualizes it, steps by instructions");
        }
    }
    // Twice back to the loop's start, then over the jump.
    eq(seen[0], seen[1]);
    check(seen[0] > start && seen[2] > seen[0], "the jump");
    ok(sys!(SYS_ptrace, PTRACE_SINGLEBLOCK, pid, 0, 0));
    // The breakpoint comes before another branch.
    stopped(pid, SIGTRAP);
    eq(rip(), seen[2] + 2);
    go_on(pid);
    exits(pid, 0);
}
