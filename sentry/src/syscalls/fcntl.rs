//! fcntl(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::Fail;
use crate::fail::SysResult;
use crate::ipc::pipe::PipeEnd;
use crate::vfs::dnotify;
use crate::vfs::file::File;
use crate::vfs::owner::{self, FileOwner};
use crate::vfs::perm;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::fcntl::*;
use syscall_table::abi::getrlimit::RLIMIT_NOFILE;
use syscall_table::abi::open::*;
use syscall_table::abi::sigaction::SIGRTMAX;
use syscall_table::errno::Errno;

/// RWH_WRITE_LIFE_EXTREME, the last of the hints.
const LIFE_EXTREME: u8 = 5;
/// What F_SETFL changes.
const CHANGEABLE: i32 = O_APPEND | O_NONBLOCK | FASYNC | O_DIRECT | O_NOATIME;

pub fn fcntl(cx: &mut Cx, fd: Fd, op: FcntlCmd, arg: u64) -> SysResult {
    let files = cx.task.files();
    let (file, cloexec) = files.get_with_flag(fd.raw())?;
    let int = arg as i32;
    let path_only = file.flags() & O_PATH != 0;
    if path_only
        && !matches!(op.bits(), F_DUPFD | F_DUPFD_CLOEXEC | F_GETFD | F_SETFD | F_GETFL | F_DUPFD_QUERY)
    {
        return Err(Errno::EBADF.into());
    }
    match op.bits() {
        F_DUPFD | F_DUPFD_CLOEXEC => {
            let limit = cx.task.process.limit(RLIMIT_NOFILE);
            let new = files.install(file, op.bits() == F_DUPFD_CLOEXEC, int, limit)?;
            Ok(u64::from(new.unsigned_abs()))
        }
        F_GETFD => Ok(u64::from(cloexec)),
        F_SETFD => files.set_cloexec(fd.raw(), int & FD_CLOEXEC != 0).map(|()| 0),
        F_GETFL => Ok(u64::from(file.flags().cast_unsigned())),
        F_SETFL => set_flags(cx, &file, fd.raw(), int),
        F_GETLK | F_SETLK | F_SETLKW | F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW => {
            super::flock::record(cx, &file, op.bits(), arg)
        }
        F_SETOWN | F_GETOWN | F_SETOWN_EX | F_GETOWN_EX | F_GETOWNER_UIDS => owner(cx, &file, op.bits(), arg),
        F_GETSIG => Ok(u64::from(file.owner.lock().signal.unsigned_abs())),
        F_SETSIG => {
            if !(0..=SIGRTMAX).contains(&int) {
                return Err(Errno::EINVAL.into());
            }
            file.owner.lock().signal = int;
            Ok(0)
        }
        F_NOTIFY => dnotify::set(cx, &file, fd.raw(), arg as u32),
        F_CREATED_QUERY => Ok(u64::from(file.created.load(Ordering::Relaxed))),
        F_DUPFD_QUERY => {
            let other = files.get_any(int)?;
            Ok(u64::from(Arc::ptr_eq(&file, &other)))
        }
        F_ADD_SEALS => super::memfd_create::add_seals(&file, int),
        F_GET_SEALS => super::memfd_create::get_seals(&file),
        F_GET_RW_HINT | F_SET_RW_HINT => hint(cx, &file, op.bits(), arg),
        F_GETLEASE => Ok(F_UNLCK as u64),
        F_SETLEASE if int == F_UNLCK => Err(Errno::EAGAIN.into()),
        F_SETLEASE if !matches!(int, F_RDLCK | F_WRLCK) => Err(Errno::EINVAL.into()),
        F_GETPIPE_SZ | F_SETPIPE_SZ => pipe_size(&file, op.bits(), int),
        other => {
            let name = FCNTL_CMDS.iter().find(|(_, n)| *n == other).map(|(name, _)| *name);
            match name {
                Some(name) => Err(Fail::gap(Errno::EINVAL, format!("fcntl {name}"))),
                None => Err(Errno::EINVAL.into()),
            }
        }
    }
}

/// F_GETPIPE_SZ, F_SETPIPE_SZ.
fn pipe_size(file: &Arc<File>, op: i32, size: i32) -> SysResult {
    let pipe = file.downcast::<PipeEnd>().ok_or(Errno::EBADF)?;
    if op == F_GETPIPE_SZ {
        return Ok(pipe.capacity() as u64);
    }
    let size = usize::try_from(size).map_err(|_| Errno::EINVAL)?;
    Ok(pipe.set_capacity(size)? as u64)
}

/// F_SETFL.
fn set_flags(cx: &Cx, file: &Arc<File>, fd: i32, flags: i32) -> SysResult {
    if flags & !file.flags() & O_NOATIME != 0 && !owns(cx, file)? {
        return Err(Errno::EPERM.into());
    }
    if flags & O_DIRECT != 0 && !file.ops.takes_direct() {
        return Err(Errno::EINVAL.into());
    }
    let news = flags & !file.flags();
    file.set_flags(flags, CHANGEABLE);
    if news & O_DIRECT != 0 {
        file.lent.take_back();
    }
    if news & FASYNC != 0 {
        owner::watch(cx.kernel(), file, fd);
    }
    file.ops.flags_changed(file);
    Ok(0)
}

fn owns(cx: &Cx, file: &File) -> SysResult<bool> {
    Ok(perm::owns(&cx.task.creds(), &file.ops.attr()?))
}

/// F_SETOWN, F_GETOWN, their _EX forms, F_GETOWNER_UIDS.
fn owner(cx: &mut Cx, file: &Arc<File>, op: i32, arg: u64) -> SysResult {
    let (old, shown) = owned_by(cx, file);
    let (kind, id) = match op {
        F_GETOWN => return Ok(i64::from(signed(old.kind, shown)).cast_unsigned()),
        F_GETOWN_EX => {
            cx.write_value(arg, &FOwnerEx { kind: old.kind, pid: shown })?;
            return Ok(0);
        }
        F_GETOWNER_UIDS => {
            cx.write_value(arg, &[old.uid, old.euid])?;
            return Ok(0);
        }
        F_SETOWN => return set_own(cx, file, arg as i32).map(|()| 0),
        _ => {
            let wanted: FOwnerEx = cx.read_value(arg)?;
            if !matches!(wanted.kind, F_OWNER_TID | F_OWNER_PID | F_OWNER_PGRP) {
                return Err(Errno::EINVAL.into());
            }
            (wanted.kind, wanted.pid)
        }
    };
    set_owner(cx, file, kind, id).map(|()| 0)
}

/// Whom a description tells, and its number as the caller sees it. The dead own nothing.
fn owned_by(cx: &Cx, file: &File) -> (FileOwner, i32) {
    let now = *file.owner.lock();
    let lives = now.id != 0 && owner::exists(cx.kernel(), now.kind, now.id);
    (now, if lives { cx.task.shown(now.id) } else { 0 })
}

/// A group's number is negative.
fn signed(kind: i32, id: i32) -> i32 {
    if kind == F_OWNER_PGRP { id.saturating_neg() } else { id }
}

/// F_GETOWN, FIOGETOWN, SIOCGPGRP.
pub(super) fn own(cx: &Cx, file: &File) -> i32 {
    let (owner, shown) = owned_by(cx, file);
    signed(owner.kind, shown)
}

/// F_SETOWN, FIOSETOWN, SIOCSPGRP.
pub(super) fn set_own(cx: &Cx, file: &Arc<File>, who: i32) -> SysResult<()> {
    match who {
        i32::MIN => Err(Errno::EINVAL.into()),
        id if id < 0 => set_owner(cx, file, F_OWNER_PGRP, id.saturating_neg()),
        id => set_owner(cx, file, F_OWNER_PID, id),
    }
}

fn set_owner(cx: &Cx, file: &Arc<File>, kind: i32, id: i32) -> SysResult<()> {
    let id = cx.task.meant(id);
    if id != 0 && !owner::exists(cx.kernel(), kind, id) {
        return Err(Errno::ESRCH.into());
    }
    let creds = cx.task.creds();
    let new = if id == 0 { (0, 0) } else { (creds.uid, creds.euid) };
    {
        let mut owner = file.owner.lock();
        *owner = FileOwner { kind, id, uid: new.0, euid: new.1, ..*owner };
    }
    owner::watch_urgent(cx.kernel(), file);
    Ok(())
}

/// F_GET_RW_HINT, F_SET_RW_HINT: kept with the inode, without effect.
fn hint(cx: &mut Cx, file: &File, op: i32, arg: u64) -> SysResult {
    let inode = file.ops.inode();
    let kept = inode.as_ref().and_then(|inode| inode.busy()).map(|busy| &busy.hint);
    if op == F_GET_RW_HINT {
        let value = kept.map_or(0, |hint| hint.load(Ordering::Relaxed));
        cx.write_value(arg, &u64::from(value))?;
        return Ok(0);
    }
    if !owns(cx, file)? {
        return Err(Errno::EPERM.into());
    }
    let value: u64 = cx.read_value(arg)?;
    let value = u8::try_from(value).ok().filter(|v| *v <= LIFE_EXTREME).ok_or(Errno::EINVAL)?;
    if let Some(hint) = kept {
        hint.store(value, Ordering::Relaxed);
    }
    Ok(0)
}
