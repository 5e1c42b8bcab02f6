//! getsockopt(2) and setsockopt(2): lengths, rights, and the options that are more than a number.

use super::addr::array;
use super::optspec::{Spec, Takes, applies, spec};
use super::socket::{Kind, Side, Socket, State};
use super::{iface, multicast};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::task::creds::cap;
use crate::task::pidfd;
use crate::task::userns::Ids;
use crate::time;
use crate::wait::Ready;
use std::sync::Weak;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a value that are looked at: `struct group_req` is the longest.
const LONGEST: usize = 256;
/// Most bytes of a packet of IPv4.
const IP_MOST: u32 = 65_535;
/// Most bytes of a buffer that may be asked for (net.core.wmem_max).
const BUFFER: i32 = 212_992;
/// Most bytes that one with the right to may ask for.
const FORCED: i32 = i32::MAX / 2;

/// What a level or option that a socket lacks is answered with. `getting`: IPv4 tells the two apart.
fn missing(socket: &Socket, level: i32, name: i32, getting: bool) -> Fail {
    if socket.family == AF_UNIX && level != SOL_SOCKET {
        return Errno::EOPNOTSUPP.into();
    }
    if !applies(socket, level) {
        return if socket.family == AF_INET && getting { Errno::EOPNOTSUPP } else { Errno::ENOPROTOOPT }
            .into();
    }
    if level == SOL_SOCKET {
        match name {
            SO_PASSCRED | SO_PASSSEC | SO_PASSPIDFD | SO_PASSRIGHTS | SO_PEEK_OFF => {
                return Errno::EOPNOTSUPP.into();
            }
            SO_TYPE | SO_ERROR | SO_PEERCRED | SO_PEERNAME | SO_ACCEPTCONN | SO_PROTOCOL | SO_DOMAIN
            | SO_PEERSEC | SO_COOKIE | SO_NETNS_COOKIE | SO_MEMINFO | SO_PEERGROUPS | SO_PEERPIDFD
            | SO_CNX_ADVICE | SO_SNDBUFFORCE | SO_RCVBUFFORCE | SO_DETACH_FILTER => {
                return Errno::ENOPROTOOPT.into();
            }
            _ => {}
        }
    }
    if (level, name) == (SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS) {
        return Errno::ENOPROTOOPT.into();
    }
    Fail::gap(Errno::ENOPROTOOPT, format!("socket option {level}/{name}"))
}

/// Rights that some values need.
fn check_rights(cx: &Cx, socket: &Socket, name: i32, value: i32) -> SysResult<()> {
    let creds = cx.task.creds();
    let has = |cap| creds.capable_in(&socket.net.owner, cap);
    let marks = || has(cap::NET_RAW) || has(cap::NET_ADMIN);
    let refused = match name {
        // These cost everybody: rights in a namespace of one's own do not count.
        SO_DEBUG if value != 0 && !creds.capable(cap::NET_ADMIN) => Errno::EACCES,
        SO_SNDBUFFORCE | SO_RCVBUFFORCE if !creds.capable(cap::NET_ADMIN) => Errno::EPERM,
        SO_PRIORITY if !(0..=6).contains(&value) && !marks() => Errno::EPERM,
        SO_MARK if !marks() => Errno::EPERM,
        SO_REUSEPORT if value != 0 && !matches!(socket.family, AF_INET | AF_INET6) => Errno::EOPNOTSUPP,
        _ => return Ok(()),
    };
    Err(refused.into())
}

/// The interface that a socket keeps to, by name or number; there is but one to send over. Who is bound needs a right to change it.
fn bind_device(cx: &Cx, socket: &Socket, name: i32, bytes: &[u8]) -> SysResult<()> {
    let index = if name == SO_BINDTODEVICE {
        match bytes.split(|b| *b == 0).next().unwrap_or_default() {
            b"" => 0,
            device if device == iface::NAME => iface::INDEX,
            _ => return Err(Errno::ENODEV.into()),
        }
    } else {
        array(bytes, 0).map(i32::from_ne_bytes).ok_or(Errno::EINVAL)?
    };
    let may_change = cx.task.creds().capable_in(&socket.net.owner, cap::NET_RAW);
    let mut state = socket.state.lock();
    let bound = state.options.entry((SOL_SOCKET, SO_BINDTOIFINDEX)).or_insert(0);
    if *bound != 0 && !may_change {
        return Err(Errno::EPERM.into());
    }
    if index < 0 {
        return Err(Errno::EINVAL.into());
    }
    *bound = index;
    Ok(())
}

/// Options of TCP Fast Open are for who is not connected yet.
///
/// # Errors
/// EINVAL; a gap.
fn check_fast_open(state: &State, name: i32, value: i32) -> SysResult<()> {
    let other = match name {
        TCP_FASTOPEN => None,
        TCP_FASTOPEN_NO_COOKIE => Some(TCP_FASTOPEN_CONNECT),
        TCP_FASTOPEN_CONNECT => Some(TCP_FASTOPEN_NO_COOKIE),
        _ => return Ok(()),
    };
    let listens = state.backlog.is_some() && name != TCP_FASTOPEN_CONNECT;
    if !state.is_free() && !listens {
        return Err(Errno::EINVAL.into());
    }
    let on = |name| state.options.get(&(SOL_TCP, name)).is_some_and(|on| *on != 0);
    match other {
        // The connection would be put off until something is sent.
        Some(other) if value != 0 && on(other) => {
            Err(Fail::gap(Errno::EOPNOTSUPP, "TCP_FASTOPEN_CONNECT with TCP_FASTOPEN_NO_COOKIE"))
        }
        _ => Ok(()),
    }
}

/// The number of a value, by what its level makes of short ones.
fn number(level: i32, name: i32, bytes: &[u8]) -> SysResult<i32> {
    let whole = array(bytes, 0).map(i32::from_ne_bytes);
    match level {
        // One byte will do, and for most nothing is 0.
        SOL_IP => match (whole, bytes.first()) {
            (Some(value), _) => Ok(value),
            (None, Some(byte)) => Ok(i32::from(*byte)),
            (None, None) => match name {
                IP_TTL
                | IP_BIND_ADDRESS_NO_PORT
                | IP_MINTTL
                | IP_MULTICAST_TTL
                | IP_MULTICAST_LOOP
                | IP_MULTICAST_ALL => Err(Errno::EINVAL.into()),
                _ => Ok(0),
            },
        },
        SOL_NETLINK => Ok(whole.unwrap_or(0)),
        _ => whole.ok_or(Errno::EINVAL.into()),
    }
}

/// The number that is remembered.
///
/// # Errors
/// EINVAL, ENOPROTOOPT.
fn accepted(socket: &Socket, level: i32, name: i32, spec: Spec, value: i32) -> SysResult<i32> {
    let value = match spec.takes {
        Takes::Nothing => return Err(Errno::ENOPROTOOPT.into()),
        Takes::Switch => i32::from(value != 0),
        Takes::Int => value,
        Takes::Default(default, ..) if value == -1 => default,
        Takes::Range(least, most) | Takes::Default(_, least, most) => {
            (least..=most).contains(&value).then_some(value).ok_or(Errno::EINVAL)?
        }
    };
    let stream = socket.kind == Kind::Stream;
    Ok(match (level, name) {
        (SOL_SOCKET, SO_RCVLOWAT) if value < 0 => i32::MAX,
        (SOL_SOCKET, SO_RCVLOWAT) => value.max(1),
        // Two bits are the congestion notice's, which a stream has to itself.
        (SOL_IP, IP_TOS) if stream => value & 0xfc,
        (SOL_IP, IP_TOS) => value & 0xff,
        (SOL_IPV6, IPV6_TCLASS) if stream => value & 0xfc,
        (SOL_TCP, TCP_MAXSEG) if value != 0 && value < 88 => return Err(Errno::EINVAL.into()),
        (SOL_TCP, TCP_MAXSEG) if value == 0 => spec.first,
        (SOL_TCP, TCP_LINGER2) if value < 0 => -1,
        (SOL_TCP, TCP_LINGER2) if value == 0 => 60,
        (SOL_TCP, TCP_LINGER2) => value.min(120),
        (SOL_TCP, TCP_DEFER_ACCEPT) => retransmitted(value),
        (SOL_TCP, TCP_THIN_DUPACK) => 0,
        (SOL_TCP, TCP_FASTOPEN) => value.min(SOMAXCONN),
        _ => value,
    })
}

/// Seconds as the time of so many retransmissions, which is what Linux keeps of TCP_DEFER_ACCEPT.
fn retransmitted(seconds: i32) -> i32 {
    const MOST: i32 = 120;
    if seconds <= 0 {
        return 0;
    }
    let (mut period, mut timeout, mut count) = (1i32, 1i32, 1);
    while seconds > period && count < 255 {
        timeout = timeout.saturating_mul(2).min(MOST);
        period = period.saturating_add(timeout);
        count += 1;
    }
    period
}

/// setsockopt(2)
///
/// # Errors
/// ENOPROTOOPT, EINVAL, EFAULT, EPERM and those of each option.
pub fn set(cx: &mut Cx, socket: &Socket, level: i32, name: i32, addr: u64, len: i32) -> SysResult<()> {
    let len = usize::try_from(len).map_err(|_| Errno::EINVAL)?.min(LONGEST);
    let mut bytes = vec![0u8; len];
    cx.copy_in(addr, &mut bytes)?;
    if level == SOL_SOCKET {
        if matches!(name, SO_BINDTODEVICE | SO_BINDTOIFINDEX) {
            return bind_device(cx, socket, name, &bytes);
        }
        let value = array(&bytes, 0).map(i32::from_ne_bytes).ok_or(Errno::EINVAL)?;
        check_rights(cx, socket, name, value)?;
        if let Some(done) = set_general(socket, name, value, &bytes) {
            return done;
        }
    }
    if !applies(socket, level) {
        return Err(missing(socket, level, name, false));
    }
    if multicast::is_option(level, name) {
        return multicast::set(socket, level, name, &bytes);
    }
    if level == SOL_NETLINK && matches!(name, NETLINK_ADD_MEMBERSHIP | NETLINK_DROP_MEMBERSHIP) {
        return socket.change_group(name == NETLINK_ADD_MEMBERSHIP, number(level, name, &bytes)?);
    }
    if (level, name) == (SOL_TCP, TCP_CONGESTION) {
        if bytes.is_empty() {
            return Err(Errno::EINVAL.into());
        }
        let algorithm = bytes.split(|b| *b == 0).next().unwrap_or_default();
        return if algorithm == CONGESTION { Ok(()) } else { Err(Errno::ENOENT.into()) };
    }
    if (level, name) == (SOL_TCP, TCP_ULP) {
        return Err(Fail::gap(Errno::ENOENT, "protocols above TCP in the kernel (TLS)"));
    }
    let Some(spec) = spec(socket, level, name) else { return Err(missing(socket, level, name, false)) };
    let value = accepted(socket, level, name, spec, number(level, name, &bytes)?)?;
    let mut state = socket.state.lock();
    if (level, name) == (SOL_IPV6, IPV6_V6ONLY) && state.local.is_bound() {
        return Err(Errno::EINVAL.into());
    }
    if level == SOL_TCP {
        check_fast_open(&state, name, value)?;
    }
    state.options.insert((level, name), value);
    drop(state);
    match (level, name) {
        // Whoever waits for room may have it now.
        (SOL_SOCKET, SO_SNDBUF) => socket.wake_peer(Ready::ROOM),
        // Or for less.
        (SOL_SOCKET, SO_RCVLOWAT) => {
            socket.queue.wake(Ready::IN | Ready::RDNORM);
        }
        (SOL_IP, IP_RECVERR) | (SOL_IPV6, IPV6_RECVERR) if value == 0 => socket.forget_errors(),
        (SOL_UDP, UDP_CORK) if value == 0 => return socket.uncork(cx),
        _ => {}
    }
    Ok(())
}

/// Options of SOL_SOCKET that are no number, or do more than be remembered. None: it is another.
fn set_general(socket: &Socket, name: i32, value: i32, bytes: &[u8]) -> Option<SysResult<()>> {
    Some(match name {
        SO_RCVTIMEO | SO_SNDTIMEO | SO_RCVTIMEO_NEW | SO_SNDTIMEO_NEW => set_wait(socket, name, bytes),
        // Data in memory is delivered at once: only a reset in place of an end shows.
        SO_LINGER => match Linger::read_from_prefix(bytes) {
            Ok((linger, _)) => {
                socket.state.lock().linger = linger;
                Ok(())
            }
            Err(_) => Err(Errno::EINVAL.into()),
        },
        SO_SNDBUF | SO_RCVBUF | SO_SNDBUFFORCE | SO_RCVBUFFORCE => {
            let (least, name, most) = match name {
                SO_SNDBUF => (2304, SO_SNDBUF, BUFFER),
                SO_RCVBUF => (1152, SO_RCVBUF, BUFFER),
                SO_SNDBUFFORCE => (2304, SO_SNDBUF, FORCED),
                _ => (1152, SO_RCVBUF, FORCED),
            };
            // As a number without sign: less than 0 is more than any. Linux doubles what it is asked for.
            let value = if value < 0 { if most == FORCED { 0 } else { most } } else { value };
            let value = value.clamp(least, most).saturating_mul(2);
            socket.state.lock().options.insert((SOL_SOCKET, name), value);
            if name == SO_SNDBUF {
                socket.wake_peer(Ready::ROOM);
            }
            Ok(())
        }
        // Accepted since Linux 2.2, and nothing else.
        SO_BSDCOMPAT | SO_CNX_ADVICE => Ok(()),
        SO_DETACH_FILTER => Err(Errno::ENOENT.into()),
        SO_LOCK_FILTER if value == 0 => {
            let locked = socket.option(SO_LOCK_FILTER);
            if locked { Err(Errno::EPERM.into()) } else { Ok(()) }
        }
        _ => return None,
    })
}

fn set_wait(socket: &Socket, name: i32, bytes: &[u8]) -> SysResult<()> {
    let value = Timeval::read_from_prefix(bytes).map_err(|_| Errno::EINVAL)?.0;
    if !(0..1_000_000).contains(&value.tv_usec) {
        return Err(Errno::EDOM.into());
    }
    let wait = match time::from_timeval(&value) {
        Ok(wait) if wait.is_zero() => None,
        Ok(wait) => Some(wait),
        // Below 0 there is no waiting.
        Err(_) => Some(Duration::ZERO),
    };
    let mut state = socket.state.lock();
    match name {
        SO_RCVTIMEO | SO_RCVTIMEO_NEW => state.receive_wait = wait,
        _ => state.send_wait = wait,
    }
    Ok(())
}

/// The name of the one congestion control there is: none is at work in memory.
const CONGESTION: &[u8] = b"cubic";

/// `struct tcp_info` (linux/tcp.h): what a connection over loopback shows that lost nothing.
fn tcp_info(socket: &Socket) -> Vec<u8> {
    const SEGMENT: u32 = 65_483;
    let mut out = vec![0u8; 248];
    let mut put = |at: usize, value: u32| {
        if let Some(to) = out.get_mut(at..at + 4) {
            to.copy_from_slice(&value.to_ne_bytes());
        }
    };
    // rto, snd_mss, rcv_mss, pmtu, rcv_ssthresh, rtt, rttvar (µs), snd_ssthresh, snd_cwnd, advmss, reordering, rcv_space
    for (at, value) in [
        (8, 200_000),
        (16, SEGMENT / 2),
        (20, 536),
        (60, iface::MTU),
        (64, SEGMENT / 2),
        (68, 20),
        (72, 10),
        (76, i32::MAX as u32),
        (80, 10),
        (84, SEGMENT),
        (88, 3),
        (96, SEGMENT),
    ] {
        put(at, value);
    }
    let state = socket.row().map_or(super::listing::CLOSE, |row| row.state);
    if let Some(first) = out.first_mut() {
        *first = state;
    }
    out
}

/// SO_MEMINFO (linux/sock_diag.h): received, receive buffer, sent, send buffer, and five that are 0 here.
fn meminfo(state: &State, (receive, send): (i32, i32)) -> Vec<u8> {
    let own = |name, first| state.options.get(&(SOL_SOCKET, name)).copied().unwrap_or(first);
    let held = i32::try_from(state.charged).unwrap_or(i32::MAX);
    let words = [held, own(SO_RCVBUF, receive), 0, own(SO_SNDBUF, send), 0, 0, 0, 0, 0];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// getsockopt(2): the value's bytes, which the caller cuts to the `room` that there is.
///
/// # Errors
/// ENOPROTOOPT and those of each option.
pub fn get(cx: &mut Cx, socket: &Socket, level: i32, name: i32, room: usize) -> SysResult<Vec<u8>> {
    if level == SOL_SOCKET
        && let Some(value) = get_general(cx, socket, name, room)
    {
        return value;
    }
    if !applies(socket, level) {
        return Err(missing(socket, level, name, true));
    }
    if multicast::is_option(level, name) {
        return multicast::get(socket, level, name);
    }
    let connected = socket.state.lock().connected;
    match (level, name) {
        (SOL_TCP, TCP_CONGESTION) => {
            let mut name = CONGESTION.to_vec();
            name.resize(16, 0);
            return Ok(name);
        }
        (SOL_TCP, TCP_INFO) => return Ok(tcp_info(socket)),
        (SOL_TCP, TCP_ULP) | (SOL_IP, IP_OPTIONS) => return Ok(Vec::new()),
        (SOL_IP, IP_MTU) if connected => {
            return Ok(socket.net.lo().mtu.min(IP_MOST).to_ne_bytes().to_vec());
        }
        (SOL_IPV6, IPV6_MTU) if connected => return Ok(socket.net.lo().mtu.to_ne_bytes().to_vec()),
        (SOL_IP, IP_MTU) | (SOL_IPV6, IPV6_MTU) => return Err(Errno::ENOTCONN.into()),
        (SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS) => return Ok(socket.groups()),
        (SOL_NETLINK, NETLINK_ADD_MEMBERSHIP | NETLINK_DROP_MEMBERSHIP) => {
            return Err(Errno::ENOPROTOOPT.into());
        }
        _ => {}
    }
    let Some(spec) = spec(socket, level, name) else { return Err(missing(socket, level, name, true)) };
    if level == SOL_NETLINK && room < 4 {
        return Err(Errno::EINVAL.into());
    }
    let value = socket.state.lock().options.get(&(level, name)).copied();
    Ok(value.unwrap_or(spec.first).to_ne_bytes().to_vec())
}

/// Those of SOL_SOCKET that are not just remembered. None: it is.
fn get_general(cx: &mut Cx, socket: &Socket, name: i32, room: usize) -> Option<SysResult<Vec<u8>>> {
    let int = |value: i32| Ok(value.to_ne_bytes().to_vec());
    let wait = |wait: Option<Duration>| Ok(time::to_timeval(wait.unwrap_or_default()).as_bytes().to_vec());
    let long = |value: u64| match room {
        0..8 => Err(Errno::EINVAL.into()),
        _ => Ok(value.to_ne_bytes().to_vec()),
    };
    let first = |name| super::optspec::spec(socket, SOL_SOCKET, name).map_or(0, |spec| spec.first);
    let buffers = (first(SO_RCVBUF), first(SO_SNDBUF));
    // Read before the socket is locked.
    let ns = cx.task.creds().ns.clone();
    let mut state = socket.state.lock();
    Some(match name {
        SO_TYPE => int(state.options.get(&(SOL_SOCKET, name)).copied().unwrap_or(socket.kind.abi())),
        SO_DOMAIN => int(socket.family),
        SO_PROTOCOL => int(socket.protocol),
        SO_ERROR => int(state.error.take().map_or(0, |e| e.raw())),
        SO_ACCEPTCONN => int(i32::from(state.backlog.is_some())),
        SO_RCVTIMEO | SO_RCVTIMEO_NEW => wait(state.receive_wait),
        SO_SNDTIMEO | SO_SNDTIMEO_NEW => wait(state.send_wait),
        SO_LINGER => Ok(state.linger.as_bytes().to_vec()),
        SO_BSDCOMPAT => int(0),
        SO_BINDTODEVICE => match state.options.get(&(SOL_SOCKET, SO_BINDTOIFINDEX)) {
            None | Some(0) => Ok(Vec::new()),
            Some(_) if room < iface::NAME_ROOM => Err(Errno::EINVAL.into()),
            Some(index) if *index == iface::INDEX => Ok([iface::NAME, b"\0"].concat()),
            Some(_) => Err(Errno::ENODEV.into()),
        },
        SO_ATTACH_FILTER => Ok(Vec::new()),
        SO_COOKIE => long(socket.ino),
        SO_NETNS_COOKIE => long(socket.net.ino),
        SO_MEMINFO => Ok(meminfo(&state, buffers)),
        SO_PEERCRED => {
            let creds = match &state.peer_side {
                Some(Side { name, creds, .. }) => {
                    let pid = name.in_ns(&cx.task.process.pidns);
                    Ucred { pid, uid: ns.user(creds.euid), gid: ns.group(creds.egid) }
                }
                None => Ucred { pid: 0, uid: u32::MAX, gid: u32::MAX },
            };
            Ok(creds.as_bytes().to_vec())
        }
        SO_PEERNAME => {
            // More room than the name needs is an error of this option alone.
            let name = state.remote.bytes(socket.family);
            match socket.family == AF_NETLINK || state.connected {
                true if room > name.len() => Err(Errno::EINVAL.into()),
                true => Ok(name),
                false => Err(Errno::ENOTCONN.into()),
            }
        }
        SO_PEERGROUPS => {
            let Some(peer) = state.peer_side.clone() else { return Some(Err(Errno::ENODATA.into())) };
            let shown = peer.creds.groups.iter().map(|group| ns.shown(Ids::Groups, *group).to_ne_bytes());
            Ok(shown.flatten().collect())
        }
        SO_PEERPIDFD => {
            let peer = state.peer_side.as_ref().map(|side| side.process.clone());
            drop(state);
            peer_pidfd(cx, peer)
        }
        _ => return None,
    })
}

/// SO_PEERPIDFD: a new descriptor for the peer's process.
fn peer_pidfd(cx: &mut Cx, peer: Option<Weak<crate::task::Process>>) -> SysResult<Vec<u8>> {
    let peer = peer.ok_or(Errno::ENODATA)?;
    let process = peer.upgrade().ok_or(Errno::ESRCH)?;
    let fd = crate::ipc::install_file(cx, pidfd::file(&process, 0), true)?;
    Ok(fd.to_ne_bytes().to_vec())
}
