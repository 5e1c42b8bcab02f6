//! flock(2), and the record locks of fcntl(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::Restart;
use crate::fail::SysResult;
use crate::vfs::file::File;
use crate::vfs::lock::{Locks, Owner, Range, Refusal, Waiting};
use crate::wait::Ready;
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::fcntl::*;
use syscall_table::abi::open::*;
use syscall_table::errno::Errno;

fn key(file: &File) -> SysResult<(u64, u64)> {
    let attr = file.ops.attr()?;
    Ok((attr.dev, attr.ino))
}

/// The description's end will release what it holds.
fn remember(file: &File, locks: &Arc<Locks>, key: (u64, u64)) {
    let mut locked = file.locked.lock();
    if !locked.iter().any(|(l, k)| Arc::ptr_eq(l, locks) && *k == key) {
        locked.push((locks.clone(), key));
    }
}

pub fn flock(cx: &mut Cx, fd: Fd, op: FlockOp) -> SysResult {
    // Linux 5.18: it is ignored, whatever comes with it.
    if op.has(LOCK_MAND) {
        return Ok(0);
    }
    let file = cx.task.files().get(fd.raw())?;
    let write = match op.bits() & !LOCK_NB {
        LOCK_SH => Some(false),
        LOCK_EX => Some(true),
        LOCK_UN => None,
        _ => return Err(Errno::EINVAL.into()),
    };
    let locks = &cx.kernel().vfs.flocks;
    let key = key(&file)?;
    let owner = Owner::File(file.id);
    let Some(write) = write else {
        locks.release(key, owner);
        return Ok(0);
    };
    let range = Range { write, ..Range::ALL };
    let host = host(&file)?;
    remember(&file, locks, key);
    cx.wait_on(locks.queue(), Ready::OUT);
    let mut taken = locks.lock(key, owner, 0, range, host.as_ref());
    if let Err(Refusal::Held(_)) = taken {
        // Changing a lock gives up the old one first (flock(2)): that may let the new one in.
        locks.release(key, owner);
        taken = locks.lock(key, owner, 0, range, host.as_ref());
    }
    if let Err(Refusal::Outside) = taken {
        // The host has taken the old one by its try.
        locks.release(key, owner);
    }
    match taken {
        Err(Refusal::Held(_)) if !op.has(LOCK_NB) => cx.block(Restart::Sys),
        Err(Refusal::Outside) if !op.has(LOCK_NB) => look_again(cx),
        other => Ok(other.map(|()| 0)?),
    }
}

/// How soon a lock that somebody outside has in the way is tried again.
const AGAIN: Duration = Duration::from_millis(20);

/// What locks the file on the host, if others there are to meet its locks.
fn host(file: &File) -> SysResult<Option<Arc<OwnedFd>>> {
    match file.ops.inode() {
        Some(inode) => inode.lock_file(),
        None => Ok(None),
    }
}

/// The host wakes nobody who does not wait in it.
fn look_again(cx: &mut Cx) -> SysResult {
    cx.block_until(Some(crate::time::now().saturating_add(AGAIN)), Restart::Sys)
}

/// The range that a struct flock means.
fn range(file: &File, lock: &Flock) -> SysResult<Range> {
    let base = match i32::from(lock.l_whence) {
        SEEK_SET => 0,
        SEEK_CUR => i64::try_from(file.position()).map_err(|_| Errno::EOVERFLOW)?,
        SEEK_END => i64::try_from(file.ops.attr()?.size).map_err(|_| Errno::EOVERFLOW)?,
        _ => return Err(Errno::EINVAL.into()),
    };
    let start = base.checked_add(lock.l_start).ok_or(Errno::EOVERFLOW)?;
    let offset = |at: i64| u64::try_from(at).map_err(|_| Errno::EINVAL);
    offset(start)?;
    let (start, end) = match lock.l_len {
        0 => (start, i64::MAX),
        len if len > 0 => (start, start.checked_add(len.saturating_sub(1)).ok_or(Errno::EOVERFLOW)?),
        len => (start.checked_add(len).ok_or(Errno::EINVAL)?, start.saturating_sub(1)),
    };
    Ok(Range { start: offset(start)?, end: offset(end)?, write: i32::from(lock.l_type) == F_WRLCK })
}

/// F_GETLK, F_SETLK, F_SETLKW and their OFD forms.
pub(super) fn record(cx: &mut Cx, file: &Arc<File>, op: i32, arg: u64) -> SysResult {
    let mut lock: Flock = cx.read_value(arg)?;
    let ofd = matches!(op, F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW);
    let kind = i32::from(lock.l_type);
    if op == F_GETLK && kind == F_UNLCK {
        return Err(Errno::EINVAL.into());
    }
    let range = range(file, &lock)?;
    if !matches!(kind, F_RDLCK | F_WRLCK | F_UNLCK) || (ofd && lock.l_pid != 0) {
        return Err(Errno::EINVAL.into());
    }
    let table = cx.task.files();
    let pid = cx.task.process.pid;
    let owner = if ofd { Owner::File(file.id) } else { table.owner() };
    let locks = &cx.kernel().vfs.locks;
    let key = key(file)?;
    if matches!(op, F_GETLK | F_OFD_GETLK) {
        // F_OFD_GETLK with F_UNLCK asks for what the description itself holds.
        let mut found =
            if kind == F_UNLCK { locks.own(key, owner, range) } else { locks.conflict(key, owner, range) };
        if found.is_none()
            && kind != F_UNLCK
            && let Some(host) = host(file)?
        {
            found = locks.conflict_outside(key, &host, range);
        }
        match found {
            None => lock.l_type = F_UNLCK as i16,
            Some((other, pid)) => {
                lock.l_type = if other.write { F_WRLCK } else { F_RDLCK } as i16;
                lock.l_whence = SEEK_SET as i16;
                lock.l_start = i64::try_from(other.start).unwrap_or(i64::MAX);
                let len = other.end.saturating_sub(other.start).saturating_add(1);
                lock.l_len = if other.end >= i64::MAX as u64 { 0 } else { i64::try_from(len).unwrap_or(0) };
                // -1: of a description.
                lock.l_pid = if pid > 0 { cx.task.shown(pid) } else { pid };
            }
        }
        cx.write_value(arg, &lock)?;
        return Ok(0);
    }
    match kind {
        F_RDLCK if !file.readable() => return Err(Errno::EBADF.into()),
        F_WRLCK if !file.writable() => return Err(Errno::EBADF.into()),
        F_UNLCK => return Ok(locks.unlock(key, owner, range).map(|()| 0)?),
        _ => {}
    }
    if ofd {
        remember(file, locks, key);
    } else {
        table.locks_in(locks);
    }
    let waits = matches!(op, F_SETLKW | F_OFD_SETLKW);
    if waits {
        // An earlier wait may have been for another.
        cx.state::<Option<Waiting>>().take();
        cx.wait_on(locks.queue(), Ready::OUT);
    }
    let host = host(file)?;
    match locks.lock(key, owner, if ofd { -1 } else { pid }, range, host.as_ref()) {
        Err(Refusal::Outside) if waits => look_again(cx),
        Err(Refusal::Held(holder)) if waits => {
            // Descriptions have no waits of their own: only processes are looked at.
            if !ofd {
                let waiting = locks.wait(owner, holder).ok_or(Errno::EDEADLK)?;
                *cx.state() = Some(waiting);
            }
            cx.block(Restart::Sys)
        }
        other => Ok(other.map(|()| 0)?),
    }
}
