//! What each socket option takes and what it is at first (socket(7), tcp(7), ip(7), ipv6(7), udp(7), netlink(7)). Those
//! without an effect in memory are remembered; what they would do is in their rows of the table.

use super::socket::{Kind, Socket};
use syscall_table::abi::*;

/// Options of UDP-Lite (linux/udp.h).
const SOL_UDPLITE: i32 = 136;
const UDPLITE_SEND_CSCOV: i32 = 10;
const UDPLITE_RECV_CSCOV: i32 = 11;

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// On or off: any number but 0 is 1.
    Switch,
    /// Any number.
    Int,
    /// Numbers of a range, EINVAL for others.
    Range(i32, i32),
    /// As a range; -1 is this number.
    Default(i32, i32, i32),
    /// Nothing: ENOPROTOOPT.
    Nothing,
}

/// One option.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spec {
    /// Its value before it is set.
    pub(super) first: i32,
    /// What it takes.
    pub(super) takes: Takes,
}

use Takes::{Default as Or, Int, Nothing, Range, Switch};

/// Whether a socket has options of a level at all.
pub(super) fn applies(socket: &Socket, level: i32) -> bool {
    let inet = matches!(socket.family, AF_INET | AF_INET6);
    match level {
        SOL_IPV6 => socket.family == AF_INET6,
        SOL_IP => inet,
        SOL_TCP => inet && socket.kind == Kind::Stream,
        SOL_UDP => inet && socket.kind == Kind::Dgram,
        SOL_UDPLITE => socket.protocol == IPPROTO_UDPLITE,
        SOL_NETLINK => socket.family == AF_NETLINK,
        _ => true,
    }
}

/// An option that is one number. None: it is not, or the socket has no such one.
pub(super) fn spec(socket: &Socket, level: i32, name: i32) -> Option<Spec> {
    if !applies(socket, level) {
        return None;
    }
    let (first, takes) = match level {
        SOL_SOCKET => general(socket, name)?,
        SOL_TCP => tcp(socket, name)?,
        SOL_IP => ip(socket, name)?,
        SOL_IPV6 => ipv6(socket, name)?,
        SOL_UDP => match name {
            UDP_CORK | UDP_NO_CHECK6_TX | UDP_NO_CHECK6_RX => (0, Switch),
            _ => return None,
        },
        SOL_UDPLITE => match name {
            UDPLITE_SEND_CSCOV | UDPLITE_RECV_CSCOV => (0, Int),
            _ => return None,
        },
        SOL_NETLINK => match name {
            NETLINK_PKTINFO
            | NETLINK_BROADCAST_ERROR
            | NETLINK_NO_ENOBUFS
            | NETLINK_LISTEN_ALL_NSID
            | NETLINK_CAP_ACK
            | NETLINK_EXT_ACK
            | NETLINK_GET_STRICT_CHK => (0, Switch),
            _ => return None,
        },
        _ => return None,
    };
    Some(Spec { first, takes })
}

fn general(socket: &Socket, name: i32) -> Option<(i32, Takes)> {
    let (unix, tcp) = (socket.family == AF_UNIX, socket.family != AF_UNIX && socket.kind == Kind::Stream);
    Some(match name {
        // net.ipv4.tcp_wmem and tcp_rmem, net.core.wmem_default.
        SO_SNDBUF => (if tcp { 16_384 } else { 212_992 }, Int),
        SO_RCVBUF => (if tcp { 131_072 } else { 212_992 }, Int),
        SO_RCVLOWAT => (1, Int),
        SO_SNDLOWAT => (1, Nothing),
        SO_DEBUG | SO_REUSEADDR | SO_REUSEPORT | SO_KEEPALIVE | SO_BROADCAST | SO_OOBINLINE
        | SO_DONTROUTE | SO_TIMESTAMP_OLD | SO_TIMESTAMPNS_OLD | SO_TIMESTAMP_NEW | SO_TIMESTAMPNS_NEW
        | SO_RXQ_OVFL | SO_NO_CHECK | SO_WIFI_STATUS | SO_NOFCS | SO_LOCK_FILTER | SO_SELECT_ERR_QUEUE => {
            (0, Switch)
        }
        SO_PASSCRED | SO_PASSSEC if matches!(socket.family, AF_UNIX | AF_NETLINK) => (0, Switch),
        SO_PEEK_OFF if socket.family != AF_NETLINK => (-1, Int),
        SO_PASSPIDFD if unix => (0, Switch),
        SO_PASSRIGHTS if unix => (1, Switch),
        SO_PRIORITY | SO_MARK => (0, Int),
        SO_INCOMING_CPU => (-1, Int),
        SO_BUSY_POLL | SO_BINDTOIFINDEX => (0, Range(0, i32::MAX)),
        SO_BUF_LOCK => (0, Range(0, 3)),
        // struct linger and others that are more than a number are not here.
        SO_BPF_EXTENSIONS => (64, Nothing),
        SO_INCOMING_NAPI_ID => (0, Nothing),
        _ => return None,
    })
}

fn tcp(socket: &Socket, name: i32) -> Option<(i32, Takes)> {
    /// Of a connection over a loopback interface, and of none.
    const SEGMENT: (i32, i32) = (65_483, 536);
    let connected = socket.state.lock().connected;
    Some(match name {
        TCP_NODELAY | TCP_CORK => (0, Switch),
        TCP_QUICKACK => (1, Switch),
        TCP_MAXSEG => (if connected { SEGMENT.0 } else { SEGMENT.1 }, Range(0, 32_767)),
        TCP_KEEPIDLE => (7200, Range(1, 32_767)),
        TCP_KEEPINTVL => (75, Range(1, 32_767)),
        TCP_KEEPCNT => (9, Range(1, 127)),
        TCP_SYNCNT => (6, Range(1, 127)),
        TCP_LINGER2 => (60, Int),
        TCP_DEFER_ACCEPT | TCP_NOTSENT_LOWAT => (0, Int),
        TCP_USER_TIMEOUT | TCP_FASTOPEN => (0, Range(0, i32::MAX)),
        TCP_THIN_LINEAR_TIMEOUTS | TCP_THIN_DUPACK | TCP_FASTOPEN_CONNECT | TCP_FASTOPEN_NO_COOKIE => {
            (0, Range(0, 1))
        }
        TCP_IS_MPTCP => (0, Nothing),
        _ => return None,
    })
}

fn ip(socket: &Socket, name: i32) -> Option<(i32, Takes)> {
    let stream = socket.kind == Kind::Stream;
    Some(match name {
        IP_TOS => (0, Int),
        IP_TTL => (64, Or(64, 1, 255)),
        IP_MTU_DISCOVER => (1, Range(0, 5)),
        IP_MULTICAST_TTL if stream => (1, Range(1, 0)),
        IP_MULTICAST_TTL => (1, Or(1, 0, 255)),
        IP_MULTICAST_LOOP => (1, Switch),
        IP_MULTICAST_ALL => (i32::from(socket.family == AF_INET), Range(0, 1)),
        IP_MINTTL => (0, Range(0, 255)),
        IP_RECVERR_RFC4884 => (0, Range(0, 1)),
        IP_RECVFRAGSIZE if stream => (0, Range(1, 0)),
        IP_RECVOPTS
        | IP_RETOPTS
        | IP_PKTINFO
        | IP_RECVERR
        | IP_RECVTTL
        | IP_RECVTOS
        | IP_FREEBIND
        | IP_PASSSEC
        | IP_RECVORIGDSTADDR
        | IP_BIND_ADDRESS_NO_PORT
        | IP_RECVFRAGSIZE => (0, Switch),
        _ => return None,
    })
}

fn ipv6(socket: &Socket, name: i32) -> Option<(i32, Takes)> {
    let stream = socket.kind == Kind::Stream;
    Some(match name {
        IPV6_UNICAST_HOPS => (64, Or(64, 0, 255)),
        IPV6_MULTICAST_HOPS if stream => (1, Nothing),
        IPV6_MULTICAST_HOPS => (1, Or(1, 0, 255)),
        IPV6_MULTICAST_LOOP => (1, Range(0, 1)),
        IPV6_MTU_DISCOVER => (1, Range(0, 5)),
        IPV6_TCLASS => (0, Or(0, 0, 255)),
        IPV6_MINHOPCOUNT => (0, Range(0, 255)),
        IPV6_RECVERR_RFC4884 => (0, Range(0, 1)),
        IPV6_MULTICAST_ALL | IPV6_AUTOFLOWLABEL => (1, Switch),
        IPV6_RECVERR | IPV6_V6ONLY | IPV6_RECVPKTINFO | IPV6_RECVHOPLIMIT | IPV6_RECVTCLASS
        | IPV6_RECVHOPOPTS | IPV6_RECVRTHDR | IPV6_RECVDSTOPTS | IPV6_RECVPATHMTU | IPV6_DONTFRAG
        | IPV6_RECVFRAGSIZE | IPV6_FREEBIND => (0, Switch),
        _ => return None,
    })
}
