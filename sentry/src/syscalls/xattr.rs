//! getxattr(2), setxattr(2), listxattr(2), removexattr(2) and their l, f and at forms.

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::task::creds::cap;
use crate::task::privilege::is_file_caps;
use crate::task::userns::Ids;
use crate::vfs::acl::{self, Acl};
use crate::vfs::file::File;
use crate::vfs::inode::{Inode, SetAttr};
use crate::vfs::perm;
use crate::vfs::watch::Target;
use std::sync::Arc;
use syscall_table::abi::inotify::IN_ATTRIB;
use syscall_table::abi::mount::*;
use syscall_table::abi::open::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW};
use syscall_table::abi::{S_ISGID, S_ISVTX};
use syscall_table::errno::Errno;

/// The attribute that holds a file's capabilities.
const FILE_CAPS: &[u8] = b"security.capability";
/// What an id is shown as that the reader's namespace does not have.
const OVERFLOW: u32 = 65534;

fn by_path(cx: &mut Cx, path: Path, follow: bool, change: bool) -> SysResult<Target> {
    let flags = if follow { 0 } else { AT_SYMLINK_NOFOLLOW };
    by_path_at(cx, AT_FDCWD, path, flags, change)
}

fn by_path_at(cx: &mut Cx, dirfd: i32, path: Path, flags: i32, change: bool) -> SysResult<Target> {
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let empty = flags & AT_EMPTY_PATH != 0;
    let path = if empty && path.is_null() { Vec::new() } else { cx.read_path(path.addr())? };
    if empty && path.is_empty() && dirfd != AT_FDCWD {
        let file = cx.task.files().get_any(dirfd)?;
        return of_file(cx, &file, change);
    }
    let path = if empty && path.is_empty() { b".".to_vec() } else { path };
    let place = cx.kernel().vfs.lookup(cx.task, dirfd, &path, flags & AT_SYMLINK_NOFOLLOW == 0)?;
    if change && place.mount.read_only() {
        return Err(cx.kernel().vfs.policy.read_only(&place, b"", ""));
    }
    Ok(place.into())
}

fn of_file(cx: &Cx, file: &Arc<File>, change: bool) -> SysResult<Target> {
    if let Some(place) = file.path.as_ref().filter(|p| change && p.mount.read_only()) {
        return Err(cx.kernel().vfs.policy.read_only(place, b"", ""));
    }
    let inode = crate::vfs::nameless::inode(file)?;
    Ok(Target { inode, place: file.path.clone() })
}

fn by_fd(cx: &mut Cx, fd: Fd, change: bool) -> SysResult<Target> {
    let file = cx.task.files().get(fd.raw())?;
    of_file(cx, &file, change)
}

fn name(cx: &mut Cx, name: CStr) -> SysResult<Vec<u8>> {
    let name = cx.read_cstr(name.addr(), XATTR_NAME_MAX, Errno::ERANGE)?;
    if name.is_empty() {
        return Err(Errno::ERANGE.into());
    }
    let empty: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
    if empty.contains(&name.as_slice()) {
        return Err(Errno::EINVAL.into());
    }
    Ok(name)
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

fn get(cx: &mut Cx, target: &Target, attr: CStr, value: OutBuf, size: usize) -> SysResult {
    let inode = &target.inode;
    let attr = name(cx, attr)?;
    permitted(cx, inode, &attr, false)?;
    let mut found = inode.get_xattr(&attr)?;
    if is_acl(&attr)
        && let Some(acl) = Acl::read(&found, |_, id| Some(id))?
    {
        // Ids are those of the reader's user namespace.
        let creds = cx.task.creds();
        found = acl.write(|user, id| creds.ns.from_kernel(ids(user), id).unwrap_or(OVERFLOW));
    }
    give(cx, &found, value, size)
}

fn set(cx: &mut Cx, target: &Target, attr: CStr, value: InBuf, size: usize, flags: XattrFlags) -> SysResult {
    let inode = &target.inode;
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
    if is_acl(&attr) {
        return set_acl(cx, target, &attr, &bytes);
    }
    inode.set_xattr(&attr, &bytes, flags.bits())?;
    target.tell(IN_ATTRIB);
    Ok(0)
}

fn is_acl(attr: &[u8]) -> bool {
    attr == acl::ACCESS || attr == acl::DEFAULT
}

fn ids(user: bool) -> Ids {
    if user { Ids::Users } else { Ids::Groups }
}

/// Sets one of the lists of acl(5), or removes it by an empty value. The flags say nothing then.
fn set_acl(cx: &mut Cx, target: &Target, attr: &[u8], bytes: &[u8]) -> SysResult {
    let (inode, creds) = (&target.inode, cx.task.creds());
    let acl = match bytes {
        b"" => None,
        bytes => Acl::read(bytes, |user, id| creds.ns.to_kernel(ids(user), id))?,
    };
    if inode.is_link() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    // Whether there are lists at all, before whose they are.
    match inode.get_xattr(attr) {
        Err(Fail::Error(Errno::ENODATA)) | Ok(_) => {}
        Err(fail) => return Err(fail),
    }
    if attr == acl::DEFAULT && !inode.is_dir() {
        return if acl.is_some() { Err(Errno::EACCES.into()) } else { Ok(0) };
    }
    let before = inode.attr()?;
    if !perm::owns(&creds, &before) {
        return Err(Errno::EPERM.into());
    }
    match acl {
        Some(acl) => inode.set_xattr(attr, &acl.write(|_, id| id), 0)?,
        None => match inode.remove_xattr(attr) {
            Ok(()) | Err(Fail::Error(Errno::ENODATA)) => {}
            Err(fail) => return Err(fail),
        },
    }
    let foreign =
        !perm::in_group(&creds, before.gid) && !creds.capable_of(before.uid, before.gid, cap::FSETID);
    if attr == acl::ACCESS && foreign && before.mode & S_ISGID != 0 {
        let mode = Some(inode.attr()?.mode & 0o7777 & !S_ISGID);
        inode.set_attr(&SetAttr { mode, ..SetAttr::default() })?;
    }
    target.tell(IN_ATTRIB);
    Ok(0)
}

fn list(cx: &mut Cx, target: &Target, buf: OutBuf, size: usize) -> SysResult {
    let admin = cx.task.creds().capable(cap::SYS_ADMIN);
    let mut all = Vec::new();
    for name in target.inode.list_xattr()?.iter().filter(|name| admin || !name.starts_with(b"trusted.")) {
        all.extend_from_slice(name);
        all.push(0);
    }
    give(cx, &all, buf, size)
}

fn remove(cx: &mut Cx, target: &Target, attr: CStr) -> SysResult {
    let inode = &target.inode;
    let attr = name(cx, attr)?;
    permitted(cx, inode, &attr, true)?;
    if is_acl(&attr) {
        return set_acl(cx, target, &attr, b"");
    }
    inode.remove_xattr(&attr)?;
    target.tell(IN_ATTRIB);
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

/// struct xattr_args of the *at calls, of which more may come than is known.
fn read_args(cx: &mut Cx, args: InBuf, size: usize) -> SysResult<XattrArgs> {
    let known = size_of::<XattrArgs>();
    if size < known {
        return Err(Errno::EINVAL.into());
    }
    if size > 4096 {
        return Err(Errno::E2BIG.into());
    }
    let value: XattrArgs = cx.read_value(args.addr())?;
    let mut rest = vec![0; size.saturating_sub(known)];
    cx.copy_in(args.addr().wrapping_add(known as u64), &mut rest)?;
    if rest.iter().any(|byte| *byte != 0) { Err(Errno::E2BIG.into()) } else { Ok(value) }
}

pub fn setxattrat(
    cx: &mut Cx,
    dirfd: DirFd,
    path: Path,
    at_flags: AtFlags,
    name: CStr,
    args: InBuf,
    size: usize,
) -> SysResult {
    let args = read_args(cx, args, size)?;
    let target = by_path_at(cx, dirfd.raw(), path, at_flags.bits(), true)?;
    let flags = XattrFlags(args.flags.cast_signed());
    let size = usize::try_from(args.size).map_err(|_| Errno::E2BIG)?;
    set(cx, &target, name, InBuf(args.value), size, flags)
}

pub fn getxattrat(
    cx: &mut Cx,
    dirfd: DirFd,
    path: Path,
    at_flags: AtFlags,
    name: CStr,
    args: InBuf,
    size: usize,
) -> SysResult {
    let args = read_args(cx, args, size)?;
    if args.flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let target = by_path_at(cx, dirfd.raw(), path, at_flags.bits(), false)?;
    let size = usize::try_from(args.size).map_err(|_| Errno::E2BIG)?;
    get(cx, &target, name, OutBuf(args.value), size)
}

pub fn listxattrat(
    cx: &mut Cx,
    dirfd: DirFd,
    path: Path,
    at_flags: AtFlags,
    buf: OutBuf,
    size: usize,
) -> SysResult {
    let target = by_path_at(cx, dirfd.raw(), path, at_flags.bits(), false)?;
    list(cx, &target, buf, size)
}

pub fn removexattrat(cx: &mut Cx, dirfd: DirFd, path: Path, at_flags: AtFlags, name: CStr) -> SysResult {
    let target = by_path_at(cx, dirfd.raw(), path, at_flags.bits(), true)?;
    remove(cx, &target, name)
}
