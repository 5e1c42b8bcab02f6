//! Guest register state.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// General registers, in the layout of Linux's `struct user_regs_struct` (x86-64, <sys/user.h>).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[allow(missing_docs)]
pub struct Regs {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub orig_rax: u64,
    pub rip: u64,
    pub cs: u64,
    pub eflags: u64,
    pub rsp: u64,
    pub ss: u64,
    pub fs_base: u64,
    pub gs_base: u64,
    pub ds: u64,
    pub es: u64,
    pub fs: u64,
    pub gs: u64,
}

/// Extended processor state (x87, SSE, AVX, …) as it lies in a signal frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct XState(pub Vec<u8>);

impl XState {
    /// As PTRACE_GETREGSET gives it for NT_X86_XSTATE; its first 512 bytes are what PTRACE_GETFPREGS gives.
    pub fn regset(&self) -> Vec<u8> {
        crate::trap::xstate::regset(self)
    }

    /// The other way. None: the processor would not take it. The length is that of [`regset`](Self::regset).
    pub fn from_regset(regset: &[u8]) -> Option<XState> {
        crate::trap::xstate::given(regset)
    }
}
