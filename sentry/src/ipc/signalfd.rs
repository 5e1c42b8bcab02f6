//! signalfd(2)

use super::{anonymous_attr, next_ino};
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::signal::mask;
use crate::task::Process;
use crate::task::pidns::PidNs;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps};
use crate::wait::{Ready, WaitQueue};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::{FromZeros, IntoBytes};

/// Reads pending signals of the process that made it.
pub struct Signalfd {
    mask: AtomicU64,
    process: Arc<Process>,
    ino: u64,
}

impl Signalfd {
    /// For the signals of `mask`.
    pub fn new(process: Arc<Process>, mask: u64) -> Self {
        Signalfd { mask: AtomicU64::new(mask), process, ino: next_ino() }
    }

    /// Replaces the mask.
    pub fn set_mask(&self, mask: u64) {
        self.mask.store(mask, Ordering::SeqCst);
        self.process.signal_wait.wake(Ready::IN);
    }
}

fn shape(info: &Siginfo) -> SignalfdSiginfo {
    let mut out = SignalfdSiginfo::new_zeroed();
    out.ssi_signo = info.si_signo as u32;
    out.ssi_errno = info.si_errno;
    out.ssi_code = info.si_code;
    out.ssi_pid = info.si_pid() as u32;
    out.ssi_uid = info.si_uid();
    if info.si_signo == SIGCHLD {
        out.ssi_status = info.fields.get(2).copied().unwrap_or(0) as i32;
    } else {
        let words = (info.fields.get(2).copied().unwrap_or(0), info.fields.get(3).copied().unwrap_or(0));
        out.ssi_int = words.0 as i32;
        out.ssi_ptr = u64::from(words.0) | u64::from(words.1) << 32;
    }
    out
}

impl FileOps for Signalfd {
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], _offset: u64) -> SysResult<usize> {
        let size = size_of::<SignalfdSiginfo>();
        if buf.len() < size {
            return Err(Errno::EINVAL.into());
        }
        cx.wait_on(&cx.task.process.signal_wait, Ready::IN);
        let wanted = self.mask.load(Ordering::SeqCst);
        let mut done = 0usize;
        for chunk in buf.chunks_exact_mut(size) {
            let placed = done.saturating_add(size) <= cx.room;
            if !placed && done > 0 {
                break;
            }
            let Some(info) = mask::take(cx.task, wanted) else { break };
            if !placed {
                return Err(Errno::EFAULT.into());
            }
            chunk.copy_from_slice(shape(&info).as_bytes());
            done += size;
        }
        if done > 0 {
            return Ok(done);
        }
        if cx.hurries(file) {
            return Err(Errno::EAGAIN.into());
        }
        cx.block(Restart::Sys)
    }

    fn hurries(&self) -> bool {
        true
    }

    fn seeks_nowhere(&self) -> bool {
        true
    }

    fn poll(&self, _file: &File) -> Ready {
        let wanted = self.mask.load(Ordering::SeqCst);
        let pending = self.process.threads().iter().any(|task| mask::pending(task) & wanted != 0);
        if pending { Ready::IN } else { Ready::empty() }
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.process.signal_wait)
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(anonymous_attr(15, self.ino, 0o600))
    }

    fn info(&self, _: &PidNs) -> String {
        format!("sigmask:\t{:016x}\n", self.mask.load(Ordering::SeqCst))
    }

    fn describe(&self) -> String {
        "anon_inode:[signalfd]".into()
    }
}
