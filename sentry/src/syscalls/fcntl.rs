//! fcntl(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::Fail;
use crate::fail::SysResult;
use crate::ipc::pipe::PipeEnd;
use crate::vfs::file::File;
use std::sync::Arc;
use syscall_table::abi::fcntl::*;
use syscall_table::abi::getrlimit::RLIMIT_NOFILE;
use syscall_table::abi::open::*;
use syscall_table::errno::Errno;

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
        F_SETFL => {
            file.set_flags(int, CHANGEABLE);
            file.ops.flags_changed(&file);
            Ok(0)
        }
        F_GETLK | F_SETLK | F_SETLKW | F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW => {
            super::flock::record(cx, &file, op.bits(), arg)
        }
        F_SETOWN => {
            file.owner.store(int, std::sync::atomic::Ordering::Relaxed);
            Ok(0)
        }
        F_GETOWN => Ok(i64::from(file.owner.load(std::sync::atomic::Ordering::Relaxed)).cast_unsigned()),
        F_SETOWN_EX => {
            let owner: FOwnerEx = cx.read_value(arg)?;
            let id = if owner.kind == F_OWNER_PGRP { owner.pid.saturating_neg() } else { owner.pid };
            file.owner.store(id, std::sync::atomic::Ordering::Relaxed);
            Ok(0)
        }
        F_GETOWN_EX => {
            let id = file.owner.load(std::sync::atomic::Ordering::Relaxed);
            let kind = if id < 0 { F_OWNER_PGRP } else { F_OWNER_PID };
            cx.write_value(arg, &FOwnerEx { kind, pid: id.saturating_abs() })?;
            Ok(0)
        }
        F_GETSIG => Ok(0),
        F_SETSIG if int == 0 => Ok(0),
        F_DUPFD_QUERY => {
            let other = files.get(int)?;
            Ok(u64::from(Arc::ptr_eq(&file, &other)))
        }
        F_ADD_SEALS => super::memfd_create::add_seals(&file, int),
        F_GET_SEALS => super::memfd_create::get_seals(&file),
        // The hints are hints: none is kept.
        F_GET_RW_HINT | F_GET_FILE_RW_HINT => {
            cx.write_value(arg, &0u64)?;
            Ok(0)
        }
        F_SET_RW_HINT | F_SET_FILE_RW_HINT => Ok(0),
        F_GETLEASE => Ok(F_UNLCK as u64),
        F_SETLEASE if int == F_UNLCK => Err(Errno::EAGAIN.into()),
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
