//! Propagation of mounts (`Documentation/filesystems/sharedsubtree.rst`): what is mounted in or taken from a member of a
//! peer group happens in all of it, and in its slaves.

use super::mount::{Mount, mnt};
use super::mounttree::{Copying, Kin, Tree, Trunk, below};
use super::path::Path;
use crate::fail::SysResult;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use syscall_table::errno::Errno;

/// The propagation types of mount(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// MS_SHARED
    Shared,
    /// MS_SLAVE
    Slave,
    /// MS_PRIVATE
    Private,
    /// MS_UNBINDABLE
    Unbindable,
}

/// The mounts that get what is mounted in a group, beside `but`: peers, and slaves by their own group (0: each alone).
struct Receivers {
    peers: Vec<Arc<Mount>>,
    slaves: BTreeMap<u64, Vec<Arc<Mount>>>,
}

impl Tree {
    fn receivers(&self, group: u64, but: &HashSet<u64>) -> Receivers {
        let mut receivers = Receivers { peers: Vec::new(), slaves: BTreeMap::new() };
        let Some(found) = self.groups.get(&group) else { return receivers };
        let wanted = |mount: &&Arc<Mount>| !but.contains(&mount.id) && !self.is_anonymous(mount.space());
        receivers.peers = found.peers.values().filter(wanted).cloned().collect();
        for slave in found.slaves.values().filter(wanted) {
            receivers.slaves.entry(slave.propagation().0).or_default().push(slave.clone());
        }
        receivers
    }

    /// Changes the propagation of one mount.
    pub(super) fn set_propagation(&mut self, mount: &Arc<Mount>, kind: Type) {
        let (group, master, _) = mount.propagation();
        let new = match kind {
            Type::Shared if group != 0 => (group, master),
            Type::Shared => (self.new_group(), master),
            Type::Slave if group == 0 => (0, master),
            Type::Slave => {
                let others = self.groups.get(&group).map_or(0, |group| group.peers.len()) > 1;
                (0, if others { group } else { master })
            }
            Type::Private | Type::Unbindable => (0, 0),
        };
        self.leave(mount);
        mount.change(|state| {
            (state.group, state.master) = new;
            state.unbindable = kind == Type::Unbindable;
        });
        self.join(mount);
        self.tell(mount.space());
    }

    /// Puts a tree that is not mounted yet at `at`, and its copies where the place propagates to.
    ///
    /// # Errors
    /// ENOSPC: then nothing has happened.
    pub(super) fn graft(&mut self, trunk: Trunk, at: Path) -> SysResult<()> {
        let copies = self.copies(&trunk, &at)?;
        let sum = copies.iter().map(|(copy, _)| copy.len()).sum::<usize>();
        self.room(sum.saturating_add(trunk.len()))?;
        let space = at.mount.space();
        self.put(&trunk, Some(at), space)?;
        self.put_copies(copies)
    }

    /// As [`graft`](Self::graft), of a tree that is mounted elsewhere.
    ///
    /// # Errors
    /// ENOSPC.
    pub(super) fn regraft(&mut self, mount: &Arc<Mount>, at: Path) -> SysResult<Option<Path>> {
        let trunk = self.below(mount);
        let copies = self.copies(&trunk, &at)?;
        self.room(copies.iter().map(|(copy, _)| copy.len()).sum())?;
        // Members of a group that the place gave them are entered as such.
        trunk.iter().for_each(|mount| self.join(mount));
        let old = self.shift(mount, Some(at));
        self.put_copies(copies)?;
        Ok(old)
    }

    fn put_copies(&mut self, copies: Vec<(Trunk, Path)>) -> SysResult<()> {
        for (copy, at) in copies {
            let there = self.child_at(&at.mount, &at.dentry);
            let space = at.mount.space();
            let top = copy.first().map(|root| Path { mount: root.clone(), dentry: root.root.clone() });
            if let (Some(there), Some(top)) = (&there, top) {
                // What was there goes on top.
                drop(self.shift(there, Some(top)));
            }
            self.put(&copy, Some(at), space)?;
        }
        Ok(())
    }

    /// The copies of a tree that is to be mounted at `at`, and where they go. The tree becomes shared when the place is.
    fn copies(&mut self, trunk: &[Arc<Mount>], at: &Path) -> SysResult<Vec<(Trunk, Path)>> {
        let (group, _, _) = at.mount.propagation();
        let mut copies = Vec::new();
        if group == 0 {
            return Ok(copies);
        }
        self.share(trunk);
        let mut seen = HashSet::from([at.mount.id]);
        // Groups to serve, each with the tree that its members get copies of.
        let mut left: Vec<(u64, Trunk)> = vec![(group, trunk.to_vec())];
        let (mut sum, from) = (0usize, self.owner_of(at.mount.space()));
        while let Some((group, source)) = left.pop() {
            let receivers = self.receivers(group, &seen);
            let mut serve = |tree: &mut Tree,
                             to: &Arc<Mount>,
                             source: &[Arc<Mount>],
                             kin: Kin|
             -> SysResult<Option<Trunk>> {
                if !seen.insert(to.id) || !below(&at.dentry, &to.root) {
                    return Ok(None);
                }
                let lock = tree.owner_of(to.space()) != from;
                let copy = tree.copy_trunk(source, Copying { recursive: true, unbindable: true, kin, lock });
                sum = sum.saturating_add(copy.len());
                tree.room(sum)?;
                copies.push((copy.clone(), Path { mount: to.clone(), dentry: at.dentry.clone() }));
                Ok(Some(copy))
            };
            for peer in &receivers.peers {
                serve(self, peer, &source, Kin::Peer)?;
            }
            for (own, slaves) in receivers.slaves {
                let mut first: Option<Trunk> = None;
                for slave in &slaves {
                    match &first {
                        Some(first) if own != 0 => drop(serve(self, slave, first, Kin::Peer)?),
                        _ => first = serve(self, slave, &source, Kin::Slave { shared: own != 0 })?.or(first),
                    }
                }
                if own != 0 {
                    left.push((own, first.unwrap_or_else(|| source.clone())));
                }
            }
        }
        Ok(copies)
    }

    /// Gives each mount of a tree a peer group.
    fn share(&mut self, trunk: &[Arc<Mount>]) {
        for mount in trunk {
            if mount.propagation().0 == 0 {
                let group = self.new_group();
                mount.change(|state| state.group = group);
            }
        }
    }

    /// A copy of a tree that is not mounted.
    fn copy_trunk(&mut self, trunk: &[Arc<Mount>], how: Copying) -> Trunk {
        let mut copy: Trunk = Vec::with_capacity(trunk.len());
        for mount in trunk {
            let new = self.copy_one(mount, &mount.root, how);
            if how.lock || mount.has(mnt::LOCKED) {
                new.add_flags(mnt::LOCKED);
            }
            let place = mount.parent().and_then(|place| {
                let at = trunk.iter().position(|other| other.id == place.mount.id)?;
                Some(Path { mount: copy.get(at)?.clone(), dentry: place.dentry })
            });
            new.change(|state| state.parent = place);
            copy.push(new);
        }
        copy
    }

    /// What goes when `mounts` (parents first) are unmounted: those, and their like where their places propagate to, if
    /// nothing else is mounted on them.
    pub(super) fn going(&self, mounts: Vec<Arc<Mount>>) -> Vec<Arc<Mount>> {
        let mut set: HashSet<u64> = mounts.iter().map(|mount| mount.id).collect();
        let mut all = mounts.clone();
        for mount in mounts.iter().rev() {
            let Some(place) = mount.parent() else { continue };
            for child in self.likes(&place, &set) {
                let covered = self.children(&child).iter().any(|below| !set.contains(&below.id));
                let parent_stays = child.parent().is_none_or(|at| !set.contains(&at.mount.id));
                if covered || child.has(mnt::LOCKED) && parent_stays {
                    continue;
                }
                set.insert(child.id);
                all.push(child);
            }
        }
        all
    }

    /// Whether `mount` cannot go because its like elsewhere has mounts below, or somebody is there.
    pub(super) fn likes(&self, place: &Path, but: &HashSet<u64>) -> Vec<Arc<Mount>> {
        let (group, _, _) = place.mount.propagation();
        let mut found = Vec::new();
        let mut seen = HashSet::from([place.mount.id]);
        let mut left = vec![group];
        while let Some(group) = left.pop().filter(|group| *group != 0) {
            let receivers = self.receivers(group, &seen);
            let slaves =
                receivers.slaves.iter().flat_map(|(own, slaves)| slaves.iter().map(|s| (*own, s.clone())));
            for (own, to) in receivers.peers.iter().map(|peer| (0, peer.clone())).chain(slaves) {
                if !seen.insert(to.id) {
                    continue;
                }
                if own != 0 {
                    left.push(own);
                }
                if let Some(child) =
                    self.child_at(&to, &place.dentry).filter(|child| !but.contains(&child.id))
                {
                    found.push(child);
                }
            }
        }
        found
    }

    /// EINVAL where a tree with unbindable mounts would come to be shared.
    pub(super) fn check_unbindable(&self, trunk: &[Arc<Mount>], at: &Path) -> SysResult<()> {
        let shared = at.mount.propagation().0 != 0;
        let bad = shared && trunk.iter().any(|mount| mount.propagation().2);
        if bad { Err(Errno::EINVAL.into()) } else { Ok(()) }
    }
}
