//! Who may look into another process (ptrace(2), "Ptrace access mode checking").

use super::creds::cap;
use super::{Process, Task};
use std::sync::atomic::Ordering::Relaxed;

/// Whether `asker` may read the process's memory, environment, descriptors and the like: itself, or one of the same
/// user and groups that has no more rights and has not been made undumpable.
pub fn may_trace(asker: &Task, process: &Process) -> bool {
    if asker.process.pid == process.pid {
        return true;
    }
    let (own, other) = (asker.creds(), process.creds());
    if own.capable(cap::SYS_PTRACE) {
        return true;
    }
    let same = [other.uid, other.euid, other.suid].iter().all(|id| *id == own.fsuid)
        && [other.gid, other.egid, other.sgid].iter().all(|id| *id == own.fsgid);
    same && process.dumpable.load(Relaxed) == 1 && other.permitted & !own.effective == 0
}
