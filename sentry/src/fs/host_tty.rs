//! The terminal that the sandbox was started on.
//!
//! The host's terminal knows one job, the launcher. Who may read and write inside is decided here, by the guest's own
//! process groups: the foreground group is kept per terminal, and the host's signals go to it.

use super::host_stream::{host_attr, inherited_flags, readiness};
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::kernel::Kernel;
use crate::reactor::Reactor;
use crate::signal::{bit, mask, send};
use crate::task::tree::FIRST;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps, Written};
use crate::wait::{Ready, WaitQueue};
use platform::hostio;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno as HostErrno;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use syscall_table::abi::ioctl::{
    TCSBRK, TCSBRKP, TIOCGPGRP, TIOCGSID, TIOCNOTTY, TIOCSCTTY, TIOCSPGRP, TIOCSWINSZ, TOSTOP,
};
use syscall_table::abi::sigaction::{SIG_IGN, SIGTTIN, SIGTTOU};
use syscall_table::errno::Errno;

const TCGETS: u32 = 0x5401;
/// Bytes that a terminal ready for writing takes at once. Only for terminals that could not be opened anew.
const READY_MEANS: usize = 256;

/// A terminal of the host.
pub struct HostTty {
    fd: OwnedFd,
    /// The descriptor is the sentry's own and does not wait.
    nowait: bool,
    queue: Arc<WaitQueue>,
    job: Arc<Job>,
}

/// Which session has the terminal and which of its groups is in the foreground; the same for all descriptors of it.
pub struct Job {
    session: AtomicI32,
    foreground: AtomicI32,
}

impl Default for Job {
    fn default() -> Self {
        Job { session: AtomicI32::new(FIRST), foreground: AtomicI32::new(FIRST) }
    }
}

impl Job {
    /// The group that the terminal's signals go to.
    pub fn foreground(&self) -> i32 {
        self.foreground.load(Ordering::SeqCst)
    }
}

fn host<T>(result: std::io::Result<T>) -> SysResult<T> {
    result.map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(5)).into())
}

impl HostTty {
    /// Over a descriptor of a terminal.
    pub fn open(reactor: &Reactor, fd: OwnedFd, job: &Arc<Job>) -> Arc<File> {
        let queue = Arc::new(WaitQueue::new());
        // A terminal can be watched.
        let _ = reactor.watch(fd.as_fd(), queue.clone());
        let flags = inherited_flags(&fd);
        let nowait = flags & crate::vfs::file::o::O_NONBLOCK != 0;
        let tty = HostTty { fd, nowait, queue, job: job.clone() };
        // Whether the guest wants to wait is its own affair: nobody outside sees the flag.
        File::new(Arc::new(tty), flags & !crate::vfs::file::o::O_NONBLOCK, None)
    }

    /// Stops a background process that reads or changes the terminal (POSIX, "The Controlling Terminal").
    fn check_job(&self, cx: &Cx, signal: i32) -> SysResult<()> {
        let tree = &cx.kernel().tree;
        let process = &cx.task.process;
        let group = tree.pgid(process.pid);
        if tree.sid(process.pid) != self.job.session.load(Ordering::SeqCst) || group == self.job.foreground()
        {
            return Ok(());
        }
        let ignored = process.sighand().get(signal).sa_handler == SIG_IGN;
        if ignored || mask::get(cx.task) & bit(signal) != 0 {
            return if signal == SIGTTIN { Err(Errno::EIO.into()) } else { Ok(()) };
        }
        if tree.lock().is_orphaned(group) {
            return Err(Errno::EIO.into());
        }
        send::to_group(cx.kernel(), group, signal);
        // The signal is pending now, which ends the call; it is made again after the stop.
        cx.block(Restart::Sys)
    }

    fn stops_output(&self) -> bool {
        let flags = hostio::ioctl_get(self.fd.as_fd(), TCGETS).ok();
        let local = flags.as_deref().and_then(|t| t.get(12..16)?.first_chunk::<4>().copied());
        local.is_some_and(|bytes| u32::from_ne_bytes(bytes) & TOSTOP != 0)
    }

    fn group_request(&self, cx: &mut Cx, request: u32, arg: u64) -> SysResult {
        let pid = cx.task.process.pid;
        let sid = cx.kernel().tree.sid(pid);
        let session = self.job.session.load(Ordering::SeqCst);
        match request {
            TIOCSCTTY => {
                if sid != session && sid != pid {
                    return Err(Errno::EPERM.into());
                }
                self.job.session.store(sid, Ordering::SeqCst);
                self.job.foreground.store(cx.kernel().tree.pgid(pid), Ordering::SeqCst);
                Ok(0)
            }
            _ if sid != session => Err(Errno::ENOTTY.into()),
            TIOCGPGRP => {
                cx.copy_out(arg, &self.job.foreground().to_ne_bytes())?;
                Ok(0)
            }
            TIOCGSID => {
                cx.copy_out(arg, &session.to_ne_bytes())?;
                Ok(0)
            }
            TIOCNOTTY => {
                if sid == pid {
                    self.job.session.store(0, Ordering::SeqCst);
                }
                Ok(0)
            }
            _ => {
                self.check_job(cx, SIGTTOU)?;
                let mut bytes = [0; 4];
                cx.copy_in(arg, &mut bytes)?;
                let group = i32::from_ne_bytes(bytes);
                if group < 0 {
                    return Err(Errno::EINVAL.into());
                }
                match cx.kernel().tree.group_session(group) {
                    None => Err(Errno::ESRCH.into()),
                    Some(other) if other != session => Err(Errno::EPERM.into()),
                    Some(_) => {
                        self.job.foreground.store(group, Ordering::SeqCst);
                        Ok(0)
                    }
                }
            }
        }
    }
}

impl FileOps for HostTty {
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], _offset: u64) -> SysResult<usize> {
        self.check_job(cx, SIGTTIN)?;
        cx.wait_on(&self.queue, Ready::IN | Ready::HUP);
        let ready = self.nowait || readiness(self.fd.as_fd()).intersects(Ready::IN | Ready::HUP | Ready::ERR);
        let got = if ready { rustix::io::read(&self.fd, &mut *buf) } else { Err(HostErrno::AGAIN) };
        match got {
            Err(HostErrno::AGAIN) if !file.nonblocking() => cx.block(Restart::Sys),
            other => Ok(other?),
        }
    }

    fn write(&self, cx: &mut Cx, file: &File, data: &[u8], offset: u64) -> SysResult<Written> {
        if self.stops_output() {
            self.check_job(cx, SIGTTOU)?;
        }
        cx.wait_on(&self.queue, Ready::OUT);
        let got = if self.nowait {
            rustix::io::write(&self.fd, data)
        } else if readiness(self.fd.as_fd()).intersects(Ready::OUT | Ready::HUP | Ready::ERR) {
            rustix::io::write(&self.fd, data.get(..READY_MEANS).unwrap_or(data))
        } else {
            Err(HostErrno::AGAIN)
        };
        match got {
            Err(HostErrno::AGAIN) if !file.nonblocking() => cx.block(Restart::Sys),
            other => Ok(Written { count: other?, end: offset }),
        }
    }

    fn poll(&self, _file: &File) -> Ready {
        readiness(self.fd.as_fd())
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.queue)
    }

    fn attr(&self) -> SysResult<Attr> {
        host_attr(&self.fd)
    }

    fn ioctl(&self, cx: &mut Cx, _file: &File, request: u32, arg: u64) -> SysResult {
        let fd = self.fd.as_fd();
        if matches!(request, TIOCGPGRP | TIOCSPGRP | TIOCGSID | TIOCSCTTY | TIOCNOTTY) {
            return self.group_request(cx, request, arg);
        }
        if hostio::get_size(request).is_some() {
            let bytes = host(hostio::ioctl_get(fd, request))?;
            cx.copy_out(arg, &bytes)?;
            return Ok(0);
        }
        if let Some(size) = hostio::set_size(request) {
            if request != TIOCSWINSZ {
                self.check_job(cx, SIGTTOU)?;
            }
            let mut bytes = vec![0; size];
            cx.copy_in(arg, &mut bytes)?;
            host(hostio::ioctl_set(fd, request, &bytes))?;
            return Ok(0);
        }
        if hostio::takes_value(request) {
            self.check_job(cx, SIGTTOU)?;
            host(hostio::ioctl_value(fd, request, arg))?;
            return Ok(0);
        }
        match request {
            // Output goes to the host at once: nothing is left to wait for.
            TCSBRK | TCSBRKP => Ok(0),
            _ => {
                cx.note_gap(&format!("ioctl {request:#x} on the terminal"), Errno::ENOTTY);
                Err(Errno::ENOTTY.into())
            }
        }
    }

    fn describe(&self) -> String {
        "/dev/tty".to_owned()
    }
}

/// A signal of the launcher's: those of a terminal go to the foreground group, the rest to the first program.
pub fn host_signal(kernel: &Arc<Kernel>, job: Option<&Job>, signal: i32) {
    use syscall_table::abi::sigaction::{SIGCONT, SIGINT, SIGQUIT, SIGTSTP, SIGWINCH, Siginfo};
    match signal {
        SIGINT | SIGQUIT | SIGTSTP | SIGWINCH | SIGCONT => {
            let foreground = job.map(Job::foreground).filter(|group| *group > 0);
            let group = foreground.unwrap_or_else(|| kernel.tree.pgid(FIRST));
            send::to_group(kernel, group, signal);
            if signal == SIGCONT
                && group != kernel.tree.pgid(FIRST)
                && let Ok(first) = kernel.tree.process(FIRST)
            {
                send::to_process(kernel, &first, Siginfo::kernel(SIGCONT));
            }
        }
        _ => {
            if let Ok(first) = kernel.tree.process(FIRST) {
                send::to_process(kernel, &first, Siginfo::kernel(signal));
            }
        }
    }
    crate::run::drain();
}
