//! eventfd(2)

use super::{anonymous_attr, next_ino};
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::sync::{Level, Lock};
use crate::task::pidns::PidNs;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps, Written};
use crate::wait::{Ready, WaitQueue};
use syscall_table::errno::Errno;

/// An event counter.
pub struct Eventfd {
    count: Lock<u64>,
    semaphore: bool,
    queue: WaitQueue,
    ino: u64,
}

impl Eventfd {
    /// With this count.
    pub fn new(count: u64, semaphore: bool) -> Self {
        Eventfd {
            count: Lock::new(Level::Object, count),
            semaphore,
            queue: WaitQueue::new(),
            ino: next_ino(),
        }
    }

    /// Counts one more for the kernel, up to the highest count.
    pub fn signal(&self) {
        let mut count = self.count.lock();
        *count = count.saturating_add(1).min(u64::MAX - 1);
        drop(count);
        self.queue.wake(Ready::IN);
    }
}

impl FileOps for Eventfd {
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], _offset: u64) -> SysResult<usize> {
        let Some(out) = buf.get_mut(..8) else { return Err(Errno::EINVAL.into()) };
        cx.wait_on(&self.queue, Ready::IN);
        let mut count = self.count.lock();
        if *count == 0 {
            drop(count);
            if cx.hurries(file) {
                return Err(Errno::EAGAIN.into());
            }
            return cx.block(Restart::Sys);
        }
        let taken = if self.semaphore { 1 } else { *count };
        *count -= taken;
        drop(count);
        out.copy_from_slice(&taken.to_ne_bytes());
        self.queue.wake(Ready::OUT);
        if cx.room < 8 {
            return Err(Errno::EFAULT.into());
        }
        Ok(8)
    }

    fn write(&self, cx: &mut Cx, file: &File, data: &[u8], _offset: u64) -> SysResult<Written> {
        // Since Linux 6.8 no more than the number, either.
        let value = data.try_into().ok().map(u64::from_ne_bytes);
        let value = value.filter(|v| *v != u64::MAX).ok_or(Errno::EINVAL)?;
        cx.wait_on(&self.queue, Ready::OUT);
        let mut count = self.count.lock();
        match count.checked_add(value) {
            Some(sum) if sum < u64::MAX => {
                *count = sum;
                drop(count);
                self.queue.wake(Ready::IN);
                Ok(Written { count: 8, end: 0 })
            }
            _ => {
                drop(count);
                if cx.hurries(file) {
                    return Err(Errno::EAGAIN.into());
                }
                cx.block(Restart::Sys)
            }
        }
    }

    fn hurries(&self) -> bool {
        true
    }

    fn seeks_nowhere(&self) -> bool {
        true
    }

    fn poll(&self, _file: &File) -> Ready {
        let count = *self.count.lock();
        let mut ready = Ready::empty();
        if count > 0 {
            ready |= Ready::IN;
        }
        if count < u64::MAX - 1 {
            ready |= Ready::OUT;
        }
        ready
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.queue)
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(anonymous_attr(15, self.ino, 0o600))
    }

    fn info(&self, _: &PidNs) -> String {
        let count = *self.count.lock();
        let semaphore = u8::from(self.semaphore);
        format!("eventfd-count: {count:16x}\neventfd-id: {}\neventfd-semaphore: {semaphore}\n", self.ino)
    }

    fn describe(&self) -> String {
        "anon_inode:[eventfd]".into()
    }
}
