//! Walking: one component at a time against a held descriptor.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::protocol::{
    Attr, Bytes, Fault, MAX_NAME, MAX_OPEN, MAX_WALK, NodeId, OpenFlags, Response, Step, WalkEnd, Walked,
};

use super::nodes::Node;
use super::{Answer, Failure, Server, bytes};

/// No way out of the directory, whatever the host's users put there meanwhile.
pub(super) const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);

/// A component that was reached but is no node yet.
struct Reached {
    node: Node,
    attr: Attr,
    link: Option<Bytes>,
}

impl Server {
    pub(super) fn walk(&self, dir: NodeId, names: &[Bytes], open: Option<OpenFlags>) -> Answer {
        let start = self.nodes.dir(dir)?;
        if names.is_empty() || names.len() > MAX_WALK {
            return Err(Errno::INVAL.into());
        }
        let names = names.iter().map(component).collect::<Result<Vec<CString>, Errno>>()?;
        let (mut reached, mut end) = self.reach(&start, &names);
        self.fill_owners(&mut reached);
        let opened = match (&end, reached.last(), open) {
            (WalkEnd::Complete, Some(last), Some(flags)) if last.node.kind == FileType::RegularFile => {
                Some(self.open_node(&last.node, flags))
            }
            _ => None,
        };
        let mut steps = Vec::with_capacity(reached.len());
        for Reached { node, attr, link } in reached {
            match self.nodes.add(node) {
                Ok(node) => steps.push(Step { node, attr, link }),
                Err(errno) => {
                    end = WalkEnd::Failed(Fault::Errno(errno.raw_os_error()));
                    break;
                }
            }
        }
        // A file is sent only with its node: after ENFILE the walk is not complete.
        let opened = opened.filter(|_| end == WalkEnd::Complete);
        let (opened, fd) = match opened {
            None => (None, None),
            Some(Ok((fd, _))) => (Some(Ok(())), Some(fd)),
            Some(Err(errno)) => (Some(Err(errno.raw_os_error())), None),
        };
        Ok((Response::Walked(Walked { steps, end, opened }), fd))
    }

    /// Opens several names of a directory for reading; those that are no regular files, or fail, are left out.
    pub(super) fn open_many(
        &self,
        dir: NodeId,
        names: &[Bytes],
    ) -> Result<(Response, Vec<OwnedFd>), Failure> {
        let dir = self.nodes.dir(dir)?;
        if names.len() > MAX_OPEN {
            return Err(Errno::INVAL.into());
        }
        let names = names.iter().map(component).collect::<Result<Vec<CString>, Errno>>()?;
        let flags = OpenFlags { read: true, ..OpenFlags::default() };
        let open = |name| {
            let mut reached = self.step(&dir, name).ok()?;
            let (fd, attr) = self.open_node(&reached.node, flags).ok()?;
            reached.attr = attr;
            Some((reached, fd))
        };
        let found: Vec<_> = names.iter().map(open).collect();
        let mut there = Vec::with_capacity(found.len());
        let (mut reached, mut fds) = (Vec::new(), Vec::new());
        for found in found {
            there.push(found.is_some());
            if let Some((step, fd)) = found {
                reached.push(step);
                fds.push(fd);
            }
        }
        self.fill_owners(&mut reached);
        let mut found = reached.into_iter().zip(fds);
        let (mut steps, mut fds) = (Vec::with_capacity(names.len()), Vec::new());
        for there in there {
            let step = match if there { found.next() } else { None } {
                Some((Reached { node, attr, link }, fd)) => self.nodes.add(node).ok().map(|node| {
                    fds.push(fd);
                    Step { node, attr, link }
                }),
                None => None,
            };
            steps.push(step);
        }
        Ok((Response::OpenedMany(steps), fds))
    }

    pub(super) fn readlink(&self, node: NodeId) -> Answer {
        let node = self.nodes.get(node)?;
        if node.kind != FileType::Symlink {
            return Err(Errno::INVAL.into());
        }
        bytes(read_link(&*node)?.0)
    }

    /// One name below a directory, as a new node.
    pub(super) fn enter(&self, dir: &Node, name: &CString) -> Result<Step, Failure> {
        let mut reached = [self.step(dir, name)?];
        self.fill_owners(&mut reached);
        let [Reached { node, attr, link }] = reached;
        Ok(Step { node: self.nodes.add(node)?, attr, link })
    }

    /// One name below a directory that is to be no node.
    pub(super) fn glance(&self, dir: &Node, name: &CString) -> Result<Node, Failure> {
        self.step(dir, name).map(|reached| reached.node)
    }

    fn reach(&self, start: &Arc<Node>, names: &[CString]) -> (Vec<Reached>, WalkEnd) {
        let mut reached: Vec<Reached> = Vec::with_capacity(names.len());
        for name in names {
            let dir = reached.last().map_or(&**start, |last| &last.node);
            if !dir.is_dir() {
                return (reached, WalkEnd::Stopped);
            }
            match self.step(dir, name) {
                Ok(step) => reached.push(step),
                Err(failure) => return (reached, WalkEnd::Failed(self.fault(failure))),
            }
        }
        (reached, WalkEnd::Complete)
    }

    /// One component, with every check that policy wants.
    fn step(&self, dir: &Node, name: &CString) -> Result<Reached, Failure> {
        let fd = open_component(dir.as_fd(), name)?;
        // After the open, so that a hidden name that does not exist is ENOENT.
        let position = self.policy.step(&dir.position, name.as_bytes())?;
        let attr = self.listed_attr(&fd)?;
        self.visible(dir, &fd, &attr)?;
        let node = Node::new(fd, dir.mount, &attr, position);
        let link = if node.kind == FileType::Symlink { Some(read_link(&node)?) } else { None };
        Ok(Reached { node, attr, link })
    }

    /// Refuses hidden inodes, and file systems that show the kernel's state.
    pub(super) fn visible(&self, dir: &Node, fd: &OwnedFd, attr: &Attr) -> Result<(), Failure> {
        if let Some(rule) = self.policy.inode(attr.dev, attr.ino)
            && !self.export(dir)?.exposed
        {
            return Err(rule.into());
        }
        if attr.dev != dir.dev && !self.devices.holds_files(attr.dev, fd)? {
            return Err(self.policy.kernel_rule().into());
        }
        Ok(())
    }

    fn fill_owners(&self, reached: &mut [Reached]) {
        let Some(ids) = &self.ids else { return };
        let mut unknown: Vec<(BorrowedFd<'_>, &mut Attr)> = Vec::new();
        for Reached { node, attr, .. } in reached {
            if !ids.recall(attr) {
                unknown.push((Node::as_fd(node), attr));
            }
        }
        ids.ask(&mut unknown);
    }
}

/// The name as the host takes it.
///
/// # Errors
/// `ENAMETOOLONG`; `EINVAL` for what is not one component.
pub(super) fn component(name: &Bytes) -> Result<CString, Errno> {
    let name = name.0.as_slice();
    if name.len() > MAX_NAME {
        return Err(Errno::NAMETOOLONG);
    }
    if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') {
        return Err(Errno::INVAL);
    }
    CString::new(name).map_err(|_| Errno::INVAL)
}

/// Opens a name as a place, not as a file: nothing is followed and nothing is opened for use.
pub(super) fn open_component(dir: BorrowedFd<'_>, name: &CString) -> Result<OwnedFd, Errno> {
    #[cfg(test)]
    if UNGUARDED.get() {
        return rustix::fs::openat(dir, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    }
    // EAGAIN: a rename ran beside the lookup, and the kernel wants it done again.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..128 {
        match openat2(dir, name, flags, Mode::empty(), BENEATH) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

fn read_link(link: impl AsFd) -> Result<Bytes, Errno> {
    let target = rustix::fs::readlinkat(link, c"", Vec::with_capacity(128))?;
    Ok(Bytes(target.into_bytes()))
}

#[cfg(test)]
thread_local! {
    /// Takes the guard away on this thread, to show that the race test would notice.
    pub(crate) static UNGUARDED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}
