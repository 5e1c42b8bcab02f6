//! A task's signal state, whose mask may be lent to the platform: the task then blocks and unblocks signals without a
//! call to the sentry. That is harmless as long as nothing is pending; whoever looks at the state takes the mask back.

use super::{TaskSignals, UNMASKABLE};
use crate::sync::{Guard, Level, Lock};
use platform::TaskControl;
use std::sync::{Arc, OnceLock};

/// [`TaskSignals`] behind a lock.
pub struct Signals {
    state: Lock<TaskSignals>,
    control: OnceLock<Arc<dyn TaskControl>>,
}

impl Signals {
    pub(crate) fn new(state: TaskSignals) -> Signals {
        Signals { state: Lock::new(Level::Task, state), control: OnceLock::new() }
    }

    /// The task's host side. Once.
    pub(crate) fn set_control(&self, control: Arc<dyn TaskControl>) {
        let _ = self.control.set(control);
    }

    /// The state, with the mask taken back. Takes [`Level::Task`].
    #[track_caller]
    pub fn lock(&self) -> Guard<'_, TaskSignals> {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.lent) {
            self.fetch(&mut state, false);
        }
        state
    }

    /// As [`lock`](Self::lock), but the mask stays lent: for a look at it while its task is in the sentry.
    #[track_caller]
    pub(crate) fn look(&self) -> Guard<'_, TaskSignals> {
        let mut state = self.state.lock();
        if state.lent {
            self.fetch(&mut state, true);
        }
        state
    }

    fn fetch(&self, state: &mut TaskSignals, keep: bool) {
        let mask = self.control.get().and_then(|control| control.lent_mask(keep));
        state.mask = mask.unwrap_or(state.mask) & !UNMASKABLE;
    }

    /// Lends the mask; `state` is locked and has nothing pending.
    pub(crate) fn lend(&self, state: &mut TaskSignals) {
        state.lent = self.control.get().is_some_and(|control| control.lend_mask(state.mask));
    }
}
