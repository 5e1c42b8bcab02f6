//! Connections of TCP that wait for a place among those that a listener has not accepted yet (listen(2), tcp(7)): natively their
//! first segment is sent again until there is one.

use super::addr::Addr;
use super::connect::Refused;
use super::socket::{Socket, State, wait_until};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::time::{self, TimerId};
use crate::wait::{Listener, Ready};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use syscall_table::errno::Errno;

/// How long one waits: net.ipv4.tcp_syn_retries and tcp_syn_linear_timeouts as they are at first.
const PATIENCE: Duration = Duration::from_secs(131);

/// What a connection that is being made waits for.
pub(super) struct Attempt {
    pub(super) remote: Addr,
    /// Names this attempt of all that there ever were.
    pub(super) ticket: u64,
    listener: Weak<Socket>,
    timer: TimerId,
}

static TICKETS: AtomicU64 = AtomicU64::new(0);

/// The end of the patience of the attempt whose ticket is the epoch.
struct Late(Weak<Socket>);

impl Listener for Late {
    fn fire(&self, ticket: u64, _mask: Ready) -> bool {
        if let Some(socket) = self.0.upgrade() {
            socket.fail(ticket, Errno::ETIMEDOUT);
        }
        false
    }

    fn alive(&self, _ticket: u64) -> bool {
        self.0.strong_count() > 0
    }
}

/// This call began the attempt.
#[derive(Default)]
struct Began(bool);

impl State {
    /// Ends the attempt with this ticket, if it goes on. The caller gives it to [`Socket::leave`] when no lock is held.
    pub(super) fn end_attempt(&mut self, ticket: u64) -> Option<Attempt> {
        self.attempt.take_if(|attempt| attempt.ticket == ticket)
    }

    /// The attempt has failed.
    pub(super) fn failed(&mut self, error: Errno) {
        self.error = Some(error);
        (self.eof, self.shut_write, self.ended) = (true, true, true);
    }

    /// How the attempt has ended, for connect(2).
    ///
    /// # Errors
    /// As it failed; ECONNABORTED: somebody was told before.
    pub(super) fn attempted(&mut self) -> SysResult<()> {
        self.connecting = false;
        if self.connected {
            return Ok(());
        }
        (self.eof, self.shut_write, self.ended) = (false, false, false);
        Err(self.error.take().unwrap_or(Errno::ECONNABORTED).into())
    }
}

impl Socket {
    /// Begins to wait for a place at a listener, unless it has an attempt or a connection by now. No lock may be held.
    pub(super) fn knock(self: &Arc<Socket>, cx: &mut Cx, listener: &Arc<Socket>, remote: Addr) {
        let Some(kernel) = self.kernel() else { return };
        let ticket = TICKETS.fetch_add(1, Ordering::Relaxed);
        let late = Arc::new(Late(Arc::downgrade(self)));
        let timer = kernel.timers.arm(time::now().saturating_add(PATIENCE), late, ticket);
        let attempt = Attempt { remote, ticket, listener: Arc::downgrade(listener), timer };
        {
            let mut state = self.state.lock();
            if !state.is_free() {
                drop(state);
                kernel.timers.disarm(timer);
                return;
            }
            state.attempt = Some(attempt);
            state.connecting = true;
        }
        cx.state::<Began>().0 = true;
        listener.line_up(self, ticket);
        // There may be a place since.
        listener.let_in();
    }

    /// Who knocks with this ticket is among those who wait for a place at this listener. No lock may be held.
    fn line_up(&self, client: &Arc<Socket>, ticket: u64) {
        let listens = {
            let mut state = self.state.lock();
            state.backlog.as_mut().map(|b| b.knocking.insert(ticket, Arc::downgrade(client))).is_some()
        };
        if !listens {
            client.fail(ticket, Errno::ECONNREFUSED);
        } else if !client.knocks_with(ticket) {
            // It was over before it was in the line.
            self.strike_off(ticket);
        }
    }

    /// A ticket is void.
    fn strike_off(&self, ticket: u64) {
        if let Some(backlog) = &mut self.state.lock().backlog {
            backlog.knocking.remove(&ticket);
        }
    }

    fn knocks_with(&self, ticket: u64) -> bool {
        self.state.lock().attempt.as_ref().is_some_and(|attempt| attempt.ticket == ticket)
    }

    /// connect(2) of a socket whose attempt goes on.
    ///
    /// # Errors
    /// EINPROGRESS: this call began it; EALREADY; how it has ended; or a block.
    pub(super) fn await_place(&self, cx: &mut Cx, nonblocking: bool) -> SysResult<()> {
        let answer = if cx.state::<Began>().0 { Errno::EINPROGRESS } else { Errno::EALREADY };
        cx.wait_on(&self.queue, Ready::OUT);
        let wait = {
            let mut state = self.state.lock();
            if state.attempt.is_none() {
                return state.attempted();
            }
            state.send_wait
        };
        if nonblocking {
            return Err(answer.into());
        }
        match wait_until(cx, wait) {
            Err(Fail::Error(Errno::EAGAIN)) => Err(answer.into()),
            other => other,
        }
    }

    /// An attempt of this socket is over. No lock may be held.
    pub(super) fn leave(&self, attempt: Option<Attempt>) {
        let Some(attempt) = attempt else { return };
        if let Some(kernel) = self.kernel() {
            kernel.timers.disarm(attempt.timer);
        }
        if let Some(listener) = attempt.listener.upgrade() {
            listener.strike_off(attempt.ticket);
        }
    }

    /// The attempt with this ticket has failed, if it goes on. No lock may be held.
    pub(super) fn fail(&self, ticket: u64, error: Errno) {
        let attempt = {
            let mut state = self.state.lock();
            let attempt = state.end_attempt(ticket);
            if attempt.is_some() {
                state.failed(error);
            }
            attempt
        };
        if attempt.is_some() {
            self.leave(attempt);
            self.queue.wake(Ready::IN | Ready::OUT | Ready::ERR | Ready::HUP);
        }
    }

    /// Those who wait for a place get those that there are. No lock may be held.
    pub(super) fn let_in(self: &Arc<Socket>) {
        loop {
            let (ticket, client) = {
                let mut state = self.state.lock();
                let Some(backlog) = state.backlog.as_mut().filter(|backlog| !backlog.is_full()) else {
                    return;
                };
                let Some(next) = backlog.knocking.pop_first() else { return };
                next
            };
            let Some(client) = client.upgrade() else { continue };
            let remote = {
                let state = client.state.lock();
                let attempt = state.attempt.as_ref().filter(|attempt| attempt.ticket == ticket);
                attempt.map(|attempt| attempt.remote.clone())
            };
            let Some(remote) = remote else { continue };
            match self.take_in(&client, remote, None, Some(ticket)) {
                Ok(()) | Err(Refused::Gone) => {}
                // Somebody else was faster: it is the first in the line again.
                Err(Refused::Full) => self.line_up(&client, ticket),
                Err(Refused::Deaf) => client.fail(ticket, Errno::ECONNREFUSED),
            }
        }
    }
}
