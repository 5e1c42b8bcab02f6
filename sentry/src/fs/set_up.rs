//! The mounts that every sandbox has.

use super::gofer::GoferFs;
use super::memfs::{MemFs, Node};
use super::merged::Merged;
use crate::boot::{Access, HostMount, MountKind};
use crate::fail::{Fail, SysResult};
use crate::kernel::Kernel;
use crate::policy::Given;
use crate::vfs::Vfs;
use crate::vfs::dentry::{Dentry, Known};
use crate::vfs::inode::{Inode, NewKind, NewOwner, downcast};
use crate::vfs::mount::NewMount;
use crate::vfs::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::stat::makedev;
use syscall_table::errno::Errno;

/// The minor device number of mount points that the host does not see.
const STAND_IN: u32 = 25;
/// Minor device numbers of the policy's tmpfs start here.
const FIRST_MINOR: u32 = 256;

/// Room for files in memory: half of the sandbox's memory, as Linux has it.
fn room() -> u64 {
    crate::memory::total() / 2
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
    let (first, rest) = mounts.split_first().ok_or(Errno::EINVAL)?;
    mount(kernel, client, first, 0)?;
    super::dev::mount(vfs, room(), console)?;
    super::devpts::mount(kernel)?;
    super::mqueue::mount(kernel)?;
    super::proc::mount(kernel)?;
    super::sys::mount(vfs, kernel.config.cpus)?;
    // Last: /dev/shm and the like can be among them.
    for (number, given) in (1..).zip(rest) {
        mount(kernel, client, given, number)?;
    }
    Ok(())
}

/// One mount of the policy, which has this place in it.
fn mount(
    kernel: &Arc<Kernel>,
    client: &Arc<::gofer::Client>,
    given: &HostMount,
    place_in_policy: u32,
) -> SysResult<()> {
    let vfs = &kernel.vfs;
    let (root, fstype, source, src, read_only): (Arc<dyn Inode>, _, _, _, _) = match &given.kind {
        MountKind::Host { number, src, access } => {
            let inode = GoferFs::attach(kernel, client, *number)?;
            match access {
                Access::Layered { size, earlier } => {
                    let lower: Arc<dyn Inode> = match earlier {
                        Some(number) => Merged::root(GoferFs::attach(kernel, client, *number)?, inode)?,
                        None => inode,
                    };
                    let root = MemFs::overlay(lower, size.unwrap_or_else(room))?;
                    (root, "overlay", "overlay", src.as_slice(), false)
                }
                Access::Read => (inode, "fuse.lazaret", "host", src.as_slice(), true),
                Access::Write => (inode, "fuse.lazaret", "host", src.as_slice(), false),
            }
        }
        MountKind::Memory { size } => {
            let dev = makedev(0, FIRST_MINOR.saturating_add(place_in_policy));
            let owner = NewOwner { mode: 0o1777, masked: 0, uid: 0, gid: 0 };
            (MemFs::tmpfs(dev, size.unwrap_or_else(room), owner), "tmpfs", "tmpfs", &b""[..], false)
        }
    };
    let new = NewMount {
        root: Dentry::root(root),
        fstype,
        source: source.to_owned(),
        read_only,
        options: if fstype == "tmpfs" { "nosuid,nodev,relatime" } else { "relatime" },
    };
    let id = if given.at == b"/" {
        vfs.mount_root(new);
        let root = vfs.root()?.mount;
        Vfs::lock(&root);
        root.id
    } else {
        let at = place(vfs, &given.at, new.root.inode.is_dir())?;
        let mount = vfs.mount(at, new);
        // Who may mount inside takes nothing away that policy has laid there.
        Vfs::lock(&mount);
        mount.id
    };
    vfs.policy.add(Given { mount: id, at: given.at.clone(), src: src.to_vec(), rule: given.rule.clone() });
    Ok(())
}

/// A tmpfs mounted at `at`.
pub(super) fn tmpfs(vfs: &Vfs, at: &[u8], minor: u32, mode: u32) -> SysResult<()> {
    let at = place(vfs, at, true)?;
    let root = MemFs::tmpfs(makedev(0, minor), room(), NewOwner { mode, masked: 0, uid: 0, gid: 0 });
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

/// A mount point where there is no name. Only an upper layer in memory may get one of its own; anywhere else it is a name that
/// the host does not see.
fn make(at: &Path, name: &[u8], dir: bool) -> SysResult<Arc<Dentry>> {
    let kind = if dir { NewKind::Dir } else { NewKind::File };
    let owner = NewOwner { mode: 0o755, masked: 0, uid: 0, gid: 0 };
    if let Some(node) = downcast::<Node>(at.inode()) {
        let inode = node.create(name, kind, owner)?;
        if let Some(made) = downcast::<Node>(&inode) {
            made.made_by_set_up();
        }
        return Ok(at.dentry.added(name, inode));
    }
    let root = MemFs::tmpfs(makedev(0, STAND_IN), 4096, owner);
    let inode: Arc<dyn Inode> = if dir { root } else { root.create(b"file", kind, owner)? };
    let dentry = at.dentry.added(name, inode);
    // One more than there are mounts: it stays known.
    dentry.mounted.fetch_add(1, Ordering::Release);
    Ok(dentry)
}
