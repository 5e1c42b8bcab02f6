//! The assembler of filters: classic BPF over `struct seccomp_data` (seccomp(2)).
//!
//! A library would do for rules on numbers and values; instruction-pointer ranges, 64-bit ranges and several answers
//! in one program none offers.

use crate::rules::{Answer, Cond, Filter, Otherwise, Rule, bits};

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
const RET_ERRNO: u32 = 0x0005_0000;
const RET_ALLOW: u32 = 0x7fff_0000;

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const OFF_NR: u32 = 0;
const OFF_ARCH: u32 = 4;
const OFF_IP: u32 = 8;

/// Numbers looked at one after the other; more are halved first.
const LINEAR: usize = 4;

fn arg_lo(arg: u8) -> u32 {
    16 + 8 * u32::from(arg)
}

fn hi(value: u64) -> u32 {
    (value >> 32) as u32
}

fn lo(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}

fn otherwise(what: Otherwise) -> u32 {
    match what {
        Otherwise::Kill => RET_KILL,
        Otherwise::Trap => RET_TRAP,
        Otherwise::Errno(errno) => RET_ERRNO | u32::from(errno),
    }
}

fn answer(what: Answer) -> u32 {
    match what {
        Answer::Allow => RET_ALLOW,
        Answer::Errno(errno) => RET_ERRNO | u32::from(errno),
        Answer::Notify => RET_NOTIFY,
    }
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

    /// A jump to a place that is not known yet; where it is.
    fn jump(&mut self) -> usize {
        self.put(JA, 0, 0, 0);
        self.code.len() - 1
    }

    fn fail(&mut self) {
        let at = self.jump();
        self.open.push(at);
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

    /// That jump leads to the next instruction.
    fn land_one(&mut self, at: usize) {
        let here = self.code.len();
        if let Some(insn) = self.code.get_mut(at) {
            insn.k = (here - at - 1) as u32;
        }
    }

    /// Failures so far lead to the next instruction.
    fn land(&mut self) {
        for at in std::mem::take(&mut self.open) {
            self.land_one(at);
        }
    }

    fn zero_hi(&mut self, arg: u8) {
        self.load(arg_lo(arg) + 4);
        self.need(JEQ, 0);
    }

    fn condition(&mut self, cond: Cond, given: &[u32]) {
        match cond {
            Cond::Is(arg, value) => {
                self.load(arg_lo(arg) + 4);
                self.need(JEQ, hi(value));
                self.load(arg_lo(arg));
                self.need(JEQ, lo(value));
            }
            Cond::OneOf(arg, values) => {
                self.zero_hi(arg);
                self.load(arg_lo(arg));
                for (i, (value, _)) in values.iter().enumerate() {
                    // On a match, skip the comparisons left and the failure.
                    self.put(JEQ, (values.len() - i) as u8, 0, *value);
                }
                self.fail();
            }
            Cond::Within(arg, names) => {
                self.zero_hi(arg);
                self.load(arg_lo(arg));
                self.refuse(JSET, !bits(names));
            }
            Cond::Has(arg, names) => {
                self.load(arg_lo(arg));
                self.put(AND_K, 0, 0, bits(names));
                self.need(JEQ, bits(names));
            }
            Cond::Without(arg, names) => {
                self.load(arg_lo(arg));
                self.refuse(JSET, bits(names));
            }
            Cond::Given(arg, which, _) => {
                self.load(arg_lo(arg));
                match given.get(which) {
                    Some(value) => self.need(JEQ, *value),
                    None => self.fail(),
                }
            }
            Cond::Below(start, len, limit) => self.below(start, len, limit),
        }
    }

    fn below(&mut self, start: u8, len: u8, limit: u64) {
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

    /// What is done with these numbers, which are sorted, the accumulator being the call's.
    fn numbers(&mut self, groups: &[Vec<Rule>], filter: &Filter<'_>, given: &[u32]) {
        if groups.len() > LINEAR {
            let (low, high) = groups.split_at(groups.len() / 2);
            let first = high.first().and_then(|group| group.first()).map_or(0, |rule| rule.nr);
            self.put(JGE, 0, 1, first);
            let to_high = self.jump();
            self.numbers(low, filter, given);
            self.land_one(to_high);
            return self.numbers(high, filter, given);
        }
        for group in groups {
            let Some(first) = group.first() else { continue };
            self.put(JEQ, 1, 0, first.nr);
            let other = self.jump();
            for rule in group {
                for cond in rule.when {
                    self.condition(*cond, given);
                }
                self.put(RET, 0, 0, answer(rule.answer));
                self.land();
            }
            if group.iter().all(|rule| !rule.when.is_empty()) {
                self.put(RET, 0, 0, otherwise(filter.refused));
            }
            self.land_one(other);
        }
        self.put(RET, 0, 0, otherwise(filter.unknown));
    }
}

/// Makes the program of a filter.
pub(crate) fn assemble(filter: &Filter<'_>, given: &[u32]) -> Vec<Insn> {
    let mut asm = Assembler::default();
    let outside = if filter.inside.is_some() { Otherwise::Trap } else { filter.unknown };
    asm.load(OFF_ARCH);
    asm.need(JEQ, AUDIT_ARCH_X86_64);
    if let Some(range) = &filter.inside {
        // The range does not cross a 4 GiB line.
        asm.load(OFF_IP + 4);
        asm.need(JEQ, hi(range.start));
        asm.load(OFF_IP);
        asm.need(JGE, lo(range.start));
        asm.refuse(JGT, lo(range.end));
    }
    let outside_jumps = std::mem::take(&mut asm.open);
    let mut sorted = filter.rules.to_vec();
    // Stable: the rules of one call stay in their order.
    sorted.sort_by_key(|rule| rule.nr);
    let groups: Vec<Vec<Rule>> = sorted.chunk_by(|a, b| a.nr == b.nr).map(<[Rule]>::to_vec).collect();
    asm.load(OFF_NR);
    asm.numbers(&groups, filter, given);
    asm.open = outside_jumps;
    asm.land();
    asm.put(RET, 0, 0, otherwise(outside));
    asm.code
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program answers, by a small interpreter of the operations that are used here.
    fn run(code: &[Insn], nr: u32, ip: u64, args: [u64; 6]) -> u32 {
        let mut data = [0u8; 64];
        data[..4].copy_from_slice(&nr.to_le_bytes());
        data[4..8].copy_from_slice(&AUDIT_ARCH_X86_64.to_le_bytes());
        data[8..16].copy_from_slice(&ip.to_le_bytes());
        for (i, arg) in args.iter().enumerate() {
            data[16 + 8 * i..24 + 8 * i].copy_from_slice(&arg.to_le_bytes());
        }
        let (mut at, mut a, mut x, mut mem) = (0usize, 0u32, 0u32, [0u32; 16]);
        loop {
            let Insn { code, jt, jf, k } = code[at];
            at += 1;
            let mut jump = |holds: bool| at += usize::from(if holds { jt } else { jf });
            match code {
                LD => a = u32::from_le_bytes(data[k as usize..k as usize + 4].try_into().unwrap()),
                LD_MEM => a = mem[k as usize],
                ST => mem[k as usize] = a,
                ADD_X => a = a.wrapping_add(x),
                ADD_K => a = a.wrapping_add(k),
                AND_K => a &= k,
                TAX => x = a,
                JA => at += k as usize,
                JEQ => jump(a == k),
                JGT => jump(a > k),
                JGE => jump(a >= k),
                JSET => jump(a & k != 0),
                JGE_X => jump(a >= x),
                RET => return k,
                _ => unreachable!(),
            }
        }
    }

    #[test]
    fn every_number_meets_its_own_rules() {
        static NAMES: [(u32, &str); 2] = [(3, "three"), (5, "five")];
        static WHEN: [Cond; 1] = [Cond::OneOf(1, &NAMES)];
        let mut rules = Vec::new();
        for nr in [0, 9, 2, 57, 33, 4000, 12, 70, 71, 72, 73, 200, 201, 202, 15] {
            rules.push(Rule { nr, ..Rule::new("x", 0, if nr % 2 == 0 { &WHEN } else { &[] }, "r") });
        }
        rules.push(Rule::new("x", 72, &[Cond::Given(0, 0, "fd"), Cond::Is(2, 1 << 40)], "another form"));
        rules.push(Rule::new("none", 88, &[], "").answered(Answer::Errno(38)));
        let filter =
            Filter { rules: &rules, inside: None, refused: Otherwise::Errno(1), unknown: Otherwise::Kill };
        let code = filter.assemble(&[7]);
        let known: Vec<u32> = rules.iter().map(|rule| rule.nr).collect();
        for nr in 0..5000 {
            let want = |good: bool| match nr {
                88 => RET_ERRNO | 38,
                nr if !known.contains(&nr) => RET_KILL,
                nr if nr % 2 == 1 || good => RET_ALLOW,
                _ => RET_ERRNO | 1,
            };
            assert_eq!(run(&code, nr, 0, [0, 5, 0, 0, 0, 0]), want(true), "{nr}");
            assert_eq!(run(&code, nr, 0, [0, 4, 0, 0, 0, 0]), want(false), "{nr}");
            assert_eq!(run(&code, nr, 0, [0, 5 + (1 << 32), 0, 0, 0, 0]), want(false), "{nr}");
        }
        assert_eq!(run(&code, 72, 0, [7, 0, 1 << 40, 0, 0, 0]), RET_ALLOW);
        assert_eq!(run(&code, 72, 0, [8, 0, 1 << 40, 0, 0, 0]), RET_ERRNO | 1);
        assert_eq!(run(&code, 72, 0, [7, 0, 0, 0, 0, 0]), RET_ERRNO | 1);
        let inside = Filter { inside: Some(0x1000..0x2000), ..filter };
        let code = inside.assemble(&[]);
        assert_eq!(run(&code, 9, 0x1002, [0; 6]), RET_ALLOW);
        assert_eq!(run(&code, 9, 0xfff, [0; 6]), RET_TRAP);
        assert_eq!(run(&code, 9, 0x2001, [0; 6]), RET_TRAP);
        assert_eq!(run(&code, 9, 0x1_0000_1002, [0; 6]), RET_TRAP);
        assert_eq!(run(&code, 10, 0x1002, [0; 6]), RET_KILL);
        assert_eq!(run(&code, 72, 0x1002, [7, 0, 1 << 40, 0, 0, 0]), RET_ERRNO | 1, "nothing is given");
    }
}
