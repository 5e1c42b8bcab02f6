//! Names below a held directory, and no others: symbolic links are not followed, `..` is no name.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat2, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);
/// Directories nest no deeper where whole trees are removed: each level holds a descriptor.
const DEEPEST: usize = 512;

/// A path as names.
///
/// # Errors
/// What must not be in it.
pub(super) fn names(path: &[u8]) -> Result<Vec<CString>, &'static str> {
    let mut names = Vec::new();
    for name in path.split(|b| *b == b'/') {
        match name {
            b"" | b"." => continue,
            b".." => return Err("the path has .. in it"),
            name => names.push(CString::new(name).map_err(|_| "the path has a NUL in it")?),
        }
    }
    if path.starts_with(b"/") { Err("the path is absolute") } else { Ok(names) }
}

/// A directory in `dir`, which is no symbolic link.
pub(super) fn enter(dir: impl AsFd, name: &CString) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..128 {
        match openat2(&dir, name, flags, Mode::empty(), BENEATH) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// What a name is; none if there is no such name.
pub(super) fn kind(dir: impl AsFd, name: &CString) -> Result<Option<FileType>, Errno> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Removes a name with all below it. It need not exist.
pub(super) fn remove(dir: impl AsFd, name: &CString, depth: usize) -> Result<(), Errno> {
    if depth > DEEPEST {
        return Err(Errno::NAMETOOLONG);
    }
    match unlinkat(&dir, name, AtFlags::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        // EPERM: Linux file systems say EISDIR, others may not.
        Err(Errno::ISDIR | Errno::PERM) => {}
        other => return other,
    }
    let inner = enter(&dir, name)?;
    empty(&inner, depth)?;
    unlinkat(dir, name, AtFlags::REMOVEDIR)
}

/// Removes all that is in a directory.
pub(super) fn empty(dir: &OwnedFd, depth: usize) -> Result<(), Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    names.iter().try_for_each(|name| remove(dir, name, depth + 1))
}
