//! setuid(2), setreuid(2), setresuid(2), setfsuid(2), the same for groups, setgroups(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::{Creds, cap};
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
    cx.task.set_creds(new);
    cx.task.tell_own();
    Ok(0)
}

fn allowed(privileged: bool, wanted: u32, among: &[u32]) -> SysResult<()> {
    if privileged || wanted == SAME || among.contains(&wanted) { Ok(()) } else { Err(Errno::EPERM.into()) }
}

fn pick(wanted: u32, old: u32) -> u32 {
    if wanted == SAME { old } else { wanted }
}

pub fn setuid(cx: &mut Cx, uid: Uid) -> SysResult {
    let uid = uid.raw();
    if uid == SAME {
        return Err(Errno::EINVAL.into());
    }
    change(cx, |c| {
        if c.capable(cap::SETUID) {
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
    let gid = gid.raw();
    if gid == SAME {
        return Err(Errno::EINVAL.into());
    }
    change(cx, |c| {
        if c.capable(cap::SETGID) {
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
    let (ruid, euid) = (ruid.raw(), euid.raw());
    change(cx, |c| {
        let privileged = c.capable(cap::SETUID);
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
    let (rgid, egid) = (rgid.raw(), egid.raw());
    change(cx, |c| {
        let privileged = c.capable(cap::SETGID);
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
    change(cx, |c| {
        let privileged = c.capable(cap::SETUID);
        for id in [ruid, euid, suid] {
            allowed(privileged, id.raw(), &[c.uid, c.euid, c.suid])?;
        }
        c.uid = pick(ruid.raw(), c.uid);
        c.euid = pick(euid.raw(), c.euid);
        c.suid = pick(suid.raw(), c.suid);
        c.fsuid = c.euid;
        Ok(())
    })
}

pub fn setresgid(cx: &mut Cx, rgid: Gid, egid: Gid, sgid: Gid) -> SysResult {
    change(cx, |c| {
        let privileged = c.capable(cap::SETGID);
        for id in [rgid, egid, sgid] {
            allowed(privileged, id.raw(), &[c.gid, c.egid, c.sgid])?;
        }
        c.gid = pick(rgid.raw(), c.gid);
        c.egid = pick(egid.raw(), c.egid);
        c.sgid = pick(sgid.raw(), c.sgid);
        c.fsgid = c.egid;
        Ok(())
    })
}

/// Returns the old id whatever happens.
pub fn setfsuid(cx: &mut Cx, fsuid: Uid) -> SysResult {
    let old = cx.task.creds();
    let uid = fsuid.raw();
    if uid != SAME && (old.capable(cap::SETUID) || [old.uid, old.euid, old.suid, old.fsuid].contains(&uid)) {
        change(cx, |c| {
            c.fsuid = uid;
            c.fix_after_setfsuid(&old);
            Ok(())
        })?;
    }
    Ok(u64::from(old.fsuid))
}

/// Returns the old id whatever happens.
pub fn setfsgid(cx: &mut Cx, fsgid: Gid) -> SysResult {
    let old = cx.task.creds();
    let gid = fsgid.raw();
    if gid != SAME && (old.capable(cap::SETGID) || [old.gid, old.egid, old.sgid, old.fsgid].contains(&gid)) {
        change(cx, |c| {
            c.fsgid = gid;
            Ok(())
        })?;
    }
    Ok(u64::from(old.fsgid))
}

pub fn setgroups(cx: &mut Cx, size: i32, list: Addr) -> SysResult {
    if !cx.task.creds().capable(cap::SETGID) {
        return Err(Errno::EPERM.into());
    }
    let count = usize::try_from(size).ok().filter(|n| *n <= GROUPS_MAX).ok_or(Errno::EINVAL)?;
    let mut groups = vec![0u32; count];
    cx.copy_in(list.addr(), groups.as_mut_bytes())?;
    if groups.contains(&SAME) {
        return Err(Errno::EINVAL.into());
    }
    groups.sort_unstable();
    change(cx, |c| {
        c.groups = groups;
        Ok(())
    })
}
