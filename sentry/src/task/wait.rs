//! Waiting for children (wait(2)).

use super::tree::{Node, State};
use super::{Task, usage};
use crate::fail::SysResult;
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
    pub uid: u32,
    pub status: WaitStatus,
    /// What it has used, with its waited-for children.
    pub used: Used,
}

/// Looks for a change among the children; takes it unless WNOWAIT is set. None: there are such children and nothing has
/// happened to them.
///
/// # Errors
/// ECHILD when there are none.
pub(crate) fn look(task: &Arc<Task>, which: Which, options: i32) -> SysResult<Option<Change>> {
    let mut tree = task.kernel.tree.lock();
    let children = tree.node(task.process.pid)?.children.clone();
    let mut any = false;
    for pid in children {
        let Some(node) = tree.nodes.get(&pid) else { continue };
        let wanted = match which {
            Which::Any => true,
            Which::Pid(wanted) => pid == wanted,
            Which::Group(pgid) => node.pgid == pgid,
        };
        let foreign = options & __WNOTHREAD != 0 && node.creator != task.tid();
        if !wanted || foreign || !kind_matches(node, options) {
            continue;
        }
        any = true;
        if let Some(status) = change(node, options) {
            let uid = node.uid;
            let ended = node.zombie.is_some();
            let process = node.process.clone();
            let used = usage::legacy(&process);
            if options & WNOWAIT == 0 {
                take(&mut tree, pid, status);
                if ended {
                    usage::inherit(&task.process, &process);
                }
            }
            return Ok(Some(Change { pid, uid, status, used }));
        }
    }
    if any { Ok(None) } else { Err(Errno::ECHILD.into()) }
}

/// __WCLONE and __WALL: children that do not send SIGCHLD are "clone" children.
fn kind_matches(node: &Node, options: i32) -> bool {
    if options & __WALL != 0 {
        return true;
    }
    (node.exit_signal != SIGCHLD) == (options & __WCLONE != 0)
}

fn change(node: &Node, options: i32) -> Option<WaitStatus> {
    if options & WEXITED != 0 && node.zombie.is_some() {
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
