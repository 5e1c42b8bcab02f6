//! Waiting for children (wait(2)).

use super::exit::Aftermath;
use super::tree::{Node, State};
use super::{Task, usage};
use crate::fail::SysResult;
use crate::ptrace::links;
use platform::Rusage as Used;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::sigaction::SIGCHLD;
use syscall_table::abi::wait::*;
use syscall_table::errno::Errno;

/// Which children a wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Any,
    Pid(i32),
    Group(i32),
}

/// A child's change of state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub pid: i32,
    /// What the waiter's namespace calls it.
    pub shown: i32,
    pub uid: u32,
    pub status: WaitStatus,
    /// What it has used, with its waited-for children.
    pub used: Used,
    /// A tracee's stop.
    pub trapped: bool,
}

/// Looks for a change among the children; takes it unless WNOWAIT is set. None: there are such children and nothing has
/// happened to them.
///
/// # Errors
/// ECHILD when there are none.
pub(crate) fn look(task: &Arc<Task>, which: Which, options: i32) -> SysResult<Option<Change>> {
    let mut after = Aftermath::default();
    let found = find(task, which, options, &mut after);
    after.carry_out(&task.kernel);
    found
}

fn find(task: &Arc<Task>, which: Which, options: i32, after: &mut Aftermath) -> SysResult<Option<Change>> {
    let mut tree = task.kernel.tree.lock();
    let own = task.process.pid;
    let children = tree.node(own)?.children.clone();
    let mut any = false;
    for pid in children {
        let Some(node) = tree.nodes.get(&pid) else { continue };
        let wanted = match which {
            Which::Any => true,
            Which::Pid(wanted) => pid == wanted,
            Which::Group(pgid) => node.pgid == pgid,
        };
        let foreign = options & __WNOTHREAD != 0 && node.creator != task.tid();
        if !wanted || foreign || !(node.tracer == Some(own) || kind_matches(node, options)) {
            continue;
        }
        any = true;
        if let Some(status) = change(node, options, own) {
            let uid = node.uid;
            let ended = node.zombie.is_some();
            let process = node.process.clone();
            let used = usage::legacy(&process);
            // Its number goes with it.
            let shown = task.shown(pid);
            if options & WNOWAIT == 0 {
                take(&mut tree, pid, status);
                if ended {
                    usage::inherit(&task.process, &process);
                }
            }
            return Ok(Some(Change { pid, shown, uid, status, used, trapped: false }));
        }
    }
    if !tree.links.is_empty()
        && let Some(change) = tracees(&mut tree, task, which, options, &mut any, after)
    {
        return Ok(Some(change));
    }
    if any { Ok(None) } else { Err(Errno::ECHILD.into()) }
}

/// What has happened to those that this process traces: their own ends, and their stops whatever the options say.
fn tracees(
    tree: &mut State,
    task: &Arc<Task>,
    which: Which,
    options: i32,
    any: &mut bool,
    after: &mut Aftermath,
) -> Option<Change> {
    let own = task.process.pid;
    let mut found = None;
    for (at, link) in tree.links.iter().enumerate() {
        let (tracee, pid) = (&link.task, link.task.process.pid);
        let tid = tracee.tid();
        let Some(node) = tree.nodes.get(&pid).filter(|_| link.tracer == own) else { continue };
        let wanted = match which {
            Which::Any => true,
            Which::Pid(wanted) => tid == wanted,
            Which::Group(pgid) => node.pgid == pgid,
        };
        let maker = node.parent == own && tid == pid && node.creator == task.tid();
        if !wanted || options & __WNOTHREAD != 0 && !maker && !Arc::ptr_eq(&link.by, task) {
            continue;
        }
        *any = true;
        let foreign = node.parent != own;
        let end = match link.end {
            Some(status) => Some(status),
            None if tid == pid && foreign && node.ghosts == 0 => node.zombie,
            None => None,
        };
        let trapped = end.is_none();
        let status = match end {
            Some(_) if options & WEXITED == 0 => continue,
            Some(status) => status,
            None if tracee.is_dead() => continue,
            None => match stop_code(tracee, options & WNOWAIT == 0) {
                Some(code) => WaitStatus::stopped(code),
                None => continue,
            },
        };
        let used = usage::legacy(&node.process);
        found = Some((at, Change { pid: tid, shown: task.shown(tid), uid: node.uid, status, used, trapped }));
        break;
    }
    let (at, change) = found?;
    if !change.trapped && options & WNOWAIT == 0 {
        let link = tree.links.swap_remove(at);
        links::forget(tree, &link.task, link.end.is_some(), after);
        tree.strike(link.task.tid());
    }
    Some(change)
}

/// The stop of a tracee that no wait has reported.
fn stop_code(tracee: &Task, take: bool) -> Option<i32> {
    if !tracee.tracing.is_held() {
        return None;
    }
    let mut state = tracee.tracing.lock();
    let stop = state.stop.as_mut().filter(|stop| !stop.reported && !stop.listening)?;
    stop.reported |= take;
    Some(stop.code)
}

/// __WCLONE and __WALL: children that do not send SIGCHLD are "clone" children.
fn kind_matches(node: &Node, options: i32) -> bool {
    if options & __WALL != 0 {
        return true;
    }
    (node.exit_signal != SIGCHLD) == (options & __WCLONE != 0)
}

fn change(node: &Node, options: i32, own: i32) -> Option<WaitStatus> {
    // A zombie is its tracer's first, and none as long as tracees among its tasks are not waited for.
    let mine = node.tracer.is_none_or(|tracer| tracer == own) && node.ghosts == 0;
    if options & WEXITED != 0 && node.zombie.is_some() && mine {
        return node.zombie;
    }
    if node.zombie.is_some() {
        return None;
    }
    if let Some(signal) = node.stop_event
        && options & WUNTRACED != 0
        && node.process.stopped.load(Ordering::SeqCst) != 0
    {
        return Some(WaitStatus::stopped(signal));
    }
    (node.cont_event && options & WCONTINUED != 0).then(WaitStatus::continued)
}

fn take(tree: &mut State, pid: i32, status: WaitStatus) {
    if status.is_continued() {
        if let Ok(node) = tree.node_mut(pid) {
            node.cont_event = false;
        }
    } else if status.stop_signal().is_some() {
        if let Ok(node) = tree.node_mut(pid) {
            node.stop_event = None;
        }
    } else {
        tree.reap(pid);
    }
}
