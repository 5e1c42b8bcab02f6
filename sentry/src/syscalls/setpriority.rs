//! getpriority(2), setpriority(2), ioprio_get(2), ioprio_set(2): remembered and answered; the host's scheduler does
//! as it likes.

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::cap;
use crate::task::sched::{self, Subject};
use crate::task::tree::INIT;
use crate::task::userns::Ids;
use syscall_table::abi::getrlimit::*;
use syscall_table::abi::sched::*;
use syscall_table::errno::Errno;

/// Whom a call is about, beyond one task.
enum Which {
    One,
    Group,
    User,
}

/// The tasks meant by `who`; 0 is the caller, its group or its user.
fn subjects<'a>(cx: &Cx<'a>, which: Which, who: AnyId) -> SysResult<Vec<Subject<'a>>> {
    let tree = &cx.task.kernel.tree;
    let user = who.raw().cast_unsigned();
    let who = cx.task.meant(who.raw());
    let init = || Subject::Init(&tree.init);
    let mut found = match which {
        Which::One => vec![Subject::find(cx, who)?],
        Which::Group => {
            let pgid = if who == 0 { tree.pgid(cx.task.process.pid) } else { who };
            let members: Vec<_> = tree.lock().group(pgid).map(|n| n.process.clone()).collect();
            members.iter().flat_map(|p| p.threads()).map(Subject::Task).collect()
        }
        Which::User => {
            let creds = cx.task.creds();
            let uid = match user {
                0 => creds.uid,
                user => creds.ns.to_kernel(Ids::Users, user).ok_or(Errno::ESRCH)?,
            };
            let all: Vec<_> = tree.lock().tasks.values().cloned().collect();
            all.into_iter().map(Subject::Task).chain([init()]).filter(|it| it.uids().0 == uid).collect()
        }
    };
    if matches!(which, Which::Group) && who == INIT {
        found.push(init());
    }
    if found.is_empty() { Err(Errno::ESRCH.into()) } else { Ok(found) }
}

fn priority_which(which: PriorityWhich) -> SysResult<Which> {
    match which.bits() {
        PRIO_PROCESS => Ok(Which::One),
        PRIO_PGRP => Ok(Which::Group),
        PRIO_USER => Ok(Which::User),
        _ => Err(Errno::EINVAL.into()),
    }
}

pub fn getpriority(cx: &mut Cx, which: PriorityWhich, who: AnyId) -> SysResult {
    let found = subjects(cx, priority_which(which)?, who)?;
    let best = found.iter().map(|it| it.sched().lock().nice).min();
    Ok((20 - best.unwrap_or(0)) as u64)
}

fn set_nice(cx: &Cx, subject: &Subject, nice: i32) -> SysResult<()> {
    subject.check_owner(cx)?;
    let free = subject.may_have_nice(nice) || cx.task.creds().capable(cap::SYS_NICE);
    let mut sched = subject.sched().lock();
    if nice < sched.nice && !free {
        return Err(Errno::EACCES.into());
    }
    sched.nice = nice;
    Ok(())
}

/// Every one is tried; the last failure is the answer.
pub fn setpriority(cx: &mut Cx, which: PriorityWhich, who: AnyId, prio: i32) -> SysResult {
    let found = subjects(cx, priority_which(which)?, who)?;
    let mut result = Ok(0);
    for subject in found {
        if let Err(fail) = set_nice(cx, &subject, prio.clamp(-20, 19)) {
            result = Err(fail);
        }
    }
    result
}

fn ioprio_which(which: IoprioWhich) -> SysResult<Which> {
    match which.bits() {
        IOPRIO_WHO_PROCESS => Ok(Which::One),
        IOPRIO_WHO_PGRP => Ok(Which::Group),
        IOPRIO_WHO_USER => Ok(Which::User),
        _ => Err(Errno::EINVAL.into()),
    }
}

pub fn ioprio_get(cx: &mut Cx, which: IoprioWhich, who: AnyId) -> SysResult {
    let which = ioprio_which(which)?;
    // Of one task it is what was set, of several the best that counts.
    let one = matches!(which, Which::One);
    let value = |it: &Subject| {
        let sched = *it.sched().lock();
        if one { sched.ioprio } else { sched.effective_ioprio() }
    };
    let best = subjects(cx, which, who)?.iter().map(value).min();
    Ok(best.unwrap_or(0).into())
}

/// Who may have the class, and whether the class is one.
fn check_ioprio(cx: &Cx, value: i32) -> SysResult<u16> {
    // Linux keeps the low 16 bits.
    let value = value as u16;
    let creds = cx.task.creds();
    match sched::ioprio_class(value) {
        sched::IOPRIO_CLASS_RT if !creds.capable(cap::SYS_ADMIN) && !creds.capable(cap::SYS_NICE) => {
            Err(Errno::EPERM.into())
        }
        sched::IOPRIO_CLASS_NONE if value & 7 != 0 => Err(Errno::EINVAL.into()),
        sched::IOPRIO_CLASS_NONE..=sched::IOPRIO_CLASS_IDLE => Ok(value),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// Ends at the first one that may not be changed.
pub fn ioprio_set(cx: &mut Cx, which: IoprioWhich, who: AnyId, ioprio: i32) -> SysResult {
    let value = check_ioprio(cx, ioprio)?;
    let creds = cx.task.creds();
    for subject in subjects(cx, ioprio_which(which)?, who)? {
        let uid = subject.uids().0;
        if uid != creds.euid && uid != creds.uid && !creds.capable(cap::SYS_NICE) {
            return Err(Errno::EPERM.into());
        }
        subject.sched().lock().ioprio = value;
    }
    Ok(0)
}
