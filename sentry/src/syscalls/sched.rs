//! sched_*(2), getpriority(2), setpriority(2), ioprio_*(2), getcpu(2): remembered and answered; the host's scheduler
//! does as it likes.

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::task::Task;
use crate::task::creds::cap;
use std::sync::Arc;
use syscall_table::abi::getrlimit::*;
use syscall_table::abi::sched::*;
use syscall_table::errno::Errno;
use zerocopy::{FromZeros, IntoBytes};

fn target(cx: &Cx, pid: Pid) -> SysResult<Arc<Task>> {
    match pid.raw() {
        0 => Ok(cx.task.clone()),
        pid if pid < 0 => Err(Errno::EINVAL.into()),
        pid => cx.kernel().tree.task(pid),
    }
}

fn may_change(cx: &Cx, task: &Task) -> SysResult<()> {
    let (own, other) = (cx.task.creds(), task.creds());
    let ok = own.euid == other.uid || own.euid == other.euid || own.capable(cap::SYS_NICE);
    if ok { Ok(()) } else { Err(Errno::EPERM.into()) }
}

/// Lowest and highest static priority of a policy.
fn priorities(policy: i32) -> SysResult<(i32, i32)> {
    match policy {
        SCHED_FIFO | SCHED_RR => Ok((1, 99)),
        SCHED_NORMAL | SCHED_BATCH | SCHED_IDLE | SCHED_DEADLINE | SCHED_EXT => Ok((0, 0)),
        _ => Err(Errno::EINVAL.into()),
    }
}

pub fn sched_yield(_cx: &mut Cx) -> SysResult {
    Ok(0)
}

pub fn sched_get_priority_max(_cx: &mut Cx, policy: SchedPolicy) -> SysResult {
    Ok(priorities(policy.bits())?.1 as u64)
}

pub fn sched_get_priority_min(_cx: &mut Cx, policy: SchedPolicy) -> SysResult {
    Ok(priorities(policy.bits())?.0 as u64)
}

pub fn sched_getscheduler(cx: &mut Cx, pid: Pid) -> SysResult {
    let task = target(cx, pid)?;
    let sched = *task.sched.lock();
    Ok((sched.policy | if sched.reset_on_fork { SCHED_RESET_ON_FORK } else { 0 }) as u64)
}

pub fn sched_getparam(cx: &mut Cx, pid: Pid, param: Out<SchedParam>) -> SysResult {
    if param.is_null() {
        return Err(Errno::EINVAL.into());
    }
    let task = target(cx, pid)?;
    let sched_priority = task.sched.lock().priority;
    cx.write_value(param.addr(), &SchedParam { sched_priority })?;
    Ok(0)
}

fn set_policy(cx: &Cx, task: &Arc<Task>, policy: Option<i32>, priority: i32, reset: bool) -> SysResult {
    may_change(cx, task)?;
    let old = *task.sched.lock();
    let policy = policy.unwrap_or(old.policy);
    if policy == SCHED_DEADLINE || policy == SCHED_EXT {
        return Err(Fail::gap(Errno::EINVAL, "SCHED_DEADLINE and SCHED_EXT"));
    }
    let (low, high) = priorities(policy)?;
    if !(low..=high).contains(&priority) {
        return Err(Errno::EINVAL.into());
    }
    let real_time = matches!(policy, SCHED_FIFO | SCHED_RR);
    let limit = task.process.limit(RLIMIT_RTPRIO);
    if real_time && !cx.task.creds().capable(cap::SYS_NICE) && priority as u64 > limit {
        return Err(Errno::EPERM.into());
    }
    let mut sched = task.sched.lock();
    sched.policy = policy;
    sched.priority = priority;
    sched.reset_on_fork = reset;
    Ok(0)
}

pub fn sched_setparam(cx: &mut Cx, pid: Pid, param: In<SchedParam>) -> SysResult {
    if param.is_null() {
        return Err(Errno::EINVAL.into());
    }
    let param: SchedParam = cx.read_value(param.addr())?;
    let task = target(cx, pid)?;
    let reset = task.sched.lock().reset_on_fork;
    set_policy(cx, &task, None, param.sched_priority, reset)
}

pub fn sched_setscheduler(cx: &mut Cx, pid: Pid, policy: SchedPolicy, param: In<SchedParam>) -> SysResult {
    if param.is_null() || policy.bits() < 0 {
        return Err(Errno::EINVAL.into());
    }
    let param: SchedParam = cx.read_value(param.addr())?;
    let task = target(cx, pid)?;
    let reset = policy.has(SCHED_RESET_ON_FORK);
    set_policy(cx, &task, Some(policy.unknown(SCHED_RESET_ON_FORK)), param.sched_priority, reset)
}

pub fn sched_rr_get_interval(cx: &mut Cx, pid: Pid, tp: Out<Timespec>) -> SysResult {
    let task = target(cx, pid)?;
    let policy = task.sched.lock().policy;
    let tv_nsec = if policy == SCHED_FIFO { 0 } else { 100_000_000 };
    cx.write_value(tp.addr(), &Timespec { tv_sec: 0, tv_nsec })?;
    Ok(0)
}

/// sched_setattr's flags that are kept or need nothing done: RESET_ON_FORK, KEEP_POLICY, KEEP_PARAMS.
const ATTR_FLAGS: u64 = 0x1 | 0x8 | 0x10;
const ATTR_SIZE_VER0: usize = 48;

pub fn sched_setattr(cx: &mut Cx, pid: Pid, attr: Addr, flags: NoFlags) -> SysResult {
    if attr.is_null() || flags.bits() != 0 {
        return Err(Errno::EINVAL.into());
    }
    let size: u32 = cx.read_value(attr.addr())?;
    let size = if size == 0 { ATTR_SIZE_VER0 } else { size as usize };
    if !(ATTR_SIZE_VER0..=4096).contains(&size) {
        return Err(Errno::E2BIG.into());
    }
    let mut new = SchedAttr::new_zeroed();
    let known = size.min(size_of::<SchedAttr>());
    cx.copy_in(attr.addr(), new.as_mut_bytes().get_mut(..known).unwrap_or_default())?;
    if new.sched_flags & !ATTR_FLAGS != 0 {
        return Err(Fail::gap(Errno::EINVAL, "sched_setattr flags"));
    }
    let task = target(cx, pid)?;
    let old = *task.sched.lock();
    let policy = if new.sched_flags & 0x8 != 0 { None } else { i32::try_from(new.sched_policy).ok() };
    let priority = if new.sched_flags & 0x10 != 0 {
        old.priority
    } else {
        i32::try_from(new.sched_priority).unwrap_or(-1)
    };
    set_policy(cx, &task, policy, priority, new.sched_flags & 1 != 0)?;
    if new.sched_flags & 0x10 == 0 && matches!(policy.unwrap_or(old.policy), SCHED_NORMAL | SCHED_BATCH) {
        set_nice(cx, &task, new.sched_nice)?;
    }
    Ok(0)
}

pub fn sched_getattr(cx: &mut Cx, pid: Pid, attr: OutBuf, size: u32, flags: NoFlags) -> SysResult {
    let size = size as usize;
    if attr.is_null() || flags.bits() != 0 || !(ATTR_SIZE_VER0..=4096).contains(&size) {
        return Err(Errno::EINVAL.into());
    }
    let task = target(cx, pid)?;
    let sched = *task.sched.lock();
    let known = size.min(size_of::<SchedAttr>());
    let mut value = SchedAttr::new_zeroed();
    value.size = known as u32;
    value.sched_policy = sched.policy as u32;
    value.sched_flags = u64::from(sched.reset_on_fork);
    value.sched_nice = sched.nice;
    value.sched_priority = sched.priority as u32;
    cx.copy_out(attr.addr(), value.as_bytes().get(..known).unwrap_or_default())?;
    Ok(0)
}

/// Processors that the guest sees, as a mask (64 at most).
fn all_cpus(cx: &Cx) -> u64 {
    let cpus = cx.kernel().config.cpus.clamp(1, 64);
    u64::MAX.checked_shr(64 - cpus as u32).unwrap_or(u64::MAX)
}

pub fn sched_getaffinity(cx: &mut Cx, pid: Pid, cpusetsize: u32, mask: Addr) -> SysResult {
    if cpusetsize < 8 || !cpusetsize.is_multiple_of(8) {
        return Err(Errno::EINVAL.into());
    }
    let task = target(cx, pid)?;
    let all = all_cpus(cx);
    let set = task.sched.lock().affinity.map_or(all, |set| set & all);
    cx.write_value(mask.addr(), &set)?;
    Ok(8)
}

pub fn sched_setaffinity(cx: &mut Cx, pid: Pid, cpusetsize: u32, mask: Addr) -> SysResult {
    let mut bytes = [0u8; 8];
    let given = (cpusetsize as usize).min(8);
    cx.copy_in(mask.addr(), bytes.get_mut(..given).unwrap_or_default())?;
    let task = target(cx, pid)?;
    may_change(cx, &task)?;
    let set = u64::from_le_bytes(bytes) & all_cpus(cx);
    if set == 0 {
        return Err(Errno::EINVAL.into());
    }
    task.sched.lock().affinity = Some(set);
    Ok(0)
}

fn set_nice(cx: &Cx, task: &Arc<Task>, nice: i32) -> SysResult<()> {
    let nice = nice.clamp(-20, 19);
    may_change(cx, task)?;
    let limit = task.process.limit(RLIMIT_NICE);
    // Credentials are behind a lock that comes before this one.
    let capable = cx.task.creds().capable(cap::SYS_NICE);
    let mut sched = task.sched.lock();
    // A nice value as RLIMIT_NICE counts it: 20 - nice.
    let allowed = nice >= sched.nice || (20 - nice) as u64 <= limit;
    if !allowed && !capable {
        return Err(Errno::EACCES.into());
    }
    sched.nice = nice;
    Ok(())
}

fn tasks(cx: &Cx, which: PriorityWhich, who: Pid) -> SysResult<Vec<Arc<Task>>> {
    let tree = &cx.kernel().tree;
    let found: Vec<Arc<Task>> = match which.bits() {
        PRIO_PROCESS if who.raw() == 0 => vec![cx.task.clone()],
        PRIO_PROCESS => tree.task(who.raw()).into_iter().collect(),
        PRIO_PGRP => {
            let pgid = if who.raw() == 0 { tree.pgid(cx.task.process.pid) } else { who.raw() };
            let members: Vec<_> = tree.lock().group(pgid).map(|n| n.process.clone()).collect();
            members.iter().flat_map(|p| p.threads()).collect()
        }
        PRIO_USER => {
            let uid = if who.raw() == 0 { cx.task.creds().uid } else { who.raw() as u32 };
            let all: Vec<_> = tree.lock().tasks.values().cloned().collect();
            all.into_iter().filter(|t| t.creds().uid == uid).collect()
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    if found.is_empty() { Err(Errno::ESRCH.into()) } else { Ok(found) }
}

pub fn getpriority(cx: &mut Cx, which: PriorityWhich, who: Pid) -> SysResult {
    let best = tasks(cx, which, who)?.iter().map(|t| t.sched.lock().nice).min();
    Ok((20 - best.unwrap_or(0)) as u64)
}

pub fn setpriority(cx: &mut Cx, which: PriorityWhich, who: Pid, prio: i32) -> SysResult {
    for task in tasks(cx, which, who)? {
        set_nice(cx, &task, prio)?;
    }
    Ok(0)
}

const IOPRIO_WHO_PROCESS: i32 = 1;

pub fn ioprio_get(cx: &mut Cx, which: IoprioWhich, who: Pid) -> SysResult {
    if which.bits() != IOPRIO_WHO_PROCESS {
        return Err(Fail::gap(Errno::EINVAL, "ioprio_get of groups and users"));
    }
    let task = target(cx, who)?;
    let value = task.sched.lock().ioprio;
    Ok(value as u64)
}

pub fn ioprio_set(cx: &mut Cx, which: IoprioWhich, who: Pid, ioprio: i32) -> SysResult {
    if which.bits() != IOPRIO_WHO_PROCESS {
        return Err(Fail::gap(Errno::EINVAL, "ioprio_set of groups and users"));
    }
    let task = target(cx, who)?;
    may_change(cx, &task)?;
    // Classes: none, real-time, best-effort, idle.
    if !(0..=3).contains(&(ioprio >> 13)) {
        return Err(Errno::EINVAL.into());
    }
    task.sched.lock().ioprio = ioprio;
    Ok(0)
}

pub fn getcpu(cx: &mut Cx, cpu: Out<u32>, node: Out<u32>, _tcache: Addr) -> SysResult {
    if !cpu.is_null() {
        cx.write_value(cpu.addr(), &0u32)?;
    }
    if !node.is_null() {
        cx.write_value(node.addr(), &0u32)?;
    }
    Ok(0)
}
