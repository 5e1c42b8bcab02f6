//! Nodes: attributes, and what changing them means for a node that still is the lower's.

use super::content::{Bytes, Content};
use super::dir::{Names, Slot};
use super::xattr::{FILE_CAPS, Xattrs};
use super::{Kept, MemFile, MemFs};
use crate::fail::SysResult;
use crate::sync::{Guard, Level, Lock};
use crate::task::Task;
use crate::task::creds::cap;
use crate::vfs::acl;
use crate::vfs::attr::{Access, Attr, FileTime};
use crate::vfs::file::FileOps;
use crate::vfs::inode::{Found, Inode, Listed, NewKind, NewOwner, SetAttr, SetTime, StatFs};
use crate::vfs::lend;
use crate::vfs::perm;
use crate::vfs::text::Busy;
use rustix::fd::OwnedFd;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use syscall_table::abi::fcntl::F_SEAL_EXEC;
use syscall_table::abi::open::{O_ACCMODE, O_RDONLY};
use syscall_table::abi::{S_IFCHR, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};
use syscall_table::errno::Errno;

/// An access time older than this moves with any access (relatime).
const DAY: i64 = 24 * 3600;

#[derive(Default)]
pub(super) struct Meta {
    /// False while the lower's count.
    own: bool,
    pub(super) mode: u32,
    uid: u32,
    gid: u32,
    nlink: u64,
    atime: FileTime,
    mtime: FileTime,
    pub(super) ctime: FileTime,
    btime: Option<FileTime>,
    rdev: u64,
}

/// Directory and name where a node is, while it has one.
type Up = Option<(Arc<Node>, Box<[u8]>)>;

/// An inode in memory.
pub struct Node {
    pub(super) fs: Arc<MemFs>,
    pub(super) me: Weak<Node>,
    ino: u64,
    dev: u64,
    kind: u32,
    pub(super) lower: Option<Arc<dyn Inode>>,
    meta: Lock<Meta>,
    pub(super) content: Lock<Content>,
    pub(super) names: Lock<Names>,
    link: Vec<u8>,
    pub(super) up: Lock<Up>,
    pinned: AtomicBool,
    pub(super) xattrs: Xattrs,
    attached: Lock<Option<Arc<dyn Any + Send + Sync>>>,
    busy: Busy,
    /// Of O_TMPFILE, and not linked yet.
    linkable: AtomicBool,
    /// A mount point that no program made.
    pub(super) set_up: AtomicBool,
}

impl Node {
    #[allow(clippy::too_many_arguments)]
    fn build(
        fs: &Arc<MemFs>,
        (dev, ino, kind): (u64, u64, u32),
        lower: Option<Arc<dyn Inode>>,
        meta: Meta,
        content: Content,
        link: Vec<u8>,
        up: Up,
        pinned: bool,
    ) -> Arc<Node> {
        Arc::new_cyclic(|me| Node {
            fs: fs.clone(),
            me: me.clone(),
            ino,
            dev,
            kind,
            lower,
            meta: Lock::new(Level::Inode, meta),
            content: Lock::new(Level::Inode, content),
            names: Lock::new(Level::Dir, Names::default()),
            link,
            up: Lock::new(Level::Inode, up),
            pinned: AtomicBool::new(pinned),
            xattrs: Xattrs::default(),
            attached: Lock::new(Level::Inode, None),
            busy: Busy::default(),
            linkable: AtomicBool::new(false),
            set_up: AtomicBool::new(false),
        })
    }

    /// A node without lower. `up` is set by whoever gives it a name.
    pub(super) fn fresh(
        fs: &Arc<MemFs>,
        ino: u64,
        kind: u32,
        owner: NewOwner,
        link: Vec<u8>,
        rdev: u64,
    ) -> Arc<Node> {
        fs.count_inode();
        let now = FileTime::now();
        let meta = Meta {
            own: true,
            mode: kind | owner.mode,
            uid: owner.uid,
            gid: owner.gid,
            nlink: 1,
            atime: now,
            mtime: now,
            ctime: now,
            btime: Some(now),
            rdev,
        };
        Self::build(fs, (fs.dev, ino, kind), None, meta, Content::empty(), link, None, true)
    }

    /// A node over a lower one, found at `up`. All names of a lower file are one node.
    pub(super) fn over(fs: &Arc<MemFs>, lower: Arc<dyn Inode>, up: Up) -> SysResult<Arc<Node>> {
        let attr = lower.attr()?;
        let id = (attr.dev, attr.ino, attr.mode & S_IFMT);
        let make =
            |up| Self::build(fs, id, Some(lower), Meta::default(), Content::lower(), Vec::new(), up, false);
        if attr.nlink < 2 || id.2 == S_IFDIR {
            return Ok(make(up));
        }
        let node = fs.linked.find(id, up.as_ref(), || make(up.clone()));
        {
            let mut now = node.up.lock();
            // The name that it was known by is gone.
            if now.is_none() {
                *now = up;
            }
        }
        if node.pinned.load(Ordering::Acquire) {
            // It has changed already: so has what is at this name.
            node.hold_places();
        }
        Ok(node)
    }

    fn id(&self) -> (u64, u64, u32) {
        (self.dev, self.ino, self.kind)
    }

    /// The tables of the directories where this lower file was found hold it from now on.
    fn hold_places(&self) {
        for (dir, name) in self.fs.linked.take_places(self.id()) {
            if let Some(me) = self.me.upgrade() {
                dir.names.lock().pin(name, me);
            }
            dir.pin();
        }
    }

    /// It is at this place no longer.
    pub(super) fn leaves(&self, dir: &Node, name: &[u8]) {
        if self.lower.is_some() {
            self.fs.linked.leaves(self.id(), dir, name);
        }
    }

    /// Whether a name of the lower's was found before by another name.
    fn is_linked(&self, nlink: u64) -> bool {
        nlink > 1 && self.kind != S_IFDIR
    }

    /// It has no names any more.
    pub(super) fn let_go(&self) {
        self.fs.linked.forget(self.id());
    }

    pub(super) fn number(&self) -> u64 {
        self.ino
    }

    /// It is a mount point that no program made: no change of the layer.
    pub(crate) fn made_by_set_up(&self) {
        self.set_up.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_own_meta(&self) -> bool {
        self.meta.lock().own
    }

    /// A symbolic link's target.
    ///
    /// # Errors
    /// EINVAL for anything else; the lower's.
    pub(crate) fn target(&self) -> SysResult<Vec<u8>> {
        match &self.lower {
            _ if self.kind != S_IFLNK => Err(Errno::EINVAL.into()),
            Some(lower) => lower.target(),
            None => Ok(self.link.clone()),
        }
    }

    /// Nothing above has to hold it.
    pub(super) fn pin_root(&self) {
        self.pinned.store(true, Ordering::Release);
    }

    /// Makes the node's changes last: the table of its directory holds it from now on.
    pub(super) fn pin(&self) {
        if self.pinned.swap(true, Ordering::AcqRel) {
            return;
        }
        let up = self.up.lock().clone();
        if let Some((dir, name)) = up {
            if let Some(me) = self.me.upgrade() {
                dir.names.lock().pin(name, me);
            }
            dir.pin();
        }
        if self.lower.is_some() {
            self.hold_places();
        }
    }

    /// The attributes as the node's own, to change them.
    pub(super) fn own(&self) -> SysResult<Guard<'_, Meta>> {
        self.fs.changed();
        self.pin();
        let lower = match &self.lower {
            Some(lower) if !self.meta.lock().own => Some(lower.attr()?),
            _ => None,
        };
        let mut meta = self.meta.lock();
        if let Some(lower) = lower
            && !meta.own
        {
            if self.is_linked(lower.nlink)
                && let Some(me) = self.me.upgrade()
            {
                // Its other names find it by this.
                self.fs.linked.hold(self.id(), me);
            }
            *meta = Meta {
                own: true,
                mode: lower.mode,
                uid: lower.uid,
                gid: lower.gid,
                nlink: lower.nlink,
                atime: lower.atime,
                mtime: lower.mtime,
                ctime: lower.ctime,
                btime: lower.btime,
                rdev: lower.rdev,
            };
        }
        Ok(meta)
    }

    /// The contents changed now.
    pub(super) fn modified(&self) -> SysResult<()> {
        let now = FileTime::now();
        let mut meta = self.own()?;
        meta.mtime = now;
        meta.ctime = now;
        Ok(())
    }

    /// The contents changed now, by `task`: set-user-ID bits and file capabilities go, unless it may keep them.
    pub(super) fn modified_by(&self, task: &Task) -> SysResult<()> {
        let now = FileTime::now();
        let privileged = {
            let mut meta = self.own()?;
            meta.mtime = now;
            meta.ctime = now;
            perm::without_privileges(meta.mode)
        };
        self.drop_file_caps();
        if let Some(mode) = privileged.filter(|_| !task.creds().capable(cap::FSETID)) {
            self.own()?.mode = mode;
        }
        Ok(())
    }

    /// One name more or less.
    pub(super) fn linked(&self, more: bool) -> SysResult<()> {
        let mut meta = self.own()?;
        if more {
            self.linkable.store(false, Ordering::Relaxed);
        }
        meta.nlink = match more {
            true => meta.nlink.saturating_add(1),
            // A directory has one name.
            false if self.kind == S_IFDIR => 0,
            false => meta.nlink.saturating_sub(1),
        };
        meta.ctime = FileTime::now();
        Ok(())
    }

    /// Makes the contents the node's own; with `empty` without copying what will be cut anyway.
    pub(super) fn copy_up(&self, empty: bool) -> SysResult<()> {
        if !self.content.lock().is_lower() {
            return Ok(());
        }
        let lower = self.lower.as_ref().ok_or(Errno::EIO)?;
        // Attributes first: they say how the lower was before its contents are left.
        drop(self.own()?);
        if empty {
            let mut content = self.content.lock();
            // Who maps the mirror must see that it is cut, and its charge must not stay behind.
            if content.is_lower() && !content.take_mirror() {
                content.bytes = Bytes::Memory(Vec::new());
            }
            drop(content);
            lend::take_back_of(std::ptr::from_ref(self));
            return Ok(());
        }
        let fd = lower.host_file(false)?;
        let size = lower.attr()?.size;
        let mut content = self.content.lock();
        if content.is_lower() {
            content.copy_up(&self.fs, &fd, size)?;
        }
        drop(content);
        lend::take_back_of(std::ptr::from_ref(self));
        Ok(())
    }

    /// The contents may have become a memfd: it is given up when nobody uses it. No lock is held.
    pub(super) fn list_memfd(&self) {
        let new = self.content.lock().lists();
        if new {
            self.fs.list_memfd(&self.me);
        }
    }

    /// Seals of memfd_create(2).
    pub(crate) fn seals(&self) -> i32 {
        self.content.lock().seals
    }

    /// F_ADD_SEALS.
    ///
    /// # Errors
    /// EPERM, EBUSY.
    pub(crate) fn add_seals(&self, seals: i32) -> SysResult<()> {
        let executable = self.meta.lock().mode & 0o111 != 0;
        self.content.lock().add_seals(seals, executable)
    }

    /// Its file system is written down from now on while programs change it: what that takes.
    pub(crate) fn keep(&self) -> Arc<Kept> {
        self.fs.kept.get_or_init(Arc::default).clone()
    }

    /// The seals of a file just made.
    pub(crate) fn set_seals(&self, seals: i32) {
        self.content.lock().seals = seals;
    }

    /// Changes the limits of its file system.
    ///
    /// # Errors
    /// EINVAL when more is in use.
    pub(crate) fn set_limits(&self, bytes: Option<u64>, inodes: Option<u64>) -> SysResult<()> {
        self.fs.set_limits(bytes, inodes)
    }

    /// A regular file without a name.
    pub(crate) fn anonymous(&self, owner: NewOwner) -> Arc<Node> {
        let node = Node::fresh(&self.fs, self.fs.ino(), S_IFREG, owner, Vec::new(), 0);
        node.meta.lock().nlink = 0;
        node
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.fs.release(self.content.lock().charged());
        if self.lower.is_none() {
            self.fs.release_inode();
        } else {
            self.fs.linked.dropped(self.id());
        }
    }
}

impl Inode for Node {
    fn kind(&self) -> u32 {
        self.kind
    }

    fn attr(&self) -> SysResult<Attr> {
        let mut lowers = false;
        let mut attr = {
            let meta = self.meta.lock();
            match &self.lower {
                Some(lower) if !meta.own => {
                    drop(meta);
                    lowers = true;
                    lower.attr()?
                }
                _ => Attr {
                    mode: meta.mode,
                    uid: meta.uid,
                    gid: meta.gid,
                    nlink: meta.nlink,
                    atime: meta.atime,
                    mtime: meta.mtime,
                    ctime: meta.ctime,
                    btime: meta.btime,
                    rdev: meta.rdev,
                    blksize: 4096,
                    ..Attr::default()
                },
            }
        };
        attr.dev = self.dev;
        attr.ino = self.ino;
        if self.xattrs.own(acl::ACCESS).is_some() {
            attr.acl = self.xattrs.access_acl().map(Access::List);
        } else if let Some(lower) = self.lower.as_ref().filter(|_| !lowers && self.kind != S_IFLNK) {
            attr.acl = Some(Access::Of(lower.clone()));
        }
        match self.kind {
            S_IFREG => {
                let own = {
                    let content = self.content.lock();
                    content.size().map(|size| (size, content.blocks()))
                };
                if let Some((size, blocks)) = own {
                    attr.size = size;
                    attr.blocks = blocks;
                } else if let Some(lower) = self.lower.as_ref().filter(|_| !lowers) {
                    let lower = lower.attr()?;
                    (attr.size, attr.blocks, attr.blksize) = (lower.size, lower.blocks, lower.blksize);
                }
            }
            S_IFDIR => {
                let names = self.names.lock();
                let first = if self.lower.is_none() { 2 } else { attr.nlink };
                // Of file systems that do not count, 1 says so.
                if attr.nlink > 0 && first > 1 {
                    attr.nlink = first.saturating_add_signed(names.subdirs());
                }
                attr.size =
                    if self.lower.is_none() { names.len().saturating_mul(20) } else { attr.size.max(4096) };
            }
            S_IFLNK if self.lower.is_none() => attr.size = self.link.len() as u64,
            S_IFLNK => {
                if let Some(lower) = self.lower.as_ref().filter(|_| !lowers) {
                    attr.size = lower.attr()?.size;
                }
            }
            _ => {}
        }
        Ok(attr)
    }

    fn set_attr(&self, set: &SetAttr) -> SysResult<()> {
        let now = FileTime::now();
        let when = |t: SetTime| match t {
            SetTime::Now => now,
            SetTime::At(at) => at,
        };
        if set.mode.is_some() {
            self.own_access_acl()?;
        }
        let sealed = self.seals() & F_SEAL_EXEC != 0;
        let mut meta = self.own()?;
        if let Some(mode) = set.mode {
            if sealed && (meta.mode ^ mode) & 0o111 != 0 {
                return Err(Errno::EPERM.into());
            }
            meta.mode = self.kind | mode & 0o7777;
            self.xattrs.chmod(mode);
        }
        if let Some(uid) = set.uid {
            meta.uid = uid;
        }
        if let Some(gid) = set.gid {
            meta.gid = gid;
        }
        if let Some(at) = set.atime {
            meta.atime = when(at);
        }
        if let Some(at) = set.mtime {
            meta.mtime = when(at);
        }
        meta.ctime = now;
        Ok(())
    }

    fn walks_far(&self) -> bool {
        self.lower.is_some()
    }

    fn lookup_free(&self, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        self.dir_lookup(name)
    }

    fn lookup_many(&self, task: &Task, names: &[&[u8]], opens: bool) -> Found {
        self.dir_lookup_many(task, names, opens)
    }

    fn create(&self, name: &[u8], kind: NewKind<'_>, owner: NewOwner) -> SysResult<Arc<dyn Inode>> {
        self.dir_create(name, kind, owner)
    }

    fn tmpfile(&self, owner: NewOwner, linkable: bool) -> SysResult<Arc<dyn Inode>> {
        self.fs.room_for_inode()?;
        let node = self.anonymous(owner);
        self.bequeath(&node)?;
        node.linkable.store(linkable, Ordering::Relaxed);
        Ok(node)
    }

    fn linkable(&self) -> bool {
        self.linkable.load(Ordering::Relaxed)
    }

    fn accessed(&self) {
        let mut meta = self.meta.lock();
        // A lower's times stay as they are: keeping others would cost a node for each file that is read.
        if !meta.own {
            return;
        }
        let now = FileTime::now();
        let old = meta.atime <= meta.mtime
            || meta.atime <= meta.ctime
            || now.sec.saturating_sub(meta.atime.sec) >= DAY;
        if old {
            meta.atime = now;
        }
    }

    fn link(&self, name: &[u8], inode: &Arc<dyn Inode>) -> SysResult<()> {
        self.dir_link(name, inode)
    }

    fn unlink(&self, name: &[u8], inode: &Arc<dyn Inode>) -> SysResult<()> {
        self.dir_unlink(name, inode)
    }

    fn rmdir(&self, name: &[u8], inode: &Arc<dyn Inode>) -> SysResult<()> {
        self.dir_rmdir(name, inode)
    }

    fn rename(
        &self,
        name: &[u8],
        inode: &Arc<dyn Inode>,
        to: &Arc<dyn Inode>,
        to_name: &[u8],
        target: Option<&Arc<dyn Inode>>,
        exchange: bool,
    ) -> SysResult<()> {
        self.dir_rename(name, inode, to, to_name, target, exchange)
    }

    fn readlink(&self, _: &Task) -> SysResult<Vec<u8>> {
        Node::target(self)
    }

    fn target(&self) -> SysResult<Vec<u8>> {
        Node::target(self)
    }

    fn open(self: Arc<Self>, task: &Arc<Task>, flags: i32) -> SysResult<Arc<dyn FileOps>> {
        if self.kind == S_IFCHR {
            return crate::fs::dev::open(self.attr()?.rdev, self.clone(), task);
        }
        if self.kind != S_IFREG {
            return Err(Errno::ENXIO.into());
        }
        if flags & O_ACCMODE != O_RDONLY {
            self.copy_up(false)?;
        }
        Ok(Arc::new(MemFile::new(self)?))
    }

    fn truncate(&self, size: u64) -> SysResult<()> {
        if self.kind != S_IFREG {
            return Err(Errno::EINVAL.into());
        }
        let _change = self.fs.change();
        self.copy_up(size == 0)?;
        self.content.lock().truncate(&self.fs, size)?;
        self.modified()
    }

    fn host_file(&self, write: bool) -> SysResult<Arc<OwnedFd>> {
        if write {
            self.copy_up(false)?;
        }
        let fd = self.content.lock().host()?;
        if let Some(fd) = fd {
            self.list_memfd();
            return Ok(fd);
        }
        self.lower.as_ref().ok_or(Errno::EIO)?.host_file(false)
    }

    fn sync_dir(&self) -> SysResult<()> {
        self.fs.sync();
        Ok(())
    }

    fn sync_fs(&self) -> SysResult<()> {
        self.fs.sync();
        Ok(())
    }

    fn list(&self) -> SysResult<Arc<Vec<Listed>>> {
        self.dir_list()
    }

    fn statfs(&self) -> SysResult<StatFs> {
        // Never quite empty: there is the root.
        let used = self.fs.used.load(Ordering::Relaxed).max(4096);
        let limit = match self.fs.limit.load(Ordering::Relaxed) {
            u64::MAX => 0,
            limit => limit,
        };
        let used = if self.fs.pooled { self.fs.used.load(Ordering::Relaxed) } else { used };
        let (blocks, free) = (limit / 4096, limit.saturating_sub(used) / 4096);
        let (files, ffree) = match self.fs.most_inodes.load(Ordering::Relaxed) {
            u64::MAX => (1 << 20, 1 << 19),
            most => (most, most.saturating_sub(self.fs.inodes.load(Ordering::Relaxed))),
        };
        Ok(StatFs {
            kind: self.fs.magic,
            bsize: 4096,
            blocks,
            bfree: free,
            bavail: free,
            files,
            ffree,
            namelen: 255,
            flags: 0,
        })
    }

    fn get_xattr(&self, name: &[u8]) -> SysResult<Vec<u8>> {
        self.attribute(name)
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], flags: i32) -> SysResult<()> {
        self.set_attribute(name, value, flags)
    }

    fn list_xattr(&self) -> SysResult<Vec<Vec<u8>>> {
        self.attributes()
    }

    fn remove_xattr(&self, name: &[u8]) -> SysResult<()> {
        self.remove_attribute(name)
    }

    fn has_default_acl(&self) -> bool {
        self.default_acl().is_some()
    }

    fn file_caps(&self) -> Option<Vec<u8>> {
        match self.xattrs.own(FILE_CAPS) {
            Some(own) => own,
            None => self.lower.as_ref()?.file_caps(),
        }
    }

    fn drop_file_caps(&self) {
        self.xattrs.drop_file_caps();
    }

    fn busy(&self) -> Option<&Busy> {
        Some(&self.busy)
    }

    fn attachment(&self) -> Option<&Lock<Option<Arc<dyn Any + Send + Sync>>>> {
        Some(&self.attached)
    }
}

/// A slot that holds this node.
pub(super) fn slot(node: Arc<Node>, covers: bool) -> Slot {
    Slot::Here { node, covers }
}
