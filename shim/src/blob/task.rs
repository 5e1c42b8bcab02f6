//! A task: how it starts, and how it hands each event to the sentry.

use crate::data;
use crate::gate::{self, Found};
use crate::host::{self, raw};
use crate::own;
use crate::layout::*;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// `struct ucontext` (asm/ucontext.h).
#[repr(C)]
pub struct Context {
    flags: u64,
    link: u64,
    stack_base: u64,
    stack_flags: u64,
    stack_size: u64,
    pub mctx: [u64; MCTX_WORDS],
    reserved: [u64; 8],
    /// Signals that were blocked.
    pub mask: u64,
}

/// Words of the machine context.
pub const R8: usize = 0;
pub const R9: usize = 1;
pub const R10: usize = 2;
pub const R11: usize = 3;
pub const RDI: usize = 8;
pub const RSI: usize = 9;
pub const RDX: usize = 12;
pub const RAX: usize = 13;
pub const RSP: usize = 15;
pub const RIP: usize = 16;
pub const RFLAGS: usize = 17;

/// The start of `siginfo_t`, with the fields of SIGSYS and the fault signals.
#[repr(C)]
pub struct Info {
    signo: i32,
    errno: i32,
    code: i32,
    pad: i32,
    addr: u64,
    syscall: i32,
    arch: u32,
}

#[repr(C)]
struct Insn {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

const SYS_SECCOMP: i32 = 1;
const EXIT: i32 = 60;
const EXIT_GROUP: i32 = 231;
/// AUDIT_ARCH_X86_64
const ARCH: u32 = 0xc000_003e;

static BELL: [Insn; 4] = [
    Insn { code: 0x20, jt: 0, jf: 0, k: 0 },
    Insn { code: 0x15, jt: 0, jf: 1, k: DOORBELL },
    Insn { code: 0x06, jt: 0, jf: 0, k: 0x7fc0_0000 },
    Insn { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 },
];

#[repr(C)]
pub struct Program {
    len: u64,
    insns: &'static [Insn; 4],
}

/// The doorbell filter; its address is part of the base filter's rule for seccomp.
#[used]
#[unsafe(link_section = ".lazaret.bell")]
pub static BELL_PROGRAM: Program = Program { len: 4, insns: &BELL };

/// Spins this long for the poller's answer before ringing; about 100 µs.
const SPIN: u64 = 300_000;

/// A slot; the index is below `SLOTS`.
pub fn slot(index: u32) -> &'static Slot {
    // SAFETY: boot mapped the shared area; all of it is atomics.
    unsafe { &*((CTL + SLOT_SIZE * u64::from(index)) as *const Slot) }
}

/// The slot of the thread whose stack this address is in.
fn slot_of(stack: u64) -> u32 {
    ((stack - STACK) / STACK_SIZE) as u32 % SLOTS
}

/// First code of a task's thread.
pub unsafe extern "C" fn begin(top: u64) -> ! {
    let index = slot_of(top - 8);
    if index == 0 {
        crate::forker::begin();
    }
    let slot = slot(index);
    let base = STACK + STACK_SIZE * u64::from(index);
    let mut context = fresh(index);
    let from = slot.start_xstate.load(Relaxed);
    if from != 0 {
        let len = u64::from(slot.start_xstate_len.load(Relaxed)).min(START_XSTATE_MAX);
        let to = base + START_XSTATE;
        // SAFETY: the destination is the unused middle of this thread's own stack; the source is the stack
        // of the task that waits for this one.
        unsafe { crate::mem::memcpy(to as *mut u8, from as *const u8, len as usize) };
        context.mctx[MCTX_WORDS - 1] = to;
    }
    tell_bell(slot);
    slot.req_kind.store(KIND_STARTED, Relaxed);
    exchange(slot, &mut context, true, false);
    // SAFETY: the sentry filled in the registers.
    unsafe { host::sigreturn(&raw const context as u64) }
}

/// Where a task without a past goes on from.
fn fresh(index: u32) -> Context {
    Context {
        flags: 7,
        link: 0,
        stack_base: STACK + STACK_SIZE * u64::from(index),
        stack_flags: 0,
        stack_size: STACK_SIZE,
        mctx: [0; MCTX_WORDS],
        reserved: [0; 8],
        mask: 0,
    }
}

/// Goes on as the only task of a new process: from the frame of the task that it is a copy of, or from nowhere.
///
/// # Safety
/// The stack is that of the slot.
pub unsafe fn start(index: u32, frame: u64) -> ! {
    let slot = slot(index);
    slot.req_kind.store(KIND_STARTED, Relaxed);
    if frame == 0 {
        let mut context = fresh(index);
        exchange(slot, &mut context, true, false);
        // SAFETY: the sentry filled in the registers.
        unsafe { host::sigreturn(&raw const context as u64) }
    }
    // SAFETY: the copy of a host's frame, where the sentry was told that it is.
    let context = unsafe { &mut *(frame as *mut Context) };
    exchange(slot, context, false, true);
    // SAFETY: the same, as the sentry changed it.
    unsafe { host::sigreturn(frame) }
}

/// Makes this thread's doorbell: its listener, or an error.
pub fn bell() -> i64 {
    raw(host::SECCOMP, [1, BELL_FLAGS, BELL_PROG, 0, 0, 0])
}

/// Makes this thread's doorbell and tells of it in the slot.
fn tell_bell(slot: &Slot) {
    let fd = bell();
    let word = if fd < 0 { 0x8000_0000 | (-fd) as u32 } else { fd as u32 + 1 };
    slot.listener.store(word, Release);
    host::futex_wake(&slot.listener);
    if fd < 0 {
        host::exit();
    }
}

/// The handler of every signal that reaches a task.
pub unsafe extern "C" fn handler(signo: i32, info: *const Info, context: *mut Context) -> ! {
    let slot = slot(slot_of(context as u64));
    // SAFETY: the host's own frame.
    let (info, context) = unsafe { (&*info, &mut *context) };
    let found = if own::nested(signo, context) { Found::Midway } else { gate::settle(signo, context, slot) };
    if found == Found::Midway {
        // SAFETY: the host's own frame.
        unsafe { host::sigreturn(context as *const Context as u64) }
    }
    // What came with an answer has not been done, or not all.
    let left = found == Found::Rung && slot.rsp_kind.load(Relaxed) & CALLS_FIRST != 0;
    let failed = match found {
        _ if left => batch_from(slot, slot.step.load(Relaxed)),
        Found::Failed(error) => error,
        _ => 0,
    };
    if left && failed == 0 && slot.rsp_kind.load(Relaxed) == REPLY_RETURN {
        context.mctx[RAX] = slot.rsp_value.load(Relaxed);
        gate::detour(context);
        // SAFETY: the host's own frame.
        unsafe { host::sigreturn(context as *const Context as u64) }
    }
    let rung = found == Found::Rung || failed != 0;
    let call = !rung && signo == 31 && info.code == SYS_SECCOMP && info.arch == ARCH;
    if call && own::answer(info.syscall as u32, slot, context) {
        gate::detour(context);
        // SAFETY: the host's own frame.
        unsafe { host::sigreturn(context as *const Context as u64) }
    }
    slot.kept_xstate.store(if call { keep_xstate(info.syscall as u32, slot, context) } else { 0 }, Relaxed);
    slot.req_nr.store(u64::from(info.syscall as u32), Relaxed);
    // rdi, rsi, rdx, r10, r8, r9
    for (to, from) in slot.req_args.iter().zip([8, 9, 12, 2, 0, 1]) {
        to.store(context.mctx[from], Relaxed);
    }
    let carried = if call { data::carry(info.syscall as u32, slot) } else { 0 };
    let ends = call && matches!(info.syscall, EXIT | EXIT_GROUP);
    if ends {
        slot.robust_idle.store(own::idle_list(slot), Relaxed);
    }
    slot.frame.store(context as *const Context as u64, Relaxed);
    let kind = if failed != 0 {
        KIND_FAILED
    } else if rung {
        KIND_RUNG
    } else {
        signo as u32 | carried << KIND_BITS
    };
    slot.req_kind.store(kind, Relaxed);
    slot.req_code.store(if failed != 0 { failed } else { info.code as u32 }, Relaxed);
    slot.req_arch.store(info.arch, Relaxed);
    slot.req_addr.store(info.addr, Relaxed);
    let spins = !rung && !(call && rings(info.syscall as u32, context.mctx[R10]));
    exchange(slot, context, spins, ends);
    // SAFETY: the host's own frame, as the sentry changed it.
    unsafe { host::sigreturn(context as *const Context as u64) }
}

/// A task that makes another one in its own memory leaves its extended state where the sentry finds it: what is kept of it.
fn keep_xstate(nr: u32, slot: &Slot, context: &Context) -> u32 {
    const CLONE: u32 = 56;
    const CLONE3: u32 = 435;
    const CLONE_VM: u64 = 0x100;
    const MAGIC: u32 = 0x4650_5853;
    let from = context.mctx[MCTX_WORDS - 1];
    if from == 0 || !(nr == CLONE3 || nr == CLONE && context.mctx[RDI] & CLONE_VM != 0) {
        return 0;
    }
    // SAFETY: the host's own frame, whose legacy part ends with `struct _fpx_sw_bytes` (asm/sigcontext.h).
    let (magic, len) = unsafe { (*((from + 464) as *const u32), *((from + 468) as *const u32)) };
    if magic != MAGIC || u64::from(len) > KEPT_XSTATE_MAX {
        return 0;
    }
    let to = slot as *const Slot as u64 + DATA_OFFSET;
    // SAFETY: the slot's own data, long enough; the shim has no objects there.
    unsafe { crate::mem::memcpy(to as *mut u8, from as *const u8, len as usize) };
    len
}

/// Rewrites call sites in code that has just been mapped. What is not as expected, or not to be had, stays as it is.
fn patch([start, len, prot, first, count, _]: [u64; 6]) -> i64 {
    let able = raw(host::MPROTECT, [start, len, 7, 0, 0, 0]) == 0;
    for index in (first..SITES).take(count.min(SITES) as usize) {
        if !able || !gate::rewrite(index) {
            gate::unused(index);
        }
    }
    if able {
        raw(host::MPROTECT, [start, len, prot, 0, 0, 0]);
    }
    0
}

/// Writes five bytes of code that the batch has just made writable.
fn poke(at: u64, bytes: u64, condition: u64) -> i64 {
    const FIVE: u64 = 0xff_ffff_ffff;
    // SAFETY: a fault is caught; guest memory, where the sentry says.
    let is = if condition & POKE_IF == 0 { 0 } else { unsafe { own::five(at) } };
    if condition & POKE_IF != 0 && is != condition & FIVE {
        return 0;
    }
    let shift = (at & 7) * 8;
    if shift <= 24 {
        let place = (at & !7) as *mut u64;
        // SAFETY: guest memory, where the sentry says; the shim has no objects there.
        unsafe {
            let mask = 0xff_ffff_ffff << shift;
            let word = core::ptr::read_volatile(place) & !mask | bytes << shift & mask;
            core::ptr::write_volatile(place, word);
        }
        return 0;
    }
    for (i, byte) in bytes.to_le_bytes().into_iter().enumerate().take(5) {
        // SAFETY: guest memory, where the sentry says; the shim has no objects there.
        unsafe { core::ptr::write_volatile((at as *mut u8).add(i), byte) };
    }
    0
}

/// Runs a batch of host calls, and says that it is done unless something failed: the first error of one that is not close, or 0.
fn batch(slot: &Slot, seq: u32, from: u32) -> u32 {
    let count = (slot.rsp_calls.load(Relaxed) as usize).min(BATCH);
    let mut failed = 0;
    for (call, result) in slot.calls.iter().zip(&slot.results).take(count).skip(from as usize) {
        let [nr, a, b, c, d, e, f] = &call.words;
        let args = [a, b, c, d, e, f].map(|word| word.load(Relaxed));
        let nr = nr.load(Relaxed);
        let value = match nr {
            POKE if failed == 0 => poke(args[0], args[1], args[2]),
            PATCH if failed == 0 => patch(args),
            PATCH => 0,
            POKE => -1,
            STORE => own::put(args[0], args[1]),
            // SAFETY: the forker's stack, which nobody uses as long as there is none.
            FORKER => unsafe { host::clone_thread(CLONE_THREAD_FLAGS, STACK + STACK_SIZE) },
            _ => raw(nr, args),
        };
        if failed == 0 && nr != host::CLOSE && (-4095..0).contains(&value) {
            failed = (-value) as u32;
        }
        result.store(value, Relaxed);
    }
    if failed == 0 {
        slot.done.swap(seq, SeqCst);
    }
    if slot.done_wait.load(SeqCst) != 0 {
        slot.done_wait.store(0, Relaxed);
        host::futex_wake(&slot.done);
    }
    failed
}

/// Runs what is left of the batch that came with the answer to a gate's request.
pub fn batch_from(slot: &Slot, from: u32) -> u32 {
    slot.rsp_kind.store(slot.rsp_kind.load(Relaxed) & !CALLS_FIRST, Relaxed);
    batch(slot, slot.req_seq.load(Relaxed), from)
}

/// Whether this thread has no doorbell.
fn is_mute(slot: &Slot) -> bool {
    matches!(slot.listener.load(Relaxed), 0 | ENDS)
}

/// Waits for the answer to a request that a task without a doorbell makes at its start or its end.
fn await_answer(slot: &Slot, seq: u32) {
    if slot.req_kind.load(Relaxed) != KIND_STARTED {
        slot.listener.store(ENDS, Release);
        host::futex_wake(&slot.listener);
    }
    loop {
        let seen = slot.rsp_seq.load(Acquire);
        if seen == seq {
            return;
        }
        host::futex_wait(&slot.rsp_seq, seen);
    }
}

/// Reports what the slot says, does what the sentry answers, until it lets the guest go on. `mute`: no doorbell is made for it.
#[inline(always)]
fn exchange(slot: &Slot, context: &mut Context, mut spin: bool, mut mute: bool) {
    let (fs, gs) = host::bases();
    slot.req_fs.store(fs, Relaxed);
    slot.req_gs.store(gs, Relaxed);
    for (to, from) in slot.req_mctx.iter().zip(context.mctx) {
        to.store(from, Relaxed);
    }
    loop {
        let seq = slot.req_seq.load(Relaxed).wrapping_add(1);
        slot.req_seq.swap(seq, SeqCst);
        if is_mute(slot) {
            if mute {
                await_answer(slot, seq);
            } else {
                tell_bell(slot);
                // From here on gates find their slot, if the guest has no use for GS.
                if gs == 0 {
                    host::set_gs(slot as *const Slot as u64);
                }
            }
        }
        mute = false;
        if spin && slot.polling.load(SeqCst) != 0 {
            let start = host::tsc();
            while slot.rsp_seq.load(Acquire) != seq && slot.polling.load(Relaxed) != 0 {
                if slot.polling.load(Relaxed) == PARKED {
                    raw(host::SCHED_YIELD, [0; 6]);
                }
                core::hint::spin_loop();
                if host::tsc().wrapping_sub(start) > SPIN {
                    break;
                }
            }
        }
        while slot.rsp_seq.load(Acquire) != seq {
            let ret = raw(DOORBELL.into(), [seq.into(), 0, 0, 0, 0, 0]);
            // The sentry answers before it closes a listener.
            if ret < 0 && slot.rsp_seq.load(Acquire) != seq {
                host::exit();
            }
        }
        let close = slot.rsp_close.load(Relaxed);
        if close != 0 {
            slot.rsp_close.store(0, Relaxed);
            raw(host::CLOSE, [u64::from(close) - 1, 0, 0, 0, 0, 0]);
        }
        spin = true;
        let mut kind = slot.rsp_kind.load(Relaxed);
        if kind == REPLY_CALLS || kind & CALLS_FIRST != 0 {
            let failed = batch(slot, seq, 0);
            if kind != REPLY_CALLS && failed != 0 {
                slot.req_kind.store(KIND_FAILED, Relaxed);
                slot.req_code.store(failed, Relaxed);
                spin = false;
                continue;
            }
            kind &= !CALLS_FIRST;
        }
        match kind {
            REPLY_RETURN | REPLY_DATA => {
                context.mctx[RAX] = data::value(slot, kind);
                break;
            }
            REPLY_RESUME => break,
            REPLY_REGS => {
                for (to, from) in context.mctx.iter_mut().zip(&slot.rsp_mctx) {
                    *to = from.load(Relaxed);
                }
                let bases = slot.rsp_bases.load(Relaxed);
                if bases & 1 != 0 {
                    host::set_fs(slot.rsp_fs.load(Relaxed));
                }
                if bases & 2 != 0 {
                    host::set_gs(slot.rsp_gs.load(Relaxed));
                }
                break;
            }
            REPLY_CALLS => {
                slot.req_kind.store(KIND_RESULTS, Relaxed);
                spin = false;
            }
            REPLY_BELL => {
                tell_bell(slot);
                slot.req_kind.store(KIND_RESULTS, Relaxed);
                spin = false;
            }
            REPLY_RING => {
                slot.req_kind.store(KIND_RUNG, Relaxed);
                spin = false;
            }
            _ => host::exit(),
        }
    }
    gate::detour(context);
}
