//! TCP_DEFER_ACCEPT (tcp(7)): a connection is not there for accept(2) until its first bytes or its end came, or time is up.

use super::socket::Socket;
use crate::time::{self, TimerId};
use crate::wait::{Listener, Ready};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What a connection that is not accepted yet waits for.
pub(super) struct Deferred {
    listener: Weak<Socket>,
    timer: TimerId,
}

/// The time after which it is accepted without.
struct Patience {
    listener: Weak<Socket>,
    connection: Weak<Socket>,
}

impl Listener for Patience {
    fn fire(&self, _epoch: u64, _mask: Ready) -> bool {
        if let (Some(listener), Some(connection)) = (self.listener.upgrade(), self.connection.upgrade()) {
            connection.state.lock().deferred = None;
            listener.present(&connection);
        }
        false
    }

    fn alive(&self, _epoch: u64) -> bool {
        self.connection.strong_count() > 0
    }
}

impl Socket {
    /// A connection begins to wait. No lock may be held.
    pub(super) fn defer(self: &Arc<Socket>, connection: &Arc<Socket>, patience: Duration) {
        let Some(kernel) = self.kernel() else { return };
        let (listener, weak) = (Arc::downgrade(self), Arc::downgrade(connection));
        let patient = Patience { listener: listener.clone(), connection: weak };
        let timer = kernel.timers.arm(time::now().saturating_add(patience), Arc::new(patient), 0);
        let deferred = Deferred { listener, timer };
        connection.state.lock().deferred = Some(deferred);
    }

    /// What a connection waited for is there. No lock may be held.
    pub(super) fn undefer(self: &Arc<Socket>, deferred: Deferred) {
        if let Some(kernel) = self.kernel() {
            kernel.timers.disarm(deferred.timer);
        }
        if let Some(listener) = deferred.listener.upgrade() {
            listener.present(self);
        }
    }

    /// Nobody will accept it. No lock may be held.
    pub(super) fn stop_waiting(self: &Arc<Socket>) {
        let deferred = self.state.lock().deferred.take();
        if let (Some(deferred), Some(kernel)) = (deferred, self.kernel()) {
            kernel.timers.disarm(deferred.timer);
        }
    }

    /// It waits no more: accept(2) finds it.
    fn present(&self, connection: &Arc<Socket>) {
        let found = {
            let mut state = self.state.lock();
            let Some(backlog) = &mut state.backlog else { return };
            let at = backlog.deferred.iter().position(|s| Arc::ptr_eq(s, connection));
            let found = at.map(|at| backlog.deferred.remove(at));
            let is = found.is_some();
            backlog.waiting.extend(found);
            is
        };
        if found {
            self.queue.wake(Ready::IN | Ready::RDNORM);
        }
    }

    /// It was reset before it was accepted, and is gone. No lock may be held.
    pub(super) fn forget_deferred(self: &Arc<Socket>, deferred: Deferred) {
        if let Some(kernel) = self.kernel() {
            kernel.timers.disarm(deferred.timer);
        }
        let Some(listener) = deferred.listener.upgrade() else { return };
        let gone = listener.state.lock().backlog.as_mut().and_then(|backlog| {
            let at = backlog.deferred.iter().position(|s| Arc::ptr_eq(s, self))?;
            Some(backlog.deferred.remove(at))
        });
        drop(gone);
    }
}
