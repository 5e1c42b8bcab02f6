//! Who is killed when memory is over (mm/oom_kill.c in Linux).

use super::wire::Seen;
use crate::kernel::Kernel;
use crate::mm::{Mm, PAGE};
use crate::report::OomKill;
use crate::task::Process;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use syscall_table::abi::sigaction::SIGKILL;
use syscall_table::abi::wait::WaitStatus;

/// oom_score_adj of a process that is not to be killed.
const NEVER: i32 = -1000;
/// How long a killed process may take to give its memory back before another is killed.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a host process may be one that the kernel does not know: a fork that is being made is for a moment.
const UNKNOWN: Duration = Duration::from_millis(100);
/// The same for one that is larger than the limit by itself: no fork is that large.
const UNKNOWN_LARGE: Duration = Duration::from_millis(10);
/// How often the allocator gives back what is free before somebody is killed: who had filled pipes may just be ending.
const TRIMS: u32 = 4;
/// The platform's own processes have less.
const SMALL: u64 = 1 << 20;

/// What /proc/PID/oom_score says of a process that has so many bytes: 0 to 2000, 0 for one that is not to be killed
/// (proc_oom_score in Linux).
pub fn score(process: &Process, bytes: u64) -> i64 {
    let adj = process.oom_score_adj.load(Relaxed);
    if adj == NEVER {
        return 0;
    }
    let total = i64::try_from(super::total() / PAGE).unwrap_or(i64::MAX).max(1);
    (1000i64.saturating_add(points(bytes, adj, total).saturating_mul(1000) / total)).saturating_mul(2) / 3
}

/// Pages, and a thousandth of all memory for each point of `adj` (oom_badness in Linux).
fn points(bytes: u64, adj: i32, total: i64) -> i64 {
    let pages = i64::try_from(bytes / PAGE).unwrap_or(i64::MAX);
    pages.saturating_add(i64::from(adj).saturating_mul(total / 1000))
}

/// Kills one after the other.
pub(super) struct Killer {
    kernel: Arc<Kernel>,
    limit: u64,
    say: Box<dyn Fn(String) + Send>,
    /// Host processes of victims, and of who ended by itself, that may have memory still, and since when.
    dying: HashMap<i32, Instant>,
    /// How often the allocator gave back what is free since the last victim.
    trimmed: u32,
    /// Large host processes that the kernel does not know, and since when.
    unknown: HashMap<i32, Instant>,
    /// Since when one that may be such a process has kept others from being killed.
    waited: Option<Instant>,
}

/// An address space that may be given up.
struct Candidate {
    mm: Arc<Mm>,
    process: Arc<Process>,
    seen: Seen,
    points: i64,
}

impl Killer {
    pub(super) fn new(kernel: Arc<Kernel>, limit: u64, say: Box<dyn Fn(String) + Send>) -> Killer {
        Killer {
            kernel,
            limit,
            say,
            dying: HashMap::new(),
            trimmed: 0,
            unknown: HashMap::new(),
            waited: None,
        }
    }

    /// More is in use than the limit, by these processes. Kills as many as are in the way: a look takes its time, and who
    /// forks without end would be faster than one kill for each.
    pub(super) fn over(&mut self, used: u64, seen: &[Seen]) {
        let bytes = |one: &Seen| one.resident.saturating_add(one.tables);
        let left = |pid: i32| seen.iter().find(|one| one.pid == pid).map(bytes).filter(|bytes| *bytes > 0);
        // Nobody is to be killed for what those had who have just ended.
        self.dying.extend(super::take_ended());
        self.dying.retain(|pid, since| since.elapsed() < PATIENCE && left(*pid).is_some());
        let coming = self.dying.keys().filter_map(|pid| left(*pid)).fold(0, u64::saturating_add);
        let mut excess = used.saturating_sub(self.limit).saturating_sub(coming);
        if excess == 0 {
            self.waited = None;
            return;
        }
        // The allocator keeps what pipes and the like have given back.
        if super::sentry_holds() > self.limit / 16 && self.trimmed < TRIMS {
            platform::trim_heap();
            self.trimmed += 1;
            return;
        }
        let (mut spaces, known) = self.candidates(seen);
        spaces.reverse();
        if let Some(stray) = self.stray(seen, &known)
            && spaces.last().is_none_or(|best| self.points(&stray, 0) > best.points)
        {
            // Made by hand, behind the kernel's back: it has no number and no parent inside.
            platform::kill_process(stray.pid);
            self.dying.insert(stray.pid, Instant::now());
            self.tell(0, "(unknown)", stray.resident, used);
            return;
        }
        // A larger one that is not known yet is either of these soon. That holds for one wait, however many come.
        let newest = self.largest_unknown(seen, &known);
        if newest.is_some_and(|new| spaces.last().is_none_or(|best| self.points(&new, 0) > best.points))
            && self.waited.get_or_insert_with(Instant::now).elapsed() <= UNKNOWN
        {
            return;
        }
        // The others only if they are of its kind: what is over may be in nobody's memory, such as what pipes hold.
        let least = spaces.last().map_or(0, |best| best.points / 2);
        while excess > 0
            && let Some(victim) = spaces.pop()
            && victim.points >= least
        {
            self.kill(&victim, used);
            excess = excess.saturating_sub(bytes(&victim.seen));
        }
        crate::run::drain();
        // With it went what it had in pipes.
        self.trimmed = 0;
    }

    fn kill(&mut self, victim: &Candidate, used: u64) {
        self.dying.insert(victim.seen.pid, Instant::now());
        let program = String::from_utf8_lossy(&victim.process.exe.lock()).into_owned();
        self.tell(victim.process.pid, &program, victim.seen.resident, used);
        let sharing = |process: &Arc<Process>| {
            process.any_thread().is_some_and(|task| Arc::ptr_eq(&task.mm(), &victim.mm))
        };
        for process in self.kernel.tree.processes().iter().filter(|process| sharing(process)) {
            crate::task::exit::group(&self.kernel, process, WaitStatus::signaled(SIGKILL, false), None);
        }
        // If tasks of it are left somewhere, they are not to fill memory meanwhile.
        victim.mm.space.kill();
    }

    fn points(&self, seen: &Seen, adj: i32) -> i64 {
        let total = i64::try_from(self.limit / PAGE).unwrap_or(i64::MAX);
        points(seen.resident.saturating_add(seen.tables), adj, total)
    }

    /// What may be killed, and the host processes that the kernel knows.
    fn candidates(&self, seen: &[Seen]) -> (Vec<Candidate>, Vec<i32>) {
        let by_pid: HashMap<i32, &Seen> = seen.iter().map(|one| (one.pid, one)).collect();
        let (mut spaces, mut known) = (Vec::new(), Vec::new());
        let mut spared = Vec::new();
        for process in self.kernel.tree.processes() {
            let Some(task) = process.any_thread() else { continue };
            let mm = task.mm();
            let pid = mm.space.host_pid();
            known.push(pid);
            let Some(seen) = by_pid.get(&pid) else { continue };
            let adj = process.oom_score_adj.load(Relaxed);
            if adj == NEVER {
                spared.push(pid);
                continue;
            }
            let points = self.points(seen, adj);
            spaces.push(Candidate { mm, process, seen: **seen, points });
        }
        // Who shares memory with a spared one would give nothing back; a space is given up once.
        spaces.retain(|one| !spared.contains(&one.seen.pid) && !self.dying.contains_key(&one.seen.pid));
        spaces.sort_by_key(|one: &Candidate| std::cmp::Reverse(one.points));
        let mut once = HashSet::new();
        spaces.retain(|one| once.insert(one.seen.pid));
        (spaces, known)
    }

    /// The largest host process that the kernel has not known for a while.
    fn stray(&mut self, seen: &[Seen], known: &[i32]) -> Option<Seen> {
        let now = Instant::now();
        let large = |one: &&Seen| {
            one.resident > SMALL && !known.contains(&one.pid) && !self.dying.contains_key(&one.pid)
        };
        let strays: Vec<Seen> = seen.iter().filter(large).copied().collect();
        self.unknown.retain(|pid, _| strays.iter().any(|one| one.pid == *pid));
        for one in &strays {
            self.unknown.entry(one.pid).or_insert(now);
        }
        let limit = self.limit;
        let old = |one: &Seen| {
            let patience = if one.resident > limit { UNKNOWN_LARGE } else { UNKNOWN };
            self.unknown.get(&one.pid).is_some_and(|since| now.duration_since(*since) > patience)
        };
        strays.into_iter().filter(old).max_by_key(|one| one.resident)
    }

    /// The largest host process that the kernel does not know and that is not dying.
    fn largest_unknown(&self, seen: &[Seen], known: &[i32]) -> Option<Seen> {
        let candidates =
            seen.iter().filter(|one| self.unknown.contains_key(&one.pid) && !known.contains(&one.pid));
        candidates.filter(|one| !self.dying.contains_key(&one.pid)).max_by_key(|one| one.resident).copied()
    }

    fn tell(&self, pid: i32, program: &str, resident: u64, used: u64) {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        (self.say)(format!(
            "lazaret: out of memory: killed {pid} ({program}), {} MiB resident; {} MiB in use, the limit is {} MiB\n",
            mib(resident),
            mib(used),
            mib(self.limit)
        ));
        self.kernel.report.oom_kill(OomKill {
            pid,
            program: program.to_owned(),
            resident,
            limit: self.limit,
        });
    }
}
