//! getuid(2), getgid(2), getresuid(2), getgroups(2) and kin.

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::errno::Errno;
use zerocopy::IntoBytes;

pub fn getuid(cx: &mut Cx) -> SysResult {
    let creds = cx.task.creds();
    Ok(creds.ns.user(creds.uid).into())
}

pub fn geteuid(cx: &mut Cx) -> SysResult {
    let creds = cx.task.creds();
    Ok(creds.ns.user(creds.euid).into())
}

pub fn getgid(cx: &mut Cx) -> SysResult {
    let creds = cx.task.creds();
    Ok(creds.ns.group(creds.gid).into())
}

pub fn getegid(cx: &mut Cx) -> SysResult {
    let creds = cx.task.creds();
    Ok(creds.ns.group(creds.egid).into())
}

pub fn getresuid(cx: &mut Cx, ruid: Out<u32>, euid: Out<u32>, suid: Out<u32>) -> SysResult {
    let creds = cx.task.creds();
    cx.write_value(ruid.addr(), &creds.ns.user(creds.uid))?;
    cx.write_value(euid.addr(), &creds.ns.user(creds.euid))?;
    cx.write_value(suid.addr(), &creds.ns.user(creds.suid))?;
    Ok(0)
}

pub fn getresgid(cx: &mut Cx, rgid: Out<u32>, egid: Out<u32>, sgid: Out<u32>) -> SysResult {
    let creds = cx.task.creds();
    cx.write_value(rgid.addr(), &creds.ns.group(creds.gid))?;
    cx.write_value(egid.addr(), &creds.ns.group(creds.egid))?;
    cx.write_value(sgid.addr(), &creds.ns.group(creds.sgid))?;
    Ok(0)
}

pub fn getgroups(cx: &mut Cx, size: i32, list: Addr) -> SysResult {
    let room = usize::try_from(size).map_err(|_| Errno::EINVAL)?;
    let creds = cx.task.creds();
    if room != 0 {
        if creds.groups.len() > room {
            return Err(Errno::EINVAL.into());
        }
        let shown: Vec<u32> = creds.groups.iter().map(|id| creds.ns.group(*id)).collect();
        cx.copy_out(list.addr(), shown.as_bytes())?;
    }
    Ok(creds.groups.len() as u64)
}
