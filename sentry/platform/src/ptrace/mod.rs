//! The ptrace platform: guest code runs natively under PTRACE_SYSEMU; one thread of the sentry traces every guest
//! thread, and handles all events. Slow, but it asks little of the host, and its mechanism shares nothing with the
//! trap platform's: the two must agree.
//!
//! A guest process holds the guest's mappings, the host's vDSO, and one page with `syscall; int3`: a host call is
//! made by pointing a stopped thread at it. The page is not writable and lies where no guest mapping can.
//! The filter ([`crate::guestfilter::ptrace_rules`]) is a second line: the host emulates every call of guest code
//! before any filter sees it.
//!
//! - [`setup`]: zygote and waker; [`template`]: the program they run.
//! - [`tracer`]: the loop, events and verdicts; [`waits`]: waiting, injected calls; [`port`]: access while stopped.
//! - [`task`]: a task's state and how other threads reach the tracer; [`space`]: a guest process.
//! - [`fds`]: how a descriptor gets into a guest process. [`host`]: ptrace and waitpid. [`fault`]: exceptions.
//!
//! A host call that takes long in one task (a mapping that is populated) holds up all others.
//!
//! Lock order: a task's state, then its registers, then the command queue. No lock is held while a sink runs.
//!
//! Needs Linux 5.19 (WAIT_KILLABLE_RECV; PTRACE_GET_SYSCALL_INFO is of 5.3, pidfd_getfd of 5.6).

mod fault;
mod fds;
mod host;
mod port;
mod setup;
mod space;
mod task;
mod template;
mod tracer;
mod waits;

use crate::{CallError, NewTask, Platform, TaskSink};
use lazaret_shim::layout;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use task::{Command, Remote};

/// How to run guests; the same as on the trap platform.
pub type PtraceConfig = crate::trap::TrapConfig;

/// Events are handled on the tracer's thread, handlers included.
const STACK: usize = 8 << 20;

/// Runs guests by tracing them.
pub struct PtracePlatform {
    remote: Arc<Remote>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl PtracePlatform {
    /// Starts the tracer and the zygote. To be called before the sentry restricts itself.
    ///
    /// # Errors
    /// One line that says what the host does not allow.
    #[expect(clippy::new_ret_no_self, reason = "a platform is only ever used behind its trait")]
    pub fn new(config: &PtraceConfig) -> Result<Arc<dyn Platform>, String> {
        crate::hostcalls::raise_descriptors();
        let remote = Arc::new(Remote::default());
        let (send, up) = channel();
        let (config, theirs) = (config.clone(), remote.clone());
        let serve = move || match setup::start(&config, theirs) {
            Ok(mut tracer) => {
                let _ = send.send(Ok(()));
                tracer.run();
                tracer.end();
            }
            Err(error) => drop(send.send(Err(error))),
        };
        let thread = std::thread::Builder::new().name("tracer".into()).stack_size(STACK).spawn(serve);
        let thread = thread.map_err(|e| format!("thread: {e}"))?;
        up.recv().map_err(|_| "the tracer did not come up".to_owned())??;
        Ok(Arc::new(PtracePlatform { remote, thread: Mutex::new(Some(thread)) }))
    }
}

impl Platform for PtracePlatform {
    fn name(&self) -> &'static str {
        "ptrace"
    }

    fn host_calls(&self) -> Vec<(u64, u64)> {
        waits::counts()
    }

    fn address_range(&self) -> std::ops::Range<u64> {
        0x1_0000..layout::REGION_START
    }

    fn first_task(&self, sink: Arc<dyn TaskSink>) -> Result<NewTask, CallError> {
        if self.remote.here() {
            return Err(CallError::Errno(libc::EDEADLK));
        }
        let (send, made) = channel();
        self.remote.send(Command::First(sink, send));
        made.recv().map_err(|_| CallError::Gone)?
    }
}

impl Drop for PtracePlatform {
    fn drop(&mut self) {
        self.remote.send(Command::Stop);
        if let Some(thread) = self.thread.lock().take().filter(|_| !self.remote.here()) {
            let _ = thread.join();
        }
    }
}
