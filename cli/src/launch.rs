//! `lazaret do`: starts gofer and sentry, passes signals on, waits for the end.
//!
//! The launcher stays in the namespaces it was started in. It opens nothing for the guest but the report and the
//! trace, and answers the gofer of an ordinary user what owner a file has ([`gofer::serve_ids`]).

use crate::layer::Outputs;
use crate::options::{DoOptions, PlatformName};
use crate::policy::{self, Plan};
use crate::setup::{Ids, SentrySetup};
use crate::stdio;
use crate::watch::{self, Child, Run};
use clap::ArgMatches;
use confine::host;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Resource, geteuid, getrlimit, setrlimit};
use sentry::task::limits::{Limits, NR_OPEN};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use syscall_table::abi::getrlimit::*;

/// Runs the command; its exit status.
pub fn run(options: &DoOptions, matches: &ArgMatches) -> ExitCode {
    match start(options, matches).and_then(|mut run| run.watch()) {
        Ok(code) => ExitCode::from(code),
        Err(text) => crate::failure(&text),
    }
}

fn start(options: &DoOptions, matches: &ArgMatches) -> Result<Run, String> {
    let text = |what: &'static str| move |e: io::Error| format!("{what}: {e}");
    // First of all: it traces what this process makes.
    let counter = options.host_calls.then(|| confine::count::start(options.platform == PlatformName::Trap));
    let counter = counter.transpose().map_err(|e| format!("--host-calls: ptrace: {e}"))?;
    unknown_option(options)?;
    let plan = Plan::new(&policy::gather(matches)?)?;
    let upper = plan.upper.as_deref().map(Path::new);
    let outputs = Outputs::open(options.diff, options.export.as_deref(), options.commit.as_deref(), upper)?;
    if outputs.wanted() && !plan.layered() {
        return Err("--diff, --export, --commit, --upper: / has no upper layer by this policy".to_owned());
    }
    let report = options.report.as_ref().map(|path| create(path)).transpose()?;
    let trace = match &options.trace {
        Some(path) if path == Path::new("-") => {
            Some(duplicate(io::stderr().as_fd()).map_err(text("standard error"))?)
        }
        Some(path) => Some(create(path)?),
        None => None,
    };
    let ids = ids();
    loosen().map_err(text("signals"))?;
    let signals = host::signal_fd(watch::FORWARDED).map_err(text("signals"))?;
    let (control, control_theirs) = pair().map_err(text("control socket"))?;
    let lanes = crate::processors().min(8);
    let lanes: Result<Vec<_>, _> = (0..lanes).map(|_| pair()).collect();
    let (sentry_lanes, gofer_lanes): (Vec<_>, Vec<_>) =
        lanes.map_err(text("gofer's sockets"))?.into_iter().unzip();
    let numbers = |fds: &[OwnedFd]| fds.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>();
    let tty = open_tty();
    let streams = stdio::streams(Path::new(plan.root()));
    let (sizes, sizes_theirs) = pair().map_err(text("socket for sizes"))?;
    let meter = match options.memory {
        Some(limit) => {
            let (ours, theirs) = pair().map_err(text("meter's socket"))?;
            Some((limit, ours, theirs))
        }
        None => None,
    };

    let sentry_setup = SentrySetup {
        command: options.command.iter().map(|arg| arg.as_bytes().to_vec()).collect(),
        env: environment(options)?,
        cwd: match &options.cwd {
            Some(dir) => dir.as_os_str().as_bytes().to_vec(),
            None => std::env::current_dir().map_or(b"/".to_vec(), |dir| dir.into_os_string().into_vec()),
        },
        cwd_must: options.cwd.is_some(),
        mounts: crate::setup::mounts(&plan),
        platform: match options.platform {
            PlatformName::Trap => "trap".to_owned(),
            PlatformName::Ptrace => "ptrace".to_owned(),
        },
        tasks: options.tasks.map_or_else(most_tasks, |n| n as usize),
        ids,
        control: control_theirs.as_raw_fd(),
        lanes: numbers(&sentry_lanes),
        report: report.as_ref().map(AsRawFd::as_raw_fd),
        diff: outputs.diff,
        archives: outputs.files(),
        checkpoints: outputs.checkpoints(),
        trace: trace.as_ref().map(AsRawFd::as_raw_fd),
        stdio: streams.setup,
        job: stdio::job(tty.as_ref().map(AsFd::as_fd)),
        tty: tty.as_ref().map(AsRawFd::as_raw_fd),
        counter: counter.as_ref().map(|counter| counter.socket().as_raw_fd()),
        sizes: sizes_theirs.as_raw_fd(),
        memory: meter.as_ref().map(|(limit, _, theirs)| (*limit, theirs.as_raw_fd())),
    };
    // Root's gofer sees owners as they are.
    let oracle = if geteuid().is_root() { None } else { Some(pair().map_err(text("gofer's sockets"))?) };
    let (ready, ready_theirs) = io::pipe().map_err(text("gofer's pipe"))?;
    let mut homes = gofer::hidden::default_homes(&std::fs::read_to_string("/etc/passwd").unwrap_or_default());
    // The caller's own, wherever it is: programs look for secrets where $HOME says.
    homes.extend(std::env::var("HOME").ok().filter(|h| h.starts_with('/') && !homes.contains(h)));
    let config = plan.gofer(homes);
    let theirs = oracle.as_ref().map(|(_, theirs)| theirs.as_raw_fd());
    let sentry = Child::new(crate::sentry_role::start(sentry_setup)?)?;
    let gofer = gofer::start(&config, &numbers(&gofer_lanes), theirs, ready_theirs.as_raw_fd());
    let gofer = match gofer.and_then(Child::new) {
        Ok(gofer) => gofer,
        Err(text) => {
            sentry.end();
            return Err(text);
        }
    };

    let meter = match meter {
        Some((limit, ours, theirs)) => {
            drop(theirs);
            match crate::meter::start(limit, sentry.pid(), &ours).and_then(Child::new) {
                Ok(meter) => Some(meter),
                Err(text) => {
                    sentry.end();
                    gofer.end();
                    return Err(text);
                }
            }
        }
        None => None,
    };
    drop((ready_theirs, gofer_lanes, sentry_lanes, control_theirs, sizes_theirs, report, trace));
    stdio::let_go();
    if let Some((ours, theirs)) = oracle {
        drop(theirs);
        let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || gofer::serve_ids(ours));
        thread.map_err(text("starting a thread"))?;
    }
    host::let_go_of_code();
    let mut run = Run::new(control, signals, ready, tty, sentry, gofer);
    run.taker = outputs.taker(&run.control).map_err(text("starting a thread"))?;
    run.outputs = outputs;
    run.counter = counter;
    run.meter = meter;
    run.sizes = Some(sizes);
    Ok(run)
}

/// What follows the options is a program, and few begin with a dash: it is a word that nobody knows.
fn unknown_option(options: &DoOptions) -> Result<(), String> {
    match options.command.first() {
        Some(word) if word.as_bytes().starts_with(b"-") && !std::env::args_os().any(|arg| arg == "--") => {
            Err(format!("unknown option {} (-- goes before a program of that name)", word.display()))
        }
        _ => Ok(()),
    }
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

fn duplicate(fd: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
}

fn create(path: &Path) -> Result<OwnedFd, String> {
    let file = File::create(path).and_then(|file| duplicate(file.as_fd()));
    file.map_err(|e| format!("{}: {e}", path.display()))
}

/// The controlling terminal, if there is one and a standard stream is a terminal.
fn open_tty() -> Option<OwnedFd> {
    let shown = [io::stdin().as_fd(), io::stdout().as_fd(), io::stderr().as_fd()]
        .into_iter()
        .any(rustix::termios::isatty);
    if !shown {
        return None;
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let tty = File::options().read(true).write(true).custom_flags(flags).open("/dev/tty").ok()?;
    duplicate(tty.as_fd()).ok()
}

/// Most threads and processes inside where nothing else is asked for. A guest task is up to three tasks of the host (its
/// own, its process's second thread, its worker) and as many descriptors; one sandbox takes half of what the
/// host has for all.
fn most_tasks() -> usize {
    let read = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let mut host = read("/proc/sys/kernel/pid_max").unwrap_or(32768);
    host = host.min(read("/proc/sys/kernel/threads-max").unwrap_or(host)) / 2;
    if !geteuid().is_root() {
        host = host.min(getrlimit(Resource::Nproc).current.unwrap_or(host));
    }
    let files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let files = files.saturating_sub(sentry::fs::gofer::kept_files(files).saturating_add(256));
    usize::try_from(host.min(files) / 3).unwrap_or(usize::MAX).clamp(64, 32768)
}

/// The launcher's resource limits, as the sentry may keep them.
fn limits() -> Limits {
    const ALL: [(u32, Resource); 16] = [
        (RLIMIT_CPU, Resource::Cpu),
        (RLIMIT_FSIZE, Resource::Fsize),
        (RLIMIT_DATA, Resource::Data),
        (RLIMIT_STACK, Resource::Stack),
        (RLIMIT_CORE, Resource::Core),
        (RLIMIT_RSS, Resource::Rss),
        (RLIMIT_NPROC, Resource::Nproc),
        (RLIMIT_NOFILE, Resource::Nofile),
        (RLIMIT_MEMLOCK, Resource::Memlock),
        (RLIMIT_AS, Resource::As),
        (RLIMIT_LOCKS, Resource::Locks),
        (RLIMIT_SIGPENDING, Resource::Sigpending),
        (RLIMIT_MSGQUEUE, Resource::Msgqueue),
        (RLIMIT_NICE, Resource::Nice),
        (RLIMIT_RTPRIO, Resource::Rtprio),
        (RLIMIT_RTTIME, Resource::Rttime),
    ];
    let mut limits = Limits::default();
    for (number, resource) in ALL {
        let limit = getrlimit(resource);
        let most = if number == RLIMIT_NOFILE { NR_OPEN } else { RLIM_INFINITY };
        let value = |bound: Option<u64>| bound.unwrap_or(RLIM_INFINITY).min(most);
        limits.set(number, Rlimit { rlim_cur: value(limit.current), rlim_max: value(limit.maximum) });
    }
    limits
}

/// Limits on files, memory and time are the program's, and the sentry keeps them; its own processes are to reach
/// them as late as the host lets them, and by an error.
fn loosen() -> io::Result<()> {
    for resource in [Resource::Cpu, Resource::Fsize, Resource::Data, Resource::As] {
        if setrlimit(resource, rustix::process::Rlimit { current: None, maximum: None }).is_err() {
            let maximum = getrlimit(resource).maximum;
            // What may always be done.
            let _ = setrlimit(resource, rustix::process::Rlimit { current: maximum, maximum });
        }
    }
    host::block(&[libc::SIGXFSZ]).map(drop)
}

fn ids() -> Ids {
    let groups = rustix::process::getgroups().unwrap_or_default();
    // Reading the mask means to set it; this process makes its files before.
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    Ids {
        uid: geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        groups: groups.iter().map(|gid| gid.as_raw()).collect(),
        umask: mask.as_raw_mode(),
        limits: limits(),
    }
}

fn environment(options: &DoOptions) -> Result<Vec<Vec<u8>>, String> {
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    if !options.clear_env {
        env.extend(std::env::vars_os());
    }
    for given in &options.env {
        let bytes = given.as_bytes();
        let equals = bytes.iter().position(|byte| *byte == b'=').filter(|at| *at > 0);
        let Some((name, value)) = equals.map(|at| bytes.split_at(at)) else {
            return Err(format!("--env {}: not of the form K=V", given.display()));
        };
        let (name, value) = (OsStr::from_bytes(name), OsStr::from_bytes(value.get(1..).unwrap_or_default()));
        env.retain(|(other, _)| other != name);
        env.push((name.to_owned(), value.to_owned()));
    }
    Ok(env.iter().map(|(k, v)| [k.as_bytes(), b"=", v.as_bytes()].concat()).collect())
}
