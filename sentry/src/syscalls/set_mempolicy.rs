//! set_mempolicy(2), get_mempolicy(2), mbind(2): the machine has one memory node, so every policy that
//! is possible means the same.

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::mm::{PAGE, round_up};
use std::sync::atomic::Ordering;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Bits that a mask may have: a page of them (as Linux).
const MAX_BITS: u64 = PAGE * 8;

/// Nodes that Linux has names for.
const NODES: u64 = 1024;

/// Which nodes a mask has.
#[derive(Default)]
struct Nodes {
    any: bool,
    /// The one that exists.
    first: bool,
}

/// Reads a node mask. EINVAL when it has one that cannot be.
fn nodes(cx: &mut Cx, mask: u64, maxnode: u64) -> SysResult<Nodes> {
    // The count is one more than the bits.
    let bits = maxnode.wrapping_sub(1);
    if bits == 0 || maxnode == 0 || mask == 0 {
        return Ok(Nodes::default());
    }
    if bits > MAX_BITS {
        return Err(Errno::EINVAL.into());
    }
    let mut bytes = vec![0u8; usize::try_from(bits.div_ceil(64).saturating_mul(8)).unwrap_or(0)];
    cx.copy_in(mask, &mut bytes)?;
    let mut found = Nodes::default();
    for (at, byte) in (0u64..).zip(&bytes) {
        for bit in 0..8 {
            let node = at.saturating_mul(8).saturating_add(bit);
            if node < bits && byte >> bit & 1 != 0 {
                if node >= NODES {
                    return Err(Errno::EINVAL.into());
                }
                found.any = true;
                found.first |= node == 0;
            }
        }
    }
    Ok(found)
}

/// Checks a policy with its nodes; the policy that results.
fn policy(cx: &mut Cx, mode: i32, mask: u64, maxnode: u64) -> SysResult<i32> {
    const FLAGS: i32 = MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES | MPOL_F_NUMA_BALANCING;
    let (flags, mode) = (mode & FLAGS, mode & !FLAGS);
    if !(MPOL_DEFAULT..=MPOL_WEIGHTED_INTERLEAVE).contains(&mode)
        || flags & (MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES)
            == MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES
    {
        return Err(Errno::EINVAL.into());
    }
    if flags & MPOL_F_NUMA_BALANCING != 0 && mode != MPOL_BIND && mode != MPOL_PREFERRED_MANY {
        return Err(Errno::EINVAL.into());
    }
    let Nodes { any, first } = nodes(cx, mask, maxnode)?;
    match mode {
        MPOL_DEFAULT | MPOL_LOCAL if any => Err(Errno::EINVAL.into()),
        MPOL_DEFAULT => Ok(MPOL_DEFAULT),
        MPOL_LOCAL if flags & (MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES) != 0 => Err(Errno::EINVAL.into()),
        MPOL_PREFERRED if !any && flags & (MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES) != 0 => {
            Err(Errno::EINVAL.into())
        }
        // No node preferred: the local one.
        MPOL_PREFERRED if !any => Ok(MPOL_LOCAL),
        MPOL_LOCAL => Ok(MPOL_LOCAL),
        // Relative ones are counted round and round among those that exist.
        _ if !(first || any && flags & MPOL_F_RELATIVE_NODES != 0) => Err(Errno::EINVAL.into()),
        _ => Ok(mode | flags),
    }
}

/// set_mempolicy(2)
pub fn set_mempolicy(cx: &mut Cx, mode: Mpol, nodemask: Addr, maxnode: u64) -> SysResult {
    let policy = policy(cx, mode.bits(), nodemask.addr(), maxnode)?;
    cx.task.mempolicy.store(policy, Ordering::Relaxed);
    Ok(0)
}

/// get_mempolicy(2)
pub fn get_mempolicy(
    cx: &mut Cx,
    mode: Out<i32>,
    nodemask: Addr,
    maxnode: u64,
    addr: Addr,
    flags: u64,
) -> SysResult {
    let allowed = flags == u64::from(MPOL_F_MEMS_ALLOWED);
    if flags & !u64::from(MPOL_F_NODE | MPOL_F_ADDR | MPOL_F_MEMS_ALLOWED) != 0
        || flags & u64::from(MPOL_F_MEMS_ALLOWED) != 0 && !allowed
        || !nodemask.is_null() && maxnode < 1
    {
        return Err(Errno::EINVAL.into());
    }
    let of_address = flags & u64::from(MPOL_F_ADDR) != 0;
    if of_address && cx.task.mm().layout.lock().find(addr.addr()).is_none() {
        return Err(Errno::EFAULT.into());
    }
    if !of_address && !allowed && !addr.is_null() {
        return Err(Errno::EINVAL.into());
    }
    // A range's own policy (mbind) is not kept: the default says the same on one node.
    let kept = if of_address || allowed { MPOL_DEFAULT } else { cx.task.mempolicy.load(Ordering::Relaxed) };
    let by_node = flags & u64::from(MPOL_F_NODE) != 0;
    if by_node && !of_address && kept & 0xf != MPOL_INTERLEAVE && kept & 0xf != MPOL_WEIGHTED_INTERLEAVE {
        return Err(Errno::EINVAL.into());
    }
    if !mode.is_null() {
        // The node that is asked for is always the first.
        cx.write_value(mode.addr(), &if by_node { 0 } else { kept })?;
    }
    if !nodemask.is_null() {
        let bits = maxnode.saturating_sub(1).min(MAX_BITS);
        let mut bytes = vec![0u8; usize::try_from(bits.div_ceil(64).saturating_mul(8)).unwrap_or(0)];
        let named = allowed || !matches!(kept & 0xf, MPOL_DEFAULT | MPOL_LOCAL);
        if let Some(first) = bytes.first_mut().filter(|_| named) {
            *first = 1;
        }
        cx.copy_out(nodemask.addr(), &bytes)?;
    }
    Ok(0)
}

/// mbind(2): checked, and nothing to be done.
pub fn mbind(
    cx: &mut Cx,
    addr: Addr,
    len: u64,
    mode: Mpol,
    nodemask: Addr,
    maxnode: u64,
    flags: MpolMoveFlags,
) -> SysResult {
    if flags.unknown(MPOL_MF_STRICT | MPOL_MF_MOVE | MPOL_MF_MOVE_ALL) != 0 {
        return Err(Errno::EINVAL.into());
    }
    if flags.has(MPOL_MF_MOVE_ALL) && !cx.task.creds().capable(crate::task::creds::cap::SYS_NICE) {
        return Err(Errno::EPERM.into());
    }
    policy(cx, mode.bits(), nodemask.addr(), maxnode)?;
    let start = addr.addr();
    let len = round_up(len).ok_or(Errno::EINVAL)?;
    let end = start.checked_add(len).filter(|_| start & (PAGE - 1) == 0).ok_or(Errno::EINVAL)?;
    let upto = cx.task.mm().layout.lock().run_end(start, end);
    if upto < end { Err(Errno::EFAULT.into()) } else { Ok(0) }
}
