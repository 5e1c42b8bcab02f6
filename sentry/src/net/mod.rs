//! Sockets inside the sandbox: AF_UNIX, and TCP and UDP over loopback, all in memory. No packet leaves: an address
//! outside is a denial.
//!
//! - [`addr`]: addresses and their ABI form.
//! - [`socket`]: one socket; sending puts into the receiver's inbox.
//! - [`control`]: control messages (SCM_RIGHTS, SCM_CREDENTIALS).
//!
//! Locks: the names, then one socket; never two sockets at once.

pub mod addr;
pub mod control;
pub mod option;
pub mod socket;

use crate::fail::SysResult;
use crate::sync::{Level, Lock};
use socket::{Kind, Socket};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use syscall_table::errno::Errno;

/// First port that is chosen for a socket without one (net.ipv4.ip_local_port_range).
const FIRST_PORT: u16 = 32768;
const LAST_PORT: u16 = 60999;

/// The sockets bound to one port, with their addresses.
type Bound = Vec<(IpAddr, Weak<Socket>)>;

#[derive(Default)]
struct Names {
    abstracts: HashMap<Vec<u8>, Weak<Socket>>,
    /// By device and inode.
    paths: HashMap<(u64, u64), Weak<Socket>>,
    ports: HashMap<(bool, u16), Bound>,
    next: u16,
}

/// Bound names of one sandbox.
pub struct Net {
    names: Lock<Names>,
}

impl Default for Net {
    fn default() -> Self {
        Net { names: Lock::new(Level::Inode, Names { next: FIRST_PORT, ..Names::default() }) }
    }
}

fn covers(bound: IpAddr, wanted: IpAddr) -> bool {
    bound.is_unspecified() && (bound.is_ipv6() || wanted.is_ipv4())
        || bound.to_canonical() == wanted.to_canonical()
}

impl Net {
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
        let mut names = self.names.lock();
        names.paths.retain(|_, s| s.strong_count() > 0);
        names.paths.insert(id, Arc::downgrade(socket));
    }

    /// The socket of a socket file.
    pub fn find_path(&self, id: (u64, u64)) -> Option<Arc<Socket>> {
        self.names.lock().paths.get(&id).and_then(Weak::upgrade)
    }

    /// Binds an address; port 0 is replaced by a free one.
    ///
    /// # Errors
    /// EADDRINUSE; EADDRNOTAVAIL for an address that is not the sandbox's.
    pub fn bind_ip(&self, mut to: SocketAddr, socket: &Arc<Socket>, reuse: bool) -> SysResult<SocketAddr> {
        if !addr::is_local(to.ip()) {
            return Err(Errno::EADDRNOTAVAIL.into());
        }
        let stream = socket.kind == Kind::Stream;
        let mut names = self.names.lock();
        if to.port() == 0 {
            let mut tries = LAST_PORT - FIRST_PORT;
            loop {
                let port = names.next;
                names.next = if port >= LAST_PORT { FIRST_PORT } else { port + 1 };
                let list = names.ports.entry((stream, port)).or_default();
                list.retain(|(_, s)| s.strong_count() > 0);
                if list.is_empty() {
                    to.set_port(port);
                    break;
                }
                tries = tries.checked_sub(1).ok_or(Errno::EADDRINUSE)?;
            }
        }
        let list = names.ports.entry((stream, to.port())).or_default();
        list.retain(|(_, s)| s.strong_count() > 0);
        for (ip, other) in list.iter() {
            if !covers(*ip, to.ip()) && !covers(to.ip(), *ip) {
                continue;
            }
            let shared = reuse && other.upgrade().is_some_and(|o| o.shares_port());
            if !shared {
                return Err(Errno::EADDRINUSE.into());
            }
        }
        list.push((to.ip(), Arc::downgrade(socket)));
        Ok(to)
    }

    /// The socket that a segment or datagram to this address reaches; `listening`: of streams, only those that listen.
    pub fn find_ip(&self, stream: bool, to: SocketAddr) -> Option<Arc<Socket>> {
        let found: Vec<_> = {
            let names = self.names.lock();
            let list = names.ports.get(&(stream, to.port()))?;
            list.iter().filter(|(ip, _)| covers(*ip, to.ip())).filter_map(|(_, s)| s.upgrade()).collect()
        };
        found.into_iter().find(|s| !stream || s.is_listening())
    }
}
