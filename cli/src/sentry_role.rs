//! The sentry, from the fork to the end.

use crate::control::Message;
use crate::setup::SentrySetup;
use confine::enter::{Kin, Side, enter_namespaces, hint};
use confine::host::Arrived;
use confine::{capabilities, host, root};
use platform::sentryfilter;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::CapabilitySet;
use sentry::boot::{Inherited, Sandbox, Start, Std};
use sentry::fs::host_tty::host_signal;
use sentry::kernel::Config;
use sentry::layer::{Diff, Keeper};
use sentry::report::{Outcome, Wanted};
use sentry::task::creds::Creds;
use sentry::task::start::Place;
use sentry::task::tree::Ending;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use syscall_table::abi::wait::WaitStatus;
use syscall_table::errno::Errno;

/// Starts the sentry as a child in its own namespaces; its pid. This process must have one thread.
///
/// It is forked and not executed, which saves a third of the start. What it must not have of this process is taken away
/// first: descriptors, environment.
pub fn start(setup: SentrySetup) -> Result<i32, String> {
    match enter_namespaces(Kin::Child) {
        Ok(Side::Old(pid)) => Ok(pid),
        Ok(Side::New(..)) => {
            let mut keep: Vec<RawFd> = vec![setup.control, setup.sizes];
            keep.extend(
                setup
                    .lanes
                    .iter()
                    .chain(&setup.report)
                    .chain(&setup.trace)
                    .chain(&setup.tty)
                    .chain(&setup.counter)
                    .chain(setup.memory.iter().map(|(_, fd)| fd))
                    .chain(setup.archives.iter().map(|(_, fd)| fd))
                    .chain(setup.checkpoints.iter().flatten())
                    .chain(setup.stdio.iter().flatten().map(|stream| &stream.fd)),
            );
            host::close_all_but(&keep);
            host::forget_command_line(c"lazaret-sentry");
            match host::inherited(setup.control) {
                Ok(control) => sentry_main(setup, control),
                Err(_) => host::exit_now(crate::FAILURE.into()),
            }
        }
        Err((what, error)) => Err(format!("sentry: {what}: {error}{}", hint(&error))),
    }
}

fn sentry_main(setup: SentrySetup, control: OwnedFd) -> ! {
    // A thread of the kernel that is gone leaves guests waiting for ever: the sandbox ends with it.
    std::panic::set_hook(Box::new(|info| {
        crate::watch::say(&format!("lazaret: the sentry failed: {info}\n"));
        host::exit_now(crate::FAILURE.into())
    }));
    if let Err(text) = serve(setup, &control) {
        Message::Failed(crate::FAILURE, text).send(&control);
    }
    host::exit_now(crate::FAILURE.into())
}

fn serve(mut setup: SentrySetup, control: &OwnedFd) -> Result<(), String> {
    let begun = Instant::now();
    let at = |what: &'static str| move |error: rustix::io::Errno| format!("sentry: {what}: {error}");
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(at("setting the parent's signal"))?;
    rustix::thread::set_name(c"lazaret-sentry").map_err(at("naming the process"))?;
    // The terminal's signals come by the launcher, once.
    rustix::process::setsid().map_err(at("making a session"))?;
    host::few_arenas();
    let stdio = take_stdio(&mut setup).map_err(|e| format!("sentry: standard streams: {e}"))?;
    let vdso = platform::trap::vdso_extent();
    let proc = rustix::fs::open("/proc", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(at("opening /proc"))?;
    raise_descriptor_limit(&proc);
    empty_root().map_err(|e| format!("sentry: making an empty root: {e}{}", hint(&e)))?;
    rustix::thread::set_no_new_privs(true).map_err(at("setting no_new_privs"))?;
    let platform = platform(&setup, vdso, proc.as_raw_fd())?;
    drop(proc);
    capabilities::keep_only(CapabilitySet::empty())
        .map_err(|e| format!("sentry: dropping capabilities: {e}"))?;

    let take = |fd: RawFd| host::inherited(fd).map_err(|e| format!("sentry: descriptor {fd}: {e}"));
    let lanes = setup.lanes.iter().map(|fd| take(*fd)).collect::<Result<Vec<_>, _>>()?;
    let mut report = setup.report.map(take).transpose()?.map(File::from);
    let counter = setup.counter.map(take).transpose()?;
    sentry::memory::look::ask_by(take(setup.sizes)?);
    if let Some((limit, fd)) = setup.memory {
        sentry::memory::set(limit, take(fd)?);
    }
    let archives = setup.archives.iter().map(|(option, fd)| Ok((*option, File::from(take(*fd)?))));
    let archives = archives.collect::<Result<Vec<_>, String>>()?;
    let checkpoints = match setup.checkpoints {
        Some([a, b]) => Some([File::from(take(a)?), File::from(take(b)?)]),
        None => None,
    };
    let wants_diff = setup.diff;
    let sandbox = Sandbox {
        platform: platform.clone(),
        client: Arc::new(gofer::Client::new(lanes)),
        stdio,
        tty: setup.tty.map(take).transpose()?,
        wanted: Wanted { report: report.is_some(), trace: setup.trace.map(take).transpose()? },
        config: Config {
            cpus: crate::processors(),
            max_tasks: setup.tasks,
            kept_files: kept_files(setup.mounts.len()),
            speculation: speculation(),
            ..Config::default()
        },
        mounts: setup.mounts,
    };
    // The filter judges the sentry before it has read a byte of the guest's.
    sentryfilter::install(setup.platform == "ptrace")
        .map_err(|e| format!("sentry: installing the filter: {e}"))?;
    let ready = sandbox.build()?;
    let kernel = ready.kernel.clone();
    let told = control.try_clone().map_err(|e| format!("sentry: control socket: {e}"))?;
    kernel.tree.on_stop(Box::new(move |signal| Message::Stopped(signal).send(&told)));
    kernel.tree.set_shell_outside(!setup.job.orphaned);
    kernel.outside.set(setup.job.foreground);
    let asked = control.try_clone().map_err(|e| format!("sentry: control socket: {e}"))?;
    kernel.outside.on_ask(Box::new(move || Message::Terminal.send(&asked)));
    let said = control.try_clone().map_err(|e| format!("sentry: control socket: {e}"))?;
    sentry::memory::serve(&kernel, Box::new(move |line| Message::Lines(line).send(&said)), lost)?;
    let keeper = match checkpoints {
        Some(files) => keep(&kernel, files, control)?,
        None => None,
    };
    let cwd = setup.cwd;
    let command = setup.command;
    host::let_go_of_code();
    ready.start(Start {
        command: command.clone(),
        env: setup.env,
        place: Place { cwd: cwd.clone(), must: setup.cwd_must },
        creds: Creds::new(setup.ids.uid, setup.ids.gid, setup.ids.groups),
        umask: setup.ids.umask,
        ignored: setup.job.ignored,
        blocked: setup.job.blocked,
        limits: setup.ids.limits,
    })?;
    listen(&ready, keeper.clone(), control)?;

    let ending = kernel.tree.wait_ending();
    kernel.shut_down();
    let name = String::from_utf8_lossy(command.first().map(Vec::as_slice).unwrap_or_default()).into_owned();
    let (mut message, mut code, status) = outcome(ending, &name, &cwd);
    let diff = if wants_diff { Some(list(&kernel, control)) } else { None };
    match archive(&kernel, &archives, keeper.as_deref(), control) {
        Ok(()) => Message::Written.send(control),
        // Not a program's success: what was wanted of it is not there.
        Err(text) => {
            code = crate::FAILURE;
            message = Message::Failed(code, text);
        }
    }
    if let Some(file) = &mut report {
        let text = kernel.report.json(&Outcome {
            command: &command,
            status,
            code,
            duration: begun.elapsed(),
            platform: platform.name(),
            host_calls: counter.as_ref().map(|counter| host_calls(counter, platform.as_ref())),
            diff: diff.as_ref(),
        });
        if let Err(error) = file.write_all(text.as_bytes()) {
            Message::Lines(format!("lazaret: writing the report: {error}\n")).send(control);
        }
    }
    if code != 0 {
        let lines: String =
            kernel.report.gap_lines(10).iter().map(|line| format!("lazaret: {line}\n")).collect();
        if !lines.is_empty() {
            Message::Lines(lines).send(control);
        }
    }
    message.send(control);
    // Everything else in this pid namespace ends with its init.
    host::exit_now(0)
}

/// Lists what changed on the launcher's standard error.
fn list(kernel: &sentry::kernel::Kernel, control: &OwnedFd) -> Diff {
    let diff = sentry::layer::diff(&kernel.vfs).unwrap_or_else(|fail| {
        Message::Lines(format!("lazaret: --diff: {fail:?}\n")).send(control);
        Diff::default()
    });
    let mut lines = String::new();
    for (letter, path) in &diff.paths {
        let line = format!("{letter} {}\n", sentry::layer::shown(path));
        if lines.len().saturating_add(line.len()) > 8000 {
            Message::Lines(std::mem::take(&mut lines)).send(control);
        }
        lines.push_str(&line);
    }
    if diff.dropped > 0 {
        lines.push_str(&format!("lazaret: --diff: {} more\n", diff.dropped));
    }
    if !lines.is_empty() {
        Message::Lines(lines).send(control);
    }
    diff
}

/// Writes the archives that were asked for.
fn archive(
    kernel: &sentry::kernel::Kernel,
    archives: &[(&'static str, File)],
    keeper: Option<&Keeper>,
    control: &OwnedFd,
) -> Result<(), String> {
    let done = |option: &str, written: Result<Vec<String>, String>| {
        for line in written.map_err(|what| format!("{option}: writing: {what}"))? {
            Message::Lines(format!("lazaret: {option}: {line}\n")).send(control);
        }
        Ok(())
    };
    for (option, file) in archives {
        done(option, sentry::layer::export(&kernel.vfs, file))?;
    }
    keeper.map_or(Ok(()), |keeper| done("--upper", keeper.last()))
}

/// Begins to write checkpoints of the upper layer.
fn keep(
    kernel: &Arc<sentry::kernel::Kernel>,
    files: [File; 2],
    control: &OwnedFd,
) -> Result<Option<Arc<Keeper>>, String> {
    let socket = control.try_clone().map_err(|e| format!("sentry: control socket: {e}"))?;
    Keeper::start(kernel, files, Box::new(move |number| Message::Kept(number).send(&socket)))
        .map_err(|text| format!("sentry: --upper: {text}"))
}

/// Host calls by process and name, so far.
fn host_calls(
    counter: &OwnedFd,
    platform: &dyn platform::Platform,
) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut all: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    let guests = platform.host_calls().into_iter().map(|(number, count)| ("guest".to_owned(), number, count));
    for (process, number, count) in
        confine::count::read(counter).unwrap_or_default().into_iter().chain(guests)
    {
        let row = u32::try_from(number).ok().and_then(syscall_table::by_number);
        let name = match row {
            Some(row) => row.name.to_owned(),
            None if number == u64::from(platform::DOORBELL) => "doorbell".to_owned(),
            None => format!("syscall_{number}"),
        };
        *all.entry(process).or_default().entry(name).or_default() += count;
    }
    all
}

/// An empty read-only root.
fn empty_root() -> std::io::Result<()> {
    root::make_private()?;
    root::enter(&root::mount_empty(|_| Ok(()))?)
}

/// The guest's standard streams, moved away from the first three numbers: those stay what they mean to this process
/// (its last words go to 2), whatever the guest closes.
fn take_stdio(setup: &mut SentrySetup) -> std::io::Result<[Std; 3]> {
    let mut moved = [Std::Closed, Std::Closed, Std::Closed];
    for (place, stream) in moved.iter_mut().zip(&mut setup.stdio) {
        let Some(stream) = stream else { continue };
        *place = match (stream.same_as, stream.fd) {
            (Some(earlier), _) => Std::Same(earlier),
            (None, fd) => {
                let fd = match fd {
                    0 => rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3)?,
                    1 => rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?,
                    2 => rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), 3)?,
                    fd => host::inherited(fd)?,
                };
                let name = stream.name.take();
                Std::Own(Inherited { fd, flags: stream.flags, controlling: stream.controlling, name })
            }
        };
    }
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(moved)
}

/// Ids in the guests' pid namespace for so many guest tasks: a process of one task is a thread more, and what has ended
/// keeps its id until it is reaped.
fn host_ids(tasks: usize) -> u64 {
    (tasks as u64).saturating_mul(3).saturating_add(400)
}

/// What to tell the launcher, the exit status, and the program's own status.
fn outcome(ending: Ending, name: &str, cwd: &[u8]) -> (Message, u8, Option<WaitStatus>) {
    match ending {
        Ending::Status(status) => match (status.exit_status(), status.term_signal()) {
            (Some(code), _) => (Message::Exited(code as u8), code as u8, Some(status)),
            (_, signal) => {
                let signal = signal.unwrap_or(9);
                (Message::Killed(signal), 128u8.wrapping_add(signal as u8), Some(status))
            }
        },
        Ending::NoPlace(errno) => {
            let text = format!("working directory {}: {}", String::from_utf8_lossy(cwd), errno.message());
            (Message::Failed(crate::FAILURE, text), crate::FAILURE, None)
        }
        Ending::NotStarted(errno) => {
            let (code, text) = match errno {
                Errno::ENOENT => (127, "not found".to_owned()),
                other => (126, format!("cannot be executed: {}", other.message())),
            };
            (Message::Failed(code, format!("{name}: {text}")), code, None)
        }
    }
}

/// What the host says of speculation; 0, "not affected", where it says nothing.
fn speculation() -> [u8; 3] {
    use rustix::process::{SpeculationFeature as Feature, speculative_feature_state};
    [
        Feature::SpeculativeStoreBypass,
        Feature::IndirectBranchSpeculation,
        Feature::FlushL1DCacheOnContextSwitchOutOfTask,
    ]
    .map(|feature| speculative_feature_state(feature).ok().flatten().map_or(0, |state| state.bits() as u8))
}

/// A thread for what the launcher says. When the launcher is gone, so is the sandbox.
fn listen(ready: &sentry::boot::Ready, keeper: Option<Arc<Keeper>>, control: &OwnedFd) -> Result<(), String> {
    let socket = control.try_clone().map_err(|e| format!("sentry: control socket: {e}"))?;
    let (kernel, job) = (ready.kernel.clone(), ready.job.clone());
    let thread = std::thread::Builder::new().name("control".into()).stack_size(256 * 1024);
    let body = move || {
        while let Some(message) = Message::receive(&socket) {
            match message {
                Message::Signal(Arrived { signal, from_kernel }) => {
                    host_signal(&kernel, job.as_deref(), signal, from_kernel);
                    Message::Heard.send(&socket);
                }
                Message::Foreground(yes) => kernel.outside.set(yes),
                Message::Ask => Message::Heard.send(&socket),
                Message::Counts(yes) => {
                    if let Some(keeper) = &keeper {
                        keeper.answer(yes);
                    }
                }
                Message::End => {
                    Message::Heard.send(&socket);
                    kernel.shut_down();
                }
                _ => {}
            }
        }
        host::exit_now(crate::FAILURE.into())
    };
    thread.spawn(body).map(drop).map_err(|e| format!("sentry: starting a thread: {e}"))
}

/// Each guest task takes descriptors.
fn raise_descriptor_limit(any: impl AsFd) {
    const TABLE: i32 = 8192;
    let maximum = getrlimit(Resource::Nofile).maximum;
    // A limit may always be raised to its maximum.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    // Room for what is kept open while there is one thread: to enlarge a table that threads share the kernel waits for all
    // processors, some 20 ms each time.
    let most = i32::try_from(maximum.unwrap_or(u64::MAX)).unwrap_or(i32::MAX);
    drop(rustix::io::fcntl_dupfd_cloexec(any, TABLE.min(most) - 1));
}

/// Of each mount.
fn kept_files(mounts: usize) -> usize {
    let all = sentry::fs::gofer::kept_files(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX));
    // With very many mounts, one still.
    (usize::try_from(all).unwrap_or(256) / mounts.max(1)).max(1)
}

/// Says what was killed from outside, and ends the sandbox. Several threads may hear of it: one speaks.
fn lost(what: &'static str) -> ! {
    static SAID: AtomicBool = AtomicBool::new(false);
    while SAID.swap(true, Relaxed) {
        std::thread::park();
    }
    crate::watch::say(&format!("lazaret: {what} was killed\n"));
    host::exit_now(crate::FAILURE.into())
}

fn platform(
    setup: &SentrySetup,
    vdso: (u64, u64),
    proc: RawFd,
) -> Result<Arc<dyn platform::Platform>, String> {
    use platform::ptrace::PtracePlatform;
    use platform::trap::{TrapConfig, TrapPlatform};
    let config = TrapConfig {
        namespaces: true,
        vdso: Some(vdso),
        ids: Some((host_ids(setup.tasks), proc)),
        on_loss: Some(lost),
        ..TrapConfig::default()
    };
    match setup.platform.as_str() {
        "trap" => TrapPlatform::new(&config),
        "ptrace" => PtracePlatform::new(&config),
        other => Err(format!("no platform {other}")),
    }
}
