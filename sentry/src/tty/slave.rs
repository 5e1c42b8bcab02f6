//! The slave of a pseudo-terminal as an open file: what a program takes for a terminal.

use super::job;
use super::pty::{Pty, State};
use super::{Terminal, request};
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::signal::deliver::pending;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps, Written};
use crate::vfs::inode::Inode;
use crate::wait::{Ready, WaitQueue};
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::ioctl::{TIOCSPGRP, TOSTOP};
use syscall_table::abi::sigaction::{SIGTTIN, SIGTTOU};
use syscall_table::errno::Errno;

/// Unit of VTIME.
const TENTH: Duration = Duration::from_millis(100);

/// A description of the slave.
pub(super) struct Slave {
    pub(super) pty: Arc<Pty>,
    pub(super) inode: Arc<dyn Inode>,
    /// [`State::hangups`](super::pty::State::hangups) when it was opened.
    pub(super) hangups: u64,
}

/// A read that wants more characters (VMIN), or until when it waits (VTIME).
#[derive(Default)]
struct Reading {
    taken: Vec<u8>,
    until: Option<Duration>,
    waited: bool,
}

/// How much of a write is done.
#[derive(Default)]
struct Progress(usize);

/// A write to either end, which waits until `accept` has taken all of it.
pub(super) fn write_all(
    cx: &mut Cx,
    pty: &Pty,
    file: &File,
    data: &[u8],
    offset: u64,
    accept: impl FnOnce(&mut State, &[u8]) -> usize,
) -> SysResult<Written> {
    let mut done = std::mem::take(&mut cx.state::<Progress>().0).min(data.len());
    let effects = {
        let mut state = pty.state();
        done = done.saturating_add(accept(&mut state, data.get(done..).unwrap_or_default()));
        state.line.take_effects()
    };
    pty.act(cx.kernel(), effects);
    if done == data.len() || done > 0 && (file.nonblocking() || pending(cx.task)) {
        return Ok(Written { count: done, end: offset });
    }
    if file.nonblocking() {
        return Err(Errno::EAGAIN.into());
    }
    cx.state::<Progress>().0 = done;
    cx.block(Restart::Sys)
}

impl Slave {
    fn hung_up(&self, state: &State) -> bool {
        state.hangups != self.hangups || state.master_closed
    }

    /// Ends or parks a read that has got less than it wants.
    fn wait(&self, cx: &mut Cx, file: &File, buf: &mut [u8], deadline: Option<Duration>) -> SysResult<usize> {
        let late = deadline.is_some_and(|deadline| crate::time::now() >= deadline);
        let taken = cx.state::<Reading>().taken.len();
        if taken > 0 && (late || file.nonblocking() || pending(cx.task)) {
            return Ok(give(cx, buf, 0));
        }
        if late {
            return Ok(0);
        }
        if file.nonblocking() {
            return Err(Errno::EAGAIN.into());
        }
        cx.state::<Reading>().waited = true;
        cx.block_until(deadline, Restart::Sys)
    }

    /// Characters as they come (VMIN and VTIME, termios(3)).
    fn read_chars(&self, cx: &mut Cx, file: &File, buf: &mut [u8]) -> SysResult<usize> {
        let before = std::mem::take(&mut cx.state::<Reading>().taken);
        let kept = before.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..kept), before.get(..kept)) {
            to.copy_from_slice(from);
        }
        let (got, effects, min, time, hung_up) = {
            let mut state = self.pty.state();
            let got = state.line.take_chars(buf.get_mut(kept..).unwrap_or_default());
            state.pump();
            let effects = state.line.take_effects();
            let (min, time) = state.line.min_and_time();
            (got, effects, min, time, self.hung_up(&state))
        };
        self.pty.act(cx.kernel(), effects);
        let have = kept.saturating_add(got);
        if have > 0 && have >= min.min(buf.len()) || hung_up {
            self.pty.touch(false);
            return Ok(have);
        }
        cx.state::<Reading>().taken = buf.get(..have).unwrap_or_default().to_vec();
        let span = TENTH.saturating_mul(u32::try_from(time).unwrap_or(0));
        let now = crate::time::now();
        let until = if min == 0 {
            // From the start of the read; with VTIME 0 it does not wait at all, O_NONBLOCK or not.
            Some(*cx.state::<Reading>().until.get_or_insert(now.saturating_add(span)))
        } else if time > 0 && have > 0 {
            // Between characters.
            if got > 0 {
                cx.state::<Reading>().until = Some(now.saturating_add(span));
            }
            cx.state::<Reading>().until
        } else {
            None
        };
        self.wait(cx, file, buf, until)
    }

    fn read_line(&self, cx: &mut Cx, file: &File, buf: &mut [u8]) -> SysResult<usize> {
        let (got, effects) = {
            let mut state = self.pty.state();
            let got = if state.line.available(1) {
                Some(if state.line.reads_lines() {
                    state.line.take_line(buf)
                } else {
                    state.line.take_chars(buf)
                })
            } else if self.hung_up(&state) {
                Some(0)
            } else {
                None
            };
            state.pump();
            (got, state.line.take_effects())
        };
        self.pty.act(cx.kernel(), effects);
        match got {
            Some(got) => {
                self.pty.touch(false);
                Ok(got)
            }
            None => self.wait(cx, file, buf, None),
        }
    }
}

/// Gives what a read has taken so far, `more` bytes of `buf` behind it.
fn give(cx: &mut Cx, buf: &mut [u8], more: usize) -> usize {
    let taken = std::mem::take(&mut cx.state::<Reading>().taken);
    let count = taken.len().min(buf.len());
    if let (Some(to), Some(from)) = (buf.get_mut(..count), taken.get(..count)) {
        to.copy_from_slice(from);
    }
    count.saturating_add(more)
}

impl FileOps for Slave {
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], _: u64) -> SysResult<usize> {
        let (hung_up, closed) = {
            let state = self.pty.state();
            (self.hung_up(&state), state.master_closed)
        };
        if hung_up {
            let reading = cx.state::<Reading>();
            // Who was waiting when the master was closed gets an error, who comes later an end of file.
            let fails = reading.waited && closed && reading.taken.is_empty();
            return if fails { Err(Errno::EIO.into()) } else { Ok(give(cx, buf, 0)) };
        }
        cx.wait_on(&self.pty.slave, Ready::IN);
        if cx.state::<Reading>().taken.is_empty() {
            self.pty.job.check(cx, SIGTTIN)?;
        }
        if buf.is_empty() {
            return Ok(0);
        }
        let lines = self.pty.state().line.l(syscall_table::abi::ioctl::ICANON);
        if lines { self.read_line(cx, file, buf) } else { self.read_chars(cx, file, buf) }
    }

    fn write(&self, cx: &mut Cx, file: &File, data: &[u8], offset: u64) -> SysResult<Written> {
        cx.wait_on(&self.pty.slave, Ready::OUT);
        let (hung_up, stops) = {
            let state = self.pty.state();
            (self.hung_up(&state), state.line.l(TOSTOP))
        };
        let done = cx.state::<Progress>().0.min(data.len());
        if hung_up {
            cx.state::<Progress>().0 = 0;
            return if done > 0 { Ok(Written { count: done, end: offset }) } else { Err(Errno::EIO.into()) };
        }
        if done == 0 && stops {
            self.pty.job.check(cx, SIGTTOU)?;
        }
        self.pty.touch(true);
        write_all(cx, &self.pty, file, data, offset, |state, rest| state.line.output(rest))
    }

    fn poll(&self, _: &File) -> Ready {
        let state = self.pty.state();
        if self.hung_up(&state) {
            return Ready::IN | Ready::OUT | Ready::ERR | Ready::HUP | Ready::RDNORM | Ready::WRNORM;
        }
        let mut ready = Ready::empty();
        let (min, time) = state.line.min_and_time();
        if state.line.available(if time == 0 { min.max(1) } else { 1 }) {
            ready |= Ready::IN | Ready::RDNORM;
        }
        if state.line.output_room() > 0 {
            ready |= Ready::OUT | Ready::WRNORM;
        }
        ready
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.pty.slave)
    }

    fn attr(&self) -> SysResult<Attr> {
        self.inode.attr()
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        Some(self.inode.clone())
    }

    fn ioctl(&self, cx: &mut Cx, file: &File, request: u32, arg: u64) -> SysResult {
        if self.hung_up(&self.pty.state()) {
            return Err(if request == TIOCSPGRP { Errno::ENOTTY } else { Errno::EIO }.into());
        }
        let terminal: Arc<dyn Terminal> = self.pty.clone();
        if let Some(done) = job::ioctl(cx, file, &terminal, false, request, arg) {
            return done;
        }
        request::of_terminal(cx, &self.pty, false, request, arg)
    }

    fn release(&self, _: i32) {
        self.pty.slave_closes();
    }
}
