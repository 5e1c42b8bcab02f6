//! Into namespaces, to an empty root, and without capabilities.

use super::host;
use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, unmount,
};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitiesSecureBits as Bits, CapabilitySet, CapabilitySets, remove_capability_from_bounding_set,
    set_capabilities, set_capabilities_secure_bits,
};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

/// What failed, and how.
pub type Failed = (&'static str, io::Error);

/// Forks into own namespaces, as a child of this process's parent, with ids mapped.
///
/// Gives the child's pid in the process that forked (which should end now), `None` in the child. One thread only.
pub fn enter_namespaces() -> Result<Option<i32>, Failed> {
    let (mut from_parent, mut to_child) = io::pipe().map_err(|e| ("making a pipe", e))?;
    match host::fork_confined().map_err(|e| ("making namespaces", e))? {
        Some(pid) => {
            // The child ends when the pipe does.
            write_maps(pid).map_err(|e| ("mapping ids", e))?;
            to_child.write_all(&[1]).map_err(|e| ("starting the sentry", e))?;
            Ok(Some(pid))
        }
        None => {
            drop(to_child);
            if from_parent.read_exact(&mut [0]).is_err() {
                host::exit_now(125);
            }
            Ok(None)
        }
    }
}

/// Maps all ids where that is allowed, else the own one.
fn write_maps(pid: i32) -> io::Result<()> {
    let file = |name: &str| format!("/proc/{pid}/{name}");
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    if uid == 0 {
        let all = fs::write(file("uid_map"), identity("/proc/self/uid_map")?)
            .and_then(|()| fs::write(file("gid_map"), identity("/proc/self/gid_map")?));
        if all.is_ok() {
            return Ok(());
        }
    }
    fs::write(file("uid_map"), format!("{uid} {uid} 1\n"))?;
    fs::write(file("setgroups"), "deny")?;
    fs::write(file("gid_map"), format!("{gid} {gid} 1\n"))
}

/// Every id of a map, to itself.
fn identity(map: &str) -> io::Result<String> {
    let lines = fs::read_to_string(map)?;
    let identity = lines.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace();
        let (inside, count) = (numbers.next()?, numbers.nth(1)?);
        Some(format!("{inside} {inside} {count}\n"))
    });
    Ok(identity.collect())
}

/// Makes an empty read-only tmpfs the root of this mount namespace and lets go of the host's.
pub fn empty_root() -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "mode", "0")?;
    fsconfig_set_string(context.as_fd(), "size", "4096")?;
    fsconfig_create(context.as_fd())?;
    let strict = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC
        | MountAttrFlags::MOUNT_ATTR_RDONLY;
    let root = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, strict)?;
    // Any directory will do; every host has this one.
    move_mount(root.as_fd(), "", CWD, "/proc", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    rustix::process::fchdir(&root)?;
    rustix::process::pivot_root(".", ".")?;
    // The old root lies on top of the new one now, where "." finds it.
    unmount(".", UnmountFlags::DETACH)?;
    Ok(())
}

/// Gives up all capabilities for good. Guests' user namespaces are the sentry's children, over which their owner
/// has all rights without holding any capability (user_namespaces(7)).
pub fn drop_capabilities() -> io::Result<()> {
    set_capabilities_secure_bits(
        Bits::NO_ROOT
            | Bits::NO_ROOT_LOCKED
            | Bits::NO_SETUID_FIXUP
            | Bits::NO_SETUID_FIXUP_LOCKED
            | Bits::KEEP_CAPS_LOCKED
            | Bits::NO_CAP_AMBIENT_RAISE
            | Bits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )?;
    for bit in 0..64 {
        // The kernel has fewer than 64: EINVAL past its last.
        if remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)).is_err() {
            break;
        }
    }
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// Whether namespaces can be made here: a child that makes them and ends. One thread only.
pub fn try_namespaces() -> io::Result<()> {
    match host::fork_confined()? {
        Some(_) => Ok(()),
        None => host::exit_now(0),
    }
}
