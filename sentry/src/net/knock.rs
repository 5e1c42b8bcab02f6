//! Connections of TCP that wait for a place among those that a listener has not accepted yet (listen(2), tcp(7)): natively their
//! first segment is sent again until there is one.

use super::addr::Addr;
use super::socket::{Socket, State, wait_until};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::time::{self, TimerId};
use crate::wait::{Listener, Ready};
use std::sync::{Arc, Weak};
use std::time::Duration;
use syscall_table::errno::Errno;

/// How long one waits: net.ipv4.tcp_syn_retries and tcp_syn_linear_timeouts as they are at first.
const PATIENCE: Duration = Duration::from_secs(131);

/// What a connection that is being made waits for.
pub(super) struct Attempt {
    pub(super) remote: Addr,
    timer: TimerId,
}

/// The end of its patience.
struct Late(Weak<Socket>);

impl Listener for Late {
    fn fire(&self, _epoch: u64, _mask: Ready) -> bool {
        if let Some(socket) = self.0.upgrade() {
            socket.fail(Errno::ETIMEDOUT);
        }
        false
    }

    fn alive(&self, _epoch: u64) -> bool {
        self.0.strong_count() > 0
    }
}

/// This call began the attempt.
#[derive(Default)]
struct Began(bool);

impl State {
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
    /// Begins to wait for a place at a listener. No lock may be held.
    pub(super) fn knock(self: &Arc<Socket>, cx: &mut Cx, listener: &Arc<Socket>, remote: Addr) {
        cx.state::<Began>().0 = true;
        let late = Arc::new(Late(Arc::downgrade(self)));
        let timer = cx.kernel().timers.arm(time::now().saturating_add(PATIENCE), late, 0);
        {
            let mut state = self.state.lock();
            state.attempt = Some(Attempt { remote, timer });
            state.connecting = true;
        }
        let listens = {
            let mut state = listener.state.lock();
            state.backlog.as_mut().map(|backlog| backlog.knocking.push_back(Arc::downgrade(self))).is_some()
        };
        if listens {
            // There may be a place since.
            listener.let_in();
        } else {
            self.fail(Errno::ECONNREFUSED);
        }
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

    /// Its attempt goes on.
    pub(super) fn is_knocking(&self) -> bool {
        self.state.lock().attempt.is_some()
    }

    /// Its attempt is over; its remote address, if there was one. No lock may be held.
    pub(super) fn stop_knocking(&self) -> Option<Addr> {
        let attempt = self.state.lock().attempt.take()?;
        if let Some(kernel) = self.kernel() {
            kernel.timers.disarm(attempt.timer);
        }
        Some(attempt.remote)
    }

    /// Its attempt has failed. No lock may be held.
    pub(super) fn fail(&self, error: Errno) {
        if self.stop_knocking().is_some() {
            self.state.lock().failed(error);
            self.queue.wake(Ready::IN | Ready::OUT | Ready::ERR | Ready::HUP);
        }
    }

    /// Those who wait for a place get those that there are. No lock may be held.
    pub(super) fn let_in(self: &Arc<Socket>) {
        loop {
            let next = {
                let mut state = self.state.lock();
                let Some(backlog) = state.backlog.as_mut().filter(|backlog| !backlog.is_full()) else {
                    return;
                };
                let Some(next) = backlog.knocking.pop_front() else { return };
                next
            };
            let Some(client) = next.upgrade() else { continue };
            let remote = client.state.lock().attempt.as_ref().map(|attempt| attempt.remote.clone());
            let Some(remote) = remote else { continue };
            if let Err(Some(Errno::EAGAIN)) = self.take_in(&client, remote, None) {
                // Somebody else was faster.
                if let Some(backlog) = &mut self.state.lock().backlog {
                    backlog.knocking.push_front(next);
                }
                return;
            }
        }
    }
}
