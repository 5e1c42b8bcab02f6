//! Access control lists (acl(5)) as the attributes `system.posix_acl_access` and `system.posix_acl_default` hold them.

use crate::fail::SysResult;
use crate::task::creds::Creds;
use crate::vfs::perm::in_group;
use syscall_table::errno::Errno;

/// The attribute with who may do what.
pub const ACCESS: &[u8] = b"system.posix_acl_access";
/// The attribute of a directory with what new files in it get.
pub const DEFAULT: &[u8] = b"system.posix_acl_default";

/// Version of the attributes' form (linux/posix_acl_xattr.h).
const VERSION: u32 = 2;
/// The id of entries that have none.
const NO_ID: u32 = u32::MAX;
const HEADER: usize = 4;
const ENTRY: usize = 8;

/// e_tag of an entry: its order is theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Tag {
    /// The owner.
    UserObj = 1,
    /// A user.
    User = 2,
    /// The owning group.
    GroupObj = 4,
    /// A group.
    Group = 8,
    /// Most that users, groups and the owning group get.
    Mask = 0x10,
    /// Everybody else.
    Other = 0x20,
}

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    tag: Tag,
    perm: u32,
    id: u32,
}

/// A list, in the order that the attribute has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl(Vec<Entry>);

impl Acl {
    /// Lets nobody in but the owner: for one that cannot be had.
    pub fn of_nobody() -> Acl {
        Acl(Vec::new())
    }

    /// From an attribute's value; None for one without entries. `id`: the kernel's id of a user (`true`) or group.
    ///
    /// # Errors
    /// EINVAL, EOPNOTSUPP for another version.
    pub fn read(value: &[u8], id: impl Fn(bool, u32) -> Option<u32>) -> SysResult<Option<Acl>> {
        let (version, entries) = value.split_first_chunk::<HEADER>().ok_or(Errno::EINVAL)?;
        if u32::from_le_bytes(*version) != VERSION {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if entries.len() % ENTRY != 0 {
            return Err(Errno::EINVAL.into());
        }
        let mut all = Vec::new();
        for bytes in entries.chunks_exact(ENTRY) {
            let [t0, t1, p0, p1, i0, i1, i2, i3] = *bytes else { return Err(Errno::EINVAL.into()) };
            let tag = match u16::from_le_bytes([t0, t1]) {
                1 => Tag::UserObj,
                2 => Tag::User,
                4 => Tag::GroupObj,
                8 => Tag::Group,
                0x10 => Tag::Mask,
                0x20 => Tag::Other,
                _ => return Err(Errno::EINVAL.into()),
            };
            let given = u32::from_le_bytes([i0, i1, i2, i3]);
            let id = match tag {
                Tag::User => id(true, given).ok_or(Errno::EINVAL)?,
                Tag::Group => id(false, given).ok_or(Errno::EINVAL)?,
                _ => NO_ID,
            };
            all.push(Entry { tag, perm: u16::from_le_bytes([p0, p1]).into(), id });
        }
        Ok((!all.is_empty()).then_some(Acl(all)))
    }

    /// As the attribute's value. `id`: the id of a user (`true`) or group as the reader knows it.
    pub fn write(&self, id: impl Fn(bool, u32) -> u32) -> Vec<u8> {
        let mut value = VERSION.to_le_bytes().to_vec();
        for entry in &self.0 {
            let id = match entry.tag {
                Tag::User => id(true, entry.id),
                Tag::Group => id(false, entry.id),
                _ => NO_ID,
            };
            value.extend((entry.tag as u16).to_le_bytes());
            value.extend((entry.perm as u16).to_le_bytes());
            value.extend(id.to_le_bytes());
        }
        value
    }

    /// Whether it has the entries that a list must have, in their order (posix_acl_valid).
    ///
    /// # Errors
    /// EINVAL.
    pub fn check(&self) -> SysResult<()> {
        let one = |tag| self.0.iter().filter(|entry| entry.tag == tag).count();
        let named = one(Tag::User).saturating_add(one(Tag::Group)) > 0;
        let sorted = self.0.is_sorted_by_key(|entry| entry.tag);
        let rights = self.0.iter().all(|entry| entry.perm & !7 == 0);
        let each = one(Tag::UserObj) == 1 && one(Tag::GroupObj) == 1 && one(Tag::Other) == 1;
        let masked = one(Tag::Mask) == 1 || one(Tag::Mask) == 0 && !named;
        if sorted && rights && each && masked { Ok(()) } else { Err(Errno::EINVAL.into()) }
    }

    fn of(&self, tag: Tag) -> Option<u32> {
        self.0.iter().find(|entry| entry.tag == tag).map(|entry| entry.perm)
    }

    /// The nine bits of a mode that say the same of owner, group class and others; and whether they say all of it.
    pub fn mode(&self) -> (u32, bool) {
        let (user, other) = (self.of(Tag::UserObj).unwrap_or(0), self.of(Tag::Other).unwrap_or(0));
        let mask = self.of(Tag::Mask);
        let group = mask.or(self.of(Tag::GroupObj)).unwrap_or(0);
        let minimal = mask.is_none() && self.0.len() == 3;
        ((user & 7) << 6 | (group & 7) << 3 | other & 7, minimal)
    }

    /// With the rights of a mode, after chmod(2).
    pub fn with_mode(&self, mode: u32) -> Acl {
        let masked = self.of(Tag::Mask).is_some();
        let change = |entry: &Entry| {
            let perm = match entry.tag {
                Tag::UserObj => mode >> 6 & 7,
                Tag::GroupObj if !masked => mode >> 3 & 7,
                Tag::Mask => mode >> 3 & 7,
                Tag::Other => mode & 7,
                _ => entry.perm,
            };
            Entry { perm, ..*entry }
        };
        Acl(self.0.iter().map(change).collect())
    }

    /// What a file made with `mode` gets of a directory's default list: its own list, if it needs one, and its mode.
    pub fn inherited(&self, mode: u32) -> (Option<Acl>, u32) {
        let masked = self.of(Tag::Mask).is_some();
        let limit = |entry: &Entry| {
            let most = match entry.tag {
                Tag::UserObj => mode >> 6 & 7,
                Tag::GroupObj if !masked => mode >> 3 & 7,
                Tag::Mask => mode >> 3 & 7,
                Tag::Other => mode & 7,
                _ => 7,
            };
            Entry { perm: entry.perm & most, ..*entry }
        };
        let acl = Acl(self.0.iter().map(limit).collect());
        let (bits, minimal) = acl.mode();
        ((!minimal).then_some(acl), mode & !0o777 | bits)
    }

    /// Whether it grants `want` to a task that is not the owner (acl(5), access check algorithm).
    pub fn grants(&self, creds: &Creds, group: u32, want: u32) -> bool {
        let mask = self.of(Tag::Mask).unwrap_or(7);
        if let Some(user) = self.0.iter().find(|entry| entry.tag == Tag::User && entry.id == creds.fsuid) {
            return user.perm & mask & want == want;
        }
        let mut member = false;
        for entry in &self.0 {
            let mine = match entry.tag {
                Tag::GroupObj => in_group(creds, group),
                Tag::Group => in_group(creds, entry.id),
                _ => false,
            };
            if mine && entry.perm & want == want {
                return entry.perm & mask & want == want;
            }
            member |= mine;
        }
        !member && self.of(Tag::Other).unwrap_or(0) & want == want
    }
}
