//! sched_*(2), getcpu(2): remembered and answered; the host's scheduler does as it likes.

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::cap;
use crate::task::sched::Subject;
use syscall_table::abi::getrlimit::*;
use syscall_table::abi::sched::*;
use syscall_table::errno::Errno;
use zerocopy::{FromZeros, IntoBytes};

/// Most calls find a negative pid absurd, those of processors find nobody.
fn target<'a>(cx: &Cx<'a>, pid: Pid) -> SysResult<Subject<'a>> {
    if pid.raw() < 0 { Err(Errno::EINVAL.into()) } else { Subject::find(cx, pid.raw()) }
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
    let sched = *target(cx, pid)?.sched().lock();
    Ok((sched.policy | if sched.reset_on_fork { SCHED_RESET_ON_FORK } else { 0 }) as u64)
}

pub fn sched_getparam(cx: &mut Cx, pid: Pid, param: Out<SchedParam>) -> SysResult {
    if param.is_null() {
        return Err(Errno::EINVAL.into());
    }
    let sched_priority = target(cx, pid)?.sched().lock().priority;
    cx.write_value(param.addr(), &SchedParam { sched_priority })?;
    Ok(0)
}

/// What is asked for; nothing: as it is.
#[derive(Default)]
struct Wish {
    policy: Option<i32>,
    priority: i32,
    nice: Option<i32>,
    reset: Option<bool>,
    /// SCHED_FLAG_KEEP_PARAMS: all is checked, nothing but `reset` is set.
    keep: bool,
    /// Of SCHED_DEADLINE.
    deadline: [u64; 3],
    deadline_flags: u64,
    slice: Option<u64>,
}

/// The least and the longest period, in nanoseconds.
const PERIODS: std::ops::RangeInclusive<u64> = 100_000..=(1 << 22) * 1000;
/// The least runtime (DL_SCALE).
const LEAST_RUNTIME: u64 = 1 << 10;

/// Whether these are times of SCHED_DEADLINE (__checkparam_dl); with the period that 0 stands for.
fn deadline([runtime, deadline, period]: [u64; 3]) -> SysResult<[u64; 3]> {
    let whole = if period == 0 { deadline } else { period };
    let good = deadline != 0
        && runtime >= LEAST_RUNTIME
        && (deadline | period) >> 63 == 0
        && whole >= deadline
        && deadline >= runtime
        && PERIODS.contains(&whole);
    if good { Ok([runtime, deadline, whole]) } else { Err(Errno::EINVAL.into()) }
}

fn set_policy(cx: &Cx, subject: &Subject, wish: &Wish) -> SysResult {
    let old = *subject.sched().lock();
    let policy = wish.policy.unwrap_or(old.policy);
    let reset = wish.reset.unwrap_or(old.reset_on_fork);
    if policy == SCHED_EXT {
        // As a kernel without CONFIG_SCHED_CLASS_EXT.
        return Err(Errno::EINVAL.into());
    }
    let times = match policy {
        SCHED_DEADLINE if !wish.keep => deadline(wish.deadline)?,
        SCHED_DEADLINE => old.deadline,
        _ => [0; 3],
    };
    let (low, high) = priorities(policy)?;
    if !(low..=high).contains(&wish.priority) {
        return Err(Errno::EINVAL.into());
    }
    let real_time = matches!(policy, SCHED_FIFO | SCHED_RR);
    let nice = wish.nice.filter(|_| matches!(policy, SCHED_NORMAL | SCHED_BATCH)).unwrap_or(old.nice);
    let limit = subject.limit(RLIMIT_RTPRIO);
    let rises = real_time
        && (policy != old.policy && limit == 0
            || wish.priority > old.priority && wish.priority as u64 > limit)
        || nice < old.nice && !subject.may_have_nice(nice)
        || old.policy == SCHED_IDLE && policy != SCHED_IDLE && !subject.may_have_nice(old.nice)
        || policy == SCHED_DEADLINE
        || old.reset_on_fork && !reset;
    let creds = cx.task.creds();
    if (rises || !subject.yields_to(&creds)) && !creds.capable(cap::SYS_NICE) {
        return Err(Errno::EPERM.into());
    }
    let mut sched = subject.sched().lock();
    sched.reset_on_fork = reset;
    if !wish.keep {
        sched.policy = policy;
        sched.priority = wish.priority;
        sched.nice = nice;
        sched.deadline = times;
        sched.deadline_flags = if policy == SCHED_DEADLINE { wish.deadline_flags } else { 0 };
        if let Some(slice) = wish.slice.filter(|_| matches!(policy, SCHED_NORMAL | SCHED_BATCH)) {
            sched.slice = slice;
        }
    }
    Ok(0)
}

pub fn sched_setparam(cx: &mut Cx, pid: Pid, param: In<SchedParam>) -> SysResult {
    if param.is_null() || pid.raw() < 0 {
        return Err(Errno::EINVAL.into());
    }
    let param: SchedParam = cx.read_value(param.addr())?;
    let wish = Wish { priority: param.sched_priority, ..Wish::default() };
    set_policy(cx, &target(cx, pid)?, &wish)
}

pub fn sched_setscheduler(cx: &mut Cx, pid: Pid, policy: SchedPolicy, param: In<SchedParam>) -> SysResult {
    if param.is_null() || policy.bits() < 0 || pid.raw() < 0 {
        return Err(Errno::EINVAL.into());
    }
    let param: SchedParam = cx.read_value(param.addr())?;
    let wish = Wish {
        policy: Some(policy.unknown(SCHED_RESET_ON_FORK)),
        priority: param.sched_priority,
        nice: None,
        reset: Some(policy.has(SCHED_RESET_ON_FORK)),
        ..Wish::default()
    };
    set_policy(cx, &target(cx, pid)?, &wish)
}

pub fn sched_rr_get_interval(cx: &mut Cx, pid: Pid, tp: Out<Timespec>) -> SysResult {
    let policy = target(cx, pid)?.sched().lock().policy;
    let tv_nsec = if policy == SCHED_FIFO { 0 } else { 100_000_000 };
    cx.write_value(tp.addr(), &Timespec { tv_sec: 0, tv_nsec })?;
    Ok(0)
}

/// The flags of sched_setattr that are known.
const ATTR_FLAGS: u64 = RESET_ON_FORK | DEADLINE_FLAGS | KEEP_POLICY | KEEP_PARAMS | CLAMPS;
const RESET_ON_FORK: u64 = 0x1;
/// SCHED_FLAG_RECLAIM, SCHED_FLAG_DL_OVERRUN.
const DEADLINE_FLAGS: u64 = 0x6;
/// SCHED_FLAG_UTIL_CLAMP_MIN, SCHED_FLAG_UTIL_CLAMP_MAX.
const CLAMPS: u64 = 0x60;
/// Slices that can be asked for, in nanoseconds.
const SLICES: std::ops::RangeInclusive<u64> = 100_000..=100_000_000;
const KEEP_POLICY: u64 = 0x8;
const KEEP_PARAMS: u64 = 0x10;
const ATTR_SIZE_VER0: usize = 48;

pub fn sched_setattr(cx: &mut Cx, pid: Pid, attr: Addr, flags: NoFlags) -> SysResult {
    if attr.is_null() || flags.bits() != 0 || pid.raw() < 0 {
        return Err(Errno::EINVAL.into());
    }
    let size: u32 = cx.read_value(attr.addr())?;
    let size = if size == 0 { ATTR_SIZE_VER0 } else { size as usize };
    let known = size.min(size_of::<SchedAttr>());
    let mut given = vec![0; if size <= 4096 { size } else { 0 }];
    cx.copy_in(attr.addr(), &mut given)?;
    let newer = given.get(known..).unwrap_or_default().iter().any(|byte| *byte != 0);
    if !(ATTR_SIZE_VER0..=4096).contains(&size) || newer {
        // How much this kernel knows.
        cx.write_value(attr.addr(), &(size_of::<SchedAttr>() as u32))?;
        return Err(Errno::E2BIG.into());
    }
    let mut new = SchedAttr::new_zeroed();
    for (to, from) in new.as_mut_bytes().iter_mut().zip(&given) {
        *to = *from;
    }
    if new.sched_flags & !ATTR_FLAGS != 0 {
        return Err(Errno::EINVAL.into());
    }
    if new.sched_flags & CLAMPS != 0 {
        // As a kernel without CONFIG_UCLAMP_TASK.
        return Err(Errno::EOPNOTSUPP.into());
    }
    let policy = i32::try_from(new.sched_policy).map_err(|_| Errno::EINVAL)?;
    let subject = target(cx, pid)?;
    let keep = |flag| new.sched_flags & flag != 0;
    let old = *subject.sched().lock();
    let wish = Wish {
        policy: (!keep(KEEP_POLICY)).then_some(policy),
        priority: if keep(KEEP_PARAMS) {
            old.priority
        } else {
            i32::try_from(new.sched_priority).unwrap_or(-1)
        },
        nice: (!keep(KEEP_PARAMS)).then_some(new.sched_nice.clamp(-20, 19)),
        reset: (!keep(KEEP_POLICY)).then_some(keep(RESET_ON_FORK)),
        keep: keep(KEEP_PARAMS),
        deadline: [new.sched_runtime, new.sched_deadline, new.sched_period],
        deadline_flags: new.sched_flags & DEADLINE_FLAGS,
        slice: Some(match new.sched_runtime {
            0 => 0,
            wish => wish.clamp(*SLICES.start(), *SLICES.end()),
        }),
    };
    set_policy(cx, &subject, &wish)
}

pub fn sched_getattr(cx: &mut Cx, pid: Pid, attr: OutBuf, size: u32, flags: NoFlags) -> SysResult {
    let size = size as usize;
    if attr.is_null() || flags.bits() != 0 || pid.raw() < 0 || !(ATTR_SIZE_VER0..=4096).contains(&size) {
        return Err(Errno::EINVAL.into());
    }
    let sched = *target(cx, pid)?.sched().lock();
    let known = size.min(size_of::<SchedAttr>());
    let mut value = SchedAttr::new_zeroed();
    value.size = known as u32;
    value.sched_policy = sched.policy as u32;
    value.sched_flags = u64::from(sched.reset_on_fork) | sched.deadline_flags;
    match sched.policy {
        SCHED_DEADLINE => {
            [value.sched_runtime, value.sched_deadline, value.sched_period] = sched.deadline;
        }
        SCHED_FIFO | SCHED_RR => {}
        _ => value.sched_runtime = if sched.slice == 0 { base_slice(cx) } else { sched.slice },
    }
    value.sched_nice = sched.nice;
    value.sched_priority = sched.priority as u32;
    let mut bytes = value.as_bytes().get(..known).unwrap_or_default().to_vec();
    bytes.resize(size, 0);
    cx.copy_out(attr.addr(), &bytes)?;
    Ok(0)
}

/// The usual slice: longer with more processors (get_update_sysctl_factor), up to eight.
fn base_slice(cx: &Cx) -> u64 {
    let cpus = cx.kernel().config.cpus.clamp(1, 8);
    700_000 * u64::from(1 + cpus.ilog2())
}

/// Processors that the guest sees, as a mask (64 at most).
fn all_cpus(cx: &Cx) -> u64 {
    let cpus = cx.kernel().config.cpus.clamp(1, 64);
    u64::MAX.checked_shr(64 - cpus as u32).unwrap_or(u64::MAX)
}

pub fn sched_getaffinity(cx: &mut Cx, pid: Pid, cpusetsize: u32, mask: Out<u64>) -> SysResult {
    if cpusetsize < 8 || !cpusetsize.is_multiple_of(8) {
        return Err(Errno::EINVAL.into());
    }
    let subject = Subject::find(cx, pid.raw())?;
    let all = all_cpus(cx);
    let set = subject.sched().lock().affinity.map_or(all, |set| set & all);
    cx.write_value(mask.addr(), &set)?;
    Ok(8)
}

pub fn sched_setaffinity(cx: &mut Cx, pid: Pid, cpusetsize: u32, mask: Addr) -> SysResult {
    let mut bytes = [0u8; 8];
    let given = (cpusetsize as usize).min(8);
    cx.copy_in(mask.addr(), bytes.get_mut(..given).unwrap_or_default())?;
    let subject = Subject::find(cx, pid.raw())?;
    subject.check_owner(cx)?;
    let set = u64::from_le_bytes(bytes) & all_cpus(cx);
    if set == 0 {
        return Err(Errno::EINVAL.into());
    }
    subject.sched().lock().affinity = Some(set);
    if let Subject::Task(task) = &subject {
        crate::task::sched::place(task);
    }
    Ok(0)
}

pub fn getcpu(cx: &mut Cx, cpu: Out<u32>, node: Out<u32>, _tcache: Addr) -> SysResult {
    if !cpu.is_null() {
        // One that it may be on; the vDSO knows the true one.
        let set = cx.task.sched.lock().affinity.unwrap_or(1);
        cx.write_value(cpu.addr(), &set.trailing_zeros())?;
    }
    if !node.is_null() {
        cx.write_value(node.addr(), &0u32)?;
    }
    Ok(0)
}
