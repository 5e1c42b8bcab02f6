//! The processor's time stamp counter: what is measured on the way of every call must cost next to nothing.

use super::now;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

static START: OnceLock<(u64, Duration)> = OnceLock::new();

/// The counter now.
pub fn read() -> u64 {
    platform::tick_counter()
}

/// Nanoseconds of a tick, times 2^32; 0: not known yet.
static SCALE: AtomicU64 = AtomicU64::new(0);

/// Begins the comparison with the clock.
pub fn start() {
    START.get_or_init(|| (read(), now()));
}

/// Compares counter and clock anew: the longer since [`start`], the more exact.
pub fn calibrate() -> u64 {
    let (first, then) = *START.get_or_init(|| (read(), now()));
    let (counted, passed) = (read().saturating_sub(first), now().saturating_sub(then));
    let scale = (passed.as_nanos() << 32).checked_div(u128::from(counted)).unwrap_or(0);
    let scale = u64::try_from(scale).unwrap_or(0);
    SCALE.store(scale, Relaxed);
    scale
}

/// Nanoseconds since `begun`, a reading of the counter.
pub fn since(begun: u64) -> u64 {
    between(begun, read())
}

fn between(begun: u64, end: u64) -> u64 {
    let ticks = end.saturating_sub(begun);
    let scale = match SCALE.load(Relaxed) {
        0 => calibrate(),
        scale => scale,
    };
    u64::try_from(u128::from(ticks).saturating_mul(u128::from(scale)) >> 32).unwrap_or(u64::MAX)
}

/// Nanoseconds from which on work is looked at more closely: the thread may have waited meanwhile, for a processor too.
const LONG: u64 = 200_000;
/// How long a reading of the thread's own clock stands for what it had used when work began, in nanoseconds.
const FRESH: u64 = 1_000_000;

/// A thread's own clock, which takes a host call.
#[derive(Clone, Copy)]
struct Own {
    /// The counter when it was read.
    at: u64,
    /// What it said, in nanoseconds.
    used: u64,
    /// What [`spent`] has told of since.
    told: u64,
}

thread_local! {
    static OWN: Cell<Own> = const { Cell::new(Own { at: 0, used: 0, told: 0 }) };
}

impl Own {
    fn read() -> Own {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let used = Duration::try_from(used).unwrap_or_default();
        Own { at: read(), used: u64::try_from(used.as_nanos()).unwrap_or(u64::MAX), told: 0 }
    }
}

/// The counter at the begin of work whose time is asked for by [`spent`], on the same thread.
pub fn begin() -> u64 {
    let now = read();
    if between(OWN.get().at, now) > FRESH {
        OWN.set(Own::read());
    }
    now
}

/// Nanoseconds that the calling thread has spent since `begun`, as far as that can be had without a host call on each call's
/// way: of what took long it has spent no more than its own clock says.
pub fn spent(begun: u64) -> u64 {
    let (passed, own) = (since(begun), OWN.get());
    if passed <= LONG {
        OWN.set(Own { told: own.told.saturating_add(passed), ..own });
        return passed;
    }
    let now = Own::read();
    OWN.set(now);
    passed.min(now.used.saturating_sub(own.used).saturating_sub(own.told))
}

/// When the sandbox began, on [`now`]'s clock: what guests are shown as the time of boot.
pub fn boot() -> Duration {
    START.get_or_init(|| (read(), now())).1
}

/// How long the sandbox has been up.
pub fn uptime() -> Duration {
    now().saturating_sub(boot())
}

/// A time of [`now`]'s clock in clock ticks of 10 ms after [`boot`].
pub fn since_boot(time: Duration) -> u64 {
    u64::try_from(time.saturating_sub(boot()).as_millis() / 10).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_not_spent() {
        start();
        std::thread::sleep(Duration::from_millis(20));
        let (begun, used) = (begin(), Own::read().used);
        let wall = now();
        while Own::read().used < used + 5_000_000 {}
        std::thread::sleep(Duration::from_millis(50));
        let spent = spent(begun);
        let passed = now().saturating_sub(wall).as_nanos() as u64;
        assert!(passed > 50_000_000);
        assert!((5_000_000..passed - 45_000_000).contains(&spent), "{spent} of {passed}");
        let begun = begin();
        assert!(super::spent(begun) < LONG);
    }
}
