//! What a file system offers for each of its files.

use crate::fail::{Fail, SysResult};
use crate::sync::Lock;
use crate::task::Task;
use crate::vfs::acl::Acl;
use crate::vfs::attr::{Attr, FileTime};
use crate::vfs::file::FileOps;
use crate::vfs::path::Path;
use crate::vfs::text::Busy;
use rustix::fd::OwnedFd;
use std::any::Any;
use std::sync::Arc;
use syscall_table::abi::{S_IFDIR, S_IFLNK, S_IFREG};
use syscall_table::errno::Errno;

/// How names of a directory may be remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// They change through this kernel alone: present and absent names stay true until it changes them.
    Keep,
    /// Somebody else may change them: asked again when older than a moment; absent names are not kept.
    Revalidate,
    /// Looked up every time (proc).
    Never,
}

/// A new time of [`SetAttr`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// The clock, now.
    Now,
    /// This time.
    At(FileTime),
}

/// What to change of an inode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// 12 permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Last access.
    pub atime: Option<SetTime>,
    /// Last modification.
    pub mtime: Option<SetTime>,
}

/// What [`Inode::create`] makes.
#[derive(Debug, Clone, Copy)]
pub enum NewKind<'a> {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link to this target.
    Link(&'a [u8]),
    /// FIFO, socket or device, by its S_IF* bits, with its device number.
    Special(u32, u64),
}

/// Mode (12 bits, umask applied unless [`Inode::has_default_acl`] says otherwise) and owner of a new inode.
#[derive(Debug, Clone, Copy)]
pub struct NewOwner {
    /// Permission bits.
    pub mode: u32,
    /// Those that the umask took, for who alone knows whether the directory's list says otherwise.
    pub masked: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// What [`Inode::lookup_many`] saw.
pub struct Found {
    /// The inodes of the first names, at most as many as asked.
    pub inodes: Vec<Arc<dyn Inode>>,
    /// Why the first name without an inode has none, if that is known.
    pub end: Option<Fail>,
}

/// What statfs(2) tells of a file system.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct StatFs {
    pub kind: i64,
    pub bsize: u64,
    pub blocks: u64,
    pub bfree: u64,
    pub bavail: u64,
    pub files: u64,
    pub ffree: u64,
    pub namelen: u64,
    pub flags: i64,
}

/// An inode of any file system.
///
/// Directory operations check nothing about rights: the path walk and [`Vfs`](crate::vfs::Vfs) did. Names are single
/// components of 1 to 255 bytes, neither `.` nor `..`.
#[allow(unused_variables)]
pub trait Inode: Any + Send + Sync {
    /// Type bits (S_IF*); never change.
    fn kind(&self) -> u32;

    /// Attributes now.
    fn attr(&self) -> SysResult<Attr>;

    /// The host's access control list of it, with the kernel's ids, if it says more than the mode. One that cannot be had
    /// is one that lets nobody in.
    fn access_acl(&self) -> Option<Arc<Acl>> {
        None
    }

    /// Changes attributes; EPERM by default.
    fn set_attr(&self, set: &SetAttr) -> SysResult<()> {
        Err(Errno::EPERM.into())
    }

    /// Whether its owner can change attributes at all: asked before who asks. EOPNOTSUPP otherwise.
    fn settable(&self) -> SysResult<()> {
        Ok(())
    }

    /// Whether this task may open or search it whatever its mode says.
    fn admits(&self, task: &Task) -> bool {
        false
    }

    /// How the names of this directory may be remembered.
    fn caching(&self) -> Caching {
        Caching::Keep
    }

    /// Whether [`lookup_many`](Self::lookup_many) is cheaper than one lookup after the other.
    fn walks_far(&self) -> bool {
        false
    }

    /// The inode of a name; ENOENT. ENOTDIR by default.
    fn lookup(&self, task: &Task, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        self.lookup_free(name)
    }

    /// As [`lookup`](Self::lookup) where it does not matter who asks.
    fn lookup_free(&self, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        Err(Errno::ENOTDIR.into())
    }

    /// Down several directories at once.
    ///
    /// `opens`: a file that the last name is will be opened for reading.
    fn lookup_many(&self, task: &Task, names: &[&[u8]], opens: bool) -> Found {
        let Some(first) = names.first() else { return Found { inodes: Vec::new(), end: None } };
        match self.lookup(task, first) {
            Ok(inode) => Found { inodes: vec![inode], end: None },
            Err(fail) => Found { inodes: Vec::new(), end: Some(fail) },
        }
    }

    /// Makes a name that does not exist (EEXIST if it does). EPERM by default.
    fn create(&self, name: &[u8], kind: NewKind<'_>, owner: NewOwner) -> SysResult<Arc<dyn Inode>> {
        Err(Errno::EPERM.into())
    }

    /// A regular file without a name (O_TMPFILE), which may get one if it is `linkable`. EOPNOTSUPP by default.
    fn tmpfile(&self, owner: NewOwner, linkable: bool) -> SysResult<Arc<dyn Inode>> {
        Err(Errno::EOPNOTSUPP.into())
    }

    /// One more name for `inode`, which is of the same file system.
    fn link(&self, name: &[u8], inode: &Arc<dyn Inode>) -> SysResult<()> {
        Err(Errno::EPERM.into())
    }

    /// Removes a name that is no directory; `inode` is what it names.
    fn unlink(&self, name: &[u8], inode: &Arc<dyn Inode>) -> SysResult<()> {
        Err(Errno::EPERM.into())
    }

    /// Removes an empty directory.
    fn rmdir(&self, name: &[u8], inode: &Arc<dyn Inode>) -> SysResult<()> {
        Err(Errno::EPERM.into())
    }

    /// Moves `name` (which is `inode`) to `to_name` in `to`, over `target` if there is one; with `exchange` swaps the two.
    fn rename(
        &self,
        name: &[u8],
        inode: &Arc<dyn Inode>,
        to: &Arc<dyn Inode>,
        to_name: &[u8],
        target: Option<&Arc<dyn Inode>>,
        exchange: bool,
    ) -> SysResult<()> {
        Err(Errno::EPERM.into())
    }

    /// The target of a symbolic link.
    fn readlink(&self, task: &Task) -> SysResult<Vec<u8>> {
        Err(Errno::EINVAL.into())
    }

    /// As [`readlink`](Self::readlink), where it does not matter who asks.
    fn target(&self) -> SysResult<Vec<u8>> {
        Err(Errno::EINVAL.into())
    }

    /// Where a link leads that has no path of its own to walk (/proc/self/exe). None: by its target.
    fn follow(&self, task: &Task) -> SysResult<Option<Path>> {
        Ok(None)
    }

    /// Opens it. `flags` as of open(2); O_TRUNC was dealt with. ENXIO by default.
    fn open(self: Arc<Self>, task: &Arc<Task>, flags: i32) -> SysResult<Arc<dyn FileOps>> {
        Err(Errno::ENXIO.into())
    }

    /// Sets the size of a regular file. EINVAL by default.
    fn truncate(&self, size: u64) -> SysResult<()> {
        Err(Errno::EINVAL.into())
    }

    /// A host descriptor with the contents of a regular file. EINVAL by default.
    fn host_file(&self, write: bool) -> SysResult<Arc<OwnedFd>> {
        Err(Errno::EINVAL.into())
    }

    /// The host description by which locks on it are held, where others on the host are to meet them.
    fn lock_file(&self) -> SysResult<Option<Arc<OwnedFd>>> {
        Ok(None)
    }

    /// Writes what was changed of a directory through to the disk (fsync(2)): nothing by default.
    fn sync_dir(&self) -> SysResult<()> {
        Ok(())
    }

    /// Writes its file system through to the disk (syncfs(2)): nothing by default.
    fn sync_fs(&self) -> SysResult<()> {
        Ok(())
    }

    /// Names of a directory with inode number and DT_ type, without `.` and `..`.
    fn list(&self) -> SysResult<Arc<Vec<Listed>>> {
        Err(Errno::ENOTDIR.into())
    }

    /// As [`list`](Self::list), where it depends on who asks (proc).
    fn list_for(&self, task: &Task) -> SysResult<Arc<Vec<Listed>>> {
        self.list()
    }

    /// Of its file system.
    fn statfs(&self) -> SysResult<StatFs> {
        Err(Errno::ENOSYS.into())
    }

    /// An extended attribute; ENODATA. EOPNOTSUPP by default.
    fn get_xattr(&self, name: &[u8]) -> SysResult<Vec<u8>> {
        Err(Errno::EOPNOTSUPP.into())
    }

    /// Sets one; `flags` are XATTR_CREATE and XATTR_REPLACE.
    fn set_xattr(&self, name: &[u8], value: &[u8], flags: i32) -> SysResult<()> {
        Err(Errno::EOPNOTSUPP.into())
    }

    /// Their names.
    fn list_xattr(&self) -> SysResult<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    /// Removes one; ENODATA.
    fn remove_xattr(&self, name: &[u8]) -> SysResult<()> {
        Err(Errno::EOPNOTSUPP.into())
    }

    /// The capabilities of a program file (capabilities(7)): the value of `security.capability`, if it has one.
    fn file_caps(&self) -> Option<Vec<u8>> {
        None
    }

    /// Whether new files in this directory get their rights by its list, not by the umask (acl(5)).
    fn has_default_acl(&self) -> bool {
        false
    }

    /// The contents change: capabilities of the file go.
    fn drop_file_caps(&self) {}

    /// A place for what belongs to the inode but not to its file system: a FIFO's pipe, a bound socket.
    fn attachment(&self) -> Option<&Lock<Option<Arc<dyn Any + Send + Sync>>>> {
        None
    }

    /// Its users as a program and for writing, where that matters (regular files).
    fn busy(&self) -> Option<&Busy> {
        None
    }

    /// Whether it may get a name though it has none: a file of O_TMPFILE, once.
    fn linkable(&self) -> bool {
        true
    }

    /// It was read: its access time may move. Nothing by default.
    fn accessed(&self) {}

    /// Whether the names of this directory are given: a name that is not there cannot be made, whoever asks (proc).
    fn given(&self) -> bool {
        false
    }

    /// Whether this is a directory.
    fn is_dir(&self) -> bool {
        self.kind() == S_IFDIR
    }

    /// Whether this is a symbolic link.
    fn is_link(&self) -> bool {
        self.kind() == S_IFLNK
    }

    /// Whether this is a regular file.
    fn is_file(&self) -> bool {
        self.kind() == S_IFREG
    }
}

/// One name of [`Inode::list`].
#[derive(Debug, Clone)]
pub struct Listed {
    /// The name.
    pub name: Box<[u8]>,
    /// Inode number.
    pub ino: u64,
    /// DT_ type.
    pub kind: u8,
}

/// DT_ type of S_IF* bits.
pub fn dirent_kind(mode: u32) -> u8 {
    ((mode >> 12) & 15) as u8
}

/// The inode as its concrete type.
pub fn downcast<T: Inode>(inode: &Arc<dyn Inode>) -> Option<Arc<T>> {
    let any: Arc<dyn Any + Send + Sync> = inode.clone();
    any.downcast::<T>().ok()
}
