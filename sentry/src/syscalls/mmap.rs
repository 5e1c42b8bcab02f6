//! mmap(2), munmap(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::mm::{PAGE, Request, source};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Flags that MAP_SHARED_VALIDATE admits: no file here is mapped past the page cache (MAP_SYNC).
const VALIDATED: i32 = MAP_TYPE
    | MAP_FIXED
    | MAP_ANONYMOUS
    | MAP_32BIT
    | MAP_ABOVE4G
    | MAP_GROWSDOWN
    | MAP_DENYWRITE
    | MAP_EXECUTABLE
    | MAP_LOCKED
    | MAP_NORESERVE
    | MAP_POPULATE
    | MAP_NONBLOCK
    | MAP_STACK
    | MAP_HUGETLB
    | MAP_FIXED_NOREPLACE
    | HUGE_SIZE;
/// The size of huge pages (MAP_HUGE_SHIFT).
const HUGE_SIZE: i32 = -1 << MAP_HUGE_SHIFT;

/// mmap(2)
pub fn mmap(
    cx: &mut Cx,
    addr: Addr,
    length: usize,
    prot: MmapProt,
    flags: MmapFlags,
    fd: Fd,
    offset: u64,
) -> SysResult {
    let flags = flags.bits();
    let prot = prot.bits();
    if offset & (PAGE - 1) != 0 || length == 0 {
        return Err(Errno::EINVAL.into());
    }
    match flags & MAP_TYPE {
        MAP_SHARED | MAP_PRIVATE => {}
        MAP_SHARED_VALIDATE if flags & !VALIDATED == 0 => {}
        MAP_SHARED_VALIDATE => return Err(Errno::EOPNOTSUPP.into()),
        MAP_DROPPABLE => return Err(Fail::gap(Errno::EINVAL, "flag MAP_DROPPABLE")),
        _ => return Err(Errno::EINVAL.into()),
    }
    if flags & MAP_HUGETLB != 0 {
        // What a host without reserved huge pages answers.
        return Err(Fail::gap(Errno::ENOMEM, "flag MAP_HUGETLB"));
    }
    cx.memory_port(flags & MAP_ANONYMOUS == 0)?;
    let mm = cx.task.mm();
    let file = match flags & MAP_ANONYMOUS {
        0 => Some(cx.task.files().get(fd.raw())?),
        _ => None,
    };
    let prot = super::personality::implied(cx, prot & (PROT_READ | PROT_WRITE | PROT_EXEC));
    if prot & PROT_EXEC != 0 && file.as_ref().is_some_and(|file| file.no_exec()) {
        return Err(Errno::EPERM.into());
    }
    let source = match &file {
        Some(file) => source(file, prot, flags, offset)?,
        None => None,
    };
    if flags & MAP_GROWSDOWN != 0 && (flags & MAP_TYPE != MAP_PRIVATE || source.is_some()) {
        // Linux lets files and shared memory have the flag, too: they do not grow here.
        cx.note_gap("flag MAP_GROWSDOWN of no private anonymous memory", Errno::EINVAL);
    }
    mm.check_lock(cx.task, length as u64, flags & MAP_LOCKED != 0)?;
    mm.set_room(&cx.task.process);
    let request =
        Request { addr: addr.addr(), len: length as u64, prot, flags, source, name: "", attached: None };
    let full = request.source.is_some() || flags & MAP_TYPE != MAP_PRIVATE;
    mm.map(cx.memory_port(full)?, &request)
}

/// munmap(2)
pub fn munmap(cx: &mut Cx, addr: Addr, length: usize) -> SysResult {
    let mm = cx.task.mm();
    mm.unmap(cx.memory_port(false)?, addr.addr(), length as u64).map(|()| 0)
}
