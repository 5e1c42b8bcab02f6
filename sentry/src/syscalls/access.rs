//! access(2), faccessat(2), faccessat2(2).

use super::stat::attr_at;
use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::Creds;
use crate::vfs::mount::mnt;
use crate::vfs::perm;
use crate::vfs::walk::Walk;
use std::sync::Arc;
use syscall_table::abi::open::*;
use syscall_table::abi::{S_IFDIR, S_IFMT, S_IFREG};
use syscall_table::errno::Errno;

fn check(cx: &mut Cx, dirfd: i32, path: Path, mode: AccessMode, flags: i32) -> SysResult {
    let want = mode.bits();
    if want & !(R_OK | W_OK | X_OK) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut creds = (*cx.task.creds()).clone();
    if flags & AT_EACCESS == 0 {
        // The real ids count, and the capabilities that a program with them would have.
        creds.fsuid = creds.uid;
        creds.fsgid = creds.gid;
        creds.effective = if Some(creds.uid) == creds.ns.root_user() { creds.permitted } else { 0 };
    }
    let (attr, place) = if flags & AT_EMPTY_PATH != 0 {
        attr_at(cx, dirfd, path, flags)?
    } else {
        let path = cx.read_path(path.addr())?;
        let mut walk = Walk::new(&cx.kernel().vfs, cx.task, dirfd, &path)?;
        walk.creds = Arc::new(Creds::clone(&creds));
        let place = walk.to(&path, flags & AT_SYMLINK_NOFOLLOW == 0)?;
        (place.inode().attr()?, Some(place))
    };
    let regular = attr.mode & S_IFMT == S_IFREG;
    if want & X_OK != 0 && regular && place.as_ref().is_some_and(|p| p.mount.has(mnt::NOEXEC)) {
        return Err(Errno::EACCES.into());
    }
    perm::check(&creds, &attr, want.unsigned_abs())?;
    match place.filter(|place| want & W_OK != 0 && place.mount.read_only()) {
        // Programs that ask first give up without an attempt: it is as if they had made one.
        Some(place) if regular || attr.mode & S_IFMT == S_IFDIR => {
            Err(cx.kernel().vfs.policy.read_only(&place, b"", "open for writing"))
        }
        _ => Ok(0),
    }
}

pub fn access(cx: &mut Cx, path: Path, mode: AccessMode) -> SysResult {
    check(cx, AT_FDCWD, path, mode, 0)
}

pub fn faccessat(cx: &mut Cx, dirfd: DirFd, path: Path, mode: AccessMode) -> SysResult {
    check(cx, dirfd.raw(), path, mode, 0)
}

pub fn faccessat2(cx: &mut Cx, dirfd: DirFd, path: Path, mode: AccessMode, flags: AtFlags) -> SysResult {
    if flags.unknown(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    check(cx, dirfd.raw(), path, mode, flags.bits())
}
