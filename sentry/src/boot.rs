//! Puts a sandbox together: file systems, standard files, first program.

use crate::fail::SysResult;
use crate::fs::host_stream::HostStream;
use crate::fs::host_tty::HostTty;
use crate::kernel::{Config, Kernel};
use crate::reactor::Reactor;
use crate::report::{Report, Wanted};
use crate::task::boot::Init;
use crate::task::creds::Creds;
use crate::task::limits::Limits;
use crate::task::start::Place;
use crate::task::tree::FIRST;
use crate::time::Timers;
use crate::tty::job::Job;
use crate::vfs::fdtable::FdTable;
use crate::vfs::file::File;
use crate::vfs::fscontext::FsContext;
use gofer::Client;
use platform::Platform;
use rustix::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// A mount of the gofer.
pub struct HostMount {
    /// Where it goes; the first is `/`.
    pub at: Vec<u8>,
    /// Whether changes pass through to the host.
    pub writable: bool,
}

/// Everything a sandbox is made of.
pub struct Sandbox {
    /// Runs guest code.
    pub platform: Arc<dyn Platform>,
    /// The gofer.
    pub client: Arc<Client>,
    /// The gofer's mounts, in its order.
    pub mounts: Vec<HostMount>,
    /// Standard input, output and error; None: closed.
    pub stdio: [Option<OwnedFd>; 3],
    /// The terminal that the sandbox was started on.
    pub tty: Option<OwnedFd>,
    /// What the report collects.
    pub wanted: Wanted,
    /// Limits and identity.
    pub config: Config,
}

/// The first program.
pub struct Start {
    /// Program and arguments.
    pub command: Vec<Vec<u8>>,
    /// Environment, `NAME=value`.
    pub env: Vec<Vec<u8>>,
    /// Working directory.
    pub place: Place,
    /// User and groups.
    pub creds: Creds,
    /// File mode creation mask.
    pub umask: u32,
    /// Resource limits.
    pub limits: Limits,
}

/// A sandbox whose first program was not started yet.
pub struct Ready {
    /// Its kernel.
    pub kernel: Arc<Kernel>,
    /// Its terminal's job control, if it has a terminal.
    pub job: Option<Arc<Job>>,
    files: Arc<FdTable>,
}

impl Sandbox {
    /// Makes the kernel, mounts the file systems, opens the standard files.
    ///
    /// # Errors
    /// One line that says what failed.
    pub fn build(self) -> Result<Ready, String> {
        let timers = Arc::new(Timers::new());
        let reactor = Reactor::new(timers.clone()).map_err(|e| format!("reactor: {e}"))?;
        let job = self.tty.is_some().then(|| Arc::new(Job::of(FIRST)));
        let tty = self.tty.zip(job.as_ref()).map(|(fd, job)| HostTty::new(&reactor, fd, job));
        let kernel = Arc::new(Kernel {
            platform: self.platform,
            tree: Default::default(),
            vfs: Default::default(),
            timers,
            reactor: reactor.clone(),
            futexes: Default::default(),
            net: Default::default(),
            report: Report::new(self.wanted),
            ptys: Default::default(),
            tty,
            config: self.config,
        });
        crate::fs::set_up(&kernel, &self.client, &self.mounts).map_err(|e| format!("mounting: {e:?}"))?;
        let files = Arc::new(FdTable::new());
        stdio(&reactor, &files, self.stdio, job.as_ref()).map_err(|e| format!("standard files: {e:?}"))?;
        Ok(Ready { kernel, job, files })
    }
}

/// Installs the standard files. Those that are one terminal share a description, as they do outside.
fn stdio(
    reactor: &Reactor,
    files: &FdTable,
    stdio: [Option<OwnedFd>; 3],
    job: Option<&Arc<Job>>,
) -> SysResult<()> {
    let no_job = Arc::new(Job::default());
    let job = job.unwrap_or(&no_job);
    let mut terminals: Vec<(u64, i32, Arc<File>)> = Vec::new();
    for (number, fd) in (0..).zip(stdio) {
        let Some(fd) = fd else { continue };
        let file = if rustix::termios::isatty(&fd) {
            let key = (rustix::fs::fstat(fd.as_fd())?.st_rdev, crate::fs::host_stream::inherited_flags(&fd));
            match terminals.iter().find(|t| (t.0, t.1) == key) {
                Some((_, _, file)) => file.clone(),
                None => {
                    let file = HostTty::open(reactor, fd, job);
                    terminals.push((key.0, key.1, file.clone()));
                    file
                }
            }
        } else {
            HostStream::open(reactor, fd)?
        };
        files.replace(number, file, false, 1024)?;
    }
    Ok(())
}

impl Ready {
    /// Starts the reactor and the first program.
    ///
    /// # Errors
    /// One line that says what failed.
    pub fn start(&self, start: Start) -> Result<(), String> {
        let reactor = self.kernel.reactor.clone();
        let thread = std::thread::Builder::new().name("reactor".into()).stack_size(256 * 1024);
        thread.spawn(move || reactor.run()).map_err(|e| format!("reactor: {e}"))?;
        let root = self.kernel.vfs.root().map_err(|e| format!("root: {e:?}"))?;
        let init = Init {
            path: start.command.first().cloned().unwrap_or_default(),
            place: start.place,
            argv: start.command,
            envp: start.env,
            creds: start.creds,
            fs: Arc::new(FsContext::with(root.clone(), root, start.umask)),
            files: self.files.clone(),
            limits: start.limits,
        };
        self.kernel.spawn_init(init).map(drop).map_err(|e| format!("first process: {e:?}"))
    }
}
