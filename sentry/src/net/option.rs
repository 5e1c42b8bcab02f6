//! Socket options (socket(7), tcp(7), ip(7)): those with an effect here, and those that are remembered.

use super::addr::{Addr, array};
use super::multicast;
use super::socket::{Kind, Socket};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::time;
use crate::wait::Ready;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::{FromBytes, IntoBytes};

/// Options of UDP-Lite (linux/udp.h).
const SOL_UDPLITE: i32 = 136;
const UDPLITE_SEND_CSCOV: i32 = 10;
const UDPLITE_RECV_CSCOV: i32 = 11;

/// Options that change nothing inside one machine's memory: remembered, with their first value.
fn remembered(level: i32, name: i32) -> Option<i32> {
    Some(match (level, name) {
        (SOL_SOCKET, SO_SNDBUF | SO_RCVBUF) => 212_992,
        (SOL_SOCKET, SO_RCVLOWAT) => 1,
        (
            SOL_SOCKET,
            SO_REUSEADDR | SO_REUSEPORT | SO_KEEPALIVE | SO_BROADCAST | SO_PASSCRED | SO_OOBINLINE
            | SO_PRIORITY | SO_DONTROUTE | SO_TIMESTAMP_OLD | SO_TIMESTAMPNS_OLD | SO_RXQ_OVFL | SO_BUSY_POLL
            | SO_NO_CHECK | SO_INCOMING_CPU,
        ) => 0,
        (SOL_TCP, TCP_KEEPIDLE) => 7200,
        (SOL_TCP, TCP_KEEPINTVL) => 75,
        (SOL_TCP, TCP_KEEPCNT) => 9,
        (SOL_TCP, TCP_MAXSEG) => 65_483,
        (
            SOL_TCP,
            TCP_NODELAY | TCP_CORK | TCP_QUICKACK | TCP_USER_TIMEOUT | TCP_DEFER_ACCEPT | TCP_SYNCNT
            | TCP_LINGER2 | TCP_NOTSENT_LOWAT | TCP_FASTOPEN,
        ) => 0,
        (SOL_IP, IP_TTL) => 64,
        (SOL_IP, IP_MULTICAST_TTL | IP_MULTICAST_LOOP | IP_MULTICAST_ALL) => 1,
        (
            SOL_IP,
            IP_TOS
            | IP_PKTINFO
            | IP_MTU_DISCOVER
            | IP_RECVERR
            | IP_RECVTTL
            | IP_RECVTOS
            | IP_FREEBIND
            | IP_BIND_ADDRESS_NO_PORT,
        ) => 0,
        (SOL_IPV6, IPV6_UNICAST_HOPS) => 64,
        (SOL_IPV6, IPV6_MULTICAST_HOPS | IPV6_MULTICAST_LOOP | IPV6_MULTICAST_ALL) => 1,
        (
            SOL_IPV6,
            IPV6_RECVERR | IPV6_V6ONLY | IPV6_RECVPKTINFO | IPV6_RECVHOPLIMIT | IPV6_RECVTCLASS | IPV6_TCLASS
            | IPV6_MTU_DISCOVER | IPV6_DONTFRAG | IPV6_AUTOFLOWLABEL,
        ) => 0,
        (SOL_UDP, UDP_CORK) | (SOL_UDPLITE, UDPLITE_SEND_CSCOV | UDPLITE_RECV_CSCOV) => 0,
        (SOL_NETLINK, NETLINK_ADD_MEMBERSHIP..=NETLINK_GET_STRICT_CHK) => 0,
        _ => return None,
    })
}

/// Whether an option is on or off, and reads as 1 or 0.
fn is_switch(level: i32, name: i32) -> bool {
    match level {
        SOL_SOCKET => !matches!(
            name,
            SO_SNDBUF | SO_RCVBUF | SO_RCVLOWAT | SO_PRIORITY | SO_INCOMING_CPU | SO_BUSY_POLL
        ),
        SOL_TCP => matches!(name, TCP_NODELAY | TCP_CORK | TCP_QUICKACK),
        SOL_IP => !matches!(name, IP_TTL | IP_TOS | IP_MTU_DISCOVER | IP_MULTICAST_TTL),
        SOL_IPV6 => {
            !matches!(name, IPV6_UNICAST_HOPS | IPV6_MULTICAST_HOPS | IPV6_TCLASS | IPV6_MTU_DISCOVER)
        }
        _ => false,
    }
}

/// Refuses values that an option does not take.
///
/// # Errors
/// EINVAL.
fn check(level: i32, name: i32, value: i32) -> SysResult<()> {
    let range = match (level, name) {
        (SOL_IP, IP_TTL) if value != -1 => 1..=255,
        (SOL_IP, IP_MULTICAST_TTL) | (SOL_IPV6, IPV6_UNICAST_HOPS | IPV6_MULTICAST_HOPS | IPV6_TCLASS) => {
            -1..=255
        }
        (SOL_IP, IP_MTU_DISCOVER) | (SOL_IPV6, IPV6_MTU_DISCOVER) => 0..=5,
        (SOL_TCP, TCP_KEEPIDLE | TCP_KEEPINTVL) => 1..=32_767,
        (SOL_TCP, TCP_KEEPCNT | TCP_SYNCNT) => 1..=127,
        (SOL_TCP, TCP_USER_TIMEOUT) => 0..=i32::MAX,
        _ => return Ok(()),
    };
    range.contains(&value).then_some(()).ok_or(Errno::EINVAL.into())
}

/// Whether a socket has options of a level at all.
fn applies(socket: &Socket, level: i32) -> bool {
    match level {
        SOL_IPV6 => socket.family == AF_INET6,
        SOL_IP => matches!(socket.family, AF_INET | AF_INET6),
        SOL_TCP => matches!(socket.family, AF_INET | AF_INET6) && socket.kind == Kind::Stream,
        SOL_UDP => matches!(socket.family, AF_INET | AF_INET6) && socket.kind == Kind::Dgram,
        SOL_UDPLITE => socket.protocol == IPPROTO_UDPLITE,
        SOL_NETLINK => socket.family == AF_NETLINK,
        _ => true,
    }
}

fn missing(socket: &Socket, level: i32, name: i32) -> Fail {
    if socket.family == AF_UNIX && level != SOL_SOCKET {
        return Errno::EOPNOTSUPP.into();
    }
    if !applies(socket, level) {
        return Errno::ENOPROTOOPT.into();
    }
    Fail::gap(Errno::ENOPROTOOPT, format!("socket option {level}/{name}"))
}

/// setsockopt(2)
///
/// # Errors
/// ENOPROTOOPT, EINVAL, EFAULT.
pub fn set(cx: &mut Cx, socket: &Socket, level: i32, name: i32, addr: u64, len: i32) -> SysResult<()> {
    let len = usize::try_from(len).map_err(|_| Errno::EINVAL)?.min(256);
    let mut bytes = vec![0u8; len];
    cx.copy_in(addr, &mut bytes)?;
    match (level, name) {
        (SOL_SOCKET, SO_RCVTIMEO | SO_SNDTIMEO | SO_RCVTIMEO_NEW | SO_SNDTIMEO_NEW) => {
            let value = Timeval::read_from_prefix(&bytes).map_err(|_| Errno::EINVAL)?.0;
            let wait = time::from_timeval(&value).map_err(|_| Errno::EDOM)?;
            let wait = (!wait.is_zero()).then_some(wait);
            let mut state = socket.state.lock();
            match name {
                SO_RCVTIMEO | SO_RCVTIMEO_NEW => state.receive_wait = wait,
                _ => state.send_wait = wait,
            }
            return Ok(());
        }
        (SOL_SOCKET, SO_LINGER) => {
            // Data in memory is delivered at once: only a reset in place of an end shows.
            let value = Linger::read_from_prefix(&bytes).map_err(|_| Errno::EINVAL)?.0;
            socket.state.lock().linger = value;
            return Ok(());
        }
        _ => {}
    }
    if multicast::is_option(level, name) && applies(socket, level) {
        return multicast::set(socket, level, name, &bytes);
    }
    if (level, name) == (SOL_SOCKET, SO_BINDTODEVICE) {
        let device = bytes.split(|b| *b == 0).next().unwrap_or_default();
        // The one interface, or an end of the binding: either way nothing changes.
        return if device.is_empty() || device == super::iface::NAME {
            Ok(())
        } else {
            Err(Errno::ENODEV.into())
        };
    }
    if (level, name) == (SOL_TCP, TCP_CONGESTION) && applies(socket, level) {
        let algorithm = bytes.split(|b| *b == 0).next().unwrap_or_default();
        return if algorithm == CONGESTION.trim_ascii_end() { Ok(()) } else { Err(Errno::ENOENT.into()) };
    }
    if remembered(level, name).is_none() || !applies(socket, level) {
        return Err(missing(socket, level, name));
    }
    let value = array(&bytes, 0).map(i32::from_ne_bytes);
    let mut value = match (level, bytes.first()) {
        // IP options may be one byte.
        (SOL_IP, Some(byte)) => value.unwrap_or(i32::from(*byte)),
        _ => value.ok_or(Errno::EINVAL)?,
    };
    if level == SOL_SOCKET && matches!(name, SO_SNDBUF | SO_RCVBUF) {
        // Linux doubles what it is asked for.
        let least = if name == SO_SNDBUF { 2304 } else { 1152 };
        value = value.clamp(least, 212_992).saturating_mul(2);
    }
    check(level, name, value)?;
    if matches!((level, name), (SOL_IP, IP_TTL) | (SOL_IPV6, IPV6_UNICAST_HOPS)) && value == -1 {
        value = 64;
    }
    if is_switch(level, name) {
        value = i32::from(value != 0);
    }
    let mut state = socket.state.lock();
    if (level, name) == (SOL_IPV6, IPV6_V6ONLY) && state.local != Addr::Unnamed {
        return Err(Errno::EINVAL.into());
    }
    state.options.insert((level, name), value);
    drop(state);
    if (level, name) == (SOL_SOCKET, SO_SNDBUF) {
        // Whoever waits for room may have it now.
        socket.wake_peer(Ready::OUT | Ready::WRNORM);
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
        (60, super::iface::MTU),
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

/// getsockopt(2): the value's bytes.
///
/// # Errors
/// ENOPROTOOPT.
pub fn get(socket: &Socket, level: i32, name: i32) -> SysResult<Vec<u8>> {
    if multicast::is_option(level, name) && applies(socket, level) {
        return multicast::get(socket, level, name);
    }
    let mut state = socket.state.lock();
    let wait = |wait: Option<Duration>| Ok(time::to_timeval(wait.unwrap_or_default()).as_bytes().to_vec());
    let int = |value: i32| Ok(value.to_ne_bytes().to_vec());
    match (level, name) {
        (SOL_SOCKET, SO_TYPE) => int(state.options.get(&(level, name)).copied().unwrap_or(socket.kind.abi())),
        (SOL_SOCKET, SO_DOMAIN) => int(socket.family),
        (SOL_SOCKET, SO_PROTOCOL) => int(socket.protocol),
        (SOL_SOCKET, SO_ERROR) => int(state.error.take().map_or(0, |e| e.raw())),
        (SOL_SOCKET, SO_ACCEPTCONN) => int(i32::from(state.backlog.is_some())),
        (SOL_SOCKET, SO_RCVTIMEO | SO_RCVTIMEO_NEW) => wait(state.receive_wait),
        (SOL_SOCKET, SO_SNDTIMEO | SO_SNDTIMEO_NEW) => wait(state.send_wait),
        (SOL_SOCKET, SO_LINGER) => Ok(state.linger.as_bytes().to_vec()),
        (SOL_SOCKET, SO_PEERCRED) => Ok(state.peer_creds.as_bytes().to_vec()),
        (SOL_SOCKET, SO_COOKIE) => Ok(socket.ino.to_ne_bytes().to_vec()),
        (SOL_SOCKET, SO_BINDTODEVICE) => Ok(Vec::new()),
        (SOL_TCP, TCP_CONGESTION) if applies(socket, level) => {
            let mut name = CONGESTION.to_vec();
            name.resize(16, 0);
            Ok(name)
        }
        (SOL_TCP, TCP_INFO) if applies(socket, level) => {
            drop(state);
            Ok(tcp_info(socket))
        }
        _ => match remembered(level, name).filter(|_| applies(socket, level)) {
            Some(first) => int(state.options.get(&(level, name)).copied().unwrap_or(first)),
            None => Err(missing(socket, level, name)),
        },
    }
}
