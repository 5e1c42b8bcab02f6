//! The program that every guest process starts from: one page of code at the start of the platform's region.

use lazaret_shim::layout;

/// `syscall; int3`: injected host calls are made here and nowhere else.
pub const CALL: u64 = layout::CODE;
/// Where the instruction pointer is when an injected call is done.
pub const CALL_DONE: u64 = CALL + 3;
/// `pause()` for ever: the program's start.
pub const PAUSE: u64 = layout::CODE + 16;
/// Bytes of code.
pub const CODE_LEN: u64 = 0x1000;

/// The program as a static ELF executable.
pub fn elf() -> Vec<u8> {
    let mut out = Vec::with_capacity(0x2000);
    // e_ident, ET_EXEC, EM_X86_64, version, entry, phoff, shoff, flags, ehsize, phentsize, phnum, sh*
    out.extend_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&[2, 0, 62, 0, 1, 0, 0, 0]);
    for word in [PAUSE, 64, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&[0, 0, 0, 0, 64, 0, 56, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    // PT_LOAD r-x, PT_GNU_STACK rw-
    out.extend_from_slice(&[1, 0, 0, 0, 5, 0, 0, 0]);
    for word in [0x1000, layout::CODE, layout::CODE, CODE_LEN, CODE_LEN, 0x1000] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&[0x51, 0xe5, 0x74, 0x64, 6, 0, 0, 0]);
    for word in [0u64, 0, 0, 0, 0, 16] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.resize(0x1000, 0);
    out.extend_from_slice(&[0x0f, 0x05, 0xcc]);
    out.resize(0x1010, 0xcc);
    // mov eax, 34; syscall; jmp back
    out.extend_from_slice(&[0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7]);
    out.resize(0x2000, 0xcc);
    out
}
