//! Puts a sandbox together: file systems, standard files, first program.

use crate::fail::SysResult;
use crate::fs::host_stream::HostStream;
use crate::fs::host_tty::HostTty;
use crate::kernel::{Config, Kernel, Names};
use crate::reactor::Reactor;
use crate::report::{Report, Wanted};
use crate::task::boot::Init;
use crate::task::creds::Creds;
use crate::task::limits::Limits;
use crate::task::namespaces::{IpcNs, UtsNs};
use crate::task::start::Place;
use crate::task::tree::FIRST;
use crate::time::Timers;
use crate::tty::job::Job;
use crate::vfs::fdtable::FdTable;
use crate::vfs::fscontext::FsContext;
use gofer::Client;
use platform::Platform;
use rustix::fd::OwnedFd;
use std::sync::Arc;
use syscall_table::errno::Errno;

/// A mount that the policy asks for.
pub struct HostMount {
    /// Where it goes; the first is `/`.
    pub at: Vec<u8>,
    /// What is mounted.
    pub kind: MountKind,
    /// The rule, as denials name it.
    pub rule: String,
}

/// What a [`HostMount`] shows.
pub enum MountKind {
    /// Files of the host.
    Host {
        /// The mount's number in the gofer.
        number: u32,
        /// Their path on the host.
        src: Vec<u8>,
        /// What may be done with them.
        access: Access,
    },
    /// Files in memory.
    Memory {
        /// Most bytes of contents; half of the machine's memory if not given.
        size: Option<u64>,
    },
}

/// What may be done with files of the host.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// They are read.
    Read,
    /// Changes reach the host.
    Write,
    /// Changes go into an upper layer in memory.
    Layered {
        /// Most bytes of contents; half of the machine's memory if not given.
        size: Option<u64>,
        /// The gofer's mount with the changes of earlier runs.
        earlier: Option<u32>,
    },
}

/// A standard stream.
pub enum Std {
    /// Closed.
    Closed,
    /// The same description as the earlier one with this number.
    Same(usize),
    /// A description that no earlier one has.
    Own(Inherited),
}

/// An inherited descriptor.
pub struct Inherited {
    /// It, not to be used by anybody else in this process.
    pub fd: OwnedFd,
    /// Access mode and status flags that it was inherited with; its own may have more (a terminal opened anew).
    pub flags: i32,
    /// It is the terminal that the sandbox was started on.
    pub controlling: bool,
    /// The path that it was opened by outside, as the guest sees it.
    pub name: Option<Vec<u8>>,
}

/// Everything a sandbox is made of.
pub struct Sandbox {
    /// Runs guest code.
    pub platform: Arc<dyn Platform>,
    /// The gofer.
    pub client: Arc<Client>,
    /// The gofer's mounts, in its order.
    pub mounts: Vec<HostMount>,
    /// Standard input, output and error.
    pub stdio: [Std; 3],
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
    /// Signals that the program starts with ignored, bit `n - 1` for signal `n`.
    pub ignored: u64,
    /// And blocked.
    pub blocked: u64,
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
        crate::task::sched::know_processors();
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
            ipc: Arc::new(IpcNs::first()),
            net: Arc::new(crate::net::Net::first()),
            seccomp: Default::default(),
            report: Report::new(self.wanted),
            ptys: Default::default(),
            tty,
            outside: Default::default(),
            uts: Arc::new(UtsNs::first(Names::new(&self.config))),
            config: self.config,
        });
        let console = self.stdio.iter().find_map(|std| match std {
            Std::Own(inherited) if inherited.controlling => HostTty::owner(inherited).ok(),
            _ => None,
        });
        crate::fs::set_up(&kernel, &self.client, &self.mounts, console)
            .map_err(|e| format!("mounting: {e:?}"))?;
        let files = Arc::new(FdTable::new());
        stdio(&kernel, &files, self.stdio, job.as_ref()).map_err(|e| format!("standard files: {e:?}"))?;
        Ok(Ready { kernel, job, files })
    }
}

/// Installs the standard files. Those that are one description outside share one inside.
fn stdio(kernel: &Kernel, files: &FdTable, stdio: [Std; 3], job: Option<&Arc<Job>>) -> SysResult<()> {
    let no_job = Arc::new(Job::default());
    let job = job.unwrap_or(&no_job);
    for (number, std) in (0..).zip(stdio) {
        let file = match std {
            Std::Closed => continue,
            Std::Same(earlier) => files.get_any(i32::try_from(earlier).map_err(|_| Errno::EBADF)?)?,
            Std::Own(inherited) if rustix::termios::isatty(&inherited.fd) => {
                HostTty::open(kernel, inherited, job)?
            }
            Std::Own(inherited) => match crate::fs::inherited_device(&kernel.vfs, &inherited)? {
                Some(file) => file,
                None => HostStream::open(&kernel.reactor, inherited)?,
            },
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
            ignored: start.ignored,
            blocked: start.blocked,
        };
        self.kernel.spawn_init(init).map(drop).map_err(|e| format!("first process: {e:?}"))
    }
}
