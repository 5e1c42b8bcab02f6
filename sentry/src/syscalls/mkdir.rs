//! mkdir(2), mkdirat(2), mknod(2), mknodat(2), symlink(2), symlinkat(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::cap;
use crate::vfs::inode::NewKind;
use crate::vfs::names::At;
use syscall_table::abi::open::AT_FDCWD;
use syscall_table::abi::stat::*;
use syscall_table::errno::Errno;

fn make(cx: &mut Cx, dirfd: i32, path: Path, kind: NewKind<'_>, mode: u32) -> SysResult {
    let path = cx.read_path(path.addr())?;
    cx.kernel().vfs.make(cx.task, At { dirfd, path: &path }, kind, mode)?;
    Ok(0)
}

pub fn mkdir(cx: &mut Cx, path: Path, mode: Mode) -> SysResult {
    make(cx, AT_FDCWD, path, NewKind::Dir, mode.raw() & 0o1777)
}

pub fn mkdirat(cx: &mut Cx, dirfd: DirFd, path: Path, mode: Mode) -> SysResult {
    make(cx, dirfd.raw(), path, NewKind::Dir, mode.raw() & 0o1777)
}

fn node(cx: &mut Cx, dirfd: i32, path: Path, mode: Mode, dev: u32) -> SysResult {
    let kind = match mode.raw() & S_IFMT {
        0 | S_IFREG => NewKind::File,
        kind @ (S_IFIFO | S_IFSOCK) => NewKind::Special(kind, 0),
        kind @ (S_IFCHR | S_IFBLK) => {
            // Device 0:0 is the whiteout of overlay file systems, which anybody may make.
            if (kind != S_IFCHR || dev != 0) && !cx.task.creds().capable(cap::MKNOD) {
                return Err(Errno::EPERM.into());
            }
            NewKind::Special(kind, u64::from(dev))
        }
        S_IFDIR => return Err(Errno::EPERM.into()),
        _ => return Err(Errno::EINVAL.into()),
    };
    make(cx, dirfd, path, kind, mode.raw() & 0o7777)
}

pub fn mknod(cx: &mut Cx, path: Path, mode: Mode, dev: u32) -> SysResult {
    node(cx, AT_FDCWD, path, mode, dev)
}

pub fn mknodat(cx: &mut Cx, dirfd: DirFd, path: Path, mode: Mode, dev: u32) -> SysResult {
    node(cx, dirfd.raw(), path, mode, dev)
}

pub fn symlink(cx: &mut Cx, target: Path, linkpath: Path) -> SysResult {
    symlinkat(cx, target, DirFd(AT_FDCWD), linkpath)
}

pub fn symlinkat(cx: &mut Cx, target: Path, newdirfd: DirFd, linkpath: Path) -> SysResult {
    let target = cx.read_path(target.addr())?;
    if target.is_empty() {
        return Err(Errno::ENOENT.into());
    }
    make(cx, newdirfd.raw(), linkpath, NewKind::Link(&target), 0o777)
}
