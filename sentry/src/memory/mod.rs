//! A limit on the memory of all programs of a sandbox together (`lazaret do --memory`).
//!
//! What guests use is the host's affair: their memory is that of their host processes. A process beside the sandbox, the
//! meter (`cli/src/meter.rs`), looks at these from outside, as any user may at the own processes; no control group is
//! needed. It adds what the sentry has grown by. The sentry knows what no process has mapped: files in memory, each page
//! once ([`holds`]). When all of it is more than the limit, [`oom`] kills somebody.
//!
//! Without the option nothing here is set, and each question is one load.

pub mod areas;
pub mod look;
mod oom;
pub mod wire;

pub use oom::score;

use crate::kernel::Kernel;
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;
use wire::{Asked, Told};

/// What is known of the use of memory.
struct Memory {
    limit: u64,
    meter: OwnedFd,
    /// Bytes, as the meter said last.
    guests: AtomicU64,
    sentry: AtomicU64,
    /// What the sentry's heap had at the start, and what may have come to it since it was looked at.
    heap_at_start: u64,
    grown: AtomicU64,
    /// Bytes in memory files at the last count, when that was, and what was written to files and given up since.
    counted: AtomicU64,
    counted_at: AtomicU64,
    since: AtomicI64,
    /// What the meter knows of the sum.
    told: AtomicU64,
    files: parking_lot::Mutex<Vec<[Weak<OwnedFd>; 2]>>,
    /// The meter does not look before it is told that a task goes on.
    asleep: AtomicBool,
    /// Host processes of programs that ended, and when: for a moment they have their memory still.
    ended: parking_lot::Mutex<VecDeque<(i32, Instant)>>,
    /// Forks that are under way.
    forks: parking_lot::Mutex<Vec<oom::Fork>>,
}

/// Name of the thread that hears the meter and kills.
pub const THREAD: &str = "memory";
/// Ended programs that are remembered.
const ENDED: usize = 4096;

// A process has one sandbox.
static MEMORY: OnceLock<Memory> = OnceLock::new();

/// Sets the limit, in bytes; `meter` is the socket to the meter. Once, before the sandbox is built.
pub fn set(limit: u64, meter: OwnedFd) {
    let none = || AtomicU64::new(0);
    let _ = MEMORY.set(Memory {
        limit,
        meter,
        guests: none(),
        sentry: none(),
        heap_at_start: platform::heap_in_use(),
        grown: none(),
        counted: none(),
        counted_at: none(),
        since: AtomicI64::new(0),
        told: none(),
        files: Default::default(),
        asleep: AtomicBool::new(false),
        ended: Default::default(),
        forks: Default::default(),
    });
}

/// A program ended that had this host process: what that one has is on its way back.
pub(crate) fn ended(host_pid: i32) {
    if let Some(memory) = MEMORY.get() {
        let mut ended = memory.ended.lock();
        if ended.len() >= ENDED {
            ended.pop_front();
        }
        ended.push_back((host_pid, Instant::now()));
    }
}

/// Those that ended since this was asked last.
fn take_ended() -> VecDeque<(i32, Instant)> {
    MEMORY.get().map(|memory| std::mem::take(&mut *memory.ended.lock())).unwrap_or_default()
}

/// The host is about to copy this host process. To be held until the copy's task is in the tree.
pub(crate) fn forking(host_pid: i32) -> Option<Forking> {
    let memory = MEMORY.get()?;
    let fork = oom::Fork { of: host_pid, since: Instant::now() };
    memory.forks.lock().push(fork);
    Some(Forking(fork))
}

/// See [`forking`].
pub(crate) struct Forking(oom::Fork);

impl Drop for Forking {
    fn drop(&mut self) {
        let mut forks = MEMORY.get().map(|memory| memory.forks.lock());
        if let Some(forks) = &mut forks
            && let Some(at) = forks.iter().position(|fork| *fork == self.0)
        {
            forks.swap_remove(at);
        }
    }
}

fn forks() -> Vec<oom::Fork> {
    MEMORY.get().map(|memory| memory.forks.lock().clone()).unwrap_or_default()
}

/// Starts the thread that hears the meter. `say` gets lines for the user, `lost` is called when the meter is gone.
///
/// # Errors
/// One line that says what failed.
pub fn serve(
    kernel: &Arc<Kernel>,
    say: Box<dyn Fn(String) + Send>,
    lost: fn(&'static str) -> !,
) -> Result<(), String> {
    let Some(memory) = MEMORY.get() else { return Ok(()) };
    let kernel = kernel.clone();
    let thread = std::thread::Builder::new().name(THREAD.into()).stack_size(256 * 1024);
    let body = move || {
        let mut killer = oom::Killer::new(kernel.clone(), memory.limit, say);
        Told::Held(memory.count()).send(&memory.meter);
        while let Some(asked) = Asked::receive(&memory.meter) {
            match asked {
                Asked::Used { guests, sentry } => {
                    memory.guests.store(guests, Relaxed);
                    memory.sentry.store(sentry, Relaxed);
                }
                Asked::Count => Told::Held(memory.count()).send(&memory.meter),
                Asked::Quiet => Told::Quiet(memory.quiet(&kernel)).send(&memory.meter),
                Asked::Over { used, held, seen } => {
                    let now = memory.count();
                    let used = used.saturating_sub(held.saturating_sub(now));
                    Told::Held(now).send(&memory.meter);
                    if used > memory.limit {
                        killer.over(used, &seen);
                    }
                    Told::Done.send(&memory.meter);
                }
            }
        }
        lost("the process that meters memory")
    };
    thread.spawn(body).map(drop).map_err(|e| format!("starting a thread: {e}"))
}

/// The limit in bytes, if there is one.
#[inline]
pub fn limit() -> Option<u64> {
    MEMORY.get().map(|memory| memory.limit)
}

/// Bytes that the sandbox has: the limit's, else the host's.
pub fn total() -> u64 {
    let host = rustix::system::sysinfo();
    let total = (host.totalram as u64).saturating_mul(host.mem_unit.max(1).into());
    limit().map_or(total, |limit| total.min(limit))
}

/// Bytes that the sandbox has, and how many of them are free: the limit's, else the host's.
pub fn total_and_free() -> (u64, u64) {
    let host = rustix::system::sysinfo();
    let unit = u64::from(host.mem_unit.max(1));
    let (total, free) =
        ((host.totalram as u64).saturating_mul(unit), (host.freeram as u64).saturating_mul(unit));
    match MEMORY.get() {
        None => (total, free),
        Some(memory) => {
            let total = total.min(memory.limit);
            memory.recount();
            (total, total.saturating_sub(memory.used()))
        }
    }
}

/// Whether so many bytes more than are in use may be. Nothing is reserved.
pub fn room_for(more: u64) -> bool {
    let Some(memory) = MEMORY.get() else { return true };
    memory.look_at_heap(more);
    let fits = |used: u64| used.saturating_add(more) <= memory.limit;
    fits(memory.used()) || memory.recount() && fits(memory.used())
}

/// Bytes that the sentry has grown by.
fn sentry_holds() -> u64 {
    MEMORY.get().map_or(0, |memory| memory.sentry.load(Relaxed))
}

/// Whether memory of this length is obviously too much, as Linux judges it unless it is told otherwise
/// (`__vm_enough_memory` with vm.overcommit_memory 0).
#[inline]
pub fn obviously_too_much(len: u64) -> bool {
    limit().is_some_and(|limit| len > limit)
}

/// So many bytes were written to files in memory.
pub fn took(more: u64) {
    if let Some(memory) = MEMORY.get() {
        memory.changed(i64::try_from(more).unwrap_or(i64::MAX));
    }
}

/// So many bytes of files in memory were given up.
pub fn gave(less: u64) {
    if let Some(memory) = MEMORY.get() {
        memory.changed(i64::try_from(less).map_or(i64::MIN, |less| -less));
    }
}

/// A memory file has been made: it counts as long as one of these descriptors of it is held.
pub fn holds(fd: &Arc<OwnedFd>, other: &Arc<OwnedFd>) {
    let Some(memory) = MEMORY.get() else { return };
    let mut files = memory.files.lock();
    if files.len() == files.capacity() {
        files.retain(|both| both.iter().any(|fd| fd.strong_count() > 0));
    }
    files.push([Arc::downgrade(fd), Arc::downgrade(other)]);
}

/// A task that waited goes on.
#[inline]
pub(crate) fn stir() {
    if let Some(memory) = MEMORY.get()
        && memory.asleep.load(SeqCst)
        && memory.asleep.swap(false, SeqCst)
    {
        Told::Stir.send(&memory.meter);
    }
}

impl Memory {
    fn held(&self) -> u64 {
        self.counted.load(Relaxed).saturating_add_signed(self.since.load(Relaxed))
    }

    fn used(&self) -> u64 {
        self.guests.load(Relaxed).saturating_add(self.sentry.load(Relaxed)).saturating_add(self.held())
    }

    /// `more` bytes may come to the heap: looks at it by itself once they are many. The meter sees how it grows, but what is
    /// written to pipes while it waits for a processor is not to be without a limit.
    fn look_at_heap(&self, more: u64) {
        let grown = self.grown.fetch_add(more, Relaxed).saturating_add(more);
        if grown > self.limit / 16 && self.grown.swap(0, Relaxed) > 0 {
            let heap = platform::heap_in_use().saturating_sub(self.heap_at_start);
            self.sentry.fetch_max(heap, Relaxed);
        }
    }

    fn changed(&self, by: i64) {
        self.since.fetch_add(by, Relaxed);
        let (held, told) = (self.held(), self.told.load(Relaxed));
        if held.abs_diff(told) > self.limit / 64
            && self.told.compare_exchange(told, held, Relaxed, Relaxed).is_ok()
        {
            Told::Held(held).send(&self.meter);
        }
    }

    /// Counts anew, unless that was done just now.
    fn recount(&self) -> bool {
        let now = u64::try_from(crate::time::now().as_millis()).unwrap_or(u64::MAX);
        let anew = self.counted_at.swap(now, Relaxed) != now;
        if anew {
            self.count();
        }
        anew
    }

    /// Counts the pages of all memory files: guests make them by touching what they have mapped.
    fn count(&self) -> u64 {
        let before = self.since.load(Relaxed);
        let mut files = self.files.lock();
        files.retain(|both| both.iter().any(|fd| fd.strong_count() > 0));
        let all: Vec<_> = files.iter().filter_map(|both| both.iter().find_map(Weak::upgrade)).collect();
        drop(files);
        let blocks = |fd: &Arc<OwnedFd>| rustix::fs::fstat(fd).map_or(0, |stat| stat.st_blocks);
        let held = all.iter().map(|fd| u64::try_from(blocks(fd)).unwrap_or(0).saturating_mul(512));
        let held = held.fold(0, u64::saturating_add);
        self.counted.store(held, Relaxed);
        self.since.fetch_sub(before, Relaxed);
        self.told.store(held, Relaxed);
        held
    }

    /// Whether all tasks wait for something. From then on the meter is told of the first that goes on.
    fn quiet(&self, kernel: &Kernel) -> bool {
        self.asleep.store(true, SeqCst);
        let tasks: Vec<_> = kernel.tree.lock().tasks.values().cloned().collect();
        let quiet = tasks.iter().all(|task| task.waiter.is_parked());
        // Told already, if it is no longer true.
        if !quiet {
            self.asleep.store(false, SeqCst);
        }
        quiet
    }
}
