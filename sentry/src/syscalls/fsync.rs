//! fsync(2), fdatasync(2), sync(2), syncfs(2), sync_file_range(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::abi::readv::*;
use syscall_table::errno::Errno;

fn sync_fd(cx: &Cx, fd: Fd, data_only: bool) -> SysResult {
    let file = cx.task.files().get(fd.raw())?;
    file.ops.fsync(data_only)?;
    Ok(0)
}

pub fn fsync(cx: &mut Cx, fd: Fd) -> SysResult {
    sync_fd(cx, fd, false)
}

pub fn fdatasync(cx: &mut Cx, fd: Fd) -> SysResult {
    sync_fd(cx, fd, true)
}

/// What is in memory needs no sync. What passes through to the host is written to its disks; failures are not told (sync(2)).
pub fn sync(cx: &mut Cx) -> SysResult {
    for root in cx.kernel().vfs.roots() {
        let _ = root.inode.sync_fs();
    }
    Ok(0)
}

pub fn syncfs(cx: &mut Cx, fd: Fd) -> SysResult {
    let file = cx.task.files().get(fd.raw())?;
    if let Some(inode) = file.ops.inode() {
        inode.sync_fs()?;
    }
    Ok(0)
}

pub fn sync_file_range(
    cx: &mut Cx,
    fd: Fd,
    offset: i64,
    nbytes: i64,
    flags: SyncFileRangeFlags,
) -> SysResult {
    let all = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if flags.unknown(all) != 0 || offset < 0 || nbytes < 0 || offset.checked_add(nbytes).is_none() {
        return Err(Errno::EINVAL.into());
    }
    let file = cx.task.files().get(fd.raw())?;
    if !file.ops.seekable() {
        return Err(Errno::ESPIPE.into());
    }
    if file.writable() {
        file.ops.fsync(true)?;
    }
    Ok(0)
}
