//! Output on its way to the other side: `c_oflag`, columns, echo (termios(3)).

use super::edit::is_control;
use super::line::{ECHO_ROOM, Line, OUTPUT};
use syscall_table::abi::ioctl::*;

/// What a character of output becomes.
enum Shape {
    Nothing,
    One(u8),
    NewLine,
    Spaces(usize),
}

impl Line {
    /// Bytes that output may have just now.
    pub(super) fn output_room(&self) -> usize {
        if self.stopped || self.stopped_by_call { 0 } else { OUTPUT.saturating_sub(self.out.len()) }
    }

    /// Takes output of the terminal's; gives how many bytes it took.
    pub(super) fn output(&mut self, data: &[u8]) -> usize {
        self.flush_echo();
        let mut taken = 0usize;
        if !self.o(OPOST) {
            taken = data.len().min(self.output_room());
            self.out.extend(data.get(..taken).unwrap_or_default());
        } else {
            for byte in data {
                let room = self.output_room();
                let (shape, column) = self.shape(*byte);
                let size = shape.size();
                if room < size.max(1) {
                    break;
                }
                self.column = column;
                self.note_line(*byte);
                shape.each(|b| self.out.push_back(b));
                taken += 1;
            }
        }
        self.effects.far |= taken > 0;
        taken
    }

    /// What OPOST makes of a character, and the column after it.
    fn shape(&self, byte: u8) -> (Shape, usize) {
        let column = self.column;
        match byte {
            b'\n' if self.o(ONLCR) => (Shape::NewLine, 0),
            b'\n' => (Shape::One(byte), if self.o(ONLRET) { 0 } else { column }),
            b'\r' if self.o(ONOCR) && column == 0 => (Shape::Nothing, column),
            b'\r' if self.o(OCRNL) => (Shape::One(b'\n'), if self.o(ONLRET) { 0 } else { column }),
            b'\r' => (Shape::One(byte), 0),
            b'\t' => {
                let wide = 8 - (column & 7);
                let shape = if self.termios.c_oflag & TABDLY == XTABS {
                    Shape::Spaces(wide)
                } else {
                    Shape::One(byte)
                };
                (shape, column.saturating_add(wide))
            }
            0x08 => (Shape::One(byte), column.saturating_sub(1)),
            _ if is_control(byte) => (Shape::One(byte), column),
            _ => {
                let shown = if self.o(OLCUC) { byte.to_ascii_uppercase() } else { byte };
                let wide = usize::from(!self.continues(byte));
                (Shape::One(shown), column.saturating_add(wide))
            }
        }
    }

    /// A new line is where the next edited line begins, unless it is marked later.
    fn note_line(&mut self, byte: u8) {
        if matches!(byte, b'\n' | b'\r') {
            self.canon_column = self.column;
        }
    }

    /// Echoes a byte as OPOST has it.
    pub(super) fn echo_raw(&mut self, byte: u8) {
        if !self.o(OPOST) {
            self.emit(byte);
            return;
        }
        let (shape, column) = self.shape(byte);
        self.column = column;
        self.note_line(byte);
        shape.each(|b| self.emit(b));
    }

    /// Echoes a character: a control character as `^X` with ECHOCTL.
    pub(super) fn echo_char(&mut self, byte: u8) {
        if self.l(ECHOCTL) && is_control(byte) && byte != b'\t' {
            self.emit(b'^');
            self.emit(byte ^ 0x40);
            self.column = self.column.saturating_add(2);
        } else {
            self.echo_raw(byte);
        }
    }

    /// Sends one byte of echo, or keeps it until there is room. Of too many the oldest go.
    pub(super) fn emit(&mut self, byte: u8) {
        self.flush_echo();
        if self.echo.is_empty() && self.output_room() > 0 {
            self.out.push_back(byte);
            self.effects.far = true;
            return;
        }
        if self.echo.len() >= ECHO_ROOM {
            self.echo.pop_front();
        }
        self.echo.push_back(byte);
    }

    /// Sends the echo that waited for room.
    pub(super) fn flush_echo(&mut self) {
        let count = self.echo.len().min(self.output_room());
        if count > 0 {
            self.out.extend(self.echo.drain(..count));
            self.effects.far = true;
        }
    }
}

impl Shape {
    fn size(&self) -> usize {
        match self {
            Shape::Nothing => 0,
            Shape::One(_) => 1,
            Shape::NewLine => 2,
            Shape::Spaces(wide) => *wide,
        }
    }

    fn each(&self, mut f: impl FnMut(u8)) {
        match self {
            Shape::Nothing => {}
            Shape::One(byte) => f(*byte),
            Shape::NewLine => {
                f(b'\r');
                f(b'\n');
            }
            Shape::Spaces(wide) => (0..*wide).for_each(|_| f(b' ')),
        }
    }
}
