//! AF_NETLINK: NETLINK_ROUTE questions about the one interface, its addresses, routes and rules (rtnetlink(7)), and
//! NETLINK_SOCK_DIAG lists of sockets (sock_diag(7)). Nothing can be changed.

use super::addr::array;
use super::iface;
use super::listing;
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

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTM_GETNEIGH: u16 = 30;
const RTM_NEWRULE: u16 = 32;
const RTM_GETRULE: u16 = 34;
const SOCK_DIAG_BY_FAMILY: u16 = 20;

const SCOPE_HOST: u8 = 254;
const SCOPE_LINK: u8 = 253;
const TABLE_LOCAL: u8 = 255;
const TABLE_MAIN: u8 = 254;
const TABLE_DEFAULT: u8 = 253;
const PROTO_KERNEL: u8 = 2;
const ROUTE_LOCAL: u8 = 2;
const ROUTE_BROADCAST: u8 = 3;

/// Protocols a guest can open. Others are absent as from a kernel built without them.
pub fn supported(protocol: i32) -> bool {
    matches!(protocol, NETLINK_ROUTE | NETLINK_SOCK_DIAG)
}

/// One message's body: a fixed part and attributes (netlink(7), `struct nlattr`).
struct Body(Vec<u8>);

impl Body {
    fn new(fixed: &[u8]) -> Body {
        Body(fixed.to_vec())
    }

    fn attr(mut self, kind: u16, value: &[u8]) -> Body {
        let len = u16::try_from(value.len().saturating_add(4)).unwrap_or(u16::MAX);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.0.extend_from_slice(&len.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

/// The header of a request.
struct Request<'a> {
    kind: u16,
    flags: u16,
    seq: u32,
    body: &'a [u8],
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

    fn dump(&self) -> bool {
        self.flags & NLM_F_DUMP == NLM_F_DUMP
    }

    fn family(&self) -> i32 {
        self.body.first().map_or(0, |b| i32::from(*b))
    }

    /// An attribute behind a fixed part of `fixed` bytes.
    fn find(&self, fixed: usize, wanted: u16) -> Option<&'a [u8]> {
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
pub fn answer(cx: &Cx, protocol: i32, port: u32, sent: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = sent;
    for _ in 0..REQUESTS {
        let Some((request, next)) = Request::parse(rest) else { break };
        rest = next;
        if request.flags & NLM_F_REQUEST == 0 || request.kind < NLMSG_MIN_TYPE {
            continue;
        }
        let found = if protocol == NETLINK_ROUTE { route(cx, &request) } else { diag(cx, &request) };
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
                    out.push(error(&request, port, 0));
                }
            }
            Err(errno) => out.push(error(&request, port, errno.raw())),
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

/// NLMSG_ERROR: the errno, negative, and the request; an acknowledgement carries 0 and the header alone.
fn error(request: &Request, port: u32, errno: i32) -> Vec<u8> {
    let mut body = errno.saturating_neg().to_ne_bytes().to_vec();
    let shown: &[u8] = if errno == 0 { &[] } else { request.body };
    message(&mut body, request.kind, request.flags, request.seq, port, shown);
    // The copy has the length of the whole request.
    let whole = u32::try_from(HEADER + request.body.len()).unwrap_or(u32::MAX);
    if let Some(len) = body.get_mut(4..8) {
        len.copy_from_slice(&whole.to_ne_bytes());
    }
    let mut out = Vec::new();
    message(&mut out, NLMSG_ERROR, if errno == 0 { 0x100 } else { 0 }, request.seq, port, &body);
    out
}

type Found = Result<Vec<(u16, Body)>, Errno>;

fn gap(cx: &Cx, what: &str, errno: Errno) -> Found {
    cx.note_gap(what, errno);
    Err(errno)
}

fn route(cx: &Cx, request: &Request) -> Found {
    let family = request.family();
    let wants = |f: i32| family == 0 || family == f;
    match request.kind {
        RTM_GETLINK => {
            let index = array(request.body, 4).map(i32::from_ne_bytes).unwrap_or(0);
            let name = request.find(16, 3).map(|n| n.split(|b| *b == 0).next().unwrap_or_default());
            if !request.dump() && index != iface::INDEX && name != Some(iface::NAME) {
                return Err(Errno::ENODEV);
            }
            Ok(vec![(RTM_NEWLINK, link())])
        }
        RTM_GETADDR => {
            let mut out = Vec::new();
            if wants(AF_INET) {
                out.push((RTM_NEWADDR, address(AF_INET, 8, &[127, 0, 0, 1])));
            }
            if wants(AF_INET6) {
                out.push((RTM_NEWADDR, address(AF_INET6, 128, &LOCALHOST_6)));
            }
            Ok(out)
        }
        RTM_GETROUTE if request.dump() => {
            let mut out = Vec::new();
            if wants(AF_INET) {
                let host = (ROUTE_LOCAL, SCOPE_HOST);
                out.push((RTM_NEWROUTE, route_4(host, 8, [127, 0, 0, 0])));
                out.push((RTM_NEWROUTE, route_4(host, 32, [127, 0, 0, 1])));
                out.push((RTM_NEWROUTE, route_4((ROUTE_BROADCAST, SCOPE_LINK), 32, [127, 255, 255, 255])));
            }
            if wants(AF_INET6) {
                out.push((RTM_NEWROUTE, route_6()));
            }
            Ok(out)
        }
        RTM_GETROUTE => match request.find(12, 1) {
            Some([127, b, c, d]) => {
                Ok(vec![(RTM_NEWROUTE, route_4((ROUTE_LOCAL, 0), 32, [127, *b, *c, *d]))])
            }
            Some(to) if to == LOCALHOST_6 => Ok(vec![(RTM_NEWROUTE, route_6())]),
            Some(_) => Err(Errno::ENETUNREACH),
            None => Err(Errno::EINVAL),
        },
        RTM_GETNEIGH if request.dump() => Ok(Vec::new()),
        RTM_GETRULE if request.dump() => {
            let mut out = Vec::new();
            for (family, tables) in [
                (AF_INET, &[(0u32, TABLE_LOCAL), (32_766, TABLE_MAIN), (32_767, TABLE_DEFAULT)][..]),
                (AF_INET6, &[(0, TABLE_LOCAL), (32_766, TABLE_MAIN)][..]),
            ] {
                if wants(family) {
                    out.extend(
                        tables.iter().map(|(first, table)| (RTM_NEWRULE, rule(family, *first, *table))),
                    );
                }
            }
            Ok(out)
        }
        kind if kind % 4 == 2 => gap(cx, &format!("netlink route request {kind}"), Errno::EOPNOTSUPP),
        _ => gap(cx, "changing network interfaces", Errno::EPERM),
    }
}

const LOCALHOST_6: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// `struct ifinfomsg` of `lo` (linux/if_link.h).
fn link() -> Body {
    let mut fixed = [0u8; 16];
    fixed[2..4].copy_from_slice(&iface::KIND.to_ne_bytes());
    fixed[4..8].copy_from_slice(&iface::INDEX.to_ne_bytes());
    fixed[8..12].copy_from_slice(&(iface::FLAGS | iface::LOWER_UP).to_ne_bytes());
    let number = |n: u32| n.to_ne_bytes();
    Body::new(&fixed)
        .attr(3, b"lo\0")
        .attr(13, &number(iface::QUEUE))
        .attr(16, &[0])
        .attr(17, &[0])
        .attr(4, &number(iface::MTU))
        .attr(27, &number(0))
        .attr(30, &number(0))
        .attr(31, &number(1))
        .attr(32, &number(1))
        .attr(33, &[1])
        .attr(6, b"noqueue\0")
        .attr(1, &[0; 6])
        .attr(2, &[0; 6])
        .attr(23, &[0; 25 * 8])
        .attr(7, &[0; 24 * 4])
}

/// `struct ifaddrmsg` (linux/if_addr.h); both are permanent and of the host.
fn address(family: i32, prefix: u8, bytes: &[u8]) -> Body {
    const PERMANENT: u32 = 0x80;
    let index = iface::INDEX.to_ne_bytes();
    let fixed = [family as u8, prefix, PERMANENT as u8, SCOPE_HOST, index[0], index[1], index[2], index[3]];
    // Preferred and valid for ever; made at boot.
    let mut times = [0xffu8; 16];
    times[8..].fill(0);
    let body = Body::new(&fixed).attr(1, bytes);
    let body = if family == AF_INET { body.attr(2, bytes).attr(3, b"lo\0") } else { body };
    body.attr(8, &PERMANENT.to_ne_bytes()).attr(6, &times)
}

/// `struct rtmsg` (linux/rtnetlink.h) of the local table.
fn rtmsg(family: i32, prefix: u8, (kind, scope): (u8, u8)) -> [u8; 12] {
    [family as u8, prefix, 0, 0, TABLE_LOCAL, PROTO_KERNEL, scope, kind, 0, 0, 0, 0]
}

fn route_4(kind: (u8, u8), prefix: u8, to: [u8; 4]) -> Body {
    Body::new(&rtmsg(AF_INET, prefix, kind))
        .attr(15, &u32::from(TABLE_LOCAL).to_ne_bytes())
        .attr(1, &to)
        .attr(7, &[127, 0, 0, 1])
        .attr(4, &iface::INDEX.to_ne_bytes())
}

fn route_6() -> Body {
    Body::new(&rtmsg(AF_INET6, 128, (ROUTE_LOCAL, 0)))
        .attr(15, &u32::from(TABLE_LOCAL).to_ne_bytes())
        .attr(1, &LOCALHOST_6)
        .attr(6, &0u32.to_ne_bytes())
        .attr(4, &iface::INDEX.to_ne_bytes())
        .attr(20, &[0])
}

/// `struct fib_rule_hdr` (linux/fib_rules.h).
fn rule(family: i32, priority: u32, table: u8) -> Body {
    const TO_TABLE: u8 = 1;
    let body = Body::new(&[family as u8, 0, 0, 0, table, 0, 0, TO_TABLE, 0, 0, 0, 0])
        .attr(15, &u32::from(table).to_ne_bytes())
        .attr(14, &u32::MAX.to_ne_bytes());
    if priority == 0 { body } else { body.attr(6, &priority.to_ne_bytes()) }
}

/// SOCK_DIAG_BY_FAMILY: the sockets of a family and protocol whose state is asked for.
fn diag(cx: &Cx, request: &Request) -> Found {
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
    let rows = listing::rows(cx.kernel(), request.family(), protocol);
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
    Body::new(&fixed)
}
