//! mount(2), umount2(2), name_to_handle_at(2), open_by_handle_at(2): refused.

use crate::args::*;
use crate::cx::Cx;
use crate::fail::Fail;
use crate::fail::SysResult;
use syscall_table::errno::Errno;

pub fn mount(_cx: &mut Cx, _: CStr, _: Path, _: CStr, _: MountFlags, _: CStr) -> SysResult {
    Err(Fail::gap(Errno::EPERM, "mounts inside the sandbox"))
}

pub fn umount2(_cx: &mut Cx, _: Path, _: UmountFlags) -> SysResult {
    Err(Fail::gap(Errno::EPERM, "mounts inside the sandbox"))
}

pub fn name_to_handle_at(_cx: &mut Cx, _: DirFd, _: Path, _: Addr, _: Addr, _: AtFlags) -> SysResult {
    Err(Errno::EOPNOTSUPP.into())
}

pub fn open_by_handle_at(_cx: &mut Cx, _: DirFd, _: Addr, _: OpenFlags) -> SysResult {
    Err(Errno::EPERM.into())
}
