//! The first task of a sandbox.

use super::creds::Creds;
use super::exec::Program;
use super::limits::Limits;
use super::pidns::PidNs;
use super::start::{First, Place};
use super::tree::{FIRST, INIT, Node};
use super::{Parts, Process, Task};
use crate::fail::SysResult;
use crate::kernel::Kernel;
use crate::mm::Mm;
use crate::signal::{SigHand, TaskSignals, UNMASKABLE, bit};
use crate::tty::Terminal;
use crate::vfs::fdtable::FdTable;
use crate::vfs::fscontext::FsContext;
use platform::{MemFault, Space};
use std::sync::Arc;
use syscall_table::abi::sigaction::{NSIG, SIG_IGN, SIGCHLD, Sigaction};

/// The first program and what it starts with.
pub struct Init {
    /// Path of the program in the sandbox; a name without a slash is looked for in PATH.
    pub path: Vec<u8>,
    /// Working directory.
    pub place: Place,
    /// Arguments, the program's name first.
    pub argv: Vec<Vec<u8>>,
    /// Environment, `NAME=value`.
    pub envp: Vec<Vec<u8>>,
    /// User and groups.
    pub creds: Creds,
    /// Root, working directory, umask.
    pub fs: Arc<FsContext>,
    /// Standard files.
    pub files: Arc<FdTable>,
    /// Resource limits.
    pub limits: Limits,
    /// Signals ignored from the start, bit `n - 1` for signal `n`.
    pub ignored: u64,
    /// Signals blocked from the start.
    pub blocked: u64,
}

/// Stands in until the host has made the first space.
struct NoSpace;

impl Space for NoSpace {
    fn read(&self, _addr: u64, _buf: &mut [u8]) -> Result<(), MemFault> {
        Err(MemFault { done: 0 })
    }
    fn write(&self, _addr: u64, _data: &[u8]) -> Result<(), MemFault> {
        Err(MemFault { done: 0 })
    }
    fn reserved(&self) -> &[core::ops::Range<u64>] {
        &[]
    }
    fn vdso(&self) -> Option<u64> {
        None
    }
    fn on_reaped(&self, told: platform::Told) {
        told(platform::Rusage::default());
    }
    fn kill(&self) {}
}

impl Kernel {
    /// Starts the first program as pid 2, leader of its own session and process group. The outcome, failure to load
    /// it included, comes from [`Tree::wait_ending`](super::tree::Tree::wait_ending).
    ///
    /// # Errors
    /// The host could make no process. Call once.
    pub fn spawn_init(self: &Arc<Kernel>, init: Init) -> SysResult<Arc<Task>> {
        crate::time::ticks::start();
        let name = self.tree.lock().enroll(&PidNs::first(), &[], |_| false)?;
        let pid = name.kernel();
        debug_assert_eq!(pid, FIRST);
        let sighand = SigHand::default();
        for signal in (1..=NSIG).filter(|n| init.ignored & !UNMASKABLE & bit(*n) != 0) {
            sighand.set(signal, Sigaction { sa_handler: SIG_IGN, ..Sigaction::default() });
        }
        let process = Process::new(name.clone(), PidNs::first(), Arc::new(sighand), init.limits);
        let program = Program { path: init.path, argv: init.argv, envp: init.envp, closes: false };
        let uid = init.creds.uid;
        *process.ctty.lock() = self.tty.clone().map(|tty| tty as Arc<dyn Terminal>);
        let task = Task::new(
            self,
            name,
            Parts {
                process: process.clone(),
                mm: Mm::new(Arc::new(NoSpace)),
                files: init.files,
                fs: init.fs,
                creds: Arc::new(init.creds),
                signals: TaskSignals { mask: init.blocked & !UNMASKABLE, ..TaskSignals::default() },
                comm: b"init".to_vec(),
                first: First::Exec(Box::new(program), init.place),
            },
        );
        let new = self.platform.first_task(task.sink())?;
        let mm = Mm::new(new.space);
        *task.mm.lock() = mm.clone();
        task.set_control(new.control);
        {
            let mut tree = self.tree.lock();
            tree.mm_get(&mm);
            process.threads.lock().push(task.clone());
            tree.tasks.insert(pid, task.clone());
            tree.add(Node {
                process,
                parent: INIT,
                children: Vec::new(),
                pgid: pid,
                sid: pid,
                exit_signal: SIGCHLD,
                creator: INIT,
                subreaper: false,
                zombie: None,
                tracer: None,
                ghosts: 0,
                stop_event: None,
                cont_event: false,
                uid,
            });
        }
        self.report.born(pid, INIT);
        task.control().start();
        Ok(task)
    }

    /// Ends the sandbox: every guest is killed. For the sentry's main thread.
    pub fn shut_down(self: &Arc<Kernel>) {
        super::exit::shut_down(self);
        crate::run::drain();
    }
}
