//! readlink(2), readlinkat(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::abi::open::AT_FDCWD;
use syscall_table::errno::Errno;

pub fn readlink(cx: &mut Cx, path: Path, buf: OutBuf, bufsiz: i32) -> SysResult {
    readlinkat(cx, DirFd(AT_FDCWD), path, buf, bufsiz)
}

pub fn readlinkat(cx: &mut Cx, dirfd: DirFd, path: Path, buf: OutBuf, bufsiz: i32) -> SysResult {
    let room = usize::try_from(bufsiz).ok().filter(|n| *n > 0).ok_or(Errno::EINVAL)?;
    let path = cx.read_path(path.addr())?;
    let place = if path.is_empty() {
        // Linux 2.6.39: the link that an O_PATH descriptor names. The working directory is none.
        if dirfd.raw() == AT_FDCWD {
            return Err(Errno::ENOENT.into());
        }
        let file = cx.task.files().get_any(dirfd.raw())?;
        file.path.clone().filter(|p| p.inode().is_link()).ok_or(Errno::ENOENT)?
    } else {
        cx.kernel().vfs.lookup(cx.task, dirfd.raw(), &path, false)?
    };
    if !place.inode().is_link() {
        return Err(Errno::EINVAL.into());
    }
    let target = place.inode().readlink(cx.task)?;
    let part = target.get(..target.len().min(room)).unwrap_or_default();
    cx.copy_out(buf.addr(), part)?;
    Ok(part.len() as u64)
}
