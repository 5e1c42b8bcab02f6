//! Discretionary access (path_resolution(7)): owner, group, others, and capabilities that override.

use crate::fail::SysResult;
use crate::task::Task;
use crate::task::creds::{Creds, cap};
use crate::task::userns::Ids;
use crate::vfs::attr::{Access, Attr};
use crate::vfs::inode::{Inode, SetAttr};
use std::sync::Arc;
use syscall_table::abi::{S_IFDIR, S_IFMT, S_IFREG, S_ISGID, S_ISUID, S_ISVTX, S_IXGRP};
use syscall_table::errno::Errno;

/// Execute or search.
pub const EXEC: u32 = 1;
/// Write.
pub const WRITE: u32 = 2;
/// Read.
pub const READ: u32 = 4;

/// Whether a task is in a group for file access.
pub fn in_group(creds: &Creds, gid: u32) -> bool {
    creds.fsgid == gid || creds.groups.contains(&gid)
}

/// EACCES unless all of `want` is granted.
pub fn check(creds: &Creds, attr: &Attr, want: u32) -> SysResult<()> {
    // A list may have to be asked for.
    let granted = match attr.acl {
        Some(_) => overrides(creds, attr, want) || grants(creds, attr, want),
        None => grants(creds, attr, want) || overrides(creds, attr, want),
    };
    if granted { Ok(()) } else { Err(Errno::EACCES.into()) }
}

fn grants(creds: &Creds, attr: &Attr, want: u32) -> bool {
    let mode = |shift: u32| (attr.mode >> shift) & want == want;
    if creds.fsuid == attr.uid {
        return mode(6);
    }
    // Without any bit of the group's class the list grants nothing, and is not looked at.
    let acl = attr.acl.as_ref().filter(|_| attr.mode & 0o070 != 0).and_then(Access::list);
    match acl {
        Some(acl) => acl.grants(creds, attr.gid, want),
        None if in_group(creds, attr.gid) => mode(3),
        None => mode(0),
    }
}

/// Whether capabilities let in whatever the mode says.
fn overrides(creds: &Creds, attr: &Attr, want: u32) -> bool {
    let is_dir = attr.mode & S_IFMT == S_IFDIR;
    // Root may execute only what somebody may.
    let override_all = creds.capable_of(attr.uid, attr.gid, cap::DAC_OVERRIDE)
        && (want & EXEC == 0 || is_dir || attr.mode & 0o111 != 0);
    let override_read = creds.capable_of(attr.uid, attr.gid, cap::DAC_READ_SEARCH)
        && (want == READ || (is_dir && want & WRITE == 0));
    override_all || override_read
}

/// As [`check`] of `inode` with these attributes, which may let `task` in all the same ([`Inode::admits`]).
pub fn check_inode(
    task: &Task,
    creds: &Creds,
    inode: &Arc<dyn Inode>,
    attr: &Attr,
    want: u32,
) -> SysResult<()> {
    check(creds, attr, want).or_else(|fail| if inode.admits(task) { Ok(()) } else { Err(fail) })
}

fn owner_known(creds: &Creds, attr: &Attr) -> bool {
    creds.ns.from_kernel(Ids::Users, attr.uid).is_some()
}

/// Whether the task owns the inode or may act as if.
pub fn owns(creds: &Creds, attr: &Attr) -> bool {
    creds.fsuid == attr.uid || owner_known(creds, attr) && creds.has(cap::FOWNER)
}

/// The mode without what a change of contents takes away, if it does: the set-user-ID bit, and the set-group-ID bit
/// where it means that (chmod(2), write(2)).
pub fn without_privileges(mode: u32) -> Option<u32> {
    let group = if mode & S_IXGRP != 0 { S_ISGID } else { 0 };
    let gone = mode & (S_ISUID | group);
    (gone != 0 && mode & S_IFMT == S_IFREG).then_some(mode & !gone)
}

/// Before the contents of a regular file change: takes the set-user-ID bit and the like away, unless the task may
/// keep it (CAP_FSETID), and file capabilities.
///
/// # Errors
/// The file system's.
pub fn drop_privileges(task: &Task, inode: &Arc<dyn Inode>) -> SysResult<()> {
    inode.drop_file_caps();
    let mode = inode.attr()?.mode;
    if let Some(mode) = without_privileges(mode).filter(|_| !task.creds().has(cap::FSETID)) {
        inode.set_attr(&SetAttr { mode: Some(mode & 0o7777), ..SetAttr::default() })?;
    }
    Ok(())
}

/// Removing or renaming `child` in `dir`: write and search rights, and the sticky bit.
pub fn check_delete(creds: &Creds, dir: &Attr, child: &Attr) -> SysResult<()> {
    check(creds, dir, WRITE | EXEC)?;
    let sticky = dir.mode & S_ISVTX != 0;
    if sticky
        && creds.fsuid != child.uid
        && creds.fsuid != dir.uid
        && !creds.capable_of(child.uid, child.gid, cap::FOWNER)
    {
        return Err(Errno::EPERM.into());
    }
    Ok(())
}
