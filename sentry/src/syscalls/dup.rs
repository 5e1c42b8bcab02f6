//! dup(2), dup2(2), dup3(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::abi::getrlimit::RLIMIT_NOFILE;
use syscall_table::abi::open::O_CLOEXEC;
use syscall_table::errno::Errno;

pub fn dup(cx: &mut Cx, oldfd: Fd) -> SysResult {
    let files = cx.task.files();
    let file = files.get_any(oldfd.raw())?;
    let fd = files.install(file, false, 0, cx.task.process.limit(RLIMIT_NOFILE))?;
    Ok(u64::from(fd.unsigned_abs()))
}

fn replace(cx: &mut Cx, oldfd: Fd, newfd: Fd, cloexec: bool) -> SysResult {
    let files = cx.task.files();
    let file = files.get_any(oldfd.raw())?;
    drop(files.replace(newfd.raw(), file, cloexec, cx.task.process.limit(RLIMIT_NOFILE))?);
    Ok(u64::from(newfd.raw().unsigned_abs()))
}

pub fn dup2(cx: &mut Cx, oldfd: Fd, newfd: Fd) -> SysResult {
    if oldfd == newfd {
        cx.task.files().get_any(oldfd.raw())?;
        return Ok(u64::from(newfd.raw().unsigned_abs()));
    }
    replace(cx, oldfd, newfd, false)
}

pub fn dup3(cx: &mut Cx, oldfd: Fd, newfd: Fd, flags: OpenFlags) -> SysResult {
    if flags.unknown(O_CLOEXEC) != 0 || oldfd == newfd {
        return Err(Errno::EINVAL.into());
    }
    replace(cx, oldfd, newfd, flags.has(O_CLOEXEC))
}
