//! Output on its way to the other side: `c_oflag`, columns, echo (termios(3)).

use super::edit::{is_control, upper};
use super::line::{ECHO_ROOM, Echo, Line, OUTPUT};
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
                let shown = if self.o(OLCUC) { upper(byte) } else { byte };
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
        self.note(Echo::Plain(byte));
    }

    /// Echoes a character: a control character as `^X` with ECHOCTL.
    pub(super) fn echo_char(&mut self, byte: u8) {
        let shown = self.l(ECHOCTL) && is_control(byte) && byte != b'\t';
        self.note(if shown { Echo::Control(byte) } else { Echo::Plain(byte) });
    }

    /// Notes a step of echo. Of too many the oldest go.
    pub(super) fn note(&mut self, step: Echo) {
        if self.echo.len() >= ECHO_ROOM {
            self.echo.pop_front();
        }
        self.echo.push_back(step);
    }

    /// Takes the noted steps, as far as there is room.
    pub(super) fn flush_echo(&mut self) {
        while let Some(step) = self.echo.front().copied() {
            if !self.step(step) {
                return;
            }
            self.echo.pop_front();
        }
    }

    /// Takes one step. False: no room.
    fn step(&mut self, step: Echo) -> bool {
        let room = self.output_room();
        match step {
            // Linux echoes this one as it is: its echo buffer gives it a meaning of its own.
            Echo::Plain(0xff) if room > 0 => {
                self.out.push_back(0xff);
                self.column = self.column.saturating_add(1);
            }
            Echo::Plain(byte) if self.o(OPOST) => {
                let (shape, column) = self.shape(byte);
                if room < shape.size().max(1) {
                    return false;
                }
                self.column = column;
                self.note_line(byte);
                shape.each(|b| self.out.push_back(b));
            }
            Echo::Plain(_) if room == 0 => return false,
            Echo::Plain(byte) => self.out.push_back(byte),
            Echo::Control(_) if room < 2 => return false,
            Echo::Control(byte) => {
                self.out.extend([b'^', byte ^ 0x40]);
                self.column = self.column.saturating_add(2);
            }
            Echo::Back => self.column = self.column.saturating_sub(1),
            Echo::Begin => self.canon_column = self.column,
            Echo::Tab(columns, after_tab) => {
                let columns = if after_tab { columns } else { columns.saturating_add(self.canon_column) };
                let back = 8 - (columns & 7);
                if room < back {
                    return false;
                }
                self.out.extend(std::iter::repeat_n(0x08, back));
                self.column = self.column.saturating_sub(back);
            }
        }
        self.effects.far = true;
        true
    }

    /// Sends a byte of the terminal's own, past what waits for VSTART.
    pub(super) fn send(&mut self, byte: u8) {
        if !self.stopped_by_call && self.out.len() < OUTPUT {
            self.out.push_back(byte);
            self.effects.far = true;
            if self.stopped {
                // Linux starts and stops again around it.
                self.tell(TIOCPKT_STOP, TIOCPKT_START);
            }
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
