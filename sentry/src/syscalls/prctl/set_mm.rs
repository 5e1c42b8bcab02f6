//! PR_SET_MM: where a program says that its parts lie. It changes what /proc shows, and the end of the heap.

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::mm::{Layout, Marks};
use crate::task::creds::cap;
use crate::vfs::file::File;
use std::sync::Arc;
use syscall_table::abi::prctl::*;
use syscall_table::abi::{PROT_EXEC, PROT_READ, PROT_WRITE, RLIM_INFINITY, RLIMIT_DATA, S_IFMT, S_IFREG};
use syscall_table::errno::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// struct prctl_mm_map.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct Map {
    /// As [`Marks`], but for the stack, which comes behind the heap.
    addresses: [u64; 11],
    auxv: u64,
    auxv_size: u32,
    exe_fd: u32,
}

const LOWEST: u64 = 0x1_0000;
const HIGHEST: u64 = 0x7fff_ffff_f000;
/// "Leave the program as it is."
const NO_FD: u32 = u32::MAX;
/// AT_VECTOR_SIZE of x86-64: pairs of words.
const AUXV_MOST: u64 = 8 * 2 * (20 + 3 + 1);

pub(super) fn set_mm(cx: &mut Cx, what: u64, addr: u64, arg4: u64, arg5: u64) -> SysResult {
    let plain = what != PR_SET_MM_AUXV && what != PR_SET_MM_MAP && what != PR_SET_MM_MAP_SIZE;
    if arg5 != 0 || plain && arg4 != 0 {
        return Err(Errno::EINVAL.into());
    }
    match what {
        PR_SET_MM_MAP_SIZE => {
            cx.write_value(addr, &(size_of::<Map>() as u32))?;
            return Ok(0);
        }
        PR_SET_MM_MAP => return map(cx, addr, arg4),
        _ => {}
    }
    if !cx.task.creds().capable(cap::SYS_RESOURCE) {
        return Err(Errno::EPERM.into());
    }
    if what == PR_SET_MM_EXE_FILE {
        let fd = i32::try_from(addr as u32).map_err(|_| Errno::EBADF)?;
        let file = program(cx, fd)?;
        return replace(cx, file);
    }
    if what == PR_SET_MM_AUXV {
        return auxv(cx, addr, arg4);
    }
    let place = what.checked_sub(1).and_then(|at| usize::try_from(at).ok()).ok_or(Errno::EINVAL)?;
    if !(LOWEST..HIGHEST).contains(&addr) {
        return Err(Errno::EINVAL.into());
    }
    let data = cx.task.process.limit(RLIMIT_DATA);
    let mm = cx.task.mm();
    let mut layout = mm.layout.lock();
    let mut marks = layout.marks();
    *marks.get_mut(place).ok_or(Errno::EINVAL)? = addr;
    let prot = layout.find(addr).map(|(_, area)| area.prot);
    check(&layout, &marks, data)?;
    let within = |bits: i32, not: i32| prot.is_some_and(|prot| prot & bits == bits && prot & not == 0);
    let fits = match what {
        PR_SET_MM_START_CODE | PR_SET_MM_END_CODE => within(PROT_READ | PROT_EXEC, PROT_WRITE),
        PR_SET_MM_START_DATA | PR_SET_MM_END_DATA => within(PROT_READ | PROT_WRITE, PROT_EXEC),
        PR_SET_MM_START_BRK | PR_SET_MM_BRK => true,
        _ if prot.is_none() => return Err(Errno::EFAULT.into()),
        _ => true,
    };
    if !fits {
        return Err(Errno::EINVAL.into());
    }
    layout.set_marks(marks);
    Ok(0)
}

/// What must hold of the marks (validate_prctl_map_addr).
fn check(layout: &Layout, marks: &Marks, data: u64) -> SysResult<()> {
    let [
        start_code,
        end_code,
        start_data,
        end_data,
        _,
        start_brk,
        brk,
        arg_start,
        arg_end,
        env_start,
        env_end,
    ] = *marks;
    let inside = marks.iter().all(|at| (LOWEST..HIGHEST).contains(at));
    let ordered = start_code < end_code
        && start_data <= end_data
        && start_brk <= brk
        && arg_start <= arg_end
        && env_start <= env_end;
    let size = brk.saturating_sub(start_brk).saturating_add(end_data.saturating_sub(start_data));
    // The heap's records are the sentry's own: its areas stay where they are.
    let heap = start_brk >= layout.end() || brk >= layout.end();
    if !inside || !ordered || heap || data != RLIM_INFINITY && size > data {
        return Err(Errno::EINVAL.into());
    }
    Ok(())
}

/// PR_SET_MM_MAP: all at once, which needs no right but for the program's file.
fn map(cx: &mut Cx, addr: u64, size: u64) -> SysResult {
    if size != size_of::<Map>() as u64 {
        return Err(Errno::EINVAL.into());
    }
    let mut map: Map = cx.read_value(addr)?;
    if let Some(heap_and_stack) = map.addresses.get_mut(4..7) {
        heap_and_stack.rotate_right(1);
    }
    let data = cx.task.process.limit(RLIMIT_DATA);
    check(&cx.task.mm().layout.lock(), &map.addresses, data)?;
    let size = u64::from(map.auxv_size);
    if size != 0 && (map.auxv == 0 || size > AUXV_MOST || !(LOWEST..HIGHEST).contains(&map.auxv)) {
        return Err(Errno::EINVAL.into());
    }
    if map.exe_fd != NO_FD {
        let creds = cx.task.creds();
        if !creds.capable(cap::SYS_ADMIN) && !creds.capable(cap::CHECKPOINT_RESTORE) {
            return Err(Errno::EPERM.into());
        }
        let fd = i32::try_from(map.exe_fd).map_err(|_| Errno::EBADF)?;
        let file = program(cx, fd)?;
        replace(cx, file)?;
    }
    if size != 0 {
        auxv(cx, map.auxv, size)?;
    }
    cx.task.mm().layout.lock().set_marks(map.addresses);
    Ok(0)
}

fn auxv(cx: &mut Cx, addr: u64, size: u64) -> SysResult {
    if addr == 0 || size > AUXV_MOST {
        return Err(Errno::EINVAL.into());
    }
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| Errno::EINVAL)?];
    cx.copy_in(addr, &mut bytes)?;
    // It ends with AT_NULL whatever was given.
    bytes.resize(AUXV_MOST as usize, 0);
    if let Some(end) = bytes.len().checked_sub(16).and_then(|at| bytes.get_mut(at..)) {
        end.fill(0);
    }
    *cx.task.process.auxv.lock() = bytes;
    Ok(0)
}

/// A file that may be shown as the program: a regular one that the caller may execute.
fn program(cx: &mut Cx, fd: i32) -> SysResult<Arc<File>> {
    let file = cx.task.files().get(fd)?;
    let place = file.path.clone().ok_or(Errno::EACCES)?;
    if file.ops.attr()?.mode & S_IFMT != S_IFREG {
        return Err(Errno::EACCES.into());
    }
    cx.kernel().vfs.open_exec_at(cx.task, place)
}

/// EBUSY as long as something of the old program is mapped.
fn replace(cx: &mut Cx, file: Arc<File>) -> SysResult {
    let process = &cx.task.process;
    let place = |file: &File| file.path.as_ref().map(|p| p.display(None));
    let old = process.exe_file.lock().clone();
    let old = old.as_ref().and_then(|f| place(f));
    let mapped = cx.task.mm().areas().iter().any(|(_, area)| area.file().and_then(|f| place(f)) == old);
    if old.is_some() && mapped {
        return Err(Errno::EBUSY.into());
    }
    let shown = file.path.as_ref().map(|p| p.display(cx.task.fs().root().as_ref()));
    if let Some(shown) = shown {
        *process.exe.lock() = shown;
    }
    let old = process.exe_file.lock().replace(file);
    drop(old);
    Ok(0)
}
