//! Open directories, and descriptions that only name a place (O_PATH).

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::sync::{Level, Lock};
use crate::vfs::attr::Attr;
use crate::vfs::file::{DirEntry, File, FileOps};
use crate::vfs::inode::{Inode, Listed};
use crate::vfs::mountns::MountNs;
use crate::vfs::path::Path;
use std::sync::Arc;
use syscall_table::abi::{DT_DIR, SEEK_SET};
use syscall_table::errno::Errno;

/// An open directory. What it lists is taken at position 0 and stays the same until it is rewound.
pub struct DirFile {
    path: Path,
    listed: Lock<Option<Arc<Vec<Listed>>>>,
}

impl DirFile {
    /// Of this directory.
    pub fn new(path: Path) -> DirFile {
        DirFile { path, listed: Lock::new(Level::Object, None) }
    }
}

impl FileOps for DirFile {
    fn read(&self, _: &mut Cx, _: &File, _: &mut [u8], _: u64) -> SysResult<usize> {
        Err(Errno::EISDIR.into())
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> SysResult<u64> {
        Ok(i64::MAX as u64)
    }

    fn seek_special(&self, _: &File, offset: i64, whence: i32) -> SysResult<u64> {
        if whence == SEEK_SET {
            u64::try_from(offset).map_err(|_| Errno::EINVAL.into())
        } else {
            Err(Errno::EINVAL.into())
        }
    }

    fn attr(&self) -> SysResult<Attr> {
        self.path.inode().attr()
    }

    fn fsync(&self, _: bool) -> SysResult<()> {
        self.path.inode().sync_dir()
    }

    fn readdir(&self, cx: &mut Cx, file: &File, emit: &mut dyn FnMut(DirEntry<'_>) -> bool) -> SysResult<()> {
        let pos = *file.pos.lock();
        let kept = if pos == 0 { None } else { self.listed.lock().clone() };
        let listed = match kept {
            Some(listed) => listed,
            None => {
                if self.path.dentry.is_deleted() {
                    return Err(Errno::ENOENT.into());
                }
                let listed = self.path.inode().list_for(cx.task)?;
                *self.listed.lock() = Some(listed.clone());
                listed
            }
        };
        let own = self.path.inode().attr()?.ino;
        if pos < 1 && !emit(DirEntry { ino: own, next: 1, kind: DT_DIR, name: b"." }) {
            return Ok(());
        }
        if pos < 2 {
            let up = self.path.parent().and_then(|p| p.inode().attr().ok()).map_or(own, |a| a.ino);
            if !emit(DirEntry { ino: up, next: 2, kind: DT_DIR, name: b".." }) {
                return Ok(());
            }
        }
        let skip = usize::try_from(pos.saturating_sub(2)).unwrap_or(usize::MAX);
        for (i, entry) in listed.iter().enumerate().skip(skip) {
            if !emit(DirEntry { ino: entry.ino, next: i as u64 + 3, kind: entry.kind, name: &entry.name }) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        Some(self.path.inode().clone())
    }
}

/// O_PATH of a tree that is mounted nowhere (open_tree(2), fsmount(2)): it goes with the last descriptor.
pub struct LooseTree {
    inode: Arc<dyn Inode>,
    _space: Arc<MountNs>,
}

impl LooseTree {
    /// The tree that `space` holds.
    pub(crate) fn new(inode: Arc<dyn Inode>, space: Arc<MountNs>) -> LooseTree {
        LooseTree { inode, _space: space }
    }
}

impl FileOps for LooseTree {
    fn attr(&self) -> SysResult<Attr> {
        self.inode.attr()
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        Some(self.inode.clone())
    }
}

/// O_PATH: names a place and does nothing.
pub struct PathFile(pub Arc<dyn Inode>);

impl FileOps for PathFile {
    fn attr(&self) -> SysResult<Attr> {
        self.0.attr()
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        Some(self.0.clone())
    }
}
