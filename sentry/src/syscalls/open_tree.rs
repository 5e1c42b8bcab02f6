//! open_tree(2), move_mount(2), mount_setattr(2).

use super::mount::refuse_beyond;
use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::ipc::install_file;
use crate::vfs::dir::{LooseTree, PathFile};
use crate::vfs::file::File;
use crate::vfs::mount::mnt;
use crate::vfs::path::Path as Place;
use crate::vfs::propagate::Type;
use std::sync::Arc;
use syscall_table::abi::mount::*;
use syscall_table::abi::open::*;
use syscall_table::errno::Errno;
use zerocopy::{FromZeros, IntoBytes};

/// AT_RECURSIVE of open_tree(2) and mount_setattr(2).
const AT_RECURSIVE: u32 = 0x8000;
const RDONLY: u64 = 0x1;
const NOSUID: u64 = 0x2;
const NODEV: u64 = 0x4;
const NOEXEC: u64 = 0x8;
const ATIME: u64 = 0x70;
const NOATIME: u64 = 0x10;
const STRICTATIME: u64 = 0x20;
const NODIRATIME: u64 = 0x80;
const IDMAP: u64 = 0x10_0000;
const NOSYMFOLLOW: u64 = 0x20_0000;

const PLAIN: [(u64, u32); 6] = [
    (RDONLY, mnt::READONLY),
    (NOSUID, mnt::NOSUID),
    (NODEV, mnt::NODEV),
    (NOEXEC, mnt::NOEXEC),
    (NODIRATIME, mnt::NODIRATIME),
    (NOSYMFOLLOW, mnt::NOSYMFOLLOW),
];

/// Flags of a mount for MOUNT_ATTR_ bits.
pub(super) fn plain(attr: u64) -> u32 {
    PLAIN.iter().filter(|(from, _)| attr & from != 0).fold(0, |all, (_, to)| all | to)
}

/// The flag for access times that MOUNT_ATTR__ATIME says; EINVAL.
pub(super) fn access_times(attr: u64) -> SysResult<u32> {
    match attr & ATIME {
        0 => Ok(mnt::RELATIME),
        NOATIME => Ok(mnt::NOATIME),
        STRICTATIME => Ok(0),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// MOUNT_ATTR_ bits of a mount.
pub(super) fn attributes(flags: u32) -> u64 {
    let plain = PLAIN.iter().filter(|(_, to)| flags & to != 0).fold(0, |all, (from, _)| all | from);
    plain
        | match flags & mnt::ATIME {
            flags if flags & mnt::NOATIME != 0 => NOATIME,
            flags if flags & mnt::RELATIME != 0 => 0,
            _ => STRICTATIME,
        }
}

/// The bits that fsmount(2) takes.
pub(super) const FSMOUNT_VALID: u64 = RDONLY | NOSUID | NODEV | NOEXEC | ATIME | NODIRATIME | NOSYMFOLLOW;

/// A place by descriptor and path; the descriptor's own with an empty path, where that is allowed.
pub(super) fn place(cx: &mut Cx, dirfd: DirFd, path: Path, follow: bool, empty: bool) -> SysResult<Place> {
    let path = if empty && path.addr() == 0 { Vec::new() } else { cx.read_path(path.addr())? };
    if path.is_empty() && empty {
        if dirfd.raw() == AT_FDCWD {
            return cx.kernel().vfs.cwd_of(cx.task);
        }
        let file = cx.task.files().get_any(dirfd.raw())?;
        return file.path.clone().ok_or(Errno::EINVAL.into());
    }
    cx.kernel().vfs.lookup(cx.task, dirfd.raw(), &path, follow)
}

/// A descriptor that stands for a tree.
pub(super) fn install(cx: &mut Cx, file: Arc<File>, cloexec: bool) -> SysResult {
    Ok(u64::from(install_file(cx, file, cloexec)?.unsigned_abs()))
}

fn opened(cx: &mut Cx, dirfd: DirFd, path: Path, bits: u32) -> SysResult<Arc<File>> {
    let at = (AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW).cast_unsigned();
    if bits & !(at | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) != 0
        || bits & (AT_RECURSIVE | OPEN_TREE_CLONE) == AT_RECURSIVE
    {
        return Err(Errno::EINVAL.into());
    }
    let vfs = &cx.kernel().vfs;
    let clone = bits & OPEN_TREE_CLONE != 0;
    if clone {
        vfs.may_mount(cx.task)?;
    }
    let has = |flag: i32| bits & flag.cast_unsigned() != 0;
    let found = place(cx, dirfd, path, !has(AT_SYMLINK_NOFOLLOW), has(AT_EMPTY_PATH))?;
    if !clone {
        return Ok(File::new(Arc::new(PathFile(found.inode().clone())), O_PATH, Some(found)));
    }
    let (space, root) = vfs.clone_tree(cx.task, &found, bits & AT_RECURSIVE != 0)?;
    Ok(File::new(Arc::new(LooseTree::new(root.inode().clone(), space)), O_PATH, Some(root)))
}

pub fn open_tree(cx: &mut Cx, dirfd: DirFd, path: Path, flags: NewMountFlags) -> SysResult {
    let file = opened(cx, dirfd, path, flags.bits())?;
    install(cx, file, flags.has(OPEN_TREE_CLOEXEC))
}

pub fn open_tree_attr(
    cx: &mut Cx,
    dirfd: DirFd,
    path: Path,
    flags: NewMountFlags,
    attr: InBuf,
    size: usize,
) -> SysResult {
    if attr.addr() == 0 && size != 0 {
        return Err(Errno::EINVAL.into());
    }
    let file = opened(cx, dirfd, path, flags.bits())?;
    if attr.addr() != 0 {
        let wanted = read_attr(cx, attr, size)?;
        if let (Some(wanted), Some(at)) = (wanted, file.path.clone()) {
            apply(cx, &at, &wanted, flags.has(AT_RECURSIVE))?;
        }
    }
    install(cx, file, flags.has(OPEN_TREE_CLOEXEC))
}

pub fn move_mount(
    cx: &mut Cx,
    from_dirfd: DirFd,
    from_path: Path,
    to_dirfd: DirFd,
    to_path: Path,
    flags: NewMountFlags,
) -> SysResult {
    let vfs = &cx.kernel().vfs;
    vfs.may_mount(cx.task)?;
    let automounts = MOVE_MOUNT_F_AUTOMOUNTS | MOVE_MOUNT_T_AUTOMOUNTS;
    let from_flags = MOVE_MOUNT_F_SYMLINKS | MOVE_MOUNT_F_EMPTY_PATH;
    let to_flags = MOVE_MOUNT_T_SYMLINKS | MOVE_MOUNT_T_EMPTY_PATH;
    let special = MOVE_MOUNT_SET_GROUP | MOVE_MOUNT_BENEATH;
    if flags.unknown(automounts | from_flags | to_flags | special) != 0 || flags.bits() & special == special {
        return Err(Errno::EINVAL.into());
    }
    if flags.bits() & special != 0 {
        return Err(Fail::gap(Errno::EINVAL, "flags MOVE_MOUNT_SET_GROUP, MOVE_MOUNT_BENEATH"));
    }
    let symlinks = flags.has(MOVE_MOUNT_F_SYMLINKS);
    let from = place(cx, from_dirfd, from_path, symlinks, flags.has(MOVE_MOUNT_F_EMPTY_PATH))?;
    let symlinks = flags.has(MOVE_MOUNT_T_SYMLINKS);
    let to = place(cx, to_dirfd, to_path, symlinks, flags.has(MOVE_MOUNT_T_EMPTY_PATH))?;
    vfs.move_mount(cx.task, &from, to).map(|()| 0)
}

/// What mount_setattr(2) is to change.
struct Wanted {
    set: u32,
    clear: u32,
    propagation: Option<Type>,
}

/// Reads `struct mount_attr`. None: nothing is asked for.
fn read_attr(cx: &mut Cx, attr: InBuf, size: usize) -> SysResult<Option<Wanted>> {
    if size > 4096 {
        return Err(Errno::E2BIG.into());
    }
    if size < size_of::<MountAttr>() {
        return Err(Errno::EINVAL.into());
    }
    cx.kernel().vfs.may_mount(cx.task)?;
    let mut raw = vec![0; size];
    cx.copy_in(attr.addr(), &mut raw)?;
    let mut given = MountAttr::new_zeroed();
    refuse_beyond(&raw, given.as_mut_bytes())?;
    if given.attr_set == 0 && given.attr_clr == 0 && given.propagation == 0 {
        return Ok(None);
    }
    let propagation = match given.propagation {
        0 => None,
        MS_SHARED => Some(Type::Shared),
        MS_PRIVATE => Some(Type::Private),
        MS_SLAVE => Some(Type::Slave),
        MS_UNBINDABLE => Some(Type::Unbindable),
        _ => return Err(Errno::EINVAL.into()),
    };
    if (given.attr_set | given.attr_clr) & !(FSMOUNT_VALID | IDMAP) != 0 || given.attr_clr & IDMAP != 0 {
        return Err(Errno::EINVAL.into());
    }
    if given.attr_set & IDMAP != 0 {
        return Err(Fail::gap(Errno::EINVAL, "flag MOUNT_ATTR_IDMAP"));
    }
    let (mut set, mut clear) = (plain(given.attr_set), plain(given.attr_clr));
    match given.attr_clr & ATIME {
        0 if given.attr_set & ATIME != 0 => return Err(Errno::EINVAL.into()),
        0 => {}
        ATIME => {
            clear |= mnt::RELATIME | mnt::NOATIME;
            set |= access_times(given.attr_set)?;
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(Some(Wanted { set, clear, propagation }))
}

fn apply(cx: &Cx, at: &Place, wanted: &Wanted, recursive: bool) -> SysResult<()> {
    let vfs = &cx.kernel().vfs;
    let loose = vfs.is_loose(&at.mount);
    if loose {
        if !Arc::ptr_eq(&at.dentry, &at.mount.root) {
            return Err(Errno::EINVAL.into());
        }
    } else {
        vfs.own_mount(cx.task, at)?;
    }
    let all = if recursive { vfs.below(&at.mount) } else { vec![at.mount.clone()] };
    let changed = |flags: u32| flags & !wanted.clear & mnt::USER | wanted.set;
    // All or none.
    for mount in &all {
        vfs.check_mount_flags(mount, changed(mount.flags()))?;
    }
    for mount in &all {
        vfs.set_mount_flags(mount, changed(mount.flags()))?;
    }
    match wanted.propagation {
        Some(kind) => vfs.set_propagation(cx.task, at, kind, recursive),
        None => Ok(()),
    }
}

pub fn mount_setattr(
    cx: &mut Cx,
    dirfd: DirFd,
    path: Path,
    flags: AtFlags,
    attr: InBuf,
    size: usize,
) -> SysResult {
    let recursive = AT_RECURSIVE.cast_signed();
    if flags.unknown(AT_EMPTY_PATH | recursive | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let Some(wanted) = read_attr(cx, attr, size)? else { return Ok(0) };
    let at = place(cx, dirfd, path, !flags.has(AT_SYMLINK_NOFOLLOW), flags.has(AT_EMPTY_PATH))?;
    apply(cx, &at, &wanted, flags.has(recursive)).map(|()| 0)
}
