//! The sentry's side of the protocol.
//!
//! [`Client`] is shared by all threads of the sentry. A call takes a free lane, sends its request, and waits for
//! the answer in recvmsg(2). Nothing is cached here. Host calls used: sendto, recvmsg, futex, getcpu (by the vDSO).

use std::os::fd::OwnedFd;

use parking_lot::{Mutex, MutexGuard};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::codec;
use crate::protocol::{
    Attached, Attr, Bytes, DirPage, Fault, NewInode, NodeId, NodeKind, OpenFlags, RenameMode, Request,
    Response, SetAttr, StatFs, Step, WalkEnd, XattrMode,
};
use crate::wire::{packet_buffer, recv_packet, send_packet};

/// Why a call to the gofer failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GoferError {
    /// An errno that the guest may see.
    Errno(i32),
    /// The policy hides the path: a denial by the named rule. The guest sees `EACCES`.
    Denied {
        /// The rule's name.
        rule: String,
    },
    /// The gofer is gone or broke the protocol. The guest sees `EIO`.
    Gone,
}

/// What a call gives.
pub type Result<T> = std::result::Result<T, GoferError>;

/// What [`Client::walk`] saw.
#[derive(Debug)]
pub struct Walk {
    /// One step for each component walked; at most as many as names were given.
    pub steps: Vec<Step>,
    /// Why it ended.
    pub end: WalkEnd,
    /// The opened file, or the errno of opening it. `None` when not asked, when the walk ended early, or when the
    /// last step is not a regular file.
    pub file: Option<std::result::Result<OwnedFd, i32>>,
}

/// A connection to a gofer.
pub struct Client {
    lanes: Vec<Mutex<Lane>>,
    hand_off: bool,
}

struct Lane {
    /// `None` after the lane broke.
    socket: Option<OwnedFd>,
    out: Vec<u8>,
    buffer: Vec<u8>,
    fds: Vec<OwnedFd>,
    /// Calls for which the caller still stays on its processor.
    stay: u32,
}

/// For so many calls a thread stays after the scheduler moved it in one.
const STAY: u32 = 100;

impl GoferError {
    /// The errno that a guest sees for this failure.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Errno(errno) => *errno,
            Self::Denied { .. } => libc::EACCES,
            Self::Gone => libc::EIO,
        }
    }
}

impl std::fmt::Display for GoferError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Errno(errno) => std::io::Error::from_raw_os_error(*errno).fmt(f),
            Self::Denied { rule } => write!(f, "hidden by rule {rule}"),
            Self::Gone => f.write_str("the gofer is gone"),
        }
    }
}

impl std::error::Error for GoferError {}

impl From<Fault> for GoferError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Errno(errno) => Self::Errno(errno),
            Fault::Denied(rule) => Self::Denied { rule },
        }
    }
}

impl Client {
    /// A client over its ends of the lanes. The gofer has the other ends in the same order
    /// ([`crate::GoferConfig`]); lane *n* is served on the *n*-th processor, so as many lanes as processors are best.
    pub fn new(lanes: Vec<OwnedFd>) -> Self {
        let lane = |socket| {
            Mutex::new(Lane {
                socket: Some(socket),
                out: Vec::new(),
                buffer: packet_buffer(),
                fds: Vec::new(),
                stay: 0,
            })
        };
        Self { lanes: lanes.into_iter().map(lane).collect(), hand_off: false }
    }

    /// Keeps a calling thread on its processor for the length of a call, for some calls after the scheduler was seen to
    /// move one: an answer that wakes an idle processor costs several times the call. Affinity is restored after each
    /// call. Host calls used in addition: sched_getaffinity and sched_setaffinity of the calling thread.
    #[must_use]
    pub fn with_hand_off(mut self) -> Self {
        self.hand_off = true;
        self
    }

    /// The root of the mount with this place in the gofer's configuration.
    pub fn attach(&self, mount: u32) -> Result<Attached> {
        match self.call(&Request::Attach { mount })?.0 {
            Response::Attached(attached) => Ok(attached),
            _ => Err(GoferError::Gone),
        }
    }

    /// Down from `dir` through real directories, one name after the other. Fails as a whole only when `dir` is no
    /// node, is no directory, or a name is not a name; else [`Walk::end`] says how far it came.
    pub fn walk(&self, dir: NodeId, names: &[&[u8]], open: Option<OpenFlags>) -> Result<Walk> {
        let names: Vec<Bytes> = names.iter().map(|name| Bytes::from(*name)).collect();
        let asked = names.len();
        let (response, fd) = self.call(&Request::Walk { dir, names, open })?;
        let Response::Walked(walked) = response else { return Err(GoferError::Gone) };
        if walked.steps.len() > asked {
            return Err(GoferError::Gone);
        }
        let file = match walked.opened {
            None => None,
            Some(Ok(())) => Some(Ok(fd.ok_or(GoferError::Gone)?)),
            Some(Err(errno)) => Some(Err(errno)),
        };
        Ok(Walk { steps: walked.steps, end: walked.end, file })
    }

    /// One name below `dir`.
    pub fn lookup(&self, dir: NodeId, name: &[u8]) -> Result<Step> {
        let mut walk = self.walk(dir, &[name], None)?;
        match (walk.steps.pop(), walk.end) {
            (Some(step), _) => Ok(step),
            (None, WalkEnd::Failed(fault)) => Err(fault.into()),
            (None, _) => Err(GoferError::Gone),
        }
    }

    /// Attributes now.
    pub fn getattr(&self, node: NodeId) -> Result<Attr> {
        self.attr(&Request::GetAttr { node })
    }

    /// Changes attributes; gives all of them as they are afterwards.
    pub fn setattr(&self, node: NodeId, set: SetAttr) -> Result<Attr> {
        self.attr(&Request::SetAttr { node, set })
    }

    /// Opens a regular file. The descriptor is close-on-exec; the attributes are read from it.
    pub fn open(&self, node: NodeId, flags: OpenFlags) -> Result<(OwnedFd, Attr)> {
        match self.call(&Request::Open { node, flags })? {
            (Response::Opened(attr), Some(fd)) => Ok((fd, attr)),
            _ => Err(GoferError::Gone),
        }
    }

    /// Opens files of a directory for reading, at most [`crate::protocol::MAX_OPEN`]: one entry for each name, `None` for what
    /// cannot be had that way.
    pub fn open_many(&self, dir: NodeId, names: &[&[u8]]) -> Result<Vec<Option<(OwnedFd, Step)>>> {
        let request = Request::OpenMany { dir, names: names.iter().map(|name| Bytes::from(*name)).collect() };
        let mut lane = self.lane()?;
        let (response, last) =
            if self.hand_off { lane.hand_off(&request) } else { lane.round_trip(&request) }?;
        let steps = match response {
            Response::OpenedMany(steps) if steps.len() == names.len() => steps,
            Response::Fault(fault) => return Err(fault.into()),
            _ => return Err(GoferError::Gone),
        };
        let mut fds = lane.fds.drain(..).chain(last);
        let mut files = Vec::with_capacity(steps.len());
        for step in steps {
            files.push(match step {
                Some(step) => Some((fds.next().ok_or(GoferError::Gone)?, step)),
                None => None,
            });
        }
        Ok(files)
    }

    /// The first pages of directories in `dir`, at most [`crate::protocol::MAX_OPEN`], with attributes: one entry for each name,
    /// `None` for what cannot be had that way.
    pub fn list_many(&self, dir: NodeId, names: &[&[u8]]) -> Result<Vec<Option<(Step, DirPage)>>> {
        let names: Vec<Bytes> = names.iter().map(|name| Bytes::from(*name)).collect();
        let asked = names.len();
        match self.call(&Request::ListMany { dir, names })?.0 {
            Response::Listed(pages) if pages.len() == asked => Ok(pages),
            _ => Err(GoferError::Gone),
        }
    }

    /// Which names in `dir`, at most [`crate::protocol::MAX_NAMES`], may have extended attributes.
    pub fn have_xattrs(&self, dir: NodeId, names: &[&[u8]]) -> Result<Vec<bool>> {
        self.flags(names, |names| Request::HaveXattrs { dir, names })
    }

    /// Which of at most [`protocol::MAX_NAMES`] names in a directory, there or not, are hidden.
    pub fn are_hidden(&self, dir: NodeId, names: &[&[u8]]) -> Result<Vec<bool>> {
        self.flags(names, |names| Request::AreHidden { dir, names })
    }

    fn flags(&self, names: &[&[u8]], request: impl FnOnce(Vec<Bytes>) -> Request) -> Result<Vec<bool>> {
        let asked = names.len();
        match self.call(&request(names.iter().map(|name| Bytes::from(*name)).collect()))?.0 {
            Response::Flags(flags) if flags.len() == asked => Ok(flags),
            _ => Err(GoferError::Gone),
        }
    }

    /// Makes a regular file that did not exist (`EEXIST` if it did) and opens it.
    pub fn create(
        &self,
        dir: NodeId,
        name: &[u8],
        new: NewInode,
        flags: OpenFlags,
    ) -> Result<(OwnedFd, Step)> {
        self.created(&Request::Create { dir, name: name.into(), new, flags })
    }

    /// Makes a regular file without a name in the file system of `dir` and opens it.
    pub fn tmpfile(&self, dir: NodeId, new: NewInode, flags: OpenFlags) -> Result<(OwnedFd, Step)> {
        self.created(&Request::TmpFile { dir, new, flags })
    }

    /// A page of a directory, without `.` and `..`. `cursor` is 0 or a cursor that an earlier page gave.
    pub fn read_dir(&self, dir: NodeId, cursor: u64, attrs: bool) -> Result<DirPage> {
        match self.call(&Request::ReadDir { dir, cursor, attrs })?.0 {
            Response::Dir(page) => Ok(page),
            _ => Err(GoferError::Gone),
        }
    }

    /// A symbolic link's target. [`Step::link`] has it already after a walk.
    pub fn readlink(&self, node: NodeId) -> Result<Vec<u8>> {
        self.bytes(&Request::Readlink { node })
    }

    /// Makes a symbolic link.
    pub fn symlink(
        &self,
        dir: NodeId,
        name: &[u8],
        target: &[u8],
        owner: Option<(u32, u32)>,
    ) -> Result<Step> {
        self.made(&Request::Symlink { dir, name: name.into(), target: target.into(), owner })
    }

    /// Makes a directory.
    pub fn mkdir(&self, dir: NodeId, name: &[u8], new: NewInode) -> Result<Step> {
        self.made(&Request::Mkdir { dir, name: name.into(), new })
    }

    /// Makes a regular file, FIFO or socket inode without opening it.
    pub fn mknod(&self, dir: NodeId, name: &[u8], new: NewInode, kind: NodeKind) -> Result<Step> {
        self.made(&Request::Mknod { dir, name: name.into(), new, kind })
    }

    /// One more name for `node`; gives the node's attributes afterwards.
    pub fn link(&self, node: NodeId, dir: NodeId, name: &[u8]) -> Result<Attr> {
        self.attr(&Request::Link { node, dir, name: name.into() })
    }

    /// Renames; both directories must be of one mount (`EXDEV`).
    pub fn rename(&self, from: (NodeId, &[u8]), to: (NodeId, &[u8]), mode: RenameMode) -> Result<()> {
        let (from_name, to_name) = (from.1.into(), to.1.into());
        self.done(&Request::Rename { from: from.0, from_name, to: to.0, to_name, mode })
    }

    /// Removes a name that is not a directory.
    pub fn unlink(&self, dir: NodeId, name: &[u8]) -> Result<()> {
        self.done(&Request::Unlink { dir, name: name.into() })
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, dir: NodeId, name: &[u8]) -> Result<()> {
        self.done(&Request::Rmdir { dir, name: name.into() })
    }

    /// The node's file system.
    pub fn statfs(&self, node: NodeId) -> Result<StatFs> {
        match self.call(&Request::StatFs { node })?.0 {
            Response::StatFs(statfs) => Ok(statfs),
            _ => Err(GoferError::Gone),
        }
    }

    /// An extended attribute's value.
    pub fn getxattr(&self, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        self.bytes(&Request::GetXattr { node, name: name.into() })
    }

    /// Sets an extended attribute.
    pub fn setxattr(&self, node: NodeId, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        self.done(&Request::SetXattr { node, name: name.into(), value: value.into(), mode })
    }

    /// The names of extended attributes, each ended by NUL.
    pub fn listxattr(&self, node: NodeId) -> Result<Vec<u8>> {
        self.bytes(&Request::ListXattr { node })
    }

    /// Removes an extended attribute.
    pub fn removexattr(&self, node: NodeId, name: &[u8]) -> Result<()> {
        self.done(&Request::RemoveXattr { node, name: name.into() })
    }

    /// fsync(2), or fdatasync(2), of a regular file or directory. For an open file the sentry can call fsync itself.
    pub fn fsync(&self, node: NodeId, data_only: bool) -> Result<()> {
        self.done(&Request::Fsync { node, data_only })
    }

    /// syncfs(2) of the node's file system.
    pub fn syncfs(&self, node: NodeId) -> Result<()> {
        self.done(&Request::SyncFs { node })
    }

    /// Watches a node's inode: the watch's number, and the connection's inotify(7) instance (another descriptor of the
    /// same one each time; keep the first). Events bring names of the directory, hidden ones too ([`Client::are_hidden`]
    /// says which), and come from changes made through this gofer as well as by others.
    pub fn watch(&self, node: NodeId, events: u32) -> Result<(i32, OwnedFd)> {
        match self.call(&Request::Watch { node, events })? {
            (Response::Watching(watch), Some(fd)) => Ok((watch, fd)),
            _ => Err(GoferError::Gone),
        }
    }

    /// Ends a watch.
    pub fn unwatch(&self, watch: i32) -> Result<()> {
        self.done(&Request::Unwatch { watch })
    }

    /// A new file in memory, opened for reading and writing, and for reading alone.
    pub fn memory(&self) -> Result<(OwnedFd, OwnedFd)> {
        let mut lane = self.lane()?;
        let read_only = match lane.round_trip(&Request::Memory)? {
            (Response::Memory, fd) => fd,
            (Response::Fault(fault), _) => return Err(fault.into()),
            _ => None,
        };
        match (lane.fds.pop(), read_only) {
            (Some(both), Some(read_only)) => Ok((both, read_only)),
            _ => Err(GoferError::Gone),
        }
    }

    /// Gives nodes back. The sentry's cache collects some and forgets them together.
    pub fn forget(&self, nodes: &[NodeId]) -> Result<()> {
        nodes
            .chunks(crate::protocol::MAX_FORGET)
            .try_for_each(|some| self.done(&Request::Forget { nodes: some.to_vec() }))
    }

    fn attr(&self, request: &Request) -> Result<Attr> {
        match self.call(request)?.0 {
            Response::Attr(attr) => Ok(attr),
            _ => Err(GoferError::Gone),
        }
    }

    fn created(&self, request: &Request) -> Result<(OwnedFd, Step)> {
        match self.call(request)? {
            (Response::Created(step), Some(fd)) => Ok((fd, step)),
            _ => Err(GoferError::Gone),
        }
    }

    fn made(&self, request: &Request) -> Result<Step> {
        match self.call(request)?.0 {
            Response::Made(step) => Ok(step),
            _ => Err(GoferError::Gone),
        }
    }

    fn bytes(&self, request: &Request) -> Result<Vec<u8>> {
        match self.call(request)?.0 {
            Response::Bytes(bytes) => Ok(bytes.0),
            _ => Err(GoferError::Gone),
        }
    }

    fn done(&self, request: &Request) -> Result<()> {
        match self.call(request)?.0 {
            Response::Done => Ok(()),
            _ => Err(GoferError::Gone),
        }
    }

    /// One round trip on a free lane; faults become errors.
    fn call(&self, request: &Request) -> Result<(Response, Option<OwnedFd>)> {
        let mut lane = self.lane()?;
        let answer = if self.hand_off { lane.hand_off(request) } else { lane.round_trip(request) };
        match answer? {
            (Response::Fault(fault), _) => Err(fault.into()),
            other => Ok(other),
        }
    }

    /// The lane of this processor if it is free, else any free one, else this processor's when it is.
    fn lane(&self) -> Result<MutexGuard<'_, Lane>> {
        let count = self.lanes.len();
        let home = sched_getcpu().checked_rem(count).ok_or(GoferError::Gone)?;
        let (before, after) = self.lanes.split_at(home);
        if let Some(lane) = after.iter().chain(before).find_map(Mutex::try_lock) {
            return Ok(lane);
        }
        after.first().map(Mutex::lock).ok_or(GoferError::Gone)
    }
}

impl Lane {
    fn hand_off(&mut self, request: &Request) -> Result<(Response, Option<OwnedFd>)> {
        let processor = sched_getcpu();
        if self.stay > 0 {
            self.stay -= 1;
            if let Ok(before) = sched_getaffinity(None) {
                let mut here = CpuSet::new();
                here.set(processor);
                // Failing costs speed, no more.
                let _ = sched_setaffinity(None, &here);
                let answer = self.round_trip(request);
                let _ = sched_setaffinity(None, &before);
                return answer;
            }
        }
        let answer = self.round_trip(request);
        if sched_getcpu() != processor {
            self.stay = STAY;
        }
        answer
    }

    fn round_trip(&mut self, request: &Request) -> Result<(Response, Option<OwnedFd>)> {
        // The server answers E2BIG, ENAMETOOLONG and so on itself; this is what does not even fit a packet.
        codec::encode(request, &mut self.out).map_err(|_| GoferError::Errno(libc::E2BIG))?;
        let socket = self.socket.as_ref().ok_or(GoferError::Gone)?;
        self.fds.clear();
        let answer = send_packet(socket, &self.out, &[])
            .and_then(|()| recv_packet(socket, &mut self.buffer, &mut self.fds))
            .ok()
            .and_then(|length| self.buffer.get(..length))
            .and_then(|bytes| codec::decode(bytes).ok());
        match answer {
            Some(response) => Ok((response, self.fds.pop())),
            None => {
                // A half-done exchange would give the next call this one's answer.
                self.socket = None;
                Err(GoferError::Gone)
            }
        }
    }
}
