//! Opening regular files, and the way back from an `O_PATH` descriptor to its file.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::protocol::{Attr, NodeId, OpenFlags, Response};

use super::nodes::Node;
use super::{Answer, Server, done};

/// `/proc/self/fd`: the one place where the host turns a held `O_PATH` descriptor into what it refers to.
///
/// The gofer's root is empty, so the directory is held as a descriptor and is the working directory.
pub(crate) struct SelfFds {
    dir: OwnedFd,
    prefix: &'static str,
}

impl SelfFds {
    /// `dir` is `/proc/self/fd`. For calls that take no directory, paths are relative to the working directory when
    /// `is_cwd`, else go by `/proc`.
    pub(crate) fn new(dir: OwnedFd, is_cwd: bool) -> Self {
        Self { dir, prefix: if is_cwd { "" } else { "/proc/self/fd/" } }
    }

    /// The link of a descriptor, for calls that take only a path. Following it leads to the descriptor's inode,
    /// no further: a symbolic link's own inode is what its descriptor refers to.
    pub(super) fn path(&self, fd: impl AsFd) -> String {
        format!("{}{}", self.prefix, fd.as_fd().as_raw_fd())
    }

    /// The directory of links, for calls that take one; names are those of [`Self::name`].
    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The link's name in [`Self::dir`].
    pub(crate) fn name(fd: impl AsFd) -> rustix::path::DecInt {
        rustix::path::DecInt::from_fd(fd)
    }

    /// A second descriptor of the same inode.
    pub(super) fn reopen(&self, fd: impl AsFd, flags: OFlags) -> Result<OwnedFd, Errno> {
        openat(&self.dir, Self::name(fd), flags | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())
    }
}

impl Server {
    pub(super) fn open(&self, node: NodeId, flags: OpenFlags) -> Answer {
        let node = self.nodes.get(node)?;
        let (fd, attr) = self.open_node(&node, flags)?;
        let attr = self.with_owner(&fd, attr);
        Ok((Response::Opened(attr), Some(fd)))
    }

    /// Opens a node that is a regular file. The type is known from the `O_PATH` descriptor before anything is
    /// opened, since opening a FIFO or a device already does something.
    pub(super) fn open_node(&self, node: &Node, flags: OpenFlags) -> Result<(OwnedFd, Attr), Errno> {
        match node.kind {
            FileType::RegularFile => {}
            FileType::Directory => return Err(Errno::ISDIR),
            FileType::Symlink => return Err(Errno::LOOP),
            _ => return Err(Errno::NXIO),
        }
        let flags = open_flags(flags)?;
        if flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
            self.writable(node)?;
        }
        let fd = self.self_fds.reopen(node, flags | OFlags::NONBLOCK)?;
        let attr = self.listed_attr(&fd)?;
        if FileType::from_raw_mode(attr.mode) != FileType::RegularFile {
            return Err(Errno::NXIO);
        }
        Ok((fd, attr))
    }

    pub(super) fn fsync(&self, node: NodeId, data_only: bool) -> Answer {
        let node = self.nodes.get(node)?;
        if let Some(fd) = self.sync_target(&node)? {
            if data_only { rustix::fs::fdatasync(fd)? } else { rustix::fs::fsync(fd)? }
        }
        done()
    }

    pub(super) fn syncfs(&self, node: NodeId) -> Answer {
        let node = self.nodes.get(node)?;
        if let Some(fd) = self.sync_target(&node)? {
            rustix::fs::syncfs(fd)?;
        }
        done()
    }

    /// What to sync: nothing on a read-only mount, where nothing of the sandbox is unwritten.
    fn sync_target(&self, node: &Node) -> Result<Option<OwnedFd>, Errno> {
        if !self.export(node)?.writable {
            return Ok(None);
        }
        match node.kind {
            FileType::RegularFile | FileType::Directory => {
                self.self_fds.reopen(node, OFlags::RDONLY | OFlags::NONBLOCK).map(Some)
            }
            _ => Err(Errno::INVAL),
        }
    }
}

/// Host flags. `EINVAL` when nothing is asked, or truncation without writing.
pub(super) fn open_flags(flags: OpenFlags) -> Result<OFlags, Errno> {
    let mut host = match (flags.read, flags.write) {
        (true, true) => OFlags::RDWR,
        (true, false) => OFlags::RDONLY,
        (false, true) => OFlags::WRONLY,
        (false, false) => return Err(Errno::INVAL),
    };
    if flags.truncate && !flags.write {
        return Err(Errno::INVAL);
    }
    host.set(OFlags::APPEND, flags.append);
    host.set(OFlags::TRUNC, flags.truncate);
    Ok(host)
}
