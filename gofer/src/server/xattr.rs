//! Extended attributes. What a name may be, and who may set it, the host decides.

use std::ffi::CString;

use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;

use crate::protocol::{Bytes, MAX_NAME, MAX_NAMES, MAX_XATTR, NodeId, Response, XattrMode};

use super::walk::component;
use super::{Answer, Server, bytes, done};

impl Server {
    pub(super) fn getxattr(&self, node: NodeId, name: &Bytes) -> Answer {
        let node = self.nodes.get(node)?;
        let mut value = vec![0; MAX_XATTR];
        let length = getxattr(self.self_fds.path(&*node), &xattr_name(name)?, &mut value)?;
        value.truncate(length);
        bytes(value)
    }

    pub(super) fn setxattr(&self, node: NodeId, name: &Bytes, value: &Bytes, mode: XattrMode) -> Answer {
        let node = self.nodes.get(node)?;
        self.writable(&node)?;
        if value.0.len() > MAX_XATTR {
            return Err(Errno::TOOBIG.into());
        }
        let flags = match mode {
            XattrMode::Any => XattrFlags::empty(),
            XattrMode::Create => XattrFlags::CREATE,
            XattrMode::Replace => XattrFlags::REPLACE,
        };
        setxattr(self.self_fds.path(&*node), &xattr_name(name)?, &value.0, flags)?;
        done()
    }

    pub(super) fn listxattr(&self, node: NodeId) -> Answer {
        let node = self.nodes.get(node)?;
        let mut list = vec![0; MAX_XATTR];
        let length = listxattr(self.self_fds.path(&*node), &mut list)?;
        list.truncate(length);
        bytes(list)
    }

    /// Which names of a directory may have attributes.
    pub(super) fn have_xattrs(&self, dir: NodeId, names: &[Bytes]) -> Answer {
        let dir = self.nodes.dir(dir)?;
        if names.len() > MAX_NAMES {
            return Err(Errno::INVAL.into());
        }
        let names = names.iter().map(component).collect::<Result<Vec<CString>, Errno>>()?;
        let have = |name: &CString| {
            // Of what is hidden nothing is told; whoever asks for it by itself is refused.
            let Ok(place) = self.glance(&dir, name) else { return true };
            let mut list = [0; 256];
            // Too short a list is one with names in it.
            let Ok(length) = listxattr(self.self_fds.path(&place), &mut list) else { return true };
            list.get(..length).is_none_or(tells)
        };
        Ok((Response::Flags(names.iter().map(have).collect()), None))
    }

    pub(super) fn removexattr(&self, node: NodeId, name: &Bytes) -> Answer {
        let node = self.nodes.get(node)?;
        self.writable(&node)?;
        removexattr(self.self_fds.path(&*node), &xattr_name(name)?)?;
        done()
    }
}

/// Whether a list has more names than that of a label, which every file has on hosts that label them.
fn tells(list: &[u8]) -> bool {
    list.split(|byte| *byte == 0).any(|name| !matches!(name, b"" | b"security.selinux" | b"security.SMACK64"))
}

/// # Errors
/// `ERANGE`, as Linux has it for a name that is empty or too long.
fn xattr_name(name: &Bytes) -> Result<CString, Errno> {
    if name.0.is_empty() || name.0.len() > MAX_NAME {
        return Err(Errno::RANGE);
    }
    CString::new(name.0.as_slice()).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests {
    #[test]
    fn labels_do_not_count() {
        for (list, tells) in [
            (b"".as_slice(), false),
            (b"security.selinux\0", false),
            (b"security.selinux\0user.x\0", true),
            (b"security.capability\0", true),
            (b"system.posix_acl_access\0security.selinux\0", true),
        ] {
            assert_eq!(super::tells(list), tells, "{}", list.escape_ascii());
        }
    }
}
