//! How guest code runs and how the sentry reaches it.
//!
//! A [`Platform`] runs guest tasks on host threads, reports what they ask for as [`Event`]s to the task's
//! [`TaskSink`], and gives the sink a [`Port`] to the stopped task. The kernel above knows nothing of
//! seccomp, ptrace or signals of the host; the platforms know nothing of files, pids or signals of the guest.
//!
//! All of the sentry's `unsafe` code lives in this crate.

mod cputime;
pub mod decode;
pub mod guestfilter;
mod hostcalls;
pub mod hostio;
pub mod hostlock;
mod loss;
mod memcalls;
pub mod ptrace;
pub mod regs;
pub mod sentryfilter;
pub mod trap;

pub use cputime::{Told, cpu_sum};
pub use hostcalls::{heap_in_use, kill_process, trim_heap};
pub use lazaret_shim::layout::DOORBELL;
pub use regs::{Regs, XState};

use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The time stamp counter.
#[inline]
pub fn tick_counter() -> u64 {
    hostcalls::tsc()
}

/// A host error number (positive), as the host kernel returned it to a call made for a guest.
pub type HostErrno = i32;

/// The guest process behind a [`Port`], [`Space`] or [`TaskControl`] is gone (killed, out of memory, or it
/// broke its own shim and was killed for it). Nothing more can be done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// Why a host call in the guest failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallError {
    /// The host kernel refused with this errno.
    Errno(HostErrno),
    /// The process died.
    Gone,
}

impl From<Gone> for CallError {
    fn from(_: Gone) -> Self {
        CallError::Gone
    }
}

/// The address range touched is not (wholly) accessible in the guest's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemFault {
    /// Bytes transferred before the fault.
    pub done: usize,
}

/// CPU time, divided as the host divides it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In user mode.
    pub user: std::time::Duration,
    /// In the host's kernel.
    pub system: std::time::Duration,
}

/// What a host process or thread has used (getrusage(2)).
#[derive(Debug, Clone, Copy, Default)]
pub struct Rusage {
    /// CPU time.
    pub cpu: CpuTime,
    /// Most memory that was resident at once, in KiB.
    pub max_rss: u64,
    /// Page faults without input.
    pub minor_faults: u64,
    /// Page faults with input.
    pub major_faults: u64,
    /// Block input operations.
    pub blocks_in: u64,
    /// Block output operations.
    pub blocks_out: u64,
    /// Context switches by waiting.
    pub voluntary: u64,
    /// Context switches by the scheduler.
    pub involuntary: u64,
}

/// Which system call convention the guest used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Abi {
    /// `syscall` in 64-bit mode.
    #[default]
    X86_64,
    /// `int 0x80`, or any audit arch that is not x86-64.
    I386,
    /// x86-64 with the x32 bit (0x4000_0000) set in the number.
    X32,
}

/// A system call as the guest issued it. Hostile: every field is the guest's choice.
#[derive(Debug, Clone, Copy)]
pub struct SyscallRequest {
    /// Convention.
    pub abi: Abi,
    /// Number, x32 bit removed.
    pub nr: u32,
    /// The six argument registers.
    pub args: [u64; 6],
}

/// A processor exception in guest code, as the host described it in siginfo.
#[derive(Debug, Clone, Copy)]
pub struct Exception {
    /// SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGTRAP.
    pub signo: i32,
    /// `si_code` of the host.
    pub code: i32,
    /// `si_addr`.
    pub addr: u64,
    /// Processor trap number (uc_mcontext trapno), 0 if unknown.
    pub trapno: u64,
    /// Processor error code (uc_mcontext err).
    pub error_code: u64,
}

/// What a task's worker reports.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// The task exists and was started; it has not run a guest instruction yet.
    Started,
    /// A system call; registers are stopped right behind the instruction.
    Syscall(SyscallRequest),
    /// An exception; registers point at the faulting instruction (SIGTRAP: as the host has it).
    Exception(Exception),
    /// The task was running guest code and was [kicked](TaskControl::kick); registers are at a clean
    /// instruction boundary of guest code.
    Interrupted,
    /// The task was parked and was kicked: the sink has the exclusive port again.
    Again,
    /// A memory call left to the task by [`Port::defer`] failed with this error of the host. The task is behind the
    /// system call, whose verdict was not carried out.
    Failed(HostErrno),
}

/// Pages that one [`Port::mincore`] tells of.
pub const MINCORE_MAX: usize = 1024;

/// Names what a task was left to do by [`Port::defer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// The task, among those of its space that live.
    pub task: u32,
    /// Which of its requests.
    pub seq: u32,
}

/// What becomes of the task after its sink has dealt with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// System call done: put the value in rax and go on (registers otherwise as they were or as set by the
    /// port).
    Return(i64),
    /// Go on with the registers as they are now (as set by the port).
    Resume,
    /// Keep the task stopped; [`TaskControl::finish`] or [`TaskControl::kick`] ends it.
    Park,
    /// The task ends: its host thread runs no guest instruction any more.
    Exit,
}

/// Receives the events of one task. Implemented by the kernel.
pub trait TaskSink: Send + Sync {
    /// One event, on the thread that owns the task just now. At most one call per task is running at any
    /// time. Must not sleep for long.
    fn event(&self, event: Event, port: &mut dyn Port) -> Verdict;

    /// The task has its answer to the last event: what the event set off for others is to be done now. Called on the same thread,
    /// with no lock held, before any other event.
    fn settle(&self) {}

    /// The host thread or process died without a [`Verdict::Exit`]: `signal` is what killed it (usually
    /// SIGKILL: out of memory, or the platform killed a guest that broke its shim). No event follows.
    fn gone(&self, signal: i32);

    /// The platform wants to replace code: calls `f` with the protection of the memory, and nothing changes about that
    /// memory meanwhile. Not called if the range is not wholly private, executable and not writable. Called with no event
    /// under way and no lock held.
    fn code(&self, _addr: u64, _len: u64, _f: &mut dyn FnMut(i32)) {}
}

/// Exclusive access to one stopped task.
///
/// Host calls run in the guest's own process. They return [`CallError::Errno`] as the host answered; the
/// caller has already checked policy, limits and that ranges keep out of [`Space::reserved`]; the platform checks the
/// latter again.
pub trait Port {
    /// Whether this port can run host calls and change registers right now. A port handed to a sink by the
    /// polling thread cannot: its sink answers [`Verdict::Park`] after calling [`TaskControl::kick`], and gets
    /// [`Event::Again`] with a full port.
    fn full(&self) -> bool;

    /// General registers.
    fn regs(&mut self) -> Result<Regs, Gone>;

    /// Replaces the general registers. Values are sanitised as the host's sigreturn does (segments, eflags).
    fn set_regs(&mut self, regs: &Regs) -> Result<(), Gone>;

    /// The extended state in the layout of a signal frame's fpstate (FXSAVE area, XSAVE header, components;
    /// standard format, software-reserved bytes filled in, closing magic included).
    fn xstate(&mut self) -> Result<XState, Gone>;

    /// Replaces the extended state; one that the processor would refuse is an `Errno(EINVAL)`.
    fn set_xstate(&mut self, state: &XState) -> Result<(), CallError>;

    /// Memory of the task's current space; may be served from data that travelled with the event.
    fn read_mem(&mut self, addr: u64, buf: &mut [u8]) -> Result<(), MemFault>;

    /// Writes memory of the task's current space; may travel with the verdict.
    fn write_mem(&mut self, addr: u64, data: &[u8]) -> Result<(), MemFault>;

    /// Writes four bytes before guest code goes on; nothing happens where that cannot be done.
    fn put_u32(&mut self, addr: u64, value: u32) {
        let _ = self.write_mem(addr, &value.to_le_bytes());
    }

    /// Bytes of the task's memory from `addr` on that travelled with the event: as many as are known, and what the memory
    /// held when the task called.
    fn known(&mut self, _addr: u64) -> &[u8] {
        &[]
    }

    /// Whether [`leave_write`](Self::leave_write) would take so many bytes.
    fn may_leave(&self, _len: usize) -> bool {
        false
    }

    /// Lets a write travel with the verdict, if that can be done: whoever looks at the memory in another way may see it
    /// later than the call's end, and a fault is no more than the call's EFAULT. For memory that the caller knows to
    /// be writable.
    fn leave_write(&mut self, _addr: u64, _data: &[u8]) -> bool {
        false
    }

    /// From now on [`mmap`](Self::mmap), [`munmap`](Self::munmap), [`mprotect`](Self::mprotect) and
    /// [`madvise`](Self::madvise) may be left to the task, which makes them in this order on its way back to guest
    /// code; their success means nothing then, and a failure comes as [`Event::Failed`]. What reads or changes the
    /// task by this port later finds them made. False: the platform makes each at once. A port that is not full
    /// can do this much, without files.
    fn defer(&mut self) -> bool {
        false
    }

    /// Lets the platform answer the task's pread of a guest descriptor by itself, from the file's first `len` bytes: a regular
    /// file, open for reading, whose mapping has what reading gives. True if it does, until [`TaskControl::take_back`] or
    /// another program; it answers only while it [may](TaskControl::answers). What it cannot answer, such as what lies beyond the
    /// end of a file that has become shorter, comes as ever. Needs a full port.
    ///
    /// # Errors
    /// Of the host calls, which leave everything as it was.
    fn lend(&mut self, _fd: i32, _file: &Arc<OwnedFd>, _len: u64) -> Result<bool, CallError> {
        Ok(false)
    }

    /// What was left to the task so far in this event, if anything.
    fn deferred(&self) -> Option<Token> {
        None
    }

    /// The token that [`deferred`](Self::deferred) gives to what this task leaves undone, or gave when it failed;
    /// only [`Token::task`] counts.
    fn token(&self) -> Token {
        Token { task: 0, seq: 0 }
    }

    /// Has what was left to the task made now.
    fn flush(&mut self) -> Result<(), CallError> {
        Ok(())
    }

    /// Whether the platform may change code of files as soon as [`mmap`](Self::mmap) maps it; not before it was said.
    fn may_rewrite(&mut self, _yes: bool) {}

    /// mmap at exactly `addr` (MAP_FIXED is added). `file`: the host descriptor to map, and the offset in bytes.
    /// `flags` are Linux MAP_ bits.
    fn mmap(
        &mut self,
        addr: u64,
        len: u64,
        prot: i32,
        flags: i32,
        file: Option<(&Arc<OwnedFd>, u64)>,
    ) -> Result<(), CallError>;

    /// munmap.
    fn munmap(&mut self, addr: u64, len: u64) -> Result<(), CallError>;

    /// mprotect.
    fn mprotect(&mut self, addr: u64, len: u64, prot: i32) -> Result<(), CallError>;

    /// mremap to exactly `new_addr` (MREMAP_MAYMOVE|MREMAP_FIXED when it differs from `old`), plus
    /// MREMAP_DONTUNMAP when asked.
    fn mremap(
        &mut self,
        old: u64,
        old_len: u64,
        new_len: u64,
        new_addr: u64,
        dont_unmap: bool,
    ) -> Result<(), CallError>;

    /// madvise with an advice of the platform's allowed list (EINVAL otherwise).
    fn madvise(&mut self, addr: u64, len: u64, advice: i32) -> Result<(), CallError>;

    /// mincore(2) from the page `addr` on, for as many pages as there are bytes, at most [`MINCORE_MAX`]. The bytes pass
    /// through memory that the guest can write.
    fn mincore(&mut self, addr: u64, pages: &mut [u8]) -> Result<(), CallError>;

    /// membarrier(2) with a command of the platform's allowed list (EINVAL otherwise).
    fn membarrier(&mut self, command: u32) -> Result<(), CallError>;

    /// Creates a task in a copy of this task's space (fork). The child starts from `start`, with this task's
    /// extended state; it runs nothing before [`TaskControl::start`].
    fn fork(&mut self, start: &Regs, sink: Arc<dyn TaskSink>) -> Result<NewTask, CallError>;

    /// Creates a task in this task's space (thread, vfork). Otherwise as [`Port::fork`].
    fn spawn(&mut self, start: &Regs, sink: Arc<dyn TaskSink>) -> Result<NewTask, CallError>;

    /// Moves this task alone to an empty space (exec). The old space lives on for other tasks in it, else
    /// it ends. Registers are zero afterwards, extended state is the initial one.
    ///
    /// `trusted`: what was in the old space may stay near what comes, since it has the same rights. The platform then
    /// may empty the space instead, which it returns, if the task is alone in it.
    fn replace_space(&mut self, trusted: bool) -> Result<Arc<dyn Space>, CallError>;

    /// What the task (`thread`) or its whole space has used so far. The numbers pass through memory that the guest
    /// can write: they are as true as the guest wants.
    fn rusage(&mut self, thread: bool) -> Result<Rusage, CallError>;

    /// Puts all code back that the platform has replaced in the task's space. False: not yet, others run there. May be
    /// called again.
    fn put_back(&mut self) -> bool {
        true
    }

    /// Runs guest code for one instruction after the verdict, then reports a SIGTRAP exception
    /// (code TRAP_TRACE). For ptrace inside the sandbox.
    fn single_step(&mut self, on: bool) -> Result<(), CallError>;
}

/// Numbers of the calls whose answers are the task's own affair: getpid, gettid, getuid, geteuid, getgid, getegid, rseq;
/// rt_sigprocmask, which works on a [lent mask](TaskControl::lend_mask), set_robust_list, madvise, as far as it drops memory
/// of which none [may be locked](Space::ask_advice), and rt_sigaction, whose answer has the bit of each signal with the
/// default action; and sigaltstack, which works on a [lent stack](TaskControl::lend_altstack).
pub const OWN_CALLS: [u32; lazaret_shim::layout::OWN] = lazaret_shim::layout::OWN_CALLS;
/// The place of rt_sigaction in [`OWN_CALLS`].
pub const OWN_ACTION: usize = 10;

/// A task just created.
pub struct NewTask {
    /// Its space (the parent's own for threads).
    pub space: Arc<dyn Space>,
    /// Its control.
    pub control: Arc<dyn TaskControl>,
}

/// Controls a task from any thread.
pub trait TaskControl: Send + Sync {
    /// Lets a new task begin: its sink gets [`Event::Started`]. Call once.
    fn start(&self);

    /// Ends a parked system call with this value of rax. The caller guarantees that the sink's verdict on the call
    /// was or is going to be [`Verdict::Park`], and that nobody else finishes the same call. The call may have been
    /// kicked: the sink then gets [`Event::Interrupted`], or [`Event::Again`] whose port has the value in rax
    /// from when this returns.
    fn finish(&self, value: i64);

    /// Whether writes to the task's memory may come with the end of a parked call of this number ([`finish_with`](Self::finish_with)).
    fn takes_results(&self, _nr: u32) -> bool {
        false
    }

    /// As [`finish`](Self::finish), with writes to the task's memory, which are made before guest code goes on: see
    /// [`Port::leave_write`]. Only of a call that [`takes_results`](Self::takes_results) says yes to.
    fn finish_with(&self, value: i64, _results: &[(u64, Vec<u8>)]) {
        self.finish(value);
    }

    /// Makes the task's sink run on its own worker: [`Event::Again`] if it is parked, [`Event::Interrupted`] if it
    /// runs guest code, at once after its next verdict if an event is being handled. Coalesces, never lost.
    fn kick(&self);

    /// Answers of [`OWN_CALLS`], in their order (those of rt_sigprocmask, set_robust_list, madvise,
    /// sigaltstack and pread do not count), that the platform may give by itself
    /// from now on, until it is told [`no_answers`](Self::no_answers) or the task's
    /// space is replaced. The platform need not make use of them.
    fn answers(&self, _own: [u64; OWN_CALLS.len()]) {}

    /// Replaces one of the answers, by its place in [`OWN_CALLS`]; does not bring them back.
    fn answer(&self, _place: usize, _own: u64) {}

    /// The platform gives none of these answers any more.
    fn no_answers(&self) {}

    /// Lets the platform change the task's mask of blocked signals as the task tells it, until the mask is taken back; false
    /// if it does not want to.
    fn lend_mask(&self, _mask: u64) -> bool {
        false
    }

    /// The mask as it is now, taken back or left (`keep`); None if the task has spoilt it. To be asked of a lent mask.
    fn lent_mask(&self, _keep: bool) -> Option<u64> {
        None
    }

    /// Lets the platform replace the task's alternate signal stack as the task tells it: where it begins and its length,
    /// 0 for none. `None`: no more, for it is one with flags. Forgets what was given before.
    fn lend_altstack(&self, _stack: Option<[u64; 2]>) {}

    /// The stack that the task gave since it was lent or this was asked last. Anything, if the guest forges it. To be asked
    /// while the task is in the sentry.
    fn altstack(&self) -> Option<[u64; 2]> {
        None
    }

    /// What the task gave to set_robust_list since this was asked last, if the platform kept it.
    fn robust_list(&self) -> Option<u64> {
        None
    }

    /// The sentry took what the task gave to set_robust_list.
    fn has_robust_list(&self, _head: u64) {}

    /// Whether the task says that its robust list with this head was empty when it called exit or exit_group.
    fn robust_list_idle(&self, _head: u64) -> bool {
        false
    }

    /// How often each was given since this was asked last. The guest can forge it: good for a report, for nothing else.
    fn answered(&self) -> [u64; OWN_CALLS.len()] {
        [0; OWN_CALLS.len()]
    }

    /// A descriptor that was [lent](Port::lend) to the task is read from by the platform no more: what a read finds from now on may
    /// be something else.
    fn take_back(&self, _fd: i32) {}

    /// The host's thread id as the sentry sees it, for affinity and CPU time. Stale when the task is gone.
    fn host_tid(&self) -> i32;
}

/// One guest address space.
pub trait Space: Send + Sync {
    /// From now on the sentry is asked before memory is dropped (madvise): some of it may be locked.
    fn ask_advice(&self) {}

    /// Reads guest memory.
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), MemFault>;

    /// Writes guest memory.
    fn write(&self, addr: u64, data: &[u8]) -> Result<(), MemFault>;

    /// As [`read`](Self::read), with what the program's own code was where the platform has replaced some.
    fn read_code(&self, addr: u64, buf: &mut [u8]) -> Result<(), MemFault> {
        self.read(addr, buf)
    }

    /// Reads into several host buffers / from several guest ranges at once where that is cheaper.
    fn readv(&self, guest: &[(u64, usize)], buf: &mut [u8]) -> Result<(), MemFault> {
        let mut at = 0;
        for &(addr, len) in guest {
            let end = at + len;
            let Some(part) = buf.get_mut(at..end) else { return Err(MemFault { done: at }) };
            self.read(addr, part).map_err(|f| MemFault { done: at + f.done })?;
            at = end;
        }
        Ok(())
    }

    /// Address ranges that belong to the platform: no guest mapping may touch them.
    fn reserved(&self) -> &[core::ops::Range<u64>];

    /// The host's vDSO in this space (address of its ELF header), for AT_SYSINFO_EHDR.
    fn vdso(&self) -> Option<u64>;

    /// Its host process, as the sentry sees it. Stale when that is gone.
    fn host_pid(&self) -> i32 {
        0
    }

    /// CPU time used in this space, that of ended tasks included; None when it is not known.
    fn cpu_time(&self) -> Option<CpuTime> {
        None
    }

    /// Whether what was left to a task has been made. The guest can lie about it, to its own harm.
    fn settled(&self, _token: Token) -> bool {
        true
    }

    /// Waits until it has, or for a while; kills a guest that has been waited for too long since `since`.
    fn settle(&self, _token: Token, _since: std::time::Instant) -> Result<(), Gone> {
        Ok(())
    }

    /// The sum of [`cpu_time`](Self::cpu_time) alone, which is cheaper.
    fn cpu_sum(&self) -> Option<std::time::Duration> {
        self.cpu_time().map(|cpu| cpu.user.saturating_add(cpu.system))
    }

    /// Calls `told` with what the space has used in all once its host process has been reaped, maybe at once and on
    /// this thread. The caller holds no lock that `told` takes.
    fn on_reaped(&self, told: Told);

    /// Kills the host process; every task in the space ends without a further event (no [`TaskSink::gone`]).
    fn kill(&self);
}

/// Runs guest tasks.
pub trait Platform: Send + Sync {
    /// `trap` or `ptrace`.
    fn name(&self) -> &'static str;

    /// Host calls that it let guests make, by number, if nobody else can count them.
    fn host_calls(&self) -> Vec<(u64, u64)> {
        Vec::new()
    }

    /// Lowest and one past the highest address that guest mappings may use.
    fn address_range(&self) -> core::ops::Range<u64>;

    /// A fresh, empty space with one task that is not started.
    fn first_task(&self, sink: Arc<dyn TaskSink>) -> Result<NewTask, CallError>;
}
