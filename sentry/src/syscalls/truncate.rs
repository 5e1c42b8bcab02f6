//! truncate(2), ftruncate(2), fallocate(2), posix_fadvise(2), readahead(2), cachestat(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::signal::send;
use crate::vfs::inode::Inode;
use crate::vfs::perm;
use crate::vfs::text::Writer;
use crate::vfs::watch::{self, Target};
use std::sync::Arc;
use syscall_table::abi::getrlimit::RLIMIT_FSIZE;
use syscall_table::abi::inotify::IN_MODIFY;
use syscall_table::abi::open::AT_FDCWD;
use syscall_table::abi::readv::*;
use syscall_table::abi::sigaction::{SIGXFSZ, Siginfo};
use syscall_table::abi::stat::S_IFIFO;
use syscall_table::errno::Errno;

pub fn truncate(cx: &mut Cx, path: Path, length: i64) -> SysResult {
    let size = u64::try_from(length).map_err(|_| Errno::EINVAL)?;
    let path = cx.read_path(path.addr())?;
    let place = cx.kernel().vfs.lookup(cx.task, AT_FDCWD, &path, true)?;
    // What it is counts before where it is.
    if place.inode().is_dir() {
        return Err(Errno::EISDIR.into());
    }
    if !place.inode().is_file() {
        return Err(Errno::EINVAL.into());
    }
    if place.mount.read_only() {
        return Err(cx.kernel().vfs.policy.read_only(&place, b"", ""));
    }
    let target = Target::from(place);
    let inode = &target.inode;
    perm::check(&cx.task.creds(), &inode.attr()?, perm::WRITE)?;
    let _writer = Writer::new(inode)?;
    limit(cx, inode, size)?;
    perm::drop_privileges(cx.task, inode)?;
    inode.truncate(size)?;
    target.tell(IN_MODIFY);
    Ok(0)
}

/// RLIMIT_FSIZE: a file is not made longer than that.
///
/// # Errors
/// EFBIG, after SIGXFSZ.
fn limit(cx: &Cx, inode: &Arc<dyn Inode>, size: u64) -> SysResult<()> {
    let limit = cx.task.process.limit(RLIMIT_FSIZE);
    if size <= limit || size <= inode.attr()?.size {
        return Ok(());
    }
    send::to_process(cx.kernel(), &cx.task.process, Siginfo::kernel(SIGXFSZ));
    Err(Errno::EFBIG.into())
}

pub fn ftruncate(cx: &mut Cx, fd: Fd, length: i64) -> SysResult {
    let size = u64::try_from(length).map_err(|_| Errno::EINVAL)?;
    let file = cx.task.files().get(fd.raw())?;
    if !file.writable() {
        return Err(Errno::EINVAL.into());
    }
    if let Some(inode) = file.ops.inode().filter(|inode| inode.is_file()) {
        limit(cx, &inode, size)?;
        perm::drop_privileges(cx.task, &inode)?;
    }
    file.ops.truncate(size)?;
    if let Some(place) = &file.path {
        watch::tell_place(place, IN_MODIFY);
    }
    Ok(0)
}

pub fn fallocate(cx: &mut Cx, fd: Fd, mode: FallocateMode, offset: i64, size: i64) -> SysResult {
    let offset = u64::try_from(offset).map_err(|_| Errno::EINVAL)?;
    let len = u64::try_from(size).ok().filter(|n| *n > 0).ok_or(Errno::EINVAL)?;
    let known = FALLOC_FLAGS.iter().fold(0, |all, (_, bit)| all | bit);
    if mode.unknown(known) != 0 {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if mode.has(FALLOC_FL_PUNCH_HOLE) && !mode.has(FALLOC_FL_KEEP_SIZE) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let file = cx.task.files().get(fd.raw())?;
    if !file.writable() {
        return Err(Errno::EBADF.into());
    }
    if let Some(inode) = file.ops.inode().filter(|inode| inode.is_file()) {
        if !mode.has(FALLOC_FL_KEEP_SIZE) {
            limit(cx, &inode, offset.saturating_add(len))?;
        }
        perm::drop_privileges(cx.task, &inode)?;
    }
    file.ops.fallocate(mode.bits(), offset, len)?;
    if let Some(place) = &file.path {
        watch::tell_place(place, IN_MODIFY);
    }
    Ok(0)
}

fn seekable(cx: &Cx, fd: Fd) -> SysResult<()> {
    let file = cx.task.files().get(fd.raw())?;
    if !file.ops.seekable() && file.ops.attr().is_ok_and(|a| a.mode & S_IFIFO != 0) {
        return Err(Errno::ESPIPE.into());
    }
    Ok(())
}

pub fn fadvise64(cx: &mut Cx, fd: Fd, _offset: i64, size: i64, advice: Fadvice) -> SysResult {
    seekable(cx, fd)?;
    // An advice may be ignored.
    if size < 0 || !(POSIX_FADV_NORMAL..=POSIX_FADV_NOREUSE).contains(&advice.bits()) {
        return Err(Errno::EINVAL.into());
    }
    Ok(0)
}

pub fn readahead(cx: &mut Cx, fd: Fd, _offset: i64, _count: usize) -> SysResult {
    let file = cx.task.files().get(fd.raw())?;
    if !file.readable() {
        return Err(Errno::EBADF.into());
    }
    if file.ops.inode().is_none_or(|inode| !inode.is_file()) {
        return Err(Errno::EINVAL.into());
    }
    Ok(0)
}

/// Every page that a file has counts as cached, and none as changed or evicted.
pub fn cachestat(
    cx: &mut Cx,
    fd: Fd,
    range: In<CachestatRange>,
    cstat: Out<Cachestat>,
    flags: NoFlags,
) -> SysResult {
    let file = cx.task.files().get(fd.raw())?;
    let range: CachestatRange = cx.read_value(range.addr())?;
    if flags.bits() != 0 {
        return Err(Errno::EINVAL.into());
    }
    let size = file.ops.inode().filter(|inode| inode.is_file()).map_or(Ok(0), |_| file.ops.size())?;
    let end = if range.len == 0 { size } else { range.off.saturating_add(range.len).min(size) };
    let nr_cache = end.div_ceil(4096).saturating_sub(range.off / 4096);
    cx.write_value(cstat.addr(), &Cachestat { nr_cache, ..Cachestat::default() })?;
    Ok(0)
}
