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
        ARCH_GET_XCOMP_SUPP | ARCH_GET_XCOMP_PERM | ARCH_GET_XCOMP_GUEST_PERM => {
            cx.write_value(addr, &features())?;
            Ok(0)
        }
        // Permission is asked for what is not there by default: nothing of that kind is supported here.
        ARCH_REQ_XCOMP_PERM | ARCH_REQ_XCOMP_GUEST_PERM if addr <= LAST_FEATURE => {
            Err(Errno::EOPNOTSUPP.into())
        }
        // The vDSO is mapped already.
        ARCH_MAP_VDSO_32 | ARCH_MAP_VDSO_64 => Err(Errno::EEXIST.into()),
        // As a kernel without shadow stacks and address masking, and what no kernel knows (among them the codes of early CET patches that C
        // libraries try).
        _ => Err(Errno::EINVAL.into()),
    }
}

/// XFEATURE_XTILE_DATA, the last one that can be asked for.
const LAST_FEATURE: u64 = 18;
/// Parts of the extended state that Linux gives everybody: x87, SSE, AVX, AVX-512, AMX's configuration.
const ORDINARY: u32 = 0x7 | 0xe0 | 1 << 17;

/// Those of them that the processor has.
fn features() -> u64 {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    let has = if __cpuid(0).eax < 0xd { 3 } else { __cpuid_count(0xd, 0).eax };
    u64::from(has & ORDINARY)
}
