//! Exceptions: what siginfo says, and the processor's numbers, which ptrace does not tell.

use super::host::{self, SigInfo};
use crate::{Exception, hostcalls};
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess};

const PAGE_FAULT: u64 = 14;
const SEGV_ACCERR: i32 = 2;
const SI_KERNEL: i32 = 0x80;
/// One past the highest user address.
const TASK_SIZE: u64 = 0x7fff_ffff_f000;

/// The exception that a tracee is about to receive as a signal.
pub fn describe(tid: i32, info: &SigInfo) -> Exception {
    let trapno = match (info.signo, info.code) {
        (libc::SIGSEGV, SI_KERNEL) => 13,
        (libc::SIGSEGV, _) => PAGE_FAULT,
        (libc::SIGBUS, 1) => 17,
        (libc::SIGBUS, _) => PAGE_FAULT,
        (libc::SIGFPE, 1) => 0,
        (libc::SIGFPE, _) => 19,
        (libc::SIGILL, _) => 6,
        (libc::SIGTRAP, SI_KERNEL) => 3,
        _ => 1,
    };
    let error_code = if trapno == PAGE_FAULT { page_fault(tid, info) } else { 0 };
    Exception { signo: info.signo, code: info.code, addr: info.addr, trapno, error_code }
}

/// The error code that the processor pushed, told from the instruction: present, write, user, fetch.
fn page_fault(tid: i32, info: &SigInfo) -> u64 {
    // The kernel's half is said to be present, whatever is there; a page of a file behind its end is not.
    let present =
        u64::from(info.signo == libc::SIGSEGV && (info.code == SEGV_ACCERR || info.addr >= TASK_SIZE));
    let Ok(regs) = host::regs(tid) else { return 4 | present };
    if regs.rip == info.addr {
        return 4 | 0x10 | present;
    }
    let mut code = [0; 15];
    let got = hostcalls::vm_read(tid, regs.rip, &mut code);
    let bits = if regs.cs == 0x23 { 32 } else { 64 };
    let mut decoder =
        Decoder::with_ip(bits, code.get(..got).unwrap_or_default(), regs.rip, DecoderOptions::NONE);
    let insn = decoder.decode();
    let mut factory = InstructionInfoFactory::new();
    let stores = factory.info(&insn).used_memory().iter().any(|memory| {
        matches!(
            memory.access(),
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    });
    4 | present | if stores { 2 } else { 0 }
}
