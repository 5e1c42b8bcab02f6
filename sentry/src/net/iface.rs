//! The one network interface, `lo`, as netdevice(7) requests show it.

use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use std::net::Ipv4Addr;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Its name.
pub const NAME: &[u8] = b"lo";
/// Its index.
pub const INDEX: i32 = 1;
/// Its MTU in bytes.
pub const MTU: u32 = 65_536;
/// Packets its queue would hold.
pub const QUEUE: u32 = 1000;
/// ARPHRD_LOOPBACK (linux/if_arp.h)
pub const KIND: u16 = 772;
/// IFF_UP, IFF_LOOPBACK, IFF_RUNNING.
pub const FLAGS: u32 = 0x49;
/// IFF_LOWER_UP, which only netlink shows.
pub const LOWER_UP: u32 = 0x1_0000;

/// Bytes of `struct ifreq`: a name and a union.
const REQUEST: usize = 40;
const NAME_ROOM: usize = 16;

/// The value part of the answer to one request about `lo`.
fn value(request: u32) -> Option<[u8; 24]> {
    let mut out = [0u8; 24];
    let mut put = |bytes: &[u8]| {
        if let Some(to) = out.get_mut(..bytes.len()) {
            to.copy_from_slice(bytes);
        }
    };
    let inet = |ip: Ipv4Addr| {
        let mut sockaddr = [0u8; 16];
        sockaddr[..2].copy_from_slice(&(AF_INET as u16).to_ne_bytes());
        sockaddr[4..8].copy_from_slice(&ip.octets());
        sockaddr
    };
    match request {
        SIOCGIFFLAGS => put(&(FLAGS as u16).to_ne_bytes()),
        SIOCGIFADDR | SIOCGIFDSTADDR => put(&inet(Ipv4Addr::LOCALHOST)),
        SIOCGIFBRDADDR => put(&inet(Ipv4Addr::UNSPECIFIED)),
        SIOCGIFNETMASK => put(&inet(Ipv4Addr::new(255, 0, 0, 0))),
        SIOCGIFMETRIC | SIOCGIFMAP => {}
        SIOCGIFMTU => put(&MTU.to_ne_bytes()),
        SIOCGIFHWADDR => put(&KIND.to_ne_bytes()),
        SIOCGIFINDEX => put(&INDEX.to_ne_bytes()),
        SIOCGIFTXQLEN => put(&QUEUE.to_ne_bytes()),
        _ => return None,
    }
    Some(out)
}

/// An ioctl(2) about interfaces. None: it is not one.
pub fn ioctl(cx: &mut Cx, request: u32, arg: u64) -> Option<SysResult> {
    match request {
        SIOCGIFCONF => Some(list(cx, arg)),
        SIOCGIFNAME => Some(name(cx, arg)),
        SIOCGIFFLAGS..=SIOCGIFTXQLEN if value(request).is_some() => Some(get(cx, request, arg)),
        SIOCSIFFLAGS | SIOCSIFADDR | SIOCSIFDSTADDR | SIOCSIFBRDADDR | SIOCSIFNETMASK | SIOCSIFMTU
        | SIOCSIFHWADDR | SIOCSIFTXQLEN | SIOCSIFNAME | SIOCADDRT | SIOCDELRT => {
            Some(Err(Fail::gap(Errno::EPERM, "changing network interfaces")))
        }
        _ => None,
    }
}

fn get(cx: &mut Cx, request: u32, arg: u64) -> SysResult {
    let mut bytes = [0u8; REQUEST];
    cx.copy_in(arg, &mut bytes)?;
    let name = bytes.get(..NAME_ROOM).unwrap_or_default();
    let name = name.split(|b| *b == 0).next().unwrap_or_default();
    // An alias has a colon and a suffix.
    if name.split(|b| *b == b':').next() != Some(NAME) {
        return Err(Errno::ENODEV.into());
    }
    let value = value(request).ok_or(Errno::ENOTTY)?;
    cx.copy_out(arg.saturating_add(NAME_ROOM as u64), &value)?;
    Ok(0)
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
fn list(cx: &mut Cx, arg: u64) -> SysResult {
    let room: i32 = cx.read_value(arg)?;
    let array: u64 = cx.read_value(arg.saturating_add(8))?;
    if array == 0 {
        cx.write_value(arg, &(REQUEST as i32))?;
        return Ok(0);
    }
    let fits = usize::try_from(room).is_ok_and(|room| room >= REQUEST);
    if fits {
        let mut entry = [0u8; REQUEST];
        entry[..NAME.len()].copy_from_slice(NAME);
        if let Some(address) = value(SIOCGIFADDR) {
            entry[NAME_ROOM..].copy_from_slice(&address);
        }
        cx.copy_out(array, &entry)?;
    }
    cx.write_value(arg, &if fits { REQUEST as i32 } else { 0 })?;
    Ok(0)
}
