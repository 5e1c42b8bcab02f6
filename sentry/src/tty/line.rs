//! The line discipline of a terminal (N_TTY): settings, input buffer, echo, output on its way to the other side.
//!
//! Bounded: [`INPUT`] characters of input, [`ECHO`] bytes of echo, [`OUTPUT`] bytes of output.
//! What it does: [`super::input`] (characters that come in), [`super::edit`] (erasing), [`super::output`].

use super::termios;
use std::collections::VecDeque;
use syscall_table::abi::ioctl::*;

/// Characters of input: a line longer than this loses its middle, as on Linux.
pub(super) const INPUT: usize = 4096;
/// Bytes that the other side's buffer takes before it is full.
pub(super) const NEAR: usize = 4095;
/// Bytes between the two sides, in each direction.
pub(super) const BETWEEN: usize = 16384;
/// Bytes of output that nobody has read.
pub(super) const OUTPUT: usize = NEAR + BETWEEN;
/// Steps of echo that wait for room or for the end of what comes in together.
pub(super) const ECHO_ROOM: usize = 3808;
/// Steps that are taken even before that end.
pub(super) const ECHO_SOON: usize = 256;

/// A character of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Char {
    pub(super) byte: u8,
    /// It ends a line. With [`DISABLED_CHAR`] it is an end of file, which is not read.
    pub(super) end: bool,
}

impl Char {
    fn is_eof(self) -> bool {
        self.end && self.byte == DISABLED_CHAR
    }
}

/// A step of echo. Columns are counted when it is taken, not when it is noted: a signal throws noted steps away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Echo {
    /// A character, as OPOST has it.
    Plain(u8),
    /// A control character as `^X`.
    Control(u8),
    /// The column goes back by one.
    Back,
    /// The edited line begins here.
    Begin,
    /// Back over a tab: columns of the characters before it; whether they follow another tab.
    Tab(usize, bool),
}

/// What happened meanwhile, for who holds the lock to act on after it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effects {
    /// Signals for the foreground group, as a mask.
    pub(super) signals: u64,
    /// The terminal's own waiters should look again.
    pub(super) near: bool,
    /// Those of the other side should.
    pub(super) far: bool,
}

/// A terminal's line discipline.
pub(super) struct Line {
    pub(super) termios: Termios2,
    pub(super) locked: Termios2,
    pub(super) input: VecDeque<Char>,
    /// How much of `input` belongs to lines that are complete.
    pub(super) complete: usize,
    /// VLNEXT came: the next character has no meaning.
    pub(super) lnext: bool,
    /// Inside the `\` and `/` of ECHOPRT.
    pub(super) erasing: bool,
    pub(super) column: usize,
    /// Where the line that is being edited began.
    pub(super) canon_column: usize,
    pub(super) echo: VecDeque<Echo>,
    /// For the other side to read.
    pub(super) out: VecDeque<u8>,
    /// While characters come in: how much of `out` was there before them. The rest has not arrived yet.
    pub(super) arrived: Option<usize>,
    /// Output waits: by VSTOP or by TCOOFF.
    pub(super) stopped: bool,
    /// By TCOOFF, which VSTART does not undo.
    pub(super) stopped_by_call: bool,
    /// Packet mode, and what the other side has to be told.
    pub(super) packet: bool,
    pub(super) status: u8,
    pub(super) effects: Effects,
}

impl Default for Line {
    fn default() -> Self {
        let none = Termios2 { c_cc: [0; NCCS], ..Default::default() };
        Line {
            termios: termios::initial(),
            locked: none,
            input: VecDeque::new(),
            complete: 0,
            lnext: false,
            erasing: false,
            column: 0,
            canon_column: 0,
            echo: VecDeque::new(),
            out: VecDeque::new(),
            arrived: None,
            stopped: false,
            stopped_by_call: false,
            packet: false,
            status: 0,
            effects: Effects::default(),
        }
    }
}

impl Line {
    pub(super) fn i(&self, flag: u32) -> bool {
        self.termios.c_iflag & flag != 0
    }

    pub(super) fn o(&self, flag: u32) -> bool {
        self.termios.c_oflag & flag != 0
    }

    pub(super) fn l(&self, flag: u32) -> bool {
        self.termios.c_lflag & flag != 0
    }

    /// A control character; None where it is switched off.
    pub(super) fn cc(&self, place: usize) -> Option<u8> {
        self.termios.c_cc.get(place).copied().filter(|c| *c != DISABLED_CHAR)
    }

    /// VMIN and VTIME as they are.
    pub(super) fn min_and_time(&self) -> (usize, u64) {
        let at = |place: usize| self.termios.c_cc.get(place).copied().unwrap_or(0);
        (usize::from(at(VMIN)), u64::from(at(VTIME)))
    }

    /// Whether reads get whole lines.
    pub(super) fn reads_lines(&self) -> bool {
        self.l(ICANON) && !self.l(EXTPROC)
    }

    /// Whether a read would get something; `amount` characters at least where reads do not get lines.
    pub(super) fn available(&self, amount: usize) -> bool {
        if self.reads_lines() { self.complete > 0 } else { self.input.len() >= amount }
    }

    /// FIONREAD: ends of file do not count.
    pub(super) fn count(&self) -> usize {
        if !self.reads_lines() {
            return self.input.len();
        }
        self.input.iter().take(self.complete).filter(|c| !c.is_eof()).count()
    }

    /// Takes a line, or as much of it as fits. There is one.
    pub(super) fn take_line(&mut self, buf: &mut [u8]) -> usize {
        let mut got = 0usize;
        while self.complete > 0
            && let Some(next) = self.input.front().copied()
        {
            let slot = buf.get_mut(got);
            // An end of file just behind what fits is eaten with it.
            if slot.is_some() || next.is_eof() {
                self.drop_first();
            }
            let Some(slot) = slot else { break };
            if !next.is_eof() {
                *slot = next.byte;
                got += 1;
            }
            if next.end {
                break;
            }
        }
        got
    }

    fn drop_first(&mut self) {
        self.input.pop_front();
        self.complete = self.complete.saturating_sub(1);
    }

    /// Takes characters as they are.
    pub(super) fn take_chars(&mut self, buf: &mut [u8]) -> usize {
        let count = self.input.len().min(buf.len()).min(NEAR);
        for (slot, next) in buf.iter_mut().zip(self.input.drain(..count)) {
            *slot = next.byte;
        }
        self.complete = self.complete.saturating_sub(count);
        count
    }

    /// The settings change.
    pub(super) fn set(&mut self, new: Termios2) {
        let old = self.termios;
        let new = termios::of_pty(termios::keep_locked(&old, &new, &self.locked));
        self.termios = new;
        if self.packet {
            self.tell_settings(&old);
        }
        if (old.c_lflag ^ new.c_lflag) & (ICANON | EXTPROC) != 0 {
            for c in &mut self.input {
                c.end = false;
            }
            self.complete = 0;
            if self.l(ICANON)
                && let Some(last) = self.input.back_mut()
            {
                last.end = true;
                self.complete = self.input.len();
            }
            self.erasing = false;
            self.lnext = false;
        }
        if old.c_iflag & IXON != 0 && !self.i(IXON) && !self.stopped_by_call {
            self.start();
            self.flush_echo();
        }
        self.effects.near = true;
        self.effects.far = true;
    }

    fn tell_settings(&mut self, old: &Termios2) {
        let flow = |t: &Termios2| {
            t.c_iflag & IXON != 0
                && t.c_cc.get(VSTOP).copied() == Some(0x13)
                && t.c_cc.get(VSTART).copied() == Some(0x11)
        };
        let (before, now) = (flow(old), flow(&self.termios));
        if before != now {
            self.status &= !(TIOCPKT_DOSTOP | TIOCPKT_NOSTOP);
            self.status |= if now { TIOCPKT_DOSTOP } else { TIOCPKT_NOSTOP };
        }
        if (old.c_lflag | self.termios.c_lflag) & EXTPROC != 0 {
            self.status |= TIOCPKT_IOCTL;
        }
    }

    /// Tells the other side in packet mode.
    pub(super) fn tell(&mut self, set: u8, clear: u8) {
        if self.packet {
            self.status = self.status & !clear | set;
            self.effects.far = true;
        }
    }

    /// Output waits.
    pub(super) fn stop(&mut self) {
        if !self.stopped && !self.stopped_by_call {
            self.stopped = true;
            self.tell(TIOCPKT_STOP, TIOCPKT_START);
        }
    }

    /// Output goes on.
    pub(super) fn start(&mut self) {
        if self.stopped && !self.stopped_by_call {
            self.stopped = false;
            self.tell(TIOCPKT_START, TIOCPKT_STOP);
            self.effects.near = true;
        }
    }

    /// TCOOFF
    pub(super) fn stop_by_call(&mut self) {
        if !self.stopped_by_call {
            self.stop();
            self.stopped_by_call = true;
        }
    }

    /// TCOON
    pub(super) fn start_by_call(&mut self) {
        if self.stopped_by_call {
            self.stopped_by_call = false;
            self.start();
        }
    }

    /// Throws input away.
    pub(super) fn flush_input(&mut self) {
        self.input.clear();
        self.complete = 0;
        self.erasing = false;
        self.tell(TIOCPKT_FLUSHREAD, 0);
        self.effects.far = true;
    }

    /// Throws output away that has not arrived at the other side.
    pub(super) fn flush_output(&mut self) {
        self.out.truncate(self.arrived.unwrap_or(NEAR).min(NEAR));
        self.tell(TIOCPKT_FLUSHWRITE, 0);
        self.effects.near = true;
    }

    /// What has happened since the last call.
    pub(super) fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }
}
