//! unlink(2), unlinkat(2), rmdir(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::names::At;
use syscall_table::abi::open::{AT_FDCWD, AT_REMOVEDIR};
use syscall_table::errno::Errno;

fn remove(cx: &mut Cx, dirfd: i32, path: Path, dir: bool) -> SysResult {
    let path = cx.read_path(path.addr())?;
    cx.kernel().vfs.remove(cx.task, At { dirfd, path: &path }, dir)?;
    Ok(0)
}

pub fn unlink(cx: &mut Cx, path: Path) -> SysResult {
    remove(cx, AT_FDCWD, path, false)
}

pub fn rmdir(cx: &mut Cx, path: Path) -> SysResult {
    remove(cx, AT_FDCWD, path, true)
}

pub fn unlinkat(cx: &mut Cx, dirfd: DirFd, path: Path, flags: AtFlags) -> SysResult {
    if flags.unknown(AT_REMOVEDIR) != 0 {
        return Err(Errno::EINVAL.into());
    }
    remove(cx, dirfd.raw(), path, flags.has(AT_REMOVEDIR))
}
