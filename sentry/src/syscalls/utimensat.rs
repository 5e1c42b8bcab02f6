//! utimensat(2), utimes(2), futimesat(2), utime(2).

use super::chmod::{inode_at, inode_of};
use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::attr::FileTime;
use crate::vfs::inode::{SetAttr, SetTime};
use crate::vfs::perm;
use crate::vfs::watch::Target;
use syscall_table::abi::inotify::IN_ATTRIB;
use syscall_table::abi::open::*;
use syscall_table::errno::Errno;

const UTIME_NOW: i64 = 0x3fff_ffff;
const UTIME_OMIT: i64 = 0x3fff_fffe;

fn time(t: Timespec) -> SysResult<Option<SetTime>> {
    match t.tv_nsec {
        UTIME_NOW => Ok(Some(SetTime::Now)),
        UTIME_OMIT => Ok(None),
        nsec => {
            let nsec = u32::try_from(nsec).ok().filter(|n| *n < 1_000_000_000).ok_or(Errno::EINVAL)?;
            Ok(Some(SetTime::At(FileTime { sec: t.tv_sec, nsec })))
        }
    }
}

fn micro(t: Timeval) -> SysResult<Option<SetTime>> {
    if !(0..1_000_000).contains(&t.tv_usec) {
        return Err(Errno::EINVAL.into());
    }
    time(Timespec { tv_sec: t.tv_sec, tv_nsec: t.tv_usec.saturating_mul(1000) })
}

fn set(cx: &Cx, target: &Target, times: (Option<SetTime>, Option<SetTime>)) -> SysResult {
    let inode = &target.inode;
    let creds = cx.task.creds();
    let attr = inode.attr()?;
    if !perm::owns(&creds, &attr) {
        if times != (Some(SetTime::Now), Some(SetTime::Now)) {
            inode.settable()?;
            return Err(Errno::EPERM.into());
        }
        perm::check(&creds, &attr, perm::WRITE)?;
    }
    inode.set_attr(&SetAttr { atime: times.0, mtime: times.1, ..SetAttr::default() })?;
    target.tell(IN_ATTRIB);
    Ok(0)
}

const NOW: (Option<SetTime>, Option<SetTime>) = (Some(SetTime::Now), Some(SetTime::Now));

pub fn utimensat(
    cx: &mut Cx,
    dirfd: DirFd,
    path: Path,
    times: In<TimespecPair>,
    flags: AtFlags,
) -> SysResult {
    if flags.unknown(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let new = if times.is_null() {
        NOW
    } else {
        let pair: TimespecPair = cx.read_value(times.addr())?;
        (time(pair.atime)?, time(pair.mtime)?)
    };
    if new == (None, None) {
        // Not even the path is looked at.
        return Ok(0);
    }
    let inode = if path.is_null() && dirfd.raw() != AT_FDCWD {
        if flags.bits() != 0 {
            return Err(Errno::EINVAL.into());
        }
        inode_of(cx, Fd(dirfd.raw()))?
    } else {
        inode_at(cx, dirfd.raw(), path, flags.bits())?
    };
    set(cx, &inode, new)
}

pub fn futimesat(cx: &mut Cx, dirfd: DirFd, path: Path, times: In<TimevalPair>) -> SysResult {
    let new = if times.is_null() {
        NOW
    } else {
        let pair: TimevalPair = cx.read_value(times.addr())?;
        (micro(pair.atime)?, micro(pair.mtime)?)
    };
    let inode = if path.is_null() && dirfd.raw() != AT_FDCWD {
        inode_of(cx, Fd(dirfd.raw()))?
    } else {
        inode_at(cx, dirfd.raw(), path, 0)?
    };
    set(cx, &inode, new)
}

pub fn utimes(cx: &mut Cx, filename: Path, times: In<TimevalPair>) -> SysResult {
    futimesat(cx, DirFd(AT_FDCWD), filename, times)
}

pub fn utime(cx: &mut Cx, path: Path, times: In<Utimbuf>) -> SysResult {
    let new = if times.is_null() {
        NOW
    } else {
        let buf: Utimbuf = cx.read_value(times.addr())?;
        let at = |sec| time(Timespec { tv_sec: sec, tv_nsec: 0 });
        (at(buf.actime)?, at(buf.modtime)?)
    };
    let inode = inode_at(cx, AT_FDCWD, path, 0)?;
    set(cx, &inode, new)
}
