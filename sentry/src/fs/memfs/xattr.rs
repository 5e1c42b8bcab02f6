//! Extended attributes of nodes: what is set here over the lower's, and the lists that say who may do what (acl(5)).

use super::Node;
use crate::fail::{Fail, SysResult};
use crate::sync::{Level, Lock};
use crate::vfs::acl::{ACCESS, Acl, DEFAULT};
use crate::vfs::inode::Inode;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use syscall_table::abi::mount::{XATTR_CREATE, XATTR_REPLACE};
use syscall_table::abi::{S_IFDIR, S_IFLNK, S_IFREG};
use syscall_table::errno::Errno;

/// The attribute that holds a file's capabilities.
pub(super) const FILE_CAPS: &[u8] = b"security.capability";
/// Most bytes of names and values of a node.
const MOST: usize = 1 << 20;

/// What differs from the lower's attributes.
pub(super) struct Xattrs {
    /// Anything is here: most nodes are never asked under the lock.
    any: AtomicBool,
    /// The lower's capabilities count no more: the contents are others. That is no change by itself.
    caps_gone: AtomicBool,
    /// The list that new files get, as the lower directory has it.
    lower_default: OnceLock<Option<Arc<Acl>>>,
    here: Lock<Here>,
}

#[derive(Default)]
struct Here {
    /// None: the lower's is gone.
    values: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    access: Option<Arc<Acl>>,
    default: Option<Arc<Acl>>,
}

impl Default for Xattrs {
    fn default() -> Self {
        Xattrs {
            any: AtomicBool::new(false),
            caps_gone: AtomicBool::new(false),
            lower_default: OnceLock::new(),
            here: Lock::new(Level::Inode, Here::default()),
        }
    }
}

/// Attributes of the lower that show through: others are the host's business.
fn shows(name: &[u8]) -> bool {
    name.starts_with(b"user.") || is_acl(name) || name == FILE_CAPS
}

fn is_acl(name: &[u8]) -> bool {
    name == ACCESS || name == DEFAULT
}

/// The kernel's own ids, which an attribute has inside.
fn plain(value: &[u8]) -> SysResult<Option<Acl>> {
    Acl::read(value, |_, id| Some(id))
}

impl Xattrs {
    /// Whether there is anything that the lower has not.
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// What was set here; `Some(None)` is one that was taken away.
    pub(super) fn own(&self, name: &[u8]) -> Option<Option<Vec<u8>>> {
        if name == FILE_CAPS && self.caps_gone.load(Ordering::Relaxed) {
            return Some(None);
        }
        if !self.any() {
            return None;
        }
        self.here.lock_peer().values.get(name).cloned()
    }

    /// The list that access goes by, if it was set here and says more than the mode.
    pub(super) fn access_acl(&self) -> Option<Arc<Acl>> {
        if self.any() { self.here.lock_peer().access.clone() } else { None }
    }

    /// The list that new files get.
    pub(super) fn default_acl(&self) -> Option<Arc<Acl>> {
        if self.any() { self.here.lock_peer().default.clone() } else { None }
    }

    /// Notes a value, or that there is none any more.
    fn put(&self, name: &[u8], value: Option<Vec<u8>>) {
        let mut here = self.here.lock_peer();
        if is_acl(name) {
            let acl = value.as_deref().and_then(|value| plain(value).ok()).flatten().map(Arc::new);
            if name == ACCESS {
                here.access = acl;
            } else {
                here.default = acl;
            }
        }
        if name == FILE_CAPS {
            self.caps_gone.store(false, Ordering::Relaxed);
        }
        here.values.insert(name.to_vec(), value);
        self.any.store(true, Ordering::Relaxed);
    }

    /// The mode changes, and the list with it.
    pub(super) fn chmod(&self, mode: u32) {
        if let Some(acl) = self.access_acl() {
            self.put(ACCESS, Some(acl.with_mode(mode).write(|_, id| id)));
        }
    }

    /// The contents changed: capabilities of the file go.
    pub(super) fn drop_file_caps(&self) {
        if self.caps_gone.load(Ordering::Relaxed) {
            return;
        }
        // Under the lock: what is set meanwhile must not be half gone.
        let mut here = self.here.lock_peer();
        self.caps_gone.store(true, Ordering::Relaxed);
        here.values.remove(FILE_CAPS);
    }
}

impl Node {
    /// EOPNOTSUPP for what this file system does not have.
    fn known(&self, name: &[u8]) -> SysResult<()> {
        let known = [&b"user."[..], b"trusted.", b"security."].iter().any(|kind| name.starts_with(kind));
        let listed = is_acl(name) && self.kind() != S_IFLNK;
        if known || listed { Ok(()) } else { Err(Errno::EOPNOTSUPP.into()) }
    }

    /// The lower's value of an attribute that nothing was done to here.
    fn below(&self, name: &[u8]) -> SysResult<Vec<u8>> {
        match &self.lower {
            Some(lower) if name == FILE_CAPS => lower.file_caps().ok_or(Errno::ENODATA.into()),
            Some(lower) if shows(name) => match lower.get_xattr(name) {
                // A file system of the host without such.
                Err(Fail::Error(Errno::EOPNOTSUPP)) => Err(Errno::ENODATA.into()),
                other => other,
            },
            _ => Err(Errno::ENODATA.into()),
        }
    }

    pub(super) fn attribute(&self, name: &[u8]) -> SysResult<Vec<u8>> {
        self.known(name)?;
        match self.xattrs.own(name) {
            Some(own) => own.ok_or(Errno::ENODATA.into()),
            None => self.below(name),
        }
    }

    pub(super) fn attributes(&self) -> SysResult<Vec<Vec<u8>>> {
        let mut names = BTreeSet::new();
        if let Some(lower) = &self.lower {
            names.extend(lower.list_xattr()?.into_iter().filter(|name| shows(name)));
        }
        if self.xattrs.caps_gone.load(Ordering::Relaxed) {
            names.remove(FILE_CAPS);
        }
        if self.xattrs.any() {
            for (name, value) in &self.xattrs.here.lock_peer().values {
                if value.is_some() {
                    names.insert(name.clone());
                } else {
                    names.remove(name);
                }
            }
        }
        Ok(names.into_iter().collect())
    }

    pub(super) fn set_attribute(&self, name: &[u8], value: &[u8], flags: i32) -> SysResult<()> {
        self.known(name)?;
        if is_acl(name) {
            return self.set_acl(name, plain(value)?);
        }
        if name.starts_with(b"user.") && !matches!(self.kind(), S_IFREG | S_IFDIR) {
            return Err(Errno::EPERM.into());
        }
        let exists = match self.attribute(name) {
            Ok(_) => true,
            Err(Fail::Error(Errno::ENODATA)) => false,
            Err(fail) => return Err(fail),
        };
        if flags & XATTR_CREATE != 0 && exists {
            return Err(Errno::EEXIST.into());
        }
        if flags & XATTR_REPLACE != 0 && !exists {
            return Err(Errno::ENODATA.into());
        }
        self.has_room_for(value.len())?;
        self.touched()?;
        self.xattrs.put(name, Some(value.to_vec()));
        Ok(())
    }

    /// ENOSPC if the attributes would take too much.
    fn has_room_for(&self, more: usize) -> SysResult<()> {
        let here = self.xattrs.here.lock();
        let size: usize = here
            .values
            .iter()
            .map(|(k, v)| k.len().saturating_add(v.as_ref().map_or(0, Vec::len)).saturating_add(32))
            .sum();
        if size.saturating_add(more) > MOST { Err(Errno::ENOSPC.into()) } else { Ok(()) }
    }

    pub(super) fn remove_attribute(&self, name: &[u8]) -> SysResult<()> {
        self.known(name)?;
        if is_acl(name) {
            return self.set_acl(name, None);
        }
        self.attribute(name)?;
        self.touched()?;
        if self.lower.is_some() {
            self.has_room_for(name.len())?;
            self.xattrs.put(name, None);
        } else {
            self.xattrs.here.lock().values.remove(name);
        }
        Ok(())
    }

    /// Sets one of the two lists, or takes it away. The mode follows the one that access goes by.
    fn set_acl(&self, name: &[u8], acl: Option<Acl>) -> SysResult<()> {
        if name == DEFAULT && self.kind() != S_IFDIR {
            return if acl.is_some() { Err(Errno::EACCES.into()) } else { Ok(()) };
        }
        if let Some(acl) = &acl {
            acl.check()?;
        }
        self.touched()?;
        let mut kept = acl;
        if let Some(acl) = kept.as_ref().filter(|_| name == ACCESS) {
            let (bits, minimal) = acl.mode();
            let mut meta = self.own()?;
            meta.mode = meta.mode & !0o777 | bits;
            drop(meta);
            if minimal {
                kept = None;
            }
        }
        match kept {
            Some(acl) => self.xattrs.put(name, Some(acl.write(|_, id| id))),
            None if self.lower.is_some() || self.xattrs.own(name).is_some() => self.xattrs.put(name, None),
            None => {}
        }
        Ok(())
    }

    /// The list that access goes by becomes the node's own: the mode is about to change.
    pub(super) fn own_access_acl(&self) -> SysResult<()> {
        if self.lower.is_none() || self.kind() == S_IFLNK || self.xattrs.own(ACCESS).is_some() {
            return Ok(());
        }
        if let Ok(value) = self.below(ACCESS) {
            self.xattrs.put(ACCESS, Some(value));
        }
        Ok(())
    }

    /// The list that new files in this directory get. No lock may be held when it is asked for the first time.
    pub(super) fn default_acl(&self) -> Option<Arc<Acl>> {
        if self.lower.is_none() || !self.is_dir() || self.xattrs.own(DEFAULT).is_some() {
            return self.xattrs.default_acl();
        }
        let below = || self.below(DEFAULT).ok().and_then(|value| plain(&value).ok()).flatten().map(Arc::new);
        self.xattrs.lower_default.get_or_init(below).clone()
    }

    /// Gives a new node in this directory the rights that the directory's default list says.
    pub(super) fn bequeath(&self, new: &Node) -> SysResult<()> {
        if new.kind() == S_IFLNK {
            return Ok(());
        }
        let Some(acl) = self.default_acl() else { return Ok(()) };
        let mut meta = new.own()?;
        let (access, mode) = acl.inherited(meta.mode);
        meta.mode = mode;
        drop(meta);
        if let Some(access) = access {
            new.xattrs.put(ACCESS, Some(access.write(|_, id| id)));
        }
        if new.is_dir() {
            new.xattrs.put(DEFAULT, Some(acl.write(|_, id| id)));
        }
        Ok(())
    }

    /// The inode changed now.
    fn touched(&self) -> SysResult<()> {
        self.own()?.ctime = crate::vfs::attr::FileTime::now();
        Ok(())
    }
}
