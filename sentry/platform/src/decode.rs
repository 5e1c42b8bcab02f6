//! What the instruction at which a task is stopped is going to do: which memory it reads and writes, where it goes on.

use crate::Regs;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, Register};

/// Longest instruction.
pub const LONGEST: usize = 15;

/// Memory that an instruction reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// First address.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// It writes there; else it reads only.
    pub writes: bool,
}

/// An instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instruction {
    /// What it reaches. Of those that gather by vector registers, nothing.
    pub touches: Vec<Touch>,
    /// It reaches other memory, by vector registers or as much as the processor's state takes.
    pub blind: bool,
    /// It goes elsewhere, whatever its operands are.
    pub jumps: bool,
    /// The address behind it.
    pub next: u64,
}

/// Decodes the beginning of `code`, which lies where `regs` are. None: it is no instruction.
pub fn instruction(code: &[u8], regs: &Regs) -> Option<Instruction> {
    let bits = if regs.cs == 0x23 { 32 } else { 64 };
    let mut decoder = Decoder::with_ip(bits, code, regs.rip, DecoderOptions::NONE);
    let insn = decoder.decode();
    if insn.is_invalid() {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(&insn).used_memory();
    let mut blind = false;
    let touches = used.iter().filter_map(|memory| {
        let writes = match memory.access() {
            OpAccess::None | OpAccess::NoMemAccess => return None,
            OpAccess::Read | OpAccess::CondRead => false,
            _ => true,
        };
        let addr = memory.virtual_address(0, |register, _, _| value(register, regs));
        blind |= addr.is_none() || memory.memory_size().size() == 0;
        let addr = addr?;
        Some(Touch { addr, len: memory.memory_size().size().max(1) as u64, writes })
    });
    let touches = touches.collect();
    let jumps = !matches!(
        insn.flow_control(),
        FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::Interrupt | FlowControl::Exception
    ) && insn.mnemonic() != Mnemonic::Syscall;
    Some(Instruction { touches, blind, jumps, next: insn.next_ip() })
}

/// The part of a register that an address is made of; the base of a segment.
fn value(register: Register, regs: &Regs) -> Option<u64> {
    let full = match register.full_register() {
        Register::RAX => regs.rax,
        Register::RBX => regs.rbx,
        Register::RCX => regs.rcx,
        Register::RDX => regs.rdx,
        Register::RSI => regs.rsi,
        Register::RDI => regs.rdi,
        Register::RBP => regs.rbp,
        Register::RSP => regs.rsp,
        Register::R8 => regs.r8,
        Register::R9 => regs.r9,
        Register::R10 => regs.r10,
        Register::R11 => regs.r11,
        Register::R12 => regs.r12,
        Register::R13 => regs.r13,
        Register::R14 => regs.r14,
        Register::R15 => regs.r15,
        Register::FS => return Some(regs.fs_base),
        Register::GS => return Some(regs.gs_base),
        Register::CS | Register::DS | Register::ES | Register::SS => return Some(0),
        _ => return None,
    };
    Some(match register.size() {
        8 => full,
        4 => full & 0xffff_ffff,
        2 => full & 0xffff,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(code: &[u8]) -> Instruction {
        let regs =
            Regs { rip: 0x1000, rax: 0x5000, rcx: 3, rsp: 0x8000, rsi: 0x100, rdi: 0x200, ..Regs::default() };
        instruction(code, &Regs { fs_base: 0x7000, cs: 0x33, ..regs }).unwrap()
    }

    #[test]
    fn memory_that_is_reached() {
        let touch = |addr, len, writes| Touch { addr, len, writes };
        // mov rdx, [rax + rcx * 8 + 1]
        assert_eq!(at(&[0x48, 0x8b, 0x54, 0xc8, 1]).touches, [touch(0x5019, 8, false)]);
        // add byte ptr [rax], 1
        assert_eq!(at(&[0x80, 0x00, 1]).touches, [touch(0x5000, 1, true)]);
        // mov eax, fs:[0x28]
        assert_eq!(at(&[0x64, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]).touches, [touch(0x7028, 4, false)]);
        // push rax
        assert_eq!(at(&[0x50]).touches, [touch(0x7ff8, 8, true)]);
        // movsb
        let mut both = at(&[0xa4]).touches;
        both.sort_by_key(|touch| touch.addr);
        assert_eq!(both, [touch(0x100, 1, false), touch(0x200, 1, true)]);
        // vpgatherdd zmm0 {k1}, [rax + zmm1]; xsave [rax]
        assert!(at(&[0x62, 0xf2, 0x7d, 0x49, 0x90, 0x04, 0x08]).blind && at(&[0x0f, 0xae, 0x20]).blind);
        assert!(!at(&[0xa4]).blind && !at(&[0x0f, 0x05]).blind);
        // lea rax, [rcx]; nop [rax]
        assert_eq!(at(&[0x48, 0x8d, 0x01]).touches, []);
        assert_eq!(at(&[0x0f, 0x1f, 0x00]).touches, []);
    }

    #[test]
    fn where_it_goes_on() {
        // jmp, call, ret; je, nop, syscall
        for (code, jumps) in [(&[0xeb, 0x10][..], true), (&[0xe8, 0, 0, 0, 0], true), (&[0xc3], true)] {
            assert_eq!(at(code).jumps, jumps);
        }
        for code in [&[0x74, 0x10][..], &[0x90], &[0x0f, 0x05]] {
            let insn = at(code);
            assert!(!insn.jumps);
            assert_eq!(insn.next, 0x1000 + code.len() as u64);
        }
        assert_eq!(instruction(&[0x06], &Regs { cs: 0x33, ..Regs::default() }), None);
    }
}
