//! One socket of any kind. A sender puts its message into the receiver's inbox and wakes it.

use super::Net;
use super::addr::Addr;
use super::control::Ancillary;
use super::defer::Deferred;
use super::errqueue::Queued;
use super::knock::Attempt;
use super::listing::{self, Row};
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::ipc::{anonymous_attr, next_ino};
use crate::kernel::Kernel;
use crate::sync::{Level, Lock};
use crate::task::creds::Creds;
use crate::task::pidns::{Name, PidNs};
use crate::task::{Process, Task};
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps, Written, o};
use crate::vfs::nameless::Owned;
use crate::wait::{Ready, WaitQueue};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Most bytes in an inbox (net.core.rmem_default) where SO_SNDBUF and SO_RCVBUF say nothing else.
pub(super) const ROOM: usize = 212_992;

/// What a message that stays apart takes of a buffer, as Linux charges it: the allocation that it is in, and its head.
fn charge(len: usize) -> usize {
    const SHARED: usize = 320;
    const HEAD: usize = 256;
    let block = len.saturating_add(SHARED);
    let block = if block <= 8192 { block.next_power_of_two() } else { block.next_multiple_of(4096) };
    block.saturating_add(HEAD)
}
/// Most messages in an inbox (net.unix.max_dgram_qlen is lower; UDP has no such limit). Those of a stream that have
/// rights or other credentials stay apart, and what they hold beside their bytes is bounded so, as Linux does by
/// charging the buffer of each.
pub(super) const MESSAGES: usize = 1024;
/// Bytes that one stream message grows to.
pub(super) const RUN: usize = 65_536;

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
#[derive(Default)]
pub(super) struct Message {
    pub data: Vec<u8>,
    /// Bytes of a stream message read already.
    pub start: usize,
    pub from: Addr,
    pub ancillary: Ancillary,
    /// When it was sent: time since 1970.
    pub time: Duration,
    /// The byte of an AF_UNIX stream that was sent out of band last, and not read since.
    pub urgent: bool,
}

/// The urgent byte of a stream (tcp(7), "out-of-band").
pub(super) struct Urgent {
    /// Bytes of the stream before it; of AF_UNIX it is among the messages.
    pub at: u64,
    pub byte: u8,
    /// SO_OOBINLINE left it in the stream.
    pub inline: bool,
    /// MSG_OOB took it.
    pub read: bool,
}

/// Connections not accepted yet.
#[derive(Default)]
pub struct Backlog {
    pub(super) waiting: VecDeque<Arc<Socket>>,
    /// Those that nothing came from yet (TCP_DEFER_ACCEPT).
    pub(super) deferred: Vec<Arc<Socket>>,
    /// Those of TCP that wait until there is a place, by the tickets of their attempts.
    pub(super) knocking: BTreeMap<u64, Weak<Socket>>,
    pub(super) most: usize,
}

/// Who has made one end of an AF_UNIX connection.
#[derive(Clone)]
pub(super) struct Side {
    pub(super) process: Weak<Process>,
    pub(super) name: Name,
    pub(super) creds: Arc<Creds>,
}

impl Side {
    /// Takes a lock of the task: no socket's state may be held.
    pub(super) fn of(task: &Task) -> Side {
        let process = &task.process;
        Side { process: Arc::downgrade(process), name: process.name.clone(), creds: task.creds() }
    }
}

/// Parts of a datagram.
pub(super) struct Corked {
    pub(super) data: Vec<u8>,
    pub(super) to: Option<Addr>,
    pub(super) ip: super::control::Header,
}

impl Backlog {
    /// As many wait as may.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len().saturating_add(self.deferred.len()) >= self.most
    }

    /// Those connections.
    pub(super) fn sockets(&self) -> Vec<Arc<Socket>> {
        self.waiting.iter().cloned().collect()
    }
}

/// What changes of a socket.
#[derive(Default)]
pub struct State {
    /// Its own name.
    pub local: Addr,
    /// The peer's name.
    pub remote: Addr,
    pub(super) peer: Option<Weak<Socket>>,
    pub(super) connected: bool,
    /// connect(2) said EINPROGRESS and was not called again since.
    pub(super) connecting: bool,
    /// As a client of TCP, while the listener has no place.
    pub(super) attempt: Option<Attempt>,
    /// A connection that was; sending is EPIPE.
    pub(super) ended: bool,
    /// listen(2) was called.
    pub backlog: Option<Backlog>,
    pub(super) inbox: VecDeque<Message>,
    pub(super) bytes: usize,
    /// Nothing more comes in: the peer closed or shut down, or this side did.
    pub(super) eof: bool,
    /// shutdown(SHUT_WR)
    pub(super) shut_write: bool,
    /// SO_ERROR
    pub error: Option<Errno>,
    /// SO_PEERCRED, SO_PEERPIDFD, SO_PEERGROUPS; of a listener: who called listen(2).
    pub(super) peer_side: Option<Side>,
    /// Parts of a datagram that is sent later (UDP_CORK, MSG_MORE).
    pub(super) corked: Option<Box<Corked>>,
    /// SO_LINGER
    pub linger: Linger,
    /// SO_RCVTIMEO
    pub receive_wait: Option<Duration>,
    /// SO_SNDTIMEO
    pub send_wait: Option<Duration>,
    /// Options that are remembered.
    pub options: HashMap<(i32, i32), i32>,
    /// What the inbox holds as [`Socket::charge`] has it.
    pub(super) charged: usize,
    /// Bytes of a TCP stream that were taken out of the inbox.
    pub(super) taken: u64,
    pub(super) urgent: Option<Urgent>,
    /// Errors of what was sent (IP_RECVERR).
    pub(super) errors: VecDeque<Queued>,
    /// As a connection that waits to be accepted until something comes.
    pub(super) deferred: Option<Deferred>,
    /// Multicast groups that it is in.
    pub(super) groups: Vec<IpAddr>,
    /// Those of AF_NETLINK, a bit each; None: it never was in any.
    pub(super) memberships: Option<u64>,
    /// Of AF_NETLINK: messages were lost, and there are some to read yet.
    pub(super) congested: bool,
    /// How many were lost.
    pub(super) drops: u32,
    /// Whether bind(2) named address and port.
    pub chosen: (bool, bool),
    /// IP_MULTICAST_IF by an address.
    pub(super) sends_as: Option<Ipv4Addr>,
}

impl State {
    /// The message that holds what is `off` bytes behind the first that was not received, and where in it. The number of
    /// messages: there is none.
    pub(super) fn look_from(&self, off: usize) -> (usize, usize) {
        let mut skip = off;
        for (index, message) in self.inbox.iter().enumerate() {
            let len = message.data.len().saturating_sub(message.start);
            if skip < len || skip == 0 {
                return (index, skip);
            }
            skip -= len;
        }
        (self.inbox.len(), 0)
    }

    /// SO_PASSCRED, SO_PASSPIDFD
    pub(super) fn passes_creds(&self) -> bool {
        let on = |name| self.options.get(&(SOL_SOCKET, name)).is_some_and(|on| *on != 0);
        on(SO_PASSCRED) || on(SO_PASSPIDFD)
    }

    fn buffer(&self, name: i32) -> Option<usize> {
        self.options.get(&(SOL_SOCKET, name)).and_then(|value| usize::try_from(*value).ok())
    }
}

/// A socket.
pub struct Socket {
    /// AF_UNIX, AF_INET, AF_INET6
    pub family: i32,
    /// Type.
    pub kind: Kind,
    /// What changes. Held together with another socket's only where the two are connected.
    pub state: Lock<State>,
    pub(super) queue: WaitQueue,
    /// IPPROTO_* or NETLINK_*
    pub protocol: i32,
    /// Its network namespace.
    pub net: Arc<Net>,
    /// Effective user of its maker.
    pub(super) uid: u32,
    kernel: Weak<Kernel>,
    pub(super) me: Weak<Socket>,
    /// Inode number, and cookie.
    pub ino: u64,
    pub(super) owned: Owned,
}

impl Socket {
    /// An unconnected socket of a user and group in a network namespace.
    pub fn new(
        (kernel, net): (&Arc<Kernel>, &Arc<Net>),
        family: i32,
        kind: Kind,
        protocol: i32,
        (uid, gid): (u32, u32),
    ) -> Arc<Socket> {
        let ino = next_ino();
        let socket = Arc::new_cyclic(|me| Socket {
            family,
            kind,
            protocol,
            net: net.clone(),
            uid,
            state: Lock::new(Level::Object, State::default()),
            queue: WaitQueue::new(),
            kernel: Arc::downgrade(kernel),
            me: me.clone(),
            ino,
            owned: Owned::new(Attr { uid, gid, ..anonymous_attr(9, ino, S_IFSOCK | 0o777) }),
        });
        net.note(&socket);
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
                _ if state.attempt.is_some() => listing::SYN_SENT,
                _ => listing::CLOSE,
            };
            let ip = |addr: &Addr| match addr {
                Addr::Ip(at) => *at,
                _ => listing::nowhere(self.family),
            };
            if !unix && !state.local.is_bound() {
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
                remote: ip(state.attempt.as_ref().map_or(&state.remote, |attempt| &attempt.remote)),
                received: u32::try_from(waiting.unwrap_or(state.bytes)).unwrap_or(u32::MAX),
                v6_only: self.family == AF_INET6
                    && match &state.local {
                        Addr::Ip(at) if !at.ip().is_unspecified() => {
                            at.is_ipv6() && at.ip().to_canonical().is_ipv6()
                        }
                        _ => state.options.get(&(SOL_IPV6, IPV6_V6ONLY)).is_some_and(|only| *only != 0),
                    },
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

    /// Connects two sockets (socketpair).
    pub fn join(a: &Arc<Socket>, b: &Arc<Socket>, task: &Task) {
        let side = Side::of(task);
        for (one, other) in [(a, b), (b, a)] {
            let mut state = one.state.lock();
            state.peer = Some(Arc::downgrade(other));
            state.connected = true;
            state.peer_side = Some(side.clone());
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

    /// TCP_FASTOPEN_NO_COOKIE
    pub fn opens_fast(&self) -> bool {
        self.state.lock().options.get(&(SOL_TCP, TCP_FASTOPEN_NO_COOKIE)).is_some_and(|v| *v != 0)
    }

    /// Whether SO_ERROR is set.
    pub fn has_error(&self) -> bool {
        self.state.lock().error.is_some()
    }

    /// SO_SNDBUF, if it was set.
    pub(super) fn send_buffer(&self) -> Option<usize> {
        self.state.lock().buffer(SO_SNDBUF)
    }

    pub(super) fn peer_send_buffer(&self) -> Option<usize> {
        let peer = self.state.lock().peer.as_ref().and_then(Weak::upgrade);
        peer.and_then(|peer| peer.send_buffer())
    }

    /// What `len` bytes in an inbox count.
    pub(super) fn charge(&self, len: usize) -> usize {
        if self.kind == Kind::Stream { len } else { charge(len) }
    }

    /// The room of an inbox, whose state is given, for what a socket with this SO_SNDBUF sends. AF_UNIX has the
    /// sender's buffer alone, UDP the receiver's, and TCP both: half of the receiver's is the window.
    pub(super) fn room(&self, inbox: &State, sender: Option<usize>) -> usize {
        match (self.family, self.kind) {
            (AF_UNIX, _) => sender.unwrap_or(ROOM),
            (_, Kind::Stream) => {
                let window = inbox.buffer(SO_RCVBUF).unwrap_or(ROOM) / 2;
                window.saturating_add(sender.unwrap_or(ROOM / 2))
            }
            _ => inbox.buffer(SO_RCVBUF).unwrap_or(ROOM),
        }
    }

    /// SO_RCVLOWAT: fewer bytes of a stream are not read.
    pub(super) fn least(state: &State) -> usize {
        let least = state.options.get(&(SOL_SOCKET, SO_RCVLOWAT)).copied().unwrap_or(1);
        usize::try_from(least).unwrap_or(1)
    }

    /// Whether what came is ready to be read, as poll(2) has it: AF_UNIX shows any byte.
    fn has_enough(&self, state: &State) -> bool {
        if self.family == AF_UNIX || self.kind != Kind::Stream || state.options.is_empty() {
            return !state.inbox.is_empty();
        }
        !state.inbox.is_empty() && state.bytes >= Socket::least(state).min(self.room(state, None) / 2)
    }

    /// A remembered option of SOL_SOCKET is on.
    pub fn option(&self, name: i32) -> bool {
        self.state.lock().options.get(&(SOL_SOCKET, name)).is_some_and(|v| *v != 0)
    }

    /// Gives an inet socket a port if it has none.
    pub fn autobind_ip(&self, toward: Option<IpAddr>) -> SysResult<SocketAddr> {
        let mut wish = listing::nowhere(self.family);
        match self.state.lock().local {
            Addr::Ip(bound) if bound.port() != 0 => return Ok(bound),
            // An address that was chosen, without its port by now.
            Addr::Ip(kept) => wish = kept,
            _ => {
                if let Some(ip) = toward {
                    wish.set_ip(ip);
                }
            }
        }
        let me = self.me.upgrade().ok_or(Errno::EBADF)?;
        let bound = self.net.bind_ip(wish, &me, false)?;
        self.state.lock().local = Addr::Ip(bound);
        Ok(bound)
    }

    pub(super) fn wake_peer(&self, mask: Ready) {
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
            if state.attempt.is_some() {
                // Who is on the way to a connection is off it, in one step: it may be there at any moment.
                let rest = state.reset();
                drop(state);
                self.after_reset(rest);
                return Ok(());
            }
            if self.family != AF_UNIX && !state.connected && state.backlog.is_none() {
                return Err(Errno::ENOTCONN.into());
            }
            // Who listens goes on as long as it reads.
            let dropped = if read { state.backlog.take() } else { None };
            state.eof |= read;
            state.shut_write |= write;
            (state.peer.as_ref().and_then(Weak::upgrade), dropped)
        };
        if let Some(peer) = peer.filter(|_| self.kind != Kind::Dgram) {
            let deferred = {
                let mut state = peer.state.lock();
                state.eof |= write;
                // A peer that reads no more breaks writing.
                state.shut_write |= read && self.family == AF_UNIX;
                if write { state.deferred.take() } else { None }
            };
            if let Some(deferred) = deferred {
                peer.undefer(deferred, true);
            }
            peer.queue.wake(Ready::IN | Ready::OUT | Ready::HUP | Ready::RDHUP);
        }
        self.queue.wake(Ready::IN | Ready::OUT | Ready::HUP | Ready::RDHUP);
        if let Some(dropped) = dropped {
            Socket::refuse(dropped);
        }
        Ok(())
    }

    /// Nobody will accept them: a reset of TCP. Of those that nothing came from only the next segment is answered so.
    pub(super) fn refuse(backlog: Backlog) {
        for socket in backlog.waiting {
            socket.state.lock().linger = Linger { l_onoff: 1, l_linger: 0 };
            socket.close();
        }
        backlog.deferred.iter().for_each(Socket::stop_waiting);
        for (ticket, client) in backlog.knocking {
            if let Some(client) = client.upgrade() {
                client.fail(ticket, Errno::ECONNREFUSED);
            }
        }
    }

    /// The peer is gone; `reset`: with what it had not read, or at once. No lock may be held.
    pub(super) fn hear_end(self: &Arc<Socket>, reset: bool) {
        let deferred = {
            let mut state = self.state.lock();
            state.eof = true;
            // TCP may send on until it hears of it.
            state.ended = reset || self.family == AF_UNIX;
            if reset {
                state.error = Some(Errno::ECONNRESET);
                // A reset TCP connection has no peer any more.
                state.connected &= self.family == AF_UNIX;
            }
            state.deferred.take()
        };
        if let Some(deferred) = deferred {
            self.undefer(deferred, !reset);
        }
        self.queue.wake(Ready::IN | Ready::OUT | Ready::HUP | Ready::RDHUP | Ready::ERR);
    }

    /// Messages were taken out of the inbox, whose state is locked.
    pub(super) fn took(&self, messages: &[Message]) {
        if messages.iter().any(|message| !message.ancillary.rights.is_empty()) {
            self.net.flight().took();
        }
    }

    fn close(&self) {
        let name = self.state.lock().local.clone();
        self.net.unbind(&name, self);
        let (attempt, peer, reset, backlog, inbox) = {
            let mut state = self.state.lock();
            let attempt = state.attempt.take();
            let inbox = Vec::from(std::mem::take(&mut state.inbox));
            self.took(&inbox);
            let backlog = state.backlog.take();
            if backlog.is_some() && self.family == AF_UNIX {
                self.net.flight().took();
            }
            let peer = state.peer.take().and_then(|p| p.upgrade());
            state.eof = true;
            state.shut_write = true;
            state.ended = true;
            let aborts = self.family != AF_UNIX && state.linger.l_onoff != 0 && state.linger.l_linger == 0;
            (attempt, peer, state.bytes > 0 || aborts, backlog, inbox)
        };
        self.leave(attempt);
        if let Some(peer) = peer.filter(|_| self.kind != Kind::Dgram) {
            peer.hear_end(reset);
        }
        if let Some(backlog) = backlog {
            Socket::refuse(backlog);
        }
        self.queue.wake(Ready::IN | Ready::OUT | Ready::HUP);
        drop(inbox);
        if self.family == AF_UNIX {
            self.net.flight().look(true);
        }
    }

    /// The network that a datagram's or connection's address must be in.
    ///
    /// # Errors
    /// The denial.
    pub fn check_reach(&self, to: &Addr) -> SysResult<()> {
        match to {
            Addr::Ip(to) => self.check_ip(to),
            _ => Ok(()),
        }
    }

    fn check_ip(&self, to: &SocketAddr) -> SysResult<()> {
        let ip = to.ip().to_canonical();
        let lo = self.net.lo();
        if lo.up
            && !ip.is_loopback()
            && ip.is_multicast()
            && self.kind == Kind::Dgram
            && self.reaches_groups(ip)
        {
            return Ok(());
        }
        self.net.reachable(to)?;
        match (lo.is_broadcast(ip), self.kind) {
            (true, Kind::Stream) => Err(Errno::ENETUNREACH.into()),
            (true, _) if !self.option(SO_BROADCAST) => Err(Errno::EACCES.into()),
            _ => Ok(()),
        }
    }

    /// Its protocol, as /proc/net/protocols names it.
    pub fn protocol_name(&self) -> &'static str {
        let six = self.family == AF_INET6;
        match (self.family, self.kind, self.protocol) {
            (AF_UNIX, Kind::Stream, _) => "UNIX-STREAM",
            (AF_UNIX, ..) => "UNIX",
            (AF_NETLINK, ..) => "NETLINK",
            (_, Kind::Stream, _) => {
                if six {
                    "TCPv6"
                } else {
                    "TCP"
                }
            }
            (.., IPPROTO_ICMP | IPPROTO_ICMPV6) => {
                if six {
                    "PINGv6"
                } else {
                    "PING"
                }
            }
            (.., IPPROTO_UDPLITE) => {
                if six {
                    "UDPLITEv6"
                } else {
                    "UDP-Lite"
                }
            }
            _ => {
                if six {
                    "UDPv6"
                } else {
                    "UDP"
                }
            }
        }
    }

    /// The kernel it belongs to.
    pub fn kernel(&self) -> Option<Arc<Kernel>> {
        self.kernel.upgrade()
    }
}

pub(super) fn wait_until<T>(cx: &mut Cx, wait: Option<Duration>) -> SysResult<T> {
    let deadline = cx.deadline(|| wait.map(|w| crate::time::now().saturating_add(w)));
    if deadline.is_some_and(|d| crate::time::now() >= d) {
        return Err(Errno::EAGAIN.into());
    }
    cx.block_until(deadline, if deadline.is_some() { Restart::Never } else { Restart::Sys })
}

impl FileOps for Socket {
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], _offset: u64) -> SysResult<usize> {
        // Unlike recv(2), which takes an empty message.
        if buf.is_empty() {
            return Ok(0);
        }
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
        // tcp_poll in Linux names no band.
        let tcp = self.family != AF_UNIX && self.kind == Kind::Stream;
        let writable = if tcp { Ready::OUT | Ready::WRNORM } else { Ready::ROOM };
        let (mut ready, peer, connected, buffer) = {
            let state = self.state.lock();
            let mut ready = Ready::empty();
            if state.attempt.is_some() {
                return ready;
            }
            if let Some(backlog) = &state.backlog {
                return if backlog.waiting.is_empty() { ready } else { Ready::IN | Ready::RDNORM };
            }
            if self.has_enough(&state) || state.eof {
                ready |= Ready::IN | Ready::RDNORM;
            }
            if state.eof {
                ready |= Ready::RDHUP;
            }
            if state.error.is_some() || !state.errors.is_empty() {
                ready |= Ready::ERR;
            }
            if state.urgent.as_ref().is_some_and(|u| !u.read) {
                ready |= Ready::PRI;
            }
            let over = state.eof && state.shut_write || state.ended;
            let fresh = !state.connected && self.kind != Kind::Dgram;
            if over || fresh {
                ready |= Ready::HUP;
            }
            if over || fresh || state.shut_write {
                ready |= writable;
            }
            let buffer = state.buffer(SO_SNDBUF);
            (ready, state.peer.as_ref().and_then(Weak::upgrade), state.connected, buffer)
        };
        let room = match peer {
            Some(peer) => {
                let state = peer.state.lock();
                state.charged < peer.room(&state, buffer) / 2 && state.inbox.len() < MESSAGES
            }
            None => self.kind == Kind::Dgram || connected,
        };
        if room {
            ready |= writable;
        }
        ready
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.queue)
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(self.owned.attr())
    }

    fn owned(&self) -> Option<&Owned> {
        Some(&self.owned)
    }

    fn protocol(&self) -> Option<&'static str> {
        Some(self.protocol_name())
    }

    fn ioctl(&self, cx: &mut Cx, _file: &File, request: u32, arg: u64) -> SysResult {
        match request {
            FIONREAD => {
                let count = {
                    let state = self.state.lock();
                    match self.kind {
                        _ if state.backlog.is_some() => return Err(Errno::EINVAL.into()),
                        Kind::Stream => state.bytes,
                        _ => state.inbox.front().map_or(0, |m| m.data.len()),
                    }
                };
                cx.write_value(arg, &i32::try_from(count).unwrap_or(i32::MAX))?;
                Ok(0)
            }
            SIOCATMARK if self.family == AF_UNIX || self.kind == Kind::Stream => {
                let at = self.at_mark()?;
                cx.write_value(arg, &i32::from(at))?;
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
            _ => super::iface::ioctl(cx, &self.net, request, arg).unwrap_or(Err(Errno::ENOTTY.into())),
        }
    }

    fn release(&self, _flags: i32) {
        self.close();
    }

    fn info(&self, _: &PidNs) -> String {
        let state = self.state.lock();
        let flying: usize = state.inbox.iter().map(|message| message.ancillary.rights.len()).sum();
        match self.family {
            AF_UNIX => format!("scm_fds: {flying}\n"),
            _ => String::new(),
        }
    }

    fn describe(&self) -> String {
        format!("socket:[{}]", self.ino)
    }
}

/// A description of a socket. `flags`: O_NONBLOCK, O_CLOEXEC is the descriptor's.
pub fn description(socket: Arc<Socket>, flags: i32) -> Arc<File> {
    File::new(socket, o::O_RDWR | flags & o::O_NONBLOCK, None)
}
