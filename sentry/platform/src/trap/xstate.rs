//! Extended processor state in signal-frame layout (asm/sigcontext.h, `struct _fpx_sw_bytes`).

use crate::XState;
use core::arch::x86_64::{__cpuid_count, _xgetbv};
use std::sync::OnceLock;

const MAGIC1: u32 = 0x4650_5853;
const MAGIC2: u32 = 0x4650_5845;
const LEGACY: usize = 512;
const HEADER: usize = 64;
const SW: usize = 464;
/// Components that the kernel gives only to processes that ask (AMX tile data).
const DYNAMIC: u64 = 1 << 18;
/// Largest state taken from a guest.
pub const MOST: usize = 0x8000;

fn word32(data: &[u8], at: usize) -> u32 {
    data.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn word64(data: &[u8], at: usize) -> u64 {
    data.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Length of the state whose first 512 bytes these are, closing magic included.
pub fn length(legacy: &[u8]) -> usize {
    let size = word32(legacy, SW + 4) as usize;
    if word32(legacy, SW) == MAGIC1 && (LEGACY + HEADER + 4..=MOST).contains(&size) { size } else { LEGACY }
}

struct Machine {
    features: u64,
    size: usize,
    mxcsr_mask: u32,
}

#[target_feature(enable = "xsave")]
fn xcr0() -> u64 {
    // SAFETY: XCR0 can be read wherever XSAVE is enabled.
    unsafe { _xgetbv(0) }
}

fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let mxcsr_mask = 0xffff;
        if !std::arch::is_x86_feature_detected!("xsave") {
            return Machine { features: 3, size: LEGACY, mxcsr_mask };
        }
        // SAFETY: XSAVE was just detected.
        let features = unsafe { xcr0() } & !DYNAMIC;
        let mut size = LEGACY + HEADER;
        for i in 2..63 {
            if features & 1 << i != 0 {
                let leaf = __cpuid_count(0xd, i);
                size = size.max((leaf.eax + leaf.ebx) as usize);
            }
        }
        Machine { features, size, mxcsr_mask }
    })
}

/// Length of this machine's state, closing magic included.
pub fn usual() -> usize {
    let machine = machine();
    if machine.size == LEGACY { LEGACY } else { machine.size + 4 }
}

/// The state of a program that has not used its registers yet.
pub fn initial() -> XState {
    let machine = machine();
    if machine.size == LEGACY {
        let mut data = vec![0; LEGACY];
        data[0..2].copy_from_slice(&0x37fu16.to_le_bytes());
        data[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
        return XState(data);
    }
    let mut data = vec![0; machine.size + 4];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(to) = data.get_mut(at..at + bytes.len()) {
            to.copy_from_slice(bytes);
        }
    };
    put(0, &0x37fu16.to_le_bytes());
    put(24, &0x1f80u32.to_le_bytes());
    put(28, &machine.mxcsr_mask.to_le_bytes());
    put(SW, &MAGIC1.to_le_bytes());
    put(SW + 4, &(machine.size as u32 + 4).to_le_bytes());
    put(SW + 8, &machine.features.to_le_bytes());
    put(SW + 16, &(machine.size as u32).to_le_bytes());
    put(machine.size, &MAGIC2.to_le_bytes());
    XState(data)
}

/// Whether the processor would take this state: complete, no reserved bit set.
pub fn acceptable(data: &[u8]) -> bool {
    let machine = machine();
    if data.len() < LEGACY || word32(data, 24) & !machine.mxcsr_mask != 0 {
        return false;
    }
    if machine.size == LEGACY {
        return true;
    }
    let size = word32(data, SW + 16) as usize;
    word32(data, SW) == MAGIC1
        && size == machine.size
        && length(data) == size + 4
        && data.len() == size + 4
        && word32(data, size) == MAGIC2
        && word64(data, SW + 8) & !machine.features == 0
        && word64(data, LEGACY) & !machine.features == 0
        && data.get(LEGACY + 8..LEGACY + HEADER).is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
}

/// The signal-frame form of what PTRACE_GETREGSET gives for NT_X86_XSTATE.
pub fn from_regset(regset: &[u8]) -> XState {
    let machine = machine();
    let XState(mut data) = initial();
    let mut copy = |range: core::ops::Range<usize>| {
        let end = range.end.min(regset.len());
        if let (Some(to), Some(from)) = (data.get_mut(range.start..end), regset.get(range.start..end)) {
            to.copy_from_slice(from);
        }
    };
    copy(0..SW);
    if machine.size > LEGACY {
        copy(LEGACY..machine.size);
        let used = word64(&data, LEGACY) & machine.features;
        if let Some(to) = data.get_mut(LEGACY..LEGACY + 8) {
            to.copy_from_slice(&used.to_le_bytes());
        }
    }
    XState(data)
}

/// What PTRACE_SETREGSET takes: `len` bytes, as long as PTRACE_GETREGSET said. The state is an acceptable one.
pub fn to_regset(state: &XState, len: usize) -> Vec<u8> {
    let mut regset = vec![0; len];
    let size = machine().size.min(len);
    let mut copy = |range: core::ops::Range<usize>| {
        if let (Some(to), Some(from)) = (regset.get_mut(range.clone()), state.0.get(range)) {
            to.copy_from_slice(from);
        }
    };
    copy(0..SW.min(size));
    copy(LEGACY.min(size)..size);
    regset
}

/// What PTRACE_GETREGSET gives for NT_X86_XSTATE: the standard format, with the machine's features in the bytes that are
/// software's.
pub fn regset(state: &XState) -> Vec<u8> {
    let machine = machine();
    let mut regset = to_regset(state, machine.size);
    if let Some(to) = regset.get_mut(SW..SW + 8) {
        to.copy_from_slice(&machine.features.to_le_bytes());
    }
    regset
}

/// The state that PTRACE_SETREGSET asks for; None if it is none that the processor would take. `regset` is as long as
/// [`regset`] makes one.
pub fn given(regset: &[u8]) -> Option<XState> {
    let machine = machine();
    if machine.size > LEGACY {
        let header = regset.get(LEGACY..LEGACY + HEADER)?;
        let reserved = header.get(8..)?.iter().any(|byte| *byte != 0);
        if word64(regset, LEGACY) & !machine.features != 0 || reserved {
            return None;
        }
    }
    let state = from_regset(regset);
    acceptable(&state.0).then_some(state)
}
