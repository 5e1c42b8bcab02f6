//! The protocol between the sentry and the gofer.
//!
//! # Transport
//!
//! A connection is a set of *lanes*. A lane is one `SOCK_SEQPACKET` unix socket pair with one gofer
//! thread at its other end; one message is one packet. On a lane the client sends one [`Request`] and
//! receives exactly one [`Response`] before it sends the next, so messages need no number. All lanes of
//! a connection share one table of nodes. A packet is at most [`MAX_MESSAGE`] bytes, encoded by
//! [`crate::codec`]. A request never carries a descriptor. A response carries at most one, that to
//! [`Request::Memory`] two and that to [`Request::OpenMany`] one for each file, by `SCM_RIGHTS`, exactly where its type says so. A request that does not decode closes the lane; the end of
//! every lane ends the gofer.
//!
//! # Nodes
//!
//! The sentry names host inodes by [`NodeId`]: a number that the gofer hands out, never uses twice, and keeps
//! until [`Request::Forget`]. Each walk or creation gives a new number, even for an inode that has one already
//! (`dev` and `ino` of [`Attr`] say that two are the same). Behind a node is an `O_PATH` descriptor, so a node
//! stays the same inode whatever is renamed or removed on the host. A node belongs to the mount that it was
//! walked from and carries that mount's rights. A connection has at most a fixed number of nodes; more is
//! `ENFILE` until some are forgotten.
//!
//! # Paths never cross
//!
//! A name is one component: 1 to 255 bytes without `/` and NUL, neither `.` nor `..`. `..` is the sentry's
//! business, and so are symbolic links: the gofer never follows one. [`Request::Walk`] goes down several
//! components in one message, but through real directories only; it stops at the first symbolic link, other
//! non-directory, missing name or refusal and says what it saw until there.
//!
//! # What is refused by policy
//!
//! A walk into a hidden path that exists, and any change to or creation of one, answers [`Fault::Denied`] with the
//! rule's name ([`crate::hidden`]). It is not an errno, so that the sentry records a denial with the rule, then gives
//! its program `EACCES`. A hidden path that does not exist is `ENOENT`, so that programs which look for optional
//! files carry on. A directory that contains hidden names lists them with their type and without
//! attributes. File systems that show the kernel's own state (proc, sysfs and the like) are hidden
//! wherever they are mounted: the sentry has its own, and mounts them without asking the gofer for the mount point.
//!
//! Requests that change something are answered `EROFS` unless the node's mount is writable.
//!
//! # Kinds of files
//!
//! Only regular files are ever opened. FIFOs, sockets and device nodes are nodes with attributes; what
//! they do is emulated by the sentry. Opening anything else answers `ELOOP` (symbolic link), `EISDIR` (directory) or
//! `ENXIO` (the rest).

use serde::{Deserialize, Serialize};

/// The most bytes of one packet: fits an extended attribute of the largest size, and a directory page.
pub const MAX_MESSAGE: usize = 100 * 1024;
/// A directory page grows no further, but for what one read of the host gave, once it has this many bytes.
pub const PAGE_BYTES: usize = 64 * 1024;
/// The longest name, in bytes (`NAME_MAX`).
pub const MAX_NAME: usize = 255;
/// The most components of one walk.
pub const MAX_WALK: usize = 64;
/// The most watches of a connection; more is `ENOSPC`.
pub const MAX_WATCHES: usize = 8192;
/// The most names of one `OpenMany`: their descriptors fit one packet.
pub const MAX_OPEN: usize = 64;
/// The most names of one `HaveXattrs`.
pub const MAX_NAMES: usize = 256;
/// The most nodes of one `Forget`.
pub const MAX_FORGET: usize = 4096;
/// The largest value of an extended attribute (`XATTR_SIZE_MAX`).
pub const MAX_XATTR: usize = 65536;
/// The longest symbolic link (`PATH_MAX`).
pub const MAX_LINK: usize = 4096;

/// A host inode, as the sentry names it. Never used twice in a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct NodeId(pub u64);

/// Bytes that need not be UTF-8: names, link targets, attribute values.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Bytes(pub Vec<u8>);

/// Seconds and nanoseconds since the epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Time {
    /// Seconds; negative before 1970.
    pub sec: i64,
    /// 0 to 999,999,999.
    pub nsec: u32,
}

/// What statx(2) tells of an inode. Ids are those of the initial user namespace (see [`crate::oracle`]).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Attr {
    /// Type and permission bits, as `st_mode`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Number of hard links.
    pub nlink: u32,
    /// Size in bytes.
    pub size: u64,
    /// Allocated blocks of 512 bytes.
    pub blocks: u64,
    /// Preferred size of reads and writes.
    pub blksize: u32,
    /// Inode number.
    pub ino: u64,
    /// Device that holds the inode, in `st_dev`'s form.
    pub dev: u64,
    /// The device that the inode stands for, in `st_rdev`'s form.
    pub rdev: u64,
    /// Last read.
    pub atime: Time,
    /// Last change of content.
    pub mtime: Time,
    /// Last change of the inode.
    pub ctime: Time,
    /// Birth, where the file system keeps it.
    pub btime: Option<Time>,
    /// `stx_attributes`: `STATX_ATTR_*` bits.
    pub attributes: u64,
    /// `stx_attributes_mask`: the bits of `attributes` that the file system supports.
    pub attributes_mask: u64,
    /// Whether there is an access control list that says more than the mode; `None` where nobody looked (pages of
    /// directories).
    pub acl: Option<bool>,
}

/// How a regular file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct OpenFlags {
    /// The descriptor can be read.
    pub read: bool,
    /// The descriptor can be written: needs a writable mount.
    pub write: bool,
    /// `O_APPEND`.
    pub append: bool,
    /// `O_TRUNC`: needs `write`.
    pub truncate: bool,
}

/// A new time for [`SetAttr`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SetTime {
    /// The host's clock, now. Differs from a given time in rights (utimensat(2)) and in being exact.
    Now,
    /// This time.
    At(Time),
}

/// What to change of an inode: each field that is given. Order: size, owner, mode, times.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct SetAttr {
    /// Permission bits (07777).
    pub mode: Option<u32>,
    /// New owner.
    pub uid: Option<u32>,
    /// New group.
    pub gid: Option<u32>,
    /// New size; regular files only.
    pub size: Option<u64>,
    /// Last read.
    pub atime: Option<SetTime>,
    /// Last change of content.
    pub mtime: Option<SetTime>,
}

/// Mode and owner of a new inode. The umask is the sentry's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NewInode {
    /// Permission bits (07777).
    pub mode: u32,
    /// More of them, which count in a directory with a default list (acl(5)): there is no umask there.
    pub masked: u32,
    /// Owner and group. In a directory with the set-group-id bit the group is the directory's, as Linux has it.
    /// `None`, and any id that the gofer may not give, leaves the gofer's own.
    pub owner: Option<(u32, u32)>,
}

/// What [`Request::Mknod`] makes. Devices are not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum NodeKind {
    /// An empty regular file.
    Regular,
    /// A FIFO, as an inode.
    Fifo,
    /// A socket, as an inode.
    Socket,
}

/// What a rename does with an existing target (renameat2(2)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RenameMode {
    /// Replaces it.
    Replace,
    /// Fails with EEXIST.
    NoReplace,
    /// Swaps the two.
    Exchange,
}

/// How an extended attribute is set (setxattr(2)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum XattrMode {
    /// Created or replaced.
    Any,
    /// EEXIST if it exists.
    Create,
    /// ENODATA if it does not.
    Replace,
}

/// What the sentry asks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Request {
    /// The root of a mount, by its place in [`crate::GoferConfig::mounts`]. → `Attached`
    Attach { mount: u32 },
    /// Down from `dir`, component by component; see the module's text. With `open`, and when every name was
    /// walked and the last is a regular file, opens it too. → `Walked`, with a descriptor when `opened` is `Some(Ok)`
    Walk { dir: NodeId, names: Vec<Bytes>, open: Option<OpenFlags> },
    /// → `Attr`
    GetAttr { node: NodeId },
    /// → `Attr`, as it is afterwards
    SetAttr { node: NodeId, set: SetAttr },
    /// → `Opened`, with a descriptor
    Open { node: NodeId, flags: OpenFlags },
    /// Walks to each of at most [`MAX_OPEN`] names in `dir` and opens it for reading. What is no regular file, or cannot be
    /// had, is passed over: asked for by itself it gives the reason. → `OpenedMany`, with a descriptor for each step in it
    OpenMany { dir: NodeId, names: Vec<Bytes> },
    /// Walks to each of at most [`MAX_OPEN`] names in `dir` that is a directory, and gives the first page of its list with
    /// attributes, as long as they fit one message. → `Listed`
    ListMany { dir: NodeId, names: Vec<Bytes> },
    /// Which of at most [`MAX_NAMES`] names in `dir` may have extended attributes beside a security module's label: all of which
    /// it is not certain that they have none. → `Flags`
    HaveXattrs { dir: NodeId, names: Vec<Bytes> },
    /// Which of at most [`MAX_NAMES`] names in `dir`, there or not, the policy hides: of these no event is told. → `Flags`
    AreHidden { dir: NodeId, names: Vec<Bytes> },
    /// Makes a regular file, `O_EXCL`. → `Created`, with a descriptor
    Create { dir: NodeId, name: Bytes, new: NewInode, flags: OpenFlags },
    /// Makes a regular file without a name (`O_TMPFILE`), which `Link` may name later. → `Created`, with a descriptor
    TmpFile { dir: NodeId, new: NewInode, flags: OpenFlags },
    /// A page of a directory from `cursor` on: 0 for the start, else a page's `next` or an entry's `next`. `.` and
    /// `..` are left out. → `Dir`
    ReadDir { dir: NodeId, cursor: u64, attrs: bool },
    /// → `Bytes`
    Readlink { node: NodeId },
    /// → `Made`
    Symlink { dir: NodeId, name: Bytes, target: Bytes, owner: Option<(u32, u32)> },
    /// → `Made`
    Mkdir { dir: NodeId, name: Bytes, new: NewInode },
    /// → `Made`
    Mknod { dir: NodeId, name: Bytes, new: NewInode, kind: NodeKind },
    /// Gives `node` one more name. → `Attr` of the node afterwards
    Link { node: NodeId, dir: NodeId, name: Bytes },
    /// → `Done`
    Rename { from: NodeId, from_name: Bytes, to: NodeId, to_name: Bytes, mode: RenameMode },
    /// → `Done`
    Unlink { dir: NodeId, name: Bytes },
    /// → `Done`
    Rmdir { dir: NodeId, name: Bytes },
    /// → `StatFs`
    StatFs { node: NodeId },
    /// → `Bytes`
    GetXattr { node: NodeId, name: Bytes },
    /// → `Done`
    SetXattr { node: NodeId, name: Bytes, value: Bytes, mode: XattrMode },
    /// Names, each ended by NUL. → `Bytes`
    ListXattr { node: NodeId },
    /// → `Done`
    RemoveXattr { node: NodeId, name: Bytes },
    /// The host's fsync, or fdatasync, of a regular file or directory. → `Done`
    Fsync { node: NodeId, data_only: bool },
    /// syncfs(2) of the node's file system. → `Done`
    SyncFs { node: NodeId },
    /// Watches the node's inode with the connection's one inotify(7) instance. `events` are `IN_*` bits: events,
    /// `IN_EXCL_UNLINK`, `IN_MASK_ADD`, `IN_ONESHOT`. Watching an inode again gives the same number. → `Watching`, with the
    /// instance's descriptor, non-blocking
    Watch { node: NodeId, events: u32 },
    /// Ends a watch; also one that the host ended (`IN_IGNORED`), which counts until then. → `Done`, or `EINVAL`
    Unwatch { watch: i32 },
    /// A new file in memory, opened twice: for reading and writing, and for reading alone. Only here can a file be opened
    /// again, and what a guest may only read must be mapped from a descriptor that cannot write. Sealing is possible.
    /// → `Memory`, with both descriptors in this order
    Memory,
    /// Nodes that the sentry no longer uses; unknown ones are ignored. → `Done`
    Forget { nodes: Vec<NodeId> },
}

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Fault {
    /// What the host answered, or what Linux would have.
    Errno(i32),
    /// The policy hides the path; the name of the rule.
    Denied(String),
}

/// A node with what is known of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The new node.
    pub node: NodeId,
    /// Its attributes.
    pub attr: Attr,
    /// A symbolic link's target; `None` for everything else.
    pub link: Option<Bytes>,
}

/// Why a walk ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum WalkEnd {
    /// Every name was walked.
    Complete,
    /// The last step is a symbolic link or another non-directory, and names are left. The sentry decides.
    Stopped,
    /// The first name that has no step failed: `Errno(ENOENT)`, `Denied` and so on. The steps before it are good.
    Failed(Fault),
}

/// A mount's root.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attached {
    /// The root's node: a directory, or a regular file when the mount is of one.
    pub root: Step,
    /// Whether the mount may be changed.
    pub writable: bool,
}

/// What a walk saw. There are at most as many steps as names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Walked {
    /// One for each component walked.
    pub steps: Vec<Step>,
    /// Why it ended.
    pub end: WalkEnd,
    /// The outcome of `open`; `None` when it was not asked or did not come to it.
    pub opened: Option<Result<(), i32>>,
}

/// One name of a directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DirEntry {
    /// The name.
    pub name: Bytes,
    /// Inode number.
    pub ino: u64,
    /// `DT_*`.
    pub kind: u8,
    /// The cursor that continues after this entry.
    pub next: u64,
    /// Attributes: when they were asked, unless the name is hidden or vanished meanwhile.
    pub attr: Option<Attr>,
}

/// A part of a directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DirPage {
    /// In the host's order.
    pub entries: Vec<DirEntry>,
    /// Where to go on; `None` at the end.
    pub next: Option<u64>,
}

/// What statfs(2) tells.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct StatFs {
    /// `f_type`.
    pub kind: u64,
    /// `f_bsize`.
    pub bsize: u64,
    /// `f_frsize`.
    pub frsize: u64,
    /// `f_blocks`.
    pub blocks: u64,
    /// `f_bfree`.
    pub bfree: u64,
    /// `f_bavail`.
    pub bavail: u64,
    /// `f_files`.
    pub files: u64,
    /// `f_ffree`.
    pub ffree: u64,
    /// `f_fsid`.
    pub fsid: u64,
    /// `f_namelen`.
    pub namelen: u64,
    /// `ST_*` flags.
    pub flags: u64,
}

/// What the gofer answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Response {
    /// The request failed as a whole, and changed nothing that its errno does not say.
    Fault(Fault),
    /// Nothing to tell.
    Done,
    /// To `Attach`.
    Attached(Attached),
    /// To `Walk`.
    Walked(Walked),
    /// Attributes.
    Attr(Attr),
    /// With a descriptor of a regular file; its attributes from that descriptor.
    Opened(Attr),
    /// To `OpenMany`: one for each name. With as many descriptors as there are steps, in their order.
    OpenedMany(Vec<Option<Step>>),
    /// To `ListMany`: one for each name.
    Listed(Vec<Option<(Step, DirPage)>>),
    /// To `HaveXattrs` and `AreHidden`: one for each name.
    Flags(Vec<bool>),
    /// With a descriptor of a new regular file.
    Created(Step),
    /// To `Symlink`, `Mkdir`, `Mknod`.
    Made(Step),
    /// To `ReadDir`.
    Dir(DirPage),
    /// A target, value or list.
    Bytes(Bytes),
    /// To `StatFs`.
    StatFs(StatFs),
    /// To `Watch`, with a descriptor: the watch's number in the instance.
    Watching(i32),
    /// With two descriptors of one new file.
    Memory,
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> serde::de::Visitor<'de> for Visit {
            type Value = Bytes;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(bytes))
            }
        }
        from.deserialize_byte_buf(Visit)
    }
}
