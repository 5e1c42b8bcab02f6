//! sendto(2), sendmsg(2), sendmmsg(2), recvfrom(2), recvmsg(2), recvmmsg(2)

use super::socket::{addr_bytes, connect_tcp, get, is_unspec, resolve, write_addr};
use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::net::addr::{Addr, Use};
use crate::net::control;
use crate::net::socket::{Kind, Socket};
use crate::net::transfer::Received;
use crate::vfs::io;
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Most bytes of one message that are gathered or scattered.
const MOST: usize = 1 << 20;
/// Bytes of a stream that are gathered at once: a sender that waits does it anew each time that it may go on.
const PIECE: usize = 1 << 16;
/// Find out the path, and send nothing (linux/socket.h).
const MSG_PROBE: i32 = 0x10;

struct Outgoing {
    ranges: Vec<(u64, usize)>,
    name: (u64, i32),
    control: (u64, u64),
}

/// This message's connection was made (MSG_FASTOPEN).
#[derive(Default)]
struct Opened(bool);

/// MSG_FASTOPEN: the connection is made first. No listener gives a cookie, as where net.ipv4.tcp_fastopen is 1, so that the data
/// follow. Some: so many bytes of `len` are taken, and that is all.
fn open_fast(
    cx: &mut Cx,
    socket: &Arc<Socket>,
    addr: Option<&[u8]>,
    len: usize,
    nonblocking: bool,
) -> SysResult<Option<usize>> {
    if cx.state::<Opened>().0 {
        return Ok(None);
    }
    if addr.is_some_and(is_unspec) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    match connect_tcp(cx, socket, addr, nonblocking) {
        // Who needs no cookie sends at once; a listener without a place has none for data either.
        Err(Fail::Error(Errno::EINPROGRESS)) if socket.opens_fast() => match socket.outlook() {
            (_, true) => return Err(Errno::EINPROGRESS.into()),
            (Some(_), _) => return Ok(Some(len.min(PIECE))),
            _ => {}
        },
        other => other?,
    }
    cx.state::<Opened>().0 = true;
    Ok(None)
}

fn send_one(cx: &mut Cx, fd: Fd, message: &Outgoing, flags: i32) -> SysResult<usize> {
    let sent = send_message(cx, fd, message, flags);
    if flags & MSG_FASTOPEN != 0 && !matches!(sent, Err(Fail::Block(_) | Fail::NeedPort)) {
        cx.state::<Opened>().0 = false;
    }
    sent
}

fn send_message(cx: &mut Cx, fd: Fd, message: &Outgoing, flags: i32) -> SysResult<usize> {
    let (file, socket) = get(cx, fd)?;
    let tcp = socket.family != AF_UNIX && socket.kind == Kind::Stream;
    let len = message.ranges.iter().fold(0usize, |sum, (_, l)| sum.saturating_add(*l));
    let nonblocking = file.nonblocking() || flags & MSG_DONTWAIT != 0;
    let addr = match message.name {
        (0, _) => None,
        (addr, len) => Some(addr_bytes(cx, addr, len)?),
    };
    // Flags that a kind of socket does not know are ignored.
    if flags & MSG_FASTOPEN != 0
        && tcp
        && let Some(taken) = open_fast(cx, &socket, addr.as_deref(), len, nonblocking)?
    {
        return Ok(taken);
    }
    let ip = matches!(socket.family, AF_INET | AF_INET6);
    let to = match addr {
        // Only IP looks at one without any bytes.
        Some(addr) if !tcp && (ip || !addr.is_empty()) => match Addr::parse(&addr, &socket, Use::Send)? {
            Addr::None => None,
            _ if socket.kind != Kind::Dgram => {
                let connected = socket.remote().is_some();
                return Err(if connected { Errno::EISCONN } else { Errno::EOPNOTSUPP }.into());
            }
            to => {
                let found = resolve(cx, &socket, &to)?;
                if socket.family == AF_UNIX && found.is_none() {
                    return Err(Errno::ECONNREFUSED.into());
                }
                Some((to, found))
            }
        },
        _ => None,
    };
    let mut ancillary = control::read(cx, socket.family, message.control.0, message.control.1)?;
    if socket.family != AF_UNIX && !ancillary.rights.is_empty() {
        return Err(Errno::EINVAL.into());
    }
    if len > MOST && socket.kind != Kind::Stream {
        return Err(Errno::EMSGSIZE.into());
    }
    if flags & MSG_PROBE != 0 && matches!((socket.family, socket.kind), (AF_INET | AF_INET6, Kind::Dgram)) {
        socket.autobind_ip(None)?;
        let known = to.is_some() || socket.remote().is_some();
        return if known { Ok(len) } else { Err(Errno::EDESTADDRREQ.into()) };
    }
    let mut done = std::mem::take(&mut cx.state::<Sent>().0).min(len);
    if done > 0 {
        ancillary.rights.clear();
    }
    let most = if socket.kind == Kind::Stream { PIECE } else { MOST };
    loop {
        let want = len.saturating_sub(done).min(most);
        // The urgent byte is the last of all, and an error after the first piece is the next call's.
        let later = if done > 0 { MSG_NOSIGNAL } else { 0 };
        let flags = if done.saturating_add(want) < len { flags & !MSG_OOB } else { flags } | later;
        if done > 0 && socket.has_error() {
            return Ok(done);
        }
        let sent = io::with_scratch(want, |data| {
            io::gather(cx, &message.ranges, done, data)?;
            socket.send(cx, data, &mut ancillary, to.clone(), nonblocking, flags)
        });
        match sent {
            Ok(part) => {
                done = done.saturating_add(part);
                if part < want || done >= len {
                    return Ok(done);
                }
            }
            Err(fail @ (Fail::Block(_) | Fail::NeedPort)) => {
                if done > 0 && crate::signal::deliver::pending(cx.task) {
                    return Ok(done);
                }
                cx.state::<Sent>().0 = done;
                return Err(fail);
            }
            Err(_) if done > 0 => return Ok(done),
            Err(fail) => return Err(fail),
        }
    }
}

/// How much of a stream's message is sent.
#[derive(Default)]
struct Sent(usize);

/// sendto(2)
pub fn sendto(
    cx: &mut Cx,
    sockfd: Fd,
    buf: InBuf,
    len: usize,
    flags: MsgFlags,
    dest_addr: InSockaddr,
    addrlen: i32,
) -> SysResult {
    let ranges = vec![(buf.addr(), len.min(MAX_RW_COUNT))];
    let message = Outgoing { ranges, name: (dest_addr.addr(), addrlen), control: (0, 0) };
    send_one(cx, sockfd, &message, flags.bits()).map(|n| n as u64)
}

fn outgoing(cx: &mut Cx, header: &Msghdr) -> SysResult<Outgoing> {
    let count =
        usize::try_from(header.msg_iovlen).ok().filter(|c| *c <= UIO_MAXIOV).ok_or(Errno::EMSGSIZE)?;
    let ranges = io::read_iovec(cx, header.msg_iov, count)?;
    Ok(Outgoing {
        ranges,
        name: if header.msg_namelen == 0 { (0, 0) } else { (header.msg_name, header.msg_namelen) },
        control: (header.msg_control, header.msg_controllen),
    })
}

/// sendmsg(2)
pub fn sendmsg(cx: &mut Cx, sockfd: Fd, msg: In<Msghdr>, flags: MsgFlags) -> SysResult {
    get(cx, sockfd)?;
    let header: Msghdr = cx.read_value(msg.addr())?;
    let message = outgoing(cx, &header)?;
    send_one(cx, sockfd, &message, flags.bits()).map(|n| n as u64)
}

/// How many messages of a vector are done.
#[derive(Default)]
struct Done(u32);

/// sendmmsg(2), recvmmsg(2): `one` is given where each message's header is, and whether it is the first. What goes wrong
/// after the first ends the call with the count.
fn each(
    cx: &mut Cx,
    msgvec: u64,
    vlen: u32,
    deadline: Option<Duration>,
    mut one: impl FnMut(&mut Cx, u64, bool) -> SysResult,
) -> SysResult {
    let most = vlen.min(UIO_MAXIOV as u32);
    loop {
        let done = cx.state::<Done>().0;
        if done >= most || done > 0 && deadline.is_some_and(|d| crate::time::now() >= d) {
            return Ok(u64::from(done));
        }
        let at = msgvec.wrapping_add(u64::from(done) * 64);
        let result = one(cx, at, done == 0)
            .and_then(|count| cx.write_value(at.wrapping_add(56), &u32::try_from(count).unwrap_or(u32::MAX)));
        match result {
            Ok(()) => cx.state::<Done>().0 = done + 1,
            // The timeout is looked at after each message; it does not end the wait for one, as in Linux.
            Err(fail @ Fail::Block(_)) if done == 0 || !crate::signal::deliver::pending(cx.task) => {
                return Err(fail);
            }
            Err(_) if done > 0 => return Ok(u64::from(done)),
            Err(fail) => return Err(fail),
        }
    }
}

/// sendmmsg(2)
pub fn sendmmsg(
    cx: &mut Cx,
    sockfd: Fd,
    msgvec: InOutSlice<Mmsghdr>,
    vlen: u32,
    flags: MsgFlags,
) -> SysResult {
    each(cx, msgvec.addr(), vlen, None, |cx, at, _| {
        let header: Msghdr = cx.read_value(at)?;
        let message = outgoing(cx, &header)?;
        send_one(cx, sockfd, &message, flags.bits()).map(|n| n as u64)
    })
}

/// How much of a buffer was filled when the call had to wait for the rest (MSG_WAITALL).
#[derive(Default)]
struct Filled(usize);

struct Incoming {
    got: Received,
    socket: Arc<Socket>,
}

fn receive_one(cx: &mut Cx, fd: Fd, ranges: &[(u64, usize)], flags: i32) -> SysResult<Incoming> {
    let (file, socket) = get(cx, fd)?;
    let nonblocking = file.nonblocking() || flags & MSG_DONTWAIT != 0;
    let len = ranges.iter().fold(0usize, |sum, (_, l)| sum.saturating_add(*l));
    // UDP does not know the flag.
    let udp = matches!(socket.protocol, IPPROTO_UDP | IPPROTO_UDPLITE)
        && matches!((socket.family, socket.kind), (AF_INET | AF_INET6, Kind::Dgram));
    // TCP discards then what others tell the length of.
    let discards = flags & (MSG_TRUNC | MSG_OOB | MSG_ERRQUEUE) == MSG_TRUNC
        && matches!((socket.family, socket.kind), (AF_INET | AF_INET6, Kind::Stream));
    let room = if discards { usize::MAX } else { io::room_in(cx, ranges) };
    // A stream that is to fill the buffer gives what it has, and waits for more.
    let apart = MSG_PEEK | MSG_OOB | MSG_ERRQUEUE;
    let fills = socket.kind == Kind::Stream && !nonblocking && flags & (MSG_WAITALL | apart) == MSG_WAITALL;
    let mut done = if fills { std::mem::take(&mut cx.state::<Filled>().0) } else { 0 };
    let flags = if fills { flags & !MSG_WAITALL } else { flags };
    loop {
        if done > 0 && socket.has_error() {
            return Ok(Incoming { got: Received::of(done), socket });
        }
        cx.room = room.saturating_sub(done);
        let size = len.saturating_sub(done).min(MOST);
        let part = io::with_scratch(size, |buffer| {
            // Families without errors of datagrams do not know the flag.
            let got = if flags & MSG_ERRQUEUE != 0 && matches!(socket.family, AF_INET | AF_INET6) {
                socket.receive_error(buffer)?
            } else if flags & MSG_OOB != 0 && !udp {
                Received::of(socket.receive_urgent(buffer, flags)?)
            } else {
                socket.receive(cx, buffer, nonblocking, flags)?
            };
            let data = buffer.get(..got.count).unwrap_or_default();
            if !discards && io::scatter(cx, ranges, done, data)? < got.count {
                // Changed since it was looked at.
                return Err(Errno::EFAULT.into());
            }
            Ok(got)
        });
        let mut got = match part {
            Ok(got) => got,
            Err(fail) => {
                let over = match fail {
                    Fail::Block(_) => crate::signal::deliver::pending(cx.task),
                    _ => matches!(fail, Fail::Error(_)),
                };
                if done > 0 && over {
                    return Ok(Incoming { got: Received::of(done), socket });
                }
                if fills {
                    cx.state::<Filled>().0 = done;
                }
                return Err(fail);
            }
        };
        done = done.saturating_add(got.count);
        let apart = got.count == 0 || !got.ancillary.rights.is_empty();
        if !fills || apart || done >= len || !socket.goes_on(got.count == size) {
            (got.count, got.whole) = if fills { (done, done) } else { (got.count, got.whole) };
            return Ok(Incoming { got, socket });
        }
    }
}

/// recvfrom(2)
pub fn recvfrom(
    cx: &mut Cx,
    sockfd: Fd,
    buf: OutBuf,
    len: usize,
    flags: MsgFlags,
    src_addr: OutSockaddr,
    addrlen: InOut<i32>,
) -> SysResult {
    let Incoming { got, socket } =
        receive_one(cx, sockfd, &[(buf.addr(), len.min(MAX_RW_COUNT))], flags.bits())?;
    if socket.kind != Kind::Stream && got.from != Addr::Unnamed {
        write_addr(cx, &got.from, socket.family, src_addr.addr(), addrlen.addr())?;
    } else if !src_addr.is_null() {
        cx.write_value(addrlen.addr(), &0i32)?;
    }
    Ok(if flags.has(MSG_TRUNC) { got.whole } else { got.count } as u64)
}

fn receive_header(cx: &mut Cx, fd: Fd, at: u64, flags: i32) -> SysResult {
    get(cx, fd)?;
    let mut header: Msghdr = cx.read_value(at)?;
    let count =
        usize::try_from(header.msg_iovlen).ok().filter(|c| *c <= UIO_MAXIOV).ok_or(Errno::EMSGSIZE)?;
    let ranges = io::read_iovec(cx, header.msg_iov, count)?;
    let Incoming { mut got, socket } = receive_one(cx, fd, &ranges, flags)?;
    let urgent = if socket.kind == Kind::Stream { MSG_OOB } else { 0 };
    header.msg_flags = flags & (MSG_CMSG_CLOEXEC | urgent);
    if got.error.is_some() {
        header.msg_flags |= MSG_ERRQUEUE;
    }
    if got.cut {
        header.msg_flags |= MSG_TRUNC;
    }
    if header.msg_name != 0 {
        let bytes = match (socket.kind, &got.from) {
            (Kind::Stream, _) | (_, Addr::Unnamed) => Vec::new(),
            (_, from) => from.bytes(socket.family),
        };
        let room = usize::try_from(header.msg_namelen).map_err(|_| Errno::EINVAL)?;
        cx.copy_out(header.msg_name, bytes.get(..room.min(bytes.len())).unwrap_or_default())?;
        header.msg_namelen = bytes.len() as i32;
    }
    let records = socket.records(cx, &got);
    let cloexec = flags & MSG_CMSG_CLOEXEC != 0;
    let (at_control, room) = (header.msg_control, header.msg_controllen);
    let wants = socket.family == AF_UNIX && socket.option(SO_PASSPIDFD);
    let sender = got.ancillary.process.take().filter(|_| wants);
    let rights = &mut got.ancillary.rights;
    let (used, cut) = control::write(cx, at_control, room, &records, rights, sender, cloexec)?;
    header.msg_controllen = used;
    if cut {
        header.msg_flags |= MSG_CTRUNC;
    }
    cx.write_value(at, &header)?;
    Ok(if flags & MSG_TRUNC != 0 { got.whole } else { got.count } as u64)
}

/// recvmsg(2)
pub fn recvmsg(cx: &mut Cx, sockfd: Fd, msg: InOut<Msghdr>, flags: MsgFlags) -> SysResult {
    receive_header(cx, sockfd, msg.addr(), flags.bits())
}

/// recvmmsg(2)
pub fn recvmmsg(
    cx: &mut Cx,
    sockfd: Fd,
    msgvec: InOutSlice<Mmsghdr>,
    vlen: u32,
    flags: MsgFlags,
    timeout: InOut<Timespec>,
) -> SysResult {
    let deadline = super::poll::deadline_at(cx, timeout.addr())?;
    each(cx, msgvec.addr(), vlen, deadline, |cx, at, first| {
        let late = !first && flags.has(MSG_WAITFORONE);
        let extra = if late { MSG_DONTWAIT } else { 0 };
        receive_header(cx, sockfd, at, flags.bits() | extra)
    })
}
