//! What the launcher tells the sentry at its start.

use crate::policy::{Kind, Plan, plan::Mounted};
use sentry::boot::{Access, HostMount, MountKind};
use sentry::task::limits::Limits;
use std::os::fd::RawFd;

/// The sentry's start.
pub struct SentrySetup {
    /// Program and arguments.
    pub command: Vec<Vec<u8>>,
    /// Environment, `K=V` each.
    pub env: Vec<Vec<u8>>,
    /// Working directory; `must` says that it was asked for.
    pub cwd: Vec<u8>,
    pub cwd_must: bool,
    /// What is mounted, in this order; the first is `/`.
    pub mounts: Vec<HostMount>,
    /// `trap` or `ptrace`.
    pub platform: String,
    /// Most threads and processes inside, together.
    pub tasks: usize,
    pub ids: Ids,
    pub job: JobSetup,
    /// Descriptors.
    pub control: RawFd,
    pub lanes: Vec<RawFd>,
    pub report: Option<RawFd>,
    /// Whether changes of the upper layer are listed.
    pub diff: bool,
    /// Files for archives of the upper layer, with the options that want them.
    pub archives: Vec<(&'static str, RawFd)>,
    /// The two files for checkpoints of the upper layer.
    pub checkpoints: Option<[RawFd; 2]>,
    pub trace: Option<RawFd>,
    /// Standard input, output and error; none for a closed one.
    pub stdio: [Option<StreamSetup>; 3],
    /// The launcher's terminal, for /dev/tty.
    pub tty: Option<RawFd>,
    /// Who counts host calls.
    pub counter: Option<RawFd>,
    /// The socket by which the launcher tells what guests' host processes have.
    pub sizes: RawFd,
    /// Limit on memory in bytes, and the socket to who meters it.
    pub memory: Option<(u64, RawFd)>,
}

/// A standard stream.
pub struct StreamSetup {
    /// Its descriptor. A terminal is opened anew, so that it need not wait.
    pub fd: RawFd,
    /// The earlier stream whose description this is too.
    pub same_as: Option<usize>,
    /// Access mode and status flags of the launcher's own description.
    pub flags: i32,
    /// It is the launcher's controlling terminal.
    pub controlling: bool,
    /// The name of a file or device as the guest sees it.
    pub name: Option<Vec<u8>>,
}

/// What the program gets of the launcher's place among jobs.
pub struct JobSetup {
    /// Ignored and blocked signals, bit `n - 1` for signal `n`.
    pub ignored: u64,
    pub blocked: u64,
    /// Nobody outside would continue the program if it stopped (an orphaned process group).
    pub orphaned: bool,
    /// The launcher's group is in its terminal's foreground, or there is no terminal.
    pub foreground: bool,
}

/// The mounts of a plan as the sentry makes them.
pub fn mounts(plan: &Plan) -> Vec<HostMount> {
    let mut number = 0;
    let hosts = plan.mounts.iter().filter(|mount| matches!(mount.kind, Kind::Host { .. })).count();
    let hosts = u32::try_from(hosts).unwrap_or(u32::MAX);
    let mut make = |mount: &Mounted| {
        let kind = match &mount.kind {
            Kind::Host { src, writable } => {
                number += 1;
                let access = match writable {
                    _ if mount.dst == "/" && plan.layered() => {
                        Access::Layered { size: plan.upper_size, earlier: plan.upper.as_ref().map(|_| hosts) }
                    }
                    true => Access::Write,
                    false => Access::Read,
                };
                MountKind::Host { number: number - 1, src: src.clone().into_bytes(), access }
            }
            Kind::Memory(size) => MountKind::Memory { size: *size },
        };
        HostMount { at: mount.dst.clone().into_bytes(), kind, rule: mount.rule.to_string() }
    };
    plan.mounts.iter().map(&mut make).collect()
}

/// The launcher's ids and limits, which are the program's.
pub struct Ids {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
    pub umask: u32,
    pub limits: Limits,
}
