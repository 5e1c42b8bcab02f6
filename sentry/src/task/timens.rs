//! Offsets of clocks by namespace (time_namespaces(7)).
//!
//! A process joins the namespace of its parent's children when it executes a program, not when it is made: clocks are read
//! in guests' own code, from the host's vDSO, which knows no offsets and cannot be changed there. A program that starts in
//! a namespace with offsets has no vDSO and asks the kernel.

use super::Task;
use super::namespaces::new_ino;
use super::userns::UserNs;
use crate::fail::SysResult;
use crate::time::Base;
use parking_lot::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use syscall_table::errno::Errno;

/// Most of them at once.
const MOST: usize = 4096;
/// Seconds that a clock may show at most: half of what 63 bits of nanoseconds hold.
const SECONDS: i64 = i64::MAX / 1_000_000_000 / 2;

/// How far its clocks are ahead of the sandbox's, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offsets {
    /// CLOCK_MONOTONIC and those like it.
    pub monotonic: i64,
    /// CLOCK_BOOTTIME and those like it.
    pub boottime: i64,
}

impl Offsets {
    /// That of a clock; of real time there is none.
    pub fn of(&self, base: Base) -> i64 {
        match base {
            Base::Monotonic => self.monotonic,
            Base::Boottime => self.boottime,
            Base::Real => 0,
        }
    }
}

#[derive(Default)]
struct State {
    offsets: Offsets,
    /// Somebody has been in it: they stay as they are.
    frozen: bool,
}

/// A time namespace.
pub struct TimeNs {
    /// Number in /proc/PID/ns/time.
    pub ino: u64,
    /// Whose rights count in it.
    pub owner: Arc<UserNs>,
    /// A leaf lock: nothing else is taken while it is held.
    state: Mutex<State>,
}

static COUNT: AtomicUsize = AtomicUsize::new(0);

impl Drop for TimeNs {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Relaxed);
    }
}

impl TimeNs {
    fn new(ino: u64, owner: Arc<UserNs>, state: State) -> Arc<TimeNs> {
        COUNT.fetch_add(1, Relaxed);
        Arc::new(TimeNs { ino, owner, state: Mutex::new(state) })
    }

    /// The sandbox's.
    pub fn first() -> Arc<TimeNs> {
        static FIRST: OnceLock<Arc<TimeNs>> = OnceLock::new();
        let new = || TimeNs::new(4_026_531_834, UserNs::first(), State { frozen: true, ..State::default() });
        FIRST.get_or_init(new).clone()
    }

    /// One with the same offsets, which may be changed until somebody is in it.
    ///
    /// # Errors
    /// ENOSPC: there are too many.
    pub(crate) fn copy(&self, owner: Arc<UserNs>) -> SysResult<Arc<TimeNs>> {
        if COUNT.load(Relaxed) > MOST {
            return Err(Errno::ENOSPC.into());
        }
        Ok(TimeNs::new(new_ino(), owner, State { offsets: self.offsets(), frozen: false }))
    }

    /// How far its clocks are ahead.
    pub fn offsets(&self) -> Offsets {
        self.state.lock().offsets
    }

    /// Somebody is in it.
    pub(crate) fn freeze(&self) {
        self.state.lock().frozen = true;
    }

    /// Changes offsets: seconds, nanoseconds below a second, of a clock.
    ///
    /// # Errors
    /// EACCES: somebody has been in it. ERANGE: a clock would be before its start, or too far ahead.
    pub(crate) fn set(&self, changes: &[(Base, i64, i64)]) -> SysResult<()> {
        let mut state = self.state.lock();
        let mut offsets = state.offsets;
        for (base, seconds, nanos) in changes {
            let now = i64::try_from(base.now().as_secs()).unwrap_or(i64::MAX);
            let least = -SECONDS * 2;
            let at = now.checked_add(*seconds).filter(|at| (0..=SECONDS).contains(at));
            if at.is_none() || *seconds < least {
                return Err(Errno::ERANGE.into());
            }
            let whole = seconds.checked_mul(1_000_000_000).and_then(|whole| whole.checked_add(*nanos));
            let whole = whole.ok_or(Errno::ERANGE)?;
            match base {
                Base::Monotonic => offsets.monotonic = whole,
                Base::Boottime => offsets.boottime = whole,
                Base::Real => return Err(Errno::EINVAL.into()),
            }
        }
        if state.frozen {
            return Err(Errno::EACCES.into());
        }
        state.offsets = offsets;
        Ok(())
    }
}

/// Lines of /proc/PID/timens_offsets, in their order.
pub(crate) fn show(offsets: Offsets) -> String {
    let line = |name: &str, value: i64| {
        let (seconds, nanos) = (value.div_euclid(1_000_000_000), value.rem_euclid(1_000_000_000));
        format!("{name:<10} {seconds:>10} {nanos:>9}\n")
    };
    line("monotonic", offsets.monotonic) + &line("boottime", offsets.boottime)
}

/// What is written to /proc/PID/timens_offsets: a clock, seconds and nanoseconds in each line, two of them at most.
///
/// # Errors
/// EINVAL.
pub(crate) fn parse(text: &[u8]) -> SysResult<Vec<(Base, i64, i64)>> {
    let text = std::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
    let mut changes = Vec::new();
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n').take(2) {
        let mut words = line.split_ascii_whitespace();
        let base = match words.next() {
            Some("monotonic" | "1") => Base::Monotonic,
            Some("boottime" | "7") => Base::Boottime,
            _ => return Err(Errno::EINVAL.into()),
        };
        let mut number = || words.next().and_then(|word| word.parse::<i64>().ok()).ok_or(Errno::EINVAL);
        let (seconds, nanos) = (number()?, number()?);
        if !(0..1_000_000_000).contains(&nanos) {
            return Err(Errno::EINVAL.into());
        }
        changes.push((base, seconds, nanos));
    }
    Ok(changes)
}

impl Task {
    /// How far its clocks are ahead of the sandbox's.
    pub(crate) fn clock_offsets(&self) -> Offsets {
        self.namespaces.lock().time.offsets()
    }

    /// At execve(2), with new memory: it joins the namespace of its children.
    pub(crate) fn join_time(&self) {
        let mut own = self.namespaces.lock();
        if own.time.ino != own.time_for_children.ino {
            own.time = own.time_for_children.clone();
            own.time.freeze();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let both = parse(b"monotonic 5 6\nboottime -7 8\n").unwrap_or_default();
        assert_eq!(both, [(Base::Monotonic, 5, 6), (Base::Boottime, -7, 8)]);
        assert_eq!(parse(b"7 1 0").unwrap_or_default(), [(Base::Boottime, 1, 0)]);
        for bad in
            [&b""[..], b"\n", b"realtime 1 2", b"1 2", b"1 2 1000000000", b"1 2 -1", b"1 x 2", b"\xff 1 2"]
        {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn negative_offsets_have_positive_nanoseconds() {
        let offsets = Offsets { monotonic: -1_500_000_000, boottime: 2 };
        assert_eq!(show(offsets), "monotonic          -2 500000000\nboottime            0         2\n");
    }
}
