//! Address spaces: what is mapped where. The pages themselves are the host's business (see the platform).

use crate::sync::{Level, Lock};
use crate::fail::SysResult;
use crate::vfs::file::{File, Mapping};
use platform::{CallError, NewTask, Port, Space};
use rustix::fd::AsFd;
use std::sync::Arc;
use syscall_table::errno::Errno;

/// One guest address space.
pub struct Mm {
    /// Its host side.
    pub space: Arc<dyn Space>,
    /// Areas, break, accounting. Held across the host calls that change the space.
    pub layout: Lock<Layout>,
}

/// Areas and break.
#[derive(Default, Clone)]
pub struct Layout {
    /// Next address for mappings without one, going down.
    next: u64,
    /// Start of the break.
    brk: u64,
    stack: (u64, u64),
    /// Where arguments and environment lie: start of arguments, of environment, end.
    args: (u64, u64, u64),
}

impl Mm {
    /// An empty space.
    pub fn new(space: Arc<dyn Space>) -> Arc<Mm> {
        Arc::new(Mm { space, layout: Lock::new(Level::Mm, Layout::default()) })
    }

    /// An empty record for a task that has left this space.
    pub(crate) fn gone(of: &Arc<Mm>) -> Arc<Mm> {
        Mm::new(of.space.clone())
    }

    /// Copies the space: `host` makes the host's copy, and no mapping changes meanwhile.
    ///
    /// # Errors
    /// What `host` fails with.
    pub fn fork(
        &self,
        host: impl FnOnce() -> Result<NewTask, CallError>,
    ) -> SysResult<(Arc<Mm>, NewTask)> {
        let layout = self.layout.lock();
        let new = host()?;
        let mm =
            Arc::new(Mm { space: new.space.clone(), layout: Lock::new(Level::Mm, Layout::clone(&layout)) });
        Ok((mm, new))
    }

    /// Maps at exactly this address, over what is there. `file`: with the offset in bytes.
    ///
    /// # Errors
    /// The file's or the host's.
    pub fn map_fixed(
        &self,
        port: &mut dyn Port,
        addr: u64,
        len: u64,
        prot: i32,
        flags: i32,
        file: Option<(&Arc<File>, u64)>,
    ) -> SysResult<()> {
        let _layout = self.layout.lock();
        match file {
            None => port.mmap(addr, len, prot, flags, None)?,
            Some((file, offset)) => match file.ops.mmap(file, prot, flags)? {
                Mapping::Host(fd) => port.mmap(addr, len, prot, flags, Some((fd.as_fd(), offset)))?,
                Mapping::Anonymous => {
                    let anonymous = syscall_table::abi::mmap::MAP_ANONYMOUS;
                    port.mmap(addr, len, prot, flags | anonymous, None)?;
                }
            },
        }
        Ok(())
    }

    /// A free range below the stack, not mapped yet.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn choose(&self, len: u64) -> SysResult<u64> {
        let mut layout = self.layout.lock();
        layout.next = layout.next.checked_sub(len).ok_or(Errno::ENOMEM)? & !4095;
        Ok(layout.next)
    }

    /// Where the stack is; mappings go below it.
    pub fn set_stack(&self, start: u64, end: u64) {
        let mut layout = self.layout.lock();
        layout.stack = (start, end);
        layout.next = start.saturating_sub(1 << 20);
    }

    /// Where the break starts.
    pub fn set_brk(&self, start: u64) {
        self.layout.lock().brk = start;
    }

    /// Where arguments and environment lie.
    pub fn set_args(&self, args: u64, env: u64, end: u64) {
        self.layout.lock().args = (args, env, end);
    }
}
