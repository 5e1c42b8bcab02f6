//! mmap(2), munmap(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::mm::{PAGE, Request, source};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

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
        MAP_SHARED_VALIDATE if flags & (MAP_SYNC | MAP_UNINITIALIZED) == 0 => {}
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
    let prot = prot & (PROT_READ | PROT_WRITE | PROT_EXEC);
    let source = match &file {
        Some(file) => source(file, prot, flags, offset)?,
        None => None,
    };
    if flags & MAP_GROWSDOWN != 0 && (flags & MAP_TYPE != MAP_PRIVATE || source.is_some()) {
        // Linux lets files and shared memory have the flag, too: they do not grow here.
        cx.note_gap("flag MAP_GROWSDOWN of no private anonymous memory", Errno::EINVAL);
    }
    mm.set_room(&cx.task.process);
    let request = Request { addr: addr.addr(), len: length as u64, prot, flags, source, name: "" };
    let full = request.source.is_some() || flags & MAP_TYPE != MAP_PRIVATE;
    mm.map(cx.memory_port(full)?, &request)
}

/// munmap(2)
pub fn munmap(cx: &mut Cx, addr: Addr, length: usize) -> SysResult {
    let mm = cx.task.mm();
    mm.unmap(cx.memory_port(false)?, addr.addr(), length as u64).map(|()| 0)
}
