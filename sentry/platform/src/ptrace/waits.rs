//! Waiting for tracees, and the calls that they are made to carry out.

use super::host::{self, Mode, Stop};
use super::template;
use crate::{Regs, Rusage};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A host call made by a tracee, and the thread that it made.
pub type Injected = (i64, Option<i32>);

/// How often each call was injected, by number.
static CALLS: [AtomicU64; 512] = [const { AtomicU64::new(0) }; 512];

/// Counts a call that a guest process makes on the host.
pub fn count(nr: u64) {
    if let Some(calls) = usize::try_from(nr).ok().and_then(|nr| CALLS.get(nr)) {
        calls.fetch_add(1, Ordering::Relaxed);
    }
}

/// The calls that guest processes made on the host, by number.
pub fn counts() -> Vec<(u64, u64)> {
    let all = (0..).zip(CALLS.iter().map(|calls| calls.load(Ordering::Relaxed)));
    all.filter(|(_, count)| *count > 0).collect()
}

/// Why a clone did not work.
pub enum CloneError {
    /// The host's answer.
    Errno(i32),
    /// The maker died of this signal, and is reaped.
    Dead(i32),
}

/// A tracee's stop or end, and what it has used.
pub type Change = (i32, Stop, Rusage);

/// What tracees have to say.
///
/// Whoever waits for one of them hears all, and what the others say is kept. To wait for one alone could last for ever:
/// the host tells the death of a process's first thread when all others are reaped, which only this tracer can do.
#[derive(Default)]
pub struct Waits {
    kept: VecDeque<Change>,
}

impl Waits {
    /// The next change. `None`: there is none and `block` is not set.
    ///
    /// # Errors
    /// ECHILD: there is no tracee.
    pub fn next(&mut self, block: bool) -> io::Result<Option<Change>> {
        match self.kept.pop_front() {
            Some(change) => Ok(Some(change)),
            None => host::wait_usage(-1, block),
        }
    }

    /// The next change of one tracee.
    ///
    /// # Errors
    /// ECHILD: there is no tracee.
    fn of(&mut self, tid: i32) -> io::Result<Stop> {
        if let Some(at) = self.kept.iter().position(|(who, ..)| *who == tid)
            && let Some((_, stop, _)) = self.kept.remove(at)
        {
            return Ok(stop);
        }
        loop {
            match host::wait_usage(-1, true)? {
                Some((who, stop, _)) if who == tid => return Ok(stop),
                Some(change) => self.kept.push_back(change),
                None => {}
            }
        }
    }

    /// Makes a stopped tracee carry out a host call. Its registers are lost.
    ///
    /// # Errors
    /// The signal that ended it; it is reaped.
    pub fn inject(&mut self, tid: i32, base: &Regs, nr: u64, args: [u64; 6]) -> Result<Injected, i32> {
        let [rdi, rsi, rdx, r10, r8, r9] = args;
        let (rip, eflags, cs) = (template::CALL, 0x202, 0x33);
        let regs = Regs { rip, eflags, cs, rax: nr, rdi, rsi, rdx, r10, r8, r9, ..*base };
        count(nr);
        if host::set_regs(tid, &regs).and_then(|()| host::resume(tid, Mode::Native)).is_err() {
            host::kill(tid);
        }
        let mut child = None;
        loop {
            let Ok(stop) = self.of(tid) else { return Err(libc::SIGKILL) };
            match stop {
                Stop::Dead(signal) => return Err(signal),
                Stop::Clone => child = host::new_tid(tid).ok(),
                Stop::Signal(libc::SIGTRAP) => {
                    if let Ok(now) = host::regs(tid)
                        && now.rip == template::CALL_DONE
                    {
                        return Ok((now.rax as i64, child));
                    }
                }
                // The page of the call is broken.
                Stop::Signal(libc::SIGSEGV | libc::SIGILL | libc::SIGBUS | libc::SIGSYS) => host::kill(tid),
                // A kick: its flag is looked at when the event has been handled.
                Stop::Signal(_) | Stop::Other | Stop::Syscall => {}
            }
            // A failure means that it is dying.
            let _ = host::resume(tid, Mode::Native);
        }
    }

    /// Makes a stopped tracee clone itself; the new tracee is stopped at its start.
    pub fn clone(&mut self, tid: i32, base: &Regs, flags: u64) -> Result<i32, CloneError> {
        let (value, child) = self.inject(tid, base, 56, [flags, 0, 0, 0, 0, 0]).map_err(CloneError::Dead)?;
        if value < 0 {
            return Err(CloneError::Errno(i32::try_from(-value).unwrap_or(libc::EIO)));
        }
        let child = child.ok_or(CloneError::Errno(libc::EAGAIN))?;
        match self.of(child) {
            Ok(Stop::Dead(_)) | Err(_) => Err(CloneError::Errno(libc::EAGAIN)),
            Ok(_) => Ok(child),
        }
    }
}
