//! Multicast on the one interface: groups that sockets are in (ip(7), ipv6(7)), and what is sent to them.

use super::addr::{Addr, array, of_family};
use super::control::Ancillary;
use super::iface;
use super::socket::{Kind, MESSAGES, Message, Socket};
use super::{Bound, Net};
use crate::fail::SysResult;
use crate::wait::Ready;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Most groups of one socket (net.ipv4.igmp_max_memberships).
const GROUPS: usize = 20;
/// Most groups of one socket of IPv6: Linux bounds their memory (net.core.optmem_max) and not their number.
const GROUPS_6: usize = 1000;
/// `struct group_req` (linux/in.h): index, and a `struct sockaddr_storage`.
const GROUP_REQ: usize = 136;

/// A group that every machine is in.
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

/// A membership as a call names it.
struct Named {
    group: IpAddr,
    /// None: the call names none.
    index: Option<i32>,
    /// The interface by an address of its own.
    own: Option<Ipv4Addr>,
}

fn four(bytes: &[u8], at: usize) -> SysResult<Ipv4Addr> {
    Ok(array::<4>(bytes, at).map(Ipv4Addr::from).ok_or(Errno::EINVAL)?)
}

fn int(bytes: &[u8], at: usize) -> SysResult<i32> {
    Ok(array(bytes, at).map(i32::from_ne_bytes).ok_or(Errno::EINVAL)?)
}

/// `struct ip_mreq` or `ip_mreqn`, `ipv6_mreq`, `group_req`.
fn parse(level: i32, name: i32, bytes: &[u8]) -> SysResult<Named> {
    if matches!(name, MCAST_JOIN_GROUP | MCAST_LEAVE_GROUP) {
        let address = bytes.get(8..GROUP_REQ).ok_or(Errno::EINVAL)?;
        let family = if level == SOL_IP { AF_INET } else { AF_INET6 };
        let group = of_family(address, family).map_err(|_| Errno::EADDRNOTAVAIL)?;
        return Ok(Named { group, index: Some(int(bytes, 0)?).filter(|i| *i != 0), own: None });
    }
    if level == SOL_IPV6 {
        let group = array::<16>(bytes, 0).map(Ipv6Addr::from).ok_or(Errno::EINVAL)?;
        return Ok(Named {
            group: group.into(),
            index: Some(int(bytes, 16)?).filter(|i| *i != 0),
            own: None,
        });
    }
    let index = if bytes.len() >= 12 { Some(int(bytes, 8)?).filter(|i| *i != 0) } else { None };
    let own = four(bytes, 4)?;
    Ok(Named { group: four(bytes, 0)?.into(), index, own: Some(own).filter(|ip| !ip.is_unspecified()) })
}

/// Whether an option is about groups or the interface that they are sent from.
pub(super) fn is_option(level: i32, name: i32) -> bool {
    match level {
        SOL_IP => matches!(
            name,
            IP_MULTICAST_IF | IP_ADD_MEMBERSHIP | IP_DROP_MEMBERSHIP | MCAST_JOIN_GROUP | MCAST_LEAVE_GROUP
        ),
        SOL_IPV6 => matches!(
            name,
            IPV6_MULTICAST_IF
                | IPV6_ADD_MEMBERSHIP
                | IPV6_DROP_MEMBERSHIP
                | MCAST_JOIN_GROUP
                | MCAST_LEAVE_GROUP
        ),
        _ => false,
    }
}

/// Sets such an option.
///
/// # Errors
/// EINVAL, ENODEV, EPROTO, EADDRINUSE, EADDRNOTAVAIL, ENOBUFS.
pub(super) fn set(socket: &Socket, level: i32, name: i32, bytes: &[u8]) -> SysResult<()> {
    match (level, name) {
        (SOL_IP, IP_MULTICAST_IF) => return set_interface(socket, bytes),
        (SOL_IPV6, IPV6_MULTICAST_IF) => {
            if socket.kind == Kind::Stream {
                return Err(Errno::ENOPROTOOPT.into());
            }
            let index = int(bytes, 0)?;
            if index != 0 && index != iface::INDEX {
                return Err(Errno::ENODEV.into());
            }
            socket.state.lock().options.insert((level, name), index);
            return Ok(());
        }
        _ => {}
    }
    let joins = matches!(
        (level, name),
        (_, MCAST_JOIN_GROUP) | (SOL_IP, IP_ADD_MEMBERSHIP) | (SOL_IPV6, IPV6_ADD_MEMBERSHIP)
    );
    if socket.kind == Kind::Stream {
        return Err(Errno::EPROTO.into());
    }
    let named = parse(level, name, bytes)?;
    if !named.group.is_multicast() {
        return Err(Errno::EINVAL.into());
    }
    // There is no route for groups, which would name the interface.
    let known = match (named.index, named.own) {
        (Some(index), _) => index == iface::INDEX,
        (None, Some(own)) => socket.net.has(own.into()),
        (None, None) => false,
    };
    if !known {
        return Err(Errno::ENODEV.into());
    }
    let mut state = socket.state.lock();
    let at = state.groups.iter().position(|group| *group == named.group);
    match (joins, at) {
        (true, Some(_)) => return Err(Errno::EADDRINUSE.into()),
        (true, None) => {
            let most = if named.group.is_ipv4() { GROUPS } else { GROUPS_6 };
            if state.groups.len() >= most {
                return Err(Errno::ENOBUFS.into());
            }
            state.groups.push(named.group);
        }
        (false, Some(at)) => {
            state.groups.remove(at);
        }
        (false, None) => return Err(Errno::EADDRNOTAVAIL.into()),
    }
    Ok(())
}

/// IP_MULTICAST_IF: by address, or by index.
fn set_interface(socket: &Socket, bytes: &[u8]) -> SysResult<()> {
    if socket.kind == Kind::Stream || bytes.len() < 4 {
        return Err(Errno::EINVAL.into());
    }
    let own = if bytes.len() >= 8 { four(bytes, 4)? } else { four(bytes, 0)? };
    let index = if bytes.len() >= 12 { int(bytes, 8)? } else { 0 };
    let found = match index {
        0 if own.is_unspecified() => 0,
        0 if socket.net.has(own.into()) => iface::INDEX,
        iface::INDEX => iface::INDEX,
        _ => return Err(Errno::EADDRNOTAVAIL.into()),
    };
    let mut state = socket.state.lock();
    state.options.insert((SOL_IP, IP_MULTICAST_IF), found);
    state.sends_as = Some(own).filter(|own| !own.is_unspecified());
    Ok(())
}

/// Such an option's value.
///
/// # Errors
/// ENOPROTOOPT: it is for setting only.
pub(super) fn get(socket: &Socket, level: i32, name: i32) -> SysResult<Vec<u8>> {
    let state = socket.state.lock();
    match (level, name) {
        (SOL_IP, IP_MULTICAST_IF) => Ok(state.sends_as.unwrap_or(Ipv4Addr::UNSPECIFIED).octets().to_vec()),
        (SOL_IPV6, IPV6_MULTICAST_IF) => {
            Ok(state.options.get(&(level, name)).copied().unwrap_or(0).to_ne_bytes().to_vec())
        }
        _ => Err(Errno::ENOPROTOOPT.into()),
    }
}

impl Socket {
    /// Whether it hears what is sent to a group: it is in it, or hears those of all others (IP_MULTICAST_ALL).
    fn hears(&self, group: IpAddr) -> bool {
        let state = self.state.lock();
        let all =
            if self.family == AF_INET { (SOL_IP, IP_MULTICAST_ALL) } else { (SOL_IPV6, IPV6_MULTICAST_ALL) };
        state.groups.contains(&group) || state.options.get(&all).is_none_or(|all| *all != 0)
    }

    /// Whether a datagram to a group has a way: it is to leave by the interface, or comes from its address.
    pub(super) fn reaches_groups(&self, group: IpAddr) -> bool {
        if group.is_ipv6() || !self.net.lo().up {
            // A loopback interface has no route for groups of IPv6.
            return false;
        }
        let state = self.state.lock();
        let named = state.options.get(&(SOL_IP, IP_MULTICAST_IF)).is_some_and(|index| *index != 0);
        let from_own = match state.local {
            Addr::Ip(local) => !local.ip().is_unspecified() && !local.ip().is_multicast(),
            _ => false,
        };
        named || from_own
    }
}

impl Socket {
    /// Sends a datagram to a group, or to all: each gets a copy, or none if it has no room.
    pub(super) fn send_to_many(
        &self,
        data: &[u8],
        to: SocketAddr,
        ancillary: &Ancillary,
    ) -> SysResult<usize> {
        let own = self.autobind_ip(None)?;
        let from = match (own.ip().is_unspecified(), self.state.lock().sends_as) {
            (true, Some(ip)) => SocketAddr::new(ip.into(), own.port()),
            (true, None) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), own.port()),
            (false, _) => own,
        };
        for target in self.net.find_all(self.protocol, to) {
            let message = Message {
                data: data.to_vec(),
                from: Addr::Ip(from),
                ancillary: Ancillary { ip: ancillary.ip, ..Ancillary::default() },
                time: crate::time::realtime(),
                ..Message::default()
            };
            if target.take_datagram(message) {
                target.queue.wake(Ready::IN | Ready::RDNORM);
            }
        }
        Ok(data.len())
    }

    /// Takes in a datagram if there is room.
    pub(super) fn take_datagram(&self, message: Message) -> bool {
        let mut state = self.state.lock();
        let (len, charge) = (message.data.len(), self.charge(message.data.len()));
        let room = self.room(&state, None);
        let full = !state.inbox.is_empty() && state.charged.saturating_add(charge) > room;
        if state.eof || full || state.inbox.len() >= MESSAGES {
            return false;
        }
        state.bytes = state.bytes.saturating_add(len);
        state.charged = state.charged.saturating_add(charge);
        state.inbox.push_back(message);
        true
    }
}

impl Net {
    /// Whether what is sent to an address is for several.
    pub(super) fn is_for_many(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        ip.is_multicast() || self.lo.lock().is_broadcast(ip)
    }

    /// Those that a datagram to a group or to all reaches.
    pub(super) fn find_all(&self, protocol: i32, to: SocketAddr) -> Vec<Arc<Socket>> {
        let found: Vec<Arc<Socket>> = {
            let names = self.names.lock();
            let list = names.ports.get(&(protocol, to.port())).map(Vec::as_slice).unwrap_or_default();
            let meant = |b: &&Bound| b.ip.is_unspecified() && b.covers(to.ip()) || b.ip == to.ip();
            list.iter().filter(meant).filter_map(|b| b.socket.upgrade()).collect()
        };
        if !to.ip().is_multicast() || found.is_empty() {
            return found;
        }
        // Packets for a group that nobody is in are not taken in.
        let joined = to.ip() == IpAddr::V4(ALL_HOSTS)
            || self.sockets().iter().any(|s| s.state.lock().groups.contains(&to.ip()));
        if !joined {
            return Vec::new();
        }
        found.into_iter().filter(|s| s.hears(to.ip())).collect()
    }

    /// The groups that sockets are in, and how many are in each: IPv4 or IPv6.
    pub fn groups(&self, v4: bool) -> Vec<(IpAddr, usize)> {
        // In the order in which they were joined first.
        let mut places: HashMap<IpAddr, usize> = HashMap::new();
        let mut out: Vec<(IpAddr, usize)> = Vec::new();
        for socket in self.sockets() {
            for group in socket.state.lock().groups.iter().filter(|group| group.is_ipv4() == v4) {
                let place = *places.entry(*group).or_insert(out.len());
                match out.get_mut(place) {
                    Some((_, count)) => *count += 1,
                    None => out.push((*group, 1)),
                }
            }
        }
        out.reverse();
        out
    }
}
