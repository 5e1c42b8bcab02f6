//! Classic BPF as seccomp(2) has it: what a program may hold, and how it runs.
//!
//! A [`Program`] exists only if Linux would have taken it (bpf_check_classic, seccomp_check_filter): jumps go forward and
//! stay inside, the last instruction returns, loads stay inside `struct seccomp_data`, and no word of scratch memory is read
//! that may not have been written. So every run ends, after at most as many steps as there are instructions.

use syscall_table::abi::seccomp::{AUDIT_ARCH_X86_64, SECCOMP_RET_ALLOW, SeccompData, SockFilter};
use zerocopy::{FromBytes, IntoBytes};

/// Most instructions of a program (BPF_MAXINSNS).
pub const MAX_INSNS: usize = 4096;

/// Words of scratch memory (BPF_MEMWORDS).
const MEM_WORDS: usize = 16;
/// sizeof(struct seccomp_data).
const DATA_LEN: u32 = 64;
/// Offsets in it.
const NR: u32 = 0;
const ARCH: u32 = 4;
const IP: u32 = 8;
const ARGS: u32 = 16;

// Instruction codes (linux/bpf_common.h): class, then size and mode or operation and source.
const LD_W_ABS: u16 = 0x20;
const LD_IMM: u16 = 0x00;
const LD_MEM: u16 = 0x60;
const LD_W_LEN: u16 = 0x80;
const LDX_IMM: u16 = 0x01;
const LDX_MEM: u16 = 0x61;
const LDX_W_LEN: u16 = 0x81;
const ST: u16 = 0x02;
const STX: u16 = 0x03;
const ALU_ADD_K: u16 = 0x04;
const ALU_ADD_X: u16 = 0x0c;
const ALU_SUB_K: u16 = 0x14;
const ALU_SUB_X: u16 = 0x1c;
const ALU_MUL_K: u16 = 0x24;
const ALU_MUL_X: u16 = 0x2c;
const ALU_DIV_K: u16 = 0x34;
const ALU_DIV_X: u16 = 0x3c;
const ALU_OR_K: u16 = 0x44;
const ALU_OR_X: u16 = 0x4c;
const ALU_AND_K: u16 = 0x54;
const ALU_AND_X: u16 = 0x5c;
const ALU_LSH_K: u16 = 0x64;
const ALU_LSH_X: u16 = 0x6c;
const ALU_RSH_K: u16 = 0x74;
const ALU_RSH_X: u16 = 0x7c;
const ALU_NEG: u16 = 0x84;
const ALU_XOR_K: u16 = 0xa4;
const ALU_XOR_X: u16 = 0xac;
const JMP_JA: u16 = 0x05;
const JMP_JEQ_K: u16 = 0x15;
const JMP_JEQ_X: u16 = 0x1d;
const JMP_JGT_K: u16 = 0x25;
const JMP_JGT_X: u16 = 0x2d;
const JMP_JGE_K: u16 = 0x35;
const JMP_JGE_X: u16 = 0x3d;
const JMP_JSET_K: u16 = 0x45;
const JMP_JSET_X: u16 = 0x4d;
const RET_K: u16 = 0x06;
const RET_A: u16 = 0x16;
const MISC_TAX: u16 = 0x07;
const MISC_TXA: u16 = 0x87;

/// System calls of x86-64 by number, one bit each.
pub type Calls = [u64; 8];

/// A program that Linux would take for a filter.
pub struct Program {
    insns: Vec<SockFilter>,
    weight: usize,
    reads_ip: bool,
    allows: Calls,
}

impl Program {
    /// None: Linux would answer EINVAL.
    pub fn new(insns: Vec<SockFilter>) -> Option<Program> {
        if insns.is_empty() || insns.len() > MAX_INSNS {
            return None;
        }
        let sound = (0..insns.len()).all(|pc| sound(&insns, pc));
        let returns = matches!(insns.last()?.code, RET_K | RET_A);
        if !sound || !returns || !memory_is_written_first(&insns) {
            return None;
        }
        let weight = insns.iter().map(converted).sum::<usize>() + PROLOGUE;
        let reads_ip = insns.iter().any(|i| i.code == LD_W_ABS && (IP..ARGS).contains(&i.k));
        let mut program = Program { insns, weight, reads_ip, allows: [0; 8] };
        for (nr, word) in (0..).step_by(64).zip(0..8) {
            let bits = (0..64).filter(|bit| program.always_allows(nr + bit)).map(|bit| 1 << bit).sum();
            if let Some(word) = program.allows.get_mut(word) {
                *word = bits;
            }
        }
        Some(program)
    }

    /// The instructions, as they were given.
    pub fn insns(&self) -> &[SockFilter] {
        &self.insns
    }

    /// Instructions that Linux makes of it, which is what it counts (MAX_INSNS_PER_PATH).
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Whether it looks at `instruction_pointer`.
    pub fn reads_ip(&self) -> bool {
        self.reads_ip
    }

    /// Calls of x86-64 that it allows whatever the arguments are.
    pub fn allows(&self) -> &Calls {
        &self.allows
    }

    /// The filter's value for a call.
    pub fn run(&self, data: &SeccompData) -> u32 {
        let data = data.as_bytes();
        let load = |at: u32| {
            let at = at as usize;
            data.get(at..at.saturating_add(4)).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
        };
        let mut machine = Machine::default();
        loop {
            let Some(insn) = self.insns.get(machine.pc) else { return 0 };
            if let Some(value) = machine.step(insn, load) {
                return value;
            }
        }
    }

    /// Whether number and architecture alone lead to SECCOMP_RET_ALLOW (seccomp_is_const_allow).
    fn always_allows(&self, nr: u32) -> bool {
        let mut machine = Machine::default();
        while let Some(insn) = self.insns.get(machine.pc) {
            let load = |at| if at == NR { nr } else { AUDIT_ARCH_X86_64 };
            match insn.code {
                LD_W_ABS if insn.k == NR || insn.k == ARCH => {}
                JMP_JA | JMP_JEQ_K | JMP_JGT_K | JMP_JGE_K | JMP_JSET_K | ALU_AND_K | RET_K => {}
                _ => return false,
            }
            if let Some(value) = machine.step(insn, load) {
                return value == SECCOMP_RET_ALLOW;
            }
        }
        false
    }
}

/// Takes `data` for a program and runs it on calls made of the same bytes, for a fuzzer: a program that is taken must end,
/// and must allow what it is said to allow always.
pub fn fuzz_run(data: &[u8]) {
    let (head, rest) = data.split_at(data.len().min(size_of::<SeccompData>()));
    let mut call = SeccompData::default();
    for (to, from) in call.as_mut_bytes().iter_mut().zip(head) {
        *to = *from;
    }
    let insns = rest.chunks_exact(8).filter_map(|bytes| SockFilter::read_from_bytes(bytes).ok()).collect();
    let Some(program) = Program::new(insns) else { return };
    for nr in [call.nr, call.nr & 511, 0, 59] {
        for arch in [call.arch, AUDIT_ARCH_X86_64] {
            let value = program.run(&SeccompData { nr, arch, ..call });
            let word = usize::try_from(nr / 64).ok().and_then(|at| program.allows().get(at));
            let always = arch == AUDIT_ARCH_X86_64 && word.is_some_and(|word| word >> (nr & 63) & 1 != 0);
            assert!(!always || value == SECCOMP_RET_ALLOW, "a call that is always allowed");
        }
    }
}

#[derive(Default)]
struct Machine {
    pc: usize,
    a: u32,
    x: u32,
    mem: [u32; MEM_WORDS],
}

impl Machine {
    /// One instruction; the program's value when it returns. The next instruction is behind this one.
    fn step(&mut self, insn: &SockFilter, load: impl Fn(u32) -> u32) -> Option<u32> {
        let &SockFilter { code, jt, jf, k } = insn;
        let (a, x) = (self.a, self.x);
        let mut jump = 0;
        let mut branch = |taken: bool| jump = usize::from(if taken { jt } else { jf });
        match code {
            LD_W_ABS => self.a = load(k),
            LD_IMM => self.a = k,
            LD_W_LEN => self.a = DATA_LEN,
            LD_MEM => self.a = self.mem.get(k as usize).copied().unwrap_or_default(),
            LDX_IMM => self.x = k,
            LDX_W_LEN => self.x = DATA_LEN,
            LDX_MEM => self.x = self.mem.get(k as usize).copied().unwrap_or_default(),
            ST | STX => {
                if let Some(word) = self.mem.get_mut(k as usize) {
                    *word = if code == ST { a } else { x };
                }
            }
            ALU_ADD_K => self.a = a.wrapping_add(k),
            ALU_ADD_X => self.a = a.wrapping_add(x),
            ALU_SUB_K => self.a = a.wrapping_sub(k),
            ALU_SUB_X => self.a = a.wrapping_sub(x),
            ALU_MUL_K => self.a = a.wrapping_mul(k),
            ALU_MUL_X => self.a = a.wrapping_mul(x),
            ALU_DIV_K => self.a = a.checked_div(k).unwrap_or_default(),
            ALU_DIV_X => match a.checked_div(x) {
                Some(quotient) => self.a = quotient,
                // The program ends with 0.
                None => return Some(0),
            },
            ALU_OR_K => self.a = a | k,
            ALU_OR_X => self.a = a | x,
            ALU_AND_K => self.a = a & k,
            ALU_AND_X => self.a = a & x,
            ALU_XOR_K => self.a = a ^ k,
            ALU_XOR_X => self.a = a ^ x,
            // By the low five bits, as the processor shifts.
            ALU_LSH_K => self.a = a.wrapping_shl(k),
            ALU_LSH_X => self.a = a.wrapping_shl(x),
            ALU_RSH_K => self.a = a.wrapping_shr(k),
            ALU_RSH_X => self.a = a.wrapping_shr(x),
            ALU_NEG => self.a = a.wrapping_neg(),
            JMP_JA => jump = k as usize,
            JMP_JEQ_K => branch(a == k),
            JMP_JEQ_X => branch(a == x),
            JMP_JGT_K => branch(a > k),
            JMP_JGT_X => branch(a > x),
            JMP_JGE_K => branch(a >= k),
            JMP_JGE_X => branch(a >= x),
            JMP_JSET_K => branch(a & k != 0),
            JMP_JSET_X => branch(a & x != 0),
            MISC_TAX => self.x = a,
            MISC_TXA => self.a = x,
            RET_A => return Some(a),
            // RET_K, the last that there is.
            _ => return Some(k),
        }
        self.pc = self.pc.saturating_add(1).saturating_add(jump);
        None
    }
}

/// Whether an instruction is allowed where it stands.
fn sound(insns: &[SockFilter], pc: usize) -> bool {
    let Some(&SockFilter { code, jt, jf, k }) = insns.get(pc) else { return false };
    // How many instructions stand behind it: a jump by less stays inside.
    let behind = insns.len().saturating_sub(pc).saturating_sub(1);
    match code {
        LD_W_ABS => k < DATA_LEN && k & 3 == 0,
        LD_IMM | LDX_IMM | LD_W_LEN | LDX_W_LEN | MISC_TAX | MISC_TXA | RET_K | RET_A | ALU_NEG => true,
        LD_MEM | LDX_MEM | ST | STX => (k as usize) < MEM_WORDS,
        ALU_ADD_K | ALU_ADD_X | ALU_SUB_K | ALU_SUB_X | ALU_MUL_K | ALU_MUL_X | ALU_DIV_X | ALU_OR_K
        | ALU_OR_X | ALU_AND_K | ALU_AND_X | ALU_XOR_K | ALU_XOR_X | ALU_LSH_X | ALU_RSH_X => true,
        ALU_DIV_K => k != 0,
        ALU_LSH_K | ALU_RSH_K => k < 32,
        JMP_JA => (k as usize) < behind,
        JMP_JEQ_K | JMP_JEQ_X | JMP_JGT_K | JMP_JGT_X | JMP_JGE_K | JMP_JGE_X | JMP_JSET_K | JMP_JSET_X => {
            usize::from(jt.max(jf)) < behind
        }
        _ => false,
    }
}

/// Whether each word of scratch memory was written on every way to where it is read (check_load_and_stores).
fn memory_is_written_first(insns: &[SockFilter]) -> bool {
    // Words written on all ways that jump to an instruction; no way yet: all.
    let mut at = vec![u16::MAX; insns.len()];
    let mut written = 0u16;
    for (pc, &SockFilter { code, jt, jf, k }) in insns.iter().enumerate() {
        written &= at.get(pc).copied().unwrap_or_default();
        let word = 1u16.checked_shl(k).unwrap_or_default();
        let mut jump = |by: usize| {
            if let Some(ways) = at.get_mut(pc.saturating_add(1).saturating_add(by)) {
                *ways &= written;
            }
        };
        match code {
            ST | STX => written |= word,
            LD_MEM | LDX_MEM if written & word == 0 => return false,
            JMP_JA => {
                jump(k as usize);
                written = u16::MAX;
            }
            JMP_JEQ_K | JMP_JEQ_X | JMP_JGT_K | JMP_JGT_X | JMP_JGE_K | JMP_JGE_X | JMP_JSET_K
            | JMP_JSET_X => {
                jump(usize::from(jt));
                jump(usize::from(jf));
                written = u16::MAX;
            }
            _ => {}
        }
    }
    true
}

/// What Linux puts before every program that it converts to its own instructions.
const PROLOGUE: usize = 3;

/// How many of its own instructions Linux makes of one (bpf_convert_filter): 3,641 filters of one `ret` fit on a path.
fn converted(insn: &SockFilter) -> usize {
    let &SockFilter { code, jt, jf, k } = insn;
    match code {
        // A division by 0 is looked for first.
        ALU_DIV_X => 5,
        RET_K => 2,
        JMP_JEQ_K | JMP_JEQ_X | JMP_JGT_K | JMP_JGT_X | JMP_JGE_K | JMP_JGE_X | JMP_JSET_K | JMP_JSET_X => {
            let by_register = matches!(code, JMP_JEQ_X | JMP_JGT_X | JMP_JGE_X | JMP_JSET_X);
            // Its own immediates have a sign.
            let wide = usize::from(!by_register && k > i32::MAX as u32);
            let turned = jt == 0 && !matches!(code, JMP_JSET_K | JMP_JSET_X);
            wide + if jf == 0 || turned { 1 } else { 2 }
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: [u16; 44] = [
        LD_W_ABS, LD_IMM, LD_MEM, LD_W_LEN, LDX_IMM, LDX_MEM, LDX_W_LEN, ST, STX, ALU_ADD_K, ALU_ADD_X,
        ALU_SUB_K, ALU_SUB_X, ALU_MUL_K, ALU_MUL_X, ALU_DIV_K, ALU_DIV_X, ALU_OR_K, ALU_OR_X, ALU_AND_K,
        ALU_AND_X, ALU_LSH_K, ALU_LSH_X, ALU_RSH_K, ALU_RSH_X, ALU_NEG, ALU_XOR_K, ALU_XOR_X, JMP_JA,
        JMP_JEQ_K, JMP_JEQ_X, JMP_JGT_K, JMP_JGT_X, JMP_JGE_K, JMP_JGE_X, JMP_JSET_K, JMP_JSET_X, RET_K,
        RET_A, MISC_TAX, MISC_TXA, 0x28, 0x94, 0xffff,
    ];

    fn insn(code: u16, jt: u8, jf: u8, k: u32) -> SockFilter {
        SockFilter { code, jt, jf, k }
    }

    fn data(nr: i32, arg: u64) -> SeccompData {
        SeccompData { nr, arch: AUDIT_ARCH_X86_64, instruction_pointer: 0, args: [arg; 6] }
    }

    struct Random(u64);

    impl Random {
        fn next(&mut self, below: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % below
        }

        fn word(&mut self) -> u32 {
            match self.next(4) {
                0 => self.next(64) as u32,
                1 => self.next(20) as u32,
                2 => u32::MAX - self.next(4) as u32,
                _ => self.next(1 << 32) as u32,
            }
        }
    }

    #[test]
    fn any_program_is_refused_or_ends() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..60_000 {
            let len = random.next(14) as usize;
            let mut insns: Vec<_> = (0..len)
                .map(|_| {
                    let most = if random.next(8) == 0 { 44 } else { 41 };
                    let code = CODES[random.next(most) as usize];
                    insn(code, random.next(4) as u8, random.next(4) as u8, random.word())
                })
                .collect();
            if random.next(4) != 0 {
                insns.push(insn(RET_A, 0, 0, 0));
            }
            let given = insns.clone();
            let Some(program) = Program::new(insns) else {
                refused += 1;
                continue;
            };
            taken += 1;
            assert_eq!(program.insns(), &given);
            let nr = random.next(512) as i32;
            let mut values = [0u64, 1, u64::MAX, random.next(1 << 40)].map(|arg| program.run(&data(nr, arg)));
            values.sort_unstable();
            if program.allows()[nr as usize / 64] >> (nr % 64) & 1 != 0 {
                assert_eq!(values, [SECCOMP_RET_ALLOW; 4], "{given:?}");
            }
        }
        assert!(taken > 2_000 && refused > 2_000, "{taken} taken, {refused} refused");
    }

    #[test]
    fn what_is_refused() {
        let ret = insn(RET_K, 0, 0, 0);
        let refused = |insns: &[SockFilter]| assert!(Program::new(insns.to_vec()).is_none(), "{insns:?}");
        refused(&[]);
        refused(&vec![ret; MAX_INSNS + 1]);
        refused(&[ret, insn(LD_IMM, 0, 0, 0)]);
        refused(&[insn(LD_W_ABS, 0, 0, 64), ret]);
        refused(&[insn(LD_W_ABS, 0, 0, 2), ret]);
        refused(&[insn(JMP_JA, 0, 0, 1), ret]);
        refused(&[insn(JMP_JA, 0, 0, u32::MAX), ret]);
        refused(&[insn(JMP_JEQ_K, 1, 0, 0), ret]);
        refused(&[insn(ALU_DIV_K, 0, 0, 0), ret]);
        refused(&[insn(ALU_LSH_K, 0, 0, 32), ret]);
        refused(&[insn(ST, 0, 0, 16), ret]);
        refused(&[insn(LD_MEM, 0, 0, 0), ret]);
        // Written on one of two ways.
        refused(&[insn(JMP_JEQ_K, 0, 1, 0), insn(ST, 0, 0, 3), insn(LD_MEM, 0, 0, 3), ret]);
        assert!(Program::new(vec![insn(ST, 0, 0, 3), insn(LD_MEM, 0, 0, 3), ret]).is_some());
        assert!(Program::new(vec![ret; MAX_INSNS]).is_some());
    }

    #[test]
    fn verdicts() {
        let program = Program::new(vec![
            insn(LD_W_ABS, 0, 0, ARCH),
            insn(JMP_JEQ_K, 0, 4, AUDIT_ARCH_X86_64),
            insn(LD_W_ABS, 0, 0, NR),
            insn(JMP_JEQ_K, 2, 0, 39),
            insn(LD_W_ABS, 0, 0, ARGS),
            insn(JMP_JGT_K, 0, 1, 7),
            insn(RET_K, 0, 0, SECCOMP_RET_ALLOW),
            insn(RET_K, 0, 0, 0x5_0001),
        ])
        .unwrap();
        assert_eq!(program.run(&data(39, 9)), SECCOMP_RET_ALLOW);
        assert_eq!(program.run(&data(40, 8)), SECCOMP_RET_ALLOW);
        assert_eq!(program.run(&data(40, 7)), 0x5_0001);
        assert_eq!(program.allows(), &[1 << 39, 0, 0, 0, 0, 0, 0, 0]);
        // Prologue, two loads, a comparison with a wide number, one with two ways, a load, a comparison, two returns.
        assert_eq!(program.weight(), 3 + 1 + 2 + 1 + 1 + 1 + 1 + 2 + 2);
        assert!(!program.reads_ip());
    }
}
