//! AF_NETLINK: requests and answers (netlink(7)). NETLINK_ROUTE is [`super::route`]'s; NETLINK_SOCK_DIAG lists sockets
//! (sock_diag(7)).

use super::addr::{Addr, array};
use super::control::Ancillary;
use super::listing;
use super::socket::{MESSAGES, Message, ROOM, Socket, State, wait_until};
use super::{Net, route};
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::cap;
use crate::task::userns::UserNs;
use crate::time;
use crate::wait::Ready;
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// A datagram of a dump grows to about this many bytes.
const DATAGRAM: usize = 8192;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_MULTI: u16 = 2;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Types below are control messages, which ask nothing.
const NLMSG_MIN_TYPE: u16 = 16;

const SOCK_DIAG_BY_FAMILY: u16 = 20;

/// Protocols a guest can open. Others are absent as from a kernel built without them.
pub fn supported(protocol: i32) -> bool {
    matches!(protocol, NETLINK_ROUTE | NETLINK_SOCK_DIAG)
}

/// One message's body: a fixed part and attributes (netlink(7), `struct nlattr`).
pub(super) struct Body(Vec<u8>);

impl Body {
    pub(super) fn new(fixed: &[u8]) -> Body {
        Body(fixed.to_vec())
    }

    pub(super) fn attr(mut self, kind: u16, value: &[u8]) -> Body {
        let len = u16::try_from(value.len().saturating_add(4)).unwrap_or(u16::MAX);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.0.extend_from_slice(&len.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

/// A request.
pub(super) struct Request<'a> {
    pub(super) kind: u16,
    pub(super) flags: u16,
    seq: u32,
    pub(super) body: &'a [u8],
}

impl<'a> Request<'a> {
    /// The next request, and what follows it.
    fn parse(bytes: &'a [u8]) -> Option<(Request<'a>, &'a [u8])> {
        let len = usize::try_from(u32::from_ne_bytes(array(bytes, 0)?)).ok()?;
        let body = bytes.get(HEADER..len)?;
        let request = Request {
            kind: u16::from_ne_bytes(array(bytes, 4)?),
            flags: u16::from_ne_bytes(array(bytes, 6)?),
            seq: u32::from_ne_bytes(array(bytes, 8)?),
            body,
        };
        Some((request, bytes.get(len.next_multiple_of(4)..).unwrap_or_default()))
    }

    pub(super) fn dump(&self) -> bool {
        self.flags & NLM_F_DUMP == NLM_F_DUMP
    }

    pub(super) fn family(&self) -> i32 {
        self.body.first().map_or(0, |b| i32::from(*b))
    }

    /// An attribute behind a fixed part of `fixed` bytes.
    pub(super) fn find(&self, fixed: usize, wanted: u16) -> Option<&'a [u8]> {
        let mut rest = self.body.get(fixed..)?;
        loop {
            let len = usize::from(u16::from_ne_bytes(array(rest, 0)?));
            let kind = u16::from_ne_bytes(array(rest, 2)?);
            let value = rest.get(4..len)?;
            if kind & 0x3fff == wanted {
                return Some(value);
            }
            rest = rest.get(len.next_multiple_of(4)..)?;
        }
    }
}

/// Answers what was sent to a netlink socket with this port: one request after the other, as long as there is room for
/// what they are answered with.
fn answer(cx: &Cx, socket: &Socket, port: u32, sent: &[u8]) {
    let option =
        |name| socket.state.lock().options.get(&(SOL_NETLINK, name)).is_some_and(|value| *value != 0);
    let (explains, short) = (option(NETLINK_EXT_ACK), option(NETLINK_CAP_ACK));
    let mut rest = sent;
    while let Some((request, next)) = Request::parse(rest) {
        rest = next;
        let mut out = Vec::new();
        if request.flags & NLM_F_REQUEST == 0 || request.kind < NLMSG_MIN_TYPE {
            continue;
        }
        let found = match socket.protocol {
            // One list at a time, so that what a reader leaves unread is no more than that.
            _ if request.dump() && socket.is_listing() => Err(Errno::EBUSY.into()),
            NETLINK_ROUTE => route::answer(cx, &socket.net, &request),
            _ => diag(cx, &socket.net, &request),
        };
        // Errors are answers like others, of which there is no end.
        let list = request.dump() && found.is_ok();
        match found {
            Ok(messages) if list => {
                let mut datagram = Vec::new();
                for (kind, body) in messages {
                    if datagram.len() > DATAGRAM {
                        out.push(std::mem::take(&mut datagram));
                    }
                    message(&mut datagram, kind, NLM_F_MULTI, request.seq, port, &body.0);
                }
                if !datagram.is_empty() {
                    out.push(datagram);
                }
                let mut done = Vec::new();
                message(&mut done, NLMSG_DONE, NLM_F_MULTI, request.seq, port, &0i32.to_ne_bytes());
                out.push(done);
            }
            Ok(messages) => {
                for (kind, body) in messages {
                    let mut datagram = Vec::new();
                    message(&mut datagram, kind, 0, request.seq, port, &body.0);
                    out.push(datagram);
                }
                if request.flags & NLM_F_ACK != 0 {
                    out.push(error(&request, port, &Refused { errno: None, why: "" }, short));
                }
            }
            Err(refused) => {
                let why = if explains { refused.why } else { "" };
                out.push(error(&request, port, &Refused { why, ..refused }, short));
            }
        }
        for data in out {
            if !socket.take_from_kernel(data, list) {
                return;
            }
        }
    }
}

/// Groups of a protocol (linux/rtnetlink.h, RTNLGRP_MAX; the least that any has).
fn groups_of(protocol: i32) -> u32 {
    if protocol == NETLINK_ROUTE { 39 } else { 32 }
}

/// From the kernel itself.
const KERNEL: Ucred = Ucred { pid: 0, uid: 0, gid: 0 };

/// What /proc/net/netlink shows of a socket.
pub struct Shown {
    /// NETLINK_*
    pub protocol: i32,
    /// Its port; 0: none.
    pub port: u32,
    /// The first groups.
    pub groups: u32,
    /// Bytes to receive, with what they take beside.
    pub received: usize,
    /// A list is being told.
    pub lists: bool,
    /// Messages that were lost.
    pub drops: u32,
    /// Inode number.
    pub ino: u64,
}

/// All sockets of AF_NETLINK in a namespace, by protocol.
pub fn shown(net: &Net) -> Vec<Shown> {
    let mut all: Vec<Shown> = net
        .sockets()
        .iter()
        .filter(|socket| socket.family == AF_NETLINK)
        .map(|socket| {
            let (port, lists) = (socket.netlink_port().unwrap_or(0), socket.is_listing());
            let state = socket.state.lock();
            let (groups, received, drops) = (state.first_groups(), state.charged, state.drops);
            Shown { protocol: socket.protocol, port, groups, received, lists, drops, ino: socket.ino }
        })
        .collect();
    all.sort_by_key(|row| row.protocol);
    all
}

/// How a message came.
#[derive(Clone, Copy)]
enum Way {
    /// Of the kernel; what has no room is lost.
    Kernel,
    /// Part of a list that the kernel was asked for.
    List,
    /// To a group; what has no room is lost.
    Group,
    /// To a port, whose sender waits for room.
    Port,
}

/// The group has been told.
#[derive(Default)]
struct Told(bool);

impl Addr {
    /// One message goes to one group, the lowest of those that are named.
    fn of_one_group(self) -> Addr {
        match self {
            Addr::Netlink(port, groups) => Addr::Netlink(port, groups & groups.wrapping_neg()),
            other => other,
        }
    }
}

impl Socket {
    /// The port number of a bound AF_NETLINK socket.
    pub fn netlink_port(&self) -> Option<u32> {
        if self.family != AF_NETLINK {
            return None;
        }
        match self.state.lock().local {
            Addr::Netlink(port, _) => Some(port).filter(|port| *port != 0),
            _ => None,
        }
    }

    /// Its port, which it gets now if it has none.
    fn own_port(&self, cx: &Cx) -> u32 {
        if let Some(port) = self.netlink_port() {
            return port;
        }
        // Dropped without the lock: one may be the last to hold its socket.
        let sockets;
        let _choosing = self.net.choosing();
        sockets = self.net.sockets();
        self.choose_port(cx, &sockets)
    }

    /// Likewise, while nobody else chooses one.
    fn choose_port(&self, cx: &Cx, sockets: &[Arc<Socket>]) -> u32 {
        if let Some(port) = self.netlink_port() {
            return port;
        }
        let taken: Vec<u32> =
            sockets.iter().filter(|s| s.protocol == self.protocol).filter_map(|s| s.netlink_port()).collect();
        let port = self.net.free_port(cx.task.shown(cx.task.process.pid), &taken);
        let mut state = self.state.lock();
        state.local = Addr::Netlink(port, state.first_groups());
        port
    }

    /// bind(2) of AF_NETLINK: a port, for good, and the first groups.
    ///
    /// # Errors
    /// EADDRINUSE; EINVAL: it has another port.
    pub fn bind_netlink(&self, cx: &Cx, port: u32, groups: u32) -> SysResult<()> {
        let sockets;
        let _choosing = self.net.choosing();
        sockets = self.net.sockets();
        let port = match (self.netlink_port(), port) {
            (Some(own), _) if own != port => return Err(Errno::EINVAL.into()),
            (Some(own), _) => own,
            (None, 0) => self.choose_port(cx, &sockets),
            (None, _) => {
                let taken = |s: &Arc<Socket>| s.protocol == self.protocol && s.netlink_port() == Some(port);
                if sockets.iter().any(taken) {
                    return Err(Errno::EADDRINUSE.into());
                }
                port
            }
        };
        let mut state = self.state.lock();
        if groups != 0 || state.memberships.is_some() {
            let others = state.memberships.unwrap_or(0) >> 32 << 32;
            state.memberships = Some(others | u64::from(groups));
        }
        state.local = Addr::Netlink(port, groups);
        Ok(())
    }

    /// NETLINK_ADD_MEMBERSHIP, NETLINK_DROP_MEMBERSHIP: a bound socket shows it in its name, any hears the group.
    ///
    /// # Errors
    /// EINVAL: there is no such group.
    pub(super) fn change_group(&self, joins: bool, group: i32) -> SysResult<()> {
        let group = u32::try_from(group).ok().filter(|group| (1..=groups_of(self.protocol)).contains(group));
        let bit = 1u64 << group.ok_or(Errno::EINVAL)?.saturating_sub(1);
        let mut state = self.state.lock();
        let before = state.memberships.unwrap_or(0);
        state.memberships = Some(if joins { before | bit } else { before & !bit });
        let port = if let Addr::Netlink(port, _) = state.local { port } else { 0 };
        state.local = Addr::Netlink(port, state.first_groups());
        Ok(())
    }

    /// NETLINK_LIST_MEMBERSHIPS: words of bits, as many as the protocol has groups.
    pub(super) fn groups(&self) -> Vec<u8> {
        let words = groups_of(self.protocol).div_ceil(32) as usize;
        let memberships = self.state.lock().memberships;
        memberships.map_or(Vec::new(), |bits| bits.to_le_bytes().iter().copied().take(words * 4).collect())
    }

    /// connect(2) of AF_NETLINK: where to send, from now on without being asked for the right to; the socket gets a port.
    ///
    /// # Errors
    /// EPERM.
    pub fn connect_netlink(&self, cx: &Cx, to: Addr) -> SysResult<()> {
        self.check_target(cx, &to)?;
        self.own_port(cx);
        let mut state = self.state.lock();
        state.remote = to.of_one_group();
        state.connected = true;
        Ok(())
    }

    /// connect(2) with AF_UNSPEC: to the kernel again.
    pub fn disconnect_netlink(&self) {
        let mut state = self.state.lock();
        state.remote = Addr::Unnamed;
        state.connected = false;
    }

    /// Others than the kernel are for those with the right to: it is theirs to know what they say.
    fn check_target(&self, cx: &Cx, to: &Addr) -> SysResult<()> {
        let others = matches!(to, Addr::Netlink(port, groups) if *port != 0 || *groups != 0);
        let may = !others || cx.task.creds().capable_in(&self.net.owner, cap::NET_ADMIN);
        if may { Ok(()) } else { Err(Errno::EPERM.into()) }
    }

    /// Sends to the kernel, whose answers go into the own inbox, to the socket with a port, or to those in a group.
    pub(super) fn send_netlink(
        &self,
        cx: &mut Cx,
        data: &[u8],
        to: Option<Addr>,
        nonblocking: bool,
    ) -> SysResult<usize> {
        if let Some(to) = &to {
            self.check_target(cx, to)?;
        }
        let remote = to.unwrap_or_else(|| self.state.lock().remote.clone()).of_one_group();
        let (to, groups) = if let Addr::Netlink(port, groups) = remote { (port, groups) } else { (0, 0) };
        let port = self.own_port(cx);
        if data.len() > self.send_buffer().unwrap_or(ROOM).saturating_sub(32) {
            return Err(Errno::EMSGSIZE.into());
        }
        if to == 0 && groups == 0 {
            answer(cx, self, port, data);
            return Ok(data.len());
        }
        let sender = super::control::sender(cx);
        let message = || Message::of_netlink(data.to_vec(), Addr::Netlink(port, groups), sender);
        let all = self.net.sockets();
        let others = || all.iter().filter(|s| s.family == AF_NETLINK && s.protocol == self.protocol);
        // Told once, however often it waits for the other.
        if groups != 0 && !std::mem::take(&mut cx.state::<Told>().0) {
            let itself = |s: &Socket| std::ptr::eq(s, self) || to != 0 && s.netlink_port() == Some(to);
            for other in others().filter(|s| !itself(s)) {
                if other.state.lock().first_groups() & groups != 0 {
                    other.take_netlink(data.len(), message, Way::Group);
                }
            }
        }
        if to == 0 {
            answer(cx, self, port, data);
            return Ok(data.len());
        }
        let other = others().find(|s| s.netlink_port() == Some(to)).ok_or(Errno::ECONNREFUSED)?;
        let (elsewhere, wait) = {
            let elsewhere = match other.state.lock() {
                state if state.connected => !matches!(state.remote, Addr::Netlink(from, _) if from == port),
                _ => false,
            };
            (elsewhere, self.state.lock().send_wait)
        };
        if elsewhere {
            return Err(Errno::ECONNREFUSED.into());
        }
        cx.wait_on(&other.queue, Ready::OUT);
        if other.take_netlink(data.len(), message, Way::Port) {
            return Ok(data.len());
        }
        if nonblocking {
            return Err(Errno::EAGAIN.into());
        }
        cx.state::<Told>().0 = groups != 0;
        wait_until(cx, wait)
    }

    /// Takes a message of the kernel, if there is room; `list`: even if there is none. Whether it did.
    pub fn take_from_kernel(&self, data: Vec<u8>, list: bool) -> bool {
        let way = if list { Way::List } else { Way::Kernel };
        self.take_netlink(data.len(), || Message::of_netlink(data, Addr::Netlink(0, 0), KERNEL), way)
    }

    /// Takes a message of so many bytes, made if there is room. Whether it did.
    fn take_netlink(&self, len: usize, message: impl FnOnce() -> Message, way: Way) -> bool {
        let taken = {
            let mut state = self.state.lock();
            let (charge, room) = (self.charge(len), self.room(&state, None));
            let fits = match way {
                Way::List => true,
                _ if state.congested || state.inbox.len() >= MESSAGES => false,
                Way::Group => state.charged <= room,
                Way::Kernel | Way::Port => {
                    state.inbox.is_empty() || state.charged.saturating_add(charge) <= room
                }
            };
            let taken = fits && crate::memory::room_for(len as u64);
            if taken {
                state.bytes = state.bytes.saturating_add(len);
                state.charged = state.charged.saturating_add(charge);
                state.inbox.push_back(message());
            } else if !matches!(way, Way::Port) {
                state.drops = state.drops.saturating_add(1);
                // A reader that does not read loses messages, until it has read all that there is (netlink(7)).
                let silent = state.options.get(&(SOL_NETLINK, NETLINK_NO_ENOBUFS)).is_some_and(|no| *no != 0);
                if !silent && !std::mem::replace(&mut state.congested, true) {
                    state.error = Some(Errno::ENOBUFS);
                }
            }
            taken
        };
        self.queue.wake(Ready::IN | Ready::RDNORM);
        taken
    }

    /// Whether it has the end of a list to read yet.
    fn is_listing(&self) -> bool {
        let done = |message: &Message| array(&message.data, 4).map(u16::from_ne_bytes) == Some(NLMSG_DONE);
        self.state.lock().inbox.iter().any(done)
    }
}

impl State {
    /// The groups that are part of the name.
    fn first_groups(&self) -> u32 {
        self.memberships.unwrap_or(0) as u32
    }
}

impl Message {
    fn of_netlink(data: Vec<u8>, from: Addr, creds: Ucred) -> Message {
        let ancillary = Ancillary { creds: Some(creds), ..Ancillary::default() };
        Message { data, from, ancillary, time: time::realtime(), ..Message::default() }
    }
}

fn message(out: &mut Vec<u8>, kind: u16, flags: u16, seq: u32, port: u32, body: &[u8]) {
    let len = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&flags.to_ne_bytes());
    out.extend_from_slice(&seq.to_ne_bytes());
    out.extend_from_slice(&port.to_ne_bytes());
    out.extend_from_slice(body);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// NLMSG_ERROR: the errno, negative, and the request; an acknowledgement carries 0 and the header alone, as does one of
/// a socket with NETLINK_CAP_ACK. What was wrong follows as text where the socket wants it (NETLINK_EXT_ACK).
fn error(request: &Request, port: u32, refused: &Refused, short: bool) -> Vec<u8> {
    const CAPPED: u16 = 0x100;
    const ACK_TLVS: u16 = 0x200;
    let Refused { errno, why } = refused;
    let number = errno.map_or(0, |errno| errno.raw());
    let short = short || number == 0;
    let mut body = number.saturating_neg().to_ne_bytes().to_vec();
    let shown: &[u8] = if short { &[] } else { request.body };
    message(&mut body, request.kind, request.flags, request.seq, port, shown);
    // The copy has the length of the whole request.
    let whole = u32::try_from(HEADER + request.body.len()).unwrap_or(u32::MAX);
    if let Some(len) = body.get_mut(4..8) {
        len.copy_from_slice(&whole.to_ne_bytes());
    }
    let mut flags = if short { CAPPED } else { 0 };
    if !why.is_empty() {
        flags |= ACK_TLVS;
        let text = Body(Vec::new()).attr(1, &[why.as_bytes(), &[0]].concat());
        body.extend_from_slice(&text.0);
    }
    let mut out = Vec::new();
    message(&mut out, NLMSG_ERROR, flags, request.seq, port, &body);
    out
}

/// Why a request was not answered.
pub(super) struct Refused {
    /// None: it was, and this acknowledges it.
    pub(super) errno: Option<Errno>,
    /// In words, for whoever asked.
    pub(super) why: &'static str,
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Refused {
        Refused { errno: Some(errno), why: "" }
    }
}

/// Types and bodies of the answers.
pub(super) type Found = Result<Vec<(u16, Body)>, Refused>;

fn gap(cx: &Cx, what: &str, errno: Errno) -> Found {
    cx.note_gap(what, errno);
    Err(errno.into())
}

/// SOCK_DIAG_BY_FAMILY: the sockets of a family and protocol whose state is asked for.
fn diag(cx: &Cx, net: &Net, request: &Request) -> Found {
    if request.kind != SOCK_DIAG_BY_FAMILY || !request.dump() {
        return gap(cx, &format!("netlink socket request {}", request.kind), Errno::EOPNOTSUPP);
    }
    let protocol = request.body.get(1).map_or(0, |p| i32::from(*p));
    let states = array(request.body, 4).map_or(u32::MAX, u32::from_ne_bytes);
    match (request.family(), protocol) {
        (AF_UNIX, _) => {}
        (AF_INET | AF_INET6, IPPROTO_TCP | IPPROTO_UDP) => {}
        // Kinds that no guest can have.
        (AF_INET | AF_INET6 | AF_PACKET | AF_NETLINK | AF_VSOCK | AF_TIPC | AF_XDP, _) => {
            return Ok(Vec::new());
        }
        (family, _) => return gap(cx, &format!("netlink socket list of family {family}"), Errno::ENOENT),
    }
    let rows = listing::rows(net, request.family(), protocol);
    let shown = rows.iter().filter(|row| states & 1u32.checked_shl(u32::from(row.state)).unwrap_or(0) != 0);
    let reader = &cx.task.creds().ns;
    Ok(shown.map(|row| (SOCK_DIAG_BY_FAMILY, diag_row(row, reader))).collect())
}

fn diag_row(row: &listing::Row, reader: &UserNs) -> Body {
    let cookie = row.ino.to_ne_bytes();
    if row.family == AF_UNIX {
        // struct unix_diag_msg (linux/unix_diag.h), UNIX_DIAG_NAME, UNIX_DIAG_PEER
        let mut fixed = vec![AF_UNIX as u8, row.kind as u8, row.state, 0];
        fixed.extend_from_slice(&(row.ino as u32).to_ne_bytes());
        fixed.extend_from_slice(&cookie);
        let mut body = Body::new(&fixed);
        if let Some(name) = row.unix_name() {
            body = body.attr(0, &name);
        }
        if row.peer != 0 {
            body = body.attr(2, &(row.peer as u32).to_ne_bytes());
        }
        return body.attr(4, &[row.received.to_ne_bytes(), row.room.to_ne_bytes()].concat());
    }
    // struct inet_diag_msg (linux/inet_diag.h)
    let mut fixed = vec![row.family as u8, row.state, 0, 0];
    fixed.extend_from_slice(&row.local.port().to_be_bytes());
    fixed.extend_from_slice(&row.remote.port().to_be_bytes());
    fixed.extend_from_slice(&listing::octets(row.family, row.local.ip()));
    fixed.extend_from_slice(&listing::octets(row.family, row.remote.ip()));
    fixed.extend_from_slice(&0u32.to_ne_bytes());
    fixed.extend_from_slice(&cookie);
    fixed.extend_from_slice(&0u32.to_ne_bytes());
    fixed.extend_from_slice(&row.received.to_ne_bytes());
    fixed.extend_from_slice(&row.room.to_ne_bytes());
    fixed.extend_from_slice(&reader.user(row.uid).to_ne_bytes());
    fixed.extend_from_slice(&(row.ino as u32).to_ne_bytes());
    const SKV6ONLY: u16 = 11;
    let body = Body::new(&fixed);
    if row.family == AF_INET6 { body.attr(SKV6ONLY, &[u8::from(row.v6_only)]) } else { body }
}
