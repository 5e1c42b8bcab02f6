//! Socket options (socket(7), tcp(7), ip(7)): those with an effect here, and those that are remembered.

use super::addr::Addr;
use super::socket::{Kind, Socket};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::time;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::{FromBytes, IntoBytes};

/// Options that change nothing inside one machine's memory: remembered, with their first value.
fn remembered(level: i32, name: i32) -> Option<i32> {
    Some(match (level, name) {
        (SOL_SOCKET, SO_SNDBUF | SO_RCVBUF) => 212_992,
        (SOL_SOCKET, SO_RCVLOWAT) => 1,
        (
            SOL_SOCKET,
            SO_REUSEADDR | SO_REUSEPORT | SO_KEEPALIVE | SO_BROADCAST | SO_PASSCRED | SO_OOBINLINE
            | SO_PRIORITY | SO_DONTROUTE | SO_TIMESTAMP_OLD | SO_BUSY_POLL | SO_NO_CHECK | SO_INCOMING_CPU,
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
        // IP_TOS, IP_TTL, IP_RECVERR, IP_PKTINFO, IP_MTU_DISCOVER, IP_BIND_ADDRESS_NO_PORT
        (SOL_IP, 2) => 64,
        (SOL_IP, 1 | 8 | 10 | 11 | 24) => 0,
        // IPV6_UNICAST_HOPS, IPV6_RECVERR, IPV6_RECVPKTINFO, IPV6_TCLASS
        (SOL_IPV6, 16) => 64,
        (SOL_IPV6, 25 | IPV6_V6ONLY | 49 | 67) => 0,
        (SOL_NETLINK, NETLINK_ADD_MEMBERSHIP..=NETLINK_GET_STRICT_CHK) => 0,
        _ => return None,
    })
}

/// Whether a socket has options of a level at all.
fn applies(socket: &Socket, level: i32) -> bool {
    match level {
        SOL_IPV6 => socket.family == AF_INET6,
        SOL_IP => matches!(socket.family, AF_INET | AF_INET6),
        SOL_TCP => matches!(socket.family, AF_INET | AF_INET6) && socket.kind == Kind::Stream,
        SOL_NETLINK => socket.family == AF_NETLINK,
        _ => true,
    }
}

fn missing(level: i32, name: i32) -> Fail {
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
            // Data in memory is delivered at once: there is nothing to linger for.
            Linger::read_from_prefix(&bytes).map_err(|_| Errno::EINVAL)?;
            return Ok(());
        }
        _ => {}
    }
    if remembered(level, name).is_none() || !applies(socket, level) {
        return Err(missing(level, name));
    }
    let value = bytes.get(..4).and_then(|b| b.try_into().ok()).map(i32::from_ne_bytes);
    let mut value = match (level, bytes.first()) {
        // IP options may be one byte.
        (SOL_IP, Some(byte)) => value.unwrap_or(i32::from(*byte)),
        _ => value.ok_or(Errno::EINVAL)?,
    };
    if level == SOL_SOCKET && matches!(name, SO_SNDBUF | SO_RCVBUF) {
        // Linux doubles what it is asked for.
        value = value.clamp(1152, 212_992).saturating_mul(2);
    }
    let mut state = socket.state.lock();
    if (level, name) == (SOL_IPV6, IPV6_V6ONLY) && state.local != Addr::Unnamed {
        return Err(Errno::EINVAL.into());
    }
    state.options.insert((level, name), value);
    Ok(())
}

/// getsockopt(2): the value's bytes.
///
/// # Errors
/// ENOPROTOOPT.
pub fn get(socket: &Socket, level: i32, name: i32) -> SysResult<Vec<u8>> {
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
        (SOL_SOCKET, SO_LINGER) => Ok(vec![0; 8]),
        (SOL_SOCKET, SO_PEERCRED) => Ok(state.peer_creds.as_bytes().to_vec()),
        (SOL_SOCKET, SO_COOKIE) => Ok(socket.ino.to_ne_bytes().to_vec()),
        _ => match remembered(level, name) {
            Some(first) => int(state.options.get(&(level, name)).copied().unwrap_or(first)),
            None => Err(missing(level, name)),
        },
    }
}
