//! Applies a layer's archive to a directory, with the rights of the user who runs this, and no more.
//!
//! Whoever wrote the archive may want to reach other files. Each path is walked name by name from the held directory;
//! where a symbolic link is met, by the archive's or by anybody's making, the entry is refused. Contents go into a new
//! file which then takes the name, so nothing is written through a link, a FIFO or another name of a file.
//! Devices are not made, and set-user-ID and set-group-ID bits of files not given: both are named instead.

use super::Form;
use super::tree::{empty, enter, kind, names, remove};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags, chownat, fchmod,
    fchown, fgetxattr, fremovexattr, fsetxattr, fstat, futimens, linkat, mkdirat, mknodat, openat, renameat,
    symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use sentry::fs::merged::CHECKPOINT;
use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use tar::{Entry, EntryType};

/// What is left out is named up to so many times.
const NAMED: usize = 20;
const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Extended attributes of one entry take no more.
const XATTRS: usize = 1 << 20;

/// An archive being applied.
pub(super) struct Applied<'a> {
    root: &'a OwnedFd,
    inside: &'a [u8],
    form: Form,
    left_out: Vec<String>,
    /// Directories get mode and time when all in them is there: their names, mode, time.
    dirs: Vec<(Vec<CString>, Mode, Timestamps)>,
    temporary: CString,
}

/// What an entry is to be like.
struct Wanted {
    mode: Mode,
    owner: Option<(Uid, Gid)>,
    times: Timestamps,
    xattrs: Vec<(String, Vec<u8>)>,
}

fn text(what: &'static str) -> impl Fn(Errno) -> String {
    move |errno| format!("{what}: {errno}")
}

impl<'a> Applied<'a> {
    /// To `root`; `inside`: the path in the archive that stands for it.
    pub(super) fn new(root: &'a OwnedFd, inside: &'a [u8], form: Form) -> Self {
        let temporary = CString::new(format!(".lazaret-commit.{}", std::process::id())).unwrap_or_default();
        Applied { root, inside, form, left_out: Vec::new(), dirs: Vec::new(), temporary }
    }

    /// Every entry, in order. What was left out.
    pub(super) fn all(mut self, archive: &mut File) -> Result<Vec<String>, String> {
        archive.seek(SeekFrom::Start(0)).map_err(|e| e.to_string())?;
        let mut archive = tar::Archive::new(std::io::BufReader::with_capacity(256 * 1024, archive));
        for entry in archive.entries().map_err(|e| e.to_string())? {
            let mut entry = entry.map_err(|e| format!("the layer cannot be read: {e}"))?;
            let path = entry.path_bytes().into_owned();
            let shown = path.escape_ascii().to_string();
            self.entry(&mut entry, &path).map_err(|what| format!("{shown}: {what}"))?;
        }
        for (names, mode, times) in std::mem::take(&mut self.dirs).into_iter().rev() {
            // The program may have put something else there since.
            if let Ok(dir) = self.walk(&names) {
                let now = fstat(&dir).map_err(text("a directory"))?;
                // Above what changed there are directories of others.
                if Mode::from_raw_mode(now.st_mode & 0o7777) != mode {
                    fchmod(&dir, mode).map_err(text("mode of a directory"))?;
                }
                let _ = futimens(&dir, &times);
            }
        }
        Ok(self.left_out)
    }

    fn leave_out(&mut self, path: &[u8], why: &str) {
        if self.left_out.len() < NAMED {
            self.left_out.push(format!("left out {}: {why}", path.escape_ascii()));
        }
    }

    fn walk(&self, names: &[CString]) -> Result<OwnedFd, Errno> {
        let mut dir = rustix::io::fcntl_dupfd_cloexec(self.root, 0)?;
        for name in names {
            dir = enter(&dir, name)?;
        }
        Ok(dir)
    }

    /// The part of a path that lies below `inside`; none if it does not.
    fn below<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        if self.inside.is_empty() {
            return Some(path);
        }
        match path.strip_prefix(self.inside)? {
            b"" => Some(b""),
            rest => rest.strip_prefix(b"/"),
        }
    }

    fn entry<R: Read>(&mut self, entry: &mut Entry<'_, R>, path: &[u8]) -> Result<(), String> {
        // Checked as a whole: what is refused must not depend on what is wanted of it.
        no_checkpoint(names(path)?.split_last().map_or(&[], |(_, dirs)| dirs))?;
        let Some(below) = self.below(path) else { return Ok(()) };
        let mut names = names(below)?;
        let wanted = wanted(entry)?;
        let kind = entry.header().entry_type();
        let Some(name) = names.pop() else {
            // The root itself: its owner is its owner's business.
            self.dirs.push((Vec::new(), wanted.mode, wanted.times));
            return Ok(());
        };
        let dir = match self.walk(&names) {
            Err(Errno::NOENT) => self.make_parents(&names)?,
            other => other.map_err(text("its directory"))?,
        };
        if name.to_bytes() == OPAQUE {
            // There the checkpoints are, and a layer's root is never another's.
            if names.is_empty() && self.form == Form::Overlay {
                return Err("the root cannot be opaque".to_owned());
            }
            empty(&dir, 0).map_err(text("emptying its directory"))?;
            return if self.form == Form::Overlay { mark(&dir, b"y") } else { Ok(()) };
        }
        if let Some(gone) = name.to_bytes().strip_prefix(WHITEOUT) {
            if matches!(gone, b"" | b"." | b"..") {
                return Err("no name to remove".to_owned());
            }
            let gone = CString::new(gone).map_err(|e| e.to_string())?;
            no_checkpoint(std::slice::from_ref(&gone))?;
            remove(&dir, &gone, 0).map_err(text("removing"))?;
            return if self.form == Form::Overlay { whiteout(&dir, &gone) } else { Ok(()) };
        }
        match kind {
            EntryType::Directory => {
                self.directory(&dir, &name, &wanted, path)?;
                names.push(name);
                self.dirs.push((names, wanted.mode, wanted.times));
                Ok(())
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.regular(&dir, &name, &wanted, entry, path)
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().ok_or("a link without a target")?.into_owned();
                let target = CString::new(target).map_err(|e| e.to_string())?;
                self.replace(&dir, &name, |dir, name| symlinkat(&target, dir, name))?;
                if let Some((uid, gid)) = wanted.owner {
                    let _ = chownat(&dir, &name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW);
                }
                let _ = utimensat(&dir, &name, &wanted.times, AtFlags::SYMLINK_NOFOLLOW);
                Ok(())
            }
            EntryType::Link => {
                let first = entry.link_name_bytes().ok_or("a link without a target")?.into_owned();
                self.link(&dir, &name, &first)
            }
            EntryType::Fifo => {
                self.replace(&dir, &name, |dir, name| mknodat(dir, name, FileType::Fifo, wanted.mode, 0))
            }
            EntryType::Char | EntryType::Block => {
                self.leave_out(path, "a device");
                Ok(())
            }
            other => Err(format!("an entry of a kind that no layer has ({:?})", other)),
        }
    }

    /// Directories that the archive leaves out: those above a path inside that was asked for.
    fn make_parents(&self, names: &[CString]) -> Result<OwnedFd, String> {
        let mut dir = rustix::io::fcntl_dupfd_cloexec(self.root, 0).map_err(text("its directory"))?;
        for name in names {
            match mkdirat(&dir, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(format!("its directory: {errno}")),
            }
            dir = enter(&dir, name).map_err(text("its directory"))?;
        }
        Ok(dir)
    }

    fn directory(
        &mut self,
        dir: &OwnedFd,
        name: &CString,
        wanted: &Wanted,
        path: &[u8],
    ) -> Result<(), String> {
        if kind(dir, name).map_err(text("looking at it"))? != Some(FileType::Directory) {
            let hides = self.form == Form::Overlay && kind(dir, name) == Ok(Some(FileType::RegularFile));
            remove(dir, name, 0).map_err(text("removing what is there"))?;
            mkdirat(dir, name, Mode::RWXU).map_err(text("making the directory"))?;
            if hides {
                // It may have been a mark: what it hid must not show through now.
                mark(&enter(dir, name).map_err(text("the directory"))?, b"y")?;
            }
        }
        let made = enter(dir, name).map_err(text("the directory"))?;
        if let Some((uid, gid)) = wanted.owner {
            let now = fstat(&made).map_err(text("the directory"))?;
            if (now.st_uid, now.st_gid) != (uid.as_raw(), gid.as_raw()) {
                fchown(&made, Some(uid), Some(gid)).map_err(text("owner"))?;
            }
        }
        self.set_xattrs(&made, wanted, path)
    }

    fn regular<R: Read>(
        &mut self,
        dir: &OwnedFd,
        name: &CString,
        wanted: &Wanted,
        entry: &mut Entry<'_, R>,
        path: &[u8],
    ) -> Result<(), String> {
        let mut plain = wanted.mode;
        plain.remove(Mode::SUID | Mode::SGID);
        if plain != wanted.mode {
            self.leave_out(path, "its set-user-ID and set-group-ID bits");
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Of an earlier run that was killed.
        let _ = unlinkat(dir, &self.temporary, AtFlags::empty());
        let file =
            openat(dir, &self.temporary, flags, Mode::RUSR | Mode::WUSR).map_err(text("making the file"))?;
        let written = (|| {
            let mut file = File::from(file);
            let size = entry.size();
            let count = std::io::copy(entry, &mut file).map_err(|e| format!("writing: {e}"))?;
            if count != size {
                return Err("the layer ends within its contents".to_owned());
            }
            if let Some((uid, gid)) = wanted.owner {
                fchown(&file, Some(uid), Some(gid)).map_err(text("owner"))?;
            }
            // As long as it can be written to.
            self.set_xattrs(&file, wanted, path)?;
            fchmod(&file, plain).map_err(text("mode"))?;
            futimens(&file, &wanted.times).map_err(text("times"))?;
            self.put(dir, name)
        })();
        if written.is_err() {
            let _ = unlinkat(dir, &self.temporary, AtFlags::empty());
        }
        written
    }

    fn set_xattrs(&mut self, file: impl AsFd, wanted: &Wanted, path: &[u8]) -> Result<(), String> {
        for name in ACLS {
            // What is made in a directory with a default list has lists that nobody wanted.
            if !wanted.xattrs.iter().any(|(wanted, _)| wanted == name) {
                let _ = fremovexattr(&file, name);
            }
        }
        for (name, value) in &wanted.xattrs {
            match fsetxattr(&file, name.as_str(), value, XattrFlags::empty()) {
                // A file system without lists: the mode says what it can.
                Err(Errno::OPNOTSUPP) if is_acl(name) => {}
                // Names somebody who is not mapped here.
                Err(Errno::INVAL) if is_acl(name) => {
                    self.leave_out(path, "its access control list");
                }
                other => other.map_err(text("extended attributes"))?,
            }
        }
        Ok(())
    }

    /// Makes something under a temporary name, and gives it the name.
    fn replace(
        &self,
        dir: &OwnedFd,
        name: &CString,
        make: impl Fn(&OwnedFd, &CString) -> Result<(), Errno>,
    ) -> Result<(), String> {
        let _ = unlinkat(dir, &self.temporary, AtFlags::empty());
        make(dir, &self.temporary).map_err(text("making it"))?;
        self.put(dir, name)
    }

    fn put(&self, dir: &OwnedFd, name: &CString) -> Result<(), String> {
        if kind(dir, name).map_err(text("looking at what is there"))? == Some(FileType::Directory) {
            remove(dir, name, 0).map_err(text("removing what is there"))?;
        }
        renameat(dir, &self.temporary, dir, name).map_err(text("naming it"))
    }

    /// One more name of a file of this archive: of a regular file below the directory, reached without a link.
    fn link(&self, dir: &OwnedFd, name: &CString, first: &[u8]) -> Result<(), String> {
        no_checkpoint(&names(first)?)?;
        let first = self.below(first).ok_or("a link to what is not applied")?;
        let mut from = names(first)?;
        let last = from.pop().ok_or("a link to a directory")?;
        let from = self.walk(&from).map_err(text("what it links to"))?;
        if kind(&from, &last).map_err(text("what it links to"))? != Some(FileType::RegularFile) {
            return Err("a link to what is no regular file".to_owned());
        }
        self.replace(dir, name, |dir, name| linkat(&from, &last, dir, name, AtFlags::empty()))
    }
}

const MARK: &str = "user.overlay.opaque";

/// Says of a directory that nothing below shows (`y`), or that names in it may be marks (`x`).
fn mark(dir: &OwnedFd, value: &[u8]) -> Result<(), String> {
    fsetxattr(dir, MARK, value, XattrFlags::empty()).map_err(text("marking a directory"))
}

/// Marks a name as deleted, if anything below could show.
fn whiteout(dir: &OwnedFd, name: &CString) -> Result<(), String> {
    let mut value = [0; 1];
    if fgetxattr(dir, MARK, &mut value) == Ok(1) && value == *b"y" {
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Who may not write to a file may not set such attributes either.
    let file = openat(dir, name, flags, Mode::RUSR | Mode::WUSR).map_err(text("marking a name"))?;
    fsetxattr(&file, "user.overlay.whiteout", b"y", XattrFlags::empty()).map_err(text("marking a name"))?;
    mark(dir, b"x")
}

/// What an entry's header and extensions say.
fn wanted<R: Read>(entry: &mut Entry<'_, R>) -> Result<Wanted, String> {
    let error = |e: std::io::Error| format!("its header: {e}");
    let mut xattrs = Vec::new();
    let mut room = XATTRS;
    let mut nanoseconds = 0;
    let mut seconds = i64::try_from(entry.header().mtime().map_err(error)?).unwrap_or(0);
    if let Some(extensions) = entry.pax_extensions().map_err(error)? {
        for extension in extensions {
            let extension = extension.map_err(error)?;
            let Ok(key) = extension.key() else { continue };
            if let Some(name) = key.strip_prefix("SCHILY.xattr.").filter(|name| {
                name.starts_with("user.") && !name.starts_with("user.overlay.") || is_acl(name)
            }) {
                let value = extension.value_bytes();
                room = room.checked_sub(value.len()).ok_or("too many extended attributes")?;
                xattrs.push((name.to_owned(), value.to_vec()));
            } else if key == "mtime" {
                let value = extension.value().unwrap_or_default();
                let (whole, part) = value.split_once('.').unwrap_or((value, ""));
                seconds = whole.parse().unwrap_or(seconds);
                nanoseconds = format!("{part:0<9}").get(..9).and_then(|n| n.parse().ok()).unwrap_or(0);
            }
        }
    }
    let header = entry.header();
    let id = |id: u64| u32::try_from(id).ok().filter(|id| *id != u32::MAX);
    let (uid, gid) = (id(header.uid().map_err(error)?), id(header.gid().map_err(error)?));
    // Others' files are root's to make; an ordinary user's are the user's own.
    let owner = uid.zip(gid).filter(|_| geteuid().is_root());
    Ok(Wanted {
        mode: Mode::from_raw_mode(header.mode().map_err(error)? & 0o7777),
        owner: owner.map(|(uid, gid)| (Uid::from_raw(uid), Gid::from_raw(gid))),
        times: Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds },
        },
        xattrs,
    })
}

/// Names of checkpoints are the launcher's.
fn no_checkpoint(names: &[CString]) -> Result<(), &'static str> {
    match names.iter().any(|name| name.to_bytes().starts_with(CHECKPOINT)) {
        true => Err("the path has a checkpoint's name in it"),
        false => Ok(()),
    }
}

/// Who may do what, beside the mode (acl(5)).
const ACLS: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];

fn is_acl(name: &str) -> bool {
    ACLS.contains(&name)
}

#[cfg(test)]
mod tests;
