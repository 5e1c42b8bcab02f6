//! timerfd_create(2)

use super::{anonymous_attr, next_ino};
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::sync::{Level, Lock};
use crate::time::{Base, TimerId, Timers, now};
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps};
use crate::wait::{Listener, Ready, WaitQueue};
use std::sync::{Arc, Weak};
use std::time::Duration;
use syscall_table::errno::Errno;

#[derive(Default)]
struct State {
    /// Next expiry; None when disarmed.
    next: Option<Duration>,
    interval: Duration,
    armed: Option<TimerId>,
    epoch: u64,
    /// Expiries not read yet, those until `next` apart.
    ticks: u64,
}

impl State {
    /// Counts what has expired by now.
    fn advance(&mut self) {
        let Some(next) = self.next else { return };
        let now = now();
        if now < next {
            return;
        }
        if self.interval.is_zero() {
            self.ticks += 1;
            self.next = None;
            return;
        }
        let periods = now.saturating_sub(next).as_nanos() / self.interval.as_nanos().max(1);
        let periods = u32::try_from(periods).unwrap_or(u32::MAX - 1);
        self.ticks += u64::from(periods) + 1;
        self.next = Some(next.saturating_add(self.interval.saturating_mul(periods + 1)));
    }
}

/// A timer that is read.
pub struct Timerfd {
    state: Lock<State>,
    queue: WaitQueue,
    timers: Arc<Timers>,
    me: Weak<Timerfd>,
    /// What absolute times are of.
    pub base: Base,
    ino: u64,
}

impl Timerfd {
    /// Disarmed.
    pub fn new(timers: Arc<Timers>, base: Base) -> Arc<Timerfd> {
        Arc::new_cyclic(|me| Timerfd {
            state: Lock::new(Level::Object, State::default()),
            queue: WaitQueue::new(),
            timers,
            me: me.clone(),
            base,
            ino: next_ino(),
        })
    }

    /// Time to the next expiry (zero: disarmed), and the interval.
    pub fn get(&self) -> (Duration, Duration) {
        let mut state = self.state.lock();
        state.advance();
        let left =
            state.next.map_or(Duration::ZERO, |n| n.saturating_sub(now()).max(Duration::from_nanos(1)));
        (left, state.interval)
    }

    /// Arms for `next` on the monotonic clock, or disarms.
    pub fn set(&self, next: Option<Duration>, interval: Duration) {
        let mut state = self.state.lock();
        if let Some(armed) = state.armed.take() {
            self.timers.disarm(armed);
        }
        state.epoch += 1;
        state.ticks = 0;
        state.interval = interval;
        state.next = next;
        self.arm(&mut state);
    }

    fn arm(&self, state: &mut State) {
        if let (Some(next), Some(me)) = (state.next, self.me.upgrade()) {
            state.armed = Some(self.timers.arm(next, me, state.epoch));
        }
    }
}

impl Listener for Timerfd {
    fn fire(&self, epoch: u64, _mask: Ready) -> bool {
        let mut state = self.state.lock();
        if state.epoch != epoch {
            return false;
        }
        state.armed = None;
        state.advance();
        self.arm(&mut state);
        drop(state);
        self.queue.wake(Ready::IN);
        true
    }

    fn alive(&self, epoch: u64) -> bool {
        self.state.lock().epoch == epoch
    }
}

impl FileOps for Timerfd {
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], _offset: u64) -> SysResult<usize> {
        let Some(out) = buf.get_mut(..8) else { return Err(Errno::EINVAL.into()) };
        cx.wait_on(&self.queue, Ready::IN);
        let mut state = self.state.lock();
        state.advance();
        if state.ticks == 0 {
            drop(state);
            if cx.hurries(file) {
                return Err(Errno::EAGAIN.into());
            }
            return cx.block(Restart::Sys);
        }
        out.copy_from_slice(&state.ticks.to_ne_bytes());
        state.ticks = 0;
        Ok(8)
    }

    fn hurries(&self) -> bool {
        true
    }

    fn seeks_nowhere(&self) -> bool {
        true
    }

    fn poll(&self, _file: &File) -> Ready {
        let mut state = self.state.lock();
        state.advance();
        if state.ticks > 0 { Ready::IN } else { Ready::empty() }
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.queue)
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(anonymous_attr(15, self.ino, 0o600))
    }

    fn release(&self, _flags: i32) {
        self.set(None, Duration::ZERO);
    }

    fn describe(&self) -> String {
        "anon_inode:[timerfd]".into()
    }
}
