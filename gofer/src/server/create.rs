//! New inodes.

use std::ffi::CString;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, chmodat, getxattr, mkdirat, mknodat, openat2, symlinkat};
use rustix::io::Errno;

use crate::hidden::Position;
use crate::protocol::{Bytes, MAX_LINK, NewInode, NodeId, NodeKind, OpenFlags, Response, Step};

use super::nodes::Node;
use super::open::{SelfFds, open_flags};
use super::walk::{BENEATH, component};
use super::{Answer, Failure, Server};

/// A place in a writable directory where a name may be made or changed.
pub(super) struct Place {
    pub(super) dir: Arc<Node>,
    pub(super) name: CString,
    /// Where the name stands among hidden paths.
    pub(super) position: Position,
}

impl Server {
    /// # Errors
    /// `EROFS`, a bad name, or the rule that hides it.
    pub(super) fn place(&self, dir: NodeId, name: &Bytes) -> Result<Place, Failure> {
        let dir = self.nodes.dir(dir)?;
        let name = component(name)?;
        let position = self.policy.step(&dir.position, name.as_bytes())?;
        self.writable(&dir)?;
        Ok(Place { dir, name, position })
    }

    pub(super) fn create(&self, dir: NodeId, name: &Bytes, new: NewInode, flags: OpenFlags) -> Answer {
        let place = self.place(dir, name)?;
        let flags = open_flags(flags)? | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        self.create_file(&place.dir, &place.name, place.position, new, flags)
    }

    pub(super) fn tmpfile(&self, dir: NodeId, new: NewInode, flags: OpenFlags) -> Answer {
        let dir = self.nodes.dir(dir)?;
        self.writable(&dir)?;
        let flags = open_flags(flags)? | OFlags::TMPFILE;
        self.create_file(&dir, c".", Position::new(), new, flags)
    }

    fn create_file(
        &self,
        dir: &Node,
        name: &std::ffi::CStr,
        position: Position,
        new: NewInode,
        flags: OFlags,
    ) -> Answer {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let mode = self.mode_in(dir, new)?;
        let guard = self.as_owner(new.owner);
        let fd = openat2(dir, name, flags, mode, BENEATH)?;
        drop(guard);
        let place = self.self_fds.reopen(&fd, OFlags::PATH)?;
        let attr = self.with_owner(&place, self.listed_attr(&place)?);
        let node = self.nodes.add(Node::new(place, dir.mount, &attr, position))?;
        Ok((Response::Created(Step { node, attr, link: None }), Some(fd)))
    }

    pub(super) fn mkdir(&self, dir: NodeId, name: &Bytes, new: NewInode) -> Answer {
        let place = self.place(dir, name)?;
        let mode = self.mode_in(&place.dir, new)?;
        let guard = self.as_owner(new.owner);
        mkdirat(&*place.dir, &place.name, mode)?;
        drop(guard);
        self.made(&place)
    }

    pub(super) fn symlink(
        &self,
        dir: NodeId,
        name: &Bytes,
        target: &Bytes,
        owner: Option<(u32, u32)>,
    ) -> Answer {
        let place = self.place(dir, name)?;
        if target.0.len() >= MAX_LINK {
            return Err(Errno::NAMETOOLONG.into());
        }
        if target.0.is_empty() {
            return Err(Errno::NOENT.into());
        }
        let target = CString::new(target.0.as_slice()).map_err(|_| Errno::INVAL)?;
        let guard = self.as_owner(owner);
        symlinkat(&target, &*place.dir, &place.name)?;
        drop(guard);
        self.made(&place)
    }

    pub(super) fn mknod(&self, dir: NodeId, name: &Bytes, new: NewInode, kind: NodeKind) -> Answer {
        let place = self.place(dir, name)?;
        let kind = match kind {
            NodeKind::Regular => FileType::RegularFile,
            NodeKind::Fifo => FileType::Fifo,
            NodeKind::Socket => FileType::Socket,
        };
        let mode = self.mode_in(&place.dir, new)?;
        let guard = self.as_owner(new.owner);
        mknodat(&*place.dir, &place.name, kind, mode, 0)?;
        drop(guard);
        self.made(&place)
    }

    /// The node of what was just made. If somebody on the host replaced it meanwhile, it is what they put there:
    /// something of this mount all the same.
    fn made(&self, place: &Place) -> Answer {
        Ok((Response::Made(self.enter(&place.dir, &place.name)?), None))
    }

    /// The mode of a new name in a directory.
    fn mode_in(&self, dir: &Node, new: NewInode) -> Result<Mode, Errno> {
        let listed = || getxattr(self.self_fds.path(dir), c"system.posix_acl_default", &mut [0u8; 0]).is_ok();
        mode(if new.masked != 0 && listed() { new.mode | new.masked } else { new.mode })
    }

    /// chmod(2) of a node. A symbolic link has no mode to set.
    pub(super) fn chmod(&self, node: &Node, bits: u32) -> Result<(), Errno> {
        if node.kind == FileType::Symlink {
            return Err(Errno::OPNOTSUPP);
        }
        chmodat(self.self_fds.dir(), SelfFds::name(node), mode(bits)?, AtFlags::empty())
    }
}

/// Permission bits. `EINVAL` when a type or anything else is among them.
fn mode(bits: u32) -> Result<Mode, Errno> {
    if bits & !0o7777 == 0 { Ok(Mode::from_raw_mode(bits)) } else { Err(Errno::INVAL) }
}
