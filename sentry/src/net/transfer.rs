//! Sending and receiving: a message goes into the receiver's inbox.

use super::addr::Addr;
use super::collect::Charge;
use super::control::{Ancillary, Header, Record};
use super::socket::{Corked, Kind, MESSAGES, Message, ROOM, RUN, Socket, State, wait_until};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::task::creds::cap;
use crate::wait::Ready;
use crate::{signal, time};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::IntoBytes;

/// How much of a blocking send was done when it had to wait for room. None: it has not waited yet.
#[derive(Default)]
pub(super) struct Progress(pub(super) Option<usize>);

/// What [`Socket::receive`] got.
pub struct Received {
    /// Bytes put into the buffer.
    pub count: usize,
    /// The datagram's whole length (the count for streams).
    pub whole: usize,
    /// Less than it was (MSG_TRUNC).
    pub cut: bool,
    /// Who sent it.
    pub from: Addr,
    /// Rights and credentials.
    pub ancillary: Ancillary,
    /// When a datagram was sent: time since 1970.
    pub time: Option<Duration>,
    /// What went wrong with a datagram that was sent: it is one of the error queue.
    pub error: Option<Record>,
}

impl Received {
    /// So many bytes of a stream.
    pub fn of(count: usize) -> Received {
        Received { count, whole: count, ..Received::nothing() }
    }

    /// Nothing came.
    pub fn nothing() -> Received {
        Received {
            count: 0,
            whole: 0,
            cut: false,
            from: Addr::Unnamed,
            ancillary: Ancillary::default(),
            time: None,
            error: None,
        }
    }
}

impl Socket {
    /// The control messages, but for SCM_RIGHTS, that come with what was received.
    pub fn records(&self, cx: &Cx, got: &Received) -> Vec<Record> {
        let on = |level, name| self.state.lock().options.get(&(level, name)).is_some_and(|v| *v != 0);
        let mut out = Vec::new();
        if matches!(self.family, AF_UNIX | AF_NETLINK) && on(SOL_SOCKET, SO_PASSCRED) {
            let mut creds = got.ancillary.creds.unwrap_or(Ucred { pid: 0, uid: 65534, gid: 65534 });
            let ns = &cx.task.creds().ns;
            (creds.uid, creds.gid) = (ns.user(creds.uid), ns.group(creds.gid));
            let sender = got.ancillary.process.as_ref();
            creds.pid = sender.map_or_else(|| cx.task.shown(creds.pid), |p| p.seen_by(&cx.task.process));
            out.push((SOL_SOCKET, SCM_CREDENTIALS, creds.as_bytes().to_vec()));
        }
        if let Some(time) = got.time {
            // SCM_TIMESTAMP and SCM_TIMESTAMPNS have the numbers of their options.
            if on(SOL_SOCKET, SO_TIMESTAMP_OLD) {
                out.push((SOL_SOCKET, SO_TIMESTAMP_OLD, time::to_timeval(time).as_bytes().to_vec()));
            } else if on(SOL_SOCKET, SO_TIMESTAMPNS_OLD) {
                out.push((SOL_SOCKET, SO_TIMESTAMPNS_OLD, time::to_timespec(time).as_bytes().to_vec()));
            } else if on(SOL_SOCKET, SO_TIMESTAMP_NEW) {
                out.push((SOL_SOCKET, SO_TIMESTAMP_NEW, time::to_timeval(time).as_bytes().to_vec()));
            } else if on(SOL_SOCKET, SO_TIMESTAMPNS_NEW) {
                out.push((SOL_SOCKET, SO_TIMESTAMPNS_NEW, time::to_timespec(time).as_bytes().to_vec()));
            }
        }
        out.extend(got.ancillary.ip.records(self.family, on));
        out.extend(got.error.clone());
        out
    }

    /// Fills in what the header of a datagram to `to` says beside what the sender gave.
    pub(super) fn fill_header(&self, header: &mut Header, to: &Addr) {
        let state = self.state.lock();
        let (hops, class) = match self.family {
            AF_INET => ((SOL_IP, IP_TTL), (SOL_IP, IP_TOS)),
            _ => ((SOL_IPV6, IPV6_UNICAST_HOPS), (SOL_IPV6, IPV6_TCLASS)),
        };
        let many = matches!(to, Addr::Ip(at) if at.ip().is_multicast());
        let (hops, most) = match (many, self.family) {
            (true, AF_INET) => ((SOL_IP, IP_MULTICAST_TTL), 1),
            (true, _) => ((SOL_IPV6, IPV6_MULTICAST_HOPS), 1),
            _ => (hops, 64),
        };
        let option = |key, first| state.options.get(&key).copied().filter(|v| *v >= 0).unwrap_or(first);
        header.hops.get_or_insert(option(hops, most));
        header.class.get_or_insert(option(class, 0));
        if let Addr::Ip(at) = to {
            header.to = Some(*at);
        }
    }

    /// The address that a datagram to `to` comes from: an unbound one is loopback's.
    fn source(&self, to: SocketAddr) -> Option<SocketAddr> {
        match self.state.lock().local {
            Addr::Ip(local) if local.ip().is_unspecified() => {
                let ip = if to.ip().to_canonical().is_ipv4() {
                    Ipv4Addr::LOCALHOST.into()
                } else {
                    Ipv6Addr::LOCALHOST.into()
                };
                Some(SocketAddr::new(ip, local.port()))
            }
            Addr::Ip(local) => Some(local),
            _ => None,
        }
    }

    /// Whom a message goes to: `to` from the call, else the peer.
    pub(super) fn target(&self, to: Option<(Addr, Option<Arc<Socket>>)>) -> SysResult<Option<Arc<Socket>>> {
        if self.kind == Kind::Dgram {
            if let Some((remote, socket)) = to {
                if let Addr::Ip(at) = remote {
                    self.autobind_ip(None)?;
                    return Ok(self.net.find_ip(self.protocol, at, self.source(at)));
                }
                return Ok(socket);
            }
            let (connected, remote, peer) = {
                let state = self.state.lock();
                (state.connected, state.remote.clone(), state.peer.as_ref().and_then(Weak::upgrade))
            };
            if !connected {
                if self.family != AF_UNIX {
                    self.autobind_ip(None)?;
                }
                return Err(if self.family == AF_UNIX { Errno::ENOTCONN } else { Errno::EDESTADDRREQ }.into());
            }
            return match remote {
                // Looked up each time: the receiver may have been bound later.
                Addr::Ip(at) => Ok(self.net.find_ip(self.protocol, at, self.source(at))),
                _ if peer.is_some() => Ok(peer),
                _ => {
                    self.drop_peer();
                    Err(Errno::ECONNREFUSED.into())
                }
            };
        }
        let state = self.state.lock();
        if !state.connected && !state.ended {
            return Err(Errno::ENOTCONN.into());
        }
        Ok(state.peer.as_ref().and_then(Weak::upgrade))
    }

    /// Sends. `flags`: MSG_DONTWAIT, MSG_NOSIGNAL, MSG_OOB.
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
        // What a reader has lost is the reader's affair.
        if self.family == AF_NETLINK && flags & MSG_OOB == 0 {
            return self.send_netlink(cx, data, to.map(|(addr, _)| addr), nonblocking);
        }
        let stream = self.kind == Kind::Stream;
        let counts = stream && !nonblocking;
        let before = if counts { cx.state::<Progress>().0.take() } else { None };
        let mut done = before.unwrap_or(0).min(data.len());
        if done > 0 && self.has_error() {
            return Ok(done);
        }
        let mut state = self.state.lock();
        if state.attempt.is_some() {
            let wait = state.send_wait;
            drop(state);
            cx.wait_on(&self.queue, Ready::OUT);
            return if nonblocking { Err(Errno::EAGAIN.into()) } else { wait_until(cx, wait) };
        }
        // A Unix stream whose peer has gone: only who waits for room hears that it went without reading all.
        if self.family == AF_UNIX && stream && state.ended && state.connected && before.is_none() {
            drop(state);
            return self.broken(cx, 0, flags);
        }
        let error = state.error.take();
        // TCP takes what never was a connection for one that has ended.
        let none = stream && self.family != AF_UNIX && !state.connected && !state.ended;
        drop(state);
        match error {
            Some(Errno::EPIPE) => return self.broken(cx, 0, flags),
            Some(error) => return Err(error.into()),
            None if none => return self.broken(cx, 0, flags),
            None => {}
        }
        if flags & MSG_OOB != 0 {
            return self.send_urgent(cx, data, ancillary, before, nonblocking, flags);
        }
        if !crate::memory::room_for(data.len() as u64) {
            return if done > 0 { Ok(done) } else { Err(Errno::ENOBUFS.into()) };
        }
        let buffer = self.send_buffer();
        // A message of AF_UNIX is in the sender's buffer, with 32 bytes beside it.
        let most = if self.family == AF_UNIX { buffer.unwrap_or(ROOM).saturating_sub(32) } else { 65_507 };
        if !stream && data.len() > most {
            let to = to.map_or_else(|| self.state.lock().remote.clone(), |(addr, _)| addr);
            if let Addr::Ip(to) = to {
                self.too_long(data.len(), to);
            }
            return Err(Errno::EMSGSIZE.into());
        }
        if !stream && self.family != AF_UNIX {
            let corks = flags & MSG_MORE != 0
                || self.state.lock().options.get(&(SOL_UDP, UDP_CORK)).is_some_and(|on| *on != 0);
            let begun = self.state.lock().corked.take();
            if corks || begun.is_some() {
                return self.send_parts(cx, data, (begun, corks), ancillary, to, flags);
            }
        }
        if matches!(self.protocol, IPPROTO_ICMP | IPPROTO_ICMPV6) && !stream {
            let to = match &to {
                Some((addr, _)) => addr.clone(),
                None => self.remote().ok_or(Errno::EDESTADDRREQ)?,
            };
            return self.send_echo(data, &to);
        }
        // What came with the message went with its first bytes.
        if done > 0 {
            ancillary.rights.clear();
        }
        if !stream && self.family != AF_UNIX {
            let remote = match &to {
                Some((addr, _)) => addr.clone(),
                None => self.state.lock().remote.clone(),
            };
            self.fill_header(&mut ancillary.ip, &remote);
        }
        if let Some(to) = ancillary.ip.to.filter(|to| self.net.is_for_many(to.ip())) {
            return self.send_to_many(data, to, ancillary);
        }
        let target = self.target(to)?;
        let (local, shut, wait, names_itself) = {
            let state = self.state.lock();
            let shut = state.shut_write || state.ended;
            (state.local.clone(), shut, state.send_wait, state.passes_creds())
        };
        let local = match ancillary.ip.to.and_then(|to| self.source(to)) {
            Some(source) => Addr::Ip(source),
            None => local,
        };
        // Read before the receiver is locked.
        let sender = (self.family == AF_UNIX).then(|| super::control::sender(cx));
        let tcp = stream && self.family != AF_UNIX;
        let Some(target) = target.filter(|_| !shut) else {
            if self.kind == Kind::Dgram && !shut {
                // Nobody there: UDP does not know yet.
                if let Some(to) = ancillary.ip.to {
                    self.unreachable(data, to);
                }
                return Ok(data.len());
            }
            let count = data.len().min(buffer.unwrap_or(ROOM));
            return if tcp && !shut { Ok(self.hear_reset(count)) } else { self.broken(cx, done, flags) };
        };
        let charge = self.charge_for(cx, &target, ancillary)?;
        let mut carries = false;
        cx.wait_on(&target.queue, Ready::OUT);
        let mut inbox = target.state.lock();
        let room = target.room(&inbox, buffer);
        if tcp && inbox.ended {
            drop(inbox);
            return Ok(self.hear_reset(data.len().min(room)));
        }
        if !self.may_send(&inbox) {
            return Err(Errno::EPERM.into());
        }
        if inbox.eof && !tcp {
            drop(inbox);
            if self.kind == Kind::Dgram {
                return Err(Errno::EPIPE.into());
            }
            return self.broken(cx, done, flags);
        }
        let udp = self.kind == Kind::Dgram && self.family != AF_UNIX;
        // A sender may go past its buffer by one message, a receiver may not.
        let charged =
            inbox.charged.saturating_add(if udp { target.charge(data.len()).saturating_sub(1) } else { 0 });
        let full = !stream && !inbox.inbox.is_empty() && charged >= room || inbox.inbox.len() >= MESSAGES;
        let room = room.saturating_sub(inbox.charged);
        if full && udp {
            return Ok(data.len());
        }
        let rest = data.get(done..).unwrap_or_default();
        let part = match (full, stream) {
            (true, _) => 0,
            (false, true) => rest.len().min(room),
            (false, false) => rest.len(),
        };
        if !full && (part > 0 || !stream) {
            let sender = sender.filter(|_| names_itself || inbox.passes_creds());
            let carried = ancillary.part(cx, charge, sender);
            carries = !carried.rights.is_empty();
            let piece = rest.get(..part).unwrap_or_default();
            let run = inbox.inbox.back_mut().filter(|last| {
                stream
                    && carried.rights.is_empty()
                    && last.ancillary.rights.is_empty()
                    && last.ancillary.is_of(&carried)
                    && last.data.len() < RUN
                    && !last.urgent
                    && last.start < last.data.len()
            });
            match run {
                Some(last) => last.data.extend_from_slice(piece),
                None => {
                    let sent = if stream { Duration::ZERO } else { time::realtime() };
                    let message = Message {
                        data: piece.to_vec(),
                        start: 0,
                        from: local,
                        ancillary: carried,
                        time: sent,
                        urgent: false,
                    };
                    inbox.inbox.push_back(message);
                }
            }
            inbox.bytes = inbox.bytes.saturating_add(part);
            inbox.charged = inbox.charged.saturating_add(target.charge(part));
            done += part;
        }
        let deferred = if part > 0 { inbox.deferred.take() } else { None };
        drop(inbox);
        if let Some(deferred) = deferred {
            target.undefer(deferred, true);
        }
        if carries {
            self.net.flight().carries(&target);
            self.net.flight().look(false);
        }
        if part > 0 || !stream && !full {
            target.queue.wake(Ready::IN | Ready::RDNORM);
        }
        if !full && done >= data.len() {
            return Ok(done);
        }
        if nonblocking {
            return if done > 0 { Ok(done) } else { Err(Errno::EAGAIN.into()) };
        }
        if done > 0 && signal::deliver::pending(cx.task) {
            return Ok(done);
        }
        if stream {
            cx.state::<Progress>().0 = Some(done);
        }
        match wait_until(cx, wait) {
            Err(Fail::Error(Errno::EAGAIN)) if done > 0 => Ok(done),
            other => other,
        }
    }

    /// Whether a datagram of AF_UNIX reaches an inbox: one that is connected takes those of its peer alone.
    pub(super) fn may_send(&self, inbox: &State) -> bool {
        let other = |peer: &Weak<Socket>| !std::ptr::eq(peer.as_ptr(), self);
        self.kind != Kind::Dgram || self.family != AF_UNIX || !inbox.peer.as_ref().is_some_and(other)
    }

    /// Adds to a datagram of parts, which goes to where the first was to go; the last sends it.
    fn send_parts(
        &self,
        cx: &mut Cx,
        data: &[u8],
        (begun, corks): (Option<Box<Corked>>, bool),
        ancillary: &Ancillary,
        to: Option<(Addr, Option<Arc<Socket>>)>,
        flags: i32,
    ) -> SysResult<usize> {
        if to.is_none() && begun.is_none() && self.remote().is_none() {
            return Err(Errno::EDESTADDRREQ.into());
        }
        let first = || Corked { data: Vec::new(), to: to.map(|(addr, _)| addr), ip: ancillary.ip };
        let mut whole = begun.unwrap_or_else(|| Box::new(first()));
        if whole.data.len().saturating_add(data.len()) > 65_507 {
            return Err(Errno::EMSGSIZE.into());
        }
        whole.data.extend_from_slice(data);
        if corks {
            self.autobind_ip(None)?;
            self.state.lock().corked = Some(whole);
            return Ok(data.len());
        }
        self.send_whole(cx, *whole, flags).map(|_| data.len())
    }

    fn send_whole(&self, cx: &mut Cx, whole: Corked, flags: i32) -> SysResult<usize> {
        let mut ancillary = Ancillary { ip: whole.ip, ..Ancillary::default() };
        let to = whole.to.map(|addr| (addr, None));
        self.send(cx, &whole.data, &mut ancillary, to, true, flags & !MSG_MORE)
    }

    /// UDP_CORK is off: sends what there is.
    pub fn uncork(&self, cx: &mut Cx) -> SysResult<()> {
        let begun = self.state.lock().corked.take();
        match begun {
            Some(whole) => self.send_whole(cx, *whole, 0).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Counts the descriptors of a message to a socket, if it has any.
    pub(super) fn charge_for(
        &self,
        cx: &Cx,
        target: &Socket,
        ancillary: &Ancillary,
    ) -> SysResult<Option<Charge>> {
        match ancillary.rights.is_empty() {
            true => Ok(None),
            false if !target.takes_rights() => Err(Errno::EPERM.into()),
            false => self.charge_rights(cx, ancillary).map(Some),
        }
    }

    /// Counts the descriptors of a message.
    fn charge_rights(&self, cx: &Cx, ancillary: &Ancillary) -> SysResult<Charge> {
        let creds = cx.task.creds();
        let unlimited = creds.capable(cap::SYS_RESOURCE) || creds.capable(cap::SYS_ADMIN);
        let limit = (!unlimited).then(|| cx.task.process.limit(RLIMIT_NOFILE));
        let charge = self.net.flight().charge(creds.uid, &ancillary.rights, limit);
        charge.ok_or(Errno::ETOOMANYREFS.into())
    }

    /// SO_PASSRIGHTS
    fn takes_rights(&self) -> bool {
        self.state.lock().options.get(&(SOL_SOCKET, SO_PASSRIGHTS)).is_none_or(|on| *on != 0)
    }

    /// What is sent to an end that was closed is lost, and answered by a reset: later calls hear EPIPE, or ECONNRESET where
    /// the end was not told before (tcp(7)).
    fn hear_reset(&self, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        {
            let mut state = self.state.lock();
            state.error = Some(if state.eof { Errno::EPIPE } else { Errno::ECONNRESET });
            state.ended = true;
            state.eof = true;
            state.shut_write = true;
        }
        self.queue.wake(Ready::IN | Ready::OUT | Ready::HUP | Ready::ERR);
        count
    }

    pub(super) fn broken(&self, cx: &Cx, done: usize, flags: i32) -> SysResult<usize> {
        if done > 0 {
            return Ok(done);
        }
        if flags & MSG_NOSIGNAL == 0 {
            cx.sigpipe();
        }
        Err(Errno::EPIPE.into())
    }

    /// Whether who wants more of a stream than it got is to go on: not at its end, nor where something was sent out of band or
    /// by another writer. `full`: it got all it asked for this time.
    pub fn goes_on(&self, full: bool) -> bool {
        let state = self.state.lock();
        let marked = state.urgent.as_ref().is_some_and(|urgent| urgent.at == state.taken);
        (full || state.inbox.is_empty() && !state.eof) && !marked
    }

    /// Receives. `flags`: MSG_PEEK, MSG_WAITALL.
    ///
    /// # Errors
    /// As recv(2), or a block.
    pub fn receive(
        &self,
        cx: &mut Cx,
        mut buf: &mut [u8],
        nonblocking: bool,
        flags: i32,
    ) -> SysResult<Received> {
        let stream = self.kind == Kind::Stream;
        cx.wait_on(&self.queue, Ready::IN);
        let sender = if flags & MSG_WAITALL != 0 { self.peer_send_buffer() } else { None };
        // Dropped without the lock.
        let mut emptied = Vec::new();
        let mut state = self.state.lock();
        // A stream tells what came before it broke, a message waits behind the error.
        if state.inbox.is_empty() || !stream {
            match state.error.take() {
                // It belongs to sending; the end of the data was told before.
                Some(Errno::EPIPE) | None => {}
                Some(error) => return Err(error.into()),
            }
        }
        if !state.connected && !state.ended && state.attempt.is_none() && self.kind != Kind::Dgram {
            return Err(if self.family == AF_UNIX { Errno::EINVAL } else { Errno::ENOTCONN }.into());
        }
        let peek = flags & MSG_PEEK != 0;
        // SO_PEEK_OFF: where to look from.
        let off = state.options.get(&(SOL_SOCKET, SO_PEEK_OFF)).and_then(|off| usize::try_from(*off).ok());
        let (first, mut skip) = if peek { state.look_from(off.unwrap_or(0)) } else { (0, 0) };
        let unix = self.family == AF_UNIX;
        // Where something was sent out of band.
        let marked = unix && stream && state.urgent.is_some();
        let inline = marked && state.options.get(&(SOL_SOCKET, SO_OOBINLINE)).is_some_and(|on| *on != 0);
        let first = match marked {
            true => state.past_mark(first, false, (peek, inline), &mut emptied).unwrap_or(first),
            false => first,
        };
        let nothing = first >= state.inbox.len();
        let wait = state.receive_wait;
        let wanted = if flags & MSG_WAITALL != 0 { usize::MAX } else { Socket::least(&state) };
        let short = stream
            && wanted > 1
            && !(marked && state.ends_at_mark(first))
            && !nonblocking
            && !state.eof
            && state.bytes < wanted.min(buf.len()).min(self.room(&state, sender));
        if nothing || short {
            self.took(&emptied);
            if state.eof && nothing {
                return Ok(Received::nothing());
            }
            drop(state);
            if nonblocking {
                return Err(Errno::EAGAIN.into());
            }
            return wait_until(cx, wait);
        }
        // A read ends at the urgent byte; the next one goes past it.
        let mark = state.urgent.as_ref().map(|u| u.at.saturating_sub(state.taken));
        match mark.and_then(|m| usize::try_from(m).ok()) {
            Some(0) if stream && !peek && !buf.is_empty() => state.urgent = None,
            Some(rest) if rest > 0 && rest < buf.len() => buf = buf.get_mut(..rest).unwrap_or_default(),
            _ => {}
        }
        let mut got = Received::nothing();
        let mut index = first;
        let passes = unix && state.passes_creds();
        loop {
            if marked && got.count > 0 {
                match state.past_mark(index, true, (peek, inline), &mut emptied) {
                    Some(next) => index = next,
                    None => break,
                }
            }
            let Some(message) = state.inbox.get_mut(index) else { break };
            // A read ends behind what carries rights, not before it.
            if got.count > 0 && (!stream || got.count >= buf.len()) {
                break;
            }
            // Who asks for the writer is told of one.
            if passes && got.count > 0 && !message.ancillary.is_of(&got.ancillary) {
                break;
            }
            let start = message.start.saturating_add(std::mem::take(&mut skip));
            let bytes = message.data.get(start..).unwrap_or_default();
            let room = buf.len().saturating_sub(got.count);
            let part = bytes.len().min(room);
            if got.count.saturating_add(part) > cx.room {
                // A stream keeps what has no place, a message is lost.
                if got.count > 0 {
                    break;
                }
                let lost = if stream || peek { None } else { state.inbox.pop_front() };
                if let Some(lost) = &lost {
                    self.took(std::slice::from_ref(lost));
                    state.bytes = state.bytes.saturating_sub(lost.data.len());
                    state.charged = state.charged.saturating_sub(self.charge(lost.data.len()));
                }
                drop(state);
                drop(lost);
                return Err(Errno::EFAULT.into());
            }
            if let (Some(to), Some(from)) = (buf.get_mut(got.count..got.count + part), bytes.get(..part)) {
                to.copy_from_slice(from);
            }
            got.count += part;
            // UDP tells the whole length, from wherever it is looked at; and of a part, unless more was asked for, that it is one.
            let udp = !stream && matches!(self.family, AF_INET | AF_INET6);
            got.whole += match (stream, udp) {
                (true, _) => part,
                (false, true) => message.data.len(),
                (false, false) => bytes.len(),
            };
            got.cut = if udp { room <= bytes.len() && part < message.data.len() } else { part < bytes.len() };
            got.from = message.from.clone();
            got.ancillary.creds = message.ancillary.creds;
            got.ancillary.ip = message.ancillary.ip;
            got.ancillary.process = message.ancillary.process.clone();
            got.time = (!stream).then_some(message.time);
            let with_rights = !message.ancillary.rights.is_empty();
            if with_rights {
                self.net.flight().took();
            }
            if peek {
                got.ancillary.rights.extend(message.ancillary.rights.iter().cloned());
                index += 1;
            } else {
                got.ancillary.rights.append(&mut message.ancillary.rights);
                message.ancillary.charge = None;
                let whole = !stream || part == bytes.len();
                let taken = if stream { part } else { bytes.len() };
                message.start += part;
                if whole && let Some(message) = state.inbox.pop_front() {
                    emptied.push(message);
                }
                state.bytes = state.bytes.saturating_sub(taken);
                state.charged = state.charged.saturating_sub(self.charge(taken));
                state.taken = state.taken.wrapping_add(taken as u64);
                if !whole {
                    break;
                }
            }
            if with_rights || !stream {
                break;
            }
        }
        self.took(&emptied);
        state.congested &= !state.inbox.is_empty();
        if let Some(off) = off {
            let udp = !stream && self.family != AF_UNIX;
            let moved = match (peek, udp) {
                (true, true) if flags & MSG_TRUNC != 0 => off.saturating_add(got.whole),
                (true, _) => off.saturating_add(got.count),
                (false, true) if flags & MSG_TRUNC == 0 => off.saturating_sub(got.count),
                (false, _) => off.saturating_sub(got.whole),
            };
            let moved = i32::try_from(moved).unwrap_or(i32::MAX);
            state.options.insert((SOL_SOCKET, SO_PEEK_OFF), moved);
        }
        drop(state);
        drop(emptied);
        if !peek {
            self.queue.wake(Ready::ROOM);
            self.wake_peer(Ready::ROOM);
        }
        Ok(got)
    }
}
