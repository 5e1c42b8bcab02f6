//! inotify_init(2), inotify_add_watch(2), inotify_rm_watch(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::file::File;
use crate::vfs::perm;
use crate::vfs::watch::Inotify;
use syscall_table::abi::getrlimit::RLIMIT_NOFILE;
use syscall_table::abi::inotify::*;
use syscall_table::abi::open::{AT_FDCWD, O_RDONLY};
use syscall_table::errno::Errno;

pub fn inotify_init(cx: &mut Cx) -> SysResult {
    inotify_init1(cx, InotifyFlags(0))
}

pub fn inotify_init1(cx: &mut Cx, flags: InotifyFlags) -> SysResult {
    if flags.unknown(IN_NONBLOCK | IN_CLOEXEC) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let file = File::new(Inotify::new(), O_RDONLY | flags.bits() & IN_NONBLOCK, None);
    let limit = cx.task.process.limit(RLIMIT_NOFILE);
    let fd = cx.task.files().install(file, flags.has(IN_CLOEXEC), 0, limit)?;
    Ok(u64::from(fd.unsigned_abs()))
}

pub fn inotify_add_watch(cx: &mut Cx, fd: Fd, pathname: Path, mask: InotifyMask) -> SysResult {
    let all = INOTIFY_MASK.iter().fold(0, |all, (_, bit)| all | bit);
    if mask.bits() & all == 0 || mask.has(IN_MASK_ADD | IN_MASK_CREATE) {
        return Err(Errno::EINVAL.into());
    }
    let file = cx.task.files().get(fd.raw())?;
    let inotify = file.downcast::<Inotify>().ok_or(Errno::EINVAL)?;
    let path = cx.read_path(pathname.addr())?;
    let place = cx.kernel().vfs.lookup(cx.task, AT_FDCWD, &path, !mask.has(IN_DONT_FOLLOW))?;
    if mask.has(IN_ONLYDIR) && !place.inode().is_dir() {
        return Err(Errno::ENOTDIR.into());
    }
    perm::check(&cx.task.creds(), &place.inode().attr()?, perm::READ)?;
    Ok(u64::from(inotify.add(place, mask.bits())?.unsigned_abs()))
}

pub fn inotify_rm_watch(cx: &mut Cx, fd: Fd, wd: i32) -> SysResult {
    let file = cx.task.files().get(fd.raw())?;
    file.downcast::<Inotify>().ok_or(Errno::EINVAL)?.remove(wd)?;
    Ok(0)
}
