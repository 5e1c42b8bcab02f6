//! pidfd_open(2), pidfd_send_signal(2), pidfd_getfd(2).

use super::kill::deliver;
use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::ipc::install_file;
use crate::task::access::may_inspect;
use crate::task::{Process, Task, pidfd};
use std::sync::Arc;
use syscall_table::abi::clone::*;
use syscall_table::abi::getrlimit::RLIMIT_NOFILE;
use syscall_table::abi::sigaction::*;
use syscall_table::errno::Errno;

pub fn pidfd_open(cx: &mut Cx, pid: Pid, flags: PidfdFlags) -> SysResult {
    if flags.unknown(PIDFD_NONBLOCK | PIDFD_THREAD) != 0 || pid.raw() <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let limit = cx.task.process.limit(RLIMIT_NOFILE);
    let nonblock = (flags.bits() & PIDFD_NONBLOCK) as i32;
    if flags.has(PIDFD_THREAD) {
        let task = cx.kernel().tree.task(pid.raw())?;
        let fd = cx.task.files().install(pidfd::thread_file(&task, nonblock), true, 0, limit)?;
        return Ok(fd as u64);
    }
    let process = match cx.kernel().tree.process(pid.raw()) {
        Ok(process) => process,
        // A task that leads no group: EINVAL before 6.9, ENOENT since.
        Err(_) if cx.kernel().tree.task(pid.raw()).is_ok() => return Err(Errno::ENOENT.into()),
        Err(fail) => return Err(fail),
    };
    let fd = cx.task.files().install(pidfd::file(&process, nonblock), true, 0, limit)?;
    Ok(fd as u64)
}

pub fn pidfd_send_signal(
    cx: &mut Cx,
    pidfd: Fd,
    sig: Signal,
    info: In<Siginfo>,
    flags: PidfdFlags,
) -> SysResult {
    let scopes = PIDFD_SIGNAL_THREAD | PIDFD_SIGNAL_THREAD_GROUP | PIDFD_SIGNAL_PROCESS_GROUP;
    if flags.unknown(scopes) != 0 || flags.bits().count_ones() > 1 {
        return Err(Errno::EINVAL.into());
    }
    let (process, thread) = signalled(cx, pidfd)?;
    if !process.pidns.is_within(&cx.task.process.pidns) {
        return Err(Errno::EINVAL.into());
    }
    let thread = match thread {
        Some(thread) if !flags.has(PIDFD_SIGNAL_THREAD_GROUP | PIDFD_SIGNAL_PROCESS_GROUP) => {
            Some(thread.ok_or(Errno::ESRCH)?)
        }
        // The leader, whom a descriptor of the process stands for.
        None if flags.has(PIDFD_SIGNAL_THREAD) => Some(cx.kernel().tree.task(process.pid)?),
        _ => None,
    };
    if !(0..=SIGRTMAX).contains(&sig.raw()) {
        return Err(Errno::EINVAL.into());
    }
    let info = if info.is_null() {
        crate::signal::send::own_info(cx.task, sig.raw(), SI_USER)
    } else {
        let given: Siginfo = cx.read_value(info.addr())?;
        if given.si_signo != sig.raw() {
            return Err(Errno::EINVAL.into());
        }
        let own = process.pid == cx.task.process.pid;
        if !own && (given.si_code >= 0 || given.si_code == SI_TKILL) {
            return Err(Errno::EPERM.into());
        }
        given
    };
    if process.thread_count() == 0 && cx.kernel().tree.process(process.pid).is_err() {
        return Err(Errno::ESRCH.into());
    }
    if !flags.has(PIDFD_SIGNAL_PROCESS_GROUP) {
        deliver(cx, &process, thread.as_ref(), info)?;
        return Ok(0);
    }
    // As kill(2) of the group that the process leads.
    let members: Vec<_> =
        cx.kernel().tree.lock().group(process.pid).map(|node| node.process.clone()).collect();
    let mut result = Err(Errno::ESRCH.into());
    for member in members {
        match deliver(cx, &member, None, info) {
            Ok(()) => result = Ok(0),
            Err(fail) if result.is_err() => result = Err(fail),
            Err(_) => {}
        }
    }
    result
}

/// PIDFD_SELF_THREAD and PIDFD_SELF_THREAD_GROUP (linux/pidfd.h).
const SELF_THREAD: i32 = -10_000;
const SELF_THREAD_GROUP: i32 = -10_001;

type Signalled = (Arc<Process>, Option<Option<Arc<Task>>>);

/// Whom a descriptor stands for, as [`pidfd::thread`] has it: a pidfd's, that of an open directory /proc/PID, or the
/// caller.
fn signalled(cx: &Cx, pidfd: Fd) -> SysResult<Signalled> {
    match pidfd.raw() {
        SELF_THREAD => return Ok((cx.task.process.clone(), Some(Some(cx.task.clone())))),
        SELF_THREAD_GROUP => return Ok((cx.task.process.clone(), None)),
        _ => {}
    }
    let file = cx.task.files().get(pidfd.raw())?;
    match pidfd::process(&file) {
        Ok(process) => Ok((process, pidfd::thread(&file))),
        Err(fail) => {
            let inode = file.ops.inode().ok_or(fail)?;
            let process = crate::fs::proc::process_of(&inode).ok_or(Errno::EBADF)?;
            Ok((process, None))
        }
    }
}

pub fn pidfd_getfd(cx: &mut Cx, pidfd: Fd, targetfd: Fd, flags: NoFlags) -> SysResult {
    if flags.bits() != 0 {
        return Err(Errno::EINVAL.into());
    }
    let process = pidfd::process(&*cx.task.files().get(pidfd.raw())?)?;
    let other = process.any_thread().ok_or(Errno::ESRCH)?;
    if !may_inspect(cx.task, &other) {
        return Err(Errno::EPERM.into());
    }
    let file = other.files().get_any(targetfd.raw())?;
    let fd = install_file(cx, file, true)?;
    Ok(u64::from(fd.unsigned_abs()))
}

/// process_mrelease(2): the memory of one that was killed goes with it.
pub fn process_mrelease(cx: &mut Cx, pidfd: Fd, flags: NoFlags) -> SysResult {
    if flags.bits() != 0 {
        return Err(Errno::EINVAL.into());
    }
    let process = pidfd::process(&*cx.task.files().get(pidfd.raw())?)?;
    match process.thread_count() {
        0 => Err(Errno::ESRCH.into()),
        _ if process.is_exiting() => Ok(0),
        _ => Err(Errno::EINVAL.into()),
    }
}
