//! Errors of datagrams that were sent (IP_RECVERR, IPV6_RECVERR), which MSG_ERRQUEUE receives: ip(7), ipv6(7).

use super::addr::{Addr, same};
use super::control::Record;
use super::socket::Socket;
use super::transfer::Received;
use crate::fail::SysResult;
use crate::wait::Ready;
use std::net::{IpAddr, SocketAddr};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Most errors of one socket. Linux has them in the receive buffer, which holds as many short ones.
const MOST: usize = 255;
/// Bytes of a datagram that an ICMP message brings back (RFC 1122: 576 bytes in all) and one of ICMPv6 (RFC 4443: 1280).
const BACK: (usize, usize) = (520, 1184);
/// SO_EE_ORIGIN_* (linux/errqueue.h)
const LOCAL: u8 = 1;
const ICMP: u8 = 2;
const ICMP6: u8 = 3;

/// One error.
pub(super) struct Queued {
    errno: Errno,
    /// Where from, and type and code of an ICMP message.
    origin: (u8, u8, u8),
    info: u32,
    /// Where the datagram was sent.
    to: SocketAddr,
    /// Its first bytes.
    data: Vec<u8>,
}

impl Queued {
    /// `struct sock_extended_err`, and the address of who told of it.
    fn record(&self, family: i32) -> Record {
        let (origin, kind, code) = self.origin;
        let mut body = self.errno.raw().to_ne_bytes().to_vec();
        body.extend([origin, kind, code, 0]);
        body.extend(self.info.to_ne_bytes());
        body.extend([0; 4]);
        let len = body.len() + if family == AF_INET { 16 } else { 28 };
        if origin != LOCAL {
            // The machine itself, at the address that was asked for; without a port.
            body.extend(Addr::Ip(SocketAddr::new(self.to.ip(), 0)).bytes(family));
        }
        body.resize(len, 0);
        match family {
            AF_INET => (SOL_IP, IP_RECVERR, body),
            _ => (SOL_IPV6, IPV6_RECVERR, body),
        }
    }
}

impl Socket {
    /// Whether errors of datagrams to an address are wanted.
    fn wants_errors(&self, to: IpAddr) -> bool {
        let option =
            if to.to_canonical().is_ipv4() { (SOL_IP, IP_RECVERR) } else { (SOL_IPV6, IPV6_RECVERR) };
        self.state.lock().options.get(&option).is_some_and(|on| *on != 0)
    }

    /// A datagram found nobody: a connected socket hears of it by its next call, one with IP_RECVERR too, and by what is
    /// queued.
    pub(super) fn unreachable(&self, data: &[u8], to: SocketAddr) {
        let wants = self.wants_errors(to.ip());
        {
            let mut state = self.state.lock();
            // One that is connected hears of its peer only.
            let elsewhere = matches!(&state.remote, Addr::Ip(peer) if state.connected && !same(peer, &to));
            if elsewhere || !wants && !state.connected {
                return;
            }
            state.error = Some(Errno::ECONNREFUSED);
            if wants && state.errors.len() < MOST {
                let (origin, most) = if to.ip().to_canonical().is_ipv4() {
                    ((ICMP, 3, 3), BACK.0)
                } else {
                    ((ICMP6, 1, 4), BACK.1)
                };
                let data = data.get(..most).unwrap_or(data).to_vec();
                let errno = Errno::ECONNREFUSED;
                state.errors.push_back(Queued { errno, origin, info: 0, to, data });
            }
        }
        self.queue.wake(Ready::ERR);
    }

    /// A datagram is longer than one can be, as this machine knows itself.
    pub(super) fn too_long(&self, len: usize, to: SocketAddr) {
        let v4 = to.ip().to_canonical().is_ipv4();
        // One of IPv4 that not even its length field could tell is refused before.
        if !self.wants_errors(to.ip()) || v4 && len > usize::from(u16::MAX) {
            return;
        }
        let info = if v4 { u32::from(u16::MAX) } else { self.net.lo().mtu };
        {
            let mut state = self.state.lock();
            // The port is the peer's with IPv4, wherever it was sent.
            let port = match &state.remote {
                _ if !v4 => to.port(),
                Addr::Ip(peer) if state.connected => peer.port(),
                _ => 0,
            };
            let to = SocketAddr::new(to.ip(), port);
            if state.errors.len() < MOST {
                let (errno, origin) = (Errno::EMSGSIZE, (LOCAL, 0, 0));
                state.errors.push_back(Queued { errno, origin, info, to, data: Vec::new() });
            }
        }
        self.queue.wake(Ready::ERR);
    }

    /// IP_RECVERR is off: there are none any more.
    pub(super) fn forget_errors(&self) {
        let gone = std::mem::take(&mut self.state.lock().errors);
        drop(gone);
    }

    /// MSG_ERRQUEUE: the first error, with the datagram that it is about and where that was sent.
    ///
    /// # Errors
    /// EAGAIN: there is none.
    pub fn receive_error(&self, buf: &mut [u8]) -> SysResult<Received> {
        let queued = {
            let mut state = self.state.lock();
            let queued = state.errors.pop_front().ok_or(Errno::EAGAIN)?;
            // SO_ERROR is that of the next message of ICMP.
            match state.errors.front().filter(|next| next.origin.0 != LOCAL) {
                Some(next) => state.error = Some(next.errno),
                None if queued.origin.0 != LOCAL => state.error = None,
                None => {}
            }
            queued
        };
        let count = queued.data.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..count), queued.data.get(..count)) {
            to.copy_from_slice(from);
        }
        let record = Some(queued.record(self.family));
        let from = Addr::Ip(queued.to);
        let (whole, cut) = (queued.data.len(), count < queued.data.len());
        Ok(Received { count, whole, cut, from, error: record, ..Received::nothing() })
    }
}
