//! capget(2), capset(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::{ALL_CAPS, Creds, cap};
use crate::task::tree::INIT;
use syscall_table::errno::Errno;

/// _LINUX_CAPABILITY_VERSION_1, 2, 3.
const V1: u32 = 0x1998_0330;
const V2: u32 = 0x2007_1026;
const V3: u32 = 0x2008_0522;

/// Number of 32-bit words of the header's version. An unknown one is answered with the newest.
fn words(cx: &mut Cx, hdrp: InOut<CapHeader>, probing: bool) -> SysResult<Option<(usize, i32)>> {
    let header: CapHeader = cx.read_value(hdrp.addr())?;
    match header.version {
        V1 => Ok(Some((1, cx.task.meant(header.pid)))),
        V2 | V3 => Ok(Some((2, cx.task.meant(header.pid)))),
        _ => {
            cx.write_value(hdrp.addr(), &CapHeader { version: V3, ..header })?;
            if probing { Ok(None) } else { Err(Errno::EINVAL.into()) }
        }
    }
}

pub fn capget(cx: &mut Cx, hdrp: InOut<CapHeader>, datap: Addr) -> SysResult {
    let Some((words, pid)) = words(cx, hdrp, datap.is_null())? else { return Ok(0) };
    if pid < 0 {
        return Err(Errno::EINVAL.into());
    }
    let creds = match pid {
        0 => Some(cx.task.creds()),
        INIT => None,
        pid => Some(cx.kernel().tree.task(pid)?.creds()),
    };
    if datap.is_null() {
        return Ok(0);
    }
    let mut data = [0u32; 6];
    // The virtual init has no capabilities, as /proc/1/status says.
    let sets = creds.map_or([0; 3], |creds| [creds.effective, creds.permitted, creds.inheritable]);
    for (index, word) in data.iter_mut().enumerate() {
        let set = sets.get(index % 3).copied().unwrap_or(0);
        *word = if index < 3 { set as u32 } else { (set >> 32) as u32 };
    }
    let bytes = zerocopy::IntoBytes::as_bytes(&data);
    cx.copy_out(datap.addr(), bytes.get(..words * 12).unwrap_or_default())?;
    Ok(0)
}

pub fn capset(cx: &mut Cx, hdrp: InOut<CapHeader>, datap: Addr) -> SysResult {
    let Some((words, pid)) = words(cx, hdrp, false)? else { return Ok(0) };
    if pid != 0 && pid != cx.task.tid() {
        return Err(Errno::EPERM.into());
    }
    let mut data = [0u32; 6];
    let bytes = zerocopy::IntoBytes::as_mut_bytes(&mut data);
    cx.copy_in(datap.addr(), bytes.get_mut(..words * 12).unwrap_or_default())?;
    let [e0, p0, i0, e1, p1, i1] = data.map(u64::from);
    // Those that no kernel knows are none.
    let [effective, permitted, inheritable] =
        [e0 | e1 << 32, p0 | p1 << 32, i0 | i1 << 32].map(|set| set & ALL_CAPS);
    let old = cx.task.creds();
    let all = old.inheritable | old.permitted;
    let bad = permitted & !old.permitted != 0
        || effective & !permitted != 0
        || !old.has(cap::SETPCAP) && inheritable & !all != 0
        || inheritable & !(old.inheritable | old.bounding) != 0;
    if bad {
        return Err(Errno::EPERM.into());
    }
    let ambient = old.ambient & permitted & inheritable;
    cx.task.set_creds(Creds { effective, permitted, inheritable, ambient, ..Creds::clone(&old) });
    Ok(0)
}
