//! The one interface of a network namespace, `lo`: its state, and netdevice(7) requests about it.

use super::Net;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::task::creds::cap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Its name.
pub const NAME: &[u8] = b"lo";
/// Its index.
pub const INDEX: i32 = 1;
/// Its MTU in bytes at first.
pub const MTU: u32 = 65_536;
/// Packets its queue would hold.
pub const QUEUE: u32 = 1000;
/// ARPHRD_LOOPBACK (linux/if_arp.h)
pub const KIND: u16 = 772;
/// IFF_UP
pub const UP: u32 = 1;
/// IFF_LOOPBACK
const LOOPBACK: u32 = 8;
/// IFF_RUNNING
const RUNNING: u32 = 0x40;
/// IFF_LOWER_UP, which only netlink shows.
const LOWER_UP: u32 = 0x1_0000;
/// Most addresses.
const ADDRESSES: usize = 1024;
/// Scopes of addresses (linux/rtnetlink.h).
pub const SCOPE_HOST: u8 = 254;

/// Bytes of `struct ifreq`: a name and a union.
const REQUEST: usize = 40;
pub(super) const NAME_ROOM: usize = 16;

/// An address of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// It.
    pub ip: IpAddr,
    /// Bits of its network.
    pub prefix: u8,
    /// RT_SCOPE_*
    pub scope: u8,
}

impl Address {
    /// Addresses of its network belong to the interface as well: that is so of IPv4 on a loopback interface.
    fn covers(&self, ip: IpAddr) -> bool {
        match (self.ip, ip) {
            (IpAddr::V4(own), IpAddr::V4(ip)) => (own.to_bits() ^ ip.to_bits()) & mask(self.prefix) == 0,
            (own, ip) => own == ip,
        }
    }

    /// The broadcast address of its network; None: it has none.
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        match self.ip {
            IpAddr::V4(own) if self.prefix < 31 => Some(Ipv4Addr::from(own.to_bits() | !mask(self.prefix))),
            _ => None,
        }
    }
}

/// A netmask as a number.
pub fn mask(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32u32.saturating_sub(u32::from(prefix))).unwrap_or(0)
}

/// The state of the interface.
#[derive(Debug, Clone)]
pub struct Lo {
    /// IFF_UP
    pub up: bool,
    /// It was up before.
    pub used: bool,
    /// Bytes of a packet; remembered.
    pub mtu: u32,
    /// Its addresses, those of IPv4 first.
    pub addresses: Vec<Address>,
}

impl Lo {
    /// That of a namespace that somebody has set up.
    pub fn up() -> Lo {
        let mut lo = Lo::down();
        lo.set_up(true);
        lo
    }

    /// That of a new namespace.
    pub fn down() -> Lo {
        Lo { up: false, used: false, mtu: MTU, addresses: Vec::new() }
    }

    /// Sets IFF_UP. The addresses of loopback come with it; those of IPv6 go with it.
    pub fn set_up(&mut self, up: bool) {
        if self.up == up {
            return;
        }
        self.up = up;
        self.used |= up;
        if !up {
            self.addresses.retain(|a| a.ip.is_ipv4());
            return;
        }
        if !self.addresses.iter().any(|a| a.ip.is_ipv4()) {
            self.add(Address { ip: Ipv4Addr::LOCALHOST.into(), prefix: 8, scope: SCOPE_HOST });
        }
        self.add(Address { ip: Ipv6Addr::LOCALHOST.into(), prefix: 128, scope: SCOPE_HOST });
    }

    /// Adds an address. False: it is there, or there are too many.
    pub fn add(&mut self, address: Address) -> bool {
        let known = |a: &Address| a.ip == address.ip && (a.ip.is_ipv6() || a.prefix == address.prefix);
        if self.addresses.iter().any(known) || self.addresses.len() >= ADDRESSES {
            return false;
        }
        // Behind those of IPv4. Linux lists the newest of IPv6 first.
        let at = self.addresses.iter().position(|a| a.ip.is_ipv6());
        self.addresses.insert(at.unwrap_or(self.addresses.len()), address);
        true
    }

    /// Takes an address away. False: there is none such.
    pub fn remove(&mut self, ip: IpAddr, prefix: Option<u8>) -> bool {
        let found = self.addresses.iter().position(|a| a.ip == ip && prefix.is_none_or(|p| p == a.prefix));
        found.map(|at| self.addresses.remove(at)).is_some()
    }

    /// Whether packets to an address come back.
    pub fn has(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.up && self.addresses.iter().any(|a| a.covers(ip))
    }

    /// The address that packets to an address come from, which is one of its own.
    pub fn source(&self, to: IpAddr) -> IpAddr {
        let own = |ip: IpAddr| match self.addresses.iter().find(|a| a.covers(ip)) {
            Some(address) => address.ip,
            None if ip.is_ipv4() => Ipv4Addr::LOCALHOST.into(),
            None => Ipv6Addr::LOCALHOST.into(),
        };
        match (to, to.to_canonical()) {
            (IpAddr::V6(_), IpAddr::V4(four)) => match own(four.into()) {
                IpAddr::V4(own) => own.to_ipv6_mapped().into(),
                own => own,
            },
            (_, ip) => own(ip),
        }
    }

    /// Whether it has an address of the family of `ip`.
    pub fn speaks(&self, ip: IpAddr) -> bool {
        self.up && self.addresses.iter().any(|a| a.ip.is_ipv4() == ip.to_canonical().is_ipv4())
    }

    /// Whether a socket may have this address.
    pub fn can_bind(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        let own = self.addresses.iter().any(|a| a.covers(ip));
        // Linux has no table of local addresses yet that it could miss one of IPv4 in.
        let fresh = ip.is_ipv4() && !self.used && self.addresses.is_empty();
        ip.is_unspecified() || ip.is_multicast() || own || fresh
    }

    /// Whether an address is that of all in a network.
    pub fn is_broadcast(&self, ip: IpAddr) -> bool {
        let IpAddr::V4(ip) = ip.to_canonical() else { return false };
        ip.is_broadcast() || self.addresses.iter().any(|a| a.broadcast() == Some(ip))
    }

    /// IFF_*
    pub fn flags(&self) -> u32 {
        if self.up { LOOPBACK | UP | RUNNING } else { LOOPBACK }
    }

    /// As netlink shows them.
    pub fn all_flags(&self) -> u32 {
        if self.up { self.flags() | LOWER_UP } else { self.flags() }
    }

    /// The first address of IPv4.
    fn first(&self) -> Option<Address> {
        self.addresses.iter().find(|a| a.ip.is_ipv4()).copied()
    }
}

/// A `struct sockaddr_in` without port.
fn inet(ip: Ipv4Addr) -> [u8; 16] {
    let mut sockaddr = [0u8; 16];
    sockaddr[..2].copy_from_slice(&(AF_INET as u16).to_ne_bytes());
    sockaddr[4..8].copy_from_slice(&ip.octets());
    sockaddr
}

/// The value part of the answer to one request about `lo`. None: it is not one.
fn value(lo: &Lo, request: u32) -> Option<SysResult<[u8; 24]>> {
    let mut out = [0u8; 24];
    let mut put = |bytes: &[u8]| {
        if let Some(to) = out.get_mut(..bytes.len()) {
            to.copy_from_slice(bytes);
        }
    };
    if matches!(request, SIOCGIFADDR | SIOCGIFDSTADDR | SIOCGIFBRDADDR | SIOCGIFNETMASK)
        && lo.first().is_none()
    {
        return Some(Err(Errno::EADDRNOTAVAIL.into()));
    }
    let own = match lo.first().map(|a| a.ip) {
        Some(IpAddr::V4(ip)) => ip,
        _ => Ipv4Addr::UNSPECIFIED,
    };
    match request {
        SIOCGIFFLAGS => put(&(lo.flags() as u16).to_ne_bytes()),
        SIOCGIFADDR | SIOCGIFDSTADDR => put(&inet(own)),
        SIOCGIFBRDADDR => put(&inet(Ipv4Addr::UNSPECIFIED)),
        SIOCGIFNETMASK => put(&inet(Ipv4Addr::from(mask(lo.first().map_or(0, |a| a.prefix))))),
        SIOCGIFMETRIC | SIOCGIFMAP => {}
        SIOCGIFMTU => put(&lo.mtu.to_ne_bytes()),
        SIOCGIFHWADDR => put(&KIND.to_ne_bytes()),
        SIOCGIFINDEX => put(&INDEX.to_ne_bytes()),
        SIOCGIFTXQLEN => put(&QUEUE.to_ne_bytes()),
        _ => return None,
    }
    Some(Ok(out))
}

/// An ioctl(2) about interfaces. None: it is not one.
pub fn ioctl(cx: &mut Cx, net: &Net, request: u32, arg: u64) -> Option<SysResult> {
    match request {
        SIOCGIFCONF => Some(list(cx, net, arg)),
        SIOCGIFNAME => Some(name(cx, arg)),
        SIOCGIFFLAGS..=SIOCGIFTXQLEN if value(&net.lo(), request).is_some() => {
            Some(get(cx, net, request, arg))
        }
        SIOCSIFFLAGS | SIOCSIFMTU => Some(set(cx, net, request, arg)),
        SIOCSIFADDR | SIOCSIFDSTADDR | SIOCSIFBRDADDR | SIOCSIFNETMASK | SIOCSIFHWADDR | SIOCSIFTXQLEN
        | SIOCSIFNAME | SIOCADDRT | SIOCDELRT => Some(match may_change(cx, net) {
            Ok(()) => Err(Fail::gap(Errno::EPERM, "changing network interfaces by ioctl")),
            Err(fail) => Err(fail),
        }),
        _ => None,
    }
}

/// Whether the caller may change a namespace's interface.
///
/// # Errors
/// EPERM.
pub fn may_change(cx: &Cx, net: &Net) -> SysResult<()> {
    let may = cx.task.creds().capable_in(&net.owner, cap::NET_ADMIN);
    if may { Ok(()) } else { Err(Errno::EPERM.into()) }
}

/// Reads a request about `lo`.
fn named(cx: &mut Cx, arg: u64) -> SysResult<[u8; REQUEST]> {
    let mut bytes = [0u8; REQUEST];
    cx.copy_in(arg, &mut bytes)?;
    let name = bytes.get(..NAME_ROOM).unwrap_or_default();
    let name = name.split(|b| *b == 0).next().unwrap_or_default();
    // An alias has a colon and a suffix.
    if name.split(|b| *b == b':').next() != Some(NAME) {
        return Err(Errno::ENODEV.into());
    }
    Ok(bytes)
}

fn get(cx: &mut Cx, net: &Net, request: u32, arg: u64) -> SysResult {
    named(cx, arg)?;
    let value = value(&net.lo(), request).unwrap_or(Err(Errno::ENOTTY.into()))?;
    cx.copy_out(arg.saturating_add(NAME_ROOM as u64), &value)?;
    Ok(0)
}

fn set(cx: &mut Cx, net: &Net, request: u32, arg: u64) -> SysResult {
    let mut bytes = [0u8; REQUEST];
    cx.copy_in(arg, &mut bytes)?;
    may_change(cx, net)?;
    let bytes = named(cx, arg)?;
    let number = super::addr::array(&bytes, NAME_ROOM).map(u32::from_ne_bytes).unwrap_or(0);
    if request == SIOCSIFMTU {
        return set_mtu(net, number).map(|()| 0);
    }
    net.change_lo(|lo| lo.set_up(number & UP != 0));
    Ok(0)
}

/// # Errors
/// EINVAL: no length that a packet may have.
pub fn set_mtu(net: &Net, mtu: u32) -> SysResult<()> {
    if i32::try_from(mtu).is_err() {
        return Err(Errno::EINVAL.into());
    }
    net.change_lo(|lo| lo.mtu = mtu);
    Ok(())
}

fn name(cx: &mut Cx, arg: u64) -> SysResult {
    let index: i32 = cx.read_value(arg.saturating_add(NAME_ROOM as u64))?;
    if index != INDEX {
        return Err(Errno::ENODEV.into());
    }
    let mut name = [0u8; NAME_ROOM];
    name[..NAME.len()].copy_from_slice(NAME);
    cx.copy_out(arg, &name)?;
    Ok(0)
}

/// SIOCGIFCONF: `struct ifconf` holds the length and the address of an array of `struct ifreq`.
fn list(cx: &mut Cx, net: &Net, arg: u64) -> SysResult {
    let room: i32 = cx.read_value(arg)?;
    let array: u64 = cx.read_value(arg.saturating_add(8))?;
    let mut out = Vec::new();
    for address in &net.lo().addresses {
        let IpAddr::V4(ip) = address.ip else { continue };
        let mut entry = [0u8; REQUEST];
        entry[..NAME.len()].copy_from_slice(NAME);
        entry[NAME_ROOM..NAME_ROOM + 16].copy_from_slice(&inet(ip));
        out.extend_from_slice(&entry);
    }
    if array != 0 {
        let fits = usize::try_from(room).unwrap_or(0) / REQUEST * REQUEST;
        out.truncate(fits);
        cx.copy_out(array, &out)?;
    }
    cx.write_value(arg, &i32::try_from(out.len()).unwrap_or(0))?;
    Ok(0)
}
