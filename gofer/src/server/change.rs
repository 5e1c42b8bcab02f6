//! Changes to inodes and names that exist.

use rustix::fs::{
    AtFlags, FileType, Gid, OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, chownat,
    ftruncate, linkat, renameat_with, unlinkat, utimensat,
};
use rustix::io::Errno;

use crate::protocol::{Bytes, NodeId, RenameMode, Response, SetAttr, SetTime};

use super::attr::read_attr;
use super::nodes::Node;
use super::open::SelfFds;
use super::walk::open_component;
use super::{Answer, Failure, Server, done};

impl Server {
    pub(super) fn setattr(&self, node: NodeId, set: &SetAttr) -> Answer {
        let node = self.nodes.get(node)?;
        self.writable(&node)?;
        let times = times(set)?;
        if let Some(size) = set.size {
            self.truncate(&node, size)?;
        }
        if set.uid.is_some() || set.gid.is_some() {
            self.chown(&node, set.uid, set.gid)?;
        }
        if let Some(mode) = set.mode {
            self.chmod(&node, mode)?;
        }
        if let Some(times) = times {
            utimensat(&*node, c"", &times, AtFlags::EMPTY_PATH)?;
        }
        Ok((Response::Attr(self.node_attr(&node)?), None))
    }

    fn truncate(&self, node: &Node, size: u64) -> Result<(), Errno> {
        match node.kind {
            FileType::RegularFile => {}
            FileType::Directory => return Err(Errno::ISDIR),
            _ => return Err(Errno::INVAL),
        }
        let fd = self.self_fds.reopen(node, OFlags::WRONLY | OFlags::NONBLOCK)?;
        ftruncate(fd, size)
    }

    fn chown(&self, node: &Node, uid: Option<u32>, gid: Option<u32>) -> Result<(), Errno> {
        let (mut uid, mut gid) = (uid.filter(|id| *id != u32::MAX), gid.filter(|id| *id != u32::MAX));
        if self.ids.is_some() {
            // The map has one id. What stays as it is can be left out; all else but that id is EPERM, as Linux has it
            // for an ordinary user.
            let now = self.node_attr(node)?;
            uid = uid.filter(|id| *id != now.uid);
            gid = gid.filter(|id| *id != now.gid);
        }
        let result = chownat(node, c"", uid.map(Uid::from_raw), gid.map(Gid::from_raw), AtFlags::EMPTY_PATH);
        match result {
            // An id that the map does not have.
            Err(Errno::INVAL) if self.ids.is_some() => Err(Errno::PERM),
            other => other,
        }
    }

    pub(super) fn link(&self, node: NodeId, dir: NodeId, name: &Bytes) -> Answer {
        let node = self.nodes.get(node)?;
        let place = self.place(dir, name)?;
        self.writable(&node)?;
        if node.is_dir() {
            return Err(Errno::PERM.into());
        }
        if node.mount != place.dir.mount {
            return Err(Errno::XDEV.into());
        }
        let (links, link) = (self.self_fds.dir(), SelfFds::name(&*node));
        linkat(links, link, &*place.dir, &place.name, AtFlags::SYMLINK_FOLLOW)?;
        Ok((Response::Attr(self.node_attr(&node)?), None))
    }

    pub(super) fn rename(&self, from: (NodeId, &Bytes), to: (NodeId, &Bytes), mode: RenameMode) -> Answer {
        let (from, to) = (self.place(from.0, from.1)?, self.place(to.0, to.1)?);
        if from.dir.mount != to.dir.mount {
            return Err(Errno::XDEV.into());
        }
        // Elsewhere, a directory with hidden names below it would no longer be known as such.
        self.may_leave(&from)?;
        if mode == RenameMode::Exchange {
            self.may_leave(&to)?;
        }
        let flags = match mode {
            RenameMode::Replace => RenameFlags::empty(),
            RenameMode::NoReplace => RenameFlags::NOREPLACE,
            RenameMode::Exchange => RenameFlags::EXCHANGE,
        };
        renameat_with(&*from.dir, &from.name, &*to.dir, &to.name, flags)?;
        done()
    }

    pub(super) fn unlink(&self, dir: NodeId, name: &Bytes) -> Answer {
        let place = self.place(dir, name)?;
        unlinkat(&*place.dir, &place.name, AtFlags::empty())?;
        done()
    }

    pub(super) fn rmdir(&self, dir: NodeId, name: &Bytes) -> Answer {
        let place = self.place(dir, name)?;
        unlinkat(&*place.dir, &place.name, AtFlags::REMOVEDIR)?;
        done()
    }

    /// Refuses to move what has hidden names below it.
    fn may_leave(&self, place: &super::create::Place) -> Result<(), Failure> {
        let Some(rule) = self.policy.below(&place.position) else { return Ok(()) };
        let fd = open_component(std::os::fd::AsFd::as_fd(&*place.dir), &place.name)?;
        let is_dir = FileType::from_raw_mode(read_attr(fd)?.mode) == FileType::Directory;
        if is_dir { Err(rule.into()) } else { Ok(()) }
    }
}

/// The host's form of new times; `None` when none is given.
fn times(set: &SetAttr) -> Result<Option<Timestamps>, Errno> {
    if set.atime.is_none() && set.mtime.is_none() {
        return Ok(None);
    }
    Ok(Some(Timestamps { last_access: timespec(set.atime)?, last_modification: timespec(set.mtime)? }))
}

fn timespec(time: Option<SetTime>) -> Result<Timespec, Errno> {
    Ok(match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(SetTime::At(time)) if time.nsec < 1_000_000_000 => {
            Timespec { tv_sec: time.sec, tv_nsec: time.nsec.into() }
        }
        Some(SetTime::At(_)) => return Err(Errno::INVAL),
    })
}
