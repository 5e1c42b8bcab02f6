//! Attributes of inodes, and which devices hold files at all.

use std::collections::HashSet;
use std::os::fd::AsFd;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, StatxTimestamp, getxattr, makedev, statx};
use rustix::io::Errno;

use crate::hidden::is_kernel_type;
use crate::protocol::{Attr, NodeId, Response, StatFs, Time};

use super::{Answer, Server};

const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

impl Server {
    pub(super) fn getattr(&self, node: NodeId) -> Answer {
        let node = self.nodes.get(node)?;
        // Asked for often, by calls that most often judge nothing: whether there is a list is left to be asked.
        Ok((Response::Attr(self.with_owner(&node, read_attr(&node)?)), None))
    }

    /// A node's attributes now, with the real owner.
    pub(super) fn node_attr(&self, node: &super::nodes::Node) -> Result<Attr, Errno> {
        let attr = self.listed_attr(node)?;
        Ok(self.with_owner(node, attr))
    }

    /// Attributes of what a descriptor refers to, and whether it has an access control list.
    pub(super) fn listed_attr(&self, fd: impl AsFd) -> Result<Attr, Errno> {
        let mut attr = read_attr(&fd)?;
        // Where the group's class has no rights a list grants none (acl(5)).
        let may = attr.mode & 0o070 != 0 && FileType::from_raw_mode(attr.mode) != FileType::Symlink;
        // Anything but that there is none leaves it to be asked.
        let none = [Errno::NODATA, Errno::OPNOTSUPP];
        let list = || getxattr(self.self_fds.path(&fd), c"system.posix_acl_access", &mut [0; 0]);
        attr.acl = Some(may && !list().is_err_and(|errno| none.contains(&errno)));
        Ok(attr)
    }

    pub(super) fn statfs(&self, node: NodeId) -> Answer {
        let node = self.nodes.get(node)?;
        let kind = rustix::fs::fstatfs(&*node)?.f_type;
        let stat = rustix::fs::fstatvfs(&*node)?;
        let statfs = StatFs {
            kind: kind.cast_unsigned(),
            bsize: stat.f_bsize,
            frsize: stat.f_frsize,
            blocks: stat.f_blocks,
            bfree: stat.f_bfree,
            bavail: stat.f_bavail,
            files: stat.f_files,
            ffree: stat.f_ffree,
            fsid: stat.f_fsid,
            namelen: stat.f_namemax,
            flags: stat.f_flag.bits(),
        };
        Ok((Response::StatFs(statfs), None))
    }
}

/// Attributes of what a descriptor refers to.
pub(super) fn read_attr(fd: impl AsFd) -> Result<Attr, Errno> {
    statx(fd, c"", AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT, WANTED).map(attr)
}

/// Attributes of a name in a directory, without following it.
pub(super) fn read_attr_at(dir: impl AsFd, name: &std::ffi::CStr) -> Result<Attr, Errno> {
    statx(dir, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, WANTED).map(attr)
}

fn attr(stat: Statx) -> Attr {
    let birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    Attr {
        mode: stat.stx_mode.into(),
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        nlink: stat.stx_nlink,
        size: stat.stx_size,
        blocks: stat.stx_blocks,
        blksize: stat.stx_blksize,
        ino: stat.stx_ino,
        dev: makedev(stat.stx_dev_major, stat.stx_dev_minor),
        rdev: makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
        atime: time(stat.stx_atime),
        mtime: time(stat.stx_mtime),
        ctime: time(stat.stx_ctime),
        btime: birth.then(|| time(stat.stx_btime)),
        attributes: stat.stx_attributes.bits(),
        attributes_mask: stat.stx_attributes_mask.bits(),
        acl: None,
    }
}

fn time(stamp: StatxTimestamp) -> Time {
    Time { sec: stamp.tv_sec, nsec: stamp.tv_nsec }
}

/// Devices that were found to hold files. A device keeps its file system as long as it is mounted, and the
/// gofer's mounts do not change.
#[derive(Default)]
pub(super) struct Devices(Mutex<HashSet<u64>>);

/// Remembered devices; beyond this each is looked at anew.
const KNOWN_DEVICES: usize = 1024;

impl Devices {
    /// Whether the device has been found to hold files.
    pub(super) fn known(&self, dev: u64) -> bool {
        self.0.lock().contains(&dev)
    }

    /// Whether the file system of `fd`, on device `dev`, holds files rather than the kernel's state.
    pub(super) fn holds_files(&self, dev: u64, fd: impl AsFd) -> Result<bool, Errno> {
        if self.known(dev) {
            return Ok(true);
        }
        if is_kernel_type(rustix::fs::fstatfs(fd)?.f_type.cast_unsigned()) {
            return Ok(false);
        }
        let mut known = self.0.lock();
        if known.len() < KNOWN_DEVICES {
            known.insert(dev);
        }
        Ok(true)
    }
}
