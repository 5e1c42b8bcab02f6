//! Socket addresses.

use super::socket::{Kind, Socket};
use crate::fail::SysResult;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// An address of any family.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Addr {
    /// AF_UNIX without a name.
    #[default]
    Unnamed,
    /// AF_UNIX in the file system.
    Path(Vec<u8>),
    /// AF_UNIX, abstract; without the leading NUL.
    Abstract(Vec<u8>),
    /// AF_INET, AF_INET6.
    Ip(SocketAddr),
    /// AF_NETLINK: port and groups.
    Netlink(u32, u32),
    /// AF_UNSPEC: dissolves a connection; no address to who sends.
    None,
}

/// What an address is given for: each call makes its own of other families than the socket's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// bind(2)
    Bind,
    /// connect(2)
    Connect,
    /// sendto(2), sendmsg(2)
    Send,
}

/// Whether two addresses are the same, IPv4 within IPv6 included.
pub fn same(a: &SocketAddr, b: &SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}

/// Some bytes of a guest's structure; None past its end.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn unix(bytes: &[u8]) -> SysResult<Addr> {
    let path = bytes.get(2..).unwrap_or_default();
    if path.len() > 108 {
        return Err(Errno::EINVAL.into());
    }
    Ok(match path.split_first() {
        None => Addr::Unnamed,
        Some((0, name)) => Addr::Abstract(name.to_vec()),
        Some(_) => Addr::Path(path.split(|b| *b == 0).next().unwrap_or_default().to_vec()),
    })
}

/// A struct sockaddr_in, whatever its family.
fn four(bytes: &[u8]) -> SysResult<(Ipv4Addr, u16)> {
    if bytes.len() < 16 {
        return Err(Errno::EINVAL.into());
    }
    let ip = array::<4>(bytes, 4).ok_or(Errno::EINVAL)?;
    Ok((ip.into(), u16::from_be_bytes(array(bytes, 2).ok_or(Errno::EINVAL)?)))
}

/// A struct sockaddr_in6, whatever its family, with or without its last field.
fn six(bytes: &[u8]) -> SysResult<(Ipv6Addr, u16)> {
    let ip = array::<16>(bytes, 8).ok_or(Errno::EINVAL)?;
    Ok((ip.into(), u16::from_be_bytes(array(bytes, 2).ok_or(Errno::EINVAL)?)))
}

/// AF_UNSPEC ends a connection, and is AF_INET to bind(2), with the wildcard alone, and to who sends by UDP.
fn inet(bytes: &[u8], given: i32, socket: &Socket, used: Use) -> SysResult<Addr> {
    if given == AF_UNSPEC && used == Use::Connect {
        return Ok(Addr::None);
    }
    let (ip, port) = four(bytes)?;
    let taken = match used {
        Use::Bind => ip.is_unspecified(),
        Use::Send => socket.protocol != IPPROTO_ICMP,
        Use::Connect => false,
    };
    if given != AF_INET && !(given == AF_UNSPEC && taken) {
        return Err(Errno::EAFNOSUPPORT.into());
    }
    Ok(Addr::Ip(SocketAddr::new(ip.into(), port)))
}

/// AF_UNSPEC ends a connection, and is no address to who sends by UDP, which knows AF_INET, too.
fn inet6(bytes: &[u8], given: i32, socket: &Socket, used: Use) -> SysResult<Addr> {
    let udp = socket.kind == Kind::Dgram && socket.protocol != IPPROTO_ICMPV6;
    match (given, used) {
        (AF_UNSPEC, Use::Connect) => return Ok(Addr::None),
        (AF_UNSPEC, Use::Send) if udp => return Ok(Addr::None),
        (AF_INET, Use::Connect | Use::Send) if udp => {
            if socket.v6_only() {
                let connects = used == Use::Connect;
                return Err(if connects { Errno::EAFNOSUPPORT } else { Errno::ENETUNREACH }.into());
            }
            let (ip, port) = four(bytes)?;
            return Ok(Addr::Ip(SocketAddr::new(ip.to_ipv6_mapped().into(), port)));
        }
        _ if bytes.len() < 24 => return Err(Errno::EINVAL.into()),
        (AF_INET6, _) => {}
        (_, Use::Send) if udp => return Err(Errno::EINVAL.into()),
        _ => return Err(Errno::EAFNOSUPPORT.into()),
    }
    let (ip, port) = six(bytes)?;
    Ok(Addr::Ip(SocketAddr::new(ip.into(), port)))
}

/// The address of a struct of this very family of IP.
///
/// # Errors
/// EINVAL, EAFNOSUPPORT.
pub(super) fn of_family(bytes: &[u8], family: i32) -> SysResult<IpAddr> {
    let given = i32::from(u16::from_ne_bytes(array(bytes, 0).ok_or(Errno::EINVAL)?));
    match family {
        _ if given != family => Err(Errno::EAFNOSUPPORT.into()),
        AF_INET => Ok(four(bytes)?.0.into()),
        _ => Ok(six(bytes)?.0.into()),
    }
}

impl Addr {
    /// From the guest's bytes, for a socket.
    ///
    /// # Errors
    /// EINVAL, EAFNOSUPPORT, ENETUNREACH.
    pub fn parse(bytes: &[u8], socket: &Socket, used: Use) -> SysResult<Addr> {
        let given = i32::from(u16::from_ne_bytes(array(bytes, 0).ok_or(Errno::EINVAL)?));
        match socket.family {
            AF_INET => inet(bytes, given, socket, used),
            AF_INET6 => inet6(bytes, given, socket, used),
            _ if given == AF_UNSPEC && used == Use::Connect => Ok(Addr::None),
            family if given != family => Err(Errno::EINVAL.into()),
            AF_UNIX => unix(bytes),
            _ => {
                let port = u32::from_ne_bytes(array(bytes, 4).ok_or(Errno::EINVAL)?);
                let groups = u32::from_ne_bytes(array(bytes, 8).ok_or(Errno::EINVAL)?);
                Ok(Addr::Netlink(port, groups))
            }
        }
    }

    /// Whether a socket that has this name is bound: not one that kept an address without its port.
    pub fn is_bound(&self) -> bool {
        !matches!(self, Addr::Unnamed | Addr::None) && !matches!(self, Addr::Ip(at) if at.port() == 0)
    }

    /// The ABI form for a socket of this family.
    pub fn bytes(&self, family: i32) -> Vec<u8> {
        let mut out = (family as u16).to_ne_bytes().to_vec();
        match self {
            Addr::Unnamed | Addr::None => {
                if family != AF_UNIX {
                    let len = match family {
                        AF_INET => 16,
                        AF_NETLINK => 12,
                        _ => 28,
                    };
                    out.resize(len, 0);
                }
            }
            Addr::Path(path) => {
                out.extend_from_slice(path);
                out.push(0);
            }
            Addr::Abstract(name) => {
                out.push(0);
                out.extend_from_slice(name);
            }
            Addr::Netlink(port, groups) => {
                out.extend_from_slice(&[0; 2]);
                out.extend_from_slice(&port.to_ne_bytes());
                out.extend_from_slice(&groups.to_ne_bytes());
            }
            Addr::Ip(at) => {
                out.extend_from_slice(&at.port().to_be_bytes());
                match (family, at.ip()) {
                    (AF_INET6, ip) => {
                        let six = match ip {
                            IpAddr::V6(six) => six,
                            IpAddr::V4(four) => four.to_ipv6_mapped(),
                        };
                        out.extend_from_slice(&[0; 4]);
                        out.extend_from_slice(&six.octets());
                        out.extend_from_slice(&[0; 4]);
                    }
                    (_, ip) => {
                        if let IpAddr::V4(four) = ip.to_canonical() {
                            out.extend_from_slice(&four.octets());
                        }
                        out.resize(16, 0);
                    }
                }
            }
        }
        out
    }
}
