//! /proc/sysvipc: System V objects, one a line.

use super::text;
use crate::fail::SysResult;
use crate::fs::pseudo::ino;
use crate::task::Task;
use crate::vfs::inode::Inode;
use std::fmt::Write;
use std::sync::Arc;

fn file(
    name: &'static [u8],
    make: impl Fn(&Task) -> SysResult<Vec<u8>> + Send + Sync + 'static,
) -> (&'static [u8], Arc<dyn Inode>) {
    (name, text(ino(&[b"sysvipc", name]), 0o444, (0, 0), make))
}

/// The files of the directory.
pub(super) fn files() -> Vec<(&'static [u8], Arc<dyn Inode>)> {
    vec![file(b"shm", shm), file(b"sem", sem), file(b"msg", msg)]
}

fn shm(task: &Task) -> SysResult<Vec<u8>> {
    let mut out = String::from(
        "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n",
    );
    for (id, segment) in task.ipc().sysv.shm.all() {
        let s = segment.stat(id, task);
        let p = s.shm_perm;
        let _ = writeln!(
            out,
            "{:10} {id:10}  {:4o} {:21} {:5} {:5}  {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10} {:21} {:21}",
            p.key,
            p.mode,
            s.shm_segsz,
            s.shm_cpid,
            s.shm_lpid,
            s.shm_nattch,
            p.uid,
            p.gid,
            p.cuid,
            p.cgid,
            s.shm_atime,
            s.shm_dtime,
            s.shm_ctime,
            segment.resident(),
            0
        );
    }
    Ok(out.into_bytes())
}

fn sem(task: &Task) -> SysResult<Vec<u8>> {
    let mut out = String::from(
        "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n",
    );
    let ns = task.creds().ns.clone();
    for (id, set) in task.ipc().sysv.sem.all() {
        let s = set.lock();
        let p = &s.perm;
        let _ = writeln!(
            out,
            "{:10} {id:10}  {:4o} {:10} {:5} {:5} {:5} {:5} {:10} {:10}",
            p.key,
            p.mode,
            s.sems.len(),
            ns.user(p.uid),
            ns.group(p.gid),
            ns.user(p.cuid),
            ns.group(p.cgid),
            s.otime,
            s.ctime
        );
    }
    Ok(out.into_bytes())
}

fn msg(task: &Task) -> SysResult<Vec<u8>> {
    let mut out = String::from(
        "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime      ctime\n",
    );
    let creds = task.creds();
    for (id, queue) in task.ipc().sysv.msg.all() {
        let s = queue.lock().stat(id, &creds.ns, &task.process.pidns);
        let p = s.msg_perm;
        let _ = writeln!(
            out,
            "{:10} {id:10}  {:4o}  {:10} {:10} {:5} {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10}",
            p.key,
            p.mode,
            s.msg_cbytes,
            s.msg_qnum,
            s.msg_lspid,
            s.msg_lrpid,
            p.uid,
            p.gid,
            p.cuid,
            p.cgid,
            s.msg_stime,
            s.msg_rtime,
            s.msg_ctime
        );
    }
    Ok(out.into_bytes())
}
