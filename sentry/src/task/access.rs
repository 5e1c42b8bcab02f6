//! Who may look into another process (ptrace(2), "Ptrace access mode checking").

use super::creds::{Creds, cap};
use super::{Process, Task};
use std::sync::atomic::Ordering::Relaxed;

/// Which of the asker's ids and capabilities count.
#[derive(Clone, Copy)]
enum By {
    /// PTRACE_MODE_FSCREDS: those for files, and what is in force (proc).
    Files,
    /// PTRACE_MODE_REALCREDS: the real ones, and what is permitted (system calls).
    Real,
}

/// Whether `asker` may look into the process by way of /proc: memory, environment, descriptors and the like.
pub fn may_trace(asker: &Task, process: &Process) -> bool {
    asker.process.pid == process.pid || may(asker, process, &process.creds(), By::Files)
}

/// Whether `asker` may look into `other`, or reach into it, by a system call.
pub fn may_inspect(asker: &Task, other: &Task) -> bool {
    asker.process.pid == other.process.pid || may(asker, &other.process, &other.creds(), By::Real)
}

/// Of another process: one of the same user and groups that has no more rights and has not been made undumpable.
fn may(asker: &Task, process: &Process, other: &Creds, by: By) -> bool {
    let own = asker.creds();
    if own.capable_in(&other.ns, cap::SYS_PTRACE) {
        return true;
    }
    let (uid, gid, caps) = match by {
        By::Files => (own.fsuid, own.fsgid, own.effective),
        By::Real => (own.uid, own.gid, own.permitted),
    };
    [other.uid, other.euid, other.suid].iter().all(|id| *id == uid)
        && [other.gid, other.egid, other.sgid].iter().all(|id| *id == gid)
        && own.ns == other.ns
        && other.permitted & !caps == 0
        && process.dumpable.load(Relaxed) == 1
}
