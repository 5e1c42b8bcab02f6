//! One socket of any kind. A sender puts its message into the receiver's inbox and wakes it.

use super::addr::{self, Addr};
use super::control::Ancillary;
use super::listing::{self, Row};
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::ipc::{anonymous_attr, next_ino};
use crate::kernel::Kernel;
use crate::sync::{Level, Lock};
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps, Written, o};
use crate::wait::{Ready, WaitQueue};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Most bytes in an inbox (net.core.rmem_default).
const ROOM: usize = 212_992;
/// Most datagrams in an inbox (net.unix.max_dgram_qlen is lower; UDP has no such limit).
const DATAGRAMS: usize = 1024;
/// Bytes that one stream message grows to.
const RUN: usize = 65_536;

/// Socket type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Stream,
    Dgram,
    Seqpacket,
}

impl Kind {
    /// SOCK_*
    pub fn abi(self) -> i32 {
        match self {
            Kind::Stream => SOCK_STREAM,
            Kind::Dgram => SOCK_DGRAM,
            Kind::Seqpacket => SOCK_SEQPACKET,
        }
    }
}

/// Bytes with what belongs to them.
struct Message {
    data: Vec<u8>,
    /// Bytes of a stream message read already.
    start: usize,
    from: Addr,
    ancillary: Ancillary,
}

/// Connections not accepted yet.
pub struct Backlog {
    waiting: VecDeque<Arc<Socket>>,
    most: usize,
}

/// What changes of a socket.
#[derive(Default)]
pub struct State {
    /// Its own name.
    pub local: Addr,
    /// The peer's name.
    pub remote: Addr,
    peer: Option<Weak<Socket>>,
    connected: bool,
    /// A connection that was; sending is EPIPE.
    ended: bool,
    /// listen(2) was called.
    pub backlog: Option<Backlog>,
    inbox: VecDeque<Message>,
    bytes: usize,
    /// Nothing more comes in: the peer closed or shut down, or this side did.
    eof: bool,
    /// shutdown(SHUT_WR)
    shut_write: bool,
    /// SO_ERROR
    pub error: Option<Errno>,
    /// SO_PEERCRED
    pub peer_creds: Ucred,
    /// SO_RCVTIMEO
    pub receive_wait: Option<Duration>,
    /// SO_SNDTIMEO
    pub send_wait: Option<Duration>,
    /// Options that are remembered.
    pub options: HashMap<(i32, i32), i32>,
    own_creds: Ucred,
}

/// A socket.
pub struct Socket {
    /// AF_UNIX, AF_INET, AF_INET6
    pub family: i32,
    /// Type.
    pub kind: Kind,
    /// What changes. Never held together with another socket's.
    pub state: Lock<State>,
    queue: WaitQueue,
    /// IPPROTO_* or NETLINK_*
    pub protocol: i32,
    /// Effective user of its maker.
    uid: u32,
    kernel: Weak<Kernel>,
    me: Weak<Socket>,
    /// Inode number, and cookie.
    pub ino: u64,
}

/// How much of a blocking send is done.
#[derive(Default)]
struct Progress(usize);

/// What [`Socket::receive`] got.
pub struct Received {
    /// Bytes put into the buffer.
    pub count: usize,
    /// The datagram's whole length (the count for streams).
    pub whole: usize,
    /// Who sent it.
    pub from: Addr,
    /// Rights and credentials.
    pub ancillary: Ancillary,
}

impl Socket {
    /// An unconnected socket of the user `uid`.
    pub fn new(kernel: &Arc<Kernel>, family: i32, kind: Kind, protocol: i32, uid: u32) -> Arc<Socket> {
        let socket = Arc::new_cyclic(|me| Socket {
            family,
            kind,
            protocol,
            uid,
            state: Lock::new(Level::Object, State::default()),
            queue: WaitQueue::new(),
            kernel: Arc::downgrade(kernel),
            me: me.clone(),
            ino: next_ino(),
        });
        kernel.net.note(&socket);
        socket
    }

    /// What lists of sockets show. None: nothing yet (neither bound nor connected), which Linux leaves out of them.
    pub fn row(&self) -> Option<Row> {
        let (mut row, peer) = {
            let state = self.state.lock();
            let unix = self.family == AF_UNIX;
            let tcp_state = match (&state.backlog, state.connected, self.kind) {
                (Some(_), ..) => listing::LISTEN,
                (None, true, Kind::Stream) if !unix && state.eof => listing::CLOSE_WAIT,
                (None, true, _) => listing::ESTABLISHED,
                _ => listing::CLOSE,
            };
            let ip = |addr: &Addr| match addr {
                Addr::Ip(at) => *at,
                _ => listing::nowhere(self.family),
            };
            if !unix && state.local == Addr::Unnamed {
                return None;
            }
            let waiting = state.backlog.as_ref().map(|b| b.waiting.len());
            let row = Row {
                family: self.family,
                kind: self.kind.abi(),
                state: tcp_state,
                ino: self.ino,
                peer: 0,
                uid: self.uid,
                name: if unix { state.local.clone() } else { Addr::Unnamed },
                local: ip(&state.local),
                remote: ip(&state.remote),
                received: u32::try_from(waiting.unwrap_or(state.bytes)).unwrap_or(u32::MAX),
                room: state
                    .backlog
                    .as_ref()
                    .map_or(0, |b| u32::try_from(b.most.saturating_sub(1)).unwrap_or(u32::MAX)),
            };
            (row, state.peer.as_ref().and_then(Weak::upgrade))
        };
        row.peer = peer.map_or(0, |p| p.ino);
        Some(row)
    }

    /// The port number of a bound AF_NETLINK socket.
    pub fn netlink_port(&self) -> Option<u32> {
        if self.family != AF_NETLINK {
            return None;
        }
        match self.state.lock().local {
            Addr::Netlink(port, _) => Some(port),
            _ => None,
        }
    }

    /// What a send to the kernel's side of AF_NETLINK does: the answers go into the own inbox.
    fn ask_kernel(&self, cx: &Cx, data: &[u8], to: Option<Addr>) -> SysResult<usize> {
        let remote = to.unwrap_or_else(|| self.state.lock().remote.clone());
        if matches!(remote, Addr::Netlink(port, groups) if port != 0 || groups != 0) {
            // Between guests, or to a group: there is nobody.
            return Err(Errno::ECONNREFUSED.into());
        }
        let port = match self.netlink_port() {
            Some(port) => port,
            None => {
                let port = cx.kernel().net.netlink_port(cx.task.process.pid);
                self.state.lock().local = Addr::Netlink(port, 0);
                port
            }
        };
        let answers = super::netlink::answer(cx, self.protocol, port, data);
        let mut state = self.state.lock();
        for data in answers {
            if state.bytes.saturating_add(data.len()) > 2 * ROOM {
                // A reader that does not read loses messages (netlink(7)).
                state.error = Some(Errno::ENOBUFS);
                break;
            }
            state.bytes += data.len();
            let creds = Some(Ucred { pid: 0, uid: 0, gid: 0 });
            let ancillary = Ancillary { creds, ..Ancillary::default() };
            state.inbox.push_back(Message { data, start: 0, from: Addr::Netlink(0, 0), ancillary });
        }
        drop(state);
        self.queue.wake(Ready::IN | Ready::RDNORM);
        Ok(data.len())
    }

    /// Connects two sockets (socketpair).
    pub fn join(a: &Arc<Socket>, b: &Arc<Socket>, creds: Ucred) {
        for (one, other) in [(a, b), (b, a)] {
            let mut state = one.state.lock();
            state.peer = Some(Arc::downgrade(other));
            state.connected = true;
            state.peer_creds = creds;
            state.own_creds = creds;
        }
    }

    /// The peer's name, if it is connected.
    pub fn remote(&self) -> Option<Addr> {
        let state = self.state.lock();
        state.connected.then(|| state.remote.clone())
    }

    /// Whether listen(2) was called.
    pub fn is_listening(&self) -> bool {
        self.state.lock().backlog.is_some()
    }

    /// Whether another socket may have the same port: SO_REUSEPORT, or SO_REUSEADDR and it does not listen.
    pub fn shares_port(&self) -> bool {
        let state = self.state.lock();
        let set = |name| state.options.get(&(SOL_SOCKET, name)).is_some_and(|v| *v != 0);
        set(SO_REUSEPORT) || set(SO_REUSEADDR) && state.backlog.is_none()
    }

    /// IPV6_V6ONLY
    pub fn v6_only(&self) -> bool {
        self.state.lock().options.get(&(SOL_IPV6, IPV6_V6ONLY)).is_some_and(|v| *v != 0)
    }

    /// A remembered option of SOL_SOCKET is on.
    pub fn option(&self, name: i32) -> bool {
        self.state.lock().options.get(&(SOL_SOCKET, name)).is_some_and(|v| *v != 0)
    }

    fn any(&self) -> SocketAddr {
        let ip: IpAddr =
            if self.family == AF_INET6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        SocketAddr::new(ip, 0)
    }

    /// Gives an inet socket a port if it has none.
    fn autobind_ip(&self, kernel: &Kernel, toward: Option<IpAddr>) -> SysResult<SocketAddr> {
        if let Addr::Ip(bound) = self.state.lock().local {
            return Ok(bound);
        }
        let me = self.me.upgrade().ok_or(Errno::EBADF)?;
        let mut wish = self.any();
        if let Some(ip) = toward {
            wish.set_ip(ip);
        }
        let bound = kernel.net.bind_ip(wish, &me, false)?;
        self.state.lock().local = Addr::Ip(bound);
        Ok(bound)
    }

    /// listen(2)
    ///
    /// # Errors
    /// EOPNOTSUPP, EINVAL.
    pub fn listen(&self, cx: &Cx, backlog: i32) -> SysResult<()> {
        if self.kind == Kind::Dgram {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if self.family != AF_UNIX {
            self.autobind_ip(cx.kernel(), None)?;
        }
        let creds = super::control::own_creds(cx);
        let mut state = self.state.lock();
        if state.connected || state.local == Addr::Unnamed {
            return Err(Errno::EINVAL.into());
        }
        let most = usize::try_from(backlog).unwrap_or(usize::MAX).min(SOMAXCONN as usize).saturating_add(1);
        state.own_creds = creds;
        match &mut state.backlog {
            Some(backlog) => backlog.most = most,
            None => state.backlog = Some(Backlog { waiting: VecDeque::new(), most }),
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
            (backlog.waiting.pop_front(), state.receive_wait)
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
            let state = self.state.lock();
            if state.connected {
                return Err(Errno::EISCONN.into());
            }
            if state.backlog.is_some() {
                return Err(Errno::EINVAL.into());
            }
        }
        let listener = listener.ok_or(Errno::ECONNREFUSED)?;
        if listener.kind != self.kind {
            return Err(Errno::EPROTOTYPE.into());
        }
        if let Addr::Ip(to) = &remote {
            let toward = if to.ip().is_unspecified() { self.any_loopback() } else { to.ip() };
            self.autobind_ip(kernel, Some(toward))?;
        }
        let creds = super::control::own_creds(cx);
        cx.wait_on(&listener.queue, Ready::OUT);
        let other = Socket::new(kernel, listener.family, listener.kind, listener.protocol, listener.uid);
        let local = self.state.lock().local.clone();
        {
            let listening = listener.state.lock();
            let mut state = other.state.lock_peer();
            state.local = if self.family == AF_UNIX { listening.local.clone() } else { remote.clone() };
            state.remote = local;
            state.peer = Some(Arc::downgrade(&me));
            state.connected = true;
            state.peer_creds = creds;
            state.own_creds = listening.own_creds;
            state.options = listening.options.clone();
        }
        let listener_creds = {
            let mut state = listener.state.lock();
            let creds = state.own_creds;
            let unix = self.family == AF_UNIX;
            let backlog = state.backlog.as_mut().ok_or(Errno::ECONNREFUSED)?;
            // TCP would drop the segment and try again; a longer queue has the same effect.
            let most = if unix { backlog.most } else { SOMAXCONN as usize };
            if backlog.waiting.len() >= most {
                drop(state);
                if !unix {
                    return Err(Errno::ECONNREFUSED.into());
                }
                if nonblocking {
                    return Err(Errno::EAGAIN.into());
                }
                return cx.block(Restart::Sys);
            }
            backlog.waiting.push_back(other.clone());
            creds
        };
        {
            let mut state = self.state.lock();
            state.peer = Some(Arc::downgrade(&other));
            state.connected = true;
            state.ended = false;
            state.remote = remote;
            state.peer_creds = listener_creds;
            state.own_creds = creds;
        }
        listener.queue.wake(Ready::IN | Ready::RDNORM);
        self.queue.wake(Ready::OUT | Ready::WRNORM);
        Ok(())
    }

    fn any_loopback(&self) -> IpAddr {
        if self.family == AF_INET6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() }
    }

    /// connect(2) of a datagram socket: sets the peer, or with None dissolves it.
    ///
    /// # Errors
    /// EADDRINUSE.
    pub fn set_peer(&self, cx: &Cx, peer: Option<(Addr, Option<Arc<Socket>>)>) -> SysResult<()> {
        if let Some((Addr::Ip(to), _)) = &peer {
            let toward = if to.ip().is_unspecified() { self.any_loopback() } else { to.ip() };
            self.autobind_ip(cx.kernel(), Some(toward))?;
        }
        let mut state = self.state.lock();
        match peer {
            Some((remote, socket)) => {
                state.remote = remote;
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

    /// Whom a message goes to: `to` from the call, else the peer.
    fn target(&self, cx: &Cx, to: Option<(Addr, Option<Arc<Socket>>)>) -> SysResult<Option<Arc<Socket>>> {
        if self.kind == Kind::Dgram {
            if let Some((remote, socket)) = to {
                if let Addr::Ip(_) = remote {
                    self.autobind_ip(cx.kernel(), None)?;
                }
                return Ok(socket);
            }
            let (connected, remote, peer) = {
                let state = self.state.lock();
                (state.connected, state.remote.clone(), state.peer.as_ref().and_then(Weak::upgrade))
            };
            if !connected {
                return Err(if self.family == AF_UNIX { Errno::ENOTCONN } else { Errno::EDESTADDRREQ }.into());
            }
            return match remote {
                // Looked up each time: the receiver may have been bound later.
                Addr::Ip(at) => match cx.kernel().net.find_ip(false, at) {
                    Some(socket) => Ok(Some(socket)),
                    None => {
                        self.state.lock().error = Some(Errno::ECONNREFUSED);
                        self.queue.wake(Ready::ERR);
                        Ok(None)
                    }
                },
                _ => peer.map(Some).ok_or(Errno::ECONNREFUSED.into()),
            };
        }
        let state = self.state.lock();
        if !state.connected && !state.ended {
            return Err(Errno::ENOTCONN.into());
        }
        Ok(state.peer.as_ref().and_then(Weak::upgrade))
    }

    /// Sends. `flags`: MSG_DONTWAIT, MSG_NOSIGNAL.
    ///
    /// # Errors
    /// As send(2), or a block.
    pub fn send(
        &self,
        cx: &mut Cx,
        data: &[u8],
        ancillary: &mut Ancillary,
        to: Option<(Addr, Option<Arc<Socket>>)>,
        nonblocking: bool,
        flags: i32,
    ) -> SysResult<usize> {
        let stream = self.kind == Kind::Stream;
        if let Some(error) = self.state.lock().error.take() {
            return Err(error.into());
        }
        if self.family == AF_NETLINK {
            return self.ask_kernel(cx, data, to.map(|(addr, _)| addr));
        }
        if !stream && data.len() > ROOM.min(if self.family == AF_UNIX { ROOM } else { 65_507 }) {
            return Err(Errno::EMSGSIZE.into());
        }
        let mut done = if nonblocking || !stream { 0 } else { cx.state::<Progress>().0 }.min(data.len());
        let target = self.target(cx, to)?;
        let (local, shut, wait, creds) = {
            let state = self.state.lock();
            (state.local.clone(), state.shut_write || state.ended, state.send_wait, state.own_creds)
        };
        // Read before the receiver is locked.
        let creds = if creds.pid == 0 { super::control::own_creds(cx) } else { creds };
        let Some(target) = target.filter(|_| !shut) else {
            if self.kind == Kind::Dgram && !shut {
                // Nobody there: UDP does not know.
                return Ok(data.len());
            }
            return self.broken(cx, done, flags);
        };
        cx.wait_on(&target.queue, Ready::OUT);
        let mut inbox = target.state.lock();
        if inbox.eof {
            drop(inbox);
            if self.kind == Kind::Dgram {
                return Err(Errno::EPIPE.into());
            }
            return self.broken(cx, done, flags);
        }
        let room = ROOM.saturating_sub(inbox.bytes);
        let full = !stream && (inbox.bytes > 0 && room < data.len() || inbox.inbox.len() >= DATAGRAMS);
        let udp = self.kind == Kind::Dgram && self.family != AF_UNIX;
        if full && udp {
            return Ok(data.len());
        }
        let rest = data.get(done..).unwrap_or_default();
        let part = if stream { rest.len().min(room) } else { rest.len() };
        if !full && (part > 0 || !stream) {
            let mut carried = std::mem::take(ancillary);
            let unix_creds = carried.creds.get_or_insert(creds);
            let piece = rest.get(..part).unwrap_or_default();
            let run = inbox.inbox.back_mut().filter(|last| {
                stream
                    && carried.rights.is_empty()
                    && last.ancillary.rights.is_empty()
                    && last.ancillary.creds == Some(*unix_creds)
                    && last.data.len() < RUN
            });
            match run {
                Some(last) => last.data.extend_from_slice(piece),
                None => {
                    let message = Message { data: piece.to_vec(), start: 0, from: local, ancillary: carried };
                    inbox.inbox.push_back(message);
                }
            }
            inbox.bytes = inbox.bytes.saturating_add(part);
            done += part;
        }
        drop(inbox);
        if part > 0 || !stream && !full {
            target.queue.wake(Ready::IN | Ready::RDNORM);
        }
        if !full && done >= data.len() {
            return Ok(done);
        }
        if nonblocking {
            return if done > 0 { Ok(done) } else { Err(Errno::EAGAIN.into()) };
        }
        if done > 0 && crate::signal::deliver::pending(cx.task) {
            return Ok(done);
        }
        if stream {
            cx.state::<Progress>().0 = done;
        }
        match wait_until(cx, wait) {
            Err(crate::fail::Fail::Error(Errno::EAGAIN)) if done > 0 => Ok(done),
            other => other,
        }
    }

    fn broken(&self, cx: &Cx, done: usize, flags: i32) -> SysResult<usize> {
        if done > 0 {
            return Ok(done);
        }
        if flags & MSG_NOSIGNAL == 0 {
            cx.sigpipe();
        }
        Err(Errno::EPIPE.into())
    }

    /// Receives. `flags`: MSG_PEEK, MSG_WAITALL.
    ///
    /// # Errors
    /// As recv(2), or a block.
    pub fn receive(&self, cx: &mut Cx, buf: &mut [u8], nonblocking: bool, flags: i32) -> SysResult<Received> {
        let stream = self.kind == Kind::Stream;
        cx.wait_on(&self.queue, Ready::IN);
        let mut state = self.state.lock();
        if state.inbox.is_empty()
            && let Some(error) = state.error.take()
        {
            return Err(error.into());
        }
        if !state.connected && !state.ended && self.kind != Kind::Dgram {
            return Err(if self.family == AF_UNIX { Errno::EINVAL } else { Errno::ENOTCONN }.into());
        }
        let peek = flags & MSG_PEEK != 0;
        let wait = state.receive_wait;
        let short = stream
            && flags & MSG_WAITALL != 0
            && !nonblocking
            && !state.eof
            && state.bytes < buf.len().min(ROOM);
        if state.inbox.is_empty() && !(stream && buf.is_empty()) || short {
            if state.eof && state.inbox.is_empty() {
                return Ok(Received {
                    count: 0,
                    whole: 0,
                    from: Addr::Unnamed,
                    ancillary: Ancillary::default(),
                });
            }
            drop(state);
            if nonblocking {
                return Err(Errno::EAGAIN.into());
            }
            return wait_until(cx, wait);
        }
        let mut got = Received { count: 0, whole: 0, from: Addr::Unnamed, ancillary: Ancillary::default() };
        let mut emptied = Vec::new();
        let mut index = 0;
        while let Some(message) = state.inbox.get_mut(index) {
            if got.count > 0 && (!stream || !message.ancillary.rights.is_empty() || got.count >= buf.len()) {
                break;
            }
            if index > 0 && !stream {
                break;
            }
            let bytes = message.data.get(message.start..).unwrap_or_default();
            let room = buf.len().saturating_sub(got.count);
            let part = bytes.len().min(room);
            if let (Some(to), Some(from)) = (buf.get_mut(got.count..got.count + part), bytes.get(..part)) {
                to.copy_from_slice(from);
            }
            got.count += part;
            got.whole += if stream { part } else { bytes.len() };
            got.from = message.from.clone();
            got.ancillary.creds = message.ancillary.creds;
            let with_rights = !message.ancillary.rights.is_empty();
            if peek {
                got.ancillary.rights.extend(message.ancillary.rights.iter().cloned());
                index += 1;
            } else {
                got.ancillary.rights.append(&mut message.ancillary.rights);
                let whole = !stream || part == bytes.len();
                let taken = if stream { part } else { bytes.len() };
                message.start += part;
                if whole && let Some(message) = state.inbox.pop_front() {
                    emptied.push(message);
                }
                state.bytes = state.bytes.saturating_sub(taken);
                if !whole {
                    break;
                }
            }
            if with_rights || !stream {
                break;
            }
        }
        drop(state);
        drop(emptied);
        if !peek {
            self.queue.wake(Ready::OUT | Ready::WRNORM);
            self.wake_peer(Ready::OUT | Ready::WRNORM);
        }
        Ok(got)
    }

    fn wake_peer(&self, mask: Ready) {
        let peer = self.state.lock().peer.as_ref().and_then(Weak::upgrade);
        if let Some(peer) = peer {
            peer.queue.wake(mask);
        }
    }

    /// shutdown(2)
    ///
    /// # Errors
    /// ENOTCONN, EINVAL.
    pub fn shutdown(&self, how: i32) -> SysResult<()> {
        let (read, write) = match how {
            SHUT_RD => (true, false),
            SHUT_WR => (false, true),
            SHUT_RDWR => (true, true),
            _ => return Err(Errno::EINVAL.into()),
        };
        let (peer, dropped) = {
            let mut state = self.state.lock();
            let dropped = state.backlog.as_mut().map(|b| std::mem::take(&mut b.waiting));
            if self.family != AF_UNIX && !state.connected && dropped.is_none() {
                return Err(Errno::ENOTCONN.into());
            }
            state.eof |= read;
            state.shut_write |= write;
            if dropped.is_some() && read {
                state.backlog = None;
            }
            (state.peer.as_ref().and_then(Weak::upgrade), dropped)
        };
        if let Some(peer) = peer.filter(|_| self.kind != Kind::Dgram) {
            {
                let mut state = peer.state.lock();
                state.eof |= write;
                // A peer that reads no more breaks writing.
                state.shut_write |= read && self.family == AF_UNIX;
            }
            peer.queue.wake(Ready::IN | Ready::OUT | Ready::HUP | Ready::RDHUP);
        }
        self.queue.wake(Ready::IN | Ready::OUT | Ready::HUP | Ready::RDHUP);
        drop(dropped);
        Ok(())
    }

    fn close(&self) {
        let (peer, unread, waiting, inbox) = {
            let mut state = self.state.lock();
            let inbox = std::mem::take(&mut state.inbox);
            let waiting = state.backlog.take().map(|b| b.waiting);
            let peer = state.peer.take().and_then(|p| p.upgrade());
            state.eof = true;
            state.shut_write = true;
            state.ended = true;
            (peer, state.bytes > 0, waiting, inbox)
        };
        if let Some(peer) = peer.filter(|_| self.kind != Kind::Dgram) {
            {
                let mut state = peer.state.lock();
                state.eof = true;
                state.ended = true;
                if unread {
                    state.error = Some(Errno::ECONNRESET);
                }
            }
            peer.queue.wake(Ready::IN | Ready::OUT | Ready::HUP | Ready::RDHUP | Ready::ERR);
        }
        for socket in waiting.into_iter().flatten() {
            socket.close();
        }
        self.queue.wake(Ready::IN | Ready::OUT | Ready::HUP);
        drop(inbox);
    }

    /// The network that a datagram's or connection's address must be in.
    ///
    /// # Errors
    /// The denial.
    pub fn check_reach(&self, to: &Addr) -> SysResult<()> {
        match to {
            Addr::Ip(to) => addr::reachable(to),
            _ => Ok(()),
        }
    }

    /// The kernel it belongs to.
    pub fn kernel(&self) -> Option<Arc<Kernel>> {
        self.kernel.upgrade()
    }
}

fn wait_until<T>(cx: &mut Cx, wait: Option<Duration>) -> SysResult<T> {
    let deadline = cx.deadline(|| wait.map(|w| crate::time::now().saturating_add(w)));
    if deadline.is_some_and(|d| crate::time::now() >= d) {
        return Err(Errno::EAGAIN.into());
    }
    cx.block_until(deadline, if deadline.is_some() { Restart::Never } else { Restart::Sys })
}

impl FileOps for Socket {
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], _offset: u64) -> SysResult<usize> {
        self.receive(cx, buf, cx.hurries(file), 0).map(|got| got.count)
    }

    fn write(&self, cx: &mut Cx, file: &File, data: &[u8], _offset: u64) -> SysResult<Written> {
        let mut none = Ancillary::default();
        let count = self.send(cx, data, &mut none, None, cx.hurries(file), 0)?;
        Ok(Written { count, end: 0 })
    }

    fn hurries(&self) -> bool {
        true
    }

    fn poll(&self, _file: &File) -> Ready {
        let (mut ready, peer, connected) = {
            let state = self.state.lock();
            let mut ready = Ready::empty();
            if let Some(backlog) = &state.backlog {
                return if backlog.waiting.is_empty() { ready } else { Ready::IN | Ready::RDNORM };
            }
            if !state.inbox.is_empty() || state.eof || state.error.is_some() {
                ready |= Ready::IN | Ready::RDNORM;
            }
            if state.eof {
                ready |= Ready::RDHUP;
            }
            if state.error.is_some() {
                ready |= Ready::ERR;
            }
            let over = state.eof && state.shut_write || state.ended;
            let fresh = !state.connected && self.kind != Kind::Dgram;
            if over || fresh {
                ready |= Ready::HUP;
            }
            if over || fresh || state.shut_write {
                ready |= Ready::OUT | Ready::WRNORM;
            }
            (ready, state.peer.as_ref().and_then(Weak::upgrade), state.connected)
        };
        let room = match peer {
            Some(peer) => {
                let state = peer.state.lock();
                state.bytes < ROOM / 2 && (self.kind == Kind::Stream || state.inbox.len() < DATAGRAMS)
            }
            None => self.kind == Kind::Dgram || connected,
        };
        if room {
            ready |= Ready::OUT | Ready::WRNORM;
        }
        ready
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.queue)
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(anonymous_attr(9, self.ino, S_IFSOCK | 0o777))
    }

    fn ioctl(&self, cx: &mut Cx, _file: &File, request: u32, arg: u64) -> SysResult {
        match request {
            FIONREAD => {
                let count = {
                    let state = self.state.lock();
                    match self.kind {
                        Kind::Stream => state.bytes,
                        _ => state.inbox.front().map_or(0, |m| m.data.len()),
                    }
                };
                cx.write_value(arg, &i32::try_from(count).unwrap_or(i32::MAX))?;
                Ok(0)
            }
            TIOCOUTQ => {
                // What is sent is in the peer's inbox at once; a stream's peer has not read it yet.
                let peer = self.state.lock().peer.as_ref().and_then(Weak::upgrade);
                let count = match peer.filter(|_| self.kind != Kind::Dgram && self.family == AF_UNIX) {
                    Some(peer) => peer.state.lock().bytes,
                    None => 0,
                };
                cx.write_value(arg, &i32::try_from(count).unwrap_or(i32::MAX))?;
                Ok(0)
            }
            _ => super::iface::ioctl(cx, request, arg).unwrap_or(Err(Errno::ENOTTY.into())),
        }
    }

    fn release(&self, _flags: i32) {
        self.close();
    }

    fn describe(&self) -> String {
        format!("socket:[{}]", self.ino)
    }
}

/// A description of a socket. `flags`: O_NONBLOCK, O_CLOEXEC is the descriptor's.
pub fn description(socket: Arc<Socket>, flags: i32) -> Arc<File> {
    File::new(socket, o::O_RDWR | flags & o::O_NONBLOCK, None)
}
