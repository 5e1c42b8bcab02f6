//! The trap platform: guest code runs natively; every system call instruction outside the shim raises SIGSYS by a
//! seccomp filter, and the shim's handler hands the event to the sentry.
//!
//! - [`boot`]: the zygote and the guests' namespaces.
//! - [`process`]: a guest process, its forker, its memory; [`binding`]: its host threads.
//! - [`task`]: a task's state machine; [`worker`]: its host thread in the sentry; [`port`]: access while stopped; [`batch`]: host calls
//!   of the task for the sentry.
//! - [`together`]: what is kept on one processor while threads are made.
//! - [`poller`]: the thread that serves tasks which call often, without any wake-up.
//! - [`bells`]: tasks without a worker, where many block.
//! - [`lend`]: files that gates read from by themselves.
//! - [`areas`]: shared areas before and after their processes.
//! - [`reaper`], [`watchdog`]: processes that died, processes that hang.
//! - [`patch`]: call sites that trap often become jumps to the shim; [`ahead`]: where they are in files mapped anew.
//! - [`ctl`]: the hostile shared area; [`data`]: guest memory that travels in it.
//!
//! Lock order: a task's state, then a process's lists. No lock is held while a sink runs.
//!
//! Needs Linux 6.13 (PIDFD_GET_INFO names the processes that forkers make; killable notification waits are of
//! 5.19, same-core hand-over of 6.6) and a processor and kernel with FSGSBASE.

mod ahead;
mod areas;
mod batch;
mod bells;
mod binding;
pub(crate) mod boot;
mod ctl;
mod data;
mod forkers;
mod lend;
mod patch;
mod poller;
mod port;
mod process;
mod reaper;
mod task;
mod together;
mod watchdog;
mod worker;
pub(crate) mod xstate;

pub use boot::vdso_extent;
pub use ctl::fuzz_slot;

use crate::loss::Loss;
use crate::{CallError, NewTask, Platform, TaskSink, guestfilter, hostcalls};
use binding::Binding;
use lazaret_shim::layout;
use parking_lot::Mutex;
use process::Process;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Once};
use std::time::Duration;
use task::{First, Task};

/// How to run guests.
#[derive(Debug, Clone, Default)]
pub struct TrapConfig {
    /// Put guests into user, mount, pid, net, ipc and uts namespaces of their own. The caller needs the right to
    /// make a pid namespace (CAP_SYS_ADMIN in its user namespace).
    pub namespaces: bool,
    /// A directory of the caller's root to mount the guests' empty root on; `None` if the caller's root is empty
    /// already, which guests then share.
    pub empty_dir: Option<PathBuf>,
    /// [`vdso_extent`] of this process, when its root is empty by now; `None`: it is looked up.
    pub vdso: Option<(u64, u64)>,
    /// Most bytes of address space of one guest process (RLIMIT_AS).
    pub address_space: Option<u64>,
    /// How long a guest process may take to react before it is killed; `None`: 10 s.
    pub patience: Option<Duration>,
    /// Most guest threads (RLIMIT_NPROC, counted in the guests' user namespace).
    pub tasks: Option<u64>,
    /// Most ids in the guests' pid namespace, whoever makes them (pid_max of the namespace, Linux 6.14; older hosts
    /// have one for all, which stays as it is), and a descriptor of /proc to set it by.
    pub ids: Option<(u64, RawFd)>,
    /// Called when a process without which no guest can be made or live was killed from outside, with its name. Does not
    /// come back.
    pub on_loss: Option<fn(&'static str) -> !>,
}

const PATIENCE: Duration = Duration::from_secs(10);

/// What all parts share.
pub struct Runtime {
    reaper: reaper::Reaper,
    watchdog: Arc<watchdog::Watchdog>,
    poller: poller::Poller,
    pool: Arc<worker::Pool>,
    bells: bells::Bells,
    areas: Arc<areas::Areas>,
    known: Arc<ahead::Known>,
    processors: together::Processors,
    /// Tasks that want a processor.
    busy: AtomicUsize,
    /// Those of them that call all the time.
    chatty: AtomicUsize,
    zygote: Mutex<Option<Zygote>>,
    /// Threads without a task, in all processes.
    spares: AtomicUsize,
    /// A process made before it is needed.
    spare: Mutex<Option<Binding>>,
    /// Fresh processes were asked for more than once.
    more: AtomicBool,
    threads: Once,
    /// A process that does not do within this time what it was told to do is killed.
    patience: Duration,
    /// The sentry's id, as its children see it.
    own_pid: i32,
    /// Where the vDSO lies in every guest, 0 if nowhere.
    vdso: AtomicU64,
    /// Deaths that end the sandbox.
    loss: Loss,
}

/// The template of guest processes. Its one task never runs: its first report stays unanswered, so that
/// descriptors can be handed in by it.
struct Zygote {
    bind: Binding,
    bell: u64,
    close: u32,
}

impl Zygote {
    /// Whether a fork failed because somebody killed it: it is dead in a moment then.
    fn dies(&self, error: &CallError) -> bool {
        let process = &self.bind.process;
        let gone = matches!(error, CallError::Gone | CallError::Errno(libc::ENOENT | libc::ESRCH));
        gone && !process.destroyed.load(Relaxed) && process.dead_within(Duration::from_secs(1))
    }
}

impl Runtime {
    /// Starts the threads, which have by then the rights that are left to the sentry, no more. Those that cannot be
    /// started are done without: processes that died are then noticed when somebody asks.
    fn start(self: &Arc<Self>) {
        self.reaper.start(&self.areas);
        self.watchdog.start();
        poller::Poller::start(self);
    }

    /// A thread in a fresh process, which is most often ready already.
    fn fresh(self: &Arc<Self>) -> Result<Binding, CallError> {
        let ready = self.spare.lock().take().filter(|bind| bind.process.ended().is_none());
        let bind = match ready {
            Some(bind) => bind,
            None => self.breed()?,
        };
        // A sandbox that runs a single program needs no second process.
        if !self.more.swap(true, Relaxed) {
            return Ok(bind);
        }
        let rt = Arc::downgrade(self);
        self.pool.run(Box::new(move || {
            let Some(rt) = rt.upgrade() else { return };
            // Whoever cannot have a spare will ask for a process when it needs one, and hear why.
            if let Ok(bind) = rt.breed() {
                *rt.spare.lock() = Some(bind);
            }
        }));
        Ok(bind)
    }

    /// A process died.
    fn lost(&self, process: &Process, signal: i32) {
        if process.destroyed.load(Relaxed) || signal != libc::SIGKILL {
            return;
        }
        if process.vital.load(Relaxed) {
            self.loss.of_zygote();
        }
    }

    /// Makes a fresh process.
    fn breed(&self) -> Result<Binding, CallError> {
        let mut guard = self.zygote.lock();
        let zygote = guard.as_mut().ok_or(CallError::Gone)?;
        let listener = zygote.bind.listener();
        let pending = (listener.as_fd(), zygote.bell);
        let of = process::Copied { slot: zygote.bind.slot, frame: 0, xstate: None };
        match zygote.bind.process.fork(pending, &mut zygote.close, &of) {
            Ok((bind, _)) => Ok(bind),
            Err(error) => {
                self.loss.check();
                if zygote.dies(&error) {
                    self.loss.of_zygote();
                }
                Err(error)
            }
        }
    }
}

/// Runs guests by seccomp traps.
pub struct TrapPlatform {
    rt: Arc<Runtime>,
    init: Option<OwnedFd>,
}

impl TrapPlatform {
    /// Starts the zygote, and no thread yet. To be called before the sentry restricts itself, on a thread that lives
    /// as long as the sentry (the zygote dies with it). Each guest process costs the sentry one descriptor, each task another.
    ///
    /// # Errors
    /// One line that says what the host does not allow.
    #[expect(clippy::new_ret_no_self, reason = "callers know platforms by their trait alone")]
    pub fn new(config: &TrapConfig) -> Result<Arc<dyn Platform>, String> {
        if !hostcalls::has_fsgsbase() {
            return Err("the trap platform needs FSGSBASE (Linux 5.9, nofsgsbase not given)".to_owned());
        }
        hostcalls::raise_descriptors();
        let text = |what: &'static str| move |e: std::io::Error| format!("{what}: {e}");
        let ctl = ctl::Ctl::new().map_err(text("shared memory"))?;
        let (before, size) = config.vdso.unwrap_or_else(boot::vdso_extent);
        let head = ctl.head();
        head.vdso_before.store(before, Relaxed);
        head.vdso_size.store(size, Relaxed);
        ctl.store_filter(&guestfilter::assemble());
        head.cmd_kind.store(layout::CMD_THREAD, Relaxed);
        head.cmd_slot.store(1, Relaxed);
        head.cmd_seq.store(1, Release);
        let booted = ctl
            .with_file(|file| Ok(boot::boot(config, lazaret_shim::ELF, Some(file.as_fd()))))
            .map_err(text("shared memory"))??;
        ctl.close();
        let rt = Runtime {
            reaper: reaper::Reaper::new().map_err(text("reaper"))?,
            areas: Arc::default(),
            known: Arc::default(),
            watchdog: watchdog::Watchdog::new(config.patience.unwrap_or(PATIENCE)),
            poller: poller::Poller::new(),
            processors: together::Processors::new(),
            pool: Arc::default(),
            bells: bells::Bells::new().map_err(text("doorbells"))?,
            busy: AtomicUsize::new(0),
            chatty: AtomicUsize::new(0),
            zygote: Mutex::new(None),
            spares: AtomicUsize::new(0),
            spare: Mutex::new(None),
            more: AtomicBool::new(false),
            threads: Once::new(),
            patience: config.patience.unwrap_or(PATIENCE),
            own_pid: std::process::id() as i32,
            vdso: AtomicU64::new(0),
            loss: Loss::new(config.on_loss, booted.init_pid),
        };
        let rt = Arc::new(rt);
        let dead = |e: CallError| format!("the zygote did not come up: {e:?}");
        let process =
            Process::new(&rt, booted.zygote, ctl, 1, 0, patch::Sites::new(rt.known.clone()), |pid| {
                process::Forker::first(pid, None, 0)
            })
            .map_err(dead)?;
        let bind = process.bind(1).map_err(dead)?;
        // No guest code has run yet, so what the zygote says is true.
        rt.vdso.store(process.ctl.head().vdso.load(Relaxed), Relaxed);
        let notif = worker::recv(&bind).ok_or_else(|| dead(CallError::Gone))?;
        process.vital.store(true, Relaxed);
        *rt.zygote.lock() = Some(Zygote { bind, bell: notif.id, close: 0 });
        Ok(Arc::new(TrapPlatform { rt, init: booted.init }))
    }
}

impl Platform for TrapPlatform {
    fn name(&self) -> &'static str {
        "trap"
    }

    fn address_range(&self) -> std::ops::Range<u64> {
        0x1_0000..layout::REGION_START
    }

    fn first_task(&self, sink: Arc<dyn TaskSink>) -> Result<NewTask, CallError> {
        self.rt.threads.call_once(|| self.rt.start());
        let bind = self.rt.fresh()?;
        bind.process.ctl.head().learns.store(1, Relaxed);
        Ok(Task::create(&self.rt, sink, bind, First::Worker, &crate::Regs::default()))
    }
}

impl Drop for TrapPlatform {
    fn drop(&mut self) {
        self.rt.loss.over();
        if let Some(zygote) = self.rt.zygote.lock().take() {
            zygote.bind.process.destroy();
        }
        self.rt.spare.lock().take();
        if let Some(init) = &self.init {
            hostcalls::pidfd_kill(init.as_fd());
            let _ = hostcalls::reap(init.as_fd());
        }
        self.rt.reaper.stop();
        self.rt.poller.stop();
        self.rt.bells.stop();
        self.rt.watchdog.stop();
    }
}
