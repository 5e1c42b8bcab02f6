//! Mounts: which file system is where, and with which flags.

use crate::sync::{Level, Lock};
use crate::task::userns::UserNs;
use crate::vfs::dentry::Dentry;
use crate::vfs::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Flags of a mount, with the kernel's numbers (`include/linux/mount.h`).
#[allow(missing_docs)]
pub mod mnt {
    pub const NOSUID: u32 = 0x01;
    pub const NODEV: u32 = 0x02;
    pub const NOEXEC: u32 = 0x04;
    pub const NOATIME: u32 = 0x08;
    pub const NODIRATIME: u32 = 0x10;
    pub const RELATIME: u32 = 0x20;
    pub const READONLY: u32 = 0x40;
    pub const NOSYMFOLLOW: u32 = 0x80;
    /// What a program can set.
    pub const USER: u32 = 0xff;
    /// The flags that say when access times move.
    pub const ATIME: u32 = NOATIME | NODIRATIME | RELATIME;
    /// A less privileged copy: these must stay as they are.
    pub const LOCK_ATIME: u32 = 0x4_0000;
    pub const LOCK_NOEXEC: u32 = 0x8_0000;
    pub const LOCK_NOSUID: u32 = 0x10_0000;
    pub const LOCK_NODEV: u32 = 0x20_0000;
    pub const LOCK_READONLY: u32 = 0x40_0000;
    /// It hides what is below it: it cannot be taken away by itself.
    pub const LOCKED: u32 = 0x80_0000;
}

/// Words of mount options, in the order that Linux shows them.
const WORDS: [(u32, &str); 7] = [
    (mnt::NOSUID, "nosuid"),
    (mnt::NODEV, "nodev"),
    (mnt::NOEXEC, "noexec"),
    (mnt::NOATIME, "noatime"),
    (mnt::NODIRATIME, "nodiratime"),
    (mnt::RELATIME, "relatime"),
    (mnt::NOSYMFOLLOW, "nosymfollow"),
];

/// A file system that is mounted somewhere, once or more often.
pub struct Super {
    /// File-system type, as in /proc/mounts.
    pub fstype: &'static str,
    /// Device number.
    pub dev: u64,
    /// Its root.
    pub root: Arc<Dentry>,
    /// No changes by whatever mount.
    pub read_only: AtomicBool,
    /// It can never be written: somebody else decided that.
    pub fixed: bool,
    /// What /proc/mounts shows of it behind the flags.
    pub options: Lock<String>,
    /// Who mounted it.
    pub owner: Arc<UserNs>,
    /// Descriptions that are open for writing.
    writers: AtomicU64,
}

impl Super {
    /// A file system with this root.
    pub fn new(fstype: &'static str, root: Arc<Dentry>, options: String, owner: Arc<UserNs>) -> Super {
        let dev = root.inode.attr().map_or(0, |attr| attr.dev);
        Super {
            fstype,
            dev,
            root,
            read_only: AtomicBool::new(false),
            fixed: false,
            options: Lock::new(Level::Field, options),
            owner,
            writers: AtomicU64::new(0),
        }
    }

    /// Whether no change is allowed.
    pub fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Relaxed)
    }

    /// Whether some description of it is open for writing.
    pub fn is_written(&self) -> bool {
        self.writers.load(Ordering::SeqCst) != 0
    }
}

/// A mounted file system, or a part of one.
pub struct Mount {
    /// As in mountinfo; never used again.
    pub id: u64,
    /// The number of the mount that it is a copy of a copy of; its own otherwise.
    pub origin: u64,
    /// The part's root.
    pub root: Arc<Dentry>,
    /// The file system.
    pub sb: Arc<Super>,
    /// Device or other source.
    pub source: String,
    flags: AtomicU32,
    state: Lock<State>,
    writers: AtomicU64,
    /// MNT_EXPIRE was asked for; counts how often it was crossed since. 0: not asked for.
    expiry: AtomicU32,
}

/// What changes of a mount, under the lock of the mount tree.
#[derive(Clone, Default)]
pub(super) struct State {
    /// Where it is mounted.
    pub parent: Option<Path>,
    /// The mount namespace it is in; 0: none.
    pub space: u64,
    /// Its peer group (shared); 0: none.
    pub group: u64,
    /// The peer group it gets mounts from (slave); 0: none.
    pub master: u64,
    /// It cannot be bound.
    pub unbindable: bool,
    /// What stays mounted on it though it is in no tree any more: what is below must stay hidden.
    pub covered: Vec<(Arc<Dentry>, Arc<Mount>)>,
}

/// Where numbers of statmount(2) begin.
pub(crate) const UNIQUE: u64 = 1 << 31;

static NEXT_ID: AtomicU64 = AtomicU64::new(21);

impl Mount {
    /// A mount that is nowhere yet, of the part of `sb` below `root`.
    pub(crate) fn new(sb: &Arc<Super>, root: Arc<Dentry>, source: String, flags: u32) -> Arc<Mount> {
        Self::make(sb, root, source, flags, None)
    }

    /// A copy that is nowhere yet, of the part below `root`.
    pub(super) fn copy(&self, root: Arc<Dentry>, flags: u32) -> Arc<Mount> {
        Self::make(&self.sb, root, self.source.clone(), flags, Some(self.origin))
    }

    fn make(
        sb: &Arc<Super>,
        root: Arc<Dentry>,
        source: String,
        flags: u32,
        origin: Option<u64>,
    ) -> Arc<Mount> {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Arc::new(Mount {
            id,
            origin: origin.unwrap_or(id),
            root,
            sb: sb.clone(),
            source,
            flags: AtomicU32::new(flags),
            state: Lock::new(Level::Field, State::default()),
            writers: AtomicU64::new(0),
            expiry: AtomicU32::new(0),
        })
    }

    /// The number of statmount(2), which no mountinfo has.
    pub fn unique(&self) -> u64 {
        UNIQUE | self.id
    }

    /// Where it is mounted; None at the top.
    pub fn parent(&self) -> Option<Path> {
        self.state.lock().parent.clone()
    }

    pub(super) fn state(&self) -> State {
        self.state.lock().clone()
    }

    /// Changes the state; what `edit` gives back is dropped without the lock.
    pub(super) fn change<T>(&self, edit: impl FnOnce(&mut State) -> T) -> T {
        edit(&mut self.state.lock())
    }

    /// The namespace it is in; 0: none.
    pub(crate) fn space(&self) -> u64 {
        self.state.lock().space
    }

    /// Peer group and master, for mountinfo; and whether it cannot be bound.
    pub(crate) fn propagation(&self) -> (u64, u64, bool) {
        let state = self.state.lock();
        (state.group, state.master, state.unbindable)
    }

    /// What lies over `dentry` of a mount that is in no tree any more.
    pub(super) fn cover(&self, dentry: &Arc<Dentry>) -> Option<Arc<Mount>> {
        let state = self.state.lock();
        state.covered.iter().find(|(at, _)| Arc::ptr_eq(at, dentry)).map(|(_, mount)| mount.clone())
    }

    /// Flags ([`mnt`]).
    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    pub(crate) fn set_flags(&self, flags: u32) {
        self.flags.store(flags, Ordering::Relaxed);
    }

    pub(super) fn add_flags(&self, flags: u32) {
        self.flags.fetch_or(flags, Ordering::Relaxed);
    }

    pub(super) fn remove_flags(&self, flags: u32) {
        self.flags.fetch_and(!flags, Ordering::Relaxed);
    }

    /// Whether all of these flags are set.
    pub fn has(&self, flags: u32) -> bool {
        self.flags() & flags == flags
    }

    /// No changes through this mount.
    pub fn read_only(&self) -> bool {
        self.has(mnt::READONLY) || self.sb.is_read_only()
    }

    /// Set-user-ID bits and file capabilities of its programs do not count for a task of `ns`.
    pub fn ignores_set_id(&self, ns: &UserNs) -> bool {
        self.has(mnt::NOSUID) || !ns.is_within(&self.sb.owner)
    }

    /// Device files cannot be opened.
    pub fn refuses_devices(&self) -> bool {
        self.has(mnt::NODEV) || !self.sb.owner.is_first() && self.sb.fstype != "devpts"
    }

    /// Whether a description that came through it is open for writing.
    pub(crate) fn is_written(&self) -> bool {
        self.writers.load(Ordering::SeqCst) != 0
    }

    /// Per-mount options as in mountinfo.
    pub fn words(&self) -> String {
        let flags = self.flags();
        let mut words = String::from(if flags & mnt::READONLY != 0 { "ro" } else { "rw" });
        for (_, word) in WORDS.iter().filter(|(flag, _)| flags & flag != 0) {
            words.push(',');
            words.push_str(word);
        }
        words
    }

    /// It was crossed by a path.
    pub(super) fn crossed(&self) {
        if self.expiry.load(Ordering::Relaxed) != 0 {
            self.expiry.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// MNT_EXPIRE: true when nobody but this second asker has crossed it since the first.
    pub(crate) fn expire(&self) -> bool {
        self.expiry.swap(1, Ordering::Relaxed) == 2
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Covers of covers: one after the other, not one inside the other.
        let mut left = std::mem::take(&mut self.state.get_mut().covered);
        while let Some((_, mount)) = left.pop() {
            if let Some(mut mount) = Arc::into_inner(mount) {
                left.append(&mut mount.state.get_mut().covered);
            }
        }
    }
}

/// Counts a description that is open for writing.
pub(crate) struct Written(Arc<Mount>);

impl Written {
    pub(crate) fn new(mount: &Arc<Mount>) -> Written {
        mount.writers.fetch_add(1, Ordering::SeqCst);
        mount.sb.writers.fetch_add(1, Ordering::SeqCst);
        Written(mount.clone())
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        self.0.writers.fetch_sub(1, Ordering::SeqCst);
        self.0.sb.writers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the set-up of the sandbox mounts.
pub struct NewMount {
    /// Its root.
    pub root: Arc<Dentry>,
    /// Type.
    pub fstype: &'static str,
    /// Source.
    pub source: String,
    /// No changes.
    pub read_only: bool,
    /// Options beside `rw`/`ro`: flags of the mount, and what the file system shows of itself.
    pub options: &'static str,
}

impl NewMount {
    pub(super) fn make(self) -> Arc<Mount> {
        let mut flags = if self.read_only { mnt::READONLY } else { 0 };
        let mut options = Vec::new();
        for word in self.options.split(',').filter(|word| !word.is_empty()) {
            match WORDS.iter().find(|(_, known)| *known == word) {
                Some((flag, _)) => flags |= flag,
                None => options.push(word),
            }
        }
        let mut sb = Super::new(self.fstype, self.root.clone(), options.join(","), UserNs::first());
        sb.fixed = self.read_only;
        sb.read_only = AtomicBool::new(self.read_only);
        Mount::new(&Arc::new(sb), self.root, self.source, flags)
    }
}
