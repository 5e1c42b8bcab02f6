//! Whose the new inodes are.

use crate::host;

use super::Server;

/// While it lives, inodes that this thread makes belong to somebody else.
pub(super) struct AsOwner {
    before: Option<(u32, u32)>,
}

impl Server {
    /// From now until the guard is dropped, this thread creates inodes for `owner`. Linux itself then gives them
    /// their ids, with set-group-id directories and quotas as ever and nothing to race with. The gofer's capabilities
    /// do not depend on the ids (`SECBIT_NO_SETUID_FIXUP`).
    ///
    /// With a single-id map there is nobody else.
    pub(super) fn as_owner(&self, owner: Option<(u32, u32)>) -> AsOwner {
        match owner {
            Some((uid, gid)) if self.ids.is_none() => AsOwner { before: Some(host::set_fs_ids(uid, gid)) },
            _ => AsOwner { before: None },
        }
    }
}

impl Drop for AsOwner {
    fn drop(&mut self) {
        if let Some((uid, gid)) = self.before {
            host::set_fs_ids(uid, gid);
        }
    }
}
