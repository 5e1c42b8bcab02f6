//! An empty root.

use crate::host;
use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, unmount,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Keeps this mount namespace's changes from the host's, and the other way round.
///
/// # Errors
/// What the host says.
pub fn make_private() -> io::Result<()> {
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// A tmpfs of one page on /proc, read-only once `fill` has put in what it should have.
///
/// # Errors
/// What the host or `fill` say.
pub fn mount_empty(fill: impl FnOnce(&OwnedFd) -> io::Result<()>) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "mode", "0")?;
    fsconfig_set_string(context.as_fd(), "size", "4096")?;
    fsconfig_create(context.as_fd())?;
    let strict = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let root = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, strict)?;
    fill(&root)?;
    // Any directory will do; every host has this one.
    move_mount(root.as_fd(), "", CWD, "/proc", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    host::mount_setattr(root.as_fd(), MountAttrFlags::MOUNT_ATTR_RDONLY.bits().into(), false)?;
    Ok(root)
}

/// Makes `empty` the root and the working directory, and lets go of the host's.
///
/// # Errors
/// What the host says.
pub fn enter(empty: &OwnedFd) -> io::Result<()> {
    rustix::process::fchdir(empty)?;
    rustix::process::pivot_root(".", ".")?;
    // The old root lies on top of the new one now, where "." finds it.
    Ok(unmount(".", UnmountFlags::DETACH)?)
}
