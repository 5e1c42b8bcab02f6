//! `lazaret-meter`: looks at how much memory the sandbox uses, for `--memory`.
//!
//! A process of its own, which job control does not stop with the launcher. It sees the guests' host processes as any user
//! sees the own ones, in /proc: all are children of the sentry. How often it looks follows from how much is left: never so
//! seldom that the processors could fill it meanwhile. A process that has used no CPU time since the last look has changed
//! nothing and is not read again; when all tasks wait, it sleeps until the sentry tells it that one goes on.
//!
//! What counts, in bytes:
//! - private memory of the guests (RssAnon, VmSwap) and their page tables, which are read at each look;
//! - what the sentry has grown by since the start: pipes, sockets, small files;
//! - what the sentry holds in memory files, as it says, each page once whoever maps it;
//! - pages of such files that a guest has mapped and the sentry does not know of any more.
//!
//! Pages that processes share after a fork are in the RssAnon of each. As long as the sum is within the limit that does
//! not matter. If it is not, each process's part is read (smaps_rollup), which walks its page tables; until that may have
//! changed by too much again (page faults count, which is how a copy is made), it is not read again.

pub mod filter;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal, setsid};
use rustix::time::{ClockId, clock_gettime};
use sentry::memory::THREAD;
use sentry::memory::wire::{Asked, MOST_SEEN, Next, Seen, Told};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Bytes that one processor fills in a second at most, about: the host clears pages no faster.
const RATE: u64 = 4 << 30;
/// Shortest and longest time between two looks.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(250);
/// When it looks all the same although all tasks wait: a thread that a guest has made by hand could have been kept from
/// running for so long that it seemed to wait.
const ASLEEP: Duration = Duration::from_secs(2);
/// A look may cost one part in so many of the processor's time. What it waits for a processor is no cost: it would be
/// blind for so much longer just where others fill memory.
const SHARE: u32 = 10;
/// Looks without any use of CPU time before the sentry is asked whether all tasks wait; and again after twice, four times
/// as many, and so on: who waits for a processor does not, and uses none.
const QUIET: u32 = 2;
/// How long it runs at a time, in nanoseconds: less than others, so that the host need not let it wait for long.
const SLICE: u64 = 100_000;
/// How long memory may stay over the limit by more than a quarter before the sandbox is ended: the sentry kills nobody.
const STUBBORN: Duration = Duration::from_secs(10);
/// When the sentry is told again that memory is over, although it has not dealt with that.
const ACTS: Duration = Duration::from_millis(200);
const PAGE: u64 = 4096;
/// What every process has of the shared areas by which it speaks to the sentry.
const AREAS: u64 = 256 << 10;

/// Starts the meter as a child of this process, which must have one thread. Gives its pid.
pub fn start(limit: u64, sentry: i32, socket: &OwnedFd) -> Result<i32, String> {
    let launcher = rustix::process::getpid();
    match confine::enter::helper(&[socket.as_raw_fd()], c"lazaret-meter") {
        Ok(Some(pid)) => Ok(pid),
        Ok(None) => {
            let _ = rustix::thread::set_name(c"lazaret-meter");
            let _ = setsid();
            if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
                let _ = rustix::stdio::dup2_stdin(&null);
                let _ = rustix::stdio::dup2_stdout(&null);
            }
            // It has little to do, but that at once. Root may have it so.
            let _ = rustix::process::setpriority_process(None, -10);
            // The owner of the guests' namespaces may look into them without any.
            let _ = rustix::thread::set_no_new_privs(true);
            if rustix::process::geteuid().is_root() {
                let _ = confine::capabilities::keep_only(rustix::thread::CapabilitySet::empty());
            }
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            if getppid() == Some(launcher) {
                let socket = confine::host::inherited(socket.as_raw_fd());
                if let Ok(mut meter) = socket.and_then(|socket| Meter::new(limit, sentry, socket)) {
                    meter.run();
                }
            }
            confine::host::exit_now(0)
        }
        Err(error) => Err(format!("starting the process that meters memory: {error}")),
    }
}

/// A process's figures of /proc/PID/status.
#[derive(Default, Clone, Copy)]
pub struct Figures {
    /// Id in the sentry's pid namespace.
    pub inner: i32,
    pub sizes: sentry::memory::look::Figures,
}

impl Figures {
    pub fn read(status: &File) -> io::Result<Figures> {
        let text = read_all(status)?;
        let mut figures = Figures::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let kib =
                || value.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) << 10;
            match name {
                "NSpid" => {
                    figures.inner = value.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
                }
                "RssAnon" => figures.sizes.anon = kib(),
                "RssFile" => figures.sizes.file = kib(),
                "RssShmem" => figures.sizes.shmem = kib(),
                "VmPTE" => figures.sizes.tables = kib(),
                "VmSwap" => figures.sizes.swap = kib(),
                "VmHWM" => figures.sizes.peak = kib(),
                _ => {}
            }
        }
        Ok(figures)
    }

    fn private(&self) -> u64 {
        self.sizes.anon.saturating_add(self.sizes.swap)
    }

    fn resident(&self) -> u64 {
        self.private().saturating_add(self.sizes.file).saturating_add(self.sizes.shmem)
    }

    /// Pages of memory files that it has mapped.
    fn mapped(&self) -> u64 {
        self.sizes.shmem.saturating_sub(AREAS)
    }
}

/// A guest's host process.
struct Guest {
    status: File,
    cpu: Duration,
    now: Figures,
    /// Since parts were read: page faults then, and private and mapped memory then.
    faults: u64,
    then: Figures,
}

/// What was found when parts were read.
struct Parts {
    /// Private memory, each page once; and mapped memory files.
    anon: u64,
    mapped: u64,
    /// When, and what it cost.
    at: Instant,
    cost: Duration,
}

struct Meter {
    limit: u64,
    processors: u64,
    sentry_pid: i32,
    socket: OwnedFd,
    /// Where the sentry's threads list their children: those that have any.
    children: Vec<File>,
    sentry: File,
    /// The sentry's private memory at the start, and now.
    sentry_at_start: u64,
    sentry_now: u64,
    guests: BTreeMap<i32, Guest>,
    /// What the sentry holds in memory files, and what guests had mapped when it said so.
    held: u64,
    mapped_then: u64,
    parts: Option<Parts>,
    /// What the sentry was told last.
    told: (u64, u64),
    over_since: Option<Instant>,
    /// When the sentry was told that memory is over, until it has dealt with that.
    said_over: Option<Instant>,
}

/// What a look found.
struct Look {
    /// Somebody has used CPU time.
    busy: bool,
    cost: Duration,
}

impl Meter {
    fn new(limit: u64, sentry: i32, socket: OwnedFd) -> io::Result<Meter> {
        Ok(Meter {
            limit,
            processors: crate::processors() as u64,
            sentry_pid: sentry,
            socket,
            children: Vec::new(),
            sentry: File::open(format!("/proc/{sentry}/status"))?,
            sentry_at_start: 0,
            sentry_now: 0,
            guests: BTreeMap::new(),
            held: 0,
            mapped_then: 0,
            parts: None,
            told: (0, 0),
            over_since: None,
            said_over: None,
        })
    }

    fn run(&mut self) {
        // The first word says that the sentry is ready to start the program.
        if !self.wait(None) || !self.hear(&mut false, &mut false) {
            return;
        }
        self.hurry();
        // The library finds the clock's function the first time.
        used();
        // From here on it reads and waits, and no more.
        let filter = filter::assemble(self.socket.as_raw_fd().unsigned_abs(), self.sentry_pid.unsigned_abs());
        if confine::host::filter_all_threads(&filter).is_err() {
            return;
        }
        let Ok(children) = parents(self.sentry_pid) else { return };
        self.children = children;
        self.sentry_at_start = Figures::read(&self.sentry).map_or(0, |figures| figures.private());
        let (mut asleep, mut idle) = (false, 0u32);
        let mut pause = SHORTEST;
        loop {
            if !self.wait(Some(if asleep { ASLEEP } else { pause })) {
                return;
            }
            let mut stirred = false;
            if !self.hear(&mut asleep, &mut stirred) {
                return;
            }
            let Ok(look) = self.look() else { return };
            idle = if look.busy || stirred { 0 } else { idle.saturating_add(1) };
            asleep &= !look.busy;
            let used = self.judge(&look);
            let room = self.limit.saturating_sub(used);
            let fastest = RATE.saturating_mul(self.processors);
            let until_full = Duration::from_secs_f64(room as f64 / fastest as f64);
            pause = until_full.clamp(SHORTEST, LONGEST).max(look.cost.saturating_mul(SHARE));
            if idle >= QUIET && idle.is_power_of_two() {
                self.tell(true);
                Asked::Quiet.send(&self.socket);
            }
        }
    }

    /// Asks the host to let this process, and the sentry's thread that kills, run soon after they are woken.
    fn hurry(&self) {
        let own = |thread: &fs::DirEntry| {
            fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.trim_end() == THREAD)
        };
        let threads = fs::read_dir(format!("/proc/{}/task", self.sentry_pid)).into_iter().flatten().flatten();
        let tids = threads.filter(own).filter_map(|thread| thread.file_name().to_str()?.parse().ok());
        for tid in tids.chain([0]) {
            // Linux 6.12; without it they wait for their turn.
            let _ = confine::host::run_briefly(tid, SLICE);
        }
    }

    /// Until something is to be heard, or the time is over. False when waiting is not possible.
    fn wait(&self, most: Option<Duration>) -> bool {
        let most =
            most.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() });
        matches!(
            poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], most.as_ref()),
            Ok(_) | Err(rustix::io::Errno::INTR)
        )
    }

    /// Takes what the sentry says; false at the end.
    fn hear(&mut self, asleep: &mut bool, stirred: &mut bool) -> bool {
        loop {
            match Told::next(&self.socket) {
                Next::Packet(Told::Held(bytes)) => {
                    self.held = bytes;
                    self.mapped_then = self.mapped();
                }
                Next::Packet(Told::Stir) => (*asleep, *stirred) = (false, true),
                Next::Packet(Told::Done) => self.said_over = None,
                Next::Packet(Told::Quiet(yes)) => *asleep = yes,
                Next::Nothing => return true,
                Next::End => return false,
            }
        }
    }

    /// The guests' host processes.
    fn list(&mut self) -> io::Result<String> {
        let all = |files: &[File]| files.iter().map(read_all).collect::<io::Result<String>>();
        all(&self.children).or_else(|_| {
            // A thread has ended, and another has its children.
            self.children = parents(self.sentry_pid)?;
            all(&self.children)
        })
    }

    /// Reads what may have changed.
    fn look(&mut self) -> io::Result<Look> {
        let begun = used();
        self.sentry_now = Figures::read(&self.sentry)?.private();
        let list = self.list()?;
        let pids: Vec<i32> = list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        let mut busy = false;
        let mut guests = BTreeMap::new();
        for pid in pids {
            let known = self.guests.remove(&pid);
            let Some(cpu) = platform::cpu_sum(pid) else { continue };
            if let Some(guest) = known.as_ref()
                && guest.cpu == cpu
            {
                guests.extend(known.map(|guest| (pid, guest)));
                continue;
            }
            busy = true;
            let old = known
                .and_then(|guest| Figures::read(&guest.status).ok().map(|now| Guest { cpu, now, ..guest }));
            // Gone, or its number was given again.
            let guest = old.or_else(|| Guest::new(pid, cpu).ok());
            guests.extend(guest.map(|guest| (pid, guest)));
        }
        busy |= !self.guests.is_empty();
        self.guests = guests;
        Ok(Look { busy, cost: used().saturating_sub(begun) })
    }

    fn sum(&self, of: impl Fn(&Figures) -> u64) -> u64 {
        self.guests.values().map(|guest| of(&guest.now)).fold(0, u64::saturating_add)
    }

    fn mapped(&self) -> u64 {
        self.sum(Figures::mapped)
    }

    /// What is in use at most, and who is to know it.
    fn judge(&mut self, look: &Look) -> u64 {
        let fixed = self.fixed();
        if self.mapped().saturating_sub(self.mapped_then) > self.limit / 64 {
            self.mapped_then = self.mapped();
            Asked::Count.send(&self.socket);
        }
        let most = fixed
            .saturating_add(self.sum(Figures::private))
            .saturating_add(self.held.saturating_add(self.mapped()));
        if most <= self.limit {
            self.parts = None;
            self.over_since = None;
            self.tell(false);
            return most;
        }
        let largest = self.guests.values().map(|guest| guest.now.private()).max().unwrap_or(0);
        let least = fixed.saturating_add(largest).saturating_add(self.held);
        let mut used = least;
        if least <= self.limit {
            used = self.at_most(fixed);
            let paced = |parts: &Parts| parts.at.elapsed() < parts.cost.saturating_mul(2);
            if used > self.limit && !(look.busy && self.parts.as_ref().is_some_and(paced)) {
                self.read_parts();
                // What was found is judged, not what may have come since.
                used = self.parts.as_ref().map_or(used, |parts| {
                    fixed.saturating_add(parts.anon).saturating_add(self.held.max(parts.mapped))
                });
            } else if used > self.limit {
                // Too soon to know.
                return self.limit;
            }
        }
        self.tell(false);
        if used > self.limit {
            self.over(used)
        } else {
            self.over_since = None
        }
        used
    }

    /// Page tables, and what the sentry has grown by.
    fn fixed(&self) -> u64 {
        self.sum(|figures| figures.sizes.tables)
            .saturating_add(self.sentry_now.saturating_sub(self.sentry_at_start))
    }

    /// What is in use at most, by the parts that were read and what may have come since.
    fn at_most(&self, fixed: u64) -> u64 {
        let Some(parts) = &self.parts else { return u64::MAX };
        let more = self.guests.iter().map(|(pid, guest)| {
            let grown = guest.now.private().saturating_sub(guest.then.private());
            // A fault copies a page, or finds one.
            let copied = match guest.faults {
                u64::MAX => 0,
                then => faults(*pid).saturating_sub(then).saturating_mul(PAGE),
            };
            grown.max(copied)
        });
        let anon = more.fold(parts.anon, u64::saturating_add);
        fixed.saturating_add(anon).saturating_add(self.held.max(parts.mapped))
    }

    fn read_parts(&mut self) {
        let (at, begun) = (Instant::now(), used());
        let (mut anon, mut mapped) = (0u64, 0u64);
        for (pid, guest) in &mut self.guests {
            guest.faults = faults(*pid);
            guest.then = guest.now;
            if guest.now.private() < PAGE * 256 && guest.now.mapped() == 0 {
                anon = anon.saturating_add(guest.now.private());
                continue;
            }
            match part(*pid) {
                Ok((own, files)) => {
                    anon = anon.saturating_add(own);
                    mapped = mapped.saturating_add(files.saturating_sub(AREAS));
                }
                // Gone, or not to be read: then all counts.
                Err(_) => anon = anon.saturating_add(guest.now.private()),
            }
        }
        self.parts = Some(Parts { anon, mapped, at, cost: used().saturating_sub(begun) });
    }

    /// Tells the sentry what is in use, if it is much else than it knows, or in any case.
    fn tell(&mut self, always: bool) {
        let anon = self.parts.as_ref().map_or_else(|| self.sum(Figures::private), |parts| parts.anon);
        let guests = anon.saturating_add(self.sum(|figures| figures.sizes.tables));
        let sentry = self.sentry_now.saturating_sub(self.sentry_at_start);
        let far = |one: u64, other: u64| one.abs_diff(other) > if always { 0 } else { self.limit / 256 };
        if far(guests, self.told.0) || far(sentry, self.told.1) {
            self.told = (guests, sentry);
            Asked::Used { guests, sentry }.send(&self.socket);
        }
    }

    fn over(&mut self, used: u64) {
        let since = *self.over_since.get_or_insert_with(Instant::now);
        if since.elapsed() > STUBBORN && used > self.limit.saturating_add(self.limit / 4) {
            crate::watch::say("lazaret: memory stays over its limit\n");
            let _ = Pid::from_raw(self.sentry_pid).map(|pid| kill_process(pid, Signal::KILL));
            return;
        }
        // What was found before it has acted says nothing of what is left.
        if self.said_over.is_some_and(|at| at.elapsed() < ACTS) {
            return;
        }
        self.said_over = Some(Instant::now());
        let seen = |guest: &Guest| Seen {
            pid: guest.now.inner,
            resident: guest.now.resident(),
            tables: guest.now.sizes.tables,
        };
        let mut all: Vec<Seen> = self.guests.values().map(seen).collect();
        all.sort_unstable_by_key(|one| std::cmp::Reverse(one.resident));
        all.truncate(MOST_SEEN);
        Asked::Over { used, held: self.held, seen: all }.send(&self.socket);
    }
}

impl Guest {
    fn new(pid: i32, cpu: Duration) -> io::Result<Guest> {
        let status = File::open(format!("/proc/{pid}/status"))?;
        let now = Figures::read(&status)?;
        Ok(Guest { status, cpu, now, faults: u64::MAX, then: Figures::default() })
    }
}

/// Which threads of the sentry have children. Guest processes are made with CLONE_PARENT, so that all are of the threads
/// that made the first ones.
pub fn parents(sentry: i32) -> io::Result<Vec<File>> {
    let mut parents = Vec::new();
    for thread in fs::read_dir(format!("/proc/{sentry}/task"))? {
        let Ok(file) = File::open(thread?.path().join("children")) else { continue };
        if read_all(&file).is_ok_and(|list| !list.is_empty()) {
            parents.push(file);
        }
    }
    if parents.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(parents) }
}

pub fn read_all(file: &File) -> io::Result<String> {
    let mut bytes = vec![0; 4096];
    loop {
        let length = file.read_at(&mut bytes, 0)?;
        if length < bytes.len() {
            bytes.truncate(length);
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        bytes.resize(bytes.len() * 2, 0);
    }
}

/// Processor time that this process, which has one thread, has used.
fn used() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Page faults of a process so far (minflt in proc_pid_stat(5)).
fn faults(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    behind_name.split_whitespace().nth(7).and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// A process's part of private memory and of memory files, in bytes: a page that several have counts in part for each.
fn part(pid: i32) -> io::Result<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
            << 10
    };
    Ok((kib("Pss_Anon:").saturating_add(kib("SwapPss:")), kib("Pss_Shmem:")))
}
