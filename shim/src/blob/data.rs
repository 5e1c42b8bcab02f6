//! Guest memory that travels with calls, in the signal handler. The gates do the same by themselves.

use crate::layout::*;
use crate::own::{copy, load};
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

/// What a call gives whose results cannot be written: EFAULT.
pub const FAULT: u64 = -14i64 as u64;

fn place(slot: &Slot, offset: u64) -> u64 {
    slot as *const Slot as u64 + offset
}

/// An entry of one of the tables of bytes by call number in slot 0.
fn entry(table: u64, nr: u32) -> u8 {
    if u64::from(nr) >= KINDS {
        return 0;
    }
    // SAFETY: boot mapped the shared area; the table lies in slot 0.
    unsafe { &*((CTL + table + u64::from(nr)) as *const AtomicU8) }.load(Relaxed)
}

/// Puts what an argument of the call points to into the slot; how many bytes that are.
pub fn carry(nr: u32, slot: &Slot) -> u32 {
    let form = entry(FORMS_OFFSET, nr);
    if form & FORM_OF_DATA == 0 || form & DATA_OF_WAIT != 0 {
        return 0;
    }
    let arg = |i: u8| slot.req_args.get(usize::from(i)).map_or(0, |word| word.load(Relaxed));
    let from = arg(form & 7);
    if from == 0 {
        return 0;
    }
    let is_lock = |command| command < 64 && LOCK_COMMANDS >> command & 1 != 0;
    if form & DATA_OF_LOCK != 0 && !is_lock(arg((form & 7).wrapping_sub(1))) {
        return 0;
    }
    if form & DATA_STRING != 0 {
        return string(from, place(slot, IN_OFFSET));
    }
    let count = if form & DATA_COUNTED != 0 { arg((form & 7) + 1) } else { 1 };
    if count > IN_MAX {
        return 0;
    }
    let len = u64::from(entry(UNITS_OFFSET, nr)) * count;
    if len == 0 || len > IN_MAX {
        return 0;
    }
    // SAFETY: a fault is caught; the slot is the shim's and as long.
    if unsafe { copy(place(slot, IN_OFFSET), from, len) }.failed != 0 { 0 } else { len as u32 }
}

/// Copies aligned words up to the one with the string's end.
fn string(from: u64, to: u64) -> u32 {
    let start = from & !7;
    let mut before = (1 << (from - start) * 8) - 1;
    for at in (0..STRING_MAX).step_by(8) {
        // SAFETY: a fault is caught.
        let got = unsafe { load(start + at) };
        if got.failed != 0 {
            return 0;
        }
        // SAFETY: in the slot.
        unsafe { core::ptr::write_volatile((to + at) as *mut u64, got.value) };
        if (got.value | before).to_le_bytes().contains(&0) {
            return at as u32 + 8;
        }
        before = 0;
    }
    0
}

/// The value of an answer of this kind, once what comes with it is in its place.
pub fn value(slot: &Slot, kind: u32) -> u64 {
    if kind == REPLY_DATA && !put(slot) { FAULT } else { slot.rsp_value.load(Relaxed) }
}

fn put(slot: &Slot) -> bool {
    let mut at = 0;
    while at + 16 <= OUT_MAX {
        let word = |offset: u64| {
            // SAFETY: in the slot, aligned.
            unsafe { core::ptr::read_volatile(place(slot, OUT_OFFSET + offset) as *const u64) }
        };
        let (to, len) = (word(at), word(at + 8) & 0xffff_ffff);
        if len == 0 {
            return true;
        }
        at += 16;
        // SAFETY: a fault is caught; where the guest says, which could write there itself.
        if len > OUT_MAX - at || unsafe { copy(to, place(slot, OUT_OFFSET + at), len) }.failed != 0 {
            return false;
        }
        at += (len + 7) & !7;
    }
    true
}
