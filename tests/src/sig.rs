//! Signal handlers and masks for cases.

use libc::*;
use std::sync::atomic::{AtomicI32, Ordering};

/// How often [`count`] ran.
pub static HITS: AtomicI32 = AtomicI32::new(0);
/// The last signal [`count`] saw.
pub static LAST: AtomicI32 = AtomicI32::new(0);

/// A handler that counts.
pub extern "C" fn count(sig: i32) {
    HITS.fetch_add(1, Ordering::SeqCst);
    LAST.store(sig, Ordering::SeqCst);
}

/// The count since the last [`on`].
pub fn hits() -> i32 {
    HITS.load(Ordering::SeqCst)
}

/// Sets handler `h` (an address, SIG_IGN or SIG_DFL) for `sig`; what was set before.
pub fn handle(sig: i32, h: usize, flags: i32) -> sigaction {
    unsafe {
        let mut new: sigaction = std::mem::zeroed();
        let mut old: sigaction = std::mem::zeroed();
        new.sa_sigaction = h;
        new.sa_flags = flags;
        crate::eq(libc::sigaction(sig, &new, &mut old), 0);
        old
    }
}

/// The counting handler is set until this is dropped.
pub struct On(i32, sigaction);

/// Counts `sig` from now, beginning at 0.
pub fn on(sig: i32, flags: i32) -> On {
    HITS.store(0, Ordering::SeqCst);
    LAST.store(0, Ordering::SeqCst);
    On(sig, handle(sig, count as *const () as usize, flags))
}

/// Handler `h` is set until the result is dropped.
pub fn with(sig: i32, h: usize, flags: i32) -> On {
    On(sig, handle(sig, h, flags))
}

impl Drop for On {
    fn drop(&mut self) {
        unsafe { libc::sigaction(self.0, &self.1, std::ptr::null_mut()) };
    }
}

/// The kernel's signal set with `sigs` in it.
pub fn set(sigs: &[i32]) -> u64 {
    sigs.iter().fold(0, |m, s| m | 1 << (s - 1))
}

/// rt_sigprocmask; the old mask.
pub fn mask(how: i32, set: u64) -> u64 {
    let mut old = 0u64;
    crate::ok(crate::sys!(SYS_rt_sigprocmask, how, &set, &mut old, 8));
    old
}

/// Pending signals of this thread.
pub fn pending() -> u64 {
    let mut p = 0u64;
    crate::ok(crate::sys!(SYS_rt_sigpending, &mut p, 8));
    p
}

/// Sends `sig` to this thread.
pub fn raise(sig: i32) {
    crate::ok(crate::sys!(SYS_tgkill, crate::sys!(SYS_getpid), crate::sys!(SYS_gettid), sig));
}

/// A thread that sends `sig` to the calling thread once that has gone to sleep, after `ms` at the earliest.
pub fn later(sig: i32, ms: u64) -> std::thread::JoinHandle<()> {
    let (pid, tid) = (crate::sys!(SYS_getpid), crate::sys!(SYS_gettid));
    std::thread::spawn(move || {
        crate::sleep_ms(ms);
        crate::until_asleep(tid);
        crate::sys!(SYS_tgkill, pid, tid, sig);
    })
}

/// The same, and then, when the handler has run and the thread sleeps again, `then`.
pub fn later_and(sig: i32, then: impl FnOnce() + Send + 'static) -> std::thread::JoinHandle<()> {
    let tid = crate::sys!(SYS_gettid);
    let (first, before) = (later(sig, 20), hits());
    std::thread::spawn(move || {
        first.join().expect("it was sent");
        crate::until("the handler ran", || hits() > before);
        crate::until_asleep(tid);
        then();
    })
}
