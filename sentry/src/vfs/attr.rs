//! File attributes.

use crate::vfs::acl::Acl;
use crate::vfs::inode::Inode;
use std::sync::Arc;
use std::time::Duration;

/// A time of an inode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime {
    /// Seconds since the epoch; negative before 1970.
    pub sec: i64,
    /// 0 to 999,999,999.
    pub nsec: u32,
}

impl FileTime {
    /// The real-time clock's.
    pub fn now() -> FileTime {
        crate::time::realtime().into()
    }
}

impl From<Duration> for FileTime {
    fn from(since_epoch: Duration) -> FileTime {
        let sec = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
        FileTime { sec, nsec: since_epoch.subsec_nanos() }
    }
}

/// What stat(2) and statx(2) tell of an inode.
#[derive(Debug, Clone, Default)]
pub struct Attr {
    /// Device number of the file system, in the kernel's dev_t encoding of stat(2).
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Type and permissions (S_IF* and 12 bits).
    pub mode: u32,
    /// Hard links.
    pub nlink: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number for device files.
    pub rdev: u64,
    /// Bytes.
    pub size: u64,
    /// Preferred block size for I/O.
    pub blksize: u32,
    /// 512-byte blocks allocated.
    pub blocks: u64,
    /// Last access, since the epoch.
    pub atime: FileTime,
    /// Last modification of contents.
    pub mtime: FileTime,
    /// Last change of the inode.
    pub ctime: FileTime,
    /// Birth; None where the file system has none.
    pub btime: Option<FileTime>,
    /// Who may do what, where the mode does not say all of it.
    pub acl: Option<Access>,
}

/// An access control list, or who knows whether there is one.
#[derive(Clone)]
pub enum Access {
    /// This one.
    List(Arc<Acl>),
    /// Asked when it matters: the host has it ([`Inode::access_acl`]).
    Of(Arc<dyn Inode>),
}

impl Access {
    /// The list, if there is one. For one of the host's that may be a round trip: no lock of
    /// [`Level::Dir`](crate::sync::Level::Dir) or inner may be held.
    pub fn list(&self) -> Option<Arc<Acl>> {
        match self {
            Access::List(acl) => Some(acl.clone()),
            Access::Of(inode) => inode.access_acl(),
        }
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Access::List(acl) => acl.fmt(f),
            Access::Of(_) => f.write_str("the host's"),
        }
    }
}
