//! The master of a pseudo-terminal as an open file: what a terminal emulator holds.

use super::job;
use super::line::NEAR;
use super::pty::{Pty, State};
use super::slave::write_all;
use super::{Terminal, request};
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps, Written};
use crate::vfs::inode::Inode;
use crate::wait::{Ready, WaitQueue};
use std::sync::Arc;
use syscall_table::abi::ioctl::TIOCPKT_DATA;
use syscall_table::errno::Errno;

/// The description of the master.
pub(crate) struct Master {
    pty: Arc<Pty>,
    inode: Arc<dyn Inode>,
}

impl Master {
    /// The one master of a new pair, opened by the name `inode`.
    pub(crate) fn new(pty: Arc<Pty>, inode: Arc<dyn Inode>) -> Master {
        Master { pty, inode }
    }
}

impl FileOps for Master {
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], _: u64) -> SysResult<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        cx.wait_on(&self.pty.master, Ready::IN);
        let mut state = self.pty.state();
        let packet = state.line.packet;
        if packet && state.line.status != 0 {
            let status = std::mem::take(&mut state.line.status);
            if let Some(first) = buf.first_mut() {
                *first = status;
            }
            return Ok(1);
        }
        if state.line.out.is_empty() {
            if state.slave_closed {
                return Err(Errno::EIO.into());
            }
            drop(state);
            if file.nonblocking() {
                return Err(Errno::EAGAIN.into());
            }
            return cx.block(Restart::Sys);
        }
        let mut got = 0usize;
        let mut room = buf.iter_mut();
        if packet && let Some(first) = room.next() {
            *first = TIOCPKT_DATA;
            got = 1;
        }
        let count = room.len().min(state.line.out.len()).min(NEAR);
        for (slot, byte) in room.zip(state.line.out.drain(..count)) {
            *slot = byte;
        }
        state.line.effects.near = true;
        let effects = state.line.take_effects();
        drop(state);
        self.pty.act(cx.kernel(), effects);
        Ok(got.saturating_add(count))
    }

    fn write(&self, cx: &mut Cx, file: &File, data: &[u8], offset: u64) -> SysResult<Written> {
        cx.wait_on(&self.pty.master, Ready::OUT);
        write_all(cx, &self.pty, file, data, offset, State::accept)
    }

    fn poll(&self, _: &File) -> Ready {
        let state = self.pty.state();
        let mut ready = Ready::empty();
        if !state.line.out.is_empty() {
            ready |= Ready::IN | Ready::RDNORM;
        }
        if state.line.packet && state.line.status != 0 {
            ready |= Ready::PRI | Ready::IN | Ready::RDNORM;
        }
        if state.slave_closed {
            ready |= Ready::HUP;
        }
        if state.incoming_room() > 0 {
            ready |= Ready::OUT | Ready::WRNORM;
        }
        ready
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.pty.master)
    }

    fn attr(&self) -> SysResult<Attr> {
        self.inode.attr()
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        Some(self.inode.clone())
    }

    fn ioctl(&self, cx: &mut Cx, file: &File, request: u32, arg: u64) -> SysResult {
        let terminal: Arc<dyn Terminal> = self.pty.clone();
        if let Some(done) = job::ioctl(cx, file, &terminal, true, request, arg) {
            return done;
        }
        if let Some(done) = request::of_master(cx, &self.pty, request, arg) {
            return done;
        }
        request::of_terminal(cx, &self.pty, true, request, arg)
    }

    fn release(&self, _: i32) {
        self.pty.master_closes();
    }
}
