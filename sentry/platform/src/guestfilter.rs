//! The base filter of guest processes: which host calls the application side may make, and with which arguments.
//!
//! One constant table, [`rules`], is both what `lazaret exposure` prints and what the filter is assembled from.
//! A system call instruction outside the shim always raises SIGSYS; one inside the shim (which the guest can jump
//! to with any registers) is judged by the table. The table must therefore be safe whoever makes the calls; that
//! the shim is used as intended is the sentry's business and never a guard.

use confine::bpf::Insn;
use confine::rules::Cond::{self, Below, Has, Is, OneOf, Within};
use confine::rules::{Answer, Filter, Names, Otherwise, Rule};
use lazaret_shim::layout;

const PROT: Names = &[(1, "PROT_READ"), (2, "PROT_WRITE"), (4, "PROT_EXEC")];
const PROT_GROWS: Names = &[
    (1, "PROT_READ"),
    (2, "PROT_WRITE"),
    (4, "PROT_EXEC"),
    (0x100_0000, "PROT_GROWSDOWN"),
    (0x200_0000, "PROT_GROWSUP"),
];
const PRIVATE: Names = &[(0x2, "MAP_PRIVATE"), (0x10, "MAP_FIXED")];
const PRIVATE_FORM: Names = &[
    (0x2, "MAP_PRIVATE"),
    (0x10, "MAP_FIXED"),
    (0x20, "MAP_ANONYMOUS"),
    (0x100, "MAP_GROWSDOWN"),
    (0x4000, "MAP_NORESERVE"),
    (0x8000, "MAP_POPULATE"),
    (0x2_0000, "MAP_STACK"),
    (0x10_0000, "MAP_FIXED_NOREPLACE"),
];
const SHARED: Names = &[(0x1, "MAP_SHARED"), (0x10, "MAP_FIXED")];
const SHARED_FORM: Names = &[
    (0x1, "MAP_SHARED"),
    (0x10, "MAP_FIXED"),
    (0x4000, "MAP_NORESERVE"),
    (0x8000, "MAP_POPULATE"),
    (0x10_0000, "MAP_FIXED_NOREPLACE"),
];
const MOVES: Names = &[(3, "MAYMOVE|FIXED"), (7, "MAYMOVE|FIXED|DONTUNMAP")];
const FUTEX: Names = &[(0, "WAIT"), (1, "WAKE"), (128, "WAIT_PRIVATE"), (129, "WAKE_PRIVATE")];

/// madvise advice that touches nothing but the caller's own memory.
const ADVICE: Names = &[
    (0, "NORMAL"),
    (1, "RANDOM"),
    (2, "SEQUENTIAL"),
    (3, "WILLNEED"),
    (4, "DONTNEED"),
    (8, "FREE"),
    (10, "DONTFORK"),
    (11, "DOFORK"),
    (14, "HUGEPAGE"),
    (15, "NOHUGEPAGE"),
    (16, "DONTDUMP"),
    (17, "DODUMP"),
    (18, "WIPEONFORK"),
    (19, "KEEPONFORK"),
    (20, "COLD"),
    (21, "PAGEOUT"),
    (22, "POPULATE_READ"),
    (23, "POPULATE_WRITE"),
    (24, "DONTNEED_LOCKED"),
    (25, "COLLAPSE"),
    (102, "GUARD_INSTALL"),
    (103, "GUARD_REMOVE"),
];

/// membarrier commands: those for the caller's own threads, and the one that waits until every thread of the machine has
/// passed a barrier by itself, which asks nothing of the others.
const BARRIERS: Names = &[
    (0x1, "GLOBAL"),
    (0x8, "PRIVATE_EXPEDITED"),
    (0x10, "REGISTER_PRIVATE_EXPEDITED"),
    (0x20, "PRIVATE_EXPEDITED_SYNC_CORE"),
    (0x40, "REGISTER_PRIVATE_EXPEDITED_SYNC_CORE"),
];

/// Whether a guest's madvise advice may be given to the host.
pub fn is_advice(advice: u32) -> bool {
    ADVICE.iter().any(|(known, _)| *known == advice)
}

/// Whether a guest's membarrier command may be given to the host.
pub fn is_barrier(command: u32) -> bool {
    BARRIERS.iter().any(|(known, _)| *known == command)
}

/// A range that ends at or below the shim's region.
const fn below(start: u8, len: u8) -> Cond {
    Cond::Below(start, len, layout::REGION_START)
}

/// A file in one of the places that gates read from.
const fn lent(place: u64) -> [Cond; 5] {
    let at = layout::place(place);
    [
        Is(0, at),
        Below(0, 1, at + layout::PLACE_SIZE),
        Is(2, 1),
        OneOf(3, &[(0x11, "MAP_SHARED|MAP_FIXED")]),
        Is(5, 0),
    ]
}

const _: () = assert!(layout::PLACES == 4);
const LEND: &str = "a file that the guest has open for reading, for pread without the sentry; the sentry hands over its descriptor";
const BELL: &str = "reports to the sentry; no kernel has a call with this number";
const ASK: &str = "asks the sentry for a descriptor to map; no kernel has a call with this number";

const RULES: &[Rule] = &[
    Rule::new("doorbell", layout::DOORBELL as libc::c_long, &[], BELL),
    Rule::new(
        "rt_sigreturn",
        15,
        &[],
        "goes back to guest code; can only set the caller's own registers, signal mask and stack",
    ),
    Rule::new(
        "futex",
        202,
        &[OneOf(1, FUTEX)],
        "WAIT and WAKE: the forker waits for commands and reports results",
    ),
    Rule::new(
        "mmap",
        9,
        &[below(0, 1), Within(2, PROT), Has(3, PRIVATE), Within(3, PRIVATE_FORM)],
        "private memory and private file mappings where the sentry says",
    ),
    Rule::new(
        "mmap",
        9,
        &[below(0, 1), Within(2, PROT), Has(3, SHARED), Within(3, SHARED_FORM)],
        "shared mappings of descriptors the sentry hands over; their open mode is the right they carry",
    ),
    Rule::new(
        "mmap",
        9,
        &[
            Is(0, layout::CTL),
            Is(1, layout::CTL_SIZE),
            Is(2, 3),
            OneOf(3, &[(0x11, "MAP_SHARED|MAP_FIXED")]),
            Is(5, 0),
        ],
        "a new process maps its own shared area in place of its parent's",
    ),
    Rule::new("mmap", 9, &lent(0), LEND),
    Rule::new("mmap", 9, &lent(1), LEND),
    Rule::new("mmap", 9, &lent(2), LEND),
    Rule::new("mmap", 9, &lent(3), LEND),
    Rule::new("munmap", 11, &[below(0, 1)], "memory map calls of the guest"),
    Rule::new(
        "munmap",
        11,
        &[Is(0, layout::WINDOW), Is(1, layout::WINDOW_SIZE)],
        "a new program does not have the files that the last one read from",
    ),
    Rule::new("mprotect", 10, &[below(0, 1), Within(2, PROT_GROWS)], "memory map calls of the guest"),
    Rule::new("mremap", 25, &[below(0, 1), below(0, 2), Is(3, 0)], "resizing in place"),
    Rule::new(
        "mremap",
        25,
        &[below(0, 1), below(4, 2), OneOf(3, MOVES)],
        "moving to where the sentry says (MAYMOVE|FIXED, DONTUNMAP)",
    ),
    Rule::new("madvise", 28, &[below(0, 1), OneOf(2, ADVICE)], "advice on the guest's own memory"),
    Rule::new(
        "membarrier",
        324,
        &[OneOf(0, BARRIERS), Is(1, 0)],
        "memory barriers among the guest's own threads",
    ),
    Rule::new("close", 3, &[], "descriptors live only while they are mapped"),
    Rule::new("clone", 56, &[Is(0, layout::CLONE_THREAD_FLAGS)], "a task's thread"),
    Rule::new(
        "clone",
        56,
        &[Is(0, layout::CLONE_FORK_FLAGS), Is(1, 0)],
        "a process, as a child of the sentry",
    ),
    Rule::new(
        "getrusage",
        98,
        &[OneOf(0, &[(0, "RUSAGE_SELF"), (1, "RUSAGE_THREAD")])],
        "what the caller's process or thread has used; the guest's own process has no children",
    ),
    Rule::new("exit", 60, &[], "a task's thread ends"),
    Rule::new("sched_yield", 24, &[], "a task that waits for the poller's answer lets others run"),
    Rule::new(
        "seccomp",
        317,
        &[Is(0, 1), Is(1, layout::BELL_FLAGS), Is(2, layout::BELL_PROG)],
        "a new task adds its doorbell, whose program lies in the shim's read-only constants",
    ),
    Rule::new("mincore", 27, &[below(0, 1)], "which pages of the guest's own memory are resident"),
];

/// The host calls that guest processes may make.
pub fn rules() -> &'static [Rule] {
    RULES
}

/// The host calls that a guest process of the ptrace platform may make: only at the instruction that the tracer
/// points it to, since everything else is emulated before any filter sees it.
pub fn ptrace_rules() -> Vec<Rule> {
    let own_clone = |rule: &Rule| rule.call == "clone" && rule.when.len() == 1;
    let own_mmap = |rule: &Rule| rule.call == "mmap" && rule.when.contains(&below(0, 1));
    // It has no gates.
    let lends = |rule: &Rule| rule.when.contains(&Is(0, layout::WINDOW));
    let shared =
        ["munmap", "mprotect", "mremap", "madvise", "mincore", "membarrier", "close", "getrusage", "exit"];
    let mut rules = vec![
        Rule::new("doorbell", layout::DOORBELL as libc::c_long, &[], ASK).answered(Answer::Notify),
        Rule::new("pause", 34, &[], "one process waits to be signalled: it wakes the tracer"),
    ];
    rules.extend(RULES.iter().filter(|rule| own_mmap(rule) || shared.contains(&rule.call) && !lends(rule)));
    rules.extend(RULES.iter().filter(|rule| own_clone(rule)));
    rules.push(Rule::new(
        "clone",
        56,
        &[Is(0, layout::CLONE_PARENT), Is(1, 0), Is(2, 0), Is(3, 0)],
        "a process, as a child of the sentry",
    ));
    rules
}

/// Assembles the base filter.
pub fn assemble() -> Vec<Insn> {
    assemble_with(RULES, Otherwise::Errno(1))
}

/// Assembles the filter of the ptrace platform. A call that is not in the table kills the process.
pub fn assemble_ptrace() -> Vec<Insn> {
    assemble_with(&ptrace_rules(), Otherwise::Kill)
}

fn assemble_with(rules: &[Rule], unknown: Otherwise) -> Vec<Insn> {
    let inside = Some(layout::CODE..layout::CODE + layout::CODE_SIZE);
    Filter { rules, inside, refused: Otherwise::Errno(1), unknown }.assemble(&[])
}
