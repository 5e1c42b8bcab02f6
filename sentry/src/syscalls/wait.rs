//! wait4(2), waitid(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, Restart, SysResult};
use crate::task::wait::{Change, Which, look};
use crate::task::{pidfd, usage};
use crate::wait::Ready;
use std::sync::Arc;
use syscall_table::abi::sigaction::*;
use syscall_table::abi::wait::*;
use syscall_table::errno::Errno;
use zerocopy::FromZeros;

fn own_group(cx: &Cx) -> i32 {
    cx.kernel().tree.pgid(cx.task.process.pid)
}

/// In a wait status: the process left (or would have left) a core dump.
const WCOREFLAG: i32 = 0x80;

/// None: nothing yet, and the caller does not want to wait.
fn wait(cx: &mut Cx, which: Which, options: i32, usage: bool) -> SysResult<Option<Change>> {
    cx.wait_on(&cx.task.process.child_wait, Ready::IN);
    if usage
        && let Some(change) = look(cx.task, which, options | WNOWAIT)?
        && let Ok(child) = cx.kernel().tree.process(change.pid)
    {
        usage::settle(cx, &child)?;
    }
    match look(cx.task, which, options)? {
        Some(change) => Ok(Some(change)),
        None if options & WNOHANG != 0 => Ok(None),
        None => cx.block(Restart::Sys),
    }
}

pub fn wait4(
    cx: &mut Cx,
    pid: Pid,
    wstatus: Out<WaitStatus>,
    options: WaitFlags,
    rusage: Out<Rusage>,
) -> SysResult {
    let known = WNOHANG | WUNTRACED | WCONTINUED | __WNOTHREAD | __WCLONE | __WALL;
    if options.unknown(known) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let which = match pid.raw() {
        i32::MIN => return Err(Errno::ESRCH.into()),
        -1 => Which::Any,
        0 => Which::Group(own_group(cx)),
        pid if pid < 0 => Which::Group(-pid),
        pid => Which::Pid(pid),
    };
    let Some(change) = wait(cx, which, options.bits() | WEXITED, !rusage.is_null())? else { return Ok(0) };
    if !wstatus.is_null() {
        cx.write_value(wstatus.addr(), &change.status)?;
    }
    if !rusage.is_null() {
        cx.write_value(rusage.addr(), &usage::rusage(change.used))?;
    }
    Ok(change.shown as u64)
}

pub fn waitid(
    cx: &mut Cx,
    idtype: IdType,
    id: AnyId,
    infop: Out<Siginfo>,
    options: WaitFlags,
    rusage: Out<Rusage>,
) -> SysResult {
    let change = match waited(cx, &idtype, &id, &options, &rusage) {
        // It is filled in all the same.
        Err(Fail::Error(error)) if !infop.is_null() => {
            cx.write_value(infop.addr(), &Siginfo::new_zeroed())?;
            return Err(error.into());
        }
        other => other?,
    };
    if let Some(change) = &change
        && !rusage.is_null()
    {
        cx.write_value(rusage.addr(), &usage::rusage(change.used))?;
    }
    if !infop.is_null() {
        let ns = cx.task.creds().ns.clone();
        let info = change.map_or(Siginfo::new_zeroed(), |change| info(&change).with_uid(ns.user(change.uid)));
        cx.write_value(infop.addr(), &info)?;
    }
    Ok(0)
}

/// What waitid(2) hears of; None: nothing yet.
fn waited(
    cx: &mut Cx,
    idtype: &IdType,
    id: &AnyId,
    options: &WaitFlags,
    rusage: &Out<Rusage>,
) -> SysResult<Option<Change>> {
    let known = WNOHANG | WNOWAIT | WEXITED | WUNTRACED | WCONTINUED | __WNOTHREAD | __WCLONE | __WALL;
    if options.unknown(known) != 0 || options.bits() & (WEXITED | WUNTRACED | WCONTINUED) == 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut options = options.bits();
    let mut hurries = false;
    let id = match idtype.bits() {
        P_PID | P_PGID => cx.task.meant(id.raw()),
        _ => id.raw(),
    };
    let which = match (idtype.bits(), id) {
        (P_ALL, _) => Which::Any,
        (P_PID, pid) if pid > 0 => Which::Pid(pid),
        (P_PGID, 0) => Which::Group(own_group(cx)),
        (P_PGID, pgid) if pgid > 0 => Which::Group(pgid),
        (P_PIDFD, fd) if fd >= 0 => {
            let file = cx.task.files().get(fd)?;
            let process = pidfd::process(&file)?;
            if file.nonblocking() && options & WNOHANG == 0 {
                options |= WNOHANG;
                hurries = true;
            }
            // Its number may be another's by now.
            let same = cx.kernel().tree.process(process.pid).is_ok_and(|now| Arc::ptr_eq(&now, &process));
            if !same {
                return Err(Errno::ECHILD.into());
            }
            Which::Pid(process.pid)
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    let change = wait(cx, which, options, !rusage.is_null())?;
    if hurries && change.is_none() {
        return Err(Errno::EAGAIN.into());
    }
    Ok(change)
}

fn info(change: &Change) -> Siginfo {
    let status = change.status;
    let (code, value) = if let Some(value) = status.exit_status() {
        (CLD_EXITED, value)
    } else if let Some(signal) = status.term_signal() {
        (if status.raw & WCOREFLAG != 0 { CLD_DUMPED } else { CLD_KILLED }, signal)
    } else if let Some(signal) = status.stop_signal().filter(|_| !status.is_continued()) {
        (if change.trapped { CLD_TRAPPED } else { CLD_STOPPED }, signal)
    } else {
        (CLD_CONTINUED, SIGCONT)
    };
    // Times are in the signal's siginfo alone.
    Siginfo::child(code, change.shown, change.uid, value, 0, 0)
}
