//! The host's files below the changes of earlier runs: what `--upper DIR` shows beneath this run's own layer.
//!
//! DIR has overlayfs's form with the mount option `userxattr`
//! (<https://docs.kernel.org/filesystems/overlayfs.html>), which ordinary users can make and the kernel can mount: a
//! deleted name is an empty regular file with the attribute `user.overlay.whiteout`, in a directory whose
//! `user.overlay.opaque` is `x`; `y` there says that nothing below shows. A character device 0/0 is a deleted name too.
//! Nothing is written here: at the end of a run the launcher applies what changed.

use super::gofer::GoferInode;
use crate::fail::{Fail, SysResult};
use crate::sync::Lock;
use crate::task::Task;
use crate::vfs::acl::Acl;
use crate::vfs::attr::Attr;
use crate::vfs::inode::{Inode, Listed, StatFs};
use rustix::fd::OwnedFd;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use syscall_table::abi::{S_IFCHR, S_IFDIR, S_IFREG};
use syscall_table::errno::Errno;

const PRIVATE: &[u8] = b"user.overlay.";
const OPAQUE: &[u8] = b"user.overlay.opaque";
const WHITEOUT: &[u8] = b"user.overlay.whiteout";
/// Names of the upper directory that begin so are those of checkpoints, and no file's: no layer has a name of `.wh..`.
pub const CHECKPOINT: &[u8] = b".wh..lazaret-";

/// An inode of the upper directory, over one of the host's if both are directories.
pub struct Merged {
    upper: Arc<dyn Inode>,
    lower: Option<Arc<dyn Inode>>,
    marks: OnceLock<Marks>,
    listed: OnceLock<Arc<Vec<Listed>>>,
    /// Names of the upper directory when it was first looked into. Other runs may add to it when they end: that is below this
    /// run's layer for the next one.
    names: OnceLock<HashSet<Box<[u8]>>>,
    /// Its directories that were looked up, so that they are those of the first look each time.
    dirs: parking_lot::Mutex<ByName>,
}

type ByName = HashMap<Box<[u8]>, Arc<dyn Inode>>;

/// What a directory says of names below it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    /// No name is deleted by an attribute.
    None,
    /// Some may be.
    Some,
    /// Nothing below shows.
    Opaque,
}

impl Merged {
    /// The directory `upper` over the directory `lower`.
    ///
    /// # Errors
    /// ENOTDIR.
    pub fn root(upper: Arc<GoferInode>, lower: Arc<dyn Inode>) -> SysResult<Arc<dyn Inode>> {
        if !upper.is_dir() || !lower.is_dir() {
            return Err(Errno::ENOTDIR.into());
        }
        Ok(Self::make(upper, Some(lower)))
    }

    fn make(upper: Arc<dyn Inode>, lower: Option<Arc<dyn Inode>>) -> Arc<dyn Inode> {
        Arc::new(Merged {
            upper,
            lower,
            marks: OnceLock::new(),
            listed: OnceLock::new(),
            names: OnceLock::new(),
            dirs: parking_lot::Mutex::default(),
        })
    }

    fn marks(&self) -> Marks {
        *self.marks.get_or_init(|| match self.upper.get_xattr(OPAQUE).as_deref() {
            Ok(b"y") => Marks::Opaque,
            Ok(b"x") => Marks::Some,
            _ => Marks::None,
        })
    }

    /// Whether the upper directory had this name.
    fn has(&self, name: &[u8]) -> SysResult<bool> {
        if let Some(names) = self.names.get() {
            return Ok(names.contains(name));
        }
        let names = self.upper.list()?.iter().map(|entry| entry.name.clone()).collect();
        Ok(self.names.get_or_init(|| names).contains(name))
    }

    /// What shows through.
    fn below(&self) -> Option<&Arc<dyn Inode>> {
        self.lower.as_ref().filter(|_| self.marks() != Marks::Opaque)
    }

    /// Whether a name of the upper directory says that there is none.
    fn is_gone(&self, inode: &Arc<dyn Inode>) -> SysResult<bool> {
        match inode.kind() {
            S_IFCHR => Ok(inode.attr()?.rdev == 0),
            S_IFREG if self.marks() == Marks::Some => {
                Ok(inode.attr()?.size == 0 && inode.get_xattr(WHITEOUT).is_ok())
            }
            _ => Ok(false),
        }
    }
}

impl Inode for Merged {
    fn kind(&self) -> u32 {
        self.upper.kind()
    }

    fn attr(&self) -> SysResult<Attr> {
        self.upper.attr()
    }

    fn access_acl(&self) -> Option<Arc<Acl>> {
        self.upper.access_acl()
    }

    fn lookup_free(&self, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        if self.kind() != S_IFDIR {
            return Err(Errno::ENOTDIR.into());
        }
        if let Some(dir) = self.dirs.lock().get(name) {
            return Ok(dir.clone());
        }
        let upper = match !name.starts_with(CHECKPOINT) && self.has(name)? {
            true => self.upper.lookup_free(name),
            false => Err(Errno::ENOENT.into()),
        };
        match upper {
            Ok(upper) if self.is_gone(&upper)? => Err(Errno::ENOENT.into()),
            Ok(upper) => {
                let lower = match self.below().filter(|_| upper.is_dir()) {
                    Some(below) => below.lookup_free(name).ok().filter(|lower| lower.is_dir()),
                    None => None,
                };
                let is_dir = upper.is_dir();
                let found = Self::make(upper, lower);
                if !is_dir {
                    return Ok(found);
                }
                Ok(self.dirs.lock().entry(name.into()).or_insert(found).clone())
            }
            Err(Fail::Error(Errno::ENOENT)) => match self.below() {
                Some(below) => below.lookup_free(name),
                None => Err(Errno::ENOENT.into()),
            },
            Err(fail) => Err(fail),
        }
    }

    fn readlink(&self, task: &Task) -> SysResult<Vec<u8>> {
        self.upper.readlink(task)
    }

    fn target(&self) -> SysResult<Vec<u8>> {
        self.upper.target()
    }

    fn host_file(&self, write: bool) -> SysResult<Arc<OwnedFd>> {
        if write { Err(Errno::EROFS.into()) } else { self.upper.host_file(false) }
    }

    fn list(&self) -> SysResult<Arc<Vec<Listed>>> {
        if let Some(listed) = self.listed.get() {
            return Ok(listed.clone());
        }
        let mut all = Vec::new();
        let mut here: HashSet<Box<[u8]>> = HashSet::new();
        for entry in self.upper.list()?.iter().filter(|entry| !entry.name.starts_with(CHECKPOINT)) {
            here.insert(entry.name.clone());
            let doubtful = match entry.kind {
                // DT_CHR, DT_REG.
                2 => true,
                8 => self.marks() == Marks::Some,
                _ => false,
            };
            if !doubtful || !self.is_gone(&self.upper.lookup_free(&entry.name)?)? {
                all.push(entry.clone());
            }
        }
        if let Some(below) = self.below() {
            all.extend(below.list()?.iter().filter(|entry| !here.contains(&entry.name)).cloned());
        }
        Ok(self.listed.get_or_init(|| Arc::new(all)).clone())
    }

    fn statfs(&self) -> SysResult<StatFs> {
        self.upper.statfs()
    }

    fn get_xattr(&self, name: &[u8]) -> SysResult<Vec<u8>> {
        if name.starts_with(PRIVATE) { Err(Errno::ENODATA.into()) } else { self.upper.get_xattr(name) }
    }

    fn list_xattr(&self) -> SysResult<Vec<Vec<u8>>> {
        Ok(self.upper.list_xattr()?.into_iter().filter(|name| !name.starts_with(PRIVATE)).collect())
    }

    fn file_caps(&self) -> Option<Vec<u8>> {
        self.upper.file_caps()
    }

    fn attachment(&self) -> Option<&Lock<Option<Arc<dyn Any + Send + Sync>>>> {
        self.upper.attachment()
    }
}
