//! From a fresh process to a confined gofer that serves: the launcher forks it into its namespaces ([`start`]), and
//! the `ready` descriptor brings a line once it serves, or cannot.
//!
//! | confinement | how |
//! |---|---|
//! | user namespace | root: all ids as they are; ordinary user: the own id alone |
//! | mount namespace | empty read-only root; exports held by descriptor (`mounts`) |
//! | pid, network, IPC, UTS namespaces | new and empty |
//! | capabilities | root: what reading (and with writable mounts changing) all files takes; ordinary user: none |
//! | system calls | allow-list ([`crate::exposure`]); anything else kills |
//! | lifetime | killed when the launcher's thread that started it ends; ends when the lanes close |
//!
//! # Start-up cost
//!
//! See the module text of [`crate`].

use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Barrier;

use confine::capabilities;
use confine::enter::{IdMap, Kin, Side, enter_namespaces, hint};
use confine::host;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal, setrlimit, umask};
use rustix::thread::{
    CapabilitySet, CpuSet, sched_getaffinity, sched_setaffinity, set_name, set_no_new_privs,
};

use crate::config::GoferConfig;
use crate::exports::node_limit;
use crate::filter;
use crate::mounts::{self, Failed};
use crate::oracle::Ids;
use crate::server::{Server, Setup};

/// What an unreadable request to the kernel exits with: lazaret's own failure.
const FAILURE: i32 = 125;

/// Descriptors that a gofer has room for from the start; a slot takes 8 bytes of the kernel's.
const TABLE: i32 = 8191;

/// The descriptors a gofer starts with.
pub struct GoferFds {
    /// The gofer's ends of the lanes: `SOCK_SEQPACKET` unix sockets, best one for each processor.
    pub lanes: Vec<OwnedFd>,
    /// The other end of [`crate::serve_ids`]. Used only with a single-id map.
    pub oracle: Option<OwnedFd>,
    /// The writing end of a pipe. One line comes: `ok PID` with the gofer's pid as this process's namespace has it, or
    /// `error TEXT`. The end of the pipe without a line is a failure too.
    pub ready: OwnedFd,
}

impl GoferFds {
    /// The descriptors by their numbers, as a command line brings them to an executed process. Each must be
    /// inherited for this and used for nothing else.
    ///
    /// # Errors
    /// A number that is no open descriptor.
    pub fn inherited(lanes: &[i32], oracle: Option<i32>, ready: i32) -> io::Result<Self> {
        let lanes = lanes.iter().map(|fd| host::inherited(*fd)).collect::<io::Result<_>>()?;
        Ok(Self { lanes, oracle: oracle.map(host::inherited).transpose()?, ready: host::inherited(ready)? })
    }
}

/// Starts a confined gofer as a child, which serves `config` until its lanes close; its pid. Descriptors by number: the
/// lanes', the owner oracle's and the `ready` pipe's end ([`GoferFds`]). This process must have one thread.
///
/// # Errors
/// One line that says what failed here. What fails in the gofer comes by `ready`.
pub fn start(config: &GoferConfig, lanes: &[i32], oracle: Option<i32>, ready: i32) -> Result<i32, String> {
    match enter_namespaces(Kin::Child) {
        Ok(Side::Old(pid)) => Ok(pid),
        Ok(Side::New(pid, map)) => {
            keep_only(lanes, oracle, ready);
            host::forget_command_line(c"lazaret-gofer");
            match GoferFds::inherited(lanes, oracle, ready) {
                Ok(fds) => serve(config, fds, pid, map),
                Err(_) => host::exit_now(FAILURE),
            }
        }
        Err((what, error)) => Err(format!("gofer: {what}: {error}{}", hint(&error))),
    }
}

/// Starts a confined gofer as a child of this process's parent, and ends. The process must have been executed for this
/// and have one thread.
pub fn run(config: &GoferConfig, fds: GoferFds) -> ! {
    let lanes: Vec<i32> = fds.lanes.iter().map(AsRawFd::as_raw_fd).collect();
    keep_only(&lanes, fds.oracle.as_ref().map(AsRawFd::as_raw_fd), fds.ready.as_raw_fd());
    match enter_namespaces(Kin::Sibling) {
        Ok(Side::Old(_)) => host::exit_now(0),
        Ok(Side::New(pid, map)) => serve(config, fds, pid, map),
        Err((what, error)) => fail(&mut PipeWriter::from(fds.ready), (what.to_string(), error)),
    }
}

fn keep_only(lanes: &[i32], oracle: Option<i32>, ready: i32) {
    let keep: Vec<i32> = lanes.iter().copied().chain(oracle).chain([ready]).collect();
    host::close_all_but(&keep);
}

fn serve(config: &GoferConfig, fds: GoferFds, pid: i32, map: IdMap) -> ! {
    let GoferFds { lanes, oracle, ready } = fds;
    // A lane whose thread is gone would be waited for without end.
    std::panic::set_hook(Box::new(|_| host::exit_now(FAILURE)));
    host::few_arenas();
    let mut ready = PipeWriter::from(ready);
    let oracle = oracle.filter(|_| map == IdMap::Own);
    match confine_and_serve(config, &lanes, oracle, map, pid, &mut ready) {
        Ok(()) => host::exit_now(0),
        Err(failed) => fail(&mut ready, failed),
    }
}

fn fail(ready: &mut PipeWriter, (what, error): Failed) -> ! {
    let hint = hint(&error);
    let _ = ready.write_all(format!("error gofer: {what}: {error}{hint}\n").as_bytes());
    host::exit_now(FAILURE)
}

fn confine_and_serve(
    config: &GoferConfig,
    lanes: &[OwnedFd],
    oracle: Option<OwnedFd>,
    map: IdMap,
    pid: i32,
    ready: &mut PipeWriter,
) -> Result<(), Failed> {
    let at = |what: &'static str| move |errno: rustix::io::Errno| (what.to_string(), io::Error::from(errno));
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(at("setting the parent's signal"))?;
    set_name(c"lazaret-gofer").map_err(at("naming the process"))?;
    umask(Mode::empty());
    mounts::close_standard().map_err(|error| ("opening /dev/null".to_string(), error))?;
    let no_core = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, no_core).map_err(at("limiting core files"))?;
    let max_nodes = node_limit();
    // Room for the first nodes while there is one thread: to enlarge a table that threads share the kernel waits for
    // all processors, 20 ms in sum.
    drop(rustix::io::fcntl_dupfd_cloexec(&*ready, TABLE.min(i32::try_from(max_nodes).unwrap_or(TABLE))));
    let built = mounts::build(config)?;
    let writable = config.mounts.iter().any(|mount| mount.writable);
    let io_at = |what: &str, error: io::Error| (what.to_string(), error);
    capabilities::keep_only(kept(map, writable)).map_err(|error| io_at("dropping capabilities", error))?;
    set_no_new_privs(true).map_err(at("setting no_new_privs"))?;
    let program = filter::assemble(writable, ready.as_raw_fd().cast_unsigned());

    let ids = oracle.map(Ids::new);
    let mounts::Built { exports, policy, self_fds } = built;
    let server = Server::new(Setup { exports, policy, self_fds, ids, max_nodes });
    let processors = processors();
    let started = Barrier::new(lanes.len() + 1);
    std::thread::scope(|scope| {
        for (index, lane) in lanes.iter().enumerate() {
            let processor = index.checked_rem(processors.len()).and_then(|index| processors.get(index));
            let (server, started) = (&server, &started);
            let thread = std::thread::Builder::new().stack_size(256 * 1024).spawn_scoped(scope, move || {
                stay_on(processor.copied());
                started.wait();
                server.serve_lane(lane);
            });
            if let Err(error) = thread {
                fail(ready, ("starting a thread".to_string(), error));
            }
        }
        started.wait();
        if let Err(error) = host::filter_all_threads(&program) {
            // Not an error to return: the threads would be waited for.
            fail(ready, ("installing the filter".to_string(), error));
        }
        // One write: the launcher wakes once.
        let _ = ready.write_all(format!("ok {pid}\n").as_bytes());
        host::let_go_of_code();
    });
    Ok(())
}

/// The processors that this process may run on.
fn processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// A lane's thread stays on its lane's processor: the client picks the lane by where it runs, and a wake-up on
/// the same processor costs a quarter of one across.
fn stay_on(processor: Option<usize>) {
    if let Some(processor) = processor {
        let mut set = CpuSet::new();
        set.set(processor);
        let _ = sched_setaffinity(None, &set);
    }
}

/// The capabilities that a gofer keeps, and why.
fn kept(map: IdMap, writable: bool) -> CapabilitySet {
    if map == IdMap::Own {
        // An ordinary user's rights are the user's own.
        return CapabilitySet::empty();
    }
    // Root reads all files; the sentry decides which of its users may.
    let read = CapabilitySet::DAC_READ_SEARCH;
    // Root changes all files, and makes some for others (set-ids of files and threads).
    let write = CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::CHOWN
        | CapabilitySet::FSETID
        | CapabilitySet::SETUID
        | CapabilitySet::SETGID;
    if writable { read | write } else { read }
}
