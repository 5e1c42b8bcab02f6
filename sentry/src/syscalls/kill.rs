//! kill(2), tkill(2), tgkill(2), rt_sigqueueinfo(2), rt_tgsigqueueinfo(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::signal::send;
use crate::task::creds::cap;
use crate::task::tree::INIT;
use crate::task::{Process, Task};
use std::sync::Arc;
use syscall_table::abi::sigaction::*;
use syscall_table::errno::Errno;

fn check_number(sig: Signal) -> SysResult<()> {
    if (0..=SIGRTMAX).contains(&sig.raw()) { Ok(()) } else { Err(Errno::EINVAL.into()) }
}

/// A process by the id of any of its tasks.
pub(super) fn target(cx: &Cx, pid: i32) -> SysResult<Arc<Process>> {
    let tree = cx.kernel().tree.lock();
    match tree.nodes.get(&pid) {
        Some(node) => Ok(node.process.clone()),
        None => Ok(tree.tasks.get(&pid).ok_or(Errno::ESRCH)?.process.clone()),
    }
}

fn own_info(cx: &Cx, sig: i32, code: i32) -> Siginfo {
    send::own_info(cx.task, sig, code)
}

/// Checks permission and sends; signal 0 only checks.
pub(super) fn deliver(
    cx: &Cx,
    process: &Arc<Process>,
    to: Option<&Arc<Task>>,
    info: Siginfo,
) -> SysResult<()> {
    if !send::permitted(cx.task, &cx.task.creds(), process, info.si_signo) {
        return Err(Errno::EPERM.into());
    }
    if info.si_signo == 0 {
        return Ok(());
    }
    send::by(cx.task, process, to, info)
}

pub fn kill(cx: &mut Cx, pid: Pid, sig: Signal) -> SysResult {
    check_number(sig)?;
    let info = own_info(cx, sig.raw(), SI_USER);
    let members: Vec<Arc<Process>> = match pid.raw() {
        INIT => return to_init(cx),
        i32::MIN => return Err(Errno::ESRCH.into()),
        pid if pid > 0 => {
            deliver(cx, &target(cx, pid)?, None, info)?;
            return Ok(0);
        }
        -1 => {
            let own = cx.task.process.pid;
            let others = |p: &Arc<Process>| p.pid != own && p.seen_by(&cx.task.process) > 1;
            cx.kernel().tree.processes().into_iter().filter(others).collect()
        }
        pid => {
            let tree = cx.kernel().tree.lock();
            let own = tree.nodes.get(&cx.task.process.pid).map_or(0, |n| n.pgid);
            let pgid = if pid == 0 { own } else { -pid };
            tree.group(pgid).map(|n| n.process.clone()).collect()
        }
    };
    let mut result: SysResult = Err(Errno::ESRCH.into());
    // The sender's own process last: the signal may end it.
    let (own, others): (Vec<_>, Vec<_>) = members.into_iter().partition(|p| Arc::ptr_eq(p, &cx.task.process));
    for process in others.iter().chain(&own) {
        match deliver(cx, process, None, info) {
            Ok(()) => result = Ok(0),
            Err(fail) if result.is_err() => result = Err(fail),
            Err(_) => {}
        }
    }
    result
}

/// The virtual init takes no signals.
fn to_init(cx: &Cx) -> SysResult {
    let creds = cx.task.creds();
    let may = creds.uid == 0 || creds.euid == 0 || creds.capable(cap::KILL);
    if may { Ok(0) } else { Err(Errno::EPERM.into()) }
}

fn thread(cx: &Cx, tgid: Option<i32>, tid: i32) -> SysResult<Arc<Task>> {
    if tid <= 0 || tgid.is_some_and(|t| t <= 0) {
        return Err(Errno::EINVAL.into());
    }
    let task = cx.kernel().tree.task(tid)?;
    if tgid.is_some_and(|tgid| task.process.pid != tgid) {
        return Err(Errno::ESRCH.into());
    }
    Ok(task)
}

pub fn tkill(cx: &mut Cx, tid: Pid, sig: Signal) -> SysResult {
    check_number(sig)?;
    if tid.raw() == INIT {
        return to_init(cx);
    }
    let task = thread(cx, None, tid.raw())?;
    deliver(cx, &task.process, Some(&task), own_info(cx, sig.raw(), SI_TKILL))?;
    Ok(0)
}

pub fn tgkill(cx: &mut Cx, tgid: Pid, tid: Pid, sig: Signal) -> SysResult {
    check_number(sig)?;
    if (tgid.raw(), tid.raw()) == (INIT, INIT) {
        return to_init(cx);
    }
    let task = thread(cx, Some(tgid.raw()), tid.raw())?;
    deliver(cx, &task.process, Some(&task), own_info(cx, sig.raw(), SI_TKILL))?;
    Ok(0)
}

/// siginfo of the caller's making: only its own process may claim to be the kernel or kill(2).
fn given_info(cx: &mut Cx, sig: Signal, info: In<Siginfo>, own: bool) -> SysResult<Siginfo> {
    let mut info: Siginfo = cx.read_value(info.addr())?;
    info.si_signo = sig.raw();
    if (info.si_code >= 0 || info.si_code == SI_TKILL) && !own {
        return Err(Errno::EPERM.into());
    }
    Ok(info)
}

pub fn rt_sigqueueinfo(cx: &mut Cx, pid: Pid, sig: Signal, info: In<Siginfo>) -> SysResult {
    let info = given_info(cx, sig, info, cx.task.process.pid == pid.raw())?;
    check_number(sig)?;
    deliver(cx, &target(cx, pid.raw())?, None, info)?;
    Ok(0)
}

pub fn rt_tgsigqueueinfo(cx: &mut Cx, tgid: Pid, tid: Pid, sig: Signal, info: In<Siginfo>) -> SysResult {
    let info = given_info(cx, sig, info, cx.task.tid() == tid.raw())?;
    check_number(sig)?;
    let task = thread(cx, Some(tgid.raw()), tid.raw())?;
    deliver(cx, &task.process, Some(&task), info)?;
    Ok(0)
}
