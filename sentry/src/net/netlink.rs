//! AF_NETLINK: requests and answers (netlink(7)). NETLINK_ROUTE is [`super::route`]'s; NETLINK_SOCK_DIAG lists sockets
//! (sock_diag(7)).

use super::addr::array;
use super::listing;
use super::socket::Socket;
use super::{Net, route};
use crate::cx::Cx;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Most requests that one send may carry.
const REQUESTS: usize = 64;
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

/// Answers what was sent to a netlink socket with this port: the datagrams to receive, in order.
pub fn answer(cx: &Cx, socket: &Socket, port: u32, sent: &[u8]) -> Vec<Vec<u8>> {
    let option =
        |name| socket.state.lock().options.get(&(SOL_NETLINK, name)).is_some_and(|value| *value != 0);
    let (explains, short) = (option(NETLINK_EXT_ACK), option(NETLINK_CAP_ACK));
    let mut out = Vec::new();
    let mut rest = sent;
    for _ in 0..REQUESTS {
        let Some((request, next)) = Request::parse(rest) else { break };
        rest = next;
        if request.flags & NLM_F_REQUEST == 0 || request.kind < NLMSG_MIN_TYPE {
            continue;
        }
        let found = match socket.protocol {
            NETLINK_ROUTE => route::answer(cx, &socket.net, &request),
            _ => diag(cx, &socket.net, &request),
        };
        match found {
            Ok(messages) if request.dump() => {
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
    }
    out
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
    Ok(shown.map(|row| (SOCK_DIAG_BY_FAMILY, diag_row(row))).collect())
}

fn diag_row(row: &listing::Row) -> Body {
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
    fixed.extend_from_slice(&row.uid.to_ne_bytes());
    fixed.extend_from_slice(&(row.ino as u32).to_ne_bytes());
    const SKV6ONLY: u16 = 11;
    let body = Body::new(&fixed);
    if row.family == AF_INET6 { body.attr(SKV6ONLY, &[u8::from(row.v6_only)]) } else { body }
}
