//! The mounts of all namespaces: what is mounted where, and copies of trees.
//!
//! Everything here happens under the lock of the tree ([`crate::sync::Level::Mounts`]); what is taken out is handed back
//! to be dropped without it. Propagation is in [`super::propagate`].

use super::dentry::Dentry;
use super::mount::{Mount, State, mnt};
use super::mountns::Changes;
use super::path::Path;
use crate::fail::SysResult;
use crate::task::userns::UserNs;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::errno::Errno;

/// The most mounts of a sandbox (/proc/sys/fs/mount-max, which Linux counts by namespace).
pub(crate) const MOST: usize = 32_768;

type ById = BTreeMap<u64, Arc<Mount>>;

struct Space {
    mounts: ById,
    root: Option<Arc<Mount>>,
    changes: Arc<Changes>,
    owner: Arc<UserNs>,
    anonymous: bool,
}

/// A peer group.
#[derive(Default)]
pub(super) struct Group {
    /// Its members.
    pub peers: ById,
    /// Who gets what is mounted in it.
    pub slaves: ById,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Tree {
    /// Parent mount and address of the dentry: what is mounted there.
    at: HashMap<u64, HashMap<usize, Arc<Mount>>>,
    /// Address of a dentry: what is mounted on it, through whatever mount.
    points: HashMap<usize, ById>,
    spaces: HashMap<u64, Space>,
    pub(super) groups: HashMap<u64, Group>,
    next_group: u64,
    count: usize,
}

/// How a tree is copied.
#[derive(Clone, Copy, Default)]
pub(super) struct Copying {
    /// With what is mounted below.
    pub recursive: bool,
    /// Unbindable mounts, too.
    pub unbindable: bool,
    /// Copies are members of no group, slaves, or peers of their originals.
    pub kin: Kin,
    /// For somebody with less rights: nothing can be uncovered or unlocked.
    pub lock: bool,
}

/// What a copy is to its original.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kin {
    /// In the same groups.
    #[default]
    Peer,
    /// A peer's slave (a shared one's copy in a namespace of less rights).
    SharedToSlave,
    /// A slave of the original, which is shared; with a group of its own where `shared`.
    Slave {
        /// See above.
        shared: bool,
    },
}

/// A tree that is not mounted: its root first, each other one's parent is in it and comes before.
pub(super) type Trunk = Vec<Arc<Mount>>;

/// Copies by the number of the original.
pub(super) type Pairs = HashMap<u64, Arc<Mount>>;

fn address(dentry: &Arc<Dentry>) -> usize {
    Arc::as_ptr(dentry).addr()
}

/// Whether `dentry` is `top` or below it.
pub(super) fn below(dentry: &Arc<Dentry>, top: &Arc<Dentry>) -> bool {
    let mut at = Some(dentry.clone());
    while let Some(dentry) = at {
        if Arc::ptr_eq(&dentry, top) {
            return true;
        }
        at = dentry.parent();
    }
    false
}

impl Tree {
    pub(super) fn open_space(
        &mut self,
        id: u64,
        changes: &Arc<Changes>,
        owner: &Arc<UserNs>,
        anonymous: bool,
    ) {
        let (changes, owner) = (changes.clone(), owner.clone());
        self.spaces.insert(id, Space { mounts: ById::new(), root: None, changes, owner, anonymous });
    }

    /// Takes all mounts of a namespace out.
    pub(super) fn close_space(&mut self, id: u64) -> Vec<State> {
        let all: Vec<_> = self.mounts_of(id);
        let gone = self.take_out(&all);
        self.spaces.remove(&id);
        gone
    }

    pub(super) fn mounts_of(&self, space: u64) -> Vec<Arc<Mount>> {
        self.spaces.get(&space).map(|space| space.mounts.values().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn all(&self) -> Vec<Arc<Mount>> {
        self.spaces.values().flat_map(|space| space.mounts.values().cloned()).collect()
    }

    pub(super) fn root_of(&self, space: u64) -> Option<Arc<Mount>> {
        self.spaces.get(&space)?.root.clone()
    }

    /// A mount of a namespace by its number.
    pub(super) fn find(&self, space: u64, id: u64) -> Option<Arc<Mount>> {
        self.spaces.get(&space)?.mounts.get(&id).cloned()
    }

    pub(super) fn is_anonymous(&self, space: u64) -> bool {
        self.spaces.get(&space).is_some_and(|space| space.anonymous)
    }

    pub(super) fn owner_of(&self, space: u64) -> Option<Arc<UserNs>> {
        Some(self.spaces.get(&space)?.owner.clone())
    }

    /// What is mounted right there.
    pub(super) fn child_at(&self, mount: &Mount, dentry: &Arc<Dentry>) -> Option<Arc<Mount>> {
        match self.at.get(&mount.id).and_then(|children| children.get(&address(dentry))) {
            Some(child) => Some(child.clone()),
            None => mount.cover(dentry),
        }
    }

    /// Whether something is mounted on `dentry` in a namespace, through whatever mount.
    pub(super) fn is_point(&self, space: u64, dentry: &Arc<Dentry>) -> bool {
        self.points.get(&address(dentry)).is_some_and(|mounts| mounts.values().any(|m| m.space() == space))
    }

    pub(super) fn children(&self, mount: &Mount) -> Vec<Arc<Mount>> {
        let mut all: Vec<_> =
            self.at.get(&mount.id).map(|children| children.values().cloned().collect()).unwrap_or_default();
        all.sort_unstable_by_key(|mount| mount.id);
        all
    }

    /// `mount` and all below, parents first.
    pub(super) fn below(&self, mount: &Arc<Mount>) -> Vec<Arc<Mount>> {
        let mut all = vec![mount.clone()];
        let mut next = 0usize;
        while let Some(mount) = all.get(next).cloned() {
            all.extend(self.children(&mount));
            next = next.saturating_add(1);
        }
        all
    }

    /// ENOSPC unless there is room for `more`.
    pub(super) fn room(&self, more: usize) -> SysResult<()> {
        match self.count.checked_add(more) {
            Some(sum) if sum <= MOST => Ok(()),
            _ => Err(Errno::ENOSPC.into()),
        }
    }

    /// Notes where `mount` is, which its state says already.
    fn note(&mut self, mount: &Arc<Mount>) {
        let Some(parent) = mount.parent() else { return };
        let point = address(&parent.dentry);
        self.at.entry(parent.mount.id).or_default().insert(point, mount.clone());
        self.points.entry(point).or_default().insert(mount.id, mount.clone());
        parent.dentry.mounted.fetch_add(1, Ordering::SeqCst);
        parent.dentry.hold();
    }

    fn forget(&mut self, mount: &Arc<Mount>) {
        let Some(parent) = mount.parent() else { return };
        let point = address(&parent.dentry);
        if let Some(children) = self.at.get_mut(&parent.mount.id) {
            children.remove(&point);
            if children.is_empty() {
                self.at.remove(&parent.mount.id);
            }
        }
        if let Some(mounts) = self.points.get_mut(&point) {
            mounts.remove(&mount.id);
            if mounts.is_empty() {
                self.points.remove(&point);
            }
        }
        if parent.dentry.mounted.fetch_sub(1, Ordering::SeqCst) == 1 {
            parent.dentry.let_go();
        }
    }

    /// Puts a tree into a namespace at `at`; None: it becomes the root.
    pub(super) fn put(&mut self, trunk: &[Arc<Mount>], at: Option<Path>, space: u64) -> SysResult<()> {
        self.room(trunk.len())?;
        let Some(root) = trunk.first() else { return Ok(()) };
        let old = root.change(|state| std::mem::replace(&mut state.parent, at));
        drop(old);
        for mount in trunk {
            mount.change(|state| state.space = space);
            self.note(mount);
            self.join(mount);
        }
        self.count = self.count.saturating_add(trunk.len());
        if let Some(space) = self.spaces.get_mut(&space) {
            if root.parent().is_none() {
                space.root = Some(root.clone());
            }
            space.mounts.extend(trunk.iter().map(|mount| (mount.id, mount.clone())));
            space.changes.tell();
        }
        Ok(())
    }

    /// Takes mounts out of their namespaces; what must go on to hide something stays where it is, unseen by others.
    pub(super) fn take_out(&mut self, mounts: &[Arc<Mount>]) -> Vec<State> {
        let mut gone = Vec::new();
        let mut told: Vec<Arc<Changes>> = Vec::new();
        for mount in mounts {
            let state = mount.state();
            if let Some(space) = self.spaces.get_mut(&state.space) {
                if space.mounts.remove(&mount.id).is_none() {
                    continue;
                }
                self.count = self.count.saturating_sub(1);
                if space.root.as_ref().is_some_and(|root| root.id == mount.id) {
                    space.root = None;
                }
                if !told.iter().any(|changes| Arc::ptr_eq(changes, &space.changes)) {
                    told.push(space.changes.clone());
                }
            }
            self.forget(mount);
            self.leave(mount);
            if let Some(parent) = &state.parent
                && mount.has(mnt::LOCKED)
                && mounts.iter().any(|other| other.id == parent.mount.id)
            {
                parent.dentry.mounted.fetch_add(1, Ordering::SeqCst);
                parent.mount.change(|state| state.covered.push((parent.dentry.clone(), mount.clone())));
            }
            mount.change(|state| {
                state.parent = None;
                state.space = 0;
                state.group = 0;
                state.master = 0;
            });
            gone.push(state);
        }
        told.iter().for_each(|changes| changes.tell());
        gone
    }

    /// Moves `mount` with all below to `at`; None: it becomes the root of its namespace.
    pub(super) fn shift(&mut self, mount: &Arc<Mount>, at: Option<Path>) -> Option<Path> {
        self.forget(mount);
        let top = at.is_none();
        let old = mount.change(|state| std::mem::replace(&mut state.parent, at));
        self.note(mount);
        if let Some(space) = self.spaces.get_mut(&mount.space()) {
            if top {
                space.root = Some(mount.clone());
            }
            space.changes.tell();
        }
        old
    }

    /// Takes a tree that is mounted nowhere out of the namespace that holds it, to be put elsewhere.
    pub(super) fn lift(&mut self, trunk: &[Arc<Mount>]) {
        for mount in trunk {
            self.forget(mount);
            self.leave(mount);
            if let Some(space) = self.spaces.get_mut(&mount.space())
                && space.mounts.remove(&mount.id).is_some()
            {
                self.count = self.count.saturating_sub(1);
                space.root = None;
            }
        }
    }

    /// Something of a namespace changed that its mounts' files show.
    pub(super) fn tell(&self, space: u64) {
        if let Some(space) = self.spaces.get(&space) {
            space.changes.tell();
        }
    }

    /// A number for a new peer group.
    pub(super) fn new_group(&mut self) -> u64 {
        self.next_group = self.next_group.saturating_add(1);
        self.next_group
    }

    /// Enters a mount into the groups that its state names.
    pub(super) fn join(&mut self, mount: &Arc<Mount>) {
        let (group, master, _) = mount.propagation();
        if group != 0 {
            self.groups.entry(group).or_default().peers.insert(mount.id, mount.clone());
        }
        if master != 0 {
            self.groups.entry(master).or_default().slaves.insert(mount.id, mount.clone());
        }
    }

    /// Takes a mount out of its groups. Slaves of a group without members become those of its last member's master.
    pub(super) fn leave(&mut self, mount: &Arc<Mount>) {
        let (group, master, _) = mount.propagation();
        if let Some(group) = self.groups.get_mut(&master) {
            group.slaves.remove(&mount.id);
        }
        let mut orphans = ById::new();
        if let Some(found) = self.groups.get_mut(&group) {
            found.peers.remove(&mount.id);
            if found.peers.is_empty() {
                orphans = std::mem::take(&mut found.slaves);
            }
        }
        for slave in orphans.values() {
            slave.change(|state| state.master = master);
        }
        if master != 0 && !orphans.is_empty() {
            self.groups.entry(master).or_default().slaves.append(&mut orphans);
        }
        for id in [group, master] {
            if self.groups.get(&id).is_some_and(|g| g.peers.is_empty() && g.slaves.is_empty()) {
                self.groups.remove(&id);
            }
        }
    }

    /// A copy of the part of `mount` below `root`.
    pub(super) fn copy_one(&mut self, mount: &Arc<Mount>, root: &Arc<Dentry>, how: Copying) -> Arc<Mount> {
        let mut flags = mount.flags();
        if how.lock {
            flags |= lock_flags(flags);
        }
        // A locked mount's copy hides nothing by itself.
        let copy = mount.copy(root.clone(), flags & !mnt::LOCKED);
        let (group, master, unbindable) = mount.propagation();
        let (group, master) = match how.kin {
            Kin::Peer => (group, master),
            Kin::SharedToSlave if group != 0 => (0, group),
            Kin::SharedToSlave => (0, master),
            Kin::Slave { shared } => (if shared { self.new_group() } else { 0 }, group),
        };
        copy.change(|state| {
            state.group = group;
            state.master = master;
            state.unbindable = unbindable && how.unbindable;
        });
        copy
    }

    /// A copy of the tree of `mount` as seen from `root`.
    ///
    /// # Errors
    /// EINVAL when the root is unbindable or hides something by locked mounts, ENOSPC.
    pub(super) fn copy_tree(
        &mut self,
        mount: &Arc<Mount>,
        root: &Arc<Dentry>,
        how: Copying,
    ) -> SysResult<Trunk> {
        if mount.propagation().2 && !how.unbindable {
            return Err(Errno::EINVAL.into());
        }
        self.copy_pairs_from(mount, root, how).map(|(trunk, _)| trunk)
    }

    /// A copy of a whole tree; and which copy is whose.
    ///
    /// # Errors
    /// ENOSPC.
    pub(super) fn copy_pairs(&mut self, mount: &Arc<Mount>, how: Copying) -> SysResult<(Trunk, Pairs)> {
        self.copy_pairs_from(mount, &mount.root.clone(), how)
    }

    fn copy_pairs_from(
        &mut self,
        mount: &Arc<Mount>,
        root: &Arc<Dentry>,
        how: Copying,
    ) -> SysResult<(Trunk, Pairs)> {
        let mut trunk = vec![self.copy_one(mount, root, how)];
        let mut copies = Pairs::new();
        if !how.recursive {
            return Ok((trunk, copies));
        }
        if let Some(first) = trunk.first() {
            copies.insert(mount.id, first.clone());
        }
        let mut left = vec![mount.clone()];
        while let Some(original) = left.pop() {
            let Some(copy) = copies.get(&original.id).cloned() else { continue };
            for child in self.children(&original) {
                let Some(place) = child.parent() else { continue };
                if Arc::ptr_eq(&original, mount) && !below(&place.dentry, root) {
                    continue;
                }
                if child.propagation().2 && !how.unbindable {
                    if child.has(mnt::LOCKED) {
                        return Err(Errno::EPERM.into());
                    }
                    continue;
                }
                self.room(trunk.len())?;
                let new = self.copy_one(&child, &child.root, how);
                if how.lock || child.has(mnt::LOCKED) {
                    new.add_flags(mnt::LOCKED);
                }
                let at = Path { mount: copy.clone(), dentry: place.dentry };
                new.change(|state| state.parent = Some(at));
                copies.insert(child.id, new.clone());
                trunk.push(new);
                left.push(child);
            }
        }
        Ok((trunk, copies))
    }

    /// Whether a mount that must not be uncovered lies below `root` of `mount`.
    pub(super) fn hides(&self, mount: &Arc<Mount>, root: &Arc<Dentry>) -> bool {
        self.children(mount).iter().any(|child| {
            child.has(mnt::LOCKED) && child.parent().is_some_and(|place| below(&place.dentry, root))
        })
    }
}

/// The locks that keep flags as they are.
pub(super) fn lock_flags(flags: u32) -> u32 {
    let mut locks = mnt::LOCK_ATIME;
    for (flag, lock) in [
        (mnt::READONLY, mnt::LOCK_READONLY),
        (mnt::NODEV, mnt::LOCK_NODEV),
        (mnt::NOSUID, mnt::LOCK_NOSUID),
        (mnt::NOEXEC, mnt::LOCK_NOEXEC),
    ] {
        if flags & flag != 0 {
            locks |= lock;
        }
    }
    locks
}
