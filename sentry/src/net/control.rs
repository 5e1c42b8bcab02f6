//! Control messages (cmsg(3)).

use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::ipc::install_file;
use crate::vfs::file::File;
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::{FromBytes, IntoBytes};

/// Most descriptors in one message (SCM_MAX_FD).
const MAX_FDS: usize = 253;
const HEADER: usize = 16;
/// Most bytes of control data that are read (net.core.optmem_max).
const MAX: usize = 131_072;

/// What travels beside a message's bytes.
#[derive(Default)]
pub struct Ancillary {
    /// SCM_RIGHTS
    pub rights: Vec<Arc<File>>,
    /// SCM_CREDENTIALS
    pub creds: Option<Ucred>,
}

/// The task's own credentials.
pub fn own_creds(cx: &Cx) -> Ucred {
    let creds = cx.task.creds();
    Ucred { pid: cx.task.process.pid, uid: creds.euid, gid: creds.egid }
}

/// Reads control data.
///
/// # Errors
/// EINVAL, EBADF, EPERM, ENOBUFS, ETOOMANYREFS.
pub fn read(cx: &mut Cx, addr: u64, len: u64) -> SysResult<Ancillary> {
    let mut out = Ancillary::default();
    let len = usize::try_from(len).ok().filter(|l| *l <= MAX).ok_or(Errno::ENOBUFS)?;
    if len == 0 {
        return Ok(out);
    }
    let mut bytes = vec![0u8; len];
    cx.copy_in(addr, &mut bytes)?;
    let mut rest: &[u8] = &bytes;
    while let Ok((header, _)) = Cmsghdr::read_from_prefix(rest) {
        let size = usize::try_from(header.cmsg_len).map_err(|_| Errno::EINVAL)?;
        let body = rest.get(HEADER..size).ok_or(Errno::EINVAL)?;
        match (header.cmsg_level, header.cmsg_type) {
            (SOL_SOCKET, SCM_RIGHTS) => {
                let files = cx.task.files();
                for fd in body.chunks_exact(4) {
                    let fd = i32::from_ne_bytes(fd.try_into().unwrap_or_default());
                    out.rights.push(files.get(fd)?);
                }
                if out.rights.len() > MAX_FDS {
                    return Err(Errno::EINVAL.into());
                }
            }
            (SOL_SOCKET, SCM_CREDENTIALS) => {
                let given = Ucred::read_from_bytes(body).map_err(|_| Errno::EINVAL)?;
                let own = own_creds(cx);
                let creds = cx.task.creds();
                let uids = [creds.uid, creds.euid, creds.suid];
                let gids = [creds.gid, creds.egid, creds.sgid];
                let root = creds.euid == 0;
                if !root && (given.pid != own.pid || !uids.contains(&given.uid) || !gids.contains(&given.gid))
                {
                    return Err(Errno::EPERM.into());
                }
                out.creds = Some(given);
            }
            (SOL_SOCKET, _) => return Err(Errno::EINVAL.into()),
            (level, kind) => {
                return Err(Fail::gap(Errno::EINVAL, format!("control message {level}/{kind}")));
            }
        }
        let step = size.checked_add(7).ok_or(Errno::EINVAL)? & !7;
        rest = rest.get(step..).unwrap_or_default();
    }
    Ok(out)
}

/// Installs descriptors and writes control data to the guest's buffer. Returns the bytes used, and whether something did
/// not fit.
///
/// # Errors
/// EFAULT.
pub fn write(
    cx: &mut Cx,
    addr: u64,
    room: u64,
    got: &mut Ancillary,
    want_creds: bool,
    cloexec: bool,
) -> SysResult<(u64, bool)> {
    let mut out = Vec::new();
    let mut truncated = false;
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if want_creds {
        let creds = got.creds.unwrap_or(Ucred { pid: 0, uid: 65534, gid: 65534 });
        truncated |= !put(&mut out, room, SCM_CREDENTIALS, creds.as_bytes());
    }
    if !got.rights.is_empty() {
        let space = room.saturating_sub(out.len()).saturating_sub(HEADER) / 4;
        let mut fds = Vec::new();
        for file in got.rights.drain(..) {
            if fds.len() / 4 >= space {
                truncated = true;
                break;
            }
            match install_file(cx, file, cloexec) {
                Ok(fd) => fds.extend_from_slice(&fd.to_ne_bytes()),
                Err(_) => {
                    truncated = true;
                    break;
                }
            }
        }
        if !fds.is_empty() {
            put(&mut out, room, SCM_RIGHTS, &fds);
        }
    }
    out.truncate(room);
    cx.copy_out(addr, &out)?;
    Ok((out.len() as u64, truncated))
}

fn put(out: &mut Vec<u8>, room: usize, kind: i32, body: &[u8]) -> bool {
    let size = HEADER + body.len();
    if out.len() + size > room {
        return false;
    }
    let header = Cmsghdr { cmsg_len: size as u64, cmsg_level: SOL_SOCKET, cmsg_type: kind };
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(body);
    out.resize(out.len().next_multiple_of(8), 0);
    true
}
