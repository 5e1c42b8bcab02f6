//! mount(2), umount2(2), pivot_root(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::fs::kinds;
use crate::task::creds::cap;
use crate::vfs::mount::{Mount, mnt};
use crate::vfs::path::Path as Place;
use crate::vfs::propagate::Type;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::mount::*;
use syscall_table::abi::open::AT_FDCWD;
use syscall_table::errno::Errno;

/// The magic number that old programs put into the upper half of the flags.
const MS_MGC_VAL: u64 = 0xc0ed_0000;
const MS_MGC_MSK: u64 = 0xffff_0000;
/// Internal to the kernel.
const MS_NOUSER: u64 = 1 << 31;
/// The most bytes of options, and of a type's name.
const PAGE: usize = 4096;

/// A string of mount(2) that may be missing.
fn string(cx: &mut Cx, at: CStr, most: usize) -> SysResult<Option<Vec<u8>>> {
    match at.addr() {
        0 => Ok(None),
        addr => cx.read_cstr(addr, most.saturating_sub(1), Errno::EINVAL).map(Some),
    }
}

/// Options: up to a page of bytes, as many as there are.
fn data(cx: &mut Cx, at: CStr) -> SysResult<Vec<u8>> {
    let mut bytes = vec![0; PAGE];
    let mut got = 0;
    while at.addr() != 0 && got < PAGE {
        let room = bytes.get_mut(got..).unwrap_or_default();
        match cx.copy_in_some(at.addr().saturating_add(got as u64), room) {
            Ok(0) => break,
            Ok(count) => got = got.saturating_add(count),
            Err(fail) if got == 0 => return Err(fail),
            Err(_) => break,
        }
    }
    bytes.truncate(got.min(PAGE.saturating_sub(1)));
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    Ok(bytes)
}

/// Flags of the mount among those of mount(2).
fn mount_flags(flags: u64, old: Option<u32>) -> u32 {
    let mut out = if flags & MS_NOATIME == 0 { mnt::RELATIME } else { 0 };
    for (from, to) in [
        (MS_NOSUID, mnt::NOSUID),
        (MS_NODEV, mnt::NODEV),
        (MS_NOEXEC, mnt::NOEXEC),
        (MS_NOATIME, mnt::NOATIME),
        (MS_NODIRATIME, mnt::NODIRATIME),
        (MS_RDONLY, mnt::READONLY),
        (MS_NOSYMFOLLOW, mnt::NOSYMFOLLOW),
    ] {
        if flags & from != 0 {
            out |= to;
        }
    }
    if flags & MS_STRICTATIME != 0 {
        out &= !(mnt::RELATIME | mnt::NOATIME);
    }
    // A remount that says nothing of access times leaves them.
    if let Some(old) =
        old.filter(|_| flags & (MS_NOATIME | MS_NODIRATIME | MS_RELATIME | MS_STRICTATIME) == 0)
    {
        out = out & !mnt::ATIME | old & mnt::ATIME;
    }
    out
}

pub fn mount(
    cx: &mut Cx,
    source: CStr,
    target: Path,
    filesystemtype: CStr,
    mountflags: MountFlags,
    options: CStr,
) -> SysResult {
    let kind = string(cx, filesystemtype, PAGE)?;
    let source = string(cx, source, PAGE)?;
    let data = data(cx, options)?;
    let target = cx.read_path(target.addr())?;
    let vfs = &cx.kernel().vfs;
    let at = vfs.lookup(cx.task, AT_FDCWD, &target, true)?;
    let mut flags = mountflags.bits();
    if flags & MS_MGC_MSK == MS_MGC_VAL {
        flags &= !MS_MGC_MSK;
    }
    if flags & MS_NOUSER != 0 {
        return Err(Errno::EINVAL.into());
    }
    vfs.may_mount(cx.task)?;
    if flags & MS_REMOUNT != 0 {
        let new = mount_flags(flags, Some(at.mount.flags()));
        vfs.own_mount(cx.task, &at)?;
        if flags & MS_BIND != 0 {
            return vfs.set_mount_flags(&at.mount, new).map(|()| 0);
        }
        return remount(cx, &at.mount, flags & MS_RDONLY != 0, new, &data).map(|()| 0);
    }
    if flags & MS_BIND != 0 {
        let from = named(cx, source)?;
        return vfs.bind(cx.task, &from, at, flags & MS_REC != 0).map(|()| 0);
    }
    if flags & (MS_SHARED | MS_PRIVATE | MS_SLAVE | MS_UNBINDABLE) != 0 {
        let kind = match flags & !(MS_REC | MS_SILENT) {
            MS_SHARED => Type::Shared,
            MS_PRIVATE => Type::Private,
            MS_SLAVE => Type::Slave,
            MS_UNBINDABLE => Type::Unbindable,
            _ => return Err(Errno::EINVAL.into()),
        };
        return vfs.set_propagation(cx.task, &at, kind, flags & MS_REC != 0).map(|()| 0);
    }
    if flags & MS_MOVE != 0 {
        let from = named(cx, source)?;
        return vfs.move_mount(cx.task, &from, at).map(|()| 0);
    }
    let kind = kinds::find(&kind.ok_or(Errno::EINVAL)?)?;
    let mut given = kinds::Options::default();
    for (name, value) in kinds::words(&data) {
        if name != b"source" {
            given.add(cx.task, kind, &name, value.as_ref())?;
        }
    }
    let sb = kinds::make(cx.task, kind, &given)?;
    if flags & MS_RDONLY != 0 || given.read_only == Some(true) {
        read_only_from_start(&sb);
    }
    let source = source.map_or_else(|| "none".to_owned(), |s| String::from_utf8_lossy(&s).into_owned());
    let mount = Mount::new(&sb, sb.root.clone(), source, mount_flags(flags, None));
    vfs.mount_new(cx.task, mount, at).map(|()| 0)
}

/// A file system that nobody had before is read-only; one that there was before stays as it is.
pub(super) fn read_only_from_start(sb: &Arc<crate::vfs::mount::Super>) {
    if Arc::strong_count(sb) == 1 {
        sb.read_only.store(true, Ordering::Relaxed);
    }
}

/// Copies what a program gave into our struct; E2BIG when a newer program asks for something beyond it.
pub(super) fn refuse_beyond(raw: &[u8], known: &mut [u8]) -> SysResult<()> {
    if raw.get(known.len()..).unwrap_or_default().iter().any(|b| *b != 0) {
        return Err(Errno::E2BIG.into());
    }
    for (to, from) in known.iter_mut().zip(raw) {
        *to = *from;
    }
    Ok(())
}

/// The place that the source of a bind mount or a move names.
fn named(cx: &Cx, source: Option<Vec<u8>>) -> SysResult<Place> {
    let source = source.filter(|s| !s.is_empty()).ok_or(Errno::EINVAL)?;
    cx.kernel().vfs.lookup(cx.task, AT_FDCWD, &source, true)
}

/// MS_REMOUNT: the file system and this mount of it.
pub(super) fn remount(
    cx: &Cx,
    mount: &Arc<Mount>,
    read_only: bool,
    flags: u32,
    data: &[u8],
) -> SysResult<()> {
    let sb = &mount.sb;
    let mut given = kinds::Options::default();
    for (name, value) in kinds::words(data) {
        if name != b"source" {
            given.add(cx.task, sb.fstype, &name, value.as_ref()).or_else(|fail| match sb.fstype {
                // Whose options are not a guest's: what it says of them is passed over.
                "overlay" | "fuse.lazaret" => Ok(()),
                _ => Err(fail),
            })?;
        }
    }
    if !cx.task.creds().capable_in(&sb.owner, cap::SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    let read_only = given.read_only.unwrap_or(read_only);
    if !read_only && sb.fixed && sb.is_read_only() {
        let root = Place { mount: mount.clone(), dentry: mount.root.clone() };
        return Err(cx.kernel().vfs.policy.read_only(&root, b"", "change the mount"));
    }
    set_read_only(sb, read_only)?;
    kinds::reconfigure(sb, &given)?;
    cx.kernel().vfs.set_mount_flags(mount, flags)
}

/// Makes a file system read-only, or writable again.
pub(super) fn set_read_only(sb: &crate::vfs::mount::Super, read_only: bool) -> SysResult<()> {
    if read_only && !sb.is_read_only() && sb.is_written() {
        return Err(Errno::EBUSY.into());
    }
    if !read_only && sb.fixed {
        return Err(Errno::EROFS.into());
    }
    sb.read_only.store(read_only, Ordering::Relaxed);
    Ok(())
}

pub fn umount2(cx: &mut Cx, target: Path, flags: UmountFlags) -> SysResult {
    if flags.unknown(MNT_FORCE | MNT_DETACH | MNT_EXPIRE | UMOUNT_NOFOLLOW) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let target = cx.read_path(target.addr())?;
    let vfs = &cx.kernel().vfs;
    let at = vfs.lookup(cx.task, AT_FDCWD, &target, !flags.has(UMOUNT_NOFOLLOW))?;
    vfs.may_mount(cx.task)?;
    // What was mounted over the place by itself counts, too (`umount .` after `pivot_root . .`).
    let at = vfs.mounted(at);
    vfs.own_mount(cx.task, &at)?;
    if flags.has(MNT_FORCE) && !cx.task.creds().capable_in(&at.mount.sb.owner, cap::SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    let expire = flags.has(MNT_EXPIRE);
    if expire && flags.bits() & (MNT_FORCE | MNT_DETACH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    vfs.umount(cx.task, at, flags.has(MNT_DETACH), expire).map(|()| 0)
}

pub fn pivot_root(cx: &mut Cx, new_root: Path, put_old: Path) -> SysResult {
    let vfs = &cx.kernel().vfs;
    vfs.may_mount(cx.task)?;
    let directory = |cx: &mut Cx, path: Path| -> SysResult<Place> {
        let path = cx.read_path(path.addr())?;
        let place = cx.kernel().vfs.lookup(cx.task, AT_FDCWD, &path, true)?;
        if place.inode().is_dir() { Ok(place) } else { Err(Errno::ENOTDIR.into()) }
    };
    let new = directory(cx, new_root)?;
    let old = directory(cx, put_old)?;
    vfs.pivot_root(cx.task, &new, &old).map(|()| 0)
}

pub fn name_to_handle_at(_cx: &mut Cx, _: DirFd, _: Path, _: Addr, _: Addr, _: AtFlags) -> SysResult {
    Err(Errno::EOPNOTSUPP.into())
}

pub fn open_by_handle_at(_cx: &mut Cx, _: DirFd, _: Addr, _: OpenFlags) -> SysResult {
    Err(Errno::EPERM.into())
}
