//! unshare(2), setns(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use std::sync::Arc;
use syscall_table::abi::clone::*;
use syscall_table::errno::Errno;

const NAMESPACES: u64 = CLONE_NEWTIME
    | CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET;

pub fn unshare(cx: &mut Cx, flags: CloneFlags) -> SysResult {
    let flags = flags.bits() & 0xffff_ffff;
    let known = CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;
    if flags & !(known | NAMESPACES) != 0 {
        return Err(Errno::EINVAL.into());
    }
    if flags & NAMESPACES != 0 {
        return Err(Fail::gap(
            Errno::EPERM,
            format!("unshare flags {:#x}: new namespace", flags & NAMESPACES),
        ));
    }
    // As Linux: these only say that the caller has one thread.
    let alone = CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;
    if flags & alone != 0 && cx.task.process.thread_count() > 1 {
        return Err(Errno::EINVAL.into());
    }
    if flags & CLONE_FILES != 0 {
        let own = Arc::new(cx.task.files().duplicate());
        let shared = std::mem::replace(&mut *cx.task.files.lock(), own);
        drop(shared);
    }
    if flags & CLONE_SYSVSEM != 0 {
        crate::ipc::sysv::sem::leave(cx.kernel(), cx.task);
    }
    if flags & CLONE_FS != 0 {
        let own = Arc::new(cx.task.fs().duplicate());
        *cx.task.fs.lock() = own;
    }
    Ok(0)
}
