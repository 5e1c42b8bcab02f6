//! Inodes that exist by computation: generated files, links by function, fixed directories.

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::sync::{Level, Lock};
use crate::task::Task;
use crate::task::creds::Creds;
use crate::vfs::attr::{Attr, FileTime};
use crate::vfs::file::{File, FileOps, Written};
use crate::vfs::inode::{Caching, Inode, Listed, SetAttr, StatFs, dirent_kind};
use crate::vfs::path::Path;
use std::sync::Arc;
use syscall_table::abi::{PROC_SUPER_MAGIC, S_IFDIR, S_IFLNK, S_IFREG};
use syscall_table::errno::Errno;

/// What all inodes of one such file system share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Super {
    /// Device number.
    pub dev: u64,
    /// f_type.
    pub magic: i64,
}

impl Super {
    pub(super) fn attr(&self, ino: u64, mode: u32, owner: (u32, u32)) -> Attr {
        let now = FileTime::now();
        Attr {
            dev: self.dev,
            ino,
            mode,
            nlink: if mode & S_IFDIR == S_IFDIR { 2 } else { 1 },
            uid: owner.0,
            gid: owner.1,
            blksize: 4096,
            atime: now,
            mtime: now,
            ctime: now,
            ..Attr::default()
        }
    }

    pub(super) fn statfs(&self) -> SysResult<StatFs> {
        Ok(StatFs { kind: self.magic, bsize: 4096, namelen: 255, ..StatFs::default() })
    }
}

/// A number for a name: the same each time.
pub(super) fn ino(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().flat_map(|p| p.iter().chain(&[0])) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash >> 20 | 1 << 32
}

type Make = Box<dyn Fn(&Task) -> SysResult<Vec<u8>> + Send + Sync>;
type Take = Box<dyn Fn(&Task, &[u8]) -> SysResult<()> + Send + Sync>;
type Follow = Box<dyn Fn(&Task) -> SysResult<Option<Path>> + Send + Sync>;

/// A file whose text is made when it is read from the start.
pub(super) struct Generated {
    pub fs: Super,
    pub ino: u64,
    pub mode: u32,
    pub owner: (u32, u32),
    pub make: Make,
    pub take: Option<Take>,
}

impl Inode for Generated {
    fn kind(&self) -> u32 {
        S_IFREG
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(self.fs.attr(self.ino, S_IFREG | self.mode, self.owner))
    }

    fn open(self: Arc<Self>, task: &Arc<Task>, _: i32) -> SysResult<Arc<dyn FileOps>> {
        Ok(Arc::new(Text::new(self, task)))
    }

    fn truncate(&self, _: u64) -> SysResult<()> {
        Ok(())
    }

    fn statfs(&self) -> SysResult<StatFs> {
        self.fs.statfs()
    }
}

impl Source for Generated {
    fn make(&self, cx: &mut Cx) -> SysResult<Vec<u8>> {
        (self.make)(cx.task)
    }

    fn take(&self, cx: &mut Cx, _: &Creds, data: &[u8]) -> SysResult<()> {
        let take = self.take.as_ref().ok_or(Errno::EACCES)?;
        take(cx.task, data)
    }
}

/// The text of an open file: made when it is read from the start, and kept for the rest.
pub(super) struct Made(Lock<Option<Arc<Vec<u8>>>>);

impl Default for Made {
    fn default() -> Self {
        Made(Lock::new(Level::Report, None))
    }
}

impl Made {
    /// read(2) at `offset`. No lock may be held that `make` takes.
    ///
    /// # Errors
    /// Those of `make`.
    pub(super) fn read(
        &self,
        buf: &mut [u8],
        offset: u64,
        make: impl FnOnce() -> SysResult<Vec<u8>>,
    ) -> SysResult<usize> {
        let kept = if offset == 0 { None } else { self.0.lock().clone() };
        let text = match kept {
            Some(text) => text,
            None => {
                let text = Arc::new(make()?);
                *self.0.lock() = Some(text.clone());
                text
            }
        };
        Ok(copy_at(&text, buf, offset))
    }
}

/// Copies what there is at `offset`: how many bytes.
pub(crate) fn copy_at(text: &[u8], buf: &mut [u8], offset: u64) -> usize {
    let at = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
    let rest = text.get(at..).unwrap_or_default();
    let count = rest.len().min(buf.len());
    if let (Some(to), Some(from)) = (buf.get_mut(..count), rest.get(..count)) {
        to.copy_from_slice(from);
    }
    count
}

/// A file whose text depends on who reads it and when.
pub(super) trait Source: Inode {
    /// The text now.
    fn make(&self, cx: &mut Cx) -> SysResult<Vec<u8>>;

    /// Takes what is written, wherever, to a file that `opener` has opened.
    fn take(&self, cx: &mut Cx, opener: &Creds, data: &[u8]) -> SysResult<()>;
}

/// An open one: its text is made when it is read from the start.
pub(super) struct Text<S> {
    inode: Arc<S>,
    opener: Arc<Creds>,
    text: Made,
}

impl<S: Source> Text<S> {
    pub(super) fn new(inode: Arc<S>, opener: &Task) -> Text<S> {
        Text { inode, opener: opener.creds(), text: Made::default() }
    }
}

impl<S: Source> FileOps for Text<S> {
    fn read(&self, cx: &mut Cx, _: &File, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        self.text.read(buf, offset, || self.inode.make(cx))
    }

    fn write(&self, cx: &mut Cx, _: &File, data: &[u8], offset: u64) -> SysResult<Written> {
        self.inode.take(cx, &self.opener, data)?;
        Ok(Written { count: data.len(), end: offset.saturating_add(data.len() as u64) })
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> SysResult<u64> {
        Ok(0)
    }

    fn attr(&self) -> SysResult<Attr> {
        self.inode.attr()
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        Some(self.inode.clone())
    }
}

/// A symbolic link whose target is computed.
pub(super) struct Link {
    pub fs: Super,
    pub ino: u64,
    pub owner: (u32, u32),
    pub text: Make,
    pub follow: Option<Follow>,
}

impl Inode for Link {
    fn kind(&self) -> u32 {
        S_IFLNK
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(self.fs.attr(self.ino, S_IFLNK | 0o777, self.owner))
    }

    fn readlink(&self, task: &Task) -> SysResult<Vec<u8>> {
        (self.text)(task)
    }

    fn follow(&self, task: &Task) -> SysResult<Option<Path>> {
        match &self.follow {
            Some(follow) => follow(task),
            None => Ok(None),
        }
    }

    fn statfs(&self) -> SysResult<StatFs> {
        self.fs.statfs()
    }
}

/// A directory with fixed names.
pub(super) struct Fixed {
    pub fs: Super,
    pub ino: u64,
    pub names: Vec<(&'static [u8], Arc<dyn Inode>)>,
}

impl Inode for Fixed {
    fn kind(&self) -> u32 {
        S_IFDIR
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(self.fs.attr(self.ino, S_IFDIR | 0o555, (0, 0)))
    }

    fn set_attr(&self, _: &SetAttr) -> SysResult<()> {
        Err(Errno::EPERM.into())
    }

    fn caching(&self) -> Caching {
        Caching::Keep
    }

    fn given(&self) -> bool {
        self.fs.magic == PROC_SUPER_MAGIC
    }

    fn lookup_free(&self, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        self.names
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, inode)| inode.clone())
            .ok_or(Errno::ENOENT.into())
    }

    fn list(&self) -> SysResult<Arc<Vec<Listed>>> {
        let listed = |(name, inode): &(&'static [u8], Arc<dyn Inode>)| {
            Ok(Listed { name: (*name).into(), ino: inode.attr()?.ino, kind: dirent_kind(inode.kind()) })
        };
        Ok(Arc::new(self.names.iter().map(listed).collect::<SysResult<_>>()?))
    }

    fn statfs(&self) -> SysResult<StatFs> {
        self.fs.statfs()
    }
}
