//! What the sandbox has to tell: denials, gaps, counts, processes, traces.
//!
//! The three causes are kept apart: a denial is the policy's no, a gap is what lazaret does not implement, and an errno
//! that Linux would have given too is counted with its call and nothing else. Equal denials and equal gaps are one
//! entry with a count; there are at most [`MOST`] entries of each kind, and what came after is counted as dropped.
//! The schema is written down in `docs/report.md`.

mod json;
mod trace;

use crate::fail::Denial;
use crate::run::Call;
use crate::sync::{Level, Lock};
use crate::task::Task;
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use syscall_table::abi::wait::WaitStatus;
use syscall_table::errno::Errno;

pub use json::Outcome;

/// Most entries of each kind.
pub const MOST: usize = 1000;
/// Counters: one past the highest call number, and one for all others.
const CALLS: usize = 512;

/// What to collect beside denials and gaps.
#[derive(Default)]
pub struct Wanted {
    /// Counts and processes, for a report.
    pub report: bool,
    /// Where trace lines go.
    pub trace: Option<OwnedFd>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Clone)]
struct GapKey {
    nr: u32,
    detail: String,
    program: String,
    errno: i32,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Clone)]
struct DenialKey {
    what: &'static str,
    path: String,
    rule: String,
    allow_with: String,
    program: String,
}

struct ProcessEntry {
    ppid: i32,
    program: String,
    arguments: Vec<String>,
    exit: Option<WaitStatus>,
}

/// A process that was killed since memory was over.
pub struct OomKill {
    /// Its pid inside; 0 for a host process that no program asked the kernel for.
    pub pid: i32,
    /// Its program.
    pub program: String,
    /// Bytes that were resident.
    pub resident: u64,
    /// The limit on all, in bytes.
    pub limit: u64,
}

#[derive(Default)]
struct Found {
    gaps: BTreeMap<GapKey, u64>,
    denials: BTreeMap<DenialKey, u64>,
    processes: BTreeMap<i32, ProcessEntry>,
    oom_kills: Vec<OomKill>,
    dropped: u64,
}

struct Count {
    calls: AtomicU64,
    errors: AtomicU64,
}

/// Collects during a run.
pub struct Report {
    found: Lock<Found>,
    counts: Option<Box<[Count]>>,
    trace: Option<trace::Trace>,
}

impl Default for Report {
    fn default() -> Self {
        Report::new(Wanted::default())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn count<K: Ord>(map: &mut BTreeMap<K, u64>, key: K, dropped: &mut u64) {
    let room = map.len() < MOST;
    match map.get_mut(&key) {
        Some(count) => *count = count.saturating_add(1),
        None if room => {
            map.insert(key, 1);
        }
        None => *dropped = dropped.saturating_add(1),
    }
}

impl Report {
    /// Collects what is wanted.
    pub fn new(wanted: Wanted) -> Self {
        let zero = || Count { calls: AtomicU64::new(0), errors: AtomicU64::new(0) };
        Report {
            found: Lock::new(Level::Report, Found::default()),
            counts: wanted.report.then(|| (0..CALLS).map(|_| zero()).collect()),
            trace: wanted.trace.map(trace::Trace::new),
        }
    }

    /// Whether calls are traced: then none may be answered without the kernel's knowledge.
    pub fn tracing(&self) -> bool {
        self.trace.is_some()
    }

    /// Counts a gap.
    pub fn gap(&self, task: &Task, nr: u32, detail: &str, errno: Errno) {
        let program = text(&task.process.exe.lock());
        let key = GapKey { nr, detail: detail.to_owned(), program, errno: errno.raw() };
        let found = &mut *self.found.lock();
        count(&mut found.gaps, key, &mut found.dropped);
    }

    /// Counts a denial of the call `nr`.
    pub fn denial(&self, task: &Task, nr: u32, denial: &Denial) {
        let program = text(&task.process.exe.lock());
        let key = DenialKey {
            what: if denial.what.is_empty() { operation(nr) } else { denial.what },
            path: denial.object.clone(),
            rule: denial.rule.clone(),
            allow_with: denial.allow_with.clone(),
            program,
        };
        let found = &mut *self.found.lock();
        count(&mut found.denials, key, &mut found.dropped);
    }

    /// Whether lines are written for calls.
    pub fn traces(&self) -> bool {
        self.trace.is_some()
    }

    /// A call begins.
    #[inline]
    pub fn trace_enter(&self, task: &Task, call: &Call) {
        if let Some(trace) = &self.trace {
            trace.enter(task, call);
        }
    }

    /// A call ends with this value of rax; None: it did not return to where it came from.
    #[inline]
    pub fn trace_leave(&self, task: &Task, call: &Call, value: Option<i64>) {
        if let Some(counts) = &self.counts
            && let Some(count) = counts.get((call.nr as usize).min(CALLS - 1))
        {
            count.calls.fetch_add(1, Ordering::Relaxed);
            if value.is_some_and(|value| (-4095..0).contains(&value)) {
                count.errors.fetch_add(1, Ordering::Relaxed);
            }
        }
        if let Some(trace) = &self.trace {
            trace.leave(task, call, value);
        }
    }

    /// Adds the calls that the platform answered by itself. Call before the task leaves its space or ends.
    pub(crate) fn count_own(&self, task: &Task) {
        let Some(counts) = &self.counts else { return };
        for (nr, times) in platform::OWN_CALLS.into_iter().zip(task.control().answered()) {
            if let Some(count) = counts.get(nr as usize) {
                // The guest keeps this count: one that it forged must not wrap.
                count.calls.fetch_add(times.min(1 << 40), Ordering::Relaxed);
            }
        }
    }

    /// Memory was over, and somebody was killed for it.
    pub fn oom_kill(&self, kill: OomKill) {
        let found = &mut *self.found.lock();
        if found.oom_kills.len() < MOST {
            found.oom_kills.push(kill);
        } else {
            found.dropped = found.dropped.saturating_add(1);
        }
    }

    /// A process was made.
    pub fn born(&self, pid: i32, ppid: i32) {
        if self.counts.is_none() {
            return;
        }
        let found = &mut *self.found.lock();
        if found.processes.len() < MOST {
            let entry = ProcessEntry { ppid, program: String::new(), arguments: Vec::new(), exit: None };
            found.processes.insert(pid, entry);
        } else {
            found.dropped = found.dropped.saturating_add(1);
        }
    }

    /// A process ended. `program` and `arguments` are those of its last exec.
    pub fn ended(&self, pid: i32, program: &[u8], arguments: &[Vec<u8>], status: WaitStatus) {
        if self.counts.is_none() {
            return;
        }
        if let Some(entry) = self.found.lock().processes.get_mut(&pid) {
            entry.program = text(program);
            // A report is for reading: long command lines are cut.
            entry.arguments = arguments.iter().take(64).map(|a| text(a.get(..1024).unwrap_or(a))).collect();
            entry.exit = Some(status);
        }
    }

    /// The gaps, one line each, at most `most` lines.
    pub fn gap_lines(&self, most: usize) -> Vec<String> {
        let found = self.found.lock();
        let mut gaps: Vec<_> = found.gaps.iter().collect();
        gaps.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let mut lines: Vec<String> = gaps
            .iter()
            .map(|(key, count)| {
                let times = if **count == 1 { String::new() } else { format!(", {count} times") };
                let detail = if key.detail.is_empty() { String::new() } else { format!(" ({})", key.detail) };
                let errno = Errno::from_raw(key.errno);
                format!("gap: {}{detail} by {}: {errno:?}{times}", json::call_name(key.nr), key.program)
            })
            .collect();
        if lines.len() > most {
            let more = lines.len() - most + 1;
            lines.truncate(most - 1);
            lines.push(format!("gap: {more} more kinds; --report lists all"));
        }
        lines
    }
}

/// What a call is about to do, where the policy's refusal does not say it.
fn operation(nr: u32) -> &'static str {
    let Some(name) = syscall_table::by_number(nr).map(|row| row.name) else { return "use" };
    let kinds: [(&[&str], &str); 14] = [
        (&["open", "creat", "name_to_handle", "quotactl", "swap", "acct"], "open"),
        (&["exec", "uselib"], "execute"),
        (&["mkdir", "mknod", "symlink", "bind"], "create"),
        (&["unlink", "rmdir"], "remove"),
        (&["rename"], "rename"),
        (&["link"], "link"),
        (&["chmod", "fchmod"], "change mode"),
        (&["chown", "lchown", "fchown"], "change owner"),
        (&["utime", "futimesat"], "change times"),
        (
            &["setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "ioctl"],
            "change attributes",
        ),
        (&["truncate", "ftruncate", "fallocate"], "truncate"),
        (&["mount", "umount", "move_mount", "fspick", "fsconfig", "fsmount"], "mount"),
        (&["chdir", "chroot", "pivot_root"], "enter"),
        (&["inotify", "fanotify"], "watch"),
    ];
    // open_tree is a mount's.
    if name.starts_with("open_tree") {
        return "mount";
    }
    let found = kinds.iter().find(|(starts, _)| starts.iter().any(|start| name.starts_with(start)));
    match (found, name) {
        (Some((_, what)), _) => what,
        (None, "connect" | "sendto" | "sendmsg" | "sendmmsg") => "connect",
        // stat, access, readlink, statfs, getxattr and the like.
        (None, _) => "look at",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn operations_have_names() {
        let of = |name: &str| {
            let row = syscall_table::SYSCALLS.iter().find(|row| row.name == name).expect(name);
            super::operation(row.number)
        };
        for (name, what) in [
            ("openat2", "open"),
            ("open_tree", "mount"),
            ("linkat", "link"),
            ("symlinkat", "create"),
            ("unlinkat", "remove"),
            ("fchmodat2", "change mode"),
            ("utimensat", "change times"),
            ("setxattrat", "change attributes"),
            ("getxattr", "look at"),
            ("newfstatat", "look at"),
            ("readlink", "look at"),
            ("renameat2", "rename"),
            ("execveat", "execute"),
            ("mount_setattr", "mount"),
            ("chroot", "enter"),
            ("truncate", "truncate"),
        ] {
            assert_eq!((name, of(name)), (name, what));
        }
    }
}
