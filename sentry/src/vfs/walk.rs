//! Path walks (path_resolution(7)).

use crate::fail::{Fail, SysResult};
use crate::task::Task;
use crate::task::creds::Creds;
use crate::vfs::Vfs;
use crate::vfs::dentry::{Dentry, Known};
use crate::vfs::mount::mnt;
use crate::vfs::path::Path;
use crate::vfs::perm;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::open::{
    AT_FDCWD, RESOLVE_BENEATH, RESOLVE_CACHED, RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS,
    RESOLVE_NO_XDEV,
};
use syscall_table::errno::Errno;

/// Most symbolic links of one walk (MAXSYMLINKS).
const MAX_LINKS: u32 = 40;
/// Most names that one request of a walk carries.
const FAR: usize = 16;

/// A walk under way.
pub struct Walk<'a> {
    vfs: &'a Vfs,
    task: &'a Task,
    /// Whose rights count.
    pub creds: Arc<Creds>,
    root: Path,
    start: Path,
    links: u32,
    resolve: u64,
    /// The root has been of use: by an absolute path, or `..`.
    rooted: bool,
    /// What is found will be opened for reading.
    pub(crate) opens: bool,
}

/// The last component and the directory it is (or would be) in.
pub struct Last {
    /// The directory; search right on it was checked.
    pub dir: Path,
    /// The name; `.`, `..`, or empty for `/`.
    pub name: Vec<u8>,
    /// A slash follows: it must be a directory.
    pub slash: bool,
}

impl Last {
    /// Whether the name is one that can be made, removed or renamed.
    pub fn is_normal(&self) -> bool {
        !self.name.is_empty() && self.name != b"." && self.name != b".."
    }
}

enum Ended {
    At(Path),
    Last(Last),
}

impl<'a> Walk<'a> {
    /// From `dirfd` (or AT_FDCWD); `path` decides whether it is looked at.
    ///
    /// # Errors
    /// EBADF, ENOTDIR, ENOENT for an empty path.
    pub fn new(vfs: &'a Vfs, task: &'a Task, dirfd: i32, path: &[u8]) -> SysResult<Self> {
        Self::resolving(vfs, task, dirfd, path, 0)
    }

    /// As [`new`](Self::new) with RESOLVE_ bits of openat2(2).
    pub fn resolving(vfs: &'a Vfs, task: &'a Task, dirfd: i32, path: &[u8], resolve: u64) -> SysResult<Self> {
        if path.is_empty() {
            return Err(Errno::ENOENT.into());
        }
        let root = vfs.root_of(task)?;
        let absolute = path.first() == Some(&b'/');
        let scoped = resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT) != 0;
        let start = if absolute && !scoped {
            root.clone()
        } else if dirfd == AT_FDCWD {
            vfs.cwd_of(task)?
        } else {
            let file = task.files().get_any(dirfd)?;
            file.path.clone().ok_or(Errno::ENOTDIR)?
        };
        if absolute && resolve & RESOLVE_BENEATH != 0 {
            return Err(Errno::EXDEV.into());
        }
        let root = if scoped { start.clone() } else { root };
        let rooted = absolute || scoped;
        Ok(Walk { vfs, task, creds: task.creds(), root, start, links: 0, resolve, rooted, opens: false })
    }

    /// The place that `path` names. `follow`: also through a symbolic link at its end.
    pub fn to(&mut self, path: &[u8], follow: bool) -> SysResult<Path> {
        let start = self.start.clone();
        match self.run(start, path, follow, false)? {
            Ended::At(path) => Ok(path),
            Ended::Last(_) => Err(Errno::EIO.into()),
        }
    }

    /// Directory and last name of `path`.
    pub fn to_parent(&mut self, path: &[u8]) -> SysResult<Last> {
        let start = self.start.clone();
        match self.run(start, path, false, true)? {
            Ended::Last(last) => Ok(last),
            Ended::At(dir) => Ok(Last { dir, name: Vec::new(), slash: true }),
        }
    }

    /// Goes on through the symbolic link `link` in `dir`: directory and last name of its target.
    pub fn through(&mut self, dir: &Path, link: &Path) -> SysResult<Result<Path, Last>> {
        if let Some(there) = self.link(link)? {
            return Ok(Ok(there));
        }
        let target = self.target(link)?;
        self.jumps(dir, &target)?;
        match self.run(dir.clone(), &target, false, true)? {
            Ended::At(dir) => Ok(Err(Last { dir, name: Vec::new(), slash: true })),
            Ended::Last(last) => Ok(Err(last)),
        }
    }

    /// Counts a link; where it leads if it is a magic one.
    fn link(&mut self, link: &Path) -> SysResult<Option<Path>> {
        self.links += 1;
        let refused = self.resolve & RESOLVE_NO_SYMLINKS != 0 || link.mount.has(mnt::NOSYMFOLLOW);
        if self.links > MAX_LINKS || refused {
            return Err(Errno::ELOOP.into());
        }
        let there = link.inode().follow(self.task)?;
        if there.is_some() {
            if self.resolve & RESOLVE_NO_MAGICLINKS != 0 {
                return Err(Errno::ELOOP.into());
            }
            if self.resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT) != 0 {
                return Err(Errno::EXDEV.into());
            }
        }
        Ok(there)
    }

    fn target(&self, link: &Path) -> SysResult<Vec<u8>> {
        let target = link.inode().readlink(self.task)?;
        if target.is_empty() {
            return Err(Errno::ENOENT.into());
        }
        Ok(target)
    }

    fn run(&mut self, start: Path, path: &[u8], follow: bool, parent: bool) -> SysResult<Ended> {
        let mut at = start;
        let mut rest = path;
        let mut begun = false;
        if rest.first() == Some(&b'/') {
            if self.resolve & RESOLVE_BENEATH != 0 {
                return Err(Errno::EXDEV.into());
            }
            at = self.root.clone();
        }
        loop {
            let begin = rest.iter().position(|b| *b != b'/').unwrap_or(rest.len());
            rest = rest.get(begin..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(Ended::At(at));
            }
            let end = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let slash = !after.is_empty();
            let last = after.iter().all(|b| *b == b'/');
            if !at.inode().is_dir() {
                // What would end the walk that waits for nothing ends it before it is known why (try_to_unlazy in Linux).
                let found = begun && self.resolve & RESOLVE_CACHED != 0;
                return Err(if found { Errno::EAGAIN } else { Errno::ENOTDIR }.into());
            }
            begun = true;
            let inode = at.inode();
            perm::check_inode(self.task, &self.creds, inode, &inode.attr()?, perm::EXEC)?;
            if last && parent {
                return Ok(Ended::Last(Last { dir: at, name: name.to_vec(), slash }));
            }
            if name == b"." {
                rest = after;
                continue;
            }
            if name == b".." {
                self.rooted = true;
                at = self.up(at)?;
                rest = after;
                continue;
            }
            if name.len() > 255 {
                return Err(Errno::ENAMETOOLONG.into());
            }
            let child = self.step(&at, name, after)?;
            if child.inode().is_link() && (!last || follow || slash) {
                if let Some(there) = self.link(&child)? {
                    at = there;
                    rest = after;
                    continue;
                }
                // The rest is walked by a call of its own: at most MAX_LINKS deep.
                let mut target = self.target(&child)?;
                self.jumps(&at, &target)?;
                if target.first() == Some(&b'/') {
                    at = self.root.clone();
                }
                target.extend_from_slice(after);
                return self.run(at, &target, follow, parent);
            }
            if last && slash && !child.inode().is_dir() {
                return Err(Errno::ENOTDIR.into());
            }
            at = child;
            rest = after;
        }
    }

    /// Whether a link in `at` may lead to `target`. RESOLVE_NO_XDEV refuses the way to the root unless the root is known to be of
    /// the same mount, and the kernel looks at that only when it needs it (nd_jump_root in fs/namei.c).
    fn jumps(&mut self, at: &Path, target: &[u8]) -> SysResult<()> {
        if target.first() != Some(&b'/') {
            return Ok(());
        }
        let leaves = !self.rooted || at.mount.id != self.root.mount.id;
        if self.resolve & RESOLVE_BENEATH != 0 || self.resolve & RESOLVE_NO_XDEV != 0 && leaves {
            return Err(Errno::EXDEV.into());
        }
        self.rooted = true;
        Ok(())
    }

    fn up(&self, at: Path) -> SysResult<Path> {
        if at.same(&self.root) {
            return if self.resolve & RESOLVE_BENEATH != 0 { Err(Errno::EXDEV.into()) } else { Ok(at) };
        }
        let mount = at.mount.id;
        let mut place = at.clone();
        while Arc::ptr_eq(&place.dentry, &place.mount.root) {
            let Some(point) = place.mount.parent() else { return Ok(at) };
            if point.same(&self.root) {
                return Ok(at);
            }
            place = point;
        }
        let Some(dentry) = place.dentry.parent() else { return Ok(at) };
        // Something may have been mounted over the directory since it was passed.
        let up = self.vfs.mounted(Path { dentry, ..place });
        self.crossed(mount, &up)?;
        Ok(up)
    }

    fn crossed(&self, mount: u64, to: &Path) -> SysResult<()> {
        if self.resolve & RESOLVE_NO_XDEV != 0 && to.mount.id != mount {
            return Err(Errno::EXDEV.into());
        }
        Ok(())
    }

    /// One name below `at`, into whatever is mounted there. `after` is the rest of the path.
    fn step(&self, at: &Path, name: &[u8], after: &[u8]) -> SysResult<Path> {
        let dentry = self.known_or_asked(at, name, after)?;
        let child = self.vfs.mounted(Path { mount: at.mount.clone(), dentry });
        self.crossed(at.mount.id, &child)?;
        Ok(child)
    }

    /// What `name` is in `dir` (no symbolic link followed, mounts crossed).
    ///
    /// # Errors
    /// ENOENT and what the file system says.
    pub fn child(&self, dir: &Path, name: &[u8]) -> SysResult<Path> {
        if name.len() > 255 {
            return Err(Errno::ENAMETOOLONG.into());
        }
        self.step(dir, name, b"")
    }

    fn known_or_asked(&self, at: &Path, name: &[u8], after: &[u8]) -> SysResult<Arc<Dentry>> {
        loop {
            let changes = match at.dentry.known(name) {
                Known::Present(dentry) => return Ok(dentry),
                Known::Absent => return Err(Errno::ENOENT.into()),
                Known::Unknown(_) if self.resolve & RESOLVE_CACHED != 0 => return Err(Errno::EAGAIN.into()),
                Known::Unknown(changes) => changes,
            };
            if Dentry::crowded() {
                self.vfs.sweep();
            }
            let answer = if at.inode().walks_far() {
                self.ask_far(at, name, after, changes)
            } else {
                at.inode().lookup(self.task, name).map(|inode| at.dentry.remember(name, inode, changes))
            };
            match answer {
                Ok(Some(dentry)) => return Ok(dentry),
                // The directory changed meanwhile.
                Ok(None) => {}
                Err(fail) => {
                    if fail == Fail::Error(Errno::ENOENT) {
                        at.dentry.remember_absent(name, changes);
                    }
                    return Err(self.named(fail, at, name));
                }
            }
        }
    }

    /// Asks for `name` and what follows it in one go; what comes back beyond the first is remembered for later.
    fn ask_far(&self, at: &Path, name: &[u8], after: &[u8], changes: u64) -> SysResult<Option<Arc<Dentry>>> {
        let mut names = vec![name];
        // A slash at the end wants a directory.
        let mut opens = self.opens && after.last() != Some(&b'/');
        for next in after.split(|b| *b == b'/').filter(|n| !n.is_empty()) {
            if names.len() == FAR || next == b"." || next == b".." || next.len() > 255 {
                opens = false;
                break;
            }
            names.push(next);
        }
        let found = at.inode().lookup_many(self.task, &names, opens);
        let mut inodes = found.inodes.into_iter().zip(&names);
        let Some((inode, _)) = inodes.next() else {
            return Err(found.end.unwrap_or(Errno::ENOENT.into()));
        };
        let Some(first) = at.dentry.remember(name, inode.clone(), changes) else { return Ok(None) };
        let (mut dir, mut parent) = (first.clone(), inode);
        let mut count = 1usize;
        for (inode, name) in inodes {
            // The rest belongs to the inode that was just found: useless below another one.
            let Known::Unknown(changes) = dir.known(name) else { return Ok(Some(first)) };
            if !Arc::ptr_eq(&dir.inode, &parent) {
                return Ok(Some(first));
            }
            let Some(next) = dir.remember(name, inode.clone(), changes) else { return Ok(Some(first)) };
            (dir, parent) = (next, inode);
            count = count.saturating_add(1);
        }
        if found.end == Some(Fail::Error(Errno::ENOENT))
            && let Some(absent) = names.get(count)
            && Arc::ptr_eq(&dir.inode, &parent)
            && let Known::Unknown(changes) = dir.known(absent)
        {
            dir.remember_absent(absent, changes);
        }
        Ok(Some(first))
    }

    /// A denial gets the path as the guest knows it.
    fn named(&self, fail: Fail, at: &Path, name: &[u8]) -> Fail {
        match fail {
            Fail::Denial(mut denial) if denial.object.is_empty() => {
                let mut path = at.absolute(None).bytes;
                if path.last() != Some(&b'/') {
                    path.push(b'/');
                }
                path.extend_from_slice(name);
                denial.object = String::from_utf8_lossy(&path).into_owned();
                denial.allow_with = self.vfs.policy.shows(at.mount.origin, &path);
                Fail::Denial(denial)
            }
            other => other,
        }
    }
}

impl Vfs {
    /// Crosses to what is mounted at a place.
    pub(crate) fn mounted(&self, mut path: Path) -> Path {
        while path.dentry.mounted.load(Ordering::Acquire) != 0 {
            match self.mount_at(&path) {
                Some(mount) => {
                    mount.crossed();
                    path = Path { dentry: mount.root.clone(), mount };
                }
                None => break,
            }
        }
        path
    }
}
