//! Registers of a stopped task as its tracer reads and writes them (arch/x86/kernel/ptrace.c).

use super::{Stop, Tracer};
use crate::fail::SysResult;
use platform::{Regs, XState};
use syscall_table::errno::Errno;
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of struct user_regs_struct.
pub(crate) const REGS: usize = size_of::<Regs>();
/// Bytes of struct user_fpregs_struct.
pub(crate) const FPREGS: usize = 512;
/// Bytes of the kernel's struct user.
const USER: u64 = 928;
/// Offset of u_debugreg in struct user.
const DEBUG: u64 = 848;
/// What debug registers read as before anybody has set them: DR6 has its reserved bits.
pub(crate) const DEBUG_INITIAL: [u64; 8] = [0, 0, 0, 0, 0, 0, 0xffff_0ff0, 0];
/// One past the highest user address.
const TASK_SIZE: u64 = 0x7fff_ffff_f000;
/// eflags that a tracer can change: CF, PF, AF, ZF, SF, TF, DF, OF, NT, RF, AC.
const FLAGS: u64 = 0x1 | 0x4 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 0x800 | 0x4000 | 0x1_0000 | 0x4_0000;

/// What a register of struct user_regs_struct is, by its place.
#[derive(PartialEq, Eq)]
enum Register {
    Plain,
    Flags,
    Base,
    /// cs and ss, which cannot be 0.
    Vital,
    Selector,
}

fn register(index: usize) -> Register {
    match index {
        17 | 20 => Register::Vital,
        18 => Register::Flags,
        21 | 22 => Register::Base,
        23..=26 => Register::Selector,
        _ => Register::Plain,
    }
}

/// One register in the place that `index` says.
fn put(regs: &mut Regs, index: usize, value: u64) -> SysResult<()> {
    let mut words = words(regs);
    let word = words.get_mut(index).ok_or(Errno::EIO)?;
    match register(index) {
        Register::Plain => *word = value,
        Register::Flags => *word = *word & !FLAGS | value & FLAGS,
        Register::Base if value >= TASK_SIZE => return Err(Errno::EIO.into()),
        Register::Base => *word = value,
        kind => {
            let low = value & 0xffff;
            if low != 0 && low & 3 != 3 || low == 0 && kind == Register::Vital {
                return Err(Errno::EIO.into());
            }
            *word = low;
        }
    }
    *regs = Regs::read_from_bytes(words.as_bytes()).map_err(|_| Errno::EIO)?;
    Ok(())
}

fn words(regs: &Regs) -> [u64; REGS / 8] {
    let mut words = [0u64; REGS / 8];
    for (word, bytes) in words.iter_mut().zip(regs.as_bytes().chunks_exact(8)) {
        *word = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    }
    words
}

/// Sets general registers from the start of struct user_regs_struct; those before a bad one are set.
///
/// # Errors
/// EIO for what no register can hold.
pub(crate) fn set(stop: &mut Stop, bytes: &[u8]) -> SysResult<()> {
    stop.regs_changed = true;
    for (index, bytes) in bytes.chunks_exact(8).enumerate() {
        let value = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        put(&mut stop.regs, index, value)?;
    }
    Ok(())
}

fn bad(addr: u64) -> bool {
    addr & 7 != 0 || addr >= USER
}

fn debug(addr: u64) -> Option<usize> {
    usize::try_from(addr.checked_sub(DEBUG)? / 8).ok().filter(|index| *index < 8)
}

/// PTRACE_PEEKUSER.
///
/// # Errors
/// EIO.
pub(crate) fn peek(by: &Tracer, stop: &Stop, addr: u64) -> SysResult<u64> {
    if bad(addr) {
        return Err(Errno::EIO.into());
    }
    let index = usize::try_from(addr / 8).unwrap_or(usize::MAX);
    let value = words(&stop.regs).get(index).copied();
    Ok(value.or_else(|| by.debug.get(debug(addr)?).copied()).unwrap_or(0))
}

/// PTRACE_POKEUSER.
///
/// # Errors
/// EIO, EINVAL; a gap for a hardware breakpoint on reads.
pub(crate) fn poke(by: &mut Tracer, stop: &mut Stop, addr: u64, value: u64) -> SysResult<()> {
    if bad(addr) {
        return Err(Errno::EIO.into());
    }
    if (addr as usize) < REGS {
        stop.regs_changed = true;
        return put(&mut stop.regs, (addr / 8) as usize, value);
    }
    match debug(addr).ok_or(Errno::EIO)? {
        index @ 0..4 if value >= TASK_SIZE => {
            let _ = index;
            Err(Errno::EINVAL.into())
        }
        index @ (0..4 | 6) => {
            if let Some(word) = by.debug.get_mut(index) {
                *word = value;
            }
            Ok(())
        }
        7 => {
            super::watch::check(&by.debug, value)?;
            by.debug[7] = value;
            Ok(())
        }
        _ => Err(Errno::EIO.into()),
    }
}

/// PTRACE_SETFPREGS: x87 and SSE registers.
///
/// # Errors
/// EINVAL for a control word that the processor does not take.
pub(crate) fn set_fp(stop: &mut Stop, bytes: &[u8]) -> SysResult<()> {
    let mut regset = stop.xstate.regset();
    // The bytes behind belong to software.
    const OWN: usize = 464;
    if let (Some(to), Some(from)) = (regset.get_mut(..OWN), bytes.get(..OWN)) {
        to.copy_from_slice(from);
    }
    if let Some(used) = regset.get_mut(FPREGS) {
        *used |= 3;
    }
    stop.xstate = XState::from_regset(&regset).ok_or(Errno::EINVAL)?;
    stop.xstate_changed = true;
    Ok(())
}

/// NT_X86_XSTATE, whole.
///
/// # Errors
/// EFAULT for another length; EINVAL.
pub(crate) fn set_xstate(stop: &mut Stop, bytes: &[u8]) -> SysResult<()> {
    if bytes.len() != stop.xstate.regset().len() {
        return Err(Errno::EFAULT.into());
    }
    stop.xstate = XState::from_regset(bytes).ok_or(Errno::EINVAL)?;
    stop.xstate_changed = true;
    Ok(())
}
