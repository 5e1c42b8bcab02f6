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
/// How long a host process may be one that the kernel does not know, besides those that a fork is making just now.
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
    dying: Dying,
    /// How often the allocator gave back what is free since the last victim.
    trimmed: u32,
    /// Large host processes that the kernel does not know, and since when.
    unknown: HashMap<i32, Instant>,
    /// Since when one that may be such a process has kept others from being killed.
    waited: Option<Instant>,
}

/// Host processes of victims, and of who ended by itself, that may have memory still, and since when.
#[derive(Default)]
struct Dying(HashMap<i32, Instant>);

impl Dying {
    /// Those that are seen still, and none that has a number anew: who was given it lives.
    fn keep(&mut self, seen: &[Seen], living: &[i32]) {
        let there = |pid: &i32| seen.iter().any(|one| one.pid == *pid && bytes(one) > 0);
        self.0.retain(|pid, since| since.elapsed() < PATIENCE && there(pid) && !living.contains(pid));
    }

    fn add(&mut self, pid: i32) {
        self.0.insert(pid, Instant::now());
    }

    fn has(&self, pid: i32) -> bool {
        self.0.contains_key(&pid)
    }

    /// What they will give back.
    fn bytes(&self, seen: &[Seen]) -> u64 {
        seen.iter().filter(|one| self.has(one.pid)).map(bytes).fold(0, u64::saturating_add)
    }
}

fn bytes(one: &Seen) -> u64 {
    one.resident.saturating_add(one.tables)
}

/// A fork that is under way: its child is there before the kernel knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fork {
    /// Host process of the parent.
    pub(super) of: i32,
    pub(super) since: Instant,
}

impl Fork {
    /// Whether an unknown process that was seen first `at` a time can be its child, which is as large as the parent: one that
    /// grows beyond it runs by itself. Of a parent that is to be spared nobody knows how long it would hide others.
    fn may_be(&self, one: &Seen, at: Instant, spaces: &[Candidate]) -> bool {
        let parent = spaces.iter().find(|space| space.seen.pid == self.of);
        self.since <= at
            && parent.is_some_and(|parent| one.resident <= parent.seen.resident.saturating_add(SMALL))
    }
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
            dying: Dying::default(),
            trimmed: 0,
            unknown: HashMap::new(),
            waited: None,
        }
    }

    /// More is in use than the limit, by these processes. Kills as many as are in the way: a look takes its time, and who
    /// forks without end would be faster than one kill for each.
    pub(super) fn over(&mut self, used: u64, seen: &[Seen]) {
        // Asked before the tree is: who is not in it yet then is the child of one of these.
        let forks = super::forks();
        // Nobody is to be killed for what those had who have just ended.
        let ended = super::take_ended();
        let (mut spaces, known) = self.candidates(seen);
        self.dying.0.extend(ended);
        self.dying.keep(seen, &known);
        spaces.retain(|one| !self.dying.has(one.seen.pid));
        let coming = self.dying.bytes(seen);
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
        spaces.reverse();
        if let Some(stray) = self.stray(seen, &known, &forks, &spaces)
            && spaces.last().is_none_or(|best| self.points(&stray, 0) > best.points)
        {
            // Made by hand, behind the kernel's back: it has no number and no parent inside.
            platform::kill_process(stray.pid);
            self.dying.add(stray.pid);
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
        self.dying.add(victim.seen.pid);
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
        points(bytes(seen), adj, total)
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
        spaces.retain(|one| !spared.contains(&one.seen.pid));
        spaces.sort_by_key(|one: &Candidate| std::cmp::Reverse(one.points));
        let mut once = HashSet::new();
        spaces.retain(|one| once.insert(one.seen.pid));
        (spaces, known)
    }

    /// The largest host process that the kernel has not known for a while.
    fn stray(&mut self, seen: &[Seen], known: &[i32], forks: &[Fork], spaces: &[Candidate]) -> Option<Seen> {
        let now = Instant::now();
        let large =
            |one: &&Seen| one.resident > SMALL && !known.contains(&one.pid) && !self.dying.has(one.pid);
        let strays: Vec<Seen> = seen.iter().filter(large).copied().collect();
        self.unknown.retain(|pid, _| strays.iter().any(|one| one.pid == *pid));
        for one in &strays {
            self.unknown.entry(one.pid).or_insert(now);
        }
        let limit = self.limit;
        let old = |one: &Seen| {
            let patience = if one.resident > limit { UNKNOWN_LARGE } else { UNKNOWN };
            self.unknown.get(&one.pid).is_some_and(|since| {
                now.duration_since(*since) > patience
                    && !forks.iter().any(|fork| fork.may_be(one, *since, spaces))
            })
        };
        strays.into_iter().filter(old).max_by_key(|one| one.resident)
    }

    /// The largest host process that the kernel does not know and that is not dying.
    fn largest_unknown(&self, seen: &[Seen], known: &[i32]) -> Option<Seen> {
        let candidates =
            seen.iter().filter(|one| self.unknown.contains_key(&one.pid) && !known.contains(&one.pid));
        candidates.filter(|one| !self.dying.has(one.pid)).max_by_key(|one| one.resident).copied()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(pid: i32, resident: u64) -> Seen {
        Seen { pid, resident, tables: 0 }
    }

    #[test]
    fn a_number_that_was_given_again_is_not_dying() {
        let mut dying = Dying::default();
        [7, 8, 9].into_iter().for_each(|pid| dying.add(pid));
        // 8 has given all back; 7 is the number of somebody who lives and fills memory.
        let all = [seen(7, 100 << 20), seen(8, 0), seen(9, 1 << 20)];
        dying.keep(&all, &[7]);
        assert_eq!(dying.bytes(&all), 1 << 20);
        assert_eq!([7, 8, 9].map(|pid| dying.has(pid)), [false, false, true]);
    }
}
