//! Changes of a space that are recorded and left to a task, which makes them on its way back to guest code.
//!
//! Nobody else may change the same range before that, or the two would be made in the other order than recorded.
//! A task's own later changes come after its earlier ones by themselves.

use super::{Layout, Mm};
use crate::fail::{Fail, SysResult};
use crate::sync::Guard;
use platform::{Port, Token};
use std::time::Instant;
use syscall_table::errno::Errno;

/// A change on its way.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) token: Token,
    pub(super) undo: Undo,
}

/// What is done to the records when the host refuses the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undo {
    /// The range is not mapped.
    Unmap,
    /// The range is not mapped, and the heap ends here as before.
    Brk(u64),
    /// Nothing: the records then differ from what the host has, which only this space sees.
    Keep,
}

impl Mm {
    /// The records, once nothing of another task is on its way in the range. The guest can make this wait, so a port
    /// that is not full does not.
    pub(super) fn quiet(
        &self,
        port: &dyn Port,
        range: impl Fn(&Layout) -> SysResult<(u64, u64)>,
    ) -> SysResult<(Guard<'_, Layout>, u64, u64)> {
        let mut waits: Option<(Token, Instant)> = None;
        loop {
            let mut layout = self.layout.lock();
            let own = port.token().task;
            self.land(&mut layout);
            let (start, end) = range(&layout)?;
            let met = |flight: &&Flight| flight.token.task != own && flight.start < end && start < flight.end;
            let Some(token) = layout.flights.iter().find(met).map(|flight| flight.token) else {
                return Ok((layout, start, end));
            };
            drop(layout);
            if !port.full() {
                return Err(Fail::NeedPort);
            }
            // Patience is with each change: that others follow it is no fault of the task that made it.
            let since = match waits {
                Some((same, since)) if same == token => since,
                _ => Instant::now(),
            };
            waits = Some((token, since));
            self.space.settle(token, since).map_err(|_| Fail::Exit)?;
        }
    }

    /// Forgets changes that have been made.
    pub(super) fn land(&self, layout: &mut Layout) {
        if !layout.flights.is_empty() {
            layout.flights.retain(|flight| !self.space.settled(flight.token));
        }
    }

    /// Notes that what was just recorded is left to the task, if it is.
    pub(super) fn depart(layout: &mut Layout, port: &dyn Port, start: u64, end: u64, undo: Undo) {
        if let Some(token) = port.deferred() {
            // A task calls again when its earlier changes have been made. Its word for each is not waited for: one that
            // never gives it would fill the list.
            let earlier = |flight: &Flight| flight.token.task == token.task && flight.token.seq != token.seq;
            layout.flights.retain(|flight| !earlier(flight));
            layout.flights.push(Flight { start, end, token, undo });
        }
    }

    /// The host refused what was left to the task of this port; the value of its call.
    pub fn undo(&self, port: &mut dyn Port, errno: i32) -> i64 {
        let own = port.token().task;
        let mut value = -i64::from(Errno::from_raw(errno).raw());
        let mut layout = self.layout.lock();
        // What failed may be no recorded change (madvise(2)); an earlier one that was made stays.
        self.land(&mut layout);
        let Some(at) = layout.flights.iter().rposition(|flight| flight.token.task == own) else {
            return value;
        };
        let flight = layout.flights.swap_remove(at);
        if let Undo::Brk(end) = flight.undo {
            layout.brk = end;
            value = end as i64;
        }
        if flight.undo != Undo::Keep {
            // A fixed mapping may or may not have replaced what was there.
            let _ = port.munmap(flight.start, flight.end - flight.start);
            let gone = layout.remove(flight.start, flight.end);
            drop(layout);
            drop(gone);
        }
        value
    }
}
