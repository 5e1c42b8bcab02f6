//! TCP_DEFER_ACCEPT (tcp(7)): a connection is not there for accept(2) until its first bytes or its end came, or time is up.

use super::socket::Socket;
use crate::time::{self, TimerId};
use crate::wait::{Listener, Ready};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What a connection that is not accepted yet waits for.
pub(super) struct Deferred {
    listener: Weak<Socket>,
    /// None before anybody may find it.
    timer: Option<TimerId>,
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
            listener.no_more_deferred(&connection, true);
        }
        false
    }

    fn alive(&self, _epoch: u64) -> bool {
        self.connection.strong_count() > 0
    }
}

impl Socket {
    /// A connection begins to wait, before anybody can find it. No lock may be held.
    pub(super) fn defer(self: &Arc<Socket>, connection: &Arc<Socket>) {
        connection.state.lock().deferred = Some(Deferred { listener: Arc::downgrade(self), timer: None });
    }

    /// It is among those that wait, and its time begins: not before, as one that fires finds it there. No lock may be held.
    pub(super) fn be_patient(self: &Arc<Socket>, connection: &Arc<Socket>, patience: Duration) {
        let Some(kernel) = self.kernel() else { return };
        let patient = Patience { listener: Arc::downgrade(self), connection: Arc::downgrade(connection) };
        let timer = kernel.timers.arm(time::now().saturating_add(patience), Arc::new(patient), 0);
        // Its first bytes may have been faster, or the time short.
        let waits = match &mut connection.state.lock().deferred {
            Some(deferred) => {
                deferred.timer = Some(timer);
                true
            }
            None => false,
        };
        if !waits {
            kernel.timers.disarm(timer);
        }
    }

    /// What a connection waited for is there, and accept(2) finds it; or, not `shows`, it was reset and is gone. No lock may be
    /// held.
    pub(super) fn undefer(self: &Arc<Socket>, deferred: Deferred, shows: bool) {
        if let (Some(kernel), Some(timer)) = (self.kernel(), deferred.timer) {
            kernel.timers.disarm(timer);
        }
        if let Some(listener) = deferred.listener.upgrade() {
            listener.no_more_deferred(self, shows);
        }
    }

    /// Nobody will accept it. No lock may be held.
    pub(super) fn stop_waiting(self: &Arc<Socket>) {
        let deferred = self.state.lock().deferred.take();
        if let (Some(timer), Some(kernel)) = (deferred.and_then(|d| d.timer), self.kernel()) {
            kernel.timers.disarm(timer);
        }
    }

    /// A connection waits no more; `shows`: accept(2) finds it.
    fn no_more_deferred(self: &Arc<Socket>, connection: &Arc<Socket>, shows: bool) {
        let gone = {
            let mut state = self.state.lock();
            let Some(backlog) = &mut state.backlog else { return };
            let Some(at) = backlog.deferred.iter().position(|s| Arc::ptr_eq(s, connection)) else { return };
            let found = backlog.deferred.remove(at);
            if shows {
                backlog.waiting.push_back(found);
                None
            } else {
                Some(found)
            }
        };
        if gone.is_some() {
            drop(gone);
            self.let_in();
        } else {
            self.queue.wake(Ready::IN | Ready::RDNORM);
        }
    }
}
