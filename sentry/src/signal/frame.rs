//! The x86-64 signal frame (arch/x86/kernel/signal_64.c: rt_sigframe) and its way back.

use super::{NO_STACK, UNMASKABLE, bit, mask};
use crate::task::Task;
use platform::{CallError, Gone, MemFault, Port, Regs, XState};
use std::mem::size_of;
use std::sync::Arc;
use syscall_table::abi::sigaction::*;
use syscall_table::abi::sigreturn::*;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Why there is no frame.
pub(crate) enum Failed {
    /// Memory that cannot be accessed, or contents that make no sense.
    Memory,
    /// The process is gone.
    Gone,
}

impl From<MemFault> for Failed {
    fn from(_: MemFault) -> Self {
        Failed::Memory
    }
}

impl From<Gone> for Failed {
    fn from(_: Gone) -> Self {
        Failed::Gone
    }
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Errno(_) => Failed::Memory,
            CallError::Gone => Failed::Gone,
        }
    }
}

/// Bytes below the stack pointer that belong to the interrupted function.
const RED_ZONE: u64 = 128;
/// FXSAVE area; what lies behind it is described by its last 48 bytes.
const FXSAVE: usize = 512;
/// More than any processor's extended state; a frame that claims more is refused.
const XSTATE_MAX: usize = 1 << 16;
/// eflags cleared for a handler: TF, DF, RF.
const HANDLER_CLEARS: u64 = 0x100 | 0x400 | 0x1_0000;
/// eflags that sigreturn takes from the frame: AC, OF, DF, TF, SF, ZF, AF, PF, CF, RF.
const RESTORED_FLAGS: u64 = 0x4_0000 | 0x800 | 0x400 | 0x100 | 0x80 | 0x40 | 0x10 | 0x4 | 0x1 | 0x1_0000;

/// Whether a stack pointer lies on the alternate stack, which then is in use: never so with SS_AUTODISARM.
pub(crate) fn on_stack(stack: &Stack, sp: u64) -> bool {
    stack.ss_flags & SS_AUTODISARM == 0 && stack.ss_size != 0 && within(stack, sp)
}

/// Whether an address lies on the alternate stack.
fn within(stack: &Stack, sp: u64) -> bool {
    sp > stack.ss_sp && sp.wrapping_sub(stack.ss_sp) <= stack.ss_size
}

/// Builds a frame for the handler and makes `regs` enter it.
pub(crate) fn push(
    task: &Arc<Task>,
    port: &mut dyn Port,
    regs: &mut Regs,
    info: &Siginfo,
    action: &Sigaction,
) -> Result<(), Failed> {
    if action.sa_flags & SA_RESTORER == 0 {
        return Err(Failed::Memory);
    }
    let altstack = task.altstack();
    let (old_mask, fault) = {
        let mut signals = task.signals.lock();
        let old = signals.saved_mask.take().unwrap_or(signals.mask);
        (old, signals.fault)
    };
    let xstate = port.xstate()?;

    let nested = on_stack(&altstack, regs.rsp);
    let switches = action.sa_flags & SA_ONSTACK != 0 && !nested && altstack.ss_size != 0;
    let top = if switches {
        altstack.ss_sp.wrapping_add(altstack.ss_size)
    } else {
        regs.rsp.wrapping_sub(RED_ZONE)
    };
    let fp = top.wrapping_sub(xstate.0.len() as u64) & !63;
    let at = (fp.wrapping_sub(size_of::<RtSigframe>() as u64) & !15).wrapping_sub(8);
    if (switches || nested) && !within(&altstack, at) {
        return Err(Failed::Memory);
    }

    let mut frame = RtSigframe::new_zeroed();
    frame.pretcode = action.sa_restorer;
    frame.info = *info;
    frame.uc.uc_flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
    frame.uc.uc_stack = altstack;
    frame.uc.uc_sigmask = Sigset { sig: old_mask };
    frame.uc.uc_mcontext = Sigcontext {
        r8: regs.r8,
        r9: regs.r9,
        r10: regs.r10,
        r11: regs.r11,
        r12: regs.r12,
        r13: regs.r13,
        r14: regs.r14,
        r15: regs.r15,
        di: regs.rdi,
        si: regs.rsi,
        bp: regs.rbp,
        bx: regs.rbx,
        dx: regs.rdx,
        ax: regs.rax,
        cx: regs.rcx,
        sp: regs.rsp,
        ip: regs.rip,
        flags: regs.eflags,
        cs: 0x33,
        ss: 0x2b,
        err: fault.error_code,
        trapno: fault.trapno,
        oldmask: old_mask,
        cr2: fault.addr,
        fpstate: fp,
        ..Sigcontext::new_zeroed()
    };
    port.write_mem(fp, &xstate.0)?;
    port.write_mem(at, frame.as_bytes())?;

    let offset = |field: usize| at.wrapping_add(field as u64);
    regs.rdi = info.si_signo as u64;
    regs.rsi = offset(std::mem::offset_of!(RtSigframe, info));
    regs.rdx = offset(std::mem::offset_of!(RtSigframe, uc));
    regs.rax = 0;
    regs.rip = action.sa_handler;
    regs.rsp = at;
    regs.eflags &= !HANDLER_CLEARS;

    {
        let mut signals = task.signals.lock();
        let own = if action.sa_flags & SA_NODEFER != 0 { 0 } else { bit(info.si_signo) };
        signals.mask = (signals.mask | action.sa_mask.sig | own) & !UNMASKABLE;
    }
    if altstack.ss_flags & SS_AUTODISARM != 0 {
        task.set_altstack(NO_STACK);
    }
    mask::refresh(task);
    Ok(())
}

/// rt_sigreturn(2): registers, mask, alternate stack and extended state from the frame at the stack pointer.
pub(crate) fn pop(task: &Arc<Task>, port: &mut dyn Port) -> Result<(), Failed> {
    let mut regs = port.regs()?;
    // The handler's return took the pretcode off.
    let at = regs.rsp.wrapping_sub(8);
    let mut frame = RtSigframe::new_zeroed();
    port.read_mem(at, frame.as_mut_bytes())?;
    let context = &frame.uc.uc_mcontext;
    regs.r8 = context.r8;
    regs.r9 = context.r9;
    regs.r10 = context.r10;
    regs.r11 = context.r11;
    regs.r12 = context.r12;
    regs.r13 = context.r13;
    regs.r14 = context.r14;
    regs.r15 = context.r15;
    regs.rdi = context.di;
    regs.rsi = context.si;
    regs.rbp = context.bp;
    regs.rbx = context.bx;
    regs.rdx = context.dx;
    regs.rax = context.ax;
    regs.rcx = context.cx;
    regs.rsp = context.sp;
    regs.rip = context.ip;
    regs.eflags = (regs.eflags & !RESTORED_FLAGS) | (context.flags & RESTORED_FLAGS);
    if context.fpstate != 0 {
        let state = read_xstate(port, context.fpstate)?;
        port.set_xstate(&state)?;
    }
    port.set_regs(&regs)?;
    task.signals.lock().mask = frame.uc.uc_sigmask.sig & !UNMASKABLE;
    // As Linux: a stack that cannot be set is no reason to fail the return.
    let (now, stack) = (task.altstack(), frame.uc.uc_stack);
    let back = if stack.ss_flags & SS_DISABLE != 0 {
        NO_STACK
    } else if stack.ss_size >= MINSIGSTKSZ && !on_stack(&now, regs.rsp) {
        Stack { ss_flags: stack.ss_flags & SS_AUTODISARM, ..stack }
    } else {
        now
    };
    if back != now {
        task.set_altstack(back);
    }
    mask::refresh(task);
    Ok(())
}

fn read_xstate(port: &mut dyn Port, addr: u64) -> Result<XState, Failed> {
    let mut bytes = vec![0u8; FXSAVE];
    port.read_mem(addr, &mut bytes)?;
    let software = bytes.get(FXSAVE - size_of::<FpxSwBytes>()..).unwrap_or_default();
    let Ok(software) = FpxSwBytes::read_from_bytes(software) else { return Err(Failed::Memory) };
    let extended = software.extended_size as usize;
    if software.magic1 == FP_XSTATE_MAGIC1 && extended > FXSAVE && extended <= XSTATE_MAX {
        bytes.resize(extended, 0);
        port.read_mem(addr, &mut bytes)?;
        return Ok(XState(bytes));
    }
    // A frame with the legacy area alone: the rest becomes initial, as Linux has it.
    let mut state = port.xstate()?;
    if let (Some(to), Some(from)) =
        (state.0.get_mut(..FXSAVE - size_of::<FpxSwBytes>()), bytes.get(..FXSAVE - size_of::<FpxSwBytes>()))
    {
        to.copy_from_slice(from);
    }
    // xstate_bv: x87 and SSE alone.
    if let Some(header) = state.0.get_mut(FXSAVE..FXSAVE + 8) {
        header.copy_from_slice(&3u64.to_le_bytes());
    }
    Ok(state)
}
