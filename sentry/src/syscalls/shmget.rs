//! shmget(2), shmat(2), shmdt(2), shmctl(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::ipc::sysv::shm::{SHMALL, SHMMAX, SHMMNI, Segment};
use crate::ipc::sysv::{EXEC, Object, READ, WRITE};
use crate::mm::area::Backing;
use crate::mm::{PAGE, Request, Source, round_up};
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// shmget(2)
pub fn shmget(cx: &mut Cx, key: i32, size: usize, shmflg: IpcFlags) -> SysResult {
    let size = size as u64;
    let flags = shmflg.bits();
    let own = &cx.task.process.name;
    let big_enough = |segment: &Segment| {
        if segment.size() < size { Err(Errno::EINVAL.into()) } else { Ok(()) }
    };
    let id = cx.task.ipc().sysv.shm.get((key, flags), &cx.task.creds(), SHMMNI, big_enough, |perm, _| {
        if size == 0 || size > SHMMAX {
            return Err(Errno::EINVAL.into());
        }
        if flags & SHM_HUGETLB != 0 {
            return Err(crate::fail::Fail::gap(Errno::ENOMEM, "shmget flag SHM_HUGETLB"));
        }
        Segment::new(perm, size, own)
    })?;
    Ok(u64::from(id.cast_unsigned()))
}

/// shmat(2)
pub fn shmat(cx: &mut Cx, shmid: i32, shmaddr: Addr, shmflg: IpcFlags) -> SysResult {
    let flags = shmflg.bits();
    let mut addr = shmaddr.addr();
    let mut map = MAP_SHARED;
    if shmid < 0 {
        return Err(Errno::EINVAL.into());
    }
    if addr != 0 {
        if addr & (PAGE - 1) != 0 {
            if flags & SHM_RND == 0 {
                return Err(Errno::EINVAL.into());
            }
            addr &= !(PAGE - 1);
            if addr == 0 && flags & SHM_REMAP != 0 {
                return Err(Errno::EINVAL.into());
            }
        }
        map |= MAP_FIXED;
    } else if flags & SHM_REMAP != 0 {
        return Err(Errno::EINVAL.into());
    }
    let read_only = flags & SHM_RDONLY != 0;
    let (mut prot, mut wanted) = match read_only {
        true => (PROT_READ, READ),
        false => (PROT_READ | PROT_WRITE, READ | WRITE),
    };
    if flags & SHM_EXEC != 0 {
        prot |= PROT_EXEC;
        wanted |= EXEC;
    }
    let segment = cx.task.ipc().sysv.shm.find(shmid)?;
    if !segment.perm().may(&cx.task.creds(), wanted) {
        return Err(Errno::EACCES.into());
    }
    cx.port()?;
    let mm = cx.task.mm();
    let len = round_up(segment.size()).ok_or(Errno::EINVAL)?;
    if addr != 0 && flags & SHM_REMAP == 0 {
        let end = addr.checked_add(len).ok_or(Errno::EINVAL)?;
        if mm.layout.lock().overlaps(addr, end) {
            return Err(Errno::EINVAL.into());
        }
    }
    mm.check_lock(cx.task, len, false)?;
    mm.set_room(&cx.task.process);
    let (attached, memory) = segment.attach(&cx.task.process.name, read_only)?;
    let fd = if read_only { memory.read_only } else { memory.both };
    let source = Some(Source { fd, file: None, offset: 0 });
    let request = Request { addr, len, prot, flags: map, source, name: "", attached: Some(attached) };
    mm.map(cx.port()?, &request)
}

/// shmdt(2)
pub fn shmdt(cx: &mut Cx, shmaddr: Addr) -> SysResult {
    let addr = shmaddr.addr();
    if addr & (PAGE - 1) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mm = cx.task.mm();
    let own = cx.task.process.name.clone();
    let port = cx.port()?;
    // The first piece from the address on that begins where an attachment to that address would.
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    let mut of: Option<(Arc<Segment>, u64)> = None;
    for (start, area) in mm.areas().into_iter().filter(|(start, _)| *start >= addr) {
        let (Some(attached), Backing::Host { offset, .. }) = (&area.attached, &area.backing) else {
            continue;
        };
        if start.checked_sub(*offset) != Some(addr) {
            continue;
        }
        let segment = attached.segment();
        match &of {
            None => {
                let end = addr.saturating_add(round_up(segment.size()).unwrap_or(u64::MAX));
                of = Some((segment.clone(), end));
            }
            Some((known, end)) if Arc::ptr_eq(known, segment) && start < *end => {}
            Some(_) => continue,
        }
        pieces.push((start, area.end.saturating_sub(start)));
    }
    let Some((segment, _)) = of else { return Err(Errno::EINVAL.into()) };
    for (start, len) in pieces {
        mm.unmap(port, start, len)?;
    }
    segment.detached_by(&own);
    Ok(0)
}

/// shmctl(2)
pub fn shmctl(cx: &mut Cx, shmid: i32, op: IpcCmd, buf: Addr) -> SysResult {
    if op.bits() < 0 || shmid < 0 {
        return Err(Errno::EINVAL.into());
    }
    let table = &cx.task.ipc().sysv.shm;
    let creds = cx.task.creds();
    match op.bits() {
        IPC_INFO => {
            let info = Shminfo {
                shmmax: SHMMAX,
                shmmin: 1,
                shmmni: SHMMNI as u64,
                shmseg: SHMMNI as u64,
                shmall: SHMALL,
                ..zerocopy::FromZeros::new_zeroed()
            };
            cx.write_value(buf.addr(), &info)?;
            Ok(table.highest())
        }
        SHM_INFO => {
            let all = table.all();
            let pages = |bytes: u64| bytes.div_ceil(PAGE);
            let info = ShmUsage {
                used_ids: i32::try_from(all.len()).unwrap_or(i32::MAX),
                shm_tot: all.iter().map(|(_, s)| pages(s.size())).sum(),
                shm_rss: all.iter().map(|(_, s)| pages(s.resident())).sum(),
                ..zerocopy::FromZeros::new_zeroed()
            };
            cx.write_value(buf.addr(), &info)?;
            Ok(table.highest())
        }
        cmd @ (IPC_STAT | SHM_STAT | SHM_STAT_ANY) => {
            let (id, segment) =
                if cmd == IPC_STAT { (shmid, table.find(shmid)?) } else { table.at(shmid)? };
            if cmd != SHM_STAT_ANY && !segment.perm().may(&creds, READ) {
                return Err(Errno::EACCES.into());
            }
            cx.write_value(buf.addr(), &segment.stat(id, cx.task))?;
            Ok(if cmd == IPC_STAT { 0 } else { u64::from(id.cast_unsigned()) })
        }
        IPC_SET => {
            let new: Shmid = cx.read_value(buf.addr())?;
            let segment = table.find(shmid)?;
            segment.perm().check_owner(&creds)?;
            segment.set(&crate::ipc::sysv::owner_from(&cx.task.creds().ns, new.shm_perm)?);
            Ok(0)
        }
        IPC_RMID => {
            let segment = table.find(shmid)?;
            segment.perm().check_owner(&creds)?;
            segment.remove();
            table.hide(shmid);
            if segment.is_gone() {
                table.remove(shmid);
            }
            Ok(0)
        }
        cmd @ (SHM_LOCK | SHM_UNLOCK) => {
            let segment = table.find(shmid)?;
            if !creds.capable(crate::task::creds::cap::IPC_LOCK) {
                let perm = segment.perm();
                if creds.euid != perm.uid && creds.euid != perm.cuid {
                    return Err(Errno::EPERM.into());
                }
                if cmd == SHM_LOCK && cx.task.process.limit(RLIMIT_MEMLOCK) == 0 {
                    return Err(Errno::EPERM.into());
                }
            }
            segment.lock(cmd == SHM_LOCK);
            Ok(0)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}
