//! sigreturn(2): the x86-64 signal frame (uapi/asm/sigcontext.h, asm/ucontext.h).

consts! {
    /// Bits of `uc_flags`.
    UC_FLAGS: u64 {
        /// The frame has XSAVE state behind the FXSAVE area.
        UC_FP_XSTATE = 0x1;
        /// sigreturn restores ss from the frame.
        UC_SIGCONTEXT_SS = 0x2;
        /// ss was valid when the frame was made.
        UC_STRICT_RESTORE_SS = 0x4;
    }
}

use super::{Siginfo, Sigset, Stack};

/// `FpxSwBytes::magic1`: XSAVE state follows the FXSAVE area.
pub const FP_XSTATE_MAGIC1: u32 = 0x46505853;
/// The word behind the XSAVE state.
pub const FP_XSTATE_MAGIC2: u32 = 0x46505845;
/// Size of [`FP_XSTATE_MAGIC2`] in the frame.
pub const FP_XSTATE_MAGIC2_SIZE: usize = 4;

pod! {
    /// struct sigcontext_64.
    #[repr(C)]
    pub struct Sigcontext [256] {
        pub r8: u64,
        pub r9: u64,
        pub r10: u64,
        pub r11: u64,
        pub r12: u64,
        pub r13: u64,
        pub r14: u64,
        pub r15: u64,
        pub di: u64,
        pub si: u64,
        pub bp: u64,
        pub bx: u64,
        pub dx: u64,
        pub ax: u64,
        pub cx: u64,
        pub sp: u64,
        pub ip: u64,
        pub flags: u64,
        pub cs: u16,
        pub gs: u16,
        pub fs: u16,
        pub ss: u16,
        pub err: u64,
        pub trapno: u64,
        pub oldmask: u64,
        pub cr2: u64,
        pub fpstate: u64,
        pub reserved1: [u64; 8],
    }

    /// struct ucontext as the kernel lays it out.
    #[repr(C)]
    pub struct Ucontext [304] {
        pub uc_flags: u64,
        pub uc_link: u64,
        pub uc_stack: Stack,
        pub uc_mcontext: Sigcontext,
        pub uc_sigmask: Sigset,
    }

    /// struct rt_sigframe. Behind it, aligned to 64 bytes, lies the extended state that `fpstate` points to.
    #[repr(C)]
    pub struct RtSigframe [440] {
        pub pretcode: u64,
        pub uc: Ucontext,
        pub info: Siginfo,
    }

    /// struct _fpx_sw_bytes: the last 48 bytes of the FXSAVE area.
    #[repr(C)]
    pub struct FpxSwBytes [48] {
        pub magic1: u32,
        pub extended_size: u32,
        pub xfeatures: u64,
        pub xstate_size: u32,
        pub padding: [u32; 7],
    }
}
