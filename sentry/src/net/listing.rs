//! What sockets there are: for sock_diag(7) and /proc/net.

use super::Net;
use super::addr::Addr;
use super::socket::{Kind, Socket};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use syscall_table::abi::*;

/// TCP states (net/tcp_states.h).
pub const ESTABLISHED: u8 = 1;
/// connect(2) waits for an answer.
pub const SYN_SENT: u8 = 2;
/// Not connected, or over.
pub const CLOSE: u8 = 7;
/// The peer has ended its side.
pub const CLOSE_WAIT: u8 = 8;
/// listen(2) was called.
pub const LISTEN: u8 = 10;

/// One socket.
pub struct Row {
    /// AF_*
    pub family: i32,
    /// SOCK_*
    pub kind: i32,
    /// TCP state; of AF_UNIX likewise.
    pub state: u8,
    /// Inode number.
    pub ino: u64,
    /// Inode number of the peer of an AF_UNIX socket; 0: none.
    pub peer: u64,
    /// Effective user of its maker.
    pub uid: u32,
    /// Own name of an AF_UNIX socket.
    pub name: Addr,
    /// Own address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Bytes to receive; of a listener the connections to accept.
    pub received: u32,
    /// Most connections that wait at a listener.
    pub room: u32,
    /// One of IPv6 that IPv4 does not reach.
    pub v6_only: bool,
}

impl Row {
    /// The name as in `struct sockaddr_un`: an abstract one starts with NUL.
    pub fn unix_name(&self) -> Option<Vec<u8>> {
        match &self.name {
            Addr::Path(path) => Some(path.clone()),
            Addr::Abstract(name) => Some([&[0], name.as_slice()].concat()),
            _ => None,
        }
    }
}

/// An address as 16 bytes in network order; IPv4 uses the first four.
pub fn octets(family: i32, ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) if family == AF_INET => {
            let mut out = [0; 16];
            out[..4].copy_from_slice(&ip.octets());
            out
        }
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => match ip.to_canonical() {
            IpAddr::V4(four) if family == AF_INET => octets(AF_INET, four.into()),
            _ => ip.octets(),
        },
    }
}

/// The sockets of a family; `protocol` (IPPROTO_TCP, IPPROTO_UDP) chooses among the inet ones.
pub fn rows(net: &Net, family: i32, protocol: i32) -> Vec<Row> {
    let sockets = net.sockets();
    let wanted = |s: &Socket| {
        let echo = matches!(s.protocol, IPPROTO_ICMP | IPPROTO_ICMPV6) && family != AF_UNIX;
        s.family == family
            && !echo
            && (family == AF_UNIX || (protocol == IPPROTO_TCP) == (s.kind == Kind::Stream))
    };
    sockets.iter().filter(|s| wanted(s)).filter_map(|s| s.row()).collect()
}

/// The wildcard address of a family, port 0.
pub fn nowhere(family: i32) -> SocketAddr {
    let ip: IpAddr =
        if family == AF_INET6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    SocketAddr::new(ip, 0)
}
