//! Calls that came by a signal and need no sentry: what the gates answer by themselves without one.

use crate::gate::{DONTNEED, KINDS_OF_CALLS, LEAST_STACK};
use crate::host;
use crate::layout::*;
use crate::task::{Context, R10, RAX, RDI, RDX, RIP, RSI, RSP};
use core::arch::global_asm;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

const _: () = assert!(KIND_OF_ROBUST == KIND_OF_MASK + 1 && KIND_OF_ADVICE == KIND_OF_ROBUST + 1);
const _: () = assert!(KIND_OF_ACTION == KIND_OF_ADVICE + 1 && KIND_OF_ALTSTACK == KIND_OF_ACTION + 1);
const _: () = assert!(KIND_OF_PREAD == KIND_OF_ALTSTACK + 1 && (KIND_OF_PREAD - KIND_OF_OWN) as usize == OWN - 1);

// Accesses to guest memory that may fault: the handler then goes on at the failure.
global_asm!(
    "lz_guard:",
    "lz_guard_load:",
    "mov rax, [rdi]",
    "xor edx, edx",
    "ret",
    "lz_guard_store:",
    "mov [rdi], rsi",
    "xor edx, edx",
    "ret",
    "lz_guard_store_half:",
    "mov [rdi], esi",
    "xor edx, edx",
    "ret",
    "lz_guard_copy:",
    "mov rcx, rdx",
    "rep movsb",
    "xor edx, edx",
    "ret",
    "lz_guard_fail:",
    "mov edx, 1",
    "ret",
);

/// What an access gave, and whether it failed.
#[repr(C)]
pub struct Got {
    pub value: u64,
    pub failed: u64,
}

unsafe extern "C" {
    #[link_name = "lz_guard_load"]
    pub fn load(at: u64) -> Got;
    #[link_name = "lz_guard_store"]
    fn store(at: u64, value: u64) -> Got;
    #[link_name = "lz_guard_store_half"]
    fn store_half(at: u64, value: u64) -> Got;
    #[link_name = "lz_guard_copy"]
    pub fn copy(to: u64, from: u64, len: u64) -> Got;
    static lz_guard: u8;
    static lz_guard_fail: u8;
}

/// A fault in the handler itself: all signals but those of faults were blocked. Goes on behind a failed access.
pub fn nested(signo: i32, context: &mut Context) -> bool {
    if (signo != 11 && signo != 7) || context.mask & 1 << (INTERRUPT - 1) == 0 {
        return false;
    }
    let (start, fail) = (&raw const lz_guard as u64, &raw const lz_guard_fail as u64);
    if !(start..fail).contains(&context.mctx[RIP]) {
        host::die();
    }
    context.mctx[RIP] = fail;
    true
}

/// Five bytes at that place; 0 if they cannot be read.
///
/// # Safety
/// Guest memory.
pub unsafe fn five(at: u64) -> u64 {
    let mut word = 0u64;
    // SAFETY: a fault is caught; the word has room for them.
    let got = unsafe { copy(&raw mut word as u64, at, 5) };
    if got.failed == 0 { word } else { 0 }
}

/// Writes four bytes where the sentry says, if that can be done.
pub fn put(at: u64, value: u64) -> i64 {
    // SAFETY: a fault is caught; guest memory, in which the shim has no objects.
    let _ = unsafe { store_half(at, value) };
    0
}

/// The head of the robust list, if it has no entry and none on its way (`struct robust_list_head`), else 0.
pub fn idle_list(slot: &Slot) -> u64 {
    let head = slot.robust.load(Relaxed);
    if head == 0 {
        return 0;
    }
    // SAFETY: faults are caught.
    let (first, pending) = unsafe { (load(head), load(head.wrapping_add(16))) };
    let idle = first.failed | pending.failed == 0 && first.value == head && pending.value == 0;
    if idle { head } else { 0 }
}

fn kind(nr: u32) -> u8 {
    KINDS_OF_CALLS.get(nr as usize).copied().unwrap_or(KIND_OF_LIGHT)
}

/// Answers the call if that is the shim's business: its value is in rax then.
pub fn answer(nr: u32, slot: &Slot, context: &mut Context) -> bool {
    slot.unseen.store(0, Relaxed);
    let kind = kind(nr);
    let Some(index) = kind.checked_sub(KIND_OF_OWN).map(usize::from).filter(|index| *index < OWN) else {
        return false;
    };
    let valid = slot.own_valid.load(Relaxed) != 0;
    if kind != KIND_OF_MASK && !valid || kind == KIND_OF_MASK && slot.mask.load(Relaxed) & LENT == 0 {
        return false;
    }
    if is_due(slot, context.mctx[RIP]) {
        return false;
    }
    let own = slot.own.get(index).map_or(0, |word| word.load(Relaxed));
    let value = match kind {
        KIND_OF_MASK => match mask(slot, context) {
            Some(()) => 0,
            None => return false,
        },
        KIND_OF_ROBUST if context.mctx[RSI] == 24 => {
            slot.robust.store(context.mctx[RDI], Relaxed);
            slot.robust_given.store(1, SeqCst);
            0
        }
        KIND_OF_ADVICE if advise(context) => 0,
        KIND_OF_ACTION if is_default(own, context) => 0,
        KIND_OF_ALTSTACK if altstack(slot, context) => 0,
        KIND_OF_OWN..KIND_OF_MASK => own,
        _ => return false,
    };
    if let Some(count) = slot.own_count.get(index) {
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
    }
    context.mctx[RAX] = value;
    true
}

/// Counts a site whose calls are answered here. The sentry rewrites sites by the traps that it sees: it gets to see one
/// each time that their number has doubled, and how many it did not; of a new program the first one, too.
fn is_due(slot: &Slot, rip: u64) -> bool {
    /// The sentry rewrites a site after so many traps.
    const OFTEN: u64 = 16;
    const MOST: u64 = 0xffff;
    let Some(entry) = slot.answered.get((rip >> 2 ^ rip >> 7) as usize % ANSWERED) else { return false };
    let before = entry.load(Relaxed);
    let times = if before >> 16 == rip & u64::MAX >> 16 { before & MOST } else { 0 };
    let now = (times + 1).min(MOST);
    entry.store(rip << 16 | now, Relaxed);
    let first = now == 1 && crate::forker::head().learns.load(Relaxed) != 0;
    let due = first || now >= OFTEN && now.is_power_of_two();
    if due && !first {
        slot.unseen.store(if now == OFTEN { OFTEN } else { now / 2 } as u32, Relaxed);
    }
    due
}

/// Lets the host drop memory. False: the sentry does it, and finds what is wrong.
fn advise(context: &Context) -> bool {
    let [start, len, advice] = [RDI, RSI, RDX].map(|at| context.mctx[at]);
    let asked = crate::forker::head().ask_advice.load(Relaxed) != 0;
    !asked && advice as u32 == DONTNEED as u32 && host::raw(host::MADVISE, [start, len, DONTNEED, 0, 0, 0]) == 0
}

/// rt_sigaction that only asks for an action which is the default one.
fn is_default(own: u64, context: &Context) -> bool {
    let [signal, new, old, size] = [RDI, RSI, RDX, R10].map(|at| context.mctx[at]);
    let bit = (signal as u32).wrapping_sub(1);
    if new != 0 || old == 0 || size != 8 || bit > 63 || own >> bit & 1 == 0 {
        return false;
    }
    // SAFETY: a fault is caught; where the guest says, which could write there itself.
    (0..4).all(|word| unsafe { store(old + word * 8, 0) }.failed == 0)
}

/// sigaltstack with nothing but a plain stack or none. False: the sentry does it.
fn altstack(slot: &Slot, context: &Context) -> bool {
    const DISABLE: u64 = 2;
    let [new, old, sp] = [RDI, RSI, RSP].map(|at| context.mctx[at]);
    let [at, len] = [0, 1].map(|word: usize| slot.alt[word].load(Relaxed));
    if slot.alt_valid.load(Relaxed) == 0 || len != 0 && sp.wrapping_sub(at) <= len {
        return false;
    }
    let mut change = None;
    if new != 0 {
        // SAFETY: faults are caught.
        let [start, flags, size] = [0, 8, 16].map(|word| unsafe { load(new.wrapping_add(word)) });
        if start.failed | flags.failed | size.failed != 0 {
            return false;
        }
        change = match flags.value as u32 {
            2 => Some([0, 0]),
            0 | 1 if size.value >= LEAST_STACK => Some([start.value, size.value]),
            _ => return false,
        };
    }
    if old != 0 {
        let told = [at, if len == 0 { DISABLE } else { 0 }, len];
        for (place, value) in [0, 8, 16].into_iter().zip(told) {
            // SAFETY: as above; where the guest says, which could write there itself.
            if unsafe { store(old.wrapping_add(place), value) }.failed != 0 {
                return false;
            }
        }
    }
    if let Some(change) = change {
        for (word, value) in slot.alt_next.iter().zip(change) {
            word.store(value, Relaxed);
        }
        alter(slot);
    }
    true
}

/// Makes the next alternate stack the present one.
pub fn alter(slot: &Slot) {
    for (word, next) in slot.alt.iter().zip(&slot.alt_next) {
        word.store(next.load(Relaxed), Relaxed);
    }
    slot.alt_given.store(1, SeqCst);
}

/// rt_sigprocmask on the mask in the slot. None: the sentry does it, and finds what is wrong.
fn mask(slot: &Slot, context: &Context) -> Option<()> {
    const MASKABLE: u64 = !(LENT | 1 << 18);
    let [how, set, old, size] = [RDI, RSI, RDX, R10].map(|at| context.mctx[at]);
    let how = how as u32;
    let mut word = slot.mask.load(SeqCst);
    if word & LENT == 0 || size != 8 || set != 0 && how > 2 {
        return None;
    }
    // SAFETY: a fault is caught.
    let new = if set == 0 { None } else { Some(unsafe { load(set) }) };
    if new.as_ref().is_some_and(|got| got.failed != 0) {
        return None;
    }
    loop {
        // SAFETY: as above; where the guest says, which could write there itself.
        if old != 0 && unsafe { store(old, word & !LENT) }.failed != 0 {
            return None;
        }
        let Some(Got { value, .. }) = &new else { return Some(()) };
        let next = match how {
            0 => word | value,
            1 => word & !value,
            _ => *value,
        };
        match slot.mask.compare_exchange(word, next & MASKABLE | LENT, SeqCst, SeqCst) {
            Ok(_) => return Some(()),
            Err(now) if now & LENT == 0 => return None,
            Err(now) => word = now,
        }
    }
}
