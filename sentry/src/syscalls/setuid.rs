//! setuid(2), setreuid(2), setresuid(2), setfsuid(2), the same for groups, setgroups(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::{Creds, cap};
use crate::task::userns::Ids;
use syscall_table::errno::Errno;
use zerocopy::IntoBytes;

/// "Leave as it is".
const SAME: u32 = u32::MAX;
/// NGROUPS_MAX.
const GROUPS_MAX: usize = 65536;

fn change(cx: &Cx, edit: impl FnOnce(&mut Creds) -> SysResult<()>) -> SysResult {
    let old = cx.task.creds();
    let mut new = Creds::clone(&old);
    edit(&mut new)?;
    new.fix_after_setuid(&old);
    if new.uid != old.uid {
        let mut tree = cx.kernel().tree.lock();
        if let Ok(node) = tree.node_mut(cx.task.process.pid) {
            node.uid = new.uid;
        }
    }
    let another = new.uid != old.uid;
    cx.task.set_creds(new);
    if another {
        let exceeded = crate::task::clone::has_too_many(cx.task);
        cx.task.nproc_exceeded.store(exceeded, std::sync::atomic::Ordering::Relaxed);
    }
    cx.task.tell_own();
    Ok(0)
}

fn allowed(privileged: bool, wanted: u32, among: &[u32]) -> SysResult<()> {
    if privileged || wanted == SAME || among.contains(&wanted) { Ok(()) } else { Err(Errno::EPERM.into()) }
}

fn pick(wanted: u32, old: u32) -> u32 {
    if wanted == SAME { old } else { wanted }
}

/// The id that a user's number means; [`SAME`] stays. EINVAL: no user of the caller's namespace.
fn user(cx: &Cx, id: Uid) -> SysResult<u32> {
    known(cx, Ids::Users, id.raw())
}

/// As [`user`] of a group.
fn group(cx: &Cx, id: Gid) -> SysResult<u32> {
    known(cx, Ids::Groups, id.raw())
}

fn known(cx: &Cx, ids: Ids, id: u32) -> SysResult<u32> {
    match id {
        SAME => Ok(SAME),
        id => cx.task.creds().ns.to_kernel(ids, id).ok_or(Errno::EINVAL.into()),
    }
}

pub fn setuid(cx: &mut Cx, uid: Uid) -> SysResult {
    let uid = user(cx, uid)?;
    if uid == SAME {
        return Err(Errno::EINVAL.into());
    }
    change(cx, |c| {
        if c.has(cap::SETUID) {
            c.uid = uid;
            c.suid = uid;
        } else {
            allowed(false, uid, &[c.uid, c.suid])?;
        }
        c.euid = uid;
        c.fsuid = uid;
        Ok(())
    })
}

pub fn setgid(cx: &mut Cx, gid: Gid) -> SysResult {
    let gid = group(cx, gid)?;
    if gid == SAME {
        return Err(Errno::EINVAL.into());
    }
    change(cx, |c| {
        if c.has(cap::SETGID) {
            c.gid = gid;
            c.sgid = gid;
        } else {
            allowed(false, gid, &[c.gid, c.sgid])?;
        }
        c.egid = gid;
        c.fsgid = gid;
        Ok(())
    })
}

pub fn setreuid(cx: &mut Cx, ruid: Uid, euid: Uid) -> SysResult {
    let (ruid, euid) = (user(cx, ruid)?, user(cx, euid)?);
    change(cx, |c| {
        let privileged = c.has(cap::SETUID);
        allowed(privileged, ruid, &[c.uid, c.euid])?;
        allowed(privileged, euid, &[c.uid, c.euid, c.suid])?;
        let old_uid = c.uid;
        c.uid = pick(ruid, c.uid);
        c.euid = pick(euid, c.euid);
        if ruid != SAME || euid != SAME && euid != old_uid {
            c.suid = c.euid;
        }
        c.fsuid = c.euid;
        Ok(())
    })
}

pub fn setregid(cx: &mut Cx, rgid: Gid, egid: Gid) -> SysResult {
    let (rgid, egid) = (group(cx, rgid)?, group(cx, egid)?);
    change(cx, |c| {
        let privileged = c.has(cap::SETGID);
        allowed(privileged, rgid, &[c.gid, c.egid])?;
        allowed(privileged, egid, &[c.gid, c.egid, c.sgid])?;
        let old_gid = c.gid;
        c.gid = pick(rgid, c.gid);
        c.egid = pick(egid, c.egid);
        if rgid != SAME || egid != SAME && egid != old_gid {
            c.sgid = c.egid;
        }
        c.fsgid = c.egid;
        Ok(())
    })
}

pub fn setresuid(cx: &mut Cx, ruid: Uid, euid: Uid, suid: Uid) -> SysResult {
    let (ruid, euid, suid) = (user(cx, ruid)?, user(cx, euid)?, user(cx, suid)?);
    change(cx, |c| {
        let privileged = c.has(cap::SETUID);
        for id in [ruid, euid, suid] {
            allowed(privileged, id, &[c.uid, c.euid, c.suid])?;
        }
        c.uid = pick(ruid, c.uid);
        c.euid = pick(euid, c.euid);
        c.suid = pick(suid, c.suid);
        c.fsuid = c.euid;
        Ok(())
    })
}

pub fn setresgid(cx: &mut Cx, rgid: Gid, egid: Gid, sgid: Gid) -> SysResult {
    let (rgid, egid, sgid) = (group(cx, rgid)?, group(cx, egid)?, group(cx, sgid)?);
    change(cx, |c| {
        let privileged = c.has(cap::SETGID);
        for id in [rgid, egid, sgid] {
            allowed(privileged, id, &[c.gid, c.egid, c.sgid])?;
        }
        c.gid = pick(rgid, c.gid);
        c.egid = pick(egid, c.egid);
        c.sgid = pick(sgid, c.sgid);
        c.fsgid = c.egid;
        Ok(())
    })
}

/// Returns the old id whatever happens.
pub fn setfsuid(cx: &mut Cx, fsuid: Uid) -> SysResult {
    let old = cx.task.creds();
    let uid = user(cx, fsuid).unwrap_or(SAME);
    if uid != SAME && (old.has(cap::SETUID) || [old.uid, old.euid, old.suid, old.fsuid].contains(&uid)) {
        change(cx, |c| {
            c.fsuid = uid;
            c.fix_after_setfsuid(&old);
            Ok(())
        })?;
    }
    Ok(u64::from(old.ns.user(old.fsuid)))
}

/// Returns the old id whatever happens.
pub fn setfsgid(cx: &mut Cx, fsgid: Gid) -> SysResult {
    let old = cx.task.creds();
    let gid = group(cx, fsgid).unwrap_or(SAME);
    if gid != SAME && (old.has(cap::SETGID) || [old.gid, old.egid, old.sgid, old.fsgid].contains(&gid)) {
        change(cx, |c| {
            c.fsgid = gid;
            Ok(())
        })?;
    }
    Ok(u64::from(old.ns.group(old.fsgid)))
}

pub fn setgroups(cx: &mut Cx, size: i32, list: Addr) -> SysResult {
    let creds = cx.task.creds();
    if !creds.has(cap::SETGID) || !creds.ns.may_setgroups() {
        return Err(Errno::EPERM.into());
    }
    let count = usize::try_from(size).ok().filter(|n| *n <= GROUPS_MAX).ok_or(Errno::EINVAL)?;
    let mut groups = vec![0u32; count];
    cx.copy_in(list.addr(), groups.as_mut_bytes())?;
    for id in &mut groups {
        *id = creds.ns.to_kernel(Ids::Groups, *id).ok_or(Errno::EINVAL)?;
    }
    groups.sort_unstable();
    change(cx, |c| {
        c.groups = groups;
        Ok(())
    })
}
