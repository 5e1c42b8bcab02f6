//! Control messages (cmsg(3)).

use super::addr::{Addr, array};
use super::collect::Charge;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::ipc::install_file;
use crate::task::creds::cap;
use crate::task::userns::Ids;
use crate::task::{Process, pidfd};
use crate::vfs::file::File;
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::{FromBytes, IntoBytes};

/// Most descriptors in one message (SCM_MAX_FD).
const MAX_FDS: usize = 253;
const HEADER: usize = 16;
/// Most bytes of control data that are read (net.core.optmem_max).
const MAX: usize = 131_072;

/// Open files on their way (SCM_RIGHTS).
///
/// One of them may be a socket with others in its inbox, and so on as deep as a guest likes: those whose last holder goes
/// while another is being closed wait until that is done.
#[derive(Default)]
pub struct Rights(Vec<Arc<File>>);

thread_local! {
    /// What is still to be closed on this thread; None: nothing is under way.
    static CLOSING: RefCell<Option<Vec<Arc<File>>>> = const { RefCell::new(None) };
}

impl Drop for Rights {
    fn drop(&mut self) {
        if self.0.is_empty() {
            return;
        }
        let files = std::mem::take(&mut self.0);
        let under_way = CLOSING.with_borrow_mut(|closing| match closing {
            Some(list) => {
                list.extend(files);
                true
            }
            None => {
                *closing = Some(files);
                false
            }
        });
        if under_way {
            return;
        }
        while let Some(file) = CLOSING.with_borrow_mut(|closing| closing.as_mut()?.pop()) {
            drop(file);
        }
        CLOSING.set(None);
    }
}

impl Deref for Rights {
    type Target = Vec<Arc<File>>;
    fn deref(&self) -> &Vec<Arc<File>> {
        &self.0
    }
}

impl DerefMut for Rights {
    fn deref_mut(&mut self) -> &mut Vec<Arc<File>> {
        &mut self.0
    }
}

/// What travels beside a message's bytes.
#[derive(Default)]
pub struct Ancillary {
    /// SCM_RIGHTS
    pub rights: Rights,
    /// SCM_CREDENTIALS
    pub creds: Option<Ucred>,
    /// The process of [`creds`](Self::creds), for SCM_PIDFD: it may end before anybody asks.
    pub process: Option<Arc<Process>>,
    /// While [`rights`](Self::rights) are on their way.
    pub charge: Option<Charge>,
    /// What the header of an IP packet would say.
    pub ip: Header,
}

impl Ancillary {
    /// Whether both are of the same sender.
    pub(super) fn is_of(&self, other: &Ancillary) -> bool {
        let process = |of: &Ancillary| of.process.as_ref().map(Arc::as_ptr);
        self.creds == other.creds && process(self) == process(other)
    }

    /// What goes with a part of a message: its descriptors with the first alone, and who it is from with each: the `sender` where
    /// somebody wants it and the message does not say so itself.
    pub(super) fn part(&mut self, cx: &Cx, charge: Option<Charge>, sender: Option<Ucred>) -> Ancillary {
        let rights = std::mem::take(&mut self.rights);
        let (creds, process) = match (self.creds, sender) {
            (None, Some(sender)) => (Some(sender), Some(cx.task.process.clone())),
            (given, _) => (given, self.process.clone()),
        };
        Ancillary { charge: charge.filter(|_| !rights.is_empty()), rights, creds, process, ip: self.ip }
    }
}

/// Fields of an IP header (ip(7), ipv6(7)). None: not given, or not of this family.
#[derive(Default, Clone, Copy)]
pub struct Header {
    /// TTL, or hop limit.
    pub hops: Option<i32>,
    /// TOS, or traffic class.
    pub class: Option<i32>,
    /// Destination.
    pub to: Option<SocketAddr>,
}

/// One control message to the guest: level, type, body.
pub type Record = (i32, i32, Vec<u8>);

impl Header {
    /// What a socket wants to hear of it, by its options; `on` tells whether one is set.
    pub fn records(&self, family: i32, on: impl Fn(i32, i32) -> bool) -> Vec<Record> {
        let mut out = Vec::new();
        let index = super::iface::INDEX;
        let int = |value: i32| value.to_ne_bytes().to_vec();
        if family == AF_INET {
            if let (Some(IpAddr::V4(to)), true) =
                (self.to.map(|to| to.ip().to_canonical()), on(SOL_IP, IP_PKTINFO))
            {
                let parts = [index.to_ne_bytes(), to.octets(), to.octets()];
                out.push((SOL_IP, IP_PKTINFO, parts.concat()));
            }
            if let (Some(hops), true) = (self.hops, on(SOL_IP, IP_RECVTTL)) {
                out.push((SOL_IP, IP_TTL, int(hops)));
            }
            if let (Some(to), true) = (self.to, on(SOL_IP, IP_RECVORIGDSTADDR)) {
                out.push((SOL_IP, IP_RECVORIGDSTADDR, Addr::Ip(to).bytes(AF_INET)));
            }
            if let (Some(class), true) = (self.class, on(SOL_IP, IP_RECVTOS)) {
                out.push((SOL_IP, IP_TOS, vec![class as u8]));
            }
        } else if family == AF_INET6 {
            if let (Some(to), true) = (self.to, on(SOL_IPV6, IPV6_RECVPKTINFO)) {
                let to = super::listing::octets(AF_INET6, to.ip());
                out.push((SOL_IPV6, IPV6_PKTINFO, [&to[..], &index.to_ne_bytes()].concat()));
            }
            if let (Some(hops), true) = (self.hops, on(SOL_IPV6, IPV6_RECVHOPLIMIT)) {
                out.push((SOL_IPV6, IPV6_HOPLIMIT, int(hops)));
            }
            if let (Some(class), true) = (self.class, on(SOL_IPV6, IPV6_RECVTCLASS)) {
                out.push((SOL_IPV6, IPV6_TCLASS, int(class)));
            }
        }
        out
    }

    /// Takes a control message of a sender.
    ///
    /// # Errors
    /// EINVAL; a gap for those that are not implemented.
    fn take(&mut self, family: i32, level: i32, kind: i32, body: &[u8]) -> SysResult<()> {
        let int = || array(body, 0).map(i32::from_ne_bytes).ok_or(Errno::EINVAL);
        let byte = |low: i32| int().and_then(|v| (low..=255).contains(&v).then_some(v).ok_or(Errno::EINVAL));
        match (level, kind) {
            (SOL_IP, IP_TTL) if family == AF_INET => self.hops = Some(byte(1)?),
            (SOL_IP, IP_TOS) if family == AF_INET => self.class = Some(byte(0)?),
            // The source: there is one address and one interface only.
            (SOL_IP, IP_PKTINFO) if family == AF_INET && body.len() == 12 => {}
            (SOL_IPV6, IPV6_PKTINFO) if family == AF_INET6 && body.len() == 20 => {}
            (SOL_IPV6, IPV6_HOPLIMIT) if family == AF_INET6 => {
                self.hops = Some(byte(-1)?).filter(|v| *v >= 0)
            }
            (SOL_IPV6, IPV6_TCLASS) if family == AF_INET6 => self.class = Some(byte(-1)?).filter(|v| *v >= 0),
            (SOL_IP, IP_PKTINFO) | (SOL_IPV6, IPV6_PKTINFO) => return Err(Errno::EINVAL.into()),
            (level, kind) => {
                return Err(Fail::gap(Errno::EINVAL, format!("control message {level}/{kind}")));
            }
        }
        Ok(())
    }
}

/// Who sends a message just now, as SCM_CREDENTIALS names it: by real ids.
pub fn sender(cx: &Cx) -> Ucred {
    let creds = cx.task.creds();
    Ucred { pid: cx.task.process.pid, uid: creds.uid, gid: creds.gid }
}

/// Reads control data.
///
/// # Errors
/// EINVAL, EBADF, EPERM, ENOBUFS, ETOOMANYREFS.
pub fn read(cx: &mut Cx, family: i32, addr: u64, len: u64) -> SysResult<Ancillary> {
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
                    out.rights.push(files.get_any(fd)?);
                }
                if out.rights.len() > MAX_FDS {
                    return Err(Errno::EINVAL.into());
                }
            }
            (SOL_SOCKET, SCM_CREDENTIALS) => {
                let mut given = Ucred::read_from_bytes(body).map_err(|_| Errno::EINVAL)?;
                given.pid = cx.task.meant(given.pid);
                let creds = cx.task.creds();
                given.uid = creds.ns.to_kernel(Ids::Users, given.uid).ok_or(Errno::EINVAL)?;
                given.gid = creds.ns.to_kernel(Ids::Groups, given.gid).ok_or(Errno::EINVAL)?;
                let uids = [creds.uid, creds.euid, creds.suid];
                let gids = [creds.gid, creds.egid, creds.sgid];
                let pid = given.pid == cx.task.process.pid || creds.capable(cap::SYS_ADMIN);
                let uid = uids.contains(&given.uid) || creds.has(cap::SETUID);
                let gid = gids.contains(&given.gid) || creds.has(cap::SETGID);
                if !(pid && uid && gid) {
                    return Err(Errno::EPERM.into());
                }
                // Somebody else's pid has to be somebody's.
                out.process = Some(match given.pid == cx.task.process.pid {
                    true => cx.task.process.clone(),
                    false => cx.kernel().tree.process(given.pid).map_err(|_| Errno::ESRCH)?,
                });
                out.creds = Some(given);
            }
            (SOL_SOCKET, _) => return Err(Errno::EINVAL.into()),
            (level, kind) => out.ip.take(family, level, kind, body)?,
        }
        let step = size.checked_add(7).ok_or(Errno::EINVAL)? & !7;
        rest = rest.get(step..).unwrap_or_default();
    }
    Ok(out)
}

/// Installs descriptors and writes control data to the guest's buffer: the records, SCM_RIGHTS, and SCM_PIDFD of `sender`. Returns the bytes
/// used, and whether something did not fit.
///
/// # Errors
/// EFAULT.
pub fn write(
    cx: &mut Cx,
    addr: u64,
    room: u64,
    records: &[Record],
    rights: &mut Vec<Arc<File>>,
    sender: Option<Arc<Process>>,
    cloexec: bool,
) -> SysResult<(u64, bool)> {
    let mut out = Vec::new();
    let mut truncated = false;
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    for (level, kind, body) in records {
        truncated |= !put(&mut out, room, (*level, *kind), body);
    }
    if !rights.is_empty() {
        let space = room.saturating_sub(out.len()).saturating_sub(HEADER) / 4;
        let mut fds = Vec::new();
        for file in rights.drain(..) {
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
            put(&mut out, room, (SOL_SOCKET, SCM_RIGHTS), &fds);
        }
    }
    if let Some(process) = sender {
        let fits = room.saturating_sub(out.len()) >= HEADER + 4;
        match fits.then(|| install_file(cx, pidfd::file(&process, 0), true)) {
            Some(Ok(fd)) => truncated |= !put(&mut out, room, (SOL_SOCKET, SCM_PIDFD), &fd.to_ne_bytes()),
            _ => truncated = true,
        }
    }
    out.truncate(room);
    cx.copy_out(addr, &out)?;
    Ok((out.len() as u64, truncated))
}

/// Appends a message; what does not fit of its body is cut off. Whether all of it fit.
fn put(out: &mut Vec<u8>, room: usize, (level, kind): (i32, i32), body: &[u8]) -> bool {
    let Some(part) = room.checked_sub(out.len()).and_then(|rest| rest.checked_sub(HEADER)) else {
        return false;
    };
    let body_part = body.get(..part.min(body.len())).unwrap_or_default();
    let size = HEADER + body_part.len();
    let header = Cmsghdr { cmsg_len: size as u64, cmsg_level: level, cmsg_type: kind };
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(body_part);
    out.resize(out.len().next_multiple_of(8), 0);
    body_part.len() == body.len()
}
