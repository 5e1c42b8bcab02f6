//! socket(2), socketpair(2), bind(2), listen(2), connect(2), accept(2), shutdown(2), getsockname(2), getpeername(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::ipc::install_file;
use crate::net::addr::{Addr, Use};
use crate::net::netlink;
use crate::net::socket::{Kind, Socket, description};
use crate::task::creds::cap;
use crate::vfs::file::File;
use crate::vfs::inode::NewKind;
use crate::vfs::names::At;
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// First port that everybody may have (net.ipv4.ip_unprivileged_port_start).
const UNPRIVILEGED: u16 = 1024;

/// The socket behind a descriptor, with its description.
///
/// # Errors
/// EBADF, ENOTSOCK.
pub(super) fn get(cx: &Cx, fd: Fd) -> SysResult<(Arc<File>, Arc<Socket>)> {
    let file = cx.task.files().get(fd.raw())?;
    let ops: Arc<dyn std::any::Any + Send + Sync> = file.ops.clone();
    let socket = ops.downcast::<Socket>().map_err(|_| Errno::ENOTSOCK)?;
    Ok((file, socket))
}

fn kind_of(kind: SocketType) -> SysResult<(i32, i32)> {
    let flags = kind.bits() & (SOCK_NONBLOCK | SOCK_CLOEXEC);
    match kind.bits() & !(SOCK_NONBLOCK | SOCK_CLOEXEC) {
        base if base & !0xf != 0 => Err(Errno::EINVAL.into()),
        base => Ok((base, flags)),
    }
}

fn make(cx: &Cx, domain: i32, base: i32, protocol: i32) -> SysResult<Arc<Socket>> {
    let kind = match (domain, base) {
        (AF_UNIX, SOCK_STREAM) => Kind::Stream,
        // Linux turns raw ones into these.
        (AF_UNIX, SOCK_DGRAM | SOCK_RAW) => Kind::Dgram,
        (AF_UNIX, SOCK_SEQPACKET) => Kind::Seqpacket,
        (AF_UNIX, _) => return Err(Errno::ESOCKTNOSUPPORT.into()),
        (AF_INET | AF_INET6, SOCK_STREAM) if matches!(protocol, 0 | IPPROTO_TCP) => Kind::Stream,
        (AF_INET | AF_INET6, SOCK_DGRAM) if matches!(protocol, 0 | IPPROTO_UDP | IPPROTO_UDPLITE) => {
            Kind::Dgram
        }
        (AF_INET, SOCK_DGRAM) if protocol == IPPROTO_ICMP => Kind::Dgram,
        (AF_INET6, SOCK_DGRAM) if protocol == IPPROTO_ICMPV6 => Kind::Dgram,
        (AF_INET | AF_INET6, SOCK_RAW) => return Err(Errno::EPERM.into()),
        (AF_INET | AF_INET6, SOCK_STREAM | SOCK_DGRAM) => {
            return Err(Fail::gap(Errno::EPROTONOSUPPORT, format!("socket protocol {protocol}")));
        }
        (AF_INET | AF_INET6, _) => return Err(Errno::ESOCKTNOSUPPORT.into()),
        (AF_NETLINK, SOCK_RAW | SOCK_DGRAM) if netlink::supported(protocol) => Kind::Dgram,
        (AF_NETLINK, SOCK_RAW | SOCK_DGRAM) => {
            return Err(Fail::gap(Errno::EPROTONOSUPPORT, format!("netlink protocol {protocol}")));
        }
        (AF_NETLINK, _) => return Err(Errno::ESOCKTNOSUPPORT.into()),
        (0..=45, _) => return Err(Fail::gap(Errno::EAFNOSUPPORT, format!("socket family {domain}"))),
        _ => return Err(Errno::EAFNOSUPPORT.into()),
    };
    if domain == AF_UNIX && !matches!(protocol, 0 | AF_UNIX) {
        return Err(Errno::EPROTONOSUPPORT.into());
    }
    let protocol = match (domain, kind) {
        (AF_UNIX, _) => 0,
        (AF_INET | AF_INET6, Kind::Stream) => IPPROTO_TCP,
        (AF_INET | AF_INET6, _) if protocol == 0 => IPPROTO_UDP,
        _ => protocol,
    };
    let socket = {
        let creds = cx.task.creds();
        let place = (cx.kernel(), &cx.task.net());
        Socket::new(place, domain, kind, protocol, (creds.euid, creds.egid))
    };
    if domain == AF_NETLINK {
        // getsockopt(SO_TYPE) tells the two apart.
        socket.state.lock().options.insert((SOL_SOCKET, SO_TYPE), base);
    }
    Ok(socket)
}

/// socket(2)
pub fn socket(cx: &mut Cx, domain: SocketFamily, kind: SocketType, protocol: SocketProtocol) -> SysResult {
    let (base, flags) = kind_of(kind)?;
    let socket = make(cx, domain.bits(), base, protocol.bits())?;
    install_file(cx, description(socket, flags), flags & SOCK_CLOEXEC != 0).map(|fd| fd as u64)
}

/// socketpair(2)
pub fn socketpair(
    cx: &mut Cx,
    domain: SocketFamily,
    kind: SocketType,
    protocol: SocketProtocol,
    sv: Out<FdPair>,
) -> SysResult {
    let (base, flags) = kind_of(kind)?;
    if domain.bits() != AF_UNIX {
        make(cx, domain.bits(), base, protocol.bits())?;
        return Err(Errno::EOPNOTSUPP.into());
    }
    let a = make(cx, AF_UNIX, base, protocol.bits())?;
    let b = make(cx, AF_UNIX, base, protocol.bits())?;
    Socket::join(&a, &b, cx.task);
    let cloexec = flags & SOCK_CLOEXEC != 0;
    let (a, b) = (description(a, flags), description(b, flags));
    let first = install_file(cx, a, cloexec)?;
    let result = install_file(cx, b, cloexec).and_then(|second| {
        let pair = FdPair { fds: [first, second] };
        cx.write_value(sv.addr(), &pair).inspect_err(|_| drop(cx.task.files().remove(second)))
    });
    if let Err(fail) = result {
        drop(cx.task.files().remove(first));
        return Err(fail);
    }
    Ok(0)
}

/// Reads the bytes of an address of the guest.
///
/// # Errors
/// EINVAL: no length of an address; EFAULT.
pub(super) fn addr_bytes(cx: &mut Cx, addr: u64, len: i32) -> SysResult<Vec<u8>> {
    let len = usize::try_from(len).ok().filter(|l| *l <= 128).ok_or(Errno::EINVAL)?;
    let mut bytes = vec![0u8; len];
    cx.copy_in(addr, &mut bytes)?;
    Ok(bytes)
}

/// Reads an address of the guest.
fn read_addr(cx: &mut Cx, socket: &Socket, addr: u64, len: i32, used: Use) -> SysResult<Addr> {
    Addr::parse(&addr_bytes(cx, addr, len)?, socket, used)
}

/// Writes an address, cut to the room the guest has, and its whole length.
pub(super) fn write_addr(cx: &mut Cx, of: &Addr, family: i32, addr: u64, len_at: u64) -> SysResult<()> {
    if addr == 0 {
        return Ok(());
    }
    let room: i32 = cx.read_value(len_at)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    let bytes = of.bytes(family);
    cx.copy_out(addr, bytes.get(..room.min(bytes.len())).unwrap_or_default())?;
    cx.write_value(len_at, &(bytes.len() as i32))
}

/// Who has this address. None: nobody does.
pub(super) fn resolve(cx: &Cx, socket: &Socket, to: &Addr) -> SysResult<Option<Arc<Socket>>> {
    socket.check_reach(to)?;
    let net = &socket.net;
    match to {
        Addr::Abstract(name) => Ok(net.find_abstract(name)),
        Addr::Path(path) => {
            let place = cx.kernel().vfs.lookup(cx.task, AT_FDCWD, path, true)?;
            if place.inode().kind() != S_IFSOCK {
                return Err(Errno::ECONNREFUSED.into());
            }
            let attr = place.inode().attr()?;
            Ok(net.find_path((attr.dev, attr.ino)))
        }
        // A datagram's receiver depends on its sender too, and is looked up when it is sent.
        Addr::Ip(_) if socket.kind == Kind::Dgram => Ok(None),
        Addr::Ip(at) => Ok(net.find_ip(socket.protocol, *at, None)),
        Addr::Netlink(..) => Ok(None),
        Addr::Unnamed | Addr::None => Err(Errno::EINVAL.into()),
    }
}

/// bind(2)
pub fn bind(cx: &mut Cx, sockfd: Fd, addr: InSockaddr, addrlen: i32) -> SysResult {
    let (_, socket) = get(cx, sockfd)?;
    let to = read_addr(cx, &socket, addr.addr(), addrlen, Use::Bind)?;
    if let Addr::Netlink(port, groups) = to {
        return socket.bind_netlink(cx, port, groups).map(|()| 0);
    }
    let bound = socket.state.lock().local.is_bound();
    if bound {
        return Err(Errno::EINVAL.into());
    }
    let local = match to {
        Addr::Abstract(name) => {
            socket.net.bind_abstract(&name, &socket)?;
            Addr::Abstract(name)
        }
        Addr::Unnamed => Addr::Abstract(socket.net.autobind(&socket)),
        Addr::Path(path) => {
            let mode = 0o777 & !*cx.task.fs().umask.lock();
            let at = At { dirfd: AT_FDCWD, path: &path };
            let made = cx.kernel().vfs.make(cx.task, at, NewKind::Special(S_IFSOCK, 0), mode);
            let place = match made {
                Err(Fail::Error(Errno::EEXIST)) => return Err(Errno::EADDRINUSE.into()),
                other => other?,
            };
            let attr = place.inode().attr()?;
            socket.net.bind_path((attr.dev, attr.ino), &socket);
            Addr::Path(path)
        }
        Addr::Ip(at) => {
            let creds = cx.task.creds();
            if (1..UNPRIVILEGED).contains(&at.port())
                && !creds.capable_in(&socket.net.owner, cap::NET_BIND_SERVICE)
            {
                return Err(Errno::EACCES.into());
            }
            let reuse = socket.option(SO_REUSEADDR) || socket.option(SO_REUSEPORT);
            let bound = socket.net.bind_ip(at, &socket, reuse)?;
            socket.state.lock().chosen = (!at.ip().is_unspecified(), at.port() != 0);
            Addr::Ip(bound)
        }
        Addr::None | Addr::Netlink(..) => return Err(Errno::EINVAL.into()),
    };
    socket.state.lock().local = local;
    Ok(0)
}

/// listen(2)
pub fn listen(cx: &mut Cx, sockfd: Fd, backlog: i32) -> SysResult {
    let (_, socket) = get(cx, sockfd)?;
    socket.listen(cx, backlog).map(|()| 0)
}

/// Whether the bytes of an address begin with AF_UNSPEC.
pub(super) fn is_unspec(bytes: &[u8]) -> bool {
    bytes.get(..2) == Some(&[0, 0])
}

/// connect(2) of TCP, but for AF_UNSPEC. Without an address: how an attempt under way ends.
///
/// # Errors
/// As [`Socket::connect_to`], which come before those of the address, and those; EINVAL without one.
pub(super) fn connect_tcp(
    cx: &mut Cx,
    socket: &Arc<Socket>,
    addr: Option<&[u8]>,
    nonblocking: bool,
) -> SysResult<()> {
    if addr.is_some_and(|addr| addr.len() < 2) {
        return Err(Errno::EINVAL.into());
    }
    let (found, to) = if socket.is_idle() {
        let to = Addr::parse(addr.ok_or(Errno::EINVAL)?, socket, Use::Connect)?;
        (resolve(cx, socket, &to)?, to)
    } else {
        (None, Addr::None)
    };
    socket.connect_to(cx, found, to, nonblocking)
}

/// connect(2)
pub fn connect(cx: &mut Cx, sockfd: Fd, addr: InSockaddr, addrlen: i32) -> SysResult {
    let (file, socket) = get(cx, sockfd)?;
    let bytes = addr_bytes(cx, addr.addr(), addrlen)?;
    if matches!((socket.family, socket.kind), (AF_INET | AF_INET6, Kind::Stream)) && !is_unspec(&bytes) {
        return connect_tcp(cx, &socket, Some(&bytes), file.nonblocking()).map(|()| 0);
    }
    let to = Addr::parse(&bytes, &socket, Use::Connect)?;
    if to == Addr::None {
        match (socket.family, socket.kind) {
            (AF_NETLINK, _) => socket.disconnect_netlink(),
            (AF_UNIX, Kind::Dgram) => socket.set_unix_peer(None)?,
            (_, Kind::Dgram) => socket.set_peer(None)?,
            (AF_UNIX, _) => return Err(Errno::EINVAL.into()),
            _ => socket.disconnect(),
        }
        return Ok(0);
    }
    if socket.family == AF_NETLINK {
        return socket.connect_netlink(cx, to).map(|()| 0);
    }
    let found = resolve(cx, &socket, &to)?;
    if socket.kind == Kind::Dgram {
        if socket.family == AF_UNIX {
            let peer = found.ok_or(Errno::ECONNREFUSED)?;
            return socket.set_unix_peer(Some((to, peer))).map(|()| 0);
        }
        socket.set_peer(Some(to))?;
        return Ok(0);
    }
    socket.connect_to(cx, found, to, file.nonblocking()).map(|()| 0)
}

/// accept(2)
pub fn accept(cx: &mut Cx, sockfd: Fd, addr: OutSockaddr, addrlen: InOut<i32>) -> SysResult {
    accept4(cx, sockfd, addr, addrlen, SocketType(0))
}

/// accept4(2)
pub fn accept4(
    cx: &mut Cx,
    sockfd: Fd,
    addr: OutSockaddr,
    addrlen: InOut<i32>,
    flags: SocketType,
) -> SysResult {
    if flags.unknown(SOCK_NONBLOCK | SOCK_CLOEXEC) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (file, socket) = get(cx, sockfd)?;
    // A connection that finds no descriptor stays in the queue.
    cx.task.files().check_room(cx.task.process.limit(RLIMIT_NOFILE))?;
    let (made, remote) = socket.accept(cx, file.nonblocking())?;
    let new = description(made, flags.bits());
    write_addr(cx, &remote, socket.family, addr.addr(), addrlen.addr())?;
    install_file(cx, new, flags.has(SOCK_CLOEXEC)).map(|fd| fd as u64)
}

/// shutdown(2)
pub fn shutdown(cx: &mut Cx, sockfd: Fd, how: ShutdownHow) -> SysResult {
    let (_, socket) = get(cx, sockfd)?;
    socket.shutdown(how.bits()).map(|()| 0)
}

/// getsockname(2)
pub fn getsockname(cx: &mut Cx, sockfd: Fd, addr: OutSockaddr, addrlen: InOut<i32>) -> SysResult {
    let (_, socket) = get(cx, sockfd)?;
    let local = socket.state.lock().local.clone();
    write_addr(cx, &local, socket.family, addr.addr(), addrlen.addr()).map(|()| 0)
}

/// getpeername(2)
pub fn getpeername(cx: &mut Cx, sockfd: Fd, addr: OutSockaddr, addrlen: InOut<i32>) -> SysResult {
    let (_, socket) = get(cx, sockfd)?;
    let remote = match socket.remote() {
        None if socket.family == AF_NETLINK => Addr::Netlink(0, 0),
        other => other.ok_or(Errno::ENOTCONN)?,
    };
    write_addr(cx, &remote, socket.family, addr.addr(), addrlen.addr()).map(|()| 0)
}

/// setsockopt(2)
pub fn setsockopt(
    cx: &mut Cx,
    sockfd: Fd,
    level: SockoptLevel,
    optname: SockoptName,
    optval: InBuf,
    optlen: i32,
) -> SysResult {
    let (_, socket) = get(cx, sockfd)?;
    crate::net::option::set(cx, &socket, level.bits(), optname.bits(), optval.addr(), optlen).map(|()| 0)
}

/// getsockopt(2)
pub fn getsockopt(
    cx: &mut Cx,
    sockfd: Fd,
    level: SockoptLevel,
    optname: SockoptName,
    optval: OutVar,
    optlen: InOut<i32>,
) -> SysResult {
    let (_, socket) = get(cx, sockfd)?;
    let room: i32 = cx.read_value(optlen.addr())?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    let value = crate::net::option::get(cx, &socket, level.bits(), optname.bits(), room)?;
    if (level.bits(), optname.bits()) == (SOL_SOCKET, SO_PEERGROUPS) && value.len() > room {
        // A list is not cut: how long it is is told.
        cx.write_value(optlen.addr(), &i32::try_from(value.len()).unwrap_or(i32::MAX))?;
        return Err(Errno::ERANGE.into());
    }
    let part = value.get(..room.min(value.len())).unwrap_or_default();
    cx.copy_out(optval.addr(), part)?;
    // Of this list the whole length is told.
    let whole = (level.bits(), optname.bits()) == (SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS);
    let len = if whole { value.len() } else { part.len() };
    cx.write_value(optlen.addr(), &(len as i32))?;
    Ok(0)
}
