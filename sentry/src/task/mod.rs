//! Tasks (threads) and processes (thread groups).
//!
//! What a task shares with others is behind `Arc`s as in Linux: address space ([`Mm`]), descriptor table ([`FdTable`]), file-system
//! context ([`FsContext`]), signal actions ([`SigHand`]).

pub mod access;
pub mod boot;
pub mod clone;
pub mod coredump;
pub mod creds;
pub mod elf;
pub mod exec;
pub mod exit;
pub mod limits;
pub mod namespaces;
pub mod pidfd;
pub mod pidns;
pub(crate) mod privilege;
pub mod sched;
pub mod start;
pub mod timens;
pub mod tree;
pub mod usage;
pub mod userns;
pub mod wait;

use crate::kernel::Kernel;
use crate::mm::Mm;
use crate::run::Call;
use crate::signal::lent::Signals;
use crate::signal::{NO_STACK, SharedPending, SigHand, TaskSignals};
use crate::sync::{Level, Lock};
use crate::vfs::fdtable::FdTable;
use crate::vfs::fscontext::FsContext;
use crate::wait::{WaitQueue, Waiter};
use creds::Creds;
use limits::Limits;
use platform::{Event, Port, Space, TaskControl, TaskSink, Verdict};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use syscall_table::abi::{MINSIGSTKSZ, SS_AUTODISARM, Stack};

/// A guest thread.
pub struct Task {
    tid: AtomicI32,
    /// As which it was made.
    name: pidns::Name,
    /// Thread group.
    pub process: Arc<Process>,
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// Listener of the current call.
    pub waiter: Arc<Waiter>,
    /// The current call; held while its handler runs.
    pub call: Lock<Call>,
    /// Address space.
    pub mm: Lock<Arc<Mm>>,
    /// Descriptors.
    pub files: Lock<Arc<FdTable>>,
    /// Root, working directory, umask.
    pub fs: Lock<Arc<FsContext>>,
    /// Namespaces; the first ones once it has ended.
    pub(crate) namespaces: Lock<namespaces::Namespaces>,
    /// Credentials: replaced whole, never changed in place.
    pub creds: Lock<Arc<Creds>>,
    /// Mask, private pending signals, alternate stack.
    pub signals: Signals,
    /// comm: at most 15 bytes.
    pub comm: Lock<Vec<u8>>,
    /// CLONE_CHILD_CLEARTID / set_tid_address.
    pub clear_child_tid: AtomicU64,
    /// It became a user who had more tasks than its RLIMIT_NPROC (PF_NPROC_EXCEEDED).
    pub(crate) nproc_exceeded: std::sync::atomic::AtomicBool,
    /// set_robust_list head, as far as it is known.
    robust_list: AtomicU64,
    /// Semaphore operations to undo (SEM_UNDO), shared by CLONE_SYSVSEM.
    pub(crate) undo: Lock<Option<Arc<crate::ipc::sysv::sem::UndoList>>>,
    /// set_mempolicy(2): kept, without effect on one node.
    pub mempolicy: AtomicI32,
    /// It holds no futex and gets none any more; set under the futexes' lock.
    pub(crate) futex_closed: AtomicBool,
    /// A deliverable signal is pending (kept by [`crate::signal::mask::refresh`]).
    pub(crate) attention: AtomicBool,
    /// Whom to release at exec or exit (vfork child).
    pub(crate) vfork: Lock<Option<Arc<clone::Vfork>>>,
    /// PR_SET_PDEATHSIG; 0 is none.
    pub pdeath_signal: AtomicI32,
    /// PR_SET_NO_NEW_PRIVS.
    pub no_new_privs: AtomicBool,
    /// Filters of its system calls.
    pub seccomp: crate::seccomp::State,
    /// PR_SET_SYSCALL_USER_DISPATCH.
    pub dispatch: crate::seccomp::dispatch::Dispatch,
    /// Scheduling parameters: kept for the guest's sake, without effect.
    pub sched: Lock<sched::Sched>,
    /// Nanoseconds that the sentry has spent on its events.
    pub served: AtomicU64,
    /// Its current wait is not ended by signals.
    pub(crate) sleeps_deeply: AtomicBool,
    /// Calls that had to wait.
    pub parks: AtomicU64,
    /// Wake-ups of futexes when it last went on, at least.
    pub(crate) wakes_seen: AtomicU64,
    /// Nanoseconds that it has used in spaces that it has left (execve(2)).
    pub(crate) cpu_before: AtomicU64,
    /// Nanoseconds of CPU time when it last asked for them.
    pub cpu_seen: AtomicU64,
    /// Who wants to know of it.
    pub asked: usage::Asked,
    /// Who traces it, and its stops.
    pub tracing: crate::ptrace::Tracing,
    /// What others want done with its memory.
    pub(crate) errands: crate::ptrace::force::Errands,
    /// True once the task has ended.
    dead: AtomicBool,
    control: OnceLock<Arc<dyn TaskControl>>,
    me: Weak<Task>,
    /// What [`start::started`] does first.
    pub(crate) first: Lock<Option<start::First>>,
}

/// Options of prctl(2) without effect. A child has its parent's.
#[derive(Debug, Clone, Copy, Default)]
pub struct Advice {
    /// PR_MCE_KILL; None: never set.
    pub mce_kill: Option<u64>,
    /// PR_SET_THP_DISABLE, as it is answered: 3 where advised memory is left out.
    pub thp_disable: u64,
    /// PR_SET_MEMORY_MERGE.
    pub memory_merge: bool,
    /// PR_SET_IO_FLUSHER.
    pub io_flusher: bool,
}

/// A thread group.
pub struct Process {
    /// Process id (tid of the leader).
    pub pid: i32,
    /// What each namespace calls it.
    pub name: pidns::Name,
    /// Where it has its own number.
    pub pidns: Arc<pidns::PidNs>,
    /// The init of a namespace that no fault has hit: signals without a handler do not reach it (SIGNAL_UNKILLABLE).
    pub(crate) unkillable: AtomicBool,
    /// Its host process has had more tasks than one: what that has used is nobody's own.
    pub(crate) threaded: AtomicBool,
    /// Signal actions, shared by CLONE_SIGHAND; replaced at exec when shared.
    pub sighand: Lock<Arc<SigHand>>,
    /// Signals pending for the group.
    pub pending: Lock<SharedPending>,
    /// Resource limits.
    pub limits: Lock<Limits>,
    /// Woken when a child changes state (wait4) and when this group's members do.
    pub child_wait: WaitQueue,
    /// Somebody has waited for it.
    pub(crate) reaped: AtomicBool,
    /// Woken when this process exits (pidfd poll).
    pub exit_wait: WaitQueue,
    /// Program file name, for reports and /proc/pid/exe.
    pub exe: Lock<Vec<u8>>,
    /// Arguments at exec, for reports and /proc/pid/cmdline.
    pub argv: Lock<Vec<Vec<u8>>>,
    /// Start of the process ([`crate::time::now`]).
    pub started: std::time::Duration,
    /// Wait status once the group is exiting, else -1.
    pub group_exit: AtomicI32,
    /// The signal that stopped the group by job control, 0 while it runs.
    pub stopped: AtomicI32,
    /// Woken when a signal becomes pending for the group or one of its tasks (signalfd, sigtimedwait).
    pub signal_wait: WaitQueue,
    /// Living tasks, the leader first as long as it lives.
    threads: Lock<Vec<Arc<Task>>>,
    /// Auxiliary vector of the program, for /proc/pid/auxv and PR_GET_AUXV.
    pub auxv: Lock<Vec<u8>>,
    /// Environment at exec, for /proc/pid/environ.
    pub envp: Lock<Vec<Vec<u8>>>,
    /// The program's open file, for /proc/pid/exe.
    pub exe_file: Lock<Option<Arc<crate::vfs::file::File>>>,
    /// personality(2).
    pub personality: AtomicU32,
    /// PR_SET_DUMPABLE.
    pub dumpable: AtomicI32,
    /// What it has used up to now, as far as it has ended.
    pub usage: Lock<usage::Usage>,
    /// KiB that were resident when the host was last asked, 0: never.
    pub rss_seen: AtomicU64,
    /// /proc/pid/oom_score_adj, and the least value that somebody with the right to it has set.
    pub oom_score_adj: AtomicI32,
    /// See `oom_score_adj`.
    pub oom_score_least: AtomicI32,
    /// The core file that is being made.
    pub coredump: coredump::State,
    /// /proc/pid/coredump_filter.
    pub coredump_filter: AtomicU32,
    /// Options of prctl(2) that are kept for the guest's sake alone.
    pub advice: Lock<Advice>,
    /// Slots of PR_FUTEX_HASH, as they are answered.
    pub futex_slots: AtomicU32,
    /// Name and credentials of the leader once it has ended.
    pub(crate) epitaph: Lock<Option<(Vec<u8>, Arc<Creds>)>>,
    /// Timers that send signals.
    pub timers: crate::time::posix::ProcessTimers,
    /// The controlling terminal.
    pub ctty: Lock<Option<Arc<dyn crate::tty::Terminal>>>,
    /// Of a session leader whose terminal has hung up: the group that was in the foreground there, else 0.
    pub(crate) old_foreground: AtomicI32,
    /// execve(2) has happened (setpgid(2) of a parent is refused then).
    pub(crate) execed: AtomicBool,
}

impl Process {
    /// A process that has no tasks yet and is not in the tree.
    pub fn new(
        name: pidns::Name,
        pidns: Arc<pidns::PidNs>,
        sighand: Arc<SigHand>,
        limits: Limits,
    ) -> Arc<Process> {
        Arc::new(Process {
            pid: name.kernel(),
            name,
            pidns,
            unkillable: AtomicBool::new(false),
            threaded: AtomicBool::new(false),
            reaped: AtomicBool::new(false),
            sighand: Lock::new(Level::Process, sighand),
            pending: Lock::new(Level::Process, SharedPending::default()),
            limits: Lock::new(Level::Process, limits),
            child_wait: WaitQueue::new(),
            exit_wait: WaitQueue::new(),
            exe: Lock::new(Level::Field, Vec::new()),
            argv: Lock::new(Level::Field, Vec::new()),
            started: crate::time::now(),
            group_exit: AtomicI32::new(-1),
            stopped: AtomicI32::new(0),
            signal_wait: WaitQueue::new(),
            threads: Lock::new(Level::Field, Vec::new()),
            auxv: Lock::new(Level::Field, Vec::new()),
            envp: Lock::new(Level::Field, Vec::new()),
            exe_file: Lock::new(Level::Field, None),
            personality: AtomicU32::new(0),
            dumpable: AtomicI32::new(1),
            usage: Lock::new(Level::Field, usage::Usage::default()),
            rss_seen: AtomicU64::new(0),
            oom_score_adj: AtomicI32::new(0),
            oom_score_least: AtomicI32::new(0),
            coredump: Default::default(),
            coredump_filter: AtomicU32::new(0x33),
            advice: Lock::new(Level::Field, Advice::default()),
            futex_slots: AtomicU32::new(0),
            epitaph: Lock::new(Level::Field, None),
            timers: crate::time::posix::ProcessTimers::default(),
            ctty: Lock::new(Level::Field, None),
            old_foreground: AtomicI32::new(0),
            execed: AtomicBool::new(false),
        })
    }

    /// Living tasks.
    pub fn threads(&self) -> Vec<Arc<Task>> {
        self.threads.lock().clone()
    }

    /// Number of living tasks.
    pub fn thread_count(&self) -> usize {
        self.threads.lock().len()
    }

    /// Some living task, the leader if it lives.
    pub fn any_thread(&self) -> Option<Arc<Task>> {
        self.threads.lock().first().cloned()
    }

    /// Credentials: of its first living task, or what its leader had.
    pub fn creds(&self) -> Arc<Creds> {
        match self.any_thread() {
            Some(task) => task.creds(),
            None => self.epitaph.lock().as_ref().map(|(_, creds)| creds.clone()).unwrap_or_default(),
        }
    }

    /// Name of its leader.
    pub fn comm(&self) -> Vec<u8> {
        let epitaph = self.epitaph.lock().as_ref().map(|(comm, _)| comm.clone());
        epitaph.or_else(|| self.any_thread().map(|task| task.comm.lock().clone())).unwrap_or_default()
    }

    /// Signals queued for it and its tasks.
    pub fn queued_signals(&self) -> u64 {
        let shared = self.pending.lock().queue.len();
        let own: usize = self.threads().iter().map(|task| task.signals.lock().queue.len()).sum();
        shared.saturating_add(own) as u64
    }

    /// Signal actions.
    pub fn sighand(&self) -> Arc<SigHand> {
        self.sighand.lock().clone()
    }

    /// The soft limit of a resource (RLIMIT_*).
    pub fn limit(&self, resource: u32) -> u64 {
        self.limits.lock().soft(resource)
    }

    /// Whether the group is exiting or gone.
    pub fn is_exiting(&self) -> bool {
        self.group_exit.load(Ordering::SeqCst) >= 0
    }
}

/// What a new task shares or gets.
pub struct Parts {
    /// Thread group.
    pub process: Arc<Process>,
    /// Address space.
    pub mm: Arc<Mm>,
    /// Descriptors.
    pub files: Arc<FdTable>,
    /// File-system context.
    pub fs: Arc<FsContext>,
    /// Credentials.
    pub creds: Arc<Creds>,
    /// Mask, alternate stack.
    pub signals: TaskSignals,
    /// comm.
    pub comm: Vec<u8>,
    /// What it does first.
    pub first: start::First,
}

impl Task {
    /// A task that is not yet in the tree and has no host side yet.
    pub fn new(kernel: &Arc<Kernel>, name: pidns::Name, parts: Parts) -> Arc<Task> {
        Arc::new_cyclic(|me| Task {
            tid: AtomicI32::new(name.kernel()),
            name,
            process: parts.process,
            kernel: kernel.clone(),
            waiter: Arc::new(Waiter::new(me.clone())),
            call: Lock::new(Level::Call, Call::default()),
            mm: Lock::new(Level::Mm, parts.mm),
            files: Lock::new(Level::FdTable, parts.files),
            fs: Lock::new(Level::FsContext, parts.fs),
            namespaces: Lock::new(Level::Field, namespaces::Namespaces::first(kernel)),
            creds: Lock::new(Level::Task, parts.creds),
            signals: Signals::new(parts.signals),
            comm: Lock::new(Level::Field, parts.comm),
            clear_child_tid: AtomicU64::new(0),
            nproc_exceeded: Default::default(),
            robust_list: AtomicU64::new(0),
            undo: Lock::new(Level::Field, None),
            mempolicy: AtomicI32::new(0),
            futex_closed: AtomicBool::new(false),
            attention: AtomicBool::new(false),
            vfork: Lock::new(Level::Field, None),
            pdeath_signal: AtomicI32::new(0),
            no_new_privs: AtomicBool::new(false),
            seccomp: Default::default(),
            dispatch: Default::default(),
            sched: Lock::new(Level::Field, sched::Sched::default()),
            served: AtomicU64::new(0),
            sleeps_deeply: AtomicBool::new(false),
            parks: AtomicU64::new(0),
            wakes_seen: AtomicU64::new(0),
            cpu_before: AtomicU64::new(0),
            cpu_seen: AtomicU64::new(0),
            asked: Default::default(),
            tracing: Default::default(),
            errands: Default::default(),
            dead: AtomicBool::new(false),
            control: OnceLock::new(),
            me: me.clone(),
            first: Lock::new(Level::Field, Some(parts.first)),
        })
    }

    /// Thread id in the sandbox. It changes once: when a task that does not lead its group calls execve(2).
    pub fn tid(&self) -> i32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// What the platform reports to. It does not keep the task alive: the tree does, until the task ends.
    pub(crate) fn sink(&self) -> Arc<dyn TaskSink> {
        Arc::new(Sink(self.me.clone()))
    }

    /// The task's own Arc; None while it is being dropped.
    pub fn me(&self) -> Option<Arc<Task>> {
        self.me.upgrade()
    }

    /// Its host side.
    ///
    /// Every task gets one ([`set_control`](Self::set_control)) before it is started or can be found in the tree.
    pub fn control(&self) -> &Arc<dyn TaskControl> {
        match self.control.get() {
            Some(control) => control,
            None => unreachable!("task without host side"),
        }
    }

    /// Gives the task its host side. Once.
    pub fn set_control(&self, control: Arc<dyn TaskControl>) {
        // A second call would be a bug of ours and is harmless: the first stays.
        self.signals.set_control(control.clone());
        let _ = self.control.set(control);
    }

    /// Whether the task has ended.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Marks the task ended. True for the first caller.
    pub(crate) fn mark_dead(&self) -> bool {
        !self.dead.swap(true, Ordering::SeqCst)
    }

    /// The current address space.
    pub fn mm(&self) -> Arc<Mm> {
        self.mm.lock().clone()
    }

    /// Whether what a call writes to the task's memory may get there on the task's way back. Not if somebody looks
    /// at it before.
    pub(crate) fn leaves(&self, port: &dyn platform::Port, addr: u64, len: usize) -> bool {
        port.may_leave(len) && self.may_wait(addr, len)
    }

    /// Whether what a call writes there may be written when the call ends, as far as the task is concerned.
    pub(crate) fn may_wait(&self, addr: u64, len: usize) -> bool {
        !self.kernel.report.traces()
            && !self.tracing.is_traced()
            && self.mm().layout.glance(|layout| layout.plain(addr, len)) == Some(true)
    }

    /// The host side of the current address space.
    pub fn space(&self) -> Arc<dyn Space> {
        self.mm().space.clone()
    }

    /// The descriptor table.
    pub fn files(&self) -> Arc<FdTable> {
        self.files.lock().clone()
    }

    /// Root, working directory, umask.
    pub fn fs(&self) -> Arc<FsContext> {
        self.fs.lock().clone()
    }

    /// Whether calls of this task need not come to the sentry: not where somebody watches its calls, nor under
    /// filters, which judge every call.
    pub(crate) fn answers_itself(&self) -> bool {
        !self.kernel.report.tracing() && !self.tracing.is_traced() && !self.judges()
    }

    /// Whether something of its own is asked of each call before it is made.
    pub(crate) fn judges(&self) -> bool {
        self.seccomp.is_on() || self.dispatch.is_on()
    }

    /// Lets the platform answer by itself what is this task's own affair; to be told anew when any of it changes.
    pub(crate) fn tell_own(&self) {
        if self.answers_itself() {
            let c = self.creds();
            let ids =
                [c.ns.user(c.uid), c.ns.user(c.euid), c.ns.group(c.gid), c.ns.group(c.egid)].map(u64::from);
            let [uid, euid, gid, egid] = ids;
            let (pid, tid) = (self.process.name.own() as u64, self.own_tid() as u64);
            let no_rseq = -i64::from(syscall_table::errno::Errno::ENOSYS.raw());
            let no_rseq = no_rseq as u64;
            self.control().answers([pid, tid, uid, euid, gid, egid, no_rseq, 0, 0, 0, 0, 0, 0]);
            self.tell_actions();
            self.set_altstack(self.altstack());
            // Another thread may give this one filters at any time.
            if !self.answers_itself() {
                self.control().no_answers();
            }
        }
    }

    /// As [`tell_own`](Self::tell_own), after signal actions have changed: which are still untouched.
    pub(crate) fn tell_actions(&self) {
        let sighand = self.process.sighand();
        let mut told = None;
        // Who tells last has looked since.
        loop {
            // Changes by another process (CLONE_SIGHAND) would not be told here.
            let untouched = if sighand.is_shared() { 0 } else { sighand.untouched() };
            if told == Some(untouched) {
                return;
            }
            self.control().answer(platform::OWN_ACTION, untouched);
            told = Some(untouched);
        }
    }

    /// The alternate signal stack. To be asked while the task is in the sentry.
    pub(crate) fn altstack(&self) -> Stack {
        let given = self.control.get().and_then(|control| control.altstack());
        let mut signals = self.signals.look();
        match given {
            Some([_, 0]) => signals.altstack = NO_STACK,
            Some([ss_sp, ss_size]) if ss_size >= MINSIGSTKSZ => {
                signals.altstack = Stack { ss_sp, ss_flags: 0, __pad: 0, ss_size };
            }
            _ => {}
        }
        signals.altstack
    }

    /// Replaces it. The platform takes changes of one without flags.
    pub(crate) fn set_altstack(&self, stack: Stack) {
        self.signals.look().altstack = stack;
        let plain = stack.ss_flags & SS_AUTODISARM == 0;
        if let Some(control) = self.control.get() {
            control.lend_altstack(plain.then_some([stack.ss_sp, stack.ss_size]));
        }
    }

    /// Whether the task's robust list was empty when it called exit, by its own word.
    pub(crate) fn robust_list_idle(&self, head: u64) -> bool {
        self.control.get().is_some_and(|control| control.robust_list_idle(head))
    }

    /// set_robust_list head.
    pub(crate) fn robust_list(&self) -> u64 {
        if let Some(head) = self.control.get().and_then(|control| control.robust_list()) {
            self.robust_list.store(head, Ordering::SeqCst);
        }
        self.robust_list.load(Ordering::SeqCst)
    }

    /// Replaces it.
    pub(crate) fn set_robust_list(&self, head: u64) {
        self.robust_list();
        self.robust_list.store(head, Ordering::SeqCst);
        if let Some(control) = self.control.get() {
            control.has_robust_list(head);
        }
    }

    /// Credentials.
    pub fn creds(&self) -> Arc<Creds> {
        self.creds.lock().clone()
    }

    /// Gives the task other credentials. What it learnt with those before is nobody else's affair: where they differ, it is
    /// not dumpable any more, and its parent's end sends it nothing.
    pub(crate) fn set_creds(&self, new: Creds) {
        if new.differs(&self.creds()) {
            self.process.dumpable.store(0, Ordering::Relaxed);
            self.pdeath_signal.store(0, Ordering::Relaxed);
        }
        *self.creds.lock() = Arc::new(new);
    }

    /// Makes the task look at its signals soon, whatever it does just now.
    pub fn notify(&self) {
        if !self.waiter.interrupt()
            && let Some(control) = self.control.get()
        {
            control.kick();
        }
    }
}

struct Sink(Weak<Task>);

impl TaskSink for Sink {
    fn event(&self, event: Event, port: &mut dyn Port) -> Verdict {
        match self.0.upgrade() {
            Some(task) => task.event(event, port),
            None => Verdict::Exit,
        }
    }

    fn settle(&self) {
        crate::run::drain();
    }

    fn gone(&self, signal: i32) {
        if let Some(task) = self.0.upgrade() {
            task.gone(signal);
        }
    }

    fn code(&self, addr: u64, len: u64, f: &mut dyn FnMut(i32)) {
        if let Some(task) = self.0.upgrade() {
            let mm = task.mm();
            if !task.tracing.is_traced() && !mm.watched.load(Ordering::SeqCst) {
                mm.code(addr, len, f);
            }
        }
    }
}
