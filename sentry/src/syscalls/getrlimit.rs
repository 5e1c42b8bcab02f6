//! getrlimit(2), setrlimit(2), prlimit(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::sync::Lock;
use crate::task::Process;
use crate::task::creds::cap;
use crate::task::limits::{Limits, NR_OPEN};
use crate::task::tree::INIT;
use crate::time::posix::watch_limit;
use std::sync::Arc;
use syscall_table::abi::getrlimit::*;
use syscall_table::errno::Errno;

fn check(resource: RlimitResource) -> SysResult<u32> {
    let resource = resource.bits();
    if (resource as usize) < RLIM_NLIMITS { Ok(resource) } else { Err(Errno::EINVAL.into()) }
}

/// Replaces a limit, if there is something new; what it was.
fn exchange(cx: &Cx, limits: &Lock<Limits>, resource: u32, new: Option<Rlimit>) -> SysResult<Rlimit> {
    let Some(mut new) = new else { return Ok(limits.lock().get(resource)) };
    if new.rlim_cur > new.rlim_max {
        return Err(Errno::EINVAL.into());
    }
    if resource == RLIMIT_NOFILE && new.rlim_max > NR_OPEN {
        return Err(Errno::EPERM.into());
    }
    let privileged = cx.task.creds().capable(cap::SYS_RESOURCE);
    let mut limits = limits.lock();
    let old = limits.get(resource);
    if new.rlim_max > old.rlim_max && !privileged {
        return Err(Errno::EPERM.into());
    }
    if resource == RLIMIT_CPU && new.rlim_cur == 0 {
        // As Linux: a limit of nothing is one second.
        new.rlim_cur = 1;
    }
    limits.set(resource, new);
    Ok(old)
}

fn set(cx: &Cx, process: &Arc<Process>, resource: u32, new: Option<Rlimit>) -> SysResult<Rlimit> {
    let old = exchange(cx, &process.limits, resource, new)?;
    if resource == RLIMIT_CPU && new.is_some() {
        watch_limit(cx.kernel(), process);
    }
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
    set(cx, &cx.task.process, resource, Some(new))?;
    Ok(0)
}

pub fn prlimit64(
    cx: &mut Cx,
    pid: Pid,
    resource: RlimitResource,
    new_limit: In<Rlimit>,
    old_limit: Out<Rlimit>,
) -> SysResult {
    let new: Option<Rlimit> = if new_limit.is_null() { None } else { Some(cx.read_value(new_limit.addr())?) };
    let old = match target(cx, pid)? {
        Some(process) => set(cx, &process, check(resource)?, new)?,
        None => exchange(cx, &cx.kernel().tree.init.limits, check(resource)?, new)?,
    };
    if !old_limit.is_null() {
        cx.write_value(old_limit.addr(), &old)?;
    }
    Ok(0)
}

/// A process whose limits the caller may see and set; `None` is the virtual init.
fn target(cx: &Cx, pid: Pid) -> SysResult<Option<Arc<Process>>> {
    if pid.raw() == 0 || pid.raw() == cx.task.process.pid {
        return Ok(Some(cx.task.process.clone()));
    }
    let own = cx.task.creds();
    if pid.raw() == INIT {
        let may = own.capable(cap::SYS_RESOURCE) || own.uid == 0 && own.gid == 0;
        return if may { Ok(None) } else { Err(Errno::EPERM.into()) };
    }
    let task = cx.kernel().tree.task(pid.raw())?;
    let other = task.creds();
    let same = [other.uid, other.euid, other.suid].iter().all(|id| *id == own.uid)
        && [other.gid, other.egid, other.sgid].iter().all(|id| *id == own.gid);
    if !same && !own.capable(cap::SYS_RESOURCE) {
        return Err(Errno::EPERM.into());
    }
    Ok(Some(task.process.clone()))
}
