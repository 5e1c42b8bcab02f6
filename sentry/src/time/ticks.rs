//! The processor's time stamp counter: what is measured on the way of every call must cost next to nothing.

use super::now;
use std::sync::OnceLock;
use std::time::Duration;

static START: OnceLock<(u64, Duration)> = OnceLock::new();

/// The counter now.
pub fn read() -> u64 {
    platform::tick_counter()
}

/// Begins the comparison with the clock. The longer ago, the more exact [`duration`] is.
pub fn start() {
    START.get_or_init(|| (read(), now()));
}

/// How long this many ticks are.
pub fn duration(ticks: u64) -> Duration {
    let (first, then) = *START.get_or_init(|| (read(), now()));
    let (counted, passed) = (read().saturating_sub(first), now().saturating_sub(then));
    if counted == 0 {
        return Duration::ZERO;
    }
    let nanos = u128::from(ticks).saturating_mul(passed.as_nanos()) / u128::from(counted);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
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
