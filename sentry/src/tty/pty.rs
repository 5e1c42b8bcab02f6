//! A pseudo-terminal: a pair of master and slave.
//!
//! What is written to the master is input of the slave's line discipline; what the slave writes, and the echo, is what the
//! master reads. The pair lives as long as one side is open or a session has the terminal.

use super::Terminal;
use super::job::Job;
use super::line::{BETWEEN, Effects, Line};
use super::slave::Slave;
use crate::fail::SysResult;
use crate::kernel::Kernel;
use crate::sync::{Guard, Level, Lock};
use crate::task::Task;
use crate::task::creds::cap;
use crate::vfs::attr::FileTime;
use crate::vfs::file::{FileOps, o};
use crate::vfs::inode::Inode;
use crate::wait::{Ready, WaitQueue};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use syscall_table::abi::ioctl::Winsize;
use syscall_table::abi::stat::makedev;
use syscall_table::errno::Errno;

/// Device major of the slaves.
const SLAVES: u32 = 136;
/// Times of a terminal are exact to this many seconds, so that keystrokes cannot be timed by them (as Linux has it).
const TIMES: i64 = 8;

/// What both ends have in common.
pub struct Pty {
    /// N of /dev/pts/N.
    pub number: u32,
    pub(super) job: Job,
    pub(super) state: Lock<State>,
    /// Woken for those who wait for the master.
    pub(super) master: WaitQueue,
    /// Woken for those who wait for the slave.
    pub(super) slave: WaitQueue,
    pub(super) kernel: Weak<Kernel>,
    times: Lock<Times>,
    /// Gives the number back, once nobody has the pair any more.
    _number: Box<dyn Send + Sync>,
}

/// When the slave was last read from and written to, since the epoch.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Read.
    pub read: FileTime,
    /// Written.
    pub written: FileTime,
}

pub(super) struct State {
    pub(super) line: Line,
    /// Written to the master, waiting for room in the input.
    pub(super) incoming: VecDeque<u8>,
    pub(super) winsize: Winsize,
    /// TIOCSPTLCK: the slave cannot be opened.
    pub(super) locked: bool,
    /// TIOCEXCL
    pub(super) exclusive: bool,
    /// TIOCEXCL on the master, which cannot be opened again anyway.
    pub(super) master_exclusive: bool,
    /// TCXONC on the master: what is written there waits.
    pub(super) master_stopped: bool,
    pub(super) slaves: usize,
    /// The last slave was closed; none is open.
    pub(super) slave_closed: bool,
    pub(super) master_closed: bool,
    /// Counts hangups: descriptions of the slave from before one are dead.
    pub(super) hangups: u64,
}

impl Pty {
    /// A new pair, its slave locked. `number_guard` is dropped when the number is free again.
    pub(crate) fn new(number: u32, kernel: &Arc<Kernel>, number_guard: Box<dyn Send + Sync>) -> Arc<Pty> {
        let state = State {
            line: Line::default(),
            incoming: VecDeque::new(),
            winsize: Winsize::default(),
            locked: true,
            exclusive: false,
            master_exclusive: false,
            master_stopped: false,
            slaves: 0,
            slave_closed: false,
            master_closed: false,
            hangups: 0,
        };
        let now = FileTime::now();
        Arc::new(Pty {
            number,
            job: Job::default(),
            state: Lock::new(Level::Object, state),
            master: WaitQueue::new(),
            slave: WaitQueue::new(),
            kernel: Arc::downgrade(kernel),
            times: Lock::new(Level::Field, Times { read: now, written: now }),
            _number: number_guard,
        })
    }

    pub(super) fn state(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// Opens the slave. `inode` is the name it was opened by; `flags` as of open(2).
    ///
    /// # Errors
    /// EIO: locked, or the master is closed. EBUSY: TIOCEXCL.
    pub fn open_slave(
        self: &Arc<Self>,
        inode: Arc<dyn Inode>,
        task: &Task,
        flags: i32,
    ) -> SysResult<Arc<dyn FileOps>> {
        let slave = self.slave(inode, task)?;
        if flags & o::O_NOCTTY == 0 && matches!(flags & o::O_ACCMODE, o::O_RDONLY | o::O_RDWR) {
            let terminal: Arc<dyn Terminal> = self.clone();
            Job::opened(&terminal, task);
        }
        Ok(slave)
    }

    fn slave(self: &Arc<Self>, inode: Arc<dyn Inode>, task: &Task) -> SysResult<Arc<dyn FileOps>> {
        let admin = task.creds().capable(cap::SYS_ADMIN);
        let mut state = self.state();
        if state.master_closed || state.locked {
            return Err(Errno::EIO.into());
        }
        if state.exclusive && !admin {
            return Err(Errno::EBUSY.into());
        }
        state.slaves = state.slaves.saturating_add(1);
        state.slave_closed = false;
        let hangups = state.hangups;
        drop(state);
        Ok(Arc::new(Slave { pty: self.clone(), inode, hangups }))
    }

    /// Acts on what the line discipline did. No lock but a call's may be held.
    pub(super) fn act(&self, kernel: &Arc<Kernel>, effects: Effects) {
        let mut left = effects.signals;
        while left != 0 {
            let signal = left.trailing_zeros().saturating_add(1);
            left &= left.wrapping_sub(1);
            self.job.signal(kernel, i32::try_from(signal).unwrap_or(0));
        }
        if effects.near {
            self.slave.wake(Ready::IN | Ready::RDNORM | Ready::OUT | Ready::WRNORM);
        }
        if effects.far {
            let ready = Ready::IN | Ready::RDNORM | Ready::OUT | Ready::WRNORM | Ready::PRI;
            self.master.wake(ready);
        }
    }

    /// The slave's descriptions die and its session loses it. No lock but a call's may be held.
    pub(super) fn hang_up(&self, kernel: &Arc<Kernel>) {
        {
            let mut state = self.state();
            state.hangups = state.hangups.wrapping_add(1);
            state.exclusive = false;
            let winsize = state.winsize;
            let line = std::mem::take(&mut state.line);
            // What the slave has written stays readable at the master.
            state.line.out = line.out;
            state.line.packet = line.packet;
            state.winsize = winsize;
            state.incoming.clear();
        }
        let all = Ready::IN | Ready::OUT | Ready::HUP | Ready::ERR;
        self.slave.wake(all);
        self.master.wake(all);
        self.job.hang_up(kernel);
    }

    /// The master is closed: the slave hangs up.
    pub(super) fn master_closes(self: &Arc<Self>) {
        let mut state = self.state();
        state.master_closed = true;
        state.line.out.clear();
        drop(state);
        let pty = self.clone();
        // Closing may happen with locks held, and the signals may not.
        crate::wait::later(Box::new(move || {
            if let Some(kernel) = pty.kernel.upgrade() {
                kernel.ptys.remove(pty.number);
                pty.hang_up(&kernel);
                pty.state().line.out.clear();
            }
        }));
    }

    pub(super) fn slave_closes(&self) {
        let mut state = self.state();
        state.slaves = state.slaves.saturating_sub(1);
        if state.slaves > 0 {
            return;
        }
        state.slave_closed = true;
        drop(state);
        self.master.wake(Ready::IN | Ready::OUT | Ready::HUP | Ready::ERR);
    }

    /// When it was used.
    pub fn times(&self) -> Times {
        *self.times.lock()
    }

    pub(super) fn touch(&self, written: bool) {
        let now = FileTime::now();
        let mut times = self.times.lock();
        let time = if written { &mut times.written } else { &mut times.read };
        let sec = now.sec / TIMES * TIMES;
        if time.sec / TIMES * TIMES != sec {
            *time = FileTime { sec, nsec: 0 };
        }
    }

    /// Sets the times (utimensat(2)).
    pub fn set_times(&self, new: Times) {
        *self.times.lock() = new;
    }
}

impl State {
    /// Room for what is written to the master.
    pub(super) fn incoming_room(&self) -> usize {
        if self.master_stopped { 0 } else { BETWEEN.saturating_sub(self.incoming.len()) }
    }

    /// Takes what is written to the master; gives how much.
    pub(super) fn accept(&mut self, data: &[u8]) -> usize {
        let mut taken = 0usize;
        self.pump();
        while let Some(rest) = data.get(taken..).filter(|rest| !rest.is_empty()) {
            if self.master_stopped {
                break;
            }
            // Straight into the input as long as nothing waits before it.
            let part = if self.incoming.is_empty() { self.line.receive(rest) } else { 0 };
            let room = self.incoming_room();
            let part = if part > 0 {
                part
            } else {
                let part = rest.len().min(room);
                self.incoming.extend(rest.get(..part).unwrap_or_default());
                part
            };
            if part == 0 {
                break;
            }
            taken = taken.saturating_add(part);
        }
        taken
    }

    /// Moves what waits into the input, as far as there is room.
    pub(super) fn pump(&mut self) {
        while !self.incoming.is_empty() {
            let (first, _) = self.incoming.as_slices();
            let taken = self.line.receive(first);
            if taken == 0 {
                return;
            }
            self.incoming.drain(..taken);
            self.line.effects.far = true;
        }
    }

    /// The slave's input and what waits for it is thrown away.
    pub(super) fn flush_input(&mut self) {
        self.incoming.clear();
        self.line.flush_input();
    }
}

impl Terminal for Pty {
    fn job(&self) -> &Job {
        &self.job
    }

    fn open_again(self: Arc<Self>, inode: Arc<dyn Inode>, task: &Task) -> SysResult<Arc<dyn FileOps>> {
        self.slave(inode, task)
    }

    fn device(&self) -> u64 {
        makedev(SLAVES, self.number)
    }
}
