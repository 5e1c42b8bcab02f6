//! setpgid(2), getpgid(2), getpgrp(2), setsid(2), getsid(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::tree::INIT;
use std::sync::atomic::Ordering;
use syscall_table::errno::Errno;

fn or_self(cx: &Cx, pid: Pid) -> i32 {
    if pid.raw() == 0 { cx.task.process.pid } else { pid.raw() }
}

pub fn getpgid(cx: &mut Cx, pid: Pid) -> SysResult {
    let pid = or_self(cx, pid);
    if pid == INIT {
        return Ok(INIT as u64);
    }
    let group = cx.kernel().tree.lock().node(pid)?.pgid;
    Ok(cx.task.shown(group) as u64)
}

pub fn getpgrp(cx: &mut Cx) -> SysResult {
    let group = cx.kernel().tree.pgid(cx.task.process.pid);
    Ok(cx.task.shown(group) as u64)
}

pub fn getsid(cx: &mut Cx, pid: Pid) -> SysResult {
    let pid = or_self(cx, pid);
    if pid == INIT {
        return Ok(INIT as u64);
    }
    let session = cx.kernel().tree.lock().node(pid)?.sid;
    Ok(cx.task.shown(session) as u64)
}

pub fn setpgid(cx: &mut Cx, pid: Pid, pgid: Pid) -> SysResult {
    let own = cx.task.process.pid;
    let pid = or_self(cx, pid);
    let pgid = if pgid.raw() == 0 { pid } else { pgid.raw() };
    if pgid < 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut tree = cx.kernel().tree.lock();
    let own_sid = tree.node(own)?.sid;
    let node = tree.node(pid)?;
    if pid != own {
        if node.parent != own {
            return Err(Errno::ESRCH.into());
        }
        if node.sid != own_sid {
            return Err(Errno::EPERM.into());
        }
        if node.process.execed.load(Ordering::Relaxed) {
            return Err(Errno::EACCES.into());
        }
    }
    if node.sid == pid {
        return Err(Errno::EPERM.into());
    }
    if pgid != pid && !tree.group(pgid).any(|n| n.sid == own_sid) {
        return Err(Errno::EPERM.into());
    }
    tree.regroup(pid, pgid, None)?;
    Ok(0)
}

pub fn setsid(cx: &mut Cx) -> SysResult {
    let own = cx.task.process.pid;
    let mut tree = cx.kernel().tree.lock();
    if tree.group(own).next().is_some() {
        return Err(Errno::EPERM.into());
    }
    tree.regroup(own, own, Some(own))?;
    drop(tree);
    crate::tty::job::leave(&cx.task.process);
    cx.task.process.old_foreground.store(0, Ordering::SeqCst);
    Ok(cx.task.process.name.own() as u64)
}
