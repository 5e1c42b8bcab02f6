//! listen(2), accept(2), connect(2): how two sockets come together, and which address each has then.

use super::addr::Addr;
use super::knock::Attempt;
use super::listing;
use super::socket::{Backlog, Kind, Message, Side, Socket, State, wait_until};
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::sync::Guard;
use crate::wait::Ready;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Why a connection was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Nobody listens.
    Deaf,
    /// As many wait to be accepted as may.
    Full,
    /// Who asked for it does something else by now.
    Gone,
}

/// What a socket had to do with others when it was reset.
pub(super) struct Rest {
    attempt: Option<Attempt>,
    peer: Option<Arc<Socket>>,
    dropped: Option<Backlog>,
    inbox: VecDeque<Message>,
}

impl State {
    /// Where one more connection may wait to be accepted.
    fn place(&mut self) -> Result<&mut Backlog, Refused> {
        match &mut self.backlog {
            None => Err(Refused::Deaf),
            Some(backlog) if backlog.is_full() => Err(Refused::Full),
            Some(backlog) => Ok(backlog),
        }
    }

    /// Ends whatever connection there is, or is being made, and listening.
    pub(super) fn reset(&mut self) -> Rest {
        let attempt = self.attempt.take();
        let was = std::mem::take(&mut self.connected) || attempt.is_some();
        self.error = if was { Some(Errno::ECONNRESET) } else { None };
        (self.ended, self.eof, self.shut_write, self.connecting) = (false, false, false, false);
        (self.bytes, self.charged, self.urgent) = (0, 0, None);
        self.remote = Addr::Unnamed;
        Rest {
            attempt,
            peer: self.peer.take().and_then(|peer| peer.upgrade()),
            dropped: self.backlog.take(),
            inbox: std::mem::take(&mut self.inbox),
        }
    }

    /// May be connected, and is not on the way there.
    pub(super) fn is_free(&self) -> bool {
        !self.connected && self.attempt.is_none() && self.backlog.is_none()
    }
}

/// The states of two sockets, in the order of their addresses, so that two such calls do not wait for each other.
fn both<'a>(one: &'a Arc<Socket>, other: &'a Arc<Socket>) -> (Guard<'a, State>, Guard<'a, State>) {
    if Arc::as_ptr(one).addr() < Arc::as_ptr(other).addr() {
        let first = one.state.lock();
        (first, other.state.lock_peer())
    } else {
        let first = other.state.lock();
        (one.state.lock_peer(), first)
    }
}

impl Socket {
    /// listen(2)
    ///
    /// # Errors
    /// EOPNOTSUPP, EINVAL.
    pub fn listen(&self, cx: &Cx, backlog: i32) -> SysResult<()> {
        if self.kind == Kind::Dgram {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if self.family != AF_UNIX {
            self.autobind_ip(None)?;
        }
        let side = (self.family == AF_UNIX).then(|| Side::of(cx.task));
        let mut state = self.state.lock();
        if state.connected || state.attempt.is_some() || state.local == Addr::Unnamed {
            return Err(Errno::EINVAL.into());
        }
        let most = usize::try_from(backlog).unwrap_or(usize::MAX).min(SOMAXCONN as usize).saturating_add(1);
        state.peer_side = side;
        match &mut state.backlog {
            Some(backlog) => backlog.most = most,
            None => state.backlog = Some(Backlog { most, ..Backlog::default() }),
        }
        drop(state);
        // It may have become longer.
        if let Some(me) = self.me.upgrade() {
            me.let_in();
        }
        Ok(())
    }

    /// accept(2): the connection and its peer's name.
    ///
    /// # Errors
    /// EINVAL, EOPNOTSUPP, EAGAIN, or a block.
    pub fn accept(&self, cx: &mut Cx, nonblocking: bool) -> SysResult<(Arc<Socket>, Addr)> {
        if self.kind == Kind::Dgram {
            return Err(Errno::EOPNOTSUPP.into());
        }
        cx.wait_on_exclusive(&self.queue, Ready::IN);
        let (next, wait) = {
            let mut state = self.state.lock();
            let backlog = state.backlog.as_mut().ok_or(Errno::EINVAL)?;
            let next = backlog.waiting.pop_front();
            if next.is_some() && self.family == AF_UNIX {
                self.net.flight().took();
            }
            (next, state.receive_wait)
        };
        if let Some(socket) = next {
            if let Some(me) = self.me.upgrade() {
                me.let_in();
            }
            self.queue.wake(Ready::OUT);
            let remote = socket.state.lock().remote.clone();
            return Ok((socket, remote));
        }
        if nonblocking {
            return Err(Errno::EAGAIN.into());
        }
        wait_until(cx, wait)
    }

    /// Neither connected, nor on the way there, nor listening; nor is anything to be told of an attempt.
    pub fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.is_free() && !state.connecting
    }

    /// What has become of an attempt that does not wait: how it failed, or whether it goes on.
    pub fn outlook(&self) -> (Option<Errno>, bool) {
        let state = self.state.lock();
        (state.error, state.attempt.is_some())
    }

    /// connect(2) of a stream or seqpacket socket to a listening one.
    ///
    /// # Errors
    /// EISCONN, EALREADY, EINPROGRESS, ECONNREFUSED, ETIMEDOUT, EAGAIN, EPROTOTYPE, or a block.
    pub fn connect_to(
        &self,
        cx: &mut Cx,
        listener: Option<Arc<Socket>>,
        remote: Addr,
        nonblocking: bool,
    ) -> SysResult<()> {
        let me = self.me.upgrade().ok_or(Errno::EBADF)?;
        let unix = self.family == AF_UNIX;
        let later = nonblocking && !unix;
        loop {
            let (goes_on, wait) = {
                let mut state = self.state.lock();
                if state.attempt.is_none() && state.connecting {
                    // How the attempt that did not wait has ended.
                    return state.attempted();
                }
                if state.connected {
                    return Err(Errno::EISCONN.into());
                }
                if state.backlog.is_some() {
                    return Err(if unix { Errno::EINVAL } else { Errno::EISCONN }.into());
                }
                (state.attempt.is_some(), state.send_wait)
            };
            if goes_on {
                return self.await_place(cx, nonblocking);
            }
            let Some(listener) = listener.as_ref().filter(|l| l.is_listening()) else {
                return self.refused(later);
            };
            if listener.kind != self.kind {
                return Err(Errno::EPROTOTYPE.into());
            }
            let remote = self.named(remote.clone());
            if let Addr::Ip(to) = &remote {
                self.settle(*to)?;
                // What ended the connection before is no news of this one.
                self.state.lock().error = None;
            }
            let side = unix.then(|| Side::of(cx.task));
            if unix {
                cx.wait_on(&listener.queue, Ready::OUT);
            }
            return match listener.take_in(&me, remote.clone(), side, None) {
                Ok(()) if later => {
                    self.state.lock().connecting = true;
                    Err(Errno::EINPROGRESS.into())
                }
                Ok(()) => Ok(()),
                Err(Refused::Deaf) => self.refused(later),
                // Another thread was faster.
                Err(Refused::Gone) => continue,
                Err(Refused::Full) if !unix => {
                    me.knock(cx, listener, remote);
                    self.await_place(cx, nonblocking)
                }
                Err(Refused::Full) if nonblocking => Err(Errno::EAGAIN.into()),
                Err(Refused::Full) => wait_until(cx, wait),
            };
        }
    }

    /// Makes the connection of a socket to this one, which listens. `side`: who asks for it, of AF_UNIX. `ticket`: that of the
    /// attempt which it ends; without one the client must be free. No lock may be held.
    ///
    /// # Errors
    /// As [`Refused`]; nothing was changed then.
    pub(super) fn take_in(
        self: &Arc<Socket>,
        client: &Arc<Socket>,
        remote: Addr,
        side: Option<Side>,
        ticket: Option<u64>,
    ) -> Result<(), Refused> {
        if Arc::ptr_eq(self, client) {
            return Err(Refused::Gone);
        }
        self.state.lock().place()?;
        let kernel = self.kernel().ok_or(Refused::Deaf)?;
        let other = {
            let owner = (self.uid, self.owned.attr().gid);
            Socket::new((&kernel, &self.net), self.family, self.kind, self.protocol, owner)
        };
        let local = client.state.lock().local.clone();
        let patience = {
            let listening = self.state.lock();
            let mut state = other.state.lock_peer();
            state.local = if self.family == AF_UNIX { listening.local.clone() } else { remote.clone() };
            state.remote = local;
            state.peer = Some(Arc::downgrade(client));
            state.connected = true;
            state.peer_side = side;
            state.options = listening.options.clone();
            state.options.remove(&(SOL_TCP, TCP_DEFER_ACCEPT)).unwrap_or(0)
        };
        // Before anybody finds it.
        if patience > 0 {
            self.defer(&other);
        }
        let made = {
            let (mut listening, mut state) = both(self, client);
            let own = listening.peer_side.clone();
            listening.place().and_then(|backlog| {
                let attempt = match ticket {
                    Some(ticket) => Some(state.end_attempt(ticket).ok_or(Refused::Gone)?),
                    None if state.is_free() => None,
                    None => return Err(Refused::Gone),
                };
                if patience > 0 {
                    backlog.deferred.push(other.clone());
                } else {
                    backlog.waiting.push_back(other.clone());
                }
                state.peer = Some(Arc::downgrade(&other));
                state.connected = true;
                state.ended = false;
                state.remote = remote;
                state.peer_side = own;
                Ok(attempt)
            })
        };
        let attempt = made.inspect_err(|_| other.stop_waiting())?;
        client.leave(attempt);
        if patience > 0 {
            self.be_patient(&other, Duration::from_secs(patience.unsigned_abs().into()));
        } else {
            self.queue.wake(Ready::IN | Ready::RDNORM);
        }
        client.queue.wake(Ready::ROOM);
        Ok(())
    }

    /// connect(2) of TCP with AF_UNSPEC: the connection is reset, and the socket as before it was made; who listened does no more.
    /// No lock may be held.
    pub fn disconnect(&self) {
        let rest = self.state.lock().reset();
        self.after_reset(rest);
    }

    /// What [`State::reset`] leaves to do. No lock may be held.
    pub(super) fn after_reset(&self, rest: Rest) {
        self.leave(rest.attempt);
        if let Some(peer) = rest.peer {
            peer.hear_end(true);
        }
        if let Some(dropped) = rest.dropped {
            Socket::refuse(dropped);
        }
        // The port that goes with a chosen address stays, too.
        if self.state.lock().chosen != (true, false) {
            self.unsettle();
        }
        drop(rest.inbox);
        self.queue.wake(Ready::IN | Ready::OUT | Ready::HUP | Ready::ERR);
    }

    /// Nobody listens. `later`: the caller hears of it by poll and SO_ERROR, or the next connect.
    fn refused(&self, later: bool) -> SysResult<()> {
        if !later {
            return Err(Errno::ECONNREFUSED.into());
        }
        {
            let mut state = self.state.lock();
            state.connecting = true;
            state.failed(Errno::ECONNREFUSED);
        }
        self.queue.wake(Ready::IN | Ready::OUT | Ready::ERR | Ready::HUP);
        Err(Errno::EINPROGRESS.into())
    }

    /// An address to connect to: the wildcard is the machine itself.
    fn named(&self, to: Addr) -> Addr {
        match to {
            Addr::Ip(to) if to.ip().is_unspecified() => {
                Addr::Ip(SocketAddr::new(self.net.lo().source(to.ip()), to.port()))
            }
            to => to,
        }
    }

    /// A connected socket has the address that it sends from, and is reached by no other.
    fn settle(&self, toward: SocketAddr) -> SysResult<()> {
        let source = self.net.lo().source(toward.ip());
        let bound = self.autobind_ip(Some(source))?;
        if bound.ip().is_unspecified() {
            self.rename(SocketAddr::new(source, bound.port()));
        }
        Ok(())
    }

    fn rename(&self, to: SocketAddr) {
        self.net.rename(self, to);
        self.state.lock().local = Addr::Ip(to);
    }

    /// What bind(2) did not choose goes with the connection of a datagram socket.
    fn unsettle(&self) {
        let (local, chosen) = {
            let state = self.state.lock();
            (state.local.clone(), state.chosen)
        };
        match (local, chosen) {
            (Addr::Ip(at), (address, false)) => {
                self.net.unbind(&Addr::Ip(at), self);
                let kept = Addr::Ip(SocketAddr::new(at.ip(), 0));
                self.state.lock().local = if address { kept } else { Addr::Unnamed };
            }
            (Addr::Ip(at), (false, true)) => {
                self.rename(SocketAddr::new(listing::nowhere(self.family).ip(), at.port()));
            }
            _ => {}
        }
    }

    /// connect(2) of a datagram socket of IP: sets the peer, or with None dissolves it.
    ///
    /// # Errors
    /// EADDRINUSE.
    pub fn set_peer(&self, peer: Option<Addr>) -> SysResult<()> {
        match &peer {
            Some(Addr::Ip(to)) => self.settle(*to)?,
            Some(_) => {}
            None => self.unsettle(),
        }
        let mut state = self.state.lock();
        state.connected = peer.is_some();
        state.remote = peer.map_or(Addr::Unnamed, |remote| self.named(remote));
        Ok(())
    }

    /// connect(2) of a datagram socket of AF_UNIX: the same. What the one before had sent is lost.
    ///
    /// # Errors
    /// EPERM: the other is connected to somebody else.
    pub fn set_unix_peer(self: &Arc<Socket>, peer: Option<(Addr, Arc<Socket>)>) -> SysResult<()> {
        let (remote, other) = peer.unzip();
        if other.as_ref().is_some_and(|other| !self.may_send(&other.state.lock())) {
            return Err(Errno::EPERM.into());
        }
        self.replace_peer(remote, other);
        Ok(())
    }

    /// The peer of a datagram socket of AF_UNIX is gone. No lock may be held.
    pub(super) fn drop_peer(&self) {
        self.replace_peer(None, None);
    }

    fn replace_peer(&self, remote: Option<Addr>, other: Option<Arc<Socket>>) {
        let (before, inbox) = {
            let mut state = self.state.lock();
            let next = other.as_ref().map(Arc::downgrade);
            state.connected = next.is_some();
            state.remote = remote.unwrap_or_default();
            let before = std::mem::replace(&mut state.peer, next.clone());
            let changed = before.filter(|before| !next.is_some_and(|next| next.ptr_eq(before)));
            let Some(before) = changed else { return };
            let inbox = Vec::from(std::mem::take(&mut state.inbox));
            self.took(&inbox);
            (state.bytes, state.charged) = (0, 0);
            (before, inbox)
        };
        self.queue.wake(Ready::ROOM);
        // Whose messages were lost hears of it, if it is connected to this one.
        if let Some(before) = before.upgrade().filter(|_| !inbox.is_empty()) {
            let heard = {
                let mut state = before.state.lock();
                let here = state.peer.as_ref().is_some_and(|peer| std::ptr::eq(peer.as_ptr(), self));
                if here {
                    state.error = Some(Errno::ECONNRESET);
                }
                here
            };
            if heard {
                before.queue.wake(Ready::IN | Ready::OUT | Ready::ERR);
            }
        }
    }
}
