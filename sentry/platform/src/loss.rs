//! Death from outside of a process without which no guest can be made or live: the sandbox ends then, and the program's
//! own end, which that is too, must not be told as if somebody inside had killed it.

use crate::hostcalls;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const ZYGOTE: &str = "the process that guests are made from";
const INIT: &str = "the init of the guests";

/// Whom to tell of a loss.
pub struct Loss {
    on_loss: Option<fn(&'static str) -> !>,
    init: Option<i32>,
    over: AtomicBool,
}

impl Loss {
    /// What to call; the init of the guests' pid namespace, a child that nobody reaps, so that its number stays its own.
    pub fn new(on_loss: Option<fn(&'static str) -> !>, init: Option<i32>) -> Loss {
        Loss { on_loss, init, over: AtomicBool::new(false) }
    }

    /// To be called before a guest's death by SIGKILL is told: ends the sandbox if the init is dead.
    ///
    /// With an init the host kills its pid namespace, and the init is the last to be seen dead. But it has given up its
    /// memory by the time that it sends SIGKILL to the others (do_exit, zap_pid_ns_processes), so this misses nothing.
    pub fn check(&self) {
        if self.init.is_some_and(|init| !hostcalls::has_memory(init)) {
            self.tell(INIT);
        }
    }

    /// The zygote is dead, by itself or with its init.
    pub fn of_zygote(&self) {
        self.check();
        self.tell(ZYGOTE);
    }

    /// The waker is dead, which nobody kills but its init.
    pub fn of_waker(&self) {
        self.tell(INIT);
    }

    /// The end is wanted from now on.
    pub fn over(&self) {
        self.over.store(true, Relaxed);
    }

    fn tell(&self, what: &'static str) {
        if let Some(on_loss) = self.on_loss.filter(|_| !self.over.load(Relaxed)) {
            on_loss(what);
        }
    }
}
