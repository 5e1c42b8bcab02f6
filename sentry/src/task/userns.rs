//! User namespaces (user_namespaces(7)): which ids and capabilities mean what.
//!
//! Ids inside the sentry are those of the first namespace. They are the guest's own affair: a namespace decides what the
//! sentry answers, never what the host allows.

use super::creds::{Creds, cap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What an id without a place in a map reads as (/proc/sys/kernel/overflowuid).
pub const OVERFLOW: u32 = 65534;
/// The most levels of namespaces.
const LEVELS: u32 = 32;

/// One line of an id map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First id inside.
    pub first: u32,
    /// First id in the first namespace.
    pub lower: u32,
    /// How many.
    pub count: u32,
}

/// Ids inside a namespace to ids of the first one.
pub type Map = Vec<Extent>;

/// A user namespace.
#[derive(Debug)]
pub struct UserNs {
    /// Number in /proc/PID/ns/user.
    pub ino: u64,
    /// The one it was made in; None: the first.
    pub parent: Option<Arc<UserNs>>,
    level: u32,
    /// Who made it, in ids of the first namespace.
    pub owner: u32,
    /// Users, once written.
    pub users: OnceLock<Map>,
    /// Groups, once written.
    pub groups: OnceLock<Map>,
    /// Whether setgroups(2) is allowed.
    pub setgroups: AtomicBool,
    /// Whoever made it had CAP_SETFCAP: may map the parent's user 0.
    pub setfcap: bool,
}

/// That of the sandbox.
impl Default for UserNs {
    fn default() -> Self {
        let all = || OnceLock::from(vec![Extent { first: 0, lower: 0, count: u32::MAX }]);
        UserNs {
            ino: 0xefff_fffd,
            parent: None,
            level: 0,
            owner: 0,
            users: all(),
            groups: all(),
            setgroups: AtomicBool::new(true),
            setfcap: true,
        }
    }
}

impl PartialEq for UserNs {
    fn eq(&self, other: &Self) -> bool {
        self.ino == other.ino
    }
}

impl Eq for UserNs {}

/// Which ids a map is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// Users.
    Users,
    /// Groups.
    Groups,
}

fn up(map: &[Extent], id: u32) -> Option<u32> {
    let extent = map.iter().find(|e| id >= e.first && id - e.first < e.count)?;
    extent.lower.checked_add(id.checked_sub(extent.first)?)
}

fn down(map: &[Extent], id: u32) -> Option<u32> {
    let extent = map.iter().find(|e| id >= e.lower && id - e.lower < e.count)?;
    extent.first.checked_add(id.checked_sub(extent.lower)?)
}

impl UserNs {
    /// That of the sandbox.
    pub fn first() -> Arc<UserNs> {
        static FIRST: OnceLock<Arc<UserNs>> = OnceLock::new();
        FIRST.get_or_init(Arc::default).clone()
    }

    /// A new one below that of `creds`. None: too many levels.
    pub fn below(creds: &Creds, ino: u64) -> Option<Arc<UserNs>> {
        let level = creds.ns.level.checked_add(1).filter(|level| *level <= LEVELS)?;
        Some(Arc::new(UserNs {
            ino,
            parent: Some(creds.ns.clone()),
            level,
            owner: creds.euid,
            users: OnceLock::new(),
            groups: OnceLock::new(),
            setgroups: AtomicBool::new(creds.ns.setgroups.load(Ordering::Relaxed)),
            setfcap: creds.has(cap::SETFCAP),
        }))
    }

    /// Whether it is the sandbox's.
    pub fn is_first(&self) -> bool {
        self.parent.is_none()
    }

    /// Whether it is `other` or below it.
    pub fn is_within(&self, other: &UserNs) -> bool {
        let mut at = self;
        while at.level > other.level {
            let Some(parent) = &at.parent else { return false };
            at = parent;
        }
        at == other
    }

    fn map(&self, ids: Ids) -> &[Extent] {
        let map = if ids == Ids::Users { &self.users } else { &self.groups };
        map.get().map_or(&[], Vec::as_slice)
    }

    /// The id that `id` means inside; None: none.
    pub fn to_kernel(&self, ids: Ids, id: u32) -> Option<u32> {
        if self.is_first() { (id != u32::MAX).then_some(id) } else { up(self.map(ids), id) }
    }

    /// What `id` is called inside; None: it has no name there.
    pub fn from_kernel(&self, ids: Ids, id: u32) -> Option<u32> {
        if self.is_first() { Some(id) } else { down(self.map(ids), id) }
    }

    /// As [`from_kernel`](Self::from_kernel), with [`OVERFLOW`] for what has no name.
    pub fn shown(&self, ids: Ids, id: u32) -> u32 {
        self.from_kernel(ids, id).unwrap_or(OVERFLOW)
    }

    /// A user as shown inside.
    pub fn user(&self, id: u32) -> u32 {
        self.shown(Ids::Users, id)
    }

    /// A group as shown inside.
    pub fn group(&self, id: u32) -> u32 {
        self.shown(Ids::Groups, id)
    }

    /// Whether both ids have a name inside.
    pub fn knows(&self, uid: u32, gid: u32) -> bool {
        self.is_first()
            || self.from_kernel(Ids::Users, uid).is_some() && self.from_kernel(Ids::Groups, gid).is_some()
    }

    /// Its root user, in ids of the first namespace.
    pub fn root_user(&self) -> Option<u32> {
        self.to_kernel(Ids::Users, 0)
    }

    /// Whether setgroups(2) is allowed.
    pub fn may_setgroups(&self) -> bool {
        self.is_first() || self.groups.get().is_some() && self.setgroups.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_both_ways() {
        let map = [Extent { first: 0, lower: 1000, count: 1 }, Extent { first: 10, lower: 5000, count: 5 }];
        assert_eq!(up(&map, 0), Some(1000));
        assert_eq!(up(&map, 1), None);
        assert_eq!(up(&map, 14), Some(5004));
        assert_eq!(up(&map, 15), None);
        assert_eq!(down(&map, 5004), Some(14));
        assert_eq!(down(&map, 0), None);
    }
}
