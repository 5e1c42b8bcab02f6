//! One packet with its descriptors, in and out.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, send, sendmsg,
};

use crate::protocol::MAX_MESSAGE;

/// The most descriptors of one packet (`SCM_MAX_FD`).
pub(crate) const MAX_FDS: usize = 253;

/// A buffer that holds any packet, and one byte more to see that a packet is too long.
pub(crate) fn packet_buffer() -> Vec<u8> {
    vec![0; MAX_MESSAGE + 1]
}

/// Sends one packet.
pub(crate) fn send_packet(to: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let sent = if fds.is_empty() {
        again(|| send(&to, bytes, SendFlags::NOSIGNAL))?
    } else {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if fds.len() > MAX_FDS || !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(Errno::MSGSIZE);
        }
        again(|| sendmsg(&to, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL))?
    };
    if sent == bytes.len() { Ok(()) } else { Err(Errno::IO) }
}

/// Receives one packet: its length (0 at the other side's end) and its descriptors, at most `MAX_FDS`.
///
/// # Errors
/// The socket's, or `EMSGSIZE` when the packet or its descriptors did not fit.
pub(crate) fn recv_packet(
    from: impl AsFd,
    buffer: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let limit = buffer.len();
    let got =
        again(|| recvmsg(&from, &mut [IoSliceMut::new(buffer)], &mut ancillary, RecvFlags::CMSG_CLOEXEC))?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) || got.bytes >= limit {
        return Err(Errno::MSGSIZE);
    }
    Ok(got.bytes)
}

/// Repeats a call that a signal interrupted.
pub(crate) fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}
