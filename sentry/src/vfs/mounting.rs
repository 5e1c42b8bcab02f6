//! What mount(2), umount2(2), pivot_root(2) and their kin do, and who may.

use super::Vfs;
use super::dentry::Dentry;
use super::mount::{Mount, mnt};
use super::mountns::MountNs;
use super::mounttree::{Copying, Kin, Trunk, below};
use super::path::Path;
use super::propagate::Type;
use super::watch;
use crate::fail::SysResult;
use crate::fs::nsfs::{self, Namespace};
use crate::task::Task;
use crate::task::creds::cap;
use crate::task::namespaces::new_ino;
use crate::task::userns::UserNs;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::errno::Errno;

fn invalid<T>() -> SysResult<T> {
    Err(Errno::EINVAL.into())
}

/// Whether a place is the root of what is mounted there.
fn is_root(place: &Path) -> bool {
    Arc::ptr_eq(&place.dentry, &place.mount.root)
}

/// A directory goes on a directory, anything else on anything else.
fn same_kind(one: &Arc<Dentry>, other: &Arc<Dentry>) -> bool {
    one.inode.is_dir() == other.inode.is_dir()
}

impl Vfs {
    /// EPERM unless the task may change the mounts of its namespace.
    ///
    /// # Errors
    /// EPERM.
    pub(crate) fn may_mount(&self, task: &Task) -> SysResult<()> {
        let owner = task.namespaces().mnt.owner.clone();
        if task.creds().capable_in(&owner, cap::SYS_ADMIN) { Ok(()) } else { Err(Errno::EPERM.into()) }
    }

    /// Whether something is mounted at a place in the task's namespace, through whatever mount.
    pub(crate) fn is_point(&self, task: &Task, place: &Path) -> bool {
        if place.dentry.mounted.load(Ordering::Acquire) == 0 {
            return false;
        }
        let space = task.namespaces().mnt.id;
        self.tree.lock().is_point(space, &place.dentry)
    }

    /// EINVAL unless the mount is one of the task's namespace.
    fn own(&self, task: &Task, mount: &Mount) -> SysResult<u64> {
        let space = task.namespaces().mnt.id;
        if mount.space() == space { Ok(space) } else { invalid() }
    }

    /// Mounts a file system that is mounted nowhere yet, at `at` or what lies over it.
    ///
    /// # Errors
    /// EINVAL in another namespace, ENOTDIR, EBUSY for the same once more, ENOENT, ENOSPC.
    pub(crate) fn mount_new(&self, task: &Task, mount: Arc<Mount>, at: Path) -> SysResult<()> {
        self.own(task, &at.mount)?;
        if is_root(&at) && Arc::ptr_eq(&at.mount.sb, &mount.sb) && Arc::ptr_eq(&at.mount.root, &mount.root) {
            return Err(Errno::EBUSY.into());
        }
        if mount.root.inode.is_link() {
            return invalid();
        }
        self.graft(vec![mount], at)
    }

    fn graft(&self, trunk: Trunk, at: Path) -> SysResult<()> {
        let Some(root) = trunk.first() else { return Ok(()) };
        if !same_kind(&root.root, &at.dentry) {
            return Err(Errno::ENOTDIR.into());
        }
        if at.dentry.is_deleted() {
            return Err(Errno::ENOENT.into());
        }
        let mut tree = self.tree.lock();
        // Somebody else may have been faster.
        let mut at = at;
        while let Some(over) = tree.child_at(&at.mount, &at.dentry) {
            at = Path { dentry: over.root.clone(), mount: over };
        }
        tree.check_unbindable(&trunk, &at)?;
        tree.graft(trunk, at)
    }

    /// MS_BIND: what is at `from` is at `at`, too.
    ///
    /// # Errors
    /// EINVAL in another namespace, for unbindable mounts, and where a part would uncover what locked mounts hide; ENOTDIR,
    /// ENOSPC.
    pub(crate) fn bind(&self, task: &Task, from: &Path, at: Path, recursive: bool) -> SysResult<()> {
        self.own(task, &at.mount)?;
        let trunk = self.copy(task, from, recursive)?;
        let result = self.graft(trunk.clone(), at);
        drop(trunk);
        result
    }

    /// A copy of the tree at `from`.
    fn copy(&self, task: &Task, from: &Path, recursive: bool) -> SysResult<Trunk> {
        match nsfs::namespace(from.inode()).filter(|_| from.mount.space() == 0) {
            // One that is not older could come to hold itself.
            Some(Namespace::Mnt(ns)) if ns.id >= task.namespaces().mnt.id => return invalid(),
            Some(_) => {}
            None => drop(self.own(task, &from.mount)?),
        }
        let mut tree = self.tree.lock();
        if !recursive && tree.hides(&from.mount, &from.dentry) {
            return invalid();
        }
        tree.copy_tree(&from.mount, &from.dentry, Copying { recursive, ..Copying::default() })
    }

    /// MS_MOVE: `from`, the root of a mount, moves to `at`.
    ///
    /// # Errors
    /// EINVAL for what is no mount's root, is locked, or leaves a shared mount; ELOOP below itself; ENOSPC.
    pub(crate) fn move_mount(&self, task: &Task, from: &Path, at: Path) -> SysResult<()> {
        self.own(task, &at.mount)?;
        let mount = &from.mount;
        let mut tree = self.tree.lock();
        let loose = tree.is_anonymous(mount.space());
        if !loose && mount.space() != at.mount.space() || !is_root(from) {
            return invalid();
        }
        if loose && mount.parent().is_some() {
            return invalid();
        }
        if !loose {
            let Some(parent) = mount.parent() else { return invalid() };
            if mount.has(mnt::LOCKED) {
                return Err(self.policy.locked(mount, Errno::EINVAL, "move the mount"));
            }
            if parent.mount.propagation().0 != 0 {
                return invalid();
            }
        }
        if !same_kind(&mount.root, &at.dentry) {
            return invalid();
        }
        if at.dentry.is_deleted() {
            return Err(Errno::ENOENT.into());
        }
        let mut at = at;
        while let Some(over) = tree.child_at(&at.mount, &at.dentry) {
            at = Path { dentry: over.root.clone(), mount: over };
        }
        let trunk = tree.below(mount);
        if trunk.iter().any(|inside| inside.id == at.mount.id) {
            return Err(Errno::ELOOP.into());
        }
        tree.check_unbindable(&trunk, &at)?;
        let old = if loose {
            tree.lift(&trunk);
            tree.graft(trunk, at)?;
            None
        } else {
            tree.regraft(mount, at)?
        };
        drop(tree);
        drop(old);
        Ok(())
    }

    /// Changes the propagation of a mount, and of all below with `recursive`.
    ///
    /// # Errors
    /// EINVAL for what is no mount's root.
    pub(crate) fn set_propagation(
        &self,
        task: &Task,
        at: &Path,
        kind: Type,
        recursive: bool,
    ) -> SysResult<()> {
        if !is_root(at) {
            return invalid();
        }
        let space = task.namespaces().mnt.id;
        let mut tree = self.tree.lock();
        if !tree.is_anonymous(at.mount.space()) && at.mount.space() != space {
            return invalid();
        }
        let all = if recursive { tree.below(&at.mount) } else { vec![at.mount.clone()] };
        all.iter().for_each(|mount| tree.set_propagation(mount, kind));
        Ok(())
    }

    /// Replaces the flags of a mount.
    ///
    /// # Errors
    /// As [`check_mount_flags`](Self::check_mount_flags).
    pub(crate) fn set_mount_flags(&self, mount: &Mount, flags: u32) -> SysResult<()> {
        self.check_mount_flags(mount, flags)?;
        mount.set_flags(mount.flags() & !mnt::USER | flags);
        self.tree.lock().tell(mount.space());
        Ok(())
    }

    /// Whether the flags of a mount can become these.
    ///
    /// # Errors
    /// EPERM where a flag is locked, EBUSY when it is to be read-only while it is written.
    pub(crate) fn check_mount_flags(&self, mount: &Mount, flags: u32) -> SysResult<()> {
        let old = mount.flags();
        let new = old & !mnt::USER | flags;
        if old & lock_flags_changed(old, new) != 0 {
            return Err(self.policy.locked(mount, Errno::EPERM, "change the mount"));
        }
        if new & mnt::READONLY != 0 && old & mnt::READONLY == 0 && mount.is_written() {
            return Err(Errno::EBUSY.into());
        }
        Ok(())
    }

    /// As `check_mnt` of remounts: the place is the root of a mount of the task's namespace.
    ///
    /// # Errors
    /// EINVAL.
    pub(crate) fn own_mount(&self, task: &Task, at: &Path) -> SysResult<()> {
        if !is_root(at) {
            return invalid();
        }
        self.own(task, &at.mount).map(drop)
    }

    /// Its mounts and all below, parents first.
    pub(crate) fn below(&self, mount: &Arc<Mount>) -> Vec<Arc<Mount>> {
        self.tree.lock().below(mount)
    }

    /// umount2(2) of the mount whose root `at` is. `refs`: how often the caller holds the mount.
    ///
    /// # Errors
    /// EINVAL, EBUSY, EAGAIN with `expire`.
    pub(crate) fn umount(&self, task: &Task, at: Path, detach: bool, expire: bool) -> SysResult<()> {
        self.own_mount(task, &at)?;
        let mount = at.mount.clone();
        drop(at);
        if mount.has(mnt::LOCKED) {
            return Err(self.policy.locked(&mount, Errno::EINVAL, "unmount"));
        }
        let root = self.root_of(task)?;
        if root.mount.id == mount.id && is_root(&root) {
            // The asker's root stays: plain umount makes it read-only, which nobody needs here.
            if expire || detach && mount.parent().is_none() {
                return invalid();
            }
            if !detach {
                return Err(Errno::EBUSY.into());
            }
        }
        if mount.parent().is_none() {
            return invalid();
        }
        drop(root);
        let mut tree = self.tree.lock();
        let mounts = if detach {
            tree.below(&mount)
        } else {
            if !tree.children(&mount).is_empty() || self.is_used(&mount) {
                return Err(Errno::EBUSY.into());
            }
            vec![mount.clone()]
        };
        if expire && !mount.expire() {
            return Err(Errno::EAGAIN.into());
        }
        if !detach && let Some(place) = mount.parent() {
            let but = HashSet::from([mount.id]);
            if tree
                .likes(&place, &but)
                .iter()
                .any(|like| tree.children(like).is_empty() && self.used(like, 1))
            {
                return Err(Errno::EBUSY.into());
            }
        }
        let going = tree.going(mounts);
        let gone = tree.take_out(&going);
        drop(tree);
        drop(gone);
        drop(mount);
        let mut roots: Vec<Arc<Dentry>> = Vec::new();
        for one in &going {
            // Held by nobody but this list: the file system ends.
            let own = going.iter().filter(|other| Arc::ptr_eq(&other.sb, &one.sb)).count();
            let held = going.iter().filter(|other| Arc::ptr_eq(&other.sb, &one.sb)).map(Arc::strong_count);
            let ends = Arc::strong_count(&one.sb) == own && held.sum::<usize>() == own;
            if ends && !roots.iter().any(|root| Arc::ptr_eq(root, &one.sb.root)) {
                roots.push(one.sb.root.clone());
            }
        }
        drop(going);
        roots.iter().for_each(watch::unmounted);
        Ok(())
    }

    fn is_used(&self, mount: &Arc<Mount>) -> bool {
        self.used(mount, 1)
    }

    /// Whether somebody beside the mount tree and `own` holders has the mount: open files, directories, programs.
    fn used(&self, mount: &Arc<Mount>, own: usize) -> bool {
        let (group, master, _) = mount.propagation();
        // By number, by place, by point; and in its groups.
        let tree = 3usize.saturating_add(usize::from(group != 0)).saturating_add(usize::from(master != 0));
        Arc::strong_count(mount) > tree.saturating_add(own)
    }

    /// A copy of the mount tree for a new namespace, and where root and working directory of the task are in it.
    ///
    /// # Errors
    /// ENOSPC.
    pub(crate) fn copy_namespace(
        &self,
        from: &MountNs,
        owner: &Arc<UserNs>,
        places: (Path, Path),
    ) -> SysResult<(Arc<MountNs>, (Path, Path))> {
        let new = MountNs::new(&self.tree, owner.clone(), new_ino(), false);
        let mut tree = self.tree.lock();
        let lock = **owner != *from.owner;
        let kin = if lock { Kin::SharedToSlave } else { Kin::Peer };
        let how = Copying { recursive: true, unbindable: true, kin, lock };
        let mut moved: HashMap<u64, Arc<Mount>> = HashMap::new();
        if let Some(root) = tree.root_of(from.id) {
            let (trunk, pairs) = tree.copy_pairs(&root, how)?;
            tree.put(&trunk, None, new.id)?;
            moved = pairs;
        }
        drop(tree);
        let there = |place: Path| match moved.get(&place.mount.id) {
            Some(mount) => Path { mount: mount.clone(), dentry: place.dentry },
            None => place,
        };
        let places = (there(places.0), there(places.1));
        Ok((new, places))
    }

    /// A namespace that holds a tree which is mounted nowhere: of `mount` alone.
    ///
    /// # Errors
    /// ENOSPC.
    pub(crate) fn loose(&self, task: &Task, trunk: &[Arc<Mount>]) -> SysResult<Arc<MountNs>> {
        let owner = task.namespaces().mnt.owner.clone();
        let space = MountNs::new(&self.tree, owner, 0, true);
        self.tree.lock().put(trunk, None, space.id)?;
        Ok(space)
    }

    /// open_tree(2) with OPEN_TREE_CLONE: a copy that is mounted nowhere yet.
    ///
    /// # Errors
    /// EINVAL as for a bind mount, ENOSPC.
    pub(crate) fn clone_tree(
        &self,
        task: &Task,
        from: &Path,
        recursive: bool,
    ) -> SysResult<(Arc<MountNs>, Path)> {
        let loose = self.tree.lock().is_anonymous(from.mount.space());
        let trunk = if loose {
            self.tree.lock().copy_tree(
                &from.mount,
                &from.dentry,
                Copying { recursive, ..Copying::default() },
            )?
        } else {
            self.copy(task, from, recursive)?
        };
        let space = self.loose(task, &trunk)?;
        let root = trunk.first().cloned().ok_or(Errno::EINVAL)?;
        Ok((space, Path { dentry: root.root.clone(), mount: root }))
    }

    /// Whether a mount is of a tree that is mounted nowhere yet.
    pub(crate) fn is_loose(&self, mount: &Mount) -> bool {
        self.tree.lock().is_anonymous(mount.space())
    }

    /// pivot_root(2).
    ///
    /// # Errors
    /// As pivot_root(2).
    pub(crate) fn pivot_root(&self, task: &Task, new: &Path, put_old: &Path) -> SysResult<()> {
        let root = self.root_of(task)?;
        let space = task.namespaces().mnt.id;
        let mut tree = self.tree.lock();
        let shared = |mount: &Arc<Mount>| mount.propagation().0 != 0;
        let parent_shared = |mount: &Arc<Mount>| mount.parent().is_some_and(|place| shared(&place.mount));
        if shared(&put_old.mount) || parent_shared(&new.mount) || parent_shared(&root.mount) {
            return invalid();
        }
        if root.mount.space() != space || new.mount.space() != space || new.mount.has(mnt::LOCKED) {
            return invalid();
        }
        if new.dentry.is_deleted() {
            return Err(Errno::ENOENT.into());
        }
        if new.mount.id == root.mount.id || put_old.mount.id == root.mount.id {
            return Err(Errno::EBUSY.into());
        }
        if !is_root(&root) || !is_root(new) || new.mount.parent().is_none() {
            return invalid();
        }
        if !reaches(put_old, new) || !reaches(new, &root) {
            return invalid();
        }
        let top = root.mount.parent();
        if root.mount.has(mnt::LOCKED) {
            new.mount.add_flags(mnt::LOCKED);
            root.mount.remove_flags(mnt::LOCKED);
        }
        let gone = [tree.shift(&new.mount, top), tree.shift(&root.mount, Some(put_old.clone()))];
        drop(tree);
        drop(gone);
        // Whoever was at the old root is at the new one.
        for other in task.kernel.tree.lock().tasks.values() {
            other.fs().pivot(&root, new);
        }
        Ok(())
    }

    /// A mount of the task's namespace by its number.
    pub(crate) fn find_mount(&self, space: u64, id: u64) -> Option<Arc<Mount>> {
        self.tree.lock().find(space, id)
    }
}

/// Whether `place` is `top` or below it, through mounts.
pub(crate) fn reaches(place: &Path, top: &Path) -> bool {
    let mut at = place.clone();
    while at.mount.id != top.mount.id {
        let Some(up) = at.mount.parent() else { return false };
        at = up;
    }
    below(&at.dentry, &top.dentry)
}

/// The locks whose flags differ between `old` and `new` in the direction that they forbid.
fn lock_flags_changed(old: u32, new: u32) -> u32 {
    let mut locks = 0;
    for (flag, lock) in [
        (mnt::READONLY, mnt::LOCK_READONLY),
        (mnt::NODEV, mnt::LOCK_NODEV),
        (mnt::NOSUID, mnt::LOCK_NOSUID),
        (mnt::NOEXEC, mnt::LOCK_NOEXEC),
    ] {
        if old & flag != 0 && new & flag == 0 {
            locks |= lock;
        }
    }
    if old & mnt::ATIME != new & mnt::ATIME {
        locks |= mnt::LOCK_ATIME;
    }
    locks
}
