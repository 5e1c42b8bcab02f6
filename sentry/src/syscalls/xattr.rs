//! getxattr(2), setxattr(2), listxattr(2), removexattr(2) and their l and f forms.

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::cap;
use crate::task::privilege::is_file_caps;
use crate::vfs::inode::Inode;
use crate::vfs::perm;
use crate::vfs::watch::tell;
use std::sync::Arc;
use syscall_table::abi::S_ISVTX;
use syscall_table::abi::inotify::IN_ATTRIB;
use syscall_table::abi::mount::*;
use syscall_table::abi::open::{AT_FDCWD, O_PATH};
use syscall_table::errno::Errno;

/// The attribute that holds a file's capabilities.
const FILE_CAPS: &[u8] = b"security.capability";

fn by_path(cx: &mut Cx, path: Path, follow: bool, change: bool) -> SysResult<Arc<dyn Inode>> {
    let path = cx.read_path(path.addr())?;
    let place = cx.kernel().vfs.lookup(cx.task, AT_FDCWD, &path, follow)?;
    if change && place.mount.read_only {
        return Err(Errno::EROFS.into());
    }
    Ok(place.inode().clone())
}

fn by_fd(cx: &mut Cx, fd: Fd, change: bool) -> SysResult<Arc<dyn Inode>> {
    let file = cx.task.files().get(fd.raw())?;
    if file.flags() & O_PATH != 0 {
        return Err(Errno::EBADF.into());
    }
    if change && file.path.as_ref().is_some_and(|p| p.mount.read_only) {
        return Err(Errno::EROFS.into());
    }
    file.ops.inode().ok_or(Errno::EOPNOTSUPP.into())
}

fn name(cx: &mut Cx, name: CStr) -> SysResult<Vec<u8>> {
    let name = cx.read_cstr(name.addr(), XATTR_NAME_MAX, Errno::ERANGE)?;
    if name.is_empty() { Err(Errno::ERANGE.into()) } else { Ok(name) }
}

fn give(cx: &mut Cx, value: &[u8], buf: OutBuf, size: usize) -> SysResult {
    if size > 0 {
        if value.len() > size {
            return Err(Errno::ERANGE.into());
        }
        cx.copy_out(buf.addr(), value)?;
    }
    Ok(value.len() as u64)
}

/// Whether the task may read (or with `change` write) an attribute (xattr(7)).
///
/// # Errors
/// EPERM, EACCES; ENODATA for what it may not even know of.
fn permitted(cx: &Cx, inode: &Arc<dyn Inode>, attr: &[u8], change: bool) -> SysResult<()> {
    let creds = cx.task.creds();
    let refused = if change { Errno::EPERM } else { Errno::ENODATA };
    let admin = creds.capable(cap::SYS_ADMIN);
    if attr == FILE_CAPS {
        return if !change || creds.capable(cap::SETFCAP) { Ok(()) } else { Err(Errno::EPERM.into()) };
    }
    if attr.starts_with(b"security.") {
        return if !change || admin { Ok(()) } else { Err(Errno::EPERM.into()) };
    }
    if attr.starts_with(b"system.") {
        return Ok(());
    }
    if attr.starts_with(b"trusted.") {
        return if admin { Ok(()) } else { Err(refused.into()) };
    }
    let found = inode.attr()?;
    if attr.starts_with(b"user.") {
        if !inode.is_file() && !inode.is_dir() {
            return Err(refused.into());
        }
        if change && inode.is_dir() && found.mode & S_ISVTX != 0 && !perm::owns(&creds, &found) {
            return Err(Errno::EPERM.into());
        }
    }
    perm::check(&creds, &found, if change { perm::WRITE } else { perm::READ })
}

fn get(cx: &mut Cx, inode: &Arc<dyn Inode>, attr: CStr, value: OutBuf, size: usize) -> SysResult {
    let attr = name(cx, attr)?;
    permitted(cx, inode, &attr, false)?;
    let found = inode.get_xattr(&attr)?;
    give(cx, &found, value, size)
}

fn set(
    cx: &mut Cx,
    inode: &Arc<dyn Inode>,
    attr: CStr,
    value: InBuf,
    size: usize,
    flags: XattrFlags,
) -> SysResult {
    if flags.unknown(XATTR_CREATE | XATTR_REPLACE) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let attr = name(cx, attr)?;
    if size > XATTR_SIZE_MAX {
        return Err(Errno::E2BIG.into());
    }
    let mut bytes = vec![0; size];
    cx.copy_in(value.addr(), &mut bytes)?;
    if attr == FILE_CAPS && !is_file_caps(&bytes) {
        return Err(Errno::EINVAL.into());
    }
    permitted(cx, inode, &attr, true)?;
    inode.set_xattr(&attr, &bytes, flags.bits())?;
    tell(inode, IN_ATTRIB, 0, b"");
    Ok(0)
}

fn list(cx: &mut Cx, inode: &Arc<dyn Inode>, buf: OutBuf, size: usize) -> SysResult {
    let admin = cx.task.creds().capable(cap::SYS_ADMIN);
    let mut all = Vec::new();
    for name in inode.list_xattr()?.iter().filter(|name| admin || !name.starts_with(b"trusted.")) {
        all.extend_from_slice(name);
        all.push(0);
    }
    give(cx, &all, buf, size)
}

fn remove(cx: &mut Cx, inode: &Arc<dyn Inode>, attr: CStr) -> SysResult {
    let attr = name(cx, attr)?;
    permitted(cx, inode, &attr, true)?;
    inode.remove_xattr(&attr)?;
    tell(inode, IN_ATTRIB, 0, b"");
    Ok(0)
}

pub fn getxattr(cx: &mut Cx, path: Path, name: CStr, value: OutBuf, size: usize) -> SysResult {
    let inode = by_path(cx, path, true, false)?;
    get(cx, &inode, name, value, size)
}

pub fn lgetxattr(cx: &mut Cx, path: Path, name: CStr, value: OutBuf, size: usize) -> SysResult {
    let inode = by_path(cx, path, false, false)?;
    get(cx, &inode, name, value, size)
}

pub fn fgetxattr(cx: &mut Cx, fd: Fd, name: CStr, value: OutBuf, size: usize) -> SysResult {
    let inode = by_fd(cx, fd, false)?;
    get(cx, &inode, name, value, size)
}

pub fn setxattr(
    cx: &mut Cx,
    path: Path,
    name: CStr,
    value: InBuf,
    size: usize,
    flags: XattrFlags,
) -> SysResult {
    let inode = by_path(cx, path, true, true)?;
    set(cx, &inode, name, value, size, flags)
}

pub fn lsetxattr(
    cx: &mut Cx,
    path: Path,
    name: CStr,
    value: InBuf,
    size: usize,
    flags: XattrFlags,
) -> SysResult {
    let inode = by_path(cx, path, false, true)?;
    set(cx, &inode, name, value, size, flags)
}

pub fn fsetxattr(cx: &mut Cx, fd: Fd, name: CStr, value: InBuf, size: usize, flags: XattrFlags) -> SysResult {
    let inode = by_fd(cx, fd, true)?;
    set(cx, &inode, name, value, size, flags)
}

pub fn listxattr(cx: &mut Cx, path: Path, buf: OutBuf, size: usize) -> SysResult {
    let inode = by_path(cx, path, true, false)?;
    list(cx, &inode, buf, size)
}

pub fn llistxattr(cx: &mut Cx, path: Path, buf: OutBuf, size: usize) -> SysResult {
    let inode = by_path(cx, path, false, false)?;
    list(cx, &inode, buf, size)
}

pub fn flistxattr(cx: &mut Cx, fd: Fd, buf: OutBuf, size: usize) -> SysResult {
    let inode = by_fd(cx, fd, false)?;
    list(cx, &inode, buf, size)
}

pub fn removexattr(cx: &mut Cx, path: Path, name: CStr) -> SysResult {
    let inode = by_path(cx, path, true, true)?;
    remove(cx, &inode, name)
}

pub fn lremovexattr(cx: &mut Cx, path: Path, name: CStr) -> SysResult {
    let inode = by_path(cx, path, false, true)?;
    remove(cx, &inode, name)
}

pub fn fremovexattr(cx: &mut Cx, fd: Fd, name: CStr) -> SysResult {
    let inode = by_fd(cx, fd, true)?;
    remove(cx, &inode, name)
}
