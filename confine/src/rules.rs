//! A filter of host calls as data: what it admits, with which arguments, and why.

use crate::bpf::{self, Insn};
use std::fmt;
use std::ops::Range;

/// The errno of a call that does not exist, for [`Answer::Errno`].
pub const ENOSYS: u16 = libc::ENOSYS as u16;

/// Values with the names that the exposure page prints.
pub type Names = &'static [(u32, &'static str)];

/// A condition on the arguments of a host call. `u8`: which argument, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cond {
    /// The argument has this value, in all 64 bits.
    Is(u8, u64),
    /// The argument is one of these.
    OneOf(u8, Names),
    /// No bit but these is set.
    Within(u8, Names),
    /// All these bits are set.
    Has(u8, Names),
    /// None of these bits is set.
    Without(u8, Names),
    /// The range (start argument, length argument) ends at or below the address, without wrapping.
    Below(u8, u8, u64),
    /// The argument, as a 32-bit number, is the value with this index among those given when the filter is made.
    Given(u8, usize, &'static str),
}

/// What the host does with a call that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It makes the call.
    Allow,
    /// It does not; the caller gets this errno.
    Errno(u16),
    /// It does not; a supervisor answers.
    Notify,
}

/// What the host does with any other call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Otherwise {
    /// It ends the process.
    Kill,
    /// It raises SIGSYS.
    Trap,
    /// It answers with this errno.
    Errno(u16),
}

/// A host call in one form: all conditions must hold. A call may have several rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Linux's name of the call.
    pub call: &'static str,
    /// Its number.
    pub nr: u32,
    /// What its arguments must be.
    pub when: &'static [Cond],
    /// What happens.
    pub answer: Answer,
    /// Which of the processes get it, in words; empty: all.
    pub whom: &'static str,
    /// Why it is there.
    pub reason: &'static str,
}

impl Rule {
    /// A rule that admits a call.
    pub const fn new(
        call: &'static str,
        nr: libc::c_long,
        when: &'static [Cond],
        reason: &'static str,
    ) -> Self {
        Self { call, nr: nr as u32, when, answer: Answer::Allow, whom: "", reason }
    }

    /// The same with another answer.
    pub const fn answered(mut self, answer: Answer) -> Self {
        self.answer = answer;
        self
    }

    /// The same for some processes only.
    pub const fn only(mut self, whom: &'static str) -> Self {
        self.whom = whom;
        self
    }

    /// What the arguments must be, in one line; `any` if they may be anything.
    pub fn arguments(&self) -> String {
        let mut parts: Vec<String> = self.when.iter().map(ToString::to_string).collect();
        match self.answer {
            Answer::Allow => {}
            Answer::Errno(ENOSYS) => parts.push("never made: ENOSYS".to_owned()),
            Answer::Errno(errno) => parts.push(format!("never made: errno {errno}")),
            Answer::Notify => parts.push("never made: the sentry answers".to_owned()),
        }
        if !self.whom.is_empty() {
            parts.push(format!("({})", self.whom));
        }
        if parts.is_empty() { "any".to_owned() } else { parts.join(", ") }
    }
}

fn joined(names: Names, between: &str) -> String {
    names.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(between)
}

/// All bits of a list.
pub(crate) fn bits(names: Names) -> u32 {
    names.iter().fold(0, |all, (bits, _)| all | bits)
}

impl fmt::Display for Cond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Cond::Is(arg, value) => write!(f, "arg{arg} = {value:#x}"),
            Cond::OneOf(arg, [(_, name)]) => write!(f, "arg{arg} = {name}"),
            Cond::OneOf(arg, names) => write!(f, "arg{arg} one of {}", joined(names, " ")),
            Cond::Within(arg, names) => write!(f, "arg{arg} within {}", joined(names, "|")),
            Cond::Has(arg, names) => write!(f, "arg{arg} has {}", joined(names, "|")),
            Cond::Without(arg, names) => write!(f, "arg{arg} without {}", joined(names, "|")),
            Cond::Below(start, len, end) => write!(f, "arg{start} + arg{len} <= {end:#x}"),
            Cond::Given(arg, _, what) => write!(f, "arg{arg} is {what}"),
        }
    }
}

/// A whole filter.
#[derive(Debug, Clone)]
pub struct Filter<'a> {
    /// What it admits.
    pub rules: &'a [Rule],
    /// If given, SIGSYS for calls from anywhere but instructions that end in this range.
    pub inside: Option<Range<u64>>,
    /// A call that has rules, none of which holds.
    pub refused: Otherwise,
    /// A call that has no rule, and any call of another ABI.
    pub unknown: Otherwise,
}

impl Filter<'_> {
    /// The program, with the values for [`Cond::Given`].
    pub fn assemble(&self, given: &[u32]) -> Vec<Insn> {
        bpf::assemble(self, given)
    }
}
