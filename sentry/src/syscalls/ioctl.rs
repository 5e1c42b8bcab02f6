//! ioctl(2): the requests of every descriptor, then the object's own.

use crate::args::*;
use crate::cx::Cx;
use crate::fail::Fail;
use crate::fail::SysResult;
use crate::net::socket::Socket;
use crate::task::creds::cap;
use crate::vfs::file::File;
use crate::vfs::inode::Inode;
use crate::vfs::owner;
use crate::vfs::perm;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::ioctl::*;
use syscall_table::abi::ioctl_dev::DEVICE_IOCTLS;
use syscall_table::abi::open::{FASYNC, O_NONBLOCK};
use syscall_table::errno::Errno;

/// Flags of FS_IOC_SETFLAGS (linux/fs.h).
const FS_IMMUTABLE_FL: u32 = 0x10;
const FS_APPEND_FL: u32 = 0x20;
const FS_NODUMP_FL: u32 = 0x40;
const FS_NOATIME_FL: u32 = 0x80;

pub fn ioctl(cx: &mut Cx, fd: Fd, request: IoctlRequest, arg: u64) -> SysResult {
    let files = cx.task.files();
    let file = files.get(fd.raw())?;
    match request.bits() {
        FIOCLEX => files.set_cloexec(fd.raw(), true).map(|()| 0),
        FIONCLEX => files.set_cloexec(fd.raw(), false).map(|()| 0),
        FIONBIO => {
            let on: i32 = cx.read_value(arg)?;
            file.set_flags(if on != 0 { O_NONBLOCK } else { 0 }, O_NONBLOCK);
            file.ops.flags_changed(&file);
            Ok(0)
        }
        FIOASYNC => {
            let on: i32 = cx.read_value(arg)?;
            let changes = (on != 0) != (file.flags() & FASYNC != 0);
            if changes && file.ops.queue().is_none() {
                return Err(Errno::ENOTTY.into());
            }
            file.set_flags(if on != 0 { FASYNC } else { 0 }, FASYNC);
            if changes && on != 0 {
                owner::watch(cx.kernel(), &file, fd.raw());
            }
            file.ops.flags_changed(&file);
            Ok(0)
        }
        FIOQSIZE => match file.ops.inode() {
            Some(inode) if inode.is_file() || inode.is_dir() => {
                let bytes = inode.attr()?.blocks.saturating_mul(512);
                cx.write_value(arg, &bytes)?;
                Ok(0)
            }
            _ => Err(Errno::ENOTTY.into()),
        },
        FIGETBSZ => {
            let size = file.ops.inode().and_then(|inode| inode.statfs().ok()).map_or(4096, |s| s.bsize);
            cx.write_value(arg, &i32::try_from(size).unwrap_or(4096))?;
            Ok(0)
        }
        FIOSETOWN | SIOCSPGRP if is_socket(&file) => {
            let who: i32 = cx.read_value(arg)?;
            super::fcntl::set_own(cx, &file, who).map(|()| 0)
        }
        FIOGETOWN | SIOCGPGRP if is_socket(&file) => {
            let who = super::fcntl::own(cx, &file);
            cx.write_value(arg, &who).map(|()| 0)
        }
        // Of sockets alone.
        FIOSETOWN | SIOCSPGRP | FIOGETOWN | SIOCGPGRP => Err(Errno::ENOTTY.into()),
        other => match file.ops.inode().filter(|inode| inode.is_file()) {
            Some(inode) => regular(cx, &file, &inode, other, arg),
            None => object(cx, &file, other, arg),
        },
    }
}

fn is_socket(file: &File) -> bool {
    file.downcast::<Socket>().is_some()
}

/// Requests of regular files.
fn regular(cx: &mut Cx, file: &Arc<File>, inode: &Arc<dyn Inode>, request: u32, arg: u64) -> SysResult {
    let creds = cx.task.creds();
    match request {
        FIONREAD => {
            let position = i64::try_from(file.position()).unwrap_or(i64::MAX);
            let left = i64::try_from(file.ops.size()?).unwrap_or(i64::MAX).wrapping_sub(position);
            // As Linux has it: the low half, negative past the end.
            cx.write_value(arg, &(left as i32))?;
            Ok(0)
        }
        // What a file system without reflinks says, once the other file is there.
        FICLONE => {
            cx.task.files().get(arg as i32)?;
            Err(Errno::EOPNOTSUPP.into())
        }
        FICLONERANGE | FIDEDUPERANGE => Err(Errno::EOPNOTSUPP.into()),
        FIBMAP if !creds.capable(cap::SYS_RAWIO) => Err(Errno::EPERM.into()),
        // Files here have no blocks.
        FIBMAP => Err(Errno::EINVAL.into()),
        FIFREEZE | FITHAW if !creds.capable(cap::SYS_ADMIN) => Err(Errno::EPERM.into()),
        FS_IOC_FIEMAP | FIFREEZE | FITHAW => Err(Errno::EOPNOTSUPP.into()),
        FS_IOC_GETFLAGS => match inode.busy() {
            Some(busy) => {
                cx.write_value(arg, &busy.flags.load(Ordering::Relaxed))?;
                Ok(0)
            }
            None => Err(Errno::ENOTTY.into()),
        },
        FS_IOC_SETFLAGS => match file.path.as_ref().filter(|place| place.mount.read_only()) {
            Some(place) => Err(cx.kernel().vfs.policy.read_only(place, b"", "")),
            None => set_flags(cx, inode, arg),
        },
        other => object(cx, file, other, arg),
    }
}

/// FS_IOC_SETFLAGS: flags that mean nothing here are kept; those that would protect a file are refused.
fn set_flags(cx: &mut Cx, inode: &Arc<dyn Inode>, arg: u64) -> SysResult {
    let Some(busy) = inode.busy() else { return Err(Errno::ENOTTY.into()) };
    let flags: u32 = cx.read_value(arg)?;
    let creds = cx.task.creds();
    if !perm::owns(&creds, &inode.attr()?) {
        return Err(Errno::EACCES.into());
    }
    if flags & (FS_APPEND_FL | FS_IMMUTABLE_FL) != 0 && !creds.capable(cap::LINUX_IMMUTABLE) {
        return Err(Errno::EPERM.into());
    }
    if flags & !(FS_NODUMP_FL | FS_NOATIME_FL) != 0 {
        return Err(Fail::gap(Errno::EOPNOTSUPP, "ioctl FS_IOC_SETFLAGS other than nodump and noatime"));
    }
    busy.flags.store(flags, Ordering::Relaxed);
    Ok(0)
}

/// The object's own requests.
fn object(cx: &mut Cx, file: &Arc<File>, request: u32, arg: u64) -> SysResult {
    match file.ops.ioctl(cx, file, request, arg) {
        // A terminal request to something else is how programs ask what it is.
        Err(Fail::Error(Errno::ENOTTY)) if request >> 8 & 0xff != u32::from(b'T') => {
            Err(Fail::gap(Errno::ENOTTY, format!("ioctl {}", name(request))))
        }
        result => result,
    }
}

/// Its name, or the number.
fn name(request: u32) -> String {
    let known = [FILE_IOCTLS, SOCKET_IOCTLS, DEVICE_IOCTLS]
        .iter()
        .find_map(|table| table.iter().find(|(_, n)| *n == request));
    known.map_or_else(|| format!("{request:#x}"), |(name, _)| (*name).to_owned())
}
