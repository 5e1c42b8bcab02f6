//! Objects without a name (pipes, sockets, descriptors for events): the inode that Linux gives them in its own file systems.

use super::attr::{Attr, FileTime};
use super::file::File;
use super::inode::{Inode, SetAttr, SetTime, StatFs};
use crate::fail::SysResult;
use parking_lot::Mutex;
use std::sync::Arc;
use syscall_table::abi::stat::S_IFMT;
use syscall_table::errno::Errno;

/// Attributes that chmod, chown and utimensat change, of a pipe or a socket.
pub struct Owned(Mutex<Attr>);

impl Owned {
    /// With these to begin with.
    pub fn new(attr: Attr) -> Owned {
        Owned(Mutex::new(attr))
    }

    /// As they are now.
    pub fn attr(&self) -> Attr {
        self.0.lock().clone()
    }

    /// Changes them.
    pub fn set(&self, set: &SetAttr) {
        let now = FileTime::now();
        let time = |set: Option<SetTime>, old: FileTime| match set {
            None => old,
            Some(SetTime::Now) => now,
            Some(SetTime::At(at)) => at,
        };
        let mut attr = self.0.lock();
        attr.mode = set.mode.map_or(attr.mode, |mode| attr.mode & S_IFMT | mode & 0o7777);
        attr.uid = set.uid.unwrap_or(attr.uid);
        attr.gid = set.gid.unwrap_or(attr.gid);
        attr.atime = time(set.atime, attr.atime);
        attr.mtime = time(set.mtime, attr.mtime);
        attr.ctime = now;
    }
}

/// The inode of an open object that has none in a file system, for calls that change attributes.
struct Nameless {
    file: Arc<File>,
    kind: u32,
}

/// The inode behind a description.
///
/// # Errors
/// What its attributes cannot be read for.
pub(crate) fn inode(file: &Arc<File>) -> SysResult<Arc<dyn Inode>> {
    match file.ops.inode() {
        Some(inode) => Ok(inode),
        None => Ok(Arc::new(Nameless { file: file.clone(), kind: file.ops.attr()?.mode & S_IFMT })),
    }
}

/// What socket(7) sockets tell of their protocol.
const PROTOCOL: &[u8] = b"system.sockprotoname";

impl Inode for Nameless {
    fn kind(&self) -> u32 {
        self.kind
    }

    fn attr(&self) -> SysResult<Attr> {
        self.file.ops.attr()
    }

    fn settable(&self) -> SysResult<()> {
        // All descriptors for events share one inode in Linux, which nobody changes (anon_inode_setattr).
        if self.file.ops.owned().is_some() { Ok(()) } else { Err(Errno::EOPNOTSUPP.into()) }
    }

    fn set_attr(&self, set: &SetAttr) -> SysResult<()> {
        self.settable()?;
        if let Some(owned) = self.file.ops.owned() {
            owned.set(set);
        }
        Ok(())
    }

    fn get_xattr(&self, name: &[u8]) -> SysResult<Vec<u8>> {
        match self.file.ops.protocol() {
            Some(protocol) if name == PROTOCOL => Ok([protocol.as_bytes(), b"\0"].concat()),
            _ => Err(Errno::EOPNOTSUPP.into()),
        }
    }

    fn list_xattr(&self) -> SysResult<Vec<Vec<u8>>> {
        Ok(self.file.ops.protocol().map(|_| PROTOCOL.to_vec()).into_iter().collect())
    }

    fn statfs(&self) -> SysResult<StatFs> {
        Err(Errno::ENOSYS.into())
    }
}
