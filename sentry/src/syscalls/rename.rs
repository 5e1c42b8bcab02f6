//! rename(2), renameat(2), renameat2(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::names::At;
use syscall_table::abi::mount::*;
use syscall_table::abi::open::AT_FDCWD;
use syscall_table::errno::Errno;

pub fn rename(cx: &mut Cx, oldpath: Path, newpath: Path) -> SysResult {
    renameat2(cx, DirFd(AT_FDCWD), oldpath, DirFd(AT_FDCWD), newpath, RenameFlags(0))
}

pub fn renameat(cx: &mut Cx, olddirfd: DirFd, oldpath: Path, newdirfd: DirFd, newpath: Path) -> SysResult {
    renameat2(cx, olddirfd, oldpath, newdirfd, newpath, RenameFlags(0))
}

pub fn renameat2(
    cx: &mut Cx,
    olddirfd: DirFd,
    oldpath: Path,
    newdirfd: DirFd,
    newpath: Path,
    flags: RenameFlags,
) -> SysResult {
    if flags.unknown(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT) != 0
        || flags.has(RENAME_NOREPLACE | RENAME_EXCHANGE)
        || flags.has(RENAME_WHITEOUT | RENAME_EXCHANGE)
    {
        return Err(Errno::EINVAL.into());
    }
    let old = cx.read_path(oldpath.addr())?;
    let new = cx.read_path(newpath.addr())?;
    let (old, new) = (At { dirfd: olddirfd.raw(), path: &old }, At { dirfd: newdirfd.raw(), path: &new });
    cx.kernel().vfs.rename(cx.task, old, new, flags.bits())?;
    Ok(0)
}
