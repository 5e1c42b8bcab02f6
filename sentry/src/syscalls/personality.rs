//! personality(2), umask(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use std::sync::atomic::Ordering;
use syscall_table::abi::prctl::READ_IMPLIES_EXEC;
use syscall_table::abi::{PROT_EXEC, PROT_READ};

/// "Only tell me."
const QUERY: u32 = 0xffff_ffff;

pub fn personality(cx: &mut Cx, persona: Persona) -> SysResult {
    let current = &cx.task.process.personality;
    if persona.bits() == QUERY {
        return Ok(u64::from(current.load(Ordering::Relaxed)));
    }
    Ok(u64::from(current.swap(persona.bits(), Ordering::Relaxed)))
}

/// The protection that memory gets where this one was asked for (READ_IMPLIES_EXEC).
pub(super) fn implied(cx: &Cx, prot: i32) -> i32 {
    let implies = cx.task.process.personality.load(Ordering::Relaxed) & READ_IMPLIES_EXEC != 0;
    if implies && prot & PROT_READ != 0 { prot | PROT_EXEC } else { prot }
}

pub fn umask(cx: &mut Cx, mask: Mode) -> SysResult {
    let fs = cx.task.fs();
    let mut umask = fs.umask.lock();
    let old = *umask;
    *umask = mask.raw() & 0o777;
    Ok(u64::from(old))
}
