//! ICMP echo sockets (icmp(7)): what `ping` without privileges uses. Every address that can be reached is the own machine's, so
//! that the answer comes at once.

use super::addr::Addr;
use super::control::Ancillary;
use super::socket::{Message, Socket};
use crate::fail::SysResult;
use crate::wait::Ready;
use std::net::SocketAddr;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Bytes of `struct icmphdr`: type, code, checksum, identifier, sequence number.
const HEADER: usize = 8;

/// The checksum of the internet protocols (RFC 1071).
fn checksum(data: &[u8]) -> u16 {
    let words = data.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.fold(0, u32::wrapping_add);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

impl Socket {
    /// Sends an echo request; its answer is received next. The identifier is the socket's port.
    pub(super) fn send_echo(&self, data: &[u8], to: &Addr) -> SysResult<usize> {
        let (request, answer) = if self.family == AF_INET { (8, 0) } else { (128, 129) };
        let Addr::Ip(to) = to else { return Err(Errno::EINVAL.into()) };
        if data.len() < HEADER {
            return Err(Errno::EINVAL.into());
        }
        if data.first() != Some(&request) || data.get(1) != Some(&0) {
            return Err(Errno::EINVAL.into());
        }
        let own = self.autobind_ip(None)?;
        let mut echoed = data.to_vec();
        if let Some(head) = echoed.get_mut(..HEADER) {
            head[0] = answer;
            head[2..4].fill(0);
            head[4..6].copy_from_slice(&own.port().to_be_bytes());
        }
        let sum = checksum(&echoed);
        if let Some(at) = echoed.get_mut(2..4) {
            at.copy_from_slice(&sum.to_be_bytes());
        }
        let from = SocketAddr::new(self.net.lo().source(to.ip()), 0);
        let from = if to.ip().is_unspecified() { from } else { SocketAddr::new(to.ip(), 0) };
        let mut ancillary = Ancillary::default();
        self.fill_header(&mut ancillary.ip, &Addr::Ip(from));
        let message = Message {
            data: echoed,
            from: Addr::Ip(from),
            ancillary,
            time: crate::time::realtime(),
            ..Message::default()
        };
        if self.take_datagram(message) {
            self.queue.wake(Ready::IN | Ready::RDNORM);
        }
        Ok(data.len())
    }
}
