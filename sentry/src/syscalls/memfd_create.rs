//! memfd_create(2) and its seals (fcntl(2)).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::Fail;
use crate::fail::SysResult;
use crate::fs::memfs::MemFile;
use crate::vfs::file::File;
use crate::vfs::inode::NewOwner;
use std::sync::Arc;
use syscall_table::abi::fcntl::*;
use syscall_table::abi::getrlimit::RLIMIT_NOFILE;
use syscall_table::abi::mmap::*;
use syscall_table::abi::open::{O_LARGEFILE, O_RDWR};
use syscall_table::errno::Errno;

pub fn memfd_create(cx: &mut Cx, name: CStr, flags: MemfdFlags) -> SysResult {
    let name = cx.read_cstr(name.addr(), 249, Errno::EINVAL)?;
    let huge = flags.has(MFD_HUGETLB);
    if flags.unknown(MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | MFD_EXEC) != 0 && !huge {
        return Err(Errno::EINVAL.into());
    }
    if huge {
        return Err(Fail::gap(Errno::EINVAL, "memfd_create flag MFD_HUGETLB"));
    }
    if flags.has(MFD_EXEC | MFD_NOEXEC_SEAL) {
        return Err(Errno::EINVAL.into());
    }
    let creds = cx.task.creds();
    let mode = if flags.has(MFD_NOEXEC_SEAL) { 0o666 } else { 0o777 };
    let owner = NewOwner { mode, masked: 0, uid: creds.fsuid, gid: creds.fsgid };
    let (node, place) = cx.kernel().vfs.anonymous(&name, owner)?;
    node.set_seals(match (flags.has(MFD_NOEXEC_SEAL), flags.has(MFD_ALLOW_SEALING)) {
        (true, _) => F_SEAL_EXEC,
        (false, true) => 0,
        (false, false) => F_SEAL_SEAL,
    });
    let file = File::new(Arc::new(MemFile::new(node)?), O_RDWR | O_LARGEFILE, Some(place));
    let limit = cx.task.process.limit(RLIMIT_NOFILE);
    let fd = cx.task.files().install(file, flags.has(MFD_CLOEXEC), 0, limit)?;
    Ok(u64::from(fd.unsigned_abs()))
}

/// F_ADD_SEALS.
pub(super) fn add_seals(file: &File, seals: i32) -> SysResult {
    let memory = file.downcast::<MemFile>().ok_or(Errno::EINVAL)?;
    if !file.writable() {
        return Err(Errno::EPERM.into());
    }
    let known = SEALS.iter().fold(0, |all, (_, bit)| all | bit);
    if seals & !known != 0 {
        return Err(Errno::EINVAL.into());
    }
    memory.node().add_seals(seals)?;
    Ok(0)
}

/// F_GET_SEALS.
pub(super) fn get_seals(file: &File) -> SysResult {
    let memory = file.downcast::<MemFile>().ok_or(Errno::EINVAL)?;
    Ok(u64::from(memory.node().seals().cast_unsigned()))
}
