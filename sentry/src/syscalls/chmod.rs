//! chmod(2), fchmod(2), fchmodat(2), fchmodat2(2), chown(2), fchown(2), lchown(2), fchownat(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::cap;
use crate::task::userns::Ids;
use crate::vfs::inode::SetAttr;
use crate::vfs::nameless;
use crate::vfs::perm;
use crate::vfs::watch::Target;
use syscall_table::abi::inotify::IN_ATTRIB;
use syscall_table::abi::open::*;
use syscall_table::abi::stat::*;
use syscall_table::errno::Errno;

/// The inode that a *at call is to change, on a mount that may be changed.
pub(super) fn inode_at(cx: &mut Cx, dirfd: i32, path: Path, flags: i32) -> SysResult<Target> {
    let path = cx.read_path(path.addr())?;
    let place = if path.is_empty() && flags & AT_EMPTY_PATH != 0 {
        if dirfd == AT_FDCWD {
            cx.kernel().vfs.cwd_of(cx.task)?
        } else {
            let file = cx.task.files().get_any(dirfd)?;
            match file.path.clone() {
                Some(place) => place,
                None => {
                    let inode = nameless::inode(&file)?;
                    return Ok(Target { inode, place: None });
                }
            }
        }
    } else {
        cx.kernel().vfs.lookup(cx.task, dirfd, &path, flags & AT_SYMLINK_NOFOLLOW == 0)?
    };
    if place.mount.read_only() {
        return Err(cx.kernel().vfs.policy.read_only(&place, b"", ""));
    }
    Ok(place.into())
}

/// The inode behind a descriptor, on a mount that may be changed.
pub(super) fn inode_of(cx: &mut Cx, fd: Fd) -> SysResult<Target> {
    let file = cx.task.files().get(fd.raw())?;
    if let Some(place) = file.path.as_ref().filter(|p| p.mount.read_only()) {
        return Err(cx.kernel().vfs.policy.read_only(place, b"", ""));
    }
    let inode = nameless::inode(&file)?;
    Ok(Target { inode, place: file.path.clone() })
}

fn set_mode(cx: &Cx, target: &Target, mode: Mode) -> SysResult {
    let inode = &target.inode;
    let creds = cx.task.creds();
    let attr = inode.attr()?;
    if inode.is_link() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    inode.settable()?;
    if !perm::owns(&creds, &attr) {
        return Err(Errno::EPERM.into());
    }
    let mut mode = mode.raw() & 0o7777;
    if !perm::in_group(&creds, attr.gid) && !creds.capable_of(attr.uid, attr.gid, cap::FSETID) {
        mode &= !S_ISGID;
    }
    inode.set_attr(&SetAttr { mode: Some(mode), ..SetAttr::default() })?;
    target.tell(IN_ATTRIB);
    Ok(0)
}

pub fn chmod(cx: &mut Cx, path: Path, mode: Mode) -> SysResult {
    let inode = inode_at(cx, AT_FDCWD, path, 0)?;
    set_mode(cx, &inode, mode)
}

pub fn fchmod(cx: &mut Cx, fd: Fd, mode: Mode) -> SysResult {
    let inode = inode_of(cx, fd)?;
    set_mode(cx, &inode, mode)
}

pub fn fchmodat(cx: &mut Cx, dirfd: DirFd, path: Path, mode: Mode) -> SysResult {
    let inode = inode_at(cx, dirfd.raw(), path, 0)?;
    set_mode(cx, &inode, mode)
}

pub fn fchmodat2(cx: &mut Cx, dirfd: DirFd, path: Path, mode: Mode, flags: AtFlags) -> SysResult {
    if flags.unknown(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let inode = inode_at(cx, dirfd.raw(), path, flags.bits())?;
    set_mode(cx, &inode, mode)
}

fn set_owner(cx: &Cx, target: &Target, owner: Uid, group: Gid) -> SysResult {
    let inode = &target.inode;
    let creds = cx.task.creds();
    let attr = inode.attr()?;
    inode.settable()?;
    let known = |ids, id: u32| -> SysResult<Option<u32>> {
        match id {
            u32::MAX => Ok(None),
            id => Ok(Some(creds.ns.to_kernel(ids, id).ok_or(Errno::EINVAL)?)),
        }
    };
    let (uid, gid) = (known(Ids::Users, owner.raw())?, known(Ids::Groups, group.raw())?);
    let mut drop = 0;
    if !inode.is_dir() && !inode.is_link() {
        // Always the set-user-id bit; the set-group-id bit where it means that, not mandatory locking.
        let group = if attr.mode & S_IXGRP != 0 { S_ISGID } else { 0 };
        drop = attr.mode & (S_ISUID | group);
    }
    if !creds.capable_of(attr.uid, attr.gid, cap::CHOWN) {
        if (uid, gid, drop) == (None, None, 0) && creds.fsuid != attr.uid {
            // Nothing is asked for: anybody may.
            return Ok(0);
        }
        let keeps = uid.is_none_or(|uid| uid == attr.uid);
        let in_group = gid.is_none_or(|gid| gid == attr.gid || perm::in_group(&creds, gid));
        if creds.fsuid != attr.uid || !keeps || !in_group {
            return Err(Errno::EPERM.into());
        }
    }
    let mut set = SetAttr { uid, gid, ..SetAttr::default() };
    if !inode.is_dir() && !inode.is_link() {
        set.mode = (drop != 0).then_some(attr.mode & 0o7777 & !drop);
        inode.drop_file_caps();
    }
    inode.set_attr(&set)?;
    target.tell(IN_ATTRIB);
    Ok(0)
}

pub fn chown(cx: &mut Cx, path: Path, owner: Uid, group: Gid) -> SysResult {
    let inode = inode_at(cx, AT_FDCWD, path, 0)?;
    set_owner(cx, &inode, owner, group)
}

pub fn lchown(cx: &mut Cx, path: Path, owner: Uid, group: Gid) -> SysResult {
    let inode = inode_at(cx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW)?;
    set_owner(cx, &inode, owner, group)
}

pub fn fchown(cx: &mut Cx, fd: Fd, owner: Uid, group: Gid) -> SysResult {
    let inode = inode_of(cx, fd)?;
    set_owner(cx, &inode, owner, group)
}

pub fn fchownat(cx: &mut Cx, dirfd: DirFd, path: Path, owner: Uid, group: Gid, flags: AtFlags) -> SysResult {
    if flags.unknown(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let inode = inode_at(cx, dirfd.raw(), path, flags.bits())?;
    set_owner(cx, &inode, owner, group)
}
