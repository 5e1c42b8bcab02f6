//! Programs of filters: which are taken, and what they compute. The second is compared with a machine of this file's own.

use guest_tests::filter::{ALLOW, ARGS, ERRNO, NR, add, jump, load, no_new_privs, ret, set, stmt};
use guest_tests::*;
use libc::*;

cases![codes, loads, jumps, scratch_memory, constants, ends, longest, shifts_and_division, random_programs];

/// Codes of instructions that filters may have.
const CODES: [u32; 41] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x0c, 0x14, 0x15, 0x16, 0x1c, 0x1d, 0x20, 0x24, 0x25, 0x2c, 0x2d, 0x34, 0x35, 0x3c,
    0x3d, 0x44, 0x45, 0x4c, 0x4d, 0x54, 0x5c, 0x60, 0x61, 0x64, 0x6c, 0x74, 0x7c, 0x80, 0x81, 0x84, 0x87, 0xa4, 0xac,
];

#[track_caller]
fn taken(insns: &[sock_filter]) {
    eq(set(0, insns), 0);
}

#[track_caller]
fn refused(insns: &[sock_filter]) {
    err(set(0, insns), EINVAL);
}

/// Each code there is, with operands that suit all.
fn codes() {
    in_child(|| {
        no_new_privs();
        let mut allowed = Vec::new();
        for code in (0..0x200).chain([0x8020, 0xff06, 0xffff]) {
            // Jumped over: what is taken goes on judging this process.
            let program = [&[stmt(BPF_JMP | BPF_JA, 1), stmt(code, 4)][..], &[ret(ALLOW); 5]].concat();
            if set(0, &program) == 0 {
                allowed.push(code);
            }
        }
        eq(allowed, CODES.to_vec());
    });
}

fn loads() {
    in_child(|| {
        no_new_privs();
        for at in (0..72).chain([u32::MAX, u32::MAX - 3, 0xffff_f000, 0xffff_f028, 1 << 31]) {
            let program = [load(at), ret(ALLOW)];
            if at < 64 && at % 4 == 0 { taken(&program) } else { refused(&program) }
        }
        for code in [BPF_LD | BPF_H | BPF_ABS, BPF_LD | BPF_B | BPF_ABS, BPF_LD | BPF_W | BPF_IND, BPF_LDX | BPF_B | BPF_MSH] {
            refused(&[stmt(code, 0), ret(ALLOW)]);
        }
        // BPF_LEN's operand is not looked at.
        taken(&[stmt(BPF_LD | BPF_W | BPF_LEN, 99), ret(ALLOW)]);
        taken(&[stmt(BPF_LDX | BPF_W | BPF_LEN, 99), ret(ALLOW)]);
    });
}

fn jumps() {
    in_child(|| {
        no_new_privs();
        for op in [BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET] {
            for source in [BPF_K, BPF_X] {
                taken(&[jump(op | source, 0, 1, 0), ret(ALLOW), ret(ALLOW)]);
                taken(&[jump(op | source, 0, 0, 1), ret(ALLOW), ret(ALLOW)]);
                refused(&[jump(op | source, 0, 2, 0), ret(ALLOW), ret(ALLOW)]);
                refused(&[jump(op | source, 0, 0, 2), ret(ALLOW), ret(ALLOW)]);
                refused(&[jump(op | source, 0, 255, 255), ret(ALLOW), ret(ALLOW)]);
            }
        }
        taken(&[stmt(BPF_JMP | BPF_JA, 1), ret(ALLOW), ret(ALLOW)]);
        for k in [2, 3, 255, 256, 4096, 65535, u32::MAX, u32::MAX - 1, 1 << 31] {
            refused(&[stmt(BPF_JMP | BPF_JA, k), ret(ALLOW), ret(ALLOW)]);
        }
        // What an unconditional jump holds for the others is not looked at.
        taken(&[jump(BPF_JA, 0, 9, 9), ret(ALLOW)]);
        let mut far = vec![stmt(BPF_JMP | BPF_JA, 1000)];
        far.resize(1001, stmt(BPF_LD | BPF_IMM, 0));
        far.push(ret(ALLOW));
        taken(&far);
    });
}

fn scratch_memory() {
    in_child(|| {
        no_new_privs();
        for code in [BPF_ST, BPF_STX] {
            for (k, good) in [(0, true), (15, true), (16, false), (u32::MAX, false)] {
                let program = [stmt(code, k), ret(ALLOW)];
                if good { taken(&program) } else { refused(&program) }
            }
        }
        let (st, ld, ldx) = (|k| stmt(BPF_ST, k), |k| stmt(BPF_LD | BPF_MEM, k), |k| stmt(BPF_LDX | BPF_MEM, k));
        refused(&[ld(0), ret(ALLOW)]);
        refused(&[ldx(3), ret(ALLOW)]);
        refused(&[st(0), ld(1), ret(ALLOW)]);
        taken(&[st(0), ld(0), ldx(0), ret(ALLOW)]);
        refused(&[st(0), ld(16), ret(ALLOW)]);
        // Written on one of two ways, on both, and behind a jump over it.
        refused(&[jump(BPF_JEQ, 0, 0, 1), st(3), ld(3), ret(ALLOW)]);
        taken(&[jump(BPF_JEQ, 0, 0, 2), st(3), stmt(BPF_JMP, 1), st(3), ld(3), ret(ALLOW)]);
        refused(&[jump(BPF_JEQ, 0, 0, 2), st(3), stmt(BPF_JMP, 1), st(4), ld(3), ret(ALLOW)]);
        refused(&[stmt(BPF_JMP, 1), st(3), ld(3), ret(ALLOW)]);
        // Nobody comes here.
        taken(&[ret(ALLOW), ld(3), ret(ALLOW)].map(|i| if i.code == 0x60 { stmt(BPF_LD, 0) } else { i }));
        refused(&[ret(ALLOW), ld(3), ret(ALLOW)]);
        taken(&[stmt(BPF_JMP, 1), ld(3), ret(ALLOW)]);
    });
}

fn constants() {
    in_child(|| {
        no_new_privs();
        refused(&[stmt(BPF_ALU | BPF_DIV | BPF_K, 0), ret(ALLOW)]);
        taken(&[stmt(BPF_ALU | BPF_DIV | BPF_K, 1), ret(ALLOW)]);
        for op in [BPF_LSH, BPF_RSH] {
            taken(&[stmt(BPF_ALU | op | BPF_K, 31), ret(ALLOW)]);
            refused(&[stmt(BPF_ALU | op | BPF_K, 32), ret(ALLOW)]);
            refused(&[stmt(BPF_ALU | op | BPF_K, u32::MAX), ret(ALLOW)]);
            taken(&[stmt(BPF_ALU | op | BPF_X, 32), ret(ALLOW)]);
        }
    });
}

fn ends() {
    in_child(|| {
        no_new_privs();
        refused(&[stmt(BPF_LD | BPF_IMM, 0)]);
        refused(&[ret(ALLOW), stmt(BPF_JMP | BPF_JA, 0)]);
        // BPF_RET with X.
        refused(&[stmt(BPF_RET | BPF_X, 0)]);
        taken(&[stmt(BPF_LD | BPF_IMM, ALLOW), stmt(BPF_RET | BPF_A, 0)]);
    });
}

fn longest() {
    in_child(|| {
        let mut program = vec![stmt(BPF_ALU | BPF_ADD | BPF_K, 1); 4092];
        program.extend([jump(BPF_JEQ | BPF_K, 4092, 0, 2), stmt(BPF_LD | BPF_IMM, ALLOW), stmt(BPF_RET | BPF_A, 0), ret(ERRNO | 1)]);
        eq(program.len(), 4096);
        add(&program);
        check(sys!(SYS_getppid) > 0, "4,092 additions");
    });
}

/// A filter for one call whose errno is the low byte of what the instructions leave in A, and one that looks at another byte.
fn around(body: &[sock_filter], shift: u32) -> Vec<sock_filter> {
    let mut program = vec![load(NR), jump(BPF_JEQ | BPF_K, SYS_getpgid as u32, 1, 0), ret(ALLOW)];
    program.extend([stmt(BPF_LD | BPF_IMM, 0), stmt(BPF_LDX | BPF_IMM, 0)]);
    program.extend((0..16).map(|k| stmt(BPF_ST, k)));
    program.extend(body);
    program.extend([
        stmt(BPF_ALU | BPF_RSH | BPF_K, shift),
        stmt(BPF_ALU | BPF_AND | BPF_K, 0xff),
        stmt(BPF_ALU | BPF_OR | BPF_K, ERRNO),
        stmt(BPF_RET | BPF_A, 0),
    ]);
    program
}

/// What a program leaves in A; None if it ends the calling thread (a division by 0).
fn compute(body: &[sock_filter], args: &[u32; 12]) -> Option<u32> {
    let (mut a, mut x, mut mem, mut pc) = (0u32, 0u32, [0u32; 16], 0);
    while pc < body.len() {
        let sock_filter { code, jt, jf, k } = body[pc];
        pc += 1;
        let code = u32::from(code);
        let source = if code & 8 != 0 { x } else { k };
        let op = code & 0xf0;
        match code & 7 {
            BPF_LD => {
                a = match code & 0xe0 {
                    BPF_IMM => k,
                    BPF_ABS => args[(k - ARGS) as usize / 4],
                    BPF_MEM => mem[k as usize],
                    _ => 64,
                }
            }
            BPF_LDX => {
                x = match code & 0xe0 {
                    BPF_IMM => k,
                    BPF_MEM => mem[k as usize],
                    _ => 64,
                }
            }
            BPF_ST => mem[k as usize] = a,
            BPF_STX => mem[k as usize] = x,
            BPF_ALU => {
                a = match op {
                    BPF_ADD => a.wrapping_add(source),
                    BPF_SUB => a.wrapping_sub(source),
                    BPF_MUL => a.wrapping_mul(source),
                    BPF_DIV if source == 0 => return None,
                    BPF_DIV => a / source,
                    BPF_OR => a | source,
                    BPF_AND => a & source,
                    BPF_LSH => a << (source % 32),
                    BPF_RSH => a >> (source % 32),
                    BPF_NEG => 0u32.wrapping_sub(a),
                    _ => a ^ source,
                }
            }
            BPF_JMP => {
                let taken = match op {
                    BPF_JA => {
                        pc += k as usize;
                        continue;
                    }
                    BPF_JEQ => a == source,
                    BPF_JGT => a > source,
                    BPF_JGE => a >= source,
                    _ => a & source != 0,
                };
                pc += usize::from(if taken { jt } else { jf });
            }
            _ => {
                if code == 0x87 {
                    a = x
                } else {
                    x = a
                }
            }
        }
    }
    Some(a)
}

#[track_caller]
fn computes(body: &[sock_filter], args: [u64; 6], wanted: Option<u32>) {
    for shift in [0, 8, 16, 24] {
        let pid = child(|| {
            ok(sys!(SYS_setrlimit, RLIMIT_CORE, &[0u64; 2]));
            add(&around(body, shift));
            let [a, b, c, d, e, f] = args;
            let got = sys!(SYS_getpgid, a, b, c, d, e, f);
            (-got) as i32
        });
        match wanted {
            Some(value) => exits(pid, (value >> shift & 0xff) as i32),
            None => {
                killed_by(pid, SIGSYS);
                return;
            }
        }
    }
}

fn shifts_and_division() {
    let x = |k| stmt(BPF_LDX | BPF_IMM, k);
    let a = |k| stmt(BPF_LD | BPF_IMM, k);
    let op = |op| stmt(BPF_ALU | op | BPF_X, 0);
    computes(&[a(0x1234_5678), x(33), op(BPF_LSH)], [0; 6], Some(0x2468_acf0));
    computes(&[a(0x8000_0000), x(63), op(BPF_RSH)], [0; 6], Some(1));
    computes(&[a(7), x(0), op(BPF_DIV)], [0; 6], None);
    computes(&[a(u32::MAX), x(2), op(BPF_DIV)], [0; 6], Some(0x7fff_ffff));
    computes(&[a(5), stmt(BPF_ALU | BPF_NEG, 0)], [0; 6], Some(0xffff_fffb));
    computes(&[a(3), x(5), op(BPF_SUB)], [0; 6], Some(0xffff_fffe));
    computes(&[a(0xffff_ffff), jump(BPF_JGT | BPF_K, 5, 0, 1), a(9)], [0; 6], Some(9));
}

struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }
}

fn random_programs() {
    let mut random = Random(0x5ecc_0ab5);
    for _ in 0..60 {
        let len = 6 + random.next(30);
        let body: Vec<sock_filter> = (0..len)
            .map(|at| {
                let rest = len - at - 1;
                let mut code = CODES[random.next(41) as usize];
                while matches!(code, 0x06 | 0x16 | 0x3c) && random.next(12) != 0 || code & 7 == BPF_RET {
                    code = CODES[random.next(41) as usize];
                }
                let word = [random.next(9), random.next(1 << 32), u64::from(u32::MAX) - random.next(9)][random.next(3) as usize] as u32;
                let k = match code {
                    0x20 => ARGS + 4 * random.next(12) as u32,
                    0x02 | 0x03 | 0x60 | 0x61 => random.next(16) as u32,
                    0x64 | 0x74 => random.next(32) as u32,
                    0x34 => word.max(1),
                    0x05 => random.next(rest.min(4) + 1) as u32,
                    _ => word,
                };
                let mut by = || random.next(rest.min(4) + 1) as u8;
                if code & 7 == BPF_JMP && code != 0x05 {
                    sock_filter { code: code as u16, jt: by(), jf: by(), k }
                } else {
                    stmt(code, k)
                }
            })
            .collect();
        let args: [u64; 6] = std::array::from_fn(|_| [random.next(9), random.next(1 << 53) << 11 | random.next(9)][random.next(2) as usize]);
        let words: [u32; 12] = std::array::from_fn(|i| (args[i / 2] >> (32 * (i % 2))) as u32);
        computes(&body, args, compute(&body, &words));
    }
}
