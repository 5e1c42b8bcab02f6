//! The processor's time stamp counter: what is measured on the way of every call must cost next to nothing.

use super::now;
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
    let ticks = read().saturating_sub(begun);
    let scale = match SCALE.load(Relaxed) {
        0 => calibrate(),
        scale => scale,
    };
    u64::try_from(u128::from(ticks).saturating_mul(u128::from(scale)) >> 32).unwrap_or(u64::MAX)
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
