//! link(2), linkat(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::names::At;
use syscall_table::abi::open::*;
use syscall_table::errno::Errno;

pub fn link(cx: &mut Cx, oldpath: Path, newpath: Path) -> SysResult {
    linkat(cx, DirFd(AT_FDCWD), oldpath, DirFd(AT_FDCWD), newpath, AtFlags(0))
}

pub fn linkat(
    cx: &mut Cx,
    olddirfd: DirFd,
    oldpath: Path,
    newdirfd: DirFd,
    newpath: Path,
    flags: AtFlags,
) -> SysResult {
    if flags.unknown(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let old = cx.read_path(oldpath.addr())?;
    let new = cx.read_path(newpath.addr())?;
    let place = if old.is_empty() && flags.has(AT_EMPTY_PATH) {
        let file = cx.task.files().get_any(olddirfd.raw())?;
        file.path.clone().ok_or(Errno::EXDEV)?
    } else {
        cx.kernel().vfs.lookup(cx.task, olddirfd.raw(), &old, flags.has(AT_SYMLINK_FOLLOW))?
    };
    cx.kernel().vfs.link(cx.task, place, At { dirfd: newdirfd.raw(), path: &new })?;
    Ok(0)
}
