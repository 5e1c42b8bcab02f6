//! getrlimit(2), setrlimit(2), prlimit(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::Process;
use crate::task::creds::cap;
use crate::task::tree::INIT;
use crate::time::posix::watch_limit;
use std::sync::Arc;
use syscall_table::abi::getrlimit::*;
use syscall_table::errno::Errno;

/// /proc/sys/fs/nr_open.
const NR_OPEN: u64 = 1 << 20;

fn check(resource: RlimitResource) -> SysResult<u32> {
    let resource = resource.bits();
    if (resource as usize) < RLIM_NLIMITS { Ok(resource) } else { Err(Errno::EINVAL.into()) }
}

fn set(cx: &Cx, process: &Arc<Process>, resource: u32, mut new: Rlimit) -> SysResult<Rlimit> {
    let old = replace(cx, process, resource, &mut new)?;
    if resource == RLIMIT_CPU {
        watch_limit(cx.kernel(), process);
    }
    Ok(old)
}

fn replace(cx: &Cx, process: &Process, resource: u32, new: &mut Rlimit) -> SysResult<Rlimit> {
    if new.rlim_cur > new.rlim_max {
        return Err(Errno::EINVAL.into());
    }
    if resource == RLIMIT_NOFILE && new.rlim_max > NR_OPEN {
        return Err(Errno::EPERM.into());
    }
    let privileged = cx.task.creds().capable(cap::SYS_RESOURCE);
    let mut limits = process.limits.lock();
    let old = limits.get(resource);
    if new.rlim_max > old.rlim_max && !privileged {
        return Err(Errno::EPERM.into());
    }
    if resource == RLIMIT_CPU && new.rlim_cur == 0 {
        // As Linux: a limit of nothing is one second.
        new.rlim_cur = 1;
    }
    limits.set(resource, *new);
    Ok(old)
}

pub fn getrlimit(cx: &mut Cx, resource: RlimitResource, rlim: Out<Rlimit>) -> SysResult {
    let resource = check(resource)?;
    let value = cx.task.process.limits.lock().get(resource);
    cx.write_value(rlim.addr(), &value)?;
    Ok(0)
}

pub fn setrlimit(cx: &mut Cx, resource: RlimitResource, rlim: In<Rlimit>) -> SysResult {
    let new: Rlimit = cx.read_value(rlim.addr())?;
    let resource = check(resource)?;
    set(cx, &cx.task.process, resource, new)?;
    Ok(0)
}

pub fn prlimit64(
    cx: &mut Cx,
    pid: Pid,
    resource: RlimitResource,
    new_limit: In<Rlimit>,
    old_limit: Out<Rlimit>,
) -> SysResult {
    let resource = check(resource)?;
    let new: Option<Rlimit> = if new_limit.is_null() { None } else { Some(cx.read_value(new_limit.addr())?) };
    let process = target(cx, pid)?;
    let old = match new {
        Some(new) => set(cx, &process, resource, new)?,
        None => process.limits.lock().get(resource),
    };
    if !old_limit.is_null() {
        cx.write_value(old_limit.addr(), &old)?;
    }
    Ok(0)
}

fn target(cx: &Cx, pid: Pid) -> SysResult<Arc<Process>> {
    if pid.raw() == 0 || pid.raw() == cx.task.process.pid {
        return Ok(cx.task.process.clone());
    }
    if pid.raw() == INIT && !cx.task.creds().capable(cap::SYS_RESOURCE) {
        return Err(Errno::EPERM.into());
    }
    let task = cx.kernel().tree.task(pid.raw())?;
    let (own, other) = (cx.task.creds(), task.creds());
    let same = [other.uid, other.euid, other.suid].iter().all(|id| *id == own.uid)
        && [other.gid, other.egid, other.sgid].iter().all(|id| *id == own.gid);
    if !same && !own.capable(cap::SYS_RESOURCE) {
        return Err(Errno::EPERM.into());
    }
    Ok(task.process.clone())
}
