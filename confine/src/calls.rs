//! Conditions and rules that several filters share.

use crate::rules::Cond::{self, Has, OneOf, Within};
use crate::rules::{Names, Rule};

/// Memory protection without execution.
pub const READ_WRITE: Names = &[(1, "PROT_READ"), (2, "PROT_WRITE")];

/// What `mmap` makes for an allocator or a stack.
pub const PRIVATE_MEMORY: Names = &[(0x2, "MAP_PRIVATE"), (0x20, "MAP_ANONYMOUS")];

/// futex(2) without priority inheritance and requeueing.
pub const FUTEX_OPS: Names = &[
    (0, "WAIT"),
    (1, "WAKE"),
    (128, "WAIT_PRIVATE"),
    (129, "WAKE_PRIVATE"),
    (137, "WAIT_BITSET_PRIVATE"),
    (138, "WAKE_BITSET_PRIVATE"),
    (0x109, "WAIT_BITSET|CLOCK_REALTIME"),
    (0x189, "WAIT_BITSET_PRIVATE|CLOCK_REALTIME"),
];

/// madvise(2) as allocators and thread libraries use it.
const MEMORY_ADVICE: Names = &[(4, "MADV_DONTNEED"), (8, "MADV_FREE"), (102, "MADV_GUARD_INSTALL")];

/// What debug builds need too: the standard library checks there that a descriptor which it closes is open.
pub const DEBUG: &[Rule] = if cfg!(debug_assertions) {
    &[Rule::new(
        "fcntl",
        libc::SYS_fcntl,
        &[OneOf(1, &[(libc::F_GETFD as u32, "F_GETFD")])],
        "the library's own checks",
    )]
} else {
    &[]
};

const NO_EXEC: &[Cond] = &[Within(2, READ_WRITE)];

/// What any of lazaret's own processes needs for locks, memory, and its end.
pub const OWN: &[Rule] = &[
    Rule::new("futex", libc::SYS_futex, &[OneOf(1, FUTEX_OPS)], "locks, words shared with guest processes"),
    Rule::new(
        "mmap",
        libc::SYS_mmap,
        &[Within(2, READ_WRITE), Has(3, PRIVATE_MEMORY)],
        "memory of the allocator, stacks",
    ),
    Rule::new("mprotect", libc::SYS_mprotect, NO_EXEC, "memory of the allocator, stacks"),
    Rule::new("munmap", libc::SYS_munmap, &[], "memory of the allocator and of ended threads"),
    Rule::new(
        "mremap",
        libc::SYS_mremap,
        &[OneOf(3, &[(0, "0"), (1, "MREMAP_MAYMOVE")])],
        "memory of the allocator",
    ),
    Rule::new("madvise", libc::SYS_madvise, &[OneOf(2, MEMORY_ADVICE)], "memory of the allocator, stacks"),
    Rule::new("brk", libc::SYS_brk, &[], "memory of the allocator"),
    Rule::new("getrandom", libc::SYS_getrandom, &[], "random bytes, seeds of hash tables"),
    Rule::new("sched_yield", libc::SYS_sched_yield, &[], "locks"),
    Rule::new("rt_sigprocmask", libc::SYS_rt_sigprocmask, &[], "start and end of a thread"),
    Rule::new("sigaltstack", libc::SYS_sigaltstack, &[], "start and end of a thread"),
    Rule::new("rt_sigreturn", libc::SYS_rt_sigreturn, &[], "return from a signal, should one come"),
    Rule::new("restart_syscall", libc::SYS_restart_syscall, &[], "goes on with a call after a stop"),
    Rule::new("close", libc::SYS_close, &[], "closes descriptors"),
    Rule::new("exit", libc::SYS_exit, &[], "the end of a thread"),
    Rule::new("exit_group", libc::SYS_exit_group, &[], "the end"),
];
