//! Devices: null, zero, full, random, urandom, tty, ptmx.

use super::memfs::MemFs;
use crate::boot::Inherited;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::Task;
use crate::tty::Terminal;
use crate::vfs::Vfs;
use crate::vfs::attr::Attr;
use crate::vfs::dentry::Dentry;
use crate::vfs::file::{File, FileOps, Mapping, Written};
use crate::vfs::inode::{Inode, NewKind, NewOwner};
use crate::vfs::mount::NewMount;
use crate::vfs::path::Path;
use std::sync::Arc;
use syscall_table::abi::stat::{S_IFCHR, S_IFLNK, S_IFMT, major, makedev, minor};
use syscall_table::errno::Errno;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Zero,
    Full,
    Random,
}

/// The terminal that the sandbox was started on: its number outside says nothing inside.
pub(super) const CONSOLE: u64 = makedev(5, 1);

/// An inherited device that is the same inside; None for any other file.
///
/// # Errors
/// The host's.
pub(crate) fn inherited_device(vfs: &Vfs, inherited: &Inherited) -> SysResult<Option<Arc<File>>> {
    let stat = rustix::fs::fstat(&inherited.fd)?;
    if stat.st_mode & S_IFMT != S_IFCHR {
        return Ok(None);
    }
    let (kind, path): (_, &[u8]) = match (major(stat.st_rdev), minor(stat.st_rdev)) {
        (1, 3) => (Kind::Null, b"/dev/null"),
        (1, 5) => (Kind::Zero, b"/dev/zero"),
        (1, 7) => (Kind::Full, b"/dev/full"),
        (1, 8) => (Kind::Random, b"/dev/random"),
        (1, 9) => (Kind::Random, b"/dev/urandom"),
        _ => return Ok(None),
    };
    let place = super::set_up::place(vfs, path, false)?;
    let ops = Arc::new(Device { kind, inode: place.inode().clone() });
    Ok(Some(File::new(ops, super::host_stream::kept(inherited.flags), Some(place))))
}

/// /dev/console, which [`mount`] made if there is a terminal.
pub(super) fn console(vfs: &Vfs) -> SysResult<Path> {
    super::set_up::place(vfs, b"/dev/console", false)
}

/// Opens a character device by its number.
///
/// # Errors
/// ENXIO for devices that are not here.
pub(super) fn open(rdev: u64, inode: Arc<dyn Inode>, task: &Arc<Task>) -> SysResult<Arc<dyn FileOps>> {
    if rdev == CONSOLE {
        return task.kernel.tty.clone().ok_or(Errno::ENXIO)?.open_again(inode, task);
    }
    let kind = match (major(rdev), minor(rdev)) {
        (1, 3) => Kind::Null,
        (1, 5) => Kind::Zero,
        (1, 7) => Kind::Full,
        (1, 8 | 9) => Kind::Random,
        (5, 2) => return task.kernel.ptys.open_master(inode, task),
        // A slave made by mknod(2) is none: its number means nothing outside of /dev/pts.
        (136..=143, _) => return Err(Errno::EIO.into()),
        (5, 0) => {
            let tty = task.process.ctty.lock().clone();
            return tty.ok_or(Errno::ENXIO)?.open_again(inode, task);
        }
        _ => return Err(Errno::ENXIO.into()),
    };
    Ok(Arc::new(Device { kind, inode }))
}

struct Device {
    kind: Kind,
    inode: Arc<dyn Inode>,
}

impl FileOps for Device {
    fn read(&self, _: &mut Cx, _: &File, buf: &mut [u8], _: u64) -> SysResult<usize> {
        self.read_at(buf, 0)
    }

    fn read_at(&self, buf: &mut [u8], _: u64) -> SysResult<usize> {
        match self.kind {
            Kind::Null => return Ok(0),
            Kind::Zero | Kind::Full => buf.fill(0),
            Kind::Random => {
                let mut done = 0usize;
                while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
                    let got = rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())?;
                    done = done.saturating_add(got);
                }
            }
        }
        Ok(buf.len())
    }

    fn write(&self, _: &mut Cx, _: &File, data: &[u8], offset: u64) -> SysResult<Written> {
        if self.kind == Kind::Full {
            return Err(Errno::ENOSPC.into());
        }
        Ok(Written { count: data.len(), end: offset.saturating_add(data.len() as u64) })
    }

    fn ignores_data(&self) -> bool {
        matches!(self.kind, Kind::Null | Kind::Zero)
    }

    fn seekable(&self) -> bool {
        true
    }

    fn seeks_nowhere(&self) -> bool {
        true
    }

    fn hurries(&self) -> bool {
        true
    }

    fn size(&self) -> SysResult<u64> {
        Ok(0)
    }

    fn attr(&self) -> SysResult<Attr> {
        self.inode.attr()
    }

    fn mmap(&self, _: &File, _: i32, _: i32) -> SysResult<Mapping> {
        if self.kind == Kind::Zero { Ok(Mapping::Anonymous) } else { Err(Errno::ENODEV.into()) }
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        Some(self.inode.clone())
    }
}

/// Mounts /dev with what is in it, and /dev/shm.
pub(super) fn mount(vfs: &Vfs, room: u64, console: Option<NewOwner>) -> SysResult<()> {
    let owner = |mode| NewOwner { mode, masked: 0, uid: 0, gid: 0 };
    let root = MemFs::tmpfs(makedev(0, 6), room, owner(0o755));
    let devices: [(&[u8], u32, u32); 7] = [
        (b"null", 1, 3),
        (b"zero", 1, 5),
        (b"full", 1, 7),
        (b"random", 1, 8),
        (b"urandom", 1, 9),
        (b"tty", 5, 0),
        (b"ptmx", 5, 2),
    ];
    for (name, major, minor) in devices {
        root.create(name, NewKind::Special(S_IFCHR, makedev(major, minor)), owner(0o666))?;
    }
    if let Some(owner) = console {
        root.create(b"console", NewKind::Special(S_IFCHR, CONSOLE), owner)?;
    }
    let links: [(&[u8], &[u8]); 4] = [
        (b"fd", b"/proc/self/fd"),
        (b"stdin", b"/proc/self/fd/0"),
        (b"stdout", b"/proc/self/fd/1"),
        (b"stderr", b"/proc/self/fd/2"),
    ];
    for (name, target) in links {
        root.create(name, NewKind::Link(target), owner(S_IFLNK & 0o777))?;
    }
    for (name, mode) in [(&b"shm"[..], 0o1777), (b"pts", 0o755), (b"mqueue", 0o1777)] {
        root.create(name, NewKind::Dir, owner(mode))?;
    }
    let at = super::set_up::place(vfs, b"/dev", true)?;
    vfs.mount(
        at,
        NewMount {
            root: Dentry::root(root),
            fstype: "tmpfs",
            source: "dev".to_owned(),
            read_only: false,
            options: "nosuid,relatime",
        },
    );
    super::set_up::tmpfs(vfs, b"/dev/shm", 24, 0o1777)
}
