//! quotactl(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use syscall_table::abi::S_IFBLK;
use syscall_table::abi::open::AT_FDCWD;
use syscall_table::errno::Errno;

/// User, group and project quotas.
const TYPES: u32 = 3;
/// Q_SYNC, shifted as the command is.
const SYNC: u32 = 0x80_0001;
/// The command in an operation; its type is in the low byte.
const SHIFT: u32 = 8;

/// quotactl(2)
pub fn quotactl(cx: &mut Cx, op: u32, special: Path, _id: u32, _addr: Addr) -> SysResult {
    if op & 0xff >= TYPES {
        return Err(Errno::EINVAL.into());
    }
    if special.addr() == 0 {
        // All of none.
        return if op >> SHIFT == SYNC { Ok(0) } else { Err(Errno::ENODEV.into()) };
    }
    let path = cx.read_path(special.addr())?;
    let place = cx.kernel().vfs.lookup(cx.task, AT_FDCWD, &path, true)?;
    if place.inode().kind() != S_IFBLK {
        return Err(Errno::ENOTBLK.into());
    }
    Err(Fail::gap(Errno::ENOSYS, "quotas"))
}

/// quotactl_fd(2)
pub fn quotactl_fd(cx: &mut Cx, fd: Fd, op: u32, _id: u32, _addr: Addr) -> SysResult {
    cx.task.files().get_any(fd.raw())?;
    if op & 0xff >= TYPES {
        return Err(Errno::EINVAL.into());
    }
    // As file systems without quotas, which all here are.
    Err(Errno::ENOSYS.into())
}
