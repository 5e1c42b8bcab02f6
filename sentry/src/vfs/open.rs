//! Opening files by name (open(2), openat2(2)).

use crate::fail::{Fail, SysResult};
use crate::task::Task;
use crate::task::creds::cap;
use crate::vfs::Vfs;
use crate::vfs::dir::{DirFile, PathFile};
use crate::vfs::file::{File, FileOps};
use crate::vfs::inode::{NewKind, NewOwner};
use crate::vfs::mount::{Written, mnt};
use crate::vfs::path::Path;
use crate::vfs::perm;
use crate::vfs::text::{Running, Writer};
use crate::vfs::walk::{Last, Walk};
use crate::vfs::watch;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::inotify::{IN_CREATE, IN_ISDIR, IN_OPEN};
use syscall_table::abi::open::*;
use syscall_table::abi::{S_IFBLK, S_IFCHR, S_IFIFO, S_IFSOCK, S_ISGID, S_IXGRP};
use syscall_table::errno::Errno;

impl Vfs {
    /// open(2) for `task`: `dirfd` may be AT_FDCWD. O_CLOEXEC is the caller's business; `mode` is masked by the umask here.
    ///
    /// # Errors
    /// As open(2); denials and gaps of the file system.
    pub fn open(
        &self,
        task: &Arc<Task>,
        dirfd: i32,
        path: &[u8],
        flags: i32,
        mode: u32,
    ) -> SysResult<Arc<File>> {
        self.open_resolving(task, dirfd, path, flags, mode, 0)
    }

    /// As [`open`](Self::open) with RESOLVE_ bits.
    pub fn open_resolving(
        &self,
        task: &Arc<Task>,
        dirfd: i32,
        path: &[u8],
        flags: i32,
        mode: u32,
        resolve: u64,
    ) -> SysResult<Arc<File>> {
        if flags & O_PATH == 0 && flags & (O_CREAT | O_DIRECTORY) == O_CREAT | O_DIRECTORY {
            return Err(Errno::EINVAL.into());
        }
        let mut walk = Walk::resolving(self, task, dirfd, path, resolve)?;
        if flags & O_PATH != 0 {
            let place = walk.to(path, flags & O_NOFOLLOW == 0)?;
            if flags & O_DIRECTORY != 0 && !place.inode().is_dir() {
                return Err(Errno::ENOTDIR.into());
            }
            let ops = Arc::new(PathFile(place.inode().clone()));
            return Ok(File::new(ops, flags & (O_PATH | O_DIRECTORY | O_NOFOLLOW), Some(place)));
        }
        if flags & O_TMPFILE == O_TMPFILE {
            return self.open_tmpfile(task, &mut walk, path, flags, mode);
        }
        if flags & O_CREAT == 0 {
            walk.opens = flags & (O_ACCMODE | O_DIRECTORY | O_TRUNC) == O_RDONLY;
            let place = walk.to(path, flags & O_NOFOLLOW == 0)?;
            return self.open_place(task, place, flags, false);
        }
        let mut last = walk.to_parent(path)?;
        loop {
            if last.slash && last.is_normal() {
                return Err(Errno::EISDIR.into());
            }
            if !last.is_normal() {
                return Err(if flags & O_EXCL != 0 { Errno::EEXIST } else { Errno::EISDIR }.into());
            }
            match walk.child(&last.dir, &last.name) {
                Ok(place) => {
                    if flags & O_EXCL != 0 {
                        return Err(Errno::EEXIST.into());
                    }
                    if place.inode().is_link() {
                        if flags & O_NOFOLLOW != 0 {
                            return Err(Errno::ELOOP.into());
                        }
                        match walk.through(&last.dir, &place)? {
                            Ok(there) => return self.open_place(task, there, flags, false),
                            Err(next) => last = next,
                        }
                        continue;
                    }
                    return self.open_place(task, place, flags, false);
                }
                Err(Fail::Error(Errno::ENOENT)) if !last.dir.inode().given() => {
                    match self.make_in(task, &last, NewKind::File, mode) {
                        Ok(place) => return self.open_place(task, place, flags, true),
                        // Somebody else was faster: it exists now.
                        Err(Fail::Error(Errno::EEXIST)) if flags & O_EXCL == 0 => {}
                        Err(fail) => return Err(fail),
                    }
                }
                Err(fail) => return Err(fail),
            }
        }
    }

    fn open_tmpfile(
        &self,
        task: &Arc<Task>,
        walk: &mut Walk<'_>,
        path: &[u8],
        flags: i32,
        mode: u32,
    ) -> SysResult<Arc<File>> {
        if flags & O_ACCMODE == O_RDONLY {
            return Err(Errno::EINVAL.into());
        }
        let dir = walk.to(path, true)?;
        if !dir.inode().is_dir() {
            return Err(Errno::ENOTDIR.into());
        }
        if dir.mount.read_only() {
            return Err(self.policy.read_only(&dir, b"", "create"));
        }
        let attr = dir.inode().attr()?;
        perm::check(&walk.creds, &attr, perm::WRITE | perm::EXEC)?;
        let (mode, masked) = masked(task, &dir, mode);
        let owner = NewOwner { mode, masked, uid: walk.creds.fsuid, gid: walk.creds.fsgid };
        let inode = dir.inode().tmpfile(owner, flags & O_EXCL == 0)?;
        let name = format!("#{}", inode.attr()?.ino);
        let dentry = dir.dentry.nameless(name.as_bytes(), inode);
        let place = Path { mount: dir.mount, dentry };
        let file = self.open_place(task, place, flags & !(O_TMPFILE | O_TRUNC), true)?;
        file.set_flags(O_TMPFILE, O_TMPFILE);
        Ok(file)
    }

    /// Makes `last.name` with the umask and the rules of ownership; rights on the directory are checked.
    ///
    /// # Errors
    /// EEXIST, EROFS, EACCES, ENOENT in a removed directory.
    pub(crate) fn make_in(&self, task: &Task, last: &Last, kind: NewKind<'_>, mode: u32) -> SysResult<Path> {
        let creds = task.creds();
        let dir = &last.dir;
        if dir.mount.read_only() {
            return Err(self.policy.read_only(dir, &last.name, "create"));
        }
        let attr = dir.inode().attr()?;
        perm::check(&creds, &attr, perm::WRITE | perm::EXEC)?;
        if dir.dentry.is_deleted() {
            return Err(Errno::ENOENT.into());
        }
        if matches!(kind, NewKind::Dir) && dir.dentry.is_deepest() {
            return Err(Fail::gap(Errno::ENOSPC, "directories nested by thousands"));
        }
        let (mode, masked) = masked(task, dir, mode);
        let mut owner = NewOwner { mode, masked, uid: creds.fsuid, gid: creds.fsgid };
        if attr.mode & S_ISGID != 0 {
            owner.gid = attr.gid;
            if matches!(kind, NewKind::Dir) {
                owner.mode |= S_ISGID;
            } else if owner.mode & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP
                && !perm::in_group(&creds, attr.gid)
                && !creds.capable_of(attr.uid, attr.gid, cap::FSETID)
            {
                // Who is not of the group gives nobody its rights.
                owner.mode &= !S_ISGID;
            }
        }
        let inode = dir.inode().create(&last.name, kind, owner)?;
        let is_dir = if inode.is_dir() { IN_ISDIR } else { 0 };
        let dentry = dir.dentry.added(&last.name, inode);
        watch::tell(dir.inode(), IN_CREATE | is_dir, 0, &last.name);
        Ok(Path { mount: dir.mount.clone(), dentry })
    }

    /// Opens what was found. `created`: it was made for this open, so its mode does not matter.
    pub(crate) fn open_place(
        &self,
        task: &Arc<Task>,
        place: Path,
        flags: i32,
        created: bool,
    ) -> SysResult<Arc<File>> {
        let inode = place.inode();
        if inode.is_link() {
            return Err(if flags & O_DIRECTORY != 0 { Errno::ENOTDIR } else { Errno::ELOOP }.into());
        }
        let access = flags & O_ACCMODE;
        let truncates = flags & O_TRUNC != 0 && !created;
        let mut want = match access {
            O_RDONLY => perm::READ,
            O_WRONLY => perm::WRITE,
            _ => perm::READ | perm::WRITE,
        };
        if truncates {
            want |= perm::WRITE;
        }
        if inode.is_dir() {
            if want & perm::WRITE != 0 || flags & O_CREAT != 0 {
                return Err(Errno::EISDIR.into());
            }
        } else if flags & O_DIRECTORY != 0 {
            return Err(Errno::ENOTDIR.into());
        }
        if !created {
            let (creds, attr) = (task.creds(), inode.attr()?);
            perm::check_inode(task, &creds, inode, &attr, want)?;
            if flags & O_NOATIME != 0 && !perm::owns(&creds, &attr) {
                return Err(Errno::EPERM.into());
            }
        }
        if want & perm::WRITE != 0 && place.mount.read_only() && inode.is_file() {
            return Err(self.policy.read_only(&place, b"", "open for writing"));
        }
        if matches!(inode.kind(), S_IFCHR | S_IFBLK) && place.mount.refuses_devices() {
            return Err(Errno::EACCES.into());
        }
        if inode.kind() == S_IFSOCK {
            return Err(Errno::ENXIO.into());
        }
        let writer =
            if want & perm::WRITE != 0 && inode.is_file() { Some(Writer::new(inode)?) } else { None };
        if truncates && inode.is_file() {
            perm::drop_privileges(task, inode)?;
            inode.truncate(0)?;
        }
        let ops: Arc<dyn FileOps> = if inode.is_dir() {
            Arc::new(DirFile::new(place.clone()))
        } else if inode.kind() == S_IFIFO {
            // The handler of open(2) goes on with it: it may have to wait.
            Arc::new(PathFile(inode.clone()))
        } else {
            inode.clone().open(task, flags)?
        };
        if flags & O_DIRECT != 0 && !ops.takes_direct() {
            return Err(Errno::EINVAL.into());
        }
        watch::tell_place(&place, IN_OPEN);
        let place_mount = place.mount.clone();
        let kept = flags & !(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC);
        let file = File::new(ops, kept | O_LARGEFILE, Some(place));
        if created {
            file.created.store(true, Ordering::Relaxed);
        }
        if let Some(writer) = writer.filter(|_| access != O_RDONLY) {
            // The description is new: nothing is there.
            let _ = file.writer.set(writer);
            let _ = file.written.set(Written::new(&place_mount));
        }
        Ok(file)
    }

    /// Opens a program for execve: a regular file that the task may execute.
    ///
    /// # Errors
    /// EACCES for anything else; ETXTBSY; as open(2).
    pub fn open_exec(
        &self,
        task: &Arc<Task>,
        dirfd: i32,
        path: &[u8],
        nofollow: bool,
    ) -> SysResult<Arc<File>> {
        let mut walk = Walk::new(self, task, dirfd, path)?;
        walk.opens = true;
        let place = walk.to(path, !nofollow)?;
        self.open_exec_at(task, place)
    }

    /// As [`open_exec`](Self::open_exec) of a place that was found already (execveat with AT_EMPTY_PATH).
    pub fn open_exec_at(&self, task: &Arc<Task>, place: Path) -> SysResult<Arc<File>> {
        let inode = place.inode();
        if inode.is_link() {
            return Err(Errno::ELOOP.into());
        }
        if !inode.is_file() {
            return Err(Errno::EACCES.into());
        }
        if place.mount.has(mnt::NOEXEC) {
            return Err(Errno::EACCES.into());
        }
        perm::check(&task.creds(), &inode.attr()?, perm::EXEC)?;
        let running = Running::new(inode)?;
        let ops = inode.clone().open(task, O_RDONLY)?;
        let file = File::new(ops, O_LARGEFILE, Some(place));
        *file.running.lock() = Some(running);
        Ok(file)
    }

    /// The place that a `*at` call means. With AT_EMPTY_PATH and an empty path: that of the descriptor (or the working
    /// directory); None when the descriptor has none, and then the file itself counts.
    ///
    /// # Errors
    /// As path_resolution(7).
    pub fn lookup(&self, task: &Arc<Task>, dirfd: i32, path: &[u8], follow: bool) -> SysResult<Path> {
        Walk::new(self, task, dirfd, path)?.to(path, follow)
    }
}

/// The bits of a mode that a new name in `dir` is made with, and those that are left out: the umask counts where no list does
/// (umask(2)).
fn masked(task: &Task, dir: &Path, mode: u32) -> (u32, u32) {
    let umask = if dir.inode().has_default_acl() { 0 } else { *task.fs().umask.lock() };
    let mode = mode & 0o7777;
    (mode & !umask, mode & umask)
}
