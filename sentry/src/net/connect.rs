//! listen(2), accept(2), connect(2): how two sockets come together, and which address each has then.

use super::addr::Addr;
use super::listing;
use super::socket::{Backlog, Kind, Side, Socket, wait_until};
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::wait::Ready;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

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
        if state.connected || state.local == Addr::Unnamed {
            return Err(Errno::EINVAL.into());
        }
        let most = usize::try_from(backlog).unwrap_or(usize::MAX).min(SOMAXCONN as usize).saturating_add(1);
        state.peer_side = side;
        match &mut state.backlog {
            Some(backlog) => backlog.most = most,
            None => state.backlog = Some(Backlog { waiting: VecDeque::new(), deferred: Vec::new(), most }),
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
            self.queue.wake(Ready::OUT);
            let remote = socket.state.lock().remote.clone();
            return Ok((socket, remote));
        }
        if nonblocking {
            return Err(Errno::EAGAIN.into());
        }
        wait_until(cx, wait)
    }

    /// connect(2) of a stream or seqpacket socket to a listening one.
    ///
    /// # Errors
    /// EISCONN, ECONNREFUSED, EAGAIN, EPROTOTYPE, or a block.
    pub fn connect_to(
        &self,
        cx: &mut Cx,
        listener: Option<Arc<Socket>>,
        remote: Addr,
        nonblocking: bool,
    ) -> SysResult<()> {
        let kernel = cx.kernel();
        let me = self.me.upgrade().ok_or(Errno::EBADF)?;
        {
            let mut state = self.state.lock();
            if std::mem::take(&mut state.connecting) {
                // How the attempt that did not wait has ended.
                return state.error.take().map_or(Ok(()), |error| Err(error.into()));
            }
            if state.connected {
                return Err(Errno::EISCONN.into());
            }
            if state.backlog.is_some() {
                return Err(Errno::EINVAL.into());
            }
        }
        let later = nonblocking && self.family != AF_UNIX;
        let Some(listener) = listener.filter(|l| l.is_listening()) else { return self.refused(later) };
        if listener.kind != self.kind {
            return Err(Errno::EPROTOTYPE.into());
        }
        let remote = self.named(remote);
        if let Addr::Ip(to) = &remote {
            self.settle(*to)?;
        }
        let side = (self.family == AF_UNIX).then(|| Side::of(cx.task));
        cx.wait_on(&listener.queue, Ready::OUT);
        let other = {
            let made = listener.owned.attr();
            let owner = (listener.uid, made.gid);
            Socket::new((kernel, &listener.net), listener.family, listener.kind, listener.protocol, owner)
        };
        let local = self.state.lock().local.clone();
        {
            let listening = listener.state.lock();
            let mut state = other.state.lock_peer();
            state.local = if self.family == AF_UNIX { listening.local.clone() } else { remote.clone() };
            state.remote = local;
            state.peer = Some(Arc::downgrade(&me));
            state.connected = true;
            state.peer_side = side;
            state.options = listening.options.clone();
            state.options.remove(&(SOL_TCP, TCP_DEFER_ACCEPT));
        }
        let (listener_side, patience) = {
            let mut state = listener.state.lock();
            let side = state.peer_side.clone();
            let defers = state.options.get(&(SOL_TCP, TCP_DEFER_ACCEPT)).copied().unwrap_or(0);
            let unix = self.family == AF_UNIX;
            let backlog = state.backlog.as_mut().ok_or(Errno::ECONNREFUSED)?;
            // TCP would drop the segment and try again; a longer queue has the same effect.
            let most = if unix { backlog.most } else { SOMAXCONN as usize };
            if backlog.waiting.len().saturating_add(backlog.deferred.len()) >= most {
                drop(state);
                if !unix {
                    return self.refused(later);
                }
                if nonblocking {
                    return Err(Errno::EAGAIN.into());
                }
                return cx.block(Restart::Sys);
            }
            if defers > 0 {
                backlog.deferred.push(other.clone());
            } else {
                backlog.waiting.push_back(other.clone());
            }
            (side, defers)
        };
        if patience > 0 {
            listener.defer(&other, Duration::from_secs(patience.unsigned_abs().into()));
        }
        {
            let mut state = self.state.lock();
            state.peer = Some(Arc::downgrade(&other));
            state.connected = true;
            state.ended = false;
            state.remote = remote;
            state.peer_side = listener_side;
            state.connecting = later;
        }
        if patience == 0 {
            listener.queue.wake(Ready::IN | Ready::RDNORM);
        }
        self.queue.wake(Ready::OUT | Ready::WRNORM);
        if later { Err(Errno::EINPROGRESS.into()) } else { Ok(()) }
    }

    /// Nobody listens. `later`: the caller hears of it by poll and SO_ERROR, or the next connect.
    fn refused(&self, later: bool) -> SysResult<()> {
        if !later {
            return Err(Errno::ECONNREFUSED.into());
        }
        {
            let mut state = self.state.lock();
            state.connecting = true;
            state.error = Some(Errno::ECONNREFUSED);
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
            (Addr::Ip(at), (_, false)) => {
                self.net.unbind(&Addr::Ip(at), self);
                self.state.lock().local = Addr::Unnamed;
            }
            (Addr::Ip(at), (false, true)) => {
                self.rename(SocketAddr::new(listing::nowhere(self.family).ip(), at.port()));
            }
            _ => {}
        }
    }

    /// connect(2) of a datagram socket: sets the peer, or with None dissolves it.
    ///
    /// # Errors
    /// EADDRINUSE.
    pub fn set_peer(&self, peer: Option<(Addr, Option<Arc<Socket>>)>) -> SysResult<()> {
        if let Some((Addr::Ip(to), _)) = &peer {
            self.settle(*to)?;
        }
        if peer.is_none() && self.family != AF_UNIX {
            self.unsettle();
        }
        let mut state = self.state.lock();
        match peer {
            Some((remote, socket)) => {
                state.remote = self.named(remote);
                state.peer = socket.as_ref().map(Arc::downgrade);
                state.connected = true;
            }
            None => {
                state.remote = Addr::Unnamed;
                state.peer = None;
                state.connected = false;
            }
        }
        Ok(())
    }
}
