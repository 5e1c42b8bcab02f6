//! /proc/PID/pagemap: a word for each page (Documentation/admin-guide/mm/pagemap.rst). Where a page lies in the machine's
//! memory is never said, as to those without CAP_SYS_ADMIN.

use super::{PidFile, Who};
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::memory::areas::MOST_PAGES;
use crate::memory::look;
use crate::mm::PAGE;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps};
use crate::vfs::inode::Inode;
use std::sync::Arc;
use syscall_table::errno::Errno;

pub(super) struct Pagemap {
    pub(super) inode: Arc<PidFile>,
    pub(super) who: Who,
    /// The address space at open.
    pub(super) mm: u64,
}

/// Bytes of a word.
const WORD: u64 = 8;
/// The file's size: up to TASK_SIZE.
const SIZE: u64 = 0x7fff_ffff_f000 / PAGE * WORD;

impl FileOps for Pagemap {
    fn read(&self, cx: &mut Cx, _: &File, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        let task = self.who.find(cx.task).ok().and_then(|subject| subject.task);
        let Some(task) = task.filter(|task| task.mm().id == self.mm) else { return Ok(0) };
        if !offset.is_multiple_of(WORD) || !(buf.len() as u64).is_multiple_of(WORD) {
            return Err(Errno::EINVAL.into());
        }
        let left = usize::try_from(SIZE.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = buf.len().min(left);
        let buf = buf.get_mut(..len).unwrap_or_default();
        buf.fill(0);
        let mm = task.mm();
        let mut page = offset / WORD;
        for part in buf.chunks_mut(MOST_PAGES.saturating_mul(8)) {
            let count = part.len() / 8;
            let (start, end) =
                (page.saturating_mul(PAGE), page.saturating_add(count as u64).saturating_mul(PAGE));
            // Nothing of the platform's own is told of, and nobody is asked about what is not mapped.
            if mm.layout.lock().overlaps(start, end) {
                let words = look::pages(mm.space.host_pid(), page, count).ok_or(Errno::EIO)?;
                let layout = mm.layout.lock();
                for ((to, word), at) in
                    part.chunks_exact_mut(8).zip(words).zip((start..end).step_by(PAGE as usize))
                {
                    if layout.find(at).is_some() {
                        to.copy_from_slice(&word.to_ne_bytes());
                    }
                }
            }
            page = page.saturating_add(count as u64);
        }
        Ok(len)
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
