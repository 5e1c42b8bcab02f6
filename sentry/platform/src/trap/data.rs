//! Guest memory that travels with calls through a task's slot, which saves process_vm_readv(2) and process_vm_writev(2).
//!
//! In: the shim copies what one argument points to, as the call's row in the table says, and tells how many bytes it copied.
//! The address is the argument's, so a guest that lies about the bytes says no more than it could have had in its memory.
//!
//! Out: small writes to the calling task's memory are put into the slot and made by the shim on its way back. What
//! the guest does to them there it could do to its memory.

use super::ctl::Ctl;
use crate::{Abi, SyscallRequest};
use lazaret_shim::layout::{self, IN_MAX, KINDS, OUT_MAX, STRING_MAX};
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use syscall_table::{ArgKind, SYSCALLS};

/// What travels with one call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Form {
    /// What the gates do with it; 0: nothing travels in.
    pub kind: u8,
    /// Bytes of what is counted, or of the whole.
    pub unit: u8,
    /// Its results may travel out: the handler writes them to arguments that are there for it, and reads none of them by
    /// another way.
    pub writes: bool,
}

/// Bytes of a struct flock.
const FLOCK: u8 = 32;

/// By call number.
pub static FORMS: LazyLock<[Form; KINDS as usize]> = LazyLock::new(|| {
    let mut forms = [Form::default(); KINDS as usize];
    let kinds = layout::kinds();
    for row in SYSCALLS {
        let nr = row.number as usize;
        // What needs all registers is rare, or makes tasks that see the memory at once.
        if let Some(form) = forms.get_mut(nr).filter(|_| kinds.get(nr) != Some(&layout::KIND_OF_FULL)) {
            *form = form_of(row.args.iter().map(|arg| arg.kind));
        }
    }
    // Its third argument is many things, and often none.
    if let Some(fcntl) = forms.get_mut(libc::SYS_fcntl as usize) {
        *fcntl = Form { kind: layout::FORM_OF_DATA | layout::DATA_OF_LOCK | 2, unit: FLOCK, writes: true };
    }
    if let Some(futex) = forms.get_mut(libc::SYS_futex as usize) {
        *futex = Form { kind: layout::FORM_OF_DATA | layout::DATA_OF_WAIT, unit: 4, writes: false };
    }
    forms
});

fn form_of(args: impl Iterator<Item = ArgKind>) -> Form {
    let mut form = Form::default();
    for (at, arg) in (0u8..6).zip(args) {
        use ArgKind::*;
        form.writes |=
            matches!(arg, OutBuf | OutVar | Out { .. } | InOut { .. } | OutSlice { .. } | InOutSlice { .. });
        let (bits, unit) = match arg {
            Path | CStr => (layout::DATA_STRING, 1),
            InBuf => (layout::DATA_COUNTED, 1),
            In { size } | InOut { size } => (0, size),
            InSlice { size } | InOutSlice { size } => (layout::DATA_COUNTED, size),
            _ => continue,
        };
        let Ok(unit) = u8::try_from(unit) else { continue };
        let string = |kind: u8| kind & layout::DATA_STRING != 0;
        // The first string, else the first of all.
        if form.kind == 0 || (string(bits) && !string(form.kind)) {
            form.kind = layout::FORM_OF_DATA | bits | at;
            form.unit = unit;
        }
    }
    form
}

fn form(request: &SyscallRequest) -> Form {
    let known = if request.abi == Abi::X86_64 { FORMS.get(request.nr as usize) } else { None };
    known.copied().unwrap_or_default()
}

/// Whether the results of a native call of this number may travel.
pub fn takes_results(nr: u32) -> bool {
    FORMS.get(nr as usize).is_some_and(|form| form.writes)
}

/// Bytes that came with a request.
#[derive(Debug, Default)]
pub struct Carried {
    addr: u64,
    len: usize,
    /// They are in `bytes`.
    read: bool,
    bytes: Vec<u8>,
}

impl Carried {
    /// Of a request whose shim says that it copied so many bytes.
    pub fn new(request: &SyscallRequest, len: u32) -> Carried {
        let form = form(request);
        let arg = |at: u8| request.args.get(usize::from(at)).copied().unwrap_or_default();
        let (mut addr, mut most) = (arg(form.kind & 7), IN_MAX);
        if form.kind & layout::DATA_STRING != 0 {
            (addr, most) = (addr & !7, STRING_MAX);
        }
        let len = u64::from(len);
        if form.kind == 0 || len > most || addr.checked_add(len).is_none() {
            return Carried::default();
        }
        Carried { addr, len: len as usize, ..Carried::default() }
    }

    /// Has the processor fetch them from the task's while other things are done.
    pub fn fetch(&self, ctl: &Ctl, slot: u32) {
        if self.len > 0 {
            ctl.fetch(slot, layout::IN_OFFSET, self.len.min(AHEAD));
        }
    }

    /// The bytes known from `addr` on; copied out of the slot once.
    pub fn from(&mut self, ctl: &Ctl, slot: u32, addr: u64) -> &[u8] {
        let Some(skip) = addr.checked_sub(self.addr).filter(|skip| *skip < self.len as u64) else {
            return &[];
        };
        if !self.read {
            self.read = true;
            self.bytes = ctl.data(slot, layout::IN_OFFSET, self.len);
        }
        self.bytes.get(skip as usize..).unwrap_or_default()
    }
}

/// Most pieces of one answer.
const PIECES: usize = 4;

/// Writes that are to travel with an answer.
#[derive(Debug, Default)]
pub struct Left {
    /// The call lets its results travel.
    able: bool,
    /// Address, length, and where the bytes are from [`layout::OUT_OFFSET`].
    pieces: [(u64, usize, usize); PIECES],
    count: usize,
    used: usize,
}

const HEAD: usize = 16;
/// Bytes that are fetched ahead: some lines are on their way at once, more would only be in each other's.
const AHEAD: usize = 512;

impl Left {
    /// Nothing yet, of a request.
    pub fn new(request: &SyscallRequest) -> Left {
        Left { able: form(request).writes, ..Left::default() }
    }

    /// Nothing yet, of a call that [`takes_results`].
    pub fn able() -> Left {
        Left { able: true, ..Left::default() }
    }

    /// Has the processor fetch the place for the first of them, to write to it.
    pub fn fetch(&self, ctl: &Ctl, slot: u32) {
        if self.able {
            ctl.fetch_to_write(slot, layout::OUT_OFFSET, AHEAD / 2);
        }
    }

    /// Whether there is room for a piece of this length.
    pub fn room(&self, len: usize) -> bool {
        // A length of 0 comes behind the last one.
        self.able
            && self.count < PIECES
            && len <= OUT_MAX as usize
            && self.used.saturating_add(len.next_multiple_of(8)) + 2 * HEAD <= OUT_MAX as usize
    }

    /// Adds a piece for which there is room.
    pub fn put(&mut self, ctl: &Ctl, slot: u32, addr: u64, data: &[u8]) {
        let words = ctl.words(slot, layout::OUT_OFFSET + self.used as u64);
        let Some(piece) = self.pieces.get_mut(self.count) else { return };
        *piece = (addr, data.len(), self.used + HEAD);
        let mut words = words.iter();
        let mut put = |value: u64| words.next().map_or((), |word| word.store(value, Relaxed));
        put(addr);
        put(data.len() as u64);
        ctl.set_data(slot, layout::OUT_OFFSET + (self.used + HEAD) as u64, data);
        self.count += 1;
        self.used += HEAD + data.len().next_multiple_of(8);
    }

    /// Whether anything is to travel; if so, it is ready to.
    pub fn close(&mut self, ctl: &Ctl, slot: u32) -> bool {
        if self.count == 0 {
            return false;
        }
        if let Some(len) = ctl.words(slot, layout::OUT_OFFSET + self.used as u64).get(1) {
            len.store(0, Relaxed);
        }
        self.clear();
        true
    }

    /// The pieces, for a caller that writes them itself.
    pub fn take(&mut self, ctl: &Ctl, slot: u32, mut write: impl FnMut(u64, &[u8])) {
        for (addr, len, at) in self.pieces.iter().take(self.count) {
            write(*addr, &ctl.data(slot, layout::OUT_OFFSET + *at as u64, *len));
        }
        self.clear();
    }

    /// Whether nothing is to travel.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn clear(&mut self) {
        self.count = 0;
        self.used = 0;
    }
}

/// Words of the data area of a slot.
pub type Words = [AtomicU64; ((layout::SLOT_SIZE - layout::DATA_OFFSET) / 8) as usize];

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(nr: usize) -> (u8, u8, bool) {
        (FORMS[nr].kind, FORMS[nr].unit, FORMS[nr].writes)
    }

    #[test]
    fn forms() {
        const DATA: u8 = layout::FORM_OF_DATA;
        // read, write, open, newfstatat, renameat, nanosleep, lseek, writev
        assert_eq!(kind(0), (0, 0, true));
        assert_eq!(kind(1), (DATA | layout::DATA_COUNTED | 1, 1, false));
        assert_eq!(kind(2), (DATA | layout::DATA_STRING, 1, false));
        assert_eq!(kind(262), (DATA | layout::DATA_STRING | 1, 1, true));
        assert_eq!(kind(264), (DATA | layout::DATA_STRING | 1, 1, false));
        assert_eq!(kind(35), (DATA, 16, true));
        assert_eq!(kind(8), (0, 0, false));
        assert_eq!(kind(72), (DATA | layout::DATA_OF_LOCK | 2, 32, true));
        assert_eq!(kind(202), (DATA | layout::DATA_OF_WAIT, 4, false));
        assert_eq!(kind(20), (DATA | layout::DATA_COUNTED | 1, 16, false));
    }

    #[test]
    fn lengths_that_lie() {
        let open = |path: u64| SyscallRequest { abi: Abi::X86_64, nr: 2, args: [path, 0, 0, 0, 0, 0] };
        assert_eq!(Carried::new(&open(0x1003), 16).len, 16);
        assert_eq!(Carried::new(&open(0x1003), 0xffff).len, 0);
        assert_eq!(Carried::new(&open(u64::MAX), 16).len, 0);
        let read = SyscallRequest { abi: Abi::X86_64, nr: 0, args: [0; 6] };
        assert_eq!(Carried::new(&read, 16).len, 0);
        assert_eq!(Carried::new(&SyscallRequest { abi: Abi::I386, ..open(0x1000) }, 16).len, 0);
    }

    #[test]
    fn pieces() {
        let ctl = Ctl::new().unwrap();
        let stat = SyscallRequest { abi: Abi::X86_64, nr: 4, args: [0; 6] };
        let mut left = Left::new(&stat);
        assert!(!left.close(&ctl, 1) && !left.room(usize::MAX) && !left.room(OUT_MAX as usize));
        assert!(left.room(13));
        left.put(&ctl, 1, 0x1000, b"thirteen byte");
        left.put(&ctl, 1, 0x2000, &[7; 16]);
        let mut got = Vec::new();
        left.take(&ctl, 1, |addr, data| got.push((addr, data.to_vec())));
        assert_eq!(got, [(0x1000, b"thirteen byte".to_vec()), (0x2000, vec![7; 16])]);
        assert!(left.is_empty());
        left.put(&ctl, 1, 0x3000, &[1; 8]);
        assert!(left.close(&ctl, 1));
        let words = ctl.words(1, layout::OUT_OFFSET);
        let word = |i: usize| words[i].load(Relaxed);
        assert_eq!((word(0), word(1), word(2), word(4)), (0x3000, 8, 0x0101_0101_0101_0101, 0));
    }
}
