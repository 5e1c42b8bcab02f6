//! What execve does to credentials: set-user-ID and set-group-ID programs, and capabilities of files (execve(2),
//! capabilities(7)). They are the sandbox's own affair: nothing here changes what the host allows.

use super::Task;
use super::creds::{Creds, SECBIT_KEEP_CAPS, SECBIT_NOROOT, cap};
use crate::fail::SysResult;
use crate::vfs::file::File;
use crate::vfs::perm;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::prctl::{ADDR_COMPAT_LAYOUT, ADDR_NO_RANDOMIZE, MMAP_PAGE_ZERO, READ_IMPLIES_EXEC};
use syscall_table::abi::{S_ISGID, S_ISUID, S_IXGRP};
use syscall_table::errno::Errno;

/// What a program that is given rights must not find prepared by its caller (PER_CLEAR_ON_SETID).
const PER_CLEAR_ON_SETID: u32 = READ_IMPLIES_EXEC | ADDR_NO_RANDOMIZE | ADDR_COMPAT_LAYOUT | MMAP_PAGE_ZERO;

/// Credentials of the new program.
pub(crate) struct Gain {
    pub(crate) creds: Creds,
    /// AT_SECURE: more rights than the caller's own.
    pub(crate) secure: bool,
    /// PR_GET_DUMPABLE of the new program.
    pub(crate) dumpable: i32,
    /// They count for more, or for others, than the caller's did.
    pub(crate) differs: bool,
    /// Bits of personality(2) that the new program loses.
    pub(crate) clears: u32,
}

/// Capabilities of a file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct FileCaps {
    permitted: u64,
    inheritable: u64,
    effective: bool,
}

/// The value of `security.capability` (struct vfs_cap_data). None: malformed, or of another user namespace.
fn parse(value: &[u8]) -> Option<FileCaps> {
    let word = |i: usize| {
        let bytes = value.get(i.checked_mul(4)?..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes))
    };
    let magic = word(0)?;
    let wide = match (magic & 0xff00_0000, value.len()) {
        (0x0100_0000, 12) => false,
        (0x0200_0000, 20) => true,
        // The root user that may use them.
        (0x0300_0000, 24) if word(5)? == 0 => true,
        _ => return None,
    };
    let (high_permitted, high_inheritable) = if wide { (word(3)?, word(4)?) } else { (0, 0) };
    let set = |low: u32, high: u32| (u64::from(high) << 32 | u64::from(low)) & super::creds::ALL_CAPS;
    Some(FileCaps {
        permitted: set(word(1)?, high_permitted),
        inheritable: set(word(2)?, high_inheritable),
        effective: magic & 1 != 0,
    })
}

/// Whether a value may be set as `security.capability`.
pub(crate) fn is_file_caps(value: &[u8]) -> bool {
    matches!((value.get(3), value.len()), (Some(2), 20) | (Some(3), 24))
}

/// Credentials after an execve of `file`.
///
/// # Errors
/// EPERM: a program that is to have its capabilities in force cannot have all of them.
pub(crate) fn after_exec(task: &Arc<Task>, file: &File) -> SysResult<Gain> {
    let old = task.creds();
    let mut new = (*old).clone();
    let attr = file.ops.attr()?;
    let nosuid = file.path.as_ref().is_some_and(|place| place.mount.ignores_set_id(&old.ns));
    let ignored = nosuid || task.no_new_privs.load(Ordering::Relaxed);
    // Ids that have no name here change nothing.
    let ignored = ignored || !old.ns.knows(attr.uid, attr.gid);
    let zero = old.ns.root_user().unwrap_or(u32::MAX);
    let set_user = !ignored && attr.mode & S_ISUID != 0;
    let set_group = !ignored && attr.mode & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP;
    let set_bits = set_user || set_group;
    if set_user {
        new.euid = attr.uid;
    }
    if set_group {
        new.egid = attr.gid;
    }
    let rooted = old.securebits & SECBIT_NOROOT == 0;
    // Root gets everything whatever the file has: not asked.
    let plain_root = rooted && old.uid == zero && new.euid == zero;
    let caps =
        if ignored || plain_root { None } else { file.ops.inode().and_then(|inode| inode.file_caps()) };
    let caps = caps.and_then(|value| parse(&value));
    let mut effective = false;
    new.permitted = 0;
    if let Some(caps) = caps {
        new.permitted = (old.bounding & caps.permitted) | (old.inheritable & caps.inheritable);
        effective = caps.effective;
        if effective && caps.permitted & !new.permitted != 0 {
            return Err(Errno::EPERM.into());
        }
    }
    // A set-user-ID program of root's that has capabilities is given these alone.
    if rooted && !(caps.is_some() && new.uid != zero && new.euid == zero) {
        if new.euid == zero || new.uid == zero {
            new.permitted = old.bounding | old.inheritable;
        }
        effective |= new.euid == zero;
    }
    // Whatever becomes of it: such a program is to be careful.
    let set_id = new.euid != old.uid || new.egid != old.gid;
    let gained = new.permitted & !old.permitted != 0;
    if (set_id || gained) && (shares_places(task) || watched(task)) {
        if !old.has(cap::SETUID) {
            new.euid = new.uid;
            new.egid = new.gid;
        }
        new.permitted &= old.permitted;
    }
    new.suid = new.euid;
    new.fsuid = new.euid;
    new.sgid = new.egid;
    new.fsgid = new.egid;
    if caps.is_some() || set_id {
        new.ambient = 0;
    }
    new.permitted |= new.ambient;
    new.effective = if effective { new.permitted } else { new.ambient };
    new.securebits &= !SECBIT_KEEP_CAPS;
    let secure = set_id || (new.uid != zero && (effective || new.permitted & !new.ambient != 0));
    let own = new.euid == new.uid && new.egid == new.gid;
    let differs = new.differs(&old);
    let readable = perm::check(&old, &attr, perm::READ).is_ok();
    let dumpable = i32::from(own && !differs && readable);
    // Programs of 64 bits never have it (SET_PERSONALITY).
    let mut clears = READ_IMPLIES_EXEC;
    if set_bits || gained {
        clears |= PER_CLEAR_ON_SETID;
    }
    Ok(Gain { creds: new, secure, dumpable, differs, clears })
}

/// Whether somebody traces the task who could not trace the new program: what that one may do is not theirs.
fn watched(task: &Task) -> bool {
    task.tracing.tracer().is_some_and(|tracer| !tracer.creds().capable_in(&task.creds().ns, cap::SYS_PTRACE))
}

/// Whether another process shares root, working directory and umask: it could lead a privileged program astray.
fn shares_places(task: &Task) -> bool {
    let fs = task.fs();
    task.kernel
        .tree
        .processes()
        .iter()
        .filter(|process| process.pid != task.process.pid)
        .any(|process| process.threads().iter().any(|other| Arc::ptr_eq(&other.fs(), &fs)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_of_files() {
        let v2 = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        let caps = FileCaps { permitted: 1 << 10 | 1 << 32, inheritable: 0, effective: true };
        assert_eq!(parse(&v2), Some(caps));
        assert!(is_file_caps(&v2));
        assert_eq!(parse(v2.get(..12).unwrap_or_default()), None);
        let v3 = [&[0, 0, 0, 3], v2.get(4..).unwrap_or_default(), &[0; 4]].concat();
        assert_eq!(parse(&v3), Some(FileCaps { effective: false, ..caps }));
        let other = [&[0, 0, 0, 3], v2.get(4..).unwrap_or_default(), &[1, 0, 0, 0]].concat();
        assert_eq!(parse(&other), None);
        assert_eq!(parse(b""), None);
    }
}
