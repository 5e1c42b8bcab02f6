//! chdir(2), fchdir(2), chroot(2), getcwd(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::cap;
use crate::vfs::path::Path as Place;
use crate::vfs::perm;
use syscall_table::abi::open::AT_FDCWD;
use syscall_table::errno::Errno;

fn directory(cx: &Cx, place: Place) -> SysResult<Place> {
    if !place.inode().is_dir() {
        return Err(Errno::ENOTDIR.into());
    }
    perm::check(&cx.task.creds(), &place.inode().attr()?, perm::EXEC)?;
    Ok(place)
}

pub fn chdir(cx: &mut Cx, path: Path) -> SysResult {
    let path = cx.read_path(path.addr())?;
    let place = cx.kernel().vfs.lookup(cx.task, AT_FDCWD, &path, true)?;
    cx.task.fs().set_cwd(directory(cx, place)?);
    Ok(0)
}

pub fn fchdir(cx: &mut Cx, fd: Fd) -> SysResult {
    let file = cx.task.files().get_any(fd.raw())?;
    let place = file.path.clone().ok_or(Errno::ENOTDIR)?;
    cx.task.fs().set_cwd(directory(cx, place)?);
    Ok(0)
}

pub fn chroot(cx: &mut Cx, path: Path) -> SysResult {
    let path = cx.read_path(path.addr())?;
    let place = cx.kernel().vfs.lookup(cx.task, AT_FDCWD, &path, true)?;
    let place = directory(cx, place)?;
    if !cx.task.creds().has(cap::SYS_CHROOT) {
        return Err(Errno::EPERM.into());
    }
    let vfs = &cx.kernel().vfs;
    // The working directory stays where it is.
    let cwd = vfs.cwd_of(cx.task)?;
    let fs = cx.task.fs();
    fs.set_cwd(cwd);
    fs.set_root(place);
    Ok(0)
}

pub fn getcwd(cx: &mut Cx, buf: OutBuf, size: usize) -> SysResult {
    let vfs = &cx.kernel().vfs;
    let root = vfs.root_of(cx.task)?;
    let mut path = vfs.cwd_of(cx.task)?.absolute(Some(&root));
    if path.deleted {
        return Err(Errno::ENOENT.into());
    }
    if !path.reached {
        path.bytes.splice(0..0, *b"(unreachable)");
    }
    path.bytes.push(0);
    if path.bytes.len() > size {
        return Err(Errno::ERANGE.into());
    }
    cx.copy_out(buf.addr(), &path.bytes)?;
    Ok(path.bytes.len() as u64)
}
