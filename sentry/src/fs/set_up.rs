//! The mounts that every sandbox has.

use super::gofer::GoferFs;
use super::memfs::MemFs;
use crate::boot::HostMount;
use crate::fail::{Fail, SysResult};
use crate::kernel::Kernel;
use crate::vfs::Vfs;
use crate::vfs::dentry::{Dentry, Known};
use crate::vfs::inode::{Inode, NewKind, NewOwner};
use crate::vfs::mount::NewMount;
use crate::vfs::path::Path;
use std::sync::Arc;
use syscall_table::abi::stat::makedev;
use syscall_table::errno::Errno;

/// Room for files in memory: half of the machine's.
fn room() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit.max(1))) / 2
}

/// Mounts what every sandbox has: the host's files below an upper layer in memory, what may be written, and the kernel's own
/// file systems. `console`: owner and mode of the terminal that the sandbox was started on.
///
/// # Errors
/// What the gofer says of its mounts.
pub fn set_up(
    kernel: &Arc<Kernel>,
    client: &Arc<::gofer::Client>,
    mounts: &[HostMount],
    console: Option<NewOwner>,
) -> SysResult<()> {
    super::memory::set_gofer(client);
    let vfs = &kernel.vfs;
    let lower = GoferFs::attach(kernel, client, 0)?;
    let root: Arc<dyn Inode> = if lower.writable() { lower } else { MemFs::overlay(lower, room())? };
    vfs.mount_root(NewMount {
        root: Dentry::root(root),
        fstype: "overlay",
        source: "overlay".to_owned(),
        read_only: false,
        options: "relatime",
    });
    for (number, mount) in mounts.iter().enumerate().skip(1) {
        let number = u32::try_from(number).map_err(|_| Errno::EINVAL)?;
        let inode = GoferFs::attach(kernel, client, number)?;
        let at = place(vfs, &mount.at, inode.is_dir())?;
        vfs.mount(
            at,
            NewMount {
                root: Dentry::root(inode),
                fstype: "fuse.lazaret",
                source: "host".to_owned(),
                read_only: !mount.writable,
                options: "relatime",
            },
        );
    }
    super::dev::mount(vfs, room(), console)?;
    super::devpts::mount(kernel)?;
    super::mqueue::mount(kernel)?;
    super::proc::mount(kernel)?;
    super::sys::mount(vfs, kernel.config.cpus)
}

/// A tmpfs mounted at `at`.
pub(super) fn tmpfs(vfs: &Vfs, at: &[u8], minor: u32, mode: u32) -> SysResult<()> {
    let at = place(vfs, at, true)?;
    let root = MemFs::tmpfs(makedev(0, minor), room(), NewOwner { mode, uid: 0, gid: 0 });
    vfs.mount(
        at,
        NewMount {
            root: Dentry::root(root),
            fstype: "tmpfs",
            source: "tmpfs".to_owned(),
            read_only: false,
            options: "nosuid,nodev,relatime",
        },
    );
    Ok(())
}

/// A place to mount at. What the host lacks, or hides, is made in the upper layer.
pub(super) fn place(vfs: &Vfs, path: &[u8], dir: bool) -> SysResult<Path> {
    let mut at = vfs.root()?;
    let mut names = path.split(|b| *b == b'/').filter(|n| !n.is_empty()).peekable();
    while let Some(name) = names.next() {
        at = vfs.mounted(at);
        let is_dir = dir || names.peek().is_some();
        let dentry = match at.dentry.known(name) {
            Known::Present(dentry) => dentry,
            Known::Absent => make(&at, name, is_dir)?,
            Known::Unknown(changes) => match at.inode().lookup_free(name) {
                Ok(inode) => at.dentry.remember(name, inode, changes).ok_or(Errno::EAGAIN)?,
                Err(Fail::Error(Errno::ENOENT) | Fail::Denial(_)) => make(&at, name, is_dir)?,
                Err(fail) => return Err(fail),
            },
        };
        at = Path { mount: at.mount, dentry };
    }
    Ok(at)
}

fn make(at: &Path, name: &[u8], dir: bool) -> SysResult<Arc<Dentry>> {
    let kind = if dir { NewKind::Dir } else { NewKind::File };
    let inode = at.inode().create(name, kind, NewOwner { mode: 0o755, uid: 0, gid: 0 })?;
    Ok(at.dentry.added(name, inode))
}
