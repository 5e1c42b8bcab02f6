//! arch_prctl(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::abi::prctl::*;
use syscall_table::errno::Errno;

/// One past the highest user address.
const TASK_END: u64 = 0x7fff_ffff_f000;

pub fn arch_prctl(cx: &mut Cx, op: ArchPrctlOption, addr: u64) -> SysResult {
    match op.bits() {
        ARCH_SET_FS | ARCH_SET_GS => {
            if addr >= TASK_END {
                return Err(Errno::EPERM.into());
            }
            let port = cx.port()?;
            let mut regs = port.regs()?;
            if op.bits() == ARCH_SET_FS {
                regs.fs_base = addr;
            } else {
                regs.gs_base = addr;
            }
            port.set_regs(&regs)?;
            Ok(0)
        }
        ARCH_GET_FS | ARCH_GET_GS => {
            let regs = cx.port()?.regs()?;
            let base = if op.bits() == ARCH_GET_FS { regs.fs_base } else { regs.gs_base };
            cx.write_value(addr, &base)?;
            Ok(0)
        }
        ARCH_GET_CPUID => Ok(1),
        // cpuid cannot be made to fault here, as on processors without that feature.
        ARCH_SET_CPUID => Err(Errno::ENODEV.into()),
        ARCH_GET_UNTAG_MASK => {
            cx.write_value(addr, &u64::MAX)?;
            Ok(0)
        }
        ARCH_GET_MAX_TAG_BITS => {
            cx.write_value(addr, &0u64)?;
            Ok(0)
        }
        ARCH_ENABLE_TAGGED_ADDR => Err(Errno::ENODEV.into()),
        // As a kernel without shadow stacks, and what no kernel knows (among them the codes of early CET patches that C
        // libraries try).
        _ => Err(Errno::EINVAL.into()),
    }
}
