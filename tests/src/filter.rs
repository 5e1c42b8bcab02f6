//! Filters of system calls (seccomp(2)).

use crate::{eq, sys};
use libc::*;

/// Offsets in struct seccomp_data.
pub const NR: u32 = 0;
/// See [`NR`].
pub const ARCH: u32 = 4;
/// See [`NR`].
pub const IP: u32 = 8;
/// See [`NR`]; eight bytes each, the low half first.
pub const ARGS: u32 = 16;

/// The filter's value.
pub const ALLOW: u32 = SECCOMP_RET_ALLOW;
/// The filter's value; the errno is added.
pub const ERRNO: u32 = SECCOMP_RET_ERRNO;

/// An instruction that is no conditional jump.
pub fn stmt(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// A conditional jump.
pub fn jump(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | code) as u16, jt, jf, k }
}

/// Loads a word of struct seccomp_data.
pub fn load(at: u32) -> sock_filter {
    stmt(BPF_LD | BPF_W | BPF_ABS, at)
}

/// Returns a constant.
pub fn ret(value: u32) -> sock_filter {
    stmt(BPF_RET | BPF_K, value)
}

/// `value` for the call `nr`, all others are allowed.
pub fn on(nr: i64, value: u32) -> Vec<sock_filter> {
    vec![load(NR), jump(BPF_JEQ | BPF_K, nr as u32, 0, 1), ret(value), ret(ALLOW)]
}

/// seccomp(2) with SECCOMP_SET_MODE_FILTER.
pub fn set(flags: u64, insns: &[sock_filter]) -> i64 {
    let prog = sock_fprog { len: insns.len() as u16, filter: insns.as_ptr().cast_mut() };
    sys!(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog)
}

/// Gives up gaining privileges, and adds a filter.
#[track_caller]
pub fn add(insns: &[sock_filter]) {
    no_new_privs();
    eq(set(0, insns), 0);
}

/// PR_SET_NO_NEW_PRIVS.
#[track_caller]
pub fn no_new_privs() {
    eq(sys!(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
}
