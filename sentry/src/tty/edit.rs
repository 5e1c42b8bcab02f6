//! Editing the line that is not complete yet: VERASE, VWERASE, VKILL, VREPRINT (termios(3)).

use super::line::{Char, Echo, Line};
use syscall_table::abi::ioctl::*;

const BACK: u8 = 0x08;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Char,
    Word,
    Line,
}

impl Line {
    /// Whether the byte goes on with a character of several bytes.
    pub(super) fn continues(&self, byte: u8) -> bool {
        self.i(IUTF8) && byte & 0xc0 == 0x80
    }

    /// Ends the `\` of ECHOPRT.
    pub(super) fn finish_erasing(&mut self) {
        if std::mem::take(&mut self.erasing) {
            self.echo_raw(b'/');
        }
    }

    /// The line once more, on a new line.
    pub(super) fn reprint(&mut self, byte: u8) {
        self.finish_erasing();
        self.echo_char(byte);
        self.echo_raw(b'\n');
        let line: Vec<u8> = self.input.iter().skip(self.complete).map(|c| c.byte).collect();
        for byte in line {
            self.echo_char(byte);
        }
    }

    /// An erasing character came.
    pub(super) fn erase(&mut self, byte: u8) {
        if self.line_is_empty() {
            return;
        }
        let kind = if self.cc(VERASE) == Some(byte) {
            Kind::Char
        } else if self.cc(VWERASE) == Some(byte) {
            Kind::Word
        } else {
            Kind::Line
        };
        if kind == Kind::Line && !(self.l(ECHO) && self.l(ECHOK) && self.l(ECHOKE) && self.l(ECHOE)) {
            self.drop_line();
            return;
        }
        let mut in_word = false;
        while !self.line_is_empty() {
            let Some((first, size)) = self.last_char() else { break };
            if kind == Kind::Word {
                if first.is_ascii_alphanumeric() || first == b'_' || latin_letter(first) {
                    in_word = true;
                } else if in_word {
                    break;
                }
            }
            let at = self.input.len().saturating_sub(size);
            let gone: Vec<Char> = self.input.drain(at..).collect();
            if self.l(ECHO) {
                self.show_erased(kind, first, &gone);
            }
            if kind == Kind::Char {
                break;
            }
        }
        if self.line_is_empty() && self.l(ECHO) {
            self.finish_erasing();
        }
    }

    /// VKILL without echoing the erasure.
    fn drop_line(&mut self) {
        self.input.truncate(self.complete);
        if !self.l(ECHO) {
            return;
        }
        self.finish_erasing();
        if let Some(kill) = self.cc(VKILL) {
            self.echo_char(kill);
        }
        if self.l(ECHOK) {
            self.echo_raw(b'\n');
        }
    }

    /// The first byte of the line's last character, and how many it has. None when only a part of one is left.
    fn last_char(&self) -> Option<(u8, usize)> {
        let line = self.input.len().saturating_sub(self.complete);
        let mut size = 0usize;
        for c in self.input.iter().rev().take(line) {
            size += 1;
            if !self.continues(c.byte) {
                return Some((c.byte, size));
            }
        }
        None
    }

    fn show_erased(&mut self, kind: Kind, first: u8, gone: &[Char]) {
        if self.l(ECHOPRT) {
            if !self.erasing {
                self.echo_raw(b'\\');
                self.erasing = true;
            }
            self.echo_char(first);
            for c in gone.iter().skip(1) {
                self.echo_raw(c.byte);
                self.note(Echo::Back);
            }
        } else if kind == Kind::Char && !self.l(ECHOE) {
            if let Some(erase) = self.cc(VERASE) {
                self.echo_char(erase);
            }
        } else if first == b'\t' {
            self.erase_tab();
        } else {
            let control = is_control(first);
            let columns = match (control, self.l(ECHOCTL)) {
                (true, true) => 2,
                (true, false) => 0,
                (false, _) => 1,
            };
            for _ in 0..columns {
                self.echo_raw(BACK);
                self.echo_raw(b' ');
                self.echo_raw(BACK);
            }
        }
    }

    /// Back over a tab: as far as the columns since the last tab, or since the line's beginning, say.
    fn erase_tab(&mut self) {
        let (mut columns, mut after_tab) = (0usize, false);
        for c in self.input.iter().skip(self.complete).rev() {
            if c.byte == b'\t' {
                after_tab = true;
                break;
            }
            if is_control(c.byte) {
                columns += if self.l(ECHOCTL) { 2 } else { 0 };
            } else if !self.continues(c.byte) {
                columns += 1;
            }
        }
        self.note(Echo::Tab(columns & 7, after_tab));
    }
}

/// iscntrl of the kernel's character table (Latin-1).
pub(super) fn is_control(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f
}

/// The letters of the kernel's character table beyond ASCII.
fn latin_letter(byte: u8) -> bool {
    byte >= 0xc0 && byte != 0xd7 && byte != 0xf7
}

/// toupper of the kernel's character table (Latin-1).
pub(super) fn upper(byte: u8) -> u8 {
    let small = byte.is_ascii_lowercase() || byte >= 0xdf && byte != 0xf7;
    if small { byte.wrapping_sub(32) } else { byte }
}

/// tolower of it.
pub(super) fn lower(byte: u8) -> u8 {
    let large = byte.is_ascii_uppercase() || (0xc0..=0xde).contains(&byte) && byte != 0xd7;
    if large { byte.wrapping_add(32) } else { byte }
}
