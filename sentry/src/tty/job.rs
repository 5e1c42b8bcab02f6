//! Job control: a terminal's session and foreground group, and what the terminal means to a process
//! (POSIX, "General Terminal Interface"; ioctl_tty(2), credentials(7)).
//!
//! A process has a controlling terminal of its own ([`Process::ctty`](crate::task::Process::ctty)), which fork copies and setsid
//! drops; the terminal knows one session. Signals are sent with no lock held.

use super::Terminal;
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::kernel::Kernel;
use crate::signal::{bit, mask, send};
use crate::sync::{Level, Lock};
use crate::task::creds::cap;
use crate::task::{Process, Task};
use crate::vfs::file::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::ioctl::{TIOCGPGRP, TIOCGSID, TIOCNOTTY, TIOCSCTTY, TIOCSPGRP};
use syscall_table::abi::sigaction::{SIG_IGN, SIGCONT, SIGHUP, SIGTTIN, SIGTTOU, Siginfo};
use syscall_table::errno::Errno;

/// Which session has the terminal and which of its groups is in the foreground; 0 is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Held {
    session: i32,
    foreground: i32,
}

/// Job control of one terminal.
#[derive(Debug)]
pub struct Job {
    held: Lock<Held>,
}

impl Default for Job {
    /// Of a terminal that is nobody's.
    fn default() -> Self {
        Self::of(0)
    }
}

impl Job {
    /// Of a terminal that this session has from the start, its leader in the foreground.
    pub fn of(session: i32) -> Job {
        Job { held: Lock::new(Level::Field, Held { session, foreground: session }) }
    }

    fn held(&self) -> Held {
        *self.held.lock()
    }

    /// The group that the terminal's signals go to; 0 is none.
    pub fn foreground(&self) -> i32 {
        self.held().foreground
    }

    /// The session that has the terminal; 0 is none.
    pub fn session(&self) -> i32 {
        self.held().session
    }

    /// Whether this is the controlling terminal of the process.
    pub fn controls(&self, process: &Process) -> bool {
        process.ctty.lock().as_ref().is_some_and(|tty| std::ptr::eq(tty.job(), self))
    }

    /// Sends a signal to the foreground group. No lock but a call's may be held.
    pub fn signal(&self, kernel: &Arc<Kernel>, signal: i32) {
        let group = self.foreground();
        if group > 0 {
            send::to_group(kernel, group, signal);
        }
    }

    /// Stops a background process that reads (`signal` SIGTTIN) or changes (SIGTTOU) its terminal.
    ///
    /// # Errors
    /// EIO where stopping would be for ever. Else the call blocks, and is made again after the stop.
    pub fn check(&self, cx: &Cx, signal: i32) -> SysResult<()> {
        let task = cx.task;
        let process = &task.process;
        if !self.controls(process) {
            return Ok(());
        }
        let tree = &cx.kernel().tree;
        let (foreground, group) = (self.foreground(), tree.pgid(process.pid));
        if foreground == 0 || group == foreground {
            return Ok(());
        }
        stop_group(cx, signal)
    }

    /// An open without O_NOCTTY: a session leader without a terminal gets one that is free.
    pub fn opened(terminal: &Arc<dyn Terminal>, task: &Task) {
        let job = terminal.job();
        let (pid, sid) = (task.process.pid, task.kernel.tree.sid(task.process.pid));
        if sid == pid && task.process.ctty.lock().is_none() && job.session() == 0 {
            job.take(terminal, task, sid);
        }
    }

    fn take(&self, terminal: &Arc<dyn Terminal>, task: &Task, session: i32) {
        let foreground = task.kernel.tree.pgid(task.process.pid);
        *self.held.lock() = Held { session, foreground };
        task.process.old_foreground.store(0, Ordering::SeqCst);
        let old = task.process.ctty.lock().replace(terminal.clone());
        drop(old);
    }

    /// The terminal is gone (vhangup(2), its other side was closed): the session loses it, the leader is told.
    /// No lock but a call's may be held.
    pub fn hang_up(&self, kernel: &Arc<Kernel>) {
        let held = std::mem::take(&mut *self.held.lock());
        if held.session == 0 {
            return;
        }
        for (process, leads) in members(kernel, held.session) {
            if self.controls(&process) {
                leave(&process);
            }
            if leads {
                process.old_foreground.store(held.foreground, Ordering::SeqCst);
                send::to_process(kernel, &process, Siginfo::kernel(SIGHUP));
                send::to_process(kernel, &process, Siginfo::kernel(SIGCONT));
            }
        }
    }
}

/// Stops the caller's process group with SIGTTIN or SIGTTOU, or says what it gets instead.
///
/// # Errors
/// EIO where stopping would be for ever. Else the call blocks, and is made again after the stop.
pub(crate) fn stop_group(cx: &Cx, signal: i32) -> SysResult<()> {
    let (task, process, tree) = (cx.task, &cx.task.process, &cx.kernel().tree);
    let group = tree.pgid(process.pid);
    let ignored = process.sighand().get(signal).sa_handler == SIG_IGN;
    if ignored || mask::get(task) & bit(signal) != 0 {
        return if signal == SIGTTIN { Err(Errno::EIO.into()) } else { Ok(()) };
    }
    if tree.lock().is_orphaned(group) {
        return Err(Errno::EIO.into());
    }
    send::to_group(cx.kernel(), group, signal);
    // Another thread may be the one that takes the signal: this call ends all the same, and is made again.
    task.attention.store(true, Ordering::SeqCst);
    cx.block(Restart::Sys)
}

/// Living processes of a session, and whether each leads it.
fn members(kernel: &Kernel, session: i32) -> Vec<(Arc<Process>, bool)> {
    let tree = kernel.tree.lock();
    let of_session = tree.nodes.iter().filter(|(_, node)| node.sid == session && node.zombie.is_none());
    of_session.map(|(pid, node)| (node.process.clone(), *pid == session)).collect()
}

/// A process loses its controlling terminal.
pub(crate) fn leave(process: &Process) {
    let old = process.ctty.lock().take();
    drop(old);
}

fn leave_all(kernel: &Kernel, session: i32) {
    for (process, _) in members(kernel, session) {
        leave(&process);
    }
}

/// The process is ending. When it leads a session, the session loses its terminal, and who is in the foreground is told.
pub(crate) fn leader_ends(kernel: &Arc<Kernel>, process: &Arc<Process>) {
    let pid = process.pid;
    if kernel.tree.sid(pid) != pid {
        leave(process);
        return;
    }
    let tty = process.ctty.lock().clone();
    let Some(tty) = tty else {
        let old = process.old_foreground.swap(0, Ordering::SeqCst);
        if old != 0 {
            send::to_group(kernel, old, SIGHUP);
            send::to_group(kernel, old, SIGCONT);
        }
        return;
    };
    tty.job().signal(kernel, SIGHUP);
    *tty.job().held.lock() = Held::default();
    leave(process);
    leave_all(kernel, pid);
}

/// TIOCNOTTY: the process gives up its terminal; a leader for its whole session.
fn give_up(cx: &Cx, job: &Job) {
    let process = &cx.task.process;
    let sid = cx.kernel().tree.sid(process.pid);
    if sid == process.pid {
        job.signal(cx.kernel(), SIGHUP);
        job.signal(cx.kernel(), SIGCONT);
        *job.held.lock() = Held::default();
        leave_all(cx.kernel(), sid);
    }
    leave(process);
}

/// The requests that are about sessions and groups; None for another request. `master`: asked through the other side of a
/// pseudo-terminal, whose caller need not be in the session.
pub(crate) fn ioctl(
    cx: &mut Cx,
    file: &File,
    terminal: &Arc<dyn Terminal>,
    master: bool,
    request: u32,
    arg: u64,
) -> Option<SysResult> {
    Some(match request {
        TIOCSCTTY => acquire(cx, file, terminal, arg),
        TIOCNOTTY if master || !terminal.job().controls(&cx.task.process) => Err(Errno::ENOTTY.into()),
        TIOCNOTTY => {
            give_up(cx, terminal.job());
            Ok(0)
        }
        TIOCGPGRP => read_group(cx, terminal.job(), master, arg),
        TIOCGSID => read_session(cx, terminal.job(), master, arg),
        TIOCSPGRP => set_group(cx, terminal.job(), arg),
        _ => return None,
    })
}

fn acquire(cx: &mut Cx, file: &File, terminal: &Arc<dyn Terminal>, arg: u64) -> SysResult {
    let (task, job) = (cx.task, terminal.job());
    let pid = task.process.pid;
    let sid = cx.kernel().tree.sid(pid);
    let holder = job.session();
    if sid == pid && holder == sid {
        return Ok(0);
    }
    if sid != pid || task.process.ctty.lock().is_some() {
        return Err(Errno::EPERM.into());
    }
    let admin = task.creds().capable(cap::SYS_ADMIN);
    if holder != 0 {
        if arg != 1 || !admin {
            return Err(Errno::EPERM.into());
        }
        leave_all(cx.kernel(), holder);
    }
    if !file.readable() && !admin {
        return Err(Errno::EPERM.into());
    }
    job.take(terminal, task, sid);
    Ok(0)
}

fn read_group(cx: &mut Cx, job: &Job, master: bool, arg: u64) -> SysResult {
    if !master && !job.controls(&cx.task.process) {
        return Err(Errno::ENOTTY.into());
    }
    cx.write_value(arg, &cx.task.shown(job.foreground()))?;
    Ok(0)
}

fn read_session(cx: &mut Cx, job: &Job, master: bool, arg: u64) -> SysResult {
    let session = job.session();
    if session == 0 || !master && !job.controls(&cx.task.process) {
        return Err(Errno::ENOTTY.into());
    }
    cx.write_value(arg, &cx.task.shown(session))?;
    Ok(0)
}

fn set_group(cx: &mut Cx, job: &Job, arg: u64) -> SysResult {
    match job.check(cx, SIGTTOU) {
        Err(crate::fail::Fail::Error(Errno::EIO)) => return Err(Errno::ENOTTY.into()),
        other => other?,
    }
    let group: i32 = cx.read_value(arg)?;
    if group < 0 {
        return Err(Errno::EINVAL.into());
    }
    let group = cx.task.meant(group);
    let session = cx.kernel().tree.sid(cx.task.process.pid);
    if !job.controls(&cx.task.process) || job.session() != session {
        return Err(Errno::ENOTTY.into());
    }
    {
        let tree = cx.kernel().tree.lock();
        let of_group = tree.group(group).next().map(|node| node.sid);
        let other = of_group.or_else(|| tree.nodes.get(&group).map(|node| node.sid)).ok_or(Errno::ESRCH)?;
        if other != session {
            return Err(Errno::EPERM.into());
        }
    }
    job.held.lock().foreground = group;
    Ok(0)
}
