//! /proc/PID/mem: the memory of a process, by address.

use super::{PidFile, Who};
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::ptrace::force;
use crate::task::Task;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps, Written};
use crate::vfs::inode::Inode;
use std::sync::Arc;
use syscall_table::errno::Errno;

pub(super) struct Mem {
    pub(super) inode: Arc<PidFile>,
    pub(super) who: Who,
    /// The address space at open: execve gives the process another one, which this does not reach.
    pub(super) mm: u64,
}

impl Mem {
    /// The task whose space it is, as long as somebody uses it.
    fn task(&self, asker: &Task) -> Option<Arc<Task>> {
        self.who.find(asker).ok()?.task.filter(|task| task.mm().id == self.mm)
    }
}

/// Bytes up to the end of the page: what is reached in spite of its protection is reached by pages.
fn page_rest(addr: u64) -> usize {
    4096 - (addr & 4095) as usize
}

impl FileOps for Mem {
    fn read(&self, cx: &mut Cx, _: &File, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        // As Linux: without memory it reads as empty.
        let Some(task) = self.task(cx.task) else { return Ok(0) };
        let mm = task.mm();
        // Nothing of the platform's own: what the guest cannot map it cannot have read.
        let end = mm.layout.lock().run_end(offset, offset.saturating_add(buf.len() as u64));
        let mut len = usize::try_from(end.saturating_sub(offset)).unwrap_or(0).min(buf.len());
        if len == 0 && mm.in_vdso(offset, 1) {
            len = page_rest(offset).min(buf.len());
        }
        let Some(part) = buf.get_mut(..len).filter(|part| !part.is_empty()) else {
            return Err(Errno::EIO.into());
        };
        match mm.space.read_code(offset, part) {
            Ok(()) => Ok(len),
            Err(fault) if fault.done > 0 => Ok(fault.done.min(len)),
            Err(_) => {
                let len = page_rest(offset).min(len);
                let part = part.get_mut(..len).unwrap_or_default();
                force::transfer(cx, &task, &mm, offset, part, false)?;
                Ok(len)
            }
        }
    }

    fn write(&self, cx: &mut Cx, _: &File, data: &[u8], offset: u64) -> SysResult<Written> {
        let Some(task) = self.task(cx.task) else { return Ok(Written { count: 0, end: offset }) };
        let mm = task.mm();
        let end = mm.layout.lock().run_end(offset, offset.saturating_add(data.len() as u64));
        let len = usize::try_from(end.saturating_sub(offset)).unwrap_or(0).min(data.len());
        let part = data.get(..len).filter(|part| !part.is_empty()).ok_or(Errno::EIO)?;
        let count = match mm.space.write(offset, part) {
            Ok(()) => len,
            Err(fault) if fault.done > 0 => fault.done.min(len),
            Err(_) => {
                let len = page_rest(offset).min(len);
                let mut part = part.get(..len).unwrap_or_default().to_vec();
                force::transfer(cx, &task, &mm, offset, &mut part, true)?;
                len
            }
        };
        Ok(Written { count, end: offset.saturating_add(count as u64) })
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> SysResult<u64> {
        Err(Errno::EINVAL.into())
    }

    fn attr(&self) -> SysResult<Attr> {
        self.inode.attr()
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        Some(self.inode.clone())
    }
}
