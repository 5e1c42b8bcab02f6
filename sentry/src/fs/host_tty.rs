//! The terminal that the sandbox was started on.
//!
//! The host's terminal knows one job, the launcher. Who may read and write inside is decided here, by the guest's own
//! process groups: the foreground group is kept per terminal, and the host's signals go to it.

use super::host_stream::{host_attr, inherited_flags, readiness};
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::kernel::Kernel;
use crate::reactor::Reactor;
use crate::signal::send;
use crate::task::Task;
use crate::task::tree::FIRST;
use crate::tty::Terminal;
use crate::tty::job::{self, Job};
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps, Written, o};
use crate::vfs::inode::Inode;
use crate::wait::{Ready, WaitQueue};
use platform::hostio;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno as HostErrno;
use std::sync::{Arc, Weak};
use syscall_table::abi::ioctl::{TCSBRK, TCSBRKP, TIOCSWINSZ, TOSTOP};
use syscall_table::abi::sigaction::{SIGTTIN, SIGTTOU};
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
    /// The same for all descriptors of the terminal.
    job: Arc<Job>,
    me: Weak<HostTty>,
}

fn host<T>(result: std::io::Result<T>) -> SysResult<T> {
    result.map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(5)).into())
}

impl HostTty {
    /// Over a descriptor of a terminal.
    pub fn new(reactor: &Reactor, fd: OwnedFd, job: &Arc<Job>) -> Arc<HostTty> {
        let queue = Arc::new(WaitQueue::new());
        // A terminal can be watched.
        let _ = reactor.watch(fd.as_fd(), queue.clone());
        let nowait = inherited_flags(&fd) & o::O_NONBLOCK != 0;
        Arc::new_cyclic(|me| HostTty { fd, nowait, queue, job: job.clone(), me: me.clone() })
    }

    /// A description of one.
    pub fn open(reactor: &Reactor, fd: OwnedFd, job: &Arc<Job>) -> Arc<File> {
        let flags = inherited_flags(&fd);
        // Whether the guest wants to wait is its own affair: nobody outside sees the flag.
        File::new(HostTty::new(reactor, fd, job), flags & !o::O_NONBLOCK, None)
    }

    fn stops_output(&self) -> bool {
        let flags = hostio::ioctl_get(self.fd.as_fd(), TCGETS).ok();
        let local = flags.as_deref().and_then(|t| t.get(12..16)?.first_chunk::<4>().copied());
        local.is_some_and(|bytes| u32::from_ne_bytes(bytes) & TOSTOP != 0)
    }
}

impl Terminal for HostTty {
    fn job(&self) -> &Job {
        &self.job
    }

    fn open_again(self: Arc<Self>, _: Arc<dyn Inode>, _: &Task) -> SysResult<Arc<dyn FileOps>> {
        Ok(self)
    }

    fn device(&self) -> u64 {
        host_attr(&self.fd).map_or(0, |attr| attr.rdev)
    }
}

impl FileOps for HostTty {
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], _offset: u64) -> SysResult<usize> {
        self.job.check(cx, SIGTTIN)?;
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
            self.job.check(cx, SIGTTOU)?;
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

    fn ioctl(&self, cx: &mut Cx, file: &File, request: u32, arg: u64) -> SysResult {
        let fd = self.fd.as_fd();
        let terminal: Option<Arc<dyn Terminal>> = self.me.upgrade().map(|me| me as Arc<dyn Terminal>);
        if let Some(done) = terminal.and_then(|me| job::ioctl(cx, file, &me, false, request, arg)) {
            return done;
        }
        if hostio::get_size(request).is_some() {
            let bytes = host(hostio::ioctl_get(fd, request))?;
            cx.copy_out(arg, &bytes)?;
            return Ok(0);
        }
        if let Some(size) = hostio::set_size(request) {
            if request != TIOCSWINSZ {
                self.job.check(cx, SIGTTOU)?;
            }
            let mut bytes = vec![0; size];
            cx.copy_in(arg, &mut bytes)?;
            host(hostio::ioctl_set(fd, request, &bytes))?;
            return Ok(0);
        }
        if hostio::takes_value(request) {
            self.job.check(cx, SIGTTOU)?;
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
