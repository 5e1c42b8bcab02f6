//! mprotect(2), pkey_alloc(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::mm::{PAGE, round_up};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// mprotect(2)
pub fn mprotect(cx: &mut Cx, addr: Addr, len: usize, prot: MmapProt) -> SysResult {
    pkey_mprotect(cx, addr, len, prot, -1)
}

/// pkey_mprotect(2): no key is ever allocated, so only -1 is one.
pub fn pkey_mprotect(cx: &mut Cx, addr: Addr, len: usize, prot: MmapProt, pkey: i32) -> SysResult {
    let known = PROT_READ | PROT_WRITE | PROT_EXEC | PROT_SEM | PROT_GROWSDOWN | PROT_GROWSUP;
    if prot.has(PROT_GROWSDOWN | PROT_GROWSUP) || addr.addr() & (PAGE - 1) != 0 {
        return Err(Errno::EINVAL.into());
    }
    // Of nothing, no more is looked at.
    if len == 0 {
        return Ok(0);
    }
    round_up(len as u64).and_then(|len| addr.addr().checked_add(len)).ok_or(Errno::ENOMEM)?;
    if prot.unknown(known) != 0 || prot.has(PROT_GROWSUP) || pkey != -1 {
        return Err(Errno::EINVAL.into());
    }
    let mm = cx.task.mm();
    mm.set_room(&cx.task.process);
    let prot = super::personality::implied(cx, prot.bits());
    let (start, len) = (addr.addr(), len as u64);
    if !mm.would_fill(start, len, prot) {
        return mm.protect(cx.memory_port(false)?, start, len, prot).map(|()| 0);
    }
    let port = cx.port()?;
    let done = mm.protect(port, start, len, prot);
    // What lies before a hole is changed.
    if matches!(done, Ok(()) | Err(Fail::Error(Errno::ENOMEM))) {
        mm.fill_locked(port, start, start.saturating_add(len))?;
    }
    done.map(|()| 0)
}

/// pkey_alloc(2): what Linux answers on a processor without protection keys.
pub fn pkey_alloc(_cx: &mut Cx, flags: u64, access_rights: PkeyRights) -> SysResult {
    if flags != 0 || access_rights.unknown(PKEY_DISABLE_ACCESS | PKEY_DISABLE_WRITE) != 0 {
        return Err(Errno::EINVAL.into());
    }
    Err(Fail::gap(Errno::EINVAL, "protection keys"))
}

/// pkey_free(2)
pub fn pkey_free(_cx: &mut Cx, _pkey: i32) -> SysResult {
    Err(Errno::EINVAL.into())
}
