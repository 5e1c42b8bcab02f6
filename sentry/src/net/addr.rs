//! Socket addresses.

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
    /// AF_UNSPEC: dissolves a datagram socket's connection.
    None,
}

/// Whether two addresses are the same, IPv4 within IPv6 included.
pub fn same(a: &SocketAddr, b: &SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}

/// Some bytes of a guest's structure; None past its end.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

impl Addr {
    /// From the guest's bytes; `family` is the socket's.
    ///
    /// # Errors
    /// EINVAL, EAFNOSUPPORT.
    pub fn parse(bytes: &[u8], family: i32) -> SysResult<Addr> {
        let given = i32::from(u16::from_ne_bytes(array(bytes, 0).ok_or(Errno::EINVAL)?));
        if given == AF_UNSPEC {
            return Ok(Addr::None);
        }
        if given != family {
            return Err(if family == AF_UNIX { Errno::EINVAL } else { Errno::EAFNOSUPPORT }.into());
        }
        if family == AF_UNIX {
            let path = bytes.get(2..).unwrap_or_default();
            if path.len() > 108 {
                return Err(Errno::EINVAL.into());
            }
            return Ok(match path.split_first() {
                None => Addr::Unnamed,
                Some((0, name)) => Addr::Abstract(name.to_vec()),
                Some(_) => Addr::Path(path.split(|b| *b == 0).next().unwrap_or_default().to_vec()),
            });
        }
        if family == AF_NETLINK {
            let port = u32::from_ne_bytes(array(bytes, 4).ok_or(Errno::EINVAL)?);
            let groups = u32::from_ne_bytes(array(bytes, 8).ok_or(Errno::EINVAL)?);
            return Ok(Addr::Netlink(port, groups));
        }
        let port = u16::from_be_bytes(array(bytes, 2).ok_or(Errno::EINVAL)?);
        let ip: IpAddr = match family {
            AF_INET if bytes.len() >= 16 => Ipv4Addr::from(array::<4>(bytes, 4).ok_or(Errno::EINVAL)?).into(),
            AF_INET6 if bytes.len() >= 24 => {
                Ipv6Addr::from(array::<16>(bytes, 8).ok_or(Errno::EINVAL)?).into()
            }
            _ => return Err(Errno::EINVAL.into()),
        };
        Ok(Addr::Ip(SocketAddr::new(ip, port)))
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
