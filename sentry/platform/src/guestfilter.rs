//! The base filter of guest processes: which host calls the application side may make, and with which arguments.
//!
//! One constant table, [`rules`], is both what `lazaret exposure` prints and what the filter is assembled from.
//! A system call instruction outside the shim always raises SIGSYS; one inside the shim (which the guest can jump
//! to with any registers) is judged by the table. The table must therefore be safe whoever makes the calls; that
//! the shim is used as intended is the sentry's business and never a guard.

use lazaret_shim::layout;
use std::fmt;

/// A condition on the arguments of a host call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cond {
    /// The argument has this value.
    Is(usize, u64),
    /// The argument is one of these values (below 2^32).
    OneOf(usize, &'static [u32]),
    /// No bit outside the mask is set.
    Within(usize, u32),
    /// All these bits are set.
    Has(usize, u32),
    /// The range (start argument, length argument) ends at or below the shim's region.
    Below(usize, usize),
}

/// A host call that guest processes may make: all conditions must hold.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Linux's name of the call.
    pub call: &'static str,
    /// Its number; [`layout::DOORBELL`] is one that no kernel has.
    pub nr: u32,
    /// What its arguments must be.
    pub conditions: &'static [Cond],
    /// Why the call is there.
    pub reason: &'static str,
}

impl fmt::Display for Cond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Cond::Is(arg, value) => write!(f, "arg{arg} == {value:#x}"),
            Cond::OneOf(arg, values) => {
                write!(f, "arg{arg} in [")?;
                for (i, value) in values.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    write!(f, "{comma}{value:#x}")?;
                }
                write!(f, "]")
            }
            Cond::Within(arg, mask) => write!(f, "arg{arg} & ~{mask:#x} == 0"),
            Cond::Has(arg, bits) => write!(f, "arg{arg} & {bits:#x} == {bits:#x}"),
            Cond::Below(start, len) => {
                write!(f, "arg{start} + arg{len} <= {:#x}", layout::REGION_START)
            }
        }
    }
}

impl Rule {
    /// The conditions in one line; `any` if there are none.
    pub fn arguments(&self) -> String {
        if self.conditions.is_empty() {
            return "any".to_owned();
        }
        self.conditions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

use Cond::{Below, Has, Is, OneOf, Within};

const PROT_RWX: u32 = 7;
const MAP_SHARED: u32 = 0x1;
const MAP_PRIVATE: u32 = 0x2;
const MAP_FIXED: u32 = 0x10;
const MAP_ANONYMOUS: u32 = 0x20;
const MAP_GROWSDOWN: u32 = 0x100;
const MAP_NORESERVE: u32 = 0x4000;
const MAP_POPULATE: u32 = 0x8000;
const MAP_STACK: u32 = 0x2_0000;
const MAP_FIXED_NOREPLACE: u32 = 0x10_0000;

/// madvise advice that touches nothing but the caller's own memory: NORMAL RANDOM SEQUENTIAL WILLNEED DONTNEED
/// FREE DONTFORK DOFORK HUGEPAGE NOHUGEPAGE DONTDUMP DODUMP WIPEONFORK KEEPONFORK COLD PAGEOUT POPULATE_READ
/// POPULATE_WRITE DONTNEED_LOCKED COLLAPSE.
pub const ADVICE: &[u32] = &[0, 1, 2, 3, 4, 8, 10, 11, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25];

const RULES: &[Rule] = &[
    Rule {
        call: "doorbell",
        nr: layout::DOORBELL,
        conditions: &[],
        reason: "reports to the sentry; ENOSYS on the host",
    },
    Rule {
        call: "rt_sigreturn",
        nr: 15,
        conditions: &[],
        reason: "goes back to guest code; can only set the caller's own registers, signal mask and stack",
    },
    Rule {
        call: "futex",
        nr: 202,
        conditions: &[OneOf(1, &[0, 1, 128, 129])],
        reason: "WAIT and WAKE: the forker waits for commands and reports results",
    },
    Rule {
        call: "mmap",
        nr: 9,
        conditions: &[
            Below(0, 1),
            Within(2, PROT_RWX),
            Has(3, MAP_PRIVATE | MAP_FIXED),
            Within(
                3,
                MAP_PRIVATE
                    | MAP_FIXED
                    | MAP_ANONYMOUS
                    | MAP_GROWSDOWN
                    | MAP_NORESERVE
                    | MAP_POPULATE
                    | MAP_STACK
                    | MAP_FIXED_NOREPLACE,
            ),
        ],
        reason: "private memory and private file mappings where the sentry says",
    },
    Rule {
        call: "mmap",
        nr: 9,
        conditions: &[
            Below(0, 1),
            Within(2, PROT_RWX),
            Has(3, MAP_SHARED | MAP_FIXED),
            Within(3, MAP_SHARED | MAP_FIXED | MAP_NORESERVE | MAP_POPULATE | MAP_FIXED_NOREPLACE),
        ],
        reason: "shared mappings of descriptors the sentry hands over; their open mode is the right they carry",
    },
    Rule {
        call: "mmap",
        nr: 9,
        conditions: &[
            Is(0, layout::CTL),
            Is(1, layout::CTL_SIZE),
            Is(2, 3),
            Is(3, (MAP_SHARED | MAP_FIXED) as u64),
            Is(5, 0),
        ],
        reason: "a new process maps its own shared area in place of its parent's",
    },
    Rule { call: "munmap", nr: 11, conditions: &[Below(0, 1)], reason: "memory map calls of the guest" },
    Rule {
        call: "mprotect",
        nr: 10,
        conditions: &[Below(0, 1), Within(2, PROT_RWX | 0x300_0000)],
        reason: "memory map calls of the guest",
    },
    Rule {
        call: "mremap",
        nr: 25,
        conditions: &[Below(0, 1), Below(0, 2), Is(3, 0)],
        reason: "resizing in place",
    },
    Rule {
        call: "mremap",
        nr: 25,
        conditions: &[Below(0, 1), Below(4, 2), OneOf(3, &[3, 7])],
        reason: "moving to where the sentry says (MAYMOVE|FIXED, DONTUNMAP)",
    },
    Rule {
        call: "madvise",
        nr: 28,
        conditions: &[Below(0, 1), OneOf(2, ADVICE)],
        reason: "advice on the guest's own memory",
    },
    Rule { call: "close", nr: 3, conditions: &[], reason: "descriptors live only while they are mapped" },
    Rule {
        call: "clone",
        nr: 56,
        conditions: &[Is(0, layout::CLONE_THREAD_FLAGS)],
        reason: "a task's thread",
    },
    Rule {
        call: "clone",
        nr: 56,
        conditions: &[Is(0, layout::CLONE_FORK_FLAGS), Is(1, 0)],
        reason: "a process, as a child of the sentry",
    },
    Rule { call: "exit", nr: 60, conditions: &[], reason: "a task's thread ends" },
    Rule {
        call: "seccomp",
        nr: 317,
        conditions: &[Is(0, 1), Is(1, layout::BELL_FLAGS), Is(2, layout::BELL_PROG)],
        reason: "a new task adds its doorbell, whose program lies in the shim's read-only constants",
    },
];

/// The host calls that guest processes may make, in the order the filter looks for them.
pub fn rules() -> &'static [Rule] {
    RULES
}

/// The same, owned, for `lazaret exposure`.
pub fn exposure() -> Vec<Rule> {
    RULES.to_vec()
}

/// One classic BPF instruction (`struct sock_filter`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insn {
    /// Operation.
    pub code: u16,
    /// Instructions to skip when true.
    pub jt: u8,
    /// Instructions to skip when false.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

const LD: u16 = 0x20;
const LD_MEM: u16 = 0x60;
const ST: u16 = 0x02;
const ADD_X: u16 = 0x0c;
const ADD_K: u16 = 0x04;
const AND_K: u16 = 0x54;
const TAX: u16 = 0x07;
const JA: u16 = 0x05;
const JEQ: u16 = 0x15;
const JGT: u16 = 0x25;
const JGE: u16 = 0x35;
const JSET: u16 = 0x45;
const JGE_X: u16 = 0x3d;
const RET: u16 = 0x06;

const RET_KILL: u32 = 0x8000_0000;
const RET_NOTIFY: u32 = 0x7fc0_0000;
const RET_TRAP: u32 = 0x0003_0000;
const RET_EPERM: u32 = 0x0005_0001;
const RET_ALLOW: u32 = 0x7fff_0000;

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const OFF_NR: u32 = 0;
const OFF_ARCH: u32 = 4;
const OFF_IP: u32 = 8;

fn arg_lo(arg: usize) -> u32 {
    16 + 8 * arg as u32
}

fn hi(value: u64) -> u32 {
    (value >> 32) as u32
}

fn lo(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}

/// A program under construction. Failing conditions jump to a place that is not known yet; those jumps are
/// unconditional ones (32-bit distance), patched by [`Assembler::land`].
#[derive(Default)]
struct Assembler {
    code: Vec<Insn>,
    open: Vec<usize>,
}

impl Assembler {
    fn put(&mut self, code: u16, jt: u8, jf: u8, k: u32) {
        self.code.push(Insn { code, jt, jf, k });
    }

    fn load(&mut self, offset: u32) {
        self.put(LD, 0, 0, offset);
    }

    fn fail(&mut self) {
        self.open.push(self.code.len());
        self.put(JA, 0, 0, 0);
    }

    /// Goes on if the comparison holds, else to the failure place.
    fn need(&mut self, op: u16, k: u32) {
        self.put(op, 1, 0, k);
        self.fail();
    }

    /// Goes on if the comparison does not hold, else to the failure place.
    fn refuse(&mut self, op: u16, k: u32) {
        self.put(op, 0, 1, k);
        self.fail();
    }

    /// Failures so far lead to the next instruction.
    fn land(&mut self) {
        let here = self.code.len();
        for at in self.open.drain(..) {
            if let Some(insn) = self.code.get_mut(at) {
                insn.k = (here - at - 1) as u32;
            }
        }
    }

    fn zero_hi(&mut self, arg: usize) {
        self.load(arg_lo(arg) + 4);
        self.need(JEQ, 0);
    }

    fn condition(&mut self, cond: Cond) {
        match cond {
            Is(arg, value) => {
                self.load(arg_lo(arg) + 4);
                self.need(JEQ, hi(value));
                self.load(arg_lo(arg));
                self.need(JEQ, lo(value));
            }
            OneOf(arg, values) => {
                self.zero_hi(arg);
                self.load(arg_lo(arg));
                for (i, value) in values.iter().enumerate() {
                    // On a match, skip the comparisons left and the failure.
                    self.put(JEQ, (values.len() - i) as u8, 0, *value);
                }
                self.fail();
            }
            Within(arg, mask) => {
                self.zero_hi(arg);
                self.load(arg_lo(arg));
                self.refuse(JSET, !mask);
            }
            Has(arg, bits) => {
                self.load(arg_lo(arg));
                self.put(AND_K, 0, 0, bits);
                self.need(JEQ, bits);
            }
            Below(start, len) => {
                let limit = layout::REGION_START;
                // Both high words are small, so their sum cannot wrap.
                self.load(arg_lo(start) + 4);
                self.refuse(JGT, hi(limit));
                self.load(arg_lo(len) + 4);
                self.refuse(JGT, hi(limit));
                self.load(arg_lo(len));
                self.put(TAX, 0, 0, 0);
                self.load(arg_lo(start));
                self.put(ADD_X, 0, 0, 0);
                self.put(ST, 0, 0, 0);
                // The low sum wrapped if it is below an addend.
                self.put(JGE_X, 3, 0, 0);
                self.load(arg_lo(start) + 4);
                self.put(ADD_K, 0, 0, 1);
                self.put(JA, 0, 0, 1);
                self.load(arg_lo(start) + 4);
                self.put(ST, 0, 0, 1);
                self.load(arg_lo(len) + 4);
                self.put(TAX, 0, 0, 0);
                self.put(LD_MEM, 0, 0, 1);
                self.put(ADD_X, 0, 0, 0);
                self.refuse(JGT, hi(limit));
                // Below in the high word: skip the test of the low one.
                self.put(JEQ, 0, 3, hi(limit));
                self.put(LD_MEM, 0, 0, 0);
                self.refuse(JGT, lo(limit));
            }
        }
    }
}

/// The host calls that a guest process of the ptrace platform may make: only at the instruction that the tracer
/// points it to, since everything else is emulated before any filter sees it.
pub fn ptrace_rules() -> Vec<Rule> {
    let own_clone = |rule: &Rule| rule.call == "clone" && rule.conditions.len() == 1;
    let own_mmap = |rule: &Rule| rule.call == "mmap" && rule.conditions.contains(&Below(0, 1));
    let shared = ["munmap", "mprotect", "mremap", "madvise", "close", "exit"];
    let mut rules = vec![
        Rule {
            call: "doorbell",
            nr: layout::DOORBELL,
            conditions: &[],
            reason: "asks the sentry for a descriptor to map; no call of the host",
        },
        Rule {
            call: "pause",
            nr: 34,
            conditions: &[],
            reason: "one process waits to be signalled: it wakes the tracer",
        },
    ];
    rules.extend(RULES.iter().filter(|rule| own_mmap(rule) || shared.contains(&rule.call)));
    rules.extend(RULES.iter().filter(|rule| own_clone(rule)));
    rules.push(Rule {
        call: "clone",
        nr: 56,
        conditions: &[Is(0, layout::CLONE_PARENT), Is(1, 0), Is(2, 0), Is(3, 0)],
        reason: "a process, as a child of the sentry",
    });
    rules
}

/// Assembles the base filter.
pub fn assemble() -> Vec<Insn> {
    assemble_with(RULES, RET_ALLOW, RET_EPERM)
}

/// Assembles the filter of the ptrace platform. A call that is not in the table kills the process.
pub fn assemble_ptrace() -> Vec<Insn> {
    assemble_with(&ptrace_rules(), RET_NOTIFY, RET_KILL)
}

fn assemble_with(rules: &[Rule], doorbell: u32, unknown: u32) -> Vec<Insn> {
    let mut asm = Assembler::default();
    let code_end = layout::CODE + layout::CODE_SIZE;
    asm.load(OFF_ARCH);
    asm.need(JEQ, AUDIT_ARCH_X86_64);
    asm.load(OFF_IP + 4);
    asm.need(JEQ, hi(layout::CODE));
    asm.load(OFF_IP);
    asm.need(JGE, lo(layout::CODE));
    asm.refuse(JGT, lo(code_end));
    let outside = std::mem::take(&mut asm.open);
    let mut at = 0;
    while let Some(first) = rules.get(at) {
        asm.load(OFF_NR);
        let skip = asm.code.len() + 1;
        asm.put(JEQ, 1, 0, first.nr);
        asm.put(JA, 0, 0, 0);
        while let Some(rule) = rules.get(at).filter(|rule| rule.nr == first.nr) {
            for cond in rule.conditions {
                asm.condition(*cond);
            }
            asm.put(RET, 0, 0, if rule.nr == layout::DOORBELL { doorbell } else { RET_ALLOW });
            asm.land();
            at += 1;
        }
        asm.put(RET, 0, 0, RET_EPERM);
        asm.open.push(skip);
        asm.land();
    }
    asm.put(RET, 0, 0, unknown);
    asm.open = outside;
    asm.land();
    asm.put(RET, 0, 0, RET_TRAP);
    asm.code
}
