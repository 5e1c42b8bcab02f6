//! statfs(2), fstatfs(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::inode::Inode;
use crate::vfs::mount::{Mount, mnt};
use crate::vfs::path::Path as Place;
use std::sync::Arc;
use syscall_table::abi::open::AT_FDCWD;
use syscall_table::abi::stat::*;
use syscall_table::abi::statfs::*;
use syscall_table::errno::Errno;
use zerocopy::FromZeros;

/// ST_ bits of a mount.
fn mount_flags(mount: &Mount) -> i64 {
    let mut out = if mount.read_only() { ST_RDONLY } else { 0 };
    for (from, to) in [
        (mnt::NOSUID, ST_NOSUID),
        (mnt::NODEV, ST_NODEV),
        (mnt::NOEXEC, ST_NOEXEC),
        (mnt::NOATIME, ST_NOATIME),
        (mnt::NODIRATIME, ST_NODIRATIME),
        (mnt::RELATIME, ST_RELATIME),
        (mnt::NOSYMFOLLOW, ST_NOSYMFOLLOW),
    ] {
        if mount.has(from) {
            out |= to;
        }
    }
    out
}

fn answer(cx: &mut Cx, inode: &Arc<dyn Inode>, place: Option<&Place>, buf: Out<Statfs>) -> SysResult {
    let s = inode.statfs()?;
    let size = i64::try_from(s.bsize).unwrap_or(4096);
    let flags = place.map_or(0, |p| mount_flags(&p.mount));
    let out = Statfs {
        f_type: s.kind,
        f_bsize: size,
        f_blocks: s.blocks,
        f_bfree: s.bfree,
        f_bavail: s.bavail,
        f_files: s.files,
        f_ffree: s.ffree,
        f_namelen: i64::try_from(s.namelen).unwrap_or(255),
        f_frsize: size,
        f_flags: s.flags | ST_VALID | flags,
        ..Statfs::default()
    };
    cx.write_value(buf.addr(), &out)?;
    Ok(0)
}

pub fn statfs(cx: &mut Cx, path: Path, buf: Out<Statfs>) -> SysResult {
    let path = cx.read_path(path.addr())?;
    let place = cx.kernel().vfs.lookup(cx.task, AT_FDCWD, &path, true)?;
    answer(cx, &place.inode().clone(), Some(&place), buf)
}

pub fn fstatfs(cx: &mut Cx, fd: Fd, buf: Out<Statfs>) -> SysResult {
    let file = cx.task.files().get_any(fd.raw())?;
    if let Some(inode) = file.ops.inode() {
        return answer(cx, &inode, file.path.as_ref(), buf);
    }
    let kind = match file.ops.attr()?.mode & S_IFMT {
        S_IFIFO => PIPEFS_MAGIC,
        S_IFSOCK => SOCKFS_MAGIC,
        S_IFCHR => DEVPTS_SUPER_MAGIC,
        _ => ANON_INODE_FS_MAGIC,
    };
    let out = Statfs {
        f_type: kind,
        f_bsize: 4096,
        f_namelen: 255,
        f_frsize: 4096,
        f_flags: ST_VALID,
        ..Statfs::default()
    };
    cx.write_value(buf.addr(), &out)?;
    Ok(0)
}

/// ustat(2): of the file system with this device number.
pub fn ustat(cx: &mut Cx, dev: u32, ubuf: Out<Ustat>) -> SysResult {
    let wanted = u64::from(dev);
    let mounts = cx.task.namespaces().mnt.mounts();
    let of = |mount: &Arc<crate::vfs::mount::Mount>| {
        let inode = mount.root.inode.clone();
        inode.attr().is_ok_and(|attr| attr.dev == wanted).then_some(inode)
    };
    let inode = mounts.iter().find_map(of).ok_or(Errno::EINVAL)?;
    let s = inode.statfs()?;
    // As wide as the old structure has it.
    let out = Ustat { f_tfree: s.bfree as i32, f_tinode: s.ffree, ..Ustat::new_zeroed() };
    cx.write_value(ubuf.addr(), &out).map(|()| 0)
}

/// sysfs(2): names and numbers of file-system types, as /proc/filesystems lists them.
pub fn sysfs(cx: &mut Cx, option: i32, arg1: u64, arg2: u64) -> SysResult {
    use crate::fs::proc::FILESYSTEMS;
    match option {
        1 => {
            let name = cx.read_path(arg1)?;
            let at = FILESYSTEMS.iter().position(|known| known.as_bytes() == name);
            at.map(|at| at as u64).ok_or(Errno::EINVAL.into())
        }
        2 => {
            let at = usize::try_from(arg1 as u32).map_err(|_| Errno::EINVAL)?;
            let name = FILESYSTEMS.get(at).ok_or(Errno::EINVAL)?;
            cx.copy_out(arg2, &[name.as_bytes(), b"\0"].concat()).map(|()| 0)
        }
        3 => Ok(FILESYSTEMS.len() as u64),
        _ => Err(Errno::EINVAL.into()),
    }
}
