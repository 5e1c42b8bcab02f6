//! Credentials: user and group ids and capabilities (credentials(7), capabilities(7)).

use super::userns::UserNs;
use std::sync::Arc;

/// Every capability that Linux 6.18 knows (0..=CAP_CHECKPOINT_RESTORE).
pub const ALL_CAPS: u64 = (1 << 41) - 1;

/// Capability numbers that the sentry asks for.
#[allow(missing_docs)]
pub mod cap {
    pub const CHOWN: u32 = 0;
    pub const DAC_OVERRIDE: u32 = 1;
    pub const DAC_READ_SEARCH: u32 = 2;
    pub const FOWNER: u32 = 3;
    pub const FSETID: u32 = 4;
    pub const KILL: u32 = 5;
    pub const SETGID: u32 = 6;
    pub const SETUID: u32 = 7;
    pub const SETPCAP: u32 = 8;
    pub const LINUX_IMMUTABLE: u32 = 9;
    pub const NET_BIND_SERVICE: u32 = 10;
    pub const NET_ADMIN: u32 = 12;
    pub const NET_RAW: u32 = 13;
    pub const IPC_LOCK: u32 = 14;
    pub const IPC_OWNER: u32 = 15;
    pub const SYS_RAWIO: u32 = 17;
    pub const SYS_CHROOT: u32 = 18;
    pub const SYS_PTRACE: u32 = 19;
    pub const SYS_PACCT: u32 = 20;
    pub const SYS_ADMIN: u32 = 21;
    pub const SYS_NICE: u32 = 23;
    pub const SYS_RESOURCE: u32 = 24;
    pub const SYS_TIME: u32 = 25;
    pub const SYS_TTY_CONFIG: u32 = 26;
    pub const MKNOD: u32 = 27;
    pub const SETFCAP: u32 = 31;
    pub const MAC_OVERRIDE: u32 = 32;
    pub const CHECKPOINT_RESTORE: u32 = 40;
}

/// Capabilities that concern files (CAP_FS_SET).
const FS_SET: u64 = 1 << cap::CHOWN
    | 1 << cap::MKNOD
    | 1 << cap::DAC_OVERRIDE
    | 1 << cap::DAC_READ_SEARCH
    | 1 << cap::FOWNER
    | 1 << cap::FSETID
    | 1 << cap::LINUX_IMMUTABLE
    | 1 << cap::MAC_OVERRIDE;

/// `SECBIT_KEEP_CAPS` of prctl(PR_SET_SECUREBITS).
pub const SECBIT_KEEP_CAPS: u32 = 1 << 4;
/// `SECBIT_KEEP_CAPS_LOCKED`.
pub const SECBIT_KEEP_CAPS_LOCKED: u32 = 1 << 5;
/// `SECBIT_NO_CAP_AMBIENT_RAISE`.
pub const SECBIT_NO_CAP_AMBIENT_RAISE: u32 = 1 << 6;
/// `SECBIT_NO_SETUID_FIXUP`.
pub const SECBIT_NO_SETUID_FIXUP: u32 = 1 << 2;
/// `SECBIT_NOROOT`.
pub const SECBIT_NOROOT: u32 = 1;

/// Credentials of a task: replaced whole, never changed in place.
///
/// They are the guest's own affair: they decide what the sentry answers, never what the host allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Creds {
    /// Real user.
    pub uid: u32,
    /// Effective user.
    pub euid: u32,
    /// Saved user.
    pub suid: u32,
    /// User for file access.
    pub fsuid: u32,
    /// Real group.
    pub gid: u32,
    /// Effective group.
    pub egid: u32,
    /// Saved group.
    pub sgid: u32,
    /// Group for file access.
    pub fsgid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Capability sets, bit n is capability n.
    pub permitted: u64,
    /// In force.
    pub effective: u64,
    /// Kept over execve for files that ask for them.
    pub inheritable: u64,
    /// Upper limit of what execve grants.
    pub bounding: u64,
    /// Kept over execve.
    pub ambient: u64,
    /// SECBIT_*.
    pub securebits: u32,
    /// Where the capabilities count.
    pub ns: Arc<UserNs>,
}

impl Creds {
    /// Of a user in these groups; user 0 has all capabilities.
    pub fn new(uid: u32, gid: u32, groups: Vec<u32>) -> Creds {
        let caps = if uid == 0 { ALL_CAPS } else { 0 };
        Creds {
            uid,
            euid: uid,
            suid: uid,
            fsuid: uid,
            gid,
            egid: gid,
            sgid: gid,
            fsgid: gid,
            groups,
            permitted: caps,
            effective: caps,
            bounding: ALL_CAPS,
            ..Creds::default()
        }
    }

    /// Whether a capability ([`cap`]) is in force for what is the whole sandbox's.
    pub fn capable(&self, cap: u32) -> bool {
        self.ns.is_first() && self.has(cap)
    }

    /// Whether a capability is in force in the user namespace of these credentials.
    pub fn has(&self, cap: u32) -> bool {
        1u64.checked_shl(cap).is_some_and(|bit| self.effective & bit != 0)
    }

    /// Whether a capability is in force for what `ns` owns (user_namespaces(7), "Interaction of user namespaces and other
    /// types of namespaces").
    pub fn capable_in(&self, ns: &UserNs, cap: u32) -> bool {
        let mut at = ns;
        loop {
            if *at == *self.ns {
                return self.has(cap);
            }
            let Some(parent) = &at.parent else { return false };
            // Who made a namespace has all rights in it.
            if *parent == self.ns && at.owner == self.euid {
                return true;
            }
            at = parent;
        }
    }

    /// Whether a capability is in force for a file of this owner and group.
    pub fn capable_of(&self, uid: u32, gid: u32, cap: u32) -> bool {
        self.has(cap) && self.ns.knows(uid, gid)
    }

    /// Whether files of this group count as the task's own group's.
    pub fn in_group(&self, gid: u32) -> bool {
        self.fsgid == gid || self.groups.contains(&gid)
    }

    /// As [`in_group`](Self::in_group) with the effective group in place of the file-system group.
    pub fn in_egroup(&self, gid: u32) -> bool {
        self.egid == gid || self.groups.contains(&gid)
    }

    /// Whether this one may send signals to a task with `other` (kill(2)).
    pub fn may_signal(&self, other: &Creds) -> bool {
        self.capable_in(&other.ns, cap::KILL)
            || [self.euid, self.uid].iter().any(|id| *id == other.suid || *id == other.uid)
    }

    /// Whether somebody with these rights can do what `old` could not: other ids that count for access, or more
    /// capabilities (commit_creds in Linux).
    pub(crate) fn differs(&self, old: &Creds) -> bool {
        self.permitted & !old.permitted != 0
            || (self.euid, self.egid, self.fsuid, self.fsgid) != (old.euid, old.egid, old.fsuid, old.fsgid)
    }

    /// What a change of the user for file access alone does to the capabilities.
    pub(crate) fn fix_after_setfsuid(&mut self, old: &Creds) {
        if self.securebits & SECBIT_NO_SETUID_FIXUP != 0 {
            return;
        }
        let zero = self.ns.root_user().unwrap_or(u32::MAX);
        match (old.fsuid == zero, self.fsuid == zero) {
            (true, false) => self.effective &= !FS_SET,
            (false, true) => self.effective |= self.permitted & FS_SET,
            _ => {}
        }
    }

    /// What changes of user ids do to the capabilities (capabilities(7)); `old` are those before.
    pub(crate) fn fix_after_setuid(&mut self, old: &Creds) {
        if self.securebits & SECBIT_NO_SETUID_FIXUP != 0 {
            return;
        }
        // Who has no name for root is never root.
        let zero = self.ns.root_user().unwrap_or(u32::MAX);
        let root = |c: &Creds| c.uid == zero || c.euid == zero || c.suid == zero;
        if root(old) && !root(self) {
            if self.securebits & SECBIT_KEEP_CAPS == 0 {
                self.permitted = 0;
                self.effective = 0;
            }
            self.ambient = 0;
        }
        if old.euid == zero && self.euid != zero {
            self.effective = 0;
        }
        if old.euid != zero && self.euid == zero {
            self.effective = self.permitted;
        }
    }
}
