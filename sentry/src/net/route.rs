//! NETLINK_ROUTE (rtnetlink(7)): questions about the one interface, its addresses, routes and rules, and changes of the
//! interface and its addresses.

use super::Net;
use super::addr::array;
use super::iface::{self, Address, Lo, SCOPE_HOST};
use super::netlink::{Body, Found, Refused, Request};
use crate::cx::Cx;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTM_GETNEIGH: u16 = 30;
const RTM_NEWRULE: u16 = 32;
const RTM_GETRULE: u16 = 34;
/// Last kind of the families of messages that there are (linux/rtnetlink.h).
const RTM_MAX: u16 = 123;

const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_EXCL: u16 = 0x200;

const SCOPE_LINK: u8 = 253;
const TABLE_LOCAL: u8 = 255;
const TABLE_MAIN: u8 = 254;
const TABLE_DEFAULT: u8 = 253;
const PROTO_KERNEL: u8 = 2;
const ROUTE_LOCAL: u8 = 2;
const ROUTE_BROADCAST: u8 = 3;

const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

/// Answers a request.
pub(super) fn answer(cx: &Cx, net: &Net, request: &Request) -> Found {
    let family = request.family();
    let wants = |f: i32| family == 0 || family == f;
    let lo = net.lo();
    match request.kind {
        RTM_GETLINK => {
            if !request.dump() && !names_lo(request) {
                return Err(Errno::ENODEV.into());
            }
            Ok(vec![(RTM_NEWLINK, link(&lo))])
        }
        RTM_GETADDR => {
            let shown = lo.addresses.iter().filter(|a| wants(family_of(a.ip)));
            Ok(shown.map(|a| (RTM_NEWADDR, address(a))).collect())
        }
        RTM_GETROUTE if request.dump() => {
            let mut out = Vec::new();
            let up = lo.addresses.iter().filter(|_| lo.up);
            for a in up.filter(|a| wants(family_of(a.ip))) {
                match a.ip {
                    IpAddr::V4(ip) => {
                        let host = (ROUTE_LOCAL, SCOPE_HOST);
                        let net = Ipv4Addr::from(ip.to_bits() & iface::mask(a.prefix));
                        if a.prefix < 32 {
                            out.push((RTM_NEWROUTE, route_4(host, a.prefix, net, ip)));
                        }
                        out.push((RTM_NEWROUTE, route_4(host, 32, ip, ip)));
                        if let Some(all) = a.broadcast() {
                            out.push((RTM_NEWROUTE, route_4((ROUTE_BROADCAST, SCOPE_LINK), 32, all, ip)));
                        }
                    }
                    IpAddr::V6(ip) => out.push((RTM_NEWROUTE, route_6(ip))),
                }
            }
            Ok(out)
        }
        RTM_GETROUTE => {
            let to = match request.find(12, 1) {
                Some(bytes) => ip(bytes).ok_or(Errno::EINVAL)?,
                None => return Err(Errno::EINVAL.into()),
            };
            match to {
                _ if !lo.has(to) => Err(Errno::ENETUNREACH.into()),
                IpAddr::V4(ip) => Ok(vec![(RTM_NEWROUTE, found_4(cx, ip, lo.source(to)))]),
                IpAddr::V6(ip) => Ok(vec![(RTM_NEWROUTE, route_6(ip))]),
            }
        }
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
        kind if kind % 4 == 2 || kind > RTM_MAX => {
            cx.note_gap(&format!("netlink route request {kind}"), Errno::EOPNOTSUPP);
            Err(Errno::EOPNOTSUPP.into())
        }
        _ => change(cx, net, request),
    }
}

/// What changes something: the right to do so first.
fn change(cx: &Cx, net: &Net, request: &Request) -> Found {
    if iface::may_change(cx, net).is_err() {
        return Err(Errno::EPERM.into());
    }
    match request.kind {
        RTM_NEWLINK | RTM_SETLINK => set_link(cx, net, request),
        RTM_DELLINK if names_lo(request) => Err(Errno::EOPNOTSUPP.into()),
        RTM_DELLINK => Err(Errno::ENODEV.into()),
        RTM_NEWADDR | RTM_DELADDR => set_address(net, request),
        kind => {
            cx.note_gap(&format!("netlink route change {kind}"), Errno::EOPNOTSUPP);
            Err(Errno::EOPNOTSUPP.into())
        }
    }
}

/// Whether a request about an interface (`struct ifinfomsg`) means `lo`, by number or by name.
fn names_lo(request: &Request) -> bool {
    let index = array(request.body, 4).map(i32::from_ne_bytes).unwrap_or(0);
    let name = request.find(16, IFLA_IFNAME).map(|n| n.split(|b| *b == 0).next().unwrap_or_default());
    index == iface::INDEX || index == 0 && name == Some(iface::NAME)
}

fn set_link(cx: &Cx, net: &Net, request: &Request) -> Found {
    const IFLA_LINKINFO: u16 = 18;
    if !names_lo(request) {
        if request.find(16, IFLA_LINKINFO).is_some() {
            cx.note_gap("making network interfaces", Errno::EOPNOTSUPP);
            return Err(Refused { errno: Some(Errno::EOPNOTSUPP), why: "Unknown device type" });
        }
        return Err(Errno::ENODEV.into());
    }
    let word = |at| array(request.body, at).map(u32::from_ne_bytes).ok_or(Errno::EINVAL);
    let (flags, mask) = (word(8)?, word(12)?);
    if request.find(16, IFLA_IFNAME).is_some_and(|n| n.split(|b| *b == 0).next() != Some(iface::NAME)) {
        cx.note_gap("renaming network interfaces", Errno::EOPNOTSUPP);
        return Err(Errno::EOPNOTSUPP.into());
    }
    if let Some(mtu) = request.find(16, IFLA_MTU) {
        let mtu = array(mtu, 0).map(u32::from_ne_bytes).ok_or(Errno::EINVAL)?;
        iface::set_mtu(net, mtu).map_err(|_| Errno::EINVAL)?;
    }
    // Without a mask the flags are all meant.
    if (flags | mask) & iface::UP != 0 && (mask == 0 || mask & iface::UP != 0) {
        net.change_lo(|lo| lo.set_up(flags & iface::UP != 0));
    }
    Ok(Vec::new())
}

fn set_address(net: &Net, request: &Request) -> Found {
    let [family, prefix, _, scope] = array(request.body, 0).ok_or(Errno::EINVAL)?;
    let index = array(request.body, 4).map(i32::from_ne_bytes).ok_or(Errno::EINVAL)?;
    let found = request.find(8, IFA_LOCAL).or_else(|| request.find(8, IFA_ADDRESS));
    let ip = found.and_then(ip).filter(|ip| family_of(*ip) == i32::from(family)).ok_or(Errno::EINVAL)?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    if prefix > most || ip.is_unspecified() || ip.is_multicast() {
        return Err(Errno::EINVAL.into());
    }
    if index != iface::INDEX {
        return Err(Errno::ENODEV.into());
    }
    if request.kind == RTM_DELADDR {
        let gone = net.change_lo(|lo| lo.remove(ip, Some(prefix)));
        let why = if ip.is_ipv4() { "ipv4: Address not found" } else { "address not found" };
        return if gone { Ok(Vec::new()) } else { Err(Refused { errno: Some(Errno::EADDRNOTAVAIL), why }) };
    }
    // IPv6 has the scope in the address.
    let scope = match ip {
        IpAddr::V6(ip) if ip.is_loopback() => SCOPE_HOST,
        IpAddr::V6(ip) if ip.is_unicast_link_local() => SCOPE_LINK,
        IpAddr::V6(_) => 0,
        IpAddr::V4(_) => scope,
    };
    let new = net.change_lo(|lo| lo.add(Address { ip, prefix, scope }));
    let replaces = request.flags & NLM_F_REPLACE != 0 && request.flags & NLM_F_EXCL == 0;
    if new || replaces {
        Ok(Vec::new())
    } else {
        let why = if ip.is_ipv4() { "ipv4: Address already assigned" } else { "address already assigned" };
        Err(Refused { errno: Some(Errno::EEXIST), why })
    }
}

fn family_of(ip: IpAddr) -> i32 {
    if ip.is_ipv4() { AF_INET } else { AF_INET6 }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => array::<4>(bytes, 0).map(|b| Ipv4Addr::from(b).into()),
        16 => array::<16>(bytes, 0).map(|b| Ipv6Addr::from(b).into()),
        _ => None,
    }
}

/// `struct ifinfomsg` of `lo` (linux/if_link.h).
fn link(lo: &Lo) -> Body {
    const DOWN: u8 = 2;
    let mut fixed = [0u8; 16];
    fixed[2..4].copy_from_slice(&iface::KIND.to_ne_bytes());
    fixed[4..8].copy_from_slice(&iface::INDEX.to_ne_bytes());
    fixed[8..12].copy_from_slice(&lo.all_flags().to_ne_bytes());
    let number = |n: u32| n.to_ne_bytes();
    Body::new(&fixed)
        .attr(IFLA_IFNAME, b"lo\0")
        .attr(13, &number(iface::QUEUE))
        .attr(16, &[if lo.up { 0 } else { DOWN }])
        .attr(17, &[0])
        .attr(IFLA_MTU, &number(lo.mtu))
        .attr(27, &number(0))
        .attr(30, &number(0))
        .attr(31, &number(1))
        .attr(32, &number(1))
        .attr(33, &[1])
        .attr(6, if lo.used { b"noqueue\0" } else { b"noop\0" })
        .attr(1, &[0; 6])
        .attr(2, &[0; 6])
        .attr(23, &[0; 25 * 8])
        .attr(7, &[0; 24 * 4])
}

/// `struct ifaddrmsg` (linux/if_addr.h); all are permanent.
fn address(address: &Address) -> Body {
    const PERMANENT: u32 = 0x80;
    let index = iface::INDEX.to_ne_bytes();
    let family = family_of(address.ip) as u8;
    let fixed =
        [family, address.prefix, PERMANENT as u8, address.scope, index[0], index[1], index[2], index[3]];
    // Preferred and valid for ever; made at boot.
    let mut times = [0xffu8; 16];
    times[8..].fill(0);
    let body = Body::new(&fixed);
    let body = match address.ip {
        IpAddr::V4(ip) => {
            let bytes = ip.octets();
            body.attr(IFA_ADDRESS, &bytes).attr(IFA_LOCAL, &bytes).attr(3, b"lo\0")
        }
        IpAddr::V6(ip) => body.attr(IFA_ADDRESS, &ip.octets()),
    };
    body.attr(8, &PERMANENT.to_ne_bytes()).attr(6, &times)
}

/// `struct rtmsg` (linux/rtnetlink.h) of the local table.
fn rtmsg(family: i32, prefix: u8, (kind, scope): (u8, u8)) -> [u8; 12] {
    [family as u8, prefix, 0, 0, TABLE_LOCAL, PROTO_KERNEL, scope, kind, 0, 0, 0, 0]
}

fn route_4(kind: (u8, u8), prefix: u8, to: Ipv4Addr, from: Ipv4Addr) -> Body {
    Body::new(&rtmsg(AF_INET, prefix, kind))
        .attr(15, &u32::from(TABLE_LOCAL).to_ne_bytes())
        .attr(1, &to.octets())
        .attr(7, &from.octets())
        .attr(4, &iface::INDEX.to_ne_bytes())
}

/// The answer for one address: made up for it, not an entry of the table.
fn found_4(cx: &Cx, to: Ipv4Addr, from: IpAddr) -> Body {
    /// RTM_F_CLONED, RTCF_LOCAL
    const FLAGS: u32 = 0x200 | 0x8000_0000;
    // Linux has the local table within the main one as long as nobody makes rules.
    let table = TABLE_MAIN;
    let mut fixed = [AF_INET as u8, 32, 0, 0, table, 0, 0, ROUTE_LOCAL, 0, 0, 0, 0];
    fixed[8..12].copy_from_slice(&FLAGS.to_ne_bytes());
    let from = super::listing::octets(AF_INET, from);
    let uid = cx.task.creds().ns.user(cx.task.creds().uid);
    Body::new(&fixed)
        .attr(15, &u32::from(table).to_ne_bytes())
        .attr(1, &to.octets())
        .attr(4, &iface::INDEX.to_ne_bytes())
        .attr(7, from.get(..4).unwrap_or_default())
        .attr(25, &uid.to_ne_bytes())
        .attr(12, &[0; 32])
}

fn route_6(to: Ipv6Addr) -> Body {
    Body::new(&rtmsg(AF_INET6, 128, (ROUTE_LOCAL, 0)))
        .attr(15, &u32::from(TABLE_LOCAL).to_ne_bytes())
        .attr(1, &to.octets())
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
