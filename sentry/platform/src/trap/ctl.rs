//! The shared area of a guest process as the sentry sees it, and what its words mean.
//!
//! The guest writes these words at any time. Each is an atomic, loaded once into an owned value; meaning is given
//! to the value, never to the word.

use super::data::Words;
use crate::hostcalls;
use crate::{Abi, Exception, Regs, SyscallRequest};
use lazaret_shim::layout::{self, Head, MCTX_WORDS, SITES, SLOT_SIZE, SLOTS, Site, Slot};
use memmap2::{MmapOptions, MmapRaw};
use parking_lot::Mutex;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};

/// Copies bytes from or to shared memory, which the guest may change meanwhile: any bytes are good, and the compiler
/// makes no assumption of what it cannot see. The processor fetches lines that another one has side by side.
///
/// # Safety
/// `len` bytes are mapped at both places, for writing at `to`.
unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: as the caller says; the ABI has the direction flag clear.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
}

/// A mapped shared area.
pub struct Ctl {
    map: MmapRaw,
    file: Mutex<Option<Arc<OwnedFd>>>,
}

impl Ctl {
    /// A fresh area, all zero.
    pub fn new() -> io::Result<Ctl> {
        let file = hostcalls::shared_memory(c"lazaret-ctl", layout::CTL_SIZE)?;
        let map = MmapOptions::new().len(layout::CTL_SIZE as usize).map_raw(&file)?;
        Ok(Ctl { map, file: Mutex::new(Some(Arc::new(file))) })
    }

    /// Its file, until [`Ctl::close`].
    pub fn file(&self) -> Option<Arc<OwnedFd>> {
        self.file.lock().clone()
    }

    /// The same, for the time of a call.
    pub fn with_file<T>(&self, f: impl FnOnce(&OwnedFd) -> io::Result<T>) -> io::Result<T> {
        match &*self.file.lock() {
            Some(file) => f(file),
            None => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }

    /// Gives up the descriptor; the mappings stay.
    pub fn close(&self) {
        self.file.lock().take();
    }

    /// The head page.
    pub fn head(&self) -> &Head {
        // SAFETY: the mapping is page aligned, longer than a Head, lives as long as self, and a Head is nothing
        // but atomics, valid for any bytes. Its file cannot shrink (sealed).
        unsafe { &*self.map.as_mut_ptr().cast::<Head>() }
    }

    /// The slot with this index; an index past the end gives the last one.
    pub fn slot(&self, index: u32) -> &Slot {
        let offset = u64::from(index.min(SLOTS - 1)) * SLOT_SIZE;
        // SAFETY: the offset is inside the mapping and aligned; otherwise as in `head`.
        unsafe { &*self.map.as_mut_ptr().add(offset as usize).cast::<Slot>() }
    }

    /// The words of a slot's data area from this offset in the slot on, which is below the slot's size.
    pub fn words(&self, index: u32, offset: u64) -> &[AtomicU64] {
        let at = u64::from(index.min(SLOTS - 1)) * SLOT_SIZE + layout::DATA_OFFSET;
        // SAFETY: the data area of the slot is inside the mapping and aligned; otherwise as in `head`.
        let words = unsafe { &*self.map.as_mut_ptr().add(at as usize).cast::<Words>() };
        let skip = offset.saturating_sub(layout::DATA_OFFSET) / 8;
        words.get(skip as usize..).unwrap_or_default()
    }

    /// Prefetches lines of a slot's data area.
    pub fn fetch(&self, index: u32, offset: u64, len: usize) {
        for word in self.words(index, offset).iter().take(len.div_ceil(8)).step_by(8) {
            // SAFETY: a hint that touches nothing.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(word.as_ptr().cast())
            };
        }
    }

    /// As [`fetch`](Self::fetch), to write to them.
    pub fn fetch_to_write(&self, index: u32, offset: u64, len: usize) {
        for word in self.words(index, offset).iter().take(len.div_ceil(8)).step_by(8) {
            // SAFETY: a hint that touches nothing; processors without it take it for one.
            unsafe {
                std::arch::asm!("prefetchw [{}]", in(reg) word.as_ptr(), options(nostack, preserves_flags));
            }
        }
    }

    /// A copy of bytes of a slot's data area, from this offset in the slot on; as many as there are up to the slot's end.
    pub fn data(&self, index: u32, offset: u64, len: usize) -> Vec<u8> {
        let words = self.words(index, offset);
        let len = len.min(size_of_val(words));
        let mut bytes = Vec::<u8>::with_capacity(len);
        // SAFETY: `len` bytes from the words on are mapped, and the vector has room for as many.
        unsafe { copy(bytes.as_mut_ptr(), words.as_ptr().cast(), len) };
        // SAFETY: all of them were just written.
        unsafe { bytes.set_len(len) };
        bytes
    }

    /// Puts bytes into a slot's data area; what does not fit is left out.
    pub fn set_data(&self, index: u32, offset: u64, bytes: &[u8]) {
        let words = self.words(index, offset);
        let len = bytes.len().min(size_of_val(words));
        // SAFETY: `len` bytes from the words on are mapped for writing.
        unsafe { copy(words.as_ptr().cast_mut().cast(), bytes.as_ptr(), len) };
    }

    /// An entry of the table of rewritten sites.
    pub fn site(&self, index: usize) -> Option<&Site> {
        if index as u64 >= SITES {
            return None;
        }
        let offset = layout::TABLE_OFFSET as usize + index * size_of::<Site>();
        // SAFETY: the table lies in slot 0, aligned; a Site is nothing but atomics; otherwise as in `head`.
        Some(unsafe { &*self.map.as_mut_ptr().add(offset).cast::<Site>() })
    }

    /// Makes the pages there that every process uses, before one waits for them.
    pub fn warm(&self) {
        self.head().cmd_seq.store(0, Relaxed);
        self.slot(1).polling.store(0, Relaxed);
    }

    /// Copies what a task kept of its extended state to another slot's data; false if it kept none.
    pub fn hand_on(&self, from: u32, to: u32, len: u32) -> bool {
        if !(512..=layout::KEPT_XSTATE_MAX as u32).contains(&len) || from == to {
            return false;
        }
        let words = self.words(to, layout::DATA_OFFSET).iter().zip(self.words(from, layout::DATA_OFFSET));
        for (to, from) in words.take(len.div_ceil(8) as usize) {
            to.store(from.load(Relaxed), Relaxed);
        }
        true
    }

    /// Says what travels with calls, where the gates look for it.
    pub fn set_forms(&self) {
        for (nr, form) in super::data::FORMS.iter().enumerate() {
            self.set(layout::FORMS_OFFSET, nr, form.kind);
            self.set(layout::UNITS_OFFSET, nr, form.unit);
        }
    }

    fn set(&self, table: u64, nr: usize, value: u8) {
        if nr as u64 >= layout::KINDS {
            return;
        }
        // SAFETY: inside slot 0; an AtomicU8 is valid for any byte; otherwise as in `head`.
        let byte = unsafe { &*self.map.as_mut_ptr().add(table as usize + nr).cast::<AtomicU8>() };
        byte.store(value, Relaxed);
    }

    /// Stores the base filter where the zygote installs it from.
    pub fn store_filter(&self, filter: &[confine::bpf::Insn]) {
        let room = ((layout::SLOT_SIZE - layout::FILTER_OFFSET) / 8) as usize;
        assert!(filter.len() <= room, "the base filter outgrew its place");
        for (i, insn) in filter.iter().enumerate() {
            // SAFETY: below `room`, so inside slot 0; the guest does not exist yet.
            unsafe {
                let at =
                    self.map.as_mut_ptr().add(layout::FILTER_OFFSET as usize).cast::<confine::bpf::Insn>();
                at.add(i).write(*insn);
            }
        }
        self.head().filter_len.store(filter.len() as u32, Relaxed);
    }

    /// Makes a slot ready for a new task.
    pub fn reset(&self, index: u32, xstate: Option<(u64, u32)>) {
        let slot = self.slot(index);
        let (at, len) = xstate.unwrap_or((0, 0));
        // Requests are counted on from the last thread's: what that one left done stays done.
        slot.polling.store(0, Relaxed);
        slot.blocks_nr.store(0, Relaxed);
        slot.rsp_close.store(0, Relaxed);
        slot.start_xstate.store(at, Relaxed);
        slot.start_xstate_len.store(len, Relaxed);
        slot.listener.store(0, Relaxed);
        slot.own_valid.store(0, Relaxed);
        super::lend::take_back(slot, |_| true);
    }
}

/// What a request in a slot means.
#[derive(Debug, Clone, Copy)]
pub enum Request {
    /// A new thread reports.
    Started,
    /// A system call, and how many bytes travel with it.
    Syscall(SyscallRequest, u32),
    /// A system call that came through a gate: without registers.
    Light(SyscallRequest, u32),
    /// A processor exception.
    Exception(Exception),
    /// The interrupt signal.
    Interrupt,
    /// A call that was left to the task failed with this error.
    Failed(i32),
    /// Anything else: results, a second ring, or nonsense.
    Other,
}

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const X32_BIT: u32 = 0x4000_0000;
const SYS_SECCOMP: i32 = 1;

/// Copies the machine context out of a slot.
pub fn mctx(slot: &Slot) -> [u64; MCTX_WORDS] {
    std::array::from_fn(|i| slot.req_mctx.get(i).map_or(0, |word| word.load(Relaxed)))
}

/// Copies the request out of a slot and gives it a meaning.
pub fn decode(slot: &Slot) -> Request {
    let word = slot.req_kind.load(Relaxed);
    let (kind, carried) = (word & ((1 << layout::KIND_BITS) - 1), word >> layout::KIND_BITS);
    match kind {
        layout::KIND_STARTED => Request::Started,
        31 if slot.req_code.load(Relaxed) as i32 == SYS_SECCOMP => Request::Syscall(syscall(slot), carried),
        layout::KIND_LIGHT => Request::Light(native(slot), carried),
        4 | 5 | 7 | 8 | 11 | 31 => {
            let words = mctx(slot);
            Request::Exception(Exception {
                signo: kind as i32,
                code: slot.req_code.load(Relaxed) as i32,
                addr: slot.req_addr.load(Relaxed),
                trapno: words[20],
                error_code: words[19],
            })
        }
        k if k == layout::INTERRUPT as u32 => Request::Interrupt,
        layout::KIND_FAILED => Request::Failed((slot.req_code.load(Relaxed) as i32).clamp(1, 4095)),
        _ => Request::Other,
    }
}

/// The address behind the instruction that trapped, and how many calls there the shim has kept for itself.
pub fn site_of_call(slot: &Slot) -> (u64, u32) {
    (slot.req_mctx.get(16).map_or(0, |word| word.load(Relaxed)), slot.unseen.load(Relaxed))
}

fn native(slot: &Slot) -> SyscallRequest {
    let nr = (slot.req_nr.load(Relaxed) & 0xffff_ffff) as u32;
    let args = std::array::from_fn(|i| slot.req_args.get(i).map_or(0, |word| word.load(Relaxed)));
    // A negative number is no x32 call but a number that nobody has.
    if nr & X32_BIT != 0 && nr & 0x8000_0000 == 0 {
        return SyscallRequest { abi: Abi::X32, nr: nr & !X32_BIT, args };
    }
    SyscallRequest { abi: Abi::X86_64, nr, args }
}

fn syscall(slot: &Slot) -> SyscallRequest {
    if slot.req_arch.load(Relaxed) == AUDIT_ARCH_X86_64 {
        return native(slot);
    }
    let nr = (slot.req_nr.load(Relaxed) & 0xffff_ffff) as u32;
    let words = mctx(slot);
    // ebx, ecx, edx, esi, edi, ebp
    let args =
        [words[11], words[14], words[12], words[9], words[8], words[10]].map(|word| word & 0xffff_ffff);
    SyscallRequest { abi: Abi::I386, nr, args }
}

/// Registers from a machine context.
pub fn regs(words: &[u64; MCTX_WORDS], fs_base: u64, gs_base: u64, orig_rax: u64) -> Regs {
    let [r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags, seg, ..] =
        *words;
    Regs {
        r15,
        r14,
        r13,
        r12,
        rbp,
        rbx,
        r11,
        r10,
        r9,
        r8,
        rax,
        rcx,
        rdx,
        rsi,
        rdi,
        orig_rax,
        rip,
        cs: seg & 0xffff,
        eflags,
        rsp,
        ss: seg >> 48,
        fs_base,
        gs_base,
        ds: 0,
        es: 0,
        fs: 0,
        gs: 0,
    }
}

/// Puts registers into a machine context, leaving its other words alone. Segment selectors that cannot be user
/// code and data become the ordinary ones.
pub fn set_regs(words: &mut [u64; MCTX_WORDS], r: &Regs) {
    let cs = if r.cs == 0x23 { 0x23 } else { 0x33 };
    let ss = 0x2b;
    let general = [
        r.r8,
        r.r9,
        r.r10,
        r.r11,
        r.r12,
        r.r13,
        r.r14,
        r.r15,
        r.rdi,
        r.rsi,
        r.rbp,
        r.rbx,
        r.rdx,
        r.rax,
        r.rcx,
        r.rsp,
        r.rip,
        r.eflags,
        cs | ss << 48,
    ];
    for (word, value) in words.iter_mut().zip(general) {
        *word = value;
    }
}

/// Fuzzing entry: gives `data` as a slot to everything that decodes one.
pub fn fuzz_slot(data: &[u8]) {
    let mut words = vec![0u64; (SLOT_SIZE / 8) as usize];
    for (word, bytes) in words.iter_mut().zip(data.chunks(8)) {
        let mut whole = [0; 8];
        for (to, from) in whole.iter_mut().zip(bytes) {
            *to = *from;
        }
        *word = u64::from_le_bytes(whole);
    }
    let aligned = (0..8).find(|skip| (words.as_ptr() as usize + skip * 8).is_multiple_of(64)).unwrap_or(0);
    let Some(place) = words.get(aligned..) else { return };
    if !(place.as_ptr() as usize).is_multiple_of(64) || size_of_val(place) < size_of::<Slot>() {
        return;
    }
    // SAFETY: aligned, long enough, and a Slot is nothing but atomics.
    let slot = unsafe { &*place.as_ptr().cast::<Slot>() };
    if let Request::Light(request, len) | Request::Syscall(request, len) = decode(slot) {
        let _ = super::data::Carried::new(&request, len);
    }
    let mut copy = mctx(slot);
    let registers = regs(&copy, slot.req_fs.load(Relaxed), slot.req_gs.load(Relaxed), 0);
    set_regs(&mut copy, &registers);
    let _ = super::xstate::length(data);
    let _ = super::xstate::acceptable(data);
}
