//! Host files, served by the gofer.
//!
//! On a read-only mount everything is remembered: attributes, links, directories, and a read descriptor for each file
//! that was opened lately; `ahead` asks for some of it before the guests do. On a writable mount attributes are asked again, and names are believed for a moment only.

mod ahead;

use crate::fail::{Denial, Fail, SysResult};
use crate::fs::hostfile::HostFile;
use crate::kernel::Kernel;
use crate::sync::{Level, Lock};
use crate::task::Task;
use crate::vfs::acl::{self, Acl};
use crate::vfs::attr::{Access, Attr, FileTime};
use crate::vfs::file::FileOps;
use crate::vfs::inode::{
    Caching, Found, Inode, Listed, NewKind, NewOwner, SetAttr, SetTime, StatFs, downcast,
};
use crate::vfs::text::Busy;
use ahead::{Ahead, Listing, Opened, Paged};
use gofer::protocol::{self, NewInode, NodeId, NodeKind, RenameMode, Step, WalkEnd, XattrMode};
use gofer::{Client, GoferError};
use rustix::fd::OwnedFd;
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use syscall_table::abi::mount::{XATTR_CREATE, XATTR_REPLACE};
use syscall_table::abi::open::{O_ACCMODE, O_RDONLY};
use syscall_table::abi::{S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK};
use syscall_table::errno::Errno;

/// Nodes given back in one request.
const FORGET: usize = 512;
/// A removed file of so many bytes is given back at once.
const LARGE: u64 = 64 * 1024;
const CAPS: &[u8] = b"security.capability";
const READ: protocol::OpenFlags =
    protocol::OpenFlags { read: true, write: false, append: false, truncate: false };
/// Larger directories are not remembered whole.
const KEPT_LIST: usize = 20_000;

/// A mount of the gofer.
pub struct GoferFs {
    client: Arc<Client>,
    writable: bool,
    forgotten: parking_lot::Mutex<Vec<NodeId>>,
    open: parking_lot::Mutex<VecDeque<Weak<GoferInode>>>,
    /// Descriptors kept open beyond the guests' own.
    kept_fds: usize,
    /// Directories with files opened ahead, oldest first.
    ahead: parking_lot::Mutex<VecDeque<Weak<GoferInode>>>,
    /// Those with directories listed ahead.
    lists: parking_lot::Mutex<VecDeque<Weak<GoferInode>>>,
    /// Questions for extended attributes.
    curious: AtomicU32,
    /// Something large was removed: what is forgotten is given back with the next look.
    hurry: AtomicBool,
    /// Whose unused names are forgotten when the gofer has no room for more nodes.
    kernel: Weak<Kernel>,
}

/// An inode of the host.
pub struct GoferInode {
    fs: Arc<GoferFs>,
    /// Unset for one that is known from a listing only.
    node: OnceLock<NodeId>,
    found_at: Option<(Arc<GoferInode>, Box<[u8]>)>,
    kind: u32,
    attr: Lock<protocol::Attr>,
    link: OnceLock<Vec<u8>>,
    read_fd: parking_lot::Mutex<Option<Arc<OwnedFd>>>,
    write_fd: parking_lot::Mutex<Option<Arc<OwnedFd>>>,
    listing: parking_lot::Mutex<Option<Arc<Listing>>>,
    /// Names of it asked for one by one.
    asked: AtomicU32,
    ahead: parking_lot::Mutex<Ahead<Opened>>,
    lists: parking_lot::Mutex<Ahead<Paged>>,
    /// Questions for extended attributes of what is in it.
    curious: AtomicU32,
    attached: Lock<Option<Arc<dyn Any + Send + Sync>>>,
    busy: Busy,
    /// On a read-only mount: what was found.
    caps: OnceLock<Option<Vec<u8>>>,
    /// Of O_TMPFILE, and not linked yet.
    linkable: AtomicBool,
    acl: OnceLock<Option<Arc<Acl>>>,
    me: Weak<GoferInode>,
}

/// A gofer's failure as a guest's. The path of a denial is filled in by the walk.
pub(crate) fn fail(error: GoferError) -> Fail {
    match error {
        GoferError::Errno(errno) => Errno::from_raw(errno).into(),
        GoferError::Denied { rule } => Fail::Denial(Box::new(Denial {
            errno: Errno::EACCES,
            what: "",
            object: String::new(),
            rule,
            allow_with: String::new(),
        })),
        GoferError::Gone => Errno::EIO.into(),
    }
}

fn time(t: protocol::Time) -> FileTime {
    FileTime { sec: t.sec, nsec: t.nsec.min(999_999_999) }
}

fn attr(a: &protocol::Attr) -> Attr {
    Attr {
        dev: a.dev,
        ino: a.ino,
        mode: a.mode,
        nlink: u64::from(a.nlink),
        uid: a.uid,
        gid: a.gid,
        rdev: a.rdev,
        size: a.size,
        blksize: a.blksize,
        blocks: a.blocks,
        atime: time(a.atime),
        mtime: time(a.mtime),
        ctime: time(a.ctime),
        btime: a.btime.map(time),
        acl: None,
    }
}

fn new_inode(owner: NewOwner) -> NewInode {
    NewInode { mode: owner.mode, masked: owner.masked, owner: Some((owner.uid, owner.gid)) }
}

impl GoferFs {
    /// The root inode of the gofer's mount with this number.
    ///
    /// # Errors
    /// The gofer's.
    pub fn attach(kernel: &Arc<Kernel>, client: &Arc<Client>, mount: u32) -> SysResult<Arc<GoferInode>> {
        let attached = client.attach(mount).map_err(fail)?;
        let fs = Arc::new(GoferFs {
            client: client.clone(),
            writable: attached.writable,
            forgotten: parking_lot::Mutex::new(Vec::new()),
            open: parking_lot::Mutex::new(VecDeque::new()),
            kept_fds: kernel.config.kept_files,
            ahead: parking_lot::Mutex::new(VecDeque::new()),
            lists: parking_lot::Mutex::new(VecDeque::new()),
            curious: AtomicU32::new(0),
            hurry: AtomicBool::new(false),
            kernel: Arc::downgrade(kernel),
        });
        Ok(fs.inode(attached.root))
    }

    fn inode(self: &Arc<Self>, step: Step) -> Arc<GoferInode> {
        let link = OnceLock::new();
        if let Some(target) = step.link {
            let _ = link.set(target.0);
        }
        let node = OnceLock::new();
        let _ = node.set(step.node);
        self.build(node, None, step.attr, link)
    }

    fn build(
        self: &Arc<Self>,
        node: OnceLock<NodeId>,
        found_at: Option<(Arc<GoferInode>, Box<[u8]>)>,
        attr: protocol::Attr,
        link: OnceLock<Vec<u8>>,
    ) -> Arc<GoferInode> {
        Arc::new_cyclic(|me| GoferInode {
            fs: self.clone(),
            node,
            found_at,
            kind: attr.mode & S_IFMT,
            attr: Lock::new(Level::Inode, attr),
            link,
            read_fd: parking_lot::Mutex::new(None),
            write_fd: parking_lot::Mutex::new(None),
            listing: parking_lot::Mutex::new(None),
            asked: AtomicU32::new(0),
            ahead: parking_lot::Mutex::default(),
            lists: parking_lot::Mutex::default(),
            curious: AtomicU32::new(0),
            attached: Lock::new(Level::Inode, None),
            busy: Busy::default(),
            caps: OnceLock::new(),
            linkable: AtomicBool::new(false),
            acl: OnceLock::new(),
            me: me.clone(),
        })
    }

    /// Ends what [`GoferInode::watch`] began.
    pub(crate) fn unwatch(&self, number: i32) -> SysResult<()> {
        self.client.unwatch(number).map_err(fail)
    }

    /// Asks the gofer; when it is full, once more after giving back what nobody uses. No lock of [`Level::Dir`] or
    /// inner may be held.
    fn ask<T>(&self, f: impl Fn(&Client) -> gofer::client::Result<T>) -> SysResult<T> {
        match f(&self.client) {
            Err(GoferError::Errno(errno)) if errno == Errno::ENFILE.raw() || errno == Errno::EMFILE.raw() => {
                if let Some(kernel) = self.kernel.upgrade() {
                    kernel.vfs.sweep();
                }
                self.give_back(1);
                f(&self.client).map_err(fail)
            }
            other => other.map_err(fail),
        }
    }

    /// Gives back the nodes that are no longer used, if there are that many.
    fn give_back(&self, least: usize) {
        let least = if self.hurry.load(Ordering::Relaxed) { 1 } else { least };
        let nodes = {
            let mut forgotten = self.forgotten.lock();
            if forgotten.len() < least {
                return;
            }
            self.hurry.store(false, Ordering::Relaxed);
            std::mem::take(&mut *forgotten)
        };
        // Forgetting cannot fail in a way that matters: the gofer is gone then.
        let _ = self.client.forget(&nodes);
    }
}

impl Drop for GoferInode {
    fn drop(&mut self) {
        let ahead = std::mem::take(self.ahead.get_mut());
        self.fs.give_up(ahead);
        let lists = std::mem::take(self.lists.get_mut());
        self.fs.give_up_lists(lists);
        if let Some(node) = self.node.get() {
            self.fs.forgotten.lock().push(*node);
        }
    }
}

/// How many host files a sandbox keeps open after their use, of the descriptors that the sentry may have.
pub fn kept_files(descriptors: u64) -> u64 {
    (descriptors / 8).clamp(256, 4096)
}

impl GoferInode {
    /// The gofer's number for it, asked now if it is known from a listing only.
    fn node(&self) -> SysResult<NodeId> {
        if let Some(node) = self.node.get() {
            return Ok(*node);
        }
        let (dir, name) = self.found_at.as_ref().ok_or(Errno::EIO)?;
        let parent = dir.node()?;
        let step = self.fs.ask(|client| client.lookup(parent, name))?;
        self.becomes(step)
    }

    /// The gofer's answer to its name.
    fn becomes(&self, step: Step) -> SysResult<NodeId> {
        // The first answer counts.
        if step.attr.mode & S_IFMT != self.kind || self.node.set(step.node).is_err() {
            self.fs.forgotten.lock().push(step.node);
        } else if let Some(target) = step.link {
            let _ = self.link.set(target.0);
        }
        self.node.get().copied().ok_or(Errno::ESTALE.into())
    }

    /// Whether changes pass through to the host.
    pub fn writable(&self) -> bool {
        self.fs.writable
    }

    /// Has the host tell of changes: the watch's number, and the instance that tells.
    pub(crate) fn watch(&self, events: u32) -> SysResult<(i32, OwnedFd)> {
        self.fs.client.watch(self.node()?, events).map_err(fail)
    }

    /// Which names in this directory, there or not, are hidden.
    pub(crate) fn hidden(&self, names: &[&[u8]]) -> SysResult<Vec<bool>> {
        let node = self.node()?;
        let mut all = Vec::with_capacity(names.len());
        for part in names.chunks(protocol::MAX_NAMES) {
            all.extend(self.fs.client.are_hidden(node, part).map_err(fail)?);
        }
        Ok(all)
    }

    /// The mount it is of.
    pub(crate) fn fs(&self) -> &Arc<GoferFs> {
        &self.fs
    }

    /// Set-user-ID and set-group-ID bits that it had when it was last looked at, with the rest of its mode.
    pub(crate) fn set_ids(&self) -> Option<u32> {
        let mode = self.attr.lock().mode & 0o7777;
        (mode & 0o6000 != 0).then_some(mode)
    }

    /// Gives back the mode that the host took set-IDs from.
    pub(crate) fn keep_mode(&self, mode: u32) -> SysResult<()> {
        self.set(protocol::SetAttr { mode: Some(mode), ..Default::default() })
    }

    fn set(&self, set: protocol::SetAttr) -> SysResult<()> {
        let attr = self.fs.client.setattr(self.node()?, set).map_err(fail)?;
        *self.attr.lock() = attr;
        Ok(())
    }

    fn open_fd(&self, write: bool) -> SysResult<Arc<OwnedFd>> {
        let slot = if write { &self.write_fd } else { &self.read_fd };
        if let Some(fd) = slot.lock().clone() {
            return Ok(fd);
        }
        if let (false, false, Some((dir, name))) = (write, self.fs.writable, &self.found_at)
            && let Some((fd, step)) = dir.open_child(name)?
        {
            let now = step.attr;
            self.becomes(step)?;
            *self.attr.lock() = now;
            let fd = Arc::new(fd);
            self.keep(slot, &fd);
            return Ok(fd);
        }
        let flags = protocol::OpenFlags { read: true, write, ..Default::default() };
        let node = self.node()?;
        let opened = match self.fs.ask(|client| client.open(node, flags)) {
            // Files that may only be written.
            Err(Fail::Error(Errno::EACCES)) if write => {
                let flags = protocol::OpenFlags { write, ..Default::default() };
                self.fs.ask(|client| client.open(node, flags))
            }
            other => other,
        };
        let (fd, attr) = opened?;
        *self.attr.lock() = attr;
        let fd = Arc::new(fd);
        self.keep(slot, &fd);
        Ok(fd)
    }

    fn keep(&self, slot: &parking_lot::Mutex<Option<Arc<OwnedFd>>>, fd: &Arc<OwnedFd>) {
        *slot.lock() = Some(fd.clone());
        let mut open = self.fs.open.lock();
        open.push_back(self.me.clone());
        let old = if open.len() > self.fs.kept_fds { open.pop_front() } else { None };
        drop(open);
        if let Some(old) = old.and_then(|old| old.upgrade()).filter(|old| !std::ptr::eq(&**old, self)) {
            let fds = (old.read_fd.lock().take(), old.write_fd.lock().take());
            drop(fds);
        }
    }

    /// A name of it went away. What the cache holds of a large file would keep its room on the disk.
    fn let_go(&self) {
        let fds = (self.read_fd.lock().take(), self.write_fd.lock().take());
        let size = match fds.1.as_ref().or(fds.0.as_ref()).map(rustix::fs::fstat) {
            Some(Ok(stat)) => u64::try_from(stat.st_size).unwrap_or(0),
            _ => self.attr.lock().size,
        };
        if size >= LARGE {
            self.fs.hurry.store(true, Ordering::Relaxed);
        }
    }

    fn forget_listing(&self) {
        let old = self.listing.lock().take();
        drop(old);
    }

    fn read_all(&self) -> SysResult<Arc<Listing>> {
        if !self.fs.writable
            && let Some(listing) = self.listing.lock().clone()
        {
            return Ok(listing);
        }
        let mut first = match &self.found_at {
            Some((dir, name)) if !self.fs.writable => dir.list_child(name)?,
            _ => None,
        };
        let node = match first.as_ref() {
            Some((step, _)) => self.becomes(step.clone())?,
            None => self.node()?,
        };
        let mut listed = Vec::new();
        let mut names = HashMap::new();
        let mut cursor = 0;
        loop {
            let page = match first.take() {
                Some((_, page)) => page,
                None => self.fs.client.read_dir(node, cursor, !self.fs.writable).map_err(fail)?,
            };
            for entry in page.entries {
                let name: Box<[u8]> = entry.name.0.into();
                if !self.fs.writable {
                    let at = u32::try_from(listed.len()).map_err(|_| Errno::EOVERFLOW)?;
                    names.insert(name.clone(), (at, entry.attr));
                }
                listed.push(Listed { name, ino: entry.ino, kind: entry.kind });
            }
            match page.next {
                // A cursor that stays would never end.
                Some(next) if next != cursor => cursor = next,
                _ => break,
            }
        }
        let listing = Arc::new(Listing::new(listed, names));
        if !self.fs.writable && listing.listed.len() <= KEPT_LIST {
            *self.listing.lock() = Some(listing.clone());
        }
        Ok(listing)
    }

    /// What a kept listing says of a name. None: ask.
    fn listed(&self, name: &[u8]) -> Option<SysResult<Arc<dyn Inode>>> {
        let listing = self.listing.lock().clone()?;
        match listing.attr(name) {
            None => Some(Err(Errno::ENOENT.into())),
            // Hidden names have no attributes: asking gives the denial.
            Some(None) => None,
            Some(Some(attr)) => {
                let attr = *attr;
                let found_at = Some((self.me.upgrade()?, name.into()));
                Some(Ok(self.fs.build(OnceLock::new(), found_at, attr, OnceLock::new())))
            }
        }
    }

    fn walk(&self, names: &[&[u8]], opens: bool) -> Found {
        self.fs.give_back(FORGET);
        if !self.fs.writable && self.is_popular() {
            // What it cannot list it asks for.
            let _ = self.read_all();
        }
        if let Some(first) = names.first()
            && let Some(answer) = self.listed(first)
        {
            return match answer {
                Ok(inode) => Found { inodes: vec![inode], end: None },
                Err(fail) => Found { inodes: Vec::new(), end: Some(fail) },
            };
        }
        let walk = match self.walk_on(names, opens) {
            Err(fail) => return Found { inodes: Vec::new(), end: Some(fail) },
            Ok(walk) => walk,
        };
        let inodes: Vec<_> = walk.steps.into_iter().map(|step| self.fs.inode(step)).collect();
        // Why it cannot be opened is asked by whoever may open it.
        if let (Some(last), Some(Ok(fd))) = (inodes.last(), walk.file) {
            last.keep(&last.read_fd, &Arc::new(fd));
        }
        Found {
            inodes: inodes.into_iter().map(|inode| inode as Arc<dyn Inode>).collect(),
            end: match walk.end {
                WalkEnd::Failed(fault) => Some(fail(fault.into())),
                WalkEnd::Complete | WalkEnd::Stopped => None,
            },
        }
    }

    /// Asks for names below. A directory that is known from a listing only is walked into with the same message.
    fn walk_on(&self, names: &[&[u8]], opens: bool) -> SysResult<gofer::client::Walk> {
        let (start, own) = match (self.node.get(), &self.found_at) {
            (Some(node), _) => (*node, None),
            (None, Some((dir, name))) => (dir.node()?, Some(&**name)),
            (None, None) => return Err(Errno::EIO.into()),
        };
        let all: Vec<&[u8]> = own.into_iter().chain(names.iter().copied()).collect();
        let mut walk = self.fs.ask(|client| {
            let walk = client.walk(start, &all, opens.then_some(READ))?;
            match walk.end {
                // Nothing was reached: as a failure of the whole, to be asked again.
                WalkEnd::Failed(protocol::Fault::Errno(errno)) if walk.steps.is_empty() => {
                    Err(GoferError::Errno(errno))
                }
                _ => Ok(walk),
            }
        })?;
        if own.is_some() && !walk.steps.is_empty() {
            self.becomes(walk.steps.remove(0))?;
        }
        Ok(walk)
    }

    fn has_no_xattrs(&self) -> SysResult<bool> {
        match &self.found_at {
            Some((dir, name)) if !self.fs.writable => Ok(!dir.may_have_xattrs(name)?),
            _ => Ok(false),
        }
    }

    fn with_acl(&self, known: &protocol::Attr) -> Attr {
        let mut attr = attr(known);
        let may = known.acl != Some(false) && known.mode & 0o070 != 0 && self.kind != S_IFLNK;
        if may && let Some(me) = self.me.upgrade() {
            attr.acl = Some(Access::Of(me));
        }
        attr
    }

    fn ask_acl(&self) -> Option<Arc<Acl>> {
        if self.attr.lock().acl == Some(false) {
            return None;
        }
        let read = self.get_xattr(acl::ACCESS).and_then(|value| Acl::read(&value, |_, id| Some(id)));
        match read {
            Ok(acl) => acl.map(Arc::new),
            Err(Fail::Error(Errno::ENODATA | Errno::EOPNOTSUPP)) => None,
            Err(_) => Some(Arc::new(Acl::of_nobody())),
        }
    }

    fn owner_of(other: &Arc<dyn Inode>) -> SysResult<Arc<GoferInode>> {
        downcast::<GoferInode>(other).ok_or(Errno::EXDEV.into())
    }
}

impl Inode for GoferInode {
    fn kind(&self) -> u32 {
        self.kind
    }

    fn attr(&self) -> SysResult<Attr> {
        if self.fs.writable && self.node.get().is_some() {
            let now = self.fs.client.getattr(self.node()?).map_err(fail)?;
            *self.attr.lock() = now;
            return Ok(self.with_acl(&now));
        }
        let known = *self.attr.lock();
        Ok(self.with_acl(&known))
    }

    fn access_acl(&self) -> Option<Arc<Acl>> {
        if self.fs.writable {
            return self.ask_acl();
        }
        self.acl.get_or_init(|| self.ask_acl()).clone()
    }

    fn set_attr(&self, set: &SetAttr) -> SysResult<()> {
        let when = |t: SetTime| match t {
            SetTime::Now => protocol::SetTime::Now,
            SetTime::At(at) => protocol::SetTime::At(protocol::Time { sec: at.sec, nsec: at.nsec }),
        };
        self.set(protocol::SetAttr {
            mode: set.mode,
            uid: set.uid,
            gid: set.gid,
            size: None,
            atime: set.atime.map(when),
            mtime: set.mtime.map(when),
        })
    }

    fn caching(&self) -> Caching {
        if self.fs.writable { Caching::Revalidate } else { Caching::Keep }
    }

    fn walks_far(&self) -> bool {
        true
    }

    fn lookup_free(&self, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        let mut found = self.walk(&[name], false);
        match (found.inodes.pop(), found.end) {
            (Some(inode), _) => Ok(inode),
            (None, Some(fail)) => Err(fail),
            (None, None) => Err(Errno::EIO.into()),
        }
    }

    fn lookup_many(&self, _: &Task, names: &[&[u8]], opens: bool) -> Found {
        self.walk(names, opens)
    }
    fn create(&self, name: &[u8], kind: NewKind<'_>, owner: NewOwner) -> SysResult<Arc<dyn Inode>> {
        let dir = self.node()?;
        let new = new_inode(owner);
        let client = &self.fs.client;
        let step = match kind {
            NewKind::File => {
                let flags = protocol::OpenFlags { read: true, write: true, ..Default::default() };
                let (fd, step) = client.create(dir, name, new, flags).map_err(fail)?;
                let inode = self.fs.inode(step);
                inode.keep(&inode.write_fd, &Arc::new(fd));
                return Ok(inode);
            }
            NewKind::Dir => client.mkdir(dir, name, new),
            NewKind::Link(target) => client.symlink(dir, name, target, new.owner),
            NewKind::Special(S_IFIFO, _) => client.mknod(dir, name, new, NodeKind::Fifo),
            NewKind::Special(S_IFSOCK, _) => client.mknod(dir, name, new, NodeKind::Socket),
            NewKind::Special(..) => return Err(Errno::EPERM.into()),
        };
        Ok(self.fs.inode(step.map_err(fail)?))
    }

    fn tmpfile(&self, owner: NewOwner, linkable: bool) -> SysResult<Arc<dyn Inode>> {
        let flags = protocol::OpenFlags { read: true, write: true, ..Default::default() };
        let (fd, step) = self.fs.client.tmpfile(self.node()?, new_inode(owner), flags).map_err(fail)?;
        let inode = self.fs.inode(step);
        inode.keep(&inode.write_fd, &Arc::new(fd));
        inode.linkable.store(linkable, Ordering::Relaxed);
        Ok(inode)
    }

    fn linkable(&self) -> bool {
        self.linkable.load(Ordering::Relaxed)
    }

    fn link(&self, name: &[u8], inode: &Arc<dyn Inode>) -> SysResult<()> {
        let inode = Self::owner_of(inode)?;
        let now = self.fs.client.link(inode.node()?, self.node()?, name).map_err(fail)?;
        *inode.attr.lock() = now;
        inode.linkable.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn unlink(&self, name: &[u8], inode: &Arc<dyn Inode>) -> SysResult<()> {
        self.fs.client.unlink(self.node()?, name).map_err(fail)?;
        if let Some(gone) = downcast::<GoferInode>(inode) {
            gone.let_go();
        }
        Ok(())
    }

    fn rmdir(&self, name: &[u8], _: &Arc<dyn Inode>) -> SysResult<()> {
        self.fs.client.rmdir(self.node()?, name).map_err(fail)
    }

    fn rename(
        &self,
        name: &[u8],
        _: &Arc<dyn Inode>,
        to: &Arc<dyn Inode>,
        to_name: &[u8],
        _: Option<&Arc<dyn Inode>>,
        exchange: bool,
    ) -> SysResult<()> {
        let to = Self::owner_of(to)?;
        let mode = if exchange { RenameMode::Exchange } else { RenameMode::Replace };
        self.forget_listing();
        self.fs.client.rename((self.node()?, name), (to.node()?, to_name), mode).map_err(fail)
    }

    fn readlink(&self, _: &Task) -> SysResult<Vec<u8>> {
        self.target()
    }

    fn target(&self) -> SysResult<Vec<u8>> {
        if self.link.get().is_none() {
            let target = self.fs.client.readlink(self.node()?).map_err(fail)?;
            let _ = self.link.set(target);
        }
        self.link.get().cloned().ok_or(Errno::EINVAL.into())
    }

    fn open(self: Arc<Self>, _: &Arc<Task>, flags: i32) -> SysResult<Arc<dyn FileOps>> {
        if self.kind != S_IFREG {
            return Err(Errno::ENXIO.into());
        }
        self.fs.give_back(FORGET);
        let fd = self.open_fd(flags & O_ACCMODE != O_RDONLY)?;
        Ok(Arc::new(HostFile::new(self, fd)))
    }

    fn truncate(&self, size: u64) -> SysResult<()> {
        self.set(protocol::SetAttr { size: Some(size), ..Default::default() })
    }

    fn host_file(&self, write: bool) -> SysResult<Arc<OwnedFd>> {
        self.open_fd(write)
    }

    fn lock_file(&self) -> SysResult<Option<Arc<OwnedFd>>> {
        if !self.fs.writable || self.kind != S_IFREG {
            return Ok(None);
        }
        // For both kinds of locks if the user may write, else for shared ones.
        self.open_fd(true).or_else(|_| self.open_fd(false)).map(Some)
    }

    fn sync_dir(&self) -> SysResult<()> {
        if !self.fs.writable {
            return Ok(());
        }
        self.fs.client.fsync(self.node()?, false).map_err(fail)
    }

    fn sync_fs(&self) -> SysResult<()> {
        // Of other nodes the gofer says EINVAL.
        if !self.fs.writable || !matches!(self.kind, S_IFREG | S_IFDIR) {
            return Ok(());
        }
        self.fs.client.syncfs(self.node()?).map_err(fail)
    }

    fn list(&self) -> SysResult<Arc<Vec<Listed>>> {
        Ok(self.read_all()?.listed.clone())
    }

    fn statfs(&self) -> SysResult<StatFs> {
        let s = self.fs.client.statfs(self.node()?).map_err(fail)?;
        Ok(StatFs {
            kind: i64::try_from(s.kind).unwrap_or(0),
            bsize: s.bsize,
            blocks: s.blocks,
            bfree: s.bfree,
            bavail: s.bavail,
            files: s.files,
            ffree: s.ffree,
            namelen: s.namelen,
            flags: i64::try_from(s.flags).unwrap_or(0),
        })
    }

    fn get_xattr(&self, name: &[u8]) -> SysResult<Vec<u8>> {
        // Labels are asked for by themselves.
        let label = name.starts_with(b"security.") && name != CAPS;
        if !label && self.has_no_xattrs()? {
            return Err(Errno::ENODATA.into());
        }
        self.fs.client.getxattr(self.node()?, name).map_err(fail)
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], flags: i32) -> SysResult<()> {
        let mode = match flags {
            XATTR_CREATE => XattrMode::Create,
            XATTR_REPLACE => XattrMode::Replace,
            _ => XattrMode::Any,
        };
        self.fs.client.setxattr(self.node()?, name, value, mode).map_err(fail)
    }

    fn list_xattr(&self) -> SysResult<Vec<Vec<u8>>> {
        if self.has_no_xattrs()? {
            return Ok(Vec::new());
        }
        let list = self.fs.client.listxattr(self.node()?).map_err(fail)?;
        Ok(list.split(|b| *b == 0).filter(|n| !n.is_empty()).map(<[u8]>::to_vec).collect())
    }

    fn remove_xattr(&self, name: &[u8]) -> SysResult<()> {
        self.fs.client.removexattr(self.node()?, name).map_err(fail)
    }

    fn file_caps(&self) -> Option<Vec<u8>> {
        if self.kind != S_IFREG {
            return None;
        }
        let ask = || self.get_xattr(CAPS).ok();
        if self.fs.writable { ask() } else { self.caps.get_or_init(ask).clone() }
    }

    fn busy(&self) -> Option<&Busy> {
        Some(&self.busy)
    }

    fn attachment(&self) -> Option<&Lock<Option<Arc<dyn Any + Send + Sync>>>> {
        Some(&self.attached)
    }
}
