//! personality(2), umask(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use std::sync::atomic::Ordering;

/// "Only tell me."
const QUERY: u32 = 0xffff_ffff;

pub fn personality(cx: &mut Cx, persona: Persona) -> SysResult {
    let current = &cx.task.process.personality;
    if persona.bits() == QUERY {
        return Ok(u64::from(current.load(Ordering::Relaxed)));
    }
    Ok(u64::from(current.swap(persona.bits(), Ordering::Relaxed)))
}

pub fn umask(cx: &mut Cx, mask: Mode) -> SysResult {
    let fs = cx.task.fs();
    let mut umask = fs.umask.lock();
    let old = *umask;
    *umask = mask.raw() & 0o777;
    Ok(u64::from(old))
}
