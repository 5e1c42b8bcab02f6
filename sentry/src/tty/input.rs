//! Characters that come in (termios(3), "Canonical and noncanonical mode"; `c_iflag`, ISIG).

use super::edit::lower;
use super::line::{Char, ECHO_SOON, Echo, INPUT, Line};
use crate::signal::bit;
use syscall_table::abi::ioctl::*;
use syscall_table::abi::sigaction::{SIGINT, SIGQUIT, SIGTSTP};

impl Line {
    /// Takes characters from the other side; gives how many. It takes fewer when the buffer is full.
    pub(super) fn receive(&mut self, data: &[u8]) -> usize {
        let mut taken = 0usize;
        self.arrived = Some(self.out.len());
        while let Some(rest) = data.get(taken..).filter(|rest| !rest.is_empty()) {
            let room = self.make_room();
            if room == 0 {
                break;
            }
            let part = rest.get(..room).unwrap_or(rest);
            for byte in part {
                self.receive_one(*byte);
                if self.echo.len() >= ECHO_SOON {
                    self.flush_echo();
                }
            }
            taken = taken.saturating_add(part.len());
        }
        self.flush_echo();
        self.arrived = None;
        if taken > 0 && !self.reads_lines() && !self.input.is_empty() {
            self.effects.near = true;
        }
        taken
    }

    /// How many characters may come. In an unfinished line that fills the buffer the last character is given up for each
    /// new one, so that the line can still be edited and ended.
    fn make_room(&mut self) -> usize {
        let left = INPUT.saturating_sub(self.input.len());
        let left = if self.i(PARMRK) { left.div_ceil(3) } else { left };
        if left > 1 {
            return left.saturating_sub(1);
        }
        let unfinished = self.l(ICANON) && self.complete == 0;
        if unfinished && left == 0 {
            self.input.pop_back();
        }
        usize::from(unfinished)
    }

    fn put(&mut self, byte: u8) {
        self.input.push_back(Char { byte, end: false });
    }

    /// A character of data: 0xff is doubled with PARMRK.
    fn put_marked(&mut self, byte: u8) {
        if byte == 0xff && self.i(PARMRK) {
            self.put(byte);
        }
        self.put(byte);
    }

    fn end_line(&mut self, byte: u8) {
        self.input.push_back(Char { byte, end: true });
        self.complete = self.input.len();
        self.effects.near = true;
    }

    /// Whether the line that is being edited is empty.
    pub(super) fn line_is_empty(&self) -> bool {
        self.complete == self.input.len()
    }

    fn receive_one(&mut self, byte: u8) {
        let mut byte = byte;
        if self.i(ISTRIP) {
            byte &= 0x7f;
        }
        if self.i(IUCLC) && self.l(IEXTEN) {
            byte = lower(byte);
        }
        if self.l(EXTPROC) {
            self.put(byte);
        } else if std::mem::take(&mut self.lnext) {
            self.plain(byte);
        } else if byte != DISABLED_CHAR && self.is_special(byte) {
            self.special(byte);
        } else {
            self.plain(byte);
        }
    }

    fn is(&self, byte: u8, places: &[usize]) -> bool {
        places.iter().any(|place| self.cc(*place) == Some(byte))
    }

    fn is_special(&self, byte: u8) -> bool {
        byte == b'\r' && (self.i(IGNCR) || self.i(ICRNL))
            || byte == b'\n' && (self.i(INLCR) || self.l(ICANON))
            || self.l(ICANON) && self.is(byte, &[VERASE, VKILL, VEOF, VEOL])
            || self.l(ICANON) && self.l(IEXTEN) && self.is(byte, &[VWERASE, VLNEXT, VEOL2])
            || self.l(ICANON) && self.l(IEXTEN) && self.l(ECHO) && self.is(byte, &[VREPRINT])
            || self.i(IXON) && self.is(byte, &[VSTART, VSTOP])
            || self.l(ISIG) && self.is(byte, &[VINTR, VQUIT, VSUSP])
    }

    /// IXANY: any character lets output go on.
    fn start_by_any(&mut self) {
        if self.stopped && !self.stopped_by_call && self.i(IXON) && self.i(IXANY) {
            self.start();
            self.flush_echo();
        }
    }

    fn plain(&mut self, byte: u8) {
        self.start_by_any();
        if self.l(ECHO) {
            self.finish_erasing();
            self.mark_column();
            self.echo_char(byte);
        }
        self.put_marked(byte);
    }

    /// The first character of a line tells where the line begins.
    fn mark_column(&mut self) {
        if self.line_is_empty() {
            self.note(Echo::Begin);
        }
    }

    fn special(&mut self, byte: u8) {
        let mut byte = byte;
        if self.i(IXON) && self.is(byte, &[VSTART, VSTOP]) {
            if self.is(byte, &[VSTART]) {
                self.start();
                self.flush_echo();
            } else {
                self.stop();
            }
            return;
        }
        if self.l(ISIG) {
            for (place, signal) in [(VINTR, SIGINT), (VQUIT, SIGQUIT), (VSUSP, SIGTSTP)] {
                if self.is(byte, &[place]) {
                    self.signal(signal, byte);
                    return;
                }
            }
        }
        self.start_by_any();
        if byte == b'\r' {
            if self.i(IGNCR) {
                return;
            }
            if self.i(ICRNL) {
                byte = b'\n';
            }
        } else if byte == b'\n' && self.i(INLCR) {
            byte = b'\r';
        }
        if self.l(ICANON) && self.edits(byte) {
            return;
        }
        if self.l(ECHO) {
            self.finish_erasing();
            if byte == b'\n' {
                self.echo_raw(b'\n');
            } else {
                self.mark_column();
                self.echo_char(byte);
            }
        }
        self.put_marked(byte);
    }

    fn signal(&mut self, signal: i32, byte: u8) {
        self.effects.signals |= bit(signal);
        if !self.l(NOFLSH) {
            self.echo.clear();
            self.flush_output();
            self.flush_input();
        }
        if self.i(IXON) {
            self.start();
        }
        if self.l(ECHO) {
            self.echo_char(byte);
        } else {
            self.flush_echo();
        }
    }

    /// What a character does to the line. False: it is one like others.
    fn edits(&mut self, byte: u8) -> bool {
        let extended = self.l(IEXTEN);
        if self.is(byte, &[VERASE, VKILL]) || extended && self.is(byte, &[VWERASE]) {
            self.erase(byte);
        } else if extended && self.is(byte, &[VLNEXT]) {
            self.lnext = true;
            if self.l(ECHO) {
                self.finish_erasing();
                if self.l(ECHOCTL) {
                    self.echo_raw(b'^');
                    self.echo_raw(0x08);
                }
            }
        } else if extended && self.l(ECHO) && self.is(byte, &[VREPRINT]) {
            self.reprint(byte);
        } else if byte == b'\n' {
            if self.l(ECHO) || self.l(ECHONL) {
                self.echo_raw(b'\n');
            }
            self.end_line(b'\n');
        } else if self.is(byte, &[VEOF]) {
            self.end_line(DISABLED_CHAR);
        } else if self.is(byte, &[VEOL]) || extended && self.is(byte, &[VEOL2]) {
            if self.l(ECHO) {
                self.mark_column();
                self.echo_char(byte);
            }
            if byte == 0xff && self.i(PARMRK) {
                self.put(byte);
            }
            self.end_line(byte);
        } else {
            return false;
        }
        true
    }
}
