//! membarrier(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use std::sync::atomic::Ordering::Relaxed;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// What the host does for a guest process.
const OWN: i32 = MEMBARRIER_CMD_GLOBAL
    | MEMBARRIER_CMD_PRIVATE_EXPEDITED
    | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
    | MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE
    | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE;

/// What concerns all registered processes, and the list of registrations.
const GLOBALLY: i32 = MEMBARRIER_CMD_GLOBAL_EXPEDITED
    | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED
    | MEMBARRIER_CMD_GET_REGISTRATIONS;
const REGISTERS: i32 =
    MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE;

/// membarrier(2): a guest process is one host process, so its barriers are the host's.
pub fn membarrier(cx: &mut Cx, cmd: MembarrierCmd, flags: u32, _cpu_id: i32) -> SysResult {
    let cmd = cmd.bits();
    match cmd {
        MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ if flags & !MEMBARRIER_CMD_FLAG_CPU == 0 => {}
        _ if flags != 0 => return Err(Errno::EINVAL.into()),
        _ => {}
    }
    let mm = cx.task.mm();
    let registered = &mm.barriers;
    match cmd {
        MEMBARRIER_CMD_QUERY => Ok(u64::from((OWN | GLOBALLY).cast_unsigned())),
        // The host's barrier for all of its threads is one for the registered too.
        MEMBARRIER_CMD_GLOBAL_EXPEDITED => {
            cx.port()?.membarrier(MEMBARRIER_CMD_GLOBAL.cast_unsigned())?;
            Ok(0)
        }
        MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED => {
            registered.fetch_or(cmd, Relaxed);
            Ok(0)
        }
        MEMBARRIER_CMD_GET_REGISTRATIONS => Ok(u64::from(registered.load(Relaxed).cast_unsigned())),
        _ if cmd & OWN != 0 && cmd & !OWN == 0 && cmd.count_ones() == 1 => {
            cx.port()?.membarrier(cmd.cast_unsigned())?;
            if cmd & REGISTERS != 0 {
                registered.fetch_or(cmd, Relaxed);
            }
            Ok(0)
        }
        _ => match MEMBARRIER_CMDS.iter().find(|(_, known)| *known == cmd) {
            Some((name, _)) => Err(Fail::gap(Errno::EINVAL, format!("membarrier {name}"))),
            None => Err(Errno::EINVAL.into()),
        },
    }
}
