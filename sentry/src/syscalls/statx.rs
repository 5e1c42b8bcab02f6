//! statx(2).

use super::stat::attr_at;
use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::attr::FileTime;
use std::sync::Arc;
use syscall_table::abi::open::*;
use syscall_table::abi::stat::{major, minor};
use syscall_table::abi::statx::*;
use syscall_table::errno::Errno;

pub fn statx(
    cx: &mut Cx,
    dirfd: DirFd,
    path: Path,
    flags: AtFlags,
    mask: StatxMask,
    statxbuf: Out<Statx>,
) -> SysResult {
    let sync = AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC;
    if flags.unknown(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | sync) != 0
        || flags.has(sync)
        || mask.has(STATX__RESERVED)
    {
        return Err(Errno::EINVAL.into());
    }
    let (a, place) = attr_at(cx, dirfd.raw(), path, flags.bits())?;
    let ns = cx.task.creds().ns.clone();
    let time = |t: FileTime| StatxTimestamp { tv_sec: t.sec, tv_nsec: t.nsec, __reserved: 0 };
    let mut out = Statx {
        stx_mask: STATX_BASIC_STATS,
        stx_blksize: a.blksize,
        stx_nlink: u32::try_from(a.nlink).unwrap_or(u32::MAX),
        stx_uid: ns.user(a.uid),
        stx_gid: ns.group(a.gid),
        stx_mode: u16::try_from(a.mode & 0xffff).unwrap_or(0),
        stx_ino: a.ino,
        stx_size: a.size,
        stx_blocks: a.blocks,
        stx_atime: time(a.atime),
        stx_ctime: time(a.ctime),
        stx_mtime: time(a.mtime),
        stx_rdev_major: major(a.rdev),
        stx_rdev_minor: minor(a.rdev),
        stx_dev_major: major(a.dev),
        stx_dev_minor: minor(a.dev),
        stx_attributes_mask: STATX_ATTR_MOUNT_ROOT,
        ..Statx::default()
    };
    if let Some(birth) = a.btime {
        out.stx_btime = time(birth);
        out.stx_mask |= STATX_BTIME;
    }
    if let Some(place) = place {
        let unique = mask.has(STATX_MNT_ID_UNIQUE);
        out.stx_mnt_id = if unique { place.mount.unique() } else { place.mount.id };
        out.stx_mask |= if unique { STATX_MNT_ID_UNIQUE } else { STATX_MNT_ID };
        if Arc::ptr_eq(&place.dentry, &place.mount.root) {
            out.stx_attributes |= STATX_ATTR_MOUNT_ROOT;
        }
    }
    cx.write_value(statxbuf.addr(), &out)?;
    Ok(0)
}
