//! Making, removing and moving names.

use crate::fail::{Fail, SysResult};
use crate::fs::memfs::Node;
use crate::task::Task;
use crate::task::creds::cap;
use crate::vfs::Vfs;
use crate::vfs::inode::{NewKind, NewOwner, downcast};
use crate::vfs::path::Path;
use crate::vfs::perm;
use crate::vfs::walk::Walk;
use crate::vfs::watch;
use std::sync::Arc;
use syscall_table::abi::S_IFCHR;
use syscall_table::abi::inotify::*;
use syscall_table::abi::mount::{RENAME_EXCHANGE, RENAME_NOREPLACE, RENAME_WHITEOUT};
use syscall_table::errno::Errno;

/// A name as `*at` calls give it.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// Directory descriptor or AT_FDCWD.
    pub dirfd: i32,
    /// Path.
    pub path: &'a [u8],
}

impl Vfs {
    /// mkdir, mknod, symlink: makes a new name.
    ///
    /// # Errors
    /// EEXIST, ENOENT, EROFS, EACCES, and the file system's.
    pub fn make(&self, task: &Task, at: At<'_>, kind: NewKind<'_>, mode: u32) -> SysResult<Path> {
        let mut walk = Walk::new(self, task, at.dirfd, at.path)?;
        let last = walk.to_parent(at.path)?;
        if !last.is_normal() {
            return Err(Errno::EEXIST.into());
        }
        match walk.child(&last.dir, &last.name) {
            Ok(_) => return Err(Errno::EEXIST.into()),
            Err(Fail::Error(Errno::ENOENT)) if !last.dir.inode().given() => {}
            Err(fail) => return Err(fail),
        }
        if last.slash && !matches!(kind, NewKind::Dir) {
            return Err(Errno::ENOENT.into());
        }
        self.make_in(task, &last, kind, mode)
    }

    /// unlink, and rmdir with `dir`.
    ///
    /// # Errors
    /// As unlink(2), rmdir(2).
    pub fn remove(&self, task: &Task, at: At<'_>, dir: bool) -> SysResult<()> {
        let mut walk = Walk::new(self, task, at.dirfd, at.path)?;
        let last = walk.to_parent(at.path)?;
        if !last.is_normal() {
            return Err(match (dir, last.name.as_slice()) {
                (false, _) => Errno::EISDIR,
                (true, b".") => Errno::EINVAL,
                (true, b"..") => Errno::ENOTEMPTY,
                (true, _) => Errno::EBUSY,
            }
            .into());
        }
        let child = walk.child(&last.dir, &last.name)?;
        if last.dir.mount.read_only() {
            return Err(self.policy.read_only(&last.dir, &last.name, "remove"));
        }
        perm::check_delete(&walk.creds, &last.dir.inode().attr()?, &child.inode().attr()?)?;
        let is_dir = child.inode().is_dir();
        match (dir, is_dir) {
            (false, true) => return Err(Errno::EISDIR.into()),
            (true, false) => return Err(Errno::ENOTDIR.into()),
            (false, false) if last.slash => return Err(Errno::ENOTDIR.into()),
            _ => {}
        }
        if child.mount.id != last.dir.mount.id || self.is_point(task, &child) {
            return Err(Errno::EBUSY.into());
        }
        if dir {
            last.dir.inode().rmdir(&last.name, child.inode())?;
        } else {
            last.dir.inode().unlink(&last.name, child.inode())?;
        }
        last.dir.dentry.removed(&last.name);
        let is_dir = if is_dir { IN_ISDIR } else { 0 };
        if is_dir == 0 {
            watch::tell(child.inode(), IN_ATTRIB, 0, b"");
        }
        watch::tell(last.dir.inode(), IN_DELETE | is_dir, 0, &last.name);
        ended(child);
        Ok(())
    }

    /// A hard link at `new` to `old`.
    ///
    /// # Errors
    /// As link(2).
    pub fn link(&self, task: &Task, old: Path, new: At<'_>) -> SysResult<()> {
        let mut walk = Walk::new(self, task, new.dirfd, new.path)?;
        let last = walk.to_parent(new.path)?;
        if !last.is_normal() {
            return Err(Errno::EEXIST.into());
        }
        match walk.child(&last.dir, &last.name) {
            Ok(_) => return Err(Errno::EEXIST.into()),
            Err(Fail::Error(Errno::ENOENT)) if !last.dir.inode().given() => {}
            Err(fail) => return Err(fail),
        }
        if last.slash {
            return Err(Errno::ENOENT.into());
        }
        if old.mount.id != last.dir.mount.id {
            return Err(Errno::EXDEV.into());
        }
        if last.dir.mount.read_only() {
            return Err(self.policy.read_only(&last.dir, &last.name, "link"));
        }
        if old.inode().is_dir() {
            return Err(Errno::EPERM.into());
        }
        if old.inode().attr()?.nlink == 0 && !old.inode().linkable() {
            return Err(Errno::ENOENT.into());
        }
        perm::check(&walk.creds, &last.dir.inode().attr()?, perm::WRITE | perm::EXEC)?;
        last.dir.inode().link(&last.name, old.inode())?;
        last.dir.dentry.added(&last.name, old.inode().clone());
        watch::tell(old.inode(), IN_ATTRIB, 0, b"");
        watch::tell(last.dir.inode(), IN_CREATE, 0, &last.name);
        Ok(())
    }

    /// renameat2.
    ///
    /// # Errors
    /// As renameat2(2).
    pub fn rename(&self, task: &Task, old: At<'_>, new: At<'_>, flags: u32) -> SysResult<()> {
        let mut walk = Walk::new(self, task, old.dirfd, old.path)?;
        let from = walk.to_parent(old.path)?;
        let mut walk = Walk::new(self, task, new.dirfd, new.path)?;
        let to = walk.to_parent(new.path)?;
        if from.dir.mount.id != to.dir.mount.id {
            return Err(Errno::EXDEV.into());
        }
        if !from.is_normal() || !to.is_normal() {
            let exists = flags & RENAME_NOREPLACE != 0 && !to.is_normal();
            return Err(if exists { Errno::EEXIST } else { Errno::EBUSY }.into());
        }
        let exchange = flags & RENAME_EXCHANGE != 0;
        if flags & RENAME_WHITEOUT != 0 {
            if !walk.creds.capable(cap::MKNOD) {
                return Err(Errno::EPERM.into());
            }
            if downcast::<Node>(from.dir.inode()).is_none() {
                return Err(Fail::gap(
                    Errno::EINVAL,
                    "renameat2 flag RENAME_WHITEOUT on a mount of the host's",
                ));
            }
        }
        let child = walk.child(&from.dir, &from.name)?;
        let target = match walk.child(&to.dir, &to.name) {
            Ok(target) => Some(target),
            Err(Fail::Error(Errno::ENOENT)) => None,
            Err(fail) => return Err(fail),
        };
        if from.dir.mount.read_only() {
            return Err(self.policy.read_only(&from.dir, &from.name, "rename"));
        }
        if flags & RENAME_NOREPLACE != 0 && target.is_some() {
            return Err(Errno::EEXIST.into());
        }
        if exchange && target.is_none() {
            return Err(Errno::ENOENT.into());
        }
        let child_dir = child.inode().is_dir();
        if !child_dir && (from.slash || (to.slash && !exchange)) {
            return Err(Errno::ENOTDIR.into());
        }
        let (from_attr, to_attr) = (from.dir.inode().attr()?, to.dir.inode().attr()?);
        perm::check_delete(&walk.creds, &from_attr, &child.inode().attr()?)?;
        match &target {
            Some(target) => perm::check_delete(&walk.creds, &to_attr, &target.inode().attr()?)?,
            None => perm::check(&walk.creds, &to_attr, perm::WRITE | perm::EXEC)?,
        }
        let here = |path: &Path| path.mount.id == from.dir.mount.id && !self.is_point(task, path);
        if !here(&child) || target.as_ref().is_some_and(|t| !here(t)) {
            return Err(Errno::EBUSY.into());
        }
        let moving = self.moving.lock();
        // A directory cannot go below itself, nor over one of its own ancestors.
        if child_dir && below(&to.dir, &child) {
            return Err(Errno::EINVAL.into());
        }
        if let Some(target) = &target {
            if target.inode().is_dir() && below(&from.dir, target) {
                return Err(if exchange { Errno::EINVAL } else { Errno::ENOTEMPTY }.into());
            }
            // Two names of one inode: nothing happens.
            if Arc::ptr_eq(child.inode(), target.inode()) {
                return Ok(());
            }
            if !exchange {
                match (child_dir, target.inode().is_dir()) {
                    (true, false) => return Err(Errno::ENOTDIR.into()),
                    (false, true) => return Err(Errno::EISDIR.into()),
                    _ => {}
                }
            }
        }
        if to.dir.dentry.is_deleted() {
            return Err(Errno::ENOENT.into());
        }
        let over = target.as_ref().map(Path::inode);
        from.dir.inode().rename(&from.name, child.inode(), to.dir.inode(), &to.name, over, exchange)?;
        from.dir.dentry.renamed(&from.name, &child.dentry, &to.dir.dentry, &to.name, exchange);
        drop(moving);
        let (cookie, is_dir) = (watch::cookie(), if child_dir { IN_ISDIR } else { 0 });
        if Arc::ptr_eq(from.dir.inode(), to.dir.inode()) {
            watch::renamed(from.dir.inode());
        }
        watch::tell(from.dir.inode(), IN_MOVED_FROM | is_dir, cookie, &from.name);
        watch::tell(to.dir.inode(), IN_MOVED_TO | is_dir, cookie, &to.name);
        watch::tell(child.inode(), IN_MOVE_SELF | is_dir, 0, b"");
        if flags & RENAME_WHITEOUT != 0 {
            let owner = NewOwner { mode: 0, masked: 0, uid: walk.creds.fsuid, gid: walk.creds.fsgid };
            let white = from.dir.inode().create(&from.name, NewKind::Special(S_IFCHR, 0), owner)?;
            from.dir.dentry.added(&from.name, white);
        }
        if !exchange && let Some(target) = target {
            watch::tell(target.inode(), IN_ATTRIB, 0, b"");
            ended(target);
        }
        Ok(())
    }
}

/// A name went away. With the last one the watches on the inode let it go: it ends with its last descriptor.
fn ended(path: Path) {
    if watch::any() && path.inode().attr().is_ok_and(|attr| attr.nlink == 0 || path.inode().is_dir()) {
        watch::let_go(path.inode());
    }
}

/// Whether `path` is `dir` or lies below it.
fn below(path: &Path, dir: &Path) -> bool {
    path.dentry.is_below(&dir.dentry)
}
