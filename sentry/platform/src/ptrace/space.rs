//! A guest process as the sentry sees it: its memory, its tasks, its end.

use crate::{MemFault, Space, hostcalls};
use lazaret_shim::layout;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

#[expect(clippy::single_range_in_vec_init, reason = "a list of ranges that has one")]
const RESERVED: [std::ops::Range<u64>; 1] = [layout::REGION_START..layout::TASK_END];

/// One host process that holds one guest address space.
pub struct Process {
    /// Its id as the sentry sees it. Its first thread stays to the end, so that memory is reached by this number.
    pub pid: i32,
    pidfd: OwnedFd,
    silent: AtomicBool,
    tasks: AtomicUsize,
    vdso: u64,
    /// What it has used, from when it is reaped.
    pub last_usage: Arc<crate::cputime::LastUsage>,
}

impl Process {
    /// Takes charge of a process that has just been made, with one task.
    pub fn new(pid: i32, vdso: u64) -> io::Result<Process> {
        let pidfd = hostcalls::pidfd_open(pid)?;
        Ok(Process {
            pid,
            pidfd,
            silent: AtomicBool::new(false),
            tasks: AtomicUsize::new(1),
            vdso,
            last_usage: Arc::default(),
        })
    }

    /// Another task.
    pub fn enter(&self) {
        self.tasks.fetch_add(1, AcqRel);
    }

    /// A task is no longer in it; the process ends with the last one. True if it was the last one.
    pub fn leave(&self) -> bool {
        let last = self.tasks.fetch_sub(1, AcqRel) == 1;
        if last {
            self.kill();
        }
        last
    }

    /// Kills the host process; its tasks report it gone.
    pub fn destroy(&self) {
        hostcalls::pidfd_kill(self.pidfd.as_fd());
    }

    /// Its end is the kernel's wish: nobody is told.
    pub fn silent(&self) -> bool {
        self.silent.load(Acquire)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        hostcalls::pidfd_kill(self.pidfd.as_fd());
    }
}

impl Space for Process {
    fn host_pid(&self) -> i32 {
        self.pid
    }

    fn cpu_time(&self) -> Option<crate::CpuTime> {
        crate::cputime::cpu_time(self.pid)
    }

    fn cpu_sum(&self) -> Option<std::time::Duration> {
        crate::cputime::cpu_sum(self.pid)
    }

    fn on_reaped(&self, told: crate::Told) {
        self.last_usage.tell(told);
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), MemFault> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match hostcalls::vm_read(self.pid, addr.wrapping_add(done as u64), rest) {
                0 => return Err(MemFault { done }),
                got => done += got,
            }
        }
        Ok(())
    }

    fn write(&self, addr: u64, data: &[u8]) -> Result<(), MemFault> {
        let mut done = 0;
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            match hostcalls::vm_write(self.pid, addr.wrapping_add(done as u64), rest) {
                0 => return Err(MemFault { done }),
                put => done += put,
            }
        }
        Ok(())
    }

    fn readv(&self, guest: &[(u64, usize)], buf: &mut [u8]) -> Result<(), MemFault> {
        let total: usize = guest.iter().map(|(_, len)| *len).sum();
        let Some(buf) = buf.get_mut(..total) else { return Err(MemFault { done: 0 }) };
        if guest.len() > 1024 {
            return Err(MemFault { done: 0 });
        }
        let got = hostcalls::vm_readv(self.pid, guest, buf);
        if got == total { Ok(()) } else { Err(MemFault { done: got }) }
    }

    fn reserved(&self) -> &[std::ops::Range<u64>] {
        &RESERVED
    }

    fn vdso(&self) -> Option<u64> {
        (self.vdso != 0).then_some(self.vdso)
    }

    fn kill(&self) {
        self.silent.store(true, Release);
        hostcalls::pidfd_kill(self.pidfd.as_fd());
    }
}
