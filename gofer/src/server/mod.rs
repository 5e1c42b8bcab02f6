//! The file server: answers requests against held descriptors.
//!
//! One [`Server`] has all state of a connection; each lane's thread calls [`Server::serve_lane`]. Locks: the node
//! table, the directory streams, the known devices, the watches and the owner oracle each have one, and none is held while
//! another is taken or while the host works on a request.

mod attr;
mod change;
mod create;
mod dir;
mod nodes;
mod open;
mod owner;
#[cfg(test)]
mod tests;
mod walk;
mod watch;
mod xattr;

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, OFlags, memfd_create};
use rustix::io::Errno;

use crate::codec;
use crate::hidden::{Policy, Position, RuleId};
use crate::oracle::Ids;
use crate::protocol::{Attached, Attr, Bytes, Fault, Request, Response, Step};
use crate::wire::{packet_buffer, recv_packet, send_packet};

use attr::Devices;
use dir::Streams;
use nodes::{Node, Nodes};
pub(crate) use open::SelfFds;
use watch::Watches;

/// A mount, as the server sees it.
pub(crate) struct Export {
    /// `O_PATH` descriptor of the root.
    pub(crate) root: OwnedFd,
    /// Whether changes are let through.
    pub(crate) writable: bool,
    /// Where the root stands among hidden paths.
    pub(crate) position: Position,
    /// Asked for by name though a rule hides it: inodes are not compared with hidden ones.
    pub(crate) exposed: bool,
}

/// What a server starts with.
pub(crate) struct Setup {
    pub(crate) exports: Vec<Export>,
    pub(crate) policy: Policy,
    pub(crate) self_fds: SelfFds,
    /// Where owners come from that this namespace does not map; `None` when it maps all.
    pub(crate) ids: Option<Ids>,
    /// The most nodes.
    pub(crate) max_nodes: usize,
}

/// All state of a connection.
pub(crate) struct Server {
    exports: Vec<Export>,
    policy: Policy,
    self_fds: SelfFds,
    ids: Option<Ids>,
    nodes: Nodes,
    streams: Streams,
    devices: Devices,
    watches: Watches,
}

/// A response and the descriptor that goes with it.
type Answer = Result<(Response, Option<OwnedFd>), Failure>;

/// Why a request fails; becomes a [`Fault`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    Errno(Errno),
    Hidden(RuleId),
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<RuleId> for Failure {
    fn from(rule: RuleId) -> Self {
        Self::Hidden(rule)
    }
}

impl Server {
    pub(crate) fn new(setup: Setup) -> Self {
        let Setup { exports, policy, self_fds, ids, max_nodes } = setup;
        let (nodes, streams, devices) = (Nodes::new(max_nodes), Streams::default(), Devices::default());
        let watches = Watches::default();
        Self { exports, policy, self_fds, ids, nodes, streams, devices, watches }
    }

    /// Answers requests until the other end closes or breaks the protocol.
    pub(crate) fn serve_lane(&self, socket: &OwnedFd) {
        let mut buffer = packet_buffer();
        let mut out = Vec::new();
        let mut fds = Vec::new();
        loop {
            let length = match recv_packet(socket, &mut buffer, &mut fds) {
                Ok(length) if length > 0 && fds.is_empty() => length,
                _ => return,
            };
            let Some(Ok(request)) = buffer.get(..length).map(codec::decode) else { return };
            let (response, fds) = self.answer(&request);
            let encoded = codec::encode(&response, &mut out).or_else(|_| {
                codec::encode(&Response::Fault(Fault::Errno(Errno::MSGSIZE.raw_os_error())), &mut out)
            });
            let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
            if encoded.is_err() || send_packet(socket, &out, &fds).is_err() {
                return;
            }
        }
    }

    /// The answer to one request.
    pub(crate) fn answer(&self, request: &Request) -> (Response, Vec<OwnedFd>) {
        let answer = match request {
            Request::Memory => self.memory(),
            Request::OpenMany { dir, names } => self.open_many(*dir, names),
            other => self.dispatch(other).map(|(response, fd)| (response, fd.into_iter().collect())),
        };
        answer.unwrap_or_else(|failure| (Response::Fault(self.fault(failure)), Vec::new()))
    }

    fn memory(&self) -> Result<(Response, Vec<OwnedFd>), Failure> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let both = memfd_create(c"lazaret", flags)?;
        let read_only = self.self_fds.reopen(&both, OFlags::RDONLY)?;
        Ok((Response::Memory, vec![both, read_only]))
    }

    fn dispatch(&self, request: &Request) -> Answer {
        match request {
            Request::Attach { mount } => self.attach(*mount),
            Request::Walk { dir, names, open } => self.walk(*dir, names, *open),
            Request::GetAttr { node } => self.getattr(*node),
            Request::SetAttr { node, set } => self.setattr(*node, set),
            Request::Open { node, flags } => self.open(*node, *flags),
            Request::Create { dir, name, new, flags } => self.create(*dir, name, *new, *flags),
            Request::TmpFile { dir, new, flags } => self.tmpfile(*dir, *new, *flags),
            Request::ReadDir { dir, cursor, attrs } => self.read_dir(*dir, *cursor, *attrs),
            Request::ListMany { dir, names } => self.list_many(*dir, names),
            Request::HaveXattrs { dir, names } => self.have_xattrs(*dir, names),
            Request::AreHidden { dir, names } => self.are_hidden(*dir, names),
            Request::Readlink { node } => self.readlink(*node),
            Request::Symlink { dir, name, target, owner } => self.symlink(*dir, name, target, *owner),
            Request::Mkdir { dir, name, new } => self.mkdir(*dir, name, *new),
            Request::Mknod { dir, name, new, kind } => self.mknod(*dir, name, *new, *kind),
            Request::Link { node, dir, name } => self.link(*node, *dir, name),
            Request::Rename { from, from_name, to, to_name, mode } => {
                self.rename((*from, from_name), (*to, to_name), *mode)
            }
            Request::Unlink { dir, name } => self.unlink(*dir, name),
            Request::Rmdir { dir, name } => self.rmdir(*dir, name),
            Request::StatFs { node } => self.statfs(*node),
            Request::GetXattr { node, name } => self.getxattr(*node, name),
            Request::SetXattr { node, name, value, mode } => self.setxattr(*node, name, value, *mode),
            Request::ListXattr { node } => self.listxattr(*node),
            Request::RemoveXattr { node, name } => self.removexattr(*node, name),
            Request::Fsync { node, data_only } => self.fsync(*node, *data_only),
            Request::SyncFs { node } => self.syncfs(*node),
            Request::Watch { node, events } => self.watch(*node, *events),
            Request::Unwatch { watch } => self.unwatch(*watch),
            Request::Forget { nodes } => self.forget(nodes),
            // Answered with several descriptors, before.
            Request::Memory | Request::OpenMany { .. } => Err(Errno::INVAL.into()),
        }
    }

    fn attach(&self, mount: u32) -> Answer {
        let export = self.exports.get(mount as usize).ok_or(Errno::NODEV)?;
        let fd = rustix::io::fcntl_dupfd_cloexec(&export.root, 0)?;
        let attr = self.with_owner(&fd, self.listed_attr(&fd)?);
        let node = self.nodes.add(Node::new(fd, mount, &attr, export.position.clone()))?;
        let root = Step { node, attr, link: None };
        Ok((Response::Attached(Attached { root, writable: export.writable }), None))
    }

    fn forget(&self, ids: &[crate::protocol::NodeId]) -> Answer {
        if ids.len() > crate::protocol::MAX_FORGET {
            return Err(Errno::TOOBIG.into());
        }
        self.streams.forget(ids);
        self.nodes.remove(ids);
        done()
    }

    fn fault(&self, failure: Failure) -> Fault {
        match failure {
            Failure::Errno(errno) => Fault::Errno(errno.raw_os_error()),
            Failure::Hidden(rule) => Fault::Denied(self.policy.name(rule).to_string()),
        }
    }

    /// The export of a node.
    fn export(&self, node: &Node) -> Result<&Export, Errno> {
        self.exports.get(node.mount as usize).ok_or(Errno::STALE)
    }

    /// Refuses what would change a mount that is not writable.
    fn writable(&self, node: &Node) -> Result<(), Errno> {
        if self.export(node)?.writable { Ok(()) } else { Err(Errno::ROFS) }
    }

    /// The attributes with the owner as the initial user namespace has it.
    fn with_owner(&self, fd: impl AsFd, mut attr: Attr) -> Attr {
        if let Some(ids) = &self.ids
            && !ids.recall(&mut attr)
        {
            ids.ask(&mut [(fd.as_fd(), &mut attr)]);
        }
        attr
    }
}

fn done() -> Answer {
    Ok((Response::Done, None))
}

fn bytes(bytes: Vec<u8>) -> Answer {
    Ok((Response::Bytes(Bytes(bytes)), None))
}
