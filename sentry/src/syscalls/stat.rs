//! stat(2), lstat(2), fstat(2), newfstatat(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::attr::Attr;
use crate::vfs::file::File;
use crate::vfs::path::Path as Place;
use std::sync::Arc;
use syscall_table::abi::open::*;
use syscall_table::abi::stat::Stat;
use syscall_table::errno::Errno;

/// The attributes that a *at call means, and the place they are from if it has one.
pub(super) fn attr_at(cx: &mut Cx, dirfd: i32, path: Path, flags: i32) -> SysResult<(Attr, Option<Place>)> {
    match named(cx, dirfd, path, flags)? {
        Named::Place(place) => Ok((place.inode().attr()?, Some(place))),
        Named::Open(file) => Ok((file.ops.attr()?, file.path.clone())),
    }
}

/// As [`attr_at`], without the place: what most calls want.
fn attr_alone(cx: &mut Cx, dirfd: i32, path: Path, flags: i32) -> SysResult<Attr> {
    match named(cx, dirfd, path, flags)? {
        Named::Place(place) => place.inode().attr(),
        Named::Open(file) => file.ops.attr(),
    }
}

/// What a *at call means.
enum Named {
    Place(Place),
    /// By its descriptor alone.
    Open(Arc<File>),
}

fn named(cx: &mut Cx, dirfd: i32, path: Path, flags: i32) -> SysResult<Named> {
    let empty_ok = flags & AT_EMPTY_PATH != 0;
    let path = if empty_ok && path.is_null() { Vec::new() } else { cx.read_path(path.addr())? };
    if path.is_empty() && empty_ok {
        if dirfd == AT_FDCWD {
            return cx.kernel().vfs.cwd_of(cx.task).map(Named::Place);
        }
        return cx.task.files().get_any(dirfd).map(Named::Open);
    }
    cx.kernel().vfs.lookup(cx.task, dirfd, &path, flags & AT_SYMLINK_NOFOLLOW == 0).map(Named::Place)
}

fn fill(cx: &Cx, a: &Attr) -> Stat {
    let creds = cx.task.creds();
    let ns = &creds.ns;
    let signed = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
    Stat {
        st_dev: a.dev,
        st_ino: a.ino,
        st_nlink: a.nlink,
        st_mode: a.mode,
        st_uid: ns.user(a.uid),
        st_gid: ns.group(a.gid),
        st_rdev: a.rdev,
        st_size: signed(a.size),
        st_blksize: i64::from(a.blksize),
        st_blocks: signed(a.blocks),
        st_atime: a.atime.sec.cast_unsigned(),
        st_atime_nsec: u64::from(a.atime.nsec),
        st_mtime: a.mtime.sec.cast_unsigned(),
        st_mtime_nsec: u64::from(a.mtime.nsec),
        st_ctime: a.ctime.sec.cast_unsigned(),
        st_ctime_nsec: u64::from(a.ctime.nsec),
        ..Stat::default()
    }
}

fn stat_at(cx: &mut Cx, dirfd: i32, path: Path, out: Out<Stat>, flags: i32) -> SysResult {
    let attr = attr_alone(cx, dirfd, path, flags)?;
    let stat = fill(cx, &attr);
    cx.write_value(out.addr(), &stat)?;
    Ok(0)
}

pub fn stat(cx: &mut Cx, path: Path, statbuf: Out<Stat>) -> SysResult {
    stat_at(cx, AT_FDCWD, path, statbuf, 0)
}

pub fn lstat(cx: &mut Cx, path: Path, statbuf: Out<Stat>) -> SysResult {
    stat_at(cx, AT_FDCWD, path, statbuf, AT_SYMLINK_NOFOLLOW)
}

pub fn fstat(cx: &mut Cx, fd: Fd, statbuf: Out<Stat>) -> SysResult {
    let file = cx.task.files().get_any(fd.raw())?;
    let attr = file.ops.attr()?;
    let stat = fill(cx, &attr);
    cx.write_value(statbuf.addr(), &stat)?;
    Ok(0)
}

pub fn newfstatat(cx: &mut Cx, dirfd: DirFd, path: Path, statbuf: Out<Stat>, flags: AtFlags) -> SysResult {
    if flags.unknown(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    stat_at(cx, dirfd.raw(), path, statbuf, flags.bits())
}
