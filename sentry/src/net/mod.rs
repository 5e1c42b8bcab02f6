//! Sockets inside the sandbox: AF_UNIX, and TCP and UDP over loopback, all in memory. No packet leaves: an address
//! outside is a denial.
//!
//! - [`addr`]: addresses and their ABI form.
//! - [`socket`]: one socket; [`connect`] brings two together; [`transfer`] puts what is sent into the receiver's inbox.
//! - [`urgent`]: bytes out of band.
//! - [`control`]: control messages (SCM_RIGHTS, SCM_CREDENTIALS); [`collect`]: descriptors that nobody can receive any more.
//! - [`iface`]: the one interface of a namespace; [`netlink`], [`route`]: questions about it, its changes, and lists of sockets.
//! - [`knock`]: connections that a listener has no place for yet; [`defer`]: those that are accepted when something came; [`errqueue`]: errors of datagrams.
//! - [`echo`]: answers to ping.
//! - [`multicast`]: groups, and what is sent to them.
//! - [`listing`]: which sockets there are.
//!
//! Locks: choosing a port of AF_NETLINK, the names, then one socket; two at once only where [`connect`] brings them
//! together, in the order of their addresses.

pub mod addr;
pub mod collect;
mod connect;
pub mod control;
mod defer;
mod echo;
mod errqueue;
pub mod iface;
mod knock;
pub mod listing;
pub mod multicast;
pub mod netlink;
pub mod option;
mod optspec;
mod route;
pub mod socket;
pub mod transfer;
mod urgent;

use crate::fail::{Denial, Fail, SysResult};
use crate::ipc::sysv::Counter;
use crate::sync::{Guard, Level, Lock};
use crate::task::userns::UserNs;
use addr::Addr;
use collect::Flight;
use iface::Lo;
use socket::{Kind, Socket};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use syscall_table::abi::SO_REUSEPORT;
use syscall_table::errno::Errno;

/// First port that is chosen for a socket without one (net.ipv4.ip_local_port_range).
const FIRST_PORT: u16 = 32768;
const LAST_PORT: u16 = 60999;
/// Most network namespaces.
const NAMESPACES: usize = 4096;

/// One socket bound to a port.
struct Bound {
    ip: IpAddr,
    /// IPV6_V6ONLY: the wildcard of IPv6 leaves IPv4 alone (ipv6(7)).
    v6_only: bool,
    socket: Weak<Socket>,
}

impl Bound {
    /// Whether what is sent to `wanted` may reach it.
    fn covers(&self, wanted: IpAddr) -> bool {
        self.ip.is_unspecified() && (self.ip.is_ipv6() && !self.v6_only || self.ip.is_ipv4() == is_v4(wanted))
            || self.ip.to_canonical() == wanted.to_canonical()
    }

    /// Whether both could be meant by one address.
    fn conflicts(&self, other: &Bound) -> bool {
        self.covers(other.ip) || other.covers(self.ip)
    }
}

fn is_v4(ip: IpAddr) -> bool {
    ip.to_canonical().is_ipv4()
}

#[derive(Default)]
struct Names {
    abstracts: HashMap<Vec<u8>, Weak<Socket>>,
    /// By protocol and port.
    ports: HashMap<(i32, u16), Vec<Bound>>,
    /// Turns among sockets with SO_REUSEPORT.
    turn: usize,
    next: u16,
}

/// The sockets that exist. Ended ones are forgotten when the list has doubled.
#[derive(Default)]
struct All {
    list: Vec<Weak<Socket>>,
    live: usize,
    /// The last port number of an AF_NETLINK socket that was chosen.
    port: u32,
}

/// Sockets bound to files, by device and inode: they are reached from every network namespace.
struct Paths {
    sockets: Lock<HashMap<(u64, u64), Weak<Socket>>>,
    /// How many namespaces there are beside the sandbox's.
    made: Counter,
    /// Descriptors on their way.
    flight: Arc<Flight>,
}

/// A network namespace (network_namespaces(7)): an interface, ports, abstract names, and the sockets that have them.
pub struct Net {
    /// Number in /proc/PID/ns/net.
    pub ino: u64,
    /// Whose rights count in it.
    pub owner: Arc<UserNs>,
    /// The sandbox's: what cannot be reached from it is outside, and a denial.
    first: bool,
    lo: Lock<Arc<Lo>>,
    names: Lock<Names>,
    all: Lock<All>,
    choosing: Lock<()>,
    paths: Arc<Paths>,
}

impl Drop for Net {
    fn drop(&mut self) {
        if !self.first {
            self.paths.made.give(1);
        }
    }
}

impl Net {
    /// The sandbox's.
    pub fn first() -> Net {
        let paths = Arc::new(Paths {
            sockets: Lock::new(Level::Inode, HashMap::new()),
            made: Counter::new(),
            flight: Arc::default(),
        });
        Net::with(4_026_531_833, UserNs::first(), Lo::up(), paths)
    }

    /// A new one: its interface is down. None: there are too many.
    pub fn fresh(&self, ino: u64, owner: Arc<UserNs>) -> Option<Net> {
        if !self.paths.made.take(1, NAMESPACES) {
            return None;
        }
        Some(Net::with(ino, owner, Lo::down(), self.paths.clone()))
    }

    fn with(ino: u64, owner: Arc<UserNs>, lo: Lo, paths: Arc<Paths>) -> Net {
        Net {
            ino,
            first: owner.is_first() && lo.up,
            owner,
            lo: Lock::new(Level::Field, Arc::new(lo)),
            names: Lock::new(Level::Inode, Names { next: FIRST_PORT, ..Names::default() }),
            all: Lock::new(Level::Inode, All::default()),
            choosing: Lock::new(Level::Dir, ()),
            paths,
        }
    }

    /// Descriptors on their way, in all namespaces.
    pub fn flight(&self) -> &Arc<Flight> {
        &self.paths.flight
    }

    /// Its interface now.
    pub fn lo(&self) -> Arc<Lo> {
        self.lo.lock().clone()
    }

    /// Changes its interface.
    pub fn change_lo<T>(&self, how: impl FnOnce(&mut Lo) -> T) -> T {
        how(Arc::make_mut(&mut self.lo.lock()))
    }

    /// Whether it has this address.
    pub fn has(&self, ip: IpAddr) -> bool {
        self.lo.lock().has(ip)
    }

    /// Refuses an address that cannot be reached.
    ///
    /// # Errors
    /// The denial of an address outside of the sandbox; ENETUNREACH or EADDRNOTAVAIL within a namespace of a guest's
    /// own, or with the interface down.
    pub fn reachable(&self, to: &SocketAddr) -> SysResult<()> {
        let ip = to.ip().to_canonical();
        let lo = self.lo.lock();
        if lo.has(ip) || ip.is_unspecified() && lo.speaks(ip) {
            return Ok(());
        }
        let none = ip.is_ipv6() && !lo.speaks(ip);
        drop(lo);
        if !self.first || ip.is_loopback() || ip.is_unspecified() {
            return Err(if none { Errno::EADDRNOTAVAIL } else { Errno::ENETUNREACH }.into());
        }
        Err(Fail::Denial(Box::new(Denial {
            errno: Errno::ENETUNREACH,
            what: "connect",
            object: to.to_string(),
            rule: "network closed".into(),
            allow_with: String::new(),
        })))
    }

    /// Notes a new socket, for [`Net::sockets`].
    fn note(&self, socket: &Arc<Socket>) {
        let mut all = self.all.lock();
        if all.list.len() > all.live.saturating_mul(2).saturating_add(64) {
            all.list.retain(|s| s.strong_count() > 0);
            all.live = all.list.len();
        }
        all.list.push(Arc::downgrade(socket));
    }

    /// All sockets, in the order of their making.
    pub fn sockets(&self) -> Vec<Arc<Socket>> {
        self.all.lock().list.iter().filter_map(Weak::upgrade).collect()
    }

    /// Held while an AF_NETLINK socket gets a port number.
    fn choosing(&self) -> Guard<'_, ()> {
        self.choosing.lock()
    }

    /// A port number for an AF_NETLINK socket: the process's id first, as Linux does, then others that no process has.
    fn free_port(&self, pid: i32, taken: &[u32]) -> u32 {
        let own = u32::try_from(pid).unwrap_or(0);
        let mut all = self.all.lock();
        if own != 0 && !taken.contains(&own) {
            return own;
        }
        loop {
            all.port = all.port.wrapping_sub(1) | 0x8000_0000;
            if !taken.contains(&all.port) {
                return all.port;
            }
        }
    }

    /// Binds an abstract name.
    ///
    /// # Errors
    /// EADDRINUSE.
    pub fn bind_abstract(&self, name: &[u8], socket: &Arc<Socket>) -> SysResult<()> {
        let mut names = self.names.lock();
        if names.abstracts.get(name).is_some_and(|s| s.strong_count() > 0) {
            return Err(Errno::EADDRINUSE.into());
        }
        names.abstracts.insert(name.to_vec(), Arc::downgrade(socket));
        Ok(())
    }

    /// Chooses an abstract name (autobind).
    pub fn autobind(&self, socket: &Arc<Socket>) -> Vec<u8> {
        let mut names = self.names.lock();
        let mut n = 0u32;
        loop {
            let name = format!("{n:05x}").into_bytes();
            if names.abstracts.get(&name).is_none_or(|s| s.strong_count() == 0) {
                names.abstracts.insert(name.clone(), Arc::downgrade(socket));
                return name;
            }
            n += 1;
        }
    }

    /// The socket of an abstract name.
    pub fn find_abstract(&self, name: &[u8]) -> Option<Arc<Socket>> {
        self.names.lock().abstracts.get(name).and_then(Weak::upgrade)
    }

    /// Binds a socket file.
    pub fn bind_path(&self, id: (u64, u64), socket: &Arc<Socket>) {
        let mut paths = self.paths.sockets.lock();
        if paths.len() >= 64 && paths.len().is_power_of_two() {
            paths.retain(|_, s| s.strong_count() > 0);
        }
        paths.insert(id, Arc::downgrade(socket));
    }

    /// Forgets the name of a socket that is closed.
    pub(super) fn unbind(&self, name: &Addr, socket: &Socket) {
        let is = |known: &Weak<Socket>| std::ptr::eq(known.as_ptr(), socket);
        let mut names = self.names.lock();
        match name {
            Addr::Abstract(name) if names.abstracts.get(name).is_some_and(is) => {
                names.abstracts.remove(name);
            }
            Addr::Ip(at) => {
                let key = (socket.protocol, at.port());
                let Some(list) = names.ports.get_mut(&key) else { return };
                list.retain(|bound| !is(&bound.socket) && bound.socket.strong_count() > 0);
                if list.is_empty() {
                    names.ports.remove(&key);
                }
            }
            _ => {}
        }
    }

    /// Gives a bound socket another address, the port stays.
    pub(super) fn rename(&self, socket: &Socket, to: SocketAddr) {
        let mut names = self.names.lock();
        let Some(list) = names.ports.get_mut(&(socket.protocol, to.port())) else { return };
        if let Some(bound) = list.iter_mut().find(|b| std::ptr::eq(b.socket.as_ptr(), socket)) {
            bound.ip = to.ip();
        }
    }

    /// The socket of a socket file.
    pub fn find_path(&self, id: (u64, u64)) -> Option<Arc<Socket>> {
        self.paths.sockets.lock().get(&id).and_then(Weak::upgrade)
    }

    /// Binds an address; port 0 is replaced by a free one.
    ///
    /// # Errors
    /// EADDRINUSE; EADDRNOTAVAIL for an address that is not the sandbox's.
    pub fn bind_ip(&self, mut to: SocketAddr, socket: &Arc<Socket>, reuse: bool) -> SysResult<SocketAddr> {
        if !self.lo.lock().can_bind(to.ip()) {
            return Err(Errno::EADDRNOTAVAIL.into());
        }
        let protocol = socket.protocol;
        let v6_only = socket.v6_only();
        let mut names = self.names.lock();
        if to.port() == 0 {
            let mut tries = LAST_PORT - FIRST_PORT;
            loop {
                let port = names.next;
                names.next = if port >= LAST_PORT { FIRST_PORT } else { port + 1 };
                let list = names.ports.get_mut(&(protocol, port));
                if list.is_none_or(|list| {
                    list.retain(|b| b.socket.strong_count() > 0);
                    list.is_empty()
                }) {
                    to.set_port(port);
                    break;
                }
                tries = tries.checked_sub(1).ok_or(Errno::EADDRINUSE)?;
            }
        }
        let list = names.ports.entry((protocol, to.port())).or_default();
        list.retain(|b| b.socket.strong_count() > 0);
        let new = Bound { ip: to.ip(), v6_only: v6_only && to.is_ipv6(), socket: Arc::downgrade(socket) };
        for other in list.iter() {
            if !other.conflicts(&new) {
                continue;
            }
            let shared = reuse && other.socket.upgrade().is_some_and(|o| o.shares_port());
            if !shared {
                return Err(Errno::EADDRINUSE.into());
            }
        }
        list.push(new);
        Ok(to)
    }

    /// The socket that a segment or datagram to this address reaches, from `from` (a connected datagram socket hears its
    /// peer alone, and before others): the one with the closest address, of several with
    /// SO_REUSEPORT each in turn; of streams, only those that listen.
    pub fn find_ip(&self, protocol: i32, to: SocketAddr, from: Option<SocketAddr>) -> Option<Arc<Socket>> {
        let (found, turn): (Vec<_>, usize) = {
            let mut names = self.names.lock();
            names.turn = names.turn.wrapping_add(1);
            let list = names.ports.get(&(protocol, to.port()))?;
            let exact = |b: &Bound| b.ip.to_canonical() == to.ip().to_canonical();
            let reached = list.iter().filter(|b| b.covers(to.ip()));
            (reached.filter_map(|b| Some((b.socket.upgrade()?, exact(b)))).collect(), names.turn)
        };
        // How near a socket is: 2 for the peer, 1 for the exact address.
        let near = |(s, exact): &(Arc<Socket>, bool)| match s.kind {
            Kind::Stream => s.is_listening().then_some(u8::from(*exact)),
            _ => match s.remote() {
                Some(Addr::Ip(peer)) => {
                    from.is_some_and(|f| addr::same(&f, &peer)).then_some(2 + u8::from(*exact))
                }
                _ => Some(u8::from(*exact)),
            },
        };
        let found: Vec<_> = found.iter().filter_map(|f| Some((&f.0, near(f)?))).collect();
        for wanted in [3, 2, 1, 0] {
            let mut of: Vec<_> = found.iter().filter(|(_, n)| *n == wanted).map(|(s, _)| *s).collect();
            if let Some(first) = of.first() {
                if first.option(SO_REUSEPORT) {
                    let len = of.len().max(1);
                    of.rotate_left(turn % len);
                }
                return of.first().map(|s| (*s).clone());
            }
        }
        None
    }
}
