//! The terminal that the sandbox was started on.
//!
//! The host's terminal knows one job, the launcher. Who may read and write inside is decided here, by the guest's own
//! process groups: the foreground group is kept per terminal, and the host's signals go to it.

use super::host_stream::{host_attr, kept, readiness};
use crate::boot::Inherited;
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
use crate::vfs::file::{File, FileOps, Written};
use crate::vfs::inode::{Inode, NewOwner};
use crate::wait::{Ready, WaitQueue};
use platform::hostio;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno as HostErrno;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use syscall_table::abi::ioctl::{TCSBRK, TCSBRKP, TIOCSWINSZ, TOSTOP};
use syscall_table::abi::sigaction::{SIGTTIN, SIGTTOU};
use syscall_table::errno::Errno;

const TCGETS: u32 = 0x5401;
/// Bytes that a terminal ready for writing takes at once. Only for terminals that could not be opened anew.
const READY_MEANS: usize = 256;

/// A terminal of the host.
pub struct HostTty {
    host: Arc<Host>,
    /// The device that it was opened by.
    inode: Option<Arc<dyn Inode>>,
    me: Weak<HostTty>,
}

struct Host {
    fd: OwnedFd,
    /// The descriptor is the sentry's own and does not wait.
    nowait: bool,
    queue: Arc<WaitQueue>,
    /// The same for all descriptors of the terminal.
    job: Arc<Job>,
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
        let nowait = rustix::fs::fcntl_getfl(&fd).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK));
        Self::over(Arc::new(Host { fd, nowait, queue, job: job.clone() }), None)
    }

    fn over(host: Arc<Host>, inode: Option<Arc<dyn Inode>>) -> Arc<HostTty> {
        Arc::new_cyclic(|me| HostTty { host, inode, me: me.clone() })
    }

    /// A description of an inherited one. The controlling terminal is /dev/console inside.
    ///
    /// # Errors
    /// The host's.
    pub fn open(kernel: &Kernel, inherited: Inherited, job: &Arc<Job>) -> SysResult<Arc<File>> {
        let controlling = inherited.controlling && kernel.tty.is_some();
        let tty = HostTty::new(&kernel.reactor, inherited.fd, job);
        let flags = kept(inherited.flags);
        if !controlling {
            return Ok(File::new(tty, flags, None));
        }
        let console = super::dev::console(&kernel.vfs)?;
        let tty = Self::over(tty.host.clone(), Some(console.inode().clone()));
        Ok(File::new(tty, flags, Some(console)))
    }

    /// Mode and owner that the host's device has.
    ///
    /// # Errors
    /// The host's.
    pub fn owner(inherited: &Inherited) -> SysResult<NewOwner> {
        let attr = host_attr(&inherited.fd)?;
        Ok(NewOwner { mode: attr.mode & 0o7777, masked: 0, uid: attr.uid, gid: attr.gid })
    }

    /// Stops a process that may not use the terminal just now, be it for a job inside or for one outside.
    fn check(&self, cx: &Cx, signal: i32) -> SysResult<()> {
        self.host.job.check(cx, signal)?;
        if self.host.job.controls(&cx.task.process) { cx.kernel().outside.check(cx, signal) } else { Ok(()) }
    }

    fn stops_output(&self) -> bool {
        let flags = hostio::ioctl_get(self.host.fd.as_fd(), TCGETS).ok();
        let local = flags.as_deref().and_then(|t| t.get(12..16)?.first_chunk::<4>().copied());
        local.is_some_and(|bytes| u32::from_ne_bytes(bytes) & TOSTOP != 0)
    }
}

/// Whether the launcher's job has the terminal among the jobs of a shell outside. The host cannot keep the sandbox in
/// order: the terminal is not the sentry's controlling one. The launcher tells what it was at the start and when it goes
/// on after a stop; that it came to the foreground without a stop it tells when asked.
#[derive(Default)]
pub struct Outside {
    state: AtomicU8,
    queue: WaitQueue,
    ask: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

const FRONT: u8 = 0;
const BACK: u8 = 1;
/// In the background when last heard of, and asked again.
const ASKED: u8 = 2;
/// In the background by an answer that nobody has used yet.
const SURE: u8 = 3;

impl Outside {
    /// Sets how the launcher is asked. The first call wins.
    pub fn on_ask(&self, ask: Box<dyn Fn() + Send + Sync>) {
        let _ = self.ask.set(ask);
    }

    /// What the launcher says. No lock may be held.
    pub fn set(&self, foreground: bool) {
        let was = self.state.load(Ordering::SeqCst);
        let now = if foreground { FRONT } else { if was == ASKED { SURE } else { BACK } };
        self.state.store(now, Ordering::SeqCst);
        self.queue.wake(Ready::IN);
        crate::run::drain();
    }

    fn check(&self, cx: &Cx, signal: i32) -> SysResult<()> {
        if self.state.load(Ordering::SeqCst) == FRONT {
            return Ok(());
        }
        cx.wait_on(&self.queue, Ready::IN);
        let turn =
            |from, to| self.state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if turn(SURE, BACK) {
            return job::stop_group(cx, signal);
        }
        match (turn(BACK, ASKED), self.ask.get()) {
            (true, Some(ask)) => ask(),
            _ if self.state.load(Ordering::SeqCst) == FRONT => return Ok(()),
            _ => {}
        }
        cx.block(Restart::Sys)
    }
}

impl Terminal for HostTty {
    fn job(&self) -> &Job {
        &self.host.job
    }

    fn open_again(self: Arc<Self>, inode: Arc<dyn Inode>, _: &Task) -> SysResult<Arc<dyn FileOps>> {
        Ok(Self::over(self.host.clone(), Some(inode)))
    }

    fn device(&self) -> u64 {
        super::dev::CONSOLE
    }
}

impl FileOps for HostTty {
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], _offset: u64) -> SysResult<usize> {
        self.check(cx, SIGTTIN)?;
        cx.wait_on(&self.host.queue, Ready::IN | Ready::HUP);
        let ready = self.host.nowait
            || readiness(self.host.fd.as_fd()).intersects(Ready::IN | Ready::HUP | Ready::ERR);
        let got = if ready { rustix::io::read(&self.host.fd, &mut *buf) } else { Err(HostErrno::AGAIN) };
        match got {
            Err(HostErrno::AGAIN) if !file.nonblocking() => cx.block(Restart::Sys),
            other => Ok(other?),
        }
    }

    fn write(&self, cx: &mut Cx, file: &File, data: &[u8], offset: u64) -> SysResult<Written> {
        if self.stops_output() {
            self.check(cx, SIGTTOU)?;
        }
        cx.wait_on(&self.host.queue, Ready::OUT);
        let got = if self.host.nowait {
            rustix::io::write(&self.host.fd, data)
        } else if readiness(self.host.fd.as_fd()).intersects(Ready::OUT | Ready::HUP | Ready::ERR) {
            rustix::io::write(&self.host.fd, data.get(..READY_MEANS).unwrap_or(data))
        } else {
            Err(HostErrno::AGAIN)
        };
        match got {
            Err(HostErrno::AGAIN) if !file.nonblocking() => cx.block(Restart::Sys),
            other => Ok(Written { count: other?, end: offset }),
        }
    }

    fn poll(&self, _file: &File) -> Ready {
        readiness(self.host.fd.as_fd())
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.host.queue)
    }

    fn goes_on_writing(&self) -> bool {
        true
    }

    fn attr(&self) -> SysResult<Attr> {
        match &self.inode {
            Some(inode) => inode.attr(),
            None => host_attr(&self.host.fd),
        }
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        self.inode.clone()
    }

    fn ioctl(&self, cx: &mut Cx, file: &File, request: u32, arg: u64) -> SysResult {
        let fd = self.host.fd.as_fd();
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
                self.check(cx, SIGTTOU)?;
            }
            let mut bytes = vec![0; size];
            cx.copy_in(arg, &mut bytes)?;
            host(hostio::ioctl_set(fd, request, &bytes))?;
            return Ok(0);
        }
        if hostio::takes_value(request) {
            self.check(cx, SIGTTOU)?;
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

/// A signal of the launcher's. What the kernel sent it because of its terminal, and job control of a shell outside, is
/// for the foreground group; what a process sent it, for the first program.
pub fn host_signal(kernel: &Arc<Kernel>, job: Option<&Job>, signal: i32, from_kernel: bool) {
    use syscall_table::abi::sigaction::{SI_USER, SIGCONT, SIGHUP, SIGTSTP, Siginfo};
    let first_group = kernel.tree.pgid(FIRST);
    let foreground = job.map(Job::foreground).filter(|group| *group > 0).unwrap_or(first_group);
    let by_job = from_kernel || matches!(signal, SIGTSTP | SIGCONT);
    if by_job {
        send::to_group(kernel, foreground, signal);
    }
    // The session's leader hears of the terminal's end too, and is continued with whatever job it has.
    let leader_too = matches!(signal, SIGHUP | SIGCONT) && foreground != first_group;
    if (!by_job || leader_too)
        && let Ok(first) = kernel.tree.process(FIRST)
    {
        let info = if by_job { Siginfo::kernel(signal) } else { Siginfo::kill(signal, SI_USER, 0, 0) };
        send::to_process(kernel, &first, info);
    }
    crate::run::drain();
}
