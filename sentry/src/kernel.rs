//! The kernel object: what all tasks of one sandbox share.

use crate::report::Report;
use crate::task::tree::Tree;
use crate::time::Timers;
use crate::vfs::Vfs;
use platform::Platform;
use std::sync::Arc;

/// One sandbox's kernel.
pub struct Kernel {
    /// Runs guest code.
    pub platform: Arc<dyn Platform>,
    /// Processes and their relations.
    pub tree: Tree,
    /// Mounts and file systems.
    pub vfs: Vfs,
    /// Deadlines.
    pub timers: Arc<Timers>,
    /// Host descriptors watched for guests.
    pub reactor: Arc<crate::reactor::Reactor>,
    /// Futex wait queues.
    pub futexes: crate::ipc::futex::Futexes,
    /// System V objects and POSIX message queues that the sandbox begins with.
    pub ipc: Arc<crate::task::namespaces::IpcNs>,
    /// The network that it begins with.
    pub net: Arc<crate::net::Net>,
    /// Memory of the guest's filters of system calls.
    pub seccomp: Arc<crate::seccomp::Budget>,
    /// What went wrong, and traces.
    pub report: Report,
    /// Pseudo-terminals.
    pub ptys: crate::fs::devpts::Ptys,
    /// The terminal that the sandbox was started on: the first session has it.
    pub tty: Option<Arc<crate::fs::host_tty::HostTty>>,
    /// Whether that terminal is the sandbox's to use just now.
    pub outside: crate::fs::host_tty::Outside,
    /// Host and domain name that the sandbox begins with.
    pub uts: Arc<crate::task::namespaces::UtsNs>,
    /// Limits and identity of the sandbox.
    pub config: Config,
}

/// Names of the sandbox, of at most 64 bytes.
#[derive(Clone)]
pub struct Names {
    /// uname nodename.
    pub host: Vec<u8>,
    /// uname domainname.
    pub domain: Vec<u8>,
}

impl Names {
    /// Those that the sandbox begins with.
    pub fn new(config: &Config) -> Names {
        Names { host: config.hostname.as_bytes().to_vec(), domain: b"(none)".to_vec() }
    }
}

/// What the sandbox is told about itself.
#[derive(Debug, Clone)]
pub struct Config {
    /// uname nodename at first.
    pub hostname: String,
    /// Threads and processes together.
    pub max_tasks: usize,
    /// Processors that the guest sees.
    pub cpus: usize,
    /// Host files of each of the gofer's mounts that stay open after their use.
    pub kept_files: usize,
    /// What the host says of speculation (PR_GET_SPECULATION_CTRL): store bypass, indirect branches, L1D flush.
    pub speculation: [u8; 3],
}

impl Default for Config {
    fn default() -> Self {
        // Programs ask for the address of their host's name: every hosts file has this one.
        let hostname = "localhost".into();
        Config { hostname, max_tasks: 32768, cpus: 1, kept_files: 256, speculation: [0; 3] }
    }
}
