//! kcmp(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::ipc::epoll::Epoll;
use crate::task::Task;
use crate::task::access::may_inspect;
use crate::vfs::file::File;
use std::cmp::Ordering;
use std::sync::Arc;
use syscall_table::abi::seccomp::*;
use syscall_table::errno::Errno;

/// 0, 1 or 2: equal, less or greater in an order that says nothing more.
fn compare(a: u64, b: u64) -> u64 {
    match a.cmp(&b) {
        Ordering::Equal => 0,
        Ordering::Less => 1,
        Ordering::Greater => 2,
    }
}

fn file(task: &Task, index: u64) -> SysResult<Arc<File>> {
    task.files().get_any(i32::try_from(index).map_err(|_| Errno::EBADF)?)
}

fn place<T: ?Sized>(of: &Arc<T>) -> u64 {
    Arc::as_ptr(of).cast::<()>() as u64
}

fn task(cx: &Cx, pid: Pid) -> SysResult<Arc<Task>> {
    let tree = &cx.kernel().tree;
    // Process 1 has nothing that could be compared.
    if pid.raw() == 1 { Err(Errno::EPERM.into()) } else { tree.task(pid.raw()) }
}

pub fn kcmp(cx: &mut Cx, pid1: Pid, pid2: Pid, kind: KcmpType, idx1: u64, idx2: u64) -> SysResult {
    let (a, b) = (task(cx, pid1)?, task(cx, pid2)?);
    if !may_inspect(cx.task, &a) || !may_inspect(cx.task, &b) {
        return Err(Errno::EPERM.into());
    }
    let same = |a: u64, b: u64| Ok(compare(a, b));
    match kind.bits() {
        KCMP_FILE => same(file(&a, idx1)?.id, file(&b, idx2)?.id),
        KCMP_VM => same(place(&a.mm()), place(&b.mm())),
        KCMP_FILES => same(place(&a.files()), place(&b.files())),
        KCMP_FS => same(place(&a.fs()), place(&b.fs())),
        KCMP_SIGHAND => same(place(&a.process.sighand()), place(&b.process.sighand())),
        // No task has an I/O context or undo list: equal, as Linux has it then.
        KCMP_IO | KCMP_SYSVSEM => Ok(0),
        KCMP_EPOLL_TFD => {
            let slot: KcmpEpollSlot = cx.read_value(idx2)?;
            let watched = file(&a, idx1)?;
            let epoll = file(&b, u64::from(slot.efd))?;
            let epoll = epoll.downcast::<Epoll>().ok_or(Errno::EINVAL)?;
            let target = epoll.target(slot.tfd.cast_signed(), slot.toff).ok_or(Errno::ENOENT)?;
            same(watched.id, target)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}
