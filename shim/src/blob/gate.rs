//! Calls without a signal: where rewritten call sites jump to. The code is in gate.s.
//!
//! A gate has no stack to use (the caller's red zone is in use) and finds its slot by the GS base, which is a task's own
//! slot unless the guest claimed it. Free are rcx and r11, which the instruction destroys anyway; r11 holds the
//! index of the site times 32. Flags are kept: of the first form in the slot, while those of the second are overwritten by
//! the comparison that follows. No vector register is touched.
//!
//! What an interrupt finds here is cleared up by [`settle`]: before the request is posted the call has not begun and
//! the task is put back to the site; afterwards it is over when its answer is there, and else left alone.

use crate::data;
use crate::layout::*;
use crate::own;
use crate::task::{self, Context, R8, R9, R10, R11, RAX, RDI, RDX, RFLAGS, RIP, RSI};
use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

const _: () = assert!(CTL + TABLE_OFFSET == 0x7fff_c100_0800 && size_of::<Head>() as u64 <= FORMS_OFFSET);
const _: () = assert!(TABLE_OFFSET + SITES * GATE_SIZE <= FILTER_OFFSET && FILTER_OFFSET < SLOT_SIZE);
const _: () = assert!(CTL + FORMS_OFFSET == 0x7fff_c100_0400);
const _: () = assert!(UNITS_OFFSET == FORMS_OFFSET + KINDS && UNITS_OFFSET + KINDS <= TABLE_OFFSET);
const _: () = assert!(IN_OFFSET + IN_MAX <= OUT_OFFSET && OUT_OFFSET + OUT_MAX <= SLOT_SIZE);
const _: () = assert!(CTL.is_multiple_of(1 << 24) && CTL_SIZE.is_multiple_of(1 << 24) && IN_MAX < 1 << (32 - KIND_BITS));
const _: () = assert!(WINDOW + WINDOW_SIZE <= REGION_END && size_of::<Lent>() == 24);
const _: () = assert!(GATES == 0x7fff_c020_0000 && size_of::<Site>() == 32 && GATE_SIZE == 32);

global_asm!(
    include_str!("gate.s"),
    sites = const SITES,
    ctl_high = const CTL >> 24,
    ctl_more = const (CTL_SIZE >> 24) - 1,
    long = const LONG,
    kinds = const KINDS,
    kinds_of_calls = sym KINDS_OF_CALLS,
    flags = const offset_of!(Slot, light_flags),
    nr = const offset_of!(Slot, req_nr),
    args = const offset_of!(Slot, req_args),
    kind = const offset_of!(Slot, req_kind),
    kind_light = const KIND_LIGHT,
    kind_bits = const KIND_BITS,
    of_lock = const DATA_OF_LOCK,
    of_wait = const DATA_OF_WAIT,
    wait_bitset = const FUTEX_WAIT_BITSET,
    lock_commands = const LOCK_COMMANDS,
    string = const DATA_STRING,
    counted = const DATA_COUNTED,
    inward = const IN_OFFSET,
    in_max = const IN_MAX,
    string_max = const STRING_MAX,
    out = const OUT_OFFSET,
    site = const offset_of!(Slot, light_site),
    light_seq = const offset_of!(Slot, light_seq),
    req_seq = const offset_of!(Slot, req_seq),
    rsp_seq = const offset_of!(Slot, rsp_seq),
    rsp_kind = const offset_of!(Slot, rsp_kind),
    value = const offset_of!(Slot, rsp_value),
    polling = const offset_of!(Slot, polling),
    polled = const POLLED,
    blocks_nr = const offset_of!(Slot, blocks_nr),
    blocks_first = const offset_of!(Slot, blocks_first),
    blocks_second = const offset_of!(Slot, blocks_second),
    any = const ANY as i32,
    waits_since = const offset_of!(Slot, waits_since),
    patience = const PATIENCE,
    own = const offset_of!(Slot, own),
    own_count = const offset_of!(Slot, own_count),
    own_valid = const offset_of!(Slot, own_valid),
    kind_mask = const KIND_OF_MASK,
    kind_advice = const KIND_OF_ADVICE,
    kind_action = const KIND_OF_ACTION,
    kind_altstack = const KIND_OF_ALTSTACK,
    dontneed = const DONTNEED,
    ask_advice = const offset_of!(Head, ask_advice),
    mask = const offset_of!(Slot, mask),
    lent_bit = const LENT.trailing_zeros(),
    maskable = const !(LENT | 1 << 18) as i64,
    robust = const offset_of!(Slot, robust),
    alt = const offset_of!(Slot, alt),
    alt_next = const offset_of!(Slot, alt_next),
    alt_valid = const offset_of!(Slot, alt_valid),
    alt_given = const offset_of!(Slot, alt_given),
    least_stack = const LEAST_STACK,
    robust_given = const offset_of!(Slot, robust_given),
    doorbell = const DOORBELL,
    reply_return = const REPLY_RETURN,
    reply_data = const REPLY_DATA,
    reply_batch = const REPLY_BATCH,
    step = const offset_of!(Slot, step),
    rsp_calls = const offset_of!(Slot, rsp_calls),
    calls = const offset_of!(Slot, calls),
    call = const size_of::<Call>(),
    batch = const BATCH,
    poke = const POKE,
    done = const offset_of!(Slot, done),
    done_wait = const offset_of!(Slot, done_wait),
    kind_map = const KIND_OF_MAP,
    kind_pread = const KIND_OF_PREAD,
    lent = const offset_of!(Slot, lent),
    lent_entry = const size_of::<Lent>(),
    lent_size = const size_of::<Lent>() * LENDABLE,
    map_form = const MAP_FORM,
    map_own = const MAP_OWN,
    reply_exit = const REPLY_EXIT,
    gate_trap = const GATE_TRAP,
    spins = const SPINS,
);

/// What to do with a call, by its number.
pub static KINDS_OF_CALLS: [u8; KINDS as usize] = kinds();

/// MINSIGSTKSZ
pub const LEAST_STACK: u64 = 2048;
/// A value that comes with host calls.
const REPLY_BATCH: u32 = REPLY_RETURN | CALLS_FIRST;
/// MAP_SHARED, MAP_PRIVATE and MAP_ANONYMOUS ...
const MAP_FORM: u32 = 0x23;
/// ... of a mapping for which a gate's call is enough.
const MAP_OWN: u32 = 0x22;

/// MADV_DONTNEED
pub const DONTNEED: u64 = 4;
const ZERO_FLAG: u64 = 0x40;
/// From so many bytes on `rep movsb` is faster than a loop: it fetches lines from the other processor side by side.
const LONG: u64 = 256;
/// Lets others have the processor for so long before ringing, in ticks of the time stamp counter: about 5 ms. The poller takes
/// less before it gives up a task that is blocked.
const PATIENCE: u32 = 12_500_000;
/// Looks at the poller's answer this often before ringing; about 100 us.
const SPINS: u32 = 2_000;

unsafe extern "C" {
    static lz_light_start: u8;
    static lz_flags_live: u8;
    static lz_flags_saved: u8;
    static lz_plain_b: u8;
    static lz_plain_a: u8;
    static lz_plain_set: u8;
    static lz_common: u8;
    static lz_nr_saved: u8;
    static lz_posted: u8;
    static lz_out_live: u8;
    static lz_out_done: u8;
    static lz_own: u8;
    static lz_mask_live: u8;
    static lz_mask_tried: u8;
    static lz_mask_done: u8;
    static lz_mask_hand: u8;
    static lz_others: u8;
    static lz_advice_made: u8;
    static lz_altstack: u8;
    static lz_alt_live: u8;
    static lz_alt_change: u8;
    static lz_alt_done: u8;
    static lz_robust: u8;
    static lz_zero: u8;
    static lz_trap: u8;
    static lz_pread_kept: u8;
    static lz_pread_live: u8;
    static lz_pread_back: u8;
    static lz_pread_hand: u8;
    static lz_pread_end: u8;
    static lz_data_live: u8;
    static lz_data_none: u8;
    static lz_data_end: u8;
    static lz_batch: u8;
    static lz_batch_made: u8;
    static lz_batch_noted: u8;
    static lz_batch_failed: u8;
    static lz_batch_end: u8;
    static lz_light_end: u8;
}

/// What a signal found in here.
#[derive(PartialEq, Eq)]
pub enum Found {
    /// Guest code, or something that is now as if it had been found in guest code.
    Guest,
    /// A call that is to be reported anew.
    Rung,
    /// A call whose host calls failed with this error.
    Failed(u32),
    /// A step under way: it goes on.
    Midway,
}

fn site(index: u64) -> &'static Site {
    let index = if index < SITES { index } else { 0 };
    // SAFETY: boot mapped the shared area; the table lies in slot 0 and is nothing but atomics.
    unsafe { &*((CTL + TABLE_OFFSET) as *const Site).add(index as usize) }
}

fn second_form(site: &Site) -> bool {
    site.ret.load(Relaxed) >= TAILS
}

/// The address behind the site's `syscall` instruction.
fn behind(site: &Site) -> u64 {
    if second_form(site) { site.after.load(Relaxed).wrapping_sub(6) } else { site.ret.load(Relaxed) }
}

/// The address of the site's jump.
fn entry(site: &Site) -> u64 {
    if second_form(site) {
        return site.after.load(Relaxed).wrapping_sub(8);
    }
    let third = site.compared.load(Relaxed) != 0;
    site.ret.load(Relaxed).wrapping_sub(if third { 14 } else { 7 })
}

/// Puts the jump of a table's entry into code that is writable now; false if what is there is not what the entry says.
pub fn rewrite(index: u64) -> bool {
    let site = site(index);
    let [key, ret, compared, after] = [&site.key, &site.ret, &site.compared, &site.after].map(|word| word.load(Relaxed));
    // SAFETY: faults are caught.
    let word = |at: u64| unsafe { own::load(at) };
    let prefixed = |before: u64| matches!(before as u8, 0x40..=0x4f | 0x66);
    const SYSCALL: u64 = 0x050f;
    let at = entry(site);
    let (gates, is) = if second_form(site) {
        let got = word(at);
        (GATES_B, got.failed == 0 && got.value == SYSCALL | 0x3d48 << 16 | compared << 32 && after == key.wrapping_add(6))
    } else {
        let (end, before) = (word(ret.wrapping_sub(8)), word(at.wrapping_sub(1)));
        let read = end.failed | before.failed == 0;
        let start = before.value >> 8 & 0xff_ffff_ffff == 0xb8 | key << 8;
        let rest = if compared == 0 {
            (GATES, end.value >> 48 == SYSCALL)
        } else {
            let by = compared.wrapping_sub(ret.wrapping_sub(2)) as u32;
            (GATES_C, end.value == 0x358d | u64::from(by) << 16 | SYSCALL << 48 && before.value >> 48 == 0x8d48)
        };
        (rest.0, read && start && !prefixed(before.value) && rest.1)
    };
    if !is {
        return false;
    }
    let by = (gates + index * GATE_SIZE).wrapping_sub(at.wrapping_add(5)) as u32;
    let jump = 0xe9 | u64::from(by) << 8;
    // SAFETY: a fault is caught; guest memory, where the sentry says.
    unsafe { own::copy(at, &raw const jump as u64, 5) }.failed == 0
}

/// Nothing jumps to the gate of this entry.
pub fn unused(index: u64) {
    let site = site(index);
    for word in [&site.key, &site.ret, &site.compared, &site.after] {
        word.store(0, Relaxed);
    }
}

/// Sets the arithmetic flags as `lahf; seto al` had them in ax.
fn set_flags(context: &mut Context, ax: u64) {
    let flags = &mut context.mctx[RFLAGS];
    *flags = (*flags & !0x8d5) | (ax >> 8 & 0xd5) | (ax & 1) << 11;
}

/// Gives the argument registers back that a gate uses for its copies.
fn restore(context: &mut Context, slot: &Slot) {
    for (to, from) in [RDI, RSI, RDX].into_iter().zip(&slot.req_args) {
        context.mctx[to] = from.load(Relaxed);
    }
}

/// Makes what a signal interrupted presentable.
#[inline(never)]
pub fn settle(signo: i32, context: &mut Context, slot: &Slot) -> Found {
    let rip = context.mctx[RIP];
    let (sigsys, interrupt, step) = (signo == 31, signo == INTERRUPT, signo == 5);
    if (GATES..=RUNG + 2).contains(&rip) {
        if step {
            return Found::Midway;
        }
        if rip >= RUNG {
            if !sigsys {
                return Found::Midway;
            }
            context.mctx[RIP] = behind(site(u64::from(slot.light_site.load(Relaxed)) / GATE_SIZE));
            return Found::Rung;
        }
        let number = (rip - GATES) / GATE_SIZE;
        let site = site(number % SITES);
        context.mctx[RIP] = if rip >= TAILS {
            if rip % GATE_SIZE == 0 { behind(site) } else { site.after.load(Relaxed) }
        } else if sigsys {
            behind(site)
        } else {
            entry(site)
        };
        return Found::Guest;
    }
    let at = |label: *const u8| label as u64;
    let inside = at(&raw const lz_light_start)..at(&raw const lz_light_end);
    let within = |from: *const u8, to: *const u8| rip >= at(from) && rip < at(to);
    let altering = within(&raw const lz_alt_live, &raw const lz_robust);
    let masking = altering || within(&raw const lz_mask_live, &raw const lz_others);
    let carrying = within(&raw const lz_data_live, &raw const lz_data_end);
    let reading = within(&raw const lz_pread_live, &raw const lz_pread_hand);
    if signo == 11 || signo == 7 {
        // The sentry finds out what is wrong with a pointer that it reads from; it has looked at those it writes to, so
        // the memory has changed since.
        let on = if masking {
            &raw const lz_mask_hand
        } else if reading {
            // Of the buffer, or of a file that is shorter by now.
            &raw const lz_pread_back
        } else if carrying {
            &raw const lz_data_none
        } else if within(&raw const lz_out_live, &raw const lz_out_done) {
            slot.rsp_value.store(data::FAULT, Relaxed);
            &raw const lz_out_done
        } else {
            return Found::Guest;
        };
        context.mctx[RIP] = at(on);
        return Found::Midway;
    }
    if !inside.contains(&rip) || !(interrupt || step) {
        return Found::Guest;
    }
    if step {
        return Found::Midway;
    }
    if within(&raw const lz_batch, &raw const lz_batch_end) {
        if within(&raw const lz_batch_failed, &raw const lz_batch_end) && slot.step.load(Relaxed) < slot.rsp_calls.load(Relaxed) {
            return Found::Midway;
        }
        let made = within(&raw const lz_batch_made, &raw const lz_batch_noted);
        let failed = (-4095..0).contains(&(context.mctx[RAX] as i64));
        return finish(slot, context, slot.step.load(Relaxed) + u32::from(made && !failed));
    }
    if rip >= at(&raw const lz_posted) && rip < at(&raw const lz_own) {
        let answered = slot.rsp_seq.load(Acquire) == slot.req_seq.load(Relaxed);
        let kind = slot.rsp_kind.load(Relaxed);
        if answered && kind == REPLY_BATCH {
            return finish(slot, context, 0);
        }
        if !answered || (kind != REPLY_RETURN && kind != REPLY_DATA) {
            return Found::Midway;
        }
        context.mctx[RAX] = data::value(slot, kind);
        restore(context, slot);
        set_flags(context, slot.light_flags.load(Relaxed));
        context.mctx[RIP] = behind(site(u64::from(slot.light_site.load(Relaxed)) / GATE_SIZE));
        return Found::Guest;
    }
    let advised = within(&raw const lz_advice_made, &raw const lz_altstack);
    if advised && context.mctx[RAX] != 0 {
        // It goes to the sentry.
        return Found::Midway;
    }
    let kept = masking || advised || carrying || within(&raw const lz_pread_kept, &raw const lz_pread_end);
    let used = if kept { u64::from(slot.light_site.load(Relaxed)) } else { context.mctx[R11] };
    let site = site(used / GATE_SIZE);
    if carrying || reading {
        restore(context, slot);
    }
    let tried = rip == at(&raw const lz_mask_tried) && context.mctx[RFLAGS] & ZERO_FLAG != 0;
    if within(&raw const lz_alt_change, &raw const lz_alt_done) {
        own::alter(slot);
    }
    let done = within(&raw const lz_mask_done, &raw const lz_mask_hand)
        || within(&raw const lz_alt_change, &raw const lz_robust)
        || within(&raw const lz_zero, &raw const lz_trap);
    if tried || done || advised {
        // The mask or the list is another one by now, the memory is gone: the call is over.
        context.mctx[RAX] = 0;
        set_flags(context, slot.light_flags.load(Relaxed));
        context.mctx[RIP] = behind(site);
        return Found::Guest;
    }
    if !second_form(site) && rip > at(&raw const lz_flags_live) {
        let ax = context.mctx[RAX];
        if within(&raw const lz_plain_b, &raw const lz_common) {
            // The slot has none of this call's; behind `sahf` they are where they belong.
            if rip == at(&raw const lz_plain_a) {
                set_flags(context, ax);
            } else if within(&raw const lz_plain_a, &raw const lz_plain_set) {
                set_flags(context, ax.wrapping_sub(0x7f));
            }
        } else {
            let saved = rip >= at(&raw const lz_flags_saved);
            set_flags(context, if saved { slot.light_flags.load(Relaxed) } else { ax });
        }
    }
    if rip >= at(&raw const lz_nr_saved) {
        context.mctx[RAX] = slot.req_nr.load(Relaxed);
    }
    context.mctx[RIP] = entry(site);
    Found::Guest
}

/// Makes what is left of the host calls that came with a value, and goes on with it.
fn finish(slot: &Slot, context: &mut Context, from: u32) -> Found {
    let failed = task::batch_from(slot, from);
    for (to, from) in [RDI, RSI, RDX, R10, R8, R9].into_iter().zip(&slot.req_args) {
        context.mctx[to] = from.load(Relaxed);
    }
    set_flags(context, slot.light_flags.load(Relaxed));
    context.mctx[RIP] = behind(site(u64::from(slot.light_site.load(Relaxed)) / GATE_SIZE));
    if failed != 0 {
        context.mctx[RAX] = slot.req_nr.load(Relaxed);
        return Found::Failed(failed);
    }
    context.mctx[RAX] = slot.rsp_value.load(Relaxed);
    Found::Guest
}

/// A task that goes on behind the `syscall` of a site of the second form finds a jump's bytes there: its way is the tail.
pub fn detour(context: &mut Context) {
    let used = u64::from(crate::forker::head().sites.load(Relaxed)).min(SITES);
    for index in 0..used {
        let site = site(index);
        if site.key.load(Relaxed) == context.mctx[RIP] {
            context.mctx[RIP] = site.ret.load(Relaxed);
        }
    }
}
