//! The gofer's mount namespace.
//!
//! Each exported mount becomes a detached copy of the host's mounts below its source, read-only unless writable, held
//! only by its descriptor; nothing can be reached from one but what is below it. The root becomes an empty
//! read-only tmpfs. Over hidden paths lie an empty directory or an empty file of mode 0.
//!
//! In a user namespace the copied mounts are locked: they can neither be unmounted nor made writable, but they can
//! be covered and made stricter, which is all that is done here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use confine::host::mount_setattr;
use confine::root;
use rustix::fs::{CWD, FileType, Mode, OFlags, mkdirat, mknodat, open};
use rustix::mount::{MountAttrFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use crate::config::{GoferConfig, Mount};
use crate::exports::{Found, Source, policy};
use crate::hidden::Policy;
use crate::server::{Export, SelfFds};

/// What the server needs of the mounts.
pub(crate) struct Built {
    pub(crate) exports: Vec<Export>,
    pub(crate) policy: Policy,
    pub(crate) self_fds: SelfFds,
}

/// A failure with what was being done.
pub(crate) type Failed = (String, io::Error);

/// Builds the namespace that this process keeps. Afterwards the root is empty and the working directory is
/// `/proc/self/fd`, detached from the rest of proc so that there is no way up from it.
pub(crate) fn build(config: &GoferConfig) -> Result<Built, Failed> {
    at("making mounts private", root::make_private())?;
    let links = at("holding /proc/self/fd", open_tree(CWD, "/proc/self/fd", clone_flags()))?;
    let self_fds = SelfFds::new(links, true);
    let (policy, found) = policy(config, &self_fds);

    // What was asked for by name is taken before anything covers it.
    let mut sources = Vec::with_capacity(config.mounts.len());
    for mount in &config.mounts {
        let what = || format!("mounting {}", mount.src);
        let source = Source::open(mount, &policy, &self_fds).map_err(|error| (what(), error))?;
        let early = if source.exposed { Some(tree(mount, &source)?) } else { None };
        sources.push((mount, source, early));
    }
    let empty = at("mounting an empty root", empty_root())?;
    for hidden in &found {
        // The empty root covers /proc; a second cover would lie between it and the covers below.
        if hidden.canonical() != b"/proc" {
            at("covering a hidden path", cover(&empty, hidden))?;
        }
    }
    let mut exports = Vec::with_capacity(sources.len());
    for (mount, source, early) in sources {
        let root = match early {
            Some(root) => root,
            None => tree(mount, &source)?,
        };
        exports.push(source.export(root, &policy));
    }
    at("entering the empty root", root::enter(&empty))?;
    at("leaving the host's root", rustix::process::fchdir(self_fds.dir()))?;
    Ok(Built { exports, policy, self_fds })
}

/// A detached copy of what a mount exports.
fn tree(mount: &Mount, source: &Source<'_>) -> Result<OwnedFd, Failed> {
    let what = || format!("mounting {}", mount.src);
    let flags = clone_flags() | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = open_tree(&source.place, "", flags).map_err(|errno| (what(), errno.into()))?;
    let stricter = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let read_only = if mount.writable { MountAttrFlags::empty() } else { MountAttrFlags::MOUNT_ATTR_RDONLY };
    set_attr(&tree, stricter | read_only, true).map_err(|error| (what(), error))?;
    Ok(tree)
}

/// A tmpfs on /proc, which no gofer serves, with an empty directory `d` and an empty file `f` to cover others with.
fn empty_root() -> io::Result<OwnedFd> {
    root::mount_empty(|root| {
        mkdirat(root, "d", Mode::empty())?;
        Ok(mknodat(root, "f", FileType::RegularFile, Mode::empty(), 0)?)
    })
}

fn cover(empty: &OwnedFd, hidden: &Found) -> io::Result<()> {
    let cover = open_tree(empty, if hidden.is_dir { "d" } else { "f" }, clone_flags())?;
    let by_descriptor = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    match move_mount(cover.as_fd(), "", hidden.place.as_fd(), "", by_descriptor) {
        // Removed meanwhile, or in a mount that is no longer there: nothing to cover.
        Err(rustix::io::Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}

fn set_attr(mount: &OwnedFd, flags: MountAttrFlags, recursive: bool) -> io::Result<()> {
    mount_setattr(mount.as_fd(), flags.bits().into(), recursive)
}

fn clone_flags() -> OpenTreeFlags {
    OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC
}

fn at<T, E: Into<io::Error>>(what: &str, result: Result<T, E>) -> Result<T, Failed> {
    result.map_err(|error| (what.to_string(), error.into()))
}

/// `/dev/null` in place of standard input, output and error: the gofer has no use for the caller's terminal.
pub(crate) fn close_standard() -> io::Result<()> {
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let null: BorrowedFd<'_> = null.as_fd();
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    Ok(())
}
